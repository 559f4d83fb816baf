//! A statement stands once, for both engines. Where their dialects differ, a word stands in its text:
//!
//! | word | means |
//! |---|---|
//! | `now` | the database's clock, in microseconds |
//! | `for_update` | the row is held until the transaction ends; the embedded engine holds the whole file anyway |
//! | `greatest` | the larger of two values |
//! | `json_object` | an object of names and values |
//! | `[in n]` | is one of the keys in parameter `n` |
//! | `[not_in n]` | is none of the keys in parameter `n` |
//! | `[is_empty n]` | there are no keys in parameter `n` |
//! | `[planned n]` | the rows `planned (value)` of the JSON array in parameter `n` |
//!
//! # Decisions
//!
//! - No statement names a schema. In `PostgreSQL` the first message of every transaction says where names are looked up:
//!   built-in things first, then our schema, and nowhere else, whatever the server, the role or a pooler have set.
//! - Flags are 0 and 1 and every number is 64 bits wide, so that a row reads the same from both.

/// One statement in both dialects.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sql {
    /// For `SQLite`.
    pub(crate) sqlite: &'static str,
    /// For `PostgreSQL`.
    pub(crate) postgres: &'static str,
}

impl Sql {
    /// Words that both engines understand.
    pub(crate) const fn same(text: &'static str) -> Sql {
        Sql {
            sqlite: text,
            postgres: text,
        }
    }
}

/// A statement from literals and the words above.
macro_rules! sql {
    ($($part:tt)+) => {
        $crate::store::sql::dialect::Sql {
            sqlite: concat!($($crate::store::sql::dialect::in_sqlite!($part)),+),
            postgres: concat!($($crate::store::sql::dialect::in_postgres!($part)),+),
        }
    };
}
pub(in crate::store) use sql;

macro_rules! in_sqlite {
    (now) => {
        "cast(unixepoch('subsec') * 1000000 as integer)"
    };
    (for_update) => {
        ""
    };
    (greatest) => {
        "max"
    };
    (json_object) => {
        "json_object"
    };
    ([in $n:literal]) => {
        concat!("in (select value from json_each($", $n, "))")
    };
    ([not_in $n:literal]) => {
        concat!("not in (select value from json_each($", $n, "))")
    };
    ([is_empty $n:literal]) => {
        concat!("$", $n, " = '[]'")
    };
    ([planned $n:literal]) => {
        concat!("json_each($", $n, ") as planned")
    };
    ($text:literal) => {
        $text
    };
}
pub(in crate::store) use in_sqlite;

macro_rules! in_postgres {
    (now) => {
        "cast(extract(epoch from clock_timestamp()) * 1000000 as bigint)"
    };
    (for_update) => {
        " for update"
    };
    (greatest) => {
        "greatest"
    };
    (json_object) => {
        "json_build_object"
    };
    ([in $n:literal]) => {
        concat!("= any($", $n, ")")
    };
    ([not_in $n:literal]) => {
        concat!("<> all($", $n, ")")
    };
    ([is_empty $n:literal]) => {
        concat!("cardinality($", $n, ") = 0")
    };
    ([planned $n:literal]) => {
        concat!(
            "json_array_elements(cast($",
            $n,
            " as json)) as planned(value)"
        )
    };
    ($text:literal) => {
        $text
    };
}
pub(in crate::store) use in_postgres;

/// An insert of many rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bulk {
    /// The table with its columns: `breaks (break_id, …)`.
    pub(crate) into: &'static str,
    /// How many columns.
    pub(crate) columns: usize,
    /// `on conflict …`, or empty.
    pub(crate) tail: Sql,
    /// Whether all rows are new as far as the writer knows. They may travel in a way that cannot leave alone what is there,
    /// as long as one that is there after all makes the transaction begin again and take the way of `tail`.
    pub(crate) is_new: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_gives_both_dialects() {
        const QUESTION: Sql = sql!("select " now " where key " [in 1] for_update);
        assert_eq!(
            QUESTION.sqlite,
            "select cast(unixepoch('subsec') * 1000000 as integer) \
             where key in (select value from json_each($1))"
        );
        assert_eq!(
            QUESTION.postgres,
            "select cast(extract(epoch from clock_timestamp()) * 1000000 as bigint) \
             where key = any($1) for update"
        );
    }
}
