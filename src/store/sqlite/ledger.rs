//! The ledger of repairs as it stands: lists, single repairs with their events, and a person's word on them.

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use super::bulk::list;
use super::failure::Doing;
use super::intents::Writing;
use super::packed::word;
use super::repairs::{carry_out_one, event};
use crate::exit::Failure;
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::money::{Currency, Money};
use crate::store::contract::{Decision, Event, Note, RepairDetail, RepairFilter, Unconfirmed};
use crate::time::Instant;

/// Repairs with their present state: that of their last event.
macro_rules! repairs_where {
    ($condition:literal) => {
        concat!(
            "select r.repair_id, r.break_id, r.source, r.account, r.class, r.action, r.scope, ",
            "r.intent_id, r.operation_id, r.from_status, r.from_processor_ref, r.to_kind, ",
            "r.to_status, r.to_processor_ref, r.to_parent_intent_id, r.to_amount_minor, ",
            "r.to_currency, r.planned_version, r.occurred_at, r.evidence, r.run_id, r.written_at, ",
            "(select e.state from repair_events as e where e.repair_id = r.repair_id ",
            "order by e.event_no desc limit 1) as state from repairs as r where ",
            $condition,
            " order by r.written_at, r.repair_id"
        )
    };
}

const REPAIRS_BY_FILTER: &str = repairs_where!(
    "(?1 = '[]' or r.source in (select value from json_each(?1))) \
     and (?2 = '' or r.break_id = ?2) and (?3 = '' or r.run_id = ?3)"
);

const REPAIRS_BY_PREFIX: &str = repairs_where!("r.repair_id >= ?1 and r.repair_id < ?1 || '~'");

const EVENTS_OF_A_REPAIR: &str = "\
    select state, done_at, done_by, run_id, note from repair_events where repair_id = ?1 \
    order by event_no";

const UNCONFIRMED: &str = "\
    select count(*), min(e.done_at) from repairs as r \
    join repair_events as e on e.repair_id = r.repair_id and e.event_no = \
    (select max(event_no) from repair_events where repair_id = r.repair_id) \
    where r.scope = ?1 and e.state = 'applied'";

/// Applied repairs that no import has shown.
pub(super) async fn unconfirmed(
    connection: &mut SqliteConnection,
    scope: &str,
) -> Result<Unconfirmed, Failure> {
    let (count, oldest_at): (u32, Option<i64>) = sqlx::query_as(UNCONFIRMED)
        .bind(scope)
        .fetch_one(connection)
        .await
        .doing("reading repairs")?;
    Ok(Unconfirmed {
        count: u64::from(count),
        oldest_at: oldest_at.map(Instant),
    })
}

/// Repairs by filter.
pub(super) async fn filtered(
    connection: &mut SqliteConnection,
    filter: &RepairFilter<'_>,
) -> Result<Vec<RepairDetail>, Failure> {
    let rows = sqlx::query(REPAIRS_BY_FILTER)
        .bind(list(filter.sources))
        .bind(filter.break_id)
        .bind(filter.run_id)
        .fetch_all(connection)
        .await
        .doing("reading repairs")?;
    let mut found = Vec::new();
    for row in &rows {
        let detail = read(row)?;
        if (filter.states.is_empty() || filter.states.contains(&detail.item.state))
            && detail.item.id.starts_with(filter.id_prefix)
        {
            found.push(detail);
        }
    }
    Ok(found)
}

fn read(row: &SqliteRow) -> Result<RepairDetail, Failure> {
    let text = |column: &str| row.try_get::<String, _>(column).doing("reading repairs");
    let int = |column: &str| row.try_get::<i64, _>(column).doing("reading repairs");
    let status = |column: &str| word(column, &text(column)?, IntentStatus::from_word);
    let from = if text("from_status")?.is_empty() {
        None
    } else {
        Some(RepairSide {
            kind: None,
            status: status("from_status")?,
            processor_ref: text("from_processor_ref")?,
            parent_intent_id: String::new(),
            money: None,
        })
    };
    let money = match row
        .try_get::<Option<i64>, _>("to_amount_minor")
        .doing("reading repairs")?
    {
        None => None,
        Some(minor) => Some(Money::new(
            minor,
            word("to_currency", &text("to_currency")?, Currency::parse)?,
        )),
    };
    let kind = match text("to_kind")?.as_str() {
        "" => None,
        kind => Some(word("to_kind", kind, IntentKind::from_word)?),
    };
    Ok(RepairDetail {
        item: Repair {
            id: text("repair_id")?,
            break_id: text("break_id")?,
            source: text("source")?,
            class: word("class", &text("class")?, BreakClass::from_word)?,
            action: word("action", &text("action")?, RepairAction::from_word)?,
            intent_id: text("intent_id")?,
            operation_id: text("operation_id")?,
            account: text("account")?,
            from,
            to: RepairSide {
                kind,
                status: status("to_status")?,
                processor_ref: text("to_processor_ref")?,
                parent_intent_id: text("to_parent_intent_id")?,
                money,
            },
            planned_version: row.try_get("planned_version").doing("reading repairs")?,
            state: word("state", &text("state")?, RepairState::from_word)?,
            occurred_at: Instant(int("occurred_at")?),
        },
        scope: text("scope")?,
        run_id: text("run_id")?,
        written_at: Instant(int("written_at")?),
        evidence: text("evidence")?,
        events: Vec::new(),
    })
}

/// One repair with its events.
pub(super) async fn detail(
    connection: &mut SqliteConnection,
    id_prefix: &str,
) -> Result<RepairDetail, Failure> {
    let mut rows = sqlx::query(REPAIRS_BY_PREFIX)
        .bind(id_prefix)
        .fetch_all(&mut *connection)
        .await
        .doing("reading repairs")?;
    let mut detail = super::only_one("repair", id_prefix, &mut rows).and_then(|row| read(&row))?;
    let events: Vec<(String, i64, String, String, String)> = sqlx::query_as(EVENTS_OF_A_REPAIR)
        .bind(&detail.item.id)
        .fetch_all(connection)
        .await
        .doing("reading repairs")?;
    detail.events = events
        .into_iter()
        .map(|(what, at, by, run_id, note)| Event {
            what,
            at: Instant(at),
            by,
            run_id,
            note,
            closed_as: None,
            until: None,
            evidence: String::new(),
        })
        .collect();
    Ok(detail)
}

/// Records a person's word on a proposal.
pub(super) async fn decide(
    connection: &mut SqliteConnection,
    id_prefix: &str,
    decision: Decision,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let doing = "recording a decision";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    let found = detail(&mut transaction, id_prefix).await?;
    let next = match (decision, found.item.state) {
        (Decision::Approve, RepairState::Proposed) => RepairState::Approved,
        (Decision::Reject, RepairState::Proposed | RepairState::Approved) => RepairState::Rejected,
        (_, state) => {
            return Err(Failure::rejected(format!(
                "repair {} is {state}; that cannot be decided any more",
                found.item.id
            )));
        }
    };
    event(&mut transaction, &found.item.id, next, note).await?;
    let after = detail(&mut transaction, &found.item.id).await?;
    transaction.commit().await.doing(doing)?;
    Ok(after)
}

/// Applies an approved repair.
pub(super) async fn apply(
    connection: &mut SqliteConnection,
    id_prefix: &str,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let doing = "applying a repair";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    let found = detail(&mut transaction, id_prefix).await?;
    if found.item.state != RepairState::Approved {
        return Err(Failure::rejected(format!(
            "repair {} is {}; only an approved one is applied",
            found.item.id, found.item.state
        )));
    }
    let writing = Writing {
        scope: &found.scope,
        run_id: "",
        at: note.at,
    };
    carry_out_one(&mut transaction, writing, &found.item, note).await?;
    let after = detail(&mut transaction, &found.item.id).await?;
    transaction.commit().await.doing(doing)?;
    Ok(after)
}
