//! report (register to be completed)
