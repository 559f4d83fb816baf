//! The store's promises in memory: maps and plain loops, no SQL and no thought of speed. What the engines answer is
//! compared with it, and not only with each other.
//!
//! Its clock stands still: a lease of a positive length lives for good, one of a negative length is over at once.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use paysweep::exit::{Exit, Failure};
use paysweep::model::answer::{Answer, Standing, Standings};
use paysweep::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, CloseAs};
use paysweep::model::intent::{Intent, IntentStatus, Intents};
use paysweep::model::operation::{Operation, OperationStatus, Operations};
use paysweep::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use paysweep::model::run::{Pin, Watermark};
use paysweep::model::stored::{ClaimedOperation, StoredIntents, StoredOperations};
use paysweep::model::verdict::Rule;
use paysweep::store::contract::{
    Begun, BreakDetail, BreakFilter, Carried, Claim, Commit, Counts, Decision, Event, Freshness,
    Generation, IntentChanges, IntentSelection, LedgerHead, LedgerProof, Note, OldReports,
    OperationSelection, Outcome, Receipt, RepairDetail, RepairFilter, Retention, RunEnd, RunRow,
    RunStart, Store, Unconfirmed,
};
use paysweep::time::{Instant, Span};

/// A store in memory.
#[derive(Default)]
pub(crate) struct ModelStore {
    memory: Memory,
}

#[derive(Clone, Default)]
struct Memory {
    /// By source, operation id and account; each a batch of one row.
    operations: BTreeMap<OperationKey, Operations>,
    /// By scope and intent id.
    intents: BTreeMap<(String, String), StoredIntent>,
    matches: Vec<Match>,
    breaks: BTreeMap<String, StoredBreak>,
    /// With their events; the state is that of the last one.
    repairs: BTreeMap<String, RepairDetail>,
    runs: BTreeMap<String, RunRow>,
    reports: BTreeMap<String, String>,
    keys: BTreeMap<String, Key>,
    commits: Vec<Committed>,
    leases: BTreeMap<String, Lease>,
    watermarks: BTreeMap<String, Watermark>,
    pins: BTreeMap<String, Pin>,
    /// Who started a run.
    starters: BTreeMap<String, String>,
    /// The generation of each operation that is there.
    lies_in: BTreeMap<OperationKey, i64>,
    /// Every operation that was ever seen.
    seen: BTreeSet<OperationKey>,
    /// Those that are closed and not dropped: number, opened, closed.
    closed: Vec<(i64, Instant, Instant)>,
    /// The open one: how many were opened before it, and when it was.
    open: (i64, Instant),
    horizons: BTreeMap<String, Instant>,
    /// By scope and intent id.
    settled: BTreeSet<(String, String)>,
}

/// Source, operation id and account.
type OperationKey = (String, String, String);

#[derive(Clone)]
struct StoredIntent {
    /// A batch of one row.
    row: Intents,
    imported_status: Option<IntentStatus>,
    imported_processor_ref: String,
    is_superseded: bool,
}

#[derive(Clone)]
struct Match {
    source: String,
    operation_id: String,
    account: String,
    scope: String,
    intent_id: String,
    rule: Rule,
    is_principal: bool,
}

#[derive(Clone)]
struct StoredBreak {
    item: Break,
    last_seen_run: String,
    last_seen_at: Instant,
    /// Empty = not resolved.
    resolved_run: String,
    events: BTreeMap<usize, Event>,
}

#[derive(Clone)]
struct Key {
    fingerprint: String,
    run_id: String,
    lease: Option<Span>,
    is_completed: bool,
}

#[derive(Clone)]
struct Committed {
    source: String,
    run_id: String,
    reported_by: String,
}

#[derive(Clone)]
struct Lease {
    epoch: i64,
    owner: Option<String>,
    run_id: String,
    ttl: Span,
}

fn no(exit: Exit) -> Failure {
    Failure::new(exit, "the model says no")
}

fn is_live(ttl: Span) -> bool {
    ttl >= Span::ZERO
}

/// The one whose id starts so.
fn only<'a>(ids: impl Iterator<Item = &'a String>, prefix: &str) -> Result<String, Failure> {
    let mut found: Vec<&String> = ids.filter(|id| id.starts_with(prefix)).collect();
    match (found.pop(), found.len()) {
        (Some(id), 0) => Ok(id.clone()),
        _ => Err(no(Exit::Rejected)),
    }
}

impl StoredBreak {
    fn closed_as(&self) -> Option<CloseAs> {
        let of_this =
            |event: &&Event| event.what == "closed" && event.evidence == self.item.evidence;
        self.events.values().rev().find(of_this)?.closed_as
    }

    fn as_of(&self, as_of: Instant) -> Break {
        let of_this =
            |event: &&Event| event.what == "acknowledged" && event.evidence == self.item.evidence;
        let until = self
            .events
            .values()
            .rev()
            .find(of_this)
            .and_then(|event| event.until);
        let acknowledged_until = until.filter(|until| *until > as_of);
        let state = if !self.resolved_run.is_empty() {
            BreakState::Resolved
        } else if self.closed_as().is_some() {
            BreakState::Closed
        } else if acknowledged_until.is_some() {
            BreakState::Acknowledged
        } else {
            BreakState::Open
        };
        Break {
            state,
            acknowledged_until,
            ..self.item.clone()
        }
    }

    fn next_event(&self) -> usize {
        1 + self.events.keys().last().copied().unwrap_or(0)
    }
}

/// Who writes, and when.
#[derive(Clone, Copy)]
struct Writing<'a> {
    scope: &'a str,
    run_id: &'a str,
    at: Instant,
}

const ROW_HAD_CHANGED: &str = "the row had changed since it was read; nothing was overwritten";

impl Memory {
    /// Why old reports stay, and the ones that nobody needs, oldest first.
    fn old_reports(&self, before: Instant) -> (OldReports, Vec<String>) {
        let began = |id: &String| self.runs.get(id).map(|run| (run.started_at, id.clone()));
        let mut reports: Vec<(Instant, String)> = self.reports.keys().filter_map(began).collect();
        reports.sort();
        let newest = reports.last().cloned();
        let (mut old, mut prunable) = (OldReports::default(), Vec::new());
        for (started_at, id) in &reports {
            if *started_at >= before {
                continue;
            }
            let is_untold = |it: &Committed| it.run_id == *id && it.reported_by.is_empty();
            let is_open = |it: &StoredBreak| {
                it.item.first_seen_run == *id
                    && it.resolved_run.is_empty()
                    && it.closed_as().is_none()
            };
            if self.commits.iter().any(is_untold) {
                old.untold += 1;
            } else if newest.as_ref().is_some_and(|(_, newest)| newest == id) {
                old.newest += 1;
            } else if self.breaks.values().any(is_open) {
                old.of_open_breaks += 1;
            } else {
                old.prunable_bytes += self.reports[id].len() as u64;
                prunable.push(id.clone());
            }
        }
        (old, prunable)
    }

    fn assert_ours(&self, claim: &Claim) -> Result<(), Failure> {
        match self.leases.get(&claim.source) {
            Some(lease) if lease.epoch == claim.epoch && lease.owner.is_some() => Ok(()),
            _ => Err(no(Exit::Locked)),
        }
    }

    // Operations and links.

    fn put_operation(&mut self, source: &str, row: &Operation<'_>, replaces: bool) {
        let key = (
            source.to_owned(),
            row.operation_id.to_owned(),
            row.account.to_owned(),
        );
        if self.seen.insert(key.clone()) || replaces {
            let open = self.open.0 + 1;
            self.lies_in.entry(key.clone()).or_insert(open);
            let mut rows = Operations::default();
            rows.push(&Operation { file: 0, ..*row });
            self.operations.insert(key, rows);
        }
    }

    /// Whether something that is open, pending or young hangs on one of these operations.
    fn is_held(&self, keys: &[OperationKey], floors: &[(String, Instant)]) -> bool {
        let is_closed = |it: &StoredBreak| {
            it.events
                .values()
                .any(|event| event.what == "closed" && event.evidence == it.item.evidence)
        };
        let open: Vec<&Break> = self
            .unresolved(&[])
            .filter(|it| !is_closed(it))
            .map(|it| &it.item)
            .collect();
        let is_in_break = |key: &OperationKey| {
            open.iter()
                .any(|it| (&it.source, &it.operation_id, &it.account) == (&key.0, &key.1, &key.2))
        };
        let is_pending =
            |row: &Operation<'_>| row.status == OperationStatus::Pending && row.ignore.is_none();
        let youngest = floors.iter().map(|it| it.1).min();
        let intents: Vec<Intent<'_>> = self
            .intents
            .values()
            .filter(|it| !it.is_superseded)
            .map(|it| it.row.get(0))
            .filter(|row| {
                matches!(row.status, IntentStatus::Created | IntentStatus::Pending)
                    || youngest.is_some_and(|floor| row.created_at >= floor)
                    || open.iter().any(|it| it.intent_id == row.intent_id)
            })
            .collect();
        let subjects: Vec<(&OperationKey, Operation<'_>)> = self
            .operations
            .iter()
            .map(|(key, rows)| (key, rows.get(0)))
            .filter(|(key, row)| {
                let floor = floors.iter().find(|it| it.0 == key.0);
                floor.is_some_and(|it| row.occurred_at >= it.1)
                    || is_pending(row)
                    || is_in_break(key)
            })
            .collect();
        let is_one = |left: &str, right: &str| !left.is_empty() && left == right;
        let intent_of = |key: &OperationKey| {
            self.match_of(&key.0, &key.1, &key.2)
                .map(|it| (it.scope.as_str(), it.intent_id.as_str()))
        };
        keys.iter().any(|key| {
            let row = self.operations[key].get(0);
            let linked = intent_of(key);
            let is_asked = intents.iter().any(|intent| {
                linked.is_some_and(|it| {
                    it.1 == intent.intent_id || is_one(it.1, intent.parent_intent_id)
                }) || [row.operation_id, row.object_id, row.parent_id]
                    .iter()
                    .any(|id| is_one(id, intent.processor_ref))
                    || [intent.reference, intent.idempotency_key, intent.intent_id]
                        .iter()
                        .any(|text| is_one(text, row.reference))
            });
            let is_tied = subjects.iter().any(|(other, it)| {
                let is_named = is_one(it.parent_id, row.operation_id)
                    || is_one(it.parent_id, row.object_id)
                    || is_one(row.parent_id, it.operation_id)
                    || is_one(it.object_id, row.operation_id)
                    || is_one(it.object_id, row.object_id)
                    || is_one(it.payout_id, row.payout_id)
                    || is_one(it.payout_id, row.operation_id)
                    || is_one(row.payout_id, it.operation_id);
                (other.0 == key.0 && is_named) || (linked.is_some() && intent_of(other) == linked)
            });
            is_pending(&row) || is_in_break(key) || is_asked || is_tied
        })
    }

    /// Intents that claim money, are linked with nothing, and share a key with one of these operations.
    fn settle(&mut self, keys: &[OperationKey]) {
        let is_one = |left: &str, right: &str| !left.is_empty() && left == right;
        let settled = self.intents.iter().filter(|((scope, id), it)| {
            let intent = it.row.get(0);
            let is_linked =
                (self.matches.iter()).any(|it| it.scope == *scope && it.intent_id == *id);
            let is_met = keys.iter().any(|key| {
                let row = self.operations[key].get(0);
                is_one(row.operation_id, intent.processor_ref)
                    || is_one(row.object_id, intent.processor_ref)
                    || [intent.reference, intent.idempotency_key, intent.intent_id]
                        .iter()
                        .any(|text| is_one(text, row.reference))
            });
            let claims = matches!(intent.status, IntentStatus::Succeeded | IntentStatus::Lost);
            claims && !it.is_superseded && !is_linked && is_met
        });
        let settled: Vec<(String, String)> = settled.map(|(key, _)| key.clone()).collect();
        self.settled.extend(settled);
    }

    fn keys_in(&self, generation: i64) -> Vec<OperationKey> {
        let there = self.lies_in.iter().filter(|(_, it)| **it == generation);
        there.map(|(key, _)| key.clone()).collect()
    }

    fn newest(
        &self,
        keys: &[OperationKey],
        closed_at: Option<Instant>,
    ) -> BTreeMap<String, Instant> {
        let mut newest: BTreeMap<String, Instant> = BTreeMap::new();
        for key in keys {
            let at = self.operations[key].get(0).occurred_at;
            let at = closed_at.map_or(at, |closed| at.min(closed.plus(Span::hours(24))));
            let known = newest.entry(key.0.clone()).or_insert(at);
            *known = at.max(*known);
        }
        newest
    }

    fn forget(&mut self, retention: &Retention<'_>, is_asked_only: bool) -> Vec<Generation> {
        let open = self.open.0 + 1;
        let is_due = self.open.1.plus(retention.open_for) <= retention.as_of;
        if !is_asked_only && is_due && !self.keys_in(open).is_empty() {
            self.closed.push((open, self.open.1, retention.as_of));
            self.open = (open, retention.as_of);
        }
        let (mut told, mut left) = (Vec::new(), Vec::new());
        for (number, opened_at, closed_at) in self.closed.clone() {
            let keys = self.keys_in(number);
            let newest = self.newest(&keys, Some(closed_at));
            let is_young = |(source, at): (&String, &Instant)| {
                let floor = retention.floors.iter().find(|it| it.0 == *source);
                *at >= retention.before || floor.is_some_and(|it| *at >= it.1)
            };
            let stays = !left.is_empty()
                || newest.iter().any(is_young)
                || self.is_held(&keys, retention.floors);
            told.push(Generation {
                number,
                opened_at,
                closed_at: Some(closed_at),
                operations: keys.len() as u64,
                newest: newest.values().copied().max(),
                stays: stays.then(String::new),
            });
            if stays {
                left.push((number, opened_at, closed_at));
            } else if !is_asked_only {
                self.settle(&keys);
                for key in keys {
                    self.operations.remove(&key);
                    self.lies_in.remove(&key);
                }
                for (source, at) in newest {
                    let at = Instant(at.0 + 1);
                    let known = self.horizons.entry(source).or_insert(at);
                    *known = at.max(*known);
                }
            }
        }
        if !is_asked_only {
            self.closed = left;
        }
        let keys = self.keys_in(self.open.0 + 1);
        told.push(Generation {
            number: self.open.0 + 1,
            opened_at: self.open.1,
            closed_at: None,
            operations: keys.len() as u64,
            newest: self.newest(&keys, None).values().copied().max(),
            stays: Some(String::new()),
        });
        told
    }

    fn match_of(&self, source: &str, operation_id: &str, account: &str) -> Option<&Match> {
        self.matches.iter().find(|it| {
            it.source == source && it.operation_id == operation_id && it.account == account
        })
    }

    /// An operation has one intent, and an intent one principal operation.
    fn add_match(&mut self, new: Match) {
        let has_operation = self
            .match_of(&new.source, &new.operation_id, &new.account)
            .is_some();
        let has_principal = self
            .matches
            .iter()
            .any(|it| it.is_principal && it.scope == new.scope && it.intent_id == new.intent_id);
        let is_taken = has_operation || (new.is_principal && has_principal);
        if !is_taken {
            self.matches.push(new);
        }
    }

    fn link(&mut self, source: &str, commit: &Commit<'_>) -> Result<(), Failure> {
        for link in commit.links {
            let row = commit.operations.get(link.operation);
            self.add_match(Match {
                source: source.to_owned(),
                operation_id: row.operation_id.to_owned(),
                account: row.account.to_owned(),
                scope: commit.scope.to_owned(),
                intent_id: link.intent_id.to_owned(),
                rule: link.rule,
                is_principal: link.is_principal,
            });
        }
        // What is not stored as it was wanted was somebody else's already.
        for link in commit.links {
            let row = commit.operations.get(link.operation);
            let stored = self.match_of(source, row.operation_id, row.account);
            if stored.is_none_or(|stored| stored.intent_id != link.intent_id) {
                return Err(no(Exit::Temporary));
            }
        }
        Ok(())
    }

    // Intents.

    fn intent(&mut self, scope: &str, id: &str) -> Option<&mut StoredIntent> {
        self.intents.get_mut(&(scope.to_owned(), id.to_owned()))
    }

    fn import(
        &mut self,
        writing: Writing<'_>,
        changes: &IntentChanges<'_>,
    ) -> Result<u64, Failure> {
        let mut count = 0;
        let fresh = |index: usize| {
            let mut row = Intents::default();
            row.push(&changes.rows.get(index));
            let imported = changes.imported_processor_ref[index];
            StoredIntent {
                row,
                imported_status: changes.imported_status[index],
                imported_processor_ref: changes.rows.text.get(imported).to_owned(),
                is_superseded: false,
            }
        };
        let id = |index: usize| changes.rows.get(index).intent_id.to_owned();
        for &index in changes.new {
            if self.intent(writing.scope, &id(index)).is_none() {
                let key = (writing.scope.to_owned(), id(index));
                self.intents.insert(key, fresh(index));
                count += 1;
            }
        }
        for &index in changes.changed {
            let new = fresh(index);
            if let Some(stored) = self.intent(writing.scope, &id(index)) {
                let is_next = stored.row.get(0).version + 1 == new.row.get(0).version;
                if stored.is_superseded || !is_next {
                    return Err(no(Exit::Temporary));
                }
            }
            self.intents
                .insert((writing.scope.to_owned(), id(index)), new);
            count += 1;
        }
        for &index in changes.touched {
            let new = fresh(index);
            match self.intent(writing.scope, &id(index)) {
                Some(stored) => {
                    stored.imported_status = new.imported_status;
                    stored.imported_processor_ref = new.imported_processor_ref;
                }
                None => {
                    self.intents
                        .insert((writing.scope.to_owned(), id(index)), new);
                }
            }
        }
        for (recorded, imported) in changes.superseded {
            self.supersede(writing.scope, recorded, imported);
        }
        self.confirm(writing, changes.confirmed.iter().map(String::as_str));
        self.confirm(
            writing,
            changes
                .superseded
                .iter()
                .map(|(recorded, _)| recorded.as_str()),
        );
        Ok(count)
    }

    fn supersede(&mut self, scope: &str, recorded: &str, imported: &str) {
        if let Some(stored) = self.intent(scope, recorded) {
            let row = stored.row.get(0);
            if row.is_recorded && !stored.is_superseded {
                let next = Intent {
                    version: row.version + 1,
                    ..row
                };
                let mut rows = Intents::default();
                rows.push(&next);
                stored.row = rows;
                stored.is_superseded = true;
            }
        }
        let has_principal = self
            .matches
            .iter()
            .any(|it| it.is_principal && it.scope == scope && it.intent_id == imported);
        for it in &mut self.matches {
            if it.scope == scope && it.intent_id == recorded {
                it.intent_id = imported.to_owned();
                it.is_principal = it.is_principal && !has_principal;
            }
        }
    }

    /// Sets status and reference of a row that is still of the version that was read.
    fn set(&mut self, scope: &str, repair: &Repair) -> bool {
        let Some(stored) = self.intent(scope, &repair.intent_id) else {
            return false;
        };
        let row = stored.row.get(0);
        if stored.is_superseded || row.version != repair.planned_version {
            return false;
        }
        let next = Intent {
            status: repair.to.status,
            processor_ref: &repair.to.processor_ref,
            version: row.version + 1,
            ..row
        };
        let mut rows = Intents::default();
        rows.push(&next);
        stored.row = rows;
        true
    }

    fn record(&mut self, scope: &str, repair: &Repair) -> Result<bool, Failure> {
        let (Some(kind), Some(money)) = (repair.to.kind, repair.to.money) else {
            return Err(no(Exit::Internal));
        };
        if self.intent(scope, &repair.intent_id).is_some() {
            return Ok(false);
        }
        let mut row = Intents::default();
        row.push(&Intent {
            intent_id: &repair.intent_id,
            kind,
            amount_minor: money.minor,
            currency: money.currency,
            status: repair.to.status,
            created_at: repair.occurred_at,
            processor_ref: &repair.to.processor_ref,
            parent_intent_id: &repair.to.parent_intent_id,
            source: &repair.source,
            is_recorded: true,
            version: 1,
            ..Intent::EMPTY
        });
        let recorded = StoredIntent {
            row,
            imported_status: None,
            imported_processor_ref: String::new(),
            is_superseded: false,
        };
        self.intents
            .insert((scope.to_owned(), repair.intent_id.clone()), recorded);
        self.add_match(Match {
            source: repair.source.clone(),
            operation_id: repair.operation_id.clone(),
            account: repair.account.clone(),
            scope: scope.to_owned(),
            intent_id: repair.intent_id.clone(),
            rule: if repair.to.processor_ref.is_empty() {
                Rule::Parent
            } else {
                Rule::ProcessorRef
            },
            is_principal: true,
        });
        Ok(true)
    }

    // Repairs.

    fn step(
        &mut self,
        id: &str,
        state: RepairState,
        at: Instant,
        by: &str,
        run_id: &str,
        note: &str,
    ) {
        let detail = self.repairs.get_mut(id).expect("a repair of the ledger");
        if detail.events.is_empty() {
            note.clone_into(&mut detail.item.note);
        }
        detail.item.state = state;
        detail.events.push(Event {
            what: state.as_str().to_owned(),
            at,
            by: by.to_owned(),
            run_id: run_id.to_owned(),
            note: note.to_owned(),
            closed_as: None,
            until: None,
            evidence: String::new(),
        });
    }

    /// A repair with who is answerable for it.
    fn with_author(&self, id: &str) -> RepairDetail {
        let found = self.repairs[id].clone();
        let by = found.events.first().map_or("", |event| event.by.as_str());
        let starter = self.starters.get(&found.run_id).cloned();
        RepairDetail {
            proposed_by: if by.is_empty() {
                starter.unwrap_or_default()
            } else {
                by.to_owned()
            },
            ..found
        }
    }

    fn revert(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        let id = only(self.repairs.keys(), id_prefix)?;
        let found = self.repairs[&id].clone();
        if ![RepairState::Applied, RepairState::Confirmed].contains(&found.item.state) {
            return Err(no(Exit::Rejected));
        }
        let left = found.item.to.clone();
        let stands = self.intent(&found.scope, &found.item.intent_id);
        let row = stands.filter(|it| !it.is_superseded).map(|it| {
            let row = it.row.get(0);
            (row.status, row.processor_ref.to_owned(), row.version)
        });
        let version = match row {
            Some((status, reference, version))
                if status == left.status && reference == left.processor_ref =>
            {
                version
            }
            _ => return Err(no(Exit::Rejected)),
        };
        let side = |status, processor_ref: &str| RepairSide {
            kind: None,
            status,
            processor_ref: processor_ref.to_owned(),
            parent_intent_id: String::new(),
            money: None,
        };
        let inverse = paysweep::reconcile::fingerprint(&["inverse", &id, &version.to_string()]);
        if self.repairs.contains_key(&inverse) {
            return Err(no(Exit::Rejected));
        }
        let to = match &found.item.from {
            Some(before) => side(before.status, &before.processor_ref),
            None => side(IntentStatus::Canceled, &left.processor_ref),
        };
        let action = match found.item.action {
            RepairAction::Link => RepairAction::Link,
            _ => RepairAction::SetStatus,
        };
        let written = RepairDetail {
            item: Repair {
                id: inverse.clone(),
                action,
                from: Some(side(left.status, &left.processor_ref)),
                to,
                planned_version: version,
                ..found.item
            },
            run_id: String::new(),
            written_at: note.at,
            events: Vec::new(),
            ..found
        };
        self.repairs.insert(inverse.clone(), written);
        let said = format!("takes back {id}: {}", note.reason);
        self.step(&inverse, RepairState::Proposed, note.at, note.by, "", &said);
        Ok(self.with_author(&inverse))
    }

    /// Moves repairs on that are in one of these states.
    fn move_on(
        &mut self,
        writing: Writing<'_>,
        from: &[RepairState],
        to: RepairState,
        note: &str,
        which: impl Fn(&RepairDetail) -> bool,
    ) {
        let ids: Vec<String> = self
            .repairs
            .values()
            // One without a step is being written just now.
            .filter(|it| !it.events.is_empty() && from.contains(&it.item.state) && which(it))
            .map(|it| it.item.id.clone())
            .collect();
        for id in ids {
            self.step(&id, to, writing.at, "", writing.run_id, note);
        }
    }

    fn confirm<'a>(&mut self, writing: Writing<'_>, intents: impl Iterator<Item = &'a str>) {
        let intents: HashSet<&str> = intents.collect();
        let note = "an import shows the same";
        self.move_on(
            writing,
            &[RepairState::Applied],
            RepairState::Confirmed,
            note,
            |it| it.scope == writing.scope && intents.contains(it.item.intent_id.as_str()),
        );
    }

    /// Does what repairs say; the answer says which of them found their row changed.
    fn carry_out(&mut self, scope: &str, repairs: &[&Repair]) -> Result<HashSet<String>, Failure> {
        let mut failed = HashSet::new();
        let mut taken: HashSet<&str> = HashSet::new();
        let mut to_set = Vec::new();
        for repair in repairs {
            let is_done = match repair.action {
                RepairAction::SetStatus | RepairAction::Link => {
                    let is_first = taken.insert(&repair.intent_id);
                    if is_first {
                        to_set.push(repair);
                    }
                    is_first
                }
                RepairAction::Redrive => unreachable!("it is only proposed"),
                RepairAction::RecordRefund | RepairAction::RecordDispute => {
                    self.record(scope, repair)?
                }
            };
            if !is_done {
                failed.insert(repair.id.clone());
            }
        }
        for repair in to_set {
            if !self.set(scope, repair) {
                failed.insert(repair.id.clone());
            }
        }
        Ok(failed)
    }

    fn write_repairs(
        &mut self,
        writing: Writing<'_>,
        commit: &Commit<'_>,
    ) -> Result<Receipt, Failure> {
        let mut receipt = Receipt::nothing_written();
        let mut moving: Vec<&Repair> = Vec::new();
        let mut is_moving = vec![false; commit.repairs.len()];
        for (at, repair) in commit.repairs.iter().enumerate() {
            let present = self.repairs.get(&repair.id).map(|it| it.item.state);
            let moves = match (present, repair.state) {
                (None, RepairState::Proposed | RepairState::Approved | RepairState::Applied)
                | (Some(RepairState::Proposed), RepairState::Approved)
                | (Some(RepairState::Proposed | RepairState::Approved), RepairState::Applied) => {
                    true
                }
                (Some(_), RepairState::Proposed | RepairState::Approved | RepairState::Applied) => {
                    false
                }
                _ => return Err(no(Exit::Internal)),
            };
            if moves && moving.iter().all(|it| it.id != repair.id) {
                moving.push(repair);
                is_moving[at] = true;
            }
        }
        for repair in &moving {
            let evidence = commit
                .breaks
                .iter()
                .rev()
                .find(|it| it.id == repair.break_id);
            let from = repair.from.as_ref().map(|side| RepairSide {
                kind: None,
                status: side.status,
                processor_ref: side.processor_ref.clone(),
                parent_intent_id: String::new(),
                money: None,
            });
            self.repairs
                .entry(repair.id.clone())
                .or_insert_with(|| RepairDetail {
                    item: Repair {
                        from,
                        ..(*repair).clone()
                    },
                    scope: writing.scope.to_owned(),
                    run_id: writing.run_id.to_owned(),
                    written_at: writing.at,
                    evidence: evidence.map_or_else(String::new, |it| it.evidence.clone()),
                    proposed_by: String::new(),
                    events: Vec::new(),
                });
        }
        let note = "a newer repair took its place";
        let open = [RepairState::Proposed, RepairState::Approved];
        self.move_on(writing, &open, RepairState::Superseded, note, |it| {
            moving.iter().any(|new| new.break_id == it.item.break_id)
                && moving.iter().all(|new| new.id != it.item.id)
        });
        let to_apply: Vec<&Repair> = moving
            .iter()
            .copied()
            .filter(|repair| repair.state == RepairState::Applied)
            .collect();
        let failed = self.carry_out(writing.scope, &to_apply)?;
        for repair in &moving {
            let (state, note) = if failed.contains(&repair.id) {
                (RepairState::Failed, ROW_HAD_CHANGED)
            } else {
                (repair.state, repair.note.as_str())
            };
            self.step(&repair.id, state, writing.at, "", writing.run_id, note);
        }
        for (repair, is_moving) in commit.repairs.iter().zip(is_moving) {
            if !is_moving {
                receipt.held.push(repair.id.clone());
                continue;
            }
            receipt.repairs_written.push(repair.id.clone());
            if failed.contains(&repair.id) {
                receipt.conflicts.push(repair.id.clone());
                receipt
                    .conflict_breaks
                    .push((commit.on_conflict)(repair, ""));
            }
        }
        Ok(receipt)
    }

    fn filtered(&self, filter: &RepairFilter<'_>) -> Vec<RepairDetail> {
        let mut found: Vec<RepairDetail> = self
            .repairs
            .values()
            .filter(|it| {
                let item = &it.item;
                (filter.sources.is_empty() || filter.sources.contains(&item.source.as_str()))
                    && (filter.break_id.is_empty() || filter.break_id == item.break_id)
                    && (filter.run_id.is_empty() || filter.run_id == it.run_id)
                    && (filter.states.is_empty() || filter.states.contains(&item.state))
                    && item.id.starts_with(filter.id_prefix)
            })
            .map(|it| RepairDetail {
                events: Vec::new(),
                ..it.clone()
            })
            .collect();
        found.sort_by(|a, b| (a.written_at, &a.item.id).cmp(&(b.written_at, &b.item.id)));
        found
    }

    // Breaks.

    fn put_breaks(
        &mut self,
        run_id: &str,
        at: Instant,
        breaks: &[Break],
        repaired: &HashSet<&str>,
    ) {
        let before = self.breaks.clone();
        for item in breaks {
            let is_repaired = repaired.contains(item.id.as_str());
            let is_closed =
                is_repaired && item.disposition == BreakDisposition::Repaired && !item.is_sticky;
            let known = before.get(&item.id);
            let mut told: Vec<(&str, String)> = Vec::new();
            match known {
                Some(known) if !known.resolved_run.is_empty() => {
                    let first = &known.item;
                    told.push((
                        "reopened",
                        format!(
                            "was first seen at {} in run {}",
                            first.first_seen_at, first.first_seen_run
                        ),
                    ));
                }
                Some(known) if known.item.evidence != item.evidence => {
                    told.push(("changed", item.why.clone()));
                }
                _ => {}
            }
            if is_closed {
                told.push(("resolved", "closed by its repair".to_owned()));
            }
            let (first_seen_run, first_seen_at) = match known {
                Some(known) if known.resolved_run.is_empty() => {
                    (known.item.first_seen_run.clone(), known.item.first_seen_at)
                }
                _ => (run_id.to_owned(), at),
            };
            let mut events = self
                .breaks
                .get(&item.id)
                .map_or_else(BTreeMap::new, |it| it.events.clone());
            let first_no = known.map_or(1, StoredBreak::next_event);
            for (no, (what, note)) in (first_no..).zip(told) {
                events.entry(no).or_insert_with(|| Event {
                    what: what.to_owned(),
                    at,
                    by: String::new(),
                    run_id: run_id.to_owned(),
                    note,
                    closed_as: None,
                    until: None,
                    evidence: item.evidence.clone(),
                });
            }
            let stored = StoredBreak {
                item: Break {
                    disposition: if is_repaired {
                        item.disposition
                    } else {
                        BreakDisposition::Review
                    },
                    first_seen_run,
                    first_seen_at,
                    ..item.clone()
                },
                last_seen_run: run_id.to_owned(),
                last_seen_at: at,
                resolved_run: if is_closed { run_id } else { "" }.to_owned(),
                events,
            };
            self.breaks.insert(item.id.clone(), stored);
        }
    }

    fn resolve(&mut self, run_id: &str, at: Instant, ids: &[String]) {
        for id in ids {
            let Some(stored) = self.breaks.get_mut(id) else {
                continue;
            };
            if !stored.resolved_run.is_empty() {
                continue;
            }
            let event = Event {
                what: "resolved".to_owned(),
                at,
                by: String::new(),
                run_id: run_id.to_owned(),
                note: "seen in order".to_owned(),
                closed_as: None,
                until: None,
                evidence: stored.item.evidence.clone(),
            };
            stored.events.insert(stored.next_event(), event);
            stored.resolved_run = run_id.to_owned();
            stored.item.disposition = BreakDisposition::Review;
        }
    }

    fn unresolved(&self, sources: &[&str]) -> impl Iterator<Item = &StoredBreak> {
        self.breaks.values().filter(move |it| {
            it.resolved_run.is_empty()
                && (sources.is_empty() || sources.contains(&it.item.source.as_str()))
        })
    }

    fn say(
        &mut self,
        prefix: &str,
        note: &Note<'_>,
        what: &str,
        closed_as: Option<CloseAs>,
        until: Option<Instant>,
    ) -> Result<Break, Failure> {
        let id = only(self.breaks.keys(), prefix)?;
        let stored = self.breaks.get_mut(&id).expect("it was found");
        let state = stored.as_of(note.at).state;
        let is_over = matches!(state, BreakState::Closed | BreakState::Resolved);
        if is_over || until.is_some_and(|until| until <= note.at) {
            return Err(no(Exit::Rejected));
        }
        let event = Event {
            what: what.to_owned(),
            at: note.at,
            by: note.by.to_owned(),
            run_id: String::new(),
            note: note.reason.to_owned(),
            closed_as,
            until,
            evidence: stored.item.evidence.clone(),
        };
        stored.events.insert(stored.next_event(), event);
        Ok(stored.as_of(note.at))
    }

    // The commit.

    fn commit(&mut self, claim: &Claim, commit: &Commit<'_>) -> Result<Receipt, Failure> {
        let is_known = |it: &Committed| it.source == claim.source && it.run_id == commit.run_id;
        if self.commits.iter().any(is_known) {
            return Ok(self.committed_before(claim, commit));
        }
        self.commits.push(Committed {
            source: claim.source.clone(),
            run_id: commit.run_id.to_owned(),
            reported_by: String::new(),
        });
        self.assert_ours(claim)?;
        let found = self.watermarks.get(&claim.source).map(|it| it.hi);
        if found != commit.expected_watermark {
            return Err(no(Exit::Locked));
        }
        let writing = Writing {
            scope: commit.scope,
            run_id: commit.run_id,
            at: commit.as_of,
        };
        for &index in commit.new_operations {
            self.put_operation(&claim.source, &commit.operations.get(index), false);
        }
        for &index in commit.updated_operations {
            self.put_operation(&claim.source, &commit.operations.get(index), true);
        }
        if let Some(changes) = &commit.intents {
            self.import(writing, changes)?;
        }
        self.link(&claim.source, commit)?;
        let receipt = self.write_repairs(writing, commit)?;
        let is_done = |repair: &Repair| {
            repair.state == RepairState::Applied
                && !receipt.held.contains(&repair.id)
                && !receipt.conflicts.contains(&repair.id)
        };
        // Breaks that have repairs, all of them applied.
        let repaired: HashSet<&str> = commit
            .repairs
            .iter()
            .map(|repair| repair.break_id.as_str())
            .filter(|id| {
                let of_it = |repair: &&Repair| repair.break_id == *id;
                commit.repairs.iter().filter(of_it).all(is_done)
            })
            .collect();
        self.put_breaks(commit.run_id, commit.as_of, commit.breaks, &repaired);
        self.put_breaks(
            commit.run_id,
            commit.as_of,
            &receipt.conflict_breaks,
            &HashSet::new(),
        );
        self.resolve(commit.run_id, commit.as_of, commit.resolved);
        let open = [RepairState::Proposed, RepairState::Approved];
        let note = "its break was resolved";
        self.move_on(writing, &open, RepairState::Superseded, note, |it| {
            commit.resolved.contains(&it.item.break_id)
        });
        if let Some(pin) = commit.pin {
            self.pins.insert(claim.source.clone(), pin.clone());
        }
        if let Some(to) = commit.advance_to {
            let mut next = to.clone();
            if let Some(before) = self.watermarks.get(&claim.source) {
                next.hi = next.hi.max(before.hi);
                next.as_of = next.as_of.max(before.as_of);
            }
            self.watermarks.insert(claim.source.clone(), next);
        }
        Ok(receipt)
    }

    fn committed_before(&self, claim: &Claim, commit: &Commit<'_>) -> Receipt {
        let written = self.filtered(&RepairFilter {
            sources: &[&claim.source],
            run_id: commit.run_id,
            ..RepairFilter::default()
        });
        let is_conflict = |it: &&StoredBreak| {
            it.item.class == BreakClass::RepairConflict && it.item.first_seen_run == commit.run_id
        };
        Receipt {
            outcome: Outcome::AlreadyCommitted,
            conflicts: written
                .iter()
                .filter(|it| it.item.state == RepairState::Failed)
                .map(|it| it.item.id.clone())
                .collect(),
            applied: written
                .iter()
                .filter(|it| it.item.state == RepairState::Applied)
                .map(|it| it.item.id.clone())
                .collect(),
            repairs_written: written.into_iter().map(|it| it.item.id).collect(),
            held: Vec::new(),
            conflict_breaks: self
                .unresolved(&[&claim.source])
                .filter(is_conflict)
                .map(|it| it.as_of(commit.as_of))
                .collect(),
        }
    }
}

impl ModelStore {
    /// All of it, or nothing.
    fn write<T>(
        &mut self,
        work: impl FnOnce(&mut Memory) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let mut memory = self.memory.clone();
        let done = work(&mut memory)?;
        self.memory = memory;
        Ok(done)
    }
}

impl Store for ModelStore {
    async fn begin(&mut self, start: &RunStart<'_>) -> Result<Begun, Failure> {
        self.write(|memory| {
            if let Some(wanted) = start.run_key {
                if let Some(key) = memory.keys.get(wanted.key) {
                    if key.fingerprint != wanted.fingerprint {
                        return Err(no(Exit::Rejected));
                    }
                    if key.is_completed {
                        let run = memory.runs.get(&key.run_id);
                        let code = run.and_then(|run| run.exit_code);
                        return Ok(Begun::Done {
                            run_id: key.run_id.clone(),
                            exit_code: code.unwrap_or(Exit::Internal.code()),
                            report_json: memory.reports.get(&key.run_id).cloned(),
                        });
                    }
                    if key.lease.is_some_and(is_live) && key.run_id != start.run_id {
                        return Err(no(Exit::Locked));
                    }
                }
                let key = Key {
                    fingerprint: wanted.fingerprint.to_owned(),
                    run_id: start.run_id.to_owned(),
                    lease: Some(start.ttl),
                    is_completed: false,
                };
                memory.keys.insert(wanted.key.to_owned(), key);
            }
            memory
                .runs
                .entry(start.run_id.to_owned())
                .or_insert_with(|| RunRow {
                    run_id: start.run_id.to_owned(),
                    command: start.command.to_owned(),
                    sources: start.sources.to_vec(),
                    as_of: start.as_of,
                    started_at: start.started_at,
                    finished_at: None,
                    version: start.version.to_owned(),
                    exit_code: None,
                    outcome: String::new(),
                    report_json: None,
                    report_pruned_at: None,
                });
            memory
                .starters
                .entry(start.run_id.to_owned())
                .or_insert_with(|| start.started_by.to_owned());
            Ok(Begun::New)
        })
    }

    async fn claim(
        &mut self,
        source: &str,
        run_id: &str,
        owner: &str,
        ttl: Span,
    ) -> Result<Claim, Failure> {
        let known = self.memory.leases.get(source);
        let mut epoch = known.map_or(1, |lease| lease.epoch + 1);
        if let Some(lease) = known.filter(|lease| lease.owner.is_some() && is_live(lease.ttl)) {
            if lease.run_id != run_id || lease.owner.as_deref() != Some(owner) {
                let who = &lease.run_id;
                let what = format!("source {source} is held by run {who} until 2999");
                return Err(Failure::new(Exit::Locked, what));
            }
            epoch = lease.epoch;
        } else {
            let lease = Lease {
                epoch,
                owner: Some(owner.to_owned()),
                run_id: run_id.to_owned(),
                ttl,
            };
            self.memory.leases.insert(source.to_owned(), lease);
        }
        Ok(Claim {
            source: source.to_owned(),
            epoch,
            run_id: run_id.to_owned(),
        })
    }

    async fn renew(&mut self, claim: &Claim, ttl: Span) -> Result<(), Failure> {
        self.memory.assert_ours(claim)?;
        if let Some(lease) = self.memory.leases.get_mut(&claim.source) {
            lease.ttl = ttl;
        }
        for key in self.memory.keys.values_mut() {
            if key.run_id == claim.run_id && key.lease.is_some() {
                key.lease = Some(ttl);
            }
        }
        Ok(())
    }

    async fn release(&mut self, claim: &Claim) -> Result<(), Failure> {
        if let Some(lease) = self.memory.leases.get_mut(&claim.source)
            && lease.epoch == claim.epoch
        {
            lease.owner = None;
        }
        Ok(())
    }

    async fn watermark(&mut self, source: &str) -> Result<Option<Watermark>, Failure> {
        Ok(self.memory.watermarks.get(source).cloned())
    }

    async fn set_watermark(
        &mut self,
        claim: &Claim,
        to: &Watermark,
        note: &Note<'_>,
        gap: Option<&Break>,
    ) -> Result<(), Failure> {
        self.write(|memory| {
            memory.assert_ours(claim)?;
            memory.watermarks.insert(claim.source.clone(), to.clone());
            if let Some(gap) = gap {
                let gap = std::slice::from_ref(gap);
                memory.put_breaks(&claim.run_id, note.at, gap, &HashSet::new());
            }
            Ok(())
        })
    }

    async fn pin(&mut self, source: &str) -> Result<Option<Pin>, Failure> {
        Ok(self.memory.pins.get(source).cloned())
    }

    async fn unpin(&mut self, claim: &Claim, _note: &Note<'_>) -> Result<Option<Pin>, Failure> {
        self.memory.assert_ours(claim)?;
        Ok(self.memory.pins.remove(&claim.source))
    }

    async fn counts(&mut self, source: &str, scope: &str) -> Result<Counts, Failure> {
        let operations = self.memory.operations.keys().filter(|key| key.0 == source);
        let intents = self.memory.intents.iter();
        let in_force = intents.filter(|(key, it)| key.0 == scope && !it.is_superseded);
        Ok(Counts {
            operations: operations.count() as u64,
            intents: in_force.count() as u64,
        })
    }

    async fn operations(
        &mut self,
        source: &str,
        selection: OperationSelection<'_>,
    ) -> Result<StoredOperations, Failure> {
        let memory = &self.memory;
        let mut found = StoredOperations::default();
        for (key, stored) in memory.operations.iter().filter(|(key, _)| key.0 == source) {
            let row = stored.get(0);
            let linked = memory.match_of(source, &key.1, &key.2);
            let is_one = |text: &str, keys: &[&str]| !text.is_empty() && keys.contains(&text);
            let is_wanted = match selection {
                OperationSelection::All => true,
                OperationSelection::Since(from) => {
                    row.occurred_at >= from
                        || row.status == OperationStatus::Pending
                        || memory.unresolved(&[source]).any(|it| {
                            it.item.operation_id == row.operation_id
                                && it.item.account == row.account
                        })
                }
                OperationSelection::Keys(keys) => {
                    [
                        row.operation_id,
                        row.reference,
                        row.parent_id,
                        row.object_id,
                    ]
                    .iter()
                    .any(|text| is_one(text, keys))
                        || linked.is_some_and(|it| is_one(&it.intent_id, keys))
                }
                OperationSelection::Payouts(keys) => {
                    is_one(row.payout_id, keys) || is_one(row.operation_id, keys)
                }
            };
            if is_wanted {
                found.rows.push(&row);
                let intent = linked.map_or("", |it| it.intent_id.as_str());
                let intent = found.rows.text.push(intent);
                found.linked_intent.push(intent);
                found.linked_rule.push(linked.map(|it| it.rule));
            }
        }
        Ok(found)
    }

    async fn intents(
        &mut self,
        scope: &str,
        seen_from: &str,
        selection: IntentSelection<'_>,
    ) -> Result<StoredIntents, Failure> {
        let memory = &self.memory;
        let mut found = StoredIntents::default();
        let in_force =
            |(key, it): &(&(String, String), &StoredIntent)| key.0 == scope && !it.is_superseded;
        for (_, stored) in memory.intents.iter().filter(in_force) {
            let row = stored.row.get(0);
            let of_it = |it: &&Match| it.scope == scope && it.intent_id == row.intent_id;
            let is_one = |text: &str, keys: &[&str]| !text.is_empty() && keys.contains(&text);
            let is_wanted = match selection {
                IntentSelection::All => true,
                IntentSelection::Since(from) => {
                    let is_open =
                        matches!(row.status, IntentStatus::Created | IntentStatus::Pending);
                    let claims = matches!(row.status, IntentStatus::Succeeded | IntentStatus::Lost);
                    row.created_at >= from
                        || is_open
                        || (claims && !memory.matches.iter().any(|it| of_it(&it)))
                        || memory
                            .unresolved(&[])
                            .any(|it| it.item.intent_id == row.intent_id)
                }
                IntentSelection::Keys(keys) => [
                    row.intent_id,
                    row.idempotency_key,
                    row.reference,
                    row.processor_ref,
                    row.parent_intent_id,
                ]
                .iter()
                .any(|text| is_one(text, keys)),
                IntentSelection::Ids(keys) => keys.contains(&row.intent_id),
            };
            if !is_wanted {
                continue;
            }
            let (mut is_here, mut is_forgotten) = (false, false);
            let mut elsewhere = None::<Standings>;
            for it in memory.matches.iter().filter(of_it) {
                let key = (
                    it.source.clone(),
                    it.operation_id.clone(),
                    it.account.clone(),
                );
                if it.source == seen_from {
                    is_here = true;
                } else if let Some(operation) = memory.operations.get(&key) {
                    elsewhere.get_or_insert_default().add(&operation.get(0));
                } else {
                    is_forgotten = true;
                }
            }
            found.answer.push(match elsewhere {
                _ if is_forgotten => Answer::Elsewhere(Standing::settled(row.status)),
                Some(standings) => Answer::Elsewhere(standings.standing(row.kind)),
                None if is_here => Answer::Here,
                None => Answer::Nobody,
            });
            found.rows.push(&row);
            let text = &mut found.rows.text;
            let imported_ref = text.push(&stored.imported_processor_ref);
            found.imported_status.push(stored.imported_status);
            found.imported_processor_ref.push(imported_ref);
        }
        Ok(found)
    }

    async fn open_breaks(
        &mut self,
        sources: &[&str],
        as_of: Instant,
    ) -> Result<Vec<Break>, Failure> {
        let open = self.memory.unresolved(sources);
        Ok(open.map(|it| it.as_of(as_of)).collect())
    }

    async fn commit(&mut self, claim: &Claim, commit: &Commit<'_>) -> Result<Receipt, Failure> {
        self.write(|memory| memory.commit(claim, commit))
    }

    async fn is_committed(&mut self, run_id: &str, source: &str) -> Result<bool, Failure> {
        let mut commits = self.memory.commits.iter();
        Ok(commits.any(|it| it.run_id == run_id && it.source == source))
    }

    async fn import_intents(
        &mut self,
        scope: &str,
        run_id: &str,
        at: Instant,
        changes: &IntentChanges<'_>,
    ) -> Result<u64, Failure> {
        self.write(|memory| memory.import(Writing { scope, run_id, at }, changes))
    }

    async fn carried(&mut self, sources: &[&str], as_of: Instant) -> Result<Carried, Failure> {
        let memory = &self.memory;
        let untold = memory
            .commits
            .iter()
            .filter(|it| it.reported_by.is_empty() && sources.contains(&it.source.as_str()));
        let runs: BTreeSet<String> = untold.map(|it| it.run_id.clone()).collect();
        let breaks = memory.breaks.values().filter(|it| {
            runs.contains(&it.resolved_run)
                && sources.contains(&it.item.source.as_str())
                && it.item.disposition == BreakDisposition::Repaired
        });
        let repairs = runs.iter().flat_map(|run_id| {
            memory.filtered(&RepairFilter {
                sources,
                run_id,
                ..RepairFilter::default()
            })
        });
        Ok(Carried {
            breaks: breaks.map(|it| it.as_of(as_of)).collect(),
            repairs: repairs.map(|it| it.item).collect(),
            runs: runs.iter().cloned().collect(),
        })
    }

    async fn mark_reported(
        &mut self,
        run_ids: &[&str],
        sources: &[&str],
        by: &str,
    ) -> Result<(), Failure> {
        for it in &mut self.memory.commits {
            if it.reported_by.is_empty()
                && run_ids.contains(&it.run_id.as_str())
                && sources.contains(&it.source.as_str())
            {
                it.reported_by = by.to_owned();
            }
        }
        Ok(())
    }

    async fn finish_run(&mut self, end: &RunEnd<'_>) -> Result<(), Failure> {
        let memory = &mut self.memory;
        if let Some(run) = memory.runs.get_mut(end.run_id) {
            run.finished_at = Some(end.finished_at);
            run.exit_code = Some(end.exit_code);
            run.outcome = end.outcome.to_owned();
        }
        if let Some(report) = end.report_json {
            memory
                .reports
                .insert(end.run_id.to_owned(), report.to_owned());
        }
        for key in memory
            .keys
            .values_mut()
            .filter(|key| key.run_id == end.run_id)
        {
            key.lease = None;
            key.is_completed = end.is_completed;
        }
        Ok(())
    }

    async fn unconfirmed(&mut self, scope: &str) -> Result<Unconfirmed, Failure> {
        let applied: Vec<&RepairDetail> = self
            .memory
            .repairs
            .values()
            .filter(|it| it.scope == scope && it.item.state == RepairState::Applied)
            .collect();
        Ok(Unconfirmed {
            count: applied.len() as u64,
            oldest_at: applied
                .iter()
                .filter_map(|it| Some(it.events.last()?.at))
                .min(),
        })
    }

    async fn breaks(&mut self, filter: &BreakFilter<'_>) -> Result<Vec<Break>, Failure> {
        let is_asked = |item: &Break| {
            let is_state = if filter.states.is_empty() {
                item.state != BreakState::Resolved
            } else {
                filter.states.contains(&item.state)
            };
            is_state
                && (filter.sources.is_empty() || filter.sources.contains(&item.source.as_str()))
                && filter.class.is_none_or(|class| class == item.class)
                && item.id.starts_with(filter.id_prefix)
        };
        let all = self.memory.breaks.values().map(|it| it.as_of(filter.as_of));
        Ok(all.filter(is_asked).collect())
    }

    async fn break_detail(
        &mut self,
        id_prefix: &str,
        as_of: Instant,
    ) -> Result<BreakDetail, Failure> {
        let id = only(self.memory.breaks.keys(), id_prefix)?;
        let stored = &self.memory.breaks[&id];
        let repairs = self.memory.filtered(&RepairFilter {
            break_id: &id,
            ..RepairFilter::default()
        });
        Ok(BreakDetail {
            item: stored.as_of(as_of),
            last_seen_run: stored.last_seen_run.clone(),
            last_seen_at: stored.last_seen_at,
            events: stored.events.values().cloned().collect(),
            repairs: repairs.into_iter().map(|it| it.item.id).collect(),
        })
    }

    async fn acknowledge(
        &mut self,
        id_prefix: &str,
        until: Instant,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        self.memory
            .say(id_prefix, note, "acknowledged", None, Some(until))
    }

    async fn close(
        &mut self,
        id_prefix: &str,
        how: CloseAs,
        note: &Note<'_>,
    ) -> Result<Break, Failure> {
        self.memory.say(id_prefix, note, "closed", Some(how), None)
    }

    async fn closes(&mut self, sources: &[&str]) -> Result<Vec<(String, CloseAs)>, Failure> {
        let open = self.memory.unresolved(sources);
        Ok(open
            .filter_map(|it| Some((it.item.id.clone(), it.closed_as()?)))
            .collect())
    }

    async fn repairs(&mut self, filter: &RepairFilter<'_>) -> Result<Vec<RepairDetail>, Failure> {
        Ok(self.memory.filtered(filter))
    }

    async fn repair(&mut self, id_prefix: &str) -> Result<RepairDetail, Failure> {
        let id = only(self.memory.repairs.keys(), id_prefix)?;
        Ok(self.memory.with_author(&id))
    }

    async fn decide(
        &mut self,
        id_prefix: &str,
        decision: Decision,
        note: &Note<'_>,
    ) -> Result<RepairDetail, Failure> {
        let id = only(self.memory.repairs.keys(), id_prefix)?;
        let found = self.memory.with_author(&id);
        let next = match (decision, found.item.state) {
            (
                Decision::Approve | Decision::ApproveAsOther,
                RepairState::Proposed | RepairState::Failed,
            ) => RepairState::Approved,
            (Decision::Reject, RepairState::Proposed | RepairState::Approved) => {
                RepairState::Rejected
            }
            _ => return Err(no(Exit::Rejected)),
        };
        if decision == Decision::ApproveAsOther && found.proposed_by == note.by {
            return Err(no(Exit::Denied));
        }
        self.memory
            .step(&id, next, note.at, note.by, "", note.reason);
        Ok(self.memory.with_author(&id))
    }

    async fn revert(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        self.write(|memory| memory.revert(id_prefix, note))
    }

    async fn ledger_head(&mut self) -> Result<LedgerHead, Failure> {
        let steps: usize = self.memory.repairs.values().map(|it| it.events.len()).sum();
        let words = self
            .memory
            .breaks
            .values()
            .flat_map(|it| it.events.values());
        let words = words.filter(|it| ["acknowledged", "closed"].contains(&it.what.as_str()));
        Ok(LedgerHead {
            entries: (steps + words.count()) as u64,
            hash: String::new(),
        })
    }

    async fn prove_ledger(&mut self) -> Result<LedgerProof, Failure> {
        Ok(LedgerProof {
            head: self.ledger_head().await?,
            older: 0,
        })
    }

    async fn apply(&mut self, id_prefix: &str, note: &Note<'_>) -> Result<RepairDetail, Failure> {
        self.write(|memory| {
            let id = only(memory.repairs.keys(), id_prefix)?;
            let found = memory.repairs[&id].clone();
            if found.item.state != RepairState::Approved {
                return Err(no(Exit::Rejected));
            }
            let failed = memory.carry_out(&found.scope, &[&found.item])?;
            if failed.is_empty() {
                memory.step(&id, RepairState::Applied, note.at, note.by, "", note.reason);
            } else {
                memory.step(
                    &id,
                    RepairState::Failed,
                    note.at,
                    note.by,
                    "",
                    ROW_HAD_CHANGED,
                );
            }
            Ok(memory.with_author(&id))
        })
    }

    async fn runs(&mut self, limit: u32) -> Result<Vec<RunRow>, Failure> {
        let mut runs: Vec<RunRow> = self.memory.runs.values().cloned().collect();
        runs.sort_by(|a, b| (b.started_at, &b.run_id).cmp(&(a.started_at, &a.run_id)));
        runs.truncate(limit as usize);
        Ok(runs)
    }

    async fn run(&mut self, id_prefix: &str) -> Result<RunRow, Failure> {
        let newest = self.runs(u32::MAX).await?;
        let id = if id_prefix == "latest" {
            let finished = newest.into_iter().find(|run| run.finished_at.is_some());
            finished.ok_or_else(|| no(Exit::Rejected))?.run_id
        } else {
            only(self.memory.runs.keys(), id_prefix)?
        };
        Ok(RunRow {
            report_json: self.memory.reports.get(&id).cloned(),
            ..self.memory.runs[&id].clone()
        })
    }

    async fn old_reports(&mut self, before: Instant) -> Result<OldReports, Failure> {
        let (old, prunable) = self.memory.old_reports(before);
        Ok(OldReports {
            prunable: prunable.len() as u64,
            ..old
        })
    }

    async fn prune_runs(
        &mut self,
        before: Instant,
        at: Instant,
        limit: u32,
    ) -> Result<u64, Failure> {
        let (_, mut prunable) = self.memory.old_reports(before);
        prunable.truncate(limit as usize);
        for id in &prunable {
            self.memory.reports.remove(id);
            if let Some(run) = self.memory.runs.get_mut(id) {
                run.report_pruned_at = Some(at);
            }
        }
        Ok(prunable.len() as u64)
    }

    async fn known_sources(&mut self) -> Result<Vec<String>, Failure> {
        let memory = &self.memory;
        let mut known: BTreeSet<&String> = memory.leases.keys().collect();
        known.extend(memory.watermarks.keys());
        Ok(known.into_iter().cloned().collect())
    }

    async fn generations(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure> {
        Ok(self.memory.clone().forget(retention, true))
    }

    async fn forget(&mut self, retention: &Retention<'_>) -> Result<Vec<Generation>, Failure> {
        Ok(self.memory.forget(retention, false))
    }

    async fn horizon(&mut self, source: &str) -> Result<Option<Instant>, Failure> {
        Ok(self.memory.horizons.get(source).copied())
    }

    async fn settled_intents(&mut self, scope: &str) -> Result<Vec<String>, Failure> {
        let settled = self.memory.settled.iter().filter(|key| key.0 == scope);
        Ok(settled.map(|key| key.1.clone()).collect())
    }

    async fn claimed(
        &mut self,
        source: &str,
        ids: &[&str],
    ) -> Result<Vec<ClaimedOperation>, Failure> {
        let memory = &self.memory;
        let wanted = memory.seen.iter();
        let wanted = wanted.filter(|key| key.0 == source && ids.contains(&key.1.as_str()));
        let claimed = wanted.map(|key| ClaimedOperation {
            operation_id: key.1.clone(),
            account: key.2.clone(),
            link: memory
                .match_of(&key.0, &key.1, &key.2)
                .map(|it| (it.intent_id.clone(), it.rule)),
        });
        Ok(claimed.collect())
    }

    async fn freshness(&mut self, source: &str, as_of: Instant) -> Result<Freshness, Failure> {
        let memory = &self.memory;
        let finished: Vec<&RunRow> = memory
            .commits
            .iter()
            .filter(|it| it.source == source)
            .filter_map(|it| memory.runs.get(&it.run_id))
            .filter(|run| matches!(run.exit_code, Some(0 | 1)))
            .collect();
        let clean = finished
            .iter()
            .filter(|run| ["clean", "repaired"].contains(&run.outcome.as_str()));
        let sources = [source];
        let open = memory.unresolved(&sources).map(|it| it.as_of(as_of));
        Ok(Freshness {
            last_finished_at: finished.iter().filter_map(|run| run.finished_at).max(),
            last_clean_at: clean.filter_map(|run| run.finished_at).max(),
            watermark: memory.watermarks.get(source).cloned(),
            open_breaks: open.filter(|it| it.state == BreakState::Open).count() as u64,
        })
    }
}
