//! One row of a file as an operation, by the rules of a profile.
//!
//! Decisions: what contradicts the declared format is an error about the file; what fits the format and cannot be used is
//! kept with its evidence. Evidence names columns and words, never a line, so that it stays the same when a later export
//! shows the row elsewhere. Money is never set aside by a word: a row that the profile would ignore and whose net is not
//! zero is kept for a person. The money of a row is in [`money`].

mod money;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use super::amount::{AmountReader, is_exponent_notation, unguarded_text};
use super::bound::Bound;
use super::moment::{Read, TimeError, TimeRule, ZoneRule, is_plausible};
use super::profile::{ColumnId, IdRule, Otherwise, Profile, TextFrom, TextRule, Word, WordMap};
use super::table::{Place, Row, shown, trim};
use super::{Mode, ReadRules};
use crate::exit::Failure;
use crate::model::operation::{IdKind, Operation, OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::time::WallTimeError;

/// Reads the rows of one file.
pub(super) struct RowReader<'p> {
    profile: &'p Profile,
    rules: &'p ReadRules,
    bound: &'p Bound,
    /// Positions in the order of their column names, for content that does not depend on the order of columns.
    content_order: Vec<usize>,
    /// How often each content has been seen in this file.
    occurrences: HashMap<[u8; 32], u32>,
}

/// A row as it was read, before it is copied into a batch.
#[derive(Debug)]
pub(super) struct Draft<'r> {
    operation_id: Cow<'r, str>,
    id_kind: IdKind,
    account: Cow<'r, str>,
    reference: Cow<'r, str>,
    parent_id: Cow<'r, str>,
    object_id: Cow<'r, str>,
    payout_id: Cow<'r, str>,
    description: Cow<'r, str>,
    facts: Operation<'static>,
    invalid: String,
    /// Which mode the row is of, where the profile can tell.
    pub mode: Option<Mode>,
}

impl Draft<'_> {
    /// The row as an operation.
    pub(super) fn operation(&self) -> Operation<'_> {
        Operation {
            operation_id: &self.operation_id,
            id_kind: self.id_kind,
            account: &self.account,
            reference: &self.reference,
            parent_id: &self.parent_id,
            object_id: &self.object_id,
            payout_id: &self.payout_id,
            description: &self.description,
            invalid: &self.invalid,
            ..self.facts
        }
    }

    fn object(&mut self, finding: &str) {
        if !self.invalid.is_empty() {
            self.invalid.push_str("; ");
        }
        self.invalid.push_str(finding);
    }
}

/// What the words of a row say.
struct Meaning {
    kind: OperationKind,
    status: OperationStatus,
    is_final: bool,
    ignore: Option<IgnoreReason>,
    /// What is not known, and what the profile does about it.
    unknown: Option<(String, Otherwise)>,
    /// The kind is unknown and the status says that no money has moved.
    is_known_not_to_move: bool,
}

impl<'p> RowReader<'p> {
    pub(super) fn new(
        profile: &'p Profile,
        rules: &'p ReadRules,
        bound: &'p Bound,
    ) -> RowReader<'p> {
        let mut content_order: Vec<usize> = (0..bound.header.width()).collect();
        content_order.sort_by_key(|position| (bound.header.names().get(*position), *position));
        RowReader {
            profile,
            rules,
            bound,
            content_order,
            occurrences: HashMap::new(),
        }
    }

    /// Reads a row. `Err` = the row contradicts the declared format.
    pub(super) fn read<'r>(
        &mut self,
        row: Row<'r>,
        place: Place<'_>,
        amounts: &mut AmountReader<'_>,
    ) -> Result<Draft<'r>, Failure> {
        let profile = self.profile;
        let skip = profile.layout.skip.iter().find(|rule| {
            let word = self.bound.cell(row, rule.column);
            rule.words.iter().any(|known| known == word)
        });
        let meaning = self.meaning(row, place, skip.is_some())?;
        let kind = meaning.kind;
        let mut draft = Draft {
            operation_id: Cow::Borrowed(""),
            id_kind: IdKind::Native,
            account: self.text(&profile.account, row, kind, None)?,
            reference: self.text(&profile.reference, row, kind, Some(place))?,
            parent_id: self.text(&profile.parent_id, row, kind, Some(place))?,
            object_id: self.text(&profile.object_id, row, kind, Some(place))?,
            payout_id: self.text(&profile.payout_id, row, kind, Some(place))?,
            description: self.text(&profile.description, row, kind, None)?,
            facts: Operation {
                kind,
                status: meaning.status,
                is_final: meaning.is_final,
                line: place.line,
                ..Operation::EMPTY
            },
            invalid: String::new(),
            mode: None,
        };
        draft.reference = match draft.reference {
            Cow::Borrowed(reference) => Cow::Borrowed(trim(reference)),
            Cow::Owned(reference) => Cow::Owned(trim(&reference).to_owned()),
        };
        if draft.account.is_empty() {
            draft.account = Cow::Owned(self.rules.account.clone());
        }
        self.times(&mut draft, row, place)?;
        self.money(&mut draft, row, place, amounts, skip.is_some())?;
        self.derived_refund(&mut draft, row, place, amounts)?;
        self.decide(&mut draft, row, meaning, skip.map(|rule| rule.reason));
        self.identify(&mut draft, row, place)?;
        for (name, key) in [
            ("account", &draft.account),
            ("reference", &draft.reference),
            ("parent_id", &draft.parent_id),
            ("object_id", &draft.object_id),
            ("payout_id", &draft.payout_id),
        ] {
            place.assert_key(name, key)?;
        }
        Ok(draft)
    }

    /// What can still be told about a row that contradicts the format: id and time, no money. `is_whole` = the row has the
    /// right width, so that its cells can be believed.
    pub(super) fn salvage<'r>(
        &mut self,
        row: Row<'r>,
        place: Place<'_>,
        is_whole: bool,
        failure: &Failure,
    ) -> Draft<'r> {
        let prefix = format!("{}:{}: ", place.file, place.line);
        let finding = failure.what.strip_prefix(&prefix).unwrap_or(&failure.what);
        let mut draft = Draft {
            operation_id: Cow::Borrowed(""),
            id_kind: IdKind::Synthetic,
            account: Cow::Owned(self.rules.account.clone()),
            reference: Cow::Borrowed(""),
            parent_id: Cow::Borrowed(""),
            object_id: Cow::Borrowed(""),
            payout_id: Cow::Borrowed(""),
            description: Cow::Borrowed(""),
            facts: Operation {
                line: place.line,
                ..Operation::EMPTY
            },
            invalid: format!("{finding} ({})", failure.why),
            mode: None,
        };
        let has_id = is_whole && self.identify(&mut draft, row, place).is_ok();
        if !has_id {
            self.synthesize(&mut draft, row);
        }
        let time = self.time_text(&self.profile.occurred_at, row);
        if is_whole && !time.is_empty() {
            let zone = self.zone_word(&self.profile.occurred_at, row);
            if let Ok(Read::At(at) | Read::Unclear(at, _)) =
                self.profile.occurred_at.read(&time, zone)
            {
                draft.facts.occurred_at = at;
            }
        }
        draft
    }

    fn cell<'r>(&self, row: Row<'r>, column: ColumnId) -> &'r str {
        self.bound.cell(row, column)
    }

    fn known_name(&self) -> String {
        self.profile.full_name()
    }

    // Words.

    fn meaning(
        &self,
        row: Row<'_>,
        place: Place<'_>,
        is_skipped: bool,
    ) -> Result<Meaning, Failure> {
        let (kind_word, kind_rule) = self.look_up(&self.profile.kinds, row, place, is_skipped)?;
        let (status_word, status_rule) = match &self.profile.statuses {
            Some(map) => self.look_up(map, row, place, is_skipped)?,
            None => (None, None),
        };
        let says = |word: Option<Word>| word.unwrap_or_default();
        let (of_kind, of_status) = (says(kind_word), says(status_word));
        let status = match (&self.profile.statuses, status_word) {
            (Some(_), None) => None,
            _ => of_status.status.or(of_kind.status),
        }
        .unwrap_or(OperationStatus::Unknown);
        let kind_is_unknown = kind_rule.is_some() && of_status.kind.is_none();
        let mut unknown = None;
        for (map, rule, counts) in [
            (Some(&self.profile.kinds), kind_rule, kind_is_unknown),
            (self.profile.statuses.as_ref(), status_rule, true),
        ] {
            if let (Some(map), Some(rule), true) = (map, rule, counts) {
                let word = shown(self.cell(row, map.column));
                let finding = format!(
                    "column \"{}\" holds {word}, which profile {} does not know",
                    self.bound.name(map.column),
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

    /// The meaning of the word in a map's column, or the rule for unknown words.
    fn look_up(
        &self,
        map: &WordMap,
        row: Row<'_>,
        place: Place<'_>,
        is_skipped: bool,
    ) -> Result<(Option<Word>, Option<Otherwise>), Failure> {
        let cell = self.cell(row, map.column);
        let found = if map.is_case_sensitive {
            map.words.get(cell)
        } else {
            map.words.get(cell.to_lowercase().as_str())
        };
        match (found, map.otherwise) {
            (Some(word), _) => Ok((Some(*word), None)),
            (None, Otherwise::Error) if !is_skipped => {
                let mut known: Vec<&str> = map.words.keys().map(String::as_str).collect();
                known.sort_unstable();
                Err(place
                    .cell(
                        &self.bound.name(map.column),
                        cell,
                        "is not a word that the profile knows",
                    )
                    .why(format!(
                        "profile {} knows {} and declares \"*\" = \"error\"",
                        self.known_name(),
                        known.join(", ")
                    ))
                    .remedy("add the word to the profile with its meaning"))
            }
            (None, otherwise) => Ok((None, Some(otherwise))),
        }
    }

    // Texts.

    /// The first candidate that gives something. With a place, the text is an id: exponent notation is refused.
    fn text<'r>(
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
                TextFrom::Column(column) => {
                    let cell = self.plain(self.cell(row, *column));
                    let text = match &candidate.json_pointer {
                        Some(pointer) => Cow::Owned(pointed(cell, pointer)),
                        None => Cow::Borrowed(cell),
                    };
                    if let Some(place) = id_at
                        && is_exponent_notation(&text)
                    {
                        return Err(self.damaged_id(place, *column, &text));
                    }
                    text
                }
            };
            let is_none =
                trim(&text).is_empty() || candidate.not_in.iter().any(|none| *none == text);
            if !is_none {
                return Ok(text);
            }
        }
        Ok(Cow::Borrowed(""))
    }

    fn plain<'r>(&self, cell: &'r str) -> &'r str {
        match cell.as_bytes().first() {
            Some(b'=' | b'\'' | b'\t') if self.profile.layout.strip_text_guard => {
                unguarded_text(cell)
            }
            _ => cell,
        }
    }

    fn damaged_id(&self, place: Place<'_>, column: ColumnId, text: &str) -> Failure {
        place
            .cell(
                &self.bound.name(column),
                text,
                "is an id in exponent notation",
            )
            .why("a spreadsheet has turned the id into a number and lost its digits")
            .remedy("export the file again and do not open it in a spreadsheet before")
    }

    // Identity.

    fn identify<'r>(
        &mut self,
        draft: &mut Draft<'r>,
        row: Row<'r>,
        place: Place<'_>,
    ) -> Result<(), Failure> {
        let (columns, falls_back) = match &self.profile.id {
            IdRule::Synthetic => {
                self.synthesize(draft, row);
                return Ok(());
            }
            IdRule::Columns {
                columns,
                falls_back,
            } => (columns, *falls_back),
        };
        for column in columns {
            let part = self.plain(self.cell(row, *column));
            if is_exponent_notation(part) {
                return Err(self.damaged_id(place, *column, part));
            }
        }
        let (id, id_kind) = if let [only] = columns[..] {
            let id = Cow::Borrowed(self.plain(self.cell(row, only)));
            (id, IdKind::Native)
        } else {
            let part = |column: &ColumnId| self.plain(self.cell(row, *column));
            let parts: Vec<&str> = columns.iter().map(part).collect();
            let is_empty = parts.iter().all(|part| trim(part).is_empty());
            let joined = if is_empty {
                String::new()
            } else {
                parts.join("\x1f")
            };
            (Cow::Owned(joined), IdKind::Composite)
        };
        if !trim(&id).is_empty() {
            place.assert_key(&self.bound.name(columns[0]), &id)?;
            draft.operation_id = id;
            draft.id_kind = id_kind;
            return Ok(());
        }
        if falls_back {
            self.synthesize(draft, row);
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

    /// The id of a row without one: its content and its occurrence number among equal rows of the file.
    fn synthesize(&mut self, draft: &mut Draft<'_>, row: Row<'_>) {
        let mut content = Sha256::new();
        let names = self.bound.header.names();
        // Cells beyond the header count as well: a row that is too wide has content of its own.
        let positions = self.content_order.iter().copied();
        for position in positions.chain(self.bound.header.width()..row.len()) {
            let cell = trim(row.get(position));
            if cell.is_empty() {
                continue;
            }
            match names.get(position) {
                Some(name) if !name.is_empty() => content.update(name),
                _ => content.update((position + 1).to_string()),
            }
            content.update([0x1f]);
            content.update(cell);
            content.update([0x1e]);
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

    // Times.

    fn times(&self, draft: &mut Draft<'_>, row: Row<'_>, place: Place<'_>) -> Result<(), Failure> {
        let rule = &self.profile.occurred_at;
        match self.time(rule, row, place)? {
            None => draft.object(&format!(
                "column \"{}\" is empty, so nobody can tell when it happened",
                self.bound.name(rule.columns[0])
            )),
            Some(read) => {
                let (Read::At(at) | Read::Unclear(at, _)) = read;
                draft.facts.occurred_at = at;
                if let Read::Unclear(_, error) = read {
                    draft.object(&format!(
                        "{} in column \"{}\" {}",
                        shown(&self.time_text(rule, row)),
                        self.bound.name(rule.columns[0]),
                        match error {
                            WallTimeError::Skipped =>
                                "is a time that the clocks of its zone skipped",
                            WallTimeError::Twice =>
                                "is a time that the clocks of its zone showed twice",
                            WallTimeError::OutOfRange => "is no time of the calendar",
                        }
                    ));
                } else if !is_plausible(at) {
                    draft.object(&format!(
                        "{} in column \"{}\" lies outside the years 2000 to 2099",
                        shown(&self.time_text(rule, row)),
                        self.bound.name(rule.columns[0])
                    ));
                }
            }
        }
        for rule in &self.profile.other_times {
            self.time(rule, row, place)?;
        }
        Ok(())
    }

    /// The time of a rule; `None` when its cells are empty.
    fn time(
        &self,
        rule: &TimeRule,
        row: Row<'_>,
        place: Place<'_>,
    ) -> Result<Option<Read>, Failure> {
        let text = self.time_text(rule, row);
        if text.is_empty() {
            return Ok(None);
        }
        let zone = self.zone_word(rule, row);
        rule.read(&text, zone)
            .map(Some)
            .map_err(|error| match (error, &rule.zone) {
                (TimeError::UnknownZone, ZoneRule::Column(column, _)) => place
                    .cell(
                        &self.bound.name(*column),
                        zone,
                        "is no zone that the profile knows",
                    )
                    .why("an abbreviation stands for different zones in different places")
                    .remedy("declare it under [zones] in the profile"),
                _ => place
                    .cell(
                        &self.bound.name(rule.columns[0]),
                        &text,
                        "cannot be read as a time",
                    )
                    .why(format!(
                        "profile {} reads it as {}",
                        self.known_name(),
                        rule.declared()
                    ))
                    .remedy("correct the format in the profile, or export the file again"),
            })
    }

    fn time_text<'r>(&self, rule: &TimeRule, row: Row<'r>) -> Cow<'r, str> {
        if let [only] = rule.columns[..] {
            return Cow::Borrowed(self.cell(row, only));
        }
        let cells: Vec<&str> = rule
            .columns
            .iter()
            .map(|column| self.cell(row, *column))
            .collect();
        Cow::Owned(trim(&cells.join(" ")).to_owned())
    }

    fn zone_word<'r>(&self, rule: &TimeRule, row: Row<'r>) -> &'r str {
        match &rule.zone {
            ZoneRule::Column(column, _) => self.cell(row, *column),
            ZoneRule::InText | ZoneRule::Fixed(_) => "",
        }
    }

    // Verdicts about the row as a whole.

    fn decide(
        &self,
        draft: &mut Draft<'_>,
        row: Row<'_>,
        meaning: Meaning,
        skip: Option<IgnoreReason>,
    ) {
        let net = draft.facts.net_minor;
        let carries_money = match net {
            Some(net) => net != 0,
            None => draft.facts.amount_minor != 0 && !meaning.is_known_not_to_move,
        };
        let mut ignore = skip.or(meaning.ignore);
        if ignore.is_none()
            && let Some((finding, otherwise)) = meaning.unknown
        {
            match otherwise {
                Otherwise::Ignore(reason) => ignore = Some(reason),
                Otherwise::Invalid | Otherwise::Error if carries_money => draft.object(&finding),
                Otherwise::Invalid | Otherwise::Error => ignore = Some(IgnoreReason::NoMoney),
            }
        }
        let denies_money = matches!(
            ignore,
            Some(IgnoreReason::LifeCycle | IgnoreReason::NoMoney | IgnoreReason::FailedAttempt)
        );
        let is_money_denied = denies_money && net.is_some_and(|net| net != 0);
        self.find_mode(draft, row);
        let is_other_scope = match (&self.rules.scope, self.bound.scope) {
            (Some(scope), Some(position)) => trim(row.get(position)) != trim(&scope.value),
            _ => false,
        };
        let is_other_mode = matches!(
            (self.rules.mode, draft.mode),
            (Some(wanted), Some(found)) if wanted != found
        );
        if is_other_scope {
            ignore = Some(IgnoreReason::OtherScope);
        } else if is_other_mode {
            ignore = Some(IgnoreReason::TestMode);
        }
        if is_other_scope || is_other_mode || (skip.is_some() && !is_money_denied) {
            // Whatever else is wrong with the row is not ours to judge.
            draft.invalid.clear();
        } else if let (Some(reason), true) = (ignore, is_money_denied) {
            draft.object(&format!(
                "the profile sets it aside as {reason}, and its net is {} {} in minor units",
                net.unwrap_or(0),
                draft.facts.settle_currency
            ));
        }
        draft.facts.ignore = ignore.filter(|_| draft.invalid.is_empty());
    }

    fn find_mode(&self, draft: &mut Draft<'_>, row: Row<'_>) {
        let Some(rule) = &self.profile.mode else {
            return;
        };
        let word = self.cell(row, rule.column);
        let is_in = |words: &[String]| words.iter().any(|known| known == word);
        draft.mode = if is_in(&rule.live) {
            Some(Mode::Live)
        } else if is_in(&rule.test) {
            Some(Mode::Test)
        } else {
            None
        };
        if draft.mode.is_none() && self.rules.mode.is_some() {
            let name = self.bound.name(rule.column);
            draft.object(&format!(
                "column \"{name}\" holds {}, which is neither live nor test",
                shown(word)
            ));
        }
    }
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
