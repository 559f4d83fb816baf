//! Operations as a run writes them: new ones, replaced content, content that was not taken, and links.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::dialect::{Bulk, Sql, sql};
use super::engine::{Columns, Engine, KEYS_MAX, Values, keys};
use super::retention;
use crate::exit::Failure;
use crate::model::operation::{Operation, Operations};
use crate::model::verdict::IgnoreReason;
use crate::store::contract::{Commit, Link};

macro_rules! written_columns {
    () => {
        "operations (source, operation_id, account, id_kind, kind, status, is_final, \
         amount_minor, currency, fee_minor, net_minor, settle_currency, occurred_at, reference, \
         parent_id, object_id, payout_id, description, refund_total_minor, refunded_at, \
         ignore_reason, invalid, file, line, version, run_id, generation)"
    };
}

/// An insert is a claim: whoever is second with a key has not seen something new.
const CLAIM_OPERATIONS: Bulk = Bulk {
    into: "operation_claims (source, operation_id, account, generation)",
    columns: 4,
    tail: Sql::same("on conflict do nothing"),
    is_new: true,
};

/// The same for content that takes the place of what is no longer there.
const CLAIM_AGAIN: Bulk = Bulk {
    is_new: false,
    ..CLAIM_OPERATIONS
};

/// Keys that were claimed before this transaction.
const CLAIMED_BEFORE: Sql = sql!(
    "select c.operation_id, c.account from operation_claims as c \
    where c.source = $1 and c.operation_id " [in 2] " and (c.generation <> $3 \
    or exists (select 1 from operations as o where o.source = c.source \
    and o.operation_id = c.operation_id and o.account = c.account))"
);

const WHERE_IT_LIES: Sql = sql!(
    "select operation_id, account, generation from operations \
    where source = $1 and operation_id " [in 2]
);

const ADD_OPERATIONS: Bulk = Bulk {
    into: written_columns!(),
    columns: 27,
    tail: Sql::same("on conflict do nothing"),
    is_new: true,
};

/// One key is one row in both engines; in `PostgreSQL` a key holds the generation, since its tables lie apart.
macro_rules! takes_the_place_of {
    ($key:literal) => {
        concat!(
            "on conflict (",
            $key,
            ") do update set id_kind = excluded.id_kind, \
             kind = excluded.kind, status = excluded.status, is_final = excluded.is_final, \
             amount_minor = excluded.amount_minor, currency = excluded.currency, \
             fee_minor = excluded.fee_minor, net_minor = excluded.net_minor, \
             settle_currency = excluded.settle_currency, occurred_at = excluded.occurred_at, \
             reference = excluded.reference, parent_id = excluded.parent_id, \
             object_id = excluded.object_id, payout_id = excluded.payout_id, \
             description = excluded.description, \
             refund_total_minor = excluded.refund_total_minor, \
             refunded_at = excluded.refunded_at, ignore_reason = excluded.ignore_reason, \
             invalid = excluded.invalid, file = excluded.file, line = excluded.line, \
             version = operations.version + 1, run_id = excluded.run_id"
        )
    };
}

const REPLACE_OPERATIONS: Bulk = Bulk {
    into: written_columns!(),
    columns: 27,
    tail: Sql {
        sqlite: takes_the_place_of!("source, operation_id, account"),
        postgres: takes_the_place_of!("source, operation_id, account, generation"),
    },
    is_new: false,
};

/// The same fields, under the same names, as [`content`] writes.
const KEEP_WHAT_IS_REPLACED: Sql = sql!(
    "insert into operation_versions (source, operation_id, account, run_id, fate, as_of, content_json) \
    select source, operation_id, account, $2, 'replaced', $3, cast(" json_object "('amount_minor', amount_minor, \
    'currency', currency, 'description', description, 'fee_minor', fee_minor, 'kind', kind, \
    'net_minor', net_minor, 'object_id', object_id, 'occurred_at', occurred_at, \
    'parent_id', parent_id, 'payout_id', payout_id, 'reference', reference, \
    'refund_total_minor', refund_total_minor, 'settle_currency', settle_currency, 'status', status, \
    'written_by', run_id) as text) \
    from operations where source = $1 and (operation_id, account) in \
    (select planned.value ->> 'operation_id', planned.value ->> 'account' from " [planned 4] ") \
    on conflict do nothing"
);

const KEEP_WHAT_IS_NOT_TAKEN: Sql = sql!(
    "insert into operation_versions (source, operation_id, account, run_id, fate, as_of, content_json) \
    select $1, $4, $5, $2, 'rejected', $3, $6 \
    where not exists (select 1 from operation_versions where source = $1 and operation_id = $4 \
    and account = $5 and fate = 'rejected' and content_json = $6) \
    on conflict do nothing"
);

const ADD_LINKS: Bulk = Bulk {
    into: "matches (source, operation_id, account, scope, intent_id, rule, \
           is_principal, run_id)",
    columns: 8,
    tail: Sql::same("on conflict do nothing"),
    is_new: true,
};

const WHOSE_INTENT: Sql =
    sql!("select intent_id from matches where source = $1 and operation_id = $2 and account = $3");

/// Adds, replaces and keeps the operations of a commit.
pub(super) async fn write(
    session: &mut impl Engine,
    source: &str,
    commit: &Commit<'_>,
) -> Result<(), Failure> {
    let rows = Rows::new(source, commit);
    let open = retention::open_generation(session).await?;
    let new = claim(session, &rows, open).await?;
    session
        .write_many(
            "writing operations",
            &ADD_OPERATIONS,
            new.len(),
            |at, values| {
                commit.meter.pass(at);
                rows.bind(new[at], open, values);
            },
        )
        .await?;
    replace(session, source, &rows, open).await?;
    for index in commit.rejected_operations {
        let row = commit.operations.get(*index);
        session
            .write(
                "keeping changed operations",
                KEEP_WHAT_IS_NOT_TAKEN,
                &[
                    source.into(),
                    commit.run_id.into(),
                    commit.as_of.0.into(),
                    row.operation_id.into(),
                    row.account.into(),
                    (&content(&row)).into(),
                ],
            )
            .await?;
    }
    Ok(())
}

/// Claims the keys of new operations. Returns the rows that nobody had claimed before, in the order of their keys, so that
/// tables and indexes grow at their end.
async fn claim(
    session: &mut impl Engine,
    rows: &Rows<'_>,
    open: i64,
) -> Result<Vec<usize>, Failure> {
    let doing = "claiming operations";
    let operations = rows.commit.operations;
    let mut new = rows.commit.new_operations.to_vec();
    new.sort_by_key(|index| operations.text.get(operations.operation_id[*index]));
    let claimed = session
        .write_many(doing, &CLAIM_OPERATIONS, new.len(), |at, values| {
            rows.bind_claim(new[at], open, values);
        })
        .await?;
    if usize::try_from(claimed) == Ok(new.len()) {
        return Ok(new);
    }
    let mut before: HashSet<(String, String)> = HashSet::new();
    for chunk in new.chunks(KEYS_MAX) {
        let ids = ids_of(operations, chunk);
        let values = [(&*rows.source).into(), keys(&ids), open.into()];
        for row in session.rows(doing, CLAIMED_BEFORE, &values).await? {
            before.insert((row.text("operation_id")?, row.text("account")?));
        }
    }
    new.retain(|&index| !before.contains(&key_of(operations, index)));
    Ok(new)
}

fn key_of(operations: &Operations, index: usize) -> (String, String) {
    let row = operations.get(index);
    (row.operation_id.to_owned(), row.account.to_owned())
}

fn ids_of<'o>(operations: &'o Operations, rows: &[usize]) -> Vec<&'o str> {
    rows.iter()
        .map(|&row| operations.text.get(operations.operation_id[row]))
        .collect()
}

/// Puts new content in the place of the stored one, which is kept as a version.
async fn replace(
    session: &mut impl Engine,
    source: &str,
    rows: &Rows<'_>,
    open: i64,
) -> Result<(), Failure> {
    let commit = rows.commit;
    let mut lies_in: HashMap<(String, String), i64> = HashMap::new();
    for chunk in commit.updated_operations.chunks(KEYS_MAX) {
        let planned: serde_json::Value = chunk
            .iter()
            .map(|index| {
                let row = commit.operations.get(*index);
                serde_json::json!({ "operation_id": row.operation_id, "account": row.account })
            })
            .collect();
        let planned = planned.to_string();
        session
            .write(
                "keeping replaced operations",
                KEEP_WHAT_IS_REPLACED,
                &[
                    source.into(),
                    commit.run_id.into(),
                    commit.as_of.0.into(),
                    (&planned).into(),
                ],
            )
            .await?;
        let ids = ids_of(commit.operations, chunk);
        let values = [source.into(), keys(&ids)];
        for row in session
            .rows("looking for stored operations", WHERE_IT_LIES, &values)
            .await?
        {
            lies_in.insert(
                (row.text("operation_id")?, row.text("account")?),
                row.int("generation")?,
            );
        }
    }
    let gone: Vec<usize> = (commit.updated_operations.iter().copied())
        .filter(|&index| !lies_in.contains_key(&key_of(commit.operations, index)))
        .collect();
    session
        .write_many(
            "claiming operations",
            &CLAIM_AGAIN,
            gone.len(),
            |at, values| rows.bind_claim(gone[at], open, values),
        )
        .await?;
    session
        .write_many(
            "replacing operations",
            &REPLACE_OPERATIONS,
            commit.updated_operations.len(),
            |at, values| {
                commit.meter.pass(at);
                let index = commit.updated_operations[at];
                // Content that was forgotten is stored anew.
                let generation = lies_in.get(&key_of(commit.operations, index));
                let generation = generation.copied().unwrap_or(open);
                rows.bind(index, generation, values);
            },
        )
        .await
        .map(|_| ())
}

/// Writes links. A link that is stored already stays; one that contradicts a stored one ends the commit, since another
/// run was faster.
pub(super) async fn link(
    session: &mut impl Engine,
    source: &str,
    commit: &Commit<'_>,
) -> Result<(), Failure> {
    let doing = "writing matches";
    let (source_text, scope, run): (Arc<str>, Arc<str>, Arc<str>) =
        (source.into(), commit.scope.into(), commit.run_id.into());
    // In the order of the key, so that the table grows at its end.
    let links = in_key_order(commit);
    let written = session
        .write_many(doing, &ADD_LINKS, links.len(), |at, values| {
            commit.meter.pass(at);
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
        let stored = session
            .first(
                doing,
                WHOSE_INTENT,
                &[source.into(), row.operation_id.into(), row.account.into()],
            )
            .await?
            .map(|row| row.text("intent_id"))
            .transpose()?;
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

    fn bind_claim(&self, index: usize, generation: i64, values: &mut impl Values) {
        let row = self.commit.operations.get(index);
        values
            .shared(&self.source)
            .text(row.operation_id)
            .text(row.account)
            .int(generation);
    }

    fn bind(&self, index: usize, generation: i64, values: &mut impl Values) {
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
            .shared(&self.run_id)
            .int(generation);
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
