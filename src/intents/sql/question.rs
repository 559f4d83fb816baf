//! The statements that read the rows: by time, and by keys.

use super::dialect::{self, Engine, Holds, as_text, bound, can_hold, is_one_of, keys_max};
use super::order;
use super::session::{Statement, Value};
use super::shape::Shape;
use super::spec::{Origin, Role, Spec};
use crate::exit::Failure;
use crate::model::intent::IntentStatus;
use crate::time::{Instant, Span};

/// How a time is compared in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Clock {
    /// Beginning of a day: whatever the zone, whatever stands between date and time.
    Day(&'static str),
    /// Whole numbers.
    Count(i64),
}

/// A column that rows are found by.
#[derive(Clone, Debug)]
struct KeyColumn {
    name: String,
    holds: Holds,
    type_name: String,
}

/// What can be asked about a table.
#[derive(Clone, Debug)]
pub(super) struct Questions {
    engine: Engine,
    from: String,
    select: String,
    scope: Option<(String, String, String)>,
    created: (String, Clock),
    changed: Option<(String, Clock)>,
    /// The column with the number of the transaction.
    xid: Option<String>,
    keys: Vec<KeyColumn>,
    open: Option<Open>,
}

/// The column that says what became of a row, and the words by which it is open.
#[derive(Clone, Debug)]
struct Open {
    column: KeyColumn,
    words: Vec<String>,
}

impl Open {
    fn new(spec: &Spec, shape: &Shape) -> Option<Open> {
        let Some(Origin::Column { name, map }) = spec.roles.get(&Role::Status) else {
            return None;
        };
        let column = shape.column(name)?;
        let is_open = |word: &str| IntentStatus::from_word(word).is_some_and(IntentStatus::is_open);
        let theirs = map.iter().filter(|(_, ours)| is_open(ours));
        let ours = IntentStatus::ALL
            .iter()
            .map(|status| status.as_str())
            .filter(|word| is_open(word) && !map.contains_key(*word));
        let words = theirs
            .map(|(word, _)| word.as_str())
            .chain(ours)
            .filter(|word| can_hold(column.holds, word))
            // An enum takes no word that it does not know, not even to say that nothing equals it.
            .filter(|word| shape.labels.is_empty() || shape.labels.iter().any(|it| it == word))
            .map(str::to_owned)
            .collect();
        let holds = match column.holds {
            Holds::Word if shape.labels.is_empty() => Holds::Other,
            holds => holds,
        };
        Some(Open {
            column: KeyColumn {
                name: name.clone(),
                holds,
                type_name: column.type_name.clone(),
            },
            words,
        })
    }
}

/// Before any payment that is compared here: what bears an earlier time bears none.
const FIRST_DAY: &str = "2000-01-01";
/// The same in seconds since 1970.
const FIRST_SECOND: i64 = 946_684_800;

impl Questions {
    /// Everything that can be asked, given that the shape fits the settings.
    pub(super) fn new(spec: &Spec, shape: &Shape) -> Result<Questions, Failure> {
        let engine = shape.engine;
        let clock = |name: &str| {
            let holds = shape
                .column(name)
                .map_or(Holds::Text, |column| column.holds);
            let is_count = match engine {
                // There a column holds what it was given, and the settings say what that is.
                Engine::Sqlite => spec.time_unit.is_some(),
                Engine::Postgres | Engine::MySql => holds == Holds::Int,
            };
            let clock = match (is_count, spec.time_unit, engine, holds) {
                (true, Some(unit), ..) => Clock::Count(unit.micros()),
                (_, _, Engine::Postgres, Holds::Instant) => Clock::Day("timestamptz"),
                (_, _, Engine::Postgres, Holds::Wall) => Clock::Day("timestamp"),
                _ => Clock::Day(""),
            };
            (name.to_owned(), clock)
        };
        let created = spec
            .column(Role::CreatedAt)
            .map(clock)
            .ok_or_else(|| Failure::rejected("[intents] created_at has to be a column"))?;
        let mut keys: Vec<KeyColumn> = Vec::new();
        for name in Role::KEYS.iter().filter_map(|role| spec.column(*role)) {
            if let Some(column) = shape.column(name)
                && keys.iter().all(|key| key.name != name)
            {
                keys.push(KeyColumn {
                    name: name.to_owned(),
                    holds: column.holds,
                    type_name: column.type_name.clone(),
                });
            }
        }
        let cells: Vec<String> = Role::ALL
            .iter()
            .map(|role| match spec.column(*role) {
                Some(name) => {
                    let text = as_text(engine, &dialect::column(engine, name));
                    let holds = shape.column(name).map(|column| column.holds);
                    // The session is in UTC, and the text does not say so.
                    if engine == Engine::MySql && holds == Some(Holds::Instant) {
                        format!("concat({text}, '+00:00')")
                    } else {
                        text
                    }
                }
                None => "null".to_owned(),
            })
            .collect();
        let scope = spec.scope.as_ref().map(|scope| {
            let type_name = shape
                .column(&scope.column)
                .map_or_else(String::new, |column| column.type_name.clone());
            (
                dialect::column(engine, &scope.column),
                scope.value.clone(),
                type_name,
            )
        });
        Ok(Questions {
            engine,
            from: shape.from.clone(),
            select: cells.join(", "),
            scope,
            created,
            changed: spec.changed_column.as_deref().map(clock),
            xid: spec
                .xid_column
                .clone()
                .filter(|name| order::is_numbered(shape, name)),
            keys,
            open: Open::new(spec, shape),
        })
    }

    fn asked(&self, condition: impl FnOnce(&mut Statement) -> String) -> Statement {
        let mut statement = Statement::default();
        let condition = condition(&mut statement);
        let scope = match &self.scope {
            Some((column, value, type_name)) => {
                let value = Value::Text(value.clone());
                let value = bound(self.engine, &mut statement, value, type_name);
                format!(" and {column} = {value}")
            }
            None => String::new(),
        };
        statement.text = format!(
            "select {} from {} where {condition}{scope}",
            self.select, self.from
        );
        statement
    }

    fn boundary(&self, statement: &mut Statement, clock: Clock, at: Instant) -> String {
        match clock {
            // The day before, so that no offset and no zone puts a row on the wrong side.
            Clock::Day(cast) => {
                let day = at.minus(Span::hours(24)).to_string();
                let day = day.get(..FIRST_DAY.len()).unwrap_or(FIRST_DAY);
                bound(self.engine, statement, Value::Text(day.to_owned()), cast)
            }
            Clock::Count(micros) => {
                let count = at.0.div_euclid(micros);
                bound(self.engine, statement, Value::Int(count), "")
            }
        }
    }

    /// Rows created since an instant.
    pub(super) fn created_since(&self, at: Instant) -> Statement {
        self.since(&self.created, at)
    }

    /// Rows changed since an instant, where a column says so.
    pub(super) fn changed_since(&self, at: Instant) -> Option<Statement> {
        self.changed.as_ref().map(|column| self.since(column, at))
    }

    /// Rows whose transaction has this number or a later one; `None` where rows do not bear it.
    pub(super) fn numbered_from(&self, number: u64) -> Option<Statement> {
        let column = dialect::column(self.engine, self.xid.as_deref()?);
        Some(self.asked(|statement| {
            let value = Value::Text(number.to_string());
            let from = bound(self.engine, statement, value, "xid8");
            format!("{column} >= {from}")
        }))
    }

    fn since(&self, (column, clock): &(String, Clock), at: Instant) -> Statement {
        // Everything that a person could mean by "all" still is a day of the calendar.
        let at = at.max(Instant(FIRST_SECOND * 1_000_000).plus(Span::hours(24)));
        self.asked(|statement| {
            let from = self.boundary(statement, *clock, at);
            format!("{} >= {from}", dialect::column(self.engine, column))
        })
    }

    /// Rows whose creation cannot be told, or is none: they lie in no window, and have to be asked for.
    pub(super) fn without_time(&self) -> [Statement; 2] {
        let (name, clock) = &self.created;
        let column = dialect::column(self.engine, name);
        let missing = self.asked(|_| format!("{column} is null"));
        let early = self.asked(|statement| {
            let from = match clock {
                Clock::Day(cast) => bound(
                    self.engine,
                    statement,
                    Value::Text(FIRST_DAY.to_owned()),
                    cast,
                ),
                Clock::Count(micros) => {
                    let count = FIRST_SECOND * (1_000_000 / micros);
                    bound(self.engine, statement, Value::Int(count), "")
                }
            };
            format!("{column} < {from}")
        });
        [missing, early]
    }

    /// Rows that are open, whatever their age: they are judged in every run.
    pub(super) fn open(&self) -> Option<Statement> {
        let open = self.open.as_ref()?;
        if open.words.is_empty() {
            return None;
        }
        let words: Vec<&str> = open.words.iter().map(String::as_str).collect();
        if matches!(open.column.holds, Holds::Flag | Holds::Other) {
            let text = as_text(
                self.engine,
                &dialect::column(self.engine, &open.column.name),
            );
            return Some(self.asked(|statement| {
                is_one_of(self.engine, statement, &text, Holds::Text, "text", &words)
            }));
        }
        Some(self.with_some(&open.column, &words))
    }

    /// Rows with one of these keys: one question for each column and each handful of keys.
    pub(super) fn with_keys(&self, keys: &[&str]) -> Vec<Statement> {
        let mut statements = Vec::new();
        for column in &self.keys {
            let fitting: Vec<&str> = keys
                .iter()
                .copied()
                .filter(|key| can_hold(column.holds, key))
                .collect();
            for some in fitting.chunks(keys_max(self.engine)) {
                statements.push(self.with_some(column, some));
            }
        }
        statements
    }

    /// Rows with a key in one of the key columns; `None` where it cannot stand there.
    pub(super) fn with_key_in(&self, name: &str, key: &str) -> Option<Statement> {
        let column = self.keys.iter().find(|column| column.name == name)?;
        can_hold(column.holds, key).then(|| self.with_some(column, &[key]))
    }

    fn with_some(&self, column: &KeyColumn, keys: &[&str]) -> Statement {
        let name = dialect::column(self.engine, &column.name);
        self.asked(|statement| {
            is_one_of(
                self.engine,
                statement,
                &name,
                column.holds,
                &column.type_name,
                keys,
            )
        })
    }

    /// What a run asks, one example of each kind: (the column it needs an index on, the statement).
    pub(super) fn examples(&self, at: Instant) -> Vec<(&str, Statement)> {
        let mut examples = vec![(self.created.0.as_str(), self.created_since(at))];
        if let (Some((column, _)), Some(statement)) = (&self.changed, self.changed_since(at)) {
            examples.push((column, statement));
        }
        if let (Some(column), Some(statement)) = (&self.xid, self.numbered_from(u64::MAX)) {
            examples.push((column, statement));
        }
        if let (Some(open), Some(statement)) = (&self.open, self.open()) {
            examples.push((&open.column.name, statement));
        }
        for column in &self.keys {
            let key = match column.holds {
                Holds::Int | Holds::Decimal(_) => "1",
                Holds::Uuid => "00000000-0000-0000-0000-000000000000",
                _ => "A",
            };
            examples.push((&column.name, self.with_some(column, &[key])));
        }
        examples
    }

    /// The newest rows, at most so many.
    pub(super) fn newest(&self, limit: u32) -> Statement {
        let column = dialect::column(self.engine, &self.created.0);
        let mut statement = self.asked(|_| format!("{column} is not null"));
        let order = format!(" order by {column} desc limit {limit}");
        statement.text.push_str(&order);
        statement
    }
}
