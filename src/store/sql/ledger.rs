//! The ledger of repairs as it stands: lists, single repairs with their events, and a person's word on them.

use std::collections::HashMap;

use super::chain::{self, Added};
use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use super::intents::Writing;
use super::repairs::{add, carry_out_one, event};
use crate::exit::{Exit, Failure};
use crate::meter::Meter;
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
             r.expires_at, r.idempotency_key, \
             (select e.state from repair_events as e where e.repair_id = r.repair_id \
             order by e.event_no desc limit 1) as state, \
             (select e.note from repair_events as e where e.repair_id = r.repair_id \
             order by e.event_no limit 1) as note from repairs as r where "
            $($condition)+
            " order by r.written_at, r.repair_id"
        )
    };
}

const REPAIRS_BY_FILTER: Sql = repairs_where!(
    "(" [is_empty 1] " or r.source " [in 1] ") \
     and ($2 = '' or r.break_id = $2) and ($3 = '' or r.run_id = $3)"
);

const CLAIMED_REPAIRS: Sql = repairs_where!(
    "(" [is_empty 1] " or r.source " [in 1] ") \
     and r.repair_id in (select repair_id from repair_claims where locked_until is not null)"
);

const REPAIRS_BY_PREFIX: Sql = repairs_where!("r.repair_id >= $1 and r.repair_id < $1 || '~'");

const EVENTS_OF_A_REPAIR: Sql = sql!(
    "select state, done_at, done_by, run_id, note from repair_events where repair_id = $1 \
    order by event_no"
);

const WHO_STARTED: Sql = sql!("select started_by from runs where run_id = $1");

const INTENT_AS_IT_STANDS: Sql = sql!(
    "select status, processor_ref, version from intents where scope = $1 and intent_id = $2 \
    and superseded_by = ''" for_update
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

/// Repairs that are on their way.
pub(super) async fn claimed(
    session: &mut impl Engine,
    sources: &[&str],
) -> Result<Vec<RepairDetail>, Failure> {
    session
        .rows("reading repairs", CLAIMED_REPAIRS, &[keys(sources)])
        .await?
        .iter()
        .map(read)
        .collect()
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
            note: text("note")?,
            expires_at: row.maybe("expires_at")?.map(Instant),
            idempotency_key: text("idempotency_key")?,
        },
        scope: text("scope")?,
        run_id: text("run_id")?,
        written_at: Instant(int("written_at")?),
        evidence: text("evidence")?,
        proposed_by: String::new(),
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
    detail.proposed_by = author(session, &detail).await?;
    Ok(detail)
}

/// Who is answerable for a proposal: the person who wrote it, or who started the run that did; empty = nobody is named.
async fn author(session: &mut impl Engine, found: &RepairDetail) -> Result<String, Failure> {
    let by = found.events.first().map_or("", |event| event.by.as_str());
    if !by.is_empty() || found.run_id.is_empty() {
        return Ok(by.to_owned());
    }
    let row = session
        .first("reading runs", WHO_STARTED, &[(&found.run_id).into()])
        .await?;
    row.map_or(Ok(String::new()), |row| row.text("started_by"))
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
        // What failed for a reason that is gone may be tried again; the row is compared again as well.
        (
            Decision::Approve | Decision::ApproveAsOther,
            RepairState::Proposed | RepairState::Failed,
        ) => RepairState::Approved,
        (Decision::Reject, RepairState::Proposed | RepairState::Approved) => RepairState::Rejected,
        (_, state) => {
            return Err(Failure::rejected(format!(
                "repair {} is {state}; that cannot be decided any more",
                found.item.id
            )));
        }
    };
    if next == RepairState::Approved && found.item.expires_at.is_some_and(|until| until <= note.at)
    {
        return Err(Failure::rejected(format!(
            "repair {} is void: it could be sent again until {}",
            found.item.id,
            found.item.expires_at.unwrap_or(note.at)
        ))
        .why("the processor may not recognise the key any more, and would take the money a second time")
        .remedy("look the payment up at the processor by its reference"));
    }
    if decision == Decision::ApproveAsOther && found.proposed_by == note.by {
        return Err(Failure::new(
            Exit::Denied,
            format!(
                "repair {} was proposed by {}, who may not approve it",
                found.item.id, note.by
            ),
        )
        .why("[repair] four_eyes = true")
        .remedy("let somebody else approve it"));
    }
    let mut added = Added::default();
    event(session, &found, next, note, "", &mut added).await?;
    chain::append(session, &added).await?;
    detail(session, &found.item.id).await
}

/// Applies an approved repair.
pub(super) async fn apply(
    session: &mut impl Engine,
    id_prefix: &str,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let found = detail(session, id_prefix).await?;
    if found.item.action == RepairAction::Redrive {
        return Err(sent_by_others(&found.item.id));
    }
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
        meter: &Meter::default(),
    };
    let mut added = Added::default();
    carry_out_one(session, writing, &found, note, &mut added).await?;
    chain::append(session, &added).await?;
    detail(session, &found.item.id).await
}

/// There is nothing here to be written.
fn sent_by_others(id: &str) -> Failure {
    Failure::rejected(format!(
        "repair {id} is sent by your own software, never from here"
    ))
    .remedy(
        "send the same request under the same key before it expires; a run sees what came of it",
    )
}

/// Proposes the inverse of a repair that was applied: the row as it was before. It is planned against the version that
/// the repair left behind, so that a row that changed since is not overwritten.
pub(super) async fn revert(
    session: &mut impl Engine,
    id_prefix: &str,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let doing = "proposing a repair";
    let found = detail(session, id_prefix).await?;
    if !matches!(
        found.item.state,
        RepairState::Applied | RepairState::Confirmed
    ) {
        return Err(Failure::rejected(format!(
            "repair {} is {}; only one that was applied can be taken back",
            found.item.id, found.item.state
        )));
    }
    let values = [(&found.scope).into(), (&found.item.intent_id).into()];
    let row = session.first(doing, INTENT_AS_IT_STANDS, &values).await?;
    let present = match &row {
        Some(row) => Some((
            word("status", &row.text("status")?, IntentStatus::from_word)?,
            row.text("processor_ref")?,
            narrow("version", row.int("version")?)?,
        )),
        None => None,
    };
    let left_behind = &found.item.to;
    let version = match present {
        Some((status, processor_ref, version))
            if status == left_behind.status && processor_ref == left_behind.processor_ref =>
        {
            version
        }
        _ => {
            return Err(Failure::rejected(format!(
                "{} is not as repair {} left it, so there is nothing to take back",
                found.item.intent_id, found.item.id
            ))
            .remedy("correct the row where it comes from"));
        }
    };
    let side = |status, processor_ref: &str| RepairSide {
        kind: None,
        status,
        processor_ref: processor_ref.to_owned(),
        parent_intent_id: String::new(),
        money: None,
    };
    let from = side(left_behind.status, &left_behind.processor_ref);
    let to = match &found.item.from {
        Some(before) => side(before.status, &before.processor_ref),
        // A row that was recorded stays in the record, and claims nothing any more.
        None => side(IntentStatus::Canceled, &left_behind.processor_ref),
    };
    let version_text = u32::to_string(&version);
    let inverse = Repair {
        id: crate::reconcile::fingerprint(&["inverse", &found.item.id, &version_text]),
        action: if found.item.action == RepairAction::Link {
            RepairAction::Link
        } else {
            RepairAction::SetStatus
        },
        from: Some(from),
        to,
        planned_version: version,
        state: RepairState::Proposed,
        note: format!("takes back {}: {}", found.item.id, note.reason),
        ..found.item.clone()
    };
    let known = session
        .first(doing, EVENTS_OF_A_REPAIR, &[(&inverse.id).into()])
        .await?;
    if known.is_some() {
        return Err(Failure::rejected(format!(
            "repair {} takes it back already",
            inverse.id
        )));
    }
    let writing = Writing {
        scope: &found.scope,
        run_id: "",
        at: note.at,
        meter: &Meter::default(),
    };
    let evidence = HashMap::from([(inverse.break_id.as_str(), found.evidence.as_str())]);
    add(session, writing, &[&inverse], &evidence).await?;
    let written = RepairDetail {
        item: inverse.clone(),
        events: Vec::new(),
        ..found
    };
    let mut added = Added::default();
    let said = Note {
        reason: &inverse.note,
        ..*note
    };
    event(
        session,
        &written,
        RepairState::Proposed,
        &said,
        "",
        &mut added,
    )
    .await?;
    chain::append(session, &added).await?;
    detail(session, &inverse.id).await
}
