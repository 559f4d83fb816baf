//! Disputes: sums of movements decide, not final-looking labels.

use super::Judge;
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentStatus;
use crate::model::operation::{Family, Operation, OperationKind, OperationStatus};
use crate::model::verdict::{Disposition, IgnoreReason, Match, Rule};
use crate::money::Money as Amount;
use crate::reconcile::component::{Agreement, agreement, clamp};

/// What the rows of a dispute come to.
pub(crate) struct DisputeSum {
    /// Money that the dispute rows took, positive.
    pub(crate) taken: i128,
    /// Money that came back.
    pub(crate) returned: i128,
    /// Whether a row that took money is in reach.
    pub(crate) is_seen: bool,
    /// Whether the processor has not decided yet.
    pub(crate) is_undecided: bool,
}

impl DisputeSum {
    /// Money taken and not returned: lost; returned: won; undecided: pending.
    pub(crate) fn status(&self) -> IntentStatus {
        if self.is_undecided && self.returned < self.taken {
            IntentStatus::Pending
        } else if self.returned >= self.taken {
            IntentStatus::Won
        } else {
            IntentStatus::Lost
        }
    }
}

impl Judge<'_, '_> {
    /// Sums dispute rows, reversals and adjustments; `claimed` stands for an original that is out of reach. Where no
    /// dispute row took money, adjustments that did are what was taken.
    pub(super) fn dispute_sum(&self, rows: &[usize], claimed: i128) -> DisputeSum {
        self.dispute_sum_with(rows, &[], claimed)
    }

    /// The same with rows of other sources.
    fn dispute_sum_with(
        &self,
        rows: &[usize],
        others: &[Operation<'_>],
        claimed: i128,
    ) -> DisputeSum {
        let mut sum = DisputeSum {
            taken: 0,
            returned: 0,
            is_seen: false,
            is_undecided: false,
        };
        let mut adjusted = 0;
        let mut taken_by_adjustment = 0;
        let mut is_untaken = false;
        let here = rows.iter().map(|&at| &self.c.operations[at].row_data);
        for row in here.chain(others) {
            let (amount, moved) = (i128::from(row.amount_minor), row.moved_money());
            match row.kind {
                OperationKind::Dispute => {
                    sum.is_undecided |= row.status == OperationStatus::Pending;
                    is_untaken |=
                        row.status != OperationStatus::Succeeded && row.net_minor == Some(0);
                    if moved {
                        sum.taken -= amount;
                        sum.is_seen = true;
                    }
                }
                OperationKind::DisputeReversal if moved => sum.returned += amount,
                OperationKind::Adjustment if moved => {
                    adjusted += amount;
                    taken_by_adjustment -= amount.min(0);
                }
                _ => {}
            }
        }
        if !sum.is_seen && sum.returned != 0 && taken_by_adjustment != 0 {
            sum.taken = taken_by_adjustment;
            adjusted += taken_by_adjustment;
        } else if !sum.is_seen && !is_untaken && (sum.returned != 0 || adjusted != 0) {
            sum.taken = claimed;
        }
        sum.returned += adjusted;
        sum
    }

    /// Whether money that was returned is taken a second time: each row takes what is disputed, and no more than that is
    /// out at once.
    fn is_taken_again(
        &self,
        at: usize,
        own: &[usize],
        others: &[Operation<'_>],
        sum: &DisputeSum,
    ) -> bool {
        let (local, rules) = (&self.c.intents[at].row_data, self.context.rules);
        let here = own.iter().map(|&row| &self.c.operations[row].row_data);
        let there = others
            .iter()
            .filter(|row| row.kind == OperationKind::Dispute);
        let mut takings = here.chain(there).filter(|row| row.moved_money());
        let outstanding = sum.taken - sum.returned;
        outstanding <= i128::from(self.c.intents[at].row_data.amount_minor)
            && takings.all(|row| {
                agreement(i128::from(row.amount_minor), row.currency, local, rules).is_full()
            })
    }

    /// The verdict about a dispute intent and its rows.
    pub(super) fn dispute(&mut self, at: usize) {
        let local = self.c.intents[at].row_data;
        let mut rows = self.claims[at].clone();
        rows.sort_by_key(|&row| {
            let row = &self.c.operations[row].row_data;
            (row.occurred_at, row.operation_id)
        });
        let movers: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|&row| self.c.operations[row].moved)
            .collect();
        let own: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|&row| self.c.operations[row].is_own(Family::Dispute))
            .collect();
        let others: Vec<Operation<'_>> = self.others(at).collect();
        if movers.is_empty() && others.iter().any(Operation::moved_money) {
            // The rows that decide are elsewhere, and so is the verdict.
            for &row in &rows {
                let is_waiting = self.c.operations[row].row_data.status == OperationStatus::Pending;
                if !is_waiting {
                    self.dispose(&[row], &[], Disposition::Ignored(IgnoreReason::NoMoney));
                } else if self.dispose(&[row], &[], Disposition::Pending) {
                    self.pend(Some(row), None, "the dispute is not decided yet");
                }
            }
            return self.absent(at);
        }
        if movers.is_empty() {
            let waiting = own
                .iter()
                .copied()
                .find(|&row| self.c.operations[row].row_data.status == OperationStatus::Pending);
            match (waiting, own.is_empty()) {
                (Some(row), _) => {
                    if self.dispose(&rows, &[at], Disposition::Pending) {
                        self.pend(Some(row), Some(at), "the dispute is not decided yet");
                        self.link(row, true);
                    }
                }
                (None, true) => self.absent(at),
                (None, false) => {
                    self.dispose(&rows, &[at], Disposition::Ignored(IgnoreReason::NoMoney));
                }
            }
            return;
        }
        let currency = self.c.operations[movers[0]].row_data.currency;
        if movers
            .iter()
            .any(|&row| self.c.operations[row].row_data.currency != local.currency)
            || others
                .iter()
                .any(|row| row.moved_money() && row.currency != local.currency)
        {
            return self.dispute_break(at, &rows, movers[0], BreakClass::CurrencyMismatch, None, {
                format!(
                    "the processor moved {}, {} was disputed locally",
                    self.money(movers[0]),
                    self.intent_money(at)
                )
            });
        }
        let sum = self.dispute_sum_with(&rows, &others, i128::from(local.amount_minor));
        if sum.is_seen
            && !self.is_taken_again(at, &own, &others, &sum)
            && let Agreement::Amount { delta } =
                agreement(-sum.taken, currency, &local, self.context.rules)
        {
            let taken = Amount::new(clamp(sum.taken), currency);
            let why = format!(
                "the dispute took {taken}, {} stands locally",
                self.intent_money(at)
            );
            let first = own.first().copied().unwrap_or(movers[0]);
            return self.dispute_break(
                at,
                &rows,
                first,
                BreakClass::AmountMismatch,
                Some(Amount::new(delta, currency)),
                why,
            );
        }
        if sum.returned > sum.taken {
            let delta = Amount::new(clamp(sum.returned - sum.taken), currency);
            let why = format!("the dispute left {delta} more than it took: that is no win");
            let last = *movers.last().expect("there are movers");
            return self.dispute_break(
                at,
                &rows,
                last,
                BreakClass::AmountMismatch,
                Some(delta),
                why,
            );
        }
        let status = sum.status();
        if status == IntentStatus::Pending {
            if self.dispose(&rows, &[at], Disposition::Pending) {
                self.pend(
                    own.first().copied(),
                    Some(at),
                    "the dispute is not decided yet",
                );
                for (n, &row) in rows.iter().enumerate() {
                    self.link(row, n == 0);
                }
            }
            return;
        }
        if !self.dispose(&movers, &[at], Disposition::Matched) {
            return;
        }
        self.dispose(&rows, &[], Disposition::Ignored(IgnoreReason::NoMoney));
        for (n, &row) in movers.iter().enumerate() {
            let rule = self.links.of[row].map_or(Rule::Parent, |(_, rule)| rule);
            self.verdicts.matches.push(Match {
                intent: self.c.intents[at].row,
                operation: self.c.operations[row].row,
                rule,
                delta_minor: 0,
            });
            self.link(row, n == 0);
        }
        if status != local.status {
            let news = *movers.last().expect("there are movers");
            let what = if status == IntentStatus::Won {
                "was returned"
            } else {
                "was taken and not returned"
            };
            let why = format!(
                "{}; {} of the dispute {what}; {}",
                self.says(news),
                self.intent_money(at),
                self.local_says(at)
            );
            let repair = self.set_status(at, news, status, false);
            let money = self.money(news);
            self.raise(
                BreakClass::StatusBehind,
                (Some(news), Some(at)),
                (Some(money), None),
                why,
            )
            .repair = Some(repair);
        }
    }

    fn dispute_break(
        &mut self,
        at: usize,
        rows: &[usize],
        operation: usize,
        class: BreakClass,
        delta: Option<Amount>,
        why: String,
    ) {
        if self.dispose(rows, &[at], Disposition::Unmatched) {
            let money = self.money(operation);
            let also = self.rows(rows);
            self.raise(
                class,
                (Some(operation), Some(at)),
                (Some(money), delta),
                why,
            )
            .also = also;
        }
    }
}
