//! What the core is told: the settings that shape verdicts, and the frame of the run at hand.

use std::collections::BTreeMap;

use super::policy::Conditions;
use super::redrive::Redrive;
use crate::model::breaks::{BreakClass, Policy};
use crate::model::intent::{Intent, IntentKind};
use crate::model::run::Window;
use crate::money::Currency;
use crate::time::{Instant, Span};

/// A setting with a value for each kind of intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerKind<T> {
    /// For charges.
    pub charge: T,
    /// For refunds.
    pub refund: T,
    /// For payouts.
    pub payout: T,
    /// For disputes.
    pub dispute: T,
}

impl<T: Copy> PerKind<T> {
    /// The same value for every kind.
    pub const fn all(value: T) -> PerKind<T> {
        PerKind {
            charge: value,
            refund: value,
            payout: value,
            dispute: value,
        }
    }

    /// The value for a kind.
    pub const fn of(&self, kind: IntentKind) -> T {
        match kind {
            IntentKind::Charge => self.charge,
            IntentKind::Refund => self.refund,
            IntentKind::Payout => self.payout,
            IntentKind::Dispute => self.dispute,
        }
    }
}

/// Limits on what one run may write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guards {
    /// At most so many repairs. Default 200.
    pub max_repairs: u64,
    /// At most so many repairs per ten thousand intents judged; ignored below 20 repairs. Default off.
    pub max_ratio_basis_points: Option<u64>,
    /// At most so much money in the repairs, per currency, in minor units. Default off.
    pub max_amount: BTreeMap<Currency, i64>,
}

impl Default for Guards {
    fn default() -> Guards {
        Guards {
            max_repairs: 200,
            max_ratio_basis_points: None,
            max_amount: BTreeMap::new(),
        }
    }
}

/// The settings that shape verdicts, for one source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Name of the source.
    pub source: String,
    /// Scope name of the intents (`[intents] name`).
    pub scope: String,
    /// From `created_at` until a missing counterpart is news.
    pub grace: PerKind<Span>,
    /// From `created_at` until an open, absent row that claims no money counts as abandoned.
    pub open_after: PerKind<Span>,
    /// Kinds that the local side records; operations of other families need no intent.
    pub kinds: Vec<IntentKind>,
    /// Tolerated difference in minor units; listed and summed.
    pub tolerance: BTreeMap<Currency, i64>,
    /// The processor rounds amounts of the currency to multiples of so many minor units, half away from zero.
    pub rounds_to_minor: BTreeMap<Currency, i64>,
    /// The processor keeps so many characters of our reference.
    pub reference_max_chars: Option<usize>,
    /// How far before a payout its parts may lie.
    pub payout_span: Span,
    /// Whether the source can be asked for an operation by its id.
    pub can_look_up: bool,
    /// Policies that differ from the catalogue's.
    pub policies: BTreeMap<BreakClass, Policy>,
    /// Conditions under which the policy of a class is followed.
    pub conditions: BTreeMap<BreakClass, Conditions>,
    /// Whether a certain match without `processor_ref` gets a `link` repair. Default off.
    pub link_policy: Policy,
    /// Whether `[repair]` asks for proposals to send an intent again. Default false.
    pub may_redrive: bool,
    /// When it may; `None` = never, whatever is asked for.
    pub redrive: Option<Redrive>,
    /// Whether there is no other source to which an intent that names none could have been sent.
    pub is_only_source: bool,
    /// Limits on what one run may write.
    pub guards: Guards,
}

impl Rules {
    /// The rules of a source with every default of the contract: grace 60 minutes, no tolerance.
    pub fn new(source: &str) -> Rules {
        Rules {
            source: source.to_owned(),
            scope: "intents".to_owned(),
            grace: PerKind::all(Span::hours(1)),
            open_after: PerKind::all(Span::hours(1)),
            kinds: IntentKind::ALL.to_vec(),
            tolerance: BTreeMap::new(),
            rounds_to_minor: BTreeMap::new(),
            reference_max_chars: None,
            payout_span: Span::ZERO,
            can_look_up: false,
            policies: BTreeMap::new(),
            conditions: BTreeMap::new(),
            link_policy: Policy::Off,
            may_redrive: false,
            redrive: None,
            is_only_source: false,
            guards: Guards::default(),
        }
    }

    /// What is done about a class that has a repair.
    pub fn policy(&self, class: BreakClass) -> Policy {
        self.policies
            .get(&class)
            .copied()
            .or(class.entry().default_policy)
            .unwrap_or(Policy::Off)
    }
}

/// The run at hand: what is asked, and how far the answer reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// "Now".
    pub as_of: Instant,
    /// Whose verdict is given.
    pub window: Window,
    /// Start of contiguous coverage of the source.
    pub low: Instant,
    /// What occurred before may have been forgotten, once it was settled; [`Instant::MIN`] = nothing was.
    pub horizon: Instant,
    /// How far the source is complete; `None` when it was not read whole, and then nothing is called absent.
    pub covered: Option<Instant>,
    /// How far every other configured source is complete; `None` when one of them is not known to be. With a single
    /// source: [`Instant::MAX`].
    pub others_covered: Option<Instant>,
    /// Whether this slice gives the verdict about absent intents that no source owns (the last source of a run does).
    pub judges_unowned: bool,
    /// Whether the files have the bytes of the last run: no new absence verdicts.
    pub is_feed_unchanged: bool,
    /// Whether what was read proves an absence: whole by more than somebody's word, and consistent up to where it is covered.
    pub is_absence_proof: bool,
}

impl Frame {
    /// From when on every row of the source is at hand.
    pub fn at_hand_from(&self) -> Instant {
        self.low.max(self.horizon)
    }

    /// How far everything is complete that may answer an intent: its source, or every source where none owns it.
    pub fn covered_for(&self, intent: &Intent<'_>) -> Option<Instant> {
        if intent.source.is_empty() {
            Some(self.covered?.min(self.others_covered?))
        } else {
            self.covered
        }
    }
}
