//! Repairs written in a transaction of the store's, where the company's table lies in the store's database: the table, the
//! ledger and the watermark take hold together, or none of them does.
//!
//! # Decisions
//!
//! - Each repair stands in a savepoint of its own. What is no plain success is rolled back to it, so that one repair never
//!   keeps the others, or the run, from taking hold.
//! - The row is held from when it is looked at. One that somebody else holds is left alone at once: waiting while others
//!   are held could make the application wait for us, and us for it.
//! - What the database would only check at the end of the transaction is checked at the savepoint, and again at the end.
//! - A statement finds its tables where it would find them on a connection of its own; the store's own places are put back.

use super::dialect::Engine;
use super::row_writer::{ApplySpec, RowWriter, Step, refused};
use super::session::{Session, Statement, Value};
use super::spec::Spec;
use super::writer::Writer;
use crate::database::along::{Along, Lent, Took, Writing};
use crate::exit::{Exit, Failure};
use crate::model::repair::Repair;
use crate::time::Instant;

/// How long anything but a row is waited for. Unit: seconds.
const LOCK_SECONDS: u32 = 1;

/// Which server, which database of it, and as whom.
const PLACE: &str = "\
    select d.oid::text || ' ' || current_user || ' ' || pg_catalog.pg_postmaster_start_time()::text \
    from pg_catalog.pg_database as d where d.datname = pg_catalog.current_database()";

const SETTINGS: &str = "\
    select current_setting('search_path'), current_setting('intervalstyle'), \
    current_setting('statement_timeout'), current_setting('lock_timeout')";

const PUT_BACK: &str = "\
    select pg_catalog.set_config('search_path', $1, true), \
    pg_catalog.set_config('intervalstyle', $2, true), \
    pg_catalog.set_config('statement_timeout', $3, true), \
    pg_catalog.set_config('lock_timeout', $4, true)";

/// The company's table, to be written in transactions of the store's.
pub struct Joined {
    spec: Spec,
    apply: ApplySpec,
    as_of: Instant,
    place: String,
    has_tried: bool,
}

impl Joined {
    /// Looks where the connection leads that a repair would be written on otherwise. `as_of` is "now" of the repairs.
    pub async fn new(writer: &mut Writer, as_of: Instant) -> Result<Joined, Failure> {
        let (spec, apply, session) = writer.parts();
        let place = match session.engine() {
            Engine::Postgres => {
                session.begin().await?;
                let place = place(session).await;
                session.end().await?;
                place?
            }
            // A file is where its path says.
            Engine::MySql | Engine::Sqlite => String::new(),
        };
        Ok(Joined {
            spec: spec.clone(),
            apply: apply.clone(),
            as_of,
            place,
            has_tried: false,
        })
    }

    /// Whether anything was tried in a transaction, so that this may be why it did not take hold.
    pub fn has_tried(&self) -> bool {
        self.has_tried
    }

    async fn write_all(
        &mut self,
        lent: Lent<'_>,
        repairs: &[&Repair],
    ) -> Result<Vec<Took>, Failure> {
        self.has_tried = true;
        let mut session = Session::lent(lent, self.spec.statement_timeout);
        let doing = "writing along with the ledger";
        session
            .send(doing, "savepoint paysweep_along".to_owned())
            .await?;
        let before = match self.enter(&mut session).await {
            Ok(before) => before,
            Err(failure) => return left_all(&mut session, repairs, failure).await,
        };
        let hold = match session.engine() {
            Engine::Postgres => " for update nowait",
            Engine::MySql | Engine::Sqlite => "",
        };
        let rows = match RowWriter::new(&mut session, &self.spec, &self.apply, hold).await {
            Ok(rows) if !hold.is_empty() && rows.is_view() => {
                let failure = Failure::rejected("the rows of a view cannot be held");
                return left_all(&mut session, repairs, failure).await;
            }
            Ok(rows) => rows,
            Err(failure) => return left_all(&mut session, repairs, failure).await,
        };
        let mut answers = Vec::with_capacity(repairs.len());
        let mut stopped = None;
        for repair in repairs {
            let answer = match &stopped {
                Some(failure) => Took::Left(Failure::clone(failure)),
                None => self.one(&mut session, &rows, repair).await?,
            };
            if let Took::Left(failure) = &answer
                && failure.exit != Exit::Temporary
            {
                // It is about every repair alike.
                stopped = Some(failure.clone());
            }
            answers.push(answer);
        }
        if let Some(before) = before {
            let statement = Statement {
                text: PUT_BACK.to_owned(),
                values: before.into_iter().map(Value::Text).collect(),
            };
            session.all(doing, &statement).await?;
        }
        let release = "release savepoint paysweep_along".to_owned();
        session.send(doing, release).await?;
        Ok(answers)
    }

    /// Makes the connection that of a writer. What was set before; `None` where nothing is set.
    async fn enter(&self, session: &mut Session<'_>) -> Result<Option<Vec<String>>, Failure> {
        if session.engine() != Engine::Postgres {
            return Ok(None);
        }
        if place(session).await? != self.place {
            return Err(Failure::rejected(
                "the store and the table are not in one database of one role",
            ));
        }
        let doing = "looking at the settings of a transaction";
        let rows = session.all(doing, &Statement::plain(SETTINGS)).await?;
        let millis = (self.spec.statement_timeout.0 / 1_000).max(1);
        let settings = format!(
            "set local search_path to default; \
             set local intervalstyle = 'postgres'; \
             set local statement_timeout = '{millis}ms'; \
             set local lock_timeout = '{LOCK_SECONDS}s'"
        );
        session.send(doing, settings).await?;
        Ok(rows.into_iter().next())
    }

    async fn one(
        &self,
        session: &mut Session<'_>,
        rows: &RowWriter,
        repair: &Repair,
    ) -> Result<Took, Failure> {
        let doing = "writing a repair";
        session
            .send(doing, "savepoint paysweep_repair".to_owned())
            .await?;
        let took = match rows.write(session, repair, self.as_of).await {
            Ok(Step::Changed) => match session.check_now().await {
                Ok(Ok(())) => Took::Written,
                Ok(Err(words)) => Took::Conflict(refused(&words)),
                Err(failure) => Took::Left(failure),
            },
            Ok(Step::Before) => Took::Before,
            Ok(Step::Conflict(what) | Step::Unknown(what)) => Took::Conflict(what),
            Err(failure) => Took::Left(failure),
        };
        let end = if matches!(took, Took::Written) {
            "release savepoint paysweep_repair"
        } else {
            "rollback to savepoint paysweep_repair; release savepoint paysweep_repair"
        };
        let ended = session.send(doing, end.to_owned()).await;
        if ended.is_err() && session.engine() == Engine::Sqlite {
            // A trigger may roll back the whole transaction; whoever lent it has to find one to roll back.
            let _ = session.send(doing, "begin".to_owned()).await;
        }
        ended.map(|()| took)
    }
}

impl Along for Joined {
    fn write<'a>(&'a mut self, lent: Lent<'a>, repairs: &'a [&'a Repair]) -> Writing<'a> {
        Box::pin(self.write_all(lent, repairs))
    }
}

/// Leaves everything as it was, settings included.
async fn left_all(
    session: &mut Session<'_>,
    repairs: &[&Repair],
    failure: Failure,
) -> Result<Vec<Took>, Failure> {
    let end = "rollback to savepoint paysweep_along; release savepoint paysweep_along";
    session.send("going back", end.to_owned()).await?;
    Ok(vec![Took::Left(failure); repairs.len()])
}

async fn place(session: &mut Session<'_>) -> Result<String, Failure> {
    let doing = "looking which database answers";
    let rows = session.all(doing, &Statement::plain(PLACE)).await?;
    Ok(rows.concat().concat())
}
