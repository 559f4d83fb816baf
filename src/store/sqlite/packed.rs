//! Reading rows in bulk: many rows travel as one text, since a value that crosses the driver by itself costs more than
//! all the work on it.
//!
//! # Decisions
//!
//! Fields are joined by the ASCII unit separator and rows by the record separator. Where a text contains one of them,
//! the count of separators gives it away, and those rows are read again as JSON, one by one.

use sqlx::query::QueryScalar;
use sqlx::sqlite::SqliteArguments;
use sqlx::{Sqlite, SqliteConnection};

use super::bulk::numbers;
use super::failure::Doing;
use crate::exit::Failure;
use crate::store::rows::{Fields, unreadable};

const FIELD: char = '\u{1f}';
const ROW: char = '\u{1e}';

/// How many rows travel as one text.
const ROWS_PER_TEXT: usize = 1_000;

/// Two statements that read the same columns of the rows whose numbers stand in the list `?1`, as the source `?2` sees
/// them: packed, and as JSON.
pub(super) struct Packed {
    /// One row: how many rows, and their packed text.
    pub(super) together: &'static str,
    /// One JSON array of texts per row.
    pub(super) one_by_one: &'static str,
    /// How many columns.
    pub(super) columns: usize,
}

/// A question for row numbers, `select rowid as number …`, that is answered with all of them as one text.
macro_rules! row_numbers {
    ($question:literal) => {
        concat!("select group_concat(number) from (", $question, ")")
    };
}
pub(super) use row_numbers;

/// The answer to such a question.
pub(super) async fn numbers_of(
    connection: &mut SqliteConnection,
    question: QueryScalar<'_, Sqlite, Option<String>, SqliteArguments>,
    doing: &str,
) -> Result<Vec<i64>, Failure> {
    let text = question.fetch_one(connection).await.doing(doing)?;
    let text = text.unwrap_or_default();
    text.split_terminator(',')
        .map(|number| int("row number", number))
        .collect()
}

/// Hands every row of the list to `take`, in the order of the list: it drives the join.
pub(super) async fn read(
    connection: &mut SqliteConnection,
    statement: &Packed,
    seen_from: &str,
    doing: &str,
    rows: &[i64],
    mut take: impl FnMut(&[&str]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut answer: (i64, Option<String>) = (0, None);
    let mut answered: &[i64] = &[];
    for chunk in rows.chunks(ROWS_PER_TEXT).chain([[].as_slice()]) {
        let ask = sqlx::query_as(statement.together)
            .bind(numbers(chunk))
            .bind(seen_from)
            .fetch_one(&mut *connection);
        // The last answer is taken apart while the engine's thread makes the next one.
        let (next, is_taken) = tokio::join!(ask, async {
            take_packed(&answer, statement.columns, &mut take)
        });
        if !is_taken? {
            take_plain(connection, statement, seen_from, doing, answered, &mut take).await?;
        }
        answer = next.doing(doing)?;
        answered = chunk;
    }
    Ok(())
}

/// Takes an answer apart; `false`, and nothing is taken, when a text in it contains a separator.
fn take_packed(
    (count, text): &(i64, Option<String>),
    columns: usize,
    take: &mut impl FnMut(&[&str]) -> Result<(), Failure>,
) -> Result<bool, Failure> {
    let text = text.as_deref().unwrap_or_default();
    if !is_unmistakable(text, *count, columns) {
        return Ok(false);
    }
    if *count > 0 {
        let mut fields = Vec::with_capacity(columns);
        for row in text.split(ROW) {
            fields.clear();
            fields.extend(row.split(FIELD));
            take(&fields)?;
        }
    }
    Ok(true)
}

async fn take_plain(
    connection: &mut SqliteConnection,
    statement: &Packed,
    seen_from: &str,
    doing: &str,
    rows: &[i64],
    take: &mut impl FnMut(&[&str]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let plain: Vec<String> = sqlx::query_scalar(statement.one_by_one)
        .bind(numbers(rows))
        .bind(seen_from)
        .fetch_all(connection)
        .await
        .doing(doing)?;
    for row in plain {
        let fields: Vec<String> =
            serde_json::from_str(&row).map_err(|_| unreadable("row", &row))?;
        if fields.len() != statement.columns {
            return Err(unreadable("row", &row));
        }
        let fields: Vec<&str> = fields.iter().map(String::as_str).collect();
        take(&fields)?;
    }
    Ok(())
}

/// Whether every separator is one: a text that contains one makes their number grow.
fn is_unmistakable(text: &str, rows: i64, columns: usize) -> bool {
    let Ok(rows) = usize::try_from(rows) else {
        return false;
    };
    let separators = |wanted: char| {
        text.bytes()
            .filter(|byte| char::from(*byte) == wanted)
            .count()
    };
    separators(ROW) == rows.saturating_sub(1) && separators(FIELD) == rows * (columns - 1)
}

/// The numbers of the rows that a question finds, each once, ascending.
pub(super) fn sorted(mut rows: Vec<i64>) -> Vec<i64> {
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// A number.
fn int(column: &str, text: &str) -> Result<i64, Failure> {
    text.parse().map_err(|_| unreadable(column, text))
}

impl Fields for &[&str] {
    fn text(&self, at: usize) -> Result<&str, Failure> {
        Ok(self[at])
    }

    fn int(&self, at: usize) -> Result<i64, Failure> {
        int("number", self[at])
    }

    fn maybe(&self, at: usize) -> Result<Option<i64>, Failure> {
        match self[at] {
            "" => Ok(None),
            text => int("number", text).map(Some),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_with_a_separator_in_it_is_noticed() {
        assert!(is_unmistakable("a\u{1f}b\u{1e}c\u{1f}d", 2, 2));
        assert!(!is_unmistakable("a\u{1f}b\u{1f}c\u{1e}d\u{1f}e", 2, 2));
        assert!(!is_unmistakable("a\u{1e}x\u{1f}b", 1, 2));
        assert!(is_unmistakable("", 0, 2));
    }
}
