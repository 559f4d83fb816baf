//! Does everything add up? Counts and sums on the way in against those on the way out, and the totals per currency.

use std::collections::BTreeMap;

use super::component::Scope;
use super::{Outcome, Seen, Snapshot};
use crate::model::breaks::BreakState;
use crate::model::operation::{Family, OperationKind};
use crate::model::run::{Tally, Total};
use crate::model::verdict::{Disposition, IgnoreReason};
use crate::money::Currency;

/// Fills in tallies, totals and violations.
pub(crate) fn tally(snapshot: &Snapshot<'_>, scope: &Scope, outcome: &mut Outcome) {
    let operations = snapshot.operations;
    let mut in_sums: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut out_sums: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut totals: BTreeMap<Currency, Total> = BTreeMap::new();
    for row in 0..operations.len() {
        let verdict = outcome.operations[row];
        if scope.operations[row] || verdict != Disposition::OutOfScope {
            outcome.operation_tally.read += 1;
            *in_sums.entry(operations.currency[row]).or_default() +=
                i128::from(operations.amount_minor[row]);
            if snapshot.seen[row] == Seen::Repeat {
                outcome.violations.push(format!(
                    "a repeated row was counted: {}",
                    operations.get(row).operation_id
                ));
            }
        }
        if count(verdict, &mut outcome.operation_tally) {
            *out_sums.entry(operations.currency[row]).or_default() +=
                i128::from(operations.amount_minor[row]);
            add(snapshot, row, verdict, &mut totals);
        }
    }
    let mut in_intents: BTreeMap<Currency, i128> = BTreeMap::new();
    let mut out_intents: BTreeMap<Currency, i128> = BTreeMap::new();
    for row in 0..snapshot.intents.len() {
        let (amount, currency) = (
            i128::from(snapshot.intents.amount_minor[row]),
            snapshot.intents.currency[row],
        );
        if scope.intents[row] || outcome.intents[row] != Disposition::OutOfScope {
            outcome.intent_tally.read += 1;
            *in_intents.entry(currency).or_default() += amount;
        }
        if count(outcome.intents[row], &mut outcome.intent_tally) {
            *out_intents.entry(currency).or_default() += amount;
        }
    }
    for (side, tally, sums_in, sums_out) in [
        ("operations", outcome.operation_tally, &in_sums, &out_sums),
        ("intents", outcome.intent_tally, &in_intents, &out_intents),
    ] {
        if !tally.adds_up() {
            outcome.violations.push(format!(
                "{side}: {} read, {} matched + {} pending + {} ignored + {} unmatched",
                tally.read, tally.matched, tally.pending, tally.ignored, tally.unmatched
            ));
        }
        if sums_in != sums_out {
            outcome
                .violations
                .push(format!("{side}: the sums per currency in and out differ"));
        }
    }
    for finding in &outcome.findings {
        if let (BreakState::Open, Some(money)) = (finding.found.state, finding.found.at_risk()) {
            let total = totals
                .entry(money.currency)
                .or_insert(Total::zero(money.currency));
            total.at_risk += i128::from(money.minor).abs();
        }
    }
    for pair in &outcome.matches {
        if pair.delta_minor != 0 {
            let currency = operations.currency[pair.operation];
            *outcome.deltas.entry(currency).or_default() += i128::from(pair.delta_minor);
        }
    }
    outcome.totals = totals
        .into_values()
        .filter(|total| total.currency != Currency::NONE)
        .collect();
}

fn count(verdict: Disposition, tally: &mut Tally) -> bool {
    match verdict {
        Disposition::OutOfScope => return false,
        Disposition::Matched => tally.matched += 1,
        Disposition::Pending => tally.pending += 1,
        Disposition::Ignored(_) => tally.ignored += 1,
        Disposition::Unmatched => tally.unmatched += 1,
    }
    true
}

fn add(
    snapshot: &Snapshot<'_>,
    row: usize,
    verdict: Disposition,
    totals: &mut BTreeMap<Currency, Total>,
) {
    if matches!(verdict, Disposition::Ignored(reason) if reason.is_out_of_totals()) {
        return;
    }
    let data = snapshot.operations.get(row);
    let is_readable = data.invalid.is_empty();
    let moved = data.moved_money();
    let is_gross = is_readable
        && moved
        && data.kind.family() == Some(Family::Charge)
        && data.kind != OperationKind::Void;
    let seen = totals
        .entry(data.currency)
        .or_insert(Total::zero(data.currency));
    if is_gross {
        let amount = i128::from(data.amount_minor);
        seen.gross += amount;
        match verdict {
            Disposition::Matched => seen.matched += amount,
            Disposition::Ignored(IgnoreReason::ReturnedInFull) => {}
            _ => seen.unreconciled += amount,
        }
    }
    if data.kind == OperationKind::Fee && moved {
        seen.fees -= i128::from(data.amount_minor);
    }
    let settled = totals
        .entry(data.settle_currency)
        .or_insert(Total::zero(data.settle_currency));
    settled.fees += i128::from(data.fee_minor.unwrap_or(0));
    if data.kind.family() != Some(Family::Payout) {
        settled.net += data.balance_minor();
    }
}
