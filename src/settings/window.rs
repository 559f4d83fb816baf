//! The window flags, and what they ask for.
//!
//! Pure: "now" and the zone come in. A window is half-open; a day or month is the civil one of the zone.
//!
//! Decisions: `--from X --to X` is a mistake (it leaves out the day that was meant), not an empty window. Flags that
//! could contradict each other are refused together, so that no reading of them has to be guessed.

use crate::exit::Failure;
use crate::model::run::{Basis, Window};
use crate::time::{Instant, Zone, day_range, month_range, parse_day, parse_point, since};

/// The window flags as they were typed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WindowFlags {
    /// `--from`: inclusive start.
    pub from: Option<String>,
    /// `--to`: exclusive end.
    pub to: Option<String>,
    /// `--day`: one civil day.
    pub day: Option<String>,
    /// `--month`: one civil month.
    pub month: Option<String>,
    /// `--through`: last civil day, inclusive.
    pub through: Option<String>,
    /// `--since`: so far back from "now".
    pub since: Option<String>,
}

/// What the flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowChoice {
    /// No flag: from the watermark.
    Watermark,
    /// A range given by hand; never moves the watermark.
    Range(Window),
}

/// "Now": `--as-of` where it was given, else the clock. A later "now" than the clock's is allowed: it is how a test or a
/// repetition fixes it.
pub fn as_of(flag: Option<&str>, zone: &Zone, clock: Instant) -> Result<Instant, Failure> {
    match flag {
        None => Ok(clock),
        Some(text) => point("--as-of", text, zone, clock),
    }
}

/// What the flags ask for, seen from "now".
pub fn choose(flags: &WindowFlags, zone: &Zone, as_of: Instant) -> Result<WindowChoice, Failure> {
    refuse_contradictions(flags)?;
    if *flags == WindowFlags::default() {
        return Ok(WindowChoice::Watermark);
    }
    let (from, to) = range(flags, zone, as_of)?;
    let shown = format!("[{from}, {to})");
    if from == to {
        let failure = Failure::rejected(format!("the window {shown} is empty"))
            .why("a window ends before its end: --to is exclusive");
        return Err(
            match flags
                .from
                .as_deref()
                .filter(|text| is_day(text, zone, as_of))
            {
                Some(day) => failure.remedy(format!("for that day write --day {day}")),
                None => failure.remedy("for one day write --day YYYY-MM-DD"),
            },
        );
    }
    if from > to {
        return Err(
            Failure::rejected(format!("the window {shown} ends before it begins"))
                .remedy("exchange --from and --to"),
        );
    }
    if from > as_of {
        return Err(Failure::rejected(format!(
            "the window {shown} begins in the future: now is {as_of}"
        ))
        .remedy("ask for a time that has begun, or fix now with --as-of"));
    }
    Ok(WindowChoice::Range(Window {
        from,
        to,
        basis: Basis::Range,
    }))
}

/// Flags that cannot stand beside each other.
const CONTRADICTIONS: &[(&str, &[&str])] = &[
    (
        "--day",
        &["--month", "--from", "--to", "--through", "--since"],
    ),
    ("--month", &["--from", "--to", "--through", "--since"]),
    ("--since", &["--from"]),
    ("--through", &["--to"]),
];

fn refuse_contradictions(flags: &WindowFlags) -> Result<(), Failure> {
    for (flag, others) in CONTRADICTIONS {
        for other in *others {
            if given(flags, flag) && given(flags, other) {
                return Err(Failure::rejected(format!(
                    "{flag} and {other} cannot be used together"
                ))
                .why("each of them says where the window lies"));
            }
        }
    }
    Ok(())
}

fn given(flags: &WindowFlags, flag: &str) -> bool {
    let value = match flag {
        "--from" => &flags.from,
        "--to" => &flags.to,
        "--day" => &flags.day,
        "--month" => &flags.month,
        "--through" => &flags.through,
        _ => &flags.since,
    };
    value.is_some()
}

fn range(flags: &WindowFlags, zone: &Zone, as_of: Instant) -> Result<(Instant, Instant), Failure> {
    if let Some(text) = &flags.day {
        return day("--day", text, zone, as_of);
    }
    if let Some(text) = &flags.month {
        return month_range(text, zone).ok_or_else(|| {
            Failure::rejected(format!("--month {text:?} is no month"))
                .remedy("write it as YYYY-MM: 2026-10")
        });
    }
    let from = match (&flags.from, &flags.since) {
        (Some(text), _) => point("--from", text, zone, as_of)?,
        (None, Some(text)) => since(text, zone, as_of).ok_or_else(|| {
            Failure::rejected(format!("--since {text:?} is no length of time"))
                .remedy("write a whole number and one unit: 36h, 7d, 2w")
        })?,
        (None, None) => {
            return Err(Failure::rejected("the window has an end and no beginning")
                .remedy("add --from or --since, or use --day or --month"));
        }
    };
    let to = match (&flags.to, &flags.through) {
        (Some(text), _) => point("--to", text, zone, as_of)?,
        (None, Some(text)) => day("--through", text, zone, as_of)?.1,
        (None, None) => as_of,
    };
    Ok((from, to))
}

fn is_day(text: &str, zone: &Zone, as_of: Instant) -> bool {
    parse_day(text, zone, as_of).is_some()
}

fn day(flag: &str, text: &str, zone: &Zone, as_of: Instant) -> Result<(Instant, Instant), Failure> {
    parse_day(text, zone, as_of)
        .and_then(|day| day_range(day, zone))
        .ok_or_else(|| {
            Failure::rejected(format!("{flag} {text:?} is no day"))
                .remedy("write YYYY-MM-DD, today or yesterday")
        })
}

fn point(flag: &str, text: &str, zone: &Zone, now: Instant) -> Result<Instant, Failure> {
    parse_point(text, zone, now).ok_or_else(|| {
        Failure::rejected(format!("{flag} {text:?} is no point in time")).remedy(format!(
            "write RFC 3339 (2026-11-28T00:00:00Z), a day or a time in {} that its clocks show exactly once, \
             now, today or yesterday",
            zone.name()
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Instant {
        Instant::parse(text).expect("RFC 3339")
    }

    /// Flags as they are typed: `--day 2026-11-28`.
    fn flags(typed: &str) -> WindowFlags {
        let mut flags = WindowFlags::default();
        let words: Vec<&str> = typed.split_whitespace().collect();
        for pair in words.chunks(2) {
            let value = Some(pair[1].to_owned());
            match pair[0] {
                "--from" => flags.from = value,
                "--to" => flags.to = value,
                "--day" => flags.day = value,
                "--month" => flags.month = value,
                "--through" => flags.through = value,
                "--since" => flags.since = value,
                other => panic!("{other} is no window flag"),
            }
        }
        flags
    }

    fn chosen(typed: &str, zone: &str) -> Result<WindowChoice, Failure> {
        let zone = Zone::parse(zone).expect("a zone");
        choose(&flags(typed), &zone, at("2026-11-28T12:00:00Z"))
    }

    #[test]
    fn without_a_flag_the_watermark_decides() {
        assert_eq!(
            chosen("", "UTC").expect("a choice"),
            WindowChoice::Watermark
        );
    }

    #[test]
    fn a_window_is_what_the_zone_makes_of_the_flags() {
        for (typed, zone, from, to) in [
            (
                "--day 2026-11-27",
                "UTC",
                "2026-11-27T00:00:00Z",
                "2026-11-28T00:00:00Z",
            ),
            (
                "--day yesterday",
                "UTC",
                "2026-11-27T00:00:00Z",
                "2026-11-28T00:00:00Z",
            ),
            (
                "--day today",
                "UTC",
                "2026-11-28T00:00:00Z",
                "2026-11-29T00:00:00Z",
            ),
            (
                "--day 2026-10-25",
                "Europe/Paris",
                "2026-10-24T22:00:00Z",
                "2026-10-25T23:00:00Z",
            ),
            // The clocks skipped this midnight: the day begins at one o'clock.
            (
                "--day 2018-11-04",
                "America/Sao_Paulo",
                "2018-11-04T03:00:00Z",
                "2018-11-05T02:00:00Z",
            ),
            (
                "--month 2026-10",
                "Europe/Paris",
                "2026-09-30T22:00:00Z",
                "2026-10-31T23:00:00Z",
            ),
            (
                "--from 2026-11-01 --to 2026-11-03",
                "UTC",
                "2026-11-01T00:00:00Z",
                "2026-11-03T00:00:00Z",
            ),
            (
                "--from 2026-11-01 --through 2026-11-03",
                "UTC",
                "2026-11-01T00:00:00Z",
                "2026-11-04T00:00:00Z",
            ),
            (
                "--from 2026-11-01T06:30:00+02:00",
                "UTC",
                "2026-11-01T04:30:00Z",
                "2026-11-28T12:00:00Z",
            ),
            (
                "--since 36h",
                "UTC",
                "2026-11-27T00:00:00Z",
                "2026-11-28T12:00:00Z",
            ),
            (
                "--since 7d --to yesterday",
                "UTC",
                "2026-11-21T12:00:00Z",
                "2026-11-27T00:00:00Z",
            ),
            // 40 civil days back cross the end of summer time.
            (
                "--since 40d",
                "Europe/Paris",
                "2026-10-19T11:00:00Z",
                "2026-11-28T12:00:00Z",
            ),
        ] {
            let want = WindowChoice::Range(Window {
                from: at(from),
                to: at(to),
                basis: Basis::Range,
            });
            assert_eq!(chosen(typed, zone).expect(typed), want, "{typed}");
        }
    }

    #[test]
    fn what_leaves_a_question_open_is_refused() {
        for (typed, part) in [
            ("--from 2026-11-28 --to 2026-11-28", "--day 2026-11-28"),
            (
                "--from 2026-11-28T00:00:00Z --to 2026-11-28T00:00:00Z",
                "--day YYYY-MM-DD",
            ),
            ("--from 2026-11-28 --to 2026-11-27", "ends before it begins"),
            ("--from 2026-11-29", "ends before it begins"),
            ("--day 2026-11-29", "begins in the future"),
            ("--from 2026-12-01 --to 2026-12-02", "begins in the future"),
            ("--day 2026-11-27 --month 2026-11", "--day and --month"),
            ("--day 2026-11-27 --from 2026-11-27", "--day and --from"),
            ("--month 2026-11 --since 7d", "--month and --since"),
            ("--since 7d --from 2026-11-01", "--since and --from"),
            (
                "--from 2026-11-01 --to 2026-11-02 --through 2026-11-02",
                "--through and --to",
            ),
            ("--to 2026-11-01", "no beginning"),
            ("--through 2026-11-01", "no beginning"),
            ("--day 1/2/2026", "is no day"),
            ("--day 2026-02-30", "is no day"),
            ("--month 2026-13", "is no month"),
            ("--month october", "is no month"),
            ("--since 7", "no length of time"),
            ("--from 11/28/2026", "no point in time"),
        ] {
            let failure = chosen(typed, "UTC").expect_err(typed);
            assert_eq!(failure.exit, crate::exit::Exit::Rejected, "{typed}");
            assert!(failure.to_string().contains(part), "{typed}: {failure}");
        }
    }

    #[test]
    fn now_is_the_clock_unless_it_is_given() {
        let clock = at("2026-11-28T12:00:00Z");
        let zone = Zone::parse("Europe/Paris").expect("a zone");
        for (flag, want) in [
            (None, "2026-11-28T12:00:00Z"),
            (Some("2026-03-10T12:00:00Z"), "2026-03-10T12:00:00Z"),
            (Some("yesterday"), "2026-11-26T23:00:00Z"),
            (Some("2026-11-28 09:00:00"), "2026-11-28T08:00:00Z"),
        ] {
            assert_eq!(
                as_of(flag, &zone, clock).expect("now"),
                at(want),
                "{flag:?}"
            );
        }
        // The clocks showed half past two twice on that day.
        assert!(as_of(Some("2026-10-25 02:30:00"), &zone, clock).is_err());
    }
}
