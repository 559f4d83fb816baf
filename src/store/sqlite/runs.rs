//! Runs and watermarks: history, what is owed to the next run, and how far sources were read.

use sqlx::{Connection, SqliteConnection};

use super::bulk::list;
use super::failure::{Doing, unreadable};
use super::{breaks, lease, ledger, open_items};
use crate::exit::Failure;
use crate::model::breaks::{Break, BreakState};
use crate::model::run::Watermark;
use crate::store::contract::{Carried, Claim, Counts, Freshness, Note, RepairFilter, RunRow};
use crate::time::{Instant, Span};

const WHERE_THE_WATERMARK_IS: &str = "\
    select hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id from watermarks \
    where source = ?1";

const ADVANCE_WATERMARK: &str = "\
    insert into watermarks (source, hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id, \
    epoch) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
    on conflict (source) do update set hi = max(watermarks.hi, excluded.hi), low = excluded.low, \
    as_of = max(watermarks.as_of, excluded.as_of), lag = excluded.lag, \
    lookback = excluded.lookback, feed_hash = excluded.feed_hash, \
    config_hash = excluded.config_hash, run_id = excluded.run_id, epoch = excluded.epoch";

const SET_WATERMARK: &str = "\
    insert into watermarks (source, hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id, \
    epoch) values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) \
    on conflict (source) do update set hi = excluded.hi, low = excluded.low, \
    as_of = excluded.as_of, lag = excluded.lag, lookback = excluded.lookback, \
    feed_hash = excluded.feed_hash, config_hash = excluded.config_hash, \
    run_id = excluded.run_id, epoch = excluded.epoch";

const NOTE_WATERMARK_CHANGE: &str = "\
    insert into watermark_changes (source, change_no, hi_before, hi_after, reason, changed_by, \
    changed_at, gap_break_id) \
    select ?1, 1 + (select coalesce(max(change_no), 0) from watermark_changes where source = ?1), \
    (select hi from watermarks where source = ?1), ?2, ?3, ?4, ?5, ?6";

const HOW_MANY_ROWS: &str = "\
    select (select count(*) from operations where source = ?1), \
    (select count(*) from intents where scope = ?2) \
    - (select count(*) from intents where scope = ?2 and superseded_by <> '')";

const IS_COMMITTED: &str = "select count(*) from run_commits where source = ?2 and run_id = ?1";

const UNTOLD_RUNS: &str = "\
    select distinct run_id from run_commits where reported_by = '' \
    and source in (select value from json_each(?1)) order by run_id";

const TELL: &str = "\
    update run_commits set reported_by = ?3 where reported_by = '' \
    and run_id in (select value from json_each(?1)) \
    and source in (select value from json_each(?2))";

macro_rules! run_columns {
    () => {
        "select run_id, command, sources, as_of, started_at, finished_at, version, exit_code, outcome \
         from runs "
    };
}

const NEWEST_RUNS: &str = concat!(
    run_columns!(),
    "order by started_at desc, run_id desc limit ?1"
);

const RUNS_BY_PREFIX: &str = concat!(
    run_columns!(),
    "where run_id >= ?1 and run_id < ?1 || '~' order by run_id"
);

const LATEST_RUN: &str = concat!(
    run_columns!(),
    "where ?1 = 'latest' and finished_at is not null order by started_at desc, run_id desc limit 1"
);

const REPORT_OF_A_RUN: &str = "select report_json from run_reports where run_id = ?1";

const FORGET_REPORTS: &str = "\
    delete from run_reports where run_id in (select run_id from runs where started_at < ?1) \
    and run_id not in (select run_id from run_commits where reported_by = '')";

const LAST_ENDS: &str = "\
    select max(r.finished_at), max(case when r.exit_code = 0 then r.finished_at end) \
    from run_commits as c join runs as r on r.run_id = c.run_id \
    where c.source = ?1 and r.exit_code in (0, 1)";

type WatermarkColumns = (i64, i64, i64, i64, i64, String, String, String);

type RunColumns = (
    String,
    String,
    String,
    i64,
    i64,
    Option<i64>,
    String,
    Option<u8>,
    String,
);

/// How far a source was read.
pub(super) async fn watermark(
    connection: &mut SqliteConnection,
    source: &str,
) -> Result<Option<Watermark>, Failure> {
    let row: Option<WatermarkColumns> = sqlx::query_as(WHERE_THE_WATERMARK_IS)
        .bind(source)
        .fetch_optional(connection)
        .await
        .doing("reading the watermark")?;
    Ok(row.map(
        |(hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id)| Watermark {
            hi: Instant(hi),
            low: Instant(low),
            as_of: Instant(as_of),
            lag: Span(lag),
            lookback: Span(lookback),
            feed_hash,
            config_hash,
            run_id,
        },
    ))
}

/// Moves the watermark forward; it never goes back.
pub(super) async fn advance(
    connection: &mut SqliteConnection,
    claim: &Claim,
    to: &Watermark,
) -> Result<(), Failure> {
    put_watermark(connection, ADVANCE_WATERMARK, claim, to).await
}

async fn put_watermark(
    connection: &mut SqliteConnection,
    statement: &'static str,
    claim: &Claim,
    to: &Watermark,
) -> Result<(), Failure> {
    sqlx::query(statement)
        .bind(&claim.source)
        .bind(to.hi.0)
        .bind(to.low.0)
        .bind(to.as_of.0)
        .bind(to.lag.0)
        .bind(to.lookback.0)
        .bind(&to.feed_hash)
        .bind(&to.config_hash)
        .bind(&to.run_id)
        .bind(claim.epoch)
        .execute(connection)
        .await
        .doing("moving the watermark")?;
    Ok(())
}

/// Moves the watermark by hand.
pub(super) async fn set_watermark(
    connection: &mut SqliteConnection,
    claim: &Claim,
    to: &Watermark,
    note: &Note<'_>,
    gap: Option<&Break>,
) -> Result<(), Failure> {
    let doing = "moving the watermark";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    lease::assert_ours(&mut transaction, claim).await?;
    sqlx::query(NOTE_WATERMARK_CHANGE)
        .bind(&claim.source)
        .bind(to.hi.0)
        .bind(note.reason)
        .bind(note.by)
        .bind(note.at.0)
        .bind(gap.map_or("", |gap| gap.id.as_str()))
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    put_watermark(&mut transaction, SET_WATERMARK, claim, to).await?;
    if let Some(gap) = gap {
        let repaired = std::collections::HashSet::new();
        let gap = std::slice::from_ref(gap);
        breaks::put(&mut transaction, &claim.run_id, note.at, gap, &repaired).await?;
    }
    transaction.commit().await.doing(doing)
}

/// How many rows are stored.
pub(super) async fn counts(
    connection: &mut SqliteConnection,
    source: &str,
    scope: &str,
) -> Result<Counts, Failure> {
    let (operations, intents): (i64, i64) = sqlx::query_as(HOW_MANY_ROWS)
        .bind(source)
        .bind(scope)
        .fetch_one(connection)
        .await
        .doing("counting rows")?;
    Ok(Counts {
        operations: operations.unsigned_abs(),
        intents: intents.unsigned_abs(),
    })
}

/// Whether a run committed its slice of a source.
pub(super) async fn is_committed(
    connection: &mut SqliteConnection,
    run_id: &str,
    source: &str,
) -> Result<bool, Failure> {
    let count: i64 = sqlx::query_scalar(IS_COMMITTED)
        .bind(run_id)
        .bind(source)
        .fetch_one(connection)
        .await
        .doing("looking for a commit")?;
    Ok(count > 0)
}

/// What runs owe whose report did not get out.
pub(super) async fn carried(
    connection: &mut SqliteConnection,
    sources: &[&str],
    as_of: Instant,
) -> Result<Carried, Failure> {
    let runs: Vec<String> = sqlx::query_scalar(UNTOLD_RUNS)
        .bind(list(sources))
        .fetch_all(&mut *connection)
        .await
        .doing("looking for runs that were not reported")?;
    let breaks = open_items::closed_by_repairs(connection, &runs, sources, as_of).await?;
    let mut carried = Carried {
        breaks,
        ..Carried::default()
    };
    for run_id in &runs {
        let filter = RepairFilter {
            sources,
            run_id,
            ..RepairFilter::default()
        };
        let repairs = ledger::filtered(connection, &filter).await?;
        carried
            .repairs
            .extend(repairs.into_iter().map(|detail| detail.item));
    }
    carried.runs = runs;
    Ok(carried)
}

/// Marks runs as told.
pub(super) async fn mark_reported(
    connection: &mut SqliteConnection,
    run_ids: &[&str],
    sources: &[&str],
    by: &str,
) -> Result<(), Failure> {
    sqlx::query(TELL)
        .bind(list(run_ids))
        .bind(list(sources))
        .bind(by)
        .execute(connection)
        .await
        .doing("marking runs as reported")?;
    Ok(())
}

fn read(row: RunColumns) -> Result<RunRow, Failure> {
    let (run_id, command, sources, as_of, started_at, finished_at, version, exit_code, outcome) =
        row;
    Ok(RunRow {
        sources: serde_json::from_str(&sources).map_err(|_| unreadable("sources", &sources))?,
        run_id,
        command,
        as_of: Instant(as_of),
        started_at: Instant(started_at),
        finished_at: finished_at.map(Instant),
        version,
        exit_code,
        outcome,
        report_json: None,
    })
}

/// The newest runs.
pub(super) async fn newest(
    connection: &mut SqliteConnection,
    limit: u32,
) -> Result<Vec<RunRow>, Failure> {
    let rows: Vec<RunColumns> = sqlx::query_as(NEWEST_RUNS)
        .bind(limit)
        .fetch_all(connection)
        .await
        .doing("reading runs")?;
    rows.into_iter().map(read).collect()
}

/// One run with its report.
pub(super) async fn one(
    connection: &mut SqliteConnection,
    id_prefix: &str,
) -> Result<RunRow, Failure> {
    let question = if id_prefix == "latest" {
        LATEST_RUN
    } else {
        RUNS_BY_PREFIX
    };
    let mut rows: Vec<RunColumns> = sqlx::query_as(question)
        .bind(id_prefix)
        .fetch_all(&mut *connection)
        .await
        .doing("reading runs")?;
    let mut run = super::only_one("run", id_prefix, &mut rows).and_then(read)?;
    run.report_json = sqlx::query_scalar(REPORT_OF_A_RUN)
        .bind(&run.run_id)
        .fetch_optional(connection)
        .await
        .doing("reading runs")?;
    Ok(run)
}

/// Forgets old reports that were told.
pub(super) async fn prune(
    connection: &mut SqliteConnection,
    before: Instant,
) -> Result<u64, Failure> {
    let forgotten = sqlx::query(FORGET_REPORTS)
        .bind(before.0)
        .execute(connection)
        .await
        .doing("forgetting reports")?;
    Ok(forgotten.rows_affected())
}

/// How fresh a source is.
pub(super) async fn freshness(
    connection: &mut SqliteConnection,
    source: &str,
    as_of: Instant,
) -> Result<Freshness, Failure> {
    let (last_finished_at, last_clean_at): (Option<i64>, Option<i64>) = sqlx::query_as(LAST_ENDS)
        .bind(source)
        .fetch_one(&mut *connection)
        .await
        .doing("reading runs")?;
    let watermark = watermark(connection, source).await?;
    let open = open_items::open(connection, &[source], as_of).await?;
    Ok(Freshness {
        last_finished_at: last_finished_at.map(Instant),
        last_clean_at: last_clean_at.map(Instant),
        watermark,
        open_breaks: open
            .iter()
            .filter(|item| item.state == BreakState::Open)
            .count() as u64,
    })
}
