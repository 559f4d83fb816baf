//! Repairs written into the company's own table, by statements of the company's own.
//!
//! Each repair is one transaction of its own, as if it were alone: look whether it was recorded, look whether the row is as
//! it was when the repair was planned, write, count, make sure that the repair is still ours to write, commit.
//!
//! # Decisions
//!
//! - A repair takes hold once, whatever dies in between: the row is compared and set, and where `recorded` is configured,
//!   the table itself says that this very repair was written. Without it a row that is as it should be may have been
//!   brought there by anybody, so that is told as unknown and never counted as written.
//! - A row that is recorded has nothing to be compared with, so `recorded` is required there.
//! - One row changed is the only success. Any other number is rolled back.
//! - A refusal that is about this repair (a constraint, a trigger) is a conflict; one that is about all of them (a right, a
//!   column that is not there) ends the writing, and no repair is blamed for it.

use super::explained::assert_runs;
use super::row_writer::{ApplySpec, Found, RowWriter, Step, refused, unknown};
use super::session::Session;
use super::spec::Spec;
use crate::exit::{Exit, Failure};
use crate::model::repair::{Repair, RepairAction};
use crate::time::Instant;

/// How often a repair is tried that met somebody else's transaction.
const TRIES: u32 = 5;

/// How writing a repair ended.
#[derive(Debug)]
pub enum Written {
    /// By this call.
    Now,
    /// The table says that it was written before.
    Before,
    /// Nothing was written: why.
    Conflict(String),
    /// Nothing was written by this call, and the row is as it should be: nobody can tell by whom.
    Unknown(String),
    /// The connection broke at the very end, and what happened could not be found out.
    Lost(Failure),
}

/// The company's table, open for writing.
pub struct Writer {
    spec: Spec,
    apply: ApplySpec,
    session: Session<'static>,
    rows: RowWriter,
}

impl Writer {
    /// Connects, as the role that may write.
    pub async fn open(spec: &Spec, apply: &ApplySpec) -> Result<Writer, Failure> {
        let session = Session::connect_to_write(&apply.url, spec.statement_timeout).await?;
        Writer::over(session, spec, apply).await
    }

    /// Connects as the same role, to see whether it could write; a file is left as it is.
    pub async fn open_to_explain(spec: &Spec, apply: &ApplySpec) -> Result<Writer, Failure> {
        let session = Session::connect_to_explain(&apply.url, spec.statement_timeout).await?;
        Writer::over(session, spec, apply).await
    }

    async fn over(
        mut session: Session<'static>,
        spec: &Spec,
        apply: &ApplySpec,
    ) -> Result<Writer, Failure> {
        session.begin().await?;
        // Its transactions are as if they were alone, so nothing need be held.
        let rows = RowWriter::new(&mut session, spec, apply, "").await;
        session.end().await?;
        Ok(Writer {
            spec: spec.clone(),
            apply: apply.clone(),
            session,
            rows: rows?,
        })
    }

    /// Closes the connection.
    pub async fn close(self) -> Result<(), Failure> {
        self.session.close().await
    }

    pub(super) fn parts(&mut self) -> (&Spec, &ApplySpec, &mut Session<'static>) {
        (&self.spec, &self.apply, &mut self.session)
    }

    /// Whether the statements of some actions could be run, by having them explained: nothing is written. A right or a column
    /// that is not there is a failure.
    pub async fn assert_runs(
        &mut self,
        actions: &[RepairAction],
        now: Instant,
    ) -> Result<(), Failure> {
        let shape = self.rows.shape();
        assert_runs(&mut self.session, shape, &self.apply, actions, now).await
    }

    /// Looks how the row of a repair is, without writing.
    pub async fn look(&mut self, repair: &Repair) -> Result<Found, Failure> {
        self.session.begin().await?;
        let found = self.rows.find(&mut self.session, repair).await?;
        self.session.end().await?;
        Ok(found)
    }

    /// Writes a repair. `is_ours` is asked before the transaction ends: a failure of it rolls everything back. A failure of
    /// this means that nothing was written.
    pub async fn write(
        &mut self,
        repair: &Repair,
        as_of: Instant,
        mut is_ours: impl AsyncFnMut() -> Result<(), Failure>,
    ) -> Result<Written, Failure> {
        let mut tries = 1;
        loop {
            let failure = match self.try_once(repair, as_of, &mut is_ours).await {
                Ok(Try::Done(written)) => return Ok(written),
                Ok(Try::Lost(failure)) => match self.find_out(repair).await {
                    Ok(Found::Recorded) => return Ok(Written::Now),
                    Ok(Found::AsBefore(_)) => failure,
                    Ok(Found::AsAfter) => return Ok(Written::Unknown(unknown(repair))),
                    Ok(Found::Other(what)) => return Ok(Written::Conflict(what)),
                    Err(_) => return Ok(Written::Lost(failure)),
                },
                Err(failure) => failure,
            };
            if failure.exit != Exit::Temporary || tries == TRIES {
                return Err(failure);
            }
            tries += 1;
            if self.session.is_lost() {
                self.reconnect().await?;
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), Failure> {
        let timeout = self.spec.statement_timeout;
        self.session = Session::connect_to_write(&self.apply.url, timeout).await?;
        Ok(())
    }

    /// What a commit came to that nobody answered, on a new connection.
    async fn find_out(&mut self, repair: &Repair) -> Result<Found, Failure> {
        self.reconnect().await?;
        self.look(repair).await
    }

    async fn try_once(
        &mut self,
        repair: &Repair,
        as_of: Instant,
        is_ours: &mut impl AsyncFnMut() -> Result<(), Failure>,
    ) -> Result<Try, Failure> {
        self.session.begin_to_write().await?;
        match self.rows.write(&mut self.session, repair, as_of).await? {
            Step::Changed => {}
            Step::Before => return self.leave(Written::Before).await,
            Step::Unknown(what) => return self.leave(Written::Unknown(what)).await,
            Step::Conflict(what) => return self.leave(Written::Conflict(what)).await,
        }
        is_ours().await?;
        match self.session.commit().await {
            Ok(Ok(())) => Ok(Try::Done(Written::Now)),
            Ok(Err(words)) => self.leave(Written::Conflict(refused(&words))).await,
            // The server says that it did not take hold.
            Err(failure) if !self.session.is_lost() => Err(failure),
            Err(failure) => Ok(Try::Lost(failure)),
        }
    }

    async fn leave(&mut self, written: Written) -> Result<Try, Failure> {
        self.session.end().await?;
        Ok(Try::Done(written))
    }
}

enum Try {
    Done(Written),
    /// The connection broke while the transaction was ending.
    Lost(Failure),
}
