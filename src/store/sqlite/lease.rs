//! Run keys and leases: who may run, and who holds a source. Expiry is judged by this database's clock alone.

use sqlx::{Connection, SqliteConnection};

use super::bulk::list;
use super::failure::Doing;
use crate::exit::{Exit, Failure};
use crate::store::contract::{Begun, Claim, RunEnd, RunStart};
use crate::time::{Instant, Span};

/// The database's clock, in microseconds.
macro_rules! now {
    () => {
        "cast(unixepoch('subsec') * 1000000 as integer)"
    };
}

const WHO_HAS_THE_KEY: &str = concat!(
    "select k.fingerprint, k.run_id, k.is_completed, ",
    "k.owner is not null and k.locked_until >= ",
    now!(),
    ", k.locked_until, r.exit_code, p.report_json from run_keys as k ",
    "left join runs as r on r.run_id = k.run_id ",
    "left join run_reports as p on p.run_id = k.run_id where k.run_key = ?1"
);

const TAKE_THE_KEY: &str = concat!(
    "insert into run_keys (run_key, fingerprint, run_id, owner, locked_until) ",
    "values (?1, ?2, ?3, ?4, ",
    now!(),
    " + ?5) on conflict (run_key) do update set run_id = excluded.run_id, owner = excluded.owner, ",
    "locked_until = excluded.locked_until"
);

const ADD_RUN: &str = "\
    insert into runs (run_id, command, sources, as_of, started_at, version, config_hash) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7) on conflict do nothing";

const TAKE_THE_SOURCE: &str = concat!(
    "insert into leases (source, epoch, owner, run_id, locked_until) values (?1, 1, ?2, ?3, ",
    now!(),
    " + ?4) on conflict (source) do update set epoch = leases.epoch + 1, owner = excluded.owner, ",
    "run_id = excluded.run_id, locked_until = excluded.locked_until ",
    "where leases.owner is null or leases.locked_until < ",
    now!(),
    " returning epoch"
);

const WHO_HAS_THE_SOURCE: &str = "select run_id, coalesce(locked_until, 0), epoch, owner is not null from leases where source = ?1";

const HOLD_THE_SOURCE: &str = concat!(
    "update leases set locked_until = ",
    now!(),
    " + ?3 where source = ?1 and epoch = ?2 and owner is not null"
);

const HOLD_THE_KEY: &str = concat!(
    "update run_keys set locked_until = ",
    now!(),
    " + ?2 where run_id = ?1 and owner is not null"
);

const GIVE_THE_SOURCE_BACK: &str = "\
    update leases set owner = null, locked_until = null where source = ?1 and epoch = ?2";

const END_RUN: &str =
    "update runs set finished_at = ?2, exit_code = ?3, outcome = ?4 where run_id = ?1";

const KEEP_REPORT: &str = "\
    insert into run_reports (run_id, report_json) values (?1, ?2) \
    on conflict (run_id) do update set report_json = excluded.report_json";

const SETTLE_THE_KEY: &str = "\
    update run_keys set owner = null, locked_until = null, is_completed = ?2 where run_id = ?1";

type KeyRow = (
    String,
    String,
    bool,
    Option<bool>,
    Option<i64>,
    Option<u8>,
    Option<String>,
);

/// Records a run as begun, if its key allows.
pub(super) async fn begin(
    connection: &mut SqliteConnection,
    start: &RunStart<'_>,
) -> Result<Begun, Failure> {
    let doing = "beginning a run";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    if let Some(wanted) = start.run_key {
        let holder: Option<KeyRow> = sqlx::query_as(WHO_HAS_THE_KEY)
            .bind(wanted.key)
            .fetch_optional(&mut *transaction)
            .await
            .doing(doing)?;
        if let Some((fingerprint, run_id, is_completed, is_live, until, exit_code, report_json)) =
            holder
        {
            if fingerprint != wanted.fingerprint {
                return Err(Failure::rejected(format!(
                    "--run-key {:?} stands for another run",
                    wanted.key
                ))
                .why(format!(
                    "run {run_id} used it with another command, window or configuration"
                ))
                .remedy("choose another key"));
            }
            if is_completed {
                return Ok(Begun::Done {
                    run_id,
                    exit_code: exit_code.unwrap_or(Exit::Internal.code()),
                    report_json,
                });
            }
            if is_live == Some(true) && run_id != start.run_id {
                return Err(held(
                    &format!("--run-key {:?}", wanted.key),
                    &run_id,
                    until.unwrap_or_default(),
                ));
            }
        }
        sqlx::query(TAKE_THE_KEY)
            .bind(wanted.key)
            .bind(wanted.fingerprint)
            .bind(start.run_id)
            .bind(start.owner)
            .bind(start.ttl.0)
            .execute(&mut *transaction)
            .await
            .doing(doing)?;
    }
    sqlx::query(ADD_RUN)
        .bind(start.run_id)
        .bind(start.command)
        .bind(list(start.sources))
        .bind(start.as_of.0)
        .bind(start.started_at.0)
        .bind(start.version)
        .bind(start.config_hash)
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    transaction.commit().await.doing(doing)?;
    Ok(Begun::New)
}

/// Takes a source.
pub(super) async fn claim(
    connection: &mut SqliteConnection,
    source: &str,
    run_id: &str,
    owner: &str,
    ttl: Span,
) -> Result<Claim, Failure> {
    let doing = "claiming a source";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    let epoch: Option<i64> = sqlx::query_scalar(TAKE_THE_SOURCE)
        .bind(source)
        .bind(owner)
        .bind(run_id)
        .bind(ttl.0)
        .fetch_optional(&mut *transaction)
        .await
        .doing(doing)?;
    let Some(epoch) = epoch else {
        let (holder, until, _, _): (String, i64, i64, bool) = sqlx::query_as(WHO_HAS_THE_SOURCE)
            .bind(source)
            .fetch_one(&mut *transaction)
            .await
            .doing(doing)?;
        return Err(held(&format!("source {source}"), &holder, until));
    };
    transaction.commit().await.doing(doing)?;
    Ok(Claim {
        source: source.to_owned(),
        epoch,
        run_id: run_id.to_owned(),
    })
}

fn held(what: &str, run_id: &str, until: i64) -> Failure {
    let until = Instant(until);
    Failure::new(
        Exit::Locked,
        format!("{what} is held by run {run_id} until {until}"),
    )
    .remedy("wait for it; a run that died is taken over after that time by itself")
}

/// Whether the claim still stands; asked inside every transaction that writes for a source.
pub(super) async fn assert_ours(
    connection: &mut SqliteConnection,
    claim: &Claim,
) -> Result<(), Failure> {
    let holder: Option<(String, i64, i64, bool)> = sqlx::query_as(WHO_HAS_THE_SOURCE)
        .bind(&claim.source)
        .fetch_optional(&mut *connection)
        .await
        .doing("looking at the claim")?;
    match holder {
        Some((_, _, epoch, true)) if epoch == claim.epoch => Ok(()),
        Some((run_id, ..)) => Err(fenced(claim, &run_id)),
        None => Err(fenced(claim, "unknown")),
    }
}

fn fenced(claim: &Claim, by: &str) -> Failure {
    Failure::new(
        Exit::Locked,
        format!(
            "fenced: source {} is no longer held by run {}; run {by} took it last",
            claim.source, claim.run_id
        ),
    )
    .why("this run held the source longer than its lease without renewing it")
    .remedy("nothing, when the other run succeeds; else run again")
}

/// Holds source and run key longer.
pub(super) async fn renew(
    connection: &mut SqliteConnection,
    claim: &Claim,
    ttl: Span,
) -> Result<(), Failure> {
    let doing = "renewing a claim";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    let held = sqlx::query(HOLD_THE_SOURCE)
        .bind(&claim.source)
        .bind(claim.epoch)
        .bind(ttl.0)
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    if held.rows_affected() == 0 {
        return Err(fenced(claim, "another"));
    }
    sqlx::query(HOLD_THE_KEY)
        .bind(&claim.run_id)
        .bind(ttl.0)
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    transaction.commit().await.doing(doing)
}

/// Gives a source back.
pub(super) async fn release(
    connection: &mut SqliteConnection,
    claim: &Claim,
) -> Result<(), Failure> {
    sqlx::query(GIVE_THE_SOURCE_BACK)
        .bind(&claim.source)
        .bind(claim.epoch)
        .execute(connection)
        .await
        .doing("releasing a source")?;
    Ok(())
}

/// Records how a run ended.
pub(super) async fn finish(
    connection: &mut SqliteConnection,
    end: &RunEnd<'_>,
) -> Result<(), Failure> {
    let doing = "ending a run";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    sqlx::query(END_RUN)
        .bind(end.run_id)
        .bind(end.finished_at.0)
        .bind(end.exit_code)
        .bind(end.outcome)
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    if let Some(report_json) = end.report_json {
        sqlx::query(KEEP_REPORT)
            .bind(end.run_id)
            .bind(report_json)
            .execute(&mut *transaction)
            .await
            .doing(doing)?;
    }
    sqlx::query(SETTLE_THE_KEY)
        .bind(end.run_id)
        .bind(end.is_completed)
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    transaction.commit().await.doing(doing)
}
