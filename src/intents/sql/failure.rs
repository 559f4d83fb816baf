//! What an error of the company's database means to the person who reads it.

use sqlx::Error;
use sqlx::error::DatabaseError;
use sqlx::mysql::MySqlDatabaseError;
use sqlx::postgres::PgDatabaseError;

use crate::exit::{Exit, Failure};

/// The sentence of an error.
pub(super) fn failure(doing: &str, error: &Error) -> Failure {
    let message = error
        .as_database_error()
        .map_or_else(|| error.to_string(), |error| error.message().to_owned());
    let told = |exit| {
        Failure::new(
            exit,
            format!("the database of [intents] failed while {doing}: {message}"),
        )
    };
    let Some(database) = error.as_database_error() else {
        return match error {
            Error::Tls(_) => told(Exit::Rejected)
                .why("a database on another machine has to prove that it is the right one")
                .remedy("name its authority in [intents] url, or spell another sslmode (ssl-mode)"),
            Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::BeginFailed => {
                told(Exit::Temporary)
                    .remedy("see whether the database runs and can be reached from here")
            }
            _ => told(Exit::Rejected),
        };
    };
    if let Some(error) = database.try_downcast_ref::<MySqlDatabaseError>() {
        return match error.number() {
            1044 | 1045 | 1698 | 1251 => {
                told(Exit::Denied).remedy("correct the user or password of [intents] url")
            }
            1142 | 1143 | 1227 | 1410 => told(Exit::Denied).remedy(GRANT),
            1205 | 1213 | 1317 | 1969 | 3024 => told(Exit::Temporary).why(TOO_LONG).remedy(LONGER),
            1040 | 1053 | 1077 | 1158..=1161 | 1203 | 1927 | 2002..=2013 => told(Exit::Temporary),
            _ => told(Exit::Rejected).remedy(CHECK),
        };
    }
    let code = database.code().unwrap_or_default();
    match (code.as_ref(), code.get(..2).unwrap_or_default()) {
        (_, "28") => told(Exit::Denied)
            .remedy("correct the user or password of [intents] url, or what pg_hba.conf lets in"),
        ("42501", _) => told(Exit::Denied).remedy(GRANT),
        ("57014" | "55P03", _) => told(Exit::Temporary).why(TOO_LONG).remedy(LONGER),
        // Primary codes of SQLite: busy and locked; it gives extended codes beside the primary one in the low byte.
        (number, _) if matches!(sqlite_primary(number), Some(5 | 6)) => {
            told(Exit::Temporary).why("another process is writing to the file")
        }
        (number, _) if matches!(sqlite_primary(number), Some(3 | 14 | 23)) => told(Exit::Denied)
            .remedy("see whether the file of [intents] url is there, and may be read by this user"),
        (number, _) if matches!(sqlite_primary(number), Some(11 | 26)) => told(Exit::Rejected)
            .why("the file is damaged, or is no database of SQLite")
            .remedy("restore it from a backup, or correct [intents] url"),
        (_, "08" | "53" | "57" | "58" | "40") | ("25P03" | "25P04", _) => told(Exit::Temporary),
        _ => told(Exit::Rejected).remedy(CHECK),
    }
}

/// What the database says where it refuses one write for what is in it: a constraint, a trigger, a value that does not fit.
/// Everything else concerns all writes alike.
pub(super) fn refusal(error: &Error) -> Option<String> {
    let database = error.as_database_error()?;
    let is_refusal = if let Some(error) = database.try_downcast_ref::<MySqlDatabaseError>() {
        matches!(
            error.number(),
            1048 | 1062
                | 1169
                | 1264
                | 1265
                | 1292
                | 1366
                | 1406
                | 1451
                | 1452
                | 1557
                | 1644
                | 1761
                | 3819
                | 4025
        )
    } else {
        let code = database.code().unwrap_or_default();
        let class = code.get(..2).unwrap_or_default();
        // Data exception, integrity constraint, raised by a function of theirs; a constraint of SQLite.
        matches!(class, "22" | "23" | "P0") && code.len() == 5
            || sqlite_primary(&code) == Some(19)
            || is_policy(database)
    };
    is_refusal.then(|| database.message().to_owned())
}

/// Whether row-level security does not want the row as it would become. Its code is that of a missing right, which would
/// concern all writes; the place in the server that found it tells, in whatever language it speaks.
fn is_policy(error: &dyn DatabaseError) -> bool {
    error
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| error.routine() == Some("ExecWithCheckOptions"))
}

/// Whether the connection is gone: whatever was sent last may have been done or not.
pub(super) fn is_lost(error: &Error) -> bool {
    let Some(database) = error.as_database_error() else {
        return matches!(
            error,
            Error::Io(_) | Error::Protocol(_) | Error::WorkerCrashed | Error::Tls(_)
        );
    };
    if let Some(error) = database.try_downcast_ref::<MySqlDatabaseError>() {
        return matches!(error.number(), 1053 | 1077 | 1158..=1161 | 1927 | 2002..=2013);
    }
    let code = database.code().unwrap_or_default();
    code.starts_with("08") || code.starts_with("57P") || code.starts_with("25P0")
}

const GRANT: &str = "grant the role of [intents] url SELECT on the columns that are named";
const TOO_LONG: &str = "the statement, or the lock it waited for, took too long";
const LONGER: &str =
    "see with `paysweep check` whether an index serves it; raise statement_timeout if it does";
const CHECK: &str = "compare [intents] with the table; `paysweep check` says what does not fit";

/// Result codes of `SQLite` are numbers of fewer than five digits; SQLSTATE always has five characters.
fn sqlite_primary(code: &str) -> Option<u32> {
    (code.len() < 5)
        .then(|| code.parse::<u32>().ok().map(|number| number & 0xff))
        .flatten()
}

/// The server did not answer.
pub(super) fn silence(doing: &str) -> Failure {
    Failure::new(
        Exit::Temporary,
        format!("the database of [intents] did not answer while {doing}"),
    )
    .remedy("see whether the database runs and can be reached from here")
}
