//! Both sides of a slice, complete for their keys.
//!
//! The feed alone is never enough: a refund of today hangs on a charge of last month. What is stored is loaded by time and
//! by key, until no row leads to another one that is missing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};

use crate::exit::Failure;
use crate::intents::contract::IntentTable;
use crate::intents::merge::{self, Merged};
use crate::model::answer::{Answer, Others, Standing};
use crate::model::breaks::Break;
use crate::model::intent::{Intent, Intents};
use crate::model::operation::{Operation, OperationKind, Operations};
use crate::model::stored::{StoredIntents, StoredOperations};
use crate::reconcile::recognise::{self, Recognised};
use crate::reconcile::{Snapshot, StoredLink};
use crate::store::contract::{IntentSelection, OperationSelection, Store};
use crate::time::{Instant, Span};

/// Everything that one slice is judged by.
pub struct Gathered {
    /// The operations.
    pub recognised: Recognised,
    /// The intents as they stand after the import.
    pub merged: Merged,
    /// Breaks that are not resolved.
    pub open: Vec<Break>,
    /// What other sources show and tell.
    pub(super) others: Others,
    links: Vec<Option<StoredLink>>,
    answer: Vec<Answer>,
    /// See [`IntentTable::fence`].
    pub fence: Option<(String, u64)>,
}

impl Gathered {
    /// The snapshot for the core.
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot {
            operations: &self.recognised.operations,
            seen: &self.recognised.seen,
            changes: &self.recognised.changes,
            links: &self.links,
            intents: &self.merged.intents,
            answer: &self.answer,
            others: &self.others,
            open: &self.open,
        }
    }

    /// Intents that the store knows to be linked, with an operation of this source or of another one.
    pub fn linked_intents(&self) -> HashSet<usize> {
        (0..self.answer.len())
            .filter(|&row| self.answer[row].is_linked())
            .collect()
    }

    /// Whether the store knows this very link already.
    pub fn knows(&self, operation: usize, intent: usize) -> bool {
        self.links[operation].is_some_and(|link| link.intent == intent)
    }
}

impl Gathered {
    /// The two files of a comparison that has no store.
    pub fn without_memory(recognised: Recognised, intents: Intents) -> Gathered {
        let answer = vec![Answer::Nobody; intents.len()];
        let links = vec![None; recognised.operations.len()];
        let merged = Merged {
            intents,
            ..Merged::default()
        };
        Gathered {
            recognised,
            merged,
            open: Vec::new(),
            others: Others::default(),
            links,
            answer,
            fence: None,
        }
    }

    /// The rows of intents by their ids.
    pub(super) fn rows_of(&self, ids: &HashSet<&str>) -> Vec<usize> {
        if ids.is_empty() {
            return Vec::new();
        }
        let intents = self.merged.intents.iter().enumerate();
        intents
            .filter(|(_, intent)| ids.contains(intent.intent_id))
            .map(|(row, _)| row)
            .collect()
    }

    /// Takes in what other sources of this run were found to answer, where nothing of that is stored.
    pub fn hear(&mut self, others: &HashMap<String, Standing>) {
        if others.is_empty() {
            return;
        }
        for (row, intent) in self.merged.intents.iter().enumerate() {
            if let Some(&standing) = others.get(intent.intent_id) {
                self.answer[row] = Answer::Elsewhere(standing);
            }
        }
    }
}

/// What is asked of the store for a slice.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// The source.
    pub source: &'a str,
    /// Scope name of the intents.
    pub scope: &'a str,
    /// Rows are read from here on; older ones by key.
    pub since: Instant,
    /// The end of the window, which is not part of it.
    pub until: Instant,
    /// Whether breaks about intents that no source owns belong to this slice.
    pub judges_unowned: bool,
    /// "Now".
    pub as_of: Instant,
    /// What the last run by the watermark left behind; see [`IntentTable::fence`]. `None` = there was none.
    pub fences: Option<&'a BTreeMap<String, u64>>,
    /// How far back the source is known.
    pub known: Known,
}

/// How far back a source is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Before it nothing was ever read.
    pub low: Instant,
    /// What occurred before may have been forgotten; `None` = nothing was.
    pub horizon: Option<Instant>,
}

impl Known {
    /// As it is stored.
    pub async fn of<S: Store>(store: &mut S, source: &str) -> Result<Known, Failure> {
        let mark = store.watermark(source).await?;
        Ok(Known {
            low: mark.map_or(Instant::MIN, |mark| mark.low),
            horizon: store.horizon(source).await?,
        })
    }
}

impl Question<'_> {
    /// What a row bears whose creation cannot be told: the last moment of the window, so that it is judged.
    fn stand_in(&self) -> Instant {
        self.until.minus(Span(1))
    }
}

/// A store of at most so many times the rows of the input is read whole: cheaper than asking by key.
const WHOLE_FACTOR: u64 = 4;
/// A store of so few rows is always read whole.
const WHOLE_ROWS: u64 = 50_000;

/// Our own side, as it comes in.
#[allow(clippy::large_enum_variant, reason = "a run holds one of it")]
pub enum Ours<'a, T> {
    /// Rows of a file that are imported; `None` = the store's own table is all there is.
    File(Option<Cow<'a, Intents>>),
    /// A table that is read in place.
    Table(&'a mut T),
}

/// Reads what the store knows about a feed and about imported intents. One side is merged before the other is loaded, so
/// that no more than one copy of a side is held beside the result.
pub async fn gather<S: Store, T: IntentTable>(
    store: &mut S,
    question: Question<'_>,
    feed: Operations,
    ours: Ours<'_, T>,
) -> Result<Gathered, Failure> {
    let mut fence = None;
    let (merged, mut stored) = match ours {
        Ours::File(file) => with_file(store, question, &feed, file.unwrap_or_default()).await?,
        Ours::Table(table) => {
            let read = with_table(store, question, &feed, &mut *table).await?;
            fence = table.fence();
            read
        }
    };
    let mut sources = vec![question.source];
    if question.judges_unowned {
        sources.push(question.scope);
    }
    let open = store.open_breaks(&sources, question.as_of).await?;
    take_over(&mut stored, &merged);
    let mut recognised = recognise::recognise(feed, &stored, &merged.intents);
    drop(stored);
    if let Some(horizon) = question.known.horizon {
        let new = recognised.new_ids();
        let claimed = store.claimed(question.source, &new).await?;
        recognised.forgotten(&claimed, question.known.low, horizon);
    }
    let links = recognised.links(&merged.intents);
    let mut answer = merged.answer.clone();
    if question.known.horizon.is_some() {
        settle_forgotten(&mut answer, &links, &merged.intents);
    }
    let settled = store.settled_intents(question.scope).await?;
    if !settled.is_empty() {
        let settled: HashSet<&str> = settled.iter().map(String::as_str).collect();
        for (answer, intent) in answer.iter_mut().zip(merged.intents.iter()) {
            if *answer == Answer::Nobody && settled.contains(intent.intent_id) {
                *answer = Answer::Elsewhere(Standing::settled(intent.status));
            }
        }
    }
    Ok(Gathered {
        recognised,
        merged,
        open,
        others: Others::default(),
        links,
        answer,
        fence,
    })
}

/// Every row that the store links with an intent is at hand; where none is, they were forgotten.
fn settle_forgotten(answer: &mut [Answer], links: &[Option<StoredLink>], intents: &Intents) {
    let is_linked: HashSet<usize> = links.iter().flatten().map(|link| link.intent).collect();
    for (row, answer) in answer.iter_mut().enumerate() {
        if *answer == Answer::Here && !is_linked.contains(&row) {
            *answer = Answer::Elsewhere(Standing::settled(intents.status[row]));
        }
    }
}

/// The rows of a file beside what the store holds.
async fn with_file<S: Store>(
    store: &mut S,
    question: Question<'_>,
    feed: &Operations,
    file: Cow<'_, Intents>,
) -> Result<(Merged, StoredOperations), Failure> {
    let counts = store.counts(question.source, question.scope).await?;
    let is_whole = |stored: u64, input: u64| stored <= WHOLE_ROWS.max(WHOLE_FACTOR * input);
    if is_whole(counts.operations, feed.len() as u64) && is_whole(counts.intents, file.len() as u64)
    {
        let intents = store
            .intents(question.scope, question.source, IntentSelection::All)
            .await?;
        let merged = merge::merge(&file, &intents);
        drop((intents, file));
        let operations = store
            .operations(question.source, OperationSelection::All)
            .await?;
        return Ok((merged, operations));
    }
    let (operations, intents) = by_key(store, question, feed, &file, None::<&mut NoTable>).await?;
    Ok((merge::merge(&file, &intents), operations))
}

/// The rows of a table beside what the store holds: those of the window, and whatever keys lead to. What the store has not
/// settled is among the keys, so that it is judged by what the table says now.
async fn with_table<S: Store, T: IntentTable>(
    store: &mut S,
    question: Question<'_>,
    feed: &Operations,
    table: &mut T,
) -> Result<(Merged, StoredOperations), Failure> {
    let nothing = Intents::default();
    let (operations, intents) = by_key(store, question, feed, &nothing, Some(&mut *table)).await?;
    let mut rows = table.end().await?;
    keep_first_sight(&mut rows, &intents, question.stand_in());
    Ok((merge::merge(&rows, &intents), operations))
}

/// A row whose creation cannot be told keeps the time at which it was seen first.
fn keep_first_sight(rows: &mut Intents, stored: &StoredIntents, stand_in: Instant) {
    let unusable: HashMap<&str, Instant> = stored
        .rows
        .iter()
        .filter(|row| !row.invalid.is_empty())
        .map(|row| (row.intent_id, row.created_at))
        .collect();
    for row in 0..rows.len() {
        let has_stand_in = rows.created_at[row] == stand_in && !rows.invalid[row].is_empty();
        if let (true, Some(first)) = (
            has_stand_in,
            unusable.get(rows.text.get(rows.intent_id[row])),
        ) {
            rows.created_at[row] = *first;
        }
    }
}

/// Where there is only a file.
enum NoTable {}

impl IntentTable for NoTable {
    async fn begin(&mut self, _: Instant) -> Result<(), Failure> {
        match *self {}
    }

    async fn since(&mut self, _: Instant) -> Result<(), Failure> {
        match *self {}
    }

    async fn behind(&mut self, _: &BTreeMap<String, u64>) -> Result<(), Failure> {
        match *self {}
    }

    fn fence(&self) -> Option<(String, u64)> {
        match *self {}
    }

    async fn with_keys(&mut self, _: &[&str]) -> Result<(), Failure> {
        match *self {}
    }

    fn rows(&self) -> &Intents {
        match *self {}
    }

    async fn end(&mut self) -> Result<Intents, Failure> {
        match *self {}
    }

    fn settled_until(&self) -> Option<Instant> {
        match *self {}
    }
}

/// Operations that were linked with a recorded row follow the imported row that takes its place.
fn take_over(operations: &mut StoredOperations, merged: &Merged) {
    if merged.superseded.is_empty() {
        return;
    }
    let imported: HashMap<&str, &str> = merged
        .superseded
        .iter()
        .map(|(recorded, imported)| (recorded.as_str(), imported.as_str()))
        .collect();
    for linked in &mut operations.linked_intent {
        if let Some(imported) = imported.get(operations.rows.text.get(*linked)) {
            *linked = operations.rows.text.push(imported);
        }
    }
}

/// Rows since a time, then whatever their keys lead to, until nothing new is found.
async fn by_key<S: Store, T: IntentTable>(
    store: &mut S,
    question: Question<'_>,
    feed: &Operations,
    file: &Intents,
    mut table: Option<&mut T>,
) -> Result<(StoredOperations, StoredIntents), Failure> {
    let (source, scope) = (question.source, question.scope);
    let mut operations = Collected::default();
    let mut intents = CollectedIntents::default();
    let mut asked = Keys::default();
    asked.operations_of(feed);
    asked.intents_of(file, 0);
    let ids: Vec<&str> = file.iter().map(|intent| intent.intent_id).collect();
    intents.add(
        &store
            .intents(scope, source, IntentSelection::Ids(&ids))
            .await?,
    );
    operations.add(
        &store
            .operations(source, OperationSelection::Since(question.since))
            .await?,
    );
    intents.add(
        &store
            .intents(scope, source, IntentSelection::Since(question.since))
            .await?,
    );
    asked.operations_of(&operations.rows.rows);
    asked.intents_of(&intents.rows.rows, 0);
    // What takes long was asked before the picture is opened, so that it is held for moments only.
    if let Some(table) = table.as_deref_mut() {
        table.begin(question.stand_in()).await?;
        table.since(question.since).await?;
        if let Some(fences) = question.fences {
            table.behind(fences).await?;
        }
        asked.intents_of(table.rows(), 0);
    }
    loop {
        let keys = asked.take();
        if !keys.is_empty() {
            let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
            let found = store
                .operations(source, OperationSelection::Keys(&keys))
                .await?;
            asked.operations_of(&found.rows);
            operations.add(&found);
            let found = store
                .intents(scope, source, IntentSelection::Keys(&keys))
                .await?;
            asked.intents_of(&found.rows, 0);
            intents.add(&found);
            if let Some(table) = table.as_deref_mut() {
                let known = table.rows().len();
                table.with_keys(&keys).await?;
                asked.intents_of(table.rows(), known);
            }
            continue;
        }
        let payouts = asked.take_payouts(feed, &operations.rows.rows);
        if payouts.is_empty() {
            return Ok((operations.rows, intents.rows));
        }
        let payouts: Vec<&str> = payouts.iter().map(String::as_str).collect();
        let found = store
            .operations(source, OperationSelection::Payouts(&payouts))
            .await?;
        // The parts of a payout add up; what they hang on is not asked for their sake.
        operations.add(&found);
    }
}

/// Keys that were asked for, and those still to be asked.
#[derive(Default)]
pub(super) struct Keys {
    known: HashSet<String>,
    next: Vec<String>,
    payouts: HashSet<String>,
}

impl Keys {
    pub(super) fn has(&self, key: &str) -> bool {
        let key = key.trim();
        !key.is_empty() && self.known.contains(key)
    }

    fn add(&mut self, key: &str) {
        let key = key.trim();
        if !key.is_empty() && !self.known.contains(key) {
            self.known.insert(key.to_owned());
            self.next.push(key.to_owned());
        }
    }

    pub(super) fn operations_of(&mut self, rows: &Operations) {
        for row in rows.iter() {
            self.operation(&row);
        }
    }

    pub(super) fn operation(&mut self, row: &Operation<'_>) {
        for key in keys_of(row) {
            self.add(key);
        }
    }

    /// Keys of the rows from an index on.
    pub(super) fn intents_of(&mut self, rows: &Intents, from: usize) {
        for row in (from..rows.len()).map(|row| rows.get(row)) {
            self.intent(&row);
        }
    }

    pub(super) fn intent(&mut self, row: &Intent<'_>) {
        for key in keys_of_intent(row) {
            self.add(key);
        }
    }

    pub(super) fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.next)
    }

    /// Payouts whose payout row is at hand or whose parts are: their sums need every part.
    fn take_payouts(&mut self, feed: &Operations, stored: &Operations) -> Vec<String> {
        let mut next = Vec::new();
        for row in feed.iter().chain(stored.iter()) {
            let key = match row.payout_id {
                "" if row.kind == OperationKind::Payout => row.operation_id,
                key => key,
            };
            if !key.is_empty() && !self.payouts.contains(key) {
                self.payouts.insert(key.to_owned());
                next.push(key.to_owned());
            }
        }
        next
    }
}

/// Everything that may name an operation, or that it may name.
pub(super) fn keys_of<'r>(row: &Operation<'r>) -> [&'r str; 4] {
    [
        row.operation_id,
        row.reference,
        row.parent_id,
        row.object_id,
    ]
}

/// Everything that may name an intent, or that it may name.
pub(super) fn keys_of_intent<'r>(row: &Intent<'r>) -> [&'r str; 5] {
    [
        row.intent_id,
        row.idempotency_key,
        row.reference,
        row.processor_ref,
        row.parent_intent_id,
    ]
}

/// Stored operations, each once.
#[derive(Default)]
pub(super) struct Collected {
    pub(super) rows: StoredOperations,
    ids: HashSet<(String, String)>,
}

impl Collected {
    pub(super) fn add(&mut self, found: &StoredOperations) {
        for (at, row) in found.rows.iter().enumerate() {
            if self
                .ids
                .insert((row.account.to_owned(), row.operation_id.to_owned()))
            {
                let linked = found.rows.text.get(found.linked_intent[at]);
                self.rows.rows.push(&row);
                let linked = self.rows.rows.text.push(linked);
                self.rows.linked_intent.push(linked);
                self.rows.linked_rule.push(found.linked_rule[at]);
            }
        }
    }
}

/// Stored intents, each once.
#[derive(Default)]
struct CollectedIntents {
    rows: StoredIntents,
    ids: HashSet<String>,
}

impl CollectedIntents {
    fn add(&mut self, found: &StoredIntents) {
        for (at, row) in found.rows.iter().enumerate() {
            if self.ids.insert(row.intent_id.to_owned()) {
                let text = |span| found.rows.text.get(span);
                self.rows.rows.push(&row);
                let processor_ref = self
                    .rows
                    .rows
                    .text
                    .push(text(found.imported_processor_ref[at]));
                self.rows.imported_status.push(found.imported_status[at]);
                self.rows.imported_processor_ref.push(processor_ref);
                self.rows.answer.push(found.answer[at]);
            }
        }
    }
}
