//! Refunds and disputes above the charge: more was given back than the processor ever held of it.

use hashbrown::HashMap;

use super::Judge;
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentKind;
use crate::model::operation::{Family, OperationKind};
use crate::model::verdict::Disposition;
use crate::money::Money as Amount;
use crate::reconcile::component::clamp;

impl Judge<'_, '_> {
    /// Adds up, for each charge, what was given back of it, earliest first; each row that goes above the charge is a break
    /// of its own with the part that is too much. What is within the tolerance is not too much. Local rows out of reach count with the amount they claim.
    pub(super) fn excesses(&mut self) {
        let mut given: HashMap<usize, Vec<usize>> = HashMap::new();
        for at in 0..self.c.operations.len() {
            let row = &self.c.operations[at];
            let takes = matches!(
                row.row_data.kind,
                OperationKind::Refund | OperationKind::Dispute
            );
            let Some(parent) = self.links.parent_intent[at] else {
                continue;
            };
            let took = takes && row.moved && row.row_data.amount_minor < 0;
            if took && row.is_usable() && !self.hangs_on_extra(at, parent) {
                given.entry(parent).or_default().push(at);
            }
        }
        let mut charges: Vec<usize> = given.keys().copied().collect();
        charges.sort_unstable();
        for charge in charges {
            let rows = given.remove(&charge).unwrap_or_default();
            self.excess(charge, rows);
        }
    }

    fn excess(&mut self, charge: usize, mut rows: Vec<usize>) {
        let currency = self.c.intents[charge].row_data.currency;
        rows.retain(|&at| self.c.operations[at].row_data.currency == currency);
        rows.sort_by_key(|&at| {
            let row = &self.c.operations[at].row_data;
            (row.occurred_at, row.operation_id)
        });
        let charged = self.charged(charge);
        let tolerance = self.context.rules.tolerance.get(&currency);
        let tolerance = i128::from(tolerance.copied().unwrap_or(0));
        let mut total = self.claimed_out_of_reach(charge);
        for at in rows {
            let kept = self.c.operations[at].magnitude() - self.links.given_back[at];
            if kept <= 0 {
                continue;
            }
            total += kept;
            let over = (total - charged).min(kept);
            let row = self.c.operations[at].row;
            let is_listed = !matches!(
                self.verdicts.operations[row],
                Disposition::Ignored(_) | Disposition::OutOfScope
            );
            let is_said = self.verdicts.duplicate_refunds.contains(&row);
            if over > tolerance && is_listed && !is_said {
                let delta = Amount::new(clamp(over), currency);
                let charged = Amount::new(clamp(charged), currency);
                let total = Amount::new(clamp(total), currency);
                let why = format!(
                    "with {} {total} was given back of {} ({charged}): {delta} too much",
                    self.says(at),
                    self.intent_id(charge)
                );
                let money = self.money(at);
                self.raise(
                    BreakClass::DuplicateRefund,
                    (Some(at), Some(charge)),
                    (Some(money), Some(delta)),
                    why,
                );
            }
        }
    }

    /// What the processor took for a charge: as it is seen, else as the local row claims.
    fn charged(&self, charge: usize) -> i128 {
        let seen: i128 = self.members[charge]
            .iter()
            .filter(|&&at| {
                self.c.operations[at].moved && self.c.operations[at].is_own(Family::Charge)
            })
            .map(|&at| self.c.operations[at].magnitude())
            .sum();
        if seen > 0 {
            seen
        } else {
            i128::from(self.c.intents[charge].row_data.amount_minor)
        }
    }

    fn claimed_out_of_reach(&self, charge: usize) -> i128 {
        let key = self.c.intents[charge].keys.id;
        let currency = self.c.intents[charge].row_data.currency;
        [Family::Refund, Family::Dispute]
            .into_iter()
            .flat_map(|family| self.c.with_parent(key, family))
            .filter(|&at| {
                let local = &self.c.intents[at].row_data;
                local.claims_money()
                    && local.currency == currency
                    && local.kind != IntentKind::Charge
                    && self.claims[at].is_empty()
                    && local.created_at < self.context.frame.low
            })
            .map(|at| i128::from(self.c.intents[at].row_data.amount_minor))
            .sum()
    }

    /// Whether a refund or dispute is of a further charge, one that does not satisfy the intent.
    fn hangs_on_extra(&self, at: usize, charge: usize) -> bool {
        self.links.parent_operation[at].is_some_and(|parent| {
            let row = &self.c.operations[parent];
            row.is_own(Family::Charge)
                && row.moved
                && !self.members[charge].is_empty()
                && self.member_of[parent] != Some(charge)
        })
    }
}
