//! From the text of a file to records with their physical lines. Knows no column and no money.
//!
//! Decisions: the `csv` crate finds cells and records, whatever the quoting. It is lenient by design, so three things are
//! added around it, none of which reads CSV a second time. A record that holds a quote has to be what its cells give when
//! they are written again; an open quote at the end of the file and text behind a closing quote are not. The crate leaves
//! out blank lines and counts line feeds; here a blank line is a record, and the line of a record is the one a person
//! finds in an editor, behind quoted line breaks and every kind of line end. The crate reads a record of any size; it is
//! given no more text than the longest record may have.

use std::io::{Read as _, Take};

use csv::StringRecord;

use super::encoding;
use crate::exit::Failure;
use crate::meter::Meter;

/// Longest id or reference that is read, in bytes. Far above any processor's (Stripe: 255 characters); an index of
/// `PostgreSQL` holds keys of about 2,700 bytes, of which an id, an account and a source share one.
const KEY_BYTES_MAX: usize = 1_000;

/// Longest field that is read, in bytes. Far above any id, amount or description.
const FIELD_BYTES_MAX: usize = 64 * 1024;
/// Longest record that is read, in bytes.
const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// Most columns that are read.
const COLUMNS_MAX: usize = 512;
/// Records between two counts of how far a file is read.
const FAR_RECORDS: u32 = 1024;
/// How much of a value an error shows, in characters.
const SHOWN_CHARS_MAX: usize = 60;

/// A place in a file, for errors and evidence.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    /// Name of the file, as the configuration gives it.
    pub file: &'a str,
    /// Physical line, counted from 1.
    pub line: u32,
}

impl Place<'_> {
    /// Exit 2, about one value: `finding` continues the sentence that begins with the value.
    pub fn cell(self, column: &str, value: &str, finding: &str) -> Failure {
        let Place { file, line } = self;
        let value = match value {
            "" => "the cell".to_owned(),
            _ => shown(value),
        };
        Failure::rejected(format!(
            "{file}:{line}: column \"{column}\", line {line}: {value} {finding}"
        ))
    }

    /// Refuses an id or reference that is too long to look rows up by, whichever store will hold it.
    #[inline]
    pub fn assert_key(self, column: &str, key: &str) -> Result<(), Failure> {
        if is_key(key) {
            return Ok(());
        }
        Err(self.long_key(column, key))
    }

    fn long_key(self, column: &str, key: &str) -> Failure {
        self.cell(
            column,
            key,
            &format!(
                "is {} bytes long, and an id or reference has at most {KEY_BYTES_MAX}",
                key.len()
            ),
        )
        .why("rows are looked up by it, and so long a text is no id")
        .remedy(
            "see whether another column holds the id; a longer text belongs into the description",
        )
    }

    /// Exit 2, about a whole row: `finding` continues the sentence "line 4 …".
    pub fn row(self, finding: &str) -> Failure {
        let Place { file, line } = self;
        Failure::rejected(format!("{file}:{line}: line {line} {finding}"))
    }
}

/// How far in a file a walker is. The bytes of the file are counted: those of its text may be more or fewer.
pub struct Far<'m> {
    meter: &'m Meter,
    /// Records since they were counted.
    records: u32,
    counted: u64,
    file_bytes: u64,
    text_bytes: u64,
}

impl<'m> Far<'m> {
    /// At the beginning of a file.
    pub fn new(meter: &'m Meter, file_bytes: usize, text_bytes: usize) -> Far<'m> {
        Far {
            meter,
            records: 0,
            counted: 0,
            file_bytes: file_bytes as u64,
            text_bytes: (text_bytes as u64).max(1),
        }
    }

    /// A record further.
    #[inline]
    pub fn pass(&mut self, records: &Records<'_>) {
        self.records += 1;
        if self.records == FAR_RECORDS {
            self.records = 0;
            let text = records.next.at as u64;
            self.count(self.file_bytes.saturating_mul(text) / self.text_bytes);
        }
    }

    /// At the end of the file.
    pub fn end(&mut self) {
        self.count(self.file_bytes);
    }

    fn count(&mut self, until: u64) {
        self.meter.add(until.saturating_sub(self.counted));
        self.counted = self.counted.max(until);
    }
}

/// A value as an error shows it: quoted, control characters escaped, long ones cut, card numbers masked.
pub fn shown(value: &str) -> String {
    let mut text = String::from("\"");
    let is_card = looks_like_a_card(value);
    for (at, character) in value.chars().enumerate() {
        if at == SHOWN_CHARS_MAX {
            text.push('…');
            break;
        }
        if is_card && character.is_ascii_digit() {
            text.push('*');
        } else {
            // An apostrophe is what it is; control characters and quotes are escaped.
            match character {
                '\'' => text.push('\''),
                _ => text.extend(character.escape_debug()),
            }
        }
    }
    text.push('"');
    text
}

/// Whether the digits of a value are as many as on a card and pass its check digit.
fn looks_like_a_card(value: &str) -> bool {
    let digits: Vec<u32> = value.chars().filter_map(|c| c.to_digit(10)).collect();
    if !(13..=19).contains(&digits.len())
        || !value.chars().all(|c| matches!(c, '0'..='9' | ' ' | '-'))
    {
        return false;
    }
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    sum.is_multiple_of(10)
}

/// Whether a text is short enough for an id or reference.
#[inline]
pub fn is_key(text: &str) -> bool {
    text.len() <= KEY_BYTES_MAX
}

/// The text without white space at its ends, including line breaks, no-break spaces, byte-order marks and other invisible
/// characters.
#[inline]
pub fn trim(text: &str) -> &str {
    match text.as_bytes() {
        [] => text,
        [first, .., last] if first.is_ascii_graphic() && last.is_ascii_graphic() => text,
        _ => text.trim_matches(is_space),
    }
}

fn is_space(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The records of a text, one after the other.
pub struct Records<'t> {
    file: &'t str,
    text: &'t str,
    delimiter: u8,
    quote: Option<u8>,
    reader: csv::Reader<Take<&'t [u8]>>,
    /// Where in the text the reader began.
    reader_from: usize,
    record: StringRecord,
    /// Where the next record begins.
    next: Mark,
    /// Where the current record began.
    start: Mark,
    /// Where it ended, without the line end.
    end: usize,
}

/// A position to come back to.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    at: usize,
    line: u32,
}

/// One record; its cells live as long as the walker stands on it.
#[derive(Clone, Copy)]
pub struct Row<'r> {
    record: &'r StringRecord,
    /// Physical line on which it begins, counted from 1.
    pub line: u32,
}

impl<'r> Row<'r> {
    /// How many cells.
    pub fn len(&self) -> usize {
        self.record.len()
    }

    /// Whether it has no cell at all.
    pub fn is_empty(&self) -> bool {
        self.record.is_empty()
    }

    /// The cell at a position counted from 0, without its quotes; empty where the row is shorter.
    pub fn get(&self, position: usize) -> &'r str {
        self.record.get(position).unwrap_or("")
    }

    /// Whether every cell is empty or white space.
    pub fn is_blank(&self) -> bool {
        self.record.iter().all(|cell| trim(cell).is_empty())
    }
}

impl<'t> Records<'t> {
    /// A walker at the first line. `quote` = `None`: quotes are characters like any other. Both signs are ASCII.
    pub fn new(file: &'t str, text: &'t str, delimiter: u8, quote: Option<u8>) -> Records<'t> {
        let first = Mark { at: 0, line: 1 };
        let mut records = Records {
            file,
            text,
            delimiter,
            quote,
            reader: reader(text, delimiter, quote),
            reader_from: 0,
            record: StringRecord::new(),
            next: first,
            start: first,
            end: 0,
        };
        records.go_to(first);
        records
    }

    /// A walker at the first line of a text, that reads as this one does.
    pub fn again<'a>(&self, file: &'a str, text: &'a str) -> Records<'a> {
        Records::new(file, text, self.delimiter, self.quote)
    }

    /// Goes to the next record; `false` at the end of the text. A blank line is a record of one empty cell.
    ///
    /// Rejects an open quote, text behind a closing quote, and what exceeds the caps.
    pub fn advance(&mut self) -> Result<bool, Failure> {
        self.start = self.next;
        self.end = self.start.at;
        self.record.clear();
        let bytes = self.text.as_bytes();
        match bytes.get(self.start.at) {
            None => return Ok(false),
            Some(b'\n' | b'\r') => {
                // The reader leaves blank lines out: it steps over this one on its way to the next record.
                self.record.push_field("");
                self.step_over_line();
                return Ok(true);
            }
            Some(_) => {}
        }
        let reader_at = self.reader_at();
        let window = self.start.at - reader_at + RECORD_BYTES_MAX + 2;
        self.reader.get_mut().set_limit(window as u64);
        // No text is left out and all of it is UTF-8, so only the window can end a record too early.
        if !matches!(self.reader.read_record(&mut self.record), Ok(true)) {
            return Err(self.too_long());
        }
        let mut after = self.reader_at();
        self.end = match &bytes[self.start.at..after] {
            [.., b'\n' | b'\r'] => after - 1,
            _ => after,
        };
        if bytes[self.end..].starts_with(b"\r\n") {
            after = self.end + 2;
        }
        let (mut holds_quote, mut lines) = (false, 1);
        if let Some(quote) = self.quote
            && self.raw().as_bytes().contains(&quote)
        {
            holds_quote = true;
            lines += line_ends(self.raw());
        }
        self.next = Mark {
            at: after,
            line: self.start.line.saturating_add(lines),
        };
        self.check_size()?;
        if holds_quote {
            self.check_quotes()?;
        }
        Ok(true)
    }

    /// The current record.
    pub fn row(&self) -> Row<'_> {
        Row {
            record: &self.record,
            line: self.start.line,
        }
    }

    /// The current record as it stands in the file, without its line end.
    pub fn raw(&self) -> &'t str {
        &self.text[self.start.at..self.end]
    }

    /// Where the current record stands.
    pub fn place(&self) -> Place<'t> {
        Place {
            file: self.file,
            line: self.start.line,
        }
    }

    /// Whether a line end follows the current record; the last one of a file that is cut off has none.
    pub fn has_line_end(&self) -> bool {
        self.next.at > self.end
    }

    /// Where the next record begins.
    pub fn mark(&self) -> Mark {
        self.next
    }

    /// Goes back, so that the next record is the one that begins at the mark.
    pub fn go_to(&mut self, mark: Mark) {
        // The reader would take a byte-order mark for none of its text; all of them are left out alike.
        let rest = self.text[mark.at..].trim_start_matches('\u{feff}');
        self.reader_from = self.text.len() - rest.len();
        self.reader = reader(rest, self.delimiter, self.quote);
        self.next = Mark {
            at: self.reader_from,
            line: mark.line,
        };
    }

    /// Leaves out one physical line, whatever it holds; `false` at the end of the text.
    pub fn skip_line(&mut self) -> bool {
        let is_line = self.step_over_line();
        self.go_to(self.next);
        is_line
    }

    /// Moves `next` behind the line end that follows it; `false` at the end of the text.
    fn step_over_line(&mut self) -> bool {
        let rest = &self.text[self.next.at..];
        let length = rest.find(['\n', '\r']).unwrap_or(rest.len());
        let behind = &rest[length..];
        self.next.at += length;
        if !behind.is_empty() {
            self.next.at += if behind.starts_with("\r\n") { 2 } else { 1 };
            self.next.line = self.next.line.saturating_add(1);
        }
        !rest.is_empty()
    }

    /// How far the reader has come in the text.
    fn reader_at(&self) -> usize {
        self.reader_from + usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX)
    }

    fn check_size(&self) -> Result<(), Failure> {
        let place = self.place();
        if self.record.len() > COLUMNS_MAX {
            return Err(place
                .row(&format!("has more than {COLUMNS_MAX} fields"))
                .why("so wide a row is taken for a damaged file")
                .remedy("check the file at this line: line ends may be missing"));
        }
        if self.raw().len() <= FIELD_BYTES_MAX {
            return Ok(());
        }
        let has_long_field = self.record.iter().any(|cell| cell.len() > FIELD_BYTES_MAX);
        if has_long_field {
            // A quote that nobody closes is the likely reason, and then it is named.
            self.check_quotes()?;
            return Err(place
                .row("has a field longer than 64 KiB")
                .why("so long a field is taken for a damaged file")
                .remedy("check the file at this line: a delimiter or a line end may be missing"));
        }
        if self.raw().len() > RECORD_BYTES_MAX {
            return Err(self.too_long());
        }
        Ok(())
    }

    fn too_long(&self) -> Failure {
        self.place()
            .row("is longer than 1 MiB")
            .why("so long a row is taken for a damaged file")
            .remedy(
                "check the file at this line: line ends may be missing, or a quote is not closed",
            )
    }

    /// Rejects a record that is not what its cells give when they are written again.
    fn check_quotes(&self) -> Result<(), Failure> {
        let Some(quote) = self.quote.map(char::from) else {
            return Ok(());
        };
        let raw = &self.text[self.start.at..self.next.at];
        let mut rest = raw;
        for cell in &self.record {
            let behind = behind_cell(rest, cell, quote)
                .filter(|_| !rest.starts_with(quote) || cell.len() <= FIELD_BYTES_MAX);
            let Some(behind) = behind else {
                return Err(self.misquoted(raw.len() - rest.len(), cell, quote));
            };
            // Behind the last cell stands the line end, behind the others the delimiter.
            rest = behind.get(1..).unwrap_or("");
        }
        Ok(())
    }

    /// What is wrong with a quoted cell that begins at a place of the record.
    fn misquoted(&self, from: usize, cell: &str, quote: char) -> Failure {
        let raw = &self.text[self.start.at..self.next.at];
        let twice = format!("{quote}{quote}");
        let written = format!("{quote}{}", cell.replace(quote, &twice));
        let common = raw[from..]
            .bytes()
            .zip(written.bytes())
            .take_while(|(found, meant)| found == meant)
            .count();
        let is_open = common == written.len();
        let until = if is_open { from } else { from + common };
        let place = Place {
            line: self.start.line.saturating_add(line_ends(&raw[..until])),
            ..self.place()
        };
        if is_open {
            place
                .row("opens a quote that is not closed within the file or within 64 KiB")
                .why("the file is cut off or damaged: where a field ends cannot be told")
                .remedy("export the file again and check that it was copied whole")
        } else {
            let behind = raw.as_bytes().get(until + 1).copied();
            let other = behind.filter(|sign| b",;\t|".contains(sign) && *sign != self.delimiter);
            let remedy = match other {
                Some(sign) => format!(
                    "the fields seem to be separated by {:?}: set delimiter in the profile",
                    char::from(sign).to_string()
                ),
                None => "export the file again; a format in which quotes mean nothing says so in its profile (quote = \"\")".to_owned(),
            };
            place
                .row("has text behind a closing quote")
                .why("a quoted field ends with its quote; a quote inside it is written twice")
                .remedy(remedy)
        }
    }
}

/// What follows a cell that is written at the beginning of a text as its value demands.
fn behind_cell<'a>(text: &'a str, value: &str, quote: char) -> Option<&'a str> {
    let Some(mut rest) = text.strip_prefix(quote) else {
        return text.strip_prefix(value);
    };
    for (at, part) in value.split(quote).enumerate() {
        if at > 0 {
            rest = rest.strip_prefix(quote)?.strip_prefix(quote)?;
        }
        rest = rest.strip_prefix(part)?;
    }
    rest.strip_prefix(quote)
}

fn reader(text: &str, delimiter: u8, quote: Option<u8>) -> csv::Reader<Take<&[u8]>> {
    csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .quoting(quote.is_some())
        .quote(quote.unwrap_or(b'"'))
        .from_reader(text.as_bytes().take(0))
}

/// How many line ends a text holds: `\n`, `\r\n` and a lone `\r` count as one each.
fn line_ends(text: &str) -> u32 {
    u32::try_from(encoding::line_ends(text.as_bytes())).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Read = Vec<(u32, Vec<String>)>;

    fn read(text: &str) -> Result<Read, Failure> {
        let mut records = Records::new("a.csv", text, b',', Some(b'"'));
        let mut rows = Vec::new();
        while records.advance()? {
            let row = records.row();
            let cells = (0..row.len()).map(|at| row.get(at).to_owned()).collect();
            rows.push((row.line, cells));
        }
        Ok(rows)
    }

    fn rows(expected: &[(u32, &[&str])]) -> Read {
        expected
            .iter()
            .map(|(line, cells)| (*line, cells.iter().map(|cell| (*cell).to_owned()).collect()))
            .collect()
    }

    #[test]
    fn a_record_is_not_a_line() {
        for (text, want) in [
            ("a,b\n1,2\n", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            ("a,b\r\n1,2", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            ("a,b\r1,2\r", rows(&[(1, &["a", "b"]), (2, &["1", "2"])])),
            (
                "\"x\r\ny\",1\r\n2,3",
                rows(&[(1, &["x\r\ny", "1"]), (3, &["2", "3"])]),
            ),
            ("\"x\ry\nz\"\n2", rows(&[(1, &["x\ry\nz"]), (4, &["2"])])),
            (
                "a\n\n\nb",
                rows(&[(1, &["a"]), (2, &[""]), (3, &[""]), (4, &["b"])]),
            ),
            (
                "\"a\"\"b\",\"\",\"\"\"\"",
                rows(&[(1, &["a\"b", "", "\""])]),
            ),
            ("a,", rows(&[(1, &["a", ""])])),
            ("2\" pipe,x", rows(&[(1, &["2\" pipe", "x"])])),
            ("", rows(&[])),
        ] {
            assert_eq!(read(text).expect("records"), want, "{text:?}");
        }
    }

    #[test]
    fn damage_is_refused_at_its_line() {
        let wide = ",".repeat(COLUMNS_MAX + 1);
        let long = format!("a\n{}", "x".repeat(FIELD_BYTES_MAX + 1));
        let endless = format!("a\n\"{}\"", "x".repeat(FIELD_BYTES_MAX + 1));
        let heavy = format!("{},", "x".repeat(FIELD_BYTES_MAX)).repeat(17);
        for (text, want) in [
            ("a\nb\n\"c\nd", "line 3 opens a quote"),
            ("a\n\"b\"c,d", "line 2 has text behind a closing quote"),
            ("\"x\ny\"z", "line 2 has text behind a closing quote"),
            (wide.as_str(), "more than 512 fields"),
            (&long, "line 2 has a field longer than 64 KiB"),
            (&endless, "line 2 opens a quote"),
            (&heavy, "longer than 1 MiB"),
        ] {
            let failure = read(text).expect_err("rejected");
            assert!(failure.what.contains(want), "{}", failure.what);
        }
    }

    #[test]
    fn a_file_without_line_ends_is_refused_before_it_is_read_whole() {
        for (begin, piece, want) in [
            ("", ",", "more than 512 fields"),
            // Where the window cuts a character, the row is too long before its cells are known.
            ("", "é", "longer than"),
            ("x", "é", "longer than"),
            ("", "x", "a field longer than 64 KiB"),
            ("\"", "x\n", "line 2 opens a quote"),
            ("\"", "x\",\"", "more than 512 fields"),
            (
                "",
                "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx,\"\"\"\",",
                "more than 512 fields",
            ),
        ] {
            let text = format!(
                "a\n{begin}{}",
                piece.repeat(4 * RECORD_BYTES_MAX / piece.len())
            );
            let mut records = Records::new("a.csv", &text, b',', Some(b'"'));
            assert!(records.advance().expect("a record"));
            let failure = records.advance().expect_err("rejected");
            assert!(failure.what.contains(want), "{}", failure.what);
            assert!(records.reader_at() < 2 * RECORD_BYTES_MAX);
        }
    }

    #[test]
    fn blank_lines_are_never_too_many() {
        let text = format!("a{}b", "\r\n".repeat(RECORD_BYTES_MAX));
        let all = read(&text).expect("records");
        assert_eq!(all.len(), RECORD_BYTES_MAX + 1);
        assert_eq!(all.last(), Some(&(1_048_577, vec!["b".to_owned()])),);
    }

    #[test]
    fn a_mark_leads_back_to_the_same_record() {
        let text = "\u{feff}p \"x\r\"\r\na,\"b\n\"\n\nc";
        let mut records = Records::new("a.csv", text, b',', Some(b'"'));
        assert!(records.skip_line());
        let mark = records.mark();
        for _ in 0..2 {
            assert!(records.advance().is_err(), "the rest of a quoted cell");
            records.go_to(mark);
        }
        assert!(records.skip_line());
        for _ in 0..2 {
            let mark = records.mark();
            for _ in 0..2 {
                records.go_to(mark);
                assert!(records.advance().expect("records"));
            }
        }
        assert_eq!((records.raw(), records.place().line), ("", 5));
        assert!(records.advance().expect("a record") && !records.has_line_end());
        assert_eq!((records.row().get(0), records.row().get(1)), ("c", ""));
    }

    #[test]
    fn white_space_of_every_kind_is_trimmed() {
        for (text, want) in [
            ("ORD 1", "ORD 1"),
            (" ORD\n", "ORD"),
            ("\u{a0}\u{feff}ORD\u{200b}\t", "ORD"),
            ("\n", ""),
            ("é ", "é"),
            ("x", "x"),
        ] {
            assert_eq!(trim(text), want, "{text:?}");
        }
    }

    #[test]
    fn an_error_shows_a_value_but_never_a_card_number() {
        assert_eq!(shown("15.0x"), "\"15.0x\"");
        assert_eq!(shown("a\nb"), "\"a\\nb\"");
        assert_eq!(shown("'=1"), "\"'=1\"");
        assert_eq!(shown("4111 1111 1111 1111"), "\"**** **** **** ****\"");
        assert_eq!(shown("4111111111111112"), "\"4111111111111112\"");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), SHOWN_CHARS_MAX + 3);
    }

    proptest! {
        #[test]
        fn what_the_csv_crate_writes_is_read_back(
            table in prop::collection::vec(
                prop::collection::vec("[a\"\n\r, ;é]{0,6}", 3),
                1..6,
            )
        ) {
            let mut writer = csv::Writer::from_writer(Vec::new());
            for row in &table {
                writer.write_record(row).expect("written");
            }
            let bytes = writer.into_inner().expect("bytes");
            let text = String::from_utf8(bytes).expect("utf-8");
            let cells: Vec<Vec<String>> =
                read(&text).expect("records").into_iter().map(|(_, cells)| cells).collect();
            prop_assert_eq!(cells, table);
        }

        #[test]
        fn any_text_ends_in_records_or_an_error(text in "[a\"\n\r,é]{0,40}") {
            let _ = read(&text);
        }
    }
}
