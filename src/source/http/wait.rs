//! When to ask again, and for how long.

use std::time::Duration;

use crate::time::Instant;

/// When a request is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retries {
    /// How often a request is sent, at most.
    pub tries: usize,
    /// The first pause; each next one is twice as long, and a random part is added.
    pub first: Duration,
    /// The longest pause that is not asked for by the processor.
    pub longest: Duration,
    /// A request is not tried again once so much time has passed, or would have.
    pub patience: Duration,
    /// Statuses that may pass.
    pub on: Vec<u16>,
    /// A header and its value by which the processor says that trying again is of no use.
    pub veto: Option<(String, String)>,
    /// The opposite.
    pub force: Option<(String, String)>,
}

impl Retries {
    /// Whether a status may pass.
    pub(super) fn may_pass(&self, status: u16, header: impl Fn(&str) -> Option<String>) -> bool {
        let says = |rule: &Option<(String, String)>| {
            rule.as_ref().is_some_and(|(name, value)| {
                header(name).is_some_and(|found| found.trim() == value)
            })
        };
        match status {
            // Whatever a header says: nobody gets in by asking again.
            300..=399 | 401 | 403 => false,
            _ if says(&self.veto) => false,
            _ => says(&self.force) || self.on.contains(&status),
        }
    }

    /// How long to wait before the next try; `None` = there is no time left for one.
    pub(super) fn next(
        &self,
        elapsed: Duration,
        asked: Option<Duration>,
        delay: Duration,
    ) -> Option<Duration> {
        let wait = asked.map_or(delay, |asked| asked.max(delay));
        (elapsed.checked_add(wait)? < self.patience).then_some(wait)
    }
}

/// What `Retry-After` asks for: whole seconds, or a time that is held against the processor's own clock. Anything else asks
/// for nothing.
pub(super) fn after(value: &str, date: Option<Instant>) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let until = crate::time::parse_http_date(value)?;
    let seconds = until.seconds_since(date?);
    Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retries() -> Retries {
        Retries {
            tries: 3,
            first: Duration::from_millis(1),
            longest: Duration::from_secs(1),
            patience: Duration::from_mins(1),
            on: vec![429, 500],
            veto: Some(("stripe-should-retry".to_owned(), "false".to_owned())),
            force: Some(("stripe-should-retry".to_owned(), "true".to_owned())),
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_time() {
        let date = crate::time::parse_http_date("Mon, 09 Mar 2026 10:00:00 GMT");
        assert!(date.is_some());
        for (value, want) in [
            ("0", Some(0)),
            ("7", Some(7)),
            ("1000000000", Some(1_000_000_000)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("Mon, 09 Mar 2026 10:00:09 GMT", Some(9)),
            ("Mon, 09 Mar 2026 09:00:00 GMT", Some(0)),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
            ("", None),
        ] {
            assert_eq!(after(value, date), want.map(Duration::from_secs), "{value}");
        }
        assert_eq!(after("Mon, 09 Mar 2026 10:00:09 GMT", None), None);
    }

    #[test]
    fn a_wait_that_does_not_fit_is_not_begun() {
        let (second, minute) = (Duration::from_secs(1), Duration::from_mins(1));
        let next = |elapsed, asked, delay| retries().next(elapsed, asked, delay);
        assert_eq!(next(second, None, second), Some(second));
        assert_eq!(next(second, Some(second * 5), second), Some(second * 5));
        assert_eq!(next(second, Some(Duration::ZERO), second), Some(second));
        assert_eq!(next(second, Some(minute), second), None);
        assert_eq!(next(minute, None, second), None);
        assert_eq!(next(second, Some(Duration::MAX), second), None);
    }

    #[test]
    fn the_processor_knows_best_whether_to_try_again() {
        let with = |status, told: Option<&str>| {
            retries().may_pass(status, |name| {
                (name == "stripe-should-retry")
                    .then(|| told.map(str::to_owned))
                    .flatten()
            })
        };
        assert!(with(500, None) && with(429, None) && with(400, Some("true")));
        assert!(!with(500, Some("false")) && !with(400, None) && !with(401, Some("true")));
    }
}
