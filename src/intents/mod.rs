//! Intents from outside. I/O in; the store's own table is written elsewhere.
//!
//! | module | holds |
//! |---|---|
//! | [`csv`] | reading `intents.csv` |

pub mod csv;
