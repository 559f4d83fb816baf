//! Intents: reading them with their links, and writing what an import changes.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::bulk::{Bulk, KEYS_MAX, Values, list};
use super::failure::Doing;
use super::operations::found;
use super::packed::{self, Packed, row_numbers};
use crate::exit::Failure;
use crate::model::intent::{Intent, IntentKind, IntentStatus};
use crate::model::stored::StoredIntents;
use crate::money::Currency;
use crate::store::contract::{IntentChanges, IntentSelection};
use crate::time::Instant;

/// The columns that are read, with texts for nulls.
macro_rules! columns {
    () => {
        "i.intent_id, i.idempotency_key, i.kind, i.amount_minor, i.currency, i.status, \
         i.created_at, i.processor_ref, coalesce(i.attempt, ''), i.parent_intent_id, i.reference, \
         i.source, coalesce(i.first_attempt_at, ''), i.written_amount, i.invalid, i.is_recorded, \
         i.version, i.imported_status, i.imported_processor_ref, \
         coalesce((select m.source from matches as m where m.intent_id = i.intent_id \
         and m.scope = i.scope and m.is_principal = 1), (select min(m.source) from matches as m \
         where m.intent_id = i.intent_id and m.scope = i.scope and m.is_principal = 0), '')"
    };
}

macro_rules! listed {
    () => {
        "from json_each(?1) as listed cross join intents as i on i.rowid = listed.value"
    };
}

const LISTED_INTENTS: Packed = Packed {
    together: concat!(
        "select count(*), group_concat(packed, char(30)) from (select concat_ws(char(31), ",
        columns!(),
        ") as packed ",
        listed!(),
        ")"
    ),
    one_by_one: concat!(
        "select (select json_group_array(cast(value as text)) from json_each(json_array(",
        columns!(),
        "))) ",
        listed!()
    ),
    columns: 20,
};

const ALL_OF_A_SCOPE: &str =
    row_numbers!("select rowid as number from intents where scope = ?1 and superseded_by = ''");

const RECENT_OR_OPEN: &str = row_numbers!(
    "\
    select rowid as number from intents where scope = ?1 and created_at >= ?2 and superseded_by = '' \
    union all \
    select rowid from intents where scope = ?1 and status in ('created', 'pending') \
    and created_at < ?2 and superseded_by = '' \
    union all \
    select i.rowid from breaks as b join intents as i on i.scope = ?1 and i.intent_id = b.intent_id \
    where b.resolved_run = '' and b.intent_id <> '' and i.created_at < ?2 and i.superseded_by = ''"
);

const KNOWN_BY_A_KEY: &str = row_numbers!(
    "\
    select rowid as number from intents where scope = ?1 and superseded_by = '' \
    and intent_id in (select value from json_each(?2)) \
    union all \
    select rowid from intents where scope = ?1 and idempotency_key <> '' and superseded_by = '' \
    and idempotency_key in (select value from json_each(?2)) \
    union all \
    select rowid from intents where scope = ?1 and reference <> '' and superseded_by = '' \
    and reference in (select value from json_each(?2)) \
    union all \
    select rowid from intents where scope = ?1 and processor_ref <> '' and superseded_by = '' \
    and processor_ref in (select value from json_each(?2)) \
    union all \
    select rowid from intents where scope = ?1 and parent_intent_id <> '' and superseded_by = '' \
    and parent_intent_id in (select value from json_each(?2))"
);

const KNOWN_BY_ID: &str = row_numbers!(
    "\
    select rowid as number from intents where scope = ?1 and superseded_by = '' \
    and intent_id in (select value from json_each(?2))"
);

macro_rules! written_columns {
    () => {
        "insert or fail into intents (scope, intent_id, idempotency_key, kind, amount_minor, currency, \
         status, created_at, processor_ref, attempt, parent_intent_id, reference, source, \
         first_attempt_at, written_amount, invalid, is_recorded, version, imported_status, \
         imported_processor_ref, superseded_by, run_id)"
    };
}

const ADD_INTENTS: Bulk = Bulk {
    head: written_columns!(),
    columns: 22,
    tail: "on conflict do nothing",
};

const CHANGE_INTENTS: Bulk = Bulk {
    head: written_columns!(),
    columns: 22,
    tail: "on conflict (scope, intent_id) do update set \
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
};

const TOUCH_INTENTS: Bulk = Bulk {
    head: written_columns!(),
    columns: 22,
    tail: "on conflict (scope, intent_id) do update set \
           imported_status = excluded.imported_status, \
           imported_processor_ref = excluded.imported_processor_ref",
};

/// The one text of every statement that keeps a version of intents before it is overwritten.
macro_rules! keep_version_where {
    ($condition:literal) => {
        concat!(
            "insert into intent_versions (scope, intent_id, version, run_id, as_of, cause, \
             content_json) \
             select scope, intent_id, version, ?3, ?4, ?5, json_object('amount_minor', amount_minor, \
             'attempt', attempt, 'created_at', created_at, 'currency', currency, \
             'first_attempt_at', first_attempt_at, 'idempotency_key', idempotency_key, \
             'imported_processor_ref', imported_processor_ref, 'imported_status', imported_status, \
             'is_recorded', is_recorded, 'kind', kind, 'parent_intent_id', parent_intent_id, \
             'processor_ref', processor_ref, 'reference', reference, 'source', source, \
             'status', status, 'written_by', run_id) \
             from intents where scope = ?1 and ",
            $condition,
            " on conflict do nothing"
        )
    };
}

const KEEP_VERSIONS: &str = keep_version_where!("intent_id in (select value from json_each(?2))");

/// Keeps the versions of intents that repairs are about to change; none where it is not the planned one.
pub(super) const KEEP_PLANNED_VERSIONS: &str = keep_version_where!(
    "superseded_by = '' and (intent_id, version) in (select value ->> 'intent_id', \
     value ->> 'version' from json_each(?2))"
);

const SUPERSEDE: &str = "\
    update intents set superseded_by = ?3, version = version + 1, run_id = ?4 \
    where scope = ?1 and intent_id = ?2 and superseded_by = '' and is_recorded = 1";

const MOVE_PRINCIPAL_MATCH: &str = "\
    update matches set intent_id = ?3, is_principal = case when exists (select 1 from matches as other \
    where other.scope = ?1 and other.intent_id = ?3 and other.is_principal = 1) then 0 else 1 end \
    where scope = ?1 and intent_id = ?2 and is_principal = 1";

const MOVE_OTHER_MATCHES: &str = "\
    update matches set intent_id = ?3 where scope = ?1 and intent_id = ?2 and is_principal = 0";

/// The intents of a selection, in the order in which they were first stored.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    scope: &str,
    selection: IntentSelection<'_>,
) -> Result<StoredIntents, Failure> {
    let doing = "reading intents";
    let rows = match selection {
        IntentSelection::All => {
            packed::numbers_of(
                connection,
                sqlx::query_scalar(ALL_OF_A_SCOPE).bind(scope),
                doing,
            )
            .await?
        }
        IntentSelection::Since(from) => {
            let question = sqlx::query_scalar(RECENT_OR_OPEN).bind(scope).bind(from.0);
            packed::numbers_of(connection, question, doing).await?
        }
        IntentSelection::Keys(keys) => {
            found(connection, KNOWN_BY_A_KEY, scope, keys, doing).await?
        }
        IntentSelection::Ids(keys) => found(connection, KNOWN_BY_ID, scope, keys, doing).await?,
    };
    let mut stored = StoredIntents::default();
    let rows = packed::sorted(rows);
    packed::read(connection, &LISTED_INTENTS, doing, &rows, |fields| {
        take(&mut stored, fields)
    })
    .await?;
    Ok(stored)
}

fn take(stored: &mut StoredIntents, fields: &[&str]) -> Result<(), Failure> {
    let [
        intent_id,
        idempotency_key,
        kind,
        amount_minor,
        currency,
        status,
        created_at,
        processor_ref,
        attempt,
        parent_intent_id,
        reference,
        source,
        first_attempt_at,
        written_amount,
        invalid,
        is_recorded,
        version,
        imported_status,
        imported_processor_ref,
        linked_source,
    ] = *fields
    else {
        return Err(super::failure::unreadable("intent", &fields.join(" ")));
    };
    stored.rows.push(&Intent {
        intent_id,
        idempotency_key,
        kind: packed::word("kind", kind, IntentKind::from_word)?,
        amount_minor: packed::int("amount_minor", amount_minor)?,
        currency: packed::word("currency", currency, Currency::parse)?,
        status: packed::word("status", status, IntentStatus::from_word)?,
        created_at: Instant(packed::int("created_at", created_at)?),
        processor_ref,
        attempt: packed::maybe("attempt", attempt)?,
        parent_intent_id,
        reference,
        source,
        first_attempt_at: packed::maybe("first_attempt_at", first_attempt_at)?.map(Instant),
        written_amount,
        invalid,
        is_recorded: packed::flag("is_recorded", is_recorded)?,
        version: packed::int("version", version)?,
    });
    stored.imported_status.push(match imported_status {
        "" => None,
        word => Some(packed::word(
            "imported_status",
            word,
            IntentStatus::from_word,
        )?),
    });
    let text = &mut stored.rows.text;
    stored
        .imported_processor_ref
        .push(text.push(imported_processor_ref));
    stored.linked_source.push(text.push(linked_source));
    Ok(())
}

/// Who writes intents, and when.
#[derive(Clone, Copy)]
pub(super) struct Writing<'a> {
    /// Scope name of the intents.
    pub(super) scope: &'a str,
    /// The run.
    pub(super) run_id: &'a str,
    /// Its "now".
    pub(super) at: Instant,
}

/// Writes what an import changes. A row that somebody else changed in the meantime ends the transaction.
pub(super) async fn import(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    changes: &IntentChanges<'_>,
) -> Result<u64, Failure> {
    let doing = "writing intents";
    let rows = Rows::new(writing, changes);
    let added = ADD_INTENTS
        .write(connection, doing, changes.new.len(), |at, values| {
            rows.bind(changes.new[at], values);
        })
        .await?;
    let ids: Vec<&str> = changes
        .changed
        .iter()
        .map(|index| changes.rows.text.get(changes.rows.intent_id[*index]))
        .collect();
    keep_versions(connection, writing, &ids, "import").await?;
    let overwritten = CHANGE_INTENTS
        .write(connection, doing, changes.changed.len(), |at, values| {
            rows.bind(changes.changed[at], values);
        })
        .await?;
    if usize::try_from(overwritten) != Ok(changes.changed.len()) {
        return Err(super::lost_race("intents were changed by somebody else"));
    }
    TOUCH_INTENTS
        .write(connection, doing, changes.touched.len(), |at, values| {
            rows.bind(changes.touched[at], values);
        })
        .await?;
    for (recorded, imported) in changes.superseded {
        keep_versions(connection, writing, &[recorded], "superseded").await?;
        sqlx::query(SUPERSEDE)
            .bind(writing.scope)
            .bind(recorded)
            .bind(imported)
            .bind(writing.run_id)
            .execute(&mut *connection)
            .await
            .doing(doing)?;
        for moving in [MOVE_PRINCIPAL_MATCH, MOVE_OTHER_MATCHES] {
            sqlx::query(moving)
                .bind(writing.scope)
                .bind(recorded)
                .bind(imported)
                .execute(&mut *connection)
                .await
                .doing(doing)?;
        }
    }
    Ok(added + overwritten)
}

async fn keep_versions<T: AsRef<str>>(
    connection: &mut SqliteConnection,
    writing: Writing<'_>,
    ids: &[T],
    cause: &str,
) -> Result<(), Failure> {
    for chunk in ids.chunks(KEYS_MAX) {
        sqlx::query(KEEP_VERSIONS)
            .bind(writing.scope)
            .bind(list(chunk))
            .bind(writing.run_id)
            .bind(writing.at.0)
            .bind(cause)
            .execute(&mut *connection)
            .await
            .doing("keeping replaced intents")?;
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

    fn bind(&self, index: usize, values: &mut Values) {
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
