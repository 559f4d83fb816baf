//! What the words of a file mean.

use hashbrown::HashMap;

use super::{Compiler, Need};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::processor::profile::{Otherwise, Word, WordMap};
use crate::processor::wire::{MapWire, OneOrMany, WordWire};

impl Compiler<'_> {
    /// Several maps of one thing: each later one is asked where those before do not know the word.
    pub(super) fn word_maps(
        &mut self,
        key: &str,
        wires: &OneOrMany<MapWire>,
    ) -> Result<Vec<WordMap>, Failure> {
        let mut maps = Vec::new();
        let last = wires.0.len().saturating_sub(1);
        for (at, wire) in wires.0.iter().enumerate() {
            if at < last && wire.otherwise.is_some() {
                return Err(self
                    .refuse(&format!("{key} declares \"*\" before its last map"))
                    .why("what the first map does not know is asked in the next one")
                    .remedy("leave it out of all but the last"));
            }
            maps.push(self.word_map(key, wire)?);
        }
        Ok(maps)
    }

    fn word_map(&mut self, key: &str, wire: &MapWire) -> Result<WordMap, Failure> {
        let columns = match &wire.column {
            Some(OneOrMany(columns)) if !columns.is_empty() => columns,
            _ => {
                return Err(self
                    .refuse(&format!("{key} names no column"))
                    .remedy("write column = \"Type\""));
            }
        };
        let is_case_sensitive = match wire.case.as_deref() {
            None => true,
            Some(word) => self.word(
                &format!("{key}.case"),
                word,
                [("sensitive", true), ("insensitive", false)],
            )?,
        };
        let otherwise = match wire.otherwise.as_deref() {
            None => Otherwise::Invalid,
            Some(text) => match text.strip_prefix("ignore:") {
                Some(reason) => Otherwise::Ignore(self.reason(&format!("{key}.\"*\""), reason)?),
                None => self.word(
                    &format!("{key}.\"*\""),
                    text,
                    [
                        ("invalid_record", Otherwise::Invalid),
                        ("error", Otherwise::Error),
                    ],
                )?,
            },
        };
        let mut words = HashMap::new();
        let mut beginnings = Vec::new();
        for (written, word) in &wire.words {
            let here = format!("{key}.{written}");
            let value = self.meaning(&here, word)?;
            if key == "maps.kind" && value.kind.is_none() && value.ignore.is_none() {
                return Err(self
                    .refuse(&format!("{here} names no kind"))
                    .remedy("write kind = \"charge\", or ignore = \"life_cycle\""));
            }
            let written = if is_case_sensitive {
                written.clone()
            } else {
                written.to_lowercase()
            };
            let is_twice = match written.strip_suffix('*') {
                Some(beginning) => {
                    let known = beginnings.iter().any(|(known, _)| *known == beginning);
                    beginnings.push((beginning.to_owned(), value));
                    known
                }
                None => words.insert(written, value).is_some(),
            };
            if is_twice {
                return Err(self
                    .refuse(&format!("{here} is there twice, in another case"))
                    .remedy("leave one of the two out"));
            }
        }
        // The longest beginning that fits is the one that was meant.
        beginnings.sort_by_key(|(beginning, _)| std::cmp::Reverse(beginning.len()));
        if words.is_empty() && beginnings.is_empty() {
            words = contract_words(key == "maps.kind");
        }
        let is_optional = wire.optional.unwrap_or(false);
        let need = if is_optional {
            Need::Optional
        } else {
            Need::Always
        };
        Ok(WordMap {
            columns: columns
                .iter()
                .map(|column| self.column(column, need))
                .collect(),
            is_optional,
            is_case_sensitive,
            words,
            beginnings,
            otherwise,
        })
    }

    fn meaning(&self, here: &str, word: &WordWire) -> Result<Word, Failure> {
        let kind = |written: &Option<String>| {
            let written = written.as_deref();
            written.map(|kind| self.kind(here, kind)).transpose()
        };
        Ok(Word {
            kind: kind(&word.kind)?,
            positive: kind(&word.positive)?,
            zero: kind(&word.zero)?,
            negative: kind(&word.negative)?,
            status: word
                .status
                .as_deref()
                .map(|status| self.status(here, status))
                .transpose()?,
            is_final: word.is_final.unwrap_or(false),
            ignore: word
                .ignore
                .as_deref()
                .map(|reason| self.reason(here, reason))
                .transpose()?,
        })
    }

    /// A list of statuses.
    pub(super) fn statuses(
        &self,
        key: &str,
        written: Option<&[String]>,
    ) -> Result<Vec<OperationStatus>, Failure> {
        let statuses = written.unwrap_or_default().iter();
        statuses.map(|status| self.status(key, status)).collect()
    }

    /// A list of kinds.
    pub(super) fn kinds(
        &self,
        key: &str,
        written: Option<&[String]>,
    ) -> Result<Vec<OperationKind>, Failure> {
        let kinds = written.unwrap_or_default().iter();
        kinds.map(|kind| self.kind(key, kind)).collect()
    }
}

/// The contract's own words, one to one: what a map without words means.
fn contract_words(of_kinds: bool) -> HashMap<String, Word> {
    if of_kinds {
        let word = |kind: &OperationKind| Word {
            kind: Some(*kind),
            ..Word::default()
        };
        OperationKind::ALL
            .iter()
            .map(|kind| (kind.as_str().to_owned(), word(kind)))
            .collect()
    } else {
        let word = |status: &OperationStatus| Word {
            status: Some(*status),
            ..Word::default()
        };
        OperationStatus::ALL
            .iter()
            .map(|status| (status.as_str().to_owned(), word(status)))
            .collect()
    }
}
