//! Intents by what they ask for, so that dealing stays linear where thousands share one key.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use hashbrown::HashSet;

use super::component::Component;
use super::rules::Rules;
use crate::money::Currency;

/// Intents of one amount, in the order in which they are dealt. What was passed is never looked at again.
#[derive(Default)]
struct Bucket {
    intents: Vec<usize>,
    passed: usize,
}

/// Intents by currency and amount, each amount in the order in which they were given.
pub(crate) struct Buckets {
    by_money: BTreeMap<(Currency, i64), Bucket>,
}

impl Buckets {
    pub(crate) fn of(
        component: &Component<'_>,
        intents: impl IntoIterator<Item = usize>,
    ) -> Buckets {
        let mut by_money: BTreeMap<_, Bucket> = BTreeMap::new();
        for intent in intents {
            let row = &component.intents[intent].row_data;
            let bucket = by_money
                .entry((row.currency, row.amount_minor))
                .or_default();
            bucket.intents.push(intent);
        }
        Buckets { by_money }
    }

    /// Takes the first intent whose money agrees with the operation's, equal amounts first, then the nearest. An intent
    /// that is blocked now stays blocked.
    pub(crate) fn take(
        &mut self,
        component: &Component<'_>,
        operation: usize,
        rules: &Rules,
        is_blocked: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        for money in self.agreeing(component, operation, rules) {
            let Some(bucket) = self.by_money.get_mut(&money) else {
                continue;
            };
            while let Some(&intent) = bucket.intents.get(bucket.passed) {
                bucket.passed += 1;
                if !is_blocked(intent) {
                    return Some(intent);
                }
            }
        }
        None
    }

    /// The first intent whose money agrees with the operation's, taken or not.
    pub(crate) fn first(
        &self,
        component: &Component<'_>,
        operation: usize,
        rules: &Rules,
    ) -> Option<usize> {
        self.agreeing(component, operation, rules)
            .into_iter()
            .find_map(|money| self.by_money.get(&money)?.intents.first().copied())
    }

    /// Every intent whose money agrees with the operation's.
    pub(crate) fn all(
        &self,
        component: &Component<'_>,
        operation: usize,
        rules: &Rules,
    ) -> Vec<usize> {
        self.agreeing(component, operation, rules)
            .into_iter()
            .filter_map(|money| self.by_money.get(&money))
            .flat_map(|bucket| bucket.intents.iter().copied())
            .collect()
    }

    /// The amounts that agree with an operation's, nearest first. All intents of one amount and direction agree alike.
    fn agreeing(
        &self,
        component: &Component<'_>,
        operation: usize,
        rules: &Rules,
    ) -> Vec<(Currency, i64)> {
        let row = &component.operations[operation].row_data;
        let exact = row.amount_minor.saturating_abs();
        let mut near: Vec<(Currency, i64)> =
            self.by_money
                .range(within(row.currency, exact, rules))
                .filter(|(_, bucket)| {
                    bucket.intents.first().is_some_and(|&intent| {
                        component.agreement(operation, intent, rules).is_full()
                    })
                })
                .map(|(&money, _)| money)
                .collect();
        near.sort_by_key(|&(_, amount)| (amount.abs_diff(exact), amount));
        near
    }
}

/// The amounts that tolerance and rounding can bring together with one.
fn within(currency: Currency, exact: i64, rules: &Rules) -> RangeInclusive<(Currency, i64)> {
    let declared = |of: &BTreeMap<Currency, i64>| of.get(&currency).copied().unwrap_or(0).max(0);
    let slack = declared(&rules.tolerance).saturating_add(declared(&rules.rounds_to_minor));
    (currency, exact.saturating_sub(slack))..=(currency, exact.saturating_add(slack))
}

/// Intents that wait, in one order.
pub(crate) struct Queue {
    buckets: Buckets,
    everyone: Vec<usize>,
    passed: usize,
}

impl Queue {
    pub(crate) fn of(
        component: &Component<'_>,
        waiting: &[usize],
        is_in: &dyn Fn(usize) -> bool,
    ) -> Queue {
        let everyone: Vec<usize> = waiting.iter().copied().filter(|&at| is_in(at)).collect();
        Queue {
            buckets: Buckets::of(component, everyone.iter().copied()),
            everyone,
            passed: 0,
        }
    }

    /// The first of equal money that is not used yet.
    pub(crate) fn take_equal(
        &mut self,
        component: &Component<'_>,
        operation: usize,
        rules: &Rules,
        used: &HashSet<usize>,
    ) -> Option<usize> {
        self.buckets
            .take(component, operation, rules, |intent| used.contains(&intent))
    }

    /// The first of any money that is not used yet.
    pub(crate) fn take_any(&mut self, used: &HashSet<usize>) -> Option<usize> {
        while let Some(&intent) = self.everyone.get(self.passed) {
            self.passed += 1;
            if !used.contains(&intent) {
                return Some(intent);
            }
        }
        None
    }
}
