//! tests
mod store;
