//! What an error of the engine means to the person who reads it.

use crate::exit::{Exit, Failure};

/// Primary result codes of `SQLite`: the low byte of the code that the driver reports.
mod code {
    pub(super) const PERM: i32 = 3;
    pub(super) const BUSY: i32 = 5;
    pub(super) const LOCKED: i32 = 6;
    pub(super) const NOMEM: i32 = 7;
    pub(super) const READONLY: i32 = 8;
    pub(super) const IOERR: i32 = 10;
    pub(super) const CORRUPT: i32 = 11;
    pub(super) const FULL: i32 = 13;
    pub(super) const CANTOPEN: i32 = 14;
    pub(super) const NOTADB: i32 = 26;
    /// Extended: a write was interrupted, and this connection may not roll it back.
    pub(super) const READONLY_ROLLBACK: i32 = 776;
}

/// Gives an error of the engine its sentence.
pub(super) trait Doing<T> {
    /// `what` was being done: `writing operations`.
    fn doing(self, what: &str) -> Result<T, Failure>;
}

impl<T> Doing<T> for Result<T, sqlx::Error> {
    fn doing(self, what: &str) -> Result<T, Failure> {
        self.map_err(|error| failure(what, &error))
    }
}

fn failure(what: &str, error: &sqlx::Error) -> Failure {
    let database = error.as_database_error();
    let message = database.map_or_else(|| error.to_string(), |error| error.message().to_owned());
    let code = database
        .and_then(|error| error.code()?.parse::<i32>().ok())
        .unwrap_or(0);
    let failed = |exit| Failure::new(exit, format!("the store failed while {what}: {message}"));
    if code == code::READONLY_ROLLBACK {
        return failed(Exit::Temporary)
            .why("an earlier write was interrupted and has to be rolled back first")
            .remedy("run any command that writes, for example paysweep run");
    }
    match code & 0xff {
        code::BUSY | code::LOCKED => Failure::new(
            Exit::Temporary,
            format!("the store was busy while {what}"),
        )
        .why("another process kept it locked for longer than 5 s"),
        code::FULL => failed(Exit::Temporary).remedy("free some space on the disk of the store"),
        code::IOERR | code::NOMEM => failed(Exit::Temporary),
        code::READONLY | code::PERM | code::CANTOPEN => failed(Exit::Denied).remedy(
            "give this user the right to write the store's file and the directory it lies in (its journal is made there)",
        ),
        code::CORRUPT | code::NOTADB => failed(Exit::NotReady)
            .why("the file is damaged, or is no store of paysweep")
            .remedy("restore it from a backup; it is never created over"),
        _ if matches!(error, sqlx::Error::Io(_)) => failed(Exit::Temporary),
        _ => failed(Exit::Internal),
    }
}
