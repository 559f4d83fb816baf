//! What a run has to tell: its slices as they were judged, and what failed.

use std::collections::{HashMap, HashSet};

use crate::exit::Failure;
use crate::model::answer::{Others, Standing, Standings};
use crate::model::breaks::Break;
use crate::model::intent::IntentKind;
use crate::model::repair::Repair;
use crate::model::run::{Basis, Watermark};
use crate::model::verdict::{Disposition, Pending};
use crate::reconcile::conversions::{Conversions, conversions};
use crate::reconcile::rules::{Frame, Rules};
use crate::reconcile::{self, Outcome, Seen};
use crate::report::Check;
use crate::settings::SourceSettings;
use crate::source::feed::Feed;
use crate::store::contract::{Carried as StoredCarried, LedgerHead, Receipt, Unconfirmed};
use crate::time::{Instant, Span};

use super::carry::HandedOver;
use super::gather::Gathered;
use super::others::{self, Search};

/// One source of a run, judged and — unless dry — committed.
pub struct Slice {
    pub(super) name: String,
    pub(super) has_memory: bool,
    has_stored_watermark: bool,
    pub(super) frame: Frame,
    pub(super) watermark_before: Option<Instant>,
    pub(super) watermark_after: Option<Instant>,
    pub(super) feed: Feed,
    pub(super) gathered: Gathered,
    pub(super) outcome: Outcome,
    pub(super) conflict_breaks: Vec<Break>,
    /// Why repairs could not be carried over into the company's own table.
    pub(super) not_carried: Option<Failure>,
    /// Lag and lookback, where a stored watermark leads.
    spans: Option<(Span, Span)>,
}

impl Slice {
    /// A source of `run`.
    #[allow(
        clippy::too_many_arguments,
        reason = "a slice is what all of these came to"
    )]
    pub fn new(
        source: &SourceSettings,
        frame: Frame,
        stored: Option<&Watermark>,
        advance: Option<Watermark>,
        feed: Feed,
        gathered: Gathered,
        outcome: Outcome,
        receipt: Receipt,
        handed_over: HandedOver,
    ) -> Slice {
        let mut conflict_breaks = receipt.conflict_breaks;
        conflict_breaks.extend(handed_over.conflict_breaks);
        let before = stored.map_or(source.start, |watermark| watermark.hi);
        Slice {
            name: source.name.clone(),
            has_memory: true,
            has_stored_watermark: stored.is_some(),
            frame,
            watermark_before: Some(before),
            watermark_after: Some(advance.as_ref().map_or(before, |watermark| watermark.hi)),
            feed,
            gathered,
            outcome,
            conflict_breaks,
            not_carried: handed_over.failure,
            spans: stored.and(advance).map(|mark| (mark.lag, mark.lookback)),
        }
    }

    /// A comparison without a memory.
    pub fn without_memory(
        name: &str,
        frame: Frame,
        feed: Feed,
        gathered: Gathered,
        outcome: Outcome,
    ) -> Slice {
        Slice {
            name: name.to_owned(),
            has_memory: false,
            has_stored_watermark: false,
            frame,
            watermark_before: None,
            watermark_after: None,
            feed,
            gathered,
            outcome,
            conflict_breaks: Vec::new(),
            not_carried: None,
            spans: None,
        }
    }
}

impl Slice {
    /// Whether anything differed.
    pub(super) fn has_found(&self) -> bool {
        !self.outcome.findings.is_empty() || !self.conflict_breaks.is_empty()
    }

    /// The conversions among its rows, those included that were read for linking only.
    pub(super) fn conversions(&self) -> Conversions {
        let rows = &self.gathered.recognised;
        conversions(&rows.operations, &rows.seen)
    }

    /// Lag and lookback in seconds, where this run went on from a stored watermark.
    pub(super) fn spans_of_next_run(&self) -> Option<(i64, i64)> {
        const MICROS_PER_SECOND: i64 = 1_000_000;
        self.spans
            .map(|(lag, lookback)| (lag.0 / MICROS_PER_SECOND, lookback.0 / MICROS_PER_SECOND))
    }

    /// The oldest row of a feed that does not reach back to where the last run ended.
    pub(super) fn begins_after_watermark(&self) -> Option<Instant> {
        let operations = &self.gathered.recognised.operations;
        let oldest = (0..operations.len())
            .filter(|&row| !matches!(self.gathered.recognised.seen[row], Seen::Stored))
            .map(|row| operations.occurred_at[row])
            .min()?;
        let is_next_run = self.frame.window.basis == Basis::Watermark && self.has_stored_watermark;
        (is_next_run && self.watermark_before.is_some_and(|mark| oldest > mark)).then_some(oldest)
    }

    /// Tells the intents of an owner for whom nobody speaks as pending, and those that claim nothing as the core says.
    fn wait_for(&mut self, owner: &str, rules: &Rules) {
        let is_unowned = owner.is_empty();
        let frame = Frame {
            judges_unowned: is_unowned,
            covered: self.frame.covered.filter(|_| is_unowned),
            others_covered: None,
            ..self.frame
        };
        let mut rules = rules.clone();
        if !is_unowned {
            owner.clone_into(&mut rules.source);
        }
        let answer = reconcile::reconcile(&self.gathered.snapshot(), &rules, &frame);
        for (row, intent) in self.gathered.merged.intents.iter().enumerate() {
            let is_told = self.outcome.intents[row] != Disposition::OutOfScope;
            if is_told || intent.source != owner {
                continue;
            }
            let tally = &mut self.outcome.intent_tally;
            self.outcome.intents[row] = match answer.intents[row] {
                Disposition::OutOfScope => continue,
                Disposition::Ignored(reason) => {
                    tally.ignored += 1;
                    Disposition::Ignored(reason)
                }
                Disposition::Matched | Disposition::Pending | Disposition::Unmatched => {
                    tally.pending += 1;
                    self.outcome.pending.push(Pending {
                        intent: Some(row),
                        operation: None,
                        due_at: Some(intent.created_at.plus(rules.grace.of(intent.kind))),
                        why: "not every source was read whole",
                    });
                    Disposition::Pending
                }
            };
            tally.read += 1;
        }
    }

    /// How far the source is complete.
    pub fn covered(&self) -> Option<Instant> {
        self.frame.covered
    }
}

/// Everything that a run has to tell.
#[derive(Default)]
pub struct Told {
    /// Sources that were judged.
    pub slices: Vec<Slice>,
    /// Sources that could not be.
    pub failures: Vec<Failure>,
    pub(super) failed_sources: Vec<String>,
    /// Whether somebody asked to stop before every source was judged.
    pub is_partial: bool,
    /// What earlier runs owe.
    pub carried: StoredCarried,
    /// Repairs that no import has shown yet.
    pub unconfirmed: Unconfirmed,
    /// Where the chain of the ledger ends; `None` = there is no ledger, or nobody asked.
    pub ledger: Option<LedgerHead>,
    /// What was verified about our own side.
    pub(super) checks: Vec<Check>,
}

impl Told {
    /// A source failed.
    pub fn fail(&mut self, source: &str, failure: Failure) {
        self.failed_sources.push(source.to_owned());
        self.failures.push(failure);
    }

    /// Somebody asked to stop before a source was judged.
    pub fn stop(&mut self, source: &str, stopped: Failure) {
        self.is_partial = true;
        self.fail(source, stopped);
    }

    /// What earlier runs owe about a source that is this run's now.
    pub fn carry(&mut self, owed: StoredCarried) {
        let all = &mut self.carried;
        all.runs.extend(owed.runs);
        all.runs.sort();
        all.runs.dedup();
        let is_new = |item: &Break| all.breaks.iter().all(|known| known.id != item.id);
        let breaks: Vec<Break> = owed.breaks.into_iter().filter(is_new).collect();
        all.breaks.extend(breaks);
        let is_new = |item: &Repair| all.repairs.iter().all(|known| known.id != item.id);
        let repairs: Vec<Repair> = owed.repairs.into_iter().filter(is_new).collect();
        all.repairs.extend(repairs);
    }

    /// How the operations that the sources so far answer intents with stand, by intent; those of one slice left out.
    pub(super) fn standings(&self, but: Option<usize>) -> HashMap<String, Standing> {
        let mut sums: HashMap<&str, (IntentKind, Standings)> = HashMap::new();
        let slices = self.slices.iter().enumerate();
        for (_, slice) in slices.filter(|(at, _)| Some(*at) != but) {
            let (operations, intents) = (
                &slice.gathered.recognised.operations,
                &slice.gathered.merged.intents,
            );
            for link in &slice.outcome.links {
                let intent = intents.get(link.intent);
                sums.entry(intent.intent_id)
                    .or_insert((intent.kind, Standings::default()))
                    .1
                    .add(&operations.get(link.operation));
            }
        }
        sums.into_iter()
            .map(|(id, (kind, sum))| (id.to_owned(), sum.standing(kind)))
            .collect()
    }

    /// Judges every slice again, now that all others are known, with what they show and what those before it tell.
    pub(super) fn judge_again(
        &mut self,
        rules: &[Rules],
        judge: impl Fn(usize, &Gathered, &Frame) -> Result<Outcome, Failure>,
    ) -> Result<(), Failure> {
        let count = self.slices.len();
        if count < 2 {
            return Ok(());
        }
        for at in 0..self.slices.len() {
            let standings = self.standings(Some(at));
            let others = self.slices.iter().enumerate();
            let others_covered = others
                .filter(|(other, _)| *other != at)
                .try_fold(Instant::MAX, |all, (_, other)| {
                    Some(all.min(other.frame.covered?))
                });
            let told = others::told_by(&self.slices[..at]);
            let told = self.slices[at].gathered.rows_of(&told);
            let slice = &mut self.slices[at];
            slice.frame.others_covered = others_covered;
            if at + 1 < count {
                slice.gathered.hear(&standings);
            }
            slice.gathered.others.told = told.into_iter().collect();
            slice.outcome = judge(at, &slice.gathered, &slice.frame)?;
            if slice.outcome.unsure.is_empty() {
                continue;
            }
            let mut shown = Others {
                told: slice.gathered.others.told.clone(),
                ..Others::default()
            };
            let slice = &self.slices[at];
            let unsure = &slice.outcome.unsure;
            shown.asked.extend(unsure);
            for (other, rules) in self.slices.iter().zip(rules) {
                if other.name != slice.name {
                    let operations = &other.gathered.recognised.operations;
                    let intents = &slice.gathered.merged.intents;
                    let mut search = Search::new(intents, unsure, Some(operations));
                    while !search.more().is_empty() {}
                    search.end(rules, &slice.frame, &mut shown);
                }
            }
            let slice = &mut self.slices[at];
            slice.gathered.others = shown;
            slice.outcome = judge(at, &slice.gathered, &slice.frame)?;
        }
        Ok(())
    }

    /// Sources whose lists broke off, and why.
    pub(super) fn broken_off(&self) -> impl Iterator<Item = (&str, &Failure)> {
        let slices = self.slices.iter();
        slices.filter_map(|slice| {
            Some((
                slice.name.as_str(),
                slice.feed.asked.as_ref()?.broken.as_ref()?,
            ))
        })
    }

    /// Whether a source was read and judged.
    pub(super) fn has_read(&self, source: &str) -> bool {
        self.slices.iter().any(|slice| slice.name == source)
    }

    /// Where a source could not be read, its intents wait, and so do those of no source where the one that would have
    /// spoken of them could not be: they are told as pending. `rules` are those of the last source that was read.
    pub(super) fn wait_for_unread(&mut self, rules: &Rules, is_last_of_all: bool) {
        let Some(slice) = self.slices.last_mut() else {
            return;
        };
        for name in &self.failed_sources {
            slice.wait_for(name, rules);
        }
        if !is_last_of_all {
            slice.wait_for("", rules);
        }
    }

    /// For each slice, the intents that another slice says more about; of equal verdicts the first counts.
    pub(super) fn told_by_others(&self) -> Vec<HashSet<usize>> {
        let mut weaker = vec![HashSet::new(); self.slices.len()];
        if self.slices.len() < 2 {
            return weaker;
        }
        let mut strongest: HashMap<&str, (usize, usize, u8)> = HashMap::new();
        for (at, slice) in self.slices.iter().enumerate() {
            for (row, intent) in slice.gathered.merged.intents.iter().enumerate() {
                let weight = match slice.outcome.intents[row] {
                    Disposition::OutOfScope => continue,
                    Disposition::Ignored(_) => 1,
                    Disposition::Pending => 2,
                    Disposition::Matched => 3,
                    Disposition::Unmatched => 4,
                };
                let best = strongest.entry(intent.intent_id).or_insert((at, row, 0));
                if weight > best.2 {
                    if best.2 > 0 {
                        weaker[best.0].insert(best.1);
                    }
                    *best = (at, row, weight);
                } else {
                    weaker[at].insert(row);
                }
            }
        }
        weaker
    }

    /// How far a source of this run is covered: `None` = it has not been read in this run.
    #[allow(
        clippy::option_option,
        reason = "not read yet, read to nowhere, read so far"
    )]
    pub fn covered(&self, source: &str) -> Option<Option<Instant>> {
        if self.failed_sources.iter().any(|name| name == source) {
            return Some(None);
        }
        self.slices
            .iter()
            .find(|slice| slice.name == source)
            .map(|slice| slice.frame.covered)
    }
}
