//! Reports that somebody has made, each about a stretch of time: those that together reach furthest are downloaded.
//!
//! Decisions: none is ever created, since that would be a write. What is covered is what one report after the other covers without
//! a gap from the beginning of the window; a report behind a gap is not read, and where none begins in time nothing is called
//! absent. A report is read by the profile of its file and just as strictly.

use serde_json::Value;

use crate::exit::{Exit, Failure};
use crate::processor::api::cells::{Cells, instant, text};
use crate::processor::api::spec::ReportRuns;
use crate::source::feed::{Asked, Feed};
use crate::source::http::{Ask, To};
use crate::time::Instant;

use super::listing::in_path;
use super::{Account, Job};

/// A report that is ready.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ready {
    from: Instant,
    to: Instant,
    created: Instant,
    kind: String,
    run: String,
    files: Vec<String>,
}

impl Account {
    /// Whether reports that are listed are downloaded instead of lists being asked for.
    pub fn has_report_runs(&self) -> bool {
        self.profile.report_runs.is_some()
    }

    /// Downloads the reports that cover a window without a gap, as far as they do.
    pub async fn read_report_runs(&self, from: Instant, to: Instant) -> Result<Feed, Failure> {
        let Some(spec) = &self.profile.report_runs else {
            unreachable!("it was asked whether there are any");
        };
        let files = self.files.as_ref().unwrap_or(&self.http);
        let job = Job {
            slice: 0,
            request: spec.request,
            from,
            to,
            key: None,
        };
        let list = self
            .list(&job)
            .await
            .map_err(|broken| broken.trouble.failure(false))?;
        let ready: Vec<Ready> = list
            .rows
            .iter()
            .filter_map(|row| ready(row, spec))
            .collect();
        let chosen = chosen(&ready, from, to);
        let mut feed = Feed {
            is_verified: true,
            ..Feed::default()
        };
        let mut covered = from;
        let mut broken = None;
        'reports: for report in &chosen {
            // One of several files is no report.
            let mut parts = Vec::new();
            for file in &report.files {
                let path = spec.path.replace("{run}", &in_path(&report.run));
                let ask = Ask {
                    label: format!("GET {}", spec.path),
                    to: To::Path(path.replace("{}", &in_path(file))),
                    query: Vec::new(),
                };
                match files.download(&ask, &self.budget).await {
                    Ok(bytes) => parts.push((format!("{} {file}", report.kind), bytes)),
                    Err(trouble) if trouble.is_final() => return Err(trouble.failure(true)),
                    Err(trouble) => {
                        broken = Some(trouble.failure(true));
                        break 'reports;
                    }
                }
            }
            for (name, bytes) in parts {
                self.add(name, &bytes, &mut feed)?;
            }
            covered = report.to;
        }
        if chosen.is_empty() && from < to {
            let what = format!("no report of type {}… covers {from}", spec.kind);
            let failure = Failure::new(Exit::Incomplete, what);
            broken = Some(
                failure
                    .why("reports are only looked up, never made, and what none of them covers cannot be called absent")
                    .remedy("make one over the missing stretch, or have the dashboard make them by schedule; then run again"),
            );
        }
        feed.asked = Some(Asked {
            host: self.http.host(),
            account: list.account,
            pages: list.pages + feed.files.len() as u64,
            whole_until: covered.min(to.max(from)),
            broken,
            ..Asked::of(self.http.traffic())
        });
        Ok(feed)
    }
}

/// A row of the list of reports, where it is one that is ready.
fn ready(row: &Cells, spec: &ReportRuns) -> Option<Ready> {
    let of = |name: &str| {
        let found = row.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    };
    let files: Value = serde_json::from_str(of("files")).ok()?;
    let files: Vec<String> = match &files {
        Value::Array(files) => files.iter().map(|file| text(file, &[&spec.file])).collect(),
        file => vec![text(file, &[&spec.file])],
    };
    let report = Ready {
        from: instant(of("from"))?,
        to: instant(of("to"))?,
        created: instant(of("created"))?,
        kind: of("type").to_owned(),
        run: of("id").to_owned(),
        files,
    };
    let has_files = !report.files.is_empty() && report.files.iter().all(|file| !file.is_empty());
    let is_one = report.kind.starts_with(&spec.kind)
        && spec
            .when
            .iter()
            .all(|(column, words)| words.iter().any(|word| word == of(column)));
    (is_one && has_files && report.from < report.to).then_some(report)
}

/// Of all reports those that follow each other without a gap: at each place the one that reaches furthest, and of equal ones the
/// youngest.
fn chosen(ready: &[Ready], from: Instant, to: Instant) -> Vec<Ready> {
    let mut chosen: Vec<Ready> = Vec::new();
    let mut covered = from;
    while covered < to {
        let next = ready
            .iter()
            .filter(|report| report.from <= covered && covered < report.to)
            .max_by_key(|report| (report.to, report.created, &report.run));
        let Some(next) = next else { break };
        covered = next.to;
        chosen.push(next.clone());
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_follow_each_other_without_a_gap() {
        let report = |from: i64, to: i64, created: i64| Ready {
            from: Instant(from),
            to: Instant(to),
            created: Instant(created),
            kind: "k".to_owned(),
            run: format!("{from}-{to}-{created}"),
            files: Vec::new(),
        };
        let names = |ready: &[Ready], from: i64, to: i64| -> Vec<String> {
            let chosen = chosen(ready, Instant(from), Instant(to));
            chosen.into_iter().map(|report| report.run).collect()
        };
        let all = [
            report(0, 10, 1),
            report(0, 10, 2),
            report(5, 20, 3),
            report(20, 30, 4),
            report(40, 50, 5),
        ];
        assert_eq!(names(&all, 0, 50), ["0-10-2", "5-20-3", "20-30-4"]);
        assert_eq!(names(&all, 6, 8), ["5-20-3"]);
        assert!(names(&all, 30, 50).is_empty());
        assert!(names(&all, -1, 50).is_empty());
        assert!(names(&all, 5, 5).is_empty());
    }
}
