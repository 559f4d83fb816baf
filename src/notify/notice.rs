//! What there is to tell of a run, and whether it is news.
//!
//! Pure. *News* are breaks that are new or worse, a failure other than the last run's, and the end of either. A break that
//! was acknowledged or closed and is open again is new: the time of silence is over, or what was seen has changed.

use std::collections::{HashMap, HashSet};

use super::When;
use crate::exit::Exit;
use crate::model::breaks::{Break, BreakState};
use crate::report::{BreakLine, OutcomeName, RunReport, figures};
use crate::time::Instant;

/// How the run before ended.
#[derive(Clone, Debug, Default)]
pub struct Before {
    /// Its exit code; `None` = there was none.
    pub exit_code: Option<u8>,
    /// The last report that there is, of that run or of an earlier one.
    pub report: Option<RunReport>,
}

impl Before {
    fn has_failed(&self) -> bool {
        let finished = [Exit::Ok.code(), Exit::Differences.code()];
        self.exit_code.is_some_and(|code| !finished.contains(&code))
    }

    fn open(&self) -> HashMap<&str, &Break> {
        let lines = self.report.iter().flat_map(figures::open);
        lines
            .map(|line| (line.item.id.as_str(), &line.item))
            .collect()
    }

    fn known(&self) -> impl Iterator<Item = &str> {
        let lines = self.report.iter().flat_map(|report| &report.breaks);
        lines.map(|line| line.item.id.as_str())
    }

    /// Whether a channel is known not to have got what the last run told it.
    pub fn missed(&self, channel: &str) -> bool {
        self.report.as_ref().is_some_and(|report| {
            report.deliveries.iter().any(|it| {
                it.channel == channel && it.status == crate::report::DeliveryStatus::Failed
            })
        })
    }
}

/// What there is to tell.
#[derive(Clone, Debug)]
pub struct Notice<'r> {
    /// The report.
    pub report: &'r RunReport,
    /// What kind of news it is.
    pub event: When,
    /// Whether it differs from what the last run told.
    pub is_news: bool,
    /// Breaks seen first, or open again, worst first.
    pub new: Vec<&'r BreakLine>,
    /// Breaks that were open and put more at risk now, worst first.
    pub worse: Vec<&'r BreakLine>,
    /// Open breaks that were told before.
    pub still_open: usize,
    /// Since when the oldest of those is open.
    pub still_open_since: Option<Instant>,
}

impl<'r> Notice<'r> {
    /// Looks at a report beside what was before it.
    pub fn of(report: &'r RunReport, before: &Before) -> Notice<'r> {
        let open_before = before.open();
        let known: HashSet<&str> = before.known().collect();
        let (mut new, mut worse, mut still) = (Vec::new(), Vec::new(), Vec::new());
        for line in figures::open(report) {
            match open_before.get(line.item.id.as_str()) {
                _ if line.is_new => new.push(line),
                Some(was) if is_worse(was, &line.item) => worse.push(line),
                Some(_) => still.push(line),
                // It was in the last report, but not open: acknowledged, closed, or closed by a repair.
                None if known.contains(line.item.id.as_str()) => new.push(line),
                None => still.push(line),
            }
        }
        figures::ordered(&mut new);
        figures::ordered(&mut worse);
        let has_failed = matches!(report.outcome.name, OutcomeName::Exit(_));
        let is_open = !(new.is_empty() && worse.is_empty() && still.is_empty());
        let was_bad = before.has_failed() || !open_before.is_empty();
        let (event, is_news) = if has_failed {
            let code = report.outcome.exit.code();
            let is_other = before.exit_code != Some(code) || !new.is_empty() || !worse.is_empty();
            (When::Failure, is_other)
        } else if is_open {
            let is_over = before.has_failed();
            (
                When::Breaks,
                is_over || !new.is_empty() || !worse.is_empty(),
            )
        } else if was_bad {
            (When::Recovery, true)
        } else {
            (When::Ok, false)
        };
        Notice {
            report,
            event,
            is_news,
            still_open: still.len(),
            still_open_since: still.iter().map(|line| line.item.first_seen_at).min(),
            new,
            worse,
        }
    }

    /// Whether a channel that asked for these is told. One that missed the last message gets this one in any case, unless
    /// there is nothing at all to tell.
    pub fn is_for(&self, when: &[When], has_missed: bool) -> bool {
        if when.contains(&When::Ok) {
            return true;
        }
        when.contains(&self.event) && (self.is_news || (has_missed && self.event != When::Ok))
    }

    /// The breaks that are written out: new, then worse.
    pub fn rows(&self) -> impl Iterator<Item = (&'static str, &'r BreakLine)> + '_ {
        let new = self.new.iter().map(|line| ("new", *line));
        new.chain(self.worse.iter().map(|line| ("worse", *line)))
    }

    /// One line that says it all, in plain text.
    pub fn headline(&self) -> String {
        let risk = figures::risk(self.report);
        let risk = if risk.is_empty() {
            "nothing at risk".to_owned()
        } else {
            format!("{} at risk", risk.join(" · "))
        };
        let outcome = &self.report.outcome;
        match self.event {
            When::Failure => format!(
                "{}: {} (exit {})",
                outcome.name.as_str().to_uppercase(),
                figures::verdict(self.report),
                outcome.exit.code()
            ),
            When::Recovery => format!("recovered: {risk}"),
            When::Ok => format!("in order: {risk}"),
            When::Breaks => {
                let mut parts = Vec::new();
                for (number, words) in [
                    (self.new.len(), "new"),
                    (self.worse.len(), "worse"),
                    (self.still_open, "still open"),
                ] {
                    if number > 0 {
                        parts.push(format!("{number} {words}"));
                    }
                }
                format!("{risk}: {}", parts.join(", "))
            }
        }
    }

    /// `20 still open, the oldest since …`; empty where none is.
    pub fn still(&self) -> String {
        match self.still_open_since {
            Some(since) => format!("{} still open, the oldest since {since}", self.still_open),
            None => String::new(),
        }
    }
}

/// More money at risk than before; in another currency is worse as well, and so is what nobody was silent about.
fn is_worse(was: &Break, is: &Break) -> bool {
    if was.state != BreakState::Open {
        return true;
    }
    match (was.at_risk(), is.at_risk()) {
        (Some(was), Some(is)) => {
            was.currency != is.currency || is.minor.unsigned_abs() > was.minor.unsigned_abs()
        }
        (None, Some(_)) => true,
        (_, None) => false,
    }
}
