//! One month, once as Stripe's export and once as its API: the same verdicts, sums and counts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::api::stripe;
use super::fake::Fake;
use super::scene::Scene;

/// 2026-03-01T00:00:00Z.
const MARCH: i64 = 1_772_323_200;
const DAYS: i64 = 31;
const AS_OF: &str = "2026-04-03T06:00:00Z";

/// One row of the money log, as both sides tell it.
struct Entry {
    id: String,
    at: i64,
    currency: &'static str,
    gross: i64,
    fee: i64,
    category: &'static str,
    source: Value,
    payout: String,
}

fn decimals(currency: &str) -> u32 {
    match currency {
        "jpy" => 0,
        "kwd" => 3,
        _ => 2,
    }
}

/// Minor units as the export writes them.
fn major(minor: i64, currency: &str) -> String {
    let digits = decimals(currency);
    let (sign, size) = (if minor < 0 { "-" } else { "" }, minor.unsigned_abs());
    let unit = 10_u64.pow(digits);
    if digits == 0 {
        return format!("{sign}{size}");
    }
    format!(
        "{sign}{}.{:0width$}",
        size / unit,
        size % unit,
        width = digits as usize
    )
}

/// A number that looks like chance and never is.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: i64) -> i64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        i64::try_from((self.0 >> 33) % u64::try_from(limit).expect("positive")).expect("small")
    }
}

struct Month {
    entries: Vec<Entry>,
    intents: String,
}

fn month() -> Month {
    let mut chance = Chance(39);
    let mut entries = Vec::new();
    let mut intents = String::from(
        "intent_id,kind,amount_minor,currency,status,created_at,processor_ref,parent_intent_id\n",
    );
    let time = |at: i64| paysweep::time::Instant(at * 1_000_000).to_string();
    for n in 0..240_i64 {
        let at = MARCH + n * DAYS * 86_400 / 240 + chance.below(3000);
        let (seen, currency) = match n % 11 {
            3 => ("jpy", "jpy"),
            5 => ("gbp", "eur"),
            7 => ("kwd", "kwd"),
            _ => ("eur", "eur"),
        };
        let amount = (chance.below(90_000) + 500) / 10 * 10;
        let booked = if seen == currency {
            amount
        } else {
            amount * 117 / 100
        };
        let fee = booked / 50 / 10 * 10;
        let charge = json!({"id": format!("ch_{n}"), "object": "charge", "amount": amount, "amount_captured": amount, "currency": seen, "captured": true,
            "created": at, "status": "succeeded", "refunded": false, "livemode": true, "payment_intent": format!("pi_{n}"),
            "balance_transaction": format!("txn_{n}"), "metadata": {"order": format!("ORD-{n}")}});
        entries.push(Entry {
            id: format!("txn_{n}"),
            at,
            currency,
            gross: booked,
            fee,
            category: "charge",
            source: charge.clone(),
            payout: String::new(),
        });
        let code = seen.to_uppercase();
        let written = if n % 37 == 4 { amount + 10 } else { amount };
        let (status, reference) = match n % 8 {
            0 => ("pending", String::new()),
            1 => ("failed", format!("pi_{n}")),
            _ => ("succeeded", format!("pi_{n}")),
        };
        if n % 29 != 6 {
            writeln!(
                intents,
                "ORD-{n},charge,{written},{code},{status},{},{reference},",
                time(at - 30)
            )
            .expect("text");
        }
        if n % 41 == 8 {
            // Paid twice.
            let mut twice = charge.clone();
            twice["id"] = json!(format!("ch_{n}b"));
            twice["payment_intent"] = json!(format!("pi_{n}b"));
            entries.push(Entry {
                id: format!("txn_{n}b"),
                at: at + 60,
                currency,
                gross: booked,
                fee,
                category: "charge",
                source: twice,
                payout: String::new(),
            });
        }
        if n % 9 == 2 {
            let part = if n % 2 == 0 { amount } else { amount / 20 * 10 };
            let back = if seen == currency {
                part
            } else {
                part * 117 / 100
            };
            let words = if n % 18 == 2 {
                json!({"order": format!("REF-{n}")})
            } else {
                json!({})
            };
            let mut refund = json!({"id": format!("re_{n}"), "object": "refund", "amount": part, "currency": seen, "created": at + 7200, "status": "succeeded",
                "payment_intent": format!("pi_{n}"), "balance_transaction": format!("txn_r{n}"), "metadata": words});
            refund["charge"] = charge.clone();
            entries.push(Entry {
                id: format!("txn_r{n}"),
                at: at + 7200,
                currency,
                gross: -back,
                fee: 0,
                category: "refund",
                source: refund,
                payout: String::new(),
            });
            if n % 4 != 3 {
                writeln!(
                    intents,
                    "REF-{n},refund,{part},{code},succeeded,{},re_{n},ORD-{n}",
                    time(at + 7100)
                )
                .expect("text");
            }
        }
        if n % 60 == 13 {
            let mut dispute = json!({"id": format!("du_{n}"), "object": "dispute", "amount": amount, "currency": seen, "created": at + 90_000, "status": "lost",
                "payment_intent": format!("pi_{n}"), "livemode": true, "metadata": {}, "balance_transactions": [{"id": format!("txn_d{n}")}]});
            dispute["charge"] = charge.clone();
            entries.push(Entry {
                id: format!("txn_d{n}"),
                at: at + 90_000,
                currency,
                gross: -booked,
                fee: 1500,
                category: "dispute",
                source: dispute,
                payout: String::new(),
            });
        }
    }
    for day in [10, 20] {
        let at = MARCH + day * 86_400;
        entries.push(Entry {
            id: format!("txn_f{day}"),
            at,
            currency: "eur",
            gross: -250,
            fee: 0,
            category: "fee",
            source: Value::Null,
            payout: String::new(),
        });
    }
    writeln!(
        intents,
        "ORD-X,charge,1000,EUR,succeeded,{},pi_x,",
        time(MARCH + 500_000)
    )
    .expect("text");
    writeln!(
        intents,
        "ORD-Y,charge,1000,EUR,pending,{},,",
        time(MARCH + 500_000)
    )
    .expect("text");
    payouts(&mut entries);
    Month { entries, intents }
}

/// A payout each week and currency of everything since the last one; one of them is ten cents short.
fn payouts(entries: &mut Vec<Entry>) {
    for week in 1..=4_i64 {
        let at = MARCH + week * 7 * 86_400;
        for currency in ["eur", "jpy", "kwd"] {
            let id = format!("po_{week}{currency}");
            let mut sum = 0;
            for entry in entries.iter_mut().filter(|entry| {
                entry.at < at && entry.currency == currency && entry.payout.is_empty()
            }) {
                entry.payout.clone_from(&id);
                sum += entry.gross - entry.fee;
            }
            let sum = if (week, currency) == (3, "eur") {
                sum - 10
            } else {
                sum
            };
            let payout = json!({"id": id, "object": "payout", "amount": sum, "currency": currency, "created": at, "automatic": true, "status": "paid",
                "reconciliation_status": "completed", "livemode": true, "metadata": {}, "balance_transaction": format!("txn_{id}")});
            entries.push(Entry {
                id: format!("txn_{id}"),
                at,
                currency,
                gross: -sum,
                fee: 0,
                category: "payout",
                source: payout,
                payout: id,
            });
        }
    }
}

fn text(value: &Value, names: &[&str]) -> String {
    let found = names
        .iter()
        .find_map(|name| value.pointer(name).and_then(Value::as_str));
    found.unwrap_or_default().to_owned()
}

/// The export "Balance change from activity", itemized, with the columns that the profile asks for.
fn export(month: &Month) -> String {
    let mut csv = String::from(
        "balance_transaction_id,created_utc,available_on_utc,currency,gross,fee,net,reporting_category,description,source_id,customer_facing_amount,\
         customer_facing_currency,charge_id,payment_intent_id,automatic_payout_id,payment_metadata[order],refund_metadata[order]\n",
    );
    let time = |at: i64| {
        let text = paysweep::time::Instant(at * 1_000_000).to_string();
        text.replace('T', " ").replace('Z', "")
    };
    for entry in &month.entries {
        let source = &entry.source;
        let kind = text(source, &["/object"]);
        let seen = text(source, &["/currency"]);
        let is_other =
            seen != entry.currency && matches!(kind.as_str(), "charge" | "refund" | "dispute");
        let facing = source["amount"].as_i64().unwrap_or(0) * entry.gross.signum();
        let charge = if kind == "charge" {
            text(source, &["/id"])
        } else {
            text(source, &["/charge/id"])
        };
        let payment = if kind == "charge" {
            text(source, &["/metadata/order"])
        } else {
            text(source, &["/charge/metadata/order"])
        };
        let refund = if kind == "refund" {
            text(source, &["/metadata/order"])
        } else {
            String::new()
        };
        let cells = [
            entry.id.clone(),
            time(entry.at),
            time(entry.at + 172_800),
            entry.currency.to_owned(),
            major(entry.gross, entry.currency),
            major(entry.fee, entry.currency),
            major(entry.gross - entry.fee, entry.currency),
            entry.category.to_owned(),
            String::new(),
            text(source, &["/id"]),
            if is_other {
                major(facing, &seen)
            } else {
                String::new()
            },
            if is_other {
                seen.clone()
            } else {
                String::new()
            },
            charge,
            text(source, &["/payment_intent"]),
            entry.payout.clone(),
            payment,
            refund,
        ];
        csv.push_str(&cells.join(","));
        csv.push('\n');
    }
    csv
}

/// The same as the API has it.
fn api(month: &Month) -> Fake {
    let fake = Fake::stripe();
    for entry in &month.entries {
        let mut source = entry.source.clone();
        let id = text(&source, &["/id"]);
        let path = match text(&source, &["/object"]).as_str() {
            "charge" => "/v1/charges",
            "refund" => "/v1/refunds",
            "dispute" => "/v1/disputes",
            "payout" => "/v1/payouts",
            _ => "",
        };
        if let Some(charge) = source.pointer("/charge/id").cloned() {
            source["charge"] = charge;
        }
        if !path.is_empty() {
            fake.put(path, [source]);
        }
        let payout = if entry.payout.is_empty() {
            Value::Null
        } else {
            json!(entry.payout)
        };
        fake.put(
            "/v1/balance_transactions",
            [json!({"id": entry.id, "object": "balance_transaction", "amount": entry.gross, "fee": entry.fee, "net": entry.gross - entry.fee,
                "currency": entry.currency, "created": entry.at, "available_on": entry.at + 172_800, "balance_type": "payments",
                "reporting_category": entry.category, "source": if id.is_empty() { Value::Null } else { json!(id) }, "_payout": payout})],
        );
    }
    fake
}

#[test]
fn a_month_by_the_api_and_by_the_export_has_one_verdict() {
    let month = month();
    let spans = "start = \"2026-03-01T00:00:00Z\"\nlag = \"2m\"\nlookback = \"24h\"\npayout_span = \"10d\"\nreference = [\"payment_metadata[order]\"]\n";

    let fake = api(&month);
    // In one piece, so that one report tells all of it.
    let asked = stripe(&fake, "max_window = \"60d\"");
    let text = std::fs::read_to_string(asked.path("paysweep.toml")).expect("a configuration");
    let text = text
        .replace("start = \"2026-03-09T00:00:00Z\"\n", "")
        .replace(
            "page_size = 2\nconcurrency = 1\n",
            &format!("page_size = 7\nconcurrency = 4\n{spans}"),
        );
    asked.write("paysweep.toml", &text);
    asked.write("intents.csv", &month.intents);

    let read = Scene::empty();
    read.write(
        "paysweep.toml",
        &format!(
            "[store]\nurl = \"sqlite://paysweep.db\"\n\n[source.shop]\nkind = \"csv\"\nprofile = \"stripe.balance\"\nfiles = [\"export.csv\"]\n\
             complete_through = \"as-of\"\n{spans}\n[intents]\nkind = \"csv\"\nfile = \"intents.csv\"\n"
        ),
    );
    read.write("export.csv", &export(&month));
    read.write("intents.csv", &month.intents);

    let line = format!("run -f json --as-of {AS_OF} --include matches,pending,ignored");
    let (by_api, by_export) = (asked.say(&line), read.say(&line));
    assert_eq!(
        (by_api.code, by_export.code),
        (1, 1),
        "{} {}",
        by_api.stderr,
        by_export.stderr
    );
    let (by_api, by_export) = (by_api.json(), by_export.json());
    for part in ["outcome", "totals", "summary", "accounting"] {
        assert_eq!(by_api[part], by_export[part], "{part}");
    }
    for list in ["matches", "pending", "ignored"] {
        let sorted = |report: &Value| {
            let rows = report[list].as_array().expect("a list").iter();
            let mut rows: Vec<String> = rows.map(Value::to_string).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted(&by_api), sorted(&by_export), "{list}");
    }
    // Runs have ids and repairs name files; everything else is the same.
    let told = |report: &Value, list: &str| -> Vec<String> {
        let rows = report[list].as_array().expect("a list").iter();
        let mut rows: Vec<String> = rows
            .map(|row| {
                let mut row = row.clone();
                for name in ["first_seen_run", "run_id", "evidence"] {
                    row.as_object_mut().expect("an object").remove(name);
                }
                // Only the API can be asked a second time.
                let asked = "; asked for it by its id, the processor does not know it";
                row.to_string().replace(asked, "")
            })
            .collect();
        rows.sort();
        rows
    };
    for list in ["breaks", "repairs"] {
        let (left, right) = (told(&by_api, list), told(&by_export, list));
        assert_eq!(left.len(), right.len(), "{list}");
        for (left, right) in left.iter().zip(&right) {
            assert_eq!(left, right, "{list}");
        }
    }
    let classes = by_api["summary"]["by_class"].as_object().expect("classes");
    for class in [
        "status_behind",
        "status_conflict",
        "missing_local",
        "missing_processor",
        "amount_mismatch",
        "duplicate_charge",
        "payout_residual",
    ] {
        assert!(
            classes.contains_key(class) || class == "status_conflict",
            "{class} is not in {classes:?}"
        );
    }
    assert!(by_api["summary"]["operations"].as_u64().expect("a count") > 250);

    // Whoever reads the other one next finds everything known.
    let text = std::fs::read_to_string(read.path("paysweep.toml")).expect("a configuration");
    let text = text
        .replace("kind = \"csv\"\nprofile = \"stripe.balance\"\nfiles = [\"export.csv\"]", &format!("kind = \"api\"\nprofile = \"stripe.api\"\nbase_url = \"{}\"\napi_key = {{ file = \"key\" }}", fake.url()));
    read.write("key", super::fake::KEY);
    read.write("paysweep.toml", &text);
    let next = read.say(&line);
    let report = next.json();
    assert!(
        report["repairs"].as_array().expect("a list").is_empty(),
        "{} {}",
        next.stdout,
        next.stderr
    );
    assert!(
        !report["summary"]["by_class"]
            .as_object()
            .expect("classes")
            .contains_key("operation_changed"),
        "{}",
        next.stdout
    );
}
