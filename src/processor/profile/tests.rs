use super::*;

const MINIMAL: &str = r#"
    [profile]
    name = "own"
    version = 1
    kind = "csv"
    [csv]
    delimiter = ","
    [records.default]
    operation_id = ["id"]
    occurred_at = { column = "at", format = "rfc3339" }
    [records.default.money]
    unit = "minor"
    amount = { column = "amount", currency = "currency" }
    [maps.kind]
    column = "kind"
    charge = { kind = "charge", status = "succeeded" }
"#;

fn refusal(toml_text: &str) -> Failure {
    Profile::parse("profile.toml", toml_text).expect_err("rejected")
}

#[test]
fn a_profile_has_the_defaults_of_the_format() {
    let profile = Profile::parse("profile.toml", MINIMAL).expect("a profile");
    assert_eq!(profile.full_name(), "own@1");
    assert_eq!(profile.layout.encoding, Encoding::Auto);
    assert_eq!(profile.layout.width, RowWidth::Exact);
    assert!(profile.layout.trim && profile.layout.strip_text_guard);
    assert_eq!(profile.kinds[0].otherwise, Otherwise::Invalid);
    assert_eq!(profile.checks, Checks::default());
    assert_eq!(
        (profile.spans.lag, profile.spans.lookback),
        (Span::ZERO, Span::hours(72))
    );
    assert!(profile.columns.iter().all(|column| column.is_required));
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_key_that_was_meant() {
    for (from, to, key, meant) in [
        (
            "delimiter = \",\"",
            "delimitr = \",\"",
            "delimitr",
            "delimiter",
        ),
        (
            "format = \"rfc3339\"",
            "fromat = \"rfc3339\"",
            "fromat",
            "format",
        ),
        (
            "column = \"amount\"",
            "colum = \"amount\"",
            "colum",
            "column",
        ),
        (
            "status = \"succeeded\"",
            "statsu = \"succeeded\"",
            "statsu",
            "status",
        ),
        ("unit = \"minor\"", "units = \"minor\"", "units", "unit"),
    ] {
        let text = MINIMAL.replace(from, to);
        let failure = refusal(&text);
        let line = text[..text.find(to).expect("there")].matches('\n').count() + 1;
        assert!(failure.what.contains(&format!("\"{key}\"")), "{failure}");
        assert!(
            failure.what.starts_with(&format!("profile.toml:{line}:")),
            "{failure}"
        );
        assert!(
            failure.what.contains(&format!("line {line}, column ")),
            "{failure}"
        );
        assert!(
            failure.remedy.contains(&format!("\"{meant}\"")),
            "{failure}"
        );
    }
}

#[test]
fn what_a_profile_cannot_do_yet_is_refused_with_its_key() {
    let here = "[csv]";
    for (from, to, key) in [
        (here, "[http]\nbase_url = \"x\"\n[csv]", "[http]"),
        (here, "[http.retry]\nmax = 1\n[csv]", "[http]"),
        (here, "[auth]\nkind = \"bearer\"\n[csv]", "[auth]"),
        (here, "[[request]]\nid = \"x\"\n[csv]", "[request]"),
        (here, "[[fanout]]\nid = \"x\"\n[csv]", "[fanout]"),
        (here, "[job]\nid = \"x\"\n[csv]", "[job]"),
        (here, "[probe]\nid = \"x\"\n[csv]", "[probe]"),
        (here, "[loop]\nid = \"x\"\n[csv]", "[loop]"),
        (here, "[graphql]\nid = \"x\"\n[csv]", "[graphql]"),
        (here, "[group]\nby = \"x\"\n[csv]", "[group]"),
        (
            "[maps.kind]",
            "[watermark]\nkind = \"date\"\n[maps.kind]",
            "watermark.kind = \"date\"",
        ),
        (
            "[maps.kind]",
            "[watermark]\nkind = \"id\"\n[maps.kind]",
            "watermark.kind = \"id\"",
        ),
        (
            "[maps.kind]",
            "[watermark]\nkind = \"file_set\"\n[maps.kind]",
            "\"file_set\"",
        ),
        (
            "[maps.kind]",
            "[[checks]]\nscope = \"file\"\nrule = \"net == 0\"\n[maps.kind]",
            "scope \"file\"",
        ),
    ] {
        let failure = refusal(&MINIMAL.replacen(from, to, 1));
        assert!(failure.what.contains(key), "{key}: {failure}");
        let says_so = ["not supported yet", "no place in a profile", "is not known"];
        assert!(
            says_so.iter().any(|words| failure.what.contains(words)),
            "{failure}"
        );
        assert!(
            !failure.why.is_empty() && !failure.remedy.is_empty(),
            "{failure}"
        );
    }
}

#[test]
fn what_could_never_be_met_is_refused() {
    for (line, want) in [
        ("quote = \"\\n\"", "csv.quote = \"\\n\""),
        ("quote = \"a\"", "csv.quote = \"a\""),
        ("quote = \",\"", "csv.quote = \",\""),
        ("end_marker = \" \"", "csv.end_marker"),
        ("end_marker = \"a\\nb\"", "csv.end_marker = \"a\\nb\""),
        (
            "header_match = { first_cell = \" \", within_lines = 9 }",
            "csv.header_match",
        ),
        (
            "header_match = { first_cell = \"id\", within_lines = 0 }",
            "csv.header_match",
        ),
        ("trailer = { first_cell = \"T\", rows = 0 }", "position 0"),
    ] {
        let failure = refusal(&MINIMAL.replacen("[csv]", &format!("[csv]\n{line}"), 1));
        assert!(failure.what.contains(want), "{want}: {failure}");
        assert!(
            !failure.why.is_empty() && !failure.remedy.is_empty(),
            "{failure}"
        );
    }
}

#[test]
fn what_is_missing_or_contradictory_is_refused_with_its_key() {
    for (from, to, want) in [
        ("name = \"own\"", "", "name"),
        ("kind = \"csv\"", "kind = \"api\"", "api"),
        ("kind = \"csv\"", "kind = \"xml\"", "xml"),
        (", format = \"rfc3339\"", "", "no format"),
        ("\"rfc3339\"", "\"%Y-%m-%d %H:%M:%S\"", "zone"),
        (
            "\"rfc3339\"",
            "[\"%Y-%m-%dT%H:%M:%S%z\", \"%Y-%m-%d\"]",
            "zone",
        ),
        ("\"rfc3339\"", "\"%Y-%Q\", zone = \"UTC\"", "%Q"),
        ("\"rfc3339\"", "\"%d/%m\", zone = \"UTC\"", "no whole date"),
        ("\"rfc3339\"", "\"%Y-%m-%d %Z\", zone = \"UTC\"", "%Z"),
        ("\"rfc3339\"", "\"%Y-%m-%d\", zone = \"Mars\"", "Mars"),
        ("unit = \"minor\"", "", "unit"),
        ("unit = \"minor\"", "unit = \"cents\"", "cents"),
        (
            "unit = \"minor\"",
            "unit = \"major\"\ndecimal = \",\"\ngroup = \",\"",
            "group",
        ),
        (
            "unit = \"minor\"",
            "unit = \"major\"\ndecimal = \"auto\"\ngroup = \",\"",
            "auto",
        ),
        (
            "unit = \"minor\"",
            "unit = \"minor\"\nexponents = \"visa\"",
            "visa",
        ),
        (", currency = \"currency\"", "", "currency"),
        (
            "currency = \"currency\"",
            "currency = \"const:EURO\"",
            "EURO",
        ),
        ("column = \"amount\", ", "", "column"),
        ("delimiter = \",\"", "delimiter = \"::\"", "delimiter"),
        ("delimiter = \",\"", "encoding = \"ebcdic\"", "ebcdic"),
        ("delimiter = \",\"", "row_width = \"any\"", "any"),
        (
            "delimiter = \",\"",
            "header = \"by_record_type\"",
            "belong together",
        ),
        ("delimiter = \",\"", "header = \"positional\"", "position"),
        (
            "delimiter = \",\"",
            "series = \"(\"",
            "no regular expression",
        ),
        (
            "[csv]",
            "[[header_sets]]\nname = \"\"\n[csv]",
            "no name of its own",
        ),
        ("[csv]", "[http]\nbase_url = \"x\"\n[csv]", "kind \"csv\""),
        (
            "operation_id = [\"id\"]",
            "operation_id = \"id\"",
            "operation_id",
        ),
        (
            "operation_id = [\"id\"]",
            "operation_id = []",
            "operation_id",
        ),
        (
            "[\"id\"]",
            "[\"id\"]\nreference = { column = \"r\", regex = \"[x\" }",
            "no regular expression",
        ),
        ("kind = \"charge\"", "kind = \"sale\"", "sale"),
        (
            "[\"id\"]",
            "[\"id\"]\nidentity = [\"id\"]",
            "no id is synthetic",
        ),
        (
            "[\"id\"]",
            "[\"id\"]\nreference = { columns = \"meta\" }",
            "no pattern",
        ),
        (
            "[\"id\"]",
            "[\"id\"]\naccount = \"context:account\"",
            "no section",
        ),
        (
            "[csv]",
            "[sections]\nCH = { role = \"header\" }\n[csv]\nheader = \"by_record_type\"",
            "one header and one body",
        ),
        (
            "[maps.kind]",
            "[idempotency]\ncarrier = \"k\"\nwindow = \"long\"\nevidence = \"e\"\nchecked_on = 2026-11-30\n[maps.kind]",
            "idempotency.window",
        ),
        (
            "[maps.kind]",
            "[[checks]]\nscope = \"file\"\nrule = \"balance == balance before + net\"\n[maps.kind]",
            "names no balance",
        ),
        (
            "[maps.kind]",
            "[[maps.kind]]\ncolumn = \"a\"\n\"*\" = \"error\"\nx = { kind = \"fee\" }\n[[maps.kind]]",
            "before its last map",
        ),
        ("status = \"succeeded\"", "status = \"paid\"", "paid"),
        ("status = \"succeeded\"", "ignore = \"nothing\"", "nothing"),
        ("[maps.kind]", "[maps.kind]\n\"*\" = \"skip\"", "skip"),
        ("[maps.kind]", "[maps.kind]\ncase = \"upper\"", "case"),
        ("column = \"kind\"", "", "column"),
        (
            "[maps.kind]",
            "[[checks]]\nscope = \"row\"\nrule = \"net > 0\"\n[maps.kind]",
            "net > 0",
        ),
        (
            "[maps.kind]",
            "[watermark]\nlag = \"1 day\"\n[maps.kind]",
            "1 day",
        ),
        (
            "[maps.kind]",
            "[watermark]\nkind = \"counter\"\n[maps.kind]",
            "not supported yet",
        ),
    ] {
        let text = MINIMAL.replace(from, to);
        assert_ne!(text, MINIMAL, "{from}");
        let failure = refusal(&text);
        let all = failure.to_string();
        assert!(all.contains(want), "{want}: {all}");
        assert!(failure.what.starts_with("profile.toml"), "{all}");
        assert!(
            !failure.remedy.is_empty() || !failure.why.is_empty(),
            "{all}"
        );
    }
}
