//! Rows that stand alone: set aside, unreadable, changed, contested, or without a counterpart.

use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};

use super::extra::Claim;
use super::{Judge, RepairDraft};
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentKind;
use crate::model::operation::{Family, OperationKind};
use crate::model::repair::RepairAction;
use crate::model::verdict::{Disposition, IgnoreReason};
use crate::money::{Currency, Money as Amount};
use crate::reconcile::Seen;
use crate::reconcile::component::clamp;
use crate::reconcile::keys::Key;
use crate::reconcile::ladder::ContestReason;

impl Judge<'_, '_> {
    /// Rows that profile, scope or mode set aside, and rows of either side that cannot be used.
    pub(super) fn set_aside(&mut self) {
        let mut waiting: HashMap<Key, Option<usize>> = HashMap::new();
        let mut unreadable: Vec<usize> = Vec::new();
        for at in 0..self.c.operations.len() {
            let row = &self.c.operations[at];
            if let Some(reason) = row.row_data.ignore {
                self.dispose(&[at], &[], Disposition::Ignored(reason));
            } else if !row.invalid.is_empty() {
                unreadable.push(at);
            }
        }
        unreadable.sort_by_key(|&at| {
            let row = &self.c.operations[at].row_data;
            (row.occurred_at, row.operation_id, row.account)
        });
        for at in unreadable {
            self.invalid_operation(at, &mut waiting);
        }
        let mut unusable: Vec<usize> = (0..self.c.intents.len())
            .filter(|&at| !self.c.intents[at].row_data.invalid.is_empty())
            .collect();
        if unusable.is_empty() {
            return;
        }
        unusable.sort_by_key(|&at| self.c.intents[at].row_data.intent_id);
        let mut unclaimed = self.unclaimed_by_key();
        for at in unusable {
            self.invalid_intent(at, &mut unclaimed);
        }
    }

    /// Unclaimed intents that an unreadable row names wait for a readable version: nothing else is said of them.
    /// `waiting` keeps the first of them by key, so that many such rows ask only once.
    fn invalid_operation(&mut self, at: usize, waiting: &mut HashMap<Key, Option<usize>>) {
        let row = &self.c.operations[at];
        let mut first = None;
        let mut others = Vec::new();
        for key in [row.keys.reference, row.keys.id, row.keys.object] {
            if first.is_some() {
                break;
            }
            first = *waiting.entry(key).or_insert_with(|| {
                let mut named = self.unclaimed_under(key).into_iter();
                let first = named.next();
                others.extend(named);
                first
            });
        }
        if !self.dispose(&[at], &[], Disposition::Unmatched) {
            return;
        }
        self.dispose(&[], first.as_slice(), Disposition::Unmatched);
        self.dispose(&[], &others, Disposition::Unmatched);
        let money = (row.row_data.currency != Currency::NONE).then(|| self.money(at));
        let mut why = format!("{}: {}", self.id(at), row.invalid);
        if !others.is_empty() {
            let names: Vec<&str> = others
                .iter()
                .take(5)
                .map(|&other| self.intent_id(other))
                .collect();
            write!(why, "; {} wait for it as well", names.join(", "))
                .expect("a string takes everything");
        }
        self.raise(
            BreakClass::InvalidRecord,
            (Some(at), first),
            (money, None),
            why,
        );
    }

    /// Intents that a key names directly and that no operation claims, by their ids.
    fn unclaimed_under(&self, key: Key) -> Vec<usize> {
        let mut found: Vec<usize> = self
            .c
            .named(key)
            .filter(|&intent| self.claims[intent].is_empty() && !self.is_intent_done[intent])
            .collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// Usable operations that no intent claims, by each key that an intent may name them with; the last is the first to
    /// be taken.
    fn unclaimed_by_key(&self) -> HashMap<(Key, Family), Vec<usize>> {
        let mut unclaimed: HashMap<(Key, Family), Vec<usize>> = HashMap::new();
        for (at, row) in self.c.operations.iter().enumerate() {
            let Some(family) = row.family() else { continue };
            let is_free = row.is_own(family) && row.is_usable() && self.links.of[at].is_none();
            if is_free && !self.is_done[at] {
                let mut keys = [row.keys.reference, row.keys.id, row.keys.object];
                keys.sort_unstable();
                for (n, &key) in keys.iter().enumerate() {
                    if key != 0 && (n == 0 || keys[n - 1] != key) {
                        unclaimed.entry((key, family)).or_default().push(at);
                    }
                }
            }
        }
        for rows in unclaimed.values_mut() {
            rows.sort_by_key(|&at| {
                let row = &self.c.operations[at].row_data;
                std::cmp::Reverse((row.occurred_at, row.operation_id))
            });
        }
        unclaimed
    }

    fn invalid_intent(&mut self, at: usize, unclaimed: &mut HashMap<(Key, Family), Vec<usize>>) {
        let local = &self.c.intents[at];
        let family = local.row_data.kind.family();
        let keys = local.keys;
        let mut operation = None;
        for key in [keys.processor, keys.reference, keys.id, keys.idempotency] {
            let Some(rows) = unclaimed
                .get_mut(&(key, family))
                .filter(|_| operation.is_none())
            else {
                continue;
            };
            while rows.last().is_some_and(|&row| self.is_done[row]) {
                rows.pop();
            }
            operation = rows.pop();
        }
        let operations: Vec<usize> = operation.into_iter().collect();
        if self.dispose(&operations, &[at], Disposition::Unmatched) {
            let money = (local.row_data.currency != Currency::NONE
                && local.row_data.amount_minor != 0)
                .then(|| self.intent_money(at));
            let why = format!("{}: {}", local.row_data.intent_id, local.row_data.invalid);
            self.raise(
                BreakClass::InvalidRecord,
                (operation, Some(at)),
                (money, None),
                why,
            );
        }
    }

    /// One operation that several intents record.
    pub(super) fn recorded_twice(&mut self) {
        for (operation, intents) in &self.links.recorded_twice {
            if self.is_done[*operation]
                || !self.dispose(&[*operation], intents, Disposition::Unmatched)
            {
                continue;
            }
            let names: Vec<&str> = intents
                .iter()
                .map(|&intent| self.intent_id(intent))
                .collect();
            let why = format!(
                "{}; {} each record it as their own",
                self.says(*operation),
                names.join(" and ")
            );
            let money = self.money(*operation);
            self.raise(
                BreakClass::DuplicateRecord,
                (Some(*operation), intents.first().copied()),
                (Some(money), None),
                why,
            );
        }
    }

    /// Operations that are only proposed.
    pub(super) fn contests(&mut self) {
        // Contests share their candidates: what is true of a list is asked once.
        let mut lists: HashMap<*const usize, (bool, Vec<usize>)> = HashMap::new();
        for contest in &self.links.contests {
            let at = contest.operation;
            if self.is_done[at] || !self.c.operations[at].moved {
                continue;
            }
            let (taken, waiting) = lists.entry(contest.intents.as_ptr()).or_insert_with(|| {
                let claimed = |&intent: &usize| !self.claims[intent].is_empty();
                let in_scope = |&intent: &usize| self.c.intents[intent].in_scope;
                let intents = contest.intents.iter().copied();
                let waiting = intents.clone().filter(|row| !claimed(row) && in_scope(row));
                (intents.clone().all(|row| claimed(&row)), waiting.collect())
            });
            if *taken && self.is_given_back(at) {
                self.returned_in_full(at);
                continue;
            }
            if !self.dispose(&[at], &[], Disposition::Unmatched) {
                continue;
            }
            // The first contest speaks for all that wait.
            let waiting = std::mem::take(waiting);
            self.dispose(&[], &waiting, Disposition::Unmatched);
            let mut names: Vec<&str> = contest
                .intents
                .iter()
                .take(5)
                .map(|&at| self.intent_id(at))
                .collect();
            let more = format!("{} more", contest.intents.len().saturating_sub(5));
            if contest.intents.len() > 5 {
                names.push(&more);
            }
            let names = names.join(", ");
            let reason = match contest.why {
                ContestReason::Several => {
                    format!("its reference names several rows, and none fits better: {names}")
                }
                ContestReason::Truncated => {
                    format!(
                        "its reference \"{}\" may be the beginning of {names}",
                        self.c.operations[at].row_data.reference.trim()
                    )
                }
                ContestReason::Contradiction => {
                    format!("its reference names {names}, its parent another payment")
                }
                ContestReason::SharedAmount => {
                    format!(
                        "its reference is shared by {names}, and its amount fits none that is left"
                    )
                }
            };
            let intent = if let [only] = &*contest.intents {
                Some(*only)
            } else {
                None
            };
            let why = format!("{}; {reason}", self.says(at));
            let money = self.money(at);
            self.raise(
                BreakClass::AmbiguousMatch,
                (Some(at), intent),
                (Some(money), None),
                why,
            );
        }
    }

    /// Operations that were seen again with other content.
    pub(super) fn changed(&mut self) {
        for at in 0..self.c.operations.len() {
            let row = &self.c.operations[at];
            if row.seen != Seen::Changed || self.is_done[at] {
                continue;
            }
            let change = self
                .context
                .snapshot
                .changes
                .get(&row.row)
                .map_or("its content", String::as_str);
            let why = format!(
                "{} was seen again with other content: {change}",
                self.id(at)
            );
            if self.context.open.is_accepted(
                BreakClass::OperationChanged,
                self.context.rules,
                &row.row_data,
                change,
            ) {
                self.verdicts.accepted.push(row.row);
                continue;
            }
            let intent = self.links.of[at].map(|(intent, _)| intent);
            let intents: Vec<usize> = intent.into_iter().collect();
            if self.dispose(&[at], &intents, Disposition::Unmatched) {
                let money = self.money(at);
                let draft = self.raise(
                    BreakClass::OperationChanged,
                    (Some(at), intent),
                    (Some(money), None),
                    why,
                );
                change.clone_into(&mut draft.evidence);
            }
        }
    }

    /// Operations beyond what the intents under a shared reference ask for.
    pub(super) fn excess_of_shared(&mut self) {
        for &(operation, intent) in &self.links.excess {
            self.extra(intent, operation, Claim::Further);
        }
    }

    /// Operations that found no intent.
    pub(super) fn leftovers(&mut self) {
        for is_return in [false, true] {
            for &at in &self.links.order {
                if !self.is_done[at] && self.c.operations[at].is_return() == is_return {
                    self.leftover(at);
                }
            }
        }
    }

    fn leftover(&mut self, at: usize) {
        let row = &self.c.operations[at];
        let ignore = |judge: &mut Self, reason| {
            judge.dispose(&[at], &[], Disposition::Ignored(reason));
        };
        let is_over = row.is_failed() || row.is_expired();
        match row.row_data.kind {
            OperationKind::Charge
            | OperationKind::Capture
            | OperationKind::Authorization
            | OperationKind::Void => {
                if row.moved {
                    self.unknown_charge(at);
                } else if row.is_live_hold() {
                    ignore(
                        self,
                        if self.has_capture(at) {
                            IgnoreReason::LifeCycle
                        } else {
                            IgnoreReason::Hold
                        },
                    );
                } else if row.row_data.kind == OperationKind::Void {
                    ignore(self, IgnoreReason::LifeCycle);
                } else {
                    ignore(
                        self,
                        if is_over {
                            IgnoreReason::FailedAttempt
                        } else {
                            IgnoreReason::NoMoney
                        },
                    );
                }
            }
            OperationKind::Refund if row.moved => self.unknown_refund(at),
            OperationKind::Dispute if row.moved => self.unknown_dispute(at),
            OperationKind::Payout if row.moved => self.lone_payout(at),
            OperationKind::Refund | OperationKind::Payout => {
                ignore(
                    self,
                    if is_over {
                        IgnoreReason::FailedAttempt
                    } else {
                        IgnoreReason::NoMoney
                    },
                );
            }
            OperationKind::RefundFailure
            | OperationKind::DisputeReversal
            | OperationKind::Other => {
                if row.moved {
                    self.missing_local(at, &[], None);
                } else {
                    ignore(self, IgnoreReason::NoMoney);
                }
            }
            OperationKind::PayoutFailure if row.moved => self.returned_payout(at, &[at]),
            OperationKind::Dispute | OperationKind::PayoutFailure => {
                ignore(self, IgnoreReason::NoMoney);
            }
            OperationKind::Fee => ignore(self, IgnoreReason::AccountLevelFee),
            OperationKind::Transfer | OperationKind::Adjustment => {
                ignore(self, IgnoreReason::AccountLevel);
            }
            OperationKind::ReserveHold | OperationKind::ReserveRelease => {
                ignore(self, IgnoreReason::Hold);
            }
            OperationKind::Conversion => ignore(self, IgnoreReason::Conversion),
        }
    }

    fn is_recorded_here(&self, kind: IntentKind) -> bool {
        self.context.rules.kinds.contains(&kind)
    }

    fn has_capture(&self, at: usize) -> bool {
        self.children_of(at)
            .iter()
            .any(|&child| self.c.operations[child].family() == Some(Family::Charge))
    }

    fn unknown_charge(&mut self, at: usize) {
        if !self.is_recorded_here(IntentKind::Charge) {
            self.dispose(&[at], &[], Disposition::Ignored(IgnoreReason::AccountLevel));
            return;
        }
        let returns = self.returns_of(at);
        self.missing_local(at, &returns, None);
    }

    /// Returns of the operation's kind that name it, against its direction, and found no intent.
    fn returns_of(&self, at: usize) -> Vec<usize> {
        let own = &self.c.operations[at];
        let gives_back = |kind| match kind {
            OperationKind::RefundFailure => own.family() == Some(Family::Refund),
            OperationKind::DisputeReversal => own.family() == Some(Family::Dispute),
            OperationKind::PayoutFailure => own.family() == Some(Family::Payout),
            OperationKind::Adjustment => true,
            _ => false,
        };
        let mut found: Vec<usize> = Vec::new();
        let mut next = vec![at];
        let mut met: HashSet<usize> = HashSet::from([at]);
        while let Some(parent) = next.pop() {
            for &child in self.children_of(parent) {
                let row = &self.c.operations[child];
                let names = gives_back(row.row_data.kind) || (parent != at && row.is_return());
                let is_back = own.family() == Some(Family::Dispute)
                    || parent != at
                    || row.row_data.amount_minor.signum() == -own.row_data.amount_minor.signum();
                if names
                    && is_back
                    && row.is_usable()
                    && self.links.of[child].is_none()
                    && !self.is_done[child]
                    && met.insert(child)
                {
                    found.push(child);
                    next.push(child);
                }
            }
        }
        found
    }

    fn unknown_refund(&mut self, at: usize) {
        if self.is_given_back(at) {
            return self.returned_in_full(at);
        }
        if !self.is_recorded_here(IntentKind::Refund) {
            self.dispose(&[at], &[], Disposition::Ignored(IgnoreReason::AccountLevel));
            return;
        }
        let returns = self.returns_of(at);
        // A row that brought money is no refund, whatever it is called.
        let is_whole = returns.is_empty()
            && self.links.given_back[at] == 0
            && self.c.operations[at].row_data.amount_minor < 0;
        let repair = self.links.parent_intent[at]
            .filter(|_| is_whole)
            .map(|parent| RepairDraft {
                action: RepairAction::RecordRefund,
                intent: self.c.intents[parent].row,
                operation: self.c.operations[at].row,
                status: crate::model::intent::IntentStatus::Succeeded,
                money: Some(self.money(at)),
                keeps_open: false,
            });
        self.missing_local(at, &returns, repair);
    }

    fn unknown_dispute(&mut self, at: usize) {
        if !self.is_recorded_here(IntentKind::Dispute) {
            self.dispose(&[at], &[], Disposition::Ignored(IgnoreReason::AccountLevel));
            return;
        }
        let returns = self.returns_of(at);
        let mut rows = vec![at];
        rows.extend(&returns);
        let sum = self.dispute_sum(&rows, 0);
        let currency = self.c.operations[at].row_data.currency;
        // Money of another currency returns nothing of it, and what came back may have a verdict of its own: both are for
        // a person.
        let is_one_currency = rows
            .iter()
            .all(|&row| self.c.operations[row].row_data.currency == currency);
        let is_whole = self.children_of(at).iter().all(|&child| {
            let row = &self.c.operations[child];
            !row.is_return() || !row.moved || rows.contains(&child)
        });
        let repair = self.links.parent_intent[at]
            .filter(|_| sum.taken > 0 && sum.returned <= sum.taken && is_one_currency && is_whole)
            .map(|parent| RepairDraft {
                action: RepairAction::RecordDispute,
                intent: self.c.intents[parent].row,
                operation: self.c.operations[at].row,
                status: sum.status(),
                money: Some(Amount::new(clamp(sum.taken), currency)),
                keeps_open: true,
            });
        self.missing_local(at, &returns, repair);
    }

    fn missing_local(&mut self, at: usize, returns: &[usize], repair: Option<RepairDraft>) {
        let mut rows = vec![at];
        rows.extend(returns);
        if !self.dispose(&rows, &[], Disposition::Unmatched) {
            return;
        }
        let parent = self.links.parent_intent[at];
        let row = &self.c.operations[at].row_data;
        let mut why = self.says(at);
        match (parent, row.reference.trim()) {
            (Some(parent), _) => write!(
                why,
                " under {}, and no local row asks for it",
                self.intent_id(parent)
            )
            .expect("a string takes everything"),
            (None, "") if row.parent_id.is_empty() => {
                why.push_str(", without a reference, and no local row names it");
            }
            (None, "") => write!(why, " of {}, which no local row names", row.parent_id)
                .expect("a string takes everything"),
            (None, reference) => write!(
                why,
                " under the reference \"{reference}\", which no local row has"
            )
            .expect("a string takes everything"),
        }
        let back = self.links.given_back[at];
        let money = self.money(at);
        let delta =
            (back > 0).then(|| Amount::new(clamp(i128::from(money.minor) - back), money.currency));
        let also = self.rows(returns);
        let draft = self.raise(
            BreakClass::MissingLocal,
            (Some(at), parent),
            (Some(money), delta),
            why,
        );
        draft.also = also;
        draft.repair = repair;
    }

    fn lone_payout(&mut self, at: usize) {
        let returns = self.returns_of(at);
        let residual = self.tied(at);
        let mut rows = vec![at];
        rows.extend(&returns);
        if !returns.is_empty() {
            self.returned_payout(at, &rows);
        } else if residual.is_some() {
            self.dispose(&rows, &[], Disposition::Unmatched);
        } else {
            self.dispose(&rows, &[], Disposition::Ignored(IgnoreReason::AccountLevel));
        }
        if let Some(residual) = residual.filter(|_| self.c.operations[at].in_scope) {
            self.payout_residual(at, None, residual);
        }
    }

    fn returned_payout(&mut self, at: usize, rows: &[usize]) {
        if self.dispose(rows, &[], Disposition::Unmatched) {
            let back = rows
                .iter()
                .copied()
                .find(|&row| self.c.operations[row].is_return())
                .unwrap_or(at);
            let why = format!("{}: the money of a payout came back", self.says(back));
            let money = self.money(back);
            let also = self.rows(rows);
            self.raise(
                BreakClass::PayoutReturned,
                (Some(back), None),
                (Some(money), None),
                why,
            )
            .also = also;
        }
    }
}
