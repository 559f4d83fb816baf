//! Reading the lists of a processor by profile.
//!
//! | module | holds |
//! |---|---|
//! | `listing` | one list for one stretch of time, page by page |
//! | `lookup` | single objects by their id |
//! | `reports` | numbered reports instead of lists |
//! | `report_runs` | reports that are listed with the stretch they are about |
//!
//! Decisions: a stretch of time counts when every list of it is whole, and only together with all stretches before it. What
//! was read of a broken stretch is thrown away: a refund without its payment, or a payout without its parts, would be a
//! wrong finding. So what is left is what a run at an earlier time would have seen.

mod listing;
mod lookup;
mod report_runs;
mod reports;

use std::collections::{BTreeMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};
use tokio::task::JoinSet;

use crate::exit::{Exit, Failure};
use crate::meter::Meter;
use crate::processor::api::bounds::{self, BoundFormat};
use crate::processor::api::cells::{Cells, Sheet, text};
use crate::processor::api::spec::{AccountSpec, AccountTold, AuthSpec, Prefixes, Request};
use crate::processor::api::{ApiProfile, Why};
use crate::processor::csv::decode;
use crate::processor::{Mode, ReadRules};
use crate::time::{Instant, Span};

use super::feed::{Asked, Feed, FileRead, hex};
use super::http::{
    Ask, Base, Budget, Cause, Http, Login, Manners, Retries, Secret, To, Traffic, Trouble,
};
use listing::List;

pub use lookup::{Found, Question};

/// What a source says about how it is asked.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Access {
    /// Secrets, by the key under which the source gives them.
    pub secrets: BTreeMap<String, Secret>,
    /// Another host than the profile's.
    pub base: Option<Base>,
    /// Requests in a second, instead of the profile's.
    pub rate_limit: Option<NonZeroU32>,
    /// Rows on a page, instead of the profile's.
    pub page_size: Option<u64>,
    /// How many requests may be under way; `None` = 4.
    pub concurrency: Option<usize>,
    /// For one request and all its repetitions, instead of the profile's.
    pub patience: Option<Span>,
    /// The number of the first report, where reports are numbered.
    pub first_report: Option<u64>,
    /// Whether lists are asked, too, that only say more about rows of others.
    pub events: bool,
    /// How much new time is read at once, instead of the profile's.
    pub max_window: Option<Span>,
}

/// How many requests are under way at most, where the source says nothing.
const CONCURRENCY: usize = 4;

/// A processor's account that can be asked.
#[derive(Clone)]
pub struct Account {
    profile: Arc<ApiProfile>,
    rules: Arc<ReadRules>,
    http: Arc<Http>,
    /// The host of files, where they have one of their own.
    files: Option<Arc<Http>>,
    budget: Arc<Budget>,
    page_size: Option<u64>,
    concurrency: usize,
    first_report: Option<u64>,
    events: bool,
    meter: Meter,
}

impl Account {
    /// Makes ready to ask. Fails with exit 2 where a secret is missing or left over, with 5 where the key says that it is of
    /// the other mode; nothing is sent for either.
    pub fn new(
        profile: Arc<ApiProfile>,
        mut rules: ReadRules,
        access: &Access,
        budget: Arc<Budget>,
        traffic: Arc<Traffic>,
    ) -> Result<Account, Failure> {
        let (login, key_mode) = login(&profile.auth, &access.secrets)?;
        if let (Some(wanted), Some(found)) = (rules.mode, key_mode)
            && wanted != found
        {
            let name = |mode| if mode == Mode::Live { "live" } else { "test" };
            return Err(Failure::new(
                Exit::Denied,
                format!("the key is one for {} mode, and the source is of {} mode", name(found), name(wanted)),
            )
            .why("rows of the processor's test mode would be compared with real intents, or the other way round")
            .remedy("give the source a key of its mode, or write mode = \"test\" where it is a test")
            .state("nothing was sent"));
        }
        if access.events && !profile.requests.iter().any(|rule| rule.has_notes) {
            return Err(Failure::rejected(
                "events = true, and this processor is not asked for any",
            )
            .remedy("leave it out")
            .state("nothing was sent"));
        }
        if rules.account.is_empty() && !profile.http.account_params.is_empty() {
            return Err(Failure::rejected("account is missing")
                .why("the lists are those of one account")
                .remedy("write its name: account = \"…\"")
                .state("nothing was sent"));
        }
        if profile.rows.has_no_mode() {
            // The key was all there is to tell it by.
            rules.mode = None;
        }
        // What cannot be read is kept row by row: an answer is no file that somebody could export again.
        rules.tolerate_bad_rows = u64::MAX;
        let base = match &access.base {
            Some(base) => base.clone(),
            None => Base::parse(&profile.http.base).map_err(|what| {
                Failure::rejected(format!("{}: http.base {what}", profile.rows.name))
            })?,
        };
        let elsewhere = profile.report_runs.as_ref();
        let files = match (elsewhere.and_then(|runs| runs.base.as_ref()), &access.base) {
            // Who names another host means it for everything.
            (None, _) | (Some(_), Some(_)) => None,
            (Some(base), None) => {
                let base = Base::parse(base).map_err(|what| {
                    Failure::rejected(format!("{}: report_runs.base {what}", profile.name))
                })?;
                let manners = manners(&profile, &rules, access);
                Some(Arc::new(Http::new(
                    base,
                    login.clone(),
                    manners,
                    Arc::clone(&traffic),
                )?))
            }
        };
        let http = Http::new(base, login, manners(&profile, &rules, access), traffic)?;
        Ok(Account {
            profile,
            rules: Arc::new(rules),
            http: Arc::new(http),
            files,
            budget,
            page_size: access.page_size,
            concurrency: access.concurrency.unwrap_or(CONCURRENCY).max(1),
            first_report: access.first_report,
            events: access.events,
            meter: Meter::default(),
        })
    }

    /// The same, counting rows as they come, or reports where there are such.
    #[must_use]
    pub fn counting(self, meter: Meter) -> Account {
        Account { meter, ..self }
    }

    /// The host that is asked.
    pub fn host(&self) -> String {
        self.http.host()
    }

    /// How much was asked so far.
    pub fn traffic(&self) -> &Traffic {
        self.http.traffic()
    }

    /// Whose account it is, where that can be asked before anything else; empty = the processor does not say that to this
    /// key. Fails with 5 where the key is not accepted at all.
    pub async fn identify(&self) -> Result<Option<String>, Failure> {
        let Some(AccountSpec {
            told: AccountTold::ByPath(path),
            id,
        }) = &self.profile.account
        else {
            return Ok(None);
        };
        let ask = Ask {
            label: format!("GET {path}"),
            to: To::Path(path.clone()),
            query: Vec::new(),
        };
        match self.http.get(&ask, &self.budget).await {
            Ok(answer) => Ok(Some(text(&answer.json, &[id]))),
            // A key that may read payments need not be one that may ask whose it is.
            Err(trouble) if matches!(trouble.cause, Cause::Forbidden | Cause::NotFound) => {
                Ok(Some(String::new()))
            }
            Err(trouble) => Err(trouble.failure(false)),
        }
    }

    /// Reads a window, in whatever way the processor offers it.
    pub async fn read_window(&self, from: Instant, to: Instant) -> Result<Feed, Failure> {
        if self.has_report_runs() {
            return self.read_report_runs(from, to).await;
        }
        self.read(from, to).await
    }

    /// Reads every list for a window. What is not whole is left out, and why is told in the feed. Fails where nothing at all
    /// could be read (75), where the key is refused or of the other mode (5), and where it should go elsewhere (4).
    pub async fn read(&self, from: Instant, to: Instant) -> Result<Feed, Failure> {
        let slices = self.slices(from, to);
        let mut reading = Reading::new(slices.len(), self.profile.requests.len());
        let requests = self.profile.requests.iter().enumerate();
        let mut jobs = VecDeque::new();
        for (slice, &(from, to)) in slices.iter().enumerate() {
            let listed = |rule: &Request| rule.for_each.is_none() && self.is_wanted(rule);
            for (request, rule) in requests.clone().filter(|(_, rule)| listed(rule)) {
                let job = |slice, from, to| Job {
                    slice,
                    request,
                    from,
                    to,
                    key: None,
                };
                match &rule.window {
                    // The oldest stretch reaches back to rows that may have changed since.
                    Some(window) if slice == 0 => {
                        jobs.push_back(job(0, from.minus(window.reach), to));
                    }
                    Some(_) => jobs.push_back(job(slice, from, to)),
                    // A list that cannot be asked for a stretch is read once for all of them.
                    None if slice == 0 => jobs.push_back(job(0, from, slices[slices.len() - 1].1)),
                    None => {}
                }
            }
        }
        self.work(jobs, &mut reading).await?;
        let mut jobs = VecDeque::new();
        for (request, rule) in requests.filter(|(_, rule)| rule.for_each.is_some()) {
            // What a list without stretches leads to is asked for the whole window.
            let is_whole = rule
                .for_each
                .as_ref()
                .is_some_and(|each| self.profile.requests[each.request].window.is_none());
            for (slice, key) in reading.keys_of(request) {
                let (begin, end) = if is_whole { (from, to) } else { slices[slice] };
                jobs.push_back(Job {
                    slice,
                    request,
                    from: begin,
                    to: end,
                    key: Some(key),
                });
            }
        }
        jobs.make_contiguous().sort_by_key(|job| job.slice);
        self.work(jobs, &mut reading).await?;
        if reading.pages == 0
            && let Some(trouble) = &reading.trouble
        {
            return Err(trouble.failure(false));
        }
        let whole_until = match reading.whole {
            0 => from,
            whole => slices[whole - 1].1,
        };
        self.feed(reading, whole_until)
    }

    /// Asks for one row of each list: whether somebody answers, whether the key may read it, and of which mode it is.
    pub async fn probe(&self, now: Instant) -> Result<Probed, Failure> {
        let mut probed = Probed {
            account: self.identify().await?,
            ..Probed::default()
        };
        if let (Some(reports), Some(first)) = (&self.profile.reports, self.first_report) {
            match self.report(first).await {
                Ok(_) => probed.lists.push(reports.path.clone()),
                Err(trouble) => return Err(trouble.failure(false)),
            }
        }
        for (request, rule) in self.profile.requests.iter().enumerate() {
            if rule.for_each.is_some() || !self.is_wanted(rule) {
                continue;
            }
            let (slice, key) = (0, None);
            let job = Job {
                slice,
                request,
                from: now.minus(Span::hours(24)),
                to: now,
                key,
            };
            let (mut list, date) = self
                .first_page(&job)
                .await
                .map_err(|trouble| trouble.failure(false))?;
            if !list.account.is_empty() {
                probed.account = Some(std::mem::take(&mut list.account));
            }
            if self.has_report_runs() {
                probed.date = probed.date.or(date);
                probed.lists.push(rule.path.clone());
                continue;
            }
            let mut sheet = Sheet::with(self.profile.columns(&self.rules));
            for cells in std::mem::take(&mut list.rows) {
                sheet.push(cells);
            }
            self.decode(
                &format!("GET {}", rule.path),
                list.bytes,
                &sheet,
                &mut Feed::default(),
            )?;
            probed.date = probed.date.or(date);
            probed.lists.push(rule.path.clone());
        }
        Ok(probed)
    }

    /// Whether a list is asked at all.
    fn is_wanted(&self, rule: &Request) -> bool {
        !rule.has_notes || self.events
    }

    fn slices(&self, from: Instant, to: Instant) -> Vec<(Instant, Instant)> {
        let windows = || {
            self.profile
                .requests
                .iter()
                .filter_map(|rule| rule.window.as_ref())
        };
        if windows().any(|window| window.from.format == BoundFormat::Parts) {
            return bounds::days(from, to);
        }
        bounds::slices(
            from,
            to,
            windows().filter_map(|window| window.max_span).min(),
        )
    }

    /// Does jobs, so many at a time, in their order. What lies behind a broken stretch is not begun.
    async fn work(&self, mut jobs: VecDeque<Job>, reading: &mut Reading) -> Result<(), Failure> {
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.concurrency {
                match jobs.pop_front() {
                    Some(job) if job.slice < reading.whole => {
                        let account = self.clone();
                        under_way.spawn(async move {
                            let list = account.list(&job).await;
                            (job, list)
                        });
                    }
                    Some(_) => {}
                    None => break,
                }
            }
            let Some(done) = under_way.join_next().await else {
                return Ok(());
            };
            match done.expect("a panic ends the process by itself") {
                (job, Ok(list)) => reading.add(&job, list),
                (job, Err(Broken { trouble, pages })) => {
                    if trouble.is_final() {
                        return Err(trouble.failure(reading.pages > 0));
                    }
                    tracing::warn!("{trouble}");
                    reading.pages += pages;
                    if job.slice < reading.whole || reading.trouble.is_none() {
                        reading.trouble = Some(trouble);
                    }
                    reading.whole = reading.whole.min(job.slice);
                }
            }
        }
    }

    fn feed(&self, reading: Reading, whole_until: Instant) -> Result<Feed, Failure> {
        let mut feed = Feed {
            is_verified: true,
            ..Feed::default()
        };
        let whole = reading.whole;
        let until = reading
            .until
            .map_or(whole_until, |until| whole_until.min(until));
        let notes = reading.notes(&self.profile);
        for (rule, lists) in self.profile.requests.iter().zip(reading.lists) {
            if rule.has_notes {
                continue;
            }
            let mut sheet = Sheet::with(self.profile.columns(&self.rules));
            let mut bytes = 0;
            for (_, list) in lists.into_iter().filter(|(slice, _)| *slice < whole) {
                bytes += list.bytes;
                for mut cells in list.rows {
                    self.profile.annotate(&mut cells, &notes);
                    sheet.push(cells);
                }
            }
            let name = match &rule.for_each {
                Some(each) => {
                    let of = &self.profile.requests[each.request].id;
                    format!("GET {} for each of {of}", rule.path)
                }
                None => format!("GET {}", rule.path),
            };
            self.decode(&name, bytes, &sheet, &mut feed)?;
        }
        feed.asked = Some(Asked {
            host: self.http.host(),
            account: reading.account,
            pages: reading.pages,
            whole_until: until,
            broken: reading.trouble.map(|trouble| trouble.failure(true)),
            ..Asked::of(self.http.traffic())
        });
        feed.is_verified = feed.asked.as_ref().is_some_and(Asked::is_whole);
        Ok(feed)
    }

    /// Reads the rows of a sheet into a feed.
    fn decode(
        &self,
        name: &str,
        bytes: u64,
        sheet: &Sheet,
        feed: &mut Feed,
    ) -> Result<(), Failure> {
        let index = u16::try_from(feed.files.len()).unwrap_or(u16::MAX);
        let csv = sheet.csv();
        let facts = decode(
            &self.profile.rows,
            &self.rules,
            name,
            index,
            csv.as_bytes(),
            &mut feed.operations,
            // Its rows were counted when they came.
            &Meter::default(),
        )?;
        if facts.rows_of_other_mode > 0 {
            return Err(Failure::new(Exit::Denied, format!("{name}: rows are of the other mode"))
                .why("the source declares its mode, or means live mode by declaring none, and the account behind the key is of the other one")
                .remedy("check the key, and mode of the source"));
        }
        feed.newest = feed.newest.max(facts.newest);
        feed.rows += facts.rows;
        feed.quarantined += facts.quarantined;
        feed.invalid += facts.invalid;
        feed.files.push(FileRead {
            name: name.to_owned(),
            bytes,
            sha256: hex(&<[u8; 32]>::from(Sha256::digest(csv.as_bytes()))),
            facts,
        });
        Ok(())
    }
}

/// What one row of each list has shown.
#[derive(Debug, Default)]
pub struct Probed {
    /// As the processor calls the account; empty = it does not say that to this key; `None` = it never does.
    pub account: Option<String>,
    /// Paths that may be read.
    pub lists: Vec<String>,
    /// The processor's clock, where it told it.
    pub date: Option<Instant>,
}

/// One list for one stretch.
#[derive(Clone, Debug)]
struct Job {
    slice: usize,
    request: usize,
    from: Instant,
    to: Instant,
    /// What a list for each row of another one is asked with.
    key: Option<String>,
}

/// A list that is not whole.
struct Broken {
    trouble: Trouble,
    /// Pages of it that were read.
    pages: u64,
}

/// What was read so far.
struct Reading {
    /// For each list, its stretches.
    lists: Vec<Vec<(usize, List)>>,
    /// So many stretches may still be whole.
    whole: usize,
    /// Why the next one is not.
    trouble: Option<Trouble>,
    pages: u64,
    /// Until when the processor says that its lists are complete.
    until: Option<Instant>,
    /// Whose account the lists are of, where they say so.
    account: String,
}

impl Reading {
    fn new(slices: usize, requests: usize) -> Reading {
        Reading {
            lists: (0..requests).map(|_| Vec::new()).collect(),
            whole: slices,
            trouble: None,
            pages: 0,
            until: None,
            account: String::new(),
        }
    }

    fn add(&mut self, job: &Job, list: List) {
        self.pages += list.pages;
        if self.account.is_empty() {
            self.account.clone_from(&list.account);
        }
        if let Some(until) = list.until {
            self.until = Some(self.until.map_or(until, |known| known.min(until)));
        }
        self.lists[job.request].push((job.slice, list));
    }

    /// What lists that only say more say: about which object, and what. Of several notes about one the oldest counts.
    fn notes(&self, profile: &ApiProfile) -> BTreeMap<String, String> {
        let mut notes = BTreeMap::new();
        let lists = profile.requests.iter().zip(&self.lists);
        for (_, lists) in lists.filter(|(rule, _)| rule.has_notes) {
            let mut whole: Vec<&(usize, List)> = lists
                .iter()
                .filter(|(slice, _)| *slice < self.whole)
                .collect();
            whole.sort_by_key(|(slice, _)| *slice);
            // Newest first in each list.
            for row in whole.iter().flat_map(|(_, list)| list.rows.iter().rev()) {
                if let [(_, about), (_, said), ..] = row.as_slice() {
                    notes.entry(about.clone()).or_insert_with(|| said.clone());
                }
            }
        }
        notes
    }

    /// What a list for each row of another one is asked with, each once.
    fn keys_of(&self, request: usize) -> Vec<(usize, String)> {
        let mut keys: BTreeMap<String, usize> = BTreeMap::new();
        for (slice, list) in self.lists.iter().flatten() {
            for (of, key) in &list.keys {
                if *of == request && *slice < self.whole {
                    let first = keys.entry(key.clone()).or_insert(*slice);
                    *first = (*first).min(*slice);
                }
            }
        }
        keys.into_iter().map(|(key, slice)| (slice, key)).collect()
    }
}

fn login(
    auth: &AuthSpec,
    secrets: &BTreeMap<String, Secret>,
) -> Result<(Login, Option<Mode>), Failure> {
    let wanted = auth.secrets();
    if let Some(left_over) = secrets.keys().find(|key| !wanted.contains(&key.as_str())) {
        return Err(Failure::rejected(format!(
            "{left_over} is not what this processor is asked with"
        ))
        .remedy(format!(
            "give it {}",
            if wanted.is_empty() {
                "no key".to_owned()
            } else {
                wanted.join(" and ")
            }
        )));
    }
    let secret = |key: &str| {
        secrets.get(key).cloned().ok_or_else(|| {
            Failure::rejected(format!("{key} is missing"))
                .why("the processor answers nobody whom it does not know")
                .remedy(format!(
                    "name where it stands: {key} = {{ env = \"…\" }} or {{ file = \"…\" }}"
                ))
        })
    };
    let mode = |prefixes: &Option<Prefixes>, key: &Secret| {
        let prefixes = prefixes.as_ref()?;
        prefixes.mode(|prefix| key.begins_with(prefix))
    };
    Ok(match auth {
        AuthSpec::None => (Login::None, None),
        AuthSpec::Bearer {
            secret: key,
            prefixes,
        } => {
            let key = secret(key)?;
            let mode = mode(prefixes, &key);
            (Login::Bearer(key), mode)
        }
        AuthSpec::Header {
            header,
            secret: key,
            prefixes,
        } => {
            let key = secret(key)?;
            let mode = mode(prefixes, &key);
            (Login::Header(header.clone(), key), mode)
        }
        AuthSpec::Basic {
            user,
            secret: key,
            prefixes,
        } => {
            let user = secret(user)?;
            let mode = mode(prefixes, &user);
            (Login::Basic(user, secret(key)?), mode)
        }
        AuthSpec::Token {
            path,
            user,
            secret: key,
            scope,
        } => {
            let login = Login::Token {
                path: path.clone(),
                client: secret(user)?,
                secret: secret(key)?,
                scope: scope.clone(),
            };
            (login, None)
        }
    })
}

fn manners(profile: &ApiProfile, rules: &ReadRules, access: &Access) -> Manners {
    let http = &profile.http;
    let retry = &http.retry;
    let mut headers = http.headers.clone();
    if let Some(name) = &http.account_header
        && !rules.account.is_empty()
    {
        headers.push((name.clone(), rules.account.clone()));
    }
    let rate = NonZeroU32::new(http.max_rps).unwrap_or(NonZeroU32::MIN);
    Manners {
        rate: access.rate_limit.unwrap_or(rate),
        timeout: duration(http.timeout),
        retries: Retries {
            tries: retry.tries,
            first: Duration::from_millis(retry.base_ms),
            longest: Duration::from_millis(retry.max_ms),
            patience: duration(access.patience.unwrap_or(retry.patience)),
            on: retry.on.clone(),
            veto: retry.veto.clone(),
            force: retry.force.clone(),
        },
        headers,
    }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(u64::try_from(span.0).unwrap_or(0))
}

/// The cells of an object of a list.
fn rows_of(
    profile: &ApiProfile,
    request: usize,
    object: &serde_json::Value,
    key: Option<&str>,
    why: Why,
) -> Vec<Cells> {
    profile.cells(request, object, key, why)
}
