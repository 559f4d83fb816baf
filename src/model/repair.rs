//! Repairs: local writes that close breaks, planned by the core and written once.

use super::breaks::BreakClass;
use super::intent::{IntentKind, IntentStatus};
use super::words;
use crate::money::Money;
use crate::time::Instant;

words! {
    /// What a repair writes.
    RepairAction {
        /// The status of an intent, and its `processor_ref` when that is empty.
        SetStatus = "set_status",
        /// The `processor_ref` of an intent.
        Link = "link",
        /// A refund row of its own.
        RecordRefund = "record_refund",
        /// A dispute row of its own.
        RecordDispute = "record_dispute",
        /// Nothing: it tells your own software that an intent may be sent again under its own key, until an instant.
        Redrive = "redrive",
    }
}

words! {
    /// Where a repair stands. The ledger is append-only: each step is an event of its own.
    RepairState {
        /// Dry run: would be written.
        Planned = "planned",
        /// Written, waits for approval.
        Proposed = "proposed",
        /// Approved, not applied yet.
        Approved = "approved",
        /// On its way into the company's own table: whether it got there is known when it moves on.
        Claimed = "claimed",
        /// Applied.
        Applied = "applied",
        /// A later import shows the same.
        Confirmed = "confirmed",
        /// Turned down by a person.
        Rejected = "rejected",
        /// The row had changed; nothing was overwritten.
        Failed = "failed",
        /// Something newer took its place.
        Superseded = "superseded",
    }
}

/// One side of a repair: the columns of an intent that it reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairSide {
    /// Only for recorded rows.
    pub kind: Option<IntentKind>,
    /// The status.
    pub status: IntentStatus,
    /// The processor's id; empty = none.
    pub processor_ref: String,
    /// Only for recorded rows; empty = none.
    pub parent_intent_id: String,
    /// Only for recorded rows: a positive amount.
    pub money: Option<Money>,
}

/// A repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Hash of (source, class, subject, action, content, version): the same repair twice is impossible. 32 hex digits.
    pub id: String,
    /// The break it belongs to.
    pub break_id: String,
    /// The source.
    pub source: String,
    /// The class of the break.
    pub class: BreakClass,
    /// What it writes.
    pub action: RepairAction,
    /// The intent that is changed, or the id of the row that is recorded.
    pub intent_id: String,
    /// The operation that shows the need.
    pub operation_id: String,
    /// Account of the operation; empty = none.
    pub account: String,
    /// As the row was read; `None` for a recorded row.
    pub from: Option<RepairSide>,
    /// As it stands after the repair.
    pub to: RepairSide,
    /// The version of the row it was planned against; 0 for a recorded row.
    pub planned_version: u32,
    /// Where it stands.
    pub state: RepairState,
    /// When the operation happened: consumers may suppress receipts for old events.
    pub occurred_at: Instant,
    /// Which condition of `[repair]` let it pass or held it back; empty = there was none to ask. It is not part of the id,
    /// and is kept with the step of the ledger that it explains.
    pub note: String,
    /// Only of `redrive`: until when it may be sent again. From then on it is void, whoever holds it.
    pub expires_at: Option<Instant>,
    /// Only of `redrive`: the key that it was sent under first, and the only one that it may be sent under again; else empty.
    pub idempotency_key: String,
}
