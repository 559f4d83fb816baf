//! From the text of a cell to an instant, by the format and the zone that a profile declares.
//!
//! Decisions: the order of day and month is never guessed, the host's zone is never asked. A wall-clock time that the
//! clocks skipped or showed twice is a finding about the row, which keeps an instant near it. A date without a time of day is the first instant of that day in its zone.

use std::collections::BTreeMap;

use chrono::format::{Fixed, Item, Numeric, StrftimeItems};
use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, TimeDelta};

use super::profile::ColumnId;
use crate::time::{Instant, Span, WallTimeError, Zone};

/// How a time is read.
#[derive(Debug)]
pub(super) struct TimeRule {
    /// Joined by one space.
    pub columns: Vec<ColumnId>,
    /// The first that fits.
    pub formats: Vec<TimeFormat>,
    pub zone: ZoneRule,
}

/// Where the zone of a wall-clock time comes from.
#[derive(Clone, Debug)]
pub(super) enum ZoneRule {
    /// Every format reads an offset.
    InText,
    Fixed(Zone),
    /// The source's own setting, and what holds where it says nothing.
    Source(Option<Zone>),
    /// By the word in a column: an abbreviation that the profile declares, or an IANA name.
    Column(ColumnId, BTreeMap<String, Zone>),
}

/// How a text gives a date, a time and perhaps an offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeFormat {
    Rfc3339,
    Pattern { text: String, gives: Gives },
}

/// What a pattern gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gives {
    Instant,
    SecondsUtc,
    WallTime,
    Day,
}

/// A time as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    At(Instant),
    /// The clocks of the zone skipped the time or showed it twice; an instant near it.
    Unclear(Instant, WallTimeError),
}

/// Why a text is no time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TimeError {
    Format,
    UnknownZone,
}

/// Times before and after which a row's own time is not believed.
const PLAUSIBLE: std::ops::Range<i64> = 946_684_800_000_000..4_102_444_800_000_000;

/// Whether an instant lies in the years 2000 to 2099.
pub(crate) fn is_plausible(at: Instant) -> bool {
    PLAUSIBLE.contains(&at.0)
}

impl TimeFormat {
    /// Whether a text that one format reads may be read by another one as another day: 05/06 is in May or in June.
    pub(super) fn is_rival(&self, other: &TimeFormat) -> bool {
        let (TimeFormat::Pattern { text, .. }, utc) = (self, Zone::utc()) else {
            return false;
        };
        let Ok(sample) = DateTime::parse_from_rfc3339("2026-03-04T05:06:07+00:00") else {
            return false;
        };
        let written = sample.format(text).to_string();
        let read = |format: &TimeFormat| format.read(&written, Some(&utc));
        matches!((read(self), read(other)), (Some(own), Some(others)) if own != others)
    }

    /// What a text is in UTC, where that lies in the years that are believed; only to compare formats with each other.
    pub(super) fn read_in_utc(&self, written: &str) -> Option<Read> {
        let read = self.read(written, Some(&Zone::utc()))?;
        let (Read::At(at) | Read::Unclear(at, _)) = read;
        is_plausible(at).then_some(read)
    }

    /// Whether the day stands before the month; `None` where the month is a word or the year comes first.
    pub(super) fn is_day_first(&self) -> Option<bool> {
        let TimeFormat::Pattern { text, .. } = self else {
            return None;
        };
        let (day, month) = (text.find("%d").or(text.find("%e"))?, text.find("%m")?);
        let year = text.find("%Y").or(text.find("%y"))?;
        (year > day.min(month)).then_some(day < month)
    }

    /// Reads a declared format; `Err` = what is wrong with it, as a continuation of "format … ".
    pub(super) fn parse(text: &str) -> Result<TimeFormat, String> {
        if text == "rfc3339" {
            return Ok(TimeFormat::Rfc3339);
        }
        let items: Vec<Item<'_>> = StrftimeItems::new(text).collect();
        if items.contains(&Item::Error) {
            return Err("has a word that is not known".to_owned());
        }
        if items.contains(&Item::Fixed(Fixed::TimezoneName)) {
            return Err(
                "reads a zone's name with %Z, which stands for different zones in different places; use zone_column with [zones]"
                    .to_owned(),
            );
        }
        let is_seconds = items.contains(&Item::Numeric(
            Numeric::Timestamp,
            chrono::format::Pad::None,
        )) || text.contains("%s");
        let has_offset = text.contains("%z")
            || text.contains("%:z")
            || text.contains("%::z")
            || text.contains("%#z")
            || text.contains("%+");
        let has_clock = [
            "%H", "%k", "%I", "%l", "%M", "%S", "%T", "%R", "%X", "%r", "%c", "%p", "%P",
        ]
        .iter()
        .any(|word| text.contains(word));
        let gives = match (is_seconds, has_offset, has_clock) {
            (true, _, _) => Gives::SecondsUtc,
            (false, true, _) => Gives::Instant,
            (false, false, true) => Gives::WallTime,
            (false, false, false) => Gives::Day,
        };
        let format = TimeFormat::Pattern {
            text: text.to_owned(),
            gives,
        };
        // A format that cannot read back what it writes leaves something open.
        let sample = DateTime::parse_from_rfc3339("2026-03-04T17:06:07+00:00")
            .map_err(|error| error.to_string())?;
        let Some(read) = format.read(&sample.format(text).to_string(), Some(&Zone::utc())) else {
            return Err("gives no whole date and time of day".to_owned());
        };
        let Read::At(at) = read else {
            return Err("gives no whole date and time of day".to_owned());
        };
        let day_start = Instant(sample.timestamp_micros()).minus(Span::hours(18));
        if at < day_start || at.0 > sample.timestamp_micros() {
            return Err("gives no whole date and time of day".to_owned());
        }
        Ok(format)
    }

    /// Whether the text itself gives an instant.
    pub(super) fn has_offset(&self) -> bool {
        match self {
            TimeFormat::Rfc3339 => true,
            TimeFormat::Pattern { gives, .. } => {
                matches!(gives, Gives::Instant | Gives::SecondsUtc)
            }
        }
    }

    fn read(&self, written: &str, zone: Option<&Zone>) -> Option<Read> {
        let TimeFormat::Pattern { text, gives } = self else {
            return rfc3339(written).map(Read::At);
        };
        match gives {
            Gives::Instant => DateTime::parse_from_str(written, text)
                .ok()
                .map(|at| Read::At(Instant(at.timestamp_micros()))),
            Gives::SecondsUtc => NaiveDateTime::parse_from_str(written, text)
                .ok()
                .map(|at| Read::At(Instant(at.and_utc().timestamp_micros()))),
            Gives::WallTime => {
                let wall = NaiveDateTime::parse_from_str(written, text).ok()?;
                Some(at_wall(wall, zone?))
            }
            Gives::Day => {
                let day = NaiveDate::parse_from_str(written, text).ok()?;
                let civil = day.format("%Y-%m-%d").to_string().parse().ok()?;
                match zone?.start_of_day(civil) {
                    Some(at) => Some(Read::At(at)),
                    None => Some(at_wall(day.and_time(NaiveTime::MIN), zone?)),
                }
            }
        }
    }
}

impl TimeRule {
    /// The instant of a text that is not empty, by the first of the formats that fits, and gives a year that is believed
    /// where one does: `13/03/26` is not in the year 26. `zone_word` is the cell of the
    /// zone's column, where there is one; `source_zone` what the source declares.
    pub(super) fn read(
        zone_rule: &ZoneRule,
        formats: &[TimeFormat],
        written: &str,
        zone_word: &str,
        source_zone: Option<&Zone>,
    ) -> Result<Read, TimeError> {
        let named;
        let zone = match zone_rule {
            ZoneRule::InText => None,
            ZoneRule::Fixed(zone) => Some(zone),
            ZoneRule::Source(default) => source_zone.or(default.as_ref()),
            ZoneRule::Column(_, zones) => match zones.get(zone_word) {
                Some(zone) => Some(zone),
                // A place is one zone everywhere; an abbreviation is not.
                None if zone_word.contains('/') => {
                    named = Zone::parse(zone_word).ok_or(TimeError::UnknownZone)?;
                    Some(&named)
                }
                None => return Err(TimeError::UnknownZone),
            },
        };
        let mut first = None;
        for read in formats
            .iter()
            .filter_map(|format| format.read(written, zone))
        {
            let (Read::At(at) | Read::Unclear(at, _)) = read;
            if is_plausible(at) {
                return Ok(read);
            }
            first = first.or(Some(read));
        }
        first.ok_or(TimeError::Format)
    }

    /// The formats as they were declared, for errors.
    pub(super) fn declared(&self) -> String {
        let all: Vec<String> = self
            .formats
            .iter()
            .map(|format| match format {
                TimeFormat::Rfc3339 => {
                    "\"rfc3339\" (with an offset: 2026-03-09T09:00:00Z)".to_owned()
                }
                TimeFormat::Pattern { text, .. } => format!("\"{text}\""),
            })
            .collect();
        all.join(" or ")
    }
}

fn at_wall(wall: NaiveDateTime, zone: &Zone) -> Read {
    match zone.at(wall) {
        Ok(at) => Read::At(at),
        Err(error) => {
            // An hour earlier the clocks are clear again; only the order of rows hangs on this instant.
            let near = zone
                .at(wall - TimeDelta::hours(1))
                .map_or(Instant(wall.and_utc().timestamp_micros()), |at| {
                    at.plus(Span::hours(1))
                });
            Read::Unclear(near, error)
        }
    }
}

/// RFC 3339. The form that almost every row has, whole seconds in UTC, is read without a library's detours.
pub(crate) fn rfc3339(text: &str) -> Option<Instant> {
    whole_second_utc(text.as_bytes()).or_else(|| Instant::parse(text))
}

fn whole_second_utc(text: &[u8]) -> Option<Instant> {
    let &[
        y1,
        y2,
        y3,
        y4,
        b'-',
        m1,
        m2,
        b'-',
        d1,
        d2,
        b'T',
        h1,
        h2,
        b':',
        n1,
        n2,
        b':',
        s1,
        s2,
        b'Z',
    ] = text
    else {
        return None;
    };
    let two = |tens: u8, ones: u8| {
        (tens.is_ascii_digit() && ones.is_ascii_digit())
            .then(|| i64::from(tens - b'0') * 10 + i64::from(ones - b'0'))
    };
    let year = two(y1, y2)? * 100 + two(y3, y4)?;
    let (month, day) = (two(m1, m2)?, two(d1, d2)?);
    let (hour, minute, second) = (two(h1, h2)?, two(n1, n2)?, two(s1, s2)?);
    // Days up to 28 exist in every month; the rest, leap seconds and errors are left to the library.
    if !(1..=12).contains(&month)
        || !(1..=28).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    // Days since 1970 in the Gregorian calendar, with years that begin in March.
    let (shifted_year, shifted_month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let era = shifted_year.div_euclid(400);
    let year_of_era = shifted_year.rem_euclid(400);
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    let days = era * 146_097 + day_of_era - 719_468;
    Some(Instant(
        (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(format: &str, zone: ZoneRule) -> TimeRule {
        TimeRule {
            columns: Vec::new(),
            formats: vec![TimeFormat::parse(format).expect("a format")],
            zone,
        }
    }

    fn read(rule: &TimeRule, written: &str, zone_word: &str) -> Result<Read, TimeError> {
        TimeRule::read(&rule.zone, &rule.formats, written, zone_word, None)
    }

    fn paris() -> Zone {
        Zone::parse("Europe/Paris").expect("a zone")
    }

    #[test]
    fn a_time_is_read_by_its_format_and_zone() {
        let fixed = |zone: &str| ZoneRule::Fixed(Zone::parse(zone).expect("a zone"));
        for (format, zone, written, want) in [
            (
                "rfc3339",
                ZoneRule::InText,
                "2026-03-09T09:00:00Z",
                Some("2026-03-09T09:00:00Z"),
            ),
            (
                "rfc3339",
                ZoneRule::InText,
                "2026-03-09T09:00:00+01:00",
                Some("2026-03-09T08:00:00Z"),
            ),
            ("rfc3339", ZoneRule::InText, "2026-03-09T09:00:00", None),
            (
                "%d/%m/%Y %H:%M:%S",
                fixed("UTC"),
                "05/06/2026 09:00:00",
                Some("2026-06-05T09:00:00Z"),
            ),
            (
                "%m/%d/%Y %H:%M:%S",
                fixed("UTC"),
                "15/06/2026 09:00:00",
                None,
            ),
            (
                "%Y-%m-%d %H:%M:%S",
                fixed("Europe/Paris"),
                "2026-03-10 00:27:00",
                Some("2026-03-09T23:27:00Z"),
            ),
            (
                "%Y-%m-%d",
                fixed("Europe/Paris"),
                "2026-03-10",
                Some("2026-03-09T23:00:00Z"),
            ),
            (
                "%Y-%m-%d %H:%M%z",
                ZoneRule::InText,
                "2026-03-10 00:27+0100",
                Some("2026-03-09T23:27:00Z"),
            ),
            (
                "%d.%m.%y %I:%M %p",
                fixed("UTC"),
                "09.03.26 09:00 PM",
                Some("2026-03-09T21:00:00Z"),
            ),
            (
                "%s",
                ZoneRule::InText,
                "1773046800",
                Some("2026-03-09T09:00:00Z"),
            ),
            ("%Y-%m-%d", fixed("UTC"), "2026-03-10 09:00", None),
        ] {
            let read = read(&rule(format, zone), written, "");
            let want = want.map_or(Err(TimeError::Format), |at| {
                Ok(Read::At(Instant::parse(at).expect("RFC 3339")))
            });
            assert_eq!(read, want, "{format} {written}");
        }
    }

    #[test]
    fn an_abbreviation_means_what_the_profile_says() {
        let zones = BTreeMap::from([("CET".to_owned(), Zone::parse("+01:00").expect("a zone"))]);
        let rule = rule("%Y-%m-%d %H:%M:%S", ZoneRule::Column(ColumnId(0), zones));
        assert_eq!(
            read(&rule, "2026-03-10 00:27:00", "CET"),
            Ok(Read::At(
                Instant::parse("2026-03-09T23:27:00Z").expect("RFC 3339")
            ))
        );
        assert_eq!(
            read(&rule, "2026-03-10 00:27:00", "PST"),
            Err(TimeError::UnknownZone)
        );
    }

    #[test]
    fn a_wall_time_that_never_was_or_was_twice_is_unclear() {
        let rule = rule("%Y-%m-%d %H:%M", ZoneRule::Fixed(paris()));
        for (written, near, error) in [
            (
                "2026-03-29 02:30",
                "2026-03-29T01:30:00Z",
                WallTimeError::Skipped,
            ),
            (
                "2026-10-25 02:30",
                "2026-10-25T00:30:00Z",
                WallTimeError::Twice,
            ),
        ] {
            let near = Instant::parse(near).expect("RFC 3339");
            assert_eq!(
                read(&rule, written, ""),
                Ok(Read::Unclear(near, error)),
                "{written}"
            );
        }
    }

    #[test]
    fn a_format_that_leaves_something_open_is_refused() {
        for format in [
            "%d/%m",
            "%Y-%m-%d %I:%M",
            "%Y-%m-%d %H",
            "%Y-%Q",
            "%Y-%m-%d %Z",
            "%H:%M",
            "",
        ] {
            assert!(TimeFormat::parse(format).is_err(), "{format}");
        }
    }

    #[test]
    fn only_times_of_this_century_are_plausible() {
        for (at, want) in [
            ("1999-12-31T23:59:59Z", false),
            ("2000-01-01T00:00:00Z", true),
            ("2099-12-31T23:59:59Z", true),
            ("2100-01-01T00:00:00Z", false),
        ] {
            assert_eq!(
                is_plausible(Instant::parse(at).expect("RFC 3339")),
                want,
                "{at}"
            );
        }
    }

    #[test]
    fn a_time_in_another_unit_or_far_away_is_never_plausible() {
        let seconds = rule("%s", ZoneRule::InText);
        for (rule, written) in [
            (&seconds, "1773046800000"),
            (&seconds, "1773046800000000"),
            (&seconds, "0"),
            (&seconds, "-1"),
            (&rule("rfc3339", ZoneRule::InText), "0000-01-01T00:00:00Z"),
            (&rule("rfc3339", ZoneRule::InText), "9999-12-31T23:59:59Z"),
        ] {
            match read(rule, written, "") {
                Ok(Read::At(at)) => assert!(!is_plausible(at), "{written}"),
                read => assert_eq!(read, Err(TimeError::Format), "{written}"),
            }
        }
        let at = |text| rfc3339(text).expect("a time");
        let leap = at("2016-12-31T23:59:60Z");
        assert!(at("2016-12-31T23:59:59Z") < leap && leap <= at("2017-01-01T00:00:00Z"));
    }

    proptest! {
        #[test]
        fn the_short_way_and_the_library_agree(
            year in 0_i32..10_000, month in 0_u32..14, day in 0_u32..33,
            hour in 0_u32..26, minute in 0_u32..62, second in 0_u32..62,
        ) {
            let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z");
            prop_assert_eq!(rfc3339(&text), Instant::parse(&text));
        }
    }
}
