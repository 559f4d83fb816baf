//! One source's part of a run, from its watermark to its commit: read, gather, compare, guard, write.

use std::collections::BTreeMap;

use crate::exit::{Exit, Failure};
use crate::intents::merge::Merged;
use crate::intents::sql::joined::Joined;
use crate::intents::sql::table::SqlTable;
use crate::meter::Meter;
use crate::model::operation::Operations;
use crate::model::repair::{Repair, RepairState};
use crate::model::run::{Basis, Watermark, Window};
use crate::money::Money;
use crate::reconcile::rules::Frame;
use crate::reconcile::{self, Outcome, Spent};
use crate::source::api::Account;
use crate::source::feed::{Asked, Feed};
use crate::store::contract::{
    Claim, Commit, IntentChanges, Link, Outbox, Receipt, RepairFilter, Store,
};
use crate::time::Instant;

use super::frame::{advance, follows, frame, is_known, window_of, within_reach};
use super::gather::{Gathered, Known, Ours, Question, gather};
use super::held::{beside, renew, while_held};
use super::others::{self, Ahead};
use super::own_side::OwnSide;
use super::pin::Pinning;
use super::prepare::Prepared;
use super::progress::{Progress, Stage, Unit};
use super::run::Job;
use super::told::{Slice, Told};
use super::{carry, compose, second_look};

/// What was read of a source, and what it is to be judged with.
pub(super) struct Read {
    stored: Option<Watermark>,
    /// What occurred before may have been forgotten; `None` = nothing was.
    horizon: Option<Instant>,
    /// Where everything stands when something fails from here on.
    stays: String,
    pinning: Pinning,
    account: Option<Account>,
    window: Window,
    feed: Feed,
}

impl Read {
    /// Whether more time has passed than one slice reads, and everything of this one is there: another slice follows.
    pub(super) fn is_piece(&self) -> bool {
        let asked = self.feed.asked.as_ref();
        asked.is_some_and(|asked| asked.is_behind && asked.is_whole())
    }
}

/// Reads one source from its watermark on, or what was chosen of it: whole, or a piece no longer than one slice may be.
///
/// # Errors
/// Whatever keeps this source from being read; nothing of it is written then.
pub(super) async fn read<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    is_in_pieces: bool,
    own_side: &mut OwnSide,
    claim: Option<&Claim>,
    progress: &mut Progress,
) -> Result<Read, Failure> {
    let source = prepared.source;
    let stored = store.watermark(&source.name).await?;
    let stays = match &stored {
        Some(watermark) => format!(
            "nothing was written; the watermark of {} stays at {}",
            source.name, watermark.hi
        ),
        None => format!("nothing was written; {} has no watermark yet", source.name),
    };
    let staying = |failure: Failure| failure.state(stays.clone());
    let mut pinning = Pinning::of(store, source).await.map_err(staying)?;
    let account = prepared.account(&job.budget).map_err(staying)?;
    let horizon = store.horizon(&source.name).await.map_err(staying)?;
    let wanted = window_of(job, prepared, stored.as_ref())
        .and_then(|window| is_known(window, &source.name, horizon))
        .map(|window| own_side.lend(false).bounded(window))
        .map_err(staying)?;
    // A dry run commits no piece that another one could go on from.
    let window = if is_in_pieces && !job.is_dry_run {
        within_reach(wanted, prepared)
    } else {
        wanted
    };
    let unit = match account {
        Some(_) => Unit::Rows,
        None => Unit::Bytes,
    };
    let meter = progress.stage(Stage::Fetch, &format!("reading {}", source.name), unit);
    let account = account.map(|account| account.counting(meter.clone()));
    let interrupt = &job.interrupt;
    if let Some(account) = &account {
        let asking = async { interrupt.or(account.identify()).await.flatten() };
        let found = while_held(store, job.settings, claim, asking).await;
        found
            .and_then(|told| told.map_or(Ok(()), |told| pinning.told(&told)))
            .map_err(staying)?;
    }
    let read = match (&account, prepared.reader(meter)) {
        (Some(account), _) if account.has_reports() => {
            // A range by hand reads them from the first one.
            let series = match window.basis {
                Basis::Watermark => stored.as_ref().map(|mark| &mark.series),
                Basis::Range | Basis::Files => None,
            };
            let reading = async {
                interrupt
                    .or(account.read_reports(series, window.from))
                    .await
                    .flatten()
            };
            while_held(store, job.settings, claim, reading).await
        }
        (Some(account), _) => {
            let (from, to) = (window.from, window.to.max(window.from));
            let reading = async { interrupt.or(account.read_window(from, to)).await.flatten() };
            while_held(store, job.settings, claim, reading).await
        }
        (None, Some(reader)) => {
            let reading = beside(store, job.settings, claim, interrupt, reader);
            reading.await.flatten()
        }
        (None, None) => unreachable!("a source without files is asked"),
    };
    let mut feed = read
        .and_then(|feed| follows(feed, stored.as_ref(), window))
        .map_err(staying)?;
    if let Some(asked) = &mut feed.asked {
        asked.is_behind = window.to < wanted.to;
        if !asked.account.is_empty() {
            pinning.told(&asked.account).map_err(staying)?;
        }
        if let Some(broken) = asked.broken.take() {
            let state = format!("nothing is called absent; {stays}").replace(
                "nothing was written; ",
                "what was whole before it is judged; ",
            );
            asked.broken = Some(broken.state(state));
        }
    }
    Ok(Read {
        stored,
        horizon,
        stays,
        pinning,
        account,
        window,
        feed,
    })
}

/// Everything that was read of one source is judged and written, or nothing of it.
///
/// # Errors
/// Whatever keeps this source from being judged; nothing of it is written then.
#[allow(
    clippy::too_many_arguments,
    reason = "the straight line names everything that flows into it"
)]
pub(super) async fn slice<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    read: Read,
    is_last: bool,
    own_side: &mut OwnSide,
    claim: Option<&Claim>,
    told: &Told,
    ahead: &mut Ahead,
    spent: &mut Spent,
    progress: &mut Progress,
) -> Result<Slice, Failure> {
    let Read {
        stored,
        horizon,
        stays,
        pinning,
        account,
        window,
        mut feed,
    } = read;
    let source = prepared.source;
    let interrupt = &job.interrupt;
    // Who may ask for single rows judges twice, and so lends the rows of a file only.
    let ours = own_side.lend(is_last && account.is_none());
    let mut frame = frame(
        store,
        job,
        prepared,
        stored.as_ref(),
        horizon,
        window,
        is_last,
        told,
        ahead,
        &feed,
    )
    .await?;
    let operations = std::mem::take(&mut feed.operations);
    tracing::info!(
        source = source.name,
        rows = feed.rows,
        from = %frame.window.from,
        to = %frame.window.to,
        covered = frame.covered.map(|at| at.to_string()),
        "read"
    );
    let judgement = Judgement {
        job,
        prepared,
        claim,
        told,
        is_last,
        fences: stored.as_ref().map(|mark| &mark.series),
        known: Known {
            low: frame.low,
            horizon,
        },
        stays: &stays,
    };
    let looking = account
        .filter(|_| prepared.rules.can_look_up && feed.asked.as_ref().is_some_and(Asked::is_whole));
    let again = looking.is_some().then(|| operations.clone());
    let (mut gathered, mut outcome) = judgement
        .of(store, &mut frame, operations, ours, ahead, progress)
        .await?;
    if let (Some(account), Some(mut operations)) = (looking, again) {
        // What is still open is asked for once, with the last piece of a long way.
        let is_piece = feed.asked.as_ref().is_some_and(|asked| asked.is_behind);
        let questions = second_look::questions(
            &account,
            &source.name,
            &gathered,
            &outcome,
            &frame,
            is_piece,
        );
        if !questions.ids.is_empty() {
            progress.step("asking for single rows", Unit::Rows);
            let asking = async {
                interrupt
                    .or(account.look_up(&questions.ids))
                    .await
                    .flatten()
            };
            let (is_new, broken) = match while_held(store, job.settings, claim, asking).await {
                Ok(found) => {
                    let is_new = found.feed.rows > 0;
                    second_look::take_in(found, &mut feed, &mut operations);
                    (is_new, None)
                }
                Err(failure) if failure.exit == Exit::Incomplete => (
                    true,
                    Some(failure.state("nothing is called absent, and the watermark stays")),
                ),
                Err(failure) => return Err(failure.state(stays)),
            };
            if broken.is_some() {
                frame.covered = None;
            }
            if let Some(asked) = &mut feed.asked {
                asked.not_asked = questions.not_asked;
                asked.broken = broken;
            }
            if is_new {
                let ours = own_side.lend(false);
                (gathered, outcome) = judgement
                    .of(store, &mut frame, operations, ours, ahead, progress)
                    .await?;
            }
            second_look::tell(&mut outcome, &gathered, &feed);
        }
    }
    if let Some(asked) = &mut feed.asked {
        asked.count(&prepared.traffic);
    }
    let money_of = |repair: &Repair| money_of(repair, &outcome);
    let intents = outcome.intent_tally.read;
    if let Some(exceeded) =
        reconcile::guard(&prepared.rules, &outcome.repairs, &money_of, intents, spent)
    {
        return Err(Failure::new(Exit::Refused, format!("source {}: a guard stopped the run: {exceeded}", source.name))
            .why("so many repairs at once are usually a wrong mapping, not so many real differences")
            .remedy("look at the plan with `paysweep run --dry-run`; raise the limit in [guards] if it is right")
            .state(stays));
    }
    spent.add(&outcome.repairs, &money_of, intents);
    let mut hand = interrupt
        .or(Box::pin(carry::ready(job, &outcome)))
        .await
        .flatten()
        .map_err(|failure| failure.state(stays.clone()))?;
    if claim.is_some() {
        carry::hand_over(&job.settings.repair, &mut outcome);
    }
    let fence = gathered.fence.clone();
    let advance = advance(job, prepared, stored.as_ref(), &frame, &feed, fence);
    let receipt = match claim {
        Some(claim) => {
            renew(store, job.settings, Some(claim)).await?;
            let meter = progress.stage(Stage::Apply, "writing", Unit::Rows);
            let stored = stored.as_ref();
            let advance = advance.as_ref();
            let joined = hand.as_mut().and_then(|hand| hand.joined.as_mut());
            let writing = commit(
                store, job, claim, stored, &gathered, &outcome, advance, &feed, &pinning, joined,
                &meter,
            );
            match interrupt.or(writing).await {
                Ok(written) => written?,
                Err(stopped) => {
                    has_taken_hold(store, job, claim, stopped, &stays).await?;
                    // Written before: this gives the answer that was left behind.
                    commit(
                        store, job, claim, stored, &gathered, &outcome, advance, &feed, &pinning,
                        None, &meter,
                    )
                    .await?
                }
            }
        }
        None => interrupt
            .or(known_repairs(store, &outcome))
            .await
            .map_err(|stopped| stopped.state(stays))??,
    };
    // Who is asked to stop leaves what is approved to the next run.
    let handed_over = match claim.filter(|_| job.interrupt.asked().is_none()) {
        Some(claim) => {
            renew(store, job.settings, Some(claim)).await?;
            progress.step("carrying repairs over", Unit::Rows);
            carry::carry_over(store, job, &outcome, &receipt, hand).await
        }
        None => carry::HandedOver::default(),
    };
    settle(&mut outcome, &receipt, &handed_over, job.is_dry_run);
    tracing::info!(
        source = source.name,
        operations = outcome.operation_tally.read,
        intents = outcome.intent_tally.read,
        findings = outcome.findings.len(),
        repairs = outcome.repairs.len(),
        watermark = advance.as_ref().map(|mark| mark.hi.to_string()),
        "judged"
    );
    Ok(Slice::new(
        prepared.source,
        frame,
        stored.as_ref(),
        advance,
        feed,
        gathered,
        outcome,
        receipt,
        handed_over,
    ))
}

/// Compares on a thread of its own.
async fn compare<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    claim: Option<&Claim>,
    gathered: Gathered,
    frame: Frame,
    meter: Meter,
) -> Result<(Gathered, Outcome), Failure> {
    let rules = prepared.rules.clone();
    let comparing = move || {
        let outcome = reconcile::reconcile_counting(&gathered.snapshot(), &rules, &frame, &meter);
        (gathered, outcome)
    };
    beside(store, job.settings, claim, &job.interrupt, comparing).await
}

/// What judging needs beside rows.
struct Judgement<'a, 'b> {
    job: &'a Job<'b>,
    prepared: &'a Prepared<'b>,
    claim: Option<&'a Claim>,
    told: &'a Told,
    is_last: bool,
    /// What the last run left behind in our own table.
    fences: Option<&'a BTreeMap<String, u64>>,
    /// How far back the source is known.
    known: Known,
    /// Where everything stands when it fails.
    stays: &'a str,
}

impl Judgement<'_, '_> {
    /// Gathers what is known of some rows, and compares; where a verdict depends on rows of other sources, these are heard,
    /// and it is compared again. No source writes from its part of a sum.
    async fn of<S: Store>(
        &self,
        store: &mut S,
        frame: &mut Frame,
        operations: Operations,
        ours: Ours<'_, SqlTable>,
        ahead: &mut Ahead,
        progress: &mut Progress,
    ) -> Result<(Gathered, Outcome), Failure> {
        let Judgement {
            job,
            prepared,
            claim,
            told,
            is_last,
            fences,
            known,
            stays,
        } = *self;
        let interrupt = &job.interrupt;
        let question = Question {
            source: &prepared.source.name,
            scope: &prepared.rules.scope,
            since: frame.window.from.minus(prepared.reach()),
            until: frame.window.to,
            judges_unowned: is_last,
            as_of: job.as_of,
            fences,
            known,
        };
        renew(store, job.settings, claim).await?;
        progress.stage(Stage::Load, "gathering what is known", Unit::Rows);
        let gathering = interrupt
            .or(gather(store, question, operations, ours))
            .await;
        let mut gathered = gathering.map_err(|stopped| stopped.state(stays))??;
        if job.is_dry_run {
            gathered.hear(&told.standings(None));
        }
        others::tell(store, job, prepared, told, &mut gathered).await?;
        renew(store, job.settings, claim).await?;
        let meter = progress.stage(Stage::Compare, "comparing", Unit::Rows);
        let (mut gathered, mut outcome) =
            compare(store, job, prepared, claim, gathered, *frame, meter)
                .await
                .map_err(|failure| failure.state(stays))?;
        if job.settings.sources.len() > 1 && !outcome.unsure.is_empty() {
            let unsure = &outcome.unsure;
            others::ask(
                store,
                job,
                prepared,
                claim,
                told,
                ahead,
                &mut gathered,
                unsure,
                frame,
            )
            .await
            .map_err(|failure| failure.state(stays))?;
            let meter = progress.step("comparing again", Unit::Rows);
            (gathered, outcome) = compare(store, job, prepared, claim, gathered, *frame, meter)
                .await
                .map_err(|failure| failure.state(stays))?;
        }
        if !outcome.violations.is_empty() {
            return Err(Failure::new(
                Exit::Internal,
                format!(
                    "source {}: the accounts do not add up",
                    prepared.source.name
                ),
            )
            .why(outcome.violations.join("; "))
            .remedy("please report this with the two files")
            .state(stays));
        }
        Ok((gathered, outcome))
    }
}

/// Whether a commit that was left in the middle took hold all the same; else why it did not. A commit keeps the row of
/// its claim until it has ended one way or the other, so giving the source back waits for that.
async fn has_taken_hold<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    claim: &Claim,
    stopped: Failure,
    stays: &str,
) -> Result<(), Failure> {
    let settled = match store.release(claim).await {
        Ok(()) => store.is_committed(&job.run_id, &claim.source).await,
        Err(failure) => Err(failure),
    };
    match settled {
        Ok(true) => Ok(()),
        Ok(false) => Err(stopped.state(stays)),
        Err(failure) => Err(stopped
            .why(failure.what)
            .state("the outcome of the last window is unknown; it is all there or not at all")),
    }
}

/// The money that a repair is about, for the guard on amounts.
fn money_of(repair: &Repair, outcome: &Outcome) -> Option<Money> {
    repair.to.money.or_else(|| {
        outcome
            .findings
            .iter()
            .find(|finding| finding.found.id == repair.break_id)
            .and_then(|finding| finding.found.money)
    })
}

#[allow(
    clippy::too_many_arguments,
    reason = "the commit is made of all of these"
)]
async fn commit<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    claim: &Claim,
    stored: Option<&Watermark>,
    gathered: &Gathered,
    outcome: &Outcome,
    advance: Option<&Watermark>,
    feed: &Feed,
    pinning: &Pinning,
    joined: Option<&mut Joined>,
    meter: &Meter,
) -> Result<Receipt, Failure> {
    let merged = &gathered.merged;
    // One operation answers an intent; where one is stored already, a further one is a member beside it.
    let linked = gathered.linked_intents();
    let links: Vec<Link<'_>> = outcome
        .links
        .iter()
        .filter(|link| !gathered.knows(link.operation, link.intent))
        .map(|link| Link {
            operation: link.operation,
            intent_id: merged
                .intents
                .text
                .get(merged.intents.intent_id[link.intent]),
            rule: link.rule,
            is_principal: link.is_principal && !linked.contains(&link.intent),
        })
        .collect();
    let new = Merged::indices(&merged.is_new);
    let changed = Merged::indices(&merged.is_changed);
    let touched = Merged::indices(&merged.is_touched);
    let breaks: Vec<crate::model::breaks::Break> = outcome
        .findings
        .iter()
        .map(|finding| finding.found.clone())
        .collect();
    let file_names: Vec<String> = feed.files.iter().map(|file| file.name.clone()).collect();
    let totals = compose::totals_json(outcome);
    let on_conflict = |repair: &Repair, why: &str| compose::conflict(repair, why, job.as_of);
    let commit = Commit {
        run_id: &job.run_id,
        scope: &job.settings.intents.name,
        as_of: job.as_of,
        expected_watermark: stored.map(|watermark| watermark.hi),
        operations: &gathered.recognised.operations,
        files: &file_names,
        new_operations: &outcome.new_operations,
        updated_operations: &outcome.moved_operations,
        rejected_operations: &outcome.rejected_changes,
        intents: Some(IntentChanges {
            rows: &merged.intents,
            imported_status: &merged.imported_status,
            imported_processor_ref: &merged.imported_processor_ref,
            new: &new,
            changed: &changed,
            touched: &touched,
            superseded: &merged.superseded,
            confirmed: &merged.confirmed,
        }),
        links: &links,
        breaks: &breaks,
        resolved: &outcome.resolved,
        repairs: &outcome.repairs,
        on_conflict: &on_conflict,
        advance_to: advance,
        pin: pinning.to_write(),
        totals_json: &totals,
        meter,
    };
    meter.expect(commit.rows());
    let Some(joined) = joined else {
        return store.commit(claim, &commit).await;
    };
    match store.commit_along(claim, &commit, joined).await {
        // What was written along may be why it did not take hold. It has a way of its own, and the run need not wait for it.
        Err(failure) if joined.has_tried() && failure.exit != Exit::Locked => {
            tracing::warn!("repairs are written apart from the ledger, since: {failure}");
            store.commit(claim, &commit).await
        }
        done => done,
    }
}

/// For a dry run: which of the planned repairs the ledger knows already.
async fn known_repairs<S: Store + Outbox>(
    store: &mut S,
    outcome: &Outcome,
) -> Result<Receipt, Failure> {
    let mut receipt = Receipt::nothing_written();
    for repair in &outcome.repairs {
        let filter = RepairFilter {
            id_prefix: &repair.id,
            ..RepairFilter::default()
        };
        if store.repairs(&filter).await?.is_empty() {
            receipt.repairs_written.push(repair.id.clone());
        } else {
            receipt.held.push(repair.id.clone());
        }
    }
    Ok(receipt)
}

/// Brings the outcome in line with what the store did: repairs that it holds already are not told as written, and breaks
/// whose repair did not go through stay open.
fn settle(
    outcome: &mut Outcome,
    receipt: &Receipt,
    handed_over: &carry::HandedOver,
    is_dry_run: bool,
) {
    use crate::model::breaks::{BreakDisposition, BreakState};
    let failed: Vec<&String> = receipt.held.iter().chain(&receipt.conflicts).collect();
    for repair in &outcome.repairs {
        let is_undone = match handed_over.states.get(&repair.id) {
            Some(state) => *state != RepairState::Applied,
            None if receipt.applied.contains(&repair.id) => false,
            None => failed.contains(&&repair.id) || repair.state == RepairState::Approved,
        };
        if is_undone {
            for finding in &mut outcome.findings {
                if finding.found.id == repair.break_id
                    && finding.found.disposition == BreakDisposition::Repaired
                {
                    finding.found.disposition = BreakDisposition::Review;
                    finding.found.state = BreakState::Open;
                }
            }
        }
    }
    outcome.repairs.retain(|repair| {
        !receipt.held.contains(&repair.id) || handed_over.states.contains_key(&repair.id)
    });
    for repair in &mut outcome.repairs {
        if let Some(state) = handed_over.states.get(&repair.id) {
            repair.state = *state;
        } else if receipt.applied.contains(&repair.id) {
            repair.state = RepairState::Applied;
        } else if receipt.conflicts.contains(&repair.id) {
            repair.state = RepairState::Failed;
        } else if is_dry_run {
            repair.state = RepairState::Planned;
        }
    }
}
