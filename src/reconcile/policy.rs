//! `[repair]`: what is done about a class, and the conditions under which it is.
//!
//! | condition | holds where |
//! |---|---|
//! | `max_amount` | the repair is about at most so much; a currency that is not named is above it |
//! | `min_age` | the operation happened so long before "now" |
//! | `min_evidence` | the rule that linked the pair is that one, or stands above it in the ladder |
//! | `only_forward` | an open row is ended, a link is filled in, or a row is recorded; a final status is never changed |
//!
//! Where all of them hold the policy is followed; where one does not, `otherwise` is. Pure.

use std::collections::BTreeMap;

use crate::model::breaks::Policy;
use crate::model::repair::{Repair, RepairState};
use crate::model::verdict::Rule;
use crate::money::{Currency, Money};
use crate::time::{Instant, Span};

/// Under which conditions the policy of a class is followed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Conditions {
    /// At most so much, in minor units; empty = any amount.
    pub max_amount: BTreeMap<Currency, i64>,
    /// From `occurred_at` of the operation to "now".
    pub min_age: Option<Span>,
    /// The weakest rule of the ladder that is enough.
    pub min_evidence: Option<Rule>,
    /// No final status is changed.
    pub only_forward: bool,
    /// What is done where a condition does not hold; `None` = one step less: `auto` proposes, `propose` does nothing.
    pub otherwise: Option<Policy>,
}

/// What a repair is judged by, beside itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// "Now".
    pub(crate) as_of: Instant,
    /// What it is about.
    pub(crate) money: Option<Money>,
    /// The rule that linked operation and intent, or child and parent; `None` = nobody knows.
    pub(crate) rule: Option<Rule>,
}

impl Conditions {
    /// What is done about a repair whose class has a policy, and why where that is not plain: which condition let it pass or
    /// held it back.
    pub(crate) fn decide(
        &self,
        policy: Policy,
        repair: &Repair,
        facts: Facts,
    ) -> (Option<RepairState>, String) {
        if policy == Policy::Off || *self == Conditions::default() {
            return (state_of(policy), String::new());
        }
        let key = repair.class;
        match self.held_back_by(repair, facts) {
            None => (
                state_of(policy),
                format!("[repair] {key} = {}: {}", policy.as_str(), self.told()),
            ),
            Some(reason) => {
                let otherwise = self.otherwise.unwrap_or(match policy {
                    Policy::Auto => Policy::Propose,
                    Policy::Propose | Policy::Off => Policy::Off,
                });
                (
                    state_of(otherwise),
                    format!(
                        "[repair] {key} = {}, not {}: {reason}",
                        otherwise.as_str(),
                        policy.as_str()
                    ),
                )
            }
        }
    }

    fn held_back_by(&self, repair: &Repair, facts: Facts) -> Option<String> {
        self.is_too_large(facts.money)
            .or_else(|| self.is_too_young(repair, facts.as_of))
            .or_else(|| self.is_too_weak(facts.rule))
            .or_else(|| self.goes_back(repair))
    }

    fn is_too_large(&self, money: Option<Money>) -> Option<String> {
        if self.max_amount.is_empty() {
            return None;
        }
        let Some(money) = money else {
            return Some("its amount is not known, and max_amount is set".to_owned());
        };
        match self.max_amount.get(&money.currency) {
            Some(&limit) if money.minor.unsigned_abs() <= limit.unsigned_abs() => None,
            Some(&limit) => Some(format!(
                "{money} is above max_amount {}",
                Money::new(limit, money.currency)
            )),
            None => Some(format!("max_amount names no {}", money.currency)),
        }
    }

    fn is_too_young(&self, repair: &Repair, as_of: Instant) -> Option<String> {
        let min_age = self.min_age?;
        (repair.occurred_at.plus(min_age) > as_of).then(|| {
            format!(
                "{} of {} is younger than min_age {min_age}",
                repair.operation_id, repair.occurred_at
            )
        })
    }

    /// The rules are declared strongest first.
    fn is_too_weak(&self, rule: Option<Rule>) -> Option<String> {
        let wanted = self.min_evidence?;
        match rule {
            Some(rule) if rule <= wanted => None,
            Some(rule) => Some(format!(
                "the link by {rule} is weaker than min_evidence {wanted}"
            )),
            None => Some(format!(
                "nothing shows a link as strong as min_evidence {wanted}"
            )),
        }
    }

    fn goes_back(&self, repair: &Repair) -> Option<String> {
        let from = repair.from.as_ref().filter(|_| self.only_forward)?;
        let is_forward = from.status.is_open() || from.status == repair.to.status;
        (!is_forward).then(|| {
            format!(
                "{} → {} changes a final status, and only_forward is set",
                from.status, repair.to.status
            )
        })
    }

    /// The conditions as a person wrote them.
    pub fn told(&self) -> String {
        let mut parts = Vec::new();
        if !self.max_amount.is_empty() {
            let limits: Vec<String> = self
                .max_amount
                .iter()
                .map(|(&currency, &limit)| Money::new(limit, currency).to_string())
                .collect();
            parts.push(format!("max_amount {}", limits.join(", ")));
        }
        if let Some(span) = self.min_age {
            parts.push(format!("min_age {span}"));
        }
        if let Some(rule) = self.min_evidence {
            parts.push(format!("min_evidence {rule}"));
        }
        if self.only_forward {
            parts.push("only_forward".to_owned());
        }
        parts.join("; ")
    }
}

const fn state_of(policy: Policy) -> Option<RepairState> {
    match policy {
        Policy::Auto => Some(RepairState::Applied),
        Policy::Propose => Some(RepairState::Proposed),
        Policy::Off => None,
    }
}
