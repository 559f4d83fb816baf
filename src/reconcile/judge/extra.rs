//! Further operations that moved money for something that asks for one: duplicates, replacements, money that went back.

use std::fmt::Write as _;

use hashbrown::HashSet;

use super::Judge;
use super::group::{Group, Money};
use crate::model::answer::Standing;
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentStatus;
use crate::model::operation::Family;
use crate::model::verdict::{Disposition, IgnoreReason};
use crate::money::Money as Amount;
use crate::reconcile::component::clamp;

/// How a further operation stands to the intent that it claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Another one satisfies the intent.
    Further,
    /// Several do, and none of them is taken.
    Instead,
    /// None of several fits.
    Contested,
}

impl Judge<'_, '_> {
    /// The success that took the place of one that came back: no duplicate, since only one stands.
    pub(super) fn replacement(&self, at: usize, group: &Group) -> Option<usize> {
        let stands = |&extra: &usize| {
            !self.is_given_back(extra) && self.c.agreement(extra, at, self.context.rules).is_full()
        };
        group
            .extras
            .iter()
            .copied()
            .find(|extra| group.money == Money::Back && stands(extra))
    }

    /// Whether money stands behind the intent at another source.
    pub(super) fn stands_elsewhere(&self, at: usize) -> bool {
        self.c.intents[at].elsewhere == Some(Standing::Stands)
    }

    /// A row that money stands behind at another source, and a succeeded one that names another operation, one that lies
    /// before everything that was read, has been satisfied already: what comes now is a further claim.
    pub(super) fn is_second_claim(&self, at: usize, group: &Group) -> bool {
        let local = &self.c.intents[at];
        let is_named = |&operation: &usize| {
            let keys = self.c.operations[operation].keys;
            [keys.id, keys.object, keys.parent].contains(&local.keys.processor)
                || self.links.is_stored[operation]
        };
        if self.stands_elsewhere(at) {
            // The same thing was paid twice, on two accounts.
            let is_ours = group
                .members
                .iter()
                .any(|&member| self.links.is_stored[member]);
            let is_money = matches!(group.money, Money::Kept | Money::Back);
            return is_money && !is_ours && !group.members.is_empty();
        }
        let is_satisfied =
            local.row_data.status == IntentStatus::Succeeded && group.money == Money::Kept;
        is_satisfied
            && local.elsewhere.is_none()
            && local.keys.processor != 0
            && local
                .row_data
                .created_at
                .plus(self.context.rules.grace.of(local.row_data.kind))
                < self.context.frame.low
            && !group.is_original_unseen
            && !group.members.iter().any(is_named)
    }

    /// A further success of one logical payment, on another attempt.
    pub(super) fn outdone(&mut self, at: usize, winner: usize, group: &Group) {
        let is_gone = group
            .members
            .iter()
            .all(|&member| self.is_given_back(member));
        let winner = self.intent_id(winner).to_owned();
        for &member in &group.members {
            self.extra_because(
                at,
                member,
                Claim::Instead,
                &format!("{winner} already stands for the same payment"),
            );
        }
        self.dispose(&group.returns, &[], Disposition::Unmatched);
        if is_gone {
            self.dispose(
                &[],
                &[at],
                Disposition::Ignored(IgnoreReason::ReturnedInFull),
            );
        } else {
            self.dispose(&[], &[at], Disposition::Unmatched);
        }
    }

    /// A further operation that moved money for an intent.
    pub(super) fn extra(&mut self, at: usize, operation: usize, claim: Claim) {
        self.extra_because(at, operation, claim, "");
    }

    pub(super) fn extra_because(
        &mut self,
        at: usize,
        operation: usize,
        claim: Claim,
        reason: &str,
    ) {
        if self.is_done[operation] {
            return;
        }
        if self.is_given_back(operation) {
            return self.returned_in_full(operation);
        }
        let children = self.without_local_row(operation);
        // Where nothing else is said of the intent, a verdict about it is one about the operation.
        let is_asked = self.c.operations[operation].in_scope
            || (claim != Claim::Further && self.c.intents[at].in_scope);
        let may_duplicate = claim != Claim::Contested;
        self.is_done[operation] = true;
        if !is_asked {
            return;
        }
        let mut rows = vec![operation];
        rows.extend(&children);
        self.dispose(&rows, &[], Disposition::Unmatched);
        let agrees = self
            .c
            .agreement(operation, at, self.context.rules)
            .is_full();
        let family = self.c.intents[at].row_data.kind.family();
        let class = match family {
            Family::Charge if agrees && may_duplicate => BreakClass::DuplicateCharge,
            Family::Refund if agrees && may_duplicate => BreakClass::DuplicateRefund,
            Family::Charge | Family::Refund | Family::Dispute | Family::Payout => {
                BreakClass::AmbiguousMatch
            }
        };
        let money = self.money(operation);
        let back = self.links.given_back[operation];
        let delta = (back > 0 || class == BreakClass::DuplicateRefund)
            .then(|| Amount::new(clamp(i128::from(money.minor) - back), money.currency));
        let named = match class {
            BreakClass::DuplicateRefund => self.links.parent_intent[operation].unwrap_or(at),
            _ => at,
        };
        let mut why = match class {
            BreakClass::AmbiguousMatch if may_duplicate || agrees => {
                format!(
                    "{}, under the reference of {} ({})",
                    self.says(operation),
                    self.intent_id(at),
                    self.intent_money(at)
                )
            }
            BreakClass::AmbiguousMatch => format!(
                "{}: several operations of other amounts stand under the reference of {} ({})",
                self.says(operation),
                self.intent_id(at),
                self.intent_money(at)
            ),
            _ => format!(
                "{}: a further success for {}, which asks for one",
                self.says(operation),
                self.intent_id(at)
            ),
        };
        if !reason.is_empty() {
            write!(why, "; {reason}").expect("a string takes everything");
        }
        let also = self.rows(&children);
        self.raise(
            class,
            (Some(operation), Some(named)),
            (Some(money), delta),
            why,
        )
        .also = also;
    }

    /// Whether all money of a row was given back by rows that name it.
    pub(super) fn is_given_back(&self, operation: usize) -> bool {
        let row = &self.c.operations[operation];
        row.moved
            && row.row_data.amount_minor != 0
            && self.links.given_back[operation] == row.magnitude()
    }

    /// Refunds and returns that name an operation and have no local row of their own, with what hangs on them.
    pub(super) fn without_local_row(&self, operation: usize) -> Vec<usize> {
        let mut found: Vec<usize> = Vec::new();
        let mut next = vec![operation];
        let mut met: HashSet<usize> = HashSet::from([operation]);
        while let Some(parent) = next.pop() {
            for &at in self.children_of(parent) {
                let row = &self.c.operations[at];
                let is_child = row.is_usable()
                    && row.moved
                    && (row.is_return() || row.family() == Some(Family::Refund));
                // Refunds that the local side asked for, and whatever answers another intent, have a verdict of their own.
                let intent = |row: usize| self.links.of[row].map(|(intent, _)| intent);
                let is_anothers = intent(at).is_some() && intent(at) != intent(operation);
                let is_own = is_anothers || (row.is_own(Family::Refund) && intent(at).is_some());
                if is_child && !is_own && !self.is_done[at] && met.insert(at) {
                    found.push(at);
                    next.push(at);
                }
            }
        }
        found
    }

    /// Money that came and went back in full under something that asks for nothing any more.
    pub(super) fn returned_in_full(&mut self, operation: usize) {
        let mut rows = vec![operation];
        rows.extend(self.without_local_row(operation));
        self.dispose(
            &rows,
            &[],
            Disposition::Ignored(IgnoreReason::ReturnedInFull),
        );
    }
}
