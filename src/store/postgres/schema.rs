//! The schema: whether it is there and of this version, and making it so.
//!
//! # Decisions
//!
//! - The version stands in a table of our own, written in the transaction that changes the schema. Its one row is held
//!   meanwhile, so that of two programs that migrate at once the second finds the work done.
//! - Only `paysweep migrate` changes the schema: what runs every night needs no right to.

use super::session::PgSession;
use crate::exit::{Exit, Failure};
use crate::store::sql::dialect::{Sql, sql};
use crate::store::sql::engine::{Columns, Engine, keys};

/// Every step of the schema, in order; the number is the version after it.
const MIGRATIONS: &[(i64, &str)] = &[
    (
        1,
        include_str!("../../../migrations/postgres/0001_init.sql"),
    ),
    (
        2,
        include_str!("../../../migrations/postgres/0002_ledger.sql"),
    ),
    (
        3,
        include_str!("../../../migrations/postgres/0003_redrive.sql"),
    ),
    (
        4,
        include_str!("../../../migrations/postgres/0004_pins.sql"),
    ),
    (
        5,
        include_str!("../../../migrations/postgres/0005_prune.sql"),
    ),
    (
        6,
        include_str!("../../../migrations/postgres/0006_deliveries.sql"),
    ),
    (
        7,
        include_str!("../../../migrations/postgres/0007_retention.sql"),
    ),
];

/// The version of this program.
const SCHEMA_VERSION: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

const IS_THERE: Sql = sql!(
    "select (select count(*) from pg_namespace where nspname = $1) as is_there, \
     (select count(*) from pg_namespace where nspname = $1 \
     and has_schema_privilege(oid, 'usage')) as is_open, \
     (select count(*) from pg_class as c join pg_namespace as n on n.oid = c.relnamespace \
     where n.nspname = $1 and c.relname = 'schema_version') as is_marked, \
     (select count(*) from pg_class as c join pg_namespace as n on n.oid = c.relnamespace \
     where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition) as tables, \
     (select coalesce(string_agg(c.relname, ', ' order by c.relname), '') \
     from pg_class as c join pg_namespace as n on n.oid = c.relnamespace \
     where n.nspname = $1 and c.relkind in ('r', 'p') and not c.relispartition \
     and c.relname not in \
     ('schema_version', 'generations', 'horizons', 'settled_intents') \
     and not (has_table_privilege(c.oid, 'select') and has_table_privilege(c.oid, 'insert') \
     and (has_table_privilege(c.oid, 'update') or c.relname <> all ($2)))) as not_granted, \
     (select count(*) where current_setting('transaction_read_only') = 'on') as is_read_only, \
     current_setting('server_encoding') as encoding"
);

/// The tables whose rows change; the others only grow.
const CHANGING: [&str; 13] = [
    "breaks",
    "chain_head",
    "intents",
    "leases",
    "matches",
    "operations",
    "pins",
    "repair_claims",
    "run_commits",
    "run_keys",
    "run_reports",
    "runs",
    "watermarks",
];

const WHICH_VERSION: Sql = sql!("select version from schema_version where only_row = 1");

const HOLD_WHICH_VERSION: Sql =
    sql!("select version from schema_version where only_row = 1" for_update);

const MAKE_THE_MARK: &str = "\
    create table schema_version ( \
    only_row bigint not null primary key check (only_row = 1), \
    version bigint not null); \
    insert into schema_version (only_row, version) values (1, 0)";

const SET_THE_MARK: Sql = sql!("update schema_version set version = $1 where only_row = 1");

/// The table that forgets old reports, where a role may delete.
const FORGETTING: &str = "run_reports";

/// What a role may that no run needs, worst first.
const SURPLUS: Sql = sql!(
    "select what from ( \
     select 1 as place, cast('is a superuser' as text) as what \
     from pg_roles where rolname = current_user and rolsuper \
     union all select 2, 'bypasses row security' \
     from pg_roles where rolname = current_user and rolbypassrls and not rolsuper \
     union all select 3, 'may create roles' \
     from pg_roles where rolname = current_user and rolcreaterole and not rolsuper \
     union all select 4, 'may create databases' \
     from pg_roles where rolname = current_user and rolcreatedb and not rolsuper \
     union all select 5, 'may replicate' \
     from pg_roles where rolname = current_user and rolreplication and not rolsuper \
     union all select 6, 'is a member of ' || string_agg(g.rolname, ', ' order by g.rolname) \
     from pg_roles as g, pg_roles as me where me.rolname = current_user and not me.rolsuper \
     and g.rolname in ('pg_execute_server_program', 'pg_write_server_files', \
     'pg_read_server_files', 'pg_write_all_data', 'pg_signal_backend') \
     and pg_has_role(g.oid, 'member') \
     union all select 7, 'may create things in schema ' || $1 \
     from pg_namespace, pg_roles as me where me.rolname = current_user and not me.rolsuper \
     and nspname = $1 and has_schema_privilege(pg_namespace.oid, 'create') \
     union all select 8, 'may delete from ' || string_agg(c.relname, ', ' order by c.relname) \
     from pg_class as c join pg_namespace as n on n.oid = c.relnamespace, pg_roles as me \
     where me.rolname = current_user and not me.rolsuper and n.nspname = $1 \
     and c.relkind in ('r', 'p') and (has_table_privilege(c.oid, 'truncate') \
     or (has_table_privilege(c.oid, 'delete') and c.relname <> $3)) \
     union all select 9, 'may change ' || string_agg(c.relname, ', ' order by c.relname) \
     from pg_class as c join pg_namespace as n on n.oid = c.relnamespace, pg_roles as me \
     where me.rolname = current_user and not me.rolsuper and n.nspname = $1 \
     and c.relkind in ('r', 'p') and not c.relispartition \
     and c.relname <> all ($2) and has_table_privilege(c.oid, 'update') \
     ) as surplus where what is not null order by place"
);

/// Whether the schema is the one this program knows.
pub(super) async fn assert_version(session: &mut PgSession) -> Result<(), Failure> {
    let row = session
        .first("reading its version", WHICH_VERSION, &[])
        .await?;
    match row.map(|row| row.int("version")).transpose()? {
        Some(SCHEMA_VERSION) => Ok(()),
        found => Err(other_version(found.unwrap_or(0))),
    }
}

/// Whether the store can be used at all, asked once when it is opened; `to_write` when it has to be written.
pub(super) async fn look(
    session: &mut PgSession,
    schema: &str,
    to_write: bool,
) -> Result<(), Failure> {
    let row = session
        .one("opening it", IS_THERE, &[schema.into(), keys(&CHANGING)])
        .await?;
    if row.int("is_there")? == 0 {
        return Err(missing(&format!("there is no schema {schema}")));
    }
    if row.int("is_open")? == 0 {
        return Err(Failure::new(
            Exit::Denied,
            format!("the role of [store] url may not use schema {schema}"),
        )
        .remedy(format!("grant usage on schema {schema} to it")));
    }
    if row.int("is_marked")? == 0 {
        return Err(missing(&format!("schema {schema} holds no store")));
    }
    if to_write && row.int("is_read_only")? != 0 {
        return Err(
            Failure::new(Exit::Denied, "the database only lets itself be read")
                .why("it is a standby, or default_transaction_read_only is on")
                .remedy("name the primary in [store] url, or let the role write"),
        );
    }
    assert_version(session).await?;
    let not_granted = row.text("not_granted")?;
    if to_write && !not_granted.is_empty() {
        return Err(Failure::new(
            Exit::Denied,
            format!("the role of [store] url may not write {not_granted}"),
        )
        .remedy(format!(
            "grant select and insert on every table of schema {schema}, and update on {}; \
             what is not among them is append-only",
            CHANGING.join(", ")
        )));
    }
    Ok(())
}

/// Refuses a role that may more than a run needs: what a wrong run or a leaked password could do then is not bounded by
/// what a run does.
pub(super) async fn assert_least(session: &mut PgSession, schema: &str) -> Result<(), Failure> {
    let values = [schema.into(), keys(&CHANGING), FORGETTING.into()];
    let rows = session
        .rows("looking at the role", SURPLUS, &values)
        .await?;
    let surplus: Vec<String> = rows
        .iter()
        .map(|row| row.text("what"))
        .collect::<Result<_, _>>()?;
    if surplus.is_empty() {
        return Ok(());
    }
    Err(Failure::new(
        Exit::Denied,
        format!("the role of [store] url {}", surplus.join("; it ")),
    )
    .why("no run needs it, and what a leaked password could do is bounded by the role alone")
    .remedy("run as a role of its own with the grants of cron/postgres_role.sql, and migrate as another one"))
}

fn missing(what: &str) -> Failure {
    Failure::new(Exit::NotReady, what.to_owned())
        .remedy("run paysweep migrate once; it creates the store")
}

fn other_version(found: i64) -> Failure {
    if found > SCHEMA_VERSION {
        return Failure::new(
            Exit::NotReady,
            format!("the store has schema {found}, this program knows up to {SCHEMA_VERSION}"),
        )
        .remedy("use the newer program that upgraded it");
    }
    Failure::new(
        Exit::NotReady,
        format!("the store has schema {found}, this program needs {SCHEMA_VERSION}"),
    )
    .remedy("run paysweep migrate")
}

/// Brings the schema to this version, inside the transaction that has begun.
pub(super) async fn migrate(session: &mut PgSession, schema: &str) -> Result<(), Failure> {
    let doing = "migrating it";
    let row = session
        .one(doing, IS_THERE, &[schema.into(), keys(&CHANGING)])
        .await?;
    let encoding = row.text("encoding")?;
    if encoding != "UTF8" {
        return Err(Failure::new(
            Exit::NotReady,
            format!("the database is encoded in {encoding}; references may hold any character"),
        )
        .remedy("create the database with encoding 'UTF8'"));
    }
    if row.int("is_there")? == 0 {
        session
            .send(doing, format!("create schema \"{schema}\""))
            .await?;
    }
    if row.int("is_marked")? == 0 {
        if row.int("tables")? > 0 {
            return Err(Failure::new(
                Exit::NotReady,
                format!("schema {schema} holds tables that are not paysweep's"),
            )
            .remedy("name another with ?schema=NAME in [store] url; nothing is created over"));
        }
        session.send(doing, MAKE_THE_MARK.to_owned()).await?;
    } else if assert_version(session).await.is_ok() {
        return Ok(());
    }
    let found = session
        .one(doing, HOLD_WHICH_VERSION, &[])
        .await?
        .int("version")?;
    if found > SCHEMA_VERSION {
        return Err(other_version(found));
    }
    for (number, statements) in MIGRATIONS {
        if *number > found {
            session.send(doing, (*statements).to_owned()).await?;
        }
    }
    session
        .write(doing, SET_THE_MARK, &[SCHEMA_VERSION.into()])
        .await?;
    Ok(())
}
