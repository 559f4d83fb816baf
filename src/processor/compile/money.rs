//! The money of a profile: units, signs, currencies, and what is derived from what.

use std::collections::BTreeMap;

use super::{Compiler, Need};
use crate::exit::Failure;
use crate::money::{Currency, NumberFormat};
use crate::processor::amount::{AmountFormat, Decimal, Exponents, MinusForms, Unit};
use crate::processor::profile::{AmountFrom, AmountRule, CurrencyFrom, MoneyRules};
use crate::processor::wire::{AmountWire, ColumnWire, MoneyWire, OneOrMany, TextOr};

/// The three ways in which a settled gross may be derived.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Derived {
    FromNet,
    FromAmount,
    ByRate,
}

impl Compiler<'_> {
    pub(super) fn money(&mut self, wire: &MoneyWire) -> Result<MoneyRules, Failure> {
        let format = self.amount_format(wire)?;
        let amount = self.amounts("amount", Some(&wire.amount), None, Need::Always)?;
        let amount_currency = amount.first().map(|rule| rule.currency.clone());
        let settle_net = self.amounts(
            "settle_net",
            wire.settle_net.as_ref(),
            amount_currency.as_ref(),
            Need::AsDeclared,
        )?;
        let (settle_gross, derived) = match &wire.settle_gross {
            None => (Vec::new(), None),
            Some(TextOr::Other(amounts)) => {
                let currency = amount_currency.as_ref();
                let rules =
                    self.amounts("settle_gross", Some(amounts), currency, Need::AsDeclared)?;
                (rules, None)
            }
            Some(TextOr::Text(form)) => {
                let form = self.word(
                    "records.default.money.settle_gross",
                    form,
                    [
                        ("net + fees", Derived::FromNet),
                        ("gross - fees", Derived::FromAmount),
                        ("gross * fx_rate", Derived::ByRate),
                    ],
                )?;
                (Vec::new(), Some(form))
            }
        };
        if settle_net.is_empty() && matches!(derived, Some(Derived::FromNet | Derived::ByRate)) {
            return Err(self
                .refuse("records.default.money.settle_gross is derived and there is no settle_net")
                .why("what reaches our balance would have to be calculated from a rate or from itself")
                .remedy("name the column of the net: settle_net = { column = …, currency = … }"));
        }
        let settle_currency = settle_net
            .first()
            .or(settle_gross.first())
            .or(amount.first())
            .map(|rule| rule.currency.clone());
        let (fee_total, fee_is_amount_less_net) = match &wire.fee_total {
            None => (Vec::new(), false),
            Some(TextOr::Other(amounts)) => {
                let currency = settle_currency.as_ref();
                let rules = self.amounts("fee_total", Some(amounts), currency, Need::AsDeclared)?;
                (rules, false)
            }
            Some(TextOr::Text(form)) => {
                let key = "records.default.money.fee_total";
                (Vec::new(), self.word(key, form, [("amount - net", true)])?)
            }
        };
        if fee_is_amount_less_net && settle_net.is_empty() {
            return Err(self
                .refuse("records.default.money.fee_total is derived and there is no settle_net")
                .remedy("name the column of the net: settle_net = { column = …, currency = … }"));
        }
        let mut fees = Vec::new();
        for fee in wire.fees.iter().flatten() {
            fees.push(self.amount("fees", fee, settle_currency.as_ref(), Need::AsDeclared)?);
        }
        let balance = match &wire.balance {
            Some(balance) => vec![self.amount(
                "balance",
                balance,
                settle_currency.as_ref(),
                Need::AsDeclared,
            )?],
            None => Vec::new(),
        };
        if let Some(column) = &wire.fx_rate {
            self.column(column, Need::AsDeclared);
        }
        Ok(MoneyRules {
            format,
            amount,
            amount_is_net_plus_fee: derived == Some(Derived::FromNet),
            net_is_amount_less_fee: settle_net.is_empty() && derived == Some(Derived::FromAmount),
            settle_net,
            settle_gross,
            fee_total,
            fee_is_amount_less_net,
            fees,
            balance,
        })
    }

    fn amount_format(&self, wire: &MoneyWire) -> Result<AmountFormat, Failure> {
        let unit = match wire.unit.strip_prefix("implied:") {
            Some(digits) => match digits.parse() {
                Ok(digits @ 0..=9) => Unit::Implied(digits),
                _ => {
                    return Err(self
                        .refuse(&format!(
                            "records.default.money.unit = \"{}\" is not known",
                            wire.unit
                        ))
                        .why("implied:<n> says that the last n digits are decimals, 0 to 9")
                        .remedy("write, for example, \"implied:2\""));
                }
            },
            None => self.word(
                "records.default.money.unit",
                &wire.unit,
                [
                    ("major", Unit::Major),
                    ("minor", Unit::Minor),
                    ("minor_decimal", Unit::MinorDecimal),
                    ("major_signed_text", Unit::MajorSignedText),
                    ("implied:2", Unit::Implied(2)),
                ],
            )?,
        };
        let decimal = match wire.decimal.as_deref().unwrap_or(".") {
            "auto" if wire.group.as_deref().is_some_and(|group| !group.is_empty()) => {
                return Err(self
                    .refuse("records.default.money.decimal = \"auto\" stands beside a group")
                    .why("auto says that neither sign is declared")
                    .remedy("declare the decimal sign, or leave the group out"));
            }
            "auto" => Decimal::Auto,
            word => Decimal::Is(self.number_format(
                "records.default.money",
                word,
                wire.group.as_deref().unwrap_or_default(),
            )?),
        };
        let mut minus = MinusForms::default();
        for form in wire.minus.iter().flatten() {
            let words = [("brackets", true), ("trailing", false)];
            if self.word("records.default.money.minus", form, words)? {
                minus.brackets = true;
            } else {
                minus.trailing = true;
            }
        }
        Ok(AmountFormat {
            unit,
            decimal,
            minus,
            bare_fraction: wire.bare_fraction.unwrap_or(false),
            currency_sign: wire.currency_sign.clone().filter(|sign| !sign.is_empty()),
            exponents: self.exponents(wire)?,
        })
    }

    /// The signs of written numbers.
    pub(super) fn number_format(
        &self,
        key: &str,
        decimal: &str,
        group_text: &str,
    ) -> Result<NumberFormat, Failure> {
        let group = match (group_text, group_text.chars().next()) {
            ("", _) => None,
            ("NBSP", _) => Some('\u{a0}'),
            (text, Some(group)) if text.chars().count() == 1 && !group.is_alphanumeric() => {
                Some(group)
            }
            _ => {
                return Err(self
                    .refuse(&format!(
                        "{key}.group = \"{group_text}\" is no grouping sign"
                    ))
                    .remedy("write one character: \",\", \".\", \" \", \"'\" or \"NBSP\""));
            }
        };
        let decimal = self.word(
            &format!("{key}.decimal"),
            decimal,
            [(".", '.'), (",", ','), ("auto", '.')],
        )?;
        if group == Some(decimal) {
            return Err(self
                .refuse(&format!("{key}: decimal and group are the same sign"))
                .remedy("declare the two signs that the file uses"));
        }
        Ok(NumberFormat { decimal, group })
    }

    fn exponents(&self, wire: &MoneyWire) -> Result<Exponents, Failure> {
        let mut table = BTreeMap::new();
        let mut enter = |code: &str, exponent: u8| {
            match Currency::parse(code) {
            Some(currency) if currency.exponent().is_some() && exponent <= 4 => {
                table.insert(currency, exponent);
                Ok(())
            }
            _ => Err(self
                .refuse(&format!(
                    "records.default.money.exponents: {code} = {exponent} is no currency with its decimals"
                ))
                .remedy("write ISO 4217 codes and 0 to 4 decimals: exponents = { ISK = 2 }")),
        }
        };
        match &wire.exponents {
            None => {}
            Some(TextOr::Other(entries)) => {
                for (code, exponent) in entries {
                    enter(code, *exponent)?;
                }
            }
            Some(TextOr::Text(text)) => {
                if let Some(entries) = text.strip_prefix("table:") {
                    for entry in entries.split(',') {
                        let (code, exponent) = entry.split_once('=').unwrap_or((entry, ""));
                        enter(code.trim(), exponent.trim().parse().unwrap_or(u8::MAX))?;
                    }
                } else {
                    let set =
                        self.word("records.default.money.exponents", text, Exponents::SETS)?;
                    for (code, exponent) in set {
                        enter(code, *exponent)?;
                    }
                }
            }
        }
        Ok(Exponents(table))
    }

    fn amounts(
        &mut self,
        key: &str,
        wire: Option<&OneOrMany<AmountWire>>,
        currency: Option<&CurrencyFrom>,
        need: Need,
    ) -> Result<Vec<AmountRule>, Failure> {
        let Some(OneOrMany(wires)) = wire else {
            return Ok(Vec::new());
        };
        let is_choice = wires.len() > 1;
        let each = if is_choice { Need::Optional } else { need };
        let mut rules = Vec::new();
        let mut group = Vec::new();
        for wire in wires {
            let rule = self.amount(key, wire, currency, each)?;
            group.push(match &rule.from {
                AmountFrom::Column(column) | AmountFrom::Signed { column, .. } => *column,
                AmountFrom::CreditDebit { credit, .. } => *credit,
            });
            rules.push(rule);
        }
        if rules.is_empty() && need == Need::Always {
            return Err(self
                .refuse(&format!("records.default.money.{key} is an empty list"))
                .remedy("name the column of the amount"));
        }
        if is_choice && (need == Need::Always || self.required.is_none()) {
            self.any_of.push(group);
        }
        Ok(rules)
    }

    pub(super) fn amount(
        &mut self,
        key: &str,
        wire: &AmountWire,
        default_currency: Option<&CurrencyFrom>,
        need: Need,
    ) -> Result<AmountRule, Failure> {
        let is_fee = matches!(key, "fees" | "fee_total");
        let key = format!("records.default.money.{key}");
        if wire.fee_type.is_some() && !is_fee {
            return Err(self
                .refuse(&format!("{key} has a type"))
                .why("only fees have one")
                .remedy("leave it out"));
        }
        let from = match wire {
            AmountWire {
                column: Some(column),
                credit: None,
                debit: None,
                sign_column: None,
                ..
            } => AmountFrom::Column(self.column(column, need)),
            AmountWire {
                column: None,
                credit: Some(credit),
                debit: Some(debit),
                sign_column: None,
                ..
            } => AmountFrom::CreditDebit {
                credit: self.column(credit, need),
                debit: self.column(debit, need),
            },
            AmountWire {
                column: Some(column),
                credit: None,
                debit: None,
                sign_column: Some(sign),
                ..
            } => {
                // For a fee the words may say when it costs: those are positive.
                let (words, says_negative) = match (&wire.negative, &wire.cost_when) {
                    (Some(words), None) => (words, true),
                    (None, Some(words)) if is_fee => (words, false),
                    _ => {
                        return Err(self
                            .refuse(&format!(
                                "{key} has a sign_column and does not say which words are negative"
                            ))
                            .remedy(
                                "write negative = [\"DR\"], or for a fee cost_when = [\"DR\"]",
                            ));
                    }
                };
                let column = self.column(column, need);
                let sign = self.column(sign, need);
                let is_negated = !says_negative;
                let rule = AmountRule {
                    from: AmountFrom::Signed {
                        column,
                        sign,
                        negative: words.clone(),
                    },
                    currency: self.currency(&key, wire, default_currency, need)?,
                    is_negated,
                    rounds: self.rounds(&key, wire)?,
                    when_kind: self
                        .kinds(&format!("{key}.when_kind"), wire.when_kind.as_deref())?,
                    when_status: self
                        .statuses(&format!("{key}.when_status"), wire.when_status.as_deref())?,
                };
                return Ok(rule);
            }
            _ => {
                return Err(self
                    .refuse(&format!("{key} does not say where the number stands"))
                    .why("it is one column, or a credit and a debit column, or a column with a sign_column")
                    .remedy("write { column = \"Amount\", currency = \"Currency\" }"));
            }
        };
        if wire.negative.is_some() || wire.cost_when.is_some() {
            return Err(self
                .refuse(&format!("{key} names words for a sign and no sign_column"))
                .remedy("name the column in which they stand: sign_column = \"DR or CR\""));
        }
        let is_negated = match wire.sign.as_deref() {
            None => false,
            Some(word) if is_fee => self.word(
                &format!("{key}.sign"),
                word,
                [("cost_positive", false), ("cost_negative", true)],
            )?,
            Some(word) => self.word(&format!("{key}.sign"), word, [("inverted", true)])?,
        };
        Ok(AmountRule {
            from,
            currency: self.currency(&key, wire, default_currency, need)?,
            is_negated,
            rounds: self.rounds(&key, wire)?,
            when_kind: self.kinds(&format!("{key}.when_kind"), wire.when_kind.as_deref())?,
            when_status: self
                .statuses(&format!("{key}.when_status"), wire.when_status.as_deref())?,
        })
    }

    /// Whether a number that is finer than a minor unit is rounded to it.
    fn rounds(&self, key: &str, wire: &AmountWire) -> Result<bool, Failure> {
        match wire.finer.as_deref() {
            None => Ok(false),
            Some(word) => self.word(
                &format!("{key}.finer"),
                word,
                [("half_up", true), ("refuse", false)],
            ),
        }
    }

    fn currency(
        &mut self,
        key: &str,
        wire: &AmountWire,
        default: Option<&CurrencyFrom>,
        need: Need,
    ) -> Result<CurrencyFrom, Failure> {
        match (&wire.currency, default) {
            (Some(ColumnWire::Name(name)), _) if name.starts_with("const:") => {
                let code = &name["const:".len()..];
                match Currency::parse(code).filter(|currency| currency.exponent().is_some()) {
                    Some(currency) => Ok(CurrencyFrom::Const(currency)),
                    None => Err(self
                        .refuse(&format!("{key}.currency: \"{code}\" is no currency"))
                        .remedy("write an ISO 4217 code: \"const:EUR\"")),
                }
            }
            (Some(ColumnWire::Name(name)), _) if name == "source:currency" => {
                Ok(CurrencyFrom::Source)
            }
            (Some(column), _) => Ok(CurrencyFrom::Column(self.column(column, need))),
            (None, Some(default)) => Ok(default.clone()),
            (None, None) => Err(self
                .refuse(&format!("{key} has no currency"))
                .why("an amount without a currency is no amount")
                .remedy("name its column, or a fixed one: currency = \"const:EUR\"")),
        }
    }
}
