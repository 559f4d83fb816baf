//! The report for machines: contract section 12, and the form in which the store keeps a run.
//!
//! [`write`] streams: a list of a million entries is never a tree in memory. Each entry stands on a line of its own, so
//! that two reports can be compared with line tools. [`read`] takes a stored report back, so that it can be shown in any
//! other form.
//!
//! Decisions: keys are sorted because the fields below are declared in that order; a test holds it. An id that is none
//! is `null`. A break that was seen first in this very run has `"first_seen_run": null` beside `"new": true`, so that
//! nothing outside of `run` depends on the run's id. What a reader of a report cannot need (evidence hashes, planned
//! versions) is not kept in it, and is empty after [`read`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::{Deserialize, Serialize};

use super::{
    Accounting, BreakLine, Carried, Check, CheckStatus, FileLine, IgnoredLine, MatchLine, Outcome,
    OutcomeName, PendingLine, Reason, ResolvedLine, RunInfo, RunReport, SourceReport, Summary,
    Warning,
};
use crate::exit::Exit;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState};
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::model::run::{Basis, Tally, Total, Window};
use crate::model::verdict::{IgnoreReason, Rule};
use crate::money::{Currency, Money, format_minor};
use crate::time::{Instant, Zone};

/// Name of the schema.
pub const SCHEMA: &str = "paysweep.report";
/// Its version: fields are added, never changed.
pub const SCHEMA_VERSION: &str = "1.0";

/// Writes the report as JSON, with a line break at the end.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let mut object = Object {
        out,
        is_empty: true,
    };
    object.out.write_all(b"{")?;
    object.field("accounting", &accounting_wire(&report.accounting))?;
    object.list("breaks", report.breaks.iter().map(break_wire))?;
    object.field("carried", &carried_wire(report))?;
    object.list("checks", report.checks.iter().map(check_wire))?;
    if let Some(ignored) = &report.ignored {
        object.list("ignored", ignored.iter().map(ignored_wire))?;
    }
    if let Some(matches) = &report.matches {
        object.list("matches", matches.iter().map(match_wire))?;
    }
    object.field("outcome", &outcome_wire(&report.outcome))?;
    if let Some(pending) = &report.pending {
        object.list("pending", pending.iter().map(pending_wire))?;
    }
    let as_of = report.run.as_of;
    object.list(
        "repairs",
        report
            .repairs
            .iter()
            .map(|repair| repair_wire(repair, as_of)),
    )?;
    object.list("resolved", report.resolved.iter().map(resolved_wire))?;
    object.field("run", &run_wire(&report.run))?;
    object.field("schema", &SCHEMA)?;
    object.field("schema_version", &SCHEMA_VERSION)?;
    object.list("sources", report.sources.iter().map(source_wire))?;
    object.field("summary", &summary_wire(report))?;
    object.list("totals", report.totals.iter().map(total_wire))?;
    object.list("warnings", report.warnings.iter().map(warning_wire))?;
    object.field("window", &window_wire(&report.window, &report.zone))?;
    object.out.write_all(b"\n}\n")
}

/// A JSON object whose fields are written one after the other.
struct Object<'a> {
    out: &'a mut dyn Write,
    is_empty: bool,
}

impl Object<'_> {
    fn name(&mut self, name: &str) -> io::Result<()> {
        let comma = if std::mem::take(&mut self.is_empty) {
            ""
        } else {
            ","
        };
        write!(self.out, "{comma}\n  \"{name}\": ")
    }

    fn field<T: Serialize>(&mut self, name: &str, value: &T) -> io::Result<()> {
        self.name(name)?;
        serde_json::to_writer(&mut *self.out, value).map_err(io::Error::from)
    }

    fn list<T: Serialize>(
        &mut self,
        name: &str,
        entries: impl Iterator<Item = T>,
    ) -> io::Result<()> {
        self.name(name)?;
        self.out.write_all(b"[")?;
        let mut is_first = true;
        for entry in entries {
            let comma = if std::mem::take(&mut is_first) {
                ""
            } else {
                ","
            };
            write!(self.out, "{comma}\n    ")?;
            serde_json::to_writer(&mut *self.out, &entry).map_err(io::Error::from)?;
        }
        self.out.write_all(if is_first { b"]" } else { b"\n  ]" })
    }
}

/// Why a stored report cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not of this shape.
    #[error("the stored report cannot be read")]
    Shape(#[from] serde_json::Error),
    /// Another schema, or a later major version.
    #[error("the stored report is of schema {0:?}, which this version does not know")]
    Schema(String),
    /// A word that this version does not know.
    #[error("the stored report holds {1:?} as {0}, which this version does not know")]
    Word(&'static str, String),
}

/// Takes a report back that [`write`] wrote.
pub fn read(text: &str) -> Result<RunReport, ReadError> {
    let wire: ReportWire = serde_json::from_str(text)?;
    if wire.schema != SCHEMA || !wire.schema_version.starts_with("1.") {
        return Err(ReadError::Schema(format!(
            "{} {}",
            wire.schema, wire.schema_version
        )));
    }
    let as_of = instant("run.as_of", &wire.run.as_of)?;
    let exit = Exit::ALL
        .into_iter()
        .find(|exit| exit.code() == wire.outcome.exit_code)
        .ok_or_else(|| ReadError::Word("exit code", wire.outcome.exit_code.to_string()))?;
    Ok(RunReport {
        run: RunInfo {
            id: text_of(wire.run.id),
            command: wire.run.command.into_owned(),
            is_dry_run: wire.run.dry_run,
            as_of,
            started_at: instant("run.started_at", &wire.run.started_at)?,
            finished_at: instant("run.finished_at", &wire.run.finished_at)?,
            version: wire.run.version.into_owned(),
            config_path: text_of(wire.run.config_path),
            config_digest: text_of(wire.run.config_digest),
        },
        window: Window {
            from: bound(wire.window.from.as_deref(), Instant::MIN)?,
            to: bound(wire.window.to.as_deref(), Instant::MAX)?,
            basis: word("basis", &wire.window.basis, Basis::from_word)?,
        },
        zone: word("zone", &wire.window.zone, Zone::parse)?,
        outcome: Outcome {
            exit,
            name: match wire.outcome.name.as_ref() {
                "clean" => OutcomeName::Clean,
                "repaired" => OutcomeName::Repaired,
                "review" => OutcomeName::Review,
                _ => OutcomeName::Exit(exit),
            },
            reasons: wire
                .outcome
                .reasons
                .into_iter()
                .map(|reason| Reason {
                    code: reason.code.into_owned(),
                    count: reason.count,
                    message: reason.message.into_owned(),
                })
                .collect(),
        },
        sources: all(wire.sources, source_of)?,
        totals: all(wire.totals, total_of)?,
        summary: Summary {
            operations: wire.summary.operations,
            intents: wire.summary.intents,
            matched: wire.summary.matched,
            pending: wire.summary.pending,
            ignored: wire.summary.ignored,
        },
        accounting: Accounting {
            operations: wire.accounting.operations.into(),
            intents: wire.accounting.intents.into(),
        },
        breaks: all(wire.breaks, |line| break_of(line, as_of))?,
        repairs: all(wire.repairs, repair_of)?,
        carried: Carried {
            runs: wire.carried.runs.into_iter().map(Cow::into_owned).collect(),
            breaks: all(wire.carried.breaks, |line| break_of(line, as_of))?,
            repairs: all(wire.carried.repairs, repair_of)?,
        },
        resolved: all(wire.resolved, |line| {
            Ok(ResolvedLine {
                id: line.id.into_owned(),
                class: word("class", &line.class, BreakClass::from_word)?,
                intent_id: text_of(line.intent_id),
                operation_id: text_of(line.operation_id),
            })
        })?,
        checks: all(wire.checks, |line| {
            Ok(Check {
                name: line.name.into_owned(),
                status: word("check status", &line.status, CheckStatus::from_word)?,
                detail: line.detail.into_owned(),
            })
        })?,
        warnings: all(wire.warnings, |line| {
            Ok(Warning {
                code: line.code.into_owned(),
                message: line.message.into_owned(),
            })
        })?,
        matches: wire.matches.map(|list| all(list, match_of)).transpose()?,
        pending: wire.pending.map(|list| all(list, pending_of)).transpose()?,
        ignored: wire.ignored.map(|list| all(list, ignored_of)).transpose()?,
    })
}

// ---- the shape: fields in the order of their names

#[derive(Deserialize)]
struct ReportWire<'a> {
    accounting: AccountingWire,
    breaks: Vec<BreakWire<'a>>,
    carried: CarriedWire<'a>,
    checks: Vec<CheckWire<'a>>,
    ignored: Option<Vec<IgnoredWire<'a>>>,
    matches: Option<Vec<MatchWire<'a>>>,
    outcome: OutcomeWire<'a>,
    pending: Option<Vec<PendingWire<'a>>>,
    repairs: Vec<RepairWire<'a>>,
    resolved: Vec<ResolvedWire<'a>>,
    run: RunWire<'a>,
    schema: Cow<'a, str>,
    schema_version: Cow<'a, str>,
    sources: Vec<SourceWire<'a>>,
    summary: SummaryWire,
    totals: Vec<TotalWire<'a>>,
    warnings: Vec<WarningWire<'a>>,
    window: WindowWire<'a>,
}

#[derive(Serialize, Deserialize)]
struct AccountingWire {
    intents: TallyWire,
    operations: TallyWire,
}

#[derive(Serialize, Deserialize)]
struct TallyWire {
    ignored: u64,
    matched: u64,
    pending: u64,
    read: u64,
    unmatched: u64,
}

#[derive(Serialize, Deserialize)]
struct BreakWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    acknowledged_until: Option<String>,
    age_seconds: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also_operations: Vec<Cow<'a, str>>,
    class: Cow<'a, str>,
    delta: Option<MoneyWire<'a>>,
    disposition: Cow<'a, str>,
    first_seen_run: Option<Cow<'a, str>>,
    id: Cow<'a, str>,
    intent_id: Option<Cow<'a, str>>,
    money: Option<MoneyWire<'a>>,
    new: bool,
    next_step: Cow<'a, str>,
    operation_id: Option<Cow<'a, str>>,
    severity: Cow<'a, str>,
    source: Cow<'a, str>,
    state: Cow<'a, str>,
    why: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct CarriedWire<'a> {
    breaks: Vec<BreakWire<'a>>,
    repairs: Vec<RepairWire<'a>>,
    runs: Vec<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct CheckWire<'a> {
    detail: Cow<'a, str>,
    name: Cow<'a, str>,
    status: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct FileWire<'a> {
    bytes: u64,
    path: Cow<'a, str>,
    rows: u64,
    sha256: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct IgnoredWire<'a> {
    intent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    money: Option<MoneyWire<'a>>,
    operation_id: Option<Cow<'a, str>>,
    reason: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct MatchWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delta: Option<MoneyWire<'a>>,
    intent_id: Option<Cow<'a, str>>,
    operation_id: Option<Cow<'a, str>>,
    rule: Cow<'a, str>,
}

/// An amount; `minor` is as wide as a sum may be.
#[derive(Serialize, Deserialize)]
struct MoneyWire<'a> {
    amount: Cow<'a, str>,
    currency: Cow<'a, str>,
    minor: i128,
}

#[derive(Serialize, Deserialize)]
struct OutcomeWire<'a> {
    exit_code: u8,
    name: Cow<'a, str>,
    reasons: Vec<ReasonWire<'a>>,
    retryable: bool,
}

#[derive(Serialize, Deserialize)]
struct PendingWire<'a> {
    due_at: Option<String>,
    intent_id: Option<Cow<'a, str>>,
    operation_id: Option<Cow<'a, str>>,
    why: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct ReasonWire<'a> {
    code: Cow<'a, str>,
    count: u64,
    #[serde(default, skip_serializing_if = "is_empty")]
    message: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct RepairWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    account: Option<Cow<'a, str>>,
    action: Cow<'a, str>,
    age_seconds: i64,
    break_id: Cow<'a, str>,
    class: Cow<'a, str>,
    from: Option<SideWire<'a>>,
    id: Cow<'a, str>,
    intent_id: Option<Cow<'a, str>>,
    occurred_at: String,
    operation_id: Option<Cow<'a, str>>,
    source: Cow<'a, str>,
    state: Cow<'a, str>,
    to: SideWire<'a>,
}

#[derive(Serialize, Deserialize)]
struct ResolvedWire<'a> {
    class: Cow<'a, str>,
    id: Cow<'a, str>,
    intent_id: Option<Cow<'a, str>>,
    operation_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
struct RunWire<'a> {
    as_of: String,
    command: Cow<'a, str>,
    config_digest: Option<Cow<'a, str>>,
    config_path: Option<Cow<'a, str>>,
    dry_run: bool,
    finished_at: String,
    id: Option<Cow<'a, str>>,
    started_at: String,
    version: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct SideWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    amount_minor: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    currency: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kind: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_intent_id: Option<Cow<'a, str>>,
    processor_ref: Option<Cow<'a, str>>,
    status: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct SourceWire<'a> {
    complete: bool,
    covered: Option<String>,
    files: Vec<FileWire<'a>>,
    name: Cow<'a, str>,
    operations: u64,
    outside_window: u64,
    rejected_rows: u64,
    watermark_after: Option<String>,
    watermark_before: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SummaryWire {
    breaks: u64,
    by_class: BTreeMap<String, u64>,
    ignored: u64,
    intents: u64,
    matched: u64,
    operations: u64,
    pending: u64,
    repairs: u64,
}

#[derive(Serialize, Deserialize)]
struct TotalWire<'a> {
    at_risk: MoneyWire<'a>,
    currency: Cow<'a, str>,
    fees: MoneyWire<'a>,
    gross: MoneyWire<'a>,
    matched: MoneyWire<'a>,
    net: MoneyWire<'a>,
    unreconciled: MoneyWire<'a>,
}

#[derive(Serialize, Deserialize)]
struct WarningWire<'a> {
    code: Cow<'a, str>,
    message: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct WindowWire<'a> {
    basis: Cow<'a, str>,
    from: Option<String>,
    from_local: Option<String>,
    to: Option<String>,
    to_local: Option<String>,
    zone: Cow<'a, str>,
}

// ---- out

#[expect(clippy::ptr_arg, reason = "serde hands over a reference to the field")]
fn is_empty(text: &Cow<'_, str>) -> bool {
    text.is_empty()
}

/// An id or another text of which empty means "none".
fn maybe(text: &str) -> Option<Cow<'_, str>> {
    (!text.is_empty()).then_some(Cow::Borrowed(text))
}

/// A point in time; `None` at the ends of time.
fn at(instant: Instant) -> Option<String> {
    (instant != Instant::MIN && instant != Instant::MAX).then(|| instant.to_string())
}

fn sum_wire(minor: i128, currency: Currency) -> MoneyWire<'static> {
    MoneyWire {
        amount: Cow::Owned(format_minor(minor, currency)),
        currency: Cow::Owned(currency.as_str().to_owned()),
        minor,
    }
}

fn money_wire(money: Money) -> MoneyWire<'static> {
    sum_wire(i128::from(money.minor), money.currency)
}

fn accounting_wire(accounting: &Accounting) -> AccountingWire {
    AccountingWire {
        intents: accounting.intents.into(),
        operations: accounting.operations.into(),
    }
}

impl From<Tally> for TallyWire {
    fn from(tally: Tally) -> TallyWire {
        TallyWire {
            ignored: tally.ignored,
            matched: tally.matched,
            pending: tally.pending,
            read: tally.read,
            unmatched: tally.unmatched,
        }
    }
}

impl From<TallyWire> for Tally {
    fn from(wire: TallyWire) -> Tally {
        Tally {
            read: wire.read,
            matched: wire.matched,
            pending: wire.pending,
            ignored: wire.ignored,
            unmatched: wire.unmatched,
        }
    }
}

fn break_wire(line: &BreakLine) -> BreakWire<'_> {
    let item = &line.item;
    let entry = item.class.entry();
    BreakWire {
        account: maybe(&item.account),
        acknowledged_until: item.acknowledged_until.and_then(at),
        age_seconds: line.age_seconds,
        also_operations: line
            .also_operations
            .iter()
            .map(|id| Cow::Borrowed(id.as_str()))
            .collect(),
        class: item.class.as_str().into(),
        delta: item.delta.map(money_wire),
        disposition: item.disposition.as_str().into(),
        first_seen_run: maybe(&item.first_seen_run),
        id: item.id.as_str().into(),
        intent_id: maybe(&item.intent_id),
        money: item.money.map(money_wire),
        new: line.is_new,
        next_step: entry.next_step.into(),
        operation_id: maybe(&item.operation_id),
        severity: entry.severity.as_str().into(),
        source: item.source.as_str().into(),
        state: item.state.as_str().into(),
        why: item.why.as_str().into(),
    }
}

fn carried_wire(report: &RunReport) -> CarriedWire<'_> {
    let carried = &report.carried;
    CarriedWire {
        breaks: carried.breaks.iter().map(break_wire).collect(),
        repairs: carried
            .repairs
            .iter()
            .map(|repair| repair_wire(repair, report.run.as_of))
            .collect(),
        runs: carried
            .runs
            .iter()
            .map(|id| Cow::Borrowed(id.as_str()))
            .collect(),
    }
}

fn check_wire(check: &Check) -> CheckWire<'_> {
    CheckWire {
        detail: check.detail.as_str().into(),
        name: check.name.as_str().into(),
        status: check.status.as_str().into(),
    }
}

fn ignored_wire(line: &IgnoredLine) -> IgnoredWire<'_> {
    IgnoredWire {
        intent_id: maybe(&line.intent_id),
        money: line.money.map(money_wire),
        operation_id: maybe(&line.operation_id),
        reason: line.reason.as_str().into(),
    }
}

fn match_wire(line: &MatchLine) -> MatchWire<'_> {
    MatchWire {
        account: maybe(&line.account),
        delta: line.delta.map(money_wire),
        intent_id: maybe(&line.intent_id),
        operation_id: maybe(&line.operation_id),
        rule: line.rule.as_str().into(),
    }
}

fn outcome_wire(outcome: &Outcome) -> OutcomeWire<'_> {
    OutcomeWire {
        exit_code: outcome.exit.code(),
        name: outcome.name.as_str().into(),
        reasons: outcome
            .reasons
            .iter()
            .map(|reason| ReasonWire {
                code: reason.code.as_str().into(),
                count: reason.count,
                message: reason.message.as_str().into(),
            })
            .collect(),
        retryable: outcome.exit.retry_helps(),
    }
}

fn pending_wire(line: &PendingLine) -> PendingWire<'_> {
    PendingWire {
        due_at: line.due_at.and_then(at),
        intent_id: maybe(&line.intent_id),
        operation_id: maybe(&line.operation_id),
        why: line.why.as_str().into(),
    }
}

fn repair_wire(repair: &Repair, as_of: Instant) -> RepairWire<'_> {
    RepairWire {
        account: maybe(&repair.account),
        action: repair.action.as_str().into(),
        age_seconds: as_of.seconds_since(repair.occurred_at),
        break_id: repair.break_id.as_str().into(),
        class: repair.class.as_str().into(),
        from: repair.from.as_ref().map(side_wire),
        id: repair.id.as_str().into(),
        intent_id: maybe(&repair.intent_id),
        occurred_at: repair.occurred_at.to_string(),
        operation_id: maybe(&repair.operation_id),
        source: repair.source.as_str().into(),
        state: repair.state.as_str().into(),
        to: side_wire(&repair.to),
    }
}

fn side_wire(side: &RepairSide) -> SideWire<'_> {
    SideWire {
        amount_minor: side.money.map(|money| money.minor),
        currency: side
            .money
            .map(|money| Cow::Owned(money.currency.as_str().to_owned())),
        kind: side.kind.map(|kind| kind.as_str().into()),
        parent_intent_id: maybe(&side.parent_intent_id),
        processor_ref: maybe(&side.processor_ref),
        status: side.status.as_str().into(),
    }
}

fn resolved_wire(line: &ResolvedLine) -> ResolvedWire<'_> {
    ResolvedWire {
        class: line.class.as_str().into(),
        id: line.id.as_str().into(),
        intent_id: maybe(&line.intent_id),
        operation_id: maybe(&line.operation_id),
    }
}

fn run_wire(run: &RunInfo) -> RunWire<'_> {
    RunWire {
        as_of: run.as_of.to_string(),
        command: run.command.as_str().into(),
        config_digest: maybe(&run.config_digest),
        config_path: maybe(&run.config_path),
        dry_run: run.is_dry_run,
        finished_at: run.finished_at.to_string(),
        id: maybe(&run.id),
        started_at: run.started_at.to_string(),
        version: run.version.as_str().into(),
    }
}

fn source_wire(source: &SourceReport) -> SourceWire<'_> {
    SourceWire {
        complete: source.is_complete,
        covered: source.covered.and_then(at),
        files: source
            .files
            .iter()
            .map(|file| FileWire {
                bytes: file.bytes,
                path: file.path.as_str().into(),
                rows: file.rows,
                sha256: file.sha256.as_str().into(),
            })
            .collect(),
        name: source.name.as_str().into(),
        operations: source.operations,
        outside_window: source.outside_window,
        rejected_rows: source.rejected_rows,
        watermark_after: source.watermark_after.and_then(at),
        watermark_before: source.watermark_before.and_then(at),
    }
}

fn summary_wire(report: &RunReport) -> SummaryWire {
    let summary = &report.summary;
    let mut by_class = BTreeMap::new();
    for line in &report.breaks {
        *by_class
            .entry(line.item.class.as_str().to_owned())
            .or_insert(0) += 1;
    }
    SummaryWire {
        breaks: report.breaks.len() as u64,
        by_class,
        ignored: summary.ignored,
        intents: summary.intents,
        matched: summary.matched,
        operations: summary.operations,
        pending: summary.pending,
        repairs: report.repairs.len() as u64,
    }
}

fn total_wire(total: &Total) -> TotalWire<'static> {
    let money = |minor| sum_wire(minor, total.currency);
    TotalWire {
        at_risk: money(total.at_risk),
        currency: Cow::Owned(total.currency.as_str().to_owned()),
        fees: money(total.fees),
        gross: money(total.gross),
        matched: money(total.matched),
        net: money(total.net),
        unreconciled: money(total.unreconciled),
    }
}

fn warning_wire(warning: &Warning) -> WarningWire<'_> {
    WarningWire {
        code: warning.code.as_str().into(),
        message: warning.message.as_str().into(),
    }
}

fn window_wire<'a>(window: &Window, zone: &'a Zone) -> WindowWire<'a> {
    WindowWire {
        basis: window.basis.as_str().into(),
        from: at(window.from),
        from_local: at(window.from).and_then(|_| zone.local(window.from)),
        to: at(window.to),
        to_local: at(window.to).and_then(|_| zone.local(window.to)),
        zone: zone.name().into(),
    }
}

// ---- back in

fn all<T, U>(list: Vec<T>, one: impl Fn(T) -> Result<U, ReadError>) -> Result<Vec<U>, ReadError> {
    list.into_iter().map(one).collect()
}

fn text_of(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

fn word<T>(
    what: &'static str,
    text: &str,
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<T, ReadError> {
    from_word(text).ok_or_else(|| ReadError::Word(what, text.to_owned()))
}

fn instant(what: &'static str, text: &str) -> Result<Instant, ReadError> {
    word(what, text, Instant::parse)
}

fn maybe_instant(what: &'static str, text: Option<&str>) -> Result<Option<Instant>, ReadError> {
    text.map(|text| instant(what, text)).transpose()
}

/// A bound of a window; none stands for an end of time.
fn bound(text: Option<&str>, end: Instant) -> Result<Instant, ReadError> {
    Ok(maybe_instant("window", text)?.unwrap_or(end))
}

fn sum_of(wire: &MoneyWire<'_>) -> Result<(i128, Currency), ReadError> {
    Ok((
        wire.minor,
        word("currency", &wire.currency, Currency::parse)?,
    ))
}

fn money_of(wire: Option<MoneyWire<'_>>) -> Result<Option<Money>, ReadError> {
    let Some(wire) = wire else { return Ok(None) };
    let (minor, currency) = sum_of(&wire)?;
    let minor =
        i64::try_from(minor).map_err(|_| ReadError::Word("amount", wire.amount.into_owned()))?;
    Ok(Some(Money::new(minor, currency)))
}

fn break_of(wire: BreakWire<'_>, as_of: Instant) -> Result<BreakLine, ReadError> {
    const MICROS_PER_SECOND: i64 = 1_000_000;
    let age = crate::time::Span(wire.age_seconds.saturating_mul(MICROS_PER_SECOND));
    Ok(BreakLine {
        item: Break {
            id: wire.id.into_owned(),
            class: word("class", &wire.class, BreakClass::from_word)?,
            source: wire.source.into_owned(),
            account: text_of(wire.account),
            operation_id: text_of(wire.operation_id),
            intent_id: text_of(wire.intent_id),
            money: money_of(wire.money)?,
            delta: money_of(wire.delta)?,
            why: wire.why.into_owned(),
            evidence: String::new(),
            state: word("break state", &wire.state, BreakState::from_word)?,
            disposition: word(
                "disposition",
                &wire.disposition,
                BreakDisposition::from_word,
            )?,
            is_sticky: false,
            first_seen_run: text_of(wire.first_seen_run),
            first_seen_at: as_of.minus(age),
            acknowledged_until: maybe_instant(
                "acknowledged_until",
                wire.acknowledged_until.as_deref(),
            )?,
        },
        is_new: wire.new,
        age_seconds: wire.age_seconds,
        also_operations: wire
            .also_operations
            .into_iter()
            .map(Cow::into_owned)
            .collect(),
    })
}

fn ignored_of(wire: IgnoredWire<'_>) -> Result<IgnoredLine, ReadError> {
    Ok(IgnoredLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        reason: word("reason", &wire.reason, IgnoreReason::from_word)?,
        money: money_of(wire.money)?,
    })
}

fn match_of(wire: MatchWire<'_>) -> Result<MatchLine, ReadError> {
    Ok(MatchLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        account: text_of(wire.account),
        rule: word("rule", &wire.rule, Rule::from_word)?,
        delta: money_of(wire.delta)?,
    })
}

fn pending_of(wire: PendingWire<'_>) -> Result<PendingLine, ReadError> {
    Ok(PendingLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        due_at: maybe_instant("due_at", wire.due_at.as_deref())?,
        why: wire.why.into_owned(),
    })
}

fn repair_of(wire: RepairWire<'_>) -> Result<Repair, ReadError> {
    Ok(Repair {
        id: wire.id.into_owned(),
        break_id: wire.break_id.into_owned(),
        source: wire.source.into_owned(),
        class: word("class", &wire.class, BreakClass::from_word)?,
        action: word("action", &wire.action, RepairAction::from_word)?,
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        account: text_of(wire.account),
        from: wire.from.map(side_of).transpose()?,
        to: side_of(wire.to)?,
        planned_version: 0,
        state: word("repair state", &wire.state, RepairState::from_word)?,
        occurred_at: instant("occurred_at", &wire.occurred_at)?,
    })
}

fn side_of(wire: SideWire<'_>) -> Result<RepairSide, ReadError> {
    let currency = wire
        .currency
        .map(|code| word("currency", &code, Currency::parse))
        .transpose()?;
    Ok(RepairSide {
        kind: wire
            .kind
            .map(|kind| word("kind", &kind, IntentKind::from_word))
            .transpose()?,
        status: word("status", &wire.status, IntentStatus::from_word)?,
        processor_ref: text_of(wire.processor_ref),
        parent_intent_id: text_of(wire.parent_intent_id),
        money: wire
            .amount_minor
            .zip(currency)
            .map(|(minor, currency)| Money::new(minor, currency)),
    })
}

fn source_of(wire: SourceWire<'_>) -> Result<SourceReport, ReadError> {
    Ok(SourceReport {
        name: wire.name.into_owned(),
        is_complete: wire.complete,
        operations: wire.operations,
        outside_window: wire.outside_window,
        rejected_rows: wire.rejected_rows,
        covered: maybe_instant("covered", wire.covered.as_deref())?,
        watermark_before: maybe_instant("watermark_before", wire.watermark_before.as_deref())?,
        watermark_after: maybe_instant("watermark_after", wire.watermark_after.as_deref())?,
        files: wire
            .files
            .into_iter()
            .map(|file| FileLine {
                path: file.path.into_owned(),
                bytes: file.bytes,
                rows: file.rows,
                sha256: file.sha256.into_owned(),
            })
            .collect(),
    })
}

fn total_of(wire: TotalWire<'_>) -> Result<Total, ReadError> {
    let currency = word("currency", &wire.currency, Currency::parse)?;
    Ok(Total {
        currency,
        gross: sum_of(&wire.gross)?.0,
        fees: sum_of(&wire.fees)?.0,
        net: sum_of(&wire.net)?.0,
        matched: sum_of(&wire.matched)?.0,
        unreconciled: sum_of(&wire.unreconciled)?.0,
        at_risk: sum_of(&wire.at_risk)?.0,
    })
}
