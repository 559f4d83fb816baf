//! The store's promise, cut at the level of intent: what a run asks of its memory, not which SQL answers.
//!
//! - [`Store::commit`] is all or nothing. It is refused when another run took the source over (*fenced*) or when the
//!   watermark is not where the run found it. Repeating it changes nothing and answers *already committed*. When its
//!   own outcome is unknown, [`Store::is_committed`] settles it.
//! - The watermark never decreases, except by [`Store::set_watermark`], which leaves an audit row.
//! - A break whose subject was seen in order is resolved, never deleted; one whose subject was not seen stays.
//! - Repairs, their events, and what persons decided are append-only.
//! - A run whose report did not get out is carried until [`Store::mark_reported`] says otherwise.
//! - Uniqueness of keys carries safety; the lease saves work.
//!
//! It deliberately holds no clock but the database's, which alone judges whether a lease has expired. Every other time
//! is the caller's.
//!
//! # Decisions
//!
//! - One connection, so methods take `&mut self`: no statement can slip into somebody else's transaction.
//! - Failures are finished sentences ([`Failure`]): locked and fenced are [`Exit::Locked`](crate::exit::Exit::Locked), a
//!   database that is busy, full or gone is `Temporary`, one that is foreign, newer or damaged is `NotReady`.
//! - An acknowledgement or a close holds for the evidence it was given for, also when the break was resolved in between.
//! - A resolved break that is seen again starts a new opening: `first_seen_run` and `first_seen_at` are those of the new
//!   opening, and the old opening stays in the break's events.

use crate::database::along::Along;
use crate::exit::Failure;
use crate::meter::Meter;
use crate::model::breaks::{Break, BreakClass, BreakState, CloseAs};
use crate::model::intent::{IntentStatus, Intents};
use crate::model::operation::Operations;
use crate::model::repair::{Repair, RepairState};
use crate::model::run::{Pin, Watermark};
use crate::model::stored::{ClaimedOperation, StoredIntents, StoredOperations};
use crate::model::text::Text;
use crate::model::verdict::Rule;
use crate::time::{Instant, Span};

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct RunStart<'a> {
    /// Made by the client; sorts by time.
    pub run_id: &'a str,
    /// The command that runs.
    pub command: &'a str,
    /// The sources it will claim.
    pub sources: &'a [String],
    /// "Now" of the run.
    pub as_of: Instant,
    /// The wall clock at its start.
    pub started_at: Instant,
    /// Version of the program.
    pub version: &'a str,
    /// Hash of the configuration.
    pub config_hash: &'a str,
    /// `--run-key`, where one was given.
    pub run_key: Option<RunKey<'a>>,
    /// Who started it; empty = nobody is named.
    pub started_by: &'a str,
    /// Random per process start.
    pub owner: &'a str,
    /// How long a run key is held without [`Store::renew`].
    pub ttl: Span,
}

/// `--run-key` and what it stands for.
#[derive(Clone, Copy, Debug)]
pub struct RunKey<'a> {
    /// The key as it was given.
    pub key: &'a str,
    /// Hash of command, sources, window flags, as-of and configuration; never of data.
    pub fingerprint: &'a str,
}

/// What [`Store::begin`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The run may go on.
    New,
    /// The same key and fingerprint was completed before: its outcome is given again.
    Done {
        /// The run that did it.
        run_id: String,
        /// Its exit code.
        exit_code: u8,
        /// Its report, where one was stored.
        report_json: Option<String>,
    },
}

/// A source that this run holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The source.
    pub source: String,
    /// Grows with every change of hands; unchanged = still ours, even after expiry.
    pub epoch: i64,
    /// The run that holds it.
    pub run_id: String,
}

/// Who did something by hand, when and why.
#[derive(Clone, Copy, Debug)]
pub struct Note<'a> {
    /// Why.
    pub reason: &'a str,
    /// Who.
    pub by: &'a str,
    /// When, by the caller's clock.
    pub at: Instant,
}

/// How many rows the store holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Counts {
    /// Operations of the source.
    pub operations: u64,
    /// Intents of the scope, without superseded ones.
    pub intents: u64,
}

/// Which operations to load.
#[derive(Clone, Copy, Debug)]
pub enum OperationSelection<'a> {
    /// All of the source.
    All,
    /// `occurred_at` at or after the instant, every pending one, and the subjects of breaks that are not resolved.
    Since(Instant),
    /// Id, reference, parent or object is one of the keys, or linked with an intent whose id is.
    Keys(&'a [&'a str]),
    /// Belonging to one of the payouts, or being it.
    Payouts(&'a [&'a str]),
}

/// Which intents to load. Rows that were superseded are never among them.
#[derive(Clone, Copy, Debug)]
pub enum IntentSelection<'a> {
    /// All of the scope.
    All,
    /// `created_at` at or after the instant, every created or pending one, every succeeded or lost one that is linked
    /// with nothing, and those of breaks that are not resolved.
    Since(Instant),
    /// Id, idempotency key, reference, `processor_ref` or parent is one of the keys.
    Keys(&'a [&'a str]),
    /// Exactly these.
    Ids(&'a [&'a str]),
}

/// Which breaks to list. Empty = no restriction.
#[derive(Clone, Copy, Debug)]
pub struct BreakFilter<'a> {
    /// Only of these sources (or scope names).
    pub sources: &'a [&'a str],
    /// Only in these states; empty = every state but resolved.
    pub states: &'a [BreakState],
    /// Only of this class.
    pub class: Option<BreakClass>,
    /// Only ids that start so.
    pub id_prefix: &'a str,
    /// Acknowledgements hold when they reach beyond it.
    pub as_of: Instant,
}

/// One step in the life of a break or repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// `changed`, `acknowledged`, `closed`, `resolved`, `reopened`; for repairs the state it went into.
    pub what: String,
    /// When.
    pub at: Instant,
    /// Who; empty = paysweep.
    pub by: String,
    /// The run in which it happened; empty = by hand.
    pub run_id: String,
    /// Reason or detail.
    pub note: String,
    /// How it was closed.
    pub closed_as: Option<CloseAs>,
    /// Until when it was acknowledged.
    pub until: Option<Instant>,
    /// The evidence it is bound to; empty for repairs.
    pub evidence: String,
}

/// A break with its history, oldest event first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakDetail {
    /// The break as it stands.
    pub item: Break,
    /// The run that saw it last.
    pub last_seen_run: String,
    /// When it was seen last.
    pub last_seen_at: Instant,
    /// Its history.
    pub events: Vec<Event>,
    /// Ids of its repairs, oldest first.
    pub repairs: Vec<String>,
}

/// Which repairs to list. Empty = no restriction.
#[derive(Clone, Copy, Debug, Default)]
pub struct RepairFilter<'a> {
    /// Only of these sources.
    pub sources: &'a [&'a str],
    /// Only in these states.
    pub states: &'a [RepairState],
    /// Only of this break.
    pub break_id: &'a str,
    /// Only written in this run.
    pub run_id: &'a str,
    /// Only ids that start so.
    pub id_prefix: &'a str,
}

/// A repair with its place in history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairDetail {
    /// The repair in its present state.
    pub item: Repair,
    /// Scope name of the intents.
    pub scope: String,
    /// The run that wrote it.
    pub run_id: String,
    /// When that was.
    pub written_at: Instant,
    /// Evidence of the break it was planned for.
    pub evidence: String,
    /// Who is answerable for it: who proposed it by hand, or started the run that wrote it; empty = nobody is named. Only
    /// filled by [`Store::repair`].
    pub proposed_by: String,
    /// Its events, oldest first; only filled by [`Store::repair`].
    pub events: Vec<Event>,
}

/// A person's word on a proposed repair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Proposed → approved; also failed → approved, once the reason is gone.
    Approve,
    /// The same, by somebody else than [`RepairDetail::proposed_by`]: else `Denied`.
    ApproveAsOther,
    /// Proposed or approved → rejected.
    Reject,
}

/// The end of the chain of the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LedgerHead {
    /// How many steps it seals.
    pub entries: u64,
    /// Its hash, 64 hex digits; empty = nothing was sealed yet.
    pub hash: String,
}

/// What was found when the chain of the ledger was proved.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LedgerProof {
    /// Where it ends.
    pub head: LedgerHead,
    /// Steps that are older than the chain.
    pub older: u64,
}

/// A run as history shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRow {
    /// Its id.
    pub run_id: String,
    /// The command.
    pub command: String,
    /// The sources it was asked for.
    pub sources: Vec<String>,
    /// Its "now".
    pub as_of: Instant,
    /// When it began.
    pub started_at: Instant,
    /// When it ended; `None` = running, or killed.
    pub finished_at: Option<Instant>,
    /// Version of the program.
    pub version: String,
    /// Its exit code.
    pub exit_code: Option<u8>,
    /// Name of its outcome; empty = none yet.
    pub outcome: String,
    /// The report; only filled by [`Store::run`].
    pub report_json: Option<String>,
    /// When its report was forgotten by [`Store::prune_runs`]; `None` = it was not.
    pub report_pruned_at: Option<Instant>,
}

/// Reports of runs that began before some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct OldReports {
    /// How many nobody needs any more.
    pub prunable: u64,
    /// How many bytes those take.
    pub prunable_bytes: u64,
    /// How many nobody has told yet: the next run lists what they found.
    pub untold: u64,
    /// How many are of a run that first saw a break which is open or acknowledged.
    pub of_open_breaks: u64,
    /// 1 where the newest report there is, is one of them; the next run tells what changed since it.
    pub newest: u64,
}

/// What is kept of operations.
#[derive(Clone, Copy, Debug)]
pub struct Retention<'a> {
    /// "Now".
    pub as_of: Instant,
    /// What occurred at or after is kept.
    pub before: Instant,
    /// For every source with a watermark: from when on its operations may still get a verdict, or be asked for by one.
    pub floors: &'a [(String, Instant)],
    /// How long new operations go into one generation, before another one is opened.
    pub open_for: Span,
}

/// Operations that were first seen between two prunes, and are forgotten together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generation {
    /// Its number; they count from 1.
    pub number: i64,
    /// When it was opened; [`Instant`] 0 = with the store.
    pub opened_at: Instant,
    /// When it was closed; `None` = new operations go into it.
    pub closed_at: Option<Instant>,
    /// How many operations it holds.
    pub operations: u64,
    /// When the last of them occurred; `None` = it holds none.
    pub newest: Option<Instant>,
    /// Why it stays; `None` = nobody needs it.
    pub stays: Option<String>,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub struct RunEnd<'a> {
    /// The run.
    pub run_id: &'a str,
    /// The wall clock at its end.
    pub finished_at: Instant,
    /// The exit code.
    pub exit_code: u8,
    /// `outcome.name`.
    pub outcome: &'a str,
    /// The report, to be rendered again.
    pub report_json: Option<&'a str>,
    /// Whether its run key counts as done. Otherwise the key is free again at once.
    pub is_completed: bool,
}

/// An operation of a commit that belongs to an intent.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Index in [`Commit::operations`].
    pub operation: usize,
    /// The intent.
    pub intent_id: &'a str,
    /// The rule that found it.
    pub rule: Rule,
    /// Whether it is the one operation that satisfies the intent (further members of a sum, life-cycle rows and
    /// reversals are not). An intent has at most one.
    pub is_principal: bool,
}

/// What an import changes, as `intents::merge` worked it out.
#[derive(Clone, Copy, Debug)]
pub struct IntentChanges<'a> {
    /// The rows as they stand after the merge.
    pub rows: &'a Intents,
    /// The status that the import showed, one per row.
    pub imported_status: &'a [Option<IntentStatus>],
    /// The `processor_ref` that the import showed, one per row, in `rows.text`.
    pub imported_processor_ref: &'a [Text],
    /// Indices of rows seen first.
    pub new: &'a [usize],
    /// Indices of rows that changed; their version is one above the stored one.
    pub changed: &'a [usize],
    /// Indices of rows of which only the imported columns changed; their version stays.
    pub touched: &'a [usize],
    /// (recorded intent, imported intent that takes its place).
    pub superseded: &'a [(String, String)],
    /// Intents whose repair the import shows as well.
    pub confirmed: &'a [String],
}

/// Everything a run writes about one slice, from values that were read before. See [`Store::commit`].
#[derive(Clone, Copy)]
pub struct Commit<'a> {
    /// The run.
    pub run_id: &'a str,
    /// Scope name of the intents.
    pub scope: &'a str,
    /// "Now" of the run; stands in every row that this commit writes.
    pub as_of: Instant,
    /// `hi` of the watermark that the run started from; `None` = there was none.
    pub expected_watermark: Option<Instant>,
    /// The operations that the index lists and links speak of.
    pub operations: &'a Operations,
    /// Names of the files that `operations.file` counts.
    pub files: &'a [String],
    /// Operations seen first.
    pub new_operations: &'a [usize],
    /// Operations whose new content takes the place of the stored one, which is kept as a version.
    pub updated_operations: &'a [usize],
    /// Operations whose new content is kept as evidence only.
    pub rejected_operations: &'a [usize],
    /// What the import of intents changes; applied before the repairs.
    pub intents: Option<IntentChanges<'a>>,
    /// New links. Links that are stored already may be among them.
    pub links: &'a [Link<'a>],
    /// Breaks of this comparison. One that is `Repaired` and not sticky is stored as resolved, once every repair of it
    /// is applied.
    pub breaks: &'a [Break],
    /// Ids of breaks whose subject was seen in order.
    pub resolved: &'a [String],
    /// Repairs to write; those in state `applied` are applied, compare-and-set.
    pub repairs: &'a [Repair],
    /// The `repair_conflict` break of a repair that was not written, and why; no why = its row had changed.
    pub on_conflict: &'a dyn Fn(&Repair, &str) -> Break,
    /// Where the watermark goes; `None` = it stays.
    pub advance_to: Option<&'a Watermark>,
    /// Whose account was read, where that is to be remembered; `None` = as it is.
    pub pin: Option<&'a Pin>,
    /// Control totals of the slice.
    pub totals_json: &'a str,
    /// Counts rows as they are written, for whoever waits.
    pub meter: &'a Meter,
}

impl Commit<'_> {
    /// How many rows it counts.
    pub fn rows(&self) -> u64 {
        let intents = self.intents.map_or(0, |changes| {
            changes.new.len() + changes.changed.len() + changes.touched.len()
        });
        let operations = self.new_operations.len() + self.updated_operations.len();
        (operations + intents + self.links.len()) as u64
    }
}

/// What became of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Written.
    Committed,
    /// Written before by the same run; nothing changed.
    AlreadyCommitted,
}

/// What a commit did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// Whether this call wrote.
    pub outcome: Outcome,
    /// Repairs that were written, or moved on, by this commit, in the order given.
    pub repairs_written: Vec<String>,
    /// Approved repairs that the company's own table took in the same transaction; stored as `applied`. Where the run had
    /// committed before, every one of its repairs that is applied.
    pub applied: Vec<String>,
    /// Repairs that found their row changed; stored as `failed`, nothing was overwritten.
    pub conflicts: Vec<String>,
    /// Repairs that the ledger knows already and that stay as they are: turned down by a person, applied, or failed
    /// before.
    pub held: Vec<String>,
    /// The breaks that the conflicts opened.
    pub conflict_breaks: Vec<Break>,
}

impl Receipt {
    /// The receipt of a dry run.
    pub fn nothing_written() -> Receipt {
        Receipt {
            outcome: Outcome::Committed,
            repairs_written: Vec::new(),
            applied: Vec::new(),
            conflicts: Vec::new(),
            held: Vec::new(),
            conflict_breaks: Vec::new(),
        }
    }
}

/// What committed runs whose report did not get out leave to the next one.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Carried {
    /// Those runs, oldest first.
    pub runs: Vec<String>,
    /// Breaks that their repairs closed. Those that are open are found with [`Store::open_breaks`].
    pub breaks: Vec<Break>,
    /// Repairs that they wrote.
    pub repairs: Vec<Repair>,
}

/// Repairs of a private copy that no import has shown yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Unconfirmed {
    /// How many.
    pub count: u64,
    /// When the oldest was applied.
    pub oldest_at: Option<Instant>,
}

/// How fresh a source is.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Freshness {
    /// End of the last run that finished (exit 0 or 1).
    pub last_finished_at: Option<Instant>,
    /// End of the last run that left nothing to a person (`clean` or `repaired`), whatever exit code the policy asks for.
    pub last_clean_at: Option<Instant>,
    /// How far the source was read.
    pub watermark: Option<Watermark>,
    /// Breaks that are open and not acknowledged.
    pub open_breaks: u64,
}

/// What a run remembers, and how it writes its results. The promises stand at the top of this module.
#[allow(
    async_fn_in_trait,
    reason = "one thread drives everything: no caller needs the futures to be Send"
)]
pub trait Store {
    /// Records a run as begun; with a run key, decides whether it may. The same key with another fingerprint is
    /// `Rejected`; one that is in flight is `Locked`; one whose holder let it expire is taken over.
    async fn begin(&mut self, start: &RunStart<'_>) -> Result<Begun, Failure>;

    /// Takes a source for a run. A live lease of another run is `Locked`, saying which run holds it and until when.
    async fn claim(
        &mut self,
        source: &str,
        run_id: &str,
        owner: &str,
        ttl: Span,
    ) -> Result<Claim, Failure>;

    /// Holds a source, and the run's key, for `ttl` more. `Locked` when it was taken over.
    async fn renew(&mut self, claim: &Claim, ttl: Span) -> Result<(), Failure>;

    /// Gives a source back. A source that was taken over stays with its new holder.
    async fn release(&mut self, claim: &Claim) -> Result<(), Failure>;

    /// How far a source has been read.
    async fn watermark(&mut self, source: &str) -> Result<Option<Watermark>, Failure>;

    /// Moves the watermark of a claimed source by hand, in either direction, with an audit row; a stretch that is
    /// skipped is recorded as `gap`.
    async fn set_watermark(
        &mut self,
        claim: &Claim,
        to: &Watermark,
        note: &Note<'_>,
        gap: Option<&Break>,
    ) -> Result<(), Failure>;

    /// Whose account a source reads; `None` = no run has told, or it was let go.
    async fn pin(&mut self, source: &str) -> Result<Option<Pin>, Failure>;

    /// Lets the pin of a claimed source go by hand, with an audit row; answers what it was.
    async fn unpin(&mut self, claim: &Claim, note: &Note<'_>) -> Result<Option<Pin>, Failure>;

    /// How many rows are stored.
    async fn counts(&mut self, source: &str, scope: &str) -> Result<Counts, Failure>;

    /// Operations of a source with their links.
    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure>;

    /// Intents of a scope, with who answers them as the source `seen_from` sees it.
    async fn intents(
        &mut self,
        scope: &str,
        seen_from: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure>;

    /// Every break of the sources (and scope names) that is not resolved, by id; no sources = of all.
    async fn open_breaks(
        &mut self,
        sources: &[&str],
        as_of: Instant,
    ) -> Result<Vec<Break>, Failure>;

    /// Writes one slice in one transaction. See [`Commit`] and the promises above.
    async fn commit(&mut self, claim: &Claim, commit: &Commit<'_>) -> Result<Receipt, Failure>;

    /// Whether a run has committed its slice of a source.
    async fn is_committed(&mut self, run_id: &str, source: &str) -> Result<bool, Failure>;

    /// Imports intents outside of a run, in one transaction. Returns how many rows were new or changed.
    async fn import_intents(
        &mut self,
        scope: &str,
        run_id: &str,
        at: Instant,
        changes: &IntentChanges<'_>,
    ) -> Result<u64, Failure>;

    /// What committed runs of these sources owe, because their report did not get out.
    async fn carried(&mut self, sources: &[&str], as_of: Instant) -> Result<Carried, Failure>;

    /// The results of these runs about these sources have been told by run `by`.
    async fn mark_reported(
        &mut self,
        run_ids: &[&str],
        sources: &[&str],
        by: &str,
    ) -> Result<(), Failure>;

    /// Records how a run ended, and settles its run key.
    async fn finish_run(&mut self, end: &RunEnd<'_>) -> Result<(), Failure>;

    /// Applied repairs of a scope that no import has shown yet.
    async fn unconfirmed(&mut self, scope: &str) -> Result<Unconfirmed, Failure>;

    /// Breaks by id.
    async fn breaks(&mut self, filter: &BreakFilter<'_>) -> Result<Vec<Break>, Failure>;

    /// One break with its history. An unknown or ambiguous prefix is `Rejected`.
    async fn break_detail(
        &mut self,
        id_prefix: &str,
        as_of: Instant,
    ) -> Result<BreakDetail, Failure>;

    /// Silences a break until a date, as long as its evidence stays the same.
    async fn acknowledge(
        &mut self,
        id_prefix: &str,
        until: Instant,
        note: &Note<'_>,
    ) -> Result<Break, Failure>;

    /// Ends a break, as long as its evidence stays the same.
    async fn close(
        &mut self,
        id_prefix: &str,
        how: CloseAs,
        note: &Note<'_>,
    ) -> Result<Break, Failure>;

    /// How persons closed breaks that are not resolved, with the evidence still the same: (break id, how), by id; no
    /// sources = of all. An `operation_changed` that was accepted lets the next commit take the new content.
    async fn closes(&mut self, sources: &[&str]) -> Result<Vec<(String, CloseAs)>, Failure>;

    /// Repairs, oldest first.
    async fn repairs(&mut self, filter: &RepairFilter<'_>) -> Result<Vec<RepairDetail>, Failure>;

    /// One repair with its events. An unknown or ambiguous prefix is `Rejected`.
    async fn repair(&mut self, id_prefix: &str) -> Result<RepairDetail, Failure>;

    /// Records a person's word on a proposed repair. `Rejected` when it is past deciding.
    async fn decide(
        &mut self,
        id_prefix: &str,
        decision: Decision,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure>;

    /// Applies an approved repair, compare-and-set: afterwards it is `applied`, or `failed` when the row had changed.
    async fn apply(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure>;

    /// Proposes the inverse of a repair that was applied: the row as it was before. `Rejected` when the row has changed
    /// since, or when it was proposed before.
    async fn revert(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure>;

    /// Where the chain of the ledger ends: every step of a repair and every acknowledgement and close is sealed in it, in the
    /// transaction that takes it.
    async fn ledger_head(&mut self) -> Result<LedgerHead, Failure>;

    /// Proves the chain of the ledger from its first entry to its end, against the steps as they are stored. `Internal` names
    /// the first link that is broken.
    async fn prove_ledger(&mut self) -> Result<LedgerProof, Failure>;

    /// The newest runs, newest first.
    async fn runs(&mut self, limit: u32) -> Result<Vec<RunRow>, Failure>;

    /// One run with its report; `latest` is the newest that finished. An unknown or ambiguous prefix is `Rejected`.
    async fn run(&mut self, id_prefix: &str) -> Result<RunRow, Failure>;

    /// What there is of reports of runs that began before a time, and why some of them stay.
    async fn old_reports(&mut self, before: Instant) -> Result<OldReports, Failure>;

    /// Forgets at most so many of the oldest reports that [`OldReports::prunable`] counts, and notes at which runs. Lines of
    /// runs, commits, keys, breaks, repairs and the chain stay. Returns how many.
    async fn prune_runs(
        &mut self,
        before: Instant,
        at: Instant,
        limit: u32,
    ) -> Result<u64, Failure>;

    /// Every source that was ever read or held, by name.
    async fn known_sources(&mut self) -> Result<Vec<String>, Failure>;

    /// The generations of operations that are there, oldest first, and why each of them stays.
    async fn generations(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure>;

    /// Forgets every generation that nobody needs, for good, and opens another one where the open one is old enough. Keys,
    /// links, breaks, repairs and the ledger stay. Answers the generations as they were found; those without a reason to stay
    /// are gone. `Denied` where the role may not drop tables.
    async fn forget(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure>;

    /// Before when operations of a source may have been forgotten; `None` = none was.
    async fn horizon(&mut self, source: &str) -> Result<Option<Instant>, Failure>;

    /// Intents of the scope that claim money and are linked with nothing, but shared a key with operations that were forgotten:
    /// what there was to say of them has been said.
    async fn settled_intents(&mut self, scope: &str) -> Result<Vec<String>, Failure>;

    /// Those of the ids that were ever seen of a source, whether or not their operations are still there.
    async fn claimed(
        &mut self,
        source: &str,
        ids: &[&str],
    ) -> Result<Vec<ClaimedOperation>, Failure>;

    /// How fresh a source is.
    async fn freshness(&mut self, source: &str, as_of: Instant) -> Result<Freshness, Failure>;
}

/// A step of a repair that a channel is to be told of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairStep {
    /// The repair, in the state that it went into.
    pub repair: RepairDetail,
    /// The number of the step.
    pub event_no: i64,
    /// The step.
    pub event: Event,
}

/// A repair that this process carries over into a table of the company's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairClaim {
    /// The repair, claimed.
    pub repair: RepairDetail,
    /// Grows with every change of hands.
    pub epoch: i64,
    /// The run that holds it; empty = a person.
    pub run_id: String,
}

/// What belongs to the ends of a repair that is written along.
#[derive(Clone, Copy)]
pub struct AlongEnds<'a> {
    /// The break that it closes, as it stands then; `None` = the next run sees it in order.
    pub closes: Option<&'a Break>,
    /// See [`Commit::on_conflict`].
    pub on_conflict: &'a dyn Fn(&Repair, &str) -> Break,
}

/// How a claimed repair ended.
#[derive(Clone, Copy, Debug)]
pub enum Settlement<'a> {
    /// The table has it: the repair is `applied`, and our copy of the row follows.
    Written {
        /// The break that it closes, as it stands then; `None` = the next run sees it in order.
        closes: Option<&'a Break>,
    },
    /// The row had changed, or nobody can tell who changed it: the repair is `failed`.
    Conflict {
        /// The `repair_conflict` break of it.
        break_of_it: &'a Break,
    },
    /// It is known that nothing was written: the repair is `approved` again.
    NotWritten,
}

/// A store that hands repairs over to a table of the company's own. The claim is committed before anything is written there,
/// so that whoever comes after a process that died knows what has to be found out.
#[allow(
    async_fn_in_trait,
    reason = "one thread drives everything: no caller needs the futures to be Send"
)]
pub trait Outbox {
    /// Writes one slice like [`Store::commit`], and the repairs in it that are approved into the company's own table, in the
    /// same transaction. What could not be written for a reason that is not its own stays approved.
    async fn commit_along(
        &mut self,
        claim: &Claim,
        commit: &Commit<'_>,
        along: &mut dyn Along,
    ) -> Result<Receipt, Failure>;

    /// Writes an approved repair into the company's own table and into the ledger, in one transaction. A failure that is
    /// not about the repair leaves it as it was.
    async fn apply_along(
        &mut self,
        id: &str,
        run_id: &str,
        note: &Note<'_>,
        ends: &AlongEnds<'_>,
        along: &mut dyn Along,
    ) -> Result<RepairDetail, Failure>;

    /// Claims an approved repair, or a claimed one whose holder let its lease end. `Locked` while somebody else holds it,
    /// `Rejected` in any other state.
    async fn claim_repair(
        &mut self,
        id: &str,
        run_id: &str,
        note: &Note<'_>,
        ttl: Span,
    ) -> Result<RepairClaim, Failure>;

    /// Repairs of these sources that are claimed, by whoever and however long ago; no sources = of all.
    async fn claimed_repairs(&mut self, sources: &[&str]) -> Result<Vec<RepairDetail>, Failure>;

    /// Holds a claim for `ttl` more. `Locked` when it was taken over.
    async fn renew_repair(&mut self, claim: &RepairClaim, ttl: Span) -> Result<(), Failure>;

    /// Steps of repairs of these sources that a channel has not taken yet, in their order, at most so many. Told are the
    /// steps that somebody may act on: every state but planned, claimed and confirmed. A channel that is new hears of what
    /// happens from `now` on.
    async fn undelivered(
        &mut self,
        channel: &str,
        sources: &[&str],
        now: Instant,
        limit: u32,
    ) -> Result<Vec<RepairStep>, Failure>;

    /// A channel has taken a step.
    async fn delivered(
        &mut self,
        channel: &str,
        step: &RepairStep,
        run_id: &str,
        at: Instant,
    ) -> Result<(), Failure>;

    /// Records how it went, and gives the claim back. `Locked` when it was taken over; then nothing was recorded.
    async fn settle_repair(
        &mut self,
        claim: &RepairClaim,
        how: Settlement<'_>,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure>;
}
