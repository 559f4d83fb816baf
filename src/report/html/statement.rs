//! The statement of the page: per currency, two accounts that close to zero.

use std::fmt::Write as _;

use super::{esc, put};
use crate::model::statement::Statement;
use crate::money::format_minor;
use crate::report::{RunReport, figures};

/// The statement: open items, and why both sides differ, by currency.
pub(super) fn section(page: &mut String, report: &RunReport) {
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
            // A narrow screen may break a word of ours where its parts meet.
            esc(&figures::cause(&cause.code)).replace('_', "_<wbr>"),
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
