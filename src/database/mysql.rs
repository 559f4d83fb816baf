//! The address of a `MySQL` or `MariaDB` database: a URL that may hold a password and therefore never shows itself.

use sqlx::ConnectOptions;
use sqlx::mysql::{MySqlConnectOptions, MySqlSslMode};

use super::is_this_machine;
use crate::exit::Failure;

/// Options of the URL that are handed on to the driver. Others are refused: it would ignore them without a word.
const OPTIONS: [&str; 5] = ["ssl-mode", "ssl-ca", "ssl-cert", "ssl-key", "socket"];

/// The address of a `MySQL` or `MariaDB` database.
#[derive(Clone)]
pub struct Address {
    options: Box<MySqlConnectOptions>,
    /// Kept to compare two addresses.
    url: String,
    /// What may be shown.
    shown: String,
    has_password: bool,
}

impl Address {
    /// Whether this is the URL of such a database at all.
    pub fn is_one(url: &str) -> bool {
        url.starts_with("mysql:") || url.starts_with("mariadb:")
    }

    /// Reads a URL: `mysql://user@host:port/database?ssl-mode=VERIFY_IDENTITY`. `Rejected` when it cannot be read; no part
    /// of it stands in the failure.
    pub fn parse(url: &str) -> Result<Address, Failure> {
        let wrong = |what: &str| {
            Failure::rejected(what.to_owned()).remedy(
                "write mysql://user@host:port/database, with percent signs for special characters",
            )
        };
        let unreadable = || wrong("this address of a MySQL database cannot be read");
        let (rest, query) = url.split_once('?').unwrap_or((url, ""));
        let (_, place) = rest.split_once("://").ok_or_else(unreadable)?;
        let (authority, database) = place.split_once('/').ok_or_else(unreadable)?;
        if database.is_empty() || database.contains(['/', '#']) {
            return Err(wrong("the address has to name one database"));
        }
        let (user, host) = authority.rsplit_once('@').unwrap_or(("", authority));
        let mut is_tls_spelled = false;
        let mut socket = None;
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !OPTIONS.contains(&name) {
                return Err(wrong("the address has an option that is not known")
                    .remedy(format!("known are {}", OPTIONS.join(", "))));
            }
            is_tls_spelled |= name == "ssl-mode";
            if name == "socket" {
                socket = Some(value);
            }
        }
        let spelled = format!("mysql://{place}?{query}");
        let mut options: MySqlConnectOptions = spelled.parse().map_err(|_| unreadable())?;
        let name = host.split(':').next().unwrap_or_default();
        if !is_tls_spelled
            && socket.is_none()
            && !is_this_machine(name)
            && !host.starts_with("[::1]")
        {
            options = options.ssl_mode(MySqlSslMode::VerifyIdentity);
        }
        options = options
            .statement_cache_capacity(0)
            // The words and times of an answer are text in UTF-8 and UTC, whatever the server prefers.
            .charset("utf8mb4")
            .timezone(Some("+00:00".to_owned()))
            .disable_statement_logging();
        Ok(Address {
            options: Box::new(options),
            url: url.to_owned(),
            shown: format!("mysql://{host}/{database}"),
            has_password: user.contains(':'),
        })
    }

    /// How to connect.
    pub fn options(&self) -> &MySqlConnectOptions {
        &self.options
    }

    /// Whether the URL itself holds a password.
    pub fn has_password(&self) -> bool {
        self.has_password
    }
}

/// Host and database: what may be shown.
impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(url: &str) -> String {
        let address = Address::parse(url).expect("an address");
        format!("{:?}", address.options.get_ssl_mode())
    }

    #[test]
    fn another_machine_is_proved_to_be_the_right_one_unless_something_else_is_spelled() {
        assert_eq!(mode("mysql://app@db.example/pay"), "VerifyIdentity");
        assert_eq!(mode("mariadb://app@10.0.0.1:3307/pay"), "VerifyIdentity");
        assert_eq!(
            mode("mysql://app@db.example/pay?ssl-mode=DISABLED"),
            "Disabled"
        );
        assert_eq!(mode("mysql://app@localhost/pay"), "Preferred");
    }

    #[test]
    fn nothing_shows_a_password() {
        let address =
            Address::parse("mysql://app:hunter2@db.example:3307/pay").expect("an address");
        assert!(address.has_password());
        assert_eq!(
            format!("{address} {address:?}"),
            "mysql://db.example:3307/pay Address(mysql://db.example:3307/pay)"
        );
        for wrong in [
            "mysql:hunter2",
            "mysql://app:hunter2@db",
            "mysql://app:hunter2@db:x/pay",
            "mysql://db/pay?hunter2=1",
            "mysql://db/pay?ssl-mode=hunter2",
        ] {
            let failure = Address::parse(wrong).expect_err("no address");
            assert!(!failure.to_string().contains("hunter2"), "{failure}");
        }
    }
}
