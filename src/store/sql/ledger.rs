//! The ledger of repairs as it stands: lists, single repairs with their events, and a person's word on them.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use super::intents::Writing;
use super::repairs::{carry_out_one, event};
use crate::exit::Failure;
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::money::{Currency, Money};
use crate::store::contract::{Decision, Event, Note, RepairDetail, RepairFilter, Unconfirmed};
use crate::store::rows::{maybe_word, narrow, word};
use crate::time::Instant;

/// Repairs with their present state: that of their last event.
macro_rules! repairs_where {
    ($($condition:tt)+) => {
        sql!(
            "select r.repair_id, r.break_id, r.source, r.account, r.class, r.action, r.scope, \
             r.intent_id, r.operation_id, r.from_status, r.from_processor_ref, r.to_kind, \
             r.to_status, r.to_processor_ref, r.to_parent_intent_id, r.to_amount_minor, \
             r.to_currency, r.planned_version, r.occurred_at, r.evidence, r.run_id, r.written_at, \
             (select e.state from repair_events as e where e.repair_id = r.repair_id \
             order by e.event_no desc limit 1) as state from repairs as r where "
            $($condition)+
            " order by r.written_at, r.repair_id"
        )
    };
}

const REPAIRS_BY_FILTER: Sql = repairs_where!(
    "(" [is_empty 1] " or r.source " [in 1] ") \
     and ($2 = '' or r.break_id = $2) and ($3 = '' or r.run_id = $3)"
);

const REPAIRS_BY_PREFIX: Sql = repairs_where!("r.repair_id >= $1 and r.repair_id < $1 || '~'");

const EVENTS_OF_A_REPAIR: Sql = sql!(
    "select state, done_at, done_by, run_id, note from repair_events where repair_id = $1 \
    order by event_no"
);

const UNCONFIRMED: Sql = sql!(
    "select count(*) as repairs, min(e.done_at) as oldest_at from repairs as r \
    join repair_events as e on e.repair_id = r.repair_id and e.event_no = \
    (select max(event_no) from repair_events where repair_id = r.repair_id) \
    where r.scope = $1 and e.state = 'applied'"
);

/// Applied repairs that no import has shown.
pub(super) async fn unconfirmed(
    session: &mut impl Engine,
    scope: &str,
) -> Result<Unconfirmed, Failure> {
    let row = session
        .one("reading repairs", UNCONFIRMED, &[scope.into()])
        .await?;
    Ok(Unconfirmed {
        count: row.int("repairs")?.unsigned_abs(),
        oldest_at: row.maybe("oldest_at")?.map(Instant),
    })
}

/// Repairs by filter.
pub(super) async fn filtered(
    session: &mut impl Engine,
    filter: &RepairFilter<'_>,
) -> Result<Vec<RepairDetail>, Failure> {
    let rows = session
        .rows(
            "reading repairs",
            REPAIRS_BY_FILTER,
            &[
                keys(filter.sources),
                filter.break_id.into(),
                filter.run_id.into(),
            ],
        )
        .await?;
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

fn read(row: &impl Columns) -> Result<RepairDetail, Failure> {
    let text = |column: &str| row.text(column);
    let int = |column: &str| row.int(column);
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
    let money = match row.maybe("to_amount_minor")? {
        None => None,
        Some(minor) => Some(Money::new(
            minor,
            word("to_currency", &text("to_currency")?, Currency::parse)?,
        )),
    };
    let kind = maybe_word("to_kind", &text("to_kind")?, IntentKind::from_word)?;
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
            planned_version: narrow("planned_version", int("planned_version")?)?,
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
    session: &mut impl Engine,
    id_prefix: &str,
) -> Result<RepairDetail, Failure> {
    let mut rows = session
        .rows("reading repairs", REPAIRS_BY_PREFIX, &[id_prefix.into()])
        .await?;
    let mut detail = super::only_one("repair", id_prefix, &mut rows).and_then(|row| read(&row))?;
    let events = session
        .rows(
            "reading repairs",
            EVENTS_OF_A_REPAIR,
            &[(&detail.item.id).into()],
        )
        .await?;
    detail.events = events
        .iter()
        .map(|row| {
            Ok(Event {
                what: row.text("state")?,
                at: Instant(row.int("done_at")?),
                by: row.text("done_by")?,
                run_id: row.text("run_id")?,
                note: row.text("note")?,
                closed_as: None,
                until: None,
                evidence: String::new(),
            })
        })
        .collect::<Result<_, Failure>>()?;
    // Somebody may have taken a step since the row was read: state and number of steps are of one moment.
    if let Some(last) = detail.events.last() {
        detail.item.state = word("state", &last.what, RepairState::from_word)?;
    }
    Ok(detail)
}

/// Records a person's word on a proposal.
pub(super) async fn decide(
    session: &mut impl Engine,
    id_prefix: &str,
    decision: Decision,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let found = detail(session, id_prefix).await?;
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
    event(session, &found, next, note).await?;
    detail(session, &found.item.id).await
}

/// Applies an approved repair.
pub(super) async fn apply(
    session: &mut impl Engine,
    id_prefix: &str,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let found = detail(session, id_prefix).await?;
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
    carry_out_one(session, writing, &found, note).await?;
    detail(session, &found.item.id).await
}
