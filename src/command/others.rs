//! What the other sources of a configuration show and tell of the intents of a slice.
//!
//! What is stored of them is asked for by key. A source that comes later in the run is read ahead of its turn, once, and
//! only where a verdict may depend on it; it is read again when its turn comes, under its claim. A source that is asked over
//! the network is not: of it counts what earlier runs have stored.

use std::collections::{HashMap, HashSet};

use crate::exit::Failure;
use crate::meter::Meter;
use crate::model::answer::{Answer, Others, Standing};
use crate::model::intent::Intents;
use crate::model::operation::Operations;
use crate::model::verdict::Disposition;
use crate::reconcile::Snapshot;
use crate::reconcile::others::{claims, speaks_for_intent};
use crate::reconcile::recognise;
use crate::reconcile::rules::{Frame, Rules};
use crate::source::feed::Feed;
use crate::store::contract::{Claim, OperationSelection, Store};
use crate::time::Instant;

use super::frame::{self, complete_through, follows, window_of};
use super::gather::{Collected, Gathered, Keys, keys_of, keys_of_intent};
use super::held::beside;
use super::prepare::Prepared;
use super::run::Job;
use super::told::{Slice, Told};

/// Sources that were read ahead of their turn; `None` = that failed, as it will when their turn comes.
#[derive(Default)]
pub(crate) struct Ahead {
    read: HashMap<String, Option<Shown>>,
}

struct Shown {
    operations: Operations,
    covered: Option<Instant>,
}

impl Ahead {
    /// How far a source that was read ahead is complete.
    #[allow(
        clippy::option_option,
        reason = "not read ahead, read to nowhere, read so far"
    )]
    pub(super) fn covered(&self, source: &str) -> Option<Option<Instant>> {
        let shown = self.read.get(source)?;
        Some(shown.as_ref().and_then(|shown| shown.covered))
    }
}

/// Which intents another source tells a break of: in this run where it was judged, else by what is stored.
pub(super) async fn tell<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    told: &Told,
    gathered: &mut Gathered,
) -> Result<(), Failure> {
    if job.settings.sources.len() < 2 {
        return Ok(());
    }
    let open = store.open_breaks(&[], job.as_of).await?;
    let is_said_now = |source: &str| told.slices.iter().any(|slice| slice.name == source);
    let of_others = open.iter().filter(|item| {
        speaks_for_intent(item.class)
            && !item.intent_id.is_empty()
            && item.source != prepared.source.name
            && item.source != prepared.rules.scope
            && !is_said_now(&item.source)
    });
    let mut ids: HashSet<&str> = of_others.map(|item| item.intent_id.as_str()).collect();
    ids.extend(told_by(&told.slices));
    gathered.others.told = gathered.rows_of(&ids).into_iter().collect();
    Ok(())
}

/// The intents that slices tell a break of.
pub(super) fn told_by(slices: &[Slice]) -> HashSet<&str> {
    let mut ids = HashSet::new();
    for slice in slices {
        let intents = &slice.gathered.merged.intents;
        let unmatched = (0..intents.len())
            .filter(|&row| slice.outcome.intents[row] == Disposition::Unmatched)
            .map(|row| intents.text.get(intents.intent_id[row]));
        ids.extend(unmatched);
        let found = slice.outcome.findings.iter().map(|finding| &finding.found);
        let found =
            found.filter(|item| speaks_for_intent(item.class) && !item.intent_id.is_empty());
        ids.extend(found.map(|item| item.intent_id.as_str()));
    }
    ids
}

/// Asks every other source about the intents that a slice is unsure of, and how far those sources are read now.
#[allow(
    clippy::too_many_arguments,
    reason = "the straight line names everything that flows into it"
)]
pub(super) async fn ask<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    claim: Option<&Claim>,
    told: &Told,
    ahead: &mut Ahead,
    gathered: &mut Gathered,
    unsure: &[usize],
    frame: &mut Frame,
) -> Result<(), Failure> {
    let mut others = std::mem::take(&mut gathered.others);
    others.asked.extend(unsure);
    for other in &job.settings.sources {
        if other.name == prepared.source.name {
            continue;
        }
        let judged = told.slices.iter().find(|slice| slice.name == other.name);
        let has_failed = told.covered(&other.name).is_some() && judged.is_none();
        let coming = job
            .sources
            .iter()
            .find(|source| source.source.name == other.name);
        if let (Some(coming), None, false) = (coming, judged, has_failed)
            && !ahead.read.contains_key(&other.name)
            && let Some(reader) = coming.reader(Meter::default())
        {
            let shown = read_ahead(store, job, coming, reader, claim).await?;
            ahead.read.insert(other.name.clone(), shown);
        }
        let shown = judged
            .map(|slice| &slice.gathered.recognised.operations)
            .or_else(|| Some(&ahead.read.get(&other.name)?.as_ref()?.operations));
        let mut search = Search::new(&gathered.merged.intents, unsure, shown);
        loop {
            let keys = search.more();
            if keys.is_empty() {
                break;
            }
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let selection = OperationSelection::Keys(&keys);
            search.found(&store.operations(&other.name, selection).await?);
        }
        search.end(&other.rules, &*frame, &mut others);
    }
    gathered.others = others;
    let others_covered = frame::others_covered(store, job, prepared.source, told, ahead).await?;
    frame.others_covered = others_covered;
    Ok(())
}

/// The files of a source whose turn has not come; `None` = they cannot be read, or are refused.
async fn read_ahead<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    coming: &Prepared<'_>,
    reader: impl FnOnce() -> Result<Feed, Failure> + Send + 'static,
    claim: Option<&Claim>,
) -> Result<Option<Shown>, Failure> {
    let stored = store.watermark(&coming.source.name).await?;
    let Ok(window) = window_of(job, coming, stored.as_ref()) else {
        return Ok(None);
    };
    let read = beside(store, job.settings, claim, &job.interrupt, reader).await?;
    let Ok(feed) = read.and_then(|feed| follows(feed, stored.as_ref(), window)) else {
        return Ok(None);
    };
    let reached = complete_through(coming.source.complete_through, job.as_of, &feed);
    let before = stored.map(|watermark| watermark.hi);
    let reached = reached.max(before.filter(|&hi| hi > coming.source.start));
    let until = window.to.min(job.as_of.minus(coming.spans.lag));
    Ok(Some(Shown {
        covered: reached.map(|at| at.min(until)),
        operations: feed.operations,
    }))
}

/// The rows of both sides that keys lead to from a few intents.
pub(super) struct Search<'a> {
    intents: &'a Intents,
    unsure: &'a [usize],
    shown: Option<&'a Operations>,
    has_intent: Vec<bool>,
    has_row: Vec<bool>,
    keys: Keys,
    stored: Collected,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        intents: &'a Intents,
        unsure: &'a [usize],
        shown: Option<&'a Operations>,
    ) -> Search<'a> {
        let mut search = Search {
            intents,
            unsure,
            shown,
            has_intent: vec![false; intents.len()],
            has_row: vec![false; shown.map_or(0, Operations::len)],
            keys: Keys::default(),
            stored: Collected::default(),
        };
        for &row in unsure {
            search.has_intent[row] = true;
            search.keys.intent(&intents.get(row));
        }
        search
    }

    /// Keys that were not asked for yet; none = everything was found.
    pub(super) fn more(&mut self) -> Vec<String> {
        for row in 0..self.intents.len() {
            let intent = self.intents.get(row);
            let is_met = || keys_of_intent(&intent).iter().any(|key| self.keys.has(key));
            if !self.has_intent[row] && is_met() {
                self.has_intent[row] = true;
                self.keys.intent(&intent);
            }
        }
        for (row, operation) in self.shown.iter().flat_map(|shown| shown.iter()).enumerate() {
            let is_met = || keys_of(&operation).iter().any(|key| self.keys.has(key));
            if !self.has_row[row] && is_met() {
                self.has_row[row] = true;
                self.keys.operation(&operation);
            }
        }
        self.keys.take()
    }

    /// Takes in what is stored of the source.
    pub(super) fn found(&mut self, found: &crate::model::stored::StoredOperations) {
        self.keys.operations_of(&found.rows);
        self.stored.add(found);
    }

    /// Adds the operations that claim the intents in question.
    pub(super) fn end(self, rules: &Rules, frame: &Frame, others: &mut Others) {
        let mut shown = Operations::default();
        for (row, operation) in self.shown.iter().flat_map(|shown| shown.iter()).enumerate() {
            if self.has_row[row] {
                shown.push(&operation);
            }
        }
        let rows: Vec<usize> = (0..self.intents.len())
            .filter(|&row| self.has_intent[row])
            .collect();
        let unsure: HashSet<usize> = self.unsure.iter().copied().collect();
        let mut intents = Intents::default();
        let mut answer = Vec::new();
        for &row in &rows {
            intents.push(&self.intents.get(row));
            // An id is one of its source: what is answered here is not answered there by a row that happens to bear it.
            answer.push(if unsure.contains(&row) {
                Answer::Elsewhere(Standing::Stands)
            } else {
                Answer::Nobody
            });
        }
        let recognised = recognise::recognise(shown, &self.stored.rows, &intents);
        let links = recognised.links(&intents);
        let snapshot = Snapshot {
            operations: &recognised.operations,
            seen: &recognised.seen,
            changes: &recognised.changes,
            links: &links,
            intents: &intents,
            answer: &answer,
            others: &Others::default(),
            open: &[],
        };
        for (operation, intent) in claims(&snapshot, rules, frame) {
            let intent = rows[intent];
            if unsure.contains(&intent) {
                let row = others
                    .operations
                    .push(&recognised.operations.get(operation));
                others.claims.entry(intent).or_default().push(row);
            }
        }
    }
}
