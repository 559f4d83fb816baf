//! cli (to be completed)
