//! The rows of both sides, as they are read: first the numbers of the rows that a selection finds, then the rows, many
//! as one text.

use sqlx::SqliteConnection;

use super::bulk::list;
use super::packed::{self, Packed, row_numbers};
use crate::exit::Failure;
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::store::contract::{IntentSelection, OperationSelection};
use crate::store::rows::{
    self, INTENT_COLUMNS, OPERATION_COLUMNS, intent_columns, link_facts, operation_columns,
};
use crate::store::sql::engine::KEYS_MAX;

macro_rules! listed_operations {
    () => {
        "from json_each(?1) as listed \
         cross join operations as o on o.rowid = listed.value \
         left join matches as m on m.source = o.source and m.operation_id = o.operation_id \
         and m.account = o.account"
    };
}

const LISTED_OPERATIONS: Packed = Packed {
    together: concat!(
        "select count(*), group_concat(packed, char(30)) from (select concat_ws(char(31), ",
        operation_columns!("coalesce(", ", '')"),
        ") as packed ",
        listed_operations!(),
        ")"
    ),
    one_by_one: concat!(
        "select (select json_group_array(cast(value as text)) from json_each(json_array(",
        operation_columns!("coalesce(", ", '')"),
        "))) ",
        listed_operations!()
    ),
    columns: OPERATION_COLUMNS,
};

const OPERATIONS_OF_A_SOURCE: &str =
    row_numbers!("select rowid as number from operations where source = ?1");

const RECENT_OR_UNDECIDED_OPERATIONS: &str = row_numbers!(
    "\
    select rowid as number from operations where source = ?1 and occurred_at >= ?2 \
    union all \
    select rowid from operations where source = ?1 and status = 'pending' and occurred_at < ?2 \
    union all \
    select o.rowid from breaks as b \
    join operations as o on o.source = b.source and o.operation_id = b.operation_id \
    and o.account = b.account \
    where b.source = ?1 and b.resolved_run = '' and b.operation_id <> '' and o.occurred_at < ?2"
);

const OPERATIONS_KNOWN_BY_A_KEY: &str = row_numbers!(
    "\
    select rowid as number from operations where source = ?1 \
    and operation_id in (select value from json_each(?2)) \
    union all \
    select rowid from operations where source = ?1 and reference <> '' \
    and reference in (select value from json_each(?2)) \
    union all \
    select rowid from operations where source = ?1 and parent_id <> '' \
    and parent_id in (select value from json_each(?2)) \
    union all \
    select rowid from operations where source = ?1 and object_id <> '' \
    and object_id in (select value from json_each(?2)) \
    union all \
    select o.rowid from operations as o join matches as m on m.source = o.source \
    and m.operation_id = o.operation_id and m.account = o.account \
    where m.source = ?1 and m.intent_id in (select value from json_each(?2)) \
    and m.is_principal = 1 \
    union all \
    select o.rowid from operations as o join matches as m on m.source = o.source \
    and m.operation_id = o.operation_id and m.account = o.account \
    where m.source = ?1 and m.intent_id in (select value from json_each(?2)) \
    and m.is_principal = 0"
);

const PARTS_OF_PAYOUTS: &str = row_numbers!(
    "\
    select rowid as number from operations where source = ?1 and payout_id <> '' \
    and payout_id in (select value from json_each(?2)) \
    union all \
    select rowid from operations where source = ?1 \
    and operation_id in (select value from json_each(?2))"
);

/// The columns of an intent, with its links as the source `?2` sees them.
macro_rules! columns_of_intents {
    () => {
        concat!(
            intent_columns!("coalesce(", ", '')"),
            ", concat_ws(',', (select ",
            link_facts!("?2"),
            " from matches as m where m.intent_id = i.intent_id and m.scope = i.scope \
             and m.is_principal = 1), (select group_concat(",
            link_facts!("?2"),
            ") from matches as m where m.intent_id = i.intent_id and m.scope = i.scope \
             and m.is_principal = 0))"
        )
    };
}

macro_rules! listed_intents {
    () => {
        "from json_each(?1) as listed cross join intents as i on i.rowid = listed.value"
    };
}

const LISTED_INTENTS: Packed = Packed {
    together: concat!(
        "select count(*), group_concat(packed, char(30)) from (select concat_ws(char(31), ",
        columns_of_intents!(),
        ") as packed ",
        listed_intents!(),
        ")"
    ),
    one_by_one: concat!(
        "select (select json_group_array(cast(value as text)) from json_each(json_array(",
        columns_of_intents!(),
        "))) ",
        listed_intents!()
    ),
    columns: INTENT_COLUMNS,
};

const INTENTS_OF_A_SCOPE: &str =
    row_numbers!("select rowid as number from intents where scope = ?1 and superseded_by = ''");

/// Links are looked for twice, since each of their two indexes holds one kind of them.
const RECENT_OR_OPEN_INTENTS: &str = row_numbers!(
    "\
    select rowid as number from intents where scope = ?1 and created_at >= ?2 and superseded_by = '' \
    union all \
    select rowid from intents where scope = ?1 and status in ('created', 'pending') \
    and created_at < ?2 and superseded_by = '' \
    union all \
    select i.rowid from breaks as b join intents as i on i.scope = ?1 and i.intent_id = b.intent_id \
    where b.resolved_run = '' and b.intent_id <> '' and i.created_at < ?2 and i.superseded_by = '' \
    union all \
    select i.rowid from intents as i where i.scope = ?1 and i.status in ('succeeded', 'lost') \
    and i.created_at < ?2 and i.superseded_by = '' and not exists (select 1 from matches as m \
    where m.scope = i.scope and m.intent_id = i.intent_id and m.is_principal = 1) \
    and not exists (select 1 from matches as m \
    where m.scope = i.scope and m.intent_id = i.intent_id and m.is_principal = 0)"
);

const INTENTS_KNOWN_BY_A_KEY: &str = row_numbers!(
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

const INTENTS_KNOWN_BY_ID: &str = row_numbers!(
    "\
    select rowid as number from intents where scope = ?1 and superseded_by = '' \
    and intent_id in (select value from json_each(?2))"
);

/// The operations of a selection, in the order in which they were first stored.
pub(super) async fn operations(
    connection: &mut SqliteConnection,
    source: &str,
    selection: OperationSelection<'_>,
) -> Result<StoredOperations, Failure> {
    let doing = "reading operations";
    let rows = match selection {
        OperationSelection::All => {
            packed::numbers_of(
                connection,
                sqlx::query_scalar(OPERATIONS_OF_A_SOURCE).bind(source),
                doing,
            )
            .await?
        }
        OperationSelection::Since(from) => {
            let question = sqlx::query_scalar(RECENT_OR_UNDECIDED_OPERATIONS)
                .bind(source)
                .bind(from.0);
            packed::numbers_of(connection, question, doing).await?
        }
        OperationSelection::Keys(keys) => {
            found(connection, OPERATIONS_KNOWN_BY_A_KEY, source, keys, doing).await?
        }
        OperationSelection::Payouts(keys) => {
            found(connection, PARTS_OF_PAYOUTS, source, keys, doing).await?
        }
    };
    let mut stored = StoredOperations::default();
    let rows = packed::sorted(rows);
    packed::read(
        connection,
        &LISTED_OPERATIONS,
        source,
        doing,
        &rows,
        |fields| rows::operation(&mut stored, &fields),
    )
    .await?;
    Ok(stored)
}

/// The row numbers that a question finds for a list of keys, asked in chunks.
async fn found(
    connection: &mut SqliteConnection,
    question: &'static str,
    source_or_scope: &str,
    keys: &[&str],
    doing: &str,
) -> Result<Vec<i64>, Failure> {
    let mut rows = Vec::new();
    for chunk in keys.chunks(KEYS_MAX) {
        let question = sqlx::query_scalar(question)
            .bind(source_or_scope)
            .bind(list(chunk));
        rows.extend(packed::numbers_of(connection, question, doing).await?);
    }
    Ok(rows)
}

/// The intents of a selection, in the order in which they were first stored.
pub(super) async fn intents(
    connection: &mut SqliteConnection,
    scope: &str,
    seen_from: &str,
    selection: IntentSelection<'_>,
) -> Result<StoredIntents, Failure> {
    let doing = "reading intents";
    let rows = match selection {
        IntentSelection::All => {
            packed::numbers_of(
                connection,
                sqlx::query_scalar(INTENTS_OF_A_SCOPE).bind(scope),
                doing,
            )
            .await?
        }
        IntentSelection::Since(from) => {
            let question = sqlx::query_scalar(RECENT_OR_OPEN_INTENTS)
                .bind(scope)
                .bind(from.0);
            packed::numbers_of(connection, question, doing).await?
        }
        IntentSelection::Keys(keys) => {
            found(connection, INTENTS_KNOWN_BY_A_KEY, scope, keys, doing).await?
        }
        IntentSelection::Ids(keys) => {
            found(connection, INTENTS_KNOWN_BY_ID, scope, keys, doing).await?
        }
    };
    let mut stored = StoredIntents::default();
    let rows = packed::sorted(rows);
    packed::read(
        connection,
        &LISTED_INTENTS,
        seen_from,
        doing,
        &rows,
        |fields| rows::intent(&mut stored, &fields),
    )
    .await?;
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use sqlx::{AssertSqlSafe, Row};

    use super::*;
    use crate::store::sqlite::open;

    /// What is old grows for good: a question that looks through all links for each old row would take the square of it.
    #[tokio::test]
    async fn no_question_looks_through_a_whole_table_for_each_row() {
        let mut store = open::in_memory().await.expect("a store");
        for question in [
            RECENT_OR_UNDECIDED_OPERATIONS,
            OPERATIONS_KNOWN_BY_A_KEY,
            PARTS_OF_PAYOUTS,
            RECENT_OR_OPEN_INTENTS,
            INTENTS_KNOWN_BY_A_KEY,
            INTENTS_KNOWN_BY_ID,
        ] {
            let plan = AssertSqlSafe(format!("explain query plan {question}"));
            let steps = sqlx::query(plan).fetch_all(&mut store).await;
            let steps: Vec<(i64, i64, String)> = (steps.expect("a plan").iter())
                .map(|row| (row.get("id"), row.get("parent"), row.get("detail")))
                .collect();
            let is_asked_again = |id: i64| {
                (steps.iter()).any(|step| step.0 == id && step.2.starts_with("CORRELATED"))
            };
            for (_, parent, detail) in &steps {
                assert!(
                    !(is_asked_again(*parent) && detail.starts_with("SCAN")),
                    "{detail} in {question}"
                );
            }
        }
    }
}
