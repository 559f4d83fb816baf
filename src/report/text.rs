//! The report for a person (to be completed).

use std::io::{self, Write};

use super::{RenderOptions, RunReport};

/// Writes the report as text.
pub fn write(_report: &RunReport, _options: RenderOptions, _out: &mut dyn Write) -> io::Result<()> {
    Ok(())
}
