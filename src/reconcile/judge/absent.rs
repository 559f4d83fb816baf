//! Intents that nothing answers.

use std::fmt::Write as _;

use super::{Judge, RedriveDraft};
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::operation::{Family, OperationStatus};
use crate::model::verdict::{Disposition, IgnoreReason};
use crate::reconcile::absence::{Absence, absence};
use crate::reconcile::redrive;

impl Judge<'_, '_> {
    /// The verdict about an intent that nothing answers.
    pub(super) fn absent(&mut self, at: usize) {
        if self.is_intent_done[at] || !self.c.intents[at].in_scope {
            return;
        }
        if self.is_on_its_way(at) {
            return;
        }
        if self.is_told_elsewhere(at) {
            return self.verdicts.not_ours.push(self.c.intents[at].row);
        }
        let local = self.c.intents[at].row_data;
        let (rules, frame, open) = (self.context.rules, self.context.frame, self.context.open);
        let is_known = open.has(BreakClass::MissingProcessor, rules, None, local.intent_id)
            || open.has(BreakClass::OpenTooLong, rules, None, local.intent_id);
        match absence(&local, rules, frame, is_known) {
            Absence::NotOurs => self.verdicts.not_ours.push(self.c.intents[at].row),
            Absence::Pending { why, .. } => {
                self.dispose(&[], &[at], Disposition::Pending);
                self.pend(None, Some(at), why);
            }
            Absence::Abandoned => {
                self.dispose(&[], &[at], Disposition::Ignored(IgnoreReason::Abandoned));
                if local.status.is_open() {
                    self.may_be_sent_again(at, None);
                }
            }
            Absence::Missing => {
                self.missing(
                    at,
                    BreakClass::MissingProcessor,
                    "the processor shows nothing of it",
                );
                self.may_be_sent_again(at, Some(BreakClass::MissingProcessor));
            }
            Absence::OpenTooLong => {
                self.missing(
                    at,
                    BreakClass::OpenTooLong,
                    "it was created before what has been read, and the source cannot be asked about it",
                );
                self.may_be_sent_again(at, Some(BreakClass::OpenTooLong));
            }
        }
    }

    /// Notes that an intent of which nothing is seen may be sent again under its own key. Whatever else could be an answer to
    /// it, or another attempt at the same thing, forbids that.
    fn may_be_sent_again(&mut self, at: usize, class: Option<BreakClass>) {
        let local = &self.c.intents[at];
        let Some(until) = redrive::until(&local.row_data, self.context.rules, self.context.frame)
        else {
            return;
        };
        let kind = local.row_data.kind;
        // A refund hangs on its payment, of which there have to be rows.
        let may_stand_beside =
            |family: Option<Family>| kind == IntentKind::Refund && family == Some(Family::Charge);
        let is_alone = self
            .c
            .operations
            .iter()
            .all(|row| may_stand_beside(row.family()))
            && self.c.intents.iter().enumerate().all(|(other, row)| {
                other == at || may_stand_beside(Some(row.row_data.kind.family()))
            });
        if is_alone {
            let intent = local.row;
            self.verdicts.redrives.push(RedriveDraft {
                intent,
                class,
                until,
            });
        }
    }

    /// A stage of the payment that the profile lists as life cycle shows that the processor has it and has not decided yet.
    pub(super) fn is_on_its_way(&mut self, at: usize) -> bool {
        let local = &self.c.intents[at];
        let family = local.row_data.kind.family();
        let stage = self.c.operations.iter().any(|row| {
            let keys = row.keys;
            let is_named = local.keys.is_reference(keys.reference)
                || (local.keys.processor != 0
                    && [keys.id, keys.object].contains(&local.keys.processor));
            row.row_data.ignore == Some(IgnoreReason::LifeCycle)
                && row.row_data.status == OperationStatus::Pending
                && row.family() == Some(family)
                && is_named
        });
        if !stage {
            return false;
        }
        let status = local.row_data.status;
        if status.is_open() || (status == IntentStatus::Succeeded && !self.is_past_grace(at)) {
            self.dispose(&[], &[at], Disposition::Pending);
            self.pend(
                None,
                Some(at),
                "the processor has it and has not decided yet",
            );
            return true;
        }
        if status == IntentStatus::Succeeded {
            self.dispose(&[], &[at], Disposition::Unmatched);
            let why = format!(
                "the processor has it and has not decided yet; {}",
                self.local_says(at)
            );
            self.raise(
                BreakClass::StatusAhead,
                (None, Some(at)),
                (Some(self.intent_money(at)), None),
                why,
            );
            return true;
        }
        false
    }

    pub(super) fn missing(&mut self, at: usize, class: BreakClass, why: &str) {
        self.dispose(&[], &[at], Disposition::Unmatched);
        let local = self.c.intents[at].row_data;
        let mut why = format!("{}, and {why}", self.local_says(at));
        if !local.processor_ref.is_empty() {
            write!(why, " (its processor_ref is {})", local.processor_ref)
                .expect("a string takes everything");
        }
        self.raise(
            class,
            (None, Some(at)),
            (Some(self.intent_money(at)), None),
            why,
        );
    }
}
