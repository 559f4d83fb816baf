//! The profile `generic`: a CSV format told in a few words, on the command line or in the configuration, instead of in a
//! file of its own.
//!
//! Decisions: the words become the text of a profile, so that they mean exactly what a profile means and cannot do more.
//! What decides about money or time has no default: unit, decimal sign, date order, zone and the sign of a fee are asked
//! for.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::nearest::nearest;
use super::profile::Profile;
use crate::exit::Failure;

/// The name under which the profile is asked for.
pub const NAME: &str = "generic";

/// What may be said about a format: each word with its meaning.
type Words = &'static [(&'static str, &'static str)];

/// What a column may be.
const COLUMNS: Words = &[
    (
        "operation_id",
        "the processor's id of the row; without it: all columns that are named here",
    ),
    ("kind", "the word that says what the row is; required"),
    (
        "status",
        "the word that says what became of it; without it: what is listed has happened",
    ),
    (
        "amount",
        "the amount, positive when our balance at the processor grows",
    ),
    ("credit", "instead of amount: what our balance grows by"),
    ("debit", "instead of amount: what it shrinks by"),
    ("currency", "the ISO 4217 code"),
    ("fee", "the fee of the row"),
    ("net", "amount - fee"),
    ("occurred_at", "when it happened; required"),
    (
        "time",
        "the time of day, where occurred_at holds only the day",
    ),
    ("reference", "our own key"),
    (
        "parent_id",
        "the payment that a refund or dispute belongs to",
    ),
    ("object_id", "the payment that several rows share"),
    ("payout_id", "the payout it is part of"),
    ("account", "the account it belongs to"),
    ("description", "free text"),
];

/// What may be said about the form of the file.
const LAYOUT: Words = &[
    ("unit", "major (10.00) or minor (1000); required"),
    (
        "decimal",
        "the decimal sign, \".\" or \",\"; required where unit is major",
    ),
    ("group", "the sign between thousands; default: none"),
    (
        "currency",
        "the code of all rows, where no column holds one",
    ),
    (
        "currency_sign",
        "a sign that stands in the amounts; default: none",
    ),
    (
        "minus",
        "brackets or trailing, where a minus stands so; default: only in front",
    ),
    (
        "fee_sign",
        "cost_positive or cost_negative; required where there is a fee",
    ),
    (
        "time_format",
        "rfc3339, or strftime words such as %d/%m/%Y %H:%M; required",
    ),
    (
        "zone",
        "the zone of the times; required where they hold no offset",
    ),
    ("delimiter", "default: \",\""),
    (
        "encoding",
        "default: UTF-8, or what the byte-order mark says",
    ),
    (
        "first_column",
        "name of the first column, where lines stand before the header",
    ),
    (
        "row_width",
        "exact (default), allow_short, allow_long or allow_trailing_empty",
    ),
];

/// A format as it was told: word by word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GenericRules {
    /// Field of an operation to the column of the file.
    pub columns: BTreeMap<String, String>,
    /// Facts about the form of the file.
    pub layout: BTreeMap<String, String>,
    /// Words of the kind column to a kind of the contract, or to `kind:status`. Empty: the contract's own words.
    pub kinds: BTreeMap<String, String>,
    /// Words of the status column to a status of the contract. Empty: the contract's own words.
    pub statuses: BTreeMap<String, String>,
}

/// Which of the four lists a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// `--column`
    Column,
    /// `--layout`
    Layout,
    /// `--kind`
    Kind,
    /// `--status`
    Status,
}

impl Part {
    /// All, with the names that the command line and the configuration have for them.
    pub const ALL: &'static [(Part, &'static str, &'static str)] = &[
        (Part::Column, "column", "columns"),
        (Part::Layout, "layout", "layout"),
        (Part::Kind, "kind", "kinds"),
        (Part::Status, "status", "statuses"),
    ];
}

impl GenericRules {
    /// Enters one word. Rejects a key that means nothing, and a key that is there already.
    pub fn enter(&mut self, part: Part, key: &str, value: &str) -> Result<(), Failure> {
        let known = match part {
            Part::Column => COLUMNS,
            Part::Layout => LAYOUT,
            Part::Kind | Part::Status => &[],
        };
        let names = || known.iter().map(|(name, _)| *name);
        if !known.is_empty() && !names().any(|name| name == key) {
            let failure =
                Failure::rejected(format!("the profile generic knows no \"{key}\" here")).why(
                    format!("known are {}", names().collect::<Vec<_>>().join(", ")),
                );
            return Err(match nearest(key, names()) {
                Some(meant) => failure.remedy(format!("did you mean \"{meant}\"?")),
                None => failure.remedy("`paysweep profiles show generic` says what each means"),
            });
        }
        let list = match part {
            Part::Column => &mut self.columns,
            Part::Layout => &mut self.layout,
            Part::Kind => &mut self.kinds,
            Part::Status => &mut self.statuses,
        };
        if list.insert(key.to_owned(), value.to_owned()).is_some() {
            return Err(Failure::rejected(format!(
                "the profile generic is told twice what \"{key}\" is"
            ))
            .why("which of the two is meant is not for paysweep to guess")
            .remedy("leave one of the two out"));
        }
        Ok(())
    }

    /// Whether nothing was told.
    pub fn is_empty(&self) -> bool {
        self == &GenericRules::default()
    }

    /// The profile that was told. Rejects what is left open.
    pub fn profile(&self) -> Result<Profile, Failure> {
        Profile::parse(NAME, &self.toml()?)
    }

    fn column(&self, field: &str) -> Result<String, Failure> {
        self.columns.get(field).map(|name| quoted(name)).ok_or_else(|| {
            left_open(
                &format!("which column is {field}"),
                &meaning(COLUMNS, field),
                &format!("--column \"{field}=NAME OF THE COLUMN\", or in [source.NAME]: generic.columns"),
            )
        })
    }

    fn layout(&self, key: &str) -> Result<String, Failure> {
        self.layout
            .get(key)
            .map(|value| quoted(value))
            .ok_or_else(|| {
                left_open(
                    &format!("the {key}"),
                    &meaning(LAYOUT, key),
                    &format!("--layout \"{key}=…\", or in [source.NAME]: generic.layout"),
                )
            })
    }

    /// The text of the profile.
    fn toml(&self) -> Result<String, Failure> {
        let mut text =
            format!("[profile]\nname = \"{NAME}\"\nversion = 1\nkind = \"csv\"\n\n[csv]\n");
        for key in ["delimiter", "encoding", "row_width"] {
            if let Some(value) = self.layout.get(key) {
                let _ = writeln!(text, "{key} = {}", quoted(value));
            }
        }
        if let Some(first) = self.layout.get("first_column") {
            let first = quoted(first);
            let _ = writeln!(
                text,
                "header_match = {{ first_cell = {first}, within_lines = 50 }}"
            );
        }
        text.push_str("\n[records.default]\n");
        match self.columns.get("operation_id") {
            Some(column) => {
                let _ = writeln!(text, "operation_id = [{}]", quoted(column));
            }
            None => {
                let columns: Vec<String> = self.columns.values().map(|name| quoted(name)).collect();
                let _ = writeln!(
                    text,
                    "operation_id = \"synthetic\"\nidentity = [{}]",
                    columns.join(", ")
                );
            }
        }
        for field in [
            "reference",
            "parent_id",
            "object_id",
            "payout_id",
            "account",
            "description",
        ] {
            if let Some(column) = self.columns.get(field) {
                let _ = writeln!(text, "{field} = {}", quoted(column));
            }
        }
        let day = self.column("occurred_at")?;
        let columns = match self.columns.get("time") {
            Some(time) => format!("[{day}, {}]", quoted(time)),
            None => day,
        };
        let zone = match self.layout.get("zone") {
            Some(zone) => format!(", zone = {}", quoted(zone)),
            None => String::new(),
        };
        let format = self.layout("time_format")?;
        let _ = writeln!(
            text,
            "occurred_at = {{ column = {columns}, format = {format}{zone} }}"
        );
        text.push_str(&self.money()?);
        let _ = writeln!(text, "\n[maps.kind]\ncolumn = {}", self.column("kind")?);
        for (word, meaning) in &self.kinds {
            let (kind, status) = match meaning.split_once(':') {
                Some((kind, status)) => (kind, format!(", status = {}", quoted(status))),
                None => (meaning.as_str(), String::new()),
            };
            let _ = writeln!(
                text,
                "{} = {{ kind = {}{status} }}",
                quoted(word),
                quoted(kind)
            );
        }
        if self.columns.contains_key("status") {
            let _ = writeln!(text, "\n[maps.status]\ncolumn = {}", self.column("status")?);
            for (word, status) in &self.statuses {
                let _ = writeln!(text, "{} = {{ status = {} }}", quoted(word), quoted(status));
            }
        } else if let Some(word) = self.statuses.keys().next() {
            return Err(left_open(
                "which column is status",
                &format!("a status is told for \"{word}\""),
                "--column \"status=NAME OF THE COLUMN\"",
            ));
        }
        Ok(text)
    }

    fn money(&self) -> Result<String, Failure> {
        let unit = self.layout("unit")?;
        let mut text = format!("\n[records.default.money]\nunit = {unit}\n");
        if self.layout.get("unit").is_none_or(|unit| unit != "minor") {
            let _ = writeln!(text, "decimal = {}", self.layout("decimal")?);
        }
        for key in ["group", "currency_sign"] {
            if let Some(value) = self.layout.get(key) {
                let _ = writeln!(text, "{key} = {}", quoted(value));
            }
        }
        if let Some(minus) = self.layout.get("minus") {
            let _ = writeln!(text, "minus = [{}]", quoted(minus));
        }
        let currency = match (self.columns.get("currency"), self.layout.get("currency")) {
            (Some(column), _) => quoted(column),
            (None, Some(code)) => quoted(&format!("const:{code}")),
            (None, None) => self.column("currency")?,
        };
        let has_two = self.columns.contains_key("credit") || self.columns.contains_key("debit");
        let amount = if has_two {
            format!(
                "credit = {}, debit = {}",
                self.column("credit")?,
                self.column("debit")?
            )
        } else {
            format!("column = {}", self.column("amount")?)
        };
        let _ = writeln!(text, "amount = {{ {amount}, currency = {currency} }}");
        if let Some(fee) = self.columns.get("fee") {
            let (fee, sign) = (quoted(fee), self.layout("fee_sign")?);
            let _ = writeln!(
                text,
                "fee_total = {{ column = {fee}, currency = {currency}, sign = {sign} }}"
            );
        }
        if let Some(net) = self.columns.get("net") {
            let _ = writeln!(
                text,
                "settle_net = {{ column = {}, currency = {currency} }}",
                quoted(net)
            );
            if self.columns.contains_key("fee") {
                text.push_str("\n[[checks]]\nscope = \"row\"\nrule = \"net == amount - fee\"\nwhen = \"net != 0\"\n");
            }
        }
        Ok(text)
    }
}

/// What may be told, for people.
pub fn reference() -> String {
    let mut text = String::from(
        "# The profile generic: a CSV format told in a few words instead of in a file of its own.\n\
         # On the command line: --profile generic --column FIELD=COLUMN --layout KEY=VALUE --kind WORD=KIND[:STATUS]\n\
         # --status WORD=STATUS; in a source of paysweep.toml: generic = { columns = { … }, layout = { … }, kinds = { … },\n\
         # statuses = { … } }. Without kinds or statuses the file has to use the words of the canonical format. A word that\n\
         # is not told is never guessed. What cannot be said here can be said in a profile: `paysweep profiles infer FILE`\n\
         # proposes one.\n",
    );
    for (title, words) in [("columns", COLUMNS), ("layout", LAYOUT)] {
        let _ = write!(text, "#\n# {title}\n");
        for (name, meaning) in words {
            let _ = writeln!(text, "#   {name:<14} {meaning}");
        }
    }
    text
}

/// A text as TOML writes it on one line, as a key or as a value. TOML reads every escape that JSON writes.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text)
        .to_string()
        .replace('\u{7f}', "\\u007f")
}

fn meaning(words: Words, key: &str) -> String {
    words
        .iter()
        .find(|(name, _)| *name == key)
        .map_or_else(String::new, |(_, meaning)| (*meaning).to_owned())
}

fn left_open(what: &str, why: &str, remedy: &str) -> Failure {
    Failure::rejected(format!("the profile generic is not told {what}"))
        .why(why)
        .remedy(format!("say it: {remedy}"))
}

#[cfg(test)]
mod tests;
