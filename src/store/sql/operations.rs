//! Operations as a run writes them: new ones, replaced content, content that was not taken, and links.

use std::sync::Arc;

use super::dialect::{Bulk, Sql, sql};
use super::engine::{Columns, Engine, KEYS_MAX, Values};
use crate::exit::Failure;
use crate::model::operation::Operation;
use crate::model::verdict::IgnoreReason;
use crate::store::contract::{Commit, Link};

macro_rules! written_columns {
    () => {
        "operations (source, operation_id, account, id_kind, kind, status, is_final, \
         amount_minor, currency, fee_minor, net_minor, settle_currency, occurred_at, reference, \
         parent_id, object_id, payout_id, description, refund_total_minor, refunded_at, \
         ignore_reason, invalid, file, line, version, run_id)"
    };
}

const ADD_OPERATIONS: Bulk = Bulk {
    into: written_columns!(),
    columns: 26,
    tail: "on conflict do nothing",
    is_new: true,
};

const REPLACE_OPERATIONS: Bulk = Bulk {
    into: written_columns!(),
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
    tail: "on conflict do nothing",
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
    // In the order of the key, so that tables and indexes grow at their end.
    let mut new = commit.new_operations.to_vec();
    new.sort_by_key(|index| {
        let operations = commit.operations;
        operations.text.get(operations.operation_id[*index])
    });
    session
        .write_many(
            "writing operations",
            &ADD_OPERATIONS,
            new.len(),
            |at, values| {
                commit.meter.pass(at);
                rows.bind(new[at], values);
            },
        )
        .await?;
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
    }
    session
        .write_many(
            "replacing operations",
            &REPLACE_OPERATIONS,
            commit.updated_operations.len(),
            |at, values| {
                commit.meter.pass(at);
                rows.bind(commit.updated_operations[at], values);
            },
        )
        .await?;
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

    fn bind(&self, index: usize, values: &mut impl Values) {
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
