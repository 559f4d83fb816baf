//! What the values of a column look like: numbers, times, currencies, words.

use std::collections::BTreeSet;

use crate::money::{Currency, Number, NumberFormat};
use crate::processor::amount::unguarded;
use crate::processor::moment::{Read, TimeFormat, is_plausible};
use crate::processor::table::trim;

/// Signs of currencies that stand beside amounts.
const CURRENCY_SIGNS: [&str; 7] = ["$", "€", "£", "¥", "₹", "R$", "kr"];

/// The ways in which numbers are written, the plainest first.
const NUMBERS: [(char, Option<char>); 10] = [
    ('.', None),
    (',', None),
    ('.', Some(',')),
    (',', Some('.')),
    (',', Some(' ')),
    (',', Some('\u{a0}')),
    (',', Some('\u{202f}')),
    ('.', Some('\'')),
    ('.', Some('’')),
    ('.', Some(' ')),
];

/// The ways in which times are written. Of two that read a text alike the first is proposed.
const TIMES: [&str; 36] = [
    "rfc3339",
    "%Y-%m-%dT%H:%M:%S%z",
    "%Y-%m-%dT%H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S %z",
    "%Y-%m-%d %H:%M:%S%.f %z",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d",
    "%Y/%m/%d %H:%M:%S %z",
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y %H:%M",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d/%m/%y",
    "%m/%d/%y",
    "%m/%d/%Y %I:%M %p",
    "%m/%d/%Y %I:%M:%S %p",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y",
    "%d.%m.%y",
    "%d-%m-%Y %H:%M:%S",
    "%m-%d-%Y %H:%M:%S",
    "%d-%m-%Y %H:%M:%S%.f",
    "%d-%m-%Y",
    "%m-%d-%Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%s",
];

/// What the values of a column are, as far as they tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Empty,
    /// ISO 4217 codes.
    Currency,
    /// Times, with every format that reads all of them.
    Time(Vec<String>),
    /// Amounts or other numbers.
    Number,
    /// At most so many different words as a person lists.
    Words(BTreeSet<String>),
    Text,
}

/// Most different values that are taken for a vocabulary.
const WORDS_MAX: usize = 40;

pub(super) fn shape<'t>(values: impl Iterator<Item = &'t str>) -> Shape {
    let values: Vec<&str> = values.collect();
    let distinct: BTreeSet<&str> = values.iter().copied().collect();
    if values.is_empty() {
        return Shape::Empty;
    }
    if distinct.iter().all(|value| is_currency(value)) {
        return Shape::Currency;
    }
    let times = time_formats(&distinct);
    if !times.is_empty() {
        return Shape::Time(times);
    }
    let is_number = |value: &&str| {
        NUMBERS
            .iter()
            .any(|format| number(value, *format).is_some())
    };
    if distinct.iter().all(is_number) {
        return Shape::Number;
    }
    let has_letters = distinct
        .iter()
        .all(|value| value.chars().any(char::is_alphabetic));
    let repeats = distinct.len() * 2 <= values.len().max(8);
    if has_letters && repeats && distinct.len() <= WORDS_MAX {
        return Shape::Words(distinct.iter().map(|value| (*value).to_owned()).collect());
    }
    Shape::Text
}

fn is_currency(value: &str) -> bool {
    Currency::parse(value).is_some_and(|currency| currency.exponent().is_some())
}

fn time_formats(values: &BTreeSet<&str>) -> Vec<String> {
    fitting_formats(&TIMES, values)
}

/// Of some formats those that read every value; of two that read them all alike only the first.
pub(super) fn fitting_formats(formats: &[&str], values: &BTreeSet<&str>) -> Vec<String> {
    let mut fitting = Vec::new();
    for text in formats.iter().copied() {
        let Ok(format) = TimeFormat::parse(text) else {
            continue;
        };
        // Ten digits: a number of seconds is no amount.
        if text == "%s" && values.iter().any(|value| value.len() != 10) {
            continue;
        }
        let fits = |value: &&str| match format.read_in_utc(value) {
            Some(Read::At(at) | Read::Unclear(at, _)) => is_plausible(at),
            None => false,
        };
        if values.iter().all(fits) {
            fitting.push((text, format));
        }
    }
    // What the first one reads alike needs no second; a contradiction is kept, to be asked about.
    let mut kept: Vec<(&str, TimeFormat)> = Vec::new();
    for (text, format) in fitting {
        let differs = |known: &TimeFormat| {
            let mut values = values.iter();
            values.any(|value| known.read_in_utc(value) != format.read_in_utc(value))
        };
        if kept.iter().all(|(_, known)| differs(known)) {
            kept.push((text, format));
        }
    }
    kept.into_iter().map(|(text, _)| text.to_owned()).collect()
}

/// How a cell is dressed around its digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dress {
    pub brackets: bool,
    pub trailing: bool,
    pub sign: Option<&'static str>,
}

/// A cell without currency sign, brackets and trailing minus.
pub(super) fn undressed(value: &str) -> (&str, Dress) {
    let mut dress = Dress::default();
    let mut rest = unguarded(value);
    loop {
        if let Some(inner) = rest
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
        {
            dress.brackets = true;
            rest = trim(inner);
        } else if let Some(bare) = rest.strip_suffix('-').filter(|rest| !rest.is_empty()) {
            dress.trailing = true;
            rest = trim(bare);
        } else if let Some((sign, bare)) = CURRENCY_SIGNS.iter().find_map(|sign| {
            let signless = rest.strip_prefix('-').map_or(rest, trim);
            let bare = signless.strip_prefix(sign).or(rest.strip_suffix(sign))?;
            Some((*sign, bare))
        }) {
            dress.sign = Some(sign);
            rest = trim(bare);
        } else {
            return (rest, dress);
        }
    }
}

pub(super) fn number(value: &str, (decimal, group): (char, Option<char>)) -> Option<Number> {
    NumberFormat { decimal, group }.parse(undressed(value).0)
}

/// Whether a cell says that it is less than nothing.
pub(super) fn is_negative(value: &str) -> bool {
    let (rest, dress) = undressed(value);
    dress.brackets
        || dress.trailing
        || value.starts_with(['-', '\u{2212}'])
        || rest.starts_with(['-', '\u{2212}'])
}

/// How the amounts of a file are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// One way, or several that give the same numbers.
    Is(char, Option<char>),
    /// A value that two ways read as two numbers.
    Unclear(String),
    /// No way reads all of them; one that none reads.
    None(String),
}

pub(super) fn writing<'t>(values: &(impl Iterator<Item = &'t str> + Clone)) -> Writing {
    let fitting: Vec<(char, Option<char>)> = NUMBERS
        .iter()
        .copied()
        .filter(|format| values.clone().all(|value| number(value, *format).is_some()))
        .collect();
    let Some(first) = fitting.first().copied() else {
        let odd = values.clone().find(|value| {
            NUMBERS
                .iter()
                .all(|format| number(value, *format).is_none())
        });
        return Writing::None(odd.or(values.clone().next()).unwrap_or_default().to_owned());
    };
    for value in values.clone() {
        let read = number(value, first);
        if fitting.iter().any(|format| number(value, *format) != read) {
            return Writing::Unclear(value.to_owned());
        }
    }
    // A grouping sign that no value needs is left out; one that stands in a value is part of the format.
    Writing::Is(first.0, first.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[&str]) -> Shape {
        shape(values.iter().copied())
    }

    #[test]
    fn a_column_is_what_all_its_values_are() {
        let words =
            |words: &[&str]| Shape::Words(words.iter().map(|word| (*word).to_owned()).collect());
        let times = |formats: &[&str]| {
            Shape::Time(formats.iter().map(|format| (*format).to_owned()).collect())
        };
        for (values, want) in [
            (&[][..], Shape::Empty),
            (&["EUR", "usd"], Shape::Currency),
            (&["EUR", "Euro"], words(&["EUR", "Euro"])),
            (&["12.50", "-3"], Shape::Number),
            (&["($1,234.50)", "7"], Shape::Number),
            (&["2026-03-09 10:00:00"], times(&["%Y-%m-%d %H:%M:%S"])),
            (&["2026-03-09T10:00:00Z"], times(&["rfc3339"])),
            (&["03/04/2026", "31/12/2026"], times(&["%d/%m/%Y"])),
            (&["03/04/2026", "12/31/2026"], times(&["%m/%d/%Y"])),
            (
                &["03/04/2026", "05/06/2026"],
                times(&["%d/%m/%Y", "%m/%d/%Y"]),
            ),
            (&["1773046800"], times(&["%s"])),
            (&["177304"], Shape::Number),
            (
                &["sale", "refund", "sale", "sale"],
                words(&["refund", "sale"]),
            ),
            (&["a1", "a2", "a3", "a4", "a5", "a6"], Shape::Text),
        ] {
            assert_eq!(of(values), want, "{values:?}");
        }
    }

    #[test]
    fn the_way_amounts_are_written_is_told_by_the_values_or_asked_for() {
        let told = |values: &[&str]| writing(&values.iter().copied());
        for (values, want) in [
            (&["12.50", "7"][..], Writing::Is('.', None)),
            (&["12,50", "7"], Writing::Is(',', None)),
            (&["1.234,50"], Writing::Is(',', Some('.'))),
            (&["1,234.50", "12"], Writing::Is('.', Some(','))),
            (&["1\u{a0}234,50"], Writing::Is(',', Some('\u{a0}'))),
            (&["1'234.50"], Writing::Is('.', Some('\''))),
            (&["1,234"], Writing::Unclear("1,234".to_owned())),
            (&["1.234", "7"], Writing::Unclear("1.234".to_owned())),
            (&["1000"], Writing::Is('.', None)),
            (&["12,50", "7.50"], Writing::None("12,50".to_owned())),
            (&["12,50", "7x"], Writing::None("7x".to_owned())),
        ] {
            assert_eq!(told(values), want, "{values:?}");
        }
    }
}
