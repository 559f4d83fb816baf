//! Files that are cut off, damaged or malicious: what is read is whole, or it is refused.

use std::fmt::Write as _;

use paysweep::exit::Failure;
use paysweep::intents::amount::IntentsRules;
use paysweep::intents::csv as intents;
use paysweep::meter::Meter;
use paysweep::model::operation::Operations;
use paysweep::money::{Number, NumberFormat};
use paysweep::processor::csv::{FileFacts, decode};
use paysweep::processor::encoding::{self, Encoding};
use paysweep::processor::profile::Profile;
use paysweep::processor::table::trim;
use paysweep::processor::{ReadRules, built_in};
use paysweep::time::{Instant, Span};

use super::scene::{Scene, on_both};

const HEAD: &str =
    "operation_id,kind,status,amount_minor,fee_minor,net_minor,currency,occurred_at,reference\n";
const INTENTS_HEAD: &str = "intent_id,kind,amount_minor,currency,status,created_at,reference\n";

/// The canonical profile, with further lines under `[csv]`.
fn canonical(csv: &str) -> Profile {
    let text = built_in("canonical").expect("built in");
    let text = text.replace("[csv]\n", &format!("[csv]\n{csv}\n"));
    Profile::parse("canonical", &text).unwrap_or_else(|failure| panic!("{failure}"))
}

fn read(profile: &Profile, rules: &ReadRules, bytes: &[u8]) -> Result<FileFacts, Failure> {
    let mut operations = Operations::default();
    let facts = decode(
        profile,
        rules,
        "a.csv",
        0,
        bytes,
        &mut operations,
        &Meter::default(),
    )?;
    assert_eq!(facts.rows, operations.len() as u64);
    Ok(facts)
}

/// A canonical file; every third row has quotes, and some of them hold delimiters, quotes and line ends.
fn operations(rows: usize) -> String {
    let mut text = HEAD.to_owned();
    for at in 0..rows {
        let reference = match at % 6 {
            0 => format!("\"ORD {at}\""),
            3 => format!("\"a \"\"{at}\"\",\r\nb\""),
            _ => format!("ORD-{at:05}"),
        };
        let _ = writeln!(
            text,
            "ch_{at},charge,succeeded,1000,30,970,EUR,2026-03-09T09:00:00Z,{reference}"
        );
    }
    text
}

#[test]
fn a_file_that_says_where_it_ends_is_never_taken_for_whole_when_it_is_cut() {
    let profile = canonical("end_marker = \"--- END ---\"");
    let text = operations(50) + "--- END ---\n";
    for cut in 0..text.len() - 1 {
        for tolerate_bad_rows in [0, 100] {
            let rules = ReadRules {
                tolerate_bad_rows,
                ..ReadRules::default()
            };
            let facts = read(&profile, &rules, &text.as_bytes()[..cut]);
            assert!(facts.is_err(), "cut at byte {cut}: {facts:?}");
        }
    }
    // The line end of the marker itself may be missing.
    for whole in [&text[..], &text[..text.len() - 1]] {
        let facts = read(&profile, &ReadRules::default(), whole.as_bytes()).expect("whole");
        assert_eq!((facts.rows, facts.is_verified), (50, true));
    }
}

#[test]
fn a_file_whose_rows_are_counted_is_never_taken_for_whole_when_it_is_cut() {
    let profile = canonical("expect_rows = 50");
    let text = operations(50);
    for cut in 0..text.len() {
        if let Ok(facts) = read(&profile, &ReadRules::default(), &text.as_bytes()[..cut]) {
            // Only the last cell of the last row may be shorter, and then nothing is proved.
            assert_eq!((facts.rows, facts.is_verified), (50, false), "byte {cut}");
        }
    }
    let facts = read(&profile, &ReadRules::default(), text.as_bytes()).expect("whole");
    assert_eq!((facts.rows, facts.is_verified), (50, true));
}

#[test]
fn a_totals_row_proves_nothing_about_rows_behind_it() {
    let profile = canonical(
        "control_rows = [{ column = \"kind\", in = [\"Total\"], sum_of = \"amount_minor\" }]",
    );
    let total = ",Total,,2000,,,EUR,,\n";
    let more = "ch_x,charge,succeeded,5,,,EUR,2026-03-09T09:00:00Z,\n";
    for (rows, is_verified) in [("", true), (more, false)] {
        let text = operations(2) + total + rows;
        let facts = read(&profile, &ReadRules::default(), text.as_bytes()).expect("read");
        assert_eq!(facts.is_verified, is_verified);
    }
}

/// A generator of numbers that gives the same ones each time.
struct Dice(u64);

impl Dice {
    /// A number below a limit.
    fn below(&mut self, limit: usize) -> usize {
        // Knuth's constants; the low bits are the weak ones.
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % limit
    }
}

/// One to three bytes changed, put in or taken out; the signs that mean something come up often.
fn damaged(text: &str, dice: &mut Dice) -> Vec<u8> {
    const SIGNS: &[u8] = b"\",\n\r\t;'=+-.E09 \xc3\xa9\xff\0";
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=dice.below(3) {
        let at = dice.below(bytes.len());
        let byte = match dice.below(4) {
            0 => u8::try_from(dice.below(256)).expect("a byte"),
            1 => bytes[at] ^ (1 << dice.below(8)),
            _ => SIGNS[dice.below(SIGNS.len())],
        };
        match dice.below(3) {
            0 => bytes[at] = byte,
            1 => bytes.insert(at, byte),
            _ => {
                bytes.remove(at);
            }
        }
    }
    bytes
}

/// The records that are not blank, as the lenient reader of the `csv` crate counts them; the header is one of them.
fn records(bytes: &[u8]) -> u64 {
    let text = encoding::decode(Encoding::Auto, "a.csv", bytes).expect("text");
    let records = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .from_reader(text.as_bytes())
        .into_records();
    let is_filled = |record: &csv::StringRecord| record.iter().any(|cell| !trim(cell).is_empty());
    let filled = records.filter(|record| is_filled(record.as_ref().expect("text")));
    filled.count() as u64
}

#[test]
fn a_damaged_file_never_loses_or_gains_a_row_unnoticed() {
    let profile = canonical("");
    let text = operations(7);
    let tolerant = ReadRules {
        tolerate_bad_rows: 9,
        ..ReadRules::default()
    };
    let mut dice = Dice(20_260_309);
    let mut accepted = 0;
    for round in 0..20_000 {
        let bytes = damaged(&text, &mut dice);
        for rules in [&ReadRules::default(), &tolerant] {
            if let Ok(facts) = read(&profile, rules, &bytes) {
                accepted += 1;
                let shown = String::from_utf8_lossy(&bytes);
                assert_eq!(facts.rows + 1, records(&bytes), "round {round}: {shown}");
            }
        }
    }
    assert!(accepted > 5_000, "{accepted}");
}

#[test]
fn a_damaged_file_of_intents_never_loses_or_gains_a_row_unnoticed() {
    let mut text = INTENTS_HEAD.to_owned();
    for at in 0..7 {
        let _ = writeln!(
            text,
            "ORD-{at},charge,1000,EUR,succeeded,2026-03-09T09:00:00Z,\"r {at}\""
        );
    }
    let mut dice = Dice(20_260_310);
    let mut accepted = 0;
    for round in 0..20_000 {
        let bytes = damaged(&text, &mut dice);
        if let Ok(read) =
            intents::decode(&IntentsRules::default(), "i.csv", &bytes, &Meter::default())
        {
            accepted += 1;
            let shown = String::from_utf8_lossy(&bytes);
            let rows = read.len() as u64;
            assert_eq!(rows + 1, records(&bytes), "round {round}: {shown}");
        }
    }
    assert!(accepted > 1_000, "{accepted}");
}

/// A state of the grammar of amounts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum At {
    Start,
    Sign,
    /// So many digits before any sign; 4 = four or more.
    Whole(u8),
    /// So many digits of a group behind a grouping sign.
    Group(u8),
    Point,
    Fraction,
    Nowhere,
}

/// The number that a text stands for, by the table of the grammar:
/// `[+-]? ( digits | digit{1,3} ( group digit{3} )+ ) ( decimal digits )?`.
fn by_the_grammar(text: &str, decimal: char, group: Option<char>) -> Option<Number> {
    let mut at = At::Start;
    let (mut digits, mut scale) = (String::new(), 0);
    for character in text.chars() {
        let is_digit = character.is_ascii_digit();
        at = match at {
            At::Start if matches!(character, '+' | '-') => At::Sign,
            At::Start | At::Sign if is_digit => At::Whole(1),
            At::Whole(count) if is_digit => At::Whole((count + 1).min(4)),
            At::Whole(1..=3) | At::Group(3) if Some(character) == group => At::Group(0),
            At::Group(count @ 0..=2) if is_digit => At::Group(count + 1),
            At::Whole(_) | At::Group(3) if character == decimal => At::Point,
            At::Point | At::Fraction if is_digit => At::Fraction,
            _ => At::Nowhere,
        };
        if is_digit {
            digits.push(character);
            scale += u32::from(at == At::Fraction);
        }
    }
    if !matches!(at, At::Whole(_) | At::Group(3) | At::Fraction) {
        return None;
    }
    let value: i128 = digits.parse().ok()?;
    Some(Number {
        mantissa: if text.starts_with('-') { -value } else { value },
        scale,
    })
}

#[test]
fn an_amount_is_what_the_grammar_says_and_nothing_else() {
    const ALPHABET: [char; 13] = [
        '0', '1', '9', '.', ',', '-', '+', '\'', ' ', 'E', '(', ')', '€',
    ];
    let comma = NumberFormat {
        decimal: ',',
        group: Some('.'),
    };
    let apostrophe = NumberFormat {
        decimal: '.',
        group: Some('\''),
    };
    let mut texts = vec![String::new()];
    let (mut from, mut numbers) = (0, 0);
    for _ in 0..=5 {
        let until = texts.len();
        for at in from..until {
            for format in [NumberFormat::PLAIN, comma, apostrophe] {
                let want = by_the_grammar(&texts[at], format.decimal, format.group);
                assert_eq!(format.parse(&texts[at]), want, "{:?} {format:?}", texts[at]);
                numbers += u32::from(want.is_some());
            }
            if texts[at].chars().count() < 5 {
                let longer = ALPHABET.map(|character| format!("{}{character}", texts[at]));
                texts.extend(longer);
            }
        }
        from = until;
    }
    assert_eq!(texts.len(), 402_234, "all texts of up to five signs");
    assert!(numbers > 3_000, "{numbers}");
}

#[test]
fn a_length_of_time_is_digits_and_one_unit_and_nothing_else() {
    const ALPHABET: [char; 13] = [
        '0', '1', '9', 's', 'm', 'h', 'd', 'w', ' ', '-', '+', '.', 'é',
    ];
    let by_the_grammar = |text: &str| {
        let unit = text.chars().last()?;
        let digits = text.strip_suffix(unit)?;
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 86_400,
            'w' => 604_800,
            _ => return None,
        };
        Some(Span(digits.parse::<i64>().ok()? * seconds * 1_000_000))
    };
    let mut texts = vec![String::new()];
    let mut from = 0;
    for length in 0..=4 {
        let until = texts.len();
        for at in from..until {
            assert_eq!(
                Span::parse(&texts[at]),
                by_the_grammar(&texts[at]),
                "{:?}",
                texts[at]
            );
            if length < 4 {
                let longer = ALPHABET.map(|letter| format!("{}{letter}", texts[at]));
                texts.extend(longer);
            }
        }
        from = until;
    }
    assert_eq!(texts.len(), 30_941, "all texts of up to four signs");
}

#[test]
fn a_time_is_one_of_calendar_and_clock_and_nothing_else() {
    let days_of = |year: u32, month: u32| match month {
        2 if year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400)) => {
            29
        }
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        1..=12 => 31,
        _ => 0,
    };
    for year in [1900, 2000, 2023, 2024, 2100] {
        for month in 0..100 {
            for day in 0..100 {
                let text = format!("{year}-{month:02}-{day:02}T10:00:00Z");
                let is_day = (1..=days_of(year, month)).contains(&day);
                assert_eq!(Instant::parse(&text).is_some(), is_day, "{text}");
            }
        }
    }
    for tens in 0..100 {
        for ones in 0..100 {
            let clock = format!("2026-03-09T{tens:02}:{ones:02}:00Z");
            assert_eq!(
                Instant::parse(&clock).is_some(),
                tens < 24 && ones < 60,
                "{clock}"
            );
            let offset = format!("2026-03-09T10:00:00-{tens:02}:{ones:02}");
            assert_eq!(
                Instant::parse(&offset).is_some(),
                tens < 24 && ones < 60,
                "{offset}"
            );
        }
    }
    // One sign in another's place: a digit stays a digit, and a separator one that RFC 3339 allows.
    let text = "2026-03-09T10:00:00Z";
    for (at, old) in text.char_indices() {
        for new in " 0123456789+-.,:;/TtZz_E\u{a0}\u{0661}".chars() {
            let mut changed = text.to_owned();
            changed.replace_range(at..=at, &new.to_string());
            let fits = match old {
                'T' => matches!(new, 'T' | 't' | ' '),
                'Z' => matches!(new, 'Z' | 'z'),
                old if old.is_ascii_digit() => new.is_ascii_digit(),
                old => new == old,
            };
            assert!(fits || Instant::parse(&changed).is_none(), "{changed}");
        }
    }
}

#[test]
fn a_cell_of_money_is_read_by_the_same_grammar() {
    // Longer groups than the exhaustive test reaches, through a whole file.
    for (text, is_amount) in [
        ("1000", true),
        ("+1000", true),
        ("\u{2212}1000", true),
        ("1E+05", false),
        ("4.11E+15", false),
        ("(12)", false),
        ("12-", false),
        ("- 12", false),
        ("1 000", false),
        ("1\u{a0}000", false),
        ("1'000", false),
        ("\"1,000\"", false),
        ("€10", false),
        ("0x10", false),
        ("١٢", false),
        ("NaN", false),
        ("1_000", false),
    ] {
        let row = format!("a,charge,succeeded,{text},,,EUR,2026-03-09T09:00:00Z,\n");
        let read = read(
            &canonical(""),
            &ReadRules::default(),
            (HEAD.to_owned() + &row).as_bytes(),
        );
        assert_eq!(read.is_ok(), is_amount, "{text}: {read:?}");
    }
}

/// What an index of one engine could not hold, no engine takes: both answer alike, and what is allowed fits.
#[test]
fn an_id_that_is_too_long_to_look_up_is_refused_with_its_line_by_both_stores() {
    // Letters that no compression makes shorter.
    let letters = |count: usize| -> String {
        let mut state: u64 = 7;
        let letter = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            char::from(b'a' + u8::try_from((state >> 33) % 26).expect("a letter"))
        };
        std::iter::repeat_with(letter).take(count).collect()
    };
    on_both(|database| {
        let (fits, long) = (letters(1_000), letters(1_001));
        let scene = Scene::new(
            &format!("{fits},charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,{fits}\n"),
            &format!("{fits},charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,{fits}\n"),
        )
        .stored(database, "120s");
        let told = scene.now("run");
        assert_eq!(told.code, 0, "{}", told.stderr);
        for (operation, intent, place) in [
            (
                &long,
                &fits,
                "operations.csv:2: column \"operation_id\", line 2",
            ),
            (&fits, &long, "intents.csv:2: column \"intent_id\", line 2"),
        ] {
            scene.operations(&format!(
                "{operation},charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,{fits}\n"
            ));
            scene.intents(&format!(
                "{intent},charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,{fits}\n"
            ));
            let told = scene.now("run");
            assert_eq!(told.code, 2, "{}", told.stderr);
            assert!(told.stderr.contains(place), "{}", told.stderr);
            let why = "is 1001 bytes long, and an id or reference has at most 1000";
            assert!(told.stderr.contains(why), "{}", told.stderr);
            assert!(told.stderr.len() < 1_500, "the id is cut: {}", told.stderr);
        }
    });
}

#[test]
fn a_row_that_the_profile_leaves_out_is_listed_even_without_a_time() {
    let text = built_in("canonical").expect("built in").replace(
        "[csv]\n",
        "[csv]\nskip_rows = [{ column = \"reference\", in = [\"carried\"], reason = \"no_money\" }]\n",
    );
    let scene = Scene::new(
        "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n\
         x_1,other,succeeded,0,EUR,,carried\n",
        "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n",
    );
    scene.write("own.toml", &text);
    let config = std::fs::read_to_string(scene.path("paysweep.toml")).expect("a configuration");
    scene.write(
        "paysweep.toml",
        &config.replace("\"canonical\"", "\"own.toml\""),
    );
    for command in ["diff", "run -n", "run"] {
        let report = scene
            .now(&format!("{command} -f json --include ignored"))
            .json();
        assert_eq!(report["accounting"]["operations"]["read"], 2, "{command}");
        assert_eq!(report["ignored"][0]["operation_id"], "x_1", "{command}");
        assert_eq!(report["outcome"]["exit_code"], 0, "{command}");
    }
}
