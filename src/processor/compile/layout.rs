//! The outer form of a file, as a profile declares it.

use std::collections::BTreeMap;

use super::{Compiler, Need};
use crate::exit::Failure;
use crate::processor::encoding::{self, Encoding};
use crate::processor::header::RowWidth;
use crate::processor::profile::{
    ControlRule, Delimiter, ExpectTotal, HeaderForm, Layout, SkipRule, Trailer,
};
use crate::processor::table::{shown, trim};
use crate::processor::wire::{CsvWire, SectionWire};

impl Compiler<'_> {
    pub(super) fn layout(
        &mut self,
        csv: &CsvWire,
        sections: Option<&BTreeMap<String, SectionWire>>,
    ) -> Result<Layout, Failure> {
        let form = csv.header.as_deref().unwrap_or("named");
        if sections.is_some() != (form == "by_record_type") {
            return Err(self
                .refuse("[sections] and csv.header = \"by_record_type\" belong together")
                .why("one says that the first cell of a line tells what it is, the other what its words mean")
                .remedy("write both, or leave both out"));
        }
        let header = match (form, &csv.header_match) {
            ("by_record_type", Some(_)) => {
                return Err(self
                    .refuse("csv.header_match stands beside header = \"by_record_type\"")
                    .why("the line of the header is told by its first cell")
                    .remedy("leave it out"));
            }
            ("by_record_type", None) => match sections {
                Some(sections) => HeaderForm::ByRecordType(self.sections(sections)?),
                None => HeaderForm::Named,
            },
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
        if csv.preamble_total.is_some() && !matches!(header, HeaderForm::NamedAfterPreamble { .. })
        {
            return Err(self
                .refuse("csv.preamble_total stands without csv.header_match")
                .why("it names a total above the header, and nothing stands there")
                .remedy("say how the header is found: header_match = { first_cell = \"Date\", within_lines = 10 }"));
        }
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
            refuse: csv.refuse.clone().unwrap_or_default(),
            sets: Vec::new(),
            series: match &csv.series {
                Some(pattern) => Some(self.pattern("csv.series", pattern)?),
                None => None,
            },
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
            preamble_total: csv.preamble_total.clone(),
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
}
