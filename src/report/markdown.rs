//! The report for a ticket: GitHub-flavoured Markdown, at most [`CHARS_MAX`] characters.
//!
//! Decisions: text of files stays text. Ids stand in code spans; sentences have their punctuation escaped, and what would
//! call a person (`@name`), another ticket (`#12`) or a link is broken by an empty comment, which shows nothing. What does
//! not fit is left out by whole rows, with their number.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::sanitise::clean;
use super::text::age;
use super::{BreakLine, CheckStatus, RenderOptions, RunReport, figures};
use crate::model::breaks::{BreakClass, Severity};
use crate::model::repair::{RepairAction, RepairState};
use crate::money::format_minor;

/// No ticket is longer. GitHub takes 65,536 characters in the body of an issue.
pub const CHARS_MAX: usize = 65_000;
/// Kept for what follows the breaks.
const CHARS_OF_THE_REST: usize = 6_000;

/// Writes the report as Markdown.
pub fn write(report: &RunReport, options: RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::default();
    head(&mut page, report);
    totals(&mut page, report);
    statement(&mut page, report);
    page.limit = CHARS_MAX - CHARS_OF_THE_REST;
    breaks(&mut page, report, options);
    page.limit = CHARS_MAX;
    rest(&mut page, report);
    out.write_all(page.text.as_bytes())
}

#[derive(Default)]
struct Page {
    text: String,
    chars: usize,
    limit: usize,
}

impl Page {
    /// A line, as long as there is room; says whether there was.
    fn line(&mut self, line: &str) -> bool {
        let chars = line.chars().count() + 1;
        if self.limit > 0 && self.chars + chars > self.limit {
            return false;
        }
        self.chars += chars;
        self.text.push_str(line);
        self.text.push('\n');
        true
    }
}

fn head(page: &mut Page, report: &RunReport) {
    let outcome = &report.outcome;
    page.line(&format!(
        "# {}: {} (exit {})",
        outcome.name.as_str().to_uppercase(),
        figures::verdict(report),
        outcome.exit.code()
    ));
    let risk = figures::risk(report);
    page.line("");
    page.line(&format!(
        "**At risk: {}**",
        if risk.is_empty() {
            "nothing".to_owned()
        } else {
            risk.join(" · ")
        }
    ));
    let changes = figures::changes(report);
    page.line("");
    page.line(&format!(
        "Since the last run: {} new, {} persisting, {} resolved.",
        changes.new, changes.persisting, changes.resolved
    ));
    for reason in outcome.reasons.iter().filter(|it| !it.message.is_empty()) {
        page.line("");
        page.line(&format!(
            "> {}: {}",
            code(&reason.code),
            prose(&reason.message)
        ));
    }
    let run = &report.run;
    page.line("");
    let id = if run.id.is_empty() {
        String::new()
    } else {
        format!(" {}", code(&run.id))
    };
    page.line(&format!(
        "{}{id} as of {}{}, paysweep {}.",
        run.command,
        run.as_of,
        if run.is_dry_run {
            ", a dry run: nothing was written"
        } else {
            ""
        },
        prose(&run.version)
    ));
}

fn totals(page: &mut Page, report: &RunReport) {
    if report.totals.is_empty() {
        return;
    }
    page.line("");
    page.line("| currency | at risk | gross | matched | unreconciled | fees | net |");
    page.line("|---|--:|--:|--:|--:|--:|--:|");
    for total in &report.totals {
        let amount = |minor| format_minor(minor, total.currency);
        page.line(&format!(
            "| {} | {} | {} | {} | {} | {} | {} |",
            total.currency,
            amount(total.at_risk),
            amount(total.gross),
            amount(total.matched),
            amount(total.unreconciled),
            amount(total.fees),
            amount(total.net)
        ));
    }
}

fn statement(page: &mut Page, report: &RunReport) {
    if report.statement.is_empty() {
        return;
    }
    page.line("");
    page.line("## Statement");
    page.line("");
    page.line("| currency | opening | + new | + changed | − cleared | = closing | processor − local | explained | residual |");
    page.line("|---|--:|--:|--:|--:|--:|--:|--:|--:|");
    for line in &report.statement {
        let amount = |minor| format_minor(minor, line.currency);
        let (items, bridge) = (&line.items, &line.bridge);
        page.line(&format!(
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            line.currency,
            amount(items.opening),
            amount(items.new),
            amount(items.changed),
            amount(items.cleared),
            amount(items.closing),
            amount(bridge.difference()),
            amount(bridge.difference() - bridge.residual()),
            amount(bridge.residual() + items.residual())
        ));
    }
}

fn breaks(page: &mut Page, report: &RunReport, options: RenderOptions) {
    let mut groups: BTreeMap<(std::cmp::Reverse<Severity>, BreakClass), Vec<&BreakLine>> =
        BTreeMap::new();
    let mut below = 0;
    for line in report.breaks.iter().filter(|line| line.stays()) {
        let class = line.item.class;
        if class.severity() < options.min_severity {
            below += 1;
        } else {
            groups
                .entry((std::cmp::Reverse(class.severity()), class))
                .or_default()
                .push(line);
        }
    }
    page.line("");
    page.line("## Breaks");
    if groups.is_empty() {
        page.line("");
        page.line("None is open.");
    }
    let mut room = options.limit;
    let mut left_out = 0;
    for ((severity, class), mut lines) in groups {
        figures::ordered(&mut lines);
        let mut head = format!(
            "\n### {} · {class} ({})\n\n{}.\n",
            severity.0,
            lines.len(),
            class.entry().meaning
        );
        head.push_str(&format!("Next: {}\n\n", class.entry().next_step));
        head.push_str("| break | intent | operation | amount | difference | since | why |\n|---|---|---|--:|--:|---|---|");
        if !page.line(&head) {
            left_out += lines.len();
            continue;
        }
        for line in lines {
            if room == 0 || !page.line(&row(line)) {
                left_out += 1;
                continue;
            }
            room -= 1;
        }
    }
    for (number, what) in [
        (
            left_out,
            "more are not listed here; the HTML, CSV and JSON reports have them all",
        ),
        (below, "less severe ones are not listed"),
    ] {
        if number > 0 {
            page.limit = 0;
            page.line("");
            page.line(&format!("… and {number} {what}."));
        }
    }
}

fn row(line: &BreakLine) -> String {
    let item = &line.item;
    let money = |money: Option<crate::money::Money>| {
        money.map_or_else(String::new, |money| money.to_string())
    };
    let id: String = item.id.chars().take(12).collect();
    let mut operations: Vec<String> = Vec::new();
    if !item.operation_id.is_empty() {
        operations.push(code(&item.operation_id));
    }
    operations.extend(line.also_operations.iter().map(|id| code(id)));
    let mut since = if line.is_new {
        "new".to_owned()
    } else {
        age(line.age_seconds)
    };
    if let Some(until) = item.acknowledged_until {
        since = format!("{since}, acknowledged until {until}");
    }
    format!(
        "| {} | {} | {} | {} | {} | {since} | {} |",
        code(&id),
        if item.intent_id.is_empty() {
            String::new()
        } else {
            code(&item.intent_id)
        },
        operations.join(" "),
        money(item.money),
        money(item.delta),
        prose(&item.why)
    )
}

fn rest(page: &mut Page, report: &RunReport) {
    let mut repairs: BTreeMap<(RepairAction, RepairState), usize> = BTreeMap::new();
    for repair in &report.repairs {
        *repairs.entry((repair.action, repair.state)).or_default() += 1;
    }
    if !repairs.is_empty() {
        page.line("");
        page.line("## Repairs");
        page.line("");
        for ((action, state), number) in repairs {
            page.line(&format!("- {number} × `{action}` {state}"));
        }
    }
    if !report.resolved.is_empty() {
        let number = report.resolved.len();
        page.line("");
        page.line(&format!("## Resolved: {number}"));
        page.line("");
        for (shown, line) in report.resolved.iter().enumerate() {
            let id: String = line.id.chars().take(12).collect();
            let ids = [&line.intent_id, &line.operation_id];
            let ids: Vec<String> = ids
                .into_iter()
                .filter(|id| !id.is_empty())
                .map(|id| code(id))
                .collect();
            let is_short = shown < 20
                && page.line(&format!(
                    "- {} `{}` {}",
                    code(&id),
                    line.class,
                    ids.join(" · ")
                ));
            if !is_short {
                page.line(&format!("- … and {} more", number - shown));
                break;
            }
        }
    }
    let told: Vec<String> = report
        .checks
        .iter()
        .filter(|check| matches!(check.status, CheckStatus::Fail | CheckStatus::Warn))
        .map(|check| {
            format!(
                "- {} {}: {}",
                check.status,
                prose(&check.name),
                prose(&check.detail)
            )
        })
        .chain(
            report
                .warnings
                .iter()
                .map(|it| format!("- warning {}: {}", code(&it.code), prose(&it.message))),
        )
        .collect();
    if !told.is_empty() {
        page.line("");
        page.line("## Checks");
        page.line("");
        for (shown, line) in told.iter().enumerate() {
            if !page.line(line) {
                page.limit = 0;
                page.line(&format!("- … and {} more", told.len() - shown));
                break;
            }
        }
    }
}

/// A code span that holds the text, whatever it is; fit for a table.
fn code(raw: &str) -> String {
    let text = clean(raw);
    let mut longest = 0;
    let mut run = 0;
    for letter in text.chars() {
        run = if letter == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

/// Running text that stays text.
fn prose(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len() + 16);
    for letter in clean(raw).chars() {
        match letter {
            '\\' | '`' | '*' | '_' | '{' | '}' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '$' => {
                safe.push('\\');
                safe.push(letter);
            }
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '&' => safe.push_str("&amp;"),
            '@' | '#' => {
                safe.push(letter);
                safe.push_str("<!-- -->");
            }
            '/' if safe.ends_with(":/") => {
                safe.push_str("<!-- -->/");
            }
            _ => safe.push(letter),
        }
    }
    if safe.contains("www.") {
        safe = safe.replace("www.", "www<!-- -->.");
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        for (raw, want) in [
            ("PAY-1", "`PAY-1`"),
            ("a`b", "`` a`b ``"),
            ("a|b", "`a\\|b`"),
            ("a\nb", "`a\\nb`"),
        ] {
            assert_eq!(code(raw), want);
        }
        for (raw, want) in [
            ("<img src=x>", "&lt;img src=x&gt;"),
            ("[x](y)", "\\[x\\]\\(y\\)"),
            ("ask @team about #12", "ask @<!-- -->team about #<!-- -->12"),
            ("https://x.test", "https:/<!-- -->/x.test"),
            ("a | b", "a \\| b"),
        ] {
            assert_eq!(prose(raw), want);
        }
    }
}
