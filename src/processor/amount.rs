//! From the text of a cell to whole minor units, by the grammar and the exponents that a profile declares.
//!
//! Decisions: a value that two readings allow is refused, never guessed. A rest below the minor unit is an error where the
//! file writes decimals, and a finding about the row where it only arises from another table of exponents.

use std::collections::BTreeMap;

use crate::money::{Currency, MinorError, Number, NumberFormat};

/// How a profile's amounts are written.
#[derive(Clone, Debug)]
pub(super) struct AmountFormat {
    pub unit: Unit,
    pub decimal: Decimal,
    /// A sign that may stand in the cell and is dropped.
    pub currency_sign: Option<String>,
    /// `.91` is 0.91.
    pub bare_fraction: bool,
    /// Where a minus may stand beside in front of the number.
    pub minus: MinusForms,
    pub exponents: Exponents,
}

impl AmountFormat {
    /// Whether more than digits and a sign in front may stand in a cell.
    fn has_signs_around(&self) -> bool {
        self.currency_sign.is_some()
            || self.unit == Unit::MajorSignedText
            || self.minus != MinusForms::default()
    }
}

/// What a written 1 is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// One unit of the currency: `10.00`.
    Major,
    /// One minor unit: `1000`.
    Minor,
    /// The last so many digits are decimals.
    Implied(u32),
    /// Minor units with decimals of their own.
    MinorDecimal,
    /// Major units with a sign, white space and a currency sign: `- $1,150.00`.
    MajorSignedText,
}

/// Forms of a negative number that are read only where a profile declares them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MinusForms {
    /// `(15.00)`
    pub brackets: bool,
    /// `15.00-`
    pub trailing: bool,
}

/// The decimal sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decimal {
    Is(NumberFormat),
    /// Not declared: only values that can be read in one way are read.
    Auto,
}

/// Currencies whose decimals differ from ISO 4217 in this format.
#[derive(Clone, Debug, Default)]
pub(super) struct Exponents(pub BTreeMap<Currency, u8>);

impl Exponents {
    /// The named sets of processors, as they differ from ISO 4217.
    pub(super) const SETS: [(&str, &[(&str, u8)]); 5] = [
        ("iso", &[]),
        ("stripe", &[("MGA", 0), ("ISK", 2), ("UGX", 2)]),
        ("adyen", &[("CLP", 2), ("ISK", 2), ("CVE", 0), ("IDR", 0)]),
        ("paypal", &[("HUF", 0), ("JPY", 0), ("TWD", 0)]),
        ("checkout", &[("CLP", 2), ("ISK", 0)]),
    ];
}

/// Why a cell is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AmountError {
    NotANumber,
    /// Two readings give two numbers.
    Ambiguous,
    /// An earlier line (the number) was clear about the other decimal sign.
    OtherSign(u32),
    /// Whole minor units have no decimals.
    MinorDecimals,
    /// More decimals than the currency (with so many) has.
    TooFine(u8),
    Overflow,
}

impl AmountError {
    /// What is wrong with the value, why, and what to do.
    pub(super) fn explain(self, format: &AmountFormat) -> (String, String, String) {
        let declared = match (format.unit, format.decimal) {
            (_, Decimal::Auto) => "no decimal sign is declared (decimal = \"auto\")".to_owned(),
            (_, Decimal::Is(number)) => format!(
                "amounts are read with the decimal sign \"{}\" and {}",
                number.decimal,
                match number.group {
                    Some(group) => format!("the grouping sign \"{group}\""),
                    None => "no grouping sign".to_owned(),
                }
            ),
        };
        let (finding, why, remedy) = match self {
            AmountError::NotANumber => (
                "cannot be read as an amount".to_owned(),
                declared,
                "export the file again without spreadsheet formatting, or declare decimal and group in the profile",
            ),
            AmountError::Ambiguous => (
                "can be read in two ways".to_owned(),
                declared,
                "set decimal = \",\" or \".\" in the profile, with the group that the file uses",
            ),
            AmountError::OtherSign(line) => (
                "uses another decimal sign than the rows above".to_owned(),
                format!("line {line} can only be read with the other sign, and {declared}"),
                "set decimal and group in the profile, or export the file again",
            ),
            AmountError::MinorDecimals => (
                "is no whole number".to_owned(),
                "the profile reads whole minor units, which have no decimals".to_owned(),
                "set unit = \"major\" in the profile if the amounts are in major units",
            ),
            AmountError::TooFine(exponent) => (
                "has more decimals than its currency".to_owned(),
                format!("the currency has {exponent}, and a rest is never rounded away"),
                "check the currency and the unit of the column",
            ),
            AmountError::Overflow => (
                "is too large for an amount".to_owned(),
                "amounts are kept in 64 bits of minor units".to_owned(),
                "check the unit of the column",
            ),
        };
        (finding, why, remedy.to_owned())
    }

    /// The same about one cell: what it looks like says what may have to be declared.
    pub(super) fn explain_cell(
        self,
        format: &AmountFormat,
        cell: &str,
    ) -> (String, String, String) {
        let (finding, why, remedy) = self.explain(format);
        let is_part = |letter: char| {
            letter.is_ascii_digit() || " .,'+-()eE\u{a0}\u{202f}\u{2019}".contains(letter)
        };
        let hint = match self {
            AmountError::NotANumber if cell.ends_with('-') => {
                "declare minus = [\"trailing\"] in the profile where a minus stands behind (--layout minus=trailing)"
            }
            AmountError::NotANumber if cell.starts_with('(') => {
                "declare minus = [\"brackets\"] in the profile where brackets mean a minus (--layout minus=brackets)"
            }
            AmountError::NotANumber if cell.contains(|letter| !is_part(letter)) => {
                "declare the sign of the currency in the profile where one stands in the amounts (--layout \"currency_sign=€\"), or export the file again"
            }
            _ => return (finding, why, remedy),
        };
        (finding, why, hint.to_owned())
    }
}

/// A number in minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Minor {
    Exact(i64),
    /// The source's exponent leaves a rest below the minor unit; the whole part.
    Rest(i64),
    /// The currency is unknown; the integer as it was written, 0 where it had decimals.
    NoCurrency(i64),
}

/// Reads the amounts of one file; remembers what an undeclared decimal sign has turned out to be.
pub(super) struct AmountReader<'p> {
    pub format: &'p AmountFormat,
    strip_text_guard: bool,
    seen_sign: Option<(char, u32)>,
    currencies: Vec<Known>,
}

#[derive(Clone, Copy)]
struct Known {
    currency: Currency,
    iso: Option<u8>,
    source: u8,
}

const COMMA: NumberFormat = NumberFormat {
    decimal: ',',
    group: Some('.'),
};
const POINT: NumberFormat = NumberFormat {
    decimal: '.',
    group: Some(','),
};

impl<'p> AmountReader<'p> {
    pub(super) fn new(format: &'p AmountFormat, strip_text_guard: bool) -> AmountReader<'p> {
        AmountReader {
            format,
            strip_text_guard,
            seen_sign: None,
            currencies: Vec::new(),
        }
    }

    /// The number in a cell that is not empty, on a line.
    pub(super) fn number(&mut self, cell: &str, line: u32) -> Result<Number, AmountError> {
        if let Some(mantissa) = plain_integer(cell) {
            return Ok(Number { mantissa, scale: 0 });
        }
        let text = if self.strip_text_guard {
            unguarded(cell)
        } else {
            cell
        };
        let number = if self.format.has_signs_around() {
            let (is_negative, rest) =
                without_signs(text, self.format).ok_or(AmountError::NotANumber)?;
            let number = self.digits(rest, line)?;
            Number {
                mantissa: if is_negative {
                    -number.mantissa
                } else {
                    number.mantissa
                },
                ..number
            }
        } else {
            self.digits(text, line)?
        };
        match self.format.unit {
            Unit::Minor | Unit::Implied(_) if number.scale > 0 => Err(AmountError::MinorDecimals),
            _ => Ok(number),
        }
    }

    fn digits(&mut self, text: &str, line: u32) -> Result<Number, AmountError> {
        let with_zero;
        let text = match self
            .format
            .bare_fraction
            .then(|| with_whole(text))
            .flatten()
        {
            Some(whole) => {
                with_zero = whole;
                with_zero.as_str()
            }
            None => text,
        };
        let Decimal::Is(format) = self.format.decimal else {
            return self.undeclared(text, line);
        };
        format.parse(text).ok_or(AmountError::NotANumber)
    }

    /// Reads a number whose decimal sign nobody declared: one reading, or two that agree.
    fn undeclared(&mut self, text: &str, line: u32) -> Result<Number, AmountError> {
        let (sign, number) = match (POINT.parse(text), COMMA.parse(text)) {
            (None, None) => return Err(AmountError::NotANumber),
            (Some(point), Some(comma)) if point == comma => return Ok(point),
            (Some(_), Some(_)) => return Err(AmountError::Ambiguous),
            (Some(point), None) => ('.', point),
            (None, Some(comma)) => (',', comma),
        };
        match self.seen_sign {
            Some((seen, at)) if seen != sign => Err(AmountError::OtherSign(at)),
            Some(_) => Ok(number),
            None => {
                self.seen_sign = Some((sign, line));
                Ok(number)
            }
        }
    }

    /// A number of this file in minor units of its currency.
    pub(super) fn minor(
        &mut self,
        number: Number,
        currency: Currency,
    ) -> Result<Minor, AmountError> {
        let known = self.known(currency);
        let Some(iso) = known.iso else {
            let is_whole = number.scale == 0;
            let written = i64::try_from(number.mantissa).map_err(|_| AmountError::Overflow)?;
            return Ok(Minor::NoCurrency(if is_whole { written } else { 0 }));
        };
        let is_major = matches!(self.format.unit, Unit::Major | Unit::MajorSignedText);
        if is_major && number.scale > u32::from(iso.max(known.source)) {
            // Zeros that the currency does not have may as well be thousands: 1.000 is one euro or a thousand.
            return Err(AmountError::TooFine(iso));
        }
        let major = Number {
            scale: number.scale + self.scale_of_unit(known),
            ..number
        };
        match (major.to_minor(iso), self.format.unit) {
            (Ok(minor), _) => Ok(Minor::Exact(minor)),
            (Err(MinorError::Overflow), _) => Err(AmountError::Overflow),
            (Err(MinorError::Fraction), Unit::Major | Unit::MajorSignedText) => {
                Err(AmountError::TooFine(iso))
            }
            (Err(MinorError::Fraction), Unit::Minor | Unit::MinorDecimal | Unit::Implied(_)) => {
                let step = 10_i128.pow(major.scale - u32::from(iso));
                i64::try_from(major.mantissa / step)
                    .map(Minor::Rest)
                    .map_err(|_| AmountError::Overflow)
            }
        }
    }

    /// The same, rounded to the nearest minor unit, half away from zero.
    pub(super) fn rounded(
        &mut self,
        number: Number,
        currency: Currency,
    ) -> Result<Minor, AmountError> {
        let known = self.known(currency);
        let Some(iso) = known.iso else {
            return self.minor(number, currency);
        };
        let scale = number.scale + self.scale_of_unit(known);
        Number { scale, ..number }
            .to_minor_half_up(iso)
            .map(Minor::Exact)
            .map_err(|_| AmountError::Overflow)
    }

    /// How many decimals of the major unit the format's unit implies.
    fn scale_of_unit(&self, known: Known) -> u32 {
        match self.format.unit {
            Unit::Major | Unit::MajorSignedText => 0,
            Unit::Minor | Unit::MinorDecimal => u32::from(known.source),
            Unit::Implied(digits) => digits,
        }
    }

    /// Whether ISO 4217 lists the currency with its decimals.
    pub(super) fn is_known(&mut self, currency: Currency) -> bool {
        self.known(currency).iso.is_some()
    }

    fn known(&mut self, currency: Currency) -> Known {
        if let Some(known) = self
            .currencies
            .iter()
            .find(|known| known.currency == currency)
        {
            return *known;
        }
        let iso = currency.exponent();
        let known = Known {
            currency,
            iso,
            source: self
                .format
                .exponents
                .0
                .get(&currency)
                .copied()
                .or(iso)
                .unwrap_or(0),
        };
        self.currencies.push(known);
        known
    }
}

/// A number of digits only, with or without a minus: what almost every cell holds.
fn plain_integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > 18 {
        return None;
    }
    let mut value: i64 = 0;
    for byte in digits.bytes() {
        if !byte.is_ascii_digit() {
            return None;
        }
        value = value * 10 + i64::from(byte - b'0');
    }
    Some(i128::from(if digits.len() == text.len() {
        value
    } else {
        -value
    }))
}

/// A fraction without its zero, with it: `-.91` is `-0.91`.
fn with_whole(text: &str) -> Option<String> {
    let (sign, rest) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    rest.starts_with(['.', ','])
        .then(|| format!("{sign}0{rest}"))
}

/// The cell without what a spreadsheet puts before text: `="…"`, an apostrophe, a tab.
pub(super) fn unguarded(cell: &str) -> &str {
    if let Some(formula) = cell.strip_prefix("=\"") {
        return formula.strip_suffix('"').unwrap_or(cell);
    }
    cell.strip_prefix(['\'', '\t']).unwrap_or(cell)
}

/// A text cell without the guard around an id: `="001"` is `001`. An apostrophe or tab goes only before a plain number.
pub(super) fn unguarded_text(cell: &str) -> &str {
    let rest = unguarded(cell);
    let is_formula = cell.starts_with('=');
    let is_number = !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit());
    if (is_formula && !rest.contains('"')) || is_number {
        rest
    } else {
        cell
    }
}

/// The unsigned number between signs, brackets, white space and a currency sign, and whether it is negative. Each may
/// stand there once.
fn without_signs<'t>(text: &'t str, format: &AmountFormat) -> Option<(bool, &'t str)> {
    const SIGNS: [char; 3] = ['-', '+', '\u{2212}'];
    let currency = format.currency_sign.as_deref();
    let mut rest = text;
    let mut is_negative = None;
    let mut has_currency = false;
    loop {
        let (bare, sign) = if let Some(unsigned) = rest.strip_prefix(SIGNS) {
            (unsigned, Some(!rest.starts_with('+')))
        } else if let Some(unsigned) = rest.strip_suffix(SIGNS).filter(|_| format.minus.trailing) {
            (unsigned, Some(!rest.ends_with('+')))
        } else if let Some(inner) = rest
            .strip_prefix('(')
            .and_then(|rest| rest.strip_suffix(')'))
            .filter(|_| format.minus.brackets)
        {
            (inner, Some(true))
        } else if let Some(bare) =
            currency.and_then(|sign| rest.strip_prefix(sign).or(rest.strip_suffix(sign)))
        {
            (bare, None)
        } else {
            return Some((is_negative.unwrap_or(false), rest));
        };
        let is_second = match sign {
            Some(_) => is_negative.is_some(),
            None => has_currency,
        };
        if is_second {
            return None;
        }
        is_negative = is_negative.or(sign);
        has_currency |= sign.is_none();
        rest = bare.trim();
    }
}

/// Whether a text is an id that a spreadsheet has turned into a number: `1.23E+22`.
pub(crate) fn is_exponent_notation(text: &str) -> bool {
    if !text.as_bytes().contains(&b'+') {
        return false;
    }
    let Some((mantissa, exponent)) = text.split_once(['E', 'e']) else {
        return false;
    };
    let Some(exponent) = exponent.strip_prefix('+') else {
        return false;
    };
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mantissa = mantissa.strip_prefix('-').unwrap_or(mantissa);
    let (whole, fraction) = mantissa.split_once(['.', ',']).unwrap_or((mantissa, "0"));
    is_digits(exponent) && is_digits(whole) && is_digits(fraction)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(unit: Unit, decimal: Decimal) -> AmountFormat {
        AmountFormat {
            unit,
            decimal,
            currency_sign: None,
            bare_fraction: false,
            minus: MinusForms::default(),
            exponents: Exponents::default(),
        }
    }

    fn minor(format: &AmountFormat, cell: &str, code: &str) -> Result<Minor, AmountError> {
        let mut reader = AmountReader::new(format, true);
        let number = reader.number(cell, 2)?;
        reader.minor(number, Currency::parse(code).expect("a code"))
    }

    #[test]
    fn amounts_are_read_by_the_declared_grammar_only() {
        let point = format(Unit::Major, Decimal::Is(NumberFormat::PLAIN));
        let comma = format(Unit::Major, Decimal::Is(COMMA));
        let whole = format(Unit::Minor, Decimal::Is(NumberFormat::PLAIN));
        for (format, cell, code, want) in [
            (&point, "10.00", "EUR", Ok(Minor::Exact(1000))),
            (&point, "\u{2212}4", "EUR", Ok(Minor::Exact(-400))),
            (&point, "100.00", "JPY", Err(AmountError::TooFine(0))),
            (&point, "1.000", "EUR", Err(AmountError::TooFine(2))),
            (&point, "1.2", "KWD", Ok(Minor::Exact(1200))),
            (&point, "14.345", "EUR", Err(AmountError::TooFine(2))),
            (&point, "15.0x", "EUR", Err(AmountError::NotANumber)),
            (&point, "(15.00)", "EUR", Err(AmountError::NotANumber)),
            (&point, "1E+05", "EUR", Err(AmountError::NotANumber)),
            (&point, "1,000", "EUR", Err(AmountError::NotANumber)),
            (
                &point,
                "99999999999999999999",
                "EUR",
                Err(AmountError::Overflow),
            ),
            (&point, "7", "ZZZ", Ok(Minor::NoCurrency(7))),
            (&comma, "1.234,56", "EUR", Ok(Minor::Exact(123_456))),
            (&comma, "-4.000", "EUR", Ok(Minor::Exact(-400_000))),
            (&comma, "8,00", "EUR", Ok(Minor::Exact(800))),
            (&comma, "12.34", "EUR", Err(AmountError::NotANumber)),
            (&whole, "-1234", "EUR", Ok(Minor::Exact(-1234))),
            (&whole, "12.00", "EUR", Err(AmountError::MinorDecimals)),
        ] {
            assert_eq!(minor(format, cell, code), want, "{cell} {code}");
        }
    }

    #[test]
    fn an_undeclared_decimal_sign_is_never_guessed() {
        let auto = format(Unit::Major, Decimal::Auto);
        for (cells, want) in [
            (vec!["12.50", "1,234.50", "7"], Ok(())),
            (vec!["12,50", "1.234,56", "1.234.567"], Ok(())),
            (vec!["-4.000"], Err(AmountError::Ambiguous)),
            (vec!["1,234"], Err(AmountError::Ambiguous)),
            (vec!["8,00", "9.00"], Err(AmountError::OtherSign(2))),
            (vec!["x"], Err(AmountError::NotANumber)),
        ] {
            let mut reader = AmountReader::new(&auto, true);
            let read = cells
                .iter()
                .zip(2..)
                .try_for_each(|(cell, line)| reader.number(cell, line).map(|_| ()));
            assert_eq!(read, want, "{cells:?}");
        }
    }

    #[test]
    fn a_guard_goes_only_from_a_plain_number() {
        let point = format(Unit::Major, Decimal::Is(NumberFormat::PLAIN));
        for (cell, want) in [
            ("'-85.00", Ok(Minor::Exact(-8500))),
            ("\t-2.45", Ok(Minor::Exact(-245))),
            ("=\"12.00\"", Ok(Minor::Exact(1200))),
            ("'=1+1", Err(AmountError::NotANumber)),
            ("'abc", Err(AmountError::NotANumber)),
            ("=1+1", Err(AmountError::NotANumber)),
        ] {
            assert_eq!(minor(&point, cell, "USD"), want, "{cell:?}");
        }
        for (cell, want) in [
            ("=\"001\"", "001"),
            ("'0012", "0012"),
            ("'tis", "'tis"),
            ("=A1", "=A1"),
            ("", ""),
        ] {
            assert_eq!(unguarded_text(cell), want, "{cell:?}");
        }
        let mut strict = AmountReader::new(&point, false);
        assert_eq!(strict.number("'1", 1), Err(AmountError::NotANumber));
    }

    #[test]
    fn units_and_exponents_are_those_of_the_profile() {
        let stripe = AmountFormat {
            exponents: Exponents(BTreeMap::from([(
                Currency::parse("ISK").expect("a code"),
                2,
            )])),
            ..format(Unit::Minor, Decimal::Is(NumberFormat::PLAIN))
        };
        let implied = format(Unit::Implied(2), Decimal::Is(NumberFormat::PLAIN));
        let fractions = format(Unit::MinorDecimal, Decimal::Is(NumberFormat::PLAIN));
        let text = AmountFormat {
            currency_sign: Some("$".to_owned()),
            ..format(Unit::MajorSignedText, Decimal::Is(POINT))
        };
        for (format, cell, code, want) in [
            (&stripe, "15000", "ISK", Ok(Minor::Exact(150))),
            (&stripe, "15001", "ISK", Ok(Minor::Rest(150))),
            (&stripe, "15001", "EUR", Ok(Minor::Exact(15_001))),
            (&implied, "1234", "EUR", Ok(Minor::Exact(1234))),
            (&implied, "1200", "JPY", Ok(Minor::Exact(12))),
            (&implied, "1201", "JPY", Ok(Minor::Rest(12))),
            (&implied, "1234", "KWD", Ok(Minor::Exact(12_340))),
            (&fractions, "12.0", "GBP", Ok(Minor::Exact(12))),
            (&fractions, "12.5", "GBP", Ok(Minor::Rest(12))),
            (&text, "- $1,150.00", "USD", Ok(Minor::Exact(-115_000))),
            (&text, "$1,150.00", "USD", Ok(Minor::Exact(115_000))),
            (&text, "-$-5", "USD", Err(AmountError::NotANumber)),
            (&text, "€5", "USD", Err(AmountError::NotANumber)),
        ] {
            assert_eq!(minor(format, cell, code), want, "{cell} {code}");
        }
    }

    #[test]
    fn a_minus_stands_where_it_is_declared_and_only_once() {
        let with = |brackets, trailing, currency: &str| AmountFormat {
            minus: MinusForms { brackets, trailing },
            currency_sign: Some(currency.to_owned()).filter(|sign| !sign.is_empty()),
            ..format(Unit::Major, Decimal::Is(COMMA))
        };
        let (brackets, trailing) = (with(true, false, ""), with(false, true, ""));
        let euro = with(true, true, "€");
        for (format, cell, want) in [
            (&brackets, "(1.234,56)", Ok(Minor::Exact(-123_456))),
            (&brackets, "( 12,00 )", Ok(Minor::Exact(-1200))),
            (&brackets, "-12,00", Ok(Minor::Exact(-1200))),
            (&brackets, "12,00-", Err(AmountError::NotANumber)),
            (&brackets, "(12,00", Err(AmountError::NotANumber)),
            (&brackets, "12,00)", Err(AmountError::NotANumber)),
            (&brackets, "-(12,00)", Err(AmountError::NotANumber)),
            (&brackets, "((12,00))", Err(AmountError::NotANumber)),
            (&brackets, "()", Err(AmountError::NotANumber)),
            (&trailing, "1.234,56-", Ok(Minor::Exact(-123_456))),
            (&trailing, "12,00+", Ok(Minor::Exact(1200))),
            (&trailing, "12,00 -", Ok(Minor::Exact(-1200))),
            (&trailing, "-12,00-", Err(AmountError::NotANumber)),
            (&trailing, "12,00--", Err(AmountError::NotANumber)),
            (&trailing, "-", Err(AmountError::NotANumber)),
            (&trailing, "(12,00)", Err(AmountError::NotANumber)),
            (&euro, "(12,00 €)", Ok(Minor::Exact(-1200))),
            (&euro, "€ (12,00)", Ok(Minor::Exact(-1200))),
            (&euro, "12,00-\u{a0}€", Ok(Minor::Exact(-1200))),
            (&euro, "€12,00€", Err(AmountError::NotANumber)),
        ] {
            assert_eq!(minor(format, cell, "EUR"), want, "{cell}");
        }
    }

    #[test]
    fn an_id_in_exponent_notation_is_recognised() {
        for (text, want) in [
            ("1.23E+22", true),
            ("4,11e+15", true),
            ("1E+05", true),
            ("ch_1e5", false),
            ("12E5", false),
            ("AE+1", false),
            ("E+", false),
        ] {
            assert_eq!(is_exponent_notation(text), want, "{text}");
        }
    }
}
