//! A statement of the company's own with named parameters: `update payments set state = :to_status where id = :intent_id`.
//!
//! A name is bound as a value and never becomes part of the text. What stands in quotes, in a comment, or behind a second
//! colon (a cast of `PostgreSQL`) is no parameter.

use super::dialect::{Engine, bound};
use super::session::{Statement, Value};
use crate::exit::Failure;
use crate::model::words;

words! {
    /// What a statement may ask for.
    Parameter {
        /// The intent; for a row that is recorded, the id that paysweep made for it.
        IntentId = "intent_id",
        /// The status as the row has it now, in the table's own word.
        FromStatus = "from_status",
        /// The status as it is to be, in the table's own word.
        ToStatus = "to_status",
        /// The processor's id as the row has it now; NULL = none.
        FromProcessorRef = "from_processor_ref",
        /// The processor's id as it is to be; NULL = none.
        ProcessorRef = "processor_ref",
        /// The id of the repair: the same in every try.
        RepairId = "repair_id",
        /// Who wrote it: `paysweep`, so that a consumer knows it from the application.
        RepairOrigin = "repair_origin",
        /// From the operation to the repair, in whole seconds: a consumer may suppress receipts for old events.
        AgeSeconds = "age_seconds",
        /// The operation that shows the need.
        OperationId = "operation_id",
        /// When it happened: RFC 3339, UTC.
        OccurredAt = "occurred_at",
        /// The source.
        Source = "source",
        /// The break.
        BreakId = "break_id",
        /// Its class.
        Class = "class",
        /// `charge`, `refund`, … in the table's own word; NULL unless a row is recorded.
        Kind = "kind",
        /// Whole minor units, positive; NULL unless a row is recorded.
        AmountMinor = "amount_minor",
        /// The same in major units, as decimal text.
        Amount = "amount",
        /// ISO 4217; NULL unless a row is recorded.
        Currency = "currency",
        /// The payment that a recorded row belongs to; NULL otherwise.
        ParentIntentId = "parent_intent_id",
    }
}

/// A statement, cut at its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Parameter(Parameter),
}

impl Template {
    /// Cuts a statement. `Rejected` for a name that is no parameter, for a second statement, and for a quote that does not
    /// end.
    pub fn parse(text: &str) -> Result<Template, Failure> {
        let mut cutter = Cutter {
            rest: text.trim().trim_end_matches(';').trim_end(),
            plain: String::new(),
            pieces: Vec::new(),
        };
        cutter.cut()?;
        if cutter.pieces.is_empty() {
            return Err(Failure::rejected("is no statement"));
        }
        Ok(Template {
            pieces: cutter.pieces,
        })
    }

    /// Whether the statement asks for a parameter.
    pub fn asks_for(&self, parameter: Parameter) -> bool {
        self.pieces.contains(&Piece::Parameter(parameter))
    }

    /// The first word, in lower case: `update`.
    pub fn verb(&self) -> String {
        let first = match self.pieces.first() {
            Some(Piece::Text(text)) => text.split_whitespace().next().unwrap_or_default(),
            _ => "",
        };
        first.to_lowercase()
    }

    /// The statement for an engine, each parameter bound.
    pub(super) fn bind(&self, engine: Engine, value: &dyn Fn(Parameter) -> Value) -> Statement {
        let mut statement = Statement::default();
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Text(plain) => text.push_str(plain),
                Piece::Parameter(parameter) => {
                    text.push_str(&bound(engine, &mut statement, value(*parameter), ""));
                }
            }
        }
        statement.text = text;
        statement
    }

    /// The statement with its values written out, for a file that somebody reads before it is run.
    pub fn written_out(&self, literal: &dyn Fn(Parameter) -> String) -> String {
        self.pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(plain) => plain.clone(),
                Piece::Parameter(parameter) => literal(*parameter),
            })
            .collect()
    }
}

struct Cutter<'t> {
    rest: &'t str,
    plain: String,
    pieces: Vec<Piece>,
}

impl Cutter<'_> {
    fn cut(&mut self) -> Result<(), Failure> {
        while let Some(letter) = self.rest.chars().next() {
            match letter {
                '\'' | '"' | '`' => self.quoted(letter)?,
                '-' if self.rest.starts_with("--") => {
                    self.take(self.rest.find('\n').unwrap_or(self.rest.len()))
                }
                '/' if self.rest.starts_with("/*") => {
                    let end = self
                        .rest
                        .find("*/")
                        .ok_or_else(|| Failure::rejected("has a comment that does not end"))?;
                    self.take(end + 2);
                }
                '$' => self.dollar()?,
                ':' if self.rest.starts_with("::") || self.rest.starts_with(":=") => self.take(2),
                ':' => self.parameter()?,
                ';' => {
                    return Err(Failure::rejected("is more than one statement")
                        .why("of several, nobody could say what one row changed means"));
                }
                '?' => {
                    return Err(Failure::rejected("has a place that is not named: ?")
                        .remedy(format!("name it: {}", known())));
                }
                _ => self.take(letter.len_utf8()),
            }
        }
        if !self.plain.is_empty() {
            self.pieces
                .push(Piece::Text(std::mem::take(&mut self.plain)));
        }
        Ok(())
    }

    fn take(&mut self, bytes: usize) {
        let (taken, rest) = self.rest.split_at(bytes);
        self.plain.push_str(taken);
        self.rest = rest;
    }

    /// A doubled quote is part of what is quoted. A backslash escapes in some engines and not in others, so it may not
    /// stand before a quote at all.
    fn quoted(&mut self, quote: char) -> Result<(), Failure> {
        let inside = &self.rest[1..];
        let Some(length) = inside.find(quote) else {
            return Err(Failure::rejected(format!(
                "has a {quote} that does not end"
            )));
        };
        if inside[..length].ends_with('\\') {
            return Err(
                Failure::rejected(format!("has a backslash before a {quote}"))
                    .why("what it means depends on the engine and on its settings")
                    .remedy("double the quote instead"),
            );
        }
        self.take(length + 2);
        Ok(())
    }

    /// `$tag$ … $tag$`; a bare `$1` would be counted with ours.
    fn dollar(&mut self) -> Result<(), Failure> {
        let inside = &self.rest[1..];
        let length = inside
            .find(|letter: char| !(letter.is_alphanumeric() || letter == '_'))
            .unwrap_or(inside.len());
        if !inside[length..].starts_with('$') {
            return Err(Failure::rejected("has a place that is not named: $")
                .remedy(format!("name it: {}", known())));
        }
        let tag = self.rest[..length + 2].to_owned();
        let body = &self.rest[tag.len()..];
        let Some(end) = body.find(&tag) else {
            return Err(Failure::rejected(format!("has a {tag} that does not end")));
        };
        self.take(2 * tag.len() + end);
        Ok(())
    }

    fn parameter(&mut self) -> Result<(), Failure> {
        let inside = &self.rest[1..];
        let length = inside
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
            .unwrap_or(inside.len());
        let name = &inside[..length];
        if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
            self.take(1);
            return Ok(());
        }
        let Some(parameter) = Parameter::from_word(name) else {
            return Err(Failure::rejected(format!(":{name} is no parameter"))
                .remedy(format!("known are {}", known())));
        };
        if !self.plain.is_empty() {
            self.pieces
                .push(Piece::Text(std::mem::take(&mut self.plain)));
        }
        self.pieces.push(Piece::Parameter(parameter));
        self.rest = &self.rest[1 + length..];
        Ok(())
    }
}

fn known() -> String {
    let names: Vec<String> = Parameter::ALL.iter().map(|it| format!(":{it}")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(engine: Engine, template: &str) -> (String, usize) {
        let template = Template::parse(template).expect("a template");
        let bound = template.bind(engine, &|parameter| Value::Text(parameter.to_string()));
        (bound.text, bound.values.len())
    }

    #[test]
    fn a_name_becomes_a_place_and_nothing_else_does() {
        for (engine, template, want, count) in [
            (
                Engine::Postgres,
                "update p set s = :to_status::app.state where id = :intent_id and s = :from_status;",
                "update p set s = $1::app.state where id = $2 and s = $3",
                3,
            ),
            (
                Engine::MySql,
                "update p set s = :to_status, at = '12:30:to_status' where id = :intent_id -- :no\n and s = :from_status",
                "update p set s = ?, at = '12:30:to_status' where id = ? -- :no\n and s = ?",
                3,
            ),
            (
                Engine::Sqlite,
                "update \"a:intent_id\" set x = 'it''s :intent_id' /* :no */ where id = :intent_id or id = :intent_id",
                "update \"a:intent_id\" set x = 'it''s :intent_id' /* :no */ where id = ? or id = ?",
                2,
            ),
            (
                Engine::Postgres,
                "select $a$ :no $a$, a[1:2], :repair_id",
                "select $a$ :no $a$, a[1:2], $1",
                1,
            ),
        ] {
            assert_eq!(text(engine, template), (want.to_owned(), count));
        }
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        for (template, part) in [
            ("update p set a = :intent", "no parameter"),
            ("update p set a = 1; delete from p", "more than one"),
            ("update p set a = 'x", "does not end"),
            (
                "update p set a = '\\' where b = :intent_id and c = '",
                "backslash",
            ),
            ("update p set a = ? where b = :intent_id", "not named"),
            ("update p set a = $1", "not named"),
            ("/* update", "comment"),
            ("  ;", "no statement"),
        ] {
            let failure = Template::parse(template).expect_err(template);
            assert!(failure.what.contains(part), "{template}: {failure}");
        }
    }
}
