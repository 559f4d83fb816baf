//! The scheduled job, as one straight line:
//!
//! ```text
//! claim the source ─► window ─► read the feed ─► gather what is stored ─► reconcile ─► guards ─► commit ─► tell
//! ```
//!
//! Nothing flows back. What happens to one source, from its watermark to its commit, is [`super::slice`]. A dry run is the same
//! line up to the commit, on a store that is only read. A file source is one slice: everything of it is committed, or nothing.

use std::sync::Arc;

use crate::cli::{CommonArgs, RunArgs};
use crate::exit::{Exit, Failure};
use crate::reconcile::{self, Spent};
use crate::report::RunReport;
use crate::settings::Settings;
use crate::settings::window::{self, WindowChoice};
use crate::source::http::Budget;
use crate::store::any::AnyStore;
use crate::store::contract::{Begun, Claim, Outbox, RunEnd, RunKey, RunStart, Store};
use crate::time::Instant;

use super::catch_up::catch_up;
use super::held::release;
use super::interrupt::Interrupt;
use super::metrics::Ended;
use super::others::Ahead;
use super::outside::Outside;
use super::own_side::OwnSide;
use super::prepare::Prepared;
use super::progress::{Progress, Stage, Stages, Unit};
use super::slice::slice;
use super::told::Told;
use super::{World, carry, compose, deliver};

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
    let mut outside = Outside::of(&settings, arguments, common.dry_run, world)?;
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
                .tell(&mut report, job, None::<&mut AnyStore>, &[], world)
                .await;
            outside.say_last_words(job, &report);
            deliver::deliver(&report, common, Some(settings), world)?;
            Ok(report.outcome.exit)
        }
    }
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

impl Job<'_> {
    /// The same under a run of its own.
    pub(super) fn piece(&self) -> Job<'_> {
        Job {
            run_id: uuid::Uuid::now_v7().to_string(),
            owner: self.owner.clone(),
            started_by: self.started_by.clone(),
            interrupt: self.interrupt.clone(),
            budget: Arc::clone(&self.budget),
            ..*self
        }
    }

    /// What a report says of the run itself.
    pub(super) fn facts(&self, finished_at: Instant) -> compose::RunFacts<'_> {
        compose::RunFacts {
            run_id: &self.run_id,
            command: "run",
            is_dry_run: self.is_dry_run,
            as_of: self.as_of,
            started_at: self.started_at,
            finished_at,
            settings: Some(self.settings),
            zone: self.settings.timezone.clone(),
            fallback_window: self.choice,
        }
    }
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
    outside.begin(&job.run_id).await;
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
    progress.stage(Stage::Report, "telling", Unit::Rows);
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
    let held: Vec<&str> = if told.is_partial {
        Vec::new()
    } else {
        claims.iter().map(|claim| claim.source.as_str()).collect()
    };
    outside
        .tell(&mut report, job, Some(&mut *store), &held, world)
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
    compose::report(told, &job.facts((world.clock)()), common)
}

fn measured<'r>(
    exit: Exit,
    report: Option<&'r RunReport>,
    job: &'r Job<'_>,
    world: &World<'_>,
    stages: &'r Stages,
) -> Ended<'r> {
    Ended {
        exit,
        report,
        started_at: job.started_at,
        finished_at: (world.clock)(),
        stages,
        sources: job.sources,
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
    let meter = progress.stage(Stage::Load, "reading intents", Unit::Bytes);
    let mut own_side = OwnSide::open(job.settings, job.sources, &job.interrupt, meter)
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
        let mut spent = Spent::default();
        let read = catch_up(
            store,
            job,
            prepared,
            is_last,
            &mut own_side,
            claim.as_ref(),
            told,
            &mut ahead,
            &mut spent,
            progress,
        )
        .await;
        match store.carried(&owners, job.as_of).await {
            Ok(owed) => told.carry(owed),
            Err(failure) => {
                told.fail(&prepared.source.name, failure.state("nothing was written"));
                claims.extend(claim);
                continue;
            }
        }
        let outcome = match read {
            Ok(read) => {
                let claim = claim.as_ref();
                let (own_side, ahead) = (&mut own_side, &mut ahead);
                slice(
                    store, job, prepared, read, is_last, own_side, claim, told, ahead, &mut spent,
                    progress,
                )
                .await
            }
            Err(failure) => Err(failure),
        };
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

/// The same for another source.
fn again(stopped: &Failure) -> Failure {
    Failure::new(stopped.exit, stopped.what.clone()).remedy(stopped.remedy.clone())
}
