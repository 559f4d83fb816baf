//! An unknown file as a table: encoding, delimiter, header, rows.

use crate::exit::Failure;
use crate::processor::encoding::{self, Encoding};
use crate::processor::table::{Records, trim};

/// So many rows are looked at; more say nothing new.
const ROWS_MAX: usize = 50_000;
/// Lines among which the header is looked for.
pub(super) const HEADER_LINES_MAX: usize = 50;

/// A file as a table.
#[derive(Debug)]
pub(super) struct Sheet {
    pub encoding: Found,
    pub delimiter: char,
    /// Physical line of the header.
    pub header_line: u32,
    /// An earlier line whose first cell is that of the header.
    pub header_twin: Option<u32>,
    pub header: Vec<String>,
    /// Rows as wide as the header or filled up to it, with their lines.
    pub rows: Vec<(u32, Vec<String>)>,
    /// Rows that are narrower than the header, and not the last ones.
    pub narrow: usize,
    /// Rows that are wider, where the additional cells are empty.
    pub wide_but_empty: usize,
    /// Rows that are wider and hold something there.
    pub wide: usize,
    /// The last row, where it is narrower than the header and the rows above it are not.
    pub last: Option<Vec<String>>,
}

/// How the encoding was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// By a byte-order mark, or because every byte is UTF-8.
    Told,
    /// The bytes are not UTF-8; which of the one-byte encodings it is nobody can tell.
    OneByte,
}

/// Reads a file as the table that it most looks like.
pub(super) fn read(file: &str, bytes: &[u8]) -> Result<Sheet, Failure> {
    let (text, encoding) = match encoding::decode(Encoding::Auto, file, bytes) {
        Ok(text) => (text, Found::Told),
        Err(failure) if bytes.iter().any(|byte| *byte >= 0x80) && !bytes.contains(&0) => {
            match encoding::decode(Encoding::Iso8859, file, bytes) {
                Ok(text) => (text, Found::OneByte),
                Err(_) => return Err(failure),
            }
        }
        Err(failure) => return Err(failure),
    };
    let mut best: Option<(usize, char, Vec<Line>)> = None;
    for delimiter in [',', ';', '\t', '|'] {
        let lines = lines(file, &text, delimiter);
        let score = usual_width(&lines).map_or(0, |(width, rows)| (width - 1) * rows);
        if score > 0 && best.as_ref().is_none_or(|(known, ..)| score > *known) {
            best = Some((score, delimiter, lines));
        }
    }
    let Some((_, delimiter, lines)) = best else {
        return Err(no_table(
            file,
            "no delimiter (comma, semicolon, tab, bar) makes columns of its lines",
        ));
    };
    let (width, _) = usual_width(&lines).unwrap_or_default();
    let at = lines
        .iter()
        .take(HEADER_LINES_MAX)
        .position(|line| is_header(line, width))
        .ok_or_else(|| {
            no_table(
                file,
                "none of its first lines looks like the names of columns",
            )
        })?;
    Ok(sheet(encoding, delimiter, lines, at))
}

fn no_table(file: &str, why: &str) -> Failure {
    Failure::rejected(format!("{file}: no table with a header is found in the file"))
        .why(why)
        .remedy("write the profile by hand: `paysweep profiles show canonical` prints one to begin with, header = \"positional\" reads a file without a header")
}

/// One record.
struct Line {
    line: u32,
    cells: Vec<String>,
}

fn lines(file: &str, text: &str, delimiter: char) -> Vec<Line> {
    let mut records = Records::new(
        file,
        text,
        u8::try_from(delimiter).unwrap_or(b','),
        Some(b'"'),
    );
    let mut lines = Vec::new();
    while lines.len() < ROWS_MAX {
        let start = records.mark();
        match records.advance() {
            Ok(false) => break,
            Ok(true) => {
                let row = records.row();
                if !row.is_blank() {
                    let cells = (0..row.len()).map(|at| trim(row.get(at)).to_owned());
                    lines.push(Line {
                        line: records.place().line,
                        cells: cells.collect(),
                    });
                }
            }
            // A line of a preamble is no CSV.
            Err(_) => {
                records.go_to(start);
                if !records.skip_line() {
                    break;
                }
            }
        }
    }
    lines
}

/// The width that most records have, and how many; only more than one column make a table.
fn usual_width(lines: &[Line]) -> Option<(usize, usize)> {
    let mut counts = std::collections::BTreeMap::new();
    for line in lines {
        *counts.entry(line.cells.len()).or_insert(0_usize) += 1;
    }
    counts
        .into_iter()
        .filter(|(width, _)| *width > 1)
        .max_by_key(|(width, count)| (*count, *width))
}

/// Whether a record holds names: as wide as the rows or wider, each cell with a letter, none twice in a row of values.
fn is_header(line: &Line, width: usize) -> bool {
    let named = line.cells.iter().filter(|cell| !cell.is_empty()).count();
    let has_letter = |cell: &String| cell.chars().any(char::is_alphabetic);
    let is_value = |cell: &String| {
        let digits = cell.chars().filter(char::is_ascii_digit).count();
        digits * 2 > cell.chars().count()
    };
    named * 4 >= width * 3
        && line.cells.len() + 1 >= width
        && line
            .cells
            .iter()
            .filter(|cell| !cell.is_empty())
            .all(|cell| has_letter(cell) && !is_value(cell))
}

fn sheet(encoding: Found, delimiter: char, mut lines: Vec<Line>, at: usize) -> Sheet {
    let mut rest = lines.split_off(at);
    let header = rest.remove(0);
    let is_twin = |line: &&Line| line.cells[0] == header.cells[0];
    let header_twin = lines.iter().find(is_twin).map(|line| line.line);
    let named = header
        .cells
        .iter()
        .rposition(|name| !name.is_empty())
        .map_or(0, |last| last + 1);
    let is_narrow = |line: &Line| line.cells.len() < named;
    let last = match rest.last() {
        Some(last) if is_narrow(last) && !rest.iter().rev().nth(1).is_some_and(is_narrow) => {
            rest.pop().map(|line| line.cells)
        }
        _ => None,
    };
    let mut sheet = Sheet {
        encoding,
        delimiter,
        header_line: header.line,
        header_twin,
        narrow: 0,
        wide_but_empty: 0,
        wide: 0,
        rows: Vec::new(),
        header: header.cells,
        last,
    };
    for mut line in rest {
        let extra = line.cells.get(sheet.header.len()..).unwrap_or_default();
        if line.cells.len() < named {
            sheet.narrow += 1;
        } else if extra.iter().any(|cell| !cell.is_empty()) {
            sheet.wide += 1;
        } else if line.cells.len() != sheet.header.len() {
            sheet.wide_but_empty += 1;
        }
        line.cells.resize(sheet.header.len(), String::new());
        sheet.rows.push((line.line, line.cells));
    }
    sheet
}

impl Sheet {
    /// The cells of a column that are not empty.
    pub(super) fn values(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows
            .iter()
            .map(move |(_, cells)| cells[column].as_str())
            .filter(|cell| !cell.is_empty())
    }

    /// The column as a profile names it: a name that stands twice with its number.
    pub(super) fn name(&self, column: usize) -> String {
        let name = &self.header[column];
        let same = |names: &[String]| names.iter().filter(|other| *other == name).count();
        if same(&self.header) > 1 {
            format!("{name}#{}", same(&self.header[..=column]))
        } else {
            name.clone()
        }
    }
}
