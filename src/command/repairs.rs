//! `paysweep repairs`: the append-only ledger.

use serde_json::{Value, json};

use crate::cli::{CommonArgs, RepairsCommand};
use crate::exit::{Exit, Failure};
use crate::model::repair::{Repair, RepairSide};
use crate::report::Format;
use crate::report::sanitise::clean;
use crate::store::contract::{RepairDetail, RepairFilter, Store};

use super::World;
use super::breaks::{event_json, event_line, money_json, pretty};

/// `paysweep repairs …`.
pub async fn execute(
    command: &RepairsCommand,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let mut store = super::store_to_read(&settings).await?;
    match command {
        RepairsCommand::List => {
            let names = super::source_names(&settings, common)?;
            let sources: Vec<&str> = names.iter().map(String::as_str).collect();
            let mut found = store
                .repairs(&RepairFilter {
                    sources: &sources,
                    ..RepairFilter::default()
                })
                .await?;
            found.reverse();
            match common.format() {
                Format::Json => {
                    let lines: Vec<Value> = found.iter().map(repair_json).collect();
                    world.say(&pretty(&json!({ "repairs": lines })))?;
                }
                Format::Table => world.say(&list(&found, common.limit))?,
            }
        }
        RepairsCommand::Show { id } => {
            let detail = store
                .repair(super::typed_id(id)?)
                .await
                .map_err(|failure| failure.state("nothing was written"))?;
            match common.format() {
                Format::Json => {
                    let mut value = repair_json(&detail);
                    if let Value::Object(fields) = &mut value {
                        fields.insert(
                            "events".to_owned(),
                            Value::Array(detail.events.iter().map(event_json).collect()),
                        );
                    }
                    world.say(&pretty(&value))?;
                }
                Format::Table => world.say(&detail_text(&detail))?,
            }
        }
    }
    Ok(Exit::Ok)
}

fn list(found: &[RepairDetail], limit: usize) -> String {
    if found.is_empty() {
        return "no repairs\n".to_owned();
    }
    let mut text = String::new();
    for detail in found.iter().take(limit) {
        let item = &detail.item;
        text.push_str(&format!(
            "{}  {:<9}  {:<14}  {} ← {}  {}\n",
            &item.id[..12.min(item.id.len())],
            item.state,
            item.action,
            clean(&item.intent_id),
            clean(&item.operation_id),
            change(item),
        ));
    }
    if found.len() > limit {
        text.push_str(&format!("and {} more (--limit)\n", found.len() - limit));
    }
    text
}

fn side(side: &RepairSide) -> String {
    let mut text = side.status.to_string();
    if let Some(money) = side.money {
        text.push_str(&format!(" {money}"));
    }
    if !side.processor_ref.is_empty() {
        text.push_str(&format!(" ({})", clean(&side.processor_ref)));
    }
    text
}

fn change(item: &Repair) -> String {
    match &item.from {
        Some(from) => format!("{} → {}", side(from), side(&item.to)),
        None => format!("new: {}", side(&item.to)),
    }
}

fn detail_text(detail: &RepairDetail) -> String {
    let item = &detail.item;
    let mut text = format!(
        "repair     {}\nstate      {}\naction     {}\nsource     {}\nintent     {}\noperation  {}\nchange     {}\nbreak      {} ({})\nrun        {}\nwritten    {}\nhappened   {}\nplanned    against version {}\nevidence   {}\nhistory\n",
        item.id,
        item.state,
        item.action,
        item.source,
        clean(&item.intent_id),
        clean(&item.operation_id),
        change(item),
        item.break_id,
        item.class,
        detail.run_id,
        detail.written_at,
        item.occurred_at,
        item.planned_version,
        detail.evidence,
    );
    for event in &detail.events {
        text.push_str(&event_line(event));
    }
    text
}

fn side_json(side: &RepairSide) -> Value {
    json!({
        "kind": side.kind.map(crate::model::intent::IntentKind::as_str),
        "status": side.status.as_str(),
        "processor_ref": side.processor_ref,
        "parent_intent_id": side.parent_intent_id,
        "money": money_json(side.money),
    })
}

fn repair_json(detail: &RepairDetail) -> Value {
    let item = &detail.item;
    json!({
        "id": item.id,
        "break_id": item.break_id,
        "class": item.class.as_str(),
        "action": item.action.as_str(),
        "state": item.state.as_str(),
        "source": item.source,
        "intent_id": item.intent_id,
        "operation_id": item.operation_id,
        "from": item.from.as_ref().map(side_json),
        "to": side_json(&item.to),
        "planned_version": item.planned_version,
        "occurred_at": item.occurred_at.to_string(),
        "run_id": detail.run_id,
        "written_at": detail.written_at.to_string(),
        "evidence": detail.evidence,
    })
}
