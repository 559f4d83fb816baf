//! The address of a `PostgreSQL` database: a URL that may hold a password and therefore never shows itself.

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};

use super::is_this_machine;
use crate::exit::Failure;

/// The schema that holds our tables, unless the URL names another.
const SCHEMA: &str = "paysweep";

/// Options of the URL that are handed on to the driver. Others are refused instead of ignored: the driver would log them
/// with their values.
const OPTIONS: [&str; 9] = [
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "host",
    "port",
    "dbname",
    "user",
    "password",
];

/// The address of a `PostgreSQL` database.
#[derive(Clone)]
pub struct Address {
    options: Box<PgConnectOptions>,
    schema: String,
    /// Kept to compare two addresses.
    url: String,
    has_password: bool,
}

impl Address {
    /// Whether this is the URL of a `PostgreSQL` database at all.
    pub fn is_one(url: &str) -> bool {
        url.starts_with("postgres:") || url.starts_with("postgresql:")
    }

    /// Reads a URL: `postgres://user@host:port/database?schema=paysweep&sslmode=verify-full`. What it does not say is
    /// taken from the `PG…` variables and the password file, as other programs do. `Rejected` when it cannot be read; no
    /// part of it stands in the failure.
    pub fn parse(url: &str) -> Result<Address, Failure> {
        let wrong = |what: &str| {
            Failure::rejected(what.to_owned()).remedy(
                "write postgres://user@host:port/database, with percent signs for special characters",
            )
        };
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (_, authority) = rest
            .split_once("://")
            .ok_or_else(|| wrong("this is no address of a PostgreSQL database"))?;
        let authority = authority.split(['/', '#']).next().unwrap_or_default();
        let mut has_password = authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| user.contains(':'));
        let mut schema = SCHEMA.to_owned();
        let mut is_tls_spelled = false;
        let mut handed_on = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            match name {
                "schema" if is_plain_name(value) => value.clone_into(&mut schema),
                "schema" => {
                    return Err(wrong("the schema of the address is no plain name")
                        .remedy("use small letters, digits and underscores"));
                }
                _ if OPTIONS.contains(&name) => {
                    is_tls_spelled |= name == "sslmode";
                    has_password |= name == "password";
                    handed_on.push(pair);
                }
                _ => {
                    return Err(wrong("the address has an option that is not known")
                        .remedy(format!("known are schema, {}", OPTIONS.join(", "))));
                }
            }
        }
        let mut options: PgConnectOptions = format!("{rest}?{}", handed_on.join("&"))
            .parse()
            .map_err(|_| wrong("this address of a PostgreSQL database cannot be read"))?;
        if !is_tls_spelled && !is_local(&options) {
            options = options.ssl_mode(PgSslMode::VerifyFull);
        }
        // Nothing of a connection outlives a transaction, so that a pooler may stand in between: no named statements, and
        // no settings that it would have to know.
        options = options
            .application_name("paysweep")
            .statement_cache_capacity(0)
            .extra_float_digits(None)
            .disable_statement_logging();
        Ok(Address {
            options: Box::new(options),
            schema,
            url: url.to_owned(),
            has_password,
        })
    }

    /// How to connect.
    pub fn options(&self) -> &PgConnectOptions {
        &self.options
    }

    /// The schema that holds our own tables; the part `?schema=` of the URL.
    pub fn schema(&self) -> &str {
        &self.schema
    }

    /// Whether the URL names a schema of its own.
    pub fn has_schema(&self) -> bool {
        self.schema != SCHEMA
    }

    /// Whether both lead to the same database as the same role, as far as they say: two names of one server are two.
    pub fn is_same_place(&self, other: &Address) -> bool {
        let place = |address: &Address| {
            let options = &address.options;
            let role = options.get_username().to_owned();
            let database = options.get_database().unwrap_or(&role).to_owned();
            let host = match options.get_socket() {
                Some(socket) => socket.display().to_string(),
                None => options.get_host().to_lowercase(),
            };
            (host, options.get_port(), database, role)
        };
        place(self) == place(other)
    }

    /// Whether the URL itself holds a password.
    pub fn has_password(&self) -> bool {
        self.has_password
    }
}

/// Host, database and schema: what may be shown.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let database = self.options.get_database().unwrap_or("(default)");
        match self.options.get_socket() {
            Some(socket) => write!(f, "postgres://{}/{database}", socket.display())?,
            None => write!(
                f,
                "postgres://{}:{}/{database}",
                self.options.get_host(),
                self.options.get_port()
            )?,
        }
        if self.schema == SCHEMA {
            Ok(())
        } else {
            write!(f, " schema {}", self.schema)
        }
    }
}

impl std::fmt::Debug for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Address({self})")
    }
}

impl PartialEq for Address {
    fn eq(&self, other: &Address) -> bool {
        self.url == other.url
    }
}

impl Eq for Address {}

fn is_plain_name(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && !name.starts_with("pg_")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Whether the connection does not leave this machine.
fn is_local(options: &PgConnectOptions) -> bool {
    options.get_socket().is_some() || is_this_machine(options.get_host())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> PgSslMode {
        Address::parse(url)
            .expect("an address")
            .options
            .get_ssl_mode()
    }

    #[test]
    fn another_machine_is_proved_to_be_the_right_one_unless_something_else_is_spelled() {
        for far in [
            "postgres://db.example/pay",
            "postgresql://10.0.0.1:5433/pay",
        ] {
            assert!(matches!(mode(far), PgSslMode::VerifyFull), "{far}");
        }
        let spelled = "postgres://db.example/pay?sslmode=disable";
        assert!(matches!(mode(spelled), PgSslMode::Disable));
        for near in [
            "postgres://localhost/pay",
            "postgres://127.0.0.2/pay",
            "postgres://%2Fvar%2Frun%2Fpostgresql/pay",
            "postgres:///pay?host=/tmp",
        ] {
            assert!(!matches!(mode(near), PgSslMode::VerifyFull), "{near}");
        }
    }

    #[test]
    fn two_spellings_of_one_place_are_the_same_and_two_names_of_one_server_are_not() {
        let same = |one: &str, other: &str| {
            let parse = |url| Address::parse(url).expect("an address");
            parse(one).is_same_place(&parse(other))
        };
        let here = "postgres://app@DB.example/pay?schema=live";
        for (other, want) in [
            ("postgresql://app:secret@db.example:5432/pay", true),
            ("postgres://db.example/pay?user=app&sslmode=require", true),
            ("postgres://app@db.example:5433/pay", false),
            ("postgres://app@db.example/other", false),
            ("postgres://kim@db.example/pay", false),
            ("postgres://app@10.0.0.1/pay", false),
        ] {
            assert_eq!(same(here, other), want, "{other}");
        }
        assert!(same(
            "postgres://pay@db.example",
            "postgres://pay@db.example/pay"
        ));
        assert!(same(
            "postgres:///pay?host=/tmp&user=app",
            "postgres://app@%2Ftmp/pay"
        ));
    }

    #[test]
    fn nothing_shows_a_password() {
        let address = Address::parse("postgres://app:hunter2@db.example/pay?schema=live")
            .expect("an address");
        assert!(address.has_password());
        assert_eq!(
            format!("{address} {address:?}"),
            "postgres://db.example:5432/pay schema live \
             Address(postgres://db.example:5432/pay schema live)"
        );
        assert!(
            Address::parse("postgres://db/pay?password=hunter2")
                .expect("an address")
                .has_password()
        );
        assert!(
            !Address::parse("postgres://app@db/pay")
                .expect("an address")
                .has_password()
        );
        for wrong in [
            "postgres:hunter2",
            "postgres://app:hunter2@db:x/pay",
            "postgres://db/pay?hunter2=1",
            "postgres://db/pay?sslmode=hunter2",
            "postgres://db/pay?schema=hunter2;drop",
        ] {
            let failure = Address::parse(wrong).expect_err("no address");
            assert!(!failure.to_string().contains("hunter2"), "{failure}");
        }
    }
}
