//! Several nights in a row: what one night says, the next one does not take back by itself, and the money decides.

use crate::world::{World, expected};

/// Rows that come with each night, and what that night says; then once more without anything new.
fn nights(name: &str, table: &[(&str, &str)]) {
    let mut world = World::of("");
    for (n, (rows, verdict)) in table.iter().enumerate() {
        world.add(rows);
        let run = world.run();
        run.assert_sound();
        assert_eq!(run.text(), expected(verdict), "{name}, night {}", n + 1);
        world.settle(&run);
    }
    let again = world.run();
    let open = again.still_open();
    assert!(again.new_repairs().is_empty(), "{name}: {:?}", again.text());
    world.settle(&again);
    assert_eq!(
        world.run().still_open(),
        open,
        "{name}: the last night again"
    );
}

const CHARGE: &str = "ch_1 charge succeeded 1000 09:00 ref=A
    A charge 1000 succeeded 08:59";
const TWICE: &str = "ch_1 charge succeeded 1000 09:00 ref=A
    ch_2 charge succeeded 1000 09:05 ref=A
    A charge 1000 succeeded 08:59";

#[test]
fn nothing_is_given_back_that_was_not_taken() {
    let failed = "ch_1 charge failed 1000 09:00 net=0 ref=A
        A charge 1000 failed 08:59";
    nights(
        "a refund of a charge that failed",
        &[(
            &format!(
                "{failed}
                 re_1 refund succeeded -1000 11:00 ref=R parent=ch_1
                 R refund 1000 succeeded 11:00 parent=A"
            ),
            "break duplicate_refund A re_1 1000 delta=1000
             match A ch_1 reference
             match R re_1 reference",
        )],
    );
    nights(
        "a refund of a hold",
        &[(
            "au_1 authorization succeeded 1000 09:00 ref=A
             re_1 refund succeeded -1000 11:00 ref=R parent=au_1
             A charge 1000 canceled 08:59
             R refund 1000 succeeded 11:00 parent=A",
            "break duplicate_refund A re_1 1000 delta=1000
             ignored A abandoned
             ignored au_1 hold
             match R re_1 reference",
        )],
    );
    nights(
        "a lost dispute of a payment that nobody ever saw",
        &[(
            "du_1 dispute succeeded -1000 11:00 ref=D
             A charge 1000 expired 08:59
             D dispute 1000 lost 11:00 parent=A",
            "break duplicate_refund A du_1 1000 delta=1000
             ignored A abandoned
             match D du_1 reference",
        )],
    );
    nights(
        "a refund of what was taken back from us already",
        &[
            (CHARGE, "match A ch_1 reference"),
            (
                "ad_1 adjustment succeeded -1000 10:00 parent=ch_1",
                "break status_reversed A ch_1 1000
             repair set_status A ch_1 failed ch_1",
            ),
            (
                "re_1 refund succeeded -1000 11:00 ref=R parent=ch_1
                 R refund 1000 succeeded 11:00 parent=A",
                "break duplicate_refund A re_1 1000 delta=1000
             break status_reversed A ch_1 1000
             match R re_1 reference",
            ),
        ],
    );
    nights(
        "a duplicate that was refunded and then charged back",
        &[(
            &format!(
                "{TWICE}
                 re_1 refund succeeded -1000 11:00 parent=ch_2
                 du_1 dispute succeeded -1000 12:00 parent=ch_2
                 D dispute 1000 lost 12:00 parent=A proc=du_1"
            ),
            "break duplicate_refund A du_1 1000 delta=1000
             ignored ch_2 returned_in_full
             ignored re_1 returned_in_full
             match A ch_1 reference
             match D du_1 processor_ref",
        )],
    );
    nights(
        "a dispute that takes a second time by an adjustment",
        &[(
            &format!(
                "{CHARGE}
                 du_1 dispute succeeded -1000 11:00 parent=ch_1
                 ad_1 adjustment succeeded -1000 12:00 parent=du_1
                 D dispute 1000 lost 11:00 parent=A proc=du_1"
            ),
            "break duplicate_refund A ad_1 1000 delta=1000
             match A ch_1 reference
             match D ad_1 parent
             match D du_1 processor_ref",
        )],
    );
    nights(
        "the cost of a dispute is none",
        &[(
            &format!(
                "{CHARGE}
                 du_1 dispute succeeded -1000 11:00 parent=ch_1
                 ad_1 adjustment succeeded -150 12:00 parent=du_1
                 D dispute 1000 lost 11:00 parent=A proc=du_1"
            ),
            "match A ch_1 reference
             match D ad_1 parent
             match D du_1 processor_ref",
        )],
    );
    nights(
        "won, and then lost again by an adjustment",
        &[(
            &format!(
                "{CHARGE}
                 du_1 dispute succeeded -1000 11:00 parent=ch_1
                 dr_1 dispute_reversal succeeded 1000 12:00 parent=du_1
                 ad_1 adjustment succeeded -1000 13:00 parent=du_1
                 D dispute 1000 lost 11:00 parent=A proc=du_1"
            ),
            "match A ch_1 reference
             match D ad_1 parent
             match D dr_1 parent
             match D du_1 processor_ref",
        )],
    );
}

#[test]
fn nothing_comes_back_that_was_not_taken() {
    for (name, rows, verdict) in [
        (
            "of a charge",
            "ch_1 charge failed 1000 09:00 net=0 ref=A
             ad_1 adjustment succeeded -1000 10:00 parent=ch_1
             A charge 1000 failed 08:59",
            "break amount_mismatch A ad_1 1000 delta=1000",
        ),
        (
            "of a refund",
            "ch_1 charge succeeded 1000 09:00 ref=A
             re_1 refund failed -1000 11:00 net=0 ref=R parent=ch_1
             rf_1 refund_failure succeeded 1000 12:00 parent=re_1
             A charge 1000 succeeded 08:59
             R refund 1000 failed 11:00 parent=A",
            "break amount_mismatch R rf_1 1000 delta=1000
             match A ch_1 reference",
        ),
        (
            "of a payout",
            "po_1 payout failed -1000 10:00 net=0
             pf_1 payout_failure succeeded 1000 12:00 parent=po_1
             P payout 1000 failed 10:00 proc=po_1",
            "break amount_mismatch P pf_1 1000 delta=1000",
        ),
        (
            "of a dispute",
            "ch_1 charge succeeded 1000 09:00 ref=A
             du_1 dispute failed -1000 11:00 net=0 parent=ch_1
             dr_1 dispute_reversal succeeded 1000 12:00 parent=du_1
             A charge 1000 succeeded 08:59
             D dispute 1000 won 11:00 parent=A proc=du_1",
            "break amount_mismatch D dr_1 1000 delta=1000
             match A ch_1 reference",
        ),
    ] {
        nights(name, &[(rows, verdict)]);
    }
}

#[test]
fn a_refund_is_dealt_to_the_row_that_it_answers() {
    nights(
        "one that came back, and its second try",
        &[(
            &format!(
                "{CHARGE}
                 re_1 refund succeeded -1000 11:00 parent=ch_1
                 rf_1 refund_failure succeeded 1000 11:05 parent=re_1
                 re_2 refund succeeded -1000 12:00 parent=ch_1
                 R refund 1000 failed 11:00 parent=A
                 S refund 1000 succeeded 12:00 parent=A"
            ),
            "match A ch_1 reference
             match R re_1 parent
             match R rf_1 parent
             match S re_2 parent",
        )],
    );
    nights(
        "one that failed, and its second try that is on its way",
        &[(
            &format!(
                "{CHARGE}
                     re_1 refund failed -1000 11:00 net=0 parent=ch_1
                     re_2 refund pending -1000 12:00 net=0 parent=ch_1
                     R refund 1000 failed 11:00 parent=A
                     S refund 1000 pending 12:00 parent=A"
            ),
            "match A ch_1 reference
             match R re_1 parent
             pending S re_2",
        )],
    );
    nights(
        "one that came back, beside that of a duplicate",
        &[(
            "ch_1 charge succeeded 1000 09:00 ref=A
             ch_2 charge succeeded 1000 09:00 ref=A
             re_1 refund succeeded -1000 09:10 parent=ch_1
             re_2 refund succeeded -1000 11:00 parent=ch_2
             rf_2 refund_failure succeeded 1000 11:05 parent=re_2
             A charge 1000 succeeded 08:59 proc=ch_2
             R refund 1000 failed 11:00 parent=A",
            "ignored ch_1 returned_in_full
             ignored re_1 returned_in_full
             match A ch_2 processor_ref
             match R re_2 parent
             match R rf_2 parent",
        )],
    );
    nights(
        "one that failed, beside that of a duplicate",
        &[(
            "ch_1 charge succeeded 1000 09:00
             ch_2 charge succeeded 1000 09:00 ref=A
             re_1 refund failed -1000 11:00 net=0 parent=ch_1
             re_2 refund succeeded -1000 09:10 parent=ch_2
             A charge 1000 succeeded 08:59 proc=ch_1
             R refund 1000 failed 11:00 parent=A",
            "ignored ch_2 returned_in_full
             ignored re_2 returned_in_full
             match A ch_1 processor_ref
             match R re_1 parent",
        )],
    );
    nights(
        "one that our own side has, beside that of a duplicate",
        &[(
            "ch_1 charge succeeded 1000 09:00 ref=A
             ch_2 charge succeeded 1000 09:00 ref=A
             re_1 refund succeeded -1000 09:10 parent=ch_1
             re_2 refund succeeded -1000 11:00 ref=R parent=ch_2
             A charge 1000 succeeded 08:59
             R refund 1000 succeeded 11:00 parent=A",
            "ignored ch_1 returned_in_full
             ignored re_1 returned_in_full
             match A ch_2 reference
             match R re_2 reference",
        )],
    );
    nights(
        "that of a payment that nobody records is above none that is recorded",
        &[(
            "ch_1 charge succeeded 2000 09:00
             re_1 refund succeeded -1000 10:00 ref=R parent=ch_1
             A charge 2000 pending 08:59
             R refund 1000 succeeded 10:00 parent=A",
            "break missing_local - ch_1 2000 delta=1000
             ignored A abandoned
             match R re_1 reference",
        )],
    );
    nights(
        "that of a duplicate is none of the next one",
        &[
            (
                &format!(
                    "{TWICE}
                     re_1 refund succeeded -1000 10:00 parent=ch_2"
                ),
                "ignored ch_2 returned_in_full
             ignored re_1 returned_in_full
             match A ch_1 reference",
            ),
            (
                "re_2 refund succeeded -1000 12:00 parent=ch_1
                 R refund 1000 succeeded 12:00 parent=A",
                "ignored ch_2 returned_in_full
             ignored re_1 returned_in_full
             match A ch_1 reference
             match R re_2 parent",
            ),
        ],
    );
}

#[test]
fn of_two_attempts_that_were_both_paid_the_one_that_was_refunded_is_no_duplicate() {
    nights(
        "the first one",
        &[
            (
                "ch_1 charge succeeded 1000 09:00 ref=A
                 ch_2 charge succeeded 1000 09:05 ref=B
                 A charge 1000 succeeded 08:59 parent=P attempt=1
                 B charge 1000 succeeded 09:04 parent=P attempt=2",
                "break duplicate_charge B ch_2 1000
             match A ch_1 reference",
            ),
            (
                "re_1 refund succeeded -1000 10:00 ref=R parent=ch_1
                 R refund 1000 succeeded 10:00 parent=A",
                "ignored A returned_in_full
             ignored ch_1 returned_in_full
             match B ch_2 reference
             match R re_1 reference",
            ),
        ],
    );
}

#[test]
fn a_reversal_is_told_until_a_person_closes_it() {
    nights(
        "of one of two payments",
        &[
            (
                TWICE,
                "break duplicate_charge A ch_2 1000
             match A ch_1 reference",
            ),
            (
                "ad_1 adjustment succeeded -1000 10:30 parent=ch_1",
                "break status_reversed A ch_1 1000
             match A ch_2 reference",
            ),
        ],
    );
    nights(
        "of one of two captures",
        &[
            (
                "au_1 authorization succeeded 1000 09:00 net=0 ref=A
                 ca_1 capture succeeded 600 09:30 parent=au_1
                 ca_2 capture succeeded 400 09:40 parent=au_1
                 A charge 1000 pending 08:59",
                "break status_behind A ca_1 1000 repaired
             ignored au_1 life_cycle
             match A ca_1 sum
             match A ca_2 sum
             repair set_status A ca_1 succeeded ca_1",
            ),
            (
                "ad_1 adjustment succeeded -600 10:30 parent=ca_1",
                "break status_reversed A ca_1 1000 delta=600
             ignored au_1 life_cycle",
            ),
        ],
    );
}

#[test]
fn a_payout_whose_parts_settle_in_another_currency_is_not_verified() {
    let world = World::of(
        "ch_1 charge succeeded 1000 09:00 ref=A payout=po_1
         po_1 payout succeeded -1100 USD 20:00
         A charge 1000 succeeded 08:59",
    );
    assert_eq!(world.run().outcome.unverified_payouts, 1);
}
