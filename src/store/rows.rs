//! Rows of both sides as every engine gives them: words become enums, numbers become money and time.

use crate::exit::{Exit, Failure};
use crate::model::answer::{Answer, Standing, Standings};
use crate::model::intent::{Intent, IntentKind, IntentStatus};
use crate::model::operation::{IdKind, Operation, OperationKind, OperationStatus};
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::model::verdict::{IgnoreReason, Rule};
use crate::money::Currency;
use crate::time::Instant;

/// A value in the store that this version cannot read.
pub(super) fn unreadable(column: &str, value: &str) -> Failure {
    Failure::new(
        Exit::NotReady,
        format!("the store holds {value:?} as {column}, which this version does not know"),
    )
    .remedy("restore the store from a backup, or use the version that wrote it")
}

/// A word of the contract.
pub(super) fn word<T>(
    column: &str,
    text: &str,
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<T, Failure> {
    from_word(text).ok_or_else(|| unreadable(column, text))
}

/// A word of the contract; empty = none.
pub(super) fn maybe_word<T>(
    column: &str,
    text: &str,
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    if text.is_empty() {
        return Ok(None);
    }
    word(column, text, from_word).map(Some)
}

/// A row by the places of its columns, without a copy: there are millions of them.
pub(super) trait Fields {
    /// A text.
    fn text(&self, at: usize) -> Result<&str, Failure>;
    /// A number.
    fn int(&self, at: usize) -> Result<i64, Failure>;
    /// A number, or none.
    fn maybe(&self, at: usize) -> Result<Option<i64>, Failure>;
}

/// 0 or 1.
fn flag(column: &str, number: i64) -> Result<bool, Failure> {
    match number {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(unreadable(column, &number.to_string())),
    }
}

/// A number of a narrower type.
pub(super) fn narrow<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, Failure> {
    T::try_from(number).map_err(|_| unreadable(column, &number.to_string()))
}

/// How many columns [`operation`] reads.
pub(super) const OPERATION_COLUMNS: usize = 24;

/// The columns of an operation `o` and its match `m`, as [`operation`] reads them; those that may be null stand between
/// the two texts.
macro_rules! operation_columns {
    ($before:literal, $after:literal) => {
        concat!(
            "o.operation_id, o.account, o.id_kind, o.kind, o.status, o.is_final, o.amount_minor, o.currency, ",
            $before, "o.fee_minor", $after, ", ", $before, "o.net_minor", $after,
            ", o.settle_currency, o.occurred_at, o.reference, o.parent_id, o.object_id, o.payout_id, ",
            "o.description, ",
            $before, "o.refund_total_minor", $after, ", ", $before, "o.refunded_at", $after,
            ", o.ignore_reason, o.invalid, o.line, coalesce(m.intent_id, ''), coalesce(m.rule, '')"
        )
    };
}
pub(super) use operation_columns;

/// Takes one row of [`operation_columns`].
pub(super) fn operation(stored: &mut StoredOperations, row: &impl Fields) -> Result<(), Failure> {
    stored.rows.push(&Operation {
        operation_id: row.text(0)?,
        account: row.text(1)?,
        id_kind: word("id_kind", row.text(2)?, IdKind::from_word)?,
        kind: word("kind", row.text(3)?, OperationKind::from_word)?,
        status: word("status", row.text(4)?, OperationStatus::from_word)?,
        is_final: flag("is_final", row.int(5)?)?,
        amount_minor: row.int(6)?,
        currency: word("currency", row.text(7)?, Currency::parse)?,
        fee_minor: row.maybe(8)?,
        net_minor: row.maybe(9)?,
        settle_currency: word("settle_currency", row.text(10)?, Currency::parse)?,
        occurred_at: Instant(row.int(11)?),
        reference: row.text(12)?,
        parent_id: row.text(13)?,
        object_id: row.text(14)?,
        payout_id: row.text(15)?,
        description: row.text(16)?,
        refund_total_minor: row.maybe(17)?,
        refunded_at: row.maybe(18)?.map(Instant),
        ignore: maybe_word("ignore_reason", row.text(19)?, IgnoreReason::from_word)?,
        invalid: row.text(20)?,
        file: 0,
        line: narrow("line", row.int(21)?)?,
    });
    let linked_intent = stored.rows.text.push(row.text(22)?);
    stored.linked_intent.push(linked_intent);
    stored
        .linked_rule
        .push(maybe_word("rule", row.text(23)?, Rule::from_word)?);
    Ok(())
}

/// How many columns [`intent`] reads; the last are its links, by [`link_facts`].
pub(super) const INTENT_COLUMNS: usize = 20;

/// The columns of an intent `i`, as [`intent`] reads them, without the last; those that may be null stand between the
/// two texts.
macro_rules! intent_columns {
    ($before:literal, $after:literal) => {
        concat!(
            "i.intent_id, i.idempotency_key, i.kind, i.amount_minor, i.currency, i.status, i.created_at, ",
            "i.processor_ref, ",
            $before, "i.attempt", $after,
            ", i.parent_intent_id, i.reference, i.source, ",
            $before, "i.first_attempt_at", $after,
            ", i.written_amount, i.invalid, i.is_recorded, i.version, i.imported_status, ",
            "i.imported_processor_ref"
        )
    };
}
pub(super) use intent_columns;

/// A link `m` of an intent as [`answer`] reads it: [`HERE`] for one of the source that asks, else the facts of its
/// operation by which it is told whether money stands there, or [`FORGOTTEN`].
macro_rules! link_facts {
    ($seen_from:literal) => {
        concat!(
            "case when m.source = ", $seen_from, " then '=' else coalesce((select concat_ws(' ', e.kind, \
             e.status, cast(e.amount_minor as text), e.currency, coalesce(cast(e.fee_minor as text), '-'), \
             coalesce(cast(e.net_minor as text), '-'), e.settle_currency) from operations as e \
             where e.source = m.source and e.operation_id = m.operation_id and e.account = m.account), \
             '~') end"
        )
    };
}
pub(super) use link_facts;

const HERE: &str = "=";

/// A link to an operation of another source that was forgotten.
const FORGOTTEN: &str = "~";

/// Reads the links of an intent, joined by commas.
fn answer(kind: IntentKind, status: IntentStatus, links: &str) -> Result<Answer, Failure> {
    if links.split_terminator(',').any(|link| link == FORGOTTEN) {
        return Ok(Answer::Elsewhere(Standing::settled(status)));
    }
    let mut standings: Option<Standings> = None;
    for link in links.split_terminator(',').filter(|link| *link != HERE) {
        let fields: Vec<&str> = link.split(' ').collect();
        let &[kind, status, amount, currency, fee, net, settle] = fields.as_slice() else {
            return Err(unreadable("links", links));
        };
        standings.get_or_insert_default().add(&Operation {
            kind: word("kind", kind, OperationKind::from_word)?,
            status: word("status", status, OperationStatus::from_word)?,
            amount_minor: number("amount_minor", amount)?,
            currency: word("currency", currency, Currency::parse)?,
            fee_minor: maybe_number("fee_minor", fee)?,
            net_minor: maybe_number("net_minor", net)?,
            settle_currency: word("settle_currency", settle, Currency::parse)?,
            ..Operation::EMPTY
        });
    }
    Ok(match standings {
        Some(standings) => Answer::Elsewhere(standings.standing(kind)),
        None if links.is_empty() => Answer::Nobody,
        None => Answer::Here,
    })
}

fn number(column: &str, text: &str) -> Result<i64, Failure> {
    text.parse().map_err(|_| unreadable(column, text))
}

fn maybe_number(column: &str, text: &str) -> Result<Option<i64>, Failure> {
    (text != "-").then(|| number(column, text)).transpose()
}

/// Takes one row of [`intent_columns`] with its links.
pub(super) fn intent(stored: &mut StoredIntents, row: &impl Fields) -> Result<(), Failure> {
    let attempt = row.maybe(8)?;
    let kind = word("kind", row.text(2)?, IntentKind::from_word)?;
    let status = word("status", row.text(5)?, IntentStatus::from_word)?;
    stored.rows.push(&Intent {
        intent_id: row.text(0)?,
        idempotency_key: row.text(1)?,
        kind,
        amount_minor: row.int(3)?,
        currency: word("currency", row.text(4)?, Currency::parse)?,
        status,
        created_at: Instant(row.int(6)?),
        processor_ref: row.text(7)?,
        attempt: attempt
            .map(|number| narrow("attempt", number))
            .transpose()?,
        parent_intent_id: row.text(9)?,
        reference: row.text(10)?,
        source: row.text(11)?,
        first_attempt_at: row.maybe(12)?.map(Instant),
        written_amount: row.text(13)?,
        invalid: row.text(14)?,
        is_recorded: flag("is_recorded", row.int(15)?)?,
        version: narrow("version", row.int(16)?)?,
    });
    let imported = maybe_word("imported_status", row.text(17)?, IntentStatus::from_word)?;
    stored.imported_status.push(imported);
    let text = &mut stored.rows.text;
    stored.imported_processor_ref.push(text.push(row.text(18)?));
    stored.answer.push(answer(kind, status, row.text(19)?)?);
    Ok(())
}
