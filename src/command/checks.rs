//! The checks of a report: what adds up, what was proved, and what nobody could prove.

use std::collections::BTreeMap;

use crate::model::breaks::BreakClass;
use crate::model::statement::Statement;
use crate::model::verdict::Disposition;
use crate::money::format_minor;
use crate::processor::csv::BalanceFacts;
use crate::report::{Check, CheckStatus};
use crate::source::feed::{Asked, FileRead};

use super::compose::{RunFacts, is_confirmation_overdue};
use super::told::{Slice, Told};

/// All of them, in the order in which they are told.
pub(super) fn checks(told: &Told, facts: &RunFacts<'_>, statement: &[Statement]) -> Vec<Check> {
    let check = |name: &str, status, detail: String| Check {
        name: name.to_owned(),
        status,
        detail,
    };
    let mut checks = vec![check(
        "accounted",
        CheckStatus::Pass,
        "matched + pending + ignored + unmatched = read, on both sides, in rows and in sums per currency".to_owned(),
    )];
    checks.extend(statement_check(statement));
    for slice in &told.slices {
        let coverage = if let Some(asked) = &slice.feed.asked {
            checks.extend(asked_checks(&slice.name, asked));
            match &asked.broken {
                None => (
                    CheckStatus::Pass,
                    format!(
                        "verified: every list was read to its end, until {}",
                        asked.whole_until
                    ),
                ),
                Some(broken) => (
                    CheckStatus::Warn,
                    format!(
                        "incomplete behind {}: {}; nothing is called absent, and the watermark stays",
                        asked.whole_until, broken.what
                    ),
                ),
            }
        } else if slice.feed.is_verified {
            (
                CheckStatus::Pass,
                "verified: the files prove that no row is missing".to_owned(),
            )
        } else {
            let detail = "unverified: nothing in the files proves that no row is missing; declare expected rows or totals where loss must be excluded";
            (CheckStatus::Info, detail.to_owned())
        };
        checks.push(check(
            &format!("coverage {}", slice.name),
            coverage.0,
            coverage.1,
        ));
        if slice.outcome.unverified_payouts > 0 {
            let detail = format!(
                "payout unverified: {} payouts whose parts may lie before what was read",
                slice.outcome.unverified_payouts
            );
            checks.push(check(
                &format!("payouts {}", slice.name),
                CheckStatus::Warn,
                detail,
            ));
        }
        checks.extend(balance_check(slice));
        checks.extend(conversions_check(slice));
        checks.extend(held_back(slice));
        for (&currency, &sum) in &slice.outcome.deltas {
            let detail = format!(
                "matches differ by {} {currency} in all, as declared",
                format_minor(sum, currency)
            );
            checks.push(check(
                &format!("tolerated {}", slice.name),
                CheckStatus::Info,
                detail,
            ));
        }
    }
    if told.unconfirmed.count > 0 {
        let oldest = told.unconfirmed.oldest_at.map_or_else(String::new, |at| {
            format!(
                ", the oldest for {}",
                crate::report::text::age(facts.as_of.seconds_since(at).max(0))
            )
        });
        let status = if is_confirmation_overdue(told, facts) {
            CheckStatus::Warn
        } else {
            CheckStatus::Info
        };
        let detail = format!(
            "{} repairs are not yet confirmed by an import{oldest}",
            told.unconfirmed.count
        );
        checks.push(check("unconfirmed", status, detail));
    }
    checks.extend(told.checks.iter().cloned());
    checks
}

/// What conditions of `[repair]` kept from being written, class by class, with the first reason in full.
fn held_back(slice: &Slice) -> Vec<Check> {
    let mut by_class: BTreeMap<BreakClass, Vec<&str>> = BTreeMap::new();
    for held in &slice.outcome.held_back {
        by_class.entry(held.class).or_default().push(&held.reason);
    }
    by_class
        .into_iter()
        .map(|(class, reasons)| {
            let more = match reasons.len() {
                1 => String::new(),
                number => format!("; and {} more", number - 1),
            };
            Check {
                name: format!("policy {class} {}", slice.name),
                status: CheckStatus::Info,
                detail: format!("no repair was written: {}{more}", reasons[0]),
            }
        })
        .collect()
}

/// Whether the statement of each currency closes to zero.
fn statement_check(statement: &[Statement]) -> Option<Check> {
    let open: Vec<String> = statement
        .iter()
        .filter(|line| !line.closes())
        .map(|line| {
            let amount = |minor| format_minor(minor, line.currency);
            format!(
                "{} is left over in {} between what was open and what is, {} between the two sides",
                amount(line.items.residual()),
                line.currency,
                amount(line.bridge.residual())
            )
        })
        .collect();
    let (status, detail) = match (statement.is_empty(), open.is_empty()) {
        (true, _) => return None,
        (false, true) => (
            CheckStatus::Pass,
            "what was open and what is, and the totals of the two sides, are explained to the last unit".to_owned(),
        ),
        (false, false) => (CheckStatus::Fail, open.join("; ")),
    };
    Some(Check {
        name: "statement".to_owned(),
        status,
        detail,
    })
}

/// What the running balances of the files say. One that breaks off is no finding: people download what they choose.
fn balance_check(slice: &Slice) -> Option<Check> {
    let told = |file: &FileRead| Some((file.name.clone(), file.facts.balance?));
    let found: Vec<(String, BalanceFacts)> = slice.feed.files.iter().filter_map(told).collect();
    let rows: u64 = found.iter().map(|(_, facts)| facts.rows).sum();
    let (status, detail) = match found.iter().find(|(_, facts)| facts.breaks > 0) {
        _ if found.is_empty() => return None,
        None => (
            CheckStatus::Pass,
            format!(
                "verified: the running balance of {rows} rows ties out; rows that were missing in between would have to cancel each other out"
            ),
        ),
        Some((name, facts)) => (
            CheckStatus::Info,
            format!(
                "unverified: {name}:{} begins at a balance with which no other row ends ({} such places in the file): rows were filtered out, or are missing or changed",
                facts.line, facts.breaks
            ),
        ),
    };
    Some(Check {
        name: format!("balance {}", slice.name),
        status,
        detail,
    })
}

/// How many conversions of the rows in scope are folded into what they convert, and how many stand by themselves. A figure:
/// the other half of a conversion may come later, and its rows are counted either way.
fn conversions_check(slice: &Slice) -> Option<Check> {
    let conversions = slice.conversions();
    let in_scope = |row: usize| slice.outcome.operations[row] != Disposition::OutOfScope;
    let whole = (conversions.folded.iter())
        .filter(|one| in_scope(one.operation) || one.legs.iter().any(|&leg| in_scope(leg)))
        .count();
    let partial = (conversions.partial.iter())
        .filter(|legs| legs.iter().any(|&leg| in_scope(leg)))
        .count();
    let mut told = Vec::new();
    if whole > 0 {
        told.push(format!("{whole} folded into what they convert"));
    }
    if partial > 0 {
        told.push(format!(
            "the rows of {partial} do not account for one operation to the last unit and stand by themselves"
        ));
    }
    (!told.is_empty()).then(|| Check {
        name: format!("conversions {}", slice.name),
        status: CheckStatus::Info,
        detail: told.join("; "),
    })
}

/// What asking a processor came to.
fn asked_checks(source: &str, asked: &Asked) -> Vec<Check> {
    const SHOWN: usize = 5;
    let mut detail = format!(
        "{} requests to {}, {} pages read",
        asked.requests, asked.host, asked.pages
    );
    for (count, what) in [
        (asked.retries, "tried again"),
        (asked.throttled, "answers asked for fewer requests"),
    ] {
        if count > 0 {
            detail.push_str(&format!(", {count} {what}"));
        }
    }
    let mut checks = vec![Check {
        name: format!("requests {source}"),
        status: CheckStatus::Info,
        detail,
    }];
    if asked.looked_up > 0 || asked.not_asked > 0 {
        let mut detail = format!("{} rows were asked for by their id", asked.looked_up);
        if !asked.unknown.is_empty() {
            let shown: Vec<&str> = asked
                .unknown
                .iter()
                .take(SHOWN)
                .map(String::as_str)
                .collect();
            let more = match asked.unknown.len().saturating_sub(SHOWN) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            detail.push_str(&format!(
                "; the processor does not know {}{more}",
                shown.join(", ")
            ));
        }
        if asked.not_asked > 0 {
            detail.push_str(&format!(
                "; {} more were not asked for: too many for one run",
                asked.not_asked
            ));
        }
        let status = if asked.not_asked > 0 {
            CheckStatus::Warn
        } else {
            CheckStatus::Info
        };
        checks.push(Check {
            name: format!("second look {source}"),
            status,
            detail,
        });
    }
    checks
}
