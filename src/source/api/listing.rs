//! One list for one stretch of time, page by page.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::processor::api::Why;
use crate::processor::api::cells::{Cells, instant, text};
use crate::processor::api::page::{Next, Walk};
use crate::processor::api::spec::{AccountSpec, AccountTold, Request};
use crate::source::http::{Ask, Cause, To, Trouble};
use crate::time::Instant;

use super::{Account, Broken, Job, rows_of};

/// A list that is whole.
#[derive(Debug, Default)]
pub(super) struct List {
    /// Its rows, in the order in which they came.
    pub rows: Vec<Cells>,
    /// What further lists are asked with: which list, and what.
    pub keys: Vec<(usize, String)>,
    pub pages: u64,
    pub bytes: u64,
    /// Until when it is complete, where it says so.
    pub until: Option<Instant>,
    /// Whose account it is, where it says so.
    pub account: String,
}

/// So often a list that moves while it is read is read, until it says the same twice.
const READINGS_MAX: usize = 6;

impl Account {
    /// Reads a list to its end. A stretch that holds too many rows for one question is asked for in halves.
    pub(super) async fn list(&self, job: &Job) -> Result<List, Broken> {
        let too_large = match &self.profile.requests[job.request].window {
            Some(window) if !window.too_large.is_empty() => window.too_large.as_str(),
            _ => return self.settled(job).await,
        };
        let mut whole = List::default();
        let mut waiting = vec![(job.from, job.to)];
        while let Some((from, to)) = waiting.pop() {
            let part = Job {
                from,
                to,
                ..job.clone()
            };
            match self.settled(&part).await {
                Ok(list) => {
                    whole.rows.extend(list.rows);
                    whole.keys.extend(list.keys);
                    whole.pages += list.pages;
                    whole.bytes += list.bytes;
                    if whole.account.is_empty() {
                        whole.account = list.account;
                    }
                    whole.until = match (whole.until, list.until) {
                        (Some(known), Some(until)) => Some(known.min(until)),
                        (known, until) => known.or(until),
                    };
                }
                // Below a second there is nothing to halve.
                Err(broken) if broken.trouble.name == too_large && to.0 - from.0 > 2_000_000 => {
                    let middle = Instant(from.0 + (to.0 - from.0) / 2 / 1_000_000 * 1_000_000);
                    waiting.push((middle, to));
                    waiting.push((from, middle));
                }
                Err(broken) => {
                    return Err(Broken {
                        pages: broken.pages + whole.pages,
                        ..broken
                    });
                }
            }
        }
        Ok(whole)
    }

    /// Reads a list, one that moves until it says the same twice.
    async fn settled(&self, job: &Job) -> Result<List, Broken> {
        let rule = &self.profile.requests[job.request].page;
        let mut list = self.pages_or_again(job).await?;
        if !rule.is_weak() || list.pages < 2 {
            return Ok(list);
        }
        for _ in 1..READINGS_MAX {
            let mut again = self.pages_or_again(job).await?;
            let is_same = digest(&list) == digest(&again);
            again.pages += list.pages;
            again.bytes += list.bytes;
            list = again;
            if is_same {
                return Ok(list);
            }
        }
        let request = &self.profile.requests[job.request];
        let what = "the list never said the same twice".to_owned();
        Err(Broken {
            trouble: Trouble::new(Cause::Body, &label(request, None), &what),
            pages: list.pages,
        })
    }

    /// A row that the list was to go on from may be gone: then it is read from its beginning, once.
    async fn pages_or_again(&self, job: &Job) -> Result<List, Broken> {
        match self.pages(job).await {
            Err(broken)
                if broken.pages > 0
                    && matches!(broken.trouble.cause, Cause::Refused | Cause::NotFound) =>
            {
                tracing::info!(
                    "{}; reading the list again from its beginning",
                    broken.trouble
                );
                self.pages(job).await.map_err(|again| Broken {
                    pages: again.pages + broken.pages,
                    ..again
                })
            }
            done => done,
        }
    }

    async fn pages(&self, job: &Job) -> Result<List, Broken> {
        let request = &self.profile.requests[job.request];
        let mut walk = Walk::new(&request.page, self.page_size);
        let mut list = List::default();
        let mut next = Next::Page(walk.first());
        loop {
            let label = label(request, Some(walk.pages() + 1));
            let ask = match next {
                Next::Done => break,
                Next::Link(link) => Ask {
                    label,
                    to: To::Link(link),
                    query: Vec::new(),
                },
                Next::Page(page) => {
                    let mut query = self.fixed(request, job);
                    query.extend(page);
                    Ask {
                        label,
                        to: To::Path(path(request, job)),
                        query,
                    }
                }
            };
            let pages = list.pages;
            let broken = |trouble| Broken { trouble, pages };
            let answer = self.http.get(&ask, &self.budget).await.map_err(broken)?;
            list.bytes += answer.bytes;
            let untrusted = |what: String| broken(Trouble::new(Cause::Body, &ask.label, &what));
            let Some(items) = request.items_of(&answer.json) else {
                return Err(untrusted(format!(
                    "there is no list at {:?} in the answer",
                    request.items
                )));
            };
            next = walk.next(&answer.json, items).map_err(untrusted)?;
            if let Some(window) = request
                .window
                .as_ref()
                .filter(|window| !window.until.is_empty())
            {
                let until = instant(&text(&answer.json, &[&window.until]));
                let until = until.ok_or_else(|| {
                    untrusted(format!(
                        "the answer does not say at {:?} until when it is complete",
                        window.until
                    ))
                })?;
                list.until = Some(list.until.map_or(until, |known| known.min(until)));
            }
            let account = self.told_account(job, &answer.json);
            if !list.account.is_empty() && !account.is_empty() && account != list.account {
                return Err(untrusted("its pages are of different accounts".to_owned()));
            }
            if list.account.is_empty() {
                list.account = account;
            }
            list.pages += 1;
            self.meter.add(items.len() as u64);
            let mut is_all_older = !items.is_empty();
            for item in items {
                if !request.page.field.is_empty() {
                    let Some(at) = self.profile.time_of(job.request, item) else {
                        return Err(untrusted(format!(
                            "a row has no time at {:?}",
                            request.page.field
                        )));
                    };
                    is_all_older &= at < job.from;
                    if at < job.from || at >= job.to {
                        continue;
                    }
                }
                self.take(job, item, &mut list);
            }
            if !request.page.field.is_empty() && is_all_older {
                break;
            }
        }
        Ok(list)
    }

    /// The first page alone, as small as it can be.
    pub(super) async fn first_page(&self, job: &Job) -> Result<(List, Option<Instant>), Trouble> {
        let request = &self.profile.requests[job.request];
        let mut query = self.fixed(request, job);
        query.extend(Walk::new(&request.page, Some(1)).first());
        let ask = Ask {
            label: label(request, Some(1)),
            to: To::Path(path(request, job)),
            query,
        };
        let answer = self.http.get(&ask, &self.budget).await?;
        let items = request.items_of(&answer.json).ok_or_else(|| {
            let what = format!("there is no list at {:?} in the answer", request.items);
            Trouble::new(Cause::Body, &ask.label, &what)
        })?;
        let mut list = List {
            account: self.told_account(job, &answer.json),
            ..List::default()
        };
        for item in items {
            self.take(job, item, &mut list);
        }
        Ok((list, answer.date))
    }

    /// The parameters that every page has.
    fn fixed(&self, request: &Request, job: &Job) -> Vec<(String, String)> {
        let mut query = request.query.clone();
        query.extend(self.profile.http.account_param(&self.rules.account));
        if let Some(window) = &request.window {
            query.extend(window.from.from(job.from));
            query.extend(window.to.to(job.to));
        }
        if let (Some(each), Some(key)) = (&request.for_each, &job.key)
            && !each.param.is_empty()
        {
            query.push((each.param.clone(), key.clone()));
        }
        query
    }

    /// Whose account an answer says that it is of; empty = it does not.
    fn told_account(&self, job: &Job, answer: &Value) -> String {
        match &self.profile.account {
            Some(AccountSpec {
                told: AccountTold::ByList(of),
                id,
            }) if *of == job.request => text(answer, &[id]),
            _ => String::new(),
        }
    }

    fn take(&self, job: &Job, item: &Value, list: &mut List) {
        for (at, other) in self.profile.requests.iter().enumerate() {
            if let Some(each) = other
                .for_each
                .as_ref()
                .filter(|each| each.request == job.request)
            {
                list.keys.extend(each.of(item).map(|key| (at, key)));
            }
        }
        let rows = rows_of(
            &self.profile,
            job.request,
            item,
            job.key.as_deref(),
            Why::Listed,
        );
        list.rows.extend(rows);
    }
}

/// What a list says, whatever its order and however often.
fn digest(list: &List) -> BTreeSet<&Cells> {
    list.rows.iter().collect()
}

fn label(request: &Request, page: Option<u64>) -> String {
    match page {
        Some(page) => format!("GET {}, page {page}", request.path),
        None => format!("GET {}", request.path),
    }
}

fn path(request: &Request, job: &Job) -> String {
    match &job.key {
        Some(key) if request.path.contains("{}") => request.path.replace("{}", &in_path(key)),
        _ => request.path.clone(),
    }
}

/// An id as one part of a path: whatever could lead elsewhere is written in numbers.
pub(super) fn in_path(id: &str) -> String {
    let mut text = String::new();
    for byte in id.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_') {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::in_path;

    #[test]
    fn an_id_stays_one_part_of_a_path() {
        for (id, want) in [
            ("ch_1-a", "ch_1-a"),
            ("../keys?x=1", "%2E%2E%2Fkeys%3Fx%3D1"),
            ("ü", "%C3%BC"),
        ] {
            assert_eq!(in_path(id), want);
        }
    }
}
