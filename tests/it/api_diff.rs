//! `diff` with a configuration whose sources ask a processor: read only, and nothing is kept.

use super::api::{breaks, charge, paid, repairs, stripe};
use super::fake::{Fake, Fault};
use super::scene::{Scene, Told};

fn diff(scene: &Scene, range: &str) -> Told {
    scene.say(&format!(
        "diff -f json --as-of 2026-03-10T12:00:00Z {range}"
    ))
}

const RANGE: &str = "--from 2026-03-09T00:00:00Z --to 2026-03-10T00:00:00Z";

fn world() -> (Fake, Scene) {
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00", 1000, 59);
    paid(&fake, "2", "11:00", 2500, 59);
    let scene = stripe(&fake, "");
    scene.intents(
        "ORD-1,charge,1000,USD,pending,2026-03-09T09:59:00Z,\nORD-2,charge,2000,USD,succeeded,2026-03-09T10:59:00Z,\n\
         ORD-3,charge,3000,USD,succeeded,2026-03-09T11:59:00Z,ch_3\n",
    );
    (fake, scene)
}

#[test]
fn the_lists_of_a_processor_are_compared_over_a_range() {
    let (fake, scene) = world();
    let before = scene.names();
    let told = diff(&scene, RANGE);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    assert_eq!(
        breaks(&told),
        [
            "amount_mismatch ORD-2 txn_2",
            "missing_processor ORD-3 -",
            "status_behind ORD-1 txn_1"
        ],
        "{}",
        told.stdout
    );
    assert_eq!(repairs(&told), ["set_status ORD-1 txn_1 planned"]);
    assert!(
        told.stdout.contains("the processor does not know it"),
        "asked for by its id: {}",
        told.stdout
    );
    assert_eq!(scene.names(), before, "nothing is kept");
    assert!(fake.shelf().asked.iter().all(|asked| asked.method == "GET"));
    // The same as a run would find.
    let run = scene.say(&format!("run -f json --as-of 2026-03-10T12:00:00Z {RANGE}"));
    assert_eq!(breaks(&run), breaks(&told), "{}", run.stdout);
}

#[test]
fn what_seems_absent_is_asked_for_by_its_id() {
    let (fake, scene) = world();
    // Late: its creation lies before the range, where no list is asked.
    let (mut charge, mut entry) = charge("3", "10:00", 3000, 0);
    for row in [&mut charge, &mut entry] {
        row["created"] = serde_json::json!(1_772_000_000);
    }
    fake.put("/v1/charges", [charge]);
    fake.put("/v1/balance_transactions", [entry]);
    let told = diff(&scene, RANGE);
    assert!(
        !breaks(&told)
            .iter()
            .any(|line| line.contains("missing_processor")),
        "{} {}",
        told.stdout,
        told.stderr
    );
}

#[test]
fn a_list_that_breaks_off_makes_nothing_absent() {
    let (fake, scene) = world();
    for (path, page, fault) in [
        ("/v1/charges", 1, Fault::Status(500)),
        ("/v1/balance_transactions", 2, Fault::HalfJson),
        ("/v1/charges/ch_3", 1, Fault::Status(500)),
    ] {
        fake.fails(path, page, fault, 100);
        let told = diff(&scene, RANGE);
        assert_eq!(told.code, 3, "{path}: {} {}", told.stdout, told.stderr);
        assert!(
            !told.stdout.contains("missing_processor"),
            "{path}: {}",
            told.stdout
        );
        assert!(
            told.stderr.contains(path.trim_end_matches("/ch_3")),
            "{path}: {}",
            told.stderr
        );
        fake.heals();
    }
}

#[test]
fn without_a_range_nothing_is_asked() {
    let (fake, scene) = world();
    let told = diff(&scene, "");
    assert_eq!(told.code, 2, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("--from"), "{}", told.stderr);
    assert!(fake.shelf().asked.is_empty());
}
