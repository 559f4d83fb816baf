//! Exit codes: the one table from which `--help`, the README and the tests are made.
//!
//! Declaration order is precedence: when several reasons apply, the highest row decides the code, and
//! `outcome.reasons` of the report lists them all. Codes are added, never reused. An unknown non-zero
//! code is a failure.

/// How a run ended, as a scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exit {
    /// SIGINT: the open transaction was rolled back.
    Interrupted,
    /// SIGTERM: the open transaction was rolled back.
    Terminated,
    /// A bug: a broken invariant, sums that do not add up.
    Internal,
    /// Usage, configuration, or an input file that cannot be trusted as a whole.
    Rejected,
    /// The store is not migrated, foreign or damaged.
    NotReady,
    /// Credentials, grants, or the wrong mode.
    Denied,
    /// A guard stopped the writes.
    Refused,
    /// Another run holds the source.
    Locked,
    /// Nothing of a source could be read, or the database is down.
    Temporary,
    /// Part of a source was read.
    Incomplete,
    /// A required output could not be written.
    Undelivered,
    /// Finished; breaks per `--fail-on`.
    Differences,
    /// Finished; nothing to tell.
    Ok,
}

impl Exit {
    /// Every exit, in order of precedence.
    pub const ALL: [Exit; 13] = [
        Exit::Interrupted,
        Exit::Terminated,
        Exit::Internal,
        Exit::Rejected,
        Exit::NotReady,
        Exit::Denied,
        Exit::Refused,
        Exit::Locked,
        Exit::Temporary,
        Exit::Incomplete,
        Exit::Undelivered,
        Exit::Differences,
        Exit::Ok,
    ];

    /// The number the process ends with.
    pub const fn code(self) -> u8 {
        match self {
            Exit::Interrupted => 130,
            Exit::Terminated => 143,
            Exit::Internal => 70,
            Exit::Rejected => 2,
            Exit::NotReady => 10,
            Exit::Denied => 5,
            Exit::Refused => 4,
            Exit::Locked => 11,
            Exit::Temporary => 75,
            Exit::Incomplete => 3,
            Exit::Undelivered => 6,
            Exit::Differences => 1,
            Exit::Ok => 0,
        }
    }

    /// The name in `outcome.name`. A finished run with breaks is called `repaired` or `review` there instead,
    /// one without is called `clean`.
    pub const fn name(self) -> &'static str {
        match self {
            Exit::Interrupted | Exit::Terminated => "interrupted",
            Exit::Internal => "internal",
            Exit::Rejected => "rejected",
            Exit::NotReady => "not_ready",
            Exit::Denied => "denied",
            Exit::Refused => "refused",
            Exit::Locked => "locked",
            Exit::Temporary => "temporary",
            Exit::Incomplete => "incomplete",
            Exit::Undelivered => "undelivered",
            Exit::Differences => "differences",
            Exit::Ok => "ok",
        }
    }

    /// When the code is given, as one phrase for help and README.
    pub const fn when(self) -> &'static str {
        match self {
            Exit::Interrupted => "SIGINT: the open transaction was rolled back",
            Exit::Terminated => "SIGTERM: the open transaction was rolled back",
            Exit::Internal => "a bug: a broken invariant, sums that do not add up",
            Exit::Rejected => {
                "usage, configuration, or an input file that cannot be trusted as a whole; nothing was written for it"
            }
            Exit::NotReady => {
                "the store is not migrated, is not ours or is damaged; it is never created over"
            }
            Exit::Denied => {
                "a key, password, grant or file permission is missing or refused, or a key or file is of the wrong mode"
            }
            Exit::Refused => {
                "a guard: too many or too large repairs, a hole in coverage, a watermark later than now, a link or redirect to another host"
            }
            Exit::Locked => "another run holds the source; the message says who and until when",
            Exit::Temporary => "nothing of a source could be read, or the database is down",
            Exit::Incomplete => {
                "part of a source was read: no absence verdicts for it, its watermark stays"
            }
            Exit::Undelivered => "a required output could not be written",
            Exit::Differences => "finished; there are breaks (see --fail-on)",
            Exit::Ok => "finished; nothing to tell",
        }
    }

    /// Whether running the same command again may help.
    pub const fn retry_helps(self) -> bool {
        matches!(
            self,
            Exit::Interrupted
                | Exit::Terminated
                | Exit::Locked
                | Exit::Temporary
                | Exit::Incomplete
        )
    }

    /// The exit that decides when two reasons apply: the higher row of the table.
    #[must_use]
    pub fn worst(self, other: Exit) -> Exit {
        self.min(other)
    }
}

/// An error as a person reads it: what, why, what to do, and what state things are in.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit it leads to.
    pub exit: Exit,
    /// What happened, with file, line, column and value where there are some. Lower case, no full stop, no secret.
    pub what: String,
    /// Why it is an error; empty = `what` says it.
    pub why: String,
    /// What the reader can do; empty = nothing sensible.
    pub remedy: String,
    /// What was and was not written; empty = added by the caller that knows.
    pub state: String,
}

impl Failure {
    /// A failure of which only the what is known yet.
    pub fn new(exit: Exit, what: impl Into<String>) -> Failure {
        Failure {
            exit,
            what: what.into(),
            why: String::new(),
            remedy: String::new(),
            state: String::new(),
        }
    }

    /// Exit 2: usage, configuration, or an input file that cannot be trusted.
    pub fn rejected(what: impl Into<String>) -> Failure {
        Failure::new(Exit::Rejected, what)
    }

    /// The same with the reason.
    #[must_use]
    pub fn why(mut self, why: impl Into<String>) -> Failure {
        self.why = why.into();
        self
    }

    /// The same with what to do.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Failure {
        self.remedy = remedy.into();
        self
    }

    /// The same with the state things are in, unless a deeper layer has said it.
    #[must_use]
    pub fn state(mut self, state: impl Into<String>) -> Failure {
        if self.state.is_empty() {
            self.state = state.into();
        }
        self
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.what)?;
        for (label, text) in [
            ("why:  ", &self.why),
            ("do:   ", &self.remedy),
            ("state:", &self.state),
        ] {
            if !text.is_empty() {
                write!(f, "\n  {label} {text}")?;
            }
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_reading_outranks_every_finding() {
        assert_eq!(Exit::Differences.worst(Exit::Incomplete), Exit::Incomplete);
        assert_eq!(Exit::Ok.worst(Exit::Differences), Exit::Differences);
    }

    #[test]
    fn every_code_is_used_once() {
        let mut codes: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Exit::ALL.len());
    }
}
