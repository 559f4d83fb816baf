//! The store in SQL: what a run does with its memory, written once for every engine.
//!
//! | module | holds |
//! |---|---|
//! | `dialect` | a statement in both dialects |
//! | `engine` | what is asked of an engine, and its transactions |
//! | `lease` | run keys and leases |
//! | `operations`, `intents` | the rows of both sides, as they are written |
//! | `breaks`, `repairs` | what differs and what is done about it, as a run writes it |
//! | `open_items`, `ledger` | the same as it stands, and what persons say of it |
//! | `redrives` | proposals to send an intent again |
//! | `runs`, `prune` | history and watermarks; what of it is forgotten |
//! | `retention` | operations that are forgotten, a generation at a time |
//! | `pins` | whose account a source reads |
//! | `chain` | the seal on every step of the ledger |
//! | `claims` | repairs on their way into a table of the company's own |
//! | `along` | repairs that such a table takes in a transaction of ours |
//! | `deliveries` | steps of repairs that channels have taken |
//! | `commit` | the one transaction of a run |
//!
//! # Decisions
//!
//! - The rules stand here; an engine adds how it is opened, how a transaction begins and ends, and how many rows are
//!   read and written at once. So two engines cannot come to differ in a rule.
//! - Everything inside [`Database::write`] may run more than once, since an engine may lose a race: it is made of values
//!   that were there before, and leaves nothing behind when it fails.

pub(in crate::store) mod dialect;
pub(in crate::store) mod engine;

mod along;
mod breaks;
mod chain;
mod claims;
mod commit;
mod deliveries;
mod intents;
mod lease;
mod ledger;
mod open_items;
mod operations;
mod pins;
mod prune;
mod redrives;
mod repairs;
mod retention;
mod runs;

use self::engine::{Database, Engine, Repeat};
use super::contract::{
    AlongEnds, Begun, BreakDetail, BreakFilter, Carried, Claim, Commit, Counts, Decision,
    Freshness, Generation, IntentChanges, IntentSelection, LedgerHead, LedgerProof, Note,
    OldReports, OperationSelection, Outbox, Outcome, Receipt, RepairClaim, RepairDetail,
    RepairFilter, RepairStep, Retention, RunEnd, RunRow, RunStart, Settlement, Store, Unconfirmed,
};
use crate::database::along::Along;
use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, CloseAs};
use crate::model::run::{Pin, Watermark};
use crate::model::stored::{ClaimedOperation, StoredIntents, StoredOperations};
use crate::time::{Instant, Span};

/// A store in a database that speaks SQL.
#[derive(Debug)]
pub struct SqlStore<D> {
    pub(in crate::store) database: D,
}

/// Somebody else was faster; nothing was written.
fn lost_race(what: &str) -> Failure {
    Failure::new(
        Exit::Temporary,
        format!("{what} while this run was reading"),
    )
    .remedy("run again; it reads the new state")
}

/// The one row of an answer to an id prefix.
fn only_one<T>(noun: &str, id_prefix: &str, rows: &mut Vec<T>) -> Result<T, Failure> {
    match (rows.pop(), rows.len()) {
        (Some(row), 0) => Ok(row),
        (None, _) => Err(
            Failure::rejected(format!("there is no {noun} {id_prefix:?}"))
                .remedy(format!("list them with paysweep {noun}s list")),
        ),
        (Some(_), others) => Err(Failure::rejected(format!(
            "{id_prefix:?} stands for {} {noun}s",
            others + 1
        ))
        .remedy("write more of the id")),
    }
}

/// Writes one slice, along with a table of the company's own where there is one.
async fn commit_with(
    database: &mut impl Database,
    claim: &Claim,
    commit: &Commit<'_>,
    mut along: Option<&mut dyn Along>,
) -> Result<Receipt, Failure> {
    let repeat = Repeat::Marked {
        run_id: commit.run_id,
        source: &claim.source,
    };
    // What an earlier try wrote, of which nobody knew whether it took hold.
    let mut earlier: Option<Receipt> = None;
    database
        .write("committing", repeat, async |session| {
            let along = along.as_mut().map(|along| &mut **along as &mut dyn Along);
            let receipt = commit::commit(session, claim, commit, along).await?;
            if let (Outcome::AlreadyCommitted, Some(ours)) = (receipt.outcome, &earlier) {
                return Ok(ours.clone());
            }
            earlier = Some(receipt.clone());
            Ok(receipt)
        })
        .await
}

impl<D: Database> Store for SqlStore<D> {
    async fn begin(&mut self, start: &RunStart<'_>) -> Result<Begun, Failure> {
        self.database
            .write("beginning a run", Repeat::Harmless, async |session| {
                lease::begin(session, start).await
            })
            .await
    }

    async fn claim(
        &mut self,
        source: &str,
        run_id: &str,
        owner: &str,
        ttl: Span,
    ) -> Result<Claim, Failure> {
        self.database
            .write("claiming a source", Repeat::Harmless, async |session| {
                lease::claim(session, source, run_id, owner, ttl).await
            })
            .await
    }

    async fn renew(&mut self, claim: &Claim, ttl: Span) -> Result<(), Failure> {
        self.database
            .write("renewing a claim", Repeat::Harmless, async |session| {
                lease::renew(session, claim, ttl).await
            })
            .await
    }

    async fn release(&mut self, claim: &Claim) -> Result<(), Failure> {
        self.database
            .write("releasing a source", Repeat::Harmless, async |session| {
                lease::release(session, claim).await
            })
            .await
    }

    async fn watermark(&mut self, source: &str) -> Result<Option<Watermark>, Failure> {
        self.database
            .read(async |session| runs::watermark(session, source).await)
            .await
    }

    async fn set_watermark(
        &mut self,
        claim: &Claim,
        to: &Watermark,
        note: &Note<'_>,
        gap: Option<&Break>,
    ) -> Result<(), Failure> {
        self.database
            .write("moving the watermark", Repeat::Doubles, async |session| {
                runs::set_watermark(session, claim, to, note, gap).await
            })
            .await
    }

    async fn pin(&mut self, source: &str) -> Result<Option<Pin>, Failure> {
        self.database
            .read(async |session| pins::pin(session, source).await)
            .await
    }

    async fn unpin(&mut self, claim: &Claim, note: &Note<'_>) -> Result<Option<Pin>, Failure> {
        self.database
            .write("letting a pin go", Repeat::Doubles, async |session| {
                pins::unpin(session, claim, note).await
            })
            .await
    }

    async fn counts(&mut self, source: &str, scope: &str) -> Result<Counts, Failure> {
        self.database
            .read(async |session| runs::counts(session, source, scope).await)
            .await
    }

    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure> {
        self.database
            .read(async |session| session.operations(source, selection).await)
            .await
    }

    async fn intents(
        &mut self,
        scope: &str,
        seen_from: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure> {
        self.database
            .read(async |session| session.intents(scope, seen_from, selection).await)
            .await
    }

    async fn open_breaks(
        &mut self,
        sources: &[&str],
        as_of: Instant,
    ) -> Result<Vec<Break>, Failure> {
        self.database
            .read(async |session| open_items::open(session, sources, as_of).await)
            .await
    }

    async fn commit(&mut self, claim: &Claim, commit: &Commit<'_>) -> Result<Receipt, Failure> {
        commit_with(&mut self.database, claim, commit, None).await
    }

    async fn is_committed(&mut self, run_id: &str, source: &str) -> Result<bool, Failure> {
        self.database
            .read(async |session| runs::is_committed(session, run_id, source).await)
            .await
    }

    async fn import_intents(
        &mut self,
        scope: &str,
        run_id: &str,
        at: Instant,
        changes: &IntentChanges<'_>,
    ) -> Result<u64, Failure> {
        self.database
            .write("importing intents", Repeat::Doubles, async |session| {
                commit::import_intents(session, scope, run_id, at, changes).await
            })
            .await
    }

    async fn carried(&mut self, sources: &[&str], as_of: Instant) -> Result<Carried, Failure> {
        self.database
            .read(async |session| runs::carried(session, sources, as_of).await)
            .await
    }

    async fn mark_reported(
        &mut self,
        run_ids: &[&str],
        sources: &[&str],
        by: &str,
    ) -> Result<(), Failure> {
        self.database
            .write(
                "marking runs as reported",
                Repeat::Harmless,
                async |session| runs::mark_reported(session, run_ids, sources, by).await,
            )
            .await
    }

    async fn finish_run(&mut self, end: &RunEnd<'_>) -> Result<(), Failure> {
        self.database
            .write("ending a run", Repeat::Harmless, async |session| {
                lease::finish(session, end).await
            })
            .await
    }

    async fn unconfirmed(&mut self, scope: &str) -> Result<Unconfirmed, Failure> {
        self.database
            .read(async |session| ledger::unconfirmed(session, scope).await)
            .await
    }

    async fn breaks(&mut self, filter: &BreakFilter<'_>) -> Result<Vec<Break>, Failure> {
        self.database
            .read(async |session| open_items::filtered(session, filter).await)
            .await
    }

    async fn break_detail(
        &mut self,
        id_prefix: &str,
        as_of: Instant,
    ) -> Result<BreakDetail, Failure> {
        self.database
            .read(async |session| open_items::detail(session, id_prefix, as_of).await)
            .await
    }

    async fn acknowledge(
        &mut self,
        id_prefix: &str,
        until: Instant,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        let word = open_items::Word::Acknowledge(until);
        self.database
            .write("recording a decision", Repeat::Doubles, async |session| {
                open_items::say(session, id_prefix, word, note).await
            })
            .await
    }

    async fn close(
        &mut self,
        id_prefix: &str,
        how: CloseAs,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        let word = open_items::Word::Close(how);
        self.database
            .write("recording a decision", Repeat::Doubles, async |session| {
                open_items::say(session, id_prefix, word, note).await
            })
            .await
    }

    async fn closes(&mut self, sources: &[&str]) -> Result<Vec<(String, CloseAs)>, Failure> {
        self.database
            .read(async |session| open_items::closes(session, sources).await)
            .await
    }

    async fn repairs(&mut self, filter: &RepairFilter<'_>) -> Result<Vec<RepairDetail>, Failure> {
        self.database
            .read(async |session| ledger::filtered(session, filter).await)
            .await
    }

    async fn repair(&mut self, id_prefix: &str) -> Result<RepairDetail, Failure> {
        self.database
            .read(async |session| ledger::detail(session, id_prefix).await)
            .await
    }

    async fn decide(
        &mut self,
        id_prefix: &str,
        decision: Decision,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure> {
        self.database
            .write("recording a decision", Repeat::Doubles, async |session| {
                ledger::decide(session, id_prefix, decision, note).await
            })
            .await
    }

    async fn apply(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        self.database
            .write("applying a repair", Repeat::Doubles, async |session| {
                ledger::apply(session, id_prefix, note).await
            })
            .await
    }

    async fn revert(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        self.database
            .write("proposing a repair", Repeat::Doubles, async |session| {
                ledger::revert(session, id_prefix, note).await
            })
            .await
    }

    async fn ledger_head(&mut self) -> Result<LedgerHead, Failure> {
        self.database
            .read(async |session| chain::head(session).await)
            .await
    }

    async fn prove_ledger(&mut self) -> Result<LedgerProof, Failure> {
        self.database
            .read(async |session| chain::prove(session).await)
            .await
    }

    async fn runs(&mut self, limit: u32) -> Result<Vec<RunRow>, Failure> {
        self.database
            .read(async |session| runs::newest(session, limit).await)
            .await
    }

    async fn run(&mut self, id_prefix: &str) -> Result<RunRow, Failure> {
        self.database
            .read(async |session| runs::one(session, id_prefix).await)
            .await
    }

    async fn old_reports(&mut self, before: Instant) -> Result<OldReports, Failure> {
        self.database
            .read(async |session| prune::old_reports(session, before).await)
            .await
    }

    async fn prune_runs(
        &mut self,
        before: Instant,
        at: Instant,
        limit: u32,
    ) -> Result<u64, Failure> {
        self.database
            .write("forgetting reports", Repeat::Harmless, async |session| {
                prune::prune(session, before, at, limit).await
            })
            .await
    }

    async fn known_sources(&mut self) -> Result<Vec<String>, Failure> {
        self.database
            .read(async |session| retention::known_sources(session).await)
            .await
    }

    async fn generations(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure> {
        self.database
            .read(async |session| retention::generations(session, retention).await)
            .await
    }

    async fn forget(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure> {
        self.database
            .write("forgetting operations", Repeat::Harmless, async |session| {
                retention::forget(session, retention).await
            })
            .await
    }

    async fn horizon(&mut self, source: &str) -> Result<Option<Instant>, Failure> {
        self.database
            .read(async |session| retention::horizon(session, source).await)
            .await
    }

    async fn settled_intents(&mut self, scope: &str) -> Result<Vec<String>, Failure> {
        self.database
            .read(async |session| retention::settled_intents(session, scope).await)
            .await
    }

    async fn claimed(
        &mut self,
        source: &str,
        ids: &[&str],
    ) -> Result<Vec<ClaimedOperation>, Failure> {
        self.database
            .read(async |session| retention::claimed(session, source, ids).await)
            .await
    }

    async fn freshness(&mut self, source: &str, as_of: Instant) -> Result<Freshness, Failure> {
        self.database
            .read(async |session| runs::freshness(session, source, as_of).await)
            .await
    }
}

impl<D: Database> Outbox for SqlStore<D> {
    async fn commit_along(
        &mut self,
        claim: &Claim,
        commit: &Commit<'_>,
        along: &mut dyn Along,
    ) -> Result<Receipt, Failure> {
        commit_with(&mut self.database, claim, commit, Some(along)).await
    }

    async fn apply_along(
        &mut self,
        id: &str,
        run_id: &str,
        note: &Note<'_>,
        ends: &AlongEnds<'_>,
        along: &mut dyn Along,
    ) -> Result<RepairDetail, Failure> {
        self.database
            .write("applying a repair", Repeat::Doubles, async |session| {
                along::apply(session, id, run_id, note, ends, along).await
            })
            .await
    }

    async fn claim_repair(
        &mut self,
        id: &str,
        run_id: &str,
        note: &Note<'_>,
        ttl: Span,
    ) -> Result<RepairClaim, Failure> {
        self.database
            .write("claiming a repair", Repeat::Doubles, async |session| {
                claims::claim(session, id, run_id, note, ttl).await
            })
            .await
    }

    async fn claimed_repairs(&mut self, sources: &[&str]) -> Result<Vec<RepairDetail>, Failure> {
        self.database
            .read(async |session| ledger::claimed(session, sources).await)
            .await
    }

    async fn renew_repair(&mut self, claim: &RepairClaim, ttl: Span) -> Result<(), Failure> {
        self.database
            .write("renewing a claim", Repeat::Harmless, async |session| {
                claims::renew(session, claim, ttl).await
            })
            .await
    }

    async fn undelivered(
        &mut self,
        channel: &str,
        sources: &[&str],
        now: Instant,
        limit: u32,
    ) -> Result<Vec<RepairStep>, Failure> {
        self.database
            .write("looking for news", Repeat::Harmless, async |session| {
                deliveries::undelivered(session, channel, sources, now, limit).await
            })
            .await
    }

    async fn delivered(
        &mut self,
        channel: &str,
        step: &RepairStep,
        run_id: &str,
        at: Instant,
    ) -> Result<(), Failure> {
        self.database
            .write("recording a delivery", Repeat::Harmless, async |session| {
                deliveries::delivered(session, channel, step, run_id, at).await
            })
            .await
    }

    async fn settle_repair(
        &mut self,
        claim: &RepairClaim,
        how: Settlement<'_>,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure> {
        self.database
            .write("settling a repair", Repeat::Doubles, async |session| {
                claims::settle(session, claim, &how, note).await
            })
            .await
    }
}

/// Whether a run committed its slice of a source, for an engine that lost its connection at the end of a commit.
pub(in crate::store) use self::runs::is_committed;
