//! What makes a row the same row in the next export.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::texts::damaged_id;
use super::{Draft, RowReader};
use crate::exit::Failure;
use crate::model::operation::IdKind;
use crate::processor::amount::is_exponent_notation;
use crate::processor::bound;
use crate::processor::profile::{ColumnId, IdRule};
use crate::processor::table::{Place, Row, is_key, trim};

/// A part of a composed id, in which the mark between parts cannot be mistaken: `a|b` is `a\|b`.
fn unmistakable(part: &str) -> Cow<'_, str> {
    if part.contains(['|', '\\']) {
        Cow::Owned(part.replace('\\', "\\\\").replace('|', "\\|"))
    } else {
        Cow::Borrowed(part)
    }
}

impl RowReader<'_> {
    pub(super) fn identify<'r>(
        &mut self,
        draft: &mut Draft<'r>,
        row: Row<'r>,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        let profile = self.profile;
        let (columns, fallback) = match &profile.id {
            IdRule::Synthetic(identity) => {
                self.synthesize(draft, row, Some(identity));
                return Ok(());
            }
            IdRule::Columns { columns, fallback } => (columns, fallback),
        };
        let part = |column: &ColumnId| self.plain(self.cell(row, *column));
        for column in columns {
            if is_exponent_notation(part(column)) {
                return Err(damaged_id(place, &self.bound.name(*column), part(column)));
            }
        }
        if !trim(part(&columns[0])).is_empty() {
            (draft.operation_id, draft.id_kind) = if let [only] = columns[..] {
                (
                    Cow::Borrowed(self.plain(self.cell(row, only))),
                    IdKind::Native,
                )
            } else {
                let parts: Vec<Cow<'_, str>> = columns.iter().map(part).map(unmistakable).collect();
                (Cow::Owned(parts.join("|")), IdKind::Composite)
            };
            // The name is made only where it is told.
            return if is_key(&draft.operation_id) {
                Ok(())
            } else {
                place.assert_key(&self.bound.name(columns[0]), &draft.operation_id)
            };
        }
        if let Some(identity) = fallback {
            self.synthesize(draft, row, Some(identity));
            return Ok(());
        }
        Err(place
            .cell(
                &self.bound.name(columns[0]),
                "",
                "is empty, so the row has no id",
            )
            .why("without an id the same row cannot be recognised in the next export")
            .remedy("export the ids, or set operation_id_fallback = \"synthetic\" in the profile"))
    }

    /// The id of a row without one: the content of its identity, and its occurrence number among equal rows of the file.
    /// An empty identity is every column that the profile names. Without one everything counts: the row is damaged, and its columns cannot be told apart.
    pub(super) fn synthesize(
        &mut self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        identity: Option<&[ColumnId]>,
    ) {
        let mut content = Sha256::new();
        let mut add = |name: &str, cell: &str| {
            if !trim(cell).is_empty() {
                for part in [name, "\x1f", trim(cell), "\x1e"] {
                    content.update(part);
                }
            }
        };
        match identity {
            Some(columns) => {
                let named: Vec<ColumnId> = if columns.is_empty() {
                    (0..self.profile.columns.len()).map(ColumnId).collect()
                } else {
                    columns.to_vec()
                };
                for column in named {
                    let name = bound::written(&self.profile.columns[column.0]);
                    add(&name, self.cell(row, column));
                }
            }
            None => {
                for position in 0..row.len() {
                    add(&(position + 1).to_string(), row.get(position));
                }
            }
        }
        let hash: [u8; 32] = content.finalize().into();
        let occurrence = self.occurrences.entry(hash).or_insert(0);
        *occurrence += 1;
        let mut id = String::with_capacity(44);
        id.push_str("row-");
        for byte in &hash[..16] {
            let _ = write!(id, "{byte:02x}");
        }
        let _ = write!(id, "-{occurrence}");
        draft.operation_id = Cow::Owned(id);
        draft.id_kind = IdKind::Synthetic;
    }
}
