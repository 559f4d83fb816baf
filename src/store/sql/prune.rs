//! Forgetting old reports.
//!
//! # Decisions
//!
//! - Reports are what grows: one for each run, with every break that was open. What else a run leaves is a line that breaks,
//!   repairs, keys, watermarks and the chain name, and by which it can be told later who did what; all of it stays.
//! - What somebody may still need stays as well: what was not told, the newest report there is, and the report of the run that
//!   first saw a break which nobody has closed.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use crate::exit::Failure;
use crate::store::contract::OldReports;
use crate::time::Instant;

/// Reports of runs that began before $1, with the reason for which one stays; empty = nobody needs it.
macro_rules! old_reports {
    ($then:literal) => {
        sql!(
            "with old as (select p.run_id, r.started_at, octet_length(p.report_json) as bytes, case \
             when p.run_id in (select run_id from run_commits where reported_by = '') then 'untold' \
             when p.run_id = (select q.run_id from run_reports as q join runs as s on s.run_id = q.run_id \
             order by s.started_at desc, s.run_id desc limit 1) then 'newest' \
             when p.run_id in (select b.first_seen_run from breaks as b where b.resolved_run = '' \
             and not exists (select 1 from break_events as e where e.break_id = b.break_id \
             and e.what = 'closed' and e.evidence = b.evidence)) then 'open_break' \
             else '' end as stays \
             from run_reports as p join runs as r on r.run_id = p.run_id where r.started_at < $1) "
            $then
        )
    };
}

const HOW_MANY_REPORTS: Sql = old_reports!(
    "select stays, count(*) as reports, cast(sum(bytes) as bigint) as bytes from old \
     group by stays order by stays"
);

const WHICH_REPORTS: Sql =
    old_reports!("select run_id from old where stays = '' order by started_at, run_id limit $2");

const NOTE_AT_RUNS: Sql = sql!("update runs set report_pruned_at = $2 where run_id " [in 1]);

const FORGET_REPORTS: Sql = sql!("delete from run_reports where run_id " [in 1]);

/// What there is, and why some of it stays.
pub(super) async fn old_reports(
    session: &mut impl Engine,
    before: Instant,
) -> Result<OldReports, Failure> {
    let mut found = OldReports::default();
    for row in session
        .rows("counting reports", HOW_MANY_REPORTS, &[before.0.into()])
        .await?
    {
        let reports = row.int("reports")?.unsigned_abs();
        match row.text("stays")?.as_str() {
            "untold" => found.untold = reports,
            "newest" => found.newest = reports,
            "open_break" => found.of_open_breaks = reports,
            _ => {
                found.prunable = reports;
                found.prunable_bytes = row.int("bytes")?.unsigned_abs();
            }
        }
    }
    Ok(found)
}

/// Forgets at most so many reports.
pub(super) async fn prune(
    session: &mut impl Engine,
    before: Instant,
    at: Instant,
    limit: u32,
) -> Result<u64, Failure> {
    let doing = "forgetting reports";
    let limit = i64::from(limit);
    let found = session
        .rows(doing, WHICH_REPORTS, &[before.0.into(), limit.into()])
        .await?;
    let ids = found
        .iter()
        .map(|row| row.text("run_id"))
        .collect::<Result<Vec<String>, Failure>>()?;
    if ids.is_empty() {
        return Ok(0);
    }
    session
        .write(doing, NOTE_AT_RUNS, &[keys(&ids), at.0.into()])
        .await?;
    session.write(doing, FORGET_REPORTS, &[keys(&ids)]).await
}
