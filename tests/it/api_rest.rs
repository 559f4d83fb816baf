//! Lists that a profile declares: every way of paging, of logging in and of asking for a stretch of time.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::api::{breaks, config, repairs};
use super::fake::{Asked, Fake, Fault, KEY, Shelf};
use super::scene::{Scene, Told};

/// A profile of its own: lists of operations in our own words.
fn profile(request: &str) -> String {
    format!(
        r#"
[profile]
name = "own.api"
version = 1
kind = "api"

[http]
base = "https://api.example.com"
max_rps = 1000
timeout = "1s"

[http.retry]
base_ms = 1
max_ms = 2
tries = 2

[auth]
kind = "bearer"
secret = "api_key"

[[request]]
id = "operations"
path = "/operations"
items = "/items"
columns = {{ id = "/id", kind = "/kind", status = "/status", amount = "/amount", fee = "/fee", currency = "/currency", at = "/at", "words[*]" = "/words/*" }}
{request}

[[lookup]]
prefix = ""
path = "/operations/{{}}"
request = "operations"

[records.default]
operation_id = ["id"]
reference = [ {{ columns = "words[*]" }} ]
occurred_at = {{ column = "at", format = "rfc3339" }}

[records.default.money]
unit = "minor"
amount = {{ column = "amount", currency = "currency" }}
fee_total = {{ column = "fee", currency = "currency", sign = "cost_positive" }}

[maps.kind]
column = "kind"
charge = {{ kind = "charge" }}

[maps.status]
column = "status"
succeeded = {{ status = "succeeded" }}
"#
    )
}

fn row(id: &str, reference: &str, amount: i64, currency: &str, fee: i64, at: &str) -> Value {
    json!({"id": id, "kind": "charge", "status": "succeeded", "amount": amount, "currency": currency, "fee": fee, "at": at,
        "words": {"order": reference}})
}

fn scene(fake: &Fake, request: &str, more: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("own.toml", &profile(request));
    config(
        &scene,
        fake,
        "own.toml",
        &format!("api_key = {{ file = \"key\" }}\n{more}"),
    );
    scene.write("key", KEY);
    scene
}

fn run(scene: &Scene, as_of: &str) -> Told {
    scene.say(&format!(
        "run -f json --as-of {as_of} --include pending,matches"
    ))
}

fn name(told: &Told) -> String {
    told.json()["outcome"]["name"]
        .as_str()
        .expect("a name")
        .to_owned()
}

fn sum(told: &Told) -> i64 {
    let repaired: Vec<String> = repairs(told);
    100 * i64::try_from(repaired.len()).expect("few")
}

/// Rows inside the asked stretch, newest or oldest first, by the paging that is asked for.
fn listed(is_newest_first: bool) -> impl Fn(&Asked, &Shelf) -> (u16, Value) + Send {
    move |asked, shelf| {
        let rows = &shelf.lists["/operations"];
        if let Some(id) = asked.path.strip_prefix("/operations/") {
            let hidden = shelf.lists.get("/hidden").into_iter().flatten();
            return match rows.iter().chain(hidden).find(|row| row["id"] == id) {
                Some(found) => (200, found.clone()),
                None => (404, json!({"error": "unknown"})),
            };
        }
        let seconds =
            |text: &str| paysweep::time::Instant::parse(text).expect("RFC 3339").0 / 1_000_000;
        let bound = |name: &str| {
            asked
                .of(name)
                .map(|text| text.parse::<i64>().expect("seconds"))
        };
        let mut found: Vec<&Value> = rows
            .iter()
            .filter(|row| {
                let at = seconds(row["at"].as_str().expect("a time"));
                bound("from").is_none_or(|from| at >= from) && bound("to").is_none_or(|to| at < to)
            })
            .collect();
        found.sort_by_key(|row| row["at"].as_str().expect("a time").to_owned());
        if is_newest_first {
            found.reverse();
        }
        let limit = asked
            .of("limit")
            .map_or(2, |text| text.parse::<usize>().expect("a number"));
        let begin = match (asked.of("after"), asked.of("offset"), asked.of("page")) {
            (Some(id), _, _) => {
                found
                    .iter()
                    .position(|row| row["id"] == id)
                    .expect("a known row")
                    + 1
            }
            (_, Some(offset), _) => offset.parse().expect("a number"),
            (_, _, Some(page)) => (page.parse::<usize>().expect("a number") - 1) * limit,
            _ => 0,
        };
        let page: Vec<Value> = found
            .iter()
            .skip(begin)
            .take(limit)
            .map(|row| (*row).clone())
            .collect();
        let has_more = begin + page.len() < found.len();
        let last = page.last().map_or(Value::Null, |row| row["id"].clone());
        let link = has_more.then(|| {
            let kept: Vec<String> = asked
                .query
                .iter()
                .filter(|(name, _)| name != "after")
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            format!(
                "/operations?{}&after={}",
                kept.join("&"),
                last.as_str().unwrap_or_default()
            )
        });
        let pages = found.len().div_ceil(limit);
        (
            200,
            json!({"items": page, "more": has_more, "token": if has_more { last } else { Value::Null }, "next": link, "pages": pages}),
        )
    }
}

const WINDOW: &str = "window = { from = { param = \"from\", format = \"unix\" }, to = { param = \"to\", format = \"unix\" } }";
const CURSOR: &str = "page = { kind = \"last_id\", param = \"after\", id = \"/id\", more = \"/more\", size_param = \"limit\", size = 2 }";
const OFFSET: &str =
    "page = { kind = \"offset\", param = \"offset\", size_param = \"limit\", size = 2 }";

/// Newest first, and new rows arrive while paging.
#[test]
fn rows_that_arrive_while_a_list_is_read_are_neither_lost_nor_booked_twice() {
    for page in [CURSOR, OFFSET] {
        let fake = Fake::with(Box::new(listed(true)));
        let mut intents = String::new();
        for n in 1..=6 {
            writeln!(
                intents,
                "ORD-E{n},charge,100,USD,pending,2026-03-09T10:0{}:59Z,",
                n - 1
            )
            .expect("text");
        }
        let entry = |n: u32| {
            row(
                &format!("e{n}"),
                &format!("ORD-E{n}"),
                100,
                "USD",
                0,
                &format!("2026-03-09T10:0{n}:00Z"),
            )
        };
        fake.put("/operations", (1..=5).map(entry));
        fake.arrives(1, "/operations", entry(6));
        let more = "complete_through = \"last-row\"\nlag = \"0s\"\nlookback = \"1h\"";
        let scene = scene(&fake, &format!("{WINDOW}\n{page}"), more);
        scene.intents(&intents);
        let told = run(&scene, "2026-03-09T10:06:30Z");
        assert_eq!(
            (told.code, name(&told).as_str()),
            (1, "repaired"),
            "{page}: {} {}",
            told.stdout,
            told.stderr
        );
        let is_seen = sum(&told) == 600;
        assert!(
            is_seen == (page == OFFSET) && (is_seen || sum(&told) == 500),
            "{page}: {}",
            told.stdout
        );
        let mark = told.json()["sources"][0]["watermark_after"]
            .as_str()
            .expect("a time")
            .to_owned();
        assert!(
            mark.as_str()
                <= if is_seen {
                    "2026-03-09T10:06:00Z"
                } else {
                    "2026-03-09T10:05:00Z"
                },
            "{page}: {mark}"
        );
        let told = run(&scene, "2026-03-09T10:30:00Z");
        if is_seen {
            assert_eq!(told.code, 0, "{}", told.stdout);
        } else {
            assert_eq!(
                repairs(&told),
                ["set_status ORD-E6 e6 applied"],
                "{page}: {}",
                told.stdout
            );
        }
        let told = run(&scene, "2026-03-09T10:30:00Z");
        assert_eq!(
            (told.code, name(&told).as_str(), repairs(&told).len()),
            (0, "clean", 0),
            "{page}: {}",
            told.stdout
        );
    }
}

/// An old open row is asked for by its id.
#[test]
fn an_open_row_that_the_list_does_not_reach_is_asked_for() {
    let fake = Fake::with(Box::new(listed(true)));
    fake.put("/operations", []);
    fake.put(
        "/hidden",
        [row(
            "ch_411",
            "ORD-411",
            9900,
            "EUR",
            35,
            "2026-02-20T10:00:00Z",
        )],
    );
    let scene = scene(
        &fake,
        &format!("{WINDOW}\n{CURSOR}"),
        "lookup = \"by-id\"\nlookback = \"72h\"",
    );
    scene.intents("ORD-411,charge,9900,EUR,pending,2026-02-20T09:59:00Z,ch_411\n");
    let told = run(&scene, "2026-03-10T06:00:00Z");
    assert_eq!(
        (told.code, name(&told).as_str()),
        (1, "repaired"),
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert_eq!(breaks(&told), ["status_behind ORD-411 ch_411"]);
    assert_eq!(repairs(&told), ["set_status ORD-411 ch_411 applied"]);
    let told = run(&scene, "2026-03-10T06:00:00Z");
    assert_eq!(
        (told.code, name(&told).as_str(), repairs(&told).len()),
        (0, "clean", 0),
        "{}",
        told.stdout
    );
}

/// The second of three pages cannot be fetched, or breaks off in the middle.
#[test]
fn a_page_in_the_middle_that_cannot_be_read_makes_nothing_absent() {
    for fault in [
        Fault::Status(500),
        Fault::CutBody,
        Fault::CutChunks,
        Fault::HalfJson,
    ] {
        let fake = Fake::with(Box::new(listed(false)));
        fake.put(
            "/operations",
            [
                row("ch_451", "ORD-451", 1000, "EUR", 0, "2026-03-09T09:00:00Z"),
                row("ch_452", "ORD-452", 2000, "EUR", 0, "2026-03-09T10:00:00Z"),
                row("ch_453", "ORD-453", 3000, "EUR", 0, "2026-03-09T11:00:00Z"),
            ],
        );
        let scene = scene(&fake, &format!("{WINDOW}\n{CURSOR}"), "page_size = 1");
        scene.intents(
            "ORD-451,charge,1000,EUR,pending,2026-03-09T08:59:50Z,\nORD-452,charge,2000,EUR,succeeded,2026-03-09T10:00:00Z,ch_452\n\
             ORD-453,charge,3000,EUR,pending,2026-03-09T10:59:50Z,\n",
        );
        fake.fails("/operations", 2, fault, 1000);
        let told = run(&scene, "2026-03-10T06:00:00Z");
        assert_eq!(told.code, 3, "{fault:?}: {} {}", told.stdout, told.stderr);
        let report = told.json();
        assert_eq!(
            report["outcome"]["reasons"][0]["code"], "incomplete",
            "{}",
            told.stdout
        );
        assert!(
            report["outcome"]["reasons"][0]["message"]
                .as_str()
                .expect("text")
                .contains("/operations, page 2"),
            "{}",
            told.stdout
        );
        assert!(
            told.stderr.contains("/operations, page 2"),
            "{}",
            told.stderr
        );
        assert_eq!(report["sources"][0]["complete"], false);
        assert_eq!(
            report["sources"][0]["watermark_after"],
            "2026-03-09T00:00:00Z"
        );
        assert!(
            breaks(&told)
                .iter()
                .all(|line| !line.starts_with("missing")),
            "{}",
            told.stdout
        );
        fake.heals();
        let told = run(&scene, "2026-03-10T06:00:00Z");
        assert_eq!(
            (told.code, name(&told).as_str()),
            (1, "repaired"),
            "{fault:?}: {}",
            told.stdout
        );
        assert_eq!(told.json()["summary"]["matched"], 3, "{}", told.stdout);
        let told = run(&scene, "2026-03-10T06:00:00Z");
        assert_eq!(
            (told.code, name(&told).as_str()),
            (0, "clean"),
            "{fault:?}: {}",
            told.stdout
        );
    }
}

#[test]
fn every_way_of_paging_reads_every_row_once() {
    let pages = [
        CURSOR,
        OFFSET,
        "page = { kind = \"token\", param = \"after\", token = \"/token\", size_param = \"limit\", size = 2 }",
        "page = { kind = \"next_url\", token = \"/next\", size_param = \"limit\", size = 2 }",
        "page = { kind = \"page_number\", param = \"page\", total_pages = \"/pages\", size_param = \"limit\", size = 2 }",
        "page = { kind = \"last_id\", param = \"after\", id = \"/id\", more = \"/more\", size_param = \"limit\", size = 2, field = \"/at\" }",
    ];
    for (n, page) in pages.into_iter().enumerate() {
        for count in [0, 1, 2, 5] {
            let fake = Fake::with(Box::new(listed(true)));
            let rows = (1..=count).map(|n| {
                row(
                    &format!("e{n}"),
                    &format!("O-{n}"),
                    100,
                    "EUR",
                    0,
                    &format!("2026-03-09T10:0{n}:00Z"),
                )
            });
            // Older than anybody asks for.
            let old = (1..=4).map(|n| {
                row(
                    &format!("old{n}"),
                    &format!("OLD-{n}"),
                    100,
                    "EUR",
                    0,
                    &format!("2026-01-0{n}T10:00:00Z"),
                )
            });
            fake.put("/operations", rows.chain(old));
            let window = if n == 5 { "" } else { WINDOW };
            let scene = scene(&fake, &format!("{window}\n{page}"), "");
            let intents: Vec<String> = (1..=count)
                .map(|n| format!("O-{n},charge,100,EUR,pending,2026-03-09T10:00:00Z,\n"))
                .collect();
            scene.intents(&intents.concat());
            let told = run(&scene, "2026-03-10T06:00:00Z");
            assert_eq!(
                told.json()["summary"]["matched"],
                count,
                "{page}: {} {}",
                told.stdout,
                told.stderr
            );
            assert_eq!(
                told.json()["sources"][0]["operations"],
                count,
                "{page}: {}",
                told.stdout
            );
            assert_eq!(told.code, i32::from(count > 0), "{page}: {}", told.stdout);
        }
    }
}

#[test]
fn a_link_to_another_host_is_not_followed() {
    let fake = Fake::with(Box::new(|_: &Asked, _: &Shelf| {
        (
            200,
            json!({"items": [], "next": "https://192.0.2.1/operations?page=2"}),
        )
    }));
    let scene = scene(
        &fake,
        "page = { kind = \"next_url\", token = \"/next\" }",
        "",
    );
    scene.intents("");
    let told = run(&scene, "2026-03-10T06:00:00Z");
    assert_eq!(told.code, 4, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("another host"), "{}", told.stderr);
}

#[test]
fn every_way_of_logging_in_is_sent_as_it_is_declared() {
    for (auth, keys, header, want) in [
        (
            "kind = \"header\"\nheader = \"X-Key\"\nsecret = \"api_key\"",
            "api_key",
            "x-key",
            "k1",
        ),
        (
            "kind = \"basic\"\nuser = \"user\"\nsecret = \"password\"",
            "user password",
            "authorization",
            "Basic azE6azE=",
        ),
        (
            "kind = \"bearer\"\nsecret = \"api_key\"",
            "api_key",
            "authorization",
            "Bearer k1",
        ),
        (
            "kind = \"oauth2_client_credentials\"\ntoken_path = \"/token\"\nuser = \"client_id\"\nsecret = \"client_secret\"\nscope = \"read\"",
            "client_id client_secret",
            "authorization",
            "Bearer t0ken",
        ),
    ] {
        let fake = Fake::with(Box::new(|asked: &Asked, _: &Shelf| {
            match asked.path.as_str() {
                "/token" => (
                    200,
                    json!({"access_token": "t0ken", "scope": "write read", "expires_in": 60}),
                ),
                _ => (200, json!({"items": []})),
            }
        }))
        .open();
        let scene = scene(&fake, "", "");
        let text = profile("").replace("kind = \"bearer\"\nsecret = \"api_key\"", auth);
        scene.write("own.toml", &text);
        scene.write("k", "k1");
        let more: Vec<String> = keys
            .split(' ')
            .map(|key| format!("{key} = {{ file = \"k\" }}\n"))
            .collect();
        config(&scene, &fake, "own.toml", &more.concat());
        scene.intents("");
        let told = run(&scene, "2026-03-10T06:00:00Z");
        assert_eq!(told.code, 0, "{auth}: {} {}", told.stdout, told.stderr);
        let shelf = fake.shelf();
        let asked = shelf
            .asked
            .iter()
            .find(|asked| asked.path == "/operations")
            .expect("a question");
        assert_eq!(asked.header(header), Some(want), "{auth}");
        for asked in &shelf.asked {
            assert!(
                asked.method == "GET"
                    || (asked.path == "/token" && asked.body == "grant_type=client_credentials")
            );
        }
    }
}

#[test]
fn a_token_without_its_scope_is_denied() {
    let fake = Fake::with(Box::new(|_: &Asked, _: &Shelf| {
        (
            200,
            json!({"access_token": "t0ken", "scope": "write", "items": []}),
        )
    }))
    .open();
    let scene = scene(&fake, "", "");
    let auth = "kind = \"oauth2_client_credentials\"\ntoken_path = \"/token\"\nuser = \"client_id\"\nsecret = \"client_secret\"\nscope = \"read\"";
    scene.write(
        "own.toml",
        &profile("").replace("kind = \"bearer\"\nsecret = \"api_key\"", auth),
    );
    config(
        &scene,
        &fake,
        "own.toml",
        "client_id = { file = \"key\" }\nclient_secret = { file = \"key\" }",
    );
    scene.intents("");
    let told = run(&scene, "2026-03-10T06:00:00Z");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert!(
        !told.stderr.contains(KEY) && told.stderr.contains("scope read"),
        "{}",
        told.stderr
    );
}

#[test]
fn a_profile_that_cannot_be_meant_is_refused() {
    for (from, to, want) in [
        (
            "kind = \"bearer\"",
            "kind = \"barer\"",
            "did you mean \"bearer\"",
        ),
        (
            "items = \"/items\"",
            "item = \"/items\"",
            "unknown key \"item\"",
        ),
        ("columns = {", "unheard = {", "unknown key \"unheard\""),
        ("amount = \"/amount\"", "amount = \"amount\"", "no pointer"),
        (
            "path = \"/operations\"",
            "path = \"operations\"",
            "has to begin with",
        ),
        (
            "path = \"/operations/{}\"",
            "path = \"/operations\"",
            "for the id",
        ),
        (
            "timeout = \"1s\"",
            "timeout = \"soon\"",
            "no length of time",
        ),
        ("kind = \"api\"", "kind = \"csv\"", "reads files"),
    ] {
        let fake = Fake::with(Box::new(listed(true)));
        let scene = scene(&fake, "", "");
        let text = profile("").replacen(from, to, 1);
        assert_ne!(text, profile(""), "{from}");
        scene.write("own.toml", &text);
        scene.intents("");
        let told = run(&scene, "2026-03-10T06:00:00Z");
        assert!(
            told.code == 2 && told.stderr.contains(want),
            "{to}: {} {}",
            told.code,
            told.stderr
        );
        assert!(fake.shelf().asked.is_empty());
    }
}
