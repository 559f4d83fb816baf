//! Whom a run tells beside its report: the channels, the metrics, and the last words of a container.

use std::path::PathBuf;

use crate::cli::RunArgs;
use crate::exit::Failure;
use crate::report::RunReport;
use crate::settings::Settings;
use crate::store::contract::{Outbox, Store};

use super::alert::Channels;
use super::metrics::{self, Ended, Metrics};
use super::run::Job;
use super::{World, compose, deliver};

/// Whom a run tells beside its report.
pub(super) struct Outside<'a> {
    channels: Channels<'a>,
    metrics: Metrics,
    last_words: Option<PathBuf>,
    is_dry_run: bool,
}

impl<'a> Outside<'a> {
    /// Everything that is configured or typed; nobody, for a dry run.
    ///
    /// # Errors
    /// Of metrics that were asked for where they cannot go.
    pub(super) fn of(
        settings: &'a Settings,
        arguments: &RunArgs,
        is_dry_run: bool,
        world: &World<'_>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            channels: if is_dry_run {
                Channels::none()
            } else {
                Channels::of(settings)
            },
            metrics: Metrics::of(arguments)?,
            last_words: last_words_file(arguments, world).filter(|_| !is_dry_run),
            is_dry_run,
        })
    }

    /// Pings that a run has started.
    pub(super) async fn begin(&mut self, run_id: &str) {
        self.channels.begin(run_id).await;
    }

    /// Tells the channels, and says in the report what became of it.
    /// `held` are the sources that the run holds.
    pub(super) async fn tell<S: Store + Outbox>(
        &mut self,
        report: &mut RunReport,
        job: &Job<'_>,
        store: Option<&mut S>,
        held: &[&str],
        world: &World<'_>,
    ) {
        let seen = deliver::seen_outside(report, Some(job.settings)).into_owned();
        let is_hurried = job.interrupt.asked().is_some();
        let now = (world.clock)();
        self.channels
            .end(report, &seen, store, held, now, is_hurried)
            .await;
    }

    /// Tells of a failure that left no report.
    pub(super) async fn failed<S: Store + Outbox>(
        &mut self,
        failure: &Failure,
        job: &Job<'_>,
        store: Option<&mut S>,
        world: &World<'_>,
    ) {
        let now = (world.clock)();
        let run = compose::run_info(&job.facts(now));
        let is_hurried = job.interrupt.asked().is_some();
        self.channels
            .fail(failure, run, store, now, is_hurried)
            .await;
        if let Some(path) = &self.last_words {
            metrics::last_words(path, failure.exit, None, Some(failure));
        }
    }

    /// Gauges, once the end of the run is recorded.
    pub(super) async fn measure<S: Store>(&self, store: &mut S, job: &Job<'_>, ended: &Ended<'_>) {
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

    pub(super) fn say_last_words(&self, job: &Job<'_>, report: &RunReport) {
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
