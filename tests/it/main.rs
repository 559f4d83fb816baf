//! Everything that is tested from outside, in one binary.

mod recovery;
mod report;
mod settings;
mod store;
