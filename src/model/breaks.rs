//! The break catalogue: every class with precedence, severity, policy, meaning and next step, in one place.

use super::words;
use crate::money::Money;
use crate::time::Instant;

words! {
    /// How bad it is.
    Severity {
        /// Something to tidy.
        Warning = "warning",
        /// To be looked at.
        Medium = "medium",
        /// Money is wrong or at risk.
        High = "high",
        /// A customer or our bank is short of money, or will be.
        Critical = "critical",
    }
}

words! {
    /// Classes of breaks. Declaration order is precedence: one cause has one class, the first that fits.
    BreakClass {
        /// A row that cannot be used.
        InvalidRecord = "invalid_record",
        /// Seen again with other content.
        OperationChanged = "operation_changed",
        /// One event recorded twice locally.
        DuplicateRecord = "duplicate_record",
        /// A further success for one thing.
        DuplicateCharge = "duplicate_charge",
        /// More given back than there was.
        DuplicateRefund = "duplicate_refund",
        /// Several candidates, none dominates.
        AmbiguousMatch = "ambiguous_match",
        /// Linked, other currency.
        CurrencyMismatch = "currency_mismatch",
        /// Linked, other amount.
        AmountMismatch = "amount_mismatch",
        /// Local and processor contradict each other.
        StatusConflict = "status_conflict",
        /// Local says done, the processor does not yet.
        StatusAhead = "status_ahead",
        /// Local says done, the processor took it back.
        StatusReversed = "status_reversed",
        /// The processor is done, local does not know.
        StatusBehind = "status_behind",
        /// Money moved and no local row asks for it.
        MissingLocal = "missing_local",
        /// Local claims money and the processor does not show it.
        MissingProcessor = "missing_processor",
        /// Open, and nobody can be asked.
        OpenTooLong = "open_too_long",
        /// The local row changed under the repair.
        RepairConflict = "repair_conflict",
        /// A payout is not the sum of its parts.
        PayoutResidual = "payout_residual",
        /// A payout came back.
        PayoutReturned = "payout_returned",
        /// Time that was never read.
        CoverageGap = "coverage_gap",
    }
}

/// What happens to a class by default, and what `[repair]` may choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The repair is written and applied.
    Auto,
    /// The repair is written and waits for approval.
    Propose,
    /// No repair is written; a person looks at the break.
    Off,
}

impl Policy {
    /// The word in `[repair]`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Policy::Auto => "auto",
            Policy::Propose => "propose",
            Policy::Off => "off",
        }
    }

    /// The policy of a word in `[repair]`.
    pub fn from_word(word: &str) -> Option<Policy> {
        match word {
            "auto" => Some(Policy::Auto),
            "propose" => Some(Policy::Propose),
            "off" => Some(Policy::Off),
            _ => None,
        }
    }
}

/// What the catalogue says of a class.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// How bad it is.
    pub severity: Severity,
    /// The default policy; `None` where no repair exists and a person always decides.
    pub default_policy: Option<Policy>,
    /// What it means, as one phrase.
    pub meaning: &'static str,
    /// What a person does next, as one sentence.
    pub next_step: &'static str,
}

impl BreakClass {
    /// The catalogue.
    pub const fn entry(self) -> Entry {
        match self {
            BreakClass::InvalidRecord => Entry {
                severity: Severity::Warning,
                default_policy: None,
                meaning: "a row that cannot be used: unknown kind or status that carries money, a local amount no minor unit can hold",
                next_step: "Correct the row where it comes from, or teach the profile the word, then run again.",
            },
            BreakClass::OperationChanged => Entry {
                severity: Severity::High,
                default_policy: None,
                meaning: "seen again with another kind, currency, amount, time or parent, or a refund total that fell",
                next_step: "Ask the processor which version holds; close the break as accepted to take the new one.",
            },
            BreakClass::DuplicateRecord => Entry {
                severity: Severity::High,
                default_policy: None,
                meaning: "one processor event recorded twice locally, or two intents with one operation",
                next_step: "Find out which local row is real and correct the other one in your own system.",
            },
            BreakClass::DuplicateCharge => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "a further success of the same amount and currency for one intent or one logical payment",
                next_step: "Refund the extra charge at the processor; the break ends when the refund is seen.",
            },
            BreakClass::DuplicateRefund => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "more refunds than asked for, or refunds and disputes above the charge",
                next_step: "Check which refund or dispute was wrong and claim the excess back.",
            },
            BreakClass::AmbiguousMatch => Entry {
                severity: Severity::Medium,
                default_policy: None,
                meaning: "several candidates and none dominates, another amount under a used reference, or a possibly cut reference",
                next_step: "Decide which local row the operation belongs to and write its id into processor_ref.",
            },
            BreakClass::CurrencyMismatch => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "linked, but in another currency",
                next_step: "Find out which currency the customer agreed to; refund or correct the local row.",
            },
            BreakClass::AmountMismatch => Entry {
                severity: Severity::High,
                default_policy: None,
                meaning: "linked, but with another amount",
                next_step: "Find out which amount is right; collect or refund the difference, or correct the local row.",
            },
            BreakClass::StatusConflict => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "canceled or expired locally while the processor moved money, or failed locally while it is still pending there",
                next_step: "Refund the money at the processor, or re-open the local row by hand.",
            },
            BreakClass::StatusAhead => Entry {
                severity: Severity::Medium,
                default_policy: None,
                meaning: "succeeded locally while the processor is still pending after grace",
                next_step: "Find out why the local row was marked as done; do not deliver before the money moved.",
            },
            BreakClass::StatusReversed => Entry {
                severity: Severity::Critical,
                default_policy: Some(Policy::Auto),
                meaning: "succeeded locally while the processor's own operation failed or its money came back",
                next_step: "Tell whoever relied on it: collect again, or pay the customer another way; then close the break.",
            },
            BreakClass::StatusBehind => Entry {
                severity: Severity::High,
                default_policy: Some(Policy::Auto),
                meaning: "the processor is further than the local row",
                next_step: "Nothing, when the repair was applied; else bring the local row forward.",
            },
            BreakClass::MissingLocal => Entry {
                severity: Severity::Critical,
                default_policy: Some(Policy::Auto),
                meaning: "an operation that moved money and found no intent",
                next_step: "Find out who made it; record it locally, or give the money back.",
            },
            BreakClass::MissingProcessor => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "a local row claims money that the processor, read whole past its due time, does not show",
                next_step: "Look the row up at the processor by its id; do not send it again before that.",
            },
            BreakClass::OpenTooLong => Entry {
                severity: Severity::Medium,
                default_policy: None,
                meaning: "open locally, known to the processor, and neither covered nor askable",
                next_step: "Look the row up at the processor by its processor_ref.",
            },
            BreakClass::RepairConflict => Entry {
                severity: Severity::High,
                default_policy: None,
                meaning: "the local row changed between reading and writing; nothing was overwritten",
                next_step: "Run again; the new state of the row is judged then.",
            },
            BreakClass::PayoutResidual => Entry {
                severity: Severity::Critical,
                default_policy: None,
                meaning: "a payout is not the sum of its parts",
                next_step: "Ask the processor for the missing part, or export the report again.",
            },
            BreakClass::PayoutReturned => Entry {
                severity: Severity::Critical,
                default_policy: Some(Policy::Auto),
                meaning: "a payout came back from the bank",
                next_step: "Correct the bank details at the processor and have it paid again; then close the break.",
            },
            BreakClass::CoverageGap => Entry {
                severity: Severity::High,
                default_policy: None,
                meaning: "a stretch of time that was never read, accepted by hand",
                next_step: "Reconcile the stretch from another source, then close the break.",
            },
        }
    }

    /// How bad it is.
    pub const fn severity(self) -> Severity {
        self.entry().severity
    }

    /// Whether the id of a break of this class comes from its intent (the same need whatever row brings the news), or
    /// from its operation. Where that side is missing, the other one is the subject.
    pub const fn is_about_intent(self) -> bool {
        matches!(
            self,
            BreakClass::StatusConflict
                | BreakClass::StatusAhead
                | BreakClass::StatusReversed
                | BreakClass::StatusBehind
                | BreakClass::MissingProcessor
                | BreakClass::OpenTooLong
                | BreakClass::RepairConflict
        )
    }
}

words! {
    /// Where a break stands.
    BreakState {
        /// Somebody has to look.
        Open = "open",
        /// Somebody looked and asked for silence until a date.
        Acknowledged = "acknowledged",
        /// A person ended it.
        Closed = "closed",
        /// Seen in order again, or closed by a repair.
        Resolved = "resolved",
    }
}

words! {
    /// What is done about a break in this run.
    BreakDisposition {
        /// A person decides.
        Review = "review",
        /// A repair of this run closed it.
        Repaired = "repaired",
    }
}

words! {
    /// How a person ends a break.
    CloseAs {
        /// It is so, and it is fine.
        Accepted = "accepted",
        /// Put right outside of paysweep.
        FixedElsewhere = "fixed-elsewhere",
        /// There was nothing wrong.
        FalseAlarm = "false-alarm",
    }
}

/// A classified difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Break {
    /// Hash of (source, class, subject): stable over runs. 32 hex digits.
    pub id: String,
    /// The class.
    pub class: BreakClass,
    /// The source; for an intent that no source owns, the scope name of the intents.
    pub source: String,
    /// Account of the operation; empty = none.
    pub account: String,
    /// The operation; empty = none.
    pub operation_id: String,
    /// The intent, or the parent's intent for a child that has none; empty = none.
    pub intent_id: String,
    /// The amount it is about, as a positive figure of one side.
    pub money: Option<Money>,
    /// The difference, where there is one: processor minus local; for a payout parts minus paid.
    pub delta: Option<Money>,
    /// What was seen, with the figures.
    pub why: String,
    /// Hash of what was seen. Acknowledgements and closes bind to it.
    pub evidence: String,
    /// Where it stands.
    pub state: BreakState,
    /// What this run did about it.
    pub disposition: BreakDisposition,
    /// Whether it stays open after its repair until a person closes it.
    pub is_sticky: bool,
    /// The run that saw it first; empty = this run.
    pub first_seen_run: String,
    /// When it was seen first.
    pub first_seen_at: Instant,
    /// An acknowledgement holds until then.
    pub acknowledged_until: Option<Instant>,
}

impl Break {
    /// What counts as at risk while it is open: the difference where there is one, else the amount.
    pub fn at_risk(&self) -> Option<Money> {
        self.delta.or(self.money)
    }
}
