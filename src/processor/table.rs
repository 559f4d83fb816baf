//! From the text of a file to records with their physical lines. Knows no column and no money.
//!
//! Decisions: the walker is our own, because three things have to be certain that a lenient reader hides: an open quote
//! at the end of the file is an error, text behind a closing quote is an error, and the line of a record is the line a
//! person finds in an editor, behind quoted line breaks, blank lines and every kind of line end. Cells are borrowed from
//! the text; a property test holds it against the `csv` crate.

use crate::exit::Failure;

/// Longest field that is read, in bytes. Far above any id, amount or description.
const FIELD_BYTES_MAX: usize = 64 * 1024;
/// Longest record that is read, in bytes.
const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// Most columns that are read.
const COLUMNS_MAX: usize = 512;
/// How much of a value an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// A place in a file, for errors and evidence.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Name of the file, as the configuration gives it.
    pub file: &'a str,
    /// Physical line, counted from 1.
    pub line: u32,
}

impl Place<'_> {
    /// Exit 2, about one value: `finding` continues the sentence that begins with the value.
    pub fn cell(self, column: &str, value: &str, finding: &str) -> Failure {
        let Place { file, line } = self;
        Failure::rejected(format!(
            "{file}:{line}: column \"{column}\", line {line}: {} {finding}",
            shown(value)
        ))
    }

    /// Exit 2, about a whole row: `finding` continues the sentence "line 4 …".
    pub fn row(self, finding: &str) -> Failure {
        let Place { file, line } = self;
        Failure::rejected(format!("{file}:{line}: line {line} {finding}"))
    }
}

/// A value as an error shows it: quoted, control characters escaped, long ones cut, card numbers masked.
pub fn shown(value: &str) -> String {
    let mut text = String::from("\"");
    let is_card = looks_like_a_card(value);
    for (at, character) in value.chars().enumerate() {
        if at == SHOWN_CHARS_MAX {
            text.push('…');
            break;
        }
        if is_card && character.is_ascii_digit() {
            text.push('*');
        } else {
            // An apostrophe is what it is; control characters and quotes are escaped.
            match character {
                '\'' => text.push('\''),
                _ => text.extend(character.escape_debug()),
            }
        }
    }
    text.push('"');
    text
}

/// Whether the digits of a value are as many as on a card and pass its check digit.
fn looks_like_a_card(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    if !(13..=19).contains(&digits.len())
        || !value.chars().all(|c| matches!(c, '0'..='9' | ' ' | '-'))
    {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// The text without white space at its ends, including line breaks, no-break spaces, byte-order marks and other invisible
/// characters.
pub fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [] => text,
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim_matches(is_space),
    }
}

fn is_space(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The records of a text, one after the other.
pub struct Records<'t> {
    file: &'t str,
    text: &'t str,
    delimiter: u8,
    quote: Option<u8>,
    /// Where the next cell or record begins, and its line.
    next: Mark,
    /// Where the current record began.
    start: Mark,
    /// Where it ended, without the line end.
    end: usize,
    cells: Vec<Cell>,
    unescaped: String,
}

/// A position to come back to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    at: usize,
    line: u32,
}

#[derive(Clone, Copy)]
struct Cell {
    start: usize,
    end: usize,
    is_unescaped: bool,
}

/// One record; its cells live as long as the walker stands on it.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    cells: &'r [Cell],
    text: &'r str,
    unescaped: &'r str,
    /// Physical line on which it begins, counted from 1.
    pub line: u32,
}

impl<'r> Row<'r> {
    /// How many cells.
    pub fn len(&self) -> usize {
        self.cells.len()
    }

    /// Whether it has no cell at all.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// The cell at a position counted from 0, without its quotes; empty where the row is shorter.
    pub fn get(&self, position: usize) -> &'r str {
        match self.cells.get(position) {
            Some(cell) if cell.is_unescaped => &self.unescaped[cell.start..cell.end],
            Some(cell) => &self.text[cell.start..cell.end],
            None => "",
        }
    }

    /// Whether every cell is empty or white space.
    pub fn is_blank(&self) -> bool {
        (0..self.len()).all(|position| trim(self.get(position)).is_empty())
    }
}

impl<'t> Records<'t> {
    /// A walker at the first line. `quote` = `None`: quotes are characters like any other.
    pub fn new(file: &'t str, text: &'t str, delimiter: u8, quote: Option<u8>) -> Records<'t> {
        let first = Mark { at: 0, line: 1 };
        Records {
            file,
            text,
            delimiter,
            quote,
            next: first,
            start: first,
            end: 0,
            cells: Vec::new(),
            unescaped: String::new(),
        }
    }

    /// Goes to the next record; `false` at the end of the text. A blank line is a record of one empty cell.
    ///
    /// Rejects an open quote, text behind a closing quote, and what exceeds the caps.
    pub fn advance(&mut self) -> Result<bool, Failure> {
        self.cells.clear();
        self.unescaped.clear();
        self.start = self.next;
        if self.next.at >= self.text.len() {
            return Ok(false);
        }
        while self.cell()? {
            if self.cells.len() == COLUMNS_MAX {
                return Err(self
                    .place()
                    .row(&format!("has more than {COLUMNS_MAX} fields"))
                    .why("so wide a row is taken for a damaged file"));
            }
            if self.next.at - self.start.at > RECORD_BYTES_MAX {
                return Err(self
                    .place()
                    .row("is longer than 1 MiB")
                    .why("so long a row is taken for a damaged file"));
            }
        }
        Ok(true)
    }

    /// The current record.
    pub fn row(&self) -> Row<'_> {
        Row {
            cells: &self.cells,
            text: self.text,
            unescaped: &self.unescaped,
            line: self.start.line,
        }
    }

    /// The current record as it stands in the file, without its line end.
    pub fn raw(&self) -> &'t str {
        &self.text[self.start.at..self.end]
    }

    /// Where the current record stands.
    pub fn place(&self) -> Place<'t> {
        Place {
            file: self.file,
            line: self.start.line,
        }
    }

    /// Where the next record begins.
    pub fn mark(&self) -> Mark {
        self.next
    }

    /// Goes back, so that the next record is the one that begins at the mark.
    pub fn go_to(&mut self, mark: Mark) {
        self.next = mark;
    }

    /// Leaves out one physical line, whatever it holds; `false` at the end of the text.
    pub fn skip_line(&mut self) -> bool {
        let rest = &self.text.as_bytes()[self.next.at..];
        let length = rest
            .iter()
            .position(|byte| matches!(byte, b'\n' | b'\r'))
            .unwrap_or(rest.len());
        self.next.at += length;
        self.end_line();
        !rest.is_empty()
    }

    /// Reads the cell at `next`; whether another one follows in this record.
    fn cell(&mut self) -> Result<bool, Failure> {
        let bytes = self.text.as_bytes();
        let at = self.next.at;
        if self.quote.is_some() && bytes.get(at).copied() == self.quote {
            self.quoted_cell(at + 1)?;
        } else {
            let delimiter = self.delimiter;
            let length = bytes[at..]
                .iter()
                .position(|byte| *byte == delimiter || matches!(byte, b'\n' | b'\r'))
                .unwrap_or(bytes.len() - at);
            if length > FIELD_BYTES_MAX {
                return Err(self
                    .place()
                    .row("has a field longer than 64 KiB")
                    .why("so long a field is taken for a damaged file"));
            }
            self.cells.push(Cell {
                start: at,
                end: at + length,
                is_unescaped: false,
            });
            self.next.at = at + length;
        }
        self.end = self.next.at;
        match bytes.get(self.next.at) {
            Some(byte) if *byte == self.delimiter => {
                self.next.at += 1;
                Ok(true)
            }
            Some(b'\n' | b'\r') | None => {
                self.end_line();
                Ok(false)
            }
            Some(_) => Err(Place {
                file: self.file,
                line: self.next.line,
            }
            .row("has text behind a closing quote")
            .why("a quoted field ends with its quote; a quote inside it is written twice")
            .remedy("export the file again, or set quote = \"\" in the profile where quotes mean nothing")),
        }
    }

    /// Reads a quoted cell whose text begins at `from`; leaves `next` behind the closing quote.
    fn quoted_cell(&mut self, from: usize) -> Result<(), Failure> {
        let bytes = self.text.as_bytes();
        let opened = self.next.line;
        let quote = self.quote.unwrap_or(b'"');
        let unescaped_from = self.unescaped.len();
        let mut is_unescaped = false;
        let mut copied = from;
        let mut at = from;
        loop {
            match bytes.get(at) {
                Some(byte) if *byte == quote => {
                    if bytes.get(at + 1) != Some(&quote) {
                        break;
                    }
                    is_unescaped = true;
                    self.unescaped.push_str(&self.text[copied..=at]);
                    at += 2;
                    copied = at;
                }
                Some(b'\n') => {
                    self.next.line += 1;
                    at += 1;
                }
                Some(b'\r') => {
                    self.next.line += u32::from(bytes.get(at + 1) != Some(&b'\n'));
                    at += 1;
                }
                Some(_) => at += 1,
                None => return Err(self.open_quote(opened)),
            }
            if at - from > FIELD_BYTES_MAX {
                return Err(self.open_quote(opened));
            }
        }
        if is_unescaped {
            self.unescaped.push_str(&self.text[copied..at]);
        }
        self.cells.push(if is_unescaped {
            Cell {
                start: unescaped_from,
                end: self.unescaped.len(),
                is_unescaped,
            }
        } else {
            Cell {
                start: from,
                end: at,
                is_unescaped,
            }
        });
        self.next.at = at + 1;
        Ok(())
    }

    fn open_quote(&self, line: u32) -> Failure {
        Place {
            file: self.file,
            line,
        }
        .row("opens a quote that is not closed within the file or within 64 KiB")
        .why("the file is cut off or damaged: where a field ends cannot be told")
        .remedy("export the file again and check that it was copied whole")
    }

    /// Steps over the line end at `next`, if there is one.
    fn end_line(&mut self) {
        match self.text.as_bytes().get(self.next.at..) {
            Some([b'\r', b'\n', ..]) => self.next.at += 2,
            Some([b'\r' | b'\n', ..]) => self.next.at += 1,
            _ => return,
        }
        self.next.line = self.next.line.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read = Vec<(u32, Vec<String>)>;

    fn read(text: &str) -> Result<Read, Failure> {
        let mut records = Records::new("a.csv", text, b',', Some(b'"'));
        let mut rows = Vec::new();
        while records.advance()? {
            let row = records.row();
            let cells = (0..row.len()).map(|at| row.get(at).to_owned()).collect();
            rows.push((row.line, cells));
        }
        Ok(rows)
    }

    fn rows(expected: &[(u32, &[&str])]) -> Read {
        expected
            .iter()
            .map(|(line, cells)| (*line, cells.iter().map(|cell| (*cell).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn a_record_is_not_a_line() {
        for (text, want) in [
            ("a,b\n1,2\n", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            ("a,b\r\n1,2", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            ("a,b\r1,2\r", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            (
                "\"x\r\ny\",1\r\n2,3",
                rows(&[(1, &["x\r\ny", "1"]), (3, &["2", "3"])]),
            ),
            ("\"x\ry\nz\"\n2", rows(&[(1, &["x\ry\nz"]), (4, &["2"])])),
            (
                "a\n\n\nb",
                rows(&[(1, &["a"]), (2, &[""]), (3, &[""]), (4, &["b"])]),
            ),
            (
                "\"a\"\"b\",\"\",\"\"\"\"",
                rows(&[(1, &["a\"b", "", "\""])]),
            ),
            ("a,", rows(&[(1, &["a", ""])])),
            ("2\" pipe,x", rows(&[(1, &["2\" pipe", "x"])])),
            ("", rows(&[])),
        ] {
            assert_eq!(read(text).expect("records"), want, "{text:?}");
        }
    }

    #[test]
    fn damage_is_refused_at_its_line() {
        let wide = ",".repeat(COLUMNS_MAX + 1);
        let long = format!("a\n{}", "x".repeat(FIELD_BYTES_MAX + 1));
        let endless = format!("a\n\"{}\"", "x".repeat(FIELD_BYTES_MAX + 1));
        let heavy = format!("{},", "x".repeat(FIELD_BYTES_MAX)).repeat(17);
        for (text, want) in [
            ("a\nb\n\"c\nd", "line 3 opens a quote"),
            ("a\n\"b\"c,d", "line 2 has text behind a closing quote"),
            ("\"x\ny\"z", "line 2 has text behind a closing quote"),
            (wide.as_str(), "more than 512 fields"),
            (&long, "line 2 has a field longer than 64 KiB"),
            (&endless, "line 2 opens a quote"),
            (&heavy, "longer than 1 MiB"),
        ] {
            let failure = read(text).expect_err("rejected");
            assert!(failure.what.contains(want), "{}", failure.what);
        }
    }

    #[test]
    fn white_space_of_every_kind_is_trimmed() {
        for (text, want) in [
            ("ORD 1", "ORD 1"),
            (" ORD\n", "ORD"),
            ("\u{a0}\u{feff}ORD\u{200b}\t", "ORD"),
            ("\n", ""),
            ("é ", "é"),
            ("x", "x"),
        ] {
            assert_eq!(trim(text), want, "{text:?}");
        }
    }

    #[test]
    fn an_error_shows_a_value_but_never_a_card_number() {
        assert_eq!(shown("15.0x"), "\"15.0x\"");
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
        assert_eq!(shown("'=1"), "\"'=1\"");
        assert_eq!(shown("4111 1111 1111 1111"), "\"**** **** **** ****\"");
        assert_eq!(shown("4111111111111112"), "\"4111111111111112\"");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), SHOWN_CHARS_MAX + 3);
    }

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read_back(
            table in prop::collection::vec(
                prop::collection::vec("[a\"\n\r, ;é]{0,6}", 3),
                1..6,
            )
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).expect("written");
            }
            let bytes = writer.into_inner().expect("bytes");
            let text = String::from_utf8(bytes).expect("utf-8");
            let cells: Vec<Vec<String>> =
                read(&text).expect("records").into_iter().map(|(_, cells)| cells).collect();
            prop_assert_eq!(cells, table);
        }

        #[test]
        fn any_text_ends_in_records_or_an_error(text in "[a\"\n\r,é]{0,40}") {
            let _ = read(&text);
        }
    }
}
