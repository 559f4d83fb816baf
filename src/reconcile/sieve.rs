//! The sieve: settles a component of one operation and one intent that is beyond doubt, without looking further.
//!
//! It may only save work. Whatever it is not sure of in every respect it leaves to the judge.

use std::ops::Range;

use super::component::{Scope, is_far_ahead};
use super::judge::Verdicts;
use super::keys::{Components, Keys};
use super::plan::OpenBreaks;
use super::rules::Frame;
use super::{NewLink, Seen, Snapshot};
use crate::meter::Meter;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::{Disposition, Match, Rule};

/// What the sieve leaves of the components.
#[derive(Default)]
pub(crate) struct Sifted {
    /// Pairs that are beyond doubt.
    settled: Vec<Settled>,
    /// Components that the judge is to look at, in their order.
    pub(crate) left: Vec<usize>,
}

/// An operation and an intent that agree in all that counts.
struct Settled {
    operation: usize,
    intent: usize,
    rule: Rule,
}

/// From this many components on two threads are faster than one: each pair is looked up in memory here and there.
const COMPONENTS_PER_THREAD_MIN: usize = 10_000;

/// Pairs between two counts of how far the sieve is.
const SETTLED_PER_COUNT: usize = 4096;

/// What the sieve looks at.
#[derive(Clone, Copy)]
pub(crate) struct Sieve<'a> {
    pub(crate) snapshot: &'a Snapshot<'a>,
    pub(crate) keys: &'a Keys<'a>,
    pub(crate) scope: &'a Scope,
    pub(crate) open: &'a OpenBreaks<'a>,
    pub(crate) frame: &'a Frame,
    pub(crate) meter: &'a Meter,
}

impl Sieve<'_> {
    /// Sifts all components, and writes down what is settled.
    pub(crate) fn sift(self, components: &Components, verdicts: &mut Verdicts) -> Vec<usize> {
        let middle = components.len() / 2;
        let (first, second) = if components.len() < COMPONENTS_PER_THREAD_MIN {
            (
                self.part(components, 0..middle),
                self.part(components, middle..components.len()),
            )
        } else {
            std::thread::scope(|scope| {
                let second = scope.spawn(|| self.part(components, middle..components.len()));
                let first = self.part(components, 0..middle);
                (first, second.join().expect("the sieve does not panic"))
            })
        };
        let mut left = first.left;
        left.extend(second.left);
        verdicts
            .matches
            .reserve(first.settled.len() + second.settled.len());
        verdicts
            .links
            .reserve(first.settled.len() + second.settled.len());
        for pair in first.settled.into_iter().chain(second.settled) {
            let Settled {
                operation,
                intent,
                rule,
            } = pair;
            if !self.scope.operations[operation] && !self.scope.intents[intent] {
                continue;
            }
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
        left
    }

    fn part(self, components: &Components, range: Range<usize>) -> Sifted {
        let mut sifted = Sifted::default();
        for component in range {
            let (operations, intents) = components.get(component);
            let pair = match operations {
                [operation] if intents.len() == 1 => intents
                    .iter()
                    .next()
                    .map(|intent| (*operation as usize, intent)),
                _ => None,
            };
            match pair.and_then(|pair| Some((pair, self.rule(pair)?))) {
                Some(((operation, intent), rule)) => {
                    sifted.settled.push(Settled {
                        operation,
                        intent,
                        rule,
                    });
                    if sifted.settled.len().is_multiple_of(SETTLED_PER_COUNT) {
                        // Two rows each.
                        self.meter.add(2 * SETTLED_PER_COUNT as u64);
                    }
                }
                None => sifted.left.push(component),
            }
        }
        sifted
    }

    /// The rule by which a pair is beyond doubt, or nothing where it is not.
    fn rule(self, (operation, intent): (usize, usize)) -> Option<Rule> {
        let Sieve {
            snapshot,
            keys,
            open,
            frame,
            ..
        } = self;
        let (operations, intents) = (snapshot.operations, snapshot.intents);
        let same_kind = matches!(
            (operations.kind[operation], intents.kind[intent]),
            (OperationKind::Charge, IntentKind::Charge)
                | (OperationKind::Refund, IntentKind::Refund)
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
            (None, false, _) => return None,
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
        is_settled.then_some(rule)
    }
}
