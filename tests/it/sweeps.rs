//! A run killed at every system call that writes, on a file; and cut off at every receive, from a database. Nothing is left
//! to chance: the calls of each thread are counted (the store has one of its own), and the sweep ends with the run that no
//! call was left for.
//!
//! `PAYSWEEP_ROUNDS=50 cargo test --test it -- sweeps::` tries every call; the short form tries some of them.

use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;

use super::postgres::Database;
use super::races::rounds;
use super::scene::{NOW, Scene, Told, database};

/// The calls with which `SQLite`, and whoever writes a report, changes a disk.
const WRITES: &str = "pwrite64,write,fdatasync,fsync,ftruncate,unlink,rename,link";

/// Between two calls that are tried: one after the other in the long form.
pub(crate) fn stride(short: usize) -> usize {
    if rounds(0) > 0 { 1 } else { short }
}

/// Runs a command under strace, which does something at the `at`th of the calls.
pub(crate) fn injected(scene: &Scene, line: &str, calls: &str, what: &str, at: usize) -> Told {
    let plain = scene.command(line);
    let log = scene.path("strace.log");
    let output = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(&log)
        .args(["-e", &format!("trace={calls}")])
        .args(["-e", &format!("inject={calls}:{what}:when={at}")])
        .arg(plain.get_program())
        .args(plain.get_args())
        .current_dir(scene.folder())
        .env_clear()
        .envs(
            plain
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!("{error}: this test needs strace: apt-get install strace (Debian, Ubuntu)")
        });
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let told = Told {
        // strace ends as its program did; killed by a signal as well.
        code: output.status.code().unwrap_or(137),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(
        !told.stderr.contains("ptrace"),
        "strace may not trace here (a container may need --cap-add=SYS_PTRACE): {}",
        told.stderr
    );
    told
}

/// What the store holds of breaks, repairs and watermark, as its user sees it.
fn state(scene: &Scene) -> Vec<String> {
    let list = |line: &str, key: &str| {
        let told = scene.say(&format!("{line} -f json")).json();
        told[key].as_array().expect("a list").clone()
    };
    let mut lines: Vec<String> = Vec::new();
    for item in list("breaks list", "breaks") {
        lines.push(format!("{} {}", item["id"], item["state"]));
    }
    for item in list("repairs list", "repairs") {
        lines.push(format!(
            "{} {} {}",
            item["id"], item["state"], item["intent_id"]
        ));
    }
    for item in list("watermark show", "watermarks") {
        lines.push(item["watermark"].to_string());
    }
    lines
}

/// Lets `SQLite` roll back what a killed process left in the middle, as the next writer would.
fn heal(scene: &Scene) {
    let path = scene.path("paysweep.db");
    super::postgres::aside(move || async move {
        let options = SqliteConnectOptions::new().filename(&path);
        let mut file = options.connect().await.expect("a store");
        sqlx::raw_sql("begin immediate; rollback")
            .execute(&mut file)
            .await
            .expect("a store that can be written");
    });
}

/// A late status, a missing operation and another amount.
const OPERATIONS: &str = "\
    ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n\
    ch_2,charge,succeeded,1200,EUR,2026-03-09T11:00:05Z,B\n";
const INTENTS: &str = "\
    A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n\
    B,charge,1000,EUR,succeeded,2026-03-09T11:00:00Z,ch_2\n\
    C,charge,900,EUR,succeeded,2026-03-09T12:00:00Z,ch_3\n";

fn shop(database: Option<&Database>) -> Scene {
    Scene::new(OPERATIONS, INTENTS).stored(database, "1s")
}

/// Asked to stop at each call: a report in any case, and a source that is free at once although its lease is long.
#[test]
fn a_run_that_is_asked_to_stop_at_any_call_tells_so_and_frees_its_source() {
    for (has_database, calls, short) in [(false, WRITES, 7), (true, "recvfrom", 23)] {
        let line = format!("run --as-of {NOW} -f json");
        let calm_database = has_database.then(database);
        let calm = shop(calm_database.as_ref());
        let wanted_breaks = ids(&calm.say(&line).json(), ["", "breaks"]);
        let wanted = state(&calm);
        let (mut at, mut stopped) = (1, 0);
        loop {
            let database = has_database.then(database);
            let scene = Scene::new(OPERATIONS, INTENTS).stored(database.as_ref(), "120s");
            let told = injected(&scene, &line, calls, "signal=SIGTERM", at);
            let label = format!("{calls} {at}: {} {}", told.code, told.stderr);
            // strace counts for each thread: a second one that came so far as well was a second signal.
            if told.stderr.contains("a second signal") {
                assert_eq!(told.code, 143, "{label}");
                at += 1;
                continue;
            }
            assert!([1, 143].contains(&told.code), "{label}");
            let report = told.json();
            let code = &report["outcome"]["exit_code"];
            assert_eq!(code, told.code, "{label}");
            stopped += usize::from(told.code == 143);
            let next = scene.say(&line);
            assert_eq!(next.code, 1, "{label}: {}", next.stderr);
            assert_eq!(state(&scene), wanted, "{label}");
            let next = next.json();
            let mut known = ids(&next, ["", "breaks"]);
            known.extend(ids(&next, ["carried", "breaks"]));
            if told.code == 1 {
                known.extend(ids(&report, ["", "breaks"]));
            }
            for id in &wanted_breaks {
                assert!(known.contains(id), "{label}: {id} was never told");
            }
            let log = std::fs::read_to_string(scene.path("strace.log")).expect("a log");
            if !log.contains("SIGTERM") {
                break;
            }
            at += stride(short);
        }
        assert!(stopped > 2, "{calls}: {stopped} were stopped in {at}");
        println!("{calls}: {at} calls, {stopped} runs were stopped");
    }
}

/// Another night: the missing operation is there, and a new payment is late.
fn next_night(scene: &Scene) {
    scene.operations(&format!(
        "{OPERATIONS}ch_3,charge,succeeded,900,EUR,2026-03-09T12:00:05Z,C\n\
         ch_4,charge,succeeded,700,EUR,2026-03-09T13:00:05Z,D\n"
    ));
    scene.intents(&format!(
        "{INTENTS}D,charge,700,EUR,pending,2026-03-09T13:00:00Z,\n"
    ));
}

fn run(scene: &Scene) -> Told {
    // A killed run holds the source for its lease of a second.
    for _ in 0..40 {
        let told = scene.now("run -f json");
        if told.code != 11 {
            return told;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("the lease never ended");
}

fn ids(report: &Value, path: [&str; 2]) -> Vec<String> {
    let list = if path[0].is_empty() {
        &report[path[1]]
    } else {
        &report[path[0]][path[1]]
    };
    list.as_array()
        .expect("a list")
        .iter()
        .map(|item| item["id"].to_string())
        .collect()
}

/// Kills a command at each call, and compares with the same made in peace.
fn sweep(before: fn(&Scene), line: &str, short: usize) -> usize {
    let calm = shop(None);
    before(&calm);
    // A source that was never read has no watermark.
    let nothing = vec!["null".to_owned()];
    let old = if calm.path("paysweep.db").exists() {
        state(&calm)
    } else {
        nothing.clone()
    };
    let done = calm.say(line);
    assert!([0, 1].contains(&done.code), "{}", done.stderr);
    let new = state(&calm);
    let finished = run(&calm);
    let healed_state = state(&calm);
    let mut at = 1;
    loop {
        let scene = shop(None);
        before(&scene);
        let told = injected(&scene, line, WRITES, "signal=SIGKILL", at);
        let is_whole = told.code != 137;
        let exists = scene.path("paysweep.db").exists();
        let found = if exists {
            heal(&scene);
            state(&scene)
        } else {
            nothing.clone()
        };
        let label = format!("{line}, call {at}: {} {}", told.code, told.stderr);
        assert!(found == old || found == new, "{label}: {found:?}");
        let healed = run(&scene);
        assert!([0, 1].contains(&healed.code), "{label}: {}", healed.stderr);
        if line.starts_with("run") {
            assert_eq!(state(&scene), healed_state, "{label}");
            // What was not told by the killed run is told by this one.
            let report = healed.json();
            let mut known = ids(&report, ["", "breaks"]);
            known.extend(ids(&report, ["carried", "breaks"]));
            if let Ok(told) = serde_json::from_str::<Value>(&told.stdout) {
                known.extend(ids(&told, ["", "breaks"]));
            }
            for id in ids(&finished.json(), ["", "breaks"]) {
                assert!(known.contains(&id), "{label}: {id} was never told");
            }
        }
        let left: Vec<String> = scene
            .names()
            .into_iter()
            .filter(|name| name.starts_with("paysweep.db-"))
            .collect();
        assert!(left.is_empty(), "{label}: {left:?}");
        if is_whole {
            return at;
        }
        at += stride(short);
    }
}

#[test]
fn a_first_run_killed_at_any_write_leaves_the_old_or_the_new_state_and_the_next_one_heals() {
    let calls = sweep(|_| {}, &format!("run --as-of {NOW} -f json"), 9);
    assert!(calls > 40, "{calls} calls");
    println!("{calls} writes of a first run");
}

#[test]
fn a_later_run_killed_at_any_write_leaves_the_old_or_the_new_state_and_the_next_one_heals() {
    let before = |scene: &Scene| {
        assert_eq!(run(scene).code, 1);
        next_night(scene);
    };
    let calls = sweep(before, &format!("run --as-of {NOW} -f json"), 9);
    assert!(calls > 20, "{calls} calls");
    println!("{calls} writes of a later run");
}

#[test]
fn a_watermark_set_back_and_killed_at_any_write_is_where_it_was_or_where_it_was_set() {
    let before = |scene: &Scene| assert_eq!(run(scene).code, 1);
    let line = "watermark rewind 2026-03-09T06:00:00Z --yes --reason again";
    let calls = sweep(before, line, 4);
    assert!(calls > 5, "{calls} calls");
    println!("{calls} writes of a person's word");
}

#[test]
fn a_run_whose_connection_is_reset_at_any_receive_finds_out_what_happened() {
    let line = format!("run --as-of {NOW} -f json");
    let calm = database();
    let calm_scene = shop(Some(&calm));
    assert_eq!(calm_scene.say(&line).code, 1);
    let wanted = state(&calm_scene);
    let mut at = 1;
    let mut resolved = 0;
    loop {
        let database = database();
        let scene = shop(Some(&database));
        let told = injected(&scene, &line, "recvfrom", "error=ECONNRESET", at);
        let log = std::fs::read_to_string(scene.path("strace.log")).expect("a log");
        let label = format!("receive {at}: {} {}", told.code, told.stderr);
        match told.code {
            // The same answer as in peace, since it found out.
            1 => {
                assert_eq!(state(&scene), wanted, "{label}");
                let report = told.json();
                assert_eq!(
                    report["repairs"].as_array().map(Vec::len),
                    Some(1),
                    "{label}"
                );
                resolved += 1;
            }
            // What cannot be found out is said to be so.
            75 => assert!(told.stderr.contains("store"), "{label}"),
            _ => panic!("{label}"),
        }
        let next = run(&scene);
        assert!([0, 1].contains(&next.code), "{label}: {}", next.stderr);
        assert_eq!(state(&scene), wanted, "{label}");
        if !log.contains("(INJECTED)") {
            break;
        }
        at += stride(11);
    }
    assert!(
        at > 30 && resolved > 2,
        "{at} receives, {resolved} resolved"
    );
    println!("{at} receives, {resolved} resolved");
}
