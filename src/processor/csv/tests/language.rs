//! What the profile language can say beyond one table with one header.

use super::*;
use crate::processor::DateOrder;
use crate::time::Zone;

const HEAD: &str = "id,type,amount,cur,at\n";

fn charge(id: &str, more: &str) -> String {
    format!("{id},charge,10.00,EUR,2026-03-09T09:00:00Z{more}\n")
}

fn references(profile: &Profile, text: &str) -> Vec<String> {
    let (operations, _) = read(profile, text);
    operations
        .iter()
        .map(|row| row.reference.to_owned())
        .collect()
}

#[test]
fn a_header_set_is_chosen_by_the_columns_that_are_there() {
    let sets = "[[header_sets]]\nname = \"en\"\ngroup = \",\"\nformat = [\"%m/%d/%Y\"]\n\
        [[header_sets]]\nname = \"de\"\ncolumns = { id = \"Code\", amount = \"Brutto\", at = \"Datum\" }\ndecimal = \",\"\ngroup = \".\"\nformat = [\"%d.%m.%Y\"]\n";
    let profile = own(
        "",
        "occurred_at = { column = \"at\", format = \"%Y-%m-%d\", zone = \"UTC\" }",
        "",
        sets,
    );
    for (text, amount) in [
        (
            "id,type,amount,cur,at\na,charge,\"1,234.50\",EUR,03/09/2026\n",
            123_450,
        ),
        (
            "Code,type,Brutto,cur,Datum\na,charge,\"1.234,50\",EUR,09.03.2026\n",
            123_450,
        ),
    ] {
        let (operations, _) = read(&profile, text);
        let row = operations.get(0);
        assert_eq!((row.operation_id, row.amount_minor), ("a", amount));
        assert_eq!(row.occurred_at.to_string(), "2026-03-09T00:00:00Z");
    }
    refused(
        &profile,
        "Code,type,Brutto,cur,Tag\n",
        &["column \"Datum\" is missing"],
    );
    let twice = own(
        "",
        "",
        "",
        "[[header_sets]]\nname = \"a\"\n[[header_sets]]\nname = \"b\"\n",
    );
    refused(&twice, HEAD, &["fits several header sets: a, b"]);
    refused(
        &profile,
        "Code,type,Brutto,cur,Datum\na,charge,x,EUR,09.03.2026\n",
        &["column \"Brutto\""],
    );
}

#[test]
fn a_column_of_another_report_refuses_the_file() {
    let profile = own(
        "refuse = { \"Transactional Status\" = \"this is a transaction detail report\" }",
        "",
        "",
        "",
    );
    read(&profile, HEAD);
    let failure = read_with(
        &profile,
        &ReadRules::default(),
        "id,type,amount,cur,at,Transactional Status\n",
    )
    .expect_err("rejected");
    assert!(
        failure.why.contains("transaction detail report"),
        "{failure}"
    );
}

const SECTIONS: &str = "[sections]\nRH = { role = \"begin\" }\n\
    SH = { role = \"context\", cells = { account = 2 } }\n\
    CH = { role = \"header\" }\nSB = { role = \"body\" }\n\
    SF = { role = \"footer\", currency = 2, totals = [\
    { cell = 3, sum_of = \"amount\", currency = \"cur\", where = \"sign\", in = [\"CR\"] },\
    { cell = 4, sum_of = \"amount\", currency = \"cur\", where = \"sign\", in = [\"DR\"] }] }\n\
    RF = { role = \"footer\", of = \"report\", currency = 2, totals = [\
    { cell = 3, sum_of = \"amount\", currency = \"cur\", where = \"sign\", in = [\"CR\"] }] }\n\
    RC = { role = \"count\", cell = 2, of = \"report\" }\n\
    SC = { role = \"count\", cell = 2 }\nFF = { role = \"count\", cell = 2, of = \"file\", required = true }\n";

fn sectioned() -> Profile {
    own(
        "header = \"by_record_type\"\nrow_width = \"allow_short\"",
        "account = \"context:account\"",
        "unit = \"implied:2\"\namount = { column = \"amount\", currency = \"cur\", sign_column = \"sign\", negative = [\"DR\"] }",
        &format!(
            "{SECTIONS}[maps.kind]\ncolumn = \"type\"\ncharge = {{ kind = \"charge\", negative = \"refund\" }}\n"
        ),
    )
}

#[test]
fn lines_that_say_what_they_are_make_rows_accounts_and_proofs() {
    let at = "2026-03-09T09:00:00Z";
    let file = format!(
        "\u{feff}\"RH\",x\nSH,acc1\nCH,id,type,amount,cur,sign,at,note\nSB,a,charge,1000,EUR,CR,{at},\nSB,b,charge,300,EUR,DR,{at}\nSF,EUR,1000,300\nSC,2\n\
         SH,acc2\nCH,id,type,amount,cur,sign,at,note\nSB,c,charge,15000,JPY,CR,{at}\nSF,JPY,15000,0\nSC,1\n\
         RF,EUR,1000\nRF,JPY,15000\nRC,3\nFF,3\n"
    );
    let (operations, facts) = read(&sectioned(), &file);
    let rows: Vec<(String, String, i64, OperationKind)> = operations
        .iter()
        .map(|row| {
            let (account, id) = (row.account.to_owned(), row.operation_id.to_owned());
            (account, id, row.amount_minor, row.kind)
        })
        .collect();
    let row =
        |account: &str, id: &str, minor, kind| (account.to_owned(), id.to_owned(), minor, kind);
    assert_eq!(
        rows,
        [
            row("acc1", "a", 1000, OperationKind::Charge),
            row("acc1", "b", -300, OperationKind::Refund),
            row("acc2", "c", 150, OperationKind::Charge),
        ]
    );
    assert!(facts.is_verified);
    for (from, to, wanted) in [
        (
            "SF,EUR,1000,300",
            "SF,EUR,1300,300",
            "not the sum of the EUR rows above, 1000",
        ),
        (
            "SF,EUR,1000,300",
            "SF,EUR,1000,0",
            "not the sum of the EUR rows above, 300",
        ),
        ("SC,2", "SC,3", "not the number of rows in the section, 2"),
        ("FF,3", "FF,2", "not the number of rows in the file, 3"),
        ("FF,3\n", "", "no line FF"),
        ("FF,3", "FF,3\nSB,d", "stands behind the end"),
        (
            "RF,EUR,1000",
            "RF,EUR,700",
            "not the sum of the EUR rows above, 1000",
        ),
        (
            "RF,JPY,15000",
            "RF,JPY,0",
            "not the sum of the JPY rows above, 15000",
        ),
        ("RC,3", "RC,2", "not the number of rows in the report, 3"),
        ("FF,3", "FF,3\nRH,x", "stands behind the end"),
        ("RH", "XX", "\"XX\" is no kind of line"),
    ] {
        refused(&sectioned(), file.replace(from, to), &[wanted]);
    }
    // The last file of a report that began in another one: the rows of the others are in its totals.
    let last = file
        .replacen("\"RH\",x\n", "", 1)
        .replace("RF,EUR,1000\n", "RF,EUR,9000\n");
    let (operations, facts) = read(&sectioned(), last.replace("RC,3", "RC,900"));
    assert_eq!((operations.len(), facts.is_verified), (3, true));
    let moved = file.replacen("acc2\nCH,id,type", "acc2\nCH,type,id", 1);
    refused(
        &sectioned(),
        moved,
        &["other columns than the first header"],
    );
}

#[test]
fn a_word_may_begin_so_and_a_second_map_is_asked_where_the_first_does_not_know_it() {
    let maps = "[[maps.kind]]\ncolumn = \"note\"\n\"Withheld*\" = { kind = \"fee\" }\n\
        [[maps.kind]]\ncolumn = [\"type\", \"state\"]\n\"paid\" = { kind = \"charge\", negative = \"refund\" }\n\"paid back*\" = { kind = \"refund_failure\" }\n\"pa*\" = { kind = \"other\" }\n";
    let profile = own("", "", "", maps);
    for (note, word, state, amount, want) in [
        ("Withheld fees 7", "paid", "", "-1", OperationKind::Fee),
        ("", "paid", "", "1", OperationKind::Charge),
        ("", "paid", "", "-1", OperationKind::Refund),
        ("", "paid", "back", "1", OperationKind::RefundFailure),
        ("", "part", "", "1", OperationKind::Other),
    ] {
        let text = format!(
            "id,type,amount,cur,at,note,state\na,{word},{amount},EUR,2026-03-09T09:00:00Z,{note},{state}\n"
        );
        let (operations, _) = read(&profile, text);
        assert_eq!(
            (operations.get(0).kind, operations.get(0).invalid),
            (want, ""),
            "{note} {word} {amount}"
        );
    }
    let text = "id,type,amount,cur,at,note,state\na,sold,1,EUR,2026-03-09T09:00:00Z,,\n";
    let (operations, _) = read(&profile, text);
    assert!(
        operations.get(0).invalid.contains("\"sold\""),
        "{}",
        operations.get(0).invalid
    );
}

#[test]
fn a_reference_may_be_a_part_of_a_cell_or_stand_in_one_of_many_columns() {
    let profile = own(
        "",
        "reference = [{ column = \"text\", regex = 'order ([A-Z0-9]+)' }, { columns = \"meta[*]\" }]",
        "",
        "",
    );
    let text = format!(
        "id,type,amount,cur,at,text,meta[a],meta[b]\n{}{}{}",
        charge("a", ",paid order X7,no,no"),
        charge("b", ",none,,B"),
        charge("c", ",,A,B")
    );
    assert_eq!(references(&profile, &text), ["X7", "B", "A"]);
    let rules = ReadRules {
        reference: vec!["meta[b]".to_owned()],
        ..ReadRules::default()
    };
    let (operations, _) = read_with(&profile, &rules, &text).expect("read");
    assert_eq!(
        (operations.get(0).reference, operations.get(1).reference),
        ("no", "B")
    );
    let failure = read_with(&profile, &rules, HEAD.replace('\n', ",text\n")).expect_err("rejected");
    assert!(
        failure.what.contains("reference column \"meta[b]\""),
        "{failure}"
    );
    refused(
        &profile,
        text.replace(",,B\n", ",,1.2E+22\n"),
        &["column \"meta[b]\"", "exponent"],
    );
}

#[test]
fn a_synthetic_id_is_made_of_its_identity_or_of_what_the_profile_names() {
    for identity in ["\nidentity = [\"type\", \"amount\", \"at\"]", ""] {
        let profile = own(
            "",
            &format!(
                "operation_id = [\"id\", \"type\"]\noperation_id_fallback = \"synthetic\"{identity}"
            ),
            "",
            "",
        );
        let ids = |text: &str| -> Vec<String> {
            let (operations, _) = read(&profile, text);
            operations
                .iter()
                .map(|row| row.operation_id.to_owned())
                .collect()
        };
        let before = ids(&format!(
            "{HEAD}{}{}{}",
            charge("", ""),
            charge("", ""),
            charge("a", "")
        ));
        let after = ids(&format!(
            "id,type,amount,cur,at,new\n{}{}{}",
            charge("", ",x"),
            charge("", ",y"),
            charge("a", ",z")
        ));
        assert_eq!(before, after);
        assert_ne!(before[0], before[1]);
        assert_eq!(before[2], "a|charge");
    }
}

#[test]
fn amounts_may_hang_on_the_kind_and_on_the_source() {
    let money = "amount = [{ column = \"captured\", currency = \"source:currency\", sign = \"inverted\", when_kind = [\"charge\"] }, { column = \"amount\", currency = \"source:currency\" }]\nbare_fraction = true";
    let record =
        "occurred_at = { column = \"at\", format = \"%Y-%m-%d %H:%M\", zone = \"source:zone\" }";
    let maps =
        "[maps.kind]\ncolumn = \"type\"\ncharge = { kind = \"charge\" }\nfee = { kind = \"fee\" }";
    let profile = own("", record, money, maps);
    let text = "id,type,amount,captured,at\na,charge,1,-.91,2026-03-09 09:00\nb,fee,-.05,7,2026-03-09 09:00\n";
    refused(&profile, text, &["in which time zone"]);
    let rules = ReadRules {
        zone: Zone::parse("Europe/Paris"),
        ..ReadRules::default()
    };
    let failure = read_with(&profile, &rules, text).expect_err("rejected");
    assert!(failure.remedy.contains("currency = "), "{failure}");
    let rules = ReadRules {
        currency: crate::money::Currency::parse("USD"),
        ..rules
    };
    let (operations, _) = read_with(&profile, &rules, text).expect("read");
    let (first, second) = (operations.get(0), operations.get(1));
    assert_eq!((first.amount_minor, first.currency.as_str()), (91, "USD"));
    assert_eq!(first.occurred_at.to_string(), "2026-03-09T08:00:00Z");
    assert_eq!((second.amount_minor, second.kind), (-5, OperationKind::Fee));
    refused(
        &own("", "", "", ""),
        format!("{HEAD}a,charge,.91,EUR,2026-03-09T09:00:00Z\n"),
        &["\".91\""],
    );
}

#[test]
fn a_row_that_does_not_add_up_is_a_finding_where_the_profile_says_so() {
    let money = "settle_net = { column = \"net\", currency = \"cur\" }\nfee_total = { column = \"fee\", currency = \"cur\" }";
    let check = |more: &str| {
        format!("[[checks]]\nscope = \"row\"\nrule = \"net == amount - fee\"\n{more}\n")
    };
    let text = "id,type,amount,fee,net,cur,at\na,charge,5.00,0.20,4.90,EUR,2026-03-09T09:00:00Z\n";
    refused(&own("", "", money, &check("")), text, &["net of 490"]);
    let lenient = own("", "", money, &check("on_failure = \"invalid_record\""));
    let (operations, _) = read(&lenient, text);
    let row = operations.get(0);
    assert_eq!(row.net_minor, Some(490));
    assert!(
        row.invalid.contains("amount 500 - fee 20"),
        "{}",
        row.invalid
    );
}

#[test]
fn an_amount_on_both_sides_is_a_finding() {
    let profile = own(
        "",
        "",
        "amount = { credit = \"amount\", debit = \"dr\", currency = \"cur\" }",
        "",
    );
    let text = "id,type,amount,dr,cur,at\na,charge,5.00,1.50,EUR,2026-03-09T09:00:00Z\nb,charge,5.00,0,EUR,2026-03-09T09:00:00Z\n";
    let (operations, _) = read(&profile, text);
    assert_eq!(operations.get(0).amount_minor, 350);
    assert!(
        operations.get(0).invalid.contains("both hold an amount"),
        "{}",
        operations.get(0).invalid
    );
    assert_eq!(operations.get(1).invalid, "");
}

#[test]
fn the_order_of_day_and_month_is_proved_or_declared() {
    let profile = own(
        "",
        "occurred_at = { column = \"at\", format = [\"%d/%m/%Y\", \"%m/%d/%Y\", \"%d/%m/%y\", \"%Y-%m-%d\"], zone = \"UTC\" }",
        "",
        "",
    );
    let text = |first: &str, second: &str| {
        format!("{HEAD}a,charge,1,EUR,{first}\nb,charge,1,EUR,{second}\n")
    };
    for (first, second, want) in [
        ("03/09/2026", "03/13/2026", "2026-03-09"),
        ("03/09/2026", "13/03/2026", "2026-09-03"),
        ("05/05/2026", "06/06/2026", "2026-05-05"),
        ("2026-03-09", "13/03/2026", "2026-03-09"),
        ("13/03/26", "14/03/26", "2026-03-13"),
    ] {
        let (operations, _) = read(&profile, text(first, second));
        assert_eq!(
            operations.get(0).occurred_at.to_string()[..10],
            *want,
            "{first} {second}"
        );
    }
    refused(
        &profile,
        text("03/09/2026", "04/09/2026"),
        &["line 2", "\"03/09/2026\"", "two days"],
    );
    refused(
        &profile,
        text("03/13/2026", "13/03/2026").replace("b,", "c,charge,1,EUR,01/02/2026\nb,"),
        &["another order than line"],
    );
    let rules = ReadRules {
        date_order: Some(DateOrder::MonthFirst),
        ..ReadRules::default()
    };
    let (operations, _) =
        read_with(&profile, &rules, text("03/09/2026", "04/09/2026")).expect("read");
    assert_eq!(
        operations.get(0).occurred_at.to_string(),
        "2026-03-09T00:00:00Z"
    );
}

#[test]
fn a_zone_column_may_hold_places_and_declared_words() {
    let record = "occurred_at = { column = \"at\", format = \"%Y-%m-%d\", zone_column = \"zone\" }";
    let profile = own("", record, "", "[zones]\nPST = \"-08:00\"");
    let text =
        |zone: &str| format!("id,type,amount,cur,at,zone\na,charge,1,EUR,2026-03-09,{zone}\n");
    for (zone, want) in [
        ("PST", "2026-03-09T08:00:00Z"),
        ("Europe/Berlin", "2026-03-08T23:00:00Z"),
    ] {
        assert_eq!(
            read(&profile, text(zone)).0.get(0).occurred_at.to_string(),
            want
        );
    }
    for zone in ["CET", "Europe/Atlantis", ""] {
        refused(&profile, text(zone), &["no zone that the profile knows"]);
    }
}

#[test]
fn each_balance_is_the_one_before_it_plus_the_net() {
    let profile = own(
        "",
        "",
        "settle_net = { column = \"amount\", currency = \"cur\" }\nbalance = { column = \"balance\", currency = \"cur\" }",
        "[maps.kind]\ncolumn = \"type\"\ncharge = { kind = \"charge\" }\npending = { kind = \"charge\", status = \"pending\" }\n\
         [[checks]]\nscope = \"file\"\nrule = \"balance == balance before + net\"\n",
    );
    let row = |kind: &str, amount: &str, cur: &str, balance: &str| {
        format!("x,{kind},{amount},{cur},2026-03-09T09:00:00Z,{balance}\n")
    };
    let head = "id,type,amount,cur,at,balance\n";
    let rows = [
        row("charge", "5", "EUR", "105"),
        row("charge", "7", "USD", "7"),
        row("pending", "9", "EUR", "105"),
        row("charge", "-2", "EUR", "103"),
        row("charge", "4", "EUR", ""),
        row("charge", "3", "EUR", "106"),
    ];
    read(&profile, format!("{head}{}", rows.concat()));
    let newest_first: String = rows.iter().rev().cloned().collect();
    read(&profile, format!("{head}{newest_first}"));
    refused(
        &profile,
        format!(
            "{head}{}{}{}",
            rows[0],
            rows[3].replace("103", "102"),
            rows[5]
        ),
        &["line 4 begins at a balance of 103.00 EUR, with which no other row ends"],
    );
    let shuffled = [&rows[5], &rows[0], &rows[3]].map(String::as_str).concat();
    read(&profile, format!("{head}{shuffled}"));
    // A row is missing in the middle.
    refused(
        &profile,
        format!("{head}{}{}", rows[0], rows[5]),
        &["line 3"],
    );
}
