//! `paysweep runs prune`: forgets the reports of old runs, and says which ones stay and why.
//!
//! In steps of a few reports, each a transaction of its own: a run that begins meanwhile waits for none of them, and whoever
//! stops it keeps what is done.

use serde_json::json;

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::report::Format;
use crate::settings::{Settings, window};
use crate::store::contract::{OldReports, Store};
use crate::time::{Instant, Span};

use super::World;
use super::breaks::pretty;

/// Reports that one transaction forgets.
const REPORTS_PER_STEP: u32 = 50;

/// `paysweep runs prune`.
pub(crate) async fn execute(
    keep_within: Option<Span>,
    settings: &Settings,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let untouched = |failure: Failure| failure.state("nothing was removed");
    let now = window::as_of(common.as_of.as_deref(), &settings.timezone, (world.clock)())
        .map_err(untouched)?;
    let keep = keep_within.or(settings.report.keep).ok_or_else(|| {
        Failure::rejected("nothing says how much of the history is kept")
            .remedy("write --keep-within 400d, or keep = \"400d\" under [report]")
            .state("nothing was removed")
    })?;
    let before = now.minus(keep);
    let mut store = if common.dry_run {
        super::store_to_read(settings).await?
    } else {
        super::store(settings).await?
    };
    let found = store.old_reports(before).await.map_err(untouched)?;
    let mut removed = 0;
    if !common.dry_run {
        loop {
            let step = store
                .prune_runs(before, now, REPORTS_PER_STEP)
                .await
                .map_err(|failure| failure.state(format!("{removed} reports were removed")))?;
            removed += step;
            if step == 0 {
                break;
            }
        }
    }
    let text = match common.format() {
        Format::Table => table(&found, before, removed, common.dry_run),
        Format::Json => pretty(&json!({
            "before": before.to_string(),
            "dry_run": common.dry_run,
            "prunable": { "reports": found.prunable, "bytes": found.prunable_bytes },
            "removed": { "reports": removed },
            "kept": {
                "newest": found.newest,
                "of_open_breaks": found.of_open_breaks,
                "untold": found.untold,
            },
        })),
    };
    world.say(&text)?;
    Ok(Exit::Ok)
}

fn table(found: &OldReports, before: Instant, removed: u64, is_dry_run: bool) -> String {
    let reports = |count: u64| match count {
        1 => "1 report".to_owned(),
        count => format!("{count} reports"),
    };
    let mut text = if is_dry_run {
        format!(
            "{} of runs before {before} would be removed, {} bytes\n",
            reports(found.prunable),
            found.prunable_bytes
        )
    } else {
        format!("{} of runs before {before} removed\n", reports(removed))
    };
    for (count, why) in [
        (
            found.untold,
            "not told yet: the next run tells what they found",
        ),
        (
            found.of_open_breaks,
            "of runs that first saw a break which is still open",
        ),
        (
            found.newest,
            "the newest there is: the next run tells what changed since it",
        ),
    ] {
        if count > 0 {
            text.push_str(&format!("  kept: {}, {why}\n", reports(count)));
        }
    }
    text.push_str("  kept as ever: lines of runs, breaks, repairs, watermarks and the ledger\n");
    text
}
