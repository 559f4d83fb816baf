//! Reading `intents.csv`: what our own software meant to happen.
//!
//! Decisions: the file is ours, so an unknown word in it is a mistake to be corrected, not a finding to be kept: it
//! rejects the file with the known words listed. A local amount that no minor unit can hold is a finding about the row,
//! since it is in the company's own database and will be there tomorrow.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::path::Path;

use hashbrown::HashTable;

use super::amount::{AmountUnit, IntentsRules, NoAmount, local_amount};
use super::object;
use crate::exit::Failure;
use crate::file::{read_unchanged, size};
use crate::meter::Meter;
use crate::model::intent::{Intent, IntentKind, IntentStatus, Intents};
use crate::money::Currency;
use crate::processor::encoding::{self, Encoding};
use crate::processor::header::{Header, RowWidth};
use crate::processor::table::{Far, Place, Records, Row, shown, trim};
use crate::processor::{is_exponent_notation, is_plausible, rfc3339};
use crate::time::Instant;

/// Reads the file at a path; `name` stands in errors. Fails as [`decode`], and where the file cannot be read.
/// The meter counts bytes.
pub fn read(
    rules: &IntentsRules,
    name: &str,
    path: &Path,
    meter: &Meter,
) -> Result<Intents, Failure> {
    let size = size(path);
    meter.expect(size);
    let bytes = read_unchanged(name, path)?;
    meter.expect((bytes.len() as u64).saturating_sub(size));
    decode(rules, name, &bytes, meter)
}

/// Reads intents from the bytes of a file; `file_name` stands in errors.
///
/// Rejects the file as a whole where it contradicts the format, where a word is not known, an amount is negative or an id
/// stands twice. The error's `state` is left to the caller.
pub fn decode(
    rules: &IntentsRules,
    file_name: &str,
    bytes: &[u8],
    meter: &Meter,
) -> Result<Intents, Failure> {
    let text = encoding::decode(Encoding::Auto, file_name, bytes)?;
    let mut far = Far::new(meter, bytes.len(), text.len());
    let mut records = Records::new(file_name, &text, b',', Some(b'"'));
    let columns = Columns::find(*rules, file_name, &mut records)?;
    let mut intents = Intents::default();
    intents.text.reserve(text.len());
    let mut lines = Vec::new();
    let mut by_id: HashTable<(u64, usize)> = HashTable::new();
    let hasher = RandomState::new();
    while records.advance()? {
        far.pass(&records);
        let (row, place) = (records.row(), records.place());
        if row.is_blank() {
            continue;
        }
        (columns.header.check(&records, RowWidth::Exact)).map_err(|failure| {
            failure
                .why("every row has as many fields as the header")
                .remedy("export the file again; a value that holds a comma stands in quotes")
        })?;
        let (intent, invalid) = columns.intent(*rules, row, place)?;
        let id = intent.intent_id;
        let hash = hasher.hash_one(id);
        let is_same = |(_, index): &(u64, usize)| intents.text.get(intents.intent_id[*index]) == id;
        if let Some((_, first)) = by_id.find(hash, is_same) {
            return Err(place
                .cell("intent_id", id, &format!("stands on line {} as well", lines[*first]))
                .why("an id names one intent, and which of the two rows is the right one is not for a reader to guess")
                .remedy("export each intent once"));
        }
        let index = intents.push(&Intent {
            invalid: &invalid,
            ..intent
        });
        by_id.insert_unique(hash, (hash, index), |(hash, _)| *hash);
        lines.push(place.line);
    }
    far.end();
    Ok(intents)
}

/// The columns of a file, by position.
struct Columns {
    header: Header,
    amount_name: &'static str,
    intent_id: usize,
    kind: usize,
    amount: usize,
    currency: usize,
    status: usize,
    created_at: usize,
    idempotency_key: Option<usize>,
    processor_ref: Option<usize>,
    attempt: Option<usize>,
    parent_intent_id: Option<usize>,
    reference: Option<usize>,
    source: Option<usize>,
    first_attempt_at: Option<usize>,
}

impl Columns {
    fn find(
        rules: IntentsRules,
        file: &str,
        records: &mut Records<'_>,
    ) -> Result<Columns, Failure> {
        let header = loop {
            if !records.advance()? {
                return Err(
                    Failure::rejected(format!("{file}: there is no header in the file"))
                        .why("every line of it is blank")
                        .remedy("export the file again; a file without rows still has its header"),
                );
            }
            if !records.row().is_blank() {
                break Header::named(records.row(), &BTreeMap::new());
            }
        };
        let amount_name = match rules.amount_unit {
            AmountUnit::Minor => "amount_minor",
            AmountUnit::Major => "amount",
        };
        let mut missing = Vec::new();
        let mut required = |name: &str| -> Result<usize, Failure> {
            let position = header.find(file, name, None)?;
            if position.is_none() {
                missing.push(name.to_owned());
            }
            Ok(position.unwrap_or(0))
        };
        let intent_id = required("intent_id")?;
        let kind = required("kind")?;
        let amount = required(amount_name)?;
        let currency = required("currency")?;
        let status = required("status")?;
        let created_at = required("created_at")?;
        if !missing.is_empty() {
            let reader = match rules.amount_unit {
                AmountUnit::Minor => "intents are read from them",
                AmountUnit::Major => "intents are read from them (amount_unit = \"major\")",
            };
            let failure = header.missing(file, &missing, reader, "separate it by commas");
            let (other_name, setting) = match rules.amount_unit {
                AmountUnit::Minor => ("amount", "major"),
                AmountUnit::Major => ("amount_minor", "minor"),
            };
            let has_other_unit = header.names().iter().any(|name| name == other_name);
            return Err(if missing == [amount_name] && has_other_unit {
                failure.remedy(format!(
                    "the file has \"{other_name}\": set amount_unit = \"{setting}\" under [intents]"
                ))
            } else {
                failure
            });
        }
        let optional = |name: &str| header.find(file, name, None);
        Ok(Columns {
            amount_name,
            intent_id,
            kind,
            amount,
            currency,
            status,
            created_at,
            idempotency_key: optional("idempotency_key")?,
            processor_ref: optional("processor_ref")?,
            attempt: optional("attempt")?,
            parent_intent_id: optional("parent_intent_id")?,
            reference: optional("reference")?,
            source: optional("source")?,
            first_attempt_at: optional("first_attempt_at")?,
            header,
        })
    }

    /// One row, and why it cannot be used (empty = it can).
    fn intent<'r>(
        &self,
        rules: IntentsRules,
        row: Row<'r>,
        place: Place<'_>,
    ) -> Result<(Intent<'r>, String), Failure> {
        let mut invalid = String::new();
        let intent_id = id(row, place, "intent_id", Some(self.intent_id))?;
        if intent_id.is_empty() {
            return Err(place
                .cell("intent_id", "", "is empty")
                .why("a row without an id cannot be linked or repaired")
                .remedy("export the ids"));
        }
        let kind = kind(place, trim(row.get(self.kind)))?;
        let status = status(place, trim(row.get(self.status)), kind)?;
        let created_at = instant(place, "created_at", trim(row.get(self.created_at)))?;
        if !is_plausible(created_at) {
            object(
                &mut invalid,
                &format!(
                    "{} in column \"created_at\" lies outside the years 2000 to 2099",
                    shown(trim(row.get(self.created_at)))
                ),
            );
        }
        let (amount_minor, currency, written_amount) =
            self.amount(rules, row, place, &mut invalid)?;
        let attempt = match optional(row, self.attempt) {
            "" => None,
            text => Some(text.parse().map_err(|_| {
                place
                    .cell("attempt", text, "is no number of an attempt")
                    .why("attempts are counted in whole numbers")
                    .remedy("write 1, 2, 3 …, or leave it empty")
            })?),
        };
        let first_attempt_at = match optional(row, self.first_attempt_at) {
            "" => None,
            text => Some(instant(place, "first_attempt_at", text)?),
        };
        let intent = Intent {
            intent_id,
            idempotency_key: id(row, place, "idempotency_key", self.idempotency_key)?,
            kind,
            amount_minor,
            currency,
            status,
            created_at,
            processor_ref: id(row, place, "processor_ref", self.processor_ref)?,
            attempt,
            parent_intent_id: id(row, place, "parent_intent_id", self.parent_intent_id)?,
            reference: id(row, place, "reference", self.reference)?,
            source: optional(row, self.source),
            first_attempt_at,
            written_amount,
            ..Intent::EMPTY
        };
        Ok((intent, invalid))
    }

    /// Minor units, the currency, and the amount as it was written where rounding changed it.
    fn amount<'r>(
        &self,
        rules: IntentsRules,
        row: Row<'r>,
        place: Place<'_>,
        invalid: &mut String,
    ) -> Result<(i64, Currency, &'r str), Failure> {
        let written = trim(row.get(self.amount));
        let refuse = |finding: &str, why: &str, remedy: &str| {
            place
                .cell(self.amount_name, written, finding)
                .why(why)
                .remedy(remedy)
        };
        let amount =
            local_amount(rules, written, trim(row.get(self.currency))).map_err(|why| match why {
                NoAmount::Empty => refuse(
                    "is empty where an amount is expected",
                    "an intent without an amount cannot be compared, and no default is safe",
                    "export the amounts",
                ),
                NoAmount::Unreadable => refuse(
                    "cannot be read as an amount",
                    match rules.amount_unit {
                        AmountUnit::Minor => "the column holds whole minor units, in digits only",
                        AmountUnit::Major => {
                            "amounts are digits with a decimal point, without grouping or currency sign"
                        }
                    },
                    match rules.amount_unit {
                        AmountUnit::Minor => "export the amounts so: 1050 for 10.50 EUR",
                        AmountUnit::Major => "export the amounts so: 1050.00",
                    },
                ),
                NoAmount::Negative => refuse(
                    "is negative",
                    "the kind of an intent gives the direction, its amount is positive",
                    "export the amount without its sign",
                ),
                NoAmount::Fraction => refuse(
                    "is no whole number",
                    "the column holds whole minor units, which have no decimals",
                    "set amount_unit = \"major\" under [intents] if the amounts are in major units",
                ),
                NoAmount::TooLarge => refuse(
                    "is too large for an amount",
                    "amounts are kept in 64 bits of minor units",
                    "check the unit of the column",
                ),
            })?;
        if !amount.finding.is_empty() {
            object(invalid, &amount.finding);
        }
        Ok((amount.minor, amount.currency, amount.written))
    }
}

/// The trimmed cell of a column that may be missing; empty then.
fn optional(row: Row<'_>, position: Option<usize>) -> &str {
    position.map_or("", |position| trim(row.get(position)))
}

/// The same, where the text is an id.
fn id<'r>(
    row: Row<'r>,
    place: Place<'_>,
    column: &str,
    position: Option<usize>,
) -> Result<&'r str, Failure> {
    let id = optional(row, position);
    if is_exponent_notation(id) {
        return Err(place
            .cell(column, id, "is an id in exponent notation")
            .why("a spreadsheet has turned the id into a number and lost its digits")
            .remedy("export the file again and do not open it in a spreadsheet before"));
    }
    place.assert_key(column, id)?;
    Ok(id)
}

fn kind(place: Place<'_>, word: &str) -> Result<IntentKind, Failure> {
    IntentKind::from_word(word).ok_or_else(|| {
        let known: Vec<&str> = IntentKind::ALL.iter().map(|kind| kind.as_str()).collect();
        place
            .cell("kind", word, "is not a kind of intent")
            .why(format!("the known kinds are {}", known.join(", ")))
            .remedy("export one of these words; case counts")
    })
}

fn status(place: Place<'_>, word: &str, kind: IntentKind) -> Result<IntentStatus, Failure> {
    let fits = |status: IntentStatus| {
        kind == IntentKind::Dispute || !matches!(status, IntentStatus::Won | IntentStatus::Lost)
    };
    let status = IntentStatus::from_word(word);
    if let Some(status) = status
        && fits(status)
    {
        return Ok(status);
    }
    let known: Vec<&str> = IntentStatus::ALL
        .iter()
        .filter(|status| fits(**status))
        .map(|status| status.as_str())
        .collect();
    let finding = match status {
        None => "is not a status of an intent",
        Some(_) => "is a status of disputes only",
    };
    Err(place
        .cell("status", word, finding)
        .why(format!(
            "the known statuses of a {kind} are {}",
            known.join(", ")
        ))
        .remedy("export one of these words; case counts"))
}

fn instant(place: Place<'_>, column: &str, text: &str) -> Result<Instant, Failure> {
    rfc3339(text).ok_or_else(|| {
        place
            .cell(column, text, "cannot be read as a time")
            .why("times are RFC 3339 with an offset; no zone is assumed for a time without one")
            .remedy("export it so: 2026-03-09T09:00:00Z or 2026-03-09T10:00:00+01:00")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intents::amount::Rounding;

    const HEAD: &str = "intent_id,kind,amount_minor,currency,status,created_at,attempt,note\n";

    fn row(
        kind: &str,
        amount: &str,
        currency: &str,
        status: &str,
        at: &str,
        attempt: &str,
    ) -> String {
        format!("{HEAD}A,{kind},{amount},{currency},{status},{at},{attempt},x\n")
    }

    fn read_minor(text: impl AsRef<[u8]>) -> Result<Intents, Failure> {
        decode(
            &IntentsRules::default(),
            "i.csv",
            text.as_ref(),
            &Meter::default(),
        )
    }

    fn refused(text: impl AsRef<[u8]>, wanted: &[&str]) {
        let failure = read_minor(text).expect_err("rejected");
        for want in wanted {
            assert!(failure.to_string().contains(want), "{want:?} in {failure}");
        }
        assert!(
            !failure.why.is_empty() && !failure.remedy.is_empty(),
            "{failure}"
        );
        assert!(failure.state.is_empty());
    }

    const AT: &str = "2026-03-09T09:00:00Z";

    #[test]
    fn an_intent_is_read_as_it_says_and_white_space_never_counts() {
        let text = "reference,first_attempt_at,source,parent_intent_id,processor_ref,idempotency_key,attempt,created_at,status,currency,amount_minor,kind,intent_id\n\
            \" R\u{a0}\",2026-03-09T09:00:01+00:00,shop,P,ch_1,k-1,2,2026-03-09T10:00:00+01:00,pending,EUR,4200,charge,\" 007\n\"\n";
        let intents = read_minor(format!("\u{feff}{text}")).expect("read");
        let intent = intents.get(0);
        assert_eq!(
            (
                intent.intent_id,
                intent.idempotency_key,
                intent.processor_ref
            ),
            ("007", "k-1", "ch_1")
        );
        assert_eq!(
            (intent.parent_intent_id, intent.reference, intent.source),
            ("P", "R", "shop")
        );
        assert_eq!(
            (intent.kind, intent.status),
            (IntentKind::Charge, IntentStatus::Pending)
        );
        assert_eq!(
            (
                intent.amount_minor,
                intent.currency.as_str(),
                intent.attempt
            ),
            (4200, "EUR", Some(2))
        );
        assert_eq!(Some(intent.created_at), Instant::parse(AT));
        assert_eq!(
            intent.first_attempt_at,
            Instant::parse("2026-03-09T09:00:01Z")
        );
        assert_eq!(
            (intent.invalid, intent.written_amount, intent.version),
            ("", "", 1)
        );
    }

    #[test]
    fn optional_columns_may_be_missing_and_others_stand_beside() {
        let intents = read_minor(row("dispute", "0", "EUR", "won", AT, "")).expect("read");
        assert_eq!(
            (intents.get(0).attempt, intents.get(0).status),
            (None, IntentStatus::Won)
        );
        assert!(read_minor(HEAD).expect("read").is_empty());
        assert_eq!(
            read_minor(format!("{HEAD}\n,,,,,,,\n"))
                .expect("read")
                .len(),
            0
        );
    }

    #[test]
    fn a_file_that_contradicts_the_format_is_rejected_with_its_line() {
        for (text, wanted) in [
            (String::new(), &["nothing in the file"][..]),
            ("\n".to_owned(), &["no header"]),
            (
                "intent_id,kind\n".to_owned(),
                &["\"amount_minor\"", "missing"],
            ),
            (
                HEAD.replace("note", "kind"),
                &["\"kind\" stands twice", "2 and 8"],
            ),
            (HEAD.replace(',', ";"), &["separated by \";\""]),
            (
                format!("{HEAD}A,charge\n"),
                &["line 2 has 2 fields where 8"],
            ),
            (
                row("sale", "1", "EUR", "pending", AT, ""),
                &[
                    "i.csv:2",
                    "line 2",
                    "\"sale\"",
                    "charge, refund, payout, dispute",
                ],
            ),
            (
                row("charge", "1", "EUR", "paid", AT, ""),
                &[
                    "\"paid\"",
                    "created, pending, succeeded, failed, canceled, expired",
                ],
            ),
            (
                row("charge", "1", "EUR", "won", AT, ""),
                &["\"won\"", "disputes only"],
            ),
            (
                row("charge", "-1", "EUR", "pending", AT, ""),
                &["\"-1\" is negative"],
            ),
            (
                row("charge", "1.5", "EUR", "pending", AT, ""),
                &["no whole number", "amount_unit"],
            ),
            (
                row("charge", "1,5", "EUR", "pending", AT, ""),
                &["line 2 has 9 fields"],
            ),
            (
                row("charge", "", "EUR", "pending", AT, ""),
                &["amount_minor"],
            ),
            (
                row("charge", "1", "EUR", "pending", "2026-03-09T09:00:00", ""),
                &["created_at", "offset"],
            ),
            (
                row("charge", "1", "EUR", "pending", "", ""),
                &["created_at"],
            ),
            (
                row("charge", "1", "EUR", "pending", AT, "first"),
                &["attempt", "\"first\""],
            ),
            (
                row("charge", "99999999999999999999", "EUR", "pending", AT, ""),
                &["too large"],
            ),
            (
                row("charge", "1", "EUR", "pending", AT, "").replace("A,", "1.2E+22,"),
                &["exponent"],
            ),
            (
                row("charge", "1", "EUR", "pending", AT, "").replace("A,", " ,"),
                &["intent_id", "empty"],
            ),
            (
                format!("{HEAD}A,charge,1,EUR,\"pending"),
                &["line 2 opens a quote"],
            ),
        ] {
            refused(&text, wanted);
        }
        let twice = format!(
            "{}\nB,charge,1,EUR,pending,{AT},,\"x\ny\"\n A,charge,1,EUR,pending,{AT},,\n",
            row("charge", "1", "EUR", "pending", AT, "")
        );
        refused(twice, &["i.csv:6", "line 6", "\"A\" stands on line 2"]);
        refused(b"intent_id\xff", &["0xFF on line 1"]);
    }

    #[test]
    fn the_remedy_speaks_of_this_file_and_of_no_profile() {
        let at = |amount: &str| row("charge", amount, "EUR", "pending", AT, "");
        for (text, wanted) in [
            (
                at("1").replace("amount_minor", "amount"),
                "set amount_unit = \"major\"",
            ),
            (at("10,00"), "a value that holds a comma stands in quotes"),
            (at("\"1,000\""), "1050 for 10.50 EUR"),
            (at(""), "the cell is empty where an amount is expected"),
            (at("€1"), "whole minor units"),
            (
                row("", "1", "EUR", "pending", AT, ""),
                "the cell is not a kind",
            ),
        ] {
            let failure = read_minor(&text).expect_err("rejected").to_string();
            assert!(failure.contains(wanted), "{wanted}: {failure}");
            assert!(!failure.contains("profile"), "{failure}");
        }
    }

    #[test]
    fn a_readable_row_that_cannot_be_used_keeps_its_evidence() {
        let of = |text: String| read_minor(text).expect("read").get(0).invalid.to_owned();
        assert!(of(row("charge", "5", "EURO", "pending", AT, "")).contains("\"EURO\""));
        assert!(
            of(row(
                "charge",
                "5",
                "EUR",
                "pending",
                "1970-01-01T00:00:00Z",
                ""
            ))
            .contains("outside the years")
        );
        let intents = read_minor(row("charge", "5", "", "pending", AT, "")).expect("read");
        assert_eq!(
            (intents.get(0).amount_minor, intents.get(0).currency),
            (5, Currency::NONE)
        );
    }

    #[test]
    fn an_amount_finer_than_a_minor_unit_is_rounded_only_where_declared() {
        let text = |amount: &str| {
            row("charge", amount, "EUR", "pending", AT, "").replace("amount_minor", "amount")
        };
        for (rounding, amount, minor, written, is_invalid) in [
            (Rounding::Exact, "14.34", 1434, "", false),
            (Rounding::Exact, "14.340", 1434, "", false),
            (Rounding::Exact, "14.345", 1435, "", true),
            (Rounding::HalfUp, "14.345", 1435, "14.345", false),
            (Rounding::HalfUp, "876.50", 87_650, "", false),
        ] {
            let rules = IntentsRules {
                amount_unit: AmountUnit::Major,
                rounding,
            };
            let intents =
                decode(&rules, "i.csv", text(amount).as_bytes(), &Meter::default()).expect("read");
            let intent = intents.get(0);
            assert_eq!(
                (intent.amount_minor, intent.written_amount),
                (minor, written),
                "{amount}"
            );
            assert_eq!(
                intent.invalid.contains("14.345"),
                is_invalid,
                "{}",
                intent.invalid
            );
            assert_eq!(intent.invalid.is_empty(), !is_invalid);
        }
        let rules = IntentsRules {
            amount_unit: AmountUnit::Major,
            ..IntentsRules::default()
        };
        let failure =
            decode(&rules, "i.csv", HEAD.as_bytes(), &Meter::default()).expect_err("rejected");
        assert!(
            failure.what.contains("column \"amount\" is missing"),
            "{failure}"
        );
    }
}
