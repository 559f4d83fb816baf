//! command (register to be completed)
pub mod progress;
