//! What a source says, from wherever it was read.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::exit::{Exit, Failure};
use crate::model::operation::Operations;
use crate::model::run::Watermark;
use crate::processor::csv::FileFacts;
use crate::time::Instant;

use super::http::Traffic;

/// Everything that a source says.
#[derive(Debug, Default)]
pub struct Feed {
    /// The rows of all files and lists, in their order.
    pub operations: Operations,
    /// SHA-256 over the sorted content hashes of all files, in hexadecimal: the same for the same contents under other
    /// names or in another order. Empty where an API was asked: that it answers the same says nothing about its rows.
    pub hash: String,
    /// The files that were read; `Operation::file` counts in this list.
    pub files: Vec<FileRead>,
    /// The newest time of a row that can be used; `None` without rows. It may lie after the run's "now".
    pub newest: Option<Instant>,
    /// Whether every file proves that no row of it is missing.
    pub is_verified: bool,
    /// The lowest and the highest number of each series of numbered reports, by what the names of its files have in common.
    pub series: BTreeMap<String, (u64, u64)>,
    /// Rows of all files.
    pub rows: u64,
    /// Rows whose cells were all empty; left out.
    pub blank_rows: u64,
    /// Rows with a tolerated format error; each is invalid.
    pub quarantined: u64,
    /// Rows that cannot be used, the quarantined ones included.
    pub invalid: u64,
    /// What asking has shown; `None` = files were read.
    pub asked: Option<Asked>,
}

/// What asking an API has shown.
#[derive(Debug, Default)]
pub struct Asked {
    /// Who was asked.
    pub host: String,
    /// As the processor calls the account; empty = it does not say.
    pub account: String,
    /// Requests that were sent, those included that failed.
    pub requests: u64,
    /// How often a request was tried again.
    pub retries: u64,
    /// Answers that asked for fewer requests.
    pub throttled: u64,
    /// Pages that were read.
    pub pages: u64,
    /// Until when the lists are whole. Nothing behind it is in the feed.
    pub whole_until: Instant,
    /// Why they are not whole to the end of what was asked for; `None` = they are.
    pub broken: Option<Failure>,
    /// Whether more time has passed than one run may read.
    pub is_behind: bool,
    /// Rows that were asked for by their id.
    pub looked_up: u64,
    /// Those of them that the processor does not know.
    pub unknown: Vec<String>,
    /// Rows that were not asked for, since there were too many.
    pub not_asked: u64,
}

impl Asked {
    /// What was asked so far, and nothing else.
    pub fn of(traffic: &Traffic) -> Asked {
        let mut asked = Asked::default();
        asked.count(traffic);
        asked
    }

    /// Takes over what was asked so far.
    pub fn count(&mut self, traffic: &Traffic) {
        self.requests = traffic.requests();
        self.retries = traffic.retries();
        self.throttled = traffic.throttled();
    }

    /// Whether everything that was asked for was answered.
    pub fn is_whole(&self) -> bool {
        self.broken.is_none()
    }
}

/// One file of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRead {
    /// The name as the configuration gives it, with wildcards filled in.
    pub name: String,
    /// Size of the content.
    pub bytes: u64,
    /// SHA-256 of the content, in hexadecimal.
    pub sha256: String,
    /// What reading it has shown.
    pub facts: FileFacts,
}

impl Feed {
    /// The highest number of each series once this feed is read, too.
    pub fn series_after(&self, stored: Option<&Watermark>) -> BTreeMap<String, u64> {
        let mut numbers = stored.map(|mark| mark.series.clone()).unwrap_or_default();
        for (of, (_, highest)) in &self.series {
            let known = numbers.entry(of.clone()).or_insert(0);
            *known = (*known).max(*highest);
        }
        numbers
    }

    /// Refuses (exit 4) a feed between whose numbered reports and those of earlier runs one is missing.
    pub fn follows(self, stored: Option<&Watermark>) -> Result<Feed, Failure> {
        for (of, known) in stored.iter().flat_map(|mark| &mark.series) {
            if let Some((lowest, _)) = self.series.get(of) {
                let missing = known.saturating_add(1)..*lowest;
                if !missing.is_empty() {
                    let place = "the last one that was read and the files that are there";
                    return Err(gap(of, std::slice::from_ref(&missing), place));
                }
            }
        }
        Ok(self)
    }

    /// The newest time of a usable row that is not later than an instant: what `complete_through = "last-row"` means.
    pub fn newest_until(&self, as_of: Instant) -> Option<Instant> {
        let usable = self
            .operations
            .invalid
            .iter()
            .zip(&self.operations.occurred_at)
            .filter(|(invalid, at)| invalid.is_empty() && **at <= as_of);
        usable.map(|(_, at)| *at).max()
    }
}

/// Bytes in hexadecimal.
pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Most missing numbers that a refusal names.
const MISSING_SHOWN: usize = 5;

/// Exit 4: numbers of a series are missing.
pub(super) fn gap(of: &str, missing: &[Range<u64>], between: &str) -> Failure {
    let shown: Vec<String> = missing
        .iter()
        .flat_map(|numbers| numbers.clone().take(MISSING_SHOWN))
        .take(MISSING_SHOWN)
        .map(|number| number.to_string())
        .collect();
    let count: u64 = missing
        .iter()
        .map(|numbers| numbers.end - numbers.start)
        .sum();
    let more = match count.saturating_sub(shown.len() as u64) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Failure::new(
        Exit::Refused,
        format!("{of}: number {}{more} is missing between {between}", shown.join(", ")),
    )
    .why("the reports are numbered without gaps, so what the missing one holds would be taken for absent")
    .remedy("fetch it and run again; where it is known never to come, name only the files behind the gap, and accept the stretch with paysweep watermark set")
}
