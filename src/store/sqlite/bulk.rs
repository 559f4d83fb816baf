//! Many rows in one statement, and lists of keys as one value.

use std::sync::Arc;

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, SqliteConnection};

use super::failure::Doing;
use crate::exit::Failure;
use crate::store::sql::dialect::Bulk;
use crate::store::sql::engine::Values;

/// How many values one statement may carry. Beyond some thousands nothing is gained.
const VALUES_MAX: usize = 4_000;

/// The values of one statement, in order.
#[derive(Default)]
pub(crate) struct SqliteValues {
    arguments: SqliteArguments,
    error: Option<sqlx::error::BoxDynError>,
}

impl Values for SqliteValues {
    fn text(&mut self, text: &str) -> &mut SqliteValues {
        self.add(text)
    }

    fn int(&mut self, value: i64) -> &mut SqliteValues {
        self.add(value)
    }

    fn maybe(&mut self, value: Option<i64>) -> &mut SqliteValues {
        self.add(value)
    }

    fn shared(&mut self, text: &Arc<str>) -> &mut SqliteValues {
        self.add(Arc::clone(text))
    }
}

impl SqliteValues {
    fn add<'v, T>(&mut self, value: T) -> &mut SqliteValues
    where
        T: sqlx::Encode<'v, sqlx::Sqlite> + sqlx::Type<sqlx::Sqlite>,
    {
        if let Err(error) = Arguments::add(&mut self.arguments, value) {
            self.error.get_or_insert(error);
        }
        self
    }

    fn finish(self) -> Result<SqliteArguments, sqlx::Error> {
        match self.error {
            None => Ok(self.arguments),
            Some(error) => Err(sqlx::Error::Encode(error)),
        }
    }
}

/// Writes `count` rows, of which `bind` gives the values: `values (?, …), (?, …)`. Returns how many rows were written.
pub(super) async fn write(
    connection: &mut SqliteConnection,
    doing: &str,
    bulk: &Bulk,
    count: usize,
    mut bind: impl FnMut(usize, &mut SqliteValues),
) -> Result<u64, Failure> {
    let rows_per_statement = (VALUES_MAX / bulk.columns).max(1);
    let full: Arc<str> = sql(bulk, rows_per_statement).into();
    let mut written = 0;
    let mut pack = |from: usize| {
        let to = count.min(from + rows_per_statement);
        let mut values = SqliteValues::default();
        values.arguments.reserve((to - from) * bulk.columns, 0);
        for row in from..to {
            bind(row, &mut values);
        }
        (values.finish(), to)
    };
    let (mut values, mut to) = pack(0);
    let mut from = 0;
    while from < count {
        let is_full = to - from == rows_per_statement;
        let sql = if is_full {
            Arc::clone(&full)
        } else {
            sql(bulk, to - from).into()
        };
        let statement = sqlx::query_with(AssertSqlSafe(sql), values.doing(doing)?)
            .persistent(is_full)
            .execute(&mut *connection);
        // The next values are made while the engine's thread writes these.
        let (result, next) = tokio::join!(statement, async { pack(to) });
        written += result.doing(doing)?.rows_affected();
        from = to;
        (values, to) = next;
    }
    Ok(written)
}

/// `or fail`: an error ends the whole transaction, so the engine need not be able to take back one statement.
fn sql(bulk: &Bulk, rows: usize) -> String {
    let row = format!("({})", vec!["?"; bulk.columns].join(", "));
    let rows = vec![row.as_str(); rows].join(", ");
    format!(
        "insert or fail into {} values {} {}",
        bulk.into, rows, bulk.tail.sqlite
    )
}

/// A list as one value, for `json_each`.
pub(super) fn list<T: AsRef<str>>(keys: &[T]) -> String {
    let keys: Vec<&str> = keys.iter().map(AsRef::as_ref).collect();
    serde_json::Value::from(keys).to_string()
}

/// Numbers as one value, for `json_each`.
pub(super) fn numbers(rows: &[i64]) -> String {
    use std::fmt::Write;
    let mut text = String::with_capacity(rows.len() * 8 + 2);
    text.push('[');
    for (index, row) in rows.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        // Writing into a String does not fail.
        let _ = write!(text, "{comma}{row}");
    }
    text.push(']');
    text
}
