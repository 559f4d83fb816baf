//! How each engine writes a name, a text, a list.

use super::session::{Statement, Value};

/// An engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Postgres,
    /// `MySQL` and `MariaDB`.
    MySql,
    Sqlite,
}

/// What a column holds, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Text, also in words of an enum.
    Text,
    /// A word of an enum of `PostgreSQL`: compared with texts only after a cast.
    Word,
    /// True or false.
    Flag,
    /// Whole numbers.
    Int,
    /// Exact decimals with so many places; `None` = as many as were written.
    Decimal(Option<u32>),
    /// Binary fractions.
    Real,
    /// A UUID.
    Uuid,
    /// An instant.
    Instant,
    /// A wall-clock time without a zone.
    Wall,
    /// A calendar day.
    Day,
    /// Anything else.
    Other,
}

/// How many keys one question takes. `SQLite` and `MySQL` have a place for each of them.
pub(super) const fn keys_max(engine: Engine) -> usize {
    match engine {
        Engine::Postgres => 10_000,
        Engine::MySql | Engine::Sqlite => 2_000,
    }
}

/// A name of the catalogue, so that it is nothing but a name.
pub(super) fn quoted(engine: Engine, name: &str) -> String {
    match engine {
        Engine::Postgres | Engine::Sqlite => format!("\"{}\"", name.replace('"', "\"\"")),
        Engine::MySql => format!("`{}`", name.replace('`', "``")),
    }
}

/// A column of the rows that are read. It is always qualified: a lone name in quotes that is no column is a text to
/// `SQLite`.
pub(super) fn column(engine: Engine, name: &str) -> String {
    format!("q.{}", quoted(engine, name))
}

/// An expression as text.
pub(super) fn as_text(engine: Engine, expression: &str) -> String {
    match engine {
        Engine::Postgres => format!("{expression}::text"),
        Engine::MySql => format!("cast({expression} as char)"),
        Engine::Sqlite => format!("cast({expression} as text)"),
    }
}

/// Adds a value and gives what stands for it in the text; `cast` is the type to compare it as (`PostgreSQL`).
pub(super) fn bound(engine: Engine, statement: &mut Statement, value: Value, cast: &str) -> String {
    statement.values.push(value);
    match engine {
        Engine::Postgres if cast.is_empty() => format!("${}", statement.values.len()),
        Engine::Postgres => format!("${}::{cast}", statement.values.len()),
        Engine::MySql | Engine::Sqlite => "?".to_owned(),
    }
}

/// `column in (keys)`. `type_name` is the column's own type as the catalogue writes it.
pub(super) fn is_one_of(
    engine: Engine,
    statement: &mut Statement,
    column: &str,
    holds: Holds,
    type_name: &str,
    keys: &[&str],
) -> String {
    let texts = || keys.iter().map(|key| (*key).to_owned());
    match engine {
        Engine::Postgres => {
            let element = match holds {
                Holds::Int => "bigint",
                Holds::Decimal(_) => "numeric",
                Holds::Uuid => "uuid",
                Holds::Word => type_name,
                // A type with a length would cut the keys to it, and find what was not asked for.
                _ if type_name.starts_with("character(") => "bpchar",
                _ if type_name.starts_with("character varying") => "text",
                _ => type_name,
            };
            let list = bound(engine, statement, Value::Texts(texts().collect()), "text[]");
            format!("{column} = any({list}::{element}[])")
        }
        Engine::MySql | Engine::Sqlite => {
            let is_number = holds == Holds::Int && engine == Engine::MySql;
            for key in texts() {
                let value = match key.parse() {
                    // A text would be compared as a binary fraction, which makes neighbours of large numbers equal.
                    Ok(number) if is_number => Value::Int(number),
                    _ => Value::Text(key),
                };
                statement.values.push(value);
            }
            format!("{column} in ({})", vec!["?"; keys.len()].join(","))
        }
    }
}

/// Whether a key can stand in a column at all, in exactly the form in which the column shows its values.
pub(super) fn can_hold(holds: Holds, key: &str) -> bool {
    /// Digits of the largest 64-bit number.
    const INT_DIGITS_MAX: usize = 19;
    const UUID_CHARS: usize = 36;
    let digits = key.strip_prefix('-').unwrap_or(key);
    let is_whole = !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'));
    match holds {
        _ if key.contains('\0') => false,
        Holds::Int => is_whole && digits.len() <= INT_DIGITS_MAX && key.parse::<i64>().is_ok(),
        Holds::Decimal(_) => is_whole && digits.len() <= 2 * INT_DIGITS_MAX,
        Holds::Uuid => {
            key.len() == UUID_CHARS
                && key.bytes().enumerate().all(|(at, byte)| match at {
                    8 | 13 | 18 | 23 => byte == b'-',
                    _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
                })
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_nothing_but_a_name() {
        assert_eq!(quoted(Engine::Postgres, "a\"b; drop"), "\"a\"\"b; drop\"");
        assert_eq!(quoted(Engine::MySql, "a`b"), "`a``b`");
        assert_eq!(column(Engine::Sqlite, "order"), "q.\"order\"");
    }

    #[test]
    fn a_key_is_only_looked_up_where_a_column_would_show_it_so() {
        for (holds, key, want) in [
            (Holds::Int, "42", true),
            (Holds::Int, "042", false),
            (Holds::Int, "ch_1", false),
            (Holds::Int, "9223372036854775807", true),
            (Holds::Int, "9223372036854775808", false),
            (Holds::Decimal(None), "9223372036854775808", true),
            (Holds::Uuid, "0190e5a2-7b1c-7def-8123-456789abcdef", true),
            (Holds::Uuid, "0190E5A2-7B1C-7DEF-8123-456789ABCDEF", false),
            (Holds::Text, "042", true),
            (Holds::Text, "a\0b", false),
        ] {
            assert_eq!(can_hold(holds, key), want, "{holds:?} {key:?}");
        }
    }
}
