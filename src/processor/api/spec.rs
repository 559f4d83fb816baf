//! What a profile of kind `api` means, typed so that the reader has no choice left to make.

use std::collections::BTreeMap;

use serde_json::Value;

use super::bounds::{Bound, BoundFormat};
use super::cells::{self, Cells, Column, Told};
use super::page::{PageKind, PageRule};
use super::wire::{
    AccountWire, ApiWire, AuthWire, ForEachWire, HttpWire, LookupWire, PageWire, ParameterWire,
    ReportRunsProfileWire, ReportsProfileWire, RequestWire, RetryWire,
};
use super::{Why, stripe};
use crate::exit::Failure;
use crate::model::operation::Family;
use crate::processor::compile::not_a_profile;
use crate::processor::nearest::nearest;
use crate::processor::profile::{ColumnAt, Profile};
use crate::processor::wire::OneOrMany;
use crate::processor::{Mode, ReadRules};
use crate::time::{Instant, Span};

/// How a processor's API is asked, and how its rows are read.
#[derive(Debug)]
pub struct ApiProfile {
    /// What its rows mean.
    pub rows: Profile,
    /// How it is asked.
    pub http: HttpSpec,
    /// How it knows who asks.
    pub auth: AuthSpec,
    /// The lists that are read, in order.
    pub requests: Vec<Request>,
    /// How one object is asked for by its id.
    pub lookups: Vec<Lookup>,
    /// Numbered reports that are downloaded instead.
    pub reports: Option<Reports>,
    /// Reports that are listed with the stretch they are about, and downloaded instead.
    pub report_runs: Option<ReportRuns>,
    /// Where the processor says whose account is read; `None` = it does not.
    pub account: Option<AccountSpec>,
    /// What the profile calls itself.
    pub name: String,
    form: Form,
}

/// Reports that are numbered without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reports {
    /// Where one is, with `{account}` and `{number}`.
    pub path: String,
}

/// `[report_runs]`: reports that somebody has made, each about a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportRuns {
    /// Index of the list of them. Its columns: `id`, `type`, `from` and `to` (the half-open stretch, with a zone), `created`, and
    /// `files`: one object, or a list of them.
    pub request: usize,
    /// What the types of those begin with that are read.
    pub kind: String,
    /// Words that columns of those have to hold.
    pub when: Vec<(String, Vec<String>)>,
    /// The host of their files; `None` = that of the list.
    pub base: Option<String>,
    /// Where a file is, with `{}` for its id and `{run}` for that of the report.
    pub path: String,
    /// Where a file has its id.
    pub file: String,
}

/// `[account]`: where the processor says whose account is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountSpec {
    /// Which answer says it.
    pub told: AccountTold,
    /// Where in it the account's id stands.
    pub id: String,
}

/// Which answer says whose account is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountTold {
    /// One that is asked for before anything else.
    ByPath(String),
    /// Every answer of a list.
    ByList(usize),
}

/// Who makes cells of objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// The columns that the profile declares.
    Declared,
    /// [`stripe`].
    Stripe,
}

/// `[http]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpSpec {
    /// The processor's own host; a source may name another one.
    pub base: String,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
    /// Header that carries the account of the source, where it names one.
    pub account_header: Option<String>,
    /// The parameter of every list that carries the account of the source, by what the account begins with, the longest
    /// beginning first. Where there is one, the source has to name an account.
    pub account_params: Vec<(String, String)>,
    /// For one request.
    pub timeout: Span,
    /// Requests in a second.
    pub max_rps: u32,
    /// How much new time is read at once: a longer way is caught up with in pieces, each of which stands. `None` = all.
    pub max_window: Option<Span>,
    /// When to try again.
    pub retry: RetrySpec,
}

impl HttpSpec {
    /// The parameter that carries an account; `None` = this profile has none for such a name.
    pub fn account_param(&self, account: &str) -> Option<(String, String)> {
        let mut known = self.account_params.iter();
        known
            .find(|(prefix, _)| account.starts_with(prefix.as_str()))
            .map(|(_, param)| (param.clone(), account.to_owned()))
    }
}

/// `[http.retry]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySpec {
    /// Statuses that may pass.
    pub on: Vec<u16>,
    /// The first pause, in milliseconds.
    pub base_ms: u64,
    /// The longest pause, in milliseconds.
    pub max_ms: u64,
    /// How often a request is sent, at most.
    pub tries: usize,
    /// For one request and all its pauses.
    pub patience: Span,
    /// Header and value that say that trying again is of no use.
    pub veto: Option<(String, String)>,
    /// Header and value that say that it is.
    pub force: Option<(String, String)>,
}

/// `[auth]`. What is secret stands in the source, under the names that are told here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSpec {
    /// Anybody may ask.
    None,
    /// `Authorization: Bearer`.
    Bearer {
        /// Key of the source that holds the secret.
        secret: String,
        /// What keys of either mode begin with.
        prefixes: Option<Prefixes>,
    },
    /// `Authorization: Basic`.
    Basic {
        /// Key of the source that holds the user.
        user: String,
        /// Key of the source that holds the password.
        secret: String,
        /// What users of either mode begin with.
        prefixes: Option<Prefixes>,
    },
    /// A header of its own.
    Header {
        /// Its name.
        header: String,
        /// Key of the source that holds the secret.
        secret: String,
        /// What keys of either mode begin with.
        prefixes: Option<Prefixes>,
    },
    /// A token for client credentials.
    Token {
        /// Where it is fetched.
        path: String,
        /// Key of the source that holds the client's id.
        user: String,
        /// Key of the source that holds its secret.
        secret: String,
        /// A scope that has to be granted; empty = any.
        scope: String,
    },
}

/// What keys of either mode begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// Real money.
    pub live: Vec<String>,
    /// The processor's test mode.
    pub test: Vec<String>,
}

impl Prefixes {
    /// Which mode a key is of; `None` = it does not say.
    pub fn mode(&self, begins_with: impl Fn(&str) -> bool) -> Option<Mode> {
        let any = |list: &[String]| list.iter().any(|prefix| begins_with(prefix));
        match (any(&self.live), any(&self.test)) {
            (true, false) => Some(Mode::Live),
            (false, true) => Some(Mode::Test),
            _ => None,
        }
    }
}

impl AuthSpec {
    /// The keys of a source that hold secrets for this.
    pub fn secrets(&self) -> Vec<&str> {
        match self {
            AuthSpec::None => Vec::new(),
            AuthSpec::Bearer { secret, .. } | AuthSpec::Header { secret, .. } => vec![secret],
            AuthSpec::Basic { user, secret, .. } | AuthSpec::Token { user, secret, .. } => {
                vec![user, secret]
            }
        }
    }
}

/// One list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Its name in the profile.
    pub id: String,
    /// Its path.
    pub path: String,
    /// Parameters of every page.
    pub query: Vec<(String, String)>,
    /// Where an answer has its rows.
    pub items: String,
    /// Whether `{}` is a list without rows.
    has_empty_form: bool,
    /// How it is asked for a stretch of time; `None` = it cannot be.
    pub window: Option<WindowRule>,
    /// How its pages hang together.
    pub page: PageRule,
    /// Once for each row of another list, instead of once for each stretch.
    pub for_each: Option<ForEach>,
    /// Whether its rows say more about rows of other lists, and are no operations. It is asked only where the source wants it.
    pub has_notes: bool,
    /// Whether its rows are operations; else it only leads to other lists.
    has_rows: bool,
    columns: Vec<Column>,
}

/// How a list is asked for a stretch of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowRule {
    /// Lower bound.
    pub from: Bound,
    /// Upper bound.
    pub to: Bound,
    /// Longest stretch of one question; `None` = any.
    pub max_span: Option<Span>,
    /// Where an answer says until when it is complete; empty = it does not.
    pub until: String,
    /// The name of the refusal of a stretch that holds too many rows: it is asked for in halves; empty = there is none.
    pub too_large: String,
    /// How far before a window its rows may still change.
    pub reach: Span,
}

/// A list that is asked for once for each row of another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForEach {
    /// Index of the other list.
    pub request: usize,
    /// Where its rows have what is asked with.
    pub item: String,
    /// Parameter that carries it; empty = it stands in the path as `{}`.
    pub param: String,
    /// Column of each row that was found so; empty = none.
    pub column: String,
    /// Only for rows that hold one of these words at these places.
    pub when: Vec<(String, Vec<String>)>,
}

impl Request {
    /// The rows of an answer; `None` = this is no list. An absent list is not an empty one, unless the processor writes it so.
    pub fn items_of<'v>(&self, answer: &'v Value) -> Option<&'v [Value]> {
        let items = answer.pointer(&self.items).and_then(Value::as_array);
        match items {
            Some(items) => items
                .iter()
                .all(Value::is_object)
                .then_some(items.as_slice()),
            None if self.has_empty_form
                && answer.as_object().is_some_and(serde_json::Map::is_empty) =>
            {
                Some(&[])
            }
            None => None,
        }
    }
}

impl ForEach {
    /// What is asked with for a row of the other list; `None` = nothing is asked for it.
    pub fn of(&self, row: &Value) -> Option<String> {
        let fits = |(pointer, words): &(String, Vec<String>)| {
            words.contains(&row.pointer(pointer).map(cells::cell).unwrap_or_default())
        };
        let key = cells::text(row, &[&self.item]);
        (!key.is_empty() && self.when.iter().all(fits)).then_some(key)
    }
}

/// How one object is asked for by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// What ids of such objects begin with; an empty one fits all.
    pub prefixes: Vec<String>,
    /// Its path, with `{}` for the id.
    pub path: String,
    /// Parameters.
    pub query: Vec<(String, String)>,
    /// Index of the list of which it is a row.
    pub request: usize,
    /// Where an answer has the object; empty = it is the answer.
    pub item: String,
    /// What such objects are; empty = anything.
    pub kinds: Vec<Family>,
}

impl ApiProfile {
    /// Reads a profile. `origin` names it in errors.
    pub fn parse(origin: &str, toml_text: &str) -> Result<ApiProfile, Failure> {
        let damaged = |error: toml::de::Error| not_a_profile(origin, toml_text, &error);
        let wire: ApiWire = toml::from_str(toml_text).map_err(damaged)?;
        if wire.reports.is_some() {
            let whole: ReportsProfileWire = toml::from_str(toml_text).map_err(damaged)?;
            return Compiler { origin }.reports(whole, wire);
        }
        if wire.report_runs.is_some() {
            let whole: ReportRunsProfileWire = toml::from_str(toml_text).map_err(damaged)?;
            return Compiler { origin }.report_runs(whole, wire);
        }
        let rows = Profile::parse_api(origin, toml_text)?;
        Compiler { origin }.api(rows, wire)
    }

    /// The rows that an object of a list is. `found_by` is what the list was asked with, where it is one for each row of
    /// another.
    pub fn cells(
        &self,
        request: usize,
        object: &Value,
        found_by: Option<&str>,
        why: Why,
    ) -> Vec<Cells> {
        let request = &self.requests[request];
        if !request.has_rows {
            return Vec::new();
        }
        let mut rows = match self.form {
            Form::Declared => vec![cells::cells(&request.columns, object)],
            Form::Stripe => stripe::rows(&request.id, object, why),
        };
        for row in &mut rows {
            row.push(("request".to_owned(), request.id.clone()));
            if let (Some(each), Some(key)) = (&request.for_each, found_by)
                && !each.column.is_empty()
            {
                row.push((each.column.clone(), key.to_owned()));
            }
        }
        rows
    }

    /// Writes into a row what notes say about it: what they are about, and what they say.
    pub fn annotate(&self, row: &mut Cells, notes: &BTreeMap<String, String>) {
        if self.form == Form::Stripe {
            stripe::annotate(row, notes);
        }
    }

    /// The time of a row of a list that cannot be asked for a stretch.
    pub fn time_of(&self, request: usize, object: &Value) -> Option<Instant> {
        let field = &self.requests[request].page.field;
        cells::instant(&cells::text(object, &[field]))
    }

    /// The columns that every sheet has.
    pub fn columns(&self, rules: &ReadRules) -> Vec<String> {
        let declared = self
            .rows
            .columns
            .iter()
            .filter_map(|column| match &column.at {
                ColumnAt::Name { name, .. } => Some(name.clone()),
                ColumnAt::Position(_) => None,
            });
        let scope = rules.scope.iter().map(|scope| scope.column.clone());
        declared
            .chain(rules.reference.iter().cloned())
            .chain(scope)
            .collect()
    }

    /// How an object of this id is asked for; `None` = nobody can be asked.
    pub fn lookup(&self, id: &str, family: Family) -> Option<&Lookup> {
        let begins = |lookup: &&Lookup| lookup.prefixes.iter().any(|prefix| id.starts_with(prefix));
        let is_one = |lookup: &&Lookup| lookup.kinds.is_empty() || lookup.kinds.contains(&family);
        self.lookups.iter().filter(begins).find(is_one)
    }
}

struct Compiler<'a> {
    origin: &'a str,
}

impl Compiler<'_> {
    fn refuse(&self, finding: &str) -> Failure {
        Failure::rejected(format!("{}: {finding}", self.origin))
    }

    fn word<T: Copy>(
        &self,
        key: &str,
        written: &str,
        known: &[(&'static str, T)],
    ) -> Result<T, Failure> {
        if let Some((_, value)) = known.iter().find(|(word, _)| *word == written) {
            return Ok(*value);
        }
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let failure = self
            .refuse(&format!("{key} = \"{written}\" is not known"))
            .why(format!(
                "the words known here are \"{}\"",
                words.join("\", \"")
            ));
        Err(match nearest(written, words) {
            Some(meant) => failure.remedy(format!("did you mean \"{meant}\"?")),
            None => failure.remedy("choose one of the known words"),
        })
    }

    fn span(&self, key: &str, written: Option<&str>) -> Result<Option<Span>, Failure> {
        let read = |text: &str| {
            Span::parse(text).ok_or_else(|| {
                self.refuse(&format!("{key} = \"{text}\" is no length of time"))
                    .remedy("write a whole number and one unit: 30s, 90m, 7d")
            })
        };
        written.map(read).transpose()
    }

    fn needed<T>(&self, key: &str, value: Option<T>) -> Result<T, Failure> {
        value.ok_or_else(|| self.refuse(&format!("{key} is missing")))
    }

    fn reports(&self, whole: ReportsProfileWire, wire: ApiWire) -> Result<ApiProfile, Failure> {
        let rows = &whole.reports.rows;
        let text = crate::processor::built_in(rows).ok_or_else(|| {
            self.refuse(&format!(
                "reports.rows: there is no built-in profile \"{rows}\""
            ))
        })?;
        if !whole.reports.path.starts_with('/') || !whole.reports.path.contains("{number}") {
            return Err(self.refuse("reports.path has no \"{number}\" for the number of a report"));
        }
        if whole.profile.kind != "api" {
            return Err(self.refuse("a profile with [reports] is of kind \"api\""));
        }
        Ok(ApiProfile {
            rows: Profile::parse(rows, text)?,
            auth: self.auth(wire.auth)?,
            http: self.http(wire.http)?,
            requests: Vec::new(),
            lookups: Vec::new(),
            account: None,
            report_runs: None,
            reports: Some(Reports {
                path: whole.reports.path,
            }),
            name: whole.profile.name,
            form: Form::Declared,
        })
    }

    fn report_runs(
        &self,
        whole: ReportRunsProfileWire,
        wire: ApiWire,
    ) -> Result<ApiProfile, Failure> {
        let told = whole.report_runs;
        let text = crate::processor::built_in(&told.rows).ok_or_else(|| {
            self.refuse(&format!(
                "report_runs.rows: there is no built-in profile \"{}\"",
                told.rows
            ))
        })?;
        if !told.path.starts_with('/') || !told.path.contains("{}") {
            return Err(self.refuse("report_runs.path holds no \"{}\" for the id of a file"));
        }
        if whole.profile.kind != "api" {
            return Err(self.refuse("a profile with [report_runs] is of kind \"api\""));
        }
        let mut requests: Vec<Request> = Vec::new();
        for request in wire.request {
            let request = self.request(request, &requests, Form::Declared)?;
            requests.push(request);
        }
        Ok(ApiProfile {
            rows: Profile::parse(&told.rows, text)?,
            auth: self.auth(wire.auth)?,
            http: self.http(wire.http)?,
            lookups: Vec::new(),
            reports: None,
            report_runs: Some(ReportRuns {
                request: self.named("report_runs", &told.request, &requests)?,
                kind: told.kind,
                when: told
                    .when
                    .into_iter()
                    .map(|(column, words)| (column, words.0))
                    .collect(),
                base: told.base,
                path: told.path,
                file: told.files,
            }),
            account: match wire.account {
                Some(account) => Some(self.account(account, &requests)?),
                None => None,
            },
            requests,
            name: whole.profile.name,
            form: Form::Declared,
        })
    }

    fn api(&self, rows: Profile, wire: ApiWire) -> Result<ApiProfile, Failure> {
        let form = match wire.http.form.as_deref() {
            None => Form::Declared,
            Some(word) => self.word(
                "http.form",
                word,
                &[("declared", Form::Declared), ("stripe", Form::Stripe)],
            )?,
        };
        let mut requests: Vec<Request> = Vec::new();
        for request in wire.request {
            let request = self.request(request, &requests, form)?;
            requests.push(request);
        }
        if requests.is_empty() {
            return Err(self
                .refuse("there is no [[request]]")
                .remedy("say which lists are read"));
        }
        let lookups = wire
            .lookup
            .into_iter()
            .map(|lookup| self.lookup(lookup, &requests));
        Ok(ApiProfile {
            name: rows.name.clone(),
            rows,
            reports: None,
            report_runs: None,
            account: match wire.account {
                Some(account) => Some(self.account(account, &requests)?),
                None => None,
            },
            auth: self.auth(wire.auth)?,
            lookups: lookups.collect::<Result<_, Failure>>()?,
            requests,
            http: self.http(wire.http)?,
            form,
        })
    }

    fn http(&self, wire: HttpWire) -> Result<HttpSpec, Failure> {
        const TIMEOUT: Span = Span(60_000_000);
        const RATE: u32 = 10;
        let max_rps = wire.max_rps.unwrap_or(RATE);
        if max_rps == 0 {
            return Err(self.refuse("http.max_rps = 0 would ask nothing"));
        }
        let mut account_params: Vec<(String, String)> = wire.account_param.into_iter().collect();
        account_params.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.len()));
        Ok(HttpSpec {
            base: wire.base,
            headers: wire.headers.into_iter().collect(),
            account_header: wire.account_header,
            account_params,
            timeout: self
                .span("http.timeout", wire.timeout.as_deref())?
                .unwrap_or(TIMEOUT),
            max_rps,
            max_window: self.span("http.max_window", wire.max_window.as_deref())?,
            retry: self.retry(wire.retry)?,
        })
    }

    fn retry(&self, wire: RetryWire) -> Result<RetrySpec, Failure> {
        let one = |headers: Option<BTreeMap<String, String>>| {
            headers.and_then(|headers| headers.into_iter().next())
        };
        Ok(RetrySpec {
            on: wire
                .on
                .unwrap_or_else(|| vec![408, 409, 429, 500, 502, 503, 504]),
            base_ms: wire.base_ms.unwrap_or(500),
            max_ms: wire.max_ms.unwrap_or(60_000),
            tries: wire.tries.unwrap_or(8).max(1),
            patience: self
                .span("http.retry.patience", wire.patience.as_deref())?
                .unwrap_or(Span(600_000_000)),
            veto: one(wire.veto_header),
            force: one(wire.force_header),
        })
    }

    fn auth(&self, wire: AuthWire) -> Result<AuthSpec, Failure> {
        let prefixes = wire.require_prefix.map(|prefix| Prefixes {
            live: prefix.live,
            test: prefix.test,
        });
        let secret = || self.needed("auth.secret", wire.secret.clone());
        let user = || self.needed("auth.user", wire.user.clone());
        let known = [
            "none",
            "bearer",
            "basic",
            "header",
            "oauth2_client_credentials",
        ]
        .map(|word| (word, word));
        Ok(match self.word("auth.kind", &wire.kind, &known)? {
            "bearer" => AuthSpec::Bearer {
                secret: secret()?,
                prefixes,
            },
            "basic" => AuthSpec::Basic {
                user: user()?,
                secret: secret()?,
                prefixes,
            },
            "header" => AuthSpec::Header {
                header: self.needed("auth.header", wire.header.clone())?,
                secret: secret()?,
                prefixes,
            },
            "oauth2_client_credentials" => AuthSpec::Token {
                path: self.needed("auth.token_path", wire.token_path.clone())?,
                user: user()?,
                secret: secret()?,
                scope: wire.scope.clone().unwrap_or_default(),
            },
            _ => AuthSpec::None,
        })
    }

    fn request(
        &self,
        wire: RequestWire,
        known: &[Request],
        form: Form,
    ) -> Result<Request, Failure> {
        let name = format!("request {}", wire.id);
        let mut columns = Vec::new();
        for (column, told) in wire.columns {
            let told = told.0.iter().map(|text| Told::parse(text));
            let told = told.collect::<Result<_, String>>();
            columns.push(Column {
                told: told
                    .map_err(|what| self.refuse(&format!("{name}: column {column}: {what}")))?,
                name: column,
            });
        }
        let has_rows = wire.rows.unwrap_or(true);
        if columns.is_empty() && has_rows && form == Form::Declared {
            return Err(self
                .refuse(&format!("{name} names no columns"))
                .remedy("say where each column stands in a row: columns = { id = \"/id\" }"));
        }
        if !wire.path.starts_with('/') {
            return Err(self.refuse(&format!("{name}: the path has to begin with \"/\"")));
        }
        let window = match wire.window {
            None => None,
            Some(window) => Some(WindowRule {
                from: self.bound(&name, window.from)?,
                to: self.bound(&name, window.to)?,
                max_span: self.span("window.max_span", window.max_span.as_deref())?,
                until: window.until.unwrap_or_default(),
                too_large: window.too_large.unwrap_or_default(),
                reach: self
                    .span("window.reach", window.reach.as_deref())?
                    .unwrap_or(Span::ZERO),
            }),
        };
        let for_each = match wire.for_each {
            None => None,
            Some(each) => Some(self.for_each(&name, each, known)?),
        };
        Ok(Request {
            query: query(wire.query),
            items: wire.items,
            has_empty_form: wire.optional_items.unwrap_or(false),
            window,
            page: self.page(&name, wire.page)?,
            for_each,
            has_notes: wire.notes.unwrap_or(false),
            has_rows,
            columns,
            path: wire.path,
            id: wire.id,
        })
    }

    fn for_each(
        &self,
        name: &str,
        wire: ForEachWire,
        known: &[Request],
    ) -> Result<ForEach, Failure> {
        Ok(ForEach {
            request: self.named(name, &wire.request, known)?,
            item: wire.item,
            param: wire.param.unwrap_or_default(),
            column: wire.column.unwrap_or_default(),
            when: wire
                .when
                .into_iter()
                .flatten()
                .map(|(pointer, words)| (pointer, words.0))
                .collect(),
        })
    }

    fn named(&self, name: &str, request: &str, known: &[Request]) -> Result<usize, Failure> {
        known
            .iter()
            .position(|other| other.id == request)
            .ok_or_else(|| {
                self.refuse(&format!(
                    "{name}: there is no request \"{request}\" before it"
                ))
            })
    }

    fn bound(&self, name: &str, wire: ParameterWire) -> Result<Bound, Failure> {
        let format = self.word(
            &format!("{name}: format"),
            &wire.format,
            &BoundFormat::NAMES,
        )?;
        let wanted = if format == BoundFormat::Parts { 3 } else { 1 };
        if wire.param.0.len() != wanted && !wire.param.0.is_empty() {
            return Err(self.refuse(&format!(
                "{name}: {} takes {wanted} parameters",
                wire.format
            )));
        }
        Ok(Bound {
            params: wire.param.0,
            format,
        })
    }

    fn page(&self, name: &str, wire: Option<PageWire>) -> Result<PageRule, Failure> {
        const PAGES_MAX: u64 = 10_000;
        const SIZE: u64 = 100;
        let Some(wire) = wire else {
            return Ok(PageRule {
                kind: PageKind::None,
                size_param: String::new(),
                size: SIZE,
                max_pages: PAGES_MAX,
                field: String::new(),
            });
        };
        let needed = |key: &str, value: &Option<String>| {
            self.needed(&format!("{name}: page.{key}"), value.clone())
        };
        let known = [
            "none",
            "last_id",
            "token",
            "next_url",
            "page_number",
            "offset",
        ]
        .map(|word| (word, word));
        let kind = match self.word(&format!("{name}: page.kind"), &wire.kind, &known)? {
            "last_id" => PageKind::LastId {
                param: needed("param", &wire.param)?,
                id: needed("id", &wire.id)?,
                more: needed("more", &wire.more)?,
            },
            "token" => PageKind::Token {
                param: needed("param", &wire.param)?,
                token: needed("token", &wire.token)?,
            },
            "next_url" => PageKind::NextUrl {
                link: needed("token", &wire.token)?,
            },
            "page_number" => PageKind::PageNumber {
                param: needed("param", &wire.param)?,
                total_pages: needed("total_pages", &wire.total_pages)?,
            },
            "offset" => PageKind::Offset {
                param: needed("param", &wire.param)?,
            },
            _ => PageKind::None,
        };
        Ok(PageRule {
            kind,
            size_param: wire.size_param.unwrap_or_default(),
            size: wire.size.unwrap_or(SIZE).max(1),
            max_pages: wire.max_pages.unwrap_or(PAGES_MAX),
            field: wire.field.unwrap_or_default(),
        })
    }

    fn account(&self, wire: AccountWire, known: &[Request]) -> Result<AccountSpec, Failure> {
        let told = match (wire.path, wire.request) {
            (Some(path), None) if path.starts_with('/') => AccountTold::ByPath(path),
            (None, Some(request)) => AccountTold::ByList(self.named("account", &request, known)?),
            _ => {
                return Err(self
                    .refuse("[account] takes a path that begins with \"/\", or a request")
                    .remedy("say which answer tells whose account is read"));
            }
        };
        Ok(AccountSpec { told, id: wire.id })
    }

    fn lookup(&self, wire: LookupWire, known: &[Request]) -> Result<Lookup, Failure> {
        if !wire.path.starts_with('/') || !wire.path.contains("{}") {
            return Err(self.refuse(&format!(
                "lookup {}: the path holds no \"{{}}\" for the id",
                wire.path
            )));
        }
        let mut kinds = Vec::new();
        for word in wire.kinds.unwrap_or_default() {
            let known: Vec<(&str, Family)> = Family::ALL
                .iter()
                .map(|kind| (kind.as_str(), *kind))
                .collect();
            kinds.push(self.word("lookup.kinds", &word, &known)?);
        }
        Ok(Lookup {
            kinds,
            prefixes: wire.prefix.0,
            request: self.named("lookup", &wire.request, known)?,
            path: wire.path,
            query: query(wire.query),
            item: wire.item.unwrap_or_default(),
        })
    }
}

fn query(wire: BTreeMap<String, OneOrMany<String>>) -> Vec<(String, String)> {
    let pairs = wire
        .into_iter()
        .flat_map(|(name, values)| values.0.into_iter().map(move |value| (name.clone(), value)));
    pairs.collect()
}
