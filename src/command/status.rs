//! `paysweep status`: is every source up to date?

use serde_json::{Value, json};

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::report::Format;
use crate::report::text::age;
use crate::store::contract::{Freshness, Store};
use crate::time::{Instant, Span};

use super::World;
use super::breaks::pretty;

/// A source whose last finished run is older than this is stale, unless `[freshness] max_age` says otherwise: a nightly
/// job that was late by two hours.
const MAX_AGE: Span = Span::hours(26);

/// `paysweep status`. Ends with 1 when a source is stale.
pub async fn execute(common: &CommonArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let now = crate::settings::window::as_of(
        common.as_of.as_deref(),
        &settings.timezone,
        (world.clock)(),
    )?;
    let max_age = settings.freshness.max_age.unwrap_or(MAX_AGE);
    let mut store = super::store_to_read(&settings).await?;
    let mut exit = Exit::Ok;
    let (mut text, mut lines) = (String::new(), Vec::new());
    for name in super::source_names(&settings, common)? {
        let fresh = store.freshness(&name, now).await?;
        let is_stale = is_stale(&fresh, now, max_age);
        if is_stale {
            exit = Exit::Differences;
        }
        text.push_str(&line(&name, &fresh, now, is_stale));
        lines.push(line_json(&name, &fresh, now, is_stale));
    }
    // Breaks about intents that name no source belong to none.
    let unowned = store
        .freshness(&settings.intents.name, now)
        .await?
        .open_breaks;
    if unowned > 0 {
        text.push_str(&format!(
            "{}: {unowned} open breaks about intents that name no source\n",
            settings.intents.name
        ));
    }
    let unconfirmed = store.unconfirmed(&settings.intents.name).await?;
    if unconfirmed.count > 0 {
        let oldest = unconfirmed.oldest_at.map_or_else(String::new, |at| {
            format!(", the oldest for {}", age(now.seconds_since(at).max(0)))
        });
        text.push_str(&format!(
            "{} repairs are not yet confirmed by an import{oldest}\n",
            unconfirmed.count
        ));
    }
    match common.format() {
        Format::Json => world.say(&pretty(&json!({
            "sources": lines,
            "open_breaks_without_source": unowned,
            "unconfirmed_repairs": unconfirmed.count,
            "oldest_unconfirmed_at": unconfirmed.oldest_at.map(|at| at.to_string()),
        })))?,
        Format::Table => {
            if !(common.quiet && exit == Exit::Ok) {
                world.say(&text)?;
            }
        }
    }
    Ok(exit)
}

/// Fresh means: a run finished lately, and the data it covers is not older than that either.
fn is_stale(fresh: &Freshness, now: Instant, max_age: Span) -> bool {
    let limit = now.minus(max_age);
    let is_run_old = fresh.last_finished_at.is_none_or(|at| at < limit);
    let is_data_old = fresh
        .watermark
        .as_ref()
        .is_none_or(|mark| mark.hi.plus(mark.lag) < limit);
    is_run_old || is_data_old
}

fn line(name: &str, fresh: &Freshness, now: Instant, is_stale: bool) -> String {
    let since = |at: Option<Instant>| {
        at.map_or_else(
            || "never".to_owned(),
            |at| format!("{} ago", age(now.seconds_since(at).max(0))),
        )
    };
    let mark = fresh.watermark.as_ref().map_or_else(
        || "not read yet".to_owned(),
        |mark| {
            format!(
                "read up to {} ({} behind)",
                mark.hi,
                age(now.seconds_since(mark.hi).max(0))
            )
        },
    );
    format!(
        "{name}: {}; last finished run {}, last clean run {}; {mark}; {} open breaks\n",
        if is_stale { "STALE" } else { "fresh" },
        since(fresh.last_finished_at),
        since(fresh.last_clean_at),
        fresh.open_breaks,
    )
}

fn line_json(name: &str, fresh: &Freshness, now: Instant, is_stale: bool) -> Value {
    json!({
        "name": name,
        "stale": is_stale,
        "last_finished_at": fresh.last_finished_at.map(|at| at.to_string()),
        "last_clean_at": fresh.last_clean_at.map(|at| at.to_string()),
        "watermark": fresh.watermark.as_ref().map(|mark| mark.hi.to_string()),
        "watermark_lag_seconds": fresh.watermark.as_ref().map(|mark| now.seconds_since(mark.hi)),
        "open_breaks": fresh.open_breaks,
    })
}
