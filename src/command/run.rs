//! The scheduled job, as one straight line:
//!
//! ```text
//! claim the source ─► window ─► read the feed ─► gather what is stored ─► reconcile ─► guards ─► commit ─► tell
//! ```
//!
//! Nothing flows back. A dry run is the same line up to the commit, on a store that is only read. A file source is one
//! slice: everything of it is committed, or nothing.

use std::path::PathBuf;
use std::sync::Arc;

use crate::cli::{CommonArgs, RunArgs};
use crate::exit::{Exit, Failure};
use crate::intents::merge::Merged;
use crate::intents::sql::table::SqlTable;
use crate::model::operation::Operations;
use crate::model::repair::{Repair, RepairState};
use crate::model::run::{Basis, Watermark};
use crate::money::Money;
use crate::reconcile::rules::Frame;
use crate::reconcile::{self, Outcome};
use crate::report::RunReport;
use crate::settings::Settings;
use crate::settings::window::{self, WindowChoice};
use crate::source::feed::{Asked, Feed};
use crate::source::http::Budget;
use crate::store::any::AnyStore;
use crate::store::contract::{
    Begun, Claim, Commit, IntentChanges, Link, Outbox, Receipt, RepairFilter, RunEnd, RunKey,
    RunStart, Store,
};
use crate::time::Instant;

use super::alert::Channels;
use super::carry;
use super::compose;
use super::frame::{advance, follows, frame, window_of, within_reach};
use super::gather::{Gathered, Ours, Question, gather};
use super::held::{beside, release, renew, while_held};
use super::interrupt::Interrupt;
use super::metrics::{self, Ended, Metrics};
use super::others::{self, Ahead};
use super::own_side::OwnSide;
use super::prepare::Prepared;
use super::progress::{Progress, Stage, Stages};
use super::told::{Slice, Told};
use super::{World, deliver, second_look};

/// `paysweep run`.
pub async fn execute(
    arguments: &RunArgs,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let names = super::source_names(&settings, common)?;
    let started_at = (world.clock)();
    let untouched = "nothing was read or written";
    let as_of = window::as_of(common.as_of.as_deref(), &settings.timezone, started_at)
        .map_err(|failure| failure.state(untouched))?;
    let choice = window::choose(&arguments.window.flags(), &settings.timezone, as_of)
        .map_err(|failure| failure.state(untouched))?;
    let sources = names
        .iter()
        .map(|name| Prepared::new(settings.source(name)?))
        .collect::<Result<Vec<Prepared<'_>>, Failure>>()
        .map_err(|failure| failure.state(untouched))?;
    let job = Job {
        settings: &settings,
        sources: &sources,
        names: &names,
        as_of,
        started_at,
        choice,
        run_id: uuid::Uuid::now_v7().to_string(),
        owner: uuid::Uuid::now_v7().to_string(),
        started_by: super::named_person(world),
        is_dry_run: common.dry_run,
        interrupt: world.interrupt.clone(),
        budget: Arc::new(Budget::new(arguments.max_requests)),
    };
    let mut outside = Outside {
        channels: if common.dry_run {
            Channels::none()
        } else {
            Channels::of(&settings)
        },
        metrics: Metrics::of(arguments)?,
        last_words: last_words_file(arguments, world).filter(|_| !common.dry_run),
        is_dry_run: common.dry_run,
    };
    job.interrupt.ask_after(arguments.deadline);
    let ended = Box::pin(open_and_run(&job, arguments, common, &mut outside, world)).await;
    if let Err(failure) = &ended {
        outside
            .failed(failure, &job, None::<&mut AnyStore>, world)
            .await;
    }
    ended
}

async fn open_and_run(
    job: &Job<'_>,
    arguments: &RunArgs,
    common: &CommonArgs,
    outside: &mut Outside<'_>,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let (settings, names) = (job.settings, job.names);
    let untouched = "nothing was read or written";
    let opening = async {
        if common.dry_run {
            super::store_to_read(settings).await
        } else {
            super::store(settings).await
        }
    };
    match job.interrupt.or(opening).await {
        Ok(opened) => Box::pin(run(&mut opened?, job, arguments, common, outside, world)).await,
        Err(stopped) => {
            let mut told = Told::default();
            for name in names {
                told.stop(name, again(&stopped).state(untouched));
            }
            let mut report = tell(&told, job, common, world);
            outside
                .tell(&mut report, job, None::<&mut AnyStore>, world)
                .await;
            outside.say_last_words(job, &report);
            deliver::deliver(&report, common, Some(settings), world)?;
            Ok(report.outcome.exit)
        }
    }
}

/// Whom a run tells beside its report.
struct Outside<'a> {
    channels: Channels<'a>,
    metrics: Metrics,
    last_words: Option<PathBuf>,
    is_dry_run: bool,
}

impl Outside<'_> {
    /// Tells the channels, and says in the report what became of it.
    async fn tell<S: Store>(
        &mut self,
        report: &mut RunReport,
        job: &Job<'_>,
        store: Option<&mut S>,
        world: &World<'_>,
    ) {
        let seen = deliver::seen_outside(report, Some(job.settings)).into_owned();
        let is_hurried = job.interrupt.asked().is_some();
        let now = (world.clock)();
        self.channels
            .end(report, &seen, store, now, is_hurried)
            .await;
    }

    /// Tells of a failure that left no report.
    async fn failed<S: Store>(
        &mut self,
        failure: &Failure,
        job: &Job<'_>,
        store: Option<&mut S>,
        world: &World<'_>,
    ) {
        let now = (world.clock)();
        let run = compose::run_info(&facts(job, now));
        let is_hurried = job.interrupt.asked().is_some();
        self.channels
            .fail(failure, run, store, now, is_hurried)
            .await;
        if let Some(path) = &self.last_words {
            metrics::last_words(path, failure.exit, None, Some(failure));
        }
    }

    /// Gauges, once the end of the run is recorded.
    async fn measure<S: Store>(&self, store: &mut S, job: &Job<'_>, ended: &Ended<'_>) {
        if self.is_dry_run || !self.metrics.are_wanted() {
            return;
        }
        match metrics::gauges(store, job.settings, ended).await {
            Ok(gauges) => {
                let is_hurried = job.interrupt.asked().is_some();
                self.metrics.publish(&gauges, is_hurried).await;
            }
            Err(failure) => tracing::warn!("there are no metrics of this run: {failure}"),
        }
    }

    fn say_last_words(&self, job: &Job<'_>, report: &RunReport) {
        if let Some(path) = &self.last_words {
            let seen = deliver::seen_outside(report, Some(job.settings));
            metrics::last_words(path, report.outcome.exit, Some(&seen), None);
        }
    }
}

/// Where the last words of a container go: as typed, or in Kubernetes where it keeps them.
fn last_words_file(arguments: &RunArgs, world: &World<'_>) -> Option<PathBuf> {
    const OF_KUBERNETES: &str = "/dev/termination-log";
    let is_kubernetes = (world.env)("KUBERNETES_SERVICE_HOST").is_some_and(|it| !it.is_empty());
    arguments.termination_log.clone().or_else(|| {
        let path = PathBuf::from(OF_KUBERNETES);
        (is_kubernetes && path.exists()).then_some(path)
    })
}

/// What was asked for.
pub(crate) struct Job<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) sources: &'a [Prepared<'a>],
    pub(crate) names: &'a [String],
    pub(crate) as_of: Instant,
    pub(crate) started_at: Instant,
    pub(crate) choice: WindowChoice,
    pub(crate) run_id: String,
    pub(crate) owner: String,
    pub(crate) started_by: String,
    pub(crate) is_dry_run: bool,
    pub(crate) interrupt: Interrupt,
    /// Requests to processors, over all sources.
    pub(crate) budget: Arc<Budget>,
}

async fn run<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    arguments: &RunArgs,
    common: &CommonArgs,
    outside: &mut Outside<'_>,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    if let Some(exit) = begin(store, job, arguments, common, world).await? {
        return Ok(exit);
    }
    outside.channels.begin(&job.run_id).await;
    // Held until everything is told: who comes next finds a source whose last run has told it, or died.
    let mut claims = Vec::new();
    let ended = judge_and_tell(store, job, &mut claims, common, outside, world).await;
    for claim in &claims {
        release(store, claim).await;
    }
    ended
}

async fn judge_and_tell<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    claims: &mut Vec<Claim>,
    common: &CommonArgs,
    outside: &mut Outside<'_>,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let mut progress = Progress::new(common.progress, world.is_stderr_terminal, common.quiet);
    let mut told = Told::default();
    let result = slices(store, job, claims, &mut told, &mut progress).await;
    progress.finish();
    progress.stage(Stage::Report, "telling", None);
    if let Err(failure) = result {
        // Nothing of any source could be judged: there is no report, only the reasons.
        for other in &told.failures {
            world.tell(other);
        }
        outside
            .failed(&failure, job, Some(&mut *store), world)
            .await;
        end(store, job, world, failure.exit, failure.exit.name(), None).await?;
        let ended = measured(failure.exit, None, job, world, progress.stages());
        outside.measure(store, job, &ended).await;
        return Err(failure);
    }
    if told.is_partial {
        // A report that nobody takes must not keep the source.
        for claim in &*claims {
            release(store, claim).await;
        }
    } else {
        told.unconfirmed = store.unconfirmed(&job.settings.intents.name).await?;
        told.ledger = Some(store.ledger_head().await?);
    }
    let mut report = tell(&told, job, common, world);
    outside
        .tell(&mut report, job, Some(&mut *store), world)
        .await;
    outside.say_last_words(job, &report);
    let delivered = deliver::deliver(&report, common, Some(job.settings), world);
    if !job.is_dry_run {
        let mut json = Vec::new();
        crate::report::json::write(&report, &mut json).map_err(|error| {
            Failure::new(Exit::Internal, "the report could not be rendered").why(error.to_string())
        })?;
        let json = String::from_utf8_lossy(&json);
        let (exit, name) = (report.outcome.exit, report.outcome.name.as_str());
        let ended = end(store, job, world, exit, name, Some(&json)).await;
        let figures = measured(exit, Some(&report), job, world, progress.stages());
        outside.measure(store, job, &figures).await;
        if told.is_partial {
            // What was committed is told again by the next run: who stops a run need not read its report.
            if let Err(failure) = ended {
                tracing::warn!("the end of the run was not recorded: {failure}");
            }
            delivered?;
            return Ok(exit);
        }
        ended?;
        if delivered.is_ok() {
            let mut runs: Vec<&str> = told.carried.runs.iter().map(String::as_str).collect();
            runs.push(&job.run_id);
            let mut sources: Vec<&str> = claims.iter().map(|claim| claim.source.as_str()).collect();
            sources.push(&job.settings.intents.name);
            store.mark_reported(&runs, &sources, &job.run_id).await?;
        }
    }
    delivered?;
    Ok(report.outcome.exit)
}

/// Tells what failed on stderr, and composes the report.
fn tell(told: &Told, job: &Job<'_>, common: &CommonArgs, world: &mut World<'_>) -> RunReport {
    for failure in &told.failures {
        world.tell(failure);
    }
    for (_, broken) in told.broken_off() {
        world.tell(broken);
    }
    for failure in told.slices.iter().filter_map(|it| it.not_carried.as_ref()) {
        world.tell(failure);
    }
    compose::report(told, &facts(job, (world.clock)()), common)
}

/// What a report says of the run itself.
fn facts<'j>(job: &'j Job<'_>, finished_at: Instant) -> compose::RunFacts<'j> {
    compose::RunFacts {
        run_id: &job.run_id,
        command: "run",
        is_dry_run: job.is_dry_run,
        as_of: job.as_of,
        started_at: job.started_at,
        finished_at,
        settings: Some(job.settings),
        zone: job.settings.timezone.clone(),
        fallback_window: job.choice,
    }
}

fn measured<'r>(
    exit: Exit,
    report: Option<&'r RunReport>,
    job: &Job<'_>,
    world: &World<'_>,
    stages: &'r Stages,
) -> Ended<'r> {
    Ended {
        exit,
        report,
        started_at: job.started_at,
        finished_at: (world.clock)(),
        stages,
    }
}

/// Records the run; a run key that is done gives its outcome again.
async fn begin<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    arguments: &RunArgs,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Option<Exit>, Failure> {
    if job.is_dry_run {
        return Ok(None);
    }
    let fingerprint = fingerprint(job, arguments, common);
    let start = RunStart {
        run_id: &job.run_id,
        command: "run",
        sources: job.names,
        as_of: job.as_of,
        started_at: job.started_at,
        version: env!("CARGO_PKG_VERSION"),
        config_hash: &job.settings.digest,
        run_key: common.run_key.as_deref().map(|key| RunKey {
            key,
            fingerprint: &fingerprint,
        }),
        started_by: &job.started_by,
        owner: &job.owner,
        ttl: job.settings.lease,
    };
    match store.begin(&start).await? {
        Begun::New => Ok(None),
        Begun::Done {
            run_id,
            exit_code,
            report_json,
        } => {
            let exit = Exit::ALL
                .into_iter()
                .find(|exit| exit.code() == exit_code)
                .unwrap_or(Exit::Internal);
            if let Some(json) = report_json {
                super::runs::show_again(&json, common, job.settings, world)?;
            } else {
                let _ = writeln!(
                    world.stderr,
                    "run {run_id} under this --run-key ended with {exit_code}"
                );
            }
            Ok(Some(exit))
        }
    }
}

/// What makes two executions under one key the same: never the data.
fn fingerprint(job: &Job<'_>, arguments: &RunArgs, common: &CommonArgs) -> String {
    reconcile::fingerprint(&[
        "run",
        &job.names.join("\n"),
        &format!("{:?}", arguments.window.flags()),
        common.as_of.as_deref().unwrap_or(""),
        &job.settings.digest,
    ])
}

async fn end<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    world: &World<'_>,
    exit: Exit,
    outcome: &str,
    report_json: Option<&str>,
) -> Result<(), Failure> {
    if job.is_dry_run {
        return Ok(());
    }
    let is_completed = matches!(exit, Exit::Ok | Exit::Differences);
    store
        .finish_run(&RunEnd {
            run_id: &job.run_id,
            finished_at: (world.clock)(),
            exit_code: exit.code(),
            outcome,
            report_json,
            is_completed,
        })
        .await
}

/// One slice for each source. A source that fails does not stop the others; when all fail, the worst failure speaks.
async fn slices<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    claims: &mut Vec<Claim>,
    told: &mut Told,
    progress: &mut Progress,
) -> Result<(), Failure> {
    progress.stage(Stage::Load, "reading intents", None);
    let mut own_side = OwnSide::open(job.settings, job.sources, &job.interrupt)
        .await
        .map_err(|failure| failure.state("nothing was written"))?;
    told.checks
        .extend(own_side.check(&job.settings.intents, job.sources, job.as_of));
    let mut ahead = Ahead::default();
    for (n, prepared) in job.sources.iter().enumerate() {
        let is_last = n + 1 == job.sources.len();
        if let Some(stopped) = job.interrupt.asked() {
            let state = "nothing of this source was read or written";
            told.stop(&prepared.source.name, stopped.state(state));
            continue;
        }
        let claim = if job.is_dry_run {
            None
        } else {
            match store
                .claim(
                    &prepared.source.name,
                    &job.run_id,
                    &job.owner,
                    job.settings.lease,
                )
                .await
            {
                Ok(claim) => Some(claim),
                Err(failure) => {
                    told.fail(
                        &prepared.source.name,
                        failure.state("nothing of this source was read or written"),
                    );
                    continue;
                }
            }
        };
        let owners = [&*prepared.source.name, &*job.settings.intents.name];
        if claim.is_some() {
            match carry::find_out(store, job, &prepared.source.name).await {
                Ok(found) => told.checks.extend(found),
                Err(failure) => {
                    told.fail(
                        &prepared.source.name,
                        failure.state("nothing of this source was read or written"),
                    );
                    claims.extend(claim);
                    continue;
                }
            }
        }
        match store.carried(&owners, job.as_of).await {
            Ok(owed) => told.carry(owed),
            Err(failure) => {
                told.fail(&prepared.source.name, failure.state("nothing was written"));
                claims.extend(claim);
                continue;
            }
        }
        let outcome = slice(
            store,
            job,
            prepared,
            is_last,
            &mut own_side,
            claim.as_ref(),
            told,
            &mut ahead,
            progress,
        )
        .await;
        claims.extend(claim);
        match outcome {
            Ok(slice) => told.slices.push(slice),
            Err(failure) if job.interrupt.asked().is_some() => {
                told.stop(&prepared.source.name, failure);
            }
            Err(failure) => told.fail(&prepared.source.name, failure),
        }
    }
    let is_read = |prepared: &Prepared<'_>| told.has_read(&prepared.source.name);
    if let Some(last) = job.sources.iter().rposition(is_read) {
        let is_last_of_all = last + 1 == job.sources.len();
        told.wait_for_unread(&job.sources[last].rules, is_last_of_all);
    }
    if told.slices.is_empty() && !told.is_partial {
        let worst = told
            .failures
            .iter()
            .enumerate()
            .min_by_key(|(_, failure)| failure.exit)
            .map(|(n, _)| n)
            .expect("a run has at least one source, and each gives a slice or a failure");
        return Err(told.failures.remove(worst));
    }
    Ok(())
}

#[allow(
    clippy::too_many_arguments,
    reason = "the straight line names everything that flows into it"
)]
async fn slice<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    is_last: bool,
    own_side: &mut OwnSide,
    claim: Option<&Claim>,
    told: &Told,
    ahead: &mut Ahead,
    progress: &mut Progress,
) -> Result<Slice, Failure> {
    let source = prepared.source;
    let stored = store.watermark(&source.name).await?;
    let stays = match &stored {
        Some(watermark) => format!(
            "nothing was written; the watermark of {} stays at {}",
            source.name, watermark.hi
        ),
        None => format!("nothing was written; {} has no watermark yet", source.name),
    };
    let account = prepared
        .account(&job.budget)
        .map_err(|failure| failure.state(stays.clone()))?;
    // Who may ask for single rows judges twice, and so lends the rows of a file only.
    let ours = own_side.lend(is_last && account.is_none());
    let (wanted, window) = window_of(job, prepared, stored.as_ref())
        .map(|window| ours.bounded(window))
        .map(|window| (window, within_reach(window, prepared)))
        .map_err(|failure| failure.state(stays.clone()))?;
    progress.stage(Stage::Fetch, &format!("reading {}", source.name), None);
    let interrupt = &job.interrupt;
    let read = match (&account, prepared.reader()) {
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
            let reading = async { interrupt.or(account.read(from, to)).await.flatten() };
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
        .map_err(|failure| failure.state(stays.clone()))?;
    if let Some(asked) = &mut feed.asked {
        asked.is_behind = window.to < wanted.to;
    }
    if let Some(broken) = feed.asked.as_mut().and_then(|asked| asked.broken.take()) {
        let state = format!("nothing is called absent; {stays}").replace(
            "nothing was written; ",
            "what was whole before it is judged; ",
        );
        if let Some(asked) = &mut feed.asked {
            asked.broken = Some(broken.state(state));
        }
    }
    let mut frame = frame(
        store,
        job,
        prepared,
        stored.as_ref(),
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
        stays: &stays,
    };
    let looking = account
        .filter(|_| prepared.rules.can_look_up && feed.asked.as_ref().is_some_and(Asked::is_whole));
    let again = looking.is_some().then(|| operations.clone());
    let (mut gathered, mut outcome) = judgement
        .of(store, &mut frame, operations, ours, ahead, progress)
        .await?;
    if let (Some(account), Some(mut operations)) = (looking, again) {
        let questions = second_look::questions(&account, &source.name, &gathered, &outcome, &frame);
        if !questions.ids.is_empty() {
            progress.step("asking for single rows", None);
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
                asked.requests = account.sent();
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
    let money_of = |repair: &Repair| money_of(repair, &outcome);
    let intents = outcome.intent_tally.read;
    if let Some(exceeded) =
        reconcile::guard(&prepared.rules, &outcome.repairs, &money_of, intents, 0)
    {
        return Err(Failure::new(Exit::Refused, format!("source {}: a guard stopped the run: {exceeded}", source.name))
            .why("so many repairs at once are usually a wrong mapping, not so many real differences")
            .remedy("look at the plan with `paysweep run --dry-run`; raise the limit in [guards] if it is right")
            .state(stays));
    }
    if claim.is_some() {
        carry::hand_over(&job.settings.repair, &mut outcome);
    }
    let advance = advance(job, prepared, stored.as_ref(), &frame, &feed);
    let receipt = match claim {
        Some(claim) => {
            renew(store, job.settings, Some(claim)).await?;
            progress.stage(Stage::Apply, "writing", None);
            let stored = stored.as_ref();
            let advance = advance.as_ref();
            let writing = commit(
                store, job, claim, stored, &gathered, &outcome, advance, &feed,
            );
            match interrupt.or(writing).await {
                Ok(written) => written?,
                Err(stopped) => {
                    has_taken_hold(store, claim, stopped, &stays).await?;
                    // Written before: this gives the answer that was left behind.
                    commit(
                        store, job, claim, stored, &gathered, &outcome, advance, &feed,
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
            progress.step("carrying repairs over", None);
            carry::carry_over(store, job, &outcome, &receipt).await
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
) -> Result<(Gathered, Outcome), Failure> {
    let rules = prepared.rules.clone();
    let comparing = move || {
        let outcome = reconcile::reconcile(&gathered.snapshot(), &rules, &frame);
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
        };
        renew(store, job.settings, claim).await?;
        progress.stage(Stage::Load, "gathering what is known", None);
        let gathering = interrupt
            .or(gather(store, question, operations, ours))
            .await;
        let mut gathered = gathering.map_err(|stopped| stopped.state(stays))??;
        if job.is_dry_run {
            gathered.hear(&told.standings(None));
        }
        others::tell(store, job, prepared, told, &mut gathered).await?;
        renew(store, job.settings, claim).await?;
        progress.stage(Stage::Compare, "comparing", None);
        let (mut gathered, mut outcome) = compare(store, job, prepared, claim, gathered, *frame)
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
            (gathered, outcome) = compare(store, job, prepared, claim, gathered, *frame)
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
    claim: &Claim,
    stopped: Failure,
    stays: &str,
) -> Result<(), Failure> {
    let settled = match store.release(claim).await {
        Ok(()) => store.is_committed(&claim.run_id, &claim.source).await,
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

/// The same for another source.
fn again(stopped: &Failure) -> Failure {
    Failure::new(stopped.exit, stopped.what.clone()).remedy(stopped.remedy.clone())
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
    let on_conflict = |repair: &Repair| compose::conflict(repair, job.as_of);
    store
        .commit(
            claim,
            &Commit {
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
                totals_json: &totals,
            },
        )
        .await
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
        } else if receipt.conflicts.contains(&repair.id) {
            repair.state = RepairState::Failed;
        } else if is_dry_run {
            repair.state = RepairState::Planned;
        }
    }
}
