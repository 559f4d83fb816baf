//! Adyen's transfers: payouts by their reference, everything else as money of the accounts, and no sign that is not proved.

use serde_json::{Value, json};

use super::api::{breaks, config, repairs};
use super::fake::{Asked, Fake, Shelf};
use super::scene::{Scene, Told};

/// The list of a balance account, two rows a page, with links to the next page on the same host.
fn transfers(asked: &Asked, shelf: &Shelf) -> (u16, Value) {
    if asked.header("x-api-key") != Some("adyen_k") {
        return (401, json!({"title": "Unauthorized"}));
    }
    if let Some(id) = asked.path.strip_prefix("/btl/v4/transfers/") {
        let found = shelf.lists["rows"].iter().find(|row| row["id"] == id);
        return found.map_or((404, json!({})), |row| (200, row.clone()));
    }
    let (since, until) = (asked.of("createdSince"), asked.of("createdUntil"));
    let (Some("BA1"), Some("asc"), Some(since), Some(until)) = (
        asked.of("balanceAccountId"),
        asked.of("sortOrder"),
        since,
        until,
    ) else {
        return (422, json!({"title": "not asked so"}));
    };
    let begin: usize = asked
        .of("cursor")
        .map_or(0, |text| text.parse().expect("a number"));
    let size: usize = asked
        .of("limit")
        .expect("a size")
        .parse()
        .expect("a number");
    let rows: Vec<Value> = shelf.lists["rows"]
        .iter()
        .filter(|row| {
            let at = row["createdAt"].as_str().or(row["creationDate"].as_str());
            let at = at.expect("a time").replace("+00:00", "Z");
            at.as_str() >= since && at.as_str() <= until
        })
        .cloned()
        .collect();
    let next = begin + size;
    let links = if next < rows.len() {
        let host = asked.header("host").expect("a host");
        let mut url = format!("http://{host}{}?", asked.path);
        for (name, value) in asked.query.iter().filter(|(name, _)| name != "cursor") {
            url.push_str(&format!("{name}={}&", value.replace(':', "%3A")));
        }
        json!({"next": {"href": format!("{url}cursor={next}")}})
    } else {
        json!({})
    };
    let page: Vec<Value> = rows.into_iter().skip(begin).take(size).collect();
    (200, json!({"data": page, "_links": links}))
}

/// `ID CATEGORY TYPE DIRECTION STATUS MINOR REGISTER REFERENCE`; a register of `-` holds nothing yet.
fn row(line: &str) -> Value {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [
        id,
        category,
        kind,
        direction,
        status,
        minor,
        register,
        reference,
    ] = words[..]
    else {
        panic!("{line}");
    };
    let mut balance = json!({"currency": "EUR", "received": 0, "reserved": 0});
    if let Ok(minor) = register.parse::<i64>() {
        balance["balance"] = json!(minor);
    }
    let mut row = json!({"id": id, "balancePlatform": "LanternPlatform", "balanceAccount": {"id": "BA1"}, "accountHolder": {"id": "AH1"},
        "category": category, "type": kind, "direction": direction, "status": status, "reference": reference,
        "amount": {"value": minor.parse::<i64>().expect("an amount"), "currency": "EUR"}, "balances": [balance],
        "createdAt": "2026-03-09T10:00:00+00:00", "creationDate": "2026-03-09T10:00:00+00:00", "sequenceNumber": 1});
    if direction == "-" {
        row.as_object_mut().expect("an object").remove("direction");
    }
    row
}

fn world(lines: &[&str]) -> Fake {
    let fake = Fake::with(Box::new(transfers)).open();
    show(&fake, lines);
    fake
}

fn show(fake: &Fake, lines: &[&str]) {
    let rows = lines.iter().map(|line| row(line)).collect();
    fake.shelf().lists.insert("rows".to_owned(), rows);
}

fn scene(fake: &Fake, account: &str, intents: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("key", "adyen_k");
    let account = match account {
        "" => String::new(),
        account => format!("account = \"{account}\"\n"),
    };
    config(
        &scene,
        fake,
        "adyen.transfers",
        &format!(
            "api_key = {{ file = \"key\" }}\n{account}page_size = 2\nrate_limit = 1000\npatience = \"1s\"\n"
        ),
    );
    scene.intents(intents);
    scene
}

const RUN: &str = "run -f json --as-of 2026-03-10T12:00:00Z --include pending,ignored,matches";

fn ids(told: &Told, list: &str) -> Vec<String> {
    let report = told.json();
    let rows = report[list].as_array().expect("a list");
    let mut ids: Vec<String> = rows
        .iter()
        .filter_map(|row| row["operation_id"].as_str().map(str::to_owned))
        .collect();
    ids.sort();
    ids
}

const PAYOUTS: &str = "PO-1,payout,10000,EUR,pending,2026-03-09T09:59:00Z,\nPO-2,payout,5000,EUR,pending,2026-03-09T09:59:00Z,\n\
    PO-3,payout,3000,EUR,succeeded,2026-03-09T09:59:00Z,TR3\n";

#[test]
fn adyen_payouts_are_found_by_their_reference_and_other_transfers_are_money_of_the_accounts() {
    let fake = world(&[
        "TR1 bank bankTransfer outgoing booked 10000 -10000 PO-1",
        "TR2 bank bankTransfer outgoing authorised 5000 - PO-2",
        "TR3 bank bankTransfer outgoing returned 3000 0 PO-3",
        "TR4 internal internalTransfer incoming booked 1000 1000 I-1",
        "TR5 topUp capture incoming captured 100000 100000 U-1",
        // One payment of 80.00: two shares, and what it cost.
        "TR6 platformPayment capture incoming captured 7000 7000 S-1",
        "TR7 platformPayment capture incoming captured 1000 1000 S-2",
        "TR8 platformPayment capture outgoing captured 344 -344 S-3",
        "TR9 platformPayment refund outgoing refunded 500 -500 S-4",
        "TR10 platformPayment chargeback outgoing chargebackPending 700 - S-5",
        "TR11 issuedCard payment outgoing authorised 800 - C-1",
    ]);
    let scene = scene(&fake, "BA1", PAYOUTS);
    let told = scene.say(RUN);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    assert_eq!(
        breaks(&told),
        ["payout_returned PO-3 TR3", "status_behind PO-1 TR1"],
        "{}",
        told.stdout
    );
    assert!(
        repairs(&told).contains(&"set_status PO-1 TR1 applied".to_owned()),
        "{:?}",
        repairs(&told)
    );
    assert_eq!(ids(&told, "pending"), ["TR2"], "{}", told.stdout);
    assert_eq!(
        ids(&told, "ignored"),
        ["TR10", "TR11", "TR4", "TR5", "TR6", "TR7", "TR8", "TR9"],
        "{}",
        told.stdout
    );
    // What was booked, payouts aside; what a payment cost is a row of its own here.
    let net = &told.json()["totals"][0]["net"];
    assert_eq!(net["minor"], 1000 + 100_000 + 7000 + 1000 - 344 - 500);
    // Every page was asked for once, with the account in it.
    for page in ["2", "4", "6", "8", "10"] {
        let shelf = fake.shelf();
        let asked = shelf
            .asked
            .iter()
            .filter(|asked| asked.of("cursor") == Some(page));
        assert_eq!(asked.count(), 1, "{page}");
    }

    // Next night: one payout was booked, another one came back.
    show(
        &fake,
        &[
            "TR1 bank bankTransfer outgoing returned 10000 0 PO-1",
            "TR2 bank bankTransfer outgoing booked 5000 -5000 PO-2",
            "TR11 issuedCard payment outgoing captured 950 -950 C-1",
        ],
    );
    let told = scene.say("run -f json --as-of 2026-03-11T12:00:00Z");
    let found = breaks(&told);
    assert!(
        found.contains(&"status_behind PO-2 TR2".to_owned())
            && found.contains(&"payout_returned PO-1 TR1".to_owned()),
        "{found:?}"
    );
    assert!(
        !found
            .iter()
            .any(|found| found.starts_with("operation_changed")),
        "{found:?}"
    );
}

#[test]
fn adyen_rows_whose_sign_is_not_proved_cannot_be_used() {
    let fake = world(&[
        // The direction of a direct debit is that of the request.
        "TR1 bank bankDirectDebit incoming booked 1000 -1000 X",
        "TR2 internal internalDirectDebit outgoing booked 1000 1000 X",
        // The register says the contrary of the direction.
        "TR3 bank bankTransfer outgoing booked 900 900 X",
        "TR4 platformPayment capture incoming captured 800 -800 X",
        // Nobody says where the money went.
        "TR5 bank bankTransfer - booked 700 -700 X",
        // Words that nobody described.
        "TR6 grants grant incoming booked 600 600 X",
        "TR7 bank bankTransfer outgoing miscCost 500 -500 X",
    ]);
    let scene = scene(&fake, "BA1", "");
    let told = scene.say(RUN);
    let mut found = breaks(&told);
    found.sort();
    let expected: Vec<String> = (1..=7)
        .map(|row| format!("invalid_record - TR{row}"))
        .collect();
    assert_eq!(found, expected, "{} {}", told.stdout, told.stderr);
    assert_eq!(told.code, 1);
}

#[test]
fn adyen_lists_are_those_of_one_account() {
    let fake = world(&["TR1 internal internalTransfer incoming booked 1000 1000 I-1"]);
    let told = scene(&fake, "", "").say(RUN);
    assert_eq!(told.code, 2, "{} {}", told.stdout, told.stderr);
    assert!(
        told.stderr.contains("account is missing"),
        "{}",
        told.stderr
    );
    assert!(fake.shelf().asked.is_empty());
    for (account, param) in [
        ("BA1", "balanceAccountId"),
        ("AH1", "accountHolderId"),
        ("LanternPlatform", "balancePlatform"),
    ] {
        fake.shelf().asked.clear();
        let scene = scene(&fake, account, "");
        scene.say(RUN);
        let shelf = fake.shelf();
        let asked = shelf.asked.first().expect("a question");
        assert_eq!(asked.of(param), Some(account), "{:?}", asked.query);
        let others = ["balanceAccountId", "accountHolderId", "balancePlatform"];
        let sent = others.iter().filter(|name| asked.of(name).is_some());
        assert_eq!(sent.count(), 1, "{:?}", asked.query);
    }
    // Another platform than that of the first run is refused.
    let scene = scene(&fake, "BA1", "");
    assert_eq!(scene.say(RUN).code, 0);
    for row in fake.shelf().lists.get_mut("rows").expect("a list") {
        row["balancePlatform"] = json!("OtherPlatform");
    }
    let told = scene.say(RUN);
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
}
