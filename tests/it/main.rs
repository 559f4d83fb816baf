//! Everything that is tested from outside, in one binary.

mod hostile;
mod report;
mod settings;
mod store;
