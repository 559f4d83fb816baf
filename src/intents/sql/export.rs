//! The statements of `[repair.apply]` with their values written out, for a file that a person reads before it is run.

use super::row_writer::{ApplySpec, value_of};
use super::session::Value;
use super::template::Parameter;
use crate::database::DatabaseUrl;
use crate::exit::Failure;
use crate::model::repair::Repair;
use crate::time::Instant;

/// The statement that writes a repair, without a semicolon. `Rejected` where there is none for its action, or where the table
/// has no one word for what the row is or is to be.
pub fn written_out(apply: &ApplySpec, repair: &Repair, as_of: Instant) -> Result<String, Failure> {
    let template = apply.statements.get(&repair.action).ok_or_else(|| {
        Failure::rejected(format!(
            "[repair.apply] has no statement for {} (repair {})",
            repair.action, repair.id
        ))
    })?;
    let mut statuses = vec![repair.to.status];
    statuses.extend(repair.from.as_ref().map(|from| from.status));
    for status in statuses {
        if !apply.words.contains_key(&status) {
            return Err(Failure::rejected(format!(
                "the table has no one word for {status} (repair {})",
                repair.id
            ))
            .remedy("say it under [repair.apply] words, or let paysweep apply the repair: it looks at the row"));
        }
    }
    let word = repair
        .from
        .as_ref()
        .and_then(|from| apply.words.get(&from.status))
        .map_or("", String::as_str);
    Ok(template.written_out(&|parameter: Parameter| {
        literal(&apply.url, &value_of(apply, parameter, repair, word, as_of))
    }))
}

/// A value as the engine reads it back, whatever is in it.
fn literal(url: &DatabaseUrl, value: &Value) -> String {
    match value {
        Value::Text(text) => match url {
            // What a backslash means there depends on the mode of the session.
            DatabaseUrl::MySql(_) if text.contains('\\') => {
                let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
                format!("convert(0x{hex} using utf8mb4)")
            }
            DatabaseUrl::Postgres(_) if text.contains('\\') => {
                format!("E'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
            }
            _ => format!("'{}'", text.replace('\'', "''")),
        },
        Value::Int(number) => number.to_string(),
        Value::NoText | Value::NoInt => "null".to_owned(),
        Value::Texts(texts) => texts.join(","),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_stays_a_text_whatever_is_in_it() {
        let url = |text: &str| {
            DatabaseUrl::parse(text, &|path| std::path::PathBuf::from(path)).expect("a URL")
        };
        let text = |text: &str| Value::Text(text.to_owned());
        for (engine, value, want) in [
            ("postgres://u@localhost/d", text("a'; drop"), "'a''; drop'"),
            ("postgres://u@localhost/d", text("a\\'b"), "E'a\\\\''b'"),
            ("mysql://u@localhost/d", text("a'b"), "'a''b'"),
            (
                "mysql://u@localhost/d",
                text("a\\"),
                "convert(0x615c using utf8mb4)",
            ),
            ("sqlite://c.db", text("a\\'"), "'a\\'''"),
            ("sqlite://c.db", Value::NoInt, "null"),
            ("sqlite://c.db", Value::Int(-5), "-5"),
        ] {
            assert_eq!(literal(&url(engine), &value), want);
        }
    }
}
