//! Refunds and disputes above the charge: more was given back than the processor ever held of it.

use hashbrown::HashMap;

use super::Judge;
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentKind;
use crate::model::operation::{Family, OperationKind};
use crate::model::verdict::Disposition;
use crate::money::Money as Amount;
use crate::reconcile::component::clamp;
use crate::reconcile::keys::OperationKeys;
use crate::reconcile::ladder::HOPS_MAX;

/// What was given back of: the charge that an intent asks for, or a further one under the same intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Given {
    /// The charge's intent.
    charge: usize,
    /// The further charge.
    extra: Option<usize>,
}

impl Judge<'_, '_> {
    /// Adds up, for each charge, what was given back of it, earliest first; each row that goes above the charge is a break
    /// of its own with the part that is too much. What is within the tolerance is not too much. Local rows out of reach
    /// count with the amount they claim.
    pub(super) fn excesses(&mut self) {
        let mut given: HashMap<Given, Vec<usize>> = HashMap::new();
        for at in 0..self.c.operations.len() {
            let row = &self.c.operations[at];
            let Some(charge) = self.links.parent_intent[at] else {
                continue;
            };
            let took = row.moved && row.row_data.amount_minor < 0 && self.takes_from_payment(at);
            if took && row.is_usable() {
                let extra = self.extra_above(at, charge);
                given.entry(Given { charge, extra }).or_default().push(at);
            }
        }
        let mut charges: Vec<Given> = given.keys().copied().collect();
        charges.sort_unstable();
        for of in charges {
            let rows = given.remove(&of).unwrap_or_default();
            self.excess(of, rows);
        }
    }

    /// Whether a row gives money of a payment back: refunds and disputes, and what takes as much as a dispute once more.
    /// An adjustment of another amount that hangs on a dispute is a cost of it, which decides only won or lost.
    fn takes_from_payment(&self, at: usize) -> bool {
        let row = &self.c.operations[at];
        let disputed = || {
            self.links.parent_operation[at]
                .map(|parent| &self.c.operations[parent])
                .filter(|parent| parent.is_own(Family::Dispute) && parent.moved)
        };
        match row.row_data.kind {
            OperationKind::Refund | OperationKind::Dispute | OperationKind::DisputeReversal => true,
            OperationKind::Adjustment => {
                disputed().is_some_and(|dispute| dispute.magnitude() == row.magnitude())
            }
            _ => false,
        }
    }

    fn excess(&mut self, of: Given, mut rows: Vec<usize>) {
        let charge = of.charge;
        let currency = self.c.intents[charge].row_data.currency;
        rows.retain(|&at| self.c.operations[at].row_data.currency == currency);
        // What is set aside as returned in full counts first: the break is told of a row that asks for one.
        rows.sort_by_key(|&at| {
            let row = &self.c.operations[at];
            let is_set_aside = matches!(self.verdicts.operations[row.row], Disposition::Ignored(_));
            let row = &row.row_data;
            (!is_set_aside, row.occurred_at, row.operation_id)
        });
        let charged = match of.extra {
            Some(extra) => self.c.operations[extra].magnitude(),
            None => self.charged(charge),
        };
        let tolerance = self.context.rules.tolerance.get(&currency);
        let tolerance = i128::from(tolerance.copied().unwrap_or(0));
        let mut total = match of.extra {
            Some(_) => 0,
            None => self.claimed_out_of_reach(charge),
        };
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

    /// What the processor took for a charge and still held before any refund: as it is seen, else as the local row claims.
    fn charged(&self, charge: usize) -> i128 {
        let taken: Vec<usize> = self.members[charge]
            .iter()
            .copied()
            .filter(|&at| {
                self.c.operations[at].moved && self.c.operations[at].is_own(Family::Charge)
            })
            .collect();
        if taken.is_empty() {
            return if self.took_nothing(charge) {
                0
            } else {
                i128::from(self.c.intents[charge].row_data.amount_minor)
            };
        }
        let sum = |rows: &[usize]| -> i128 {
            rows.iter()
                .map(|&at| self.c.operations[at].magnitude())
                .sum()
        };
        // What was taken back from us for another reason than a refund or dispute cannot be refunded any more.
        let gone: Vec<usize> = self.claims[charge]
            .iter()
            .copied()
            .filter(|&at| {
                let row = &self.c.operations[at];
                let names = self.links.parent_operation[at];
                row.moved
                    && row.is_return()
                    && row.row_data.amount_minor < 0
                    && names.is_some_and(|parent| taken.contains(&parent))
            })
            .collect();
        (sum(&taken) - sum(&gone)).max(0)
    }

    /// Whether it is known that no money was taken for a charge: its rows are at hand and none of them moved any, or it
    /// claims none and would be at hand if there were one.
    fn took_nothing(&self, charge: usize) -> bool {
        let local = &self.c.intents[charge];
        let (row, frame) = (&local.row_data, self.context.frame);
        let is_covered = row.created_at >= frame.low
            && frame.covered_for(row).is_some_and(|covered| {
                row.created_at.plus(self.context.rules.grace.of(row.kind)) <= covered
            });
        if local.elsewhere.is_some() || !is_covered {
            return false;
        }
        let mut own = self.claims[charge]
            .iter()
            .map(|&at| &self.c.operations[at])
            .filter(|operation| operation.is_own(Family::Charge));
        let named = local.keys.processor;
        let is_named = |keys: &OperationKeys| [keys.id, keys.object].contains(&named);
        if self.claims[charge]
            .iter()
            .any(|&at| self.c.operations[at].is_own(Family::Charge))
        {
            own.clone().all(|operation| !operation.moved)
                && (named == 0 || own.any(|operation| is_named(&operation.keys)))
        } else {
            !row.claims_money()
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
                    && local.created_at < self.context.frame.at_hand_from()
            })
            .map(|at| i128::from(self.c.intents[at].row_data.amount_minor))
            .sum()
    }

    /// The further charge that a row hangs on, one that does not satisfy the intent.
    fn extra_above(&self, at: usize, charge: usize) -> Option<usize> {
        let mut above = self.links.parent_operation[at];
        for _ in 0..HOPS_MAX {
            let parent = above?;
            let row = &self.c.operations[parent];
            if row.is_own(Family::Charge) {
                let is_extra = row.moved && self.member_of[parent] != Some(charge);
                return is_extra.then_some(parent);
            }
            above = self.links.parent_operation[parent];
        }
        None
    }
}
