//! The rows of both sides, as they are read: row by row as they arrive.
//!
//! # Decisions
//!
//! Where rows are looked up by keys, the planner is told to use the indexes. After the first large import it knows nothing
//! of the tables yet, and would rather read all of them.

use futures_util::TryStreamExt;
use sqlx::Row;
use sqlx::postgres::PgRow;
use tokio::time::timeout;

use super::session::{PgSession, arguments};
use crate::exit::Failure;
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::store::contract::{IntentSelection, OperationSelection};
use crate::store::rows::{
    self, Fields, INTENT_COLUMNS, OPERATION_COLUMNS, intent_columns, link_facts, operation_columns,
    unreadable,
};
use crate::store::sql::engine::{Value, keys as listed};

/// How many keys one question takes.
const KEYS_MAX: usize = 20_000;

const LOOK_UP_BY_INDEX: &str = "\
    set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off";

/// The operations `o` of a condition, with their matches.
macro_rules! operations_from {
    ($from:literal) => {
        concat!(
            "select ",
            operation_columns!("", ""),
            " from ",
            $from,
            " left join matches as m on m.source = o.source and m.operation_id = o.operation_id \
             and m.account = o.account order by o.operation_id, o.account"
        )
    };
}

const ALL_OPERATIONS: &str = operations_from!("(select * from operations where source = $1) as o");

/// Three parts that have no row in common.
const RECENT_OR_UNDECIDED_OPERATIONS: &str = operations_from!(
    "(select * from operations where source = $1 and occurred_at >= $2 \
     union all \
     select * from operations where source = $1 and status = 'pending' and occurred_at < $2 \
     union all \
     select p.* from (select distinct operation_id, account from breaks where source = $1 \
     and resolved_run = '' and operation_id <> '') as b \
     join operations as p on p.source = $1 and p.operation_id = b.operation_id \
     and p.account = b.account where p.occurred_at < $2 and p.status <> 'pending') as o"
);

const OPERATIONS_BY_KEYS: &str = operations_from!(
    "(select operation_id, account from operations where source = $1 and operation_id = any($2) \
     union select operation_id, account from operations where source = $1 and reference <> '' \
     and reference = any($2) \
     union select operation_id, account from operations where source = $1 and parent_id <> '' \
     and parent_id = any($2) \
     union select operation_id, account from operations where source = $1 and object_id <> '' \
     and object_id = any($2) \
     union select operation_id, account from matches where source = $1 and intent_id = any($2) \
     and is_principal = 1 \
     union select operation_id, account from matches where source = $1 and intent_id = any($2) \
     and is_principal = 0) as found \
     join operations as o on o.source = $1 and o.operation_id = found.operation_id \
     and o.account = found.account"
);

const OPERATIONS_OF_PAYOUTS: &str = operations_from!(
    "(select operation_id, account from operations where source = $1 and payout_id <> '' \
     and payout_id = any($2) \
     union select operation_id, account from operations where source = $1 \
     and operation_id = any($2)) as found \
     join operations as o on o.source = $1 and o.operation_id = found.operation_id \
     and o.account = found.account"
);

/// The intents `i` of a condition, with their links as the source that the last value names sees them.
macro_rules! intents_from {
    ($seen_from:literal, $from:literal) => {
        concat!(
            "select ",
            intent_columns!("", ""),
            ", concat_ws(',', case when m.source is not null then ",
            link_facts!($seen_from),
            " end, (select string_agg(",
            link_facts!($seen_from),
            ", ',') from matches as m \
             where m.intent_id = i.intent_id and m.scope = i.scope and m.is_principal = 0)) \
             from ",
            $from,
            " left join matches as m on m.intent_id = i.intent_id and m.scope = i.scope \
             and m.is_principal = 1 order by i.intent_id"
        )
    };
}

const ALL_INTENTS: &str = intents_from!(
    "$2",
    "(select * from intents where scope = $1 and superseded_by = '') as i"
);

/// Three parts that have no row in common.
const RECENT_OR_OPEN_INTENTS: &str = intents_from!(
    "$3",
    "(select * from intents where scope = $1 and created_at >= $2 and superseded_by = '' \
     union all \
     select * from intents where scope = $1 and status in ('created', 'pending') \
     and created_at < $2 and superseded_by = '' \
     union all \
     select k.* from intents as k where k.scope = $1 and k.created_at < $2 \
     and k.status not in ('created', 'pending') and k.superseded_by = '' \
     and (k.intent_id in (select intent_id from breaks where resolved_run = '' \
     and intent_id <> '') \
     or (k.status in ('succeeded', 'lost') and not exists (select 1 from matches as m \
     where m.scope = k.scope and m.intent_id = k.intent_id and m.is_principal = 1) \
     and not exists (select 1 from matches as m where m.scope = k.scope \
     and m.intent_id = k.intent_id and m.is_principal = 0)))) as i"
);

const INTENTS_BY_KEYS: &str = intents_from!(
    "$3",
    "(select intent_id from intents where scope = $1 and intent_id = any($2) \
     union select intent_id from intents where scope = $1 and idempotency_key <> '' \
     and idempotency_key = any($2) \
     union select intent_id from intents where scope = $1 and reference <> '' \
     and reference = any($2) \
     union select intent_id from intents where scope = $1 and processor_ref <> '' \
     and processor_ref = any($2) \
     union select intent_id from intents where scope = $1 and parent_intent_id <> '' \
     and parent_intent_id = any($2)) as found \
     join intents as i on i.scope = $1 and i.intent_id = found.intent_id and i.superseded_by = ''"
);

const INTENTS_BY_ID: &str = intents_from!(
    "$3",
    "(select * from intents where scope = $1 and intent_id = any($2) and superseded_by = '') as i"
);

impl Fields for &PgRow {
    fn text(&self, at: usize) -> Result<&str, Failure> {
        self.try_get(at)
            .map_err(|error| unreadable("text", &error.to_string()))
    }

    fn int(&self, at: usize) -> Result<i64, Failure> {
        self.try_get(at)
            .map_err(|error| unreadable("number", &error.to_string()))
    }

    fn maybe(&self, at: usize) -> Result<Option<i64>, Failure> {
        self.try_get(at)
            .map_err(|error| unreadable("number", &error.to_string()))
    }
}

/// The operations of a selection, by id and account.
pub(super) async fn operations(
    session: &mut PgSession,
    source: &str,
    selection: OperationSelection<'_>,
) -> Result<StoredOperations, Failure> {
    let doing = "reading operations";
    let mut stored = StoredOperations::default();
    let mut take = |row: &PgRow| {
        debug_assert_eq!(row.len(), OPERATION_COLUMNS);
        rows::operation(&mut stored, &row)
    };
    match selection {
        OperationSelection::All => {
            each(session, doing, ALL_OPERATIONS, &[source.into()], take).await?;
        }
        OperationSelection::Since(from) => {
            let values = [source.into(), from.0.into()];
            each(
                session,
                doing,
                RECENT_OR_UNDECIDED_OPERATIONS,
                &values,
                take,
            )
            .await?;
        }
        OperationSelection::Keys(keys) => {
            by_keys(
                session,
                doing,
                OPERATIONS_BY_KEYS,
                (source, None),
                keys,
                &mut take,
            )
            .await?;
        }
        OperationSelection::Payouts(keys) => {
            by_keys(
                session,
                doing,
                OPERATIONS_OF_PAYOUTS,
                (source, None),
                keys,
                &mut take,
            )
            .await?;
        }
    }
    Ok(stored)
}

/// The intents of a selection, by id.
pub(super) async fn intents(
    session: &mut PgSession,
    scope: &str,
    seen_from: &str,
    selection: IntentSelection<'_>,
) -> Result<StoredIntents, Failure> {
    let doing = "reading intents";
    let mut stored = StoredIntents::default();
    let mut take = |row: &PgRow| {
        debug_assert_eq!(row.len(), INTENT_COLUMNS);
        rows::intent(&mut stored, &row)
    };
    match selection {
        IntentSelection::All => {
            each(
                session,
                doing,
                ALL_INTENTS,
                &[scope.into(), seen_from.into()],
                take,
            )
            .await?;
        }
        IntentSelection::Since(from) => {
            let values = [scope.into(), from.0.into(), seen_from.into()];
            each(session, doing, RECENT_OR_OPEN_INTENTS, &values, take).await?;
        }
        IntentSelection::Keys(keys) => {
            by_keys(
                session,
                doing,
                INTENTS_BY_KEYS,
                (scope, Some(seen_from)),
                keys,
                &mut take,
            )
            .await?;
        }
        IntentSelection::Ids(keys) => {
            by_keys(
                session,
                doing,
                INTENTS_BY_ID,
                (scope, Some(seen_from)),
                keys,
                &mut take,
            )
            .await?;
        }
    }
    Ok(stored)
}

/// Hands the rows that are found by keys to `take`, each once: a row may bear keys of two questions.
async fn by_keys(
    session: &mut PgSession,
    doing: &str,
    question: &'static str,
    (source_or_scope, seen_from): (&str, Option<&str>),
    keys: &[&str],
    take: &mut impl FnMut(&PgRow) -> Result<(), Failure>,
) -> Result<(), Failure> {
    session.send(doing, LOOK_UP_BY_INDEX.to_owned()).await?;
    let mut seen = std::collections::HashSet::new();
    let is_one_question = keys.len() <= KEYS_MAX;
    for chunk in keys.chunks(KEYS_MAX) {
        let mut values = vec![source_or_scope.into(), listed(chunk)];
        values.extend(seen_from.map(Value::from));
        each(session, doing, question, &values, |row| {
            // Id and account, or id and idempotency key: the same row has the same.
            let is_new =
                is_one_question || seen.insert((row.text(0)?.to_owned(), row.text(1)?.to_owned()));
            if is_new { take(row) } else { Ok(()) }
        })
        .await?;
    }
    Ok(())
}

async fn each(
    session: &mut PgSession,
    doing: &str,
    question: &'static str,
    values: &[Value<'_>],
    mut take: impl FnMut(&PgRow) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let arguments = arguments(doing, values)?;
    let mut rows = sqlx::query_with(question, arguments)
        .persistent(false)
        .fetch(&mut session.connection);
    loop {
        let answer = timeout(PgSession::patience(), rows.try_next()).await;
        match answer {
            Ok(Ok(Some(row))) => take(&row)?,
            answer => {
                drop(rows);
                session.understood(doing, answer)?;
                return Ok(());
            }
        }
    }
}
