//! Money: exact integers of a currency's minor unit.
//!
//! Amounts are stored as `i64` and summed as `i128`. There is no float anywhere, and no arithmetic across
//! currencies: two [`Money`] values are compared only when their currencies are equal.
//!
//! Decisions: the grammar of a written amount is our own ([`NumberFormat::parse`]), since a library that starts to
//! accept `1E+05` would silently change what counts as money. Exponents are those of ISO 4217.

use std::fmt;

/// An ISO 4217 currency code in upper case, for example `EUR`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Currency([u8; 3]);

impl Currency {
    /// ISO's own code for "no currency". It stands where a row names no usable currency.
    pub const NONE: Currency = Currency(*b"XXX");

    /// Reads a three-letter code, in either case. `None` when it is not three ASCII letters.
    pub fn parse(text: &str) -> Option<Currency> {
        let bytes: [u8; 3] = text.as_bytes().try_into().ok()?;
        if bytes.iter().all(u8::is_ascii_alphabetic) {
            Some(Currency(bytes.map(|byte| byte.to_ascii_uppercase())))
        } else {
            None
        }
    }

    /// The code, three upper-case letters.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("XXX")
    }

    /// How many decimals the currency has: 0 for JPY, 2 for EUR, 3 for KWD. `None` for a code that ISO 4217 does not
    /// list or lists without a minor unit (gold, test codes).
    pub fn exponent(self) -> Option<u8> {
        let exponent = iso_currency::Currency::from_code(self.as_str())?.exponent()?;
        u8::try_from(exponent).ok()
    }
}

impl fmt::Display for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Currency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An amount in whole minor units. The sign is the field's own: an operation is positive when our balance at the
/// processor grows, an intent is always positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Money {
    /// Whole minor units of the currency's ISO exponent.
    pub minor: i64,
    /// The currency.
    pub currency: Currency,
}

impl Money {
    /// An amount of a currency.
    pub const fn new(minor: i64, currency: Currency) -> Money {
        Money { minor, currency }
    }

    /// The amount in major units, for people: `42.00`. A currency without a known exponent is shown in minor units.
    pub fn amount(self) -> String {
        format_minor(i128::from(self.minor), self.currency)
    }
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.amount(), self.currency)
    }
}

/// A sum of minor units in major units, for people.
pub fn format_minor(minor: i128, currency: Currency) -> String {
    let exponent = u32::from(currency.exponent().unwrap_or(0));
    match rust_decimal::Decimal::try_from_i128_with_scale(minor, exponent) {
        Ok(decimal) => decimal.to_string(),
        Err(_) => minor.to_string(),
    }
}

/// A decimal number as it was written: `mantissa × 10^-scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Number {
    /// All digits as one integer, with the sign.
    pub mantissa: i128,
    /// How many of the digits stand behind the decimal sign.
    pub scale: u32,
}

/// How a file writes numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberFormat {
    /// The decimal sign.
    pub decimal: char,
    /// The grouping sign between thousands, if any.
    pub group: Option<char>,
}

/// Why a number could not become minor units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinorError {
    /// More decimals than the currency has, and they are not zero.
    Fraction,
    /// Does not fit 64 bits.
    Overflow,
}

/// Longest number that is read at all, in characters. Far above any real amount; keeps the mantissa inside `i128`.
const NUMBER_CHARS_MAX: usize = 40;

impl NumberFormat {
    /// Decimal point, no grouping.
    pub const PLAIN: NumberFormat = NumberFormat {
        decimal: '.',
        group: None,
    };

    /// Reads a number: an optional sign in front (`+`, `-` or U+2212), digits, the grouping sign only between groups of
    /// exactly three, the decimal sign followed by at least one digit. Nothing else: no exponent, no white space, no
    /// brackets.
    pub fn parse(self, text: &str) -> Option<Number> {
        if text.len() > NUMBER_CHARS_MAX {
            return None;
        }
        let (negative, unsigned) = match text.strip_prefix(['-', '\u{2212}']) {
            Some(rest) => (true, rest),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (whole, fraction) = match unsigned.split_once(self.decimal) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (unsigned, None),
        };
        let mut mantissa: i128 = 0;
        let mut push = |digits: &str| -> Option<()> {
            for byte in digits.bytes() {
                if !byte.is_ascii_digit() {
                    return None;
                }
                mantissa = mantissa
                    .checked_mul(10)?
                    .checked_add(i128::from(byte - b'0'))?;
            }
            Some(())
        };
        match self.group {
            Some(group) if whole.contains(group) => {
                let mut groups = whole.split(group);
                let first = groups.next()?;
                if first.is_empty() || first.len() > 3 {
                    return None;
                }
                push(first)?;
                for digits in groups {
                    if digits.len() != 3 {
                        return None;
                    }
                    push(digits)?;
                }
            }
            _ => {
                if whole.is_empty() {
                    return None;
                }
                push(whole)?;
            }
        }
        let mut scale = 0;
        if let Some(fraction) = fraction {
            if fraction.is_empty() {
                return None;
            }
            push(fraction)?;
            scale = u32::try_from(fraction.len()).ok()?;
        }
        Some(Number {
            mantissa: if negative { -mantissa } else { mantissa },
            scale,
        })
    }
}

impl Number {
    /// The number, read as major units, in whole minor units of `exponent` decimals.
    pub fn to_minor(self, exponent: u8) -> Result<i64, MinorError> {
        let exponent = u32::from(exponent);
        let minor = if self.scale > exponent {
            let divisor = power_of_ten(self.scale - exponent)?;
            if self.mantissa % divisor != 0 {
                return Err(MinorError::Fraction);
            }
            self.mantissa / divisor
        } else {
            let factor = power_of_ten(exponent - self.scale)?;
            self.mantissa
                .checked_mul(factor)
                .ok_or(MinorError::Overflow)?
        };
        i64::try_from(minor).map_err(|_| MinorError::Overflow)
    }

    /// The same, rounded to the nearest minor unit, half away from zero.
    pub fn to_minor_half_up(self, exponent: u8) -> Result<i64, MinorError> {
        match self.to_minor(exponent) {
            Err(MinorError::Fraction) => {
                let divisor = power_of_ten(self.scale - u32::from(exponent))?;
                i64::try_from(round_half_up(self.mantissa, divisor))
                    .map_err(|_| MinorError::Overflow)
            }
            exact => exact,
        }
    }
}

fn power_of_ten(exponent: u32) -> Result<i128, MinorError> {
    10_i128.checked_pow(exponent).ok_or(MinorError::Overflow)
}

/// `value / step` rounded to the nearest whole number, half away from zero. `step` is positive.
pub fn round_half_up(value: i128, step: i128) -> i128 {
    let quotient = value / step;
    let rest = (value % step).abs();
    if rest * 2 >= step {
        quotient + value.signum()
    } else {
        quotient
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: NumberFormat = NumberFormat {
        decimal: ',',
        group: Some('.'),
    };

    #[test]
    fn a_number_is_exactly_what_the_grammar_says() {
        let read = |text| {
            NumberFormat::PLAIN
                .parse(text)
                .map(|n| (n.mantissa, n.scale))
        };
        for (text, want) in [
            ("10.00", Some((1000, 2))),
            ("-4", Some((-4, 0))),
            ("\u{2212}4", Some((-4, 0))),
            ("+0.5", Some((5, 1))),
            ("", None),
            ("-", None),
            (".5", None),
            ("5.", None),
            ("1e5", None),
            ("1E+05", None),
            ("1,000", None),
            (" 1", None),
            ("(1)", None),
            ("15.0x", None),
            ("1.2.3", None),
            ("--1", None),
        ] {
            assert_eq!(read(text), want, "{text:?}");
        }
    }

    #[test]
    fn grouping_is_in_threes_and_only_where_declared() {
        let read = |text| COMMA.parse(text).map(|n| (n.mantissa, n.scale));
        assert_eq!(read("1.234,56"), Some((123_456, 2)));
        assert_eq!(read("-4.000"), Some((-4000, 0)));
        assert_eq!(read("12.34"), None);
        assert_eq!(read(".123"), None);
        assert_eq!(read("1.23.456"), None);
    }

    #[test]
    fn minor_units_are_exact_or_refused() {
        let number = NumberFormat::PLAIN.parse("14.345").expect("a number");
        assert_eq!(number.to_minor(2), Err(MinorError::Fraction));
        assert_eq!(number.to_minor_half_up(2), Ok(1435));
        assert_eq!(number.to_minor(3), Ok(14_345));
        assert_eq!(
            NumberFormat::PLAIN
                .parse("14.340")
                .expect("a number")
                .to_minor(2),
            Ok(1434)
        );
        let huge = NumberFormat::PLAIN
            .parse("92233720368547758.08")
            .expect("a number");
        assert_eq!(huge.to_minor(2), Err(MinorError::Overflow));
    }

    #[test]
    fn exponents_are_those_of_iso() {
        let exponent = |code| Currency::parse(code).and_then(Currency::exponent);
        assert_eq!(exponent("jpy"), Some(0));
        assert_eq!(exponent("EUR"), Some(2));
        assert_eq!(exponent("KWD"), Some(3));
        assert_eq!(exponent("ZZZ"), None);
        assert_eq!(
            Money::new(-4200, Currency::parse("AUD").expect("a code")).to_string(),
            "-42.00 AUD"
        );
    }
}
