//! Progress on stderr, for a person who waits.
//!
//! A bar is drawn on a terminal only, unless it is asked for; in a log it would be noise. indicatif is confined to this
//! file.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a person has waited is nobody else's business, and reaches no report"
)]

use std::io::{self, Write};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::cli::ProgressMode;
use crate::report::sanitise::clean;

/// How often a bar is drawn, in frames per second.
const FRAMES_PER_SECOND: u8 = 8;
/// How often a line is logged while one step goes on.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// What is shown of a run while it goes on.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Log(LogLines),
}

#[derive(Debug)]
struct LogLines {
    step: String,
    rows: u64,
    logged_at: Instant,
}

impl Progress {
    /// `is_terminal` says whether stderr is one; `quiet` silences a bar that nobody asked for.
    pub fn new(mode: ProgressMode, is_terminal: bool, quiet: bool) -> Progress {
        let target = match mode {
            ProgressMode::Auto if is_terminal && !quiet => {
                Some(ProgressDrawTarget::stderr_with_hz(FRAMES_PER_SECOND))
            }
            ProgressMode::Always => Some(ProgressDrawTarget::term_like_with_hz(
                Box::new(AnyStderr),
                FRAMES_PER_SECOND,
            )),
            ProgressMode::Auto | ProgressMode::Never | ProgressMode::Log => None,
        };
        let shown = match (mode, target) {
            (ProgressMode::Log, _) => Shown::Log(LogLines {
                step: String::new(),
                rows: 0,
                logged_at: Instant::now(),
            }),
            (_, Some(target)) => Shown::Bar(ProgressBar::with_draw_target(None, target)),
            (_, None) => Shown::Nothing,
        };
        Progress { shown }
    }

    /// Nothing is shown.
    pub fn silent() -> Progress {
        Progress {
            shown: Shown::Nothing,
        }
    }

    /// A step begins, of so many rows where that is known: `reading operations.csv`.
    pub fn step(&mut self, step: &str, rows: Option<u64>) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.reset();
                if let Some(rows) = rows {
                    bar.set_length(rows);
                    bar.set_style(style("{spinner} {msg} {bar:30} {human_pos} of {human_len}"));
                } else {
                    bar.unset_length();
                    bar.set_style(style("{spinner} {msg} {human_pos}"));
                }
                bar.set_message(clean(step).into_owned());
                bar.tick();
            }
            Shown::Log(log) => {
                tracing::info!(step, "begins");
                step.clone_into(&mut log.step);
                log.rows = 0;
                log.logged_at = Instant::now();
            }
        }
    }

    /// So many more rows are done.
    pub fn advance(&mut self, rows: u64) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar.inc(rows),
            Shown::Log(log) => {
                log.rows += rows;
                if log.logged_at.elapsed() >= LOG_EVERY {
                    tracing::info!(step = log.step, rows = log.rows, "goes on");
                    log.logged_at = Instant::now();
                }
            }
        }
    }

    /// The bar goes away, so that the report stands alone.
    pub fn finish(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}

/// Stderr, whatever it is connected to. indicatif draws nothing on a stderr that is no terminal.
#[derive(Debug)]
struct AnyStderr;

impl AnyStderr {
    fn sequence(count: usize, letter: char) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        write!(io::stderr(), "\u{1b}[{count}{letter}")
    }
}

impl TermLike for AnyStderr {
    fn width(&self) -> u16 {
        80
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        AnyStderr::sequence(lines, 'A')
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        AnyStderr::sequence(lines, 'B')
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        AnyStderr::sequence(columns, 'C')
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        AnyStderr::sequence(columns, 'D')
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        writeln!(io::stderr(), "{text}")
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        write!(io::stderr(), "{text}")
    }

    fn clear_line(&self) -> io::Result<()> {
        write!(io::stderr(), "\r\u{1b}[2K")
    }

    fn flush(&self) -> io::Result<()> {
        io::stderr().flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_drawn_on_a_terminal_or_on_request() {
        let has_bar = |mode, is_terminal, quiet| {
            matches!(Progress::new(mode, is_terminal, quiet).shown, Shown::Bar(_))
        };
        for (mode, is_terminal, quiet, want) in [
            (ProgressMode::Auto, true, false, true),
            (ProgressMode::Auto, false, false, false),
            (ProgressMode::Auto, true, true, false),
            (ProgressMode::Always, false, true, true),
            (ProgressMode::Never, true, false, false),
            (ProgressMode::Log, true, false, false),
        ] {
            assert_eq!(has_bar(mode, is_terminal, quiet), want, "{mode}");
        }
    }
}
