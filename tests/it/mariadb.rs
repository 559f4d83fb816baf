//! A `MariaDB` server for the tests: a private one in a temporary folder, that ends with this process. Each test gets a
//! database of its own. A machine without a server fails the tests, and is told what to install.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use sqlx::{AssertSqlSafe, Connection, MySqlConnection};

use super::postgres::aside;
use super::server::{clean_up, free_port, program, supervise, unprivileged};

const INSTALL: &str =
    "apt-get install mariadb-server (Debian, Ubuntu), brew install mariadb (macOS)";

const USER: &str = "paysweep";

/// A database of one test. It goes with the server.
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// An empty database.
    pub(crate) async fn empty() -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("paysweep_{}", COUNT.fetch_add(1, Ordering::Relaxed));
        administer(
            &url_of(server(), USER, "mysql"),
            format!("create database `{name}` character set utf8mb4"),
        )
        .await
        .expect("a database");
        Database { name }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        url_of(server(), USER, &self.name)
    }

    /// Runs statements.
    pub(crate) async fn run(&self, statements: &str) {
        administer(&self.url(), statements.to_owned())
            .await
            .expect(statements);
    }
}

fn url_of(port: u16, user: &str, database: &str) -> String {
    format!("mysql://{user}@{}:{port}/{database}", Ipv4Addr::LOCALHOST)
}

async fn administer(url: &str, statements: String) -> Result<(), sqlx::Error> {
    let mut connection = MySqlConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statements))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

/// The port of the server.
fn server() -> u16 {
    static SERVER: OnceLock<Result<u16, String>> = OnceLock::new();
    match SERVER.get_or_init(|| std::thread::spawn(start).join().expect("no panic")) {
        Ok(port) => *port,
        Err(what) => panic!("{what}"),
    }
}

fn start() -> Result<u16, String> {
    clean_up("paysweep-maria-", "pid", "KILL");
    let server = program("mariadbd", INSTALL)?;
    let install = program("mariadb-install-db", INSTALL)?;
    let folder = std::env::temp_dir().join(format!("paysweep-maria-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    // The one user that the tests know, who may come from anywhere on this machine.
    let first = format!(
        "create user '{USER}'@'%' identified by '';\ngrant all on *.* to '{USER}'@'%' with grant option;\n"
    );
    std::fs::write(folder.join("first.sql"), first).map_err(|error| error.to_string())?;
    let user = unprivileged(&folder)?;
    let in_folder = |name: &str| folder.join(name).display().to_string();
    let words = |program: &Path, arguments: &[String]| {
        let mut words = user.clone();
        words.push(program.display().to_string());
        words.extend_from_slice(arguments);
        words
    };
    let install = words(
        &install,
        &[
            "--no-defaults".to_owned(),
            format!("--datadir={}", in_folder("data")),
            "--auth-root-authentication-method=normal".to_owned(),
            "--skip-test-db".to_owned(),
        ],
    );
    let made = Command::new(&install[0])
        .args(&install[1..])
        .current_dir("/")
        .output()
        .map_err(|error| format!("{}: {error}", install.join(" ")))?;
    if !made.status.success() {
        return Err(format!(
            "{}: {}{}",
            install.join(" "),
            String::from_utf8_lossy(&made.stdout),
            String::from_utf8_lossy(&made.stderr)
        ));
    }
    // Somebody may take the port in between; then another is tried.
    for _ in 0..3 {
        let port = free_port();
        let arguments = [
            "--no-defaults".to_owned(),
            format!("--datadir={}", in_folder("data")),
            format!("--socket={}", in_folder("socket")),
            format!("--pid-file={}", in_folder("pid")),
            format!("--init-file={}", in_folder("first.sql")),
            format!("--bind-address={}", Ipv4Addr::LOCALHOST),
            format!("--port={port}"),
            "--skip-name-resolve".to_owned(),
            "--skip-log-bin".to_owned(),
            "--innodb-flush-log-at-trx-commit=0".to_owned(),
            "--innodb-buffer-pool-size=64M".to_owned(),
        ];
        if supervise(&words(&server, &arguments), &folder, "KILL") && answers(port, &folder) {
            return Ok(port);
        }
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    Err(format!(
        "the MariaDB server of the tests did not start:\n{log}"
    ))
}

fn answers(port: u16, folder: &Path) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_mins(1) {
        let url = url_of(port, USER, "mysql");
        if aside(move || async move { administer(&url, "select 1".to_owned()).await }).is_ok() {
            return true;
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        if log.contains("Aborting") {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}
