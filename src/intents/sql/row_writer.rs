//! One repair, inside a transaction that has begun: look whether it was recorded, look whether the row is as it was when the
//! repair was planned, write, count. Whose transaction it is, and how it ends, is not decided here.

use std::collections::BTreeMap;

use super::dialect::{Engine, Holds};
use super::question::Questions;
use super::row::RowReader;
use super::session::{Session, Statement, Value};
use super::shape::{self, Shape};
use super::spec::{Origin, Role, Spec};
use super::template::{Parameter, Template};
use crate::database::DatabaseUrl;
use crate::exit::Failure;
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction};
use crate::time::Instant;

/// `[repair.apply]`: how repairs are written into the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplySpec {
    /// The database, as a role that may write.
    pub url: DatabaseUrl,
    /// What is run for an action; an action without a statement is not written there.
    pub statements: BTreeMap<RepairAction, Template>,
    /// Gives a row where a repair was recorded.
    pub recorded: Option<Template>,
    /// Our status → the table's own word. What is not listed has no word of its own there.
    pub words: BTreeMap<IntentStatus, String>,
    /// Our kind → the table's own word.
    pub kinds: BTreeMap<IntentKind, String>,
}

/// How a repair's row was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// The table says that this repair was written.
    Recorded,
    /// As it was when the repair was planned; the status in the table's own word.
    AsBefore(String),
    /// As it is to be, without a record of this repair.
    AsAfter,
    /// Neither.
    Other(String),
}

/// How trying to write one repair ended, before its transaction does.
#[derive(Debug)]
pub(super) enum Step {
    /// One row was changed.
    Changed,
    /// The table says that it was written before.
    Before,
    /// Whatever was done has to be rolled back: why.
    Conflict(String),
    /// The row is as it should be: nobody can tell by whom.
    Unknown(String),
}

/// Writes rows of the company's table by its own statements.
pub(super) struct RowWriter {
    spec: Spec,
    apply: ApplySpec,
    shape: Shape,
    questions: Questions,
    /// What follows a question for a row, so that it stays as it was found; empty where the transaction sees to that.
    hold: &'static str,
}

impl RowWriter {
    /// Compares the settings with the catalogue, inside a transaction. `hold` follows a question for a row.
    pub(super) async fn new(
        session: &mut Session<'_>,
        spec: &Spec,
        apply: &ApplySpec,
        hold: &'static str,
    ) -> Result<RowWriter, Failure> {
        let shape = shape::shape(session, spec).await?;
        let questions = Questions::new(spec, &shape)?;
        Ok(RowWriter {
            spec: spec.clone(),
            apply: apply.clone(),
            shape,
            questions,
            hold,
        })
    }

    /// The columns that the catalogue knows.
    pub(super) fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Whether what is written to is a view, or a query.
    pub(super) fn is_view(&self) -> bool {
        self.shape.is_view
    }

    /// Writes one repair. A failure is about every repair alike.
    pub(super) async fn write(
        &self,
        session: &mut Session<'_>,
        repair: &Repair,
        as_of: Instant,
    ) -> Result<Step, Failure> {
        let template = self.apply.statements.get(&repair.action).ok_or_else(|| {
            Failure::rejected(format!(
                "[repair.apply] has no statement for {}",
                repair.action
            ))
        })?;
        let word = match self.find(session, repair).await? {
            Found::AsBefore(word) => word,
            Found::Recorded => return Ok(Step::Before),
            Found::AsAfter => return Ok(Step::Unknown(unknown(repair))),
            Found::Other(what) => return Ok(Step::Conflict(what)),
        };
        if let Some(missing) = self.missing_word(repair, template) {
            return Ok(Step::Conflict(missing));
        }
        let statement = self.bound(template, repair, &word, as_of);
        Ok(match session.write(&statement).await? {
            Ok(1) => Step::Changed,
            Ok(0) => Step::Conflict("the statement changed no row".to_owned()),
            Ok(rows) => Step::Conflict(format!(
                "the statement changed {rows} rows instead of 1; it was rolled back"
            )),
            Err(words) => Step::Conflict(refused(&words)),
        })
    }

    /// Looks how the row of a repair is.
    pub(super) async fn find(
        &self,
        session: &mut Session<'_>,
        repair: &Repair,
    ) -> Result<Found, Failure> {
        if let Some(template) = &self.apply.recorded {
            let statement = self.bound(template, repair, "", repair.occurred_at);
            let doing = "looking for the record of a repair";
            if !session.all(doing, &statement).await?.is_empty() {
                return Ok(Found::Recorded);
            }
        }
        let mut rows = self
            .rows_of(session, repair, Role::IntentId, &repair.intent_id)
            .await?;
        let Some(from) = &repair.from else {
            if rows.is_empty() && !repair.to.processor_ref.is_empty() {
                let key = &repair.to.processor_ref;
                rows = self
                    .rows_of(session, repair, Role::ProcessorRef, key)
                    .await?;
            }
            return Ok(match rows.as_slice() {
                [] => Found::AsBefore(String::new()),
                _ => Found::AsAfter,
            });
        };
        Ok(match rows.as_slice() {
            [] => Found::Other(format!("there is no row {}", repair.intent_id)),
            [row] if row.invalid.is_empty() => {
                let is = |side: &crate::model::repair::RepairSide| {
                    row.status == side.status && row.processor_ref == side.processor_ref
                };
                if is(from) {
                    Found::AsBefore(row.word.clone())
                } else if is(&repair.to) {
                    Found::AsAfter
                } else {
                    let reference = match row.processor_ref.as_str() {
                        "" => String::new(),
                        reference => format!(" ({reference})"),
                    };
                    Found::Other(format!(
                        "the row is {}{reference}, and was {} when the repair was planned",
                        row.status, from.status
                    ))
                }
            }
            [row] => Found::Other(format!("the row cannot be used: {}", row.invalid)),
            more => Found::Other(format!(
                "{} rows have the id {}",
                more.len(),
                repair.intent_id
            )),
        })
    }

    /// The rows of an id; for a row that is recorded also those of its kind that bear the processor's id already.
    async fn rows_of(
        &self,
        session: &mut Session<'_>,
        repair: &Repair,
        role: Role,
        key: &str,
    ) -> Result<Vec<Row>, Failure> {
        let reader = RowReader::new(&self.spec);
        let mut rows: Vec<Row> = Vec::new();
        let question = self
            .spec
            .column(role)
            .and_then(|name| self.questions.with_key_in(name, key));
        let Some(mut question) = question else {
            return Ok(rows);
        };
        question.text.push_str(self.hold);
        session
            .each("looking at the row of a repair", &question, |record| {
                let word = record.text(Role::Status as usize);
                reader.read(record, Instant::MIN, |intent| {
                    let is_it = match role {
                        Role::ProcessorRef => {
                            Some(intent.kind) == repair.to.kind && intent.processor_ref == key
                        }
                        _ => intent.intent_id == key,
                    };
                    if is_it {
                        rows.push(Row {
                            word,
                            status: intent.status,
                            processor_ref: intent.processor_ref.to_owned(),
                            invalid: intent.invalid.to_owned(),
                        });
                    }
                });
                Ok(())
            })
            .await?;
        Ok(rows)
    }

    /// Why a statement cannot be bound: the table has no word for what is to be written.
    fn missing_word(&self, repair: &Repair, template: &Template) -> Option<String> {
        let status = repair.to.status;
        if template.asks_for(Parameter::ToStatus) && !self.apply.words.contains_key(&status) {
            return Some(format!(
                "[intents.columns] status has no one word for {status}; say it in [repair.apply.words]"
            ));
        }
        let kind = repair.to.kind?;
        (template.asks_for(Parameter::Kind) && !self.apply.kinds.contains_key(&kind))
            .then(|| format!("[intents.columns] kind has no one word for {kind}"))
    }

    fn bound(&self, template: &Template, repair: &Repair, word: &str, as_of: Instant) -> Statement {
        let engine = self.shape.engine;
        template.bind(engine, &|parameter| {
            let value = value_of(&self.apply, parameter, repair, word, as_of);
            match (value, column_of(parameter)) {
                (Value::Text(text), Some(role)) => self.as_held(role, text),
                (value, _) => value,
            }
        })
    }

    /// `MySQL` would compare a text with a whole number as binary fractions, which makes neighbours of large numbers equal.
    fn as_held(&self, role: Role, text: String) -> Value {
        let holds = self
            .spec
            .column(role)
            .and_then(|name| self.shape.column(name))
            .map(|column| column.holds);
        match text.parse() {
            Ok(number) if self.shape.engine == Engine::MySql && holds == Some(Holds::Int) => {
                Value::Int(number)
            }
            _ => Value::Text(text),
        }
    }
}

/// A row as it was found.
struct Row {
    word: String,
    status: IntentStatus,
    processor_ref: String,
    invalid: String,
}

pub(super) fn unknown(repair: &Repair) -> String {
    let what = match repair.from {
        Some(_) => format!("{} is {} already", repair.intent_id, repair.to.status),
        None => "there is a row for it already".to_owned(),
    };
    format!("{what}, and nothing shows that this repair made it so")
}

const fn column_of(parameter: Parameter) -> Option<Role> {
    match parameter {
        Parameter::IntentId => Some(Role::IntentId),
        Parameter::FromProcessorRef | Parameter::ProcessorRef => Some(Role::ProcessorRef),
        Parameter::ParentIntentId => Some(Role::ParentIntentId),
        _ => None,
    }
}

pub(super) fn refused(words: &str) -> String {
    format!("the database refused it: {words}")
}

/// The value of a parameter. `word` is the status as the table has it now.
pub(super) fn value_of(
    apply: &ApplySpec,
    parameter: Parameter,
    repair: &Repair,
    word: &str,
    as_of: Instant,
) -> Value {
    let text = |text: &str| match text {
        "" => Value::NoText,
        text => Value::Text(text.to_owned()),
    };
    let to = &repair.to;
    match parameter {
        Parameter::IntentId => text(&repair.intent_id),
        Parameter::FromStatus => text(word),
        Parameter::ToStatus => text(apply.words.get(&to.status).map_or("", String::as_str)),
        Parameter::FromProcessorRef => text(
            repair
                .from
                .as_ref()
                .map_or("", |it| it.processor_ref.as_str()),
        ),
        Parameter::ProcessorRef => text(&to.processor_ref),
        Parameter::RepairId => text(&repair.id),
        Parameter::RepairOrigin => text("paysweep"),
        Parameter::AgeSeconds => Value::Int(as_of.seconds_since(repair.occurred_at)),
        Parameter::OperationId => text(&repair.operation_id),
        Parameter::OccurredAt => text(&repair.occurred_at.to_string()),
        Parameter::Source => text(&repair.source),
        Parameter::BreakId => text(&repair.break_id),
        Parameter::Class => text(repair.class.as_str()),
        Parameter::Kind => {
            let kind = to.kind.and_then(|kind| apply.kinds.get(&kind));
            text(kind.map_or("", String::as_str))
        }
        Parameter::AmountMinor => to.money.map_or(Value::NoInt, |it| Value::Int(it.minor)),
        Parameter::Amount => to
            .money
            .map_or(Value::NoText, |it| Value::Text(it.amount())),
        Parameter::Currency => text(to.money.as_ref().map_or("", |it| it.currency.as_str())),
        Parameter::ParentIntentId => text(&to.parent_intent_id),
    }
}

/// The one word of the table for each of ours. What several words stand for has none, unless `said` names it.
pub fn words_of<T: Copy + Ord + 'static>(
    origin: Option<&Origin>,
    all: &[T],
    as_str: impl Fn(T) -> &'static str,
    said: &BTreeMap<T, String>,
) -> BTreeMap<T, String> {
    let mut words = BTreeMap::new();
    for &ours in all {
        if let Some(word) = said.get(&ours) {
            words.insert(ours, word.clone());
            continue;
        }
        let name = as_str(ours);
        let word = match origin {
            Some(Origin::Column { map, .. }) => {
                let mut theirs = map
                    .iter()
                    .filter(|(_, it)| *it == name)
                    .map(|(word, _)| word);
                match (theirs.next(), theirs.next()) {
                    (Some(word), None) => Some(word.clone()),
                    (None, _) if !map.contains_key(name) => Some(name.to_owned()),
                    _ => None,
                }
            }
            Some(Origin::Fixed(word)) => (word == name).then(|| word.clone()),
            None => None,
        };
        if let Some(word) = word {
            words.insert(ours, word);
        }
    }
    words
}
