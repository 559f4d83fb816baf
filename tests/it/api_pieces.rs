//! A long way to catch up is read in pieces, and each piece that was written stands: it is not read again, whatever happens
//! to the next one.

use super::api::{charge, check_of, repairs, stripe};
use super::fake::{Fake, Fault};
use super::scene::{Scene, Told};

/// The hour of a day of March 2026, counted from the ninth.
fn clock(day: i64, hour: i64) -> String {
    format!("{:02}:00", (day - 9) * 24 + hour)
}

/// Three payments, five days apart, pending on our side.
fn world(more: &str) -> (Fake, Scene) {
    let fake = Fake::stripe();
    let mut intents = String::new();
    for n in 1..=3_i64 {
        let (charge, entry) = charge(&n.to_string(), &clock(4 + 5 * n, 10), 1000, 0);
        fake.put("/v1/charges", [charge]);
        fake.put("/v1/balance_transactions", [entry]);
        intents.push_str(&format!(
            "ORD-{n},charge,1000,USD,pending,2026-03-{:02}T09:59:00Z,\n",
            4 + 5 * n
        ));
    }
    let scene = stripe(&fake, more);
    scene.intents(&intents);
    (fake, scene)
}

fn run(scene: &Scene, more: &str) -> Told {
    scene.say(&format!("run -f json --as-of 2026-03-20T12:00:00Z {more}"))
}

/// What a run and the pieces before it wrote.
fn written(told: &Told) -> Vec<String> {
    let mut found = repairs(told);
    let carried = told.json()["carried"]["repairs"].clone();
    for repair in carried.as_array().into_iter().flatten() {
        found.push(format!(
            "{} {} {} {}",
            repair["action"].as_str().expect("text"),
            repair["intent_id"].as_str().expect("text"),
            repair["operation_id"].as_str().expect("text"),
            repair["state"].as_str().expect("text")
        ));
    }
    found.sort();
    found
}

fn all() -> Vec<String> {
    (1..=3)
        .map(|n| format!("set_status ORD-{n} txn_{n} applied"))
        .collect()
}

fn mark(scene: &Scene) -> String {
    let shown = scene.say("watermark show -f json").json();
    shown["watermarks"][0]["watermark"]
        .as_str()
        .unwrap_or("nowhere")
        .to_owned()
}

/// The lower bounds that charges were asked with, oldest first.
fn bounds(fake: &Fake) -> Vec<i64> {
    let mut bounds: Vec<i64> = fake
        .shelf()
        .asked
        .iter()
        .filter(|asked| asked.path == "/v1/charges")
        .filter_map(|asked| asked.of("created[gte]")?.parse().ok())
        .collect();
    bounds.sort_unstable();
    bounds
}

#[test]
fn one_run_catches_up_piece_by_piece_and_tells_everything() {
    for more in ["max_window = \"5d\"", ""] {
        let (_fake, scene) = world(more);
        let told = run(&scene, "");
        assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
        assert_eq!(
            told.json()["outcome"]["name"],
            "repaired",
            "{}",
            told.stdout
        );
        assert_eq!(written(&told), all(), "{}", told.stdout);
        assert_eq!(mark(&scene), "2026-03-20T11:58:00Z");
        let pieces = check_of(&told, "catching up shop");
        assert!(
            pieces.contains(if more.is_empty() {
                "1 earlier"
            } else {
                "2 earlier"
            }),
            "{pieces}"
        );
        let told = run(&scene, "");
        assert_eq!(
            (
                told.code,
                told.json()["outcome"]["name"].as_str(),
                written(&told).len()
            ),
            (0, Some("clean"), 0),
            "{}",
            told.stdout
        );
        assert_eq!(check_of(&told, "catching up shop"), "");
    }
}

#[test]
fn a_piece_that_was_written_is_not_read_again() {
    for fault in [Fault::Status(500), Fault::CutBody] {
        let (fake, scene) = world("max_window = \"5d\"");
        // The charges of the day of the second payment; a page each for five days of the first piece and what reaches into it.
        let day = 1_773_014_400 + 5 * 86_400;
        fake.fails_from("/v1/charges", day + 3 * 3600, fault);
        let told = run(&scene, "");
        assert_eq!(told.code, 3, "{fault:?}: {} {}", told.stdout, told.stderr);
        assert_eq!(mark(&scene), "2026-03-14T00:00:00Z", "{fault:?}");
        assert!(written(&told).contains(&all()[0]), "{}", told.stdout);
        assert!(
            !told.stdout.contains("missing_processor"),
            "{}",
            told.stdout
        );
        fake.heals();
        fake.shelf().asked.clear();
        let told = run(&scene, "");
        assert_eq!(told.code, 1, "{fault:?}: {} {}", told.stdout, told.stderr);
        let first = bounds(&fake)[0];
        assert!(first >= day - 3600, "{fault:?}: read again from {first}");
        // What lay before the break was judged then, and is not told twice.
        assert_eq!(written(&told), all()[2..], "{}", told.stdout);
        assert_eq!(mark(&scene), "2026-03-20T11:58:00Z");
        assert_eq!(run(&scene, "").code, 0);
    }
}

#[test]
fn requests_that_run_out_leave_what_was_written() {
    let (fake, scene) = world("max_window = \"5d\"");
    let mut found = Vec::new();
    let mut runs = 0;
    loop {
        let told = run(&scene, "--max-requests 60");
        runs += 1;
        assert!(
            runs < 10 && matches!(told.code, 1 | 3 | 75),
            "{} {}",
            told.stdout,
            told.stderr
        );
        if told.code != 75 {
            found.extend(written(&told));
        }
        if mark(&scene) == "2026-03-20T11:58:00Z" {
            break;
        }
    }
    assert!(runs > 1, "it took one run");
    found.sort();
    found.dedup();
    assert_eq!(found, all());
    drop(fake);
}

#[test]
fn a_dry_run_tells_the_whole_way_and_writes_none_of_it() {
    let (_fake, scene) = world("max_window = \"5d\"");
    assert_eq!(scene.say("migrate").code, 0);
    let before = scene.store();
    let told = run(&scene, "--dry-run");
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    let planned: Vec<String> = all()
        .iter()
        .map(|line| line.replace("applied", "planned"))
        .collect();
    assert_eq!(repairs(&told), planned);
    assert_eq!(scene.store(), before);
}

#[test]
fn runs_that_judged_a_piece_are_listed() {
    let (_fake, scene) = world("max_window = \"5d\"");
    assert_eq!(run(&scene, "").code, 1);
    let latest = scene.say("report latest -f json");
    assert_eq!(latest.code, 0, "{}", latest.stderr);
    assert_eq!(written(&latest), all(), "{}", latest.stdout);
    let listed = scene.say("runs list -f json").json();
    let outcomes: Vec<String> = listed["runs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|run| run["outcome_name"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(
        outcomes.iter().filter(|name| *name == "piece").count(),
        2,
        "{outcomes:?}"
    );
}

#[test]
fn what_an_earlier_piece_found_is_news_once() {
    let (_fake, scene) = world("max_window = \"5d\"");
    scene.intents("ORD-1,charge,900,USD,succeeded,2026-03-09T09:59:00Z,\n");
    for (line, code, is_new) in [("--fail-on new", 1, true), ("--fail-on new", 0, false)] {
        let told = run(&scene, line);
        assert_eq!(told.code, code, "{} {}", told.stdout, told.stderr);
        let report = told.json();
        let breaks = report["breaks"].as_array().expect("a list");
        let mismatch = breaks
            .iter()
            .find(|entry| entry["class"] == "amount_mismatch");
        let mismatch = mismatch.unwrap_or_else(|| panic!("{}", told.stdout));
        assert_eq!(mismatch["new"], is_new, "{}", told.stdout);
    }
}

#[test]
fn guards_count_over_all_pieces_of_a_run() {
    let (_fake, scene) = world("max_window = \"5d\"");
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    scene.write(
        "paysweep.toml",
        &format!("{text}\n[guards]\nmax_repairs = 2\n"),
    );
    let told = run(&scene, "");
    assert_eq!(told.code, 4, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("3 repairs are planned"),
        "{}",
        told.stderr
    );
    assert_eq!(
        mark(&scene),
        "2026-03-19T00:00:00Z",
        "what was written before stands"
    );
}
