//! intents (register to be completed)
pub mod merge;
