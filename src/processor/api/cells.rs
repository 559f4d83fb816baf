//! An object as cells, and cells as the rows of a file.
//!
//! A column is told by pointers (RFC 6901) of which the first that gives something counts: `/id`. Beside them:
//! `const:TEXT`; `sum:/fees/*/amount`, the sum of whole numbers in a list; and for a column `metadata[*]` the pointer
//! `/metadata/*`, which gives one column for each name found there.

use std::collections::HashMap;

use serde_json::Value;

use crate::time::Instant;

/// What a column is told by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// The value at a pointer.
    At(String),
    /// Always this.
    Const(String),
    /// The sum of whole numbers: before and behind the `*`.
    Sum(String, String),
}

impl Told {
    /// Reads what a profile writes.
    pub(super) fn parse(text: &str) -> Result<Told, String> {
        if let Some(text) = text.strip_prefix("const:") {
            return Ok(Told::Const(text.to_owned()));
        }
        if let Some(pointer) = text.strip_prefix("sum:") {
            let (list, rest) = pointer
                .split_once("/*")
                .ok_or_else(|| format!("{text:?} has no \"/*\" for the items of a list"))?;
            return Ok(Told::Sum(list.to_owned(), rest.to_owned()));
        }
        if text.starts_with('/') {
            return Ok(Told::At(text.to_owned()));
        }
        Err(format!("{text:?} is no pointer: it begins with \"/\""))
    }

    fn of(&self, object: &Value) -> Option<String> {
        match self {
            Told::Const(text) => Some(text.clone()),
            Told::At(pointer) => object
                .pointer(pointer)
                .map(cell)
                .filter(|cell| !cell.is_empty()),
            Told::Sum(list, rest) => {
                let items = object.pointer(list)?.as_array()?;
                let mut sum = 0_i128;
                for item in items {
                    sum += i128::from(item.pointer(rest)?.as_i64()?);
                }
                (!items.is_empty()).then(|| sum.to_string())
            }
        }
    }
}

/// A column of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name; with `*`, one column for each name that is found.
    pub name: String,
    /// The first that gives something counts.
    pub told: Vec<Told>,
}

/// Name and text.
pub type Cells = Vec<(String, String)>;

/// The cells of an object.
pub fn cells(columns: &[Column], object: &Value) -> Cells {
    let mut cells = Cells::new();
    for column in columns {
        if let Some((before, behind)) = column.name.split_once('*') {
            for told in &column.told {
                let Told::At(pointer) = told else { continue };
                let names = object.pointer(pointer.trim_end_matches("/*"));
                // Some processors answer words of ours as text that holds JSON.
                let written = names.and_then(Value::as_str);
                let written: Option<Value> =
                    written.and_then(|text| serde_json::from_str(text).ok());
                let names = written.as_ref().or(names).and_then(Value::as_object);
                for (name, value) in names.into_iter().flatten() {
                    cells.push((format!("{before}{name}{behind}"), cell(value)));
                }
            }
        } else if let Some(text) = column.told.iter().find_map(|told| told.of(object)) {
            cells.push((column.name.clone(), text));
        }
    }
    cells
}

/// Most digits of a number with decimals that survive the way through JSON.
const DIGITS_MAX: usize = 15;

/// A value as the text of a cell. A number with more digits than are kept exactly is told so that no amount is made of it.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(is) => is.to_string(),
        Value::String(text) => text.clone(),
        Value::Number(number) => {
            let text = number.to_string();
            let digits = text.bytes().filter(u8::is_ascii_digit).count();
            let is_whole = number.is_i64() || number.is_u64();
            if is_whole || digits <= DIGITS_MAX {
                text
            } else {
                format!("{text} (not exact)")
            }
        }
        Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

/// Text at the first pointer that gives some.
pub fn text(object: &Value, pointers: &[&str]) -> String {
    let mut found = pointers
        .iter()
        .filter_map(|pointer| object.pointer(pointer));
    found
        .find_map(|value| match value {
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(cell(value)),
            _ => None,
        })
        .unwrap_or_default()
}

/// A time: RFC 3339, the same with an offset without a colon, or seconds since 1970.
pub fn instant(text: &str) -> Option<Instant> {
    let with_colon = || {
        let (before, minutes) = text.split_at_checked(text.len().checked_sub(2)?)?;
        Instant::parse(&format!("{before}:{minutes}"))
    };
    let seconds = || Some(Instant(text.parse::<i64>().ok()?.checked_mul(1_000_000)?));
    Instant::parse(text).or_else(with_colon).or_else(seconds)
}

/// Rows under a header that grows with the columns that come.
#[derive(Debug, Default)]
pub struct Sheet {
    columns: Vec<String>,
    places: HashMap<String, usize>,
    rows: Vec<Vec<(usize, String)>>,
}

impl Sheet {
    /// A sheet that has these columns whatever comes.
    pub fn with(columns: impl IntoIterator<Item = String>) -> Sheet {
        let mut sheet = Sheet::default();
        for column in columns {
            sheet.place(column);
        }
        sheet
    }

    fn place(&mut self, column: String) -> usize {
        if let Some(place) = self.places.get(&column) {
            return *place;
        }
        self.columns.push(column.clone());
        self.places.insert(column, self.columns.len() - 1);
        self.columns.len() - 1
    }

    /// Adds a row. A column that comes twice in it keeps the first that is not empty.
    pub fn push(&mut self, cells: Cells) {
        let mut row: Vec<(usize, String)> = Vec::with_capacity(cells.len());
        for (name, text) in cells {
            let place = self.place(name);
            match row.iter_mut().find(|(known, _)| *known == place) {
                Some((_, known)) if known.is_empty() => *known = text,
                Some(_) => {}
                None => row.push((place, text)),
            }
        }
        self.rows.push(row);
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// As a CSV file, every cell in quotes.
    pub fn csv(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: &mut dyn Iterator<Item = &str>| {
            for (at, cell) in cells.enumerate() {
                if at > 0 {
                    text.push(',');
                }
                text.push('"');
                text.push_str(&cell.replace('"', "\"\""));
                text.push('"');
            }
            text.push('\n');
        };
        line(&mut self.columns.iter().map(String::as_str));
        for row in &self.rows {
            let mut cells = vec![""; self.columns.len()];
            for (place, cell) in row {
                cells[*place] = cell;
            }
            line(&mut cells.into_iter());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_object_is_a_row_of_named_cells() {
        let column = |name: &str, told: &[&str]| Column {
            name: name.to_owned(),
            told: told
                .iter()
                .map(|told| Told::parse(told).expect("told"))
                .collect(),
        };
        let columns = [
            column("id", &["/id"]),
            column("payment", &["/source/id", "/source"]),
            column("kind", &["const:payment"]),
            column("fee", &["sum:/fees/*/amount"]),
            column("metadata[*]", &["/metadata/*"]),
        ];
        let cells_of = |object| cells(&columns, &object);
        let pair = |name: &str, text: &str| (name.to_owned(), text.to_owned());
        assert_eq!(
            cells_of(
                json!({"id": 19_007_199_254_740_993_i64, "source": "a", "fees": [{"amount": 3}, {"amount": -1}], "metadata": {"order": "7"}})
            ),
            [
                pair("id", "19007199254740993"),
                pair("payment", "a"),
                pair("kind", "payment"),
                pair("fee", "2"),
                pair("metadata[order]", "7"),
            ]
        );
        assert_eq!(
            cells_of(json!({"id": null, "source": {"id": "b"}, "fees": [], "metadata": null})),
            [pair("payment", "b"), pair("kind", "payment")]
        );
    }

    #[test]
    fn times_are_read_as_processors_write_them() {
        let want = Instant::parse("2026-03-09T10:00:00Z");
        for text in [
            "2026-03-09T10:00:00Z",
            "2026-03-09T11:00:00+0100",
            "2026-03-09T10:00:00+00:00",
            "1773050400",
        ] {
            assert_eq!(instant(text), want, "{text}");
        }
        for text in ["", "1", "soon", "2026-03-09", "2026-03-09T10:00:00", "é0"] {
            assert!(instant(text).is_none() || text == "1", "{text}");
        }
    }

    #[test]
    fn a_number_that_is_not_exact_is_no_number() {
        let value: Value = serde_json::from_str("90071992547409.934").expect("JSON");
        assert!(cell(&value).contains("not exact"));
        assert_eq!(cell(&json!(-12.5)), "-12.5");
    }

    #[test]
    fn a_sheet_grows_with_its_columns_and_every_cell_is_quoted() {
        let mut sheet = Sheet::with(["a".to_owned()]);
        sheet.push(vec![("a".to_owned(), "say \"hi\",\nyou".to_owned())]);
        sheet.push(vec![("b".to_owned(), "2".to_owned())]);
        assert_eq!(
            sheet.csv(),
            "\"a\",\"b\"\n\"say \"\"hi\"\",\nyou\",\"\"\n\"\",\"2\"\n"
        );
    }
}
