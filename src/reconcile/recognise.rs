//! Recognition: which rows of the feed are new, known as they are, further than they were, or changed?
//!
//! A row is recognised by its key (account and operation id). Reference, payout, fee and net may be filled in once; a
//! status moves along and may take fee and net with it; anything else that differs is a change, and then the stored
//! content stays and the difference is the evidence. A feed that is behind what is stored changes nothing.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::{Seen, StoredLink};
use crate::model::intent::{Intent, IntentKind, Intents};
use crate::model::operation::{IdKind, Operation, OperationKind, OperationStatus, Operations};
use crate::model::stored::{ClaimedOperation, StoredOperations};
use crate::money::Money;
use crate::time::Instant;

/// A feed with what is known of its rows; the operations part of a snapshot.
#[derive(Clone, Debug, Default)]
pub struct Recognised {
    /// The rows of the feed, then stored rows that it does not hold, then refunds derived from running totals.
    pub operations: Operations,
    /// For each row, what is known of it.
    pub seen: Vec<Seen>,
    /// What differs, for changed rows.
    pub changes: BTreeMap<usize, String>,
    /// For each row, the intent it is linked with, by id; empty = none.
    linked: Vec<Option<(String, crate::model::verdict::Rule)>>,
    /// Rows of the feed that repeat another row of it.
    pub repeated: u64,
}

/// What makes a row unusable that was not seen before what is known of its time had been forgotten.
const LATE: &str = "it occurred before the time from which this store still knows everything";

/// How new content stands to known content.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Movement {
    Same,
    /// Further, or filled in.
    Forward,
    /// The new content is older than the known one.
    Behind,
    Changed(String),
}

/// Recognises the rows of a feed among those that are stored. Refunds that the local side has booked already count as
/// known where a format tells only their running total.
pub fn recognise(feed: Operations, stored: &StoredOperations, intents: &Intents) -> Recognised {
    let mut recognised = Recognised {
        operations: feed,
        ..Recognised::default()
    };
    let count = recognised.operations.len();
    recognised.seen = vec![Seen::New; count];
    recognised.linked = vec![None; count];
    recognised.repetitions();
    recognised.stored(stored);
    recognised.derived_refunds(intents);
    recognised
}

impl Recognised {
    /// The stored links as rows of these intents.
    pub fn links(&self, intents: &Intents) -> Vec<Option<StoredLink>> {
        if self.linked.iter().all(Option::is_none) {
            return vec![None; self.linked.len()];
        }
        let rows: HashMap<&str, usize> = intents
            .intent_id
            .iter()
            .enumerate()
            .map(|(row, &id)| (intents.text.get(id), row))
            .collect();
        self.linked
            .iter()
            .map(|linked| {
                let (intent_id, rule) = linked.as_ref()?;
                rows.get(intent_id.as_str()).map(|&intent| StoredLink {
                    intent,
                    rule: *rule,
                })
            })
            .collect()
    }

    /// Rows of the feed with one key: equal ones are one row; of several the furthest counts.
    fn repetitions(&mut self) {
        let mut plain: hashbrown::HashTable<usize> =
            hashbrown::HashTable::with_capacity(self.operations.len());
        let hasher = hashbrown::DefaultHashBuilder::default();
        for row in 0..self.operations.len() {
            let hash = |rows: &Operations, row: usize| {
                use std::hash::BuildHasher;
                hasher.hash_one((
                    rows.text.get(rows.account[row]),
                    rows.text.get(rows.operation_id[row]),
                ))
            };
            let own = hash(&self.operations, row);
            let found = plain
                .find(own, |&other| {
                    let rows = &self.operations;
                    rows.text.get(rows.operation_id[other]) == rows.text.get(rows.operation_id[row])
                        && rows.text.get(rows.account[other]) == rows.text.get(rows.account[row])
                })
                .copied();
            let Some(other) = found else {
                let rows = &self.operations;
                plain.insert_unique(own, row, |&other| hash(rows, other));
                continue;
            };
            self.repeated += 1;
            self.latest_total(other, row);
            match movement(&self.operations.get(other), &self.operations.get(row)) {
                Movement::Same | Movement::Behind => self.seen[row] = Seen::Repeat,
                Movement::Forward => {
                    self.fill_in(row, other);
                    self.seen[other] = Seen::Repeat;
                    if let Some(slot) = plain.find_mut(own, |&slot| slot == other) {
                        *slot = row;
                    }
                }
                Movement::Changed(change) => {
                    self.seen[row] = Seen::Repeat;
                    self.seen[other] = Seen::Changed;
                    self.changes
                        .insert(other, format!("twice in one feed: {change}"));
                }
            }
        }
    }

    /// Of two running totals of refunds on one payment the later one counts for both rows, whatever their order.
    fn latest_total(&mut self, left: usize, right: usize) {
        let rows = &mut self.operations;
        let key =
            |row: usize, rows: &Operations| (rows.refunded_at[row], rows.refund_total_minor[row]);
        let later = if key(left, rows) >= key(right, rows) {
            left
        } else {
            right
        };
        let (at, total) = key(later, rows);
        for row in [left, right] {
            rows.refunded_at[row] = at;
            rows.refund_total_minor[row] = total;
        }
    }

    /// What the new row leaves out and the other one has.
    fn fill_in(&mut self, row: usize, other: usize) {
        let rows = &mut self.operations;
        for column in [
            &mut rows.reference,
            &mut rows.payout_id,
            &mut rows.parent_id,
            &mut rows.object_id,
        ] {
            if column[row].is_empty() {
                column[row] = column[other];
            }
        }
        rows.fee_minor[row] = rows.fee_minor[row].or(rows.fee_minor[other]);
        rows.net_minor[row] = rows.net_minor[row].or(rows.net_minor[other]);
    }

    fn stored(&mut self, stored: &StoredOperations) {
        use std::hash::BuildHasher;
        let hasher = hashbrown::DefaultHashBuilder::default();
        let count = self.operations.len();
        let mut table: hashbrown::HashTable<usize> = hashbrown::HashTable::new();
        if !stored.rows.is_empty() {
            table.reserve(count, |_| 0);
            for row in 0..count {
                if self.seen[row] != Seen::Repeat {
                    let key = |row: usize| {
                        let row = self.operations.get(row);
                        hasher.hash_one((row.account, row.operation_id))
                    };
                    table.insert_unique(key(row), row, |&other| key(other));
                }
            }
        }
        for (at, known) in stored.rows.iter().enumerate() {
            let link = stored.linked_rule[at].map(|rule| {
                (
                    stored.rows.text.get(stored.linked_intent[at]).to_owned(),
                    rule,
                )
            });
            let hash = hasher.hash_one((known.account, known.operation_id));
            let found = table
                .find(hash, |&row| {
                    let row = self.operations.get(row);
                    row.operation_id == known.operation_id && row.account == known.account
                })
                .copied();
            let Some(row) = found else {
                self.operations.push(&Operation {
                    file: 0,
                    line: 0,
                    ..known
                });
                self.seen.push(Seen::Stored);
                self.linked.push(link);
                continue;
            };
            self.linked[row] = link;
            // What came late stays late, whatever is read of it now.
            if known.invalid.starts_with(LATE) && self.operations.get(row).invalid.is_empty() {
                let rows = &mut self.operations;
                rows.invalid[row] = rows.text.push(known.invalid);
            }
            let new = self.operations.get(row);
            let is_twice = self.seen[row] == Seen::Changed;
            match movement(&known, &new) {
                _ if is_twice => {}
                Movement::Same => {
                    self.seen[row] = Seen::Known;
                    self.complete(row, &known);
                }
                Movement::Behind => {
                    // The feed is older than what is known: what is known counts.
                    self.replace(row, &known);
                    self.seen[row] = Seen::Known;
                }
                Movement::Forward => {
                    self.complete(row, &known);
                    self.seen[row] = Seen::Moved;
                }
                Movement::Changed(change) => {
                    self.seen[row] = Seen::Changed;
                    self.changes.insert(row, change);
                }
            }
        }
    }

    /// The ids of rows that are new as far as what is stored tells.
    pub fn new_ids(&self) -> Vec<&str> {
        (0..self.operations.len())
            .filter(|&row| self.seen[row] == Seen::New)
            .map(|row| self.operations.text.get(self.operations.operation_id[row]))
            .collect()
    }

    /// Tells rows that were seen once and forgotten since from rows that are new. What occurred before `horizon` may have been
    /// forgotten: a row of that time which was never seen cannot be judged, since what it belongs to may be among that. Before
    /// `low` nothing was ever read.
    pub fn forgotten(&mut self, claimed: &[ClaimedOperation], low: Instant, horizon: Instant) {
        let claimed: HashMap<(&str, &str), &ClaimedOperation> = claimed
            .iter()
            .map(|it| ((it.operation_id.as_str(), it.account.as_str()), it))
            .collect();
        let mut late = Vec::new();
        for row in 0..self.operations.len() {
            let data = self.operations.get(row);
            let at = data.occurred_at;
            if self.seen[row] != Seen::New || is_derived(&data) {
                continue;
            }
            if let Some(known) = claimed.get(&(data.operation_id, data.account)) {
                self.linked[row].clone_from(&known.link);
                if at < horizon {
                    self.seen[row] = Seen::Forgotten;
                } else {
                    let change = format!(
                        "an operation of this id occurred before {horizon} and is no longer stored; time became {at}"
                    );
                    self.seen[row] = Seen::Changed;
                    self.changes.insert(row, change);
                }
            } else if low <= at && at < horizon && data.ignore.is_none() && data.invalid.is_empty()
            {
                late.push(row);
            }
        }
        self.refunds_of_forgotten(&claimed, &mut late);
        for row in late {
            let rows = &mut self.operations;
            let why = format!("{LATE} ({horizon}), and was not seen then");
            rows.invalid[row] = rows.text.push(&why);
        }
    }

    /// Of a payment that was forgotten, only the running total of its refunds can be told from the ids of those that were
    /// derived of it: a total that was reached before says nothing new, and of what a further one adds the amount is unknown.
    fn refunds_of_forgotten(
        &mut self,
        claimed: &HashMap<(&str, &str), &ClaimedOperation>,
        late: &mut Vec<usize>,
    ) {
        let forgotten: HashSet<(String, String)> = (0..self.operations.len())
            .filter(|&row| self.seen[row] == Seen::Forgotten)
            .map(|row| self.operations.get(row))
            .filter(|payment| payment.refund_total_minor.is_some())
            .map(|payment| (payment.account.to_owned(), payment.operation_id.to_owned()))
            .collect();
        // Of one payment they stand in the order of their totals.
        let mut last: BTreeMap<(String, String), usize> = BTreeMap::new();
        for row in 0..self.operations.len() {
            let refund = self.operations.get(row);
            let payment = (refund.account.to_owned(), refund.parent_id.to_owned());
            if self.seen[row] == Seen::New && is_derived(&refund) && forgotten.contains(&payment) {
                self.seen[row] = Seen::Repeat;
                last.insert(payment, row);
            }
        }
        for row in last.into_values() {
            let refund = self.operations.get(row);
            if !claimed.contains_key(&(refund.operation_id, refund.account)) {
                self.seen[row] = Seen::New;
                late.push(row);
            }
        }
    }

    /// Takes over what the feed leaves out.
    fn complete(&mut self, row: usize, known: &Operation<'_>) {
        let rows = &mut self.operations;
        for (column, text) in [
            (&mut rows.reference, known.reference),
            (&mut rows.payout_id, known.payout_id),
            (&mut rows.parent_id, known.parent_id),
            (&mut rows.object_id, known.object_id),
        ] {
            if column[row].is_empty() && !text.is_empty() {
                column[row] = rows.text.push(text);
            }
        }
        rows.fee_minor[row] = rows.fee_minor[row].or(known.fee_minor);
        if rows.net_minor[row].is_none() {
            rows.net_minor[row] = known.net_minor;
            rows.settle_currency[row] = known.settle_currency;
        }
    }

    fn replace(&mut self, row: usize, known: &Operation<'_>) {
        let rows = &mut self.operations;
        rows.status[row] = known.status;
        rows.is_final[row] = known.is_final;
        rows.fee_minor[row] = known.fee_minor;
        rows.net_minor[row] = known.net_minor;
        rows.settle_currency[row] = known.settle_currency;
        self.complete(row, known);
    }

    /// Refunds that exist only as a running total on the payment: the increase over what is known is one of its own.
    fn derived_refunds(&mut self, intents: &Intents) {
        let count = self.operations.len();
        let payments: Vec<usize> = (0..count)
            .filter(|&row| {
                self.operations.refund_total_minor[row].is_some()
                    && !matches!(self.seen[row], Seen::Repeat | Seen::Stored)
                    && self.operations.ignore[row].is_none()
            })
            .collect();
        if payments.is_empty() {
            return;
        }
        let mut known: HashMap<(String, String), i64> = HashMap::new();
        for row in self.operations.iter() {
            if is_derived(&row) {
                let sum = known
                    .entry((row.account.to_owned(), row.parent_id.to_owned()))
                    .or_default();
                *sum = sum.saturating_add(row.amount_minor.saturating_abs());
            }
        }
        let linked: HashSet<String> = self
            .linked
            .iter()
            .flatten()
            .map(|(intent, _)| intent.clone())
            .collect();
        let booked = Booked::of(intents, &linked);
        let mut derived: Vec<(usize, String, i64, i64)> = Vec::new();
        for row in payments {
            let payment = self.operations.get(row);
            let total = payment.refund_total_minor.unwrap_or(0).saturating_abs();
            let key = (payment.account.to_owned(), payment.operation_id.to_owned());
            let before = known.get(&key).copied().unwrap_or(0);
            if total < before {
                let change = format!(
                    "the refund total fell from {} to {} ({before} to {total} minor units)",
                    Money::new(before, payment.currency),
                    Money::new(total, payment.currency)
                );
                self.seen[row] = Seen::Changed;
                self.changes.entry(row).or_insert(change);
            }
            // What is booked locally is one refund each; what is left of the increase is another one.
            let mut running = before;
            for amount in booked.refunds(&payment) {
                if running + amount <= total {
                    running += amount;
                    derived.push((row, payment.operation_id.to_owned(), running, amount));
                }
            }
            if running < total {
                derived.push((row, payment.operation_id.to_owned(), total, total - running));
            }
        }
        for (row, parent, running, amount) in derived {
            let payment = self.operations.get(row);
            let account = payment.account.to_owned();
            let operation_id = format!("{}{running}", derived_prefix(&parent));
            let refund = Operation {
                operation_id: &operation_id,
                account: &account,
                id_kind: IdKind::Synthetic,
                kind: OperationKind::Refund,
                status: OperationStatus::Succeeded,
                amount_minor: -amount,
                currency: payment.currency,
                settle_currency: payment.currency,
                occurred_at: payment.refunded_at.unwrap_or(payment.occurred_at),
                parent_id: &parent,
                file: payment.file,
                line: payment.line,
                ..Operation::EMPTY
            };
            self.operations.push(&refund);
            self.seen.push(Seen::New);
            self.linked.push(None);
        }
    }
}

/// Refunds that the local side has booked and that no operation is linked with.
struct Booked<'a> {
    /// Payments by whatever names them.
    payments: HashMap<&'a str, Vec<&'a str>>,
    /// Refunds by their payment, earliest first.
    refunds: HashMap<&'a str, Vec<Intent<'a>>>,
}

impl<'a> Booked<'a> {
    fn of(intents: &'a Intents, linked: &HashSet<String>) -> Booked<'a> {
        let mut booked = Booked {
            payments: HashMap::new(),
            refunds: HashMap::new(),
        };
        for intent in intents.iter() {
            match intent.kind {
                IntentKind::Charge => {
                    for key in [
                        intent.processor_ref,
                        intent.reference,
                        intent.intent_id,
                        intent.idempotency_key,
                    ] {
                        if !key.is_empty() {
                            booked
                                .payments
                                .entry(key)
                                .or_default()
                                .push(intent.intent_id);
                        }
                    }
                }
                IntentKind::Refund
                    if intent.claims_money()
                        && intent.processor_ref.is_empty()
                        && intent.invalid.is_empty()
                        && !linked.contains(intent.intent_id) =>
                {
                    booked
                        .refunds
                        .entry(intent.parent_intent_id)
                        .or_default()
                        .push(intent);
                }
                IntentKind::Refund | IntentKind::Payout | IntentKind::Dispute => {}
            }
        }
        for refunds in booked.refunds.values_mut() {
            refunds.sort_by_key(|refund| (refund.created_at, refund.intent_id));
        }
        booked
    }

    /// The amounts booked under a payment, in its currency.
    fn refunds(&self, payment: &Operation<'_>) -> Vec<i64> {
        let mut named: Vec<&str> = [
            payment.operation_id,
            payment.object_id,
            payment.reference.trim(),
        ]
        .into_iter()
        .filter_map(|key| self.payments.get(key))
        .flatten()
        .copied()
        .collect();
        named.sort_unstable();
        named.dedup();
        named
            .into_iter()
            .filter_map(|payment| self.refunds.get(payment))
            .flatten()
            .filter(|refund| refund.currency == payment.currency)
            .map(|refund| refund.amount_minor)
            .collect()
    }
}

/// Whether a refund stands only in the running total of its payment.
fn is_derived(row: &Operation<'_>) -> bool {
    row.kind == OperationKind::Refund
        && row.id_kind == IdKind::Synthetic
        && row.operation_id.starts_with(&derived_prefix(row.parent_id))
}

fn derived_prefix(payment: &str) -> String {
    format!("{payment}:refunded:")
}

/// How new content stands to known content.
fn movement(known: &Operation<'_>, new: &Operation<'_>) -> Movement {
    if !known.invalid.is_empty() || !new.invalid.is_empty() {
        // Content that could not be used is replaced by whatever is read now.
        return if known.invalid == new.invalid && same_figures(known, new) {
            Movement::Same
        } else {
            Movement::Forward
        };
    }
    let money = |row: &Operation<'_>| Money::new(row.amount_minor, row.currency).to_string();
    if known.kind != new.kind {
        return Movement::Changed(format!("kind {} became {}", known.kind, new.kind));
    }
    if (known.amount_minor, known.currency) != (new.amount_minor, new.currency) {
        return Movement::Changed(format!("{} became {}", money(known), money(new)));
    }
    if known.occurred_at != new.occurred_at {
        return Movement::Changed(format!(
            "time {} became {}",
            known.occurred_at, new.occurred_at
        ));
    }
    for (name, before, after) in [
        ("parent_id", known.parent_id, new.parent_id),
        ("reference", known.reference.trim(), new.reference.trim()),
        ("payout_id", known.payout_id, new.payout_id),
    ] {
        if !before.is_empty() && !after.is_empty() && before != after {
            return Movement::Changed(format!("{name} {before} became {after}"));
        }
    }
    let is_open = |status| matches!(status, OperationStatus::Pending | OperationStatus::Unknown);
    if known.status != new.status {
        return if is_open(new.status) && !is_open(known.status) {
            Movement::Behind
        } else {
            Movement::Forward
        };
    }
    for (name, before, after) in [
        ("fee", known.fee_minor, new.fee_minor),
        ("net", known.net_minor, new.net_minor),
    ] {
        if let (Some(before), Some(after)) = (before, after)
            && (before != after || (name == "net" && known.settle_currency != new.settle_currency))
        {
            let show = |minor, row: &Operation<'_>| Money::new(minor, row.settle_currency);
            return Movement::Changed(format!(
                "{name} {} became {}",
                show(before, known),
                show(after, new)
            ));
        }
    }
    let fills = |before: &str, after: &str| before.is_empty() && !after.is_empty();
    let is_filled = fills(known.reference, new.reference)
        || fills(known.payout_id, new.payout_id)
        || fills(known.parent_id, new.parent_id)
        || (known.object_id != new.object_id && !new.object_id.is_empty())
        || (known.fee_minor.is_none() && new.fee_minor.is_some())
        || (known.net_minor.is_none() && new.net_minor.is_some())
        || known.ignore != new.ignore
        || known.is_final != new.is_final;
    if is_filled {
        Movement::Forward
    } else {
        Movement::Same
    }
}

fn same_figures(known: &Operation<'_>, new: &Operation<'_>) -> bool {
    (
        known.kind,
        known.status,
        known.amount_minor,
        known.currency,
        known.net_minor,
        known.reference,
    ) == (
        new.kind,
        new.status,
        new.amount_minor,
        new.currency,
        new.net_minor,
        new.reference,
    )
}
