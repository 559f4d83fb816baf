//! Operations: reading them with their links, adding new ones, replacing content, keeping what was not taken.

use std::sync::Arc;

use sqlx::SqliteConnection;

use super::bulk::{Bulk, KEYS_MAX, Values, list};
use super::failure::Doing;
use super::packed::{self, Packed, row_numbers};
use crate::exit::Failure;
use crate::model::operation::{IdKind, Operation, OperationKind, OperationStatus};
use crate::model::stored::StoredOperations;
use crate::model::verdict::{IgnoreReason, Rule};
use crate::money::Currency;
use crate::store::contract::{Commit, Link, OperationSelection};
use crate::time::Instant;

/// The columns that are read, with texts for nulls.
macro_rules! columns {
    () => {
        "o.operation_id, o.account, o.id_kind, o.kind, o.status, o.is_final, o.amount_minor, \
         o.currency, coalesce(o.fee_minor, ''), coalesce(o.net_minor, ''), o.settle_currency, \
         o.occurred_at, o.reference, o.parent_id, o.object_id, o.payout_id, o.description, \
         coalesce(o.refund_total_minor, ''), coalesce(o.refunded_at, ''), o.ignore_reason, \
         o.invalid, o.line, coalesce(m.intent_id, ''), coalesce(m.rule, '')"
    };
}

macro_rules! listed {
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
    columns: 24,
};

const ALL_OF_A_SOURCE: &str =
    row_numbers!("select rowid as number from operations where source = ?1");

const RECENT_OR_UNDECIDED: &str = row_numbers!(
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

const KNOWN_BY_A_KEY: &str = row_numbers!(
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

macro_rules! written_columns {
    () => {
        "insert or fail into operations (source, operation_id, account, id_kind, kind, status, is_final, \
         amount_minor, currency, fee_minor, net_minor, settle_currency, occurred_at, reference, \
         parent_id, object_id, payout_id, description, refund_total_minor, refunded_at, \
         ignore_reason, invalid, file, line, version, run_id)"
    };
}

const ADD_OPERATIONS: Bulk = Bulk {
    head: written_columns!(),
    columns: 26,
    tail: "on conflict do nothing",
};

const REPLACE_OPERATIONS: Bulk = Bulk {
    head: written_columns!(),
    columns: 26,
    tail: "on conflict (source, operation_id, account) do update set id_kind = excluded.id_kind, \
           kind = excluded.kind, status = excluded.status, is_final = excluded.is_final, \
           amount_minor = excluded.amount_minor, currency = excluded.currency, \
           fee_minor = excluded.fee_minor, net_minor = excluded.net_minor, \
           settle_currency = excluded.settle_currency, occurred_at = excluded.occurred_at, \
           reference = excluded.reference, parent_id = excluded.parent_id, \
           object_id = excluded.object_id, payout_id = excluded.payout_id, \
           description = excluded.description, refund_total_minor = excluded.refund_total_minor, \
           refunded_at = excluded.refunded_at, ignore_reason = excluded.ignore_reason, \
           invalid = excluded.invalid, file = excluded.file, line = excluded.line, \
           version = operations.version + 1, run_id = excluded.run_id",
};

/// The same fields, under the same names, as [`content`] writes.
const KEEP_WHAT_IS_REPLACED: &str = "\
    insert into operation_versions (source, operation_id, account, run_id, fate, as_of, content_json) \
    select source, operation_id, account, ?2, 'replaced', ?3, json_object('amount_minor', amount_minor, \
    'currency', currency, 'description', description, 'fee_minor', fee_minor, 'kind', kind, \
    'net_minor', net_minor, 'object_id', object_id, 'occurred_at', occurred_at, \
    'parent_id', parent_id, 'payout_id', payout_id, 'reference', reference, \
    'refund_total_minor', refund_total_minor, 'settle_currency', settle_currency, 'status', status, \
    'written_by', run_id) \
    from operations where source = ?1 and operation_id = ?4 and account = ?5 \
    on conflict do nothing";

const KEEP_WHAT_IS_NOT_TAKEN: &str = "\
    insert into operation_versions (source, operation_id, account, run_id, fate, as_of, content_json) \
    select ?1, ?4, ?5, ?2, 'rejected', ?3, ?6 \
    where not exists (select 1 from operation_versions where source = ?1 and operation_id = ?4 \
    and account = ?5 and fate = 'rejected' and content_json = ?6) \
    on conflict do nothing";

const ADD_LINKS: Bulk = Bulk {
    head: "insert or fail into matches (source, operation_id, account, scope, intent_id, rule, \
           is_principal, run_id)",
    columns: 8,
    tail: "on conflict do nothing",
};

const WHOSE_INTENT: &str = "\
    select intent_id from matches where source = ?1 and operation_id = ?2 and account = ?3";

/// The operations of a selection, in the order in which they were first stored.
pub(super) async fn load(
    connection: &mut SqliteConnection,
    source: &str,
    selection: OperationSelection<'_>,
) -> Result<StoredOperations, Failure> {
    let doing = "reading operations";
    let rows = match selection {
        OperationSelection::All => {
            packed::numbers_of(
                connection,
                sqlx::query_scalar(ALL_OF_A_SOURCE).bind(source),
                doing,
            )
            .await?
        }
        OperationSelection::Since(from) => {
            let question = sqlx::query_scalar(RECENT_OR_UNDECIDED)
                .bind(source)
                .bind(from.0);
            packed::numbers_of(connection, question, doing).await?
        }
        OperationSelection::Keys(keys) => {
            found(connection, KNOWN_BY_A_KEY, source, keys, doing).await?
        }
        OperationSelection::Payouts(keys) => {
            found(connection, PARTS_OF_PAYOUTS, source, keys, doing).await?
        }
    };
    let mut stored = StoredOperations::default();
    let rows = packed::sorted(rows);
    packed::read(connection, &LISTED_OPERATIONS, doing, &rows, |fields| {
        take(&mut stored, fields)
    })
    .await?;
    Ok(stored)
}

/// The row numbers that a question finds for a list of keys, asked in chunks.
pub(super) async fn found(
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

fn take(stored: &mut StoredOperations, fields: &[&str]) -> Result<(), Failure> {
    let [
        operation_id,
        account,
        id_kind,
        kind,
        status,
        is_final,
        amount_minor,
        currency,
        fee_minor,
        net_minor,
        settle_currency,
        occurred_at,
        reference,
        parent_id,
        object_id,
        payout_id,
        description,
        refund_total_minor,
        refunded_at,
        ignore_reason,
        invalid,
        line,
        linked_intent,
        linked_rule,
    ] = *fields
    else {
        return Err(super::failure::unreadable("operation", &fields.join(" ")));
    };
    stored.rows.push(&Operation {
        operation_id,
        account,
        id_kind: packed::word("id_kind", id_kind, IdKind::from_word)?,
        kind: packed::word("kind", kind, OperationKind::from_word)?,
        status: packed::word("status", status, OperationStatus::from_word)?,
        is_final: packed::flag("is_final", is_final)?,
        amount_minor: packed::int("amount_minor", amount_minor)?,
        currency: packed::word("currency", currency, Currency::parse)?,
        fee_minor: packed::maybe("fee_minor", fee_minor)?,
        net_minor: packed::maybe("net_minor", net_minor)?,
        settle_currency: packed::word("settle_currency", settle_currency, Currency::parse)?,
        occurred_at: Instant(packed::int("occurred_at", occurred_at)?),
        reference,
        parent_id,
        object_id,
        payout_id,
        description,
        refund_total_minor: packed::maybe("refund_total_minor", refund_total_minor)?,
        refunded_at: packed::maybe("refunded_at", refunded_at)?.map(Instant),
        ignore: match ignore_reason {
            "" => None,
            word => Some(packed::word(
                "ignore_reason",
                word,
                IgnoreReason::from_word,
            )?),
        },
        invalid,
        file: 0,
        line: packed::int("line", line)?,
    });
    let linked_intent = stored.rows.text.push(linked_intent);
    stored.linked_intent.push(linked_intent);
    stored.linked_rule.push(match linked_rule {
        "" => None,
        word => Some(packed::word("rule", word, Rule::from_word)?),
    });
    Ok(())
}

/// Adds, replaces and keeps the operations of a commit.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    source: &str,
    commit: &Commit<'_>,
) -> Result<(), Failure> {
    let rows = Rows::new(source, commit);
    ADD_OPERATIONS
        .write(
            connection,
            "writing operations",
            commit.new_operations.len(),
            |at, values| rows.bind(commit.new_operations[at], values),
        )
        .await?;
    for index in commit.updated_operations {
        let row = commit.operations.get(*index);
        sqlx::query(KEEP_WHAT_IS_REPLACED)
            .bind(source)
            .bind(commit.run_id)
            .bind(commit.as_of.0)
            .bind(row.operation_id)
            .bind(row.account)
            .execute(&mut *connection)
            .await
            .doing("keeping replaced operations")?;
    }
    REPLACE_OPERATIONS
        .write(
            connection,
            "replacing operations",
            commit.updated_operations.len(),
            |at, values| rows.bind(commit.updated_operations[at], values),
        )
        .await?;
    for index in commit.rejected_operations {
        let row = commit.operations.get(*index);
        sqlx::query(KEEP_WHAT_IS_NOT_TAKEN)
            .bind(source)
            .bind(commit.run_id)
            .bind(commit.as_of.0)
            .bind(row.operation_id)
            .bind(row.account)
            .bind(content(&row))
            .execute(&mut *connection)
            .await
            .doing("keeping changed operations")?;
    }
    Ok(())
}

/// Writes links. A link that is stored already stays; one that contradicts a stored one ends the commit, since another
/// run was faster.
pub(super) async fn link(
    connection: &mut SqliteConnection,
    source: &str,
    commit: &Commit<'_>,
) -> Result<(), Failure> {
    let doing = "writing matches";
    let (source_text, scope, run): (Arc<str>, Arc<str>, Arc<str>) =
        (source.into(), commit.scope.into(), commit.run_id.into());
    // In the order of the key, so that the table grows at its end.
    let links = in_key_order(commit);
    let written = ADD_LINKS
        .write(connection, doing, links.len(), |at, values| {
            let Link {
                operation,
                intent_id,
                rule,
                is_principal,
            } = links[at];
            let text = &commit.operations.text;
            values
                .shared(&source_text)
                .text(text.get(commit.operations.operation_id[operation]))
                .text(text.get(commit.operations.account[operation]))
                .shared(&scope)
                .text(intent_id)
                .text(rule.as_str())
                .flag(is_principal)
                .shared(&run);
        })
        .await?;
    if usize::try_from(written) == Ok(links.len()) {
        return Ok(());
    }
    for wanted in &links {
        let row = commit.operations.get(wanted.operation);
        let stored: Option<String> = sqlx::query_scalar(WHOSE_INTENT)
            .bind(source)
            .bind(row.operation_id)
            .bind(row.account)
            .fetch_optional(&mut *connection)
            .await
            .doing(doing)?;
        if stored.as_deref() != Some(wanted.intent_id) {
            return Err(super::lost_race(&format!(
                "intent {} was matched with another operation than {}",
                wanted.intent_id, row.operation_id
            )));
        }
    }
    Ok(())
}

fn in_key_order<'a>(commit: &Commit<'a>) -> Vec<Link<'a>> {
    let operations = commit.operations;
    let mut links = commit.links.to_vec();
    links.sort_unstable_by_key(|link| operations.text.get(operations.operation_id[link.operation]));
    links
}

/// What the rows of a commit share.
struct Rows<'a> {
    commit: &'a Commit<'a>,
    source: Arc<str>,
    run_id: Arc<str>,
    files: Vec<Arc<str>>,
    nothing: Arc<str>,
}

impl<'a> Rows<'a> {
    fn new(source: &str, commit: &'a Commit<'a>) -> Rows<'a> {
        Rows {
            commit,
            source: source.into(),
            run_id: commit.run_id.into(),
            files: commit
                .files
                .iter()
                .map(|file| file.as_str().into())
                .collect(),
            nothing: "".into(),
        }
    }

    fn bind(&self, index: usize, values: &mut Values) {
        let row = self.commit.operations.get(index);
        let file = self
            .files
            .get(usize::from(row.file))
            .unwrap_or(&self.nothing);
        values
            .shared(&self.source)
            .text(row.operation_id)
            .text(row.account)
            .text(row.id_kind.as_str())
            .text(row.kind.as_str())
            .text(row.status.as_str())
            .flag(row.is_final)
            .int(row.amount_minor)
            .text(row.currency.as_str())
            .maybe(row.fee_minor)
            .maybe(row.net_minor)
            .text(row.settle_currency.as_str())
            .int(row.occurred_at.0)
            .text(row.reference)
            .text(row.parent_id)
            .text(row.object_id)
            .text(row.payout_id)
            .text(row.description)
            .maybe(row.refund_total_minor)
            .maybe(row.refunded_at.map(|at| at.0))
            .text(row.ignore.map_or("", IgnoreReason::as_str))
            .text(row.invalid)
            .shared(file)
            .int(i64::from(row.line))
            .int(1)
            .shared(&self.run_id);
    }
}

/// The content of an operation as evidence; where it was read does not count, so that the same content stands once.
fn content(row: &Operation<'_>) -> String {
    serde_json::json!({
        "amount_minor": row.amount_minor,
        "currency": row.currency.as_str(),
        "description": row.description,
        "fee_minor": row.fee_minor,
        "kind": row.kind.as_str(),
        "net_minor": row.net_minor,
        "object_id": row.object_id,
        "occurred_at": row.occurred_at.0,
        "parent_id": row.parent_id,
        "payout_id": row.payout_id,
        "reference": row.reference,
        "refund_total_minor": row.refund_total_minor,
        "settle_currency": row.settle_currency.as_str(),
        "status": row.status.as_str(),
    })
    .to_string()
}
