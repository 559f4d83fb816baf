//! What `paysweep check` says about the company's table: each fact with its number, the rule, and what to change.

use super::dialect::{Engine, quoted};
use super::order;
use super::question::Questions;
use super::row::RowReader;
use super::session::{Session, Statement, Value};
use super::shape::{self, Shape};
use super::spec::{Role, Spec};
use crate::exit::{Exit, Failure};
use crate::time::{Instant, Span};

/// One thing that has to be right: what was found, or what is wrong.
pub struct Fact {
    /// What it is about.
    pub name: String,
    /// What was found.
    pub found: Result<String, Failure>,
}

/// Up to so many rows a question without an index is answered in no time.
const SMALL_TABLE_ROWS: u64 = 10_000;
/// How many of the newest rows are read to see whether they can be used.
const NEWEST_ROWS: u32 = 200;
/// How far two clocks may differ before times of one mean nothing to the other. Unit: microseconds.
const CLOCK_ERROR_MAX: i64 = 60_000_000;
/// What separates the columns of an index in an answer; it is part of no name.
const SEPARATOR: char = '\u{1f}';

/// Looks at everything; `reaches` are the sources with their lag and lookback, `now` is by the clock of this machine.
/// Nothing is written.
pub async fn facts(spec: &Spec, reaches: &[(&str, Span, Span)], now: Instant) -> Vec<Fact> {
    let mut facts = Vec::new();
    let mut session = match Session::connect(&spec.url, spec.statement_timeout).await {
        Ok(session) => session,
        Err(failure) => {
            facts.push(fact("database", Err(failure)));
            return facts;
        }
    };
    facts.push(fact("database", database(&mut session, spec, now).await));
    let found = within(&mut session, async |session| {
        shape::shape(session, spec).await
    })
    .await;
    let shape = match found {
        Ok(shape) => shape,
        Err(failure) => {
            facts.push(fact("columns", Err(failure)));
            return facts;
        }
    };
    for (name, what) in spec.columns() {
        if let Some(column) = shape.column(name) {
            let null = if column.is_nullable {
                ", may be null"
            } else {
                ""
            };
            facts.push(fact(
                &format!("column {name}"),
                Ok(format!("{what}: {}{null}", column.type_name)),
            ));
        }
    }
    facts.push(fact("role", role(&mut session, spec, &shape).await));
    facts.push(fact("key", key(&mut session, spec, &shape).await));
    match Questions::new(spec, &shape) {
        Err(failure) => facts.push(fact("questions", Err(failure))),
        Ok(questions) => {
            indexes(&mut session, &shape, &questions, now, &mut facts).await;
            facts.push(fact("rows", rows(&mut session, spec, &questions).await));
        }
    }
    match order::order(&mut session, spec, &shape).await {
        Err(failure) => facts.push(fact("commit order", Err(failure))),
        Ok(order) => {
            for (source, lag, lookback) in reaches {
                let reach = order::assert_reach(&order, spec.max_txn, source, (*lag, *lookback));
                facts.push(fact(&format!("commit order {source}"), reach));
            }
        }
    }
    // What was found stands, however the connection ends.
    let _ = session.close().await;
    facts
}

fn fact(name: &str, found: Result<String, Failure>) -> Fact {
    Fact {
        name: format!("intents {name}"),
        found,
    }
}

/// Asks inside a transaction of its own.
async fn within<T>(
    session: &mut Session<'_>,
    ask: impl AsyncFnOnce(&mut Session<'_>) -> Result<T, Failure>,
) -> Result<T, Failure> {
    session.begin().await?;
    let answer = ask(session).await;
    session.end().await?;
    answer
}

async fn one_row(session: &mut Session<'_>, statement: &Statement) -> Result<Vec<String>, Failure> {
    let rows = within(session, async |session| {
        session.all("looking at the database", statement).await
    })
    .await?;
    Ok(rows.into_iter().next().unwrap_or_default())
}

async fn database(session: &mut Session<'_>, spec: &Spec, now: Instant) -> Result<String, Failure> {
    let engine = session.engine();
    let question = match engine {
        Engine::Postgres => {
            "select 'PostgreSQL ' || current_setting('server_version'), \
             (extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint::text"
        }
        Engine::MySql => {
            "select cast(version() as char), \
             cast(cast(unix_timestamp(now(6)) * 1000000 as signed) as char)"
        }
        Engine::Sqlite => "select 'SQLite ' || sqlite_version(), ''",
    };
    let row = one_row(session, &Statement::plain(question)).await?;
    let version = row.first().cloned().unwrap_or_default();
    let theirs: Option<i64> = row.get(1).and_then(|text| text.parse().ok());
    let apart = theirs.map_or(0, |theirs| theirs.saturating_sub(now.0));
    if apart.saturating_abs() > CLOCK_ERROR_MAX {
        return Err(Failure::rejected(format!(
            "the clock of {} is {} s away from this machine's",
            spec.url,
            apart / 1_000_000
        ))
        .why("60 s at most, or times of one mean nothing to the other")
        .remedy("set both clocks by NTP"));
    }
    let how = match engine {
        Engine::Sqlite => "opened so that not a byte changes",
        Engine::Postgres | Engine::MySql => {
            "read only, in one repeatable-read transaction for each window"
        }
    };
    Ok(format!(
        "{version} at {}; {how}; a statement may take {}",
        spec.url, spec.statement_timeout
    ))
}

const POSTGRES_ROLE: &str = "\
    select r.rolname::text, r.rolsuper::text, r.rolbypassrls::text, \
    (pg_has_role(current_user, 'pg_execute_server_program', 'member') \
      or pg_has_role(current_user, 'pg_write_server_files', 'member'))::text, \
    case when $1 = '' then '' else concat_ws(', ', \
      case when has_table_privilege($1::oid, 'INSERT') then 'INSERT' end, \
      case when has_table_privilege($1::oid, 'UPDATE') then 'UPDATE' end, \
      case when has_table_privilege($1::oid, 'DELETE') then 'DELETE' end, \
      case when has_table_privilege($1::oid, 'TRUNCATE') then 'TRUNCATE' end) end, \
    case when $1 = '' then 'false' else row_security_active($1::oid)::text end \
    from pg_catalog.pg_roles as r where r.rolname = current_user";

/// Grants on all databases.
const MYSQL_ROLE: &str = "\
    select cast(current_user() as char), cast(coalesce(group_concat(privilege_type), '') as char) \
    from information_schema.user_privileges where privilege_type in ('SUPER', 'FILE') \
    and grantee = concat('''', substring_index(current_user(), '@', 1), '''@''', \
    substring_index(current_user(), '@', -1), '''')";

const MYSQL_ENGINE: &str = "\
    select cast(coalesce(engine, '') as char) from information_schema.tables \
    where binary table_name = ? and table_schema = ?";

pub(super) async fn role(
    session: &mut Session<'_>,
    spec: &Spec,
    shape: &Shape,
) -> Result<String, Failure> {
    match shape.engine {
        Engine::Postgres => postgres_role(session, spec, shape).await,
        Engine::MySql => mysql_role(session, shape).await,
        Engine::Sqlite => Ok("a file has no roles; it is opened for reading alone".to_owned()),
    }
}

async fn postgres_role(
    session: &mut Session<'_>,
    spec: &Spec,
    shape: &Shape,
) -> Result<String, Failure> {
    let question = Statement {
        text: POSTGRES_ROLE.to_owned(),
        values: vec![Value::Text(shape.oid.clone())],
    };
    let row = one_row(session, &question).await?;
    let cell = |at: usize| row.get(at).map_or("", String::as_str);
    let powers: Vec<&str> = [
        (1, "is a superuser"),
        (2, "passes by row-level security"),
        (3, "may run programs or write files on the server"),
    ]
    .into_iter()
    .filter(|(at, _)| cell(*at) == "true")
    .map(|(_, what)| what)
    .collect();
    if !powers.is_empty() {
        let columns: Vec<String> = spec
            .columns()
            .into_iter()
            .map(|(name, _)| quoted(Engine::Postgres, name))
            .collect();
        return Err(Failure::new(
            Exit::Denied,
            format!("role \"{}\" {}", cell(0), powers.join(", ")),
        )
        .why("a transaction that only reads does not restrain such a role")
        .remedy(format!(
            "create role paysweep_read login; grant select ({}) on {} to paysweep_read; and name it in [intents] url",
            columns.join(", "),
            shape.from.trim_end_matches(" as q")
        )));
    }
    let mut said = format!("\"{}\" is no superuser", cell(0));
    if !cell(4).is_empty() {
        said.push_str(&format!(
            "; it may {} on the table, and reading needs SELECT alone",
            cell(4)
        ));
    }
    if cell(5) == "true" {
        said.push_str(
            "; row-level security is active: rows that its policies hide are never compared",
        );
    }
    Ok(said)
}

async fn mysql_role(session: &mut Session<'_>, shape: &Shape) -> Result<String, Failure> {
    let row = one_row(session, &Statement::plain(MYSQL_ROLE)).await?;
    let cell = |at: usize| row.get(at).map_or("", String::as_str);
    if !cell(1).is_empty() {
        return Err(Failure::new(
            Exit::Denied,
            format!(
                "user {} has the privileges {} on the server",
                cell(0),
                cell(1)
            ),
        )
        .why("a transaction that only reads does not restrain such a user")
        .remedy("create a user with SELECT on the table alone, and name it in [intents] url"));
    }
    if let Some((schema, name)) = &shape.table {
        let question = Statement {
            text: MYSQL_ENGINE.to_owned(),
            values: vec![Value::Text(name.clone()), Value::Text(schema.clone())],
        };
        let engine = one_row(session, &question).await?.join("");
        if !engine.is_empty() && !engine.eq_ignore_ascii_case("innodb") {
            return Err(Failure::rejected(format!("{} is kept by {engine}", shape.shown))
                .why("only InnoDB shows one moment to a transaction; what is read here may be of several")
                .remedy("alter table … engine = InnoDB"));
        }
    }
    Ok(format!("{} has no privileges on the server", cell(0)))
}

const POSTGRES_UNIQUE: &str = "\
    select array_to_string(array(select a.attname::text from unnest(i.indkey) with ordinality as k(num, pos) \
      join pg_catalog.pg_attribute as a on a.attrelid = i.indrelid and a.attnum = k.num \
      where k.pos <= i.indnkeyatts order by k.pos), chr(31)) \
    from pg_catalog.pg_index as i where i.indrelid = $1::oid and i.indisunique and i.indisvalid \
    and i.indpred is null and i.indexprs is null";

const MYSQL_UNIQUE: &str = "\
    select cast(group_concat(column_name order by seq_in_index separator '\u{1f}') as char) \
    from information_schema.statistics where binary table_name = ? and table_schema = ? \
    and non_unique = 0 group by index_name";

const SQLITE_UNIQUE: &str = "\
    select group_concat(i.name, char(31)) from pragma_index_list(?) as l \
    join pragma_index_info(l.name) as i where l.\"unique\" = 1 and l.partial = 0 group by l.name \
    union all select group_concat(name, char(31)) from pragma_table_info(?) where pk > 0";

async fn key(session: &mut Session<'_>, spec: &Spec, shape: &Shape) -> Result<String, Failure> {
    let id = spec.column(Role::IntentId).unwrap_or_default();
    let cannot_be_seen = || {
        Ok(format!(
            "whether \"{id}\" is unique cannot be seen through {}; rows that share an id are a finding",
            shape.shown
        ))
    };
    let Some((schema, name)) = shape.table.as_ref().filter(|_| !shape.is_view) else {
        return cannot_be_seen();
    };
    let (text, values) = match shape.engine {
        Engine::Postgres => (POSTGRES_UNIQUE, vec![Value::Text(shape.oid.clone())]),
        Engine::MySql => (
            MYSQL_UNIQUE,
            vec![Value::Text(name.clone()), Value::Text(schema.clone())],
        ),
        Engine::Sqlite => (
            SQLITE_UNIQUE,
            vec![Value::Text(name.clone()), Value::Text(name.clone())],
        ),
    };
    let statement = Statement {
        text: text.to_owned(),
        values,
    };
    let indexes = within(session, async |session| {
        session.all("looking at the indexes", &statement).await
    })
    .await?;
    let scope = spec.scope.as_ref().map(|scope| scope.column.as_str());
    let is_key = |columns: &str| {
        let columns: Vec<&str> = columns.split(SEPARATOR).collect();
        columns.contains(&id)
            && columns
                .iter()
                .all(|column| *column == id || Some(*column) == scope)
    };
    if indexes.iter().flatten().any(|columns| is_key(columns)) {
        return Ok(format!("\"{id}\" is unique"));
    }
    Err(Failure::rejected(format!(
        "nothing keeps \"{id}\" of {} unique ({} unique indexes, none on it alone)",
        shape.shown,
        indexes.len()
    ))
    .why("an id names one intent; rows that share one are a finding and cannot be compared")
    .remedy(format!(
        "create unique index on {} ({})",
        shape.from.trim_end_matches(" as q"),
        quoted(shape.engine, id)
    )))
}

async fn indexes(
    session: &mut Session<'_>,
    shape: &Shape,
    questions: &Questions,
    now: Instant,
    facts: &mut Vec<Fact>,
) {
    let count = Statement::plain(format!(
        "select {} from (select 1 as one from {} limit {}) as counted",
        super::dialect::as_text(shape.engine, "count(*)"),
        shape.from,
        SMALL_TABLE_ROWS + 1
    ));
    let count = one_row(session, &count).await;
    let count = match count {
        Ok(row) => row.join("").parse().unwrap_or(0),
        Err(failure) => return facts.push(fact("index", Err(failure))),
    };
    for (name, statement) in questions.examples(now.minus(Span::hours(72))) {
        let served = within(session, async |session| {
            is_served(session, shape.engine, &statement).await
        })
        .await;
        let found = match served {
            Ok(true) => Ok(format!("an index serves the question by \"{name}\"")),
            Ok(false) if count <= SMALL_TABLE_ROWS => Ok(format!(
                "no index serves the question by \"{name}\"; with {count} rows that is fine, from {SMALL_TABLE_ROWS} on it is not"
            )),
            Ok(false) => Err(Failure::rejected(format!(
                "no index serves the question by \"{name}\", and there are more than {SMALL_TABLE_ROWS} rows"
            ))
            .why("each run would read the whole table, once for every handful of keys")
            .remedy(format!(
                "create index on {} ({})",
                shape.from.trim_end_matches(" as q"),
                quoted(shape.engine, name)
            ))),
            Err(failure) => Err(failure),
        };
        facts.push(fact(&format!("index {name}"), found));
    }
}

/// Whether the engine can answer without reading every row.
async fn is_served(
    session: &mut Session<'_>,
    engine: Engine,
    statement: &Statement,
) -> Result<bool, Failure> {
    let doing = "asking how it would be answered";
    let explained = |words: &str| Statement {
        text: format!("{words} {}", statement.text),
        values: statement.values.clone(),
    };
    match engine {
        Engine::Postgres => {
            // Small tables are read whole although there is an index.
            session
                .send(doing, "set local enable_seqscan = off".to_owned())
                .await?;
            let plan = session.all(doing, &explained("explain")).await?;
            Ok(!plan.iter().flatten().any(|line| line.contains("Seq Scan")))
        }
        Engine::MySql => {
            let plan = session
                .all(doing, &explained("explain format=json"))
                .await?
                .concat()
                .concat();
            // A row that is found or missed by its key alone is told in a message.
            Ok(plan.contains("\"possible_keys\"") || plan.contains("\"message\""))
        }
        Engine::Sqlite => {
            const DETAIL: usize = 3;
            let plan = session.all(doing, &explained("explain query plan")).await?;
            Ok(!plan
                .iter()
                .filter_map(|line| line.get(DETAIL))
                .any(|detail| detail.starts_with("SCAN ") && detail != "SCAN CONSTANT ROW"))
        }
    }
}

async fn rows(
    session: &mut Session<'_>,
    spec: &Spec,
    questions: &Questions,
) -> Result<String, Failure> {
    let reader = RowReader::new(spec);
    let (mut count, mut unusable, mut first) = (0, 0, String::new());
    let mut newest = None;
    let statement = questions.newest(NEWEST_ROWS);
    within(session, async |session| {
        session
            .each("reading the newest rows", &statement, |record| {
                reader.read(record, Instant::MIN, |intent| {
                    count += 1;
                    newest = newest.max(Some(intent.created_at));
                    if !intent.invalid.is_empty() {
                        unusable += 1;
                        if first.is_empty() {
                            first = format!("{}: {}", intent.intent_id, intent.invalid);
                        }
                    }
                });
                Ok(())
            })
            .await
    })
    .await?;
    if unusable > 0 {
        return Err(Failure::rejected(format!(
            "{unusable} of the newest {count} rows cannot be used"
        ))
        .why(first)
        .remedy("correct the rows, or [intents.columns]; a run makes each of them a finding (invalid_record)"));
    }
    let newest = newest.map_or_else(String::new, |at| format!("; the newest is of {at}"));
    Ok(format!("the newest {count} rows can be used{newest}"))
}
