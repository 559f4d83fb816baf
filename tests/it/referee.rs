//! An independent referee: a Stripe that somebody else has written (`localstripe`, from the Python package index) is driven
//! through payments, holds and refunds, and what it then answers is compared by our reader.
//!
//! It runs as a process of its own on this machine only. Where it is not installed the test says so on stderr and is passed
//! over, unless `PAYSWEEP_TEST_LOCALSTRIPE=required` asks for it, as `.ci/run` does. It is looked for in a virtual environment
//! in `target/tmp/localstripe`, which `.ci/run` makes:
//! `python3 -m venv target/tmp/localstripe && target/tmp/localstripe/bin/pip install localstripe==1.15.10`.
//!
//! It knows no filter by creation but on charges and events, no disputes, and expands only what is there; so the profile of
//! the test asks its lists without a stretch where it has none, and for less beside the rows. What rows mean is our own
//! profile, untouched.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::api::{breaks, repairs};
use super::scene::Scene;

const KEY: &str = "sk_test_canary41d0b7";

/// The other Stripe on the loopback address alone, at a port that it tells, without its file in the folder for temporary
/// files; it ends with its standard input.
const LAUNCHER: &str = r"
import os, socket, sys, threading
from aiohttp import web
from localstripe import resources, server
resources.Store.dump_to_disk = lambda self: None
threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
sock.bind((sys.argv[1], 0))
sock.listen(64)
print(sock.getsockname()[1], flush=True)
web.run_app(server.app, sock=sock, print=None, access_log=None)
";

/// The interpreter that has it; `None` = it is not installed.
fn python() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_TARGET_TMPDIR")).join("localstripe/bin/python");
    let is_there = Command::new(&python)
        .args(["-c", "import localstripe"])
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    is_there.then_some(python)
}

/// A running one.
struct Referee {
    process: Child,
    port: u16,
}

impl Referee {
    fn start(python: &Path) -> Referee {
        let mut process = Command::new(python)
            .args(["-c", LAUNCHER, &Ipv4Addr::LOCALHOST.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the interpreter starts");
        let mut line = String::new();
        BufReader::new(process.stdout.take().expect("a pipe"))
            .read_line(&mut line)
            .expect("a line");
        let port = line.trim().parse().expect("a port");
        Referee { process, port }
    }

    /// Does what a shop would do. Answers are told as they are: a refusal is one, too.
    fn post(&self, path: &str, form: &[(&str, &str)]) -> Value {
        let body: Vec<String> = form
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let body = body.join("&");
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).expect("it listens");
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/x-www-form-urlencoded\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .expect("a question");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (_, json) = text.split_once("\r\n\r\n").expect("a body");
        serde_json::from_str(json).unwrap_or_else(|error| panic!("{error}: {text}"))
    }

    /// A card of a customer.
    fn card(&self, number: &str) -> String {
        let made = self.post(
            "/v1/payment_methods",
            &[
                ("type", "card"),
                ("card[number]", number),
                ("card[exp_month]", "12"),
                ("card[exp_year]", "2099"),
                ("card[cvc]", "123"),
            ],
        );
        id(&made)
    }

    /// A payment that is asked for and confirmed; its id.
    fn pay(&self, card: &str, amount: &str, currency: &str, more: &[(&str, &str)]) -> String {
        let mut form = vec![
            ("amount", amount),
            ("currency", currency),
            ("payment_method", card),
        ];
        form.extend(more);
        let intent = id(&self.post("/v1/payment_intents", &form));
        self.post(&format!("/v1/payment_intents/{intent}/confirm"), &[]);
        intent
    }
}

impl Drop for Referee {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn id(made: &Value) -> String {
    made["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{made}"))
        .to_owned()
}

/// Our profile, asking no more than the referee knows to answer.
fn profile(scene: &Scene) -> String {
    let shown = scene.say("profiles show stripe.api").stdout;
    let mut table: toml::Table = shown.parse().expect("TOML");
    table["http"]["max_rps"] = toml::Value::Integer(1000);
    let lists = table["request"].as_array_mut().expect("requests");
    lists.retain(|list| !matches!(list["id"].as_str(), Some("disputes" | "payout_parts")));
    for list in lists {
        let list = list.as_table_mut().expect("a table");
        let is_charges = list["id"].as_str() == Some("charges");
        let window = "{ from = { param = \"created[gt]\", format = \"unix\" }, to = { param = [], format = \"unix\" } }";
        let window: toml::Table = format!("window = {window}").parse().expect("TOML");
        list.remove("window");
        if is_charges {
            list.extend(window);
        }
        if list.contains_key("query") {
            list["query"] = "\"expand[]\" = \"data.source\""
                .parse::<toml::Table>()
                .expect("TOML")
                .into();
        }
    }
    let lookups = table["lookup"].as_array_mut().expect("lookups");
    lookups.retain(|one| one["path"].as_str() == Some("/v1/payment_intents/{}"));
    for one in lookups {
        one["query"] = "\"expand[]\" = \"latest_charge.balance_transaction\""
            .parse::<toml::Table>()
            .expect("TOML")
            .into();
    }
    toml::to_string(&table).expect("TOML")
}

#[test]
fn a_stripe_of_somebody_else_is_read_the_same_way() {
    let Some(python) = python() else {
        let what = "the referee localstripe is not installed in target/tmp/localstripe";
        assert!(
            std::env::var("PAYSWEEP_TEST_LOCALSTRIPE").as_deref() != Ok("required"),
            "{what}"
        );
        // Past the harness, which shows nothing of a test that passes.
        let mut stderr = std::io::stderr();
        writeln!(
            stderr,
            "\nDID NOT RUN: {what}; tests/it/referee.rs says how\n"
        )
        .expect("stderr");
        return;
    };
    let referee = Referee::start(&python);
    let good = referee.card("4242424242424242");
    let bad = referee.card("4000000000000341");
    // What happened there.
    let plain = referee.pay(&good, "1000", "eur", &[]);
    let yen = referee.pay(&good, "1500", "jpy", &[]);
    let declined = referee.pay(&bad, "2000", "eur", &[]);
    let other_amount = referee.pay(&good, "3001", "eur", &[]);
    let held = referee.pay(&good, "4000", "eur", &[("capture_method", "manual")]);
    let captured = referee.pay(&good, "5000", "eur", &[("capture_method", "manual")]);
    referee.post(
        &format!("/v1/payment_intents/{captured}/capture"),
        &[("amount_to_capture", "5000")],
    );
    let refunded = referee.pay(&good, "6000", "eur", &[]);
    let refund = id(&referee.post(
        "/v1/refunds",
        &[("payment_intent", &refunded), ("amount", "2500")],
    ));
    let unknown = referee.pay(&good, "7000", "eur", &[]);
    let given_up = id(&referee.post(
        "/v1/payment_intents",
        &[
            ("amount", "8000"),
            ("currency", "eur"),
            ("payment_method", &good),
        ],
    ));
    referee.post(&format!("/v1/payment_intents/{given_up}/cancel"), &[]);

    // What we believe.
    let scene = Scene::empty();
    let now = paysweep::time::Instant(
        i64::try_from(
            std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .expect("after 1970")
                .as_micros(),
        )
        .expect("soon"),
    );
    let ago = |minutes: i64| now.minus(paysweep::time::Span(minutes * 60_000_000));
    let later = now.plus(paysweep::time::Span(2 * 3_600_000_000));
    scene.write("referee.toml", &profile(&scene));
    scene.write("key", KEY);
    scene.write(
        "paysweep.toml",
        &format!(
            "[store]\nurl = \"sqlite://paysweep.db\"\n\n[source.shop]\nkind = \"api\"\nprofile = \"referee.toml\"\nmode = \"test\"\n\
             base_url = \"http://{}:{}\"\napi_key = {{ file = \"key\" }}\npage_size = 2\nstart = \"{}\"\nlag = \"0s\"\n\n\
             [intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n",
            Ipv4Addr::LOCALHOST,
            referee.port,
            ago(60)
        ),
    );
    let created = ago(1);
    let row = |intent: &str, kind: &str, amount: u32, currency: &str, status: &str, found: &str| {
        format!("{intent},{kind},{amount},{currency},{status},{created},{found}\n")
    };
    scene.intents(
        &[
            row("plain", "charge", 1000, "EUR", "pending", &plain),
            row("yen", "charge", 1500, "JPY", "succeeded", &yen),
            row("declined", "charge", 2000, "EUR", "pending", &declined),
            row(
                "other-amount",
                "charge",
                3000,
                "EUR",
                "succeeded",
                &other_amount,
            ),
            row("held", "charge", 4000, "EUR", "pending", &held),
            row("captured", "charge", 5000, "EUR", "pending", &captured),
            row("refunded", "charge", 6000, "EUR", "succeeded", &refunded),
            row("given-up", "charge", 8000, "EUR", "pending", &given_up),
            row("nowhere", "charge", 9000, "EUR", "succeeded", "pi_nowhere"),
        ]
        .concat(),
    );
    let told = scene.say(&format!(
        "run -f json --include matches,pending,ignored --as-of {later}"
    ));
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    let found: Vec<String> = breaks(&told)
        .iter()
        .map(|line| line.rsplit_once(' ').expect("words").0.to_owned())
        .collect();
    assert_eq!(
        found,
        [
            "amount_mismatch other-amount",
            "missing_local -",
            "missing_local refunded",
            "missing_processor nowhere",
            "status_behind captured",
            "status_behind given-up",
            "status_behind plain",
        ],
        "{}",
        told.stdout
    );
    let report = told.json();
    let list = |name: &str| report[name].as_array().expect("a list").clone();
    let of_nobody = list("breaks")
        .into_iter()
        .find(|entry| entry["class"] == "missing_local" && entry["intent_id"].is_null());
    let of_nobody = of_nobody.expect("the payment that nobody knows");
    assert_eq!(of_nobody["money"]["minor"], 7000, "{unknown}: {of_nobody}");
    let written: Vec<(Value, Value)> = list("repairs")
        .into_iter()
        .map(|repair| (repair["intent_id"].clone(), repair["to"].clone()))
        .collect();
    for (intent, reference, status) in [
        ("plain", &plain, "succeeded"),
        ("captured", &captured, "succeeded"),
        ("given-up", &given_up, "canceled"),
    ] {
        let to = written.iter().find(|(id, _)| id == intent);
        let (_, to) = to.unwrap_or_else(|| panic!("{intent}: {}", told.stdout));
        assert_eq!(to["status"], status, "{intent}");
        assert_eq!(to["processor_ref"], reference.as_str(), "{intent}");
    }
    let recorded = written
        .iter()
        .find(|(_, to)| to["kind"] == "refund")
        .unwrap_or_else(|| panic!("{}", told.stdout));
    assert_eq!(recorded.1["amount_minor"], 2500, "{refund}");
    assert_eq!(recorded.1["parent_intent_id"], "refunded");
    let matched: Vec<Value> = list("matches")
        .into_iter()
        .map(|row| row["intent_id"].clone())
        .collect();
    for intent in ["yen", "held", "refunded"] {
        assert!(matched.contains(&json!(intent)), "{intent}: {matched:?}");
    }
    // A card that was declined is an attempt: another one may follow.
    let reasons: Vec<Value> = list("ignored")
        .into_iter()
        .map(|row| row["reason"].clone())
        .collect();
    assert!(
        reasons.contains(&json!("failed_attempt")),
        "{declined}: {reasons:?}"
    );
    // Again: what needs a person stays, and nothing is written twice.
    let told = scene.say(&format!("run -f json --as-of {later}"));
    assert!(repairs(&told).is_empty(), "{}", told.stdout);
    for text in [&told.stdout, &told.stderr] {
        assert!(!text.contains(KEY), "{text}");
    }
}
