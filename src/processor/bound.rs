//! A profile bound to one file: where in its rows each column stands.

use super::header::Header;
use super::profile::{Column, ColumnAt, ColumnId, Delimiter, HeaderForm, Profile};
use super::table::{Records, Row, trim};
use super::{Mode, ReadRules};
use crate::exit::Failure;

/// Where the columns of a profile stand in a file.
#[derive(Debug)]
pub(super) struct Bound {
    pub header: Header,
    positions: Vec<Option<usize>>,
    /// Position of the scope column, where the source has one.
    pub scope: Option<usize>,
    trims: bool,
}

impl Bound {
    /// The cell of a column; empty where the file has no such column.
    pub(super) fn cell<'r>(&self, row: Row<'r>, column: ColumnId) -> &'r str {
        match self.positions[column.0] {
            Some(position) if self.trims => trim(row.get(position)),
            Some(position) => row.get(position),
            None => "",
        }
    }

    /// The column's name in errors.
    pub(super) fn name(&self, column: ColumnId) -> String {
        match self.positions[column.0] {
            Some(position) => self.header.name_at(position),
            None => String::new(),
        }
    }
}

/// The delimiters that `auto` tries.
const DELIMITERS: [u8; 4] = [b',', b';', b'\t', b'|'];

/// Finds the header, binds the columns, and leaves the walker before the first row.
pub(super) fn open<'t>(
    profile: &Profile,
    rules: &ReadRules,
    file: &'t str,
    text: &'t str,
) -> Result<(Records<'t>, Bound), Failure> {
    if let (Some(mode), None) = (rules.mode, &profile.mode) {
        let word = match mode {
            Mode::Live => "live",
            Mode::Test => "test",
        };
        return Err(Failure::rejected(format!(
            "{file}: the source declares mode = \"{word}\", and no column tells the mode of a row"
        ))
        .why(format!(
            "profile {} declares no records.default.mode",
            profile.full_name()
        ))
        .remedy("leave mode out of the source, or use a profile that names the column"));
    }
    let delimiter = match profile.layout.delimiter {
        Delimiter::Is(delimiter) => delimiter,
        Delimiter::FromHeader => delimiter_of(profile, file, text)?,
    };
    let mut records = Records::new(file, text, delimiter, profile.layout.quote);
    let mut header = read_header(profile, file, &mut records)?;
    let mut positions = Vec::new();
    let mut missing = Vec::new();
    for column in &profile.columns {
        let position = find(&header, file, column)?;
        if let (Some(position), ColumnAt::Position(_)) = (position, &column.at) {
            header.use_position(position);
        }
        if position.is_none() && column.is_required {
            missing.push(written(column));
        }
        positions.push(position);
    }
    for group in &profile.any_of {
        if group.iter().all(|column| positions[column.0].is_none()) {
            missing.extend(
                group
                    .iter()
                    .map(|column| written(&profile.columns[column.0])),
            );
        }
    }
    let scope = match &rules.scope {
        None => None,
        Some(scope) => {
            let position = header.find(file, &scope.column, None)?;
            if position.is_none() {
                return Err(Failure::rejected(format!(
                    "{file}: the scope column \"{}\" is missing from the header",
                    scope.column
                ))
                .why("without it nobody can tell which rows are ours")
                .remedy(match header.nearest(&scope.column) {
                    Some(near) => format!("did you mean \"{near}\"?"),
                    None => {
                        "correct scope.column in the configuration, or export the column".to_owned()
                    }
                }));
            }
            position
        }
    };
    if !missing.is_empty() {
        return Err(header.missing(
            file,
            &missing,
            &format!("profile {} reads them", profile.full_name()),
            "set delimiter in the profile",
        ));
    }
    Ok((
        records,
        Bound {
            header,
            positions,
            scope,
            trims: profile.layout.trim,
        },
    ))
}

fn find(header: &Header, file: &str, column: &Column) -> Result<Option<usize>, Failure> {
    match &column.at {
        ColumnAt::Position(position) => Ok((*position <= header.width()).then(|| position - 1)),
        ColumnAt::Name { name, nth: None } => header.find(file, name, None),
        ColumnAt::Name { name, nth } => match header.find(file, name, *nth)? {
            // A name may itself end in a number sign and digits.
            None => header.find(file, &written(column), None),
            found => Ok(found),
        },
    }
}

fn written(column: &Column) -> String {
    match &column.at {
        ColumnAt::Position(position) => position.to_string(),
        ColumnAt::Name { name, nth: None } => name.clone(),
        ColumnAt::Name {
            name,
            nth: Some(nth),
        } => format!("{name}#{nth}"),
    }
}

/// The header of a file; leaves the walker before the first row.
fn read_header(
    profile: &Profile,
    file: &str,
    records: &mut Records<'_>,
) -> Result<Header, Failure> {
    let aliases = &profile.layout.aliases;
    match &profile.layout.header {
        HeaderForm::Named => {
            while records.advance()? {
                if !records.row().is_blank() {
                    return Ok(Header::named(records.row(), aliases));
                }
            }
        }
        HeaderForm::Positional => {
            let start = records.mark();
            while records.advance()? {
                if !records.row().is_blank() {
                    let width = records.row().len();
                    records.go_to(start);
                    return Ok(Header::positional(width));
                }
            }
        }
        HeaderForm::NamedAfterPreamble {
            first_cell,
            within_lines,
        } => {
            for _ in 0..*within_lines {
                // A preamble is no table: each of its lines is tried as if the header began there.
                let line = records.mark();
                let is_record = matches!(records.advance(), Ok(true));
                if is_record && trim(records.row().get(0)) == first_cell {
                    return Ok(Header::named(records.row(), aliases));
                }
                records.go_to(line);
                if !records.skip_line() {
                    break;
                }
            }
            return Err(Failure::rejected(format!(
                "{file}: no line within the first {within_lines} begins with \"{first_cell}\""
            ))
            .why("the profile finds the header by its first cell (header_match)")
            .remedy("choose the profile that belongs to this file, or correct header_match"));
        }
    }
    Err(
        Failure::rejected(format!("{file}: there is no header in the file"))
            .why("every line of it is blank")
            .remedy("export the file again; a feed without rows still has its header"),
    )
}

/// The delimiter under which the header holds the most names that the profile knows.
fn delimiter_of(profile: &Profile, file: &str, text: &str) -> Result<u8, Failure> {
    let mut counts: Vec<(usize, u8)> = DELIMITERS
        .iter()
        .map(|delimiter| {
            let mut records = Records::new(file, text, *delimiter, profile.layout.quote);
            let known = match read_header(profile, file, &mut records) {
                Ok(header) => profile
                    .columns
                    .iter()
                    .filter(|column| match &column.at {
                        ColumnAt::Name { name, .. } => header.names().contains(name),
                        ColumnAt::Position(_) => false,
                    })
                    .count(),
                Err(_) => 0,
            };
            (known, *delimiter)
        })
        .collect();
    counts.sort_unstable();
    match counts[..] {
        [.., (second, _), (first, delimiter)] if first > second => Ok(delimiter),
        _ => Err(Failure::rejected(format!(
            "{file}: the delimiter cannot be told from the header"
        ))
        .why("delimiter = \"auto\" finds it by the column names that the profile knows, and no delimiter shows more of them than the others")
        .remedy("declare the delimiter in the profile")),
    }
}
