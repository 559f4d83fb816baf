//! Decoding a CSV file by profile: bytes in, operations out.
//!
//! The way of a file: `encoding` makes text of bytes, `table` finds records and lines,
//! `bound` finds the columns, `row` makes an operation of a row by way of `amount` and `moment`, and `proof` holds the
//! file to what it promises about itself.

use super::amount::AmountReader;
pub use super::balance::BalanceFacts;
use super::balance::RunningBalance;
use super::preamble::PreambleTotal;
use super::profile::{HeaderForm, Profile};
use super::proof::Proof;
use super::row::{Draft, RowReader};
use super::sections::SectionProof;
use super::table::Far;
use super::{ReadRules, bound, encoding};
use crate::exit::Failure;
use crate::meter::Meter;
use crate::model::operation::Operations;
use crate::model::verdict::IgnoreReason;
use crate::time::Instant;

/// What reading a file has shown, beside its rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FileFacts {
    /// Rows that became operations, whatever became of them.
    pub rows: u64,
    /// Rows whose cells are all empty; left out.
    pub blank_rows: u64,
    /// Rows with a format error that was tolerated; each is invalid.
    pub quarantined: u64,
    /// Rows that cannot be used, the quarantined ones included.
    pub invalid: u64,
    /// The newest time of a row that can be used, in whatever scope and mode; `None` without rows.
    pub newest: Option<Instant>,
    /// Whether something in the file or the profile proves that no row is missing.
    pub is_verified: bool,
    /// Rows of the mode that the source declares; 0 where it declares none.
    pub rows_of_mode: u64,
    /// Rows of the other mode.
    pub rows_of_other_mode: u64,
    /// What its running balance says; `None` = it has none.
    pub balance: Option<BalanceFacts>,
}

/// Reads a file by profile and appends its rows to a batch. `file_name` stands in errors, `file_index` in the rows; the
/// meter counts bytes of the file.
///
/// Rejects the file as a whole where it contradicts the declared format; what was appended by then has to be thrown away.
/// At most `rules.tolerate_bad_rows` rows with a format error become invalid rows instead. The error's `state` is left to
/// the caller.
pub fn decode(
    profile: &Profile,
    rules: &ReadRules,
    file_name: &str,
    file_index: u16,
    bytes: &[u8],
    into: &mut Operations,
    meter: &Meter,
) -> Result<FileFacts, Failure> {
    let text = encoding::decode(profile.layout.encoding, file_name, bytes)?;
    let mut far = Far::new(meter, bytes.len(), text.len());
    into.text.reserve(text.len());
    let (mut records, bound) = bound::open(profile, rules, file_name, &text)?;
    let mut total = PreambleTotal::find(profile, file_name, &text, &records)?;
    let mut amounts = AmountReader::new(&bound.amounts, profile.layout.strip_text_guard);
    let mut reader = RowReader::new(profile, rules, &bound);
    let mut proof = Proof::new(profile);
    let mut sections = match &profile.layout.header {
        HeaderForm::ByRecordType(sections) => Some(SectionProof::new(sections)),
        _ => None,
    };
    let mut balance = profile.checks.running_balance.map(RunningBalance::new);
    let mut facts = FileFacts::default();
    while records.advance()? {
        far.pass(&records);
        let (row, place) = (records.row(), records.place());
        if row.is_blank() {
            facts.blank_rows += 1;
            continue;
        }
        if proof.is_end(&records, &mut amounts)? {
            continue;
        }
        if let Some(sections) = &mut sections {
            if sections.is_other(&records, &bound, &mut amounts)? {
                continue;
            }
            reader.context.clone_from(&sections.context);
        }
        let width = bound.header.check(&records, profile.layout.width);
        if width.is_ok() && proof.is_control(place, row, &bound, &mut amounts)? {
            continue;
        }
        let is_whole = width.is_ok();
        proof.count(&records);
        let read = width.and_then(|()| {
            let draft = reader.read(row, place, &mut amounts)?;
            proof.add(place, row, &bound, &mut amounts)?;
            if let Some(sections) = &mut sections {
                sections.add(place, row, &bound, &mut amounts)?;
            }
            if let Some(balance) = &mut balance {
                balance.add(place, &draft.operation(), draft.balance_minor);
            }
            Ok(draft)
        });
        let draft = match read {
            Ok(draft) => draft,
            Err(failure) if facts.quarantined < rules.tolerate_bad_rows => {
                facts.quarantined += 1;
                reader.salvage(row, place, is_whole, &failure)
            }
            Err(failure) => return Err(failure),
        };
        if let Some(total) = &mut total {
            total.add(&draft.operation());
        }
        keep(&draft, rules, file_index, &mut facts, into);
    }
    far.end();
    facts.is_verified = proof.finish(file_name, &mut amounts)?;
    if let Some(total) = total {
        total.finish(&mut amounts)?;
        facts.is_verified = true;
    }
    if let Some(sections) = &sections {
        facts.is_verified |= sections.finish(file_name)?;
    }
    if let Some(balance) = balance {
        facts.balance = balance.finish(file_name)?;
    }
    Ok(facts)
}

fn keep(
    draft: &Draft<'_>,
    rules: &ReadRules,
    file_index: u16,
    facts: &mut FileFacts,
    into: &mut Operations,
) {
    let mut operation = draft.operation();
    operation.file = file_index;
    facts.rows += 1;
    if operation.invalid.is_empty() {
        facts.newest = facts.newest.max(Some(operation.occurred_at));
    } else {
        facts.invalid += 1;
    }
    if rules.mode.is_some() {
        match (operation.ignore, draft.mode) {
            (Some(IgnoreReason::TestMode), _) => facts.rows_of_other_mode += 1,
            (_, mode) if mode == rules.mode => facts.rows_of_mode += 1,
            _ => {}
        }
    }
    into.push(&operation);
}

#[cfg(test)]
mod tests;
