//! The sieve: settles a component of one operation and one intent that is beyond doubt, without looking further.
//!
//! It may only save work. Whatever it is not sure of in every respect it leaves to the judge.

use super::component::{Scope, is_far_ahead};
use super::judge::Verdicts;
use super::keys::Keys;
use super::plan::OpenBreaks;
use super::rules::Frame;
use super::{NewLink, Seen, Snapshot};
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::{Disposition, Match, Rule};

/// Settles the pair, or answers that it cannot.
pub(crate) fn settle(
    snapshot: &Snapshot<'_>,
    keys: &Keys<'_>,
    scope: &Scope,
    open: &OpenBreaks<'_>,
    frame: &Frame,
    (operation, intent): (usize, usize),
    verdicts: &mut Verdicts,
) -> bool {
    let (operations, intents) = (snapshot.operations, snapshot.intents);
    let same_kind = matches!(
        (operations.kind[operation], intents.kind[intent]),
        (OperationKind::Charge, IntentKind::Charge) | (OperationKind::Refund, IntentKind::Refund)
    );
    let (own, local) = (keys.operations[operation], keys.intents[intent]);
    let (is_named, is_referenced) = (
        local.processor != 0 && (local.processor == own.id || local.processor == own.object),
        local.is_reference(own.reference),
    );
    let stored = snapshot.links[operation].filter(|link| link.intent == intent);
    let rule = match (stored, is_named, is_referenced) {
        (Some(link), ..) => link.rule,
        (None, true, _) => Rule::ProcessorRef,
        (None, false, true) if local.processor == 0 => Rule::Reference,
        (None, false, _) => return false,
    };
    let agrees = operations.currency[operation] == intents.currency[intent]
        && operations.amount_minor[operation].checked_mul(intents.kind[intent].direction())
            == Some(intents.amount_minor[intent]);
    let is_settled = same_kind
        && agrees
        && operations.status[operation] == OperationStatus::Succeeded
        && intents.status[intent] == IntentStatus::Succeeded
        && operations.ignore[operation].is_none()
        && operations.invalid[operation].is_empty()
        && !is_far_ahead(operations.occurred_at[operation], frame)
        && intents.invalid[intent].is_empty()
        && snapshot.answer[intent].elsewhere().is_none()
        && !matches!(snapshot.seen[operation], Seen::Changed | Seen::Repeat)
        && !open.is_about_operation(own.id)
        && !open.is_about_intent(local.id)
        && operations.get(operation).moved_money();
    if !is_settled {
        return false;
    }
    if scope.operations[operation] || scope.intents[intent] {
        verdicts.operations[operation] = Disposition::Matched;
        verdicts.intents[intent] = Disposition::Matched;
        verdicts.matches.push(Match {
            intent,
            operation,
            rule,
            delta_minor: 0,
        });
        verdicts.links.push(NewLink {
            operation,
            intent,
            rule,
            is_principal: true,
        });
    }
    true
}
