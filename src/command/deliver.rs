//! Where a report goes: stdout, and files that are written beside their target and renamed.

use std::borrow::Cow;
use std::io::{ErrorKind, Write};
use std::path::Path;

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::report::redact::redacted;
use crate::report::{self, Form, RenderOptions, RunReport};
use crate::settings::{OutputSpec, Settings};

use super::World;

/// Writes to stdout. A reader that closed the pipe has seen what it wanted; anything else is `undelivered`.
pub fn to_stdout(stdout: &mut dyn Write, bytes: &[u8]) -> Result<(), Failure> {
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::new(
            Exit::Undelivered,
            "the report could not be written to stdout",
        )
        .why(error.to_string())
        .remedy("show it again with `paysweep report latest`")
        .state("what the run wrote to the store stands")),
        _ => Ok(()),
    }
}

/// How a report is shown on stdout.
fn options(common: &CommonArgs, world: &World<'_>) -> RenderOptions {
    let no_color = (world.env)("NO_COLOR").is_some_and(|value| !value.is_empty());
    let defaults = RenderOptions::default();
    RenderOptions {
        limit: common.limit,
        has_color: common.has_color(world.is_stdout_terminal, no_color),
        min_severity: common.min_severity.unwrap_or(defaults.min_severity),
        columns: world.columns.unwrap_or(defaults.columns),
    }
}

/// Tells a report: to stdout unless it is quiet and there is nothing to tell, and to every file that is asked for.
pub fn deliver(
    report: &RunReport,
    common: &CommonArgs,
    settings: Option<&Settings>,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let configured: &[OutputSpec] = match settings {
        Some(settings) if !report.run.is_dry_run => &settings.report.files,
        _ => &[],
    };
    let report = seen_outside(report, settings);
    let written = to_files(&report, common, configured);
    if !(common.quiet && report.outcome.exit == Exit::Ok) {
        show(&report, common, world)?;
    }
    written
}

/// Tells a stored report again: to stdout, and to the files that were typed.
pub(crate) fn again(
    report: &RunReport,
    common: &CommonArgs,
    settings: &Settings,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let report = seen_outside(report, Some(settings));
    let written = to_files(&report, common, &[]);
    show(&report, common, world)?;
    written
}

/// The report without what the configuration masks.
pub(crate) fn seen_outside<'r>(
    report: &'r RunReport,
    settings: Option<&Settings>,
) -> Cow<'r, RunReport> {
    match settings.map(|settings| settings.report.redact.as_slice()) {
        None | Some([]) => Cow::Borrowed(report),
        Some(columns) => Cow::Owned(redacted(report, columns)),
    }
}

fn show(report: &RunReport, common: &CommonArgs, world: &mut World<'_>) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    report::render(report, common.form(), options(common, world), &mut bytes)
        .map_err(|error| cannot_write("stdout", &error))?;
    to_stdout(world.stdout, &bytes)
}

/// Every file is tried; the first that could not be written is told.
fn to_files(
    report: &RunReport,
    common: &CommonArgs,
    configured: &[OutputSpec],
) -> Result<(), Failure> {
    let defaults = RenderOptions::default();
    let plain = RenderOptions {
        limit: common.limit,
        min_severity: common.min_severity.unwrap_or(defaults.min_severity),
        ..defaults
    };
    let mut first = Ok(());
    for output in common.outputs.iter().chain(configured) {
        let form = output.format.unwrap_or(common.form());
        let path = output
            .path
            .to_string_lossy()
            .replace("{run_id}", &report.run.id);
        let written = to_file(Path::new(&path), report, form, plain);
        if first.is_ok() {
            first = written;
        }
    }
    first
}

/// Writes beside the target under a temporary name with mode 0600, then renames: the old report or the new one, never
/// half of it.
fn to_file(
    path: &Path,
    report: &RunReport,
    form: Form,
    options: RenderOptions,
) -> Result<(), Failure> {
    let write = || -> std::io::Result<()> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let file = tempfile::Builder::new()
            .prefix(".paysweep-")
            .tempfile_in(folder)?;
        let mut out = std::io::BufWriter::new(file);
        report::render(report, form, options, &mut out)?;
        let file = out
            .into_inner()
            .map_err(std::io::IntoInnerError::into_error)?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| cannot_write(&path.display().to_string(), &error))
}

fn cannot_write(target: &str, error: &std::io::Error) -> Failure {
    Failure::new(
        Exit::Undelivered,
        format!("the report could not be written to {target}"),
    )
    .why(error.to_string())
    .remedy("make the place writable, then show the report again with `paysweep report latest`")
    .state("what the run wrote to the store stands")
}
