//! Absence: what may be said about an intent that no operation answers.
//!
//! Absence is evidence only where the source was read whole past the intent's due time, and only from where contiguous
//! coverage begins. What was called absent before stays so until it is seen.

use super::rules::{Frame, Rules};
use crate::model::intent::Intent;
use crate::time::Instant;

/// The verdict about an absent intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Another source answers for it, or another slice of this run.
    NotOurs,
    /// Too early to tell, or nobody can.
    Pending { due_at: Instant, why: &'static str },
    /// Claims no money and never reached the processor.
    Abandoned,
    /// `missing_processor`.
    Missing,
    /// `open_too_long`.
    OpenTooLong,
}

/// Judges an intent of which nothing is seen, or nothing but failed attempts.
///
/// `is_known` says whether a break of absence is open about it already.
pub(crate) fn absence(
    intent: &Intent<'_>,
    rules: &Rules,
    frame: &Frame,
    is_known: bool,
) -> Absence {
    let is_owned = intent.source == rules.source;
    if !is_owned && (!intent.source.is_empty() || !frame.judges_unowned) {
        return Absence::NotOurs;
    }
    let due_at = intent.created_at.plus(rules.grace.of(intent.kind));
    let pending = |why| Absence::Pending { due_at, why };
    let claims = intent.claims_money();
    if is_known {
        return if claims {
            Absence::Missing
        } else {
            settled_or(intent, Absence::OpenTooLong, rules, frame)
        };
    }
    if intent.created_at < frame.low {
        let is_old = intent.created_at.plus(rules.open_after.of(intent.kind)) <= frame.as_of;
        return match (claims, is_old) {
            (true, _) => pending("it is older than what has been read"),
            (false, false) => pending("it is not due yet"),
            (false, true)
                if intent.status.is_open()
                    && !intent.processor_ref.is_empty()
                    && !rules.can_look_up =>
            {
                Absence::OpenTooLong
            }
            (false, true) => Absence::Abandoned,
        };
    }
    let covered = frame.covered_for(intent);
    match covered {
        None if claims || intent.status.is_open() => pending("not every source was read whole"),
        Some(covered) if due_at > covered => pending("it is not due within what has been read"),
        Some(_) if claims && frame.is_feed_unchanged => {
            pending("the files are those of the last run")
        }
        Some(_) if claims => Absence::Missing,
        Some(_) if intent.created_at.plus(rules.open_after.of(intent.kind)) > frame.as_of => {
            pending("it may still be completed")
        }
        None | Some(_) => Absence::Abandoned,
    }
}

/// A row that was open too long and has been failed or called off since has nothing to tell any more.
fn settled_or(intent: &Intent<'_>, verdict: Absence, rules: &Rules, frame: &Frame) -> Absence {
    let is_covered = intent.created_at >= frame.low
        && frame
            .covered
            .is_some_and(|covered| intent.created_at.plus(rules.grace.of(intent.kind)) <= covered);
    if !intent.status.is_open() || is_covered {
        Absence::Abandoned
    } else {
        verdict
    }
}
