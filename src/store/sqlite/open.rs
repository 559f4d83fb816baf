//! Opening the file: whether it is ours, whole, and of this version; creating it where it does not exist.

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, SqliteConnection};

use super::failure::Doing;
use crate::exit::{Exit, Failure};
use crate::store::rows::unreadable;

/// Stands in the header of every store: "pays" in ASCII.
const APPLICATION_ID: i32 = 0x7061_7973;

/// Every step of the schema, in order; the number is the `user_version` after it.
const MIGRATIONS: &[(i32, &str)] = &[
    (1, include_str!("../../../migrations/sqlite/0001_init.sql")),
    (
        2,
        include_str!("../../../migrations/sqlite/0002_ledger.sql"),
    ),
    (
        3,
        include_str!("../../../migrations/sqlite/0003_redrive.sql"),
    ),
    (4, include_str!("../../../migrations/sqlite/0004_pins.sql")),
    (5, include_str!("../../../migrations/sqlite/0005_prune.sql")),
    (
        6,
        include_str!("../../../migrations/sqlite/0006_deliveries.sql"),
    ),
    (
        7,
        include_str!("../../../migrations/sqlite/0007_retention.sql"),
    ),
];

/// The `user_version` of this program.
const SCHEMA_VERSION: i32 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// How long a statement waits for another process. Unit: seconds. Longer than a usual commit, shorter than patience.
const BUSY_TIMEOUT_SECONDS: u64 = 5;

/// Memory for pages; keeps a commit of a million rows from reading its own indexes back. Unit: KiB, negative by
/// convention of the pragma.
const CACHE_SIZE: &str = "-65536";

/// How many rows the engine's thread may be ahead of the reader: every hand-over wakes a thread.
const ROW_BUFFER: usize = 1_000;

/// Up to this size a file is checked whole when it is opened, beyond it only its control tables. Unit: bytes.
const WHOLE_CHECK_BYTES_MAX: u64 = 4 << 20;

/// What may be done to the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Created where it does not exist, brought to this version, written.
    ReadWriteCreate,
    /// Brought to this version and written; not created.
    ReadWrite,
    /// Not a byte changes, and no file appears beside it.
    ReadOnly,
}

/// Whether a store exists at the path.
pub(super) fn exists(path: &Path) -> Result<bool, Failure> {
    path.try_exists().map_err(|error| {
        Failure::new(
            Exit::Denied,
            format!("{}: cannot be looked at: {error}", path.display()),
        )
    })
}

/// Opens a store of this version.
pub(super) async fn open(path: &Path, mode: Mode) -> Result<SqliteConnection, Failure> {
    if !exists(path)? {
        match mode {
            Mode::ReadWriteCreate => create(path).await?,
            Mode::ReadWrite | Mode::ReadOnly => {
                return Err(Failure::new(
                    Exit::NotReady,
                    format!("{}: there is no store", path.display()),
                )
                .remedy("run paysweep run once; it creates the store"));
            }
        }
    }
    let bytes = std::fs::metadata(path)
        .map_err(|error| {
            Failure::new(
                Exit::Denied,
                format!("{}: cannot be looked at: {error}", path.display()),
            )
        })?
        .len();
    if bytes == 0 {
        return Err(not_ours(path, "it is empty").why(
            "a store is created in one step and is never empty, so this file was cut or is not ours",
        ));
    }
    let opened = async {
        let mut connection = connect(options(path, mode)).await?;
        identify(&mut connection, path).await?;
        check(&mut connection, bytes).await?;
        bring_up_to_date(&mut connection, mode).await?;
        Ok(connection)
    };
    opened.await.map_err(|mut failure: Failure| {
        if !failure.what.starts_with(&*path.to_string_lossy()) {
            failure.what = format!("{}: {}", path.display(), failure.what);
        }
        failure
    })
}

/// An empty store that lives as long as the connection.
pub(super) async fn in_memory() -> Result<SqliteConnection, Failure> {
    let options = SqliteConnectOptions::new()
        .in_memory(true)
        .foreign_keys(false)
        .disable_statement_logging();
    let mut connection = connect(options).await?;
    migrate(&mut connection, 0).await?;
    Ok(connection)
}

/// Whether the schema is still the one this program knows; asked inside every transaction that writes.
pub(super) async fn assert_version(connection: &mut SqliteConnection) -> Result<(), Failure> {
    match version(connection).await? {
        SCHEMA_VERSION => Ok(()),
        other => Err(other_version(other)),
    }
}

/// Reads every page. Slow on a large store; for `paysweep check`.
pub(super) async fn check_whole(connection: &mut SqliteConnection) -> Result<(), Failure> {
    const IS_EVERY_PAGE_WHOLE: &str = "pragma quick_check(1)";
    verdict(connection, IS_EVERY_PAGE_WHOLE).await
}

fn options(path: &Path, mode: Mode) -> SqliteConnectOptions {
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(mode == Mode::ReadOnly)
        .foreign_keys(false)
        .busy_timeout(Duration::from_secs(BUSY_TIMEOUT_SECONDS))
        .row_buffer_size(ROW_BUFFER)
        .pragma("cache_size", CACHE_SIZE)
        .pragma("trusted_schema", "off")
        .disable_statement_logging();
    match mode {
        Mode::ReadOnly => options.pragma("query_only", "on"),
        Mode::ReadWriteCreate | Mode::ReadWrite => options
            .journal_mode(SqliteJournalMode::Delete)
            .synchronous(SqliteSynchronous::Full),
    }
}

async fn connect(options: SqliteConnectOptions) -> Result<SqliteConnection, Failure> {
    SqliteConnection::connect_with(&options)
        .await
        .doing("opening it")
}

/// Makes the store under a temporary name and puts it in place whole, so that nobody ever sees half of one, and so that
/// a file that exists is never touched.
async fn create(path: &Path) -> Result<(), Failure> {
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    };
    let denied = |error: &std::io::Error| {
        let exit = match error.kind() {
            std::io::ErrorKind::StorageFull => Exit::Temporary,
            _ => Exit::Denied,
        };
        Failure::new(
            exit,
            format!("{}: the store cannot be created: {error}", path.display()),
        )
        .remedy("create its directory, or give this user the right to write there")
    };
    // Mode 0600: a temporary file is the owner's alone.
    let file = tempfile::Builder::new()
        .prefix(".paysweep-")
        .suffix(".new")
        .tempfile_in(&directory)
        .map_err(|error| denied(&error))?;
    let mut connection = connect(options(file.path(), Mode::ReadWriteCreate)).await?;
    migrate(&mut connection, 0).await?;
    connection.close().await.doing("creating it")?;
    match file.persist_noclobber(path) {
        Ok(_) => {}
        // Somebody else was faster; theirs is as good.
        Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(denied(&error.error)),
    }
    std::fs::File::open(&directory)
        .and_then(|directory| directory.sync_all())
        .map_err(|error| denied(&error))
}

async fn identify(connection: &mut SqliteConnection, path: &Path) -> Result<(), Failure> {
    const WHOSE_FILE: &str = "select application_id from pragma_application_id";
    let application_id: i32 = sqlx::query_scalar(WHOSE_FILE)
        .fetch_one(&mut *connection)
        .await
        .doing("reading its header")?;
    if application_id != APPLICATION_ID {
        return Err(not_ours(path, "it is the database of another program"));
    }
    Ok(())
}

fn not_ours(path: &Path, what: &str) -> Failure {
    Failure::new(
        Exit::NotReady,
        format!("{}: is no store of paysweep: {what}", path.display()),
    )
    .remedy("point [store] url elsewhere, or move the file away; it is never created over")
}

async fn check(connection: &mut SqliteConnection, bytes: u64) -> Result<(), Failure> {
    const ARE_THE_CONTROL_TABLES_WHOLE: [&str; 4] = [
        "pragma quick_check('leases')",
        "pragma quick_check('watermarks')",
        "pragma quick_check('run_keys')",
        "pragma quick_check('run_commits')",
    ];
    if bytes <= WHOLE_CHECK_BYTES_MAX {
        return check_whole(connection).await;
    }
    for question in ARE_THE_CONTROL_TABLES_WHOLE {
        verdict(connection, question).await?;
    }
    Ok(())
}

async fn verdict(connection: &mut SqliteConnection, question: &'static str) -> Result<(), Failure> {
    let answer: String = sqlx::query_scalar(question)
        .fetch_one(&mut *connection)
        .await
        .doing("checking it")?;
    if answer == "ok" {
        return Ok(());
    }
    Err(
        Failure::new(Exit::NotReady, format!("the store is damaged: {answer}"))
            .remedy("restore it from a backup; it is never created over"),
    )
}

async fn bring_up_to_date(connection: &mut SqliteConnection, mode: Mode) -> Result<(), Failure> {
    match version(connection).await? {
        SCHEMA_VERSION => Ok(()),
        older if (1..SCHEMA_VERSION).contains(&older) && mode != Mode::ReadOnly => {
            migrate(connection, older).await
        }
        other => Err(other_version(other)),
    }
}

async fn version(connection: &mut SqliteConnection) -> Result<i32, Failure> {
    const WHICH_SCHEMA: &str = "select user_version from pragma_user_version";
    sqlx::query_scalar(WHICH_SCHEMA)
        .fetch_one(&mut *connection)
        .await
        .doing("reading its version")
}

fn other_version(found: i32) -> Failure {
    if found > SCHEMA_VERSION {
        return Failure::new(
            Exit::NotReady,
            format!("the store has schema {found}, this program knows up to {SCHEMA_VERSION}"),
        )
        .remedy("use the newer program that upgraded it");
    }
    if found < 1 {
        return unreadable("schema version", &found.to_string());
    }
    Failure::new(
        Exit::NotReady,
        format!("the store has schema {found}, this program needs {SCHEMA_VERSION}"),
    )
    .remedy("run paysweep migrate, or paysweep run, which upgrades it by itself")
}

/// Brings a schema from a version to this program's, in one transaction.
async fn migrate(connection: &mut SqliteConnection, from: i32) -> Result<(), Failure> {
    let mark_as_ours =
        format!("pragma application_id = {APPLICATION_ID}; pragma user_version = {SCHEMA_VERSION}");
    let doing = "migrating it";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    // Another process may have been faster.
    let from = if from == 0 {
        0
    } else {
        version(&mut transaction).await?
    };
    for (number, statements) in MIGRATIONS {
        if *number > from {
            sqlx::raw_sql(*statements)
                .execute(&mut *transaction)
                .await
                .doing(doing)?;
        }
    }
    sqlx::raw_sql(AssertSqlSafe(mark_as_ours))
        .execute(&mut *transaction)
        .await
        .doing(doing)?;
    transaction.commit().await.doing(doing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mark_is_pays_and_the_versions_only_grow() {
        assert_eq!(APPLICATION_ID.to_be_bytes(), *b"pays");
        let numbers: Vec<i32> = MIGRATIONS.iter().map(|(number, _)| *number).collect();
        assert!(numbers.is_sorted() && numbers.last() == Some(&SCHEMA_VERSION));
    }

    #[tokio::test]
    async fn the_linked_sqlite_is_one_without_the_reset_race() {
        let mut connection = in_memory().await.expect("a store");
        let version: String = sqlx::query_scalar("select sqlite_version()")
            .fetch_one(&mut connection)
            .await
            .expect("a version");
        let numbers: Vec<u32> = version
            .split('.')
            .map(|part| part.parse().expect("a number"))
            .collect();
        assert!(numbers >= vec![3, 51, 3], "{version}");
    }
}
