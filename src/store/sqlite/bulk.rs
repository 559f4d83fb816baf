//! Many rows in one statement, and lists of keys as one value.

use std::sync::Arc;

use sqlx::sqlite::SqliteArguments;
use sqlx::{Arguments, AssertSqlSafe, SqliteConnection};

use super::failure::Doing;
use crate::exit::Failure;

/// How many values one statement may carry. Beyond some thousands nothing is gained.
const VALUES_MAX: usize = 4_000;

/// How many keys travel in one list.
pub(super) const KEYS_MAX: usize = 1_000;

/// An insert whose values list is repeated: `head values (?, …), (?, …) tail`. Both parts are constants of this program.
pub(super) struct Bulk {
    /// `insert into … (columns)`.
    pub(super) head: &'static str,
    /// How many columns.
    pub(super) columns: usize,
    /// `on conflict …`, or empty.
    pub(super) tail: &'static str,
}

/// The values of one statement, in order.
#[derive(Default)]
pub(super) struct Values {
    arguments: SqliteArguments,
    error: Option<sqlx::error::BoxDynError>,
}

impl Values {
    /// A text; empty = none.
    pub(super) fn text(&mut self, text: &str) -> &mut Values {
        self.add(text)
    }

    /// A number.
    pub(super) fn int(&mut self, value: i64) -> &mut Values {
        self.add(value)
    }

    /// A number, or null.
    pub(super) fn maybe(&mut self, value: Option<i64>) -> &mut Values {
        self.add(value)
    }

    /// 0 or 1.
    pub(super) fn flag(&mut self, value: bool) -> &mut Values {
        self.add(i64::from(value))
    }

    /// A text that many rows share.
    pub(super) fn shared(&mut self, text: &Arc<str>) -> &mut Values {
        self.add(Arc::clone(text))
    }

    fn add<'v, T>(&mut self, value: T) -> &mut Values
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

impl Bulk {
    /// Writes `count` rows, of which `bind` gives the values. Returns how many rows were written.
    pub(super) async fn write(
        &self,
        connection: &mut SqliteConnection,
        doing: &str,
        count: usize,
        mut bind: impl FnMut(usize, &mut Values),
    ) -> Result<u64, Failure> {
        let rows_per_statement = (VALUES_MAX / self.columns).max(1);
        let full: Arc<str> = self.sql(rows_per_statement).into();
        let mut written = 0;
        let mut pack = |from: usize| {
            let to = count.min(from + rows_per_statement);
            let mut values = Values::default();
            values.arguments.reserve((to - from) * self.columns, 0);
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
                self.sql(to - from).into()
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

    fn sql(&self, rows: usize) -> String {
        let row = format!("({})", vec!["?"; self.columns].join(", "));
        let rows = vec![row.as_str(); rows].join(", ");
        format!("{} values {} {}", self.head, rows, self.tail)
    }
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
