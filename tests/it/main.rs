//! Everything that is tested from outside, in one binary.

mod cli;
mod golden;
mod report;
mod scene;
mod settings;
mod store;
