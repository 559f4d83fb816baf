//! `paysweep explain ID`: why an operation or intent matched, or which rule stopped it, and what became of it run by run.
//!
//! Everything comes from the store: the row with all that its keys lead to is judged again, by the same ladder, without
//! writing anything.

use serde_json::{Value, json};

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::intents::sql::table::SqlTable;
use crate::model::breaks::{Break, BreakState};
use crate::model::operation::Operations;
use crate::model::run::{Basis, Window};
use crate::model::verdict::Disposition;
use crate::money::Money;
use crate::reconcile::conversions::conversions;
use crate::reconcile::explain::{self, Explanation, Subject};
use crate::reconcile::rules::Frame;
use crate::report::Format;
use crate::report::sanitise::clean;
use crate::report::text::age;
use crate::settings::Settings;
use crate::store::any::AnyStore;
use crate::store::contract::{
    BreakDetail, BreakFilter, IntentSelection, OperationSelection, RepairDetail, RepairFilter,
    Store,
};
use crate::time::Instant;

use super::World;
use super::breaks::{event_json, event_line, pretty};
use super::gather::{Gathered, Known, Ours, Question, gather};
use super::prepare::Prepared;

/// So many hex digits of a break's id are told.
const ID_CHARS: usize = 12;

/// `paysweep explain ID`.
pub(crate) async fn execute(
    id: &str,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let now = crate::settings::window::as_of(
        common.as_of.as_deref(),
        &settings.timezone,
        (world.clock)(),
    )?;
    let id = super::typed_id(id)?;
    let names = super::source_names(&settings, common)?;
    let mut store = super::store_to_read(&settings).await?;
    let mut told = of_rows(&mut store, &settings, &names, id, now).await?;
    if told.is_empty() {
        for name in &names {
            if !store.claimed(name, &[id]).await?.is_empty() {
                return Err(forgotten(id, name));
            }
        }
        // The id of a break stands for the rows that it names.
        let item = store
            .break_detail(id, now)
            .await
            .map_err(|failure| nothing(failure, id, &names))?
            .item;
        for id in [&item.operation_id, &item.intent_id] {
            if !id.is_empty() {
                told.extend(of_rows(&mut store, &settings, &names, id, now).await?);
            }
        }
        if told.is_empty() {
            told.push(of_break(&mut store, item, now).await?);
        }
    }
    match common.format() {
        Format::Json => {
            let rows: Vec<Value> = told.iter().map(|row| row.json(now)).collect();
            world.say(&pretty(&json!({ "explained": rows })))?;
        }
        Format::Table => {
            let texts: Vec<String> = told.iter().map(|row| row.text(now)).collect();
            world.say(&texts.join("\n"))?;
        }
    }
    Ok(Exit::Ok)
}

fn nothing(failure: Failure, id: &str, names: &[String]) -> Failure {
    if failure.exit != Exit::Rejected {
        return failure;
    }
    Failure::rejected(format!("nothing is known under {id:?}"))
        .why(format!(
            "no operation of {}, no intent and no break has that id",
            names.join(", ")
        ))
        .remedy("give an id in full, or the beginning of a break's id; rows are known once a run has read them")
        .state("nothing was written")
}

fn forgotten(id: &str, source: &str) -> Failure {
    Failure::rejected(format!(
        "operation {id} of {source} was seen, and is no longer stored"
    ))
    .why("`paysweep operations prune` forgot it, after it was settled")
    .remedy("reports and repairs of that time still tell what became of it: paysweep runs list, paysweep repairs list")
    .state("nothing was written")
}

/// One row, explained.
struct Explained {
    /// `operation` or `intent`; `break` where the row is not known.
    what: &'static str,
    id: String,
    source: String,
    facts: Vec<(&'static str, String)>,
    explanation: Option<Explanation>,
    breaks: Vec<BreakDetail>,
    repairs: Vec<RepairDetail>,
}

/// Every row of that id, in each of the sources.
async fn of_rows(
    store: &mut AnyStore,
    settings: &Settings,
    names: &[String],
    id: &str,
    now: Instant,
) -> Result<Vec<Explained>, Failure> {
    let mut told: Vec<Explained> = Vec::new();
    for (n, name) in names.iter().enumerate() {
        let prepared = Prepared::new(settings.source(name)?)?;
        let operations = store
            .operations(name, OperationSelection::Keys(&[id]))
            .await?
            .rows;
        let scope = &settings.intents.name;
        let intents = store
            .intents(scope, name, IntentSelection::Ids(&[id]))
            .await?
            .rows;
        let is_operation = operations.iter().any(|row| row.operation_id == id);
        let intent = intents
            .iter()
            .next()
            .map(|row| (row.created_at, row.source.to_owned()));
        let (feed, since) = match &intent {
            Some((created_at, _)) => {
                let row = intents.get(0);
                let keys: Vec<&str> = [
                    row.intent_id,
                    row.processor_ref,
                    row.reference,
                    row.idempotency_key,
                ]
                .into_iter()
                .filter(|key| !key.is_empty())
                .collect();
                let found = store
                    .operations(name, OperationSelection::Keys(&keys))
                    .await?
                    .rows;
                (found, *created_at)
            }
            None => (operations, now),
        };
        let is_ours = intent.as_ref().is_some_and(|(_, source)| {
            source == name || (source.is_empty() && (n + 1 == names.len() || !feed.is_empty()))
        });
        if !is_operation && !is_ours {
            continue;
        }
        let question = Question {
            source: name,
            scope,
            since,
            until: Instant::MAX,
            judges_unowned: true,
            as_of: now,
            fences: None,
            known: Known::of(store, name).await?,
        };
        let ours: Ours<'_, SqlTable> = Ours::File(None);
        let gathered = gather(store, question, feed, ours).await?;
        let mark = store.watermark(name).await?;
        let frame = Frame {
            as_of: now,
            window: Window {
                from: Instant::MIN,
                to: Instant::MAX,
                basis: Basis::Range,
            },
            low: mark.as_ref().map_or(Instant::MIN, |mark| mark.low),
            horizon: store.horizon(name).await?.unwrap_or(Instant::MIN),
            covered: mark.as_ref().map(|mark| mark.hi),
            others_covered: mark.as_ref().map(|mark| mark.hi),
            judges_unowned: true,
            is_feed_unchanged: false,
            is_absence_proof: false,
        };
        for subject in subjects(&gathered, id, is_ours) {
            let is_known = told.iter().any(|it| {
                it.what == what(subject) && it.id == id && matches!(subject, Subject::Intent(_))
            });
            if is_known {
                continue;
            }
            let explanation =
                explain::explain(&gathered.snapshot(), &prepared.rules, &frame, subject);
            told.push(Explained {
                what: what(subject),
                id: id.to_owned(),
                source: name.clone(),
                facts: facts(&gathered, subject),
                explanation: Some(explanation),
                breaks: breaks(store, &[name, scope], id, subject, now).await?,
                repairs: repairs(store, id, subject).await?,
            });
        }
    }
    Ok(told)
}

const fn what(subject: Subject) -> &'static str {
    match subject {
        Subject::Operation(_) => "operation",
        Subject::Intent(_) => "intent",
    }
}

fn subjects(gathered: &Gathered, id: &str, is_ours: bool) -> Vec<Subject> {
    let operations: &Operations = &gathered.recognised.operations;
    let intents = &gathered.merged.intents;
    let mut subjects: Vec<Subject> = (0..operations.len())
        .filter(|&row| operations.get(row).operation_id == id)
        .map(Subject::Operation)
        .collect();
    if is_ours {
        let own = (0..intents.len()).filter(|&row| intents.get(row).intent_id == id);
        subjects.extend(own.map(Subject::Intent));
    }
    subjects
}

/// The row itself, column by column; empty ones left out.
fn facts(gathered: &Gathered, subject: Subject) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let mut fact = |label, text: &str| {
        if !text.is_empty() {
            facts.push((label, text.to_owned()));
        }
    };
    match subject {
        Subject::Operation(row) => {
            let data = gathered.recognised.operations.get(row);
            fact("kind", data.kind.as_str());
            fact("status", data.status.as_str());
            fact(
                "amount",
                &Money::new(data.amount_minor, data.currency).to_string(),
            );
            fact("occurred_at", &data.occurred_at.to_string());
            fact("reference", data.reference);
            fact("parent_id", data.parent_id);
            fact("object_id", data.object_id);
            fact("payout_id", data.payout_id);
            fact("account", data.account);
            if data.line > 0 {
                fact("line", &data.line.to_string());
            }
            let rows = &gathered.recognised;
            let conversions = conversions(&rows.operations, &rows.seen);
            if let Some(settled) = conversions.settled().get(&row) {
                fact("settled", &settled.to_string());
            }
            if let Some(&into) = conversions.folded_into().get(&row) {
                fact("folded_into", rows.operations.get(into).operation_id);
            }
            fact("invalid", data.invalid);
        }
        Subject::Intent(row) => {
            let data = gathered.merged.intents.get(row);
            fact("kind", data.kind.as_str());
            fact("status", data.status.as_str());
            fact(
                "amount",
                &Money::new(data.amount_minor, data.currency).to_string(),
            );
            fact("created_at", &data.created_at.to_string());
            fact("processor_ref", data.processor_ref);
            fact("reference", data.reference);
            fact("idempotency_key", data.idempotency_key);
            fact("parent_intent_id", data.parent_intent_id);
            fact("source", data.source);
            fact("version", &data.version.to_string());
            fact("invalid", data.invalid);
        }
    }
    facts
}

/// Breaks about a row, ended ones too, each with its history.
async fn breaks(
    store: &mut AnyStore,
    sources: &[&str],
    id: &str,
    subject: Subject,
    now: Instant,
) -> Result<Vec<BreakDetail>, Failure> {
    let found = store
        .breaks(&BreakFilter {
            sources,
            states: BreakState::ALL,
            class: None,
            id_prefix: "",
            as_of: now,
        })
        .await?;
    let is_named = |item: &&Break| match subject {
        Subject::Operation(_) => item.operation_id == id,
        Subject::Intent(_) => item.intent_id == id,
    };
    let ids: Vec<String> = found
        .iter()
        .filter(is_named)
        .map(|item| item.id.clone())
        .collect();
    let mut details = Vec::new();
    for id in ids {
        details.push(store.break_detail(&id, now).await?);
    }
    Ok(details)
}

async fn repairs(
    store: &mut AnyStore,
    id: &str,
    subject: Subject,
) -> Result<Vec<RepairDetail>, Failure> {
    let found = store.repairs(&RepairFilter::default()).await?;
    let is_named = |it: &RepairDetail| match subject {
        Subject::Operation(_) => it.item.operation_id == id,
        Subject::Intent(_) => it.item.intent_id == id,
    };
    let ids: Vec<String> = found
        .into_iter()
        .filter(is_named)
        .map(|it| it.item.id)
        .collect();
    let mut details = Vec::new();
    for id in ids {
        details.push(store.repair(&id).await?);
    }
    Ok(details)
}

/// A break whose rows are not in the store: a stretch that was never read.
async fn of_break(store: &mut AnyStore, item: Break, now: Instant) -> Result<Explained, Failure> {
    let detail = store.break_detail(&item.id, now).await?;
    Ok(Explained {
        what: "break",
        id: item.id,
        source: item.source,
        facts: Vec::new(),
        explanation: None,
        breaks: vec![detail],
        repairs: Vec::new(),
    })
}

fn verdict(verdict: Disposition) -> String {
    match verdict {
        Disposition::OutOfScope => "not judged by this source".to_owned(),
        Disposition::Matched => "matched".to_owned(),
        Disposition::Pending => "pending".to_owned(),
        Disposition::Ignored(reason) => format!("ignored: {reason}"),
        Disposition::Unmatched => "unmatched".to_owned(),
    }
}

impl Explained {
    fn text(&self, now: Instant) -> String {
        let mut text = format!(
            "{} {} of {}\n",
            self.what,
            clean(&self.id),
            clean(&self.source)
        );
        for (label, value) in &self.facts {
            text.push_str(&format!("  {label:<16}  {}\n", clean(value)));
        }
        if let Some(explanation) = &self.explanation {
            text.push_str(&format!(
                "verdict now       {}\n",
                verdict(explanation.verdict)
            ));
            for note in &explanation.notes {
                text.push_str(&format!("  {}\n", clean(note)));
            }
            text.push_str("the ladder\n");
            for (n, rung) in explanation.rungs.iter().enumerate() {
                let mark = if rung.is_taken {
                    "  ← linked here"
                } else {
                    ""
                };
                text.push_str(&format!(
                    "  {} {}: {}{mark}\n",
                    n + 1,
                    rung.name,
                    clean(&rung.question)
                ));
                if rung.candidates.is_empty() {
                    text.push_str("      nobody\n");
                }
                for candidate in &rung.candidates {
                    let differs = if candidate.differs.is_empty() {
                        "agrees".to_owned()
                    } else {
                        format!("differs: {}", candidate.differs.join("; "))
                    };
                    let link = if candidate.is_linked { " (linked)" } else { "" };
                    text.push_str(&format!(
                        "      {}{link}: {}\n",
                        clean(&candidate.id),
                        clean(&differs)
                    ));
                }
            }
            for finding in &explanation.findings {
                text.push_str(&format!(
                    "would find now    {}: {}\n",
                    finding.found.class,
                    clean(&finding.found.why)
                ));
            }
        }
        text.push_str(if self.breaks.is_empty() {
            "breaks            none\n"
        } else {
            "breaks\n"
        });
        for detail in &self.breaks {
            let item = &detail.item;
            text.push_str(&format!(
                "  {}  {}  {}  seen first {} ago in run {}, last in run {}\n    {}\n",
                item.id.chars().take(ID_CHARS).collect::<String>(),
                item.class,
                item.state,
                age(now.seconds_since(item.first_seen_at).max(0)),
                run(&item.first_seen_run),
                run(&detail.last_seen_run),
                clean(&item.why)
            ));
            for event in &detail.events {
                text.push_str(&format!("  {}", event_line(event)));
            }
        }
        if !self.repairs.is_empty() {
            text.push_str("repairs\n");
        }
        for detail in &self.repairs {
            let item = &detail.item;
            let before = item.from.as_ref().map_or("", |from| from.status.as_str());
            text.push_str(&format!(
                "  {}  {}  {}  {before} → {}  written {} in run {}\n",
                item.id.chars().take(ID_CHARS).collect::<String>(),
                item.action,
                item.state,
                item.to.status,
                detail.written_at,
                run(&detail.run_id)
            ));
            for event in &detail.events {
                text.push_str(&format!("  {}", event_line(event)));
            }
        }
        text
    }

    fn json(&self, now: Instant) -> Value {
        let facts: serde_json::Map<String, Value> = self
            .facts
            .iter()
            .map(|(label, value)| ((*label).to_owned(), Value::from(value.as_str())))
            .collect();
        let explanation = self.explanation.as_ref();
        let rungs: Vec<Value> = explanation
            .iter()
            .flat_map(|it| &it.rungs)
            .map(|rung| {
                let candidates: Vec<Value> = rung
                    .candidates
                    .iter()
                    .map(|it| json!({ "id": it.id, "linked": it.is_linked, "differs": it.differs }))
                    .collect();
                json!({ "rung": rung.name, "question": rung.question, "linked_here": rung.is_taken, "candidates": candidates })
            })
            .collect();
        let breaks: Vec<Value> = self
            .breaks
            .iter()
            .map(|detail| {
                let item = &detail.item;
                json!({
                    "id": item.id,
                    "class": item.class.as_str(),
                    "state": item.state.as_str(),
                    "why": item.why,
                    "evidence": item.evidence,
                    "age_seconds": now.seconds_since(item.first_seen_at).max(0),
                    "first_seen_run": item.first_seen_run,
                    "last_seen_run": detail.last_seen_run,
                    "events": detail.events.iter().map(event_json).collect::<Vec<_>>(),
                })
            })
            .collect();
        let repairs: Vec<Value> = self
            .repairs
            .iter()
            .map(|detail| {
                json!({
                    "id": detail.item.id,
                    "action": detail.item.action.as_str(),
                    "state": detail.item.state.as_str(),
                    "run_id": detail.run_id,
                    "written_at": detail.written_at.to_string(),
                    "events": detail.events.iter().map(event_json).collect::<Vec<_>>(),
                })
            })
            .collect();
        json!({
            "what": self.what,
            "id": self.id,
            "source": self.source,
            "row": facts,
            "verdict": explanation.map(|it| verdict(it.verdict)),
            "notes": explanation.map(|it| it.notes.clone()),
            "ladder": rungs,
            "breaks": breaks,
            "repairs": repairs,
        })
    }
}

/// The beginning of a run's id; UUIDs of one day begin alike, so more of it than of other ids.
fn run(id: &str) -> &str {
    if id.is_empty() { "–" } else { id }
}
