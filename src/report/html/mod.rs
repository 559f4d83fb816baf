//! The report for a person with a browser: one file that needs no network, for a screen, a phone and paper.
//!
//! | module | part of the page |
//! |---|---|
//! | `statement` | both accounts of each currency |
//! | `charts` | days, ages, amounts at risk, lateness |
//! | `breaks` | the table that the script sorts and filters |
//! | `lists` | everything that follows |
//!
//! Decisions: the content security policy forbids everything but the one style and the one script whose hashes it names, so
//! that a text of a file that got past the escaping could still do nothing. Without the script the page is whole: the
//! script only sorts, filters and pages the table of breaks. Every text that is not ours goes through [`esc`]. Charts are
//! drawn with whole numbers.

use std::fmt::Write as _;
use std::io::{self, Write};

use sha2::{Digest, Sha256};

use super::sanitise::clean;
use super::{CheckStatus, DeliveryStatus, OutcomeName, RunReport, figures};
use crate::exit::Exit;
use crate::model::run::Basis;
use crate::money::format_minor;
use crate::time::Instant;

mod breaks;
mod charts;
mod lists;
mod statement;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Writes the report as one HTML file.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let mut page = String::with_capacity(64 * 1024 + report.breaks.len() * 1024);
    head(&mut page, report);
    verdict(&mut page, report);
    statement::section(&mut page, report);
    charts::section(&mut page, report);
    breaks::section(&mut page, report);
    lists::repairs(&mut page, "Repairs", &report.repairs, report.run.as_of);
    lists::carried(&mut page, report);
    lists::resolved(&mut page, report);
    lists::included(&mut page, report);
    totals(&mut page, report);
    checks(&mut page, report);
    lists::sources(&mut page, report);
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
