//! `paysweep intents import`: loads intents into the store's own table, outside of a run.

use std::path::Path;

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::intents::amount::IntentsRules;
use crate::intents::csv as intents_csv;
use crate::intents::merge::{Merged, merge};
use crate::meter::Meter;
use crate::model::intent::Intents;
use crate::settings::{IntentsKind, IntentsSettings};
use crate::store::contract::{IntentChanges, IntentSelection, Store};

use super::World;

/// How the settings say that local amounts are written.
pub(crate) fn rules(settings: &IntentsSettings) -> IntentsRules {
    IntentsRules {
        amount_unit: settings.amount_unit,
        rounding: settings.rounding,
    }
}

/// Gives intents that name no source the one that the settings say owns them.
pub(crate) fn own(intents: &mut Intents, source: &str) {
    if source.is_empty() {
        return;
    }
    let owner = intents.text.push(source);
    for column in &mut intents.source {
        if column.is_empty() {
            *column = owner;
        }
    }
}

/// Imports a file.
pub async fn import(
    file: &Path,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    if settings.intents.kind == IntentsKind::Sql {
        return Err(Failure::rejected(
            "intents of kind \"sql\" are read from their table by each run, and are not imported",
        )
        .remedy("change the rows in the table; paysweep sees them at the next run")
        .state("nothing was written"));
    }
    let name = file.display().to_string();
    let mut rows = intents_csv::read(&rules(&settings.intents), &name, file, &Meter::default())
        .map_err(|failure| failure.state("the file was rejected, nothing was written"))?;
    own(&mut rows, &settings.intents.source);
    let mut store = super::store(&settings).await?;
    let scope = &settings.intents.name;
    let stored = store.intents(scope, "", IntentSelection::All).await?;
    let merged = merge(&rows, &stored);
    let new = Merged::indices(&merged.is_new);
    let changed = Merged::indices(&merged.is_changed);
    let touched = Merged::indices(&merged.is_touched);
    let changes = IntentChanges {
        rows: &merged.intents,
        imported_status: &merged.imported_status,
        imported_processor_ref: &merged.imported_processor_ref,
        new: &new,
        changed: &changed,
        touched: &touched,
        superseded: &merged.superseded,
        confirmed: &merged.confirmed,
    };
    let run_id = uuid::Uuid::now_v7().to_string();
    store
        .import_intents(scope, &run_id, (world.clock)(), &changes)
        .await?;
    world.say(&format!(
        "{name}: {} rows read, {} new, {} changed, {} unchanged; {} recorded rows superseded, {} repairs confirmed\n",
        rows.len(),
        new.len(),
        merged.is_changed.iter().filter(|changed| **changed).count(),
        rows.len().saturating_sub(new.len() + merged.is_changed.iter().filter(|changed| **changed).count()),
        merged.superseded.len(),
        merged.confirmed.len(),
    ))?;
    Ok(Exit::Ok)
}
