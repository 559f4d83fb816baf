//! The report for machines: contract section 12, and the form in which the store keeps a run.
//!
//! [`write()`] streams: a list of a million entries is never a tree in memory. Each entry stands on a line of its own, so
//! that two reports can be compared with line tools. [`read()`] takes a stored report back, so that it can be shown in any
//! other form.
//!
//! Decisions: keys are sorted because the fields of `wire` are declared in that order; a test holds it. An id that is none
//! is `null`. A break that was seen first in this very run has `"first_seen_run": null` beside `"new": true`, so that
//! nothing outside of `run` depends on the run's id. What a reader of a report cannot need (evidence hashes, planned
//! versions) is not kept in it, and is empty after [`read()`].

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

use super::{
    Accounting, BreakLine, Check, Delivery, IgnoredLine, MatchLine, Outcome, PendingLine,
    ResolvedLine, RunInfo, RunReport, SourceReport, Warning,
};
use crate::model::repair::{Repair, RepairSide};
use crate::model::run::{Total, Window};
use crate::model::statement::{DayLine, Statement};
use crate::money::{Currency, Money, format_minor};
use crate::time::{Instant, Zone};

mod lines;
mod read;
mod wire;

pub use lines::write as write_lines;
pub use read::{ReadError, read};
use wire::{
    AccountingWire, BreakWire, CarriedWire, CheckWire, DayWire, DeliveryWire, ExplainedWire,
    FileWire, IgnoredWire, ItemsWire, LatenessWire, LedgerWire, MatchWire, MoneyWire, OutcomeWire,
    PendingWire, ReasonWire, RepairWire, ResolvedWire, RunWire, SideWire, SourceWire,
    StatementWire, SummaryWire, TotalWire, WarningWire, WindowWire,
};

/// Name of the schema.
pub const SCHEMA: &str = "paysweep.report";
/// Its version: fields are added, never changed.
pub const SCHEMA_VERSION: &str = "1.0";
/// The JSON Schema (draft 2020-12) of the report. `paysweep schema report` prints it.
pub const JSON_SCHEMA: &str = include_str!("report.schema.json");
/// What every version that can be read begins with.
const SCHEMA_VERSION_MAJOR: &str = "1.";

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
    object.list("days", report.days.iter().map(day_wire))?;
    object.list("deliveries", report.deliveries.iter().map(delivery_wire))?;
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
    object.list("statement", report.statement.iter().map(statement_wire))?;
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
        disposition: line.disposition().as_str().into(),
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

fn day_wire(line: &DayLine) -> DayWire<'_> {
    DayWire {
        day: line.day.as_str().into(),
        ignored: line.ignored,
        matched: line.matched,
        pending: line.pending,
        unmatched: line.unmatched,
    }
}

fn delivery_wire(line: &Delivery) -> DeliveryWire<'_> {
    DeliveryWire {
        channel: line.channel.as_str().into(),
        detail: line.detail.as_str().into(),
        kind: line.kind.as_str().into(),
        required: line.is_required,
        status: line.status.as_str().into(),
    }
}

fn ignored_wire(line: &IgnoredLine) -> IgnoredWire<'_> {
    IgnoredWire {
        folded_into: maybe(&line.folded_into),
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
        settled: line.settled.map(money_wire),
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
        expires_at: repair.expires_at.map(|at| at.to_string().into()),
        from: repair.from.as_ref().map(side_wire),
        id: repair.id.as_str().into(),
        intent_id: maybe(&repair.intent_id),
        note: repair.note.as_str().into(),
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
        money: line.money.map(money_wire),
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
        ledger: run.ledger.as_ref().map(|end| LedgerWire {
            entries: end.entries,
            head: maybe(&end.hash),
        }),
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
        lateness: source.lateness.as_ref().map(LatenessWire::from),
        name: source.name.as_str().into(),
        operations: source.operations,
        outside_window: source.outside_window,
        rejected_rows: source.rejected_rows,
        watermark_after: source.watermark_after.and_then(at),
        watermark_before: source.watermark_before.and_then(at),
    }
}

fn statement_wire(statement: &Statement) -> StatementWire<'_> {
    let money = |minor| sum_wire(minor, statement.currency);
    let (items, bridge) = (&statement.items, &statement.bridge);
    StatementWire {
        currency: Cow::Owned(statement.currency.as_str().to_owned()),
        difference: money(bridge.difference()),
        explained: bridge
            .explained
            .iter()
            .map(|line| ExplainedWire {
                code: line.code.as_str().into(),
                difference: money(line.difference()),
                intents: line.intents,
                local: money(line.local),
                operations: line.operations,
                processor: money(line.processor),
            })
            .collect(),
        items: ItemsWire {
            acknowledged: money(items.acknowledged),
            changed: money(items.changed),
            cleared: money(items.cleared),
            closing: money(items.closing),
            new: money(items.new),
            opening: money(items.opening),
            residual: money(items.residual()),
        },
        local: money(bridge.local),
        processor: money(bridge.processor),
        residual: money(bridge.residual()),
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
