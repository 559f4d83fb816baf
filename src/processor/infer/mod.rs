//! A profile for an unknown file: proposed from its names and values, with how sure each line is and why.
//!
//! Decisions: what the file proves is written down, what it only suggests is written down and said so, and what it cannot
//! know (encoding, decimal sign, unit, order of day and month, zone, sign of refunds and fees) is asked for. A question
//! stands in the profile, and `Profile::parse` refuses a profile with one: nothing runs on a guess.

mod money;
mod shape;
mod sheet;
mod words;

use std::collections::BTreeSet;

use super::generic::quoted;
use super::table::shown;
use crate::exit::Failure;
use shape::Shape;
use sheet::{Found, Sheet};
use words::Field;

/// A profile for a file that nobody has described yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The profile as TOML, with a comment on each line that was found.
    pub toml: String,
    /// What the file cannot answer: the key, a colon and the question. Empty: the profile can be used as it is.
    pub questions: Vec<String>,
}

/// What stands where the answer to a question belongs.
const OPEN: &str = "?";

/// Proposes a profile. `file` names the file in errors and comments, `name` is what the profile calls itself.
///
/// Rejects a file that is no table with a header.
pub fn infer(file: &str, name: &str, bytes: &[u8]) -> Result<Proposal, Failure> {
    let sheet = sheet::read(file, bytes)?;
    let shapes = (0..sheet.header.len())
        .map(|column| shape::shape(sheet.values(column)))
        .collect();
    let mut draft = Draft {
        sheet,
        shapes,
        questions: Vec::new(),
        used: BTreeSet::new(),
    };
    let layout = draft.layout();
    let record = draft.record();
    let money = draft.money();
    let maps = draft.maps();
    let rest = draft.rest();
    let mut toml = format!(
        "# Proposed for {} by its names and values: {} rows were read. \"certain\": name and values say it; \"likely\": one\n\
         # of the two says it; \"guess\": look at it. The line itself is never a promise of the processor.\n\n\
         [profile]\nname = {}\nversion = 1\nkind = \"csv\"\n",
        comment(file),
        draft.sheet.rows.len(),
        quoted(name)
    );
    if !draft.questions.is_empty() {
        toml.push_str(
            "# What the file cannot answer. Put each answer where \"?\" stands, or correct the line, and delete the question;\n\
             # while one is left, paysweep refuses the profile.\nopen_questions = [\n",
        );
        for question in &draft.questions {
            toml.push_str(&format!("  {},\n", quoted(question)));
        }
        toml.push_str("]\n");
    }
    for part in [layout, record, money, maps, rest] {
        toml.push('\n');
        toml.push_str(&part);
    }
    Ok(Proposal {
        toml,
        questions: draft.questions,
    })
}

/// A proposal in the making.
struct Draft {
    sheet: Sheet,
    shapes: Vec<Shape>,
    questions: Vec<String>,
    /// Columns that have a meaning.
    used: BTreeSet<usize>,
}

/// How sure a finding is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sureness {
    Certain,
    Likely,
    Guess,
}

/// A column for a field.
struct Choice {
    column: usize,
    sureness: Sureness,
    why: String,
}

impl Choice {
    fn comment(&self) -> String {
        let word = match self.sureness {
            Sureness::Certain => "certain",
            Sureness::Likely => "likely",
            Sureness::Guess => "guess",
        };
        format!("# {word}: {}", self.why)
    }
}

/// Text of the file inside a comment: one line, nothing that a terminal obeys.
fn comment(text: &str) -> String {
    shown(text)
}

impl Draft {
    fn ask(&mut self, key: &str, question: &str) {
        self.questions.push(format!("{key}: {question}"));
    }

    fn name(&self, column: usize) -> String {
        self.sheet.name(column)
    }

    /// The first value of a column, for questions.
    fn example(&self, column: usize) -> String {
        shown(self.sheet.values(column).next().unwrap_or_default())
    }

    /// The column that fits a field best; columns that have a meaning already are left out.
    fn choose(&self, field: &Field) -> Option<Choice> {
        let scores: Vec<(u8, usize)> = (0..self.sheet.header.len())
            .filter(|column| !self.used.contains(column) && !self.sheet.header[*column].is_empty())
            .map(|column| {
                (
                    words::score(field, &self.sheet.header[column], &self.shapes[column]),
                    column,
                )
            })
            .filter(|(score, _)| *score > 0)
            .collect();
        let best = scores.iter().map(|(score, _)| *score).max()?;
        let rivals: Vec<usize> = scores
            .iter()
            .filter(|(score, _)| *score == best)
            .map(|(_, column)| *column)
            .collect();
        let column = rivals[0];
        let others: Vec<String> = rivals[1..]
            .iter()
            .map(|at| shown(&self.name(*at)))
            .collect();
        let (sureness, why) = match (best, others.is_empty()) {
            (3, true) => (Sureness::Certain, "name and values".to_owned()),
            (_, true) => (
                Sureness::Likely,
                "a word of its name, and the values fit".to_owned(),
            ),
            (_, false) => (
                Sureness::Guess,
                format!("it may as well be {}", others.join(" or ")),
            ),
        };
        Some(Choice {
            column,
            sureness,
            why,
        })
    }

    /// The column for a field that has to be there; a guess is asked about.
    fn need(&mut self, field: &Field, key: &str, why_needed: &str) -> Option<Choice> {
        let choice = self.choose(field);
        match &choice {
            Some(choice) if choice.sureness == Sureness::Guess => {
                let question = format!(
                    "is it column {}? {}",
                    shown(&self.name(choice.column)),
                    choice.why
                );
                self.ask(key, &question);
            }
            Some(_) => {}
            None => self.ask(key, &format!("which column is it? {why_needed}")),
        }
        if let Some(choice) = &choice {
            self.used.insert(choice.column);
        }
        choice
    }

    /// A line `key = "column"` with its comment; empty where no column fits.
    fn optional(&mut self, field: &Field) -> String {
        let Some(choice) = self.choose(field) else {
            return String::new();
        };
        self.used.insert(choice.column);
        format!(
            "{} = {}  {}\n",
            field.name,
            quoted(&self.name(choice.column)),
            choice.comment()
        )
    }

    fn layout(&mut self) -> String {
        let mut text = String::from("[csv]\n");
        if self.sheet.encoding == Found::OneByte {
            text.push_str(&format!("encoding = \"{OPEN}\"\n"));
            self.ask("csv.encoding", "the bytes are not UTF-8; is it \"windows-1252\" or \"iso-8859-1\"? Look at a word with an accent or a euro sign");
        }
        let delimiter = self.sheet.delimiter.to_string();
        text.push_str(&format!(
            "delimiter = {}  # certain: it makes columns of the lines\n",
            quoted(&delimiter)
        ));
        if self.sheet.header_line > 1 {
            let first = quoted(&self.sheet.header[0]);
            text.push_str(&format!(
                "header_match = {{ first_cell = {first}, within_lines = {} }}  # likely: the names of columns stand on line {}\n",
                sheet::HEADER_LINES_MAX,
                self.sheet.header_line
            ));
        }
        if let Some(line) = self.sheet.header_twin {
            let question = format!(
                "line {line} begins with {} as well, so it would be taken for the header; can the lines above the names be left out of the export?",
                shown(&self.sheet.header[0])
            );
            self.ask("csv.header_match", &question);
        }
        if self.sheet.narrow > 0 {
            text.push_str(&format!("row_width = \"{OPEN}\"\n"));
            let question = format!(
                "{} rows are narrower than the header; is the file damaged, or does the format leave out empty columns (\"allow_short\")?",
                self.sheet.narrow
            );
            self.ask("csv.row_width", &question);
        } else if self.sheet.wide > 0 {
            text.push_str(&format!("row_width = \"{OPEN}\"\n"));
            let question = format!(
                "{} rows hold values behind the last named column; is the file damaged, or may they be left out (\"allow_long\")?",
                self.sheet.wide
            );
            self.ask("csv.row_width", &question);
        } else if self.sheet.wide_but_empty > 0 {
            text.push_str(
                "row_width = \"allow_trailing_empty\"  # certain: rows end in empty columns\n",
            );
        }
        if let Some(last) = self.sheet.last.clone() {
            text.push_str(&format!(
                "# trailer = {{ first_cell = {} }}\n",
                quoted(&last[0])
            ));
            let question = format!(
                "the last line is narrower than the rows and begins with {}; is it a count or a total (uncomment the trailer and say where its figure stands), or was the file cut off?",
                shown(&last[0])
            );
            self.ask("csv.trailer", &question);
        }
        text
    }

    fn record(&mut self) -> String {
        let mut text = String::from("[records.default]\n");
        let time = self.time();
        text.push_str(&self.id());
        for field in [
            &words::REFERENCE,
            &words::PARENT,
            &words::PAYOUT,
            &words::DESCRIPTION,
        ] {
            let line = self.optional(field);
            if line.is_empty() && field.name == "reference" {
                text.push_str("# reference = \"…\"  # no column looks like your own key; without one only stored processor ids match\n");
            }
            text.push_str(&line);
        }
        text + &time
    }

    fn id(&mut self) -> String {
        let key = "records.default.operation_id";
        let Some(choice) = self.need(
            &words::ID,
            key,
            "Where the format has no ids, write \"synthetic\"",
        ) else {
            return format!("operation_id = [\"{OPEN}\"]\n");
        };
        let name = self.name(choice.column);
        let all: Vec<&str> = self.sheet.values(choice.column).collect();
        let mut seen = BTreeSet::new();
        let twice = all
            .iter()
            .find(|value| !seen.insert(**value))
            .map(|value| shown(value));
        let empty = self.sheet.rows.len() - all.len();
        let damaged = all
            .iter()
            .find(|value| super::is_exponent_notation(value))
            .map(|value| shown(value));
        if let Some(id) = twice {
            let question = format!(
                "column {} holds {id} more than once; which further columns tell the rows apart?",
                shown(&name)
            );
            self.ask(key, &question);
        }
        if let Some(id) = damaged {
            let question = format!(
                "column {} holds {id}, which a spreadsheet has damaged; export the file again",
                shown(&name)
            );
            self.ask(key, &question);
        }
        let mut text = format!("operation_id = [{}]  {}\n", quoted(&name), choice.comment());
        if empty > 0 {
            let named: Vec<String> = (0..self.sheet.header.len())
                .filter(|column| !self.sheet.header[*column].is_empty())
                .map(|column| quoted(&self.name(column)))
                .collect();
            text.push_str(&format!(
                "operation_id_fallback = \"synthetic\"  # likely: {empty} rows have no id\nidentity = [{}]  # the columns that tell such rows apart: keep those that never change\n",
                named.join(", ")
            ));
        }
        text
    }

    fn time(&mut self) -> String {
        let key = "records.default.occurred_at";
        let Some(choice) = self.need(&words::OCCURRED_AT, key, "It says when a row happened")
        else {
            return format!(
                "occurred_at = {{ column = \"{OPEN}\", format = \"{OPEN}\", zone = \"{OPEN}\" }}\n"
            );
        };
        let Shape::Time(mut formats) = self.shapes[choice.column].clone() else {
            return String::new();
        };
        let mut columns = quoted(&self.name(choice.column));
        if let Some((clock, joined)) = self.time_of_day(choice.column, &formats) {
            self.used.insert(clock);
            columns = format!("[{columns}, {}]", quoted(&self.name(clock)));
            formats = joined;
        }
        let format = match &formats[..] {
            [only] => quoted(only),
            several => {
                let options: Vec<String> = several.iter().map(|format| quoted(format)).collect();
                let question = format!(
                    "{} can be read as {}; in which order do day and month stand?",
                    self.example(choice.column),
                    options.join(" and as ")
                );
                self.ask(&format!("{key}.format"), &question);
                quoted(OPEN)
            }
        };
        let has_offset = formats
            .iter()
            .all(|format| format == "rfc3339" || format.ends_with("%z") || format == "%s");
        let zone = if has_offset {
            String::new()
        } else {
            self.zone(key, choice.column)
        };
        format!(
            "occurred_at = {{ column = {columns}, format = {format}{zone} }}  {}\n",
            choice.comment()
        )
    }

    /// The column of the time of day beside a column of days, and the formats that read both.
    fn time_of_day(&self, day: usize, formats: &[String]) -> Option<(usize, Vec<String>)> {
        if formats
            .iter()
            .any(|format| format.contains("%H") || format.contains("%I") || format.contains("%s"))
        {
            return None;
        }
        let clock = (0..self.sheet.header.len()).find(|column| {
            *column != day
                && matches!(
                    words::plain(&self.sheet.header[*column]).as_str(),
                    "time" | "hora" | "heure" | "uhrzeit" | "tijd"
                )
        })?;
        let joined: Vec<String> = self
            .sheet
            .rows
            .iter()
            .map(|(_, cells)| format!("{} {}", cells[day], cells[clock]))
            .collect();
        let values: BTreeSet<&str> = joined.iter().map(String::as_str).collect();
        let both: Vec<String> = formats
            .iter()
            .flat_map(|day| {
                ["%H:%M:%S", "%H:%M", "%I:%M:%S %p", "%I:%M %p"]
                    .map(|clock| format!("{day} {clock}"))
            })
            .collect();
        let both: Vec<&str> = both.iter().map(String::as_str).collect();
        let fitting = shape::fitting_formats(&both, &values);
        (!fitting.is_empty()).then_some((clock, fitting))
    }

    fn zone(&mut self, key: &str, column: usize) -> String {
        let name = words::plain(&self.sheet.header[column]);
        if name.split(' ').any(|word| matches!(word, "utc" | "gmt")) {
            return ", zone = \"UTC\"".to_owned();
        }
        let question = format!(
            "in which time zone does the file write {}? The times hold no offset; the zone of the account is usually a setting at the processor",
            self.example(column)
        );
        self.ask(&format!("{key}.zone"), &question);
        format!(", zone = \"{OPEN}\"")
    }

    fn maps(&mut self) -> String {
        let key = "maps.kind.column";
        let mut text = String::from("[maps.kind]\n");
        match self.need(
            &words::KIND,
            key,
            "Without it a refund cannot be told from a payment",
        ) {
            None => text.push_str(&format!("column = \"{OPEN}\"\n")),
            Some(choice) => {
                text.push_str(&self.vocabulary(&choice, "kind", words::kind));
            }
        }
        text.push_str("\"*\" = \"invalid_record\"\n");
        match self.choose(&words::STATUS) {
            Some(choice) => {
                self.used.insert(choice.column);
                text.push_str("\n[maps.status]\n");
                text.push_str(&self.vocabulary(&choice, "status", words::status));
                text.push_str("\"*\" = \"invalid_record\"\n");
            }
            None => {
                self.ask(
                    "maps.status",
                    "no column says what became of a row; does the file list only what has happened, and no declined or pending payment?",
                );
            }
        }
        text
    }

    /// The column of a vocabulary with a line for each of its words; a word in doubt is a comment.
    fn vocabulary(
        &self,
        choice: &Choice,
        key: &str,
        mean: fn(&str) -> Option<&'static str>,
    ) -> String {
        let mut text = format!(
            "column = {}  {}\n",
            quoted(&self.name(choice.column)),
            choice.comment()
        );
        let Shape::Words(words) = &self.shapes[choice.column] else {
            return text;
        };
        for word in words {
            text.push_str(&match mean(word) {
                Some(meaning) => format!("{} = {{ {key} = \"{meaning}\" }}  # likely: the word itself\n", quoted(word)),
                None => format!("# {} = {{ {key} = \"…\" }}  # not known: rows with it are kept as invalid until you say what it means\n", quoted(word)),
            });
        }
        text
    }

    /// The columns that nothing was made of.
    fn rest(&self) -> String {
        let mut text = String::new();
        for column in 0..self.sheet.header.len() {
            if self.used.contains(&column) || self.sheet.header[column].is_empty() {
                continue;
            }
            let what = match &self.shapes[column] {
                Shape::Empty => "empty",
                Shape::Currency => "currencies",
                Shape::Time(_) => "times",
                Shape::Number => "numbers",
                Shape::Words(_) => "a few words",
                Shape::Text => "text",
            };
            if text.is_empty() {
                text.push_str("# Not used:\n");
            }
            text.push_str(&format!("#   {} ({what})\n", shown(&self.name(column))));
        }
        text
    }
}
