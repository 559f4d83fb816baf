//! Every fault of HTTP on every page: no wrong verdict, no lost row, no repair twice, and never the key.

use std::sync::Mutex;

use serde_json::{Value, json};

use super::api::{breaks, paid, repairs, stripe};
use super::fake::{Fake, Fault, KEY};
use super::scene::{Scene, Told};

const AS_OF: &str = "2026-03-10T12:00:00Z";

const FAULTS: &[Fault] = &[
    Fault::Status(400),
    Fault::Status(401),
    Fault::Status(403),
    Fault::Status(404),
    Fault::Status(408),
    Fault::Status(409),
    Fault::Status(418),
    Fault::Status(429),
    Fault::Status(500),
    Fault::Status(502),
    Fault::Status(503),
    Fault::Status(504),
    Fault::RetryAfter("0"),
    Fault::RetryAfter("1000000000"),
    Fault::RetryAfter("soon"),
    Fault::RetryAfter("Tue, 10 Mar 2026 12:00:00 GMT"),
    Fault::Veto,
    Fault::Hangup,
    Fault::CutBody,
    Fault::CutChunks,
    Fault::HalfJson,
    Fault::NotJson,
    Fault::Html,
    Fault::WrongType,
    Fault::Empty,
    Fault::ErrorObject,
    Fault::NullList,
    Fault::Numbers,
    Fault::NoMore,
    Fault::MoreOfNothing,
    Fault::FirstAgain,
    Fault::RedirectAway,
    Fault::RedirectHere,
];

/// A page, and how it goes wrong.
#[derive(Clone, Copy, Debug)]
struct Case {
    path: &'static str,
    page: usize,
    fault: Fault,
    /// Once, or for ever.
    times: usize,
}

fn cases() -> Vec<Case> {
    let pages = [
        ("/v1/account", 1),
        ("/v1/balance_transactions", 1),
        ("/v1/balance_transactions", 2),
        ("/v1/balance_transactions", 3),
        ("/v1/charges", 1),
        ("/v1/charges", 2),
        ("/v1/refunds", 1),
    ];
    let mut cases = Vec::new();
    for &fault in FAULTS {
        for (path, page) in pages {
            // For ever on every page; once in the middle of the log and on another list.
            for times in [1, 1000] {
                if times == 1000
                    || matches!(
                        (path, page),
                        ("/v1/balance_transactions", 2) | ("/v1/charges", 1)
                    )
                {
                    cases.push(Case {
                        path,
                        page,
                        fault,
                        times,
                    });
                }
            }
        }
    }
    // Nobody waits longer than they said: once is enough for each page.
    for (path, page) in pages {
        cases.push(Case {
            path,
            page,
            fault: Fault::Slow,
            times: 1000,
        });
    }
    cases
}

/// Five payments on three pages, a refund of one of them, a payment that was declined, and two rows of ours that nobody knows.
fn world() -> (Fake, String) {
    let fake = Fake::stripe();
    fake.shelf().account = json!({"id": "acct_1", "object": "account"});
    let mut intents = String::new();
    for n in 1..=4 {
        paid(&fake, &n.to_string(), &format!("10:0{n}"), 1000 * n, 59);
        let status = if n == 3 { "succeeded" } else { "pending" };
        let reference = if n == 3 { "pi_3" } else { "" };
        intents.push_str(&format!(
            "ORD-{n},charge,{},USD,{status},2026-03-09T10:00:00Z,{reference}\n",
            1000 * n
        ));
    }
    let created = 1_773_014_400 + 39_600;
    fake.put(
        "/v1/refunds",
        [json!({"id": "re_1", "object": "refund", "amount": 1000, "charge": "ch_1", "payment_intent": "pi_1", "currency": "usd", "created": created,
            "status": "succeeded", "balance_transaction": "txn_r", "metadata": {}})],
    );
    fake.put(
        "/v1/balance_transactions",
        [json!({"id": "txn_r", "object": "balance_transaction", "amount": -1000, "fee": 0, "net": -1000, "currency": "usd", "created": created,
            "available_on": created, "balance_type": "payments", "reporting_category": "refund", "source": "re_1"})],
    );
    fake.put(
        "/v1/charges",
        [json!({"id": "ch_no", "object": "charge", "amount": 700, "currency": "usd", "created": created, "status": "failed", "captured": false,
            "refunded": false, "livemode": true, "payment_intent": "pi_no", "balance_transaction": null, "metadata": {"order": "ORD-5"}})],
    );
    intents.push_str("ORD-5,charge,700,USD,pending,2026-03-09T10:00:00Z,\n");
    intents.push_str("ORD-6,charge,600,USD,succeeded,2026-03-09T10:00:00Z,\nORD-7,charge,600,USD,succeeded,2026-03-09T10:00:00Z,pi_7\n");
    (fake, intents)
}

/// What is left at the end: repairs that were ever written, and what is open.
#[derive(Debug, PartialEq, Eq)]
struct End {
    repairs: Vec<String>,
    breaks: Vec<String>,
}

fn run(scene: &Scene) -> Told {
    let mut command = scene.command(&format!(
        "run -f json -vv --log-format json --as-of {AS_OF}"
    ));
    command.env("RUST_LOG", "trace");
    Told::from(command.output().expect("the binary starts"))
}

fn list(scene: &Scene, line: &str, of: &str) -> Vec<String> {
    let told = scene.say(line);
    let listed = told.json();
    let rows = listed[of]
        .as_array()
        .or_else(|| listed.as_array())
        .unwrap_or_else(|| panic!("{}", told.stdout))
        .clone();
    let word = |row: &Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    let mut lines: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {}",
                word(row, "class"),
                word(row, "action"),
                word(row, "intent_id"),
                word(row, "state")
            )
        })
        .collect();
    lines.sort();
    lines
}

fn end(scene: &Scene) -> End {
    End {
        repairs: list(scene, "repairs list -f json", "repairs"),
        breaks: list(scene, "breaks list -f json", "breaks"),
    }
}

/// Everything that was written, in one piece.
fn written(scene: &Scene, told: &Told) -> Vec<u8> {
    let mut bytes = told.stdout.clone().into_bytes();
    bytes.extend(told.stderr.as_bytes());
    for part in scene.store() {
        bytes.extend(part);
    }
    bytes
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes
        .windows(word.len())
        .any(|part| part == word.as_bytes())
}

#[test]
fn no_fault_on_any_page_leads_to_a_wrong_verdict_or_shows_the_key() {
    let (fake, intents) = world();
    let scene = stripe(&fake, "");
    scene.intents(&intents);
    let whole = run(&scene);
    assert_eq!(whole.code, 1, "{} {}", whole.stdout, whole.stderr);
    let (whole_breaks, whole_repairs) = (breaks(&whole), repairs(&whole));
    assert!(
        whole_breaks.contains(&"missing_processor ORD-7 -".to_owned()) && whole_repairs.len() == 4,
        "{}",
        whole.stdout
    );
    let whole_end = end(&scene);

    let cases = cases();
    assert!(cases.len() >= 250, "{}", cases.len());
    let waiting = Mutex::new(cases.clone());
    let outcomes = Mutex::new(std::collections::BTreeMap::<i32, usize>::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().expect("nobody panicked").pop();
                    let Some(case) = next else { return };
                    let (fake, intents) = world();
                    let scene = stripe(&fake, "");
                    scene.intents(&intents);
                    fake.fails(case.path, case.page, case.fault, case.times);
                    let told = run(&scene);
                    let label = format!("{case:?}: {} {}", told.code, told.stderr);
                    assert!(
                        !holds(&written(&scene, &told), KEY),
                        "{case:?} shows the key"
                    );
                    if told.code == 1 {
                        assert_eq!(breaks(&told), whole_breaks, "{label}");
                        assert_eq!(repairs(&told), whole_repairs, "{label}");
                    } else {
                        assert!([2, 3, 4, 5, 75].contains(&told.code), "{label}");
                        assert!(!told.stderr.trim().is_empty(), "{label}");
                        let is_told = !told.stdout.is_empty();
                        let found = if is_told { breaks(&told) } else { Vec::new() };
                        assert!(
                            found.iter().all(|line| !line.starts_with("missing")),
                            "{label} {found:?}"
                        );
                        assert!(is_told || told.code != 3, "{label}");
                        if is_told && told.code == 3 {
                            assert_eq!(told.json()["sources"][0]["complete"], false, "{label}");
                            assert_eq!(
                                told.json()["sources"][0]["watermark_after"],
                                "2026-03-09T00:00:00Z",
                                "{label}"
                            );
                        }
                    }
                    *outcomes
                        .lock()
                        .expect("nobody panicked")
                        .entry(told.code)
                        .or_default() += 1;
                    fake.heals();
                    let again = run(&scene);
                    assert!(
                        again.code == 1,
                        "{label} then {} {}",
                        again.code,
                        again.stderr
                    );
                    assert_eq!(end(&scene), whole_end, "{label}");
                }
            });
        }
    });
    let outcomes = outcomes.into_inner().expect("nobody panicked");
    println!("{} cases: {outcomes:?}", cases.len());
    for code in [1, 3, 4, 5, 75] {
        assert!(
            outcomes.contains_key(&code),
            "no case ended with {code}: {outcomes:?}"
        );
    }
}

#[test]
fn a_key_that_is_refused_is_never_repeated() {
    let (fake, intents) = world();
    for (name, key) in [
        ("refused", "sk_live_canary_of_another"),
        ("damaged", "sk_live_canary\u{1}x"),
    ] {
        let scene = stripe(&fake, "");
        scene.intents(&intents);
        scene.write("key", key);
        for line in [
            "run -f json",
            "check",
            "run --dry-run",
            "status",
            "watermark show",
            "runs list",
        ] {
            let told = Told::from(
                scene
                    .command(line)
                    .env("RUST_LOG", "trace")
                    .output()
                    .expect("the binary starts"),
            );
            assert!(
                !holds(&written(&scene, &told), "canary"),
                "{name}: {line}: {} {}",
                told.stdout,
                told.stderr
            );
        }
    }
}

#[test]
fn gauges_tell_how_much_was_asked_also_where_nothing_could_be_read() {
    let gauge = |scene: &Scene, name: &str| -> String {
        let text = std::fs::read_to_string(scene.path("m.prom")).expect("gauges");
        let line = text
            .lines()
            .find(|line| line.starts_with(&format!("{name}{{")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).to_owned()
    };
    let fake = Fake::stripe();
    paid(&fake, "1", "10:00:00", 1000, 59);
    let scene = stripe(&fake, "");
    scene.intents("");
    fake.fails("/v1/charges", 1, Fault::RetryAfter("0"), 1);
    let told = scene.say(&format!(
        "run -f json --metrics-file m.prom --as-of {AS_OF}"
    ));
    let asked = fake.shelf().asked.len();
    for (name, value) in [("requests", asked), ("retries", 1), ("throttled", 1)] {
        let name = format!("paysweep_api_{name}");
        assert_eq!(
            gauge(&scene, &name),
            format!("{name}{{source=\"shop\"}} {value}")
        );
    }
    let checks = told.json()["checks"].clone();
    let check = checks.as_array().expect("a list").iter();
    let check = check.filter_map(|check| check["detail"].as_str());
    let wanted = "1 tried again, 1 answers asked for fewer requests";
    assert!(
        check.clone().any(|detail| detail.contains(wanted)),
        "{checks}"
    );
    // Nothing can be read: that is when somebody looks.
    let fake = Fake::stripe();
    let scene = stripe(&fake, "");
    scene.intents("");
    fake.fails("/v1/balance_transactions", 1, Fault::Status(429), 1000);
    let told = scene.say(&format!("run --metrics-file m.prom --as-of {AS_OF}"));
    assert_eq!(told.code, 75, "{}", told.stderr);
    for name in ["requests", "retries", "throttled"] {
        let line = gauge(&scene, &format!("paysweep_api_{name}"));
        assert!(!line.ends_with(" 0"), "{line}");
    }
}
