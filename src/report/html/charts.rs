//! Charts as inline SVG, drawn with whole numbers. Each says its figures in words as well.

use std::fmt::Write as _;

use super::{esc, put};
use crate::model::statement::{DayLine, Lateness};
use crate::money::format_minor;
use crate::report::text::age;
use crate::report::{RunReport, SourceReport, figures};

/// Width of every drawing, in its own units.
const WIDTH: i128 = 560;
/// No more days are drawn; the table beside has as many.
const DAYS_MAX: usize = 45;

/// The section with all charts.
pub(super) fn section(page: &mut String, report: &RunReport) {
    page.push_str("<section aria-labelledby=\"charts\">\n<h2 id=\"charts\">At a glance</h2>\n<div class=\"charts\">\n");
    days(page, &report.days);
    let ageing: Vec<Bar> = figures::ageing(report)
        .into_iter()
        .map(|(label, number)| Bar::counted(label, number, "bad"))
        .collect();
    bars(page, "Age of open breaks", &ageing, "no break is open");
    for (currency, classes) in figures::at_risk(report) {
        let rows: Vec<Bar> = classes
            .into_iter()
            .map(|(class, sum)| Bar {
                label: class.to_string(),
                value: sum,
                shown: format_minor(sum, currency),
                class: "bad",
            })
            .collect();
        bars(page, &format!("{currency} at risk, by class"), &rows, "");
    }
    for source in &report.sources {
        lateness(page, source);
    }
    page.push_str("</div>\n</section>\n");
}

/// One row of a chart with horizontal bars.
struct Bar {
    label: String,
    value: i128,
    shown: String,
    class: &'static str,
}

impl Bar {
    fn counted(label: &str, number: u64, class: &'static str) -> Bar {
        Bar {
            label: label.to_owned(),
            value: i128::from(number),
            shown: number.to_string(),
            class,
        }
    }
}

/// A figure with horizontal bars, and their values beside them.
fn bars(page: &mut String, title: &str, rows: &[Bar], empty: &str) {
    const ROW: i128 = 24;
    const LABEL: i128 = 150;
    const VALUE: i128 = 110;
    let largest = rows.iter().map(|bar| bar.value).max().unwrap_or(0);
    put!(page, "<figure><figcaption>{}</figcaption>\n", esc(title));
    if largest == 0 {
        put!(page, "<p class=\"soft\">{}</p></figure>\n", esc(empty));
        return;
    }
    let told: Vec<String> = rows
        .iter()
        .map(|bar| format!("{} {}", bar.label, bar.shown))
        .collect();
    let height = ROW * i128::try_from(rows.len()).unwrap_or(1);
    put!(
        page,
        "<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}: {}\">\n",
        esc(title),
        esc(&told.join(", "))
    );
    for (n, bar) in (0..).zip(rows) {
        let top = ROW * n;
        let wide = scaled(bar.value, largest, WIDTH - LABEL - VALUE);
        put!(
            page,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect class=\"{}\" x=\"{LABEL}\" y=\"{}\" width=\"{wide}\" height=\"{}\" rx=\"2\"/><text x=\"{}\" y=\"{}\">{}</text>\n",
            LABEL - 8,
            top + 16,
            esc(&bar.label),
            bar.class,
            top + 4,
            ROW - 8,
            LABEL + wide + 6,
            top + 16,
            esc(&bar.shown)
        );
    }
    page.push_str("</svg></figure>\n");
}

/// A length for a value; what is not zero can be seen.
fn scaled(value: i128, largest: i128, room: i128) -> i128 {
    if value == 0 || largest == 0 {
        return 0;
    }
    (value.saturating_mul(room) / largest).max(2)
}

fn days(page: &mut String, all: &[DayLine]) {
    const HEIGHT: i128 = 190;
    const FOOT: i128 = 22;
    const LEFT: i128 = 46;
    page.push_str("<figure><figcaption>Rows of the processor by day</figcaption>\n");
    let lines = &all[all.len().saturating_sub(DAYS_MAX)..];
    let sum = |line: &DayLine| {
        i128::from(line.matched)
            + i128::from(line.pending)
            + i128::from(line.ignored)
            + i128::from(line.unmatched)
    };
    let largest = lines.iter().map(sum).max().unwrap_or(0);
    if largest == 0 {
        page.push_str("<p class=\"soft\">no row of the processor is in scope</p></figure>\n");
        return;
    }
    let number = i128::try_from(lines.len()).unwrap_or(1);
    let step = ((WIDTH - LEFT) / number).min(60);
    let bar = (step - 2).max(1);
    put!(
        page,
        "<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Rows by day, matched and broken; the table below has the figures\">\n<line class=\"axis\" x1=\"{LEFT}\" y1=\"{}\" x2=\"{WIDTH}\" y2=\"{}\"/><text x=\"{}\" y=\"14\" text-anchor=\"end\">{largest}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">0</text>\n",
        HEIGHT - FOOT,
        HEIGHT - FOOT,
        LEFT - 6,
        LEFT - 6,
        HEIGHT - FOOT
    );
    // A label takes as much room as five narrow bars.
    let every = (50 / step + 1).max(1);
    for (n, line) in (0..).zip(lines) {
        let left = LEFT + step * n;
        let mut bottom = HEIGHT - FOOT;
        put!(
            page,
            "<g><title>{}: {} matched, {} pending, {} ignored, {} unmatched</title>",
            esc(&line.day),
            line.matched,
            line.pending,
            line.ignored,
            line.unmatched
        );
        for (number, class) in [
            (line.matched, "good"),
            (line.ignored, "still"),
            (line.pending, "wait"),
            (line.unmatched, "bad"),
        ] {
            let high = scaled(i128::from(number), largest, HEIGHT - FOOT - 16);
            if high > 0 {
                bottom -= high;
                put!(
                    page,
                    "<rect class=\"{class}\" x=\"{left}\" y=\"{bottom}\" width=\"{bar}\" height=\"{high}\"/>"
                );
            }
        }
        page.push_str("</g>");
        if n % every == 0 {
            let short = line.day.get(5..).unwrap_or(&line.day);
            put!(
                page,
                "<text x=\"{left}\" y=\"{}\">{}</text>",
                HEIGHT - 6,
                esc(short)
            );
        }
        page.push('\n');
    }
    page.push_str("</svg>\n<ul class=\"key\">");
    for (class, label) in [
        ("good", "matched"),
        ("bad", "unmatched"),
        ("wait", "pending"),
        ("still", "ignored"),
    ] {
        put!(
            page,
            "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect class=\"{class}\" width=\"10\" height=\"10\"/></svg>{label}</li>"
        );
    }
    page.push_str("</ul>\n<details><summary>the figures</summary>\n<table><thead><tr><th scope=\"col\">day</th><th class=\"n\" scope=\"col\">matched</th><th class=\"n\" scope=\"col\">unmatched</th><th class=\"n\" scope=\"col\">pending</th><th class=\"n\" scope=\"col\">ignored</th></tr></thead><tbody>\n");
    for line in lines {
        put!(
            page,
            "<tr><th scope=\"row\">{}</th><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
            esc(&line.day),
            line.matched,
            line.unmatched,
            line.pending,
            line.ignored
        );
    }
    page.push_str("</tbody></table></details>\n");
    let left_out = all.len() - lines.len();
    if left_out > 0 {
        put!(
            page,
            "<p class=\"soft\">{left_out} earlier days are not drawn.</p>\n"
        );
    }
    page.push_str("</figure>\n");
}

/// How late rows came, and what that says about lag and lookback.
fn lateness(page: &mut String, source: &SourceReport) {
    const LABELS: [&str; 6] = [
        "up to 1 h",
        "1 to 6 h",
        "6 h to 1 d",
        "1 to 3 d",
        "3 to 7 d",
        "more than 7 d",
    ];
    let Some(late) = &source.lateness else {
        return;
    };
    let mut rows: Vec<Bar> = LABELS
        .iter()
        .zip(&late.late)
        .map(|(label, number)| Bar::counted(label, *number, "wait"))
        .collect();
    rows.retain(|bar| bar.value > 0 || late.late_rows() > 0);
    let title = format!("{}: rows that came late", source.name);
    bars(page, &title, &rows, "none came late in this run");
    // The sentence belongs to the figure that was just closed.
    page.truncate(page.trim_end().len());
    if page.ends_with("</figure>") {
        page.truncate(page.len() - "</figure>".len());
        put!(
            page,
            "<p class=\"soft\">{}</p></figure>\n",
            esc(&advice(late))
        );
    }
}

/// What the rows of one run say about `lag` and `lookback`.
fn advice(late: &Lateness) -> String {
    const SECONDS_PER_HOUR: i64 = 3600;
    let number = late.late_rows();
    if number == 0 {
        return format!(
            "{} rows were seen first, all of them later than the last watermark. lookback is {}.",
            late.arrived,
            age(late.lookback_seconds)
        );
    }
    let reach = age(late.latest_seconds);
    let mut text = format!(
        "{number} of {} rows seen first had happened before the last watermark, the latest {reach} before it.",
        late.arrived
    );
    let hours = late.latest_seconds / SECONDS_PER_HOUR + 1;
    if late.latest_seconds > late.lookback_seconds {
        text.push_str(&format!(
            " lookback is {}: raise it to at least {hours}h, so that each run reads far enough back.",
            age(late.lookback_seconds)
        ));
    } else {
        text.push_str(&format!(
            " lookback is {}, which covers them.",
            age(late.lookback_seconds)
        ));
    }
    let soon: u64 = late.late.iter().take(2).sum();
    if soon * 2 >= number && late.lag_seconds < Lateness::BOUNDS[1] {
        text.push_str(&format!(
            " {soon} of them were late by 6 h or less: a lag of that length would judge them on time."
        ));
    }
    text
}
