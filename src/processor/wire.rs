//! The TOML shapes of a profile, exactly as they may be written. Gives them no meaning: that is `profile::compile`.
//!
//! Decisions: where a value may be written in several shapes (one or a list, text or table), the shape is read by a
//! visitor of its own instead of an untagged enum, so that an unknown key inside still carries its line.

mod shape;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

pub(super) use shape::{ColumnWire, MapWire, OneOrMany, TextOr};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProfileWire {
    pub profile: NameWire,
    pub csv: Option<CsvWire>,
    pub records: Option<RecordsWire>,
    pub zones: Option<BTreeMap<String, String>>,
    pub maps: Option<MapsWire>,
    pub checks: Option<Vec<CheckWire>>,
    pub watermark: Option<WatermarkWire>,
    pub sections: Option<BTreeMap<String, SectionWire>>,
    pub header_sets: Option<Vec<HeaderSetWire>>,
    pub idempotency: Option<IdempotencyWire>,
    pub group: Option<IgnoredAny>,
    pub http: Option<IgnoredAny>,
    pub auth: Option<IgnoredAny>,
    pub request: Option<IgnoredAny>,
    pub lookup: Option<IgnoredAny>,
    pub account: Option<IgnoredAny>,
    pub fanout: Option<IgnoredAny>,
    pub job: Option<IgnoredAny>,
    pub probe: Option<IgnoredAny>,
    #[serde(rename = "loop")]
    pub loops: Option<IgnoredAny>,
    pub graphql: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NameWire {
    pub name: String,
    pub version: u32,
    pub kind: String,
    pub title: Option<String>,
    pub evidence: Option<String>,
    pub checked_on: Option<DateWire>,
    pub open_questions: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CsvWire {
    pub encoding: Option<String>,
    pub delimiter: Option<String>,
    pub quote: Option<String>,
    pub header: Option<String>,
    pub header_match: Option<HeaderMatchWire>,
    pub trim: Option<bool>,
    pub strip_text_guard: Option<bool>,
    pub row_width: Option<String>,
    pub required: Option<Vec<String>>,
    pub aliases: Option<BTreeMap<String, String>>,
    pub skip_rows: Option<Vec<SkipWire>>,
    pub series: Option<String>,
    pub refuse: Option<BTreeMap<String, String>>,
    pub preamble_total: Option<String>,
    pub end_marker: Option<String>,
    pub control_rows: Option<Vec<ControlWire>>,
    pub expect_rows: Option<u64>,
    pub expect_total: Option<ExpectTotalWire>,
    pub trailer: Option<TrailerWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderMatchWire {
    pub first_cell: String,
    pub within_lines: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SkipWire {
    pub column: ColumnWire,
    #[serde(rename = "in")]
    pub words: Vec<String>,
    pub reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ControlWire {
    pub column: ColumnWire,
    #[serde(rename = "in")]
    pub words: Vec<String>,
    pub sum_of: ColumnWire,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectTotalWire {
    pub column: ColumnWire,
    pub value: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrailerWire {
    pub first_cell: String,
    pub rows: Option<usize>,
    pub total: Option<TrailerTotalWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TrailerTotalWire {
    pub position: usize,
    pub sum_of: ColumnWire,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordsWire {
    pub default: RecordWire,
}

/// A kind of line, in a file whose lines say in their first cell what they are.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionWire {
    pub role: String,
    pub cells: Option<BTreeMap<String, usize>>,
    pub currency: Option<usize>,
    pub totals: Option<Vec<SectionTotalWire>>,
    pub cell: Option<usize>,
    pub of: Option<String>,
    pub required: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SectionTotalWire {
    pub cell: usize,
    pub sum_of: ColumnWire,
    pub currency: ColumnWire,
    #[serde(rename = "where")]
    pub column: Option<ColumnWire>,
    #[serde(rename = "in")]
    pub words: Option<Vec<String>>,
}

/// The names that one language or version of a report gives to the profile's columns.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HeaderSetWire {
    pub name: String,
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    pub decimal: Option<String>,
    pub group: Option<String>,
    pub format: Option<OneOrMany<String>>,
    pub zone: Option<String>,
    #[serde(default)]
    pub absent: Vec<String>,
}

/// How long the processor recognises a request that is sent again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IdempotencyWire {
    pub carrier: String,
    pub window: String,
    pub evidence: String,
    pub checked_on: DateWire,
    pub absence: Option<String>,
}

/// A day, as a TOML date or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum DateWire {
    Date(toml::value::Datetime),
    Text(String),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordWire {
    pub operation_id: TextOr<Vec<ColumnWire>>,
    pub operation_id_fallback: Option<String>,
    pub identity: Option<Vec<ColumnWire>>,
    pub account: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub object_id: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub parent_id: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub reference: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub payout_id: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub bank_ref: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub description: Option<OneOrMany<TextOr<CandidateWire>>>,
    pub mode: Option<ModeWire>,
    pub occurred_at: TimeWire,
    pub updated_at: Option<TimeWire>,
    pub booked_at: Option<TimeWire>,
    pub available_on: Option<TimeWire>,
    pub settled_on: Option<TimeWire>,
    pub money: MoneyWire,
    pub derived_refund: Option<DerivedRefundWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CandidateWire {
    pub column: Option<ColumnWire>,
    pub columns: Option<String>,
    pub not_in: Option<Vec<String>>,
    pub json_pointer: Option<String>,
    pub when_kind: Option<Vec<String>>,
    pub regex: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeWire {
    pub column: ColumnWire,
    pub live: Vec<String>,
    pub test: Vec<String>,
    pub optional: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TimeWire {
    pub column: OneOrMany<ColumnWire>,
    pub format: Option<OneOrMany<String>>,
    pub zone: Option<String>,
    pub zone_column: Option<ColumnWire>,
    pub optional: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MoneyWire {
    pub unit: String,
    pub decimal: Option<String>,
    pub group: Option<String>,
    pub currency_sign: Option<String>,
    pub minus: Option<Vec<String>>,
    pub exponents: Option<TextOr<BTreeMap<String, u8>>>,
    pub amount: OneOrMany<AmountWire>,
    pub settle_net: Option<OneOrMany<AmountWire>>,
    pub settle_gross: Option<TextOr<OneOrMany<AmountWire>>>,
    pub fee_total: Option<TextOr<OneOrMany<AmountWire>>>,
    pub fees: Option<Vec<AmountWire>>,
    pub fx_rate: Option<ColumnWire>,
    pub balance: Option<AmountWire>,
    pub bare_fraction: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AmountWire {
    #[serde(rename = "type")]
    pub fee_type: Option<String>,
    pub column: Option<ColumnWire>,
    pub credit: Option<ColumnWire>,
    pub debit: Option<ColumnWire>,
    pub sign_column: Option<ColumnWire>,
    pub negative: Option<Vec<String>>,
    pub cost_when: Option<Vec<String>>,
    pub sign: Option<String>,
    pub currency: Option<ColumnWire>,
    pub finer: Option<String>,
    pub when_kind: Option<Vec<String>>,
    pub when_status: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DerivedRefundWire {
    pub total: AmountWire,
    pub at: Option<TimeWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapsWire {
    pub kind: Option<OneOrMany<MapWire>>,
    pub status: Option<OneOrMany<MapWire>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WordWire {
    pub kind: Option<String>,
    pub status: Option<String>,
    #[serde(rename = "final")]
    pub is_final: Option<bool>,
    pub ignore: Option<String>,
    pub positive: Option<String>,
    pub zero: Option<String>,
    pub negative: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CheckWire {
    pub scope: String,
    pub rule: String,
    pub when: Option<String>,
    pub tolerance_minor: Option<i64>,
    pub group_by: Option<Vec<String>>,
    pub on_missing_payout: Option<String>,
    pub on_failure: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WatermarkWire {
    pub kind: Option<String>,
    pub field: Option<String>,
    pub gap: Option<String>,
    pub delay: Option<String>,
    pub granularity: Option<String>,
    pub clock_error: Option<String>,
    pub lag: Option<String>,
    pub lookback: Option<String>,
    pub payout_span: Option<String>,
    pub rescan: Option<String>,
}
