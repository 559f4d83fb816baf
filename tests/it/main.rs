//! Everything that is tested from outside, in one binary.

mod postgres;
mod recovery;
mod report;
mod settings;
mod store;
mod store_postgres;
mod store_twins;
