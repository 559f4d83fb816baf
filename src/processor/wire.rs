//! The TOML shapes of a profile, exactly as they may be written. Gives them no meaning: that is `profile::compile`.
//!
//! Decisions: where a value may be written in several shapes (one or a list, text or table), the shape is read by a
//! visitor of its own instead of an untagged enum, so that an unknown key inside still carries its line.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

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
    pub sections: Option<IgnoredAny>,
    pub header_sets: Option<IgnoredAny>,
    pub group: Option<IgnoredAny>,
    pub http: Option<IgnoredAny>,
    pub auth: Option<IgnoredAny>,
    pub request: Option<IgnoredAny>,
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
    #[serde(rename = "evidence")]
    pub _evidence: Option<String>,
    #[serde(rename = "checked_on")]
    pub _checked_on: Option<IgnoredAny>,
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
    pub file_id: Option<IgnoredAny>,
    pub discriminator: Option<IgnoredAny>,
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RecordWire {
    pub operation_id: TextOr<Vec<ColumnWire>>,
    pub operation_id_fallback: Option<String>,
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
    pub column: ColumnWire,
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
    pub exponents: Option<TextOr<BTreeMap<String, u8>>>,
    pub amount: OneOrMany<AmountWire>,
    pub settle_net: Option<OneOrMany<AmountWire>>,
    pub settle_gross: Option<TextOr<OneOrMany<AmountWire>>>,
    pub fee_total: Option<OneOrMany<AmountWire>>,
    pub fees: Option<Vec<AmountWire>>,
    pub fx_rate: Option<ColumnWire>,
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
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DerivedRefundWire {
    pub total: AmountWire,
    pub at: TimeWire,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MapsWire {
    pub kind: Option<MapWire>,
    pub status: Option<MapWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WordWire {
    pub kind: Option<String>,
    pub status: Option<String>,
    #[serde(rename = "final")]
    pub is_final: Option<bool>,
    pub ignore: Option<String>,
    pub bank_ref: Option<IgnoredAny>,
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

/// A column by name or by position counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ColumnWire {
    Name(String),
    Position(usize),
}

impl<'de> Deserialize<'de> for ColumnWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ColumnWire, D::Error> {
        struct Shape;
        impl Visitor<'_> for Shape {
            type Value = ColumnWire;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a column or its position counted from 1")
            }
            fn visit_str<E: de::Error>(self, name: &str) -> Result<ColumnWire, E> {
                Ok(ColumnWire::Name(name.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, position: i64) -> Result<ColumnWire, E> {
                match usize::try_from(position) {
                    Ok(position) if position > 0 => Ok(ColumnWire::Position(position)),
                    _ => Err(E::custom("positions of columns are counted from 1")),
                }
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

/// One value or a list of them.
#[derive(Debug)]
pub(super) struct OneOrMany<T>(pub Vec<T>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMany<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMany<T>, D::Error> {
        struct Shape<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Shape<T> {
            type Value = OneOrMany<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("one value or a list of values")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany<T>, E> {
                T::deserialize(StrDeserializer::new(text)).map(|one| OneOrMany(vec![one]))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<OneOrMany<T>, E> {
                T::deserialize(de::value::I64Deserializer::new(number))
                    .map(|one| OneOrMany(vec![one]))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<OneOrMany<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(|one| OneOrMany(vec![one]))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany<T>, A::Error> {
                let mut all = Vec::new();
                while let Some(one) = list.next_element()? {
                    all.push(one);
                }
                Ok(OneOrMany(all))
            }
        }
        deserializer.deserialize_any(Shape(PhantomData))
    }
}

/// Plain text, or something richer.
#[derive(Debug)]
pub(super) enum TextOr<T> {
    Text(String),
    Other(T),
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for TextOr<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<TextOr<T>, D::Error> {
        struct Shape<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Shape<T> {
            type Value = TextOr<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text, a table or a list")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<TextOr<T>, E> {
                Ok(TextOr::Text(text.to_owned()))
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TextOr<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(TextOr::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<TextOr<T>, A::Error> {
                T::deserialize(SeqAccessDeserializer::new(list)).map(TextOr::Other)
            }
        }
        deserializer.deserialize_any(Shape(PhantomData))
    }
}

/// A table of words: every key that is not `column`, `case` or `*` is a word of the file.
#[derive(Debug)]
pub(super) struct MapWire {
    pub column: Option<ColumnWire>,
    pub case: Option<String>,
    pub otherwise: Option<String>,
    pub words: Vec<(String, WordWire)>,
}

impl<'de> Deserialize<'de> for MapWire {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MapWire, D::Error> {
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = MapWire;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table with `column` and one line for each word")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<MapWire, A::Error> {
                let mut wire = MapWire {
                    column: None,
                    case: None,
                    otherwise: None,
                    words: Vec::new(),
                };
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "column" => wire.column = Some(map.next_value()?),
                        "case" => wire.case = Some(map.next_value()?),
                        "*" => wire.otherwise = Some(map.next_value()?),
                        _ => {
                            let word = map.next_value()?;
                            wire.words.push((key, word));
                        }
                    }
                }
                Ok(wire)
            }
        }
        deserializer.deserialize_map(Shape)
    }
}
