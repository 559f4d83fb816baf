//! A format told in words, against files.

use super::*;
use crate::meter::Meter;
use crate::model::operation::Operations;
use crate::processor::ReadRules;
use crate::processor::csv::decode;

fn rules(entries: &[(Part, &str, &str)]) -> GenericRules {
    let mut rules = GenericRules::default();
    for (part, key, value) in entries {
        rules.enter(*part, key, value).expect("known");
    }
    rules
}

const WHOLE: &[(Part, &str, &str)] = &[
    (Part::Column, "operation_id", "Txn \"no\""),
    (Part::Column, "kind", "Type"),
    (Part::Column, "amount", "Gross"),
    (Part::Column, "fee", "Fee"),
    (Part::Column, "net", "Net"),
    (Part::Column, "occurred_at", "Day"),
    (Part::Column, "time", "Time"),
    (Part::Column, "reference", "Order"),
    (Part::Layout, "currency", "EUR"),
    (Part::Layout, "unit", "major"),
    (Part::Layout, "decimal", ","),
    (Part::Layout, "group", "."),
    (Part::Layout, "minus", "brackets"),
    (Part::Layout, "fee_sign", "cost_negative"),
    (Part::Layout, "time_format", "%d/%m/%Y %H:%M"),
    (Part::Layout, "zone", "Europe/Berlin"),
    (Part::Layout, "delimiter", ";"),
    (Part::Layout, "first_column", "Day"),
    (Part::Kind, "Verkauf", "charge"),
    (Part::Kind, "Abgelehnt", "charge:failed"),
    (Part::Kind, "Gutschrift", "refund"),
];

#[test]
fn a_format_told_in_words_is_read() {
    let profile = rules(WHOLE).profile().expect("a profile");
    let text = "Bericht\nDay;Time;Type;\"Txn \"\"no\"\"\";Order;Gross;Fee;Net\n\
        09/03/2026;10:00;Verkauf;001;A-1;1.234,50;-4,50;1.230,00\n\
        09/03/2026;11:00;Gutschrift;002;A-1;(45,00);;(45,00)\n\
        09/03/2026;11:05;Abgelehnt;003;A-2;5,00;;0,00\n\
        09/03/2026;11:06;Bonus;004;;5,00;;5,00\n";
    let mut operations = Operations::default();
    decode(
        &profile,
        &ReadRules::default(),
        "a.csv",
        0,
        text.as_bytes(),
        &mut operations,
        &Meter::default(),
    )
    .expect("read");
    let told: Vec<String> = operations
        .iter()
        .map(|row| {
            format!(
                "{} {} {} {} {:?} {}",
                row.operation_id,
                row.kind.as_str(),
                row.status.as_str(),
                row.amount_minor,
                row.fee_minor,
                row.occurred_at
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "001 charge succeeded 123450 Some(450) 2026-03-09T09:00:00Z",
            "002 refund succeeded -4500 None 2026-03-09T10:00:00Z",
            "003 charge failed 500 None 2026-03-09T10:05:00Z",
            "004 other unknown 500 None 2026-03-09T10:06:00Z",
        ]
    );
    assert!(operations.get(3).invalid.contains("\"Bonus\""));
}

#[test]
fn what_decides_about_money_and_time_is_asked_for() {
    for missing in [
        "kind",
        "amount",
        "occurred_at",
        "unit",
        "decimal",
        "fee_sign",
        "time_format",
        "currency",
    ] {
        let entries: Vec<_> = WHOLE
            .iter()
            .filter(|(_, key, _)| *key != missing)
            .copied()
            .collect();
        let failure = rules(&entries).profile().expect_err(missing);
        assert!(failure.what.contains(missing), "{missing}: {failure}");
        assert!(failure.remedy.contains(missing), "{missing}: {failure}");
    }
    let entries: Vec<_> = WHOLE
        .iter()
        .filter(|(_, key, _)| *key != "zone")
        .copied()
        .collect();
    let failure = rules(&entries).profile().expect_err("no zone");
    assert!(failure.what.contains("no zone"), "{failure}");
}

#[test]
fn a_word_that_means_nothing_or_stands_twice_is_refused() {
    let mut rules = rules(WHOLE);
    let failure = rules
        .enter(Part::Column, "ammount", "x")
        .expect_err("unknown");
    assert!(failure.remedy.contains("\"amount\""), "{failure}");
    let failure = rules
        .enter(Part::Kind, "Verkauf", "refund")
        .expect_err("twice");
    assert!(failure.what.contains("told twice"), "{failure}");
    rules
        .enter(Part::Status, "ok", "succeeded")
        .expect("entered");
    assert!(
        rules
            .profile()
            .expect_err("no column")
            .what
            .contains("status")
    );
    rules
        .enter(Part::Column, "status", "Type")
        .expect("entered");
    rules
        .enter(Part::Kind, "Other", "present")
        .expect("entered");
    assert!(
        rules
            .profile()
            .expect_err("no kind")
            .what
            .contains("\"present\"")
    );
}
