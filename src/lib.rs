//! paysweep (map to be completed)
pub mod cli;
pub mod command;
pub mod exit;
pub mod file;
pub mod intents;
pub mod model;
pub mod money;
pub mod processor;
pub mod reconcile;
pub mod report;
pub mod settings;
pub mod source;
pub mod store;
pub mod time;
