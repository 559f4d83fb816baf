//! Properties of the core, over small random worlds in which few ids and few amounts collide often.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use paysweep::model::breaks::BreakClass;
use paysweep::model::intent::IntentKind;
use paysweep::model::operation::OperationKind;
use paysweep::model::verdict::{Disposition, IgnoreReason};
use paysweep::reconcile::rules::Rules;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed, TestRunner};

use crate::world::{World, assert_repeatable};

/// How many worlds each property sees.
const WORLDS: u32 = 600;

fn one_of(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    select(words)
}

fn operation() -> impl Strategy<Value = String> {
    (
        one_of(&[
            "charge", "charge", "charge", "charge", "refund", "refund", "refund", "dispute",
            "dispute_reversal", "refund_failure", "adjustment", "capture", "capture",
            "authorization", "void", "payout", "payout_failure", "fee",
        ]),
        one_of(&[
            "succeeded", "succeeded", "succeeded", "succeeded", "failed", "pending", "canceled",
            "expired", "unknown",
        ]),
        one_of(&["1000", "1000", "1000", "500", "1500", "0"]),
        one_of(&["EUR", "EUR", "EUR", "EUR", "EUR", "USD"]),
        one_of(&["", "", "net", "zero"]),
        one_of(&["10:00", "10:00", "11:00", "07T10:00", "02-20T10:00", "10T11:50", "20T10:00"]),
        one_of(&["", "", "ref=A", "ref=A", "ref=B", "ref=C", "ref=k", "ref=P", "ref=P"]),
        (
            one_of(&["", "", "parent=x0", "parent=x1", "parent=x2", "parent=o", "parent=A"]),
            one_of(&["", "", "", "obj=o", "obj=x0"]),
            one_of(&["", "", "", "", "payout=x0", "final", "ignore=life_cycle", "invalid=broken"]),
            one_of(&["", "", "", "", "", "flip"]),
        ),
    )
        .prop_map(
            |(kind, status, amount, currency, net, time, reference, (parent, object, more, flip))| {
                let is_out = matches!(kind, "refund" | "dispute" | "payout" | "fee");
                let sign = if is_out == flip.is_empty() { "-" } else { "" };
                let sign = if amount == "0" { "" } else { sign };
                let net = match net {
                    "net" => format!("net={sign}{amount}"),
                    "zero" => "net=0".to_owned(),
                    _ => String::new(),
                };
                format!(
                    "{kind} {status} {sign}{amount} {currency} {time} {net} {reference} {parent} {object} {more}"
                )
            },
        )
}

fn intent() -> impl Strategy<Value = String> {
    (
        one_of(&["charge", "charge", "charge", "refund", "refund", "dispute", "payout"]),
        one_of(&["1000", "1000", "1000", "500", "1500"]),
        one_of(&["EUR", "EUR", "EUR", "EUR", "USD"]),
        one_of(&[
            "created", "pending", "pending", "succeeded", "succeeded", "succeeded", "failed",
            "canceled", "expired",
        ]),
        one_of(&["09:59", "09:59", "10:30", "02-19T10:00", "10T11:49"]),
        one_of(&["", "", "proc=x0", "proc=x1", "proc=x2", "proc=o", "proc=z"]),
        one_of(&["", "", "key=k", "key=l", "ref=A"]),
        (
            one_of(&["", "parent=P", "parent=P", "parent=A", "parent=A"]),
            one_of(&["", "", "attempt=1", "attempt=2"]),
            one_of(&["", "", "", "source=shop", "source=other", "elsewhere=fell", "elsewhere=waits", "elsewhere=stands"]),
        ),
    )
        .prop_map(
            |(kind, amount, currency, status, time, processor, key, (parent, attempt, source))| {
                let status = match (kind, status) {
                    ("dispute", "succeeded") => "lost",
                    ("dispute", "failed") => "won",
                    ("dispute", _) => "pending",
                    _ => status,
                };
                format!(
                    "{kind} {amount} {currency} {status} {time} {processor} {key} {parent} {attempt} {source}"
                )
            },
        )
}

fn frame() -> impl Strategy<Value = &'static str> {
    one_of(&[
        "",
        "",
        "",
        "frame covered=none",
        "frame covered=10T09:00",
        "frame others=none",
        "frame unowned=no",
        "frame unchanged",
        "frame basis=files",
        "frame basis=range",
        "rules tolerance=EUR:500",
        "rules rounds=EUR:1000",
        "rules chars=1",
        "rules lookup",
        "rules propose=status_behind",
        "rules off=missing_local",
        "rules kinds=charge",
    ])
}

/// Random rows of both sides as lines, names given in order of appearance.
fn lines() -> impl Strategy<Value = String> {
    (vec(operation(), 0..6), vec(intent(), 0..5), frame()).prop_map(
        |(operations, intents, frame)| {
            let mut lines = format!("{frame}\n");
            for (row, line) in operations.iter().enumerate() {
                writeln!(lines, "x{row} {line}").expect("a string takes everything");
            }
            for (row, line) in intents.iter().enumerate() {
                writeln!(lines, "{} {line}", ["A", "B", "C", "D", "E"][row])
                    .expect("a string takes everything");
            }
            lines
        },
    )
}

/// Asserts a property of random worlds, the same ones every time.
fn holds(seed: u64, property: fn(&World)) {
    let config = Config {
        cases: std::env::var("PAYSWEEP_WORLDS")
            .map_or(WORLDS, |count| count.parse().unwrap_or(WORLDS)),
        rng_algorithm: RngAlgorithm::ChaCha,
        rng_seed: RngSeed::Fixed(
            std::env::var("PAYSWEEP_SEED").map_or(seed, |seed| seed.parse().unwrap_or(0)),
        ),
        failure_persistence: None,
        ..Config::default()
    };
    TestRunner::new(config)
        .run(&lines(), |lines| {
            property(&World::of(&lines));
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn order_does_not_matter_and_a_repaired_world_is_at_rest() {
    holds(1, |world| assert_repeatable("random", world));
}

#[test]
fn every_verdict_is_sound_and_counts_add_up() {
    holds(2, |world| {
        let run = world.run();
        run.assert_sound();
        let outcome = &run.outcome;
        let counted = |verdicts: &[Disposition]| {
            verdicts
                .iter()
                .filter(|verdict| **verdict != Disposition::OutOfScope)
                .count() as u64
        };
        assert_eq!(outcome.operation_tally.read, counted(&outcome.operations));
        assert_eq!(outcome.intent_tally.read, counted(&outcome.intents));
    });
}

#[test]
fn a_matched_pair_agrees_in_kind_currency_and_amount() {
    holds(3, |world| {
        let run = world.run();
        let (rules, outcome) = (&world.rules, &run.outcome);
        let is_exact = rules.tolerance.is_empty() && rules.rounds_to_minor.is_empty();
        for row in 0..world.intents.len() {
            let intent = world.intents.get(row);
            let pairs: Vec<_> = outcome
                .matches
                .iter()
                .filter(|pair| pair.intent == row)
                .collect();
            let own: Vec<_> = pairs
                .iter()
                .map(|pair| run.operations.get(pair.operation))
                .filter(|data| {
                    data.kind.family() == Some(intent.kind.family())
                        && !data.kind.is_return()
                        && data.kind != OperationKind::Void
                })
                .collect();
            if own.is_empty() || !is_exact {
                continue;
            }
            let sum: i64 = own.iter().map(|data| data.amount_minor).sum();
            assert_eq!(
                sum,
                intent.kind.direction() * intent.amount_minor,
                "{:#?}",
                run.text()
            );
        }
    });
}

#[test]
fn what_claims_money_and_shares_no_key_is_missing() {
    holds(4, |world| {
        let mut world = world.clone();
        for kind in IntentKind::ALL {
            let status = if *kind == IntentKind::Dispute {
                "lost"
            } else {
                "succeeded"
            };
            world.add(&format!("Z-{kind} {kind} 1000 EUR {status} 09:30"));
        }
        let run = world.run();
        let is_judged = world.frame.judges_unowned
            && world.frame.covered.is_some()
            && world.frame.others_covered.is_some()
            && !world.frame.is_feed_unchanged;
        for kind in IntentKind::ALL {
            let id = format!("Z-{kind}");
            let is_missing = run.outcome.findings.iter().any(|finding| {
                finding.found.class.as_str() == "missing_processor" && finding.found.intent_id == id
            });
            assert_eq!(is_missing, is_judged, "{id}: {:#?}", run.text());
        }
    });
}

#[test]
fn money_that_shares_no_key_is_never_matched_nor_passed_over() {
    holds(5, |world| {
        let mut world = world.clone();
        world.rules.kinds = Rules::new("shop").kinds;
        world.add(
            "z_charge charge succeeded 1000 10:00
             z_refund refund succeeded -1000 10:00
             z_dispute dispute succeeded -1000 10:00",
        );
        let run = world.run();
        for row in 0..run.operations.len() {
            let data = run.operations.get(row);
            if data.operation_id.starts_with("z_") {
                assert_eq!(run.outcome.operations[row], Disposition::Unmatched);
                assert!(run.outcome.findings.iter().any(|finding| {
                    finding.found.operation_id == data.operation_id
                        && finding.found.class.as_str() == "missing_local"
                }));
            }
        }
    });
}

#[test]
fn money_in_scope_is_matched_waits_or_is_named() {
    // No charge, refund or dispute that moved money may vanish under a reason that says nothing moved.
    holds(6, |world| {
        let run = world.run();
        for row in 0..run.operations.len() {
            let data = run.operations.get(row);
            let verdict = run.outcome.operations[row];
            let Disposition::Ignored(reason) = verdict else {
                continue;
            };
            let is_money = data.moved_money()
                && data.invalid.is_empty()
                && data.ignore.is_none()
                && matches!(
                    data.kind,
                    OperationKind::Charge
                        | OperationKind::Capture
                        | OperationKind::Refund
                        | OperationKind::Dispute
                );
            let is_allowed = match reason {
                IgnoreReason::ReturnedInFull => true,
                IgnoreReason::AccountLevel => world.rules.kinds.len() < 4,
                _ => false,
            };
            assert!(
                !is_money || is_allowed,
                "{} {reason}: {:#?}",
                data.operation_id,
                run.text()
            );
        }
    });
}

#[test]
fn a_repair_is_never_planned_twice_and_never_without_its_break() {
    holds(7, |world| {
        let run = world.run();
        let ids: BTreeSet<&str> = run
            .outcome
            .repairs
            .iter()
            .map(|repair| repair.id.as_str())
            .collect();
        assert_eq!(ids.len(), run.outcome.repairs.len());
        let subjects: BTreeSet<&str> = run
            .outcome
            .repairs
            .iter()
            .map(|repair| repair.intent_id.as_str())
            .collect();
        assert_eq!(
            subjects.len(),
            run.outcome.repairs.len(),
            "{:#?}",
            run.text()
        );
        for repair in &run.outcome.repairs {
            assert!(
                run.outcome
                    .findings
                    .iter()
                    .any(|finding| finding.found.id == repair.break_id)
            );
        }
    });
}

/// How many rows share one key in the crowds. A release build takes fifty thousand of each in well under a second; what
/// grows with the square would take minutes.
fn crowd_rows() -> usize {
    std::env::var("PAYSWEEP_CROWD").map_or(500, |count| count.parse().unwrap_or(500))
}

#[test]
fn a_crowd_under_one_key_is_judged_in_no_more_than_its_share_of_time() {
    let count = crowd_rows();
    let many = |line: &dyn Fn(usize) -> String| -> String {
        let lines: Vec<String> = (0..count).map(line).collect();
        lines.join("\n") + "\n"
    };
    let shared = |operation: &str, intent: &str| {
        let operations = many(&|n| format!("x{n:06} {operation}"));
        let intents = many(&|n| format!("A{n:06} {intent}"));
        format!("{operations}{intents}")
    };
    let charge = "A charge 1000 succeeded 02-20T10:00 proc=ch_1\n";
    for (name, rows) in [
        (
            "payments and rows under one parent",
            shared(
                "charge succeeded 1000 ref=P",
                "charge 1000 pending parent=P",
            ),
        ),
        (
            "of other amounts",
            shared("charge succeeded 900 ref=P", "charge 1000 pending parent=P"),
        ),
        (
            "attempts",
            shared(
                "charge succeeded 1000 ref=P",
                "charge 1000 pending parent=P attempt=1",
            ),
        ),
        (
            "tolerated",
            format!(
                "rules tolerance=EUR:100\n{}",
                shared("charge succeeded 900 ref=P", "charge 1000 pending parent=P")
            ),
        ),
        (
            "failed attempts",
            shared("charge failed 1000 ref=P", "charge 1000 pending parent=P"),
        ),
        (
            "holds",
            shared(
                "authorization succeeded 1000 ref=P",
                "charge 1000 pending parent=P",
            ),
        ),
        (
            "one object",
            shared(
                "charge succeeded 1000 obj=o",
                "charge 1000 succeeded proc=o",
            ),
        ),
        (
            "one key",
            shared("charge succeeded 1000 ref=k", "charge 1000 pending key=k"),
        ),
        (
            "unreadable rows",
            shared(
                "charge succeeded 1000 ref=k invalid=broken",
                "charge 1000 pending key=k",
            ),
        ),
        (
            "unreadable intents",
            shared(
                "charge succeeded 1000 ref=k",
                "charge 1000 pending key=k invalid=broken",
            ),
        ),
        (
            "duplicates",
            format!(
                "{}A charge 1000 pending\n",
                many(&|n| format!("x{n:06} charge succeeded 1000 ref=A"))
            ),
        ),
        (
            "refunds of one charge",
            format!(
                "{charge}{}",
                many(&|n| format!("x{n:06} refund succeeded -10 parent=ch_1"))
            ),
        ),
        (
            "refunds with rows",
            format!(
                "{charge}{}",
                shared(
                    "refund succeeded -10 parent=ch_1",
                    "refund 10 pending parent=A"
                )
            ),
        ),
        (
            "refunds with references",
            format!(
                "{charge}{}",
                many(&|n| format!(
                    "x{n:06} refund succeeded -10 ref=R{n} parent=ch_1\nR{n} refund 10 pending parent=A"
                ))
            ),
        ),
        (
            "refunds under an unknown parent",
            shared("refund succeeded -10 ref=P", "refund 10 pending parent=P"),
        ),
        (
            "refunds of many charges of one order",
            many(&|n| {
                format!(
                    "x{n:06} charge succeeded 1000 ref=A{n}\nA{n} charge 1000 succeeded parent=P\nr{n:06} refund succeeded -10 ref=P"
                )
            }),
        ),
        (
            "disputes",
            format!(
                "{charge}{}",
                many(&|n| format!("x{n:06} dispute succeeded -10 parent=ch_1"))
            ),
        ),
        (
            "captures",
            format!(
                "au_1 authorization succeeded 1000 ref=A\nA charge 1000 pending\n{}",
                many(&|n| format!("x{n:06} capture succeeded 10 parent=au_1"))
            ),
        ),
        (
            "adjustments of one refund",
            format!(
                "{charge}re_1 refund succeeded -400 parent=ch_1\nR refund 400 succeeded parent=A proc=re_1\n{}",
                many(&|n| format!("x{n:06} adjustment succeeded 1 parent=re_1"))
            ),
        ),
        (
            "adjustments of a refund without a row",
            format!(
                "{charge}re_1 refund succeeded -400 parent=ch_1\n{}",
                many(&|n| format!("x{n:06} adjustment succeeded 1 parent=re_1"))
            ),
        ),
        (
            "a chain",
            format!(
                "x000000 charge succeeded 1000 ref=A\nA charge 1000 pending\n{}",
                many(&|n| format!("x{:06} charge succeeded 1000 parent=x{n:06}", n + 1))
            ),
        ),
        (
            "a chain of adjustments",
            many(&|n| format!("x{:06} adjustment succeeded 1000 parent=x{n:06}", n + 1)),
        ),
        (
            "attempts that came back",
            many(&|n| {
                format!(
                    "x{n:06} charge failed 1000 ref=A{n}\nA{n} charge 1000 succeeded parent=P attempt={n}"
                )
            }),
        ),
        (
            "cut references",
            format!(
                "rules chars=10\n{}",
                many(&|n| format!(
                    "x{n:06} charge succeeded 1000 ref=ORDER-1234\nORDER-1234{n:06} charge 1000 pending"
                ))
            ),
        ),
    ] {
        let world = World::of(&rows);
        let run = world.run();
        assert_eq!(run.outcome.violations, Vec::<String>::new(), "{name}");
    }
}

/// Large worlds are divided among threads; the small ones of the other tests are not.
#[test]
fn a_large_world_is_judged_as_its_pairs_would_be_one_by_one() {
    let mut lines = String::from("frame covered=10T09:00\n");
    let (mut off, mut absent) = (0, 0);
    for pair in 0..12_500 {
        let amount = match pair % 1_000 {
            17 => {
                off += 1;
                1_001
            }
            18 => {
                absent += 1;
                0
            }
            _ => 1_000,
        };
        if amount != 0 {
            writeln!(
                lines,
                "ch_{pair} charge succeeded {amount} 10:00 ref=ORD-{pair} payout=po_1"
            )
            .expect("a string takes everything");
        }
    }
    for pair in (0..12_500).rev() {
        writeln!(
            lines,
            "ORD-{pair} charge 1000 succeeded 09:59 key=key-{pair} proc=ch_{pair}"
        )
        .expect("a string takes everything");
    }
    let world = World::of(&lines);
    let run = world.run();
    run.assert_sound();
    let of = |class: BreakClass| {
        let findings = run.outcome.findings.iter();
        findings
            .filter(|finding| finding.found.class == class)
            .count()
    };
    assert_eq!(of(BreakClass::AmountMismatch), off);
    assert_eq!(of(BreakClass::MissingProcessor), absent);
    assert_eq!(run.outcome.findings.len(), off + absent);
    assert_eq!(run.outcome.matches.len(), 12_500 - off - absent);
    assert_eq!(world.run_without_sieve().text(), run.text());
}
