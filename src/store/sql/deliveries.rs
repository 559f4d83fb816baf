//! Which steps of repairs a channel has taken.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use super::ledger;
use crate::exit::{Exit, Failure};
use crate::model::repair::RepairState;
use crate::store::contract::{RepairDetail, RepairStep};
use crate::store::rows::word;
use crate::time::Instant;

const BEGIN_CHANNEL: Sql =
    sql!("insert into delivery_channels (channel, since) values ($1, $2) on conflict do nothing");

const UNDELIVERED: Sql = sql!(
    "select e.repair_id, e.event_no from repair_events as e \
     join repairs as r on r.repair_id = e.repair_id \
     join delivery_channels as c on c.channel = $2 \
     where r.source " [in 1] " and e.done_at >= c.since \
     and e.state in ('proposed', 'approved', 'applied', 'rejected', 'failed', 'superseded') \
     and not exists (select 1 from repair_deliveries as d where d.channel = $2 \
     and d.repair_id = e.repair_id and d.event_no = e.event_no) \
     order by e.done_at, e.repair_id, e.event_no limit $3"
);

const DELIVERED: Sql = sql!(
    "insert into repair_deliveries (channel, repair_id, event_no, run_id, delivered_at) \
     values ($1, $2, $3, $4, $5) on conflict do nothing"
);

/// Steps that a channel has not taken yet, each with its repair as it was then.
pub(super) async fn undelivered(
    session: &mut impl Engine,
    channel: &str,
    sources: &[&str],
    now: Instant,
    limit: u32,
) -> Result<Vec<RepairStep>, Failure> {
    let doing = "looking for news";
    let begin = [channel.into(), now.0.into()];
    session.write(doing, BEGIN_CHANNEL, &begin).await?;
    let values = [keys(sources), channel.into(), i64::from(limit).into()];
    let mut steps = Vec::new();
    for row in session.rows(doing, UNDELIVERED, &values).await? {
        let detail = ledger::detail(session, &row.text("repair_id")?).await?;
        steps.push(step(detail, row.int("event_no")?)?);
    }
    Ok(steps)
}

/// Steps are numbered from one.
fn step(mut repair: RepairDetail, event_no: i64) -> Result<RepairStep, Failure> {
    let at = usize::try_from(event_no - 1).ok();
    let Some(event) = at.and_then(|at| repair.events.get(at)).cloned() else {
        let what = format!("step {event_no} of repair {} is not there", repair.item.id);
        return Err(Failure::new(Exit::Internal, what));
    };
    repair.item.state = word("state", &event.what, RepairState::from_word)?;
    Ok(RepairStep {
        repair,
        event_no,
        event,
    })
}

/// A channel has taken a step.
pub(super) async fn delivered(
    session: &mut impl Engine,
    channel: &str,
    step: &RepairStep,
    run_id: &str,
    at: Instant,
) -> Result<(), Failure> {
    let values = [
        channel.into(),
        (&step.repair.item.id).into(),
        step.event_no.into(),
        run_id.into(),
        at.0.into(),
    ];
    session
        .write("recording a delivery", DELIVERED, &values)
        .await
        .map(|_| ())
}
