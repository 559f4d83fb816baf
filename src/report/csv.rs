//! The breaks of a report as CSV, one a row, for a spreadsheet or a ticket system.
//!
//! Decisions: the columns are a fixed list, and new ones are added at the end. A text that a spreadsheet would run as a
//! formula gets an apostrophe in front of it (OWASP, "CSV Injection": texts that begin with `=`, `+`, `-`, `@`, a tab, a
//! carriage return or a line feed, and their full-width forms). Amounts are never touched, so that a negative one stays a
//! number. `--limit` does not apply: a machine reads this.

use std::borrow::Cow;
use std::io::{self, Write};

use super::{BreakLine, RunReport, figures};
use crate::money::Money;

/// The columns, in order.
pub const COLUMNS: [&str; 24] = [
    "run_id",
    "as_of",
    "source",
    "break_id",
    "class",
    "severity",
    "state",
    "disposition",
    "change",
    "intent_id",
    "operation_id",
    "also_operations",
    "account",
    "currency",
    "amount",
    "amount_minor",
    "difference",
    "difference_minor",
    "age_seconds",
    "first_seen_run",
    "acknowledged_until",
    "carried",
    "why",
    "next_step",
];

/// Writes the breaks as CSV, worst first: those of the report, those that are resolved, then those that were carried.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(COLUMNS)?;
    let mut lines: Vec<&BreakLine> = report.breaks.iter().collect();
    figures::ordered(&mut lines);
    for line in lines {
        let change = match (line.is_new, line.stays()) {
            (true, _) => "new",
            (false, true) => "persisting",
            (false, false) => "resolved",
        };
        row(&mut table, report, line, change, false)?;
    }
    for line in &report.resolved {
        let amount = figure(line.money);
        table.write_record([
            safe(&report.run.id).as_ref(),
            &report.run.as_of.to_string(),
            "",
            &line.id,
            line.class.as_str(),
            line.class.severity().as_str(),
            "resolved",
            "",
            "resolved",
            &safe(&line.intent_id),
            &safe(&line.operation_id),
            "",
            "",
            &amount.currency,
            &amount.major,
            &amount.minor,
            "",
            "",
            "",
            "",
            "",
            "no",
            "seen in order again",
            "",
        ])?;
    }
    for line in &report.carried.breaks {
        row(&mut table, report, line, "persisting", true)?;
    }
    table.flush()
}

fn row<W: Write>(
    table: &mut csv::Writer<W>,
    report: &RunReport,
    line: &BreakLine,
    change: &str,
    is_carried: bool,
) -> io::Result<()> {
    let item = &line.item;
    let (amount, difference) = (figure(item.money), figure(item.delta));
    let currency = if amount.currency.is_empty() {
        &difference.currency
    } else {
        &amount.currency
    };
    table.write_record([
        safe(&report.run.id).as_ref(),
        &report.run.as_of.to_string(),
        &safe(&item.source),
        &item.id,
        item.class.as_str(),
        item.class.severity().as_str(),
        item.state.as_str(),
        line.disposition().as_str(),
        change,
        &safe(&item.intent_id),
        &safe(&item.operation_id),
        &safe(&line.also_operations.join(" ")),
        &safe(&item.account),
        currency,
        &amount.major,
        &amount.minor,
        &difference.major,
        &difference.minor,
        &line.age_seconds.to_string(),
        &safe(&item.first_seen_run),
        &item
            .acknowledged_until
            .map_or_else(String::new, |until| until.to_string()),
        if is_carried { "yes" } else { "no" },
        &safe(&item.why),
        item.class.entry().next_step,
    ])?;
    Ok(())
}

#[derive(Default)]
struct Figure {
    currency: String,
    major: String,
    minor: String,
}

fn figure(money: Option<Money>) -> Figure {
    money.map_or_else(Figure::default, |money| Figure {
        currency: money.currency.as_str().to_owned(),
        major: money.amount(),
        minor: money.minor.to_string(),
    })
}

/// The text as a spreadsheet may have it. A blank before the sign is passed over by some, so it counts as nothing.
fn safe(text: &str) -> Cow<'_, str> {
    let begins = text.chars().next();
    let means = text.trim_start().chars().next();
    let is_formula = matches!(begins, Some('\t' | '\r' | '\n'))
        || matches!(
            means,
            Some('=' | '+' | '-' | '@' | '＝' | '＋' | '－' | '＠')
        );
    if is_formula {
        Cow::Owned(format!("'{text}"))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_would_be_run_is_kept_from_it_and_no_other_is_touched() {
        for (text, want) in [
            ("=1+1", "'=1+1"),
            ("+49 30", "'+49 30"),
            ("-5", "'-5"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\r=x", "'\r=x"),
            ("\n=x", "'\n=x"),
            ("  =x", "'  =x"),
            ("＝x", "'＝x"),
            ("ORD-7", "ORD-7"),
            ("007", "007"),
            ("", ""),
        ] {
            assert_eq!(safe(text), want, "{text:?}");
        }
    }
}
