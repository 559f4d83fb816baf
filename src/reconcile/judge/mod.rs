//! The judge: the verdict about each row of a component, given the links that the ladder found.
//!
//! | module | rows |
//! |---|---|
//! | `pair` | intents with the operations that claim them, by the decision table |
//! | `group` | what those operations amount to together |
//! | `mismatch` | pairs of another amount or currency |
//! | `extra` | further operations for something that asks for one |
//! | `absent` | intents that nothing answers |
//! | `dispute` | disputes, whose sums decide |
//! | `elsewhere` | what other sources show of the same intents |
//! | `leftover` | operations without an intent, rows set aside or unreadable, contests |
//! | `excess` | refunds and disputes above the charge |

mod absent;
mod dispute;
mod elsewhere;
mod excess;
mod extra;
mod group;
mod leftover;
mod mismatch;
mod pair;

use std::collections::BTreeSet;

use group::Group;
use hashbrown::{HashMap, HashSet};

use super::component::Component;
use super::keys::{Key, Keys};
use super::ladder::Links;
use super::payouts::Sums;
use super::plan::OpenBreaks;
use super::rules::{Frame, Rules};
use super::{NewLink, Snapshot};
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::RepairAction;
use crate::model::verdict::{Disposition, Match, Pending};
use crate::money::Money;
use crate::time::Instant;

/// What the judge says, by snapshot row.
pub(crate) struct Verdicts {
    pub(crate) operations: Vec<Disposition>,
    pub(crate) intents: Vec<Disposition>,
    pub(crate) matches: Vec<Match>,
    pub(crate) pending: Vec<Pending>,
    pub(crate) drafts: Vec<Draft>,
    pub(crate) redrives: Vec<RedriveDraft>,
    pub(crate) links: Vec<NewLink>,
    pub(crate) unverified_payouts: u64,
    /// Operations that are said to be duplicate refunds.
    pub(crate) duplicate_refunds: HashSet<usize>,
    /// Changed operations whose new content a person accepted.
    pub(crate) accepted: Vec<usize>,
    /// Intents that another source or another slice answers for.
    pub(crate) not_ours: Vec<usize>,
    /// Operations with the intents that they claim, of the components that were judged.
    pub(crate) claims: Vec<(usize, usize)>,
}

impl Verdicts {
    pub(crate) fn new(snapshot: &Snapshot<'_>) -> Verdicts {
        Verdicts {
            operations: vec![Disposition::OutOfScope; snapshot.operations.len()],
            intents: vec![Disposition::OutOfScope; snapshot.intents.len()],
            matches: Vec::new(),
            pending: Vec::new(),
            drafts: Vec::new(),
            redrives: Vec::new(),
            links: Vec::new(),
            unverified_payouts: 0,
            duplicate_refunds: HashSet::new(),
            accepted: Vec::new(),
            not_ours: Vec::new(),
            claims: Vec::new(),
        }
    }
}

/// A break before it has an id: what was seen about which rows.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    pub(crate) class: BreakClass,
    pub(crate) operation: Option<usize>,
    pub(crate) intent: Option<usize>,
    pub(crate) money: Option<Money>,
    pub(crate) delta: Option<Money>,
    pub(crate) why: String,
    /// Further operations it is about.
    pub(crate) also: Vec<usize>,
    pub(crate) repair: Option<RepairDraft>,
    /// What the evidence consists of, where it is not the rows' own figures.
    pub(crate) evidence: String,
}

/// A repair that would close a break, as far as the decision table allows it.
#[derive(Clone, Debug)]
pub(crate) struct RepairDraft {
    pub(crate) action: RepairAction,
    /// The intent that is changed; for `record_*` the payment's intent.
    pub(crate) intent: usize,
    pub(crate) operation: usize,
    pub(crate) status: IntentStatus,
    /// For `record_*`: the positive amount.
    pub(crate) money: Option<Money>,
    /// The break stays open after it, until a person closes it.
    pub(crate) keeps_open: bool,
}

/// An intent that may be sent again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RedriveDraft {
    pub(crate) intent: usize,
    /// Of the break about it; `None` = there is none.
    pub(crate) class: Option<BreakClass>,
    /// Void from then on.
    pub(crate) until: Instant,
}

#[derive(Clone, Copy)]
pub(crate) struct Context<'c, 'a> {
    pub(crate) rules: &'c Rules,
    pub(crate) frame: &'c Frame,
    pub(crate) snapshot: &'c Snapshot<'a>,
    pub(crate) keys: &'c Keys<'a>,
    pub(crate) open: &'c OpenBreaks<'a>,
    pub(crate) payouts: &'c Sums,
}

/// Judges one component.
pub(crate) fn judge(
    component: &Component<'_>,
    links: &Links,
    context: Context<'_, '_>,
    verdicts: &mut Verdicts,
) {
    let mut claims: Vec<Vec<usize>> = vec![Vec::new(); component.intents.len()];
    for (at, link) in links.of.iter().enumerate() {
        if let Some((intent, _)) = link {
            claims[*intent].push(at);
            verdicts
                .claims
                .push((component.operations[at].row, component.intents[*intent].row));
        }
    }
    let mut judge = Judge {
        c: component,
        links,
        context,
        claims,
        is_done: vec![false; component.operations.len()],
        is_intent_done: vec![false; component.intents.len()],
        has_money: vec![None; component.intents.len()],
        groups: Vec::with_capacity(component.intents.len()),
        is_outdone: vec![None; component.intents.len()],
        members: vec![Vec::new(); component.intents.len()],
        member_of: vec![None; component.operations.len()],
        satisfied: HashMap::new(),
        children: vec![Vec::new(); component.operations.len()],
        verdicts,
    };
    for (at, parent) in links.parent_operation.iter().enumerate() {
        if let Some(parent) = parent {
            judge.children[*parent].push(at);
        }
    }
    judge.set_aside();
    judge.recorded_twice();
    judge.contests();
    judge.changed();
    judge.satisfactions();
    for intent in 0..component.intents.len() {
        judge.intent(intent);
    }
    judge.excess_of_shared();
    judge.leftovers();
    judge.excesses();
}

pub(crate) struct Judge<'c, 'a> {
    pub(crate) c: &'c Component<'a>,
    pub(crate) links: &'c Links,
    pub(crate) context: Context<'c, 'a>,
    /// Operations that claim each intent.
    pub(crate) claims: Vec<Vec<usize>>,
    pub(crate) is_done: Vec<bool>,
    pub(crate) is_intent_done: Vec<bool>,
    /// For each intent that money stands behind: the operation that satisfies it.
    pub(crate) has_money: Vec<Option<usize>>,
    /// What the operations of each intent amount to, until it is judged.
    pub(crate) groups: Vec<Option<Group>>,
    /// The attempt at the same thing that was satisfied instead.
    pub(crate) is_outdone: Vec<Option<usize>>,
    /// For each intent, the operations that answer it.
    pub(crate) members: Vec<Vec<usize>>,
    /// For each operation, the intent that it answers.
    pub(crate) member_of: Vec<Option<usize>>,
    /// Numbers of the attempts that money satisfies, by what they are attempts at.
    pub(crate) satisfied: HashMap<(IntentKind, Key), BTreeSet<u32>>,
    /// Operations that name each operation as their parent.
    pub(crate) children: Vec<Vec<usize>>,
    pub(crate) verdicts: &'c mut Verdicts,
}

impl Judge<'_, '_> {
    /// Gives rows one verdict together, if any of them is in scope; answers whether that is so. The first verdict about a
    /// row stands.
    pub(crate) fn dispose(
        &mut self,
        operations: &[usize],
        intents: &[usize],
        disposition: Disposition,
    ) -> bool {
        for &at in operations {
            self.is_done[at] = true;
        }
        for &at in intents {
            self.is_intent_done[at] = true;
        }
        let is_asked = operations.iter().any(|&at| self.c.operations[at].in_scope)
            || intents.iter().any(|&at| self.c.intents[at].in_scope);
        if is_asked {
            for &at in operations {
                let verdict = &mut self.verdicts.operations[self.c.operations[at].row];
                if *verdict == Disposition::OutOfScope {
                    *verdict = disposition;
                }
            }
            for &at in intents {
                let verdict = &mut self.verdicts.intents[self.c.intents[at].row];
                if *verdict == Disposition::OutOfScope {
                    *verdict = disposition;
                }
            }
        }
        is_asked
    }

    /// A break about rows of this component, given by their indices in it.
    pub(crate) fn raise(
        &mut self,
        class: BreakClass,
        (operation, intent): (Option<usize>, Option<usize>),
        (money, delta): (Option<Money>, Option<Money>),
        why: String,
    ) -> &mut Draft {
        if let (BreakClass::DuplicateRefund, Some(at)) = (class, operation) {
            self.verdicts
                .duplicate_refunds
                .insert(self.c.operations[at].row);
        }
        self.verdicts.drafts.push(Draft {
            class,
            operation: operation.map(|at| self.c.operations[at].row),
            intent: intent.map(|at| self.c.intents[at].row),
            money,
            delta,
            why,
            also: Vec::new(),
            repair: None,
            evidence: String::new(),
        });
        self.verdicts.drafts.last_mut().expect("it was just pushed")
    }

    /// Operations that name this one as their parent.
    pub(crate) fn children_of(&self, operation: usize) -> &[usize] {
        &self.children[operation]
    }

    pub(crate) fn rows(&self, operations: &[usize]) -> Vec<usize> {
        operations
            .iter()
            .map(|&at| self.c.operations[at].row)
            .collect()
    }

    /// The amount of an operation, as a positive figure.
    pub(crate) fn money(&self, operation: usize) -> Money {
        let row = &self.c.operations[operation].row_data;
        Money::new(row.amount_minor.saturating_abs(), row.currency)
    }

    pub(crate) fn intent_money(&self, intent: usize) -> Money {
        let row = &self.c.intents[intent].row_data;
        Money::new(row.amount_minor, row.currency)
    }

    pub(crate) fn id(&self, operation: usize) -> &str {
        self.c.operations[operation].row_data.operation_id
    }

    pub(crate) fn intent_id(&self, intent: usize) -> &str {
        self.c.intents[intent].row_data.intent_id
    }

    pub(crate) fn pend(
        &mut self,
        operation: Option<usize>,
        intent: Option<usize>,
        why: &'static str,
    ) {
        let due_at = intent.map(|at| {
            let row = &self.c.intents[at].row_data;
            row.created_at.plus(self.context.rules.grace.of(row.kind))
        });
        self.verdicts.pending.push(Pending {
            intent: intent.map(|at| self.c.intents[at].row),
            operation: operation.map(|at| self.c.operations[at].row),
            due_at,
            why,
        });
    }

    /// Keeps the link of an operation with its intent.
    pub(crate) fn link(&mut self, operation: usize, is_principal: bool) {
        if let Some((intent, rule)) = self.links.of[operation] {
            self.verdicts.links.push(NewLink {
                operation: self.c.operations[operation].row,
                intent: self.c.intents[intent].row,
                rule,
                is_principal,
            });
        }
    }

    /// Whether grace has run out for an intent within what is covered: by every source, where no source owns it.
    pub(crate) fn is_past_grace(&self, intent: usize) -> bool {
        let row = &self.c.intents[intent].row_data;
        let due_at = row.created_at.plus(self.context.rules.grace.of(row.kind));
        let covered = self.context.frame.covered_for(row);
        covered.is_some_and(|covered| due_at <= covered)
    }
}
