//! Repairs written into a company's own table: once, compare-and-set, whatever dies in between.

use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, MySqlConnection, PgConnection, Row};

use super::intents_sql::Engine;
use super::postgres::{Database, aside};
use super::scene::{NOW, Scene, Told, database, send};
use super::sweeps::{injected, stride};

/// A payment that is late, one that is refunded, and the refund.
pub(crate) const OPERATIONS: &str = "operation_id,kind,status,amount_minor,currency,occurred_at,reference,parent_id\n\
    ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A,\n\
    ch_3,charge,succeeded,3000,EUR,2026-03-09T10:00:05Z,C,\n\
    re_1,refund,succeeded,-400,EUR,2026-03-09T12:00:00Z,,ch_3\n";

const ROWS: [(&str, &str, &str, i64); 2] = [("A", "", "new", 1000), ("C", "ch_3", "paid", 3000)];

pub(crate) fn engines() -> Vec<Engine> {
    aside(|| async { Engine::all().await })
}

/// `payments` as each engine writes it.
pub(crate) fn table(engine: &Engine) -> &'static str {
    match engine {
        Engine::Postgres(_) => "app.payments",
        Engine::MariaDb(_) | Engine::Sqlite => "payments",
    }
}

fn schema(engine: &Engine) -> String {
    let columns = "stripe_id varchar(60), amount bigint not null, currency char(3) not null, parent varchar(60), \
        kind varchar(20) not null, repair varchar(60), touched int not null default 0, age bigint";
    match engine {
        Engine::Postgres(_) => format!(
            "create schema app; create type app.state as enum ('new', 'paid', 'void', 'broken'); \
             create table app.payments (id varchar(60) primary key, state app.state not null, {columns}, \
             created_at timestamptz not null default '2026-03-09T09:00:00Z')"
        ),
        Engine::MariaDb(_) => format!(
            "create table payments (id varchar(60) primary key, \
             state enum('new', 'paid', 'void', 'broken') not null, {columns}, \
             created_at datetime(6) not null default '2026-03-09 09:00:00')"
        ),
        Engine::Sqlite => format!(
            "create table payments (id text primary key, \
             state text not null check (state in ('new', 'paid', 'void', 'broken')), {columns}, \
             created_at text not null default '2026-03-09T09:00:00Z')"
        ),
    }
}

/// The statements of `[repair.apply]`.
pub(crate) fn statements(engine: &Engine, has_record: bool) -> String {
    let (table, cast) = (table(engine), engine.pick("::app.state", "", ""));
    let at = engine.pick(
        ":occurred_at::timestamptz",
        "cast(replace(replace(:occurred_at, 'T', ' '), 'Z', '') as datetime(6))",
        ":occurred_at",
    );
    let mut text = format!(
        "[repair.apply]\n\
         set_status = \"update {table} set state = :to_status{cast}, stripe_id = :processor_ref, repair = :repair_id, \
         touched = touched + 1, age = :age_seconds where id = :intent_id and state = :from_status{cast}\"\n"
    );
    if has_record {
        text += &format!(
            "record_refund = \"insert into {table} (id, kind, parent, stripe_id, amount, currency, state, created_at, \
             repair, touched) values (:intent_id, :kind, :parent_intent_id, :processor_ref, :amount_minor, :currency, \
             :to_status{cast}, {at}, :repair_id, 1)\"\n\
             recorded = \"select 1 from {table} where repair = :repair_id\"\n"
        );
    }
    text
}

pub(crate) fn shop(engine: &Engine, store: Option<&Database>, repair: &str) -> Scene {
    let scene = configured(engine, repair).stored(store, "1s");
    filled(engine, scene)
}

/// The same with its store in the company's own database.
pub(crate) fn joined_shop(engine: &Engine, repair: &str) -> Scene {
    let scene = configured(engine, repair);
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    let store = format!("[store]\nurl = \"{}\"\nlease = \"1s\"", engine.url());
    let text = text.replace("[store]\nurl = \"sqlite://paysweep.db\"", &store);
    scene.write("paysweep.toml", &text);
    let told = scene.say("migrate");
    assert_eq!(told.code, 0, "{told:?}");
    filled(engine, scene)
}

/// The configuration, and what the processor did.
fn configured(engine: &Engine, repair: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("operations.csv", OPERATIONS);
    scene.write(
        "paysweep.toml",
        &format!(
            r#"
[store]
url = "sqlite://paysweep.db"
[source.shop]
kind = "csv"
profile = "canonical"
files = ["operations.csv"]
start = "2026-03-09T00:00:00Z"
complete_through = "as-of"
lookback = "1h"
[intents]
kind = "sql"
url = "{}"
table = "{}"
time_zone = "UTC"
[intents.columns]
intent_id = "id"
kind = "kind"
amount = {{ column = "amount", unit = "minor" }}
currency = "currency"
status = {{ column = "state", map = {{ new = "pending", paid = "succeeded", void = "canceled", broken = "failed" }} }}
created_at = "created_at"
processor_ref = "stripe_id"
parent_intent_id = "parent"
{repair}
"#,
            engine.url(),
            table(engine)
        ),
    );
    scene
}

/// Makes the table, with its rows.
fn filled(engine: &Engine, scene: Scene) -> Scene {
    run(engine, &scene, &schema(engine));
    for (id, reference, state, amount) in ROWS {
        insert(engine, &scene, id, reference, state, amount);
    }
    scene
}

pub(crate) fn insert(
    engine: &Engine,
    scene: &Scene,
    id: &str,
    reference: &str,
    state: &str,
    amount: i64,
) {
    let reference = match reference {
        "" => "null".to_owned(),
        reference => format!("'{reference}'"),
    };
    let table = table(engine);
    run(
        engine,
        scene,
        &format!(
            "insert into {table} (id, kind, stripe_id, amount, currency, state) \
             values ('{id}', 'charge', {reference}, {amount}, 'EUR', '{state}')"
        ),
    );
}

/// Where the company's database is, for a thread of its own.
pub(crate) fn place(engine: &Engine, scene: &Scene) -> (String, std::path::PathBuf) {
    (engine.url(), scene.path("company.db"))
}

pub(crate) fn run(engine: &Engine, scene: &Scene, statements: &str) {
    let (url, path) = place(engine, scene);
    let text = statements.to_owned();
    aside(move || async move { execute(&url, &path, &text).await.expect(&text) });
}

/// Runs statements as the application would; how many rows changed.
pub(crate) async fn execute(
    url: &str,
    path: &std::path::Path,
    text: &str,
) -> Result<u64, sqlx::Error> {
    let raw = sqlx::raw_sql(AssertSqlSafe(text.to_owned()));
    if url.starts_with("postgres") {
        let mut session = PgConnection::connect(url).await?;
        let done = raw.execute(&mut session).await?.rows_affected();
        session.close().await?;
        Ok(done)
    } else if url.starts_with("mysql") {
        let mut session = MySqlConnection::connect(url).await?;
        let done = raw.execute(&mut session).await?.rows_affected();
        session.close().await?;
        Ok(done)
    } else {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .busy_timeout(Duration::from_secs(20));
        let mut session = options.connect().await?;
        let done = raw.execute(&mut session).await?.rows_affected();
        session.close().await?;
        Ok(done)
    }
}

/// Every row, one text each: id, state, reference, how often a repair touched it, whether one is recorded.
pub(crate) fn rows(engine: &Engine, scene: &Scene) -> Vec<String> {
    let (url, path) = place(engine, scene);
    let text = engine.pick("::text", "", "");
    let state = engine.pick("state::text", "state", "state");
    let join = |parts: [&str; 5]| match engine {
        Engine::MariaDb(_) => format!("concat_ws(' ', {})", parts.join(", ")),
        _ => parts.join(" || ' ' || "),
    };
    let columns = join([
        "case when id like 'paysweep-%' then 'recorded' else id end",
        state,
        "coalesce(stripe_id, '-')",
        &format!("touched{text}"),
        "case when repair is null then 'by nobody' else 'by a repair' end",
    ]);
    let question = format!("select {columns} from {} order by 1", table(engine));
    aside(move || async move {
        macro_rules! ask {
            ($session:expr) => {{
                let mut session = $session;
                let rows = sqlx::query(AssertSqlSafe(question))
                    .fetch_all(&mut session)
                    .await;
                let rows: Vec<String> = rows.expect("rows").iter().map(|row| row.get(0)).collect();
                session.close().await.expect("closed");
                rows
            }};
        }
        if url.starts_with("postgres") {
            ask!(PgConnection::connect(&url).await.expect("a session"))
        } else if url.starts_with("mysql") {
            ask!(MySqlConnection::connect(&url).await.expect("a session"))
        } else {
            let options = SqliteConnectOptions::new().filename(&path);
            ask!(options.connect().await.expect("a file"))
        }
    })
}

pub(crate) const BEFORE: [&str; 2] = ["A new - 0 by nobody", "C paid ch_3 0 by nobody"];
pub(crate) const AFTER: [&str; 3] = [
    "A paid ch_1 1 by a repair",
    "C paid ch_3 0 by nobody",
    "recorded paid re_1 1 by a repair",
];

pub(crate) fn states(scene: &Scene) -> Vec<String> {
    let told = scene.say("repairs list -f json").json();
    let mut states: Vec<String> = told["repairs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["state"].as_str().expect("a state").to_owned())
        .collect();
    states.sort();
    states
}

pub(crate) fn id_of(scene: &Scene, intent: &str) -> String {
    let told = scene.say("repairs list -f json").json();
    let list = told["repairs"].as_array().expect("a list").clone();
    let found = list.into_iter().find(|item| item["intent_id"] == intent);
    found.expect("a repair")["id"]
        .as_str()
        .expect("an id")
        .to_owned()
}

#[test]
fn a_run_writes_into_the_table_of_every_engine_and_the_next_one_sees_it() {
    for engine in engines() {
        let on_database = database();
        for store in [None, Some(&on_database)] {
            if store.is_some() && !matches!(engine, Engine::Postgres(_)) {
                continue;
            }
            if store.is_some() {
                run(&engine, &Scene::empty(), "drop schema app cascade");
            }
            let scene = shop(&engine, store, &statements(&engine, true));
            let label = engine.name();
            let dry = scene.now("run --dry-run -f json");
            assert_eq!(dry.code, 1, "{label}: {dry:?}");
            assert_eq!(rows(&engine, &scene), BEFORE, "{label}");
            let told = scene.now("run -f json");
            assert_eq!(told.code, 1, "{label}: {told:?}");
            let report = told.json();
            assert_eq!(report["outcome"]["name"], "repaired", "{label}: {report}");
            assert_eq!(dry.json()["outcome"], report["outcome"], "{label}");
            assert_eq!(rows(&engine, &scene), AFTER, "{label}");
            assert_eq!(states(&scene), ["applied", "applied"], "{label}");
            let show = scene.say(&format!("repairs show {}", id_of(&scene, "A")));
            for part in [
                "approved by paysweep",
                "claimed by paysweep: claim 1",
                "applied by paysweep",
            ] {
                assert!(show.stdout.contains(part), "{label}: {}", show.stdout);
            }
            let check = scene.say("check").stdout;
            for part in ["apply set_status", "apply record_refund", "apply recorded"] {
                let line = check.lines().find(|line| line.contains(part));
                let line = line.unwrap_or_else(|| panic!("{label}: {part}: {check}"));
                assert!(line.starts_with("ok"), "{label}: {line}");
            }
            let next = scene.now("run -f json");
            assert_eq!(next.code, 0, "{label}: {next:?}");
            assert_eq!(states(&scene), ["confirmed", "confirmed"], "{label}");
            assert_eq!(rows(&engine, &scene), AFTER, "{label}");
        }
    }
}

#[test]
fn a_row_that_the_application_changed_is_not_overwritten() {
    for engine in engines() {
        let repair = format!(
            "[repair]\nstatus_behind = \"propose\"\nmissing_local = \"off\"\n{}",
            statements(&engine, true)
        );
        let scene = shop(&engine, None, &repair);
        let label = engine.name();
        assert_eq!(scene.now("run").code, 1, "{label}");
        let id = id_of(&scene, "A");
        assert_eq!(
            scene.say(&format!("repairs approve {id} --reason ok")).code,
            0
        );
        let table = table(&engine);
        // What would be run can be read before, and copies back into a database as it stands.
        let sql = scene.say("repairs export --as sql").stdout;
        assert!(
            sql.contains("state = 'paid'") && sql.contains("where id = 'A' and state = 'new'"),
            "{label}: {sql}"
        );
        run(&engine, &scene, &sql);
        assert_eq!(rows(&engine, &scene)[0], AFTER[0], "{label}");
        run(
            &engine,
            &scene,
            &format!(
                "update {table} set state = 'new', stripe_id = null, repair = null, touched = 0 where id = 'A'"
            ),
        );
        let csv = scene.say("repairs export --as csv").stdout;
        assert_eq!(csv.lines().count(), 2, "{label}: {csv}");
        assert!(
            csv.contains(&format!("{id},approved,set_status,shop,status_behind")),
            "{label}: {csv}"
        );
        run(
            &engine,
            &scene,
            &format!("update {table} set state = 'void' where id = 'A'"),
        );
        let told = scene.say("repairs apply");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        assert!(
            told.stdout.contains("the row is canceled, and was pending"),
            "{label}: {}",
            told.stdout
        );
        assert_eq!(rows(&engine, &scene)[0], "A void - 0 by nobody", "{label}");
        assert_eq!(states(&scene), ["failed"], "{label}");
        let breaks = scene.say("breaks list -f json").json();
        let classes: Vec<&str> = breaks["breaks"]
            .as_array()
            .expect("a list")
            .iter()
            .filter_map(|item| item["class"].as_str())
            .collect();
        assert!(classes.contains(&"repair_conflict"), "{label}: {classes:?}");
        // Somebody else who brought the row where it should be is not taken for the repair.
        run(
            &engine,
            &scene,
            &format!("update {table} set state = 'new' where id = 'A'"),
        );
        let again = shop_again(&engine, &repair);
        run(
            &engine,
            &again,
            &format!("update {table} set state = 'paid', stripe_id = 'ch_1' where id = 'A'"),
        );
        let told = again.say("repairs apply");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        assert!(
            told.stdout
                .contains("nothing shows that this repair made it so"),
            "{label}: {}",
            told.stdout
        );
        assert_eq!(
            rows(&engine, &again)[0],
            "A paid ch_1 0 by nobody",
            "{label}"
        );
    }
}

/// A store of its own beside the same table, with the repair of `A` approved.
fn shop_again(engine: &Engine, repair: &str) -> Scene {
    if !matches!(engine, Engine::Sqlite) {
        let table = table(engine);
        run(engine, &Scene::empty(), &format!("drop table {table}"));
        if matches!(engine, Engine::Postgres(_)) {
            run(engine, &Scene::empty(), "drop schema app cascade");
        }
    }
    let scene = shop(engine, None, repair);
    assert_eq!(scene.now("run").code, 1);
    let id = id_of(&scene, "A");
    assert_eq!(
        scene.say(&format!("repairs approve {id} --reason ok")).code,
        0
    );
    scene
}

#[test]
fn a_statement_that_changes_another_number_of_rows_or_is_refused_is_rolled_back() {
    for engine in engines() {
        let (table, cast) = (table(&engine), engine.pick("::app.state", "", ""));
        for (set_status, part) in [
            (
                format!(
                    "update {table} set state = :to_status{cast}, touched = touched + 1 where id = :intent_id or state <> :from_status{cast}"
                ),
                "changed 2 rows instead of 1",
            ),
            (
                format!(
                    "update {table} set touched = touched + 1 where id = :intent_id and state = :from_status{cast} and stripe_id = 'x'"
                ),
                "changed no row",
            ),
            (
                format!(
                    "update {table} set touched = touched + 1, id = 'C' where id = :intent_id and state = :from_status{cast}"
                ),
                "the database refused it",
            ),
        ] {
            if !matches!(engine, Engine::Sqlite) {
                let _ = part;
                let clean = engine.pick(
                    "drop schema if exists app cascade",
                    "drop table if exists payments",
                    "",
                );
                run(&engine, &Scene::empty(), clean);
            }
            let repair = format!(
                "[repair]\nmissing_local = \"off\"\n[repair.apply]\nset_status = \"{set_status}\""
            );
            let scene = shop(&engine, None, &repair);
            let told = scene.now("run -f json");
            let label = format!("{} {part}", engine.name());
            assert_eq!(told.code, 1, "{label}: {told:?}");
            let report = told.json();
            assert_eq!(report["outcome"]["name"], "review", "{label}");
            assert!(told.stdout.contains(part), "{label}: {}", told.stdout);
            assert_eq!(rows(&engine, &scene), BEFORE, "{label}");
            assert_eq!(states(&scene), ["failed"], "{label}");
            let check = scene.say("check");
            assert!(
                check.stdout.contains("the chain holds"),
                "{label}: {}",
                check.stdout
            );
            // It is not tried again by itself; once the statement is right, a person says so.
            let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
            let (before, _) = config.split_once("[repair.apply]").expect("a section");
            scene.write(
                "paysweep.toml",
                &format!("{before}{}", statements(&engine, true)),
            );
            let told = scene.now("run -f json");
            assert_eq!(told.code, 1, "{label}: {told:?}");
            assert_eq!(rows(&engine, &scene), BEFORE, "{label}");
            let id = id_of(&scene, "A");
            let told = scene.say(&format!("repairs approve {id} --reason fixed"));
            assert_eq!(told.code, 0, "{label}: {told:?}");
            let told = scene.say("repairs apply");
            assert_eq!(told.code, 0, "{label}: {told:?}");
            assert_eq!(rows(&engine, &scene)[0], AFTER[0], "{label}");
        }
    }
}

#[test]
fn what_concerns_every_repair_is_told_before_anything_is_committed_and_the_next_run_does_it_all() {
    for engine in engines() {
        let scene = shop(
            &engine,
            None,
            &statements(&engine, true).replace("touched = touched + 1", "nowhere = 1"),
        );
        let told = scene.now("run -f json");
        let label = engine.name();
        assert_eq!(told.code, 2, "{label}: {told:?}");
        assert!(told.stderr.contains("nowhere"), "{label}: {}", told.stderr);
        assert!(
            told.stderr.contains("nothing was written"),
            "{label}: {}",
            told.stderr
        );
        let dry = scene.now("run --dry-run -f json");
        assert_eq!(dry.code, 2, "{label}: {dry:?}");
        assert_eq!(rows(&engine, &scene), BEFORE, "{label}");
        assert_eq!(states(&scene), Vec::<String>::new(), "{label}");
        let mark = scene.say("watermark show -f json").json();
        assert!(
            mark["watermarks"][0]["watermark"].is_null(),
            "{label}: {mark}"
        );
        let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
        scene.write(
            "paysweep.toml",
            &config.replace("nowhere = 1", "touched = touched + 1"),
        );
        let told = scene.now("run -f json");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        assert_eq!(rows(&engine, &scene), AFTER, "{label}");
    }
}

/// Runs until nothing is on its way any more.
pub(crate) fn heal(scene: &Scene, label: &str) -> Told {
    let started = Instant::now();
    loop {
        let told = scene.now("run -f json");
        let is_settled = told.code != 11
            && states(scene)
                .iter()
                .all(|state| ["applied", "confirmed"].contains(&state.as_str()));
        if is_settled {
            return told;
        }
        assert!(
            started.elapsed() < Duration::from_secs(20),
            "{label}: {:?} {} {}",
            states(scene),
            told.code,
            told.stderr
        );
        std::thread::sleep(Duration::from_millis(200));
    }
}

/// Kills a run at each call that writes a file or sends something, and lets the next ones go on.
fn sweep(engine: &Engine, calls: &str, short: usize) -> usize {
    let mut at = 1;
    loop {
        let clean = engine.pick(
            "drop schema if exists app cascade",
            "drop table if exists payments",
            "",
        );
        if !clean.is_empty() {
            run(engine, &Scene::empty(), clean);
        }
        let scene = shop(engine, None, &statements(engine, true));
        let told = injected(
            &scene,
            &format!("run --as-of {NOW} -f json"),
            calls,
            "signal=SIGKILL",
            at,
        );
        let label = format!("{} call {at}: {} {}", engine.name(), told.code, told.stderr);
        let between = rows(engine, &scene);
        for row in &between {
            assert!(
                BEFORE.contains(&row.as_str()) || AFTER.contains(&row.as_str()),
                "{label}: {row}"
            );
        }
        heal(&scene, &label);
        assert_eq!(rows(engine, &scene), AFTER, "{label}");
        let check = scene.say("check");
        assert!(
            check.stdout.contains("the chain holds"),
            "{label}: {}",
            check.stdout
        );
        if told.code != 137 {
            assert_eq!(told.code, 1, "{label}");
            return at;
        }
        at += stride(short);
    }
}

#[test]
fn a_run_killed_at_any_write_has_written_each_repair_once_in_the_end() {
    for engine in engines() {
        let calls = engine.pick("sendto,write", "sendto,write", "pwrite64,fdatasync,unlink");
        let count = sweep(&engine, calls, 13);
        assert!(count > 30, "{count} calls");
        println!("{}: {count} calls", engine.name());
    }
}

/// What the application does while repairs are written: it waits for the first of them, then voids every third payment
/// from the other end, as long as it is new. Which ones it voided.
async fn void_some(url: &str, path: &std::path::Path, table: &str, payments: usize) -> Vec<usize> {
    let first = format!("update {table} set touched = touched where repair is not null");
    for _ in 0..2_000 {
        if execute(url, path, &first).await.is_ok_and(|rows| rows > 0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut voided = Vec::new();
    for n in (0..payments).step_by(3).rev() {
        let text =
            format!("update {table} set state = 'void' where id = 'P{n:03}' and state = 'new'");
        // Where it met a repair it tries again, as applications do.
        for _ in 0..50 {
            match execute(url, path, &text).await {
                Ok(changed) => {
                    if changed == 1 {
                        voided.push(n);
                    }
                    break;
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(3)).await,
            }
        }
    }
    voided
}

#[test]
fn application_and_repairs_write_at_once_and_neither_loses() {
    const PAYMENTS: usize = 150;
    let mut met = 0;
    for engine in engines() {
        let repair = format!(
            "[repair]\nmissing_local = \"off\"\n{}",
            statements(&engine, true)
        );
        let scene = shop(&engine, None, &repair);
        let label = engine.name();
        let mut operations = OPERATIONS.lines().next().expect("a header").to_owned() + "\n";
        let table = table(&engine);
        let mut values = Vec::new();
        for n in 0..PAYMENTS {
            operations +=
                &format!("px_{n},charge,succeeded,100,EUR,2026-03-09T10:00:05Z,P{n:03},\n");
            values.push(format!("('P{n:03}', 'charge', 100, 'EUR', 'new')"));
        }
        run(&engine, &scene, &format!("delete from {table}"));
        run(
            &engine,
            &scene,
            &format!(
                "insert into {table} (id, kind, amount, currency, state) values {}",
                values.join(", ")
            ),
        );
        scene.write("operations.csv", &operations);
        let child: Child = scene
            .command(&format!("run --as-of {NOW} -f json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let (url, path) = place(&engine, &scene);
        let voided = aside(move || async move { void_some(&url, &path, table, PAYMENTS).await });
        let told = Told::from(child.wait_with_output().expect("it ends"));
        assert_eq!(told.code, 1, "{label}: {told:?}");
        let rows = rows(&engine, &scene);
        assert_eq!(rows.len(), PAYMENTS, "{label}");
        for n in 0..PAYMENTS {
            let wanted = if voided.contains(&n) {
                format!("P{n:03} void - 0 by nobody")
            } else {
                format!("P{n:03} paid px_{n} 1 by a repair")
            };
            assert!(rows.contains(&wanted), "{label}: {wanted}");
        }
        let states = states(&scene);
        let count = |state: &str| states.iter().filter(|it| *it == state).count();
        assert_eq!(count("applied"), PAYMENTS - voided.len(), "{label}");
        // What the run had planned for a row that was voided meanwhile is told, one by one.
        assert_eq!(count("failed"), voided.len(), "{label}");
        let report = told.json();
        let conflicts = report["summary"]["by_class"]["repair_conflict"].as_u64();
        assert_eq!(conflicts.unwrap_or(0), voided.len() as u64, "{label}");
        met += voided.len();
        println!(
            "{label}: {} voided while {} were repaired",
            voided.len(),
            count("applied")
        );
    }
    assert!(met > 5, "{met} met: the race was none");
}

/// The connection to the company's database is cut at any answer, the one to the last commit included.
#[test]
fn an_answer_that_is_lost_is_found_out_and_nothing_is_written_twice() {
    // What comes before is the reading, and has a sweep of its own.
    const FIRST: usize = 60;
    // How often a thread asks in vain differs from run to run, so the end is where several in a row were left alone.
    const LEFT_ALONE: usize = 3;
    for engine in engines() {
        if matches!(engine, Engine::Sqlite) {
            // A file has no answers that could be lost.
            continue;
        }
        let (mut at, mut resolved, mut alone) = (FIRST, 0, 0);
        loop {
            let clean = engine.pick(
                "drop schema if exists app cascade",
                "drop table if exists payments",
                "",
            );
            run(&engine, &Scene::empty(), clean);
            let scene = shop(&engine, None, &statements(&engine, true));
            let line = format!("run --as-of {NOW} -f json");
            let told = injected(&scene, &line, "recvfrom", "error=ECONNRESET", at);
            let log = std::fs::read_to_string(scene.path("strace.log")).expect("a log");
            let label = format!(
                "{} receive {at}: {} {}",
                engine.name(),
                told.code,
                told.stderr
            );
            assert!([1, 75].contains(&told.code), "{label}");
            let is_cut = log.contains("(INJECTED)");
            resolved += usize::from(is_cut && told.code == 1);
            alone = if is_cut { 0 } else { alone + 1 };
            for row in rows(&engine, &scene) {
                let is_known = BEFORE.contains(&row.as_str()) || AFTER.contains(&row.as_str());
                assert!(is_known, "{label}: {row}");
            }
            heal(&scene, &label);
            assert_eq!(rows(&engine, &scene), AFTER, "{label}");
            if alone == LEFT_ALONE {
                break;
            }
            at += stride(5);
        }
        assert!(resolved > 0, "{at} receives, none resolved");
        println!("{}: {at} receives, {resolved} resolved", engine.name());
    }
}

/// A run is stopped while its statement waits for a lock, sleeps through its lease, and wakes up when another one is at the
/// same repair.
#[test]
fn a_run_that_slept_through_its_claim_writes_nothing_beside_its_thief() {
    let engine = engines().remove(0);
    let scene = shop(
        &engine,
        None,
        &format!(
            "[repair]\nmissing_local = \"off\"\n{}",
            statements(&engine, true)
        ),
    );
    let start = || {
        scene
            .command(&format!("run --as-of {NOW} -f json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts")
    };
    let url = engine.url();
    let (held, wait_for_it) = std::sync::mpsc::channel::<()>();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holder = {
        let url = url.clone();
        std::thread::spawn(move || {
            aside(move || async move {
                let mut session = PgConnection::connect(&url).await.expect("a session");
                let lock = "begin; select * from app.payments where id = 'A' for update";
                sqlx::raw_sql(lock)
                    .execute(&mut session)
                    .await
                    .expect("a lock");
                held.send(()).expect("somebody waits");
                released.recv().expect("a word");
                sqlx::raw_sql("rollback")
                    .execute(&mut session)
                    .await
                    .expect("released");
            });
        })
    };
    wait_for_it.recv().expect("a lock");
    let sleeper = start();
    // Its update waits for the lock.
    let waiting = url.clone();
    aside(move || async move {
        let mut session = PgConnection::connect(&waiting).await.expect("a session");
        let question = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query like 'update app.payments%'";
        for _ in 0..400 {
            let count: i64 = sqlx::query_scalar(question)
                .fetch_one(&mut session)
                .await
                .expect("a number");
            if count > 0 {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the update never came");
    });
    send("STOP", &sleeper);
    std::thread::sleep(Duration::from_millis(1_300));
    release.send(()).expect("the holder waits");
    holder.join().expect("no panic");
    let thief = start();
    std::thread::sleep(Duration::from_millis(800));
    send("CONT", &sleeper);
    let woken = Told::from(sleeper.wait_with_output().expect("it ends"));
    let thief = Told::from(thief.wait_with_output().expect("it ends"));
    let label = format!(
        "sleeper {} {}, thief {} {}",
        woken.code, woken.stderr, thief.code, thief.stderr
    );
    heal(&scene, &label);
    let rows = rows(&engine, &scene);
    assert_eq!(rows[0], AFTER[0], "{label}");
    let check = scene.say("check");
    assert!(
        check.stdout.contains("the chain holds"),
        "{label}: {}",
        check.stdout
    );
}
