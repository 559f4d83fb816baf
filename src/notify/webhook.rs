//! The generic webhook: JSON with a signature and a key that makes a repetition harmless.
//!
//! ```text
//! Idempotency-Key: <run id>
//! Paysweep-Signature: t=<unix seconds>,v1=<hex of HMAC-SHA256(secret, "<t>.<body>")>
//! ```
//!
//! A receiver computes the same over the bytes that it got, compares in constant time, and refuses a `t` that is old.

use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha2::Sha256;

use super::notice::Notice;
use crate::report::{RunReport, json as report_json};

/// Name of the schema of the body.
pub const SCHEMA: &str = "paysweep.notice";

/// The body: what happened, and the report with at most `max_rows` entries in each of its lists.
pub fn body(notice: &Notice<'_>, max_rows: usize, link: &str) -> String {
    let report = shortened(notice, max_rows);
    let head = json!({
        "event": notice.event.as_str(),
        "headline": notice.headline(),
        "left_out": {
            "breaks": notice.report.breaks.len() - report.breaks.len(),
            "repairs": notice.report.repairs.len() - report.repairs.len(),
            "resolved": notice.report.resolved.len() - report.resolved.len(),
        },
        "link": (!link.is_empty()).then_some(link),
        "new": notice.new.len(),
        "schema": SCHEMA,
        "still_open": {
            "count": notice.still_open,
            "since": notice.still_open_since.map(|at| at.to_string()),
        },
        "worse": notice.worse.len(),
    });
    let mut bytes = Vec::new();
    // Memory takes every byte.
    let _ = report_json::write(&report, &mut bytes);
    let report = String::from_utf8_lossy(&bytes);
    let head = head.to_string();
    let open = head.strip_suffix('}').unwrap_or(&head);
    format!("{open},\"report\":{}}}", report.trim_end())
}

/// News first; every list cut.
fn shortened(notice: &Notice<'_>, max_rows: usize) -> RunReport {
    let mut report = notice.report.clone();
    let news: Vec<&str> = notice
        .rows()
        .map(|(_, line)| line.item.id.as_str())
        .collect();
    report.breaks.sort_by_key(|line| {
        news.iter()
            .position(|id| *id == line.item.id)
            .unwrap_or(news.len())
    });
    report.breaks.truncate(max_rows);
    report.repairs.truncate(max_rows);
    report.resolved.truncate(max_rows);
    report.carried.breaks.truncate(max_rows);
    report.carried.repairs.truncate(max_rows);
    (report.matches, report.pending, report.ignored) = (None, None, None);
    report
}

/// The value of the header `Paysweep-Signature`.
pub fn signature(secret: &str, unix_seconds: i64, body: &str) -> String {
    let mut mac =
        Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("{unix_seconds}.").as_bytes());
    mac.update(body.as_bytes());
    let hex: String = mac
        .finalize()
        .into_bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("t={unix_seconds},v1={hex}")
}
