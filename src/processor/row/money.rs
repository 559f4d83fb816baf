//! The money of a row: amount, net, fees and running totals, in minor units and with the contract's signs.

use super::{Draft, RowReader};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::money::{Currency, Number};
use crate::processor::amount::{AmountReader, Minor};
use crate::processor::moment::Read;
use crate::processor::profile::{
    AmountFrom, AmountRule, BalanceRule, ColumnId, CurrencyFrom, RowNet,
};
use crate::processor::table::{Place, Row, shown};

/// A number with its currency, as a rule of the profile found it.
struct Found {
    column: ColumnId,
    number: Number,
    currency: Currency,
    /// The cell of a currency that is not known.
    unknown_currency: Option<(ColumnId, String)>,
    /// What is finer than a minor unit is rounded to it.
    rounds: bool,
    /// The debit column, where credit and debit both hold something.
    both_sides: Option<ColumnId>,
}

impl RowReader<'_> {
    pub(super) fn money(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
        is_skipped: bool,
    ) -> Result<(), Failure> {
        let rules = &self.profile.money;
        let of = (draft.facts.kind, draft.facts.status);
        let amount = self.found(&rules.amount, of, row, place, amounts)?;
        match &amount {
            Some(found) => {
                draft.facts.currency = self.currency(draft, found);
                draft.facts.amount_minor = self.minor(draft, found, row, place, amounts)?;
            }
            None if is_skipped || rules.amount_is_net_plus_fee => {}
            None => return Err(self.no_amount(place)),
        }
        draft.facts.settle_currency = draft.facts.currency;
        let net = self.found(&rules.settle_net, of, row, place, amounts)?;
        if let Some(found) = &net {
            draft.facts.settle_currency = self.currency(draft, found);
            draft.facts.net_minor = Some(self.minor(draft, found, row, place, amounts)?);
        }
        let gross = match self.found(&rules.settle_gross, of, row, place, amounts)? {
            Some(found) => {
                let currency = self.currency(draft, &found);
                if net.is_none() {
                    draft.facts.settle_currency = currency;
                }
                let minor = self.minor(draft, &found, row, place, amounts)?;
                Some((minor, currency))
            }
            None => None,
        };
        self.fees(draft, row, place, amounts)?;
        match self.balance(draft, row, place, amounts) {
            Ok(balance) => draft.balance_minor = balance,
            // What only tells something more is no reason to refuse a row.
            Err(_) if self.profile.checks.running_balance == Some(BalanceRule::Unverified) => {}
            Err(failure) => return Err(failure),
        }
        if amount.is_none() && !is_skipped {
            let facts = &mut draft.facts;
            let fee = facts.fee_minor.unwrap_or(0);
            let Some(sum) = facts.net_minor.and_then(|net| net.checked_add(fee)) else {
                return Err(self.no_amount(place));
            };
            (facts.amount_minor, facts.currency) = (sum, facts.settle_currency);
        }
        let is_sound = draft.invalid.is_empty();
        let facts = &mut draft.facts;
        let fee = facts.fee_minor.unwrap_or(0);
        let settled = match gross {
            Some((gross, currency)) => (currency == facts.settle_currency).then_some(gross),
            None => (facts.currency == facts.settle_currency).then_some(facts.amount_minor),
        };
        if facts.net_minor.is_none()
            && (gross.is_some() || rules.net_is_amount_less_fee)
            && amount.is_some()
        {
            facts.net_minor = settled.and_then(|settled| settled.checked_sub(fee));
        }
        if rules.fee_is_amount_less_net {
            let net = facts.net_minor;
            facts.fee_minor = settled.and_then(|settled| settled.checked_sub(net?));
        }
        if let (Some(check), Some(settled), Some(net), Some(fee)) = (
            self.profile.checks.row_net,
            settled,
            facts.net_minor,
            facts.fee_minor,
        ) {
            // A row that is kept as invalid is for a person anyway.
            match net_is_off(check, settled, fee, net).filter(|_| is_sound) {
                None => {}
                Some(finding) if check.rejects => {
                    return Err(place
                        .row(&finding)
                        .why("the profile promises net == amount - fee, and a row that breaks it puts every sum in doubt")
                        .remedy("check the signs (a fee is positive when it costs) and the units of the three columns"));
                }
                Some(finding) => draft.object(&format!("the row {finding}")),
            }
        }
        Ok(())
    }

    fn balance(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<Option<i64>, Failure> {
        let of = (draft.facts.kind, draft.facts.status);
        match self.found(&self.profile.money.balance, of, row, place, amounts)? {
            Some(found) => self.minor(draft, &found, row, place, amounts).map(Some),
            None => Ok(None),
        }
    }

    fn no_amount(&self, place: Place<'_>) -> Failure {
        let column = first_column(&self.profile.money.amount[0].from);
        place
            .cell(
                &self.bound.name(column),
                "",
                "is empty where an amount is expected",
            )
            .why("a row without an amount says nothing about money, and no default is safe")
            .remedy("export the file again, or list such rows under skip_rows in the profile")
    }

    fn fees(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        let rules = &self.profile.money;
        let of = (draft.facts.kind, draft.facts.status);
        if let Some(total) = self.found(&rules.fee_total, of, row, place, amounts)? {
            return self.fee(draft, &total, row, place, amounts);
        }
        for rule in &rules.fees {
            if let Some(fee) = self.found(std::slice::from_ref(rule), of, row, place, amounts)? {
                self.fee(draft, &fee, row, place, amounts)?;
            }
        }
        Ok(())
    }

    /// Adds one fee to the fee of the row.
    fn fee(
        &self,
        draft: &mut Draft<'_>,
        found: &Found,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        // A fee of nothing needs no currency; some formats leave it empty then.
        let minor = if found.number.mantissa == 0 {
            0
        } else {
            let currency = self.currency(draft, found);
            let minor = self.minor(draft, found, row, place, amounts)?;
            if currency != draft.facts.settle_currency {
                draft.object(&format!(
                    "column \"{}\" holds a fee in {currency}, and the row settles in {}",
                    self.bound.name(found.column),
                    draft.facts.settle_currency
                ));
            }
            minor
        };
        draft.facts.fee_minor = Some(draft.facts.fee_minor.unwrap_or(0).saturating_add(minor));
        Ok(())
    }

    /// The first of the rules whose cells are not empty, as a number.
    fn found(
        &self,
        rules: &[AmountRule],
        (kind, status): (OperationKind, OperationStatus),
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<Option<Found>, Failure> {
        for rule in rules {
            let is_of_kind = rule.when_kind.is_empty() || rule.when_kind.contains(&kind);
            let is_of_status = rule.when_status.is_empty() || rule.when_status.contains(&status);
            if !is_of_kind || !is_of_status {
                continue;
            }
            let mut both_sides = None;
            let number = match &rule.from {
                AmountFrom::Column(column) => self.number(*column, row, place, amounts)?,
                AmountFrom::CreditDebit { credit, debit } => {
                    let in_credit = self.unsigned(*credit, row, place, amounts)?;
                    let in_debit = self.unsigned(*debit, row, place, amounts)?;
                    let is_money =
                        |number: &Option<Number>| number.is_some_and(|number| number.mantissa != 0);
                    if is_money(&in_credit) && is_money(&in_debit) {
                        both_sides = Some(*debit);
                    }
                    match (in_credit, in_debit) {
                        (None, None) => None,
                        (credit, debit) => Some(difference(credit, debit).ok_or_else(|| {
                            place.row("holds a credit and a debit that are too large")
                        })?),
                    }
                }
                AmountFrom::Signed {
                    column,
                    sign,
                    negative,
                } => match self.unsigned(*column, row, place, amounts)? {
                    None => None,
                    Some(number) => {
                        let word = self.cell(row, *sign);
                        if word.is_empty() && number.mantissa != 0 {
                            return Err(place
                                .cell(
                                    &self.bound.name(*sign),
                                    "",
                                    "is empty where the sign of an amount is expected",
                                )
                                .why("the profile reads the sign from this column")
                                .remedy("export the file again"));
                        }
                        let is_negative = negative.iter().any(|known| known == word);
                        Some(negated(number, is_negative))
                    }
                },
            };
            if let Some(number) = number {
                let (currency, unknown_currency) = match &rule.currency {
                    CurrencyFrom::Const(currency) => (*currency, None),
                    CurrencyFrom::Source => (self.rules.currency.unwrap_or(Currency::NONE), None),
                    CurrencyFrom::Column(column) => {
                        let cell = self.cell(row, *column);
                        match Currency::parse(cell).filter(|code| amounts.is_known(*code)) {
                            Some(currency) => (currency, None),
                            None => (Currency::NONE, Some((*column, cell.to_owned()))),
                        }
                    }
                };
                return Ok(Some(Found {
                    column: first_column(&rule.from),
                    number: negated(number, rule.is_negated),
                    currency,
                    unknown_currency,
                    rounds: rule.rounds,
                    both_sides,
                }));
            }
        }
        Ok(None)
    }

    fn number(
        &self,
        column: ColumnId,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<Option<Number>, Failure> {
        let cell = self.cell(row, column);
        if cell.is_empty() {
            return Ok(None);
        }
        amounts.number(cell, place.line).map(Some).map_err(|error| {
            let (finding, why, remedy) = error.explain_cell(amounts.format, cell);
            place
                .cell(&self.bound.name(column), cell, &finding)
                .why(why)
                .remedy(remedy)
        })
    }

    fn unsigned(
        &self,
        column: ColumnId,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<Option<Number>, Failure> {
        match self.number(column, row, place, amounts)? {
            Some(number) if number.mantissa < 0 => Err(place
                .cell(
                    &self.bound.name(column),
                    self.cell(row, column),
                    "has a sign of its own",
                )
                .why(
                    "the profile takes the sign from credit and debit, or from a column of its own",
                )
                .remedy(
                    "read the column as a signed amount: amount = { column = …, currency = … }",
                )),
            number => Ok(number),
        }
    }

    /// The currency of a number; an unknown one is a finding about the row, and so is an amount on both sides.
    fn currency(&self, draft: &mut Draft<'_>, found: &Found) -> Currency {
        if let Some(debit) = found.both_sides {
            draft.object(&format!(
                "columns \"{}\" and \"{}\" both hold an amount",
                self.bound.name(found.column),
                self.bound.name(debit)
            ));
        }
        if let Some((column, written)) = &found.unknown_currency {
            draft.object(&format!(
                "column \"{}\" holds {}, which is no currency with minor units",
                self.bound.name(*column),
                shown(written)
            ));
        }
        found.currency
    }

    fn minor(
        &self,
        draft: &mut Draft<'_>,
        found: &Found,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<i64, Failure> {
        let read = if found.rounds {
            amounts.rounded(found.number, found.currency)
        } else {
            amounts.minor(found.number, found.currency)
        };
        match read {
            Ok(Minor::Exact(minor) | Minor::NoCurrency(minor)) => Ok(minor),
            Ok(Minor::Rest(minor)) => {
                draft.object(&format!(
                    "{} in column \"{}\" leaves a rest below the minor unit of {}",
                    shown(self.cell(row, found.column)),
                    self.bound.name(found.column),
                    found.currency
                ));
                Ok(minor)
            }
            Err(error) => {
                let (finding, why, remedy) = error.explain(amounts.format);
                Err(place
                    .cell(
                        &self.bound.name(found.column),
                        self.cell(row, found.column),
                        &finding,
                    )
                    .why(why)
                    .remedy(remedy))
            }
        }
    }

    pub(super) fn derived_refund(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<(), Failure> {
        let Some(rule) = &self.profile.derived_refund else {
            return Ok(());
        };
        let Some(total) = self.found(
            std::slice::from_ref(&rule.total),
            (draft.facts.kind, draft.facts.status),
            row,
            place,
            amounts,
        )?
        else {
            return Ok(());
        };
        if total.number.mantissa < 0 {
            return Err(place
                .cell(
                    &self.bound.name(total.column),
                    self.cell(row, total.column),
                    "is negative",
                )
                .why("a running total of refunds is read without a sign")
                .remedy("check the column, or export the file again"));
        }
        if total.number.mantissa > 0 {
            let currency = self.currency(draft, &total);
            if currency != draft.facts.currency {
                draft.object(&format!(
                    "column \"{}\" holds refunds in {currency}, and the payment is in {}",
                    self.bound.name(total.column),
                    draft.facts.currency
                ));
            }
        }
        let minor = self.minor(draft, &total, row, place, amounts)?;
        draft.facts.refund_total_minor = Some(minor);
        let at = match &rule.at {
            Some(at) => self.time(at, row, place)?,
            None => None,
        };
        draft.facts.refunded_at = match at {
            Some(Read::At(at)) => Some(at),
            Some(Read::Unclear(at, _)) => {
                draft.object("the time of its refund is one that the clocks of its zone skipped or showed twice");
                Some(at)
            }
            None => None,
        };
        Ok(())
    }
}

/// What a row says whose net is not amount − fee.
fn net_is_off(check: RowNet, settled: i64, fee: i64, net: i64) -> Option<String> {
    if check.only_where_net && net == 0 {
        return None;
    }
    let off = i128::from(net) - (i128::from(settled) - i128::from(fee));
    (off.abs() > i128::from(check.tolerance_minor)).then(|| {
        format!("has a net of {net} where amount {settled} - fee {fee} is expected (minor units)")
    })
}

fn first_column(from: &AmountFrom) -> ColumnId {
    match from {
        AmountFrom::Column(column)
        | AmountFrom::CreditDebit { credit: column, .. }
        | AmountFrom::Signed { column, .. } => *column,
    }
}

fn negated(number: Number, is_negated: bool) -> Number {
    Number {
        mantissa: if is_negated {
            -number.mantissa
        } else {
            number.mantissa
        },
        ..number
    }
}

/// Credit − debit; what is missing counts as nothing.
fn difference(credit: Option<Number>, debit: Option<Number>) -> Option<Number> {
    let zero = Number {
        mantissa: 0,
        scale: 0,
    };
    let (credit, debit) = (credit.unwrap_or(zero), debit.unwrap_or(zero));
    let scale = credit.scale.max(debit.scale);
    let scaled = |number: Number| {
        number
            .mantissa
            .checked_mul(10_i128.checked_pow(scale - number.scale)?)
    };
    Some(Number {
        mantissa: scaled(credit)?.checked_sub(scaled(debit)?)?,
        scale,
    })
}
