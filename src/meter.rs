//! How far a piece of work is, for whoever waits for it.
//!
//! Whoever works counts, block by block; whoever shows it looks now and then. Nothing is ever decided by a meter, and it
//! knows neither a clock nor a screen.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Rows between two counts: often enough for an eye, seldom enough to cost nothing.
const BLOCK_ROWS: usize = 1024;

/// What is done, and of how much. Clones are one meter.
#[derive(Clone, Debug, Default)]
pub struct Meter(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    expected: AtomicU64,
}

impl Meter {
    /// So much more is to be done.
    pub fn expect(&self, more: u64) {
        self.0.expected.fetch_add(more, Ordering::Relaxed);
    }

    /// So much more is done.
    pub fn add(&self, more: u64) {
        self.0.done.fetch_add(more, Ordering::Relaxed);
    }

    /// A row of a batch is dealt with, counted from 0; counts whole blocks of them.
    #[inline]
    pub fn pass(&self, row: usize) {
        if row % BLOCK_ROWS == BLOCK_ROWS - 1 {
            self.add(BLOCK_ROWS as u64);
        }
    }

    /// What is done so far; never more than is to be done, where that is known.
    pub fn done(&self) -> u64 {
        let done = self.0.done.load(Ordering::Relaxed);
        self.expected().map_or(done, |expected| done.min(expected))
    }

    /// What is to be done in all; `None` where nobody knows.
    pub fn expected(&self) -> Option<u64> {
        match self.0.expected.load(Ordering::Relaxed) {
            0 => None,
            expected => Some(expected),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_counted_and_never_more_than_there_is() {
        let meter = Meter::default();
        for row in 0..3000 {
            meter.clone().pass(row);
        }
        assert_eq!((meter.done(), meter.expected()), (2048, None));
        meter.expect(2000);
        assert_eq!((meter.done(), meter.expected()), (2000, Some(2000)));
    }
}
