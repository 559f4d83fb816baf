//! Operations from outside. I/O in; decides nothing about money.
//!
//! | module | holds |
//! |---|---|
//! | [`feed`] | what a source says, from wherever it was read |
//! | [`files`] | reading the files of a source by profile |
//! | [`http`] | asking over HTTP: one host, so many requests, so often, so long |
//! | [`api`] | reading the lists of a processor by profile |

pub mod api;
pub mod feed;
pub mod files;
pub mod http;
