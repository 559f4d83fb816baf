//! Guards: when a plan is too much to be true.
//!
//! Decisions: a plan that exceeds a guard is not written at all. Of a long way that is caught up with in pieces, each piece is
//! judged together with those that the same run wrote before it.

use std::collections::BTreeMap;

use super::rules::Rules;
use crate::model::repair::Repair;
use crate::money::{Currency, Money};

/// What earlier slices of the same run planned and wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Repairs.
    pub repairs: u64,
    /// Intents that were judged.
    pub intents: u64,
    /// Money of the repairs, whatever its sign, in minor units.
    pub sums: BTreeMap<Currency, i128>,
}

impl Spent {
    /// Adds a slice.
    pub fn add(
        &mut self,
        repairs: &[Repair],
        money_of: &dyn Fn(&Repair) -> Option<Money>,
        intents: u64,
    ) {
        self.repairs += repairs.len() as u64;
        self.intents += intents;
        for money in repairs.iter().filter_map(money_of) {
            *self.sums.entry(money.currency).or_default() += i128::from(money.minor).abs();
        }
    }
}

/// Whether the plan exceeds a guard, together with what was spent before: the sentence that says which and by how much.
pub fn guard(
    rules: &Rules,
    repairs: &[Repair],
    money_of: &dyn Fn(&Repair) -> Option<Money>,
    intents: u64,
    before: &Spent,
) -> Option<String> {
    let guards = &rules.guards;
    let count = before.repairs + repairs.len() as u64;
    let intents = before.intents + intents;
    if count > guards.max_repairs {
        return Some(format!(
            "{count} repairs are planned, max_repairs allows {}",
            guards.max_repairs
        ));
    }
    if let Some(limit) = guards.max_ratio_basis_points
        && count >= 20
        && count * 10_000 > limit * intents
    {
        return Some(format!(
            "{count} repairs are planned for {intents} intents, max_ratio allows {}.{:02} %",
            limit / 100,
            limit % 100
        ));
    }
    for (&currency, &limit) in &guards.max_amount {
        let mut spent = before.clone();
        spent.add(repairs, money_of, 0);
        let sum = spent.sums.get(&currency).copied().unwrap_or(0);
        if sum > i128::from(limit) {
            return Some(format!(
                "the planned repairs come to {} {currency}, max_amount allows {}",
                crate::money::format_minor(sum, currency),
                Money::new(limit, currency)
            ));
        }
    }
    None
}
