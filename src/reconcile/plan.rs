//! The plan: drafts become breaks with ids and evidence, and the repairs that policy allows.
//!
//! Ids are hashes of what a thing is about, so that the same thing has the same id in every run and writing it twice is
//! impossible. Evidence is a hash of what was seen: acknowledgements and closes bind to it.

use hashbrown::{HashMap, HashSet};
use sha2::{Digest, Sha256};

use super::judge::{Draft, RedriveDraft, RepairDraft, Verdicts};
use super::keys::{Key, Keys};
use super::policy::{Conditions, Facts};
use super::rules::{Frame, Rules};
use super::{Finding, HeldBack, Outcome, Seen, Snapshot};
use crate::model::answer::Standing;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, Policy};
use crate::model::intent::IntentKind;
use crate::model::operation::{IdKind, Operation, OperationKind};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::model::verdict::{Disposition, Rule};
use crate::money::Money;

/// Breaks of earlier runs that are not resolved.
pub(crate) struct OpenBreaks<'a> {
    by_id: HashMap<&'a str, &'a Break>,
    operations: HashSet<Key>,
    intents: HashSet<Key>,
}

impl<'a> OpenBreaks<'a> {
    pub(crate) fn of(open: &'a [Break], keys: &Keys<'_>) -> OpenBreaks<'a> {
        let mut breaks = OpenBreaks {
            by_id: HashMap::new(),
            operations: HashSet::new(),
            intents: HashSet::new(),
        };
        for item in open {
            breaks.by_id.insert(&item.id, item);
            if item.state == BreakState::Closed {
                continue;
            }
            // A break that names an intent only as a parent does not ask for a verdict about it.
            let is_about_intent = item.class.is_about_intent() || item.operation_id.is_empty();
            if let Some(key) = keys.find(&item.intent_id).filter(|_| is_about_intent) {
                breaks.intents.insert(key);
            }
            if let Some(key) = keys.find(&item.operation_id) {
                breaks.operations.insert(key);
            }
        }
        breaks
    }

    pub(crate) fn is_about_operation(&self, key: Key) -> bool {
        !self.operations.is_empty() && self.operations.contains(&key)
    }

    pub(crate) fn is_about_intent(&self, key: Key) -> bool {
        !self.intents.is_empty() && self.intents.contains(&key)
    }

    /// Whether a break of this class about these rows is open or acknowledged.
    pub(crate) fn has(
        &self,
        class: BreakClass,
        rules: &Rules,
        operation: Option<&Operation<'_>>,
        intent_id: &str,
    ) -> bool {
        let (account, operation_id) =
            operation.map_or(("", ""), |row| (row.account, row.operation_id));
        !self.by_id.is_empty()
            && [&rules.source, &rules.scope].into_iter().any(|source| {
                let id = break_id(source, class, account, operation_id, intent_id);
                self.by_id
                    .get(id.as_str())
                    .is_some_and(|item| item.state != BreakState::Closed)
            })
    }

    /// Whether a person closed a break of this class about an operation with just this evidence.
    pub(crate) fn is_accepted(
        &self,
        class: BreakClass,
        rules: &Rules,
        row: &Operation<'_>,
        evidence: &str,
    ) -> bool {
        let id = break_id(&rules.source, class, row.account, row.operation_id, "");
        self.by_id.get(id.as_str()).is_some_and(|item| {
            item.state == BreakState::Closed && item.evidence == digest(&[evidence])
        })
    }
}

/// The id of a break: a hash of source, class and subject. The subject is the intent for classes that are about one,
/// else the operation; the side that exists where only one does.
pub fn break_id(
    source: &str,
    class: BreakClass,
    account: &str,
    operation_id: &str,
    intent_id: &str,
) -> String {
    let is_about_intent =
        operation_id.is_empty() || (class.is_about_intent() && !intent_id.is_empty());
    if is_about_intent {
        digest(&["break", source, class.as_str(), "intent", intent_id])
    } else {
        digest(&[
            "break",
            source,
            class.as_str(),
            "operation",
            account,
            operation_id,
        ])
    }
}

/// 32 hex digits of a SHA-256 over length-prefixed parts.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut text = String::with_capacity(32);
    for byte in hasher.finalize().iter().take(16) {
        text.push(char::from(HEX[usize::from(byte >> 4)]));
        text.push(char::from(HEX[usize::from(byte & 15)]));
    }
    text
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Turns verdicts into an outcome.
pub(crate) fn plan(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    open: &OpenBreaks<'_>,
    keys: &Keys<'_>,
    verdicts: Verdicts,
) -> Outcome {
    let mut outcome = Outcome {
        operations: verdicts.operations,
        intents: verdicts.intents,
        matches: verdicts.matches,
        pending: verdicts.pending,
        links: verdicts.links,
        unverified_payouts: verdicts.unverified_payouts,
        ..Outcome::default()
    };
    let mut raised: HashSet<String> = HashSet::new();
    for draft in verdicts.drafts {
        finding(
            snapshot,
            rules,
            frame,
            open,
            draft,
            &mut raised,
            &mut outcome,
        );
    }
    redrives(snapshot, rules, &verdicts.redrives, &mut outcome);
    carry_over(snapshot, frame, keys, &raised, &mut outcome);
    outcome
        .matches
        .sort_unstable_by_key(|pair| (pair.intent, pair.operation));
    link_repairs(snapshot, rules, &mut outcome);
    outcome
        .findings
        .sort_by(|left, right| order(&left.found).cmp(&order(&right.found)));
    outcome.repairs.sort_by(|left, right| {
        (left.class, &left.intent_id, &left.operation_id).cmp(&(
            right.class,
            &right.intent_id,
            &right.operation_id,
        ))
    });
    outcome
        .links
        .sort_unstable_by_key(|link| (link.operation, link.intent));
    outcome.links.dedup_by_key(|link| link.operation);
    keep_stored(snapshot, &mut outcome);
    for row in 0..snapshot.operations.len() {
        let is_kept = super::is_ahead(snapshot, row, frame);
        if outcome.operations[row] == Disposition::OutOfScope && !is_kept {
            continue;
        }
        match snapshot.seen[row] {
            Seen::New => outcome.new_operations.push(row),
            Seen::Moved => outcome.moved_operations.push(row),
            Seen::Changed if verdicts.accepted.contains(&row) => outcome.moved_operations.push(row),
            Seen::Changed => outcome.rejected_changes.push(row),
            Seen::Known | Seen::Stored | Seen::Forgotten | Seen::Repeat => {}
        }
    }
    outcome
}

/// Where `[repair] link` asks for it: the processor's id for rows that match for certain and do not know it yet. Nothing is
/// wrong with them, so such a repair belongs to no break.
fn link_repairs(snapshot: &Snapshot<'_>, rules: &Rules, outcome: &mut Outcome) {
    let state = match rules.link_policy {
        Policy::Auto => RepairState::Applied,
        Policy::Propose => RepairState::Proposed,
        Policy::Off => return,
    };
    let changed: HashSet<String> = outcome
        .repairs
        .iter()
        .map(|repair| repair.intent_id.clone())
        .collect();
    let mut last = None;
    for pair in &outcome.matches {
        // Of captures that add up the first one is named.
        if last.replace(pair.intent) == Some(pair.intent) {
            continue;
        }
        let intent = snapshot.intents.get(pair.intent);
        let draft = RepairDraft {
            action: RepairAction::Link,
            intent: pair.intent,
            operation: pair.operation,
            status: intent.status,
            money: None,
            keeps_open: false,
        };
        let repair = repair(
            snapshot,
            rules,
            (BreakClass::StatusBehind, ""),
            &draft,
            state,
        );
        let is_news = intent.processor_ref.is_empty() && !repair.to.processor_ref.is_empty();
        if is_news && !changed.contains(intent.intent_id) {
            outcome.repairs.push(repair);
        }
    }
}

/// Proposals to send an intent again. One whose break a person has closed is not sent again either.
fn redrives(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    drafts: &[RedriveDraft],
    outcome: &mut Outcome,
) {
    for draft in drafts {
        let intent = snapshot.intents.get(draft.intent);
        let found = draft.class.map(|class| {
            outcome.findings.iter().find(|finding| {
                finding.found.class == class && finding.found.intent_id == intent.intent_id
            })
        });
        let break_id = match found {
            None => "",
            Some(Some(finding)) => finding.found.id.as_str(),
            Some(None) => continue,
        };
        let class = draft.class.unwrap_or(BreakClass::MissingProcessor);
        let side = RepairSide {
            kind: None,
            status: intent.status,
            processor_ref: intent.processor_ref.to_owned(),
            parent_intent_id: String::new(),
            money: None,
        };
        let id = digest(&[
            "repair",
            &rules.source,
            class.as_str(),
            "",
            intent.intent_id,
            RepairAction::Redrive.as_str(),
            intent.status.as_str(),
            intent.idempotency_key,
            &draft.until.to_string(),
            &intent.version.to_string(),
        ]);
        let first_attempt_at = intent.first_attempt_at.unwrap_or(intent.created_at);
        outcome.repairs.push(Repair {
            id,
            break_id: break_id.to_owned(),
            source: rules.source.clone(),
            class,
            action: RepairAction::Redrive,
            intent_id: intent.intent_id.to_owned(),
            operation_id: String::new(),
            account: String::new(),
            from: Some(side.clone()),
            to: side,
            planned_version: intent.version,
            state: RepairState::Proposed,
            occurred_at: first_attempt_at,
            note: format!(
                "[repair] redrive = propose: nothing of it was seen since its first attempt at {first_attempt_at}; \
                 the key is recognised until {} at least",
                draft.until
            ),
            expires_at: Some(draft.until),
            idempotency_key: intent.idempotency_key.to_owned(),
        });
    }
}

/// What is stored stays: no link is dealt again, and an intent that has a link keeps its principal.
fn keep_stored(snapshot: &Snapshot<'_>, outcome: &mut Outcome) {
    let linked: HashSet<usize> = snapshot
        .links
        .iter()
        .flatten()
        .map(|link| link.intent)
        .collect();
    outcome.links.retain_mut(|link| {
        if let Some(stored) = snapshot.links[link.operation] {
            stored.intent == link.intent
        } else {
            link.is_principal &= !linked.contains(&link.intent);
            true
        }
    });
}

/// Most severe first, then by class and ids.
fn order(
    found: &Break,
) -> (
    std::cmp::Reverse<crate::model::breaks::Severity>,
    BreakClass,
    &str,
    &str,
    &str,
) {
    (
        std::cmp::Reverse(found.class.severity()),
        found.class,
        &found.intent_id,
        &found.operation_id,
        &found.id,
    )
}

fn finding(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    frame: &Frame,
    open: &OpenBreaks<'_>,
    draft: Draft,
    raised: &mut HashSet<String>,
    outcome: &mut Outcome,
) {
    let operation = draft.operation.map(|row| snapshot.operations.get(row));
    let intent = draft.intent.map(|row| snapshot.intents.get(row));
    let (account, operation_id) = operation.map_or(("", ""), |row| (row.account, row.operation_id));
    let intent_id = intent.map_or("", |row| row.intent_id);
    // What is said of an intent alone that no source owns belongs to the intents, not to a source.
    let is_unowned = operation.is_none() && intent.is_some_and(|row| row.source.is_empty());
    let source = if is_unowned {
        &rules.scope
    } else {
        &rules.source
    };
    let id = break_id(source, draft.class, account, operation_id, intent_id);
    if !raised.insert(id.clone()) {
        return;
    }
    let evidence = evidence(&draft, snapshot);
    let existing = open.by_id.get(id.as_str());
    let same_evidence = existing.filter(|item| item.evidence == evidence);
    let state = match same_evidence.map(|item| item.state) {
        Some(BreakState::Closed) => return,
        Some(BreakState::Acknowledged) => BreakState::Acknowledged,
        Some(BreakState::Open | BreakState::Resolved) | None => BreakState::Open,
    };
    let mut found = Break {
        id,
        class: draft.class,
        source: source.clone(),
        account: account.to_owned(),
        operation_id: operation_id.to_owned(),
        intent_id: intent_id.to_owned(),
        money: draft.money,
        delta: draft.delta,
        why: draft.why,
        evidence,
        state,
        disposition: BreakDisposition::Review,
        is_sticky: existing.is_some_and(|item| item.is_sticky),
        first_seen_run: existing.map_or_else(String::new, |item| item.first_seen_run.clone()),
        first_seen_at: existing.map_or(frame.as_of, |item| item.first_seen_at),
        acknowledged_until: same_evidence.and_then(|item| item.acknowledged_until),
    };
    if let Some(repair_draft) = draft.repair {
        let mut repair = repair(
            snapshot,
            rules,
            (found.class, &found.id),
            &repair_draft,
            RepairState::Planned,
        );
        let policy = rules.policy(draft.class);
        let (state, note) = match rules.conditions.get(&draft.class) {
            Some(conditions) => {
                let facts = Facts {
                    as_of: frame.as_of,
                    money: repair.to.money.or(found.money),
                    rule: rule_of(snapshot, outcome, &repair_draft),
                };
                conditions.decide(policy, &repair, facts)
            }
            None => Conditions::default().decide(
                policy,
                &repair,
                Facts {
                    as_of: frame.as_of,
                    money: None,
                    rule: None,
                },
            ),
        };
        if state.is_none() && !note.is_empty() {
            outcome.held_back.push(HeldBack {
                class: found.class,
                break_id: found.id.clone(),
                reason: note.clone(),
            });
        }
        if let Some(state) = state {
            repair.state = state;
            repair.note = note;
            if state == RepairState::Applied {
                if repair_draft.keeps_open {
                    found.is_sticky = true;
                } else {
                    found.disposition = BreakDisposition::Repaired;
                    found.state = BreakState::Resolved;
                }
            }
            outcome.repairs.push(repair);
        }
    }
    let also = draft
        .also
        .iter()
        .map(|&row| snapshot.operations.get(row).operation_id.to_owned())
        .filter(|other| other != &found.operation_id)
        .collect();
    outcome.findings.push(Finding {
        found,
        is_new: existing.is_none(),
        also,
    });
}

/// The rule that tied the rows of a repair together: now, in an earlier run, or as child and parent.
fn rule_of(snapshot: &Snapshot<'_>, outcome: &Outcome, draft: &RepairDraft) -> Option<Rule> {
    let now = outcome
        .links
        .iter()
        .find(|link| link.operation == draft.operation && link.intent == draft.intent)
        .map(|link| link.rule);
    let stored = || {
        snapshot.links[draft.operation]
            .filter(|link| link.intent == draft.intent)
            .map(|link| link.rule)
    };
    match draft.action {
        RepairAction::SetStatus | RepairAction::Link | RepairAction::Redrive => now.or_else(stored),
        // It hangs on the payment that it names as its parent.
        RepairAction::RecordRefund | RepairAction::RecordDispute => Some(Rule::Parent),
    }
}

/// A hash of what was seen. It leaves out the local status where that is not what the break is about, so that a repair of
/// this run does not open again what a person has acknowledged.
fn evidence(draft: &Draft, snapshot: &Snapshot<'_>) -> String {
    if !draft.evidence.is_empty() {
        return digest(&[&draft.evidence]);
    }
    let mut parts: Vec<String> = vec![draft.class.to_string()];
    if let Some(row) = draft.operation.map(|row| snapshot.operations.get(row)) {
        parts.push(format!(
            "{} {} {} {}",
            row.operation_id, row.status, row.amount_minor, row.currency
        ));
    }
    if let Some(row) = draft.intent.map(|row| snapshot.intents.get(row)) {
        parts.push(format!(
            "{} {} {}",
            row.intent_id, row.amount_minor, row.currency
        ));
        let is_about_status = matches!(
            draft.class,
            BreakClass::StatusConflict
                | BreakClass::StatusAhead
                | BreakClass::StatusBehind
                | BreakClass::MissingProcessor
                | BreakClass::OpenTooLong
        );
        if is_about_status {
            parts.push(row.status.to_string());
        }
        parts.push(row.invalid.to_owned());
    }
    let figure = |money: Option<Money>| {
        money.map_or_else(String::new, |money| {
            format!("{} {}", money.minor, money.currency)
        })
    };
    parts.push(figure(draft.delta));
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    digest(&parts)
}

fn repair(
    snapshot: &Snapshot<'_>,
    rules: &Rules,
    (class, break_id): (BreakClass, &str),
    draft: &RepairDraft,
    state: RepairState,
) -> Repair {
    let operation = snapshot.operations.get(draft.operation);
    let intent = snapshot.intents.get(draft.intent);
    // The processor's own id of a row of the intent's own family, never one that was made up.
    let own_ref = if operation.kind == OperationKind::Void {
        // A void names the hold that it let go.
        operation.parent_id
    } else if operation.id_kind == IdKind::Synthetic {
        ""
    } else {
        operation.operation_id
    };
    let (intent_id, from, to, planned_version) = match draft.action {
        // No draft of the decision table is one to send again; it has a way of its own.
        RepairAction::SetStatus | RepairAction::Link | RepairAction::Redrive => {
            let is_own = operation.kind.family() == Some(intent.kind.family())
                && !operation.kind.is_return();
            let processor_ref = match intent.processor_ref {
                "" if is_own => own_ref,
                kept => kept,
            };
            let side = |status, processor_ref: &str| RepairSide {
                kind: None,
                status,
                processor_ref: processor_ref.to_owned(),
                parent_intent_id: String::new(),
                money: None,
            };
            let from = side(intent.status, intent.processor_ref);
            (
                intent.intent_id.to_owned(),
                Some(from),
                side(draft.status, processor_ref),
                intent.version,
            )
        }
        RepairAction::RecordRefund | RepairAction::RecordDispute => {
            let kind = if draft.action == RepairAction::RecordRefund {
                IntentKind::Refund
            } else {
                IntentKind::Dispute
            };
            let recorded = digest(&[
                "recorded",
                &rules.source,
                operation.account,
                operation.operation_id,
            ]);
            let to = RepairSide {
                kind: Some(kind),
                status: draft.status,
                processor_ref: own_ref.to_owned(),
                parent_intent_id: intent.intent_id.to_owned(),
                money: draft.money,
            };
            (format!("paysweep-{}", &recorded[..20]), None, to, 0)
        }
    };
    let money = to.money.map_or_else(String::new, |money| {
        format!("{} {}", money.minor, money.currency)
    });
    let id = digest(&[
        "repair",
        &rules.source,
        class.as_str(),
        operation.operation_id,
        &intent_id,
        draft.action.as_str(),
        to.status.as_str(),
        &to.processor_ref,
        &to.parent_intent_id,
        &money,
        &planned_version.to_string(),
    ]);
    Repair {
        id,
        break_id: break_id.to_owned(),
        source: rules.source.clone(),
        class,
        action: draft.action,
        intent_id,
        operation_id: operation.operation_id.to_owned(),
        account: operation.account.to_owned(),
        from,
        to,
        planned_version,
        state,
        occurred_at: operation.occurred_at,
        note: String::new(),
        expires_at: None,
        idempotency_key: String::new(),
    }
}

/// Breaks of earlier runs that this one did not raise: carried on where a person has to end them or their subject was not
/// seen, resolved where it was seen in order.
fn carry_over(
    snapshot: &Snapshot<'_>,
    frame: &Frame,
    keys: &Keys<'_>,
    raised: &HashSet<String>,
    outcome: &mut Outcome,
) {
    if snapshot.open.is_empty() {
        return;
    }
    let mut operations: HashMap<Key, Vec<usize>> = HashMap::new();
    let mut intents: HashMap<Key, usize> = HashMap::new();
    let wanted: HashSet<Key> = snapshot
        .open
        .iter()
        .flat_map(|item| [keys.find(&item.operation_id), keys.find(&item.intent_id)])
        .flatten()
        .collect();
    for (row, keys) in keys.operations.iter().enumerate() {
        if wanted.contains(&keys.id) && snapshot.seen[row] != Seen::Repeat {
            operations.entry(keys.id).or_default().push(row);
        }
    }
    for (row, keys) in keys.intents.iter().enumerate() {
        if wanted.contains(&keys.id) {
            intents.insert(keys.id, row);
        }
    }
    let mut carried: (HashSet<usize>, HashSet<usize>) = (HashSet::new(), HashSet::new());
    for item in snapshot.open {
        if item.state == BreakState::Closed || raised.contains(&item.id) {
            continue;
        }
        let operation = keys
            .find(&item.operation_id)
            .and_then(|key| operations.get(&key))
            .and_then(|rows| {
                rows.iter()
                    .copied()
                    .find(|&row| snapshot.operations.get(row).account == item.account)
            });
        let intent = keys
            .find(&item.intent_id)
            .and_then(|key| intents.get(&key).copied());
        let is_about_intent = item.class.is_about_intent() || item.operation_id.is_empty();
        if item.operation_id.is_empty()
            && matches!(
                item.class,
                BreakClass::MissingProcessor | BreakClass::OpenTooLong
            )
            && intent.is_some_and(|row| is_found_elsewhere(snapshot, row))
        {
            outcome.resolved.push(item.id.clone());
            continue;
        }
        let verdict = if is_about_intent {
            intent.map_or(Disposition::OutOfScope, |row| outcome.intents[row])
        } else {
            operation.map_or(Disposition::OutOfScope, |row| outcome.operations[row])
        };
        let is_unseen = verdict == Disposition::OutOfScope
            || (item.class == BreakClass::OperationChanged
                && operation.is_none_or(|row| snapshot.seen[row] == Seen::Stored));
        if !item.is_sticky && item.class != BreakClass::CoverageGap && !is_unseen {
            outcome.resolved.push(item.id.clone());
            continue;
        }
        carried.0.extend(operation);
        carried.1.extend(intent.filter(|_| is_about_intent));
        let state = match item.acknowledged_until {
            Some(until) if until > frame.as_of && item.state == BreakState::Acknowledged => {
                BreakState::Acknowledged
            }
            _ => BreakState::Open,
        };
        let found = Break {
            state,
            disposition: BreakDisposition::Review,
            ..item.clone()
        };
        outcome.findings.push(Finding {
            found,
            is_new: false,
            also: Vec::new(),
        });
    }
    unmatch(snapshot, carried, outcome);
}

/// Whether what was missing has come to light at another source, which answers it or tells a break of it.
fn is_found_elsewhere(snapshot: &Snapshot<'_>, intent: usize) -> bool {
    matches!(
        snapshot.answer[intent].elsewhere(),
        Some(Standing::Stands | Standing::Waits)
    ) || snapshot.others.told.contains(&intent)
}

/// Rows with an open break are unmatched, and so are their counterparts.
fn unmatch(
    snapshot: &Snapshot<'_>,
    (mut operations, mut intents): (HashSet<usize>, HashSet<usize>),
    outcome: &mut Outcome,
) {
    if operations.is_empty() && intents.is_empty() {
        return;
    }
    let pairs = || outcome.matches.iter();
    intents.extend(
        pairs()
            .filter(|pair| operations.contains(&pair.operation))
            .map(|pair| pair.intent),
    );
    operations.extend(
        pairs()
            .filter(|pair| intents.contains(&pair.intent))
            .map(|pair| pair.operation),
    );
    outcome
        .matches
        .retain(|pair| !intents.contains(&pair.intent));
    for row in operations {
        if snapshot.seen[row] != Seen::Repeat && outcome.operations[row] != Disposition::OutOfScope
        {
            outcome.operations[row] = Disposition::Unmatched;
        }
    }
    for row in intents {
        if outcome.intents[row] != Disposition::OutOfScope {
            outcome.intents[row] = Disposition::Unmatched;
        }
    }
}
