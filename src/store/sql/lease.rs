//! Run keys and leases: who may run, and who holds a source. Expiry is judged by this database's clock alone.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine};
use super::lost_race;
use crate::exit::{Exit, Failure};
use crate::store::contract::{Begun, Claim, RunEnd, RunKey, RunStart};
use crate::time::{Instant, Span};

const WHO_HAS_THE_KEY: Sql = sql!(
    "select k.fingerprint, k.run_id, k.is_completed, \
     cast(case when k.owner is not null and k.locked_until >= " now " then 1 else 0 end as bigint) \
     as is_live, k.locked_until, r.exit_code, p.report_json from run_keys as k \
     left join runs as r on r.run_id = k.run_id \
     left join run_reports as p on p.run_id = k.run_id where k.run_key = $1"
);

const TAKE_THE_KEY: Sql = sql!(
    "insert into run_keys (run_key, fingerprint, run_id, owner, locked_until, is_completed) \
     values ($1, $2, $3, $4, " now " + $5, 0) on conflict (run_key) do update set \
     run_id = excluded.run_id, owner = excluded.owner, locked_until = excluded.locked_until \
     where run_keys.fingerprint = excluded.fingerprint and run_keys.is_completed = 0 \
     and (run_keys.owner is null or run_keys.locked_until < " now " \
     or run_keys.run_id = excluded.run_id)"
);

const ADD_RUN: Sql = sql!(
    "insert into runs (run_id, command, sources, as_of, started_at, version, config_hash, outcome, \
     started_by) values ($1, $2, $3, $4, $5, $6, $7, '', $8) on conflict do nothing"
);

const TAKE_THE_SOURCE: Sql = sql!(
    "insert into leases (source, epoch, owner, run_id, locked_until) values ($1, 1, $2, $3, " now " + $4) \
     on conflict (source) do update set epoch = leases.epoch + 1, owner = excluded.owner, \
     run_id = excluded.run_id, locked_until = excluded.locked_until \
     where leases.owner is null or leases.locked_until < " now " returning epoch"
);

/// One row: the run that has or had the source, and whether it holds it now.
macro_rules! holder {
    ($($end:tt)*) => {
        sql!(
            "select run_id, coalesce(locked_until, 0) as locked_until, epoch, \
             coalesce(owner, '') as owner, cast(case when owner is not null \
             and locked_until >= " now " then 1 else 0 end as bigint) as is_live \
             from leases where source = $1" $($end)*
        )
    };
}

const WHO_HAS_THE_SOURCE: Sql = holder!();

/// Nobody else can take it until this transaction ends.
const HOLD_WHO_HAS_THE_SOURCE: Sql = holder!(for_update);

const PROLONG_THE_SOURCE: Sql = sql!(
    "update leases set locked_until = " now " + $3 \
     where source = $1 and epoch = $2 and owner is not null"
);

const PROLONG_THE_KEY: Sql = sql!(
    "update run_keys set locked_until = " now " + $2 where run_id = $1 and owner is not null"
);

const GIVE_THE_SOURCE_BACK: Sql =
    sql!("update leases set owner = null, locked_until = null where source = $1 and epoch = $2");

const END_RUN: Sql =
    sql!("update runs set finished_at = $2, exit_code = $3, outcome = $4 where run_id = $1");

const KEEP_REPORT: Sql = sql!(
    "insert into run_reports (run_id, report_json) values ($1, $2) \
     on conflict (run_id) do update set report_json = excluded.report_json"
);

const SETTLE_THE_KEY: Sql = sql!(
    "update run_keys set owner = null, locked_until = null, is_completed = $2 where run_id = $1"
);

/// Records a run as begun, if its key allows.
pub(super) async fn begin(
    session: &mut impl Engine,
    start: &RunStart<'_>,
) -> Result<Begun, Failure> {
    let doing = "beginning a run";
    if let Some(wanted) = start.run_key {
        if let Some(done) = look_up(session, doing, start, wanted).await? {
            return Ok(done);
        }
        let taken = session
            .write(
                doing,
                TAKE_THE_KEY,
                &[
                    wanted.key.into(),
                    wanted.fingerprint.into(),
                    start.run_id.into(),
                    start.owner.into(),
                    start.ttl.0.into(),
                ],
            )
            .await?;
        if taken == 0 {
            // Somebody was faster; now it can be told who.
            return match look_up(session, doing, start, wanted).await? {
                Some(done) => Ok(done),
                None => Err(lost_race("the run key changed hands")),
            };
        }
    }
    let sources = serde_json::Value::from(start.sources.to_vec()).to_string();
    session
        .write(
            doing,
            ADD_RUN,
            &[
                start.run_id.into(),
                start.command.into(),
                (&sources).into(),
                start.as_of.0.into(),
                start.started_at.0.into(),
                start.version.into(),
                start.config_hash.into(),
                start.started_by.into(),
            ],
        )
        .await?;
    Ok(Begun::New)
}

/// What stands under a run key: an outcome to give again, a reason not to run, or nothing.
async fn look_up(
    session: &mut impl Engine,
    doing: &str,
    start: &RunStart<'_>,
    wanted: RunKey<'_>,
) -> Result<Option<Begun>, Failure> {
    let holder = session
        .first(doing, WHO_HAS_THE_KEY, &[wanted.key.into()])
        .await?;
    let Some(holder) = holder else {
        return Ok(None);
    };
    let run_id = holder.text("run_id")?;
    if holder.text("fingerprint")? != wanted.fingerprint {
        return Err(Failure::rejected(format!(
            "--run-key {:?} stands for another run",
            wanted.key
        ))
        .why(format!(
            "run {run_id} used it with another command, window or configuration"
        ))
        .remedy("choose another key"));
    }
    if holder.int("is_completed")? != 0 {
        let exit_code = holder
            .maybe("exit_code")?
            .and_then(|code| u8::try_from(code).ok());
        return Ok(Some(Begun::Done {
            run_id,
            exit_code: exit_code.unwrap_or(Exit::Internal.code()),
            report_json: holder.maybe_text("report_json")?,
        }));
    }
    if holder.int("is_live")? != 0 && run_id != start.run_id {
        return Err(held(
            &format!("--run-key {:?}", wanted.key),
            &run_id,
            holder.maybe("locked_until")?.unwrap_or_default(),
        ));
    }
    Ok(None)
}

/// Takes a source.
pub(super) async fn claim(
    session: &mut impl Engine,
    source: &str,
    run_id: &str,
    owner: &str,
    ttl: Span,
) -> Result<Claim, Failure> {
    let doing = "claiming a source";
    // Asked first: a holder that is writing keeps the row, and would be waited for.
    if let Some(claim) = standing(session, doing, source, run_id, owner).await? {
        return Ok(claim);
    }
    let taken = session
        .first(
            doing,
            TAKE_THE_SOURCE,
            &[source.into(), owner.into(), run_id.into(), ttl.0.into()],
        )
        .await?;
    match taken {
        Some(row) => Ok(Claim {
            source: source.to_owned(),
            epoch: row.int("epoch")?,
            run_id: run_id.to_owned(),
        }),
        None => match standing(session, doing, source, run_id, owner).await? {
            Some(claim) => Ok(claim),
            None => Err(lost_race(&format!("source {source} changed hands"))),
        },
    }
}

/// The claim that this run has already, where its answer was lost on the way; `Locked` when another run holds the
/// source.
async fn standing(
    session: &mut impl Engine,
    doing: &str,
    source: &str,
    run_id: &str,
    owner: &str,
) -> Result<Option<Claim>, Failure> {
    let holder = session
        .first(doing, WHO_HAS_THE_SOURCE, &[source.into()])
        .await?;
    let Some(holder) = holder else {
        return Ok(None);
    };
    if holder.int("is_live")? == 0 {
        return Ok(None);
    }
    let by = holder.text("run_id")?;
    if by == run_id && holder.text("owner")? == owner {
        return Ok(Some(Claim {
            source: source.to_owned(),
            epoch: holder.int("epoch")?,
            run_id: by,
        }));
    }
    let until = holder.int("locked_until")?;
    Err(held(&format!("source {source}"), &by, until))
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
pub(super) async fn assert_ours(session: &mut impl Engine, claim: &Claim) -> Result<(), Failure> {
    let holder = session
        .first(
            "looking at the claim",
            HOLD_WHO_HAS_THE_SOURCE,
            &[(&claim.source).into()],
        )
        .await?;
    let Some(holder) = holder else {
        return Err(fenced(claim, "unknown"));
    };
    if holder.int("epoch")? == claim.epoch && !holder.text("owner")?.is_empty() {
        return Ok(());
    }
    Err(fenced(claim, &holder.text("run_id")?))
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
    session: &mut impl Engine,
    claim: &Claim,
    ttl: Span,
) -> Result<(), Failure> {
    let doing = "renewing a claim";
    let held = session
        .write(
            doing,
            PROLONG_THE_SOURCE,
            &[(&claim.source).into(), claim.epoch.into(), ttl.0.into()],
        )
        .await?;
    if held == 0 {
        return Err(fenced(claim, "another"));
    }
    session
        .write(
            doing,
            PROLONG_THE_KEY,
            &[(&claim.run_id).into(), ttl.0.into()],
        )
        .await?;
    Ok(())
}

/// Gives a source back.
pub(super) async fn release(session: &mut impl Engine, claim: &Claim) -> Result<(), Failure> {
    session
        .write(
            "releasing a source",
            GIVE_THE_SOURCE_BACK,
            &[(&claim.source).into(), claim.epoch.into()],
        )
        .await?;
    Ok(())
}

/// Records how a run ended.
pub(super) async fn finish(session: &mut impl Engine, end: &RunEnd<'_>) -> Result<(), Failure> {
    let doing = "ending a run";
    session
        .write(
            doing,
            END_RUN,
            &[
                end.run_id.into(),
                end.finished_at.0.into(),
                i64::from(end.exit_code).into(),
                end.outcome.into(),
            ],
        )
        .await?;
    if let Some(report_json) = end.report_json {
        session
            .write(doing, KEEP_REPORT, &[end.run_id.into(), report_json.into()])
            .await?;
    }
    session
        .write(
            doing,
            SETTLE_THE_KEY,
            &[end.run_id.into(), end.is_completed.into()],
        )
        .await?;
    Ok(())
}
