//! Operations: what the processor says happened, kept as columns.

use super::text::{Arena, Text};
use super::verdict::IgnoreReason;
use super::words;
use crate::money::Currency;
use crate::time::Instant;

words! {
    /// What kind of thing happened.
    OperationKind {
        /// A payment that was taken.
        Charge = "charge",
        /// A hold on the payer's money; no money has moved.
        Authorization = "authorization",
        /// Money taken from a hold.
        Capture = "capture",
        /// A hold that was let go.
        Void = "void",
        /// Money given back to the payer.
        Refund = "refund",
        /// A refund that came back.
        RefundFailure = "refund_failure",
        /// Money taken from us by the payer's bank.
        Dispute = "dispute",
        /// Disputed money that was returned to us.
        DisputeReversal = "dispute_reversal",
        /// The processor's charge, or its return.
        Fee = "fee",
        /// Money sent to our bank.
        Payout = "payout",
        /// A payout that came back from the bank.
        PayoutFailure = "payout_failure",
        /// Money moved between our own balances.
        Transfer = "transfer",
        /// Money set aside by the processor.
        ReserveHold = "reserve_hold",
        /// Money that was set aside, released.
        ReserveRelease = "reserve_release",
        /// One leg of a currency conversion.
        Conversion = "conversion",
        /// A correction by the processor.
        Adjustment = "adjustment",
        /// Known to the profile, none of the above.
        Other = "other",
    }
}

words! {
    /// What the processor says became of it. An unmapped word is `Unknown`, never success and never failure.
    OperationStatus {
        /// Not decided yet.
        Pending = "pending",
        /// Done.
        Succeeded = "succeeded",
        /// Did not work.
        Failed = "failed",
        /// Was called off.
        Canceled = "canceled",
        /// Ran out of time.
        Expired = "expired",
        /// A word that the profile does not know.
        Unknown = "unknown",
    }
}

words! {
    /// Where an operation's id comes from.
    IdKind {
        /// The processor's own id.
        Native = "native",
        /// Several fields of the processor, joined.
        Composite = "composite",
        /// The row's content and its occurrence number. Never written into an intent.
        Synthetic = "synthetic",
    }
}

words! {
    /// Operations that speak of the same kind of intent.
    Family {
        /// Authorization, capture, void, charge.
        Charge = "charge",
        /// Refund, refund failure.
        Refund = "refund",
        /// Dispute, dispute reversal.
        Dispute = "dispute",
        /// Payout, payout failure.
        Payout = "payout",
    }
}

impl OperationKind {
    /// The family, or `None` for kinds that no intent asks for.
    pub const fn family(self) -> Option<Family> {
        match self {
            OperationKind::Charge
            | OperationKind::Authorization
            | OperationKind::Capture
            | OperationKind::Void => Some(Family::Charge),
            OperationKind::Refund | OperationKind::RefundFailure => Some(Family::Refund),
            OperationKind::Dispute | OperationKind::DisputeReversal => Some(Family::Dispute),
            OperationKind::Payout | OperationKind::PayoutFailure => Some(Family::Payout),
            OperationKind::Fee
            | OperationKind::Transfer
            | OperationKind::ReserveHold
            | OperationKind::ReserveRelease
            | OperationKind::Conversion
            | OperationKind::Adjustment
            | OperationKind::Other => None,
        }
    }

    /// Whether rows of this kind are holds or life-cycle facts, which without a net never count as money.
    pub const fn is_hold(self) -> bool {
        matches!(
            self,
            OperationKind::Authorization
                | OperationKind::Void
                | OperationKind::ReserveHold
                | OperationKind::ReserveRelease
        )
    }

    /// Whether the row gives back what another row took: it follows the row it names.
    pub const fn is_return(self) -> bool {
        matches!(
            self,
            OperationKind::RefundFailure
                | OperationKind::DisputeReversal
                | OperationKind::PayoutFailure
        )
    }
}

/// One operation, borrowed from a batch or from anywhere else.
///
/// Money is signed from the point of view of our balance at the processor: positive = it grows. A fee is positive when
/// it costs. Empty text means "none".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation<'a> {
    /// Identity inside (source, account). Text, untouched.
    pub operation_id: &'a str,
    /// Merchant account, store or location; part of the identity. Often empty.
    pub account: &'a str,
    /// Where the id comes from.
    pub id_kind: IdKind,
    /// What happened.
    pub kind: OperationKind,
    /// What became of it.
    pub status: OperationStatus,
    /// Whether the profile calls a failed or canceled status final.
    pub is_final: bool,
    /// Customer-facing amount in minor units.
    pub amount_minor: i64,
    /// Currency of the amount.
    pub currency: Currency,
    /// Fee in minor units of `settle_currency`.
    pub fee_minor: Option<i64>,
    /// Net in minor units of `settle_currency`. Where it is given, it alone says whether money moved.
    pub net_minor: Option<i64>,
    /// Currency that settles; equal to `currency` unless the processor converts.
    pub settle_currency: Currency,
    /// When it happened.
    pub occurred_at: Instant,
    /// Our reference, as the processor was given it.
    pub reference: &'a str,
    /// Operation or object id of the original of a refund, dispute or reversal.
    pub parent_id: &'a str,
    /// The processor's payment object that several rows share.
    pub object_id: &'a str,
    /// The payout or settlement batch the row belongs to.
    pub payout_id: &'a str,
    /// Free text, untrusted.
    pub description: &'a str,
    /// Running total of refunds on a payment row, in minor units, where the format has nothing else.
    pub refund_total_minor: Option<i64>,
    /// When the running total last changed.
    pub refunded_at: Option<Instant>,
    /// Set aside by profile, scope or mode: listed with this reason.
    pub ignore: Option<IgnoreReason>,
    /// Why the row cannot be used, with its evidence. Empty = it can.
    pub invalid: &'a str,
    /// Index of the file in the source's list of files.
    pub file: u16,
    /// Physical line in that file, counted from 1; 0 = not from a file.
    pub line: u32,
}

impl Operation<'_> {
    /// An operation of nothing: for readers and tests to fill in.
    pub const EMPTY: Operation<'static> = Operation {
        operation_id: "",
        account: "",
        id_kind: IdKind::Native,
        kind: OperationKind::Other,
        status: OperationStatus::Unknown,
        is_final: false,
        amount_minor: 0,
        currency: Currency::NONE,
        fee_minor: None,
        net_minor: None,
        settle_currency: Currency::NONE,
        occurred_at: Instant(0),
        reference: "",
        parent_id: "",
        object_id: "",
        payout_id: "",
        description: "",
        refund_total_minor: None,
        refunded_at: None,
        ignore: None,
        invalid: "",
        file: 0,
        line: 0,
    };

    /// Whether money moved: net ≠ 0; where there is no net, a succeeded row that is not a hold. A label never decides
    /// against the money. A net of zero that only a fee of the whole amount explains has moved as well.
    pub fn moved_money(&self) -> bool {
        match self.net_minor {
            Some(0) => {
                self.status == OperationStatus::Succeeded
                    && self.amount_minor != 0
                    && self.currency == self.settle_currency
                    && self.fee_minor == Some(self.amount_minor)
            }
            Some(_) => true,
            None => {
                self.status == OperationStatus::Succeeded
                    && !self.kind.is_hold()
                    && self.amount_minor != 0
            }
        }
    }

    /// What the row did to our balance, in minor units of `settle_currency`: its net, or amount − fee where there is no
    /// net and money moved.
    pub fn balance_minor(&self) -> i128 {
        match self.net_minor {
            Some(net) => i128::from(net),
            None if self.moved_money() => {
                i128::from(self.amount_minor) - i128::from(self.fee_minor.unwrap_or(0))
            }
            None => 0,
        }
    }
}

/// A batch of operations as columns over one text arena.
#[derive(Clone, Debug, Default)]
#[allow(
    missing_docs,
    reason = "the columns are the fields of Operation, documented there"
)]
pub struct Operations {
    pub text: Arena,
    pub operation_id: Vec<Text>,
    pub account: Vec<Text>,
    pub id_kind: Vec<IdKind>,
    pub kind: Vec<OperationKind>,
    pub status: Vec<OperationStatus>,
    pub is_final: Vec<bool>,
    pub amount_minor: Vec<i64>,
    pub currency: Vec<Currency>,
    pub fee_minor: Vec<Option<i64>>,
    pub net_minor: Vec<Option<i64>>,
    pub settle_currency: Vec<Currency>,
    pub occurred_at: Vec<Instant>,
    pub reference: Vec<Text>,
    pub parent_id: Vec<Text>,
    pub object_id: Vec<Text>,
    pub payout_id: Vec<Text>,
    pub description: Vec<Text>,
    pub refund_total_minor: Vec<Option<i64>>,
    pub refunded_at: Vec<Option<Instant>>,
    pub ignore: Vec<Option<IgnoreReason>>,
    pub invalid: Vec<Text>,
    pub file: Vec<u16>,
    pub line: Vec<u32>,
}

impl Operations {
    /// How many rows.
    pub fn len(&self) -> usize {
        self.kind.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kind.is_empty()
    }

    /// Adds a row; returns its index.
    pub fn push(&mut self, row: &Operation<'_>) -> usize {
        let index = self.len();
        self.operation_id.push(self.text.push(row.operation_id));
        self.account.push(self.text.push(row.account));
        self.id_kind.push(row.id_kind);
        self.kind.push(row.kind);
        self.status.push(row.status);
        self.is_final.push(row.is_final);
        self.amount_minor.push(row.amount_minor);
        self.currency.push(row.currency);
        self.fee_minor.push(row.fee_minor);
        self.net_minor.push(row.net_minor);
        self.settle_currency.push(row.settle_currency);
        self.occurred_at.push(row.occurred_at);
        self.reference.push(self.text.push(row.reference));
        self.parent_id.push(self.text.push(row.parent_id));
        self.object_id.push(self.text.push(row.object_id));
        self.payout_id.push(self.text.push(row.payout_id));
        self.description.push(self.text.push(row.description));
        self.refund_total_minor.push(row.refund_total_minor);
        self.refunded_at.push(row.refunded_at);
        self.ignore.push(row.ignore);
        self.invalid.push(self.text.push(row.invalid));
        self.file.push(row.file);
        self.line.push(row.line);
        index
    }

    /// The row at an index.
    pub fn get(&self, index: usize) -> Operation<'_> {
        Operation {
            operation_id: self.text.get(self.operation_id[index]),
            account: self.text.get(self.account[index]),
            id_kind: self.id_kind[index],
            kind: self.kind[index],
            status: self.status[index],
            is_final: self.is_final[index],
            amount_minor: self.amount_minor[index],
            currency: self.currency[index],
            fee_minor: self.fee_minor[index],
            net_minor: self.net_minor[index],
            settle_currency: self.settle_currency[index],
            occurred_at: self.occurred_at[index],
            reference: self.text.get(self.reference[index]),
            parent_id: self.text.get(self.parent_id[index]),
            object_id: self.text.get(self.object_id[index]),
            payout_id: self.text.get(self.payout_id[index]),
            description: self.text.get(self.description[index]),
            refund_total_minor: self.refund_total_minor[index],
            refunded_at: self.refunded_at[index],
            ignore: self.ignore[index],
            invalid: self.text.get(self.invalid[index]),
            file: self.file[index],
            line: self.line[index],
        }
    }

    /// The rows in order.
    pub fn iter(&self) -> impl Iterator<Item = Operation<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }
}
