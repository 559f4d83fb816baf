//! The window flags, and what they ask for.

use crate::exit::Failure;
use crate::model::run::Window;
use crate::time::{Instant, Zone};

/// The window flags as they were typed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct WindowFlags {
    /// `--from`
    pub from: Option<String>,
    /// `--to`
    pub to: Option<String>,
    /// `--day`
    pub day: Option<String>,
    /// `--month`
    pub month: Option<String>,
    /// `--through`
    pub through: Option<String>,
    /// `--since`
    pub since: Option<String>,
}

/// What the flags ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowChoice {
    /// No flag: from the watermark.
    Watermark,
    /// A range given by hand.
    Range(Window),
}

/// What the flags ask for, seen from "now".
pub fn choose(
    _flags: &WindowFlags,
    _zone: &Zone,
    _as_of: Instant,
) -> Result<WindowChoice, Failure> {
    Ok(WindowChoice::Watermark)
}

/// "Now": `--as-of` where it was given, else the clock.
pub fn as_of(_flag: Option<&str>, _zone: &Zone, clock: Instant) -> Result<Instant, Failure> {
    Ok(clock)
}
