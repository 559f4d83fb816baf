//! Report runs that somebody has made: those that cover the window without a gap are downloaded, and none is ever made.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::api::{at, breaks, config};
use super::fake::{self, Asked, Fake, Fault, KEY, Shelf};
use super::scene::{Scene, Told};

const LIST: &str = "/v1/reporting/report_runs";
const HEADER: &str = "balance_transaction_id,created_utc,currency,gross,fee,net,reporting_category,payment_metadata[order]\n";

/// Lists as Stripe answers, and files by their id.
fn answers(asked: &Asked, shelf: &Shelf) -> (u16, Value) {
    let file = asked
        .path
        .strip_prefix("/v1/files/")
        .and_then(|rest| rest.strip_suffix("/contents"));
    match file {
        Some(id) => match shelf.lists["files"].iter().find(|file| file["id"] == id) {
            Some(file) => (200, file["text"].clone()),
            None => (404, json!({"error": {"message": "no such file"}})),
        },
        None => fake::stripe(asked, shelf),
    }
}

/// A day of March 2026 in seconds.
fn day(day: i64) -> i64 {
    at("00:00") + (day - 9) * 86_400
}

/// A report over some days, with a payment at ten o'clock of each.
fn report(fake: &Fake, id: &str, from: i64, to: i64, status: &str) {
    let mut text = HEADER.to_owned();
    for n in from.max(9)..to {
        writeln!(
            text,
            "txn_{n},2026-03-{n:02} 10:00:00,usd,10.00,0.59,9.41,charge,ORD-{n}"
        )
        .expect("text");
    }
    fake.put("files", [json!({"id": format!("file_{id}"), "text": text})]);
    fake.put(
        LIST,
        [json!({"id": format!("frr_{id}"), "object": "reporting.report_run", "created": day(to) + 3600, "status": status,
            "report_type": "balance_change_from_activity.itemized.3",
            "parameters": {"interval_start": day(from), "interval_end": day(to)},
            "result": {"id": format!("file_{id}"), "object": "file", "url": "https://elsewhere.example/file"}})],
    );
}

fn scene(fake: &Fake, intents: &[i64]) -> Scene {
    let scene = Scene::empty();
    let profile = scene.say("profiles show stripe.reports").stdout;
    let profile = profile
        .replace("base_ms = 500", "base_ms = 1")
        .replace("max_ms = 30000", "max_ms = 2\ntries = 2");
    scene.write("reports.toml", &profile);
    config(&scene, fake, "reports.toml", "api_key = { file = \"key\" }");
    scene.write("key", KEY);
    let mut rows = String::new();
    for n in intents {
        writeln!(
            rows,
            "ORD-{n},charge,1000,USD,succeeded,2026-03-{n:02}T09:59:00Z,"
        )
        .expect("text");
    }
    scene.intents(&rows);
    scene
}

fn run(scene: &Scene) -> Told {
    scene.say("run -f json --as-of 2026-03-14T12:00:00Z")
}

fn after(told: &Told) -> String {
    told.json()["sources"][0]["watermark_after"]
        .as_str()
        .expect("a time")
        .to_owned()
}

#[test]
fn reports_that_follow_each_other_are_read_and_the_rest_waits() {
    let fake = Fake::with(Box::new(answers));
    report(&fake, "early", 5, 10, "succeeded");
    report(&fake, "next", 10, 12, "succeeded");
    report(&fake, "failed", 12, 13, "failed");
    report(&fake, "behind", 13, 14, "succeeded");
    let scene = scene(&fake, &[9, 10, 11, 12, 13]);
    let told = run(&scene);
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    assert_eq!(after(&told), "2026-03-12T00:00:00Z", "{}", told.stdout);
    assert_eq!(told.json()["summary"]["matched"], 3, "{}", told.stdout);
    let files = |fake: &Fake| -> Vec<String> {
        let shelf = fake.shelf();
        let asked = shelf
            .asked
            .iter()
            .filter(|asked| asked.path.starts_with("/v1/files/"));
        asked.map(|asked| asked.path.clone()).collect()
    };
    assert_eq!(
        files(&fake),
        [
            "/v1/files/file_early/contents",
            "/v1/files/file_next/contents"
        ]
    );
    assert!(
        fake.shelf().asked.iter().all(|asked| asked.method == "GET"),
        "nothing is made"
    );
    // The missing one is made by somebody: what it covers is read, and what is behind it.
    report(&fake, "late", 12, 13, "succeeded");
    let told = run(&scene);
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    assert_eq!(after(&told), "2026-03-14T00:00:00Z", "{}", told.stdout);
    let check = scene.say("check");
    assert!(
        check.stdout.contains(LIST),
        "{} {}",
        check.stdout,
        check.stderr
    );
}

#[test]
fn what_no_report_covers_is_not_called_absent() {
    let fake = Fake::with(Box::new(answers));
    report(&fake, "behind", 10, 14, "succeeded");
    let scene = scene(&fake, &[9, 10]);
    let told = run(&scene);
    assert_eq!(told.code, 3, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("covers 2026-03-08T"),
        "{}",
        told.stderr
    );
    assert!(breaks(&told).is_empty(), "{}", told.stdout);
    assert_eq!(after(&told), "2026-03-09T00:00:00Z");
}

#[test]
fn a_file_that_cannot_be_read_ends_there() {
    for fault in [Fault::Status(500), Fault::CutBody, Fault::Status(404)] {
        let fake = Fake::with(Box::new(answers));
        report(&fake, "first", 7, 11, "succeeded");
        report(&fake, "second", 11, 14, "succeeded");
        let scene = scene(&fake, &[9, 10, 11, 12, 13]);
        fake.fails("/v1/files/file_second/contents", 1, fault, 100);
        let told = run(&scene);
        assert_eq!(told.code, 3, "{fault:?}: {} {}", told.stdout, told.stderr);
        assert!(breaks(&told).is_empty(), "{fault:?}: {}", told.stdout);
        assert_eq!(after(&told), "2026-03-09T00:00:00Z");
        for text in [&told.stdout, &told.stderr] {
            assert!(!text.contains(KEY), "{text}");
        }
        fake.heals();
        let told = run(&scene);
        assert_eq!(
            (told.code, after(&told).as_str()),
            (0, "2026-03-14T00:00:00Z"),
            "{}",
            told.stdout
        );
    }
}

#[test]
fn a_file_of_another_form_is_refused() {
    let fake = Fake::with(Box::new(answers));
    report(&fake, "odd", 5, 14, "succeeded");
    fake.shelf().lists.get_mut("files").expect("files")[0]["text"] = json!("a,b\n1,2\n");
    let scene = scene(&fake, &[9]);
    let told = run(&scene);
    assert_eq!(told.code, 2, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("balance_transaction_id"),
        "{}",
        told.stderr
    );
}

/// A list in pages by link, and files below their report.
fn checkout(asked: &Asked, shelf: &Shelf) -> (u16, Value) {
    if asked.path == "/reports" {
        let page = usize::from(asked.of("pagination_token").is_some());
        let rows = &shelf.lists["reports"];
        let next = (page == 0).then(|| json!({"href": "/reports?pagination_token=next"}));
        let half = rows.len() / 2;
        let data = if page == 0 {
            &rows[..half]
        } else {
            &rows[half..]
        };
        return (
            200,
            json!({"count": rows.len(), "limit": 100, "data": data, "_links": {"next": next}}),
        );
    }
    match shelf.lists["files"]
        .iter()
        .find(|file| file["path"] == asked.path.as_str())
    {
        Some(file) => (200, file["text"].clone()),
        None => (404, json!({})),
    }
}

#[test]
fn checkout_reports_by_date_range_are_read_with_all_of_their_files() {
    const COLUMNS: &str = "Action Type,Action ID,Payment ID,Processed On,Processing Currency,Processing Currency Amount,Holding Currency,Holding Currency Amount,Breakdown Type,Reference\n";
    let fake = Fake::with(Box::new(checkout));
    let file = |run: &str, id: &str, day: i64, reference: &str| {
        let row = format!(
            "Capture,act_{id},pay_{id},2026-03-{day:02}T10:00:00.000,EUR,10.00,EUR,10.00,Capture,{reference}\n"
        );
        json!({"path": format!("/reports/{run}/files/{id}"), "text": format!("{COLUMNS}{row}")})
    };
    fake.put(
        "files",
        [
            file("rpt_1", "file_a", 9, "ORD-9"),
            file("rpt_1", "file_b", 10, "ORD-10"),
            file("rpt_2", "file_c", 9, "by payout"),
        ],
    );
    let report = |run: &str, from: &str, to: &str, tags: Value, files: &[&str]| {
        let files: Vec<Value> = files
            .iter()
            .map(|id| json!({"id": id, "format": "CSV"}))
            .collect();
        json!({"id": run, "created_on": "2026-03-12T01:00:00.357+00:00", "type": "FinancialActions", "tags": tags, "from": from, "to": to,
            "account": {"entity_id": "ent_1"}, "files": files})
    };
    fake.put(
        "reports",
        [
            report(
                "rpt_2",
                "2026-03-01T00:00:00Z",
                "2026-03-20T00:00:00Z",
                json!(["payout_id:AB1"]),
                &["file_c"],
            ),
            report(
                "rpt_0",
                "2026-03-01T00:00:00",
                "2026-03-21T00:00:00",
                json!([]),
                &["file_c"],
            ),
            report(
                "rpt_1",
                "2026-03-06T00:00:00Z",
                "2026-03-12T00:00:00Z",
                json!([]),
                &["file_a", "file_b"],
            ),
        ],
    );
    let scene = Scene::empty();
    config(
        &scene,
        &fake,
        "checkoutcom.reports",
        "api_key = { file = \"key\" }\nzone = \"UTC\"\nrate_limit = 1000",
    );
    scene.write("key", KEY);
    scene.intents(
        "ORD-9,charge,1000,EUR,pending,2026-03-09T09:59:00Z,pay_file_a\nORD-10,charge,1000,EUR,pending,2026-03-10T09:59:00Z,pay_file_b\n",
    );
    let told = run(&scene);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    assert_eq!(after(&told), "2026-03-12T00:00:00Z", "{}", told.stdout);
    assert_eq!(
        breaks(&told)
            .iter()
            .filter(|line| line.starts_with("status_behind"))
            .count(),
        2,
        "{}",
        told.stdout
    );
    assert_eq!(
        told.json()["sources"][0]["operations"],
        2,
        "{}",
        told.stdout
    );
}
