//! Idempotency keys from the events of a processor: what our side knows even where no answer ever came.

use serde_json::{Value, json};

use super::api::{at, breaks, charge, repairs, stripe};
use super::fake::{Fake, Fault};
use super::scene::{Scene, Told};

/// A payment that bears no word of ours, and the events of its making.
fn world(more: &str) -> (Fake, Scene) {
    let fake = Fake::stripe();
    for (n, name) in ["lost", "other"].into_iter().enumerate() {
        let (mut charge, entry) = charge(name, &format!("10:0{n}"), 1000, 59);
        charge["metadata"] = json!({});
        fake.put("/v1/charges", [charge]);
        fake.put("/v1/balance_transactions", [entry]);
    }
    let event = |id: &str, kind: &str, about: &str, request: Value| {
        json!({"id": id, "object": "event", "type": kind, "created": at("10:00"), "livemode": true,
            "data": {"object": {"id": about}}, "request": request})
    };
    fake.put(
        "/v1/events",
        [
            event(
                "evt_1",
                "payment_intent.created",
                "pi_lost",
                json!({"id": "req_1", "idempotency_key": "key-lost"}),
            ),
            event(
                "evt_2",
                "charge.succeeded",
                "ch_lost",
                json!({"id": "req_2", "idempotency_key": "confirm-lost"}),
            ),
            event(
                "evt_3",
                "payment_intent.succeeded",
                "pi_lost",
                json!({"id": "req_2", "idempotency_key": "wrong"}),
            ),
            event(
                "evt_4",
                "payment_intent.created",
                "pi_other",
                json!({"id": "req_3", "idempotency_key": null}),
            ),
            event("evt_5", "charge.succeeded", "ch_other", json!(null)),
            event(
                "evt_6",
                "charge.refunded",
                "ch_other",
                json!({"id": "req_4", "idempotency_key": "wrong"}),
            ),
        ],
    );
    let scene = stripe(&fake, more);
    scene.write(
        "intents.csv",
        "intent_id,idempotency_key,kind,amount_minor,currency,status,created_at\n\
         ORD-lost,key-lost,charge,1000,USD,pending,2026-03-09T09:59:00Z\n",
    );
    (fake, scene)
}

fn run(scene: &Scene) -> Told {
    scene.say("run -f json --as-of 2026-03-10T12:00:00Z")
}

#[test]
fn a_payment_whose_answer_was_lost_is_found_by_its_idempotency_key() {
    let (fake, scene) = world("events = true");
    let told = run(&scene);
    assert_eq!(
        breaks(&told),
        [
            "missing_local - txn_other",
            "status_behind ORD-lost txn_lost"
        ],
        "{} {}",
        told.stdout,
        told.stderr
    );
    assert_eq!(repairs(&told), ["set_status ORD-lost txn_lost applied"]);
    let shelf = fake.shelf();
    let kinds = |asked: &super::fake::Asked| {
        asked
            .query
            .iter()
            .filter(|(name, _)| name == "types[]")
            .count()
    };
    assert!(
        shelf
            .asked
            .iter()
            .any(|asked| asked.path == "/v1/events" && kinds(asked) == 5)
    );
}

#[test]
fn events_are_asked_for_only_where_that_is_wanted() {
    let (fake, scene) = world("");
    let told = run(&scene);
    assert_eq!(
        breaks(&told),
        ["missing_local - txn_lost", "missing_local - txn_other"],
        "{}",
        told.stdout
    );
    assert!(
        fake.shelf()
            .asked
            .iter()
            .all(|asked| asked.path != "/v1/events")
    );
}

#[test]
fn a_key_that_may_not_read_events_is_told_so() {
    let (fake, scene) = world("events = true");
    fake.fails_from("/v1/events", 0, Fault::Status(403));
    let told = run(&scene);
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
    assert!(told.stderr.contains("/v1/events"), "{}", told.stderr);
    let told = scene.say("check");
    assert_eq!(told.code, 5, "{} {}", told.stdout, told.stderr);
}
