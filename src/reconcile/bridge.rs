//! Why do the two sides differ? Every row in scope that moved or claims money belongs to one cause.
//!
//! Amounts are those that the customer saw, before the processor's fees. Our rows count as they stood before this run's
//! repairs: what a repair brings in order is explained by the class of its break.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::{Outcome, Snapshot};
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
    let mut partner_of_operation: HashMap<usize, usize> = HashMap::new();
    let mut partner_of_intent: HashMap<usize, usize> = HashMap::new();
    for pair in &outcome.matches {
        partner_of_operation.insert(pair.operation, pair.intent);
        partner_of_intent.insert(pair.intent, pair.operation);
    }
    // A row that no break names follows the row it is linked with, or hangs on.
    let mut intent_of: HashMap<usize, usize> = HashMap::new();
    for (row, link) in snapshot.links.iter().enumerate() {
        if let Some(link) = link {
            intent_of.insert(row, link.intent);
        }
    }
    for link in &outcome.links {
        intent_of.insert(link.operation, link.intent);
    }
    let mut of_linked: HashMap<usize, &'static str> = HashMap::new();
    for (&operation, &intent) in &intent_of {
        let row = operations.get(operation);
        if let Some(class) = of_operation.get(&(row.account, row.operation_id)) {
            let least = of_linked.entry(intent).or_insert(class);
            *least = (*least).min(class);
        }
    }
    let is_told = |row: usize| {
        outcome.intents[row] != Disposition::OutOfScope && !told_elsewhere.contains(&row)
    };
    let mut bridges: BTreeMap<Currency, Bridge> = BTreeMap::new();
    for row in 0..operations.len() {
        let verdict = outcome.operations[row];
        let data = operations.get(row);
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
        let broken = of_operation.get(&(data.account, data.operation_id));
        let code = match (broken, verdict) {
            (Some(class), _) => Some(*class),
            (None, Disposition::Matched) => {
                let partner = partner_of_operation.get(&row);
                Some(match partner {
                    Some(&intent) if is_told(intent) => MATCHED,
                    _ => ELSEWHERE,
                })
            }
            (None, Disposition::Unmatched) => intent_of
                .get(&row)
                .and_then(|&intent| named.get(intents.get(intent).intent_id))
                .or_else(|| of_operation.get(&(data.account, data.parent_id)))
                .copied()
                .or(Some(UNMATCHED)),
            (None, other) => cause(other),
        };
        if let Some(code) = code {
            bridge.explain(code, Side::Processor, amount);
        }
    }
    for row in (0..intents.len()).filter(|&row| is_told(row)) {
        let data = intents.get(row);
        if data.currency == Currency::NONE || !data.claims_money() {
            continue;
        }
        let verdict = outcome.intents[row];
        let amount = i128::from(data.amount_minor) * i128::from(data.kind.direction());
        let bridge = bridges.entry(data.currency).or_default();
        bridge.local += amount;
        let partner = partner_of_intent.get(&row);
        let of_partner = partner.and_then(|&operation| {
            let other = operations.get(operation);
            of_operation.get(&(other.account, other.operation_id))
        });
        let broken = of_intent.get(data.intent_id).or(of_partner).or_else(|| {
            of_linked
                .get(&row)
                .filter(|_| verdict != Disposition::Matched)
        });
        let code = match (broken, verdict) {
            (Some(class), _) => Some(*class),
            (None, Disposition::Matched) => Some(match partner {
                Some(&operation) if outcome.operations[operation] != Disposition::OutOfScope => {
                    MATCHED
                }
                _ => ELSEWHERE,
            }),
            // One of several rows that claim one operation: the break names the first of them.
            (None, Disposition::Unmatched) => named
                .get(data.intent_id)
                .or_else(|| by_ref.get(data.processor_ref))
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
