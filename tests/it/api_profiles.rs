//! The profiles that come with paysweep, each against answers of the shape that its processor documents.

use serde_json::{Value, json};

use super::api::{breaks, config, repairs};
use super::fake::{Asked, Fake, Shelf};
use super::scene::{Scene, Told};

const AS_OF: &str = "2026-03-10T12:00:00Z";

pub(crate) fn ask(
    fake: &Fake,
    profile: &str,
    keys: &[(&str, &str)],
    intents: &str,
) -> (Scene, Told) {
    let scene = Scene::empty();
    let mut more = String::new();
    for (name, key) in keys {
        scene.write(name, key);
        more.push_str(&format!("{name} = {{ file = \"{name}\" }}\n"));
    }
    config(
        &scene,
        fake,
        profile,
        &format!("{more}rate_limit = 1000\npatience = \"1s\"\n"),
    );
    scene.intents(intents);
    let told = scene.say(&format!(
        "run -f json --as-of {AS_OF} --include pending,ignored,matches"
    ));
    (scene, told)
}

fn refuse(asked: &Asked) -> (u16, Value) {
    (
        400,
        json!({"error": format!("not asked so: {:?}", asked.query)}),
    )
}

/// A page of rows by a number of rows to pass over.
fn page(rows: &[Value], begin: usize, size: usize) -> Vec<Value> {
    rows.iter().skip(begin).take(size).cloned().collect()
}

#[test]
fn mollie_lists_are_walked_until_they_are_too_old() {
    let payment = |id: &str, status: &str, value: &str, currency: &str, at: &str| {
        json!({"resource": "payment", "id": id, "mode": "live", "createdAt": at, "status": status, "description": "Order 7", "paidAt": at,
            "amount": {"currency": currency, "value": value}, "metadata": {"order": format!("M-{id}")}, "_links": {"self": {"href": "x"}}})
    };
    let fake = Fake::with(Box::new(move |asked: &Asked, shelf: &Shelf| {
        if asked.header("authorization") != Some("Bearer live_k") {
            return (401, json!({}));
        }
        let link = |id: &str| json!({"next": {"href": format!("{}?limit=250&from={id}", asked.path)}, "self": {"href": "x"}});
        let list = |name: &str, rows: Vec<Value>, next: Value| {
            (
                200,
                json!({"count": rows.len(), "_embedded": {name: rows}, "_links": next}),
            )
        };
        match (asked.path.as_str(), asked.of("from")) {
            ("/v2/profiles/me", None) => (200, json!({"resource": "profile", "id": shelf.account, "mode": "live"})),
            ("/v2/payments", None) => list(
                "payments",
                vec![
                    payment("tr_1", "paid", "12.50", "EUR", "2026-03-09T11:00:00+00:00"),
                    payment("tr_2", "open", "9.00", "EUR", "2026-03-09T10:30:00+00:00"),
                ],
                link("tr_3"),
            ),
            ("/v2/payments", Some("tr_3")) => list(
                "payments",
                vec![
                    payment("tr_3", "paid", "1500", "JPY", "2026-03-09T10:00:00+00:00"),
                    payment(
                        "tr_4",
                        "expired",
                        "5.00",
                        "EUR",
                        "2026-03-09T09:00:00+00:00",
                    ),
                    payment("tr_old", "paid", "5.00", "EUR", "2026-01-09T09:00:00+00:00"),
                ],
                link("tr_older"),
            ),
            ("/v2/payments", Some("tr_older")) => list(
                "payments",
                vec![payment(
                    "tr_older",
                    "paid",
                    "5.00",
                    "EUR",
                    "2026-01-08T09:00:00+00:00",
                )],
                link("tr_never"),
            ),
            ("/v2/refunds", None) => list(
                "refunds",
                vec![
                    json!({"id": "re_1", "paymentId": "tr_1", "status": "refunded", "createdAt": "2026-03-09T12:00:00+00:00", "mode": "live",
                    "amount": {"currency": "EUR", "value": "2.50"}, "metadata": null}),
                ],
                json!({"next": null}),
            ),
            ("/v2/chargebacks", None) => list(
                "chargebacks",
                vec![
                    json!({"id": "chb_1", "paymentId": "tr_3", "createdAt": "2026-03-10T08:00:00+00:00", "reversedAt": null,
                    "amount": {"currency": "JPY", "value": "1500"}}),
                ],
                json!({}),
            ),
            _ => refuse(asked),
        }
    }))
    .open();
    fake.shelf().account = json!("pfl_1");
    let (scene, told) = ask(
        &fake,
        "mollie.api",
        &[("api_key", "live_k")],
        "M-tr_1,charge,1250,EUR,pending,2026-03-09T10:59:00Z,\nM-tr_2,charge,900,EUR,pending,2026-03-09T10:29:00Z,tr_2\n\
         M-tr_3,charge,1500,JPY,succeeded,2026-03-09T09:59:00Z,tr_3\nM-tr_4,charge,500,EUR,pending,2026-03-09T08:59:00Z,tr_4\n",
    );
    assert_eq!(
        breaks(&told),
        [
            "missing_local M-tr_1 re_1",
            "missing_local M-tr_3 chb_1",
            "status_behind M-tr_1 tr_1",
            "status_behind M-tr_4 tr_4"
        ],
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert_eq!(
        told.json()["sources"][0]["operations"],
        6,
        "{}",
        told.stdout
    );
    assert!(
        fake.shelf()
            .asked
            .iter()
            .all(|asked| asked.of("from") != Some("tr_never"))
    );
    // The key of another website profile.
    fake.shelf().account = json!("pfl_2");
    let other = scene.say(&format!("run -f json --as-of {AS_OF}"));
    assert!(
        other.code == 5 && other.stderr.contains("pfl_2"),
        "{} {}",
        other.stdout,
        other.stderr
    );
    let (_, told) = ask(&fake, "mollie.api", &[("api_key", "test_k")], "");
    assert!(
        told.code == 5 && told.stderr.contains("test mode"),
        "{}",
        told.stderr
    );
}

#[test]
fn square_is_asked_for_each_location() {
    let money = |amount: i64| json!({"amount": amount, "currency": "USD"});
    let fake = Fake::with(Box::new(move |asked: &Asked, _: &Shelf| {
        if asked.header("square-version").is_none() {
            return refuse(asked);
        }
        let payment = |id: &str, status: &str, amount: i64| {
            json!({"id": id, "status": status, "created_at": "2026-03-09T10:00:00.123Z", "total_money": money(amount), "amount_money": money(amount),
                "order_id": format!("o{id}"), "reference_id": format!("S-{id}"),
                "processing_fee": if status == "COMPLETED" { json!([{"amount_money": money(30)}, {"amount_money": money(7)}]) } else { json!([]) }})
        };
        let is_in = asked.of("begin_time").is_some_and(|begin| begin <= "2026-03-09T10:00:00Z")
            && asked.of("end_time").is_some_and(|end| end > "2026-03-09T10:00:00Z");
        match (asked.path.as_str(), asked.of("location_id"), asked.of("cursor")) {
            ("/v2/locations", _, _) => (200, json!({"locations": [{"id": "L1"}, {"id": "L2"}]})),
            ("/v2/payments", Some("L1"), None) if is_in => (200, json!({"payments": [payment("p1", "COMPLETED", 1000)], "cursor": "c"})),
            ("/v2/payments", Some("L1"), Some("c")) => (200, json!({"payments": [payment("p2", "FAILED", 2000)]})),
            ("/v2/payments", Some("L2"), None) if is_in => (200, json!({"payments": [payment("p3", "COMPLETED", 3000)]})),
            ("/v2/refunds", None, None) if is_in => (
                200,
                json!({"refunds": [{"id": "r1", "status": "COMPLETED", "payment_id": "p3", "created_at": "2026-03-09T10:00:00Z", "amount_money": money(500)}]}),
            ),
            ("/v2/payouts" | "/v2/payments", Some(_), None) | ("/v2/refunds" | "/v2/disputes", None, None) => (200, json!({})),
            _ => refuse(asked),
        }
    }))
    .open();
    let (_, told) = ask(
        &fake,
        "square.api",
        &[("api_key", "k")],
        "S-p1,charge,1000,USD,succeeded,2026-03-09T09:59:00Z,p1\nS-p2,charge,2000,USD,pending,2026-03-09T09:59:00Z,\n\
         S-p3,charge,3000,USD,pending,2026-03-09T09:59:00Z,\n",
    );
    assert_eq!(
        breaks(&told),
        ["missing_local S-p3 r1", "status_behind S-p3 p3"],
        "{} {}",
        told.stdout,
        told.stderr
    );
    let report = told.json();
    assert_eq!(report["sources"][0]["operations"], 4);
    assert_eq!(report["totals"][0]["fees"]["minor"], 74, "{}", told.stdout);
}

#[test]
fn gocardless_payments_that_fail_late_are_told() {
    let fake = Fake::with(Box::new(move |asked: &Asked, shelf: &Shelf| {
        let name = asked.path.trim_matches('/').to_owned();
        if let Some(id) = asked.path.strip_prefix("/payments/") {
            let found = shelf.lists["payments"].iter().find(|row| row["id"] == id);
            return match found {
                Some(found) => (200, json!({"payments": found})),
                None => (404, json!({})),
            };
        }
        let text = |name: &str| asked.of(name).unwrap_or_default().to_owned();
        let (from, to) = (text("created_at[gte]"), text("created_at[lt]"));
        let rows: Vec<Value> = shelf
            .lists
            .get(&name)
            .into_iter()
            .flatten()
            .filter(|row| {
                let at = row["created_at"].as_str().expect("a time");
                at >= from.as_str() && at < to.as_str()
            })
            .cloned()
            .collect();
        let begin = asked.of("after").map_or(0, |after| {
            rows.iter()
                .position(|row| row["id"] == after)
                .expect("a row")
                + 1
        });
        let size: usize = asked
            .of("limit")
            .expect("a limit")
            .parse()
            .expect("a number");
        let part = page(&rows, begin, size.min(1));
        let after = if begin + part.len() < rows.len() {
            part.last().map_or(Value::Null, |row| row["id"].clone())
        } else {
            Value::Null
        };
        (
            200,
            json!({name: part, "meta": {"cursors": {"before": null, "after": after}, "limit": 1}}),
        )
    }))
    .open();
    let payment = |id: &str, status: &str| {
        json!({"id": id, "status": status, "created_at": "2026-03-09T10:00:00.000Z", "amount": 1000, "currency": "GBP", "metadata": {"order": format!("G-{id}")},
            "links": {"payout": "PO1"}})
    };
    fake.put(
        "payments",
        [
            payment("PM1", "confirmed"),
            payment("PM2", "paid_out"),
            payment("PM3", "submitted"),
        ],
    );
    fake.put("payouts", [json!({"id": "PO1", "status": "paid", "amount": 1980, "currency": "GBP", "created_at": "2026-03-09T11:00:00.000Z", "deducted_fees": 20})]);
    let (scene, told) = ask(
        &fake,
        "gocardless.api",
        &[("api_key", "live_x")],
        "G-PM1,charge,1000,GBP,pending,2026-03-09T09:59:00Z,\nG-PM2,charge,1000,GBP,succeeded,2026-03-09T09:59:00Z,PM2\n\
         G-PM3,charge,1000,GBP,pending,2026-03-09T09:59:00Z,PM3\n",
    );
    assert_eq!(
        repairs(&told),
        ["set_status G-PM1 PM1 applied"],
        "{} {}",
        told.stdout,
        told.stderr
    );
    // The bank took one of them back.
    for row in fake.shelf().lists.get_mut("payments").expect("a list") {
        if row["id"] == "PM2" {
            row["status"] = json!("charged_back");
        }
    }
    let told = scene.say(&format!("run -f json --as-of {AS_OF}"));
    assert_eq!(
        breaks(&told),
        ["status_reversed G-PM2 PM2"],
        "{} {}",
        told.stdout,
        told.stderr
    );
}

#[test]
fn razorpay_rows_are_filled_in_by_the_settlement() {
    let payment = json!({"id": "pay_1", "entity": "payment", "amount": 50_000, "currency": "INR", "status": "captured", "order_id": "order_1", "created_at": 1_773_050_400,
        "notes": {"order": "R-1"}, "fee": 1180, "tax": 180});
    let fake = Fake::with(Box::new(move |asked: &Asked, _: &Shelf| {
        // rzp_live_k:s
        if asked.header("authorization") != Some("Basic cnpwX2xpdmVfazpz") {
            return (401, json!({}));
        }
        let number = |name: &str| {
            asked
                .of(name)
                .map(|text| text.parse::<i64>().expect("a number"))
        };
        let at = 1_773_050_400;
        let rows = match asked.path.as_str() {
            "/v1/payments"
                if number("from").is_some_and(|from| from <= at)
                    && number("to").is_some_and(|to| to > at) =>
            {
                vec![payment.clone()]
            }
            "/v1/payments" | "/v1/refunds" => vec![],
            "/v1/settlements/recon/combined"
                if (number("year"), number("month"), number("day"))
                    == (Some(2026), Some(3), Some(10)) =>
            {
                vec![
                    json!({"entity_id": "pay_1", "type": "payment", "debit": 0, "credit": 48_820, "amount": 50_000, "currency": "INR", "fee": 1180, "tax": 180,
                    "on_hold": false, "settled": true, "created_at": at, "settled_at": at + 86_400, "settlement_id": "setl_1", "notes": "{\"order\": \"R-1\"}",
                    "payment_id": null, "order_id": "order_1", "order_receipt": "receipt 1"}),
                    json!({"entity_id": "rfnd_1", "type": "refund", "debit": 10_000, "credit": 0, "amount": 10_000, "currency": "INR", "fee": 0, "tax": 0,
                    "created_at": at + 60, "settlement_id": "setl_1", "notes": null, "payment_id": "pay_1", "order_id": "order_1", "order_receipt": null}),
                ]
            }
            "/v1/settlements/recon/combined" => vec![],
            _ => return refuse(asked),
        };
        (
            200,
            json!({"entity": "collection", "count": rows.len(), "items": rows}),
        )
    }))
    .open();
    let (_, told) = ask(
        &fake,
        "razorpay.api",
        &[("user", "rzp_live_k"), ("password", "s")],
        "R-1,charge,50000,INR,pending,2026-03-09T09:59:00Z,\n",
    );
    assert_eq!(
        breaks(&told),
        ["missing_local R-1 rfnd_1", "status_behind R-1 pay_1"],
        "{} {}",
        told.stdout,
        told.stderr
    );
    let report = told.json();
    assert_eq!(
        report["totals"][0]["fees"]["minor"], 1180,
        "{}",
        told.stdout
    );
    assert_eq!(report["totals"][0]["net"]["minor"], 48_820 - 10_000);
}

#[test]
fn paypal_is_believed_until_it_was_refreshed_and_asked_in_halves() {
    let fake = Fake::with(Box::new(move |asked: &Asked, shelf: &Shelf| {
        if asked.path == "/v1/oauth2/token" {
            return (200, json!({"access_token": "t", "scope": "a https://uri.paypal.com/services/reporting/search/read b"}));
        }
        let (from, to) = (asked.of("start_date").expect("a time"), asked.of("end_date").expect("a time"));
        let rows: Vec<Value> = shelf.lists["rows"]
            .iter()
            .filter(|row| {
                let at = row["transaction_info"]["transaction_initiation_date"].as_str().expect("a time").replace("+0000", "Z");
                at.as_str() >= from && at.as_str() <= to
            })
            .cloned()
            .collect();
        if rows.len() > 2 {
            return (400, json!({"name": "RESULTSET_TOO_LARGE", "message": "Result set size is greater than the maximum limit"}));
        }
        let number: usize = asked.of("page").expect("a page").parse().expect("a number");
        let part = page(&rows, number - 1, 1);
        (200, json!({"transaction_details": part, "page": number, "total_pages": rows.len(), "last_refreshed_datetime": "2026-03-10T03:00:00+0000"}))
    }))
    .open();
    let row = |id: &str,
               code: &str,
               status: &str,
               value: &str,
               fee: Option<&str>,
               at: &str,
               invoice: &str,
               parent: &str| {
        json!({"transaction_info": {"transaction_id": id, "transaction_event_code": code, "transaction_status": status, "transaction_initiation_date": at,
            "transaction_updated_date": at, "transaction_amount": {"currency_code": "USD", "value": value},
            "fee_amount": fee.map(|fee| json!({"currency_code": "USD", "value": fee})), "invoice_id": invoice, "paypal_reference_id": parent}})
    };
    fake.put(
        "rows",
        [
            row(
                "T1",
                "T0006",
                "S",
                "10.00",
                Some("-0.59"),
                "2026-03-09T10:00:00+0000",
                "P-1",
                "",
            ),
            row(
                "T2",
                "T0006",
                "P",
                "20.00",
                None,
                "2026-03-09T11:00:00+0000",
                "P-2",
                "",
            ),
            row(
                "T3",
                "T1107",
                "S",
                "-4.00",
                None,
                "2026-03-09T12:00:00+0000",
                "",
                "T1",
            ),
            row(
                "T4",
                "T0400",
                "S",
                "-5.00",
                None,
                "2026-03-09T13:00:00+0000",
                "",
                "",
            ),
        ],
    );
    let (_, told) = ask(
        &fake,
        "paypal.api",
        &[("client_id", "c"), ("client_secret", "s")],
        "P-1,charge,1000,USD,pending,2026-03-09T09:59:00Z,\nP-2,charge,2000,USD,pending,2026-03-09T10:59:00Z,\n\
         P-9,charge,2000,USD,succeeded,2026-03-10T03:30:00Z,\nP-8,charge,2000,USD,succeeded,2026-03-09T03:30:00Z,\n",
    );
    let found = breaks(&told);
    assert!(
        found.contains(&"missing_processor P-8 -".to_owned()),
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert!(
        !found.iter().any(|line| line.contains("P-9")),
        "beyond what was refreshed nothing is absent: {}",
        told.stdout
    );
    assert_eq!(found.len(), 3, "{found:?}");
    let report = told.json();
    assert_eq!(
        report["sources"][0]["covered"], "2026-03-10T03:00:00Z",
        "{}",
        told.stdout
    );
    assert_eq!(
        report["sources"][0]["watermark_after"],
        "2026-03-10T03:00:00Z"
    );
    assert_eq!(report["sources"][0]["operations"], 4);
}

/// A report of one batch: a payment, and the payout of its net.
fn batch(number: u32, reference: &str, at: &str) -> String {
    let head = "Company Account,Merchant Account,Psp Reference,Merchant Reference,Payment Method,Creation Date,TimeZone,Type,Modification Reference,\
         Gross Currency,Gross Debit (GC),Gross Credit (GC),Exchange Rate,Net Currency,Net Debit (NC),Net Credit (NC),Commission (NC),Markup (NC),\
         Scheme Fees (NC),Interchange (NC),Payment Method Variant,Modification Merchant Reference,Batch Number";
    format!(
        "{head}\nCo,Shop,psp{number},{reference},visa,{at},UTC,Settled,mod{number},EUR,,10.00,1,EUR,,9.80,0.20,,,,visa,,{number}\n\
         Co,Shop,,,,{at},UTC,MerchantPayout,TX{number} batch {number},,,,,EUR,9.80,,,,,,,,{number}\n"
    )
}

#[test]
fn adyen_reports_are_counted_up_until_the_next_one_is_not_there() {
    let fake = Fake::with(Box::new(|asked: &Asked, shelf: &Shelf| {
        let known = shelf.lists.get(&asked.path).and_then(|rows| rows.first());
        match known {
            Some(report) => (200, report.clone()),
            None => (404, json!({})),
        }
    }))
    .open();
    let put = |number: u32, reference: &str, at: &str| {
        let path = format!(
            "/reports/download/MerchantAccount/Shop/settlement_detail_report_batch_{number}.csv"
        );
        fake.put(&path, [json!(batch(number, reference, at))]);
    };
    put(380, "A-1", "2026-03-09 10:00:00");
    put(381, "A-2", "2026-03-09 11:00:00");
    let scene = Scene::empty();
    scene.write("user", "report_1");
    scene.write("password", super::fake::KEY);
    let more = "user = { file = \"user\" }\npassword = { file = \"password\" }\naccount = \"Shop\"\nfirst_report = 380\nrate_limit = 1000\n";
    config(&scene, &fake, "adyen.reports", more);
    scene.intents(
        "A-1,charge,1000,EUR,pending,2026-03-09T09:59:00Z,\nA-2,charge,1000,EUR,succeeded,2026-03-09T10:59:00Z,\n\
         A-3,charge,1000,EUR,succeeded,2026-03-09T11:30:00Z,\n",
    );
    let run = |scene: &Scene| scene.say(&format!("run -f json --as-of {AS_OF}"));
    let told = run(&scene);
    assert_eq!(
        repairs(&told),
        ["set_status A-1 psp380|mod380|Settled|380 applied"],
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert_eq!(
        breaks(&told).len(),
        1,
        "behind the newest row nothing is absent: {}",
        told.stdout
    );
    assert_eq!(
        told.json()["sources"][0]["watermark_after"],
        "2026-03-09T11:00:00Z"
    );
    // The next batch: the last one is read again, the first one is not.
    fake.shelf().asked.clear();
    put(382, "A-3", "2026-03-09 12:00:00");
    let told = run(&scene);
    assert_eq!(
        (told.code, breaks(&told).len()),
        (0, 0),
        "{} {}",
        told.stdout,
        told.stderr
    );
    let numbers: Vec<String> = fake
        .shelf()
        .asked
        .iter()
        .map(|asked| asked.path[asked.path.len() - 7..].to_owned())
        .collect();
    assert_eq!(numbers, ["381.csv", "382.csv", "383.csv", "384.csv"]);
    // One is missing between two others.
    put(384, "A-4", "2026-03-09 13:00:00");
    let told = run(&scene);
    assert_eq!(told.code, 4, "{}", told.stderr);
    assert!(
        told.stderr.contains("report 383 is not there"),
        "{}",
        told.stderr
    );
    assert!(!told.stderr.contains(super::fake::KEY));
    // A report that breaks off is not taken for a whole one.
    fake.shelf()
        .lists
        .retain(|path, _| !path.ends_with("384.csv"));
    put(383, "A-4", "2026-03-09 13:00:00");
    fake.fails(
        "/reports/download/MerchantAccount/Shop/settlement_detail_report_batch_383.csv",
        1,
        super::fake::Fault::CutBody,
        1000,
    );
    scene.write(
        "paysweep.toml",
        &std::fs::read_to_string(scene.path("paysweep.toml"))
            .expect("text")
            .replace("rate_limit", "patience = \"1s\"\nrate_limit"),
    );
    let told = run(&scene);
    assert_eq!(told.code, 3, "{} {}", told.stdout, told.stderr);
    fake.heals();
    assert_eq!(
        breaks(&run(&scene)),
        ["missing_local - psp383|mod383|Settled|383"]
    );
}

#[test]
fn adyen_reports_that_are_not_told_where_to_begin_are_refused() {
    let fake = Fake::with(Box::new(|_: &Asked, _: &Shelf| (404, json!({})))).open();
    for (more, want) in [
        ("account = \"Shop\"", "first_report is missing"),
        ("first_report = 1", "account is missing"),
        (
            "account = \"Shop\"\nfirst_report = 1",
            "check account and first_report",
        ),
    ] {
        let scene = Scene::empty();
        scene.write("key", "k");
        config(
            &scene,
            &fake,
            "adyen.reports",
            &format!("user = {{ file = \"key\" }}\npassword = {{ file = \"key\" }}\n{more}"),
        );
        scene.intents("");
        let told = scene.say(&format!("run --as-of {AS_OF}"));
        assert!(
            told.code == 2 && told.stderr.contains(want),
            "{} {}",
            told.code,
            told.stderr
        );
    }
}
