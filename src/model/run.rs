//! A run: its window, what it covers, its watermark, and its figures.

use std::collections::BTreeMap;

use super::words;
use crate::money::Currency;
use crate::time::{Instant, Span};

words! {
    /// Where a window comes from.
    Basis {
        /// From the watermark.
        Watermark = "watermark",
        /// Given by hand; never moves the watermark.
        Range = "range",
        /// Everything in the files (`diff`).
        Files = "files",
    }
}

/// The half-open time whose rows get a verdict: `[from, to)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Inclusive.
    pub from: Instant,
    /// Exclusive.
    pub to: Instant,
    /// Where it comes from.
    pub basis: Basis,
}

impl Window {
    /// Whether an instant lies inside.
    pub fn contains(&self, at: Instant) -> bool {
        self.from <= at && at < self.to
    }
}

/// Until when a file claims to be complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompleteThrough {
    /// Up to its newest row that is not later than `as_of`.
    LastRow,
    /// Up to the run's `as_of`.
    AsOf,
    /// Up to an instant.
    At(Instant),
}

/// How far a source has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watermark {
    /// Everything in `[low, hi]` that the source had made visible by `as_of` is stored. Inclusive.
    pub hi: Instant,
    /// Start of contiguous coverage.
    pub low: Instant,
    /// "Now" of the run that wrote it.
    pub as_of: Instant,
    /// Lag of that run.
    pub lag: Span,
    /// Lookback of that run.
    pub lookback: Span,
    /// Content hash of the files of that run; empty = not from files.
    pub feed_hash: String,
    /// The highest number that was read of each series of numbered reports, by what the names of its files have in common;
    /// and how far the transactions of our own table had ended, where its rows bear their numbers.
    pub series: BTreeMap<String, u64>,
    /// Hash of the settings that shape coverage.
    pub config_hash: String,
    /// The run that wrote it; empty = set by hand.
    pub run_id: String,
}

/// Whose account a source reads, and of which mode: what its first run found, and every later one has to find again.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Pin {
    /// As the processor calls the account; empty = it does not say.
    pub account: String,
    /// `account` of the source, as it is configured, which is part of the identity of rows; empty = none.
    pub declared: String,
    /// `live` or `test`; empty = let go by hand, so that the next run pins anew.
    pub mode: String,
}

/// Sums of one currency, in minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total {
    /// The currency.
    pub currency: Currency,
    /// Charges and captures that moved money, as the customer saw them.
    pub gross: i128,
    /// Every fee column plus the fee rows; positive = costs us.
    pub fees: i128,
    /// Nets of everything but payouts.
    pub net: i128,
    /// The part of gross that has a match.
    pub matched: i128,
    /// The rest of gross after this run's repairs.
    pub unreconciled: i128,
    /// Σ |delta or money| of open breaks.
    pub at_risk: i128,
}

impl Total {
    /// All zero.
    pub const fn zero(currency: Currency) -> Total {
        Total {
            currency,
            gross: 0,
            fees: 0,
            net: 0,
            matched: 0,
            unreconciled: 0,
            at_risk: 0,
        }
    }
}

/// How many rows of one side went where. `read` is counted on the way in, the rest on the way out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tally {
    /// Rows in scope.
    pub read: u64,
    /// In order.
    pub matched: u64,
    /// Too early to tell.
    pub pending: u64,
    /// Counted and listed.
    pub ignored: u64,
    /// A break is open.
    pub unmatched: u64,
}

impl Tally {
    /// Whether counts in equal counts out.
    pub fn adds_up(&self) -> bool {
        self.read == self.matched + self.pending + self.ignored + self.unmatched
    }
}
