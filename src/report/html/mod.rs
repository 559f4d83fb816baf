//! The report for a person with a browser: one file that needs no network, for a screen, a phone and paper.
//!
//! Decisions: the content security policy forbids everything but the one style and the one script whose hashes it names, so
//! that a text of a file that got past the escaping could still do nothing. Without the script the page is whole: the
//! script only sorts, filters and pages the table of breaks. Every text that is not ours goes through [`esc`]. Charts are
//! drawn with whole numbers.

use std::fmt::Write as _;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::sanitise::clean;
use super::text::age;
use super::{BreakLine, CheckStatus, DeliveryStatus, OutcomeName, RunReport, figures};
use crate::exit::Exit;
use crate::model::breaks::{BreakClass, BreakState, Severity};
use crate::model::repair::Repair;
use crate::model::run::Basis;
use crate::model::statement::Statement;
use crate::money::{Money, format_minor};
use crate::time::Instant;

mod charts;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the report as one HTML file.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let mut page = String::with_capacity(64 * 1024 + report.breaks.len() * 1024);
    head(&mut page, report);
    verdict(&mut page, report);
    statement(&mut page, report);
    charts::section(&mut page, report);
    breaks(&mut page, report);
    repairs(&mut page, "Repairs", &report.repairs, report.run.as_of);
    carried(&mut page, report);
    resolved(&mut page, report);
    included(&mut page, report);
    totals(&mut page, report);
    checks(&mut page, report);
    sources(&mut page, report);
    page.push_str("</main>\n<script>");
    page.push_str(SCRIPT);
    page.push_str("</script>\n</body>\n</html>\n");
    out.write_all(page.as_bytes())
}

/// A text as HTML may hold it, in an element or in quotes, with what cannot be seen made visible.
fn esc(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len() + 8);
    for letter in clean(raw).chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(letter),
        }
    }
    safe
}

/// Writing to a string cannot fail.
macro_rules! put {
    ($page:expr, $($part:tt)*) => {{
        let _ = write!($page, $($part)*);
    }};
}
use put;

/// What a content security policy knows a text by.
fn policy_hash(text: &str) -> String {
    format!("'sha256-{}'", base64(&Sha256::digest(text.as_bytes())))
}

/// RFC 4648, section 4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let padded = [
            chunk[0],
            chunk.get(1).copied().unwrap_or(0),
            chunk.get(2).copied().unwrap_or(0),
        ];
        let bits = padded
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        for digit in 0..4 {
            if digit > chunk.len() {
                text.push('=');
            } else {
                let at = bits >> (18 - 6 * digit) & 63;
                text.push(char::from(DIGITS[at as usize]));
            }
        }
    }
    text
}

fn head(page: &mut String, report: &RunReport) {
    let name = report.outcome.name.as_str().to_uppercase();
    put!(
        page,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"referrer\" content=\"no-referrer\">\n\
         <title>{} · paysweep {}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#list\">to the breaks</a>\n<main>\n",
        policy_hash(STYLE),
        policy_hash(SCRIPT),
        esc(&name),
        esc(&report.run.as_of.to_string())
    );
}

fn verdict(page: &mut String, report: &RunReport) {
    let outcome = &report.outcome;
    let class = match outcome.name {
        OutcomeName::Clean | OutcomeName::Exit(Exit::Ok) => "clean",
        OutcomeName::Repaired => "repaired",
        OutcomeName::Review => "review",
        OutcomeName::Exit(_) => "failed",
    };
    put!(
        page,
        "<header class=\"{class}\">\n<h1>{}: {}</h1>\n",
        esc(&outcome.name.as_str().to_uppercase()),
        esc(&figures::verdict(report))
    );
    if report.run.is_dry_run {
        page.push_str("<p><b>A dry run: nothing was written; repairs are those that a run would write.</b></p>\n");
    }
    let changes = figures::changes(report);
    page.push_str("<ul class=\"figures\">\n");
    let risk = figures::risk(report);
    let mut figure = |value: &str, label: &str| {
        put!(page, "<li><b>{}</b><span>{label}</span></li>\n", esc(value));
    };
    if risk.is_empty() {
        figure("nothing", "at risk");
    }
    for amount in &risk {
        figure(amount, "at risk");
    }
    figure(&changes.new.to_string(), "new since the last run");
    figure(&changes.persisting.to_string(), "persisting");
    figure(&changes.resolved.to_string(), "resolved");
    page.push_str("</ul>\n");
    for reason in outcome.reasons.iter().filter(|it| !it.message.is_empty()) {
        put!(
            page,
            "<p><b>{}</b>: {}</p>\n",
            esc(&reason.code),
            esc(&reason.message)
        );
    }
    let basis = match report.window.basis {
        Basis::Watermark => "from the watermark",
        Basis::Range => "given by hand",
        Basis::Files => "everything in the files",
    };
    let bound = |at: Instant| match at {
        Instant::MIN => "the beginning".to_owned(),
        Instant::MAX => "the end of time".to_owned(),
        at => report.zone.local(at).unwrap_or_else(|| at.to_string()),
    };
    put!(
        page,
        "<p class=\"soft\">Window: {} to {} in {} ({basis}; the end is excluded).</p>\n",
        esc(&bound(report.window.from)),
        esc(&bound(report.window.to)),
        esc(report.zone.name())
    );
    let run = &report.run;
    put!(
        page,
        "<p class=\"soft\">{} {} as of {}, exit code {}, paysweep {}.</p>\n</header>\n",
        esc(&run.command),
        esc(&run.id),
        run.as_of,
        outcome.exit.code(),
        esc(&run.version)
    );
}

// ---- the statement

fn statement(page: &mut String, report: &RunReport) {
    if report.statement.is_empty() {
        return;
    }
    page.push_str("<section aria-labelledby=\"statement\">\n<h2 id=\"statement\">Statement</h2>\n<p class=\"soft\">Amounts as the customer saw them, before the processor's fees. Our side as it stood before this run's repairs. Each part closes to zero, or says what is left over.</p>\n<div class=\"statements\">\n");
    for line in &report.statement {
        one_statement(page, line);
    }
    page.push_str("</div>\n</section>\n");
}

fn one_statement(page: &mut String, line: &Statement) {
    let currency = line.currency;
    let amount = |minor| format_minor(minor, currency);
    let items = &line.items;
    put!(
        page,
        "<div>\n<h3>{currency}</h3>\n<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"open items in {currency}\"><table>\n<caption>Open items, at risk</caption>\n<tbody>\n"
    );
    let mut row = |label: &str, minor: i128, class: &str| {
        put!(
            page,
            "<tr{class}><th class=\"plain\" scope=\"row\">{label}</th><td class=\"n\">{}</td></tr>\n",
            amount(minor)
        );
    };
    row("open before the run", items.opening, "");
    row("+ new", items.new, "");
    if items.changed != 0 {
        row("+ changed amounts", items.changed, "");
    }
    row("− cleared", items.cleared, "");
    row("= open after the run", items.closing, " class=\"sum\"");
    if items.acknowledged != 0 {
        row("of it acknowledged", items.acknowledged, "");
    }
    put!(page, "</tbody>\n</table></div>\n");
    residual(page, items.residual(), line);
    let bridge = &line.bridge;
    put!(
        page,
        "<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"both sides in {currency}\"><table>\n<caption>Both sides, and why they differ</caption>\n<thead><tr><th scope=\"col\">cause</th><th class=\"n rows\" scope=\"col\">rows</th><th class=\"n\" scope=\"col\">processor</th><th class=\"n\" scope=\"col\">local</th><th class=\"n\" scope=\"col\">difference</th></tr></thead>\n<tbody>\n"
    );
    let mut explained: Vec<_> = bridge.explained.iter().collect();
    explained.sort_by_key(|cause| figures::place(&cause.code));
    for cause in explained {
        put!(
            page,
            "<tr><th class=\"plain\" scope=\"row\">{}</th><td class=\"n rows\">{} / {}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            esc(&figures::cause(&cause.code)),
            cause.operations,
            cause.intents,
            amount(cause.processor),
            amount(cause.local),
            amount(cause.difference())
        );
    }
    put!(
        page,
        "<tr class=\"sum\"><th scope=\"row\">total</th><td class=\"rows\"></td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n</tbody>\n</table></div>\n",
        amount(bridge.processor),
        amount(bridge.local),
        amount(bridge.difference())
    );
    residual(page, bridge.residual(), line);
    page.push_str("</div>\n");
}

fn residual(page: &mut String, residual: i128, line: &Statement) {
    let amount = format_minor(residual, line.currency);
    if residual == 0 {
        put!(
            page,
            "<p class=\"closes\">✓ residual {amount}: closes to zero</p>\n"
        );
    } else {
        put!(
            page,
            "<p class=\"left\">✗ residual {amount}: nothing explains this</p>\n"
        );
    }
}

// ---- breaks

fn breaks(page: &mut String, report: &RunReport) {
    let mut lines: Vec<&BreakLine> = report.breaks.iter().collect();
    figures::ordered(&mut lines);
    page.push_str(
        "<section aria-labelledby=\"list\">\n<h2 id=\"list\" tabindex=\"-1\">Breaks</h2>\n",
    );
    if lines.is_empty() {
        page.push_str("<p>None.</p>\n</section>\n");
        return;
    }
    let worst: Vec<String> = figures::by_severity(report)
        .into_iter()
        .map(|(severity, number)| {
            format!("<span class=\"tag {severity}\">{number} {severity}</span>")
        })
        .collect();
    let open = figures::open(report).count();
    let repaired = lines.iter().filter(|line| !line.stays()).count();
    put!(
        page,
        "<p>{open} open{}{}; {repaired} closed by a repair of this run.</p>\n",
        if worst.is_empty() { "" } else { ": " },
        worst.join(", ")
    );
    page.push_str("<div class=\"tools\" role=\"search\">\n<div><label for=\"find\">find in every column</label><input id=\"find\" type=\"search\" autocomplete=\"off\"></div>\n<div><label for=\"severity\">severity</label><select id=\"severity\"><option value=\"\">all</option>");
    for severity in Severity::ALL.iter().rev() {
        put!(page, "<option>{severity}</option>");
    }
    page.push_str("</select></div>\n<div><label for=\"change\">since the last run</label><select id=\"change\"><option value=\"\">all</option><option>new</option><option>persisting</option><option>acknowledged</option><option>repaired</option></select></div>\n<div><button id=\"clear\" type=\"button\">clear</button></div>\n<div><output id=\"told\" for=\"find severity change\" aria-live=\"polite\"></output></div>\n</div>\n");
    page.push_str("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"table of breaks\"><table id=\"breaks\">\n<thead><tr>");
    for (label, class) in COLUMNS {
        put!(page, "<th scope=\"col\"{class}>{label}</th>");
    }
    page.push_str("</tr></thead>\n<tbody>\n");
    for line in &lines {
        one_break(page, line);
    }
    page.push_str("</tbody>\n</table></div>\n<p class=\"tools\"><button id=\"more\" type=\"button\" hidden>show 1,000 more</button></p>\n");
    meanings(page, &lines);
    page.push_str("</section>\n");
}

const COLUMNS: [(&str, &str); 9] = [
    ("severity", ""),
    ("class", ""),
    ("intent", ""),
    ("operation", ""),
    ("amount", " class=\"n\""),
    ("difference", " class=\"n\""),
    ("age", " class=\"n\""),
    ("state", ""),
    ("what was seen", ""),
];

fn one_break(page: &mut String, line: &BreakLine) {
    let item = &line.item;
    let severity = item.class.severity();
    let rank = Severity::ALL.len()
        - Severity::ALL
            .iter()
            .position(|it| *it == severity)
            .unwrap_or(0);
    let change = if !line.stays() {
        "repaired"
    } else if item.state == BreakState::Acknowledged {
        "acknowledged"
    } else if line.is_new {
        "new"
    } else {
        "persisting"
    };
    let mut state = change.to_owned();
    if let Some(until) = item.acknowledged_until.filter(|_| line.stays()) {
        state = format!("acknowledged until {until}");
    }
    let mut operations: Vec<&str> = Vec::new();
    if !item.operation_id.is_empty() {
        operations.push(&item.operation_id);
    }
    operations.extend(line.also_operations.iter().map(String::as_str));
    let minor =
        |money: Option<Money>| money.map_or_else(String::new, |money| money.minor.to_string());
    let shown = |money: Option<Money>| money.map_or_else(String::new, |money| money.to_string());
    put!(
        page,
        "<tr data-severity=\"{severity}\" data-change=\"{change}\"><td data-label=\"severity\" data-sort=\"{rank}\"><span class=\"tag {severity}\">{severity}</span></td><td data-label=\"class\">{}</td><td class=\"id\" data-label=\"intent\">{}</td><td class=\"id\" data-label=\"operation\">{}</td><td class=\"n\" data-label=\"amount\" data-sort=\"{}\">{}</td><td class=\"n\" data-label=\"difference\" data-sort=\"{}\">{}</td><td class=\"n\" data-label=\"age\" data-sort=\"{}\">{}</td><td data-label=\"state\">{}</td><td class=\"why\" data-label=\"seen\">{}</td></tr>\n",
        item.class,
        esc(&item.intent_id),
        esc(&operations.join(" ")),
        minor(item.money),
        shown(item.money),
        minor(item.delta),
        shown(item.delta),
        line.age_seconds,
        age(line.age_seconds),
        esc(&state),
        esc(&item.why)
    );
}

fn meanings(page: &mut String, lines: &[&BreakLine]) {
    let mut classes: Vec<BreakClass> = lines.iter().map(|line| line.item.class).collect();
    classes.sort_unstable();
    classes.dedup();
    page.push_str("<details open>\n<summary>What the classes mean, and what to do</summary>\n<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"classes\"><table>\n<thead><tr><th scope=\"col\">class</th><th scope=\"col\">meaning</th><th scope=\"col\">next step</th></tr></thead>\n<tbody>\n");
    for class in classes {
        let entry = class.entry();
        put!(
            page,
            "<tr><th scope=\"row\">{class}</th><td>{}</td><td>{}</td></tr>\n",
            esc(entry.meaning),
            esc(entry.next_step)
        );
    }
    page.push_str("</tbody>\n</table></div>\n</details>\n");
}

// ---- the rest

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

fn repairs(page: &mut String, head: &str, repairs: &[Repair], as_of: Instant) {
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

fn carried(page: &mut String, report: &RunReport) {
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

fn resolved(page: &mut String, report: &RunReport) {
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

fn included(page: &mut String, report: &RunReport) {
    let money = |money: Option<Money>| money.map_or_else(String::new, |money| money.to_string());
    let matches: Vec<Vec<String>> = report
        .matches
        .iter()
        .flatten()
        .map(|line| {
            vec![
                line.intent_id.clone(),
                line.operation_id.clone(),
                line.rule.to_string(),
                money(line.delta),
            ]
        })
        .collect();
    table(
        page,
        "matches",
        &format!("Matches: {}", matches.len()),
        &["intent", "operation", "rule", "difference"],
        &matches,
    );
    let pending: Vec<Vec<String>> = report
        .pending
        .iter()
        .flatten()
        .map(|line| {
            vec![
                line.intent_id.clone(),
                line.operation_id.clone(),
                line.due_at.map_or_else(String::new, |due| due.to_string()),
                line.why.clone(),
            ]
        })
        .collect();
    table(
        page,
        "pending",
        &format!("Pending: {}", pending.len()),
        &["intent", "operation", "due", "waits for"],
        &pending,
    );
    let ignored: Vec<Vec<String>> = report
        .ignored
        .iter()
        .flatten()
        .map(|line| {
            vec![
                line.intent_id.clone(),
                line.operation_id.clone(),
                line.reason.to_string(),
                money(line.money),
            ]
        })
        .collect();
    table(
        page,
        "ignored",
        &format!("Ignored: {}", ignored.len()),
        &["intent", "operation", "reason", "amount"],
        &ignored,
    );
}

fn totals(page: &mut String, report: &RunReport) {
    page.push_str("<section aria-labelledby=\"totals\">\n<h2 id=\"totals\">Totals and rows</h2>\n");
    if !report.totals.is_empty() {
        page.push_str("<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"totals\"><table>\n<thead><tr><th scope=\"col\">currency</th>");
        for column in ["at risk", "gross", "matched", "unreconciled", "fees", "net"] {
            put!(page, "<th class=\"n\" scope=\"col\">{column}</th>");
        }
        page.push_str("</tr></thead>\n<tbody>\n");
        for total in &report.totals {
            put!(page, "<tr><th scope=\"row\">{}</th>", total.currency);
            for minor in [
                total.at_risk,
                total.gross,
                total.matched,
                total.unreconciled,
                total.fees,
                total.net,
            ] {
                put!(
                    page,
                    "<td class=\"n\">{}</td>",
                    format_minor(minor, total.currency)
                );
            }
            page.push_str("</tr>\n");
        }
        page.push_str("</tbody>\n</table></div>\n");
    }
    for (side, tally) in [
        ("operations", &report.accounting.operations),
        ("intents", &report.accounting.intents),
    ] {
        put!(
            page,
            "<p>{side}: read {} {} matched {} + pending {} + ignored {} + unmatched {}</p>\n",
            tally.read,
            if tally.adds_up() { "=" } else { "≠" },
            tally.matched,
            tally.pending,
            tally.ignored,
            tally.unmatched
        );
    }
    page.push_str("</section>\n");
}

fn checks(page: &mut String, report: &RunReport) {
    page.push_str("<section aria-labelledby=\"checks\">\n<h2 id=\"checks\">Checks</h2>\n<div class=\"wide\" tabindex=\"0\" role=\"group\" aria-label=\"checks\"><table>\n<thead><tr><th scope=\"col\">verdict</th><th scope=\"col\">check</th><th scope=\"col\">detail</th></tr></thead>\n<tbody>\n");
    for check in &report.checks {
        let mark = match check.status {
            CheckStatus::Pass => "✓ ",
            CheckStatus::Fail => "✗ ",
            CheckStatus::Warn => "! ",
            CheckStatus::Info => "",
        };
        put!(
            page,
            "<tr><td class=\"{}\">{mark}{}</td><td>{}</td><td>{}</td></tr>\n",
            check.status,
            check.status,
            esc(&check.name),
            esc(&check.detail)
        );
    }
    for warning in &report.warnings {
        put!(
            page,
            "<tr><td class=\"warn\">! warning</td><td>{}</td><td>{}</td></tr>\n",
            esc(&warning.code),
            esc(&warning.message)
        );
    }
    for line in &report.deliveries {
        let class = match line.status {
            DeliveryStatus::Sent => "pass",
            DeliveryStatus::Quiet => "info",
            DeliveryStatus::Failed => "warn",
        };
        put!(
            page,
            "<tr><td class=\"{class}\">{}</td><td>message to {}</td><td>{}</td></tr>\n",
            line.status,
            esc(&line.channel),
            esc(&line.detail)
        );
    }
    page.push_str("</tbody>\n</table></div>\n</section>\n");
}

fn sources(page: &mut String, report: &RunReport) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_the_standard() {
        // RFC 4648, section 10.
        for (text, want) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(text.as_bytes()), want);
        }
    }

    #[test]
    fn a_text_stays_a_text() {
        assert_eq!(
            esc("<b a='1' c=\"2\">&\u{202e}\n"),
            "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;\\u{202e}\\n"
        );
    }
}
