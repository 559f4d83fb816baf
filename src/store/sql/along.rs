//! Repairs that a table of the company's own takes in a transaction of ours, since it lies in the same database: there is no
//! moment at which the ledger and the table say different things.

use std::collections::HashSet;

use super::chain::{self, Added};
use super::engine::Engine;
use super::intents::Writing;
use super::repairs::{carry_out_best, event};
use super::{breaks, ledger};
use crate::database::along::{Along, Took};
use crate::exit::{Exit, Failure};
use crate::meter::Meter;
use crate::model::repair::{Repair, RepairState};
use crate::store::contract::{AlongEnds, Commit, Note, Receipt, RepairDetail};

/// What the ledger says of a repair that was written so.
const TOGETHER: &str = "written in the transaction of the ledger";
/// The same where the table had it already.
const BEFORE: &str = "the table has a record of it: an earlier try had written it";

/// Writes those repairs of a commit that are approved. What was not written for a reason that is not its own stays so.
pub(super) async fn write(
    session: &mut impl Engine,
    writing: Writing<'_>,
    commit: &Commit<'_>,
    receipt: &mut Receipt,
    added: &mut Added,
    along: &mut dyn Along,
) -> Result<(), Failure> {
    let approved: Vec<&Repair> = commit
        .repairs
        .iter()
        .filter(|repair| {
            repair.state == RepairState::Approved && receipt.repairs_written.contains(&repair.id)
        })
        .collect();
    if approved.is_empty() {
        return Ok(());
    }
    let answers = ask(session, &approved, along).await?;
    for (repair, took) in approved.into_iter().zip(answers) {
        let end = match took {
            Took::Left(_) => continue,
            Took::Written => Ok(TOGETHER),
            Took::Before => Ok(BEFORE),
            Took::Conflict(why) => Err(why),
        };
        let detail = ledger::detail(session, &repair.id).await?;
        let told = match &end {
            Ok(told) => (*told).to_owned(),
            Err(why) => not_written(why),
        };
        let note = Note {
            reason: &told,
            by: "",
            at: writing.at,
        };
        let state = if let Err(why) = &end {
            receipt.conflicts.push(repair.id.clone());
            receipt
                .conflict_breaks
                .push((commit.on_conflict)(repair, why));
            RepairState::Failed
        } else {
            // Our copy of the row follows, unless it has moved on by itself.
            carry_out_best(session, writing, repair).await?;
            receipt.applied.push(repair.id.clone());
            RepairState::Applied
        };
        event(session, &detail, state, &note, writing.run_id, added).await?;
    }
    Ok(())
}

/// Writes one approved repair, and what became of it.
pub(super) async fn apply(
    session: &mut impl Engine,
    id: &str,
    run_id: &str,
    note: &Note<'_>,
    ends: &AlongEnds<'_>,
    along: &mut dyn Along,
) -> Result<RepairDetail, Failure> {
    let found = ledger::detail(session, id).await?;
    if found.item.state != RepairState::Approved {
        return Err(Failure::rejected(format!(
            "repair {} is {}; only an approved one is applied",
            found.item.id, found.item.state
        )));
    }
    let writing = Writing {
        scope: &found.scope,
        run_id,
        at: note.at,
        meter: &Meter::default(),
    };
    let mut answers = ask(session, &[&found.item], along).await?;
    let mut added = Added::default();
    let (state, told) = match answers.pop() {
        None => return Err(unanswered()),
        Some(Took::Left(failure)) => return Err(failure),
        Some(Took::Conflict(why)) => {
            let item = (ends.on_conflict)(&found.item, &why);
            let nothing = HashSet::new();
            let items = std::slice::from_ref(&item);
            breaks::put(session, run_id, note.at, items, &nothing).await?;
            (RepairState::Failed, not_written(&why))
        }
        Some(took) => {
            carry_out_best(session, writing, &found.item).await?;
            if let Some(item) = ends.closes {
                let closed = HashSet::from([item.id.as_str()]);
                let items = std::slice::from_ref(item);
                breaks::put(session, run_id, note.at, items, &closed).await?;
            }
            let told = if matches!(took, Took::Before) {
                BEFORE
            } else {
                TOGETHER
            };
            (RepairState::Applied, told.to_owned())
        }
    };
    let said = Note {
        reason: &told,
        ..*note
    };
    event(session, &found, state, &said, run_id, &mut added).await?;
    chain::append(session, &added).await?;
    ledger::detail(session, &found.item.id).await
}

async fn ask(
    session: &mut impl Engine,
    repairs: &[&Repair],
    along: &mut dyn Along,
) -> Result<Vec<Took>, Failure> {
    let answers = along.write(session.lent(), repairs).await?;
    if answers.len() == repairs.len() {
        return Ok(answers);
    }
    Err(unanswered())
}

fn unanswered() -> Failure {
    Failure::new(Exit::Internal, "not every repair was answered for")
}

fn not_written(why: &str) -> String {
    format!("{why}; nothing was overwritten")
}
