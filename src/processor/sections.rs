//! Files whose lines say in their first cell what they are: headers, rows, and lines that prove the rows above.
//!
//! Decisions: a line of a kind that the profile does not list rejects the file, and so does a count or a total that does
//! not agree with the rows. Totals are compared as they are written, per currency and per section. A report may be several
//! files: its own totals are held against a file that holds the line with which the report begins as well, and no other.

use std::collections::{BTreeMap, BTreeSet};

use super::amount::AmountReader;
use super::bound::Bound;
use super::profile::ColumnId;
use super::proof::{Sum, cut_off};
use super::table::{Place, Records, Row, trim};
use crate::exit::Failure;

/// Every kind of line that a format has.
#[derive(Debug)]
pub(super) struct Sections {
    /// By the text of the first cell.
    pub rules: BTreeMap<String, SectionRule>,
    /// Names of the cells that rows may take over from the line of their section.
    pub context: Vec<String>,
}

#[derive(Debug)]
pub(super) struct SectionRule {
    pub role: Role,
    /// A file without such a line was cut off.
    pub is_required: bool,
}

/// What a line is. Positions are counted from 1; the first cell is the kind of line.
#[derive(Debug)]
pub(super) enum Role {
    /// Names the columns, and begins a section.
    Header,
    /// A row.
    Body,
    /// Says something about the rows below: index into `Sections::context`, and position.
    Context(Vec<(usize, usize)>),
    /// Totals in one currency, of the section or of the report.
    Footer {
        currency: usize,
        totals: Vec<SectionTotal>,
        of: Extent,
    },
    /// Begins the report.
    Begin,
    /// The number of rows.
    Count { cell: usize, of: Extent },
    /// Says nothing that is read.
    Ignore,
}

/// What a count counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    Section,
    File,
    /// All files of a report.
    Report,
}

/// A written total, and which rows make it.
#[derive(Debug)]
pub(super) struct SectionTotal {
    pub cell: usize,
    pub sum_of: ColumnId,
    pub currency: ColumnId,
    /// Only rows that hold one of these words in this column.
    pub only: Option<(ColumnId, Vec<String>)>,
}

impl Sections {
    pub(super) fn rule(&self, row: Row<'_>) -> Option<(&str, &SectionRule)> {
        let (word, rule) = self.rules.get_key_value(trim(row.get(0)))?;
        Some((word, rule))
    }

    pub(super) fn is_body(&self, row: Row<'_>) -> bool {
        matches!(self.rule(row), Some((_, rule)) if matches!(rule.role, Role::Body))
    }

    pub(super) fn is_header(&self, row: Row<'_>) -> bool {
        matches!(self.rule(row), Some((_, rule)) if matches!(rule.role, Role::Header))
    }

    /// Every total, with what it is a total of.
    fn totals(&self) -> impl Iterator<Item = (&SectionTotal, Extent)> {
        self.rules.values().flat_map(|rule| match &rule.role {
            Role::Footer { totals, of, .. } => totals.iter().map(|total| (total, *of)).collect(),
            _ => Vec::new(),
        })
    }
}

/// What the lines of a file have said so far.
pub(super) struct SectionProof<'p> {
    sections: &'p Sections,
    /// The cells of the last context line, in the order of `Sections::context`.
    pub context: Vec<String>,
    section_rows: u64,
    file_rows: u64,
    /// Per total in the order of the rules, per currency as it is written.
    sums: Vec<BTreeMap<String, Sum>>,
    seen: BTreeSet<&'p str>,
    is_over: bool,
    /// The report begins in this file: what is the report's, is the file's.
    has_report: bool,
}

impl<'p> SectionProof<'p> {
    pub(super) fn new(sections: &'p Sections) -> SectionProof<'p> {
        SectionProof {
            sections,
            context: vec![String::new(); sections.context.len()],
            section_rows: 0,
            file_rows: 0,
            sums: sections.totals().map(|_| BTreeMap::new()).collect(),
            seen: BTreeSet::new(),
            is_over: false,
            has_report: false,
        }
    }

    /// Whether the current record is no row. Rejects one that contradicts the rows above, and a row behind the end.
    pub(super) fn is_other(
        &mut self,
        records: &Records<'_>,
        bound: &Bound,
        amounts: &mut AmountReader<'_>,
    ) -> Result<bool, Failure> {
        let (row, place) = (records.row(), records.place());
        let Some((word, rule)) = self.sections.rule(row) else {
            let known: Vec<&str> = self.sections.rules.keys().map(String::as_str).collect();
            return Err(place
                .cell(
                    "1",
                    trim(row.get(0)),
                    "is no kind of line that the profile knows",
                )
                .why(format!(
                    "the first cell says what a line is: {}",
                    known.join(", ")
                ))
                .remedy("choose the profile of this report, or export it again"));
        };
        self.seen.insert(word);
        let is_of_report = matches!(
            rule.role,
            Role::Footer {
                of: Extent::Report,
                ..
            } | Role::Count {
                of: Extent::Report,
                ..
            }
        );
        if self.is_over && !is_of_report && !matches!(rule.role, Role::Ignore) {
            return Err(place
                .row("stands behind the end of the file")
                .why("the line that counts the rows of the whole file has already been read")
                .remedy("two files may have been joined: name them separately"));
        }
        match &rule.role {
            Role::Body => return Ok(false),
            Role::Header => {
                if !bound.header.is_written_as(row) {
                    return Err(place
                        .row("names other columns than the first header of the file")
                        .why("rows of two shapes cannot be read by one header")
                        .remedy("split the file, or export it again"));
                }
                self.section_rows = 0;
                for ((_, of), sums) in self.sections.totals().zip(&mut self.sums) {
                    if of == Extent::Section {
                        sums.clear();
                    }
                }
            }
            Role::Context(cells) => {
                for (index, position) in cells {
                    self.context[*index] = trim(row.get(position - 1)).to_owned();
                }
            }
            Role::Begin => self.has_report = true,
            // The other files of the report are not known here.
            _ if is_of_report && !self.has_report => {}
            Role::Footer {
                currency, totals, ..
            } => {
                self.compare(place, row, trim(row.get(currency - 1)), totals, amounts)?;
            }
            Role::Count { cell, of } => {
                let written = trim(row.get(cell - 1));
                let (rows, whole) = match of {
                    Extent::Section => (self.section_rows, "section"),
                    Extent::File => (self.file_rows, "file"),
                    Extent::Report => (self.file_rows, "report"),
                };
                if written.parse() != Ok(rows) {
                    return Err(place
                        .cell(
                            &cell.to_string(),
                            written,
                            &format!("is not the number of rows in the {whole}, {rows}"),
                        )
                        .why(format!(
                            "line {word} counts the rows, so some are missing or doubled"
                        ))
                        .remedy("export the file again and check that it was copied whole"));
                }
                self.is_over |= *of == Extent::File;
            }
            Role::Ignore => {}
        }
        Ok(true)
    }

    /// Adds a row to its section.
    pub(super) fn add(
        &mut self,
        place: Place<'_>,
        row: Row<'_>,
        bound: &Bound,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        self.section_rows += 1;
        self.file_rows += 1;
        for ((total, _), sums) in self.sections.totals().zip(&mut self.sums) {
            let cell = bound.cell(row, total.sum_of);
            let counts = match &total.only {
                Some((column, words)) => {
                    let word = bound.cell(row, *column);
                    words.iter().any(|known| known == word)
                }
                None => true,
            };
            if cell.is_empty() || !counts {
                continue;
            }
            let number = amounts.number(cell, place.line).map_err(|error| {
                let (finding, why, remedy) = error.explain(amounts.format);
                place
                    .cell(&bound.name(total.sum_of), cell, &finding)
                    .why(why)
                    .remedy(remedy)
            })?;
            let currency = bound.cell(row, total.currency).to_owned();
            if sums.entry(currency).or_default().add(number).is_none() {
                return Err(place.row("makes the total of its section too large"));
            }
        }
        Ok(())
    }

    fn compare(
        &self,
        place: Place<'_>,
        row: Row<'_>,
        currency: &str,
        totals: &[SectionTotal],
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        for total in totals {
            let known = self
                .sections
                .totals()
                .position(|(one, _)| std::ptr::eq(one, total));
            let sum = known
                .and_then(|at| self.sums[at].get(currency).copied())
                .unwrap_or_default();
            let written = trim(row.get(total.cell - 1));
            let number = amounts.number(written, place.line).map_err(|error| {
                let (finding, why, remedy) = error.explain(amounts.format);
                place
                    .cell(&total.cell.to_string(), written, &finding)
                    .why(why)
                    .remedy(remedy)
            })?;
            if !sum.equals(number) {
                return Err(place
                    .cell(
                        &total.cell.to_string(),
                        written,
                        &format!("is not the sum of the {currency} rows above, {sum}"),
                    )
                    .why("a total that does not add up says that rows are missing, doubled or changed")
                    .remedy("export the file again"));
            }
        }
        Ok(())
    }

    /// Rejects a file that lacks a line it has to have; whether a line proves that no row is missing.
    pub(super) fn finish(&self, file: &str) -> Result<bool, Failure> {
        for (word, rule) in &self.sections.rules {
            if rule.is_required && !self.seen.contains(word.as_str()) {
                return Err(cut_off(file, &format!("there is no line {word}")));
            }
        }
        Ok(self.is_over)
    }
}
