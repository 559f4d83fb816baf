//! `[intents]` as it may be written.

use std::collections::BTreeMap;

use super::document::{Document, Table, Value};
use super::file::{Environment, at_value, password_in_file, referenced, zone};
use super::{AmountUnit, IntentsKind, IntentsSettings, Rounding};
use crate::database::DatabaseUrl;
use crate::exit::Failure;
use crate::intents::amount::IntentsRules;
use crate::intents::sql::spec::{Origin, Role, Rows, Scope, Spec, TimeUnit};
use crate::model::intent::{IntentKind, IntentStatus};
use crate::money::Currency;
use crate::reconcile::rules::PerKind;
use crate::time::Span;

const KEYS: &[&str] = &[
    "kind",
    "grace",
    "open_after",
    "kinds",
    "confirm_within",
    "retry_for",
    "name",
    "amount_unit",
    "rounding",
    "source",
];

/// What may stand beside [`KEYS`] where intents are read from a file.
const CSV_ONLY_KEYS: &[&str] = &["file"];

/// What may stand beside [`KEYS`] where intents are read from a table of the company's own.
const SQL_ONLY_KEYS: &[&str] = &[
    "url",
    "table",
    "query",
    "columns",
    "changed_column",
    "xid_column",
    "scope",
    "time_zone",
    "time_unit",
    "statement_timeout",
    "max_txn",
];

/// Reads the section.
pub(super) fn read(
    document: Document<'_>,
    section: &Value<'_>,
    env: Environment<'_>,
) -> Result<IntentsSettings, Failure> {
    let every: Vec<&str> = [KEYS, CSV_ONLY_KEYS, SQL_ONLY_KEYS].concat();
    let any = section.table(&every)?;
    let kind = any
        .require("kind", "it says where our own rows are")?
        .word(&[
            ("csv", IntentsKind::Csv),
            ("store", IntentsKind::Store),
            ("sql", IntentsKind::Sql),
        ])?;
    let known = match kind {
        IntentsKind::Sql => [KEYS, SQL_ONLY_KEYS].concat(),
        IntentsKind::Csv | IntentsKind::Store => [KEYS, CSV_ONLY_KEYS].concat(),
    };
    let table = section.table(&known)?;
    let file = match (kind, table.get("file")) {
        (IntentsKind::Csv, _) => {
            let file = table.require("file", "intents of kind \"csv\" are read from a file")?;
            Some(document.resolve(file.some_text()?))
        }
        (IntentsKind::Store, Some(file)) => {
            return Err(file
                .error("intents of kind \"store\" have no file")
                .remedy("use kind = \"csv\", or load the file with `paysweep intents import`"));
        }
        (IntentsKind::Store | IntentsKind::Sql, _) => None,
    };
    let text = |key: &str, default: &str| -> Result<String, Failure> {
        match table.get(key) {
            Some(value) => Ok(value.some_text()?.to_owned()),
            None => Ok(default.to_owned()),
        }
    };
    let grace = per_kind(table.get("grace"), PerKind::all(Span::hours(1)))?;
    let rounding = match table.get("rounding") {
        Some(value) => value.word(&[("exact", Rounding::Exact), ("half_up", Rounding::HalfUp)])?,
        None => Rounding::default(),
    };
    let unit = table
        .get("amount_unit")
        .map(|value| amount_unit(&value))
        .transpose()?;
    let source = text("source", "")?;
    let sql = match kind {
        IntentsKind::Sql => Some(sql(document, &table, unit, rounding, &source, env)?),
        IntentsKind::Csv | IntentsKind::Store => None,
    };
    Ok(IntentsSettings {
        kind,
        file,
        amount_unit: sql
            .as_ref()
            .map_or(unit.unwrap_or_default(), |sql| sql.rules.amount_unit),
        sql,
        name: text("name", "intents")?,
        source,
        grace,
        open_after: per_kind(table.get("open_after"), grace)?,
        kinds: kinds(table.get("kinds"))?,
        confirm_within: table
            .get("confirm_within")
            .map(|value| value.span())
            .transpose()?,
        rounding,
        retry_for: table
            .get("retry_for")
            .map(|value| value.span())
            .transpose()?,
    })
}

fn amount_unit(value: &Value<'_>) -> Result<AmountUnit, Failure> {
    value.word(&[("minor", AmountUnit::Minor), ("major", AmountUnit::Major)])
}

/// The default of `statement_timeout`: a window takes seconds, and a night is long.
const STATEMENT_TIMEOUT: Span = Span(60_000_000);
/// The default of `max_txn`: three times what a careful application allows itself.
const MAX_TXN: Span = Span(180_000_000);

/// A table of the company's own.
fn sql(
    document: Document<'_>,
    table: &Table<'_>,
    unit: Option<AmountUnit>,
    rounding: Rounding,
    owner: &str,
    env: Environment<'_>,
) -> Result<Spec, Failure> {
    let url_value = table.require("url", "intents of kind \"sql\" are read from a database")?;
    let url = DatabaseUrl::parse(&referenced(document, &url_value, env)?, &|path| {
        document.resolve(path)
    })
    .map_err(|problem| at_value(&url_value, problem))?;
    if url.has_password() && !url_value.is_table() {
        return Err(password_in_file(&url_value));
    }
    if matches!(&url, DatabaseUrl::Postgres(address) if address.has_schema()) {
        return Err(url_value
            .error("a schema belongs to the table, not to the URL")
            .remedy("write table = \"schema.table\""));
    }
    let rows = match (table.get("table"), table.get("query")) {
        (Some(name), None) => rows(&name)?,
        (None, Some(query)) => Rows::Query(query.some_text()?.to_owned()),
        (Some(_), Some(query)) => {
            return Err(query
                .error("table and query are both set")
                .remedy("take one of them out"));
        }
        (None, None) => {
            return Err(url_value
                .error("neither table nor query says which rows are read")
                .remedy("add table = \"payments\""));
        }
    };
    let columns = table.require("columns", "it says which column is what")?;
    let (roles, column_unit) = roles(&columns)?;
    if let (Some(_), Some(value)) = (unit, table.get("amount_unit"))
        && column_unit.is_some()
    {
        return Err(value.error("is set beside the unit of the column; take one of them out"));
    }
    let span = |key: &str, default: Span, min: Span| -> Result<Span, Failure> {
        let Some(value) = table.get(key) else {
            return Ok(default);
        };
        let span = value.span()?;
        if span < min {
            return Err(value
                .error(format!("{span} is too short"))
                .remedy(format!("write at least {min}")));
        }
        Ok(span)
    };
    let second = Span(1_000_000);
    Ok(Spec {
        url,
        rows,
        roles,
        changed_column: optional_name(table.get("changed_column"))?,
        xid_column: optional_name(table.get("xid_column"))?,
        scope: table.get("scope").map(|value| scope(&value)).transpose()?,
        time_zone: table
            .get("time_zone")
            .map(|value| zone(&value))
            .transpose()?,
        time_unit: match table.get("time_unit") {
            Some(value) => Some(value.word(&[
                ("s", TimeUnit::Seconds),
                ("ms", TimeUnit::Millis),
                ("us", TimeUnit::Micros),
            ])?),
            None => None,
        },
        statement_timeout: span("statement_timeout", STATEMENT_TIMEOUT, second)?,
        owner: owner.to_owned(),
        max_txn: span("max_txn", MAX_TXN, Span::ZERO)?,
        rules: IntentsRules {
            amount_unit: column_unit.or(unit).unwrap_or_default(),
            rounding,
        },
    })
}

fn optional_name(value: Option<Value<'_>>) -> Result<Option<String>, Failure> {
    value
        .map(|value| value.some_text().map(str::to_owned))
        .transpose()
}

/// `"payments"`, `"app.payments"`, or the parts in a list where a name has a dot in it.
fn rows(value: &Value<'_>) -> Result<Rows, Failure> {
    let (schema, name) = if value.is_list() {
        let parts = value.list()?;
        match parts.as_slice() {
            [name] => (String::new(), name.some_text()?.to_owned()),
            [schema, name] => (schema.some_text()?.to_owned(), name.some_text()?.to_owned()),
            _ => return Err(value.error("names a table, or a schema and a table")),
        }
    } else {
        let text = value.some_text()?;
        let (schema, name) = text.rsplit_once('.').unwrap_or(("", text));
        (schema.to_owned(), name.to_owned())
    };
    Ok(Rows::Table { schema, name })
}

fn scope(value: &Value<'_>) -> Result<Scope, Failure> {
    let table = value.table(&["column", "value"])?;
    let part = |key: &str| -> Result<String, Failure> {
        let value = table.require(key, "a scope is a column and the value of our rows")?;
        Ok(value.some_text()?.to_owned())
    };
    Ok(Scope {
        column: part("column")?,
        value: part("value")?,
    })
}

type Roles = BTreeMap<Role, Origin>;

fn roles(section: &Value<'_>) -> Result<(Roles, Option<AmountUnit>), Failure> {
    let words: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
    let table = section.table(&words)?;
    let mut roles = BTreeMap::new();
    let mut unit = None;
    for (word, value) in table.entries() {
        let Some(role) = Role::from_word(word) else {
            continue;
        };
        if !value.is_table() {
            let column = value.some_text()?.to_owned();
            let map = BTreeMap::new();
            roles.insert(role, Origin::Column { name: column, map });
            continue;
        }
        let mut keys = vec!["column"];
        if role.may_be_fixed() {
            keys.push("value");
        }
        if role.may_be_mapped() {
            keys.push("map");
        }
        if role == Role::Amount {
            keys.push("unit");
        }
        let inner = value.table(&keys)?;
        let origin = match (inner.get("column"), inner.get("value"), inner.get("map")) {
            (Some(column), None, map) => Origin::Column {
                name: column.some_text()?.to_owned(),
                map: map
                    .map(|map| word_map(role, &map))
                    .transpose()?
                    .unwrap_or_default(),
            },
            (None, Some(fixed), None) => {
                let word = fixed.some_text()?;
                known_word(role, &fixed, word)?;
                Origin::Fixed(word.to_owned())
            }
            _ => {
                return Err(value
                    .error("has to be a column, with a map or without, or a value for every row"));
            }
        };
        roles.insert(role, origin);
        if let Some(value) = inner.get("unit") {
            unit = Some(amount_unit(&value)?);
        }
    }
    for role in Role::REQUIRED {
        if !roles.contains_key(&role) {
            return Err(section.error(format!("{role} is missing")).remedy(format!(
                "name the column: {role} = \"…\"{}",
                if role.may_be_fixed() {
                    ", or one value for every row: { value = \"…\" }"
                } else {
                    ""
                }
            )));
        }
    }
    Ok((roles, unit))
}

/// The company's word → ours. A word of ours that does not exist is a slip, and told at once.
fn word_map(role: Role, value: &Value<'_>) -> Result<BTreeMap<String, String>, Failure> {
    let mut map = BTreeMap::new();
    for (theirs, ours) in value.free_table()? {
        let word = ours.some_text()?;
        known_word(role, &ours, word)?;
        map.insert(theirs.to_owned(), word.to_owned());
    }
    Ok(map)
}

fn known_word(role: Role, value: &Value<'_>, word: &str) -> Result<(), Failure> {
    let known: Vec<&str> = match role {
        Role::Kind => IntentKind::ALL.iter().map(|kind| kind.as_str()).collect(),
        Role::Status => IntentStatus::ALL.iter().map(|it| it.as_str()).collect(),
        Role::Currency if Currency::parse(word).and_then(Currency::exponent).is_some() => {
            return Ok(());
        }
        Role::Currency => {
            return Err(value
                .error(format!("{word:?} is no currency"))
                .remedy("write an ISO 4217 code in upper case: EUR"));
        }
        _ => return Ok(()),
    };
    if known.contains(&word) {
        return Ok(());
    }
    Err(value
        .error(format!("{word:?} is no {role} of an intent"))
        .remedy(format!("known are {}", known.join(", "))))
}

/// One span for all, or a table by kind in which `default` stands for the rest.
fn per_kind(value: Option<Value<'_>>, otherwise: PerKind<Span>) -> Result<PerKind<Span>, Failure> {
    let Some(value) = value else {
        return Ok(otherwise);
    };
    if !value.is_table() {
        return Ok(PerKind::all(value.span()?));
    }
    let table = value.table(&["default", "charge", "refund", "payout", "dispute"])?;
    let rest = match table.get("default") {
        Some(value) => PerKind::all(value.span()?),
        None => otherwise,
    };
    let span = |kind: IntentKind| match table.get(kind.as_str()) {
        Some(value) => value.span(),
        None => Ok(rest.of(kind)),
    };
    Ok(PerKind {
        charge: span(IntentKind::Charge)?,
        refund: span(IntentKind::Refund)?,
        payout: span(IntentKind::Payout)?,
        dispute: span(IntentKind::Dispute)?,
    })
}

fn kinds(value: Option<Value<'_>>) -> Result<Vec<IntentKind>, Failure> {
    let Some(value) = value else {
        return Ok(IntentKind::ALL.to_vec());
    };
    let words: Vec<(&str, IntentKind)> = IntentKind::ALL
        .iter()
        .map(|kind| (kind.as_str(), *kind))
        .collect();
    let mut kinds = Vec::new();
    for item in value.list()? {
        kinds.push(item.word(&words)?);
    }
    kinds.sort_unstable();
    kinds.dedup();
    if kinds.is_empty() {
        return Err(value.error("names no kind: this side would record nothing"));
    }
    Ok(kinds)
}
