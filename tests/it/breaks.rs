//! Given these rows of both sides, these breaks, repairs and matches: the contract, line by line.
//!
//! Every row of a table is also run in other orders, without the sieve, and twice more after its own repairs.

use crate::world::{World, assert_repeatable, at, check_all, expected};
use paysweep::model::breaks::{BreakClass, CloseAs};
use paysweep::reconcile::lifecycle::{Cell, Local, Processor, cell, markdown};

#[test]
fn a_linked_pair_is_judged_by_the_decision_table() {
    check_all(&[
        (
            "an open row and a pending operation wait",
            "ch_1 charge pending 1000 ref=A
             A charge 1000 pending",
            "pending A ch_1",
        ),
        (
            "an open row whose money has moved is brought forward",
            "ch_1 charge succeeded 1000 ref=A net=970
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "so is one that was only created",
            "ch_1 charge succeeded 1000 ref=k
             A charge 1000 created key=k",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "a failed attempt leaves an open row as it is",
            "ch_1 charge failed 1000 ref=A
             A charge 1000 pending",
            "ignored ch_1 failed_attempt
             ignored A abandoned",
        ),
        (
            "a canceled attempt as well",
            "ch_1 charge canceled 1000 ref=A
             A charge 1000 pending 10T11:30",
            "ignored ch_1 failed_attempt
             pending A -",
        ),
        (
            "a failure that the profile calls final is brought over",
            "ch_1 charge failed 1000 ref=A final
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 failed ch_1",
        ),
        (
            "an object that was canceled for good as well",
            "ch_1 charge canceled 1000 ref=A final
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 canceled ch_1",
        ),
        (
            "a hold that ran out is brought over",
            "au_1 authorization expired 1000 ref=A
             A charge 1000 pending",
            "match A au_1 reference
             break status_behind A au_1 1000 repaired
             repair set_status A au_1 expired au_1",
        ),
        (
            "a success that the processor has not decided waits for grace",
            "ch_1 charge pending 1000 10T11:31 ref=A
             A charge 1000 succeeded 10T11:30",
            "pending A ch_1",
        ),
        (
            "and is ahead after it",
            "ch_1 charge pending 1000 ref=A
             A charge 1000 succeeded",
            "break status_ahead A ch_1 1000",
        ),
        (
            "a success on both sides is in order",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 succeeded",
            "match A ch_1 reference",
        ),
        (
            "a success whose operation failed is taken back",
            "ch_1 charge failed 1000 ref=A
             A charge 1000 succeeded proc=ch_1",
            "break status_reversed A ch_1 1000
             repair set_status A ch_1 failed ch_1",
        ),
        (
            "within grace it is not written yet",
            "ch_1 charge failed 1000 10T11:31 ref=A
             A charge 1000 succeeded 10T11:30 proc=ch_1",
            "break status_reversed A ch_1 1000",
        ),
        (
            "a success whose operation was canceled is taken back",
            "ch_1 charge canceled 1000 ref=A
             A charge 1000 succeeded proc=ch_1",
            "break status_reversed A ch_1 1000
             repair set_status A ch_1 canceled ch_1",
        ),
        (
            "a success whose hold ran out is taken back",
            "au_1 authorization expired 1000 ref=A
             A charge 1000 succeeded",
            "break status_reversed A au_1 1000
             repair set_status A au_1 expired au_1",
        ),
        (
            "a failed row beside a pending operation waits for grace",
            "ch_1 charge pending 1000 10T11:31 ref=A
             A charge 1000 failed 10T11:30",
            "pending A ch_1",
        ),
        (
            "and is a conflict after it",
            "ch_1 charge pending 1000 ref=A
             A charge 1000 failed",
            "break status_conflict A ch_1 1000",
        ),
        (
            "a failed row whose money moved is brought forward",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 failed",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "a failure on both sides is in order",
            "ch_1 charge failed 1000 ref=A
             A charge 1000 failed",
            "match A ch_1 reference",
        ),
        (
            "so is an expired hold beside a failed row",
            "au_1 authorization expired 1000 ref=A
             A charge 1000 failed",
            "match A au_1 reference",
        ),
        (
            "a canceled row beside a pending operation waits for grace",
            "ch_1 charge pending 1000 10T11:31 ref=A
             A charge 1000 canceled 10T11:30",
            "pending A ch_1",
        ),
        (
            "and is a conflict after it, canceled or expired",
            "ch_1 charge pending 1000 ref=A
             ch_2 charge pending 1000 ref=B
             A charge 1000 canceled
             B charge 1000 expired",
            "break status_conflict A ch_1 1000
             break status_conflict B ch_2 1000",
        ),
        (
            "a canceled row is never opened again",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 ref=B
             A charge 1000 canceled
             B charge 1000 expired",
            "break status_conflict A ch_1 1000
             break status_conflict B ch_2 1000",
        ),
        (
            "a canceled row whose operation failed is in order",
            "ch_1 charge failed 1000 ref=A
             ch_2 charge canceled 1000 ref=B
             au_3 authorization expired 1000 ref=C
             A charge 1000 canceled
             B charge 1000 expired
             C charge 1000 expired",
            "match A ch_1 reference
             match B ch_2 reference
             match C au_3 reference",
        ),
    ]);
}

#[test]
fn every_cell_of_the_table_says_what_the_contract_says() {
    let wanted = [
        "Pending Behind FailedAttempt Behind",
        "AheadAfterGrace Matched Reversed Reversed",
        "ConflictAfterGrace BehindIfUnique Matched Matched",
        "ConflictAfterGrace Conflict Matched Matched",
        "StaysPending WonOrLost NoMoney Nothing",
    ];
    for (local, wanted) in Local::ALL.into_iter().zip(wanted) {
        let cells: Vec<String> = Processor::ALL
            .into_iter()
            .map(|processor| format!("{:?}", cell(local, processor)))
            .collect();
        assert_eq!(cells.join(" "), wanted, "{local:?}");
    }
    assert_eq!(cell(Local::Closed, Processor::Succeeded), Cell::Conflict);
    assert_eq!(markdown().lines().count(), 2 + Local::ALL.len());
}

#[test]
fn every_cell_holds_for_refunds_and_payouts_as_well() {
    for (family, sign, extra) in [
        ("charge", 1, ""),
        ("refund", -1, ""),
        ("payout", -1, ""),
    ] {
        for local in ["created", "pending", "succeeded", "failed", "canceled", "expired"] {
            for processor in ["pending", "succeeded", "failed", "canceled"] {
                let amount = 1000 * sign;
                let rows = format!(
                    "x_1 {family} {processor} {amount} ref=A{extra}
                     A {family} 1000 {local}"
                );
                let open = matches!(local, "created" | "pending");
                let wanted = match (local, processor) {
                    (_, "pending") if open => "pending A x_1".to_owned(),
                    (_, "succeeded") if open => "match A x_1 reference
                         break status_behind A x_1 1000 repaired
                         repair set_status A x_1 succeeded x_1"
                        .to_owned(),
                    (_, "failed" | "canceled") if open => "ignored x_1 failed_attempt
                         ignored A abandoned"
                        .to_owned(),
                    ("succeeded", "pending") => "break status_ahead A x_1 1000".to_owned(),
                    ("succeeded", "succeeded") => "match A x_1 reference".to_owned(),
                    ("succeeded", to) => {
                        let class = if family == "payout" {
                            "payout_returned"
                        } else {
                            "status_reversed"
                        };
                        format!(
                            "break {class} A x_1 1000
                             repair set_status A x_1 {to} x_1"
                        )
                    }
                    (_, "pending") => "break status_conflict A x_1 1000".to_owned(),
                    ("failed", "succeeded") => "match A x_1 reference
                         break status_behind A x_1 1000 repaired
                         repair set_status A x_1 succeeded x_1"
                        .to_owned(),
                    (_, "succeeded") => "break status_conflict A x_1 1000".to_owned(),
                    _ => "match A x_1 reference".to_owned(),
                };
                check_all(&[("every cell", &rows, &wanted)]);
            }
        }
    }
}

#[test]
fn a_dispute_is_what_its_money_says() {
    let undecided = "du_1 dispute pending -1000 ref=D net=-1000";
    let inquiry = "du_1 dispute pending -1000 ref=D net=0";
    let taken = "du_1 dispute succeeded -1000 ref=D net=-1000";
    let won = "du_1 dispute succeeded -1000 ref=D net=-1000
               dr_1 dispute_reversal succeeded 1000 11:00 parent=du_1 net=1000";
    let both = "match D du_1 reference
                match D dr_1 parent";
    let nothing = "du_1 dispute failed -1000 ref=D net=0";
    for (local, rows, verdict) in [
        ("pending", undecided, "pending D du_1"),
        ("pending", inquiry, "pending D du_1"),
        (
            "pending",
            taken,
            "match D du_1 reference
             break status_behind D du_1 1000 repaired
             repair set_status D du_1 lost du_1",
        ),
        ("lost", taken, "match D du_1 reference"),
        (
            "won",
            taken,
            "match D du_1 reference
             break status_behind D du_1 1000 repaired
             repair set_status D du_1 lost du_1",
        ),
        ("won", won, both),
        (
            "pending",
            won,
            &format!(
                "{both}
                 break status_behind D dr_1 1000 repaired
                 repair set_status D dr_1 won -"
            ),
        ),
        (
            "lost",
            won,
            &format!(
                "{both}
                 break status_behind D dr_1 1000 repaired
                 repair set_status D dr_1 won -"
            ),
        ),
        (
            "pending",
            nothing,
            "ignored du_1 no_money
             ignored D no_money",
        ),
    ] {
        check_all(&[(
            &format!("{local}: {rows}"),
            &format!(
                "{rows}
                 D dispute 1000 {local}"
            ),
            verdict,
        )]);
    }
}

#[test]
fn adjustments_decide_only_won_or_lost() {
    check_all(&[
        (
            "a win that comes as an adjustment",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             ad_1 adjustment succeeded 1000 11:00 net=1000 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 pending 08T10:00 proc=du_1 parent=A",
            "match D du_1 processor_ref
             match D ad_1 parent
             break status_behind D ad_1 1000 repaired
             repair set_status D ad_1 won du_1",
        ),
        (
            "won, then lost",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             dr_1 dispute_reversal succeeded 1000 11:00 net=1000 parent=du_1
             ad_1 adjustment succeeded -1000 12:00 net=-1000 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 won 08T10:00 proc=du_1 parent=A",
            "match D du_1 processor_ref
             match D dr_1 parent
             match D ad_1 parent
             break status_behind D ad_1 1000 repaired
             repair set_status D ad_1 lost du_1",
        ),
        (
            "only the return is in reach",
            "dr_1 dispute_reversal succeeded 1000 net=1000 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 pending 02-25T10:00 proc=du_1 parent=A",
            "match D dr_1 parent
             break status_behind D dr_1 1000 repaired
             repair set_status D dr_1 won du_1",
        ),
        (
            "more left than was taken: no win",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             dr_1 dispute_reversal succeeded 1200 11:00 net=1200 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 pending 08T10:00 proc=du_1 parent=A",
            "break amount_mismatch D dr_1 1200 delta=200",
        ),
        (
            "another amount than the local row",
            "du_1 dispute succeeded -900 net=-900 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 pending 08T10:00 proc=du_1 parent=A",
            "break amount_mismatch D du_1 900 delta=-100",
        ),
        (
            "another currency",
            "du_1 dispute succeeded -1000 USD net=-1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 pending 08T10:00 proc=du_1 parent=A",
            "break currency_mismatch D du_1 1000 USD",
        ),
        (
            "two disputes of one charge, each with its row",
            "du_1 dispute succeeded -400 net=-400 parent=ch_1
             du_2 dispute succeeded -600 11:00 net=-600 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 400 lost 08T10:00 parent=A
             E dispute 600 lost 08T10:00 parent=A",
            "match D du_1 parent
             match E du_2 parent",
        ),
        (
            "a second loss",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             du_2 dispute succeeded -1000 11:00 net=-1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             D dispute 1000 lost 08T10:00 proc=du_1 parent=A",
            "match D du_1 processor_ref
             break missing_local A du_2 1000
             break duplicate_refund A du_2 1000 delta=1000
             repair record_dispute A 1000 du_2 lost du_2",
        ),
        (
            "without a local row: recorded, and a person is told",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A du_1 1000
             repair record_dispute A 1000 du_1 lost du_1",
        ),
        (
            "undecided: recorded as pending",
            "du_1 dispute pending -1000 net=-1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A du_1 1000
             repair record_dispute A 1000 du_1 pending du_1",
        ),
        (
            "won already: recorded as won",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_1
             dr_1 dispute_reversal succeeded 1000 11:00 net=1000 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A du_1 1000 delta=0
             repair record_dispute A 1000 du_1 won du_1",
        ),
        (
            "larger than the charge",
            "du_1 dispute succeeded -1100 net=-1100 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A du_1 1100
             break duplicate_refund A du_1 1100 delta=100
             repair record_dispute A 1100 du_1 lost du_1",
        ),
        (
            "of a payment nobody knows: nothing is written",
            "du_1 dispute succeeded -1000 net=-1000 parent=ch_9",
            "break missing_local - du_1 1000",
        ),
        (
            "an inquiry is no dispute",
            "du_1 dispute pending -1000 net=0 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "ignored du_1 no_money",
        ),
        (
            "lost locally, and never taken",
            "D dispute 1000 lost",
            "break missing_processor D - 1000",
        ),
        (
            "pending claims money as well, won does not",
            "D dispute 1000 pending
             E dispute 1000 won",
            "break missing_processor D - 1000
             ignored E abandoned",
        ),
    ]);
}

#[test]
fn the_most_surprising_rows_end_as_the_contract_says() {
    let _ = (World::of(""), at("10:00"), expected(""), BreakClass::ALL, CloseAs::ALL);
    assert_repeatable("nothing", &World::of(""));
}
