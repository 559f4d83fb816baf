//! Reading a processor's formats by profile. Pure: bytes and rules in, operations out.
//!
//! | module | holds |
//! |---|---|
//! | [`profile`] | what a profile means; `wire` is its TOML, `compile` leads from one to the other |
//! | [`api`] | how an API is asked, and its answers as rows |
//! | [`csv`] | decoding a CSV file by profile; start reading here |
//! | [`encoding`] | bytes to text |
//! | [`table`] | text to records with their physical lines |
//! | [`header`] | column names to positions, and the width of rows |
//! | `bound` | a profile bound to the columns of one file |
//! | `row` | one row as an operation |
//! | `amount`, `moment` | cells to minor units and to instants |
//! | `dates` | the order of day and month, where a profile allows both |
//! | `sections` | lines that say what they are: headers, rows, counts and totals |
//! | `preamble` | a total above the header |
//! | `balance` | the running balance of a statement |
//! | [`generic`] | a profile told in a few words |
//! | [`infer`] | the profile that an unknown file may have |
//! | `proof` | what a file promises about its own completeness |
//! | `tables` | the README's table of profiles |
//! | [`nearest`] | "did you mean" |
//!
//! A new format is a new file in `profiles/` and a line in [`BUILT_IN`].

mod amount;
pub mod api;
mod balance;
mod bound;
mod compile;
pub mod csv;
mod dates;
pub mod encoding;
pub mod generic;
pub mod header;
pub mod infer;
mod moment;
pub mod nearest;
mod preamble;
pub mod profile;
mod proof;
mod row;
mod sections;
pub mod table;
mod tables;
mod wire;

use crate::model::words;
use crate::money::Currency;
use crate::time::Zone;

pub use tables::markdown;

pub(crate) use amount::is_exponent_notation;
pub(crate) use moment::{is_plausible, rfc3339};

/// The profiles that come with paysweep: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("canonical", include_str!("profiles/canonical.toml")),
    (
        "adyen.payment_accounting",
        include_str!("profiles/adyen.payment_accounting.toml"),
    ),
    (
        "adyen.received_payments",
        include_str!("profiles/adyen.received_payments.toml"),
    ),
    (
        "adyen.settlement_details",
        include_str!("profiles/adyen.settlement_details.toml"),
    ),
    (
        "amazonpay.settlement",
        include_str!("profiles/amazonpay.settlement.toml"),
    ),
    (
        "checkoutcom.financial_actions",
        include_str!("profiles/checkoutcom.financial_actions.toml"),
    ),
    (
        "checkoutcom.settlement_breakdown",
        include_str!("profiles/checkoutcom.settlement_breakdown.toml"),
    ),
    (
        "gocardless.payout_items",
        include_str!("profiles/gocardless.payout_items.toml"),
    ),
    (
        "klarna.settlement",
        include_str!("profiles/klarna.settlement.toml"),
    ),
    (
        "mollie.settlement",
        include_str!("profiles/mollie.settlement.toml"),
    ),
    (
        "paypal.activity",
        include_str!("profiles/paypal.activity.toml"),
    ),
    (
        "paypal.settlement",
        include_str!("profiles/paypal.settlement.toml"),
    ),
    (
        "paypal.statement",
        include_str!("profiles/paypal.statement.toml"),
    ),
    (
        "razorpay.settlements",
        include_str!("profiles/razorpay.settlements.toml"),
    ),
    (
        "shopify.payouts",
        include_str!("profiles/shopify.payouts.toml"),
    ),
    (
        "square.transactions",
        include_str!("profiles/square.transactions.toml"),
    ),
    (
        "stripe.balance",
        include_str!("profiles/stripe.balance.toml"),
    ),
    (
        "stripe.payments",
        include_str!("profiles/stripe.payments.toml"),
    ),
    (
        "stripe.payout_reconciliation",
        include_str!("profiles/stripe.payout_reconciliation.toml"),
    ),
    (
        "wise.statement",
        include_str!("profiles/wise.statement.toml"),
    ),
];

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    BUILT_IN
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

/// The names of the built-in profiles, in order.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

/// Which mode rows of a source have to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Real money.
    Live,
    /// The processor's test mode.
    Test,
}

/// Only rows whose column holds the value are ours; others are ignored as `other_scope`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRule {
    /// Name of the column in the file.
    pub column: String,
    /// The value of our rows, compared after trimming.
    pub value: String,
}

words! {
    /// The order of day and month in a date of digits.
    DateOrder {
        /// 31/12/2026.
        DayFirst = "day-first",
        /// 12/31/2026.
        MonthFirst = "month-first",
    }
}

/// What the configuration of a source says about reading its rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadRules {
    /// Which rows are ours; `None` = all.
    pub scope: Option<ScopeRule>,
    /// Account of rows that name none; part of their identity.
    pub account: String,
    /// Which mode rows have to be of; `None` = not checked.
    pub mode: Option<Mode>,
    /// Columns of our reference, asked before those of the profile, in this order.
    pub reference: Vec<String>,
    /// The zone of times that name none, for profiles that leave it to the source.
    pub zone: Option<Zone>,
    /// The currency of amounts that name none, for profiles that leave it to the source.
    pub currency: Option<Currency>,
    /// The order of day and month, where the profile allows both.
    pub date_order: Option<DateOrder>,
    /// So many format errors become `invalid_record` instead of rejecting the file.
    pub tolerate_bad_rows: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_a_profile_of_its_name() {
        for name in built_in_names() {
            let text = built_in(name).expect("listed");
            let profile = profile::Profile::parse(name, text).expect("a profile");
            assert_eq!(profile.name, name);
            if name != "canonical" {
                let about = &profile.about;
                assert!(
                    !about.title.is_empty() && !about.evidence.is_empty(),
                    "{name}"
                );
                assert_eq!(about.checked_on.len(), 10, "{name}");
                assert!(about.idempotency.is_some(), "{name}");
            }
        }
        assert_eq!(built_in("unknown"), None);
    }
}
