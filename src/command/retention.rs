//! `paysweep operations prune`: forgets operations that nobody needs any more, and says what stays and why.
//!
//! It holds every source meanwhile, so that no run is in the middle of what it reads. On `PostgreSQL` it needs the role that
//! migrates, since a part that is forgotten is a table that is dropped.

use serde_json::{Value, json};

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::report::Format;
use crate::settings::{Settings, SourceSettings, window};
use crate::store::any::AnyStore;
use crate::store::contract::{Claim, Generation, Retention, RunEnd, RunStart, Store};
use crate::time::{Instant, Span};

use super::World;
use super::breaks::pretty;
use super::prepare::Prepared;

/// A year is cut into so many generations, so that what is kept beyond the time that was asked for is a small part of it.
const GENERATIONS: i64 = 12;

/// A source that this configuration does not name may be read by another one, which reads no further back than this before its
/// lookback. Unit: days.
const REACH_OF_OTHERS_DAYS: i64 = 90;

/// `paysweep operations prune`.
pub(crate) async fn execute(
    keep_within: Option<Span>,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let untouched = |failure: Failure| failure.state("nothing was forgotten");
    let settings = super::settings(common, world)?;
    let now = window::as_of(common.as_of.as_deref(), &settings.timezone, (world.clock)())
        .map_err(untouched)?;
    let keep = keep_within.or(settings.keep).ok_or_else(|| {
        Failure::rejected("nothing says how far back operations are kept")
            .remedy("write --keep-within 400d, or keep = \"400d\" under [store]")
            .state("nothing was forgotten")
    })?;
    let mut store = if common.dry_run {
        super::store_to_read(&settings).await?
    } else {
        super::store(&settings).await?
    };
    let sources = store.known_sources().await.map_err(untouched)?;
    let held = if common.dry_run {
        None
    } else {
        let held = hold(&mut store, &settings, &sources, now, world).await;
        Some(held.map_err(untouched)?)
    };
    let done = async {
        let floors = floors(&mut store, &settings, &sources).await?;
        let retention = Retention {
            as_of: now,
            before: now.minus(keep),
            floors: &floors,
            open_for: Span(keep.0 / GENERATIONS).clamp(Span::hours(24), Span::hours(31 * 24)),
        };
        if common.dry_run {
            store.generations(&retention).await
        } else {
            store.forget(&retention).await
        }
    };
    let done = done.await.map_err(|failure| untouched(as_owner(failure)));
    if let Some(held) = &held {
        let exit = done
            .as_ref()
            .map_or_else(|failure| failure.exit, |_| Exit::Ok);
        give_back(&mut store, held, exit, world).await?;
    }
    let found = done?;
    if common.quiet {
        return Ok(Exit::Ok);
    }
    let before = now.minus(keep);
    world.say(&match common.format() {
        Format::Table => table(&found, before, common.dry_run),
        Format::Json => pretty(&json!({
            "before": before.to_string(),
            "dry_run": common.dry_run,
            "generations": found.iter().map(line).collect::<Vec<Value>>(),
            "forgotten": { "operations": forgotten(&found) },
        })),
    })?;
    Ok(Exit::Ok)
}

/// A role that may not drop tables is the one of the runs.
fn as_owner(failure: Failure) -> Failure {
    if failure.exit == Exit::Denied {
        failure.remedy("run it as the role that runs `paysweep migrate`; the nightly role can take nothing away")
    } else {
        failure
    }
}

/// What was taken to keep runs out.
struct Held {
    run_id: String,
    claims: Vec<Claim>,
}

async fn hold(
    store: &mut AnyStore,
    settings: &Settings,
    sources: &[String],
    now: Instant,
    world: &World<'_>,
) -> Result<Held, Failure> {
    let run_id = uuid::Uuid::now_v7().to_string();
    store
        .begin(&RunStart {
            run_id: &run_id,
            command: "operations prune",
            sources,
            as_of: now,
            started_at: (world.clock)(),
            version: env!("CARGO_PKG_VERSION"),
            config_hash: &settings.digest,
            run_key: None,
            started_by: &super::named_person(world),
            owner: &run_id,
            ttl: settings.lease,
        })
        .await?;
    let mut held = Held {
        run_id,
        claims: Vec::new(),
    };
    for source in sources {
        let claim = store.claim(source, &held.run_id, &held.run_id, settings.lease);
        match claim.await {
            Ok(claim) => held.claims.push(claim),
            Err(failure) => {
                give_back(store, &held, failure.exit, world).await?;
                return Err(failure);
            }
        }
    }
    Ok(held)
}

async fn give_back(
    store: &mut AnyStore,
    held: &Held,
    exit: Exit,
    world: &World<'_>,
) -> Result<(), Failure> {
    for claim in &held.claims {
        store.release(claim).await?;
    }
    let end = RunEnd {
        run_id: &held.run_id,
        finished_at: (world.clock)(),
        exit_code: exit.code(),
        outcome: if exit == Exit::Ok {
            "pruned"
        } else {
            "not pruned"
        },
        report_json: None,
        is_completed: exit == Exit::Ok,
    };
    store.finish_run(&end).await
}

/// From when on the operations of each source may still get a verdict, or be asked for by one.
async fn floors(
    store: &mut AnyStore,
    settings: &Settings,
    sources: &[String],
) -> Result<Vec<(String, Instant)>, Failure> {
    let mut floors = Vec::new();
    for name in sources {
        let Some(mark) = store.watermark(name).await? else {
            continue;
        };
        let configured = settings.sources.iter().find(|source| source.name == *name);
        let reach = match configured {
            Some(source) => reach(source)?,
            None => Span::hours(24 * REACH_OF_OTHERS_DAYS),
        };
        let lookback = mark.lookback.max(Span::ZERO);
        floors.push((name.clone(), mark.hi.minus(lookback).minus(reach)));
    }
    Ok(floors)
}

/// How far before the window operations are asked for: for linking, and as parts of payouts.
pub(super) fn reach(source: &SourceSettings) -> Result<Span, Failure> {
    let prepared = Prepared::new(source)?;
    let rows = prepared.reach().0.saturating_add(prepared.spans.lookback.0);
    Ok(Span(rows.saturating_add(prepared.spans.payout_span.0)))
}

fn forgotten(found: &[Generation]) -> u64 {
    found
        .iter()
        .filter(|generation| generation.stays.is_none())
        .map(|generation| generation.operations)
        .sum()
}

fn line(generation: &Generation) -> Value {
    json!({
        "generation": generation.number,
        "closed_at": generation.closed_at.map(|at| at.to_string()),
        "operations": generation.operations,
        "newest": generation.newest.map(|at| at.to_string()),
        "forgotten": generation.stays.is_none(),
        "stays": generation.stays,
    })
}

fn table(found: &[Generation], before: Instant, is_dry_run: bool) -> String {
    let operations = |count: u64| match count {
        1 => "1 operation".to_owned(),
        count => format!("{count} operations"),
    };
    let total = forgotten(found);
    let would = if is_dry_run { "would be " } else { "" };
    let mut text = format!(
        "{} from before {before} {would}forgotten\n",
        operations(total)
    );
    for generation in found {
        let holds = format!(
            "generation {}, {}",
            generation.number,
            operations(generation.operations)
        );
        match &generation.stays {
            None => text.push_str(&format!("  {would}forgotten: {holds}\n")),
            Some(why) => text.push_str(&format!("  kept: {holds}: {why}\n")),
        }
    }
    text.push_str("  kept as ever: the ids of all operations, links, intents, breaks, repairs, watermarks and the ledger\n");
    text
}
