//! The one transaction of a run.

use std::collections::{HashMap, HashSet};

use super::chain::{self, Added};
use super::dialect::{Sql, sql};
use super::engine::Engine;
use super::intents::Writing;
use super::repairs::Written;
use super::{
    along, breaks, intents, lease, ledger, open_items, operations, pins, redrives, repairs, runs,
};
use crate::database::along::Along;
use crate::exit::{Exit, Failure};
use crate::meter::Meter;
use crate::model::repair::RepairState;
use crate::store::contract::{Claim, Commit, IntentChanges, Outcome, Receipt, RepairFilter};
use crate::time::Instant;

const MARK_COMMITTED: Sql = sql!(
    "insert into run_commits (source, run_id, as_of, totals_json) values ($1, $2, $3, $4) \
    on conflict do nothing"
);

/// Writes one slice, or nothing.
pub(super) async fn commit(
    session: &mut impl Engine,
    claim: &Claim,
    commit: &Commit<'_>,
    along: Option<&mut dyn Along>,
) -> Result<Receipt, Failure> {
    let doing = "committing";
    let marked = session
        .write(
            doing,
            MARK_COMMITTED,
            &[
                (&claim.source).into(),
                commit.run_id.into(),
                commit.as_of.0.into(),
                commit.totals_json.into(),
            ],
        )
        .await?;
    if marked == 0 {
        return already_committed(session, claim, commit).await;
    }
    lease::assert_ours(session, claim).await?;
    assert_watermark(session, claim, commit.expected_watermark).await?;
    write(session, claim, commit, along).await
}

async fn assert_watermark(
    session: &mut impl Engine,
    claim: &Claim,
    expected: Option<Instant>,
) -> Result<(), Failure> {
    let found = runs::watermark(session, &claim.source).await?;
    let found = found.map(|watermark| watermark.hi);
    if found == expected {
        return Ok(());
    }
    let shown = |at: Option<Instant>| at.map_or("nowhere".to_owned(), |at| at.to_string());
    Err(Failure::new(
        Exit::Locked,
        format!(
            "the watermark of source {} is at {}, this run started from {}",
            claim.source,
            shown(found),
            shown(expected)
        ),
    )
    .remedy("run again; it starts from where the watermark is now"))
}

async fn write(
    session: &mut impl Engine,
    claim: &Claim,
    commit: &Commit<'_>,
    along: Option<&mut dyn Along>,
) -> Result<Receipt, Failure> {
    let source = claim.source.as_str();
    let writing = Writing {
        scope: commit.scope,
        run_id: commit.run_id,
        at: commit.as_of,
        meter: commit.meter,
    };
    let mut added = Added::default();
    operations::write(session, source, commit).await?;
    if let Some(changes) = &commit.intents {
        import(session, writing, changes, &mut added).await?;
    }
    operations::link(session, source, commit).await?;
    let mut receipt = write_repairs(session, writing, commit, &mut added).await?;
    if let Some(along) = along {
        along::write(session, writing, commit, &mut receipt, &mut added, along).await?;
    }
    let repaired = repaired_breaks(commit, &receipt);
    breaks::put(
        session,
        commit.run_id,
        commit.as_of,
        commit.breaks,
        &repaired,
    )
    .await?;
    breaks::put(
        session,
        commit.run_id,
        commit.as_of,
        &receipt.conflict_breaks,
        &HashSet::new(),
    )
    .await?;
    breaks::resolve(session, commit.run_id, commit.as_of, commit.resolved).await?;
    let (run_id, as_of) = (commit.run_id, commit.as_of);
    repairs::void(session, run_id, as_of, commit.resolved, &mut added).await?;
    redrives::void(session, source, writing, &mut added).await?;
    if let Some(pin) = commit.pin {
        pins::put(session, source, pin).await?;
    }
    if let Some(to) = commit.advance_to {
        runs::advance(session, claim, to).await?;
    }
    chain::append(session, &added).await?;
    Ok(receipt)
}

/// Writes an import and confirms the repairs that it shows.
async fn import(
    session: &mut impl Engine,
    writing: Writing<'_>,
    changes: &IntentChanges<'_>,
    added: &mut Added,
) -> Result<u64, Failure> {
    let written = intents::import(session, writing, changes).await?;
    repairs::confirm(session, writing, changes.confirmed, added).await?;
    let recorded: Vec<&str> = changes
        .superseded
        .iter()
        .map(|(recorded, _)| recorded.as_str())
        .collect();
    repairs::confirm(session, writing, &recorded, added).await?;
    Ok(written)
}

async fn write_repairs(
    session: &mut impl Engine,
    writing: Writing<'_>,
    commit: &Commit<'_>,
    added: &mut Added,
) -> Result<Receipt, Failure> {
    let evidence: HashMap<&str, &str> = commit
        .breaks
        .iter()
        .map(|item| (item.id.as_str(), item.evidence.as_str()))
        .collect();
    let mut receipt = Receipt::nothing_written();
    let written = repairs::write(session, writing, commit.repairs, &evidence, added).await?;
    for (repair, written) in commit.repairs.iter().zip(written) {
        let id = repair.id.clone();
        match written {
            Written::AsPlanned => receipt.repairs_written.push(id),
            Written::Held => receipt.held.push(id),
            Written::Conflict => {
                receipt.repairs_written.push(id.clone());
                receipt.conflicts.push(id);
                receipt
                    .conflict_breaks
                    .push((commit.on_conflict)(repair, ""));
            }
        }
    }
    Ok(receipt)
}

/// Breaks of which every repair was applied.
fn repaired_breaks<'a>(commit: &Commit<'a>, receipt: &Receipt) -> HashSet<&'a str> {
    let undone: HashSet<&str> = receipt
        .conflicts
        .iter()
        .chain(&receipt.held)
        .map(String::as_str)
        .collect();
    let mut applied: HashSet<&str> = HashSet::new();
    let mut waiting: HashSet<&str> = HashSet::new();
    for repair in commit.repairs {
        let is_applied =
            repair.state == RepairState::Applied || receipt.applied.contains(&repair.id);
        if is_applied && !undone.contains(repair.id.as_str()) {
            applied.insert(&repair.break_id);
        } else {
            waiting.insert(&repair.break_id);
        }
    }
    applied.retain(|id| !waiting.contains(id));
    applied
}

async fn already_committed(
    session: &mut impl Engine,
    claim: &Claim,
    commit: &Commit<'_>,
) -> Result<Receipt, Failure> {
    let filter = RepairFilter {
        sources: &[&claim.source],
        run_id: commit.run_id,
        ..RepairFilter::default()
    };
    let written = ledger::filtered(session, &filter).await?;
    let ids_in = |state: RepairState| -> Vec<String> {
        written
            .iter()
            .filter(|detail| detail.item.state == state)
            .map(|detail| detail.item.id.clone())
            .collect()
    };
    let (applied, conflicts) = (ids_in(RepairState::Applied), ids_in(RepairState::Failed));
    Ok(Receipt {
        outcome: Outcome::AlreadyCommitted,
        repairs_written: written.into_iter().map(|detail| detail.item.id).collect(),
        applied,
        conflicts,
        held: Vec::new(),
        conflict_breaks: open_items::conflicts_of(
            session,
            commit.run_id,
            &claim.source,
            commit.as_of,
        )
        .await?,
    })
}

/// Imports intents outside of a run.
pub(super) async fn import_intents(
    session: &mut impl Engine,
    scope: &str,
    run_id: &str,
    at: Instant,
    changes: &IntentChanges<'_>,
) -> Result<u64, Failure> {
    let mut added = Added::default();
    let writing = Writing {
        scope,
        run_id,
        at,
        meter: &Meter::default(),
    };
    let written = import(session, writing, changes, &mut added).await?;
    chain::append(session, &added).await?;
    Ok(written)
}
