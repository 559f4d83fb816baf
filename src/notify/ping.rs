//! What a monitor that waits for a sign of life is told: that a run began, and how it ended.
//!
//! The addresses are those of healthchecks.io and its like ("Pinging API"): `URL/start`, then `URL/<exit code>`, both with
//! `rid` = the run's id, so that the monitor measures how long it took. 0 is good, everything else is not. A short body
//! says what happened; the monitor keeps it.

use super::notice::Notice;

/// Bodies are kept up to 100 kB by the service; a few lines are enough.
const BODY_CHARS_MAX: usize = 2000;

/// Where the beginning of a run is told. `None` = that is no URL.
pub fn start(url: &str, run_id: &str) -> Option<String> {
    address(url, "start", run_id)
}

/// Where the end of a run is told.
pub fn end(url: &str, exit_code: u8, run_id: &str) -> Option<String> {
    address(url, &exit_code.to_string(), run_id)
}

fn address(url: &str, last: &str, run_id: &str) -> Option<String> {
    let mut url = reqwest::Url::parse(url).ok()?;
    url.path_segments_mut().ok()?.pop_if_empty().push(last);
    if !run_id.is_empty() {
        url.query_pairs_mut().append_pair("rid", run_id);
    }
    Some(url.into())
}

/// What stands in the body.
pub fn body(notice: &Notice<'_>) -> String {
    let mut lines = vec![notice.headline()];
    if notice.still_open > 0 {
        lines.push(notice.still());
    }
    for reason in &notice.report.outcome.reasons {
        lines.push(if reason.message.is_empty() {
            format!("{} {}", reason.code, reason.count)
        } else {
            format!("{}: {}", reason.code, reason.message)
        });
    }
    lines.join("\n").chars().take(BODY_CHARS_MAX).collect()
}
