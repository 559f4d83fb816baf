//! What a CSV profile means, typed so that the decoder has no choice left to make.
//!
//! Every column that a profile names stands once in `Profile::columns`; rules hold its index. A file binds the indices
//! to positions once, in its header.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use regex::Regex;

use super::amount::AmountFormat;
use super::encoding::Encoding;
use super::header::RowWidth;
use super::moment::{TimeFormat, TimeRule, ZoneRule};
use super::sections::Sections;
use super::{compile, wire};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::money::{Currency, NumberFormat};
use crate::time::Span;

/// How a CSV format of a processor is read.
#[derive(Debug)]
pub struct Profile {
    /// What the profile calls itself.
    pub name: String,
    /// Grows with every change of the profile.
    pub version: u32,
    /// Which report it is, where its format was read and what its processor documents.
    pub about: About,
    /// The file's outer form.
    pub(super) layout: Layout,
    /// Every column that a rule names.
    pub(super) columns: Vec<Column>,
    /// Groups of columns of which at least one has to be in the file.
    pub(super) any_of: Vec<Vec<ColumnId>>,
    /// Columns that are found by a pattern: what stands before and behind its `*`.
    pub(super) patterns: Vec<(String, String)>,
    pub(super) id: IdRule,
    pub(super) account: TextRule,
    pub(super) object_id: TextRule,
    pub(super) parent_id: TextRule,
    pub(super) reference: TextRule,
    pub(super) payout_id: TextRule,
    pub(super) description: TextRule,
    pub(super) mode: Option<ModeRule>,
    pub(super) occurred_at: TimeRule,
    /// Times that are checked for their grammar and not kept.
    pub(super) other_times: Vec<TimeRule>,
    pub(super) money: MoneyRules,
    pub(super) derived_refund: Option<DerivedRefund>,
    /// Asked in order: the first that knows the word of its column decides.
    pub(super) kinds: Vec<WordMap>,
    /// The same; empty where the format has no statuses.
    pub(super) statuses: Vec<WordMap>,
    /// What rows, payouts and files have to satisfy.
    pub checks: Checks,
    /// Delays of the format, for the watermark.
    pub spans: Spans,
}

impl Profile {
    /// Reads a profile. `origin` names it in errors: a path, or the name of a built-in one.
    ///
    /// Rejects unknown keys (with line, column and a suggestion), what is missing, and what this version does not support.
    pub fn parse(origin: &str, toml_text: &str) -> Result<Profile, Failure> {
        let wire: wire::ProfileWire = toml::from_str(toml_text)
            .map_err(|error| compile::not_a_profile(origin, toml_text, &error))?;
        compile::compile(origin, wire, "csv")
    }

    /// Reads what a profile of kind `api` says about its rows, which are cells that somebody else has made.
    pub(super) fn parse_api(origin: &str, toml_text: &str) -> Result<Profile, Failure> {
        let wire: wire::ProfileWire = toml::from_str(toml_text)
            .map_err(|error| compile::not_a_profile(origin, toml_text, &error))?;
        compile::compile(origin, wire, "api")
    }

    /// The number of a report in the name of its file, and what the names of its series have in common; `None` = the
    /// format is not numbered, or the file is called otherwise.
    pub fn number_in_series(&self, file_name: &str) -> Option<(String, u64)> {
        let found = self.layout.series.as_ref()?.captures(file_name)?;
        let (whole, number) = (found.get(0)?, found.get(1)?);
        let series = format!(
            "{}{}…{}",
            &file_name[..whole.start()],
            &file_name[whole.start()..number.start()],
            &file_name[number.end()..whole.end()]
        );
        Some((series, number.as_str().parse().ok()?))
    }

    /// Whether nothing in a row tells its mode.
    pub fn has_no_mode(&self) -> bool {
        self.mode.is_none()
    }

    /// Name and version, as the store keeps them beside an operation: `canonical@1`.
    pub fn full_name(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// What a profile says about itself.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The report's name at the processor. Empty where the author gave none.
    pub title: String,
    /// Where the format was read.
    pub evidence: String,
    /// When it was read.
    pub checked_on: String,
    /// How amounts are written: the words of `unit`.
    pub unit: String,
    /// Where the zone of times comes from: an IANA name, an offset, `column …` or `in the text`.
    pub zone: String,
    /// Columns of our reference, in order.
    pub references: Vec<String>,
    /// How long the processor recognises a request that is sent again; `None` = the profile says nothing.
    pub idempotency: Option<Idempotency>,
}

/// How long a processor recognises a request that is sent again.
#[derive(Clone, Debug)]
pub struct Idempotency {
    /// The header or field that carries the key.
    pub carrier: String,
    /// The documented length; a minimum where the processor promises one.
    pub window: Window,
    /// Where that is documented.
    pub evidence: String,
    /// When it was read.
    pub checked_on: String,
    /// Whether a request that arrived is sure to be in what is read once the delay is over: a list or report, not a search.
    pub proves_absence: bool,
}

impl About {
    /// Whether what the source does not show is known to be absent.
    pub fn proves_absence(&self) -> bool {
        self.idempotency
            .as_ref()
            .is_some_and(|it| it.proves_absence)
    }
}

/// A documented length of time, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Window {
    /// At least so long.
    AtLeast(Span),
    /// For ever.
    Indefinite,
    /// Not published: counts as nothing.
    Unknown,
}

/// The outer form of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub encoding: Encoding,
    pub delimiter: Delimiter,
    pub quote: Option<u8>,
    pub header: HeaderForm,
    pub trim: bool,
    pub strip_text_guard: bool,
    pub width: RowWidth,
    pub aliases: BTreeMap<String, String>,
    /// Columns that only another report has, and which report that is.
    pub refuse: BTreeMap<String, String>,
    /// The languages and versions of the header; empty = the profile's own names.
    pub sets: Vec<HeaderSet>,
    /// The number of a report in the name of its file: the first group.
    pub series: Option<Regex>,
    pub skip: Vec<SkipRule>,
    /// Name of a total above the header, to which the rows have to add up.
    pub preamble_total: Option<String>,
    pub end_marker: Option<String>,
    pub controls: Vec<ControlRule>,
    pub expect_rows: Option<u64>,
    pub expect_total: Option<ExpectTotal>,
    pub trailer: Option<Trailer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    Is(u8),
    /// The one under which the header line holds the most names that the profile knows.
    FromHeader,
}

#[derive(Debug)]
pub(super) enum HeaderForm {
    /// The first record that is not blank.
    Named,
    /// The first line whose first cell is this, within so many lines.
    NamedAfterPreamble {
        first_cell: String,
        within_lines: u32,
    },
    /// No header: columns are positions.
    Positional,
    /// The first cell of a line says what the line is.
    ByRecordType(Sections),
}

/// What one language or version of a report calls the columns, and how it writes values.
#[derive(Debug)]
pub(super) struct HeaderSet {
    pub name: String,
    /// Name in the file to the profile's name.
    pub renamed: BTreeMap<String, String>,
    /// Instead of the profile's own.
    pub number: Option<NumberFormat>,
    /// Instead of the formats of `occurred_at`; empty = those.
    pub formats: Vec<TimeFormat>,
    /// Instead of the zone of `occurred_at`.
    pub zone: Option<ZoneRule>,
    /// Columns of the file that a header of this set does not have.
    pub absent: Vec<String>,
}

/// Index into [`Profile::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnId(pub usize);

/// A column as the profile names it.
#[derive(Debug)]
pub(super) struct Column {
    pub at: ColumnAt,
    /// Without it the file is rejected.
    pub is_required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnAt {
    /// By name; `nth` counts from 1 and chooses among columns of one name.
    Name { name: String, nth: Option<usize> },
    /// By position counted from 1.
    Position(usize),
}

/// Rows that are listed as ignored.
#[derive(Debug)]
pub(super) struct SkipRule {
    pub column: ColumnId,
    pub words: Vec<String>,
    pub reason: IgnoreReason,
}

/// Rows that hold the total of the rows above.
#[derive(Debug)]
pub(super) struct ControlRule {
    pub column: ColumnId,
    pub words: Vec<String>,
    pub sum_of: ColumnId,
}

/// A total that the profile's author knows.
#[derive(Debug)]
pub(super) struct ExpectTotal {
    pub column: ColumnId,
    pub value: String,
}

/// The last line of a file, which proves that nothing was cut off.
#[derive(Debug)]
pub(super) struct Trailer {
    pub first_cell: String,
    /// Position, counted from 1, of the number of rows.
    pub rows: Option<usize>,
    /// Position of a total, and the column it sums.
    pub total: Option<(usize, ColumnId)>,
}

/// Where an operation's id comes from.
#[derive(Debug)]
pub(super) enum IdRule {
    /// The content of these columns, and its occurrence number among equal ones.
    Synthetic(Vec<ColumnId>),
    /// One column, or several that are joined.
    Columns {
        /// Where the first one is empty, the row has no id.
        columns: Vec<ColumnId>,
        /// What the id is made of then; `None` = the file is rejected.
        fallback: Option<Vec<ColumnId>>,
    },
}

/// The first candidate that gives something wins; none = there is no such text.
pub(super) type TextRule = Vec<Candidate>;

#[derive(Debug)]
pub(super) struct Candidate {
    pub from: TextFrom,
    /// Values that mean "none".
    pub not_in: Vec<String>,
    /// Where in the cell's JSON the text stands.
    pub json_pointer: Option<String>,
    /// What of the text counts: the first group, or all that fits. What does not fit gives nothing.
    pub regex: Option<Regex>,
    /// Only for rows of these kinds; empty = all.
    pub when_kind: Vec<OperationKind>,
}

#[derive(Debug)]
pub(super) enum TextFrom {
    Column(ColumnId),
    Const(String),
    /// The columns of a pattern in the order of the file, the first that is not empty. Index into `patterns`.
    Columns(usize),
    /// A cell of the section's own line. Index into [`Sections::context`].
    Context(usize),
}

#[derive(Debug)]
pub(super) struct ModeRule {
    pub column: ColumnId,
    pub live: Vec<String>,
    pub test: Vec<String>,
    /// A row may be silent about it: then nothing is concluded.
    pub is_optional: bool,
}

#[derive(Debug)]
pub(super) struct MoneyRules {
    pub format: AmountFormat,
    pub amount: Vec<AmountRule>,
    pub settle_net: Vec<AmountRule>,
    pub settle_gross: Vec<AmountRule>,
    pub fee_total: Vec<AmountRule>,
    /// The fee is what is missing from the amount in the net, in one currency.
    pub fee_is_amount_less_net: bool,
    pub fees: Vec<AmountRule>,
    /// The account's balance after the row.
    pub balance: Vec<AmountRule>,
    /// Amount = net + fee where no column gives one, since the profile derives the settled gross from the net.
    pub amount_is_net_plus_fee: bool,
    /// Net = amount − fee, since the profile derives the settled gross from the amount and gives no net.
    pub net_is_amount_less_fee: bool,
}

#[derive(Debug)]
pub(super) struct AmountRule {
    pub from: AmountFrom,
    pub currency: CurrencyFrom,
    /// The written number has the opposite sign.
    pub is_negated: bool,
    /// A number that is finer than a minor unit is rounded to it, half away from zero.
    pub rounds: bool,
    /// Only for rows of these kinds; empty = all.
    pub when_kind: Vec<OperationKind>,
    /// Only for rows of these statuses; empty = all.
    pub when_status: Vec<OperationStatus>,
}

#[derive(Debug)]
pub(super) enum AmountFrom {
    Column(ColumnId),
    CreditDebit {
        credit: ColumnId,
        debit: ColumnId,
    },
    /// An unsigned number, and a word that tells its sign.
    Signed {
        column: ColumnId,
        sign: ColumnId,
        negative: Vec<String>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum CurrencyFrom {
    Column(ColumnId),
    Const(Currency),
    /// The source's own setting.
    Source,
}

#[derive(Debug)]
pub(super) struct DerivedRefund {
    pub total: AmountRule,
    pub at: Option<TimeRule>,
}

/// What the words of a column mean.
#[derive(Debug)]
pub(super) struct WordMap {
    /// Joined by one space.
    pub columns: Vec<ColumnId>,
    /// Passed over where the file has no such column.
    pub is_optional: bool,
    pub is_case_sensitive: bool,
    pub words: HashMap<String, Word>,
    /// Words that end in `*`, without it, the longest first.
    pub beginnings: Vec<(String, Word)>,
    pub otherwise: Otherwise,
}

impl WordMap {
    /// What a word says; `None` = it is not known.
    pub(super) fn find(&self, word: &str) -> Option<Word> {
        let lower;
        let word = if self.is_case_sensitive {
            word
        } else {
            lower = word.to_lowercase();
            lower.as_str()
        };
        self.words.get(word).copied().or_else(|| {
            let fits = |(beginning, _): &&(String, Word)| word.starts_with(beginning.as_str());
            self.beginnings.iter().find(fits).map(|(_, word)| *word)
        })
    }
}

/// What a word says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub kind: Option<OperationKind>,
    /// The kind instead where the amount is above, at or below zero.
    pub positive: Option<OperationKind>,
    pub zero: Option<OperationKind>,
    pub negative: Option<OperationKind>,
    pub status: Option<OperationStatus>,
    pub is_final: bool,
    pub ignore: Option<IgnoreReason>,
}

/// What an unknown word does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    Invalid,
    Ignore(IgnoreReason),
    Error,
}

/// What the profile promises about sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// In each row net = amount − fee within so many minor units; `None` = not promised.
    pub row_net: Option<RowNet>,
    /// The nets of a payout's rows add up to the payout, within so many minor units; `None` = not promised. Judged by the
    /// core.
    pub payout_tolerance_minor: Option<i64>,
    /// The balance of each row is the one before it plus its net; `None` = not promised.
    pub running_balance: Option<BalanceRule>,
}

/// What a profile leaves to the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct LeftToSource {
    /// The zone of times that name none.
    pub zone: bool,
    /// The currency of amounts that name none.
    pub currency: bool,
    /// The order of day and month, where a file does not prove it.
    pub date_order: bool,
}

impl Profile {
    /// What the source has to say, or may.
    pub fn left_to_source(&self) -> LeftToSource {
        let sets = &self.layout.sets;
        let zones = (self.other_times.iter().map(|time| &time.zone))
            .chain([&self.occurred_at.zone])
            .chain(sets.iter().filter_map(|set| set.zone.as_ref()));
        let money = &self.money;
        let amounts = [
            &money.amount,
            &money.settle_net,
            &money.settle_gross,
            &money.fee_total,
            &money.fees,
        ];
        let formats = sets.iter().map(|set| &set.formats);
        let has_both = |formats: &Vec<TimeFormat>| {
            let is = |order: bool| {
                formats
                    .iter()
                    .any(|format| format.is_day_first() == Some(order))
            };
            is(true) && is(false)
        };
        LeftToSource {
            zone: zones
                .into_iter()
                .any(|zone| matches!(zone, ZoneRule::Source(_))),
            currency: (amounts.into_iter().flatten())
                .any(|rule| matches!(rule.currency, CurrencyFrom::Source)),
            date_order: formats.chain([&self.occurred_at.formats]).any(has_both),
        }
    }
}

/// What it means where balances do not join into one series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BalanceRule {
    /// The file is rejected.
    Rejects,
    /// Nobody knows whether rows are missing: people leave rows out of such a file, and columns. It is told.
    Unverified,
}

/// The promise that net = amount − fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowNet {
    /// Only rows whose net is not 0.
    pub only_where_net: bool,
    /// Tolerated difference in minor units.
    pub tolerance_minor: i64,
    /// Whether a row that breaks it rejects the file; else it is kept as invalid, with its net.
    pub rejects: bool,
}

/// Delays of a format, and the settings they suggest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// How late rows may appear.
    pub delay: Span,
    /// How coarse the format's times are.
    pub granularity: Span,
    /// How far its clock may be off.
    pub clock_error: Span,
    /// What is younger is not judged; the source's own setting overrides it.
    pub lag: Span,
    /// How far before the watermark each run reads again; the source's own setting overrides it.
    pub lookback: Span,
    /// How far before a payout its parts may lie.
    pub payout_span: Span,
    /// How far back rows may still change; `None` = the format says nothing.
    pub rescan: Option<Span>,
}

#[cfg(test)]
mod tests;
