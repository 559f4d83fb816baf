//! What a run leaves for a monitor: gauges in a file or at a Pushgateway, and the last words of a container.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::cli::RunArgs;
use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, BreakClass, BreakState};
use crate::model::repair::RepairState;
use crate::money::{Currency, format_minor};
use crate::notify::Secret;
use crate::notify::http::{Client, Message, Method, has_password, usable};
use crate::notify::metrics::{Gauges, seconds};
use crate::report::{RunReport, figures};
use crate::settings::Settings;
use crate::store::contract::{BreakFilter, Store};
use crate::time::{Instant, tzdb_version};

use super::prepare::{Prepared, Reads};
use super::progress::{Stage, Stages};

/// Kubernetes cuts what is longer.
const TERMINATION_BYTES_MAX: usize = 4096;

/// Where gauges go.
pub(crate) struct Metrics {
    file: Option<PathBuf>,
    gateway: Option<Secret>,
}

impl Metrics {
    /// As the flags say; refuses an address that cannot be sent to before anything is read.
    pub(crate) fn of(arguments: &RunArgs) -> Result<Metrics, Failure> {
        let state = "nothing was read or written";
        if let Some(url) = &arguments.push_gateway {
            if has_password(url) {
                return Err(Failure::rejected("--push-gateway holds a password")
                    .why("whoever lists the processes of the machine can read it")
                    .remedy("let a proxy add it, or use --metrics-file")
                    .state(state));
            }
            usable(url)
                .map_err(|why| Failure::rejected(format!("--push-gateway {why}")).state(state))?;
        }
        Ok(Metrics {
            file: arguments.metrics_file.clone(),
            gateway: arguments.push_gateway.clone().map(Secret::new),
        })
    }

    /// Whether there is anybody to read them.
    pub(crate) fn are_wanted(&self) -> bool {
        self.file.is_some() || self.gateway.is_some()
    }

    /// Writes and pushes them. What fails is a warning: metrics never change how a run ends.
    pub(crate) async fn publish(&self, gauges: &Gauges, is_hurried: bool) {
        let text = gauges.render();
        if let Some(path) = &self.file
            && let Err(error) = to_file(path, &text)
        {
            tracing::warn!(
                "the metrics could not be written to {}: {error}",
                path.display()
            );
        }
        if let Some(gateway) = &self.gateway
            && let Err(why) = push(gateway, text, is_hurried).await
        {
            tracing::warn!("the metrics could not be pushed: {why}");
        }
    }
}

/// Beside its target, then renamed: a scraper sees the old file or the new one. Readable by all, as the collector is another
/// user.
fn to_file(path: &Path, text: &str) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    const READABLE: u32 = 0o644;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let mut file = tempfile::Builder::new()
        .prefix(".paysweep-")
        .tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    let mode = std::fs::Permissions::from_mode(READABLE);
    file.as_file().set_permissions(mode)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Replaces the group of this job, as the Pushgateway's documentation has it (`PUT /metrics/job/NAME`).
async fn push(gateway: &Secret, text: String, is_hurried: bool) -> Result<(), String> {
    let base = gateway.expose().trim_end_matches('/');
    let url = Secret::new(format!("{base}/metrics/job/paysweep"));
    let client = Client::new(is_hurried)?;
    let message = Message {
        url: &url,
        body: text,
        content_type: "text/plain; version=0.0.4; charset=utf-8",
        headers: Vec::new(),
        method: Method::Put,
    };
    client.send(&message).await
}

/// What is known at the end of a run.
pub(crate) struct Ended<'a> {
    pub(crate) exit: Exit,
    pub(crate) report: Option<&'a RunReport>,
    pub(crate) started_at: Instant,
    pub(crate) finished_at: Instant,
    pub(crate) stages: &'a Stages,
    pub(crate) sources: &'a [Prepared<'a>],
}

/// The gauges of a run. What outlives it (times of success, what is open) comes from the store.
pub(crate) async fn gauges<S: Store>(
    store: &mut S,
    settings: &Settings,
    ended: &Ended<'_>,
) -> Result<Gauges, Failure> {
    let mut gauges = Gauges::default();
    of_the_run(&mut gauges, ended);
    let now = ended.finished_at;
    let mut names: Vec<&str> = settings.sources.iter().map(|it| it.name.as_str()).collect();
    for name in &names {
        let fresh = store.freshness(name, now).await?;
        let source = &[("source", *name)];
        for (metric, help, at) in [
            (
                "paysweep_last_run_timestamp_seconds",
                "End of the last run that finished, with or without breaks.",
                fresh.last_finished_at,
            ),
            (
                "paysweep_last_success_timestamp_seconds",
                "End of the last run that left nothing to a person.",
                fresh.last_clean_at,
            ),
            (
                "paysweep_watermark_timestamp_seconds",
                "How far the source has been read.",
                fresh.watermark.map(|mark| mark.hi),
            ),
        ] {
            gauges.set(metric, help, source, at.map_or(0, unix));
        }
    }
    // Breaks about intents that name no source belong to the scope of the intents.
    names.push(&settings.intents.name);
    let open = store
        .breaks(&BreakFilter {
            sources: &names,
            states: &[BreakState::Open],
            class: None,
            id_prefix: "",
            as_of: now,
        })
        .await?;
    for name in &names {
        let own = || open.iter().filter(|item| item.source == **name);
        for class in BreakClass::ALL {
            let labels = &[("source", *name), ("class", class.as_str())];
            let number = own().filter(|item| item.class == *class).count();
            gauges.set(
                "paysweep_breaks_open",
                "Breaks that are neither acknowledged nor closed.",
                labels,
                number,
            );
        }
        let oldest = own().map(|item| item.first_seen_at).min();
        let help = "When the oldest open break was seen first; 0 = none is open.";
        gauges.set(
            "paysweep_oldest_open_break_timestamp_seconds",
            help,
            &[("source", name)],
            oldest.map_or(0, unix),
        );
        let mut risk: BTreeMap<Currency, i128> = BTreeMap::new();
        let known = ended.report.into_iter().flat_map(|report| &report.totals);
        for total in known {
            risk.entry(total.currency).or_default();
        }
        for money in own().filter_map(Break::at_risk) {
            *risk.entry(money.currency).or_default() += i128::from(money.minor).abs();
        }
        for (currency, minor) in risk {
            let labels = &[("source", *name), ("currency", currency.as_str())];
            let help = "Money at risk in open breaks, in major units; for graphs only, the report has exact amounts.";
            gauges.set(
                "paysweep_at_risk",
                help,
                labels,
                format_minor(minor, currency),
            );
        }
        per_class(&mut gauges, name, ended.report);
    }
    let unconfirmed = store.unconfirmed(&settings.intents.name).await?;
    let scope = &[("source", settings.intents.name.as_str())];
    gauges.set(
        "paysweep_repairs_unconfirmed",
        "Applied repairs that no import has shown yet.",
        scope,
        unconfirmed.count,
    );
    gauges.set(
        "paysweep_oldest_unconfirmed_repair_timestamp_seconds",
        "When the oldest of those was applied; 0 = there is none.",
        scope,
        unconfirmed.oldest_at.map_or(0, unix),
    );
    Ok(gauges)
}

fn of_the_run(gauges: &mut Gauges, ended: &Ended<'_>) {
    gauges.set(
        "paysweep_build_info",
        "The version that ran; always 1.",
        &[
            ("version", env!("CARGO_PKG_VERSION")),
            ("tzdb", tzdb_version()),
        ],
        1,
    );
    gauges.set(
        "paysweep_last_run_exit_code",
        "Exit code of the last run.",
        &[],
        ended.exit.code(),
    );
    let micros = ended
        .finished_at
        .0
        .saturating_sub(ended.started_at.0)
        .max(0);
    let took = Duration::from_micros(micros.unsigned_abs());
    gauges.set(
        "paysweep_last_run_duration_seconds",
        "How long the last run took.",
        &[],
        seconds(took),
    );
    for stage in Stage::ALL {
        let help = "How long a stage of the last run took, over all sources.";
        let took = ended.stages.of(*stage);
        gauges.set(
            "paysweep_stage_duration_seconds",
            help,
            &[("stage", stage.as_str())],
            seconds(took),
        );
    }
    // Also where nothing could be read: that is when somebody asks how much was tried.
    let asked = |prepared: &&Prepared<'_>| matches!(prepared.reads, Reads::Api(_));
    for prepared in ended.sources.iter().filter(asked) {
        let labels = &[("source", prepared.source.name.as_str())];
        let traffic = &prepared.traffic;
        for (name, help, value) in [
            (
                "paysweep_api_requests",
                "Requests of the last run, those tried again included.",
                traffic.requests(),
            ),
            (
                "paysweep_api_retries",
                "How often the last run tried a request again.",
                traffic.retries(),
            ),
            (
                "paysweep_api_throttled",
                "Answers to the last run that asked for fewer requests.",
                traffic.throttled(),
            ),
        ] {
            gauges.set(name, help, labels, value);
        }
    }
    let Some(report) = ended.report else {
        return;
    };
    for source in &report.sources {
        let labels = &[("source", source.name.as_str())];
        gauges.set(
            "paysweep_operations_processed",
            "Operations in scope of the last run.",
            labels,
            source.operations,
        );
        gauges.set(
            "paysweep_rows_rejected",
            "Rows that the last run could not use.",
            labels,
            source.rejected_rows,
        );
    }
    gauges.set(
        "paysweep_intents_processed",
        "Intents in scope of the last run.",
        &[],
        report.accounting.intents.read,
    );
}

/// What the last run found and repaired of one source.
fn per_class(gauges: &mut Gauges, name: &str, report: Option<&RunReport>) {
    let breaks = || {
        report
            .into_iter()
            .flat_map(|it| &it.breaks)
            .filter(|it| it.item.source == name)
    };
    let repairs = || {
        report
            .into_iter()
            .flat_map(|it| &it.repairs)
            .filter(|it| it.source == name)
    };
    for class in BreakClass::ALL {
        let labels = &[("source", name), ("class", class.as_str())];
        let found = breaks().filter(|it| it.item.class == *class).count();
        gauges.set(
            "paysweep_breaks_found",
            "Breaks that the last run found, those it repaired included.",
            labels,
            found,
        );
        let of_class = || repairs().filter(|it| it.class == *class);
        let applied = of_class()
            .filter(|it| it.state == RepairState::Applied)
            .count();
        gauges.set(
            "paysweep_repairs_applied",
            "Repairs that the last run applied.",
            labels,
            applied,
        );
        let refused = of_class()
            .filter(|it| it.state == RepairState::Failed)
            .count();
        gauges.set(
            "paysweep_repairs_refused",
            "Repairs of the last run that found their row changed.",
            labels,
            refused,
        );
    }
}

fn unix(at: Instant) -> i64 {
    const MICROS_PER_SECOND: i64 = 1_000_000;
    at.0 / MICROS_PER_SECOND
}

/// The last words of a container: at most 4,096 bytes, which `kubectl describe pod` shows. The file is there already and is
/// written in place.
pub(crate) fn last_words(
    path: &Path,
    exit: Exit,
    report: Option<&RunReport>,
    failure: Option<&Failure>,
) {
    let mut text = format!("paysweep {} (exit {})\n", exit.name(), exit.code());
    if let Some(failure) = failure {
        text.push_str(&format!("{failure}\n"));
    }
    if let Some(report) = report {
        let risk = figures::risk(report);
        text.push_str(&format!(
            "{}: {}\n",
            report.outcome.name.as_str(),
            figures::verdict(report)
        ));
        text.push_str(&format!(
            "at risk: {}\n",
            if risk.is_empty() {
                "nothing".to_owned()
            } else {
                risk.join(", ")
            }
        ));
        for reason in &report.outcome.reasons {
            text.push_str(&if reason.message.is_empty() {
                format!("{} {}\n", reason.code, reason.count)
            } else {
                format!("{}: {}\n", reason.code, reason.message)
            });
        }
    }
    let mut end = text.len().min(TERMINATION_BYTES_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    if let Err(error) = std::fs::write(path, &text[..end]) {
        tracing::warn!(
            "the last words could not be written to {}: {error}",
            path.display()
        );
    }
}
