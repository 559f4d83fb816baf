//! Reports that somebody has made, each about a stretch of time: those that together reach furthest are downloaded.
//!
//! Decisions: none is ever created, since that would be a write. What is covered is what one report after the other covers without
//! a gap from the beginning of the window; a report behind a gap is not read, and where none begins in time nothing is called
//! absent. A report is read by the profile of its file and just as strictly.

use crate::exit::{Exit, Failure};
use crate::processor::api::cells::{Cells, instant};
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
    file: String,
}

impl Account {
    /// Whether reports that are listed are downloaded instead of lists being asked for.
    pub fn has_report_runs(&self) -> bool {
        self.profile.report_runs.is_some()
    }

    /// Downloads the reports that cover a window without a gap, as far as they do.
    pub async fn read_report_runs(&self, from: Instant, to: Instant) -> Result<Feed, Failure> {
        let (Some(spec), Some(files)) = (&self.profile.report_runs, &self.files) else {
            unreachable!("it was asked whether there are any");
        };
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
            .filter_map(|row| ready(row, &spec.kind, &spec.done))
            .collect();
        let chosen = chosen(&ready, from, to);
        let mut feed = Feed {
            is_verified: true,
            ..Feed::default()
        };
        let mut covered = from;
        let mut broken = None;
        for report in &chosen {
            let ask = Ask {
                label: format!("GET {}", spec.path),
                to: To::Path(spec.path.replace("{}", &in_path(&report.file))),
                query: Vec::new(),
            };
            match files.download(&ask, &self.budget).await {
                Ok(bytes) => {
                    let name = format!("{} {}", report.kind, report.file);
                    self.add(name, &bytes, &mut feed)?;
                    covered = report.to;
                }
                Err(trouble) if trouble.is_final() => return Err(trouble.failure(true)),
                Err(trouble) => {
                    broken = Some(trouble.failure(true));
                    break;
                }
            }
        }
        if chosen.is_empty() && from < to {
            let failure = Failure::new(
                Exit::Incomplete,
                format!("no report of type {}… covers {from}", spec.kind),
            );
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
fn ready(row: &Cells, kind: &str, done: &str) -> Option<Ready> {
    let of = |name: &str| {
        let found = row.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, text)| text.as_str())
    };
    let report = Ready {
        from: instant(of("from"))?,
        to: instant(of("to"))?,
        created: instant(of("created"))?,
        kind: of("type").to_owned(),
        file: of("file").to_owned(),
    };
    let is_one = report.kind.starts_with(kind) && of("status") == done && !report.file.is_empty();
    (is_one && report.from < report.to).then_some(report)
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
            .max_by_key(|report| (report.to, report.created, &report.file));
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
            file: format!("{from}-{to}-{created}"),
        };
        let names = |ready: &[Ready], from: i64, to: i64| -> Vec<String> {
            let chosen = chosen(ready, Instant(from), Instant(to));
            chosen.into_iter().map(|report| report.file).collect()
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
