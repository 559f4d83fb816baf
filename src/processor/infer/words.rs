//! What columns and values are usually called. A word that is not listed here is proposed as nothing.

use super::shape::Shape;

/// A fact about an operation, and the columns in which it usually stands.
pub(super) struct Field {
    pub name: &'static str,
    /// Whole names, in lower case and without punctuation.
    exact: &'static [&'static str],
    /// Words of a name.
    part: &'static [&'static str],
    fits: fn(&Shape) -> bool,
}

fn is_number(shape: &Shape) -> bool {
    matches!(shape, Shape::Number)
}

fn is_text(shape: &Shape) -> bool {
    matches!(shape, Shape::Text | Shape::Number | Shape::Words(_))
}

fn is_time(shape: &Shape) -> bool {
    matches!(shape, Shape::Time(_))
}

fn is_words(shape: &Shape) -> bool {
    matches!(shape, Shape::Words(_))
}

fn is_currency(shape: &Shape) -> bool {
    matches!(shape, Shape::Currency)
}

pub(super) const ID: Field = Field {
    name: "operation_id",
    exact: &[
        "id",
        "transaction id",
        "operation id",
        "txn id",
        "entity id",
        "balance transaction id",
    ],
    part: &["transaction", "txn", "transaktion"],
    fits: is_text,
};
pub(super) const KIND: Field = Field {
    name: "kind",
    exact: &[
        "type",
        "transaction type",
        "kind",
        "event type",
        "record type",
        "category",
        "reporting category",
    ],
    part: &["type", "kind", "art", "tipo", "category"],
    fits: is_words,
};
pub(super) const STATUS: Field = Field {
    name: "status",
    exact: &["status", "state", "transaction status", "payment status"],
    part: &["status", "state", "estado"],
    fits: is_words,
};
pub(super) const AMOUNT: Field = Field {
    name: "amount",
    exact: &[
        "amount",
        "gross",
        "gross amount",
        "transaction amount",
        "amount gross",
    ],
    part: &[
        "gross", "amount", "brutto", "betrag", "bruto", "importe", "montant", "brut",
    ],
    fits: is_number,
};
pub(super) const CREDIT: Field = Field {
    name: "credit",
    exact: &["credit", "credit amount", "gross credit"],
    part: &[],
    fits: is_number,
};
pub(super) const DEBIT: Field = Field {
    name: "debit",
    exact: &["debit", "debit amount", "gross debit"],
    part: &[],
    fits: is_number,
};
pub(super) const CURRENCY: Field = Field {
    name: "currency",
    exact: &["currency", "currency code", "transaction currency"],
    part: &["currency", "devise", "divisa", "valuta", "währung"],
    fits: is_currency,
};
pub(super) const FEE: Field = Field {
    name: "fee",
    exact: &["fee", "fees", "fee amount", "total fee", "fee total"],
    part: &["fee", "fees", "commission", "gebühr", "comisión"],
    fits: is_number,
};
pub(super) const NET: Field = Field {
    name: "net",
    exact: &["net", "net amount", "amount net", "net total"],
    part: &["net", "netto", "neto"],
    fits: is_number,
};
pub(super) const OCCURRED_AT: Field = Field {
    name: "occurred_at",
    exact: &[
        "created",
        "created at",
        "created utc",
        "date",
        "date time",
        "transaction date",
        "timestamp",
        "occurred at",
        "processed on",
    ],
    part: &["created", "date", "datum", "fecha", "time", "booked"],
    fits: is_time,
};
pub(super) const REFERENCE: Field = Field {
    name: "reference",
    exact: &[
        "reference",
        "merchant reference",
        "order id",
        "order reference",
        "our reference",
        "invoice id",
        "invoice number",
        "merchant order id",
    ],
    part: &[
        "reference",
        "order",
        "invoice",
        "referenz",
        "referencia",
        "bestellung",
    ],
    fits: is_text,
};
pub(super) const PAYOUT: Field = Field {
    name: "payout_id",
    exact: &[
        "payout id",
        "settlement id",
        "batch number",
        "payout",
        "settlement reference",
        "deposit id",
    ],
    part: &["payout", "settlement", "batch"],
    fits: is_text,
};
pub(super) const PARENT: Field = Field {
    name: "parent_id",
    exact: &[
        "parent id",
        "original transaction id",
        "original payment id",
        "related transaction id",
        "reference txn id",
    ],
    part: &["parent", "original"],
    fits: is_text,
};
pub(super) const DESCRIPTION: Field = Field {
    name: "description",
    exact: &["description", "details", "note", "memo"],
    part: &["description", "text"],
    fits: is_text,
};

/// How well a column fits a field by its name: 3 = it is called so, 2 = a word of it says so, 0 = not, or its values
/// are something else.
pub(super) fn score(field: &Field, name: &str, shape: &Shape) -> u8 {
    if !(field.fits)(shape) {
        return 0;
    }
    let name = plain(name);
    if field.exact.contains(&name.as_str()) {
        return 3;
    }
    let is_part = name.split(' ').any(|word| field.part.contains(&word));
    if is_part { 2 } else { 0 }
}

/// A name in lower case, its words separated by one blank.
pub(super) fn plain(name: &str) -> String {
    let lower = name.to_lowercase();
    let words: Vec<&str> = lower
        .split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join(" ")
}

/// The kind that a word of a kind column says beyond doubt.
pub(super) fn kind(word: &str) -> Option<&'static str> {
    Some(match plain(word).as_str() {
        "charge" | "sale" | "payment" | "purchase" => "charge",
        "authorization" | "authorisation" => "authorization",
        "capture" => "capture",
        "void" => "void",
        "refund" => "refund",
        "refund failure" | "refund failed" | "refund reversal" => "refund_failure",
        "dispute" | "chargeback" => "dispute",
        "dispute reversal" | "chargeback reversal" | "chargeback reversed" => "dispute_reversal",
        "fee" | "fees" => "fee",
        "payout" => "payout",
        "payout failure" | "payout failed" | "payout reversal" => "payout_failure",
        "transfer" => "transfer",
        "adjustment" => "adjustment",
        _ => return None,
    })
}

/// The status that a word of a status column says beyond doubt.
pub(super) fn status(word: &str) -> Option<&'static str> {
    Some(match plain(word).as_str() {
        "succeeded" | "success" | "successful" | "completed" | "complete" | "paid" | "settled" => {
            "succeeded"
        }
        "pending" | "processing" | "in progress" => "pending",
        "failed" | "declined" | "refused" | "rejected" => "failed",
        "canceled" | "cancelled" => "canceled",
        "expired" => "expired",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::operation::{OperationKind, OperationStatus};

    #[test]
    fn a_column_is_recognised_by_its_name_and_its_values() {
        for (field, name, shape, want) in [
            (&ID, "Transaction ID", Shape::Text, 3),
            (&ID, "transaction_no", Shape::Text, 2),
            (&ID, "Transaction ID", Shape::Empty, 0),
            (&AMOUNT, "Gross Amount", Shape::Number, 3),
            (&AMOUNT, "Amount Refunded", Shape::Number, 2),
            (&AMOUNT, "Amount", Shape::Text, 0),
            (&FEE, "Coffee", Shape::Number, 0),
            (&OCCURRED_AT, "created_utc", Shape::Time(Vec::new()), 3),
        ] {
            assert_eq!(score(field, name, &shape), want, "{name}");
        }
    }

    #[test]
    fn every_proposed_word_is_one_of_the_contract_and_doubt_proposes_nothing() {
        for (word, want) in [
            ("Sale", Some("charge")),
            ("CHARGEBACK", Some("dispute")),
            ("payment refund", None),
            ("Partial refund", None),
            ("charge_failure", None),
            ("Settled", None),
        ] {
            assert_eq!(kind(word), want, "{word}");
            assert!(kind(word).is_none_or(|kind| {
                OperationKind::ALL
                    .iter()
                    .any(|known| known.as_str() == kind)
            }));
        }
        for (word, want) in [
            ("Paid", Some("succeeded")),
            ("refunded", None),
            ("unpaid", None),
            ("Cancelled", Some("canceled")),
        ] {
            assert_eq!(status(word), want, "{word}");
            assert!(status(word).is_none_or(|status| {
                OperationStatus::ALL
                    .iter()
                    .any(|known| known.as_str() == status)
            }));
        }
    }
}
