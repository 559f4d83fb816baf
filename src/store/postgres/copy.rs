//! New rows by `copy`, in the engine's binary form: the shortest way into a table, and one that knows nothing of rows that
//! are there already. Such a row ends the transaction; it begins again, and then all rows go the way of [`super::bulk`].

use std::ops::Range;

use sqlx::PgConnection;
use tokio::time::timeout;

use super::bulk::PgValues;
use super::failure::code;
use super::session::PgSession;
use crate::exit::Failure;
use crate::store::sql::dialect::Bulk;

/// How many rows one statement takes, so that none comes near the time that a statement may take.
const ROWS_MAX: usize = 100_000;

/// How much is sent at once. Unit: bytes.
const CHUNK: usize = 256 << 10;

/// What a stream begins with: the signature, no flags, no extension.
const HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// What a stream ends with, where the number of columns of a further row would stand.
const TRAILER: i16 = -1;

/// SQLSTATE of a row whose key is there already.
const IS_THERE: &str = "23505";

/// Writes `count` rows, of which `bind` gives the values. Returns how many rows were written.
pub(super) async fn write(
    session: &mut PgSession,
    doing: &str,
    bulk: &Bulk,
    count: usize,
    mut bind: impl FnMut(usize, &mut PgValues),
) -> Result<u64, Failure> {
    let statement = format!("copy {} from stdin (format binary)", bulk.into);
    let columns = i16::try_from(bulk.columns).expect("a table has a handful of columns");
    let mut written = 0;
    let mut from = 0;
    while from < count {
        let rows = from..count.min(from + ROWS_MAX);
        from = rows.end;
        let copying = copy(
            &mut session.connection,
            &statement,
            columns,
            rows,
            &mut bind,
        );
        let answer = timeout(PgSession::patience(), copying).await;
        if let Ok(Err(error)) = &answer {
            session.has_met_a_row = code(error) == IS_THERE;
        }
        written += session.understood(doing, answer)?;
    }
    Ok(written)
}

/// One statement: each row is the number of its columns, and each value behind its length.
async fn copy(
    connection: &mut PgConnection,
    statement: &str,
    columns: i16,
    rows: Range<usize>,
    bind: &mut impl FnMut(usize, &mut PgValues),
) -> Result<u64, sqlx::Error> {
    let mut stream = connection.copy_in_raw(statement).await?;
    let mut values = PgValues::Rows(HEADER.to_vec());
    for index in rows {
        if let PgValues::Rows(bytes) = &mut values {
            if bytes.len() >= CHUNK {
                stream.send(bytes.as_slice()).await?;
                bytes.clear();
            }
            bytes.extend(columns.to_be_bytes());
        }
        bind(index, &mut values);
    }
    if let PgValues::Rows(bytes) = &mut values {
        bytes.extend(TRAILER.to_be_bytes());
        stream.send(bytes.as_slice()).await?;
    }
    stream.finish().await
}
