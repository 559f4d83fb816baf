//! `PayPal`: conversions are folded into their payment, whatever the order in which their rows appear, and the search says
//! whose account it is.

use serde_json::{Value, json};

use super::api::{breaks, check_of, repairs};
use super::api_profiles::ask;
use super::fake::{Asked, Fake, Shelf};
use super::scene::{Scene, Told};

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
    fake.put("rows", [converted(0), converted(1), converted(2)]);
    fake
}

const KEYS: [(&str, &str); 2] = [("client_id", "c"), ("client_secret", "s")];
const OURS: &str = "P-1,charge,10000,GBP,pending,2026-03-09T09:59:00Z,\n";

const PAYMENT: &str = "T1|T0006|GBP";

/// Rows that are set aside: id, reason, and what they are folded into.
fn ignored(told: &Told) -> Vec<String> {
    let report = told.json();
    let rows = report["ignored"].as_array().expect("a list");
    let text = |row: &Value, name: &str| row[name].as_str().unwrap_or("-").to_owned();
    rows.iter()
        .map(|row| {
            ["operation_id", "reason", "folded_into"]
                .map(|name| text(row, name))
                .join(" ")
        })
        .collect()
}

/// What matched operations were settled with, in minor units.
fn settled(told: &Told) -> Vec<String> {
    let report = told.json();
    let rows = report["matches"].as_array().expect("a list");
    rows.iter()
        .filter(|row| !row["settled"].is_null())
        .map(|row| {
            let (id, money) = (row["operation_id"].as_str(), &row["settled"]);
            let currency = money["currency"].as_str().expect("text");
            format!("{} {} {currency}", id.expect("text"), money["minor"])
        })
        .collect()
}

fn net(told: &Told, currency: &str) -> i64 {
    let report = told.json();
    let totals = report["totals"].as_array().expect("a list");
    let total = totals.iter().find(|total| total["currency"] == currency);
    total.map_or(0, |total| total["net"]["minor"].as_i64().expect("a number"))
}

/// The rows of the conversion by number: 0 is the payment.
fn converted(number: usize) -> Value {
    match number {
        0 => row("T1", "T0006", ("GBP", "100.00"), Some("-3.90"), "P-1", ""),
        1 => row("T2", "T0200", ("GBP", "-96.10"), None, "", "T1"),
        _ => row("T3", "T0200", ("USD", "121.30"), None, "", "T1"),
    }
}

fn show(fake: &Fake, numbers: &[usize]) {
    let rows = numbers.iter().map(|&number| converted(number)).collect();
    fake.shelf().lists.insert("rows".to_owned(), rows);
}

#[test]
fn a_payment_is_told_with_what_its_conversion_brought_and_nothing_is_left_open() {
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
    assert_eq!(
        (net(&told, "GBP"), net(&told, "USD")),
        (0, 12130),
        "{}",
        told.stdout
    );
    let fees = told.json()["totals"][0]["fees"].clone();
    assert_eq!(
        (fees["currency"].as_str(), fees["minor"].as_i64()),
        (Some("GBP"), Some(390))
    );
    assert_eq!(settled(&told), [format!("{PAYMENT} 12130 USD")]);
    let again = scene.say(AGAIN);
    assert_eq!(again.code, 0, "{} {}", again.stdout, again.stderr);
    assert_eq!(
        ignored(&again),
        [
            format!("T2|T0200|GBP conversion {PAYMENT}"),
            format!("T3|T0200|USD conversion {PAYMENT}")
        ],
        "{}",
        again.stdout
    );
    assert_eq!(
        check_of(&again, "conversions shop"),
        "1 folded into what they convert"
    );
    let explained = scene.say(&format!("explain {PAYMENT}"));
    assert!(
        explained.stdout.contains("121.30 USD"),
        "{}",
        explained.stdout
    );
    let explained = scene.say("explain T3|T0200|USD");
    assert!(
        explained.stdout.contains("folded_into"),
        "{}",
        explained.stdout
    );
}

const AGAIN: &str = "run -f json --as-of 2026-03-10T12:00:00Z --include ignored,matches";

/// The classes of all breaks but those about our own row, which is behind until it is repaired.
fn alarms(told: &Told) -> Vec<String> {
    let mut found = breaks(told);
    found.retain(|found| !found.starts_with("status_behind") && !found.starts_with("missing_"));
    found
}

#[test]
fn rows_of_a_conversion_may_come_in_any_order_of_nights_and_go_again() {
    for nights in [
        [&[0][..], &[0, 1, 2], &[0]],
        [&[1, 2], &[0, 1, 2], &[1, 2]],
        [&[0], &[1], &[2]],
        [&[2], &[1], &[0]],
        [&[1], &[0], &[2]],
        [&[0, 1], &[2, 0], &[]],
        [&[0, 1, 2], &[0], &[2, 1]],
        [&[2, 1, 0], &[], &[1]],
    ] {
        let fake = world("M1");
        show(&fake, nights[0]);
        let (scene, told) = ask(&fake, "paypal.api", &KEYS, OURS);
        let mut nets = vec![told];
        for night in &nights[1..] {
            show(&fake, night);
            nets.push(scene.say(AGAIN));
        }
        for told in &nets {
            assert!(told.code <= 1, "{nights:?} {} {}", told.stdout, told.stderr);
            assert_eq!(alarms(told), [""; 0], "{nights:?} {}", told.stdout);
        }
        let explained = scene.say(&format!("explain {PAYMENT}"));
        assert!(
            explained.stdout.contains("121.30 USD"),
            "{nights:?} {}",
            explained.stdout
        );
        // The lookback shows every row once more, and the sums of them are what moved.
        let last = nets.last().expect("three nights");
        assert_eq!(
            settled(last),
            [format!("{PAYMENT} 12130 USD")],
            "{nights:?}"
        );
        assert_eq!(
            (net(last, "GBP"), net(last, "USD")),
            (0, 12130),
            "{nights:?}"
        );
    }
}

#[test]
fn a_range_that_cuts_a_conversion_tells_each_part_once_and_alarms_nobody() {
    let fake = world("M1");
    let mut late = [converted(0), converted(1), converted(2)];
    for row in &mut late[1..] {
        row["transaction_info"]["transaction_initiation_date"] = json!("2026-03-09T10:00:01+0000");
    }
    fake.shelf().lists.insert("rows".to_owned(), late.to_vec());
    let (scene, told) = ask(&fake, "paypal.api", &KEYS, OURS);
    assert_eq!(told.code, 1, "{} {}", told.stdout, told.stderr);
    let of = |range: &str| {
        scene.say(&format!(
            "run -f json --as-of 2026-03-10T12:00:00Z --include ignored,matches {range}"
        ))
    };
    let before = of("--from 2026-03-09T00:00:00Z --to 2026-03-09T10:00:01Z");
    let after = of("--from 2026-03-09T10:00:01Z --to 2026-03-09T20:00:00Z");
    for told in [&before, &after] {
        assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
        assert_eq!(alarms(told), [""; 0], "{}", told.stdout);
    }
    // What is stored completes the picture: the payment is told with what it became, the rows with where they belong.
    assert_eq!(settled(&before), [format!("{PAYMENT} 12130 USD")]);
    assert_eq!(ignored(&before), [""; 0], "{}", before.stdout);
    assert_eq!(ignored(&after).len(), 2, "{}", after.stdout);
    assert!(ignored(&after).iter().all(|row| row.ends_with(PAYMENT)));
    // Each report sums up its own rows, so the two together are what moved.
    let sum = |currency: &str| net(&before, currency) + net(&after, currency);
    assert_eq!((net(&before, "GBP"), net(&before, "USD")), (9610, 0));
    assert_eq!((sum("GBP"), sum("USD")), (0, 12130));
}

#[test]
fn a_refund_of_a_converted_payment_has_a_conversion_of_its_own() {
    let fake = world("M1");
    fake.put(
        "rows",
        [
            row("T5", "T1107", ("GBP", "-100.00"), Some("3.90"), "", "T1"),
            row("T6", "T0200", ("GBP", "96.10"), None, "", "T5"),
            row("T7", "T0200", ("USD", "-122.00"), None, "", "T5"),
        ],
    );
    let ours = "P-1,charge,10000,GBP,succeeded,2026-03-09T09:59:00Z,T1
R-1,refund,10000,GBP,succeeded,2026-03-09T09:59:30Z,T5
";
    let (_, told) = ask(&fake, "paypal.api", &KEYS, ours);
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    let mut found = settled(&told);
    found.sort();
    assert_eq!(
        found,
        [
            format!("{PAYMENT} 12130 USD"),
            "T5|T1107|GBP -12200 USD".to_owned()
        ]
    );
    assert_eq!((net(&told, "GBP"), net(&told, "USD")), (0, -70));
}

#[test]
fn rows_that_do_not_account_for_the_payment_stand_by_themselves() {
    let fake = world("M1");
    fake.shelf().lists.insert(
        "rows".to_owned(),
        vec![
            converted(0),
            row("T2", "T0200", ("GBP", "-20.00"), None, "", "T1"),
            row("T3", "T0200", ("USD", "25.30"), None, "", "T1"),
        ],
    );
    let (scene, _) = ask(&fake, "paypal.api", &KEYS, OURS);
    let told = scene.say(AGAIN);
    assert_eq!(told.code, 0, "{} {}", told.stdout, told.stderr);
    assert_eq!(settled(&told), [""; 0]);
    assert_eq!(
        ignored(&told),
        ["T2|T0200|GBP conversion -", "T3|T0200|USD conversion -"]
    );
    let detail = check_of(&told, "conversions shop");
    assert!(
        detail.starts_with("the rows of 1 do not account"),
        "{detail}"
    );
}

/// An activity download of these rows: number 0 is the payment.
fn download(numbers: &[usize]) -> String {
    let mut text = "\"Date\",\"Time\",\"TimeZone\",\"Name\",\"Type\",\"Status\",\"Currency\",\"Gross\",\"Fee\",\"Net\",\"Transaction ID\",\"Reference Txn ID\",\"Invoice Number\",\"Balance\"\n".to_owned();
    for number in numbers {
        text.push_str(match number {
            0 => "\"03/19/2026\",\"10:00:00\",\"UTC\",\"A\",\"Express Checkout Payment\",\"Completed\",\"GBP\",\"100.00\",\"-3.90\",\"96.10\",\"T1\",\"\",\"P-1\",\"96.10\"\n",
            1 => "\"03/19/2026\",\"10:00:00\",\"UTC\",\"\",\"General Currency Conversion\",\"Completed\",\"GBP\",\"-96.10\",\"0.00\",\"-96.10\",\"T2\",\"T1\",\"\",\"0.00\"\n",
            _ => "\"03/19/2026\",\"10:00:00\",\"UTC\",\"\",\"General Currency Conversion\",\"Completed\",\"USD\",\"121.30\",\"0.00\",\"121.30\",\"T3\",\"T1\",\"\",\"121.30\"\n",
        });
    }
    text
}

#[test]
fn downloads_that_overlap_or_were_read_by_an_older_profile_change_nothing() {
    for (nights, is_old) in [
        ([&[0][..], &[0, 1, 2], &[0]], false),
        ([&[0, 1, 2], &[0], &[1, 2]], false),
        ([&[1, 2], &[0], &[0, 1, 2]], false),
        // A profile of before kept no parent of a conversion: it is filled in once the row is read again.
        ([&[0, 1, 2], &[0], &[0, 1, 2]], true),
    ] {
        let scene = Scene::empty();
        scene.write(
            "paysweep.toml",
            "[store]\nurl = \"sqlite://paysweep.db\"\n\n[source.shop]\nkind = \"csv\"\nprofile = \"activity.toml\"\nfiles = [\"Download.csv\"]\n\
             start = \"2026-03-19T00:00:00Z\"\ncomplete_through = \"as-of\"\nlag = \"6h\"\nlookback = \"2d\"\n\n[intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n",
        );
        scene.intents("P-1,charge,10000,GBP,succeeded,2026-03-19T09:59:00Z,T1\n");
        let profile = scene.say("profiles show paypal.activity").stdout;
        let older = profile.replace(", \"conversion\"]", "]");
        assert_ne!(profile, older);
        for (night, numbers) in nights.iter().enumerate() {
            let text = if is_old && night == 0 {
                &older
            } else {
                &profile
            };
            scene.write("activity.toml", text);
            scene.write("Download.csv", &download(numbers));
            let told = scene.say(&format!(
                "run -f json --as-of 2026-03-20T1{night}:00:00Z --include ignored,matches"
            ));
            assert_eq!(
                alarms(&told),
                [""; 0],
                "{nights:?} {} {}",
                told.stdout,
                told.stderr
            );
            assert!(told.code <= 1, "{nights:?} {}", told.stderr);
            if night == 2 {
                assert_eq!(told.code, 0, "{nights:?} {}", told.stdout);
                assert_eq!(settled(&told), ["T1|GBP 12130 USD"], "{nights:?}");
                assert_eq!(
                    (net(&told, "GBP"), net(&told, "USD")),
                    (0, 12130),
                    "{nights:?}"
                );
            }
        }
    }
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
