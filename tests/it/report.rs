//! Reports: what a person and a machine are told about a run.

use paysweep::exit::Exit;
use paysweep::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, Severity};
use paysweep::model::intent::{IntentKind, IntentStatus};
use paysweep::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use paysweep::model::run::{Basis, Tally, Total, Window};
use paysweep::model::statement::{Bridge, DayLine, Lateness, OpenItems, Side, Statement};
use paysweep::model::verdict::{IgnoreReason, Rule};
use paysweep::money::{Currency, Money};
use paysweep::report::{
    Accounting, BreakLine, Carried, Check, CheckStatus, Delivery, DeliveryStatus, FileLine, Form,
    IgnoredLine, LedgerEnd, MatchLine, Outcome, OutcomeName, PendingLine, Reason, RenderOptions,
    ResolvedLine, RunInfo, RunReport, SourceReport, Summary, Warning, json, render,
};
use paysweep::time::{Instant, Zone};

pub(crate) fn at(text: &str) -> Instant {
    Instant::parse(text).expect("RFC 3339")
}

pub(crate) fn aud(minor: i64) -> Money {
    Money::new(minor, Currency::parse("AUD").expect("a code"))
}

pub(crate) fn duplicate(id: &str, operation: &str) -> BreakLine {
    BreakLine {
        item: Break {
            id: id.repeat(32),
            class: BreakClass::DuplicateCharge,
            source: "shop".to_owned(),
            account: String::new(),
            operation_id: operation.to_owned(),
            intent_id: "CRED-88".to_owned(),
            money: Some(aud(4200)),
            delta: None,
            why: "ch_201 already satisfies CRED-88".to_owned(),
            evidence: "e".to_owned(),
            state: BreakState::Open,
            disposition: BreakDisposition::Review,
            is_sticky: false,
            first_seen_run: "run-1".to_owned(),
            first_seen_at: at("2026-03-07T12:00:00Z"),
            acknowledged_until: None,
        },
        is_new: false,
        age_seconds: 3 * 86_400,
        also_operations: Vec::new(),
    }
}

/// One purchase, three charges; the first was behind and has been repaired.
pub(crate) fn sample() -> RunReport {
    let mut behind = duplicate("a", "ch_201");
    behind.item.class = BreakClass::StatusBehind;
    behind.item.state = BreakState::Resolved;
    behind.item.disposition = BreakDisposition::Repaired;
    behind.item.first_seen_run = String::new();
    behind.is_new = true;
    behind.age_seconds = 0;
    let mut total = Total::zero(aud(0).currency);
    total.gross = 12_600;
    total.matched = 4_200;
    total.unreconciled = 8_400;
    total.at_risk = 8_400;
    RunReport {
        run: RunInfo {
            id: "0190-run".to_owned(),
            command: "run".to_owned(),
            is_dry_run: false,
            as_of: at("2026-03-10T12:00:00Z"),
            started_at: at("2026-03-10T12:00:01Z"),
            finished_at: at("2026-03-10T12:00:02Z"),
            version: "0.1.0".to_owned(),
            config_path: "paysweep.toml".to_owned(),
            config_digest: "d".repeat(64),
            ledger: Some(LedgerEnd {
                entries: 3,
                hash: "c".repeat(64),
            }),
        },
        window: Window {
            from: at("2026-03-09T00:00:00Z"),
            to: at("2026-03-10T12:00:00Z"),
            basis: Basis::Watermark,
        },
        zone: Zone::parse("Europe/Paris").expect("a zone"),
        outcome: Outcome {
            exit: Exit::Differences,
            name: OutcomeName::Review,
            reasons: vec![
                Reason {
                    code: "duplicate_charge".to_owned(),
                    count: 2,
                    message: String::new(),
                },
                Reason {
                    code: "status_behind".to_owned(),
                    count: 1,
                    message: String::new(),
                },
            ],
        },
        sources: vec![SourceReport {
            name: "shop".to_owned(),
            is_complete: true,
            operations: 3,
            outside_window: 1,
            rejected_rows: 0,
            covered: Some(at("2026-03-10T12:00:00Z")),
            watermark_before: Some(at("2026-03-09T00:00:00Z")),
            watermark_after: Some(at("2026-03-10T12:00:00Z")),
            files: vec![FileLine {
                path: "operations.csv".to_owned(),
                bytes: 321,
                rows: 4,
                sha256: "f".repeat(64),
            }],
            lateness: None,
        }],
        totals: vec![total],
        statement: Vec::new(),
        days: Vec::new(),
        summary: Summary {
            operations: 3,
            intents: 1,
            matched: 1,
            pending: 0,
            ignored: 0,
        },
        accounting: Accounting {
            operations: Tally {
                read: 3,
                matched: 1,
                unmatched: 2,
                ..Tally::default()
            },
            intents: Tally {
                read: 1,
                matched: 1,
                ..Tally::default()
            },
        },
        breaks: vec![behind, duplicate("b", "ch_202"), duplicate("c", "ch_203")],
        repairs: vec![Repair {
            id: "d".repeat(32),
            break_id: "a".repeat(32),
            source: "shop".to_owned(),
            class: BreakClass::StatusBehind,
            action: RepairAction::SetStatus,
            intent_id: "CRED-88".to_owned(),
            operation_id: "ch_201".to_owned(),
            account: String::new(),
            from: Some(RepairSide {
                kind: None,
                status: IntentStatus::Pending,
                processor_ref: String::new(),
                parent_intent_id: String::new(),
                money: None,
            }),
            to: RepairSide {
                kind: None,
                status: IntentStatus::Succeeded,
                processor_ref: "ch_201".to_owned(),
                parent_intent_id: String::new(),
                money: None,
            },
            planned_version: 1,
            state: RepairState::Applied,
            occurred_at: at("2026-03-10T07:00:00Z"),
            note: String::new(),
            expires_at: None,
            idempotency_key: String::new(),
        }],
        carried: Carried::default(),
        resolved: vec![ResolvedLine {
            id: "e".repeat(32),
            class: BreakClass::StatusAhead,
            intent_id: "ORD-7".to_owned(),
            operation_id: String::new(),
            money: None,
        }],
        checks: vec![
            Check {
                name: "accounted".to_owned(),
                status: CheckStatus::Pass,
                detail: "counts in = counts out, on both sides".to_owned(),
            },
            Check {
                name: "confirmed".to_owned(),
                status: CheckStatus::Info,
                detail: "1 repair is not yet confirmed, the oldest for 0 s".to_owned(),
            },
        ],
        warnings: vec![Warning {
            code: "feed_unchanged".to_owned(),
            message: "operations.csv has the bytes of the last run".to_owned(),
        }],
        deliveries: Vec::new(),
        matches: None,
        pending: None,
        ignored: None,
    }
}

pub(crate) fn shown(report: &RunReport, form: Form, options: RenderOptions) -> String {
    let mut bytes = Vec::new();
    render(report, form, options, &mut bytes).expect("memory takes every byte");
    String::from_utf8(bytes).expect("UTF-8")
}

fn as_json(report: &RunReport) -> String {
    shown(report, Form::Json, RenderOptions::default())
}

fn as_text(report: &RunReport) -> String {
    shown(report, Form::Table, RenderOptions::default())
}

/// Every list and every optional field at once.
pub(crate) fn full() -> RunReport {
    let mut report = sample();
    report.matches = Some(vec![MatchLine {
        intent_id: "CRED-88".to_owned(),
        operation_id: "ch_201".to_owned(),
        account: "acct_1".to_owned(),
        rule: Rule::Reference,
        delta: Some(aud(1)),
        settled: Some(aud(4107)),
    }]);
    report.pending = Some(vec![PendingLine {
        intent_id: "ORD-9".to_owned(),
        operation_id: String::new(),
        due_at: Some(at("2026-03-10T12:30:00Z")),
        why: "too young".to_owned(),
    }]);
    report.ignored = Some(vec![IgnoredLine {
        intent_id: String::new(),
        operation_id: "ch_8".to_owned(),
        reason: IgnoreReason::FailedAttempt,
        money: None,
        folded_into: "ch_7".to_owned(),
    }]);
    "acct_1".clone_into(&mut report.breaks[1].item.account);
    report.resolved[0].money = Some(aud(500));
    report.sources[0].lateness = Some(Lateness {
        arrived: 3,
        late: vec![1, 0, 1, 0, 0, 0],
        latest_seconds: 64_000,
        lag_seconds: 0,
        lookback_seconds: 259_200,
    });
    let mut bridge = Bridge {
        processor: 12_600,
        local: 0,
        explained: Vec::new(),
    };
    bridge.explain("duplicate_charge", Side::Processor, 8400);
    bridge.explain("status_behind", Side::Processor, 4200);
    report.statement = vec![Statement {
        currency: aud(0).currency,
        items: OpenItems {
            opening: 8900,
            new: 4200,
            changed: 0,
            cleared: 4700,
            closing: 8400,
            acknowledged: 4200,
        },
        bridge,
    }];
    report.deliveries = vec![Delivery {
        channel: "chat".to_owned(),
        kind: "slack".to_owned(),
        is_required: false,
        status: DeliveryStatus::Failed,
        detail: "it answered 500".to_owned(),
    }];
    report.days = vec![DayLine {
        day: "2026-03-09".to_owned(),
        matched: 1,
        pending: 0,
        ignored: 0,
        unmatched: 2,
    }];
    report.breaks[1].also_operations = vec!["ch_204".to_owned()];
    report.breaks[1].item.state = BreakState::Acknowledged;
    report.breaks[1].item.acknowledged_until = Some(at("2026-04-01T00:00:00Z"));
    let mut refund = report.repairs[0].clone();
    refund.action = RepairAction::RecordRefund;
    refund.from = None;
    refund.to.kind = Some(IntentKind::Refund);
    "CRED-88".clone_into(&mut refund.to.parent_intent_id);
    refund.to.money = Some(aud(4200));
    report.carried = Carried {
        runs: vec!["0189-run".to_owned()],
        breaks: vec![duplicate("f", "ch_1")],
        repairs: vec![refund],
    };
    report
}

#[test]
fn the_json_report_has_the_shape_of_the_contract() {
    let text = as_json(&full());
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    for (pointer, want) in [
        ("/schema", serde_json::json!("paysweep.report")),
        ("/schema_version", serde_json::json!("1.0")),
        ("/run/dry_run", serde_json::json!(false)),
        ("/run/as_of", serde_json::json!("2026-03-10T12:00:00Z")),
        ("/window/basis", serde_json::json!("watermark")),
        ("/window/from", serde_json::json!("2026-03-09T00:00:00Z")),
        (
            "/window/from_local",
            serde_json::json!("2026-03-09T01:00:00+01:00"),
        ),
        ("/window/zone", serde_json::json!("Europe/Paris")),
        ("/outcome/exit_code", serde_json::json!(1)),
        ("/outcome/name", serde_json::json!("review")),
        (
            "/outcome/reasons/0",
            serde_json::json!({"code": "duplicate_charge", "count": 2}),
        ),
        ("/sources/0/complete", serde_json::json!(true)),
        (
            "/sources/0/watermark_after",
            serde_json::json!("2026-03-10T12:00:00Z"),
        ),
        (
            "/totals/0/at_risk",
            serde_json::json!({"amount": "84.00", "currency": "AUD", "minor": 8400}),
        ),
        (
            "/summary",
            serde_json::json!({
                "operations": 3, "intents": 1, "matched": 1, "breaks": 3, "repairs": 1,
                "pending": 0, "ignored": 0,
                "by_class": {"duplicate_charge": 2, "status_behind": 1},
            }),
        ),
        (
            "/accounting/operations",
            serde_json::json!({"read": 3, "matched": 1, "pending": 0, "ignored": 0, "unmatched": 2}),
        ),
        ("/breaks/0/disposition", serde_json::json!("repaired")),
        ("/breaks/0/first_seen_run", serde_json::Value::Null),
        ("/breaks/0/new", serde_json::json!(true)),
        ("/breaks/1/account", serde_json::json!("acct_1")),
        (
            "/breaks/1/acknowledged_until",
            serde_json::json!("2026-04-01T00:00:00Z"),
        ),
        (
            "/breaks/2",
            serde_json::json!({
                "id": "c".repeat(32), "class": "duplicate_charge", "severity": "critical",
                "state": "open", "disposition": "review", "operation_id": "ch_203",
                "intent_id": "CRED-88", "source": "shop",
                "money": {"amount": "42.00", "currency": "AUD", "minor": 4200}, "delta": null,
                "first_seen_run": "run-1", "age_seconds": 259_200, "new": false,
                "why": "ch_201 already satisfies CRED-88",
                "next_step": BreakClass::DuplicateCharge.entry().next_step,
            }),
        ),
        (
            "/repairs/0",
            serde_json::json!({
                "id": "d".repeat(32), "break_id": "a".repeat(32), "action": "set_status",
                "class": "status_behind", "intent_id": "CRED-88", "operation_id": "ch_201",
                "source": "shop", "from": {"status": "pending", "processor_ref": null},
                "to": {"status": "succeeded", "processor_ref": "ch_201"}, "state": "applied",
                "occurred_at": "2026-03-10T07:00:00Z", "age_seconds": 18_000,
            }),
        ),
        (
            "/carried/repairs/0/to",
            serde_json::json!({
                "kind": "refund", "status": "succeeded", "processor_ref": "ch_201",
                "parent_intent_id": "CRED-88", "amount_minor": 4200, "currency": "AUD",
            }),
        ),
        ("/resolved/0/operation_id", serde_json::Value::Null),
        (
            "/resolved/0/money",
            serde_json::json!({"amount": "5.00", "currency": "AUD", "minor": 500}),
        ),
        ("/statement/0/residual/minor", serde_json::json!(0)),
        ("/statement/0/items/residual/minor", serde_json::json!(0)),
        (
            "/statement/0/explained/0/code",
            serde_json::json!("duplicate_charge"),
        ),
        ("/days/0/unmatched", serde_json::json!(2)),
        ("/sources/0/lateness/late/2", serde_json::json!(1)),
        ("/matches/0/rule", serde_json::json!("reference")),
        (
            "/matches/0/settled",
            serde_json::json!({"amount": "41.07", "currency": "AUD", "minor": 4107}),
        ),
        (
            "/pending/0",
            serde_json::json!({
                "intent_id": "ORD-9", "operation_id": null, "due_at": "2026-03-10T12:30:00Z",
                "why": "too young",
            }),
        ),
        (
            "/ignored/0",
            serde_json::json!({
                "intent_id": null, "operation_id": "ch_8", "reason": "failed_attempt", "folded_into": "ch_7",
            }),
        ),
        ("/checks/0/status", serde_json::json!("pass")),
        ("/warnings/0/code", serde_json::json!("feed_unchanged")),
    ] {
        assert_eq!(value.pointer(pointer), Some(&want), "{pointer}");
    }
}

#[test]
fn a_list_that_nobody_asked_for_is_not_in_the_report() {
    let value: serde_json::Value = serde_json::from_str(&as_json(&sample())).expect("JSON");
    for list in ["matches", "pending", "ignored"] {
        assert_eq!(value.get(list), None);
    }
}

#[test]
fn the_keys_are_sorted_whatever_is_in_the_report() {
    let text = as_json(&full());
    // serde_json keeps the keys of a value sorted: what it writes again differs only where ours are not.
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let compact: String = text.lines().map(str::trim_start).collect();
    assert_eq!(
        compact.replace("\": ", "\":"),
        value.to_string().replace("\": ", "\":")
    );
}

#[test]
fn a_sum_beyond_64_bits_is_written_to_the_last_digit_and_read_again() {
    let mut report = sample();
    report.totals[0].gross = i128::from(i64::MAX) * 1000;
    let text = as_json(&report);
    assert!(text.contains("\"minor\":9223372036854775807000"), "{text}");
    let again = json::read(&text).expect("a report");
    assert_eq!(again.totals, report.totals);
}

#[test]
fn a_stored_report_gives_every_form_again() {
    let report = full();
    let again = json::read(&as_json(&report)).expect("a report");
    assert_eq!(as_json(&again), as_json(&report));
    assert_eq!(as_text(&again), as_text(&report));
    for bad in ["", "{}", "{\"schema\": \"other\"}"] {
        assert!(json::read(bad).is_err(), "{bad:?}");
    }
    let later =
        as_json(&report).replace("\"schema_version\": \"1.0\"", "\"schema_version\": \"2.0\"");
    let told = json::read(&later).expect_err("a later shape").to_string();
    assert!(told.contains("2.0"), "{told}");
}

#[test]
fn the_window_of_a_comparison_of_files_may_have_no_ends() {
    let mut report = sample();
    report.window = Window {
        from: Instant::MIN,
        to: Instant::MAX,
        basis: Basis::Files,
    };
    let text = as_json(&report);
    assert!(text.contains("\"from\":null"), "{text}");
    assert_eq!(json::read(&text).expect("a report").window, report.window);
    assert!(as_text(&report).contains("the beginning to the end of time"));
}

#[test]
fn a_person_reads_the_verdict_first() {
    assert_eq!(
        as_text(&sample()),
        "\
REVIEW: 2 breaks need a person (exit 1)
  because of: duplicate_charge 2, status_behind 1
  run     run · 0190-run · as of 2026-03-10T12:00:00Z · paysweep 0.1.0
  ledger  3 steps, sealed by cccccccccccccccccccccccccccccccc…
  window  2026-03-09T00:00:00 to 2026-03-10T12:00:00 UTC (from the watermark; the end is excluded)
          2026-03-09T01:00:00+01:00 to 2026-03-10T13:00:00+01:00 in Europe/Paris

At risk: 84.00 AUD
  currency  at risk   gross  matched  unreconciled  fees   net
  AUD         84.00  126.00    42.00         84.00  0.00  0.00

Rows
  operations  read 3 = matched 1 + pending 0 + ignored 0 + unmatched 2
  intents     read 1 = matched 1 + pending 0 + ignored 0 + unmatched 0

Breaks: 2 open, 2 persisting, 1 closed by a repair, 1 resolved since the last run

  CRITICAL  duplicate_charge  2 breaks
    a further success of the same amount and currency for one intent or one logical payment
    next: Refund the extra charge at the processor; the break ends when the refund is seen.
    bbbbbbbbbbbb  intent CRED-88 · operation ch_202 · 42.00 AUD · open for 3 d
      ch_201 already satisfies CRED-88
    cccccccccccc  intent CRED-88 · operation ch_203 · 42.00 AUD · open for 3 d
      ch_201 already satisfies CRED-88

Repairs: 1 applied
  dddddddddddd  set_status  intent CRED-88: pending → succeeded · operation ch_201 · applied ·
      happened 5 h ago

Resolved: 1 break was seen in order again
  eeeeeeeeeeee  status_ahead  intent ORD-7

Checks: 1 passed
  info  confirmed: 1 repair is not yet confirmed, the oldest for 0 s
  warn  feed_unchanged: operations.csv has the bytes of the last run

Sources
  shop  complete · 3 operations · 1 outside the window · covered to 2026-03-10T12:00:00Z
    watermark 2026-03-09T00:00:00Z → 2026-03-10T12:00:00Z
    operations.csv · 4 rows · 321 bytes
"
    );
}

#[test]
fn the_verdict_says_what_the_exit_code_means() {
    for (exit, name, want) in [
        (
            Exit::Ok,
            OutcomeName::Clean,
            "CLEAN: nothing to tell (exit 0)",
        ),
        (
            Exit::Differences,
            OutcomeName::Repaired,
            "REPAIRED: every break that was found was closed by a repair of this run (exit 1)",
        ),
        (
            Exit::Incomplete,
            OutcomeName::Exit(Exit::Incomplete),
            "INCOMPLETE: part of a source was read: no absence verdicts for it, its watermark stays (exit 3)",
        ),
    ] {
        let mut report = sample();
        report.outcome.exit = exit;
        report.outcome.name = name;
        report.run.is_dry_run = true;
        let text = as_text(&report);
        assert_eq!(text.lines().next(), Some(want));
        assert!(text.contains("dry run: nothing was written"));
    }
}

#[test]
fn a_break_that_outlives_its_repair_is_for_a_person() {
    let mut report = sample();
    report.breaks.truncate(1);
    let item = &mut report.breaks[0].item;
    item.class = BreakClass::StatusReversed;
    item.state = BreakState::Open;
    item.is_sticky = true;
    assert!(as_text(&report).contains("Breaks: 1 open, 1 new"));
    assert!(as_json(&report).contains("\"disposition\":\"review\""));
}

#[test]
fn a_long_list_is_cut_for_a_person_and_never_for_a_machine() {
    let mut report = sample();
    report.breaks = (0..60)
        .map(|number| duplicate("b", &format!("ch_{number}")))
        .collect();
    let mut ahead = duplicate("c", "ch_late");
    ahead.item.class = BreakClass::StatusAhead;
    report.breaks.push(ahead);
    let text = as_text(&report);
    assert!(text.contains("60 breaks"));
    assert!(text.contains("  … and 10 more (raise --limit, or use --format html, csv or json)"));
    // The class that had no room left is named all the same.
    assert!(text.contains("  MEDIUM  status_ahead  1 break\n"));
    assert!(!text.contains("ch_late"));
    assert!(as_json(&report).contains("ch_late"));
    let severe = RenderOptions {
        min_severity: Severity::High,
        ..RenderOptions::default()
    };
    let text = shown(&report, Form::Table, severe);
    assert!(
        text.contains("  1 break less severe than high not listed\n"),
        "{text}"
    );
    assert!(!text.contains("MEDIUM"));
}

#[test]
fn no_text_of_a_file_reaches_the_terminal_unseen() {
    let mut report = full();
    let hostile = "x\u{1b}[2J\u{202e}\n\u{9b}31m".to_owned();
    report.breaks[2].item.intent_id.clone_from(&hostile);
    report.breaks[2].item.operation_id.clone_from(&hostile);
    report.breaks[2].item.why.clone_from(&hostile);
    report.breaks[1].also_operations = vec![hostile.clone()];
    report.repairs[0].intent_id.clone_from(&hostile);
    report.resolved[0].intent_id.clone_from(&hostile);
    report.checks[1].detail.clone_from(&hostile);
    report.warnings[0].message.clone_from(&hostile);
    report.sources[0].files[0].path.clone_from(&hostile);
    report.outcome.reasons[0].message.clone_from(&hostile);
    report.carried.runs.push(hostile.clone());
    report.matches.as_mut().expect("asked for")[0].operation_id = hostile.clone();
    report.pending.as_mut().expect("asked for")[0].why = hostile.clone();
    report.ignored.as_mut().expect("asked for")[0].operation_id = hostile;
    let text = as_text(&report);
    let unseen =
        |character: char| (character.is_control() && character != '\n') || character == '\u{202e}';
    assert!(!text.contains(unseen), "{text:?}");
    assert!(text.contains("x\\u{1b}[2J\\u{202e}\\n\\u{9b}31m"));
}

#[test]
fn colour_is_there_only_when_it_was_asked_for() {
    let colored = RenderOptions {
        has_color: true,
        ..RenderOptions::default()
    };
    let text = shown(&sample(), Form::Table, colored);
    assert!(
        text.starts_with("\u{1b}[1;31mREVIEW\u{1b}[0m: 2 breaks"),
        "{text:?}"
    );
    assert!(!as_text(&sample()).contains('\u{1b}'));
}
