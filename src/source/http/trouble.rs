//! What can go wrong with a request, and the exit it leads to.
//!
//! Decisions: the text names the request and the kind of trouble, never what was answered. Whether trouble ends as 75 or 3
//! is decided by whether anything of the source was read.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use crate::exit::{Exit, Failure};

/// The kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// 401.
    Denied,
    /// 403: the key is known, and not allowed to ask for this.
    Forbidden,
    /// 404 or 410.
    NotFound,
    /// Another refusal of this very request.
    Refused,
    /// 429, to the last try.
    Limited,
    /// 5xx, to the last try.
    Server,
    /// No connection, or it broke.
    Network,
    /// It took too long.
    Timeout,
    /// The certificate of the host cannot be trusted.
    Certificate,
    /// What was answered is not what was asked for.
    Body,
    /// Somebody wants the key to go elsewhere.
    Foreign,
    /// `--max-requests`.
    Budget,
}

/// A request that got no answer to use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Of which kind.
    pub cause: Cause,
    /// Which request, and what happened. No value of a query, no answered text, no secret.
    pub what: String,
    /// Whether the same request may get an answer a moment later.
    pub may_pass: bool,
    /// How long the processor asks to wait.
    pub retry_after: Option<Duration>,
    /// The name of the error, where the answer tells one in capitals. Compared, never shown.
    pub name: String,
}

impl Trouble {
    pub(crate) fn new(cause: Cause, label: &str, what: &str) -> Trouble {
        Trouble {
            cause,
            what: format!("{label}: {what}"),
            may_pass: matches!(cause, Cause::Network | Cause::Timeout | Cause::Body),
            retry_after: None,
            name: String::new(),
        }
    }

    /// `location`: whether a redirect leads to the same host.
    pub(super) fn of_status(label: &str, status: u16, location: Option<bool>) -> Trouble {
        let (cause, what) = match (status, location) {
            (300..=399, Some(true)) => (
                Cause::Foreign,
                "a redirect, and none is followed".to_owned(),
            ),
            (300..=399, _) => (Cause::Foreign, "a redirect to another host".to_owned()),
            (401, _) => (Cause::Denied, "the key was not accepted (401)".to_owned()),
            (403, _) => (
                Cause::Forbidden,
                "the key may not ask for this (403)".to_owned(),
            ),
            (404 | 410, _) => (Cause::NotFound, format!("not found ({status})")),
            (429, _) => (Cause::Limited, "too many requests (429)".to_owned()),
            (500..=599 | 408 | 409, _) => {
                (Cause::Server, format!("the processor failed ({status})"))
            }
            (200..=299, _) => (Cause::Body, format!("an answer without content ({status})")),
            _ => (
                Cause::Refused,
                format!("the request was refused ({status})"),
            ),
        };
        Trouble::new(cause, label, &what)
    }

    pub(super) fn of_network(label: &str, error: reqwest::Error) -> Trouble {
        let error = error.without_url();
        let mut reasons = Vec::new();
        let mut next: Option<&dyn Error> = error.source();
        while let Some(reason) = next {
            reasons.push(reason.to_string());
            next = reason.source();
        }
        let deepest = reasons.last().cloned().unwrap_or_else(|| error.to_string());
        let is_certificate = reasons.iter().any(|reason| reason.contains("certificate"));
        let (cause, what) = if is_certificate {
            (
                Cause::Certificate,
                format!("the host cannot be trusted: {deepest}"),
            )
        } else if error.is_timeout() {
            (Cause::Timeout, "no whole answer in time".to_owned())
        } else if error.is_connect() {
            (Cause::Network, format!("no connection: {deepest}"))
        } else {
            (Cause::Network, format!("the connection broke: {deepest}"))
        };
        Trouble::new(cause, label, &what)
    }

    /// Whether no other request of this source could fare better.
    pub fn is_final(&self) -> bool {
        matches!(
            self.cause,
            Cause::Denied | Cause::Forbidden | Cause::Foreign | Cause::Certificate
        )
    }

    /// As a failure of its source. `has_read` = something of the source was read.
    pub fn failure(&self, has_read: bool) -> Failure {
        let exit = match self.cause {
            Cause::Denied | Cause::Forbidden => Exit::Denied,
            Cause::Foreign => Exit::Refused,
            Cause::Certificate => Exit::Rejected,
            Cause::Refused | Cause::NotFound if !has_read => Exit::Rejected,
            _ if has_read => Exit::Incomplete,
            _ => Exit::Temporary,
        };
        let failure = Failure::new(exit, self.what.clone());
        match self.cause {
            Cause::Denied | Cause::Forbidden => failure
                .why("the processor knows the key and refuses it, or does not know it")
                .remedy("check that the key is of this account and mode, has not been revoked, and may read what the README lists for this processor"),
            Cause::Foreign => failure
                .why("the key is sent to the configured host only, so no redirect and no link to another one is followed")
                .remedy("check base_url, and who answers there"),
            Cause::Certificate => failure.remedy("check base_url and the certificates that this machine trusts; there is no switch to trust anybody"),
            Cause::Budget => failure.remedy("allow more with --max-requests, or leave it out"),
            Cause::Limited => failure
                .why("it stayed so until no more time was left to try")
                .remedy("lower rate_limit of the source, or run at a quieter hour"),
            Cause::Refused | Cause::NotFound => failure.remedy("check base_url and the profile of the source"),
            Cause::Body => failure
                .why("an answer that cannot be read in full proves nothing, least of all that something is absent")
                .remedy("run again later; if it stays so, check base_url and whether something stands between"),
            Cause::Server | Cause::Network | Cause::Timeout => failure.remedy("run again later"),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}
