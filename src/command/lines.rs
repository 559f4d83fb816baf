//! The sums and lists of a report, each row once.
//!
//! An intent that no source owns may be judged in several slices: on hold at one source, paid at another. It is told and
//! counted with its strongest verdict.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::model::breaks::{Break, BreakState};
use crate::model::run::{Tally, Total};
use crate::model::statement::{Bridge, DayLine, Lateness, OpenItems, Statement};
use crate::model::verdict::Disposition;
use crate::money::{Currency, Money};
use crate::reconcile::{Seen, bridge};
use crate::report::{
    Accounting, BreakLine, IgnoredLine, MatchLine, PendingLine, ResolvedLine, Summary,
};
use crate::time::{Instant, Zone, day_range};

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
            money: item.at_risk(),
        })
        .collect()
}

/// The statement of each currency: what was open and is, and why the two sides differ.
pub(super) fn statement(
    slices: &[Slice],
    told_by_others: &[HashSet<usize>],
    breaks: &[BreakLine],
) -> Vec<Statement> {
    let mut bridges: BTreeMap<Currency, Bridge> = BTreeMap::new();
    for (slice, elsewhere) in slices.iter().zip(told_by_others) {
        let snapshot = slice.gathered.snapshot();
        for (currency, part) in bridge::bridge(&snapshot, &slice.outcome, elsewhere) {
            bridges.entry(currency).or_default().add(&part);
        }
    }
    let mut items = open_items(slices, breaks);
    let currencies: BTreeSet<Currency> = bridges.keys().chain(items.keys()).copied().collect();
    currencies
        .into_iter()
        .map(|currency| Statement {
            currency,
            items: items.remove(&currency).unwrap_or_default(),
            bridge: bridges.remove(&currency).unwrap_or_default(),
        })
        .collect()
}

/// What was open before the run against what is open after it. `closing` is counted from the breaks that are told, all
/// else from what the store held, so that one proves the other.
fn open_items(slices: &[Slice], breaks: &[BreakLine]) -> BTreeMap<Currency, OpenItems> {
    let is_open = |item: &&Break| matches!(item.state, BreakState::Open | BreakState::Acknowledged);
    let before: BTreeMap<&str, &Break> = slices
        .iter()
        .flat_map(|slice| &slice.gathered.open)
        .filter(is_open)
        .map(|item| (item.id.as_str(), item))
        .collect();
    let resolved: HashSet<&str> = slices
        .iter()
        .flat_map(|slice| &slice.outcome.resolved)
        .map(String::as_str)
        .collect();
    let after: BTreeMap<&str, &BreakLine> = breaks
        .iter()
        .map(|line| (line.item.id.as_str(), line))
        .collect();
    let mut all: BTreeMap<Currency, OpenItems> = BTreeMap::new();
    let mut add = |item: &Break, sign: i128, part: fn(&mut OpenItems) -> &mut i128| {
        if let Some(money) = item.at_risk() {
            *part(all.entry(money.currency).or_default()) += sign * i128::from(money.minor).abs();
        }
    };
    for (id, item) in &before {
        add(item, 1, |items| &mut items.opening);
        match after.get(id) {
            None if resolved.contains(id) => add(item, 1, |items| &mut items.cleared),
            // It is neither told nor over: the residual shows it.
            None => {}
            Some(line) => {
                add(&line.item, 1, |items| &mut items.changed);
                add(item, -1, |items| &mut items.changed);
                if !line.stays() {
                    add(&line.item, 1, |items| &mut items.cleared);
                }
            }
        }
    }
    for line in breaks {
        let is_known = before.contains_key(line.item.id.as_str());
        // What a person closed, and the evidence is the same, is no open item.
        if !is_known && line.item.state != BreakState::Closed {
            add(&line.item, 1, |items| &mut items.new);
            if !line.stays() {
                add(&line.item, 1, |items| &mut items.cleared);
            }
        }
        if line.stays() {
            add(&line.item, 1, |items| &mut items.closing);
            if line.item.state == BreakState::Acknowledged {
                add(&line.item, 1, |items| &mut items.acknowledged);
            }
        }
    }
    all
}

/// The processor's rows in scope by civil day.
pub(super) fn days(slices: &[Slice], zone: &Zone) -> Vec<DayLine> {
    let mut days: BTreeMap<Instant, (Instant, DayLine)> = BTreeMap::new();
    // Rows come by time, mostly: the last day is asked first.
    let mut last = (Instant::MAX, Instant::MIN);
    for slice in slices {
        let times = &slice.gathered.recognised.operations.occurred_at;
        for (row, verdict) in slice.outcome.operations.iter().enumerate() {
            if *verdict == Disposition::OutOfScope {
                continue;
            }
            let at = times[row];
            let known = if last.0 <= at && at < last.1 {
                Some(last)
            } else {
                let before = days.range(..=at).next_back();
                before
                    .map(|(start, (end, _))| (*start, *end))
                    .filter(|(_, end)| at < *end)
            };
            let start = match known {
                Some((start, end)) => {
                    last = (start, end);
                    start
                }
                None => {
                    let Some(date) = zone.date_of(at) else {
                        continue;
                    };
                    let Some((start, end)) = day_range(date, zone) else {
                        continue;
                    };
                    let line = DayLine {
                        day: date.to_string(),
                        matched: 0,
                        pending: 0,
                        ignored: 0,
                        unmatched: 0,
                    };
                    days.insert(start, (end, line));
                    start
                }
            };
            let Some((_, line)) = days.get_mut(&start) else {
                continue;
            };
            match verdict {
                Disposition::OutOfScope => {}
                Disposition::Matched => line.matched += 1,
                Disposition::Pending => line.pending += 1,
                Disposition::Ignored(_) => line.ignored += 1,
                Disposition::Unmatched => line.unmatched += 1,
            }
        }
    }
    days.into_values().map(|(_, line)| line).collect()
}

/// How late the rows of a source arrived; `None` where no run read it before.
pub(super) fn lateness(slice: &Slice) -> Option<Lateness> {
    let (mark, spans) = (slice.watermark_before?, slice.spans_of_next_run()?);
    let mut lateness = Lateness {
        late: vec![0; Lateness::BOUNDS.len() + 1],
        lag_seconds: spans.0,
        lookback_seconds: spans.1,
        ..Lateness::default()
    };
    let seen = &slice.gathered.recognised.seen;
    let times = &slice.gathered.recognised.operations.occurred_at;
    for row in (0..seen.len()).filter(|&row| seen[row] == Seen::New) {
        if slice.outcome.operations[row] == Disposition::OutOfScope {
            continue;
        }
        lateness.arrived += 1;
        let seconds = mark.seconds_since(times[row]);
        if seconds > 0 {
            lateness.count(seconds);
        }
    }
    Some(lateness)
}

pub(super) fn matches(slice: &Slice) -> Vec<MatchLine> {
    let settled = slice.conversions().settled();
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
                settled: settled.get(&pair.operation).copied(),
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
    let folded_into = slice.conversions().folded_into();
    let of_operations = slice.outcome.operations.iter().enumerate();
    let of_operations = of_operations.filter_map(move |(row, verdict)| {
        let data = operations.get(row);
        reason(verdict).map(|reason| IgnoredLine {
            intent_id: String::new(),
            operation_id: data.operation_id.to_owned(),
            reason,
            money: money(data.amount_minor, data.currency),
            folded_into: folded_into.get(&row).map_or_else(String::new, |&into| {
                operations.get(into).operation_id.to_owned()
            }),
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
                folded_into: String::new(),
            })
    });
    of_operations.chain(of_intents)
}
