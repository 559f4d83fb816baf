//! What a declaration cannot say about Stripe: the money log joined with the objects that it does not show.
//!
//! A balance transaction is a row of the log and never changes. It gets the names of the columns that the reports give the
//! same row, so that both are one operation. A charge, refund, dispute or payout that has no balance transaction moved no
//! money yet, or never will: it is a row of its own, under its own id, with a net of zero. Once it is in the log, its own
//! row says only that; who never saw it open does not see it then either.
//!
//! Shapes: the API reference of Stripe and its published `OpenAPI` document, 2026. Every reference to another object may be
//! its id or the object itself.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Why;
use super::cells::{Cells, cell, text};

/// The rows that an object of a list is. One that was asked for by its id brings along what it knows of the log, and says
/// where it stands even when that is nothing yet.
pub(super) fn rows(list: &str, object: &Value, why: Why) -> Vec<Cells> {
    let mut rows = Vec::new();
    if list == "events" {
        rows.extend(note(object));
        return rows;
    }
    if matches!(list, "balance_transactions" | "payout_parts") {
        rows.push(booked(object, object.get("source").unwrap_or(&Value::Null)));
        return rows;
    }
    if why != Why::Listed {
        rows.extend(of_object(object));
        if let Some(charge) = object
            .get("latest_charge")
            .filter(|charge| charge.is_object())
        {
            rows.extend(of_object(charge));
        }
    }
    if let Some(state) = state(list, object, why) {
        rows.push(state);
    }
    rows
}

/// What an event says about the request that made its object: the idempotency key, which our side knows even where no answer
/// ever came.
fn note(event: &Value) -> Option<Cells> {
    let kind = text(event, &["/type"]);
    let is_first = kind.ends_with(".created")
        || matches!(
            kind.as_str(),
            "charge.succeeded" | "charge.failed" | "charge.pending"
        );
    let (about, key) = (
        text(event, &["/data/object/id"]),
        text(event, &["/request/idempotency_key"]),
    );
    (is_first && !about.is_empty() && !key.is_empty())
        .then(|| vec![("about".to_owned(), about), (KEY.to_owned(), key)])
}

/// The column of an idempotency key.
const KEY: &str = "idempotency_key";

/// Writes into a row the idempotency key of the request that made it. A refund is not made by the request of its payment.
pub(super) fn annotate(row: &mut Cells, notes: &BTreeMap<String, String>) {
    let of = |name: &str| {
        let found = row.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    };
    let about = match of("reporting_category") {
        "charge" | "charge object" | "authorization object" => {
            vec![of("payment_intent_id"), of("source_id")]
        }
        "refund" | "refund object" => vec![of("source_id")],
        _ => return,
    };
    let key = about.into_iter().find_map(|id| notes.get(id)).cloned();
    push(row, KEY, key.unwrap_or_default());
}

/// Rows of the log that an object brings along: its own, and those of its refunds.
fn of_object(object: &Value) -> Vec<Cells> {
    let mut rows: Vec<Cells> = entries(object).map(|entry| booked(entry, object)).collect();
    let refunds = object.pointer("/refunds/data").and_then(Value::as_array);
    for refund in refunds.into_iter().flatten() {
        rows.extend(entries(refund).map(|entry| booked(entry, refund)));
    }
    rows
}

/// Entries of the log that an object holds in full.
fn entries(object: &Value) -> impl Iterator<Item = &Value> {
    let single = ["balance_transaction", "failure_balance_transaction"];
    let listed = object.get("balance_transactions").and_then(Value::as_array);
    let entries = single.into_iter().filter_map(|name| object.get(name));
    entries
        .chain(listed.into_iter().flatten())
        .filter(|entry| entry.is_object())
}

/// Whether the log knows an object.
fn is_booked(object: &Value) -> bool {
    let is_there =
        |value: &Value| !value.is_null() && value.as_array().is_none_or(|list| !list.is_empty());
    ["balance_transaction", "balance_transactions"]
        .into_iter()
        .filter_map(|name| object.get(name))
        .any(is_there)
}

fn push(row: &mut Cells, name: &str, text: String) {
    if !text.is_empty() {
        row.push((name.to_owned(), text));
    }
}

/// A row of the log.
fn booked(entry: &Value, source: &Value) -> Cells {
    let mut row = Cells::new();
    push(&mut row, "balance_transaction_id", text(entry, &["/id"]));
    push(
        &mut row,
        "reporting_category",
        text(entry, &["/reporting_category"]),
    );
    push(&mut row, "status", "posted".to_owned());
    for (name, pointer) in [
        ("created", "/created"),
        ("available_on", "/available_on"),
        ("currency", "/currency"),
        ("gross", "/amount"),
        ("fee", "/fee"),
        ("net", "/net"),
        ("balance_type", "/balance_type"),
        ("description", "/description"),
    ] {
        push(
            &mut row,
            name,
            entry.pointer(pointer).map(cell).unwrap_or_default(),
        );
    }
    customer_facing(&mut row, entry, source);
    about(&mut row, source);
    row
}

/// What the customer saw, where that was another currency.
fn customer_facing(row: &mut Cells, entry: &Value, source: &Value) {
    let currency = text(source, &["/currency"]);
    let is_payment = matches!(
        text(source, &["/object"]).as_str(),
        "charge" | "refund" | "dispute"
    );
    let (Some(booked), Some(seen)) = (
        entry.get("amount").and_then(Value::as_i64),
        source.get("amount").and_then(Value::as_i64),
    ) else {
        return;
    };
    let is_other = !currency.eq_ignore_ascii_case(&text(entry, &["/currency"]));
    if is_payment && is_other && booked != 0 {
        let captured = source.get("amount_captured").and_then(Value::as_i64);
        let seen = captured.filter(|captured| *captured > 0).unwrap_or(seen);
        let signed = i128::from(seen.unsigned_abs()) * i128::from(booked.signum());
        push(row, "customer_facing_amount", signed.to_string());
        push(row, "customer_facing_currency", currency);
    }
}

/// What a row is about: ids, our own words, and the mode.
fn about(row: &mut Cells, source: &Value) {
    let kind = text(source, &["/object"]);
    let own_id = match source {
        Value::String(id) => id.clone(),
        _ => text(source, &["/id"]),
    };
    let charge = match kind.as_str() {
        "charge" => own_id.clone(),
        _ => text(
            source,
            &[
                "/charge/id",
                "/charge",
                "/latest_charge/id",
                "/latest_charge",
            ],
        ),
    };
    let intent = match kind.as_str() {
        "payment_intent" => own_id.clone(),
        _ => text(
            source,
            &[
                "/payment_intent/id",
                "/payment_intent",
                "/charge/payment_intent/id",
                "/charge/payment_intent",
            ],
        ),
    };
    if matches!(kind.as_str(), "payout") {
        push(row, "payout_object", own_id.clone());
    }
    push(row, "source_id", own_id);
    push(row, "charge_id", charge);
    push(row, "payment_intent_id", intent);
    let own = match kind.as_str() {
        "refund" => "refund_metadata",
        "transfer" => "transfer_metadata",
        "payout" => "payout_metadata",
        "dispute" => "dispute_metadata",
        _ => "payment_metadata",
    };
    metadata(row, own, source.get("metadata"));
    if matches!(kind.as_str(), "refund" | "dispute") {
        metadata(row, "payment_metadata", source.pointer("/charge/metadata"));
    }
    push(
        row,
        "livemode",
        text(source, &["/livemode", "/charge/livemode"]),
    );
}

fn metadata(row: &mut Cells, name: &str, words: Option<&Value>) {
    for (key, value) in words.and_then(Value::as_object).into_iter().flatten() {
        push(row, &format!("{name}[{key}]"), cell(value));
    }
}

/// Where an object stands that the log does not know; `None` = that says nothing.
fn state(list: &str, object: &Value, why: Why) -> Option<Cells> {
    let is_lookup = why != Why::Listed;
    let status = text(object, &["/status"]);
    let is_true = |name: &str| object.get(name).and_then(Value::as_bool) == Some(true);
    let is_booked = is_booked(object);
    if is_booked && !matches!(why, Why::Again { .. }) {
        return None;
    }
    let is_negative = matches!(list, "refunds" | "disputes" | "payouts");
    let (category, word) = match (list, status.as_str()) {
        // An uncaptured charge of which everything was given back has let go of its hold.
        ("charges", "succeeded") if !is_booked && !is_true("captured") => (
            "authorization object",
            if is_true("refunded") {
                "released"
            } else {
                "held"
            },
        ),
        // What was told as a hold stays one.
        ("charges", "succeeded") if is_booked => (
            if why == (Why::Again { is_hold: true }) {
                "authorization object"
            } else {
                "charge object"
            },
            "booked",
        ),
        // Captured, and on its way to the log.
        ("charges", "succeeded") => ("charge object", "pending"),
        ("charges", status) => ("charge object", status),
        ("payment_intents", "canceled") => ("charge object", "canceled"),
        ("payment_intents", "processing")
            if is_lookup || object.get("latest_charge").is_none_or(Value::is_null) =>
        {
            ("charge object", "pending")
        }
        ("payment_intents", "succeeded") if matches!(why, Why::Again { .. }) => {
            ("charge object", "booked")
        }
        // Nothing has been tried yet, or it may be tried again: worth telling only to somebody who asks.
        (
            "payment_intents",
            "requires_payment_method"
            | "requires_confirmation"
            | "requires_action"
            | "requires_capture",
        ) if is_lookup => ("charge object", "pending"),
        ("payment_intents", _) => return None,
        ("refunds", "succeeded") if is_booked => ("refund object", "booked"),
        ("refunds", "pending" | "requires_action" | "succeeded") => (
            "refund object",
            if is_booked { "booked" } else { "pending" },
        ),
        // A refund that was booked and failed has two rows in the log.
        ("refunds", "failed" | "canceled") if is_booked => ("refund object", "booked"),
        ("refunds", "failed") => ("refund object", "failed for good"),
        ("refunds", "canceled") => ("refund object", "canceled"),
        ("refunds", status) => ("refund object", status),
        ("disputes", _) if is_booked => ("dispute object", "booked"),
        (
            "disputes",
            "warning_needs_response" | "warning_under_review" | "needs_response" | "under_review",
        ) => ("dispute object", "pending"),
        ("disputes", "warning_closed" | "prevented" | "won" | "lost") => {
            ("dispute object", "closed")
        }
        ("disputes", status) => ("dispute object", status),
        ("payouts", _) if is_booked => ("payout object", "booked"),
        ("payouts", "pending" | "in_transit" | "paid") => ("payout object", "pending"),
        ("payouts", "failed") => ("payout object", "failed for good"),
        ("payouts", status) => ("payout object", status),
        _ => return None,
    };
    let mut row = Cells::new();
    let amount = object.get("amount").map(cell).unwrap_or_default();
    let amount = match amount.strip_prefix('-') {
        Some(positive) if is_negative => positive.to_owned(),
        None if is_negative && !amount.is_empty() && amount != "0" => format!("-{amount}"),
        _ => amount,
    };
    push(&mut row, "balance_transaction_id", text(object, &["/id"]));
    push(&mut row, "reporting_category", category.to_owned());
    push(&mut row, "status", word.to_owned());
    push(&mut row, "created", text(object, &["/created"]));
    push(&mut row, "currency", text(object, &["/currency"]));
    push(&mut row, "gross", amount);
    push(&mut row, "net", "0".to_owned());
    push(&mut row, "description", text(object, &["/description"]));
    about(&mut row, object);
    Some(row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(row: &Cells, name: &str) -> String {
        let found = row.iter().find(|(known, _)| known == name);
        found.map(|(_, text)| text.clone()).unwrap_or_default()
    }

    #[test]
    fn an_entry_of_the_log_has_the_columns_of_the_report() {
        let entry = json!({"id": "txn_1", "object": "balance_transaction", "amount": 1000, "fee": 59, "net": 941, "currency": "eur",
            "created": 1_773_050_400, "reporting_category": "charge", "new_field": [1],
            "source": {"id": "ch_1", "object": "charge", "amount": 1000, "currency": "eur", "payment_intent": "pi_1", "livemode": true,
                "metadata": {"order": "A"}}});
        let rows = rows("balance_transactions", &entry, Why::Listed);
        assert_eq!(rows.len(), 1);
        for (name, want) in [
            ("balance_transaction_id", "txn_1"),
            ("gross", "1000"),
            ("charge_id", "ch_1"),
            ("payment_intent_id", "pi_1"),
            ("payment_metadata[order]", "A"),
            ("livemode", "true"),
            ("customer_facing_amount", ""),
        ] {
            assert_eq!(of(&rows[0], name), want, "{name}");
        }
    }

    #[test]
    fn a_reference_is_an_id_or_an_object() {
        for source in [
            json!("re_1"),
            json!({"id": "re_1", "object": "refund", "charge": "ch_1", "payment_intent": {"id": "pi_1"}}),
        ] {
            let entry = json!({"id": "txn_2", "amount": -5, "source": source});
            let rows = rows("balance_transactions", &entry, Why::Listed);
            assert_eq!(of(&rows[0], "source_id"), "re_1");
        }
    }

    #[test]
    fn what_the_customer_saw_is_told_where_it_was_another_currency() {
        for (amount, object, want) in [
            (900, "charge", "1000"),
            (-900, "refund", "-1000"),
            (-900, "payout", ""),
        ] {
            let entry = json!({"id": "t", "amount": amount, "currency": "gbp", "source": {"id": "x", "object": object, "amount": 1000, "currency": "usd"}});
            let rows = rows("balance_transactions", &entry, Why::Listed);
            assert_eq!(of(&rows[0], "customer_facing_amount"), want, "{object}");
        }
    }

    #[test]
    fn an_object_speaks_only_while_the_log_is_silent() {
        let charge = |status: &str, captured: bool, refunded: bool, booked: bool| {
            json!({"id": "ch_1", "object": "charge", "amount": 1000, "currency": "eur", "created": 1, "status": status, "captured": captured,
                "refunded": refunded, "balance_transaction": booked.then_some("txn_1")})
        };
        let word = |list: &str, object: &Value, why: Why| {
            let rows = rows(list, object, why);
            rows.first()
                .map(|row| format!("{} {}", of(row, "reporting_category"), of(row, "status")))
                .unwrap_or_default()
        };
        for (object, listed, asked) in [
            (
                charge("pending", true, false, false),
                "charge object pending",
                "charge object pending",
            ),
            (
                charge("failed", false, false, false),
                "charge object failed",
                "charge object failed",
            ),
            (
                charge("succeeded", false, false, false),
                "authorization object held",
                "authorization object held",
            ),
            (
                charge("succeeded", false, true, false),
                "authorization object released",
                "authorization object released",
            ),
            (
                charge("succeeded", true, false, false),
                "charge object pending",
                "charge object pending",
            ),
            (
                charge("succeeded", true, false, true),
                "",
                "charge object booked",
            ),
        ] {
            assert_eq!(word("charges", &object, Why::Listed), listed, "{object}");
            assert_eq!(
                word("charges", &object, Why::Again { is_hold: false }),
                asked,
                "{object}"
            );
        }
        let refund = json!({"id": "re_1", "object": "refund", "amount": 300, "currency": "eur", "created": 1, "status": "pending", "charge": "ch_1"});
        let row = &rows("refunds", &refund, Why::Listed)[0];
        assert_eq!(
            (of(row, "gross"), of(row, "net"), of(row, "charge_id")),
            ("-300".into(), "0".into(), "ch_1".into())
        );
    }

    #[test]
    fn an_object_that_is_asked_for_brings_its_entries_along() {
        let charge = json!({"id": "ch_1", "object": "charge", "amount": 1000, "currency": "eur", "created": 1, "status": "succeeded", "captured": true,
            "balance_transaction": {"id": "txn_1", "amount": 1000, "fee": 5, "net": 995, "currency": "eur", "created": 1, "reporting_category": "charge"}});
        let rows = rows("charges", &charge, Why::Asked);
        assert_eq!(of(&rows[0], "balance_transaction_id"), "txn_1");
        assert_eq!(of(&rows[0], "charge_id"), "ch_1");
        assert_eq!(
            rows.len(),
            1,
            "its own row says nothing that the entry does not say"
        );
        let mut refunded = charge.clone();
        refunded["refunds"] = json!({"object": "list", "data": [{"id": "re_1", "object": "refund", "charge": "ch_1", "amount": 1000, "currency": "eur",
            "balance_transaction": {"id": "txn_r", "amount": -1000, "fee": 0, "net": -1000, "currency": "eur", "created": 2, "reporting_category": "refund"}}]});
        let with_refund = super::rows("charges", &refunded, Why::Asked);
        assert_eq!(of(&with_refund[1], "balance_transaction_id"), "txn_r");
        assert_eq!(of(&with_refund[1], "charge_id"), "ch_1");
        let again = super::rows("charges", &charge, Why::Again { is_hold: true });
        assert_eq!(of(&again[1], "reporting_category"), "authorization object");
        assert_eq!(of(&again[1], "status"), "booked");
    }
}
