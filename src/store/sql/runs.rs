//! Runs and watermarks: history, what is owed to the next run, and how far sources were read.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use super::{breaks, lease, ledger, open_items};
use crate::exit::Failure;
use crate::model::breaks::{Break, BreakState};
use crate::model::run::Watermark;
use crate::store::contract::{Carried, Claim, Counts, Freshness, Note, RepairFilter, RunRow};
use crate::store::rows::{narrow, unreadable};
use crate::time::{Instant, Span};

const WHERE_THE_WATERMARK_IS: Sql = sql!(
    "select hi, low, as_of, lag, lookback, feed_hash, series_json, config_hash, run_id from watermarks \
    where source = $1"
);

const ADVANCE_WATERMARK: Sql = sql!(
    "insert into watermarks (source, hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id, \
    epoch, series_json) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
    on conflict (source) do update set hi = " greatest "(watermarks.hi, excluded.hi), low = excluded.low, \
    as_of = " greatest "(watermarks.as_of, excluded.as_of), lag = excluded.lag, \
    lookback = excluded.lookback, feed_hash = excluded.feed_hash, \
    config_hash = excluded.config_hash, run_id = excluded.run_id, epoch = excluded.epoch, \
    series_json = excluded.series_json"
);

const SET_WATERMARK: Sql = sql!(
    "insert into watermarks (source, hi, low, as_of, lag, lookback, feed_hash, config_hash, run_id, \
    epoch, series_json) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) \
    on conflict (source) do update set hi = excluded.hi, low = excluded.low, \
    as_of = excluded.as_of, lag = excluded.lag, lookback = excluded.lookback, \
    feed_hash = excluded.feed_hash, config_hash = excluded.config_hash, \
    run_id = excluded.run_id, epoch = excluded.epoch, series_json = excluded.series_json"
);

const NOTE_WATERMARK_CHANGE: Sql = sql!(
    "insert into watermark_changes (source, change_no, hi_before, hi_after, reason, changed_by, \
    changed_at, gap_break_id) \
    select $1, 1 + (select coalesce(max(change_no), 0) from watermark_changes where source = $1), \
    (select hi from watermarks where source = $1), $2, $3, $4, $5, $6"
);

const HOW_MANY_ROWS: Sql = sql!(
    "select (select count(*) from operations where source = $1) as operations, \
    (select count(*) from intents where scope = $2) \
    - (select count(*) from intents where scope = $2 and superseded_by <> '') as intents"
);

const IS_COMMITTED: Sql =
    sql!("select count(*) as commits from run_commits where source = $2 and run_id = $1");

const UNTOLD_RUNS: Sql = sql!(
    "select distinct run_id from run_commits where reported_by = '' \
    and source " [in 1] " order by run_id"
);

const TELL: Sql = sql!(
    "update run_commits set reported_by = $3 where reported_by = '' \
    and run_id " [in 1] " \
    and source " [in 2]
);

macro_rules! runs {
    ($end:literal) => {
        sql!(
            "select run_id, command, sources, as_of, started_at, finished_at, version, exit_code, \
             outcome, report_pruned_at from runs " $end
        )
    };
}

const NEWEST_RUNS: Sql = runs!("order by started_at desc, run_id desc limit $1");

const RUNS_BY_PREFIX: Sql = runs!("where run_id >= $1 and run_id < $1 || '~' order by run_id");

// A run that judged one piece of a long way is told by the run that began it.
const LATEST_RUN: Sql = runs!(
    "where $1 = 'latest' and finished_at is not null and outcome <> 'piece' \
    order by started_at desc, run_id desc limit 1"
);

const REPORT_OF_A_RUN: Sql = sql!("select report_json from run_reports where run_id = $1");

const LAST_ENDS: Sql = sql!(
    "select max(r.finished_at) as last_finished_at, \
    max(case when r.outcome in ('clean', 'repaired') then r.finished_at end) as last_clean_at \
    from run_commits as c join runs as r on r.run_id = c.run_id \
    where c.source = $1 and r.exit_code in (0, 1)"
);

/// How far a source was read.
pub(super) async fn watermark(
    session: &mut impl Engine,
    source: &str,
) -> Result<Option<Watermark>, Failure> {
    let row = session
        .first(
            "reading the watermark",
            WHERE_THE_WATERMARK_IS,
            &[source.into()],
        )
        .await?;
    row.map(|row| {
        Ok(Watermark {
            hi: Instant(row.int("hi")?),
            low: Instant(row.int("low")?),
            as_of: Instant(row.int("as_of")?),
            lag: Span(row.int("lag")?),
            lookback: Span(row.int("lookback")?),
            feed_hash: row.text("feed_hash")?,
            series: serde_json::from_str(&row.text("series_json")?)
                .map_err(|error| unreadable("watermarks.series_json", &error.to_string()))?,
            config_hash: row.text("config_hash")?,
            run_id: row.text("run_id")?,
        })
    })
    .transpose()
}

/// Moves the watermark forward; it never goes back.
pub(super) async fn advance(
    session: &mut impl Engine,
    claim: &Claim,
    to: &Watermark,
) -> Result<(), Failure> {
    put_watermark(session, ADVANCE_WATERMARK, claim, to).await
}

async fn put_watermark(
    session: &mut impl Engine,
    statement: Sql,
    claim: &Claim,
    to: &Watermark,
) -> Result<(), Failure> {
    let series = serde_json::json!(to.series).to_string();
    session
        .write(
            "moving the watermark",
            statement,
            &[
                (&claim.source).into(),
                to.hi.0.into(),
                to.low.0.into(),
                to.as_of.0.into(),
                to.lag.0.into(),
                to.lookback.0.into(),
                (&to.feed_hash).into(),
                (&to.config_hash).into(),
                (&to.run_id).into(),
                claim.epoch.into(),
                (&series).into(),
            ],
        )
        .await?;
    Ok(())
}

/// Moves the watermark by hand.
pub(super) async fn set_watermark(
    session: &mut impl Engine,
    claim: &Claim,
    to: &Watermark,
    note: &Note<'_>,
    gap: Option<&Break>,
) -> Result<(), Failure> {
    let doing = "moving the watermark";
    lease::assert_ours(session, claim).await?;
    session
        .write(
            doing,
            NOTE_WATERMARK_CHANGE,
            &[
                (&claim.source).into(),
                to.hi.0.into(),
                note.reason.into(),
                note.by.into(),
                note.at.0.into(),
                gap.map_or("", |gap| gap.id.as_str()).into(),
            ],
        )
        .await?;
    put_watermark(session, SET_WATERMARK, claim, to).await?;
    if let Some(gap) = gap {
        let repaired = std::collections::HashSet::new();
        let gap = std::slice::from_ref(gap);
        breaks::put(session, &claim.run_id, note.at, gap, &repaired).await?;
    }
    Ok(())
}

/// How many rows are stored.
pub(super) async fn counts(
    session: &mut impl Engine,
    source: &str,
    scope: &str,
) -> Result<Counts, Failure> {
    let row = session
        .one(
            "counting rows",
            HOW_MANY_ROWS,
            &[source.into(), scope.into()],
        )
        .await?;
    Ok(Counts {
        operations: row.int("operations")?.unsigned_abs(),
        intents: row.int("intents")?.unsigned_abs(),
    })
}

/// Whether a run committed its slice of a source.
pub(in crate::store) async fn is_committed(
    session: &mut impl Engine,
    run_id: &str,
    source: &str,
) -> Result<bool, Failure> {
    let row = session
        .one(
            "looking for a commit",
            IS_COMMITTED,
            &[run_id.into(), source.into()],
        )
        .await?;
    Ok(row.int("commits")? > 0)
}

/// What runs owe whose report did not get out.
pub(super) async fn carried(
    session: &mut impl Engine,
    sources: &[&str],
    as_of: Instant,
) -> Result<Carried, Failure> {
    let runs = session
        .rows(
            "looking for runs that were not reported",
            UNTOLD_RUNS,
            &[keys(sources)],
        )
        .await?
        .iter()
        .map(|row| row.text("run_id"))
        .collect::<Result<Vec<String>, Failure>>()?;
    let breaks = open_items::closed_by_repairs(session, &runs, sources, as_of).await?;
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
        let repairs = ledger::filtered(session, &filter).await?;
        carried
            .repairs
            .extend(repairs.into_iter().map(|detail| detail.item));
    }
    carried.runs = runs;
    Ok(carried)
}

/// Marks runs as told.
pub(super) async fn mark_reported(
    session: &mut impl Engine,
    run_ids: &[&str],
    sources: &[&str],
    by: &str,
) -> Result<(), Failure> {
    session
        .write(
            "marking runs as reported",
            TELL,
            &[keys(run_ids), keys(sources), by.into()],
        )
        .await?;
    Ok(())
}

fn read(row: &impl Columns) -> Result<RunRow, Failure> {
    let sources = row.text("sources")?;
    Ok(RunRow {
        run_id: row.text("run_id")?,
        command: row.text("command")?,
        sources: serde_json::from_str(&sources).map_err(|_| unreadable("sources", &sources))?,
        as_of: Instant(row.int("as_of")?),
        started_at: Instant(row.int("started_at")?),
        finished_at: row.maybe("finished_at")?.map(Instant),
        version: row.text("version")?,
        exit_code: row
            .maybe("exit_code")?
            .map(|code| narrow("exit_code", code))
            .transpose()?,
        outcome: row.text("outcome")?,
        report_json: None,
        report_pruned_at: row.maybe("report_pruned_at")?.map(Instant),
    })
}

/// The newest runs.
pub(super) async fn newest(session: &mut impl Engine, limit: u32) -> Result<Vec<RunRow>, Failure> {
    let rows = session
        .rows("reading runs", NEWEST_RUNS, &[i64::from(limit).into()])
        .await?;
    rows.iter().map(read).collect()
}

/// One run with its report.
pub(super) async fn one(session: &mut impl Engine, id_prefix: &str) -> Result<RunRow, Failure> {
    let question = if id_prefix == "latest" {
        LATEST_RUN
    } else {
        RUNS_BY_PREFIX
    };
    let mut rows = session
        .rows("reading runs", question, &[id_prefix.into()])
        .await?;
    let mut run = super::only_one("run", id_prefix, &mut rows).and_then(|row| read(&row))?;
    let report = session
        .first("reading runs", REPORT_OF_A_RUN, &[(&run.run_id).into()])
        .await?;
    run.report_json = report.map(|row| row.text("report_json")).transpose()?;
    Ok(run)
}

/// How fresh a source is.
pub(super) async fn freshness(
    session: &mut impl Engine,
    source: &str,
    as_of: Instant,
) -> Result<Freshness, Failure> {
    let ends = session
        .one("reading runs", LAST_ENDS, &[source.into()])
        .await?;
    let watermark = watermark(session, source).await?;
    let open = open_items::open(session, &[source], as_of).await?;
    Ok(Freshness {
        last_finished_at: ends.maybe("last_finished_at")?.map(Instant),
        last_clean_at: ends.maybe("last_clean_at")?.map(Instant),
        watermark,
        open_breaks: open
            .iter()
            .filter(|item| item.state == BreakState::Open)
            .count() as u64,
    })
}
