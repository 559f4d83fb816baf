//! A connection to the company's database, and one transaction that only reads.
//!
//! # Decisions
//!
//! - Every answer is asked for as text, so that one reader of rows serves every engine.
//! - Everything that a transaction depends on is set in it and for it alone, so that a pooler in transaction mode may stand
//!   in between. No statement is named. (`MySQL` knows no setting of one transaction; there it is the session's.)
//! - A file of `SQLite` is opened so that not a byte changes and no file appears beside it. One with a write-ahead log
//!   that nobody has open is read as it lies there, and whether it was left alone is looked at when the reading ends.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use futures_util::TryStreamExt;
use sqlx::mysql::MySqlConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, PgConnection, Row, SqliteConnection};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

use super::dialect::Engine;
use super::failure::{failure, is_lost, refusal, silence};
use crate::database::DatabaseUrl;
use crate::database::along::Lent;
use crate::exit::{Exit, Failure};
use crate::time::Span;

/// How long a connection may take to come about.
const CONNECT_PATIENCE: Duration = Duration::from_secs(15);
/// How long a lock is waited for. Unit: seconds. A migration of the company's goes first.
const LOCK_SECONDS: u64 = 5;
/// How much longer than the statement may take its answer is waited for, so that the server gives up first.
const MARGIN: Duration = Duration::from_secs(15);

/// A value of a statement.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A text.
    Text(String),
    /// A whole number.
    Int(i64),
    /// NULL where a text could stand.
    NoText,
    /// NULL where a number could stand.
    NoInt,
    /// Texts, as one array (`PostgreSQL`).
    Texts(Vec<String>),
}

/// A statement with its values.
#[derive(Clone, Debug, Default)]
pub(super) struct Statement {
    pub(super) text: String,
    pub(super) values: Vec<Value>,
}

impl Statement {
    pub(super) fn plain(text: impl Into<String>) -> Statement {
        Statement {
            text: text.into(),
            values: Vec::new(),
        }
    }
}

/// One row of an answer; every cell is text, or nothing. It is filled anew for each row.
#[derive(Debug, Default)]
pub(super) struct Record {
    bytes: Vec<u8>,
    ends: Vec<Option<usize>>,
}

impl Record {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, cell: Option<&[u8]>) {
        if let Some(cell) = cell {
            self.bytes.extend_from_slice(cell);
        }
        self.ends.push(cell.map(|_| self.bytes.len()));
    }

    /// The bytes of a cell; `None` = NULL.
    pub(super) fn bytes(&self, at: usize) -> Option<&[u8]> {
        let end = self.ends.get(at).copied().flatten()?;
        let start = self.ends[..at]
            .iter()
            .rev()
            .find_map(|end| *end)
            .unwrap_or_default();
        Some(&self.bytes[start..end])
    }

    /// The text of a cell of the catalogue; empty where there is none.
    pub(super) fn text(&self, at: usize) -> String {
        String::from_utf8_lossy(self.bytes(at).unwrap_or_default()).into_owned()
    }
}

enum Link<'c> {
    Postgres(Held<'c, PgConnection>),
    MySql(MySqlConnection),
    Sqlite(Held<'c, SqliteConnection>, Option<Untouched>),
}

/// A connection of our own, or somebody else's that was lent.
enum Held<'c, C> {
    Own(C),
    Lent(&'c mut C),
}

impl<C> Deref for Held<'_, C> {
    type Target = C;

    fn deref(&self) -> &C {
        match self {
            Held::Own(connection) => connection,
            Held::Lent(connection) => connection,
        }
    }
}

impl<C> DerefMut for Held<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        match self {
            Held::Own(connection) => connection,
            Held::Lent(connection) => connection,
        }
    }
}

/// A connection, inside a transaction or not.
pub(super) struct Session<'c> {
    link: Link<'c>,
    patience: Duration,
    statement_timeout: Span,
    /// Whether a transaction has begun and not ended. It stays so where its work was dropped half-way.
    is_inside: bool,
    /// Whether the last failure was one of the connection, so that nobody knows what became of what was sent.
    is_lost: bool,
}

impl Session<'static> {
    /// Connects to read.
    pub(super) async fn connect(
        url: &DatabaseUrl,
        statement_timeout: Span,
    ) -> Result<Self, Failure> {
        Session::open(url, statement_timeout, false).await
    }

    /// Connects to write as well.
    pub(super) async fn connect_to_write(
        url: &DatabaseUrl,
        statement_timeout: Span,
    ) -> Result<Self, Failure> {
        Session::open(url, statement_timeout, true).await
    }

    /// Connects to have statements explained that write. A file is opened so that not a byte of it changes.
    pub(super) async fn connect_to_explain(
        url: &DatabaseUrl,
        statement_timeout: Span,
    ) -> Result<Self, Failure> {
        let to_write = !matches!(url, DatabaseUrl::Sqlite(_));
        Session::open(url, statement_timeout, to_write).await
    }

    async fn open(
        url: &DatabaseUrl,
        statement_timeout: Span,
        to_write: bool,
    ) -> Result<Self, Failure> {
        let doing = "connecting";
        let connecting = async {
            Ok(match url {
                DatabaseUrl::Postgres(address) => {
                    Link::Postgres(Held::Own(address.options().connect().await?))
                }
                DatabaseUrl::MySql(address) => Link::MySql(address.options().connect().await?),
                DatabaseUrl::Sqlite(path) => {
                    let (options, untouched) = if to_write {
                        (sqlite_options_to_write(path), None)
                    } else {
                        sqlite_options(path)
                    };
                    Link::Sqlite(Held::Own(options.connect().await?), untouched)
                }
            })
        };
        if let DatabaseUrl::Sqlite(path) = url
            && !path.is_file()
        {
            return Err(Failure::rejected(format!("{}: there is no such file", path.display()))
                .remedy("correct [intents] url; a relative path belongs to the folder of the configuration"));
        }
        let link = match timeout(CONNECT_PATIENCE, connecting).await {
            Ok(Ok(link)) => link,
            Ok(Err(error)) => return Err(failure(doing, &error)),
            Err(_) => return Err(silence(doing)),
        };
        Ok(Session::of(link, statement_timeout, false))
    }

    /// Closes the connection.
    pub(super) async fn close(self) -> Result<(), Failure> {
        let closed = match self.link {
            Link::Postgres(Held::Own(connection)) => connection.close().await,
            Link::MySql(connection) => connection.close().await,
            Link::Sqlite(Held::Own(connection), _) => connection.close().await,
            // Whoever lent it goes on with it.
            Link::Postgres(Held::Lent(_)) | Link::Sqlite(Held::Lent(_), _) => Ok(()),
        };
        closed.map_err(|error| failure("closing the connection", &error))
    }
}

impl<'c> Session<'c> {
    fn of(link: Link<'c>, statement_timeout: Span, is_inside: bool) -> Session<'c> {
        let millis = u64::try_from(statement_timeout.0 / 1_000).unwrap_or_default();
        Session {
            link,
            patience: Duration::from_millis(millis) + MARGIN,
            statement_timeout,
            is_inside,
            is_lost: false,
        }
    }

    /// A connection that somebody lends, inside a transaction of theirs.
    pub(super) fn lent(lent: Lent<'c>, statement_timeout: Span) -> Session<'c> {
        let link = match lent {
            Lent::Postgres(connection) => Link::Postgres(Held::Lent(connection)),
            Lent::Sqlite(connection) => Link::Sqlite(Held::Lent(connection), None),
        };
        Session::of(link, statement_timeout, true)
    }

    /// Which engine answers.
    pub(super) fn engine(&self) -> Engine {
        match &self.link {
            Link::Postgres(_) => Engine::Postgres,
            Link::MySql(_) => Engine::MySql,
            Link::Sqlite(..) => Engine::Sqlite,
        }
    }

    /// Whether the connection broke, so that nobody knows what became of what was sent last.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost
    }

    /// Begins a transaction that sees one moment and cannot write.
    pub(super) async fn begin(&mut self) -> Result<(), Failure> {
        let doing = "beginning to read";
        if self.is_inside {
            self.send(doing, "rollback".to_owned()).await?;
        }
        self.is_inside = true;
        let millis = (self.statement_timeout.0 / 1_000).max(1);
        let seconds = (millis + 999) / 1_000;
        let steps = match self.engine() {
            Engine::Postgres => {
                vec![format!(
                    "begin isolation level repeatable read read only; \
                     set local timezone = 'UTC'; \
                     set local datestyle = 'ISO, YMD'; \
                     set local intervalstyle = 'postgres'; \
                     set local statement_timeout = '{millis}ms'; \
                     set local lock_timeout = '{LOCK_SECONDS}s'; \
                     set local idle_in_transaction_session_timeout = '2min'; \
                     set local application_name = 'paysweep'"
                )]
            }
            Engine::MySql => vec![
                format!(
                    "set session lock_wait_timeout = {LOCK_SECONDS}, innodb_lock_wait_timeout = {LOCK_SECONDS}"
                ),
                // MariaDB counts in seconds and MySQL in milliseconds; each skips the comment that is for the other one.
                format!(
                    "set session /*M! max_statement_time = {seconds} */ /*!50708 max_execution_time = {millis} */"
                ),
                "set transaction isolation level repeatable read".to_owned(),
                "start transaction with consistent snapshot, read only".to_owned(),
            ],
            Engine::Sqlite => vec!["begin".to_owned()],
        };
        for step in steps {
            self.send(doing, step).await?;
        }
        Ok(())
    }

    /// Begins a transaction that writes: as if it were alone, so that what it looked at stays so until it ends.
    pub(super) async fn begin_to_write(&mut self) -> Result<(), Failure> {
        let doing = "beginning to write";
        if self.is_inside {
            self.send(doing, "rollback".to_owned()).await?;
        }
        self.is_inside = true;
        let millis = (self.statement_timeout.0 / 1_000).max(1);
        let steps = match self.engine() {
            Engine::Postgres => vec![format!(
                "begin isolation level serializable read write; \
                 set local timezone = 'UTC'; \
                 set local datestyle = 'ISO, YMD'; \
                 set local intervalstyle = 'postgres'; \
                 set local statement_timeout = '{millis}ms'; \
                 set local lock_timeout = '{LOCK_SECONDS}s'; \
                 set local idle_in_transaction_session_timeout = '2min'; \
                 set local application_name = 'paysweep'"
            )],
            Engine::MySql => vec![
                format!(
                    "set session lock_wait_timeout = {LOCK_SECONDS}, innodb_lock_wait_timeout = {LOCK_SECONDS}"
                ),
                "set transaction isolation level serializable".to_owned(),
                "start transaction read write".to_owned(),
            ],
            Engine::Sqlite => vec!["begin immediate".to_owned()],
        };
        for step in steps {
            self.send(doing, step).await?;
        }
        Ok(())
    }

    /// Ends a transaction so that it takes hold, or tells in which words the database refused it: what is checked at the
    /// end only is checked then. After a failure nobody knows whether it took hold.
    pub(super) async fn commit(&mut self) -> Result<Result<(), String>, Failure> {
        let answer = self.sent("commit".to_owned()).await;
        match answer {
            Ok(Ok(())) => {
                self.is_inside = false;
                Ok(Ok(()))
            }
            Ok(Err(error)) if refusal(&error).is_some() => {
                Ok(Err(refusal(&error).unwrap_or_default()))
            }
            other => self.understood("ending to write", other).map(Ok),
        }
    }

    /// Checks what would be checked at the end of the transaction, and leaves it to be checked again then. In which words
    /// the database refuses it. `SQLite` has no way to ask before the end.
    pub(super) async fn check_now(&mut self) -> Result<Result<(), String>, Failure> {
        if self.engine() != Engine::Postgres {
            return Ok(Ok(()));
        }
        let text = "savepoint paysweep_checks; set constraints all immediate; \
                    rollback to savepoint paysweep_checks; release savepoint paysweep_checks";
        match self.sent(text.to_owned()).await {
            Ok(Err(error)) if refusal(&error).is_some() => {
                Ok(Err(refusal(&error).unwrap_or_default()))
            }
            other => self.understood("checking a repair", other).map(Ok),
        }
    }

    /// Writes. How many rows the statement changed, or in which words the database refused this very write.
    pub(super) async fn write(
        &mut self,
        statement: &Statement,
    ) -> Result<Result<u64, String>, Failure> {
        let doing = "writing a repair";
        macro_rules! write {
            ($connection:expr, $texts:ident => $list:expr) => {{
                let mut query =
                    sqlx::query(AssertSqlSafe(statement.text.clone())).persistent(false);
                for value in &statement.values {
                    query = match value {
                        Value::Text(text) => query.bind(text.as_str()),
                        Value::Int(number) => query.bind(*number),
                        Value::NoText => query.bind(None::<&str>),
                        Value::NoInt => query.bind(None::<i64>),
                        Value::Texts($texts) => query.bind($list),
                    };
                }
                let writing = query.execute($connection);
                timeout(self.patience, writing)
                    .await
                    .map(|done| done.map(|done| done.rows_affected()))
            }};
        }
        let answer = match &mut self.link {
            Link::Postgres(connection) => write!(&mut **connection, texts => texts.as_slice()),
            Link::MySql(connection) => write!(connection, texts => texts.join(",")),
            Link::Sqlite(connection, _) => write!(&mut **connection, texts => texts.join(",")),
        };
        match answer {
            Ok(Ok(rows)) => Ok(Ok(rows)),
            Ok(Err(error)) => match refusal(&error) {
                Some(words) => Ok(Err(words)),
                None => {
                    self.is_lost = is_lost(&error);
                    Err(failure(doing, &error))
                }
            },
            Err(_) => {
                self.is_lost = true;
                Err(silence(doing))
            }
        }
    }

    /// Ends the transaction; there is nothing to keep of it.
    pub(super) async fn end(&mut self) -> Result<(), Failure> {
        self.send("ending to read", "rollback".to_owned()).await?;
        self.is_inside = false;
        match &self.link {
            Link::Sqlite(_, Some(untouched)) => untouched.assert(),
            _ => Ok(()),
        }
    }

    /// Sends a statement that has no values and no answer.
    pub(super) async fn send(&mut self, doing: &str, text: String) -> Result<(), Failure> {
        let answer = self.sent(text).await;
        self.understood(doing, answer)
    }

    async fn sent(&mut self, text: String) -> Result<Result<(), sqlx::Error>, Elapsed> {
        let raw = sqlx::raw_sql(AssertSqlSafe(text));
        let sending = async {
            match &mut self.link {
                Link::Postgres(connection) => raw.execute(&mut **connection).await.map(|_| ()),
                Link::MySql(connection) => raw.execute(connection).await.map(|_| ()),
                Link::Sqlite(connection, _) => raw.execute(&mut **connection).await.map(|_| ()),
            }
        };
        timeout(self.patience, sending).await
    }

    fn understood(
        &mut self,
        doing: &str,
        answer: Result<Result<(), sqlx::Error>, Elapsed>,
    ) -> Result<(), Failure> {
        match answer {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => {
                self.is_lost = is_lost(&error);
                Err(failure(doing, &error))
            }
            Err(_) => {
                self.is_lost = true;
                Err(silence(doing))
            }
        }
    }

    /// Asks, and hands on each row as it arrives.
    pub(super) async fn each(
        &mut self,
        doing: &str,
        statement: &Statement,
        mut take: impl FnMut(&Record) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        macro_rules! ask {
            ($connection:expr, $texts:ident => $list:expr) => {{
                let mut query =
                    sqlx::query(AssertSqlSafe(statement.text.clone())).persistent(false);
                for value in &statement.values {
                    query = match value {
                        Value::Text(text) => query.bind(text.as_str()),
                        Value::Int(number) => query.bind(*number),
                        Value::NoText => query.bind(None::<&str>),
                        Value::NoInt => query.bind(None::<i64>),
                        Value::Texts($texts) => query.bind($list),
                    };
                }
                let mut rows = query.fetch($connection);
                let mut record = Record::default();
                loop {
                    match timeout(self.patience, rows.try_next()).await {
                        Ok(Ok(Some(row))) => {
                            record.clear();
                            for at in 0..row.len() {
                                let cell: Option<&[u8]> = row
                                    .try_get_unchecked(at)
                                    .map_err(|error| failure(doing, &error))?;
                                record.push(cell);
                            }
                            take(&record)?;
                        }
                        Ok(Ok(None)) => return Ok(()),
                        Ok(Err(error)) => return Err(failure(doing, &error)),
                        Err(_) => return Err(silence(doing)),
                    }
                }
            }};
        }
        match &mut self.link {
            Link::Postgres(connection) => ask!(&mut **connection, texts => texts.as_slice()),
            // These know no arrays, and are never given one.
            Link::MySql(connection) => ask!(connection, texts => texts.join(",")),
            Link::Sqlite(connection, _) => ask!(&mut **connection, texts => texts.join(",")),
        }
    }

    /// All rows of a short answer, as texts.
    pub(super) async fn all(
        &mut self,
        doing: &str,
        statement: &Statement,
    ) -> Result<Vec<Vec<String>>, Failure> {
        let mut rows = Vec::new();
        self.each(doing, statement, |record| {
            rows.push((0..record.ends.len()).map(|at| record.text(at)).collect());
            Ok(())
        })
        .await?;
        Ok(rows)
    }

    /// The names of the columns of a statement that is not run (`MySQL` and `SQLite`), each with its type.
    pub(super) async fn described(
        &mut self,
        text: String,
    ) -> Result<Vec<(String, String)>, Failure> {
        use sqlx::{Column, Executor, SqlSafeStr, Statement as _, TypeInfo};
        let doing = "looking at the columns of the query";
        macro_rules! describe {
            ($connection:expr) => {{
                let prepared = $connection
                    .prepare(AssertSqlSafe(text).into_sql_str())
                    .await
                    .map_err(|error| failure(doing, &error))?;
                prepared
                    .columns()
                    .iter()
                    .map(|column| {
                        (
                            column.name().to_owned(),
                            column.type_info().name().to_owned(),
                        )
                    })
                    .collect()
            }};
        }
        Ok(match &mut self.link {
            Link::Postgres(connection) => describe!((&mut **connection)),
            Link::MySql(connection) => describe!((&mut *connection)),
            Link::Sqlite(connection, _) => describe!((&mut **connection)),
        })
    }
}

fn sqlite_options(path: &Path) -> (SqliteConnectOptions, Option<Untouched>) {
    let untouched = Untouched::of(path);
    let options = SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .read_only(true)
        .immutable(untouched.is_some())
        .foreign_keys(false)
        .busy_timeout(Duration::from_secs(LOCK_SECONDS))
        .row_buffer_size(1_000)
        .pragma("query_only", "on")
        .pragma("trusted_schema", "off")
        .disable_statement_logging();
    (options, untouched)
}

fn sqlite_options_to_write(path: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .create_if_missing(false)
        .busy_timeout(Duration::from_secs(LOCK_SECONDS))
        .disable_statement_logging()
}

/// A file with a write-ahead log that nobody has open: opened the usual way, files would appear beside it.
struct Untouched {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Untouched {
    fn of(path: &Path) -> Option<Untouched> {
        use std::io::Read;
        /// Where the header says how the file is written, and what stands there for a write-ahead log.
        const WRITE_VERSION_AT: usize = 18;
        const WRITE_AHEAD: u8 = 2;
        let mut header = [0; WRITE_VERSION_AT + 1];
        let mut file = std::fs::File::open(path).ok()?;
        file.read_exact(&mut header).ok()?;
        if header[WRITE_VERSION_AT] != WRITE_AHEAD || log_of(path).exists() {
            return None;
        }
        let about = file.metadata().ok()?;
        Some(Untouched {
            path: path.to_owned(),
            bytes: about.len(),
            modified: about.modified().ok(),
        })
    }

    /// Fails where somebody wrote meanwhile: what was read may then be of two moments.
    fn assert(&self) -> Result<(), Failure> {
        let about = std::fs::metadata(&self.path).ok();
        let is_same = about.is_some_and(|about| {
            about.len() == self.bytes && about.modified().ok() == self.modified
        });
        if is_same && !log_of(&self.path).exists() {
            return Ok(());
        }
        Err(Failure::new(
            Exit::Temporary,
            format!("{}: was written to while it was read", self.path.display()),
        )
        .why("what was read may be of two moments")
        .remedy("run again"))
    }
}

fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    PathBuf::from(name)
}
