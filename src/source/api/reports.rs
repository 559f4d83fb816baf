//! Numbered reports, downloaded one after the other until the next one is not there yet.
//!
//! Decisions: a number that is missing between two others is a hole, and refuses the run as it does among files. A report is
//! read by the profile of its file and just as strictly. The number to begin with is never guessed; from then on it is the
//! last one that is stored, which is read again.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use crate::exit::{Exit, Failure};
use crate::meter::Meter;
use crate::processor::ReadRules;
use crate::processor::csv::decode;
use crate::source::feed::{Asked, Feed, FileRead, hex};
use crate::source::http::{Ask, Cause, To, Trouble};
use crate::time::Instant;

use super::Account;
use super::listing::in_path;

impl Account {
    /// Whether reports are downloaded instead of lists being asked for.
    pub fn has_reports(&self) -> bool {
        self.profile.reports.is_some()
    }

    /// Downloads the reports from the last one that was read on, or from the first one. `series`: the highest numbers that
    /// were read, by what the names of their files have in common.
    pub async fn read_reports(
        &self,
        series: Option<&BTreeMap<String, u64>>,
        from: Instant,
    ) -> Result<Feed, Failure> {
        let first = self.first_report.ok_or_else(|| {
            Failure::rejected("first_report is missing")
                .why("the reports are numbered, and the number to begin with is never guessed")
                .remedy(
                    "write the number of the oldest report that is to be read: first_report = 380",
                )
        })?;
        if self.rules.account.is_empty() {
            return Err(Failure::rejected("account is missing")
                .why("the reports are those of one account")
                .remedy("write its name: account = \"…\""));
        }
        let mut feed = Feed {
            is_verified: true,
            ..Feed::default()
        };
        let of = self.series(first);
        let stored = series.and_then(|series| series.get(&of)).copied();
        let start = stored.map_or(first, |stored| stored.max(first));
        let mut number = start;
        let mut broken = None;
        loop {
            match self.report(number).await {
                Ok(bytes) => self.add(self.name_of(number), &bytes, &mut feed)?,
                Err(trouble) if trouble.cause == Cause::NotFound => {
                    if feed.files.is_empty() && stored.is_none() {
                        return Err(Failure::rejected(trouble.what)
                            .why("the first report is not there, so nothing shows that account and number are right")
                            .remedy("check account and first_report"));
                    }
                    match self.report(number + 1).await {
                        Ok(_) => return Err(hole(number)),
                        Err(trouble) if trouble.cause == Cause::NotFound => break,
                        Err(trouble) => broken = Some(stopped(&trouble, &feed)?),
                    }
                    break;
                }
                Err(trouble) => {
                    broken = Some(stopped(&trouble, &feed)?);
                    break;
                }
            }
            number += 1;
        }
        if number > start {
            feed.series.insert(of, (start, number - 1));
        }
        let newest = feed.newest.unwrap_or(from);
        feed.asked = Some(Asked {
            host: self.http.host(),
            pages: feed.files.len() as u64,
            whole_until: newest,
            broken,
            ..Asked::of(self.http.traffic())
        });
        Ok(feed)
    }

    /// Whether the first report, or the one after the last stored one, can be asked for at all.
    pub(super) async fn report(&self, number: u64) -> Result<Vec<u8>, Trouble> {
        let path = self
            .profile
            .reports
            .as_ref()
            .map_or("", |reports| &reports.path);
        let ask = Ask {
            label: format!("GET {}", path.replace("{number}", &number.to_string())),
            to: To::Path(
                path.replace("{account}", &in_path(&self.rules.account))
                    .replace("{number}", &number.to_string()),
            ),
            query: Vec::new(),
        };
        self.http.download(&ask, &self.budget).await
    }

    fn name_of(&self, number: u64) -> String {
        let path = self
            .profile
            .reports
            .as_ref()
            .map_or("", |reports| &reports.path);
        let name = path.rsplit('/').next().unwrap_or(path);
        name.replace("{number}", &number.to_string())
    }

    /// What the names of the reports have in common.
    fn series(&self, number: u64) -> String {
        let name = self.name_of(number);
        match self.profile.rows.number_in_series(&name) {
            Some((of, _)) => of,
            None => name,
        }
    }

    pub(super) fn add(&self, name: String, bytes: &[u8], feed: &mut Feed) -> Result<(), Failure> {
        let index = u16::try_from(feed.files.len()).map_err(|_| {
            Failure::rejected("a source has more than 65536 reports")
                .remedy("raise first_report to one that is not older than the lookback")
        })?;
        let rules = ReadRules {
            tolerate_bad_rows: 0,
            ..(*self.rules).clone()
        };
        let rows = &self.profile.rows;
        let facts = decode(
            rows,
            &rules,
            &name,
            index,
            bytes,
            &mut feed.operations,
            &Meter::default(),
        )?;
        self.meter.add(1);
        feed.newest = feed.newest.max(facts.newest);
        feed.is_verified &= facts.is_verified;
        feed.rows += facts.rows;
        feed.blank_rows += facts.blank_rows;
        feed.invalid += facts.invalid;
        feed.files.push(FileRead {
            name,
            bytes: bytes.len() as u64,
            sha256: hex(&<[u8; 32]>::from(Sha256::digest(bytes))),
            facts,
        });
        Ok(())
    }
}

/// What is whole stays; why there is no more is told. Nothing at all is a failure.
fn stopped(trouble: &Trouble, feed: &Feed) -> Result<Failure, Failure> {
    let failure = trouble.failure(!feed.files.is_empty());
    if trouble.is_final() || feed.files.is_empty() {
        Err(failure)
    } else {
        Ok(failure)
    }
}

fn hole(number: u64) -> Failure {
    Failure::new(Exit::Refused, format!("report {number} is not there, and the next one is"))
        .why("the reports are numbered without gaps, so what the missing one holds would be taken for absent")
        .remedy("ask the processor for it and run again; where it is known never to come, set first_report behind the gap, and accept the stretch with paysweep watermark set")
}
