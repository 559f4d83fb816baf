//! The texts of a row: references, parents, payouts, descriptions.

use std::borrow::Cow;

use super::{Draft, RowReader};
use crate::exit::Failure;
use crate::model::operation::OperationKind;
use crate::processor::amount::{is_exponent_notation, unguarded_text};
use crate::processor::profile::{Candidate, TextFrom, TextRule};
use crate::processor::table::{Place, Row, trim};

impl RowReader<'_> {
    pub(super) fn texts<'r>(
        &self,
        draft: &mut Draft<'r>,
        row: Row<'r>,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        let (profile, kind) = (self.profile, draft.facts.kind);
        draft.account = self.text(&profile.account, row, kind, Some(place))?;
        draft.parent_id = self.text(&profile.parent_id, row, kind, Some(place))?;
        draft.object_id = self.text(&profile.object_id, row, kind, Some(place))?;
        draft.payout_id = self.text(&profile.payout_id, row, kind, Some(place))?;
        draft.description = self.text(&profile.description, row, kind, None)?;
        let named = self.bound.references.iter();
        let named = named.map(|position| self.bound.cell_at(row, *position));
        draft.reference = match named
            .map(|cell| self.plain(cell))
            .find(|cell| !trim(cell).is_empty())
        {
            Some(cell) if is_exponent_notation(cell) => {
                let at = self.bound.references.iter();
                let at = at
                    .copied()
                    .find(|at| self.plain(self.bound.cell_at(row, *at)) == cell);
                let name = self.bound.header.name_at(at.unwrap_or(0));
                return Err(damaged_id(place, &name, cell));
            }
            Some(cell) => Cow::Borrowed(cell),
            None => self.text(&profile.reference, row, kind, Some(place))?,
        };
        draft.reference = match std::mem::take(&mut draft.reference) {
            Cow::Borrowed(reference) => Cow::Borrowed(trim(reference)),
            Cow::Owned(reference) => Cow::Owned(trim(&reference).to_owned()),
        };
        if draft.account.is_empty() {
            draft.account = Cow::Owned(self.rules.account.clone());
        }
        Ok(())
    }

    /// The first candidate that gives something. With a place, the text is an id: exponent notation is refused.
    pub(super) fn text<'r>(
        &self,
        rule: &TextRule,
        row: Row<'r>,
        kind: OperationKind,
        id_at: Option<Place<'_>>,
    ) -> Result<Cow<'r, str>, Failure> {
        for candidate in rule {
            if !candidate.when_kind.is_empty() && !candidate.when_kind.contains(&kind) {
                continue;
            }
            let text = match &candidate.from {
                TextFrom::Const(text) => Cow::Owned(text.clone()),
                TextFrom::Context(index) => {
                    Cow::Owned(self.context.get(*index).cloned().unwrap_or_default())
                }
                TextFrom::Column(column) => {
                    let cell = self.cell(row, *column);
                    let name = || self.bound.name(*column);
                    self.candidate(candidate, cell, name, id_at)?
                }
                TextFrom::Columns(pattern) => {
                    let mut found = Cow::Borrowed("");
                    for position in &self.bound.patterns[*pattern] {
                        let cell = self.bound.cell_at(row, *position);
                        let name = || self.bound.header.name_at(*position);
                        found = self.candidate(candidate, cell, name, id_at)?;
                        if !found.is_empty() {
                            break;
                        }
                    }
                    found
                }
            };
            if !trim(&text).is_empty() {
                return Ok(text);
            }
        }
        Ok(Cow::Borrowed(""))
    }

    /// What a cell gives to a candidate; empty = nothing.
    pub(super) fn candidate<'r>(
        &self,
        candidate: &Candidate,
        cell: &'r str,
        name: impl Fn() -> String,
        id_at: Option<Place<'_>>,
    ) -> Result<Cow<'r, str>, Failure> {
        let cell = self.plain(cell);
        let text = match &candidate.json_pointer {
            Some(pointer) => Cow::Owned(pointed(cell, pointer)),
            None => Cow::Borrowed(cell),
        };
        if let Some(place) = id_at
            && is_exponent_notation(&text)
        {
            return Err(damaged_id(place, &name(), &text));
        }
        let text = match &candidate.regex {
            None => text,
            Some(regex) => match regex.captures(&text) {
                Some(found) => {
                    let part = found.get(1).or_else(|| found.get(0));
                    Cow::Owned(part.map_or("", |part| part.as_str()).to_owned())
                }
                None => Cow::Borrowed(""),
            },
        };
        let is_none = trim(&text).is_empty() || candidate.not_in.iter().any(|none| *none == text);
        Ok(if is_none { Cow::Borrowed("") } else { text })
    }

    pub(super) fn plain<'r>(&self, cell: &'r str) -> &'r str {
        match cell.as_bytes().first() {
            Some(b'=' | b'\'' | b'\t') if self.profile.layout.strip_text_guard => {
                unguarded_text(cell)
            }
            _ => cell,
        }
    }
}

pub(super) fn damaged_id(place: Place<'_>, column: &str, text: &str) -> Failure {
    place
        .cell(column, text, "is an id in exponent notation")
        .why("a spreadsheet has turned the id into a number and lost its digits")
        .remedy("export the file again and do not open it in a spreadsheet before")
}

/// The text or number at a pointer into a cell's JSON; empty where there is none.
fn pointed(cell: &str, pointer: &str) -> String {
    let json: Option<serde_json::Value> = serde_json::from_str(cell).ok();
    match json.as_ref().and_then(|json| json.pointer(pointer)) {
        Some(serde_json::Value::String(text)) => text.clone(),
        Some(serde_json::Value::Number(number)) => number.to_string(),
        _ => String::new(),
    }
}
