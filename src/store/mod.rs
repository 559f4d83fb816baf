//! The store: what earlier runs left behind, and the one transaction in which a run leaves its own results.
//!
//! | module | holds |
//! |---|---|
//! | [`contract`] | the trait [`Store`](contract::Store), its promises and its types |
//! | `sql` | what the store does with its memory, written once for both engines |
//! | `rows` | rows as both engines give them |
//! | [`sqlite`] | the store in one SQLite file |
//! | [`postgres`] | the store in a PostgreSQL database |
//! | [`any`] | whichever of them the configuration names |

pub mod any;
pub mod contract;
pub mod postgres;
pub mod sqlite;

mod rows;
mod sql;
