//! Breaks: one row for each, and append-only events for what became of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use sqlx::sqlite::SqliteRow;
use sqlx::{Connection, Row, SqliteConnection};

use super::bulk::{Bulk, KEYS_MAX, list};
use super::failure::{Doing, unreadable};
use super::packed::word;
use crate::exit::Failure;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, CloseAs};
use crate::money::{Currency, Money};
use crate::store::contract::{BreakDetail, BreakFilter, Event, Note};
use crate::time::Instant;

/// Acknowledgements and closes count only where their evidence is the break's own.
macro_rules! breaks_where {
    ($condition:literal) => {
        concat!(
            "select b.break_id, b.class, b.source, b.account, b.operation_id, b.intent_id, ",
            "b.money_minor, b.money_currency, b.delta_minor, b.delta_currency, b.why, b.evidence, ",
            "b.disposition, b.is_sticky, b.first_seen_run, b.first_seen_at, b.last_seen_run, ",
            "b.last_seen_at, b.resolved_run, ",
            "(select e.closed_as from break_events as e where e.break_id = b.break_id ",
            "and e.what = 'closed' and e.evidence = b.evidence ",
            "order by e.event_no desc limit 1) as closed_as, ",
            "(select e.until from break_events as e where e.break_id = b.break_id ",
            "and e.what = 'acknowledged' and e.evidence = b.evidence ",
            "order by e.event_no desc limit 1) as acknowledged_until ",
            "from breaks as b where ",
            $condition,
            " order by b.break_id"
        )
    };
}

const UNRESOLVED_BREAKS: &str = breaks_where!(
    "b.resolved_run = '' and (?1 = '[]' or b.source in (select value from json_each(?1)))"
);

const ALL_BREAKS: &str =
    breaks_where!("(?1 = '[]' or b.source in (select value from json_each(?1)))");

const BREAKS_BY_PREFIX: &str = breaks_where!("b.break_id >= ?1 and b.break_id < ?1 || '~'");

const BREAKS_THAT_REPAIRS_CLOSED: &str = breaks_where!(
    "b.resolved_run <> '' and b.resolved_run in (select value from json_each(?1)) \
     and b.source in (select value from json_each(?2)) and b.disposition = 'repaired'"
);

const CONFLICTS_OF_A_RUN: &str = breaks_where!(
    "b.resolved_run = '' and b.class = 'repair_conflict' and b.first_seen_run = ?1 \
     and b.source = ?2"
);

const WHAT_IS_KNOWN: &str = "\
    select b.break_id, b.evidence, b.resolved_run, b.first_seen_run, b.first_seen_at, \
    (select coalesce(max(e.event_no), 0) from break_events as e where e.break_id = b.break_id) \
    from breaks as b where b.break_id in (select value from json_each(?1))";

const PUT_BREAKS: Bulk = Bulk {
    head: "insert into breaks (break_id, class, source, account, operation_id, intent_id, \
           money_minor, money_currency, delta_minor, delta_currency, why, evidence, disposition, \
           is_sticky, first_seen_run, first_seen_at, last_seen_run, last_seen_at, resolved_run)",
    columns: 19,
    tail: "on conflict (break_id) do update set class = excluded.class, source = excluded.source, \
           account = excluded.account, operation_id = excluded.operation_id, \
           intent_id = excluded.intent_id, money_minor = excluded.money_minor, \
           money_currency = excluded.money_currency, delta_minor = excluded.delta_minor, \
           delta_currency = excluded.delta_currency, why = excluded.why, \
           evidence = excluded.evidence, disposition = excluded.disposition, \
           is_sticky = excluded.is_sticky, first_seen_run = excluded.first_seen_run, \
           first_seen_at = excluded.first_seen_at, last_seen_run = excluded.last_seen_run, \
           last_seen_at = excluded.last_seen_at, resolved_run = excluded.resolved_run",
};

const ADD_EVENTS: Bulk = Bulk {
    head: "insert into break_events (break_id, event_no, what, done_at, done_by, run_id, note, \
           closed_as, until, evidence)",
    columns: 10,
    tail: "",
};

const NOTE_RESOLVED: &str = "\
    insert into break_events (break_id, event_no, what, done_at, done_by, run_id, note, closed_as, \
    until, evidence) \
    select b.break_id, 1 + (select coalesce(max(e.event_no), 0) from break_events as e \
    where e.break_id = b.break_id), 'resolved', ?3, '', ?2, 'seen in order', '', null, b.evidence \
    from breaks as b where b.resolved_run = '' and b.break_id in (select value from json_each(?1))";

const RESOLVE: &str = "\
    update breaks set resolved_run = ?2, disposition = 'review' where resolved_run = '' \
    and break_id in (select value from json_each(?1))";

const EVENTS_OF_A_BREAK: &str = "\
    select what, done_at, done_by, run_id, note, closed_as, until, evidence from break_events \
    where break_id = ?1 order by event_no";

const NEXT_EVENT_NO: &str =
    "select 1 + coalesce(max(event_no), 0) from break_events where break_id = ?1";

const REPAIRS_OF_A_BREAK: &str =
    "select repair_id from repairs where break_id = ?1 order by written_at, repair_id";

/// One row of [`breaks_where`].
struct Stored {
    item: Break,
    last_seen_run: String,
    last_seen_at: Instant,
    closed_as: Option<CloseAs>,
}

fn read(row: &SqliteRow, as_of: Instant) -> Result<Stored, Failure> {
    let text = |column: &str| row.try_get::<String, _>(column).doing("reading breaks");
    let int = |column: &str| row.try_get::<i64, _>(column).doing("reading breaks");
    let maybe = |column: &str| {
        row.try_get::<Option<i64>, _>(column)
            .doing("reading breaks")
    };
    let money = |minor: &str, currency: &str| -> Result<Option<Money>, Failure> {
        let Some(minor) = maybe(minor)? else {
            return Ok(None);
        };
        let currency = text(currency)?;
        let currency = word("currency", &currency, Currency::parse)?;
        Ok(Some(Money::new(minor, currency)))
    };
    let closed_as = row
        .try_get::<Option<String>, _>("closed_as")
        .doing("reading breaks")?
        .map(|how| word("closed_as", &how, CloseAs::from_word))
        .transpose()?;
    let acknowledged_until = maybe("acknowledged_until")?
        .map(Instant)
        .filter(|until| *until > as_of);
    let state = if !text("resolved_run")?.is_empty() {
        BreakState::Resolved
    } else if closed_as.is_some() {
        BreakState::Closed
    } else if acknowledged_until.is_some() {
        BreakState::Acknowledged
    } else {
        BreakState::Open
    };
    Ok(Stored {
        item: Break {
            id: text("break_id")?,
            class: word("class", &text("class")?, BreakClass::from_word)?,
            source: text("source")?,
            account: text("account")?,
            operation_id: text("operation_id")?,
            intent_id: text("intent_id")?,
            money: money("money_minor", "money_currency")?,
            delta: money("delta_minor", "delta_currency")?,
            why: text("why")?,
            evidence: text("evidence")?,
            state,
            disposition: word(
                "disposition",
                &text("disposition")?,
                BreakDisposition::from_word,
            )?,
            is_sticky: int("is_sticky")? != 0,
            first_seen_run: text("first_seen_run")?,
            first_seen_at: Instant(int("first_seen_at")?),
            acknowledged_until,
        },
        last_seen_run: text("last_seen_run")?,
        last_seen_at: Instant(int("last_seen_at")?),
        closed_as,
    })
}

async fn unresolved(
    connection: &mut SqliteConnection,
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Stored>, Failure> {
    sqlx::query(UNRESOLVED_BREAKS)
        .bind(list(sources))
        .fetch_all(connection)
        .await
        .doing("reading breaks")?
        .iter()
        .map(|row| read(row, as_of))
        .collect()
}

/// Every break that is not resolved.
pub(super) async fn open(
    connection: &mut SqliteConnection,
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    let stored = unresolved(connection, sources, as_of).await?;
    Ok(stored.into_iter().map(|stored| stored.item).collect())
}

/// How persons closed breaks that are not resolved.
pub(super) async fn closes(
    connection: &mut SqliteConnection,
    sources: &[&str],
) -> Result<Vec<(String, CloseAs)>, Failure> {
    let stored = unresolved(connection, sources, Instant::MAX).await?;
    Ok(stored
        .into_iter()
        .filter_map(|stored| Some((stored.item.id, stored.closed_as?)))
        .collect())
}

/// Breaks by filter.
pub(super) async fn filtered(
    connection: &mut SqliteConnection,
    filter: &BreakFilter<'_>,
) -> Result<Vec<Break>, Failure> {
    let wants_resolved = filter.states.contains(&BreakState::Resolved);
    let question = if wants_resolved {
        ALL_BREAKS
    } else {
        UNRESOLVED_BREAKS
    };
    let rows = sqlx::query(question)
        .bind(list(filter.sources))
        .fetch_all(connection)
        .await
        .doing("reading breaks")?;
    let mut found = Vec::new();
    for row in &rows {
        let item = read(row, filter.as_of)?.item;
        if (filter.states.is_empty() || filter.states.contains(&item.state))
            && filter.class.is_none_or(|class| class == item.class)
            && item.id.starts_with(filter.id_prefix)
        {
            found.push(item);
        }
    }
    Ok(found)
}

/// Breaks that repairs of these runs closed.
pub(super) async fn closed_by_repairs(
    connection: &mut SqliteConnection,
    runs: &[String],
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    sqlx::query(BREAKS_THAT_REPAIRS_CLOSED)
        .bind(list(runs))
        .bind(list(sources))
        .fetch_all(connection)
        .await
        .doing("reading breaks")?
        .iter()
        .map(|row| Ok(read(row, as_of)?.item))
        .collect()
}

/// Conflicts that a run opened.
pub(super) async fn conflicts_of(
    connection: &mut SqliteConnection,
    run_id: &str,
    source: &str,
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    sqlx::query(CONFLICTS_OF_A_RUN)
        .bind(run_id)
        .bind(source)
        .fetch_all(connection)
        .await
        .doing("reading breaks")?
        .iter()
        .map(|row| Ok(read(row, as_of)?.item))
        .collect()
}

/// What the store knows of a break before it is put.
struct Known {
    evidence: String,
    is_resolved: bool,
    first_seen_run: String,
    first_seen_at: Instant,
    event_no: i64,
}

/// Puts the breaks of a run. `closed` are the ids of those that repairs of this run closed.
pub(super) async fn put(
    connection: &mut SqliteConnection,
    run_id: &str,
    as_of: Instant,
    breaks: &[Break],
    closed: &HashSet<&str>,
) -> Result<(), Failure> {
    for chunk in breaks.chunks(KEYS_MAX) {
        let known = known(connection, chunk).await?;
        let events: Vec<NewEvent<'_>> = chunk
            .iter()
            .flat_map(|item| {
                let known = known.get(item.id.as_str());
                events_of(item, known, closed.contains(item.id.as_str()))
            })
            .collect();
        write(connection, run_id, as_of, chunk, &known, closed).await?;
        ADD_EVENTS
            .write(connection, "writing breaks", events.len(), |at, values| {
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

async fn known(
    connection: &mut SqliteConnection,
    breaks: &[Break],
) -> Result<HashMap<String, Known>, Failure> {
    let ids: Vec<&str> = breaks.iter().map(|item| item.id.as_str()).collect();
    let rows: Vec<(String, String, String, String, i64, i64)> = sqlx::query_as(WHAT_IS_KNOWN)
        .bind(list(&ids))
        .fetch_all(connection)
        .await
        .doing("reading breaks")?;
    Ok(rows
        .into_iter()
        .map(
            |(id, evidence, resolved_run, first_seen_run, first_seen_at, event_no)| {
                let known = Known {
                    evidence,
                    is_resolved: !resolved_run.is_empty(),
                    first_seen_run,
                    first_seen_at: Instant(first_seen_at),
                    event_no,
                };
                (id, known)
            },
        )
        .collect())
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
    connection: &mut SqliteConnection,
    run_id: &str,
    as_of: Instant,
    breaks: &[Break],
    known: &HashMap<String, Known>,
    closed: &HashSet<&str>,
) -> Result<(), Failure> {
    let run: Arc<str> = run_id.into();
    PUT_BREAKS
        .write(connection, "writing breaks", breaks.len(), |at, values| {
            let item = &breaks[at];
            let is_closed = closed.contains(item.id.as_str());
            let (first_run, first_at) = match known.get(item.id.as_str()) {
                Some(known) if !known.is_resolved => {
                    (known.first_seen_run.as_str(), known.first_seen_at)
                }
                Some(_) | None => (run_id, as_of),
            };
            // A repair that was not applied closes nothing: a person has to look.
            let disposition = if is_closed || item.is_sticky {
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
                .text(if is_closed { run_id } else { "" });
        })
        .await?;
    Ok(())
}

/// Resolves breaks whose subject was seen in order.
pub(super) async fn resolve(
    connection: &mut SqliteConnection,
    run_id: &str,
    as_of: Instant,
    ids: &[String],
) -> Result<(), Failure> {
    let doing = "resolving breaks";
    for chunk in ids.chunks(KEYS_MAX) {
        let ids = list(chunk);
        sqlx::query(NOTE_RESOLVED)
            .bind(&ids)
            .bind(run_id)
            .bind(as_of.0)
            .execute(&mut *connection)
            .await
            .doing(doing)?;
        sqlx::query(RESOLVE)
            .bind(&ids)
            .bind(run_id)
            .execute(&mut *connection)
            .await
            .doing(doing)?;
    }
    Ok(())
}

/// One break with its history.
pub(super) async fn detail(
    connection: &mut SqliteConnection,
    id_prefix: &str,
    as_of: Instant,
) -> Result<BreakDetail, Failure> {
    let stored = only(connection, id_prefix, as_of).await?;
    let rows: Vec<(
        String,
        i64,
        String,
        String,
        String,
        String,
        Option<i64>,
        String,
    )> = sqlx::query_as(EVENTS_OF_A_BREAK)
        .bind(&stored.item.id)
        .fetch_all(&mut *connection)
        .await
        .doing("reading breaks")?;
    let mut events = Vec::new();
    for (what, at, by, run_id, note, closed_as, until, evidence) in rows {
        events.push(Event {
            what,
            at: Instant(at),
            by,
            run_id,
            note,
            closed_as: match closed_as.as_str() {
                "" => None,
                how => Some(CloseAs::from_word(how).ok_or_else(|| unreadable("closed_as", how))?),
            },
            until: until.map(Instant),
            evidence,
        });
    }
    let repairs = sqlx::query_scalar(REPAIRS_OF_A_BREAK)
        .bind(&stored.item.id)
        .fetch_all(connection)
        .await
        .doing("reading breaks")?;
    Ok(BreakDetail {
        item: stored.item,
        last_seen_run: stored.last_seen_run,
        last_seen_at: stored.last_seen_at,
        events,
        repairs,
    })
}

/// The one break whose id starts so.
async fn only(
    connection: &mut SqliteConnection,
    id_prefix: &str,
    as_of: Instant,
) -> Result<Stored, Failure> {
    let mut rows = sqlx::query(BREAKS_BY_PREFIX)
        .bind(id_prefix)
        .fetch_all(connection)
        .await
        .doing("reading breaks")?;
    super::only_one("break", id_prefix, &mut rows).and_then(|row| read(&row, as_of))
}

/// A person's word on a break.
#[derive(Clone, Copy)]
pub(super) enum Word {
    /// Silence until then.
    Acknowledge(Instant),
    /// The end of it.
    Close(CloseAs),
}

/// Records a person's word, bound to the evidence as it stands.
pub(super) async fn say(
    connection: &mut SqliteConnection,
    id_prefix: &str,
    what: Word,
    note: &Note<'_>,
) -> Result<Break, Failure> {
    let doing = "recording a decision";
    let mut transaction = connection
        .begin_with("begin immediate")
        .await
        .doing(doing)?;
    super::open::assert_version(&mut transaction).await?;
    let stored = only(&mut transaction, id_prefix, note.at).await?;
    let item = &stored.item;
    match item.state {
        BreakState::Open | BreakState::Acknowledged => {}
        BreakState::Closed | BreakState::Resolved => {
            return Err(Failure::rejected(format!(
                "break {} is {} already",
                item.id, item.state
            )));
        }
    }
    let (what, closed_as, until) = match what {
        Word::Acknowledge(until) if until <= note.at => {
            return Err(Failure::rejected(format!(
                "an acknowledgement until {until} would end before it begins"
            )));
        }
        Word::Acknowledge(until) => ("acknowledged", "", Some(until.0)),
        Word::Close(how) => ("closed", how.as_str(), None),
    };
    let event_no: i64 = sqlx::query_scalar(NEXT_EVENT_NO)
        .bind(&item.id)
        .fetch_one(&mut *transaction)
        .await
        .doing(doing)?;
    ADD_EVENTS
        .write(&mut transaction, doing, 1, |_, values| {
            values
                .text(&item.id)
                .int(event_no)
                .text(what)
                .int(note.at.0)
                .text(note.by)
                .text("")
                .text(note.reason)
                .text(closed_as)
                .maybe(until)
                .text(&item.evidence);
        })
        .await?;
    let after = only(&mut transaction, &item.id, note.at).await?;
    transaction.commit().await.doing(doing)?;
    Ok(after.item)
}
