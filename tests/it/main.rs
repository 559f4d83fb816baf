//! Everything that is tested from outside, in one binary.

mod report;
mod settings;
mod store;
