//! Who is told of a run beside its report: the channels of `[notify]`.
//!
//! Only a run that writes has them: [`Channels::none`] is what `diff` and a dry run get, and it cannot send. The state of
//! the last run comes from the store, so that a channel hears of changes and not of the same night after night.

use std::time::Duration;

use crate::exit::{Exit, Failure};
use crate::model::run::{Basis, Window};
use crate::notify::http::{Client, Message, Method};
use crate::notify::notice::{Before, Notice};
use crate::notify::{Channel, Kind, Secret, ping, slack, webhook};
use crate::report::{
    Accounting, Carried, Delivery, DeliveryStatus, Outcome, OutcomeName, Reason, RunInfo,
    RunReport, Summary, json,
};
use crate::settings::Settings;
use crate::store::contract::{Outbox, Store};
use crate::time::{Instant, Zone};

use super::outbox;

/// So many runs back a report is looked for.
const RUNS_BACK: u32 = 20;
/// All messages of one moment together may take so long: a run holds its sources meanwhile.
const PATIENCE: Duration = Duration::from_secs(30);
/// The same when somebody asked the run to stop.
const PATIENCE_HURRIED: Duration = Duration::from_secs(3);

/// The channels of a run.
pub(crate) struct Channels<'a> {
    channels: &'a [Channel],
    is_told: bool,
}

impl<'a> Channels<'a> {
    /// Those of the configuration, for a run that writes.
    pub(crate) fn of(settings: &'a Settings) -> Channels<'a> {
        Channels {
            channels: &settings.channels,
            is_told: false,
        }
    }

    /// None: for whatever writes nothing.
    pub(crate) fn none() -> Channels<'a> {
        Channels {
            channels: &[],
            is_told: false,
        }
    }

    /// Tells the monitors that a run began.
    pub(crate) async fn begin(&self, run_id: &str) {
        let monitors = self
            .channels
            .iter()
            .filter(|it| it.kind == Kind::Healthchecks);
        let monitors: Vec<&Channel> = monitors.collect();
        if monitors.is_empty() {
            return;
        }
        let Ok(client) = Client::new(true) else {
            return;
        };
        for channel in monitors {
            let sent = match &channel.url {
                Ok(url) => match ping::start(url.expose(), run_id) {
                    Some(url) => {
                        let url = Secret::new(url);
                        client.send(&text(&url, String::new())).await
                    }
                    None => Err("its URL cannot be read".to_owned()),
                },
                Err(why) => Err(why.clone()),
            };
            if let Err(why) = sent {
                tracing::warn!(channel = channel.name, "the beginning was not told: {why}");
            }
        }
    }

    /// Tells every channel, and says in the report what became of it. A required one that was not reached makes the run
    /// end with 6, beside whatever else there is to tell.
    pub(crate) async fn end<S: Store + Outbox>(
        &mut self,
        report: &mut RunReport,
        outside: &RunReport,
        mut store: Option<&mut S>,
        held: &[&str],
        now: Instant,
        is_hurried: bool,
    ) {
        if self.channels.is_empty() || self.is_told {
            return;
        }
        self.is_told = true;
        let before = match store.as_deref_mut() {
            Some(store) => before(store, &report.run.id).await,
            None => Before::default(),
        };
        let notice = Notice::of(outside, &before);
        let patience = if is_hurried {
            PATIENCE_HURRIED
        } else {
            PATIENCE
        };
        let client = Client::new(is_hurried);
        let mut left = patience;
        let mut deliveries = Vec::new();
        for channel in self.channels {
            let begun = stopwatch();
            let status = if channel.kind == Kind::Repairs {
                match store.as_deref_mut() {
                    // Whose source is not held, somebody else may be telling of.
                    Some(store) if !held.is_empty() => {
                        let patience = || left.checked_sub(begun()).is_some();
                        outbox::deliver(store, channel, &client, held, &report.run, now, patience)
                            .await
                    }
                    _ => Ok(DeliveryStatus::Quiet),
                }
            } else if is_due(channel, &notice, &before) {
                let sending = deliver(channel, &notice, &client, now);
                match tokio::time::timeout(left, sending).await {
                    Ok(Ok(())) => Ok(DeliveryStatus::Sent),
                    Ok(Err(why)) => Err(why),
                    Err(_) => Err("there was no time left for it".to_owned()),
                }
            } else {
                Ok(DeliveryStatus::Quiet)
            };
            left = left.saturating_sub(begun());
            let (status, detail) = match status {
                Ok(status) => (status, String::new()),
                Err(why) => (DeliveryStatus::Failed, why),
            };
            if status == DeliveryStatus::Failed {
                tracing::warn!(channel = channel.name, "the message was not sent: {detail}");
            }
            deliveries.push(Delivery {
                channel: channel.name.clone(),
                kind: channel.kind.to_string(),
                is_required: channel.is_required,
                status,
                detail,
            });
        }
        settle(report, deliveries);
    }

    /// Tells of a failure that left no report.
    pub(crate) async fn fail<S: Store + Outbox>(
        &mut self,
        failure: &Failure,
        run: RunInfo,
        store: Option<&mut S>,
        now: Instant,
        is_hurried: bool,
    ) {
        if self.channels.is_empty() || self.is_told {
            return;
        }
        let mut report = failed(failure, run);
        let outside = report.clone();
        self.end(&mut report, &outside, store, &[], now, is_hurried)
            .await;
    }
}

/// How long something took.
#[allow(
    clippy::disallowed_methods,
    reason = "how long a message took decides how long the next may take, and reaches no report"
)]
fn stopwatch() -> impl Fn() -> Duration {
    let begun = std::time::Instant::now();
    move || begun.elapsed()
}

fn is_due(channel: &Channel, notice: &Notice<'_>, before: &Before) -> bool {
    channel.kind == Kind::Healthchecks || notice.is_for(&channel.when, before.missed(&channel.name))
}

async fn deliver(
    channel: &Channel,
    notice: &Notice<'_>,
    client: &Result<Client, String>,
    now: Instant,
) -> Result<(), String> {
    let client = client.as_ref().map_err(Clone::clone)?;
    let url = channel.url.as_ref().map_err(Clone::clone)?;
    let run = &notice.report.run;
    match channel.kind {
        Kind::Slack => client.send(&json(url, slack::body(notice, channel))).await,
        Kind::Webhook => {
            let link = channel.link_of(&run.id);
            let body = webhook::body(notice, channel.max_rows, &link);
            client
                .send(&signed(channel, body, run.id.clone(), now)?)
                .await
        }
        // It is told of repairs, not of runs.
        Kind::Repairs => Ok(()),
        Kind::Healthchecks => {
            let code = notice.report.outcome.exit.code();
            let url = ping::end(url.expose(), code, &run.id);
            let url = Secret::new(url.ok_or("its URL cannot be read")?);
            client.send(&text(&url, ping::body(notice))).await
        }
    }
}

/// JSON with a key that makes a repetition harmless, and a signature where the channel has a secret.
pub(super) fn signed(
    channel: &Channel,
    body: String,
    key: String,
    now: Instant,
) -> Result<Message<'_>, String> {
    const MICROS_PER_SECOND: i64 = 1_000_000;
    let mut message = json(channel.url.as_ref().map_err(Clone::clone)?, body);
    message.headers.push(("idempotency-key", key));
    if let Some(secret) = &channel.secret {
        let secret = secret.as_ref().map_err(Clone::clone)?;
        let at = now.0 / MICROS_PER_SECOND;
        let signature = webhook::signature(secret.expose(), at, &message.body);
        message.headers.push(("paysweep-signature", signature));
    }
    Ok(message)
}

fn json(url: &Secret, body: String) -> Message<'_> {
    Message {
        url,
        body,
        content_type: "application/json",
        headers: Vec::new(),
        method: Method::Post,
    }
}

fn text(url: &Secret, body: String) -> Message<'_> {
    Message {
        content_type: "text/plain; charset=utf-8",
        ..json(url, body)
    }
}

/// What became of the messages, in the report; and what that does to its outcome.
fn settle(report: &mut RunReport, deliveries: Vec<Delivery>) {
    let missed: Vec<&Delivery> = deliveries
        .iter()
        .filter(|it| it.is_required && it.status == DeliveryStatus::Failed)
        .collect();
    if !missed.is_empty() {
        let outcome = &mut report.outcome;
        let worst = outcome.exit.worst(Exit::Undelivered);
        if worst == Exit::Undelivered {
            outcome.name = OutcomeName::Exit(Exit::Undelivered);
        }
        let names: Vec<String> = missed
            .iter()
            .map(|it| format!("{}: {}", it.channel, it.detail))
            .collect();
        let reason = Reason {
            code: Exit::Undelivered.name().to_owned(),
            count: missed.len() as u64,
            message: format!("a required message was not sent to {}", names.join("; ")),
        };
        let at = if worst == Exit::Undelivered {
            0
        } else {
            outcome.reasons.len()
        };
        outcome.reasons.insert(at, reason);
        outcome.exit = worst;
    }
    report.deliveries = deliveries;
}

/// How the run before this one ended, and the last report there is. A store that does not answer leaves it open, so that
/// whatever there is to tell is told.
async fn before<S: Store>(store: &mut S, run_id: &str) -> Before {
    let mut before = Before::default();
    let Ok(runs) = store.runs(RUNS_BACK).await else {
        return before;
    };
    let mut ended = runs
        .iter()
        .filter(|row| row.run_id != run_id && row.finished_at.is_some());
    before.exit_code = ended.clone().next().and_then(|row| row.exit_code);
    for row in ended.by_ref() {
        let Ok(whole) = store.run(&row.run_id).await else {
            continue;
        };
        let report = whole.report_json.as_deref().map(json::read);
        if let Some(Ok(report)) = report {
            before.report = Some(report);
            break;
        }
    }
    before
}

/// The report of a run that has none.
fn failed(failure: &Failure, run: RunInfo) -> RunReport {
    let window = Window {
        from: run.as_of,
        to: run.as_of,
        basis: Basis::Watermark,
    };
    RunReport {
        run,
        window,
        zone: Zone::utc(),
        outcome: Outcome {
            exit: failure.exit,
            name: OutcomeName::Exit(failure.exit),
            reasons: vec![Reason {
                code: failure.exit.name().to_owned(),
                count: 1,
                message: failure.what.clone(),
            }],
        },
        sources: Vec::new(),
        totals: Vec::new(),
        statement: Vec::new(),
        days: Vec::new(),
        summary: Summary::default(),
        accounting: Accounting::default(),
        breaks: Vec::new(),
        repairs: Vec::new(),
        carried: Carried::default(),
        resolved: Vec::new(),
        checks: Vec::new(),
        warnings: Vec::new(),
        deliveries: Vec::new(),
        matches: None,
        pending: None,
        ignored: None,
    }
}
