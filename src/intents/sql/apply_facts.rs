//! What `paysweep check` says about writing repairs into the company's table. Nothing is written: a statement is only
//! explained, which shows whether the database understands it and the role may run it.

use super::dialect::Engine;
use super::explained::explained;
use super::facts::{self, Fact};
use super::row_writer::ApplySpec;
use super::session::Session;
use super::shape;
use super::spec::Spec;
use crate::exit::Failure;
use crate::model::repair::RepairAction;
use crate::time::Instant;

/// Looks at the role and at each statement. `is_joined` says whether the store shares the database, else why not.
pub async fn apply_facts(
    spec: &Spec,
    apply: &ApplySpec,
    is_joined: Result<(), String>,
    now: Instant,
) -> Vec<Fact> {
    let mut facts = Vec::new();
    let opened = async {
        let mut session = Session::connect_to_explain(&apply.url, spec.statement_timeout).await?;
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
    let is_joined = match is_joined {
        Ok(()) if shape.engine == Engine::Postgres && shape.is_view => {
            Err("the rows of a view cannot be held".to_owned())
        }
        other => other,
    };
    facts.push(fact(
        "transaction",
        Ok(match is_joined {
            Ok(()) => "that of the ledger: table, ledger and watermark take hold together".to_owned(),
            Err(why) => format!(
                "its own, between two steps of the ledger (claimed, applied), which survives a kill at any point: {why}"
            ),
        }),
    ));
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
