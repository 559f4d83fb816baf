//! The pure core: given both sides, what was open and the rules, what is the verdict and what is to be repaired?
//!
//! [`reconcile`] has no clock, no I/O and no randomness, is synchronous and cannot fail. It answers from the content of
//! its inputs alone: the order of rows does not matter, and the same input gives the same answer.
//!
//! | module | question |
//! |---|---|
//! | [`rules`] | what is the core told? |
//! | [`recognise`] | which rows of the feed are new, known, moved on or changed? |
//! | `keys` | which rows do shared keys tie together? |
//! | `sieve` | which components are beyond doubt? |
//! | `component` | one component with its look-ups |
//! | `ladder` | which intent is an operation's? |
//! | `buckets` | which intents ask for how much? |
//! | [`lifecycle`] | the decision table |
//! | `judge` | what is the verdict about each row of a component? |
//! | `absence` | what may be called absent? |
//! | `payouts` | is a payout the sum of its parts? |
//! | [`others`] | what do other sources show and tell of the same intents? |
//! | `plan` | breaks with ids and evidence, and the repairs that policy allows |
//! | [`policy`] | under which conditions is a repair written, and applied? |
//! | [`redrive`] | when may an intent be proposed to be sent again? |
//! | `guard` | is a plan too much to be true? |
//! | `tally` | do counts and sums add up? |
//! | [`bridge`] | why do the two sides differ? |
//! | [`conversions`] | what did a payment become in the currency of the balance? |
//! | [`explain`] | which rung found whom, and what differed? |
//!
//! Decisions: one transaction's worth of rows is one call; partitioning is by connected component and happens inside.
//! Everything a component needs is in it, payout sums excepted, so a caller may hand over any batch that is complete for
//! its keys.

mod absence;
pub mod bridge;
mod component;
pub mod conversions;
pub mod explain;
mod guard;
mod judge;
mod keys;
mod ladder;
pub mod lifecycle;
pub mod others;
mod payouts;
mod plan;
pub mod policy;
pub mod recognise;
pub mod redrive;
pub mod rules;
mod sieve;
mod tally;

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use crate::meter::Meter;
use crate::model::answer::{Answer, Others};
use crate::model::breaks::Break;
use crate::model::intent::{IntentKind, Intents};
use crate::model::operation::{OperationKind, OperationStatus, Operations};
use crate::model::repair::Repair;
use crate::model::run::{Basis, Tally, Total};
use crate::model::verdict::{Disposition, Match, Pending, Rule};
use crate::time::Instant;
use component::{Component, Scope};
use keys::{Components, Keys};
use rules::{Frame, Rules};

pub use guard::{Spent, guard};
pub use plan::break_id;

/// What is known of an operation from earlier runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// In the feed, never stored.
    New,
    /// In the feed as it is stored.
    Known,
    /// In the feed, and further than it is stored, as allowed.
    Moved,
    /// In the feed with other content than is stored.
    Changed,
    /// Stored, not in this feed.
    Stored,
    /// In the feed; it was judged once, and what was stored of it has been forgotten since.
    Forgotten,
    /// A repetition of another row of the feed: not counted.
    Repeat,
}

/// A link that an earlier run stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLink {
    /// Index of the intent in the snapshot.
    pub intent: usize,
    /// The rule that made it.
    pub rule: Rule,
}

/// Both sides at one moment, complete for the keys of the rows in question.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The feed, and stored operations that its keys lead to.
    pub operations: &'a Operations,
    /// For each operation, what is known of it.
    pub seen: &'a [Seen],
    /// For operations that are [`Seen::Changed`]: what differs.
    pub changes: &'a BTreeMap<usize, String>,
    /// For each operation, the link that is stored.
    pub links: &'a [Option<StoredLink>],
    /// Local rows.
    pub intents: &'a Intents,
    /// For each intent, who answers it by what is stored, as this source sees it.
    pub answer: &'a [Answer],
    /// What other sources show and tell of intents, as far as they were asked.
    pub others: &'a Others,
    /// Every break of the source that is not resolved: open, acknowledged, closed.
    pub open: &'a [Break],
}

/// A link to store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewLink {
    /// Index of the operation in the snapshot.
    pub operation: usize,
    /// Index of the intent in the snapshot.
    pub intent: usize,
    /// The rule that made it.
    pub rule: Rule,
    /// Whether the operation satisfies the intent, rather than being a part or a failed attempt.
    pub is_principal: bool,
}

/// A repair that was not written, since a condition of `[repair]` did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBack {
    /// The class whose condition it is.
    pub class: crate::model::breaks::BreakClass,
    /// The break that stays without it.
    pub break_id: String,
    /// Which condition, with the figures.
    pub reason: String,
}

/// A break that was found or is still open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The break.
    pub found: Break,
    /// First seen in this run.
    pub is_new: bool,
    /// Operations beside the break's own that it is about.
    pub also: Vec<String>,
}

/// The verdict about a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// For each operation of the snapshot.
    pub operations: Vec<Disposition>,
    /// For each intent of the snapshot.
    pub intents: Vec<Disposition>,
    /// Pairs that belong together and agree, by intent.
    pub matches: Vec<Match>,
    /// Rows whose time has not come.
    pub pending: Vec<Pending>,
    /// Breaks that are open after the comparison or that this run's repairs close; sorted by severity, class and ids.
    pub findings: Vec<Finding>,
    /// Ids of stored breaks that were seen in order again.
    pub resolved: Vec<String>,
    /// Repairs that policy allows, in order of the breaks.
    pub repairs: Vec<Repair>,
    /// Repairs that a condition of `[repair]` kept from being written, in order of the breaks.
    pub held_back: Vec<HeldBack>,
    /// Links to store.
    pub links: Vec<NewLink>,
    /// Operations in scope that are not stored yet.
    pub new_operations: Vec<usize>,
    /// Operations whose stored row moves on to the feed's content.
    pub moved_operations: Vec<usize>,
    /// Operations whose feed content is not accepted: kept as a version beside the stored row.
    pub rejected_changes: Vec<usize>,
    /// Sums per currency, by code.
    pub totals: Vec<Total>,
    /// Counts of operations.
    pub operation_tally: Tally,
    /// Counts of intents.
    pub intent_tally: Tally,
    /// Tolerated or rounded differences of matches, summed per currency.
    pub deltas: BTreeMap<crate::money::Currency, i128>,
    /// Payouts whose parts may lie before what was read.
    pub unverified_payouts: u64,
    /// Intents whose verdict may depend on rows of other sources: with several sources, those are asked for, and the slice
    /// is judged again.
    pub unsure: Vec<usize>,
    /// What does not add up; empty unless there is a bug.
    pub violations: Vec<String>,
}

/// Reconciles a snapshot. See the module's documentation for what it promises.
pub fn reconcile(snapshot: &Snapshot<'_>, rules: &Rules, frame: &Frame) -> Outcome {
    reconcile_counting(snapshot, rules, frame, &Meter::default())
}

/// The same, counting rows of both sides as they are dealt with.
pub fn reconcile_counting(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    meter: &Meter,
) -> Outcome {
    reconcile_with(snapshot, rules, frame, meter, true)
}

/// The same with every component judged: the sieve may only save work, never change the answer.
pub fn reconcile_without_sieve(snapshot: &Snapshot<'_>, rules: &Rules, frame: &Frame) -> Outcome {
    reconcile_with(snapshot, rules, frame, &Meter::default(), false)
}

fn reconcile_with(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    meter: &Meter,
    has_sieve: bool,
) -> Outcome {
    meter.expect((snapshot.operations.len() + snapshot.intents.len()) as u64);
    let keys = Keys::of(snapshot);
    let truncated = keys::truncated(snapshot, &keys, rules.reference_max_chars);
    let components = Components::of(snapshot, &keys, &truncated);
    let truncated: HashMap<usize, Rc<[usize]>> = truncated.into_iter().collect();
    let open = plan::OpenBreaks::of(snapshot.open, &keys);
    let scope = scope(snapshot, rules, frame, &open, &keys);
    let payouts = payouts::sums(snapshot, &keys);
    let mut verdicts = judge::Verdicts::new(snapshot);
    let left = if has_sieve {
        let sieve = sieve::Sieve {
            snapshot,
            keys: &keys,
            scope: &scope,
            open: &open,
            frame,
            meter,
        };
        sieve.sift(&components, &mut verdicts)
    } else {
        (0..components.len()).collect()
    };
    for component in left {
        let (operations, intents) = components.get(component);
        meter.add((operations.len() + intents.len()) as u64);
        let is_asked = operations.iter().any(|&row| scope.operations[row as usize])
            || intents.iter().any(|row| scope.intents[row]);
        if is_asked {
            let component =
                Component::new(snapshot, &keys, &scope, frame, operations, intents.iter());
            let links = ladder::link(&component, rules, &truncated);
            let context = judge::Context {
                rules,
                frame,
                snapshot,
                keys: &keys,
                open: &open,
                payouts: &payouts,
            };
            judge::judge(&component, &links, context, &mut verdicts);
        }
    }
    others::leave(snapshot, frame, &mut verdicts);
    let mut scope = scope;
    for row in verdicts.not_ours.drain(..) {
        scope.intents[row] = false;
    }
    let asking = others::asking(&mut verdicts);
    let mut outcome = plan::plan(snapshot, rules, frame, &open, &keys, verdicts);
    outcome.unsure = asking.unsure(snapshot, &outcome);
    tally::tally(snapshot, &scope, &mut outcome);
    outcome
}

/// Payout rows that a new part came to: their sum is to be drawn again, however old they are.
fn grown_payouts(snapshot: &Snapshot<'_>, frame: &Frame, keys: &Keys<'_>) -> HashSet<usize> {
    if frame.window.basis != Basis::Watermark {
        return HashSet::new();
    }
    let is_payout = |row: usize| snapshot.operations.kind[row] == OperationKind::Payout;
    let grown: HashSet<keys::Key> = (0..snapshot.operations.len())
        .filter(|&row| matches!(snapshot.seen[row], Seen::New | Seen::Moved) && !is_payout(row))
        .map(|row| keys.operations[row].payout)
        .filter(|&payout| payout != 0)
        .collect();
    let is_known = |row: usize| matches!(snapshot.seen[row], Seen::Known | Seen::Stored);
    (0..snapshot.operations.len())
        .filter(|&row| is_payout(row) && is_known(row))
        .filter(|&row| {
            let own = keys.operations[row];
            grown.contains(&if own.payout == 0 { own.id } else { own.payout })
        })
        .collect()
}

/// Whether the watermark leads to the row, and has not reached it yet: it lies in the lag, or a little in the future. It is
/// stored, and gets its verdict when the window reaches it, whether or not the files still hold it then.
pub(crate) fn is_ahead(snapshot: &Snapshot<'_>, row: usize, frame: &Frame) -> bool {
    let at = snapshot.operations.occurred_at[row];
    frame.window.basis == Basis::Watermark
        && snapshot.seen[row] != Seen::Repeat
        && at >= frame.window.to
        && !component::is_far_ahead(at, frame)
}

/// 2000-01-01T00:00:00Z. A row that could not be used, or that the profile leaves out, and lies before it has no time that
/// can be believed, and so belongs to the run that reads it.
const PLAUSIBLE_FROM: Instant = Instant(946_684_800_000_000);

/// Which rows ask for a verdict of their own: those in the window, those that are open or that a break is open about,
/// and — where the watermark leads — those that appeared or changed since, however old they are.
fn scope(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    open: &plan::OpenBreaks<'_>,
    keys: &Keys<'_>,
) -> Scope {
    let window = frame.window;
    let everything = window.basis == Basis::Files;
    let grown = grown_payouts(snapshot, frame, keys);
    let operations = (0..snapshot.operations.len())
        .map(|row| {
            let seen = snapshot.seen[row];
            let at = snapshot.operations.occurred_at[row];
            if is_ahead(snapshot, row, frame) && seen != Seen::Changed {
                // A break that is open about it asks for a verdict in every run.
                return open.is_about_operation(keys.operations[row].id);
            }
            let appeared = window.basis == Basis::Watermark
                && match seen {
                    Seen::New => {
                        let is_set_aside = snapshot.operations.ignore[row].is_some()
                            || !snapshot.operations.invalid[row].is_empty();
                        let is_timeless = at < PLAUSIBLE_FROM && is_set_aside;
                        (frame.low <= at && at < window.to)
                            || component::is_far_ahead(at, frame)
                            || is_timeless
                    }
                    Seen::Moved | Seen::Changed => true,
                    Seen::Known | Seen::Stored | Seen::Forgotten | Seen::Repeat => false,
                };
            let is_open = matches!(seen, Seen::Known | Seen::Moved | Seen::Stored)
                && snapshot.operations.status[row] == OperationStatus::Pending
                && snapshot.operations.ignore[row].is_none();
            !matches!(seen, Seen::Repeat | Seen::Forgotten)
                && (everything
                    || window.contains(at)
                    || appeared
                    || is_open
                    || grown.contains(&row)
                    || open.is_about_operation(keys.operations[row].id))
        })
        .collect();
    let mut is_answered = vec![false; snapshot.intents.len()];
    for link in snapshot.links.iter().flatten() {
        is_answered[link.intent] = true;
    }
    let intents = (0..snapshot.intents.len())
        .map(|row| {
            let status = snapshot.intents.status[row];
            let is_asked = everything
                || window.contains(snapshot.intents.created_at[row])
                || status.is_open()
                || open.is_about_intent(keys.intents[row].id);
            // A claim of money that nothing has answered is asked about in every run, however long its grace is.
            let is_unsettled = window.basis == Basis::Watermark
                && !is_answered[row]
                && frame.low <= snapshot.intents.created_at[row]
                && snapshot.intents.get(row).claims_money();
            // A row whose time cannot be right belongs to every run, as no window will ever hold it.
            let at = snapshot.intents.created_at[row];
            let is_timeless = window.basis == Basis::Watermark
                && !snapshot.intents.get(row).invalid.is_empty()
                && (at < PLAUSIBLE_FROM || component::is_far_ahead(at, frame));
            let is_asked = is_asked || is_unsettled || is_timeless;
            let owner = snapshot.intents.text.get(snapshot.intents.source[row]);
            // An open dispute with rows at several sources is judged by each that has some.
            let is_shared_dispute =
                is_answered[row] && snapshot.intents.kind[row] == IntentKind::Dispute;
            is_asked
                && (snapshot.answer[row].elsewhere().is_none() || is_shared_dispute)
                && (owner.is_empty() || owner == rules.source)
        })
        .collect();
    Scope {
        operations,
        intents,
    }
}

/// A short hash of a few texts, for ids and fingerprints. 32 hex digits.
pub fn fingerprint(parts: &[&str]) -> String {
    plan::digest(parts)
}
