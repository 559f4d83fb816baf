//! The pure core (map to be completed).
pub mod rules;
