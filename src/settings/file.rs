//! `paysweep.toml` as it may be written: contract section 5.
//!
//! Every section is one function from a table with positions to settings. What is named in the contract and not built
//! is refused with these words, never passed over.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::document::{Document, Table, Value};
use super::{
    FreshnessSettings, IntentsSettings, OutputSpec, ProfileRef, RepairSettings, ReportSettings,
    Settings, SourceKind, SourceSettings, StoreUrl,
};
use super::{api, intents, notify, repair};
use crate::database::postgres::Address;
use crate::database::sqlite_path;
use crate::exit::{Exit, Failure};
use crate::model::run::CompleteThrough;
use crate::money::{Currency, NumberFormat};
use crate::notify::Kind;
use crate::processor::generic::{self, GenericRules, Part};
use crate::processor::{DateOrder, Mode, ReadRules, ScopeRule};
use crate::reconcile::rules::{Guards, Rules};
use crate::report::redact::Column;
use crate::time::{Instant, Span, Zone, parse_point};

/// Looks up a variable of the environment.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads the text of a configuration file.
pub(super) fn read(
    path: &Path,
    text: &str,
    env: Environment<'_>,
    now: Instant,
) -> Result<Settings, Failure> {
    let document = Document { path, text };
    let root = document.parse()?;
    let known = [
        "timezone",
        "store",
        "source",
        "intents",
        "match",
        "repair",
        "guards",
        "freshness",
        "report",
        "notify",
    ];
    let root = Table::open(document, "", 0, &root, &known)?;
    let channels = notify::read(
        document,
        root.get("notify").map(|it| it.named("[notify]")),
        env,
    )?;
    let timezone = match root.get("timezone") {
        Some(value) => zone(&value)?,
        None => Zone::utc(),
    };
    let lease = lease(root.get("store").map(|it| it.named("[store]")))?;
    let keep = keep(root.get("store").map(|it| it.named("[store]")))?;
    let store = store(
        document,
        root.get("store").map(|it| it.named("[store]")),
        env,
    )?;
    let intents_table = root
        .get("intents")
        .ok_or_else(|| document.error(0, "the section [intents] is missing"))?
        .named("[intents]");
    let intents = intents::read(document, &intents_table, env)?;
    let guards = guards(root.get("guards").map(|it| it.named("[guards]")))?;
    let repair = repair::read(
        document,
        root.get("repair").map(|it| it.named("[repair]")),
        intents.sql.as_ref(),
        env,
    )?;
    let shared = shared_rules(&root, &intents, &repair, &guards)?;
    let mut sources = sources(document, &root, env, &timezone, now, &shared)?;
    if let [only] = sources.as_mut_slice() {
        only.rules.is_only_source = true;
    }
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    if names.contains(&intents.name.as_str()) {
        return Err(intents_table.error(format!(
            "the name {:?} is that of a source; choose another",
            intents.name
        )));
    }
    if !intents.source.is_empty() && !names.contains(&intents.source.as_str()) {
        return Err(intents_table.error(format!("there is no source {:?}", intents.source)));
    }
    let report = report(document, root.get("report").map(|it| it.named("[report]")))?;
    let repairs = channels
        .iter()
        .find(|channel| channel.kind == Kind::Repairs);
    if let (Some(channel), false) = (repairs, report.redact.is_empty()) {
        return Err(document
            .error(
                0,
                format!(
                    "[notify.{}] is told of repairs, and [report] redact masks what they are about",
                    channel.name
                ),
            )
            .remedy("take one of both out"));
    }
    Ok(Settings {
        path: path.to_owned(),
        digest: hex(&Sha256::digest(text.as_bytes())),
        timezone,
        store,
        lease,
        keep,
        sources,
        intents,
        repair,
        guards,
        freshness: freshness(root.get("freshness").map(|it| it.named("[freshness]")))?,
        report,
        channels,
    })
}

pub(super) fn not_built(value: &Value<'_>, what: &str) -> Failure {
    value
        .error(format!("{what}: not built yet in this version"))
        .remedy("take it out of the file")
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

pub(super) fn zone(value: &Value<'_>) -> Result<Zone, Failure> {
    let name = value.some_text()?;
    Zone::parse(name).ok_or_else(|| {
        value
            .error(format!("{name:?} is no time zone"))
            .remedy("write an IANA name (\"Europe/Paris\"), \"UTC\" or an offset (\"+01:00\")")
    })
}

fn point(value: &Value<'_>, zone: &Zone, now: Instant) -> Result<Instant, Failure> {
    let text = value.point()?;
    parse_point(&text, zone, now).ok_or_else(|| {
        value
            .error(format!("{text:?} is no point in time"))
            .remedy(format!(
                "write RFC 3339 (\"2026-03-09T00:00:00Z\"), or a day or a time in {} that its clocks show exactly once",
                zone.name()
            ))
    })
}

// ---- [store]

const STORE_KEYS: &[&str] = &["url", "lease", "keep"];

/// How far back operations are kept, where that is said.
fn keep(section: Option<Value<'_>>) -> Result<Option<Span>, Failure> {
    let table = section
        .map(|section| section.table(STORE_KEYS))
        .transpose()?;
    table
        .and_then(|table| table.get("keep"))
        .map(|value| value.span())
        .transpose()
}

/// The default of `[store] lease`: long enough for a slow step, short enough that nobody has to unlock anything.
const LEASE: Span = Span(120_000_000);
/// The shortest lease: the database's clock is read in milliseconds, a commit takes longer than that.
const LEASE_MIN: Span = Span(1_000_000);

/// How long a run holds a source without renewing: a killed run blocks the next one no longer than this.
fn lease(section: Option<Value<'_>>) -> Result<Span, Failure> {
    let Some(value) = section
        .map(|section| section.table(STORE_KEYS))
        .transpose()?
        .and_then(|table| table.get("lease"))
    else {
        return Ok(LEASE);
    };
    let span = value.span()?;
    if span < LEASE_MIN {
        return Err(value
            .error(format!("{span} is too short for a run to renew it"))
            .remedy("write at least \"1s\""));
    }
    Ok(span)
}

fn store(
    document: Document<'_>,
    section: Option<Value<'_>>,
    env: Environment<'_>,
) -> Result<StoreUrl, Failure> {
    let from_env = env("PAYSWEEP_STORE_URL").filter(|url| !url.is_empty());
    let from_file = env("PAYSWEEP_STORE_URL_FILE").filter(|path| !path.is_empty());
    // The section is read even where the environment overrides it, so that a mistake in it is told.
    let url = match section {
        None => None,
        Some(section) => {
            let section = section.table(STORE_KEYS)?;
            section.get("url")
        }
    };
    let in_environment = |what: &'static str| {
        move |problem: Failure| Failure {
            what: format!("{what}: {}", problem.what),
            ..problem
        }
    };
    match (from_env, from_file, url) {
        (Some(_), Some(_), _) => Err(Failure::rejected(
            "PAYSWEEP_STORE_URL and PAYSWEEP_STORE_URL_FILE are both set",
        )
        .remedy("unset one of them")),
        (Some(text), None, _) => {
            store_url(document, text.trim()).map_err(in_environment("PAYSWEEP_STORE_URL"))
        }
        (None, Some(path), _) => read_secret(Path::new(&path))
            .and_then(|text| store_url(document, &text))
            .map_err(in_environment("PAYSWEEP_STORE_URL_FILE")),
        (None, None, Some(value)) => {
            let text = referenced(document, &value, env)?;
            let store = store_url(document, &text).map_err(|problem| at_value(&value, problem))?;
            match &store {
                StoreUrl::Postgres(address) if address.has_password() && !value.is_table() => {
                    Err(password_in_file(&value))
                }
                StoreUrl::Postgres(_) | StoreUrl::Sqlite(_) => Ok(store),
            }
        }
        (None, None, None) => Ok(StoreUrl::Sqlite(document.resolve("paysweep.db"))),
    }
}

/// A URL: as it stands, or where it is referred to.
pub(super) fn referenced(
    document: Document<'_>,
    value: &Value<'_>,
    env: Environment<'_>,
) -> Result<String, Failure> {
    if value.is_table() {
        secret(document, value, env)
    } else {
        value.some_text().map(str::to_owned)
    }
}

/// A problem with the content of a value, at its place.
pub(super) fn at_value(value: &Value<'_>, problem: Failure) -> Failure {
    value.error(problem.what).remedy(problem.remedy)
}

pub(super) fn password_in_file(value: &Value<'_>) -> Failure {
    value
        .error("holds a password, which does not belong into this file")
        .remedy("name where the URL stands, url = { env = \"…\" }, { file = \"…\" } or { credential = \"…\" }, or leave the password to PGPASSWORD or the password file")
}

/// The URL never stands in an error text: it may hold a password.
fn store_url(document: Document<'_>, url: &str) -> Result<StoreUrl, Failure> {
    if Address::is_one(url) {
        return Address::parse(url).map(StoreUrl::Postgres);
    }
    match sqlite_path(url) {
        Some(path) => Ok(StoreUrl::Sqlite(document.resolve(path))),
        None => Err(Failure::rejected("this is no address of a store")
            .remedy("write \"sqlite://\" and the path of a file, without parameters, or \"postgres://user@host/database\"")),
    }
}

/// A secret by reference. Its value never stands in an error text.
pub(super) fn secret(
    document: Document<'_>,
    value: &Value<'_>,
    env: Environment<'_>,
) -> Result<String, Failure> {
    let table = value.table(&["env", "file", "credential", "command"])?;
    let mut entries = table.entries();
    let (Some((kind, reference)), None) = (entries.next(), entries.next()) else {
        return Err(value.error("has to be one of { env }, { file } and { credential }"));
    };
    let told = |problem: Failure| Failure {
        exit: problem.exit,
        ..reference.error(problem.what)
    };
    match kind {
        "env" => {
            let name = reference.some_text()?;
            env(name)
                .filter(|text| !text.is_empty())
                .ok_or_else(|| reference.error(format!("the variable {name} is not set")))
        }
        "file" => read_secret(&document.resolve(reference.some_text()?)).map_err(told),
        "credential" => {
            let name = reference.some_text()?;
            if name.contains(['/', '\\']) || name.starts_with('.') {
                return Err(reference.error("is a name, not a path"));
            }
            let path = ["CREDENTIALS_DIRECTORY", "PAYSWEEP_SECRETS_DIR"]
                .into_iter()
                .filter_map(env)
                .map(|folder| Path::new(&folder).join(name))
                .find(|path| path.exists());
            match path {
                Some(path) => read_secret(&path).map_err(told),
                None => Err(reference.error(format!(
                    "there is no credential {name:?} in $CREDENTIALS_DIRECTORY or $PAYSWEEP_SECRETS_DIR"
                ))),
            }
        }
        _ => Err(not_built(&reference, "secrets from a command")),
    }
}

fn read_secret(path: &Path) -> Result<String, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| read_failure(path, &error))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// A file that could not be read: a right that is missing is exit 5, everything else exit 2.
pub(super) fn read_failure(path: &Path, error: &std::io::Error) -> Failure {
    let exit = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Exit::Denied,
        _ => Exit::Rejected,
    };
    Failure::new(exit, format!("{}: {error}", path.display()))
}

// ---- [source.NAME]

const SOURCE_KEYS: &[&str] = &[
    "kind",
    "profile",
    "generic",
    "files",
    "start",
    "complete_through",
    "lag",
    "lookback",
    "payout_span",
    "reference_max_chars",
    "rounds_to_minor",
    "scope",
    "account",
    "mode",
    "lookup",
    "tolerate_bad_rows",
    "reference",
    "zone",
    "currency",
    "date_order",
];

fn sources(
    document: Document<'_>,
    root: &Table<'_>,
    env: Environment<'_>,
    zone: &Zone,
    now: Instant,
    shared: &Rules,
) -> Result<Vec<SourceSettings>, Failure> {
    let mut sources = Vec::new();
    if let Some(section) = root.get("source") {
        for (name, value) in section.free_table()? {
            let value = value.named(format!("[source.{name}]"));
            sources.push(source(document, name, &value, env, zone, now, shared)?);
        }
    }
    if sources.is_empty() {
        return Err(document
            .error(0, "no source is configured")
            .remedy("add a section [source.NAME] with kind, profile, files and start"));
    }
    Ok(sources)
}

fn source(
    document: Document<'_>,
    name: &str,
    section: &Value<'_>,
    env: Environment<'_>,
    zone: &Zone,
    now: Instant,
    shared: &Rules,
) -> Result<SourceSettings, Failure> {
    const NAME_CHARS_MAX: usize = 64;
    let is_name = !name.is_empty()
        && name.len() <= NAME_CHARS_MAX
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if !is_name {
        return Err(section.error(format!(
            "{name:?} is no name: write letters, digits, - and _, at most {NAME_CHARS_MAX}"
        )));
    }
    let with_api: Vec<&str> = SOURCE_KEYS.iter().chain(api::KEYS).copied().collect();
    let any = section.table(&with_api)?;
    let kind = any
        .require("kind", "it says how the source is read")?
        .word(&[("csv", SourceKind::Csv), ("api", SourceKind::Api)])?;
    let is_of_kind = |key: &&str| match kind {
        SourceKind::Csv => SOURCE_KEYS.contains(key),
        SourceKind::Api => !api::FILE_KEYS.contains(key),
    };
    let keys: Vec<&str> = with_api.iter().copied().filter(is_of_kind).collect();
    let table = section.table(&keys)?;
    let profile_name = table
        .require("profile", "it says in which format the rows are")?
        .some_text()?;
    let files = match kind {
        SourceKind::Csv => files(&table)?,
        SourceKind::Api => Vec::new(),
    };
    let access = match kind {
        SourceKind::Csv => None,
        SourceKind::Api => Some(api::access(document, &table, env)?),
    };
    let start = point(
        &table.require("start", "the first watermark is never guessed")?,
        zone,
        now,
    )?;
    let complete_through = match table.get("complete_through") {
        None if kind == SourceKind::Api => CompleteThrough::AsOf,
        None => CompleteThrough::LastRow,
        Some(value) => match value.point()?.as_str() {
            "last-row" => CompleteThrough::LastRow,
            "as-of" => CompleteThrough::AsOf,
            _ => CompleteThrough::At(point(&value, zone, now).map_err(|problem| {
                problem.remedy("write \"last-row\", \"as-of\" or a point in time")
            })?),
        },
    };
    let lookup = table.get("lookup");
    let can_look_up = match &lookup {
        Some(lookup) => lookup.word(&[("by-id", true), ("none", false)])?,
        None => kind == SourceKind::Api,
    };
    if let Some(lookup) = lookup.filter(|_| can_look_up && kind == SourceKind::Csv) {
        return Err(lookup
            .error("a csv source cannot be asked for an operation by its id")
            .why("a file holds what it holds; only an api answers questions")
            .remedy("write \"none\", or leave the key out"));
    }
    let span = |key: &str| table.get(key).map(|value| value.span()).transpose();
    let (lag, lookback, payout_span) = (span("lag")?, span("lookback")?, span("payout_span")?);
    let mut read = read_rules(&table)?;
    if kind == SourceKind::Api {
        // A key of test mode never meets real intents because somebody forgot a word.
        read.mode = read.mode.or(Some(Mode::Live));
    }
    let rules = Rules {
        source: name.to_owned(),
        reference_max_chars: match table.get("reference_max_chars") {
            // Longer than any reference a processor keeps.
            Some(value) => usize::try_from(value.whole(1, 1000)?).ok(),
            None => None,
        },
        rounds_to_minor: match table.get("rounds_to_minor") {
            Some(value) => minor_per_currency(&value, 1)?,
            None => BTreeMap::new(),
        },
        payout_span: payout_span.unwrap_or(Span::ZERO),
        can_look_up,
        ..shared.clone()
    };
    let (profile, profile_text) = match table.get("generic") {
        Some(value) if profile_name == generic::NAME => {
            let rules = generic_rules(&value)?;
            (
                ProfileRef::Generic(Box::new(rules.clone())),
                format!("{rules:?}"),
            )
        }
        Some(value) => {
            return Err(value
                .error(format!(
                    "profile = {profile_name:?} says by itself what the columns are"
                ))
                .remedy("write profile = \"generic\", or leave the key out"));
        }
        None => (profile_ref(document, profile_name), profile_name.to_owned()),
    };
    let config_hash = hash_of(&[
        (
            "kind",
            match kind {
                SourceKind::Csv => "csv".to_owned(),
                SourceKind::Api => format!("api {:?}", access.as_ref().map(|access| &access.base)),
            },
        ),
        ("profile", profile_text),
        ("files", files.join("\u{1f}")),
        ("complete_through", format!("{complete_through:?}")),
        ("lag", format!("{lag:?}")),
        ("lookback", format!("{lookback:?}")),
        ("payout_span", format!("{payout_span:?}")),
        ("scope", format!("{:?}", read.scope)),
        ("account", read.account.clone()),
        ("mode", format!("{:?}", read.mode)),
        ("reference", read.reference.join("\u{1f}")),
        ("zone", read.zone.as_ref().map_or("", Zone::name).to_owned()),
        ("currency", format!("{:?}", read.currency)),
        ("date_order", format!("{:?}", read.date_order)),
    ]);
    Ok(SourceSettings {
        name: name.to_owned(),
        kind,
        profile,
        files: files.iter().map(|file| document.resolve(file)).collect(),
        start,
        complete_through,
        lag,
        lookback,
        payout_span,
        read,
        rules,
        access,
        config_hash,
    })
}

fn files<'d>(table: &Table<'d>) -> Result<Vec<&'d str>, Failure> {
    let value = table.require("files", "a csv source reads files")?;
    let mut files = Vec::new();
    for file in value.list()? {
        files.push(file.some_text()?);
    }
    if files.is_empty() {
        return Err(value.error("names no file"));
    }
    Ok(files)
}

/// What `generic = { columns = {…}, layout = {…}, kinds = {…}, statuses = {…} }` tells about a format.
fn generic_rules(value: &Value<'_>) -> Result<GenericRules, Failure> {
    let lists: Vec<&str> = Part::ALL.iter().map(|(_, _, list)| *list).collect();
    let table = value.table(&lists)?;
    let mut rules = GenericRules::default();
    for (part, _, list) in Part::ALL {
        let Some(entries) = table.get(list) else {
            continue;
        };
        for (key, entry) in entries.free_table()? {
            let told = entry.some_text()?;
            rules.enter(*part, key, told).map_err(|failure| Failure {
                what: entry.error(failure.what).what,
                ..failure
            })?;
        }
    }
    Ok(rules)
}

/// A name that ends in `.toml` or holds a path separator is a file.
fn profile_ref(document: Document<'_>, name: &str) -> ProfileRef {
    match ProfileRef::parse(name) {
        ProfileRef::File(path) => ProfileRef::File(document.resolve(&path.to_string_lossy())),
        other @ (ProfileRef::BuiltIn(_) | ProfileRef::Generic(_)) => other,
    }
}

fn read_rules(table: &Table<'_>) -> Result<ReadRules, Failure> {
    let scope = match table.get("scope") {
        None => None,
        Some(value) => {
            let scope = value.table(&["column", "value"])?;
            let part = |key: &str| -> Result<String, Failure> {
                let value = scope.require(key, "a scope is a column and the value of our rows")?;
                Ok(value.some_text()?.to_owned())
            };
            Some(ScopeRule {
                column: part("column")?,
                value: part("value")?,
            })
        }
    };
    Ok(ReadRules {
        scope,
        account: match table.get("account") {
            Some(value) => value.some_text()?.to_owned(),
            None => String::new(),
        },
        mode: match table.get("mode") {
            Some(value) => Some(value.word(&[("live", Mode::Live), ("test", Mode::Test)])?),
            None => None,
        },
        reference: match table.get("reference") {
            Some(value) => {
                let names = value.list()?;
                let names = names.iter().map(|name| Ok(name.some_text()?.to_owned()));
                names.collect::<Result<_, Failure>>()?
            }
            None => Vec::new(),
        },
        zone: match table.get("zone") {
            Some(value) => Some(zone(&value)?),
            None => None,
        },
        currency: match table.get("currency") {
            Some(value) => Some(currency(&value, value.some_text()?)?),
            None => None,
        },
        date_order: match table.get("date_order") {
            Some(value) => {
                let words: Vec<(&str, DateOrder)> =
                    DateOrder::ALL.iter().map(|it| (it.as_str(), *it)).collect();
                Some(value.word(&words)?)
            }
            None => None,
        },
        tolerate_bad_rows: match table.get("tolerate_bad_rows") {
            Some(value) => value.whole(0, i64::MAX)?.unsigned_abs(),
            None => 0,
        },
    })
}

/// Length and content of every part, so that no two settings give the same bytes.
fn hash_of(parts: &[(&str, String)]) -> String {
    let mut hash = Sha256::new();
    for (name, value) in parts {
        hash.update(format!("{name}={}:{value}\n", value.len()));
    }
    hex(&hash.finalize())
}

// ---- [match], [repair], [guards], [freshness], [report]

/// The rules that are the same for every source.
fn shared_rules(
    root: &Table<'_>,
    intents: &IntentsSettings,
    repair: &RepairSettings,
    guards: &Guards,
) -> Result<Rules, Failure> {
    let tolerance = match root.get("match").map(|it| it.named("[match]")) {
        Some(section) => match section.table(&["tolerance"])?.get("tolerance") {
            Some(value) => minor_per_currency(&value, 0)?,
            None => BTreeMap::new(),
        },
        None => BTreeMap::new(),
    };
    Ok(Rules {
        scope: intents.name.clone(),
        grace: intents.grace,
        open_after: intents.open_after,
        kinds: intents.kinds.clone(),
        tolerance,
        policies: repair.policies.clone(),
        conditions: repair.conditions.clone(),
        link_policy: repair.link,
        may_redrive: repair.may_redrive,
        guards: guards.clone(),
        ..Rules::new("")
    })
}

fn guards(section: Option<Value<'_>>) -> Result<Guards, Failure> {
    let mut guards = Guards::default();
    let Some(section) = section else {
        return Ok(guards);
    };
    let table = section.table(&["max_repairs", "max_ratio", "max_amount"])?;
    if let Some(value) = table.get("max_repairs") {
        guards.max_repairs = value.whole(0, i64::MAX)?.unsigned_abs();
    }
    if let Some(value) = table.get("max_ratio") {
        guards.max_ratio_basis_points = Some(basis_points(&value)?);
    }
    if let Some(value) = table.get("max_amount") {
        for (code, amount) in value.free_table()? {
            let currency = currency(&amount, code)?;
            guards
                .max_amount
                .insert(currency, major(&amount, currency)?);
        }
    }
    Ok(guards)
}

fn basis_points(value: &Value<'_>) -> Result<u64, Failure> {
    const DECIMALS: u8 = 2;
    let text = value.text()?;
    text.strip_suffix('%')
        .and_then(|number| NumberFormat::PLAIN.parse(number.trim_end()))
        .and_then(|number| number.to_minor(DECIMALS).ok())
        .filter(|points| (0..=10_000).contains(points))
        .map(i64::unsigned_abs)
        .ok_or_else(|| {
            value
                .error(format!("{text:?} is no share"))
                .remedy("write a percentage between 0 and 100 with at most two decimals: \"2%\"")
        })
}

pub(super) fn currency(value: &Value<'_>, code: &str) -> Result<Currency, Failure> {
    Currency::parse(code)
        .filter(|currency| currency.as_str() == code && currency.exponent().is_some())
        .ok_or_else(|| {
            value
                .error(format!("{code:?} is no currency"))
                .remedy("write an ISO 4217 code in upper case: EUR")
        })
}

/// An amount in major units as decimal text.
pub(super) fn major(value: &Value<'_>, currency: Currency) -> Result<i64, Failure> {
    let text = value.text()?;
    let exponent = currency.exponent().unwrap_or(0);
    NumberFormat::PLAIN
        .parse(text)
        .and_then(|number| number.to_minor(exponent).ok())
        .filter(|minor| *minor >= 0)
        .ok_or_else(|| {
            value
                .error(format!("{text:?} is no amount of {currency}"))
                .remedy(format!(
                    "write major units with at most {exponent} decimals and no grouping: \"10000\""
                ))
        })
}

/// Whole minor units for each currency.
fn minor_per_currency(value: &Value<'_>, min: i64) -> Result<BTreeMap<Currency, i64>, Failure> {
    let mut map = BTreeMap::new();
    for (code, amount) in value.free_table()? {
        // A tolerance or a rounding step of more than a million minor units is a slip.
        map.insert(currency(&amount, code)?, amount.whole(min, 1_000_000)?);
    }
    Ok(map)
}

fn freshness(section: Option<Value<'_>>) -> Result<FreshnessSettings, Failure> {
    let Some(section) = section else {
        return Ok(FreshnessSettings::default());
    };
    let table = section.table(&["max_age"])?;
    Ok(FreshnessSettings {
        max_age: table.get("max_age").map(|value| value.span()).transpose()?,
    })
}

/// A column that is masked. One that a report never holds is refused, so that nobody relies on a mask that does nothing.
fn redacted_column(value: &Value<'_>) -> Result<Column, Failure> {
    let name = value.some_text()?;
    Column::from_word(name).ok_or_else(|| {
        let known: Vec<&str> = Column::ALL.iter().map(|column| column.as_str()).collect();
        value
            .error(format!("no report holds a column {name:?}"))
            .why("a report holds a fixed list of columns; every other column of a file stays out of it anyway")
            .remedy(format!("these can be masked: {}", known.join(", ")))
    })
}

fn report(document: Document<'_>, section: Option<Value<'_>>) -> Result<ReportSettings, Failure> {
    let mut report = ReportSettings::default();
    let Some(section) = section else {
        return Ok(report);
    };
    let table = section.table(&["files", "keep", "redact"])?;
    if let Some(redact) = table.get("redact") {
        for column in redact.list()? {
            report.redact.push(redacted_column(&column)?);
        }
    }
    if let Some(files) = table.get("files") {
        for file in files.list()? {
            let text = file.some_text()?;
            let spec = OutputSpec::parse(text).map_err(|problem| file.error(problem.what))?;
            let path: PathBuf = document.resolve(&spec.path.to_string_lossy());
            report.files.push(OutputSpec { path, ..spec });
        }
    }
    report.keep = table.get("keep").map(|value| value.span()).transpose()?;
    Ok(report)
}
