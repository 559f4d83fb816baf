//! A transaction that is lent: what has to take hold together with the store's own writing, or not at all.

use std::pin::Pin;

use sqlx::{PgConnection, SqliteConnection};

use crate::exit::Failure;
use crate::model::repair::Repair;

/// A connection inside a transaction, lent to whoever has something to write in it.
#[derive(Debug)]
pub enum Lent<'c> {
    /// To a `PostgreSQL` database.
    Postgres(&'c mut PgConnection),
    /// To a file of `SQLite`.
    Sqlite(&'c mut SqliteConnection),
}

/// What became of a repair that was to be written along.
#[derive(Clone, Debug)]
pub enum Took {
    /// It was written, and takes hold when the transaction does.
    Written,
    /// The table has a record of it: an earlier try had written it.
    Before,
    /// It cannot be written: why. Nothing of it is left in the transaction.
    Conflict(String),
    /// It was not written, for a reason that says nothing about it. Nothing of it is left in the transaction.
    Left(Failure),
}

/// The answers of [`Along::write`].
pub type Writing<'a> = Pin<Box<dyn Future<Output = Result<Vec<Took>, Failure>> + 'a>>;

/// Writes repairs into a table of its own in a transaction that somebody else has begun and ends.
pub trait Along {
    /// Writes each repair whole or not at all, and leaves the connection as it found it. One answer for each. After a
    /// failure the transaction cannot be kept.
    fn write<'a>(&'a mut self, lent: Lent<'a>, repairs: &'a [&'a Repair]) -> Writing<'a>;
}
