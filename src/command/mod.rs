//! command (register to be completed)
