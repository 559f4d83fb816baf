//! Our own side of a run: a file, the store's own table, or the company's table, open for as long as the run lasts.

use std::borrow::Cow;

use crate::exit::Failure;
use crate::intents::contract::IntentTable;
use crate::intents::sql::table::SqlTable;
use crate::meter::Meter;
use crate::model::intent::Intents;
use crate::model::operation::Operations;
use crate::model::run::Window;
use crate::report::{Check, CheckStatus};
use crate::settings::{IntentsSettings, Settings};
use crate::time::{Instant, Span};

use super::gather::{Keys, Ours};
use super::interrupt::Interrupt;
use super::prepare::{Prepared, read_intents};

/// Our own side.
#[allow(clippy::large_enum_variant, reason = "a run holds one of it")]
pub(crate) enum OwnSide {
    /// Rows of a file; `None` = the store's own table.
    Rows(Option<Intents>),
    /// The company's table.
    Table(Box<SqlTable>),
}

impl OwnSide {
    /// Reads the file, or opens the table.
    pub(crate) async fn open(
        settings: &Settings,
        sources: &[Prepared<'_>],
        interrupt: &Interrupt,
        meter: Meter,
    ) -> Result<OwnSide, Failure> {
        // Where somebody asked to stop, every source is told to be stopped, and none asks for our side.
        let Some(spec) = &settings.intents.sql else {
            let settings = settings.clone();
            let reading = interrupt
                .aside(move || read_intents(&settings, &meter))
                .await;
            return reading.unwrap_or(Ok(None)).map(OwnSide::Rows);
        };
        let Ok(table) = interrupt.or(SqlTable::open(spec)).await else {
            return Ok(OwnSide::Rows(None));
        };
        let table = table?;
        for prepared in sources {
            let spans = prepared.spans;
            table.assert_reach(&prepared.source.name, spans.lag, spans.lookback)?;
        }
        Ok(OwnSide::Table(Box::new(table)))
    }

    /// For one source. The last may have the rows of a file, so that they need not be held twice.
    pub(crate) fn lend(&mut self, is_last: bool) -> Ours<'_, SqlTable> {
        match self {
            OwnSide::Rows(rows) if is_last => Ours::File(rows.take().map(Cow::Owned)),
            OwnSide::Rows(rows) => Ours::File(rows.as_ref().map(Cow::Borrowed)),
            OwnSide::Table(table) => Ours::Table(table),
        }
    }

    /// What a report says about it.
    pub(crate) fn check(
        &self,
        settings: &IntentsSettings,
        sources: &[Prepared<'_>],
        as_of: Instant,
    ) -> Option<Check> {
        let (OwnSide::Table(table), Some(spec)) = (self, &settings.sql) else {
            return None;
        };
        let lag = sources.iter().map(|prepared| prepared.spans.lag).min();
        let wanted = as_of.minus(lag.unwrap_or(Span::ZERO));
        Some(Check {
            name: format!("commit order {}", settings.name),
            status: if table.order().is_held(wanted) {
                CheckStatus::Warn
            } else {
                CheckStatus::Info
            },
            detail: table.order().told(spec.max_txn, wanted),
        })
    }
}

impl<T: IntentTable> Ours<'_, T> {
    /// A window that ends where rows of ours may still be hidden: what lies behind is judged when they can be seen.
    pub(crate) fn bounded(&self, window: Window) -> Window {
        match self {
            Ours::Table(table) => {
                let until = table.settled_until().unwrap_or(Instant::MAX);
                Window {
                    to: window.to.min(until).max(window.from),
                    ..window
                }
            }
            Ours::File(_) => window,
        }
    }
}

/// Rows of the company's table for a comparison that has no memory: those since a time, and whatever the keys of both sides
/// lead to.
pub(crate) async fn read_table<T: IntentTable>(
    table: &mut T,
    since: Instant,
    until: Instant,
    feeds: &[&Operations],
) -> Result<Intents, Failure> {
    let mut asked = Keys::default();
    for feed in feeds {
        asked.operations_of(feed);
    }
    table.begin(until.minus(Span(1))).await?;
    table.since(since).await?;
    asked.intents_of(table.rows(), 0);
    loop {
        let keys = asked.take();
        if keys.is_empty() {
            return table.end().await;
        }
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let known = table.rows().len();
        table.with_keys(&keys).await?;
        asked.intents_of(table.rows(), known);
    }
}
