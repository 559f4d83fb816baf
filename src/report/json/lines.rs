//! The JSON report as lines: the same objects, one a line, each with a `type`. `run` comes first and `outcome` last, so
//! that a stream that was cut is recognised.

use std::io::{self, Write};

use serde::Serialize;

use super::{
    SCHEMA, SCHEMA_VERSION, accounting_wire, break_wire, check_wire, day_wire, delivery_wire,
    ignored_wire, match_wire, outcome_wire, pending_wire, repair_wire, resolved_wire, run_wire,
    source_wire, statement_wire, summary_wire, total_wire, warning_wire, window_wire,
};
use crate::report::RunReport;

/// An object with its type in front.
#[derive(Serialize)]
struct Line<'a, T: Serialize> {
    r#type: &'a str,
    #[serde(flatten)]
    object: T,
}

/// The run, with what a reader needs to know of the stream.
#[derive(Serialize)]
struct Opening<T: Serialize> {
    #[serde(flatten)]
    run: T,
    schema: &'static str,
    schema_version: &'static str,
}

/// Writes the report as lines.
pub fn write(report: &RunReport, out: &mut dyn Write) -> io::Result<()> {
    let as_of = report.run.as_of;
    let mut lines = Lines { out };
    lines.one(
        "run",
        Opening {
            run: run_wire(&report.run),
            schema: SCHEMA,
            schema_version: SCHEMA_VERSION,
        },
    )?;
    lines.one("window", window_wire(&report.window, &report.zone))?;
    lines.all("source", report.sources.iter().map(source_wire))?;
    lines.all("total", report.totals.iter().map(total_wire))?;
    lines.all("statement", report.statement.iter().map(statement_wire))?;
    lines.all("day", report.days.iter().map(day_wire))?;
    lines.one("summary", summary_wire(report))?;
    lines.one("accounting", accounting_wire(&report.accounting))?;
    lines.all("break", report.breaks.iter().map(break_wire))?;
    lines.all(
        "repair",
        report
            .repairs
            .iter()
            .map(|repair| repair_wire(repair, as_of)),
    )?;
    for id in &report.carried.runs {
        lines.one("carried_run", CarriedRun { id })?;
    }
    lines.all(
        "carried_break",
        report.carried.breaks.iter().map(break_wire),
    )?;
    let carried = report.carried.repairs.iter();
    lines.all(
        "carried_repair",
        carried.map(|repair| repair_wire(repair, as_of)),
    )?;
    lines.all("resolved", report.resolved.iter().map(resolved_wire))?;
    lines.all("match", report.matches.iter().flatten().map(match_wire))?;
    lines.all("pending", report.pending.iter().flatten().map(pending_wire))?;
    lines.all("ignored", report.ignored.iter().flatten().map(ignored_wire))?;
    lines.all("check", report.checks.iter().map(check_wire))?;
    lines.all("warning", report.warnings.iter().map(warning_wire))?;
    lines.all("delivery", report.deliveries.iter().map(delivery_wire))?;
    lines.one("outcome", outcome_wire(&report.outcome))
}

#[derive(Serialize)]
struct CarriedRun<'a> {
    id: &'a str,
}

struct Lines<'a> {
    out: &'a mut dyn Write,
}

impl Lines<'_> {
    fn one<T: Serialize>(&mut self, r#type: &str, object: T) -> io::Result<()> {
        serde_json::to_writer(&mut *self.out, &Line { r#type, object }).map_err(io::Error::from)?;
        self.out.write_all(b"\n")
    }

    fn all<T: Serialize>(
        &mut self,
        r#type: &str,
        objects: impl Iterator<Item = T>,
    ) -> io::Result<()> {
        for object in objects {
            self.one(r#type, object)?;
        }
        Ok(())
    }
}
