//! The other forms of a report: schema, lines, CSV, `JUnit`, Markdown, and what each of them holds in common.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use paysweep::report::redact::{Column, redacted};
use paysweep::report::{Form, RenderOptions, RunReport, json, markdown};
use serde_json::{Value, json};

use crate::report::{duplicate, full, sample, shown};
use crate::scene::Scene;

pub(crate) fn as_form(report: &RunReport, form: Form) -> String {
    shown(report, form, RenderOptions::default())
}

/// A report that somebody wants to do harm with.
pub(crate) fn hostile() -> RunReport {
    let mut report = full();
    let text = "</script><script>window.harmed = 1</script><img src=x onerror=\"window.harmed = 1\">=1+1 @team #12 `|` ]]> [a](javascript:alert(1)) \u{1b}[2J\u{202e}\0\u{ffff}";
    report.breaks[2].item.intent_id = text.to_owned();
    report.breaks[2].item.operation_id = format!("=cmd|' /C calc'!A0{text}");
    report.breaks[2].item.why = format!("seen: {text}");
    report.breaks[1].also_operations = vec![text.to_owned()];
    report.breaks[1].item.account = text.to_owned();
    report.repairs[0].intent_id = text.to_owned();
    report.resolved[0].intent_id = text.to_owned();
    report.checks[1].detail = text.to_owned();
    report.warnings[0].message = text.to_owned();
    report.sources[0].files[0].path = text.to_owned();
    report.outcome.reasons[0].message = text.to_owned();
    report.carried.runs.push(text.to_owned());
    report.run.id = text.to_owned();
    report
}

/// A report of so many breaks.
pub(crate) fn long(breaks: usize) -> RunReport {
    let mut report = sample();
    report.breaks = (0..breaks)
        .map(|number| {
            let mut line = duplicate("b", &format!("ch_{number:05}"));
            line.item.id = format!("{number:032x}");
            line.item.intent_id = format!("PAY-{:05}", breaks - number);
            line
        })
        .collect();
    report
}

// ---------------------------------------------------------------- the schema

/// The published schema, and the same with every field that it does not name forbidden.
fn schema() -> (Value, Value) {
    fn close(value: &mut Value) {
        match value {
            Value::Object(fields) => {
                if fields.contains_key("properties") {
                    fields.insert("additionalProperties".to_owned(), json!(false));
                }
                fields.values_mut().for_each(close);
            }
            Value::Array(list) => list.iter_mut().for_each(close),
            _ => {}
        }
    }
    let open: Value = serde_json::from_str(json::JSON_SCHEMA).expect("the schema is JSON");
    let mut closed = open.clone();
    close(&mut closed);
    (open, closed)
}

fn problems(schema: &Value, report: &str) -> Vec<String> {
    let report: Value = serde_json::from_str(report).expect("JSON");
    let validator = jsonschema::validator_for(schema).expect("a schema");
    validator
        .iter_errors(&report)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

#[test]
fn every_report_is_what_the_published_schema_says_and_holds_no_field_more() {
    let (_, closed) = schema();
    let scene = Scene::behind();
    let mut reports = vec![
        as_form(&sample(), Form::Json),
        as_form(&full(), Form::Json),
        as_form(&hostile(), Form::Json),
        scene
            .now("diff -f json --include matches,pending,ignored")
            .stdout,
    ];
    for line in [
        "run -n -f json --include matches,pending,ignored",
        "run -f json --include matches,pending,ignored",
        "run -f json",
        "report latest -f json",
    ] {
        reports.push(scene.now(line).stdout);
    }
    for case in ["expected", "expected-next"] {
        let path = format!("sample-data/canonical/night/{case}.json");
        let text = std::fs::read_to_string(path).expect("a sample");
        // The object `run` is left out of the samples.
        let run = "  \"run\": {\"as_of\":\"2026-03-10T06:00:00Z\",\"command\":\"run\",\"config_digest\":null,\"config_path\":null,\"dry_run\":false,\"finished_at\":\"2026-03-10T06:00:00Z\",\"id\":null,\"started_at\":\"2026-03-10T06:00:00Z\",\"version\":\"0\"},\n  \"schema\": ";
        reports.push(text.replacen("  \"schema\": ", run, 1));
    }
    for report in &reports {
        assert_eq!(problems(&closed, report), Vec::<String>::new(), "{report}");
    }
}

#[test]
fn the_schema_refuses_what_is_no_report() {
    let (open, _) = schema();
    let report = as_form(&full(), Form::Json);
    for (from, to) in [
        ("\"schema\": \"paysweep.report\"", "\"schema\": \"other\""),
        ("\"minor\":4200", "\"minor\":42.5"),
        ("\"severity\":\"critical\"", "\"severity\":\"awful\""),
        ("\"age_seconds\":259200", "\"age_seconds\":\"old\""),
        ("  \"totals\": [", "  \"sums\": ["),
    ] {
        let other = report.replacen(from, to, 1);
        assert_ne!(other, report, "{from}");
        assert_ne!(problems(&open, &other), Vec::<String>::new(), "{to}");
    }
    // Fields may be added.
    let more = report.replacen("  \"totals\": [", "  \"more\": 1,\n  \"totals\": [", 1);
    assert_eq!(problems(&open, &more), Vec::<String>::new());
}

#[test]
fn every_word_of_the_catalogues_is_in_the_schema() {
    use paysweep::model::breaks::{BreakClass, BreakState, Severity};
    use paysweep::model::repair::{RepairAction, RepairState};
    use paysweep::model::verdict::{IgnoreReason, Rule};
    let (open, _) = schema();
    let words = |pointer: &str| -> Vec<String> {
        let list = open.pointer(pointer).and_then(Value::as_array);
        let list = list.unwrap_or_else(|| panic!("{pointer}"));
        list.iter()
            .filter_map(|it| it.as_str().map(str::to_owned))
            .collect()
    };
    let all = |list: Vec<&str>| -> Vec<String> { list.into_iter().map(str::to_owned).collect() };
    for (pointer, want) in [
        (
            "/$defs/break/properties/class/enum",
            BreakClass::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/$defs/break/properties/severity/enum",
            Severity::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/$defs/break/properties/state/enum",
            BreakState::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/$defs/repair/properties/action/enum",
            RepairAction::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/$defs/repair/properties/state/enum",
            RepairState::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/properties/ignored/items/properties/reason/enum",
            IgnoreReason::ALL.iter().map(|it| it.as_str()).collect(),
        ),
        (
            "/properties/matches/items/properties/rule/enum",
            Rule::ALL
                .iter()
                .map(|it| it.as_str())
                .collect::<Vec<&str>>(),
        ),
    ] {
        assert_eq!(words(pointer), all(want), "{pointer}");
    }
}

// ---------------------------------------------------------------- lines, CSV, JUnit, Markdown

#[test]
fn lines_begin_with_the_run_and_end_with_the_outcome_and_are_the_objects_of_the_report() {
    let report = full();
    let whole: Value = serde_json::from_str(&as_form(&report, Form::Json)).expect("JSON");
    let text = as_form(&report, Form::Ndjson);
    let mut lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    let types: Vec<String> = lines
        .iter()
        .map(|line| line["type"].as_str().expect("a type").to_owned())
        .collect();
    assert_eq!(
        (types[0].as_str(), types.last().map(String::as_str)),
        ("run", Some("outcome"))
    );
    for line in &mut lines {
        line.as_object_mut().expect("an object").remove("type");
    }
    let of = |name: &str| -> Vec<Value> {
        let lines = lines.iter().zip(&types);
        lines
            .filter(|(_, it)| *it == name)
            .map(|(line, _)| line.clone())
            .collect()
    };
    for (name, pointer) in [
        ("source", "/sources"),
        ("total", "/totals"),
        ("statement", "/statement"),
        ("day", "/days"),
        ("break", "/breaks"),
        ("repair", "/repairs"),
        ("carried_break", "/carried/breaks"),
        ("carried_repair", "/carried/repairs"),
        ("resolved", "/resolved"),
        ("match", "/matches"),
        ("pending", "/pending"),
        ("ignored", "/ignored"),
        ("check", "/checks"),
        ("warning", "/warnings"),
        ("delivery", "/deliveries"),
    ] {
        assert_eq!(
            Some(&Value::Array(of(name))),
            whole.pointer(pointer),
            "{name}"
        );
    }
    for (name, field) in [
        ("window", "window"),
        ("summary", "summary"),
        ("accounting", "accounting"),
        ("outcome", "outcome"),
    ] {
        assert_eq!(of(name), [whole[field].clone()], "{name}");
    }
}

#[test]
fn csv_has_a_row_for_each_break_and_no_cell_that_a_spreadsheet_would_run() {
    let mut report = hostile();
    report.breaks[2].item.delta = Some(crate::report::aud(-150));
    let text = as_form(&report, Form::Csv);
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let at = |name: &str| header.iter().position(|it| it == name).expect("a column");
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let whole = report.breaks.len() + report.resolved.len() + report.carried.breaks.len();
    assert_eq!(rows.len(), whole);
    let figures = ["amount", "amount_minor", "difference", "difference_minor"].map(at);
    for row in &rows {
        for (column, cell) in row.iter().enumerate() {
            let is_run = cell.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
            assert!(!is_run || figures.contains(&column), "{cell:?}");
        }
    }
    let changed = rows
        .iter()
        .find(|row| &row[at("difference_minor")] == "-150");
    assert_eq!(
        &changed.expect("an amount is never touched")[at("difference")],
        "-1.50"
    );
    let counts = ["new", "persisting", "resolved"].map(|change| {
        rows.iter()
            .filter(|row| &row[at("change")] == change)
            .count()
    });
    assert_eq!(counts, [1, 3, 1]);
}

#[test]
fn junit_fails_a_case_for_each_class_that_needs_a_person_and_holds_hostile_text() {
    for report in [sample(), full(), hostile()] {
        let text = as_form(&report, Form::Junit);
        assert!(text.starts_with("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites"));
        assert_eq!(text.matches("<failure ").count(), 1, "{text}");
        assert!(
            text.contains("tests=\"20\" failures=\"1\" errors=\"0\""),
            "{text}"
        );
        let is_xml = |letter: char| matches!(letter, '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
        assert!(text.chars().all(is_xml), "{text:?}");
        // Nothing of a text opens an element: every one is ours.
        for element in text.split('<').skip(1) {
            let name: String = element
                .trim_start_matches('/')
                .chars()
                .take_while(|it| it.is_alphanumeric() || *it == '?')
                .collect();
            assert!(
                [
                    "?xml",
                    "testsuites",
                    "testsuite",
                    "testcase",
                    "failure",
                    "error"
                ]
                .contains(&name.as_str()),
                "{element}"
            );
        }
    }
    let mut report = sample();
    report.sources[0].is_complete = false;
    assert_eq!(as_form(&report, Form::Junit).matches("<error ").count(), 1);
}

#[test]
fn markdown_fits_a_ticket_however_much_there_is_and_says_what_it_leaves_out() {
    let options = RenderOptions {
        limit: usize::MAX,
        ..RenderOptions::default()
    };
    let text = shown(&long(10_000), Form::Markdown, options);
    assert!(
        text.chars().count() <= markdown::CHARS_MAX,
        "{}",
        text.len()
    );
    let rows = text.matches("| `0000").count();
    assert!(rows > 100, "{rows}");
    assert!(
        text.contains(&format!("… and {} more", 10_000 - rows)),
        "{rows}"
    );
    // What follows the breaks has its place all the same.
    assert!(text.contains("## Repairs") && text.contains("## Checks"));
    let text = as_form(&hostile(), Form::Markdown);
    let plain = outside_of_code(&text);
    for harm in ["<script", "<img", " @team", " #12", "](javascript"] {
        assert!(!plain.contains(harm), "{harm}: {plain}");
    }
}

/// Markdown without its code spans: a run of backticks ends at the next run of the same length.
fn outside_of_code(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        plain.push_str(&rest[..at]);
        let run: String = rest[at..].chars().take_while(|it| *it == '`').collect();
        rest = &rest[at + run.len()..];
        let mut from = 0;
        loop {
            let at = from + rest[from..].find('`').expect("each span ends");
            let ending: String = rest[at..].chars().take_while(|it| *it == '`').collect();
            from = at + ending.len();
            if ending == run {
                break;
            }
        }
        rest = &rest[from..];
    }
    plain + rest
}

#[test]
fn ten_thousand_breaks_render_in_less_than_two_seconds_in_every_form() {
    let report = long(10_000);
    for form in Form::ALL {
        let options = RenderOptions {
            limit: usize::MAX,
            ..RenderOptions::default()
        };
        let begun = Instant::now();
        let text = shown(&report, *form, options);
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(2), "{form}: {took:?}");
        assert!(text.len() > 10_000, "{form}");
    }
}

// ---------------------------------------------------------------- the terminal

#[test]
fn a_report_is_as_wide_as_its_terminal_and_wide_characters_count_twice() {
    use unicode_width::UnicodeWidthStr;
    let mut report = full();
    report.breaks[2].item.why = "処理者は百二十円を動かし、百円が求められていた。".repeat(4);
    report.breaks[2].item.intent_id = "注文-7".to_owned();
    for columns in [60, 80, 100, 160] {
        let options = RenderOptions {
            columns,
            ..RenderOptions::default()
        };
        let text = shown(&report, Form::Table, options);
        for line in text.lines() {
            assert!(
                line.width() <= columns,
                "{columns}: {} {line}",
                line.width()
            );
            assert!(!line.ends_with(' '), "{line:?}");
        }
        let whole: String = text.chars().filter(|it| !it.is_whitespace()).collect();
        assert!(whole.contains(&report.breaks[2].item.why), "{columns}");
    }
}

// ---------------------------------------------------------------- redaction

#[test]
fn what_is_masked_is_in_no_form() {
    let mut report = full();
    report.breaks[2].item.intent_id = "SECRET-INTENT-1".to_owned();
    report.breaks[2].item.why = "SECRET-INTENT-1 and \"SECRET-REF\" were seen".to_owned();
    report.pending.as_mut().expect("asked for")[0].intent_id = "SECRET-INTENT-2".to_owned();
    report.repairs[0].intent_id = "SECRET-INTENT-1".to_owned();
    report.repairs[0].to.parent_intent_id = "SECRET-INTENT-3".to_owned();
    let masked = redacted(&report, &[Column::IntentId]);
    for form in Form::ALL {
        let text = as_form(&masked, *form);
        assert!(!text.contains("SECRET"), "{form}: {text}");
        assert!(as_form(&report, *form).contains("SECRET"), "{form}");
    }
    assert!(
        as_form(&masked, Form::Json).contains("…NT-1"),
        "its end is kept"
    );
    let masked = redacted(&report, &[Column::Reference]);
    let text = as_form(&masked, Form::Json);
    assert!(
        !text.contains("SECRET-REF") && text.contains("SECRET-INTENT-1 and"),
        "{text}"
    );
    assert_eq!(
        as_form(&redacted(&report, &[]), Form::Json),
        as_form(&report, Form::Json)
    );
}

#[test]
fn the_configuration_masks_what_is_told_and_a_column_that_no_report_has_is_refused() {
    let mask = "[report]\nredact = [\"intent_id\", \"operation_id\"]\nfiles = [\"told.json\", \"told.html\"]";
    let scene = Scene::new(
        "processor-1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,OUR-NUMBER-1\n",
        "OUR-NUMBER-1,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,processor-1\n",
    )
    .with(mask);
    let told = scene.now("run");
    assert_eq!(told.code, 1);
    let mut texts = vec![told.stdout];
    for name in ["told.json", "told.html"] {
        let path = scene.path(name);
        let mode = std::fs::metadata(&path).expect(name).permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
        texts.push(std::fs::read_to_string(path).expect(name));
    }
    for line in [
        "report latest -f json",
        "report latest -f csv",
        "runs show latest -f json",
    ] {
        texts.push(scene.now(line).stdout);
    }
    for text in texts {
        assert!(
            !text.contains("OUR-NUMBER") && !text.contains("processor-1"),
            "{text}"
        );
    }
    let refused = Scene::mismatch()
        .with("[report]\nredact = [\"customer_email\"]")
        .now("run");
    assert_eq!(refused.code, 2);
    assert!(
        refused
            .stderr
            .contains("no report holds a column \"customer_email\""),
        "{}",
        refused.stderr
    );
}

// ---------------------------------------------------------------- files and streams

#[test]
fn any_number_of_files_is_written_at_once_each_in_its_own_form() {
    let scene = Scene::mismatch();
    let told = scene.now("run -q -f ndjson -o a.html -o b.md -o c.csv -o d.xml -o e.txt -o f.json -o g -o html=h.out");
    assert_eq!((told.code, told.stderr.as_str()), (1, ""));
    assert!(
        told.stdout.starts_with("{\"type\":\"run\""),
        "{}",
        told.stdout
    );
    for (name, begins) in [
        ("a.html", "<!doctype html>"),
        ("b.md", "# REVIEW"),
        ("c.csv", "run_id,"),
        ("d.xml", "<?xml"),
        ("e.txt", "REVIEW"),
        ("f.json", "{\n"),
        ("g", "{\"type\":\"run\""),
        ("h.out", "<!doctype html>"),
    ] {
        let text = std::fs::read_to_string(scene.path(name)).expect(name);
        assert!(text.starts_with(begins), "{name}: {text}");
    }
    let again = scene.now("report latest -f markdown -o again.html");
    assert_eq!(
        (again.code, again.stdout.starts_with("# REVIEW")),
        (0, true)
    );
    let text = |name| std::fs::read_to_string(scene.path(name)).expect(name);
    assert_eq!(text("again.html"), text("a.html"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure_in_any_form() {
    use std::process::Stdio;
    let scene = Scene::mismatch();
    for form in Form::ALL {
        let mut child = scene
            .command(&format!("run -n --as-of {} -f {form}", crate::scene::NOW))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        let ended = child.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(1), "{form}");
        assert!(ended.stderr.is_empty(), "{form}: {ended:?}");
    }
}

// ---------------------------------------------------------------- the statement

#[test]
fn the_statement_goes_on_from_night_to_night_and_closes_to_zero() {
    let scene = Scene::new(
        "ch_1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,700,EUR,2026-03-09T11:00:00Z,B\n",
        "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\nB,charge,900,EUR,succeeded,2026-03-09T10:00:00Z,ch_2\n",
    );
    let minor = |report: &Value, pointer: &str| {
        let value = report.pointer(&format!("/statement/0{pointer}/minor"));
        value
            .and_then(Value::as_i64)
            .unwrap_or_else(|| panic!("{pointer}: {report}"))
    };
    let items = |report: &Value| {
        [
            "opening",
            "new",
            "changed",
            "cleared",
            "closing",
            "acknowledged",
            "residual",
        ]
        .map(|name| minor(report, &format!("/items/{name}")))
    };
    let first = scene.now("run -f json").json();
    assert_eq!(items(&first), [0, 400, 0, 0, 400, 0, 0]);
    assert_eq!(
        ["/processor", "/local", "/difference", "/residual"].map(|it| minor(&first, it)),
        [1900, 1900, 0, 0]
    );
    let id = first["breaks"][0]["id"].as_str().expect("an id").to_owned();
    scene.now(&format!(
        "breaks ack {id} --until 2026-04-01 --reason known"
    ));
    // One is corrected by us, the other grows.
    scene.operations("ch_1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,700,EUR,2026-03-09T11:00:00Z,B\nch_3,charge,succeeded,55,EUR,2026-03-10T07:00:00Z,C\n");
    scene.intents("A,charge,1200,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\nB,charge,950,EUR,succeeded,2026-03-09T10:00:00Z,ch_2\n");
    let second = scene.say("run -f json --as-of 2026-03-11T06:00:00Z").json();
    let [opening, new, changed, cleared, closing, _, residual] = items(&second);
    assert_eq!((opening, residual), (400, 0), "{second}");
    assert_eq!(opening + new + changed - cleared, closing);
    assert_eq!((new, changed, cleared), (55, 50, 200));
    let pass = second["checks"]
        .as_array()
        .expect("checks")
        .iter()
        .find(|it| it["name"] == "statement");
    assert_eq!(pass.expect("a check")["status"], "pass");
}

#[test]
fn a_late_row_is_told_with_how_late_it_was() {
    let scene = Scene::in_order();
    scene.now("run");
    scene.operations("ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\nch_2,charge,succeeded,500,EUR,2026-03-10T03:00:00Z,B\n");
    let told = scene.say("run -f json --as-of 2026-03-11T06:00:00Z").json();
    let late = &told["sources"][0]["lateness"];
    assert_eq!(
        (&late["arrived"], &late["latest_seconds"]),
        (&json!(1), &json!(10_800)),
        "{late}"
    );
    assert_eq!(late["late"], json!([0, 1, 0, 0, 0, 0]));
    // The first run has nothing to compare with.
    let first = Scene::in_order().now("run -f json").json();
    assert_eq!(first["sources"][0].get("lateness"), None);
}
