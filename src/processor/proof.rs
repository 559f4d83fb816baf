//! What a file promises about itself: end marker, totals rows, a last line with counts, expectations of the profile.
//! A promise that is kept proves that nothing is missing; one that is broken rejects the file.

use super::amount::AmountReader;
use super::bound::Bound;
use super::profile::{ColumnId, CurrencyFrom, Layout, Profile};
use super::table::{Place, Records, Row, trim};
use crate::exit::Failure;
use crate::money::Number;

/// A running sum; its scale grows with the numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    mantissa: i128,
    scale: u32,
}

impl Sum {
    pub(super) fn add(&mut self, number: Number) -> Option<()> {
        let scale = self.scale.max(number.scale);
        let scaled =
            |mantissa: i128, from: u32| mantissa.checked_mul(10_i128.checked_pow(scale - from)?);
        self.mantissa = scaled(self.mantissa, self.scale)?
            .checked_add(scaled(number.mantissa, number.scale)?)?;
        self.scale = scale;
        Some(())
    }

    pub(super) fn equals(self, number: Number) -> bool {
        let mut difference = self;
        let negated = Number {
            mantissa: -number.mantissa,
            ..number
        };
        difference.add(negated).is_some() && difference.mantissa == 0
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digits = self.mantissa.unsigned_abs().to_string();
        let scale = self.scale as usize;
        let sign = if self.mantissa < 0 { "-" } else { "" };
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}")?;
        if scale > 0 {
            write!(f, ".{fraction}")?;
        }
        Ok(())
    }
}

/// What has been seen of a file so far, against what it promises.
pub(super) struct Proof<'p> {
    layout: &'p Layout,
    currency: Option<&'p CurrencyFrom>,
    rows: u64,
    /// Per summed column, per currency as it is written.
    sums: Vec<(ColumnId, Vec<(String, Sum)>)>,
    has_control: bool,
    /// Whether no row stands behind the last totals row.
    is_totalled: bool,
    has_trailer: bool,
    has_end: bool,
    /// Whether the last row has a line end: without one nobody can tell whether its last cell is whole.
    is_last_row_ended: bool,
}

impl<'p> Proof<'p> {
    pub(super) fn new(profile: &'p Profile) -> Proof<'p> {
        let layout = &profile.layout;
        let mut sums: Vec<(ColumnId, Vec<(String, Sum)>)> = Vec::new();
        let columns = (layout.controls.iter().map(|rule| rule.sum_of))
            .chain(layout.expect_total.iter().map(|total| total.column))
            .chain(
                layout
                    .trailer
                    .iter()
                    .filter_map(|trailer| trailer.total.map(|(_, column)| column)),
            );
        for column in columns {
            if !sums.iter().any(|(known, _)| *known == column) {
                sums.push((column, Vec::new()));
            }
        }
        Proof {
            layout,
            currency: profile.money.amount.first().map(|rule| &rule.currency),
            rows: 0,
            sums,
            has_control: false,
            is_totalled: false,
            has_trailer: false,
            has_end: false,
            is_last_row_ended: true,
        }
    }

    /// Whether the current record belongs to the proof and holds no operation. Rejects a row behind the end.
    pub(super) fn is_end(
        &mut self,
        records: &Records<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<bool, Failure> {
        let is_marker = self.layout.end_marker.as_deref() == Some(records.raw());
        if self.has_end || (self.has_trailer && !is_marker) {
            return Err(records
                .place()
                .row("stands behind the end of the file")
                .why("the profile declares how the file ends, and that line has already been read")
                .remedy("export the file again: two files may have been joined, or rows were added by hand"));
        }
        if is_marker {
            self.has_end = true;
            return Ok(true);
        }
        let row = records.row();
        match &self.layout.trailer {
            Some(trailer) if trim(row.get(0)) == trailer.first_cell => {
                self.has_trailer = true;
                if let Some(position) = trailer.rows {
                    let written = trim(row.get(position - 1));
                    if written.parse() != Ok(self.rows) {
                        return Err(records
                            .place()
                            .cell(
                                &position.to_string(),
                                written,
                                &format!("is not the number of rows above, {}", self.rows),
                            )
                            .why("the last line proves that nothing is missing (trailer)")
                            .remedy("export the file again"));
                    }
                }
                if let Some((position, column)) = trailer.total {
                    let written = trim(row.get(position - 1));
                    self.compare(
                        records.place(),
                        &position.to_string(),
                        column,
                        written,
                        "",
                        amounts,
                    )?;
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Whether the row is a totals row; its figure has to agree with the rows above.
    pub(super) fn is_control(
        &mut self,
        place: Place<'_>,
        row: Row<'_>,
        bound: &Bound,
        amounts: &mut AmountReader<'_>,
    ) -> Result<bool, Failure> {
        let layout = self.layout;
        for rule in &layout.controls {
            let word = bound.cell(row, rule.column);
            if rule.words.iter().any(|known| known == word) {
                self.has_control = true;
                self.is_totalled = true;
                let currency = self.currency_of(row, bound);
                let written = bound.cell(row, rule.sum_of);
                self.compare(
                    place,
                    &bound.name(rule.sum_of),
                    rule.sum_of,
                    written,
                    &currency,
                    amounts,
                )?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Counts the current record as a row of the feed.
    pub(super) fn count(&mut self, records: &Records<'_>) {
        self.rows += 1;
        self.is_totalled = false;
        self.is_last_row_ended = records.has_line_end();
    }

    /// Adds the amounts of a row to the sums that are promised.
    pub(super) fn add(
        &mut self,
        place: Place<'_>,
        row: Row<'_>,
        bound: &Bound,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        if self.sums.is_empty() {
            return Ok(());
        }
        let currency = self.currency_of(row, bound);
        for (column, sums) in &mut self.sums {
            let cell = bound.cell(row, *column);
            if cell.is_empty() {
                continue;
            }
            let number = amounts.number(cell, place.line).map_err(|error| {
                let (finding, why, remedy) = error.explain(amounts.format);
                place
                    .cell(&bound.name(*column), cell, &finding)
                    .why(why)
                    .remedy(remedy)
            })?;
            let known = sums.iter().position(|(known, _)| *known == currency);
            let at = known.unwrap_or(sums.len());
            if known.is_none() {
                sums.push((currency.clone(), Sum::default()));
            }
            if sums[at].1.add(number).is_none() {
                return Err(place.row("makes the control total too large"));
            }
        }
        Ok(())
    }

    /// Rejects a file that did not keep its promises; whether those that it kept prove that nothing is missing. A count or
    /// a total from outside proves it only where the last row has its line end, a totals row only the rows above it.
    pub(super) fn finish(
        mut self,
        file: &str,
        amounts: &mut AmountReader<'_>,
    ) -> Result<bool, Failure> {
        let layout = self.layout;
        if let (Some(marker), false) = (&layout.end_marker, self.has_end) {
            return Err(cut_off(
                file,
                &format!("the end marker \"{marker}\" is missing"),
            ));
        }
        if let (Some(trailer), false) = (&layout.trailer, self.has_trailer) {
            return Err(cut_off(
                file,
                &format!(
                    "the last line, which begins with \"{}\", is missing",
                    trailer.first_cell
                ),
            ));
        }
        if !layout.controls.is_empty() && !self.has_control {
            return Err(cut_off(file, "there is no totals row (control_rows)"));
        }
        if let Some(expected) = layout.expect_rows
            && expected != self.rows
        {
            return Err(Failure::rejected(format!(
                "{file}: there are {} rows where {expected} are expected (expect_rows)",
                self.rows
            ))
            .why("the profile declares how many rows the file has")
            .remedy("export the file again, or correct expect_rows"));
        }
        if let Some(total) = &layout.expect_total {
            let place = Place { file, line: 1 };
            self.compare(
                place,
                "expect_total",
                total.column,
                &total.value,
                "",
                amounts,
            )?;
        }
        let is_expected = layout.expect_rows.is_some() || layout.expect_total.is_some();
        Ok(layout.end_marker.is_some()
            || layout.trailer.is_some()
            || self.is_totalled
            || (is_expected && self.is_last_row_ended))
    }

    fn currency_of(&self, row: Row<'_>, bound: &Bound) -> String {
        match self.currency {
            Some(CurrencyFrom::Column(column)) => bound.cell(row, *column).to_owned(),
            Some(CurrencyFrom::Const(_) | CurrencyFrom::Source) | None => String::new(),
        }
    }

    /// Rejects a written total that is not the sum of a column. Without a currency the file may hold only one.
    fn compare(
        &mut self,
        place: Place<'_>,
        name: &str,
        column: ColumnId,
        written: &str,
        currency: &str,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        let total = amounts.number(written, place.line).map_err(|error| {
            let (finding, why, remedy) = error.explain(amounts.format);
            place.cell(name, written, &finding).why(why).remedy(remedy)
        })?;
        let sums = self
            .sums
            .iter()
            .find(|(known, _)| *known == column)
            .map_or(&[][..], |(_, sums)| &sums[..]);
        let sum = match sums {
            [] => Sum::default(),
            [(_, only)] if currency.is_empty() => *only,
            _ if currency.is_empty() => {
                return Err(place
                    .cell(name, written, "totals rows of several currencies")
                    .why("amounts of different currencies have no sum")
                    .remedy("name a currency in the totals row, or leave the check out"));
            }
            _ => sums
                .iter()
                .find(|(known, _)| known == currency)
                .map_or(Sum::default(), |(_, sum)| *sum),
        };
        if sum.equals(total) {
            return Ok(());
        }
        Err(place
            .cell(
                name,
                written,
                &format!("is not the sum of the rows above, {sum}"),
            )
            .why("a total that does not add up says that rows are missing, doubled or changed")
            .remedy("export the file again"))
    }
}

pub(super) fn cut_off(file: &str, finding: &str) -> Failure {
    Failure::rejected(format!("{file}: {finding}"))
        .why("the profile promises it, so the file was cut off or has another format")
        .remedy("export the file again and check that it was copied whole")
}
