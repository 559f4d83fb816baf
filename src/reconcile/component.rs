//! One component: the rows that shared keys tie together, with the look-ups that the ladder and the judge need.

use hashbrown::HashMap;

use super::keys::{IntentKeys, Key, Keys, OperationKeys};
use super::rules::{Frame, Rules};
use super::{Seen, Snapshot, StoredLink};
use crate::model::answer::Standing;
use crate::model::intent::Intent;
use crate::model::operation::{Family, Operation, OperationKind, OperationStatus};
use crate::money::round_half_up;
use crate::time::{Instant, Span};

/// An operation with its keys.
pub(crate) struct Op<'a> {
    /// Index in the snapshot.
    pub(crate) row: usize,
    pub(crate) keys: OperationKeys,
    pub(crate) row_data: Operation<'a>,
    /// Why it cannot be used; empty = it can.
    pub(crate) invalid: &'a str,
    /// Money moved.
    pub(crate) moved: bool,
    pub(crate) in_scope: bool,
    pub(crate) seen: Seen,
    pub(crate) link: Option<StoredLink>,
}

/// An intent with its keys.
pub(crate) struct Local<'a> {
    /// Index in the snapshot.
    pub(crate) row: usize,
    pub(crate) keys: IntentKeys,
    pub(crate) row_data: Intent<'a>,
    pub(crate) in_scope: bool,
    /// How operations of other sources that answer it stand; `None` = none does.
    pub(crate) elsewhere: Option<Standing>,
}

impl Op<'_> {
    /// Takes part in linking: not set aside, readable, not a repetition.
    pub(crate) fn is_usable(&self) -> bool {
        self.row_data.ignore.is_none() && self.invalid.is_empty()
    }

    pub(crate) fn family(&self) -> Option<Family> {
        self.row_data.kind.family()
    }

    /// It did not succeed, and says that it has not taken anything: nothing yet, or nothing at all.
    pub(crate) fn has_taken_nothing(&self) -> bool {
        self.row_data.status != OperationStatus::Succeeded && self.row_data.net_minor == Some(0)
    }

    /// A row that gives back what another took, where it names one: failures, reversals, adjustments.
    pub(crate) fn is_return(&self) -> bool {
        self.row_data.kind.is_return() || self.row_data.kind == OperationKind::Adjustment
    }

    /// A row of its family that stands for itself.
    pub(crate) fn is_own(&self, family: Family) -> bool {
        self.family() == Some(family) && !self.row_data.kind.is_return()
    }

    pub(crate) fn is_live_hold(&self) -> bool {
        self.row_data.kind == OperationKind::Authorization
            && self.row_data.status == OperationStatus::Succeeded
            && !self.moved
    }

    pub(crate) fn is_failed(&self) -> bool {
        !self.moved
            && matches!(
                self.row_data.status,
                OperationStatus::Failed | OperationStatus::Canceled
            )
    }

    pub(crate) fn is_expired(&self) -> bool {
        !self.moved && self.row_data.status == OperationStatus::Expired
    }

    /// A row of nothing that went well: a payment of zero.
    pub(crate) fn is_zero_success(&self) -> bool {
        self.row_data.status == OperationStatus::Succeeded
            && self.row_data.amount_minor == 0
            && !self.row_data.kind.is_hold()
    }

    pub(crate) fn magnitude(&self) -> i128 {
        i128::from(self.row_data.amount_minor).abs()
    }
}

/// How an operation's money stands to an intent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agreement {
    /// Equal, or within what was declared: the difference, operation minus intent.
    Agrees { delta: i64 },
    /// Another amount: the difference, operation minus intent.
    Amount { delta: i64 },
    /// Another currency.
    Currency,
}

impl Agreement {
    pub(crate) fn is_full(self) -> bool {
        matches!(self, Agreement::Agrees { .. })
    }
}

/// Compares an amount of the processor, signed as seen from our balance, with an intent.
pub(crate) fn agreement(
    amount_minor: i128,
    currency: crate::money::Currency,
    intent: &Intent<'_>,
    rules: &Rules,
) -> Agreement {
    if currency != intent.currency {
        return Agreement::Currency;
    }
    let local = i128::from(intent.amount_minor);
    let directed = amount_minor * i128::from(intent.kind.direction());
    let delta = clamp(directed - local);
    let rounded = match rules.rounds_to_minor.get(&currency) {
        Some(&step) if step > 1 => round_half_up(local, i128::from(step)) * i128::from(step),
        _ => local,
    };
    let tolerance = i128::from(rules.tolerance.get(&currency).copied().unwrap_or(0));
    if directed == local || (directed - rounded).abs() <= tolerance {
        Agreement::Agrees { delta }
    } else {
        Agreement::Amount { delta }
    }
}

/// An i128 that is known to be near i64, at its ends otherwise.
pub(crate) fn clamp(value: i128) -> i64 {
    i64::try_from(value).unwrap_or(if value < 0 { i64::MIN } else { i64::MAX })
}

/// The rows that shared keys tie together.
pub(crate) struct Component<'a> {
    pub(crate) operations: Vec<Op<'a>>,
    pub(crate) intents: Vec<Local<'a>>,
    by_id: HashMap<Key, Vec<usize>>,
    by_object: HashMap<Key, Vec<usize>>,
    by_processor: HashMap<Key, Vec<usize>>,
    by_reference: HashMap<Key, Vec<usize>>,
    by_parent: HashMap<Key, Vec<usize>>,
}

/// How far ahead of "now" a row may lie before its time is taken for wrong: a day covers every zone mistake that the
/// next run puts right by itself.
const AHEAD_MAX: Span = Span::hours(24);

const FAR_AHEAD: &str = "it lies more than a day in the future";

const UNKNOWN_WITH_MONEY: &str = "its status is not known, and money moved";

/// Why an operation cannot be used: what its reader says, a time that cannot be right, a status that could mean anything
/// beside money. Empty = it can.
fn unusable<'a>(row: &Operation<'a>, frame: &Frame) -> &'a str {
    if !row.invalid.is_empty() {
        row.invalid
    } else if is_far_ahead(row.occurred_at, frame) {
        FAR_AHEAD
    } else if row.status == OperationStatus::Unknown && row.moved_money() {
        UNKNOWN_WITH_MONEY
    } else {
        ""
    }
}

/// Whether a time cannot be right.
pub(crate) fn is_far_ahead(at: Instant, frame: &Frame) -> bool {
    at > frame.as_of.plus(AHEAD_MAX)
}

/// Which rows get a verdict of themselves.
pub(crate) struct Scope {
    pub(crate) operations: Vec<bool>,
    pub(crate) intents: Vec<bool>,
}

impl<'a> Component<'a> {
    pub(crate) fn new(
        snapshot: &Snapshot<'a>,
        keys: &Keys<'_>,
        scope: &Scope,
        frame: &Frame,
        operations: &[u32],
        intents: impl Iterator<Item = usize>,
    ) -> Component<'a> {
        let mut component = Component {
            operations: Vec::with_capacity(operations.len()),
            intents: Vec::new(),
            by_id: HashMap::new(),
            by_object: HashMap::new(),
            by_processor: HashMap::new(),
            by_reference: HashMap::new(),
            by_parent: HashMap::new(),
        };
        // Rows stand by their ids, so that nothing below can depend on the order in which they were given.
        let text = |row: usize| {
            let rows = snapshot.operations;
            (
                rows.text.get(rows.operation_id[row]),
                rows.text.get(rows.account[row]),
            )
        };
        let mut operations: Vec<usize> = operations
            .iter()
            .map(|&row| row as usize)
            .filter(|&row| snapshot.seen[row] != Seen::Repeat)
            .collect();
        operations.sort_by(|&left, &right| text(left).cmp(&text(right)));
        let mut intents: Vec<usize> = intents.collect();
        let id = |row: usize| snapshot.intents.text.get(snapshot.intents.intent_id[row]);
        intents.sort_by(|&left, &right| id(left).cmp(id(right)));
        for row in operations {
            let row_data = snapshot.operations.get(row);
            let at = component.operations.len();
            let keys = keys.operations[row];
            if row_data.ignore.is_none() {
                component.by_id.entry(keys.id).or_default().push(at);
                if keys.object != 0 && keys.object != keys.id {
                    component.by_object.entry(keys.object).or_default().push(at);
                }
            }
            component.operations.push(Op {
                row,
                keys,
                invalid: unusable(&row_data, frame),
                moved: row_data.moved_money(),
                row_data,
                in_scope: scope.operations[row],
                seen: snapshot.seen[row],
                link: snapshot.links[row],
            });
        }
        for row in intents {
            let at = component.intents.len();
            let mut keys = keys.intents[row];
            // An id is one of its source: where another source answers a row, the same id here is another operation, unless
            // its reference, which may be that of the payment, leaves room for the row.
            let is_of_another = |&operation: &usize| {
                let reference = component.operations[operation].keys.reference;
                reference != 0 && reference != keys.parent && !keys.is_reference(reference)
            };
            if snapshot.answer[row].elsewhere().is_some()
                && component.with_id(keys.processor).iter().any(is_of_another)
            {
                keys.processor = 0;
            }
            for (map, key) in [
                (&mut component.by_processor, keys.processor),
                (&mut component.by_parent, keys.parent),
            ] {
                if key != 0 {
                    map.entry(key).or_default().push(at);
                }
            }
            let mut mine = [keys.id, keys.idempotency, keys.reference];
            mine.sort_unstable();
            for (n, &key) in mine.iter().enumerate() {
                if key != 0 && (n == 0 || mine[n - 1] != key) {
                    component.by_reference.entry(key).or_default().push(at);
                }
            }
            component.intents.push(Local {
                row,
                keys,
                row_data: snapshot.intents.get(row),
                in_scope: scope.intents[row],
                elsewhere: snapshot.answer[row].elsewhere(),
            });
        }
        component
    }

    /// Operations with this id.
    pub(crate) fn with_id(&self, key: Key) -> &[usize] {
        found(&self.by_id, key)
    }

    /// Operations of this object, those whose id it is not among them.
    pub(crate) fn with_object(&self, key: Key) -> &[usize] {
        found(&self.by_object, key)
    }

    /// Usable intents of a family whose `processor_ref` is this key.
    pub(crate) fn with_processor(
        &self,
        key: Key,
        family: Family,
    ) -> impl Iterator<Item = usize> + '_ {
        self.usable(found(&self.by_processor, key), family)
    }

    /// Usable intents of a family whose reference, id or idempotency key is this key.
    pub(crate) fn with_reference(
        &self,
        key: Key,
        family: Family,
    ) -> impl Iterator<Item = usize> + '_ {
        self.usable(found(&self.by_reference, key), family)
    }

    /// Usable intents of a family whose parent is this key.
    pub(crate) fn with_parent(&self, key: Key, family: Family) -> impl Iterator<Item = usize> + '_ {
        self.usable(found(&self.by_parent, key), family)
    }

    /// Any intent, usable or not, that this key names directly.
    pub(crate) fn named(&self, key: Key) -> impl Iterator<Item = usize> + '_ {
        found(&self.by_reference, key)
            .iter()
            .chain(found(&self.by_processor, key))
            .copied()
    }

    fn usable<'s>(&'s self, rows: &'s [usize], family: Family) -> impl Iterator<Item = usize> + 's {
        rows.iter().copied().filter(move |&at| {
            let intent = &self.intents[at].row_data;
            intent.invalid.is_empty() && intent.kind.family() == family
        })
    }

    pub(crate) fn agreement(&self, operation: usize, intent: usize, rules: &Rules) -> Agreement {
        let row = &self.operations[operation].row_data;
        agreement(
            i128::from(row.amount_minor),
            row.currency,
            &self.intents[intent].row_data,
            rules,
        )
    }
}

fn found(map: &HashMap<Key, Vec<usize>>, key: Key) -> &[usize] {
    if key == 0 {
        &[]
    } else {
        map.get(&key).map_or(&[], Vec::as_slice)
    }
}
