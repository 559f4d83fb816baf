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
    AmountUnit, IntentsKind, OutputSpec, ProfileRef, Rounding, Settings, Spans, StoreUrl,
};
use paysweep::time::{Instant, Span};

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
    Settings::parse(Path::new("/etc/shop/paysweep.toml"), text, &env, now)
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
