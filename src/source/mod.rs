//! Operations from outside. I/O in; decides nothing about money.
//!
//! | module | holds |
//! |---|---|
//! | [`files`] | reading the files of a source by profile |

pub mod files;
