//! Everything that is tested from outside, in one binary.

mod breaks;
mod core;
mod recovery;
mod report;
mod settings;
mod store;
mod world;
