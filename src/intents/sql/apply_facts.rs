//! What `paysweep check` says about writing repairs into the company's table. Nothing is written: a statement is only
//! explained, which shows whether the database understands it and the role may run it.

use super::dialect::Engine;
use super::facts::{self, Fact};
use super::session::{Session, Statement};
use super::shape::{self, Shape};
use super::spec::Spec;
use super::template::Template;
use super::writer::{ApplySpec, value_of};
use crate::exit::Failure;
use crate::model::breaks::BreakClass;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::money::{Currency, Money};
use crate::time::Instant;

/// Looks at the role and at each statement.
pub async fn apply_facts(spec: &Spec, apply: &ApplySpec, now: Instant) -> Vec<Fact> {
    let mut facts = Vec::new();
    let opened = async {
        let mut session = Session::connect_to_write(&apply.url, spec.statement_timeout).await?;
        session.begin().await?;
        let found = shape::shape(&mut session, spec).await;
        session.end().await?;
        Ok::<_, Failure>((session, found?))
    };
    let (mut session, shape) = match opened.await {
        Ok(opened) => opened,
        Err(failure) => {
            facts.push(fact("database", Err(failure)));
            return facts;
        }
    };
    let role = facts::role(&mut session, spec, &shape).await;
    let role = role.map(|_| "no more than a role of an application".to_owned());
    facts.push(fact("role", role));
    for (action, template) in &apply.statements {
        let found = explained(&mut session, &shape, apply, *action, template, now).await;
        facts.push(fact(action.as_str(), found));
    }
    facts.push(match &apply.recorded {
        Some(template) => {
            let action = RepairAction::SetStatus;
            let found = explained(&mut session, &shape, apply, action, template, now).await;
            fact("recorded", found)
        }
        None => fact(
            "recorded",
            Ok("not set: after a crash a row that is as it should be is told as a conflict, since nothing shows who \
                made it so; keep :repair_id in the row and set recorded = \"select 1 from … where … = :repair_id\""
                .to_owned()),
        ),
    });
    // What was found stands, however the connection ends.
    let _ = session.close().await;
    facts
}

fn fact(name: &str, found: Result<String, Failure>) -> Fact {
    Fact {
        name: format!("apply {name}"),
        found,
    }
}

async fn explained(
    session: &mut Session,
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

async fn explain(session: &mut Session, statement: &Statement) -> Result<String, Failure> {
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
    }
}
