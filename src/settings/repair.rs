//! `[repair]` as it may be written.

use std::collections::BTreeMap;

use super::RepairSettings;
use super::document::Value;
use super::file::{currency, major, not_built};
use crate::exit::Failure;
use crate::model::breaks::{BreakClass, Policy};
use crate::model::verdict::Rule;
use crate::reconcile::policy::Conditions;

/// What stands beside the classes.
const OTHER_KEYS: [&str; 3] = ["link", "redrive", "four_eyes"];

/// What a class may be told beside its policy.
const CONDITIONS: [&str; 6] = [
    "policy",
    "max_amount",
    "min_age",
    "min_evidence",
    "only_forward",
    "otherwise",
];

const CHOICES: [(&str, Policy); 3] = [
    (Policy::Auto.as_str(), Policy::Auto),
    (Policy::Propose.as_str(), Policy::Propose),
    (Policy::Off.as_str(), Policy::Off),
];

/// Reads the section.
pub(super) fn read(section: Option<Value<'_>>) -> Result<RepairSettings, Failure> {
    let mut settings = RepairSettings::default();
    let Some(section) = section else {
        return Ok(settings);
    };
    let mut known: Vec<&str> = BreakClass::ALL.iter().map(|class| class.as_str()).collect();
    known.extend(OTHER_KEYS);
    for (name, value) in section.table(&known)?.entries() {
        match (BreakClass::from_word(name), name) {
            (Some(class), _) => {
                let Some(default) = class.entry().default_policy else {
                    return Err(not_repairable(&value));
                };
                class_rule(class, default, &value, &mut settings)?;
            }
            (None, "link") => settings.link = value.word(&CHOICES)?,
            (None, "four_eyes") => settings.four_eyes = value.flag()?,
            (None, _) => return Err(not_built(&value, "proposals to send again")),
        }
    }
    Ok(settings)
}

fn not_repairable(value: &Value<'_>) -> Failure {
    let repairable: Vec<&str> = BreakClass::ALL
        .iter()
        .filter(|class| class.entry().default_policy.is_some())
        .map(|class| class.as_str())
        .collect();
    value
        .error("this class has no repair; a person always decides")
        .remedy(format!(
            "a policy can be set for {} and link",
            repairable.join(", ")
        ))
}

/// `status_behind = "auto"`, or a table with conditions.
fn class_rule(
    class: BreakClass,
    default: Policy,
    value: &Value<'_>,
    settings: &mut RepairSettings,
) -> Result<(), Failure> {
    if !value.is_table() {
        settings.policies.insert(class, value.word(&CHOICES)?);
        return Ok(());
    }
    let table = value.table(&CONDITIONS)?;
    let policy = match table.get("policy") {
        Some(policy) => policy.word(&CHOICES)?,
        None => default,
    };
    let mut max_amount = BTreeMap::new();
    if let Some(value) = table.get("max_amount") {
        for (code, amount) in value.free_table()? {
            let currency = currency(&amount, code)?;
            max_amount.insert(currency, major(&amount, currency)?);
        }
        if max_amount.is_empty() {
            return Err(value.error("names no currency"));
        }
    }
    let rules: Vec<(&str, Rule)> = Rule::ALL
        .iter()
        .map(|rule| (rule.as_str(), *rule))
        .collect();
    let conditions = Conditions {
        max_amount,
        min_age: table.get("min_age").map(|it| it.span()).transpose()?,
        min_evidence: table
            .get("min_evidence")
            .map(|it| it.word(&rules))
            .transpose()?,
        only_forward: table
            .get("only_forward")
            .map(|it| it.flag())
            .transpose()?
            .unwrap_or(false),
        otherwise: table
            .get("otherwise")
            .map(|it| it.word(&CHOICES))
            .transpose()?,
    };
    if let Some(otherwise) = conditions.otherwise {
        let value = table
            .get("otherwise")
            .unwrap_or_else(|| unreachable!("it was just read"));
        if rank(otherwise) >= rank(policy) {
            return Err(value
                .error(format!(
                    "{:?} is not less than policy {:?}",
                    otherwise.as_str(),
                    policy.as_str()
                ))
                .why("it is what is done where a condition does not hold")
                .remedy("write \"propose\" or \"off\" beside policy = \"auto\", \"off\" beside \"propose\""));
        }
        if conditions.told().is_empty() {
            return Err(value
                .error("stands beside no condition")
                .remedy("add max_amount, min_age, min_evidence or only_forward, or take it out"));
        }
    }
    if policy == Policy::Off && !conditions.told().is_empty() {
        return Err(value
            .error("has conditions, and policy = \"off\" never asks them")
            .remedy("write \"auto\" or \"propose\", or take the conditions out"));
    }
    if class == BreakClass::MissingLocal
        && conditions
            .min_evidence
            .is_some_and(|rule| rule < Rule::Parent)
    {
        let value = table
            .get("min_evidence")
            .unwrap_or_else(|| unreachable!("it was just read"));
        return Err(value
            .error("no record could ever be written: what is missing locally is known by its parent alone")
            .remedy("write \"parent\", or take it out"));
    }
    settings.policies.insert(class, policy);
    if conditions != Conditions::default() {
        settings.conditions.insert(class, conditions);
    }
    Ok(())
}

const fn rank(policy: Policy) -> u8 {
    match policy {
        Policy::Off => 0,
        Policy::Propose => 1,
        Policy::Auto => 2,
    }
}
