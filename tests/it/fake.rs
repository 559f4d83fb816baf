//! A fake processor on this machine: the lists of Stripe as they behave, or any other answers, with faults on request.
//!
//! What is imitated: newest first; `limit` from 1 to 100 and else 400; `created[gt|gte|lt|lte]` in whole seconds, with ties in a
//! fixed order; `starting_after` and `ending_before` exclusive, and 400 for a row that does not exist; `expand[]`; references
//! as ids or objects; 401 without the key. It repeats the key in its error texts, as a processor may.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::{Value, json};

/// A key as the fake expects it. It must not occur in anything that paysweep writes.
pub(crate) const KEY: &str = "sk_live_canary7f3a9c0e5b";

/// One question, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: Vec<(String, String)>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn of(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }
}

/// What goes wrong with an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// A status with a JSON body that repeats the key.
    Status(u16),
    /// 429 with this `Retry-After`.
    RetryAfter(&'static str),
    /// 500 with `Stripe-Should-Retry: false`.
    Veto,
    /// The connection ends before an answer.
    Hangup,
    /// The body ends before its declared length.
    CutBody,
    /// A chunked body without its end.
    CutChunks,
    /// One byte, and then nothing for longer than anybody waits.
    Slow,
    /// Half of the JSON, with the length of the half.
    HalfJson,
    /// Not JSON.
    NotJson,
    /// A page for people, with status 200.
    Html,
    /// JSON, declared as text.
    WrongType,
    /// Nothing.
    Empty,
    /// An error object, with status 200.
    ErrorObject,
    /// The list is null.
    NullList,
    /// The rows of the list are no objects.
    Numbers,
    /// Nobody says whether more follows.
    NoMore,
    /// More follows, and there are no rows.
    MoreOfNothing,
    /// The first page again, whatever was asked for.
    FirstAgain,
    /// Elsewhere, please.
    RedirectAway,
    /// Elsewhere on the same host.
    RedirectHere,
}

type Handler = Box<dyn Fn(&Asked, &Shelf) -> (u16, Value) + Send>;

/// What the fake knows.
#[derive(Default)]
pub(crate) struct Shelf {
    /// Lists by their path.
    pub(crate) lists: BTreeMap<String, Vec<Value>>,
    /// Rows that appear once so many requests were answered.
    arrivals: Vec<(usize, String, Value)>,
    /// Which request of which path goes wrong, and how often.
    faults: Vec<Planned>,
    /// From which instant on the pages of a path go wrong.
    broken_from: Option<(String, i64, Fault)>,
    /// Whose account it is; null = nobody is told.
    pub(crate) account: Value,
    /// Everything that was asked.
    pub(crate) asked: Vec<Asked>,
    /// How often a path was asked for a page that was not asked for before.
    pages: BTreeMap<String, Vec<Vec<(String, String)>>>,
    /// Whether a key is asked for.
    is_open: bool,
}

struct Planned {
    path: String,
    page: usize,
    fault: Fault,
    left: usize,
}

/// A running fake.
pub(crate) struct Fake {
    port: u16,
    shelf: Arc<Mutex<Shelf>>,
}

impl Fake {
    /// One that answers as Stripe does.
    pub(crate) fn stripe() -> Fake {
        Fake::with(Box::new(stripe))
    }

    /// One that answers like this.
    pub(crate) fn with(handler: Handler) -> Fake {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shelf = Arc::new(Mutex::new(Shelf::default()));
        let shared = Arc::clone(&shelf);
        let handler = Arc::new(Mutex::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), shelf, handler) =
                    (stream, Arc::clone(&shared), Arc::clone(&handler))
                else {
                    return;
                };
                std::thread::spawn(move || serve(stream, &shelf, &handler));
            }
        });
        Fake { port, shelf }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}:{}", Ipv4Addr::LOCALHOST, self.port)
    }

    /// What it knows.
    pub(crate) fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().expect("nobody panicked")
    }

    /// Puts rows into a list.
    pub(crate) fn put(&self, path: &str, rows: impl IntoIterator<Item = Value>) {
        self.shelf()
            .lists
            .entry(path.to_owned())
            .or_default()
            .extend(rows);
    }

    /// A row appears once so many requests were answered.
    pub(crate) fn arrives(&self, after: usize, path: &str, row: Value) {
        let mut shelf = self.shelf();
        let after = shelf.asked.len() + after;
        shelf.arrivals.push((after, path.to_owned(), row));
    }

    /// A page of a path goes wrong so many times.
    pub(crate) fn fails(&self, path: &str, page: usize, fault: Fault, times: usize) {
        self.shelf().faults.push(Planned {
            path: path.to_owned(),
            page,
            fault,
            left: times,
        });
    }

    /// Every page of a path that is asked for from an instant on goes wrong.
    pub(crate) fn fails_from(&self, path: &str, from: i64, fault: Fault) {
        self.shelf().broken_from = Some((path.to_owned(), from, fault));
    }

    /// Everything is in order from now on.
    pub(crate) fn heals(&self) {
        self.shelf().faults.clear();
        self.shelf().broken_from = None;
    }

    /// Anybody may ask.
    pub(crate) fn open(self) -> Fake {
        self.shelf().is_open = true;
        self
    }
}

fn serve(mut stream: TcpStream, shelf: &Mutex<Shelf>, handler: &Mutex<Handler>) {
    stream
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a timeout");
    let Some(asked) = read(&mut stream) else {
        return;
    };
    let (fault, (status, body), first) = {
        let mut shelf = shelf.lock().expect("nobody panicked");
        let count = shelf.asked.len();
        let (here, later): (Vec<_>, Vec<_>) = std::mem::take(&mut shelf.arrivals)
            .into_iter()
            .partition(|(after, _, _)| *after <= count);
        shelf.arrivals = later;
        for (_, path, row) in here {
            shelf.lists.entry(path).or_default().push(row);
        }
        shelf.asked.push(asked.clone());
        let pages = shelf.pages.entry(asked.path.clone()).or_default();
        let page = match pages.iter().position(|known| *known == asked.query) {
            Some(page) => page + 1,
            None => {
                pages.push(asked.query.clone());
                pages.len()
            }
        };
        let fault = shelf
            .faults
            .iter_mut()
            .find(|planned| planned.path == asked.path && planned.page == page && planned.left > 0)
            .map(|planned| {
                planned.left -= 1;
                planned.fault
            });
        let later = shelf.broken_from.as_ref().filter(|(path, from, _)| {
            let asked_from = asked
                .of("created[gte]")
                .and_then(|at| at.parse::<i64>().ok());
            *path == asked.path && asked_from.is_some_and(|at| at >= *from)
        });
        let fault = fault.or(later.map(|(_, _, fault)| *fault));
        let handler = handler.lock().expect("nobody panicked");
        let is_known = shelf.is_open || is_known(&asked);
        let answer = if is_known {
            handler(&asked, &shelf)
        } else {
            (401, repeated(&asked))
        };
        let mut first = asked.clone();
        first.query.retain(|(name, _)| name != "starting_after");
        let first = handler(&first, &shelf).1;
        (fault, answer, first)
    };
    let _ = answer(&mut stream, &asked, fault, status, &body, &first);
}

fn is_known(asked: &Asked) -> bool {
    asked.header("authorization") == Some(&format!("Bearer {KEY}"))
}

/// An error that repeats what it was sent.
fn repeated(asked: &Asked) -> Value {
    let sent = asked.header("authorization").unwrap_or_default();
    json!({"error": {"type": "invalid_request_error", "message": format!("no: {sent}"), "param": KEY}})
}

fn answer(
    stream: &mut TcpStream,
    asked: &Asked,
    fault: Option<Fault>,
    status: u16,
    body: &Value,
    first: &Value,
) -> std::io::Result<()> {
    // Text is a file.
    let (whole, json) = match body {
        Value::String(file) => (file.clone(), "text/csv"),
        other => (other.to_string(), "application/json"),
    };
    let mut say = |status: u16, kind: &str, more: &str, body: &str, length: usize| {
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nDate: Tue, 10 Mar 2026 12:00:00 GMT\r\n{more}Connection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())?;
        stream.flush()
    };
    let plain = |body: &str| (body.to_owned(), body.len());
    let error = repeated(asked).to_string();
    match fault {
        None => say(status, json, "", &whole, whole.len()),
        Some(Fault::Status(status)) => say(status, json, "", &error, error.len()),
        Some(Fault::RetryAfter(value)) => say(
            429,
            json,
            &format!("Retry-After: {value}\r\n"),
            &error,
            error.len(),
        ),
        Some(Fault::Veto) => say(
            500,
            json,
            "Stripe-Should-Retry: false\r\n",
            &error,
            error.len(),
        ),
        Some(Fault::Hangup) => stream.shutdown(Shutdown::Both),
        Some(Fault::CutBody) => say(200, json, "", &whole[..whole.len() / 2], whole.len()),
        Some(Fault::CutChunks) => {
            let half = whole.len() / 2;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {json}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n{half:x}\r\n"
            );
            stream.write_all(head.as_bytes())?;
            stream.write_all(&whole.as_bytes()[..half])?;
            stream.write_all(b"\r\n")
        }
        Some(Fault::Slow) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {json}\r\nContent-Length: {}\r\n\r\n{{",
                whole.len()
            );
            stream.write_all(head.as_bytes())?;
            stream.flush()?;
            std::thread::sleep(Duration::from_millis(1500));
            stream.shutdown(Shutdown::Both)
        }
        Some(Fault::HalfJson) => {
            let half = &whole[..whole.len() / 2];
            say(200, json, "", half, half.len())
        }
        Some(fault) => {
            let (status, kind, more, (body, length)) = match fault {
                Fault::NotJson => (200, json, String::new(), plain("{'data': []}")),
                Fault::Html => (
                    200,
                    "text/html",
                    String::new(),
                    plain("<html>sign in</html>"),
                ),
                Fault::WrongType => (200, "text/plain", String::new(), plain(&whole)),
                Fault::Empty => (200, json, String::new(), plain("")),
                Fault::ErrorObject => (200, json, String::new(), plain(&error)),
                Fault::NullList => (
                    200,
                    json,
                    String::new(),
                    plain("{\"data\":null,\"has_more\":false}"),
                ),
                Fault::Numbers => (
                    200,
                    json,
                    String::new(),
                    plain("{\"data\":[1,2],\"has_more\":false}"),
                ),
                Fault::NoMore => {
                    let mut body = body.clone();
                    body.as_object_mut().map(|body| body.remove("has_more"));
                    (200, json, String::new(), plain(&body.to_string()))
                }
                Fault::MoreOfNothing => (
                    200,
                    json,
                    String::new(),
                    plain("{\"data\":[],\"has_more\":true}"),
                ),
                Fault::FirstAgain => {
                    let mut first = first.clone();
                    first["has_more"] = json!(true);
                    (200, json, String::new(), plain(&first.to_string()))
                }
                Fault::RedirectAway => {
                    let more = "Location: http://192.0.2.1/v1/charges\r\n".to_owned();
                    (302, json, more, plain("{}"))
                }
                Fault::RedirectHere => (
                    301,
                    json,
                    "Location: /v2/charges\r\n".to_owned(),
                    plain("{}"),
                ),
                other => unreachable!("{other:?} was answered"),
            };
            say(status, kind, &more, &body, length)
        }
    }
}

fn read(stream: &mut TcpStream) -> Option<Asked> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    let end = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break at;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?);
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        .and_then(|(_, value)| value.parse::<usize>().ok())
        .unwrap_or(0);
    let mut body = bytes[end + 4..].to_vec();
    while body.len() < length {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => body.extend_from_slice(&buffer[..count]),
        }
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let query = query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
    Some(Asked {
        method,
        path: path.to_owned(),
        query: query.collect(),
        headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let digits = [rest.next().expect("a digit"), rest.next().expect("a digit")];
                let digits = std::str::from_utf8(&digits).expect("digits").to_owned();
                bytes.push(u8::from_str_radix(&digits, 16).expect("a number"));
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).expect("UTF-8")
}

/// A list or an object, as Stripe answers.
pub(crate) fn stripe(asked: &Asked, shelf: &Shelf) -> (u16, Value) {
    if asked.method != "GET" {
        return (
            405,
            json!({"error": {"message": "only reading was expected"}}),
        );
    }
    let expand: Vec<&str> = asked
        .query
        .iter()
        .filter(|(name, _)| name == "expand[]")
        .map(|(_, path)| path.as_str())
        .collect();
    if let Some(rows) = shelf.lists.get(&asked.path) {
        return list(asked, rows, &expand, shelf);
    }
    let known = [
        "balance_transactions",
        "charges",
        "payment_intents",
        "refunds",
        "disputes",
        "payouts",
    ];
    if known.iter().any(|name| asked.path == format!("/v1/{name}")) {
        return list(asked, &[], &expand, shelf);
    }
    if asked.path == "/v1/account" && !shelf.account.is_null() {
        return (200, shelf.account.clone());
    }
    let id = asked.path.rsplit('/').next().unwrap_or_default();
    match object(shelf, id) {
        Some(found) if asked.path.matches('/').count() == 3 => {
            let mut found = found.clone();
            for path in expand {
                expanded(&mut found, path, shelf);
            }
            (200, public(found))
        }
        _ => (404, repeated(asked)),
    }
}

fn list(asked: &Asked, rows: &[Value], expand: &[&str], shelf: &Shelf) -> (u16, Value) {
    let limit = match asked.of("limit").map(str::parse::<usize>) {
        None => 10,
        Some(Ok(limit)) if (1..=100).contains(&limit) => limit,
        Some(_) => return (400, repeated(asked)),
    };
    let known = [
        "limit",
        "starting_after",
        "ending_before",
        "expand[]",
        "payout",
        "types[]",
        "created[gt]",
        "created[gte]",
        "created[lt]",
        "created[lte]",
    ];
    if asked
        .query
        .iter()
        .any(|(name, _)| !known.contains(&name.as_str()))
    {
        return (400, repeated(asked));
    }
    let bound = |name: &str| {
        asked
            .of(name)
            .map(|text| text.parse::<i64>().expect("whole seconds"))
    };
    let types: Vec<&str> = asked
        .query
        .iter()
        .filter(|(name, _)| name == "types[]")
        .map(|(_, kind)| kind.as_str())
        .collect();
    let mut found: Vec<&Value> = rows
        .iter()
        .filter(|row| {
            let created = row["created"].as_i64().expect("a time");
            bound("created[gt]").is_none_or(|at| created > at)
                && bound("created[gte]").is_none_or(|at| created >= at)
                && bound("created[lt]").is_none_or(|at| created < at)
                && bound("created[lte]").is_none_or(|at| created <= at)
                && asked
                    .of("payout")
                    .is_none_or(|payout| row["_payout"] == payout)
                && (types.is_empty()
                    || row["type"]
                        .as_str()
                        .is_some_and(|kind| types.contains(&kind)))
        })
        .collect();
    // Newest first; of one second, those that came later first.
    found.reverse();
    found.sort_by_key(|row| -row["created"].as_i64().expect("a time"));
    let place = |id: &str| found.iter().position(|row| row["id"] == id);
    let (begin, end) = match (asked.of("starting_after"), asked.of("ending_before")) {
        (Some(id), None) => match place(id) {
            Some(at) => (at + 1, found.len()),
            None => return (400, repeated(asked)),
        },
        (None, Some(id)) => match place(id) {
            Some(at) => (0, at),
            None => return (400, repeated(asked)),
        },
        (None, None) => (0, found.len()),
        (Some(_), Some(_)) => return (400, repeated(asked)),
    };
    let page: Vec<Value> = found[begin..end]
        .iter()
        .take(limit)
        .map(|row| {
            let mut row = (*row).clone();
            for path in expand {
                if let Some(path) = path.strip_prefix("data.") {
                    expanded(&mut row, path, shelf);
                }
            }
            public(row)
        })
        .collect();
    let has_more = end - begin > limit;
    (
        200,
        json!({"object": "list", "url": asked.path, "has_more": has_more, "data": page}),
    )
}

fn object<'s>(shelf: &'s Shelf, id: &str) -> Option<&'s Value> {
    shelf.lists.values().flatten().find(|row| row["id"] == id)
}

/// Puts objects in the place of their ids.
fn expanded(row: &mut Value, path: &str, shelf: &Shelf) {
    let (name, rest) = path.split_once('.').unwrap_or((path, ""));
    let Some(value) = row.get_mut(name) else {
        return;
    };
    if let Some(found) = value.as_str().and_then(|id| object(shelf, id)) {
        *value = public(found.clone());
    }
    if !rest.is_empty() && value.is_object() {
        expanded(value, rest, shelf);
    }
}

/// Without what only the fake knows.
fn public(mut row: Value) -> Value {
    if let Some(row) = row.as_object_mut() {
        row.retain(|name, _| !name.starts_with('_'));
    }
    row
}
