//! The store in a `PostgreSQL` database.
//!
//! | module | holds |
//! |---|---|
//! | `session` | a connection and its transactions |
//! | `schema` | whether the tables are there and of this version; making them |
//! | `failure` | what an error of the server means |
//! | `bulk`, `copy` | many rows in one statement; many that are new |
//! | `load` | the rows of both sides, as they are read |
//!
//! # Decisions
//!
//! - A transaction that lost a race, or its connection, is done again from its beginning, a few times and with a pause.
//!   There is no other way of repeating anything, and no savepoint.
//! - A connection that breaks at the very end of a transaction leaves open whether it took hold. For a run's commit its
//!   marker tells; what changes nothing when it is repeated is repeated; a person is told to look at the rest.
//! - Keys and held rows carry safety, at read committed: no rule rests on the isolation level.

mod bulk;
mod copy;
mod failure;
mod load;
mod schema;
mod session;

use std::hash::{BuildHasher, Hasher};
use std::time::Duration;

use self::failure::Trouble;
use self::session::{PgSession, Purpose};
use super::sql::engine::{Database, Engine, Repeat};
use super::sql::{SqlStore, is_committed};
pub use crate::database::postgres::Address;
use crate::exit::{Exit, Failure};

/// How often a transaction is tried.
const TRIES: u32 = 8;

/// The pause before the second try; it doubles from try to try. Unit: milliseconds.
const PAUSE_MS: u64 = 50;

/// The longest pause. Unit: milliseconds.
const PAUSE_MS_MAX: u64 = 2_000;

/// A store in a `PostgreSQL` database.
pub type PostgresStore = SqlStore<PostgresDatabase>;

/// The database, as one connection to it at a time.
#[derive(Debug)]
pub struct PostgresDatabase {
    address: Address,
    /// `None` = the last one was lost.
    session: Option<PgSession>,
}

/// What may be done to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Written.
    ReadWrite,
    /// Read.
    ReadOnly,
}

impl PostgresStore {
    /// Opens a store of this version. `NotReady` when it is missing, older or newer than this program; `Denied` when the
    /// role may not; `Temporary` when the database cannot be reached.
    pub async fn open(address: &Address, mode: Mode) -> Result<PostgresStore, Failure> {
        let schema = address.schema().to_owned();
        let session = PgSession::connect(address).await.map_err(at(address))?;
        let mut database = PostgresDatabase {
            address: address.clone(),
            session: Some(session),
        };
        let look = async |session: &mut PgSession| {
            schema::look(session, &schema, mode == Mode::ReadWrite).await
        };
        match mode {
            Mode::ReadOnly => database.read(look).await,
            Mode::ReadWrite => {
                let purpose = Purpose::Write;
                database
                    .transact("opening it", purpose, Repeat::Harmless, look)
                    .await
            }
        }
        .map_err(at(address))?;
        Ok(SqlStore { database })
    }

    /// Refuses a role that may more than a run needs: `Denied`.
    pub async fn assert_least(&mut self) -> Result<(), Failure> {
        let schema = self.database.address.schema().to_owned();
        self.database
            .read(async |session| schema::assert_least(session, &schema).await)
            .await
    }

    /// Creates the store, or brings it to this version. `NotReady` when it is newer than this program; `Denied` when the
    /// role may not create tables.
    pub async fn migrate(address: &Address) -> Result<(), Failure> {
        let schema = address.schema().to_owned();
        let session = PgSession::connect(address).await.map_err(at(address))?;
        let mut database = PostgresDatabase {
            address: address.clone(),
            session: Some(session),
        };
        let work = async |session: &mut PgSession| schema::migrate(session, &schema).await;
        database
            .transact("migrating it", Purpose::Migrate, Repeat::Harmless, work)
            .await
            .map_err(at(address))?;
        SqlStore { database }.close_connection().await
    }

    /// Closes the connection.
    pub async fn close_connection(self) -> Result<(), Failure> {
        match self.database.session {
            Some(session) => session.close().await,
            None => Ok(()),
        }
    }
}

/// Says which database a failure is about.
fn at(address: &Address) -> impl Fn(Failure) -> Failure {
    let shown = address.to_string();
    move |mut failure| {
        failure.what = format!("{shown}: {}", failure.what);
        failure
    }
}

/// How one try of a transaction ended.
enum Try<T> {
    Done(T),
    /// Trying again would not help.
    Failed(Failure),
    /// Nothing was written.
    Again(Failure),
    /// The connection broke at the end; it may have been written.
    Unknown(T),
}

impl PostgresDatabase {
    /// Runs work as a transaction, as often as it takes.
    async fn transact<T>(
        &mut self,
        doing: &str,
        purpose: Purpose,
        repeat: Repeat<'_>,
        mut work: impl AsyncFnMut(&mut PgSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut tries = 1;
        loop {
            let failure = match self.try_once(doing, purpose, &mut work).await {
                Try::Done(value) => return Ok(value),
                Try::Failed(failure) => return Err(failure),
                Try::Again(failure) => failure,
                Try::Unknown(value) => match repeat {
                    Repeat::Harmless => lost(doing),
                    Repeat::Doubles => {
                        return Err(lost(doing)
                            .why("the connection broke at the end, so nobody knows whether it was written")
                            .remedy("look whether it was, before doing it again"));
                    }
                    Repeat::Marked { run_id, source } => {
                        if self.was_committed(run_id, source).await? {
                            return Ok(value);
                        }
                        lost(doing)
                    }
                },
            };
            if tries == TRIES {
                return Err(failure);
            }
            pause(tries).await;
            tries += 1;
        }
    }

    async fn try_once<T>(
        &mut self,
        doing: &str,
        purpose: Purpose,
        work: &mut impl AsyncFnMut(&mut PgSession) -> Result<T, Failure>,
    ) -> Try<T> {
        // One whose transaction was dropped half-way is not used again.
        let kept = self.session.take().filter(|session| !session.is_inside);
        let mut session = match kept {
            Some(session) => session,
            None => match PgSession::connect(&self.address).await {
                Ok(session) => session,
                Err(failure) if failure.exit == Exit::Temporary => {
                    return Try::Again(at(&self.address)(failure));
                }
                Err(failure) => return Try::Failed(at(&self.address)(failure)),
            },
        };
        let worked = match session.begin(doing, purpose).await {
            Ok(()) => work(&mut session).await,
            Err(failure) => Err(failure),
        };
        let ended = match worked {
            Err(failure) => match session.trouble {
                // The work itself said no.
                None | Some(Trouble::Final) => Try::Failed(failure),
                Some(Trouble::Race | Trouble::Lost) => Try::Again(failure),
            },
            Ok(value) => match session.commit(doing).await {
                Ok(()) => Try::Done(value),
                Err(failure) => match session.trouble {
                    Some(Trouble::Race) => Try::Again(failure),
                    Some(Trouble::Lost) | None => Try::Unknown(value),
                    Some(Trouble::Final) => Try::Failed(failure),
                },
            },
        };
        let is_usable = match &ended {
            Try::Done(_) => true,
            Try::Unknown(_) => false,
            Try::Failed(_) | Try::Again(_) => {
                session.trouble != Some(Trouble::Lost) && session.roll_back().await.is_ok()
            }
        };
        if is_usable {
            self.session = Some(session);
        }
        ended
    }

    /// Finds out whether a commit took hold, on a new connection.
    async fn was_committed(&mut self, run_id: &str, source: &str) -> Result<bool, Failure> {
        let mut tries = 1;
        loop {
            let mut ask =
                async |session: &mut PgSession| is_committed(session, run_id, source).await;
            let asking = self.try_once("looking for a commit", Purpose::Read, &mut ask);
            // Boxed: a question inside a transaction's own loop.
            match Box::pin(asking).await {
                Try::Done(is_committed) | Try::Unknown(is_committed) => return Ok(is_committed),
                Try::Again(failure) | Try::Failed(failure) if tries == TRIES => {
                    return Err(Failure {
                        exit: Exit::Temporary,
                        ..failure
                    }
                    .why("the connection broke while the last window was being committed")
                    .state(
                        "the outcome of the last window is unknown; it is all there or not at all",
                    )
                    .remedy("run again; the next run finds out"));
                }
                Try::Again(_) | Try::Failed(_) => {}
            }
            pause(tries).await;
            tries += 1;
        }
    }
}

fn lost(doing: &str) -> Failure {
    Failure::new(
        Exit::Temporary,
        format!("the connection to the store was lost while {doing}"),
    )
}

/// Waits before the next try, between half and all of a time that doubles: two that collided do not collide again.
async fn pause(tries: u32) {
    let longest = PAUSE_MS_MAX.min(PAUSE_MS << tries.saturating_sub(1));
    let random = std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish();
    let wait = longest / 2 + random % (longest / 2 + 1);
    tokio::time::sleep(Duration::from_millis(wait)).await;
}

impl Database for PostgresDatabase {
    type Session = PgSession;

    async fn read<T>(
        &mut self,
        question: impl AsyncFnMut(&mut PgSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.transact("reading", Purpose::Read, Repeat::Harmless, question)
            .await
    }

    async fn write<T>(
        &mut self,
        doing: &str,
        repeat: Repeat<'_>,
        mut work: impl AsyncFnMut(&mut PgSession) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.transact(
            doing,
            Purpose::Write,
            repeat,
            async |session: &mut PgSession| {
                session.assert_version().await?;
                work(session).await
            },
        )
        .await
    }
}
