//! The columns that the catalogue knows, and whether each of them can be what it is named for.

use std::collections::HashMap;

use super::dialect::{self, Engine, Holds};
use super::session::{Session, Statement, Value};
use super::spec::{Role, Rows, Spec};
use crate::exit::Failure;
use crate::intents::amount::AmountUnit;

/// A column as the catalogue has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Column {
    /// Its type, as the engine writes it.
    pub(super) type_name: String,
    pub(super) holds: Holds,
    pub(super) is_nullable: bool,
    /// The default, as the engine writes it; empty = none.
    pub(super) default: String,
}

/// The rows that are read, and their columns.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub(super) engine: Engine,
    /// What follows `from`, with the alias `q`.
    pub(super) from: String,
    /// What the rows are called in a sentence.
    pub(super) shown: String,
    /// Schema and name, of a table or view.
    pub(super) table: Option<(String, String)>,
    /// Its number in the catalogue (`PostgreSQL`); else empty.
    pub(super) oid: String,
    pub(super) is_view: bool,
    /// The words of the enum that the column of statuses is of; empty where it is of none (`PostgreSQL`).
    pub(super) labels: Vec<String>,
    columns: HashMap<String, Column>,
}

impl Shape {
    /// A column that was found.
    pub(super) fn column(&self, name: &str) -> Option<&Column> {
        self.columns.get(name)
    }
}

/// Reads the catalogue, inside a transaction. Fails where a column is not there or cannot be what it is named for.
pub(super) async fn shape(session: &mut Session<'_>, spec: &Spec) -> Result<Shape, Failure> {
    let engine = session.engine();
    let mut shape = match &spec.rows {
        Rows::Table { schema, name } => table(session, engine, schema, name).await?,
        Rows::Query(text) => query(session, engine, spec, text).await?,
    };
    for (name, what) in spec.columns() {
        let Some(column) = shape.column(name) else {
            return Err(no_column(&shape, name, &what));
        };
        let roles = Role::ALL
            .iter()
            .filter(|role| spec.column(**role) == Some(name));
        for role in roles {
            usable(spec, &shape, *role, name, column)?;
        }
        if spec.changed_column.as_deref() == Some(name) {
            usable(spec, &shape, Role::CreatedAt, name, column).map_err(|failure| Failure {
                what: failure.what.replace("created_at", "changed_column"),
                ..failure
            })?;
        }
    }
    let status = spec
        .column(Role::Status)
        .and_then(|name| shape.column(name));
    if let Some(column) = status.filter(|column| column.holds == Holds::Word) {
        let question = Statement {
            text: POSTGRES_LABELS.to_owned(),
            values: vec![Value::Text(column.type_name.clone())],
        };
        let labels = session
            .all("looking up the words of the enum", &question)
            .await?;
        shape.labels = labels.into_iter().flatten().collect();
    }
    Ok(shape)
}

fn no_column(shape: &Shape, name: &str, what: &str) -> Failure {
    let mut names: Vec<&str> = shape.columns.keys().map(String::as_str).collect();
    names.sort_unstable();
    let near = names
        .iter()
        .find(|other| other.eq_ignore_ascii_case(name))
        .map(|other| format!("did you mean \"{other}\"? Case counts"));
    let known = format!("its columns are {}", names.join(", "));
    Failure::rejected(format!(
        "[intents] {what}: {} has no column \"{name}\"",
        shape.shown
    ))
    .remedy(near.unwrap_or(known))
}

/// Whether a column can be what it is named for.
fn usable(
    spec: &Spec,
    shape: &Shape,
    role: Role,
    name: &str,
    column: &Column,
) -> Result<(), Failure> {
    let engine = shape.engine;
    let wrong = |why: &str, remedy: &str| {
        Err(Failure::rejected(format!(
            "[intents] {role}: column \"{name}\" of {} is of type {}",
            shape.shown, column.type_name
        ))
        .why(why.to_owned())
        .remedy(remedy.to_owned()))
    };
    match role {
        Role::IntentId
        | Role::IdempotencyKey
        | Role::ProcessorRef
        | Role::ParentIntentId
        | Role::Reference => match column.holds {
            Holds::Text | Holds::Int | Holds::Uuid | Holds::Decimal(Some(0)) => Ok(()),
            Holds::Decimal(_) if engine == Engine::Sqlite => Ok(()),
            _ => wrong(
                "an id is text, a whole number or a UUID",
                "name another column, or use query = \"select …\" and give the id as text there",
            ),
        },
        Role::Kind | Role::Currency | Role::Status | Role::Source => match column.holds {
            Holds::Text | Holds::Word | Holds::Flag | Holds::Int => Ok(()),
            Holds::Decimal(_) if engine == Engine::Sqlite => Ok(()),
            _ => wrong(
                "words are read from text, enums, booleans and whole numbers",
                "name another column",
            ),
        },
        Role::Amount => match (column.holds, spec.rules.amount_unit) {
            (Holds::Decimal(Some(places)), AmountUnit::Minor) if places > 0 => wrong(
                "minor units are whole numbers, and a type with decimals holds major units",
                "set amount_unit = \"major\" under [intents]",
            ),
            (Holds::Text | Holds::Int | Holds::Decimal(_), _) => Ok(()),
            // SQLite has no exact decimals: it shows 15 digits of a binary fraction, which are those that were written.
            (Holds::Real, AmountUnit::Major) if engine == Engine::Sqlite => Ok(()),
            (Holds::Real, _) => wrong(
                "a binary fraction does not hold an amount of money exactly",
                "make it numeric, or use query = \"select …\" and round it there",
            ),
            _ => wrong("an amount is a number", "name another column"),
        },
        Role::Attempt => match column.holds {
            Holds::Text | Holds::Int | Holds::Decimal(_) => Ok(()),
            _ => wrong(
                "attempts are counted in whole numbers",
                "name another column",
            ),
        },
        Role::CreatedAt | Role::FirstAttemptAt => match column.holds {
            Holds::Instant => Ok(()),
            Holds::Wall if spec.time_zone.is_none() => wrong(
                "it has no zone, and none is assumed",
                "say in which zone it is written: time_zone = \"UTC\" under [intents]",
            ),
            Holds::Wall => Ok(()),
            Holds::Int if engine != Engine::Sqlite && spec.time_unit.is_none() => wrong(
                "a number is no time before it is said what it counts",
                "say time_unit = \"s\", \"ms\" or \"us\" under [intents]",
            ),
            Holds::Int | Holds::Text => Ok(()),
            Holds::Decimal(_) | Holds::Real if engine == Engine::Sqlite => Ok(()),
            _ => wrong(
                "a time is an instant, a date with a time, text, or a whole number",
                "name another column",
            ),
        },
    }
}

async fn table(
    session: &mut Session<'_>,
    engine: Engine,
    schema: &str,
    name: &str,
) -> Result<Shape, Failure> {
    let doing = "looking up the table";
    let both = vec![Value::Text(name.to_owned()), Value::Text(schema.to_owned())];
    let question = |text: &str| Statement {
        text: text.to_owned(),
        values: both.clone(),
    };
    let found = match engine {
        Engine::Postgres => session.all(doing, &question(POSTGRES_TABLE)).await?,
        Engine::MySql => {
            let twice = Statement {
                text: MYSQL_TABLE.to_owned(),
                values: vec![
                    Value::Text(name.to_owned()),
                    Value::Text(schema.to_owned()),
                    Value::Text(schema.to_owned()),
                ],
            };
            session.all(doing, &twice).await?
        }
        Engine::Sqlite => {
            let one = Statement {
                text: SQLITE_TABLE.to_owned(),
                values: vec![Value::Text(name.to_owned())],
            };
            session.all(doing, &one).await?
        }
    };
    let shown = if schema.is_empty() {
        format!("\"{name}\"")
    } else {
        format!("\"{schema}\".\"{name}\"")
    };
    let Some(row) = found.into_iter().next() else {
        let failure = Failure::rejected(format!("[intents] table: there is no table or view {shown}"))
            .why("names are compared as the catalogue has them: case counts, and a dot separates schema and name");
        return Err(match engine {
            Engine::Postgres => failure.remedy("name its schema as well (table = \"app.payments\"), and grant the role USAGE on the schema and SELECT on the columns"),
            Engine::MySql => failure.remedy("correct the name, or grant the user SELECT on it; what may not be read is not seen"),
            Engine::Sqlite => failure.remedy("correct the name or the file"),
        });
    };
    let (schema, oid) = (row[0].clone(), row[1].clone());
    let from = match engine {
        Engine::Sqlite => format!("main.{} as q", dialect::quoted(engine, name)),
        Engine::Postgres | Engine::MySql => format!(
            "{}.{} as q",
            dialect::quoted(engine, &schema),
            dialect::quoted(engine, name)
        ),
    };
    let rows = match engine {
        Engine::Postgres => {
            let question = Statement {
                text: POSTGRES_COLUMNS.to_owned(),
                values: vec![Value::Text(oid.clone())],
            };
            session.all(doing, &question).await?
        }
        Engine::MySql => {
            let question = Statement {
                text: MYSQL_COLUMNS.to_owned(),
                values: vec![Value::Text(name.to_owned()), Value::Text(schema.clone())],
            };
            session.all(doing, &question).await?
        }
        Engine::Sqlite => {
            let question = Statement {
                text: SQLITE_COLUMNS.to_owned(),
                values: vec![Value::Text(name.to_owned())],
            };
            session.all(doing, &question).await?
        }
    };
    Ok(Shape {
        engine,
        from,
        shown,
        table: Some((schema, name.to_owned())),
        oid,
        is_view: row[2] == "view",
        labels: Vec::new(),
        columns: columns(engine, rows),
    })
}

async fn query(
    session: &mut Session<'_>,
    engine: Engine,
    spec: &Spec,
    text: &str,
) -> Result<Shape, Failure> {
    let text = text.trim().trim_end_matches(';');
    // A comment at the end of the query must not swallow what follows it.
    let from = format!("({text}\n) as q");
    let rows = match engine {
        Engine::Postgres => postgres_query_columns(session, spec, &from).await?,
        Engine::MySql | Engine::Sqlite => session
            .described(format!("select q.* from {from}"))
            .await?
            .into_iter()
            .map(|(name, type_name)| {
                let base = type_name.to_lowercase();
                let base = base.split(['(', ' ']).next().unwrap_or_default().to_owned();
                vec![
                    name,
                    type_name,
                    base,
                    "YES".to_owned(),
                    String::new(),
                    String::new(),
                ]
            })
            .collect(),
    };
    Ok(Shape {
        engine,
        from,
        shown: "the query".to_owned(),
        table: None,
        oid: String::new(),
        is_view: true,
        labels: Vec::new(),
        columns: columns(engine, rows),
    })
}

/// The types of the named columns of a query that may have no rows.
async fn postgres_query_columns(
    session: &mut Session<'_>,
    spec: &Spec,
    from: &str,
) -> Result<Vec<Vec<String>>, Failure> {
    let names: Vec<&str> = spec.columns().into_iter().map(|(name, _)| name).collect();
    let types: Vec<String> = names
        .iter()
        .map(|name| {
            let column = dialect::column(Engine::Postgres, name);
            format!("pg_catalog.pg_typeof({column})::oid::text")
        })
        .collect();
    let question = Statement::plain(format!(
        "select {} from (select 1) as one left join {from} on false",
        types.join(", ")
    ));
    let doing = "looking at the columns of the query";
    let oids = session.all(doing, &question).await?;
    let mut rows = Vec::new();
    for (name, oid) in names
        .iter()
        .zip(oids.into_iter().next().unwrap_or_default())
    {
        let question = Statement {
            text: POSTGRES_TYPE.to_owned(),
            values: vec![Value::Text(oid)],
        };
        for mut row in session.all(doing, &question).await? {
            row[0] = (*name).to_owned();
            rows.push(row);
        }
    }
    Ok(rows)
}

/// Name, type as it is written, base type, `YES` where nullable, default, number of decimals.
fn columns(engine: Engine, rows: Vec<Vec<String>>) -> HashMap<String, Column> {
    rows.into_iter()
        .map(|row| {
            let holds = match engine {
                Engine::Postgres => postgres_holds(&row[2], row[5].parse().ok()),
                Engine::MySql => mysql_holds(&row[2], row[5].parse().ok()),
                Engine::Sqlite => sqlite_holds(&row[1]),
            };
            let column = Column {
                type_name: row[1].clone(),
                holds,
                is_nullable: row[3] == "YES",
                default: row[4].clone(),
            };
            (row[0].clone(), column)
        })
        .collect()
}

fn postgres_holds(base: &str, scale: Option<u32>) -> Holds {
    match base {
        "text" | "varchar" | "bpchar" | "citext" | "name" => Holds::Text,
        "enum" => Holds::Word,
        "bool" => Holds::Flag,
        "int2" | "int4" | "int8" => Holds::Int,
        "numeric" => Holds::Decimal(scale),
        "float4" | "float8" => Holds::Real,
        "uuid" => Holds::Uuid,
        "timestamptz" => Holds::Instant,
        "timestamp" => Holds::Wall,
        "date" => Holds::Day,
        _ => Holds::Other,
    }
}

fn mysql_holds(base: &str, scale: Option<u32>) -> Holds {
    match base {
        "char" | "varchar" | "text" | "tinytext" | "mediumtext" | "longtext" | "enum" | "set" => {
            Holds::Text
        }
        "tinyint" | "smallint" | "mediumint" | "int" | "bigint" | "year" | "boolean" => Holds::Int,
        "decimal" => Holds::Decimal(scale),
        "float" | "double" => Holds::Real,
        "uuid" | "inet6" => Holds::Text,
        // Kept in UTC, and shown in the zone of the session, which is UTC.
        "timestamp" => Holds::Instant,
        "datetime" => Holds::Wall,
        "date" => Holds::Day,
        _ => Holds::Other,
    }
}

/// `SQLite` keeps what it is given; the declared type only says what it would rather have.
fn sqlite_holds(declared: &str) -> Holds {
    let declared = declared.to_lowercase();
    let has = |part: &str| declared.contains(part);
    if has("int") {
        Holds::Int
    } else if has("char") || has("clob") || has("text") {
        Holds::Text
    } else if has("real") || has("floa") || has("doub") {
        Holds::Real
    } else if declared.is_empty() || has("blob") {
        Holds::Text
    } else {
        Holds::Decimal(None)
    }
}

/// Schema and number of a table or view.
const POSTGRES_TABLE: &str = "\
    select n.nspname::text, c.oid::text, \
    case when c.relkind in ('v', 'f') then 'view' else 'table' end from pg_catalog.pg_class as c \
    join pg_catalog.pg_namespace as n on n.oid = c.relnamespace \
    where c.relname = $1::name and c.relkind in ('r', 'p', 'v', 'm', 'f') \
    and ((n.nspname = $2::name and $2 <> '') \
      or ($2 = '' and n.nspname = any(pg_catalog.current_schemas(false)))) \
    order by pg_catalog.array_position(pg_catalog.current_schemas(false), n.nspname) limit 1";

/// A domain is followed to the type it is made of.
macro_rules! postgres_types {
    ($start:literal, $end:literal) => {
        concat!(
            "with recursive named as (",
            $start,
            "), base as (\
             select name, written, oid, mod, nullable, fallback, position from named \
             union all select b.name, b.written, t.typbasetype, \
             case when b.mod >= 0 then b.mod else t.typtypmod end, b.nullable, b.fallback, b.position \
             from base as b join pg_catalog.pg_type as t on t.oid = b.oid where t.typtype = 'd') \
             select b.name, b.written, \
             case when t.typtype = 'e' then 'enum' else t.typname::text end, b.nullable, b.fallback, \
             case when t.typname = 'numeric' and b.mod >= 4 \
             then (((b.mod - 4) & 2047) # 1024) - 1024 end::text \
             from base as b join pg_catalog.pg_type as t on t.oid = b.oid where t.typtype <> 'd' ",
            $end
        )
    };
}

const POSTGRES_COLUMNS: &str = postgres_types!(
    "select a.attname::text as name, pg_catalog.format_type(a.atttypid, a.atttypmod) as written, \
     a.atttypid as oid, a.atttypmod as mod, \
     case when a.attnotnull then 'NO' else 'YES' end as nullable, \
     coalesce(pg_catalog.pg_get_expr(d.adbin, d.adrelid), '') as fallback, a.attnum as position \
     from pg_catalog.pg_attribute as a \
     left join pg_catalog.pg_attrdef as d on d.adrelid = a.attrelid and d.adnum = a.attnum \
     where a.attrelid = $1::text::oid and a.attnum > 0 and not a.attisdropped",
    "order by b.position"
);

const POSTGRES_LABELS: &str = "\
    select enumlabel::text from pg_catalog.pg_enum where enumtypid = pg_catalog.to_regtype($1)";

const POSTGRES_TYPE: &str = postgres_types!(
    "select ''::text as name, pg_catalog.format_type($1::text::oid, -1) as written, \
     $1::text::oid as oid, -1 as mod, 'YES'::text as nullable, ''::text as fallback, \
     1::int2 as position",
    ""
);

const MYSQL_TABLE: &str = "\
    select cast(table_schema as char), '', \
    case when table_type = 'BASE TABLE' then 'table' else 'view' end from information_schema.tables \
    where binary table_name = ? \
    and table_schema = case when ? = '' then database() else ? end";

const MYSQL_COLUMNS: &str = "\
    select cast(column_name as char), cast(column_type as char), cast(data_type as char), \
    cast(is_nullable as char), cast(coalesce(column_default, '') as char), \
    cast(numeric_scale as char) from information_schema.columns \
    where binary table_name = ? and table_schema = ? order by ordinal_position";

const SQLITE_TABLE: &str = "\
    select 'main', '', type from main.sqlite_schema where type in ('table', 'view') and name = ?";

const SQLITE_COLUMNS: &str = "\
    select name, type, type, case when \"notnull\" = 1 then 'NO' else 'YES' end, \
    coalesce(dflt_value, ''), '' from pragma_table_xinfo(?)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_declared_type_of_sqlite_says_what_it_would_rather_have() {
        for (declared, want) in [
            ("INTEGER", Holds::Int),
            ("VARCHAR(20)", Holds::Text),
            ("DECIMAL(10,2)", Holds::Decimal(None)),
            ("DATETIME", Holds::Decimal(None)),
            ("DOUBLE", Holds::Real),
            ("", Holds::Text),
        ] {
            assert_eq!(sqlite_holds(declared), want, "{declared}");
        }
    }
}
