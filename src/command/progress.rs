//! Progress on stderr, for a person who waits.
//!
//! A bar is drawn on a terminal only, unless it is asked for; in a log it would be noise. indicatif is confined to this
//! file.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a person has waited is nobody else's business, and reaches no report"
)]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::cli::ProgressMode;
use crate::model::words;
use crate::report::sanitise::clean;

/// How often a bar is drawn, in frames per second.
const FRAMES_PER_SECOND: u8 = 8;
/// How often a line is told while one step goes on.
const LOG_EVERY: Duration = Duration::from_secs(30);

words! {
    /// What a run spends its time with.
    Stage {
        /// Reading the processor's side.
        Fetch = "fetch",
        /// Reading our own side and what is stored.
        Load = "load",
        /// Comparing.
        Compare = "compare",
        /// Writing to the store.
        Apply = "apply",
        /// Telling.
        Report = "report",
    }
}

/// How long each stage of a run took.
#[derive(Clone, Debug, Default)]
pub struct Stages {
    took: BTreeMap<Stage, Duration>,
}

impl Stages {
    /// How long a stage took, over all sources.
    pub fn of(&self, stage: Stage) -> Duration {
        self.took.get(&stage).copied().unwrap_or_default()
    }

    fn add(&mut self, stage: Stage, took: Duration) {
        *self.took.entry(stage).or_default() += took;
    }
}

/// What is shown of a run while it goes on.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
    stages: Stages,
    current: Option<(Stage, Instant)>,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Bar(ProgressBar),
    Log(LogLines),
}

/// A thread that tells every half minute which step goes on, and for how long.
#[derive(Debug)]
struct LogLines {
    step: Arc<Mutex<Step>>,
    /// The thread ends when this does.
    _stop: Sender<()>,
}

#[derive(Debug)]
struct Step {
    name: String,
    rows: u64,
    begun: Instant,
}

impl LogLines {
    fn begin(every: Duration) -> LogLines {
        let step = Arc::new(Mutex::new(Step {
            name: String::new(),
            rows: 0,
            begun: Instant::now(),
        }));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&step);
        let telling = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                tell(&shared);
            }
        };
        // Without a thread nothing is told while a step goes on, which hurts nobody.
        let _ = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(telling);
        LogLines { step, _stop: stop }
    }

    fn with(&self, change: impl FnOnce(&mut Step)) {
        change(&mut self.step.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn tell(step: &Mutex<Step>) {
    let step = step.lock().unwrap_or_else(PoisonError::into_inner);
    let rows = if step.rows > 0 {
        format!(", {} rows", step.rows)
    } else {
        String::new()
    };
    let seconds = step.begun.elapsed().as_secs();
    // Nothing is left to be done when stderr is gone.
    let _ = writeln!(
        io::stderr(),
        "progress: {} for {seconds} s{rows}",
        clean(&step.name)
    );
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
            (ProgressMode::Log, _) => Shown::Log(LogLines::begin(LOG_EVERY)),
            (_, Some(target)) => {
                let bar = ProgressBar::with_draw_target(None, target);
                bar.enable_steady_tick(Duration::from_millis(1000 / u64::from(FRAMES_PER_SECOND)));
                Shown::Bar(bar)
            }
            (_, None) => Shown::Nothing,
        };
        Progress {
            shown,
            stages: Stages::default(),
            current: None,
        }
    }

    /// Nothing is shown.
    pub fn silent() -> Progress {
        Progress {
            shown: Shown::Nothing,
            stages: Stages::default(),
            current: None,
        }
    }

    /// A stage begins; the one before ends.
    pub fn stage(&mut self, stage: Stage, step: &str, rows: Option<u64>) {
        self.turn(Some(stage));
        self.step(step, rows);
    }

    fn turn(&mut self, next: Option<Stage>) {
        if let Some((stage, begun)) = self.current.take() {
            self.stages.add(stage, begun.elapsed());
        }
        self.current = next.map(|stage| (stage, Instant::now()));
    }

    /// How long each stage took so far.
    pub fn stages(&mut self) -> &Stages {
        self.turn(None);
        &self.stages
    }

    /// A step begins, of so many rows where that is known: `reading operations.csv`.
    pub fn step(&mut self, step: &str, rows: Option<u64>) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => {
                bar.reset();
                if let Some(rows) = rows {
                    bar.set_length(rows);
                    bar.set_style(style(
                        "{spinner} {msg} {bar:20} {human_pos} of {human_len}, {per_sec}, {eta} left",
                    ));
                } else {
                    bar.unset_length();
                    bar.set_style(style("{spinner} {msg} for {elapsed}"));
                }
                bar.set_message(clean(step).into_owned());
                bar.tick();
            }
            Shown::Log(log) => log.with(|current| {
                step.clone_into(&mut current.name);
                current.rows = rows.unwrap_or(0);
                current.begun = Instant::now();
            }),
        }
    }

    /// So many more rows are done.
    pub fn advance(&mut self, rows: u64) {
        match &mut self.shown {
            Shown::Nothing => {}
            Shown::Bar(bar) => bar.inc(rows),
            Shown::Log(log) => log.with(|current| current.rows += rows),
        }
    }

    /// The bar goes away, so that the report stands alone.
    pub fn finish(&mut self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.finish_and_clear();
        }
        self.shown = Shown::Nothing;
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

    #[test]
    fn the_stages_of_a_run_add_up() {
        let mut progress = Progress::silent();
        progress.stage(Stage::Fetch, "reading", None);
        progress.stage(Stage::Compare, "comparing", Some(3));
        progress.stage(Stage::Fetch, "reading", None);
        let stages = progress.stages().clone();
        assert!(
            stages.of(Stage::Fetch) > Duration::ZERO && stages.of(Stage::Compare) > Duration::ZERO
        );
        assert_eq!(stages.of(Stage::Apply), Duration::ZERO);
    }
}
