//! `[notify.NAME]`: who is told of a run.
//!
//! What a channel is reached by is a secret: whoever has the address can write to it. It is read when the file is, but
//! that it cannot be read is told only where somebody needs it, by a run and by `check`.

use super::document::{Document, Table, Value};
use super::file::{Environment, secret};
use crate::exit::Failure;
use crate::notify::http::{has_password, usable};
use crate::notify::{Channel, Kind, Secret, When};

const KEYS: &[&str] = &[
    "kind", "url", "when", "max_rows", "link", "required", "secret",
];

/// More rows than this are no message.
const MAX_ROWS: i64 = 100;

pub(super) fn read(
    document: Document<'_>,
    section: Option<Value<'_>>,
    env: Environment<'_>,
) -> Result<Vec<Channel>, Failure> {
    let Some(section) = section else {
        return Ok(Vec::new());
    };
    let mut channels = Vec::new();
    for (name, value) in section.free_table()? {
        let value = value.named(format!("[notify.{name}]"));
        channels.push(channel(document, name, &value, env)?);
    }
    Ok(channels)
}

fn channel(
    document: Document<'_>,
    name: &str,
    section: &Value<'_>,
    env: Environment<'_>,
) -> Result<Channel, Failure> {
    let table = section.table(KEYS)?;
    let kind = kind(name, &table, section)?;
    let url = table.require("url", "it says where the messages go")?;
    let url = address(document, kind, &url, env)?;
    let secret_key = table.get("secret");
    if let (Some(value), Kind::Slack | Kind::Healthchecks) = (&secret_key, kind) {
        return Err(value
            .error(format!("{kind} takes no signature; its URL is the secret"))
            .remedy("take the key out"));
    }
    let secret_key = match secret_key {
        None => None,
        Some(value) if !value.is_table() => {
            return Err(value
                .error("is a secret, which does not belong into this file")
                .remedy("name where it stands, secret = { env = \"…\" }, { file = \"…\" } or { credential = \"…\" }"));
        }
        Some(value) => Some(late(secret(document, &value, env))),
    };
    if kind == Kind::Repairs {
        for key in ["when", "max_rows", "link"] {
            if let Some(value) = table.get(key) {
                return Err(value
                    .error("belongs to a channel that is told of runs")
                    .why("this one is told of every step of a repair, each in a message of its own")
                    .remedy("take the key out"));
            }
        }
    }
    let mut when = vec![When::Breaks, When::Failure, When::Recovery];
    if let Some(value) = table.get("when") {
        if kind == Kind::Healthchecks {
            return Err(value
                .error("a monitor is told of every run, else it raises an alarm")
                .remedy("take the key out"));
        }
        when.clear();
        let words = When::ALL
            .iter()
            .map(|it| (it.as_str(), *it))
            .collect::<Vec<_>>();
        for word in value.list()? {
            when.push(word.word(&words)?);
        }
        if when.is_empty() {
            return Err(value.error("names nothing that this channel is told of"));
        }
    }
    Ok(Channel {
        name: name.to_owned(),
        kind,
        url,
        when,
        max_rows: match table.get("max_rows") {
            Some(value) => usize::try_from(value.whole(0, MAX_ROWS)?).unwrap_or(0),
            None => 10,
        },
        link: match table.get("link") {
            Some(value) => value.some_text()?.to_owned(),
            None => String::new(),
        },
        is_required: match table.get("required") {
            Some(value) => value.boolean()?,
            None => false,
        },
        secret: secret_key,
    })
}

/// The kind, or the name where that is one.
fn kind(name: &str, table: &Table<'_>, section: &Value<'_>) -> Result<Kind, Failure> {
    let words: Vec<(&str, Kind)> = Kind::ALL.iter().map(|it| (it.as_str(), *it)).collect();
    match table.get("kind") {
        Some(value) => value.word(&words),
        None => Kind::from_word(name).ok_or_else(|| {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            section
                .error("\"kind\" is missing")
                .why("it says what the channel speaks; a section of that name needs none")
                .remedy(format!("write kind = one of {}", known.join(", ")))
        }),
    }
}

/// The URL of a channel. Only that of a webhook may stand in the file, and only without a password.
fn address(
    document: Document<'_>,
    kind: Kind,
    value: &Value<'_>,
    env: Environment<'_>,
) -> Result<Result<Secret, String>, Failure> {
    if value.is_table() {
        let read = secret(document, value, env).and_then(|url| {
            usable(&url).map_err(|why| value.error(format!("the URL that it names {why}")))?;
            Ok(url)
        });
        return Ok(late(read));
    }
    if !matches!(kind, Kind::Webhook | Kind::Repairs) {
        return Err(value
            .error("is a secret, which does not belong into this file")
            .remedy("name where it stands, url = { env = \"…\" }, { file = \"…\" } or { credential = \"…\" }"));
    }
    let url = value.some_text()?;
    if has_password(url) {
        return Err(value
            .error("holds a password, which does not belong into this file")
            .remedy("name where the URL stands, url = { env = \"…\" }"));
    }
    usable(url).map_err(|why| value.error(why))?;
    Ok(Ok(Secret::new(url.to_owned())))
}

/// A failure is kept until somebody needs the secret; its first line names no secret.
fn late(read: Result<String, Failure>) -> Result<Secret, String> {
    read.map(Secret::new).map_err(|failure| failure.what)
}
