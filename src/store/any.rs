//! Whichever store the configuration names: commands work on this one and need not know which it is.

use super::contract::{
    AlongEnds, Begun, BreakDetail, BreakFilter, Carried, Claim, Commit, Counts, Decision,
    Freshness, Generation, IntentChanges, IntentSelection, LedgerHead, LedgerProof, Note,
    OldReports, OperationSelection, Outbox, Receipt, RepairClaim, RepairDetail, RepairFilter,
    RepairStep, Retention, RunEnd, RunRow, RunStart, Settlement, Store, Unconfirmed,
};
use super::postgres::PostgresStore;
use super::sqlite::SqliteStore;
use crate::database::along::Along;
use crate::exit::Failure;
use crate::model::breaks::{Break, CloseAs};
use crate::model::run::{Pin, Watermark};
use crate::model::stored::{ClaimedOperation, StoredIntents, StoredOperations};
use crate::time::{Instant, Span};

/// A store of either kind.
#[derive(Debug)]
pub enum AnyStore {
    /// In one file.
    Sqlite(SqliteStore),
    /// In a `PostgreSQL` database.
    Postgres(Box<PostgresStore>),
}

// Boxed, so that what a command keeps while it waits stays small.
macro_rules! delegate {
    ($trait:ident: $(fn $name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl $trait for AnyStore {
            $(async fn $name(&mut self, $($argument: $type),*) -> Result<$answer, Failure> {
                match self {
                    AnyStore::Sqlite(store) => Box::pin(store.$name($($argument),*)).await,
                    AnyStore::Postgres(store) => Box::pin(store.$name($($argument),*)).await,
                }
            })*
        }
    };
}

delegate! { Store:
    fn begin(start: &RunStart<'_>) -> Begun;
    fn claim(source: &str, run_id: &str, owner: &str, ttl: Span) -> Claim;
    fn renew(claim: &Claim, ttl: Span) -> ();
    fn release(claim: &Claim) -> ();
    fn watermark(source: &str) -> Option<Watermark>;
    fn set_watermark(claim: &Claim, to: &Watermark, note: &Note<'_>, gap: Option<&Break>) -> ();
    fn pin(source: &str) -> Option<Pin>;
    fn unpin(claim: &Claim, note: &Note<'_>) -> Option<Pin>;
    fn counts(source: &str, scope: &str) -> Counts;
    fn operations(source: &str, selection: OperationSelection<'_>) -> StoredOperations;
    fn intents(scope: &str, seen_from: &str, selection: IntentSelection<'_>) -> StoredIntents;
    fn open_breaks(sources: &[&str], as_of: Instant) -> Vec<Break>;
    fn commit(claim: &Claim, commit: &Commit<'_>) -> Receipt;
    fn is_committed(run_id: &str, source: &str) -> bool;
    fn import_intents(scope: &str, run_id: &str, at: Instant, changes: &IntentChanges<'_>) -> u64;
    fn carried(sources: &[&str], as_of: Instant) -> Carried;
    fn mark_reported(run_ids: &[&str], sources: &[&str], by: &str) -> ();
    fn finish_run(end: &RunEnd<'_>) -> ();
    fn unconfirmed(scope: &str) -> Unconfirmed;
    fn breaks(filter: &BreakFilter<'_>) -> Vec<Break>;
    fn break_detail(id_prefix: &str, as_of: Instant) -> BreakDetail;
    fn acknowledge(id_prefix: &str, until: Instant, note: &Note<'_>) -> Break;
    fn close(id_prefix: &str, how: CloseAs, note: &Note<'_>) -> Break;
    fn closes(sources: &[&str]) -> Vec<(String, CloseAs)>;
    fn repairs(filter: &RepairFilter<'_>) -> Vec<RepairDetail>;
    fn repair(id_prefix: &str) -> RepairDetail;
    fn decide(id_prefix: &str, decision: Decision, note: &Note<'_>) -> RepairDetail;
    fn apply(id_prefix: &str, note: &Note<'_>) -> RepairDetail;
    fn revert(id_prefix: &str, note: &Note<'_>) -> RepairDetail;
    fn ledger_head() -> LedgerHead;
    fn prove_ledger() -> LedgerProof;
    fn runs(limit: u32) -> Vec<RunRow>;
    fn run(id_prefix: &str) -> RunRow;
    fn old_reports(before: Instant) -> OldReports;
    fn prune_runs(before: Instant, at: Instant, limit: u32) -> u64;
    fn known_sources() -> Vec<String>;
    fn generations(retention: &Retention<'_>) -> Vec<Generation>;
    fn forget(retention: &Retention<'_>) -> Vec<Generation>;
    fn horizon(source: &str) -> Option<Instant>;
    fn settled_intents(scope: &str) -> Vec<String>;
    fn claimed(source: &str, ids: &[&str]) -> Vec<ClaimedOperation>;
    fn freshness(source: &str, as_of: Instant) -> Freshness;
}

delegate! { Outbox:
    fn commit_along(claim: &Claim, commit: &Commit<'_>, along: &mut dyn Along) -> Receipt;
    fn apply_along(
        id: &str, run_id: &str, note: &Note<'_>, ends: &AlongEnds<'_>, along: &mut dyn Along
    ) -> RepairDetail;
    fn claim_repair(id: &str, run_id: &str, note: &Note<'_>, ttl: Span) -> RepairClaim;
    fn claimed_repairs(sources: &[&str]) -> Vec<RepairDetail>;
    fn renew_repair(claim: &RepairClaim, ttl: Span) -> ();
    fn undelivered(channel: &str, sources: &[&str], now: Instant, limit: u32) -> Vec<RepairStep>;
    fn delivered(channel: &str, step: &RepairStep, run_id: &str, at: Instant) -> ();
    fn settle_repair(claim: &RepairClaim, how: Settlement<'_>, note: &Note<'_>) -> RepairDetail;
}
