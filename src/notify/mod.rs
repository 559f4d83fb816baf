//! Telling people and machines outside: chat, webhook, a monitor that waits for a sign of life, metrics.
//!
//! | module | holds |
//! |---|---|
//! | [`notice`] | what there is to tell, and whether it is news |
//! | [`slack`] | the message for Slack, within its limits |
//! | [`webhook`] | the body and signature of a generic webhook |
//! | [`ping`] | what a monitor such as healthchecks is told |
//! | [`http`] | sending: time limits, a few tries, and no URL in any text |
//! | [`metrics`] | gauges in Prometheus' text format |
//!
//! Decisions: a channel speaks of changes (new, worse, recovered), never of the same breaks every night; what stays open is
//! counted with how long it has been. A channel that could not be reached never changes how a run ends, unless it is
//! `required`. URLs of channels are secrets, because whoever has one can write to it. Only a run that writes sends anything:
//! `diff` and a dry run have no client at all.

use crate::model::words;

pub mod http;
pub mod metrics;
pub mod notice;
pub mod ping;
pub mod slack;
pub mod webhook;

words! {
    /// What a channel speaks.
    Kind {
        /// An incoming webhook of Slack.
        Slack = "slack",
        /// JSON to any address, signed.
        Webhook = "webhook",
        /// A monitor that waits for a sign of life.
        Healthchecks = "healthchecks",
        /// JSON to any address, signed: every step of a repair by itself, until it is taken.
        Repairs = "repairs",
    }
}

words! {
    /// What a channel is told of.
    When {
        /// Breaks that are new or worse.
        Breaks = "breaks",
        /// A run that did not finish.
        Failure = "failure",
        /// What was failing or open is over.
        Recovery = "recovery",
        /// Every run, also when nothing changed.
        Ok = "ok",
    }
}

/// A text that must not be shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret in.
    pub fn new(text: String) -> Secret {
        Secret(text)
    }

    /// The secret itself, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// One `[notify.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name in the configuration.
    pub name: String,
    /// What it speaks.
    pub kind: Kind,
    /// Where it is; or why that could not be read. Read late, because only a run needs it.
    pub url: Result<Secret, String>,
    /// What it is told of; a monitor is told of every run.
    pub when: Vec<When>,
    /// At most so many rows are written out; the rest is counted.
    pub max_rows: usize,
    /// Where the whole report is; `{run_id}` stands for the id of the run. Empty = nowhere.
    pub link: String,
    /// Whether a delivery that failed ends the run with 6.
    pub is_required: bool,
    /// What the body is signed with; `None` = not signed.
    pub secret: Option<Result<Secret, String>>,
}

impl Channel {
    /// The link of a run.
    pub fn link_of(&self, run_id: &str) -> String {
        self.link.replace("{run_id}", run_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_shown() {
        let secret = Secret::new("hush".to_owned());
        assert!(!format!("{secret:?}").contains("hush"));
    }
}
