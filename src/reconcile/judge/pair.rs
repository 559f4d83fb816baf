//! Intents with the operations that claim them, by the decision table.

use std::fmt::Write as _;

use hashbrown::{HashMap, HashSet};

use super::extra::Claim;
use super::group::{Group, Money};
use super::{Judge, RepairDraft};
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::operation::{Family, OperationKind, OperationStatus};
use crate::model::repair::RepairAction;
use crate::model::verdict::{Disposition, IgnoreReason, Match, Rule};
use crate::money::Money as Amount;
use crate::reconcile::component::{Agreement, clamp};
use crate::reconcile::ladder::{deal_rank, is_other};
use crate::reconcile::lifecycle::{Cell, Local, Processor, cell};
use crate::reconcile::payouts::Tied;

impl Judge<'_, '_> {
    /// Reads every group, and decides which of several attempts at one thing is the one that money satisfies.
    pub(super) fn satisfactions(&mut self) {
        let mut attempts: HashMap<(IntentKind, u32, u32), Vec<usize>> = HashMap::new();
        for at in 0..self.c.intents.len() {
            let local = &self.c.intents[at];
            if self.is_intent_done[at] || local.row_data.kind == IntentKind::Dispute {
                self.groups.push(None);
                continue;
            }
            let mut group = self.group(at);
            self.add_others(at, &mut group);
            let is_satisfied = group.money == Money::Kept
                && group.agreement.is_full()
                && !group.members.is_empty();
            self.has_money[at] = group.members.first().copied().filter(|_| is_satisfied);
            if is_satisfied && local.keys.parent != 0 {
                let attempts = self
                    .satisfied
                    .entry((local.row_data.kind, local.keys.parent))
                    .or_default();
                attempts.extend(local.row_data.attempt);
            }
            for &member in &group.members {
                self.member_of[member] = Some(at);
            }
            self.members[at].clone_from(&group.members);
            self.groups.push(Some(group));
            let reference = if local.row_data.kind == IntentKind::Charge {
                0
            } else {
                local.keys.reference
            };
            let is_one_thing = local.keys.parent != 0
                && (local.row_data.kind == IntentKind::Charge || reference != 0);
            if is_one_thing && local.row_data.attempt.is_some() {
                attempts
                    .entry((local.row_data.kind, local.keys.parent, reference))
                    .or_default()
                    .push(at);
            }
        }
        for rows in attempts.into_values() {
            let Some(winner) = rows
                .iter()
                .copied()
                .filter(|&at| self.stands(at))
                .min_by_key(|&at| {
                    let local = &self.c.intents[at].row_data;
                    let first =
                        self.has_money[at].map(|operation| &self.c.operations[operation].row_data);
                    let is_given_back =
                        self.has_money[at].is_some_and(|operation| self.is_given_back(operation));
                    (
                        is_given_back,
                        deal_rank(local.status),
                        first.map_or(local.created_at, |row| row.occurred_at),
                        first.map_or("", |row| row.operation_id),
                        local.intent_id,
                    )
                })
            else {
                continue;
            };
            let attempt = self.c.intents[winner].row_data.attempt;
            for at in rows {
                if is_other(attempt, self.c.intents[at].row_data.attempt) {
                    self.is_outdone[at] = Some(winner);
                }
            }
        }
    }

    /// Whether success stands behind an intent: money that is seen, or a success that lies out of reach.
    fn stands(&self, at: usize) -> bool {
        let local = &self.c.intents[at].row_data;
        let is_out_of_reach = local.created_at < self.context.frame.at_hand_from()
            && self.groups[at]
                .as_ref()
                .is_some_and(|group| group.processor.is_none());
        self.has_money[at].is_some() || (local.status == IntentStatus::Succeeded && is_out_of_reach)
    }

    /// The verdict about an intent and every operation that claims it.
    pub(super) fn intent(&mut self, at: usize) {
        if self.is_intent_done[at] {
            return;
        }
        let Some(group) = self.groups[at].take() else {
            if self.c.intents[at].row_data.kind == IntentKind::Dispute {
                self.dispute(at);
            }
            return;
        };
        if self.is_second_claim(at, &group) {
            for &extra in group.members.iter().chain(&group.extras) {
                self.extra(at, extra, Claim::Further);
            }
            self.attached(&group);
            self.absent(at);
            return;
        }
        let claim = if group.is_contested {
            Claim::Contested
        } else {
            Claim::Further
        };
        let mut group = group;
        group.replacement = self.replacement(at, &group);
        if self.c.intents[at].row_data.status != IntentStatus::Succeeded {
            self.replace(&mut group);
        }
        for &extra in &group.extras {
            if group.replacement != Some(extra) {
                self.extra(at, extra, claim);
            }
        }
        self.attached(&group);
        if group.is_contested {
            // Each of its operations is a break that names it; nothing else is said of it.
            if group.extras.iter().all(|&extra| self.is_given_back(extra)) {
                self.absent(at);
            } else {
                self.dispose(&[], &[at], Disposition::Unmatched);
            }
            return;
        }
        match group.processor {
            None => self.absent(at),
            Some(processor) => self.pair(at, &group, processor),
        }
    }

    /// Where nothing was recorded as a success yet, the one that stands is the success, and what came back before it asks
    /// for nothing.
    fn replace(&mut self, group: &mut Group) {
        let Some(new) = group.replacement.take() else {
            return;
        };
        for before in std::mem::replace(&mut group.members, vec![new]) {
            self.returned_in_full(before);
        }
        self.dispose(
            &std::mem::take(&mut group.returns),
            &[],
            Disposition::Ignored(IgnoreReason::ReturnedInFull),
        );
        group.extras.retain(|&extra| extra != new);
        group.money = Money::Kept;
        group.processor = Some(Processor::Succeeded);
        group.agreement = Agreement::Agrees { delta: 0 };
        group.is_sum = false;
    }

    fn pair(&mut self, at: usize, group: &Group, processor: Processor) {
        let local = self.c.intents[at].row_data;
        let row = Local::of(local.kind, local.status);
        let is_gone = matches!(row, Local::Failed | Local::Closed)
            && group.money == Money::Kept
            && !group.members.is_empty()
            && group
                .members
                .iter()
                .all(|&member| self.is_given_back(member));
        if is_gone {
            for &member in &group.members {
                self.returned_in_full(member);
            }
            self.dispose(
                &group.returns,
                &[],
                Disposition::Ignored(IgnoreReason::ReturnedInFull),
            );
            self.dispose(
                &[],
                &[at],
                Disposition::Ignored(IgnoreReason::ReturnedInFull),
            );
            return;
        }
        if group.foreign.is_some() {
            return self.currency_mismatch(at, group);
        }
        if matches!(group.money, Money::Kept | Money::Back | Money::Partly(_))
            && !group.is_original_unseen
        {
            match group.agreement {
                Agreement::Agrees { .. } => {}
                Agreement::Amount { delta } => {
                    return self.amount_mismatch(at, group, i128::from(delta));
                }
                Agreement::Currency => return self.currency_mismatch(at, group),
            }
        }
        match group.money {
            Money::TooMuch(excess) => return self.gave_back_too_much(at, group, excess),
            Money::Partly(back) if row != Local::Succeeded => {
                return self.amount_mismatch(at, group, -back);
            }
            _ => {}
        }
        if group.money == Money::Kept
            && let Some(winner) = self.is_outdone[at]
        {
            return self.outdone(at, winner, group);
        }
        if group.is_hold {
            return self.hold(at, group, row);
        }
        let is_attempt_of_another_amount = group.money == Money::None
            && matches!(processor, Processor::Failed | Processor::Expired)
            && row != Local::Succeeded
            && !group.agreement.is_full();
        if is_attempt_of_another_amount {
            return self.passed_over(at, group);
        }
        match cell(row, processor) {
            Cell::Pending => self.wait(at, group, "the processor has not decided yet"),
            Cell::Matched => {
                self.matched(at, group);
            }
            Cell::Behind => {
                let status = if processor == Processor::Expired {
                    IntentStatus::Expired
                } else {
                    IntentStatus::Succeeded
                };
                self.behind(at, group, status);
            }
            Cell::BehindIfUnique => {
                let is_unique = group.extras.iter().all(|&extra| self.is_given_back(extra));
                if is_unique {
                    self.behind(at, group, IntentStatus::Succeeded);
                } else {
                    for &member in &group.members {
                        self.extra(at, member, Claim::Instead);
                    }
                    self.dispose(&group.returns, &[at], Disposition::Unmatched);
                }
            }
            Cell::FailedAttempt => self.failed_attempt(at, group),
            Cell::Reversed if self.may_stand_elsewhere(at, group) => self.passed_over(at, group),
            Cell::Reversed => self.reversed(at, group),
            Cell::AheadAfterGrace if self.stands_elsewhere(at) => self.beside(group),
            Cell::AheadAfterGrace => self.after_grace(at, group, BreakClass::StatusAhead),
            Cell::ConflictAfterGrace => self.after_grace(at, group, BreakClass::StatusConflict),
            Cell::Conflict => self.conflict(at, group, BreakClass::StatusConflict),
            Cell::StaysPending | Cell::WonOrLost | Cell::NoMoney | Cell::Nothing => {
                unreachable!(
                    "these cells stand in the row of disputes, which are judged by their sums"
                )
            }
        }
    }

    /// A live hold beside a pending intent is in order. Beside a success it is no payment yet; beside a row that asks for
    /// nothing it is money on hold that nobody waits for.
    fn hold(&mut self, at: usize, group: &Group, row: Local) {
        match row {
            Local::Open if group.agreement.is_full() => {
                self.matched(at, group);
            }
            Local::Open => self.wait(at, group, "the money is on hold, in another amount"),
            Local::Succeeded if !self.stands_elsewhere(at) => {
                self.after_grace(at, group, BreakClass::StatusAhead);
            }
            Local::Succeeded | Local::Failed | Local::Closed | Local::Dispute => {
                self.dispose(
                    &group.members,
                    &[],
                    Disposition::Ignored(IgnoreReason::Hold),
                );
                self.absent(at);
            }
        }
    }

    pub(super) fn matched(&mut self, at: usize, group: &Group) -> bool {
        let residual = self.residual(group);
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        let disposition = if residual.is_some() {
            Disposition::Unmatched
        } else {
            Disposition::Matched
        };
        let is_asked = self.dispose(&rows, &[at], disposition);
        if !is_asked {
            return false;
        }
        let delta = match group.agreement {
            Agreement::Agrees { delta } if group.money == Money::Kept || group.is_hold => delta,
            _ => 0,
        };
        for (n, &operation) in rows.iter().enumerate() {
            let rule = match self.links.of[operation] {
                _ if n >= group.members.len() => Rule::Parent,
                _ if group.is_sum => Rule::Sum,
                Some((_, rule)) => rule,
                None => Rule::Parent,
            };
            if residual.is_none() {
                self.verdicts.matches.push(Match {
                    intent: self.c.intents[at].row,
                    operation: self.c.operations[operation].row,
                    rule,
                    delta_minor: if n == 0 { delta } else { 0 },
                });
            }
            self.link(operation, n == 0);
        }
        if let Some((operation, residual)) = residual {
            self.payout_residual(operation, Some(at), residual);
        }
        true
    }

    fn residual(&mut self, group: &Group) -> Option<(usize, i128)> {
        group
            .members
            .iter()
            .find_map(|&member| self.tied(member).map(|residual| (member, residual)))
    }

    /// Parts minus paid of a payout row, where they differ.
    pub(super) fn tied(&mut self, at: usize) -> Option<i128> {
        let operation = &self.c.operations[at];
        if operation.family() != Some(Family::Payout)
            || !operation.is_own(Family::Payout)
            || !operation.moved
        {
            return None;
        }
        let context = self.context;
        match context.payouts.tied(
            context.snapshot,
            context.keys,
            context.rules,
            context.frame,
            operation.row,
        ) {
            Tied::Out => None,
            Tied::Unverified => {
                if operation.in_scope {
                    self.verdicts.unverified_payouts += 1;
                }
                None
            }
            Tied::Residual(residual) => Some(residual),
        }
    }

    pub(super) fn payout_residual(&mut self, at: usize, intent: Option<usize>, residual: i128) {
        let row = &self.c.operations[at].row_data;
        let delta = Amount::new(clamp(residual), row.settle_currency);
        let paid = Amount::new(clamp(row.balance_minor().abs()), row.settle_currency);
        let parts = Amount::new(
            clamp(row.balance_minor().abs() + residual),
            row.settle_currency,
        );
        let why = format!(
            "the rows listed for payout {} come to {parts}, {paid} was paid: {delta} is left over",
            self.id(at)
        );
        self.raise(
            BreakClass::PayoutResidual,
            (Some(at), intent),
            (Some(paid), Some(delta)),
            why,
        );
    }

    fn behind(&mut self, at: usize, group: &Group, status: IntentStatus) {
        if !self.matched(at, group) {
            return;
        }
        let operation = group.members.first().or(group.returns.first()).copied();
        let Some(operation) = operation else { return };
        let (money, delta) = self.group_money(at, group);
        let mut why = format!("{}; {}", self.says(operation), self.local_says(at));
        if group.is_sum {
            why = format!(
                "{} captures add up to {money}; {}",
                group.members.len(),
                self.local_says(at)
            );
        }
        let written = self.c.intents[at].row_data.written_amount;
        if !written.is_empty() {
            write!(why, " (written there as {written})").expect("a string takes everything");
        }
        let repair = self.set_status(at, operation, status, false);
        let draft = self.raise(
            BreakClass::StatusBehind,
            (Some(operation), Some(at)),
            (Some(money), delta),
            why,
        );
        draft.repair = Some(repair);
    }

    /// The money of a group, and the tolerated or rounded difference in it.
    pub(super) fn group_money(&self, at: usize, group: &Group) -> (Amount, Option<Amount>) {
        let money = match group.members.first() {
            Some(&first) => {
                let sum: i128 = group
                    .members
                    .iter()
                    .map(|&member| self.c.operations[member].magnitude())
                    .sum();
                Amount::new(clamp(sum), self.c.operations[first].row_data.currency)
            }
            None => self.intent_money(at),
        };
        let delta = match group.agreement {
            Agreement::Agrees { delta } if delta != 0 && group.money == Money::Kept => {
                Some(Amount::new(delta, money.currency))
            }
            _ => None,
        };
        (money, delta)
    }

    pub(super) fn set_status(
        &self,
        at: usize,
        operation: usize,
        status: IntentStatus,
        keeps_open: bool,
    ) -> RepairDraft {
        RepairDraft {
            action: RepairAction::SetStatus,
            intent: self.c.intents[at].row,
            operation: self.c.operations[operation].row,
            status,
            money: None,
            keeps_open,
        }
    }

    fn failed_attempt(&mut self, at: usize, group: &Group) {
        // Money that came and went back is a late failure, and so is what the profile or a void calls final.
        let is_late = group.money == Money::Back || group.is_final;
        if is_late && (group.agreement.is_full() || group.is_original_unseen) {
            return self.behind(at, group, group.word);
        }
        self.passed_over(at, group);
    }

    /// An attempt that did not work and says nothing about the intent.
    fn passed_over(&mut self, at: usize, group: &Group) {
        self.dispose(
            &group.members,
            &[],
            Disposition::Ignored(IgnoreReason::FailedAttempt),
        );
        self.absent(at);
    }

    /// Whether the success that the row speaks of is, or may be, one at another source: what is seen here is an attempt
    /// that did not work, and nothing says that it is the row's own.
    fn may_stand_elsewhere(&self, at: usize, group: &Group) -> bool {
        let local = &self.c.intents[at];
        let is_own = |&member: &usize| {
            let keys = self.c.operations[member].keys;
            let is_named =
                local.keys.processor != 0 && [keys.id, keys.object].contains(&local.keys.processor);
            self.links.is_stored[member] || is_named
        };
        let is_left_to_others =
            local.row_data.source.is_empty() && (!self.is_heard(at) || self.others_show(at));
        group.money == Money::None
            && (self.stands_elsewhere(at)
                || (local.elsewhere.is_some() || is_left_to_others)
                    && !group.members.iter().any(is_own))
    }

    /// Succeeded locally, and the processor's own operation failed or came back.
    fn reversed(&mut self, at: usize, group: &Group) {
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        let intent: &[usize] = if let Some(new) = group.replacement {
            self.stands_in(at, new);
            &[]
        } else {
            &[at]
        };
        if !self.dispose(&rows, intent, Disposition::Unmatched) {
            return;
        }
        for (n, &operation) in rows.iter().enumerate() {
            if group.agreement.is_full() {
                self.link(operation, n == 0);
            }
        }
        let local = self.c.intents[at].row_data;
        let named =
            if group.is_original_unseen && !group.members.is_empty() && !group.returns.is_empty() {
                group.returns.last()
            } else if group.is_sum {
                // Of several captures, the first of which something came back.
                let came_back = |&&member: &&usize| self.links.given_back[member] > 0;
                let members = || group.members.iter();
                members().find(came_back).or(members().next())
            } else {
                group.members.first().or(group.returns.first())
            };
        let operation = named.copied().expect("a reversal has a row");
        let class = if local.kind == IntentKind::Payout {
            BreakClass::PayoutReturned
        } else {
            BreakClass::StatusReversed
        };
        let (money, _) = self.group_money(at, group);
        let (delta, seen) = match group.money {
            Money::Partly(back) => {
                let back = Amount::new(clamp(back), money.currency);
                (Some(back), format!("{back} of {money} came back"))
            }
            Money::Back => (None, format!("{money} came back")),
            _ => (None, self.says(operation)),
        };
        let another_stands = self.another_stands_elsewhere(at, group)
            || group.replacement.is_some()
            || self.another_stands(at)
            || group.extras.iter().any(|&extra| !self.is_given_back(extra));
        let holds_nothing = matches!(group.money, Money::Back | Money::None);
        let may_write =
            holds_nothing && self.is_past_grace(at) && !another_stands && group.agreement.is_full();
        let mut why = format!("{seen}; {}", self.local_says(at));
        if another_stands {
            why.push_str(
                "; another success stands for the same payment, so the row is left to a person",
            );
        }
        let also = self.rows(&rows);
        let repair = self.set_status(at, operation, group.word, true);
        let draft = self.raise(
            class,
            (Some(operation), Some(at)),
            (Some(money), delta),
            why,
        );
        draft.also = also;
        draft.repair = may_write.then_some(repair);
    }

    /// A success took the place of the one that came back: it answers the intent.
    fn stands_in(&mut self, at: usize, new: usize) {
        if self.dispose(&[new], &[at], Disposition::Matched) {
            self.verdicts.matches.push(Match {
                intent: self.c.intents[at].row,
                operation: self.c.operations[new].row,
                rule: self.links.of[new].map_or(Rule::Parent, |(_, rule)| rule),
                delta_minor: match self.c.agreement(new, at, self.context.rules) {
                    Agreement::Agrees { delta } => delta,
                    Agreement::Amount { .. } | Agreement::Currency => 0,
                },
            });
            self.link(new, false);
        }
    }

    /// Whether another row of the same logical payment is satisfied.
    fn another_stands(&self, at: usize) -> bool {
        let local = &self.c.intents[at];
        let attempts = self
            .satisfied
            .get(&(local.row_data.kind, local.keys.parent));
        self.is_outdone[at].is_some()
            || attempts.is_some_and(|attempts| {
                attempts
                    .iter()
                    .take(2)
                    .any(|&attempt| is_other(Some(attempt), local.row_data.attempt))
            })
    }

    fn after_grace(&mut self, at: usize, group: &Group, class: BreakClass) {
        if self.is_past_grace(at)
            || self
                .context
                .open
                .has(class, self.context.rules, None, self.intent_id(at))
        {
            self.conflict(at, group, class);
        } else {
            self.wait(
                at,
                group,
                "the processor has not decided yet, and grace has not run out",
            );
        }
    }

    /// A row that the processor has not decided yet, beside the success at another source: it waits for itself.
    fn beside(&mut self, group: &Group) {
        for &member in &group.members {
            if self.dispose(&[member], &[], Disposition::Pending) {
                self.pend(Some(member), None, "the processor has not decided yet");
            }
        }
    }

    fn conflict(&mut self, at: usize, group: &Group, class: BreakClass) {
        let rows: Vec<usize> = group
            .members
            .iter()
            .chain(&group.returns)
            .copied()
            .collect();
        if !self.dispose(&rows, &[at], Disposition::Unmatched) {
            return;
        }
        let operation = group.members.first().copied();
        if let Some(operation) = operation {
            self.link(operation, true);
        }
        let (money, _) = self.group_money(at, group);
        let seen = operation.map_or_else(String::new, |operation| {
            format!("{}; ", self.says(operation))
        });
        let why = format!("{seen}{}", self.local_says(at));
        let also = self.rows(&rows);
        self.raise(class, (operation, Some(at)), (Some(money), None), why)
            .also = also;
        if let Some((operation, residual)) = self.residual(group) {
            self.payout_residual(operation, Some(at), residual);
        }
    }

    fn wait(&mut self, at: usize, group: &Group, why: &'static str) {
        if self.dispose(&group.members, &[at], Disposition::Pending) {
            let operation = group.members.first().copied();
            self.pend(operation, Some(at), why);
            if let Some(operation) = operation
                && self
                    .c
                    .agreement(operation, at, self.context.rules)
                    .is_full()
            {
                self.link(operation, true);
            }
        }
    }

    /// Rows of a payment that carry no money.
    fn attached(&mut self, group: &Group) {
        let members = || {
            group
                .members
                .iter()
                .map(|&row| &self.c.operations[row].keys)
        };
        let objects: HashSet<u32> = members().map(|keys| keys.object).collect();
        let parents: HashSet<u32> = members().map(|keys| keys.parent).collect();
        let rows: HashSet<usize> = group.members.iter().copied().collect();
        let above: HashSet<usize> = rows
            .iter()
            .filter_map(|&row| self.links.parent_operation[row])
            .collect();
        for &at in &group.attached {
            let operation = &self.c.operations[at];
            let keys = operation.keys;
            let is_same_payment = (keys.object != 0 && objects.contains(&keys.object))
                || (keys.parent != 0 && parents.contains(&keys.parent))
                || above.contains(&at)
                || self.links.parent_operation[at].is_some_and(|parent| rows.contains(&parent));
            let is_waiting = operation.row_data.status == OperationStatus::Pending;
            let is_hold = operation.row_data.kind == OperationKind::Authorization;
            let is_used_up = is_hold && is_same_payment && group.money != Money::None;
            if (operation.is_failed() || operation.is_expired()) && !is_used_up {
                self.dispose(
                    &[at],
                    &[],
                    Disposition::Ignored(IgnoreReason::FailedAttempt),
                );
            } else if operation.row_data.status == OperationStatus::Unknown {
                self.dispose(&[at], &[], Disposition::Ignored(IgnoreReason::NoMoney));
            } else if is_waiting && !is_same_payment && operation.row_data.amount_minor != 0 {
                if self.dispose(&[at], &[], Disposition::Pending) {
                    self.pend(Some(at), None, "the processor has not decided yet");
                }
            } else {
                self.dispose(&[at], &[], Disposition::Ignored(IgnoreReason::LifeCycle));
            }
        }
    }

    /// What the processor says, as part of a sentence.
    pub(super) fn says(&self, at: usize) -> String {
        let row = &self.c.operations[at].row_data;
        format!(
            "{} is a {} {} of {} of {}",
            row.operation_id,
            row.status,
            row.kind,
            self.money(at),
            row.occurred_at
        )
    }

    /// What the local side says, as part of a sentence.
    pub(super) fn local_says(&self, at: usize) -> String {
        let row = &self.c.intents[at].row_data;
        format!(
            "{} ({}) is {} locally",
            row.intent_id,
            self.intent_money(at),
            row.status
        )
    }
}
