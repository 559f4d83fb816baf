//! Many rows in one statement: each column travels as one array.
//!
//! # Decisions
//!
//! `insert … select from unnest(…)` and not `copy`: rows that are there already have to be left alone, which `copy` cannot
//! do without a temporary table, and a temporary table is state of a session.

use std::fmt::Write;
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

/// One column as the engine's binary form of an array, without its head.
#[derive(Debug)]
struct Column {
    kind: Kind,
    has_null: bool,
    count: i32,
    bytes: Vec<u8>,
}

impl Column {
    fn add(&mut self, bytes: Option<&[u8]>) {
        self.count += 1;
        let Some(bytes) = bytes else {
            self.has_null = true;
            self.bytes.extend((-1_i32).to_be_bytes());
            return;
        };
        let length = i32::try_from(bytes.len()).expect("a field is far below 2 GiB");
        self.bytes.extend(length.to_be_bytes());
        self.bytes.extend(bytes);
    }
}

impl Type<Postgres> for Column {
    fn type_info() -> PgTypeInfo {
        <Vec<String> as Type<Postgres>>::type_info()
    }
}

impl Encode<'_, Postgres> for Column {
    fn encode_by_ref(&self, buffer: &mut PgArgumentBuffer) -> Result<IsNull, BoxDynError> {
        // The fixed numbers of the types, as in the engine's catalogue.
        let element: i32 = match self.kind {
            Kind::Text => 25,
            Kind::Int => 20,
        };
        // One dimension, counted from 1.
        for number in [1, i32::from(self.has_null), element, self.count, 1] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.extend(&self.bytes);
        Ok(IsNull::No)
    }

    fn produces(&self) -> Option<PgTypeInfo> {
        Some(match self.kind {
            Kind::Text => <Vec<String> as Type<Postgres>>::type_info(),
            Kind::Int => <Vec<i64> as Type<Postgres>>::type_info(),
        })
    }
}

/// The values of one statement, column by column.
#[derive(Debug, Default)]
pub(crate) struct PgValues {
    columns: Vec<Column>,
    /// Where the next value goes.
    at: usize,
    bytes: usize,
}

impl PgValues {
    fn add(&mut self, kind: Kind, bytes: Option<&[u8]>) -> &mut PgValues {
        if self.at == self.columns.len() {
            self.columns.push(Column {
                kind,
                has_null: false,
                count: 0,
                bytes: Vec::new(),
            });
        }
        let column = &mut self.columns[self.at];
        debug_assert_eq!(column.kind, kind, "a column holds one kind of value");
        column.add(bytes);
        self.bytes += 4 + bytes.map_or(0, <[u8]>::len);
        self.at += 1;
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
    let sql: Arc<str> = sql(bulk).into();
    let mut pack = |from: usize| {
        let mut values = PgValues::default();
        let mut to = from;
        while to < count && to - from < ROWS_MAX && values.bytes < BYTES_MAX {
            values.at = 0;
            bind(to, &mut values);
            to += 1;
        }
        (values, to)
    };
    let mut written = 0;
    let (mut values, mut to) = pack(0);
    let mut from = 0;
    while from < count {
        let mut arguments = PgArguments::default();
        for column in values.columns {
            arguments
                .add(column)
                .map_err(|error| super::failure::failure(doing, &sqlx::Error::Encode(error)))?;
        }
        let statement = session.write_with(doing, AssertSqlSafe(Arc::clone(&sql)), arguments);
        // The next values are made while the server writes these.
        let (result, next) = tokio::join!(statement, async { pack(to) });
        written += result?;
        from = to;
        (values, to) = next;
    }
    Ok(written)
}

fn sql(bulk: &Bulk) -> String {
    let mut sql = format!("insert into {} select * from unnest(", bulk.into);
    for column in 1..=bulk.columns {
        let comma = if column == 1 { "" } else { ", " };
        // Writing into a String does not fail.
        let _ = write!(sql, "{comma}${column}");
    }
    let _ = write!(sql, ") {}", bulk.tail);
    sql
}
