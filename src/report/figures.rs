//! Figures that several forms draw from the lists of a report: what changed since the last run, how old what is open is,
//! and where the money at risk lies. Counted here, so that no two forms differ.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use super::{BreakLine, RunReport};
use crate::model::breaks::{BreakClass, BreakState, Severity};
use crate::money::Currency;

const DAY: i64 = 86_400;

/// What is different from the last run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changes {
    /// Seen first in this run, whether a repair closed them or not.
    pub new: usize,
    /// Seen before, and not ended.
    pub persisting: usize,
    /// Seen before, and ended: in order again, or closed by a repair of this run.
    pub resolved: usize,
}

/// New, persisting and resolved since the last run.
pub fn changes(report: &RunReport) -> Changes {
    let known = report.breaks.iter().filter(|line| !line.is_new);
    let persisting = known.clone().filter(|line| line.stays()).count();
    let repaired = known.count() - persisting;
    Changes {
        new: report.breaks.iter().filter(|line| line.is_new).count(),
        persisting,
        resolved: report.resolved.len() + repaired,
    }
}

/// Breaks that a person has to look at now: open, and neither acknowledged nor ended.
pub fn open(report: &RunReport) -> impl Iterator<Item = &BreakLine> {
    report
        .breaks
        .iter()
        .filter(|line| line.stays() && line.item.state == BreakState::Open)
}

/// Every break that is not over, worst first: by severity, then by amount at risk within a currency, then by age, then as
/// listed. Amounts of different currencies have no order, so the currency stands before the amount.
pub fn ordered(lines: &mut [&BreakLine]) {
    lines.sort_by_cached_key(|line| (Reverse(line.item.class.severity()), weight(line)));
}

/// The order of breaks of one class: currency, amount, age.
pub fn weight(line: &BreakLine) -> (bool, Option<Currency>, Reverse<u64>, Reverse<i64>) {
    let money = line.item.at_risk();
    (
        money.is_none(),
        money.map(|money| money.currency),
        Reverse(money.map_or(0, |money| money.minor.unsigned_abs())),
        Reverse(line.age_seconds),
    )
}

/// How old the open breaks are: the label of each span, and how many.
pub fn ageing(report: &RunReport) -> Vec<(&'static str, u64)> {
    const BOUNDS: [(&str, i64); 5] = [
        ("under 1 day", DAY),
        ("1 to 3 days", 3 * DAY),
        ("3 to 7 days", 7 * DAY),
        ("7 to 30 days", 30 * DAY),
        ("30 days and more", i64::MAX),
    ];
    let mut counts = BOUNDS.map(|(label, _)| (label, 0));
    for line in report.breaks.iter().filter(|line| line.stays()) {
        let at = BOUNDS
            .iter()
            .position(|(_, bound)| line.age_seconds < *bound)
            .unwrap_or(BOUNDS.len() - 1);
        counts[at].1 += 1;
    }
    counts.to_vec()
}

/// Money at risk by currency and class, the largest class first.
pub fn at_risk(report: &RunReport) -> BTreeMap<Currency, Vec<(BreakClass, i128)>> {
    let mut sums: BTreeMap<Currency, BTreeMap<BreakClass, i128>> = BTreeMap::new();
    for line in open(report) {
        if let Some(money) = line.item.at_risk().filter(|money| money.minor != 0) {
            *sums
                .entry(money.currency)
                .or_default()
                .entry(line.item.class)
                .or_default() += i128::from(money.minor).abs();
        }
    }
    sums.into_iter()
        .map(|(currency, classes)| {
            let mut classes: Vec<(BreakClass, i128)> = classes.into_iter().collect();
            classes.sort_by_key(|(class, sum)| (Reverse(*sum), *class));
            (currency, classes)
        })
        .collect()
}

/// Open breaks by severity, worst first, those of none left out.
pub fn by_severity(report: &RunReport) -> Vec<(Severity, usize)> {
    Severity::ALL
        .iter()
        .rev()
        .map(|severity| {
            let number = open(report)
                .filter(|line| line.item.class.severity() == *severity)
                .count();
            (*severity, number)
        })
        .filter(|(_, number)| *number > 0)
        .collect()
}

/// Where a line of a statement stands: what agrees, what waits, what asks nothing, what is broken.
pub fn place(code: &str) -> u8 {
    match code {
        "matched" => 0,
        "matched_elsewhere" => 1,
        "pending" => 2,
        "unmatched" => 5,
        code if BreakClass::from_word(code).is_some() => 4,
        _ => 3,
    }
}

/// What a line of a statement is called.
pub fn cause(code: &str) -> String {
    match code {
        "matched" => "matched on both sides".to_owned(),
        "matched_elsewhere" => "matched with a row outside of what is judged".to_owned(),
        "unmatched" => "unmatched, beside the rows that a break names".to_owned(),
        "pending" => "pending: not due yet, or waited for".to_owned(),
        "failed_attempt" => "failed attempts".to_owned(),
        "account_level_fee" => "fees of the account".to_owned(),
        "account_level" => "payouts and transfers nothing local asks for".to_owned(),
        "life_cycle" => "stages of a payment".to_owned(),
        "hold" => "holds".to_owned(),
        "conversion" => "currency conversions".to_owned(),
        "no_money" => "rows that moved none".to_owned(),
        "abandoned" => "abandoned".to_owned(),
        "returned_in_full" => "came and went back in full".to_owned(),
        class => format!("break: {class}"),
    }
}

/// What a headline says of the verdict.
pub fn verdict(report: &RunReport) -> String {
    use super::OutcomeName;
    match report.outcome.name {
        OutcomeName::Clean => "nothing to tell".to_owned(),
        OutcomeName::Repaired => {
            "every break that was found was closed by a repair of this run".to_owned()
        }
        OutcomeName::Review => match open(report).count() {
            1 => "1 break needs a person".to_owned(),
            open => format!("{open} breaks need a person"),
        },
        OutcomeName::Exit(exit) => exit.when().to_owned(),
    }
}

/// The headline figure: what is at risk in each currency, empty = nothing.
pub fn risk(report: &RunReport) -> Vec<String> {
    report
        .totals
        .iter()
        .filter(|total| total.at_risk != 0)
        .map(|total| {
            format!(
                "{} {}",
                crate::money::format_minor(total.at_risk, total.currency),
                total.currency
            )
        })
        .collect()
}
