//! Our own side, as it comes in.
//!
//! | module | holds |
//! |---|---|
//! | [`csv`] | reading `intents.csv` |
//! | [`merge`] | an import merged into what the store holds, column by column |

pub mod csv;
pub mod merge;
