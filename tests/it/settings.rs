//! `paysweep.toml`: what it means, and what is told about a file that may not stand.

use std::path::{Path, PathBuf};

use paysweep::exit::{Exit, Failure};
use paysweep::model::breaks::{BreakClass, Policy};
use paysweep::model::intent::{IntentKind, IntentStatus};
use paysweep::model::run::CompleteThrough;
use paysweep::money::Currency;
use paysweep::processor::{Mode, ScopeRule};
use paysweep::report::Form;
use paysweep::settings::{
    AmountUnit, CONFIG_SCHEMA, IntentsKind, OutputSpec, ProfileRef, Rounding, Settings, Spans,
    StoreUrl,
};
use paysweep::time::{Instant, Span};
use serde_json::Value;

const SMALL: &str = r#"
[source.shop]
kind = "csv"
profile = "canonical"
files = ["operations.csv"]
start = "2026-03-09T00:00:00Z"

[intents]
kind = "csv"
file = "intents.csv"
"#;

fn at(text: &str) -> Instant {
    Instant::parse(text).expect("RFC 3339")
}

fn code(text: &str) -> Currency {
    Currency::parse(text).expect("a code")
}

fn read_with(text: &str, env: &[(&str, &str)]) -> Result<Settings, Failure> {
    let env = |name: &str| {
        env.iter()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let now = at("2026-03-10T12:00:00Z");
    let read = Settings::parse(Path::new("/etc/shop/paysweep.toml"), text, &env, now);
    if read.is_ok() {
        assert_eq!(problems(text), Vec::<String>::new(), "{text}");
    }
    read
}

/// What the published schema has against a configuration.
fn problems(text: &str) -> Vec<String> {
    fn json(value: &toml::Value) -> Value {
        match value {
            toml::Value::String(text) => text.as_str().into(),
            toml::Value::Integer(number) => (*number).into(),
            toml::Value::Float(number) => (*number).into(),
            toml::Value::Boolean(flag) => (*flag).into(),
            // What a program that knows JSON alone has for it.
            toml::Value::Datetime(at) => at.to_string().into(),
            toml::Value::Array(list) => list.iter().map(json).collect(),
            toml::Value::Table(table) => table
                .iter()
                .map(|(key, value)| (key.clone(), json(value)))
                .collect(),
        }
    }
    let table: toml::Table = text.parse().expect("TOML");
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).expect("the schema is JSON");
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    validator
        .iter_errors(&json(&toml::Value::Table(table)))
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

fn read(text: &str) -> Result<Settings, Failure> {
    read_with(text, &[])
}

/// The small file with one line added under `[source.shop]`.
fn with_source(line: &str) -> String {
    SMALL.replace("[intents]", &format!("{line}\n[intents]"))
}

#[test]
fn a_small_file_has_the_defaults_of_the_contract() {
    let settings = read(SMALL).expect("settings");
    assert_eq!(settings.timezone.name(), "UTC");
    assert_eq!(
        settings.store,
        StoreUrl::Sqlite(PathBuf::from("/etc/shop/paysweep.db"))
    );
    assert_eq!(settings.digest.len(), 64);
    assert_eq!(settings.intents.kind, IntentsKind::Csv);
    assert_eq!(
        settings.intents.file,
        Some(PathBuf::from("/etc/shop/intents.csv"))
    );
    assert_eq!(settings.intents.grace.refund, Span::hours(1));
    assert_eq!(settings.intents.open_after, settings.intents.grace);
    assert_eq!(settings.intents.kinds, IntentKind::ALL);
    assert_eq!(settings.guards.max_repairs, 200);
    let shop = settings.source("shop").expect("the source");
    assert_eq!(shop.profile, ProfileRef::BuiltIn("canonical".to_owned()));
    assert_eq!(shop.files, [PathBuf::from("/etc/shop/operations.csv")]);
    assert_eq!(shop.start, at("2026-03-09T00:00:00Z"));
    assert_eq!(shop.complete_through, CompleteThrough::LastRow);
    assert_eq!(shop.spans(Spans::FILE), Spans::FILE);
    assert_eq!(shop.rules.policy(BreakClass::StatusBehind), Policy::Auto);
    assert_eq!(shop.rules.link_policy, Policy::Off);
}

#[test]
fn every_key_of_the_contract_reaches_its_place() {
    let settings = read(
        r#"
timezone = "Europe/Paris"

[store]
url = "sqlite:///var/lib/paysweep/paysweep.db"

[source.bank]
kind = "csv"
profile = "profiles/bank.toml"
files = ["inbox/*.csv", "/data/late.csv"]
start = 2026-01-01T00:00:00Z
complete_through = "2026-03-10T09:00:00Z"
lag = "2m"
lookback = "1h"
payout_span = "5d"
reference_max_chars = 20
rounds_to_minor = { KWD = 10 }
scope = { column = "site", value = "live" }
account = "acct_1"
mode = "test"
lookup = "none"
tolerate_bad_rows = 3

[intents]
kind = "csv"
file = "intents.csv"
name = "orders"
source = "bank"
grace = { default = "30m", refund = "5d" }
open_after = { payout = "7d" }
kinds = ["refund", "charge"]
confirm_within = "48h"
amount_unit = "major"
rounding = "half_up"

[match]
tolerance = { EUR = 1 }

[repair]
missing_local = { policy = "propose", max_amount = { EUR = "50", JPY = "5" }, min_age = "2d" }
status_behind = "off"
status_reversed = { min_evidence = "reference", only_forward = true, otherwise = "off" }
link = "auto"
four_eyes = true

[guards]
max_repairs = 5
max_ratio = "0.5%"
max_amount = { EUR = "10000", JPY = "5" }

[freshness]
max_age = "26h"

[report]
files = ["json=reports/{run_id}.json", "latest.txt"]
keep = "400d"
"#,
    )
    .expect("settings");
    let bank = settings.source("bank").expect("the source");
    assert_eq!(
        settings.store,
        StoreUrl::Sqlite(PathBuf::from("/var/lib/paysweep/paysweep.db"))
    );
    assert_eq!(
        bank.profile,
        ProfileRef::File(PathBuf::from("/etc/shop/profiles/bank.toml"))
    );
    assert_eq!(
        bank.files,
        [
            PathBuf::from("/etc/shop/inbox/*.csv"),
            PathBuf::from("/data/late.csv")
        ]
    );
    assert_eq!(bank.start, at("2026-01-01T00:00:00Z"));
    assert_eq!(
        bank.complete_through,
        CompleteThrough::At(at("2026-03-10T09:00:00Z"))
    );
    let spans = bank.spans(Spans::FILE);
    assert_eq!(
        (spans.lag.to_string(), spans.lookback, spans.payout_span),
        ("2m".to_owned(), Span::hours(1), Span::hours(120))
    );
    assert_eq!(
        bank.read.scope,
        Some(ScopeRule {
            column: "site".to_owned(),
            value: "live".to_owned()
        })
    );
    assert_eq!(
        (
            bank.read.account.as_str(),
            bank.read.mode,
            bank.read.tolerate_bad_rows
        ),
        ("acct_1", Some(Mode::Test), 3)
    );
    let rules = &bank.rules;
    assert_eq!(
        (rules.source.as_str(), rules.scope.as_str()),
        ("bank", "orders")
    );
    assert_eq!(rules.reference_max_chars, Some(20));
    assert_eq!(rules.rounds_to_minor.get(&code("KWD")), Some(&10));
    assert_eq!(rules.tolerance.get(&code("EUR")), Some(&1));
    assert_eq!(rules.payout_span, Span::hours(120));
    assert_eq!(rules.grace.charge.to_string(), "30m");
    assert_eq!(rules.grace.refund, Span::hours(120));
    assert_eq!(rules.open_after.payout, Span::hours(168));
    assert_eq!(rules.open_after.refund, Span::hours(120));
    assert_eq!(rules.kinds, [IntentKind::Charge, IntentKind::Refund]);
    assert_eq!(rules.policy(BreakClass::MissingLocal), Policy::Propose);
    assert_eq!(rules.policy(BreakClass::StatusBehind), Policy::Off);
    assert_eq!(rules.policy(BreakClass::StatusReversed), Policy::Auto);
    assert_eq!(rules.link_policy, Policy::Auto);
    let conditions = &rules.conditions[&BreakClass::MissingLocal];
    assert_eq!(conditions.max_amount.get(&code("EUR")), Some(&5000));
    assert_eq!(
        conditions.told(),
        "max_amount 50.00 EUR, 5 JPY; min_age 48h"
    );
    let conditions = &rules.conditions[&BreakClass::StatusReversed];
    assert_eq!(conditions.told(), "min_evidence reference; only_forward");
    assert_eq!(conditions.otherwise, Some(Policy::Off));
    assert!(!rules.conditions.contains_key(&BreakClass::StatusBehind));
    assert!(settings.repair.four_eyes);
    assert_eq!(rules.guards.max_repairs, 5);
    assert_eq!(rules.guards.max_ratio_basis_points, Some(50));
    assert_eq!(rules.guards.max_amount.get(&code("EUR")), Some(&1_000_000));
    assert_eq!(rules.guards.max_amount.get(&code("JPY")), Some(&5));
    assert_eq!(settings.intents.source, "bank");
    assert_eq!(settings.intents.confirm_within, Some(Span::hours(48)));
    assert_eq!(
        (settings.intents.amount_unit, settings.intents.rounding),
        (AmountUnit::Major, Rounding::HalfUp)
    );
    assert_eq!(settings.freshness.max_age, Some(Span::hours(26)));
    assert_eq!(
        settings.report.files,
        [
            OutputSpec {
                format: Some(Form::Json),
                path: PathBuf::from("/etc/shop/reports/{run_id}.json")
            },
            OutputSpec {
                format: Some(Form::Table),
                path: PathBuf::from("/etc/shop/latest.txt")
            },
        ]
    );
    assert_eq!(settings.report.keep, Span::parse("400d"));
}

#[test]
fn a_file_that_may_not_stand_is_refused_where_it_is_wrong() {
    for (text, parts) in [
        (
            with_source("lokback = \"1h\""),
            vec![
                ":8:1: unknown key \"lokback\" in [source.shop]",
                "did you mean \"lookback\"?",
            ],
        ),
        (
            with_source("colour = 1"),
            vec!["unknown key \"colour\"", "known here: kind, profile"],
        ),
        (
            with_source("lag = 5"),
            vec![":8:7: [source.shop] lag: has to be a string, and is of type integer"],
        ),
        (
            with_source("lag = \"5 minutes\""),
            vec![":8:7:", "no length of time", "\"60m\""],
        ),
        (
            with_source("reference_max_chars = 0"),
            vec!["between 1 and 1000"],
        ),
        (
            with_source("lookup = \"by-id\""),
            vec!["cannot be asked", "a file holds what it holds"],
        ),
        (
            with_source("mode = \"prod\""),
            vec!["\"prod\" is not known here", "live, test"],
        ),
        (
            with_source("scope = { column = \"site\" }"),
            vec!["\"value\" is missing in [source.shop] scope"],
        ),
        (
            with_source("rounds_to_minor = { kwd = 10 }"),
            vec!["\"kwd\" is no currency"],
        ),
        (
            with_source("complete_through = \"lastrow\""),
            vec!["\"last-row\""],
        ),
        (
            with_source("api_key = \"sk_live_1\""),
            vec!["unknown key \"api_key\""],
        ),
        (
            SMALL.replace("start = \"2026-03-09T00:00:00Z\"", ""),
            vec!["\"start\" is missing in [source.shop]", "never guessed"],
        ),
        (
            SMALL.replace("2026-03-09T00:00:00Z", "09/03/2026"),
            vec!["\"09/03/2026\" is no point in time"],
        ),
        (
            SMALL.replace("files = [\"operations.csv\"]", "files = []"),
            vec!["names no file"],
        ),
        (
            SMALL.replace("files = [\"operations.csv\"]", "files = \"operations.csv\""),
            vec!["has to be a list"],
        ),
        (
            SMALL.replacen("\"csv\"", "\"api\"", 1),
            vec!["unknown key \"files\" in [source.shop]"],
        ),
        (
            SMALL.replace("[source.shop]", "[source.\"my shop\"]"),
            vec!["is no name"],
        ),
        (
            SMALL.replace("file = \"intents.csv\"", ""),
            vec!["\"file\" is missing in [intents]"],
        ),
        (
            format!("{SMALL}name = \"shop\""),
            vec!["is that of a source"],
        ),
        (
            format!("{SMALL}source = \"bank\""),
            vec!["there is no source \"bank\""],
        ),
        (
            format!("{SMALL}kinds = [\"charge\", \"refnud\"]"),
            vec![":11:20:", "did you mean \"refund\"?"],
        ),
        (
            format!("{SMALL}grace = {{ defualt = \"1h\" }}"),
            vec!["did you mean \"default\"?"],
        ),
        (
            format!("{SMALL}[repair]\namount_mismatch = \"auto\""),
            vec!["has no repair", "status_behind"],
        ),
        (
            format!("{SMALL}[repair]\nstatus_behind = \"yes\""),
            vec!["auto, propose, off"],
        ),
        (
            format!(
                "{SMALL}[repair]\nstatus_behind = {{ otherwise = \"auto\", min_age = \"2d\" }}"
            ),
            vec!["is not less than policy"],
        ),
        (
            format!("{SMALL}[repair]\nstatus_behind = {{ otherwise = \"off\" }}"),
            vec!["beside no condition"],
        ),
        (
            format!("{SMALL}[repair]\nstatus_behind = {{ policy = \"off\", min_age = \"2d\" }}"),
            vec!["never asks"],
        ),
        (
            format!("{SMALL}[repair]\nmissing_local = {{ min_evidence = \"reference\" }}"),
            vec!["by its parent alone"],
        ),
        (
            format!("{SMALL}[repair]\nstatus_behind = {{ max_amount = {{ EUR = \"1.005\" }} }}"),
            vec!["is no amount of EUR"],
        ),
        (
            format!("{SMALL}[repair]\nfour_eyes = \"yes\""),
            vec!["true or false"],
        ),
        (
            format!("{SMALL}[guards]\nmax_ratio = \"2\""),
            vec!["is no share"],
        ),
        (
            format!("{SMALL}[guards]\nmax_ratio = 0.02"),
            vec!["has to be"],
        ),
        (
            format!("{SMALL}[guards]\nmax_amount = {{ EUR = \"1,000\" }}"),
            vec!["is no amount of EUR"],
        ),
        (
            format!("{SMALL}[guards]\nmax_amount = {{ JPY = \"1.5\" }}"),
            vec!["at most 0 decimals"],
        ),
        (
            format!("{SMALL}[report]\nfiles = [\"html=\"]"),
            vec!["names no file"],
        ),
        (
            format!("{SMALL}[notify.slack]\nurl = {{ env = \"X\" }}\nwhen = []"),
            vec!["names nothing"],
        ),
        (
            format!("timezone = \"Paris\"\n{SMALL}"),
            vec![":1:12: timezone", "no time zone"],
        ),
        (
            format!("{SMALL}[sources.x]"),
            vec![
                "unknown key \"sources\" in the file",
                "did you mean \"source\"?",
            ],
        ),
        (
            format!("{SMALL}kind = \"csv\""),
            vec![":11:1: this is not TOML"],
        ),
        (
            "[intents]\nkind = \"store\"".to_owned(),
            vec!["no source is configured"],
        ),
    ] {
        let failure = read(&text).expect_err(&text);
        let told = failure.to_string();
        assert_eq!(failure.exit, Exit::Rejected, "{told}");
        assert!(told.starts_with("/etc/shop/paysweep.toml:"), "{told}");
        for part in parts {
            assert!(told.contains(part), "{part:?} is not in:\n{told}");
        }
    }
}

#[test]
fn no_error_shows_what_may_be_a_secret() {
    for text in [
        format!("[store]\nurl = \"postgres://app:hunter2@db/pay\"\n{SMALL}"),
        format!("[store]\nurl = \"mysql://app:hunter2@db/pay\"\n{SMALL}"),
        format!("[store]\nurl = \"mysql://app:hunter2@db/pay\n{SMALL}"),
        format!("[store]\nurl = [\"hunter2\"]\n{SMALL}"),
        with_source("api_key = \"hunter2\""),
    ] {
        let told = read(&text).expect_err(&text).to_string();
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn the_environment_outranks_the_file_and_a_reference_is_followed() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(
        folder.path().join("store_url"),
        "sqlite:///from/credential.db\n",
    )
    .expect("written");
    let folder_path = folder.path().to_str().expect("UTF-8");
    let by_variable = format!("[store]\nurl = {{ env = \"STORE\" }}\n{SMALL}");
    let by_credential = format!("[store]\nurl = {{ credential = \"store_url\" }}\n{SMALL}");
    for (text, env, want) in [
        (
            SMALL,
            vec![("PAYSWEEP_STORE_URL", "sqlite:///from/env.db")],
            "/from/env.db",
        ),
        (
            by_variable.as_str(),
            vec![("STORE", "sqlite:///from/variable.db")],
            "/from/variable.db",
        ),
        (
            by_credential.as_str(),
            vec![("PAYSWEEP_SECRETS_DIR", folder_path)],
            "/from/credential.db",
        ),
    ] {
        let settings = read_with(text, &env).expect("settings");
        assert_eq!(settings.store, StoreUrl::Sqlite(PathBuf::from(want)));
    }
    for (text, env, part) in [
        (
            by_variable.as_str(),
            vec![],
            "the variable STORE is not set",
        ),
        (
            by_credential.as_str(),
            vec![],
            "there is no credential \"store_url\"",
        ),
        (
            SMALL,
            vec![
                ("PAYSWEEP_STORE_URL", "x"),
                ("PAYSWEEP_STORE_URL_FILE", "y"),
            ],
            "both set",
        ),
    ] {
        let told = read_with(text, &env).expect_err(part).to_string();
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn a_database_is_named_by_reference_and_its_password_never_stands_in_the_file() {
    let url = "postgresql://app:hunter2@db.example/pay?sslmode=require";
    let by_variable = format!("[store]\nurl = {{ env = \"STORE\" }}\n{SMALL}");
    for (text, env) in [
        (by_variable.as_str(), "STORE"),
        (SMALL, "PAYSWEEP_STORE_URL"),
    ] {
        let settings = read_with(text, &[(env, url)]).expect("settings");
        let StoreUrl::Postgres(address) = &settings.store else {
            panic!("{:?}", settings.store);
        };
        assert_eq!(address.to_string(), "postgres://db.example:5432/pay");
        assert!(!format!("{settings:?}").contains("hunter2"));
    }
    let told = read(&format!("[store]\nurl = \"{url}\"\n{SMALL}"))
        .expect_err("a password")
        .to_string();
    assert!(told.contains("holds a password"), "{told}");
    read(&format!(
        "[store]\nurl = \"postgres://app@db.example/pay\"\n{SMALL}"
    ))
    .expect("no password");
}

#[test]
fn only_what_shapes_coverage_changes_the_hash_of_a_source() {
    let hash = |text: &str| {
        read(text)
            .expect("settings")
            .source("shop")
            .expect("the source")
            .config_hash
            .clone()
    };
    assert_ne!(hash(SMALL), hash(&with_source("lookback = \"1h\"")));
    assert_ne!(hash(SMALL), hash(&with_source("mode = \"live\"")));
    assert_eq!(hash(SMALL), hash(&format!("{SMALL}grace = \"5d\"")));
}

#[test]
fn the_first_place_that_holds_a_file_wins() {
    let folder = tempfile::tempdir().expect("a folder");
    let user = folder.path().join("paysweep");
    std::fs::create_dir(&user).expect("a folder");
    std::fs::write(user.join("paysweep.toml"), SMALL).expect("written");
    std::fs::write(folder.path().join("other.toml"), SMALL).expect("written");
    let home = folder.path().to_str().expect("UTF-8").to_owned();
    let other = folder.path().join("other.toml");
    let now = at("2026-03-10T12:00:00Z");
    let user_only = |name: &str| (name == "XDG_CONFIG_HOME").then(|| home.clone());
    let named =
        |name: &str| (name == "PAYSWEEP_CONFIG").then(|| other.to_str().expect("UTF-8").to_owned());
    let path = |explicit, env: &dyn Fn(&str) -> Option<String>| {
        Settings::load(explicit, env, now).map(|settings| settings.path)
    };
    assert_eq!(
        path(None, &user_only).expect("found"),
        user.join("paysweep.toml")
    );
    assert_eq!(path(None, &named).expect("found"), other);
    assert_eq!(
        path(Some(other.as_path()), &user_only).expect("found"),
        other
    );
    let missing = folder.path().join("none.toml");
    let failure = path(Some(missing.as_path()), &user_only).expect_err("not there");
    assert_eq!(failure.exit, Exit::Rejected);
    assert!(failure.to_string().contains("none.toml"), "{failure}");
}

/// The company's own table with a status of three words, and how repairs are written into it.
fn with_apply(map: &str, apply: &str) -> String {
    let (sources, _) = SMALL.split_once("[intents]").expect("a section");
    format!(
        "{sources}[intents]\nkind = \"sql\"\nurl = \"sqlite://shop.db\"\ntable = \"payments\"\n\
         [intents.columns]\nintent_id = \"id\"\nkind = {{ value = \"charge\" }}\namount = \"cents\"\ncurrency = \"cur\"\n\
         status = {{ column = \"state\", map = {{ {map} }} }}\ncreated_at = \"at\"\n[repair.apply]\n{apply}"
    )
}

const SET_STATUS: &str = "set_status = \"update payments set state = :to_status where id = :intent_id and state = :from_status\"\n";

#[test]
fn the_words_that_are_written_are_read_back_as_what_they_stand_for() {
    let words = |map: &str, more: &str| {
        let settings = read(&with_apply(map, &format!("{SET_STATUS}{more}")));
        let apply = settings.map(|settings| settings.repair.apply.expect("a section"));
        apply.map(|apply| {
            let word = |status| apply.words.get(&status).cloned().unwrap_or_default();
            [
                IntentStatus::Succeeded,
                IntentStatus::Pending,
                IntentStatus::Failed,
            ]
            .map(word)
        })
    };
    // What nobody maps is written as it is read.
    assert_eq!(
        words("paid = \"succeeded\", new = \"pending\"", "").expect("settings"),
        ["paid", "new", "failed"]
    );
    // Two words for an open row are no harm: only what a row becomes has to have one.
    assert_eq!(
        words(
            "paid = \"succeeded\", new = \"pending\", sent = \"pending\"",
            ""
        )
        .expect("settings"),
        ["paid", "", "failed"]
    );
    let two = "paid = \"succeeded\", settled = \"succeeded\"";
    let failure = words(two, "").expect_err("two words");
    assert!(failure.what.contains("several words"), "{failure}");
    assert_eq!(
        words(two, "words = { succeeded = \"settled\" }").expect("settings")[0],
        "settled"
    );
    for (map, more, part) in [
        (
            two,
            "words = { succeeded = \"done\" }",
            "would be read as \"done\"",
        ),
        (two, "words = { suceeded = \"paid\" }", "is no status"),
        ("failed = \"canceled\"", "", "means something else there"),
    ] {
        let failure = words(map, more).expect_err(more);
        assert!(failure.what.contains(part), "{failure}");
    }
}

#[test]
fn a_statement_that_could_write_twice_or_overwrite_is_refused_at_the_door() {
    let paid = "paid = \"succeeded\"";
    for (apply, part) in [
        ("", "has a statement for no action"),
        (
            "set_status = \"update payments set state = :to_status where id = :intent_id\"",
            "does not ask for :from_status",
        ),
        (
            "set_status = \"update payments set state = :state where id = :intent_id\"",
            ":state is no parameter",
        ),
        (
            "set_status = \"update p set s = 1 where i = :intent_id and s = :from_status; delete from p\"",
            "more than one",
        ),
        (
            "record_refund = \"insert into payments values (:intent_id, :repair_id)\"",
            "second try could write it twice",
        ),
        (
            "record_refund = \"insert into payments values (:intent_id)\"\nrecorded = \"select 1 from payments where r = :repair_id\"",
            "does not ask for :repair_id",
        ),
        (
            "recorded = \"delete from payments where r = :repair_id\"",
            "record of one repair",
        ),
        ("set_state = \"update\"", "unknown key \"set_state\""),
        (
            "url = \"postgres://app:hunter2@db/shop\"\n",
            "holds a password",
        ),
    ] {
        let failure = read(&with_apply(paid, apply)).expect_err(apply);
        let text = failure.to_string();
        assert!(text.contains(part), "{apply}: {text}");
        assert!(!text.contains("hunter2"), "{text}");
    }
    let failure = read(&format!("{SMALL}[repair.apply]\n{SET_STATUS}")).expect_err("no table");
    assert!(failure.to_string().contains("kind = \"sql\""), "{failure}");
}

/// Every table that may be written, by its place in the schema: a file that holds an unknown key there (where a table is of
/// several kinds, a key of another one), and keys that are known only to be refused.
fn tables() -> Vec<(&'static str, String, Vec<&'static str>)> {
    let source = |line: &str| with_source(line);
    let end = |text: &str| format!("{SMALL}{text}\n");
    let api = |line: &str| {
        SMALL
            .replace("kind = \"csv\"\nprofile = \"canonical\"\nfiles = [\"operations.csv\"]", "kind = \"api\"\nprofile = \"stripe.balance_transactions\"\napi_key = { env = \"KEY\" }")
            .replace("[intents]", &format!("{line}\n[intents]"))
    };
    let intents = |kind: &str, text: &str| {
        let (source, _) = SMALL.split_once("[intents]").expect("the section");
        format!("{source}[intents]\nkind = \"{kind}\"\n{text}\n")
    };
    let sql = |text: &str| {
        intents(
            "sql",
            &format!("url = \"sqlite://own.db\"\ntable = \"t\"\n{text}"),
        )
    };
    let columns = |text: &str| {
        sql(&format!(
            "[intents.columns]\nintent_id = \"a\"\ncreated_at = \"b\"\ncurrency = {{ value = \"EUR\" }}\nstatus = \"c\"\n{text}"
        ))
    };
    let repair = |text: &str| {
        format!(
            "{}[repair.apply]\n{text}\n",
            columns("amount = \"d\"\nkind = { value = \"charge\" }\n")
        )
    };
    let no_repair = BreakClass::ALL
        .iter()
        .filter(|class| class.entry().default_policy.is_none())
        .map(|class| class.as_str());
    vec![
        ("", format!("zzzz = 1\n{SMALL}"), vec![]),
        ("/properties/store", end("[store]\nzzzz = 1"), vec![]),
        ("/properties/match", end("[match]\nzzzz = 1"), vec![]),
        ("/properties/guards", end("[guards]\nzzzz = 1"), vec![]),
        (
            "/properties/freshness",
            end("[freshness]\nzzzz = 1"),
            vec![],
        ),
        ("/properties/report", end("[report]\nzzzz = 1"), vec![]),
        (
            "/properties/repair",
            end("[repair]\nzzzz = 1"),
            no_repair.collect(),
        ),
        (
            "/properties/repair/properties/apply",
            repair("zzzz = 1"),
            vec![],
        ),
        (
            "/$defs/class_rule/oneOf/1",
            end("[repair]\nstatus_behind = { zzzz = 1 }"),
            vec![],
        ),
        (
            "/$defs/secret",
            end("[store]\nurl = { zzzz = 1 }"),
            vec!["command"],
        ),
        (
            "/$defs/per_kind/oneOf/1",
            intents("csv", "file = \"i\"\ngrace = { zzzz = 1 }"),
            vec![],
        ),
        ("/$defs/scope", source("scope = { zzzz = 1 }"), vec![]),
        ("/$defs/source_csv", source("api_key = 1"), vec![]),
        (
            "/$defs/source_csv/properties/generic",
            source("generic = { zzzz = 1 }").replace("canonical", "generic"),
            vec![],
        ),
        ("/$defs/source_api", api("files = 1"), vec![]),
        ("/$defs/intents_csv", intents("csv", "url = 1"), vec![]),
        (
            "/$defs/intents_store",
            intents("store", "url = 1"),
            vec!["file"],
        ),
        ("/$defs/intents_sql", intents("sql", "file = 1"), vec![]),
        (
            "/$defs/intents_sql/properties/columns",
            columns("zzzz = 1"),
            vec![],
        ),
        (
            "/$defs/column/oneOf/1",
            columns("intent_id = { zzzz = 1 }").replace("intent_id = \"a\"\n", ""),
            vec![],
        ),
        (
            "/$defs/word_column/oneOf/1",
            columns("kind = { zzzz = 1 }"),
            vec!["value"],
        ),
        (
            "/$defs/word_column/oneOf/2",
            columns("kind = { zzzz = 1 }"),
            vec!["column", "map"],
        ),
        (
            "/$defs/amount_column/oneOf/1",
            columns("amount = { zzzz = 1 }"),
            vec![],
        ),
        ("/$defs/channel", end("[notify.slack]\nzzzz = 1"), vec![]),
    ]
}

#[test]
fn the_published_schema_has_the_keys_that_are_read_and_no_others() {
    fn closed(value: &Value, pointer: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                    found.push(pointer.to_owned());
                }
                for (key, value) in fields {
                    closed(value, &format!("{pointer}/{key}"), found);
                }
            }
            Value::Array(list) => {
                for (at, value) in list.iter().enumerate() {
                    closed(value, &format!("{pointer}/{at}"), found);
                }
            }
            _ => {}
        }
    }
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).expect("the schema is JSON");
    for (place, text, refused) in tables() {
        let failure = read_with(&text, &[("KEY", "sk_live_1")]).expect_err("an unknown key");
        let known = failure
            .remedy
            .strip_prefix("known here: ")
            .unwrap_or_else(|| panic!("{place}: {failure}"));
        let mut known: Vec<&str> = known.split(", ").collect();
        known.retain(|key| !refused.contains(key));
        known.sort_unstable();
        let table = schema.pointer(place).unwrap_or_else(|| panic!("{place}"));
        let mut published: Vec<&str> = table["properties"]
            .as_object()
            .unwrap_or_else(|| panic!("{place} has no properties"))
            .keys()
            .map(String::as_str)
            .collect();
        published.sort_unstable();
        assert_eq!(published, known, "{place}");
        assert_ne!(problems(&text), Vec::<String>::new(), "{place}: {text}");
    }
    let mut found = Vec::new();
    closed(&schema, "", &mut found);
    found.sort_unstable();
    let mut walked: Vec<&str> = tables().iter().map(|(place, ..)| *place).collect();
    walked.sort_unstable();
    assert_eq!(found, walked, "tables of the schema that nobody compares");
}

#[test]
fn the_published_schema_knows_every_word_that_is_read() {
    let schema: Value = serde_json::from_str(CONFIG_SCHEMA).expect("the schema is JSON");
    let words = |place: &str| -> Vec<String> {
        let list = schema.pointer(place).unwrap_or_else(|| panic!("{place}"));
        let list = list.as_array().expect("a list").iter();
        list.map(|word| word.as_str().expect("a word").to_owned())
            .collect()
    };
    let end = |text: &str| format!("{SMALL}{text}\n");
    for (place, text) in [
        ("/$defs/policy/enum", end("[repair]\nlink = \"zzzz\"")),
        (
            "/$defs/class_rule/oneOf/1/properties/min_evidence/enum",
            end("[repair]\nstatus_behind = { min_evidence = \"zzzz\" }"),
        ),
        (
            "/$defs/channel/properties/kind/enum",
            end("[notify.a]\nkind = \"zzzz\""),
        ),
        (
            "/$defs/channel/properties/when/items/enum",
            end("[notify.webhook]\nurl = \"https://a.test/\"\nwhen = [\"zzzz\"]"),
        ),
        (
            "/properties/report/properties/redact/items/enum",
            end("[report]\nredact = [\"zzzz\"]"),
        ),
        (
            "/$defs/source_csv/properties/date_order/enum",
            with_source("date_order = \"zzzz\""),
        ),
        (
            "/$defs/source_csv/properties/mode/enum",
            with_source("mode = \"zzzz\""),
        ),
        (
            "/$defs/source_api/properties/lookup/enum",
            with_source("lookup = \"zzzz\""),
        ),
        (
            "/$defs/intents_csv/properties/rounding/enum",
            end("rounding = \"zzzz\""),
        ),
        (
            "/$defs/intents_csv/properties/amount_unit/enum",
            end("amount_unit = \"zzzz\""),
        ),
        (
            "/$defs/intents_csv/properties/kinds/items/enum",
            end("kinds = [\"zzzz\"]"),
        ),
    ] {
        let failure = read(&text).expect_err("an unknown word");
        let known = failure.remedy.rsplit_once(": ").map(|(_, known)| known);
        let known = known.unwrap_or_else(|| panic!("{place}: {failure}"));
        assert_eq!(words(place).join(", "), known, "{place}");
        assert_ne!(problems(&text), Vec::<String>::new(), "{place}");
    }
}

#[test]
fn what_a_configuration_may_not_hold_the_published_schema_refuses_too() {
    for text in [
        SMALL.replace("files = [\"operations.csv\"]\n", ""),
        SMALL.replace("start = \"2026-03-09T00:00:00Z\"\n", ""),
        SMALL.replace("file = \"intents.csv\"\n", ""),
        with_source("lookup = \"by-id\""),
        with_source("api_key = { env = \"KEY\" }"),
        with_source("tolerate_bad_rows = -1"),
        with_source("lag = \"5\""),
        with_source("rounds_to_minor = { kwd = 10 }"),
        format!("{SMALL}url = \"postgres://a@b/c\"\n"),
        format!("{SMALL}[guards]\nmax_ratio = \"2\"\n"),
        format!("{SMALL}[guards]\nmax_amount = {{ EUR = 10000 }}\n"),
        format!("{SMALL}[store]\nurl = {{ env = \"A\", file = \"b\" }}\n"),
        format!("{SMALL}[repair]\ninvalid_record = \"auto\"\n"),
    ] {
        assert!(
            read_with(&text, &[("KEY", "k"), ("A", "b")]).is_err(),
            "{text}"
        );
        assert_ne!(problems(&text), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn the_configurations_that_are_shown_are_what_the_published_schema_says() {
    let mut shown = Vec::new();
    for folder in std::fs::read_dir("sample-data").expect("samples") {
        let folder = folder.expect("a folder").path();
        for case in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = case.expect("a case").path().join("paysweep.toml");
            if let Ok(text) = std::fs::read_to_string(&path) {
                shown.push(text);
            }
        }
    }
    let samples = shown.len();
    assert!(samples > 10, "{samples}");
    // Those of the README that are whole, and what init writes.
    let readme = std::fs::read_to_string("README.md").expect("README.md");
    let blocks = readme.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|rest| rest.split("```").next());
    let is_whole = |text: &&str| text.contains("[source.") && text.contains("[intents]");
    shown.extend(blocks.filter(is_whole).map(str::to_owned));
    assert!(shown.len() > samples, "the README shows no configuration");
    let scene = crate::scene::Scene::empty();
    assert_eq!(scene.say("init").code, 0);
    shown.push(std::fs::read_to_string(scene.path("paysweep.toml")).expect("written"));
    for text in shown {
        assert_eq!(problems(&text), Vec::<String>::new(), "{text}");
    }
}
