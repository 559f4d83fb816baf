//! Everything that is tested from outside, in one binary.

mod breaks;
mod core;
mod report;
mod settings;
mod world;
