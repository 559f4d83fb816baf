//! The store behind a pooler that hands each transaction to whatever connection is free: `PgBouncer` in transaction mode, a
//! private one in a temporary folder before the server of the tests. A machine without it fails the tests, and is told what
//! to install.

use std::net::Ipv4Addr;
use std::process::Child;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use paysweep::store::postgres::Address;
use sqlx::PgConnection;
use sqlx::{Connection, Row};

use super::postgres::{Database, aside};
use super::scene::{Scene, database};
use super::server::{clean_up, free_port, program, supervise, unprivileged};

const INSTALL: &str = "apt-get install pgbouncer (Debian, Ubuntu), brew install pgbouncer (macOS)";

/// The URL of a database through the pooler, which has two connections to it from now on.
pub(crate) fn url_of(database: &Database) -> String {
    let direct = database.url();
    let (_, place) = direct.split_once("://").expect("a URL");
    let (_, name) = place.rsplit_once('/').expect("a database");
    let name = name.split('?').next().unwrap_or_default();
    let url = format!(
        "postgres://anybody@{}:{}/{name}",
        Ipv4Addr::LOCALHOST,
        port()
    );
    let pooled = url.clone();
    aside(move || async move {
        let connect = async || PgConnection::connect(&pooled).await.expect("a connection");
        let (mut held, mut other) = (connect().await, connect().await);
        for (connection, statement) in [(&mut held, "begin"), (&mut other, "begin; commit")] {
            let sending = sqlx::raw_sql(statement).execute(connection);
            sending.await.expect("an answer");
        }
        let ending = sqlx::raw_sql("commit").execute(&mut held);
        ending.await.expect("an answer");
    });
    url
}

/// The address of a store through the pooler.
pub(crate) fn address_of(database: &Database) -> Address {
    Address::parse(&url_of(database)).expect("an address")
}

/// The port of the pooler.
fn port() -> u16 {
    static POOLER: OnceLock<Result<u16, String>> = OnceLock::new();
    match POOLER.get_or_init(|| std::thread::spawn(start).join().expect("no panic")) {
        Ok(port) => *port,
        Err(what) => panic!("{what}"),
    }
}

fn start() -> Result<u16, String> {
    clean_up("paysweep-pooler-", "pid", "INT");
    let pooler = program("pgbouncer", INSTALL)?;
    let server = super::postgres::server_url();
    let (_, place) = server.split_once("://").ok_or("a URL of the server")?;
    let (who, place) = place.split_once('@').ok_or("a URL with a user")?;
    let place = place.split('/').next().unwrap_or_default();
    let (user, password) = who.split_once(':').unwrap_or((who, ""));
    let password = match password {
        "" => String::new(),
        _ => format!(" password={password}"),
    };
    let (host, server_port) = place.split_once(':').unwrap_or((place, "5432"));
    let folder = std::env::temp_dir().join(format!("paysweep-pooler-{}", std::process::id()));
    std::fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let words = unprivileged(&folder)?;
    let file = folder.join("pgbouncer.ini");
    // Somebody may take the port in between; then another is tried.
    for _ in 0..3 {
        let port = free_port();
        // Two connections for all, taken in turn: two transactions of one client seldom see the same.
        let settings = format!(
            "[databases]\n\
             * = host={host} port={server_port} user={user}{password}\n\
             [pgbouncer]\n\
             listen_addr = {}\nlisten_port = {port}\nunix_socket_dir =\npidfile = {}\n\
             auth_type = any\npool_mode = transaction\nserver_round_robin = 1\n\
             default_pool_size = 2\nmin_pool_size = 2\nmax_client_conn = 400\n\
             ignore_startup_parameters = extra_float_digits\n",
            Ipv4Addr::LOCALHOST,
            folder.join("pid").display(),
        );
        std::fs::write(&file, settings).map_err(|error| error.to_string())?;
        let mut command = words.clone();
        command.extend([pooler.display().to_string(), file.display().to_string()]);
        if supervise(&command, &folder, "INT") && answers(port) {
            return Ok(port);
        }
    }
    let log = std::fs::read_to_string(folder.join("log")).unwrap_or_default();
    let last: Vec<&str> = log.lines().rev().take(5).collect();
    Err(format!(
        "the pooler of the tests did not start: {}",
        last.join("\n")
    ))
}

fn answers(port: u16) -> bool {
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(5) {
        let url = format!("postgres://anybody@{}:{port}/postgres", Ipv4Addr::LOCALHOST);
        let asking = move || async move {
            let mut connection = PgConnection::connect(&url).await?;
            sqlx::raw_sql("select 1").execute(&mut connection).await?;
            connection.close().await
        };
        if aside(asking).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// A scene whose store is behind the pooler.
fn pooled(scene: Scene, database: &Database) -> Scene {
    scene.stored_at(&url_of(database), "120s")
}

#[test]
fn transactions_of_one_client_go_to_different_connections() {
    let database = database();
    let url = url_of(&database);
    let seen = aside(move || async move {
        let mut connection = PgConnection::connect(&url).await.expect("a connection");
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..10 {
            let answer = sqlx::raw_sql("begin; select pg_backend_pid() as pid; commit")
                .fetch_one(&mut connection)
                .await
                .expect("an answer");
            seen.insert(answer.get::<i32, _>("pid"));
        }
        seen.len()
    });
    assert!(seen > 1, "this pooler would prove nothing");
}

#[test]
fn nights_behind_a_pooler_are_the_nights_of_the_server() {
    let (plain, behind) = (database(), database());
    let scenes = [
        Scene::behind().stored(Some(&plain), "120s"),
        pooled(Scene::behind(), &behind),
    ];
    let mut told: Vec<Vec<(i32, String)>> = Vec::new();
    for scene in &scenes {
        let mut nights = Vec::new();
        let mut say = |line: &str| {
            let answer = scene.now(line);
            let mut report = answer.json();
            // What tells one run from another.
            for at in ["run", "ledger"] {
                report.as_object_mut().expect("a report").remove(at);
            }
            let text = report.to_string();
            nights.push((answer.code, text));
        };
        say("run --dry-run -f json");
        say("run -f json");
        say("run -f json");
        scene.operations(
            "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n\
             ch_2,charge,succeeded,1000,EUR,2026-03-09T10:00:06Z,A\n",
        );
        say("run -f json");
        say("run -f json");
        told.push(nights);
    }
    let codes: Vec<i32> = told[1].iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [1, 1, 0, 1, 1]);
    // Ids of runs stand in reports as well.
    let blind = |text: &str| {
        let mut blind = String::new();
        for word in text.split('"') {
            let is_id = word.len() == 36 && word.matches('-').count() == 4;
            blind += if is_id { "ID" } else { word };
            blind.push('"');
        }
        blind
    };
    for (plain, behind) in told[0].iter().zip(&told[1]) {
        assert_eq!(blind(&plain.1), blind(&behind.1));
    }
}

#[test]
fn of_sixteen_runs_behind_a_pooler_one_books_the_refund() {
    let database = database();
    let scene = super::races::shop_at(&url_of(&database), "120s", 0);
    super::races::refunds(&scene, 0, 0);
    assert_eq!(scene.now("run").code, 0);
    super::races::refunds(&scene, 1, 0);
    let started: Vec<Child> = (0..16).map(|_| super::races::start(&scene)).collect();
    let codes: Vec<i32> = started
        .into_iter()
        .map(|child| super::races::end(child).code)
        .collect();
    let booked = codes.iter().filter(|code| **code == 1).count();
    assert_eq!(booked, 1, "{codes:?}");
    assert!(
        codes.iter().all(|code| [0, 1, 11].contains(code)),
        "{codes:?}"
    );
    super::races::assert_once(&scene, 1, "behind a pooler");
}
