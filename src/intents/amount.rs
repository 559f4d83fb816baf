//! A local amount and its currency: one meaning, whether it stands in a file or in a table.

use crate::money::{Currency, MinorError, NumberFormat};
use crate::processor::table::shown;

/// How local amounts are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum AmountUnit {
    /// Whole minor units, in the column `amount_minor`.
    #[default]
    Minor,
    /// Decimals, in the column `amount`.
    Major,
}

/// What becomes of a local amount that is finer than a minor unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Rounding {
    /// It is no amount: the row is kept as invalid.
    #[default]
    Exact,
    /// Rounded to the nearest minor unit, half away from zero, and kept as written beside it.
    HalfUp,
}

/// What the configuration says about reading intents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct IntentsRules {
    /// How local amounts are written.
    pub amount_unit: AmountUnit,
    /// What becomes of an amount finer than a minor unit.
    pub rounding: Rounding,
}

/// Why a text is no amount. What that means for the row or the file is the reader's to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoAmount {
    /// Nothing stands there.
    Empty,
    /// It is no number in digits with a decimal point.
    Unreadable,
    /// It is below zero, and the kind of an intent gives the direction.
    Negative,
    /// It has decimals where minor units are whole.
    Fraction,
    /// More than 64 bits of minor units.
    TooLarge,
}

/// An amount as it can be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Amount<'a> {
    /// Minor units, not negative.
    pub(super) minor: i64,
    /// Its currency; [`Currency::NONE`] where the code is none.
    pub(super) currency: Currency,
    /// As it was written, where declared rounding changed it; else empty.
    pub(super) written: &'a str,
    /// Why the row cannot be used all the same; empty = it can.
    pub(super) finding: String,
}

/// Reads an amount and the code of its currency, both without white space around them.
pub(super) fn local_amount<'a>(
    rules: IntentsRules,
    written: &'a str,
    code: &str,
) -> Result<Amount<'a>, NoAmount> {
    if written.is_empty() {
        return Err(NoAmount::Empty);
    }
    let number = NumberFormat::PLAIN
        .parse(written)
        .ok_or(NoAmount::Unreadable)?;
    if number.mantissa < 0 {
        return Err(NoAmount::Negative);
    }
    if rules.amount_unit == AmountUnit::Minor && number.scale > 0 {
        return Err(NoAmount::Fraction);
    }
    let plain = |minor, currency| Amount {
        minor,
        currency,
        written: "",
        finding: String::new(),
    };
    let whole = |mantissa: i128| i64::try_from(mantissa).map_err(|_| NoAmount::TooLarge);
    let known = Currency::parse(code).and_then(|currency| Some((currency, currency.exponent()?)));
    let Some((currency, exponent)) = known else {
        let minor = if number.scale == 0 {
            whole(number.mantissa)?
        } else {
            0
        };
        return Ok(Amount {
            finding: format!(
                "column \"currency\" holds {}, which is no currency with minor units",
                shown(code)
            ),
            ..plain(minor, Currency::NONE)
        });
    };
    if rules.amount_unit == AmountUnit::Minor {
        return Ok(plain(whole(number.mantissa)?, currency));
    }
    match number.to_minor(exponent) {
        Ok(minor) => Ok(plain(minor, currency)),
        Err(MinorError::Overflow) => Err(NoAmount::TooLarge),
        Err(MinorError::Fraction) => {
            let rounded = number
                .to_minor_half_up(exponent)
                .map_err(|_| NoAmount::TooLarge)?;
            let finding = match rules.rounding {
                Rounding::HalfUp => {
                    return Ok(Amount {
                        written,
                        ..plain(rounded, currency)
                    });
                }
                Rounding::Exact => format!(
                    "the local amount {written} {currency} is finer than a minor unit ({exponent} decimals)"
                ),
            };
            Ok(Amount {
                finding,
                ..plain(rounded, currency)
            })
        }
    }
}
