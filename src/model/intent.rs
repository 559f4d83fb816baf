//! Intents: what our own software recorded that it meant to happen, kept as columns.

use super::operation::Family;
use super::text::{Arena, Text};
use super::words;
use crate::money::Currency;
use crate::time::Instant;

words! {
    /// What was meant to happen; gives the direction of the money.
    IntentKind {
        /// Money in.
        Charge = "charge",
        /// Money back to the payer.
        Refund = "refund",
        /// Money to our bank.
        Payout = "payout",
        /// Money taken by the payer's bank.
        Dispute = "dispute",
    }
}

words! {
    /// What our own software believes became of it.
    IntentStatus {
        /// Recorded, not sent yet.
        Created = "created",
        /// Sent, not decided.
        Pending = "pending",
        /// Done.
        Succeeded = "succeeded",
        /// Did not work.
        Failed = "failed",
        /// Called off.
        Canceled = "canceled",
        /// Ran out of time.
        Expired = "expired",
        /// A dispute that was decided for us.
        Won = "won",
        /// A dispute that was decided against us.
        Lost = "lost",
    }
}

impl IntentKind {
    /// The family of operations that can satisfy it.
    pub const fn family(self) -> Family {
        match self {
            IntentKind::Charge => Family::Charge,
            IntentKind::Refund => Family::Refund,
            IntentKind::Payout => Family::Payout,
            IntentKind::Dispute => Family::Dispute,
        }
    }

    /// +1 when the operation makes our balance at the processor grow, −1 when it makes it shrink.
    pub const fn direction(self) -> i64 {
        match self {
            IntentKind::Charge => 1,
            IntentKind::Refund | IntentKind::Payout | IntentKind::Dispute => -1,
        }
    }
}

impl IntentStatus {
    /// Created or pending.
    pub const fn is_open(self) -> bool {
        matches!(self, IntentStatus::Created | IntentStatus::Pending)
    }
}

/// One intent, borrowed from a batch or from anywhere else. Empty text means "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Intent<'a> {
    /// Our id. Text, untouched.
    pub intent_id: &'a str,
    /// The key that was sent to the processor.
    pub idempotency_key: &'a str,
    /// What was meant.
    pub kind: IntentKind,
    /// Positive, in minor units.
    pub amount_minor: i64,
    /// Currency of the amount.
    pub currency: Currency,
    /// What we believe became of it.
    pub status: IntentStatus,
    /// When it was recorded, before the processor was called.
    pub created_at: Instant,
    /// The processor's id for it, once known.
    pub processor_ref: &'a str,
    /// Which attempt at the same thing this row is.
    pub attempt: Option<u32>,
    /// For a refund or dispute its payment; on charges the logical payment that attempts or parts share.
    pub parent_intent_id: &'a str,
    /// What was sent to the processor as our reference, where that is neither id nor key.
    pub reference: &'a str,
    /// The source that owns this intent; empty = any.
    pub source: &'a str,
    /// When it was first sent.
    pub first_attempt_at: Option<Instant>,
    /// The amount as it was written, where declared rounding changed it.
    pub written_amount: &'a str,
    /// Why the row cannot be used, with its evidence. Empty = it can.
    pub invalid: &'a str,
    /// Whether paysweep recorded the row itself (a `record_refund` or `record_dispute`).
    pub is_recorded: bool,
    /// Grows by one with every change; a repair is planned against a version. 1 for a row seen first.
    pub version: u32,
}

impl Intent<'_> {
    /// An intent of nothing: for readers and tests to fill in.
    pub const EMPTY: Intent<'static> = Intent {
        intent_id: "",
        idempotency_key: "",
        kind: IntentKind::Charge,
        amount_minor: 0,
        currency: Currency::NONE,
        status: IntentStatus::Created,
        created_at: Instant(0),
        processor_ref: "",
        attempt: None,
        parent_intent_id: "",
        reference: "",
        source: "",
        first_attempt_at: None,
        written_amount: "",
        invalid: "",
        is_recorded: false,
        version: 1,
    };

    /// Whether the row says that money moved: succeeded; for disputes pending or lost.
    pub const fn claims_money(&self) -> bool {
        match self.kind {
            IntentKind::Dispute => {
                matches!(
                    self.status,
                    IntentStatus::Succeeded | IntentStatus::Pending | IntentStatus::Lost
                )
            }
            IntentKind::Charge | IntentKind::Refund | IntentKind::Payout => {
                matches!(self.status, IntentStatus::Succeeded)
            }
        }
    }
}

/// A batch of intents as columns over one text arena.
#[derive(Clone, Debug, Default)]
#[allow(
    missing_docs,
    reason = "the columns are the fields of Intent, documented there"
)]
pub struct Intents {
    pub text: Arena,
    pub intent_id: Vec<Text>,
    pub idempotency_key: Vec<Text>,
    pub kind: Vec<IntentKind>,
    pub amount_minor: Vec<i64>,
    pub currency: Vec<Currency>,
    pub status: Vec<IntentStatus>,
    pub created_at: Vec<Instant>,
    pub processor_ref: Vec<Text>,
    pub attempt: Vec<Option<u32>>,
    pub parent_intent_id: Vec<Text>,
    pub reference: Vec<Text>,
    pub source: Vec<Text>,
    pub first_attempt_at: Vec<Option<Instant>>,
    pub written_amount: Vec<Text>,
    pub invalid: Vec<Text>,
    pub is_recorded: Vec<bool>,
    pub version: Vec<u32>,
}

impl Intents {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Adds a row; returns its index.
    pub fn push(&mut self, row: &Intent<'_>) -> usize {
        let index = self.len();
        self.intent_id.push(self.text.push(row.intent_id));
        self.idempotency_key
            .push(self.text.push(row.idempotency_key));
        self.kind.push(row.kind);
        self.amount_minor.push(row.amount_minor);
        self.currency.push(row.currency);
        self.status.push(row.status);
        self.created_at.push(row.created_at);
        self.processor_ref.push(self.text.push(row.processor_ref));
        self.attempt.push(row.attempt);
        self.parent_intent_id
            .push(self.text.push(row.parent_intent_id));
        self.reference.push(self.text.push(row.reference));
        self.source.push(self.text.push(row.source));
        self.first_attempt_at.push(row.first_attempt_at);
        self.written_amount.push(self.text.push(row.written_amount));
        self.invalid.push(self.text.push(row.invalid));
        self.is_recorded.push(row.is_recorded);
        self.version.push(row.version);
        index
    }

    /// The row at an index.
    pub fn get(&self, index: usize) -> Intent<'_> {
        Intent {
            intent_id: self.text.get(self.intent_id[index]),
            idempotency_key: self.text.get(self.idempotency_key[index]),
            kind: self.kind[index],
            amount_minor: self.amount_minor[index],
            currency: self.currency[index],
            status: self.status[index],
            created_at: self.created_at[index],
            processor_ref: self.text.get(self.processor_ref[index]),
            attempt: self.attempt[index],
            parent_intent_id: self.text.get(self.parent_intent_id[index]),
            reference: self.text.get(self.reference[index]),
            source: self.text.get(self.source[index]),
            first_attempt_at: self.first_attempt_at[index],
            written_amount: self.text.get(self.written_amount[index]),
            invalid: self.text.get(self.invalid[index]),
            is_recorded: self.is_recorded[index],
            version: self.version[index],
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Intent<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}
