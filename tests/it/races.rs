//! Processes that meet on one store: many at once, one that sleeps through its lease, one that may not take the lock.
//!
//! `PAYSWEEP_ROUNDS=50 cargo test --test it -- races::` runs the long form.

use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, PgConnection};

use super::postgres::{Database, aside};
use super::scene::{NOW, Scene, Told, database, on_both, send};
use super::server::unprivileged;

const PROCESSES: usize = 16;

/// So many payments take long enough to be read that a run can be stopped meanwhile.
const FILLER: usize = 6_000;

/// How often each race is run.
pub(crate) fn rounds(short: usize) -> usize {
    let asked = std::env::var("PAYSWEEP_ROUNDS").ok();
    asked.map_or(short, |text| {
        text.parse().expect("PAYSWEEP_ROUNDS is a number")
    })
}

/// A charge of 1000 USD, of which `count` refunds of 10 were made at the processor, beside payments in order.
pub(crate) fn refunds(scene: &Scene, count: usize, filler: usize) {
    let mut rows =
        "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference,parent_id\n"
            .to_owned();
    for n in 0..filler {
        rows += &format!("fill_{n},charge,succeeded,100,0,100,EUR,2026-03-09T08:00:00Z,F{n},\n");
    }
    for n in 0..count {
        rows += &format!("re_{n},refund,succeeded,-10,0,-10,USD,2026-03-09T09:00:00Z,,ch_470\n");
    }
    scene.write("operations.csv", &rows);
}

fn shop(database: Option<&Database>, lease: &str, filler: usize) -> Scene {
    let url = database.map_or_else(|| "sqlite://paysweep.db".to_owned(), Database::url);
    shop_at(&url, lease, filler)
}

/// The charge, paid, with its store wherever a URL says.
pub(crate) fn shop_at(url: &str, lease: &str, filler: usize) -> Scene {
    let mut rows = "ORD-470,charge,1000,USD,succeeded,2026-03-01T09:00:00Z,ch_470\n".to_owned();
    for n in 0..filler {
        rows += &format!("F{n},charge,100,EUR,succeeded,2026-03-09T08:00:00Z,fill_{n}\n");
    }
    Scene::new("", &rows).stored_at(url, lease)
}

pub(crate) fn start(scene: &Scene) -> Child {
    scene
        .command(&format!("run --as-of {NOW} -f json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

pub(crate) fn end(child: Child) -> Told {
    Told::from(child.wait_with_output().expect("it ends"))
}

fn count(scene: &Scene, line: &str, key: &str) -> usize {
    let told = scene.say(&format!("{line} -f json"));
    told.json()[key].as_array().expect("a list").len()
}

/// Exactly one refund recorded and one repair written for each that there was.
pub(crate) fn assert_once(scene: &Scene, refunds: usize, label: &str) {
    assert_eq!(count(scene, "repairs list", "repairs"), refunds, "{label}");
    let again = scene.now("run -f json");
    assert_eq!(again.code, 0, "{label}: {}", again.stderr);
    let again = again.json();
    assert_eq!(again["repairs"], Value::Array(Vec::new()), "{label}");
    assert_eq!(again["outcome"]["name"], "clean", "{label}");
}

#[test]
fn of_sixteen_runs_at_once_one_books_the_refund_and_the_others_are_locked_or_late_and_clean() {
    on_both(|database| {
        let scene = shop(database, "120s", 0);
        refunds(&scene, 0, 0);
        assert_eq!(scene.now("run").code, 0);
        for round in 1..=rounds(3) {
            refunds(&scene, round, 0);
            let started: Vec<Child> = (0..PROCESSES).map(|_| start(&scene)).collect();
            let (mut booked, mut locked) = (0, 0);
            for child in started {
                let told = end(child);
                match told.code {
                    1 => {
                        let report = told.json();
                        assert_eq!(report["outcome"]["name"], "repaired");
                        let repairs = report["repairs"].as_array().map(Vec::len);
                        assert_eq!(repairs, Some(1), "round {round}: {report}");
                        booked += 1;
                    }
                    11 => {
                        assert!(told.stderr.contains("held by run"), "{}", told.stderr);
                        locked += 1;
                    }
                    0 => assert_eq!(told.json()["repairs"], Value::Array(Vec::new())),
                    code => panic!("round {round}: {code} {}", told.stderr),
                }
            }
            assert_eq!(booked, 1, "round {round}, {locked} were locked");
            assert_once(&scene, round, &format!("round {round}"));
        }
    });
}

/// Waits until a run holds the source.
fn wait_for_the_claim(scene: &Scene, database: Option<&Database>) {
    let (path, url) = (scene.path("paysweep.db"), database.map(Database::url));
    aside(move || async move {
        let patience = Duration::from_secs(20);
        let waiting = async {
            if let Some(url) = &url {
                let mut session = PgConnection::connect(url).await.expect("a session");
                let question = "select count(*) from paysweep.leases where owner is not null";
                loop {
                    let asking = sqlx::query_scalar(question).fetch_one(&mut session);
                    let held: i64 = asking.await.expect("a number");
                    if held > 0 {
                        return;
                    }
                }
            }
            let options = SqliteConnectOptions::new()
                .filename(&path)
                .read_only(true)
                .busy_timeout(Duration::ZERO);
            let mut file = options.connect().await.expect("a store");
            loop {
                // While it is being written nobody can look.
                let question = "select count(*) from leases where owner is not null";
                let held: Result<i64, _> = sqlx::query_scalar(question).fetch_one(&mut file).await;
                if held.unwrap_or(0) > 0 {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let waited = tokio::time::timeout(patience, waiting).await;
        waited.expect("a run takes the source");
    });
}

/// A run is stopped after it has claimed the source, sleeps through its lease, and wakes up when another one has done the
/// work.
#[test]
fn a_run_that_slept_through_its_lease_adds_nothing_to_what_its_thief_wrote() {
    on_both(|database| {
        let scene = shop(database, "1s", FILLER);
        refunds(&scene, 0, FILLER);
        assert_eq!(scene.now("run").code, 0);
        let mut fenced = 0;
        let wanted = rounds(2);
        for round in 1..=wanted {
            refunds(&scene, round, FILLER);
            let sleeper = start(&scene);
            wait_for_the_claim(&scene, database);
            send("STOP", &sleeper);
            std::thread::sleep(Duration::from_millis(1_200));
            let thief = scene.now("run -f json");
            send("CONT", &sleeper);
            let woken = end(sleeper);
            let label = format!(
                "round {round}: thief {} {}, sleeper {} {}",
                thief.code, thief.stderr, woken.code, woken.stderr
            );
            match (thief.code, woken.code) {
                // The usual: the thief wrote, and the sleeper found the source taken.
                (1, 11) => {
                    assert!(woken.stderr.contains("fenced"), "{label}");
                    fenced += 1;
                }
                // Stopped in the middle of a transaction, which nobody can get past until it wakes up.
                (75, 1 | 11) => {}
                // It had committed before it was stopped; what it had not told yet, the thief told.
                (0 | 1, 1) => {}
                _ => panic!("{label}"),
            }
            // Whoever was in the way: afterwards it is done.
            let settled = scene.now("run -f json");
            assert!(
                [0, 1].contains(&settled.code),
                "{label}: {}",
                settled.stderr
            );
            assert_once(&scene, round, &label);
        }
        println!("{fenced} of {wanted} sleepers were fenced off");
    });
}

/// The same at a known point: the sleeper is about to read what is stored.
#[test]
fn a_sleeper_that_wakes_up_is_fenced_off() {
    let database = database();
    let scene = shop(Some(&database), "1s", 0);
    refunds(&scene, 1, 0);
    let mut holder = super::interrupts::Holder::of(&database, "lock table paysweep.operations");
    let sleeper = start(&scene);
    holder.wait_for_a_run();
    send("STOP", &sleeper);
    holder.let_go();
    std::thread::sleep(Duration::from_millis(1_200));
    let thief = scene.now("run -f json");
    assert_eq!(thief.code, 1, "{}", thief.stderr);
    send("CONT", &sleeper);
    let woken = end(sleeper);
    assert_eq!(woken.code, 11, "{}", woken.stderr);
    assert!(woken.stderr.contains("fenced"), "{}", woken.stderr);
    assert_once(&scene, 1, "after it woke up");
}

#[test]
fn without_the_right_to_take_the_lock_nothing_is_compared_and_nothing_written() {
    // A file and a folder that may only be read.
    let scene = shop(None, "120s", 0);
    refunds(&scene, 0, 0);
    assert_eq!(scene.now("run").code, 0);
    refunds(&scene, 1, 0);
    let before = scene.store();
    let words = unprivileged(scene.folder()).expect("a user");
    let mode = |name: &str, mode: u32| {
        let path = scene.path(name);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect(name);
    };
    mode("paysweep.db", 0o444);
    mode("operations.csv", 0o444);
    mode("intents.csv", 0o444);
    mode("paysweep.toml", 0o444);
    mode("", 0o555);
    let line = format!("run --as-of {NOW} -f json");
    let mut command = scene.command_through(&words, &line);
    let told = Told::from(command.output().expect("it starts"));
    mode("", 0o755);
    assert!(
        [5, 10].contains(&told.code),
        "{} {}",
        told.code,
        told.stderr
    );
    assert_eq!(told.stdout, "");
    assert!(
        told.stderr.contains("the right to write"),
        "{}",
        told.stderr
    );
    assert_eq!(scene.store(), before);
    // A role that may not claim a source.
    let database = database();
    let role = format!("{}_reader", database.quoted().trim_matches('"'));
    aside({
        let (url, role) = (database.url(), role.clone());
        move || async move {
            let grants = format!(
                "create role {role} login; grant usage on schema paysweep to {role}; \
                 grant select, insert, update on all tables in schema paysweep to {role}; \
                 revoke insert, update on paysweep.leases from {role}"
            );
            super::postgres::administer_at(&url, grants)
                .await
                .expect("grants");
        }
    });
    let scene = shop(Some(&database), "120s", 0);
    refunds(&scene, 1, 0);
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
    scene.write(
        "paysweep.toml",
        &config.replace(&database.url(), &database.url_as(&role)),
    );
    let told = scene.now("run -f json");
    assert_eq!(told.code, 5, "{}", told.stderr);
    assert_eq!(told.stdout, "");
    assert!(told.stderr.contains("leases"), "{}", told.stderr);
    scene.write("paysweep.toml", &config);
    assert_eq!(count(&scene, "repairs list", "repairs"), 0);
    assert_eq!(count(&scene, "runs list", "runs"), 0);
    aside({
        let url = database.url();
        move || async move {
            let ungrant = format!("drop owned by {role}; drop role {role}");
            super::postgres::administer_at(&url, ungrant)
                .await
                .expect("no role");
        }
    });
}
