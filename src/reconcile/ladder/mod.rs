//! The ladder: which intent is an operation's?
//!
//! Every operation that is usable climbs the rungs in order and stops at the first that holds: the link an earlier run
//! stored, the intent's `processor_ref`, our reference, a reference that several intents share, a declared truncation;
//! children and returns follow the row they name. Several operations may claim one intent: which of them satisfies it is
//! the judge's question. Where several intents compete for several operations they are dealt in a fixed order, so that
//! the order of rows never matters and nothing that a repair changes decides whom a break names.
//!
//! | module | rung |
//! |---|---|
//! | here | stored links, `processor_ref`, our reference |
//! | `deal` | several operations and several intents under one key |
//! | `kin` | children and returns |
//! | `truncation` | a reference that was cut |
//! | `buckets` | intents by what they ask for, so that dealing stays linear |

mod buckets;
mod deal;
mod kin;
mod truncation;

use std::rc::Rc;

use hashbrown::hash_map::Entry;
use hashbrown::{HashMap, HashSet};

use super::component::Component;
use super::keys::Key;
use super::rules::Rules;
use crate::model::answer::Standing;
use crate::model::intent::IntentStatus;
use crate::model::operation::{Family, OperationKind};
use crate::model::verdict::Rule;
use buckets::Buckets;

/// An operation that fits several intents, or none surely: the candidates are proposed, no link is kept.
pub(crate) struct Contest {
    pub(crate) operation: usize,
    pub(crate) intents: Rc<[usize]>,
    pub(crate) why: ContestReason,
}

/// Why no candidate dominates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContestReason {
    /// The reference names several rows that do not belong together.
    Several,
    /// The reference is the beginning of a longer local one.
    Truncated,
    /// The reference names one payment and the parent another.
    Contradiction,
    /// A shared reference, and the amounts fit none of the rows that are left.
    SharedAmount,
}

/// What the ladder found in a component.
pub(crate) struct Links {
    /// The intent that each operation claims.
    pub(crate) of: Vec<Option<(usize, Rule)>>,
    /// Whether an earlier run stored that claim: it is never dealt again.
    pub(crate) is_stored: Vec<bool>,
    /// The operation that each operation names as its parent, where it is known.
    pub(crate) parent_operation: Vec<Option<usize>>,
    /// The payment's intent of each refund, dispute and return, where it is known.
    pub(crate) parent_intent: Vec<Option<usize>>,
    /// Operations beyond what the intents under a shared reference ask for: equal money, naming an intent.
    pub(crate) excess: Vec<(usize, usize)>,
    /// Operations that are proposed only.
    pub(crate) contests: Vec<Contest>,
    /// One operation that several intents record: none of them is matched.
    pub(crate) recorded_twice: Vec<(usize, Vec<usize>)>,
    /// Every operation after the one that it names as its parent.
    pub(crate) order: Vec<usize>,
    /// Money of each operation that was given back by refunds and returns that name it, in its own currency.
    pub(crate) given_back: Vec<i128>,
}

/// Climbs the ladder for one component. `truncated` gives the candidates of possibly cut references, by snapshot row.
pub(crate) fn link(
    component: &Component<'_>,
    rules: &Rules,
    truncated: &HashMap<usize, Rc<[usize]>>,
) -> Links {
    let count = component.operations.len();
    let mut links = Links {
        of: vec![None; count],
        is_stored: vec![false; count],
        parent_operation: (0..count)
            .map(|at| parent_operation(component, at))
            .collect(),
        parent_intent: vec![None; count],
        excess: Vec::new(),
        contests: Vec::new(),
        recorded_twice: Vec::new(),
        order: Vec::new(),
        given_back: vec![0; count],
    };
    links.given_back = given_back(component, &links.parent_operation);
    let (order, depth) = parents_first(component, &links.parent_operation);
    links.order = order;
    let mut ladder = Ladder {
        component,
        rules,
        links,
        claims: vec![0; component.intents.len()],
        paid: vec![0; component.intents.len()],
        standing: HashMap::new(),
        depth,
        stored: HashMap::new(),
        postponed: Vec::new(),
        is_settled: vec![false; count],
    };
    ladder.stored_links();
    ladder.processor_refs();
    ladder.same_payment();
    // A capture follows the row that it names before its own reference, also where only the reference leads to that one.
    for depth in 0..=ladder.depth_max() {
        ladder.references(Rule::Reference, depth);
        ladder.references(Rule::SharedReference, depth);
        ladder.same_payment();
    }
    for (operations, intents) in std::mem::take(&mut ladder.postponed) {
        ladder.deal_without_money(&operations, &intents, Rule::ProcessorRef);
    }
    ladder.named_twice();
    ladder.taken_again();
    ladder.parents();
    ladder.contradictions();
    ladder.children();
    ladder.children_by_reference();
    ladder.truncations(truncated);
    ladder.returns();
    ladder.links
}

struct Ladder<'c, 'a> {
    component: &'c Component<'a>,
    rules: &'c Rules,
    links: Links,
    /// How many operations claim each intent.
    claims: Vec<u32>,
    /// How many of those moved money.
    paid: Vec<u32>,
    /// The payment behind a key, where only one can be meant; filled while parents are looked for.
    standing: HashMap<(Key, Naming), Option<usize>>,
    /// How many operations stand above each.
    depth: Vec<u32>,
    /// For intents with stored links: their operations that moved money.
    stored: HashMap<usize, Vec<usize>>,
    /// Rows that are over, under a `processor_ref` that several intents have.
    postponed: Vec<(Vec<usize>, Vec<usize>)>,
    /// Linked, contested or in excess: lower rungs leave it alone.
    is_settled: Vec<bool>,
}

/// The row that `parent_id` names: an operation's id first, then the object of a payment, the one that moved money first.
fn parent_operation(component: &Component<'_>, at: usize) -> Option<usize> {
    let operation = &component.operations[at];
    let is_child = operation.is_return()
        || matches!(
            operation.row_data.kind,
            OperationKind::Refund | OperationKind::Dispute
        );
    let pick = |key: Key, others_only: bool| -> Option<usize> {
        let rows = component
            .with_id(key)
            .iter()
            .chain(component.with_object(key))
            .copied();
        let by_id = component.with_id(key).len();
        rows.enumerate()
            .filter(|&(_, other)| other != at)
            .filter(|&(n, other)| {
                let other = &component.operations[other];
                // A row does not hang on its own object's other children, only on the payment itself; what gives back
                // may have the very row as its object.
                other.is_own(Family::Charge)
                    || operation.is_return() && (n < by_id || !others_only)
                    || (n < by_id && !others_only)
            })
            .filter(|&(_, other)| {
                is_child || component.operations[other].family() == operation.family()
            })
            .min_by_key(|&(n, other)| {
                let row = &component.operations[other];
                (
                    n >= by_id,
                    !row.moved,
                    row.row_data.occurred_at,
                    row.row_data.operation_id,
                )
            })
            .map(|(_, other)| other)
    };
    let keys = operation.keys;
    if keys.parent != 0
        && keys.parent != keys.id
        && let Some(parent) = pick(keys.parent, false)
    {
        return Some(parent);
    }
    if keys.object == 0 || keys.object == keys.id {
        return None;
    }
    if is_child {
        return pick(keys.object, true);
    }
    // A row whose object is another row of its payment hangs on that one.
    component
        .with_id(keys.object)
        .iter()
        .copied()
        .filter(|&other| other != at && operation.family() == Some(Family::Charge))
        .find(|&other| component.operations[other].family() == Some(Family::Charge))
}

/// Every operation after the one that it names as its parent, so that who follows whom does not depend on the order of
/// rows. Rows that name each other in a circle stand by time and id.
fn parents_first(component: &Component<'_>, parents: &[Option<usize>]) -> (Vec<usize>, Vec<u32>) {
    const UNKNOWN: u32 = u32::MAX;
    const ON_THE_WAY: u32 = u32::MAX - 1;
    let mut depth: Vec<u32> = vec![UNKNOWN; parents.len()];
    let mut path: Vec<usize> = Vec::new();
    for at in 0..parents.len() {
        let mut above = Some(at);
        while let Some(row) = above.filter(|&row| depth[row] == UNKNOWN) {
            depth[row] = ON_THE_WAY;
            path.push(row);
            above = parents[row];
        }
        // A row that is met again closes a circle: everything in it stands at the top.
        if let Some(first) = above.filter(|&row| depth[row] == ON_THE_WAY) {
            while let Some(row) = path.pop() {
                depth[row] = 0;
                if row == first {
                    break;
                }
            }
        }
        while let Some(row) = path.pop() {
            depth[row] = parents[row].map_or(0, |parent| depth[parent] + 1);
        }
    }
    let mut order: Vec<usize> = (0..parents.len()).collect();
    order.sort_by_key(|&at| {
        let row = &component.operations[at].row_data;
        (depth[at], row.occurred_at, row.operation_id, row.account)
    });
    (order, depth)
}

/// How deep rows are told apart that hang on each other.
const DEPTH_MAX: u32 = 8;

/// How many rows upward a payment is looked for. A refund's failure stands three rows below its hold.
pub(crate) const HOPS_MAX: usize = 8;

/// In which way a key names a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Naming {
    /// By the processor's id.
    Processor,
    /// By our id, key or reference.
    Reference,
    /// As what several rows share.
    Parent,
    /// As the parent of a local refund or dispute: by id first.
    Child,
}

/// What refunds and returns that name an operation gave back of it, returns of those refunds deducted.
fn given_back(component: &Component<'_>, parents: &[Option<usize>]) -> Vec<i128> {
    let mut back = vec![0_i128; component.operations.len()];
    let add = |at: usize, back: &mut Vec<i128>, amount: i128| {
        if let Some(parent) = parents[at] {
            let (child, parent_row) = (
                &component.operations[at].row_data,
                &component.operations[parent].row_data,
            );
            let is_opposite = child.amount_minor.signum() == -parent_row.amount_minor.signum();
            if child.currency == parent_row.currency && is_opposite {
                back[parent] += amount;
            }
        }
    };
    for (at, operation) in component.operations.iter().enumerate() {
        if operation.is_usable() && operation.moved && operation.is_return() {
            add(at, &mut back, operation.magnitude());
        }
    }
    for (at, operation) in component.operations.iter().enumerate() {
        if operation.is_usable()
            && operation.moved
            && operation.row_data.kind == OperationKind::Refund
        {
            let kept = operation.magnitude() - back[at].min(operation.magnitude());
            add(at, &mut back, kept);
        }
    }
    back
}

/// The order in which intents are dealt, those last for which money stands that is not at hand: succeeded first, then open, then failed or called off; then by key and id.
pub(crate) fn deal_rank(status: IntentStatus) -> u8 {
    match status {
        IntentStatus::Succeeded | IntentStatus::Won | IntentStatus::Lost => 0,
        IntentStatus::Created | IntentStatus::Pending => 1,
        IntentStatus::Failed | IntentStatus::Canceled | IntentStatus::Expired => 2,
    }
}

impl<'a> Ladder<'_, 'a> {
    fn settle(&mut self, operation: usize, intent: usize, rule: Rule) {
        self.unlink(operation);
        self.links.of[operation] = Some((intent, rule));
        self.is_settled[operation] = true;
        self.claims[intent] += 1;
        if self.component.operations[operation].moved {
            self.paid[intent] += 1;
        }
    }

    fn unlink(&mut self, operation: usize) {
        if let Some((intent, _)) = self.links.of[operation].take() {
            self.claims[intent] -= 1;
            if self.component.operations[operation].moved {
                self.paid[intent] -= 1;
            }
        }
    }

    /// Whether an operation that moved money claims the intent.
    fn is_taken(&self, intent: usize) -> bool {
        self.paid[intent] > 0
    }

    /// Whether money stands for the intent that is not at hand: at another source, or forgotten. Who waits comes before it.
    fn stands_elsewhere(&self, intent: usize) -> bool {
        self.component.intents[intent].elsewhere == Some(Standing::Stands)
    }

    fn depth_max(&self) -> u32 {
        self.depth.iter().copied().max().unwrap_or(0).min(DEPTH_MAX)
    }

    fn is_free(&self, operation: usize) -> bool {
        !self.is_settled[operation] && self.component.operations[operation].is_usable()
    }

    fn key_order(&self, intent: usize) -> (&'a str, &'a str) {
        let row = &self.component.intents[intent].row_data;
        (row.idempotency_key, row.intent_id)
    }

    /// Rung 0: what an earlier run stored is never dealt again.
    fn stored_links(&mut self) {
        let by_row: HashMap<usize, usize> = self
            .component
            .intents
            .iter()
            .enumerate()
            .map(|(at, intent)| (intent.row, at))
            .collect();
        for at in 0..self.component.operations.len() {
            let operation = &self.component.operations[at];
            let Some(intent) = operation
                .link
                .and_then(|link| by_row.get(&link.intent).copied())
            else {
                continue;
            };
            let family = self.component.intents[intent].row_data.kind.family();
            let is_usable_intent = self.component.intents[intent].row_data.invalid.is_empty();
            if self.is_free(at) && operation.is_own(family) && is_usable_intent {
                self.settle(
                    at,
                    intent,
                    operation.link.map_or(Rule::ProcessorRef, |link| link.rule),
                );
                self.links.is_stored[at] = true;
                if operation.moved {
                    self.stored.entry(intent).or_default().push(at);
                }
            }
        }
    }

    /// Rung 1: the intent's `processor_ref` is the operation's id or object. Two intents with one `processor_ref` and one
    /// operation between them recorded one event twice.
    fn processor_refs(&mut self) {
        let mut seen: HashSet<(Key, Family)> = HashSet::new();
        for at in 0..self.component.intents.len() {
            let intent = &self.component.intents[at];
            let (key, family) = (intent.keys.processor, intent.row_data.kind.family());
            if key == 0 || !seen.insert((key, family)) {
                continue;
            }
            let intents: Vec<usize> = self.component.with_processor(key, family).collect();
            let members: HashSet<usize> = intents.iter().copied().collect();
            let is_askable = |&operation: &usize| {
                let row = &self.component.operations[operation];
                let claims = |(intent, _): (usize, Rule)| members.contains(&intent);
                row.is_own(family) && row.is_usable() && self.links.of[operation].is_none_or(claims)
            };
            // The operation of that id; rows that only have it as their object count where there is none.
            let named = [self.component.with_id(key), self.component.with_object(key)];
            let has_id = named[0]
                .iter()
                .any(|&operation| self.component.operations[operation].is_own(family));
            // What the processor takes again of one dispute has the same object.
            let takes_again = family == Family::Dispute;
            let is_anothers = |&operation: &usize| {
                let reference = self.component.operations[operation].keys.reference;
                let is_ours = intents
                    .iter()
                    .any(|&intent| self.component.intents[intent].keys.is_reference(reference));
                !is_ours && self.names_its_own(operation)
            };
            let by_id = named[0].iter().filter(|_| has_id);
            let by_object = named[1]
                .iter()
                .filter(|operation| (!has_id || takes_again) && !is_anothers(operation));
            let operations: Vec<usize> =
                by_id.chain(by_object).copied().filter(is_askable).collect();
            if operations.is_empty() {
                continue;
            }
            self.share(&operations, &intents, Rule::ProcessorRef);
        }
    }

    fn share(&mut self, operations: &[usize], intents: &[usize], rule: Rule) {
        if let [intent] = intents {
            for &operation in operations {
                if self.is_free(operation) {
                    self.settle(operation, *intent, rule);
                }
            }
            return;
        }
        if rule == Rule::ProcessorRef {
            // Who was satisfied by another operation in an earlier run does not ask for this one.
            let own: HashSet<usize> = operations.iter().copied().collect();
            let is_satisfied = |intent: usize| {
                self.stored
                    .get(&intent)
                    .is_some_and(|rows| rows.iter().any(|row| !own.contains(row)))
            };
            let asking: Vec<usize> = intents
                .iter()
                .copied()
                .filter(|&intent| {
                    let row = &self.component.intents[intent].row_data;
                    let is_asking = row.status.is_open() || deal_rank(row.status) == 0;
                    is_asking && !is_satisfied(intent)
                })
                .collect();
            let movers: Vec<usize> = operations
                .iter()
                .copied()
                .filter(|&operation| self.component.operations[operation].moved)
                .collect();
            // What neither moved money nor can move any is recorded by nobody.
            let live: Vec<usize> = operations
                .iter()
                .copied()
                .filter(|&operation| {
                    let row = &self.component.operations[operation];
                    !row.is_failed() && !row.is_expired()
                })
                .collect();
            let operations_of_one = if movers.is_empty() { &live } else { &movers };
            if operations_of_one.is_empty() {
                // Whom a row that is over speaks of is known only when the others have found theirs.
                self.postponed.push((operations.to_vec(), intents.to_vec()));
                return;
            }
            if let ([operation], true) = (operations_of_one.as_slice(), asking.len() > 1) {
                self.recorded_twice(*operation, asking);
                return;
            }
            if let [intent] = asking.as_slice() {
                for &operation in &movers {
                    if self.is_free(operation) {
                        self.settle(operation, *intent, rule);
                    }
                }
            }
        }
        let free: Vec<usize> = operations
            .iter()
            .copied()
            .filter(|&operation| self.is_free(operation))
            .collect();
        self.deal(&free, intents, rule);
    }

    fn recorded_twice(&mut self, operation: usize, mut intents: Vec<usize>) {
        intents.sort_by_key(|&intent| self.component.intents[intent].row_data.intent_id);
        self.unlink(operation);
        self.is_settled[operation] = true;
        self.links.recorded_twice.push((operation, intents));
    }

    /// Captures, voids and further rows of a payment follow the row they name to its intent.
    fn same_payment(&mut self) {
        for place in 0..self.links.order.len() {
            self.follow(self.links.order[place]);
        }
    }

    /// Whether the reference of a row that moved money names an intent of its own that agrees with it: then that one comes
    /// before what the row hangs on.
    fn names_its_own(&self, at: usize) -> bool {
        let operation = &self.component.operations[at];
        let Some(family) = operation.family().filter(|_| operation.moved) else {
            return false;
        };
        self.component
            .with_reference(operation.keys.reference, family)
            .any(|intent| self.component.agreement(at, intent, self.rules).is_full())
    }

    fn follow(&mut self, at: usize) {
        let operation = &self.component.operations[at];
        if !self.is_free(at) || operation.family() != Some(Family::Charge) {
            return;
        }
        if self.names_its_own(at) {
            return;
        }
        let mut above = self.links.parent_operation[at];
        for _ in 0..HOPS_MAX {
            let Some(parent) = above else { break };
            if let Some((intent, _)) = self.links.of[parent] {
                return self.settle(at, intent, Rule::Parent);
            }
            above = self.links.parent_operation[parent];
        }
        if self.links.parent_operation[at].is_none() {
            let mut named = self
                .component
                .with_processor(operation.keys.parent, Family::Charge);
            if let (Some(intent), None) = (named.next(), named.next()) {
                self.settle(at, intent, Rule::ProcessorRef);
            }
        }
    }

    /// Rungs 2 and 3: our reference names an intent, or a parent that intents share.
    fn references(&mut self, rule: Rule, depth: u32) {
        let mut groups: Vec<(Key, Family, Vec<usize>)> = Vec::new();
        let mut places: HashMap<(Key, Family), usize> = HashMap::new();
        for at in 0..self.component.operations.len() {
            let operation = &self.component.operations[at];
            let Some(family) = operation.family() else {
                continue;
            };
            let key = operation.keys.reference;
            let is_asked = self.depth[at].min(DEPTH_MAX) == depth;
            // What a refund or dispute shares with a payment is its parent, not its match.
            let is_through_parent =
                rule == Rule::SharedReference && matches!(family, Family::Refund | Family::Dispute);
            if key == 0
                || operation.row_data.kind.is_return()
                || !self.is_free(at)
                || !is_asked
                || is_through_parent
            {
                continue;
            }
            let place = *places.entry((key, family)).or_insert_with(|| {
                groups.push((key, family, Vec::new()));
                groups.len() - 1
            });
            groups[place].2.push(at);
        }
        for (key, family, operations) in groups {
            let intents: Vec<usize> = match rule {
                Rule::SharedReference => self.component.with_parent(key, family).collect(),
                _ => self.component.with_reference(key, family).collect(),
            };
            if intents.is_empty() {
                continue;
            }
            if rule == Rule::Reference && !self.belong_together(&intents, key) {
                self.choose_or_contest(&operations, &intents);
            } else if intents.len() == 1 && rule == Rule::Reference {
                for operation in operations {
                    self.settle(operation, intents[0], rule);
                }
            } else {
                self.share(&operations, &intents, rule);
            }
        }
    }

    /// Rows that declare one thing in common: the same parent, or the same reference column.
    fn belong_together(&self, intents: &[usize], key: Key) -> bool {
        let first = &self.component.intents[intents[0]].keys;
        let same_key = intents
            .iter()
            .all(|&intent| self.component.intents[intent].keys.idempotency == key);
        let same_reference = intents
            .iter()
            .all(|&intent| self.component.intents[intent].keys.reference == key);
        let same_parent = first.parent != 0
            && intents
                .iter()
                .all(|&intent| self.component.intents[intent].keys.parent == first.parent);
        intents.len() == 1 || same_key || same_reference || same_parent
    }

    /// Unrelated rows under one reference: the one that agrees in amount and currency, if it is the only one.
    fn choose_or_contest(&mut self, operations: &[usize], intents: &[usize]) {
        let buckets = Buckets::of(self.component, intents.iter().copied());
        let everyone = self.by_id(intents.to_vec());
        let mut lists: HashMap<(crate::money::Currency, i64), Rc<[usize]>> = HashMap::new();
        for &operation in operations {
            let row = &self.component.operations[operation].row_data;
            let agreeing = match lists.entry((row.currency, row.amount_minor)) {
                Entry::Occupied(list) => Rc::clone(list.get()),
                Entry::Vacant(place) => {
                    let agreeing = buckets.all(self.component, operation, self.rules);
                    Rc::clone(place.insert(self.by_id(agreeing)))
                }
            };
            match &*agreeing {
                [intent] => self.settle(operation, *intent, Rule::Reference),
                [] => self.contest(operation, &everyone, ContestReason::Several),
                _ => self.contest(operation, &agreeing, ContestReason::Several),
            }
        }
    }

    /// An operation that one intent's `processor_ref` names and another one's id or key as well: one event, recorded twice.
    fn named_twice(&mut self) {
        let component = self.component;
        let mut waiting: HashMap<(Key, Family), Vec<usize>> = HashMap::new();
        for at in 0..component.operations.len() {
            let operation = &component.operations[at];
            // What was stored is asked again by its rule, so that a later run says what the first one said.
            let Some((linked, Rule::ProcessorRef | Rule::Parent)) = self.links.of[at] else {
                continue;
            };
            let (Some(family), key) = (operation.family(), operation.keys.reference) else {
                continue;
            };
            let own = &component.intents[linked];
            if key == 0 || own.keys.is_reference(key) || !operation.moved {
                continue;
            }
            let others = waiting
                .entry((key, family))
                .or_insert_with(|| self.waiting_under(key, family));
            let other = others.iter().copied().find(|&intent| {
                let local = &component.intents[intent];
                let is_attempt = is_other(local.row_data.attempt, own.row_data.attempt)
                    && (local.keys.parent == own.keys.parent
                        || local.keys.idempotency == own.keys.idempotency);
                intent != linked && !is_attempt
            });
            if let Some(other) = other {
                self.recorded_twice(at, vec![linked, other]);
            }
        }
    }

    /// Intents with this id or key that ask for an operation, and that no operation claims.
    fn waiting_under(&self, key: Key, family: Family) -> Vec<usize> {
        let component = self.component;
        component
            .with_reference(key, family)
            .filter(|&intent| {
                let local = &component.intents[intent];
                let is_named = local.keys.id == key || local.keys.idempotency == key;
                let is_asking =
                    local.row_data.status.is_open() || deal_rank(local.row_data.status) == 0;
                is_named && is_asking && self.claims[intent] == 0 && local.keys.processor == 0
            })
            .collect()
    }

    /// Intents in the order of their ids, to be named.
    fn by_id(&self, mut intents: Vec<usize>) -> Rc<[usize]> {
        intents.sort_by_key(|&intent| self.component.intents[intent].row_data.intent_id);
        intents.into()
    }

    fn contest(&mut self, operation: usize, intents: &Rc<[usize]>, why: ContestReason) {
        self.is_settled[operation] = true;
        self.links.contests.push(Contest {
            operation,
            intents: Rc::clone(intents),
            why,
        });
    }
}

/// Whether two attempt numbers speak of different attempts: both are given and differ.
pub(crate) fn is_other(left: Option<u32>, right: Option<u32>) -> bool {
    matches!((left, right), (Some(left), Some(right)) if left != right)
}

/// Whether rows are captures that share their parent or their object.
pub(crate) fn share_payment(component: &Component<'_>, operations: &[usize]) -> bool {
    let Some(&first) = operations.first() else {
        return false;
    };
    let first = component.operations[first].keys;
    operations.iter().all(|&at| {
        let row = &component.operations[at];
        let shares_parent = first.parent != 0 && row.keys.parent == first.parent;
        let shares_object = first.object != 0 && row.keys.object == first.object;
        row.row_data.kind == OperationKind::Capture && (shares_parent || shares_object)
    })
}
