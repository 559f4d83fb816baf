//! The frame of a slice: whose verdict is given, how far the answer reaches, and where the watermark goes.

use crate::exit::{Exit, Failure};
use crate::model::run::{Basis, CompleteThrough, Watermark, Window};
use crate::reconcile::rules::Frame;
use crate::settings::SourceSettings;
use crate::settings::window::WindowChoice;
use crate::source::feed::{Asked, Feed};
use crate::store::contract::Store;
use crate::time::Instant;

use super::others::Ahead;
use super::prepare::{Prepared, Reads};
use super::run::Job;
use super::told::Told;

/// The window of a source: as it was given, or from its watermark.
pub(crate) fn window_of(
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    stored: Option<&Watermark>,
) -> Result<Window, Failure> {
    let hi = stored.map_or(prepared.source.start, |watermark| watermark.hi);
    if job.as_of < hi {
        return Err(Failure::new(
            Exit::Refused,
            format!("source {}: now ({}) is earlier than the watermark ({hi})", prepared.source.name, job.as_of),
        )
        .why("either the clock is wrong or the watermark is; reading on would skip or doubt what is stored")
        .remedy("correct the clock or --as-of; `paysweep watermark rewind` moves the watermark back"));
    }
    Ok(match job.choice {
        WindowChoice::Range(window) => window,
        WindowChoice::Watermark => Window {
            from: hi.minus(prepared.spans.lookback),
            to: job.as_of.minus(prepared.spans.lag),
            basis: Basis::Watermark,
        },
    })
}

/// A range by hand may ask for no time of which operations were forgotten: no verdict about it would hold.
pub(crate) fn is_known(
    window: Window,
    source: &str,
    horizon: Option<Instant>,
) -> Result<Window, Failure> {
    match (window.basis, horizon) {
        (Basis::Range, Some(horizon)) if window.from < horizon => Err(Failure::rejected(format!(
            "source {source}: the range begins at {}, and operations before {horizon} are no longer stored",
            window.from
        ))
        .why("what belongs to them was judged when they were there; without them nothing could be told from it")
        .remedy(format!("let the range begin at {horizon} or later, or compare the two sides with `paysweep diff`, which needs no memory"))),
        _ => Ok(window),
    }
}

/// A window that is longer than one slice of the source may be ends earlier; the next slice goes on there.
pub(crate) fn within_reach(window: Window, prepared: &Prepared<'_>) -> Window {
    let declared = match &prepared.reads {
        Reads::Api(profile) => profile.http.max_window,
        Reads::Files(_) => None,
    };
    let access = prepared.source.access.as_ref();
    let max = access.and_then(|access| access.max_window).or(declared);
    match (window.basis, max) {
        (Basis::Watermark, Some(max)) => {
            let reach = window.from.plus(prepared.spans.lookback).plus(max);
            Window {
                to: window.to.min(reach),
                ..window
            }
        }
        _ => window,
    }
}

/// A feed by the watermark takes up the numbered reports where the last run left them; a range by hand may read any.
pub(crate) fn follows(
    feed: Feed,
    stored: Option<&Watermark>,
    window: Window,
) -> Result<Feed, Failure> {
    match window.basis {
        Basis::Watermark => feed.follows(stored),
        Basis::Range | Basis::Files => Ok(feed),
    }
}

/// How far the files of a source claim to be complete.
pub(crate) fn complete_through(
    claim: CompleteThrough,
    as_of: Instant,
    feed: &Feed,
) -> Option<Instant> {
    match claim {
        CompleteThrough::AsOf => Some(as_of),
        CompleteThrough::At(at) => Some(at),
        CompleteThrough::LastRow => feed.newest_until(as_of),
    }
}

/// How far a slice reaches, given what was read and what is stored.
#[allow(
    clippy::too_many_arguments,
    reason = "a frame is what all of these come to"
)]
pub(crate) async fn frame<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    stored: Option<&Watermark>,
    horizon: Option<Instant>,
    window: Window,
    is_last: bool,
    told: &Told,
    ahead: &Ahead,
    feed: &Feed,
) -> Result<Frame, Failure> {
    let source = prepared.source;
    let reached = complete_through(source.complete_through, job.as_of, feed);
    // What a processor does not answer for is not covered, whatever the configuration claims.
    let reached = match &feed.asked {
        Some(asked) => reached.map(|at| at.min(asked.whole_until)),
        None => reached,
    };
    // What earlier runs covered without a gap stays covered when today's files are shorter. A watermark that still stands
    // where the source starts has covered nothing.
    let reached = match window.basis {
        Basis::Watermark => reached.max(
            stored
                .map(|watermark| watermark.hi)
                .filter(|&hi| hi > source.start),
        ),
        Basis::Range | Basis::Files => reached,
    };
    let covered = reached.map(|at| at.min(window.to).min(job.as_of.minus(prepared.spans.lag)));
    // Lists that broke off: what is whole is judged as it would have been at that time, and nothing is called absent.
    let (window, covered) = match feed.asked.as_ref().filter(|asked| !asked.is_whole()) {
        Some(asked) => {
            let to = window.to.min(asked.whole_until).max(window.from);
            (Window { to, ..window }, None)
        }
        None => (window, covered),
    };
    let first = stored.map_or(source.start.minus(prepared.spans.lookback), |watermark| {
        watermark.low
    });
    let others_covered = others_covered(store, job, source, told, ahead).await?;
    Ok(Frame {
        as_of: job.as_of,
        window,
        low: first.min(window.from),
        horizon: horizon.unwrap_or(Instant::MIN),
        covered,
        others_covered,
        judges_unowned: is_last,
        is_feed_unchanged: !feed.hash.is_empty()
            && stored.is_some_and(|watermark| watermark.feed_hash == feed.hash),
        // A file proves itself by a count, a sum or a checksum; a list by being read to its end.
        is_absence_proof: feed.is_verified && prepared.reads.profile().about.proves_absence(),
    })
}

/// How far every other source is complete: by this run where it was read, else by its watermark.
pub(crate) async fn others_covered<S: Store>(
    store: &mut S,
    job: &Job<'_>,
    source: &SourceSettings,
    told: &Told,
    ahead: &Ahead,
) -> Result<Option<Instant>, Failure> {
    let mut others_covered = Some(Instant::MAX);
    for other in &job.settings.sources {
        if other.name != source.name {
            let now = told.covered(&other.name);
            let known = match now.or_else(|| ahead.covered(&other.name)) {
                Some(covered) => covered,
                None => store
                    .watermark(&other.name)
                    .await?
                    .map(|watermark| watermark.hi)
                    .filter(|&hi| hi > other.start),
            };
            others_covered = others_covered.and_then(|all| known.map(|at| all.min(at)));
        }
    }
    Ok(others_covered)
}

/// Where the watermark goes: never back, and never past what is covered. A range by hand and a list that broke off leave it
/// alone.
pub(crate) fn advance(
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    stored: Option<&Watermark>,
    frame: &Frame,
    feed: &Feed,
    fence: Option<(String, u64)>,
) -> Option<Watermark> {
    let is_whole = feed.asked.as_ref().is_none_or(Asked::is_whole);
    if frame.window.basis != Basis::Watermark || !is_whole {
        return None;
    }
    let hi = stored.map_or(prepared.source.start, |watermark| watermark.hi);
    let mut series = feed.series_after(stored);
    series.extend(fence);
    Some(Watermark {
        hi: frame.covered.map_or(hi, |covered| covered.max(hi)),
        low: frame.low,
        as_of: job.as_of,
        lag: prepared.spans.lag,
        lookback: prepared.spans.lookback,
        feed_hash: feed.hash.clone(),
        series,
        config_hash: prepared.source.config_hash.clone(),
        run_id: job.run_id.clone(),
    })
}
