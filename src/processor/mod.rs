//! Reading a processor's formats by profile. Pure: bytes and rules in, operations out.
//!
//! | module | holds |
//! |---|---|
//! | [`profile`] | what a profile means; `wire` is its TOML, `compile` leads from one to the other |
//! | [`csv`] | decoding a CSV file by profile; start reading here |
//! | [`encoding`] | bytes to text |
//! | [`table`] | text to records with their physical lines |
//! | [`header`] | column names to positions, and the width of rows |
//! | `bound` | a profile bound to the columns of one file |
//! | `row` | one row as an operation |
//! | `amount`, `moment` | cells to minor units and to instants |
//! | `proof` | what a file promises about its own completeness |
//! | [`nearest`] | "did you mean" |
//!
//! A new format is a new file in `profiles/` and a line in [`BUILT_IN`].

mod amount;
mod bound;
mod compile;
pub mod csv;
pub mod encoding;
pub mod header;
mod moment;
pub mod nearest;
pub mod profile;
mod proof;
mod row;
pub mod table;
mod wire;

pub(crate) use amount::is_exponent_notation;
pub(crate) use moment::{is_plausible, rfc3339};

/// The profiles that come with paysweep: name and text.
pub const BUILT_IN: &[(&str, &str)] = &[("canonical", include_str!("profiles/canonical.toml"))];

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

/// What the configuration of a source says about reading its rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadRules {
    /// Which rows are ours; `None` = all.
    pub scope: Option<ScopeRule>,
    /// Account of rows that name none; part of their identity.
    pub account: String,
    /// Which mode rows have to be of; `None` = not checked.
    pub mode: Option<Mode>,
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
        }
        assert_eq!(built_in("unknown"), None);
    }
}
