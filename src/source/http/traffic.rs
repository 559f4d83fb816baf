//! What went over the wire for one source, for reports and monitors.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts of one source in one run. They only grow.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: AtomicU64,
    retries: AtomicU64,
    throttled: AtomicU64,
}

impl Traffic {
    /// Requests that were sent: those that were tried again and those that failed included.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// How often a request was tried again.
    pub fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed)
    }

    /// Answers that asked for fewer requests (status 429).
    pub fn throttled(&self) -> u64 {
        self.throttled.load(Ordering::Relaxed)
    }

    pub(super) fn sent(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn tried_again(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn answered(&self, status: u16) {
        const TOO_MANY_REQUESTS: u16 = 429;
        if status == TOO_MANY_REQUESTS {
            self.throttled.fetch_add(1, Ordering::Relaxed);
        }
    }
}
