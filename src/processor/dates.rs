//! Which order of day and month a file writes, where its profile allows both.
//!
//! Decisions: the source says it, or a day above 12 in the file proves it. A file that proves nothing, or both, is
//! rejected; where every date reads the same either way there is nothing to decide.

use super::bound::Bound;
use super::moment::TimeFormat;
use super::profile::{HeaderForm, Profile};
use super::table::{Place, Records};
use super::{DateOrder, ReadRules};
use crate::exit::Failure;

/// The formats of `occurred_at` that the file is read by; leaves the walker where it was.
pub(super) fn decide(
    profile: &Profile,
    rules: &ReadRules,
    bound: &Bound,
    records: &mut Records<'_>,
) -> Result<Vec<TimeFormat>, Failure> {
    let mut formats = bound.formats.clone();
    if let Some(order) = rules.date_order {
        let is_day_first = order == DateOrder::DayFirst;
        formats.retain(|format| {
            format
                .is_day_first()
                .is_none_or(|first| first == is_day_first)
        });
        if formats.is_empty() {
            formats.clone_from(&bound.formats);
        }
    }
    'again: loop {
        for first in 0..formats.len() {
            for second in first + 1..formats.len() {
                let (left, right) = (&formats[first], &formats[second]);
                if !left.is_rival(right) && !right.is_rival(left) {
                    continue;
                }
                if let Some(is_right) = is_right(profile, bound, records, left, right)? {
                    formats.remove(if is_right { first } else { second });
                    continue 'again;
                }
            }
        }
        return Ok(formats);
    }
}

/// Whether the file is written in the right one of two formats; `None` where it makes no difference.
fn is_right(
    profile: &Profile,
    bound: &Bound,
    records: &mut Records<'_>,
    left: &TimeFormat,
    right: &TimeFormat,
) -> Result<Option<bool>, Failure> {
    let start = records.mark();
    let (mut only_left, mut only_right) = (None, None);
    let mut unclear: Option<(u32, String)> = None;
    let file = records.place().file;
    while records.advance()? {
        let row = records.row();
        let is_body = match &profile.layout.header {
            HeaderForm::ByRecordType(sections) => sections.is_body(row),
            _ => true,
        };
        let columns = profile.occurred_at.columns.iter();
        let cells: Vec<&str> = columns.map(|column| bound.cell(row, *column)).collect();
        let text = cells.join(" ");
        if !is_body || text.trim().is_empty() {
            continue;
        }
        let line = records.place().line;
        match (
            left.read_in_utc(text.trim()),
            right.read_in_utc(text.trim()),
        ) {
            (Some(_), None) => only_left = only_left.or(Some((line, text))),
            (None, Some(_)) => only_right = only_right.or(Some((line, text))),
            (Some(own), Some(other)) if own != other => {
                unclear = unclear.or(Some((line, text)));
            }
            _ => {}
        }
    }
    records.go_to(start);
    let cell = |(line, text): &(u32, String), finding: &str| {
        let place = Place { file, line: *line };
        place.cell(&bound.name(profile.occurred_at.columns[0]), text, finding)
    };
    match (only_left, only_right, unclear) {
        (Some(first), Some(second), Some(_)) => Err(cell(
            &second,
            &format!("writes day and month in another order than line {}", first.0),
        )
        .why("one export has one order of day and month")
        .remedy("export the file again and do not open it in a spreadsheet before")),
        (Some(_), None, Some(_)) => Ok(Some(false)),
        (None, Some(_), Some(_)) => Ok(Some(true)),
        (None, None, Some(unclear)) => Err(cell(&unclear, "can be read as two days")
            .why("day and month may stand in either order, and no date in the file proves one: none has a day above 12")
            .remedy("write date_order = \"day-first\" or \"month-first\" under [source.NAME], or --date-order day-first behind `paysweep diff`")),
        (_, _, None) => Ok(None),
    }
}
