//! Proposals to send an intent again: every condition of the rule, the edges of the window, and what ends one.

use paysweep::model::repair::{Repair, RepairAction, RepairState};

use super::scene::{Scene, Told, on_both};
use super::world::{World, at};

/// Everything that a proposal needs, of a charge that was sent at six and of which noon shows nothing.
const ASKED: &str = "rules redrive=24h only
    frame proof
    A charge 1000 pending 10T06:00 first=10T06:00 key=k_A";

fn proposals(lines: &str) -> Vec<Repair> {
    let run = World::of(lines).run();
    let redrives = run.outcome.repairs.iter();
    redrives
        .filter(|repair| repair.action == RepairAction::Redrive)
        .cloned()
        .collect()
}

fn with(more: &str) -> String {
    format!("{ASKED}\n{more}")
}

#[test]
fn a_proposal_bears_the_intents_own_key_and_the_end_of_its_window() {
    let found = proposals(ASKED);
    let [only] = found.as_slice() else {
        panic!("{found:?}");
    };
    assert_eq!(only.state, RepairState::Proposed);
    assert_eq!(
        (only.intent_id.as_str(), only.idempotency_key.as_str()),
        ("A", "k_A")
    );
    // Four fifths of 24 h after the first attempt, less a minute for the clocks.
    assert_eq!(only.expires_at, Some(at("11T01:11")));
    assert_eq!(only.from.as_ref(), Some(&only.to), "nothing is written");
    assert_eq!(proposals(ASKED), found, "the same again has the same id");
}

#[test]
fn each_condition_that_is_missing_is_a_no() {
    for (what, lines) in [
        (
            "a policy, or a window that is published",
            ASKED.replace("redrive=24h ", ""),
        ),
        ("a first attempt", ASKED.replace("first=10T06:00 ", "")),
        ("a key", ASKED.replace("key=k_A", "")),
        (
            "a window that is open",
            ASKED.replace("redrive=24h", "redrive=6h"),
        ),
        ("a source that it was sent to", ASKED.replace(" only", "")),
        (
            "a source of its own",
            ASKED.replace("key=k_A", "key=k_A source=other"),
        ),
        (
            "a feed that proves an absence",
            ASKED.replace("frame proof", ""),
        ),
        ("a feed that is new", with("frame unchanged")),
        ("coverage", with("frame covered=none")),
        ("coverage of every source", with("frame others=10T06:00")),
        (
            "coverage past the first attempt and the delay",
            ASKED.replace("24h", "24h:361m"),
        ),
        (
            "coverage from before the first attempt",
            with("frame low=10T06:00"),
        ),
        ("a run by its watermark", with("frame basis=range")),
        (
            "time that is due",
            ASKED.replace("rules ", "rules grace=7h open_after=7h "),
        ),
        (
            "silence of the processor: an open row of it",
            with("ch_1 charge pending 1000 10T06:00 ref=A"),
        ),
        (
            "silence of the processor: a failed row of it",
            with("ch_1 charge failed 1000 10T06:00 net=0 ref=k_A"),
        ),
        (
            "silence of the processor: another amount",
            with("ch_1 charge succeeded 900 10T06:00 ref=A"),
        ),
        (
            "silence of the processor: a row of no known kind",
            with("ad_1 adjustment succeeded 900 10T06:00 ref=A"),
        ),
        ("that it is the only attempt", {
            let mut two = ASKED.replace("key=k_A", "key=k_A parent=O attempt=1");
            two += "\nB charge 1000 pending 10T06:05 first=10T06:05 key=k_B parent=O attempt=2";
            two
        }),
        ("that nothing else paid for it", {
            let mut two = ASKED.replace("key=k_A", "key=k_A parent=O attempt=1");
            two += "\nB charge 1000 succeeded 10T06:05 key=k_B parent=O attempt=2\nch_2 charge succeeded 1000 10T06:05 ref=B";
            two
        }),
        (
            "that it was never answered",
            ASKED.replace("key=k_A", "key=k_A proc=ch_9"),
        ),
        (
            "that it is not called off",
            ASKED.replace("pending", "canceled"),
        ),
        ("that it has not failed", ASKED.replace("pending", "failed")),
        (
            "a row that can be used",
            ASKED.replace("key=k_A", "key=k_A invalid=no·amount"),
        ),
        ("a kind that we send", ASKED.replace("charge", "dispute")),
        (
            "silence of other sources",
            ASKED.replace("key=k_A", "key=k_A elsewhere=waits"),
        ),
    ] {
        assert_ne!(lines, ASKED, "{what}");
        let found = proposals(&lines);
        assert!(found.is_empty(), "without {what}: {found:?}");
    }
}

#[test]
fn who_claims_to_have_the_money_and_who_waits_for_a_refund_is_asked_as_well() {
    // The break about the absence bears the proposal; one that a person closed bears none.
    let claims = ASKED.replace("pending", "succeeded");
    let mut world = World::of(&claims);
    let run = world.run();
    let finding = &run.outcome.findings[0].found;
    assert_eq!(run.outcome.repairs[0].break_id, finding.id);
    let mut closed = finding.clone();
    closed.state = paysweep::model::breaks::BreakState::Closed;
    world.open.push(closed);
    assert!(world.run().outcome.repairs.is_empty());
    let refund = "rules redrive=24h only
        frame proof
        ch_1 charge succeeded 1000 10T05:00 ref=A
        A charge 1000 succeeded 10T05:00
        R refund 400 pending 10T06:00 first=10T06:00 key=k_R parent=A";
    assert_eq!(proposals(refund).len(), 1);
    for other in [
        "re_1 refund succeeded -400 10T06:00 parent=ch_1",
        "dp_1 dispute succeeded -1000 10T06:00 parent=ch_1",
        "S refund 400 pending 10T06:10 first=10T06:10 key=k_S parent=A",
    ] {
        let found = proposals(&format!("{refund}\n{other}"));
        assert!(found.is_empty(), "{other}: {found:?}");
    }
}

#[test]
fn the_window_ends_before_its_last_fifth_and_before_a_margin() {
    let first = at("10T06:00");
    for (window, want) in [
        ("24h", "11T01:11"),
        // Short ones lose ten minutes rather than a fifth.
        ("40m", "10T06:29"),
        ("1h", "10T06:47"),
        ("5m", "10T05:59"),
        ("always", "04-09T05:59"),
    ] {
        let world = World::of(&format!("rules redrive={window}"));
        let redrive = world.rules.redrive.expect("a rule");
        assert_eq!(redrive.expires_at(first), at(want), "{window}");
    }
    let as_of = |text: &str| proposals(&with(&format!("frame as_of={text}")));
    assert_eq!(as_of("11T01:10:59").len(), 1);
    assert!(as_of("11T01:11").is_empty(), "at its end it is over");
    // Counted from the first attempt, whenever the row was written.
    let late = ASKED.replace("10T06:00 first", "10T10:00 first");
    assert_eq!(proposals(&late)[0].expires_at, Some(at("11T01:11")));
}

const PROFILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/src/processor/profiles/canonical.toml"
);
const FIRST: &str = "2026-03-09T22:00:00Z";

/// A shop whose processor publishes a window and whose files prove themselves; of payment `A` nothing arrived.
fn shop(store: Option<&super::postgres::Database>, intents: &str) -> Scene {
    let scene = Scene::empty();
    let profile = std::fs::read_to_string(PROFILE).expect("a profile");
    let profile = profile
        .replace("name = \"canonical\"", "name = \"proven\"")
        .replace(
            "row_width = \"exact\"",
            "row_width = \"exact\"\ntrailer = { first_cell = \"rows\", rows = 2 }",
        );
    scene.write(
        "proven.toml",
        &format!(
            "{profile}\n[idempotency]\ncarrier = \"header\"\nwindow = \"24h\"\nevidence = \"invented\"\n\
             checked_on = 2026-03-01\nabsence = \"proof\"\n"
        ),
    );
    scene.write(
        "paysweep.toml",
        "[store]\nurl = \"sqlite://paysweep.db\"\n[source.shop]\nkind = \"csv\"\nprofile = \"./proven.toml\"\n\
         files = [\"operations.csv\"]\nstart = \"2026-03-09T00:00:00Z\"\ncomplete_through = \"as-of\"\n\
         [intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n[repair]\nredrive = \"propose\"\n",
    );
    let scene = scene.stored(store, "2m");
    night(&scene, "");
    payments(&scene, intents);
    scene
}

fn night(scene: &Scene, rows: &str) {
    let count = 1 + rows.lines().count();
    scene.write(
        "operations.csv",
        &format!(
            "operation_id,kind,status,amount_minor,currency,occurred_at,reference\n\
             ch_9,charge,succeeded,500,EUR,2026-03-09T10:00:00Z,Z\n{rows}rows,{count},,,,,\n"
        ),
    );
}

fn payments(scene: &Scene, rows: &str) {
    scene.write(
        "intents.csv",
        &format!(
            "intent_id,idempotency_key,kind,amount_minor,currency,status,created_at,processor_ref,first_attempt_at\n\
             Z,,charge,500,EUR,succeeded,2026-03-09T09:59:00Z,ch_9,\n{rows}"
        ),
    );
}

fn a(status: &str, key: &str, first: &str) -> String {
    format!("A,{key},charge,1000,EUR,{status},{FIRST},,{first}\n")
}

fn run_at(scene: &Scene, as_of: &str) -> Told {
    scene.say(&format!("run -f json --as-of {as_of}"))
}

fn ledger(scene: &Scene) -> Vec<(String, String)> {
    let told = scene.say("repairs list -f json").json();
    let list = told["repairs"].as_array().expect("a list").clone();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or("–").to_owned();
    list.iter()
        .map(|item| {
            assert_eq!(item["action"], "redrive");
            (text(&item["state"]), text(&item["idempotency_key"]))
        })
        .collect()
}

const PROPOSED: [(&str, &str); 1] = [("proposed", "k_A")];
const VOID: [(&str, &str); 1] = [("superseded", "k_A")];

fn is(found: &[(String, String)], wanted: &[(&str, &str)]) -> bool {
    let found: Vec<(&str, &str)> = found
        .iter()
        .map(|(state, key)| (state.as_str(), key.as_str()))
        .collect();
    found == wanted
}

#[test]
fn a_proposal_is_written_once_and_void_when_its_window_has_closed() {
    on_both(|database| {
        let scene = shop(database, &a("pending", "k_A", FIRST));
        let dry = scene
            .say("run --dry-run -f json --as-of 2026-03-10T06:00:00Z")
            .json();
        assert_eq!(dry["repairs"][0]["action"], "redrive", "{dry}");
        let told = run_at(&scene, "2026-03-10T06:00:00Z").json();
        assert_eq!(
            told["repairs"][0]["expires_at"], "2026-03-10T17:11:00Z",
            "{told}"
        );
        assert_eq!(told["repairs"][0]["state"], "proposed", "{told}");
        assert!(is(&ledger(&scene), &PROPOSED), "{:?}", ledger(&scene));
        // A later night with another file finds the same need, and tells it no second time.
        night(
            &scene,
            "ch_8,charge,succeeded,500,EUR,2026-03-10T07:00:00Z,Y\n",
        );
        let told = run_at(&scene, "2026-03-10T12:00:00Z").json();
        assert_eq!(
            told["repairs"].as_array().expect("a list").len(),
            0,
            "{told}"
        );
        assert!(is(&ledger(&scene), &PROPOSED), "{:?}", ledger(&scene));
        let list = scene.say("repairs list -f json").json();
        let id = list["repairs"][0]["id"].as_str().expect("an id").to_owned();
        let show = scene
            .say(&format!("repairs show {id} --as-of 2026-03-10T12:00:00Z"))
            .stdout;
        assert!(
            show.contains("under the key k_A, before 2026-03-10T17:11:00Z\n"),
            "{show}"
        );
        // Who would write it, or say yes to it too late, is told no.
        let told = scene.say(&format!(
            "repairs approve {id} --reason late --as-of 2026-03-10T17:11:00Z"
        ));
        assert_eq!(told.code, 2, "{told:?}");
        let told = scene.say(&format!(
            "repairs approve {id} --reason ok --as-of 2026-03-10T12:00:00Z"
        ));
        assert_eq!(told.code, 0, "{told:?}");
        let told = scene.say("repairs apply --as-of 2026-03-10T12:00:00Z");
        assert_eq!(told.stdout, "no repair is approved\n", "{told:?}");
        let told = scene.say(&format!("repairs apply {id} --as-of 2026-03-10T12:00:00Z"));
        assert_eq!(told.code, 2, "{told:?}");
        assert!(
            told.stderr.contains("sent by your own software"),
            "{told:?}"
        );
        let csv = scene
            .say("repairs export --as csv --state approved --as-of 2026-03-10T12:00:00Z")
            .stdout;
        assert!(
            csv.contains(",paysweep,50400,2026-03-10T17:11:00Z,k_A\n"),
            "{csv}"
        );
        night(&scene, "");
        run_at(&scene, "2026-03-10T17:11:00Z");
        assert!(is(&ledger(&scene), &VOID), "{:?}", ledger(&scene));
        let show = scene.say(&format!("repairs show {id}")).stdout;
        assert!(
            show.contains("its window has closed: never send it again"),
            "{show}"
        );
        assert!(show.contains("17:11:00Z: void"), "{show}");
        night(
            &scene,
            "ch_8,charge,succeeded,500,EUR,2026-03-10T07:00:00Z,Y\n",
        );
        run_at(&scene, "2026-03-11T06:00:00Z");
        assert!(is(&ledger(&scene), &VOID), "{:?}", ledger(&scene));
        assert!(scene.say("check").stdout.contains("the chain holds"));
    });
}

#[test]
fn what_was_sent_again_ends_it_and_no_other_key_is_ever_proposed() {
    on_both(|database| {
        let scene = shop(database, &a("pending", "k_A", FIRST));
        run_at(&scene, "2026-03-10T06:00:00Z");
        assert!(is(&ledger(&scene), &PROPOSED), "{:?}", ledger(&scene));
        night(
            &scene,
            "ch_1,charge,succeeded,1000,EUR,2026-03-10T07:00:00Z,A\n",
        );
        let told = scene.say("run -f json --as-of 2026-03-10T12:00:00Z").json();
        assert_eq!(told["outcome"]["name"], "repaired", "{told}");
        let list = scene.say("repairs list -f json").json();
        let redrive = list["repairs"]
            .as_array()
            .expect("a list")
            .iter()
            .find(|item| item["action"] == "redrive")
            .expect("it")
            .clone();
        assert_eq!(redrive["state"], "superseded");
        let show = scene
            .say(&format!(
                "repairs show {}",
                redrive["id"].as_str().expect("an id")
            ))
            .stdout;
        assert!(show.contains("the processor shows it"), "{show}");
        // A row that bears another key, or a later first attempt, is not proposed with them.
        for (key, first) in [("k_B", FIRST), ("k_A", "2026-03-10T05:00:00Z")] {
            let scene = shop(None, &a("pending", "k_A", FIRST));
            run_at(&scene, "2026-03-10T06:00:00Z");
            payments(&scene, &a("pending", key, first));
            night(
                &scene,
                "ch_8,charge,succeeded,500,EUR,2026-03-10T07:00:00Z,Y\n",
            );
            run_at(&scene, "2026-03-10T12:00:00Z");
            assert!(
                is(&ledger(&scene), &VOID),
                "{key} {first}: {:?}",
                ledger(&scene)
            );
        }
        // One that the application has called off is void as well.
        let scene = shop(None, &a("pending", "k_A", FIRST));
        run_at(&scene, "2026-03-10T06:00:00Z");
        payments(&scene, &a("failed", "k_A", FIRST));
        run_at(&scene, "2026-03-10T12:00:00Z");
        assert!(is(&ledger(&scene), &VOID), "{:?}", ledger(&scene));
    });
}

#[test]
fn without_being_asked_for_or_without_proof_nothing_is_proposed() {
    let now = "2026-03-10T06:00:00Z";
    for (file, from, to) in [
        (
            "paysweep.toml",
            "redrive = \"propose\"",
            "redrive = \"off\"",
        ),
        ("paysweep.toml", "[repair]\nredrive = \"propose\"\n", ""),
        ("proven.toml", "absence = \"proof\"\n", ""),
        ("proven.toml", "window = \"24h\"", "window = \"unknown\""),
        // The file is whole by word alone.
        (
            "proven.toml",
            "trailer = { first_cell = \"rows\", rows = 2 }",
            "",
        ),
    ] {
        let scene = shop(None, &a("pending", "k_A", FIRST));
        let text = std::fs::read_to_string(scene.path(file)).expect(file);
        assert!(text.contains(from), "{from}");
        scene.write(file, &text.replace(from, to));
        if from.starts_with("trailer") {
            let text = std::fs::read_to_string(scene.path("operations.csv")).expect("a file");
            scene.write("operations.csv", text.split("rows,").next().expect("rows"));
        }
        let told = run_at(&scene, now);
        assert_eq!(told.code, 0, "{from}: {told:?}");
        assert!(ledger(&scene).is_empty(), "{from}");
    }
    let scene = shop(None, &a("pending", "k_A", FIRST));
    // A range by hand proposes nothing.
    scene.say("run --day 2026-03-09 -f json --as-of 2026-03-10T06:00:00Z");
    assert!(ledger(&scene).is_empty());
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    scene.write("paysweep.toml", &text.replace("\"propose\"", "\"auto\""));
    let told = run_at(&scene, now);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(
        told.stderr.contains("nothing is ever sent again from here"),
        "{told:?}"
    );
}
