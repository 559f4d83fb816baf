//! Repairs on their way into the company's own table: claimed in the ledger, written there, settled in the ledger.
//!
//! ```text
//! commit (approved) ─► claim ─► write in one transaction of theirs ─► settle: applied, failed, or approved again
//! ```
//!
//! Where the table lies in the store's own database there is one step instead: the commit itself writes it, and what cannot
//! be written there takes the way above. Whether the statements could be run at all is asked before anything is committed.
//!
//! A process that dies in between leaves a claimed repair. Whoever comes next looks at the row first: where the table shows
//! that this very repair was written it counts as applied; where the row is as it was, nothing was written and the repair
//! is approved again; anything else is told as a conflict, and nothing is written a second time.

use std::collections::HashMap;

use crate::database::DatabaseUrl;
use crate::exit::{Exit, Failure};
use crate::intents::sql::joined::Joined;
use crate::intents::sql::row_writer::Found;
use crate::intents::sql::writer::{Writer, Written};
use crate::model::breaks::{Break, BreakDisposition};
use crate::model::repair::{Repair, RepairAction, RepairState};
use crate::reconcile::Outcome;
use crate::report::{Check, CheckStatus};
use crate::settings::{RepairSettings, Settings};
use crate::store::contract::{
    AlongEnds, Note, Outbox, Receipt, RepairClaim, RepairDetail, Settlement, Store,
};
use crate::time::Instant;

use super::compose;
use super::run::Job;

/// What became of repairs that were handed over.
#[derive(Debug, Default)]
pub struct HandedOver {
    /// By id.
    pub(crate) states: HashMap<String, RepairState>,
    /// The breaks that conflicts opened.
    pub(crate) conflict_breaks: Vec<Break>,
    /// Why the rest was not written.
    pub(crate) failure: Option<Failure>,
}

/// The company's own table, open to be written.
pub(crate) struct Hand {
    writer: Writer,
    /// Where it lies in the store's database.
    pub(super) joined: Option<Joined>,
    /// In a file the store's transaction is the only one that can write.
    is_file: bool,
}

impl Hand {
    async fn close(self) {
        // What was written stands, however the connection ends.
        let _ = self.writer.close().await;
    }
}

/// Who carries over, and when.
#[derive(Clone, Copy)]
pub(crate) struct Carrier<'a> {
    pub(crate) settings: &'a Settings,
    /// Empty = by hand.
    pub(crate) run_id: &'a str,
    /// Empty = paysweep.
    pub(crate) by: &'a str,
    pub(crate) at: Instant,
}

impl<'a> Carrier<'a> {
    fn of(job: &'a Job<'_>) -> Carrier<'a> {
        Carrier {
            settings: job.settings,
            run_id: &job.run_id,
            by: "",
            at: job.as_of,
        }
    }

    fn note(&self, reason: &'a str) -> Note<'a> {
        Note {
            reason,
            by: self.by,
            at: self.at,
        }
    }

    /// Opens the table for writing. `None` where nothing is written there.
    pub(crate) async fn open(&self) -> Result<Option<Hand>, Failure> {
        let (Some(spec), Some(apply)) = (&self.settings.intents.sql, &self.settings.repair.apply)
        else {
            return Ok(None);
        };
        let mut writer = Writer::open(spec, apply).await?;
        let joined = match self.settings.is_joined() {
            Ok(()) => Some(Joined::new(&mut writer, self.at).await?),
            Err(_) => None,
        };
        let is_file = matches!(apply.url, DatabaseUrl::Sqlite(_));
        Ok(Some(Hand {
            writer,
            joined,
            is_file,
        }))
    }
}

/// What policy would apply is only approved where the company's own table is to have it first.
pub(super) fn hand_over(settings: &RepairSettings, outcome: &mut Outcome) {
    for repair in &mut outcome.repairs {
        if repair.state == RepairState::Applied && settings.is_carried(repair.action) {
            repair.state = RepairState::Approved;
            if repair.note.is_empty() {
                repair.note = format!("[repair] {} = auto", repair.class);
            }
        }
    }
}

/// Opens the table for what is planned, before anything is committed. A right or a column that is not there is a failure,
/// with nothing written; a database that does not answer now is `None`, and repairs wait for it in the ledger.
pub(super) async fn ready(job: &Job<'_>, outcome: &Outcome) -> Result<Option<Hand>, Failure> {
    let mut actions: Vec<RepairAction> = Vec::new();
    for repair in &outcome.repairs {
        let is_planned = matches!(repair.state, RepairState::Applied | RepairState::Approved);
        if is_planned
            && job.settings.repair.is_carried(repair.action)
            && !actions.contains(&repair.action)
        {
            actions.push(repair.action);
        }
    }
    if actions.is_empty() {
        return Ok(None);
    }
    match open_ready(job, &actions).await {
        Err(failure) if failure.exit == Exit::Temporary => Ok(None),
        other => other,
    }
}

async fn open_ready(job: &Job<'_>, actions: &[RepairAction]) -> Result<Option<Hand>, Failure> {
    if job.is_dry_run {
        if let (Some(spec), Some(apply)) = (&job.settings.intents.sql, &job.settings.repair.apply) {
            let mut writer = Writer::open_to_explain(spec, apply).await?;
            let runs = writer.assert_runs(actions, job.as_of).await;
            let _ = writer.close().await;
            runs?;
        }
        return Ok(None);
    }
    let Some(mut hand) = Carrier::of(job).open().await? else {
        return Ok(None);
    };
    match hand.writer.assert_runs(actions, job.as_of).await {
        Ok(()) => Ok(Some(hand)),
        Err(failure) => {
            hand.close().await;
            Err(failure)
        }
    }
}

/// Carries over what this run approved, and what an earlier one approved and could not write. What the commit wrote along is
/// done.
pub(super) async fn carry_over<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    outcome: &Outcome,
    receipt: &Receipt,
    hand: Option<Hand>,
) -> HandedOver {
    let mut done = HandedOver::default();
    let is_done = |id: &String| receipt.applied.contains(id) || receipt.conflicts.contains(id);
    let wanted: Vec<&Repair> = outcome
        .repairs
        .iter()
        .filter(|repair| repair.state == RepairState::Approved && !is_done(&repair.id))
        .collect();
    if wanted.is_empty() {
        if let Some(hand) = hand {
            hand.close().await;
        }
        return done;
    }
    let carried = carry_all(store, job, &wanted, outcome, receipt, hand, &mut done).await;
    if let Err(failure) = carried {
        let waiting = wanted
            .iter()
            .filter(|repair| {
                let state = done.states.get(&repair.id);
                matches!(state, Some(RepairState::Approved | RepairState::Claimed))
            })
            .count();
        done.failure = Some(failure.state(format!(
            "{waiting} repairs are approved and not known to be written; the next run goes on with them"
        )));
    }
    done
}

async fn carry_all<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    wanted: &[&Repair],
    outcome: &Outcome,
    receipt: &Receipt,
    hand: Option<Hand>,
    done: &mut HandedOver,
) -> Result<(), Failure> {
    let carrier = Carrier::of(job);
    for repair in wanted {
        // Of those that the ledger knew, only what still waits: a person's no, or an end, stays.
        if receipt.held.contains(&repair.id) {
            let known = store.repair(&repair.id).await?;
            if known.item.state != RepairState::Approved {
                continue;
            }
        }
        done.states.insert(repair.id.clone(), RepairState::Approved);
    }
    if done.states.is_empty() {
        return Ok(());
    }
    let hand = match hand {
        Some(hand) => Some(hand),
        None => carrier.open().await?,
    };
    let Some(mut hand) = hand else {
        return Ok(());
    };
    for repair in wanted {
        if !done.states.contains_key(&repair.id) {
            continue;
        }
        if let Some(stopped) = job.interrupt.asked() {
            return Err(stopped);
        }
        let closes = outcome
            .findings
            .iter()
            .map(|finding| &finding.found)
            .find(|found| {
                found.id == repair.break_id && found.disposition == BreakDisposition::Repaired
            });
        let detail = match one(store, &mut hand, carrier, &repair.id, closes).await {
            Ok(detail) => detail,
            Err(failure) => {
                let state = store.repair(&repair.id).await?.item.state;
                done.states.insert(repair.id.clone(), state);
                // Somebody else is at it.
                if failure.exit == Exit::Locked {
                    continue;
                }
                return Err(failure);
            }
        };
        if detail.item.state == RepairState::Failed {
            done.conflict_breaks.push(conflict(&detail, carrier.at));
        }
        done.states.insert(repair.id.clone(), detail.item.state);
    }
    hand.close().await;
    Ok(())
}

/// Writes one repair: in a transaction of the store's where that can be, else in one of the table's.
pub(crate) async fn one<S: Outbox>(
    store: &mut S,
    hand: &mut Hand,
    carrier: Carrier<'_>,
    id: &str,
    closes: Option<&Break>,
) -> Result<RepairDetail, Failure> {
    if let Some(joined) = &mut hand.joined {
        let on_conflict = |repair: &Repair, why: &str| compose::conflict(repair, why, carrier.at);
        let ends = AlongEnds {
            closes,
            on_conflict: &on_conflict,
        };
        let note = carrier.note("");
        let along = store.apply_along(id, carrier.run_id, &note, &ends, joined);
        let done = along.await;
        if done.is_ok() || hand.is_file {
            return done;
        }
    }
    in_two_steps(store, &mut hand.writer, carrier, id, closes).await
}

/// Claims, writes and settles one repair.
async fn in_two_steps<S: Outbox>(
    store: &mut S,
    writer: &mut Writer,
    carrier: Carrier<'_>,
    id: &str,
    closes: Option<&Break>,
) -> Result<RepairDetail, Failure> {
    let lease = carrier.settings.lease;
    let claim = store
        .claim_repair(id, carrier.run_id, &carrier.note(""), lease)
        .await?;
    let repair = claim.repair.item.clone();
    let written = writer
        .write(&repair, carrier.at, async || {
            store.renew_repair(&claim, lease).await
        })
        .await;
    match written {
        Ok(Written::Now) => applied(store, &claim, carrier, closes, "").await,
        Ok(Written::Before) => {
            let told = "the table has a record of it: an earlier try had written it";
            applied(store, &claim, carrier, closes, told).await
        }
        Ok(Written::Conflict(why) | Written::Unknown(why)) => {
            failed(store, &claim, carrier, &why).await
        }
        Ok(Written::Lost(failure)) => Err(failure.state(format!(
            "repair {id} stays claimed: whether it was written is found out by the next run, after {lease}"
        ))),
        Err(failure) if failure.exit == Exit::Locked => Err(failure),
        Err(failure) => {
            // Nothing was written; why stands in the ledger, without what the failure says of the database's inside.
            let told = format!("not written: {}", failure.exit.name());
            store
                .settle_repair(&claim, Settlement::NotWritten, &carrier.note(&told))
                .await?;
            Err(failure)
        }
    }
}

async fn applied<S: Outbox>(
    store: &mut S,
    claim: &RepairClaim,
    carrier: Carrier<'_>,
    closes: Option<&Break>,
    told: &str,
) -> Result<RepairDetail, Failure> {
    let how = Settlement::Written { closes };
    store.settle_repair(claim, how, &carrier.note(told)).await
}

async fn failed<S: Outbox>(
    store: &mut S,
    claim: &RepairClaim,
    carrier: Carrier<'_>,
    why: &str,
) -> Result<RepairDetail, Failure> {
    let mut detail = claim.repair.clone();
    detail.item.note = why.to_owned();
    let break_of_it = conflict(&detail, carrier.at);
    let how = Settlement::Conflict {
        break_of_it: &break_of_it,
    };
    let told = format!("{why}; nothing was overwritten");
    let mut settled = store
        .settle_repair(claim, how, &carrier.note(&told))
        .await?;
    why.clone_into(&mut settled.item.note);
    Ok(settled)
}

/// The break about a repair that the table did not take.
fn conflict(detail: &RepairDetail, at: Instant) -> Break {
    compose::conflict(&detail.item, &detail.item.note, at)
}

/// Finds out what became of repairs that a process claimed and did not settle, before anything is compared.
pub(super) async fn find_out<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    source: &str,
) -> Result<Option<Check>, Failure> {
    if job.settings.repair.apply.is_none() {
        return Ok(None);
    }
    let settled = settle_claimed(store, Carrier::of(job), &[source]).await?;
    if settled.is_empty() {
        return Ok(None);
    }
    let told: Vec<String> = settled
        .iter()
        .map(|detail| {
            format!(
                "{} of {} is {}",
                detail.item.id, detail.item.intent_id, detail.item.state
            )
        })
        .collect();
    Ok(Some(Check {
        name: format!("left behind {source}"),
        status: CheckStatus::Info,
        detail: format!(
            "what became of repairs that a process had claimed: {}",
            told.join("; ")
        ),
    }))
}

/// The same for whoever asks. Returns the repairs that were settled; one whose claim is still held is left alone.
pub(crate) async fn settle_claimed<S: Store + Outbox>(
    store: &mut S,
    carrier: Carrier<'_>,
    sources: &[&str],
) -> Result<Vec<RepairDetail>, Failure> {
    let mut settled = Vec::new();
    let left = store.claimed_repairs(sources).await?;
    if left.is_empty() {
        return Ok(settled);
    }
    let Some(mut hand) = carrier.open().await? else {
        return Ok(settled);
    };
    for detail in left {
        let note = carrier.note("left behind by whoever had claimed it");
        let lease = carrier.settings.lease;
        let id = &detail.item.id;
        let claim = match store.claim_repair(id, carrier.run_id, &note, lease).await {
            Ok(claim) => claim,
            Err(failure) if failure.exit == Exit::Locked => continue,
            Err(failure) => return Err(failure),
        };
        let told = match hand.writer.look(&detail.item).await? {
            Found::Recorded => {
                let told = "the table has a record of it: the earlier try had written it";
                applied(store, &claim, carrier, None, told).await?
            }
            Found::AsBefore(_) => {
                let note = carrier.note("not written: the row is as it was");
                store
                    .settle_repair(&claim, Settlement::NotWritten, &note)
                    .await?
            }
            Found::AsAfter => {
                let why =
                    "the row is as it should be, and nothing shows that this repair made it so";
                failed(store, &claim, carrier, why).await?
            }
            Found::Other(why) => failed(store, &claim, carrier, &why).await?,
        };
        settled.push(told);
    }
    hand.close().await;
    Ok(settled)
}
