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
//! | [`writer`] | repairs written into the table, each once |
//! | [`export`] | the same statements, written out for a person |
//! | [`facts`], [`apply_facts`] | what `paysweep check` says about reading it, and about writing to it |

pub mod apply_facts;
mod dialect;
pub mod export;
pub mod facts;
mod failure;
pub mod order;
mod question;
mod row;
mod session;
mod shape;
pub mod spec;
pub mod table;
pub mod template;
pub mod writer;
