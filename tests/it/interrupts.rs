//! Signals and deadlines: real processes that are asked to stop at known points and at any point, on both engines.
//!
//! A table or row that somebody else has locked keeps a run where it is, so that the point at which it is asked is known.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, Row};

use super::postgres::Database;
use super::scene::{NOW, Scene, Told, database, send};

/// The exit code of a signal.
const SIGNALS: [(&str, i32); 2] = [("TERM", 143), ("INT", 130)];

fn start(scene: &Scene, line: &str) -> Child {
    scene
        .command(&format!("{line} --as-of {NOW} -f json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts")
}

fn end(child: Child) -> Told {
    Told::from(child.wait_with_output().expect("it ends"))
}

/// A session that holds locks until it is told to let go.
pub(crate) struct Holder {
    runtime: tokio::runtime::Runtime,
    session: PgConnection,
}

impl Holder {
    pub(crate) fn of(database: &Database, statement: &str) -> Holder {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let session = runtime.block_on(async {
            let mut session = database.connection().await;
            sqlx::raw_sql(AssertSqlSafe(format!("begin; {statement}")))
                .execute(&mut session)
                .await
                .expect(statement);
            session
        });
        Holder { runtime, session }
    }

    /// Waits until somebody waits for it.
    pub(crate) fn wait_for_a_run(&mut self) {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(20) {
            // Within a transaction the first look would be shown for good.
            let forgetting =
                sqlx::raw_sql("select pg_stat_clear_snapshot()").execute(&mut self.session);
            self.runtime.block_on(forgetting).expect("a new look");
            let asking = sqlx::query(
                "select count(*) from pg_stat_activity \
                 where datname = current_database() and wait_event_type = 'Lock'",
            )
            .fetch_one(&mut self.session);
            let waiting: i64 = self.runtime.block_on(asking).expect("a number").get(0);
            if waiting > 0 {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no run came to the lock");
    }

    pub(crate) fn let_go(self) {
        let closing = self.session.close();
        self.runtime.block_on(closing).expect("the session ends");
    }
}

fn scalar(database: &Database, question: &'static str) -> i64 {
    let url = database.url();
    super::postgres::aside(move || async move {
        let mut session = PgConnection::connect(&url).await.expect("a session");
        sqlx::query_scalar(question)
            .fetch_one(&mut session)
            .await
            .expect(question)
    })
}

fn report(told: &Told) -> Value {
    told.json()
}

/// What every report of a run that was stopped says.
fn assert_stopped(told: &Told, code: i32, word: &str) -> Value {
    assert_eq!(told.code, code, "{}", told.stderr);
    let report = report(told);
    assert_eq!(report["outcome"]["exit_code"], code);
    assert!(told.stderr.contains(word), "{}", told.stderr);
    let message = &report["outcome"]["reasons"][0]["message"];
    assert!(
        message.as_str().is_some_and(|it| it.contains(word)),
        "{message}"
    );
    report
}

#[test]
fn a_run_that_is_asked_to_stop_rolls_back_frees_its_source_and_tells_what_it_has() {
    // Where the run is: loading what is known, or in the middle of its commit.
    for (table, is_writing) in [("operations", false), ("break_events", true)] {
        for (signal, code) in SIGNALS {
            let database = database();
            let scene = Scene::behind().stored(Some(&database), "120s");
            let mut holder = Holder::of(&database, &format!("lock table paysweep.{table}"));
            let run = start(&scene, "run");
            holder.wait_for_a_run();
            send(signal, &run);
            if is_writing {
                std::thread::sleep(Duration::from_millis(200));
                holder.let_go();
                let told = end(run);
                check_stopped(&scene, &database, &told, code, signal);
            } else {
                // It does not wait for what it has left.
                let begun = Instant::now();
                let told = end(run);
                assert!(begun.elapsed() < Duration::from_secs(3), "{table}");
                holder.let_go();
                check_stopped(&scene, &database, &told, code, signal);
            }
        }
    }
}

fn check_stopped(scene: &Scene, database: &Database, told: &Told, code: i32, signal: &str) {
    let report = assert_stopped(told, code, &format!("SIG{signal}: stopped"));
    assert_eq!(report["outcome"]["name"], "interrupted");
    assert_eq!(report["sources"][0]["complete"], false);
    assert_eq!(report["repairs"], Value::Array(Vec::new()));
    assert!(
        told.stderr.contains("nothing was written"),
        "{}",
        told.stderr
    );
    assert_eq!(
        scalar(database, "select count(*) from paysweep.run_commits"),
        0
    );
    assert_eq!(scalar(database, "select count(*) from paysweep.repairs"), 0);
    // The next run need not wait, although the lease was long.
    let next = scene.now("run -f json");
    assert_eq!(next.code, 1, "{}", next.stderr);
    assert_eq!(next.json()["outcome"]["name"], "repaired");
    assert_eq!(next.json()["carried"]["runs"], Value::Array(Vec::new()));
    let runs = scene.say("runs list -f json").json();
    let codes: Vec<&Value> = runs["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| &run["exit_code"])
        .collect();
    assert_eq!(codes, [1, code], "{runs}");
}

#[test]
fn sources_that_were_committed_before_the_signal_stay_and_are_told_again_by_the_next_run() {
    let database = database();
    let second = "[source.zoo]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"zoo.csv\"]\n\
        start = \"2026-03-09T00:00:00Z\"\ncomplete_through = \"as-of\"";
    let scene = Scene::behind().with(second).stored(Some(&database), "120s");
    let head = std::fs::read_to_string(scene.path("operations.csv")).expect("a file");
    let head = head.lines().next().expect("a header");
    scene.write("zoo.csv", &format!("{head}\n"));
    // The source `zoo` cannot be claimed as long as its row is held.
    let lease = "insert into paysweep.leases (source, epoch, run_id) values ('zoo', 1, '')";
    Holder::of(&database, &format!("{lease}; commit; begin")).let_go();
    let hold = "select 1 from paysweep.leases where source = 'zoo' for update";
    let mut holder = Holder::of(&database, hold);
    let run = start(&scene, "run --run-key night");
    holder.wait_for_a_run();
    send("TERM", &run);
    std::thread::sleep(Duration::from_millis(200));
    holder.let_go();
    let told = end(run);
    let report = assert_stopped(&told, 143, "SIGTERM: stopped");
    let is_complete: Vec<(&str, bool)> = report["sources"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| {
            let name = it["name"].as_str().expect("a name");
            (name, it["complete"].as_bool().expect("a flag"))
        })
        .collect();
    assert_eq!(is_complete, [("shop", true), ("zoo", false)]);
    assert_eq!(report["repairs"].as_array().map(Vec::len), Some(1));
    assert_eq!(
        scalar(&database, "select count(*) from paysweep.run_commits"),
        1
    );
    assert_eq!(
        scalar(
            &database,
            "select count(*) from paysweep.leases where owner is not null"
        ),
        0
    );
    // The key is free again, what was repaired is told again, and nothing is written twice.
    let next = scene.now("run --run-key night -f json");
    assert_eq!(next.code, 1, "{}", next.stderr);
    let next = next.json();
    assert_eq!(next["repairs"], Value::Array(Vec::new()));
    assert_eq!(
        next["carried"]["runs"],
        Value::from(vec![report["run"]["id"].clone()])
    );
    assert_eq!(next["carried"]["repairs"].as_array().map(Vec::len), Some(1));
    assert_eq!(scene.now("run -f json").json()["outcome"]["name"], "clean");
}

#[test]
fn a_deadline_ends_a_run_with_75_and_a_partial_report() {
    let database = database();
    let scene = Scene::behind().stored(Some(&database), "120s");
    let holder = Holder::of(&database, "lock table paysweep.operations");
    let told = end(start(&scene, "run --deadline 1s"));
    holder.let_go();
    let report = assert_stopped(&told, 75, "--deadline: stopped after 1s");
    assert_eq!(report["outcome"]["name"], "temporary");
    assert_eq!(
        scene.now("run -f json").json()["outcome"]["name"],
        "repaired"
    );
    let refused = scene.now("run --deadline 0s");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    // One that is not reached changes nothing.
    assert_eq!(scene.now("run --deadline 1h").code, 0);
}

#[test]
fn a_dry_run_that_is_asked_to_stop_tells_so_and_has_written_nothing() {
    let database = database();
    let scene = Scene::behind().stored(Some(&database), "120s");
    let mut holder = Holder::of(&database, "lock table paysweep.operations");
    let run = start(&scene, "run --dry-run");
    holder.wait_for_a_run();
    send("INT", &run);
    let told = end(run);
    holder.let_go();
    assert_stopped(&told, 130, "SIGINT: stopped");
    assert_eq!(scalar(&database, "select count(*) from paysweep.runs"), 0);
}

#[test]
fn a_second_signal_ends_the_process_at_once() {
    let database = database();
    let scene = Scene::behind().stored(Some(&database), "120s");
    // Claiming is not left in the middle, so one signal has to wait.
    let mut holder = Holder::of(&database, "lock table paysweep.leases");
    let mut run = start(&scene, "run");
    holder.wait_for_a_run();
    send("TERM", &run);
    std::thread::sleep(Duration::from_millis(300));
    assert!(run.try_wait().expect("an answer").is_none(), "it waits");
    let begun = Instant::now();
    send("TERM", &run);
    let told = end(run);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert_eq!(told.code, 143);
    assert!(told.stderr.contains("a second signal"), "{}", told.stderr);
    holder.let_go();
}

/// A comparison of many rows, stopped at any point: a partial report, or the whole one where it was faster.
#[test]
fn a_comparison_of_files_that_is_asked_to_stop_ends_with_a_report() {
    use std::fmt::Write;
    let (mut operations, mut intents) = (String::new(), String::new());
    for n in 0..60_000 {
        let second = n % 60;
        writeln!(
            operations,
            "ch_{n},charge,succeeded,{n},EUR,2026-03-09T10:00:{second:02}Z,A{n}"
        )
        .expect("text");
        writeln!(
            intents,
            "A{n},charge,{n},EUR,succeeded,2026-03-09T10:00:{second:02}Z,ch_{n}"
        )
        .expect("text");
    }
    let scene = Scene::new(&operations, &intents);
    let line = "diff --operations operations.csv --intents intents.csv --complete-through as-of";
    let begun = Instant::now();
    assert_eq!(end(start(&scene, line)).code, 0);
    let whole = begun.elapsed();
    let mut stopped = 0;
    for point in 1..=8 {
        let run = start(&scene, line);
        // A process that has only just begun does not hear yet.
        std::thread::sleep(whole * point / 9 + Duration::from_millis(20));
        send("TERM", &run);
        let told = end(run);
        if told.code == 0 {
            continue;
        }
        assert_stopped(&told, 143, "SIGTERM: stopped");
        assert!(
            told.stderr.contains("nothing was written"),
            "{}",
            told.stderr
        );
        stopped += 1;
    }
    assert!(stopped > 2, "{stopped} of 8 were stopped");
    assert_eq!(
        scene.names(),
        ["intents.csv", "operations.csv", "paysweep.toml"]
    );
}
