//! The company's own table, read in place: the same rows give the same verdicts as a file of them, on every engine.

use std::path::Path;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::mariadb;
use super::postgres;
use super::scene::{Scene, Told};

/// A database of one engine, with what the tests need to say differently on each.
pub(crate) enum Engine {
    Postgres(postgres::Database),
    MariaDb(mariadb::Database),
    Sqlite,
}

impl Engine {
    pub(crate) async fn all() -> Vec<Engine> {
        vec![
            Engine::Postgres(postgres::Database::empty().await),
            Engine::MariaDb(mariadb::Database::empty().await),
            Engine::Sqlite,
        ]
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Engine::Postgres(_) => "PostgreSQL",
            Engine::MariaDb(_) => "MariaDB",
            Engine::Sqlite => "SQLite",
        }
    }

    pub(crate) fn url(&self) -> String {
        match self {
            Engine::Postgres(database) => database.url(),
            Engine::MariaDb(database) => database.url(),
            Engine::Sqlite => "sqlite://company.db".to_owned(),
        }
    }

    /// Runs statements; a file lies in the folder of the scene.
    pub(crate) async fn run(&self, folder: &Path, statements: &str) {
        match self {
            Engine::Postgres(database) => database.run(statements).await,
            Engine::MariaDb(database) => database.run(statements).await,
            Engine::Sqlite => {
                let mut connection = SqliteConnectOptions::new()
                    .filename(folder.join("company.db"))
                    .create_if_missing(true)
                    .connect()
                    .await
                    .expect("a file");
                sqlx::raw_sql(AssertSqlSafe(statements.to_owned()))
                    .execute(&mut connection)
                    .await
                    .expect(statements);
                connection.close().await.expect("closed");
            }
        }
    }

    /// One of three, in the order of [`Engine::all`].
    pub(crate) fn pick<'a>(&self, postgres: &'a str, mariadb: &'a str, sqlite: &'a str) -> &'a str {
        match self {
            Engine::Postgres(_) => postgres,
            Engine::MariaDb(_) => mariadb,
            Engine::Sqlite => sqlite,
        }
    }
}

/// Everything of a report that the origin of our rows must not change.
fn verdicts(told: &Told) -> Value {
    let mut report = told.json();
    let object = report.as_object_mut().expect("a report");
    for apart in ["run", "checks"] {
        object.remove(apart);
    }
    // The run that saw a break first bears an id of its own.
    for list in ["breaks", "repairs"] {
        for item in report[list].as_array_mut().expect(list) {
            if let Some(item) = item.as_object_mut() {
                item.remove("first_seen_run");
                item.remove("run_id");
            }
        }
    }
    report
}

fn text(cell: &str) -> String {
    if cell.is_empty() {
        "null".to_owned()
    } else {
        format!("'{}'", cell.replace('\'', "''"))
    }
}

/// Simple CSV without quotes, as the samples are.
fn rows(csv: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let cells = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
    let mut lines = csv.lines().filter(|line| !line.trim().is_empty());
    let head = cells(lines.next().expect("a header"));
    (head, lines.map(cells).collect())
}

const SAMPLE_AS_OF: &str = "2026-03-10T06:00:00Z";

fn sample(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("sample-data/canonical/night")
        .join(name);
    std::fs::read_to_string(&path).expect(name)
}

/// A scene with the operations of the sample and its settings, whose `[intents]` are others.
fn sample_scene(intents: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("operations.csv", &sample("operations.csv"));
    scene.write("intents.csv", &sample("intents.csv"));
    let config = sample("paysweep.toml");
    let (before, _) = config.split_once("[intents]").expect("a section");
    scene.write("paysweep.toml", &format!("{before}{intents}"));
    scene
}

#[tokio::test]
async fn the_sample_gives_the_same_verdicts_from_a_file_and_from_every_database() {
    let (head, rows) = rows(&sample("intents.csv"));
    let from_file = sample_scene(
        "[intents]\nkind = \"csv\"\nfile = \"intents.csv\"\ngrace = \"60m\"\namount_unit = \"minor\"",
    );
    let line = format!("run -f json --as-of {SAMPLE_AS_OF} --include matches,pending,ignored");
    let expected = verdicts(&from_file.say(&line));
    assert!(expected["breaks"].as_array().expect("breaks").len() > 20);
    let again = verdicts(&from_file.say(&line));
    for engine in Engine::all().await {
        let scene = sample_scene(&format!(
            "[intents]\nkind = \"sql\"\nurl = \"{}\"\ntable = \"payments\"\ngrace = \"60m\"\n{}\n[intents.columns]\n{}",
            engine.url(),
            engine.pick("", "time_zone = \"UTC\"", ""),
            head.iter()
                .map(|name| format!("{} = \"{name}\"\n", name.replace("amount_minor", "amount")))
                .collect::<String>()
        ));
        let columns: Vec<String> = head
            .iter()
            .map(|name| {
                let kind = match name.as_str() {
                    "amount_minor" | "attempt" => "bigint",
                    "created_at" | "first_attempt_at" => {
                        engine.pick("timestamptz", "datetime(6)", "text")
                    }
                    _ => engine.pick("text", "varchar(100)", "text"),
                };
                format!("{name} {kind}")
            })
            .collect();
        let mut script = format!("create table payments ({});", columns.join(", "));
        for row in &rows {
            let cells: Vec<String> = head
                .iter()
                .zip(row)
                .map(|(name, cell)| match &engine {
                    Engine::MariaDb(_) if name.ends_with("_at") => text(cell.trim_end_matches('Z')),
                    _ => text(cell),
                })
                .collect();
            script.push_str(&format!(
                "insert into payments values ({});",
                cells.join(",")
            ));
        }
        engine.run(scene.folder(), &script).await;
        let told = scene.say(&line);
        assert!(told.code == 1, "{}: {told:?}", engine.name());
        assert_eq!(verdicts(&told), expected, "{}", engine.name());
        assert_eq!(
            verdicts(&scene.say(&line)),
            again,
            "{}: again",
            engine.name()
        );
    }
}

// ---------------------------------------------------------------- a table as a company has it

const OPERATIONS: &str = "\
ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A
ch_2,charge,succeeded,2000,EUR,2026-03-09T10:00:05Z,B
ch_3,charge,succeeded,3000,EUR,2026-03-09T10:00:05Z,OLD
";

/// A scene that reads the table `"Pay ments"."select"` (the schema in `PostgreSQL` alone) whose columns are named awkwardly.
fn awkward_scene(engine: &Engine, more: &str) -> Scene {
    let scene = Scene::empty();
    scene.operations(OPERATIONS);
    let table = engine.pick(
        r#"["Pay ments", "sel.ect"]"#,
        r#"["sel.ect"]"#,
        r#"["sel.ect"]"#,
    );
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
table = {table}
time_zone = "UTC"
{more}
[intents.columns]
intent_id = "the \"id\""
kind = {{ value = "charge" }}
amount = {{ column = "Amount `x`", unit = "major" }}
currency = "order"
status = {{ column = "where", map = {{ "zu Ende" = "succeeded", offen = "pending" }} }}
created_at = "from"
processor_ref = "ref'erence"
"#,
            engine.url()
        ),
    );
    scene
}

/// The names, quoted as the engine wants them: table, id, amount, currency, status, created, reference, changed.
fn awkward_names(engine: &Engine) -> [String; 8] {
    let table = engine.pick("\"Pay ments\".\"sel.ect\"", "`sel.ect`", "\"sel.ect\"");
    let quote = |name: &str| match engine {
        Engine::MariaDb(_) => format!("`{}`", name.replace('`', "``")),
        _ => format!("\"{}\"", name.replace('"', "\"\"")),
    };
    [
        table.to_owned(),
        quote("the \"id\""),
        quote("Amount `x`"),
        quote("order"),
        quote("where"),
        quote("from"),
        quote("ref'erence"),
        quote("Changed"),
    ]
}

async fn awkward_table(engine: &Engine, folder: &Path) {
    let [
        table,
        id,
        amount,
        currency,
        status,
        created,
        reference,
        changed,
    ] = awkward_names(engine);
    let create = match engine {
        Engine::Postgres(_) => format!(
            "create schema \"Pay ments\"; create type \"Pay ments\".\"St ate\" as enum ('zu Ende', 'offen', 'weird'); \
             create domain \"Pay ments\".\"Money\" as numeric; \
             create table {table} ({id} text, {amount} \"Pay ments\".\"Money\", {currency} varchar(10), \
             {status} \"Pay ments\".\"St ate\", {created} timestamp, {reference} text, {changed} timestamp);"
        ),
        Engine::MariaDb(_) => format!(
            "create table {table} ({id} varchar(50) character set latin1, {amount} decimal(20,4), {currency} char(10), \
             {status} enum('zu Ende', 'offen', 'weird'), {created} datetime null, {reference} varchar(50), \
             {changed} datetime null);"
        ),
        Engine::Sqlite => format!(
            "create table {table} ({id} text, {amount} decimal(20,4), {currency} text, {status} text, \
             {created} text, {reference} text, {changed} text);"
        ),
    };
    engine.run(folder, &create).await;
}

async fn insert(engine: &Engine, folder: &Path, rows: &[&str]) {
    let [table, ..] = awkward_names(engine);
    for row in rows {
        engine
            .run(folder, &format!("insert into {table} values ({row})"))
            .await;
    }
}

fn breaks(report: &Value) -> Vec<(String, String, String)> {
    let word = |item: &Value, name: &str| item[name].as_str().unwrap_or_default().to_owned();
    let mut found: Vec<_> = report["breaks"]
        .as_array()
        .expect("breaks")
        .iter()
        .map(|item| {
            (
                word(item, "class"),
                word(item, "intent_id"),
                word(item, "why"),
            )
        })
        .collect();
    found.sort();
    found
}

#[tokio::test]
async fn awkward_names_enums_domains_and_old_rows_are_read() {
    for engine in Engine::all().await {
        let scene = awkward_scene(&engine, "changed_column = \"Changed\"");
        awkward_table(&engine, scene.folder()).await;
        insert(
            &engine,
            scene.folder(),
            &[
                "'A', 10.00, 'EUR', 'zu Ende', '2026-03-09 10:00:00', 'ch_1', null",
                "'B', 20, 'EUR', 'offen', '2026-03-09 10:00:00', null, null",
                // Far before the window: found by its id alone.
                "'OLD', 30.0000, 'EUR', 'zu Ende', '2025-01-05 10:00:00', null, null",
                // Far before the window, and of no concern.
                "'OLDER', 30, 'EUR', 'weird', '2025-01-05 10:00:00', null, null",
            ],
        )
        .await;
        let first = scene.now("run -f json --include matches");
        let report = first.json();
        assert_eq!(
            breaks(&report)
                .iter()
                .map(|(class, intent, _)| (class.as_str(), intent.as_str()))
                .collect::<Vec<_>>(),
            [("status_behind", "B")],
            "{}: {report:#}",
            engine.name()
        );
        assert_eq!(report["summary"]["matched"], 3, "{}", engine.name());
        // The repair holds, although the table does not show it; then the company corrects its own row.
        assert_eq!(scene.now("run").code, 0, "{}", engine.name());
        let [table, id, _, _, status, _, _, changed] = awkward_names(&engine);
        engine
            .run(
                scene.folder(),
                &format!(
                    "update {table} set {status} = 'zu Ende' where {id} = 'B'; \
                     update {table} set {status} = 'weird', {changed} = '2026-03-10 05:00:00' where {id} = 'OLD'"
                ),
            )
            .await;
        let report = scene.now("run -f json").json();
        let found = breaks(&report);
        // The old row is read again because it changed.
        assert_eq!(found.len(), 1, "{}: {found:?}", engine.name());
        assert_eq!(
            (found[0].0.as_str(), found[0].1.as_str()),
            ("invalid_record", "OLD")
        );
        let repairs = scene.now("repairs list -f json").json();
        assert_eq!(
            repairs["repairs"][0]["state"],
            "confirmed",
            "{}",
            engine.name()
        );
    }
}

#[tokio::test]
async fn a_row_that_cannot_be_used_is_a_finding_on_every_engine() {
    for engine in Engine::all().await {
        let scene = awkward_scene(&engine, "");
        awkward_table(&engine, scene.folder()).await;
        let nan = engine.pick(
            "'NAN', 'NaN', 'EUR', 'offen', '2026-03-09 10:00:00', null, null",
            "'NAN', null, 'EUR', 'offen', '2026-03-09 10:00:00', null, null",
            "'NAN', 'NaN', 'EUR', 'offen', '2026-03-09 10:00:00', null, null",
        );
        let early = engine.pick(
            "'EARLY', 1, 'EUR', 'zu Ende', '-infinity', null, null",
            "'EARLY', 1, 'EUR', 'zu Ende', '1000-01-01 00:00:00', null, null",
            "'EARLY', 1, 'EUR', 'zu Ende', 12, null, null",
        );
        insert(
            &engine,
            scene.folder(),
            &[
                "'A', 10.00, 'EUR', 'zu Ende', '2026-03-09 10:00:00', 'ch_1', null",
                "'B', 20, 'EUR', 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'OLD', 30, 'EUR', 'zu Ende', '2025-01-05 10:00:00', null, null",
                nan,
                early,
                "null, 1, 'EUR', 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'FINE', 1.005, 'EUR', 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'MINUS', -1, 'EUR', 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'NOCUR', 1, null, 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'NOSTATE', 1, 'EUR', null, '2026-03-09 10:00:00', null, null",
                "'NOTIME', 1, 'EUR', 'zu Ende', null, null, null",
                "'TWICE', 1, 'EUR', 'zu Ende', '2026-03-09 10:00:00', null, null",
                "'TWICE', 2, 'EUR', 'offen', '2025-03-09 10:00:00', null, null",
                "'WEIRD', 1, 'EUR', 'weird', '2026-03-09 10:00:00', null, null",
            ],
        )
        .await;
        for again in [false, true] {
            let told = scene.now("run -f json");
            assert_eq!(told.code, 1, "{}: {told:?}", engine.name());
            let found = breaks(&told.json());
            let subjects: Vec<&str> = found.iter().map(|(_, id, _)| id.as_str()).collect();
            assert!(
                subjects[0].starts_with("(no id) "),
                "{}: {subjects:?}",
                engine.name()
            );
            assert_eq!(
                subjects[1..],
                [
                    "EARLY", "FINE", "MINUS", "NAN", "NOCUR", "NOSTATE", "NOTIME", "TWICE", "WEIRD"
                ],
                "{}: again {again}",
                engine.name()
            );
            for (class, id, why) in &found {
                assert_eq!(class, "invalid_record", "{}: {id}: {why}", engine.name());
            }
            let why = |id: &str| {
                let (.., why) = found.iter().find(|(_, other, _)| other == id).expect(id);
                why.clone()
            };
            assert!(why("WEIRD").contains("\"weird\", which is not one of created, pending"));
            assert!(why("TWICE").contains("2 rows that differ have this id"));
            assert!(why("NOTIME").contains("does not say when it was created"));
        }
    }
}

// ---------------------------------------------------------------- never written

#[tokio::test]
async fn a_file_keeps_its_bytes_and_its_folder_in_either_journal_mode() {
    for mode in ["delete", "wal"] {
        let engine = Engine::Sqlite;
        let scene = awkward_scene(&engine, "");
        awkward_table(&engine, scene.folder()).await;
        insert(
            &engine,
            scene.folder(),
            &["'B', 20, 'EUR', 'offen', '2026-03-09 10:00:00', null, null"],
        )
        .await;
        engine
            .run(scene.folder(), &format!("pragma journal_mode = {mode}"))
            .await;
        assert_eq!(scene.now("run").code, 1);
        let (bytes, names) = (
            std::fs::read(scene.path("company.db")).expect("the file"),
            scene.names(),
        );
        for line in ["check", "run --dry-run", "run", "diff"] {
            scene.now(line);
            assert_eq!(scene.names(), names, "{mode}: {line}");
        }
        assert!(names.contains(&"company.db".to_owned()));
        assert!(
            bytes == std::fs::read(scene.path("company.db")).expect("the file"),
            "{mode}"
        );
    }
}

#[tokio::test]
async fn a_server_sees_nothing_but_transactions_that_read() {
    let engine = Engine::Postgres(postgres::Database::empty().await);
    let Engine::Postgres(database) = &engine else {
        unreachable!("made so");
    };
    let scene = awkward_scene(&engine, "");
    awkward_table(&engine, scene.folder()).await;
    insert(
        &engine,
        scene.folder(),
        &["'B', 20, 'EUR', 'offen', '2026-03-09 10:00:00', null, null"],
    )
    .await;
    // A database that refuses every transaction that could write, and counts what was written before.
    database
        .run(&format!(
            "alter database {} set default_transaction_read_only = on",
            database.quoted()
        ))
        .await;
    let mut connection = database.connection().await;
    let mut written = async || -> (i64, i64, i64) {
        sqlx::query_as(
            "select n_tup_ins, n_tup_upd, n_tup_del from pg_stat_user_tables where relname = 'sel.ect'",
        )
        .fetch_one(&mut connection)
        .await
        .expect("counters")
    };
    let before = written().await;
    for line in ["check", "run --dry-run", "run", "diff"] {
        let told = scene.now(line);
        assert!(!told.stderr.contains("read-only transaction"), "{told:?}");
    }
    assert_eq!(written().await, before);
    // A table that nobody can write beside its readers gives the same: the reader takes no more than a shared lock.
    let mut holder = database.connection().await;
    sqlx::raw_sql(AssertSqlSafe(
        "begin read write; lock table \"Pay ments\".\"sel.ect\" in exclusive mode".to_owned(),
    ))
    .execute(&mut holder)
    .await
    .expect("a lock");
    let told = scene.now("run --dry-run");
    assert_eq!((told.code, told.stderr.as_str()), (1, ""));
}

/// The server's own record of what it was asked.
#[tokio::test]
async fn every_statement_that_the_server_logs_reads() {
    let engine = Engine::Postgres(postgres::Database::empty().await);
    let Engine::Postgres(database) = &engine else {
        unreachable!("made so");
    };
    let scene = awkward_scene(&engine, "");
    awkward_table(&engine, scene.folder()).await;
    insert(
        &engine,
        scene.folder(),
        &["'B', 20, 'EUR', 'offen', '2026-03-09 10:00:00', null, null"],
    )
    .await;
    database
        .run(&format!(
            "alter database {} set log_statement = 'all'",
            database.quoted()
        ))
        .await;
    let before = postgres::log().len();
    for line in ["check", "run --dry-run", "run", "diff"] {
        scene.now(line);
    }
    let log = postgres::log();
    let mut count = 0;
    for line in log[before..].lines() {
        // No other test has its statements logged.
        let Some((_, statement)) = line
            .split_once("LOG:  statement: ")
            .or_else(|| line.split_once("LOG:  execute <unnamed>: "))
        else {
            continue;
        };
        let statement = statement.trim_start().to_lowercase();
        let reads = [
            "begin isolation level repeatable read read only; set local ",
            "set local enable_seqscan",
            "select ",
            "with recursive named as (select ",
            "explain select ",
            "rollback",
        ];
        let is_asking = reads
            .iter()
            .any(|beginning| statement.starts_with(beginning));
        assert!(is_asking, "{statement}");
        count += 1;
    }
    assert!(count > 40, "{count} statements:\n{}", &log[before..]);
}

// ---------------------------------------------------------------- writers beside the reader

#[tokio::test]
async fn what_an_open_transaction_may_hide_is_not_judged_yet() {
    let database = postgres::Database::empty().await;
    database
        .run(
            "create table payments (id text primary key, amount bigint, state text, created_at timestamptz default now()); \
             insert into payments values ('A', 1000, 'succeeded', '2026-03-09T10:00:00Z')",
        )
        .await;
    let scene = Scene::empty();
    let now: String = sqlx::query_scalar(
        "select to_char(now() at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')",
    )
    .fetch_one(&mut database.connection().await)
    .await
    .expect("now");
    scene.operations(&format!(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,700,EUR,{now},LATE\n"
    ));
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
[intents]
kind = "sql"
url = "{}"
table = "payments"
[intents.columns]
intent_id = "id"
kind = {{ value = "charge" }}
amount = "amount"
currency = {{ value = "EUR" }}
status = "state"
created_at = "created_at"
"#,
            database.url()
        ),
    );
    // An application that records its payment, calls the processor and only then commits.
    let mut writer = database.connection().await;
    let mut say = async |statement: &str| {
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&mut writer)
            .await
            .expect("a statement");
    };
    say("begin; insert into payments values ('LATE', 700, 'succeeded')").await;
    std::thread::sleep(std::time::Duration::from_millis(1500));
    let told = scene.say("run -f json");
    let report = told.json();
    assert_eq!(breaks(&report), [], "{report:#}");
    let order = report["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .find(|check| check["name"] == "commit order intents")
        .expect("the level");
    let detail = order["detail"].as_str().expect("a detail");
    assert!(detail.starts_with("L1: "), "{detail}");
    assert!(
        detail.contains("a transaction is open since then"),
        "{detail}"
    );
    say("commit").await;
    std::thread::sleep(std::time::Duration::from_secs(7));
    let report = scene.say("run -f json --include matches").json();
    assert_eq!(breaks(&report), [], "{report:#}");
    // What is of March lies outside of the window.
    assert_eq!(report["summary"]["matched"], 1, "{report:#}");
}

/// A row that is committed long after the time it bears: the promise of the settings does not cover it, the number of its
/// transaction does.
#[tokio::test]
async fn a_row_that_is_committed_behind_the_window_is_read_by_the_number_of_its_transaction() {
    for (has_number, default, level) in [
        (true, " default pg_current_xact_id()", "L2: "),
        // A number that the application writes says nothing about transactions.
        (true, "", "L0: "),
        (false, " default pg_current_xact_id()", "L0: "),
    ] {
        let database = postgres::Database::empty().await;
        database
            .run(&format!(
                "create table payments (id text primary key, amount bigint, state text, created_at timestamptz, tx xid8{default}); \
                 insert into payments values ('A', 1000, 'succeeded', '2026-03-09T10:00:00Z')"
            ))
            .await;
        let scene = Scene::empty();
        scene.operations("ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n");
        let number = if has_number {
            "xid_column = \"tx\""
        } else {
            ""
        };
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
table = "payments"
{number}
[intents.columns]
intent_id = "id"
kind = {{ value = "charge" }}
amount = "amount"
currency = {{ value = "EUR" }}
status = "state"
created_at = "created_at"
"#,
                database.url()
            ),
        );
        let label = format!("{has_number} {default}");
        let mut writer = database.connection().await;
        let mut say = async |statement: &str| {
            sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
                .execute(&mut writer)
                .await
                .expect("a statement");
        };
        let late = "begin; insert into payments (id, amount, state, created_at) \
                    values ('LATE', 700, 'succeeded', '2026-03-09T11:00:00Z')";
        say(late).await;
        let run = |as_of: &str| scene.say(&format!("run -f json --as-of {as_of}")).json();
        let first = run("2026-03-10T06:00:00Z");
        assert_eq!(breaks(&first), [], "{label}: {first:#}");
        let told = |report: &Value| -> String {
            let checks = report["checks"].as_array().expect("checks");
            let order = checks
                .iter()
                .find(|it| it["name"] == "commit order intents");
            order.expect("the level")["detail"]
                .as_str()
                .expect("a detail")
                .to_owned()
        };
        assert!(told(&first).starts_with(level), "{label}: {}", told(&first));
        // Others begin and end meanwhile, with higher numbers.
        database
            .run("insert into payments values ('B', 500, 'canceled', '2026-03-09T12:00:00Z')")
            .await;
        let second = run("2026-03-12T18:00:00Z");
        assert_eq!(breaks(&second), [], "{label}: {second:#}");
        say("commit").await;
        // A file with other bytes, so that it may tell of an absence.
        scene.operations(
            "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nfe_1,fee,succeeded,-10,EUR,2026-03-10T20:00:00Z,\n",
        );
        let third = run("2026-03-13T06:00:00Z");
        let found = breaks(&third);
        if level == "L2: " {
            assert_eq!(found.len(), 1, "{label}: {third:#}");
            assert_eq!(
                (found[0].0.as_str(), found[0].1.as_str()),
                ("missing_processor", "LATE")
            );
            // It is told, and is not told anew.
            let again = run("2026-03-13T12:00:00Z");
            assert_eq!(breaks(&again).len(), 1, "{label}: {again:#}");
            let check = scene.say("check").stdout;
            assert!(check.contains("L2: every row is read"), "{check}");
        } else {
            // What the promise of max_txn does not hold for is lost: that is what the level says.
            assert_eq!(found, [], "{label}: {third:#}");
        }
    }
}

// ---------------------------------------------------------------- the page of the README

#[tokio::test]
async fn the_page_about_a_table_of_ones_own_does_what_it_says() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md"))
        .expect("README.md");
    let page = readme
        .split("### Your own payments table in ten minutes\n")
        .nth(1)
        .and_then(|rest| rest.split("\n### ").next())
        .expect("the page");
    let blocks = |kind: &str| -> Vec<&str> {
        page.split(&format!("```{kind}\n"))
            .skip(1)
            .map(|rest| rest.split("```").next().expect("an end"))
            .collect()
    };
    let database = postgres::Database::empty().await;
    let role = format!("paysweep_read_{}", std::process::id());
    for script in blocks("sql") {
        database.run(&script.replace("paysweep_read", &role)).await;
    }
    let scene = Scene::empty();
    scene.write("paysweep.toml", blocks("toml")[0]);
    scene.write("operations.csv", blocks("csv")[0]);
    let mut typed = 0;
    for line in blocks("console")[0].lines() {
        let (command, comment) = line.split_once('#').expect("what is to be expected");
        let line = command
            .trim()
            .strip_prefix("$ paysweep ")
            .expect("a command of ours");
        let code = comment.trim().split(':').next().expect("a code");
        let told = Told::from(
            scene
                .command(line)
                .env("PAYMENTS_DATABASE_URL", database.url_as(&role))
                .output()
                .expect("the binary starts"),
        );
        assert_eq!(told.code.to_string(), code, "{line}: {told:?}");
        typed += 1;
    }
    assert_eq!(typed, 5);
    let owned = format!("drop owned by {role}; drop role {role}");
    database.run(&owned).await;
}

// ---------------------------------------------------------------- check

#[tokio::test]
async fn check_says_what_a_table_lacks_and_what_to_change() {
    for engine in Engine::all().await {
        let scene = awkward_scene(&engine, "");
        awkward_table(&engine, scene.folder()).await;
        insert(
            &engine,
            scene.folder(),
            &["'A', 10.00, 'EUR', 'zu Ende', '2026-03-09 10:00:00', 'ch_1', null"],
        )
        .await;
        let told = scene.now("check");
        let line = |name: &str| -> String {
            told.stdout
                .lines()
                .find(|line| line[5..].trim_start().starts_with(name))
                .unwrap_or_else(|| panic!("{}: no {name}: {}", engine.name(), told.stdout))
                .to_owned()
        };
        assert!(line("intents key").starts_with("FAIL"), "{}", told.stdout);
        assert!(
            line("intents key").contains("create unique index on"),
            "{}",
            told.stdout
        );
        assert!(
            line("intents index from").contains("no index serves"),
            "{}",
            told.stdout
        );
        assert!(line("intents rows").contains("the newest 1 rows can be used"));
        assert!(
            line("intents commit order").contains("L0: "),
            "{}",
            told.stdout
        );
        if matches!(engine, Engine::Postgres(_)) {
            assert!(
                line("intents role").contains("is a superuser"),
                "{}",
                told.stdout
            );
            assert!(
                line("intents role").contains("grant select ("),
                "{}",
                told.stdout
            );
        }
        let [table, id, _, _, _, created, reference, _] = awkward_names(&engine);
        engine
            .run(
                scene.folder(),
                &format!(
                    "create unique index one on {table} ({id}); create index two on {table} ({created}); \
                     create index three on {table} ({reference})"
                ),
            )
            .await;
        let told = scene.now("check");
        for name in ["key", "index from", "index the \"id\"", "index ref'erence"] {
            let line = told
                .stdout
                .lines()
                .find(|line| line.contains(&format!("intents {name}")))
                .unwrap_or_else(|| panic!("{}: no {name}: {}", engine.name(), told.stdout));
            assert!(
                line.starts_with("ok") && !line.contains("no index"),
                "{}: {line}",
                engine.name()
            );
        }
    }
}

// ---------------------------------------------------------------- settings

#[test]
fn what_may_not_be_written_about_a_table_is_told_without_its_secrets() {
    let scene = Scene::empty();
    let good = "kind = \"sql\"\nurl = \"postgres://app@db.example/pay\"\ntable = \"payments\"\n\
        [intents.columns]\nintent_id = \"id\"\nkind = { value = \"charge\" }\namount = \"a\"\ncurrency = \"c\"\n\
        status = \"s\"\ncreated_at = \"at\"\n";
    let cases = [
        ("app@db", "app:hunter2@db", "holds a password"),
        (
            "postgres://app@db.example/pay",
            "mysql://app:hunter2@db/pay",
            "holds a password",
        ),
        (
            "postgres://app@db.example/pay",
            "oracle://hunter2",
            "no address of a database",
        ),
        (
            "pay\"\ntable",
            "pay?schema=x\"\ntable",
            "a schema belongs to the table",
        ),
        ("table = \"payments\"\n", "", "neither table nor query"),
        (
            "table = \"payments\"",
            "table = \"p\"\nquery = \"select 1\"",
            "both set",
        ),
        ("amount = \"a\"\n", "", "amount is missing"),
        (
            "\"charge\" }",
            "\"sale\" }",
            "\"sale\" is no kind of an intent",
        ),
        (
            "status = \"s\"",
            "status = { column = \"s\", map = { ok = \"done\" } }",
            "\"done\" is no status",
        ),
        (
            "kind = \"sql\"",
            "kind = \"sql\"\nfile = \"x.csv\"",
            "unknown key \"file\"",
        ),
        (
            "kind = \"sql\"",
            "kind = \"sql\"\ntime_zone = \"Mars\"",
            "is no time zone",
        ),
        (
            "amount = \"a\"",
            "amonut = \"a\"",
            "did you mean \"amount\"?",
        ),
    ];
    for (from, to, want) in cases {
        assert!(good.contains(from), "{from}");
        scene.write(
            "paysweep.toml",
            &format!(
                "[source.shop]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"o.csv\"]\n\
                 start = \"2026-03-09T00:00:00Z\"\n[intents]\n{}",
                good.replace(from, to)
            ),
        );
        let told = scene.now("check");
        assert_eq!(told.code, 2, "{to}: {told:?}");
        assert!(told.stderr.contains(want), "{to}: {}", told.stderr);
        assert!(!told.stderr.contains("hunter2"), "{to}: {}", told.stderr);
    }
}
