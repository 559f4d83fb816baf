//! Breaks as they stand: their state, their history, and what a person says of them.

use super::breaks::{ADD_EVENTS, HOLD_BREAKS};
use super::chain::{self, Added};
use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, Values, keys};
use crate::exit::Failure;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, CloseAs};
use crate::money::{Currency, Money};
use crate::store::contract::{BreakDetail, BreakFilter, Event, Note};
use crate::store::rows::{maybe_word, word};
use crate::time::Instant;

/// Acknowledgements and closes count only where their evidence is the break's own.
macro_rules! breaks_where {
    ($($condition:tt)+) => {
        sql!(
            "select b.break_id, b.class, b.source, b.account, b.operation_id, b.intent_id, \
             b.money_minor, b.money_currency, b.delta_minor, b.delta_currency, b.why, b.evidence, \
             b.disposition, b.is_sticky, b.first_seen_run, b.first_seen_at, b.last_seen_run, \
             b.last_seen_at, b.resolved_run, \
             (select e.closed_as from break_events as e where e.break_id = b.break_id \
             and e.what = 'closed' and e.evidence = b.evidence \
             order by e.event_no desc limit 1) as closed_as, \
             (select e.until from break_events as e where e.break_id = b.break_id \
             and e.what = 'acknowledged' and e.evidence = b.evidence \
             order by e.event_no desc limit 1) as acknowledged_until \
             from breaks as b where "
            $($condition)+
            " order by b.break_id"
        )
    };
}

const UNRESOLVED_BREAKS: Sql = breaks_where!(
    "b.resolved_run = '' and (" [is_empty 1] " or b.source " [in 1] ")"
);

const ALL_BREAKS: Sql = breaks_where!("(" [is_empty 1] " or b.source " [in 1] ")");

const BREAKS_BY_PREFIX: Sql = breaks_where!("b.break_id >= $1 and b.break_id < $1 || '~'");

const BREAKS_THAT_REPAIRS_CLOSED: Sql = breaks_where!(
    "b.resolved_run <> '' and b.resolved_run " [in 1] " \
     and b.source " [in 2] " and b.disposition = 'repaired'"
);

const CONFLICTS_OF_A_RUN: Sql = breaks_where!(
    "b.resolved_run = '' and b.class = 'repair_conflict' and b.first_seen_run = $1 \
     and b.source = $2"
);

const EVENTS_OF_A_BREAK: Sql = sql!(
    "select what, done_at, done_by, run_id, note, closed_as, until, evidence from break_events \
    where break_id = $1 order by event_no"
);

const NEXT_EVENT_NO: Sql =
    sql!("select 1 + coalesce(max(event_no), 0) as event_no from break_events where break_id = $1");

const REPAIRS_OF_A_BREAK: Sql =
    sql!("select repair_id from repairs where break_id = $1 order by written_at, repair_id");

/// One row of a question made by `breaks_where`.
struct Stored {
    item: Break,
    last_seen_run: String,
    last_seen_at: Instant,
    closed_as: Option<CloseAs>,
}

fn read(row: &impl Columns, as_of: Instant) -> Result<Stored, Failure> {
    let text = |column: &str| row.text(column);
    let int = |column: &str| row.int(column);
    let money = |minor: &str, currency: &str| -> Result<Option<Money>, Failure> {
        let Some(minor) = row.maybe(minor)? else {
            return Ok(None);
        };
        let currency = text(currency)?;
        let currency = word("currency", &currency, Currency::parse)?;
        Ok(Some(Money::new(minor, currency)))
    };
    let closed_as = row
        .maybe_text("closed_as")?
        .map(|how| word("closed_as", &how, CloseAs::from_word))
        .transpose()?;
    let acknowledged_until = row
        .maybe("acknowledged_until")?
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
    session: &mut impl Engine,
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Stored>, Failure> {
    session
        .rows("reading breaks", UNRESOLVED_BREAKS, &[keys(sources)])
        .await?
        .iter()
        .map(|row| read(row, as_of))
        .collect()
}

/// Every break that is not resolved.
pub(super) async fn open(
    session: &mut impl Engine,
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    let stored = unresolved(session, sources, as_of).await?;
    Ok(stored.into_iter().map(|stored| stored.item).collect())
}

/// How persons closed breaks that are not resolved.
pub(super) async fn closes(
    session: &mut impl Engine,
    sources: &[&str],
) -> Result<Vec<(String, CloseAs)>, Failure> {
    let stored = unresolved(session, sources, Instant::MAX).await?;
    Ok(stored
        .into_iter()
        .filter_map(|stored| Some((stored.item.id, stored.closed_as?)))
        .collect())
}

/// Breaks by filter.
pub(super) async fn filtered(
    session: &mut impl Engine,
    filter: &BreakFilter<'_>,
) -> Result<Vec<Break>, Failure> {
    let wants_resolved = filter.states.contains(&BreakState::Resolved);
    let question = if wants_resolved {
        ALL_BREAKS
    } else {
        UNRESOLVED_BREAKS
    };
    let rows = session
        .rows("reading breaks", question, &[keys(filter.sources)])
        .await?;
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
    session: &mut impl Engine,
    runs: &[String],
    sources: &[&str],
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    session
        .rows(
            "reading breaks",
            BREAKS_THAT_REPAIRS_CLOSED,
            &[keys(runs), keys(sources)],
        )
        .await?
        .iter()
        .map(|row| Ok(read(row, as_of)?.item))
        .collect()
}

/// Conflicts that a run opened.
pub(super) async fn conflicts_of(
    session: &mut impl Engine,
    run_id: &str,
    source: &str,
    as_of: Instant,
) -> Result<Vec<Break>, Failure> {
    session
        .rows(
            "reading breaks",
            CONFLICTS_OF_A_RUN,
            &[run_id.into(), source.into()],
        )
        .await?
        .iter()
        .map(|row| Ok(read(row, as_of)?.item))
        .collect()
}

/// One break with its history.
pub(super) async fn detail(
    session: &mut impl Engine,
    id_prefix: &str,
    as_of: Instant,
) -> Result<BreakDetail, Failure> {
    let stored = only(session, id_prefix, as_of).await?;
    let rows = session
        .rows(
            "reading breaks",
            EVENTS_OF_A_BREAK,
            &[(&stored.item.id).into()],
        )
        .await?;
    let mut events = Vec::new();
    for row in &rows {
        events.push(Event {
            what: row.text("what")?,
            at: Instant(row.int("done_at")?),
            by: row.text("done_by")?,
            run_id: row.text("run_id")?,
            note: row.text("note")?,
            closed_as: maybe_word("closed_as", &row.text("closed_as")?, CloseAs::from_word)?,
            until: row.maybe("until")?.map(Instant),
            evidence: row.text("evidence")?,
        });
    }
    let repairs = session
        .rows(
            "reading breaks",
            REPAIRS_OF_A_BREAK,
            &[(&stored.item.id).into()],
        )
        .await?;
    Ok(BreakDetail {
        item: stored.item,
        last_seen_run: stored.last_seen_run,
        last_seen_at: stored.last_seen_at,
        events,
        repairs: repairs
            .iter()
            .map(|row| row.text("repair_id"))
            .collect::<Result<_, Failure>>()?,
    })
}

/// The one break whose id starts so.
async fn only(
    session: &mut impl Engine,
    id_prefix: &str,
    as_of: Instant,
) -> Result<Stored, Failure> {
    let mut rows = session
        .rows("reading breaks", BREAKS_BY_PREFIX, &[id_prefix.into()])
        .await?;
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
    session: &mut impl Engine,
    id_prefix: &str,
    what: Word,
    note: &Note<'_>,
) -> Result<Break, Failure> {
    let doing = "recording a decision";
    let mut stored = only(session, id_prefix, note.at).await?;
    let id = stored.item.id;
    session.hold(doing, HOLD_BREAKS, &[keys(&[&id])]).await?;
    stored = only(session, &id, note.at).await?;
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
    let event_no = session
        .one(doing, NEXT_EVENT_NO, &[(&item.id).into()])
        .await?
        .int("event_no")?;
    session
        .write_many(doing, &ADD_EVENTS, 1, |_, values| {
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
    let mut added = Added::default();
    added.word(&item.id, event_no);
    chain::append(session, &added).await?;
    let after = only(session, &item.id, note.at).await?;
    Ok(after.item)
}
