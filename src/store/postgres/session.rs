//! A connection, and one transaction on it at a time.
//!
//! # Decisions
//!
//! - The first message of a transaction begins it and sets everything it depends on, for itself alone. So neither the
//!   defaults of server, database or role, nor a pooler that hands out another connection for the next transaction, can
//!   change what a statement means. One thing is not overruled: whether the database may be written.
//! - No statement is named. A pooler would hand its name to a connection that does not know it.

use std::time::Duration;

use sqlx::postgres::{PgArguments, PgRow};
use sqlx::query::Query;
use sqlx::{
    Arguments, AssertSqlSafe, ConnectOptions, Connection, PgConnection, Postgres, SqlSafeStr,
};
use tokio::time::timeout;

use super::bulk::{self, PgValues};
use super::copy;
use super::failure::{Trouble, failure, silence, trouble};
use super::load;
use super::schema;
use crate::database::along::Lent;
use crate::database::postgres::Address;
use crate::exit::Failure;
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::store::contract::{IntentSelection, OperationSelection};
use crate::store::sql::dialect::{Bulk, Sql};
use crate::store::sql::engine::{Engine, Value};

/// How long a connection may take to come about.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);

/// How long an answer may take: longer than the server lets a statement run, so that the server gives up first.
const PATIENCE: Duration = Duration::from_secs(330);

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// One consistent picture, and not a byte changes.
    Read,
    /// Rules that two writers could break between them are guarded by keys and held rows.
    Write,
    /// Creates things where our tables are.
    Migrate,
}

/// A connection, inside a transaction while the engine uses it.
pub(crate) struct PgSession {
    pub(super) connection: PgConnection,
    schema: String,
    /// What the last error meant.
    pub(super) trouble: Option<Trouble>,
    /// Whether a transaction has begun and not ended. It stays so when its work was dropped half-way.
    pub(super) is_inside: bool,
    /// Whether a row that was said to be new was there: then the next try leaves alone what it finds.
    pub(super) has_met_a_row: bool,
}

impl std::fmt::Debug for PgSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgSession")
            .field("trouble", &self.trouble)
            .field("is_inside", &self.is_inside)
            .finish_non_exhaustive()
    }
}

impl PgSession {
    /// Connects.
    pub(super) async fn connect(address: &Address) -> Result<PgSession, Failure> {
        let doing = "connecting";
        let connecting = address.options().connect();
        let connection = match timeout(CONNECT_PATIENCE, connecting).await {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(failure(doing, &error)),
            Err(_) => return Err(silence(doing)),
        };
        Ok(PgSession {
            connection,
            schema: address.schema().to_owned(),
            trouble: None,
            is_inside: false,
            has_met_a_row: false,
        })
    }

    /// Begins a transaction.
    pub(super) async fn begin(&mut self, doing: &str, purpose: Purpose) -> Result<(), Failure> {
        let schema = &self.schema;
        let (mode, path) = match purpose {
            Purpose::Read => (
                "repeatable read, read only",
                format!("pg_catalog, \"{schema}\", pg_temp"),
            ),
            Purpose::Write => (
                "read committed",
                format!("pg_catalog, \"{schema}\", pg_temp"),
            ),
            // What is created goes into the first schema.
            Purpose::Migrate => (
                "read committed",
                format!("\"{schema}\", pg_catalog, pg_temp"),
            ),
        };
        self.trouble = None;
        self.is_inside = true;
        let begin = format!(
            "begin isolation level {mode}; \
             set local search_path = {path}; \
             set local timezone = 'UTC'; \
             set local datestyle = 'ISO, YMD'; \
             set local statement_timeout = '5min'; \
             set local lock_timeout = '5s'; \
             set local idle_in_transaction_session_timeout = '2min'; \
             set local default_tablespace = ''; \
             set local application_name = 'paysweep'"
        );
        self.send(doing, begin).await
    }

    /// Ends a transaction so that it takes hold.
    pub(super) async fn commit(&mut self, doing: &str) -> Result<(), Failure> {
        self.send(doing, "commit".to_owned()).await?;
        self.is_inside = false;
        self.has_met_a_row = false;
        Ok(())
    }

    /// Ends a transaction as if it had never been.
    pub(super) async fn roll_back(&mut self) -> Result<(), Failure> {
        self.send("rolling back", "rollback".to_owned()).await?;
        self.is_inside = false;
        Ok(())
    }

    /// Sends statements that have no values.
    pub(super) async fn send(&mut self, doing: &str, statements: String) -> Result<(), Failure> {
        let sending = sqlx::raw_sql(AssertSqlSafe(statements)).execute(&mut self.connection);
        let answer = timeout(PATIENCE, sending).await;
        self.understood(doing, answer).map(|_| ())
    }

    /// Closes the connection.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let doing = "closing the connection";
        self.connection
            .close()
            .await
            .map_err(|error| failure(doing, &error))
    }

    /// Writes with values that are packed already.
    pub(super) async fn write_with(
        &mut self,
        doing: &str,
        statement: impl SqlSafeStr,
        arguments: PgArguments,
    ) -> Result<u64, Failure> {
        let writing = sqlx::query_with(statement, arguments)
            .persistent(false)
            .execute(&mut self.connection);
        let answer = timeout(PATIENCE, writing).await;
        Ok(self.understood(doing, answer)?.rows_affected())
    }

    /// Notes what an error means to the transaction, and gives it its sentence.
    pub(super) fn understood<T>(
        &mut self,
        doing: &str,
        answer: Result<Result<T, sqlx::Error>, tokio::time::error::Elapsed>,
    ) -> Result<T, Failure> {
        match answer {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                self.trouble = Some(trouble(&error));
                Err(failure(doing, &error))
            }
            Err(_) => {
                self.trouble = Some(Trouble::Lost);
                Err(silence(doing))
            }
        }
    }

    /// How long an answer may take.
    pub(super) const fn patience() -> Duration {
        PATIENCE
    }
}

fn bound(
    doing: &str,
    statement: Sql,
    values: &[Value<'_>],
) -> Result<Query<'static, Postgres, PgArguments>, Failure> {
    let arguments = arguments(doing, values)?;
    Ok(sqlx::query_with(statement.postgres, arguments).persistent(false))
}

/// Packs values.
pub(super) fn arguments(doing: &str, values: &[Value<'_>]) -> Result<PgArguments, Failure> {
    let mut arguments = PgArguments::default();
    for value in values {
        match value {
            Value::Text(text) => arguments.add(*text),
            Value::Int(number) => arguments.add(*number),
            Value::Keys(keys) => arguments.add(keys.as_slice()),
        }
        .map_err(|error| failure(doing, &sqlx::Error::Encode(error)))?;
    }
    Ok(arguments)
}

impl Engine for PgSession {
    type Row = PgRow;
    type Values = PgValues;

    async fn rows(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<Vec<PgRow>, Failure> {
        let asking = bound(doing, question, values)?.fetch_all(&mut self.connection);
        let answer = timeout(PATIENCE, asking).await;
        self.understood(doing, answer)
    }

    async fn hold(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<(), Failure> {
        self.rows(doing, question, values).await.map(|_| ())
    }

    async fn write(
        &mut self,
        doing: &str,
        statement: Sql,
        values: &[Value<'_>],
    ) -> Result<u64, Failure> {
        let arguments = arguments(doing, values)?;
        self.write_with(doing, statement.postgres, arguments).await
    }

    async fn write_many(
        &mut self,
        doing: &str,
        bulk: &Bulk,
        count: usize,
        bind: impl FnMut(usize, &mut PgValues),
    ) -> Result<u64, Failure> {
        if bulk.is_new && !self.has_met_a_row {
            copy::write(self, doing, bulk, count, bind).await
        } else {
            bulk::write(self, doing, bulk, count, bind).await
        }
    }

    fn lent(&mut self) -> Lent<'_> {
        Lent::Postgres(&mut self.connection)
    }

    async fn assert_version(&mut self) -> Result<(), Failure> {
        schema::assert_version(self).await
    }

    async fn hold_generations(&mut self) -> Result<(), Failure> {
        let lock = "lock table generations in access exclusive mode";
        self.send("holding the generations", lock.to_owned()).await
    }

    async fn add_generation(&mut self, number: i64) -> Result<(), Failure> {
        let add = format!(
            "create table \"{}\".operations_g{number} partition of operations for values in ({number})",
            self.schema
        );
        self.send("adding a generation", add).await
    }

    async fn drop_generation(&mut self, number: i64) -> Result<(), Failure> {
        let drop = format!("drop table operations_g{number}");
        self.send("dropping a generation", drop).await
    }

    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure> {
        load::operations(self, source, selection).await
    }

    async fn intents(
        &mut self,
        scope: &str,
        seen_from: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure> {
        load::intents(self, scope, seen_from, selection).await
    }
}
