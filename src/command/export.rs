//! `paysweep repairs export`: the ledger as an outbox, for software or for a person who writes the repairs by other means.

use serde_json::{Value, json};

use crate::cli::{CommonArgs, ExportForm};
use crate::exit::{Exit, Failure};
use crate::intents::sql::export::written_out;
use crate::model::intent::IntentKind;
use crate::model::repair::{RepairAction, RepairState};
use crate::store::contract::{RepairDetail, RepairFilter, Store};
use crate::time::Instant;

use super::World;
use super::breaks::pretty;
use super::repairs::{ORIGIN, repair_json};

/// Writes repairs of a state to stdout, oldest first. Nothing changes: who exports is not who applies.
pub(super) async fn execute(
    form: ExportForm,
    state: RepairState,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let as_of = crate::settings::window::as_of(
        common.as_of.as_deref(),
        &settings.timezone,
        (world.clock)(),
    )?;
    let mut store = super::store_to_read(&settings).await?;
    let names = super::source_names(&settings, common)?;
    let sources: Vec<&str> = names.iter().map(String::as_str).collect();
    let found = store
        .repairs(&RepairFilter {
            sources: &sources,
            states: &[state],
            ..RepairFilter::default()
        })
        .await?;
    let text = match form {
        ExportForm::Json => {
            let lines: Vec<Value> = found
                .iter()
                .map(|detail| repair_json(detail, as_of))
                .collect();
            pretty(&json!({ "repairs": lines }))
        }
        ExportForm::Csv => csv(&found, as_of),
        ExportForm::Sql => {
            let Some(apply) = &settings.repair.apply else {
                return Err(Failure::rejected("there are no statements to write out")
                    .remedy("add [repair.apply] to the configuration, or export as csv or json")
                    .state("nothing was written"));
            };
            let mut text = String::new();
            for detail in &found {
                let item = &detail.item;
                if item.action == RepairAction::Redrive {
                    // There is nothing to be written; who sends it reads it as csv or json.
                    continue;
                }
                let statement = written_out(apply, item, as_of)
                    .map_err(|failure| failure.state("nothing was written"))?;
                // A comment is one line, whatever stands in an id.
                let about: String = format!(
                    "repair {} of {} (break {}, {}): one row has to change",
                    item.id, item.intent_id, item.break_id, item.class
                )
                .chars()
                .map(|letter| if letter.is_control() { ' ' } else { letter })
                .collect();
                text.push_str(&format!("-- {about}\n{statement};\n"));
            }
            text
        }
    };
    world.say(&text)?;
    Ok(Exit::Ok)
}

const COLUMNS: &str = "repair_id,state,action,source,class,break_id,intent_id,operation_id,from_status,\
    from_processor_ref,to_status,to_processor_ref,kind,amount_minor,currency,parent_intent_id,planned_version,\
    occurred_at,written_at,run_id,evidence,repair_origin,age_seconds,expires_at,idempotency_key";

fn csv(found: &[RepairDetail], as_of: Instant) -> String {
    let mut text = format!("{COLUMNS}\n");
    for detail in found {
        let item = &detail.item;
        let from = item.from.as_ref();
        let cells = [
            item.id.clone(),
            item.state.to_string(),
            item.action.to_string(),
            cell(&item.source),
            item.class.to_string(),
            item.break_id.clone(),
            cell(&item.intent_id),
            cell(&item.operation_id),
            from.map_or_else(String::new, |side| side.status.to_string()),
            cell(from.map_or("", |side| &side.processor_ref)),
            item.to.status.to_string(),
            cell(&item.to.processor_ref),
            item.to.kind.map_or("", IntentKind::as_str).to_owned(),
            item.to
                .money
                .map_or_else(String::new, |money| money.minor.to_string()),
            item.to
                .money
                .map_or_else(String::new, |money| money.currency.as_str().to_owned()),
            cell(&item.to.parent_intent_id),
            item.planned_version.to_string(),
            item.occurred_at.to_string(),
            detail.written_at.to_string(),
            detail.run_id.clone(),
            detail.evidence.clone(),
            ORIGIN.to_owned(),
            as_of.seconds_since(item.occurred_at).to_string(),
            item.expires_at
                .map_or_else(String::new, |at| at.to_string()),
            cell(&item.idempotency_key),
        ];
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

/// A text as RFC 4180 has it. One that a spreadsheet would take for a formula has an apostrophe in front of it (OWASP, "CSV
/// Injection"); JSON has it as it is.
fn cell(text: &str) -> String {
    let guard = if text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']) {
        "'"
    } else {
        ""
    };
    if guard.is_empty() && !text.contains([',', '"', '\n', '\r']) {
        return text.to_owned();
    }
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn a_cell_is_one_text_and_no_formula() {
        for (text, want) in [
            ("ch_1", "ch_1"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("=1+1", "\"'=1+1\""),
            ("", ""),
        ] {
            assert_eq!(cell(text), want);
        }
    }
}
