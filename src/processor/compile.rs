//! From the TOML shapes of a profile to its meaning; refuses what has none. Its money is in [`money`].

mod about;
mod cells;
mod layout;
mod money;
mod promises;
mod sections;
mod words;

use std::collections::BTreeMap;

use super::nearest::nearest;
use super::profile::{
    About, Column, ColumnAt, ColumnId, DerivedRefund, HeaderForm, Layout, ModeRule, MoneyRules,
    Profile, WordMap,
};
use super::wire::{CheckWire, ColumnWire, CsvWire, ProfileWire, RecordWire, WatermarkWire};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::time::{Span, Zone};

/// The failure of a text that is no profile, with line, column and the key that may have been meant.
pub(super) fn not_a_profile(origin: &str, toml_text: &str, error: &toml::de::Error) -> Failure {
    let at = error.span().map_or(0, |span| span.start);
    let before = toml_text.get(..at).unwrap_or_default();
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    let message = error.message().trim();
    let place = format!("{origin}:{line}: line {line}, column {column}:");
    let Some(rest) = message.strip_prefix("unknown field `") else {
        return Failure::rejected(format!("{place} {}", message.replace('`', "\"")))
            .why("the profile cannot be read as it is written")
            .remedy("correct the line; the README lists the keys of a profile");
    };
    let (key, rest) = rest.split_once('`').unwrap_or((rest, ""));
    let known: Vec<&str> = rest.split('`').skip(1).step_by(2).collect();
    let failure = Failure::rejected(format!("{place} unknown key \"{key}\""))
        .why(format!("the keys known here are {}", known.join(", ")));
    match nearest(key, known) {
        Some(meant) => failure.remedy(format!("did you mean \"{meant}\"?")),
        None => failure.remedy("leave the key out"),
    }
}

/// The meaning of a profile of a kind: `csv`, or the rows of an `api`.
pub(super) fn compile(origin: &str, mut wire: ProfileWire, kind: &str) -> Result<Profile, Failure> {
    let mut compiler = Compiler {
        origin,
        columns: Vec::new(),
        any_of: Vec::new(),
        required: None,
        zones: BTreeMap::new(),
        patterns: Vec::new(),
        context: Vec::new(),
    };
    compiler.refuse_open_questions(&wire)?;
    if kind == "api" {
        compiler.refuse_forms_of_files(&mut wire)?;
    } else {
        compiler.refuse_foreign_tables(&wire)?;
    }
    compiler.profile(wire)
}

/// How badly a column is needed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    /// The decoder cannot do without it.
    Always,
    /// Needed unless the profile lists its required columns and does not list this one.
    AsDeclared,
    /// One of several, or declared optional.
    Optional,
}

struct Compiler<'a> {
    origin: &'a str,
    columns: Vec<Column>,
    any_of: Vec<Vec<ColumnId>>,
    required: Option<Vec<String>>,
    zones: BTreeMap<String, Zone>,
    patterns: Vec<(String, String)>,
    /// Names of cells that rows take over from the line of their section.
    context: Vec<String>,
}

impl Compiler<'_> {
    fn refuse(&self, finding: &str) -> Failure {
        Failure::rejected(format!("{}: {finding}", self.origin))
    }

    fn unsupported(&self, key: &str) -> Failure {
        self.refuse(&format!("{key} is not supported yet"))
            .why("a key that is read without effect would promise what is not kept")
            .remedy("leave it out of the profile")
    }

    /// The value of a word, or a refusal that lists the known ones.
    fn word<T: Copy>(
        &self,
        key: &str,
        written: &str,
        known: impl IntoIterator<Item = (&'static str, T)>,
    ) -> Result<T, Failure> {
        let known: Vec<(&str, T)> = known.into_iter().collect();
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == written) {
            return Ok(*value);
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let failure = self
            .refuse(&format!("{key} = \"{written}\" is not known"))
            .why(format!(
                "the words known here are \"{}\"",
                words.join("\", \"")
            ));
        Err(match nearest(written, words) {
            Some(meant) => failure.remedy(format!("did you mean \"{meant}\"?")),
            None => failure.remedy("choose one of the known words"),
        })
    }

    fn kind(&self, key: &str, written: &str) -> Result<OperationKind, Failure> {
        self.word(
            key,
            written,
            OperationKind::ALL.iter().map(|kind| (kind.as_str(), *kind)),
        )
    }

    fn status(&self, key: &str, written: &str) -> Result<OperationStatus, Failure> {
        let all = OperationStatus::ALL.iter();
        self.word(key, written, all.map(|status| (status.as_str(), *status)))
    }

    fn reason(&self, key: &str, written: &str) -> Result<IgnoreReason, Failure> {
        let all = IgnoreReason::ALL.iter();
        self.word(key, written, all.map(|reason| (reason.as_str(), *reason)))
    }

    fn span(&self, key: &str, written: Option<&str>, default: Span) -> Result<Span, Failure> {
        match written {
            None => Ok(default),
            Some(text) => Span::parse(text).ok_or_else(|| {
                self.refuse(&format!("{key} = \"{text}\" is no length of time"))
                    .why("a length of time is a whole number and one unit: 0s, 90m, 72h, 5d, 2w")
                    .remedy("write it so")
            }),
        }
    }

    /// The index of a column, entered when it is new.
    fn column(&mut self, wire: &ColumnWire, need: Need) -> ColumnId {
        let at = match wire {
            ColumnWire::Position(position) => ColumnAt::Position(*position),
            ColumnWire::Name(written) => match written.rsplit_once('#') {
                Some((name, nth)) if nth.parse().is_ok_and(|nth: usize| nth > 0) => {
                    ColumnAt::Name {
                        name: name.to_owned(),
                        nth: nth.parse().ok(),
                    }
                }
                _ => ColumnAt::Name {
                    name: written.clone(),
                    nth: None,
                },
            },
        };
        let is_listed = match (&self.required, wire) {
            (Some(required), ColumnWire::Name(name)) => required.contains(name),
            (Some(_), ColumnWire::Position(_)) => false,
            (None, _) => true,
        };
        let is_required = match need {
            Need::Always => true,
            Need::AsDeclared => is_listed,
            Need::Optional => self.required.is_some() && is_listed,
        };
        if let Some(index) = self.columns.iter().position(|column| column.at == at) {
            self.columns[index].is_required |= is_required;
            return ColumnId(index);
        }
        self.columns.push(Column { at, is_required });
        ColumnId(self.columns.len() - 1)
    }

    fn profile(&mut self, wire: ProfileWire) -> Result<Profile, Failure> {
        let csv = wire.csv.unwrap_or_default();
        self.required.clone_from(&csv.required);
        for name in csv.required.iter().flatten() {
            self.column(&ColumnWire::Name(name.clone()), Need::Always);
        }
        for (name, text) in wire.zones.unwrap_or_default() {
            let zone = self.zone(&format!("zones.{name}"), &text)?;
            self.zones.insert(name, zone);
        }
        let Some(records) = wire.records else {
            return Err(self
                .refuse("there is no table [records.default]")
                .remedy("say in it where id, time and money of a row stand"));
        };
        let record = records.default;
        let Some(maps) = wire.maps else {
            return Err(self.no_kinds());
        };
        let Some(kinds) = maps.kind else {
            return Err(self.no_kinds());
        };
        let statuses = match &maps.status {
            Some(map) => self.word_maps("maps.status", map)?,
            None => Vec::new(),
        };
        let mut kinds = self.word_maps("maps.kind", &kinds)?;
        if statuses.is_empty() {
            // A format without statuses lists what has happened.
            for map in &mut kinds {
                let beginnings = map.beginnings.iter_mut().map(|(_, word)| word);
                for word in map.words.values_mut().chain(beginnings) {
                    word.status = word.status.or(Some(OperationStatus::Succeeded));
                }
            }
        }
        let mut layout = self.layout(&csv, wire.sections.as_ref())?;
        layout.sets = self.header_sets(wire.header_sets.as_deref().unwrap_or_default())?;
        let money = self.money(&record.money)?;
        let about = self.about(&wire.profile, wire.idempotency.as_ref(), &record)?;
        let profile = self.record(
            (wire.profile.name, wire.profile.version, about),
            record,
            layout,
            money,
            (kinds, statuses),
            &wire.checks.unwrap_or_default(),
            &wire.watermark.unwrap_or_default(),
        )?;
        self.finish(profile)
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "the parts of one profile, used once"
    )]
    fn record(
        &mut self,
        (name, version, about): (String, u32, About),
        record: RecordWire,
        layout: Layout,
        money: MoneyRules,
        (kinds, statuses): (Vec<WordMap>, Vec<WordMap>),
        checks: &[CheckWire],
        watermark: &WatermarkWire,
    ) -> Result<Profile, Failure> {
        let id = self.id(&record)?;
        self.text("bank_ref", record.bank_ref)?;
        let mut other_times = Vec::new();
        for (key, time) in [
            ("updated_at", record.updated_at),
            ("booked_at", record.booked_at),
            ("available_on", record.available_on),
            ("settled_on", record.settled_on),
        ] {
            if let Some(time) = time {
                other_times.push(self.time(key, &time, Need::AsDeclared)?);
            }
        }
        let mode = record.mode.map(|mode| ModeRule {
            column: self.column(&mode.column, Need::AsDeclared),
            live: mode.live,
            test: mode.test,
            is_optional: mode.optional.unwrap_or(false),
        });
        let derived_refund = match record.derived_refund {
            Some(refund) => Some(DerivedRefund {
                total: self.amount(
                    "derived_refund.total",
                    &refund.total,
                    None,
                    Need::AsDeclared,
                )?,
                at: match &refund.at {
                    Some(at) => Some(self.time("derived_refund.at", at, Need::AsDeclared)?),
                    None => None,
                },
            }),
            None => None,
        };
        Ok(Profile {
            name,
            version,
            about,
            layout,
            columns: Vec::new(),
            any_of: Vec::new(),
            patterns: Vec::new(),
            id,
            account: self.text("account", record.account)?,
            object_id: self.text("object_id", record.object_id)?,
            parent_id: self.text("parent_id", record.parent_id)?,
            reference: self.text("reference", record.reference)?,
            payout_id: self.text("payout_id", record.payout_id)?,
            description: self.text("description", record.description)?,
            mode,
            occurred_at: self.time("occurred_at", &record.occurred_at, Need::Always)?,
            other_times,
            money,
            derived_refund,
            kinds,
            statuses,
            checks: self.checks(checks)?,
            spans: self.spans(watermark)?,
        })
    }

    /// Hands the columns over, once every rule has named its own.
    fn finish(&mut self, mut profile: Profile) -> Result<Profile, Failure> {
        if matches!(profile.layout.header, HeaderForm::Positional) {
            for column in &self.columns {
                if let ColumnAt::Name { name, .. } = &column.at {
                    return Err(self
                        .refuse(&format!("column \"{name}\" is given by name"))
                        .why("header = \"positional\" says that the file names no columns")
                        .remedy("give its position, counted from 1: column = 4"));
                }
            }
        }
        profile.columns = std::mem::take(&mut self.columns);
        profile.any_of = std::mem::take(&mut self.any_of);
        profile.patterns = std::mem::take(&mut self.patterns);
        if profile.checks.running_balance.is_some() && profile.money.balance.is_empty() {
            return Err(self
                .refuse("checks: the running balance is checked and records.default.money names no balance")
                .remedy("name its column: balance = { column = \"Balance\" }"));
        }
        Ok(profile)
    }

    fn no_kinds(&self) -> Failure {
        self.refuse("there is no table [maps.kind]")
            .why("what kind of operation a row is has to be told by a column of the file")
            .remedy("name the column, and the kind of each of its words")
    }

    /// What `profiles infer` could not know has to be answered before anything is read.
    fn refuse_open_questions(&self, wire: &ProfileWire) -> Result<(), Failure> {
        match wire.profile.open_questions.as_deref().unwrap_or_default() {
            [] => Ok(()),
            questions => Err(self
                .refuse(&format!(
                    "the profile has {}: {}",
                    match questions {
                        [_] => "an open question".to_owned(),
                        several => format!("{} open questions", several.len()),
                    },
                    questions.join("; ")
                ))
                .why("what a file cannot say about itself is never guessed")
                .remedy(
                    "write the answer into the profile and delete the question from open_questions",
                )),
        }
    }

    /// The rows of an API have no form of a file, and nothing in them is written for a spreadsheet.
    fn refuse_forms_of_files(&self, wire: &mut ProfileWire) -> Result<(), Failure> {
        if wire.profile.kind != "api" {
            return Err(self
                .refuse(&format!("profile.kind = \"{}\" reads files, and this source asks an API", wire.profile.kind))
                .remedy("write kind = \"csv\" in the section of the source, or name a profile of kind \"api\""));
        }
        let csv = wire.csv.take().unwrap_or_default();
        let only_rows = CsvWire {
            skip_rows: csv.skip_rows,
            strip_text_guard: Some(false),
            ..CsvWire::default()
        };
        let has_form = csv.encoding.is_some()
            || csv.delimiter.is_some()
            || csv.quote.is_some()
            || csv.header.is_some()
            || csv.header_match.is_some()
            || csv.trim.is_some()
            || csv.strip_text_guard.is_some()
            || csv.row_width.is_some()
            || csv.required.is_some()
            || csv.aliases.is_some()
            || csv.series.is_some()
            || csv.refuse.is_some()
            || csv.preamble_total.is_some()
            || csv.end_marker.is_some()
            || csv.control_rows.is_some()
            || csv.expect_rows.is_some()
            || csv.expect_total.is_some()
            || csv.trailer.is_some();
        if has_form || wire.sections.is_some() || wire.header_sets.is_some() {
            return Err(self
                .refuse("a profile of kind \"api\" may say skip_rows under [csv], and nothing else about the form of a file")
                .remedy("leave it out"));
        }
        for (name, table) in [
            ("fanout", &wire.fanout),
            ("job", &wire.job),
            ("probe", &wire.probe),
            ("loop", &wire.loops),
            ("graphql", &wire.graphql),
            ("group", &wire.group),
        ] {
            if table.is_some() {
                return Err(self.unsupported(&format!("[{name}]")));
            }
        }
        wire.csv = Some(only_rows);
        Ok(())
    }

    fn refuse_foreign_tables(&self, wire: &ProfileWire) -> Result<(), Failure> {
        match wire.profile.kind.as_str() {
            "csv" => {}
            "api" => {
                return Err(self
                    .refuse("profile.kind = \"api\" says how a processor is asked, and this source reads files")
                    .remedy("write kind = \"api\" in the section of the source, or name the profile of the file"));
            }
            other => self.word("profile.kind", other, [("csv", ()), ("api", ())])?,
        }
        for (name, table) in [
            ("http", &wire.http),
            ("auth", &wire.auth),
            ("request", &wire.request),
            ("lookup", &wire.lookup),
            ("account", &wire.account),
            ("fanout", &wire.fanout),
            ("job", &wire.job),
            ("probe", &wire.probe),
            ("loop", &wire.loops),
            ("graphql", &wire.graphql),
        ] {
            if table.is_some() {
                return Err(self
                    .refuse(&format!(
                        "[{name}] has no place in a profile of kind \"csv\""
                    ))
                    .why("it says how an API is asked, and a file is only read")
                    .remedy("leave it out"));
            }
        }
        if wire.group.is_some() {
            return Err(self.unsupported("[group]"));
        }
        Ok(())
    }
}
