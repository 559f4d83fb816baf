//! What answers an intent, as one source sees it.

use std::collections::{BTreeMap, BTreeSet};

use super::intent::{IntentKind, IntentStatus};
use super::operation::{Operation, OperationKind, OperationStatus, Operations};

/// How the operations of other sources that are linked with an intent stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// They failed, ran out, or all money came back: nothing stands there, nothing is awaited.
    Fell,
    /// The processor has not decided: pending, or a live hold.
    Waits,
    /// Money moved and stayed.
    Stands,
}

impl Standing {
    /// How operations stood that were forgotten: only what is settled is, so an intent says by itself how they left it.
    pub const fn settled(status: IntentStatus) -> Standing {
        match status {
            IntentStatus::Succeeded | IntentStatus::Lost => Standing::Stands,
            IntentStatus::Created | IntentStatus::Pending => Standing::Waits,
            IntentStatus::Failed
            | IntentStatus::Canceled
            | IntentStatus::Expired
            | IntentStatus::Won => Standing::Fell,
        }
    }
}

/// Who answers an intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Answer {
    /// No operation is linked with it.
    #[default]
    Nobody,
    /// Only operations of the source that asks.
    Here,
    /// Operations of other sources, whether or not some of this one do as well; or such as were forgotten, of whatever source.
    Elsewhere(Standing),
}

impl Answer {
    /// Whether any operation is linked with the intent.
    pub const fn is_linked(self) -> bool {
        !matches!(self, Answer::Nobody)
    }

    /// How other sources answer it.
    pub const fn elsewhere(self) -> Option<Standing> {
        match self {
            Answer::Nobody | Answer::Here => None,
            Answer::Elsewhere(standing) => Some(standing),
        }
    }
}

/// What other sources show of intents, as far as a verdict may depend on it: evidence, never rows that get a verdict.
#[derive(Clone, Debug, Default)]
pub struct Others {
    /// Operations of other sources.
    pub operations: Operations,
    /// For intents that any of them claims, by index: their indices in `operations`.
    pub claims: BTreeMap<usize, Vec<usize>>,
    /// Intents, by index, of which another source tells a break: nothing of the kind is said a second time.
    pub told: BTreeSet<usize>,
    /// Intents, by index, about which every source that was read whole has been asked.
    pub asked: BTreeSet<usize>,
}

impl Others {
    /// The operations of other sources that claim an intent.
    pub fn of(&self, intent: usize) -> impl Iterator<Item = Operation<'_>> {
        let rows = self.claims.get(&intent).map_or(&[][..], Vec::as_slice);
        rows.iter().map(|&row| self.operations.get(row))
    }
}

/// Adds up the operations of other sources that are linked with one intent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standings {
    moved_minor: i128,
    is_waiting: bool,
    is_zero_success: bool,
}

impl Standings {
    /// Counts a linked operation. Of it, kind, status and money are read.
    pub fn add(&mut self, operation: &Operation<'_>) {
        let is_success = operation.status == OperationStatus::Succeeded;
        if operation.moved_money() {
            self.moved_minor += i128::from(operation.amount_minor);
        } else if is_success && operation.amount_minor == 0 && !operation.kind.is_hold() {
            self.is_zero_success = true;
        } else {
            self.is_waiting |= operation.status == OperationStatus::Pending
                || (is_success && operation.kind == OperationKind::Authorization);
        }
    }

    /// How they stand, for an intent of this kind.
    pub fn standing(&self, kind: IntentKind) -> Standing {
        if self.moved_minor * i128::from(kind.direction()) > 0 || self.is_zero_success {
            Standing::Stands
        } else if self.is_waiting {
            Standing::Waits
        } else {
            Standing::Fell
        }
    }
}
