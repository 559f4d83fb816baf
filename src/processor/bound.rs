//! A profile bound to one file: where in its rows each column stands, and how the file writes numbers and dates.

use super::amount::{AmountFormat, Decimal};
use super::header::Header;
use super::moment::{TimeFormat, ZoneRule};
use super::profile::{
    AmountRule, Column, ColumnAt, ColumnId, CurrencyFrom, Delimiter, HeaderForm, HeaderSet, Profile,
};
use super::table::{Records, Row, trim};
use super::{Mode, ReadRules, dates};
use crate::exit::Failure;

/// Where the columns of a profile stand in a file.
#[derive(Debug)]
pub(super) struct Bound {
    pub header: Header,
    positions: Vec<Option<usize>>,
    /// Positions of the columns of each pattern, in the order of the file.
    pub patterns: Vec<Vec<usize>>,
    /// Position of the scope column, where the source has one.
    pub scope: Option<usize>,
    /// Positions of the columns that the source names as references, in its order.
    pub references: Vec<usize>,
    /// How the file writes amounts.
    pub amounts: AmountFormat,
    /// How the file writes the time of a row.
    pub formats: Vec<TimeFormat>,
    /// Where the zone of that time comes from.
    pub zone: ZoneRule,
    trims: bool,
}

impl Bound {
    /// The cell of a column; empty where the file has no such column.
    pub(super) fn cell<'r>(&self, row: Row<'r>, column: ColumnId) -> &'r str {
        match self.positions[column.0] {
            Some(position) => self.cell_at(row, position),
            None => "",
        }
    }

    /// Whether the file has a column.
    pub(super) fn has(&self, column: ColumnId) -> bool {
        self.positions[column.0].is_some()
    }

    /// The cell at a position counted from 0.
    pub(super) fn cell_at<'r>(&self, row: Row<'r>, position: usize) -> &'r str {
        if self.trims {
            trim(row.get(position))
        } else {
            row.get(position)
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
    let delimiter = match profile.layout.delimiter {
        Delimiter::Is(delimiter) => delimiter,
        Delimiter::FromHeader => delimiter_of(profile, file, text)?,
    };
    let mut records = Records::new(file, text, delimiter, profile.layout.quote);
    let header = read_header(profile, file, &mut records)?;
    let Choice {
        header,
        set,
        positions,
    } = choose_set(profile, file, header)?;
    for (name, report) in &profile.layout.refuse {
        if header.names().contains(name) {
            return Err(Failure::rejected(format!(
                "{file}: column \"{name}\" does not belong to this report"
            ))
            .why(report.clone())
            .remedy("choose the profile of the report that was exported"));
        }
    }
    let position_of = |what: &str, key: &str, name: &str| {
        header.find(file, name, None)?.ok_or_else(|| {
            Failure::rejected(format!(
                "{file}: the {what} column \"{name}\" is missing from the header"
            ))
            .why(format!("the source names it under {key}"))
            .remedy(match header.nearest(name) {
                Some(near) => format!("did you mean \"{near}\"?"),
                None => format!("correct {key} in the configuration, or export the column"),
            })
        })
    };
    let scope = match &rules.scope {
        None => None,
        Some(scope) => Some(position_of("scope", "scope.column", &scope.column)?),
    };
    let mut references = Vec::new();
    for name in &rules.reference {
        references.push(position_of("reference", "reference", name)?);
    }
    let fits = |name: &str, (before, behind): &(String, String)| {
        name.len() >= before.len() + behind.len()
            && name.starts_with(before.as_str())
            && name.ends_with(behind.as_str())
    };
    let patterns = profile.patterns.iter().map(|pattern| {
        let names = header.names().iter().enumerate();
        names
            .filter(|(_, name)| fits(name, pattern))
            .map(|(position, _)| position)
            .collect()
    });
    let mut bound = Bound {
        patterns: patterns.collect(),
        positions,
        scope,
        references,
        amounts: AmountFormat {
            decimal: match set.and_then(|set| set.number) {
                Some(number) => Decimal::Is(number),
                None => profile.money.format.decimal,
            },
            ..profile.money.format.clone()
        },
        formats: match set {
            Some(set) if !set.formats.is_empty() => set.formats.clone(),
            _ => profile.occurred_at.formats.clone(),
        },
        zone: set
            .and_then(|set| set.zone.as_ref())
            .unwrap_or(&profile.occurred_at.zone)
            .clone(),
        header,
        trims: profile.layout.trim,
    };
    check_settings(profile, rules, file, &bound.zone)?;
    bound.formats = dates::decide(profile, rules, &bound, &mut records)?;
    Ok((records, bound))
}

/// Rejects what a profile leaves to the source and the source does not say.
fn check_settings(
    profile: &Profile,
    rules: &ReadRules,
    file: &str,
    zone: &ZoneRule,
) -> Result<(), Failure> {
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
    let times = profile.other_times.iter().map(|time| &time.zone);
    let needs_zone = times
        .chain([zone])
        .any(|zone| matches!(zone, ZoneRule::Source(None)));
    let money = &profile.money;
    let amounts = [
        &money.amount,
        &money.settle_net,
        &money.settle_gross,
        &money.fee_total,
        &money.fees,
    ];
    let needs_currency = amounts
        .into_iter()
        .flatten()
        .any(|rule: &AmountRule| matches!(rule.currency, CurrencyFrom::Source));
    for (is_missing, key, what, example) in [
        (
            needs_zone && rules.zone.is_none(),
            "zone",
            "in which time zone its times are",
            "Europe/London",
        ),
        (
            needs_currency && rules.currency.is_none(),
            "currency",
            "in which currency its amounts are",
            "USD",
        ),
    ] {
        if is_missing {
            return Err(Failure::rejected(format!(
                "{file}: the file does not say {what}, and neither does the source"
            ))
            .why(format!(
                "profile {} reads it from the source's setting {key}: it differs by account and is never guessed",
                profile.full_name()
            ))
            .remedy(format!(
                "write {key} = \"{example}\" under [source.NAME], or --{key} {example} behind `paysweep diff`"
            )));
        }
    }
    Ok(())
}

/// A header as one of the profile's sets reads it.
struct Choice<'p> {
    header: Header,
    set: Option<&'p HeaderSet>,
    positions: Vec<Option<usize>>,
}

/// Binds the columns by the one header set whose columns are all there.
fn choose_set<'p>(
    profile: &'p Profile,
    file: &str,
    mut header: Header,
) -> Result<Choice<'p>, Failure> {
    let sets = &profile.layout.sets;
    if sets.is_empty() {
        let (positions, missing) = bind(profile, file, &mut header)?;
        return match missing[..] {
            [] => Ok(Choice {
                header,
                set: None,
                positions,
            }),
            _ => Err(lacks(profile, file, &header, &missing, "")),
        };
    }
    let mut fitting: Vec<Choice<'p>> = Vec::new();
    let mut nearest: Option<(usize, Failure)> = None;
    for set in sets {
        if set.absent.iter().any(|name| header.names().contains(name)) {
            continue;
        }
        let mut renamed = header.clone().in_set(&set.renamed);
        let (positions, missing) = bind(profile, file, &mut renamed)?;
        if missing.is_empty() {
            fitting.push(Choice {
                header: renamed,
                set: Some(set),
                positions,
            });
        } else if nearest
            .as_ref()
            .is_none_or(|(count, _)| missing.len() < *count)
        {
            let written = |name: &String| {
                let known = set.renamed.iter().find(|(_, own)| *own == name);
                known.map_or(name, |(written, _)| written).clone()
            };
            let missing: Vec<String> = missing.iter().map(written).collect();
            let failure = lacks(profile, file, &header, &missing, &set.name);
            nearest = Some((missing.len(), failure));
        }
    }
    match (fitting.len(), nearest) {
        (1, _) => fitting.pop().ok_or_else(|| cannot_tell(file, &[])),
        (0, Some((_, failure))) => Err(failure),
        _ => {
            let names: Vec<&str> = fitting
                .iter()
                .filter_map(|choice| choice.set.map(|set| set.name.as_str()))
                .collect();
            Err(cannot_tell(file, &names))
        }
    }
}

fn cannot_tell(file: &str, sets: &[&str]) -> Failure {
    Failure::rejected(format!(
        "{file}: the header fits several header sets: {}",
        sets.join(", ")
    ))
    .why("they may write numbers and dates in different ways, and which is meant is never guessed")
    .remedy("leave only the one that is meant in a profile of your own")
}

/// The positions of the columns, and the names of those that are missing.
#[allow(clippy::type_complexity, reason = "two lists, used at once")]
fn bind(
    profile: &Profile,
    file: &str,
    header: &mut Header,
) -> Result<(Vec<Option<usize>>, Vec<String>), Failure> {
    let mut positions = Vec::new();
    let mut missing = Vec::new();
    for column in &profile.columns {
        let position = find(header, file, column)?;
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
    Ok((positions, missing))
}

fn lacks(profile: &Profile, file: &str, header: &Header, missing: &[String], set: &str) -> Failure {
    let reader = profile.full_name();
    let reader = match set {
        "" => format!("profile {reader} reads them"),
        _ => format!("profile {reader} reads them, and no header set is nearer than \"{set}\""),
    };
    header.missing(file, missing, &reader, "set delimiter in the profile")
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

pub(super) fn written(column: &Column) -> String {
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
        HeaderForm::ByRecordType(sections) => {
            let start = records.mark();
            while records.advance()? {
                if sections.is_header(records.row()) {
                    let header = Header::named(records.row(), aliases);
                    records.go_to(start);
                    return Ok(header);
                }
            }
            return Err(
                Failure::rejected(format!("{file}: no line names the columns"))
                    .why(format!(
                        "profile {} finds it by its first cell ([sections])",
                        profile.full_name()
                    ))
                    .remedy("choose the profile of this report, or check that the file is whole"),
            );
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
                Ok(header) => {
                    let own = std::iter::once(header.clone());
                    let sets = profile.layout.sets.iter();
                    own.chain(sets.map(|set| header.clone().in_set(&set.renamed)))
                        .map(|header| known_columns(profile, &header))
                        .max()
                        .unwrap_or(0)
                }
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

/// How many columns of the profile a header names.
fn known_columns(profile: &Profile, header: &Header) -> usize {
    let columns = profile.columns.iter();
    columns
        .filter(|column| match &column.at {
            ColumnAt::Name { name, .. } => header.names().contains(name),
            ColumnAt::Position(_) => false,
        })
        .count()
}
