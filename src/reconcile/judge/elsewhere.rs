//! What other sources show of the same intents: evidence that adds to what is seen here.

use super::Judge;
use super::group::{Group, Money, column, left_of};
use crate::model::operation::{Operation, OperationKind, OperationStatus};

impl<'a> Judge<'_, 'a> {
    /// Operations of other sources that claim the intent, as far as they were asked for.
    pub(super) fn others(&self, at: usize) -> impl Iterator<Item = Operation<'a>> + use<'a> {
        self.context.snapshot.others.of(self.c.intents[at].row)
    }

    /// Whether other sources show money of the intent, or something that may still become money.
    pub(super) fn others_show(&self, at: usize) -> bool {
        self.others(at).any(|row| {
            row.moved_money()
                || row.status == OperationStatus::Pending
                || (row.status == OperationStatus::Succeeded && row.amount_minor != 0)
        })
    }

    /// Whether another source tells of the intent, or shows what may answer it: nothing is missing.
    pub(super) fn is_told_elsewhere(&self, at: usize) -> bool {
        let told = &self.context.snapshot.others.told;
        told.contains(&self.c.intents[at].row) || self.others_show(at)
    }

    /// Whether every source has been heard past the due time of a row that none owns: what is not shown is not there.
    pub(super) fn is_heard(&self, at: usize) -> bool {
        let (frame, local) = (self.context.frame, &self.c.intents[at]);
        let row = &local.row_data;
        let due_at = row.created_at.plus(self.context.rules.grace.of(row.kind));
        let is_asked =
            frame.judges_unowned || self.context.snapshot.others.asked.contains(&local.row);
        is_asked
            && frame
                .others_covered
                .is_some_and(|covered| due_at <= covered)
    }

    /// Adds what other sources show to a group: what came back there of money that moved here, or what moved there and came
    /// back here. Rows count only where they name each other.
    pub(super) fn add_others(&self, at: usize, group: &mut Group) {
        let back_there: i128 = self
            .others(at)
            .filter(|row| is_back(row) && self.names_a_member(row, group))
            .map(|row| i128::from(row.amount_minor).abs())
            .sum();
        let magnitude = |rows: &[usize]| -> i128 {
            rows.iter()
                .map(|&row| self.c.operations[row].magnitude())
                .sum()
        };
        let back = magnitude(&group.returns) + back_there;
        if back_there > 0 && group.money != Money::None && !group.is_original_unseen {
            group.money = left_of(magnitude(&group.members), back);
        } else if let Some(moved) = self.original_there(at, group) {
            group.money = left_of(moved, back);
        } else {
            return;
        }
        group.processor = Some(column(group.money));
    }

    /// The money of the original of what came back here, where another source shows it.
    pub(super) fn original_there(&self, at: usize, group: &Group) -> Option<i128> {
        if !group.is_original_unseen {
            return None;
        }
        let local = &self.c.intents[at].row_data;
        let is_named = |row: &Operation<'_>| {
            group.returns.iter().any(|&back| {
                let back = &self.c.operations[back].row_data;
                [back.parent_id.trim(), back.object_id.trim()]
                    .into_iter()
                    .any(|key| !key.is_empty() && [row.operation_id, row.object_id].contains(&key))
            })
        };
        let moved: i128 = self
            .others(at)
            .filter(|row| row.moved_money() && !is_back(row))
            .filter(|row| row.currency == local.currency && is_named(row))
            .map(|row| i128::from(row.amount_minor).abs())
            .sum();
        (moved > 0).then_some(moved)
    }

    /// Whether a success at another source stands for the same intent, beside what is seen here.
    pub(super) fn another_stands_elsewhere(&self, at: usize, group: &Group) -> bool {
        self.stands_elsewhere(at) && self.original_there(at, group).is_none()
    }

    fn names_a_member(&self, row: &Operation<'_>, group: &Group) -> bool {
        let named = [row.parent_id.trim(), row.object_id.trim()];
        group.members.iter().any(|&member| {
            let member = &self.c.operations[member].row_data;
            member.currency == row.currency
                && named.iter().any(|key| {
                    !key.is_empty() && [member.operation_id, member.object_id].contains(key)
                })
        })
    }
}

fn is_back(row: &Operation<'_>) -> bool {
    row.moved_money() && (row.kind.is_return() || row.kind == OperationKind::Adjustment)
}
