//! Kin: refunds, disputes and returns, which follow the row they name.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;

use super::{ContestReason, HOPS_MAX, Ladder, Naming};
use crate::model::intent::IntentStatus;
use crate::model::operation::{Family, OperationKind};
use crate::model::verdict::Rule;
use crate::reconcile::keys::Key;

impl Ladder<'_, '_> {
    /// A dispute row that names a dispute is that dispute again: won, then lost.
    pub(super) fn taken_again(&mut self) {
        for place in 0..self.links.order.len() {
            let at = self.links.order[place];
            let operation = &self.component.operations[at];
            if operation.row_data.kind != OperationKind::Dispute || !self.is_free(at) {
                continue;
            }
            let above = self.links.parent_operation[at]
                .filter(|&parent| {
                    self.component.operations[parent].family() == Some(Family::Dispute)
                })
                .and_then(|parent| self.links.of[parent])
                .map(|(intent, _)| intent);
            let mut named = self
                .component
                .with_processor(operation.keys.parent, Family::Dispute);
            let named = named.next().filter(|_| named.next().is_none());
            if let Some(intent) = above.or(named) {
                self.settle(at, intent, Rule::Parent);
            }
        }
    }

    /// The payment of each refund, dispute, reversal and adjustment: through the row it names, then the object, then the
    /// reference.
    pub(super) fn parents(&mut self) {
        for place in 0..self.links.order.len() {
            let at = self.links.order[place];
            self.links.parent_intent[at] = self.parent_intent(at);
        }
    }

    pub(super) fn parent_intent(&mut self, at: usize) -> Option<usize> {
        let component = self.component;
        let operation = &component.operations[at];
        if operation.is_own(Family::Charge) || !operation.is_usable() {
            return None;
        }
        let mut above = self.links.parent_operation[at];
        for _ in 0..HOPS_MAX {
            let Some(parent) = above else { break };
            if component.operations[parent].is_own(Family::Charge)
                && let Some((intent, _)) = self.links.of[parent]
            {
                return Some(intent);
            }
            above = self.links.parent_operation[parent];
        }
        let keys = operation.keys;
        for key in [keys.parent, keys.object] {
            if let Some(intent) = self.standing(key, Naming::Processor) {
                return Some(intent);
            }
        }
        if let Some(parent) = self.links.parent_operation[at]
            && let Some(intent) = self.links.parent_intent[parent]
        {
            return Some(intent);
        }
        self.parent_of_child(at)
            .or_else(|| self.standing(keys.reference, Naming::Reference))
            .or_else(|| self.standing(keys.reference, Naming::Parent))
    }

    /// The payment that the linked local refund or dispute names.
    pub(super) fn parent_of_child(&mut self, at: usize) -> Option<usize> {
        let (intent, _) = self.links.of[at]?;
        let key = self.component.intents[intent].keys.parent;
        self.standing(key, Naming::Child)
    }

    /// The payment that a key names: the only candidate, or the only one that money stands behind.
    pub(super) fn standing(&mut self, key: Key, naming: Naming) -> Option<usize> {
        if key == 0 {
            return None;
        }
        if let Some(&known) = self.standing.get(&(key, naming)) {
            return known;
        }
        let component = self.component;
        let named = component.with_reference(key, Family::Charge);
        let found = match naming {
            Naming::Processor => self.only(component.with_processor(key, Family::Charge)),
            Naming::Reference => self.only(named),
            Naming::Parent => self.only(component.with_parent(key, Family::Charge)),
            // A parent is named by its id; other names count where no row has that id.
            Naming::Child => {
                let mut by_id = named.filter(|&parent| component.intents[parent].keys.id == key);
                by_id
                    .next()
                    .or_else(|| self.standing(key, Naming::Reference))
                    .or_else(|| self.standing(key, Naming::Parent))
            }
        };
        self.standing.insert((key, naming), found);
        found
    }

    pub(super) fn only(&self, candidates: impl Iterator<Item = usize>) -> Option<usize> {
        let candidates: Vec<usize> = candidates.collect();
        if let [only] = candidates.as_slice() {
            return Some(*only);
        }
        let mut paid = candidates.into_iter().filter(|&intent| {
            self.is_taken(intent)
                || self.component.intents[intent].row_data.status == IntentStatus::Succeeded
        });
        match (paid.next(), paid.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    /// A refund whose reference names a refund of one payment while its parent is another one: proposed, not linked.
    pub(super) fn contradictions(&mut self) {
        for at in 0..self.component.operations.len() {
            let operation = &self.component.operations[at];
            let Some((intent, rule)) = self.links.of[at] else {
                continue;
            };
            let is_child = matches!(
                operation.row_data.kind,
                OperationKind::Refund | OperationKind::Dispute
            );
            if !is_child
                || !matches!(rule, Rule::Reference | Rule::SharedReference)
                || operation.keys.parent == 0
            {
                continue;
            }
            let own = self.parent_of_child(at);
            let (Some(named), Some(own)) = (self.links.parent_intent[at], own) else {
                continue;
            };
            let parent = |intent: usize| self.component.intents[intent].keys.parent;
            if named != own && (parent(named) == 0 || parent(named) != parent(own)) {
                self.unlink(at);
                self.contest(at, &Rc::from([intent]), ContestReason::Contradiction);
            }
        }
    }

    /// Refunds and disputes that only their parent leads to: at equal amount and currency, in a fixed order.
    pub(super) fn children(&mut self) {
        let component = self.component;
        let mut groups: Vec<(usize, Family, Vec<usize>)> = Vec::new();
        let mut places: HashMap<(usize, Family), usize> = HashMap::new();
        for at in 0..component.operations.len() {
            let operation = &component.operations[at];
            let kind = operation.row_data.kind;
            let (Some(parent), true) = (self.links.parent_intent[at], self.is_free(at)) else {
                continue;
            };
            if let (OperationKind::Refund | OperationKind::Dispute, Some(family)) =
                (kind, kind.family())
            {
                let place = *places.entry((parent, family)).or_insert_with(|| {
                    groups.push((parent, family, Vec::new()));
                    groups.len() - 1
                });
                groups[place].2.push(at);
            }
        }
        for (parent, family, operations) in groups {
            let keys = component.intents[parent].keys;
            let mut intents: Vec<usize> = component.with_parent(keys.id, family).collect();
            if keys.parent != 0 {
                intents.extend(component.with_parent(keys.parent, family));
            }
            intents.sort_unstable();
            intents.dedup();
            intents.retain(|intent| {
                self.claims[*intent] == 0
                    && component.intents[*intent].row_data.processor_ref.is_empty()
            });
            self.deal_equal(&operations, &intents, Rule::Parent);
        }
    }

    /// Refunds and disputes whose payment is not known, with the rows that name the same parent: at equal money as well.
    pub(super) fn children_by_reference(&mut self) {
        let component = self.component;
        let mut groups: BTreeMap<(Key, Family), Vec<usize>> = BTreeMap::new();
        for at in 0..component.operations.len() {
            let operation = &component.operations[at];
            let kind = operation.row_data.kind;
            let is_child = matches!(kind, OperationKind::Refund | OperationKind::Dispute);
            if let (true, Some(family)) = (is_child, kind.family())
                && operation.keys.reference != 0
                && self.links.parent_intent[at].is_none()
                && self.is_free(at)
            {
                let group = groups.entry((operation.keys.reference, family));
                group.or_default().push(at);
            }
        }
        for ((key, family), operations) in groups {
            let intents: Vec<usize> = component
                .with_parent(key, family)
                .filter(|&intent| self.claims[intent] == 0)
                .filter(|&intent| component.intents[intent].row_data.processor_ref.is_empty())
                .collect();
            if !intents.is_empty() {
                self.deal_equal(&operations, &intents, Rule::SharedReference);
            }
        }
    }

    /// Failures, reversals and adjustments follow the operation they name to that operation's intent.
    pub(super) fn returns(&mut self) {
        let component = self.component;
        for place in 0..self.links.order.len() {
            let at = self.links.order[place];
            let operation = &component.operations[at];
            if !operation.is_return() || !self.is_free(at) {
                continue;
            }
            let families: &[Family] = match operation.row_data.kind {
                OperationKind::RefundFailure => &[Family::Refund],
                OperationKind::DisputeReversal => &[Family::Dispute],
                OperationKind::PayoutFailure => &[Family::Payout],
                _ => &[
                    Family::Refund,
                    Family::Dispute,
                    Family::Payout,
                    Family::Charge,
                ],
            };
            if let Some(intent) = self.returned_intent(at, families)
                && self.gives_back(at, intent)
            {
                self.settle(at, intent, Rule::Parent);
            }
        }
    }

    pub(super) fn returned_intent(&self, at: usize, families: &[Family]) -> Option<usize> {
        let component = self.component;
        let keys = component.operations[at].keys;
        let mut above = self.links.parent_operation[at];
        for _ in 0..HOPS_MAX {
            let Some(parent) = above else { break };
            if let Some((intent, _)) = self.links.of[parent]
                && families.contains(&component.intents[intent].row_data.kind.family())
            {
                return Some(intent);
            }
            // A return of a return leads further up; a row that found no intent ends the search.
            above = if component.operations[parent].is_return() {
                self.links.parent_operation[parent]
            } else {
                None
            };
        }
        if self.links.parent_operation[at].is_some_and(|parent| {
            families
                .iter()
                .any(|&f| component.operations[parent].is_own(f))
        }) {
            return None;
        }
        let only = |mut found: Vec<usize>| {
            found.sort_unstable();
            found.dedup();
            if let [only] = found.as_slice() {
                Some(*only)
            } else {
                None
            }
        };
        for &family in families {
            for key in [keys.parent, keys.object, keys.id] {
                let named: Vec<usize> = component.with_processor(key, family).collect();
                if let Some(intent) = only(named) {
                    return Some(intent);
                }
            }
            let named: Vec<usize> = component.with_reference(keys.reference, family).collect();
            if let Some(intent) = only(named) {
                return Some(intent);
            }
        }
        None
    }

    /// Whether the row moves money against the intent's direction. What hangs on a dispute counts either way.
    pub(super) fn gives_back(&self, at: usize, intent: usize) -> bool {
        let row = &self.component.operations[at].row_data;
        let intent = &self.component.intents[intent].row_data;
        intent.kind.family() == Family::Dispute
            || row.amount_minor.signum() == -intent.kind.direction().signum()
    }
}
