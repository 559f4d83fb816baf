//! Conversions: what a payment in a foreign currency became in the currency of the balance.
//!
//! A processor that converts tells a payment in the currency of the payer, and the conversion as rows of its own: one takes
//! the money out of that currency, another brings it in. Each names the payment as its parent. Where the rows account for
//! the payment to the last unit, the payment is told with what arrived, and its rows as folded into it.
//!
//! Decisions: this is a reading of rows that stay as they are. What is stored of a payment is what its own row says, so a
//! payment that is read again without its conversion, or a conversion that comes hours later, changes no row: there is no
//! order of events in which folding could look like a change. Sums are made of the rows, which move the money once
//! whichever of them a window holds; the fee stays in the currency in which it was taken. No verdict looks at any of this:
//! to the ladder and the judge a row of a conversion has no parent. Two halves that add up by chance, a part that was
//! converted, or a second payment of the same id: nothing is folded, and the report counts it.

use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

use super::Seen;
use crate::model::operation::{OperationKind, Operations};
use crate::money::{Currency, Money};

/// A payment, refund or other row whose conversion is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folded {
    /// Its row.
    pub operation: usize,
    /// What arrived or left in the currency of the balance, after fees. Positive = our balance grew.
    pub settled: Money,
    /// The rows of its conversion, in their order.
    pub legs: Vec<usize>,
}

/// The conversions among the rows of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conversions {
    /// Those that are whole, in the order of their first rows.
    pub folded: Vec<Folded>,
    /// The rows of each of those that name an operation and do not account for it to the last unit.
    pub partial: Vec<Vec<usize>>,
}

impl Conversions {
    /// What each row was settled with, by row.
    pub fn settled(&self) -> HashMap<usize, Money> {
        let pairs = self.folded.iter();
        pairs.map(|one| (one.operation, one.settled)).collect()
    }

    /// The row into which each row of a conversion is folded, by row.
    pub fn folded_into(&self) -> HashMap<usize, usize> {
        let pairs = self.folded.iter();
        pairs
            .flat_map(|one| one.legs.iter().map(|&leg| (leg, one.operation)))
            .collect()
    }
}

/// Finds the conversions of a batch. `seen` says which rows repeat others or contradict what is stored.
pub fn conversions(operations: &Operations, seen: &[Seen]) -> Conversions {
    let mut found = Conversions::default();
    let is_leg = |row: usize| {
        operations.kind[row] == OperationKind::Conversion
            && seen[row] != Seen::Repeat
            && !operations.parent_id[row].is_empty()
    };
    // Most batches have none: this pass looks at one narrow column.
    let legs: Vec<usize> = (0..operations.len()).filter(|&row| is_leg(row)).collect();
    if legs.is_empty() {
        return found;
    }
    let text = |span| operations.text.get(span);
    let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut first_of: HashMap<(&str, &str), usize> = HashMap::new();
    for leg in legs {
        let key = (
            text(operations.account[leg]),
            text(operations.parent_id[leg]).trim(),
        );
        let first = *first_of.entry(key).or_insert(leg);
        groups.entry(first).or_default().push(leg);
    }
    let mut named: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
    let may_be_converted =
        |row: usize| operations.kind[row] != OperationKind::Conversion && seen[row] != Seen::Repeat;
    for row in (0..operations.len()).filter(|&row| may_be_converted(row)) {
        let account = text(operations.account[row]);
        let ids: HashSet<&str> = [operations.operation_id[row], operations.object_id[row]]
            .into_iter()
            .map(|span| text(span).trim())
            .collect();
        for id in ids {
            if first_of.contains_key(&(account, id)) {
                named.entry((account, id)).or_default().push(row);
            }
        }
    }
    for (first, legs) in groups {
        let key = (
            text(operations.account[first]),
            text(operations.parent_id[first]).trim(),
        );
        let candidates = named.get(&key).map_or(&[][..], Vec::as_slice);
        let whole = only_moving(operations, seen, candidates).and_then(|operation| {
            let settled = settled(operations, seen, operation, &legs)?;
            Some((operation, settled))
        });
        match whole {
            Some((operation, settled)) => found.folded.push(Folded {
                operation,
                settled,
                legs,
            }),
            None => found.partial.push(legs),
        }
    }
    found
}

/// The only one of these rows that moved money.
fn only_moving(operations: &Operations, seen: &[Seen], rows: &[usize]) -> Option<usize> {
    let mut moving = rows
        .iter()
        .copied()
        .filter(|&row| operations.get(row).moved_money());
    let row = moving.next().filter(|_| moving.next().is_none())?;
    is_sound(operations, seen, row).then_some(row)
}

fn is_sound(operations: &Operations, seen: &[Seen], row: usize) -> bool {
    operations.invalid[row].is_empty()
        && operations.ignore[row].is_none()
        && seen[row] != Seen::Changed
}

/// What the rows of a conversion made of an operation; `None` where they do not account for it.
fn settled(operations: &Operations, seen: &[Seen], row: usize, legs: &[usize]) -> Option<Money> {
    let mut moved: Vec<(i128, Currency)> = Vec::with_capacity(legs.len());
    for &leg in legs {
        let data = operations.get(leg);
        if !is_sound(operations, seen, leg) || !data.moved_money() {
            return None;
        }
        moved.push((data.balance_minor(), data.settle_currency));
    }
    let data = operations.get(row);
    arrived(data.balance_minor(), data.settle_currency, &moved)
}

/// Follows money through a conversion: one row takes out exactly what was there, any currency in between takes in and
/// gives out the same amount, and one row is left over, on the same side as what was there.
fn arrived(net_minor: i128, currency: Currency, legs: &[(i128, Currency)]) -> Option<Money> {
    let mut by_currency: BTreeMap<Currency, Vec<i128>> = BTreeMap::new();
    for &(minor, of) in legs {
        by_currency.entry(of).or_default().push(minor);
    }
    if net_minor == 0 || by_currency.remove(&currency)? != [-net_minor] {
        return None;
    }
    let mut left_over = None;
    for (of, minors) in by_currency {
        match minors.as_slice() {
            [minor] if left_over.is_none() && minor.signum() == net_minor.signum() => {
                left_over = Some((*minor, of));
            }
            [taken_in, given_out] if taken_in + given_out == 0 && *taken_in != 0 => {}
            _ => return None,
        }
    }
    let (minor, of) = left_over?;
    Some(Money::new(i64::try_from(minor).ok()?, of))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::intent::Intents;
    use crate::model::operation::{Operation, OperationStatus};
    use crate::model::stored::StoredOperations;
    use crate::model::text::Text;
    use crate::reconcile::recognise::{Recognised, recognise};

    fn currency(code: &str) -> Currency {
        Currency::parse(code).expect("a currency")
    }

    /// `ID KIND MINOR CURRENCY [fee=MINOR] [net=MINOR] [of=PARENT] [account=NAME] [obj=ID] [pending]`, one row a line.
    fn rows(lines: &str) -> Operations {
        let mut batch = Operations::default();
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let word = |name: &str| {
                let found = words.iter().find_map(|word| word.strip_prefix(name));
                found.unwrap_or("")
            };
            let number = |name: &str| word(name).parse::<i64>().ok();
            let status = if words.contains(&"pending") {
                OperationStatus::Pending
            } else {
                OperationStatus::Succeeded
            };
            batch.push(&Operation {
                operation_id: words[0],
                account: word("account="),
                kind: OperationKind::from_word(words[1]).expect("a kind"),
                status,
                amount_minor: words[2].parse().expect("an amount"),
                currency: currency(words[3]),
                settle_currency: currency(words[3]),
                fee_minor: number("fee="),
                net_minor: number("net="),
                parent_id: word("of="),
                object_id: word("obj="),
                ..Operation::EMPTY
            });
        }
        batch
    }

    /// `PAYMENT=MONEY` of each whole conversion, then how many are not.
    fn told(lines: &str) -> String {
        let batch = rows(lines);
        let seen = vec![Seen::New; batch.len()];
        told_of(&batch, &seen)
    }

    fn told_of(batch: &Operations, seen: &[Seen]) -> String {
        let found = conversions(batch, seen);
        let mut told: Vec<String> = found
            .folded
            .iter()
            .map(|one| {
                let id = batch.get(one.operation).operation_id.to_owned();
                format!("{id}={}", one.settled)
            })
            .collect();
        told.push(format!("partial {}", found.partial.len()));
        told.join(", ")
    }

    #[test]
    fn a_payment_is_told_with_what_arrived_only_where_its_rows_account_for_it() {
        const PAYMENT: &str = "T1 charge 10000 GBP fee=390";
        const OUT: &str = "T2 conversion -9610 GBP of=T1";
        const IN: &str = "T3 conversion 12130 USD of=T1";
        for (case, lines, expected) in [
            ("whole", vec![PAYMENT, OUT, IN], "T1=121.30 USD, partial 0"),
            (
                "the net is told",
                vec!["T1 charge 10000 GBP fee=390 net=9610", OUT, IN],
                "T1=121.30 USD, partial 0",
            ),
            (
                "by object",
                vec!["T1|T0006 charge 10000 GBP fee=390 obj=T1", OUT, IN],
                "T1|T0006=121.30 USD, partial 0",
            ),
            ("no conversion", vec![PAYMENT], "partial 0"),
            ("one half", vec![PAYMENT, OUT], "partial 1"),
            ("the other half", vec![PAYMENT, IN], "partial 1"),
            ("no payment", vec![OUT, IN], "partial 1"),
            (
                "rows that name nobody",
                vec![
                    PAYMENT,
                    "T2 conversion -9610 GBP",
                    "T3 conversion 12130 USD",
                ],
                "partial 0",
            ),
            (
                "a part",
                vec![PAYMENT, "T2 conversion -2000 GBP of=T1", IN],
                "partial 1",
            ),
            (
                "one unit more",
                vec![PAYMENT, "T2 conversion -9611 GBP of=T1", IN],
                "partial 1",
            ),
            (
                "both out",
                vec![PAYMENT, OUT, "T3 conversion -12130 USD of=T1"],
                "partial 1",
            ),
            (
                "two arrivals",
                vec![PAYMENT, OUT, IN, "T4 conversion 100 EUR of=T1"],
                "partial 1",
            ),
            (
                "two arrivals in one currency",
                vec![PAYMENT, OUT, IN, "T4 conversion 100 USD of=T1"],
                "partial 1",
            ),
            (
                "taken out twice",
                vec![PAYMENT, OUT, "T4 conversion -9610 GBP of=T1", IN],
                "partial 1",
            ),
            (
                "not decided",
                vec![PAYMENT, OUT, "T3 conversion 12130 USD of=T1 pending"],
                "partial 1",
            ),
            (
                "a pending payment",
                vec!["T1 charge 10000 GBP fee=390 pending", OUT, IN],
                "partial 1",
            ),
            (
                "by way of another currency",
                vec![
                    PAYMENT,
                    OUT,
                    IN,
                    "T4 conversion 11200 EUR of=T1",
                    "T5 conversion -11200 EUR of=T1",
                ],
                "T1=121.30 USD, partial 0",
            ),
            (
                "a way that leaks",
                vec![
                    PAYMENT,
                    OUT,
                    IN,
                    "T4 conversion 11200 EUR of=T1",
                    "T5 conversion -11199 EUR of=T1",
                ],
                "partial 1",
            ),
            (
                "in and back again",
                vec![
                    PAYMENT,
                    OUT,
                    IN,
                    "T4 conversion 9610 GBP of=T1",
                    "T5 conversion -12130 USD of=T1",
                ],
                "partial 1",
            ),
            (
                "a refund",
                vec![
                    "T1 refund -10000 GBP",
                    "T2 conversion 10000 GBP of=T1",
                    "T3 conversion -12700 USD of=T1",
                ],
                "T1=-127.00 USD, partial 0",
            ),
            (
                "two payments of one id",
                vec![
                    "a charge 10000 GBP fee=390 obj=T1",
                    "b charge 10000 GBP fee=390 obj=T1",
                    OUT,
                    IN,
                ],
                "partial 1",
            ),
            (
                "a hold beside it",
                vec![PAYMENT, "h authorization 10000 GBP obj=T1", OUT, IN],
                "T1=121.30 USD, partial 0",
            ),
            (
                "another account",
                vec![PAYMENT, "T2 conversion -9610 GBP of=T1 account=M2", IN],
                "partial 2",
            ),
            (
                "a payment of nothing",
                vec!["T1 charge 390 GBP fee=390", "T2 conversion 0 GBP of=T1", IN],
                "partial 1",
            ),
            (
                "payment and refund, each with its own",
                vec![
                    PAYMENT,
                    OUT,
                    IN,
                    "R1 refund -10000 GBP",
                    "R2 conversion 10000 GBP of=R1",
                    "R3 conversion -12700 USD of=R1",
                ],
                "T1=121.30 USD, R1=-127.00 USD, partial 0",
            ),
        ] {
            assert_eq!(told(&lines.join("\n")), expected, "{case}");
            let turned: Vec<&str> = lines.into_iter().rev().collect();
            let sorted = |told: &str| {
                let mut parts: Vec<String> = told.split(", ").map(str::to_owned).collect();
                parts.sort();
                parts
            };
            assert_eq!(
                sorted(&told(&turned.join("\n"))),
                sorted(expected),
                "{case}, turned"
            );
        }
    }

    #[test]
    fn a_row_that_changed_is_folded_into_nothing() {
        let batch = rows(
            "T1 charge 10000 GBP fee=390\nT2 conversion -9610 GBP of=T1\nT3 conversion 12130 USD of=T1",
        );
        for changed in 0..3 {
            let mut seen = [Seen::Known; 3];
            seen[changed] = Seen::Changed;
            assert_eq!(told_of(&batch, &seen), "partial 1", "{changed}");
        }
    }

    /// What a commit leaves in the store: every row of the batch but repetitions, as it was judged.
    fn stored(recognised: &Recognised) -> StoredOperations {
        let mut stored = StoredOperations::default();
        for (row, data) in recognised.operations.iter().enumerate() {
            if recognised.seen[row] != Seen::Repeat {
                stored.rows.push(&data);
                stored.linked_intent.push(Text::default());
                stored.linked_rule.push(None);
            }
        }
        stored
    }

    #[test]
    fn no_order_of_nights_makes_a_change_of_a_conversion() {
        // As the search tells a payment, as an export does (with its net), and as rows were kept that name no parent.
        let forms = [
            [
                "T1 charge 10000 GBP fee=390",
                "T2 conversion -9610 GBP of=T1",
                "T3 conversion 12130 USD of=T1",
            ],
            [
                "T1 charge 10000 GBP fee=390 net=9610",
                "T2 conversion -9610 GBP net=-9610 of=T1",
                "T3 conversion 12130 USD net=12130 of=T1",
            ],
            [
                "T1 refund -10000 GBP fee=-390 net=-9610",
                "T2 conversion 9610 GBP of=T1",
                "T3 conversion -12130 USD of=T1",
            ],
        ];
        let mut worlds = 0;
        for form in forms {
            // Each night shows any of the rows, in either order; the first may be one of a version that kept no parents.
            for code in 0..8_usize.pow(3) * 4 {
                let (nights, turned, is_old) = (code / 4, code % 2 == 1, code / 2 % 2 == 1);
                let mut memory = StoredOperations::default();
                let mut shown = 0;
                let mut last = String::new();
                for night in 0..3 {
                    let subset = nights / 8_usize.pow(night) % 8;
                    let mut lines: Vec<String> = (0..3)
                        .filter(|row| subset >> row & 1 == 1)
                        .map(|row| form[row].to_owned())
                        .collect();
                    let forgets = is_old && night == 0;
                    if forgets {
                        for line in &mut lines {
                            *line = line.replace(" of=T1", "");
                        }
                    } else {
                        shown |= subset;
                    }
                    if turned {
                        lines.reverse();
                    }
                    let feed = rows(&lines.join("\n"));
                    let recognised = recognise(feed, &memory, &Intents::default());
                    assert!(
                        recognised.changes.is_empty(),
                        "{form:?} {code}: {:?}",
                        recognised.changes
                    );
                    assert!(!recognised.seen.contains(&Seen::Changed), "{form:?} {code}");
                    last = told_of(&recognised.operations, &recognised.seen);
                    memory = stored(&recognised);
                    // The payment itself is known whichever version read it.
                    shown |= subset & 1;
                }
                let money = if form[0].contains("refund") {
                    "-121.30 USD"
                } else {
                    "121.30 USD"
                };
                let expected = match (shown, shown & 6) {
                    (7, _) => format!("T1={money}, partial 0"),
                    (_, 0) => "partial 0".to_owned(),
                    _ => "partial 1".to_owned(),
                };
                assert_eq!(last, expected, "{form:?} {code}");
                worlds += 1;
            }
        }
        assert_eq!(worlds, 3 * 2048);
    }
}
