//! Other sources: which verdicts depend on what they show, and what is left to them.
//!
//! A payment, refund or dispute may have rows at several sources: taken here, returned there. No source may then write a
//! status from its part of the sum. A slice therefore names the intents that it is unsure of; whoever runs it asks the
//! other sources what they show of them ([`claims`]) and has the slice judged again with that as evidence
//! ([`Others`](crate::model::answer::Others)). What another source tells already is not told twice.

use std::collections::BTreeSet;
use std::rc::Rc;

use hashbrown::{HashMap, HashSet};

use super::component::{Component, Scope};
use super::judge::Verdicts;
use super::keys::{self, Components, Keys};
use super::ladder;
use super::rules::{Frame, Rules};
use super::{Outcome, Snapshot};
use crate::model::answer::Standing;
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::operation::OperationKind;
use crate::model::repair::RepairAction;
use crate::model::verdict::{Disposition, IgnoreReason, Pending};

const TOLD: &str = "a break of another source tells of it";
const UNREAD: &str = "not every source was read whole";

/// Which intents the operations of a snapshot claim, without a verdict about either side: (operation, intent), by index.
pub fn claims(snapshot: &Snapshot<'_>, rules: &Rules, frame: &Frame) -> Vec<(usize, usize)> {
    let keys = Keys::of(snapshot);
    let truncated = keys::truncated(snapshot, &keys, rules.reference_max_chars);
    let components = Components::of(snapshot, &keys, &truncated);
    let truncated: HashMap<usize, Rc<[usize]>> = truncated.into_iter().collect();
    let scope = Scope {
        operations: vec![false; snapshot.operations.len()],
        intents: vec![false; snapshot.intents.len()],
    };
    let mut claims = Vec::new();
    for component in 0..components.len() {
        let (operations, intents) = components.get(component);
        if operations.is_empty() || intents.len() == 0 {
            continue;
        }
        let component = Component::new(snapshot, &keys, &scope, frame, operations, intents.iter());
        let links = ladder::link(&component, rules, &truncated);
        for (at, link) in links.of.iter().enumerate() {
            if let Some((intent, _)) = link {
                claims.push((component.operations[at].row, component.intents[*intent].row));
            }
        }
    }
    claims
}

/// Whether a break of this class says what stands behind its intent, rather than that something came on top of it.
pub fn speaks_for_intent(class: BreakClass) -> bool {
    match class {
        BreakClass::InvalidRecord
        | BreakClass::OperationChanged
        | BreakClass::DuplicateRecord
        | BreakClass::AmbiguousMatch
        | BreakClass::CurrencyMismatch
        | BreakClass::AmountMismatch
        | BreakClass::StatusConflict
        | BreakClass::StatusAhead
        | BreakClass::StatusReversed
        | BreakClass::StatusBehind
        | BreakClass::PayoutResidual
        | BreakClass::PayoutReturned => true,
        BreakClass::DuplicateCharge
        | BreakClass::DuplicateRefund
        | BreakClass::MissingLocal
        | BreakClass::MissingProcessor
        | BreakClass::OpenTooLong
        | BreakClass::RepairConflict
        | BreakClass::CoverageGap => false,
    }
}

/// What a slice may be unsure of.
pub(crate) struct Asking {
    claims: Vec<(usize, usize)>,
    drafted: HashSet<usize>,
}

/// Reads it from the verdicts before they become an outcome.
pub(crate) fn asking(verdicts: &mut Verdicts) -> Asking {
    Asking {
        claims: std::mem::take(&mut verdicts.claims),
        drafted: verdicts
            .drafts
            .iter()
            .filter(|draft| draft.operation.is_some() && speaks_for_intent(draft.class))
            .filter_map(|draft| draft.intent)
            .collect(),
    }
}

impl Asking {
    /// Disputes; whatever a break or a repair is about; returns whose original may be elsewhere, and the other way round;
    /// failed attempts at what succeeded locally.
    pub(crate) fn unsure(self, snapshot: &Snapshot<'_>, outcome: &Outcome) -> Vec<usize> {
        let mut unsure: BTreeSet<usize> = BTreeSet::new();
        for (row, intent) in self.claims {
            let (verdict, operation) = (outcome.operations[row], snapshot.operations.get(row));
            let elsewhere = snapshot.answer[intent].elsewhere();
            let is_told = verdict != Disposition::OutOfScope
                || outcome.intents[intent] != Disposition::OutOfScope;
            let is_return =
                operation.kind.is_return() || operation.kind == OperationKind::Adjustment;
            let is_failed_attempt = verdict == Disposition::Ignored(IgnoreReason::FailedAttempt)
                && snapshot.intents.status[intent] == IntentStatus::Succeeded
                && snapshot.intents.source[intent].is_empty();
            if is_told
                && (snapshot.intents.kind[intent] == IntentKind::Dispute
                    || self.drafted.contains(&intent)
                    || (is_return && elsewhere.is_some())
                    || (!is_return && elsewhere == Some(Standing::Fell))
                    || is_failed_attempt)
            {
                unsure.insert(intent);
            }
        }
        unsure.into_iter().collect()
    }
}

/// Takes back what another source tells already, and what would be written about a dispute while one that may hold rows of
/// it was not read: those rows wait.
pub(crate) fn leave(snapshot: &Snapshot<'_>, frame: &Frame, verdicts: &mut Verdicts) {
    let others = snapshot.others;
    if others.told.is_empty() && frame.others_covered.is_some() {
        return;
    }
    for draft in std::mem::take(&mut verdicts.drafts) {
        let (Some(operation), Some(intent)) = (draft.operation, draft.intent) else {
            verdicts.drafts.push(draft);
            continue;
        };
        let is_told = others.told.contains(&intent)
            && others.claims.contains_key(&intent)
            && speaks_for_intent(draft.class);
        let is_partial = frame.others_covered.is_none()
            && snapshot.intents.kind[intent] == IntentKind::Dispute
            && (snapshot.intents.source[intent].is_empty()
                || snapshot.operations.kind[operation] != OperationKind::Dispute)
            && (draft.repair.as_ref())
                .is_some_and(|repair| repair.action == RepairAction::SetStatus);
        if !is_told && !is_partial {
            verdicts.drafts.push(draft);
            continue;
        }
        let why = if is_told { TOLD } else { UNREAD };
        for row in std::iter::once(operation).chain(draft.also) {
            let verdict = &mut verdicts.operations[row];
            if *verdict == Disposition::Unmatched {
                *verdict = Disposition::Pending;
                verdicts.pending.push(waiting(Some(row), None, why));
            }
        }
        if is_told {
            if verdicts.intents[intent] == Disposition::Unmatched {
                verdicts.intents[intent] = Disposition::OutOfScope;
                verdicts.not_ours.push(intent);
            }
            continue;
        }
        // What pairs with it waits as well.
        for pair in verdicts.matches.iter().filter(|pair| pair.intent == intent) {
            verdicts.operations[pair.operation] = Disposition::Pending;
            verdicts
                .pending
                .push(waiting(Some(pair.operation), None, why));
        }
        verdicts.matches.retain(|pair| pair.intent != intent);
        if verdicts.intents[intent] != Disposition::OutOfScope {
            verdicts.intents[intent] = Disposition::Pending;
            verdicts.pending.push(waiting(None, Some(intent), why));
        }
    }
}

fn waiting(operation: Option<usize>, intent: Option<usize>, why: &'static str) -> Pending {
    Pending {
        intent,
        operation,
        due_at: None,
        why,
    }
}
