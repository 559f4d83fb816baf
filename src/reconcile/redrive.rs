//! When may an intent be proposed to be sent again under its own key?
//!
//! A processor that recognises the key answers a repetition with what it did the first time; one that has forgotten it takes
//! the money a second time. So a proposal needs all of these, and any doubt is no:
//!
//! 1. the profile says for how long a key is recognised, by published word;
//! 2. the intent says when it was sent first, and under which key;
//! 3. the window, less a fifth and less a margin, has not closed;
//! 4. the source is the one that the intent was sent to;
//! 5. what was read is whole and consistent past the first attempt, and shows nothing of the intent;
//! 6. `[repair] redrive = "propose"`. There is no more than a proposal: nothing is ever sent from here.
//!
//! Pure.

use super::rules::{Frame, Rules};
use crate::model::intent::{Intent, IntentKind, IntentStatus};
use crate::model::run::Basis;
use crate::time::{Instant, Span};

/// What a source says about requests that are sent again, and how its absences prove something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Redrive {
    /// For how long the processor recognises a key, at least; `None` = always.
    pub window: Option<Span>,
    /// A request that was sent so long ago is in what was read, if it arrived: the lag of the source, and no less than the
    /// delay that its profile declares.
    pub visible_within: Span,
}

/// The part of the window that is used: a request sent in the last fifth may arrive after it. Unit: tenths.
const USABLE_TENTHS: i64 = 8;

/// Between looking at a proposal and the arrival of the request: the longest pause of a sender and its request time-out.
const MARGIN: Span = Span(10 * 60 * 1_000_000);

/// How far the clocks of sender, processor and this machine may be apart: what `paysweep check` allows.
const CLOCK_SKEW: Span = Span(60 * 1_000_000);

/// A payment as old as this is for a person to decide, however long its key is recognised.
const LONGEST: Span = Span::hours(30 * 24);

impl Redrive {
    /// The rule in figures.
    pub fn told(&self) -> String {
        let usable = self.expires_at(Instant(0)).seconds_since(Instant(0));
        let window = match self.window {
            Some(window) => format!("for {window}"),
            None => "always".to_owned(),
        };
        format!(
            "the processor recognises a key {window}; a payment may be proposed until {} after its first attempt, once it \
             would be seen for {}",
            Span(usable * 1_000_000),
            self.visible_within
        )
    }

    /// Until when a request that was sent first at an instant may be sent again. At that instant it may not any more.
    pub fn expires_at(&self, first_attempt_at: Instant) -> Instant {
        let usable = match self.window {
            None => LONGEST,
            Some(window) => Span(
                (window.0 / 10 * USABLE_TENTHS)
                    .min(window.0.saturating_sub(MARGIN.0))
                    .clamp(0, LONGEST.0),
            ),
        };
        first_attempt_at.plus(usable).minus(CLOCK_SKEW)
    }
}

/// Until when an intent that nothing answers may be sent again; `None` = it may not.
pub(crate) fn until(intent: &Intent<'_>, rules: &Rules, frame: &Frame) -> Option<Instant> {
    let redrive = rules.redrive.as_ref()?;
    let first_attempt_at = intent.first_attempt_at?;
    let may_be_sent = match intent.kind {
        IntentKind::Charge | IntentKind::Refund | IntentKind::Payout => matches!(
            intent.status,
            IntentStatus::Created | IntentStatus::Pending | IntentStatus::Succeeded
        ),
        // The customer's bank sends it, not we.
        IntentKind::Dispute => false,
    };
    // What has an id of the processor's was answered once, whatever is seen of it now.
    let was_answered = !intent.processor_ref.is_empty();
    if !may_be_sent
        || was_answered
        || intent.idempotency_key.trim().is_empty()
        || !intent.invalid.is_empty()
    {
        return None;
    }
    let is_sent_here = if intent.source.is_empty() {
        rules.is_only_source
    } else {
        intent.source == rules.source
    };
    let is_shown = frame.window.basis == Basis::Watermark
        && frame.is_absence_proof
        && !frame.is_feed_unchanged
        && frame.low <= first_attempt_at.minus(CLOCK_SKEW);
    let is_past = |at: Instant| {
        frame
            .covered_for(intent)
            .is_some_and(|covered| at <= covered)
    };
    let due_at = intent.created_at.plus(rules.grace.of(intent.kind));
    let visible_at = first_attempt_at.plus(redrive.visible_within);
    let expires_at = redrive.expires_at(first_attempt_at);
    (is_sent_here && is_shown && is_past(due_at) && is_past(visible_at) && frame.as_of < expires_at)
        .then_some(expires_at)
}
