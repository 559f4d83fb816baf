//! The tables of the README that are made from enums, so that the two cannot differ: a test compares them.

use std::fmt::Write;

use crate::exit::Exit;
use crate::model::breaks::{BreakClass, Policy};

/// The exit codes as a Markdown table, in order of precedence.
pub fn exit_codes() -> String {
    let mut table = String::from("| code | name | when | retry helps? |\n|---|---|---|---|\n");
    for exit in Exit::ALL {
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| {} | {} | {} | {} |",
            exit.code(),
            exit.name(),
            exit.when(),
            match exit {
                Exit::Ok => "–",
                _ if exit.retry_helps() => "yes",
                _ => "no",
            }
        );
    }
    table
}

/// The break classes as a Markdown table, in order of precedence.
pub fn break_classes() -> String {
    let mut table = String::from(
        "| class | severity | default | meaning | next step |\n|---|---|---|---|---|\n",
    );
    for class in BreakClass::ALL {
        let entry = class.entry();
        // Writing to a string cannot fail.
        let _ = writeln!(
            table,
            "| `{class}` | {} | {} | {} | {} |",
            entry.severity,
            entry.default_policy.map_or("review", Policy::as_str),
            entry.meaning,
            entry.next_step
        );
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_has_the_columns_of_its_table() {
        for (table, rows) in [
            (exit_codes(), Exit::ALL.len()),
            (break_classes(), BreakClass::ALL.len()),
        ] {
            let bars: Vec<usize> = table
                .lines()
                .map(|line| line.matches('|').count())
                .collect();
            assert_eq!(bars.len(), rows + 2);
            assert!(bars.iter().all(|count| *count == bars[0]), "{table}");
        }
    }
}
