//! Where ids, texts and times of a row stand.

use regex::Regex;

use super::{Compiler, Need};
use crate::exit::Failure;
use crate::processor::moment::{TimeFormat, TimeRule, ZoneRule};
use crate::processor::profile::{Candidate, ColumnId, IdRule, TextFrom, TextRule};
use crate::processor::wire::{CandidateWire, ColumnWire, OneOrMany, RecordWire, TextOr, TimeWire};
use crate::time::Zone;

impl Compiler<'_> {
    pub(super) fn id(&mut self, record: &RecordWire) -> Result<IdRule, Failure> {
        let falls_back = match record.operation_id_fallback.as_deref() {
            None => false,
            Some(word) => self.word(
                "records.default.operation_id_fallback",
                word,
                [("reject", false), ("synthetic", true)],
            )?,
        };
        let is_synthetic =
            matches!(&record.operation_id, TextOr::Text(word) if word == "synthetic");
        let identity = self.identity(record.identity.as_deref(), falls_back || is_synthetic)?;
        match &record.operation_id {
            TextOr::Text(_) if is_synthetic => Ok(IdRule::Synthetic(identity)),
            TextOr::Other(columns) if !columns.is_empty() => Ok(IdRule::Columns {
                columns: columns
                    .iter()
                    .map(|column| self.column(column, Need::Always))
                    .collect(),
                fallback: falls_back.then_some(identity),
            }),
            _ => Err(self
                .refuse("records.default.operation_id names no columns")
                .why("it is a list of columns, or \"synthetic\" where a format has no ids")
                .remedy("write operation_id = [\"column\"]")),
        }
    }

    /// The columns of which a synthetic id is made; none = every column that the profile names. A column that an export adds
    /// later never changes it.
    fn identity(
        &mut self,
        wire: Option<&[ColumnWire]>,
        is_needed: bool,
    ) -> Result<Vec<ColumnId>, Failure> {
        match (wire.unwrap_or_default(), is_needed) {
            ([_, ..], false) => Err(self
                .refuse("records.default.identity is there and no id is synthetic")
                .remedy("leave it out, or write operation_id_fallback = \"synthetic\"")),
            (columns, _) => Ok(columns
                .iter()
                .map(|column| self.column(column, Need::AsDeclared))
                .collect()),
        }
    }

    /// A regular expression.
    pub(super) fn pattern(&self, key: &str, text: &str) -> Result<Regex, Failure> {
        Regex::new(text).map_err(|error| {
            let message = error.to_string();
            let last = message.lines().last().unwrap_or_default();
            self.refuse(&format!("{key} = \"{text}\" is no regular expression"))
                .why(last.trim_start_matches("error: ").to_owned())
                .remedy("correct it; the first group is what counts")
        })
    }

    pub(super) fn text(
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
                    column: Some(ColumnWire::Name(column)),
                    columns: None,
                    not_in: None,
                    json_pointer: None,
                    when_kind: None,
                    regex: None,
                },
                TextOr::Other(candidate) => candidate,
            };
            let key = format!("records.default.{key}");
            let from = self.text_from(&key, &candidate, need)?;
            if let TextFrom::Column(column) = from {
                group.push(column);
            }
            rule.push(Candidate {
                from,
                not_in: candidate.not_in.unwrap_or_default(),
                json_pointer: candidate.json_pointer,
                regex: match &candidate.regex {
                    Some(text) => Some(self.pattern(&format!("{key}.regex"), text)?),
                    None => None,
                },
                when_kind: self
                    .kinds(&format!("{key}.when_kind"), candidate.when_kind.as_deref())?,
            });
        }
        if is_choice && self.required.is_none() && group.len() == rule.len() {
            self.any_of.push(group);
        }
        Ok(rule)
    }

    fn text_from(
        &mut self,
        key: &str,
        candidate: &CandidateWire,
        need: Need,
    ) -> Result<TextFrom, Failure> {
        match (&candidate.column, &candidate.columns) {
            (Some(ColumnWire::Name(name)), None) if name.starts_with("const:") => {
                Ok(TextFrom::Const(name["const:".len()..].to_owned()))
            }
            (Some(ColumnWire::Name(name)), None) if name.starts_with("context:") => {
                let wanted = &name["context:".len()..];
                match self.context.iter().position(|known| known == wanted) {
                    Some(index) => Ok(TextFrom::Context(index)),
                    None => Err(self
                        .refuse(&format!("{key} = \"{name}\": no section has a cell of this name"))
                        .remedy("name it under [sections]: SH = { role = \"context\", cells = { account = 4 } }")),
                }
            }
            (Some(column), None) => Ok(TextFrom::Column(self.column(column, need))),
            (None, Some(pattern)) => match pattern.split_once('*') {
                Some((before, behind)) if !behind.contains('*') && pattern.len() > 1 => {
                    self.patterns.push((before.to_owned(), behind.to_owned()));
                    Ok(TextFrom::Columns(self.patterns.len() - 1))
                }
                _ => Err(self
                    .refuse(&format!("{key}.columns = \"{pattern}\" is no pattern"))
                    .why("one * stands for the part of the names that differs")
                    .remedy("write, for example, columns = \"metadata[*]\"")),
            },
            _ => Err(self
                .refuse(&format!("{key} does not say where the text stands"))
                .why("it is one column, or the columns of a pattern")
                .remedy("write { column = \"Order\" }, or { columns = \"metadata[*]\" }")),
        }
    }

    pub(super) fn zone(&self, key: &str, text: &str) -> Result<Zone, Failure> {
        Zone::parse(text).ok_or_else(|| {
            self.refuse(&format!("{key} = \"{text}\" is no time zone"))
                .why("a zone is an IANA name (Europe/Paris), UTC or an offset (+01:00)")
                .remedy(
                    "write it so; an abbreviation stands for different zones in different places",
                )
        })
    }

    /// A zone, or `source:zone`, perhaps with the zone that holds where the source says nothing.
    pub(super) fn zone_rule(&self, key: &str, text: &str) -> Result<ZoneRule, Failure> {
        match (text, text.strip_prefix("source:zone or ")) {
            ("source:zone", _) => Ok(ZoneRule::Source(None)),
            (_, Some(default)) => Ok(ZoneRule::Source(Some(self.zone(key, default)?))),
            _ => Ok(ZoneRule::Fixed(self.zone(key, text)?)),
        }
    }

    pub(super) fn time_format(&self, key: &str, text: &str) -> Result<TimeFormat, Failure> {
        TimeFormat::parse(text).map_err(|finding| {
            self.refuse(&format!("{key}: format \"{text}\" {finding}"))
                .why("times are read by \"rfc3339\" or by strftime words that give a whole date")
                .remedy("correct the format")
        })
    }

    pub(super) fn time(
        &mut self,
        key: &str,
        wire: &TimeWire,
        need: Need,
    ) -> Result<TimeRule, Failure> {
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
            formats.push(self.time_format(&key, text)?);
        }
        let needs_zone = formats.iter().any(|format| !format.has_offset());
        let zone = match (&wire.zone, &wire.zone_column) {
            (Some(_), Some(_)) => {
                return Err(self
                    .refuse(&format!("{key} has both zone and zone_column"))
                    .remedy("leave one of the two out"));
            }
            (Some(text), None) => self.zone_rule(&format!("{key}.zone"), text)?,
            (None, Some(column)) => ZoneRule::Column(self.column(column, need), self.zones.clone()),
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
}
