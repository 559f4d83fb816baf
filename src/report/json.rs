//! The report for machines (to be completed).

use std::io::{self, Write};

use super::RunReport;

/// Writes the report as JSON.
pub fn write(_report: &RunReport, _out: &mut dyn Write) -> io::Result<()> {
    Ok(())
}
