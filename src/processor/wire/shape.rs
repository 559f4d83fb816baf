//! Values that may be written in several shapes: one or a list, text or table.

use std::fmt;
use std::marker::PhantomData;

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer, StrDeserializer};
use serde::de::{self, Deserializer, MapAccess, SeqAccess, Visitor};

use super::WordWire;

/// A column by name or by position counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::processor) enum ColumnWire {
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
pub(in crate::processor) struct OneOrMany<T>(pub Vec<T>);

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
pub(in crate::processor) enum TextOr<T> {
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

/// A table of words: every key that is not `column`, `case`, `optional` or `*` is a word of the file.
#[derive(Debug)]
pub(in crate::processor) struct MapWire {
    pub column: Option<OneOrMany<ColumnWire>>,
    pub case: Option<String>,
    pub optional: Option<bool>,
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
                    optional: None,
                    otherwise: None,
                    words: Vec::new(),
                };
                while let Some(key) = map.next_key::<String>()? {
                    match key.as_str() {
                        "column" => wire.column = Some(map.next_value()?),
                        "optional" => wire.optional = Some(map.next_value()?),
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
