//! The store in one `SQLite` file.
//!
//! | module | holds |
//! |---|---|
//! | `open` | whether the file is ours, whole and of this version; creating it |
//! | `failure` | what an error of the engine means |
//! | `bulk`, `packed` | many rows in one statement, many rows in one answer |
//! | `lease` | run keys and leases |
//! | `operations`, `intents` | the rows of both sides |
//! | `breaks`, `repairs` | what differs and what is done about it, as a run writes it |
//! | `open_items`, `ledger` | the same as it stands, and what persons say of it |
//! | `runs` | history and watermarks |
//! | `commit` | the one transaction of a run |
//!
//! # Decisions
//!
//! - Every write is `begin immediate`, so a lost race is a wait of at most 5 s, never a half-read transaction.
//! - A rollback journal with full synchronisation, no write-ahead log: a reader leaves no file behind, and the file is
//!   whole by itself whenever nobody writes.
//! - Migrations are our own list of files with `user_version` as the mark, written in the same transaction as the
//!   schema: no bookkeeping table that could meet somebody else's of the same name, and no lock but the engine's. A
//!   `PostgreSQL` twin marks its version in a row of a table of its own and needs no advisory lock either.
//! - A store is made under a temporary name and put in place whole. A file that exists is never created over.
//! - There is no fall-back without a lock: where `SQLite` cannot lock or make its journal, nothing is written.

mod breaks;
mod bulk;
mod commit;
mod failure;
mod intents;
mod lease;
mod ledger;
mod open;
mod open_items;
mod operations;
mod packed;
mod repairs;
mod runs;

use std::path::Path;

use sqlx::{Connection, SqliteConnection};

use self::failure::Doing;
pub use self::open::Mode;
use super::contract::{
    Begun, BreakDetail, BreakFilter, Carried, Claim, Commit, Counts, Decision, Freshness,
    IntentChanges, IntentSelection, Note, OperationSelection, Receipt, RepairDetail, RepairFilter,
    RunEnd, RunRow, RunStart, Store, Unconfirmed,
};
use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, CloseAs};
use crate::model::run::Watermark;
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::time::{Instant, Span};

/// A store in one `SQLite` file.
#[derive(Debug)]
pub struct SqliteStore {
    connection: SqliteConnection,
}

impl SqliteStore {
    /// Opens the store at a path. `NotReady` when the file is foreign, damaged, empty, newer than this program, or
    /// missing where it may not be created; `Denied` when it may not be read or written.
    pub async fn open(path: &Path, mode: Mode) -> Result<SqliteStore, Failure> {
        let connection = open::open(path, mode).await?;
        Ok(SqliteStore { connection })
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
        Ok(SqliteStore { connection })
    }

    /// Reads every page of the file; `NotReady` when one is damaged. Slow on a large store.
    pub async fn check_whole(&mut self) -> Result<(), Failure> {
        open::check_whole(&mut self.connection).await
    }

    /// Closes the file.
    pub async fn close_file(self) -> Result<(), Failure> {
        self.connection.close().await.doing("closing it")
    }
}

/// Somebody else was faster; nothing was written.
fn lost_race(what: &str) -> Failure {
    Failure::new(
        Exit::Temporary,
        format!("{what} while this run was reading"),
    )
    .remedy("run again; it reads the new state")
}

/// The one row of an answer to an id prefix.
fn only_one<T>(noun: &str, id_prefix: &str, rows: &mut Vec<T>) -> Result<T, Failure> {
    match (rows.pop(), rows.len()) {
        (Some(row), 0) => Ok(row),
        (None, _) => Err(
            Failure::rejected(format!("there is no {noun} {id_prefix:?}"))
                .remedy(format!("list them with paysweep {noun}s list")),
        ),
        (Some(_), others) => Err(Failure::rejected(format!(
            "{id_prefix:?} stands for {} {noun}s",
            others + 1
        ))
        .remedy("write more of the id")),
    }
}

impl Store for SqliteStore {
    async fn begin(&mut self, start: &RunStart<'_>) -> Result<Begun, Failure> {
        lease::begin(&mut self.connection, start).await
    }

    async fn claim(
        &mut self,
        source: &str,
        run_id: &str,
        owner: &str,
        ttl: Span,
    ) -> Result<Claim, Failure> {
        lease::claim(&mut self.connection, source, run_id, owner, ttl).await
    }

    async fn renew(&mut self, claim: &Claim, ttl: Span) -> Result<(), Failure> {
        lease::renew(&mut self.connection, claim, ttl).await
    }

    async fn release(&mut self, claim: &Claim) -> Result<(), Failure> {
        lease::release(&mut self.connection, claim).await
    }

    async fn watermark(&mut self, source: &str) -> Result<Option<Watermark>, Failure> {
        runs::watermark(&mut self.connection, source).await
    }

    async fn set_watermark(
        &mut self,
        claim: &Claim,
        to: &Watermark,
        note: &Note<'_>,
        gap: Option<&Break>,
    ) -> Result<(), Failure> {
        runs::set_watermark(&mut self.connection, claim, to, note, gap).await
    }

    async fn counts(&mut self, source: &str, scope: &str) -> Result<Counts, Failure> {
        runs::counts(&mut self.connection, source, scope).await
    }

    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure> {
        operations::load(&mut self.connection, source, selection).await
    }

    async fn intents(
        &mut self,
        scope: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure> {
        intents::load(&mut self.connection, scope, selection).await
    }

    async fn open_breaks(
        &mut self,
        sources: &[&str],
        as_of: Instant,
    ) -> Result<Vec<Break>, Failure> {
        open_items::open(&mut self.connection, sources, as_of).await
    }

    async fn commit(&mut self, claim: &Claim, commit: &Commit<'_>) -> Result<Receipt, Failure> {
        commit::commit(&mut self.connection, claim, commit).await
    }

    async fn is_committed(&mut self, run_id: &str, source: &str) -> Result<bool, Failure> {
        runs::is_committed(&mut self.connection, run_id, source).await
    }

    async fn import_intents(
        &mut self,
        scope: &str,
        run_id: &str,
        at: Instant,
        changes: &IntentChanges<'_>,
    ) -> Result<u64, Failure> {
        commit::import_intents(&mut self.connection, scope, run_id, at, changes).await
    }

    async fn carried(&mut self, sources: &[&str], as_of: Instant) -> Result<Carried, Failure> {
        runs::carried(&mut self.connection, sources, as_of).await
    }

    async fn mark_reported(
        &mut self,
        run_ids: &[&str],
        sources: &[&str],
        by: &str,
    ) -> Result<(), Failure> {
        runs::mark_reported(&mut self.connection, run_ids, sources, by).await
    }

    async fn finish_run(&mut self, end: &RunEnd<'_>) -> Result<(), Failure> {
        lease::finish(&mut self.connection, end).await
    }

    async fn unconfirmed(&mut self, scope: &str) -> Result<Unconfirmed, Failure> {
        ledger::unconfirmed(&mut self.connection, scope).await
    }

    async fn breaks(&mut self, filter: &BreakFilter<'_>) -> Result<Vec<Break>, Failure> {
        open_items::filtered(&mut self.connection, filter).await
    }

    async fn break_detail(
        &mut self,
        id_prefix: &str,
        as_of: Instant,
    ) -> Result<BreakDetail, Failure> {
        open_items::detail(&mut self.connection, id_prefix, as_of).await
    }

    async fn acknowledge(
        &mut self,
        id_prefix: &str,
        until: Instant,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        let word = open_items::Word::Acknowledge(until);
        open_items::say(&mut self.connection, id_prefix, word, note).await
    }

    async fn close(
        &mut self,
        id_prefix: &str,
        how: CloseAs,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        let word = open_items::Word::Close(how);
        open_items::say(&mut self.connection, id_prefix, word, note).await
    }

    async fn closes(&mut self, sources: &[&str]) -> Result<Vec<(String, CloseAs)>, Failure> {
        open_items::closes(&mut self.connection, sources).await
    }

    async fn repairs(&mut self, filter: &RepairFilter<'_>) -> Result<Vec<RepairDetail>, Failure> {
        ledger::filtered(&mut self.connection, filter).await
    }

    async fn repair(&mut self, id_prefix: &str) -> Result<RepairDetail, Failure> {
        ledger::detail(&mut self.connection, id_prefix).await
    }

    async fn decide(
        &mut self,
        id_prefix: &str,
        decision: Decision,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure> {
        ledger::decide(&mut self.connection, id_prefix, decision, note).await
    }

    async fn apply(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        ledger::apply(&mut self.connection, id_prefix, note).await
    }

    async fn runs(&mut self, limit: u32) -> Result<Vec<RunRow>, Failure> {
        runs::newest(&mut self.connection, limit).await
    }

    async fn run(&mut self, id_prefix: &str) -> Result<RunRow, Failure> {
        runs::one(&mut self.connection, id_prefix).await
    }

    async fn prune_runs(&mut self, before: Instant) -> Result<u64, Failure> {
        runs::prune(&mut self.connection, before).await
    }

    async fn freshness(&mut self, source: &str, as_of: Instant) -> Result<Freshness, Failure> {
        runs::freshness(&mut self.connection, source, as_of).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::operation::{Operation, Operations};

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
            .execute(&mut store.connection)
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
            on_conflict: &|_| unreachable!("there are no repairs"),
            advance_to: None,
            totals_json: "{}",
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
            .execute(&mut two.connection)
            .await
            .expect("less patience");
        let writing = one
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
