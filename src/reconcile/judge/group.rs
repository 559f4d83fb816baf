//! What the operations that claim an intent amount to together.

use hashbrown::HashSet;

use super::Judge;
use crate::model::breaks::BreakClass;
use crate::model::intent::IntentStatus;
use crate::model::operation::{Family, OperationKind, OperationStatus};
use crate::model::verdict::Rule;
use crate::reconcile::component::{Agreement, agreement};
use crate::reconcile::ladder::share_payment;
use crate::reconcile::lifecycle::Processor;

/// Where the money of a group is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Money {
    /// None has moved.
    None,
    /// Moved, and stayed.
    Kept,
    /// Part of it came back: so much, in minor units.
    Partly(i128),
    /// All of it came back.
    Back,
    /// More came back than had moved: so much too much.
    TooMuch(i128),
}

/// The operations that answer an intent.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The column of the decision table; `None` = nothing that counts.
    pub(crate) processor: Option<Processor>,
    /// The operation that satisfies the intent, or the captures that add up to it; or the row that gives the status.
    pub(crate) members: Vec<usize>,
    /// Rows that gave money of the members back.
    pub(crate) returns: Vec<usize>,
    /// Further rows that moved money.
    pub(crate) extras: Vec<usize>,
    /// The further row that took the place of one that came back.
    pub(crate) replacement: Option<usize>,
    /// Rows of the same payment that carry no money.
    pub(crate) attached: Vec<usize>,
    pub(crate) money: Money,
    pub(crate) agreement: Agreement,
    /// A failure that the profile calls final.
    pub(crate) is_final: bool,
    /// A hold that is still alive.
    pub(crate) is_hold: bool,
    /// Captures that add up.
    pub(crate) is_sum: bool,
    /// A row that gave money back in another currency than the intent's.
    pub(crate) foreign: Option<usize>,
    /// No member dominates: every row that moved money is an extra.
    pub(crate) is_contested: bool,
    /// Members are out of reach; only what came back is seen.
    pub(crate) is_original_unseen: bool,
    /// The status that a failure or expiry means for the intent.
    pub(crate) word: IntentStatus,
}

impl Judge<'_, '_> {
    /// Reads the claims of an intent that is not a dispute.
    pub(crate) fn group(&self, intent: usize) -> Group {
        let family = self.c.intents[intent].row_data.kind.family();
        let claims = &self.claims[intent];
        let own: Vec<usize> = claims
            .iter()
            .copied()
            .filter(|&at| self.c.operations[at].is_own(family))
            .collect();
        let returns: Vec<usize> = claims
            .iter()
            .copied()
            .filter(|&at| self.c.operations[at].is_return() && self.c.operations[at].moved)
            .collect();
        let mut movers: Vec<usize> = own
            .iter()
            .copied()
            .filter(|&at| self.c.operations[at].moved)
            .collect();
        let mut group = Group {
            processor: None,
            members: Vec::new(),
            returns: Vec::new(),
            extras: Vec::new(),
            replacement: None,
            attached: own
                .iter()
                .copied()
                .filter(|&at| !self.c.operations[at].moved)
                .collect(),
            money: Money::None,
            agreement: Agreement::Agrees { delta: 0 },
            is_final: false,
            is_hold: false,
            is_sum: false,
            is_contested: false,
            foreign: None,
            is_original_unseen: false,
            word: IntentStatus::Failed,
        };
        if movers.is_empty() {
            if returns.is_empty() {
                self.read_status(intent, family, &mut group);
            } else {
                // What has taken nothing has nothing to give back.
                let is_untaken = returns.iter().any(|&at| {
                    self.links.parent_operation[at]
                        .is_some_and(|parent| self.c.operations[parent].has_taken_nothing())
                });
                group.is_original_unseen = !is_untaken;
                group.foreign = self.foreign(intent, &returns);
                group.returns = returns;
                let claimed = if is_untaken {
                    0
                } else {
                    i128::from(self.c.intents[intent].row_data.amount_minor)
                };
                group.money = self.balance(claimed, &group.returns);
                // A row of the same amount that failed without money is what the return answers.
                let failed = group.attached.iter().position(|&at| {
                    self.c.operations[at].is_failed()
                        && self.c.agreement(at, intent, self.context.rules).is_full()
                });
                group.members = failed
                    .map(|n| vec![group.attached.remove(n)])
                    .unwrap_or_default();
                group.processor = Some(column(group.money));
            }
            return group;
        }
        movers.sort_by_key(|&at| self.preference(intent, at));
        self.choose(intent, movers, &mut group);
        // What came back of an extra is judged with it.
        let extras: HashSet<usize> = group.extras.iter().copied().collect();
        let mut mine = returns;
        mine.retain(|&at| {
            self.links.parent_operation[at].is_none_or(|parent| !extras.contains(&parent))
        });
        group.foreign = self.foreign(intent, &mine);
        group.returns = mine;
        let mut moved: i128 = group
            .members
            .iter()
            .map(|&at| self.c.operations[at].magnitude())
            .sum();
        if self.returns_the_unseen(intent, &group) {
            // What came back is an original out of reach, which counts with the amount that the intent claims.
            group.is_original_unseen = true;
            moved += i128::from(self.c.intents[intent].row_data.amount_minor);
        }
        group.money = self.balance(moved, &group.returns);
        group.processor = Some(column(group.money));
        group
    }

    /// Whether what came back names the operation that the intent names, and that one is not among the rows at hand.
    fn returns_the_unseen(&self, intent: usize, group: &Group) -> bool {
        let processor = self.c.intents[intent].keys.processor;
        let is_shown = group.members.iter().chain(&group.extras).any(|&at| {
            let keys = self.c.operations[at].keys;
            keys.id == processor || keys.object == processor
        });
        processor != 0
            && !is_shown
            && group.returns.iter().any(|&at| {
                let keys = self.c.operations[at].keys;
                let names_it = keys.parent == processor || keys.object == processor;
                names_it && self.links.parent_operation[at].is_none()
            })
    }

    /// The order in which rows that moved money may satisfy an intent: what was told of, a stored link whose money stands,
    /// any stored link, a named one, equal money, money that was not given back, money whose refund our own side has, the
    /// earliest, then by id.
    fn preference(&self, intent: usize, at: usize) -> ([bool; 7], crate::time::Instant, &str) {
        let operation = &self.c.operations[at];
        let processor = self.c.intents[intent].keys.processor;
        let is_named = processor != 0 && processor == operation.keys.id;
        let agrees = self.c.agreement(at, intent, self.context.rules).is_full();
        let is_given_back = self.links.given_back[at] >= operation.magnitude();
        let row = &operation.row_data;
        // Of several that were refunded, our own side speaks of the one whose refund it has.
        let is_refund_asked = self.children_of(at).iter().any(|&child| {
            let is_refund = self.c.operations[child].is_own(Family::Refund);
            is_refund && self.links.of[child].is_some()
        });
        // What was told of a reversal is told of it until a person closes it.
        let is_told = [BreakClass::StatusReversed, BreakClass::PayoutReturned]
            .into_iter()
            .any(|class| {
                let intent = self.intent_id(intent);
                let (open, rules) = (self.context.open, self.context.rules);
                is_given_back && open.has(class, rules, Some(row), intent)
            });
        (
            [
                !is_told,
                !self.links.is_stored[at] || is_given_back,
                !self.links.is_stored[at],
                !is_named,
                !agrees,
                is_given_back,
                is_given_back && !is_refund_asked,
            ],
            row.occurred_at,
            row.operation_id,
        )
    }

    fn choose(&self, intent: usize, movers: Vec<usize>, group: &mut Group) {
        let rules = self.context.rules;
        let local = &self.c.intents[intent];
        let first = movers[0];
        group.agreement = self.c.agreement(first, intent, rules);
        let is_certain = self.links.is_stored[first]
            || (local.keys.processor != 0
                && local.keys.processor == self.c.operations[first].keys.id);
        if !group.agreement.is_full() && movers.len() > 1 {
            // A stored capture of a sum brings its sisters along.
            let mut captures: Vec<usize> = movers
                .iter()
                .copied()
                .filter(|&at| self.c.operations[at].row_data.kind == OperationKind::Capture)
                .collect();
            captures.sort_by_key(|&at| {
                let row = &self.c.operations[at].row_data;
                (row.occurred_at, row.operation_id)
            });
            if captures.contains(&first) && captures.len() > 1 && share_payment(self.c, &captures) {
                let sum: i128 = captures
                    .iter()
                    .map(|&at| i128::from(self.c.operations[at].row_data.amount_minor))
                    .sum();
                let currency = self.c.operations[first].row_data.currency;
                let is_one_currency = captures
                    .iter()
                    .all(|&at| self.c.operations[at].row_data.currency == currency);
                if is_one_currency {
                    group.agreement = agreement(sum, currency, &local.row_data, rules);
                    group.is_sum = true;
                    group.extras = movers
                        .iter()
                        .copied()
                        .filter(|&at| self.c.operations[at].row_data.kind != OperationKind::Capture)
                        .collect();
                    group.members = captures;
                    return;
                }
            }
            if !is_certain {
                group.is_contested = true;
                group.extras = movers;
                return;
            }
        }
        group.members = vec![first];
        group.extras = movers[1..].to_vec();
    }

    /// The first of the rows that is in another currency than the intent.
    fn foreign(&self, intent: usize, rows: &[usize]) -> Option<usize> {
        let currency = self.c.intents[intent].row_data.currency;
        let row = |at: usize| &self.c.operations[at].row_data;
        rows.iter()
            .copied()
            .filter(|&at| row(at).currency != currency)
            .min_by_key(|&at| (row(at).occurred_at, row(at).operation_id))
    }

    /// What is left of so much money after what came back.
    fn balance(&self, moved: i128, returns: &[usize]) -> Money {
        let back: i128 = returns
            .iter()
            .map(|&at| self.c.operations[at].magnitude())
            .sum();
        left_of(moved, back)
    }

    /// The status of rows of which none moved money.
    fn read_status(&self, intent: usize, family: Family, group: &mut Group) {
        let local = &self.c.intents[intent];
        // Another attempt than the one a succeeded row names says nothing about it; nor does one that still waits about a
        // row that is over, where the named one is seen.
        let (others, named): (Vec<usize>, Vec<usize>) = group
            .attached
            .iter()
            .partition(|&&at| self.is_another_attempt(intent, at));
        let status = local.row_data.status;
        let has_named = !named.is_empty();
        let mut rows = named;
        rows.extend(others.into_iter().filter(|&at| {
            let row = &self.c.operations[at];
            let is_over =
                row.is_failed() || row.is_expired() || row.row_data.kind == OperationKind::Void;
            match status {
                IntentStatus::Succeeded => false,
                _ if status.is_open() || !has_named => true,
                _ => is_over,
            }
        }));
        let latest = |wanted: &dyn Fn(usize) -> bool| {
            rows.iter()
                .copied()
                .filter(|&at| wanted(at))
                .max_by_key(|&at| {
                    let row = &self.c.operations[at].row_data;
                    (row.occurred_at, row.operation_id)
                })
        };
        let status = |at: usize| self.c.operations[at].row_data.status;
        let kind = |at: usize| self.c.operations[at].row_data.kind;
        let voids: Vec<usize> = rows
            .iter()
            .copied()
            .filter(|&at| {
                kind(at) == OperationKind::Void
                    && status(at) == OperationStatus::Succeeded
                    && self.lets_go_of_all(at, intent)
            })
            .collect();
        let voided: HashSet<Option<usize>> = voids
            .iter()
            .map(|&void| self.links.parent_operation[void])
            .collect();
        let is_voided = |at: usize| voided.contains(&None) || voided.contains(&Some(at));
        let zero = latest(&|at| self.c.operations[at].is_zero_success());
        let waiting = latest(&|at| {
            kind(at) != OperationKind::Void
                && (status(at) == OperationStatus::Pending
                    || (status(at) == OperationStatus::Succeeded
                        && !self.c.operations[at].is_live_hold()
                        && !self.c.operations[at].is_zero_success()))
        });
        let hold = latest(&|at| self.c.operations[at].is_live_hold() && !is_voided(at));
        let over =
            latest(&|at| self.c.operations[at].is_failed() || self.c.operations[at].is_expired());
        let failed_capture = over.filter(|&at| {
            kind(at) != OperationKind::Authorization && self.c.operations[at].is_failed()
        });
        let void = voids
            .iter()
            .copied()
            .max_by_key(|&at| self.c.operations[at].row_data.occurred_at);
        let is_final = |at: usize| self.c.operations[at].row_data.is_final;
        let hold_outweighs =
            local.row_data.status.is_open() && failed_capture.is_none_or(|at| !is_final(at));
        let member = match (zero, waiting, hold) {
            (Some(at), ..) => {
                group.processor = Some(Processor::Succeeded);
                group.money = Money::Kept;
                group.agreement = self.c.agreement(at, intent, self.context.rules);
                Some(at)
            }
            (None, Some(at), _) => {
                group.processor = Some(Processor::Pending);
                Some(at)
            }
            (None, None, Some(at)) if hold_outweighs || failed_capture.is_none() => {
                group.processor = Some(Processor::Pending);
                group.is_hold = true;
                group.agreement = self.c.agreement(at, intent, self.context.rules);
                Some(at)
            }
            (None, None, _) => match (void.filter(|_| hold.is_none()), over) {
                (Some(at), _) => {
                    group.processor = Some(Processor::Failed);
                    group.is_final = true;
                    group.word = IntentStatus::Canceled;
                    Some(at)
                }
                (None, Some(at)) => {
                    group.is_final = is_final(at);
                    group.agreement = self.c.agreement(at, intent, self.context.rules);
                    (group.processor, group.word) = match status(at) {
                        OperationStatus::Expired => {
                            (Some(Processor::Expired), IntentStatus::Expired)
                        }
                        OperationStatus::Canceled => {
                            (Some(Processor::Failed), IntentStatus::Canceled)
                        }
                        _ => (Some(Processor::Failed), IntentStatus::Failed),
                    };
                    Some(at)
                }
                (None, None) => None,
            },
        };
        if let Some(member) = member {
            group.members = vec![member];
            group.attached.retain(|&at| at != member);
        }
        debug_assert!(
            group
                .attached
                .iter()
                .all(|&at| self.c.operations[at].is_own(family)),
            "own rows only"
        );
    }

    /// Whether a void is one of the whole amount; where it names none, it is.
    fn lets_go_of_all(&self, void: usize, intent: usize) -> bool {
        let (row, local) = (&self.c.operations[void], &self.c.intents[intent].row_data);
        row.row_data.currency == local.currency
            && (row.row_data.amount_minor == 0
                || row.magnitude() == i128::from(local.amount_minor).abs())
    }

    /// Whether the row belongs to another payment at the processor than the one that the intent names: only our reference
    /// leads to it, or to the row that it hangs on.
    fn is_another_attempt(&self, intent: usize, at: usize) -> bool {
        let processor = self.c.intents[intent].keys.processor;
        let mut row = at;
        // As many hops as the ladder takes.
        for _ in 0..8 {
            let keys = self.c.operations[row].keys;
            let is_named = [keys.id, keys.object, keys.parent].contains(&processor);
            let above = self.links.parent_operation[row];
            match self.links.of[row] {
                _ if processor == 0 || is_named => return false,
                Some((_, Rule::ProcessorRef)) => return false,
                Some((_, Rule::Parent)) | None => match above {
                    Some(parent) => row = parent,
                    None => return false,
                },
                Some((
                    _,
                    Rule::Reference | Rule::SharedReference | Rule::ReferenceTruncated | Rule::Sum,
                )) => return true,
            }
        }
        false
    }
}

/// Where money is of which so much came back.
pub(super) fn left_of(moved: i128, back: i128) -> Money {
    match back {
        0 => Money::Kept,
        back if back < moved => Money::Partly(back),
        back if back == moved => Money::Back,
        back => Money::TooMuch(back - moved),
    }
}

pub(super) fn column(money: Money) -> Processor {
    match money {
        Money::None => Processor::Pending,
        Money::Kept => Processor::Succeeded,
        Money::Partly(_) | Money::Back | Money::TooMuch(_) => Processor::Failed,
    }
}
