//! The sums and lists of a report, each row once.
//!
//! An intent that no source owns may be judged in several slices: on hold at one source, paid at another. It is told and
//! counted with its strongest verdict.

use std::collections::{BTreeMap, HashSet};

use crate::model::run::{Tally, Total};
use crate::model::verdict::Disposition;
use crate::money::{Currency, Money};
use crate::report::{Accounting, IgnoredLine, MatchLine, PendingLine, ResolvedLine, Summary};

use super::told::Slice;

pub(super) fn totals(slices: &[Slice]) -> Vec<Total> {
    let mut sums: BTreeMap<Currency, Total> = BTreeMap::new();
    for total in slices.iter().flat_map(|slice| &slice.outcome.totals) {
        let sum = sums
            .entry(total.currency)
            .or_insert(Total::zero(total.currency));
        sum.gross += total.gross;
        sum.fees += total.fees;
        sum.net += total.net;
        sum.matched += total.matched;
        sum.unreconciled += total.unreconciled;
        sum.at_risk += total.at_risk;
    }
    sums.into_values().collect()
}

pub(super) fn accounting(slices: &[Slice], told_by_others: &[HashSet<usize>]) -> Accounting {
    let mut all = Accounting::default();
    for (slice, elsewhere) in slices.iter().zip(told_by_others) {
        add(&mut all.operations, slice.outcome.operation_tally);
        add(&mut all.intents, slice.outcome.intent_tally);
        for &row in elsewhere {
            all.intents.read -= 1;
            match slice.outcome.intents[row] {
                Disposition::OutOfScope => {}
                Disposition::Matched => all.intents.matched -= 1,
                Disposition::Pending => all.intents.pending -= 1,
                Disposition::Ignored(_) => all.intents.ignored -= 1,
                Disposition::Unmatched => all.intents.unmatched -= 1,
            }
        }
    }
    all
}

fn add(sum: &mut Tally, tally: Tally) {
    sum.read += tally.read;
    sum.matched += tally.matched;
    sum.pending += tally.pending;
    sum.ignored += tally.ignored;
    sum.unmatched += tally.unmatched;
}

pub(super) fn summary(
    slices: &[Slice],
    accounting: &Accounting,
    told_by_others: &[HashSet<usize>],
) -> Summary {
    let mut summary = Summary {
        operations: accounting.operations.read,
        intents: accounting.intents.read,
        matched: accounting.intents.matched,
        ..Summary::default()
    };
    for (slice, elsewhere) in slices.iter().zip(told_by_others) {
        summary.pending += pending(slice, elsewhere).count() as u64;
        summary.ignored += ignored(slice, elsewhere).count() as u64;
    }
    summary
}

pub(super) fn resolved(slice: &Slice) -> Vec<ResolvedLine> {
    slice
        .gathered
        .open
        .iter()
        .filter(|item| slice.outcome.resolved.contains(&item.id))
        .map(|item| ResolvedLine {
            id: item.id.clone(),
            class: item.class,
            intent_id: item.intent_id.clone(),
            operation_id: item.operation_id.clone(),
        })
        .collect()
}

pub(super) fn matches(slice: &Slice) -> Vec<MatchLine> {
    slice
        .outcome
        .matches
        .iter()
        .map(|pair| {
            let operation = slice.gathered.recognised.operations.get(pair.operation);
            MatchLine {
                intent_id: slice
                    .gathered
                    .merged
                    .intents
                    .get(pair.intent)
                    .intent_id
                    .to_owned(),
                operation_id: operation.operation_id.to_owned(),
                account: operation.account.to_owned(),
                rule: pair.rule,
                delta: (pair.delta_minor != 0)
                    .then(|| Money::new(pair.delta_minor, operation.currency)),
            }
        })
        .collect()
}

pub(super) fn pending<'s>(
    slice: &'s Slice,
    elsewhere: &'s HashSet<usize>,
) -> impl Iterator<Item = PendingLine> + 's {
    let (operations, intents) = (
        &slice.gathered.recognised.operations,
        &slice.gathered.merged.intents,
    );
    slice.outcome.pending.iter().filter_map(move |item| {
        let intent = item.intent.filter(|row| !elsewhere.contains(row));
        (intent.is_some() || item.operation.is_some()).then(|| PendingLine {
            intent_id: intent
                .map_or("", |row| intents.get(row).intent_id)
                .to_owned(),
            operation_id: item
                .operation
                .map_or("", |row| operations.get(row).operation_id)
                .to_owned(),
            due_at: item.due_at,
            why: item.why.to_owned(),
        })
    })
}

pub(super) fn ignored<'s>(
    slice: &'s Slice,
    elsewhere: &'s HashSet<usize>,
) -> impl Iterator<Item = IgnoredLine> + 's {
    let (operations, intents) = (
        &slice.gathered.recognised.operations,
        &slice.gathered.merged.intents,
    );
    let reason = |verdict: &Disposition| match verdict {
        Disposition::Ignored(reason) => Some(*reason),
        _ => None,
    };
    let money = |minor, currency| (currency != Currency::NONE).then(|| Money::new(minor, currency));
    let of_operations = slice.outcome.operations.iter().enumerate();
    let of_operations = of_operations.filter_map(move |(row, verdict)| {
        let data = operations.get(row);
        reason(verdict).map(|reason| IgnoredLine {
            intent_id: String::new(),
            operation_id: data.operation_id.to_owned(),
            reason,
            money: money(data.amount_minor, data.currency),
        })
    });
    let of_intents = slice.outcome.intents.iter().enumerate();
    let of_intents = of_intents.filter_map(move |(row, verdict)| {
        let data = intents.get(row);
        reason(verdict)
            .filter(|_| !elsewhere.contains(&row))
            .map(|reason| IgnoredLine {
                intent_id: data.intent_id.to_owned(),
                operation_id: String::new(),
                reason,
                money: money(data.amount_minor, data.currency),
            })
    });
    of_operations.chain(of_intents)
}
