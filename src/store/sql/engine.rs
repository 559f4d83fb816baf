//! What the store asks of an engine: statements inside a transaction, and the transaction itself.

use std::sync::Arc;

use super::dialect::{Bulk, Sql};
use crate::database::along::Lent;
use crate::exit::{Exit, Failure};
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::store::contract::{IntentSelection, OperationSelection};

/// How many keys travel in one list.
pub(crate) const KEYS_MAX: usize = 1_000;

/// A value of a statement.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// A text; empty = none.
    Text(&'a str),
    /// A number.
    Int(i64),
    /// A list of keys.
    Keys(Vec<&'a str>),
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Value<'a> {
        Value::Text(text)
    }
}

impl<'a> From<&'a String> for Value<'a> {
    fn from(text: &'a String) -> Value<'a> {
        Value::Text(text)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}

impl From<bool> for Value<'_> {
    fn from(flag: bool) -> Self {
        Value::Int(i64::from(flag))
    }
}

/// A list of keys as a value.
pub(crate) fn keys<T: AsRef<str>>(keys: &[T]) -> Value<'_> {
    Value::Keys(keys.iter().map(AsRef::as_ref).collect())
}

/// The values of many rows, in the order of their columns.
pub(crate) trait Values {
    /// A text; empty = none.
    fn text(&mut self, text: &str) -> &mut Self;
    /// A number.
    fn int(&mut self, value: i64) -> &mut Self;
    /// A number, or null.
    fn maybe(&mut self, value: Option<i64>) -> &mut Self;
    /// 0 or 1.
    fn flag(&mut self, value: bool) -> &mut Self {
        self.int(i64::from(value))
    }
    /// A text that many rows share.
    fn shared(&mut self, text: &Arc<str>) -> &mut Self;
}

/// A row of an answer, by the names of its columns.
pub(crate) trait Columns {
    /// A text.
    fn text(&self, column: &str) -> Result<String, Failure>;
    /// A text, or none.
    fn maybe_text(&self, column: &str) -> Result<Option<String>, Failure>;
    /// A number.
    fn int(&self, column: &str) -> Result<i64, Failure>;
    /// A number, or none.
    fn maybe(&self, column: &str) -> Result<Option<i64>, Failure>;
}

impl<R> Columns for R
where
    R: sqlx::Row,
    for<'c> &'c str: sqlx::ColumnIndex<R>,
    for<'r> String: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
    for<'r> i64: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,
{
    fn text(&self, column: &str) -> Result<String, Failure> {
        self.try_get(column)
            .map_err(|error| foreign(column, &error))
    }

    fn maybe_text(&self, column: &str) -> Result<Option<String>, Failure> {
        self.try_get(column)
            .map_err(|error| foreign(column, &error))
    }

    fn int(&self, column: &str) -> Result<i64, Failure> {
        self.try_get(column)
            .map_err(|error| foreign(column, &error))
    }

    fn maybe(&self, column: &str) -> Result<Option<i64>, Failure> {
        self.try_get(column)
            .map_err(|error| foreign(column, &error))
    }
}

/// A column that is not of the type that this version gave it.
fn foreign(column: &str, error: &sqlx::Error) -> Failure {
    Failure::new(
        Exit::NotReady,
        format!("the store's column {column} cannot be read: {error}"),
    )
    .remedy("restore the store from a backup, or use the version that wrote it")
}

/// A connection inside a transaction.
#[allow(
    async_fn_in_trait,
    reason = "one thread drives everything: no caller needs the futures to be Send"
)]
pub(crate) trait Engine {
    /// A row of an answer.
    type Row: Columns;
    /// The values of an insert of many rows.
    type Values: Values;

    /// All rows of an answer. `doing` is for the sentence of a failure: `reading breaks`.
    async fn rows(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<Vec<Self::Row>, Failure>;

    /// Holds rows until the transaction ends, so that what is read next stays as it is.
    async fn hold(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<(), Failure>;

    /// Writes. Returns how many rows it changed.
    async fn write(
        &mut self,
        doing: &str,
        statement: Sql,
        values: &[Value<'_>],
    ) -> Result<u64, Failure>;

    /// Writes `count` rows, of which `bind` gives the values. Returns how many rows it changed.
    async fn write_many(
        &mut self,
        doing: &str,
        bulk: &Bulk,
        count: usize,
        bind: impl FnMut(usize, &mut Self::Values),
    ) -> Result<u64, Failure>;

    /// Lends the connection, inside the transaction that has begun.
    fn lent(&mut self) -> Lent<'_>;

    /// Whether the schema is still the one this program knows; asked inside every transaction that writes.
    async fn assert_version(&mut self) -> Result<(), Failure>;

    /// Waits until nobody writes operations any more, and keeps others from it until the transaction ends.
    async fn hold_generations(&mut self) -> Result<(), Failure>;

    /// Makes room for a generation of operations.
    async fn add_generation(&mut self, number: i64) -> Result<(), Failure>;

    /// Takes a generation of operations away.
    async fn drop_generation(&mut self, number: i64) -> Result<(), Failure>;

    /// The operations of a selection.
    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure>;

    /// The intents of a selection.
    async fn intents(
        &mut self,
        scope: &str,
        seen_from: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure>;

    /// The first row of an answer, where there is one.
    async fn first(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<Option<Self::Row>, Failure> {
        Ok(self.rows(doing, question, values).await?.into_iter().next())
    }

    /// The row of an answer that always has one.
    async fn one(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<Self::Row, Failure> {
        self.first(doing, question, values).await?.ok_or_else(|| {
            Failure::new(
                Exit::Internal,
                format!("the store gave no answer while {doing}"),
            )
        })
    }
}

/// What happens when nobody knows whether a transaction took hold, since the connection broke at its end.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Repeat<'a> {
    /// The same again changes nothing more, so it is written again.
    Harmless,
    /// The marker of a run's commit tells.
    Marked {
        /// The run.
        run_id: &'a str,
        /// The source.
        source: &'a str,
    },
    /// A person has to look before it is done again.
    Doubles,
}

/// A database: it runs work as a transaction.
#[allow(
    async_fn_in_trait,
    reason = "one thread drives everything: no caller needs the futures to be Send"
)]
pub(crate) trait Database {
    /// A connection inside a transaction.
    type Session: Engine;

    /// Answers a question.
    async fn read<T>(
        &mut self,
        question: impl AsyncFnMut(&mut Self::Session) -> Result<T, Failure>,
    ) -> Result<T, Failure>;

    /// Does all of the work, or nothing. Where the engine lost a race, the whole of it is done again.
    async fn write<T>(
        &mut self,
        doing: &str,
        repeat: Repeat<'_>,
        work: impl AsyncFnMut(&mut Self::Session) -> Result<T, Failure>,
    ) -> Result<T, Failure>;
}
