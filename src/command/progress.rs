//! Progress on stderr, for a person who waits.
//!
//! A bar is drawn on a terminal only, unless it is asked for; in a log it would be noise. Whoever works counts on a meter,
//! block by block; a thread looks at it and shows how far it is, how fast, and how long it has to go at the rate it had so
//! far. indicatif is confined to this file.
#![allow(
    clippy::disallowed_methods,
    reason = "how long a person has waited is nobody else's business, and reaches no report"
)]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike};

use crate::cli::ProgressMode;
use crate::meter::Meter;
use crate::model::words;
use crate::report::sanitise::clean;

/// How often a bar is drawn at most, in frames per second.
const FRAMES_PER_SECOND: u8 = 8;
/// How often a bar is looked at.
const DRAW_EVERY: Duration = Duration::from_millis(1000 / FRAMES_PER_SECOND as u64);
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

words! {
    /// What a step counts.
    Unit {
        /// Bytes of files.
        Bytes = "bytes",
        /// Rows of either side, or of the store.
        Rows = "rows",
    }
}

/// What is shown of a run while it goes on.
#[derive(Debug)]
pub struct Progress {
    shown: Option<Shown>,
    stages: Stages,
    current: Option<(Stage, Instant)>,
}

/// A thread that looks at the current step now and then.
#[derive(Debug)]
struct Shown {
    step: Arc<Mutex<Step>>,
    /// The thread ends when this does.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Clone, Debug)]
struct Step {
    name: String,
    unit: Unit,
    meter: Meter,
    begun: Instant,
}

impl Step {
    fn new(name: &str, unit: Unit, meter: Meter) -> Step {
        Step {
            name: clean(name).into_owned(),
            unit,
            meter,
            begun: Instant::now(),
        }
    }

    fn now(step: &Mutex<Step>) -> Step {
        step.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long it goes on, how far it is, how fast that is and how long it has to go, as far as that is known.
    fn figures(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs();
        let done = self.meter.done();
        if done == 0 {
            return format!("{seconds} s");
        }
        let millis = u64::try_from(elapsed.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let count = |count: u64| match self.unit {
            Unit::Bytes => HumanBytes(count).to_string(),
            Unit::Rows => HumanCount(count).to_string(),
        };
        let (rows, rows_each) = match self.unit {
            Unit::Bytes => ("", "/s"),
            Unit::Rows => (" rows", " rows/s"),
        };
        let rate = count(done.saturating_mul(1000) / millis);
        let Some(expected) = self.meter.expected() else {
            return format!("{}{rows} in {seconds} s, {rate}{rows_each}", count(done));
        };
        let left = u128::from(expected - done) * elapsed.as_millis() / u128::from(done);
        let left = left.div_ceil(1000);
        format!(
            "{} of {}{rows}, {rate}{rows_each}, {left} s left",
            count(done),
            count(expected)
        )
    }
}

impl Shown {
    /// `paint` looks at the step now and then, and has the last word.
    fn begin(every: Duration, mut paint: impl FnMut(Look<'_>) + Send + 'static) -> Shown {
        let step = Arc::new(Mutex::new(Step::new("", Unit::Rows, Meter::default())));
        let (stop, stopped) = channel();
        let shared = Arc::clone(&step);
        let showing = move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                paint(Look::At(&Step::now(&shared)));
            }
            paint(Look::End);
        };
        // Without a thread nothing is shown, which hurts nobody.
        let thread = std::thread::Builder::new()
            .name("progress".to_owned())
            .spawn(showing);
        Shown {
            step,
            stop: Some(stop),
            thread: thread.ok(),
        }
    }
}

impl Drop for Shown {
    /// Whatever comes next on the terminal stands alone.
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It fails where showing failed, and then nothing is shown any more.
            let _ = thread.join();
        }
    }
}

/// What a thread that shows is told.
enum Look<'a> {
    At(&'a Step),
    End,
}

/// Paints a bar.
fn bar(target: ProgressDrawTarget) -> Shown {
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(style());
    Shown::begin(DRAW_EVERY, move |look| match look {
        Look::At(step) if step.name.is_empty() => {}
        Look::At(step) => {
            let figures = step.figures(step.begun.elapsed());
            bar.set_message(format!("{}{}: {figures}", filled(&step.meter), step.name));
            bar.tick();
        }
        Look::End => bar.finish_and_clear(),
    })
}

/// `[===>      ] `; nothing where nobody knows how much there is.
fn filled(meter: &Meter) -> String {
    const CELLS: usize = 10;
    let Some(expected) = meter.expected() else {
        return String::new();
    };
    let cells = u128::from(meter.done()) * CELLS as u128 / u128::from(expected);
    let cells = usize::try_from(cells).unwrap_or(CELLS);
    let head = if cells < CELLS { ">" } else { "" };
    let bar = format!("{}{head}", "=".repeat(cells));
    format!("[{bar:CELLS$}] ")
}

/// Writes a line now and then.
fn lines(every: Duration, mut to: impl Write + Send + 'static) -> Shown {
    Shown::begin(every, move |look| {
        if let Look::At(step) = look {
            let figures = step.figures(step.begun.elapsed());
            // Nothing is left to be done when stderr is gone.
            let _ = writeln!(to, "progress: {}: {figures}", step.name);
        }
    })
}

impl Progress {
    /// `is_terminal` says whether stderr is one; `quiet` silences a bar that nobody asked for.
    pub fn new(mode: ProgressMode, is_terminal: bool, quiet: bool) -> Progress {
        let shown = match mode {
            ProgressMode::Auto if is_terminal && !quiet => {
                Some(bar(ProgressDrawTarget::stderr_with_hz(FRAMES_PER_SECOND)))
            }
            ProgressMode::Always => Some(bar(ProgressDrawTarget::term_like_with_hz(
                Box::new(AnyStderr),
                FRAMES_PER_SECOND,
            ))),
            ProgressMode::Log => Some(lines(LOG_EVERY, io::stderr())),
            ProgressMode::Auto | ProgressMode::Never => None,
        };
        Progress {
            shown,
            stages: Stages::default(),
            current: None,
        }
    }

    /// Nothing is shown.
    pub fn silent() -> Progress {
        Progress::new(ProgressMode::Never, false, true)
    }

    /// A stage begins; the one before ends. Whoever works counts on the meter.
    pub fn stage(&mut self, stage: Stage, step: &str, unit: Unit) -> Meter {
        self.turn(Some(stage));
        self.step(step, unit)
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

    /// A step begins: `reading shop`.
    pub fn step(&mut self, step: &str, unit: Unit) -> Meter {
        let meter = Meter::default();
        if let Some(shown) = &self.shown {
            let mut current = shown.step.lock().unwrap_or_else(PoisonError::into_inner);
            *current = Step::new(step, unit, meter.clone());
        }
        meter
    }

    /// The bar goes away, so that the report stands alone.
    pub fn finish(&mut self) {
        self.shown = None;
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
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
    fn something_is_shown_on_a_terminal_or_on_request() {
        let shows =
            |mode, is_terminal, quiet| Progress::new(mode, is_terminal, quiet).shown.is_some();
        for (mode, is_terminal, quiet, want) in [
            (ProgressMode::Auto, true, false, true),
            (ProgressMode::Auto, false, false, false),
            (ProgressMode::Auto, true, true, false),
            (ProgressMode::Always, false, true, true),
            (ProgressMode::Never, true, false, false),
            (ProgressMode::Log, false, true, true),
        ] {
            assert_eq!(shows(mode, is_terminal, quiet), want, "{mode}");
        }
    }

    #[test]
    fn the_stages_of_a_run_add_up() {
        let mut progress = Progress::silent();
        progress.stage(Stage::Fetch, "reading", Unit::Bytes);
        progress.stage(Stage::Compare, "comparing", Unit::Rows);
        progress.stage(Stage::Fetch, "reading", Unit::Bytes);
        let stages = progress.stages().clone();
        assert!(
            stages.of(Stage::Fetch) > Duration::ZERO && stages.of(Stage::Compare) > Duration::ZERO
        );
        assert_eq!(stages.of(Stage::Apply), Duration::ZERO);
    }

    #[test]
    fn a_bar_is_filled_as_far_as_a_step_is() {
        for (done, expected, want) in [
            (0, 0, ""),
            (0, 7, "[>         ] "),
            (35, 100, "[===>      ] "),
            (99, 100, "[=========>] "),
            (7, 7, "[==========] "),
            (u64::MAX, u64::MAX, "[==========] "),
        ] {
            let meter = Meter::default();
            meter.expect(expected);
            meter.add(done);
            assert_eq!(filled(&meter), want);
        }
    }

    #[test]
    fn a_step_tells_how_far_how_fast_and_how_long_still() {
        let seconds = Duration::from_secs;
        for (unit, done, expected, elapsed, want) in [
            (Unit::Rows, 0, 0, seconds(3), "3 s"),
            (
                Unit::Rows,
                12_300,
                0,
                seconds(30),
                "12,300 rows in 30 s, 410 rows/s",
            ),
            (
                Unit::Rows,
                1_000_000,
                4_000_000,
                seconds(20),
                "1,000,000 of 4,000,000 rows, 50,000 rows/s, 60 s left",
            ),
            (
                Unit::Bytes,
                3 << 20,
                4 << 20,
                seconds(2),
                "3.00 MiB of 4.00 MiB, 1.50 MiB/s, 1 s left",
            ),
            // At the end there is nothing left, at the beginning the first block may take no time at all.
            (
                Unit::Rows,
                5,
                5,
                Duration::ZERO,
                "5 of 5 rows, 5,000 rows/s, 0 s left",
            ),
        ] {
            let meter = Meter::default();
            meter.expect(expected);
            meter.add(done);
            let step = Step::new("reading", unit, meter);
            assert_eq!(step.figures(elapsed), want);
        }
    }

    #[test]
    fn lines_are_told_now_and_then_and_end_with_the_run() {
        #[derive(Clone, Default)]
        struct Told(Arc<Mutex<Vec<u8>>>);
        impl Write for Told {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.lock().expect("no panic").extend(bytes);
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let told = Told::default();
        let mut progress = Progress {
            shown: Some(lines(Duration::from_millis(2), told.clone())),
            ..Progress::silent()
        };
        let meter = progress.step("reading\u{1b}[2J shop", Unit::Rows);
        meter.add(7);
        let text = || String::from_utf8(told.0.lock().expect("no panic").clone()).expect("text");
        while !text().contains("shop: 7 rows in 0 s") {
            std::thread::sleep(Duration::from_millis(1));
        }
        progress.finish();
        let end = text();
        std::thread::sleep(Duration::from_millis(10));
        assert_eq!(text(), end, "nothing is told behind the end");
        assert!(!end.contains(['\u{1b}', '\r']), "{end:?}");
        assert!(
            end.lines().all(|line| line.starts_with("progress: ")),
            "{end}"
        );
    }
}
