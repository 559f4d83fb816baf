//! source (register to be completed)
