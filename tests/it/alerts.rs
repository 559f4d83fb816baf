//! Who is told beside the report: channels, metrics, the last words of a container. A small server of our own listens.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::Value;

use crate::scene::{NOW, Scene, Told};

/// What somebody sent.
#[derive(Clone, Debug)]
struct Sent {
    line: String,
    headers: Vec<(String, String)>,
    body: String,
}

impl Sent {
    fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    fn path(&self) -> &str {
        self.line.split(' ').nth(1).unwrap_or_default()
    }
}

/// Takes whatever is sent to it, and answers as it is told: a status each time, then 200.
struct Listener {
    url: String,
    sent: Arc<Mutex<Vec<Sent>>>,
    answers: Arc<Mutex<VecDeque<u16>>>,
}

impl Listener {
    fn new() -> Listener {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let url = format!(
            "http://{}/hook/secret-path",
            socket.local_addr().expect("an address")
        );
        let sent = Arc::new(Mutex::new(Vec::new()));
        let answers = Arc::new(Mutex::new(VecDeque::new()));
        let (all, next) = (Arc::clone(&sent), Arc::clone(&answers));
        std::thread::spawn(move || {
            for stream in socket.incoming().flatten() {
                let status = next
                    .lock()
                    .expect("nobody panicked")
                    .pop_front()
                    .unwrap_or(200);
                if let Some(one) = take(stream, status) {
                    all.lock().expect("nobody panicked").push(one);
                }
            }
        });
        Listener { url, sent, answers }
    }

    fn answer(&self, statuses: &[u16]) {
        self.answers
            .lock()
            .expect("nobody panicked")
            .extend(statuses);
    }

    /// What was sent since the last time.
    fn drain(&self) -> Vec<Sent> {
        std::mem::take(&mut *self.sent.lock().expect("nobody panicked"))
    }
}

fn take(mut stream: TcpStream, status: u16) -> Option<Sent> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let header = header.trim_end();
        if header.is_empty() {
            break;
        }
        let (name, value) = header.split_once(':')?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).ok()?;
    Some(Sent {
        line: line.trim_end().to_owned(),
        headers,
        body: String::from_utf8(body).ok()?,
    })
}

/// A run with variables of the environment.
fn run(scene: &Scene, line: &str, env: &[(&str, &str)]) -> Told {
    let mut command = scene.command(line);
    command.envs(env.iter().copied());
    Told::from(command.output().expect("the binary starts"))
}

fn nightly(scene: &Scene, day: u32, listener: &Listener) -> Told {
    let line = format!("run -q --as-of 2026-03-{day:02}T06:00:00Z");
    run(
        scene,
        &line,
        &[("HOOK", &listener.url), ("KEY", "hush-hush")],
    )
}

const SLACK: &str = "[notify.slack]\nurl = { env = \"HOOK\" }\nmax_rows = 2\nlink = \"https://reports.example.test/{run_id}\"";
const WEBHOOK: &str =
    "[notify.webhook]\nurl = { env = \"HOOK\" }\nsecret = { env = \"KEY\" }\nmax_rows = 1";

fn wrong(rows: usize) -> (String, String) {
    let (mut operations, mut intents) = (String::new(), String::new());
    for n in 0..rows {
        operations.push_str(&format!(
            "ch_{n},charge,succeeded,1{n:03},EUR,2026-03-09T10:00:05Z,A{n}\n"
        ));
        intents.push_str(&format!(
            "A{n},charge,9000,EUR,succeeded,2026-03-09T10:00:00Z,ch_{n}\n"
        ));
    }
    (operations, intents)
}

#[test]
fn slack_hears_of_changes_and_not_of_the_same_breaks_every_night() {
    let listener = Listener::new();
    let scene = Scene::mismatch().with(SLACK);
    // New.
    assert_eq!(nightly(&scene, 10, &listener).code, 1);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert_eq!(
        (sent[0].line.as_str(), sent[0].header("content-type")),
        ("POST /hook/secret-path HTTP/1.1", "application/json")
    );
    let message = sent[0].json();
    let text = message.to_string();
    for part in [
        "2.00 EUR at risk: 1 new",
        "amount_mismatch",
        "`ch_1`",
        "https://reports.example.test/0",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The same again: silence.
    assert_eq!(nightly(&scene, 11, &listener).code, 1);
    assert_eq!(listener.drain().len(), 0);
    // Worse.
    scene.operations("ch_1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,A\n");
    scene.intents("A,charge,500,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n");
    nightly(&scene, 12, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    assert!(
        sent[0].body.contains("7.00 EUR at risk: 1 worse"),
        "{}",
        sent[0].body
    );
    // Another one, beside the first that is still open.
    scene.operations("ch_1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,300,EUR,2026-03-12T10:00:00Z,\n");
    nightly(&scene, 13, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    for part in [
        "1 new, 1 still open",
        "the oldest since 2026-03-10T06:00:00Z",
    ] {
        assert!(sent[0].body.contains(part), "{part}: {}", sent[0].body);
    }
    // Over: once.
    let ids: Vec<String> = scene
        .say("breaks list -f json --as-of 2026-03-13T06:00:00Z")
        .json()["breaks"]
        .as_array()
        .expect("breaks")
        .iter()
        .map(|it| it["id"].as_str().expect("an id").to_owned())
        .collect();
    scene.say(&format!(
        "breaks close {} --as accepted --reason fine",
        ids.join(" ")
    ));
    nightly(&scene, 14, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    assert!(
        sent[0].body.contains("recovered: nothing at risk"),
        "{}",
        sent[0].body
    );
    nightly(&scene, 15, &listener);
    assert_eq!(listener.drain().len(), 0);
}

#[test]
fn an_acknowledged_break_is_silent_until_its_day() {
    let listener = Listener::new();
    let scene = Scene::mismatch().with(SLACK);
    nightly(&scene, 10, &listener);
    let id = scene.now("breaks list -f json").json()["breaks"][0]["id"]
        .as_str()
        .expect("an id")
        .to_owned();
    scene.now(&format!(
        "breaks ack {id} --until 2026-03-13 --reason asked"
    ));
    listener.drain();
    nightly(&scene, 11, &listener);
    nightly(&scene, 12, &listener);
    let quiet = listener.drain();
    assert!(
        quiet.iter().all(|it| it.body.contains("recovered")),
        "{quiet:?}"
    );
    nightly(&scene, 14, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].body.contains("1 new"), "{}", sent[0].body);
}

#[test]
fn a_message_keeps_the_limits_of_its_channel_and_counts_what_it_leaves_out() {
    let listener = Listener::new();
    let (operations, intents) = wrong(60);
    let scene =
        Scene::new(&operations, &intents).with(&SLACK.replace("max_rows = 2", "max_rows = 100"));
    nightly(&scene, 10, &listener);
    let message = listener.drain()[0].json();
    let blocks = message["blocks"].as_array().expect("blocks");
    let mut shown = 0;
    let mut left_out = 0;
    for block in blocks {
        let text = block["text"]["text"].as_str().expect("a text");
        let max = if block["type"] == "header" { 150 } else { 3000 };
        assert!(text.chars().count() <= max && !text.is_empty(), "{text}");
        shown += text.matches("amount_mismatch").count();
        if let Some((_, rest)) = text.split_once("… and ") {
            left_out = rest
                .split(' ')
                .next()
                .and_then(|it| it.parse().ok())
                .expect("a number");
        }
    }
    assert!(shown > 5, "{shown}");
    assert_eq!(shown + left_out, 60);
    // And as few rows as were asked for.
    let scene = Scene::new(&operations, &intents).with(SLACK);
    nightly(&scene, 10, &listener);
    let body = &listener.drain()[0].body;
    assert_eq!(body.matches("amount_mismatch").count(), 2);
    assert!(body.contains("… and 58 more"), "{body}");
}

#[test]
fn hostile_text_calls_nobody_on_slack() {
    let listener = Listener::new();
    let scene = Scene::new(
        "<!channel>&`*x*,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,<https://x.test|click>\n",
        "",
    )
    .with(SLACK);
    nightly(&scene, 10, &listener);
    let body = &listener.drain()[0].body;
    assert!(body.contains("&lt;!channel&gt;&amp;"), "{body}");
    assert!(
        !body.contains("<!channel>") && !body.contains("<https://x.test"),
        "{body}"
    );
}

#[test]
fn a_webhook_is_signed_and_bears_the_run_as_its_key() {
    let listener = Listener::new();
    let (operations, intents) = wrong(3);
    let scene = Scene::new(&operations, &intents).with(WEBHOOK);
    nightly(&scene, 10, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    let body = sent[0].json();
    assert_eq!(
        (&body["schema"], &body["event"], &body["new"]),
        (&"paysweep.notice".into(), &"breaks".into(), &3.into())
    );
    assert_eq!(body["report"]["breaks"].as_array().map(Vec::len), Some(1));
    assert_eq!(body["left_out"]["breaks"], 2);
    assert_eq!(
        sent[0].header("idempotency-key"),
        body["report"]["run"]["id"]
    );
    let signature = sent[0].header("paysweep-signature");
    let (at, hex) = signature
        .strip_prefix("t=")
        .and_then(|rest| rest.split_once(",v1="))
        .unwrap_or_else(|| panic!("{signature}"));
    assert_eq!(hex, hmac("hush-hush", &format!("{at}.{}", sent[0].body)));
}

/// RFC 2104, written out: another way to the same figure.
fn hmac(key: &str, message: &str) -> String {
    use sha2::{Digest, Sha256};
    const BLOCK: usize = 64;
    let mut block = [0_u8; BLOCK];
    block[..key.len()].copy_from_slice(key.as_bytes());
    let pad = |with: u8| block.map(|byte| byte ^ with).to_vec();
    let inner = Sha256::digest([pad(0x36), message.as_bytes().to_vec()].concat());
    let outer = Sha256::digest([pad(0x5c), inner.to_vec()].concat());
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_monitor_hears_the_beginning_and_the_end_of_every_run_with_its_code() {
    let listener = Listener::new();
    let ping = "[notify.healthchecks]\nurl = { env = \"HOOK\" }";
    let paths = |sent: &[Sent]| -> Vec<String> {
        sent.iter()
            .map(|it| it.path().split('?').next().expect("a path").to_owned())
            .collect()
    };
    let scene = Scene::in_order().with(ping);
    for day in [10, 11] {
        nightly(&scene, day, &listener);
        let sent = listener.drain();
        assert_eq!(
            paths(&sent),
            ["/hook/secret-path/start", "/hook/secret-path/0"]
        );
        let rids: Vec<&str> = sent
            .iter()
            .filter_map(|it| it.path().split_once("?rid="))
            .map(|(_, rid)| rid)
            .collect();
        assert_eq!((rids.len(), rids[0]), (2, rids[1]));
    }
    let scene = Scene::mismatch().with(ping);
    nightly(&scene, 10, &listener);
    assert_eq!(
        paths(&listener.drain()),
        ["/hook/secret-path/start", "/hook/secret-path/1"]
    );
    // A run that fails as a whole.
    std::fs::remove_file(scene.path("operations.csv")).expect("it was there");
    let told = nightly(&scene, 11, &listener);
    let sent = listener.drain();
    assert_eq!(paths(&sent)[1], format!("/hook/secret-path/{}", told.code));
    assert!(
        told.code > 1 && sent[1].body.contains("operations.csv"),
        "{sent:?}"
    );
}

#[test]
fn a_failure_is_told_once_and_its_end_as_well() {
    let listener = Listener::new();
    let scene = Scene::in_order().with(SLACK);
    nightly(&scene, 9, &listener);
    assert_eq!(listener.drain().len(), 0);
    let rows = std::fs::read_to_string(scene.path("operations.csv")).expect("a file");
    std::fs::remove_file(scene.path("operations.csv")).expect("it was there");
    nightly(&scene, 10, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].body.contains("REJECTED"), "{}", sent[0].body);
    nightly(&scene, 11, &listener);
    assert_eq!(
        listener.drain().len(),
        0,
        "the same failure again is no news"
    );
    scene.write("operations.csv", &rows);
    nightly(&scene, 12, &listener);
    let sent = listener.drain();
    assert_eq!(sent.len(), 1);
    assert!(sent[0].body.contains("recovered"), "{}", sent[0].body);
}

#[test]
fn a_channel_that_is_down_is_tried_again_and_never_hides_what_was_found() {
    let listener = Listener::new();
    let scene = Scene::mismatch().with(SLACK);
    listener.answer(&[500, 503]);
    let told = nightly(&scene, 10, &listener);
    assert_eq!((told.code, listener.drain().len()), (1, 3));
    // Refused for good: no second try, the same exit code, and it is in the report.
    let scene = Scene::mismatch().with(SLACK);
    listener.answer(&[404]);
    let told = nightly(&scene, 10, &listener);
    assert_eq!((told.code, listener.drain().len()), (1, 1));
    assert!(
        told.stdout
            .contains("the message to slack was not sent: it answered 404"),
        "{}",
        told.stdout
    );
    let report = scene.now("report latest -f json").json();
    assert_eq!(report["deliveries"][0]["status"], "failed");
    // What it missed is told by the next run, though nothing is new.
    nightly(&scene, 11, &listener);
    assert_eq!(listener.drain().len(), 1);
    // A closed port, and a redirect, which is never followed.
    let scene = Scene::mismatch().with(SLACK);
    let closed = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .expect("a port")
        .local_addr()
        .expect("an address");
    let told = run(
        &scene,
        &format!("run --as-of {NOW}"),
        &[("HOOK", &format!("http://{closed}/secret-path"))],
    );
    assert_eq!(told.code, 1);
    assert!(
        told.stdout.contains("could not be reached"),
        "{}",
        told.stdout
    );
    let scene = Scene::mismatch().with(SLACK);
    listener.answer(&[302]);
    assert_eq!(nightly(&scene, 10, &listener).code, 1);
    assert_eq!(listener.drain().len(), 1);
}

#[test]
fn a_required_channel_that_is_not_reached_ends_the_run_with_6_and_the_finding_stands() {
    let listener = Listener::new();
    let required = format!("{SLACK}\nrequired = true");
    let scene = Scene::mismatch().with(&required);
    listener.answer(&[404]);
    let line = format!("run -f json --as-of {NOW}");
    let told = run(&scene, &line, &[("HOOK", &listener.url)]);
    assert_eq!(told.code, 6);
    let report = told.json();
    assert_eq!(report["outcome"]["name"], "undelivered");
    let codes: Vec<&str> = report["outcome"]["reasons"]
        .as_array()
        .expect("reasons")
        .iter()
        .filter_map(|it| it["code"].as_str())
        .collect();
    assert_eq!(codes, ["undelivered", "amount_mismatch"]);
    assert_eq!(report["summary"]["breaks"], 1);
    // Its secret that cannot be read is a failed delivery, not a configuration that stops every command.
    let scene = Scene::in_order().with(&required);
    assert_eq!(scene.now("status").code, 1, "nothing has run yet");
    let told = scene.now("check");
    assert_eq!(told.code, 2);
    assert!(
        told.stdout.contains("notify slack")
            && told.stdout.contains("the variable HOOK is not set"),
        "{}",
        told.stdout
    );
}

#[test]
fn nothing_is_sent_by_a_comparison_or_a_dry_run() {
    let listener = Listener::new();
    let scene = Scene::mismatch().with(&format!(
        "{SLACK}\n{WEBHOOK}\n[notify.healthchecks]\nurl = {{ env = \"HOOK\" }}"
    ));
    for line in ["run -n", "diff", "check", "status", "report latest"] {
        let line = format!("{line} --as-of {NOW}");
        run(&scene, &line, &[("HOOK", &listener.url), ("KEY", "k")]);
        assert_eq!(listener.drain().len(), 0, "{line}");
    }
    let metrics = format!("run -n --as-of {NOW} --metrics-file m.prom");
    scene.say(&metrics);
    assert!(!scene.path("m.prom").exists());
}

#[test]
fn no_address_of_a_channel_is_ever_shown() {
    let listener = Listener::new();
    let scene = Scene::mismatch().with(SLACK);
    for answers in [&[200][..], &[404], &[302]] {
        listener.answer(answers);
        let line = format!("run -vv --log-format json --as-of {NOW}");
        let told = run(&scene, &line, &[("HOOK", &listener.url)]);
        for text in [&told.stdout, &told.stderr] {
            assert!(
                !text.contains("secret-path") && !text.contains("/hook"),
                "{text}"
            );
        }
    }
    for (url, part) in [
        ("not a url secret-path", "is no URL"),
        ("http://hooks.example.test/secret-path", "is not encrypted"),
        ("ftp://hooks.example.test/secret-path", "is no https URL"),
    ] {
        let told = run(&scene, &format!("check --as-of {NOW}"), &[("HOOK", url)]);
        assert_eq!(told.code, 2, "{url}");
        assert!(
            told.stdout.contains(part) && !told.stdout.contains("secret-path"),
            "{}",
            told.stdout
        );
    }
    for (section, part) in [
        (
            "[notify.slack]\nurl = \"https://hooks.example.test/secret-path\"",
            "is a secret",
        ),
        (
            "[notify.webhook]\nurl = \"https://u:secret-path@example.test/\"",
            "holds a password",
        ),
        (
            "[notify.webhook]\nurl = \"https://example.test/\"\nsecret = \"secret-path\"",
            "is a secret",
        ),
        (
            "[notify.chat]\nurl = { env = \"HOOK\" }",
            "\"kind\" is missing",
        ),
        (
            "[notify.slack]\nurl = { env = \"HOOK\" }\nwhen = [\"sometimes\"]",
            "breaks",
        ),
    ] {
        let told = Scene::mismatch().with(section).now("run");
        assert_eq!(told.code, 2, "{section}");
        assert!(
            told.stderr.contains(part) && !told.stderr.contains("secret-path"),
            "{section}: {}",
            told.stderr
        );
    }
}

// ---------------------------------------------------------------- metrics

/// Series of a text by name and labels.
fn series(text: &str) -> std::collections::BTreeMap<String, String> {
    let mut kinds = 0;
    let mut found = std::collections::BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# ") {
            let mut words = rest.split(' ');
            match words.next() {
                Some("TYPE") => {
                    kinds += 1;
                    assert_eq!(rest.split(' ').nth(2), Some("gauge"), "{line}");
                }
                Some("HELP") => assert!(rest.split(' ').count() > 3, "{line}"),
                _ => panic!("{line}"),
            }
            continue;
        }
        let (name, value) = line.rsplit_once(' ').expect("a value");
        assert!(name.starts_with("paysweep_"), "{line}");
        let number = value.strip_prefix('-').unwrap_or(value);
        assert!(
            number
                .bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.'),
            "{line}"
        );
        assert_eq!(
            found.insert(name.to_owned(), value.to_owned()),
            None,
            "{line} twice"
        );
    }
    assert!(kinds > 10 && text.ends_with('\n'));
    found
}

#[test]
fn the_gauges_of_a_run_are_written_in_one_step_with_a_zero_for_what_is_known() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::mismatch();
    let told = scene.now("run -q --metrics-file m.prom");
    assert_eq!((told.code, told.stderr.as_str()), (1, ""));
    let text = std::fs::read_to_string(scene.path("m.prom")).expect("a file");
    let gauges = series(&text);
    for (name, want) in [
        (
            "paysweep_breaks_open{source=\"shop\",class=\"amount_mismatch\"}",
            "1",
        ),
        (
            "paysweep_breaks_open{source=\"shop\",class=\"duplicate_charge\"}",
            "0",
        ),
        (
            "paysweep_breaks_found{source=\"shop\",class=\"amount_mismatch\"}",
            "1",
        ),
        (
            "paysweep_repairs_applied{source=\"shop\",class=\"status_behind\"}",
            "0",
        ),
        ("paysweep_at_risk{source=\"shop\",currency=\"EUR\"}", "2.00"),
        ("paysweep_last_run_exit_code", "1"),
        (
            "paysweep_last_success_timestamp_seconds{source=\"shop\"}",
            "0",
        ),
        (
            "paysweep_watermark_timestamp_seconds{source=\"shop\"}",
            "1773122400",
        ),
        ("paysweep_operations_processed{source=\"shop\"}", "1"),
        ("paysweep_rows_rejected{source=\"shop\"}", "0"),
        ("paysweep_repairs_unconfirmed{source=\"intents\"}", "0"),
        (
            "paysweep_oldest_open_break_timestamp_seconds{source=\"shop\"}",
            "1773122400",
        ),
    ] {
        assert_eq!(
            gauges.get(name).map(String::as_str),
            Some(want),
            "{name}\n{text}"
        );
    }
    for stage in ["fetch", "load", "compare", "apply", "report"] {
        let name = format!("paysweep_stage_duration_seconds{{stage=\"{stage}\"}}");
        assert!(gauges.contains_key(&name), "{name}");
    }
    assert!(
        text.contains(&format!("version=\"{}\"", env!("CARGO_PKG_VERSION")))
            && text.contains("tzdb=\"20")
    );
    let mode = std::fs::metadata(scene.path("m.prom"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o644, "the collector is another user");
    assert!(
        scene
            .names()
            .iter()
            .all(|name| !name.starts_with(".paysweep-"))
    );
    // A run that fails leaves what is open and the last success as they were.
    std::fs::remove_file(scene.path("operations.csv")).expect("it was there");
    let told = scene.say("run -q --metrics-file m.prom --as-of 2026-03-11T06:00:00Z");
    let gauges = series(&std::fs::read_to_string(scene.path("m.prom")).expect("a file"));
    assert_eq!(gauges["paysweep_last_run_exit_code"], told.code.to_string());
    assert_eq!(
        gauges["paysweep_breaks_open{source=\"shop\",class=\"amount_mismatch\"}"],
        "1"
    );
}

#[test]
fn a_pushgateway_gets_the_same_and_its_failure_changes_nothing() {
    let listener = Listener::new();
    let scene = Scene::in_order();
    let base = listener
        .url
        .split("/hook")
        .next()
        .expect("an address")
        .to_owned();
    let told = scene.now(&format!("run -q --push-gateway {base}"));
    assert_eq!((told.code, told.stderr.as_str()), (0, ""));
    let sent = listener.drain();
    assert_eq!(sent[0].line, "PUT /metrics/job/paysweep HTTP/1.1");
    assert_eq!(series(&sent[0].body)["paysweep_last_run_exit_code"], "0");
    listener.answer(&[400]);
    let told = scene.say(&format!(
        "run -q --push-gateway {base} --as-of 2026-03-11T06:00:00Z"
    ));
    assert_eq!(told.code, 0);
    assert!(
        told.stderr.contains("could not be pushed: it answered 400"),
        "{}",
        told.stderr
    );
    let refused = scene.now("run --push-gateway https://u:p@x.test");
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("holds a password"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_container_leaves_its_last_words() {
    let scene = Scene::mismatch();
    scene.write("words", "");
    scene.now("run -q --termination-log words");
    let words = std::fs::read_to_string(scene.path("words")).expect("a file");
    for part in [
        "differences (exit 1)",
        "review: 1 break needs a person",
        "at risk: 2.00 EUR",
        "amount_mismatch 1",
    ] {
        assert!(words.contains(part), "{part}: {words}");
    }
    std::fs::remove_file(scene.path("operations.csv")).expect("it was there");
    let told = scene.now("run -q --termination-log words");
    let words = std::fs::read_to_string(scene.path("words")).expect("a file");
    assert!(
        words.contains(&format!("(exit {})", told.code)) && words.contains("operations.csv"),
        "{words}"
    );
    let (operations, intents) = wrong(400);
    let scene = Scene::new(&operations, &intents);
    scene.now("run -q --termination-log words");
    assert!(
        std::fs::metadata(scene.path("words"))
            .expect("a file")
            .len()
            <= 4096
    );
}

// ---------------------------------------------------------------- repairs

const REPAIRS: &str =
    "[notify.ledger]\nkind = \"repairs\"\nurl = { env = \"HOOK\" }\nsecret = { env = \"KEY\" }";

/// (state, id of the repair, key of the message) of everything that was sent.
fn steps(listener: &Listener) -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    listener
        .drain()
        .iter()
        .map(|sent| {
            let body = sent.json();
            assert_eq!(body["schema"], "paysweep.repair", "{body}");
            assert_eq!(body["repair"]["repair_origin"], "paysweep", "{body}");
            assert!(
                body["repair"]["age_seconds"].as_i64().expect("an age") > 0,
                "{body}"
            );
            assert!(
                sent.header("paysweep-signature").starts_with("t="),
                "{sent:?}"
            );
            let repair = &body["repair"];
            (
                text(&repair["state"]),
                text(&repair["id"]),
                sent.header("idempotency-key").to_owned(),
            )
        })
        .collect()
}

#[test]
fn each_step_of_a_repair_is_told_until_it_is_taken_and_never_again() {
    crate::scene::on_both(|database| {
        let listener = Listener::new();
        let scene = Scene::behind()
            .with(&format!("{REPAIRS}\n[repair]\nstatus_behind = \"propose\""))
            .stored(database, "2m");
        // A dry run has nobody to tell.
        nightly_dry(&scene, &listener);
        assert!(listener.drain().is_empty());
        // Nobody takes it: it is tried within the run, and by the next one under the same key.
        listener.answer(&[400]);
        assert_eq!(nightly(&scene, 10, &listener).code, 1);
        let first = steps(&listener);
        assert_eq!(first.len(), 1, "{first:?}");
        let (state, id, key) = first[0].clone();
        assert_eq!((state.as_str(), key), ("proposed", format!("{id}.1")));
        nightly(&scene, 11, &listener);
        assert_eq!(steps(&listener), first);
        nightly(&scene, 12, &listener);
        assert_eq!(steps(&listener), []);
        // What a person says is a step as well.
        let told = scene.say(&format!(
            "repairs approve {id} --reason ok --as-of 2026-03-12T07:00:00Z"
        ));
        assert_eq!(told.code, 0, "{told:?}");
        let told = scene.say("repairs apply --as-of 2026-03-12T07:00:00Z");
        assert_eq!(told.code, 0, "{told:?}");
        nightly(&scene, 13, &listener);
        let told = steps(&listener);
        let wanted = [("approved", 2), ("applied", 3)];
        let wanted: Vec<(String, String, String)> = wanted
            .iter()
            .map(|(state, step)| ((*state).to_owned(), id.clone(), format!("{id}.{step}")))
            .collect();
        assert_eq!(told, wanted);
        nightly(&scene, 14, &listener);
        assert_eq!(steps(&listener), []);
    });
}

fn nightly_dry(scene: &Scene, listener: &Listener) {
    let env = [("HOOK", listener.url.as_str()), ("KEY", "hush-hush")];
    run(scene, &format!("run -q --dry-run --as-of {NOW}"), &env);
}

#[test]
fn who_is_told_of_repairs_first_hears_of_no_old_ones_and_a_required_one_that_is_missed_is_told() {
    let listener = Listener::new();
    let scene = Scene::behind();
    assert_eq!(scene.now("run").code, 1);
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    scene.write(
        "paysweep.toml",
        &format!("{config}\n{REPAIRS}\nrequired = true\n"),
    );
    assert_eq!(nightly(&scene, 11, &listener).code, 0);
    assert_eq!(steps(&listener), []);
    scene.operations(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,700,EUR,2026-03-11T10:00:05Z,B\n",
    );
    scene.intents(
        "A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\nB,charge,700,EUR,pending,2026-03-11T10:00:00Z,\n",
    );
    listener.answer(&[400]);
    let told = nightly(&scene, 12, &listener);
    assert_eq!(told.code, 6, "{told:?}");
    assert_eq!(steps(&listener).len(), 1);
    nightly(&scene, 13, &listener);
    assert_eq!(steps(&listener).len(), 1);
    let told = scene.say("check");
    assert!(told.stdout.contains("notify ledger"), "{told:?}");
    // Masked ids would be of no use to whoever acts on them.
    scene.write(
        "paysweep.toml",
        &format!("{config}\n{REPAIRS}\n[report]\nredact = [\"intent_id\"]\n"),
    );
    let told = nightly(&scene, 14, &listener);
    assert_eq!(told.code, 2, "{told:?}");
}
