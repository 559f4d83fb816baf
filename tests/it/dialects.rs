//! The dialects in which exports come, one after the other: what is declared is read, what is damaged is refused with its
//! line, and nothing is guessed. Every file lies on a disk and is read as `run` reads it.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use paysweep::exit::Failure;
use paysweep::meter::Meter;
use paysweep::model::operation::Operation;
use paysweep::processor::ReadRules;
use paysweep::processor::profile::Profile;
use paysweep::source::feed::Feed;
use paysweep::source::files;
use tempfile::TempDir;

/// A profile of the columns id, type, amount, cur, at, ref; with further lines of `[csv]`, `[records.default]` and money.
fn profile(csv: &str, record: &str, money: &str) -> Profile {
    let at = if record.contains("occurred_at =") {
        ""
    } else {
        "occurred_at = { column = \"at\", format = \"rfc3339\" }"
    };
    let amount = if money.contains("amount =") {
        ""
    } else {
        "amount = { column = \"amount\", currency = \"cur\" }"
    };
    let text = format!(
        "[profile]\nname = \"own\"\nversion = 1\nkind = \"csv\"\n[csv]\n{csv}\n[records.default]\n\
         operation_id = [\"id\"]\n{at}\n{record}\n[records.default.money]\nunit = \"major\"\n{amount}\n{money}\n\
         [maps.kind]\ncolumn = \"type\"\nsale = {{ kind = \"charge\" }}\nrefund = {{ kind = \"refund\" }}\n"
    );
    Profile::parse("own.toml", &text).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
}

/// Reads files, given by name and content, in the order of their names.
fn read(profile: &Profile, contents: &[(&str, Vec<u8>)]) -> Result<Feed, Failure> {
    let folder = TempDir::new().expect("a folder");
    for (name, bytes) in contents {
        std::fs::write(folder.path().join(name), bytes).expect("written");
    }
    files::read(
        profile,
        &ReadRules::default(),
        folder.path(),
        &["*".to_owned()],
        &Meter::default(),
    )
}

fn read_one(profile: &Profile, bytes: impl Into<Vec<u8>>) -> Result<Feed, Failure> {
    read(profile, &[("a.csv", bytes.into())])
}

/// Id, kind and amount of every row, and that each can be used.
fn rows(feed: &Feed) -> Vec<String> {
    let told = |row: Operation<'_>| {
        assert_eq!(row.invalid, "", "{}", row.operation_id);
        format!(
            "{} {} {} {}",
            row.operation_id,
            row.kind.as_str(),
            row.amount_minor,
            row.currency
        )
    };
    feed.operations.iter().map(told).collect()
}

/// The file that most dialects are a form of: a sale of 1234.50 and a refund of 45.00.
const PLAIN: &str = "id,type,amount,cur,at,ref\n\
    t1,sale,1234.50,EUR,2026-03-09T09:00:00Z,Änne\n\
    t2,refund,-45.00,EUR,2026-03-09T10:00:00Z,\n";
const WANT: [&str; 2] = ["t1 charge 123450 EUR", "t2 refund -4500 EUR"];

fn utf16(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
    text.encode_utf16().flat_map(bytes).collect()
}

fn gz(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).expect("packed");
    encoder.finish().expect("packed")
}

/// A text of which each character is one byte.
fn latin1(text: &str) -> Vec<u8> {
    text.chars()
        .map(|letter| u8::try_from(u32::from(letter)).expect("Latin-1"))
        .collect()
}

#[test]
fn every_declared_form_of_a_file_gives_the_same_rows() {
    let marked = format!("\u{feff}{PLAIN}");
    let plain: Vec<u8> = PLAIN.into();
    let forms: &[(&str, &str, Vec<u8>)] = &[
        ("UTF-8", "", plain),
        ("UTF-8 with a mark", "", marked.clone().into()),
        (
            "UTF-16 LE with a mark",
            "",
            utf16(&marked, u16::to_le_bytes),
        ),
        (
            "UTF-16 BE with a mark",
            "",
            utf16(&marked, u16::to_be_bytes),
        ),
        (
            "UTF-16 LE declared",
            "encoding = \"utf-16le\"",
            utf16(PLAIN, u16::to_le_bytes),
        ),
        (
            "UTF-16 BE declared",
            "encoding = \"utf-16be\"",
            utf16(PLAIN, u16::to_be_bytes),
        ),
        (
            "windows-1252 declared",
            "encoding = \"windows-1252\"",
            latin1(PLAIN),
        ),
        (
            "latin-1 declared",
            "encoding = \"iso-8859-1\"",
            latin1(PLAIN),
        ),
        ("CR LF", "", PLAIN.replace('\n', "\r\n").into()),
        ("CR", "", PLAIN.replace('\n', "\r").into()),
        ("no last line end", "", PLAIN.trim_end().into()),
        (
            "semicolons",
            "delimiter = \";\"",
            PLAIN.replace(',', ";").into(),
        ),
        (
            "tabs",
            "delimiter = \"\\t\"",
            PLAIN.replace(',', "\t").into(),
        ),
        (
            "tabs found by the header",
            "delimiter = \"auto\"",
            PLAIN.replace(',', "\t").into(),
        ),
        (
            "quoted line ends and delimiters",
            "",
            PLAIN
                .replace("Änne", "\"Änne,\r\n\"\"the\"\"\nelder\"")
                .into(),
        ),
        (
            "a preamble",
            "header_match = { first_cell = \"id\", within_lines = 4 }",
            format!("Report \"of March\nAccount,1\n\n{PLAIN}").into(),
        ),
        (
            "a summary with its own header before the header",
            "header_match = { first_cell = \"id\", within_lines = 4 }",
            format!("count,total\n2,1189.50\n\n{PLAIN}").into(),
        ),
        (
            "a count behind the rows",
            "trailer = { first_cell = \"rows\", rows = 2 }",
            format!("{PLAIN}rows,2\n").into(),
        ),
        (
            "a total behind the rows",
            "control_rows = [{ column = \"type\", in = [\"total\"], sum_of = \"amount\" }]",
            format!("{PLAIN},total,1189.50,EUR,,\n").into(),
        ),
        (
            "a header with an empty column behind",
            "row_width = \"allow_trailing_empty\"",
            PLAIN.replace(",ref\n", ",ref,\n").into(),
        ),
        (
            "rows with empty columns behind",
            "row_width = \"allow_trailing_empty\"",
            PLAIN.replace("Z,\n", "Z,,, \n").into(),
        ),
        (
            "rows that leave out the last empty columns",
            "row_width = \"allow_short\"",
            PLAIN.replace("Z,\n", "Z\n").into(),
        ),
        (
            "a column of which nobody knows the name twice",
            "",
            PLAIN
                .replace(",ref\n", ",note,note\n")
                .replace(",Änne", ",,")
                .replace("Z,\n", "Z,,\n")
                .into(),
        ),
        (
            "blank lines",
            "",
            PLAIN
                .replace('\n', "\n\n , \n")
                .replacen(" , \n", "", 1)
                .replace(" , ", ",,,,,")
                .into(),
        ),
        ("packed", "", gz(PLAIN)),
        (
            "packed in two members",
            "",
            [gz(&PLAIN[..40]), gz(&PLAIN[40..])].concat(),
        ),
    ];
    for (form, csv, bytes) in forms {
        let feed = read_one(&profile(csv, "", ""), bytes.clone())
            .unwrap_or_else(|failure| panic!("{form}: {failure}"));
        assert_eq!(rows(&feed), WANT, "{form}");
    }
}

#[test]
fn the_umlaut_of_every_encoding_is_the_same_letter() {
    for (csv, bytes) in [
        ("", PLAIN.into()),
        ("encoding = \"windows-1252\"", latin1(PLAIN)),
        ("encoding = \"utf-16be\"", utf16(PLAIN, u16::to_be_bytes)),
    ] {
        let feed = read_one(&profile(csv, "reference = \"ref\"", ""), bytes).expect("read");
        assert_eq!(feed.operations.get(0).reference, "Änne", "{csv}");
    }
}

#[test]
fn an_undeclared_or_damaged_form_is_refused_and_says_so() {
    let whole = gz(PLAIN);
    let totals = "control_rows = [{ column = \"type\", in = [\"total\"], sum_of = \"amount\" }]";
    let trailer = "trailer = { first_cell = \"rows\", rows = 2 }";
    let forms: &[(&str, Vec<u8>, &str)] = &[
        ("", latin1(PLAIN), "the byte 0xC4 on line 2"),
        ("", utf16(PLAIN, u16::to_le_bytes), "is not utf-8"),
        (
            "",
            PLAIN.replace(',', ";").into(),
            "missing from the header",
        ),
        (
            "",
            format!("Report\n{PLAIN}").into(),
            "missing from the header",
        ),
        (
            "",
            PLAIN.replace("Z,\n", "Z,,\n").into(),
            "line 3 has 7 fields",
        ),
        (
            "",
            PLAIN.replace("Z,\n", "Z\n").into(),
            "line 3 has 5 fields",
        ),
        (
            "row_width = \"allow_trailing_empty\"",
            PLAIN.replace("Z,\n", "Z,,x\n").into(),
            "line 3 has 7 fields",
        ),
        (
            "row_width = \"allow_trailing_empty\"",
            PLAIN.replace("Z,\n", "Z\n").into(),
            "line 3 has 5 fields",
        ),
        (
            "",
            PLAIN.replace(",cur,", ",amount,").into(),
            "\"amount\" stands twice",
        ),
        (
            "",
            format!("{PLAIN}{PLAIN}").into(),
            "line 4 is the header once more",
        ),
        (totals, PLAIN.into(), "no totals row"),
        (
            totals,
            format!("{PLAIN},total,1189.51,EUR,,\n").into(),
            "\"1189.51\" is not the sum of the rows above, 1189.50",
        ),
        (
            trailer,
            format!("{PLAIN}rows,3\n").into(),
            "not the number of rows above, 2",
        ),
        (
            trailer,
            PLAIN.into(),
            "the last line, which begins with \"rows\"",
        ),
        ("", whole[..whole.len() - 1].to_vec(), "cut off"),
        ("", whole[..whole.len() / 2].to_vec(), "cut off"),
        (
            "",
            b"PK\x03\x04\x14\x00".to_vec(),
            "zip archive or a spreadsheet",
        ),
    ];
    for (csv, bytes, want) in forms {
        let failure = read_one(&profile(csv, "", ""), bytes.clone()).expect_err(want);
        assert_eq!(failure.exit.code(), 2, "{failure}");
        assert!(failure.what.contains(want), "{want}: {failure}");
        assert!(!failure.remedy.is_empty(), "{failure}");
    }
}

#[test]
fn an_amount_that_is_not_read_says_what_it_looks_like() {
    for (cell, want) in [
        ("45.00-", "minus = [\"trailing\"]"),
        ("(45.00)", "minus = [\"brackets\"]"),
        ("45.00 €", "sign of the currency"),
        ("EUR 45.00", "sign of the currency"),
        ("4.50E+1", "without spreadsheet formatting"),
    ] {
        let file = PLAIN.replace("-45.00", cell);
        let failure = read_one(&profile("", "", ""), file).expect_err(cell);
        assert!(failure.remedy.contains(want), "{cell}: {failure}");
    }
}

#[test]
fn quoted_fields_with_another_separator_say_which_one_it_seems_to_be() {
    let quoted = "\"id\";\"type\";\"amount\";\"cur\";\"at\";\"ref\"\n";
    for (from, to, want) in [
        (";", ";", "\";\""),
        (";", "\t", "\"\\t\""),
        (";", "|", "\"|\""),
    ] {
        let failure = read_one(&profile("", "", ""), quoted.replace(from, to)).expect_err(want);
        let want = format!("separated by {want}: set delimiter");
        assert!(failure.remedy.contains(&want), "{want}: {failure}");
    }
}

#[test]
fn amounts_are_read_as_their_dialect_is_declared_and_refused_where_it_is_not() {
    let dialects = [
        ("", "1234.50"),
        ("group = \",\"", "\"1,234.50\""),
        ("decimal = \",\"", "\"1234,50\""),
        ("decimal = \",\"\ngroup = \".\"", "\"1.234,50\""),
        ("decimal = \",\"\ngroup = \" \"", "\"1 234,50\""),
        ("decimal = \",\"\ngroup = \"NBSP\"", "\"1\u{a0}234,50\""),
        (
            "decimal = \",\"\ngroup = \"\\u202f\"",
            "\"1\u{202f}234,50\"",
        ),
        ("group = \"'\"", "1'234.50"),
        ("group = \"’\"", "1’234.50"),
        ("", "'1234.50"),
        ("", "\"=\"\"1234.50\"\"\""),
        ("currency_sign = \"€\"", "€1234.50"),
        ("currency_sign = \"€\"", "1234.50 €"),
        ("currency_sign = \"€\"", "+€1234.50"),
        ("currency_sign = \"EUR\"", "EUR 1234.50"),
        ("decimal = \"auto\"", "\"1.234,50\""),
        ("minus = [\"trailing\"]", "1234.50+"),
    ];
    let file = |cell: &str| PLAIN.replace("1234.50", cell).replace("-45.00", "-7");
    for (money, cell) in dialects {
        let feed = read_one(&profile("", "", money), file(cell))
            .unwrap_or_else(|failure| panic!("{money} {cell}: {failure}"));
        assert_eq!(rows(&feed)[0], WANT[0], "{money} {cell}");
        if money.starts_with("decimal = \",\"")
            || money.starts_with("group")
            || money.starts_with("curr")
            || money.starts_with("minus")
        {
            let failure = read_one(&profile("", "", ""), file(cell)).expect_err(cell);
            assert!(
                failure.what.contains("cannot be read as an amount"),
                "{failure}"
            );
        }
    }
    for (money, cell) in [
        ("", "-45.00"),
        ("", "\u{2212}45.00"),
        ("", "'-45.00"),
        ("minus = [\"brackets\"]", "(45.00)"),
        ("minus = [\"trailing\"]", "45.00-"),
        ("currency_sign = \"$\"", "-$45.00"),
        (
            "currency_sign = \"$\"\nminus = [\"brackets\", \"trailing\"]",
            "($45.00)",
        ),
        (
            "currency_sign = \"$\"\nminus = [\"brackets\", \"trailing\"]",
            "$45.00-",
        ),
    ] {
        let file = PLAIN.replace("-45.00", cell);
        let feed = read_one(&profile("", "", money), file.clone())
            .unwrap_or_else(|failure| panic!("{money} {cell}: {failure}"));
        assert_eq!(rows(&feed)[1], WANT[1], "{money} {cell}");
        if !money.is_empty() {
            assert!(read_one(&profile("", "", ""), file).is_err(), "{cell}");
        }
    }
}

#[test]
fn ids_stay_text_and_a_damaged_one_is_refused_never_rounded() {
    let rule = profile("", "reference = \"ref\"", "");
    for (cell, want) in [
        ("\"=\"\"001\"\"\"", "001"),
        ("'0012", "0012"),
        ("0007", "0007"),
        ("1234567890123456789", "1234567890123456789"),
        ("12E5", "12E5"),
    ] {
        let feed = read_one(&rule, PLAIN.replace("t1", cell).replace("Änne", cell)).expect(cell);
        let row = feed.operations.get(0);
        assert_eq!((row.operation_id, row.reference), (want, want));
    }
    for cell in [
        "1.23E+22",
        "\"1,23E+22\"",
        "1.2302025304E+022",
        "\"=\"\"1.23E+22\"\"\"",
    ] {
        for file in [PLAIN.replace("t1", cell), PLAIN.replace("Änne", cell)] {
            let failure = read_one(&rule, file).expect_err(cell);
            assert!(
                failure.what.contains("line 2") && failure.what.contains("exponent"),
                "{failure}"
            );
            assert!(failure.remedy.contains("spreadsheet"), "{failure}");
        }
    }
}

#[test]
fn dates_are_read_in_the_declared_order_and_zone() {
    let at = |rule: &str| format!("occurred_at = {{ column = \"at\", {rule} }}");
    let file = |time: &str| {
        PLAIN
            .replace("2026-03-09T09:00:00Z", time)
            .replace("2026-03-09T10:00:00Z", time)
    };
    for (rule, time, want) in [
        (
            "format = \"%d/%m/%Y %H:%M\", zone = \"UTC\"",
            "03/04/2026 09:00",
            "2026-04-03T09:00:00Z",
        ),
        (
            "format = \"%m/%d/%Y %H:%M\", zone = \"UTC\"",
            "03/04/2026 09:00",
            "2026-03-04T09:00:00Z",
        ),
        (
            "format = \"%d.%m.%Y\", zone = \"Europe/Berlin\"",
            "09.03.2026",
            "2026-03-08T23:00:00Z",
        ),
        (
            "format = \"%m/%d/%y %I:%M %p\", zone = \"America/New_York\"",
            "03/09/26 05:00 PM",
            "2026-03-09T21:00:00Z",
        ),
        (
            "format = [\"%Y-%m-%d %H:%M:%S\", \"%Y-%m-%d\"], zone = \"UTC\"",
            "2026-03-09",
            "2026-03-09T00:00:00Z",
        ),
        (
            "format = \"%Y-%m-%dT%H:%M:%S %z\"",
            "2026-03-09T09:00:00 -0700",
            "2026-03-09T16:00:00Z",
        ),
    ] {
        let feed = read_one(&profile("", &at(rule), ""), file(time))
            .unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(
            feed.operations.get(0).occurred_at.to_string(),
            want,
            "{rule}"
        );
    }
    for (rule, time, want) in [
        (
            "format = \"%d/%m/%Y\", zone = \"UTC\"",
            "03/31/2026",
            "cannot be read as a time",
        ),
        (
            "format = \"%m/%d/%Y\", zone = \"UTC\"",
            "31/03/2026",
            "cannot be read as a time",
        ),
    ] {
        let failure = read_one(&profile("", &at(rule), ""), file(time)).expect_err(time);
        assert!(failure.what.contains(want), "{failure}");
    }
    // The zone in a column of its own: an abbreviation means what the profile says, an IANA name likewise.
    let zoned = profile(
        "",
        &at("format = \"%Y-%m-%d %H:%M:%S\", zone_column = \"ref\""),
        "[zones]\nPST = \"-08:00\"\nPDT = \"-07:00\"\n\"Europe/Paris\" = \"Europe/Paris\"",
    );
    for (zone, want) in [
        ("PST", Some("2026-03-09T17:00:00Z")),
        ("PDT", Some("2026-03-09T16:00:00Z")),
        ("Europe/Paris", Some("2026-03-09T08:00:00Z")),
        ("CET", None),
    ] {
        let text = file("2026-03-09 09:00:00")
            .replace("00,Änne", &format!("00,{zone}"))
            .replace("00,\n", "00,PST\n");
        match (read_one(&zoned, text), want) {
            (Ok(feed), Some(want)) => assert_eq!(
                feed.operations.get(0).occurred_at.to_string(),
                want,
                "{zone}"
            ),
            (Err(failure), None) => assert!(
                failure.what.contains("is no zone that the profile knows"),
                "{failure}"
            ),
            (read, _) => panic!("{zone}: {:?}", read.map(|feed| rows(&feed))),
        }
    }
}

#[test]
fn a_file_that_gives_one_date_in_two_ways_is_refused() {
    let both = profile(
        "",
        "occurred_at = { column = \"at\", format = [\"%d/%m/%Y\", \"%m/%d/%Y\"], zone = \"UTC\" }",
        "",
    );
    let file = |time: &str| {
        PLAIN
            .replace("2026-03-09T09:00:00Z", time)
            .replace("2026-03-09T10:00:00Z", "03/04/2026")
    };
    let failure = read_one(&both, file("05/06/2026")).expect_err("refused");
    assert!(
        failure.what.contains("can be read as two days"),
        "{failure}"
    );
    let feed = read_one(&both, file("31/03/2026")).expect("a day above 12 proves it");
    let at = feed.operations.get(1).occurred_at.to_string();
    assert_eq!(at, "2026-04-03T00:00:00Z");
}

#[test]
fn the_same_file_packed_or_renamed_is_one_file_and_an_overlapping_one_does_no_harm() {
    let plain = profile("", "", "");
    let later = PLAIN.replace("t1,sale,1234.50", "t3,sale,9.00");
    let same = [
        ("a.csv", PLAIN.into()),
        ("a.csv.gz", gz(PLAIN)),
        ("copy.csv", PLAIN.into()),
    ];
    let feed = read(&plain, &same).expect("read");
    assert_eq!(
        (feed.files.len(), rows(&feed).as_slice()),
        (1, WANT.map(str::to_owned).as_slice())
    );
    let alone = read(&plain, &[("b.csv.gz", gz(PLAIN))]).expect("read");
    assert_eq!(alone.hash, feed.hash);
    let feed = read(&plain, &[("a.csv", PLAIN.into()), ("b.csv", later.into())]).expect("read");
    assert_eq!(feed.files.len(), 2);
    assert_eq!(
        rows(&feed).len(),
        4,
        "rows are told apart by their ids, later"
    );
}
