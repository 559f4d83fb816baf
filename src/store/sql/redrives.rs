//! Proposals to send an intent again: one key and one end for each intent, for ever; void once the window has closed, the row
//! has moved on, or the processor shows something of it.

use std::collections::HashMap;

use super::chain::Added;
use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use super::intents::Writing;
use super::repairs::{move_on_where, take_note};
use crate::exit::Failure;
use crate::model::repair::{Repair, RepairAction, RepairState};

const OF_INTENTS: Sql = sql!(
    "select intent_id, idempotency_key, expires_at from repairs \
     where action = 'redrive' and scope = $1 and intent_id " [in 2]
);

const VOID_SEEN: Sql = move_on_where!(
    "r.action = 'redrive' and r.source " [in 1] " and e.state in ('proposed', 'approved') \
     and (exists (select 1 from matches as m where m.scope = r.scope and m.intent_id = r.intent_id \
     and m.is_principal = 1) or exists (select 1 from matches as m where m.scope = r.scope \
     and m.intent_id = r.intent_id and m.is_principal = 0))"
);

const VOID_CLOSED: Sql = move_on_where!(
    "r.action = 'redrive' and r.source " [in 1] " and e.state in ('proposed', 'approved') \
     and r.expires_at <= $3"
);

const VOID_MOVED: Sql = move_on_where!(
    "r.action = 'redrive' and r.source " [in 1] " and e.state in ('proposed', 'approved') \
     and not exists (select 1 from intents as i where i.scope = r.scope \
     and i.intent_id = r.intent_id and i.version = r.planned_version and i.superseded_by = '')"
);

/// What the ledger has proposed before about the same intents, in whatever state it is.
pub(super) struct Others {
    /// Key and end of each, by intent.
    known: HashMap<String, Vec<(String, Option<i64>)>>,
}

impl Others {
    /// Whether a proposal would have another key, or last longer, than one that was written before: both would be a second
    /// payment.
    pub(super) fn forbid(&self, repair: &Repair) -> bool {
        let ends = repair.expires_at.map(|at| at.0);
        repair.action == RepairAction::Redrive
            && self.known.get(&repair.intent_id).is_some_and(|known| {
                known
                    .iter()
                    .any(|(key, until)| *key != repair.idempotency_key || *until != ends)
            })
    }
}

/// Earlier proposals about the intents of these.
pub(super) async fn others(
    session: &mut impl Engine,
    writing: Writing<'_>,
    repairs: &[Repair],
) -> Result<Others, Failure> {
    let intents: Vec<&str> = repairs
        .iter()
        .filter(|repair| repair.action == RepairAction::Redrive)
        .map(|repair| repair.intent_id.as_str())
        .collect();
    let mut known: HashMap<String, Vec<(String, Option<i64>)>> = HashMap::new();
    if intents.is_empty() {
        return Ok(Others { known });
    }
    let values = [writing.scope.into(), keys(&intents)];
    for row in session.rows("reading repairs", OF_INTENTS, &values).await? {
        known
            .entry(row.text("intent_id")?)
            .or_default()
            .push((row.text("idempotency_key")?, row.maybe("expires_at")?));
    }
    Ok(Others { known })
}

/// Voids proposals of a source that nobody may follow any more.
pub(super) async fn void(
    session: &mut impl Engine,
    source: &str,
    writing: Writing<'_>,
    added: &mut Added,
) -> Result<(), Failure> {
    for (statement, why) in [
        (VOID_SEEN, "the processor shows it"),
        (VOID_MOVED, "the row has changed since"),
        (
            VOID_CLOSED,
            "its window has closed: never send it again; look it up at the processor by its reference",
        ),
    ] {
        let moved = session
            .rows(
                "voiding proposals",
                statement,
                &[
                    keys(&[source]),
                    RepairState::Superseded.as_str().into(),
                    writing.at.0.into(),
                    writing.run_id.into(),
                    why.into(),
                ],
            )
            .await?;
        take_note(&moved, added)?;
    }
    Ok(())
}
