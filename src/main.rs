//! The only reader of arguments, environment and clock (to be completed).
fn main() {}
