//! Lists of the page below the breaks: repairs, what was carried or resolved, rows in order, sources.

use std::fmt::Write as _;

use super::{esc, put};
use crate::model::repair::Repair;
use crate::money::Money;
use crate::report::RunReport;
use crate::report::text::age;
use crate::time::Instant;

/// A table in a section of its own; nothing where it has no rows.
fn table(page: &mut String, id: &str, head: &str, columns: &[&str], rows: &[Vec<String>]) {
    if rows.is_empty() {
        return;
    }
    put!(
        page,
        "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{}</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"{}\"><table>\n<thead><tr>",
        esc(head),
        esc(head)
    );
    for column in columns {
        put!(page, "<th scope=\"col\">{column}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        page.push_str("<tr>");
        for cell in row {
            put!(page, "<td>{}</td>", esc(cell));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

pub(super) fn repairs(page: &mut String, head: &str, repairs: &[Repair], as_of: Instant) {
    let rows: Vec<Vec<String>> = repairs
        .iter()
        .map(|repair| {
            let side = |status: &str, reference: &str| {
                if reference.is_empty() {
                    status.to_owned()
                } else {
                    format!("{status}, processor_ref {reference}")
                }
            };
            let mut after = side(repair.to.status.as_str(), &repair.to.processor_ref);
            if let Some(money) = repair.to.money {
                after = format!("{after}, {money}, parent {}", repair.to.parent_intent_id);
            }
            vec![
                repair.action.to_string(),
                repair.intent_id.clone(),
                repair.operation_id.clone(),
                repair.from.as_ref().map_or_else(String::new, |from| {
                    side(from.status.as_str(), &from.processor_ref)
                }),
                after,
                repair.state.to_string(),
                format!("{} ago", age(as_of.seconds_since(repair.occurred_at))),
            ]
        })
        .collect();
    let id = head.to_lowercase().replace(' ', "-");
    let columns = [
        "action",
        "intent",
        "operation",
        "before",
        "after",
        "state",
        "happened",
    ];
    table(
        page,
        &id,
        &format!("{head}: {}", repairs.len()),
        &columns,
        &rows,
    );
}

pub(super) fn carried(page: &mut String, report: &RunReport) {
    let carried = &report.carried;
    if carried.runs.is_empty() {
        return;
    }
    let rows: Vec<Vec<String>> = carried
        .breaks
        .iter()
        .map(|line| {
            let item = &line.item;
            vec![
                item.class.to_string(),
                item.intent_id.clone(),
                item.operation_id.clone(),
                item.money
                    .map_or_else(String::new, |money| money.to_string()),
                item.why.clone(),
            ]
        })
        .collect();
    let head = format!(
        "Carried: {} breaks and {} repairs of {} earlier runs that no report has told yet",
        carried.breaks.len(),
        carried.repairs.len(),
        carried.runs.len()
    );
    put!(
        page,
        "<section>\n<h2>{}</h2>\n<p class=\"soft\">{}</p>\n</section>\n",
        esc(&head),
        esc(&carried.runs.join(", "))
    );
    table(
        page,
        "carried-breaks",
        "Breaks carried",
        &["class", "intent", "operation", "amount", "what was seen"],
        &rows,
    );
    repairs(page, "Repairs carried", &carried.repairs, report.run.as_of);
}

pub(super) fn resolved(page: &mut String, report: &RunReport) {
    let rows: Vec<Vec<String>> = report
        .resolved
        .iter()
        .map(|line| {
            vec![
                line.class.to_string(),
                line.intent_id.clone(),
                line.operation_id.clone(),
                line.money
                    .map_or_else(String::new, |money| money.to_string()),
            ]
        })
        .collect();
    let head = format!("Resolved since the last run: {}", rows.len());
    table(
        page,
        "resolved",
        &head,
        &["class", "intent", "operation", "was at risk"],
        &rows,
    );
}

/// What was asked for with `--include`.
pub(super) fn included(page: &mut String, report: &RunReport) {
    let money = |money: Option<Money>| money.map_or_else(String::new, |money| money.to_string());
    list(
        page,
        "Matches",
        ["rule", "difference"],
        report.matches.as_deref(),
        |line| {
            let ids = [line.intent_id.clone(), line.operation_id.clone()];
            let rule = match line.settled {
                Some(settled) => format!("{}, settled as {settled}", line.rule),
                None => line.rule.to_string(),
            };
            (ids, [rule, money(line.delta)])
        },
    );
    list(
        page,
        "Pending",
        ["due", "waits for"],
        report.pending.as_deref(),
        |line| {
            let ids = [line.intent_id.clone(), line.operation_id.clone()];
            let due = line.due_at.map_or_else(String::new, |due| due.to_string());
            (ids, [due, line.why.clone()])
        },
    );
    list(
        page,
        "Ignored",
        ["reason", "amount"],
        report.ignored.as_deref(),
        |line| {
            let ids = [line.intent_id.clone(), line.operation_id.clone()];
            let reason = match line.folded_into.as_str() {
                "" => line.reason.to_string(),
                operation => format!("{}, folded into {operation}", line.reason),
            };
            (ids, [reason, money(line.money)])
        },
    );
}

/// Rows that ask nothing of anybody: intent, operation, and two columns more.
fn list<T>(
    page: &mut String,
    head: &str,
    [third, fourth]: [&str; 2],
    lines: Option<&[T]>,
    cells: impl Fn(&T) -> ([String; 2], [String; 2]),
) {
    let rows: Vec<Vec<String>> = (lines.unwrap_or_default().iter().map(cells))
        .map(|(ids, more)| ids.into_iter().chain(more).collect())
        .collect();
    let id = head.to_lowercase();
    let head = format!("{head}: {}", rows.len());
    table(
        page,
        &id,
        &head,
        &["intent", "operation", third, fourth],
        &rows,
    );
}

pub(super) fn sources(page: &mut String, report: &RunReport) {
    let shown = |at: Option<Instant>| at.map_or_else(String::new, |at| at.to_string());
    let rows: Vec<Vec<String>> = report
        .sources
        .iter()
        .map(|source| {
            let files: Vec<String> = source
                .files
                .iter()
                .map(|file| format!("{} ({} rows, {} bytes)", file.path, file.rows, file.bytes))
                .collect();
            vec![
                source.name.clone(),
                if source.is_complete {
                    "complete"
                } else {
                    "incomplete"
                }
                .to_owned(),
                source.operations.to_string(),
                source.outside_window.to_string(),
                source.rejected_rows.to_string(),
                shown(source.covered),
                shown(source.watermark_before),
                shown(source.watermark_after),
                files.join(", "),
            ]
        })
        .collect();
    let columns = [
        "source",
        "read",
        "operations",
        "outside",
        "rejected",
        "covered to",
        "watermark before",
        "watermark after",
        "files",
    ];
    table(page, "sources", "Sources", &columns, &rows);
}
