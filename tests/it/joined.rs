//! Where the company's table lies in the store's own database, one transaction holds table, ledger and watermark.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use sqlx::{Connection, PgConnection};

use super::apply::{
    AFTER, BEFORE, engines, execute, heal, id_of, insert, joined_shop, place, rows, run,
    statements, states, table,
};
use super::intents_sql::Engine;
use super::postgres::aside;
use super::scene::{NOW, Scene, Told};
use super::sweeps::{injected, stride};

/// The engines that a store can be in.
fn shared() -> Vec<Engine> {
    let mut engines = engines();
    engines.retain(|engine| !matches!(engine, Engine::MariaDb(_)));
    engines
}

/// Leaves nothing of a scene in a database that others use after it.
fn clean(engine: &Engine) {
    if let Engine::Postgres(_) = engine {
        let both = "drop schema if exists app cascade; drop schema if exists paysweep cascade";
        run(engine, &Scene::empty(), both);
    }
}

fn line_of(scene: &Scene, name: &str) -> String {
    let told = scene.say("check").stdout;
    let line = told.lines().find(|line| line.contains(name));
    line.unwrap_or_else(|| panic!("{name}: {told}")).to_owned()
}

fn watermark(scene: &Scene) -> Value {
    let told = scene.say("watermark show -f json").json();
    told["watermarks"][0]["watermark"].clone()
}

#[test]
fn one_transaction_writes_table_ledger_and_watermark() {
    for engine in shared() {
        let label = engine.name();
        let scene = joined_shop(&engine, &statements(&engine, true));
        let check = line_of(&scene, "apply transaction");
        assert!(check.contains("that of the ledger"), "{label}: {check}");
        let dry = scene.now("run --dry-run -f json");
        assert_eq!(rows(&engine, &scene), BEFORE, "{label}");
        let told = scene.now("run -f json");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        let report = told.json();
        assert_eq!(report["outcome"]["name"], "repaired", "{label}: {report}");
        assert_eq!(dry.json()["outcome"], report["outcome"], "{label}");
        assert_eq!(rows(&engine, &scene), AFTER, "{label}");
        assert_eq!(states(&scene), ["applied", "applied"], "{label}");
        let show = scene
            .say(&format!("repairs show {}", id_of(&scene, "A")))
            .stdout;
        assert!(
            show.contains("written in the transaction of the ledger"),
            "{label}: {show}"
        );
        assert!(!show.contains("claimed"), "{label}: {show}");
        let chain = line_of(&scene, "ledger ");
        assert!(chain.contains("the chain holds"), "{label}: {chain}");
        let next = scene.now("run -f json");
        assert_eq!(next.code, 0, "{label}: {next:?}");
        assert_eq!(states(&scene), ["confirmed", "confirmed"], "{label}");
        assert_eq!(rows(&engine, &scene), AFTER, "{label}");
    }
}

#[test]
fn a_person_s_word_is_written_together_with_the_table_as_well() {
    for engine in shared() {
        let label = engine.name();
        let repair = format!(
            "[repair]\nstatus_behind = \"propose\"\nmissing_local = \"off\"\n{}",
            statements(&engine, true)
        );
        let scene = joined_shop(&engine, &repair);
        assert_eq!(scene.now("run").code, 1, "{label}");
        let id = id_of(&scene, "A");
        assert_eq!(
            scene.say(&format!("repairs approve {id} --reason ok")).code,
            0
        );
        let told = scene.say("repairs apply");
        assert_eq!(told.code, 0, "{label}: {told:?}");
        assert_eq!(rows(&engine, &scene)[0], AFTER[0], "{label}");
        let show = scene.say(&format!("repairs show {id}")).stdout;
        assert!(
            show.contains("applied by kim: written in the transaction of the ledger"),
            "{label}: {show}"
        );
        // The inverse goes the same way, and a row that changed since is not overwritten.
        let told = scene.say(&format!("repairs revert {id} --reason wrong"));
        assert_eq!(told.code, 0, "{label}: {told:?}");
        let inverse = told.stdout.split(' ').next().expect("an id").to_owned();
        assert_eq!(
            scene
                .say(&format!("repairs approve {inverse} --reason ok"))
                .code,
            0
        );
        let table = table(&engine);
        run(
            &engine,
            &scene,
            &format!("update {table} set state = 'void' where id = 'A'"),
        );
        let told = scene.say("repairs apply");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        assert!(rows(&engine, &scene)[0].starts_with("A void"), "{label}");
        let breaks = scene.say("breaks list -f json").stdout;
        assert!(breaks.contains("repair_conflict"), "{label}: {breaks}");
        assert!(
            line_of(&scene, "ledger ").contains("the chain holds"),
            "{label}"
        );
    }
}

#[test]
fn what_the_table_refuses_is_a_conflict_and_keeps_nothing_else_from_taking_hold() {
    for engine in shared() {
        let (table, cast) = (table(&engine), engine.pick("::app.state", "", ""));
        let set = |what: &str| {
            format!(
                "update {table} set state = :to_status{cast}, stripe_id = :processor_ref, repair = :repair_id, touched = touched + 1{what}"
            )
        };
        let where_it_is = format!("where id = :intent_id and state = :from_status{cast}");
        let cases = [
            (set(" where id = :intent_id or state <> :from_status") + cast, String::new(), "changed 2 rows instead of 1"),
            (set("") + " " + &where_it_is + " and stripe_id = 'x'", String::new(), "changed no row"),
            (set(", id = 'C' ") + &where_it_is, String::new(), "the database refused it"),
            // A trigger that says no, and in PostgreSQL one that says so only when the transaction ends.
            (
                set(" ") + &where_it_is,
                engine
                    .pick(
                        "create function app.no() returns trigger language plpgsql as \
                         $$ begin if new.id = 'A' then raise exception 'not this one'; end if; return new; end $$; \
                         create constraint trigger no after update on app.payments deferrable initially deferred \
                         for each row execute function app.no()",
                        "",
                        "create trigger no before update on payments when new.id = 'A' \
                         begin select raise(abort, 'not this one'); end",
                    )
                    .to_owned(),
                "not this one",
            ),
        ];
        for (set_status, more, part) in cases {
            let label = format!("{} {part}", engine.name());
            clean(&engine);
            let good = statements(&engine, true);
            let begin = good.find("set_status").expect("a statement");
            let end = good.find("record_refund").expect("a statement");
            let repair = format!(
                "{}set_status = \"{set_status}\"\n{}",
                &good[..begin],
                &good[end..]
            );
            let scene = joined_shop(&engine, &repair);
            if !more.is_empty() {
                run(&engine, &scene, &more);
            }
            let told = scene.now("run -f json");
            assert_eq!(told.code, 1, "{label}: {told:?}");
            assert!(told.stdout.contains(part), "{label}: {}", told.stdout);
            assert_eq!(states(&scene), ["applied", "failed"], "{label}");
            let rows = rows(&engine, &scene);
            assert_eq!(rows[0], BEFORE[0], "{label}");
            assert_eq!(rows[2], AFTER[2], "{label}");
            assert_eq!(watermark(&scene), NOW, "{label}");
            assert!(
                line_of(&scene, "ledger ").contains("the chain holds"),
                "{label}"
            );
        }
    }
}

/// A trigger of `SQLite` may roll back the whole transaction: the ledger must not be written in pieces then.
#[test]
fn a_trigger_that_rolls_back_everything_leaves_no_half_of_the_ledger() {
    let engine = Engine::Sqlite;
    let scene = joined_shop(&engine, &statements(&engine, true));
    run(
        &engine,
        &scene,
        "create trigger no before update on payments when new.id = 'A' begin select raise(rollback, 'not at all'); end",
    );
    let told = scene.now("run -f json");
    let rows = rows(&engine, &scene);
    assert_eq!(rows[0], BEFORE[0], "{told:?}");
    // What was committed is whole: watermark, breaks, repairs that wait or failed, and a chain that holds.
    assert!(
        line_of(&scene, "ledger ").contains("the chain holds"),
        "{told:?}"
    );
    assert_eq!(watermark(&scene), NOW, "{told:?}");
    assert!(
        states(&scene)
            .iter()
            .all(|state| ["applied", "approved", "failed"].contains(&state.as_str())),
        "{:?}",
        states(&scene)
    );
    assert_ne!(told.code, 0, "{told:?}");
}

/// Killed at every call that writes or sends: both sides say the same at every moment.
#[test]
fn a_run_killed_at_any_write_leaves_table_and_ledger_of_one_moment() {
    for engine in shared() {
        let calls = engine.pick("sendto,write", "", "pwrite64,fdatasync,unlink");
        let (mut at, mut before, mut after) = (1, 0, 0);
        loop {
            clean(&engine);
            let scene = joined_shop(&engine, &statements(&engine, true));
            let line = format!("run --as-of {NOW} -f json");
            let told = injected(&scene, &line, calls, "signal=SIGKILL", at);
            let label = format!("{} call {at}: {} {}", engine.name(), told.code, told.stderr);
            let (ledger, table) = settled(&engine, &scene);
            if table == BEFORE {
                assert_eq!(ledger, Vec::<String>::new(), "{label}");
                before += 1;
            } else {
                assert_eq!(table, AFTER, "{label}");
                assert_eq!(ledger, ["applied", "applied"], "{label}");
                assert_eq!(watermark(&scene), NOW, "{label}");
                after += 1;
            }
            heal(&scene, &label);
            assert_eq!(rows(&engine, &scene), AFTER, "{label}");
            assert!(
                line_of(&scene, "ledger ").contains("the chain holds"),
                "{label}"
            );
            if told.code != 137 {
                assert_eq!(told.code, 1, "{label}");
                break;
            }
            at += stride(7);
        }
        assert!(before > 2 && after > 0, "{before} before, {after} after");
        println!("{}: {before} before, {after} after", engine.name());
    }
}

/// States of the ledger and rows of the table, once neither changes any more: a server may still be ending a transaction
/// whose client is dead.
fn settled(engine: &Engine, scene: &Scene) -> (Vec<String>, Vec<String>) {
    loop {
        if matches!(engine, Engine::Sqlite) {
            // The next writer rolls back what was left in the middle.
            run(engine, scene, "begin immediate; rollback");
        }
        let first = (states(scene), rows(engine, scene));
        let again = (states(scene), rows(engine, scene));
        if first == again {
            return first;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// The application changes rows after the run has read them and before its commit: the commit is made to wait meanwhile.
#[test]
fn rows_that_change_between_reading_and_commit_are_conflicts_of_the_same_commit() {
    let engine = Engine::Postgres(aside(|| async { super::postgres::Database::empty().await }));
    let repair = format!(
        "[repair]\nmissing_local = \"off\"\n{}",
        statements(&engine, true)
    );
    let scene = joined_shop(&engine, &repair);
    run(&engine, &scene, "delete from app.payments");
    let mut operations = super::apply::OPERATIONS
        .lines()
        .next()
        .expect("a header")
        .to_owned()
        + "\n";
    for n in 0..60 {
        let id = format!("P{n:03}");
        operations += &format!("px_{n},charge,succeeded,100,EUR,2026-03-09T10:00:05Z,{id},\n");
        insert(&engine, &scene, &id, "", "new", 100);
    }
    scene.write("operations.csv", &operations);
    run(
        &engine,
        &scene,
        "create function paysweep.wait() returns trigger language plpgsql as \
         $$ begin perform pg_sleep(1.5); return new; end $$; \
         create trigger wait before insert on paysweep.run_commits for each row execute function paysweep.wait()",
    );
    let child = scene
        .command(&format!("run --as-of {NOW} -f json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let url = engine.url();
    aside(move || async move {
        let mut session = PgConnection::connect(&url).await.expect("a session");
        let question = "select count(*) from pg_stat_activity where wait_event = 'PgSleep'";
        for _ in 0..1_000 {
            let count: i64 = sqlx::query_scalar(question)
                .fetch_one(&mut session)
                .await
                .expect("a number");
            if count > 0 {
                let third =
                    "update app.payments set state = 'void' where right(id, 1) in ('0', '3', '6')";
                sqlx::raw_sql(third)
                    .execute(&mut session)
                    .await
                    .expect("it is written");
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the commit never came");
    });
    let told = Told::from(child.wait_with_output().expect("it ends"));
    assert_eq!(told.code, 1, "{told:?}");
    let states = states(&scene);
    let count = |state: &str| states.iter().filter(|it| *it == state).count();
    assert_eq!((count("applied"), count("failed")), (42, 18), "{told:?}");
    let report = told.json();
    assert_eq!(
        report["summary"]["by_class"]["repair_conflict"], 18,
        "{report}"
    );
    for row in rows(&engine, &scene) {
        let is_void = ["0", "3", "6"].contains(&&row[3..4]);
        let wanted = if is_void {
            "void - 0 by nobody"
        } else {
            "1 by a repair"
        };
        assert!(row.ends_with(wanted), "{row}");
    }
}

/// Whoever holds a row for longer keeps nobody waiting: the others are written, and that one has a way of its own.
#[test]
fn a_row_that_somebody_holds_is_written_after_the_commit() {
    let engine = Engine::Postgres(aside(|| async { super::postgres::Database::empty().await }));
    let scene = joined_shop(&engine, &statements(&engine, true));
    let url = engine.url();
    let (held, wait_for_it) = std::sync::mpsc::channel::<()>();
    let (release, released) = std::sync::mpsc::channel::<()>();
    let holder = std::thread::spawn(move || {
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
    });
    wait_for_it.recv().expect("a lock");
    let child = scene
        .command(&format!("run --as-of {NOW} -f json"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // The commit does not wait for the row.
    for _ in 0..400 {
        if watermark(&scene) == NOW {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(watermark(&scene), NOW);
    assert_eq!(rows(&engine, &scene)[2], AFTER[2]);
    assert_eq!(rows(&engine, &scene)[0], BEFORE[0]);
    release.send(()).expect("the holder waits");
    holder.join().expect("no panic");
    let told = Told::from(child.wait_with_output().expect("it ends"));
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(rows(&engine, &scene), AFTER);
    assert_eq!(states(&scene), ["applied", "applied"]);
}

#[test]
fn where_in_doubt_there_are_two_steps_and_check_says_why() {
    for engine in shared() {
        let label = engine.name();
        let scene = joined_shop(&engine, &statements(&engine, true));
        // Two files, or two names of one server.
        let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
        let (store, rest) = config.split_once("[source.shop]").expect("a section");
        let here = std::net::Ipv4Addr::LOCALHOST.to_string();
        let elsewhere = match &engine {
            Engine::Postgres(_) => store.replace(&here, "localhost"),
            _ => store.replace("company.db", "other.db"),
        };
        assert_ne!(elsewhere, store, "{label}");
        scene.write("paysweep.toml", &format!("{elsewhere}[source.shop]{rest}"));
        let check = line_of(&scene, "apply transaction");
        assert!(
            check.contains("between two steps of the ledger"),
            "{label}: {check}"
        );
        let told = scene.now("run -f json");
        assert_eq!(told.code, 1, "{label}: {told:?}");
        assert_eq!(rows(&engine, &scene), AFTER, "{label}");
        let show = scene
            .say(&format!("repairs show {}", id_of(&scene, "A")))
            .stdout;
        assert!(show.contains("claimed by paysweep"), "{label}: {show}");
    }
}

/// The application writes all the time while a run commits, in one file as well.
#[test]
fn nobody_s_write_is_lost_while_a_commit_writes_the_same_table() {
    for engine in shared() {
        let label = engine.name();
        let repair = format!(
            "[repair]\nmissing_local = \"off\"\n{}",
            statements(&engine, true)
        );
        let scene = joined_shop(&engine, &repair);
        run(&engine, &scene, &format!("delete from {}", table(&engine)));
        let mut operations = super::apply::OPERATIONS
            .lines()
            .next()
            .expect("a header")
            .to_owned()
            + "\n";
        for n in 0..40 {
            let id = format!("P{n:03}");
            operations += &format!("px_{n},charge,succeeded,100,EUR,2026-03-09T10:00:05Z,{id},\n");
            insert(&engine, &scene, &id, "", "new", 100);
        }
        scene.write("operations.csv", &operations);
        let (url, path) = place(&engine, &scene);
        let table = table(&engine);
        let child = scene
            .command(&format!("run --as-of {NOW} -f json"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        let voided = aside(move || async move {
            let mut voided = Vec::new();
            for n in (0..40).rev().step_by(2) {
                let text = format!(
                    "update {table} set state = 'void' where id = 'P{n:03}' and state = 'new'"
                );
                for _ in 0..200 {
                    match execute(&url, &path, &text).await {
                        Ok(1) => {
                            voided.push(n);
                            break;
                        }
                        Ok(_) => break,
                        Err(_) => tokio::time::sleep(Duration::from_millis(5)).await,
                    }
                }
            }
            voided
        });
        let told = Told::from(child.wait_with_output().expect("it ends"));
        assert!([1, 0].contains(&told.code), "{label}: {told:?}");
        let rows = rows(&engine, &scene);
        let ledger = states(&scene);
        let applied = ledger.iter().filter(|state| *state == "applied").count();
        let mut repaired = 0;
        for n in 0..40 {
            if voided.contains(&n) {
                assert!(
                    rows.contains(&format!("P{n:03} void - 0 by nobody")),
                    "{label}: {n} {rows:?}"
                );
            } else {
                assert!(
                    rows.contains(&format!("P{n:03} paid px_{n} 1 by a repair")),
                    "{label}: {n} {rows:?}"
                );
                repaired += 1;
            }
        }
        assert_eq!(applied, repaired, "{label}: {ledger:?}");
        println!("{label}: {} voided, {applied} repaired", voided.len());
    }
}
