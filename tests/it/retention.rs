//! Operations that are forgotten: what was judged once is not judged again, what comes late is told as late, and whatever is
//! open keeps what it hangs on.

use std::collections::BTreeSet;

use serde_json::Value;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

use super::postgres::{Database, aside};
use super::scene::{Scene, Told, on_both};

const CONFIG: &str = r#"
[store]
url = "sqlite://paysweep.db"

[source.shop]
kind = "csv"
profile = "canonical"
files = ["operations.csv"]
start = "2025-01-01T00:00:00Z"
complete_through = "as-of"

[intents]
kind = "csv"
file = "intents.csv"
"#;

const OPERATIONS: &str =
    "operation_id,kind,status,amount_minor,currency,occurred_at,reference,parent_id,payout_id\n";
const INTENTS: &str =
    "intent_id,kind,amount_minor,currency,status,created_at,processor_ref,parent_intent_id\n";

fn shop() -> Scene {
    let scene = Scene::empty();
    scene.write("paysweep.toml", CONFIG);
    scene
}

fn files(scene: &Scene, operations: &[String], intents: &[String]) {
    let text = |header: &str, rows: &[String]| format!("{header}{}\n", rows.join("\n"));
    scene.write("operations.csv", &text(OPERATIONS, operations));
    scene.write("intents.csv", &text(INTENTS, intents));
}

fn lines(rows: &[&str]) -> Vec<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

fn night(scene: &Scene, as_of: &str) -> Value {
    let told = scene.say(&format!("run -f json --as-of {as_of}T06:00:00Z"));
    assert!(matches!(told.code, 0 | 1), "{as_of}: {told:?}");
    told.json()
}

fn prune(scene: &Scene, as_of: &str, more: &str) -> Told {
    scene.say(&format!(
        "operations prune --keep-within 60d --as-of {as_of}T07:00:00Z {more}"
    ))
}

/// The breaks of a report: class, operation, intent.
fn breaks(report: &Value) -> BTreeSet<String> {
    let text = |item: &Value, column: &str| item[column].as_str().unwrap_or("").to_owned();
    (report["breaks"].as_array().expect("breaks").iter())
        .map(|item| {
            let [class, operation, intent] =
                ["class", "operation_id", "intent_id"].map(|column| text(item, column));
            format!("{class} {operation} {intent}")
        })
        .collect()
}

fn set(rows: &[&str]) -> BTreeSet<String> {
    rows.iter().map(|row| (*row).to_owned()).collect()
}

/// A winter's payments, agreed on and forgotten in summer.
fn forgotten_winter(scene: &Scene) -> (Vec<String>, Vec<String>) {
    let operations = lines(&[
        "ch_1,charge,succeeded,1000,EUR,2025-01-05T10:00:05Z,A,,",
        "ch_2,charge,succeeded,2000,EUR,2025-01-06T10:00:05Z,B,,",
        "re_2,refund,succeeded,-2000,EUR,2025-01-07T10:00:05Z,RB,ch_2,",
        "ch_3,charge,failed,3000,EUR,2025-01-06T11:00:05Z,C,,",
    ]);
    let intents = lines(&[
        "A,charge,1000,EUR,succeeded,2025-01-05T10:00:00Z,ch_1,",
        "B,charge,2000,EUR,succeeded,2025-01-06T10:00:00Z,ch_2,",
        "RB,refund,2000,EUR,succeeded,2025-01-07T10:00:00Z,,B",
        "C,charge,3000,EUR,failed,2025-01-06T11:00:00Z,ch_3,",
    ]);
    files(scene, &operations, &intents);
    assert_eq!(breaks(&night(scene, "2025-01-10")), set(&[]));
    assert_eq!(breaks(&night(scene, "2025-06-01")), set(&[]));
    let told = prune(scene, "2025-06-01", "");
    assert_eq!(told.code, 0, "{told:?}");
    assert!(
        told.stdout.starts_with("4 operations from before"),
        "{}",
        told.stdout
    );
    (operations, intents)
}

#[test]
fn what_is_forgotten_was_judged_once_and_is_not_judged_again() {
    on_both(|database| {
        let scene = shop().stored(database, "60s");
        let (_, mut intents) = forgotten_winter(&scene);
        // The file still holds all of it; nothing is new, and nothing is missing.
        let report = night(&scene, "2025-06-02");
        assert_eq!(breaks(&report), set(&[]), "{report}");
        assert_eq!(report["repairs"], Value::Array(Vec::new()), "{report}");
        // Nor where the file begins later than what was forgotten.
        let mut operations = lines(&["ch_9,charge,succeeded,900,EUR,2025-06-02T10:00:05Z,Z,,"]);
        intents.push("Z,charge,900,EUR,succeeded,2025-06-02T10:00:00Z,ch_9,".to_owned());
        files(&scene, &operations, &intents);
        let report = night(&scene, "2025-06-03");
        assert_eq!(breaks(&report), set(&[]), "{report}");
        // An order of the winter that is charged once more is charged twice.
        operations.push("ch_10,charge,succeeded,1000,EUR,2025-06-03T10:00:05Z,A,,".to_owned());
        // Money goes back that was taken in winter: once as it was booked, once as nobody booked it.
        operations.push("re_1,refund,succeeded,-400,EUR,2025-06-03T11:00:05Z,RA,ch_1,".to_owned());
        intents.push("RA,refund,400,EUR,succeeded,2025-06-03T11:00:00Z,,A".to_owned());
        files(&scene, &operations, &intents);
        let report = night(&scene, "2025-06-04");
        assert_eq!(
            breaks(&report),
            set(&["duplicate_charge ch_10 A"]),
            "{report}"
        );
        operations.push("re_3,refund,succeeded,-100,EUR,2025-06-04T11:00:05Z,,ch_1,".to_owned());
        files(&scene, &operations, &intents);
        let report = night(&scene, "2025-06-05");
        let with_memory = set(&["duplicate_charge ch_10 A", "missing_local re_3 A"]);
        assert_eq!(breaks(&report), with_memory, "{report}");
    });
}

#[test]
fn what_comes_late_is_told_as_late_until_a_person_closes_it() {
    on_both(|database| {
        let scene = shop().stored(database, "60s");
        let (mut operations, intents) = forgotten_winter(&scene);
        let late = "ch_4,charge,succeeded,500,EUR,2025-01-06T12:00:05Z,A,,";
        operations.push(late.to_owned());
        files(&scene, &operations, &intents);
        let expected = set(&["invalid_record ch_4 "]);
        let report = night(&scene, "2025-06-02");
        assert_eq!(breaks(&report), expected, "{report}");
        let why = report["breaks"][0]["why"].as_str().expect("a reason");
        assert!(
            why.contains("2025-01-07T10:00:05") && why.contains("was not seen then"),
            "{why}"
        );
        // It stays so, whether or not the file holds it again.
        assert_eq!(breaks(&night(&scene, "2025-06-03")), expected);
        operations.pop();
        files(&scene, &operations, &intents);
        let report = night(&scene, "2025-06-04");
        assert_eq!(breaks(&report), expected);
        operations.push(late.to_owned());
        files(&scene, &operations, &intents);
        let id = report["breaks"][0]["id"]
            .as_str()
            .expect("an id")
            .to_owned();
        // What is open keeps it, however old it is.
        assert_eq!(breaks(&night(&scene, "2025-11-01")), expected);
        prune(&scene, "2025-11-01", "");
        let told = prune(&scene, "2025-12-30", "");
        assert!(
            told.stdout.contains("is open about operation ch_4"),
            "{}",
            told.stdout
        );
        let told = scene.say(&format!("breaks close {id} --as accepted --reason seen"));
        assert_eq!(told.code, 0, "{told:?}");
        assert_eq!(breaks(&night(&scene, "2025-12-31")), set(&[]));
        let told = prune(&scene, "2025-12-31", "-f json").json();
        assert_eq!(told["forgotten"]["operations"], 1, "{told}");
        assert_eq!(breaks(&night(&scene, "2026-01-01")), set(&[]));
    });
}

#[test]
fn an_id_that_comes_again_as_something_else_is_told() {
    on_both(|database| {
        let scene = shop().stored(database, "60s");
        let (mut operations, intents) = forgotten_winter(&scene);
        operations[0] = "ch_1,charge,succeeded,7700,EUR,2025-06-01T22:00:05Z,A,,".to_owned();
        files(&scene, &operations, &intents);
        let report = night(&scene, "2025-06-02");
        assert_eq!(
            breaks(&report),
            set(&["operation_changed ch_1 A"]),
            "{report}"
        );
        assert_eq!(
            breaks(&night(&scene, "2025-06-03")),
            set(&["operation_changed ch_1 A"])
        );
        let id = report["breaks"][0]["id"].as_str().expect("an id");
        scene.say(&format!("breaks close {id} --as accepted --reason new"));
        let report = night(&scene, "2025-06-04");
        assert_ne!(
            breaks(&report),
            set(&["operation_changed ch_1 A"]),
            "{report}"
        );
        // The new content is stored, once, and goes on from there.
        let after = breaks(&night(&scene, "2025-06-05"));
        assert_eq!(breaks(&report), after);
    });
}

#[test]
fn no_verdict_is_given_about_a_time_that_is_forgotten() {
    on_both(|database| {
        let scene = shop().stored(database, "60s");
        forgotten_winter(&scene);
        for line in [
            "run --from 2025-01-01 --to 2025-02-01 --as-of 2025-06-02T06:00:00Z",
            "run -n --from 2025-01-01 --to 2025-02-01 --as-of 2025-06-02T06:00:00Z",
            "watermark rewind 2025-01-08 --yes --reason x --as-of 2025-06-02T06:00:00Z",
        ] {
            let told = scene.say(line);
            assert_eq!(told.code, 2, "{line}: {told:?}");
            assert!(told.stderr.contains("no longer stored"), "{}", told.stderr);
        }
        let told = scene.say("run --from 2025-02-01 --to 2025-03-01 --as-of 2025-06-02T06:00:00Z");
        assert_eq!(told.code, 0, "{told:?}");
        let told = scene.say("explain ch_1");
        assert_eq!(told.code, 2, "{told:?}");
        assert!(
            told.stderr.contains("is no longer stored"),
            "{}",
            told.stderr
        );
        let told = scene.say("explain A -f json");
        assert_eq!(told.code, 0, "{told:?}");
        let check = scene.say("check").stdout;
        let line = check.lines().find(|line| line.contains("retention"));
        assert!(line.is_some_and(|line| line.starts_with("ok")), "{check}");
    });
}

#[test]
fn a_dry_run_says_what_would_be_forgotten_and_why_the_rest_stays() {
    on_both(|database| {
        let scene = shop().stored(database, "60s");
        let operations = lines(&[
            "ch_1,charge,succeeded,1000,EUR,2025-01-05T10:00:05Z,A,,",
            "ch_2,charge,pending,1000,EUR,2025-01-05T10:00:05Z,B,,",
        ]);
        let intents = lines(&[
            "A,charge,1000,EUR,succeeded,2025-01-05T10:00:00Z,ch_1,",
            "B,charge,1000,EUR,pending,2025-01-05T10:00:00Z,ch_2,",
        ]);
        files(&scene, &operations, &intents);
        night(&scene, "2025-01-10");
        // The first prune begins a generation; it asks for nothing that would be forgotten.
        let told = prune(&scene, "2025-01-10", "-f json").json();
        assert_eq!(told["generations"][0]["forgotten"], false, "{told}");
        assert_eq!(told["generations"][1]["operations"], 0, "{told}");
        let told = prune(&scene, "2025-06-01", "-n");
        // Nothing was read since: the calendar alone forgets nothing.
        assert!(
            told.stdout.contains("its watermark stands"),
            "{}",
            told.stdout
        );
        night(&scene, "2025-06-01");
        let told = prune(&scene, "2025-06-01", "-n");
        assert!(
            told.stdout.contains("kept: generation 1"),
            "{}",
            told.stdout
        );
        assert!(told.stdout.contains("ch_2"), "{}", told.stdout);
        let settled = [
            operations[0].clone(),
            operations[1].replace("pending", "succeeded"),
        ];
        let ours = [
            intents[0].clone(),
            intents[1].replace("pending", "succeeded"),
        ];
        files(&scene, &settled, &ours);
        assert_eq!(breaks(&night(&scene, "2025-06-02")), set(&[]));
        let told = prune(&scene, "2025-06-02", "-n -f json").json();
        assert_eq!(told["forgotten"]["operations"], 2, "{told}");
        assert_eq!(told["dry_run"], true);
        let told = prune(&scene, "2025-06-02", "-f json").json();
        assert_eq!(told["forgotten"]["operations"], 2, "{told}");
        assert_eq!(breaks(&night(&scene, "2025-06-03")), set(&[]));
        if let Some(database) = database {
            let url = database.url();
            let tables: Vec<String> = aside(move || async move {
                let mut session = sqlx::PgConnection::connect(&url).await.expect("a session");
                let partitions = "select cast(inhrelid as regclass)::text from pg_inherits \
                    where inhparent = 'paysweep.operations'::regclass order by 1";
                let found = sqlx::query_scalar(partitions).fetch_all(&mut session).await;
                found.expect("the partitions")
            });
            assert!(!tables.is_empty(), "{tables:?}");
            assert!(
                !tables.contains(&"paysweep.operations_g1".to_owned()),
                "{tables:?}"
            );
        }
        let runs = scene.say("runs list");
        assert!(runs.stdout.contains("operations prune"), "{}", runs.stdout);
        let told = scene.say("operations prune --as-of 2025-06-02T07:00:00Z");
        assert_eq!(told.code, 2, "{told:?}");
        assert!(told.stderr.contains("keep = "), "{}", told.stderr);
    });
}

/// Numbers that look random and are the same every time (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}

/// A shop of a year: the processor's rows and ours, by the month from which they are shown.
#[derive(Default)]
struct Year {
    /// (month of the row, month from which it is shown, month until which it is, the row).
    operations: Vec<(u64, u64, u64, String)>,
    intents: Vec<(u64, u64, String)>,
}

const FOR_GOOD: u64 = 99;

impl Year {
    fn drawn(dice: &mut Dice) -> Year {
        let mut year = Year::default();
        for month in 1..=9 {
            for number in 0..6 {
                year.payment(dice, month, number);
            }
        }
        year
    }

    fn payment(&mut self, dice: &mut Dice, month: u64, number: u64) {
        let id = format!("{month}x{number}");
        let day = 2 + dice.below(25);
        let at = format!("2025-{month:02}-{day:02}T10:0{number}:05Z");
        let amount = 1000 + 100 * number;
        let operation = |kind: &str, status: &str, amount: i64, at: &str, more: &str| {
            format!("{kind}_{id},{kind},{status},{amount},EUR,{at},{more}")
        };
        let intent = |kind: &str, status: &str, amount: u64, at: &str, more: &str| {
            let ours = if kind == "charge" { "I" } else { "R" };
            format!("{ours}{id},{kind},{amount},EUR,{status},{at},{more}")
        };
        let charge = operation(
            "charge",
            "succeeded",
            amount.cast_signed(),
            &at,
            &format!("I{id},,"),
        );
        let ours = |status: &str| intent("charge", status, amount, &at, &format!("charge_{id},"));
        match dice.below(12) {
            // The processor shows nothing of it.
            0 => self.intents.push((month, FOR_GOOD, ours("succeeded"))),
            // Nobody asked for it.
            1 => self.operations.push((month, month, FOR_GOOD, charge)),
            // Another amount than was asked for.
            2 => {
                self.operations.push((month, month, FOR_GOOD, charge));
                let other = intent(
                    "charge",
                    "succeeded",
                    amount + 1,
                    &at,
                    &format!("charge_{id},"),
                );
                self.intents.push((month, FOR_GOOD, other));
            }
            // Never sent.
            3 => self.intents.push((
                month,
                FOR_GOOD,
                intent("charge", "created", amount, &at, ","),
            )),
            // Declined, and nobody noted it for a while.
            4 => {
                self.operations.push((
                    month,
                    month,
                    FOR_GOOD,
                    charge.replace("succeeded", "failed"),
                ));
                let noted = month + dice.below(4);
                if noted > month {
                    self.intents.push((month, noted, ours("pending")));
                }
                self.intents.push((noted, FOR_GOOD, ours("failed")));
            }
            // Pending for a while.
            5 => {
                let settled = month + dice.below(5);
                if settled > month {
                    let pending = charge.replace("succeeded", "pending");
                    self.operations.push((month, month, settled, pending));
                    self.intents.push((month, settled, ours("pending")));
                }
                self.operations.push((month, settled, FOR_GOOD, charge));
                self.intents.push((settled, FOR_GOOD, ours("succeeded")));
            }
            // In order; some of it goes back later, some is disputed, some is charged again.
            _ => {
                self.operations.push((month, month, FOR_GOOD, charge));
                self.intents.push((month, FOR_GOOD, ours("succeeded")));
                let later = month + dice.below(4);
                if later > 10 {
                    return;
                }
                let then = format!("2025-{later:02}-28T12:0{number}:05Z");
                match dice.below(6) {
                    0 | 1 => {
                        let back = -amount.cast_signed();
                        let row = operation(
                            "refund",
                            "succeeded",
                            back,
                            &then,
                            &format!("R{id},charge_{id},"),
                        );
                        self.operations.push((later, later, FOR_GOOD, row));
                        if !dice.one_in(4) {
                            let row =
                                intent("refund", "succeeded", amount, &then, &format!(",I{id}"));
                            self.intents.push((later, FOR_GOOD, row));
                        }
                    }
                    2 => {
                        let row =
                            format!("again_{id},charge,succeeded,{amount},EUR,{then},I{id},,");
                        self.operations.push((later, later, FOR_GOOD, row));
                    }
                    3 => {
                        let back = -amount.cast_signed();
                        let row = operation(
                            "dispute",
                            "succeeded",
                            back,
                            &then,
                            &format!(",charge_{id},"),
                        );
                        self.operations.push((later, later, FOR_GOOD, row));
                    }
                    _ => {}
                }
            }
        }
    }

    /// What both sides show at the end of a month; the processor only rows of so many months.
    fn shown(&self, month: u64, months: u64) -> (Vec<String>, Vec<String>) {
        let operations = self.operations.iter();
        let operations = operations
            .filter(|(of, from, until, _)| *from <= month && month < *until && of + months > month)
            .map(|(.., row)| row.clone());
        let intents = self.intents.iter();
        let intents = intents
            .filter(|(from, until, _)| *from <= month && month < *until)
            .map(|(.., row)| row.clone());
        (operations.collect(), intents.collect())
    }
}

/// Whatever happens in a year, who forgets says the same each month as who never does.
#[test]
fn who_forgets_says_the_same_as_who_never_does() {
    let (mut forgotten, mut told) = (0, 0);
    for seed in 0..16 {
        let mut dice = Dice(seed);
        let year = Year::drawn(&mut dice);
        // A file that grows for good, or one of the last months.
        let months = if dice.one_in(2) { FOR_GOOD } else { 2 };
        let (sharp, blunt) = (shop(), shop());
        for month in 1..=12 {
            let (operations, intents) = year.shown(month, months);
            let as_of = format!("2025-{month:02}-28T23:00:00Z");
            let mut answers = Vec::new();
            for scene in [&sharp, &blunt] {
                files(scene, &operations, &intents);
                let answer = scene.say(&format!("run -f json --as-of {as_of}"));
                assert!(
                    matches!(answer.code, 0 | 1),
                    "seed {seed}, {as_of}: {answer:?}"
                );
                answers.push(answer.json());
            }
            assert_eq!(
                breaks(&answers[1]),
                breaks(&answers[0]),
                "seed {seed}, {as_of}, {months} months:\n{}\n{}",
                operations.join("\n"),
                intents.join("\n")
            );
            let repairs = |report: &Value| {
                let rows = report["repairs"].as_array().expect("repairs").iter();
                rows.map(|row| {
                    format!(
                        "{} {} {}",
                        row["action"], row["intent_id"], row["operation_id"]
                    )
                })
                .collect::<BTreeSet<String>>()
            };
            assert_eq!(
                repairs(&answers[1]),
                repairs(&answers[0]),
                "seed {seed}, {as_of}"
            );
            told += breaks(&answers[1]).len();
            // A person closes what is old, so that it does not hold everything for good.
            if month % 3 == 0 {
                for (scene, answer) in [&sharp, &blunt].into_iter().zip(&answers) {
                    let items = answer["breaks"].as_array().expect("breaks").iter();
                    for item in items.filter(|item| item["state"] == "open") {
                        let id = item["id"].as_str().expect("an id");
                        let close = format!(
                            "breaks close {id} --as accepted --reason seen --as-of {as_of}"
                        );
                        let closed = scene.say(&close);
                        assert_eq!(closed.code, 0, "{closed:?}");
                    }
                }
            }
            let line = format!("operations prune --keep-within 40d -f json --as-of {as_of}");
            let answer = blunt.say(&line);
            assert_eq!(answer.code, 0, "{answer:?}");
            forgotten += answer.json()["forgotten"]["operations"]
                .as_u64()
                .expect("a number");
        }
    }
    // A test in which nothing is forgotten, or nothing is told, would prove nothing.
    assert!(
        forgotten > 100 && told > 100,
        "{forgotten} forgotten, {told} breaks told"
    );
}

/// The steps of the schema before operations lay in generations.
fn older_schema(engine: &str) -> String {
    let folder = format!("{}/migrations/{engine}", env!("CARGO_MANIFEST_DIR"));
    let mut steps: Vec<_> = std::fs::read_dir(folder)
        .expect("the migrations")
        .map(|entry| entry.expect("an entry").path())
        .collect();
    steps.sort();
    (steps.iter().take(6))
        .map(|path| std::fs::read_to_string(path).expect("a migration"))
        .collect()
}

#[test]
fn a_store_of_before_keeps_what_it_knows_and_can_forget_it() {
    let known = "insert into operations values ('shop', 'ch_1', '', 'native', 'charge', 'succeeded', 1, 1000, \
        'EUR', null, null, 'EUR', 1736071205000000, 'A', '', '', '', '', null, null, '', '', 'operations.csv', 2, 1, 'r0'); \
        insert into matches values ('shop', 'ch_1', '', 'intents', 'A', 'processor_ref', 1, 'r0');";
    on_both(|database| {
        let empty = database.map(|_| aside(|| async { Database::empty().await }));
        let scene = shop().stored(empty.as_ref(), "60s");
        if let Some(database) = &empty {
            let url = database.url();
            let script = format!(
                "create schema paysweep; set search_path = paysweep; create table schema_version (only_row bigint not null \
                 primary key check (only_row = 1), version bigint not null); insert into schema_version values (1, 6); {} {known}",
                older_schema("postgres")
            );
            aside(move || async move {
                let mut session = sqlx::PgConnection::connect(&url).await.expect("a session");
                let raw = sqlx::raw_sql(AssertSqlSafe(script));
                raw.execute(&mut session).await.expect("the old schema");
                session.close().await.expect("closed");
            });
            assert_eq!(scene.say("migrate").code, 0);
        } else {
            let path = scene.path("paysweep.db");
            let script = format!(
                "{} {known} pragma application_id = 1885436275; pragma user_version = 6",
                older_schema("sqlite")
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
        let changed = lines(&["ch_1,charge,succeeded,9900,EUR,2025-01-05T10:00:05Z,A,,"]);
        let intents = lines(&["A,charge,1000,EUR,succeeded,2025-01-05T10:00:00Z,ch_1,"]);
        // It is known with what it was.
        files(&scene, &changed, &intents);
        let expected = set(&["operation_changed ch_1 A"]);
        assert_eq!(breaks(&night(&scene, "2025-01-10")), expected);
        let same = lines(&["ch_1,charge,succeeded,1000,EUR,2025-01-05T10:00:05Z,A,,"]);
        files(&scene, &same, &intents);
        night(&scene, "2025-01-11");
        let report = night(&scene, "2025-06-01");
        for item in report["breaks"].as_array().expect("breaks") {
            let id = item["id"].as_str().expect("an id");
            scene.say(&format!("breaks close {id} --as false-alarm --reason seen"));
        }
        let told = prune(&scene, "2025-06-01", "-f json").json();
        assert_eq!(told["forgotten"]["operations"], 1, "{told}");
        assert_eq!(breaks(&night(&scene, "2025-06-02")), set(&[]));
    });
}
