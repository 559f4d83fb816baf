//! `paysweep watermark`: how far each source has been read. Moving it is an audited exception.

use serde_json::{Value, json};

use crate::cli::{CommonArgs, RepinArgs, WatermarkArgs, WatermarkCommand};
use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState};
use crate::model::run::Watermark;
use crate::reconcile;
use crate::report::Format;
use crate::settings::{Settings, SourceSettings, Spans};
use crate::store::any::AnyStore;
use crate::store::contract::{Claim, Note, RunEnd, RunStart, Store};
use crate::time::{Instant, parse_point};

use super::breaks::pretty;
use super::pin::shown;
use super::{World, prepare};

/// `paysweep watermark …`.
pub async fn execute(
    command: &WatermarkCommand,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    match command {
        WatermarkCommand::Show => show(&settings, common, world).await?,
        WatermarkCommand::Set(arguments) => {
            move_to(&settings, arguments, true, common, world).await?
        }
        WatermarkCommand::Rewind(arguments) => {
            move_to(&settings, arguments, false, common, world).await?
        }
        WatermarkCommand::Repin(arguments) => repin(&settings, arguments, common, world).await?,
    }
    Ok(Exit::Ok)
}

async fn show(
    settings: &Settings,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let mut store = super::store_to_read(settings).await?;
    let mut lines = Vec::new();
    let mut text = String::new();
    for name in super::source_names(settings, common)? {
        let source = settings.source(&name)?;
        let pin = store.pin(&name).await?;
        let pinned = pin.as_ref().map(
            |pin| json!({ "account": pin.account, "declared": pin.declared, "mode": pin.mode }),
        );
        match store.watermark(&name).await? {
            Some(mark) => {
                text.push_str(&format!(
                    "{name}: read up to {} (contiguous since {}; as of {}, lag {}, lookback {})\n",
                    mark.hi, mark.low, mark.as_of, mark.lag, mark.lookback
                ));
                lines.push(json!({
                    "source": name, "watermark": mark.hi.to_string(), "low": mark.low.to_string(),
                    "as_of": mark.as_of.to_string(), "run_id": mark.run_id, "pin": pinned,
                }));
            }
            None => {
                text.push_str(&format!(
                    "{name}: not read yet; starts at {}\n",
                    source.start
                ));
                lines.push(json!({ "source": name, "watermark": Value::Null, "start": source.start.to_string(), "pin": pinned }));
            }
        }
        if let Some(pin) = &pin {
            text.push_str(&format!("{name}: pinned to {}\n", shown(pin)));
        }
    }
    match common.format() {
        Format::Json => world.say(&pretty(&json!({ "watermarks": lines }))),
        Format::Table => world.say(&text),
    }
}

async fn move_to(
    settings: &Settings,
    arguments: &WatermarkArgs,
    is_forward: bool,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let state = "nothing was written";
    let name = one_source(settings, common)?;
    let source = settings.source(&name)?;
    let now = crate::settings::window::as_of(
        common.as_of.as_deref(),
        &settings.timezone,
        (world.clock)(),
    )?;
    let to = parse_point(&arguments.to, &settings.timezone, now).ok_or_else(|| {
        Failure::rejected(format!("\"{}\" is no day or time", arguments.to))
            .remedy("write RFC 3339, or a day or time in the configured zone")
            .state(state)
    })?;
    let mut store = super::store(settings).await?;
    let stored = store.watermark(&name).await?;
    let spans = source.spans(prepare::profile_spans(
        prepare::Reads::of(source)?.profile(),
    ));
    let from = stored.as_ref().map_or(source.start, |mark| mark.hi);
    refuse(is_forward, from, to, now).map_err(|failure| {
        failure.state(format!(
            "nothing was written; the watermark of {name} stays at {from}"
        ))
    })?;
    if let Some(horizon) = store.horizon(&name).await?
        && to.minus(spans.lookback) < horizon
    {
        return Err(Failure::rejected(format!(
            "from {to} on, a run would look back {} at operations of which those before {horizon} are no longer stored",
            spans.lookback
        ))
        .why("what belongs to them was judged when they were there; without them nothing could be told from it")
        .remedy(format!("go back no further than {}", horizon.plus(spans.lookback)))
        .state(format!("nothing was written; the watermark of {name} stays at {from}")));
    }
    let gap = is_forward.then(|| gap(source, from, to, now, &arguments.reason));
    let mark = moved(stored.as_ref(), source, spans, is_forward, to, now);
    let command = if is_forward {
        "watermark set"
    } else {
        "watermark rewind"
    };
    let claim = begin(&mut store, settings, &name, command, now, world).await?;
    let by = super::person(world);
    let written = store
        .set_watermark(
            &claim,
            &mark,
            &Note {
                reason: &arguments.reason,
                by: &by,
                at: now,
            },
            gap.as_ref(),
        )
        .await;
    store.release(&claim).await?;
    written?;
    end(&mut store, &claim, "moved", world).await?;
    let mut text = format!("{name}: watermark moved from {from} to {to}\n");
    if let Some(gap) = gap {
        text.push_str(&format!(
            "the stretch in between is the break {} ({}) until a person closes it\n",
            gap.id, gap.class
        ));
    }
    world.say(&text)
}

/// The one source that is meant.
fn one_source(settings: &Settings, common: &CommonArgs) -> Result<String, Failure> {
    let names = super::source_names(settings, common)?;
    let [name] = names.try_into().map_err(|names: Vec<String>| {
        Failure::rejected("a watermark belongs to one source")
            .why(format!("configured: {}", names.join(", ")))
            .remedy("name it with --source NAME")
            .state("nothing was written")
    })?;
    Ok(name)
}

/// Begins what is done to a source by hand, and takes it.
async fn begin(
    store: &mut AnyStore,
    settings: &Settings,
    name: &str,
    command: &str,
    now: Instant,
    world: &mut World<'_>,
) -> Result<Claim, Failure> {
    let run_id = uuid::Uuid::now_v7().to_string();
    store
        .begin(&RunStart {
            run_id: &run_id,
            command,
            sources: &[name.to_owned()],
            as_of: now,
            started_at: (world.clock)(),
            version: env!("CARGO_PKG_VERSION"),
            config_hash: &settings.digest,
            run_key: None,
            started_by: &super::named_person(world),
            owner: &run_id,
            ttl: settings.lease,
        })
        .await?;
    store.claim(name, &run_id, &run_id, settings.lease).await
}

/// Records that it is done.
async fn end(
    store: &mut AnyStore,
    claim: &Claim,
    outcome: &str,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let run_id = claim.run_id.as_str();
    let end = RunEnd {
        run_id,
        finished_at: (world.clock)(),
        exit_code: 0,
        outcome,
        report_json: None,
        is_completed: true,
    };
    store.finish_run(&end).await?;
    store
        .mark_reported(&[run_id], &[&claim.source], run_id)
        .await
}

/// Lets go of the account and mode of a source: the next run pins what it finds.
async fn repin(
    settings: &Settings,
    arguments: &RepinArgs,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<(), Failure> {
    let name = one_source(settings, common)?;
    let now = (world.clock)();
    let mut store = super::store(settings).await?;
    let claim = begin(&mut store, settings, &name, "watermark repin", now, world).await?;
    let by = super::person(world);
    let note = Note {
        reason: &arguments.reason,
        by: &by,
        at: now,
    };
    let let_go = store.unpin(&claim, &note).await;
    store.release(&claim).await?;
    let let_go = let_go?;
    end(&mut store, &claim, "unpinned", world).await?;
    world.say(&match let_go {
        Some(pin) => format!(
            "{name}: is no longer pinned to {}; the next run pins what it finds\n",
            shown(&pin)
        ),
        None => format!("{name}: was not pinned; the next run pins what it finds\n"),
    })
}

fn refuse(is_forward: bool, from: Instant, to: Instant, now: Instant) -> Result<(), Failure> {
    if to > now {
        return Err(
            Failure::new(Exit::Refused, format!("{to} is later than now ({now})"))
                .why("a watermark later than now would skip what has not happened yet"),
        );
    }
    match (is_forward, to.cmp(&from)) {
        (_, std::cmp::Ordering::Equal) => Err(Failure::rejected(format!(
            "the watermark is at {from} already"
        ))),
        (true, std::cmp::Ordering::Less) => Err(Failure::rejected(format!(
            "{to} lies before the watermark ({from})"
        ))
        .remedy("use `paysweep watermark rewind` to go back")),
        (false, std::cmp::Ordering::Greater) => Err(Failure::rejected(format!(
            "{to} lies after the watermark ({from})"
        ))
        .remedy("use `paysweep watermark set` to go forward, which leaves a coverage_gap")),
        _ => Ok(()),
    }
}

/// The watermark after the move. Going forward over unread time begins contiguous coverage anew; going back re-opens the
/// stretch, and forgets which files were read last so that they are judged again.
fn moved(
    stored: Option<&Watermark>,
    source: &SourceSettings,
    spans: Spans,
    is_forward: bool,
    to: Instant,
    now: Instant,
) -> Watermark {
    let low = match stored {
        _ if is_forward => to,
        Some(mark) => mark.low.min(to),
        None => source.start.minus(spans.lookback).min(to),
    };
    Watermark {
        hi: to,
        low,
        as_of: stored.map_or(now, |mark| mark.as_of.min(now)),
        lag: spans.lag,
        lookback: spans.lookback,
        feed_hash: String::new(),
        // What is missing of a series is accepted with the stretch that it stood for.
        series: std::collections::BTreeMap::new(),
        config_hash: source.config_hash.clone(),
        run_id: String::new(),
    }
}

fn gap(source: &SourceSettings, from: Instant, to: Instant, now: Instant, reason: &str) -> Break {
    let class = BreakClass::CoverageGap;
    let stretch = format!("{from}/{to}");
    Break {
        id: reconcile::break_id(&source.name, class, "", &stretch, ""),
        class,
        source: source.name.clone(),
        account: String::new(),
        operation_id: String::new(),
        intent_id: String::new(),
        money: None,
        delta: None,
        why: format!(
            "{} was never read between {from} and {to}: {reason}",
            source.name
        ),
        evidence: reconcile::fingerprint(&[&stretch]),
        state: BreakState::Open,
        disposition: BreakDisposition::Review,
        is_sticky: true,
        first_seen_run: String::new(),
        first_seen_at: now,
        acknowledged_until: None,
    }
}
