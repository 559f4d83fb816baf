//! The money of an unknown file: which columns, how written, in which unit, with which sign.

use super::shape::{self, Shape, Writing};
use super::{Choice, Draft, OPEN, Sureness, words};
use crate::money::{Currency, Number};
use crate::processor::generic::quoted;
use crate::processor::table::shown;

/// The columns of a file's money.
struct Columns {
    amount: Option<Choice>,
    /// Credit and debit, in place of one amount.
    pair: Option<(usize, usize)>,
    currency: Option<Choice>,
    fee: Option<Choice>,
    net: Option<Choice>,
}

impl Columns {
    fn all(&self) -> Vec<usize> {
        let choices = [&self.amount, &self.fee, &self.net];
        let mut all: Vec<usize> = choices
            .into_iter()
            .flatten()
            .map(|choice| choice.column)
            .collect();
        if let Some((credit, debit)) = self.pair {
            all.extend([credit, debit]);
        }
        all
    }
}

impl Draft {
    pub(super) fn money(&mut self) -> String {
        let columns = self.columns();
        let mut text = String::from("[records.default.money]\n");
        let writing = self.write(&columns, &mut text);
        let currency = match &columns.currency {
            Some(choice) => quoted(&self.name(choice.column)),
            None => {
                self.ask("records.default.money.amount.currency", "no column holds currencies; in which currency is the file? Write \"const:EUR\"");
                quoted(&format!("const:{OPEN}"))
            }
        };
        let (from, comment) = match (&columns.pair, &columns.amount) {
            (Some((credit, debit)), _) => (
                format!(
                    "credit = {}, debit = {}",
                    quoted(&self.name(*credit)),
                    quoted(&self.name(*debit))
                ),
                "# certain: two columns of that name, of which each row fills one".to_owned(),
            ),
            (None, Some(choice)) => (
                format!("column = {}", quoted(&self.name(choice.column))),
                choice.comment(),
            ),
            (None, None) => (format!("column = \"{OPEN}\""), String::new()),
        };
        text.push_str(&format!(
            "amount = {{ {from}, currency = {currency} }}  {comment}\n"
        ));
        if let Some(writing) = writing {
            self.ask_for_fine_amounts(&columns, writing);
        }
        let proof = writing.and_then(|writing| self.fee_proof(&columns, writing));
        if let Some(fee) = &columns.fee {
            let (sign, why) = match proof {
                Some((sign, rows)) => (
                    sign,
                    format!(
                        "{}; its sign follows from net in {rows} rows",
                        fee.comment()
                    ),
                ),
                None => {
                    let question = format!(
                        "is a fee that costs you written positive (\"cost_positive\") or negative (\"cost_negative\")? Column {} holds {}",
                        shown(&self.name(fee.column)),
                        self.example(fee.column)
                    );
                    self.ask("records.default.money.fee_total.sign", &question);
                    (OPEN, fee.comment())
                }
            };
            text.push_str(&format!(
                "fee_total = {{ column = {}, currency = {currency}, sign = \"{sign}\" }}  {why}\n",
                quoted(&self.name(fee.column))
            ));
        }
        if let Some(net) = &columns.net {
            text.push_str(&format!(
                "settle_net = {{ column = {}, currency = {currency} }}  {}\n",
                quoted(&self.name(net.column)),
                net.comment()
            ));
        }
        if let Some((_, rows)) = proof {
            text.push_str(&format!(
                "\n[[checks]]  # certain: it holds in all {rows} rows that have the three figures\nscope = \"row\"\nrule = \"net == amount - fee\"\nwhen = \"net != 0\"\n"
            ));
        }
        self.ask_for_signs(&columns);
        text
    }

    fn columns(&mut self) -> Columns {
        // Fee and net first: "Net amount" is no amount.
        let mut take = |field| {
            let choice = self.choose(field);
            if let Some(choice) = &choice {
                self.used.insert(choice.column);
            }
            choice
        };
        let net = take(&words::NET);
        let fee = take(&words::FEE);
        let (credit, debit) = (take(&words::CREDIT), take(&words::DEBIT));
        let pair = match (credit, debit) {
            (Some(credit), Some(debit)) => Some((credit.column, debit.column)),
            _ => None,
        };
        let amount = match pair {
            Some(_) => None,
            None => self.need(
                &words::AMOUNT,
                "records.default.money.amount",
                "It is what the customer paid",
            ),
        };
        let currency = match self.choose(&words::CURRENCY) {
            Some(choice) => Some(choice),
            None => self.only_currency(),
        };
        if let Some(choice) = &currency {
            self.used.insert(choice.column);
            if choice.sureness == Sureness::Guess {
                let question = format!(
                    "is it column {}? {}",
                    shown(&self.name(choice.column)),
                    choice.why
                );
                self.ask("records.default.money.amount.currency", &question);
            }
        }
        Columns {
            amount,
            pair,
            currency,
            fee,
            net,
        }
    }

    /// The one column that holds currencies, whatever it is called.
    fn only_currency(&self) -> Option<Choice> {
        let all: Vec<usize> = (0..self.shapes.len())
            .filter(|column| self.shapes[*column] == Shape::Currency)
            .collect();
        match all[..] {
            [column] => Some(Choice {
                column,
                sureness: Sureness::Likely,
                why: "the only column with currency codes".to_owned(),
            }),
            _ => None,
        }
    }

    /// Unit, decimal sign and grouping; the format that reads every amount, where there is one.
    fn write(&mut self, columns: &Columns, text: &mut String) -> Option<(char, Option<char>)> {
        let cells: Vec<String> = columns
            .all()
            .into_iter()
            .flat_map(|column| {
                self.sheet
                    .values(column)
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            })
            .collect();
        let values = cells.iter().map(String::as_str);
        let writing = shape::writing(&values);
        let has_group = |group: Option<char>| {
            group.is_some_and(|sign| cells.iter().any(|cell| cell.contains(sign)))
        };
        // Only a number that can be read in one way shows that there are decimals.
        let is_whole = match &writing {
            Writing::Is(decimal, group) => values.clone().all(|value| {
                let number: Option<Number> = shape::number(value, (*decimal, *group));
                number.is_some_and(|number| number.scale == 0)
            }),
            Writing::Unclear(_) => true,
            Writing::None(_) => false,
        };
        if is_whole {
            text.push_str(&format!("unit = \"{OPEN}\"\n"));
            let example = values.clone().next().unwrap_or("0");
            let question = format!(
                "no amount surely has decimals; is {} so many whole units of the currency (\"major\"), minor units such as cents (\"minor\"), or a number whose last two digits are always decimals (\"implied:2\")?",
                shown(example)
            );
            self.ask("records.default.money.unit", &question);
        } else {
            text.push_str("unit = \"major\"  # certain: amounts have decimals\n");
        }
        let told = match writing {
            Writing::Is(_, group) if is_whole && !has_group(group) => {
                text.push_str("decimal = \".\"  # no amount needs one; another sign is refused when it comes\n");
                Some(('.', None))
            }
            Writing::Is(decimal, group) => {
                text.push_str(&format!(
                    "decimal = \"{decimal}\"  # certain: no other sign reads every amount\n"
                ));
                if let Some(group) = group {
                    text.push_str(&format!(
                        "group = {}  # certain: it stands between thousands\n",
                        quoted(&group.to_string())
                    ));
                }
                Some((decimal, group))
            }
            Writing::Unclear(value) => {
                text.push_str(&format!("decimal = \"{OPEN}\"\n"));
                let question = format!(
                    "{} can be read in two ways; which sign separates decimals, \".\" or \",\"? Where the other one groups thousands, add group",
                    shown(&value)
                );
                self.ask("records.default.money.decimal", &question);
                None
            }
            Writing::None(value) => {
                text.push_str(&format!("decimal = \"{OPEN}\"\n"));
                let question = format!(
                    "no one way of writing numbers reads every amount; how is {} meant?",
                    shown(&value)
                );
                self.ask("records.default.money.decimal", &question);
                None
            }
        };
        self.dress(&cells, text);
        told
    }

    fn dress(&mut self, cells: &[String], text: &mut String) {
        let (mut minus, mut signs) = (Vec::new(), Vec::new());
        for cell in cells {
            let dress = shape::undressed(cell).1;
            for (is_there, form) in [
                (dress.brackets, "\"brackets\""),
                (dress.trailing, "\"trailing\""),
            ] {
                if is_there && !minus.contains(&form) {
                    minus.push(form);
                }
            }
            if let Some(sign) = dress.sign.filter(|sign| !signs.contains(sign)) {
                signs.push(sign);
            }
        }
        if !minus.is_empty() {
            text.push_str(&format!(
                "minus = [{}]  # likely: negative amounts stand so\n",
                minus.join(", ")
            ));
        }
        match signs[..] {
            [] => {}
            [sign] => text.push_str(&format!(
                "currency_sign = \"{sign}\"  # certain: it stands in the amounts\n"
            )),
            _ => {
                text.push_str(&format!("currency_sign = \"{OPEN}\"\n"));
                self.ask(
                    "records.default.money.currency_sign",
                    "amounts carry more than one currency sign; export each currency by itself",
                );
            }
        }
    }

    /// Asks where an amount has more decimals than the currency of its row: one of the two columns is not what it seems.
    fn ask_for_fine_amounts(&mut self, columns: &Columns, writing: (char, Option<char>)) {
        let (Some(amount), Some(currency)) = (&columns.amount, &columns.currency) else {
            return;
        };
        let is_fine = |cells: &[String]| {
            let number = shape::number(&cells[amount.column], writing)?;
            let exponent = Currency::parse(&cells[currency.column])?.exponent()?;
            Some(number.scale > u32::from(exponent))
        };
        let fine = self
            .sheet
            .rows
            .iter()
            .find(|(_, cells)| is_fine(cells) == Some(true));
        if let Some((line, cells)) = fine {
            let question = format!(
                "line {line} has {} in column {} and {} in column {}, which has fewer decimals; is the amount in another currency?",
                shown(&cells[amount.column]),
                shown(&self.name(amount.column)),
                shown(&cells[currency.column]),
                shown(&self.name(currency.column))
            );
            self.ask("records.default.money.amount.currency", &question);
        }
    }

    /// The sign of fees that the nets of all rows prove, and in how many rows; rows without a fee prove nothing.
    fn fee_proof(
        &self,
        columns: &Columns,
        writing: (char, Option<char>),
    ) -> Option<(&'static str, usize)> {
        let (Some(fee), Some(net)) = (&columns.fee, &columns.net) else {
            return None;
        };
        let amount = columns.amount.as_ref()?.column;
        let (mut positive, mut negative) = (0, 0);
        for (_, cells) in &self.sheet.rows {
            let part = |column: usize| billionths(&cells[column], writing);
            let (Some(amount), Some(fee), Some(net)) =
                (part(amount), part(fee.column), part(net.column))
            else {
                continue;
            };
            if net == 0 || fee == 0 {
                continue;
            }
            match (amount - fee == net, amount + fee == net) {
                (true, false) => positive += 1,
                (false, true) => negative += 1,
                _ => return None,
            }
        }
        match (positive, negative) {
            (rows, 0) if rows > 0 => Some(("cost_positive", rows)),
            (0, rows) if rows > 0 => Some(("cost_negative", rows)),
            _ => None,
        }
    }

    /// Asks where rows that take money from us are written without a minus.
    fn ask_for_signs(&mut self, columns: &Columns) {
        let Some(amount) = columns.amount.as_ref().map(|choice| choice.column) else {
            return;
        };
        let Some(kinds) = self.choose(&words::KIND).map(|choice| choice.column) else {
            return;
        };
        let takes = |word: &str| matches!(words::kind(word), Some("refund" | "dispute" | "payout"));
        let unsigned = self.sheet.rows.iter().find(|(_, cells)| {
            takes(&cells[kinds]) && !cells[amount].is_empty() && !shape::is_negative(&cells[amount])
        });
        if let Some((line, cells)) = unsigned {
            let question = format!(
                "line {line} is {} of {} without a minus, and a refund, dispute or payout makes your balance smaller; read the sign from the kind: amount = {{ column = {}, sign_column = {}, negative = [the words that take money], currency = … }}",
                shown(&cells[kinds]),
                shown(&cells[amount]),
                quoted(&self.name(amount)),
                quoted(&self.name(kinds))
            );
            self.ask("records.default.money.amount", &question);
        }
    }
}

/// A cell in billionths of the currency with its sign: fine enough to add, whatever the currency.
fn billionths(cell: &str, writing: (char, Option<char>)) -> Option<i128> {
    let number = shape::number(cell, writing)?;
    let value = number
        .mantissa
        .checked_mul(10_i128.pow(9_u32.checked_sub(number.scale)?))?;
    Some(if shape::is_negative(cell) {
        -value.abs()
    } else {
        value
    })
}
