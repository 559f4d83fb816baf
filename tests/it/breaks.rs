//! Given these rows of both sides, these breaks, repairs and matches: the contract, line by line.
//!
//! Every row of a table is also run in other orders, without the sieve, and twice more after its own repairs.

use std::fmt::Write as _;

use crate::world::{World, check_all, expected};
use paysweep::model::breaks::{BreakClass, CloseAs};
use paysweep::model::repair::Repair;
use paysweep::money::{Currency, Money};
use paysweep::reconcile::lifecycle::{Cell, Local, Processor, cell, markdown};
use paysweep::reconcile::{Spent, guard};

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
    for (family, sign, extra) in [("charge", 1, ""), ("refund", -1, ""), ("payout", -1, "")] {
        for local in [
            "created",
            "pending",
            "succeeded",
            "failed",
            "canceled",
            "expired",
        ] {
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
                    ("failed", "succeeded") => "match A x_1 reference
                         break status_behind A x_1 1000 repaired
                         repair set_status A x_1 succeeded x_1"
                        .to_owned(),
                    (_, "pending" | "succeeded") => "break status_conflict A x_1 1000".to_owned(),
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
fn a_reference_is_an_id_a_key_or_what_was_declared() {
    check_all(&[
        (
            "id, key and reference column",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 ref=kb
             ch_3 charge succeeded 1000 ref=rc
             A charge 1000 succeeded
             B charge 1000 succeeded key=kb
             C charge 1000 succeeded ref=rc",
            "match A ch_1 reference
             match B ch_2 reference
             match C ch_3 reference",
        ),
        (
            "white space never counts, case does, and empty matches nothing",
            "ch_1 charge succeeded 1000 ref=·A·
             ch_2 charge succeeded 1000 ref=b
             ch_3 charge succeeded 1000 ref=·
             A charge 1000 succeeded
             B charge 1000 pending
             C charge 1000 pending",
            "match A ch_1 reference
             break missing_local - ch_2 1000
             break missing_local - ch_3 1000
             ignored B abandoned
             ignored C abandoned",
        ),
        (
            "leading zeros and long numbers are text",
            "ch_1 charge succeeded 1000 ref=007
             ch_2 charge succeeded 1000 ref=1234567890123456789
             7 charge 1000 pending
             007 charge 1000 succeeded
             1234567890123456788 charge 1000 pending
             1234567890123456789 charge 1000 succeeded",
            "match 007 ch_1 reference
             match 1234567890123456789 ch_2 reference
             ignored 7 abandoned
             ignored 1234567890123456788 abandoned",
        ),
        (
            "a stored processor_ref comes before a reference",
            "ch_1 charge succeeded 1000 ref=B
             A charge 1000 succeeded proc=ch_1",
            "match A ch_1 processor_ref",
        ),
        (
            "an object is named as well",
            "ch_1 charge succeeded 1000 obj=pi_1
             A charge 1000 pending proc=pi_1",
            "match A ch_1 processor_ref
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded pi_1",
        ),
        (
            "two intents with one operation: none of them is matched",
            "ch_1 charge succeeded 1000
             A charge 1000 succeeded proc=ch_1
             B charge 1000 succeeded proc=ch_1",
            "break duplicate_record A ch_1 1000",
        ),
        (
            "one by processor_ref, the other by reference: recorded twice",
            "ch_1 charge succeeded 1000 ref=B
             A charge 1000 succeeded proc=ch_1
             B charge 1000 pending",
            "break duplicate_record A ch_1 1000",
        ),
        (
            "a refund's reference names its payment, not its match",
            "re_1 refund succeeded -400 ref=A
             A charge 1000 succeeded 02-20T10:00 proc=ch_9",
            "break missing_local A re_1 400 repaired
             repair record_refund A 400 re_1 succeeded re_1",
        ),
        (
            "and finds the local refund of that payment at equal amount",
            "re_1 refund succeeded -400 ref=A
             A charge 1000 succeeded 02-20T10:00 proc=ch_9
             R refund 400 pending parent=A",
            "match R re_1 parent
             break status_behind R re_1 400 repaired
             repair set_status R re_1 succeeded re_1",
        ),
        (
            "never at another amount",
            "re_1 refund succeeded -400 parent=ch_9
             A charge 1000 succeeded 02-20T10:00 proc=ch_9
             R refund 500 succeeded parent=A",
            "break missing_local A re_1 400 repaired
             break missing_processor R - 500
             repair record_refund A 400 re_1 succeeded re_1",
        ),
        (
            "a refund through its payment's object",
            "re_1 refund succeeded -400 obj=pi_1
             ch_1 charge succeeded 1000 02-20T10:00 ref=A obj=pi_1
             A charge 1000 succeeded 02-20T10:00",
            "break missing_local A re_1 400 repaired
             repair record_refund A 400 re_1 succeeded re_1",
        ),
        (
            "several unrelated rows under one reference: the one that fits",
            "ch_1 charge succeeded 1000 ref=r
             A charge 1000 succeeded ref=r
             r charge 400 pending",
            "match A ch_1 reference
             ignored r abandoned",
        ),
        (
            "or nobody, where several fit",
            "ch_1 charge succeeded 1000 ref=r
             A charge 1000 pending key=r
             r charge 1000 pending",
            "break ambiguous_match - ch_1 1000",
        ),
        (
            "another amount under a used reference is ambiguous",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 400 11:00 ref=A
             A charge 1000 succeeded",
            "match A ch_1 reference
             break ambiguous_match A ch_2 400",
        ),
        (
            "several of other amounts: nobody is linked",
            "ch_1 charge succeeded 300 ref=A
             ch_2 charge succeeded 400 11:00 ref=A
             A charge 1000 pending",
            "break ambiguous_match A ch_1 300
             break ambiguous_match A ch_2 400",
        ),
        (
            "a refund under one payment by reference and another by parent",
            "re_1 refund succeeded -400 ref=R parent=ch_2
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             B charge 1000 succeeded 02-20T10:00 proc=ch_2
             R refund 400 pending parent=A",
            "break ambiguous_match R re_1 400",
        ),
        (
            "a newer processor_ref is a second claim",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 11:00
             A charge 1000 succeeded proc=ch_2",
            "match A ch_2 processor_ref
             break duplicate_charge A ch_1 1000",
        ),
    ]);
}

#[test]
fn a_cut_reference_matches_only_where_it_is_declared() {
    check_all(&[
        (
            "declared, unique and equal",
            "rules chars=10
             ch_1 charge succeeded 1000 ref=ORDER-1234
             ORDER-1234567 charge 1000 succeeded",
            "match ORDER-1234567 ch_1 reference_truncated",
        ),
        (
            "undeclared it only proposes",
            "ch_1 charge succeeded 1000 ref=ORDER-1234
             ORDER-1234567 charge 1000 succeeded",
            "break ambiguous_match ORDER-1234567 ch_1 1000",
        ),
        (
            "two that start so are ambiguous, even when one fits better",
            "rules chars=10
             ch_1 charge succeeded 1000 ref=ORDER-1234
             ORDER-1234567 charge 1000 succeeded
             ORDER-1234999 charge 400 pending",
            "break ambiguous_match ORDER-1234567 ch_1 1000
             ignored ORDER-1234999 abandoned",
        ),
        (
            "another amount is no match",
            "rules chars=10
             ch_1 charge succeeded 900 ref=ORDER-1234
             ORDER-1234567 charge 1000 succeeded",
            "break ambiguous_match ORDER-1234567 ch_1 900",
        ),
        (
            "another length is not cut",
            "rules chars=12
             ch_1 charge succeeded 900 ref=ORDER-1234
             ORDER-1234567 charge 1000 pending",
            "break missing_local - ch_1 900
             ignored ORDER-1234567 abandoned",
        ),
    ]);
}

#[test]
fn rows_under_a_shared_parent_are_dealt_in_a_fixed_order() {
    for operations in 1..=4 {
        for intents in 1..=4 {
            let mut rows = String::new();
            let mut verdict = String::new();
            for n in 1..=operations {
                writeln!(rows, "ch_{n} charge succeeded 1000 1{n}:00 ref=P")
                    .expect("a string takes everything");
            }
            for n in 1..=intents {
                writeln!(rows, "A{n} charge 1000 pending parent=P key=k{n}")
                    .expect("a string takes everything");
            }
            for n in 1..=operations.min(intents) {
                write!(
                    verdict,
                    "match A{n} ch_{n} shared_reference
                     break status_behind A{n} ch_{n} 1000 repaired
                     repair set_status A{n} ch_{n} succeeded ch_{n}\n"
                )
                .expect("a string takes everything");
            }
            for n in intents + 1..=operations {
                writeln!(verdict, "break duplicate_charge A1 ch_{n} 1000")
                    .expect("a string takes everything");
            }
            for n in operations + 1..=intents {
                writeln!(verdict, "ignored A{n} abandoned").expect("a string takes everything");
            }
            check_all(&[(&format!("{operations} on {intents}"), &rows, &verdict)]);
        }
    }
    check_all(&[
        (
            "equal money first, then the odd pair",
            "ch_1 charge succeeded 400 ref=P
             ch_2 charge succeeded 1000 ref=P
             A charge 1000 succeeded parent=P
             B charge 500 succeeded parent=P",
            "match A ch_2 shared_reference
             break amount_mismatch B ch_1 400 delta=-100",
        ),
        (
            "two odd ones on two are ambiguous",
            "ch_1 charge succeeded 400 ref=P
             ch_2 charge succeeded 300 ref=P
             A charge 1000 pending parent=P
             B charge 500 pending parent=P",
            "break ambiguous_match - ch_1 400
             break ambiguous_match - ch_2 300",
        ),
        (
            "succeeded rows are dealt first",
            "ch_1 charge succeeded 1000 ref=P
             A charge 1000 pending parent=P
             B charge 1000 succeeded parent=P",
            "match B ch_1 shared_reference
             ignored A abandoned",
        ),
        (
            "attempts: one is satisfied, the next success is a duplicate",
            "ch_1 charge succeeded 1000 ref=P
             ch_2 charge succeeded 1000 11:00 ref=P
             A charge 1000 failed parent=P attempt=1
             B charge 1000 succeeded parent=P attempt=2",
            "match B ch_1 shared_reference
             break duplicate_charge A ch_2 1000
             ignored A abandoned",
        ),
        (
            "attempts that each name their own success",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 11:00 ref=B
             A charge 1000 failed parent=P attempt=1
             B charge 1000 succeeded parent=P attempt=2",
            "match B ch_2 reference
             break duplicate_charge A ch_1 1000",
        ),
        (
            "parts may each be satisfied",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 11:00 ref=B
             A charge 1000 succeeded parent=P attempt=1
             B charge 1000 succeeded parent=P attempt=1",
            "match A ch_1 reference
             match B ch_2 reference",
        ),
        (
            "a late decline of one attempt beside the success of another",
            "ch_1 charge failed 1000 11:00 ref=A
             ch_2 charge succeeded 1000 ref=B
             A charge 1000 pending parent=P attempt=1
             B charge 1000 succeeded parent=P attempt=2",
            "match B ch_2 reference
             ignored ch_1 failed_attempt
             ignored A abandoned",
        ),
        (
            "a capture follows its hold before a shared reference",
            "au_1 authorization succeeded 1000 ref=A
             au_2 authorization succeeded 1000 ref=B
             cp_1 capture succeeded 1000 11:00 ref=P parent=au_2
             cp_2 capture succeeded 1000 12:00 ref=P parent=au_1
             A charge 1000 succeeded parent=P
             B charge 1000 succeeded parent=P",
            "match A cp_2 parent
             match B cp_1 parent
             ignored au_1 life_cycle
             ignored au_2 life_cycle",
        ),
    ]);
}

#[test]
fn a_further_success_is_a_duplicate_until_it_is_refunded() {
    check_all(&[
        (
            "three charges for one purchase",
            "ch_2 charge succeeded 1000 10:02 ref=A
             ch_1 charge succeeded 1000 10:01 ref=A
             ch_3 charge succeeded 1000 10:03 ref=A
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             break duplicate_charge A ch_2 1000
             break duplicate_charge A ch_3 1000
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "a refunded duplicate is no longer open",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_2 refund succeeded -1000 11:00 parent=ch_2
             A charge 1000 succeeded",
            "match A ch_1 reference
             ignored ch_2 returned_in_full
             ignored re_2 returned_in_full",
        ),
        (
            "the one that stayed satisfies, also when the refunded one came first",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_1 refund succeeded -1000 11:00 parent=ch_1
             A charge 1000 pending",
            "match A ch_2 reference
             break status_behind A ch_2 1000 repaired
             repair set_status A ch_2 succeeded ch_2
             ignored ch_1 returned_in_full
             ignored re_1 returned_in_full",
        ),
        (
            "a partly refunded duplicate stays, with what is left at risk",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_2 refund succeeded -300 11:00 parent=ch_2
             A charge 1000 succeeded",
            "match A ch_1 reference
             break duplicate_charge A ch_2 1000 delta=700",
        ),
        (
            "its refund has a row of its own",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_2 refund succeeded -1000 11:00 parent=ch_2
             A charge 1000 succeeded
             R refund 1000 succeeded parent=A",
            "match A ch_1 reference
             match R re_2 parent
             ignored ch_2 returned_in_full",
        ),
        (
            "its refund failed again",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_2 refund succeeded -1000 11:00 parent=ch_2
             rf_2 refund_failure succeeded 1000 12:00 parent=re_2
             A charge 1000 succeeded",
            "match A ch_1 reference
             break duplicate_charge A ch_2 1000",
        ),
        (
            "a failed row with two successes: each is a duplicate, nothing is written",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             A charge 1000 failed",
            "break duplicate_charge A ch_1 1000
             break duplicate_charge A ch_2 1000",
        ),
        (
            "a failed row with two successes of which one was refunded",
            "ch_1 charge succeeded 1000 10:01 ref=A
             ch_2 charge succeeded 1000 10:02 ref=A
             re_1 refund succeeded -1000 11:00 parent=ch_1
             A charge 1000 failed",
            "match A ch_2 reference
             break status_behind A ch_2 1000 repaired
             repair set_status A ch_2 succeeded ch_2
             ignored ch_1 returned_in_full
             ignored re_1 returned_in_full",
        ),
        (
            "money that came and went under a canceled row",
            "ch_1 charge succeeded 1000 ref=A
             re_1 refund succeeded -1000 11:00 parent=ch_1
             A charge 1000 canceled",
            "ignored ch_1 returned_in_full
             ignored re_1 returned_in_full
             ignored A returned_in_full",
        ),
        (
            "a further payout under one reference is ambiguous",
            "po_1 payout succeeded -1000 10:01 ref=A
             po_2 payout succeeded -1000 10:02 ref=A
             A payout 1000 succeeded",
            "match A po_1 reference
             break ambiguous_match A po_2 1000",
        ),
        (
            "two refunds of one key",
            "re_1 refund succeeded -400 10:01 ref=R parent=ch_1
             re_2 refund succeeded -400 10:02 ref=R parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A",
            "match R re_1 reference
             break duplicate_refund A re_2 400 delta=400",
        ),
        (
            "refunds above the charge",
            "re_1 refund succeeded -600 10:01 parent=ch_1
             re_2 refund succeeded -600 10:02 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 600 succeeded parent=A proc=re_1
             S refund 600 succeeded parent=A proc=re_2",
            "match R re_1 processor_ref
             match S re_2 processor_ref
             break duplicate_refund A re_2 600 delta=200",
        ),
        (
            "a refund and a dispute above the charge",
            "re_1 refund succeeded -1000 10:01 parent=ch_1
             du_1 dispute succeeded -1000 10:02 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 1000 succeeded parent=A proc=re_1
             D dispute 1000 lost parent=A proc=du_1",
            "match R re_1 processor_ref
             match D du_1 processor_ref
             break duplicate_refund A du_1 1000 delta=1000",
        ),
        (
            "a local refund out of reach counts with what it claims",
            "re_2 refund succeeded -600 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 600 succeeded 02-25T10:00 parent=A proc=re_1",
            "break missing_local A re_2 600 repaired
             break duplicate_refund A re_2 600 delta=200
             repair record_refund A 600 re_2 succeeded re_2",
        ),
        (
            "a won dispute takes nothing",
            "re_1 refund succeeded -1000 10:01 parent=ch_1
             du_1 dispute succeeded -1000 10:02 parent=ch_1
             dr_1 dispute_reversal succeeded 1000 10:03 parent=du_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 1000 succeeded parent=A proc=re_1
             D dispute 1000 won parent=A proc=du_1",
            "match R re_1 processor_ref
             match D du_1 processor_ref
             match D dr_1 parent",
        ),
    ]);
}

#[test]
fn a_refund_that_came_back_is_no_refund_in_every_spelling() {
    let charge = "A charge 1000 succeeded 02-20T10:00 proc=ch_1";
    for (name, rows) in [
        (
            "a failure row",
            "re_1 refund succeeded -400 parent=ch_1
                           rf_1 refund_failure succeeded 400 11:00 parent=re_1",
        ),
        (
            "a failed label that still carries its net",
            "re_1 refund failed -400 net=-400 parent=ch_1
                           rf_1 refund_failure succeeded 400 11:00 net=400 parent=re_1",
        ),
        (
            "an adjustment",
            "re_1 refund succeeded -400 parent=ch_1
                           ad_1 adjustment succeeded 400 11:00 parent=re_1",
        ),
        (
            "a failure row by object",
            "re_1 refund succeeded -400 parent=ch_1
                           rf_1 refund_failure succeeded 400 11:00 obj=re_1",
        ),
    ] {
        let operation = "re_1";
        check_all(&[(
            name,
            &format!("{rows}\n{charge}\nR refund 400 succeeded parent=A proc=re_1"),
            &format!(
                "break status_reversed R {operation} 400
                 repair set_status R {operation} failed re_1"
            ),
        )]);
        check_all(&[(
            &format!("{name}, without a local row"),
            &format!("{rows}\n{charge}"),
            &format!(
                "ignored re_1 returned_in_full
                 ignored {} returned_in_full",
                if rows.contains("ad_1") {
                    "ad_1"
                } else {
                    "rf_1"
                }
            ),
        )]);
        check_all(&[(
            &format!("{name}, still pending locally"),
            &format!("{rows}\n{charge}\nR refund 400 pending parent=A proc=re_1"),
            &format!(
                "match R re_1 processor_ref
                 match R {} parent
                 break status_behind R re_1 400 repaired
                 repair set_status R re_1 failed re_1",
                if rows.contains("ad_1") {
                    "ad_1"
                } else {
                    "rf_1"
                }
            ),
        )]);
    }
    check_all(&[
        (
            "a status, without any money",
            "re_1 refund failed -400 net=0 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A proc=re_1",
            "break status_reversed R re_1 400
             repair set_status R re_1 failed re_1",
        ),
        (
            "only the return is in reach",
            "rf_1 refund_failure succeeded 400 parent=re_1
             R refund 400 succeeded 02-20T10:00 proc=re_1",
            "break status_reversed R rf_1 400
             repair set_status R rf_1 failed re_1",
        ),
        (
            "a part came back: nothing is written",
            "re_1 refund succeeded -400 parent=ch_1
             rf_1 refund_failure succeeded 100 11:00 parent=re_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A proc=re_1",
            "break status_reversed R re_1 400 delta=100",
        ),
        (
            "more came back than had gone",
            "re_1 refund succeeded -400 parent=ch_1
             rf_1 refund_failure succeeded 500 11:00 parent=re_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A proc=re_1",
            "break amount_mismatch R rf_1 400 delta=100",
        ),
        (
            "a failure row of nothing that is known",
            "rf_1 refund_failure succeeded 400 parent=re_9",
            "break missing_local - rf_1 400",
        ),
        (
            "a refund made in the console",
            "re_1 refund succeeded -1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A re_1 1000 repaired
             repair record_refund A 1000 re_1 succeeded re_1",
        ),
        (
            "of a payment nobody knows",
            "re_1 refund succeeded -1000 parent=ch_9",
            "break missing_local - re_1 1000",
        ),
        (
            "an id that was made up is never written",
            "x1 refund succeeded -1000 parent=ch_1 synthetic
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A x1 1000 repaired
             repair record_refund A 1000 x1 succeeded -",
        ),
        (
            "a failed refund without money is an attempt",
            "re_1 refund failed -1000 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "ignored re_1 failed_attempt",
        ),
    ]);
}

#[test]
fn holds_and_captures_are_one_payment() {
    check_all(&[
        (
            "a captured hold is life cycle",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture succeeded 1000 11:00 parent=au_1
             A charge 1000 pending",
            "match A cp_1 parent
             break status_behind A cp_1 1000 repaired
             repair set_status A cp_1 succeeded cp_1
             ignored au_1 life_cycle",
        ),
        (
            "captures that add up are one match",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture succeeded 600 11:00 parent=au_1
             cp_2 capture succeeded 400 12:00 parent=au_1
             A charge 1000 pending proc=au_1",
            "match A cp_1 sum
             match A cp_2 sum
             break status_behind A cp_1 1000 repaired
             repair set_status A cp_1 succeeded au_1
             ignored au_1 life_cycle",
        ),
        (
            "captures that do not",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture succeeded 600 11:00 parent=au_1
             cp_2 capture succeeded 300 12:00 parent=au_1
             A charge 1000 succeeded proc=au_1",
            "break amount_mismatch A cp_1 900 delta=-100
             ignored au_1 life_cycle",
        ),
        (
            "a partial capture",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture succeeded 600 11:00 parent=au_1
             A charge 1000 succeeded proc=au_1",
            "break amount_mismatch A cp_1 600 delta=-400
             ignored au_1 life_cycle",
        ),
        (
            "a live hold beside a pending row is in order",
            "au_1 authorization succeeded 1000 ref=A
             A charge 1000 pending",
            "match A au_1 reference",
        ),
        (
            "beside a success it is no payment yet",
            "au_1 authorization succeeded 1000 ref=A
             A charge 1000 succeeded",
            "break status_ahead A au_1 1000",
        ),
        (
            "within grace it waits",
            "au_1 authorization succeeded 1000 10T11:31 ref=A
             A charge 1000 succeeded 10T11:30",
            "pending A au_1",
        ),
        (
            "beside rows that are over nobody waits for it",
            "au_1 authorization succeeded 1000 ref=A
             au_2 authorization succeeded 1000 ref=B
             au_3 authorization succeeded 1000 ref=C
             A charge 1000 failed
             B charge 1000 canceled
             C charge 1000 expired",
            "ignored au_1 hold
             ignored au_2 hold
             ignored au_3 hold
             ignored A abandoned
             ignored B abandoned
             ignored C abandoned",
        ),
        (
            "of nobody",
            "au_1 authorization succeeded 1000",
            "ignored au_1 hold",
        ),
        (
            "a failed capture after the hold takes the success back",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture failed 1000 11:00 ref=A parent=au_1
             A charge 1000 succeeded proc=au_1",
            "break status_reversed A cp_1 1000
             repair set_status A cp_1 failed au_1
             ignored au_1 life_cycle",
        ),
        (
            "beside an open row the hold outweighs it",
            "au_1 authorization succeeded 1000 ref=A
             cp_1 capture failed 1000 11:00 ref=A parent=au_1
             A charge 1000 pending proc=au_1",
            "match A au_1 processor_ref
             ignored cp_1 failed_attempt",
        ),
        (
            "a hold that was let go is a final cancel",
            "au_1 authorization succeeded 1000 ref=A
             vo_1 void succeeded 1000 11:00 parent=au_1
             A charge 1000 pending proc=au_1",
            "match A vo_1 parent
             break status_behind A vo_1 1000 repaired
             repair set_status A vo_1 canceled au_1
             ignored au_1 life_cycle",
        ),
        (
            "in part only is none",
            "au_1 authorization succeeded 1000 ref=A
             vo_1 void succeeded 400 11:00 parent=au_1
             A charge 1000 pending proc=au_1",
            "match A au_1 processor_ref
             ignored vo_1 life_cycle",
        ),
        (
            "and takes a success back",
            "au_1 authorization succeeded 1000 ref=A
             vo_1 void succeeded 0 11:00 parent=au_1
             A charge 1000 succeeded proc=au_1",
            "break status_reversed A vo_1 0
             repair set_status A vo_1 canceled au_1
             ignored au_1 life_cycle",
        ),
        (
            "one of two holds ran out, the other was captured",
            "au_1 authorization expired 1000 09:59 ref=A
             au_2 authorization succeeded 1000 ref=A
             cp_2 capture succeeded 1000 11:00 parent=au_2
             A charge 1000 succeeded",
            "match A cp_2 parent
             ignored au_1 failed_attempt
             ignored au_2 life_cycle",
        ),
        (
            "a hold of another amount that ran out says nothing",
            "au_1 authorization expired 400 ref=A
             A charge 1000 pending",
            "ignored au_1 failed_attempt
             ignored A abandoned",
        ),
    ]);
}

#[test]
fn a_payout_is_the_sum_of_its_parts() {
    let charge = "ch_1 charge succeeded 1000 net=970 ref=A payout=po_1
                  A charge 1000 succeeded";
    for (name, rows, verdict) in [
        (
            "tied out, and no local row asks for it",
            "po_1 payout succeeded -970 20:00 net=-970",
            "ignored po_1 account_level",
        ),
        (
            "tied out by its own id in its payout column",
            "po_1 payout succeeded -970 20:00 net=-970 payout=po_1
             P payout 970 20:00 succeeded proc=po_1",
            "match P po_1 processor_ref",
        ),
        (
            "a residual",
            "po_1 payout succeeded -900 20:00 net=-900",
            "break payout_residual - po_1 900 delta=70",
        ),
        (
            "a residual with a local row",
            "po_1 payout succeeded -900 20:00 net=-900
             P payout 900 20:00 succeeded proc=po_1",
            "break payout_residual P po_1 900 delta=70",
        ),
        (
            "a fee, an adjustment and a reserve are parts",
            "fe_1 fee succeeded -20 net=-20 payout=po_1
             ad_1 adjustment succeeded -40 net=-40 payout=po_1
             rh_1 reserve_hold succeeded -10 net=-10 payout=po_1
             po_1 payout succeeded -900 20:00 net=-900",
            "ignored fe_1 account_level_fee
             ignored ad_1 account_level
             ignored rh_1 hold
             ignored po_1 account_level",
        ),
        (
            "so are rows of another scope and rows set aside",
            "x_1 charge succeeded -30 net=-30 payout=po_1 ignore=other_scope
             x_2 charge pending -40 net=-40 payout=po_1 ignore=life_cycle
             po_1 payout succeeded -900 20:00 net=-900",
            "ignored x_1 other_scope
             ignored x_2 life_cycle
             ignored po_1 account_level",
        ),
        (
            "and rows that cannot be used, where their money can be read",
            "x_1 other unknown -70 net=-70 payout=po_1 invalid=unknown·kind
             po_1 payout succeeded -900 20:00 net=-900",
            "break invalid_record - x_1 70
             ignored po_1 account_level",
        ),
        (
            "parts of another currency are no parts",
            "x_1 fee succeeded -70 USD net=-70 payout=po_1
             po_1 payout succeeded -970 20:00 net=-970",
            "ignored x_1 account_level_fee
             ignored po_1 account_level",
        ),
        (
            "it came back",
            "po_1 payout succeeded -970 20:00 net=-970
             pf_1 payout_failure succeeded 970 21:00 net=970 parent=po_1
             P payout 970 20:00 succeeded proc=po_1",
            "break payout_returned P po_1 970
             repair set_status P po_1 failed po_1",
        ),
        (
            "it came back as an adjustment, and no local row asks for it",
            "po_1 payout succeeded -970 20:00 net=-970
             ad_1 adjustment succeeded 970 21:00 net=970 parent=po_1",
            "break payout_returned - ad_1 970",
        ),
        (
            "more came back than was paid",
            "po_1 payout succeeded -970 20:00 net=-970
             pf_1 payout_failure succeeded 1000 21:00 net=1000 parent=po_1
             P payout 970 20:00 succeeded proc=po_1",
            "break amount_mismatch P pf_1 970 delta=30",
        ),
        (
            "it failed without money",
            "po_1 payout failed -970 20:00 net=0
             P payout 970 20:00 succeeded proc=po_1",
            "break payout_returned P po_1 970
             repair set_status P po_1 failed po_1",
        ),
    ] {
        check_all(&[(
            name,
            &format!("{charge}\n{rows}"),
            &format!("match A ch_1 reference\n{verdict}"),
        )]);
    }
    check_all(&[
        (
            "no parts at all: no verdict",
            "po_1 payout succeeded -970 20:00 net=-970",
            "ignored po_1 account_level",
        ),
        (
            "parts that may lie before what was read: no verdict",
            "rules payout_span=5d
             fe_1 fee succeeded -20 net=-20 payout=po_1
             po_1 payout succeeded -970 20:00 net=-970",
            "ignored fe_1 account_level_fee
             ignored po_1 account_level",
        ),
        (
            "only the return is in reach",
            "pf_1 payout_failure succeeded 970 net=970 parent=po_1
             P payout 970 02-20T10:00 succeeded proc=po_1",
            "break payout_returned P pf_1 970
             repair set_status P pf_1 failed po_1",
        ),
    ]);
    let world = World::of(
        "rules payout_span=5d
         fe_1 fee succeeded -20 net=-20 payout=po_1
         po_1 payout succeeded -970 20:00 net=-970",
    );
    assert_eq!(world.run().outcome.unverified_payouts, 1);
}

#[test]
fn absence_is_said_only_of_what_was_read_whole() {
    check_all(&[
        (
            "due at the very end of what was read",
            "frame covered=10T11:00
             A charge 1000 succeeded 10T10:00",
            "break missing_processor A - 1000",
        ),
        (
            "and not due a second later",
            "frame covered=10T11:00
             A charge 1000 succeeded 10T10:00:01",
            "pending A -",
        ),
        (
            "the source was not read whole",
            "frame covered=none
             A charge 1000 succeeded",
            "pending A -",
        ),
        (
            "another source was not, and nobody owns the row",
            "frame others=none
             A charge 1000 succeeded
             B charge 1000 succeeded source=shop",
            "pending A -
             break missing_processor B - 1000",
        ),
        (
            "another source is behind",
            "frame others=09T10:00
             A charge 1000 succeeded",
            "pending A -",
        ),
        (
            "another source owns the row, or answered it",
            "A charge 1000 succeeded source=bank
             B charge 1000 succeeded elsewhere=stands",
            "",
        ),
        (
            "another slice speaks of rows that nobody owns",
            "frame unowned=no
             A charge 1000 succeeded",
            "",
        ),
        (
            "the files are those of the last run",
            "frame unchanged
             A charge 1000 succeeded",
            "pending A -",
        ),
        (
            "older than what was read: nobody asks",
            "A charge 1000 succeeded 02-20T10:00",
            "",
        ),
        (
            "claims nothing: abandoned, with or without a processor_ref",
            "A charge 1000 pending
             B charge 1000 created proc=ch_9
             C charge 1000 failed
             D charge 1000 canceled
             E charge 1000 expired",
            "ignored A abandoned
             ignored B abandoned
             ignored C abandoned
             ignored D abandoned
             ignored E abandoned",
        ),
        (
            "it may still be completed",
            "rules open_after=2d
             A charge 1000 pending",
            "pending A -",
        ),
        (
            "old, open, known to the processor, and nobody can be asked",
            "A charge 1000 pending 02-20T10:00 proc=ch_9",
            "break open_too_long A - 1000",
        ),
        (
            "unless the source can be asked, or never knew it",
            "rules lookup
             A charge 1000 pending 02-20T10:00 proc=ch_9
             B charge 1000 pending 02-20T10:00",
            "ignored A abandoned
             ignored B abandoned",
        ),
    ]);
}

#[test]
fn what_was_called_absent_stays_so_until_it_is_seen() {
    let mut world = World::of("A charge 1000 succeeded");
    world.settle(&world.run());
    let missing = expected("break missing_processor A - 1000");
    for frame in ["frame covered=none", "frame unchanged", "frame others=none"] {
        let mut later = world.clone();
        later.add(frame);
        assert_eq!(later.run().text(), missing, "{frame}");
    }
    let mut later = world.clone();
    later.add("frame as_of=20T12:00 from=18T00:00");
    assert_eq!(later.run().text(), missing, "out of the window");
    let mut seen = world.clone();
    seen.add("ch_1 charge succeeded 1000 ref=A");
    let run = seen.run();
    assert_eq!(run.text(), expected("match A ch_1 reference"));
    assert_eq!(run.outcome.resolved.len(), 1);
    let mut failed = world.clone();
    failed.edit("A charge 1000 failed");
    let run = failed.run();
    assert_eq!(run.text(), expected("ignored A abandoned"));
    assert_eq!(run.outcome.resolved.len(), 1);
}

#[test]
fn a_row_that_cannot_be_used_has_one_break_and_so_has_its_counterpart() {
    check_all(&[
        (
            "an operation and the intent it names",
            "ch_1 charge succeeded 1000 ref=A invalid=unknown·currency
             A charge 1000 succeeded",
            "break invalid_record A ch_1 1000",
        ),
        (
            "an operation that names nothing",
            "ch_1 charge succeeded 1000 invalid=unknown·currency",
            "break invalid_record - ch_1 1000",
        ),
        (
            "an intent and the operation that names it",
            "ch_1 charge succeeded 1000 ref=A
             A charge 0 pending invalid=14.345·is·no·amount",
            "break invalid_record A ch_1",
        ),
        (
            "an intent that nothing names",
            "A charge 0 pending invalid=14.345·is·no·amount",
            "break invalid_record A -",
        ),
        (
            "an unreadable row beside a readable one",
            "ch_1 charge succeeded 1000 ref=A
             ch_2 charge succeeded 1000 ref=A invalid=broken
             A charge 1000 succeeded",
            "match A ch_1 reference
             break invalid_record - ch_2 1000",
        ),
        (
            "a time that cannot be right",
            "ch_1 charge succeeded 1000 20T10:00 ref=A
             A charge 1000 succeeded",
            "break invalid_record A ch_1 1000",
        ),
        (
            "a status that could mean anything, beside money",
            "ch_1 charge unknown 1000 ref=A net=970
             A charge 1000 succeeded",
            "break invalid_record A ch_1 1000",
        ),
        (
            "and without",
            "ch_1 charge unknown 1000 ref=A net=0
             A charge 1000 pending",
            "ignored ch_1 no_money
             ignored A abandoned",
        ),
    ]);
}

#[test]
fn amounts_agree_exactly_or_as_declared() {
    check_all(&[
        (
            "one cent off is off",
            "ch_1 charge succeeded 1001 ref=A
             A charge 1000 pending",
            "break amount_mismatch A ch_1 1001 delta=1",
        ),
        (
            "unless it is tolerated, and then it is listed",
            "rules tolerance=EUR:1
             ch_1 charge succeeded 1001 ref=A
             A charge 1000 pending",
            "match A ch_1 reference delta=1
             break status_behind A ch_1 1001 delta=1 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "of that currency only, and not one more",
            "rules tolerance=EUR:1
             ch_1 charge succeeded 1002 ref=A
             ch_2 charge succeeded 1001 USD ref=B
             A charge 1000 succeeded
             B charge 1000 USD succeeded",
            "break amount_mismatch A ch_1 1002 delta=2
             break amount_mismatch B ch_2 1001 USD delta=1",
        ),
        (
            "what is given back may be off by as much as what was taken",
            "rules tolerance=EUR:1
             ch_1 charge succeeded 1000 ref=A
             re_1 refund succeeded -1001 11:00 parent=ch_1
             ch_2 charge succeeded 1000 ref=B
             re_2 refund succeeded -1002 11:00 parent=ch_2
             A charge 1001 succeeded
             R refund 1001 succeeded parent=A proc=re_1
             B charge 1001 succeeded
             S refund 1002 succeeded parent=B proc=re_2",
            "match A ch_1 reference delta=-1
             match R re_1 processor_ref
             match B ch_2 reference delta=-1
             match S re_2 processor_ref
             break duplicate_refund B re_2 1002 delta=2",
        ),
        (
            "rounding that was declared; equal amounts always agree",
            "rules rounds=KWD:10
             ch_1 charge succeeded 18610 KWD ref=A
             ch_2 charge succeeded 18605 KWD ref=B
             ch_3 charge succeeded 18600 KWD ref=C
             A charge 18605 KWD succeeded
             B charge 18605 KWD succeeded
             C charge 18605 KWD succeeded",
            "match A ch_1 reference delta=5
             match B ch_2 reference
             break amount_mismatch C ch_3 18600 KWD delta=-5",
        ),
        (
            "currencies are never mixed",
            "ch_1 charge succeeded 1000 USD ref=A
             A charge 1000 succeeded",
            "break currency_mismatch A ch_1 1000 USD",
        ),
        (
            "nor in what comes back",
            "re_1 refund succeeded -400 parent=ch_1
             ad_1 adjustment succeeded 400 USD 11:00 parent=re_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A proc=re_1",
            "break currency_mismatch R ad_1 400 USD",
        ),
        (
            "money that went the other way",
            "ch_1 charge succeeded -1000 ref=A
             A charge 1000 succeeded",
            "break amount_mismatch A ch_1 1000 delta=-2000",
        ),
        (
            "a refund that brought money is recorded for nobody",
            "re_1 refund succeeded 400 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A re_1 400",
        ),
        (
            "a payment of nothing",
            "ch_1 charge succeeded 0 ref=A
             A charge 0 succeeded",
            "match A ch_1 reference",
        ),
        (
            "a payment that the fee ate",
            "ch_1 charge succeeded 30 fee=30 net=0 ref=A
             A charge 30 pending",
            "match A ch_1 reference
             break status_behind A ch_1 30 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "a label never decides against the money",
            "ch_1 charge failed 1000 net=970 ref=A
             ch_2 charge succeeded 1000 net=0 ref=B
             A charge 1000 succeeded
             B charge 1000 pending",
            "match A ch_1 reference
             pending B ch_2",
        ),
        (
            "what settles in another currency is compared as the customer saw it",
            "ch_1 charge succeeded 1000 USD net=800 settle=GBP ref=A
             A charge 1000 USD succeeded",
            "match A ch_1 reference",
        ),
    ]);
    for (local, factor) in [
        (100, 10),
        (10, 100),
        (1, 1000),
        (10_000, 10),
        (100_000, 100),
    ] {
        let world = World::of(&format!(
            "ch_1 charge succeeded 1000 ref=A
             A charge {local} succeeded"
        ));
        let run = world.run();
        let why = &run.outcome.findings[0].found.why;
        assert!(
            why.contains(&format!("factor of exactly {factor}")),
            "{local}: {why}"
        );
    }
    let world = World::of(
        "rules tolerance=EUR:1
         ch_1 charge succeeded 1001 ref=A
         ch_2 charge succeeded 999 ref=B
         ch_3 charge succeeded 1001 ref=C
         A charge 1000 succeeded
         B charge 1000 succeeded
         C charge 1000 succeeded",
    );
    let deltas: Vec<i128> = world.run().outcome.deltas.into_values().collect();
    assert_eq!(deltas, [1]);
}

#[test]
fn a_window_selects_verdicts_and_never_links() {
    check_all(&[
        (
            "an old pair is nobody's question",
            "ch_1 charge succeeded 1000 02-20T10:00 ref=A
             A charge 1000 succeeded 02-20T09:59",
            "",
        ),
        (
            "an old open row is, whenever its operation happened",
            "ch_1 charge succeeded 1000 02-20T10:00 ref=A
             A charge 1000 pending 02-20T09:59",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "an operation in the window finds its old intent",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 failed 02-20T09:59",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "an intent in the window finds its old operation",
            "ch_1 charge succeeded 1000 02-20T10:00 ref=A
             A charge 1000 succeeded",
            "match A ch_1 reference",
        ),
        (
            "a row that was never seen and lies after low is judged, however late it comes",
            "frame from=09T00:00 low=06T00:00
             ch_1 charge succeeded 1000 07T10:00
             ch_2 charge succeeded 1000 05T10:00",
            "break missing_local - ch_1 1000",
        ),
        (
            "not in a range that was given by hand",
            "frame from=09T00:00 low=06T00:00 basis=range
             ch_1 charge succeeded 1000 07T10:00",
            "",
        ),
        (
            "a file is judged whole",
            "frame basis=files
             ch_1 charge succeeded 1000 02-20T10:00",
            "break missing_local - ch_1 1000",
        ),
        (
            "the window is half open",
            "frame to=09T10:00 covered=09T10:00
             ch_1 charge succeeded 1000 10:00
             ch_2 charge succeeded 1000 09:59:59",
            "break missing_local - ch_2 1000",
        ),
        (
            "a succeeded row that names something older than what was read takes no second payment",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 succeeded 02-20T09:59 proc=ch_0",
            "break duplicate_charge A ch_1 1000",
        ),
        (
            "inside coverage it takes what its reference leads to",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 succeeded proc=ch_0",
            "match A ch_1 reference",
        ),
    ]);
}

#[test]
fn other_rows_are_counted_and_ask_nothing() {
    check_all(&[
        (
            "every other kind",
            "fe_1 fee succeeded -10
             tr_1 transfer succeeded -100
             rh_1 reserve_hold succeeded -100
             rr_1 reserve_release succeeded 100
             co_1 conversion succeeded -100
             ad_1 adjustment succeeded -100
             ot_1 other pending 0",
            "ignored fe_1 account_level_fee
             ignored tr_1 account_level
             ignored rh_1 hold
             ignored rr_1 hold
             ignored co_1 conversion
             ignored ad_1 account_level
             ignored ot_1 no_money",
        ),
        (
            "a conversion says nothing about the payment that it names",
            "ch_1 charge succeeded 1000 ref=A
             co_1 conversion succeeded -1000 parent=ch_1
             co_2 conversion succeeded 1200 USD parent=ch_1
             A charge 1000 succeeded proc=ch_1",
            "match A ch_1 processor_ref
             ignored co_1 conversion
             ignored co_2 conversion",
        ),
        (
            "nor do halves of one, beside a refund",
            "ch_1 charge succeeded 1000 ref=A
             co_1 conversion succeeded -1000 parent=ch_1
             re_1 refund succeeded -1000 parent=ch_1
             co_2 conversion succeeded 1000 parent=re_1
             A charge 1000 succeeded proc=ch_1
             R refund 1000 succeeded proc=re_1 parent=A",
            "match A ch_1 processor_ref
             match R re_1 processor_ref
             ignored co_1 conversion
             ignored co_2 conversion",
        ),
        (
            "money of an unnamed kind is asked about",
            "ot_1 other succeeded 100
             dr_1 dispute_reversal succeeded 100 parent=du_9",
            "break missing_local - ot_1 100
             break missing_local - dr_1 100",
        ),
        (
            "kinds that the local side does not record",
            "rules kinds=charge
             re_1 refund succeeded -400 parent=ch_1
             du_1 dispute succeeded -400 parent=ch_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "ignored re_1 account_level
             ignored du_1 account_level",
        ),
        (
            "rows of another scope or mode never touch a local row",
            "ch_1 charge succeeded 1000 ref=A ignore=other_scope
             ch_2 charge succeeded 1000 ref=A ignore=test_mode
             A charge 1000 pending",
            "ignored ch_1 other_scope
             ignored ch_2 test_mode
             ignored A abandoned",
        ),
    ]);
}

#[test]
fn policies_propose_or_leave_it() {
    check_all(&[
        (
            "proposed",
            "rules propose=status_behind
             ch_1 charge succeeded 1000 ref=A
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000
             repair set_status A ch_1 succeeded ch_1 proposed",
        ),
        (
            "off",
            "rules off=status_behind off=missing_local
             ch_1 charge succeeded 1000 ref=A
             re_1 refund succeeded -400 11:00 parent=ch_1
             A charge 1000 pending",
            "match A ch_1 reference
             break status_behind A ch_1 1000
             break missing_local A re_1 400",
        ),
        (
            "the processor's id for a row that is in order, where that is asked for",
            "rules link=auto
             ch_1 charge succeeded 1000 ref=A
             A charge 1000 succeeded",
            "match A ch_1 reference
             repair link A ch_1 succeeded ch_1",
        ),
    ]);
}

#[test]
fn a_condition_that_does_not_hold_proposes_or_holds_back() {
    let behind = "ch_1 charge succeeded 1000 ref=A
             A charge 1000 pending";
    let repaired = "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1";
    let proposed = "match A ch_1 reference
             break status_behind A ch_1 1000
             repair set_status A ch_1 succeeded ch_1 proposed";
    let left = "match A ch_1 reference
             break status_behind A ch_1 1000";
    for (rules, expected) in [
        ("max=status_behind:EUR/1000", repaired),
        ("max=status_behind:EUR/999", proposed),
        // A currency that is not named has no limit that could hold.
        ("max=status_behind:USD/1000000", proposed),
        (
            "max=status_behind:EUR/999 otherwise=status_behind:off",
            left,
        ),
        ("max=status_behind:EUR/999 propose=status_behind", left),
        ("evidence=status_behind:reference", repaired),
        ("evidence=status_behind:parent", repaired),
        ("evidence=status_behind:processor_ref", proposed),
        ("min_age=status_behind:60m", repaired),
        ("min_age=status_behind:200d", proposed),
        ("forward=status_behind", repaired),
    ] {
        check_all(&[(rules, &format!("rules {rules}\n{behind}"), expected)]);
    }
    let failed = "ch_1 charge succeeded 1000 ref=A
             A charge 1000 failed";
    check_all(&[(
        "a final status is not changed where only forward is allowed",
        &format!("rules forward=status_behind\n{failed}"),
        proposed,
    )]);
}

#[test]
fn what_a_condition_decided_stands_beside_the_repair() {
    let note = |rules: &str| {
        let world = World::of(&format!(
            "rules {rules}
             ch_1 charge succeeded 1000 ref=A
             A charge 1000 pending"
        ));
        let run = world.run();
        let repairs = &run.outcome.repairs;
        let held: Vec<String> = run
            .outcome
            .held_back
            .iter()
            .map(|it| it.reason.clone())
            .collect();
        (repairs.first().map(|it| it.note.clone()), held)
    };
    assert_eq!(
        note("max=status_behind:EUR/1000"),
        (
            Some("[repair] status_behind = auto: max_amount 10.00 EUR".to_owned()),
            vec![]
        )
    );
    assert_eq!(note("max=status_behind:EUR/999"), (
        Some("[repair] status_behind = propose, not auto: 10.00 EUR is above max_amount 9.99 EUR".to_owned()),
        vec![]
    ));
    assert_eq!(
        note("max=status_behind:EUR/999 otherwise=status_behind:off"),
        (
            None,
            vec![
                "[repair] status_behind = off, not auto: 10.00 EUR is above max_amount 9.99 EUR"
                    .to_owned()
            ]
        )
    );
}

/// What a second reading of one operation says, after a first one was kept.
fn seen_again(first: &str, again: &str) -> (World, Vec<String>) {
    let mut world = World::of(&format!(
        "{first}
         A charge 1000 succeeded"
    ));
    world.settle(&world.run());
    world.feed(again);
    let run = world.run();
    run.assert_sound();
    (world, run.text())
}

#[test]
fn an_operation_seen_again_with_other_content_is_told() {
    let first = "ch_1 charge succeeded 1000 ref=A parent=o fee=30 net=970 payout=po";
    for again in [
        "ch_1 capture succeeded 1000 ref=A parent=o fee=30 net=970 payout=po",
        "ch_1 charge succeeded 900 ref=A parent=o fee=30 net=970 payout=po",
        "ch_1 charge succeeded 1000 USD ref=A parent=o fee=30 net=970 payout=po",
        "ch_1 charge succeeded 1000 11:00 ref=A parent=o fee=30 net=970 payout=po",
        "ch_1 charge succeeded 1000 ref=B parent=o fee=30 net=970 payout=po",
        "ch_1 charge succeeded 1000 ref=A parent=p fee=30 net=970 payout=po",
        "ch_1 charge succeeded 1000 ref=A parent=o fee=31 net=970 payout=po",
        "ch_1 charge succeeded 1000 ref=A parent=o fee=30 net=960 payout=po",
        "ch_1 charge succeeded 1000 ref=A parent=o fee=30 net=970 payout=pp",
    ] {
        let (mut world, text) = seen_again(first, again);
        assert_eq!(text.len(), 1, "{again}: {text:?}");
        assert!(
            text[0].starts_with("break operation_changed A ch_1"),
            "{again}: {text:?}"
        );
        // It stays while the feed says so, also when the feed does not show the row; the stored content holds.
        world.settle(&world.run());
        assert_eq!(world.run().text(), text);
        let mut unseen = world.clone();
        unseen.feed("");
        assert_eq!(
            unseen.run().text().len(),
            1,
            "{again}: {:?}",
            unseen.run().text()
        );
        // The old content again is in order.
        let mut back = world.clone();
        back.feed(first);
        assert_eq!(
            back.run().text(),
            expected("match A ch_1 reference"),
            "{again}"
        );
    }
}

#[test]
fn what_a_first_reading_left_open_may_be_filled_in() {
    for (first, again) in [
        (
            "ch_1 charge succeeded 1000 ref=A",
            "ch_1 charge succeeded 1000 ref=A fee=30 net=970 payout=po",
        ),
        (
            "ch_1 charge succeeded 1000 ref=A net=970",
            "ch_1 charge succeeded 1000 ref=A",
        ),
        (
            "ch_1 charge pending 1000 ref=A net=0",
            "ch_1 charge succeeded 1000 ref=A fee=30 net=970",
        ),
        (
            "ch_1 charge succeeded 1000 ref=A net=970",
            "ch_1 charge pending 1000 ref=A net=0",
        ),
        (
            "ch_1 charge succeeded 1000 ref=A text=one",
            "ch_1 charge succeeded 1000 ref=A text=two",
        ),
        (
            "ch_1 charge succeeded 1000 ref=A",
            "ch_1 charge succeeded 1000 ref=A
             ch_1 charge succeeded 1000 ref=A",
        ),
    ] {
        let (mut world, text) = seen_again(first, again);
        assert_eq!(text, expected("match A ch_1 reference"), "{again}");
        world.settle(&world.run());
        assert_eq!(world.run().text(), text, "{again}");
    }
}

#[test]
fn one_id_twice_in_one_feed_with_other_content_is_a_change() {
    check_all(&[(
        "two amounts",
        "ch_1 charge succeeded 1000 ref=A
         ch_1 charge succeeded 1000 ref=A net=970
         B charge 1000 pending
         A charge 1000 succeeded",
        "match A ch_1 reference
         ignored B abandoned",
    )]);
    let world = World::of(
        "ch_1 charge succeeded 1000 ref=A
         ch_1 charge succeeded 900 ref=A
         A charge 1000 succeeded",
    );
    let text = world.run().text();
    assert_eq!(text.len(), 1, "{text:?}");
    assert!(
        text[0].starts_with("break operation_changed A ch_1"),
        "{text:?}"
    );
}

#[test]
fn a_refund_total_that_falls_is_told_and_one_that_grows_is_a_refund() {
    let mut world = World::of(
        "tx_1 charge succeeded 9000 ref=A refunded=3500 refunded_at=11:00
         A charge 9000 succeeded",
    );
    let first = world.run();
    assert_eq!(
        first.text(),
        expected(
            "match A tx_1 reference
             break missing_local A tx_1:refunded:3500 3500 repaired
             repair record_refund A 3500 tx_1:refunded:3500 succeeded -"
        )
    );
    world.settle(&first);
    assert!(
        world.run().new_repairs().is_empty(),
        "{:?}",
        world.run().text()
    );
    world.feed("tx_1 charge succeeded 9000 ref=A refunded=5000 refunded_at=12:00");
    let second = world.run();
    assert!(
        second
            .text()
            .contains(&"repair record_refund A 1500 tx_1:refunded:5000 succeeded -".to_owned()),
        "{:?}",
        second.text()
    );
    world.settle(&second);
    assert!(world.run().new_repairs().is_empty());
    world.feed("tx_1 charge succeeded 9000 ref=A refunded=3000 refunded_at=13:00");
    let text = world.run().text();
    assert!(
        text.iter()
            .any(|line| line.starts_with("break operation_changed A tx_1")),
        "{text:?}"
    );
}

#[test]
fn a_decision_holds_for_what_was_seen() {
    let rows = "ch_1 charge succeeded 1000 10:01 ref=A
                ch_2 charge succeeded 1000 10:02 ref=A
                A charge 1000 pending";
    for how in [None, Some(CloseAs::Accepted)] {
        let mut world = World::of(rows);
        world.settle(&world.run());
        world.decide(BreakClass::DuplicateCharge, how);
        let quiet = if how.is_some() {
            expected("match A ch_1 reference")
        } else {
            expected(
                "match A ch_1 reference
                 break duplicate_charge A ch_2 1000 acknowledged",
            )
        };
        assert_eq!(world.run().text(), quiet, "{how:?}");
        // Part of it was given back: that is another amount, and opens it again.
        world.add("re_2 refund succeeded -300 11:00 parent=ch_2");
        let text = world.run().text();
        assert!(
            text.contains(&"break duplicate_charge A ch_2 1000 delta=700".to_owned()),
            "{text:?}"
        );
    }
    // What was acknowledged before this run's own repair stays acknowledged after it.
    let mut world = World::of(&format!("{rows}\nrules propose=status_behind"));
    world.settle(&world.run());
    world.decide(BreakClass::DuplicateCharge, None);
    world.edit("A charge 1000 succeeded proc=ch_1");
    let text = world.run().text();
    assert!(
        text.contains(&"break duplicate_charge A ch_2 1000 acknowledged".to_owned()),
        "{text:?}"
    );
    // A changed operation that was accepted takes the place of the stored one.
    let (mut world, _) = seen_again(
        "ch_1 charge succeeded 1000 ref=A",
        "ch_1 charge succeeded 900 ref=A",
    );
    world.settle(&world.run());
    world.decide(BreakClass::OperationChanged, Some(CloseAs::Accepted));
    let run = world.run();
    assert_eq!(
        run.text(),
        expected("break amount_mismatch A ch_1 900 delta=-100")
    );
    world.settle(&run);
    assert_eq!(world.run().text(), run.text());
}

#[test]
fn a_sticky_break_stays_until_it_is_closed() {
    let mut world = World::of(
        "ch_1 charge failed 1000 ref=A
         A charge 1000 succeeded proc=ch_1",
    );
    world.settle(&world.run());
    let open = expected("break status_reversed A ch_1 1000");
    assert_eq!(world.run().text(), open);
    world.decide(BreakClass::StatusReversed, Some(CloseAs::FixedElsewhere));
    assert_eq!(world.run().text(), expected("match A ch_1 processor_ref"));
}

#[test]
fn a_plan_beyond_a_guard_is_told_with_its_figures() {
    let rows: String = (0..25)
        .map(|n| format!("ch_{n} charge succeeded 1000 ref=A{n}\nA{n} charge 1000 pending"))
        .collect::<Vec<_>>()
        .join("\n");
    let mut world = World::of(&rows);
    let run = world.run();
    let intents = run.outcome.intent_tally.read;
    let eur = Currency::parse("EUR").expect("a code");
    let money = |_: &Repair| Some(Money::new(1000, eur));
    let told = |world: &World, repairs| {
        let before = Spent {
            repairs,
            ..Spent::default()
        };
        guard(&world.rules, &run.outcome.repairs, &money, intents, &before)
    };
    assert_eq!(told(&world, 0), None);
    assert_eq!(told(&world, 175), None);
    assert!(told(&world, 176).is_some());
    world.rules.guards.max_ratio_basis_points = Some(5_000);
    assert!(told(&world, 0).is_some());
    world.rules.guards.max_ratio_basis_points = Some(10_000);
    world.rules.guards.max_amount.insert(eur, 25_000);
    assert_eq!(told(&world, 0), None);
    world.rules.guards.max_amount.insert(eur, 24_999);
    assert!(told(&world, 0).is_some());
    // What the same run spent before counts, in rows and in money.
    world.rules.guards.max_amount.insert(eur, 49_999);
    let mut spent = Spent::default();
    let guarded = |spent: &Spent| guard(&world.rules, &run.outcome.repairs, &money, intents, spent);
    assert_eq!(guarded(&spent), None);
    spent.add(&run.outcome.repairs, &money, intents);
    assert_eq!(
        (spent.repairs, spent.intents, spent.sums[&eur]),
        (25, 25, 25_000)
    );
    assert!(guarded(&spent).is_some());
}

#[test]
fn a_claim_that_is_waited_for_is_asked_about_until_it_is_settled() {
    let mut world = World::of(
        "frame as_of=10T12:00 from=10T00:00 low=06T00:00
         A charge 1000 succeeded 10T11:30",
    );
    let first = world.run();
    assert_eq!(first.text(), expected("pending A -"));
    world.settle(&first);
    // The next window begins after the row was created.
    world.add("frame as_of=10T14:00 from=10T12:00 low=06T00:00");
    assert_eq!(
        world.run().text(),
        expected("break missing_processor A - 1000")
    );
    // The files of the last run prove nothing new, and the row is still waited for.
    world.add("frame as_of=12T14:00 from=12T12:00 low=06T00:00 unchanged");
    assert_eq!(world.run().text(), expected("pending A -"));
}

#[test]
fn what_was_sent_again_after_it_came_back_is_not_marked_as_failed() {
    check_all(&[
        (
            "a payout whose first attempt is out of reach",
            "pf_1 payout_failure succeeded 500 11:00 parent=po_1
             po_2 payout succeeded -500 12:00 ref=P
             P payout 500 succeeded 02-20T10:00 proc=po_1",
            "break payout_returned P pf_1 500 delta=500",
        ),
        (
            "a refund that went through at the second try is no duplicate",
            "re_1 refund succeeded -400 parent=ch_1 ref=R
             rf_1 refund_failure succeeded 400 11:00 parent=re_1
             re_2 refund succeeded -400 12:00 parent=ch_1 ref=R
             A charge 1000 succeeded 02-20T10:00 proc=ch_1
             R refund 400 succeeded parent=A proc=re_1",
            "match R re_2 reference
             break status_reversed R re_1 400",
        ),
        (
            "more than all is no return in full",
            "re_1 refund succeeded -500 parent=ch_1
             rf_1 refund_failure succeeded 800 11:00 parent=re_1
             A charge 1000 succeeded 02-20T10:00 proc=ch_1",
            "break missing_local A re_1 500 delta=-300",
        ),
    ]);
}

#[test]
fn a_reference_of_its_own_comes_before_the_payment_a_row_hangs_on() {
    check_all(&[
        (
            "two captures of one hold, each under a reference of its own",
            "au_0 authorization succeeded 3000 net=0 09:00 ref=A
             cp_1 capture succeeded 1000 ref=A parent=au_0
             cp_2 capture succeeded 2000 ref=B parent=au_0
             A charge 1000 pending
             B charge 2000 pending",
            "match A cp_1 reference
             match B cp_2 reference
             break status_behind A cp_1 1000 repaired
             break status_behind B cp_2 2000 repaired
             repair set_status A cp_1 succeeded cp_1
             repair set_status B cp_2 succeeded cp_2
             ignored au_0 life_cycle",
        ),
        (
            "a canceled row is recorded by nobody, so nothing is recorded twice",
            "ch_0 charge succeeded 1000 11:30 ref=A
             ch_2 charge canceled 1000 09:00
             A charge 1000 succeeded proc=ch_2
             B charge 1000 succeeded proc=ch_2",
            "match A ch_0 reference
             break status_reversed B ch_2 1000
             repair set_status B ch_2 canceled ch_2",
        ),
        (
            "the hold of a captured charge belongs to it, also when it ran out",
            "au_1 authorization expired 1000 net=0 09:00 ref=A
             cp_2 capture succeeded 1000 ref=A parent=au_1
             A charge 1000 succeeded",
            "match A cp_2 reference
             ignored au_1 life_cycle",
        ),
    ]);
}

#[test]
fn won_then_lost_is_lost() {
    check_all(&[
        (
            "the second loss names the dispute",
            "du_2 dispute succeeded -5000 parent=du_1
             A charge 5000 succeeded 02-15T10:00 proc=ch_0
             D dispute 5000 won 02-20T10:00 proc=du_1 parent=A",
            "match D du_2 parent
             break status_behind D du_2 5000 repaired
             repair set_status D du_2 lost du_1",
        ),
        (
            "the second loss has the dispute as its object",
            "du_1 dispute succeeded -5000 06T10:00 parent=ch_0
             dr_1 dispute_reversal succeeded 5000 08T09:00 parent=du_1
             du_2 dispute succeeded -5000 parent=ch_0 obj=du_1
             A charge 5000 succeeded 02-15T10:00 proc=ch_0
             D dispute 5000 won 02-20T10:00 proc=du_1 parent=A",
            "match D du_1 processor_ref
             match D dr_1 parent
             match D du_2 processor_ref
             break status_behind D du_2 5000 repaired
             repair set_status D du_2 lost du_1",
        ),
        (
            "money of another currency returns nothing",
            "du_1 dispute succeeded -500 parent=ch_0
             dr_1 dispute_reversal succeeded 500 USD 11:00 parent=du_1
             A charge 1000 succeeded 02-15T10:00 proc=ch_0",
            "break missing_local A du_1 500",
        ),
    ]);
}

#[test]
fn a_running_total_counts_what_is_booked_and_its_latest_figure() {
    let world = World::of(
        "tx_1 charge succeeded 9000 ref=A refunded=5000 refunded_at=11:00
         A charge 9000 succeeded
         R refund 3500 succeeded parent=A",
    );
    assert_eq!(
        world.run().text(),
        expected(
            "match A tx_1 reference
             match R tx_1:refunded:3500 parent
             break missing_local A tx_1:refunded:5000 1500 repaired
             repair record_refund A 1500 tx_1:refunded:5000 succeeded -"
        )
    );
    for rows in [
        "tx_1 charge succeeded 9000 ref=A refunded=3500 refunded_at=11:00
         tx_1 charge succeeded 9000 ref=A refunded=5000 refunded_at=12:00",
        "tx_1 charge succeeded 9000 ref=A refunded=5000 refunded_at=12:00
         tx_1 charge succeeded 9000 ref=A refunded=3500 refunded_at=11:00",
    ] {
        let world = World::of(&format!("{rows}\nA charge 9000 succeeded"));
        let text = world.run().text();
        let repair = "repair record_refund A 5000 tx_1:refunded:5000 succeeded -".to_owned();
        assert!(text.contains(&repair), "{text:?}");
    }
}

#[test]
fn the_same_thing_paid_on_another_account_is_a_duplicate() {
    check_all(&[(
        "another source answers the intent already",
        "ch_1 charge succeeded 1000 ref=A
         A charge 1000 succeeded elsewhere=stands",
        "break duplicate_charge A ch_1 1000",
    )]);
}

#[test]
fn what_only_waits_or_fell_at_another_source_is_no_payment() {
    for (name, rows, verdict) in [
        (
            "a hold there, and the charge here",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 succeeded elsewhere=waits",
            "match A ch_1 reference",
        ),
        (
            "it came back there, and went through here",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 pending elsewhere=fell",
            "match A ch_1 reference
             break status_behind A ch_1 1000 repaired
             repair set_status A ch_1 succeeded ch_1",
        ),
        (
            "paid there, whatever the row says of it",
            "ch_1 charge succeeded 1000 ref=A
             A charge 1000 pending elsewhere=stands",
            "break duplicate_charge A ch_1 1000",
        ),
        (
            "a second payment that went back asks for nothing",
            "ch_1 charge succeeded 1000 ref=A
             re_1 adjustment succeeded -1000 11:00 parent=ch_1
             A charge 1000 succeeded elsewhere=stands",
            "ignored ch_1 returned_in_full
             ignored re_1 returned_in_full",
        ),
        (
            "nothing stands anywhere",
            "ch_1 charge succeeded 1000 ref=A
             re_1 adjustment succeeded -1000 11:00 parent=ch_1
             A charge 1000 succeeded elsewhere=fell",
            "break status_reversed A ch_1 1000
             repair set_status A ch_1 failed ch_1",
        ),
    ] {
        check_all(&[(name, rows, verdict)]);
    }
}

#[test]
fn a_hold_that_ran_out_beside_a_payment_at_another_source_is_no_reversal() {
    let mut world = World::of("au_1 authorization succeeded 1000 ref=A\nA charge 1000 pending");
    let run = world.run();
    world.settle(&run);
    world.edit("A charge 1000 succeeded elsewhere=stands");
    world.feed("au_1 authorization expired 1000 ref=A");
    assert_eq!(world.run().text(), ["ignored au_1 failed_attempt"]);
}

#[test]
fn the_success_after_one_that_came_back_is_the_one_that_counts() {
    let gone_and_paid = "ch_1 charge succeeded 1000 ref=A
         re_1 adjustment succeeded -1000 11:00 parent=ch_1
         ch_2 charge succeeded 1000 12:00 ref=A";
    for status in ["pending", "failed"] {
        let mut world = World::of(&format!(
            "rules off=status_behind
             ch_1 charge succeeded 1000 ref=A
             A charge 1000 {status}"
        ));
        let run = world.run();
        world.settle(&run);
        world.feed(gone_and_paid);
        let run = world.run();
        let text = run.text();
        for line in [
            "match A ch_2 reference",
            "break status_behind A ch_2 1000",
            "ignored ch_1 returned_in_full",
        ] {
            assert!(
                text.iter().any(|told| told.starts_with(line)),
                "{status}: {line}: {text:?}"
            );
        }
        assert!(
            !text
                .iter()
                .any(|told| told.contains("duplicate") || told.contains("failed ch_1")),
            "{text:?}"
        );
    }
}

#[test]
fn a_decline_beside_a_success_at_another_source_is_a_failed_attempt() {
    let ignored = "ignored t_1 failed_attempt";
    for (name, rows, verdict) in [
        (
            "the success is known",
            "t_1 charge failed 1000 ref=A
             A charge 1000 succeeded elsewhere=stands",
            ignored,
        ),
        (
            "so it is where the decline shows that nothing moved",
            "t_1 charge failed 1000 ref=A net=0
             A charge 1000 succeeded elsewhere=stands",
            ignored,
        ),
        (
            "the success may stand at a source that is read later",
            "frame unowned=no
             t_1 charge failed 1000 ref=A
             A charge 1000 succeeded",
            ignored,
        ),
        (
            "a row of our own source is reversed",
            "frame unowned=no
             t_1 charge failed 1000 ref=A
             A charge 1000 succeeded source=shop",
            "break status_reversed A t_1 1000
             repair set_status A t_1 failed t_1",
        ),
        (
            "and so is one that names the row",
            "frame unowned=no
             t_1 charge failed 1000 ref=A
             A charge 1000 succeeded proc=t_1",
            "break status_reversed A t_1 1000
             repair set_status A t_1 failed t_1",
        ),
        (
            "an id is one of its source",
            "x_1 charge succeeded 2000 ref=B
             A charge 1000 succeeded proc=x_1 elsewhere=stands
             B charge 2000 pending",
            "match B x_1 reference
             break status_behind B x_1 2000 repaired
             repair set_status B x_1 succeeded x_1",
        ),
        (
            "without a reference the id is all there is: it is never called unknown",
            "x_1 charge succeeded 1000
             A charge 1000 succeeded proc=x_1 elsewhere=stands",
            "break duplicate_charge A x_1 1000",
        ),
    ] {
        check_all(&[(name, rows, verdict)]);
    }
}

#[test]
fn what_has_taken_nothing_gives_nothing_back() {
    for (name, rows, verdict) in [
        (
            "a dispute that is not decided and took nothing",
            "du_1 dispute pending -500 net=0 ref=D
             dr_1 dispute_reversal succeeded 250 11:00 net=250 parent=du_1
             D dispute 500 lost",
            "break amount_mismatch D dr_1 250 delta=250",
        ),
        (
            "a dispute that failed and took nothing",
            "du_1 dispute failed -500 net=0 ref=D
             ad_1 adjustment succeeded 500 11:00 net=500 parent=du_1
             D dispute 500 pending",
            "break amount_mismatch D ad_1 500 delta=500",
        ),
        (
            "what an adjustment took and a reversal gave back is won",
            "du_1 dispute succeeded -500 net=0 ref=D
             ad_1 adjustment succeeded -500 10:01 net=-500 parent=du_1
             dr_1 dispute_reversal succeeded 500 11:00 net=500 parent=du_1
             D dispute 500 pending",
            "match D ad_1 parent
             match D dr_1 parent
             ignored du_1 no_money
             break status_behind D dr_1 500 repaired
             repair set_status D dr_1 won -",
        ),
        (
            "a refund on its way",
            "re_1 refund pending -500 net=0 ref=D
             ad_1 adjustment succeeded 500 11:00 net=500 parent=re_1
             D refund 500 succeeded",
            "pending - re_1
             break amount_mismatch D ad_1 500 delta=500",
        ),
        (
            "nor is that in order beside a failed row",
            "re_1 refund pending -500 net=0 ref=D
             ad_1 adjustment succeeded 500 11:00 net=500 parent=re_1
             D refund 500 failed",
            "pending - re_1
             break amount_mismatch D ad_1 500 delta=500",
        ),
    ] {
        check_all(&[(name, rows, verdict)]);
    }
}
