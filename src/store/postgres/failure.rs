//! What an error of the server means: to the transaction, and to the person who reads it.

use sqlx::Error;

use crate::exit::{Exit, Failure};

/// What an error means to the transaction in which it happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Somebody else was faster: all of it may be tried again.
    Race,
    /// The connection is gone.
    Lost,
    /// Trying again would not help.
    Final,
}

/// SQLSTATE of the server's answer, or empty.
pub(super) fn code(error: &Error) -> String {
    error
        .as_database_error()
        .and_then(sqlx::error::DatabaseError::code)
        .map(std::borrow::Cow::into_owned)
        .unwrap_or_default()
}

/// What an error means to its transaction. Serialization failures and deadlocks are races, and so is a duplicate key: the
/// inserts say what happens to rows that are there, so only a row of somebody else's can collide. Locks and statements
/// that took too long are races too, and so is a schema or table that another migration made meanwhile.
pub(super) fn trouble(error: &Error) -> Trouble {
    match code(error).as_str() {
        "40001" | "40P01" | "23505" | "55P03" | "57014" | "42P06" | "42P07" => Trouble::Race,
        // Ended by an administrator, by a crash of the server, or for being idle.
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" => Trouble::Lost,
        code if code.starts_with("08") => Trouble::Lost,
        "" if is_connection_error(error) => Trouble::Lost,
        _ => Trouble::Final,
    }
}

fn is_connection_error(error: &Error) -> bool {
    matches!(
        error,
        Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::BeginFailed
    )
}

/// The sentence of an error.
pub(super) fn failure(doing: &str, error: &Error) -> Failure {
    let database = error.as_database_error();
    let message = database.map_or_else(|| error.to_string(), |error| error.message().to_owned());
    let code = code(error);
    let failed = |exit| Failure::new(exit, format!("the store failed while {doing}: {message}"));
    let class = code.get(..2).unwrap_or_default();
    match (code.as_str(), class) {
        (_, "28") => failed(Exit::Denied)
            .remedy("correct the user or password of [store] url, or what pg_hba.conf lets in"),
        ("25006", _) => failed(Exit::Denied)
            .why("the database only lets itself be read: it is a standby, or default_transaction_read_only is on")
            .remedy("name the primary in [store] url, or let the role write"),
        ("42501", _) => failed(Exit::Denied)
            .remedy("grant the role of [store] url what it needs on the tables of the store"),
        ("3D000", _) => failed(Exit::NotReady)
            .remedy("create the database, then run paysweep migrate"),
        ("42P01" | "3F000" | "42703", _) => failed(Exit::NotReady)
            .why("the schema of the store is missing, or is not of this version")
            .remedy("run paysweep migrate"),
        ("40001" | "40P01" | "23505" | "55P03" | "57014", _) => Failure::new(
            Exit::Temporary,
            format!("the store was busy while {doing}: {message}"),
        )
        .why("other sessions kept it busy through every try"),
        ("53100", _) => failed(Exit::Temporary).remedy("free some space on the disk of the database"),
        ("54000", _) => failed(Exit::Rejected)
            .why("an id or reference is longer than the database can look up (about 2,700 bytes)"),
        ("22021" | "22P05", _) => failed(Exit::Rejected)
            .why("a text contains a character that the database cannot hold"),
        ("XX001" | "XX002", _) => {
            failed(Exit::NotReady).why("the database is damaged").remedy("restore it from a backup")
        }
        (_, "08" | "53" | "57" | "58") | ("25P03" | "25P04", _) => failed(Exit::Temporary),
        _ if matches!(error, Error::Tls(_)) => Failure::rejected(format!(
            "the connection to the store could not be made safe: {message}"
        ))
        .why("a database on another machine has to prove that it is the right one (sslmode verify-full)")
        .remedy("name its authority with sslrootcert=FILE in [store] url, or spell another sslmode"),
        _ if matches!(error, Error::Io(_)) => failed(Exit::Temporary)
            .remedy("see whether the database runs and can be reached from here"),
        _ if is_connection_error(error) => failed(Exit::Temporary),
        _ => failed(Exit::Internal),
    }
}

/// The server did not answer.
pub(super) fn silence(doing: &str) -> Failure {
    Failure::new(
        Exit::Temporary,
        format!("the store did not answer while {doing}"),
    )
    .remedy("see whether the database runs and can be reached from here")
}
