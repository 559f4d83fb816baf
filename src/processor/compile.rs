//! From the TOML shapes of a profile to its meaning; refuses what has none. Its money is in [`money`].

mod money;

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::encoding::{self, Encoding};
use super::header::RowWidth;
use super::moment::{TimeFormat, TimeRule, ZoneRule};
use super::nearest::nearest;
use super::profile::{
    Candidate, Checks, Column, ColumnAt, ColumnId, ControlRule, Delimiter, DerivedRefund,
    ExpectTotal, HeaderForm, IdRule, Layout, ModeRule, MoneyRules, Otherwise, Profile, RowNet,
    SkipRule, Spans, TextFrom, TextRule, Trailer, Word, WordMap,
};
use super::table::{shown, trim};
use super::wire::{
    CandidateWire, CheckWire, ColumnWire, CsvWire, MapWire, OneOrMany, ProfileWire, RecordWire,
    TextOr, TimeWire, WatermarkWire,
};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::time::{Span, Zone};

/// The one row rule that is known.
const ROW_RULE: &str = "net == amount - fee";
/// The one payout rule that is known.
const PAYOUT_RULE: &str =
    "sum(settle_net where kind != payout) + sum(settle_net where kind == payout) == 0";

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

/// The meaning of a profile.
pub(super) fn compile(origin: &str, wire: ProfileWire) -> Result<Profile, Failure> {
    let mut compiler = Compiler {
        origin,
        columns: Vec::new(),
        any_of: Vec::new(),
        required: None,
        zones: BTreeMap::new(),
    };
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
        self.refuse_foreign_tables(&wire)?;
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
            Some(map) => Some(self.word_map("maps.status", map)?),
            None => None,
        };
        let mut kinds = self.word_map("maps.kind", &kinds)?;
        if statuses.is_none() {
            // A format without statuses lists what has happened.
            for word in kinds.words.values_mut() {
                word.status = word.status.or(Some(OperationStatus::Succeeded));
            }
        }
        let layout = self.layout(&csv)?;
        let money = self.money(&record.money)?;
        let profile = self.record(
            (wire.profile.name, wire.profile.version),
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
        (name, version): (String, u32),
        record: RecordWire,
        layout: Layout,
        money: MoneyRules,
        (kinds, statuses): (WordMap, Option<WordMap>),
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
        });
        let derived_refund = match record.derived_refund {
            Some(refund) => Some(DerivedRefund {
                total: self.amount(
                    "derived_refund.total",
                    &refund.total,
                    None,
                    Need::AsDeclared,
                )?,
                at: self.time("derived_refund.at", &refund.at, Need::AsDeclared)?,
            }),
            None => None,
        };
        Ok(Profile {
            name,
            version,
            layout,
            columns: Vec::new(),
            any_of: Vec::new(),
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
        Ok(profile)
    }

    fn no_kinds(&self) -> Failure {
        self.refuse("there is no table [maps.kind]")
            .why("what kind of operation a row is has to be told by a column of the file")
            .remedy("name the column, and the kind of each of its words")
    }

    fn refuse_foreign_tables(&self, wire: &ProfileWire) -> Result<(), Failure> {
        match wire.profile.kind.as_str() {
            "csv" => {}
            "api" => {
                return Err(self
                    .unsupported("profile.kind = \"api\"")
                    .remedy("export the operations as a file and write kind = \"csv\""));
            }
            other => self.word("profile.kind", other, [("csv", ()), ("api", ())])?,
        }
        for (name, table) in [
            ("http", &wire.http),
            ("auth", &wire.auth),
            ("request", &wire.request),
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
        for (name, table) in [
            ("sections", &wire.sections),
            ("header_sets", &wire.header_sets),
            ("group", &wire.group),
        ] {
            if table.is_some() {
                return Err(self.unsupported(&format!("[{name}]")));
            }
        }
        Ok(())
    }

    fn layout(&mut self, csv: &CsvWire) -> Result<Layout, Failure> {
        if csv.file_id.is_some() {
            return Err(self.unsupported("csv.file_id"));
        }
        if csv.discriminator.is_some() {
            return Err(self.unsupported("csv.discriminator"));
        }
        let header = match (csv.header.as_deref().unwrap_or("named"), &csv.header_match) {
            ("by_record_type", _) => {
                return Err(self.unsupported("csv.header = \"by_record_type\""));
            }
            ("named", Some(found))
                if trim(&found.first_cell).is_empty() || found.within_lines == 0 =>
            {
                return Err(self
                    .refuse("csv.header_match finds no header")
                    .why("it looks for a first cell that is not empty, within at least one line")
                    .remedy("write, for example, header_match = { first_cell = \"Date\", within_lines = 10 }"));
            }
            ("named", Some(found)) => HeaderForm::NamedAfterPreamble {
                first_cell: found.first_cell.clone(),
                within_lines: found.within_lines,
            },
            ("named", None) => HeaderForm::Named,
            ("positional", None) => HeaderForm::Positional,
            ("positional", Some(_)) => {
                return Err(self
                    .refuse("csv.header_match stands beside header = \"positional\"")
                    .why("a file without a header has none to look for")
                    .remedy("leave one of the two out"));
            }
            (other, _) => {
                self.word(
                    "csv.header",
                    other,
                    [("named", ()), ("positional", ()), ("by_record_type", ())],
                )?;
                HeaderForm::Named
            }
        };
        let delimiter = match csv.delimiter.as_deref().unwrap_or(",") {
            "auto" => Delimiter::FromHeader,
            text => match text.as_bytes() {
                [byte] if byte.is_ascii() && !matches!(byte, b'\n' | b'\r' | b'"') => {
                    Delimiter::Is(*byte)
                }
                _ => {
                    return Err(self
                        .refuse(&format!("csv.delimiter = \"{text}\" is no delimiter"))
                        .why("a delimiter is one ASCII character, or \"auto\"")
                        .remedy("write \",\", \";\", \"\\t\", \"|\" or \"auto\""));
                }
            },
        };
        if delimiter == Delimiter::FromHeader && matches!(header, HeaderForm::Positional) {
            return Err(self
                .refuse("csv.delimiter = \"auto\" stands beside header = \"positional\"")
                .why("the delimiter is found by the names in the header")
                .remedy("declare the delimiter"));
        }
        let quote = match csv.quote.as_deref().unwrap_or("\"").as_bytes() {
            [] => None,
            [byte] if byte.is_ascii_punctuation() && Delimiter::Is(*byte) != delimiter => {
                Some(*byte)
            }
            _ => {
                return Err(self
                    .refuse(&format!(
                        "csv.quote = {} is no quote",
                        shown(csv.quote.as_deref().unwrap_or_default())
                    ))
                    .why("a quote is one ASCII sign other than the delimiter, or empty for none")
                    .remedy("leave the key out: the default is '\"'"));
            }
        };
        if let Some(marker) = &csv.end_marker
            && (trim(marker).is_empty() || marker.contains(['\n', '\r']))
        {
            return Err(self
                .refuse(&format!("csv.end_marker = {} is no line", shown(marker)))
                .why(
                    "the marker is the whole text of the last line, and blank lines stand anywhere",
                )
                .remedy("write the line as it stands in the file, or leave end_marker out"));
        }
        let mut skip = Vec::new();
        for rule in csv.skip_rows.iter().flatten() {
            skip.push(SkipRule {
                column: self.column(&rule.column, Need::AsDeclared),
                words: rule.words.clone(),
                reason: self.reason("csv.skip_rows.reason", &rule.reason)?,
            });
        }
        if let Some(trailer) = &csv.trailer
            && (trailer.rows == Some(0)
                || trailer
                    .total
                    .as_ref()
                    .is_some_and(|total| total.position == 0))
        {
            return Err(self
                .refuse("csv.trailer names position 0")
                .why("there is no cell before the first one")
                .remedy("positions are counted from 1"));
        }
        let controls = csv
            .control_rows
            .iter()
            .flatten()
            .map(|rule| ControlRule {
                column: self.column(&rule.column, Need::Always),
                words: rule.words.clone(),
                sum_of: self.column(&rule.sum_of, Need::Always),
            })
            .collect();
        Ok(Layout {
            encoding: match &csv.encoding {
                Some(name) => self.word("csv.encoding", name, encoding::NAMES)?,
                None => Encoding::Auto,
            },
            delimiter,
            quote,
            header,
            trim: csv.trim.unwrap_or(true),
            strip_text_guard: csv.strip_text_guard.unwrap_or(true),
            width: match &csv.row_width {
                Some(name) => self.word("csv.row_width", name, RowWidth::NAMES)?,
                None => RowWidth::Exact,
            },
            aliases: csv.aliases.clone().unwrap_or_default(),
            skip,
            end_marker: csv.end_marker.clone(),
            controls,
            expect_rows: csv.expect_rows,
            expect_total: csv.expect_total.as_ref().map(|total| ExpectTotal {
                column: self.column(&total.column, Need::Always),
                value: total.value.clone(),
            }),
            trailer: csv.trailer.as_ref().map(|trailer| Trailer {
                first_cell: trailer.first_cell.clone(),
                rows: trailer.rows,
                total: trailer
                    .total
                    .as_ref()
                    .map(|total| (total.position, self.column(&total.sum_of, Need::Always))),
            }),
        })
    }

    fn id(&mut self, record: &RecordWire) -> Result<IdRule, Failure> {
        let falls_back = match record.operation_id_fallback.as_deref() {
            None => false,
            Some(word) => self.word(
                "records.default.operation_id_fallback",
                word,
                [("reject", false), ("synthetic", true)],
            )?,
        };
        match &record.operation_id {
            TextOr::Text(word) if word == "synthetic" => Ok(IdRule::Synthetic),
            TextOr::Other(columns) if !columns.is_empty() => Ok(IdRule::Columns {
                columns: columns
                    .iter()
                    .map(|column| self.column(column, Need::Always))
                    .collect(),
                falls_back,
            }),
            _ => Err(self
                .refuse("records.default.operation_id names no columns")
                .why("it is a list of columns, or \"synthetic\" where a format has no ids")
                .remedy("write operation_id = [\"column\"]")),
        }
    }

    fn text(
        &mut self,
        key: &str,
        wire: Option<OneOrMany<TextOr<CandidateWire>>>,
    ) -> Result<TextRule, Failure> {
        let Some(OneOrMany(candidates)) = wire else {
            return Ok(Vec::new());
        };
        let is_choice = candidates.len() > 1;
        let need = if is_choice {
            Need::Optional
        } else {
            Need::AsDeclared
        };
        let mut rule = Vec::new();
        let mut group = Vec::new();
        for candidate in candidates {
            let candidate = match candidate {
                TextOr::Text(column) => CandidateWire {
                    column: ColumnWire::Name(column),
                    not_in: None,
                    json_pointer: None,
                    when_kind: None,
                    regex: None,
                },
                TextOr::Other(candidate) => candidate,
            };
            if candidate.regex.is_some() {
                return Err(
                    self.unsupported(&format!("the key \"regex\" of records.default.{key}"))
                );
            }
            let mut when_kind = Vec::new();
            for kind in candidate.when_kind.iter().flatten() {
                when_kind.push(self.kind(&format!("records.default.{key}.when_kind"), kind)?);
            }
            let from = match &candidate.column {
                ColumnWire::Name(name) if name.starts_with("const:") => {
                    TextFrom::Const(name["const:".len()..].to_owned())
                }
                column => {
                    let column = self.column(column, need);
                    group.push(column);
                    TextFrom::Column(column)
                }
            };
            rule.push(Candidate {
                from,
                not_in: candidate.not_in.unwrap_or_default(),
                json_pointer: candidate.json_pointer,
                when_kind,
            });
        }
        if is_choice && self.required.is_none() && group.len() == rule.len() {
            self.any_of.push(group);
        }
        Ok(rule)
    }

    fn zone(&self, key: &str, text: &str) -> Result<Zone, Failure> {
        Zone::parse(text).ok_or_else(|| {
            self.refuse(&format!("{key} = \"{text}\" is no time zone"))
                .why("a zone is an IANA name (Europe/Paris), UTC or an offset (+01:00)")
                .remedy(
                    "write it so; an abbreviation stands for different zones in different places",
                )
        })
    }

    fn time(&mut self, key: &str, wire: &TimeWire, need: Need) -> Result<TimeRule, Failure> {
        let key = format!("records.default.{key}");
        let need = if wire.optional == Some(true) {
            Need::Optional
        } else {
            need
        };
        let columns = wire
            .column
            .0
            .iter()
            .map(|column| self.column(column, need))
            .collect();
        let written = wire.format.as_ref().map_or(&[][..], |format| &format.0);
        if written.is_empty() {
            return Err(self
                .refuse(&format!("{key} has no format"))
                .why("whether 05/06 is in May or in June is never guessed from the data")
                .remedy("declare it: format = \"rfc3339\", or strftime words such as \"%d/%m/%Y %H:%M:%S\""));
        }
        let mut formats = Vec::new();
        for text in written {
            formats.push(TimeFormat::parse(text).map_err(|finding| {
                self.refuse(&format!("{key}: format \"{text}\" {finding}"))
                    .why(
                        "times are read by \"rfc3339\" or by strftime words that give a whole date",
                    )
                    .remedy("correct the format")
            })?);
        }
        let needs_zone = formats.iter().any(|format| !format.has_offset());
        let zone = match (&wire.zone, &wire.zone_column) {
            (Some(_), Some(_)) => {
                return Err(self
                    .refuse(&format!("{key} has both zone and zone_column"))
                    .remedy("leave one of the two out"));
            }
            (Some(text), None) => ZoneRule::Fixed(self.zone(&format!("{key}.zone"), text)?),
            (None, Some(column)) => {
                if self.zones.is_empty() {
                    return Err(self
                        .refuse(&format!("{key} has a zone_column and there is no [zones]"))
                        .why("what an abbreviation in that column means has to be declared")
                        .remedy("write, for example, [zones] and CET = \"+01:00\""));
                }
                ZoneRule::Column(self.column(column, need), self.zones.clone())
            }
            (None, None) if needs_zone => {
                return Err(self
                    .refuse(&format!("{key} has a format without an offset and no zone"))
                    .why("a wall-clock time is no instant; the timezone of paysweep.toml is not the zone of the file")
                    .remedy("declare zone = \"Europe/Paris\", or zone_column with [zones]"));
            }
            (None, None) => ZoneRule::InText,
        };
        Ok(TimeRule {
            columns,
            formats,
            zone,
        })
    }

    fn word_map(&mut self, key: &str, wire: &MapWire) -> Result<WordMap, Failure> {
        let Some(column) = &wire.column else {
            return Err(self
                .refuse(&format!("{key} names no column"))
                .remedy("write column = \"Type\""));
        };
        let is_case_sensitive = match wire.case.as_deref() {
            None => true,
            Some(word) => self.word(
                &format!("{key}.case"),
                word,
                [("sensitive", true), ("insensitive", false)],
            )?,
        };
        let otherwise = match wire.otherwise.as_deref() {
            None => Otherwise::Invalid,
            Some(text) => match text.strip_prefix("ignore:") {
                Some(reason) => Otherwise::Ignore(self.reason(&format!("{key}.\"*\""), reason)?),
                None => self.word(
                    &format!("{key}.\"*\""),
                    text,
                    [
                        ("invalid_record", Otherwise::Invalid),
                        ("error", Otherwise::Error),
                    ],
                )?,
            },
        };
        let mut words = HashMap::new();
        for (written, word) in &wire.words {
            let here = format!("{key}.{written}");
            if word.bank_ref.is_some() {
                return Err(self.unsupported(&format!("{here}.bank_ref")));
            }
            let value = Word {
                kind: word
                    .kind
                    .as_deref()
                    .map(|kind| self.kind(&here, kind))
                    .transpose()?,
                status: word
                    .status
                    .as_deref()
                    .map(|status| self.status(&here, status))
                    .transpose()?,
                is_final: word.is_final.unwrap_or(false),
                ignore: word
                    .ignore
                    .as_deref()
                    .map(|reason| self.reason(&here, reason))
                    .transpose()?,
            };
            if key == "maps.kind" && value.kind.is_none() && value.ignore.is_none() {
                return Err(self
                    .refuse(&format!("{here} names no kind"))
                    .remedy("write kind = \"charge\", or ignore = \"life_cycle\""));
            }
            let written = if is_case_sensitive {
                written.clone()
            } else {
                written.to_lowercase()
            };
            if words.insert(written, value).is_some() {
                return Err(self
                    .refuse(&format!("{here} is there twice, in another case"))
                    .remedy("leave one of the two out"));
            }
        }
        if words.is_empty() {
            words = contract_words(key == "maps.kind");
        }
        Ok(WordMap {
            column: self.column(column, Need::Always),
            is_case_sensitive,
            words,
            otherwise,
        })
    }

    fn checks(&self, wires: &[CheckWire]) -> Result<Checks, Failure> {
        let mut checks = Checks::default();
        for wire in wires {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let tolerance_minor = wire.tolerance_minor.unwrap_or(0);
            if tolerance_minor < 0 {
                return Err(self
                    .refuse("checks.tolerance_minor is negative")
                    .remedy("write 0 or more minor units"));
            }
            match (wire.scope.as_str(), words(&wire.rule).as_str()) {
                ("row", ROW_RULE) => {
                    let only_where_net = match wire.when.as_deref().map(words).as_deref() {
                        None => false,
                        Some("net != 0") => true,
                        Some(other) => {
                            return Err(self
                                .refuse(&format!("checks.when = \"{other}\" is not known"))
                                .remedy("write when = \"net != 0\", or leave it out"));
                        }
                    };
                    checks.row_net = Some(RowNet {
                        only_where_net,
                        tolerance_minor,
                    });
                }
                ("payout", PAYOUT_RULE) => {
                    let groups = wire.group_by.as_deref().unwrap_or_default();
                    if !groups.is_empty() && groups != ["payout_id", "settle_currency"] {
                        return Err(self
                            .refuse("checks.group_by is not known")
                            .remedy("write group_by = [\"payout_id\", \"settle_currency\"], or leave it out"));
                    }
                    if let Some(word) = &wire.on_missing_payout {
                        self.word("checks.on_missing_payout", word, [("warn", ())])?;
                    }
                    checks.payout_tolerance_minor = Some(tolerance_minor);
                }
                (scope, rule) => {
                    return Err(self
                        .refuse(&format!(
                            "checks: the rule \"{rule}\" of scope \"{scope}\" is not known"
                        ))
                        .why(format!(
                            "the rules are \"{ROW_RULE}\" (row) and \"{PAYOUT_RULE}\" (payout)"
                        ))
                        .remedy("write one of them, or leave the check out"));
                }
            }
        }
        Ok(checks)
    }

    fn spans(&self, wire: &WatermarkWire) -> Result<Spans, Failure> {
        match wire.kind.as_deref().unwrap_or("time") {
            "time" | "updated_time" => {}
            word @ ("date" | "id" | "counter" | "file_set") => {
                return Err(self.unsupported(&format!("watermark.kind = \"{word}\"")));
            }
            word => self.word("watermark.kind", word, [("time", ()), ("updated_time", ())])?,
        }
        if let Some(word) = &wire.gap {
            self.word("watermark.gap", word, [("error", ())])?;
        }
        if let Some(field) = wire.field.as_deref() {
            self.word(
                "watermark.field",
                field,
                [("occurred_at", ()), ("updated_at", ())],
            )?;
        }
        let span = |key: &str, text: &Option<String>, default| {
            self.span(&format!("watermark.{key}"), text.as_deref(), default)
        };
        Ok(Spans {
            delay: span("delay", &wire.delay, Span::ZERO)?,
            granularity: span("granularity", &wire.granularity, Span::ZERO)?,
            clock_error: span("clock_error", &wire.clock_error, Span::ZERO)?,
            lag: span("lag", &wire.lag, Span::ZERO)?,
            lookback: span("lookback", &wire.lookback, Span::hours(72))?,
            payout_span: span("payout_span", &wire.payout_span, Span::ZERO)?,
            rescan: match &wire.rescan {
                Some(_) => Some(span("rescan", &wire.rescan, Span::ZERO)?),
                None => None,
            },
        })
    }
}

/// The contract's own words, one to one: what a map without words means.
fn contract_words(of_kinds: bool) -> HashMap<String, Word> {
    if of_kinds {
        let word = |kind: &OperationKind| Word {
            kind: Some(*kind),
            ..Word::default()
        };
        OperationKind::ALL
            .iter()
            .map(|kind| (kind.as_str().to_owned(), word(kind)))
            .collect()
    } else {
        let word = |status: &OperationStatus| Word {
            status: Some(*status),
            ..Word::default()
        };
        OperationStatus::ALL
            .iter()
            .map(|status| (status.as_str().to_owned(), word(status)))
            .collect()
    }
}
