//! The table of breaks: complete without the script, which sorts, filters and pages it.

use std::fmt::Write as _;

use super::{esc, put};
use crate::model::breaks::{BreakClass, BreakState, Severity};
use crate::money::Money;
use crate::report::text::age;
use crate::report::{BreakLine, RunReport, figures};

/// All breaks, worst first, and what their classes mean.
pub(super) fn section(page: &mut String, report: &RunReport) {
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
