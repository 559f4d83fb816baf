//! Why do the two sides differ? Every row in scope that moved or claims money belongs to one cause.
//!
//! Amounts are those that the customer saw, before the processor's fees. Our rows count as they stood before this run's
//! repairs: what a repair brings in order is explained by the class of its break.

use std::collections::{BTreeMap, HashSet};

use hashbrown::HashMap;

use super::{Outcome, Snapshot};
use crate::model::intent::Intent;
use crate::model::operation::{Operation, Operations};
use crate::model::statement::{Bridge, Side};
use crate::model::verdict::{Disposition, IgnoreReason};
use crate::money::Currency;

/// The bridge of one outcome, per currency. Intents in `told_elsewhere` are left out: another part of the run tells them.
pub fn bridge<S: std::hash::BuildHasher>(
    snapshot: &Snapshot<'_>,
    outcome: &Outcome,
    told_elsewhere: &HashSet<usize, S>,
) -> BTreeMap<Currency, Bridge> {
    let (operations, intents) = (snapshot.operations, snapshot.intents);
    let mut of_operation: HashMap<(&str, &str), &'static str> = HashMap::new();
    let mut of_intent: HashMap<&str, &'static str> = HashMap::new();
    let mut by_ref: HashMap<&str, &'static str> = HashMap::new();
    let mut named: HashMap<&str, &'static str> = HashMap::new();
    for finding in &outcome.findings {
        let found = &finding.found;
        let class = found.class.as_str();
        if !found.operation_id.is_empty() {
            let also = finding.also.iter().map(String::as_str);
            for id in std::iter::once(found.operation_id.as_str()).chain(also) {
                of_operation
                    .entry((found.account.as_str(), id))
                    .or_insert(class);
                by_ref.entry(id).or_insert(class);
            }
        }
        named.entry(found.intent_id.as_str()).or_insert(class);
        // A break that names an intent only as the parent of its operation says nothing about that row's money.
        if found.class.is_about_intent() || found.operation_id.is_empty() {
            of_intent.entry(found.intent_id.as_str()).or_insert(class);
        }
    }
    // Rows beside rows, by index: a batch may hold millions.
    let mut partner_of_operation = vec![NOBODY; operations.len()];
    let mut partner_of_intent = vec![NOBODY; intents.len()];
    for pair in &outcome.matches {
        partner_of_operation[pair.operation] = index(pair.intent);
        partner_of_intent[pair.intent] = index(pair.operation);
    }
    // A row that no break names follows the row it is linked with, or hangs on.
    let mut intent_of = vec![NOBODY; operations.len()];
    for (row, link) in snapshot.links.iter().enumerate() {
        if let Some(link) = link {
            intent_of[row] = index(link.intent);
        }
    }
    for link in &outcome.links {
        intent_of[link.operation] = index(link.intent);
    }
    // Each row's own class, looked up once: rows that answer each other ask for it again.
    let mut class_of: Vec<Option<&'static str>> = vec![None; operations.len()];
    if !of_operation.is_empty() {
        for (row, class) in class_of.iter_mut().enumerate() {
            *class = of_operation.get(&key_of(operations, row)).copied();
        }
    }
    let mut of_linked: HashMap<usize, &'static str> = HashMap::new();
    for (&class, &intent) in class_of.iter().zip(&intent_of) {
        let (Some(class), Some(intent)) = (class, row_of(intent)) else {
            continue;
        };
        if outcome.intents[intent] == Disposition::Matched {
            continue;
        }
        let least = of_linked.entry(intent).or_insert(class);
        *least = (*least).min(class);
    }
    let is_told = |row: usize| {
        outcome.intents[row] != Disposition::OutOfScope && !told_elsewhere.contains(&row)
    };
    let mut bridges: BTreeMap<Currency, Bridge> = BTreeMap::new();
    for row in 0..operations.len() {
        let verdict = outcome.operations[row];
        let data = money_of(operations, row);
        let is_out = matches!(verdict, Disposition::Ignored(reason) if reason.is_out_of_totals());
        if verdict == Disposition::OutOfScope
            || is_out
            || data.currency == Currency::NONE
            || !data.moved_money()
        {
            continue;
        }
        let amount = i128::from(data.amount_minor);
        let bridge = bridges.entry(data.currency).or_default();
        bridge.processor += amount;
        let code = match (class_of[row], verdict) {
            (Some(class), _) => Some(class),
            (None, Disposition::Matched) => Some(match row_of(partner_of_operation[row]) {
                Some(intent) if is_told(intent) => MATCHED,
                _ => ELSEWHERE,
            }),
            (None, Disposition::Unmatched) => row_of(intent_of[row])
                .and_then(|intent| named.get(intents.get(intent).intent_id))
                .or_else(|| {
                    let (account, _) = key_of(operations, row);
                    of_operation.get(&(account, operations.text.get(operations.parent_id[row])))
                })
                .copied()
                .or(Some(UNMATCHED)),
            (None, other) => cause(other),
        };
        if let Some(code) = code {
            bridge.explain(code, Side::Processor, amount);
        }
    }
    for row in (0..intents.len()).filter(|&row| is_told(row)) {
        let data = Intent {
            kind: intents.kind[row],
            status: intents.status[row],
            amount_minor: intents.amount_minor[row],
            currency: intents.currency[row],
            ..Intent::EMPTY
        };
        if data.currency == Currency::NONE || !data.claims_money() {
            continue;
        }
        let verdict = outcome.intents[row];
        let amount = i128::from(data.amount_minor) * i128::from(data.kind.direction());
        let bridge = bridges.entry(data.currency).or_default();
        bridge.local += amount;
        let partner = row_of(partner_of_intent[row]);
        let intent_id = intents.text.get(intents.intent_id[row]);
        let of_partner = partner.and_then(|operation| class_of[operation]);
        let broken = of_intent
            .get(intent_id)
            .copied()
            .or(of_partner)
            .or_else(|| {
                of_linked
                    .get(&row)
                    .filter(|_| verdict != Disposition::Matched)
                    .copied()
            });
        let code = match (broken, verdict) {
            (Some(class), _) => Some(class),
            (None, Disposition::Matched) => Some(match partner {
                Some(operation) if outcome.operations[operation] != Disposition::OutOfScope => {
                    MATCHED
                }
                _ => ELSEWHERE,
            }),
            // One of several rows that claim one operation: the break names the first of them.
            (None, Disposition::Unmatched) => named
                .get(intent_id)
                .or_else(|| by_ref.get(intents.text.get(intents.processor_ref[row])))
                .copied()
                .or(Some(UNMATCHED)),
            (None, other) => cause(other),
        };
        if let Some(code) = code {
            bridge.explain(code, Side::Local, amount);
        }
    }
    bridges
}

/// What tells an operation from others: account and id.
fn key_of(operations: &Operations, row: usize) -> (&str, &str) {
    let text = &operations.text;
    (
        text.get(operations.account[row]),
        text.get(operations.operation_id[row]),
    )
}

/// An operation with its money alone: texts are looked up only where somebody asks for them.
fn money_of(operations: &Operations, row: usize) -> Operation<'static> {
    Operation {
        kind: operations.kind[row],
        status: operations.status[row],
        amount_minor: operations.amount_minor[row],
        currency: operations.currency[row],
        fee_minor: operations.fee_minor[row],
        net_minor: operations.net_minor[row],
        settle_currency: operations.settle_currency[row],
        ..Operation::EMPTY
    }
}

/// No row.
const NOBODY: u32 = u32::MAX;

fn index(row: usize) -> u32 {
    u32::try_from(row).expect("fewer than four billion rows in one batch")
}

fn row_of(index: u32) -> Option<usize> {
    (index != NOBODY).then_some(index as usize)
}

const MATCHED: &str = "matched";
/// Beside the rows that a break names.
const UNMATCHED: &str = "unmatched";
const ELSEWHERE: &str = "matched_elsewhere";

fn cause(verdict: Disposition) -> Option<&'static str> {
    match verdict {
        Disposition::OutOfScope | Disposition::Matched | Disposition::Unmatched => None,
        Disposition::Pending => Some("pending"),
        Disposition::Ignored(reason) => Some(IgnoreReason::as_str(reason)),
    }
}
