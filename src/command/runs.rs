//! `paysweep runs` and `paysweep report`: history.

use serde_json::{Value, json};

use crate::cli::{CommonArgs, ReportArgs, RunsCommand};
use crate::exit::{Exit, Failure};
use crate::report::{self, Form, Format};
use crate::settings::Settings;
use crate::store::contract::{RunRow, Store};

use super::breaks::pretty;
use super::{World, deliver, prune};

/// `paysweep runs …`.
pub async fn execute(
    command: &RunsCommand,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    if let RunsCommand::Prune { keep_within } = command {
        return prune::execute(*keep_within, &settings, common, world).await;
    }
    let mut store = super::store_to_read(&settings).await?;
    match command {
        RunsCommand::Prune { .. } => unreachable!("it was just dealt with"),
        RunsCommand::List => {
            let limit = u32::try_from(common.limit).unwrap_or(u32::MAX);
            let found = store.runs(limit).await?;
            match common.format() {
                Format::Json => {
                    let lines: Vec<Value> = found.iter().map(run_json).collect();
                    world.say(&pretty(&json!({ "runs": lines })))?;
                }
                Format::Table if found.is_empty() => world.say("no runs\n")?,
                Format::Table => world.say(&found.iter().map(line).collect::<String>())?,
            }
        }
        RunsCommand::Show { id } => {
            let row = store.run(super::typed_id(id)?).await.map_err(unwritten)?;
            match (common.format(), &row.report_json) {
                (Format::Json, _) => {
                    let mut value = run_json(&row);
                    let report = match row.report_json.as_deref() {
                        Some(json) => seen_outside(json, &settings)?,
                        None => None,
                    };
                    if let (Value::Object(fields), Some(report)) = (&mut value, report) {
                        for key in [
                            "window",
                            "sources",
                            "totals",
                            "summary",
                            "accounting",
                            "outcome",
                            "checks",
                        ] {
                            fields.insert(key.to_owned(), report[key].clone());
                        }
                    }
                    world.say(&pretty(&value))?;
                }
                (Format::Table, Some(json)) => show_again(json, common, &settings, world)?,
                (Format::Table, None) => world.say(&line(&row))?,
            }
        }
    }
    Ok(Exit::Ok)
}

/// `paysweep report RUN`: renders a stored run again. Ends with 0, whatever the run ended with.
pub async fn report(
    arguments: &ReportArgs,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let mut store = super::store_to_read(&settings).await?;
    let row = match super::typed_id(&arguments.run)? {
        "latest" => latest(&mut store).await,
        id => store.run(id).await,
    }
    .map_err(unwritten)?;
    let json = row.report_json.ok_or_else(|| match row.report_pruned_at {
        Some(at) => Failure::rejected(format!("the report of run {} was pruned at {at}", row.run_id))
            .why("`paysweep runs prune` forgets old reports; breaks, repairs and their ledger stay")
            .remedy("`paysweep runs show` tells how the run ended, `paysweep repairs list` what was written; a file that the run wrote is not touched by pruning"),
        None => Failure::rejected(format!("run {} left no report", row.run_id))
            .why("it did not finish, or could read nothing")
            .remedy("`paysweep breaks list` shows what is open"),
    })?;
    show_again(&json, common, &settings, world)?;
    Ok(Exit::Ok)
}

/// So many runs back the latest one that compared something is looked for.
const RUNS_BACK: u32 = 1_000;

/// The latest run that compared something. What a person does to a source by hand is a run in the history, and no report.
async fn latest(store: &mut impl Store) -> Result<RunRow, Failure> {
    let found = store.runs(RUNS_BACK).await?;
    let compared = found
        .iter()
        .find(|row| row.command == "run" && row.finished_at.is_some() && row.outcome != "piece");
    store
        .run(compared.map_or("latest", |row| row.run_id.as_str()))
        .await
}

/// Shows a stored report in the form that is asked for, and writes it to the files that are. No file of the
/// configuration is written: those are the run's.
pub(crate) fn show_again(
    json: &str,
    common: &CommonArgs,
    settings: &Settings,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let is_plain = settings.report.redact.is_empty() && common.outputs.is_empty();
    if common.form() == Form::Json && is_plain {
        return world.say(json);
    }
    let stored = report::json::read(json).map_err(|error| {
        Failure::new(Exit::NotReady, "the stored report cannot be read").why(error.to_string())
    })?;
    deliver::again(&stored, common, settings, world)
}

/// A stored report as JSON, without what the configuration masks.
fn seen_outside(json: &str, settings: &Settings) -> Result<Option<Value>, Failure> {
    if settings.report.redact.is_empty() {
        return Ok(serde_json::from_str(json).ok());
    }
    let Ok(report) = report::json::read(json) else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    report::json::write(&deliver::seen_outside(&report, Some(settings)), &mut bytes).map_err(
        |error| {
            Failure::new(Exit::Internal, "the report could not be rendered").why(error.to_string())
        },
    )?;
    Ok(serde_json::from_slice(&bytes).ok())
}

fn unwritten(failure: Failure) -> Failure {
    failure.state("nothing was written")
}

fn line(row: &RunRow) -> String {
    let ended = match (row.finished_at, row.exit_code) {
        (Some(at), Some(code)) => format!("ended {at} with {code} ({})", row.outcome),
        _ => "did not end".to_owned(),
    };
    let pruned = match row.report_pruned_at {
        Some(at) => format!("  report pruned {at}"),
        None => String::new(),
    };
    format!(
        "{}  {}  {}  as of {}  {ended}{pruned}\n",
        row.run_id,
        row.command,
        row.sources.join(","),
        row.as_of
    )
}

fn run_json(row: &RunRow) -> Value {
    json!({
        "run_id": row.run_id,
        "command": row.command,
        "names": row.sources,
        "as_of": row.as_of.to_string(),
        "started_at": row.started_at.to_string(),
        "finished_at": row.finished_at.map(|at| at.to_string()),
        "version": row.version,
        "exit_code": row.exit_code,
        "outcome_name": row.outcome,
        "report_pruned_at": row.report_pruned_at.map(|at| at.to_string()),
    })
}
