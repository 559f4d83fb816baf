//! Sending: a time limit for each try, few tries, and no URL in any text.
//!
//! Decisions: no redirects, since a channel that moved is a channel to look at. A try that the other side refused for good
//! (4xx but 408 and 429) is not repeated. Certificates are those of the machine.

use std::time::Duration;

use super::Secret;

/// One try may take so long.
const TRY_SECONDS_MAX: u64 = 10;
/// So many tries, with a pause of one and two seconds between them.
const TRIES_MAX: u32 = 3;

/// Sends messages.
pub struct Client {
    inner: reqwest::Client,
    tries: u32,
    patience: Duration,
}

/// What is sent.
pub struct Message<'a> {
    /// Where to.
    pub url: &'a Secret,
    /// The body.
    pub body: String,
    /// `application/json`, `text/plain`.
    pub content_type: &'a str,
    /// Further headers.
    pub headers: Vec<(&'static str, String)>,
    /// `POST` or `PUT`.
    pub method: Method,
}

/// How it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// One more.
    Post,
    /// In place of what is there.
    Put,
}

impl Client {
    /// A client; `is_hurried` gives each message one try of two seconds, for a run that was asked to stop.
    pub fn new(is_hurried: bool) -> Result<Client, String> {
        const HURRIED_SECONDS: u64 = 2;
        // Whoever is first installs it; the cryptography is the same everywhere.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let patience = Duration::from_secs(if is_hurried {
            HURRIED_SECONDS
        } else {
            TRY_SECONDS_MAX
        });
        let inner = reqwest::Client::builder()
            .user_agent(concat!("paysweep/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(patience)
            .timeout(patience)
            .build()
            .map_err(|error| words(&error))?;
        Ok(Client {
            inner,
            tries: if is_hurried { 1 } else { TRIES_MAX },
            patience,
        })
    }

    /// Sends a message; says in words why it did not arrive.
    pub async fn send(&self, message: &Message<'_>) -> Result<(), String> {
        let mut last = String::new();
        for n in 0..self.tries {
            if n > 0 {
                tokio::time::sleep(Duration::from_secs(u64::from(n))).await;
            }
            match self.once(message).await {
                Ok(()) => return Ok(()),
                Err((why, is_final)) => {
                    last = why;
                    if is_final {
                        break;
                    }
                }
            }
        }
        Err(last)
    }

    async fn once(&self, message: &Message<'_>) -> Result<(), (String, bool)> {
        const TIMEOUT: u16 = 408;
        const TOO_MANY: u16 = 429;
        let url = reqwest::Url::parse(message.url.expose())
            .map_err(|_| ("its URL cannot be read".to_owned(), true))?;
        let mut request = match message.method {
            Method::Post => self.inner.post(url),
            Method::Put => self.inner.put(url),
        };
        request = request.header("content-type", message.content_type);
        for (name, value) in &message.headers {
            request = request.header(*name, value);
        }
        let answer = request.body(message.body.clone()).send().await;
        let status = answer
            .map_err(|error| (self.failure(&error), error.is_builder()))?
            .status();
        if status.is_success() {
            return Ok(());
        }
        let is_final = status.is_client_error() && ![TIMEOUT, TOO_MANY].contains(&status.as_u16());
        Err((
            format!("it answered {}", status.as_u16()),
            is_final || status.is_redirection(),
        ))
    }

    fn failure(&self, error: &reqwest::Error) -> String {
        if error.is_timeout() {
            format!("it did not answer within {} s", self.patience.as_secs())
        } else if error.is_connect() {
            format!("it could not be reached: {}", words(error))
        } else {
            words(error)
        }
    }
}

/// Whether a URL can be sent to: `https`, or `http` to this machine. The text says what is wrong and not what it is.
pub fn usable(url: &str) -> Result<(), &'static str> {
    let url = reqwest::Url::parse(url).map_err(|_| "is no URL")?;
    let is_here = match url.host_str() {
        Some("localhost") => true,
        Some(host) => host
            .trim_matches(['[', ']'])
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback()),
        None => return Err("names no host"),
    };
    match url.scheme() {
        "https" => Ok(()),
        "http" if is_here => Ok(()),
        "http" => Err("is not encrypted; write https"),
        _ => Err("is no https URL"),
    }
}

/// Whether a URL holds a user or a password.
pub fn has_password(url: &str) -> bool {
    reqwest::Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some())
}

/// The deepest reason, which names no URL.
fn words(error: &reqwest::Error) -> String {
    let mut deepest: &dyn std::error::Error = error;
    while let Some(cause) = deepest.source() {
        deepest = cause;
    }
    if std::ptr::addr_eq(std::ptr::from_ref(deepest), std::ptr::from_ref(error)) {
        return "the request could not be made".to_owned();
    }
    deepest.to_string()
}
