//! Commit order: whether a transaction that is still open may hide rows that say they were created long ago.
//!
//! A row becomes visible when its transaction ends, and bears the time at which it began. Whoever has read up to a time and
//! never looks behind it again misses such a row. How far that can be excluded is a level:
//!
//! | level | needs | rows are all visible that were created |
//! |---|---|---|
//! | L0 | nothing; `max_txn` is a promise of the settings | `max_txn` ago; what is read again reaches further back than that |
//! | L1 | `PostgreSQL`, `created_at` with the default `now()`, the role `pg_read_all_stats` | before every transaction began that is still open |
//! | L2 | `PostgreSQL`, a column of type `xid8` with the default `pg_current_xact_id()` (`xid_column`) | whatever time they bear, in the run after their transaction ended |
//!
//! # Decisions
//!
//! - At L1 every open transaction of the database counts, whether it has written or not: it may yet, and its rows will bear
//!   its beginning.
//! - The sessions are looked at before the rows are, in a transaction of their own. A few seconds are taken off, because a
//!   session publishes its beginning a moment after it.
//! - At L2 each run keeps the number below which every transaction had ended, as its own picture saw it, and the next one
//!   reads again whatever bears that number or a later one. Nothing is concluded from such a number about times: a
//!   transaction may begin long before it takes one. Prepared transactions count, and so does whatever any session does.
//! - A restored database counts anew. It is another one, and what was kept for the old one is not asked of it.
//! - A prepared transaction shows no session. Where there is one, or a session that does not say what it does, it is L0.
//! - A standby shows what was replayed; rows are visible up to there, less `max_txn`.

use super::dialect::{Engine, Holds};
use super::session::{Session, Statement};
use super::shape::Shape;
use super::spec::{Role, Spec};
use crate::exit::Failure;
use crate::time::{Instant, Span};

/// What is taken off the beginning of the oldest open transaction.
const PUBLISHED_LATE: Span = Span(5_000_000);

/// How well the order of commits is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// By a promise of the settings.
    L0,
    /// By the transactions that are open.
    L1,
    /// By the numbers of transactions.
    L2,
}

/// The level that was reached, and what follows from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// The level.
    pub level: Level,
    /// Why it is not a better one; empty where it is the best.
    pub because: String,
    /// Rows created before are all visible; `None` = nothing is known to be hidden.
    pub settled_until: Option<Instant>,
}

/// The expressions of a default by which a row bears the beginning of its transaction.
const BEGINNINGS: [&str; 4] = [
    "now()",
    "CURRENT_TIMESTAMP",
    "transaction_timestamp()",
    "('now'::text)::timestamp with time zone",
];

/// The default by which a row bears the number of its transaction.
const NUMBER: &str = "pg_current_xact_id()";

/// Below which number every transaction had ended, as the present picture sees it, and in which database.
const FENCE: &str = "\
    select pg_catalog.pg_snapshot_xmin(pg_catalog.pg_current_snapshot())::text, \
    (select d.oid::text from pg_catalog.pg_database as d where d.datname = pg_catalog.current_database())";

/// Whether the rows bear the number of the transaction that wrote them.
pub(super) fn is_numbered(shape: &Shape, name: &str) -> bool {
    shape.engine == Engine::Postgres
        && shape
            .column(name)
            .is_some_and(|column| column.type_name == "xid8" && column.default == NUMBER)
}

/// The fence of the picture that is open, by a name that no other database gives it.
pub(super) async fn fence(session: &mut Session<'_>) -> Result<Option<(String, u64)>, Failure> {
    let doing = "looking which transactions have ended";
    let row = session.all(doing, &Statement::plain(FENCE)).await?.concat();
    let (Some(number), Some(database)) = (row.first(), row.get(1)) else {
        return Ok(None);
    };
    let number = number.parse().ok();
    Ok(number.map(|number| (format!("transactions of database {database}"), number)))
}

const SESSIONS: &str = "\
    select pg_catalog.pg_is_in_recovery()::text, \
    pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage')::text, \
    (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint::text, \
    coalesce((select (extract(epoch from min(a.xact_start)) * 1000000)::bigint::text \
      from pg_catalog.pg_stat_activity as a where a.datname = current_database() \
      and a.pid <> pg_catalog.pg_backend_pid() and a.backend_type <> 'autovacuum worker'), ''), \
    (select count(*)::text from pg_catalog.pg_stat_activity as a \
      where a.datname = current_database() and a.pid <> pg_catalog.pg_backend_pid() \
      and a.backend_type = 'client backend' \
      and (a.state is null or a.state = 'disabled')), \
    (select count(*)::text from pg_catalog.pg_prepared_xacts where database = current_database()), \
    coalesce((extract(epoch from pg_catalog.pg_last_xact_replay_timestamp()) * 1000000)::bigint::text, '')";

/// Finds the best level. Asked before the rows are, outside of their transaction.
pub(super) async fn order(
    session: &mut Session<'_>,
    spec: &Spec,
    shape: &Shape,
) -> Result<Order, Failure> {
    let order = by_sessions(session, spec, shape).await?;
    let Some(name) = spec.xid_column.as_deref() else {
        return Ok(order);
    };
    if is_numbered(shape, name) {
        return Ok(Order {
            level: Level::L2,
            because: String::new(),
            ..order
        });
    }
    let not = format!("column \"{name}\" has not the type xid8 and the default {NUMBER}");
    let because = match order.because.as_str() {
        "" => not,
        other => format!("{not}; {other}"),
    };
    Ok(Order { because, ..order })
}

async fn by_sessions(
    session: &mut Session<'_>,
    spec: &Spec,
    shape: &Shape,
) -> Result<Order, Failure> {
    let by_promise = |because: String| Order {
        level: Level::L0,
        because,
        settled_until: None,
    };
    if shape.engine != Engine::Postgres {
        let because = "this database does not tell which transactions are open".to_owned();
        return Ok(by_promise(because));
    }
    session.begin().await?;
    let doing = "looking at open transactions";
    let answer = session.all(doing, &Statement::plain(SESSIONS)).await;
    session.end().await?;
    let row = answer?.into_iter().next().unwrap_or_default();
    let cell = |at: usize| row.get(at).map_or("", String::as_str);
    let instant = |at: usize| cell(at).parse().ok().map(Instant);
    if cell(0) == "true" {
        // Nothing is known to be visible where it is not known what was replayed.
        let replayed = instant(6).map_or(Instant::MIN, |at| at.minus(spec.max_txn));
        return Ok(Order {
            settled_until: Some(replayed),
            ..by_promise(
                "it is a standby, which does not see the transactions of its primary".to_owned(),
            )
        });
    }
    let created = spec.column(Role::CreatedAt).unwrap_or_default();
    let bears_beginning = shape.column(created).is_some_and(|column| {
        column.holds == Holds::Instant && BEGINNINGS.contains(&column.default.as_str())
    });
    let because = if !bears_beginning {
        format!(
            "column \"{created}\" has not the type timestamptz and the default now(), so it does not bear the beginning of its transaction"
        )
    } else if cell(1) != "true" {
        "the role is no member of pg_read_all_stats, and does not see which transactions are open"
            .to_owned()
    } else if cell(5) != "0" {
        format!("{} prepared transactions are open", cell(5))
    } else if cell(4) != "0" {
        format!(
            "{} sessions do not say what they do (track_activities)",
            cell(4)
        )
    } else {
        String::new()
    };
    let (Some(now), true) = (instant(2), because.is_empty()) else {
        return Ok(by_promise(because));
    };
    let oldest = instant(3).map_or(now, |oldest| oldest.min(now));
    Ok(Order {
        level: Level::L1,
        because,
        settled_until: Some(oldest.minus(PUBLISHED_LATE)),
    })
}

/// At level L0 nothing but the reach of a run excludes that a row is missed: fails where it is too short, else gives the
/// sum.
pub(super) fn assert_reach(
    order: &Order,
    max_txn: Span,
    source: &str,
    (lag, lookback): (Span, Span),
) -> Result<String, Failure> {
    let reach = Span(lag.0.saturating_add(lookback.0));
    match order.level {
        Level::L0 => {}
        Level::L1 => {
            let not = match order.because.as_str() {
                "" => String::new(),
                because => format!("; {because}"),
            };
            return Ok(format!(
                "L1: open transactions are seen, and their rows are waited for{not}"
            ));
        }
        Level::L2 => {
            return Ok(
                "L2: every row is read in the run after its transaction has ended, whatever time it bears"
                    .to_owned(),
            );
        }
    }
    if reach >= max_txn {
        return Ok(format!(
            "L0: lag {lag} + lookback {lookback} = {reach} ≥ max_txn {max_txn}; {}",
            order.because
        ));
    }
    Err(Failure::rejected(format!(
        "source {source}: lag {lag} + lookback {lookback} is less than max_txn {max_txn} of [intents]"
    ))
    .why(format!(
        "a row that is committed so long after it was created would never be read (level L0: {})",
        order.because
    ))
    .remedy("raise lookback, or lower max_txn to what is true"))
}

impl Order {
    /// What a report says about it. `max_txn` is the promise of the settings, `wanted` until when rows are judged.
    pub fn told(&self, max_txn: Span, wanted: Instant) -> String {
        let level = match self.level {
            Level::L0 => format!(
                "L0: every row is taken to be visible {max_txn} after it was created (max_txn); {}",
                self.because
            ),
            Level::L1 => {
                "L1: no transaction that was open can hide a row of what was judged".to_owned()
            }
            Level::L2 => {
                "L2: whatever a transaction that was open may hide is read in the run after it has ended"
                    .to_owned()
            }
        };
        match self.settled_until {
            Some(Instant::MIN) => {
                format!("{level}; it is not known what was replayed, so nothing new is judged")
            }
            Some(until) if until < wanted => format!(
                "{level}; rows are judged until {until} and not until {wanted}, since a transaction is open since then"
            ),
            _ => level,
        }
    }

    /// Whether what is judged ends noticeably before it should.
    pub fn is_held(&self, wanted: Instant) -> bool {
        /// Shorter than the time between two runs of any schedule.
        const NOTICEABLE: Span = Span(60_000_000);
        self.settled_until
            .is_some_and(|until| until.plus(NOTICEABLE) < wanted)
    }
}
