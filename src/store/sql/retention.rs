//! Forgetting operations, a generation at a time.
//!
//! # Decisions
//!
//! - A generation is what was first seen between two prunes. `PostgreSQL` keeps each in a partition of its own, which is dropped
//!   whole: nothing is deleted row by row beside a run. No run creates or drops one, so no run needs the right to.
//! - Their keys stay for good, in a table that is not parted, and so do links, breaks, repairs and the ledger. A key that was
//!   seen once is never new again, and an intent that was answered stays answered.
//! - What decides is the watermark and what is open, never the calendar alone: a generation goes once all of it lies before
//!   everything that may still get a verdict, and nothing that is open, pending or young hangs on a row of it; and only after
//!   every older one. While nothing is read, nothing goes.
//! - Whoever writes operations asks for the open generation first, and holds the answer to the end of its transaction; opening
//!   another one waits for that. So no row comes into a generation that is closed.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine, keys};
use crate::exit::Failure;
use crate::model::stored::ClaimedOperation;
use crate::model::verdict::Rule;
use crate::store::contract::{Generation, Retention};
use crate::store::rows::maybe_word;
use crate::time::{Instant, Span};

/// A row may bear a time that its own clock was ahead by; later than this it is not believed. A day covers every zone mistake.
const AHEAD_MAX: Span = Span::hours(24);

const OPEN_GENERATION: Sql =
    sql!("select generation, opened_at from generations where closed_at is null");

const HAS_ROWS: Sql = sql!("select generation from operations where generation = $1 limit 1");

const CLOSE_GENERATION: Sql = sql!("update generations set closed_at = $2 where generation = $1");

const OPEN_ANOTHER: Sql = sql!("insert into generations (generation, opened_at) values ($1, $2)");

const CLOSED_GENERATIONS: Sql = sql!(
    "select generation, opened_at, closed_at from generations \
     where closed_at is not null and dropped_at is null order by generation"
);

const WHAT_A_GENERATION_HOLDS: Sql = sql!(
    "select source, count(*) as operations, max(occurred_at) as newest from operations \
     where generation = $1 group by source order by source"
);

const NOTE_DROPPED: Sql = sql!("update generations set dropped_at = $2 where generation = $1");

const RAISE_HORIZON: Sql = sql!(
    "insert into horizons (source, horizon, forgotten) values ($1, $2, $3) \
     on conflict (source) do update set horizon = " greatest "(horizons.horizon, excluded.horizon), \
     forgotten = horizons.forgotten + excluded.forgotten"
);

/// Of intents that nothing is linked with, those that share a key with generation $1.
const SETTLE_INTENTS: Sql = sql!(
    "with unlinked as materialized (\
     select i.scope, i.intent_id, i.idempotency_key, i.reference, i.processor_ref from intents as i \
     where i.superseded_by = '' and i.status in ('succeeded', 'lost') and not exists (select 1 \
     from matches as m where m.intent_id = i.intent_id and m.scope = i.scope and m.is_principal = 1) \
     and not exists (select 1 from matches as m where m.intent_id = i.intent_id and m.scope = i.scope \
     and m.is_principal = 0)) \
     insert into settled_intents (scope, intent_id, generation) \
     select u.scope, u.intent_id, $1 from unlinked as u where exists (select 1 from operations as o \
     where u.processor_ref <> '' and o.operation_id = u.processor_ref and o.generation = $1) \
     or exists (select 1 from operations as o where u.processor_ref <> '' and o.object_id <> '' \
     and o.object_id = u.processor_ref and o.generation = $1) \
     or exists (select 1 from operations as o where u.reference <> '' and o.reference <> '' \
     and o.reference = u.reference and o.generation = $1) \
     or exists (select 1 from operations as o where u.idempotency_key <> '' and o.reference <> '' \
     and o.reference = u.idempotency_key and o.generation = $1) \
     or exists (select 1 from operations as o where o.reference <> '' and o.reference = u.intent_id \
     and o.generation = $1) on conflict do nothing"
);

const SETTLED_INTENTS: Sql = sql!("select intent_id from settled_intents where scope = $1");

const HORIZON: Sql = sql!("select horizon from horizons where source = $1");

const CLAIMED: Sql = sql!(
    "select c.operation_id, c.account, coalesce(m.intent_id, '') as intent_id, \
     coalesce(m.rule, '') as rule from operation_claims as c \
     left join matches as m on m.source = c.source and m.operation_id = c.operation_id \
     and m.account = c.account where c.source = $1 and c.operation_id " [in 2]
);

const KNOWN_SOURCES: Sql =
    sql!("select source from leases union select source from watermarks order by source");

/// What is open, pending or young, and hangs on a row of generation $1: the first that is found. $2 tells for each source from
/// when on its rows may still get a verdict. Links are looked for twice, since each of their two indexes holds one kind of them.
const WHAT_HOLDS_IT: Sql = sql!(
    "with floors as (select planned.value ->> 'source' as source, \
     cast(planned.value ->> 'floor' as bigint) as floor from " [planned 2] "), \
     open_breaks as materialized (select b.break_id, b.source, b.account, b.operation_id, b.intent_id \
     from breaks as b where b.resolved_run = '' and not exists (select 1 from break_events as e \
     where e.break_id = b.break_id and e.what = 'closed' and e.evidence = b.evidence)), \
     subjects as materialized (\
     select o.source, o.operation_id, o.account, o.parent_id, o.object_id, o.payout_id \
     from floors as f cross join operations as o where o.source = f.source and o.occurred_at >= f.floor \
     union all \
     select o.source, o.operation_id, o.account, o.parent_id, o.object_id, o.payout_id \
     from operations as o where o.status = 'pending' and o.ignore_reason = '' \
     union all \
     select o.source, o.operation_id, o.account, o.parent_id, o.object_id, o.payout_id \
     from open_breaks as b cross join operations as o where o.operation_id = b.operation_id \
     and o.source = b.source and o.account = b.account), \
     asked as materialized (\
     select i.scope, i.intent_id, i.idempotency_key, i.reference, i.processor_ref, i.parent_intent_id \
     from intents as i where i.superseded_by = '' and (i.status in ('created', 'pending') \
     or i.created_at >= (select min(floor) from floors) \
     or i.intent_id in (select intent_id from open_breaks where intent_id <> ''))), \
     held as (\
     select 'it is pending' as why, o.operation_id, '' as other from operations as o \
     where o.generation = $1 and o.status = 'pending' and o.ignore_reason = '' \
     union all \
     select 'break', o.operation_id, b.break_id from open_breaks as b cross join operations as o \
     where o.operation_id = b.operation_id and o.source = b.source and o.account = b.account \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join matches as m \
     cross join operations as o where m.intent_id = a.intent_id and m.scope = a.scope and m.is_principal = 1 \
     and o.operation_id = m.operation_id and o.source = m.source and o.account = m.account \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join matches as m \
     cross join operations as o where m.intent_id = a.intent_id and m.scope = a.scope and m.is_principal = 0 \
     and o.operation_id = m.operation_id and o.source = m.source and o.account = m.account \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join matches as m \
     cross join operations as o where a.parent_intent_id <> '' and m.intent_id = a.parent_intent_id \
     and m.scope = a.scope and m.is_principal = 1 and o.operation_id = m.operation_id and o.source = m.source \
     and o.account = m.account and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join matches as m \
     cross join operations as o where a.parent_intent_id <> '' and m.intent_id = a.parent_intent_id \
     and m.scope = a.scope and m.is_principal = 0 and o.operation_id = m.operation_id and o.source = m.source \
     and o.account = m.account and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where a.processor_ref <> '' and o.operation_id = a.processor_ref and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where a.processor_ref <> '' and o.object_id <> '' and o.object_id = a.processor_ref \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where a.processor_ref <> '' and o.parent_id <> '' and o.parent_id = a.processor_ref \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where a.reference <> '' and o.reference <> '' and o.reference = a.reference \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where a.idempotency_key <> '' and o.reference <> '' and o.reference = a.idempotency_key \
     and o.generation = $1 \
     union all \
     select 'intent', o.operation_id, a.intent_id from asked as a cross join operations as o \
     where o.reference <> '' and o.reference = a.intent_id and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.parent_id <> '' and o.operation_id = s.parent_id and o.source = s.source \
     and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.parent_id <> '' and o.object_id <> '' and o.object_id = s.parent_id \
     and o.source = s.source and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where o.parent_id <> '' and o.parent_id = s.operation_id and o.source = s.source \
     and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.object_id <> '' and o.operation_id = s.object_id and o.source = s.source \
     and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.object_id <> '' and o.object_id <> '' and o.object_id = s.object_id \
     and o.source = s.source and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.payout_id <> '' and o.payout_id <> '' and o.payout_id = s.payout_id \
     and o.source = s.source and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where s.payout_id <> '' and o.operation_id = s.payout_id and o.source = s.source \
     and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join operations as o \
     where o.payout_id <> '' and o.payout_id = s.operation_id and o.source = s.source \
     and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join matches as m \
     cross join matches as n cross join operations as o where m.operation_id = s.operation_id \
     and m.source = s.source and m.account = s.account and n.intent_id = m.intent_id \
     and n.scope = m.scope and n.is_principal = 1 and o.operation_id = n.operation_id \
     and o.source = n.source and o.account = n.account and o.generation = $1 \
     union all \
     select 'operation', o.operation_id, s.operation_id from subjects as s cross join matches as m \
     cross join matches as n cross join operations as o where m.operation_id = s.operation_id \
     and m.source = s.source and m.account = s.account and n.intent_id = m.intent_id \
     and n.scope = m.scope and n.is_principal = 0 and o.operation_id = n.operation_id \
     and o.source = n.source and o.account = n.account and o.generation = $1) \
     select why, operation_id, other from held limit 1"
);

/// The generation that new operations go into, for as long as the transaction lasts.
pub(super) async fn open_generation(session: &mut impl Engine) -> Result<i64, Failure> {
    let row = session
        .one("looking for the open generation", OPEN_GENERATION, &[])
        .await?;
    row.int("generation")
}

/// Before when rows of a source may have been forgotten.
pub(super) async fn horizon(
    session: &mut impl Engine,
    source: &str,
) -> Result<Option<Instant>, Failure> {
    let row = session
        .first("reading the horizon", HORIZON, &[source.into()])
        .await?;
    row.map(|row| row.int("horizon").map(Instant)).transpose()
}

/// Intents of which everything was said when what they share a key with was forgotten.
pub(super) async fn settled_intents(
    session: &mut impl Engine,
    scope: &str,
) -> Result<Vec<String>, Failure> {
    session
        .rows("reading settled intents", SETTLED_INTENTS, &[scope.into()])
        .await?
        .iter()
        .map(|row| row.text("intent_id"))
        .collect()
}

/// The operations with these ids that were ever seen.
pub(super) async fn claimed(
    session: &mut impl Engine,
    source: &str,
    ids: &[&str],
) -> Result<Vec<ClaimedOperation>, Failure> {
    let mut found = Vec::new();
    for chunk in ids.chunks(super::engine::KEYS_MAX) {
        let values = [source.into(), keys(chunk)];
        for row in session
            .rows("looking for operations that were seen", CLAIMED, &values)
            .await?
        {
            let rule = row.text("rule")?;
            let rule = maybe_word("rule", &rule, Rule::from_word)?;
            let intent_id = row.text("intent_id")?;
            found.push(ClaimedOperation {
                operation_id: row.text("operation_id")?,
                account: row.text("account")?,
                link: rule.map(|rule| (intent_id, rule)),
            });
        }
    }
    Ok(found)
}

/// Every source that was ever read or held.
pub(super) async fn known_sources(session: &mut impl Engine) -> Result<Vec<String>, Failure> {
    session
        .rows("listing sources", KNOWN_SOURCES, &[])
        .await?
        .iter()
        .map(|row| row.text("source"))
        .collect()
}

/// The generations whose operations are there, and why each stays.
pub(super) async fn generations(
    session: &mut impl Engine,
    retention: &Retention<'_>,
) -> Result<Vec<Generation>, Failure> {
    let mut found = Vec::new();
    let mut has_older = false;
    for (mut generation, held) in closed(session).await? {
        generation.stays = stays(session, retention, &generation, &held, has_older).await?;
        has_older |= generation.stays.is_some();
        found.push(generation);
    }
    found.push(open(session).await?);
    Ok(found)
}

/// Closes the open generation once it is old enough, and drops those that nobody needs. Returns the generations as they were
/// found, without a reason to stay where they are gone now.
pub(super) async fn forget(
    session: &mut impl Engine,
    retention: &Retention<'_>,
) -> Result<Vec<Generation>, Failure> {
    let doing = "forgetting operations";
    session.hold_generations().await?;
    let newest = open(session).await?;
    let is_due = newest.opened_at.plus(retention.open_for) <= retention.as_of;
    let number = newest.number.into();
    if is_due && session.first(doing, HAS_ROWS, &[number]).await?.is_some() {
        let at = retention.as_of.0;
        let next = newest.number + 1;
        session
            .write(doing, CLOSE_GENERATION, &[newest.number.into(), at.into()])
            .await?;
        session
            .write(doing, OPEN_ANOTHER, &[next.into(), at.into()])
            .await?;
        session.add_generation(next).await?;
    }
    let mut found = Vec::new();
    let mut has_older = false;
    for (mut generation, held) in closed(session).await? {
        generation.stays = stays(session, retention, &generation, &held, has_older).await?;
        has_older |= generation.stays.is_some();
        if !has_older {
            for part in &held {
                let values = [
                    (&part.source).into(),
                    Instant(part.newest.0 + 1).0.into(),
                    part.operations.into(),
                ];
                session.write(doing, RAISE_HORIZON, &values).await?;
            }
            let number = [generation.number.into()];
            session.write(doing, SETTLE_INTENTS, &number).await?;
            let values = [generation.number.into(), retention.as_of.0.into()];
            session.write(doing, NOTE_DROPPED, &values).await?;
            session.drop_generation(generation.number).await?;
        }
        found.push(generation);
    }
    found.push(open(session).await?);
    Ok(found)
}

/// What a generation holds of one source.
struct Part {
    source: String,
    operations: i64,
    newest: Instant,
}

async fn open(session: &mut impl Engine) -> Result<Generation, Failure> {
    let row = session
        .one("looking for the open generation", OPEN_GENERATION, &[])
        .await?;
    let mut generation = Generation {
        number: row.int("generation")?,
        opened_at: Instant(row.int("opened_at")?),
        closed_at: None,
        operations: 0,
        newest: None,
        stays: Some("new operations go into it".to_owned()),
    };
    let parts = parts(session, &generation).await?;
    fill(&mut generation, &parts);
    Ok(generation)
}

async fn closed(session: &mut impl Engine) -> Result<Vec<(Generation, Vec<Part>)>, Failure> {
    let mut found = Vec::new();
    for row in session
        .rows("listing generations", CLOSED_GENERATIONS, &[])
        .await?
    {
        let mut generation = Generation {
            number: row.int("generation")?,
            opened_at: Instant(row.int("opened_at")?),
            closed_at: row.maybe("closed_at")?.map(Instant),
            operations: 0,
            newest: None,
            stays: None,
        };
        let parts = parts(session, &generation).await?;
        fill(&mut generation, &parts);
        found.push((generation, parts));
    }
    Ok(found)
}

fn fill(generation: &mut Generation, parts: &[Part]) {
    generation.operations = parts
        .iter()
        .map(|part| part.operations.unsigned_abs())
        .sum();
    generation.newest = parts.iter().map(|part| part.newest).max();
}

async fn parts(session: &mut impl Engine, generation: &Generation) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::new();
    for row in session
        .rows(
            "looking at a generation",
            WHAT_A_GENERATION_HOLDS,
            &[generation.number.into()],
        )
        .await?
    {
        let newest = Instant(row.int("newest")?);
        parts.push(Part {
            source: row.text("source")?,
            operations: row.int("operations")?,
            newest: match generation.closed_at {
                Some(closed_at) => newest.min(closed_at.plus(AHEAD_MAX)),
                None => newest,
            },
        });
    }
    Ok(parts)
}

/// Why a generation stays; `None` = nobody needs it.
async fn stays(
    session: &mut impl Engine,
    retention: &Retention<'_>,
    generation: &Generation,
    held: &[Part],
    has_older: bool,
) -> Result<Option<String>, Failure> {
    if has_older {
        return Ok(Some("an older one stays".to_owned()));
    }
    for part in held {
        let newest = part.newest;
        if newest >= retention.before {
            return Ok(Some(format!(
                "{} has operations of {newest}, and what occurred since {} is kept",
                part.source, retention.before
            )));
        }
        let floor = retention.floors.iter().find(|it| it.0 == part.source);
        if let Some((source, floor)) = floor.filter(|(_, floor)| newest >= *floor) {
            return Ok(Some(format!(
                "{source} has operations of {newest}, and may still give a verdict on what occurred since {floor}, as far as \
                 its watermark stands"
            )));
        }
    }
    let floors: serde_json::Value = retention
        .floors
        .iter()
        .map(|(source, floor)| serde_json::json!({ "source": source, "floor": floor.0 }))
        .collect();
    let floors = floors.to_string();
    let values = [generation.number.into(), (&floors).into()];
    let found = session
        .first("looking for what is open", WHAT_HOLDS_IT, &values)
        .await?;
    let Some(found) = found else { return Ok(None) };
    let (operation, other) = (found.text("operation_id")?, found.text("other")?);
    Ok(Some(match found.text("why")?.as_str() {
        "break" => format!("break {other} is open about operation {operation}"),
        "intent" => {
            format!("operation {operation} belongs to intent {other}, which is open or young")
        }
        "operation" => format!(
            "operation {operation} belongs to operation {other}, which is pending, young, or in an open break"
        ),
        why => format!("operation {operation}: {why}"),
    }))
}
