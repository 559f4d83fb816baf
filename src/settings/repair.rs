//! `[repair]` as it may be written.

use std::collections::BTreeMap;

use super::RepairSettings;
use super::document::{Document, Table, Value};
use super::file::{Environment, at_value, currency, major, password_in_file, referenced};
use crate::database::DatabaseUrl;
use crate::exit::Failure;
use crate::intents::sql::row_writer::{ApplySpec, words_of};
use crate::intents::sql::spec::{Origin, Role, Spec};
use crate::intents::sql::template::{Parameter, Template};
use crate::model::breaks::{BreakClass, Policy};
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::RepairAction;
use crate::model::verdict::Rule;
use crate::reconcile::policy::Conditions;

/// What stands beside the classes.
const OTHER_KEYS: [&str; 4] = ["link", "redrive", "four_eyes", "apply"];

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
pub(super) fn read(
    document: Document<'_>,
    section: Option<Value<'_>>,
    table: Option<&Spec>,
    env: Environment<'_>,
) -> Result<RepairSettings, Failure> {
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
            (None, "apply") => {
                let value = value.named("[repair.apply]");
                settings.apply = Some(apply(document, &value, table, env)?);
            }
            (None, _) => {
                settings.may_redrive = match value.word(&CHOICES)? {
                    Policy::Off => false,
                    Policy::Propose => true,
                    Policy::Auto => {
                        return Err(value
                            .error("nothing is ever sent again from here")
                            .why("paysweep neither holds nor builds a request; it can only tell your software that it may")
                            .remedy("write \"propose\", or leave it out"));
                    }
                };
            }
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

// ---- [repair.apply]

/// What stands beside a statement for each action.
const APPLY_KEYS: [&str; 4] = ["url", "recorded", "words", "kinds"];

/// How repairs are written into the company's own table.
fn apply(
    document: Document<'_>,
    section: &Value<'_>,
    spec: Option<&Spec>,
    env: Environment<'_>,
) -> Result<ApplySpec, Failure> {
    let Some(spec) = spec else {
        return Err(section
            .error("there is no table to write to")
            .remedy("it belongs to [intents] kind = \"sql\""));
    };
    let written: Vec<RepairAction> = RepairAction::ALL
        .iter()
        .copied()
        // Nothing is written to send something again.
        .filter(|action| *action != RepairAction::Redrive)
        .collect();
    let mut known: Vec<&str> = written.iter().map(|it| it.as_str()).collect();
    known.extend(APPLY_KEYS);
    let table = section.table(&known)?;
    let url = match table.get("url") {
        None => spec.url.clone(),
        Some(value) => write_url(document, &value, env)?,
    };
    let recorded = table
        .get("recorded")
        .map(|value| recorded(&value))
        .transpose()?;
    let mut statements = BTreeMap::new();
    for action in written {
        if let Some(value) = table.get(action.as_str()) {
            let template = statement(action, &value, recorded.is_some())?;
            statements.insert(action, template);
        }
    }
    if statements.is_empty() {
        return Err(section
            .error("has a statement for no action")
            .remedy("add set_status = \"update … where … = :intent_id and … = :from_status\""));
    }
    let words = words_of(
        spec.roles.get(&Role::Status),
        IntentStatus::ALL,
        IntentStatus::as_str,
        &said(&table, "words", IntentStatus::from_word, spec, Role::Status)?,
    );
    let kinds = words_of(
        spec.roles.get(&Role::Kind),
        IntentKind::ALL,
        IntentKind::as_str,
        &said(&table, "kinds", IntentKind::from_word, spec, Role::Kind)?,
    );
    let is_written = |template: &Template| template.asks_for(Parameter::ToStatus);
    if statements.values().any(is_written) {
        for status in [
            IntentStatus::Succeeded,
            IntentStatus::Failed,
            IntentStatus::Canceled,
            IntentStatus::Expired,
        ] {
            if !words.contains_key(&status) {
                return Err(section
                    .error(format!("several words of the table mean {status}, or one of ours means something else there"))
                    .remedy(format!(
                        "say which one is written: words = {{ {status} = \"…\" }} under [repair.apply]"
                    )));
            }
        }
    }
    Ok(ApplySpec {
        url,
        statements,
        recorded,
        words,
        kinds,
    })
}

fn write_url(
    document: Document<'_>,
    value: &Value<'_>,
    env: Environment<'_>,
) -> Result<DatabaseUrl, Failure> {
    let url = DatabaseUrl::parse(&referenced(document, value, env)?, &|path| {
        document.resolve(path)
    })
    .map_err(|problem| at_value(value, problem))?;
    if url.has_password() && !value.is_table() {
        return Err(password_in_file(value));
    }
    Ok(url)
}

fn template(value: &Value<'_>) -> Result<Template, Failure> {
    Template::parse(value.some_text()?).map_err(|problem| {
        let failure = value.error(problem.what);
        let failure = if problem.why.is_empty() {
            failure
        } else {
            failure.why(problem.why)
        };
        failure.remedy(problem.remedy)
    })
}

/// A question that gives a row where a repair was recorded.
fn recorded(value: &Value<'_>) -> Result<Template, Failure> {
    let template = template(value)?;
    if !template.asks_for(Parameter::RepairId) || template.verb() != "select" {
        return Err(value
            .error("does not ask for the record of one repair")
            .remedy("write \"select 1 from … where … = :repair_id\""));
    }
    Ok(template)
}

/// A statement that can be written twice by mistake is refused at the door.
fn statement(
    action: RepairAction,
    value: &Value<'_>,
    has_record: bool,
) -> Result<Template, Failure> {
    let template = template(value)?;
    let wanted: &[Parameter] = match action {
        RepairAction::SetStatus => &[Parameter::IntentId, Parameter::FromStatus],
        RepairAction::Link => &[Parameter::IntentId, Parameter::ProcessorRef],
        RepairAction::RecordRefund | RepairAction::RecordDispute => {
            if !has_record {
                return Err(value
                    .error("a new row has nothing to be compared with, so a second try could write it twice")
                    .why("after a lost answer nobody knows whether the first try took hold")
                    .remedy("keep :repair_id in the row, and add recorded = \"select 1 from … where … = :repair_id\""));
            }
            &[Parameter::RepairId]
        }
        RepairAction::Redrive => unreachable!("it has no statement"),
    };
    for parameter in wanted {
        if !template.asks_for(*parameter) {
            return Err(value.error(format!("does not ask for :{parameter}")).why(
                match parameter {
                    Parameter::FromStatus => {
                        "without it a row that changed meanwhile would be overwritten"
                    }
                    Parameter::RepairId => {
                        "without it nobody could tell whether it was written before"
                    }
                    _ => "without it the statement does not know its row",
                },
            ));
        }
    }
    Ok(template)
}

/// Ours → the word that is written, as it was said. It has to be read back as ours.
fn said<T: Copy + Ord>(
    table: &Table<'_>,
    key: &str,
    from_word: impl Fn(&str) -> Option<T>,
    spec: &Spec,
    role: Role,
) -> Result<BTreeMap<T, String>, Failure> {
    let mut words = BTreeMap::new();
    let Some(section) = table.get(key) else {
        return Ok(words);
    };
    for (ours, value) in section.free_table()? {
        let parsed = from_word(ours)
            .ok_or_else(|| value.error(format!("{ours:?} is no {role} of an intent")))?;
        let theirs = value.some_text()?;
        let read_as = match spec.roles.get(&role) {
            Some(Origin::Column { map, .. }) => map.get(theirs).map_or(theirs, String::as_str),
            _ => theirs,
        };
        if read_as != ours {
            return Err(value
                .error(format!(
                    "{theirs:?} would be read as {read_as:?}, not as {ours:?}"
                ))
                .remedy(format!(
                    "map it under [intents.columns] {role}, or write another word"
                )));
        }
        words.insert(parsed, theirs.to_owned());
    }
    Ok(words)
}
