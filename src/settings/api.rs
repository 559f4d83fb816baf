//! What a section `[source.NAME]` of kind `api` says about asking.

use std::num::NonZeroU32;

use super::document::{Document, Table, Value};
use super::file::{Environment, secret};
use crate::exit::Failure;
use crate::source::api::Access;
use crate::source::http::{Base, Secret};
use crate::time::Span;

/// Keys under which a secret may be referred to.
const SECRET_KEYS: [&str; 5] = ["api_key", "user", "password", "client_id", "client_secret"];

/// What an `api` source may hold beside what every source may.
pub(super) const KEYS: &[&str] = &[
    "api_key",
    "user",
    "password",
    "client_id",
    "client_secret",
    "base_url",
    "rate_limit",
    "page_size",
    "concurrency",
    "patience",
    "first_report",
    "max_window",
    "events",
];

/// What only a source of files may hold.
pub(super) const FILE_KEYS: &[&str] = &["files", "generic", "tolerate_bad_rows", "date_order"];

/// Reads them.
pub(super) fn access(
    document: Document<'_>,
    table: &Table<'_>,
    env: Environment<'_>,
) -> Result<Access, Failure> {
    let mut access = Access::default();
    for key in SECRET_KEYS {
        if let Some(value) = table.get(key) {
            let text = referenced_only(document, &value, env)?;
            access.secrets.insert(key.to_owned(), Secret::new(text));
        }
    }
    if let Some(value) = table.get("base_url") {
        let base = Base::parse(value.some_text()?).map_err(|what| value.error(what))?;
        access.base = Some(base);
    }
    // More than any processor answers, and pages larger than any has.
    let whole = |key: &str, max: i64| -> Result<Option<u64>, Failure> {
        let value = table
            .get(key)
            .map(|value| value.whole(1, max))
            .transpose()?;
        Ok(value.map(i64::unsigned_abs))
    };
    access.rate_limit = whole("rate_limit", 1000)?
        .and_then(|rate| u32::try_from(rate).ok())
        .and_then(NonZeroU32::new);
    access.first_report = whole("first_report", i64::MAX)?;
    access.page_size = whole("page_size", 10_000)?;
    access.concurrency = whole("concurrency", 32)?.and_then(|most| usize::try_from(most).ok());
    access.max_window = table
        .get("max_window")
        .map(|value| value.span())
        .transpose()?;
    if let Some(value) = table
        .get("max_window")
        .filter(|_| access.max_window <= Some(Span::ZERO))
    {
        return Err(value.error("has to be longer than nothing"));
    }
    access.events = match table.get("events") {
        Some(value) => value.boolean()?,
        None => false,
    };
    access.patience = table
        .get("patience")
        .map(|value| value.span())
        .transpose()?;
    Ok(access)
}

/// A secret that is referred to. One that stands in the file is refused, and not shown.
fn referenced_only(
    document: Document<'_>,
    value: &Value<'_>,
    env: Environment<'_>,
) -> Result<String, Failure> {
    if !value.is_table() {
        return Err(value
            .error("holds a secret, which does not belong into this file")
            .remedy("name where it stands: { env = \"…\" }, { file = \"…\" } or { credential = \"…\" }; and replace the secret, since it stood in a file"));
    }
    let text = secret(document, value, env)?;
    match text.trim() {
        "" => Err(value.error("leads to an empty secret")),
        text => Ok(text.to_owned()),
    }
}
