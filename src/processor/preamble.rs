//! A total that stands above the header of a file: the rows have to add up to it.
//!
//! Decisions: the total is what the rows do to our balance (their nets, else their amounts), in one currency. A file whose
//! rows do not give it was cut off or changed.

use super::amount::{AmountReader, Minor};
use super::profile::{HeaderForm, Profile};
use super::table::{Place, Records, shown, trim};
use crate::exit::Failure;
use crate::model::operation::Operation;
use crate::money::{Currency, format_minor};

/// The total of one file, and what its rows have given so far.
#[derive(Debug)]
pub(super) struct PreambleTotal<'t> {
    name: &'t str,
    place: Place<'t>,
    written: String,
    sum: i128,
    currency: Option<Currency>,
    is_mixed: bool,
}

impl<'t> PreambleTotal<'t> {
    /// Looks the total up above the header. `None` where the profile names none. `records` is a walker over the text, and
    /// is left where it stands.
    pub(super) fn find(
        profile: &'t Profile,
        file: &'t str,
        text: &'t str,
        records: &Records<'t>,
    ) -> Result<Option<PreambleTotal<'t>>, Failure> {
        let (
            Some(name),
            HeaderForm::NamedAfterPreamble {
                first_cell,
                within_lines,
            },
        ) = (&profile.layout.preamble_total, &profile.layout.header)
        else {
            return Ok(None);
        };
        let mut records = records.again(file, text);
        let mut position = None;
        let mut found = None;
        for _ in 0..*within_lines {
            let line = records.mark();
            if matches!(records.advance(), Ok(true)) {
                let row = records.row();
                if trim(row.get(0)) == first_cell {
                    break;
                }
                match position {
                    Some(position) if found.is_none() && !row.is_blank() => {
                        found = Some((records.place(), trim(row.get(position)).to_owned()));
                    }
                    Some(_) => {}
                    None => position = (0..row.len()).find(|at| trim(row.get(*at)) == name),
                }
            }
            records.go_to(line);
            if !records.skip_line() {
                break;
            }
        }
        let Some((place, written)) = found else {
            return Err(Failure::rejected(format!(
                "{file}: the total \"{name}\" does not stand above the header"
            ))
            .why("the profile promises it (preamble_total), and without it nobody can tell whether rows are missing")
            .remedy("export the report with its summary, or choose the profile that belongs to this file"));
        };
        Ok(Some(PreambleTotal {
            name,
            place,
            written,
            sum: 0,
            currency: None,
            is_mixed: false,
        }))
    }

    /// Adds a row.
    pub(super) fn add(&mut self, row: &Operation<'_>) {
        let minor = row.net_minor.unwrap_or(row.amount_minor);
        self.sum += i128::from(minor);
        self.is_mixed |= self
            .currency
            .is_some_and(|currency| currency != row.settle_currency);
        self.currency = Some(row.settle_currency);
    }

    /// Rejects a file whose rows do not add up.
    pub(super) fn finish(self, amounts: &mut AmountReader<'_>) -> Result<(), Failure> {
        let cell = |finding: &str| self.place.cell(self.name, &self.written, finding);
        let number = amounts
            .number(&self.written, self.place.line)
            .map_err(|error| {
                let (finding, why, remedy) = error.explain(amounts.format);
                cell(&finding).why(why).remedy(remedy)
            })?;
        let Some(currency) = self.currency.filter(|_| !self.is_mixed) else {
            return if number.mantissa == 0 && !self.is_mixed {
                Ok(())
            } else {
                Err(
                    cell("is a total, and the rows are of no or of several currencies")
                        .why("the rows have to add up to it in one currency")
                        .remedy("export the file again"),
                )
            };
        };
        match amounts.minor(number, currency) {
            Ok(Minor::Exact(total)) if i128::from(total) == self.sum => Ok(()),
            _ => Err(cell(&format!(
                "is not the sum of the rows, {}",
                shown(&format_minor(self.sum, currency)).trim_matches('"')
            ))
            .why("a total that does not add up says that rows are missing, doubled or changed")
            .remedy("export the file again")),
        }
    }
}
