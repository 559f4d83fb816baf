//! Our own side, as it comes in.
//!
//! | module | holds |
//! |---|---|
//! | [`amount`] | a local amount and its currency |
//! | [`contract`] | the promise of a table of our own that is read in place |
//! | [`csv`] | reading `intents.csv` |
//! | [`merge`] | an import merged into what the store holds, column by column |
//! | [`sql`] | the company's own table, in its own database |

pub mod amount;
pub mod contract;
pub mod csv;
pub mod merge;
pub mod sql;

/// Adds a finding to why a row cannot be used.
fn object(invalid: &mut String, finding: &str) {
    if !invalid.is_empty() {
        invalid.push_str("; ");
    }
    invalid.push_str(finding);
}
