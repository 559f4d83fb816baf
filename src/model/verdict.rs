//! Verdicts: what became of each row in scope.

use super::words;
use crate::time::Instant;

words! {
    /// Why a row is counted and listed, but asks nothing of anybody. It stays part of payout and fee sums.
    IgnoreReason {
        /// An attempt that did not work; no money moved.
        FailedAttempt = "failed_attempt",
        /// A fee of the account.
        AccountLevelFee = "account_level_fee",
        /// A payout, adjustment or transfer that no local row asks for.
        AccountLevel = "account_level",
        /// A stage of a payment whose money stands on another row.
        LifeCycle = "life_cycle",
        /// Money on hold that nothing waits for.
        Hold = "hold",
        /// One leg of a currency conversion.
        Conversion = "conversion",
        /// A row of another site or scope on the same account; out of the totals.
        OtherScope = "other_scope",
        /// A row of the other mode; out of the totals.
        TestMode = "test_mode",
        /// A row that names an amount and moved none.
        NoMoney = "no_money",
        /// A local row that claims no money and that the processor never saw.
        Abandoned = "abandoned",
        /// Money that came and went back in full, and that nothing asks for any more.
        ReturnedInFull = "returned_in_full",
    }
}

impl IgnoreReason {
    /// Whether the row is kept out of gross, fees and net.
    pub const fn is_out_of_totals(self) -> bool {
        matches!(self, IgnoreReason::OtherScope | IgnoreReason::TestMode)
    }
}

words! {
    /// The rule that linked an operation with an intent, strongest first.
    Rule {
        /// The intent's `processor_ref` is the operation's id or object.
        ProcessorRef = "processor_ref",
        /// The operation's reference is the intent's reference, id or idempotency key.
        Reference = "reference",
        /// The operation's reference is a `parent_intent_id` that several intents share.
        SharedReference = "shared_reference",
        /// The reference was cut by the processor, as declared.
        ReferenceTruncated = "reference_truncated",
        /// Found through the row it names as its parent.
        Parent = "parent",
        /// Captures that add up to the intent.
        Sum = "sum",
    }
}

/// What became of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Disposition {
    /// Known for linking only; no verdict is given.
    #[default]
    OutOfScope,
    /// In order, or brought in order by a repair of this run.
    Matched,
    /// Too early to tell.
    Pending,
    /// Counted and listed; asks nothing.
    Ignored(IgnoreReason),
    /// A break is open about it.
    Unmatched,
}

/// An operation that is linked with an intent whose amount and currency agree. Captures that add up give one match each
/// under the same intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Index of the intent in the snapshot.
    pub intent: usize,
    /// Index of the operation in the snapshot.
    pub operation: usize,
    /// Why they belong together.
    pub rule: Rule,
    /// Tolerated or rounded difference, operation minus intent, in minor units of the operation's currency.
    pub delta_minor: i64,
}

/// A row whose time has not come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Index of the intent in the snapshot.
    pub intent: Option<usize>,
    /// Index of the operation in the snapshot.
    pub operation: Option<usize>,
    /// When a verdict is due.
    pub due_at: Option<Instant>,
    /// What is being waited for.
    pub why: &'static str,
}
