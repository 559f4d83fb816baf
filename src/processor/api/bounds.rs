//! A window as the parameters of a request, and a window cut into slices.

use crate::time::{Instant, Span, Zone};

/// How a bound is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundFormat {
    /// Seconds since 1970: the lower bound rounded down, the upper one up.
    Unix,
    /// Milliseconds since 1970.
    UnixMs,
    /// `2026-03-09T10:00:00Z`, whole seconds.
    Rfc3339,
    /// The day in UTC; an upper bound is the last day, inclusive.
    Date,
    /// Year, month and day as three parameters: the window is asked for day by day.
    Parts,
}

impl BoundFormat {
    /// The words as a profile writes them.
    pub(super) const NAMES: [(&str, BoundFormat); 6] = [
        ("unix", BoundFormat::Unix),
        ("unix_ms", BoundFormat::UnixMs),
        ("rfc3339", BoundFormat::Rfc3339),
        ("rfc3339_z", BoundFormat::Rfc3339),
        ("date", BoundFormat::Date),
        ("parts", BoundFormat::Parts),
    ];
}

/// A bound of a window, and the parameters that carry it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// One, or three for `parts`; none = the list has no such bound.
    pub params: Vec<String>,
    /// How it is written.
    pub format: BoundFormat,
}

const SECOND: i64 = 1_000_000;

impl Bound {
    /// The lower bound, inclusive: never later than the instant.
    pub fn from(&self, at: Instant) -> Vec<(String, String)> {
        self.written(Instant(at.0.div_euclid(SECOND) * SECOND), at)
    }

    /// The upper bound: never earlier than the instant, which is not part of the window itself.
    pub fn to(&self, at: Instant) -> Vec<(String, String)> {
        let up = Instant(at.0.saturating_add(SECOND - 1).div_euclid(SECOND) * SECOND);
        self.written(up, at.minus(Span(1)))
    }

    fn written(&self, second: Instant, day: Instant) -> Vec<(String, String)> {
        let date = || {
            let date = Zone::utc().date_of(day);
            date.map_or_else(String::new, |date| date.to_string())
        };
        let values = match self.format {
            BoundFormat::Unix => vec![(second.0 / SECOND).to_string()],
            BoundFormat::UnixMs => vec![(second.0 / 1000).to_string()],
            BoundFormat::Rfc3339 => vec![second.to_string()],
            BoundFormat::Date => vec![date()],
            BoundFormat::Parts => date()
                .split('-')
                .map(|part| part.trim_start_matches('0').to_owned())
                .collect(),
        };
        self.params.iter().cloned().zip(values).collect()
    }
}

/// Half-open stretches that make up a window, oldest first, each no longer than a span and never longer than the window.
/// `None` = in one piece.
pub fn slices(from: Instant, to: Instant, span: Option<Span>) -> Vec<(Instant, Instant)> {
    let Some(span) = span.filter(|span| span.0 > 0) else {
        return vec![(from, to)];
    };
    let mut slices = Vec::new();
    let mut begin = from;
    while begin < to {
        let end = begin.plus(span).min(to);
        slices.push((begin, end));
        begin = end;
    }
    if slices.is_empty() {
        slices.push((from, to));
    }
    slices
}

/// The same cut at the days of UTC.
pub fn days(from: Instant, to: Instant) -> Vec<(Instant, Instant)> {
    const DAY: i64 = 86_400 * SECOND;
    let mut slices = Vec::new();
    let mut begin = from;
    while begin < to {
        let end = Instant((begin.0.div_euclid(DAY) + 1) * DAY).min(to);
        slices.push((begin, end));
        begin = end;
    }
    if slices.is_empty() {
        slices.push((from, to));
    }
    slices
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse(text).expect("RFC 3339")
    }

    #[test]
    fn bounds_reach_outward_to_what_the_format_can_say() {
        for (format, from, to) in [
            (BoundFormat::Unix, vec!["1773050400"], vec!["1773050401"]),
            (
                BoundFormat::UnixMs,
                vec!["1773050400000"],
                vec!["1773050401000"],
            ),
            (
                BoundFormat::Rfc3339,
                vec!["2026-03-09T10:00:00Z"],
                vec!["2026-03-09T10:00:01Z"],
            ),
            (BoundFormat::Date, vec!["2026-03-09"], vec!["2026-03-09"]),
            (
                BoundFormat::Parts,
                vec!["2026", "3", "9"],
                vec!["2026", "3", "9"],
            ),
        ] {
            let params = ["y", "m", "d"].map(str::to_owned).to_vec();
            let bound = Bound { params, format };
            let values = |pairs: Vec<(String, String)>| -> Vec<String> {
                pairs.into_iter().map(|(_, value)| value).collect()
            };
            assert_eq!(
                values(bound.from(at("2026-03-09T10:00:00.5Z"))),
                from,
                "{format:?}"
            );
            assert_eq!(
                values(bound.to(at("2026-03-09T10:00:00.5Z"))),
                to,
                "{format:?}"
            );
        }
        let date = Bound {
            params: vec!["to".to_owned()],
            format: BoundFormat::Date,
        };
        assert_eq!(date.to(at("2026-03-09T00:00:00Z"))[0].1, "2026-03-08");
    }

    #[test]
    fn slices_cover_the_window_once() {
        let (from, to) = (at("2026-03-09T06:00:00Z"), at("2026-03-11T05:00:00Z"));
        for slices in [
            slices(from, to, Some(Span::hours(7))),
            slices(from, to, Some(Span::hours(1000))),
            slices(from, to, None),
            days(from, to),
        ] {
            assert_eq!((slices[0].0, slices[slices.len() - 1].1), (from, to));
            for pair in slices.windows(2) {
                assert_eq!(pair[0].1, pair[1].0);
            }
        }
        assert_eq!(days(from, to).len(), 3);
        assert_eq!(slices(from, from, Some(Span::hours(1))), [(from, from)]);
    }
}
