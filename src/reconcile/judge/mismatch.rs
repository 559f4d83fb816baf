//! Pairs that belong together and differ in amount or currency. Nothing is written about them.

use std::fmt::Write as _;

use super::Judge;
use super::group::{Group, Money};
use crate::model::breaks::BreakClass;
use crate::model::verdict::Disposition;
use crate::money::Money as Amount;
use crate::reconcile::component::clamp;

impl Judge<'_, '_> {
    pub(super) fn amount_mismatch(&mut self, at: usize, group: &Group, delta: i128) {
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        if !self.dispose(&rows, &[at], Disposition::Unmatched) {
            return;
        }
        let operation = group.members.first().or(group.returns.first()).copied();
        let (money, _) = self.group_money(at, group);
        let local = self.intent_money(at);
        let mut why = match operation {
            Some(operation) if group.is_sum => {
                format!(
                    "{} captures of {} come to {money}, {local} was asked for",
                    group.members.len(),
                    self.id(operation)
                )
            }
            Some(_) if matches!(group.money, Money::Partly(_)) => {
                format!("of {money} a part came back, {local} was asked for")
            }
            _ => format!("the processor moved {money}, {local} was asked for"),
        };
        if let Some(factor) = factor(money.minor, local.minor) {
            write!(why, ": a factor of exactly {factor}").expect("a string takes everything");
        }
        if let Some(first) = group
            .members
            .first()
            .map(|&member| &self.c.operations[member].row_data)
            && first.amount_minor.signum() == -self.c.intents[at].row_data.kind.direction()
            && first.amount_minor != 0
        {
            why.push_str(", and the money went the other way");
        }
        let delta = Amount::new(clamp(delta), money.currency);
        let also = self.rows(&rows);
        self.raise(
            BreakClass::AmountMismatch,
            (operation, Some(at)),
            (Some(money), Some(delta)),
            why,
        )
        .also = also;
    }

    pub(super) fn gave_back_too_much(&mut self, at: usize, group: &Group, excess: i128) {
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        if !self.dispose(&rows, &[at], Disposition::Unmatched) {
            return;
        }
        let operation = group.returns.last().copied();
        let (money, _) = self.group_money(at, group);
        let delta = Amount::new(clamp(excess), money.currency);
        let why = format!("{delta} more came back than had moved ({money})");
        let also = self.rows(&rows);
        self.raise(
            BreakClass::AmountMismatch,
            (operation, Some(at)),
            (Some(money), Some(delta)),
            why,
        )
        .also = also;
    }

    pub(super) fn currency_mismatch(&mut self, at: usize, group: &Group) {
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        if !self.dispose(&rows, &[at], Disposition::Unmatched) {
            return;
        }
        let operation = group.foreign.or(group.members.first().copied());
        let money = operation.map_or_else(|| self.intent_money(at), |row| self.money(row));
        let why = format!(
            "the processor moved {money}, {} was asked for",
            self.intent_money(at)
        );
        let also = self.rows(&rows);
        self.raise(
            BreakClass::CurrencyMismatch,
            (operation, Some(at)),
            (Some(money), None),
            why,
        )
        .also = also;
    }
}

/// A factor of exactly 10, 100 or 1000 between two amounts.
fn factor(left: i64, right: i64) -> Option<i64> {
    [10, 100, 1000].into_iter().find(|factor| {
        left != 0
            && right != 0
            && (left.checked_mul(*factor) == Some(right)
                || right.checked_mul(*factor) == Some(left))
    })
}
