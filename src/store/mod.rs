//! store (register to be completed)
