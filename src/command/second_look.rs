//! Asking for single rows by their id: what the lists do not reach, what may have moved on, and what seems to be absent.
//!
//! Decisions: a row that would be called absent is asked for before it is; a direct read is not as easily behind as a list or
//! a search. Who gets no answer concludes nothing. Open rows are looked after for as long as they are open, so many in a run.

use std::collections::HashSet;

use crate::model::breaks::BreakClass;
use crate::model::operation::{
    Family, IdKind, Operation, OperationKind, OperationStatus, Operations,
};
use crate::processor::api::Why;
use crate::reconcile::rules::Frame;
use crate::reconcile::{Outcome, Seen};
use crate::source::api::{Account, Found, Question};
use crate::source::feed::Feed;

use super::gather::Gathered;

/// Most rows that are asked for in one run of a source: at ten a second, twenty seconds.
const QUESTIONS_MAX: usize = 200;

/// What to ask.
#[derive(Debug, Default)]
pub(super) struct Questions {
    pub(super) ids: Vec<Question>,
    /// How many more there would be.
    pub(super) not_asked: u64,
}

/// What to ask after a first judgement: rows that would be called absent come first, then those that were open when they
/// were seen last, then open rows of ours that the lists do not reach.
pub(super) fn questions(
    account: &Account,
    source: &str,
    gathered: &Gathered,
    outcome: &Outcome,
    frame: &Frame,
    only_absent: bool,
) -> Questions {
    let mut seen = HashSet::new();
    let mut questions = Questions::default();
    let mut ask = |id: &str, why: Why, family: Family| {
        if !id.is_empty() && account.can_look_up(id, family) && seen.insert(id.to_owned()) {
            if questions.ids.len() < QUESTIONS_MAX {
                let id = id.to_owned();
                questions.ids.push(Question { id, why, family });
            } else {
                questions.not_asked += 1;
            }
        }
    };
    let intents = &gathered.merged.intents;
    let absent: HashSet<&str> = outcome
        .findings
        .iter()
        .filter(|finding| is_absence(finding.found.class))
        .map(|finding| finding.found.intent_id.as_str())
        .collect();
    let mut open = Vec::new();
    let linked: HashSet<usize> = outcome.links.iter().map(|link| link.intent).collect();
    for (row, intent) in intents.iter().enumerate() {
        if absent.contains(intent.intent_id) {
            ask(intent.processor_ref, Why::Asked, intent.kind.family());
        }
        let is_ours = intent.source == source || (intent.source.is_empty() && frame.judges_unowned);
        let is_out_of_reach = intent.created_at < frame.window.from;
        if is_ours && is_out_of_reach && intent.status.is_open() && !linked.contains(&row) {
            open.push(row);
        }
    }
    if only_absent {
        return questions;
    }
    let rows = &gathered.recognised;
    for (operation, seen) in rows.operations.iter().zip(&rows.seen) {
        if *seen == Seen::Stored && is_unsettled(&operation) {
            let is_hold = operation.kind == OperationKind::Authorization;
            if let Some(family) = operation.kind.family() {
                ask(operation.operation_id, Why::Again { is_hold }, family);
            }
        }
    }
    for row in open {
        let intent = intents.get(row);
        ask(intent.processor_ref, Why::Asked, intent.kind.family());
    }
    questions
}

fn is_absence(class: BreakClass) -> bool {
    matches!(
        class,
        BreakClass::MissingProcessor | BreakClass::OpenTooLong
    )
}

/// Whether more may be known of a row by now.
fn is_unsettled(row: &Operation<'_>) -> bool {
    let is_open = row.status == OperationStatus::Pending
        || (row.kind == OperationKind::Authorization && row.status == OperationStatus::Succeeded);
    is_open && row.ignore.is_none() && row.invalid.is_empty() && row.id_kind == IdKind::Native
}

/// Takes what was found into a feed, and its rows to those that are judged.
pub(super) fn take_in(found: Found, feed: &mut Feed, operations: &mut Operations) {
    let first = u16::try_from(feed.files.len()).unwrap_or(u16::MAX);
    for row in found.feed.operations.iter() {
        operations.push(&Operation {
            file: row.file.saturating_add(first),
            ..row
        });
    }
    feed.files.extend(found.feed.files);
    feed.rows += found.feed.rows;
    feed.quarantined += found.feed.quarantined;
    feed.invalid += found.feed.invalid;
    if let Some(asked) = &mut feed.asked {
        asked.looked_up += found.asked;
        asked.unknown.extend(found.unknown);
    }
}

/// Tells beside a row that is absent that it was asked for.
pub(super) fn tell(outcome: &mut Outcome, gathered: &Gathered, feed: &Feed) {
    let Some(asked) = &feed.asked else { return };
    let unknown: HashSet<&str> = asked.unknown.iter().map(String::as_str).collect();
    if unknown.is_empty() {
        return;
    }
    let refused: HashSet<&str> = gathered
        .merged
        .intents
        .iter()
        .filter(|intent| unknown.contains(intent.processor_ref))
        .map(|intent| intent.intent_id)
        .collect();
    for finding in &mut outcome.findings {
        if is_absence(finding.found.class) && refused.contains(finding.found.intent_id.as_str()) {
            finding
                .found
                .why
                .push_str("; asked for it by its id, the processor does not know it");
        }
    }
}
