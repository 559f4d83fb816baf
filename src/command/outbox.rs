//! Every step of a repair, told to whoever acts on it: one message each, signed, under a key of its own, again and again until
//! it is taken.
//!
//! What is told stands in the ledger, and what was taken beside it; a run that dies in between tells it once more under the
//! same key. Only sources that this run holds are told of, so that no two runs tell the same.

use serde_json::json;

use crate::notify::Channel;
use crate::notify::http::Client;
use crate::report::{DeliveryStatus, RunInfo};
use crate::store::contract::{Outbox, RepairStep};
use crate::time::Instant;

use super::alert::signed;
use super::repairs::repair_json;

/// Name of the schema of the body.
const SCHEMA: &str = "paysweep.repair";

/// At most so many steps in a run; the next one goes on.
const STEPS_MAX: u32 = 500;

/// After so many refusals in a row nobody is there.
const REFUSALS_MAX: u32 = 3;

/// Tells a channel what it has not taken yet. An error says what is left.
pub(super) async fn deliver<S: Outbox>(
    store: &mut S,
    channel: &Channel,
    client: &Result<Client, String>,
    held: &[&str],
    run: &RunInfo,
    now: Instant,
    has_time: impl Fn() -> bool,
) -> Result<DeliveryStatus, String> {
    let client = client.as_ref().map_err(Clone::clone)?;
    let steps = store
        .undelivered(&channel.name, held, run.as_of, STEPS_MAX)
        .await
        .map_err(|failure| failure.what)?;
    let (mut taken, mut refused, mut in_a_row) = (0, String::new(), 0);
    for step in &steps {
        if !has_time() {
            "there was no time left".clone_into(&mut refused);
            break;
        }
        let item = &step.repair.item;
        let key = format!("{}.{}", item.id, step.event_no);
        match client
            .send(&signed(channel, body(step, run.as_of), key, now)?)
            .await
        {
            Ok(()) => {
                (taken, in_a_row) = (taken + 1, 0);
                store
                    .delivered(&channel.name, step, &run.id, run.as_of)
                    .await
                    .map_err(|failure| failure.what)?;
            }
            Err(why) => {
                refused = why;
                in_a_row += 1;
                if in_a_row == REFUSALS_MAX {
                    break;
                }
            }
        }
    }
    match (steps.len(), taken) {
        (0, _) => Ok(DeliveryStatus::Quiet),
        (all, taken) if taken == all => Ok(DeliveryStatus::Sent),
        (all, taken) => Err(format!(
            "{taken} of {all} steps of repairs were taken, the next run tells the rest: {refused}"
        )),
    }
}

fn body(step: &RepairStep, now: Instant) -> String {
    json!({
        "schema": SCHEMA,
        "step": step.event_no,
        "at": step.event.at.to_string(),
        "by": if step.event.by.is_empty() { "paysweep" } else { &step.event.by },
        "note": step.event.note,
        "repair": repair_json(&step.repair, now),
    })
    .to_string()
}
