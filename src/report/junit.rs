//! The report as `JUnit` XML, so that GitLab, Jenkins and their like show a night as a test run: one suite for each source,
//! one case for each class of breaks, failed where a break of it needs a person.
//!
//! Decisions: a class without an open break is a case that passed, so that a trend has something to compare with. What
//! kept a source from being read is an error of a case of its own. Text that XML cannot hold (control characters, U+FFFE)
//! is shown by its name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use super::sanitise::clean;
use super::{BreakLine, OutcomeName, RunReport, figures};
use crate::model::breaks::BreakClass;

/// Writes the report as `JUnit` XML.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let mut by_source: BTreeMap<&str, BTreeMap<BreakClass, Vec<&BreakLine>>> = report
        .sources
        .iter()
        .map(|source| (source.name.as_str(), BTreeMap::new()))
        .collect();
    for line in figures::open(report) {
        by_source
            .entry(line.item.source.as_str())
            .or_default()
            .entry(line.item.class)
            .or_default()
            .push(line);
    }
    let at = report.run.as_of.to_string();
    let at = at.trim_end_matches('Z');
    let failed = |classes: &BTreeMap<BreakClass, Vec<&BreakLine>>| classes.len();
    let unread = report
        .sources
        .iter()
        .filter(|source| !source.is_complete)
        .count();
    let is_told_by_source = unread > 0;
    let outcome = match report.outcome.name {
        OutcomeName::Exit(_) if !is_told_by_source => 1,
        _ => 0,
    };
    let failures: usize = by_source.values().map(failed).sum();
    let cases = by_source.len() * BreakClass::ALL.len() + report.sources.len() + outcome;
    writeln!(out, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>")?;
    writeln!(
        out,
        "<testsuites name=\"paysweep\" tests=\"{cases}\" failures=\"{failures}\" errors=\"{}\">",
        unread + outcome
    )?;
    for (source, classes) in &by_source {
        let read = report.sources.iter().find(|it| it.name == *source);
        let is_unread = read.is_some_and(|source| !source.is_complete);
        writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" timestamp=\"{at}\">",
            text(source),
            BreakClass::ALL.len() + usize::from(read.is_some()),
            failed(classes),
            usize::from(is_unread)
        )?;
        // What belongs to no source has not been read as one.
        if read.is_some() {
            case(out, source, "read whole", |body| {
                if is_unread {
                    unread_source(body, report);
                }
            })?;
        }
        for class in BreakClass::ALL {
            let name = class.as_str();
            case(out, source, name, |body| {
                if let Some(lines) = classes.get(class) {
                    let mut lines = lines.clone();
                    figures::ordered(&mut lines);
                    let told: Vec<String> = lines.iter().map(|line| told(line)).collect();
                    let number = lines.len();
                    let message = format!("{number} {name}: {}", class.entry().meaning);
                    let _ = write!(
                        body,
                        "      <failure message=\"{}\" type=\"{}\">{}\nnext: {}</failure>\n",
                        text(&message),
                        class.severity(),
                        text(&told.join("\n")),
                        text(class.entry().next_step)
                    );
                }
            })?;
        }
        writeln!(out, "  </testsuite>")?;
    }
    if outcome == 1 {
        writeln!(
            out,
            "  <testsuite name=\"paysweep\" tests=\"1\" failures=\"0\" errors=\"1\" timestamp=\"{at}\">"
        )?;
        case(out, "paysweep", "finished", |body| {
            let _ = writeln!(
                body,
                "      <error message=\"{}\" type=\"{}\"/>",
                text(&figures::verdict(report)),
                text(report.outcome.name.as_str())
            );
        })?;
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

/// Why a source was not read whole, as far as the outcome tells it.
fn unread_source(body: &mut String, report: &RunReport) {
    let why: Vec<String> = report
        .outcome
        .reasons
        .iter()
        .filter(|reason| !reason.message.is_empty())
        .map(|reason| format!("{}: {}", reason.code, reason.message))
        .collect();
    let _ = writeln!(
        body,
        "      <error message=\"the source was not read whole\" type=\"{}\">{}</error>",
        text(report.outcome.name.as_str()),
        text(&why.join("\n"))
    );
}

/// A case; it passed where nothing is written into it.
fn case(
    out: &mut dyn Write,
    suite: &str,
    name: &str,
    write: impl FnOnce(&mut String),
) -> io::Result<()> {
    let mut body = String::new();
    write(&mut body);
    let head = format!(
        "    <testcase classname=\"{}\" name=\"{}\"",
        text(suite),
        text(name)
    );
    if body.is_empty() {
        writeln!(out, "{head}/>")
    } else {
        writeln!(out, "{head}>\n{body}    </testcase>")
    }
}

/// One break on a line.
fn told(line: &BreakLine) -> String {
    let item = &line.item;
    let mut parts = vec![item.id.chars().take(12).collect::<String>()];
    for (label, id) in [
        ("intent", &item.intent_id),
        ("operation", &item.operation_id),
    ] {
        if !id.is_empty() {
            parts.push(format!("{label} {}", clean(id)));
        }
    }
    parts.extend(item.money.map(|money| money.to_string()));
    parts.extend(item.delta.map(|delta| format!("difference {delta}")));
    parts.push(if line.is_new {
        "new".to_owned()
    } else {
        format!("open for {}", super::text::age(line.age_seconds))
    });
    parts.push(clean(&item.why).into_owned());
    parts.join(" · ")
}

/// Text as XML 1.0 may hold it, in an element or in quotes.
fn text(raw: &str) -> String {
    let mut safe = String::with_capacity(raw.len());
    for letter in raw.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' => safe.push('\n'),
            '\u{fffe}' | '\u{ffff}' => safe.push('\u{fffd}'),
            other => safe.push_str(&clean(other.encode_utf8(&mut [0; 4]))),
        }
    }
    safe
}
