//! The running balance of a statement: each row's is the one before it plus its net.
//!
//! Decisions: rows of one second stand in no order that can be relied on, and exports list the newest row first or last. So
//! rows are joined by their balances, whatever their order: the balance before a row has to be the balance after another
//! one, for all but the first row. One series for each account and currency. Rows that have not moved money, and rows
//! without a balance, take no part. Where people leave rows out of a format as they please, a series that breaks off proves
//! nothing; one that joins proves that what is missing between its ends, if anything, cancels itself out.

use std::collections::BTreeMap;

use super::profile::BalanceRule;
use super::table::Place;
use crate::exit::Failure;
use crate::model::operation::{Operation, OperationStatus};
use crate::money::{Currency, Money};

/// What the running balance of a file has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BalanceFacts {
    /// Rows that took part.
    pub rows: u64,
    /// Rows that begin at a balance with which no other row ends, beyond the first one of each series.
    pub breaks: u64,
    /// Physical line of the last of them; 0 = there is none.
    pub line: u32,
}

/// The series of a file so far.
pub(super) struct RunningBalance {
    rule: BalanceRule,
    series: BTreeMap<(String, Currency), Series>,
}

#[derive(Default)]
struct Series {
    /// Per balance: how many rows end with it less how many begin with it.
    open: BTreeMap<i64, i64>,
    /// Balance before, balance after, line.
    rows: Vec<(i64, i64, u32)>,
}

impl RunningBalance {
    pub(super) fn new(rule: BalanceRule) -> RunningBalance {
        RunningBalance {
            rule,
            series: BTreeMap::new(),
        }
    }

    /// Adds a row; `balance` is what the file says, in minor units of the settling currency.
    pub(super) fn add(&mut self, place: Place<'_>, row: &Operation<'_>, balance: Option<i64>) {
        let (Some(net), Some(after), OperationStatus::Succeeded) =
            (row.net_minor, balance, row.status)
        else {
            return;
        };
        let key = (row.account.to_owned(), row.settle_currency);
        let series = self.series.entry(key).or_default();
        let before = after.saturating_sub(net);
        *series.open.entry(after).or_default() += 1;
        *series.open.entry(before).or_default() -= 1;
        series.rows.push((before, after, place.line));
    }

    /// What the balances show; `None` = no row has one. Rejects a file whose balances do not join into one series, where
    /// that is the rule.
    pub(super) fn finish(self, file: &str) -> Result<Option<BalanceFacts>, Failure> {
        let mut facts = BalanceFacts {
            rows: 0,
            breaks: 0,
            line: 0,
        };
        for ((_, currency), series) in self.series {
            facts.rows += series.rows.len() as u64;
            let unjoined: i64 = series.open.values().filter(|count| **count < 0).sum();
            if unjoined >= -1 {
                continue;
            }
            let starts = |row: &&(i64, i64, u32)| {
                let open = series.open.get(&row.0);
                open.is_some_and(|count| *count < 0)
            };
            let mut lines: Vec<(u32, i64)> = (series.rows.iter().filter(starts))
                .map(|row| (row.2, row.0))
                .collect();
            lines.sort_unstable();
            let (line, before) = lines.last().copied().unwrap_or_default();
            if self.rule == BalanceRule::Unverified {
                facts.breaks += unjoined.unsigned_abs() - 1;
                facts.line = facts.line.max(line);
                continue;
            }
            let place = Place { file, line };
            return Err(place
                .row(&format!(
                    "begins at a balance of {}, with which no other row ends",
                    Money::new(before, currency)
                ))
                .why("each balance is the one before it plus the net of the row, so rows are missing, doubled or changed")
                .remedy("export all rows of the period that affect the balance, without a filter"));
        }
        Ok((facts.rows > 0).then_some(facts))
    }
}
