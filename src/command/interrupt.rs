//! Being asked to stop: by a signal, which `main` alone reads, or by `--deadline`.
//!
//! # Decisions
//!
//! - The first reason stands. What is long is left where it is; what is short and would leave something behind (claiming
//!   and giving back a source, recording a run) is finished.
//! - What keeps a processor busy runs on a thread of its own, so that the one that waits hears the question.

use std::time::Duration;

use tokio::sync::watch;

use crate::exit::{Exit, Failure};
use crate::time::Span;

/// Why a command is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// SIGINT: somebody at a terminal.
    Interrupt,
    /// SIGTERM: a scheduler or the machine.
    Terminate,
    /// `--deadline`: it took longer than this.
    Deadline(Span),
}

impl Reason {
    /// The exit it leads to. A deadline that has passed is like a source that could not be read in time.
    pub const fn exit(self) -> Exit {
        match self {
            Reason::Interrupt => Exit::Interrupted,
            Reason::Terminate => Exit::Terminated,
            Reason::Deadline(_) => Exit::Temporary,
        }
    }

    /// What is told of it; the state is added by who knows it.
    pub fn failure(self) -> Failure {
        let what = match self {
            Reason::Interrupt => "SIGINT: stopped".to_owned(),
            Reason::Terminate => "SIGTERM: stopped".to_owned(),
            Reason::Deadline(span) => format!("--deadline: stopped after {span}"),
        };
        Failure::new(self.exit(), what).remedy("run again: it starts from the same watermark")
    }
}

/// The question whether a command was asked to stop. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    reason: watch::Sender<Option<Reason>>,
}

impl Interrupt {
    /// Asks to stop. Who asks later changes nothing.
    pub fn ask(&self, reason: Reason) {
        self.reason.send_if_modified(|first| {
            let is_first = first.is_none();
            first.get_or_insert(reason);
            is_first
        });
    }

    /// Asks to stop when so much time has passed.
    pub(crate) fn ask_after(&self, deadline: Option<Span>) {
        let Some(span) = deadline else { return };
        let interrupt = self.clone();
        let wait = duration(span);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            interrupt.ask(Reason::Deadline(span));
        });
    }

    /// Why to stop, if so.
    pub(crate) fn asked(&self) -> Option<Failure> {
        let reason = *self.reason.borrow();
        reason.map(Reason::failure)
    }

    /// Work that is left where it is when somebody asks to stop.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = T>) -> Result<T, Failure> {
        let mut asked = self.reason.subscribe();
        tokio::select! {
            biased;
            Ok(reason) = asked.wait_for(Option::is_some) => {
                Err(reason.unwrap_or(Reason::Terminate).failure())
            }
            done = work => Ok(done),
        }
    }

    /// Work that keeps a processor busy, on a thread of its own. When somebody asks to stop, nobody waits for it.
    pub(crate) async fn aside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Failure> {
        if let Some(stopped) = self.asked() {
            return Err(stopped);
        }
        let done = self.or(tokio::task::spawn_blocking(work)).await?;
        Ok(done.expect("a panic ends the process by itself"))
    }
}

/// A span as the runtime counts it; a negative one is over at once.
pub(super) fn duration(span: Span) -> Duration {
    Duration::from_micros(u64::try_from(span.0).unwrap_or(0))
}
