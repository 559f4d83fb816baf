//! Dealing: several operations and several intents share one key.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::buckets::{Buckets, Queue};
use super::{ContestReason, Ladder, deal_rank, is_other, share_payment};
use crate::model::verdict::Rule;
use crate::reconcile::component::agreement;
use crate::reconcile::keys::Key;
use crate::time::Instant;

impl Ladder<'_, '_> {
    /// Deals operations to intents that share a key: equal money first, then one odd pair if just one of each is left;
    /// what is beyond is in excess where its money is equal, and contested where it is not.
    pub(super) fn deal(&mut self, operations: &[usize], intents: &[usize], rule: Rule) {
        let component = self.component;
        let mut open: Vec<usize> = intents
            .iter()
            .copied()
            .filter(|&intent| !self.is_taken(intent))
            .collect();
        open.sort_by_key(|&intent| {
            let row = &component.intents[intent].row_data;
            (
                self.stands_elsewhere(intent),
                deal_rank(row.status),
                !row.processor_ref.is_empty(),
                row.idempotency_key,
                row.intent_id,
            )
        });
        self.keep_one_attempt(&mut open, intents);
        let mut movers: Vec<usize> = operations
            .iter()
            .copied()
            .filter(|&operation| component.operations[operation].moved)
            .collect();
        movers.sort_by_key(|&operation| {
            let row = &component.operations[operation];
            let is_given_back = self.links.given_back[operation] >= row.magnitude();
            (
                is_given_back,
                row.row_data.occurred_at,
                row.row_data.operation_id,
            )
        });
        // Equal money: buckets of intents by what they ask for, operations in order of preference.
        let mut pairs: BTreeMap<(crate::money::Currency, i64), (Vec<usize>, Vec<usize>)> =
            BTreeMap::new();
        let mut used: HashSet<usize> = HashSet::new();
        let mut rest: Vec<usize> = Vec::new();
        let mut satisfied: HashMap<Key, Option<u32>> = HashMap::new();
        let mut buckets = Buckets::of(component, open.iter().copied());
        for operation in movers {
            let pick = buckets.take(component, operation, self.rules, |intent| {
                let local = &component.intents[intent];
                let attempt = satisfied.get(&local.keys.parent);
                local.keys.parent != 0
                    && attempt.is_some_and(|&attempt| is_other(attempt, local.row_data.attempt))
            });
            let Some(intent) = pick else {
                rest.push(operation);
                continue;
            };
            let local = &component.intents[intent];
            used.insert(intent);
            satisfied
                .entry(local.keys.parent)
                .or_insert(local.row_data.attempt);
            let money = (local.row_data.currency, local.row_data.amount_minor);
            let pair = pairs.entry(money).or_default();
            pair.0.push(operation);
            pair.1.push(intent);
        }
        for (mut operations, mut intents) in pairs.into_values() {
            operations
                .sort_by_key(|&operation| component.operations[operation].row_data.operation_id);
            intents.sort_by_key(|&intent| self.key_order(intent));
            for (operation, intent) in operations.into_iter().zip(intents) {
                self.settle(operation, intent, rule);
            }
        }
        let left: Vec<usize> = open
            .into_iter()
            .filter(|intent| !used.contains(intent))
            .collect();
        self.deal_rest(rest, &left, intents, rule);
        self.deal_without_money(operations, intents, rule);
    }

    /// Of attempts at one thing at most one may be satisfied: once one is, the others are not dealt any money.
    pub(super) fn keep_one_attempt(&self, open: &mut Vec<usize>, intents: &[usize]) {
        let satisfied: HashMap<Key, Option<u32>> = intents
            .iter()
            .filter(|&&intent| self.is_taken(intent))
            .map(|&intent| {
                (
                    self.component.intents[intent].keys.parent,
                    self.component.intents[intent].row_data.attempt,
                )
            })
            .filter(|&(parent, _)| parent != 0)
            .collect();
        open.retain(|&intent| {
            let local = &self.component.intents[intent];
            satisfied
                .get(&local.keys.parent)
                .is_none_or(|attempt| !is_other(*attempt, local.row_data.attempt))
        });
    }

    pub(super) fn deal_rest(
        &mut self,
        rest: Vec<usize>,
        left: &[usize],
        intents: &[usize],
        rule: Rule,
    ) {
        if rest.is_empty() {
            return;
        }
        let component = self.component;
        let mut ordered = intents.to_vec();
        ordered.sort_by_key(|&intent| self.key_order(intent));
        let all = Buckets::of(component, ordered);
        let mut odd: Vec<usize> = Vec::new();
        for operation in rest {
            match all.first(component, operation, self.rules) {
                Some(intent) => {
                    self.is_settled[operation] = true;
                    self.links.excess.push((operation, intent));
                }
                None => odd.push(operation),
            }
        }
        if self.captures_of_one(&odd, left, rule) {
            return;
        }
        if let ([operation], [intent]) = (odd.as_slice(), left) {
            self.settle(*operation, *intent, rule);
            return;
        }
        let candidates = if left.is_empty() { intents } else { left };
        let candidates = self.by_id(candidates.to_vec());
        for operation in odd {
            self.contest(operation, &candidates, ContestReason::SharedAmount);
        }
    }

    /// Captures that share parent or object go together to the one intent that they add up to.
    pub(super) fn captures_of_one(&mut self, odd: &[usize], left: &[usize], rule: Rule) -> bool {
        let component = self.component;
        if odd.len() < 2 || !share_payment(component, odd) {
            return false;
        }
        let sum: i128 = odd
            .iter()
            .map(|&at| i128::from(component.operations[at].row_data.amount_minor))
            .sum();
        let currency = component.operations[odd[0]].row_data.currency;
        let fitting: Vec<usize> = left
            .iter()
            .copied()
            .filter(|&intent| {
                agreement(
                    sum,
                    currency,
                    &component.intents[intent].row_data,
                    self.rules,
                )
                .is_full()
            })
            .collect();
        match (fitting.as_slice(), left) {
            ([intent], _) | ([], [intent]) => {
                for &operation in odd {
                    self.settle(operation, *intent, rule);
                }
                true
            }
            _ => false,
        }
    }

    /// Rows without money: to the intent of the payment they belong to, else to one that still waits for them. A failed
    /// attempt prefers a row that failed, a pending one or a hold a row that is open.
    pub(super) fn deal_without_money(
        &mut self,
        operations: &[usize],
        intents: &[usize],
        rule: Rule,
    ) {
        let component = self.component;
        for &operation in operations {
            self.follow(operation);
        }
        let mut rows: Vec<usize> = operations
            .iter()
            .copied()
            .filter(|&operation| self.is_free(operation) && !component.operations[operation].moved)
            .collect();
        if rows.is_empty() {
            return;
        }
        rows.sort_by_key(|&operation| {
            let row = &component.operations[operation].row_data;
            (row.occurred_at, row.operation_id)
        });
        let mut ordered = intents.to_vec();
        ordered.sort_by_key(|&intent| (self.stands_elsewhere(intent), self.key_order(intent)));
        let waiting: Vec<usize> = ordered
            .iter()
            .copied()
            .filter(|&intent| !self.is_taken(intent))
            .collect();
        let last_resort = waiting.first().or(ordered.first()).copied();
        let is_over = |intent: usize| deal_rank(component.intents[intent].row_data.status) == 2;
        let is_open = |intent: usize| component.intents[intent].row_data.status.is_open();
        let mut over = Queue::of(component, &waiting, &is_over);
        let mut not_over = Queue::of(component, &waiting, &|intent| !is_over(intent));
        let mut open = Queue::of(component, &waiting, &is_open);
        let mut not_open = Queue::of(component, &waiting, &|intent| !is_open(intent));
        let mut used: HashSet<usize> = HashSet::new();
        for operation in rows {
            let row = &component.operations[operation];
            let [first, second] = if row.is_failed() || row.is_expired() {
                [&mut over, &mut not_over]
            } else {
                [&mut open, &mut not_open]
            };
            // Equal money first: a repair changes the status of an intent, never its money.
            let pick = first
                .take_equal(component, operation, self.rules, &used)
                .or_else(|| second.take_equal(component, operation, self.rules, &used))
                .or_else(|| first.take_any(&used))
                .or_else(|| second.take_any(&used))
                .or(last_resort);
            if let Some(intent) = pick {
                used.insert(intent);
                self.settle(operation, intent, rule);
            }
        }
    }

    /// Where the payment of a refund or dispute stands among those of its intent: the one that was found to satisfy it,
    /// the one that the intent names, the earliest. A refund of a further charge comes after one of the charge itself.
    fn payment_rank(&self, operation: usize) -> ([bool; 2], Option<(Instant, &str)>) {
        let Some(parent) = self.links.parent_operation[operation] else {
            return ([false, false], None);
        };
        let row = &self.component.operations[parent];
        let is_named = self.links.parent_intent[operation].is_some_and(|intent| {
            let named = self.component.intents[intent].keys.processor;
            named != 0 && [row.keys.id, row.keys.object].contains(&named)
        });
        let time = (row.row_data.occurred_at, row.row_data.operation_id);
        ([!self.links.is_stored[parent], !is_named], Some(time))
    }

    /// Deals refunds and disputes to rows of equal money: what moved money and kept it first, what failed last.
    pub(super) fn deal_equal(&mut self, operations: &[usize], intents: &[usize], rule: Rule) {
        let component = self.component;
        let mut intents = intents.to_vec();
        intents.sort_by_key(|&intent| {
            let row = &component.intents[intent].row_data;
            let is_answered = self.stands_elsewhere(intent);
            (
                is_answered,
                deal_rank(row.status),
                row.idempotency_key,
                row.intent_id,
            )
        });
        let mut operations = operations.to_vec();
        operations.sort_by_key(|&operation| {
            let row = &component.operations[operation];
            let is_over = row.is_failed() || row.is_expired();
            let is_given_back = row.moved && self.links.given_back[operation] >= row.magnitude();
            let ([is_not_stored, is_not_named], payment) = self.payment_rank(operation);
            (
                is_not_stored,
                is_not_named,
                !row.moved,
                is_given_back,
                !row.moved && is_over,
                payment,
                row.row_data.occurred_at,
                row.row_data.operation_id,
            )
        });
        let is_over = |intent: usize| deal_rank(component.intents[intent].row_data.status) == 2;
        let mut buckets = Buckets::of(component, intents);
        let mut satisfied: HashMap<(Key, Key), Option<u32>> = HashMap::new();
        for operation in operations {
            let row = &component.operations[operation];
            let is_given_back = row.moved && self.links.given_back[operation] >= row.magnitude();
            let prefers_over =
                is_given_back || (!row.moved && (row.is_failed() || row.is_expired()));
            let is_out = |intent: usize| {
                let local = &component.intents[intent];
                let attempt = satisfied.get(&(local.keys.parent, local.keys.reference));
                local.keys.reference != 0
                    && attempt.is_some_and(|&attempt| is_other(attempt, local.row_data.attempt))
            };
            // What failed or came back speaks of a row that failed, if there is one.
            let mut pick = None;
            if prefers_over {
                pick = buckets.take(component, operation, self.rules, |intent| {
                    is_out(intent) || !is_over(intent)
                });
            }
            let pick = pick.or_else(|| buckets.take(component, operation, self.rules, is_out));
            if let Some(intent) = pick {
                let local = &component.intents[intent];
                if component.operations[operation].moved {
                    satisfied
                        .entry((local.keys.parent, local.keys.reference))
                        .or_insert(local.row_data.attempt);
                }
                self.settle(operation, intent, rule);
            }
        }
    }
}
