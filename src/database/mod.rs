//! Where databases are: the URLs of the configuration, and a transaction that is lent. A URL may hold a password and therefore never shows itself.
//!
//! | module | holds |
//! |---|---|
//! | [`along`] | a transaction that is lent |
//! | [`postgres`] | the address of a `PostgreSQL` database |
//! | [`mysql`] | the address of a `MySQL` or `MariaDB` database |

use std::net::IpAddr;
use std::path::PathBuf;

use crate::exit::Failure;

pub mod along;
pub mod mysql;
pub mod postgres;

/// A database of any kind that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A `PostgreSQL` database.
    Postgres(postgres::Address),
    /// A `MySQL` or `MariaDB` database.
    MySql(mysql::Address),
    /// A file of `SQLite`.
    Sqlite(PathBuf),
}

impl DatabaseUrl {
    /// Reads a URL; `resolve` gives a relative path its folder. `Rejected` when it is none; no part of it stands in the
    /// failure.
    pub fn parse(url: &str, resolve: &dyn Fn(&str) -> PathBuf) -> Result<DatabaseUrl, Failure> {
        if postgres::Address::is_one(url) {
            return postgres::Address::parse(url).map(DatabaseUrl::Postgres);
        }
        if mysql::Address::is_one(url) {
            return mysql::Address::parse(url).map(DatabaseUrl::MySql);
        }
        match sqlite_path(url) {
            Some(path) => Ok(DatabaseUrl::Sqlite(resolve(path))),
            None => Err(Failure::rejected("this is no address of a database").remedy(
                "write postgres://user@host/database, mysql://user@host/database, or \"sqlite://\" and the path of a file, without parameters",
            )),
        }
    }

    /// Whether the URL itself holds a password.
    pub fn has_password(&self) -> bool {
        match self {
            DatabaseUrl::Postgres(address) => address.has_password(),
            DatabaseUrl::MySql(address) => address.has_password(),
            DatabaseUrl::Sqlite(_) => false,
        }
    }
}

/// What may be shown of it.
impl std::fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DatabaseUrl::Postgres(address) => address.fmt(f),
            DatabaseUrl::MySql(address) => address.fmt(f),
            DatabaseUrl::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
        }
    }
}

/// The path of a URL that names a file of `SQLite`, without parameters.
pub fn sqlite_path(url: &str) -> Option<&str> {
    url.strip_prefix("sqlite://")
        .or_else(|| url.strip_prefix("sqlite:"))
        .filter(|path| !path.is_empty() && !path.starts_with(':') && !path.contains('?'))
}

/// Whether a host name leads nowhere but to this machine.
fn is_this_machine(host: &str) -> bool {
    host.starts_with('/')
        || host.eq_ignore_ascii_case("localhost")
        || host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
