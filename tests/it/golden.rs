//! The sample data: every case is run as the README says, and gives the report that lies beside it.
//!
//! `UPDATE_EXPECT=1` writes the expected files anew; the diff is to be read.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paysweep::model::breaks::BreakClass;
use paysweep::processor;
use serde_json::Value;

use crate::scene::{Scene, Told};

/// A run of a case: its configuration, "now", and the name of what is expected.
struct Step {
    config: &'static str,
    as_of: &'static str,
    expected: &'static str,
}

/// A folder of the sample data, and its runs on one store.
struct Case {
    folder: &'static str,
    /// A day before every row that a run judges.
    from: &'static str,
    steps: &'static [Step],
}

/// The one run of most cases.
const ONCE: &[Step] = &[Step {
    config: "paysweep.toml",
    as_of: "2026-03-10T06:00:00Z",
    expected: "expected",
}];

const fn once(folder: &'static str) -> Case {
    Case {
        folder,
        from: "2026-03-01",
        steps: ONCE,
    }
}

const CASES: &[Case] = &[
    Case {
        folder: "sample-data/canonical/night",
        from: "2026-03-06",
        steps: &[
            Step {
                config: "paysweep.toml",
                as_of: "2026-03-10T06:00:00Z",
                expected: "expected",
            },
            Step {
                config: "next.toml",
                as_of: "2026-03-11T06:00:00Z",
                expected: "expected-next",
            },
        ],
    },
    once("sample-data/lumipay/day"),
    once("sample-data/amazonpay/settlement"),
    once("sample-data/checkoutcom/financial_actions"),
    once("sample-data/checkoutcom/settlement_breakdown"),
    once("sample-data/gocardless/payout_items"),
    once("sample-data/klarna/settlement"),
    once("sample-data/mollie/settlement"),
    once("sample-data/razorpay/settlements"),
    once("sample-data/shopify/payouts"),
    once("sample-data/square/transactions"),
    once("sample-data/wise/statement"),
    once("sample-data/stripe/balance"),
    once("sample-data/stripe/payouts"),
    once("sample-data/stripe/payments"),
    once("sample-data/adyen/settlement"),
    once("sample-data/adyen/accounting"),
    once("sample-data/adyen/received"),
    once("sample-data/paypal/activity"),
    once("sample-data/paypal/statement"),
    once("sample-data/paypal/settlement"),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A copy of a case under its own path, so that every command and every path is as the README has it.
fn copy(case: &Case) -> Scene {
    let scene = Scene::empty();
    std::fs::create_dir_all(scene.path(case.folder)).expect("a folder");
    for entry in std::fs::read_dir(root().join(case.folder)).expect(case.folder) {
        let entry = entry.expect("an entry");
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.contains(".db") {
            let to = scene.path(case.folder).join(&name);
            std::fs::copy(entry.path(), to).expect("a copy");
        }
    }
    scene
}

fn run(scene: &Scene, case: &Case, step: &Step, format: &str) -> Told {
    scene.say(&format!(
        "run --config {}/{} --as-of {} -f {format} --limit 1000",
        case.folder, step.config, step.as_of
    ))
}

/// The report without what may differ between two runs: the object `run` (with the seal of the ledger), and ids of earlier
/// runs.
fn body(report: &str) -> String {
    let mut body = String::new();
    for line in report.lines() {
        if ["  \"run\": ", "  run     ", "  ledger  "]
            .iter()
            .any(|of_the_run| line.starts_with(of_the_run))
        {
            continue;
        }
        body.push_str(&without_run_ids(line));
        body.push('\n');
    }
    body
}

/// `"first_seen_run":"0123…"` becomes `"first_seen_run":"…"`.
fn without_run_ids(line: &str) -> String {
    let key = "\"first_seen_run\":\"";
    match line.split_once(key) {
        Some((before, after)) => {
            let rest = after.split_once('"').expect("the end of the id").1;
            format!("{before}{key}…\"{rest}")
        }
        None => line.to_owned(),
    }
}

/// Compares with the expected file, or writes it.
fn expect(path: &Path, actual: &str) {
    if std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") {
        std::fs::write(path, actual).expect("the expected file can be written");
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let name = path
        .file_name()
        .expect("a file")
        .to_string_lossy()
        .into_owned();
    let pairs = expected.lines().zip(actual.lines()).enumerate();
    for (n, (expected, actual)) in pairs {
        assert_eq!(
            expected,
            actual,
            "{name}:{} differs; UPDATE_EXPECT=1 rewrites it",
            n + 1
        );
    }
    assert_eq!(
        expected.lines().count(),
        actual.lines().count(),
        "{name} has another length; UPDATE_EXPECT=1 rewrites it"
    );
}

fn classes(report: &Value) -> BTreeSet<String> {
    let breaks = report["breaks"].as_array().expect("breaks");
    breaks
        .iter()
        .map(|item| item["class"].as_str().expect("a class").to_owned())
        .collect()
}

/// Everything that a person is asked about, by id.
fn open(report: &Value) -> BTreeSet<String> {
    let breaks = report["breaks"].as_array().expect("breaks");
    breaks
        .iter()
        .filter(|item| item["disposition"] == "review")
        .map(|item| item["id"].as_str().expect("an id").to_owned())
        .collect()
}

#[test]
fn every_case_gives_the_report_that_lies_beside_it() {
    for case in CASES {
        for (format, ending) in [("table", "txt"), ("json", "json")] {
            let scene = copy(case);
            for step in case.steps {
                let told = run(&scene, case, step, format);
                assert_eq!(
                    (told.code, told.stderr.as_str()),
                    (1, ""),
                    "{}",
                    step.config
                );
                let path = root()
                    .join(case.folder)
                    .join(format!("{}.{ending}", step.expected));
                expect(&path, &body(&told.stdout));
            }
        }
    }
}

/// Forms beside table and JSON: their names as endings, of the case that has everything in it.
const FORMS: [&str; 5] = ["html", "md", "csv", "ndjson", "xml"];

/// The report without the ids of its runs and the machine's times.
fn without_the_run(report: &str) -> String {
    let mut body = String::new();
    for line in report
        .lines()
        .filter(|line| !line.starts_with("{\"type\":\"run\""))
    {
        body.push_str(&without_uuids(line));
        body.push('\n');
    }
    body
}

/// Each UUID becomes `…`.
fn without_uuids(line: &str) -> String {
    const GROUPS: [usize; 5] = [8, 4, 4, 4, 12];
    const UUID_CHARS: usize = 36;
    let is_uuid = |text: &str| {
        let groups: Vec<&str> = text.split('-').collect();
        groups.len() == GROUPS.len()
            && groups.iter().zip(GROUPS).all(|(group, chars)| {
                group.len() == chars && group.bytes().all(|byte| byte.is_ascii_hexdigit())
            })
    };
    let mut shown = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        match rest.get(..UUID_CHARS).filter(|text| is_uuid(text)) {
            Some(_) => {
                shown.push('…');
                rest = &rest[UUID_CHARS..];
            }
            None => {
                shown.push(first);
                rest = &rest[first.len_utf8()..];
            }
        }
    }
    shown
}

#[test]
fn the_case_with_everything_in_it_has_every_form_at_once() {
    let case = &CASES[0];
    let scene = copy(case);
    for step in case.steps {
        let outputs: Vec<String> = FORMS
            .iter()
            .map(|ending| format!("-o told.{ending}"))
            .collect();
        let told = scene.say(&format!(
            "run --config {}/{} --as-of {} -q --limit 1000 {}",
            case.folder,
            step.config,
            step.as_of,
            outputs.join(" ")
        ));
        assert_eq!((told.code, told.stderr.as_str()), (1, ""));
        for ending in FORMS {
            let name = format!("told.{ending}");
            let report = std::fs::read_to_string(scene.path(&name)).expect("a report");
            let path = root()
                .join(case.folder)
                .join(format!("{}.{ending}", step.expected));
            expect(&path, &without_the_run(&report));
            // The stored run gives the same again.
            let again = scene.say(&format!(
                "report latest --config {}/{} --limit 1000 -o again.{ending}",
                case.folder, step.config
            ));
            assert_eq!((again.code, again.stderr.as_str()), (0, ""));
            let again = std::fs::read_to_string(scene.path(&format!("again.{ending}")));
            assert_eq!(again.expect("a report"), report, "{ending}");
        }
    }
}

#[test]
fn a_second_run_writes_no_repair_and_tells_the_same_open_breaks_with_their_age() {
    for case in CASES {
        let scene = copy(case);
        let first = run(&scene, case, &case.steps[0], "json").json();
        let later = Step {
            as_of: "2026-03-10T07:00:00Z",
            ..case.steps[0]
        };
        let second = run(&scene, case, &later, "json").json();
        assert_eq!(second["repairs"], Value::Array(Vec::new()));
        assert_eq!(open(&first), open(&second));
        assert_eq!(second["resolved"], Value::Array(Vec::new()));
        for item in second["breaks"].as_array().expect("breaks") {
            assert_eq!(
                (&item["new"], &item["age_seconds"]),
                (&Value::from(false), &Value::from(3600)),
                "{item}"
            );
        }
        // Nothing that was in order is lost: the whole files again, without a memory, match as many.
        let whole = scene
            .say(&format!(
                "run --config {}/{} --from {} --to {} --as-of {} -f json",
                case.folder, case.steps[0].config, case.from, later.as_of, later.as_of
            ))
            .json();
        let matched = |report: &Value| report["summary"]["matched"].as_u64().expect("a count");
        assert!(
            matched(&whole) >= matched(&first),
            "{} {}",
            matched(&whole),
            matched(&first)
        );
        assert_eq!(whole["repairs"], Value::Array(Vec::new()));
    }
}

#[test]
fn every_break_that_files_can_show_is_in_the_sample() {
    let case = &CASES[0];
    let scene = copy(case);
    let mut seen = BTreeSet::new();
    for step in case.steps {
        seen.extend(classes(&run(&scene, case, step, "json").json()));
    }
    // One is made by `watermark set`, the other by a row that changes while a run writes.
    let not_from_files = [BreakClass::CoverageGap, BreakClass::RepairConflict];
    for class in BreakClass::ALL {
        assert_eq!(
            seen.contains(class.as_str()),
            !not_from_files.contains(class),
            "{class}"
        );
    }
}

#[test]
fn what_is_next_resolves_what_was_open() {
    let case = &CASES[0];
    let scene = copy(case);
    run(&scene, case, &case.steps[0], "json");
    let next = run(&scene, case, &case.steps[1], "json").json();
    let resolved: Vec<&str> = next["resolved"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|item| item["class"].as_str().expect("a class"))
        .collect();
    assert_eq!(resolved, ["duplicate_charge", "missing_processor"]);
}

#[test]
fn every_built_in_profile_has_a_case() {
    let shown: BTreeSet<String> = CASES
        .iter()
        .filter_map(|case| {
            let config = root().join(case.folder).join(case.steps[0].config);
            let config = std::fs::read_to_string(config).expect(case.folder);
            let profile = config
                .lines()
                .find_map(|line| line.strip_prefix("profile = "))?;
            Some(profile.split('"').nth(1)?.to_owned())
        })
        .collect();
    let missing: Vec<&str> = processor::built_in_names()
        .filter(|name| !shown.contains(*name))
        .collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn every_case_is_tested_and_every_expectation_has_a_case() {
    let mut with_config = BTreeSet::new();
    let mut with_expectation = BTreeSet::new();
    let mut folders = vec![root().join("sample-data")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                folders.push(path);
            } else if name == "paysweep.toml" {
                with_config.insert(folder.clone());
            } else if name.starts_with("expected") {
                with_expectation.insert(path);
            }
        }
    }
    let tested: BTreeSet<PathBuf> = CASES.iter().map(|case| root().join(case.folder)).collect();
    assert_eq!(with_config, tested);
    let expected: BTreeSet<PathBuf> = CASES
        .iter()
        .flat_map(|case| {
            case.steps.iter().flat_map(|step| {
                let others = if case.folder == CASES[0].folder {
                    &FORMS[..]
                } else {
                    &[]
                };
                ["txt", "json"].iter().chain(others).map(|ending| {
                    root()
                        .join(case.folder)
                        .join(format!("{}.{ending}", step.expected))
                })
            })
        })
        .collect();
    if std::env::var("UPDATE_EXPECT").is_err() {
        assert_eq!(with_expectation, expected);
    }
}
