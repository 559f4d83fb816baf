//! What the fuzzer feeds with bytes, and what has to hold whatever they are. The ordinary tests replay the corpus through
//! the same functions.

use std::sync::LazyLock;

use paysweep::meter::Meter;
use paysweep::model::operation::Operations;
use paysweep::money::{Currency, NumberFormat};
use paysweep::processor::csv::decode;
use paysweep::processor::infer::infer as propose;
use paysweep::processor::profile::Profile;
use paysweep::processor::{ReadRules, built_in, built_in_names};
use paysweep::time::{self, Instant, Span, Zone};

/// What an input is given to.
pub(crate) type Target = fn(&[u8]);

/// The targets, by the names of their folders in the corpus.
pub(crate) const TARGETS: &[(&str, Target)] = &[
    ("csv", csv),
    ("infer", infer),
    ("moment", moment),
    ("money", money),
    ("profile", profile),
];

/// The built-in profiles, read once.
static PROFILES: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let parse = |name| Profile::parse(name, built_in(name).unwrap_or_default());
    built_in_names()
        .map(|name| parse(name).expect("built in"))
        .collect()
});

/// Any bytes as a file, by every built-in profile: rows or an error, the same each time, and no row that is not counted.
pub(crate) fn csv(bytes: &[u8]) {
    for profile in PROFILES.iter() {
        for tolerate_bad_rows in [0, 1_000_000] {
            let rules = ReadRules {
                tolerate_bad_rows,
                zone: Some(Zone::utc()),
                currency: Currency::parse("EUR"),
                ..ReadRules::default()
            };
            let read = || {
                let mut operations = Operations::default();
                let facts = decode(
                    profile,
                    &rules,
                    "a.csv",
                    0,
                    bytes,
                    &mut operations,
                    &Meter::default(),
                );
                (facts.map_err(|failure| failure.to_string()), operations)
            };
            let (facts, operations) = read();
            if let Ok(facts) = &facts {
                assert_eq!(facts.rows, operations.len() as u64);
                let invalid = operations.iter().filter(|row| !row.invalid.is_empty());
                assert_eq!(facts.invalid, invalid.count() as u64);
                assert!(
                    operations
                        .iter()
                        .all(|row| !row.operation_id.trim().is_empty())
                );
            }
            let (again, _) = read();
            assert_eq!(facts, again);
        }
    }
}

/// Any bytes as an amount: a number is written in digits, signs and the declared marks only, and its minor units are
/// exact.
pub(crate) fn money(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    for (decimal, group) in [
        ('.', None),
        (',', Some('.')),
        ('.', Some('\'')),
        (',', Some('\u{a0}')),
    ] {
        let Some(number) = (NumberFormat { decimal, group }).parse(text) else {
            continue;
        };
        let digits: String = text.chars().filter(char::is_ascii_digit).collect();
        let others = text.chars().filter(|letter| !letter.is_ascii_digit());
        for letter in others {
            let is_known = letter == decimal
                || Some(letter) == group
                || matches!(letter, '+' | '-' | '\u{2212}');
            assert!(is_known, "{letter:?} in {text:?}");
        }
        assert_eq!(
            digits.parse::<i128>().ok(),
            Some(number.mantissa.abs()),
            "{text:?}"
        );
        for exponent in [0, 2, 3] {
            if let Ok(minor) = number.to_minor(exponent) {
                // minor × 10^scale = mantissa × 10^exponent
                let left = 10_i128
                    .checked_pow(number.scale)
                    .and_then(|power| power.checked_mul(i128::from(minor)));
                let right = number
                    .mantissa
                    .checked_mul(10_i128.pow(u32::from(exponent)));
                assert_eq!(left, right, "{text:?} {exponent}");
            }
        }
    }
    // The same bytes as the cell of a file in which everything that may stand around a number is declared.
    let profile = Profile::parse(
        "own",
        "[profile]\nname = \"own\"\nversion = 1\nkind = \"csv\"\n[csv]\nheader = \"positional\"\nquote = \"\"\n\
         delimiter = \"|\"\n[records.default]\noperation_id = \"synthetic\"\nidentity = [1]\n\
         occurred_at = { column = 2, format = \"%s\" }\n[records.default.money]\nunit = \"major_signed_text\"\n\
         minus = [\"brackets\", \"trailing\"]\ncurrency_sign = \"€\"\ndecimal = \",\"\ngroup = \".\"\n\
         amount = { column = 1, currency = \"const:EUR\" }\n[maps.kind]\ncolumn = 3\ns = { kind = \"charge\" }\n",
    )
    .expect("a profile");
    let mut operations = Operations::default();
    let file = format!("{text}|1773046800|s\n");
    let _ = decode(
        &profile,
        &ReadRules::default(),
        "a.csv",
        0,
        file.as_bytes(),
        &mut operations,
        &Meter::default(),
    );
    let _ = Currency::parse(text);
}

/// Years outside 0 to 9999, where an offset leads there, are not written as they are read.
const WRITTEN: std::ops::Range<i64> = -62_167_219_200_000_000..253_402_300_800_000_000;

/// Any bytes as a time, a length of time, a zone: what is read and written is read as the same again.
pub(crate) fn moment(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(at) = Instant::parse(text).filter(|at| WRITTEN.contains(&at.0)) {
        assert_eq!(Instant::parse(&at.to_string()), Some(at), "{text:?}");
    }
    if let Some(span) = Span::parse(text) {
        assert_eq!(Span::parse(&span.to_string()), Some(span), "{text:?}");
    }
    let now = Instant(1_773_046_800_000_000);
    let paris = Zone::parse("Europe/Paris").expect("a zone");
    let zones = [Some(Zone::utc()), Some(paris), Zone::parse(text)];
    for zone in zones.iter().flatten() {
        let _ = time::parse_point(text, zone, now);
        let _ = time::since(text, zone, now);
        if let Some((from, to)) =
            time::parse_day(text, zone, now).and_then(|day| time::day_range(day, zone))
        {
            assert!(from < to, "{text:?}");
        }
        if let Some((from, to)) = time::month_range(text, zone) {
            assert!(from < to, "{text:?}");
        }
    }
    // First line: the format, the rest: what is read by it.
    let (format, written) = text
        .split_once('\n')
        .unwrap_or((text, "2026-03-09 10:00:00"));
    let quoted = quoted_for_toml(format);
    let profile = Profile::parse(
        "own",
        &format!(
            "[profile]\nname = \"own\"\nversion = 1\nkind = \"csv\"\n[csv]\nheader = \"positional\"\nquote = \"\"\n\
             delimiter = \"|\"\n[records.default]\noperation_id = \"synthetic\"\nidentity = [1]\n\
             occurred_at = {{ column = 1, format = [{quoted}, \"rfc3339\"], zone = \"Europe/Paris\" }}\n\
             [records.default.money]\nunit = \"minor\"\namount = {{ column = 2, currency = \"const:EUR\" }}\n\
             [maps.kind]\ncolumn = 3\ns = {{ kind = \"charge\" }}\n"
        ),
    );
    if let Ok(profile) = profile {
        let mut operations = Operations::default();
        let file = format!("{written}|1|s\n");
        let _ = decode(
            &profile,
            &ReadRules::default(),
            "a.csv",
            0,
            file.as_bytes(),
            &mut operations,
            &Meter::default(),
        );
    }
}

/// Any bytes as a profile: one that is accepted reads a file without a panic.
pub(crate) fn profile(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Ok(profile) = Profile::parse("own.toml", text) {
        let file = "id,type,amount,currency,at\nt1,sale,1.00,EUR,2026-03-09T09:00:00Z\n";
        let mut operations = Operations::default();
        let _ = decode(
            &profile,
            &ReadRules::default(),
            "a.csv",
            0,
            file.as_bytes(),
            &mut operations,
            &Meter::default(),
        );
    }
}

/// Any bytes as an unknown file: a proposal without a question is a profile, one with a question is refused.
pub(crate) fn infer(bytes: &[u8]) {
    let Ok(proposal) = propose("a.csv", "own", bytes) else {
        return;
    };
    let profile = Profile::parse("own.toml", &proposal.toml);
    if proposal.questions.is_empty() {
        let profile = profile.unwrap_or_else(|failure| panic!("{failure}\n{}", proposal.toml));
        let mut operations = Operations::default();
        let _ = decode(
            &profile,
            &ReadRules::default(),
            "a.csv",
            0,
            bytes,
            &mut operations,
            &Meter::default(),
        );
    } else {
        let failure = profile.expect_err("a question is open");
        assert!(
            failure.what.contains("open question"),
            "{failure}\n{}",
            proposal.toml
        );
    }
}

/// A text as TOML writes it on one line.
fn quoted_for_toml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if letter.is_control() => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)))
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
