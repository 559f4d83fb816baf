//! Repairs as a run or a person carries them out: each written once, every step an event, every write to an intent
//! compare-and-set.

use sqlx::SqliteConnection;

use super::bulk::{KEYS_MAX, list};
use super::failure::Doing;
use super::intents::{KEEP_PLANNED_VERSION, Writing};
use super::packed::word;
use crate::exit::{Exit, Failure};
use crate::model::intent::IntentKind;
use crate::model::repair::{Repair, RepairAction, RepairState};
use crate::model::verdict::Rule;
use crate::store::contract::Note;
use crate::time::Instant;

const PRESENT_STATE: &str = "\
    select state from repair_events where repair_id = ?1 order by event_no desc limit 1";

const ADD_REPAIR: &str = "\
    insert into repairs (repair_id, break_id, source, account, class, action, scope, intent_id, \
    operation_id, from_status, from_processor_ref, to_kind, to_status, to_processor_ref, \
    to_parent_intent_id, to_amount_minor, to_currency, planned_version, occurred_at, evidence, \
    run_id, written_at) \
    values (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, \
    ?20, ?21, ?22) on conflict do nothing";

const ADD_EVENT: &str = "\
    insert into repair_events (repair_id, event_no, state, done_at, done_by, run_id, note) \
    select ?1, 1 + (select coalesce(max(event_no), 0) from repair_events where repair_id = ?1), \
    ?2, ?3, ?4, ?5, ?6";

const SET_STATUS_AND_REF: &str = "\
    update intents set status = ?3, processor_ref = ?4, version = version + 1, run_id = ?5 \
    where scope = ?1 and intent_id = ?2 and version = ?6 and superseded_by = ''";

const RECORD_INTENT: &str = "\
    insert into intents (scope, intent_id, idempotency_key, kind, amount_minor, currency, status, \
    created_at, processor_ref, attempt, parent_intent_id, reference, source, first_attempt_at, \
    written_amount, invalid, is_recorded, version, imported_status, imported_processor_ref, \
    superseded_by, run_id) \
    values (?1, ?2, '', ?3, ?4, ?5, ?6, ?7, ?8, null, ?9, '', ?10, null, '', '', 1, 1, '', '', '', \
    ?11) on conflict do nothing";

const LINK_RECORDED: &str = "\
    insert into matches (source, operation_id, account, scope, intent_id, rule, is_principal, run_id) \
    values (?1, ?2, ?3, ?4, ?5, ?6, 1, ?7) on conflict do nothing";

/// Moves every repair whose present state is among the listed ones on to another state.
macro_rules! move_on_where {
    ($condition:literal) => {
        concat!(
            "insert into repair_events (repair_id, event_no, state, done_at, done_by, run_id, note) ",
            "select r.repair_id, e.event_no + 1, ?2, ?3, '', ?4, ?5 from repairs as r ",
            "join repair_events as e on e.repair_id = r.repair_id ",
            "and e.event_no = (select max(event_no) from repair_events ",
            "where repair_id = r.repair_id) where ",
            $condition
        )
    };
}

const CONFIRM: &str = move_on_where!(
    "r.scope = ?6 and r.intent_id in (select value from json_each(?1)) and e.state = 'applied'"
);

const VOID_PROPOSALS_OF_BREAKS: &str = move_on_where!(
    "r.break_id in (select value from json_each(?1)) and e.state in ('proposed', 'approved')"
);

const VOID_OLDER_PROPOSALS: &str =
    move_on_where!("r.break_id = ?1 and r.repair_id <> ?6 and e.state in ('proposed', 'approved')");

/// What became of a repair that a commit brought.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// It stands in the state it was brought in.
    AsPlanned,
    /// Its row had changed; it stands as failed.
    Conflict,
    /// The ledger knows it, and it stays as it is.
    Held,
}

/// Writes a repair and, when it is brought as applied, what it does.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    repair: &Repair,
    evidence: &str,
) -> Result<Written, Failure> {
    let known = present_state(connection, &repair.id).await?;
    match (known, repair.state) {
        (None, RepairState::Proposed | RepairState::Applied)
        | (Some(RepairState::Proposed | RepairState::Approved), RepairState::Applied) => {}
        (Some(_), RepairState::Proposed | RepairState::Applied) => return Ok(Written::Held),
        (_, other) => {
            return Err(Failure::new(
                Exit::Internal,
                format!("repair {} was to be written as {other}", repair.id),
            ));
        }
    }
    if known.is_none() {
        add(connection, writing, repair, evidence).await?;
    }
    let void = (VOID_OLDER_PROPOSALS, "a newer repair took its place");
    sqlx::query(void.0)
        .bind(&repair.break_id)
        .bind(RepairState::Superseded.as_str())
        .bind(writing.at.0)
        .bind(writing.run_id)
        .bind(void.1)
        .bind(&repair.id)
        .execute(&mut *connection)
        .await
        .doing("writing repairs")?;
    let note = Note {
        reason: "",
        by: "",
        at: writing.at,
    };
    if repair.state == RepairState::Proposed {
        event(
            connection,
            &repair.id,
            RepairState::Proposed,
            &note,
            writing.run_id,
        )
        .await?;
        return Ok(Written::AsPlanned);
    }
    carry_out(connection, writing, repair, &note).await
}

/// Does what a repair says and records how it went.
pub(super) async fn carry_out(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    repair: &Repair,
    note: &Note<'_>,
) -> Result<Written, Failure> {
    let is_done = match repair.action {
        RepairAction::SetStatus | RepairAction::Link => set(connection, writing, repair).await?,
        RepairAction::RecordRefund | RepairAction::RecordDispute => {
            record(connection, writing, repair).await?
        }
    };
    if is_done {
        event(
            connection,
            &repair.id,
            RepairState::Applied,
            note,
            writing.run_id,
        )
        .await?;
        return Ok(Written::AsPlanned);
    }
    let failed = Note {
        reason: "the row had changed since it was read; nothing was overwritten",
        ..*note
    };
    event(
        connection,
        &repair.id,
        RepairState::Failed,
        &failed,
        writing.run_id,
    )
    .await?;
    Ok(Written::Conflict)
}

async fn set(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    repair: &Repair,
) -> Result<bool, Failure> {
    let doing = "applying repairs";
    sqlx::query(KEEP_PLANNED_VERSION)
        .bind(writing.scope)
        .bind(&repair.intent_id)
        .bind(writing.run_id)
        .bind(writing.at.0)
        .bind("repair")
        .bind(repair.planned_version)
        .execute(&mut *connection)
        .await
        .doing(doing)?;
    let changed = sqlx::query(SET_STATUS_AND_REF)
        .bind(writing.scope)
        .bind(&repair.intent_id)
        .bind(repair.to.status.as_str())
        .bind(&repair.to.processor_ref)
        .bind(writing.run_id)
        .bind(repair.planned_version)
        .execute(&mut *connection)
        .await
        .doing(doing)?;
    Ok(changed.rows_affected() == 1)
}

async fn record(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    repair: &Repair,
) -> Result<bool, Failure> {
    let doing = "applying repairs";
    let (Some(kind), Some(money)) = (repair.to.kind, repair.to.money) else {
        return Err(Failure::new(
            Exit::Internal,
            format!("repair {} records a row without kind or amount", repair.id),
        ));
    };
    let added = sqlx::query(RECORD_INTENT)
        .bind(writing.scope)
        .bind(&repair.intent_id)
        .bind(kind.as_str())
        .bind(money.minor)
        .bind(money.currency.as_str())
        .bind(repair.to.status.as_str())
        .bind(repair.occurred_at.0)
        .bind(&repair.to.processor_ref)
        .bind(&repair.to.parent_intent_id)
        .bind(&repair.source)
        .bind(writing.run_id)
        .execute(&mut *connection)
        .await
        .doing(doing)?;
    if added.rows_affected() == 0 {
        return Ok(false);
    }
    let rule = if repair.to.processor_ref.is_empty() {
        Rule::Parent
    } else {
        Rule::ProcessorRef
    };
    sqlx::query(LINK_RECORDED)
        .bind(&repair.source)
        .bind(&repair.operation_id)
        .bind(&repair.account)
        .bind(writing.scope)
        .bind(&repair.intent_id)
        .bind(rule.as_str())
        .bind(writing.run_id)
        .execute(connection)
        .await
        .doing(doing)?;
    Ok(true)
}

async fn add(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    repair: &Repair,
    evidence: &str,
) -> Result<(), Failure> {
    let from = repair.from.as_ref();
    let to = &repair.to;
    sqlx::query(ADD_REPAIR)
        .bind(&repair.id)
        .bind(&repair.break_id)
        .bind(&repair.source)
        .bind(&repair.account)
        .bind(repair.class.as_str())
        .bind(repair.action.as_str())
        .bind(writing.scope)
        .bind(&repair.intent_id)
        .bind(&repair.operation_id)
        .bind(from.map_or("", |side| side.status.as_str()))
        .bind(from.map_or("", |side| side.processor_ref.as_str()))
        .bind(to.kind.map_or("", IntentKind::as_str))
        .bind(to.status.as_str())
        .bind(&to.processor_ref)
        .bind(&to.parent_intent_id)
        .bind(to.money.map(|money| money.minor))
        .bind(
            to.money
                .as_ref()
                .map_or("", |money| money.currency.as_str()),
        )
        .bind(repair.planned_version)
        .bind(repair.occurred_at.0)
        .bind(evidence)
        .bind(writing.run_id)
        .bind(writing.at.0)
        .execute(connection)
        .await
        .doing("writing repairs")?;
    Ok(())
}

/// Appends a step.
pub(super) async fn event(
    connection: &mut SqliteConnection,
    repair_id: &str,
    state: RepairState,
    note: &Note<'_>,
    run_id: &str,
) -> Result<(), Failure> {
    sqlx::query(ADD_EVENT)
        .bind(repair_id)
        .bind(state.as_str())
        .bind(note.at.0)
        .bind(note.by)
        .bind(run_id)
        .bind(note.reason)
        .execute(connection)
        .await
        .doing("writing repairs")?;
    Ok(())
}

async fn present_state(
    connection: &mut SqliteConnection,
    repair_id: &str,
) -> Result<Option<RepairState>, Failure> {
    let state: Option<String> = sqlx::query_scalar(PRESENT_STATE)
        .bind(repair_id)
        .fetch_optional(connection)
        .await
        .doing("reading repairs")?;
    state
        .map(|state| word("state", &state, RepairState::from_word))
        .transpose()
}

/// Marks applied repairs of these intents as confirmed.
pub(super) async fn confirm<T: AsRef<str>>(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    intent_ids: &[T],
) -> Result<(), Failure> {
    for chunk in intent_ids.chunks(KEYS_MAX) {
        sqlx::query(CONFIRM)
            .bind(list(chunk))
            .bind(RepairState::Confirmed.as_str())
            .bind(writing.at.0)
            .bind(writing.run_id)
            .bind("an import shows the same")
            .bind(writing.scope)
            .execute(&mut *connection)
            .await
            .doing("confirming repairs")?;
    }
    Ok(())
}

/// Voids proposals whose break was resolved.
pub(super) async fn void(
    connection: &mut SqliteConnection,
    run_id: &str,
    at: Instant,
    break_ids: &[String],
) -> Result<(), Failure> {
    for chunk in break_ids.chunks(KEYS_MAX) {
        sqlx::query(VOID_PROPOSALS_OF_BREAKS)
            .bind(list(chunk))
            .bind(RepairState::Superseded.as_str())
            .bind(at.0)
            .bind(run_id)
            .bind("its break was resolved")
            .execute(&mut *connection)
            .await
            .doing("voiding proposals")?;
    }
    Ok(())
}
