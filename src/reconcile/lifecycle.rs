//! The decision table: what a linked pair whose amount and currency agree means, by local and processor status.
//!
//! It stands here once. The judge looks up in it, the README's table is printed from it, and a test walks every cell.

use std::fmt::Write as _;

use crate::model::intent::{IntentKind, IntentStatus};

/// The local side of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Local {
    /// Created or pending.
    Open,
    /// Succeeded.
    Succeeded,
    /// Failed.
    Failed,
    /// Canceled or expired.
    Closed,
    /// A dispute, whatever its status.
    Dispute,
}

/// The processor's side of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Processor {
    /// Not decided, no money moved.
    Pending,
    /// Money moved and stayed.
    Succeeded,
    /// Failed, canceled, or the money came back.
    Failed,
    /// A hold that ran out.
    Expired,
}

/// A cell of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    /// Wait; the link is kept.
    Pending,
    /// In order.
    Matched,
    /// `status_behind`: the local row is brought forward.
    Behind,
    /// `status_behind` when the match is unique and the logical payment is not satisfied yet; else a duplicate.
    BehindIfUnique,
    /// The operation is ignored as `failed_attempt`, the intent stays as it is; a failure that is final is `status_behind`.
    FailedAttempt,
    /// `status_reversed`; for a payout `payout_returned`.
    Reversed,
    /// Pending within grace, then `status_ahead`.
    AheadAfterGrace,
    /// Pending within grace, then `status_conflict`.
    ConflictAfterGrace,
    /// `status_conflict`; a row that was called off is never opened again.
    Conflict,
    /// The dispute stays pending, money taken or not.
    StaysPending,
    /// Money taken and not returned: lost; returned: won.
    WonOrLost,
    /// The operation is ignored as `no_money`.
    NoMoney,
    /// Does not occur.
    Nothing,
}

impl Local {
    /// Every row, in the table's order.
    pub const ALL: [Local; 5] = [
        Local::Open,
        Local::Succeeded,
        Local::Failed,
        Local::Closed,
        Local::Dispute,
    ];

    /// The row of an intent.
    pub const fn of(kind: IntentKind, status: IntentStatus) -> Local {
        match (kind, status) {
            (IntentKind::Dispute, _) | (_, IntentStatus::Won | IntentStatus::Lost) => {
                Local::Dispute
            }
            (_, IntentStatus::Created | IntentStatus::Pending) => Local::Open,
            (_, IntentStatus::Succeeded) => Local::Succeeded,
            (_, IntentStatus::Failed) => Local::Failed,
            (_, IntentStatus::Canceled | IntentStatus::Expired) => Local::Closed,
        }
    }

    const fn label(self) -> &'static str {
        match self {
            Local::Open => "created, pending",
            Local::Succeeded => "succeeded",
            Local::Failed => "failed",
            Local::Closed => "canceled, expired",
            Local::Dispute => "dispute (pending, won, lost)",
        }
    }
}

impl Processor {
    /// Every column, in the table's order.
    pub const ALL: [Processor; 4] = [
        Processor::Pending,
        Processor::Succeeded,
        Processor::Failed,
        Processor::Expired,
    ];

    const fn label(self) -> &'static str {
        match self {
            Processor::Pending => "pending",
            Processor::Succeeded => "succeeded (money moved)",
            Processor::Failed => "failed, canceled",
            Processor::Expired => "expired (hold)",
        }
    }
}

impl Cell {
    const fn label(self) -> &'static str {
        match self {
            Cell::Pending => "pending; link kept",
            Cell::Matched => "matched",
            Cell::Behind => "`status_behind`: set_status",
            Cell::BehindIfUnique => {
                "`status_behind` when the match is unique and the logical payment not yet satisfied; else `duplicate_*`"
            }
            Cell::FailedAttempt => {
                "ignored `failed_attempt`, intent unchanged; a failure that the profile calls final: `status_behind`"
            }
            Cell::Reversed => "`status_reversed` (a payout: `payout_returned`)",
            Cell::AheadAfterGrace => "pending within grace, then `status_ahead`",
            Cell::ConflictAfterGrace => "pending within grace, then `status_conflict`",
            Cell::Conflict => "`status_conflict`, never re-opened",
            Cell::StaysPending => "stays pending, money taken or not",
            Cell::WonOrLost => "money taken and not returned: lost; returned: won",
            Cell::NoMoney => "ignored `no_money`",
            Cell::Nothing => "–",
        }
    }
}

/// The table, rows by [`Local::ALL`], columns by [`Processor::ALL`].
const TABLE: [[Cell; 4]; 5] = [
    [
        Cell::Pending,
        Cell::Behind,
        Cell::FailedAttempt,
        Cell::Behind,
    ],
    [
        Cell::AheadAfterGrace,
        Cell::Matched,
        Cell::Reversed,
        Cell::Reversed,
    ],
    [
        Cell::ConflictAfterGrace,
        Cell::BehindIfUnique,
        Cell::Matched,
        Cell::Matched,
    ],
    [
        Cell::ConflictAfterGrace,
        Cell::Conflict,
        Cell::Matched,
        Cell::Matched,
    ],
    [
        Cell::StaysPending,
        Cell::WonOrLost,
        Cell::NoMoney,
        Cell::Nothing,
    ],
];

/// What a pair means.
pub const fn cell(local: Local, processor: Processor) -> Cell {
    TABLE[local as usize][processor as usize]
}

/// The table as the README shows it.
pub fn markdown() -> String {
    let mut table = String::from("| local ↓ · processor → |");
    for column in Processor::ALL {
        write!(table, " {} |", column.label()).expect("a string takes everything");
    }
    table.push_str("\n|---|---|---|---|---|\n");
    for row in Local::ALL {
        write!(table, "| {} |", row.label()).expect("a string takes everything");
        for column in Processor::ALL {
            write!(table, " {} |", cell(row, column).label()).expect("a string takes everything");
        }
        table.push('\n');
    }
    table
}
