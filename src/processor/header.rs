//! From column names to positions, and the shape that every row has to have.

use std::collections::BTreeMap;

use super::nearest::nearest;
use super::table::{Records, Row, trim};
use crate::exit::Failure;

/// Which rows are as wide as they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum RowWidth {
    /// As many fields as the header.
    #[default]
    Exact,
    /// Fewer are allowed; the missing ones are empty.
    AllowShort,
    /// More are allowed; what stands behind the header's last column is not read.
    AllowLong,
    /// Fields behind the last column that has a name may be there or not, where they are empty.
    AllowTrailingEmpty,
}

impl RowWidth {
    /// The words as a profile writes them.
    pub(super) const NAMES: [(&str, RowWidth); 4] = [
        ("exact", RowWidth::Exact),
        ("allow_short", RowWidth::AllowShort),
        ("allow_long", RowWidth::AllowLong),
        ("allow_trailing_empty", RowWidth::AllowTrailingEmpty),
    ];
}

/// The columns of a file.
#[derive(Clone, Debug, Default)]
pub struct Header {
    /// As the profile calls them.
    names: Vec<String>,
    /// As the file calls them.
    written: Vec<String>,
    width: usize,
    /// Positions of columns without a name; their cells have to be empty.
    unnamed: Vec<usize>,
}

impl Header {
    /// The header in the record on which the walker stands. `aliases` renames columns of the file.
    pub fn named(row: Row<'_>, aliases: &BTreeMap<String, String>) -> Header {
        let written: Vec<String> = (0..row.len())
            .map(|position| trim(row.get(position)).to_owned())
            .collect();
        Header {
            width: written.len(),
            unnamed: (0..written.len())
                .filter(|position| written[*position].is_empty())
                .collect(),
            names: written.clone(),
            written,
        }
        .renamed(aliases)
    }

    /// The same columns under other names, by the names they have now.
    pub(super) fn renamed(mut self, names: &BTreeMap<String, String>) -> Header {
        for name in &mut self.names {
            if let Some(other) = names.get(name) {
                other.clone_into(name);
            }
        }
        self
    }

    /// The columns under the names of a header set. A column that the set calls otherwise is not there under the profile's
    /// own name.
    pub(super) fn in_set(mut self, names: &BTreeMap<String, String>) -> Header {
        for name in &mut self.names {
            match names.get(name) {
                Some(own) => own.clone_into(name),
                None if names.values().any(|own| own == name) => name.clear(),
                None => {}
            }
        }
        self
    }

    /// Whether a row holds the names of the file's header.
    pub(super) fn is_written_as(&self, row: Row<'_>) -> bool {
        row.len() == self.width
            && (self.written.iter().enumerate()).all(|(at, name)| trim(row.get(at)) == name)
    }

    /// The columns of a file without a header: as many as its first row has, and only positions.
    pub fn positional(width: usize) -> Header {
        Header {
            names: Vec::new(),
            written: Vec::new(),
            width,
            unnamed: Vec::new(),
        }
    }

    /// How many columns.
    pub fn width(&self) -> usize {
        self.width
    }

    /// The names in order; empty where the file has no header.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// A column for errors: its name, or its position counted from 1 where it has none.
    pub fn name_at(&self, position: usize) -> String {
        match self.written.get(position) {
            Some(name) if !name.is_empty() => name.clone(),
            _ => (position + 1).to_string(),
        }
    }

    /// The position of a column, counted from 0; `None` when the file has none of that name. `nth` counts from 1 and
    /// chooses among columns of one name; without it two columns of the name are rejected.
    pub fn find(
        &self,
        file: &str,
        name: &str,
        nth: Option<usize>,
    ) -> Result<Option<usize>, Failure> {
        let mut positions = self
            .names
            .iter()
            .enumerate()
            .filter(|(_, known)| *known == name)
            .map(|(position, _)| position);
        if let Some(nth) = nth {
            return Ok(positions.nth(nth.saturating_sub(1)));
        }
        let first = positions.next();
        match (first, positions.next()) {
            (Some(first), Some(second)) => Err(Failure::rejected(format!(
                "{file}: column \"{name}\" stands twice in the header, at positions {} and {}",
                first + 1,
                second + 1
            ))
            .why("which of the two is meant is not for a reader to guess")
            .remedy(format!(
                "give the position in the profile (column = {}) or the occurrence (\"{name}#1\")",
                first + 1
            ))),
            _ => Ok(first),
        }
    }

    /// The name in the header that is closest to a missing one.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        nearest(
            name,
            self.names
                .iter()
                .map(String::as_str)
                .filter(|known| !known.is_empty()),
        )
    }

    /// Exit 2: columns without which the file cannot be read. `reader` says who needs them, `change_delimiter` what to do
    /// where the header looks as if it were separated by another sign.
    pub fn missing(
        &self,
        file: &str,
        missing: &[String],
        reader: &str,
        change_delimiter: &str,
    ) -> Failure {
        let quoted = |name: &String| format!("\"{name}\"");
        let named = missing.iter().map(quoted).collect::<Vec<_>>().join(", ");
        let failure = Failure::rejected(match missing {
            [_] => format!("{file}: column {named} is missing from the header"),
            _ => format!("{file}: columns {named} are missing from the header"),
        })
        .why(format!(
            "{reader}, and the header has {} {}",
            self.width,
            if self.width == 1 { "column" } else { "columns" }
        ));
        if self.names.first().is_some_and(|name| name.starts_with('<')) {
            return failure.remedy(
                "this looks like a web page or XML and not like an export: check how the file was fetched",
            );
        }
        let other_delimiter = match self.names.as_slice() {
            [only] => [";", ",", "|", "\t"]
                .into_iter()
                .find(|delimiter| only.contains(delimiter)),
            _ => None,
        };
        if let Some(delimiter) = other_delimiter {
            return failure.remedy(format!(
                "the header seems to be separated by \"{}\": {change_delimiter}",
                delimiter.escape_debug()
            ));
        }
        let near: Vec<String> = missing
            .iter()
            .filter_map(|name| {
                self.nearest(name)
                    .map(|near| format!("\"{near}\" for \"{name}\""))
            })
            .collect();
        if near.is_empty() {
            failure.remedy("check that this is the file that was meant, or export the columns")
        } else {
            failure.remedy(format!("did you mean {}?", near.join(", ")))
        }
    }

    /// Lets the cells of an unnamed column be what they are, since it is used by its position.
    pub fn use_position(&mut self, position: usize) {
        self.unnamed.retain(|unnamed| *unnamed != position);
    }

    /// Rejects a row that is too narrow or too wide, that has a value in a column without a name, or that is the header
    /// once more.
    pub fn check(&self, records: &Records<'_>, width: RowWidth) -> Result<(), Failure> {
        let row = records.row();
        let found = row.len();
        let fits = match width {
            RowWidth::Exact => found == self.width,
            RowWidth::AllowShort => found <= self.width,
            RowWidth::AllowLong => found >= self.width,
            RowWidth::AllowTrailingEmpty => {
                let named = self.names.iter().rposition(|name| !name.is_empty());
                let least = named.map_or(self.width, |last| last + 1);
                found >= least && (least..found).all(|position| trim(row.get(position)).is_empty())
            }
        };
        if !fits {
            let rule = RowWidth::NAMES
                .iter()
                .find(|(_, known)| *known == width)
                .map_or("exact", |(name, _)| name);
            let expected = self.width;
            return Err(records
                .place()
                .row(&format!(
                    "has {found} {} where {expected} {} expected",
                    if found == 1 { "field" } else { "fields" },
                    if expected == 1 { "is" } else { "are" }
                ))
                .why(format!("rows have the width of the header (row_width = \"{rule}\")"))
                .remedy("export the file again, or declare the line in the profile (end_marker, control_rows, row_width)"));
        }
        if !self.written.is_empty() && self.is_written_as(row) {
            return Err(records
                .place()
                .row("is the header once more")
                .why("two files may have been joined, and then nobody can tell what is missing between them")
                .remedy("name the two files separately, or export again"));
        }
        for position in &self.unnamed {
            if !trim(row.get(*position)).is_empty() {
                return Err(records
                    .place()
                    .row(&format!(
                        "has a value at position {}, where the header names no column",
                        position + 1
                    ))
                    .why("values without a column name are a sign of shifted columns")
                    .remedy("export the file again, or name the column in its header"));
            }
        }
        Ok(())
    }
}
