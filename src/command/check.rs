//! `paysweep check`: is it set up right? One verdict line each; exits with its worst row.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::intents::sql::apply_facts::apply_facts;
use crate::intents::sql::facts;
use crate::intents::sql::spec::Spec;
use crate::meter::Meter;
use crate::model::breaks::BreakClass;
use crate::notify::Channel;
use crate::processor;
use crate::processor::api::ApiProfile;
use crate::processor::profile::Window;
use crate::report::Format;
use crate::settings::{IntentsKind, Settings, SourceSettings, Spans, StoreUrl};
use crate::source::api::Account;
use crate::source::files;
use crate::source::http::Budget;
use crate::store::contract::Store;
use crate::store::postgres::{Mode, PostgresStore};
use crate::store::sqlite::SqliteStore;
use crate::time::{Instant, Span};

use super::breaks::pretty;
use super::pin::Pinning;
use super::prepare::Reads;
use super::{World, frame, prepare, retention};

struct Row {
    name: String,
    exit: Exit,
    detail: String,
}

/// `paysweep check`. Reads everything that a run would read, and writes nothing.
pub async fn execute(common: &CommonArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let now = (world.clock)();
    let mut rows = vec![
        ok(
            "configuration",
            format!(
                "{} (sha-256 {})",
                settings.path.display(),
                &settings.digest[..12]
            ),
        ),
        ok("timezone", settings.timezone.name().to_owned()),
        ok(
            "clock",
            format!("{now}; instants and windows are exact, the host's zone is not used"),
        ),
        store_row(&settings).await,
    ];
    rows.extend(ledger_row(&settings).await);
    rows.extend(role_row(&settings).await);
    for name in super::source_names(&settings, common)? {
        source_rows(&settings, settings.source(&name)?, now, &mut rows).await;
    }
    rows.push(intents_row(&settings));
    if let Some(spec) = &settings.intents.sql {
        table_rows(&settings, spec, now, &mut rows).await;
        if let Some(apply) = &settings.repair.apply {
            for fact in apply_facts(spec, apply, settings.is_joined(), now).await {
                rows.push(match fact.found {
                    Ok(detail) => ok(&fact.name, detail),
                    Err(failure) => failed(&fact.name, &failure),
                });
            }
        }
    }
    policy_rows(&settings, &mut rows);
    rows.push(ok(
        "guards",
        format!("at most {} repairs in a run", settings.guards.max_repairs),
    ));
    rows.extend(settings.channels.iter().map(channel_row));
    let exit = rows.iter().map(|row| row.exit).fold(Exit::Ok, Exit::worst);
    let text: String = rows
        .iter()
        .map(|row| {
            format!(
                "{:<5} {:<22} {}\n",
                if row.exit == Exit::Ok { "ok" } else { "FAIL" },
                row.name,
                row.detail
            )
        })
        .collect();
    if common.format() == Format::Json {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| json!({ "name": row.name, "exit_code": row.exit.code(), "detail": row.detail }))
            .collect();
        world.say(&pretty(
            &json!({ "exit_code": exit.code(), "checks": rows }),
        ))?;
    } else if !(common.quiet && exit == Exit::Ok) {
        world.say(&text)?;
    }
    Ok(exit)
}

fn ok(name: &str, detail: String) -> Row {
    Row {
        name: name.to_owned(),
        exit: Exit::Ok,
        detail,
    }
}

fn failed(name: &str, failure: &Failure) -> Row {
    let mut detail = failure.what.clone();
    for more in [&failure.why, &failure.remedy] {
        if !more.is_empty() {
            detail.push_str("; ");
            detail.push_str(more);
        }
    }
    Row {
        name: name.to_owned(),
        exit: failure.exit,
        detail,
    }
}

async fn store_row(settings: &Settings) -> Row {
    let opened = async {
        match &settings.store {
            StoreUrl::Sqlite(path) => {
                let Some(mut store) = SqliteStore::open_existing(path).await? else {
                    return Ok(format!(
                        "{} does not exist yet; the first run creates it",
                        path.display()
                    ));
                };
                store.check_whole().await?;
                let last = last_run(&mut store).await?;
                Ok(format!(
                    "{}: whole, of this version; {last}",
                    path.display()
                ))
            }
            StoreUrl::Postgres(address) => {
                let mut store = PostgresStore::open(address, Mode::ReadWrite).await?;
                let last = last_run(&mut store).await?;
                Ok(format!(
                    "{address}: can be written, of this version; {last}"
                ))
            }
        }
    };
    match opened.await {
        Ok(detail) => ok("store", detail),
        Err(failure) => failed("store", &failure),
    }
}

/// Whether a channel could be reached; nothing is sent.
fn channel_row(channel: &Channel) -> Row {
    let name = format!("notify {}", channel.name);
    let mut secrets = channel.secret.iter().chain([&channel.url]);
    match secrets.find_map(|it| it.as_ref().err()) {
        Some(why) => Row {
            name,
            exit: Exit::Rejected,
            detail: why.clone(),
        },
        None => ok(
            &name,
            format!(
                "{}{}; nothing was sent",
                channel.kind,
                if channel.is_required {
                    ", required"
                } else {
                    ""
                }
            ),
        ),
    }
}

/// Whether the role may no more than a run needs. A database that cannot be opened is told by its own row.
async fn role_row(settings: &Settings) -> Option<Row> {
    let StoreUrl::Postgres(address) = &settings.store else {
        return None;
    };
    let mut store = PostgresStore::open(address, Mode::ReadOnly).await.ok()?;
    Some(match store.assert_least().await {
        Ok(()) => ok("store role", "may what a run needs, and no more".to_owned()),
        Err(failure) => failed("store role", &failure),
    })
}

/// Whether the chain of the ledger holds. A store that cannot be opened is told by its own row.
async fn ledger_row(settings: &Settings) -> Option<Row> {
    let proved = match &settings.store {
        StoreUrl::Sqlite(path) => {
            let mut store = SqliteStore::open_existing(path).await.ok()??;
            store.prove_ledger().await
        }
        StoreUrl::Postgres(address) => {
            let mut store = PostgresStore::open(address, Mode::ReadOnly).await.ok()?;
            store.prove_ledger().await
        }
    };
    Some(match proved {
        Ok(proof) if proof.head.hash.is_empty() => {
            ok("ledger", "no step of a repair or decision yet".to_owned())
        }
        Ok(proof) => {
            let older = match proof.older {
                0 => String::new(),
                number => format!("; {number} steps are older than the chain"),
            };
            ok(
                "ledger",
                format!(
                    "the chain holds: {} steps, sealed by {}{older}",
                    proof.head.entries, proof.head.hash
                ),
            )
        }
        Err(failure) => failed("ledger", &failure),
    })
}

/// What is done about each class that can be repaired, as it is in force.
fn policy_rows(settings: &Settings, rows: &mut Vec<Row>) {
    for &class in BreakClass::ALL {
        let Some(default) = class.entry().default_policy else {
            continue;
        };
        let policy = settings.repair.policies.get(&class).unwrap_or(&default);
        let conditions = settings
            .repair
            .conditions
            .get(&class)
            .map(|it| format!(" ({})", it.told()))
            .unwrap_or_default();
        rows.push(ok(
            &format!("repair {class}"),
            format!("{}{conditions}", policy.as_str()),
        ));
    }
    rows.push(ok(
        "repair redrive",
        if settings.repair.may_redrive {
            "propose: your software is told what it may send again; nothing is sent from here"
                .to_owned()
        } else {
            "off".to_owned()
        },
    ));
    if settings.repair.four_eyes {
        rows.push(ok(
            "repair approval",
            "by somebody else than who proposed it, as PAYSWEEP_USER, SUDO_USER or USER says"
                .to_owned(),
        ));
    }
}

/// What the processor still knows a request by, against how long our own software sends the same one again.
fn retry_row(
    source: &SourceSettings,
    profile: &crate::processor::profile::Profile,
    retry_for: Option<Span>,
    rows: &mut Vec<Row>,
) {
    /// A request that is sent in the last fifth of the window may arrive after it. Unit: tenths of the window.
    const USABLE_TENTHS: i64 = 8;
    let name = format!("source {} retries", source.name);
    let Some(retry_for) = retry_for else {
        return;
    };
    let window = match profile.about.idempotency.as_ref().map(|it| it.window) {
        Some(Window::Indefinite) => {
            let told = format!("{retry_for} of retries; the processor recognises a request always");
            return rows.push(ok(&name, told));
        }
        Some(Window::AtLeast(span)) => Some(span),
        Some(Window::Unknown) | None => None,
    };
    let usable = Span(window.unwrap_or(Span::ZERO).0 / 10 * USABLE_TENTHS);
    let rule = match window {
        Some(window) => format!(
            "retry_for {retry_for} ≤ 0.8 × {window} = {usable}, for which the processor recognises a request that is sent again"
        ),
        None => format!(
            "retry_for {retry_for} ≤ 0s: the processor publishes no time for which it recognises a request that is sent again"
        ),
    };
    if retry_for <= usable {
        return rows.push(ok(&name, rule));
    }
    let failure = Failure::rejected(format!("{rule} does not hold"))
        .why("a request that is sent again after that is a second payment")
        .remedy("let your software give up sooner, and look the payment up instead; then lower retry_for");
    rows.push(failed(&name, &failure));
}

async fn last_run(store: &mut impl Store) -> Result<String, Failure> {
    let runs = store.runs(1).await?;
    Ok(runs.first().map_or_else(
        || "no runs yet".to_owned(),
        |row| format!("last run as of {}", row.as_of),
    ))
}

async fn source_rows(
    settings: &Settings,
    source: &SourceSettings,
    now: Instant,
    rows: &mut Vec<Row>,
) {
    let name = format!("source {}", source.name);
    let reads = match prepare::Reads::of(source) {
        Ok(reads) => reads,
        Err(failure) => return rows.push(failed(&name, &failure)),
    };
    let profile = reads.profile();
    let spans = source.spans(prepare::profile_spans(profile));
    let needed =
        Span(profile.spans.delay.0 + profile.spans.granularity.0 + profile.spans.clock_error.0);
    let reach = Span(spans.lag.0 + spans.lookback.0);
    let arithmetic = format!(
        "lag {} + lookback {} = {reach} ≥ delay + granularity + clock error = {needed}",
        spans.lag, spans.lookback
    );
    if reach < needed {
        let failure =
            Failure::rejected(format!("{arithmetic} does not hold")).remedy("raise lookback");
        rows.push(failed(&format!("{name} watermark"), &failure));
    } else {
        rows.push(ok(&format!("{name} watermark"), arithmetic));
    }
    rows.extend(retention_row(settings, source, spans).await);
    retry_row(source, profile, settings.intents.retry_for, rows);
    if settings.repair.may_redrive {
        let told = match prepare::redrive(profile, spans) {
            Some(redrive) => redrive.told(),
            None => "nothing is proposed: the profile publishes no window, or says of no absence that it is proof"
                .to_owned(),
        };
        rows.push(ok(&format!("{name} redrive"), told));
    }
    if let Reads::Api(profile) = &reads {
        let (asked, account) = asked_rows(source, profile, now).await;
        rows.extend(asked);
        rows.extend(pin_row(settings, source, account.as_deref()).await);
        return;
    }
    let patterns: Vec<String> = source
        .files
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    match files::read(
        profile,
        &source.read,
        std::path::Path::new(""),
        &patterns,
        &Meter::default(),
    ) {
        Ok(feed) => {
            let reached = frame::complete_through(source.complete_through, now, &feed)
                .map_or_else(|| "nothing".to_owned(), |at| at.to_string());
            let verified = if feed.is_verified {
                "verified"
            } else {
                "unverified"
            };
            let detail = format!(
                "{} files, {} rows by profile {}, {} of them unusable; complete through {reached} ({verified})",
                feed.files.len(),
                feed.rows,
                profile.full_name(),
                feed.invalid
            );
            rows.push(ok(&format!("{name} files"), detail));
        }
        Err(failure) => rows.push(failed(&format!("{name} files"), &failure)),
    }
}

/// Whether every operation that a run looks back at is still stored, and how far back they are kept. A store that is not there
/// yet, or cannot be read, is told by its own row.
async fn retention_row(settings: &Settings, source: &SourceSettings, spans: Spans) -> Option<Row> {
    let name = format!("source {} retention", source.name);
    let mut store = super::store_to_read(settings).await.ok()?;
    let horizon = store.horizon(&source.name).await.ok()?;
    let mark = store.watermark(&source.name).await.ok()?;
    let (Some(horizon), Some(mark)) = (horizon, mark) else {
        let reach = retention::reach(source).ok()?;
        return settings.keep.map(|keep| {
            ok(
                &name,
                format!("everything is stored; keep {keep}, and whatever happened within lookback {} + linking and payouts {reach} of the watermark, or is open", spans.lookback),
            )
        });
    };
    let back = mark.hi.minus(spans.lookback);
    let rule = format!(
        "watermark {} - lookback {} = {back} ≥ {horizon}, before which operations were forgotten",
        mark.hi, spans.lookback
    );
    if back >= horizon {
        return Some(ok(&name, rule));
    }
    let failure = Failure::rejected(format!("{rule}, does not hold"))
        .why("no verdict is given about operations that are no longer stored")
        .remedy(format!(
            "lower lookback to at most {}",
            Span(mark.hi.0 - horizon.0)
        ));
    Some(failed(&name, &failure))
}

/// How far the clock of this machine may be off: more, and nobody knows which rows are young.
const SKEW_MAX_SECONDS: i64 = 60;

/// Whether a processor answers, knows the key, and says what time it is. Asks for one row of each list.
async fn asked_rows(
    source: &SourceSettings,
    profile: &Arc<ApiProfile>,
    now: Instant,
) -> (Vec<Row>, Option<String>) {
    let name = format!("source {}", source.name);
    let Some(access) = &source.access else {
        return (Vec::new(), None);
    };
    let (rules, budget) = (source.read.clone(), Arc::new(Budget::new(None)));
    let account = match Account::new(Arc::clone(profile), rules, access, budget, Arc::default()) {
        Ok(account) => account,
        Err(failure) => return (vec![failed(&format!("{name} key"), &failure)], None),
    };
    let mut rows = Vec::new();
    let mut whose = None;
    match account.probe(now).await {
        Ok(probed) => {
            whose.clone_from(&probed.account);
            let mode = match source.read.mode {
                Some(processor::Mode::Test) => "test",
                _ => "live",
            };
            let detail = format!(
                "{} answers by profile {}, {mode} mode; the key may read {}",
                account.host(),
                profile.name,
                probed.lists.join(", ")
            );
            rows.push(ok(&format!("{name} api"), detail));
            if let Some(theirs) = probed.date {
                let skew = now.seconds_since(theirs);
                let detail = format!("{skew} s ahead of the processor's");
                if skew.abs() > SKEW_MAX_SECONDS {
                    let failure = Failure::new(
                        Exit::Refused,
                        format!("the clock of this machine is {detail}"),
                    )
                    .remedy("set it by NTP");
                    rows.push(failed(&format!("{name} clock"), &failure));
                } else {
                    rows.push(ok(&format!("{name} clock"), detail));
                }
            }
        }
        Err(failure) => rows.push(failed(&format!("{name} api"), &failure)),
    }
    (rows, whose)
}

/// Whether the account and mode are those that the first run found. A store that is not there yet, or cannot be read, is told
/// by its own row.
async fn pin_row(
    settings: &Settings,
    source: &SourceSettings,
    account: Option<&str>,
) -> Option<Row> {
    let name = format!("source {} account", source.name);
    let compared = async {
        let Ok(mut store) = super::store_to_read(settings).await else {
            return Ok(None);
        };
        let mut pinning = Pinning::of(&mut store, source).await?;
        if let Some(account) = account {
            pinning.told(account)?;
        }
        Ok::<_, Failure>(Some(pinning.shown()))
    };
    match compared.await {
        Ok(shown) => shown.map(|shown| ok(&name, shown)),
        Err(failure) => Some(failed(&name, &failure)),
    }
}

/// What is said about the company's own table.
async fn table_rows(settings: &Settings, spec: &Spec, now: Instant, rows: &mut Vec<Row>) {
    let reaches: Vec<(&str, Span, Span)> = settings
        .sources
        .iter()
        .filter_map(|source| {
            // A profile that cannot be read has a row of its own.
            let reads = prepare::Reads::of(source).ok()?;
            let spans = source.spans(prepare::profile_spans(reads.profile()));
            Some((source.name.as_str(), spans.lag, spans.lookback))
        })
        .collect();
    for fact in facts::facts(spec, &reaches, now).await {
        rows.push(match fact.found {
            Ok(detail) => ok(&fact.name, detail),
            Err(failure) => failed(&fact.name, &failure),
        });
    }
}

fn intents_row(settings: &Settings) -> Row {
    match (
        settings.intents.kind,
        prepare::read_intents(settings, &Meter::default()),
    ) {
        (_, Err(failure)) => failed("intents", &failure),
        (IntentsKind::Csv, Ok(rows)) => ok(
            "intents",
            format!(
                "{} rows, imported by each run",
                rows.map_or(0, |rows| rows.len())
            ),
        ),
        (IntentsKind::Sql, Ok(_)) => ok(
            "intents",
            if settings.repair.apply.is_some() {
                "the company's own table, read by each run; repairs are written by [repair.apply]"
                    .to_owned()
            } else {
                "the company's own table, read by each run and never written".to_owned()
            },
        ),
        (IntentsKind::Store, Ok(_)) => ok(
            "intents",
            "the store's own table; load it with `paysweep intents import`".to_owned(),
        ),
    }
}
