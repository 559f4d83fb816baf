//! The store: what earlier runs left behind, and the one transaction in which a run leaves its own results.
//!
//! | module | holds |
//! |---|---|
//! | [`contract`] | the trait [`Store`](contract::Store), its promises and its types |
//! | [`sqlite`] | the store in one SQLite file |

pub mod contract;
pub mod sqlite;
