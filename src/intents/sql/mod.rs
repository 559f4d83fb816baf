//! The company's own table, read as it is: in `PostgreSQL`, `MySQL`, `MariaDB` or `SQLite`.
//!
//! | module | holds |
//! |---|---|
//! | [`spec`] | what the settings say: where the rows are, which column is what |
//! | `session` | a connection to any engine, and one transaction that only reads |
//! | `failure` | what an error of the database means |
//! | `shape` | the columns that the catalogue knows, and whether each can be what it is named for |
//! | `dialect` | how each engine writes a name, a text, a list |
//! | `question` | the statements |
//! | `row` | one row → one intent, or a finding |
//! | `order` | whether a transaction that is still open may hide rows |
//! | [`table`] | the table of [`contract`](super::contract) |
//! | [`template`] | a statement of the company's own with named parameters |
//! | [`row_writer`] | one repair, inside a transaction that has begun |
//! | [`writer`] | repairs written into the table, each in a transaction of its own |
//! | [`joined`] | the same in the store's transaction, where the table lies in its database |
//! | `explained` | these statements, explained without being run |
//! | [`export`] | the same statements, written out for a person |
//! | [`facts`], [`apply_facts`] | what `paysweep check` says about reading it, and about writing to it |

pub mod apply_facts;
mod dialect;
mod explained;
pub mod export;
pub mod facts;
mod failure;
pub mod joined;
pub mod order;
mod question;
mod row;
pub mod row_writer;
mod session;
mod shape;
pub mod spec;
pub mod table;
pub mod template;
pub mod writer;
