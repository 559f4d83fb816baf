//! The life of a repair, who may say what of it, and the chain that seals every step.

use std::process::Stdio;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::postgres::{Database, aside};
use super::scene::{Scene, Told, on_both};

/// Two payments that succeeded, and the local rows do not know.
const OPERATIONS: &str = "\
    ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n\
    ch_2,charge,succeeded,99000,EUR,2026-03-09T11:00:05Z,B\n";
const INTENTS: &str = "\
    A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n\
    B,charge,99000,EUR,pending,2026-03-09T11:00:00Z,\n";

fn shop(database: Option<&Database>, more: &str) -> Scene {
    Scene::new(OPERATIONS, INTENTS)
        .with(more)
        .stored(database, "5s")
}

/// Runs statements on the store, past paysweep.
fn tamper(scene: &Scene, database: Option<&Database>, sql: &str) {
    let (path, url) = (scene.path("paysweep.db"), database.map(Database::url));
    let sql = sql.to_owned();
    aside(move || async move {
        if let Some(url) = url {
            let mut session = sqlx::PgConnection::connect(&url).await.expect("a session");
            let sql = format!("set search_path = paysweep; {sql}");
            let raw = sqlx::raw_sql(AssertSqlSafe(sql.clone()));
            raw.execute(&mut session).await.expect(&sql);
            session.close().await.expect("closed");
        } else {
            let options = SqliteConnectOptions::new().filename(&path);
            let mut file = options.connect().await.expect("a store");
            let raw = sqlx::raw_sql(AssertSqlSafe(sql.clone()));
            raw.execute(&mut file).await.expect(&sql);
            file.close().await.expect("closed");
        }
    });
}

fn repairs(scene: &Scene) -> Vec<serde_json::Value> {
    let told = scene.say("repairs list -f json").json();
    told["repairs"].as_array().expect("a list").clone()
}

fn id_of(scene: &Scene, intent: &str) -> String {
    let found = repairs(scene)
        .into_iter()
        .find(|item| item["intent_id"] == intent);
    let found = found.unwrap_or_else(|| panic!("no repair of {intent}"));
    found["id"].as_str().expect("an id").to_owned()
}

fn ledger_line(check: &Told) -> String {
    let line = check
        .stdout
        .lines()
        .find(|line| line.split_whitespace().nth(1) == Some("ledger"));
    line.unwrap_or_else(|| panic!("{check:?}")).to_owned()
}

#[test]
fn a_repair_above_its_limit_is_proposed_approved_by_somebody_else_written_and_taken_back() {
    on_both(|database| {
        let scene = shop(
            database,
            "[repair]\nfour_eyes = true\nstatus_behind = { max_amount = { EUR = \"500\" } }",
        );
        let run = scene.now("run -f json");
        assert_eq!(run.code, 1, "{}", run.stderr);
        let report = run.json();
        let states: Vec<&str> = report["repairs"]
            .as_array()
            .expect("repairs")
            .iter()
            .map(|item| item["state"].as_str().expect("a state"))
            .collect();
        assert_eq!(states, ["applied", "proposed"]);
        assert!(
            report["repairs"][1]["note"]
                .as_str()
                .expect("a note")
                .contains("990.00 EUR is above max_amount 500.00 EUR")
        );
        let id = id_of(&scene, "B");
        // Who ran the run is answerable for the proposal.
        let own = scene.say(&format!("repairs approve {id} --reason mine"));
        assert_eq!(own.code, 5, "{own:?}");
        assert!(own.stderr.contains("proposed by kim"), "{}", own.stderr);
        let early = scene.say(&format!("repairs apply {id}"));
        assert_eq!(early.code, 2, "{early:?}");
        assert!(early.stderr.contains("only an approved one"), "{early:?}");
        let other = scene.say_as("sam", &format!("repairs approve {id} --reason checked"));
        assert_eq!(other.code, 0, "{other:?}");
        let again = scene.say_as("sam", &format!("repairs reject {id} --reason no"));
        assert_eq!(
            again.code, 0,
            "an approved one can still be turned down: {again:?}"
        );
        let late = scene.say_as("sam", &format!("repairs approve {id} --reason yes"));
        assert_eq!(late.code, 2, "{late:?}");
        // A person's no is kept: the next run does not bring it again, and the break stays.
        let next = scene.now("run -f json").json();
        assert_eq!(next["repairs"], serde_json::json!([]));
        assert_eq!(next["breaks"].as_array().map(Vec::len), Some(1));
        let story = scene.say(&format!("repairs show {id}"));
        for part in [
            "proposed   by kim",
            "before     pending",
            "after      succeeded (ch_2)",
            "approved by sam: checked",
            "rejected by sam: no",
            "evidence",
        ] {
            assert!(story.stdout.contains(part), "{part}: {}", story.stdout);
        }
        // What was written can be taken back, by a proposal like any other.
        let written = id_of(&scene, "A");
        let inverse = scene.say(&format!("repairs revert {written} --reason wrong"));
        assert_eq!(inverse.code, 0, "{inverse:?}");
        let twice = scene.say(&format!("repairs revert {written} --reason wrong"));
        assert_eq!(twice.code, 2, "{twice:?}");
        let inverse = inverse
            .stdout
            .split_whitespace()
            .next()
            .expect("an id")
            .to_owned();
        let own = scene.say(&format!("repairs approve {inverse} --reason mine"));
        assert_eq!(own.code, 5, "{own:?}");
        let other = scene.say_as("sam", &format!("repairs approve {inverse} --reason seen"));
        assert_eq!(other.code, 0, "{other:?}");
        let done = scene.say_as("sam", "repairs apply");
        assert_eq!(done.code, 0, "{done:?}");
        assert!(
            done.stdout.contains("succeeded (ch_1) → pending"),
            "{}",
            done.stdout
        );
        let gone = scene.say(&format!("repairs revert {written} --reason again"));
        assert_eq!(gone.code, 2, "{gone:?}");
        assert!(gone.stderr.contains("is not as repair"), "{}", gone.stderr);
    });
}

#[test]
fn with_four_eyes_nobody_in_particular_approves_nothing() {
    let scene = shop(
        None,
        "[repair]\nfour_eyes = true\nstatus_behind = \"propose\"",
    );
    assert_eq!(scene.now("run").code, 1);
    let id = id_of(&scene, "A");
    let mut command = scene.command(&format!("repairs approve {id} --reason x"));
    let told = Told::from(command.env_remove("USER").output().expect("it starts"));
    assert_eq!(told.code, 5, "{told:?}");
    assert!(told.stderr.contains("PAYSWEEP_USER"), "{}", told.stderr);
}

#[test]
fn a_row_that_changed_since_the_approval_is_not_overwritten() {
    on_both(|database| {
        let scene = shop(database, "[repair]\nstatus_behind = \"propose\"");
        assert_eq!(scene.now("run").code, 1);
        let id = id_of(&scene, "A");
        assert_eq!(
            scene.say(&format!("repairs approve {id} --reason ok")).code,
            0
        );
        // Our own export says otherwise meanwhile; only the intents are read again.
        scene.intents(&INTENTS.replace("A,charge,1000,EUR,pending", "A,charge,1000,EUR,canceled"));
        let run = scene.now("run -f json");
        assert_eq!(run.code, 1, "{}", run.stderr);
        let told = scene.say("repairs apply");
        // The new state is judged anew; what was approved for the old one has no place any more.
        assert!(
            told.stdout.contains("no repair is approved") || told.code == 1,
            "{told:?}"
        );
        let show = scene.say(&format!("repairs show {id} -f json")).json();
        assert!(
            ["superseded", "failed"].contains(&show["state"].as_str().expect("a state")),
            "{show}"
        );
    });
}

/// Each way in which somebody could change the record past paysweep, and what is said of it.
const TAMPERED: [(&str, &str); 9] = [
    (
        "update repair_events set note = 'x' where event_no = 1 and repair_id = (select min(repair_id) from repair_events)",
        "was changed in the ledger",
    ),
    (
        "update repairs set to_status = 'failed' where intent_id = 'B'",
        "was changed in the ledger",
    ),
    (
        "update break_events set done_by = 'nobody' where what = 'acknowledged'",
        "was changed in the ledger",
    ),
    (
        "delete from repair_events where event_no = 2",
        "is gone from the ledger",
    ),
    ("delete from chain where position = 2", "entry 2 is gone"),
    (
        "update chain set content_hash = hash where position = 1",
        "entry 1",
    ),
    (
        "delete from chain where position = (select max(position) from chain)",
        "is gone",
    ),
    (
        "insert into repair_events select repair_id, 9, 'rejected', done_at, 'eve', '', 'slipped in' from repair_events where event_no = 2",
        "the ledger holds",
    ),
    (
        "update chain_head set hash = 'ab'",
        "its head is not that of entry",
    ),
];

#[test]
fn whoever_changes_the_record_past_paysweep_is_found_and_the_first_broken_link_is_named() {
    on_both(|database| {
        let scene = shop(database, "[repair]\nstatus_behind = \"propose\"");
        let run = scene.now("run -f json");
        assert_eq!(run.code, 1, "{}", run.stderr);
        let id = id_of(&scene, "B");
        let told = scene.say(&format!("repairs approve {id} --reason ok"));
        assert_eq!(told.code, 0, "{told:?}");
        let broken = run.json()["breaks"][0]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        let told = scene.say(&format!(
            "breaks ack {broken} --until 2099-01-01 --reason later"
        ));
        assert_eq!(told.code, 0, "{told:?}");
        let told = scene.say(&format!(
            "breaks close {broken} --as accepted --reason fine"
        ));
        assert_eq!(told.code, 0, "{told:?}");
        let sound = ledger_line(&scene.say("check"));
        assert!(
            sound.starts_with("ok") && sound.contains("5 steps"),
            "{sound}"
        );
        // The head stands in the report of the next run, in both forms, and is kept with it.
        let report = scene.now("run -f json").json();
        let head = report["run"]["ledger"]["head"]
            .as_str()
            .expect("a head")
            .to_owned();
        assert_eq!(head.len(), 64);
        let entries = report["run"]["ledger"]["entries"]
            .as_u64()
            .expect("a number");
        let line = ledger_line(&scene.say("check"));
        assert!(
            line.contains(&head) && line.contains(&format!("{entries} steps")),
            "{line}"
        );
        let stored = scene.say("report latest");
        assert!(
            stored.stdout.contains(&format!("sealed by {head}")),
            "{}",
            stored.stdout
        );
        for (statement, found) in TAMPERED {
            let copy = save(&scene, database);
            tamper(&scene, database, statement);
            let told = scene.say("check");
            let line = ledger_line(&told);
            assert_eq!(told.code, 70, "{statement}: {line}");
            assert!(
                line.starts_with("FAIL") && line.contains(found),
                "{statement}: {line}"
            );
            restore(&scene, database, copy);
            let line = ledger_line(&scene.say("check"));
            assert!(line.starts_with("ok"), "{statement}: {line}");
        }
    });
}

const LEDGER: [&str; 5] = [
    "repairs",
    "repair_events",
    "break_events",
    "chain",
    "chain_head",
];

/// A copy of the store as it is.
fn save(scene: &Scene, database: Option<&Database>) -> Vec<u8> {
    if database.is_none() {
        return std::fs::read(scene.path("paysweep.db")).expect("a store");
    }
    let copies: Vec<String> = LEDGER
        .iter()
        .map(|name| {
            format!("drop table if exists copy_{name}; create table copy_{name} as table {name};")
        })
        .collect();
    tamper(scene, database, &copies.concat());
    Vec::new()
}

fn restore(scene: &Scene, database: Option<&Database>, copy: Vec<u8>) {
    if database.is_none() {
        return std::fs::write(scene.path("paysweep.db"), copy).expect("a store");
    }
    let back: Vec<String> = LEDGER
        .iter()
        .map(|name| format!("delete from {name}; insert into {name} select * from copy_{name}; drop table copy_{name};"))
        .collect();
    tamper(scene, database, &back.concat());
}

#[test]
fn steps_that_many_take_at_once_are_all_sealed_in_one_chain() {
    const PAYMENTS: usize = 12;
    on_both(|database| {
        let (mut operations, mut intents) = (String::new(), String::new());
        for n in 0..PAYMENTS {
            operations += &format!("ch_{n},charge,succeeded,100,EUR,2026-03-09T10:00:05Z,P{n}\n");
            intents += &format!("P{n},charge,100,EUR,pending,2026-03-09T10:00:00Z,\n");
        }
        let scene = Scene::new(&operations, &intents)
            .with("[repair]\nstatus_behind = \"propose\"")
            .stored(database, "5s");
        assert_eq!(scene.now("run").code, 1);
        let started: Vec<_> = repairs(&scene)
            .iter()
            .map(|item| {
                let id = item["id"].as_str().expect("an id");
                scene
                    .command(&format!("repairs approve {id} --reason ok"))
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped())
                    .spawn()
                    .expect("it starts")
            })
            .collect();
        assert_eq!(started.len(), PAYMENTS);
        for child in started {
            let told = Told::from(child.wait_with_output().expect("it ends"));
            assert_eq!(told.code, 0, "{told:?}");
        }
        let line = ledger_line(&scene.say("check"));
        assert!(
            line.starts_with("ok") && line.contains(&format!("{} steps", 2 * PAYMENTS)),
            "{line}"
        );
    });
}

/// A store as the first version made it, with a repair in it.
#[test]
fn a_store_of_the_first_version_keeps_its_record_and_begins_the_chain() {
    let migration = |engine: &str| {
        let path = format!(
            "{}/migrations/{engine}/0001_init.sql",
            env!("CARGO_MANIFEST_DIR")
        );
        std::fs::read_to_string(path).expect("a migration")
    };
    let old_repair = "insert into repairs values ('p1', 'b1', 'shop', '', 'status_behind', 'set_status', 'intents', \
        'OLD', 'ch_0', 'pending', '', '', 'succeeded', 'ch_0', '', null, '', 1, 5, 'e', 'r0', 6); \
        insert into repair_events values ('p1', 1, 'applied', 6, '', 'r0', '');";
    on_both(|database| {
        let empty = database.map(|_| aside(|| async { Database::empty().await }));
        let database = empty.as_ref();
        let scene = shop(database, "");
        if let Some(database) = database {
            let url = database.url();
            let script = format!(
                "create schema paysweep; set search_path = paysweep; \
                 create table schema_version (only_row bigint not null primary key check (only_row = 1), \
                 version bigint not null); insert into schema_version values (1, 1); {} {old_repair}",
                migration("postgres")
            );
            aside(move || async move {
                let mut session = sqlx::PgConnection::connect(&url).await.expect("a session");
                let raw = sqlx::raw_sql(AssertSqlSafe(script));
                raw.execute(&mut session).await.expect("the old schema");
                session.close().await.expect("closed");
            });
            let early = scene.now("run");
            assert_eq!(early.code, 10, "{early:?}");
            assert_eq!(scene.say("migrate").code, 0);
        } else {
            let path = scene.path("paysweep.db");
            let script = format!(
                "{} {old_repair} pragma application_id = 1885436275; pragma user_version = 1",
                migration("sqlite")
            );
            aside(move || async move {
                let options = SqliteConnectOptions::new()
                    .filename(&path)
                    .create_if_missing(true);
                let mut file = options.connect().await.expect("a file");
                let raw = sqlx::raw_sql(AssertSqlSafe(script));
                raw.execute(&mut file).await.expect("the old schema");
                file.close().await.expect("closed");
            });
        }
        let run = scene.now("run");
        assert_eq!(run.code, 1, "{run:?}");
        let line = ledger_line(&scene.say("check"));
        assert!(
            line.starts_with("ok")
                && line.contains("2 steps")
                && line.contains("1 steps are older"),
            "{line}"
        );
        tamper(
            &scene,
            database,
            "insert into repair_events values ('p1', 2, 'rejected', 6, 'eve', '', '')",
        );
        let line = ledger_line(&scene.say("check"));
        assert!(line.starts_with("FAIL"), "{line}");
    });
}
