//! Payouts: is a payout the sum of its parts?
//!
//! Everything listed under a payout minus what was paid must be nothing, in the currency that settles. No part is left
//! out for its name, status or class, and the remainder is named.

use hashbrown::{HashMap, HashSet};

use super::keys::{Key, Keys};
use super::rules::{Frame, Rules};
use super::{Seen, Snapshot};
use crate::model::operation::OperationKind;
use crate::money::Currency;

#[derive(Clone, Copy, Default)]
struct Sum {
    parts: i128,
    part_count: u64,
    paid: i128,
    /// The payout row that answers for the payout: the first by time and id.
    payout: Option<usize>,
}

/// The sums of every payout in a snapshot.
pub(crate) struct Sums {
    of: HashMap<(Key, Currency), Sum>,
    /// Payouts with parts, in whatever currency.
    listed: HashSet<Key>,
}

/// What a payout's sum says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tied {
    /// Parts and payment cancel out, or there are no parts and so no verdict.
    Out,
    /// Its parts may lie before what was read.
    Unverified,
    /// Parts minus paid, in minor units of the payout's settling currency.
    Residual(i128),
}

pub(crate) fn sums(snapshot: &Snapshot<'_>, keys: &Keys<'_>) -> Sums {
    let operations = snapshot.operations;
    let mut of: HashMap<(Key, Currency), Sum> = HashMap::new();
    let mut listed: HashSet<Key> = HashSet::new();
    for row in 0..operations.len() {
        let kind = operations.kind[row];
        let key = match (keys.operations[row].payout, kind) {
            (0, OperationKind::Payout) => keys.operations[row].id,
            (key, _) => key,
        };
        if key == 0 || snapshot.seen[row] == Seen::Repeat || kind == OperationKind::PayoutFailure {
            continue;
        }
        let sum = of
            .entry((key, operations.settle_currency[row]))
            .or_default();
        let data = operations.get(row);
        if kind == OperationKind::Payout {
            if data.moved_money() {
                sum.paid += data.balance_minor();
                let first = sum.payout.is_none_or(|other| {
                    let other = operations.get(other);
                    (data.occurred_at, data.operation_id) < (other.occurred_at, other.operation_id)
                });
                if first {
                    sum.payout = Some(row);
                }
            }
        } else {
            sum.parts += data.balance_minor();
            sum.part_count += 1;
            listed.insert(key);
        }
    }
    Sums { of, listed }
}

impl Sums {
    /// The verdict about a payout row.
    pub(crate) fn tied(
        &self,
        snapshot: &Snapshot<'_>,
        keys: &Keys<'_>,
        rules: &Rules,
        frame: &Frame,
        row: usize,
    ) -> Tied {
        let own = keys.operations[row];
        let key = if own.payout == 0 { own.id } else { own.payout };
        let currency = snapshot.operations.settle_currency[row];
        let Some(sum) = self.of.get(&(key, currency)) else {
            return Tied::Out;
        };
        if sum.payout != Some(row) {
            return Tied::Out;
        }
        if sum.part_count == 0 {
            // Parts that settle in another currency than the payout are no sum of anything.
            return if self.listed.contains(&key) {
                Tied::Unverified
            } else {
                Tied::Out
            };
        }
        let residual = sum.parts + sum.paid;
        let occurred_at = snapshot.operations.occurred_at[row];
        if residual == 0 {
            Tied::Out
        } else if occurred_at.minus(rules.payout_span) < frame.at_hand_from() {
            Tied::Unverified
        } else {
            Tied::Residual(residual)
        }
    }
}
