//! What is told about a run: the one verdict function, and the report that exit code and every format come from.

use std::collections::{BTreeMap, HashSet};

use crate::cli::CommonArgs;
use crate::exit::Exit;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, Severity};
use crate::model::intent::Intents;
use crate::model::repair::Repair;
use crate::model::run::{Basis, Window};
use crate::model::verdict::Disposition;
use crate::reconcile::{self, Finding, Outcome};
use crate::report::{
    BreakLine, Carried, FileLine, Include, LedgerEnd, OutcomeName, Reason, RunInfo, RunReport,
    SourceReport, Warning,
};
use crate::settings::window::WindowChoice;
use crate::settings::{FailOn, Settings};
use crate::source::feed::Asked;
use crate::time::{Instant, Zone};

use super::told::Told;
use super::{checks, lines};

/// What a report says of the run itself.
pub struct RunFacts<'a> {
    /// Empty where nothing is stored.
    pub run_id: &'a str,
    /// `run` or `diff`.
    pub command: &'a str,
    /// Whether nothing is written.
    pub is_dry_run: bool,
    /// "Now".
    pub as_of: Instant,
    /// By the machine's clock.
    pub started_at: Instant,
    /// By the machine's clock.
    pub finished_at: Instant,
    /// The configuration, where there is one.
    pub settings: Option<&'a Settings>,
    /// The zone of business days.
    pub zone: Zone,
    /// The window that was asked for.
    pub fallback_window: WindowChoice,
}

/// Composes the report of a run from what was judged.
pub fn report(told: &Told, facts: &RunFacts<'_>, common: &CommonArgs) -> RunReport {
    let findings: Vec<&Finding> = told
        .slices
        .iter()
        .flat_map(|slice| &slice.outcome.findings)
        .collect();
    // What a run found that could not tell it is news to everybody.
    let is_untold = |item: &Break| told.carried.runs.contains(&item.first_seen_run);
    let line = |item: &Break, is_new: bool, also: &[String]| BreakLine {
        item: item.clone(),
        is_new: is_new || is_untold(item),
        age_seconds: facts.as_of.seconds_since(item.first_seen_at).max(0),
        also_operations: also.to_vec(),
    };
    let mut breaks: Vec<BreakLine> = findings
        .iter()
        .map(|finding| line(&finding.found, finding.is_new, &finding.also))
        .collect();
    breaks.extend(
        told.slices
            .iter()
            .flat_map(|slice| &slice.conflict_breaks)
            .map(|item| line(item, true, &[])),
    );
    let carried = Carried {
        runs: told.carried.runs.clone(),
        breaks: told
            .carried
            .breaks
            .iter()
            .filter(|item| breaks.iter().all(|line| line.item.id != item.id))
            .map(|item| line(item, false, &[]))
            .collect(),
        repairs: told.carried.repairs.clone(),
    };
    let outcome = verdict(&breaks, &carried.breaks, told, facts, common);
    let elsewhere = told.told_by_others();
    let statement = lines::statement(&told.slices, &elsewhere, &breaks);
    let accounting = lines::accounting(&told.slices, &elsewhere);
    let each = || told.slices.iter().zip(&elsewhere);
    let window = told
        .slices
        .first()
        .map_or_else(|| window_of(facts), |slice| slice.frame.window);
    RunReport {
        run: RunInfo {
            ledger: told.ledger.as_ref().map(|head| LedgerEnd {
                entries: head.entries,
                hash: head.hash.clone(),
            }),
            ..run_info(facts)
        },
        window,
        zone: facts.zone.clone(),
        outcome,
        sources: sources(told),
        totals: lines::totals(&told.slices),
        days: lines::days(&told.slices, &facts.zone),
        summary: lines::summary(&told.slices, &accounting, &elsewhere),
        accounting,
        breaks,
        repairs: told
            .slices
            .iter()
            .flat_map(|slice| slice.outcome.repairs.iter().cloned())
            .collect(),
        carried,
        resolved: told.slices.iter().flat_map(lines::resolved).collect(),
        checks: checks::checks(told, facts, &statement),
        statement,
        warnings: warnings(told, facts),
        deliveries: Vec::new(),
        matches: common
            .includes(Include::Matches)
            .then(|| told.slices.iter().flat_map(lines::matches).collect()),
        pending: common.includes(Include::Pending).then(|| {
            each()
                .flat_map(|(slice, elsewhere)| lines::pending(slice, elsewhere))
                .collect()
        }),
        ignored: common.includes(Include::Ignored).then(|| {
            each()
                .flat_map(|(slice, elsewhere)| lines::ignored(slice, elsewhere))
                .collect()
        }),
    }
}

/// What a report says of the run itself, but for the head of the ledger.
pub(crate) fn run_info(facts: &RunFacts<'_>) -> RunInfo {
    RunInfo {
        id: facts.run_id.to_owned(),
        command: facts.command.to_owned(),
        is_dry_run: facts.is_dry_run,
        as_of: facts.as_of,
        started_at: facts.started_at,
        finished_at: facts.finished_at,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ledger: None,
        config_path: facts
            .settings
            .map_or_else(String::new, |settings| settings.path.display().to_string()),
        config_digest: facts
            .settings
            .map_or_else(String::new, |settings| settings.digest.clone()),
    }
}

fn window_of(facts: &RunFacts<'_>) -> Window {
    match facts.fallback_window {
        WindowChoice::Range(window) => window,
        WindowChoice::Watermark => Window {
            from: facts.as_of,
            to: facts.as_of,
            basis: Basis::Watermark,
        },
    }
}

/// The verdict: exit code, name and reasons. Breaks count when they are open and neither acknowledged nor closed, or were
/// closed by this run's repairs, as `--fail-on` and `--min-severity` say; an unfinished reading outranks them all.
fn verdict(
    breaks: &[BreakLine],
    carried: &[BreakLine],
    told: &Told,
    facts: &RunFacts<'_>,
    common: &CommonArgs,
) -> crate::report::Outcome {
    let severe = common.min_severity.unwrap_or(Severity::Warning);
    let is_open = |line: &BreakLine| {
        line.item.state == BreakState::Open && line.disposition() == BreakDisposition::Review
    };
    let is_repaired = |line: &BreakLine| line.disposition() == BreakDisposition::Repaired;
    let counts = |line: &&BreakLine| {
        line.item.class.severity() >= severe
            && match common.fail_on {
                FailOn::Found => is_open(line) || is_repaired(line),
                FailOn::Open => is_open(line),
                FailOn::New => line.is_new && (is_open(line) || is_repaired(line)),
                FailOn::Error => false,
            }
    };
    let counted: Vec<&BreakLine> = breaks.iter().filter(counts).collect();
    let from_before: Vec<&BreakLine> = carried
        .iter()
        .filter(|line| line.item.class.severity() >= severe && common.fail_on == FailOn::Found)
        .collect();
    let mut reasons: Vec<(Exit, Reason)> = Vec::new();
    for (failure, source) in told.failures.iter().zip(&told.failed_sources) {
        let code = failure.exit.name().to_owned();
        reasons.push((
            failure.exit,
            Reason {
                code,
                count: 1,
                message: format!("source {source}: {}", failure.what),
            },
        ));
    }
    for slice in &told.slices {
        if let Some(failure) = &slice.not_carried {
            reasons.push((
                failure.exit,
                Reason {
                    code: failure.exit.name().to_owned(),
                    count: 1,
                    message: format!("source {}: {}", slice.name, failure.what),
                },
            ));
        }
    }
    for (source, broken) in told.broken_off() {
        reasons.push((
            broken.exit,
            Reason {
                code: broken.exit.name().to_owned(),
                count: 1,
                message: format!("source {source}: {}", broken.what),
            },
        ));
    }
    let mut by_class: BTreeMap<BreakClass, u64> = BTreeMap::new();
    for line in &counted {
        *by_class.entry(line.item.class).or_default() += 1;
    }
    for (class, count) in by_class {
        reasons.push((
            Exit::Differences,
            Reason {
                code: class.to_string(),
                count,
                message: String::new(),
            },
        ));
    }
    if !from_before.is_empty() {
        let message =
            "closed by the repairs of earlier runs that no report has told yet".to_owned();
        reasons.push((
            Exit::Differences,
            Reason {
                code: "carried".to_owned(),
                count: from_before.len() as u64,
                message,
            },
        ));
    }
    let overdue = is_confirmation_overdue(told, facts) && common.fail_on != FailOn::Error;
    if overdue {
        let message = "repairs that no import has shown within confirm_within".to_owned();
        let count = told.unconfirmed.count;
        reasons.push((
            Exit::Differences,
            Reason {
                code: "unconfirmed_repairs".to_owned(),
                count,
                message,
            },
        ));
    }
    reasons.sort_by_key(|(exit, _)| *exit);
    let exit = reasons
        .iter()
        .map(|(exit, _)| *exit)
        .fold(Exit::Ok, Exit::worst);
    // What was found has its name whatever `--fail-on` makes of the exit code: with an open break no run is clean.
    let name = match exit {
        Exit::Ok | Exit::Differences if overdue || breaks.iter().any(is_open) => {
            OutcomeName::Review
        }
        Exit::Ok | Exit::Differences if !carried.is_empty() || breaks.iter().any(is_repaired) => {
            OutcomeName::Repaired
        }
        Exit::Ok | Exit::Differences => OutcomeName::Clean,
        other => OutcomeName::Exit(other),
    };
    crate::report::Outcome {
        exit,
        name,
        reasons: reasons.into_iter().map(|(_, reason)| reason).collect(),
    }
}

pub(super) fn is_confirmation_overdue(told: &Told, facts: &RunFacts<'_>) -> bool {
    let within = facts
        .settings
        .and_then(|settings| settings.intents.confirm_within);
    match (within, told.unconfirmed.oldest_at) {
        (Some(within), Some(oldest)) => oldest.plus(within) < facts.as_of,
        _ => false,
    }
}

fn sources(told: &Told) -> Vec<SourceReport> {
    let judged = told.slices.iter().map(|slice| SourceReport {
        name: slice.name.clone(),
        // A file is read whole, or it is refused; a list may break off.
        is_complete: slice.feed.asked.as_ref().is_none_or(Asked::is_whole),
        operations: slice.outcome.operation_tally.read,
        outside_window: (0..slice.gathered.recognised.operations.len())
            .filter(|&row| slice.outcome.operations[row] == Disposition::OutOfScope)
            .count() as u64,
        rejected_rows: slice.feed.files.iter().map(|file| file.facts.invalid).sum(),
        covered: slice.frame.covered,
        watermark_before: slice.watermark_before,
        watermark_after: slice.watermark_after,
        files: slice
            .feed
            .files
            .iter()
            .map(|file| FileLine {
                path: file.name.clone(),
                bytes: file.bytes,
                rows: file.facts.rows,
                sha256: file.sha256.clone(),
            })
            .collect(),
        lateness: lines::lateness(slice),
    });
    let failed = told.failed_sources.iter().map(|name| SourceReport {
        name: name.clone(),
        is_complete: false,
        operations: 0,
        outside_window: 0,
        rejected_rows: 0,
        covered: None,
        watermark_before: None,
        watermark_after: None,
        files: Vec::new(),
        lateness: None,
    });
    judged.chain(failed).collect()
}

fn warnings(told: &Told, facts: &RunFacts<'_>) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let (Some(settings), Some(slice)) = (facts.settings, told.slices.last()) {
        warnings.extend(unknown_sources(settings, &slice.gathered.merged.intents));
    }
    for slice in told.slices.iter().filter(|slice| slice.has_memory) {
        if slice.frame.is_feed_unchanged {
            warnings.push(Warning {
                code: "feed_unchanged".to_owned(),
                message: format!(
                    "{}: the files have the bytes of the last run; nothing new is called absent",
                    slice.name
                ),
            });
        }
        if let Some(oldest) = slice.begins_after_watermark() {
            let mark = slice
                .watermark_before
                .map_or_else(String::new, |at| at.to_string());
            warnings.push(Warning {
                code: "no_overlap".to_owned(),
                message: format!(
                    "{}: the oldest row ({oldest}) is later than the watermark ({mark}), so nothing shows that no file \
                     is missing in between; let each export overlap the last one",
                    slice.name
                ),
            });
        }
        // The lists of a processor overlap by design.
        if slice.gathered.recognised.repeated > 0 && slice.feed.asked.is_none() {
            warnings.push(Warning {
                code: "repeated_rows".to_owned(),
                message: format!(
                    "{}: {} rows were in the files more than once",
                    slice.name, slice.gathered.recognised.repeated
                ),
            });
        }
    }
    warnings
}

/// Intents of sources that are not configured: nobody asks for their operations here.
fn unknown_sources(settings: &Settings, intents: &Intents) -> Option<Warning> {
    let known: HashSet<&str> = settings
        .sources
        .iter()
        .map(|source| source.name.as_str())
        .collect();
    let mut unknown: BTreeMap<&str, u64> = BTreeMap::new();
    for &source in intents.source.iter().filter(|source| !source.is_empty()) {
        let source = intents.text.get(source);
        if !known.contains(source) {
            *unknown.entry(source).or_default() += 1;
        }
    }
    let counts: Vec<String> = unknown
        .iter()
        .map(|(source, count)| format!("{count} of \"{source}\""))
        .collect();
    (!counts.is_empty()).then(|| Warning {
        code: "unknown_source".to_owned(),
        message: format!(
            "intents of sources that are not configured here, and so never judged: {}",
            counts.join(", ")
        ),
    })
}

/// The break about a repair that was not written, and why; no why = its row had changed.
pub fn conflict(repair: &Repair, why: &str, as_of: Instant) -> Break {
    let class = BreakClass::RepairConflict;
    let why = if why.is_empty() {
        format!(
            "{} was planned against version {} of {}, which changed before it was written; nothing was overwritten",
            repair.action, repair.planned_version, repair.intent_id
        )
    } else {
        format!(
            "{} of {} was not written: {why}; nothing was overwritten",
            repair.action, repair.intent_id
        )
    };
    Break {
        id: reconcile::break_id(
            &repair.source,
            class,
            &repair.account,
            &repair.operation_id,
            &repair.intent_id,
        ),
        class,
        source: repair.source.clone(),
        account: repair.account.clone(),
        operation_id: repair.operation_id.clone(),
        intent_id: repair.intent_id.clone(),
        money: repair.to.money,
        delta: None,
        why,
        evidence: reconcile::fingerprint(&[&repair.id]),
        state: BreakState::Open,
        disposition: BreakDisposition::Review,
        is_sticky: false,
        first_seen_run: String::new(),
        first_seen_at: as_of,
        acknowledged_until: None,
    }
}

/// Control totals of a slice, as they are stored with it.
pub fn totals_json(outcome: &Outcome) -> String {
    let totals: Vec<serde_json::Value> = outcome
        .totals
        .iter()
        .map(|total| {
            serde_json::json!({
                "currency": total.currency.as_str(),
                "gross": total.gross.to_string(),
                "fees": total.fees.to_string(),
                "net": total.net.to_string(),
                "matched": total.matched.to_string(),
                "unreconciled": total.unreconciled.to_string(),
                "at_risk": total.at_risk.to_string(),
            })
        })
        .collect();
    serde_json::json!({
        "operations": outcome.operation_tally.read,
        "intents": outcome.intent_tally.read,
        "totals": totals,
    })
    .to_string()
}
