//! Statements of the company's own, explained without being run: whether the database understands them, and whether the role
//! may run them.

use super::dialect::Engine;
use super::row_writer::{ApplySpec, value_of};
use super::session::{Session, Statement};
use super::shape::Shape;
use super::template::Template;
use crate::exit::Failure;
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::money::{Currency, Money};
use crate::time::Instant;

/// Whether the statements of some actions, and the question for a record, could be run: an error tells which could not.
pub(super) async fn assert_runs(
    session: &mut Session<'_>,
    shape: &Shape,
    apply: &ApplySpec,
    actions: &[RepairAction],
    now: Instant,
) -> Result<(), Failure> {
    let statements = actions
        .iter()
        .filter_map(|action| Some((*action, apply.statements.get(action)?)));
    let record = apply.recorded.iter().zip([RepairAction::SetStatus]);
    for (action, template) in statements.chain(record.map(|(template, action)| (action, template)))
    {
        explained(session, shape, apply, action, template, now).await?;
    }
    Ok(())
}

/// Has one statement explained.
pub(super) async fn explained(
    session: &mut Session<'_>,
    shape: &Shape,
    apply: &ApplySpec,
    action: RepairAction,
    template: &Template,
    now: Instant,
) -> Result<String, Failure> {
    let repair = example(action, now);
    let word = apply
        .words
        .get(&IntentStatus::Pending)
        .or_else(|| apply.words.get(&IntentStatus::Created))
        .map_or("", String::as_str);
    let mut statement = template.bind(shape.engine, &|parameter| {
        value_of(apply, parameter, &repair, word, now)
    });
    let words = match shape.engine {
        Engine::Sqlite => "explain query plan",
        Engine::Postgres | Engine::MySql => "explain",
    };
    statement.text = format!("{words} {}", statement.text);
    // MySQL explains no write in a transaction that only reads; the lock of a file is not worth an explanation.
    match shape.engine {
        Engine::Sqlite => session.begin().await?,
        Engine::Postgres | Engine::MySql => session.begin_to_write().await?,
    }
    let found = explain(session, &statement).await;
    session.end().await?;
    found
}

async fn explain(session: &mut Session<'_>, statement: &Statement) -> Result<String, Failure> {
    session
        .all("explaining a statement of [repair.apply]", statement)
        .await?;
    Ok("understood, and the role may run it".to_owned())
}

/// A repair as it could be. Its texts are digits, since they may be compared with numbers.
fn example(action: RepairAction, now: Instant) -> Repair {
    let is_new = matches!(
        action,
        RepairAction::RecordRefund | RepairAction::RecordDispute
    );
    let side = |status, processor_ref: &str| RepairSide {
        kind: None,
        status,
        processor_ref: processor_ref.to_owned(),
        parent_intent_id: String::new(),
        money: None,
    };
    let mut to = side(IntentStatus::Succeeded, "1");
    if is_new {
        to.kind = Some(match action {
            RepairAction::RecordDispute => IntentKind::Dispute,
            _ => IntentKind::Refund,
        });
        "1".clone_into(&mut to.parent_intent_id);
        to.money = Currency::parse("EUR").map(|currency| Money::new(1, currency));
    }
    Repair {
        id: "0".repeat(32),
        break_id: "0".repeat(32),
        source: "example".to_owned(),
        class: BreakClass::StatusBehind,
        action,
        intent_id: "1".to_owned(),
        operation_id: "1".to_owned(),
        account: String::new(),
        from: (!is_new).then(|| side(IntentStatus::Pending, "")),
        to,
        planned_version: 1,
        state: RepairState::Planned,
        occurred_at: now,
        note: String::new(),
        expires_at: None,
        idempotency_key: String::new(),
    }
}
