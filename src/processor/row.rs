//! One row of a file as an operation, by the rules of a profile.
//!
//! Decisions: what contradicts the declared format is an error about the file; what fits the format and cannot be used is
//! kept with its evidence. Evidence names columns and words, never a line, so that it stays the same when a later export
//! shows the row elsewhere. Money is never set aside by a word: a row that the profile would ignore and whose net is not
//! zero is kept for a person.
//!
//! What the words of a row mean is in [`words`], its money in [`money`]; texts, times and identity stand beside them.

mod ids;
mod money;
mod texts;
mod times;
mod words;

use std::borrow::Cow;
use std::collections::HashMap;

use super::amount::AmountReader;
use super::bound::Bound;
use super::moment::{Read, TimeRule};
use super::profile::{ColumnId, Otherwise, Profile};
use super::table::{Place, Row, shown, trim};
use super::{Mode, ReadRules};
use crate::exit::Failure;
use crate::model::operation::{IdKind, Operation};
use crate::model::verdict::IgnoreReason;
use words::Meaning;

/// Reads the rows of one file.
pub(super) struct RowReader<'p> {
    profile: &'p Profile,
    rules: &'p ReadRules,
    bound: &'p Bound,
    /// How often each content has been seen in this file.
    occurrences: HashMap<[u8; 32], u32>,
    /// What the line of the current section says, in the order of its names.
    pub context: Vec<String>,
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
    /// The balance after the row, in minor units of the settling currency.
    pub balance_minor: Option<i64>,
}

impl Draft<'_> {
    const EMPTY: Draft<'static> = Draft {
        operation_id: Cow::Borrowed(""),
        id_kind: IdKind::Native,
        account: Cow::Borrowed(""),
        reference: Cow::Borrowed(""),
        parent_id: Cow::Borrowed(""),
        object_id: Cow::Borrowed(""),
        payout_id: Cow::Borrowed(""),
        description: Cow::Borrowed(""),
        facts: Operation::EMPTY,
        invalid: String::new(),
        mode: None,
        balance_minor: None,
    };

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

impl<'p> RowReader<'p> {
    pub(super) fn new(
        profile: &'p Profile,
        rules: &'p ReadRules,
        bound: &'p Bound,
    ) -> RowReader<'p> {
        RowReader {
            profile,
            rules,
            bound,
            occurrences: HashMap::new(),
            context: Vec::new(),
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
        let mut draft = Draft {
            facts: Operation {
                kind: meaning.kind,
                status: meaning.status,
                is_final: meaning.is_final,
                line: place.line,
                ..Operation::EMPTY
            },
            ..Draft::EMPTY
        };
        self.times(&mut draft, row, place)?;
        self.money(&mut draft, row, place, amounts, skip.is_some())?;
        draft.facts.kind = match draft.facts.amount_minor {
            1.. => meaning.positive,
            0 => meaning.zero,
            _ => meaning.negative,
        }
        .unwrap_or(meaning.kind);
        self.texts(&mut draft, row, place)?;
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
            id_kind: IdKind::Synthetic,
            account: Cow::Owned(self.rules.account.clone()),
            facts: Operation {
                line: place.line,
                ..Operation::EMPTY
            },
            invalid: format!("{finding} ({})", failure.why),
            ..Draft::EMPTY
        };
        let has_id = is_whole && self.identify(&mut draft, row, place).is_ok();
        if !has_id {
            self.synthesize(&mut draft, row, None);
        }
        let time = self.time_text(&self.profile.occurred_at, row);
        if is_whole && !time.is_empty() {
            let zone = self.zone_word(&self.profile.occurred_at, row);
            let source_zone = self.rules.zone.as_ref();
            let (zone_rule, formats) = (&self.bound.zone, &self.bound.formats);
            if let Ok(Read::At(at) | Read::Unclear(at, _)) =
                TimeRule::read(zone_rule, formats, &time, zone, source_zone)
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
        let is_silent = rule.is_optional && word.is_empty();
        if draft.mode.is_none() && self.rules.mode.is_some() && !is_silent {
            let name = self.bound.name(rule.column);
            draft.object(&format!(
                "column \"{name}\" holds {}, which is neither live nor test",
                shown(word)
            ));
        }
    }
}
