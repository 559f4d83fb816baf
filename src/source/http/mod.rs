//! Asking a processor over HTTP: one client, pinned to one host. Knows no processor.
//!
//! | module | holds |
//! |---|---|
//! | [`base`] | the one place that is asked, and which links lead to it |
//! | [`secret`] | a key that shows itself nowhere |
//! | [`traffic`] | how much was asked |
//! | [`trouble`] | what can go wrong, and the exit it leads to |
//! | [`wait`] | when to try again, and for how long |
//!
//! Decisions: only GET, but for the token of an account that has no key. No redirect is followed: a key goes to the host
//! that was configured and nowhere else. Nothing that a processor answers stands in an error text, since it may repeat what
//! it was sent. A body has an end: so many bytes, and so much time.

pub mod base;
pub mod secret;
pub mod traffic;
pub mod trouble;
pub mod wait;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, Response, Url, redirect};
use serde_json::Value;

use crate::exit::Failure;

pub use base::Base;
pub use secret::Secret;
pub use traffic::Traffic;
pub use trouble::{Cause, Trouble};
pub use wait::Retries;

/// Most bytes of one answer: a page of 1000 rows of 16 kB each, twice.
const BODY_BYTES_MAX: usize = 32 << 20;
/// Most bytes of a file: some two million rows of a report.
const FILE_BYTES_MAX: usize = 512 << 20;
/// Until a connection stands.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// How a processor knows who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Login {
    /// Anybody may ask.
    None,
    /// `Authorization: Bearer KEY`.
    Bearer(Secret),
    /// `Authorization: Basic`, of a user and a password.
    Basic(Secret, Secret),
    /// The key in a header of this name.
    Header(String, Secret),
    /// A token, fetched with a user and a password from this path; no key is kept by us.
    Token {
        /// Where the token is fetched, on the same host.
        path: String,
        /// The id of the client.
        client: Secret,
        /// Its secret.
        secret: Secret,
        /// A word that the granted scope has to hold; empty = any scope will do.
        scope: String,
    },
}

/// How many requests a command may still send, over all of its sources.
#[derive(Debug)]
pub struct Budget {
    limit: Option<u64>,
    used: AtomicU64,
}

impl Budget {
    /// At most so many; `None` = any number.
    pub fn new(limit: Option<u64>) -> Budget {
        Budget {
            limit,
            used: AtomicU64::new(0),
        }
    }

    /// One more, unless that is too many.
    fn take(&self) -> bool {
        let used = self.used.fetch_add(1, Ordering::Relaxed);
        let is_left = self.limit.is_none_or(|limit| used < limit);
        if !is_left {
            self.used.fetch_sub(1, Ordering::Relaxed);
        }
        is_left
    }
}

/// How a processor is asked.
#[derive(Clone, Debug)]
pub struct Manners {
    /// Requests in a second, at most.
    pub rate: NonZeroU32,
    /// For one request, its answer included.
    pub timeout: Duration,
    /// When to try again.
    pub retries: Retries,
    /// Headers of every request.
    pub headers: Vec<(String, String)>,
}

/// A client for one account of one processor.
pub struct Http {
    client: Client,
    base: Base,
    login: Login,
    manners: Manners,
    limiter: DefaultDirectRateLimiter,
    traffic: Arc<Traffic>,
    token: tokio::sync::Mutex<Option<HeaderValue>>,
    /// Whether a token that was refused has been fetched anew: once is enough.
    is_renewed: AtomicBool,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// As people read it: `GET /v1/charges, page 2`. Holds no value of the query.
    pub label: String,
    /// Where to.
    pub to: To,
    /// The query, in order; names may repeat.
    pub query: Vec<(String, String)>,
}

/// Where a question goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// A path of the pinned host.
    Path(String),
    /// A link that the processor gave.
    Link(String),
}

/// In what form an answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Want {
    Json,
    File,
}

/// An answer that is whole.
#[derive(Debug)]
pub struct Answer {
    /// What it says; null where a file was asked for.
    pub json: Value,
    /// The file that was asked for.
    pub file: Vec<u8>,
    /// How long it was.
    pub bytes: u64,
    /// The processor's clock, where it told it.
    pub date: Option<crate::time::Instant>,
}

impl Http {
    /// A client. Fails with exit 2 where a header or a key cannot be one.
    pub fn new(
        base: Base,
        login: Login,
        manners: Manners,
        traffic: Arc<Traffic>,
    ) -> Result<Http, Failure> {
        // Another part of the program may have chosen the same already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        for (name, value) in &manners.headers {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Failure::rejected(format!("{name:?} is no name of a header")))?;
            let value = HeaderValue::from_str(value).map_err(|_| {
                Failure::rejected(format!("the header {name} cannot hold its value"))
            })?;
            headers.insert(name, value);
        }
        if let Some((name, value)) = login_header(&login)? {
            headers.insert(name, value);
        }
        let mut builder = Client::builder()
            .default_headers(headers)
            .user_agent(concat!("paysweep/", env!("CARGO_PKG_VERSION")))
            .https_only(!base.is_loopback())
            .redirect(redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(manners.timeout);
        if base.is_loopback() {
            // Plain http stays on this machine, whatever proxy the environment names.
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| {
            Failure::rejected("no HTTP client could be made")
                .why(error.without_url().to_string())
                .remedy("check the certificates of the machine")
        })?;
        Ok(Http {
            client,
            base,
            login,
            limiter: RateLimiter::direct(Quota::per_second(manners.rate)),
            manners,
            traffic,
            token: tokio::sync::Mutex::new(None),
            is_renewed: AtomicBool::new(false),
        })
    }

    /// How much was asked so far.
    pub fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    /// The host that is asked.
    pub fn host(&self) -> String {
        self.base.host()
    }

    /// Asks until there is a whole answer, or no hope for one.
    pub async fn get(&self, ask: &Ask, budget: &Budget) -> Result<Answer, Trouble> {
        self.asked(ask, budget, Want::Json).await
    }

    /// The same for a file, of whatever form.
    pub async fn download(&self, ask: &Ask, budget: &Budget) -> Result<Vec<u8>, Trouble> {
        Ok(self.asked(ask, budget, Want::File).await?.file)
    }

    async fn asked(&self, ask: &Ask, budget: &Budget, want: Want) -> Result<Answer, Trouble> {
        let url = match &ask.to {
            To::Path(path) => self.base.at(path),
            To::Link(link) => self.base.linked(link),
        };
        let mut url = url.map_err(|what| Trouble::new(Cause::Foreign, &ask.label, &what))?;
        if !ask.query.is_empty() {
            url.query_pairs_mut()
                .extend_pairs(ask.query.iter().map(|(name, value)| (name, value)));
        }
        let retries = &self.manners.retries;
        let started = tokio::time::Instant::now();
        let attempt = || self.once(&url, &ask.label, budget, want);
        attempt
            .retry(
                ExponentialBuilder::default()
                    .with_min_delay(retries.first)
                    .with_max_delay(retries.longest)
                    .with_max_times(retries.tries.saturating_sub(1))
                    .with_jitter(),
            )
            .sleep(tokio::time::sleep)
            .when(|trouble: &Trouble| trouble.may_pass)
            .adjust(|trouble, delay| retries.next(started.elapsed(), trouble.retry_after, delay?))
            .notify(|trouble, delay| {
                self.traffic.tried_again();
                tracing::info!("{trouble}; trying again in {} ms", delay.as_millis());
            })
            .await
    }

    async fn once(
        &self,
        url: &Url,
        label: &str,
        budget: &Budget,
        want: Want,
    ) -> Result<Answer, Trouble> {
        let mut request = self.client.get(url.clone());
        if want == Want::File {
            request = request.header(ACCEPT, "text/csv, */*");
        }
        if let Some(token) = self.token(label, budget).await? {
            request = request.header(AUTHORIZATION, token);
        }
        let answered = self.send(request, label, budget).await?;
        if answered.status().as_u16() == 401 {
            // A token may have run out: the next try fetches a new one.
            if self.token.lock().await.take().is_some() {
                let mut trouble = Trouble::of_status(label, 401, None);
                trouble.may_pass = !self.is_renewed.swap(true, Ordering::Relaxed);
                return Err(trouble);
            }
        }
        self.whole(answered, label, want).await
    }

    async fn send(
        &self,
        request: reqwest::RequestBuilder,
        label: &str,
        budget: &Budget,
    ) -> Result<Response, Trouble> {
        if !budget.take() {
            let what = "--max-requests: no further request may be sent".to_owned();
            return Err(Trouble::new(Cause::Budget, label, &what));
        }
        self.limiter.until_ready().await;
        self.traffic.sent();
        request
            .send()
            .await
            .map_err(|error| Trouble::of_network(label, error))
    }

    /// The answer, once its last byte is there.
    async fn whole(
        &self,
        mut response: Response,
        label: &str,
        want: Want,
    ) -> Result<Answer, Trouble> {
        let headers = response.headers();
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let date = text("date").and_then(crate::time::parse_http_date);
        let retries = &self.manners.retries;
        let status = response.status().as_u16();
        self.traffic.answered(status);
        if status != 200 {
            let location = text("location").map(|link| self.base.linked(link).is_ok());
            let mut trouble = Trouble::of_status(label, status, location);
            trouble.may_pass = retries.may_pass(status, |name| text(name).map(str::to_owned));
            trouble.retry_after = text("retry-after").and_then(|value| wait::after(value, date));
            trouble.name = error_name(response).await;
            return Err(trouble);
        }
        let damaged = |what: &str| Trouble::new(Cause::Body, label, what);
        let is_json = headers
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .is_some_and(|kind| kind.to_ascii_lowercase().contains("json"));
        if want == Want::Json && !is_json {
            return Err(damaged("the answer is not JSON by its content type"));
        }
        let max = match want {
            Want::Json => BODY_BYTES_MAX,
            Want::File => FILE_BYTES_MAX,
        };
        let mut body: Vec<u8> = Vec::new();
        loop {
            match response.chunk().await {
                Ok(Some(chunk)) if body.len() + chunk.len() <= max => {
                    body.extend_from_slice(&chunk);
                }
                Ok(Some(_)) => {
                    let mut trouble =
                        damaged(&format!("the answer is larger than {} MB", max >> 20));
                    trouble.may_pass = false;
                    return Err(trouble);
                }
                Ok(None) => break,
                Err(error) => return Err(Trouble::of_network(label, error)),
            }
        }
        let bytes = body.len() as u64;
        let (json, file) = match want {
            Want::File => (Value::Null, body),
            Want::Json => {
                let json = serde_json::from_slice(&body);
                let json = json.map_err(|_| damaged("the answer is no whole JSON document"))?;
                (json, Vec::new())
            }
        };
        Ok(Answer {
            json,
            file,
            bytes,
            date,
        })
    }

    /// The token of an account that asks by one.
    async fn token(&self, label: &str, budget: &Budget) -> Result<Option<HeaderValue>, Trouble> {
        let Login::Token {
            path,
            client,
            secret,
            scope,
        } = &self.login
        else {
            return Ok(None);
        };
        let mut held = self.token.lock().await;
        if let Some(token) = &*held {
            return Ok(Some(token.clone()));
        }
        let label = &format!("the token for {label}");
        let url = self
            .base
            .at(path)
            .map_err(|what| Trouble::new(Cause::Foreign, label, &what))?;
        let request = self
            .client
            .post(url)
            .basic_auth(client.reveal(), Some(secret.reveal()))
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body("grant_type=client_credentials");
        let answered = self.send(request, label, budget).await?;
        let answer = self.whole(answered, label, Want::Json).await?;
        let granted = answer.json.get("scope").and_then(Value::as_str);
        if !scope.is_empty()
            && !granted.is_some_and(|granted| granted.split(' ').any(|word| word == scope))
        {
            let what = format!("the account may not ask for this: scope {scope} was not granted");
            return Err(Trouble::new(Cause::Denied, label, &what));
        }
        let token = answer.json.get("access_token").and_then(Value::as_str);
        let token = token.and_then(|token| sensitive(&format!("Bearer {token}")));
        let token = token.ok_or_else(|| {
            Trouble::new(Cause::Body, label, "there is no access_token in the answer")
        })?;
        *held = Some(token.clone());
        Ok(Some(token))
    }
}

/// The name of a refusal, where the answer tells one in capitals.
async fn error_name(mut response: Response) -> String {
    const ERROR_BYTES_MAX: usize = 64 << 10;
    let mut body = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        body.extend_from_slice(&chunk);
        if body.len() > ERROR_BYTES_MAX {
            return String::new();
        }
    }
    let error: Value = serde_json::from_slice(&body).unwrap_or_default();
    let name = error
        .get("name")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    if is_name {
        name.to_owned()
    } else {
        String::new()
    }
}

fn login_header(login: &Login) -> Result<Option<(HeaderName, HeaderValue)>, Failure> {
    let no_key = || {
        Failure::rejected(
            "the key cannot stand in a header: it holds a line break or another control character",
        )
    };
    let header = match login {
        Login::None | Login::Token { .. } => return Ok(None),
        Login::Bearer(key) => (
            AUTHORIZATION,
            sensitive(&format!("Bearer {}", key.reveal())),
        ),
        Login::Basic(user, password) => {
            let pair = format!("{}:{}", user.reveal(), password.reveal());
            (
                AUTHORIZATION,
                sensitive(&format!("Basic {}", base::base64(pair.as_bytes()))),
            )
        }
        Login::Header(name, key) => {
            let name = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| Failure::rejected(format!("{name:?} is no name of a header")))?;
            (name, sensitive(key.reveal()))
        }
    };
    Ok(Some((header.0, header.1.ok_or_else(no_key)?)))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
