//! Intents as a run or an import writes them: what is new, what changed, what gave way.

use std::sync::Arc;

use super::dialect::{Bulk, Sql, sql};
use super::engine::{Engine, KEYS_MAX, Values, keys};
use crate::exit::Failure;
use crate::meter::Meter;
use crate::model::intent::IntentStatus;
use crate::store::contract::IntentChanges;
use crate::time::Instant;

macro_rules! written_columns {
    () => {
        "intents (scope, intent_id, idempotency_key, kind, amount_minor, currency, \
         status, created_at, processor_ref, attempt, parent_intent_id, reference, source, \
         first_attempt_at, written_amount, invalid, is_recorded, version, imported_status, \
         imported_processor_ref, superseded_by, run_id)"
    };
}

const ADD_INTENTS: Bulk = Bulk {
    into: written_columns!(),
    columns: 22,
    tail: Sql::same("on conflict do nothing"),
    is_new: true,
};

const CHANGE_INTENTS: Bulk = Bulk {
    into: written_columns!(),
    columns: 22,
    tail: Sql::same(
        "on conflict (scope, intent_id) do update set \
           idempotency_key = excluded.idempotency_key, kind = excluded.kind, \
           amount_minor = excluded.amount_minor, currency = excluded.currency, \
           status = excluded.status, created_at = excluded.created_at, \
           processor_ref = excluded.processor_ref, attempt = excluded.attempt, \
           parent_intent_id = excluded.parent_intent_id, reference = excluded.reference, \
           source = excluded.source, first_attempt_at = excluded.first_attempt_at, \
           written_amount = excluded.written_amount, invalid = excluded.invalid, \
           is_recorded = excluded.is_recorded, version = excluded.version, \
           imported_status = excluded.imported_status, \
           imported_processor_ref = excluded.imported_processor_ref, run_id = excluded.run_id \
           where intents.version = excluded.version - 1 and intents.superseded_by = ''",
    ),
    is_new: false,
};

const TOUCH_INTENTS: Bulk = Bulk {
    into: written_columns!(),
    columns: 22,
    tail: Sql::same(
        "on conflict (scope, intent_id) do update set \
           imported_status = excluded.imported_status, \
           imported_processor_ref = excluded.imported_processor_ref",
    ),
    is_new: false,
};

/// The one text of every statement that keeps a version of intents before it is overwritten.
macro_rules! keep_version_where {
    ($($condition:tt)+) => {
        sql!(
            "insert into intent_versions (scope, intent_id, version, run_id, as_of, cause, \
             content_json) \
             select scope, intent_id, version, $3, $4, $5, cast(" json_object "('amount_minor', amount_minor, \
             'attempt', attempt, 'created_at', created_at, 'currency', currency, \
             'first_attempt_at', first_attempt_at, 'idempotency_key', idempotency_key, \
             'imported_processor_ref', imported_processor_ref, 'imported_status', imported_status, \
             'is_recorded', is_recorded, 'kind', kind, 'parent_intent_id', parent_intent_id, \
             'processor_ref', processor_ref, 'reference', reference, 'source', source, \
             'status', status, 'written_by', run_id) as text) \
             from intents where scope = $1 and "
            $($condition)+
            " on conflict do nothing"
        )
    };
}

const KEEP_VERSIONS: Sql = keep_version_where!("intent_id " [in 2]
);

/// Keeps the versions of intents that repairs are about to change; none where it is not the planned one.
pub(super) const KEEP_PLANNED_VERSIONS: Sql = keep_version_where!(
    "superseded_by = '' and (intent_id, version) in (select planned.value ->> 'intent_id', \
     cast(planned.value ->> 'version' as bigint) from " [planned 2] ")"
);

const SUPERSEDE: Sql = sql!(
    "update intents set superseded_by = $3, version = version + 1, run_id = $4 \
    where scope = $1 and intent_id = $2 and superseded_by = '' and is_recorded = 1"
);

const MOVE_PRINCIPAL_MATCH: Sql = sql!(
    "update matches set intent_id = $3, is_principal = case when exists (select 1 from matches as other \
    where other.scope = $1 and other.intent_id = $3 and other.is_principal = 1) then 0 else 1 end \
    where scope = $1 and intent_id = $2 and is_principal = 1"
);

const MOVE_OTHER_MATCHES: Sql = sql!(
    "update matches set intent_id = $3 where scope = $1 and intent_id = $2 and is_principal = 0"
);

/// Who writes intents, and when.
#[derive(Clone, Copy)]
pub(super) struct Writing<'a> {
    /// Scope name of the intents.
    pub(super) scope: &'a str,
    /// The run.
    pub(super) run_id: &'a str,
    /// Its "now".
    pub(super) at: Instant,
    /// Counts rows as they are written.
    pub(super) meter: &'a Meter,
}

/// Writes what an import changes. A row that somebody else changed in the meantime ends the transaction.
pub(super) async fn import(
    session: &mut impl Engine,
    writing: Writing<'_>,
    changes: &IntentChanges<'_>,
) -> Result<u64, Failure> {
    let doing = "writing intents";
    let rows = Rows::new(writing, changes);
    let id = |index: usize| changes.rows.text.get(changes.rows.intent_id[index]);
    // In the order of the key, so that tables and indexes grow at their end.
    let mut new = changes.new.to_vec();
    new.sort_by_key(|index| id(*index));
    let added = session
        .write_many(doing, &ADD_INTENTS, new.len(), |at, values| {
            writing.meter.pass(at);
            rows.bind(new[at], values);
        })
        .await?;
    let ids: Vec<&str> = changes.changed.iter().map(|index| id(*index)).collect();
    keep_versions(session, writing, &ids, "import").await?;
    let overwritten = session
        .write_many(
            doing,
            &CHANGE_INTENTS,
            changes.changed.len(),
            |at, values| {
                writing.meter.pass(at);
                rows.bind(changes.changed[at], values);
            },
        )
        .await?;
    if usize::try_from(overwritten) != Ok(changes.changed.len()) {
        return Err(super::lost_race("intents were changed by somebody else"));
    }
    session
        .write_many(
            doing,
            &TOUCH_INTENTS,
            changes.touched.len(),
            |at, values| {
                writing.meter.pass(at);
                rows.bind(changes.touched[at], values);
            },
        )
        .await?;
    for (recorded, imported) in changes.superseded {
        keep_versions(session, writing, &[recorded], "superseded").await?;
        session
            .write(
                doing,
                SUPERSEDE,
                &[
                    writing.scope.into(),
                    recorded.into(),
                    imported.into(),
                    writing.run_id.into(),
                ],
            )
            .await?;
        for moving in [MOVE_PRINCIPAL_MATCH, MOVE_OTHER_MATCHES] {
            session
                .write(
                    doing,
                    moving,
                    &[writing.scope.into(), recorded.into(), imported.into()],
                )
                .await?;
        }
    }
    Ok(added + overwritten)
}

async fn keep_versions<T: AsRef<str>>(
    session: &mut impl Engine,
    writing: Writing<'_>,
    ids: &[T],
    cause: &str,
) -> Result<(), Failure> {
    for chunk in ids.chunks(KEYS_MAX) {
        session
            .write(
                "keeping replaced intents",
                KEEP_VERSIONS,
                &[
                    writing.scope.into(),
                    keys(chunk),
                    writing.run_id.into(),
                    writing.at.0.into(),
                    cause.into(),
                ],
            )
            .await?;
    }
    Ok(())
}

/// What the rows of an import share.
struct Rows<'a> {
    changes: &'a IntentChanges<'a>,
    scope: Arc<str>,
    run_id: Arc<str>,
}

impl<'a> Rows<'a> {
    fn new(writing: Writing<'_>, changes: &'a IntentChanges<'a>) -> Rows<'a> {
        Rows {
            changes,
            scope: writing.scope.into(),
            run_id: writing.run_id.into(),
        }
    }

    fn bind(&self, index: usize, values: &mut impl Values) {
        let row = self.changes.rows.get(index);
        let imported_ref = self.changes.imported_processor_ref[index];
        values
            .shared(&self.scope)
            .text(row.intent_id)
            .text(row.idempotency_key)
            .text(row.kind.as_str())
            .int(row.amount_minor)
            .text(row.currency.as_str())
            .text(row.status.as_str())
            .int(row.created_at.0)
            .text(row.processor_ref)
            .maybe(row.attempt.map(i64::from))
            .text(row.parent_intent_id)
            .text(row.reference)
            .text(row.source)
            .maybe(row.first_attempt_at.map(|at| at.0))
            .text(row.written_amount)
            .text(row.invalid)
            .flag(row.is_recorded)
            .int(i64::from(row.version))
            .text(self.changes.imported_status[index].map_or("", IntentStatus::as_str))
            .text(self.changes.rows.text.get(imported_ref))
            .text("")
            .shared(&self.run_id);
    }
}
