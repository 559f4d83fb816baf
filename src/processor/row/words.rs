//! What the words of a row say: its kind, its status, and what is not known.

use std::borrow::Cow;

use super::RowReader;
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::processor::profile::{ColumnId, Otherwise, Word, WordMap};
use crate::processor::table::{Place, Row, shown, trim};

/// What the words of a row say.
pub(super) struct Meaning {
    pub kind: OperationKind,
    /// The kind where the amount is above or below zero.
    pub positive: Option<OperationKind>,
    pub zero: Option<OperationKind>,
    pub negative: Option<OperationKind>,
    pub status: OperationStatus,
    pub is_final: bool,
    pub ignore: Option<IgnoreReason>,
    /// What is not known, and what the profile does about it.
    pub unknown: Option<(String, Otherwise)>,
    /// The kind is unknown and the status says that no money has moved.
    pub is_known_not_to_move: bool,
}

impl RowReader<'_> {
    pub(super) fn meaning(
        &self,
        row: Row<'_>,
        place: Place<'_>,
        is_skipped: bool,
    ) -> Result<Meaning, Failure> {
        let (kinds, statuses) = (&self.profile.kinds, &self.profile.statuses);
        let (kind_word, kind_rule) = self.look_up(kinds, row, place, is_skipped)?;
        let (status_word, status_rule) = self.look_up(statuses, row, place, is_skipped)?;
        let says = |word: Option<Word>| word.unwrap_or_default();
        let (of_kind, of_status) = (says(kind_word), says(status_word));
        let status = if status_rule.is_some() {
            None
        } else {
            of_status.status.or(of_kind.status)
        }
        .unwrap_or(OperationStatus::Unknown);
        let kind_is_unknown = kind_rule.is_some() && of_status.kind.is_none();
        let mut unknown = None;
        for (maps, rule, counts) in [
            (kinds, kind_rule, kind_is_unknown),
            (statuses, status_rule, true),
        ] {
            if let (Some(map), Some(rule), true) = (maps.last(), rule, counts) {
                let finding = format!(
                    "column \"{}\" holds {}, which profile {} does not know",
                    self.bound.name(map.columns[0]),
                    shown(&self.word(map, row)),
                    self.known_name()
                );
                // Two unknown words: the stricter rule stands.
                unknown = match (unknown, rule) {
                    (Some((first, Otherwise::Invalid)), _) => Some((first, Otherwise::Invalid)),
                    _ => Some((finding, rule)),
                };
            }
        }
        if unknown.is_none() && status == OperationStatus::Unknown {
            unknown = Some((
                format!(
                    "what became of it is not told: profile {} gives it no status",
                    self.known_name()
                ),
                Otherwise::Invalid,
            ));
        }
        Ok(Meaning {
            kind: of_status
                .kind
                .or(of_kind.kind)
                .unwrap_or(OperationKind::Other),
            positive: of_status.positive.or(of_kind.positive),
            zero: of_status.zero.or(of_kind.zero),
            negative: of_status.negative.or(of_kind.negative),
            status,
            is_final: of_kind.is_final || of_status.is_final,
            ignore: of_status.ignore.or(of_kind.ignore),
            unknown,
            is_known_not_to_move: kind_is_unknown
                && matches!(
                    status,
                    OperationStatus::Pending
                        | OperationStatus::Failed
                        | OperationStatus::Canceled
                        | OperationStatus::Expired
                ),
        })
    }

    /// The word of a map's columns in a row.
    pub(super) fn word<'r>(&self, map: &WordMap, row: Row<'r>) -> Cow<'r, str> {
        self.joined(&map.columns, row)
    }

    /// Cells joined by one space.
    pub(super) fn joined<'r>(&self, columns: &[ColumnId], row: Row<'r>) -> Cow<'r, str> {
        if let [only] = *columns {
            return Cow::Borrowed(self.cell(row, only));
        }
        let cells: Vec<&str> = columns
            .iter()
            .map(|column| self.cell(row, *column))
            .collect();
        Cow::Owned(trim(&cells.join(" ")).to_owned())
    }

    /// What the first map says that knows the word of its column, or the rule of the last one for unknown words.
    pub(super) fn look_up(
        &self,
        maps: &[WordMap],
        row: Row<'_>,
        place: Place<'_>,
        is_skipped: bool,
    ) -> Result<(Option<Word>, Option<Otherwise>), Failure> {
        let mut last = None;
        for map in maps {
            if map.is_optional && !self.bound.has(map.columns[0]) {
                continue;
            }
            last = Some(map);
            if let Some(word) = map.find(&self.word(map, row)) {
                return Ok((Some(word), None));
            }
        }
        let Some(map) = last else {
            return Ok((None, None));
        };
        if map.otherwise != Otherwise::Error || is_skipped {
            return Ok((None, Some(map.otherwise)));
        }
        let mut known: Vec<&str> = map.words.keys().map(String::as_str).collect();
        known.sort_unstable();
        Err(place
            .cell(
                &self.bound.name(map.columns[0]),
                &self.word(map, row),
                "is not a word that the profile knows",
            )
            .why(format!(
                "profile {} knows {} and declares \"*\" = \"error\"",
                self.known_name(),
                known.join(", ")
            ))
            .remedy("add the word to the profile with its meaning"))
    }
}
