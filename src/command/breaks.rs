//! `paysweep breaks`: what is open, and what a person decides about it.

use serde_json::{Value, json};

use crate::cli::{BreaksCommand, CommonArgs};
use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, BreakState, CloseAs};
use crate::money::Money;
use crate::report::Format;
use crate::report::sanitise::clean;
use crate::report::text::age;
use crate::store::contract::{BreakDetail, BreakFilter, Event, Note, Store};
use crate::time::{Instant, parse_point};

use super::World;

/// `paysweep breaks …`.
pub async fn execute(
    command: &BreaksCommand,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let now = crate::settings::window::as_of(
        common.as_of.as_deref(),
        &settings.timezone,
        (world.clock)(),
    )?;
    match command {
        BreaksCommand::List { state, class } => {
            let mut store = super::store_to_read(&settings).await?;
            let states: Vec<BreakState> = state
                .map_or(vec![BreakState::Open, BreakState::Acknowledged], |state| {
                    vec![state]
                });
            let mut names = super::source_names(&settings, common)?;
            // What no intent's owner answers for is the only source's, where there is one.
            if common.sources.is_empty() || settings.sources.len() == 1 {
                names.push(settings.intents.name.clone());
            }
            let sources: Vec<&str> = names.iter().map(String::as_str).collect();
            let filter = BreakFilter {
                sources: &sources,
                states: &states,
                class: *class,
                id_prefix: "",
                as_of: now,
            };
            let mut found = store.breaks(&filter).await?;
            if let Some(severity) = common.min_severity {
                found.retain(|item| item.class.severity() >= severity);
            }
            found.sort_by_key(|item| {
                (
                    std::cmp::Reverse(item.class.severity()),
                    item.class,
                    item.id.clone(),
                )
            });
            match common.format() {
                Format::Json => {
                    let lines: Vec<Value> =
                        found.iter().map(|item| break_json(item, now)).collect();
                    world.say(&pretty(&json!({ "breaks": lines })))?;
                }
                Format::Table => world.say(&list(&found, now, common.limit))?,
            }
        }
        BreaksCommand::Show { id } => {
            let mut store = super::store_to_read(&settings).await?;
            let detail = store
                .break_detail(super::typed_id(id)?, now)
                .await
                .map_err(|failure| failure.state("nothing was written"))?;
            match common.format() {
                Format::Json => world.say(&pretty(&detail_json(&detail, now)))?,
                Format::Table => world.say(&detail_text(&detail, now))?,
            }
        }
        BreaksCommand::Ack { ids, until, reason } => {
            let until = parse_point(until, &settings.timezone, now).ok_or_else(|| {
                Failure::rejected(format!("--until \"{until}\" is no day or time"))
                    .remedy("write a day such as 2026-04-01, or RFC 3339")
                    .state("nothing was written")
            })?;
            if until <= now {
                return Err(
                    Failure::rejected(format!("--until {until} has passed already"))
                        .state("nothing was written"),
                );
            }
            let mut store = super::store(&settings).await?;
            let by = super::person(world);
            for id in &named(&mut store, ids, now).await? {
                let item = store
                    .acknowledge(
                        id,
                        until,
                        &Note {
                            reason,
                            by: &by,
                            at: now,
                        },
                    )
                    .await?;
                world.say(&format!(
                    "{} {}: acknowledged until {until}\n",
                    item.id, item.class
                ))?;
            }
        }
        BreaksCommand::Close {
            ids,
            close_as,
            reason,
        } => {
            let mut store = super::store(&settings).await?;
            let by = super::person(world);
            for id in &named(&mut store, ids, now).await? {
                let item = store
                    .close(
                        id,
                        *close_as,
                        &Note {
                            reason,
                            by: &by,
                            at: now,
                        },
                    )
                    .await?;
                world.say(&format!(
                    "{} {}: closed as {close_as}\n",
                    item.id, item.class
                ))?;
            }
        }
    }
    Ok(Exit::Ok)
}

/// The whole ids of breaks that were typed, each once. One that cannot be decided about stops all of them, so that
/// nothing is done by halves.
async fn named<S: Store>(
    store: &mut S,
    typed: &[String],
    now: Instant,
) -> Result<Vec<String>, Failure> {
    let state = "nothing was written";
    let mut ids = Vec::new();
    for id in typed {
        let found = store
            .break_detail(id, now)
            .await
            .map_err(|failure| failure.state(state))?;
        let item = found.item;
        if !matches!(item.state, BreakState::Open | BreakState::Acknowledged) {
            return Err(
                Failure::rejected(format!("break {} is {} already", item.id, item.state))
                    .state(state),
            );
        }
        if !ids.contains(&item.id) {
            ids.push(item.id);
        }
    }
    Ok(ids)
}

fn list(found: &[Break], now: Instant, limit: usize) -> String {
    if found.is_empty() {
        return "no breaks\n".to_owned();
    }
    let mut text = String::new();
    for item in found.iter().take(limit) {
        text.push_str(&format!(
            "{}  {:<8}  {:<17}  {:<12}  {}{}{}  {}\n",
            &item.id[..12.min(item.id.len())],
            item.class.severity(),
            item.class,
            item.state,
            clean(&item.intent_id),
            if item.intent_id.is_empty() || item.operation_id.is_empty() {
                ""
            } else {
                " ← "
            },
            clean(&item.operation_id),
            figures(item),
        ));
        text.push_str(&format!(
            "              {}; open for {}\n",
            clean(&item.why),
            age(now.seconds_since(item.first_seen_at).max(0))
        ));
    }
    if found.len() > limit {
        text.push_str(&format!("and {} more (--limit)\n", found.len() - limit));
    }
    text.push_str("`paysweep breaks show ID` tells the whole story of one.\n");
    text
}

fn figures(item: &Break) -> String {
    match (item.money, item.delta) {
        (Some(money), Some(delta)) => format!("{money} (difference {delta})"),
        (Some(money), None) => money.to_string(),
        (None, Some(delta)) => format!("difference {delta}"),
        (None, None) => String::new(),
    }
}

fn detail_text(detail: &BreakDetail, now: Instant) -> String {
    let item = &detail.item;
    let mut text = format!(
        "break      {}\nclass      {} ({})\nstate      {}\nsource     {}\nintent     {}\noperation  {}\nmoney      {}\nage        {}\nwhy        {}\nmeaning    {}\nnext step  {}\n",
        item.id,
        item.class,
        item.class.severity(),
        item.state,
        item.source,
        or_none(&clean(&item.intent_id)),
        or_none(&clean(&item.operation_id)),
        figures(item),
        age(now.seconds_since(item.first_seen_at).max(0)),
        clean(&item.why),
        item.class.entry().meaning,
        item.class.entry().next_step,
    );
    text.push_str("history\n");
    for event in &detail.events {
        text.push_str(&event_line(event));
    }
    if !detail.repairs.is_empty() {
        text.push_str(&format!("repairs    {}\n", detail.repairs.join(", ")));
    }
    text
}

pub(crate) fn event_line(event: &Event) -> String {
    let who = if event.by.is_empty() {
        "paysweep"
    } else {
        &event.by
    };
    let how = event
        .closed_as
        .map_or_else(String::new, |how: CloseAs| format!(" as {how}"));
    let until = event
        .until
        .map_or_else(String::new, |until| format!(" until {until}"));
    let note = if event.note.is_empty() {
        String::new()
    } else {
        format!(": {}", clean(&event.note))
    };
    format!(
        "  {}  {}{how}{until} by {}{note}\n",
        event.at,
        event.what,
        clean(who)
    )
}

fn or_none(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

pub(crate) fn money_json(money: Option<Money>) -> Value {
    money.map_or(Value::Null, |money| {
        json!({ "amount": money.amount(), "currency": money.currency.as_str(), "minor": money.minor })
    })
}

fn text_json(text: &str) -> Value {
    if text.is_empty() {
        Value::Null
    } else {
        Value::from(text)
    }
}

fn break_json(item: &Break, now: Instant) -> Value {
    json!({
        "id": item.id,
        "class": item.class.as_str(),
        "severity": item.class.severity().as_str(),
        "state": item.state.as_str(),
        "source": item.source,
        "intent_id": text_json(&item.intent_id),
        "operation_id": text_json(&item.operation_id),
        "money": money_json(item.money),
        "delta": money_json(item.delta),
        "first_seen_run": text_json(&item.first_seen_run),
        "age_seconds": now.seconds_since(item.first_seen_at).max(0),
        "acknowledged_until": item.acknowledged_until.map(|until| until.to_string()),
        "why": item.why,
        "next_step": item.class.entry().next_step,
    })
}

fn detail_json(detail: &BreakDetail, now: Instant) -> Value {
    let mut value = break_json(&detail.item, now);
    if let Value::Object(fields) = &mut value {
        fields.insert(
            "events".to_owned(),
            Value::Array(detail.events.iter().map(event_json).collect()),
        );
        fields.insert("repairs".to_owned(), json!(detail.repairs));
    }
    value
}

pub(crate) fn event_json(event: &Event) -> Value {
    json!({
        "what": event.what,
        "at": event.at.to_string(),
        "by": text_json(&event.by),
        "run_id": text_json(&event.run_id),
        "note": text_json(&event.note),
        "closed_as": event.closed_as.map(CloseAs::as_str),
        "until": event.until.map(|until| until.to_string()),
    })
}

pub(crate) fn pretty(value: &Value) -> String {
    // A value that was just made of strings and numbers always renders.
    serde_json::to_string_pretty(value).map_or_else(|error| error.to_string(), |text| text + "\n")
}
