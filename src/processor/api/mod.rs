//! How a processor's API is asked, and how what it answers becomes the rows that a profile reads. Pure: what to ask comes
//! out, and what was answered goes in.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | what a profile of kind `api` means; `wire` is its TOML |
//! | [`page`] | the next page, and when a list cannot be trusted |
//! | [`bounds`] | a window as the parameters of a request |
//! | [`cells`] | an object as cells, and cells as the rows of a file |
//! | [`stripe`] | what a declaration cannot say about Stripe |
//!
//! Decisions: an object becomes a row of named columns, and is read by the same code and the same words as the row of an
//! export. So both give the same operations, and what holds for the one holds for the other. A list without its items, or a
//! page that says that more follows and gives no way to it, is no list: nothing is concluded from it.

pub mod bounds;
pub mod cells;
pub mod page;
pub mod spec;
pub mod stripe;
mod wire;

pub use spec::ApiProfile;

/// Why an object is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It stood in a list.
    Listed,
    /// It was asked for by its id, since a row of ours names it.
    Asked,
    /// It was asked for by its id, since it is a row that was not settled when it was seen last.
    Again {
        /// Whether it was told as a hold then.
        is_hold: bool,
    },
}

/// The profiles of APIs that come with paysweep: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[
    (
        "adyen.reports",
        include_str!("../profiles/adyen.reports.toml"),
    ),
    (
        "adyen.transfers",
        include_str!("../profiles/adyen.transfers.toml"),
    ),
    (
        "checkoutcom.reports",
        include_str!("../profiles/checkoutcom.reports.toml"),
    ),
    (
        "gocardless.api",
        include_str!("../profiles/gocardless.api.toml"),
    ),
    ("mollie.api", include_str!("../profiles/mollie.api.toml")),
    ("paypal.api", include_str!("../profiles/paypal.api.toml")),
    (
        "razorpay.api",
        include_str!("../profiles/razorpay.api.toml"),
    ),
    ("square.api", include_str!("../profiles/square.api.toml")),
    ("stripe.api", include_str!("../profiles/stripe.api.toml")),
    (
        "stripe.reports",
        include_str!("../profiles/stripe.reports.toml"),
    ),
];

/// The text of a built-in profile.
pub fn built_in(name: &str) -> Option<&'static str> {
    let found = BUILT_IN.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// The names of the built-in profiles, in order.
pub fn built_in_names() -> impl Iterator<Item = &'static str> {
    BUILT_IN.iter().map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_in_profile_is_a_profile_of_its_name() {
        for name in built_in_names() {
            let text = built_in(name).expect("listed");
            let profile =
                ApiProfile::parse(name, text).unwrap_or_else(|failure| panic!("{failure}"));
            assert_eq!(profile.name, name);
            let about = &profile.rows.about;
            assert!(
                !about.title.is_empty() && !about.evidence.is_empty(),
                "{name}"
            );
            assert!(
                about.checked_on.len() == 10 && about.idempotency.is_some(),
                "{name}"
            );
            let spans = &profile.rows.spans;
            let late = spans.delay.0 + spans.granularity.0 + spans.clock_error.0;
            assert!(spans.lag.0 + spans.lookback.0 >= late, "{name} loses rows");
            assert!(profile.http.base.starts_with("https://"), "{name}");
        }
        assert_eq!(built_in("unknown"), None);
    }
}
