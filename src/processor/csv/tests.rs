mod language;

use super::*;
use crate::meter::Meter;
use crate::model::operation::{IdKind, OperationKind, OperationStatus};
use crate::processor::{Mode, ScopeRule, built_in};

const CANONICAL: &str =
    "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference\n";

fn canonical() -> Profile {
    Profile::parse("canonical", built_in("canonical").expect("built in")).expect("a profile")
}

/// A profile with columns id, type, state, amount, cur, at; `more` are further TOML lines by table.
pub(super) fn own(csv: &str, record: &str, money: &str, more: &str) -> Profile {
    let amount = if money.contains("amount =") {
        ""
    } else {
        "amount = { column = \"amount\", currency = \"cur\" }"
    };
    let unit = if money.contains("unit =") {
        ""
    } else {
        "unit = \"major\""
    };
    let id = if record.contains("operation_id =") {
        ""
    } else {
        "operation_id = [\"id\"]"
    };
    let at = if record.contains("occurred_at =") {
        ""
    } else {
        "occurred_at = { column = \"at\", format = \"rfc3339\" }"
    };
    let kinds = if more.contains("[maps.kind]") {
        ""
    } else {
        "[maps.kind]\ncolumn = \"type\"\ncharge = { kind = \"charge\", status = \"succeeded\" }\n\"*\" = \"error\""
    };
    let text = format!(
        "[profile]\nname = \"own\"\nversion = 1\nkind = \"csv\"\n[csv]\n{csv}\n[records.default]\n{id}\n{at}\n{record}\n\
         [records.default.money]\n{unit}\n{amount}\n{money}\n{kinds}\n{more}\n"
    );
    Profile::parse("profile.toml", &text).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

fn plain() -> Profile {
    own("", "", "", "")
}

pub(super) fn read_with(
    profile: &Profile,
    rules: &ReadRules,
    bytes: impl AsRef<[u8]>,
) -> Result<(Operations, FileFacts), Failure> {
    let mut operations = Operations::default();
    let facts = decode(
        profile,
        rules,
        "a.csv",
        3,
        bytes.as_ref(),
        &mut operations,
        &Meter::default(),
    )?;
    Ok((operations, facts))
}

pub(super) fn read(profile: &Profile, bytes: impl AsRef<[u8]>) -> (Operations, FileFacts) {
    read_with(profile, &ReadRules::default(), bytes).unwrap_or_else(|failure| panic!("{failure}"))
}

pub(super) fn refused(profile: &Profile, bytes: impl AsRef<[u8]>, wanted: &[&str]) {
    let failure = read_with(profile, &ReadRules::default(), bytes).expect_err("rejected");
    for want in wanted {
        assert!(failure.what.contains(want), "{want:?} in {failure}");
    }
    assert!(
        !failure.why.is_empty() && !failure.remedy.is_empty(),
        "{failure}"
    );
    assert!(failure.what.starts_with("a.csv"), "{failure}");
    assert!(failure.state.is_empty(), "{failure}");
}

#[test]
fn a_canonical_row_is_read_as_it_says() {
    let (operations, facts) = read(
        &canonical(),
        format!("{CANONICAL}ch_1,charge,succeeded,1000,30,970,EUR,2026-03-09T09:00:00Z, A\n"),
    );
    let row = operations.get(0);
    assert_eq!(
        (row.operation_id, row.id_kind, row.reference),
        ("ch_1", IdKind::Native, "A")
    );
    assert_eq!(
        (row.kind, row.status),
        (OperationKind::Charge, OperationStatus::Succeeded)
    );
    assert_eq!(
        (row.amount_minor, row.fee_minor, row.net_minor),
        (1000, Some(30), Some(970))
    );
    assert_eq!(
        (row.currency.as_str(), row.settle_currency.as_str()),
        ("EUR", "EUR")
    );
    assert_eq!(
        (row.file, row.line, row.invalid, row.ignore),
        (3, 2, "", None)
    );
    assert_eq!(
        (facts.rows, facts.newest, facts.is_verified),
        (1, Some(row.occurred_at), false)
    );
}

#[test]
fn a_canonical_row_in_another_settling_currency_keeps_the_settled_net() {
    let head = "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,settle_currency,settle_net_minor\n";
    let (operations, _) = read(
        &canonical(),
        format!(
            "{head}a,charge,succeeded,8000,,,USD,2026-03-09T09:00:00Z,GBP,6045\nb,charge,succeeded,8000,205,,USD,2026-03-09T09:00:00Z,GBP,6045\n"
        ),
    );
    let row = operations.get(0);
    assert_eq!(
        (row.currency.as_str(), row.settle_currency.as_str()),
        ("USD", "GBP")
    );
    assert_eq!(
        (row.fee_minor, row.net_minor, row.invalid),
        (None, Some(6045), "")
    );
    assert!(
        operations.get(1).invalid.contains("fee in USD"),
        "{}",
        operations.get(1).invalid
    );
}

#[test]
fn optional_canonical_columns_may_be_missing_and_a_header_alone_is_an_empty_feed() {
    let head = "occurred_at,currency,amount_minor,status,kind,operation_id\n";
    let (operations, facts) = read(&canonical(), head);
    assert_eq!((operations.len(), facts), (0, FileFacts::default()));
    let (operations, _) = read(
        &canonical(),
        format!("{head}2026-03-09T09:00:00Z,EUR,-5,succeeded,refund,r\n"),
    );
    assert_eq!(
        (operations.get(0).net_minor, operations.get(0).amount_minor),
        (None, -5)
    );
}

#[test]
fn a_file_that_contradicts_the_canonical_format_is_rejected_with_its_line() {
    let profile = canonical();
    for (rows, wanted) in [
        (
            "ch_1,charge,succeeded,1000,30,950,EUR,2026-03-09T09:00:00Z,A",
            &["a.csv:2", "line 2", "net of 950"][..],
        ),
        (
            "ch_1,charge,succeeded,,0,0,EUR,2026-03-09T09:00:00Z,A",
            &["line 2", "\"amount_minor\"", "empty"],
        ),
        (
            "ch_1,charge,succeeded,10.00,0,0,EUR,2026-03-09T09:00:00Z,A",
            &["\"10.00\"", "no whole number"],
        ),
        (
            "ch_1,charge,succeeded,ten,0,0,EUR,2026-03-09T09:00:00Z,A",
            &["\"ten\"", "amount"],
        ),
        (
            "ch_1,charge,succeeded,10,0,0,EUR,2026-03-09T09:00:00,A",
            &["\"occurred_at\"", "time"],
        ),
        (
            "1.23E+22,charge,succeeded,10,0,0,EUR,2026-03-09T09:00:00Z,A",
            &["\"1.23E+22\"", "exponent"],
        ),
        (
            "a,charge,succeeded,10,0,0,EUR,2026-03-09T09:00:00Z,1.2E+22",
            &["\"reference\"", "exponent"],
        ),
        (
            ",charge,succeeded,10,0,0,EUR,2026-03-09T09:00:00Z,A",
            &["\"operation_id\"", "empty"],
        ),
        (
            "a,charge,succeeded,10",
            &["line 2 has 4 fields where 9 are expected"],
        ),
        ("x", &["line 2 has 1 field where 9 are expected"]),
        ("a,charge,succeeded,\"10", &["line 2 opens a quote"]),
    ] {
        refused(&profile, format!("{CANONICAL}{rows}\n"), wanted);
    }
}

#[test]
fn the_usual_mishaps_are_called_by_their_name() {
    let row = "ch_1,charge,succeeded,1000,30,970,EUR,2026-03-09T09:00:00Z,A\n";
    for (text, wanted) in [
        ("<!DOCTYPE html>\n<html>\n".to_owned(), "web page"),
        (
            format!("{CANONICAL}{row}{CANONICAL}{row}"),
            "line 3 is the header once more",
        ),
        (
            format!("{CANONICAL}{}", row.replace("ch_1", "")),
            "the cell is empty",
        ),
        (
            format!("{CANONICAL}{}", row.replace('Z', "")),
            "with an offset: 2026-",
        ),
        (CANONICAL.replace(',', ";"), "separated by \";\""),
    ] {
        let failure = read_with(&canonical(), &ReadRules::default(), text).expect_err("rejected");
        assert!(failure.to_string().contains(wanted), "{wanted}: {failure}");
    }
}

#[test]
fn the_row_check_holds_where_net_is_not_zero() {
    let row = |net: &str| {
        format!("{CANONICAL}a,charge,failed,1000,30,{net},EUR,2026-03-09T09:00:00Z,A\n")
    };
    assert_eq!(read(&canonical(), row("0")).0.get(0).net_minor, Some(0));
    assert_eq!(read(&canonical(), row("970")).0.get(0).net_minor, Some(970));
    assert_eq!(read(&canonical(), row("")).0.get(0).net_minor, None);
    refused(&canonical(), row("1000"), &["net of 1000"]);
}

#[test]
fn an_unknown_word_is_a_finding_only_where_money_hangs_on_it() {
    let row = |kind: &str, status: &str, net: &str| {
        let text =
            format!("{CANONICAL}a,{kind},{status},1000,0,{net},EUR,2026-03-09T09:00:00Z,A\n");
        let (operations, facts) = read(&canonical(), text);
        let row = operations.get(0);
        assert_eq!(facts.invalid, u64::from(!row.invalid.is_empty()));
        (row.kind, row.status, row.ignore, row.invalid.to_owned())
    };
    for (kind, status, net, want_status, is_invalid) in [
        ("tip", "succeeded", "1000", "succeeded", true),
        ("tip", "succeeded", "", "succeeded", true),
        ("tip", "succeeded", "0", "succeeded", false),
        ("tip", "failed", "", "failed", false),
        ("tip", "pending", "1000", "pending", true),
        ("charge", "done", "1000", "unknown", true),
        ("charge", "done", "", "unknown", true),
        ("charge", "done", "0", "unknown", false),
        ("charge", "unknown", "1000", "unknown", true),
        ("Charge", "succeeded", "1000", "succeeded", true),
    ] {
        let (read_kind, read_status, ignore, invalid) = row(kind, status, net);
        assert_eq!(
            read_kind == OperationKind::Other,
            kind != "charge",
            "{kind}"
        );
        assert_eq!(read_status.as_str(), want_status, "{kind} {status}");
        assert_eq!(
            !invalid.is_empty(),
            is_invalid,
            "{kind} {status} {net:?}: {invalid}"
        );
        let want = (!is_invalid).then_some(IgnoreReason::NoMoney);
        assert_eq!(ignore, want, "{kind} {status} {net:?}");
    }
    assert!(
        row("charge", "done", "1000")
            .3
            .contains("column \"status\" holds \"done\"")
    );
}

#[test]
fn a_readable_row_that_cannot_be_used_keeps_its_money_and_its_evidence() {
    for (currency, at, net, want) in [
        (
            "FOO",
            "2026-03-09T09:00:00Z",
            "",
            "\"FOO\", which is no currency",
        ),
        ("", "2026-03-09T09:00:00Z", "1000", "no currency"),
        ("XAU", "2026-03-09T09:00:00Z", "1000", "\"XAU\""),
        ("EUR", "", "1000", "\"occurred_at\" is empty"),
        ("EUR", "1973-03-09T09:00:00Z", "1000", "outside the years"),
        ("EUR", "9999-03-09T09:00:00Z", "1000", "outside the years"),
    ] {
        let text = format!("{CANONICAL}a,charge,succeeded,1000,0,{net},{currency},{at},A\n");
        let (operations, facts) = read(&canonical(), text);
        let row = operations.get(0);
        assert!(row.invalid.contains(want), "{want}: {}", row.invalid);
        assert!(!row.invalid.contains("line"), "{}", row.invalid);
        assert_eq!(
            (row.amount_minor, facts.invalid, facts.newest),
            (1000, 1, None)
        );
        assert_eq!(row.currency.as_str() == "XXX", currency != "EUR");
    }
}

#[test]
fn rows_of_another_scope_are_told_apart_by_their_column() {
    let rules = ReadRules {
        scope: Some(ScopeRule {
            column: "site".to_owned(),
            value: "live".to_owned(),
        }),
        account: "acc".to_owned(),
        ..ReadRules::default()
    };
    let head = "operation_id,kind,status,amount_minor,currency,occurred_at,site\n";
    let text = format!(
        "{head}a,tip,succeeded,1,EUR,2026-03-09T09:00:00Z,staging\nb,charge,succeeded,1,EUR,2026-03-09T09:00:00Z, live\n"
    );
    let (operations, _) = read_with(&canonical(), &rules, text).expect("read");
    let (other, ours) = (operations.get(0), operations.get(1));
    assert_eq!(
        (other.ignore, other.invalid),
        (Some(IgnoreReason::OtherScope), "")
    );
    assert_eq!((ours.ignore, ours.account), (None, "acc"));
    let failure = read_with(&canonical(), &rules, CANONICAL).expect_err("rejected");
    assert!(failure.what.contains("scope column \"site\""), "{failure}");
}

#[test]
fn rows_of_the_other_mode_are_told_apart_and_counted() {
    let profile = own(
        "",
        "mode = { column = \"m\", live = [\"live\"], test = [\"test\"] }",
        "",
        "",
    );
    let rules = ReadRules {
        mode: Some(Mode::Live),
        ..ReadRules::default()
    };
    let text = "id,type,amount,cur,at,m\na,charge,1,EUR,2026-03-09T09:00:00Z,live\nb,charge,1,EUR,2026-03-09T09:00:00Z,test\nc,charge,1,EUR,2026-03-09T09:00:00Z,demo\n";
    let (operations, facts) = read_with(&profile, &rules, text).expect("read");
    assert_eq!(operations.get(1).ignore, Some(IgnoreReason::TestMode));
    assert!(operations.get(2).invalid.contains("neither live nor test"));
    assert_eq!((facts.rows_of_mode, facts.rows_of_other_mode), (1, 1));
    let failure = read_with(&canonical(), &rules, CANONICAL).expect_err("rejected");
    assert!(failure.what.contains("mode = \"live\""), "{failure}");
}

#[test]
fn every_column_that_an_own_profile_names_has_to_be_there() {
    let head = "id,type,amount,cur,at\n";
    assert_eq!(read(&plain(), head).0.len(), 0);
    for (file, wanted) in [
        ("", &["nothing in the file"][..]),
        ("\u{feff}", &["nothing in the file"]),
        ("\n\n", &["no header"]),
        ("Kennung;Art;Betrag\n", &["\"id\"", "\"amount\"", "missing"]),
        ("id,type,Amount,cur,at\n", &["column \"amount\" is missing"]),
        (
            "id,type,amount,cur,at,amount\n",
            &["\"amount\"", "positions 3 and 6"],
        ),
    ] {
        refused(&plain(), file, wanted);
    }
    let failure = read_with(&plain(), &ReadRules::default(), "id;type;amount;cur;at\n")
        .expect_err("rejected");
    assert!(failure.remedy.contains("separated by \";\""), "{failure}");
    let failure = read_with(&plain(), &ReadRules::default(), "id,type,Amount,cur,at\n")
        .expect_err("rejected");
    assert!(
        failure.remedy.contains("\"Amount\" for \"amount\""),
        "{failure}"
    );
}

#[test]
fn of_several_candidates_one_has_to_be_there_and_the_first_that_says_something_wins() {
    let profile = own(
        "",
        "reference = [{ column = \"order\", not_in = [\"<auto>\"] }, { column = \"meta\", json_pointer = \"/ref\" }, { column = \"id\", when_kind = [\"refund\"] }]",
        "",
        "",
    );
    let text = "id,type,amount,cur,at,order,meta\n\
        a,charge,1,EUR,2026-03-09T09:00:00Z,\" A\u{a0}\n\",\n\
        b,charge,1,EUR,2026-03-09T09:00:00Z,<auto>,\"{\"\"ref\"\": \"\"B\"\"}\"\n\
        c,charge,1,EUR,2026-03-09T09:00:00Z, ,none\n";
    let (operations, _) = read(&profile, text);
    let references: Vec<&str> = (0..3).map(|at| operations.get(at).reference).collect();
    assert_eq!(references, ["A", "B", ""]);
    read(&profile, "id,type,amount,cur,at,order\n");
    let either = own("", "reference = [\"order\", \"invoice\"]", "", "");
    read(&either, "id,type,amount,cur,at,invoice\n");
    refused(
        &either,
        "id,type,amount,cur,at\n",
        &["\"order\", \"invoice\" are missing"],
    );
}

#[test]
fn a_position_or_an_occurrence_chooses_among_columns_of_one_name() {
    let text = "id,type,amount,cur,amount,at,,\na,charge,50.00,EUR,46.10,2026-03-09T09:00:00Z,,\n";
    for (column, want) in [
        ("3", 5000),
        ("5", 4610),
        ("\"amount#1\"", 5000),
        ("\"amount#2\"", 4610),
    ] {
        let profile = own(
            "",
            "",
            &format!("amount = {{ column = {column}, currency = \"cur\" }}"),
            "",
        );
        assert_eq!(read(&profile, text).0.get(0).amount_minor, want, "{column}");
    }
    let profile = own("", "", "amount = { column = 3, currency = \"cur\" }", "");
    let shifted = text.replace("09:00:00Z,,", "09:00:00Z,,x");
    refused(&profile, &shifted, &["line 2 has a value at position 8"]);
    let beyond = own("", "", "amount = { column = 9, currency = \"cur\" }", "");
    refused(&beyond, text, &["\"9\" is missing"]);
}

#[test]
fn rows_are_as_wide_as_declared() {
    let row = "a,charge,1,EUR,2026-03-09T09:00:00Z";
    let head = "id,type,amount,cur,at,note\n";
    for (rule, rows, fits) in [
        ("exact", format!("{row},x"), true),
        ("exact", row.to_owned(), false),
        ("allow_short", row.to_owned(), true),
        ("allow_short", format!("{row},x,y"), false),
        ("allow_long", format!("{row},x,y"), true),
        ("allow_long", row.to_owned(), false),
        ("allow_trailing_empty", format!("{row},x,, "), true),
        ("allow_trailing_empty", format!("{row},x,,y"), false),
    ] {
        let profile = own(&format!("row_width = \"{rule}\""), "", "", "");
        let read = read_with(&profile, &ReadRules::default(), format!("{head}{rows}\n"));
        assert_eq!(read.is_ok(), fits, "{rule} {rows}");
    }
}

#[test]
fn lines_are_counted_as_an_editor_counts_them() {
    let profile = own("", "description = \"note\"", "", "");
    let text = "id,type,amount,cur,at,note\r\n\r\na,charge,10.00,USD,2026-03-09T09:00:00Z,\"Soup\r\nMenu, \"\"2\"\"\"\r\nb,charge,15.0x,USD,2026-03-09T10:00:00Z,Tea\r\n";
    refused(&profile, text, &["a.csv:5", "line 5", "\"15.0x\""]);
    let (operations, facts) = read(&profile, text.replace("15.0x", "15.00"));
    assert_eq!(
        (
            operations.get(0).line,
            operations.get(1).line,
            facts.blank_rows
        ),
        (3, 5, 1)
    );
    assert_eq!(operations.get(0).description, "Soup\r\nMenu, \"2\"");
    refused(&profile, text.replace("\r\n", "\r"), &["a.csv:5"]);
}

#[test]
fn a_preamble_is_skipped_to_the_header_that_is_declared() {
    let profile = own(
        "header_match = { first_cell = \"id\", within_lines = 3 }",
        "",
        "",
        "",
    );
    let table = "id,type,amount,cur,at\na,charge,1,EUR,2026-03-09T09:00:00Z\n";
    let (operations, _) = read(&profile, format!("Report of \"March\nby, nobody\n{table}"));
    assert_eq!(operations.get(0).line, 4);
    refused(&profile, format!("\n\n\n{table}"), &["first 3", "\"id\""]);
}

#[test]
fn a_file_without_a_header_is_read_by_positions() {
    let profile = own(
        "header = \"positional\"",
        "operation_id = [1]\noccurred_at = { column = 5, format = \"rfc3339\" }",
        "amount = { column = 3, currency = 4 }",
        "[maps.kind]\ncolumn = 2\ncharge = { kind = \"charge\" }",
    );
    let (operations, _) = read(&profile, "a,charge,1.50,EUR,2026-03-09T09:00:00Z\n");
    assert_eq!(
        (
            operations.get(0).operation_id,
            operations.get(0).amount_minor
        ),
        ("a", 150)
    );
    refused(
        &profile,
        "a,charge,x,EUR,2026-03-09T09:00:00Z\n",
        &["column \"3\", line 1"],
    );
}

#[test]
fn the_delimiter_may_be_told_by_the_header() {
    let profile = own("delimiter = \"auto\"", "", "", "");
    for delimiter in [",", ";", "\t", "|"] {
        let text =
            "id,type,amount,cur,at\na,charge,1,EUR,2026-03-09T09:00:00Z\n".replace(',', delimiter);
        assert_eq!(read(&profile, text).0.len(), 1, "{delimiter:?}");
    }
    refused(&profile, "x:y:z\n", &["delimiter cannot be told"]);
}

#[test]
fn the_end_marker_ends_the_file_and_proves_it_whole() {
    let profile = own("end_marker = \"--- END ---\"", "", "", "");
    let (head, row) = (
        "id,type,amount,cur,at\n",
        "a,charge,1,EUR,2026-03-09T09:00:00Z\n",
    );
    let (operations, facts) = read(&profile, format!("{head}{row}--- END ---\n\n"));
    assert_eq!((operations.len(), facts.is_verified), (1, true));
    refused(
        &profile,
        format!("{head}{row}"),
        &["\"--- END ---\" is missing"],
    );
    refused(
        &profile,
        format!("{head}--- END ---\n{row}"),
        &["line 3 stands behind the end"],
    );
    refused(
        &plain(),
        format!("{head}{row}--- END ---\n"),
        &["line 3 has 1 field where 5 are expected"],
    );
}

#[test]
fn totals_and_counts_have_to_agree_with_the_rows() {
    let head = "id,type,amount,cur,at\n";
    let rows = "a,charge,1.50,EUR,2026-03-09T09:00:00Z\nb,charge,2.5,EUR,2026-03-09T09:00:00Z\n";
    let control = "control_rows = [{ column = \"type\", in = [\"Total\"], sum_of = \"amount\" }]";
    let trailer =
        "trailer = { first_cell = \"T\", rows = 2, total = { position = 3, sum_of = \"amount\" } }";
    for (csv, end, wanted) in [
        (control, ",Total,4.00,EUR,\n", ""),
        (control, ",Total,4,,\n", ""),
        (
            control,
            ",Total,4.01,EUR,\n",
            "not the sum of the rows above, 4.00",
        ),
        (control, "", "no totals row"),
        (
            control,
            "c,charge,1,USD,2026-03-09T09:00:00Z\n,Total,5,,\n",
            "several currencies",
        ),
        (trailer, "T,2,4.00\n", ""),
        (trailer, "T,3,4.00\n", "not the number of rows above, 2"),
        (trailer, "T,2,5\n", "not the sum"),
        (trailer, "", "last line"),
        ("expect_rows = 2", "", ""),
        ("expect_rows = 3", "", "there are 2 rows where 3"),
        (
            "expect_total = { column = \"amount\", value = \"4.00\" }",
            "",
            "",
        ),
        (
            "expect_total = { column = \"amount\", value = \"5.00\" }",
            "",
            "not the sum",
        ),
    ] {
        let profile = own(csv, "", "", "");
        let text = format!("{head}{rows}{end}");
        if wanted.is_empty() {
            let (operations, facts) = read(&profile, text);
            assert_eq!(
                (operations.len(), facts.is_verified),
                (2, true),
                "{csv} {end}"
            );
        } else {
            refused(&profile, text, &[wanted]);
        }
    }
}

#[test]
fn declared_rows_are_skipped_but_listed() {
    let profile = own(
        "skip_rows = [{ column = \"type\", in = [\"Received\"], reason = \"no_money\" }]",
        "",
        "settle_net = { column = \"net\" }",
        "",
    );
    let text = "id,type,amount,net,cur,at\na,Received,,,,2026-03-09T09:00:00Z\nb,Received,5,5,EUR,2026-03-09T09:00:00Z\n";
    let (operations, _) = read(&profile, text);
    assert_eq!(
        (operations.get(0).ignore, operations.get(0).invalid),
        (Some(IgnoreReason::NoMoney), "")
    );
    assert_eq!(operations.get(1).ignore, None);
    assert!(
        operations.get(1).invalid.contains("net is 500 EUR"),
        "{}",
        operations.get(1).invalid
    );
}

#[test]
fn a_word_of_the_profile_never_swallows_money() {
    let maps = "[maps.kind]\ncolumn = \"type\"\ncharge = { kind = \"charge\" }\n\
        [maps.status]\ncolumn = \"state\"\ncase = \"insensitive\"\nSettled = { status = \"succeeded\" }\n\
        received = { status = \"pending\", ignore = \"life_cycle\" }\nlate = { status = \"failed\", final = true }\n\"*\" = \"error\"";
    let profile = own(
        "",
        "",
        "settle_net = { column = \"net\", currency = \"cur\" }",
        maps,
    );
    let head = "id,type,state,amount,net,cur,at\n";
    let row = |state: &str, net: &str| {
        format!("{head}a,charge,{state},5,{net},EUR,2026-03-09T09:00:00Z\n")
    };
    let (operations, _) = read(&profile, row("RECEIVED", "0"));
    assert_eq!(operations.get(0).ignore, Some(IgnoreReason::LifeCycle));
    assert_eq!(operations.get(0).status, OperationStatus::Pending);
    let (operations, _) = read(&profile, row("received", "4.50"));
    assert_eq!(operations.get(0).ignore, None);
    assert!(
        operations.get(0).invalid.contains("set") && operations.get(0).invalid.contains("450 EUR")
    );
    assert!(read(&profile, row("late", "0")).0.get(0).is_final);
    refused(
        &profile,
        row("new", "0"),
        &["line 2", "column \"state\"", "\"new\""],
    );
}

#[test]
fn money_is_signed_from_our_side_in_every_form() {
    let head = "id,type,amount,dr,cur,sign,fee,net,scur,at\n";
    let row = |amount: &str, dr: &str, sign: &str, fee: &str, net: &str| {
        format!("{head}a,charge,{amount},{dr},EUR,{sign},{fee},{net},EUR,2026-03-09T09:00:00Z\n")
    };
    let credit = "amount = { credit = \"amount\", debit = \"dr\", currency = \"cur\" }";
    let signed = "amount = { column = \"amount\", sign_column = \"sign\", negative = [\"DR\"], currency = \"cur\" }";
    let cost = "fee_total = { column = \"fee\", sign = \"cost_negative\" }";
    let fees = "fees = [{ type = \"a\", column = \"fee\" }, { type = \"b\", column = \"dr\" }]";
    let words =
        "fees = [{ type = \"a\", column = \"fee\", sign_column = \"sign\", cost_when = [\"DR\"] }]";
    let derived = "settle_gross = \"gross - fees\"\nfee_total = { column = \"fee\" }";
    let gross = "settle_gross = { column = \"net\", currency = \"scur\" }\nfee_total = { column = \"fee\" }";
    let constant = "amount = { column = \"amount\", currency = \"const:JPY\" }";
    for (money, text, amount, fee, net) in [
        (credit, row("5.00", "", "", "", ""), 500, None, None),
        (credit, row("", "5.00", "", "", ""), -500, None, None),
        (credit, row("5.00", "0.00", "", "", ""), 500, None, None),
        (signed, row("5.00", "", "CR", "", ""), 500, None, None),
        (signed, row("5.00", "", "DR", "", ""), -500, None, None),
        (cost, row("5.00", "", "", "-0.30", ""), 500, Some(30), None),
        (cost, row("5.00", "", "", "", ""), 500, None, None),
        (
            fees,
            row("5.00", "0.20", "", "0.10", ""),
            500,
            Some(30),
            None,
        ),
        (
            words,
            row("5.00", "", "DR", "0.10", ""),
            500,
            Some(10),
            None,
        ),
        (
            words,
            row("5.00", "", "CR", "0.10", ""),
            500,
            Some(-10),
            None,
        ),
        (
            derived,
            row("5.00", "", "", "0.10", ""),
            500,
            Some(10),
            Some(490),
        ),
        (
            gross,
            row("5.00", "", "", "0.10", "4.00"),
            500,
            Some(10),
            Some(390),
        ),
        (constant, row("5", "", "", "", ""), 5, None, None),
    ] {
        let (operations, _) = read(&own("", "", money, ""), &text);
        let found = operations.get(0);
        assert_eq!(
            (found.amount_minor, found.fee_minor, found.net_minor),
            (amount, fee, net),
            "{money} {text}"
        );
        assert_eq!(found.invalid, "", "{money}");
    }
    refused(
        &own("", "", credit, ""),
        row("-5.00", "", "", "", ""),
        &["sign of its own"],
    );
    refused(
        &own("", "", signed, ""),
        row("5.00", "", "", "", ""),
        &["\"sign\"", "empty"],
    );
    refused(
        &own("", "", "", ""),
        row("14.345", "", "", "", ""),
        &["more decimals"],
    );
}

#[test]
fn the_first_net_that_is_filled_in_wins() {
    let money = "settle_net = [{ column = \"snet\", currency = \"scur\" }, { column = \"net\", currency = \"cur\" }]";
    let profile = own("", "", money, "");
    let text = "id,type,amount,cur,net,at,snet,scur\na,charge,8,USD,7,2026-03-09T09:00:00Z,6,GBP\nb,charge,8,USD,7,2026-03-09T09:00:00Z,,\n";
    let (operations, _) = read(&profile, text);
    assert_eq!(
        (
            operations.get(0).net_minor,
            operations.get(0).settle_currency.as_str()
        ),
        (Some(600), "GBP")
    );
    assert_eq!(
        (
            operations.get(1).net_minor,
            operations.get(1).settle_currency.as_str()
        ),
        (Some(700), "USD")
    );
}

#[test]
fn a_rest_from_another_table_of_exponents_is_a_finding_about_the_row() {
    let profile = own("", "", "unit = \"minor\"\nexponents = \"stripe\"", "");
    let head = "id,type,amount,cur,at\n";
    let (operations, _) = read(
        &profile,
        format!(
            "{head}a,charge,15000,ISK,2026-03-09T09:00:00Z\nb,charge,15001,ISK,2026-03-09T09:00:00Z\n"
        ),
    );
    assert_eq!(
        (operations.get(0).amount_minor, operations.get(0).invalid),
        (150, "")
    );
    assert!(
        operations
            .get(1)
            .invalid
            .contains("rest below the minor unit")
    );
}

#[test]
fn an_undeclared_decimal_sign_rejects_at_the_unclear_line() {
    let profile = own("delimiter = \";\"", "", "decimal = \"auto\"", "");
    let text = "id;type;amount;cur;at\na;charge;1.234,56;EUR;2026-03-09T09:00:00Z\nb;charge;-4.000;EUR;2026-03-09T09:00:00Z\n";
    refused(&profile, text, &["line 3", "\"-4.000\"", "two ways"]);
}

#[test]
fn ids_are_composed_or_made_of_content() {
    let text = "id,type,amount,cur,at\na,charge,20.00,EUR,2026-03-09T09:00:00Z\na,charge,20.00,EUR,2026-03-09T09:00:00Z\n,charge,20.00,EUR,2026-03-09T09:00:00Z\n";
    let composite = own("", "operation_id = [\"type\", \"id\"]", "", "");
    let (operations, _) = read(&composite, text);
    assert_eq!(
        (operations.get(0).operation_id, operations.get(0).id_kind),
        ("charge|a", IdKind::Composite)
    );
    let noted = own("", "operation_id = [\"id\", \"note\"]", "", "");
    let id = |id: &str, note: &str| {
        let text = format!(
            "id,type,amount,cur,at,note\n{id},charge,20.00,EUR,2026-03-09T09:00:00Z,{note}\n"
        );
        read(&noted, &text).0.get(0).operation_id.to_owned()
    };
    assert_eq!(id("x|y", "z"), "x\\|y|z");
    assert_ne!(id("x|y", "z"), id("x", "y|z"));
    assert_ne!(id("x\\", "|y"), id("x\\|", "y"));
    let ids = |profile: &Profile, text: &str| -> Vec<String> {
        read(profile, text)
            .0
            .iter()
            .map(|row| row.operation_id.to_owned())
            .collect()
    };
    let synthetic = own(
        "",
        "operation_id = \"synthetic\"\nidentity = [\"id\", \"type\", \"amount\", \"cur\", \"at\"]",
        "",
        "",
    );
    let first = ids(&synthetic, text);
    assert_eq!(
        first
            .iter()
            .collect::<std::collections::BTreeSet<_>>()
            .len(),
        3
    );
    assert!(
        first[0].ends_with("-1") && first[1].ends_with("-2"),
        "{first:?}"
    );
    let reordered = "at,type,amount,cur,id,new\n2026-03-09T09:00:00Z,charge,20.00,EUR,a,x\n";
    assert_eq!(ids(&synthetic, reordered)[0], first[0]);
    let fallback = own(
        "",
        "operation_id_fallback = \"synthetic\"\nidentity = [\"id\", \"type\", \"amount\", \"cur\", \"at\"]",
        "",
        "",
    );
    let (operations, _) = read(&fallback, text);
    assert_eq!(
        (operations.get(0).id_kind, operations.get(2).id_kind),
        (IdKind::Native, IdKind::Synthetic)
    );
    assert_eq!(operations.get(2).operation_id, first[2]);
    refused(&plain(), text, &["line 4", "column \"id\"", "no id"]);
}

#[test]
fn ids_are_text() {
    let profile = own("", "object_id = \"obj\"", "", "");
    let text = "id,type,amount,cur,at,obj\n007,charge,1,EUR,2026-03-09T09:00:00Z,1234567890123456789\n\"=\"\"001\"\"\",charge,1,EUR,2026-03-09T09:00:00Z, Ab\n";
    let (operations, _) = read(&profile, text);
    assert_eq!(
        (operations.get(0).operation_id, operations.get(0).object_id),
        ("007", "1234567890123456789")
    );
    assert_eq!(
        (operations.get(1).operation_id, operations.get(1).object_id),
        ("001", "Ab")
    );
    let untrimmed = own(
        "trim = false",
        "object_id = \"obj\"\nreference = \"id\"",
        "",
        "",
    );
    let text = text.replace("007,", " 007,");
    let (operations, _) = read(&untrimmed, text);
    assert_eq!(
        (operations.get(0).operation_id, operations.get(0).reference),
        (" 007", "007")
    );
}

#[test]
fn times_are_read_by_columns_formats_and_zones() {
    let record = "occurred_at = { column = [\"date\", \"time\"], format = \"%Y-%m-%d %H:%M:%S\", zone_column = \"zone\" }\n\
        updated_at = { column = \"up\", format = \"%Y-%m-%d\", zone = \"UTC\", optional = true }";
    let profile = own("", record, "", "[zones]\nCET = \"+01:00\"");
    let head = "id,type,amount,cur,date,time,zone,up\n";
    let row = |date: &str, zone: &str, up: &str| {
        format!("{head}a,charge,1,EUR,{date},00:27:00,{zone},{up}\n")
    };
    let (operations, _) = read(&profile, row("2026-03-10", "CET", ""));
    assert_eq!(
        operations.get(0).occurred_at.to_string(),
        "2026-03-09T23:27:00Z"
    );
    refused(
        &profile,
        row("2026-03-10", "PST", ""),
        &["line 2", "column \"zone\"", "\"PST\""],
    );
    refused(
        &profile,
        row("10.03.2026", "CET", ""),
        &["\"10.03.2026 00:27:00\""],
    );
    refused(
        &profile,
        row("2026-03-10", "CET", "soon"),
        &["\"up\"", "\"soon\""],
    );
    let local = own(
        "",
        "occurred_at = { column = \"at\", format = \"%Y-%m-%d %H:%M\", zone = \"Europe/Paris\" }",
        "",
        "",
    );
    let text = "id,type,amount,cur,at\na,charge,1,EUR,2026-10-25 02:30\n";
    assert!(read(&local, text).0.get(0).invalid.contains("showed twice"));
}

#[test]
fn a_running_total_of_refunds_is_kept_beside_the_payment() {
    let refund = "[records.default.derived_refund]\ntotal = { column = \"back\", currency = \"cur\" }\nat = { column = \"up\", format = \"rfc3339\" }";
    let profile = own("", "", "", refund);
    let head = "id,type,amount,cur,at,back,up\n";
    let row =
        |back: &str, up: &str| format!("{head}a,charge,90,EUR,2026-03-09T09:00:00Z,{back},{up}\n");
    let (operations, _) = read(&profile, row("35.00", "2026-03-09T21:00:00Z"));
    assert_eq!(operations.get(0).refund_total_minor, Some(3500));
    assert_eq!(
        operations.get(0).refunded_at,
        crate::time::Instant::parse("2026-03-09T21:00:00Z")
    );
    assert_eq!(
        read(&profile, row("", "")).0.get(0).refund_total_minor,
        None
    );
    refused(&profile, row("-1", ""), &["\"-1\" is negative"]);
}

#[test]
fn so_many_bad_rows_as_tolerated_become_findings() {
    let text = "id,type,amount,cur,at\na,charge,x,EUR,2026-03-09T09:00:00Z\nb,charge,1,EUR,2026-03-09T09:00:00Z\nc,charge\n";
    let rules = |tolerate_bad_rows| ReadRules {
        tolerate_bad_rows,
        ..ReadRules::default()
    };
    assert!(read_with(&plain(), &rules(1), text).is_err());
    let (operations, facts) = read_with(&plain(), &rules(2), text).expect("read");
    assert_eq!((facts.rows, facts.quarantined, facts.invalid), (3, 2, 2));
    let bad = operations.get(0);
    assert_eq!(
        (bad.operation_id, bad.id_kind, bad.amount_minor),
        ("a", IdKind::Native, 0)
    );
    assert!(
        bad.invalid.contains("\"x\" cannot be read as an amount"),
        "{}",
        bad.invalid
    );
    assert_eq!(bad.occurred_at, operations.get(1).occurred_at);
    assert_eq!(operations.get(2).id_kind, IdKind::Synthetic);
    assert!(operations.get(2).invalid.contains("2 fields where 5"));
}

#[test]
fn other_encodings_are_read_where_declared_or_marked() {
    let utf16: Vec<u8> = "\u{feff}id,type,amount,cur,at\né,charge,1,EUR,2026-03-09T09:00:00Z\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    assert_eq!(read(&plain(), utf16).0.get(0).operation_id, "é");
    let latin = b"id,type,amount,cur,at\n\xe9,charge,1,EUR,2026-03-09T09:00:00Z\n";
    refused(&plain(), latin, &["0xE9 on line 2"]);
    let declared = own("encoding = \"windows-1252\"", "", "", "");
    assert_eq!(read(&declared, latin).0.get(0).operation_id, "é");
    let renamed = own("aliases = { \"Kennung\" = \"id\" }", "", "", "");
    let (operations, _) = read(
        &renamed,
        "\u{feff}Kennung,type,amount,cur,at\na,charge,1,EUR,2026-03-09T09:00:00Z\n",
    );
    assert_eq!(operations.get(0).operation_id, "a");
}

#[test]
fn a_file_cut_at_any_byte_gives_its_first_rows_or_an_error() {
    let text = format!(
        "{CANONICAL}ch_1,charge,succeeded,1000,30,970,EUR,2026-03-09T09:00:00Z,\"A,\n\"\nch_2,refund,succeeded,-10,0,-10,EUR,2026-03-09T09:00:00Z,B\n"
    );
    let (whole, _) = read(&canonical(), &text);
    let marked = own("end_marker = \"END\"", "", "", "");
    for cut in 0..text.len() {
        let read = read_with(&canonical(), &ReadRules::default(), &text[..cut]);
        let Ok((part, _)) = read else { continue };
        // Only the last cell of a row may be cut without a trace; an end marker shows that as well.
        let kept = part.len().min(1);
        assert!(
            part.iter().take(kept).eq(whole.iter().take(kept)) || part.len() == 1,
            "{cut}"
        );
    }
    let text = "id,type,amount,cur,at\na,charge,1,EUR,2026-03-09T09:00:00Z\nEND";
    for cut in 0..text.len() {
        assert!(
            read_with(&marked, &ReadRules::default(), &text[..cut]).is_err(),
            "{cut}"
        );
    }
    assert_eq!(read(&marked, text).0.len(), 1);
}

proptest::proptest! {
    #[test]
    fn any_bytes_end_in_rows_or_an_error(tail in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..80)) {
        let bytes = [CANONICAL.as_bytes(), &tail].concat();
        let _ = read_with(&canonical(), &ReadRules::default(), &bytes);
        let _ = read_with(&canonical(), &ReadRules { tolerate_bad_rows: 9, ..ReadRules::default() }, &bytes);
        let _ = read_with(&canonical(), &ReadRules::default(), &tail);
    }

    #[test]
    fn any_cells_end_in_rows_or_an_error(cells in proptest::collection::vec("[-+0-9a-zA-Z.,: \u{a0}'=\"\t€\u{2212}]{0,12}", 9)) {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(&cells).expect("written");
        let row = writer.into_inner().expect("bytes");
        let bytes = [CANONICAL.as_bytes(), &row].concat();
        let _ = read_with(&canonical(), &ReadRules::default(), &bytes);
        let signed = own("", "operation_id = \"synthetic\"\nidentity = [\"at\"]", "unit = \"major_signed_text\"\ncurrency_sign = \"€\"\ndecimal = \"auto\"", "");
        let bytes = [b"type,amount,cur,at,a,b,c,d,e\n", row.as_slice()].concat();
        let _ = read_with(&signed, &ReadRules { tolerate_bad_rows: 9, ..ReadRules::default() }, &bytes);
    }
}
