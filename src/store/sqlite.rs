//! The store in one `SQLite` file.
//!
//! | module | holds |
//! |---|---|
//! | `open` | whether the file is ours, whole and of this version; creating it |
//! | `failure` | what an error of the engine means |
//! | `bulk`, `packed` | many rows in one statement, many rows in one answer |
//! | `load` | the rows of both sides, as they are read |
//!
//! # Decisions
//!
//! - Every write is `begin immediate`, so a lost race is a wait of at most 5 s, never a half-read transaction.
//! - A rollback journal with full synchronisation, no write-ahead log: a reader leaves no file behind, and the file is
//!   whole by itself whenever nobody writes.
//! - Migrations are our own list of files with `user_version` as the mark, written in the same transaction as the
//!   schema: no bookkeeping table that could meet somebody else's of the same name, and no lock but the engine's. A
//!   `PostgreSQL` twin marks its version in a row of a table of its own and needs no advisory lock either.
//! - Transactions are begun and ended by statements of our own. The driver counts them, and loses count where the engine rolls
//!   back by itself.
//! - A store is made under a temporary name and put in place whole. A file that exists is never created over.
//! - There is no fall-back without a lock: where `SQLite` cannot lock or make its journal, nothing is written.

mod bulk;
mod failure;
mod load;
mod open;
mod packed;

use std::path::Path;

use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Connection, Sqlite, SqliteConnection};

use self::bulk::list;
use self::failure::Doing;
pub use self::open::Mode;
use super::contract::{IntentSelection, OperationSelection};
use super::sql::SqlStore;
use super::sql::dialect::{Bulk, Sql};
use super::sql::engine::{Database, Engine, Repeat, Value};
use crate::database::along::Lent;
use crate::exit::Failure;
use crate::model::stored::{StoredIntents, StoredOperations};

/// A store in one `SQLite` file.
pub type SqliteStore = SqlStore<SqliteFile>;

/// The file, as one connection to it.
#[derive(Debug)]
pub struct SqliteFile {
    connection: SqliteConnection,
    /// Whether a transaction has begun and not ended. It stays so when its work was dropped half-way.
    is_inside: bool,
}

impl SqliteFile {
    fn new(connection: SqliteConnection) -> SqliteFile {
        SqliteFile {
            connection,
            is_inside: false,
        }
    }

    /// Ends what was begun, if anything still is: a full disk and a trigger can make the engine roll back by itself.
    async fn roll_back(&mut self) {
        if self.is_inside {
            let _ = self.send("rolling back", "rollback").await;
            self.is_inside = false;
        }
    }

    async fn send(&mut self, doing: &str, statement: &'static str) -> Result<(), Failure> {
        let sending = sqlx::raw_sql(statement).execute(&mut self.connection);
        sending.await.map(|_| ()).doing(doing)
    }
}

impl SqliteStore {
    /// Opens the store at a path. `NotReady` when the file is foreign, damaged, empty, newer than this program, or
    /// missing where it may not be created; `Denied` when it may not be read or written.
    pub async fn open(path: &Path, mode: Mode) -> Result<SqliteStore, Failure> {
        let connection = open::open(path, mode).await?;
        Ok(SqlStore {
            database: SqliteFile::new(connection),
        })
    }

    /// Opens the store at a path for reading only; `None` when there is no file.
    pub async fn open_existing(path: &Path) -> Result<Option<SqliteStore>, Failure> {
        if !open::exists(path)? {
            return Ok(None);
        }
        SqliteStore::open(path, Mode::ReadOnly).await.map(Some)
    }

    /// An empty store in memory: for a dry run where there is no file yet, and for tests.
    pub async fn in_memory() -> Result<SqliteStore, Failure> {
        let connection = open::in_memory().await?;
        Ok(SqlStore {
            database: SqliteFile::new(connection),
        })
    }

    /// Reads every page of the file; `NotReady` when one is damaged. Slow on a large store.
    pub async fn check_whole(&mut self) -> Result<(), Failure> {
        open::check_whole(&mut self.database.connection).await
    }

    /// Closes the file.
    pub async fn close_file(self) -> Result<(), Failure> {
        self.database.connection.close().await.doing("closing it")
    }
}

impl Database for SqliteFile {
    type Session = SqliteConnection;

    async fn read<T>(
        &mut self,
        mut question: impl AsyncFnMut(&mut SqliteConnection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.roll_back().await;
        question(&mut self.connection).await
    }

    async fn write<T>(
        &mut self,
        doing: &str,
        _repeat: Repeat<'_>,
        mut work: impl AsyncFnMut(&mut SqliteConnection) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.roll_back().await;
        self.send(doing, "begin immediate").await?;
        self.is_inside = true;
        let worked = match self.connection.assert_version().await {
            Ok(()) => work(&mut self.connection).await,
            Err(failure) => Err(failure),
        };
        let ended = match worked {
            Ok(done) => self.send(doing, "commit").await.map(|()| done),
            Err(failure) => Err(failure),
        };
        if ended.is_ok() {
            self.is_inside = false;
        } else {
            self.roll_back().await;
        }
        ended
    }
}

fn bound<'q>(
    statement: Sql,
    values: &[Value<'_>],
) -> sqlx::query::Query<'q, Sqlite, SqliteArguments> {
    let mut query = sqlx::query(statement.sqlite);
    for value in values {
        query = match value {
            Value::Text(text) => query.bind((*text).to_owned()),
            Value::Int(number) => query.bind(*number),
            Value::Keys(keys) => query.bind(list(keys)),
        };
    }
    query
}

impl Engine for SqliteConnection {
    type Row = SqliteRow;
    type Values = bulk::SqliteValues;

    async fn rows(
        &mut self,
        doing: &str,
        question: Sql,
        values: &[Value<'_>],
    ) -> Result<Vec<SqliteRow>, Failure> {
        bound(question, values).fetch_all(self).await.doing(doing)
    }

    async fn hold(
        &mut self,
        _doing: &str,
        _question: Sql,
        _values: &[Value<'_>],
    ) -> Result<(), Failure> {
        // `begin immediate` holds the whole file.
        Ok(())
    }

    async fn write(
        &mut self,
        doing: &str,
        statement: Sql,
        values: &[Value<'_>],
    ) -> Result<u64, Failure> {
        let done = bound(statement, values).execute(self).await.doing(doing)?;
        Ok(done.rows_affected())
    }

    async fn write_many(
        &mut self,
        doing: &str,
        bulk: &Bulk,
        count: usize,
        bind: impl FnMut(usize, &mut bulk::SqliteValues),
    ) -> Result<u64, Failure> {
        bulk::write(self, doing, bulk, count, bind).await
    }

    fn lent(&mut self) -> Lent<'_> {
        Lent::Sqlite(self)
    }

    async fn assert_version(&mut self) -> Result<(), Failure> {
        open::assert_version(self).await
    }

    async fn hold_generations(&mut self) -> Result<(), Failure> {
        // `begin immediate` holds the whole file.
        Ok(())
    }

    async fn add_generation(&mut self, _number: i64) -> Result<(), Failure> {
        // One table holds them all.
        Ok(())
    }

    async fn drop_generation(&mut self, number: i64) -> Result<(), Failure> {
        const DROP: Sql = Sql::same("delete from operations where generation = $1");
        self.write("dropping a generation", DROP, &[number.into()])
            .await
            .map(|_| ())
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::meter::Meter;
    use crate::model::operation::{Operation, Operations};
    use crate::store::contract::{Commit, Store};
    use crate::time::{Instant, Span};

    #[tokio::test]
    async fn a_full_disk_leaves_the_store_as_it_was() {
        let mut store = SqliteStore::in_memory().await.expect("a store");
        let mut rows = Operations::default();
        for number in 0..20_000 {
            rows.push(&Operation {
                operation_id: &format!("ch_{number}"),
                ..Operation::EMPTY
            });
        }
        let all: Vec<usize> = (0..rows.len()).collect();
        let claim = store
            .claim("shop", "r1", "owner", Span::hours(1))
            .await
            .expect("a free source");
        sqlx::query("pragma max_page_count = 200")
            .execute(&mut store.database.connection)
            .await
            .expect("a limit");
        let commit = Commit {
            run_id: "r1",
            scope: "intents",
            as_of: Instant(0),
            expected_watermark: None,
            operations: &rows,
            files: &[],
            new_operations: &all,
            updated_operations: &[],
            rejected_operations: &[],
            intents: None,
            links: &[],
            breaks: &[],
            resolved: &[],
            repairs: &[],
            on_conflict: &|_, _| unreachable!("there are no repairs"),
            advance_to: None,
            pin: None,
            totals_json: "{}",
            meter: &Meter::default(),
        };
        let failure = store.commit(&claim, &commit).await.expect_err("no space");
        assert_eq!(failure.exit, Exit::Temporary, "{failure}");
        let counts = store.counts("shop", "intents").await.expect("counts");
        assert_eq!(counts.operations, 0);
        assert!(!store.is_committed("r1", "shop").await.expect("an answer"));
        store.check_whole().await.expect("a whole store");
    }

    #[tokio::test]
    async fn a_store_that_somebody_else_holds_is_busy_and_nothing_else() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("paysweep.db");
        let mut one = SqliteStore::open(&path, Mode::ReadWriteCreate)
            .await
            .expect("a store");
        let mut two = SqliteStore::open(&path, Mode::ReadWriteCreate)
            .await
            .expect("a store");
        sqlx::query("pragma busy_timeout = 1")
            .execute(&mut two.database.connection)
            .await
            .expect("less patience");
        let writing = one
            .database
            .connection
            .begin_with("begin immediate")
            .await
            .expect("a transaction");
        let failure = two
            .claim("shop", "r2", "owner", Span::hours(1))
            .await
            .expect_err("a busy store");
        assert_eq!(failure.exit, Exit::Temporary, "{failure}");
        drop(writing);
    }
}
