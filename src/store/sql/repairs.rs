//! Repairs as a run or a person carries them out: each written once, every step an event, every write to an intent
//! compare-and-set.

use std::collections::{HashMap, HashSet};

use super::chain::Added;
use super::dialect::{Bulk, Sql, sql};
use super::engine::{Columns, Engine, KEYS_MAX, Values, keys};
use super::intents::{KEEP_PLANNED_VERSIONS, Writing};
use super::redrives;
use crate::exit::{Exit, Failure};
use crate::model::intent::IntentKind;
use crate::model::repair::{Repair, RepairAction, RepairState};
use crate::model::verdict::Rule;
use crate::store::contract::{Note, RepairDetail};
use crate::store::rows::word;
use crate::time::Instant;

const PRESENT_STATES: Sql = sql!(
    "select e.repair_id, e.state, e.event_no from repair_events as e where e.repair_id " [in 1] " \
    and e.event_no = (select max(event_no) from repair_events where repair_id = e.repair_id)"
);

const ADD_REPAIRS: Bulk = Bulk {
    into: "repairs (repair_id, break_id, source, account, class, action, scope, \
           intent_id, operation_id, from_status, from_processor_ref, to_kind, to_status, \
           to_processor_ref, to_parent_intent_id, to_amount_minor, to_currency, planned_version, \
           occurred_at, evidence, run_id, written_at, expires_at, idempotency_key)",
    columns: 24,
    tail: Sql::same("on conflict do nothing"),
    is_new: false,
};

const ADD_EVENTS: Bulk = Bulk {
    into: "repair_events (repair_id, event_no, state, done_at, done_by, run_id, note)",
    columns: 7,
    tail: Sql::same(""),
    is_new: false,
};

const SET_STATUS_AND_REF: Sql = sql!(
    "update intents set status = planned.value ->> 'status', \
    processor_ref = planned.value ->> 'processor_ref', version = version + 1, run_id = $3 \
    from " [planned 2] " where intents.intent_id = planned.value ->> 'intent_id' \
    and intents.scope = $1 and intents.version = cast(planned.value ->> 'version' as bigint) \
    and intents.superseded_by = '' returning intents.intent_id as intent_id"
);

const RECORD_INTENT: Sql = sql!(
    "insert into intents (scope, intent_id, idempotency_key, kind, amount_minor, currency, status, \
    created_at, processor_ref, attempt, parent_intent_id, reference, source, first_attempt_at, \
    written_amount, invalid, is_recorded, version, imported_status, imported_processor_ref, \
    superseded_by, run_id) \
    values ($1, $2, '', $3, $4, $5, $6, $7, $8, null, $9, '', $10, null, '', '', 1, 1, '', '', '', \
    $11) on conflict do nothing"
);

const LINK_RECORDED: Sql = sql!(
    "insert into matches (source, operation_id, account, scope, intent_id, rule, is_principal, run_id) \
    values ($1, $2, $3, $4, $5, $6, 1, $7) on conflict do nothing"
);

/// Moves every repair whose present state is among the listed ones on to another state.
macro_rules! move_on_where {
    ($($condition:tt)+) => {
        sql!(
            "insert into repair_events (repair_id, event_no, state, done_at, done_by, run_id, note) \
             select r.repair_id, e.event_no + 1, $2, $3, '', $4, $5 from repairs as r \
             join repair_events as e on e.repair_id = r.repair_id \
             and e.event_no = (select max(event_no) from repair_events \
             where repair_id = r.repair_id) where "
            $($condition)+
            " returning repair_id, event_no"
        )
    };
}

pub(super) use move_on_where;

const CONFIRM: Sql = move_on_where!(
    "r.scope = $6 and r.intent_id " [in 1] " and e.state = 'applied'"
);

const VOID_PROPOSALS_OF_BREAKS: Sql = move_on_where!(
    "r.break_id " [in 1] " and e.state in ('proposed', 'approved')"
);

const VOID_OLDER_PROPOSALS: Sql = move_on_where!(
    "r.break_id " [in 1] " \
     and r.repair_id " [not_in 6] " \
     and e.state in ('proposed', 'approved')"
);

/// What became of a repair that a commit brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// It stands in the state it was brought in.
    AsPlanned,
    /// Its row had changed; it stands as failed.
    Conflict,
    /// The ledger knows it, and it stays as it is.
    Held,
}

/// What the note of a failed repair says.
const ROW_HAD_CHANGED: &str = "the row had changed since it was read; nothing was overwritten";

/// Writes repairs and, where they are brought as applied, what they do. One answer for each.
pub(super) async fn write(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[Repair],
    evidence: &HashMap<&str, &str>,
    added: &mut Added,
) -> Result<Vec<Written>, Failure> {
    let mut written = Vec::with_capacity(repairs.len());
    for chunk in repairs.chunks(KEYS_MAX) {
        written.extend(write_chunk(session, writing, chunk, evidence, added).await?);
    }
    Ok(written)
}

async fn write_chunk(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[Repair],
    evidence: &HashMap<&str, &str>,
    added: &mut Added,
) -> Result<Vec<Written>, Failure> {
    let known = present_states(session, repairs).await?;
    let other = redrives::others(session, writing, repairs).await?;
    let mut moved: HashSet<&str> = HashSet::new();
    let mut written = vec![Written::Held; repairs.len()];
    let (mut new, mut moving) = (Vec::new(), Vec::new());
    for (index, repair) in repairs.iter().enumerate() {
        let present = known.get(repair.id.as_str()).map(|(state, _)| *state);
        // Were it brought twice, the second would be held.
        if other.forbid(repair) || !moves(present, repair)? || !moved.insert(repair.id.as_str()) {
            continue;
        }
        if present.is_none() {
            new.push(repair);
        }
        moving.push(index);
    }
    add(session, writing, &new, evidence).await?;
    let planned: Vec<&Repair> = moving.iter().map(|index| &repairs[*index]).collect();
    void_older(session, writing, &planned, added).await?;
    let to_apply: Vec<&Repair> = planned
        .iter()
        .copied()
        .filter(|repair| repair.state == RepairState::Applied)
        .collect();
    let failed = carry_out(session, writing, &to_apply).await?;
    for index in &moving {
        written[*index] = if failed.contains(repairs[*index].id.as_str()) {
            Written::Conflict
        } else {
            Written::AsPlanned
        };
    }
    session
        .write_many(
            "writing repairs",
            &ADD_EVENTS,
            moving.len(),
            |at, values| {
                let repair = &repairs[moving[at]];
                let last = known.get(repair.id.as_str()).map_or(0, |(_, last)| *last);
                let (state, note) = match written[moving[at]] {
                    Written::Conflict => (RepairState::Failed, ROW_HAD_CHANGED),
                    Written::AsPlanned | Written::Held => (repair.state, repair.note.as_str()),
                };
                values
                    .text(&repair.id)
                    .int(last + 1)
                    .text(state.as_str())
                    .int(writing.at.0)
                    .text("")
                    .text(writing.run_id)
                    .text(note);
            },
        )
        .await?;
    for index in &moving {
        let id = repairs[*index].id.as_str();
        added.repair(id, 1 + known.get(id).map_or(0, |(_, last)| *last));
    }
    Ok(written)
}

/// Whether a repair that is brought takes a step; it is held when it does not.
fn moves(present: Option<RepairState>, repair: &Repair) -> Result<bool, Failure> {
    match (present, repair.state) {
        (None, RepairState::Proposed | RepairState::Approved | RepairState::Applied)
        | (Some(RepairState::Proposed), RepairState::Approved)
        | (Some(RepairState::Proposed | RepairState::Approved), RepairState::Applied) => Ok(true),
        (Some(_), RepairState::Proposed | RepairState::Approved | RepairState::Applied) => {
            Ok(false)
        }
        (_, other) => Err(Failure::new(
            Exit::Internal,
            format!("repair {} was to be written as {other}", repair.id),
        )),
    }
}

async fn void_older(
    session: &mut impl Engine,
    writing: Writing<'_>,
    newer: &[&Repair],
    added: &mut Added,
) -> Result<(), Failure> {
    // Those that belong to no break have nothing in common.
    let breaks: Vec<&str> = newer
        .iter()
        .map(|repair| repair.break_id.as_str())
        .filter(|id| !id.is_empty())
        .collect();
    let repairs: Vec<&str> = newer.iter().map(|repair| repair.id.as_str()).collect();
    let moved = session
        .rows(
            "writing repairs",
            VOID_OLDER_PROPOSALS,
            &[
                keys(&breaks),
                RepairState::Superseded.as_str().into(),
                writing.at.0.into(),
                writing.run_id.into(),
                "a newer repair took its place".into(),
                keys(&repairs),
            ],
        )
        .await?;
    take_note(&moved, added)
}

/// Steps that a statement took.
pub(super) fn take_note<R: Columns>(moved: &[R], added: &mut Added) -> Result<(), Failure> {
    // Engines answer in an order of their own; the ledger has one.
    let mut steps: Vec<(String, i64)> = moved
        .iter()
        .map(|row| Ok((row.text("repair_id")?, row.int("event_no")?)))
        .collect::<Result<_, Failure>>()?;
    steps.sort();
    for (repair_id, event_no) in steps {
        added.repair(repair_id, event_no);
    }
    Ok(())
}

/// Does what one repair says at a person's word, and records how it went.
pub(super) async fn carry_out_one(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repair: &RepairDetail,
    note: &Note<'_>,
    added: &mut Added,
) -> Result<(), Failure> {
    let failed = carry_out(session, writing, &[&repair.item]).await?;
    if failed.is_empty() {
        return event(session, repair, RepairState::Applied, note, "", added).await;
    }
    let failed = Note {
        reason: ROW_HAD_CHANGED,
        ..*note
    };
    event(session, repair, RepairState::Failed, &failed, "", added).await
}

/// Does what a repair says where its row is still the planned one.
pub(super) async fn carry_out_best(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repair: &Repair,
) -> Result<(), Failure> {
    carry_out(session, writing, &[repair]).await.map(|_| ())
}

/// Does what repairs say. Returns the ids of those that found their row changed.
async fn carry_out<'a>(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[&'a Repair],
) -> Result<HashSet<&'a str>, Failure> {
    let mut failed = HashSet::new();
    let mut to_set: Vec<&'a Repair> = Vec::new();
    let mut is_taken: HashSet<&str> = HashSet::new();
    for repair in repairs {
        let is_done = match repair.action {
            // Of two repairs of one version of a row, the second finds it changed by the first.
            RepairAction::SetStatus | RepairAction::Link => {
                let is_first = is_taken.insert(&repair.intent_id);
                if is_first {
                    to_set.push(repair);
                }
                is_first
            }
            RepairAction::RecordRefund | RepairAction::RecordDispute => {
                record(session, writing, repair).await?
            }
            RepairAction::Redrive => {
                let what = format!(
                    "repair {} was to be applied, and is only proposed",
                    repair.id
                );
                return Err(Failure::new(Exit::Internal, what));
            }
        };
        if !is_done {
            failed.insert(repair.id.as_str());
        }
    }
    let done = set(session, writing, &to_set).await?;
    failed.extend(
        to_set
            .iter()
            .filter(|repair| !done.contains(&repair.intent_id))
            .map(|repair| repair.id.as_str()),
    );
    Ok(failed)
}

/// Sets status and reference of the planned versions. Returns the intents that were found in them.
async fn set(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[&Repair],
) -> Result<HashSet<String>, Failure> {
    let doing = "applying repairs";
    if repairs.is_empty() {
        return Ok(HashSet::new());
    }
    let planned: serde_json::Value = repairs
        .iter()
        .map(|repair| {
            serde_json::json!({
                "intent_id": repair.intent_id,
                "version": repair.planned_version,
                "status": repair.to.status.as_str(),
                "processor_ref": repair.to.processor_ref,
            })
        })
        .collect();
    let planned = planned.to_string();
    session
        .write(
            doing,
            KEEP_PLANNED_VERSIONS,
            &[
                writing.scope.into(),
                planned.as_str().into(),
                writing.run_id.into(),
                writing.at.0.into(),
                "repair".into(),
            ],
        )
        .await?;
    let done = session
        .rows(
            doing,
            SET_STATUS_AND_REF,
            &[
                writing.scope.into(),
                planned.as_str().into(),
                writing.run_id.into(),
            ],
        )
        .await?;
    done.iter().map(|row| row.text("intent_id")).collect()
}

async fn record(
    session: &mut impl Engine,
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
    let added = session
        .write(
            doing,
            RECORD_INTENT,
            &[
                writing.scope.into(),
                (&repair.intent_id).into(),
                kind.as_str().into(),
                money.minor.into(),
                money.currency.as_str().into(),
                repair.to.status.as_str().into(),
                repair.occurred_at.0.into(),
                (&repair.to.processor_ref).into(),
                (&repair.to.parent_intent_id).into(),
                (&repair.source).into(),
                writing.run_id.into(),
            ],
        )
        .await?;
    if added == 0 {
        return Ok(false);
    }
    let rule = if repair.to.processor_ref.is_empty() {
        Rule::Parent
    } else {
        Rule::ProcessorRef
    };
    session
        .write(
            doing,
            LINK_RECORDED,
            &[
                (&repair.source).into(),
                (&repair.operation_id).into(),
                (&repair.account).into(),
                writing.scope.into(),
                (&repair.intent_id).into(),
                rule.as_str().into(),
                writing.run_id.into(),
            ],
        )
        .await?;
    Ok(true)
}

pub(super) async fn add(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[&Repair],
    evidence: &HashMap<&str, &str>,
) -> Result<(), Failure> {
    session
        .write_many(
            "writing repairs",
            &ADD_REPAIRS,
            repairs.len(),
            |at, values| {
                let repair = repairs[at];
                let from = repair.from.as_ref();
                let to = &repair.to;
                let evidence = evidence.get(repair.break_id.as_str()).copied();
                values
                    .text(&repair.id)
                    .text(&repair.break_id)
                    .text(&repair.source)
                    .text(&repair.account)
                    .text(repair.class.as_str())
                    .text(repair.action.as_str())
                    .text(writing.scope)
                    .text(&repair.intent_id)
                    .text(&repair.operation_id)
                    .text(from.map_or("", |side| side.status.as_str()))
                    .text(from.map_or("", |side| side.processor_ref.as_str()))
                    .text(to.kind.map_or("", IntentKind::as_str))
                    .text(to.status.as_str())
                    .text(&to.processor_ref)
                    .text(&to.parent_intent_id)
                    .maybe(to.money.map(|money| money.minor))
                    .text(
                        to.money
                            .as_ref()
                            .map_or("", |money| money.currency.as_str()),
                    )
                    .int(i64::from(repair.planned_version))
                    .int(repair.occurred_at.0)
                    .text(evidence.unwrap_or_default())
                    .text(writing.run_id)
                    .int(writing.at.0)
                    .maybe(repair.expires_at.map(|at| at.0))
                    .text(&repair.idempotency_key);
            },
        )
        .await?;
    Ok(())
}

/// Appends a step that a person took, as the one after those that were read. Where somebody else took a step meanwhile,
/// the number is taken, and all of it is done again.
pub(super) async fn event(
    session: &mut impl Engine,
    repair: &RepairDetail,
    state: RepairState,
    note: &Note<'_>,
    run_id: &str,
    added: &mut Added,
) -> Result<(), Failure> {
    let next = 1 + i64::try_from(repair.events.len()).expect("a repair takes a few steps");
    session
        .write_many("writing repairs", &ADD_EVENTS, 1, |_, values| {
            values
                .text(&repair.item.id)
                .int(next)
                .text(state.as_str())
                .int(note.at.0)
                .text(note.by)
                .text(run_id)
                .text(note.reason);
        })
        .await?;
    added.repair(&repair.item.id, next);
    Ok(())
}

/// State and number of the last event of those repairs that the ledger knows.
async fn present_states(
    session: &mut impl Engine,
    repairs: &[Repair],
) -> Result<HashMap<String, (RepairState, i64)>, Failure> {
    let ids: Vec<&str> = repairs.iter().map(|repair| repair.id.as_str()).collect();
    let rows = session
        .rows("reading repairs", PRESENT_STATES, &[keys(&ids)])
        .await?;
    rows.iter()
        .map(|row| {
            let state = word("state", &row.text("state")?, RepairState::from_word)?;
            Ok((row.text("repair_id")?, (state, row.int("event_no")?)))
        })
        .collect()
}

/// Marks applied repairs of these intents as confirmed.
pub(super) async fn confirm<T: AsRef<str>>(
    session: &mut impl Engine,
    writing: Writing<'_>,
    intent_ids: &[T],
    added: &mut Added,
) -> Result<(), Failure> {
    for chunk in intent_ids.chunks(KEYS_MAX) {
        let moved = session
            .rows(
                "confirming repairs",
                CONFIRM,
                &[
                    keys(chunk),
                    RepairState::Confirmed.as_str().into(),
                    writing.at.0.into(),
                    writing.run_id.into(),
                    "an import shows the same".into(),
                    writing.scope.into(),
                ],
            )
            .await?;
        take_note(&moved, added)?;
    }
    Ok(())
}

/// Voids proposals whose break was resolved.
pub(super) async fn void(
    session: &mut impl Engine,
    run_id: &str,
    at: Instant,
    break_ids: &[String],
    added: &mut Added,
) -> Result<(), Failure> {
    for chunk in break_ids.chunks(KEYS_MAX) {
        let moved = session
            .rows(
                "voiding proposals",
                VOID_PROPOSALS_OF_BREAKS,
                &[
                    keys(chunk),
                    RepairState::Superseded.as_str().into(),
                    at.0.into(),
                    run_id.into(),
                    "its break was resolved".into(),
                ],
            )
            .await?;
        take_note(&moved, added)?;
    }
    Ok(())
}
