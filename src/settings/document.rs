//! A TOML document with positions: typed access, and errors that say line and column and never quote a line.
//!
//! Decisions: a table is opened with the keys it may hold, so that an unknown key is told before anything else is
//! missed. Values stand in an error text only where the caller says so; a secret is read by functions that never do.

use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::exit::Failure;
use crate::time::Span;

/// The text of a file, for positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Document<'a> {
    /// The file.
    pub(super) path: &'a Path,
    /// Its text.
    pub(super) text: &'a str,
}

impl<'a> Document<'a> {
    /// Reads the text as TOML.
    pub(super) fn parse(self) -> Result<DeTable<'a>, Failure> {
        match DeTable::parse(self.text) {
            Ok(table) => Ok(table.into_inner()),
            Err(error) => {
                let at = error.span().map_or(0, |span| span.start);
                // The library's message says what is wrong; its rendering would also quote the line.
                let message = error
                    .message()
                    .lines()
                    .next()
                    .unwrap_or("not TOML")
                    .to_owned();
                Err(self.error(at, format!("this is not TOML: {message}")))
            }
        }
    }

    /// An error at a byte offset.
    pub(super) fn error(self, offset: usize, what: impl std::fmt::Display) -> Failure {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        Failure::rejected(format!("{}:{line}:{column}: {what}", self.path.display()))
            .state("nothing was read or written")
    }

    /// The folder that relative paths belong to.
    pub(super) fn folder(self) -> &'a Path {
        match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        }
    }

    /// A path of the file, resolved against its folder.
    pub(super) fn resolve(self, path: &str) -> PathBuf {
        let folder = self.folder();
        if folder == Path::new(".") {
            PathBuf::from(path)
        } else {
            folder.join(path)
        }
    }
}

/// A table whose keys are all known.
#[derive(Debug)]
pub(super) struct Table<'d> {
    document: Document<'d>,
    /// How a person writes it: `[source.shop]`.
    name: String,
    /// Where it begins.
    offset: usize,
    entries: &'d DeTable<'d>,
}

impl<'d> Table<'d> {
    /// Opens a table that may hold these keys.
    pub(super) fn open(
        document: Document<'d>,
        name: impl Into<String>,
        offset: usize,
        table: &'d DeTable<'d>,
        known: &[&str],
    ) -> Result<Table<'d>, Failure> {
        let name = name.into();
        let unknown = table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()))
            .min_by_key(|key| key.span().start);
        if let Some(key) = unknown {
            let word = key.get_ref().as_ref();
            let place = if name.is_empty() {
                "the file".to_owned()
            } else {
                name
            };
            let failure =
                document.error(key.span().start, format!("unknown key {word:?} in {place}"));
            return Err(match closest(word, known) {
                Some(near) => failure.remedy(format!("did you mean {near:?}?")),
                None => failure.remedy(format!("known here: {}", known.join(", "))),
            });
        }
        Ok(Table {
            document,
            name,
            offset,
            entries: table,
        })
    }

    /// Every entry, in the order of their names.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'d str, Value<'d>)> + '_ {
        self.entries
            .iter()
            .map(|(key, value)| (key.get_ref().as_ref(), self.value(key.get_ref(), value)))
    }

    fn value(&self, key: &str, value: &'d Spanned<DeValue<'d>>) -> Value<'d> {
        Value {
            document: self.document,
            name: if self.name.is_empty() {
                key.to_owned()
            } else {
                format!("{} {key}", self.name)
            },
            offset: value.span().start,
            inner: value.get_ref(),
        }
    }

    /// The value of a key, if it is there.
    pub(super) fn get(&self, key: &str) -> Option<Value<'d>> {
        self.entries
            .iter()
            .find(|(name, _)| name.get_ref().as_ref() == key)
            .map(|(name, value)| self.value(name.get_ref(), value))
    }

    /// The value of a key that has to be there.
    pub(super) fn require(&self, key: &str, why: &str) -> Result<Value<'d>, Failure> {
        self.get(key).ok_or_else(|| {
            self.document
                .error(self.offset, format!("{key:?} is missing in {}", self.name))
                .why(why)
        })
    }
}

/// A value with its position.
#[derive(Debug)]
pub(super) struct Value<'d> {
    document: Document<'d>,
    /// How a person names it: `[source.shop] lag`.
    name: String,
    offset: usize,
    inner: &'d DeValue<'d>,
}

impl<'d> Value<'d> {
    /// An error about this value.
    pub(super) fn error(&self, what: impl std::fmt::Display) -> Failure {
        self.document
            .error(self.offset, format!("{}: {what}", self.name))
    }

    fn wrong_type(&self, expected: &str) -> Failure {
        let found = self.inner.type_str();
        self.error(format!("has to be {expected}, and is of type {found}"))
    }

    /// A string.
    pub(super) fn text(&self) -> Result<&'d str, Failure> {
        self.inner
            .as_str()
            .ok_or_else(|| self.wrong_type("a string"))
    }

    /// A string that is not empty.
    pub(super) fn some_text(&self) -> Result<&'d str, Failure> {
        match self.text()?.trim() {
            "" => Err(self.error("may not be empty")),
            text => Ok(text),
        }
    }

    /// A string, or a date or time that stands without quotes.
    pub(super) fn point(&self) -> Result<String, Failure> {
        match self.inner.as_datetime() {
            Some(at) => Ok(at.to_string()),
            None => self.some_text().map(str::to_owned),
        }
    }

    /// `true` or `false`.
    pub(super) fn boolean(&self) -> Result<bool, Failure> {
        self.inner
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A whole number between bounds, both inclusive.
    pub(super) fn whole(&self, min: i64, max: i64) -> Result<i64, Failure> {
        let integer = self
            .inner
            .as_integer()
            .ok_or_else(|| self.wrong_type("a whole number"))?;
        match i64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if (min..=max).contains(&number) => Ok(number),
            _ => Err(self.error(format!("has to be between {min} and {max}"))),
        }
    }

    /// True or false.
    pub(super) fn flag(&self) -> Result<bool, Failure> {
        self.inner
            .as_bool()
            .ok_or_else(|| self.wrong_type("true or false"))
    }

    /// A length of time: `"90s"`, `"60m"`, `"72h"`, `"5d"`, `"2w"`.
    pub(super) fn span(&self) -> Result<Span, Failure> {
        let text = self.text()?;
        Span::parse(text).ok_or_else(|| {
            self.error(format!("{text:?} is no length of time")).remedy(
                "write a whole number and one unit: \"90s\", \"60m\", \"72h\", \"5d\" or \"2w\"",
            )
        })
    }

    /// One of some words.
    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)]) -> Result<T, Failure> {
        let text = self.text()?;
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return Ok(*value);
        }
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let failure = self.error(format!("{text:?} is not known here"));
        Err(match closest(text, &known) {
            Some(near) => failure.remedy(format!("did you mean {near:?}?")),
            None => failure.remedy(format!("known here: {}", known.join(", "))),
        })
    }

    /// A list.
    pub(super) fn list(&self) -> Result<Vec<Value<'d>>, Failure> {
        let list = self
            .inner
            .as_array()
            .ok_or_else(|| self.wrong_type("a list"))?;
        Ok(list
            .iter()
            .map(|item| Value {
                document: self.document,
                name: self.name.clone(),
                offset: item.span().start,
                inner: item.get_ref(),
            })
            .collect())
    }

    /// Whether it is a list.
    pub(super) fn is_list(&self) -> bool {
        self.inner.is_array()
    }

    /// Whether it is a table.
    pub(super) fn is_table(&self) -> bool {
        self.inner.is_table()
    }

    /// A table that may hold these keys.
    pub(super) fn table(&self, known: &[&str]) -> Result<Table<'d>, Failure> {
        let table = self
            .inner
            .as_table()
            .ok_or_else(|| self.wrong_type("a table"))?;
        Table::open(self.document, self.name.clone(), self.offset, table, known)
    }

    /// A table whose keys are not words of ours: names, currencies.
    pub(super) fn free_table(&self) -> Result<Vec<(&'d str, Value<'d>)>, Failure> {
        let table = self
            .inner
            .as_table()
            .ok_or_else(|| self.wrong_type("a table"))?;
        let open = Table {
            document: self.document,
            name: self.name.clone(),
            offset: self.offset,
            entries: table,
        };
        Ok(open.entries().collect())
    }

    /// The same value under the name a person would write.
    pub(super) fn named(mut self, name: impl Into<String>) -> Value<'d> {
        self.name = name.into();
        self
    }
}

/// The known word that was probably meant.
pub(super) fn closest<'w>(word: &str, known: &[&'w str]) -> Option<&'w str> {
    let limit = (word.chars().count() / 3).max(1);
    known
        .iter()
        .map(|candidate| (distance(&word.to_lowercase(), candidate), *candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, candidate)| candidate)
}

/// How many characters have to be added, dropped or changed to make one word of the other; neighbours that changed
/// places count as one.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows: Vec<Vec<usize>> = vec![(0..=right.len()).collect()];
    for (i, a) in left.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, b) in right.iter().enumerate() {
            let mut best = (rows[i][j] + usize::from(a != b))
                .min(rows[i][j + 1] + 1)
                .min(row[j] + 1);
            let is_swap = i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b;
            if is_swap {
                best = best.min(rows[i - 1][j - 1] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_is_recognised_and_another_word_is_not() {
        let known = ["lag", "lookback", "files", "start"];
        for (word, want) in [
            ("lookbak", Some("lookback")),
            ("strat", Some("start")),
            ("Files", Some("files")),
            ("file", Some("files")),
            ("colour", None),
            ("x", None),
        ] {
            assert_eq!(closest(word, &known), want, "{word}");
        }
    }
}
