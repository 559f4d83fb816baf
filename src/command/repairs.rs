//! `paysweep repairs`: the append-only ledger.

use serde_json::{Value, json};

use crate::cli::{CommonArgs, RepairsCommand};
use crate::exit::{Exit, Failure};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::report::Format;
use crate::report::sanitise::clean;
use crate::report::text::age;
use crate::settings::Settings;
use crate::store::contract::{Decision, Note, RepairDetail, RepairFilter, Store};
use crate::time::Instant;

use super::World;
use super::breaks::{event_json, event_line, money_json, pretty};
use super::carry::{self, Carrier};

/// `paysweep repairs …`.
pub async fn execute(
    command: &RepairsCommand,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    if let RepairsCommand::Export { form, state } = command {
        return super::export::execute(*form, *state, common, world).await;
    }
    let settings = super::settings(common, world)?;
    match command {
        RepairsCommand::Export { .. } => unreachable!("it was just done"),
        RepairsCommand::List => list_all(&settings, common, world).await?,
        RepairsCommand::Show { id } => show(&settings, id, common, world).await?,
        RepairsCommand::Approve(arguments) => {
            let decision = if settings.repair.four_eyes {
                Decision::ApproveAsOther
            } else {
                Decision::Approve
            };
            let word = Word::Decide(decision);
            each(
                &settings,
                &arguments.ids,
                &arguments.reason,
                word,
                common,
                world,
            )
            .await?;
        }
        RepairsCommand::Reject(arguments) => {
            let word = Word::Decide(Decision::Reject);
            each(
                &settings,
                &arguments.ids,
                &arguments.reason,
                word,
                common,
                world,
            )
            .await?;
        }
        RepairsCommand::Revert(arguments) => {
            let word = Word::Revert;
            each(
                &settings,
                &arguments.ids,
                &arguments.reason,
                word,
                common,
                world,
            )
            .await?;
        }
        RepairsCommand::Apply { ids } => return apply(&settings, ids, common, world).await,
    }
    Ok(Exit::Ok)
}

async fn list_all(
    settings: &Settings,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let mut store = super::store_to_read(settings).await?;
    let names = super::source_names(settings, common)?;
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
            let now = now(settings, common, world)?;
            let lines: Vec<Value> = found
                .iter()
                .map(|detail| repair_json(detail, now))
                .collect();
            world.say(&pretty(&json!({ "repairs": lines })))
        }
        Format::Table => world.say(&list(&found, common.limit)),
    }
}

async fn show(
    settings: &Settings,
    id: &str,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let mut store = super::store_to_read(settings).await?;
    let detail = store
        .repair(super::typed_id(id)?)
        .await
        .map_err(|failure| failure.state("nothing was written"))?;
    let now = now(settings, common, world)?;
    match common.format() {
        Format::Json => world.say(&pretty(&detail_json(&detail, now))),
        Format::Table => world.say(&detail_text(&detail, now)),
    }
}

fn now(settings: &Settings, common: &CommonArgs, world: &World<'_>) -> Result<Instant, Failure> {
    crate::settings::window::as_of(common.as_of.as_deref(), &settings.timezone, (world.clock)())
}

/// What a person says of a repair.
#[derive(Clone, Copy)]
enum Word {
    Decide(Decision),
    Revert,
}

/// A person's word on several repairs. All of them are looked at before the first is written.
async fn each(
    settings: &Settings,
    typed: &[String],
    reason: &str,
    word: Word,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let at = now(settings, common, world)?;
    let by = super::person(world);
    if matches!(word, Word::Decide(Decision::ApproveAsOther))
        && super::named_person(world).is_empty()
    {
        return Err(Failure::new(Exit::Denied, "nobody says who approves this")
            .why("[repair] four_eyes = true: an approval is somebody else's than the proposal, and the environment names nobody")
            .remedy("set PAYSWEEP_USER, or run this as a user of the machine")
            .state("nothing was written"));
    }
    let mut store = super::store(settings).await?;
    let ids = whole_ids(&mut store, typed).await?;
    let note = Note {
        reason,
        by: &by,
        at,
    };
    for (written, id) in ids.iter().enumerate() {
        let done = match word {
            Word::Decide(decision) => store.decide(id, decision, &note).await,
            Word::Revert => store.revert(id, &note).await,
        };
        let detail = done.map_err(|failure| {
            failure.state(match written {
                0 => "nothing was written".to_owned(),
                number => format!("{number} of {} were written before; they stand", ids.len()),
            })
        })?;
        let item = &detail.item;
        world.say(&match word {
            Word::Decide(_) => format!("{} {}: {}\n", item.id, item.action, item.state),
            Word::Revert => format!(
                "{} {}: {}, takes back {id}: {}\n",
                item.id,
                item.action,
                item.state,
                change(item)
            ),
        })?;
    }
    Ok(())
}

/// The whole ids of repairs that were typed, each once.
async fn whole_ids<S: Store>(store: &mut S, typed: &[String]) -> Result<Vec<String>, Failure> {
    let mut ids = Vec::new();
    for id in typed {
        let found = store
            .repair(super::typed_id(id)?)
            .await
            .map_err(|failure| failure.state("nothing was written"))?;
        if !ids.contains(&found.item.id) {
            ids.push(found.item.id);
        }
    }
    Ok(ids)
}

/// Writes approved repairs: those named, or every one. A row that had changed is told, and leads to exit 1.
async fn apply(
    settings: &Settings,
    typed: &[String],
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let at = now(settings, common, world)?;
    let by = super::person(world);
    let mut store = super::store(settings).await?;
    let carrier = Carrier {
        settings,
        run_id: "",
        by: &by,
        at,
    };
    let mut exit = Exit::Ok;
    let names = super::source_names(settings, common)?;
    let sources: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut hand = None;
    if settings.repair.apply.is_some() {
        for detail in carry::settle_claimed(&mut store, carrier, &sources).await? {
            exit = exit.worst(tell(&detail, world)?);
        }
    }
    let ids = if typed.is_empty() {
        approved(&mut store, &sources).await?
    } else {
        whole_ids(&mut store, typed).await?
    };
    if ids.is_empty() {
        world.say("no repair is approved\n")?;
        return Ok(exit);
    }
    let note = Note {
        reason: "",
        by: &by,
        at,
    };
    for (written, id) in ids.iter().enumerate() {
        let is_carried = settings
            .repair
            .is_carried(store.repair(id).await?.item.action);
        if is_carried && hand.is_none() {
            hand = carrier.open().await?;
        }
        let done = match &mut hand {
            Some(hand) if is_carried => carry::one(&mut store, hand, carrier, id, None).await,
            _ => store.apply(id, &note).await,
        };
        let detail = done.map_err(|failure| {
            let earlier = match written {
                0 => "no other one was written before".to_owned(),
                number => format!("{number} of {} were written before; they stand", ids.len()),
            };
            let state = if failure.state.is_empty() {
                format!("{id} was not written; {earlier}")
            } else {
                format!("{}; {earlier}", failure.state)
            };
            failure.state(state)
        })?;
        exit = exit.worst(tell(&detail, world)?);
    }
    Ok(exit)
}

/// Tells how a repair ended.
fn tell(detail: &RepairDetail, world: &mut World<'_>) -> Result<Exit, Failure> {
    let item = &detail.item;
    let told = detail.events.last().map_or("", |event| event.note.as_str());
    let told = if told.is_empty() {
        change(item)
    } else {
        clean(told).into_owned()
    };
    world.say(&format!(
        "{} {}: {}, {told}\n",
        item.id, item.action, item.state
    ))?;
    Ok(if item.state == RepairState::Failed {
        Exit::Differences
    } else {
        Exit::Ok
    })
}

/// Ids of every approved repair of the sources, oldest first.
async fn approved<S: Store>(store: &mut S, sources: &[&str]) -> Result<Vec<String>, Failure> {
    let found = store
        .repairs(&RepairFilter {
            sources,
            states: &[RepairState::Approved],
            ..RepairFilter::default()
        })
        .await?;
    Ok(found
        .into_iter()
        // What is to be sent again is sent by others.
        .filter(|detail| detail.item.action != RepairAction::Redrive)
        .map(|detail| detail.item.id)
        .collect())
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
    if let Some(until) = item.expires_at {
        return format!("may be sent again before {until}");
    }
    match &item.from {
        Some(from) => format!("{} → {}", side(from), side(&item.to)),
        None => format!("new: {}", side(&item.to)),
    }
}

fn detail_text(detail: &RepairDetail, now: Instant) -> String {
    let item = &detail.item;
    let mut text = format!(
        "repair     {}\nstate      {}\naction     {}\nsource     {}\nintent     {}\noperation  {}\nbefore     {}\nafter      {}\nbreak      {} ({})\nproposed   by {} in run {}\nwritten    {}\nhappened   {} ({} ago)\nplanned    against version {}\nevidence   {}\n",
        item.id,
        item.state,
        item.action,
        item.source,
        clean(&item.intent_id),
        clean(&item.operation_id),
        item.from.as_ref().map_or("–".to_owned(), side),
        side(&item.to),
        or_dash(&item.break_id),
        item.class,
        clean(if detail.proposed_by.is_empty() {
            "paysweep"
        } else {
            &detail.proposed_by
        }),
        or_dash(&detail.run_id),
        detail.written_at,
        item.occurred_at,
        age(now.seconds_since(item.occurred_at).max(0)),
        item.planned_version,
        detail.evidence,
    );
    if let Some(until) = item.expires_at {
        let is_void = until <= now || item.state == RepairState::Superseded;
        let told = format!(
            "send again only as it was sent first, under the key {}, before {until}{}\n",
            clean(&item.idempotency_key),
            if is_void { ": void" } else { "" }
        );
        text.push_str(&format!("redrive    {told}"));
    }
    text.push_str("history\n");
    for event in &detail.events {
        text.push_str(&event_line(event));
    }
    text
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

fn detail_json(detail: &RepairDetail, now: Instant) -> Value {
    let mut value = repair_json(detail, now);
    if let Value::Object(fields) = &mut value {
        fields.insert(
            "proposed_by".to_owned(),
            Value::from(detail.proposed_by.as_str()),
        );
        fields.insert(
            "events".to_owned(),
            Value::Array(detail.events.iter().map(event_json).collect()),
        );
    }
    value
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

/// Whose doing a repair is, for whoever reads it elsewhere.
pub(super) const ORIGIN: &str = "paysweep";

pub(super) fn repair_json(detail: &RepairDetail, now: Instant) -> Value {
    let item = &detail.item;
    json!({
        "id": item.id,
        "repair_origin": ORIGIN,
        "age_seconds": now.seconds_since(item.occurred_at),
        "expires_at": item.expires_at.map(|at| at.to_string()),
        "idempotency_key": match item.idempotency_key.as_str() {
            "" => Value::Null,
            key => Value::from(key),
        },
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
        "note": item.note,
        "evidence": detail.evidence,
    })
}
