//! Two sources in one run: what one of them shows of a payment is known when the other is judged.

use serde_json::Value;

use super::scene::Scene;

const CONFIG: &str = r#"
[store]
url = "sqlite://paysweep.db"

[source.shop]
kind = "csv"
profile = "canonical"
files = ["shop.csv"]
start = "2026-03-09T00:00:00Z"
complete_through = "as-of"

[source.zoo]
kind = "csv"
profile = "canonical"
files = ["zoo.csv"]
start = "2026-03-09T00:00:00Z"
complete_through = "as-of"

[intents]
kind = "csv"
file = "intents.csv"
"#;

const OPERATIONS: &str = "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference,parent_id\n";
const INTENTS: &str = "intent_id,kind,amount_minor,currency,status,created_at,processor_ref,parent_intent_id,source\n";
const CHARGE: &str = "ch1,charge,succeeded,5000,0,5000,EUR,2026-03-09T10:00:00Z,O1,\n";
const O1: &str = "O1,charge,5000,EUR,succeeded,2026-03-09T09:59:00Z,,,\n";
const FEE: &str = "fA,fee,succeeded,-1,0,-1,EUR,2026-03-10T11:59:00Z,,\n";

fn scene(shop: &str, zoo: &str, intents: &str) -> Scene {
    let scene = Scene::empty();
    scene.write("paysweep.toml", CONFIG);
    scene.write("shop.csv", &format!("{OPERATIONS}{shop}"));
    scene.write("zoo.csv", &format!("{OPERATIONS}{zoo}"));
    scene.write("intents.csv", &format!("{INTENTS}{intents}"));
    scene
}

/// What a command tells: breaks as class and intent, repairs as intent and status, and the exit code.
#[derive(Debug, PartialEq, Eq)]
struct Said {
    code: i32,
    breaks: Vec<String>,
    repairs: Vec<String>,
}

fn said(code: i32, breaks: &[&str], repairs: &[&str]) -> Said {
    let owned = |list: &[&str]| list.iter().map(|line| (*line).to_owned()).collect();
    Said {
        code,
        breaks: owned(breaks),
        repairs: owned(repairs),
    }
}

fn report(scene: &Scene, command: &str) -> (i32, Value) {
    let told = scene.say(&format!(
        "{command} -f json --include pending --as-of 2026-03-10T12:00:00Z"
    ));
    assert!(matches!(told.code, 0..=3), "{command}: {told:?}");
    (told.code, told.json())
}

fn say(scene: &Scene, command: &str) -> Said {
    let (code, report) = report(scene, command);
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    let list = |name: &str, line: &dyn Fn(&Value) -> String| {
        let mut lines: Vec<String> = report[name]
            .as_array()
            .expect(name)
            .iter()
            .map(line)
            .collect();
        lines.sort();
        lines
    };
    Said {
        code,
        breaks: list("breaks", &|line| {
            format!("{} {}", text(&line["class"]), text(&line["intent_id"]))
        }),
        repairs: list("repairs", &|line| {
            let to = &line["to"]["status"];
            format!("{} {}", text(&line["intent_id"]), text(to))
        }),
    }
}

/// In both orders of the sources: what each has is swapped.
fn in_both_orders(left: &str, right: &str, intents: &str, test: impl Fn(&Scene, &str)) {
    test(
        &scene(left, right, intents),
        &format!("{left}|{right}|{intents}"),
    );
    test(
        &scene(right, left, intents),
        &format!("{right}|{left}|{intents}"),
    );
}

#[test]
fn a_dispute_that_was_taken_at_one_source_and_returned_at_another_is_won() {
    let taken = "d1,dispute,succeeded,-5000,0,-5000,EUR,2026-03-09T11:00:00Z,,ch1\n";
    let shop = format!("{CHARGE}{taken}");
    for kind in ["dispute_reversal", "adjustment"] {
        let back = format!("dr,{kind},succeeded,5000,0,5000,EUR,2026-03-09T12:00:00Z,,d1\n");
        for owner in ["", "shop", "zoo"] {
            let dispute = |status: &str| {
                format!("{O1}D1,dispute,5000,EUR,{status},2026-03-09T11:00:00Z,d1,O1,{owner}\n")
            };
            in_both_orders(&shop, &back, &dispute("won"), |scene, case| {
                for command in ["diff", "run -n", "run", "run", "run", "diff"] {
                    let found = say(scene, command);
                    assert_eq!(found, said(0, &[], &[]), "{command}: {case}");
                }
            });
            for status in ["lost", "pending"] {
                in_both_orders(&shop, &back, &dispute(status), |scene, case| {
                    let want = said(1, &["status_behind D1"], &["D1 won"]);
                    for command in ["diff", "run -n", "run"] {
                        assert_eq!(say(scene, command), want, "{command}: {case}");
                    }
                    for _ in 0..2 {
                        assert_eq!(say(scene, "run"), said(0, &[], &[]), "{case}");
                    }
                });
            }
        }
    }
}

#[test]
fn a_dispute_that_paysweep_recorded_settles_and_stays() {
    let taken = "d1,dispute,succeeded,-5000,0,-5000,EUR,2026-03-09T11:00:00Z,,ch1\n";
    let back = "dr,dispute_reversal,succeeded,5000,0,5000,EUR,2026-03-09T12:00:00Z,,d1\n";
    in_both_orders(&format!("{CHARGE}{taken}"), back, O1, |scene, case| {
        for _ in 0..2 {
            say(scene, "run");
        }
        // That it was recorded stays open until a person closes it; nothing else is said or written.
        for _ in 0..3 {
            let found = say(scene, "run");
            assert_eq!(found, said(1, &["missing_local O1"], &[]), "{case}");
        }
        let listed = scene.say("repairs list -f json").stdout;
        assert_eq!(listed.matches("\"won\"").count(), 1, "{case}: {listed}");
    });
}

#[test]
fn a_dispute_of_another_amount_is_told_once_and_nothing_is_written() {
    let taken = "d1,dispute,succeeded,-4000,0,-4000,EUR,2026-03-09T11:00:00Z,,ch1\n";
    let back = "dr,dispute_reversal,succeeded,4000,0,4000,EUR,2026-03-09T12:00:00Z,,d1\n";
    for status in ["won", "lost", "pending"] {
        let dispute = format!("{O1}D1,dispute,5000,EUR,{status},2026-03-09T11:00:00Z,d1,O1,\n");
        in_both_orders(
            &format!("{CHARGE}{taken}"),
            back,
            &dispute,
            |scene, case| {
                for command in ["diff", "run -n", "run", "run", "run"] {
                    let found = say(scene, command);
                    assert_eq!(
                        found,
                        said(1, &["amount_mismatch D1"], &[]),
                        "{command}: {case}"
                    );
                }
            },
        );
    }
}

#[test]
fn nothing_is_written_about_a_dispute_while_a_source_that_may_hold_some_of_it_is_unread() {
    let taken = "d1,dispute,succeeded,-5000,0,-5000,EUR,2026-03-09T11:00:00Z,,ch1\n";
    let dispute = format!("{O1}D1,dispute,5000,EUR,won,2026-03-09T11:00:00Z,d1,O1,\n");
    in_both_orders(&format!("{CHARGE}{taken}"), "", &dispute, |scene, case| {
        let empty = ["shop.csv", "zoo.csv"].into_iter().find(|name| {
            std::fs::read_to_string(scene.path(name)).is_ok_and(|text| text == OPERATIONS)
        });
        let empty = empty.expect("a file without rows");
        std::fs::remove_file(scene.path(empty)).expect("removed");
        for command in ["run -n", "run"] {
            let found = say(scene, command);
            assert_eq!(found, said(2, &[], &[]), "{command}: {case}");
        }
        scene.write(empty, OPERATIONS);
        let want = said(1, &["status_behind D1"], &["D1 lost"]);
        assert_eq!(say(scene, "run"), want, "{case}");
        assert_eq!(say(scene, "run"), said(0, &[], &[]), "{case}");
    });
}

#[test]
fn a_refund_that_came_back_at_another_source_failed() {
    let refund = "r1,refund,succeeded,-5000,0,-5000,EUR,2026-03-09T10:05:00Z,,ch1\n";
    let back = "rf,refund_failure,succeeded,5000,0,5000,EUR,2026-03-09T10:30:00Z,,r1\n";
    let shop = format!("{CHARGE}{refund}");
    let intents =
        |status: &str| format!("{O1}R1,refund,5000,EUR,{status},2026-03-09T10:05:00Z,r1,O1,\n");
    in_both_orders(&shop, back, &intents("failed"), |scene, case| {
        for command in ["diff", "run -n", "run", "run", "run"] {
            assert_eq!(say(scene, command), said(0, &[], &[]), "{command}: {case}");
        }
    });
    in_both_orders(&shop, back, &intents("succeeded"), |scene, case| {
        let want = said(1, &["status_reversed R1"], &["R1 failed"]);
        assert_eq!(say(scene, "run"), want, "{case}");
        for _ in 0..2 {
            let want = said(1, &["status_reversed R1"], &[]);
            assert_eq!(say(scene, "run"), want, "{case}");
        }
    });
}

#[test]
fn a_payment_of_another_amount_at_one_source_is_not_missing_at_another() {
    for (row, class, risk) in [
        (
            "ch1,charge,succeeded,4000,0,4000,EUR",
            "amount_mismatch O1",
            1000,
        ),
        (
            "ch1,charge,succeeded,5000,0,5000,USD",
            "currency_mismatch O1",
            5000,
        ),
    ] {
        let charge = format!("{row},2026-03-09T10:00:00Z,O1,\n");
        for named in ["", "ch1"] {
            let intent = format!("O1,charge,5000,EUR,succeeded,2026-03-09T09:59:00Z,{named},,\n");
            in_both_orders(FEE, &charge, &intent, |scene, case| {
                for command in ["diff", "run -n", "run", "run", "run"] {
                    let found = say(scene, command);
                    assert_eq!(found, said(1, &[class], &[]), "{command}: {case}");
                    let (_, report) = report(scene, "run -n");
                    let totals = report["totals"].as_array().expect("totals");
                    let at_risk: i64 = totals
                        .iter()
                        .filter_map(|total| total["at_risk"]["minor"].as_i64())
                        .sum();
                    assert_eq!(at_risk, risk, "{command}: {case}");
                }
            });
        }
    }
}

#[test]
fn what_was_missing_is_resolved_when_another_source_shows_it() {
    for amount in [5000, 4000] {
        let charge =
            format!("ch1,charge,succeeded,{amount},0,{amount},EUR,2026-03-09T10:00:00Z,O1,\n");
        for (file, other) in [("shop.csv", "zoo.csv"), ("zoo.csv", "shop.csv")] {
            let scene = scene("", "", O1);
            scene.write(other, &format!("{OPERATIONS}{FEE}"));
            assert_eq!(say(&scene, "run"), said(1, &["missing_processor O1"], &[]));
            scene.write(file, &format!("{OPERATIONS}{charge}"));
            let want = match amount {
                5000 => said(0, &[], &[]),
                _ => said(1, &["amount_mismatch O1"], &[]),
            };
            for _ in 0..2 {
                assert_eq!(say(&scene, "run"), want, "{file}, {amount}");
            }
        }
    }
}

#[test]
fn a_failed_charge_is_a_reversal_whichever_source_shows_it() {
    let failed = "ch1,charge,failed,5000,0,0,EUR,2026-03-09T10:00:00Z,O1,\n";
    in_both_orders(FEE, failed, O1, |scene, case| {
        for command in ["diff", "run -n", "run"] {
            let want = said(1, &["status_reversed O1"], &["O1 failed"]);
            assert_eq!(say(scene, command), want, "{command}: {case}");
        }
        for _ in 0..2 {
            let want = said(1, &["status_reversed O1"], &[]);
            assert_eq!(say(scene, "run"), want, "{case}");
        }
    });
    // A success at the other source outweighs it, whichever is read first.
    in_both_orders(
        "ch2,charge,succeeded,5000,0,5000,EUR,2026-03-09T10:02:00Z,O1,\n",
        failed,
        O1,
        |scene, case| {
            for command in ["diff", "run -n", "run", "run"] {
                assert_eq!(say(scene, command), said(0, &[], &[]), "{command}: {case}");
            }
        },
    );
}

#[test]
fn a_failed_charge_waits_while_a_source_is_unread() {
    let failed = "ch1,charge,failed,5000,0,0,EUR,2026-03-09T10:00:00Z,O1,\n";
    for (file, other) in [("shop.csv", "zoo.csv"), ("zoo.csv", "shop.csv")] {
        let scene = scene("", "", O1);
        scene.write(file, &format!("{OPERATIONS}{failed}"));
        std::fs::remove_file(scene.path(other)).expect("removed");
        for command in ["run -n", "run"] {
            let (code, report) = report(&scene, command);
            assert_eq!(code, 2, "{file}");
            assert_eq!(
                report["breaks"].as_array().map(Vec::len),
                Some(0),
                "{report}"
            );
            let pending = report["pending"].as_array().expect("a list");
            assert!(
                pending.iter().any(|line| line["intent_id"] == "O1"),
                "{file}: {report}"
            );
        }
        scene.write(other, &format!("{OPERATIONS}{FEE}"));
        let want = said(1, &["status_reversed O1"], &["O1 failed"]);
        assert_eq!(say(&scene, "run"), want, "{file}");
    }
}
