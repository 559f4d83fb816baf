//! Breaks as a run leaves them: one row for each, put or resolved, with events for what became of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::dialect::{Bulk, Sql, sql};
use super::engine::{Columns, Engine, KEYS_MAX, Values, keys};
use crate::exit::Failure;
use crate::model::breaks::{Break, BreakDisposition};
use crate::time::Instant;

/// Held, so that nobody appends an event of the same number.
pub(super) const HOLD_BREAKS: Sql = sql!(
    "select break_id from breaks where break_id " [in 1] " order by break_id" for_update
);

const WHAT_IS_KNOWN: Sql = sql!(
    "select b.break_id, b.evidence, b.resolved_run, b.first_seen_run, b.first_seen_at, \
    (select coalesce(max(e.event_no), 0) from break_events as e where e.break_id = b.break_id) \
    as event_no from breaks as b where b.break_id " [in 1]
);

const PUT_BREAKS: Bulk = Bulk {
    into: "breaks (break_id, class, source, account, operation_id, intent_id, \
           money_minor, money_currency, delta_minor, delta_currency, why, evidence, disposition, \
           is_sticky, first_seen_run, first_seen_at, last_seen_run, last_seen_at, resolved_run)",
    columns: 19,
    tail: Sql::same(
        "on conflict (break_id) do update set class = excluded.class, source = excluded.source, \
           account = excluded.account, operation_id = excluded.operation_id, \
           intent_id = excluded.intent_id, money_minor = excluded.money_minor, \
           money_currency = excluded.money_currency, delta_minor = excluded.delta_minor, \
           delta_currency = excluded.delta_currency, why = excluded.why, \
           evidence = excluded.evidence, disposition = excluded.disposition, \
           is_sticky = excluded.is_sticky, first_seen_run = excluded.first_seen_run, \
           first_seen_at = excluded.first_seen_at, last_seen_run = excluded.last_seen_run, \
           last_seen_at = excluded.last_seen_at, resolved_run = excluded.resolved_run",
    ),
    is_new: false,
};

/// Appends events; their numbers are the caller's.
pub(super) const ADD_EVENTS: Bulk = Bulk {
    into: "break_events (break_id, event_no, what, done_at, done_by, run_id, note, \
           closed_as, until, evidence)",
    columns: 10,
    // Two breaks of one id in one commit tell the same.
    tail: Sql::same("on conflict do nothing"),
    is_new: false,
};

const NOTE_RESOLVED: Sql = sql!(
    "insert into break_events (break_id, event_no, what, done_at, done_by, run_id, note, closed_as, \
    until, evidence) \
    select b.break_id, 1 + (select coalesce(max(e.event_no), 0) from break_events as e \
    where e.break_id = b.break_id), 'resolved', $3, '', $2, 'seen in order', '', cast(null as bigint), b.evidence \
    from breaks as b where b.resolved_run = '' and b.break_id " [in 1]
);

const RESOLVE: Sql = sql!(
    "update breaks set resolved_run = $2, disposition = 'review' where resolved_run = '' \
    and break_id " [in 1]
);

/// What the store knows of a break before it is put.
struct Known {
    evidence: String,
    is_resolved: bool,
    first_seen_run: String,
    first_seen_at: Instant,
    event_no: i64,
}

/// Puts the breaks of a run. `repaired` are the ids of those of which every repair was applied.
pub(super) async fn put(
    session: &mut impl Engine,
    run_id: &str,
    as_of: Instant,
    breaks: &[Break],
    repaired: &HashSet<&str>,
) -> Result<(), Failure> {
    for chunk in breaks.chunks(KEYS_MAX) {
        let known = known(session, chunk).await?;
        let events: Vec<NewEvent<'_>> = chunk
            .iter()
            .flat_map(|item| {
                let known = known.get(item.id.as_str());
                events_of(item, known, is_closed(item, repaired))
            })
            .collect();
        write(session, run_id, as_of, chunk, &known, repaired).await?;
        session
            .write_many("writing breaks", &ADD_EVENTS, events.len(), |at, values| {
                let event = &events[at];
                values
                    .text(event.break_id)
                    .int(event.event_no)
                    .text(event.what)
                    .int(as_of.0)
                    .text("")
                    .text(run_id)
                    .text(&event.note)
                    .text("")
                    .maybe(None)
                    .text(event.evidence);
            })
            .await?;
    }
    Ok(())
}

/// Whether its repair ends it; a sticky one waits for a person.
fn is_closed(item: &Break, repaired: &HashSet<&str>) -> bool {
    item.disposition == BreakDisposition::Repaired
        && !item.is_sticky
        && repaired.contains(item.id.as_str())
}

async fn known(
    session: &mut impl Engine,
    breaks: &[Break],
) -> Result<HashMap<String, Known>, Failure> {
    let ids: Vec<&str> = breaks.iter().map(|item| item.id.as_str()).collect();
    let doing = "reading breaks";
    session.hold(doing, HOLD_BREAKS, &[keys(&ids)]).await?;
    let rows = session.rows(doing, WHAT_IS_KNOWN, &[keys(&ids)]).await?;
    rows.iter()
        .map(|row| {
            let known = Known {
                evidence: row.text("evidence")?,
                is_resolved: !row.text("resolved_run")?.is_empty(),
                first_seen_run: row.text("first_seen_run")?,
                first_seen_at: Instant(row.int("first_seen_at")?),
                event_no: row.int("event_no")?,
            };
            Ok((row.text("break_id")?, known))
        })
        .collect()
}

struct NewEvent<'a> {
    break_id: &'a str,
    event_no: i64,
    what: &'static str,
    note: String,
    evidence: &'a str,
}

/// What is told of a break that is put: that it changed, opened again, or was closed by its repair.
fn events_of<'a>(item: &'a Break, known: Option<&Known>, is_closed: bool) -> Vec<NewEvent<'a>> {
    let mut told: Vec<(&'static str, String)> = Vec::new();
    match known {
        Some(known) if known.is_resolved => told.push((
            "reopened",
            format!(
                "was first seen at {} in run {}",
                known.first_seen_at, known.first_seen_run
            ),
        )),
        Some(known) if known.evidence != item.evidence => {
            told.push(("changed", item.why.clone()));
        }
        Some(_) | None => {}
    }
    if is_closed {
        told.push(("resolved", "closed by its repair".to_owned()));
    }
    let last = known.map_or(0, |known| known.event_no);
    (last + 1..)
        .zip(told)
        .map(|(event_no, (what, note))| NewEvent {
            break_id: &item.id,
            event_no,
            what,
            note,
            evidence: &item.evidence,
        })
        .collect()
}

async fn write(
    session: &mut impl Engine,
    run_id: &str,
    as_of: Instant,
    breaks: &[Break],
    known: &HashMap<String, Known>,
    repaired: &HashSet<&str>,
) -> Result<(), Failure> {
    let run: Arc<str> = run_id.into();
    // One statement puts a row once: of two breaks of one id, the last.
    let mut last: HashMap<&str, &Break> = HashMap::with_capacity(breaks.len());
    for item in breaks {
        last.insert(&item.id, item);
    }
    let breaks: Vec<&Break> = breaks
        .iter()
        .filter(|item| std::ptr::eq(last[item.id.as_str()], *item))
        .collect();
    session
        .write_many("writing breaks", &PUT_BREAKS, breaks.len(), |at, values| {
            let item = breaks[at];
            let (first_run, first_at) = match known.get(item.id.as_str()) {
                Some(known) if !known.is_resolved => {
                    (known.first_seen_run.as_str(), known.first_seen_at)
                }
                Some(_) | None => (run_id, as_of),
            };
            // A repair that was not applied closes nothing: a person has to look.
            let disposition = if repaired.contains(item.id.as_str()) {
                item.disposition
            } else {
                BreakDisposition::Review
            };
            values
                .text(&item.id)
                .text(item.class.as_str())
                .text(&item.source)
                .text(&item.account)
                .text(&item.operation_id)
                .text(&item.intent_id)
                .maybe(item.money.map(|money| money.minor))
                .text(
                    item.money
                        .as_ref()
                        .map_or("", |money| money.currency.as_str()),
                )
                .maybe(item.delta.map(|money| money.minor))
                .text(
                    item.delta
                        .as_ref()
                        .map_or("", |money| money.currency.as_str()),
                )
                .text(&item.why)
                .text(&item.evidence)
                .text(disposition.as_str())
                .flag(item.is_sticky)
                .text(first_run)
                .int(first_at.0)
                .shared(&run)
                .int(as_of.0)
                .text(if is_closed(item, repaired) {
                    run_id
                } else {
                    ""
                });
        })
        .await?;
    Ok(())
}

/// Resolves breaks whose subject was seen in order.
pub(super) async fn resolve(
    session: &mut impl Engine,
    run_id: &str,
    as_of: Instant,
    ids: &[String],
) -> Result<(), Failure> {
    let doing = "resolving breaks";
    for chunk in ids.chunks(KEYS_MAX) {
        let ids = keys(chunk);
        session
            .write(
                doing,
                NOTE_RESOLVED,
                &[ids.clone(), run_id.into(), as_of.0.into()],
            )
            .await?;
        session
            .write(doing, RESOLVE, &[ids.clone(), run_id.into()])
            .await?;
    }
    Ok(())
}
