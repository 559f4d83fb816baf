//! Many rows in one statement: a column travels as one array, or once where all rows have the same in it.
//!
//! # Decisions
//!
//! - Rows that may be there already go by `insert … select from unnest(…)`. `copy` cannot leave them alone without a temporary
//!   table, and a temporary table is state of a session; it takes the rows that are new ([`super::copy`]).
//! - The server takes every array apart into a list of its own, which is most of what it costs beyond the insert itself.
//!   Most columns of most rows say the same (the source, the currency, no refund), so those are no arrays.

use std::sync::Arc;

use sqlx::encode::IsNull;
use sqlx::error::BoxDynError;
use sqlx::postgres::{PgArgumentBuffer, PgArguments, PgTypeInfo};
use sqlx::{Arguments, AssertSqlSafe, Encode, Postgres, Type};

use super::session::PgSession;
use crate::exit::Failure;
use crate::store::sql::dialect::Bulk;
use crate::store::sql::engine::Values;

/// How many rows one statement writes. Beyond some thousands nothing is gained.
const ROWS_MAX: usize = 5_000;

/// How large the arrays of one statement may become; long texts make statements of fewer rows. Unit: bytes.
const BYTES_MAX: usize = 8 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Int,
}

/// One column, in the engine's binary form.
#[derive(Debug)]
struct Column {
    kind: Kind,
    count: i32,
    /// The first value.
    first: Option<Vec<u8>>,
    /// The elements of the array; empty as long as all values are the first one.
    elements: Vec<u8>,
    is_array: bool,
    has_null: bool,
}

impl Column {
    fn new(kind: Kind, first: Option<&[u8]>) -> Column {
        Column {
            kind,
            count: 1,
            first: first.map(<[u8]>::to_vec),
            elements: Vec::new(),
            is_array: false,
            has_null: first.is_none(),
        }
    }

    fn add(&mut self, bytes: Option<&[u8]>) {
        if !self.is_array && self.first.as_deref() != bytes {
            self.become_array();
        }
        if self.is_array {
            add_element(&mut self.elements, bytes);
        }
        self.has_null |= bytes.is_none();
        self.count += 1;
    }

    fn become_array(&mut self) {
        self.is_array = true;
        for _ in 0..self.count {
            add_element(&mut self.elements, self.first.as_deref());
        }
    }
}

fn add_element(elements: &mut Vec<u8>, bytes: Option<&[u8]>) {
    let length = bytes.map_or(-1, |bytes| {
        i32::try_from(bytes.len()).expect("a field is far below 2 GiB")
    });
    elements.extend(length.to_be_bytes());
    elements.extend(bytes.unwrap_or_default());
}

impl Type<Postgres> for Column {
    fn type_info() -> PgTypeInfo {
        <String as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Column {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        if !self.is_array {
            let Some(value) = &self.first else {
                return Ok(IsNull::Yes);
            };
            buffer.extend(value);
            return Ok(IsNull::No);
        }
        // The fixed numbers of the types, as in the engine's catalogue.
        let element: i32 = match self.kind {
            Kind::Text => 25,
            Kind::Int => 20,
        };
        // One dimension, counted from 1.
        for number in [1, i32::from(self.has_null), element, self.count, 1] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.extend(&self.elements);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(match (self.kind, self.is_array) {
            (Kind::Text, false) => <String as Type<Postgres>>::type_info(),
            (Kind::Text, true) => <Vec<String> as Type<Postgres>>::type_info(),
            (Kind::Int, false) => <i64 as Type<Postgres>>::type_info(),
            (Kind::Int, true) => <Vec<i64> as Type<Postgres>>::type_info(),
        })
    }
}

/// The values of one statement, column by column.
#[derive(Debug, Default)]
pub(crate) struct Columns {
    list: Vec<Column>,
    /// Where the next value goes.
    at: usize,
    bytes: usize,
}

impl Columns {
    fn add(&mut self, kind: Kind, bytes: Option<&[u8]>) {
        match self.list.get_mut(self.at) {
            None => self.list.push(Column::new(kind, bytes)),
            Some(column) => {
                debug_assert_eq!(column.kind, kind, "a column holds one kind of value");
                column.add(bytes);
            }
        }
        self.bytes += 4 + bytes.map_or(0, <[u8]>::len);
        self.at += 1;
    }
}

/// The values of one statement.
#[derive(Debug)]
pub(crate) enum PgValues {
    /// For `insert`.
    Columns(Columns),
    /// For `copy`: each value behind its length.
    Rows(Vec<u8>),
}

impl PgValues {
    fn add(&mut self, kind: Kind, bytes: Option<&[u8]>) -> &mut PgValues {
        match self {
            PgValues::Columns(columns) => columns.add(kind, bytes),
            PgValues::Rows(rows) => add_element(rows, bytes),
        }
        self
    }
}

impl Values for PgValues {
    fn text(&mut self, text: &str) -> &mut PgValues {
        self.add(Kind::Text, Some(text.as_bytes()))
    }

    fn int(&mut self, value: i64) -> &mut PgValues {
        self.add(Kind::Int, Some(&value.to_be_bytes()))
    }

    fn maybe(&mut self, value: Option<i64>) -> &mut PgValues {
        let bytes = value.map(i64::to_be_bytes);
        self.add(Kind::Int, bytes.as_ref().map(<[u8; 8]>::as_slice))
    }

    fn shared(&mut self, text: &Arc<str>) -> &mut PgValues {
        self.text(text)
    }
}

/// Writes `count` rows, of which `bind` gives the values. Returns how many rows were written.
pub(super) async fn write(
    session: &mut PgSession,
    doing: &str,
    bulk: &Bulk,
    count: usize,
    mut bind: impl FnMut(usize, &mut PgValues),
) -> Result<u64, Failure> {
    let mut pack = |from: usize| {
        let mut values = PgValues::Columns(Columns::default());
        let mut to = from;
        while let PgValues::Columns(columns) = &mut values
            && to < count
            && to - from < ROWS_MAX
            && columns.bytes < BYTES_MAX
        {
            columns.at = 0;
            bind(to, &mut values);
            to += 1;
        }
        let PgValues::Columns(mut values) = values else {
            unreachable!("what began as columns stays columns");
        };
        // Something has to say how many rows there are.
        if values.list.iter().all(|column| !column.is_array)
            && let Some(first) = values.list.first_mut()
        {
            first.become_array();
        }
        (values, to)
    };
    let mut written = 0;
    let (mut values, mut to) = pack(0);
    let mut from = 0;
    while from < count {
        let sql = sql(bulk, &values.list);
        let mut arguments = PgArguments::default();
        for column in values.list {
            arguments
                .add(column)
                .map_err(|error| super::failure::failure(doing, &sqlx::Error::Encode(error)))?;
        }
        let statement = session.write_with(doing, AssertSqlSafe(sql), arguments);
        // The next values are made while the server writes these.
        let (result, next) = tokio::join!(statement, async { pack(to) });
        written += result?;
        from = to;
        (values, to) = next;
    }
    Ok(written)
}

fn sql(bulk: &Bulk, columns: &[Column]) -> String {
    let (mut selected, mut arrays, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (number, column) in (1..).zip(columns) {
        if column.is_array {
            selected.push(format!("rows.c{number}"));
            arrays.push(format!("${number}"));
            names.push(format!("c{number}"));
        } else {
            selected.push(format!("${number}"));
        }
    }
    format!(
        "insert into {} select {} from unnest({}) as rows ({}) {}",
        bulk.into,
        selected.join(", "),
        arrays.join(", "),
        names.join(", "),
        bulk.tail.postgres
    )
}
