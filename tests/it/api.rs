//! Sources that ask a processor: what is read, what is concluded, and what is not.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::fake::{Fake, KEY};
use super::scene::{Scene, Told};

/// 2026-03-09T00:00:00Z in seconds.
const DAY: i64 = 1_773_014_400;

/// The time of day of that day.
pub(crate) fn at(clock: &str) -> i64 {
    let mut parts = clock
        .split(':')
        .map(|part| part.parse::<i64>().expect("a number"));
    let mut next = || parts.next().unwrap_or(0);
    DAY + next() * 3600 + next() * 60 + next()
}

/// A configuration that asks the fake as Stripe, with its profile made impatient.
pub(crate) fn stripe(fake: &Fake, more: &str) -> Scene {
    let scene = Scene::empty();
    let profile = scene.say("profiles show stripe.api").stdout;
    let profile = profile
        .replace("base_ms = 500", "base_ms = 1")
        .replace("max_ms = 30000", "max_ms = 2")
        .replace("tries = 8", "tries = 2")
        .replace("timeout = \"60s\"", "timeout = \"1s\"")
        .replace("max_rps = 20", "max_rps = 1000");
    assert!(profile.contains("base_ms = 1\n") && profile.contains("timeout = \"1s\""));
    scene.write("stripe.toml", &profile);
    config(
        &scene,
        fake,
        "stripe.toml",
        &format!("api_key = {{ file = \"key\" }}\npage_size = 2\nconcurrency = 1\n{more}"),
    );
    scene.write("key", KEY);
    scene
}

pub(crate) fn config(scene: &Scene, fake: &Fake, profile: &str, more: &str) {
    scene.write(
        "paysweep.toml",
        &format!(
            "[store]\nurl = \"sqlite://paysweep.db\"\n\n[source.shop]\nkind = \"api\"\nprofile = \"{profile}\"\nbase_url = \"{}\"\n\
             start = \"2026-03-09T00:00:00Z\"\n{more}\n\n[intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n",
            fake.url()
        ),
    );
}

/// A charge and its entry in the log.
pub(crate) fn paid(fake: &Fake, name: &str, clock: &str, amount: i64, fee: i64) {
    let (charge, entry) = charge(name, clock, amount, fee);
    fake.put("/v1/charges", [charge]);
    fake.put("/v1/balance_transactions", [entry]);
}

pub(crate) fn charge(name: &str, clock: &str, amount: i64, fee: i64) -> (Value, Value) {
    let created = at(clock);
    (
        json!({"id": format!("ch_{name}"), "object": "charge", "amount": amount, "amount_captured": amount, "captured": true, "currency": "usd",
            "created": created, "status": "succeeded", "livemode": true, "payment_intent": format!("pi_{name}"), "refunded": false,
            "balance_transaction": format!("txn_{name}"), "metadata": {"order": format!("ORD-{name}")}, "unknown_field": {"deep": [1, 2]}}),
        json!({"id": format!("txn_{name}"), "object": "balance_transaction", "amount": amount, "fee": fee, "net": amount - fee, "currency": "usd",
            "created": created, "available_on": created + 172_800, "balance_type": "payments", "reporting_category": "charge",
            "source": format!("ch_{name}"), "type": "charge", "status": "pending", "description": "say \"hi\", you\nthere"}),
    )
}

/// The classes of the breaks of a report, with what they are about.
pub(crate) fn breaks(told: &Told) -> Vec<String> {
    let report = told.json();
    let mut found: Vec<String> = report["breaks"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {}",
                word("class"),
                word("intent_id"),
                word("operation_id")
            )
        })
        .collect();
    found.sort();
    found
}

pub(crate) fn repairs(told: &Told) -> Vec<String> {
    let report = told.json();
    let mut found: Vec<String> = report["repairs"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|entry| {
            let word = |name: &str| entry[name].as_str().unwrap_or("-").to_owned();
            format!(
                "{} {} {} {}",
                word("action"),
                word("intent_id"),
                word("operation_id"),
                word("state")
            )
        })
        .collect();
    found.sort();
    found
}

const AS_OF: &str = "2026-03-10T12:00:00Z";

fn run(scene: &Scene, more: &str) -> Told {
    scene.say(&format!("run -f json --as-of {AS_OF} {more}"))
}

pub(crate) fn check_of(told: &Told, name: &str) -> String {
    let report = told.json();
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["name"] == name);
    found
        .map(|check| check["detail"].as_str().expect("text").to_owned())
        .unwrap_or_default()
}

#[test]
fn what_stripe_lists_is_compared_and_repaired() {
    let fake = Fake::stripe();
    let mut intents = String::new();
    for n in 1..=5 {
        paid(&fake, &n.to_string(), &format!("10:0{n}"), 1000, 59);
        writeln!(
            intents,
            "ORD-{n},charge,1000,USD,pending,2026-03-09T10:00:00Z,"
        )
        .expect("text");
    }
    let scene = stripe(&fake, "");
    scene.intents(&intents);
    let told = run(&scene, "");
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    let report = told.json();
    assert_eq!(report["outcome"]["name"], "repaired", "{}", told.stdout);
    assert_eq!(report["summary"]["matched"], 5);
    assert_eq!(report["sources"][0]["complete"], true);
    assert_eq!(
        report["sources"][0]["watermark_after"],
        "2026-03-10T11:58:00Z"
    );
    assert_eq!(repairs(&told)[0], "set_status ORD-1 txn_1 applied");
    assert!(
        check_of(&told, "requests shop").contains("requests to"),
        "{}",
        told.stdout
    );
    for asked in &fake.shelf().asked {
        assert_eq!(asked.method, "GET");
        assert_eq!(asked.header("stripe-version"), Some("2026-06-24.dahlia"));
        assert_eq!(
            asked.header("user-agent"),
            Some(concat!("paysweep/", env!("CARGO_PKG_VERSION")))
        );
        assert_eq!(asked.header("accept-encoding"), None);
    }
    // Again: nothing is new, nothing is written.
    let told = run(&scene, "");
    assert_eq!(
        (told.code, told.json()["outcome"]["name"].as_str()),
        (0, Some("clean")),
        "{}",
        told.stdout
    );
}

#[test]
fn rows_of_one_second_are_all_read_across_pages() {
    let fake = Fake::stripe();
    let mut intents = String::new();
    for n in 1..=7 {
        paid(&fake, &n.to_string(), "10:00", 1000 + n, 0);
        writeln!(
            intents,
            "ORD-{n},charge,{},USD,pending,2026-03-09T09:59:59Z,",
            1000 + n
        )
        .expect("text");
    }
    let scene = stripe(&fake, "");
    scene.intents(&intents);
    let told = run(&scene, "");
    assert_eq!(told.json()["summary"]["matched"], 7, "{}", told.stdout);
}

#[test]
fn a_row_that_appears_late_with_an_old_time_is_found_by_the_lookback() {
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00", 1000, 0);
    let scene = stripe(&fake, "");
    scene.intents("ORD-1,charge,1000,USD,succeeded,2026-03-09T09:59:00Z,pi_1\nORD-2,charge,1000,USD,pending,2026-03-09T09:59:00Z,\n");
    let told = scene.say("run -f json --as-of 2026-03-09T10:10:00Z");
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    // The watermark is at 10:08 now, and this row is of 10:01.
    paid(&fake, "2", "10:01", 1000, 0);
    let told = scene.say("run -f json --as-of 2026-03-09T10:30:00Z");
    assert_eq!(
        repairs(&told),
        ["set_status ORD-2 txn_2 applied"],
        "{}",
        told.stdout
    );
}

#[test]
fn what_the_log_does_not_show_is_told_by_the_object() {
    let fake = Fake::stripe();
    let object = |id: &str, kind: &str, more: Value| {
        let mut row = json!({"id": id, "object": kind, "amount": 1000, "currency": "usd", "created": at("10:00"), "livemode": true,
            "captured": true, "refunded": false, "balance_transaction": null, "metadata": {}});
        for (name, value) in more.as_object().expect("an object") {
            row[name] = value.clone();
        }
        row
    };
    fake.put(
        "/v1/charges",
        [
            object("ch_declined", "charge", json!({"status": "failed", "payment_intent": "pi_d", "metadata": {"o": "DECLINED"}})),
            object("ch_slow", "charge", json!({"status": "pending", "payment_intent": "pi_s", "metadata": {"o": "SLOW"}})),
            object("ch_held", "charge", json!({"status": "succeeded", "captured": false, "payment_intent": "pi_h", "metadata": {"o": "HELD"}})),
            object("ch_gone", "charge", json!({"status": "succeeded", "captured": false, "refunded": true, "payment_intent": "pi_g", "metadata": {"o": "GONE"}})),
        ],
    );
    fake.put(
        "/v1/payment_intents",
        [object(
            "pi_off",
            "payment_intent",
            json!({"status": "canceled", "metadata": {"o": "OFF"}}),
        )],
    );
    let scene = stripe(&fake, "max_window = \"30d\"");
    let ids = ["DECLINED", "SLOW", "HELD", "GONE", "OFF"];
    let intents: Vec<String> = ids
        .iter()
        .map(|id| format!("{id},charge,1000,USD,pending,2026-03-09T09:59:00Z,\n"))
        .collect();
    scene.intents(&intents.concat());
    let told = run(&scene, "--include pending,ignored,matches");
    assert_eq!(
        repairs(&told),
        [
            "set_status GONE ch_gone applied",
            "set_status OFF pi_off applied"
        ],
        "{}",
        told.stdout
    );
    let report = told.json();
    let to = |id: &str| {
        let all = report["repairs"].as_array().expect("a list");
        all.iter()
            .find(|repair| repair["intent_id"] == id)
            .map(|repair| repair["to"]["status"].clone())
    };
    assert_eq!(
        (to("GONE"), to("OFF")),
        (Some(json!("expired")), Some(json!("canceled")))
    );
    let pending: Vec<&str> = report["pending"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|row| row["intent_id"].as_str())
        .collect();
    assert!(pending.contains(&"SLOW"), "{}", told.stdout);
    assert!(
        breaks(&told)
            .iter()
            .all(|line| !line.starts_with("missing")),
        "{}",
        told.stdout
    );

    // The slow one has been paid since, far behind what the lists reach: it is asked for by its id.
    let (_, entry) = charge("slow", "10:00", 1000, 59);
    let mut entry = entry;
    entry["created"] = json!(at("10:00") + 3 * 86_400);
    {
        let mut shelf = fake.shelf();
        let charges = shelf.lists.get_mut("/v1/charges").expect("a list");
        let slow = charges
            .iter_mut()
            .find(|row| row["id"] == "ch_slow")
            .expect("a charge");
        slow["status"] = json!("succeeded");
        slow["balance_transaction"] = json!("txn_slow");
    }
    fake.put("/v1/balance_transactions", [entry]);
    let told = scene.say("run -f json --as-of 2026-03-20T12:00:00Z --include ignored");
    assert_eq!(
        repairs(&told),
        ["set_status SLOW txn_slow applied"],
        "{}",
        told.stdout
    );
    assert_eq!(
        breaks(&told),
        ["status_behind SLOW txn_slow"],
        "{}",
        told.stdout
    );
    assert!(
        check_of(&told, "second look shop").contains("by their id"),
        "{}",
        told.stdout
    );
    let told = scene.say("run -f json --as-of 2026-03-20T12:00:00Z");
    assert_eq!(told.code, 0, "{}", told.stdout);
}

#[test]
fn an_old_open_row_is_asked_for_by_its_id() {
    let fake = Fake::stripe();
    let (mut charge, mut entry) = charge("411", "10:00", 9900, 35);
    let created = DAY - 17 * 86_400 + 36_000;
    for row in [&mut charge, &mut entry] {
        row["currency"] = json!("eur");
        row["created"] = json!(created);
    }
    fake.put("/v1/charges", [charge]);
    fake.put("/v1/balance_transactions", [entry]);
    let scene = stripe(&fake, "lookback = \"72h\"");
    scene.intents("ORD-411,charge,9900,EUR,pending,2026-02-20T09:59:00Z,ch_411\n");
    let told = run(&scene, "");
    assert_eq!(
        (told.code, told.json()["outcome"]["name"].as_str()),
        (1, Some("repaired")),
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert_eq!(breaks(&told), ["status_behind ORD-411 txn_411"]);
    assert_eq!(repairs(&told), ["set_status ORD-411 txn_411 applied"]);
    let told = run(&scene, "");
    assert_eq!(
        (told.code, told.json()["outcome"]["name"].as_str()),
        (0, Some("clean")),
        "{}",
        told.stdout
    );
    assert!(repairs(&told).is_empty());
    // Nobody is asked where the source says so.
    let scene = stripe(&fake, "lookback = \"72h\"\nlookup = \"none\"");
    scene.intents("ORD-411,charge,9900,EUR,pending,2026-02-20T09:59:00Z,ch_411\n");
    let told = run(&scene, "");
    assert_eq!(
        breaks(&told),
        ["open_too_long ORD-411 -"],
        "{}",
        told.stdout
    );
}

#[test]
fn what_seems_absent_is_asked_for_before_it_is_called_so() {
    let fake = Fake::stripe();
    // The list does not show it; the direct read does.
    let (charge, mut entry) = charge("1", "10:00", 1000, 0);
    entry["object"] = json!("balance_transaction");
    fake.put("/hidden/charges", [charge]);
    fake.put("/hidden/balance_transactions", [entry]);
    let scene = stripe(&fake, "");
    scene.intents(
        "ORD-1,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,ch_1\nORD-2,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,ch_2\n\
         ORD-3,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,\n",
    );
    let told = run(&scene, "");
    assert_eq!(
        breaks(&told),
        ["missing_processor ORD-2 -", "missing_processor ORD-3 -"],
        "{}",
        told.stdout
    );
    let why = |id: &str| {
        let report = told.json();
        let all = report["breaks"].as_array().expect("a list").clone();
        let found = all
            .iter()
            .find(|entry| entry["intent_id"] == id)
            .expect("a break");
        found["why"].as_str().expect("text").to_owned()
    };
    assert!(
        why("ORD-2").contains("asked for it by its id"),
        "{}",
        why("ORD-2")
    );
    assert!(
        !why("ORD-3").contains("asked for it by its id"),
        "{}",
        why("ORD-3")
    );
    assert!(
        check_of(&told, "second look shop").contains("does not know ch_2"),
        "{}",
        told.stdout
    );
}

#[test]
fn a_second_look_without_an_answer_concludes_nothing() {
    let fake = Fake::stripe();
    let scene = stripe(&fake, "");
    scene.intents("ORD-2,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,ch_2\n");
    fake.fails("/v1/charges/ch_2", 1, super::fake::Fault::Status(500), 99);
    let told = run(&scene, "");
    assert_eq!(told.code, 3, "{} {}", told.stdout, told.stderr);
    assert_eq!(breaks(&told), Vec::<String>::new());
    assert_eq!(told.json()["sources"][0]["complete"], false);
    assert_eq!(
        told.json()["sources"][0]["watermark_after"],
        "2026-03-09T00:00:00Z"
    );
    fake.heals();
    assert_eq!(breaks(&run(&scene, "")), ["missing_processor ORD-2 -"]);
}

#[test]
fn a_key_of_the_other_mode_is_not_even_sent() {
    let fake = Fake::stripe();
    let scene = stripe(&fake, "mode = \"test\"");
    scene.intents("");
    let told = run(&scene, "");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("the key is one for live mode"),
        "{}",
        told.stderr
    );
    assert_eq!(fake.shelf().asked.len(), 0);
    // Rows of the other mode, by a key that does not say which it is of.
    paid(&fake, "1", "10:00", 1000, 0);
    for row in fake.shelf().lists.get_mut("/v1/charges").expect("a list") {
        row["livemode"] = json!(false);
    }
    let scene = stripe(&fake, "");
    scene.intents("");
    let told = run(&scene, "");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("of the other mode"), "{}", told.stderr);
}

#[test]
fn no_more_requests_are_sent_than_allowed() {
    let fake = Fake::stripe();
    for n in 1..=5 {
        paid(&fake, &n.to_string(), "10:00", 1000, 0);
    }
    let scene = stripe(&fake, "");
    scene.intents("ORD-9,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,\n");
    let told = run(&scene, "--max-requests 3");
    assert_eq!(told.code, 3, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("--max-requests"), "{}", told.stderr);
    assert_eq!(fake.shelf().asked.len(), 3);
    assert_eq!(breaks(&told), Vec::<String>::new());
    assert_eq!(run(&scene, "--max-requests 100").code, 1);
}

#[test]
fn other_sources_go_on_and_the_worst_decides() {
    let fake = Fake::stripe();
    let scene = stripe(&fake, "");
    scene.intents("A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n");
    scene.operations("ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n");
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    let text = text.replace(
        "[intents]",
        "[source.files]\nkind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"operations.csv\"]\nstart = \"2026-03-09T00:00:00Z\"\n\
         complete_through = \"as-of\"\n\n[intents]",
    );
    scene.write("paysweep.toml", &text);
    scene.write("key", "sk_live_another");
    let told = run(&scene, "");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert_eq!(repairs(&told), ["set_status A ch_1 applied"]);
    let report = told.json();
    assert_eq!(report["outcome"]["reasons"][0]["code"], "denied");
}

#[test]
fn nobody_who_answers_is_temporary() {
    let fake = Fake::stripe();
    let scene = stripe(&fake, "patience = \"2s\"");
    scene.intents("A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,\n");
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    // A port that nobody listens on: it was free a moment ago.
    let free = std::net::TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let address = free.local_addr().expect("an address");
    drop(free);
    scene.write(
        "paysweep.toml",
        &text.replace(&fake.url(), &format!("http://{address}")),
    );
    let told = run(&scene, "");
    assert_eq!(told.code, 75, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("no connection"), "{}", told.stderr);
}

#[test]
fn a_payout_names_its_parts_and_one_that_came_back_is_told() {
    let fake = Fake::stripe();
    let entry = |id: &str,
                 category: &str,
                 source: &str,
                 amount: i64,
                 clock: &str,
                 payout: Option<&str>| {
        json!({"id": id, "object": "balance_transaction", "amount": amount, "fee": 0, "net": amount, "currency": "usd", "created": at(clock),
            "available_on": at(clock), "balance_type": "payments", "reporting_category": category, "source": source, "_payout": payout})
    };
    let payout = |id: &str, clock: &str, amount: i64, status: &str, entry: &str| {
        json!({"id": id, "object": "payout", "amount": amount, "currency": "usd", "created": at(clock), "automatic": true,
            "reconciliation_status": "completed", "status": status, "livemode": true, "metadata": {}, "balance_transaction": entry})
    };
    let (charge, _) = charge("1", "09:00", 1000, 0);
    fake.put("/v1/charges", [charge]);
    fake.put(
        "/v1/balance_transactions",
        [
            entry("txn_1", "charge", "ch_1", 1000, "09:00", Some("po_1")),
            entry("txn_f", "fee", "", -30, "09:30", Some("po_1")),
            // Ten cents of it are nobody's.
            entry("txn_p", "payout", "po_1", -980, "10:00", Some("po_1")),
        ],
    );
    fake.put(
        "/v1/payouts",
        [payout("po_1", "10:00", 980, "paid", "txn_p")],
    );
    let scene = stripe(&fake, "payout_span = \"2h\"\nlookback = \"12h\"");
    scene.intents("ORD-1,charge,1000,USD,succeeded,2026-03-09T08:59:00Z,pi_1\n");
    let told = run(&scene, "");
    assert_eq!(
        breaks(&told),
        ["payout_residual - txn_p"],
        "{}",
        told.stdout
    );

    // What was paid out comes back days later: a new entry of the log.
    let mut back = entry("txn_b", "payout_reversal", "po_1", 980, "10:00", None);
    back["created"] = json!(at("10:00") + 3 * 86_400);
    fake.put("/v1/balance_transactions", [back]);
    let told = scene.say("run -f json --as-of 2026-03-13T12:00:00Z");
    assert!(
        breaks(&told)
            .iter()
            .any(|line| line.starts_with("payout_returned")),
        "{}",
        told.stdout
    );
}

#[test]
fn check_asks_for_one_row_of_each_list() {
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00", 1000, 0);
    let scene = stripe(&fake, "");
    scene.intents("");
    let told = scene.say("check");
    assert!(
        told.stdout
            .contains("live mode; the key may read /v1/balance_transactions, /v1/charges"),
        "{} {}",
        told.stdout,
        told.stderr
    );
    // The fake's clock stands in 2026, so the clocks differ.
    assert!(told.stdout.contains("source shop clock"), "{}", told.stdout);
    assert!(
        fake.shelf()
            .asked
            .iter()
            .filter(|asked| asked.path != "/v1/account")
            .all(|asked| asked.of("limit") == Some("1"))
    );
    scene.write("key", "rk_live_wrong");
    let told = scene.say("check");
    assert_eq!(told.code, 5, "{}", told.stdout);
    assert!(
        told.stdout.contains("the key was not accepted"),
        "{}",
        told.stdout
    );
}

#[test]
fn an_object_that_cannot_be_read_is_kept_as_its_evidence() {
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00", 1000, 0);
    paid(&fake, "2", "10:01", 1000, 0);
    paid(&fake, "3", "10:02", 1000, 0);
    {
        let mut shelf = fake.shelf();
        let log = shelf
            .lists
            .get_mut("/v1/balance_transactions")
            .expect("a list");
        log[0]["amount"] = json!("ten");
        log[1]["reporting_category"] = json!("brand_new_category");
    }
    let scene = stripe(&fake, "");
    scene.intents("ORD-3,charge,1000,USD,succeeded,2026-03-09T10:00:00Z,pi_3\n");
    let told = run(&scene, "");
    let found = breaks(&told);
    assert_eq!(
        found
            .iter()
            .filter(|line| line.starts_with("invalid_record"))
            .count(),
        2,
        "{}",
        told.stdout
    );
    assert_eq!(told.json()["summary"]["matched"], 1);
}

#[test]
fn a_literal_key_and_a_host_without_tls_are_refused_without_being_shown() {
    let fake = Fake::stripe();
    for (more, want) in [
        (format!("api_key = \"{KEY}\""), "holds a secret"),
        (
            "api_key = { env = \"NOT_SET\" }".to_owned(),
            "NOT_SET is not set",
        ),
        ("rate_limit = 0".to_owned(), "between 1 and 1000"),
        ("files = [\"a.csv\"]".to_owned(), "unknown key"),
    ] {
        let scene = stripe(&fake, "");
        config(&scene, &fake, "stripe.toml", &more);
        scene.intents("");
        let told = run(&scene, "");
        assert_eq!(told.code, 2, "{more}: {}", told.stderr);
        assert!(
            told.stderr.contains(want) && !told.stderr.contains(KEY),
            "{more}: {}",
            told.stderr
        );
    }
    let scene = stripe(&fake, "");
    let text = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    scene.write(
        "paysweep.toml",
        &text.replace(&fake.url(), "http://api.stripe.com"),
    );
    let told = run(&scene, "");
    assert!(
        told.code == 2 && told.stderr.contains("plain http"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_connected_account_is_named_in_every_request_and_in_its_rows() {
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00", 1000, 0);
    let scene = stripe(&fake, "account = \"acct_7\"");
    scene.intents("ORD-1,charge,1000,USD,succeeded,2026-03-09T09:59:00Z,pi_1\n");
    let told = run(&scene, "");
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    assert!(
        fake.shelf()
            .asked
            .iter()
            .all(|asked| asked.header("stripe-account") == Some("acct_7"))
    );
}
