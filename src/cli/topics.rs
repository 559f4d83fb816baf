//! `paysweep help exit-codes` and `help dates`: what the help of no single command can say.

use std::fmt::Write;

use crate::exit::Exit;

/// The topics, and what each says in a line.
pub const TOPICS: [(&str, &str); 2] = [
    (
        "exit-codes",
        "what each code means, and whether a retry helps",
    ),
    ("dates", "how days, times and windows are written"),
];

/// The text of a topic; `None` for a word that is none.
pub fn topic(name: &str) -> Option<String> {
    match name {
        "exit-codes" => Some(exit_codes()),
        "dates" => Some(DATES.to_owned()),
        _ => None,
    }
}

fn exit_codes() -> String {
    let mut text = String::from(
        "Exit codes. When several reasons apply, the highest row decides; outcome.reasons of the JSON report lists them all.\n\
         An unknown code that is not 0 is a failure.\n\n",
    );
    for exit in Exit::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:>3}  {:<11}  {}{}",
            exit.code(),
            exit.name(),
            exit.when(),
            if exit.retry_helps() {
                "; trying again may help"
            } else {
                ""
            }
        );
    }
    let list = |is_wanted: fn(&Exit) -> bool| {
        let mut codes: Vec<u8> = Exit::ALL
            .into_iter()
            .filter(is_wanted)
            .map(Exit::code)
            .collect();
        codes.sort_unstable();
        let codes: Vec<String> = codes.iter().map(u8::to_string).collect();
        codes.join(" ")
    };
    let _ = write!(
        text,
        "\nFor a scheduler:\n  try again    {}\n  never again  {}\n\n\
         --fail-on says which breaks lead to 1: found (default), open, new or error (none).\n\
         `paysweep status` ends with 1 when a source is stale.\n",
        list(|exit| exit.retry_helps()),
        list(|exit| *exit != Exit::Ok && !exit.retry_helps())
    );
    text
}

const DATES: &str = "\
Days and times. Windows are half-open: the start is part of them, the end is not.

  2026-03-09T00:00:00Z        an instant (RFC 3339, with Z or an offset)
  2026-03-09                  the first instant of that day in the configured timezone
  2026-03-09T14:30            a wall-clock time in the configured timezone
  today, yesterday, now       as --as-of has it, else the clock

  --from T --to T             from T on, up to and without the other T
  --day 2026-03-09            that whole day; also --day yesterday
  --month 2026-02             that whole month
  --from 2026-03-01 --through 2026-03-09
                              through the end of the last day
  --since 36h                 so far back from now: s m h are spans of time, d and w civil days

The timezone is that of the configuration, and UTC where it has none; that of the machine is never used. A day in it may
have 23 or 25 hours. --from X --to X would be an empty window and is refused: write --day X.

Without any of these `run` goes on from the watermark: it judges [watermark - lookback, now - lag). A window given by hand
never moves the watermark. --as-of T fixes what counts as now: the same input gives the same bytes.
";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_topic_has_a_text_that_ends_its_last_line() {
        for (name, _) in TOPICS {
            let text = topic(name).expect(name);
            assert!(text.ends_with('\n') && text.lines().count() > 10, "{name}");
            assert!(
                text.lines().all(|line| line.chars().count() <= 150),
                "{name}"
            );
        }
        assert_eq!(topic("weather"), None);
    }
}
