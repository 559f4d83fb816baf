//! One row of the table → one intent. What cannot be used becomes a finding about the row; nothing about a row is an error
//! of the reading.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::session::Record;
use super::spec::{Origin, Role, Spec};
use crate::intents::amount::{NoAmount, local_amount};
use crate::intents::object;
use crate::model::intent::{Intent, IntentKind, IntentStatus};
use crate::money::Currency;
use crate::processor::is_plausible;
use crate::processor::table::{shown, trim};
use crate::time::{Instant, WallTimeError, parse_wall};

/// Longest id or reference that every store can look up. Unit: bytes.
const ID_BYTES_MAX: usize = 2_000;
/// How much of a longer one is kept, with a hash of the whole. Unit: bytes.
const ID_BYTES_KEPT: usize = 200;

const NO_UNIT: &str = "a number, and time_unit does not say what it counts";
const NO_ZONE: &str = "which has no zone, and time_zone declares none";

/// A text of the table, without white space around it; `Err` = its bytes are no text, and what can be shown of them.
type Cell = Option<Result<String, String>>;

/// Reads rows as the settings say.
pub(super) struct RowReader<'a> {
    spec: &'a Spec,
}

/// What is read of one row.
struct Draft<'a> {
    spec: &'a Spec,
    record: &'a Record,
    invalid: String,
}

impl<'a> RowReader<'a> {
    pub(super) fn new(spec: &'a Spec) -> RowReader<'a> {
        RowReader { spec }
    }

    /// Reads a row and hands its intent on. A row whose creation cannot be told bears `stand_in`.
    pub(super) fn read<T>(
        &self,
        record: &Record,
        stand_in: Instant,
        keep: impl FnOnce(&Intent<'_>) -> T,
    ) -> T {
        let mut draft = Draft {
            spec: self.spec,
            record,
            invalid: String::new(),
        };
        let mut intent_id = draft.id(Role::IntentId);
        if intent_id.is_empty() {
            intent_id = format!("(no id) {}", content_hash(record));
            draft.object("the row has no id, so it can be neither linked nor repaired");
        }
        let kind = draft.kind();
        let status = draft.status(kind);
        let created_at = draft.created_at().unwrap_or(stand_in);
        let currency = draft.word(Role::Currency);
        let written = draft.text(Role::Amount);
        let (amount_minor, currency, written_amount) = draft.amount(&written, &currency);
        let attempt = draft.attempt();
        let first_attempt_at = draft.time(Role::FirstAttemptAt);
        let (key, reference) = (draft.id(Role::IdempotencyKey), draft.id(Role::Reference));
        let processor_ref = draft.id(Role::ProcessorRef);
        let parent = draft.id(Role::ParentIntentId);
        let mut source = draft.word(Role::Source);
        if source.is_empty() {
            source.clone_from(&self.spec.owner);
        }
        keep(&Intent {
            intent_id: &intent_id,
            idempotency_key: &key,
            kind,
            amount_minor,
            currency,
            status,
            created_at,
            processor_ref: &processor_ref,
            attempt,
            parent_intent_id: &parent,
            reference: &reference,
            source: &source,
            first_attempt_at,
            written_amount,
            invalid: &draft.invalid,
            ..Intent::EMPTY
        })
    }
}

impl RowReader<'_> {
    /// What the settings do not say about the time of a row, so that it cannot be told from any row like it.
    pub(super) fn undeclared_time(&self, record: &Record) -> Option<String> {
        let draft = Draft {
            spec: self.spec,
            record,
            invalid: String::new(),
        };
        let Some(Ok(text)) = draft.cell(Role::CreatedAt) else {
            return None;
        };
        match draft.read_time(&text) {
            Err(why @ (NO_UNIT | NO_ZONE)) => Some(format!("{}, {why}", shown(&text))),
            _ => None,
        }
    }
}

impl Draft<'_> {
    fn object(&mut self, finding: &str) {
        object(&mut self.invalid, finding);
    }

    fn cell(&self, role: Role) -> Cell {
        let bytes = self.record.bytes(role as usize)?;
        Some(match std::str::from_utf8(bytes) {
            Ok(text) if !text.contains('\0') => Ok(trim(text).to_owned()),
            _ => Err(String::from_utf8_lossy(bytes).replace('\0', "\u{fffd}")),
        })
    }

    /// The text of a role; empty where there is none.
    fn text(&mut self, role: Role) -> String {
        match self.cell(role) {
            None => String::new(),
            Some(Ok(text)) => text,
            Some(Err(broken)) => {
                self.object(&format!(
                    "column \"{role}\" holds {}, which is not text in UTF-8",
                    shown(&broken)
                ));
                trim(&broken).to_owned()
            }
        }
    }

    fn id(&mut self, role: Role) -> String {
        let text = self.text(role);
        if text.len() <= ID_BYTES_MAX {
            return text;
        }
        self.object(&format!(
            "column \"{role}\" holds {} bytes, and an id or reference has at most {ID_BYTES_MAX}",
            text.len()
        ));
        let kept = (0..=ID_BYTES_KEPT)
            .rev()
            .find_map(|end| text.get(..end))
            .unwrap_or_default();
        format!("{kept}… {}", short(&Sha256::digest(text.as_bytes())))
    }

    /// The company's word, and what the settings make of it.
    fn word(&mut self, role: Role) -> String {
        match self.spec.roles.get(&role) {
            Some(Origin::Fixed(word)) => word.clone(),
            Some(Origin::Column { map, .. }) => {
                let text = self.text(role);
                translated(map, text)
            }
            None => String::new(),
        }
    }

    fn unknown(&mut self, role: Role, word: &str, known: &[&str]) {
        let finding = if word.is_empty() {
            format!("column \"{role}\" is empty")
        } else {
            format!(
                "column \"{role}\" holds {}, which is not one of {} and is not mapped to one",
                shown(word),
                known.join(", ")
            )
        };
        self.object(&finding);
    }

    fn kind(&mut self) -> IntentKind {
        let word = self.word(Role::Kind);
        IntentKind::from_word(&word).unwrap_or_else(|| {
            let known: Vec<&str> = IntentKind::ALL.iter().map(|kind| kind.as_str()).collect();
            self.unknown(Role::Kind, &word, &known);
            IntentKind::Charge
        })
    }

    /// A word that is not known claims nothing.
    fn status(&mut self, kind: IntentKind) -> IntentStatus {
        let word = self.word(Role::Status);
        let fits = |status: &IntentStatus| {
            kind == IntentKind::Dispute || !matches!(status, IntentStatus::Won | IntentStatus::Lost)
        };
        let status = IntentStatus::from_word(&word).filter(fits);
        status.unwrap_or_else(|| {
            let known: Vec<&str> = IntentStatus::ALL
                .iter()
                .filter(|status| fits(status))
                .map(|status| status.as_str())
                .collect();
            self.unknown(Role::Status, &word, &known);
            IntentStatus::Created
        })
    }

    fn amount<'w>(&mut self, written: &'w str, code: &str) -> (i64, Currency, &'w str) {
        match local_amount(self.spec.rules, written, code) {
            Ok(amount) => {
                if !amount.finding.is_empty() {
                    self.object(&amount.finding);
                }
                (amount.minor, amount.currency, amount.written)
            }
            Err(why) => {
                let finding = match why {
                    NoAmount::Empty => "there is no amount".to_owned(),
                    NoAmount::Unreadable => {
                        format!(
                            "column \"amount\" holds {}, which is no amount",
                            shown(written)
                        )
                    }
                    NoAmount::Negative => format!(
                        "the amount {written} is negative, and the kind of an intent gives the direction"
                    ),
                    NoAmount::Fraction => format!(
                        "the amount {written} is no whole number of minor units (amount_unit = \"minor\")"
                    ),
                    NoAmount::TooLarge => format!("the amount {written} is too large"),
                };
                self.object(&finding);
                (0, Currency::NONE, "")
            }
        }
    }

    fn attempt(&mut self) -> Option<u32> {
        let text = self.text(Role::Attempt);
        if text.is_empty() {
            return None;
        }
        let number = text.parse().ok();
        if number.is_none() {
            self.object(&format!(
                "column \"attempt\" holds {}, which is no number of an attempt",
                shown(&text)
            ));
        }
        number
    }

    /// `None` where it cannot be told, which is a finding.
    fn created_at(&mut self) -> Option<Instant> {
        let role = Role::CreatedAt;
        if self
            .cell(role)
            .is_none_or(|cell| cell.is_ok_and(|text| text.is_empty()))
        {
            self.object("it does not say when it was created");
            return None;
        }
        let at = self.time(role)?;
        if !is_plausible(at) {
            self.object(&format!(
                "{at} in column \"{role}\" lies outside the years 2000 to 2099"
            ));
            return None;
        }
        Some(at)
    }

    /// `None` where there is none, and where it cannot be told; the latter is a finding.
    fn time(&mut self, role: Role) -> Option<Instant> {
        let text = self.text(role);
        if text.is_empty() {
            return None;
        }
        let read = self.read_time(&text);
        if let Err(why) = read {
            self.object(&format!("column \"{role}\" holds {}, {why}", shown(&text)));
        }
        read.ok()
    }

    fn read_time(&self, text: &str) -> Result<Instant, &'static str> {
        let is_count = text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'-')
            && !text.get(1..).unwrap_or_default().contains('-');
        match (is_count, self.spec.time_unit) {
            (true, Some(unit)) => {
                let count: i64 = text.parse().map_err(|_| "which is no time")?;
                return count
                    .checked_mul(unit.micros())
                    .map(Instant)
                    .ok_or("which is no time");
            }
            (true, None) => return Err(NO_UNIT),
            (false, _) => {}
        }
        if let Some(at) = Instant::parse(&spelled_out(text)) {
            return Ok(at);
        }
        let wall = parse_wall(text).ok_or("which is no time")?;
        let zone = self.spec.time_zone.as_ref().ok_or(NO_ZONE)?;
        zone.at(wall).map_err(|error| match error {
            WallTimeError::Skipped => "which the clocks of its zone skipped",
            WallTimeError::Twice => "which the clocks of its zone showed twice",
            WallTimeError::OutOfRange => "which is no time",
        })
    }
}

fn translated(map: &BTreeMap<String, String>, text: String) -> String {
    map.get(&text).cloned().unwrap_or(text)
}

/// RFC 3339 of what databases write: a blank between date and time, an offset without minutes.
fn spelled_out(text: &str) -> String {
    const DATE_CHARS: usize = 10;
    let mut text = text.to_owned();
    if text.as_bytes().get(DATE_CHARS) == Some(&b' ') {
        text.replace_range(DATE_CHARS..=DATE_CHARS, "T");
    }
    let tail = text.get(DATE_CHARS..).unwrap_or_default();
    if let Some(sign) = tail.rfind(['+', '-'])
        && tail.len() - sign == "+00".len()
    {
        text.push_str(":00");
    }
    text
}

fn short(hash: &[u8]) -> String {
    const BYTES: usize = 6;
    hash.iter()
        .take(BYTES)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// The same content bears the same mark in every run.
fn content_hash(record: &Record) -> String {
    let mut hash = Sha256::new();
    for role in Role::ALL {
        match record.bytes(*role as usize) {
            Some(bytes) => {
                hash.update([1]);
                hash.update((bytes.len() as u64).to_be_bytes());
                hash.update(bytes);
            }
            None => hash.update([0]),
        }
    }
    short(&hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_databases_are_spelled_out() {
        for (text, want) in [
            ("2026-03-09 09:00:00+00", "2026-03-09T09:00:00+00:00"),
            ("2026-03-09 09:00:00.5-03:30", "2026-03-09T09:00:00.5-03:30"),
            ("2026-03-09T09:00:00Z", "2026-03-09T09:00:00Z"),
            ("2026-03-09 09:00:00", "2026-03-09T09:00:00"),
        ] {
            assert_eq!(spelled_out(text), want);
        }
    }
}
