//! `PayPal`: conversions stand beside their payment, and the search says whose account it is.

use serde_json::{Value, json};

use super::api::{breaks, repairs};
use super::api_profiles::ask;
use super::fake::{Asked, Fake, Shelf};
use super::scene::Told;

fn search(asked: &Asked, shelf: &Shelf) -> (u16, Value) {
    if asked.path == "/v1/oauth2/token" {
        let scope = "https://uri.paypal.com/services/reporting/search/read";
        return (200, json!({"access_token": "t", "scope": scope}));
    }
    let (from, to) = (
        asked.of("start_date").expect("a time"),
        asked.of("end_date").expect("a time"),
    );
    let rows: Vec<Value> = shelf.lists["rows"]
        .iter()
        .filter(|row| {
            let at = row["transaction_info"]["transaction_initiation_date"].as_str();
            let at = at.expect("a time").replace("+0000", "Z");
            at.as_str() >= from && at.as_str() <= to
        })
        .cloned()
        .collect();
    let pages = u8::from(!rows.is_empty());
    (
        200,
        json!({"transaction_details": rows, "account_number": shelf.account, "page": 1, "total_pages": pages,
            "last_refreshed_datetime": "2026-03-10T03:00:00+0000"}),
    )
}

fn row(
    id: &str,
    code: &str,
    value: (&str, &str),
    fee: Option<&str>,
    invoice: &str,
    of: &str,
) -> Value {
    let (currency, value) = value;
    json!({"transaction_info": {"transaction_id": id, "transaction_event_code": code, "transaction_status": "S",
        "transaction_initiation_date": "2026-03-09T10:00:00+0000", "transaction_updated_date": "2026-03-09T10:00:00+0000",
        "transaction_amount": {"currency_code": currency, "value": value},
        "fee_amount": fee.map(|fee| json!({"currency_code": currency, "value": fee})),
        "invoice_id": invoice, "paypal_reference_id": of, "paypal_reference_id_type": "TXN"}})
}

/// A payment in pounds that was converted into dollars as it came.
fn world(account: &str) -> Fake {
    let fake = Fake::with(Box::new(search)).open();
    fake.shelf().account = json!(account);
    fake.put(
        "rows",
        [
            row("T1", "T0006", ("GBP", "100.00"), Some("-3.90"), "P-1", ""),
            row("T2", "T0200", ("GBP", "-96.10"), None, "", "T1"),
            row("T3", "T0200", ("USD", "121.30"), None, "", "T1"),
        ],
    );
    fake
}

const KEYS: [(&str, &str); 2] = [("client_id", "c"), ("client_secret", "s")];
const OURS: &str = "P-1,charge,10000,GBP,pending,2026-03-09T09:59:00Z,\n";

fn ignored(told: &Told) -> Vec<String> {
    let report = told.json();
    let rows = report["ignored"].as_array().expect("a list");
    rows.iter()
        .map(|row| row["reason"].as_str().expect("text").to_owned())
        .collect()
}

#[test]
fn the_two_rows_of_a_conversion_are_told_as_such_and_leave_nothing_open() {
    let fake = world("M1");
    let (scene, told) = ask(&fake, "paypal.api", &KEYS, OURS);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    assert_eq!(
        breaks(&told),
        ["status_behind P-1 T1|T0006|GBP"],
        "{}",
        told.stdout
    );
    assert_eq!(repairs(&told).len(), 1, "{}", told.stdout);
    // What the payment left in pounds went out again, and came in as dollars.
    let report = told.json();
    let net = |currency: &str| -> i64 {
        let totals = report["totals"].as_array().expect("a list");
        let total = totals.iter().find(|total| total["currency"] == currency);
        total.expect(currency)["net"]["minor"]
            .as_i64()
            .expect("a number")
    };
    assert_eq!((net("GBP"), net("USD")), (0, 12130), "{}", told.stdout);
    let again = scene.say("run -f json --as-of 2026-03-10T12:00:00Z --include ignored");
    assert_eq!(again.code, 0, "{} {}", again.stdout, again.stderr);
    assert_eq!(
        ignored(&again),
        ["conversion", "conversion"],
        "{}",
        again.stdout
    );
}

#[test]
fn the_search_of_another_account_is_refused() {
    let fake = world("M1");
    let (scene, told) = ask(&fake, "paypal.api", &KEYS, OURS);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    fake.shelf().account = json!("M2");
    let told = scene.say("run -f json --as-of 2026-03-10T12:00:00Z");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    for words in ["M1", "M2", "watermark repin"] {
        assert!(told.stderr.contains(words), "{}", told.stderr);
    }
    // An answer that does not say it is no other account.
    fake.shelf().account = Value::Null;
    assert_eq!(
        scene.say("run -f json --as-of 2026-03-10T12:00:00Z").code,
        0
    );
}
