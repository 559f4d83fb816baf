//! `paysweep.toml` as it may be written (to be completed).
