//! The company's table, as the promise of [`contract`](crate::intents::contract) has it.

use std::collections::{BTreeMap, HashMap};

use super::order::{self, Level, Order};
use super::question::Questions;
use super::row::RowReader;
use super::session::{Session, Statement};
use super::shape;
use super::spec::{Role, Spec};
use crate::exit::{Exit, Failure};
use crate::intents::contract::IntentTable;
use crate::intents::object;
use crate::model::intent::{Intent, IntentStatus, Intents};
use crate::money::Currency;
use crate::time::{Instant, Span};

/// More rows than this that bear no time are not single mistakes, but a column that is none.
const WITHOUT_TIME_MAX: usize = 10_000;

/// A table of our own, open for reading.
pub struct SqlTable {
    spec: Spec,
    session: Session<'static>,
    questions: Questions,
    order: Order,
    fence: Option<(String, u64)>,
    read: Reading,
}

/// What was read since the picture was opened.
#[derive(Default)]
struct Reading {
    stand_in: Option<Instant>,
    rows: Intents,
    seen: HashMap<String, Seen>,
    question: u32,
}

/// Where the row of an id is, and how often it was found.
struct Seen {
    index: usize,
    question: u32,
    /// In the present question.
    copies: u32,
    copies_max: u32,
    has_another_content: bool,
}

impl Reading {
    fn keep(&mut self, intent: &Intent<'_>) {
        let question = self.question;
        let Some(seen) = self.seen.get_mut(intent.intent_id) else {
            let index = self.rows.push(intent);
            let first = Seen {
                index,
                question,
                copies: 1,
                copies_max: 1,
                has_another_content: false,
            };
            self.seen.insert(intent.intent_id.to_owned(), first);
            return;
        };
        seen.copies = if seen.question == question {
            seen.copies + 1
        } else {
            1
        };
        seen.question = question;
        seen.copies_max = seen.copies_max.max(seen.copies);
        // Of one moment: another content is another row.
        seen.has_another_content |= self.rows.get(seen.index) != *intent;
        let created = &mut self.rows.created_at[seen.index];
        *created = intent.created_at.min(*created);
    }

    /// Hands over the rows; those that share an id have become one that cannot be used, whichever of them came first.
    fn hand_over(&mut self) -> Intents {
        let shared = self
            .seen
            .values()
            .filter(|seen| seen.copies_max > 1 || seen.has_another_content);
        for seen in shared {
            let count = seen.copies_max.max(2);
            let at = seen.index;
            let mut invalid = self.rows.text.get(self.rows.invalid[at]).to_owned();
            let finding = if seen.has_another_content {
                format!(
                    "{count} rows that differ have this id, and which is the right one is not for a reader to guess"
                )
            } else {
                format!("{count} rows of the same content have this id")
            };
            object(&mut invalid, &finding);
            self.rows.invalid[at] = self.rows.text.push(&invalid);
            self.rows.amount_minor[at] = 0;
            self.rows.currency[at] = Currency::NONE;
            self.rows.status[at] = IntentStatus::Created;
        }
        std::mem::take(self).rows
    }
}

impl SqlTable {
    /// Connects, compares the settings with the catalogue and finds out how well the order of commits is known. Fails
    /// where a column is not there or cannot be what it is named for, and where the database cannot be read.
    pub async fn open(spec: &Spec) -> Result<SqlTable, Failure> {
        let mut session = Session::connect(&spec.url, spec.statement_timeout).await?;
        session.begin().await?;
        let found = shape::shape(&mut session, spec).await;
        session.end().await?;
        let shape = found?;
        let questions = Questions::new(spec, &shape)?;
        let order = order::order(&mut session, spec, &shape).await?;
        let mut table = SqlTable {
            spec: spec.clone(),
            session,
            questions,
            order,
            fence: None,
            read: Reading::default(),
        };
        table.assert_times_are_told().await?;
        Ok(table)
    }

    /// How well the order of commits is known.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// Whether what a run reads again reaches as far back as this table needs; see [`order::assert_reach`].
    pub fn assert_reach(&self, source: &str, lag: Span, lookback: Span) -> Result<(), Failure> {
        order::assert_reach(&self.order, self.spec.max_txn, source, (lag, lookback)).map(|_| ())
    }

    /// Closes the connection.
    pub async fn close(self) -> Result<(), Failure> {
        self.session.close().await
    }

    /// A column of texts may hold times that nobody can tell: the newest row shows it before thousands do.
    async fn assert_times_are_told(&mut self) -> Result<(), Failure> {
        self.session.begin().await?;
        let reader = RowReader::new(&self.spec);
        let mut problem = None;
        let newest = self.questions.newest(1);
        let asked = self
            .session
            .each("reading the newest row", &newest, |record| {
                problem = reader.undeclared_time(record);
                Ok(())
            })
            .await;
        self.session.end().await?;
        asked?;
        match problem {
            None => Ok(()),
            Some(why) => Err(Failure::rejected(format!(
                "[intents] created_at: the newest row has {why}"
            ))
            .why("no zone and no unit is ever assumed")
            .remedy(
                "set time_zone = \"UTC\", or time_unit = \"s\", \"ms\" or \"us\", under [intents]",
            )),
        }
    }

    async fn read(&mut self, doing: &str, statement: &Statement) -> Result<usize, Failure> {
        let reader = RowReader::new(&self.spec);
        let read = &mut self.read;
        let stand_in = read.stand_in.ok_or_else(|| {
            Failure::new(Exit::Internal, "a table was asked before it was opened")
        })?;
        read.question += 1;
        let mut count = 0;
        self.session
            .each(doing, statement, |record| {
                count += 1;
                reader.read(record, stand_in, |intent| read.keep(intent));
                Ok(())
            })
            .await?;
        Ok(count)
    }
}

impl IntentTable for SqlTable {
    async fn begin(&mut self, stand_in: Instant) -> Result<(), Failure> {
        self.read = Reading {
            stand_in: Some(stand_in),
            ..Reading::default()
        };
        self.session.begin().await?;
        self.fence = if self.order.level == Level::L2 {
            order::fence(&mut self.session).await?
        } else {
            None
        };
        Ok(())
    }

    async fn behind(&mut self, fences: &BTreeMap<String, u64>) -> Result<(), Failure> {
        let known = self.fence.as_ref().and_then(|(name, _)| fences.get(name));
        if let Some(statement) = known.and_then(|number| self.questions.numbered_from(*number)) {
            self.read("reading rows of later transactions", &statement)
                .await?;
        }
        Ok(())
    }

    fn fence(&self) -> Option<(String, u64)> {
        self.fence.clone()
    }

    async fn since(&mut self, since: Instant) -> Result<(), Failure> {
        let doing = "reading recent rows";
        let created = self.questions.created_since(since);
        self.read(doing, &created).await?;
        if let Some(changed) = self.questions.changed_since(since) {
            self.read(doing, &changed).await?;
        }
        if let Some(open) = self.questions.open() {
            self.read("reading open rows", &open).await?;
        }
        let mut count = 0;
        for mut statement in self.questions.without_time() {
            statement
                .text
                .push_str(&format!(" limit {}", WITHOUT_TIME_MAX + 1));
            count += self.read("reading rows without a time", &statement).await?;
        }
        if count > WITHOUT_TIME_MAX {
            let column = self.spec.column(Role::CreatedAt).unwrap_or_default();
            return Err(Failure::rejected(format!(
                "[intents] created_at: more than {WITHOUT_TIME_MAX} rows have no time after 2000-01-01 in column \"{column}\""
            ))
            .why("they lie in no window, so none of them would ever be judged")
            .remedy("name another column, or leave them out with query = \"select …\""));
        }
        Ok(())
    }

    async fn with_keys(&mut self, keys: &[&str]) -> Result<(), Failure> {
        for statement in self.questions.with_keys(keys) {
            self.read("looking up rows by their keys", &statement)
                .await?;
        }
        Ok(())
    }

    fn rows(&self) -> &Intents {
        &self.read.rows
    }

    async fn end(&mut self) -> Result<Intents, Failure> {
        self.session.end().await?;
        Ok(self.read.hand_over())
    }

    fn settled_until(&self) -> Option<Instant> {
        self.order.settled_until
    }
}
