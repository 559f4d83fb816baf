//! settings (to be completed)
