//! The message for an incoming webhook of Slack.
//!
//! Slack refuses a message as a whole when one part is too long (`invalid_blocks`; block kit reference, "Header block":
//! 150 characters, "Section block": 3,000), so what does not fit is left out by whole rows and counted. Text of files is
//! escaped as Slack asks (`&`, `<`, `>`), which also keeps it from calling people or making links.

use serde_json::{Value, json};

use super::notice::Notice;
use super::{Channel, When};
use crate::report::BreakLine;
use crate::report::sanitise::clean;

/// A header block holds so many characters.
const HEADER_CHARS_MAX: usize = 150;
/// A section block holds so many; what stands after the rows is counted in.
const SECTION_CHARS_MAX: usize = 3000;
/// Kept for the line that says how many are left out.
const CHARS_OF_THE_REST: usize = 200;
/// So many reasons of a failure are told.
const REASONS_MAX: usize = 10;
/// A sentence is cut there.
const WHY_CHARS_MAX: usize = 300;

/// The body of the message.
pub fn body(notice: &Notice<'_>, channel: &Channel) -> String {
    let run = &notice.report.run;
    let mark = match notice.event {
        When::Breaks => "⚠️",
        When::Failure => "⛔",
        When::Recovery | When::Ok => "✅",
    };
    let headline = cut(&format!("{mark} {}", notice.headline()), HEADER_CHARS_MAX);
    let mut blocks = vec![json!({
        "type": "header",
        "text": { "type": "plain_text", "text": headline },
    })];
    let mut section = |text: String| {
        if !text.is_empty() {
            blocks.push(json!({ "type": "section", "text": { "type": "mrkdwn", "text": text } }));
        }
    };
    section(reasons(notice));
    section(rows(notice, channel.max_rows));
    let mut foot = Vec::new();
    if notice.still_open > 0 {
        foot.push(notice.still());
    }
    let number = notice.report.resolved.len();
    if number > 0 {
        foot.push(format!("{number} resolved since the last run"));
    }
    foot.push(format!("run `{}` as of {}", code(&run.id), run.as_of));
    let link = channel.link_of(&run.id);
    if !link.is_empty() {
        foot.push(format!("<{}|the whole report>", escaped(&link)));
    }
    section(cut(&foot.join("\n"), SECTION_CHARS_MAX));
    let message: Value = json!({ "text": headline, "blocks": blocks });
    message.to_string()
}

/// Why a run failed, as far as the report says.
fn reasons(notice: &Notice<'_>) -> String {
    let told: Vec<String> = notice
        .report
        .outcome
        .reasons
        .iter()
        .filter(|reason| !reason.message.is_empty())
        .map(|reason| {
            format!(
                "*{}* {}",
                escaped(&reason.code),
                escaped(&clean(&reason.message))
            )
        })
        .collect();
    fit(told.into_iter(), REASONS_MAX, SECTION_CHARS_MAX)
}

fn rows(notice: &Notice<'_>, max_rows: usize) -> String {
    let rows = notice.rows().map(|(what, line)| row(what, line));
    fit(rows, max_rows, SECTION_CHARS_MAX)
}

/// Whole rows, as many as fit, and how many are left out.
fn fit(rows: impl Iterator<Item = String>, max_rows: usize, chars_max: usize) -> String {
    let mut text = String::new();
    let (mut shown, mut left_out, mut chars) = (0, 0, 0);
    for row in rows {
        let more = row.chars().count() + 1;
        if left_out > 0 || shown >= max_rows || chars + more > chars_max - CHARS_OF_THE_REST {
            left_out += 1;
            continue;
        }
        text.push_str(&row);
        text.push('\n');
        chars += more;
        shown += 1;
    }
    if left_out > 0 {
        text.push_str(&format!("… and {left_out} more\n"));
    }
    text.trim_end().to_owned()
}

fn row(what: &str, line: &BreakLine) -> String {
    let item = &line.item;
    let mut parts = vec![format!(
        "• *{}* {} ({what})",
        item.class,
        item.class.severity()
    )];
    if let Some(money) = item.at_risk() {
        parts.push(format!("*{money}*"));
    }
    for (label, id) in [
        ("intent", &item.intent_id),
        ("operation", &item.operation_id),
    ] {
        if !id.is_empty() {
            parts.push(format!("{label} `{}`", code(id)));
        }
    }
    let why = cut(&clean(&item.why), WHY_CHARS_MAX);
    format!("{}\n    {}", parts.join("  "), escaped(&why))
}

/// `&`, `<` and `>` as Slack asks for.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A text inside of a code span, which a backtick would end.
fn code(text: &str) -> String {
    escaped(&cut(&clean(text), WHY_CHARS_MAX)).replace('`', "'")
}

fn cut(text: &str, chars_max: usize) -> String {
    if text.chars().count() <= chars_max {
        return text.to_owned();
    }
    let kept: String = text.chars().take(chars_max - 1).collect();
    format!("{kept}…")
}
