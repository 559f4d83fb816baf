//! `paysweep explain`: the ladder of one row, candidate by candidate, and what became of it.

use serde_json::Value;

use crate::scene::{Scene, on_both};

fn explained(scene: &Scene, id: &str) -> Value {
    let told = scene.now(&format!("explain {id} -f json"));
    assert_eq!((told.code, told.stderr.as_str()), (0, ""), "{id}");
    told.json()["explained"].clone()
}

fn rung<'v>(row: &'v Value, name: &str) -> &'v Value {
    let ladder = row["ladder"].as_array().expect("a ladder");
    ladder
        .iter()
        .find(|it| it["rung"] == name)
        .unwrap_or_else(|| panic!("{name}: {row}"))
}

#[test]
fn a_row_is_explained_from_either_side_and_by_its_break() {
    on_both(|database| {
        let scene = Scene::mismatch().stored(database, "120s");
        scene.now("run -q");
        for id in ["ch_1", "A"] {
            let rows = explained(&scene, id);
            assert_eq!(rows.as_array().map(Vec::len), Some(1), "{rows}");
            let row = &rows[0];
            assert_eq!(row["verdict"], "unmatched", "{row}");
            let by_ref = rung(row, "processor_ref");
            let differs = by_ref["candidates"][0]["differs"][0]
                .as_str()
                .expect("a difference");
            assert_eq!(
                differs,
                "the amount: 12.00 EUR at the processor, 10.00 EUR with us"
            );
            assert_eq!(row["breaks"][0]["class"], "amount_mismatch");
            assert!(
                row["breaks"][0]["first_seen_run"]
                    .as_str()
                    .is_some_and(|run| run.len() == 36)
            );
        }
        let list = scene.now("breaks list -f json").json();
        let id = list["breaks"][0]["id"].as_str().expect("an id").to_owned();
        assert_eq!(
            explained(&scene, &id[..10]).as_array().map(Vec::len),
            Some(2),
            "both rows that it names"
        );
    });
}

#[test]
fn each_rung_says_whom_it_found_and_which_one_made_the_link() {
    let scene = Scene::new(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,1000,EUR,2026-03-09T10:00:06Z,\n",
        "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,\nB,charge,700,EUR,succeeded,2026-03-09T04:00:00Z,gone\n",
    );
    scene.now("run -q");
    let row = &explained(&scene, "ch_1")[0];
    assert_eq!(row["verdict"], "matched");
    // The run stored the link, so that the next one does not climb again; the reference still leads to the same row.
    assert_eq!(rung(row, "stored")["linked_here"], true, "{row}");
    assert_eq!(rung(row, "reference")["candidates"][0]["id"], "A");
    assert_eq!(
        rung(row, "reference")["candidates"][0]["differs"],
        Value::Array(Vec::new())
    );
    let row = &explained(&scene, "ch_2")[0];
    let empty = row["ladder"]
        .as_array()
        .expect("a ladder")
        .iter()
        .all(|it| it["candidates"] == Value::Array(Vec::new()));
    assert!(empty, "{row}");
    assert!(
        row["notes"]
            .to_string()
            .contains("no rung led to a row of ours"),
        "{row}"
    );
    let row = &explained(&scene, "B")[0];
    assert!(
        row["notes"]
            .to_string()
            .contains("was due at 2026-03-09T05:00:00Z"),
        "{row}"
    );
    assert_eq!(row["breaks"][0]["class"], "missing_processor");
}

#[test]
fn a_repaired_row_has_its_history_and_text_is_for_a_person() {
    let scene = Scene::behind();
    scene.now("run -q");
    let told = scene.now("explain A");
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    for part in [
        "intent A of shop",
        "verdict now       matched",
        "the ladder",
        "← linked here",
        "status_behind  resolved",
        "set_status  applied  pending → succeeded",
    ] {
        assert!(told.stdout.contains(part), "{part}:\n{}", told.stdout);
    }
}

#[test]
fn what_is_not_known_is_refused_and_nothing_is_written() {
    let scene = Scene::mismatch();
    let told = scene.now("explain nobody");
    assert_eq!((told.code, told.stdout.as_str()), (2, ""));
    assert!(
        told.stderr.contains("nothing is known under \"nobody\""),
        "{}",
        told.stderr
    );
    assert!(!scene.path("paysweep.db").exists());
}
