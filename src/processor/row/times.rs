//! The times of a row.

use std::borrow::Cow;

use super::{Draft, RowReader};
use crate::exit::Failure;
use crate::processor::moment::{Read, TimeError, TimeRule, ZoneRule, is_plausible};
use crate::processor::table::{Place, Row, shown};
use crate::time::WallTimeError;

impl RowReader<'_> {
    pub(super) fn times(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        let rule = &self.profile.occurred_at;
        match self.time(rule, row, place)? {
            None => draft.object(&format!(
                "column \"{}\" is empty, so nobody can tell when it happened",
                self.bound.name(rule.columns[0])
            )),
            Some(read) => {
                let (Read::At(at) | Read::Unclear(at, _)) = read;
                draft.facts.occurred_at = at;
                if let Read::Unclear(_, error) = read {
                    draft.object(&format!(
                        "{} in column \"{}\" {}",
                        shown(&self.time_text(rule, row)),
                        self.bound.name(rule.columns[0]),
                        match error {
                            WallTimeError::Skipped =>
                                "is a time that the clocks of its zone skipped",
                            WallTimeError::Twice =>
                                "is a time that the clocks of its zone showed twice",
                            WallTimeError::OutOfRange => "is no time of the calendar",
                        }
                    ));
                } else if !is_plausible(at) {
                    draft.object(&format!(
                        "{} in column \"{}\" lies outside the years 2000 to 2099",
                        shown(&self.time_text(rule, row)),
                        self.bound.name(rule.columns[0])
                    ));
                }
            }
        }
        for rule in &self.profile.other_times {
            self.time(rule, row, place)?;
        }
        Ok(())
    }

    /// The time of a rule; `None` when its cells are empty.
    pub(super) fn time(
        &self,
        rule: &TimeRule,
        row: Row<'_>,
        place: Place<'_>,
    ) -> Result<Option<Read>, Failure> {
        let text = self.time_text(rule, row);
        if text.is_empty() {
            return Ok(None);
        }
        let zone = self.zone_word(rule, row);
        let is_row_time = std::ptr::eq(rule, &raw const self.profile.occurred_at);
        let (zone_rule, formats) = if is_row_time {
            (&self.bound.zone, &self.bound.formats)
        } else {
            (&rule.zone, &rule.formats)
        };
        TimeRule::read(zone_rule, formats, &text, zone, self.rules.zone.as_ref())
            .map(Some)
            .map_err(|error| match (error, &rule.zone) {
                (TimeError::UnknownZone, ZoneRule::Column(column, _)) => place
                    .cell(
                        &self.bound.name(*column),
                        zone,
                        "is no zone that the profile knows",
                    )
                    .why("an abbreviation stands for different zones in different places")
                    .remedy("declare it under [zones] in the profile"),
                _ => place
                    .cell(
                        &self.bound.name(rule.columns[0]),
                        &text,
                        "cannot be read as a time",
                    )
                    .why(format!(
                        "profile {} reads it as {}",
                        self.known_name(),
                        rule.declared()
                    ))
                    .remedy("correct the format in the profile, or export the file again"),
            })
    }

    pub(super) fn time_text<'r>(&self, rule: &TimeRule, row: Row<'r>) -> Cow<'r, str> {
        self.joined(&rule.columns, row)
    }

    pub(super) fn zone_word<'r>(&self, rule: &TimeRule, row: Row<'r>) -> &'r str {
        match &rule.zone {
            ZoneRule::Column(column, _) => self.cell(row, *column),
            ZoneRule::InText | ZoneRule::Fixed(_) | ZoneRule::Source(_) => "",
        }
    }
}
