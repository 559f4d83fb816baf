//! The command line from outside: streams, exit codes, and what each command does and does not write.

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use paysweep::time::{Instant, Span};
use serde_json::{Value, json};

use crate::scene::{NOW, Scene, Told, on_both};

/// What the store tells about everything that a rejected or refused run must not have written.
fn memory(scene: &Scene) -> Vec<String> {
    [
        "breaks list -f json",
        "repairs list -f json",
        "watermark show -f json",
    ]
    .map(|line| scene.now(line).stdout)
    .to_vec()
}

fn open_break(scene: &Scene, class: &str) -> String {
    let list = scene
        .now(&format!("breaks list -f json --class {class}"))
        .json();
    list["breaks"][0]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("no {class}: {list}"))
        .to_owned()
}

fn count(list: &Value, name: &str) -> usize {
    list[name].as_array().expect(name).len()
}

/// The report apart from the object `run`.
fn body(report: &str) -> Vec<&str> {
    report
        .lines()
        .filter(|line| !line.starts_with("  \"run\": "))
        .collect()
}

/// The four parts of a failure, and what the first line names.
fn assert_tells(told: &Told, code: i32, parts: &[&str]) {
    assert_eq!(told.code, code, "{told:?}");
    assert_eq!(told.stdout, "", "a failure is no report");
    for part in ["error: "].iter().chain(parts) {
        assert!(
            told.stderr.contains(part),
            "{part:?} is missing:\n{}",
            told.stderr
        );
    }
}

// ---------------------------------------------------------------- streams

#[test]
fn the_report_is_on_stdout_and_off_a_terminal_nothing_else_is_said() {
    let told = Scene::mismatch().now("run");
    assert_eq!((told.code, told.stderr.as_str()), (1, ""));
    assert!(
        told.stdout.starts_with("REVIEW: 1 break needs a person"),
        "{}",
        told.stdout
    );
    assert!(
        !told.stdout.contains(['\r', '\u{1b}']),
        "no bar and no colour off a terminal"
    );
}

#[test]
fn quiet_says_nothing_when_there_is_nothing_to_tell_and_everything_else_as_ever() {
    for line in ["run -q", "run -q -n", "diff -q", "check -q"] {
        let told = Scene::in_order().now(line);
        assert_eq!(
            (told.code, told.stdout.as_str(), told.stderr.as_str()),
            (0, "", ""),
            "{line}"
        );
    }
    let told = Scene::mismatch().now("run -q");
    assert_eq!(told.code, 1);
    assert!(
        told.stdout.contains("amount_mismatch"),
        "a break is told all the same"
    );
}

#[test]
fn json_is_json_however_much_is_logged() {
    let scene = Scene::mismatch();
    for line in [
        "run",
        "run --dry-run",
        "run --include matches,pending,ignored",
        "diff",
        "diff --operations operations.csv --intents intents.csv",
        "breaks list",
        "repairs list",
        "runs list",
        "runs show latest",
        "report latest",
        "watermark show",
        "status",
        "check",
        "explain ch_1",
        "explain A",
        "BREAK",
    ] {
        let line = match line {
            "BREAK" => format!("breaks show {}", open_break(&scene, "amount_mismatch")),
            line => line.to_owned(),
        };
        let mut command = scene.command(&format!(
            "{line} -f json -vv --log-format json --as-of {NOW}"
        ));
        command.env("PAYSWEEP_LOG", "trace");
        let told = Told::from(command.output().expect("it starts"));
        assert!(told.json().is_object(), "{line}");
        assert!(!told.stdout.contains('\u{1b}'), "{line}");
        for log in told.stderr.lines() {
            let entry: Value =
                serde_json::from_str(log).unwrap_or_else(|error| panic!("{error}: {log}"));
            assert!(entry.is_object(), "{log}");
        }
        // The last line tells how it ended, where it did not end with 0.
        let last = told.stderr.lines().last().unwrap_or_default();
        assert_eq!(
            last.contains("\"type\":\"exit\""),
            told.code != 0,
            "{line}: {last}"
        );
    }
    assert!(scene.say("schema report").json().is_object());
    assert!(scene.say("schema config").json().is_object());
    for line in ["init -f json", "profiles list -f json", "migrate -f json"] {
        assert_eq!(scene.say(line).code, 2, "{line} has no JSON, and says so");
    }
}

#[test]
fn in_a_container_of_kubernetes_the_log_is_json_unless_somebody_says_otherwise() {
    let scene = Scene::mismatch();
    for (line, env, is_json) in [
        ("run", "10.0.0.1", true),
        ("run", "", false),
        ("run --log-format text", "10.0.0.1", false),
    ] {
        let mut command = scene.command(&format!("{line} --as-of {NOW}"));
        command.env("KUBERNETES_SERVICE_HOST", env);
        let told = Told::from(command.output().expect("it starts"));
        let is_told = told.stderr.contains("\"type\":\"exit\"");
        assert_eq!(is_told, is_json, "{line} {env:?}: {}", told.stderr);
    }
}

#[test]
fn without_a_terminal_nothing_moves_a_cursor_or_takes_a_line_back() {
    let scene = Scene::mismatch();
    for line in [
        "run",
        "run -f html",
        "run -f markdown",
        "diff",
        "breaks list",
        "repairs list",
        "runs list",
        "report latest",
        "watermark show",
        "status",
        "check",
        "explain ch_1",
        "help",
        "help dates",
        "profiles list",
        "completions bash",
        "nonsense",
        "run --progress log",
        "run --progress auto",
    ] {
        let mut command = scene.command(&format!("{line} --as-of {NOW}"));
        if ["help", "nonsense", "completions"]
            .iter()
            .any(|it| line.starts_with(it))
        {
            command = scene.command(line);
        }
        // Not even where nobody asked for no colour.
        command.env_remove("NO_COLOR");
        let told = Told::from(command.output().expect("it starts"));
        for text in [&told.stdout, &told.stderr] {
            assert!(!text.contains(['\r', '\u{1b}']), "{line}: {text:?}");
        }
    }
}

#[test]
fn init_finds_out_what_the_files_beside_it_say() {
    let scene = Scene::new(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n",
        "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n",
    );
    std::fs::rename(scene.path("operations.csv"), scene.path("march export.csv")).expect("renamed");
    std::fs::rename(scene.path("intents.csv"), scene.path("ours.csv")).expect("renamed");
    let told = scene.say("init new.toml");
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    for part in [
        "march export.csv is read by profile canonical",
        "ours.csv is your own side",
    ] {
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
    }
    let text = std::fs::read_to_string(scene.path("new.toml")).expect("a file");
    assert!(
        text.contains("start   = \"2026-03-09T00:00:00Z\""),
        "{text}"
    );
    for (line, code) in [("check", 0), ("run -n", 0), ("run", 0)] {
        let told = scene.now(&format!("{line} -c new.toml"));
        assert_eq!(told.code, code, "{line}: {} {}", told.stdout, told.stderr);
    }
    // Two files that could be it: nothing is guessed.
    std::fs::copy(scene.path("march export.csv"), scene.path("april.csv")).expect("copied");
    let told = scene.say("init other.toml");
    assert!(
        told.stdout.contains("set profile, files and start"),
        "{}",
        told.stdout
    );
}

#[test]
fn colour_is_there_on_request_and_never_against_no_color_alone() {
    let scene = Scene::mismatch();
    assert!(scene.now("run -n --color always").stdout.contains('\u{1b}'));
    assert!(
        !scene
            .now("run -n --color always -f json")
            .stdout
            .contains('\u{1b}')
    );
}

#[test]
fn the_same_input_and_as_of_give_the_same_bytes_apart_from_the_run() {
    let lists = "-f json --include matches,pending,ignored";
    let [first, second] =
        [Scene::behind(), Scene::behind()].map(|scene| scene.now(&format!("run {lists}")).stdout);
    assert_eq!(body(&first), body(&second));
    let scene = Scene::mismatch();
    let [first, second] = [0, 1].map(|_| scene.now(&format!("diff {lists}")).stdout);
    assert_eq!(body(&first), body(&second));
}

// ---------------------------------------------------------------- exit codes

#[test]
fn zero_is_in_order_and_one_is_a_difference() {
    for (scene, code, name) in [
        (Scene::in_order(), 0, "clean"),
        (Scene::behind(), 1, "repaired"),
        (Scene::mismatch(), 1, "review"),
    ] {
        for line in ["run -n", "diff", "run"] {
            let told = scene.now(&format!("{line} -f json"));
            assert_eq!(told.code, code, "{line} {name}");
            let outcome = &told.json()["outcome"];
            assert_eq!(
                (&outcome["exit_code"], &outcome["name"]),
                (&Value::from(code), &Value::from(name)),
                "{line}"
            );
        }
    }
}

#[test]
fn what_may_not_be_typed_is_2_and_writes_nothing() {
    let scene = Scene::in_order();
    for line in [
        "run --as-of",
        "run --no-such-flag",
        "run --format pdf",
        "run --source other",
        "run --as-of never",
        "run --from 2026-03-09 --to 2026-03-09",
        "run --day 2026-03-09 --month 2026-03",
        "run -c missing.toml",
    ] {
        let told = scene.say(line);
        assert_eq!((told.code, told.stdout.as_str()), (2, ""), "{line}");
        assert!(!told.stderr.is_empty(), "{line}");
    }
    assert_eq!(
        scene.names(),
        ["intents.csv", "operations.csv", "paysweep.toml"]
    );
    let told = scene.now("run --from 2026-03-09 --to 2026-03-09");
    assert!(told.stderr.contains("--day 2026-03-09"), "{}", told.stderr);
}

#[test]
fn a_mistake_in_the_configuration_is_told_with_line_column_and_a_suggestion() {
    let scene = Scene::in_order().with("[guards]\nmax_repair = 5");
    for line in ["run", "check", "diff", "status", "breaks list"] {
        let told = scene.now(line);
        assert_tells(
            &told,
            2,
            &[
                "paysweep.toml:17:1",
                "max_repair",
                "max_repairs",
                "nothing was",
            ],
        );
    }
    assert_eq!(
        scene.names(),
        ["intents.csv", "operations.csv", "paysweep.toml"]
    );
}

#[test]
fn a_file_that_cannot_be_trusted_is_rejected_with_its_place_and_changes_nothing() {
    let scene = Scene::behind();
    assert_eq!(scene.now("run").code, 1);
    let before = memory(&scene);
    scene.operations(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,\"12,50\",EUR,2026-03-09T11:00:05Z,B\n",
    );
    for line in ["run", "run -n", "diff"] {
        let told = scene.now(line);
        assert_tells(
            &told,
            2,
            &[
                "operations.csv:3",
                "amount_minor",
                "12,50",
                "why:",
                "do:",
                "state:",
                "nothing was written",
            ],
        );
    }
    scene.operations("ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n");
    scene.intents("A,charge,1000,EUR,paid,2026-03-09T10:00:00Z,\n");
    let told = scene.now("run");
    assert_tells(
        &told,
        2,
        &[
            "intents.csv:2",
            "status",
            "paid",
            "succeeded",
            "nothing was written",
        ],
    );
    assert_eq!(memory(&scene), before);
    for bytes in ["", "\0\0\0\0"] {
        scene.write("operations.csv", bytes);
        assert_eq!(
            scene.now("run").code,
            2,
            "an empty or damaged file is no empty feed"
        );
    }
    assert_eq!(memory(&scene), before);
}

#[test]
fn too_many_repairs_are_refused_as_a_whole() {
    let scene = Scene::new(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,B\n",
        "A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\nB,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n",
    )
    .with("[guards]\nmax_repairs = 1");
    for line in ["run -n", "run"] {
        let told = scene.now(line);
        assert_tells(&told, 4, &["guard", "max_repairs", "--dry-run", "state:"]);
        let list = scene.now("repairs list -f json").json();
        assert_eq!(count(&list, "repairs"), 0, "{line}");
        assert_eq!(
            count(&scene.now("breaks list -f json").json(), "breaks"),
            0,
            "{line}"
        );
    }
    let marks = scene.now("watermark show -f json").json();
    assert_eq!(marks["watermarks"][0]["watermark"], Value::Null);
}

#[test]
fn a_now_before_the_watermark_is_refused() {
    let scene = Scene::in_order();
    assert_eq!(scene.now("run").code, 0);
    let before = memory(&scene);
    let told = scene.say("run --as-of 2026-03-10T05:59:59Z");
    assert_tells(&told, 4, &["earlier than the watermark", "state:"]);
    assert_eq!(memory(&scene), before);
}

#[tokio::test]
async fn a_database_that_is_not_ours_is_never_touched() {
    use sqlx::{ConnectOptions, Connection};
    let scene = Scene::in_order();
    let mut other = sqlx::sqlite::SqliteConnectOptions::new()
        .filename(scene.path("paysweep.db"))
        .create_if_missing(true)
        .connect()
        .await
        .expect("a database");
    sqlx::query("create table customers (id integer primary key)")
        .execute(&mut other)
        .await
        .expect("a table");
    other.close().await.expect("it closes");
    let before = scene.store();
    for line in ["run", "run -n", "check", "breaks list", "migrate"] {
        let told = scene.say(line);
        assert_eq!(told.code, 10, "{line}: {told:?}");
        assert_eq!(scene.store(), before, "{line}");
    }
    scene.write("paysweep.db", "this was a database once");
    let told = scene.now("run");
    assert_tells(&told, 10, &["paysweep.db"]);
    assert_eq!(
        std::fs::read_to_string(scene.path("paysweep.db")).expect("it is there"),
        "this was a database once"
    );
}

#[test]
fn a_full_disk_behind_stdout_is_undelivered_and_the_run_stands() {
    let scene = Scene::behind();
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let output = scene
        .command(&format!("run --as-of {NOW}"))
        .stdout(full)
        .output()
        .expect("it starts");
    assert_eq!(output.status.code(), Some(6));
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(stderr.contains("report latest"), "{stderr}");
    let list = scene.now("repairs list -f json").json();
    assert_eq!(count(&list, "repairs"), 1);
    // What the run could not tell, the next one does.
    let next = scene.now("run -f json");
    assert_eq!(next.code, 1, "{}", next.stdout);
    assert_eq!(count(&next.json()["carried"], "repairs"), 1);
    assert_eq!(scene.now("run").code, 0);
}

#[test]
fn a_reader_that_goes_away_does_not_change_the_exit_code() {
    for (scene, code) in [(Scene::mismatch(), 1), (Scene::in_order(), 0)] {
        for line in ["run", "breaks list", "--help"] {
            let mut child = scene
                .command(&format!("{line} --as-of {NOW}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts");
            drop(child.stdout.take());
            let output = child.wait_with_output().expect("it ends");
            let expected = if line == "run" { code } else { 0 };
            assert_eq!(output.status.code(), Some(expected), "{line}");
            assert!(output.stderr.is_empty(), "{line}");
        }
    }
}

#[test]
fn a_place_where_no_store_can_be_made_is_neither_success_nor_a_difference() {
    let scene = Scene::in_order();
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("the configuration");
    // A file stands where the folder of the store should be.
    scene.write(
        "paysweep.toml",
        &config.replace("paysweep.db", "intents.csv/paysweep.db"),
    );
    let told = scene.now("run");
    assert!([5, 10, 75].contains(&told.code), "{told:?}");
    assert_eq!(told.stdout, "");
    // A folder that may not be written to. The superuser may always write; there is nothing to test then.
    std::fs::create_dir(scene.path("locked")).expect("a folder");
    std::fs::set_permissions(scene.path("locked"), std::fs::Permissions::from_mode(0o500))
        .expect("a mode");
    if std::fs::write(scene.path("locked/probe"), "").is_err() {
        scene.write(
            "paysweep.toml",
            &config.replace("paysweep.db", "locked/paysweep.db"),
        );
        let told = scene.now("run");
        assert!([5, 10].contains(&told.code), "{told:?}");
    }
}

// ---------------------------------------------------------------- what is written

#[test]
fn a_dry_run_writes_nothing_and_tells_what_the_real_run_would() {
    for scene in [Scene::in_order(), Scene::behind(), Scene::mismatch()] {
        let files = scene.names();
        let dry = scene.now("run -n -f json");
        assert_eq!(scene.names(), files, "no store, no log, no temporary file");
        assert_eq!(scene.now("diff").code, dry.code);
        assert_eq!(scene.names(), files, "diff writes nothing either");
        let real = scene.now("run -f json");
        let (dry_report, real_report) = (dry.json(), real.json());
        assert_eq!(
            (dry.code, &dry_report["outcome"]),
            (real.code, &real_report["outcome"])
        );
        assert_eq!(dry_report["breaks"], real_report["breaks"]);
        for (list, state) in [
            (&dry_report["repairs"], "planned"),
            (&real_report["repairs"], "applied"),
        ] {
            for repair in list.as_array().expect("repairs") {
                assert_eq!(repair["state"], state);
            }
        }
        assert_eq!(
            count(&dry_report, "repairs"),
            count(&real_report, "repairs")
        );
        // On a store that is there, with something new to write.
        scene.operations(
            "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_9,charge,succeeded,700,EUR,2026-03-10T07:00:00Z,Z\n",
        );
        let before = scene.store();
        let later = "--as-of 2026-03-11T06:00:00Z -f json";
        let dry = scene.say(&format!("run -n {later}"));
        assert_eq!(
            scene.say("diff --as-of 2026-03-11T06:00:00Z -q").code,
            1,
            "diff sees the unknown charge"
        );
        assert_eq!(scene.store(), before);
        let real = scene.say(&format!("run {later}"));
        assert_eq!(dry.json()["outcome"], real.json()["outcome"]);
        assert_ne!(scene.store(), before);
    }
}

#[test]
fn a_window_by_hand_never_moves_the_watermark() {
    let scene = Scene::in_order();
    assert_eq!(scene.now("run").code, 0);
    let before = scene.now("watermark show -f json").stdout;
    for line in [
        "run --day 2026-03-09",
        "run --month 2026-03",
        "run --since 2d",
        "run --from 2026-03-09 --through 2026-03-09",
    ] {
        let told = scene.say(&format!("{line} --as-of 2026-03-12T06:00:00Z"));
        assert_eq!(told.code, 0, "{line}: {}{}", told.stdout, told.stderr);
        assert_eq!(scene.now("watermark show -f json").stdout, before, "{line}");
    }
    assert_eq!(scene.say("run --as-of 2026-03-12T06:00:00Z").code, 0);
    assert_ne!(scene.now("watermark show -f json").stdout, before);
}

#[test]
fn a_report_file_is_private_whole_and_replaces_the_old_one() {
    let scene = Scene::mismatch();
    scene.write("report.json", "the old report");
    let told = scene.now("run -o json=report.json -o report.txt");
    assert_eq!(told.code, 1);
    let text = std::fs::read_to_string(scene.path("report.json")).expect("the report");
    let report: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(report["outcome"]["exit_code"], 1);
    assert_eq!(
        std::fs::read_to_string(scene.path("report.txt")).expect("the report"),
        told.stdout
    );
    for name in ["report.json", "report.txt"] {
        let mode = std::fs::metadata(scene.path(name))
            .expect(name)
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert!(
        scene.names().iter().all(|name| !name.starts_with('.')),
        "no temporary file is left: {:?}",
        scene.names()
    );
    let told = scene.say("run -o json=nowhere/report.json --as-of 2026-03-10T07:00:00Z");
    assert_eq!(told.code, 6);
    assert!(told.stderr.contains("nowhere/report.json"));
    assert!(
        told.stdout.contains("amount_mismatch"),
        "a file that fails hides no finding"
    );
}

// ---------------------------------------------------------------- which differences count

#[test]
fn fail_on_decides_which_breaks_lead_to_1() {
    for (flag, behind, mismatch, second_mismatch) in [
        ("", 1, 1, 1),
        ("--fail-on found", 1, 1, 1),
        ("--fail-on open", 0, 1, 1),
        ("--fail-on new", 1, 1, 0),
        ("--fail-on error", 0, 0, 0),
        ("--min-severity critical", 0, 0, 0),
        ("--min-severity high", 1, 1, 1),
    ] {
        let (repaired, open) = (Scene::behind(), Scene::mismatch());
        let code = |scene: &Scene| scene.now(&format!("run {flag}")).code;
        assert_eq!(
            [code(&repaired), code(&open), code(&open)],
            [behind, mismatch, second_mismatch],
            "{flag}"
        );
        assert_eq!(code(&repaired), 0, "{flag}: a repaired break is gone");
    }
}

#[test]
fn an_acknowledged_break_is_silent_until_its_day_and_opens_again_with_other_evidence() {
    let scene = Scene::mismatch();
    assert_eq!(scene.now("run").code, 1);
    let id = open_break(&scene, "amount_mismatch");
    let refused = scene.now(&format!("breaks ack {id} --until 2026-03-12"));
    assert_eq!(refused.code, 2, "a reason is asked for");
    let told = scene.now(&format!(
        "breaks ack {} --until 2026-03-12 --reason asked",
        &id[..12]
    ));
    assert_eq!(told.code, 0, "{}", told.stderr);
    let at = |time: &str| scene.say(&format!("run --as-of {time}")).code;
    assert_eq!(at("2026-03-10T07:00:00Z"), 0);
    assert_eq!(at("2026-03-11T23:59:59Z"), 0);
    assert_eq!(at("2026-03-12T00:00:01Z"), 1);
    let again = scene.say(&format!(
        "breaks ack {id} --until 2026-03-20 --reason asked --as-of 2026-03-12T01:00:00Z"
    ));
    assert_eq!(again.code, 0);
    assert_eq!(at("2026-03-12T02:00:00Z"), 0);
    scene.intents("A,charge,900,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n");
    assert_eq!(
        at("2026-03-12T03:00:00Z"),
        1,
        "another amount is other evidence"
    );
}

#[test]
fn a_closed_break_is_gone_and_opens_again_with_other_evidence() {
    let scene = Scene::mismatch();
    assert_eq!(scene.now("run").code, 1);
    let id = open_break(&scene, "amount_mismatch");
    let told = scene.now(&format!("breaks close {id} --as accepted --reason agreed"));
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(scene.now("run -q").code, 0);
    assert_eq!(count(&scene.now("breaks list -f json").json(), "breaks"), 0);
    let shown = scene.now(&format!("breaks show {id}"));
    assert!(
        shown.stdout.contains("accepted") && shown.stdout.contains("by kim: agreed"),
        "{}",
        shown.stdout
    );
    scene.intents("A,charge,900,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n");
    assert_eq!(scene.say("run --as-of 2026-03-10T07:00:00Z").code, 1);
}

#[test]
fn a_decision_about_several_breaks_is_made_for_all_of_them_or_for_none() {
    let scene = Scene::mismatch();
    assert_eq!(scene.now("run").code, 1);
    let id = open_break(&scene, "amount_mismatch");
    let before = memory(&scene);
    for line in [
        format!("breaks ack {id} ffff --until 2026-03-20 --reason x"),
        format!("breaks close {id} ffff --as accepted --reason x"),
    ] {
        let told = scene.now(&line);
        assert_tells(&told, 2, &["ffff", "state: nothing was written"]);
        assert_eq!(memory(&scene), before, "{line}");
    }
    let close = format!("breaks close {id} {} --as accepted --reason x", &id[..12]);
    let told = scene.now(&close);
    assert_eq!(
        (told.code, told.stdout.lines().count()),
        (0, 1),
        "{}",
        told.stderr
    );
    assert_tells(&scene.now(&close), 2, &["closed already", "state:"]);
}

#[test]
fn one_source_that_fails_does_not_silence_the_other_and_decides_the_exit_code() {
    let scene = Scene::mismatch().with(
        "[source.other]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"other.csv\"]\nstart = \"2026-03-09T00:00:00Z\"",
    );
    for line in ["run -n -f json", "run -f json"] {
        let told = scene.now(line);
        let report = told.json();
        assert_eq!(
            (told.code, &report["outcome"]["name"]),
            (2, &Value::from("rejected"))
        );
        assert!(
            told.stderr.contains("other.csv") && told.stderr.contains("state:"),
            "{}",
            told.stderr
        );
        assert_eq!(report["breaks"][0]["class"], "amount_mismatch");
        assert_eq!(report["sources"].as_array().map(Vec::len), Some(2));
    }
    let marks = scene.now("watermark show -f json").json();
    assert_eq!(marks["watermarks"][0]["watermark"], Value::Null, "other");
    assert_eq!(
        marks["watermarks"][1]["watermark"], "2026-03-10T06:00:00Z",
        "shop"
    );
}

/// The ids of one side in a list of a report.
fn ids(report: &Value, list: &str, side: &str) -> Vec<String> {
    let rows = report[list].as_array().expect(list);
    let mut ids: Vec<String> = rows
        .iter()
        .filter_map(|row| row[side].as_str().filter(|id| !id.is_empty()))
        .map(str::to_owned)
        .collect();
    ids.sort();
    ids
}

const ZOO: &str = "[source.zoo]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"zoo.csv\"]\n\
                   start = \"2026-03-09T00:00:00Z\"\ncomplete_through = \"as-of\"";
const ZOO_HEADER: &str = "operation_id,kind,status,amount_minor,currency,occurred_at,reference\n";

#[test]
fn what_an_unread_source_would_have_answered_waits() {
    let scene = Scene::in_order().with(ZOO);
    scene.write(
        "intents.csv",
        "intent_id,kind,amount_minor,currency,status,created_at,processor_ref,source\n\
         A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1,\n\
         B,charge,2000,EUR,succeeded,2026-03-09T10:00:00Z,,\n\
         C,charge,3000,EUR,succeeded,2026-03-09T10:00:00Z,,zoo\n\
         D,charge,4000,EUR,pending,2026-03-09T10:00:00Z,,zoo\n\
         E,charge,5000,EUR,failed,2026-03-09T10:00:00Z,,\n",
    );
    let line = "-f json --include matches,pending,ignored";
    for command in [format!("run -n {line}"), format!("run {line}")] {
        let told = scene.now(&command);
        assert_eq!(told.code, 2, "{}", told.stderr);
        let report = told.json();
        assert_eq!(ids(&report, "matches", "intent_id"), ["A"]);
        assert_eq!(ids(&report, "pending", "intent_id"), ["B", "C", "D"]);
        assert_eq!(ids(&report, "ignored", "intent_id"), ["E"]);
        assert_eq!(report["breaks"].as_array().map(Vec::len), Some(0));
        assert_eq!(report["accounting"]["intents"]["read"], 5);
        assert_eq!(report["accounting"]["intents"]["pending"], 3);
    }
    scene.write("zoo.csv", ZOO_HEADER);
    let report = scene.now(&format!("run {line}")).json();
    let missing = ids(&report, "breaks", "intent_id");
    assert_eq!(missing, ["B", "C"], "now the source was read whole");
}

#[test]
fn a_hold_at_one_source_and_the_payment_at_another_are_one_payment() {
    for status in ["pending", "succeeded"] {
        let scene = Scene::new(
            "au_1,authorization,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n",
            &format!("A,charge,1000,EUR,{status},2026-03-09T10:00:00Z,\n"),
        )
        .with(ZOO);
        scene.write(
            "zoo.csv",
            &format!("{ZOO_HEADER}ch_1,charge,succeeded,1000,EUR,2026-03-09T10:01:00Z,A\n"),
        );
        for command in ["diff", "run -n", "run", "run"] {
            let told = scene.now(&format!(
                "{command} -f json --include matches,pending,ignored"
            ));
            let report = told.json();
            let classes: Vec<&str> = report["breaks"]
                .as_array()
                .expect("breaks")
                .iter()
                .filter_map(|line| line["class"].as_str())
                .collect();
            assert!(
                classes.iter().all(|class| *class == "status_behind"),
                "{status}, {command}: {classes:?}"
            );
            assert!(
                ids(&report, "pending", "intent_id").is_empty(),
                "{status}, {command}"
            );
            assert_eq!(
                report["accounting"]["intents"]["read"], 1,
                "{status}, {command}"
            );
            assert_eq!(
                report["accounting"]["intents"]["matched"], 1,
                "{status}, {command}"
            );
        }
    }
}

#[test]
fn a_local_row_whose_time_cannot_be_right_is_told_in_every_run_until_a_person_closes_it() {
    for at in [
        "1026-03-09T10:00:00Z",
        "1970-01-01T00:00:00Z",
        "2206-03-09T10:00:00Z",
    ] {
        for status in ["succeeded", "failed"] {
            let scene = Scene::new(
                "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n",
                &format!(
                    "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n\
                     B,charge,2000,EUR,{status},{at},\n"
                ),
            );
            for command in ["diff", "run -n", "run", "run"] {
                let report = scene.now(&format!("{command} -f json")).json();
                assert_eq!(
                    ids(&report, "breaks", "intent_id"),
                    ["B"],
                    "{at}, {status}, {command}"
                );
                assert_eq!(report["breaks"][0]["class"], "invalid_record");
                assert_eq!(report["accounting"]["intents"]["read"], 2);
            }
            let report = scene.now("run -f json").json();
            let id = report["breaks"][0]["id"].as_str().expect("an id");
            let close = format!("breaks close {id} --as accepted --reason known");
            assert_eq!(scene.now(&close).code, 0, "{close}");
            assert_eq!(scene.now("run").code, 0, "{at}, {status}");
        }
    }
}

#[test]
fn a_payment_at_two_sources_is_a_duplicate_in_a_dry_run_as_well() {
    let paid = "charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n";
    let scene = Scene::new(
        &format!("ch_1,{paid}"),
        "A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n",
    )
    .with(ZOO);
    scene.write("zoo.csv", &format!("{ZOO_HEADER}ch_2,{paid}"));
    for command in ["diff", "run -n", "run", "run"] {
        let report = scene.now(&format!("{command} -f json")).json();
        let found = report["breaks"].as_array().expect("breaks");
        let duplicates = found
            .iter()
            .filter(|line| line["class"] == "duplicate_charge");
        assert_eq!(duplicates.count(), 1, "{command}: {found:?}");
        assert!(
            found
                .iter()
                .all(|line| line["class"] != "missing_processor"),
            "{command}: {found:?}"
        );
    }
}

#[test]
fn text_of_a_file_cannot_reach_the_terminal_as_commands() {
    let scene = Scene::new(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,\"\u{1b}[2J\u{202e}evil\"\n",
        "\"A\u{1b}[31m\",charge,900,EUR,succeeded,2026-03-09T10:00:00Z,\n",
    );
    for line in [
        "run --include matches,pending,ignored",
        "breaks list",
        "diff",
        "report latest",
    ] {
        let told = scene.now(line);
        for text in [&told.stdout, &told.stderr] {
            assert!(!text.contains(['\u{1b}', '\u{202e}']), "{line}: {text:?}");
        }
    }
}

#[test]
fn a_stretch_that_is_skipped_stays_a_break_until_a_person_closes_it() {
    let scene = Scene::in_order();
    assert_eq!(scene.now("run").code, 0);
    let later = "--as-of 2026-03-15T06:00:00Z";
    let set = "watermark set 2026-03-14T00:00:00Z --source shop";
    assert_eq!(
        scene.say(&format!("{set} --reason lost {later}")).code,
        2,
        "without --yes it is not meant"
    );
    let told = scene.say(&format!("{set} --yes --reason lost {later}"));
    assert_eq!(told.code, 0, "{}", told.stderr);
    let id = open_break(&scene, "coverage_gap");
    for _ in 0..2 {
        assert_eq!(scene.say(&format!("run {later}")).code, 1);
    }
    let told = scene.say(&format!(
        "breaks close {id} --as accepted --reason agreed {later}"
    ));
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert_eq!(scene.say(&format!("run {later}")).code, 0);
}

#[test]
fn a_watermark_that_goes_back_reads_again_and_writes_nothing_twice() {
    let scene = Scene::behind();
    assert_eq!(scene.now("run").code, 1);
    let told = scene.now("watermark rewind 2026-03-09T00:00:00Z --yes --reason again");
    assert_eq!(told.code, 0, "{}", told.stderr);
    let next = scene.say("run -f json --as-of 2026-03-10T07:00:00Z");
    let report = next.json();
    assert_eq!(
        (
            next.code,
            count(&report, "repairs"),
            count(&report, "breaks")
        ),
        (0, 0, 0)
    );
    assert_eq!(
        report["sources"][0]["watermark_before"],
        "2026-03-09T00:00:00Z"
    );
    assert_eq!(
        report["sources"][0]["watermark_after"],
        "2026-03-10T07:00:00Z"
    );
    for (line, why) in [
        (
            "watermark set 2030-01-01T00:00:00Z --yes --reason x",
            "later than now",
        ),
        (
            "watermark rewind 2026-03-11T00:00:00Z --yes --reason x",
            "forward is no rewind",
        ),
    ] {
        assert!([2, 4].contains(&scene.now(line).code), "{why}: {line}");
    }
}

// ---------------------------------------------------------------- the other commands

#[test]
fn intents_can_be_kept_in_the_store() {
    let scene = Scene::behind();
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("the configuration");
    let config = config.replace("[intents]\nkind = \"csv\"", "[intents]\nkind = \"store\"");
    scene.write(
        "paysweep.toml",
        &config.replace("\nfile = \"intents.csv\"", ""),
    );
    let told = scene.now("intents import intents.csv");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(told.stdout.contains("1 new"), "{}", told.stdout);
    let run = scene.now("run -f json");
    assert_eq!(
        (run.code, count(&run.json(), "repairs")),
        (1, 1),
        "{}",
        run.stderr
    );
    let again = scene.now("intents import intents.csv");
    assert!(again.stdout.contains("1 unchanged"), "{}", again.stdout);
    assert_eq!(
        scene.now("run").code,
        0,
        "a column that did not change keeps the repaired value"
    );
    assert_eq!(scene.now("intents import operations.csv").code, 2);
}

#[test]
fn a_run_key_gives_the_stored_outcome_again() {
    let scene = Scene::behind();
    let first = scene.now("run --run-key night-1 -f json");
    assert_eq!(first.code, 1);
    let before = scene.store();
    let second = scene.now("run --run-key night-1 -f json");
    assert_eq!((second.code, &second.stdout), (1, &first.stdout));
    assert_eq!(scene.store(), before, "nothing is written");
    let runs = scene.now("runs list -f json").json();
    assert_eq!(count(&runs, "runs"), 1);
    let other = scene.say("run --run-key night-1 --as-of 2026-03-10T07:00:00Z");
    assert_eq!((other.code, other.stdout.as_str()), (2, ""));
    assert!(other.stderr.contains("night-1"), "{}", other.stderr);
    assert_eq!(scene.now("run --run-key night-2").code, 0);
}

#[test]
fn what_init_writes_passes_check_once_the_files_are_there() {
    let scene = Scene::empty();
    assert_eq!(scene.say("init").code, 0);
    let missing = scene.say("check");
    assert_eq!(missing.code, 2, "{}", missing.stdout);
    assert!(missing.stdout.contains("FAIL"), "{}", missing.stdout);
    scene.operations("");
    scene.intents("");
    let told = scene.say("check");
    assert_eq!(told.code, 0, "{}", told.stdout);
    assert_eq!(
        scene.names(),
        ["intents.csv", "operations.csv", "paysweep.toml"],
        "check writes nothing"
    );
    scene.write("paysweep.toml", "# mine");
    assert_eq!(scene.say("init").code, 2);
    assert_eq!(
        std::fs::read_to_string(scene.path("paysweep.toml")).expect("it is there"),
        "# mine"
    );
}

#[test]
fn a_feed_without_rows_is_no_error() {
    let scene = Scene::new("", "");
    assert_eq!(scene.now("run").code, 0);
}

#[test]
fn a_stored_report_is_shown_again_as_it_was() {
    let scene = Scene::mismatch();
    let [table, json] = ["table", "json"].map(|format| {
        let told = scene.now(&format!("run -f {format}"));
        let again = scene.now(&format!("report latest -f {format}"));
        assert_eq!((again.code, &again.stdout), (0, &told.stdout));
        told.stdout
    });
    assert!(table.starts_with("REVIEW") && json.starts_with('{'));
}

#[test]
fn status_is_1_when_nothing_was_read_lately() {
    let scene = Scene::in_order();
    assert_eq!(scene.say("status").code, 1, "never read");
    // The run ends by the machine's clock, whatever its --as-of: freshness is about when it ran.
    assert_eq!(scene.say("run").code, 0);
    let told = scene.say("status -q");
    assert_eq!((told.code, told.stdout.as_str()), (0, ""), "{told:?}");
    assert_eq!(scene.say("status --as-of 2099-01-01").code, 1);
}

#[test]
fn of_runs_at_once_exactly_one_has_an_effect() {
    let scene = Scene::behind();
    let children: Vec<_> = (0..4)
        .map(|_| {
            scene
                .command(&format!("run -f json --as-of {NOW}"))
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("it starts")
        })
        .collect();
    let told: Vec<Told> = children
        .into_iter()
        .map(|child| Told::from(child.wait_with_output().expect("it ends")))
        .collect();
    let effects = told
        .iter()
        .filter(|told| told.code == 1)
        .map(|told| count(&told.json(), "repairs"))
        .sum::<usize>();
    assert_eq!(effects, 1, "{told:?}");
    for told in &told {
        assert!([0, 1, 11].contains(&told.code), "{told:?}");
        if told.code == 11 {
            assert!(told.stderr.contains("state:"), "{}", told.stderr);
        }
    }
    let list = scene.now("repairs list -f json").json();
    assert_eq!(count(&list, "repairs"), 1);
    assert_eq!(scene.now("run").code, 0, "and nothing is left behind");
}

#[test]
fn no_secret_comes_out_anywhere() {
    const CANARY: &str = "canary-7f3a";
    let scene = Scene::mismatch();
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("the configuration");
    let referred = config.replace(
        "url = \"sqlite://paysweep.db\"",
        "url = { env = \"PAYSWEEP_STORE_URL\" }",
    );
    let literal = config.replace(
        "sqlite://paysweep.db",
        &format!("postgres://pay:{CANARY}@db.example.test/pay"),
    );
    let broken = config.replace(
        "url = \"sqlite://paysweep.db\"",
        &format!("url = \"postgres://pay:{CANARY}@db\" and more"),
    );
    let mut said = BTreeSet::new();
    for text in [referred, literal, broken] {
        scene.write("paysweep.toml", &text);
        for line in [
            "run -vv",
            "check -vv --log-format json",
            "breaks list -vv",
            "status",
            "--help",
            "run --help",
        ] {
            for url in [
                format!("postgres://pay:{CANARY}@db.example.test/pay"),
                format!("{CANARY}://x"),
                CANARY.to_owned(),
            ] {
                let told = Told::from(
                    scene
                        .command(line)
                        .env("PAYSWEEP_STORE_URL", url)
                        .env("PAYSWEEP_CONFIG", "paysweep.toml")
                        .output()
                        .expect("it starts"),
                );
                for text in [&told.stdout, &told.stderr] {
                    assert!(!text.contains(CANARY), "{line}: {text}");
                }
                said.insert(told.code);
            }
        }
    }
    assert_eq!(
        said,
        BTreeSet::from([0, 2, 75]),
        "help, refusals, and a database that is not there"
    );
}

#[test]
fn what_is_open_about_an_intent_without_a_source_is_not_hidden() {
    let scene = Scene::new("", "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,\n");
    assert_eq!(scene.now("run").code, 1);
    let status = scene.now("status");
    assert!(
        status.stdout.contains("1 open breaks about intents"),
        "{status:?}"
    );
    assert_eq!(
        scene.now("status -f json").json()["open_breaks_without_source"],
        1
    );
    let listed = scene.now("breaks list --source shop");
    assert!(listed.stdout.contains("missing_processor"), "{listed:?}");
}

#[test]
fn the_start_of_a_source_is_nothing_that_was_read() {
    // The only row lies before the start, so nothing says that the files reach as far as the intent.
    let scene = Scene::in_order();
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("the file");
    scene.write("paysweep.toml", &config.replace("as-of", "last-row"));
    scene.operations("au_1,authorization,succeeded,1000,EUR,2026-03-08T04:01:00Z,A\n");
    scene.intents("A,charge,1000,EUR,succeeded,2026-03-08T04:00:00Z,\n");
    let first = scene.now("run");
    let again = scene.now("run");
    assert_eq!((first.code, again.code), (0, 0), "{first:?} {again:?}");
}

#[test]
fn a_numbered_report_that_is_missing_between_two_runs_is_a_gap_until_a_person_accepts_it() {
    on_both(|database| {
        let text = paysweep::processor::built_in("canonical").expect("built in");
        let text = text.replace("[csv]\n", "[csv]\nseries = 'batch_(\\d+)'\n");
        let scene = Scene::in_order().stored(database, "30s");
        scene.write("own.toml", &text);
        let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
        let config = config
            .replace("\"canonical\"", "\"own.toml\"")
            .replace("operations.csv", "batch_*.csv");
        scene.write("paysweep.toml", &config);
        let rows = std::fs::read_to_string(scene.path("operations.csv")).expect("a file");
        scene.write("batch_7.csv", &rows);
        assert_eq!(scene.now("run").code, 0);
        // The next night brings number 9, with the older files kept or moved away.
        scene.write("batch_9.csv", &rows.replace("ch_1", "ch_9"));
        for is_kept in [true, false] {
            if !is_kept {
                std::fs::remove_file(scene.path("batch_7.csv")).expect("removed");
            }
            for line in ["run", "run -n"] {
                let told = scene.now(line);
                assert_eq!(told.code, 4, "{line}: {told:?}");
                assert!(
                    told.stderr.contains("number 8 is missing"),
                    "{}",
                    told.stderr
                );
                assert!(
                    told.stderr.contains("the watermark of shop stays"),
                    "{}",
                    told.stderr
                );
            }
        }
        // A range by hand reads what there is, and remembers nothing.
        let range = "run --from 2026-03-09 --to 2026-03-10";
        assert_ne!(scene.now(range).code, 4);
        assert_eq!(scene.now("run").code, 4);
        let set = "watermark set 2026-03-10T06:30:00Z --source shop --yes --reason lost";
        let told = scene.say(&format!("{set} --as-of 2026-03-10T07:00:00Z"));
        assert_eq!(told.code, 0, "{told:?}");
        let told = scene.say("run --as-of 2026-03-10T07:00:00Z");
        assert_ne!(told.code, 4, "{told:?}");
        // What is done by hand leaves no report, and is not taken for the latest one.
        let report = scene.say("report latest").stdout;
        let repin = scene.say("watermark repin --source shop --yes --reason x");
        assert_eq!(repin.code, 0, "{repin:?}");
        assert_eq!(scene.say("report latest").stdout, report);
        // From here on the series is followed again.
        scene.write("batch_11.csv", &rows.replace("ch_1", "ch_11"));
        std::fs::remove_file(scene.path("batch_9.csv")).expect("removed");
        assert_eq!(scene.say("run --as-of 2026-03-10T08:00:00Z").code, 4);
        scene.write("batch_10.csv", &rows.replace("ch_1", "ch_10"));
        assert_ne!(scene.say("run --as-of 2026-03-10T08:00:00Z").code, 4);
    });
}

#[test]
fn a_refund_that_our_own_side_records_a_night_late_takes_the_place_of_the_recorded_one() {
    let intents = "intent_id,kind,amount_minor,currency,status,created_at,processor_ref,parent_intent_id\n\
        A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1,\n";
    let operations = "operation_id,kind,status,amount_minor,currency,occurred_at,reference,parent_id\n\
        ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A,\n\
        re_1,refund,succeeded,-1000,EUR,2026-03-09T11:00:00Z,R,ch_1\n";
    on_both(|database| {
        for reference in ["R", ""] {
            let scene = Scene::in_order().stored(database, "30s");
            scene.write(
                "operations.csv",
                &operations.replace(",R,", &format!(",{reference},")),
            );
            scene.write("intents.csv", intents);
            let report = scene.now("run -f json").json();
            assert_eq!(report["repairs"][0]["action"], "record_refund", "{report}");
            let late = format!("{intents}R,refund,1000,EUR,succeeded,2026-03-09T10:59:00Z,,A\n");
            scene.write("intents.csv", &late);
            for _ in 0..2 {
                let report = scene.say("run -f json --as-of 2026-03-10T12:00:00Z").json();
                assert_eq!(report["outcome"]["exit_code"], 0, "{reference}: {report}");
                assert_eq!(report["accounting"]["intents"]["read"], 2);
            }
            if database.is_some() {
                break;
            }
        }
    });
}

#[test]
fn check_tells_the_policy_in_force_and_judges_how_long_a_request_is_sent_again() {
    let line = |scene: &Scene, name: &str| {
        let told = scene.say("check");
        let line = told.stdout.lines().find(|line| line.contains(name));
        line.unwrap_or_else(|| panic!("{name}: {told:?}"))
            .to_owned()
    };
    let scene = Scene::in_order().with(
        "[repair]\nfour_eyes = true\nstatus_behind = { max_amount = { EUR = \"500\" }, min_age = \"2h\" }",
    );
    let told = line(&scene, "repair status_behind");
    assert!(
        told.ends_with("auto (max_amount 500.00 EUR; min_age 2h)"),
        "{told}"
    );
    assert!(line(&scene, "repair missing_local").ends_with("auto"));
    assert!(line(&scene, "repair approval").contains("PAYSWEEP_USER"));
    // Mollie recognises a request for an hour; four fifths of it count.
    for (profile, retry_for, verdict, rule) in [
        (
            "mollie.settlement",
            "48m",
            "ok",
            "retry_for 48m ≤ 0.8 × 1h = 48m",
        ),
        (
            "mollie.settlement",
            "49m",
            "FAIL",
            "retry_for 49m ≤ 0.8 × 1h = 48m",
        ),
        ("square.transactions", "1m", "FAIL", "publishes no time"),
        ("amazonpay.settlement", "60d", "ok", "always"),
    ] {
        let scene = Scene::in_order();
        let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
        let config = config
            .replace("\"canonical\"", &format!("\"{profile}\""))
            .replace(
                "[intents]",
                &format!("[intents]\nretry_for = \"{retry_for}\""),
            );
        scene.write("paysweep.toml", &config);
        let told = line(&scene, "source shop retries");
        assert!(told.starts_with(verdict) && told.contains(rule), "{told}");
    }
}

#[test]
fn what_lies_in_the_lag_is_kept_and_judged_when_the_window_reaches_it() {
    // Each night brings a file of its own: what the first one dropped would never be seen again.
    for (lag, early) in [
        ("2h", "2026-03-09T11:00:00Z"),
        ("0s", "2026-03-09T12:00:00Z"),
        ("0s", "2026-03-09T13:30:00Z"),
    ] {
        for status in ["succeeded", "pending"] {
            for lookback in ["72h", "0s"] {
                let scene = Scene::new(&format!("ch1,charge,{status},5000,EUR,{early},\n"), "");
                let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
                let spans = format!("\"as-of\"\nlag = \"{lag}\"\nlookback = \"{lookback}\"\n");
                scene.write("paysweep.toml", &config.replace("\"as-of\"\n", &spans));
                let case = format!("{lag}, {early}, {status}, {lookback}");
                let tell = |at: &str| {
                    let line = format!("run -f json --include pending --as-of {at}");
                    let report = scene.say(&line).json();
                    let read = &report["accounting"]["operations"]["read"];
                    let classes: Vec<String> = report["breaks"]
                        .as_array()
                        .expect("breaks")
                        .iter()
                        .map(|line| format!("{} {}", line["class"], line["operation_id"]))
                        .collect();
                    (read.as_u64().expect("a number"), classes)
                };
                assert_eq!(tell("2026-03-09T12:00:00Z"), (0, vec![]), "{case}");
                assert_eq!(tell("2026-03-09T12:00:00Z"), (0, vec![]), "again: {case}");
                scene.operations("f2,fee,succeeded,-1,EUR,2026-03-10T09:00:00Z,\n");
                let (read, classes) = tell("2026-03-10T12:00:00Z");
                assert_eq!(read, 2, "{case}");
                match status {
                    "succeeded" => {
                        assert_eq!(classes, ["\"missing_local\" \"ch1\""], "{case}");
                    }
                    _ => assert!(classes.is_empty(), "{case}: {classes:?}"),
                }
            }
        }
    }
}

#[test]
fn a_row_that_moved_on_within_the_lag_counts_as_it_moved_on() {
    let at = "2026-03-09T11:00:00Z";
    let scene = Scene::new(&format!("ch1,charge,pending,5000,EUR,{at},\n"), "");
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a file");
    let config = config.replace(
        "\"as-of\"\n",
        "\"as-of\"\nlag = \"2h\"\nlookback = \"0s\"\n",
    );
    scene.write("paysweep.toml", &config);
    assert_eq!(scene.say("run --as-of 2026-03-09T12:00:00Z").code, 0);
    scene.operations(&format!("ch1,charge,succeeded,5000,EUR,{at},\n"));
    let told = scene.say("run --as-of 2026-03-09T12:30:00Z -f json");
    assert_eq!(told.json()["sources"][0]["operations"], 0, "{told:?}");
    scene.operations("f2,fee,succeeded,-1,EUR,2026-03-10T09:00:00Z,\n");
    let report = scene.say("run --as-of 2026-03-10T12:00:00Z -f json").json();
    assert_eq!(ids(&report, "breaks", "operation_id"), ["ch1"], "{report}");
    assert_eq!(report["breaks"][0]["class"], "missing_local");
}

#[test]
fn reports_of_old_runs_are_forgotten_and_what_somebody_needs_stays() {
    on_both(|database| {
        let scene = Scene::mismatch().stored(database, "60s");
        // Each night the open break is there; the first run saw it first.
        for day in ["10", "11", "12", "13"] {
            let told = scene.say(&format!("run -q --as-of 2026-03-{day}T06:00:00Z"));
            assert_eq!(told.code, 1, "{}", told.stderr);
        }
        let listed = scene.say("runs list -f json").json()["runs"].clone();
        let ids: Vec<&str> = (listed.as_array().expect("a list").iter())
            .map(|run| run["run_id"].as_str().expect("an id"))
            .collect();
        // All of them began at the test's own time; a day later they are old.
        let began = listed[3]["started_at"].as_str().expect("a time");
        let began = Instant::parse(began).expect("RFC 3339");
        let later = |hours: i64| began.plus(Span::hours(hours));
        let untouched = scene.say(&format!("runs prune --keep-within 1d --as-of {}", later(1)));
        assert_eq!(untouched.code, 0, "{}", untouched.stderr);
        assert!(
            untouched.stdout.starts_with("0 reports of runs before"),
            "{}",
            untouched.stdout
        );
        let line = format!("runs prune --keep-within 1d --as-of {}", later(48));
        let planned = scene.say(&format!("{line} -n -f json")).json();
        assert_eq!(planned["prunable"]["reports"], 2, "{planned}");
        assert_eq!(planned["removed"]["reports"], 0);
        assert!(
            planned["prunable"]["bytes"].as_u64() > Some(1000),
            "{planned}"
        );
        let kept = json!({ "newest": 1, "of_open_breaks": 1, "untold": 0 });
        assert_eq!(planned["kept"], kept);
        assert_eq!(scene.say(&format!("report {} -f json", ids[1])).code, 0);
        let told = scene.say(&line);
        assert!(
            told.stdout.starts_with("2 reports of runs before"),
            "{}",
            told.stdout
        );
        assert!(
            told.stdout
                .contains("kept: 1 report, of runs that first saw a break"),
            "{}",
            told.stdout
        );
        // The newest and the one that first saw the break are there, the others say what became of them.
        for (id, code) in [(ids[0], 0), (ids[1], 2), (ids[2], 2), (ids[3], 0)] {
            let report = scene.say(&format!("report {id} -f json"));
            assert_eq!(report.code, code, "{id}: {}", report.stderr);
            if code == 2 {
                assert!(report.stderr.contains("was pruned at"), "{}", report.stderr);
                let shown = scene.say(&format!("runs show {id}"));
                assert!(shown.stdout.contains("report pruned"), "{}", shown.stdout);
                let shown = scene.say(&format!("runs show {id} -f json")).json();
                assert!(
                    shown["report_pruned_at"].is_string() && shown["exit_code"] == 1,
                    "{shown}"
                );
            }
        }
        assert_eq!(
            scene.say("runs list -f json").json()["runs"]
                .as_array()
                .map(Vec::len),
            Some(4)
        );
        assert!(scene.say(&line).stdout.starts_with("0 reports"));
        // Nothing else is missing: the break is open, the ledger is whole, the next night goes on.
        assert_eq!(count(&scene.say("breaks list -f json").json(), "breaks"), 1);
        let next = scene.say("run -f json --as-of 2026-03-14T06:00:00Z").json();
        assert_eq!(next["breaks"][0]["new"], false, "{next}");
        // Once a person closed the break, nobody needs its first report.
        let id = next["breaks"][0]["id"].as_str().expect("an id");
        scene.say(&format!("breaks close {id} --as accepted --reason seen"));
        let told = scene.say(&line);
        assert!(told.stdout.starts_with("2 reports"), "{}", told.stdout);
    });
}

#[test]
fn how_much_history_is_kept_is_said_by_somebody() {
    let scene = Scene::in_order();
    scene.now("run");
    let told = scene.now("runs prune");
    assert_eq!(told.code, 2, "{}", told.stdout);
    assert!(told.stderr.contains("keep = "), "{}", told.stderr);
    let scene = scene.with("[report]\nkeep = \"400d\"");
    let told = scene.now("runs prune");
    assert_eq!(told.code, 0, "{}", told.stderr);
    assert!(
        told.stdout
            .starts_with("0 reports of runs before 2025-02-03T06:00:00Z removed"),
        "{}",
        told.stdout
    );
}

#[test]
fn what_a_profile_leaves_open_is_typed_behind_diff_and_what_it_says_is_not() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/sample-data");
    let scene = Scene::empty();
    let diff = |profile: &str, folder: &str, more: &str| {
        scene.now(&format!(
            "diff -f json --profile {profile} --operations {root}/{folder}/export.csv --intents {root}/{folder}/intents.csv {more}"
        ))
    };
    // A zone and a currency that nobody could guess.
    for (profile, folder, flag) in [
        ("wise.statement", "wise/statement", "--zone Europe/Paris"),
        ("klarna.settlement", "klarna/settlement", "--currency SEK"),
    ] {
        let told = diff(profile, folder, "");
        assert_eq!(told.code, 2, "{}", told.stdout);
        let key = flag.split(' ').next().expect("a flag");
        assert!(told.stderr.contains(&format!("{key} ")), "{}", told.stderr);
        let told = diff(profile, folder, flag);
        assert!(told.code < 2, "{}", told.stderr);
        assert!(told.json()["summary"]["operations"].as_u64() > Some(0));
    }
    let told = diff(
        "wise.statement",
        "wise/statement",
        "--zone UTC --currency EUR",
    );
    assert_eq!(told.code, 2);
    assert!(
        told.stderr
            .contains("--currency: profile wise.statement says by itself"),
        "{}",
        told.stderr
    );
    // The order of day and month, in a file that proves none, and our own key in another column.
    let head = "Date,Time,TimeZone,Type,Status,Currency,Gross,Fee,Net,Transaction ID,Shop Ref";
    scene.write(
        "download.csv",
        &format!(
            "{head}\n03/09/2026,10:00:00,UTC,Website Payment,Completed,EUR,10.00,0.00,10.00,T1,A\n"
        ),
    );
    scene.intents("A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,\n");
    let line = "diff -f json --profile paypal.activity --operations download.csv --intents intents.csv --complete-through as-of";
    let told = scene.now(line);
    assert_eq!(told.code, 2);
    assert!(told.stderr.contains("--date-order"), "{}", told.stderr);
    let told = scene.now(&format!(
        "{line} --date-order month-first --reference {}",
        "Shop_Ref"
    ));
    assert_eq!(told.code, 2, "there is no such column");
    let command = |order: &str| {
        let mut command = scene.command(&format!(
            "{line} --as-of 2026-09-04T00:00:00Z --date-order {order} --reference"
        ));
        command.arg("Shop Ref");
        Told::from(command.output().expect("it starts"))
    };
    let told = command("month-first");
    assert_eq!(
        (told.code, told.json()["summary"]["matched"].as_u64()),
        (0, Some(1)),
        "{}",
        told.stdout
    );
    // Read day first it happened half a year later: the same payment all the same, as it says so itself.
    let told = command("day-first");
    assert_eq!(told.json()["summary"]["matched"], 1, "{}", told.stdout);
    // The profile generic takes them as the words of its layout.
    scene.write(
        "own.csv",
        "id,what,amount,at,ref\nt1,charge,10.00,09/03/2026 10:00,A\n",
    );
    let line = "diff --profile generic --operations own.csv --intents intents.csv --column operation_id=id --column kind=what \
        --column amount=amount --column occurred_at=at --column reference=ref --layout unit=major --layout decimal=. \
        --layout time_format=%d/%m/%Y_%H:%M --complete-through as-of -f json";
    let generic = |more: &str| {
        let line = format!("{line} --as-of {NOW} {more}");
        let mut command = scene.command("");
        let words = line
            .split_whitespace()
            .map(|word| word.replace("%Y_%H", "%Y %H"));
        Told::from(command.args(words).output().expect("it starts"))
    };
    assert_eq!(
        generic("").code,
        2,
        "nobody says in which zone and currency"
    );
    let told = generic("--zone UTC --currency EUR");
    assert_eq!(
        (told.code, told.stderr.as_str()),
        (0, ""),
        "{}",
        told.stdout
    );
    let told = generic("--zone UTC --currency EUR --date-order day-first");
    assert!(told.stderr.contains("time_format="), "{}", told.stderr);
}

#[test]
fn a_running_balance_of_a_download_ties_out_or_proves_nothing() {
    let head = "Date,Time,TimeZone,Type,Status,Currency,Gross,Fee,Net,Transaction ID,Invoice Number,Balance";
    let row = |n: u32, status: &str, net: &str, balance: &str| {
        format!(
            "03/13/2026,10:0{n}:00,UTC,Website Payment,{status},EUR,{net},0.00,{net},T{n},O{n},{balance}\n"
        )
    };
    let whole = [
        row(1, "Completed", "10.00", "110.00"),
        row(2, "Completed", "20.00", "130.00"),
        row(3, "Pending", "99.00", "130.00"),
        row(4, "Completed", "5.00", "135.00"),
    ];
    let scene = Scene::empty();
    scene.intents("");
    let balance = |rows: &[String]| {
        scene.write("download.csv", &format!("{head}\n{}", rows.concat()));
        let told = scene.say("diff -f json --profile paypal.activity --operations download.csv --intents intents.csv --as-of 2026-03-14T00:00:00Z");
        assert_eq!(told.code, 1, "{}", told.stderr);
        let checks = told.json()["checks"].clone();
        let checks = checks.as_array().expect("a list").iter();
        let mut found = checks.filter(|check| check["name"] == "balance diff");
        found.next().map(|check| {
            let word = |key: &str| check[key].as_str().expect("a text").to_owned();
            (word("status"), word("detail"))
        })
    };
    let verified = balance(&whole).expect("a check");
    assert_eq!(verified.0, "pass");
    assert!(
        verified
            .1
            .starts_with("verified: the running balance of 3 rows"),
        "{}",
        verified.1
    );
    // Newest first, as others export it.
    let turned: Vec<String> = whole.iter().rev().cloned().collect();
    assert_eq!(balance(&turned).expect("a check").0, "pass");
    // A row is filtered out, or missing: nobody can tell, so it is no alarm.
    let filtered = [whole[0].clone(), whole[3].clone()];
    let unverified = balance(&filtered).expect("a check");
    assert_eq!(unverified.0, "info");
    assert!(
        unverified.1.starts_with("unverified: download.csv:3 "),
        "{}",
        unverified.1
    );
    // Something that is no amount, or no such column at all, says nothing and refuses nothing.
    assert_eq!(balance(&[row(1, "Completed", "10.00", "n/a")]), None);
    let bare: Vec<String> = whole
        .iter()
        .map(|row| format!("{}\n", row.trim_end().rsplit_once(',').expect("a cell").0))
        .collect();
    scene.write(
        "bare.csv",
        &format!("{}\n{}", head.replace(",Balance", ""), bare.concat()),
    );
    let told = scene.say("diff -f json --profile paypal.activity --operations bare.csv --intents intents.csv --as-of 2026-03-14T00:00:00Z");
    assert!(!told.stdout.contains("running balance"), "{}", told.stdout);
}
