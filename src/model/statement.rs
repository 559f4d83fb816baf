//! The statement of a run: per currency, how what was open became what is open, and why the two sides differ.
//!
//! Both close to zero. *Open items*: opening + new + changed − cleared = closing. *The two sides*: processor − local = the
//! sum of what explains it. A residual that is not zero is a bug or money that nobody has explained, and is shown as such.

use crate::money::Currency;

/// Amounts at risk (|difference or amount|) of breaks that a person has to end, in minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OpenItems {
    /// Open or acknowledged before the run.
    pub opening: i128,
    /// Seen first, or opened again, in this run.
    pub new: i128,
    /// What persisting items grew by; negative = shrank.
    pub changed: i128,
    /// Seen in order again, or closed by a repair of this run; positive.
    pub cleared: i128,
    /// Open or acknowledged after the run, counted from the breaks of the report.
    pub closing: i128,
    /// The part of `closing` that a person acknowledged, and that is not at risk in the headline.
    pub acknowledged: i128,
}

impl OpenItems {
    /// What does not add up: opening + new + changed − cleared − closing.
    pub const fn residual(&self) -> i128 {
        self.opening + self.new + self.changed - self.cleared - self.closing
    }

    /// Adds the items of another part of the run.
    pub const fn add(&mut self, other: &OpenItems) {
        self.opening += other.opening;
        self.new += other.new;
        self.changed += other.changed;
        self.cleared += other.cleared;
        self.closing += other.closing;
        self.acknowledged += other.acknowledged;
    }
}

/// What one cause contributes to the difference between the two sides, in minor units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// `matched`, `matched_elsewhere`, `pending`, a reason for which rows are ignored, or a class of breaks.
    pub code: String,
    /// Operations in it that moved money.
    pub operations: u64,
    /// Intents in it that claim money.
    pub intents: u64,
    /// Σ of the operations, as they moved our balance at the processor, before fees; signed.
    pub processor: i128,
    /// Σ of the intents, signed by their kind: a charge is positive, a refund, payout or dispute negative.
    pub local: i128,
}

impl Explained {
    /// What it explains.
    pub const fn difference(&self) -> i128 {
        self.processor - self.local
    }
}

/// Why the processor's total and ours differ, over the rows in scope, as our rows stood before this run's repairs.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Bridge {
    /// Σ of all operations that moved money, whether explained or not.
    pub processor: i128,
    /// Σ of all intents that claim money, whether explained or not.
    pub local: i128,
    /// By cause, sorted by code.
    pub explained: Vec<Explained>,
}

impl Bridge {
    /// Processor − local.
    pub const fn difference(&self) -> i128 {
        self.processor - self.local
    }

    /// What nothing explains: the difference without the sum of what is explained.
    pub fn residual(&self) -> i128 {
        self.difference()
            - self
                .explained
                .iter()
                .map(Explained::difference)
                .sum::<i128>()
    }

    /// Counts a row to a cause.
    pub fn explain(&mut self, code: &str, side: Side, amount: i128) {
        let at = match self
            .explained
            .binary_search_by(|line| line.code.as_str().cmp(code))
        {
            Ok(at) => at,
            Err(at) => {
                self.explained.insert(
                    at,
                    Explained {
                        code: code.to_owned(),
                        operations: 0,
                        intents: 0,
                        processor: 0,
                        local: 0,
                    },
                );
                at
            }
        };
        let line = &mut self.explained[at];
        match side {
            Side::Processor => {
                line.operations += 1;
                line.processor += amount;
            }
            Side::Local => {
                line.intents += 1;
                line.local += amount;
            }
        }
    }

    /// Adds the rows of another part of the run.
    pub fn add(&mut self, other: &Bridge) {
        self.processor += other.processor;
        self.local += other.local;
        for line in &other.explained {
            match self
                .explained
                .binary_search_by(|own| own.code.cmp(&line.code))
            {
                Ok(at) => {
                    let own = &mut self.explained[at];
                    own.operations += line.operations;
                    own.intents += line.intents;
                    own.processor += line.processor;
                    own.local += line.local;
                }
                Err(at) => self.explained.insert(at, line.clone()),
            }
        }
    }
}

/// Whose row it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// An operation.
    Processor,
    /// An intent.
    Local,
}

/// The statement of one currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// The currency.
    pub currency: Currency,
    /// How what was open became what is open.
    pub items: OpenItems,
    /// Why the two sides differ.
    pub bridge: Bridge,
}

impl Statement {
    /// Whether both parts close to zero.
    pub fn closes(&self) -> bool {
        self.items.residual() == 0 && self.bridge.residual() == 0
    }
}

/// Rows of the processor's side on one civil day, by what became of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DayLine {
    /// The day in the configured zone, `2026-03-09`.
    pub day: String,
    /// In order.
    pub matched: u64,
    /// Too early to tell.
    pub pending: u64,
    /// Counted and listed; asks nothing.
    pub ignored: u64,
    /// A break is open.
    pub unmatched: u64,
}

/// How late rows arrived that an earlier run could not have seen: they happened before the watermark that this run began
/// from, and were seen first in this run.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Lateness {
    /// Rows seen first in this run.
    pub arrived: u64,
    /// Those of them that happened before the watermark, by how far: one count for each of [`Lateness::BOUNDS`], and one
    /// for what lies beyond.
    pub late: Vec<u64>,
    /// How far the latest of them lies before the watermark, in seconds; 0 = none.
    pub latest_seconds: i64,
    /// What was younger than this was not judged yet, in seconds.
    pub lag_seconds: i64,
    /// How far before the watermark this run read again, in seconds.
    pub lookback_seconds: i64,
}

impl Lateness {
    /// Upper bounds of the bins, in seconds, inclusive: 1 h, 6 h, 1 d, 3 d, 7 d.
    pub const BOUNDS: [i64; 5] = [3600, 21_600, 86_400, 259_200, 604_800];

    /// Counts a row that came so late.
    pub fn count(&mut self, seconds: i64) {
        self.late.resize(Self::BOUNDS.len() + 1, 0);
        let bin = Self::BOUNDS
            .iter()
            .position(|bound| seconds <= *bound)
            .unwrap_or(Self::BOUNDS.len());
        self.late[bin] += 1;
        self.latest_seconds = self.latest_seconds.max(seconds);
    }

    /// How many came late.
    pub fn late_rows(&self) -> u64 {
        self.late.iter().sum()
    }
}
