//! The store in `PostgreSQL` where it differs from a file: servers with other defaults, sessions that race, connections that
//! break, roles that may not.

use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use paysweep::exit::Exit;
use paysweep::model::breaks::{Break, BreakClass, BreakDisposition};
use paysweep::model::intent::IntentStatus;
use paysweep::model::operation::{Operation, Operations};
use paysweep::model::repair::RepairState;
use paysweep::model::verdict::Rule;
use paysweep::store::contract::{
    Claim, Commit, Decision, IntentChanges, Link, OperationSelection, Outcome, Retention, RunKey,
    RunStart, Store,
};
use paysweep::store::postgres::{Address, Mode, PostgresStore};
use paysweep::time::{Instant, Span};
use sqlx::Row;

use super::postgres::Database;
use super::store::{
    AS_OF, EXPIRED, SCOPE, SOURCE, TTL, break_about, claim, commit, exit_of, import, intent,
    intents, nothing, operation, operations, set_succeeded, watermark,
};

/// A commit that writes to every table a run can write to, then the number of its operations.
async fn commit_of_everything(
    store: &mut PostgresStore,
    held: &Claim,
) -> Result<Outcome, paysweep::exit::Failure> {
    let rows = operations(&[operation("ch_1"), operation("ch_2")]);
    let new = intents(&[intent("N", IntentStatus::Succeeded)]);
    let changes = IntentChanges {
        rows: &new,
        imported_status: &[Some(IntentStatus::Succeeded)],
        imported_processor_ref: &new.processor_ref,
        new: &[0],
        changed: &[],
        touched: &[],
        superseded: &[],
        confirmed: &[],
    };
    let links = [Link {
        operation: 0,
        intent_id: "A",
        rule: Rule::Reference,
        is_principal: true,
    }];
    let behind = Break {
        disposition: BreakDisposition::Repaired,
        ..break_about("b1", BreakClass::StatusBehind, "e")
    };
    let to = watermark(100);
    let written = Commit {
        new_operations: &[0, 1],
        intents: Some(changes),
        links: &links,
        breaks: std::slice::from_ref(&behind),
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        advance_to: Some(&to),
        ..nothing(&held.run_id, &rows)
    };
    let receipt = store.commit(held, &written).await?;
    assert_eq!(receipt.repairs_written, ["p1"]);
    Ok(receipt.outcome)
}

/// What [`commit_of_everything`] leaves behind, once.
async fn assert_everything_once(database: &Database) {
    let counts: Vec<i64> = sqlx::query(
        "select (select count(*) from paysweep.run_commits), \
         (select count(*) from paysweep.operations), (select count(*) - 1 from paysweep.intents), \
         (select count(*) from paysweep.matches), (select count(*) from paysweep.repairs), \
         (select count(*) from paysweep.repair_events), \
         (select count(*) from paysweep.break_events), \
         (select count(*) from paysweep.intents where intent_id = 'A' and version = 2), \
         (select count(*) from paysweep.watermarks)",
    )
    .fetch_one(&mut database.connection().await)
    .await
    .map(|row| (0..9).map(|at| row.get(at)).collect())
    .expect("counts");
    assert_eq!(counts, [1, 2, 1, 1, 1, 1, 1, 1, 1]);
}

#[tokio::test]
async fn the_defaults_of_server_and_database_change_nothing() {
    let database = Database::migrated().await;
    let name = database.quoted();
    database
        .run(&format!(
            "create schema evil; \
             create table evil.runs (run_id text); create table evil.operations (source int); \
             create table evil.leases (source text); create table evil.schema_version (version int); \
             create function evil.greatest(bigint, bigint) returns bigint language sql as 'select 0::bigint'; \
             create function evil.clock_timestamp() returns timestamptz language sql \
             as 'select ''epoch''::timestamptz'; \
             alter database {name} set search_path = evil, public; \
             alter database {name} set timezone = 'Asia/Kathmandu'; \
             alter database {name} set datestyle = 'SQL, DMY'; \
             alter database {name} set default_transaction_isolation = 'serializable'; \
             alter database {name} set default_transaction_deferrable = on; \
             alter database {name} set standard_conforming_strings = off; \
             alter database {name} set extra_float_digits = 0; \
             alter database {name} set statement_timeout = '1ms'; \
             alter database {name} set lock_timeout = '1ms'; \
             alter database {name} set idle_in_transaction_session_timeout = '1ms'"
        ))
        .await;
    let mut store = database.store().await;
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let held = claim(&mut store, "r1").await;
    let failure = store
        .claim(SOURCE, "r2", "other", TTL)
        .await
        .expect_err("a live lease");
    assert!(failure.what.contains("run r1 until 2"), "{failure}");
    let outcome = commit_of_everything(&mut store, &held).await;
    assert_eq!(outcome.expect("a commit"), Outcome::Committed);
    let found = store
        .operations(SOURCE, OperationSelection::All)
        .await
        .expect("operations");
    assert_eq!(found.rows.get(0), operation("ch_1"));
}

#[tokio::test]
async fn a_database_that_only_lets_itself_be_read_is_denied_and_said_so() {
    let database = Database::migrated().await;
    database
        .run(&format!(
            "alter database {} set default_transaction_read_only = on",
            database.quoted()
        ))
        .await;
    let failure = PostgresStore::open(&database.address(), Mode::ReadWrite)
        .await
        .expect_err("no store to write");
    assert_eq!(failure.exit, Exit::Denied);
    assert!(failure.why.contains("default_transaction_read_only"));
    let mut store = PostgresStore::open(&database.address(), Mode::ReadOnly)
        .await
        .expect("a store to read");
    assert_eq!(store.runs(1).await.expect("runs"), []);
    assert_eq!(
        exit_of(store.claim(SOURCE, "r1", "o", TTL).await),
        Exit::Denied
    );
}

#[tokio::test]
async fn a_store_that_is_missing_older_or_newer_is_not_ready() {
    let database = Database::empty().await;
    let address = database.address();
    let refused = async |mode, wanted: &str| {
        let failure = PostgresStore::open(&address, mode).await.expect_err(wanted);
        assert_eq!(failure.exit, Exit::NotReady, "{failure}");
        assert!(failure.to_string().contains(wanted), "{failure}");
        assert!(failure.what.starts_with("postgres://"), "{failure}");
    };
    for mode in [Mode::ReadOnly, Mode::ReadWrite] {
        refused(mode, "paysweep migrate").await;
    }
    let (one, two) = tokio::join!(
        PostgresStore::migrate(&address),
        PostgresStore::migrate(&address)
    );
    one.expect("a migration");
    two.expect("a migration beside it");
    PostgresStore::migrate(&address)
        .await
        .expect("nothing to do");
    let mut store = database.store().await;
    let held = claim(&mut store, "r1").await;
    for (version, wanted) in [(0, "paysweep migrate"), (99, "newer program")] {
        database
            .run(&format!(
                "update paysweep.schema_version set version = {version}"
            ))
            .await;
        refused(Mode::ReadWrite, wanted).await;
        // A run that is under way notices inside its commit.
        let rows = Operations::default();
        let result = store.commit(&held, &nothing("r1", &rows)).await;
        assert_eq!(exit_of(result), Exit::NotReady);
    }
    assert_eq!(
        exit_of(PostgresStore::migrate(&address).await),
        Exit::NotReady
    );
}

#[tokio::test]
async fn a_schema_with_tables_of_others_is_never_created_over() {
    let database = Database::empty().await;
    database
        .run("create schema paysweep; create table paysweep.runs (mine int)")
        .await;
    let result = PostgresStore::migrate(&database.address()).await;
    assert_eq!(exit_of(result), Exit::NotReady);
    database.run("select mine from paysweep.runs").await;
    let beside = Address::parse(&format!("{}?schema=live", database.url())).expect("an address");
    PostgresStore::migrate(&beside)
        .await
        .expect("another schema");
    PostgresStore::open(&beside, Mode::ReadWrite)
        .await
        .expect("a store");
}

#[tokio::test]
async fn nothing_is_there_to_connect_to_or_nobody_is_let_in() {
    let away = Address::parse("postgres://app:hunter2@127.0.0.2:1/pay").expect("an address");
    let failure = PostgresStore::open(&away, Mode::ReadWrite)
        .await
        .expect_err("no server");
    assert_eq!(failure.exit, Exit::Temporary);
    let database = Database::migrated().await;
    let stranger = database.url_as("nobody_knows:hunter2");
    let stranger = Address::parse(&stranger).expect("an address");
    let denied = PostgresStore::open(&stranger, Mode::ReadWrite)
        .await
        .expect_err("no such role");
    assert_eq!(denied.exit, Exit::Denied);
    for told in [failure, denied] {
        assert!(!format!("{told} {told:?}").contains("hunter2"), "{told}");
    }
}

/// Runs one future for each number at once, on this thread.
async fn at_once<T: 'static, F: Future<Output = T> + 'static>(
    count: usize,
    one: impl Fn(usize) -> F,
) -> Vec<T> {
    let local = tokio::task::LocalSet::new();
    let running: Vec<_> = (0..count).map(|n| local.spawn_local(one(n))).collect();
    local
        .run_until(async {
            let mut done = Vec::new();
            for task in running {
                done.push(task.await.expect("no panic"));
            }
            done
        })
        .await
}

#[tokio::test]
async fn of_sixteen_runs_that_start_together_one_gets_the_source_and_one_the_key() {
    let database = Database::migrated().await;
    let address = database.address();
    let mut first = database.store().await;
    for (source, before) in [("new", None), ("expired", Some(EXPIRED))] {
        let mut epoch = 0;
        if let Some(ttl) = before {
            let claim = first.claim(source, "r0", "o", ttl).await;
            epoch = claim.expect("a free source").epoch;
        }
        let address = address.clone();
        let outcomes = at_once(16, move |n| {
            let address = address.clone();
            async move {
                let mut store = PostgresStore::open(&address, Mode::ReadWrite)
                    .await
                    .expect("a store");
                let name = format!("r{n}");
                let sources = [source.to_owned()];
                let begun = store
                    .begin(&RunStart {
                        run_id: &name,
                        command: "run",
                        sources: &sources,
                        as_of: AS_OF,
                        started_at: AS_OF,
                        version: "0.1.0",
                        config_hash: "c",
                        run_key: Some(RunKey {
                            key: source,
                            fingerprint: "f",
                        }),
                        started_by: "kim",
                        owner: &name,
                        ttl: TTL,
                    })
                    .await;
                (begun, store.claim(source, &name, &name, TTL).await)
            }
        })
        .await;
        let (mut begun, mut claimed) = (0, 0);
        for (key, claim) in outcomes {
            match key {
                Ok(_) => begun += 1,
                Err(failure) => assert_eq!(failure.exit, Exit::Locked, "{failure}"),
            }
            match claim {
                Ok(claim) => {
                    claimed += 1;
                    assert_eq!(claim.epoch, epoch + 1);
                }
                Err(failure) => assert_eq!(failure.exit, Exit::Locked, "{failure}"),
            }
        }
        assert_eq!((begun, claimed), (1, 1), "{source}");
    }
}

#[tokio::test]
async fn a_run_that_asks_again_for_its_own_source_keeps_it() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    let held = claim(&mut store, "r1").await;
    assert_eq!(claim(&mut store, "r1").await, held);
}

#[tokio::test]
async fn nobody_takes_a_source_between_the_look_at_the_claim_and_the_end_of_the_commit() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    import(&mut store, &[intent("A", IntentStatus::Failed)]).await;
    let held = store
        .claim(SOURCE, "r1", "sleeper", EXPIRED)
        .await
        .expect("a free source");
    let rows = Operations::default();
    let url = database.url();
    let was_held = Cell::new(false);
    // Called in the middle of the commit.
    let thief = |_: &paysweep::model::repair::Repair, _: &str| {
        let url = url.clone();
        let stolen = super::postgres::aside(move || async move {
            let steal = "set lock_timeout = '100ms'; update paysweep.leases set epoch = epoch + 1";
            super::postgres::administer_at(&url, steal.to_owned()).await
        });
        was_held.set(stolen.is_err());
        break_about("c1", BreakClass::RepairConflict, "changed")
    };
    let written = Commit {
        breaks: &[break_about("b1", BreakClass::StatusBehind, "e")],
        repairs: &[set_succeeded("p1", 7, RepairState::Applied)],
        on_conflict: &thief,
        ..nothing("r1", &rows)
    };
    store.commit(&held, &written).await.expect("a commit");
    assert!(was_held.get());
    assert_eq!(claim(&mut store, "r2").await.epoch, held.epoch + 1);
}

#[tokio::test]
async fn two_persons_decide_about_one_break_one_after_the_other() {
    use paysweep::model::breaks::CloseAs;
    let database = Database::migrated().await;
    let mut store = database.store().await;
    let rows = Operations::default();
    let written = Commit {
        breaks: &[break_about("b1", BreakClass::AmountMismatch, "e")],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let address = database.address();
    let outcomes = at_once(8, move |_| {
        let address = address.clone();
        async move {
            let mut store = PostgresStore::open(&address, Mode::ReadWrite)
                .await
                .expect("a store");
            let note = super::store::note("fine");
            store.close("b1", CloseAs::Accepted, &note).await
        }
    })
    .await;
    let closed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    assert_eq!(closed, 1);
    for outcome in outcomes {
        if let Err(failure) = outcome {
            assert_eq!(failure.exit, Exit::Rejected, "{failure}");
        }
    }
    let detail = store.break_detail("b1", AS_OF).await.expect("a break");
    assert_eq!(detail.events.len(), 1);
}

#[tokio::test]
async fn of_eight_persons_who_approve_a_repair_one_did() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    let rows = Operations::default();
    let written = Commit {
        repairs: &[set_succeeded("p1", 1, RepairState::Proposed)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let address = database.address();
    let outcomes = at_once(8, move |_| {
        let address = address.clone();
        async move {
            let mut store = PostgresStore::open(&address, Mode::ReadWrite)
                .await
                .expect("a store");
            let note = super::store::note("fine");
            store.decide("p1", Decision::Approve, &note).await
        }
    })
    .await;
    // Those who came second collide with an event of the same number, look again, and see that it is decided.
    let exits: Vec<Option<Exit>> = outcomes
        .into_iter()
        .map(|outcome| outcome.err().map(|failure| failure.exit))
        .collect();
    assert_eq!(exits.iter().filter(|exit| exit.is_none()).count(), 1);
    assert_eq!(
        exits
            .iter()
            .filter(|exit| **exit == Some(Exit::Rejected))
            .count(),
        7,
        "{exits:?}"
    );
    let repair = store.repair("p1").await.expect("a repair");
    assert_eq!(repair.events.len(), 2);
}

#[tokio::test]
async fn a_commit_that_is_dropped_half_way_leaves_nothing_and_the_store_usable() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let held = claim(&mut store, "r1").await;
    // Given up each time it has waited once more for the server.
    let mut dropped = 0;
    loop {
        let mut commit = std::pin::pin!(commit_of_everything(&mut store, &held));
        let mut waited = 0;
        let outcome = std::future::poll_fn(|context| match commit.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Some(outcome)),
            Poll::Pending if waited == dropped => Poll::Ready(None),
            Poll::Pending => {
                waited += 1;
                Poll::Pending
            }
        })
        .await;
        match outcome {
            None => dropped += 1,
            Some(outcome) => {
                outcome.expect("a commit");
                break;
            }
        }
    }
    assert!(dropped > 0);
    assert_everything_once(&database).await;
}

/// What a step does so that its session ends.
const DIES: &str = "perform pg_terminate_backend(pg_backend_pid())";

/// Makes those statements of a commit misbehave whose number is so: `= 3`. The count goes on through every try.
async fn arm(database: &Database, which: &str, action: &str) {
    const TABLES: [&str; 9] = [
        "run_commits",
        "operations",
        "intents",
        "matches",
        "repairs",
        "repair_events",
        "breaks",
        "break_events",
        "watermarks",
    ];
    let mut bombs = format!(
        "create sequence public.steps; \
         create function public.step() returns trigger language plpgsql as $$ begin \
         if nextval('public.steps') {which} then {action}; end if; return null; end $$;"
    );
    bombs += &TABLES
        .map(|table| {
            format!(
                "create trigger step after insert or update on paysweep.{table} \
                 for each statement execute function public.step();"
            )
        })
        .concat();
    // One more at the end of all: when the transaction commits.
    bombs.push_str(
        "create constraint trigger last_step after insert on paysweep.run_commits \
         deferrable initially deferred for each row execute function public.step();",
    );
    database.run(&bombs).await;
}

/// How many statements there were so far.
async fn steps_of(database: &Database) -> i64 {
    sqlx::query_scalar("select last_value from public.steps")
        .fetch_one(&mut database.connection().await)
        .await
        .expect("a number")
}

/// A database with an intent to repair, and a claim on its source.
async fn ready(database: &Database) -> (PostgresStore, Claim) {
    let mut store = database.store().await;
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let held = claim(&mut store, "r1").await;
    (store, held)
}

/// A serialization failure, a deadlock, a lock that was not given, a statement that was stopped, an idle session that was
/// ended: each at statements from the first to the one that commits.
#[tokio::test]
async fn a_transaction_that_lost_a_race_or_its_patience_is_done_again_whole() {
    for code in ["40001", "40P01", "55P03", "57014", "25P03"] {
        let mut at = 1;
        loop {
            let database = Database::migrated().await;
            let (mut store, held) = ready(&database).await;
            let raise = format!("raise exception 'no' using errcode = '{code}'");
            arm(&database, &format!("= {at}"), &raise).await;
            let outcome = commit_of_everything(&mut store, &held).await;
            assert_eq!(
                outcome.expect("a commit"),
                Outcome::Committed,
                "{code} {at}"
            );
            assert_everything_once(&database).await;
            let steps = steps_of(&database).await;
            if steps < at {
                break;
            }
            // The tries add up: what failed at 4 went on from 5.
            assert!(steps > at, "{code} {at}: it was done again");
            at += 4;
        }
        assert!(at > 9, "{code}");
    }
}

#[tokio::test]
async fn a_race_that_is_lost_each_time_ends_with_75_and_nothing_written() {
    let database = Database::migrated().await;
    let (mut store, held) = ready(&database).await;
    let raise = "raise exception 'could not serialize access' using errcode = '40001'";
    arm(&database, "> 3", raise).await;
    let failure = commit_of_everything(&mut store, &held)
        .await
        .expect_err("no commit");
    assert_eq!(failure.exit, Exit::Temporary);
    let said = failure.to_string();
    for wanted in [
        "the store was busy while ",
        "could not serialize access",
        "other sessions kept it busy through every try",
    ] {
        assert!(said.contains(wanted), "{said}");
    }
    // Eight tries, each up to the statement that fails.
    assert!(steps_of(&database).await >= 11);
    assert!(!store.is_committed("r1", SOURCE).await.expect("an answer"));
    let counts = store.counts(SOURCE, SCOPE).await.expect("counts");
    assert_eq!((counts.operations, counts.intents), (0, 1));
}

/// The real thing: a lock that nobody gives for longer than `lock_timeout`, and a statement that somebody stops.
#[tokio::test]
async fn a_lock_that_is_waited_for_too_long_and_a_statement_that_is_stopped_are_tried_again() {
    let database = Database::migrated().await;
    let (mut store, held) = ready(&database).await;
    let mut other = database.connection().await;
    sqlx::raw_sql("begin; lock table paysweep.break_events")
        .execute(&mut other)
        .await
        .expect("a lock");
    let begun = std::time::Instant::now();
    let meanwhile = async {
        // First the server gives up (5 s), then somebody stops the second try.
        tokio::time::sleep(std::time::Duration::from_secs(6)).await;
        let stopped: i64 = sqlx::query_scalar(
            "with waiting as materialized (select pid from pg_stat_activity \
             where datname = current_database() and wait_event_type = 'Lock') \
             select count(*) from waiting where pg_cancel_backend(pid)",
        )
        .fetch_one(&mut other)
        .await
        .expect("a number");
        sqlx::raw_sql("rollback")
            .execute(&mut other)
            .await
            .expect("the lock to be given");
        stopped
    };
    let (outcome, stopped) = tokio::join!(commit_of_everything(&mut store, &held), meanwhile);
    assert_eq!(outcome.expect("a commit"), Outcome::Committed);
    assert_eq!(stopped, 1);
    assert!(begun.elapsed() > std::time::Duration::from_secs(5));
    assert_everything_once(&database).await;
}

#[tokio::test]
async fn a_session_that_is_killed_at_any_statement_leaves_all_or_nothing_and_is_made_good() {
    let mut at = 1;
    loop {
        let database = Database::migrated().await;
        let (mut store, held) = ready(&database).await;
        arm(&database, &format!("= {at}"), DIES).await;
        let outcome = commit_of_everything(&mut store, &held).await;
        assert_eq!(outcome.expect("a commit"), Outcome::Committed, "{at}");
        assert_everything_once(&database).await;
        if steps_of(&database).await < at {
            break;
        }
        at += 1;
    }
    assert!(at > 9, "every table was written: {at}");
}

/// What a [`Cutter`] does to the connection that sends `commit`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    /// The server never sees it.
    Before,
    /// The server sees it, the client no answer.
    After,
    /// As after, and nobody can connect any more.
    AfterAndAway,
}

/// Stands between store and server, and cuts the first connection that commits after it was armed.
struct Cutter {
    port: u16,
    is_armed: Arc<AtomicBool>,
    has_cut: Arc<AtomicBool>,
}

impl Cutter {
    fn before(database: &Database, cut: Cut) -> Cutter {
        let address: sqlx::postgres::PgConnectOptions = database.url().parse().expect("a URL");
        let server = (address.get_host().to_owned(), address.get_port());
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let cutter = Cutter {
            port: listener.local_addr().expect("an address").port(),
            is_armed: Arc::default(),
            has_cut: Arc::default(),
        };
        let (is_armed, has_cut) = (Arc::clone(&cutter.is_armed), Arc::clone(&cutter.has_cut));
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let Ok(client) = client else { break };
                if cut == Cut::AfterAndAway && has_cut.load(Ordering::SeqCst) {
                    continue;
                }
                let server = TcpStream::connect((server.0.as_str(), server.1)).expect("a server");
                let (is_armed, has_cut) = (Arc::clone(&is_armed), Arc::clone(&has_cut));
                pass(client, server, move |bytes| {
                    let commits = bytes.windows(7).any(|part| part == b"commit\0");
                    let cuts = commits && is_armed.swap(false, Ordering::SeqCst);
                    if cuts {
                        has_cut.store(true, Ordering::SeqCst);
                    } else if commits {
                        return None;
                    }
                    cuts.then_some(cut)
                });
            }
        });
        cutter
    }

    fn address(&self, database: &Database) -> Address {
        let url = database.url();
        let (head, rest) = url.rsplit_once('@').expect("a user");
        let (_, tail) = rest.split_once('/').expect("a database");
        let url = format!("{head}@{}:{}/{tail}", Ipv4Addr::LOCALHOST, self.port);
        Address::parse(&url).expect("an address")
    }
}

fn pass(
    client: TcpStream,
    server: TcpStream,
    cuts: impl Fn(&[u8]) -> Option<Cut> + Send + 'static,
) {
    let (mut from_client, mut to_client) = (client.try_clone().expect("a handle"), client);
    let (mut from_server, mut to_server) = (server.try_clone().expect("a handle"), server);
    let is_cut = Arc::new(AtomicBool::new(false));
    let is_cut_there = Arc::clone(&is_cut);
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count) = from_client.read(&mut buffer) {
            if count == 0 {
                break;
            }
            match cuts(&buffer[..count]) {
                None => {
                    if to_server.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                }
                Some(cut) => {
                    is_cut.store(true, Ordering::SeqCst);
                    let _ = from_client.shutdown(Shutdown::Both);
                    if cut != Cut::Before {
                        let _ = to_server.write_all(&buffer[..count]);
                        // Long enough for the server to finish; longer changes nothing.
                        std::thread::sleep(std::time::Duration::from_millis(50));
                    }
                    break;
                }
            }
        }
        let _ = to_server.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut buffer = vec![0; 1 << 16];
        while let Ok(count) = from_server.read(&mut buffer) {
            if count == 0 || is_cut_there.load(Ordering::SeqCst) {
                break;
            }
            if to_client.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
    });
}

#[tokio::test]
async fn a_connection_that_breaks_at_the_commit_is_resolved_to_what_really_happened() {
    for cut in [Cut::Before, Cut::After, Cut::AfterAndAway] {
        let database = Database::migrated().await;
        let cutter = Cutter::before(&database, cut);
        let mut store = PostgresStore::open(&cutter.address(&database), Mode::ReadWrite)
            .await
            .expect("a store");
        import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
        let held = claim(&mut store, "r1").await;
        cutter.is_armed.store(true, Ordering::SeqCst);
        let outcome = commit_of_everything(&mut store, &held).await;
        assert!(cutter.has_cut.load(Ordering::SeqCst));
        match (cut, outcome) {
            (Cut::Before | Cut::After, outcome) => {
                assert_eq!(outcome.expect("a commit"), Outcome::Committed);
            }
            (Cut::AfterAndAway, outcome) => {
                let failure = outcome.expect_err("an outcome that nobody knows");
                assert_eq!(failure.exit, Exit::Temporary);
                assert!(
                    failure
                        .state
                        .contains("outcome of the last window is unknown"),
                    "{failure}"
                );
            }
        }
        assert_everything_once(&database).await;
    }
}

#[tokio::test]
async fn a_claim_whose_answer_was_lost_is_given_again() {
    let database = Database::migrated().await;
    let cutter = Cutter::before(&database, Cut::After);
    let mut store = PostgresStore::open(&cutter.address(&database), Mode::ReadWrite)
        .await
        .expect("a store");
    cutter.is_armed.store(true, Ordering::SeqCst);
    assert_eq!(claim(&mut store, "r1").await.epoch, 1);
    assert!(cutter.has_cut.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_role_needs_no_more_than_its_grants_and_is_denied_without_them() {
    let database = Database::migrated().await;
    let role = database.quoted().replace('"', "") + "_role";
    database.run(&format!("create role \"{role}\" login")).await;
    let address = Address::parse(&database.url_as(&role)).expect("an address");
    let open = async || PostgresStore::open(&address, Mode::ReadWrite).await;
    let failure = open().await.expect_err("no usage");
    assert_eq!(failure.exit, Exit::Denied, "{failure}");
    database
        .run(&format!(
            "grant usage on schema paysweep to \"{role}\"; \
             grant select on all tables in schema paysweep to \"{role}\""
        ))
        .await;
    let failure = open().await.expect_err("no right to insert");
    assert_eq!(failure.exit, Exit::Denied, "{failure}");
    assert!(failure.what.contains("break_events, breaks, "), "{failure}");
    let mut store = PostgresStore::open(&address, Mode::ReadOnly)
        .await
        .expect("a store to read");
    let failure = store
        .claim(SOURCE, "r1", "o", Span::hours(1))
        .await
        .expect_err("no right to insert");
    assert_eq!(failure.exit, Exit::Denied, "{failure}");
    database
        .run(&format!("drop owned by \"{role}\"; drop role \"{role}\""))
        .await;
    // What is append-only needs no right to change.
    let grants = include_str!("../../cron/postgres_role.sql");
    let grants = grants.replace("paysweep_run", &format!("\"{role}\""));
    assert_eq!(
        grants.matches(&role).count(),
        7,
        "every line was taken over"
    );
    database.run(&grants).await;
    let mut store = open().await.expect("a store");
    store.assert_least().await.expect("no more than it needs");
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let held = claim(&mut store, "r1").await;
    let outcome = commit_of_everything(&mut store, &held).await;
    assert_eq!(outcome.expect("a commit"), Outcome::Committed);
    assert_eq!(
        store
            .counts(SOURCE, SCOPE)
            .await
            .expect("counts")
            .operations,
        2
    );
    store
        .prune_runs(AS_OF, AS_OF, 100)
        .await
        .expect("old reports to be forgotten");
    // What is forgotten of operations is a table that is dropped.
    let retention = Retention {
        as_of: AS_OF,
        before: Instant::MAX,
        floors: &[],
        open_for: Span::ZERO,
    };
    let looked = store.generations(&retention).await.expect("one generation");
    assert_eq!(looked.len(), 1);
    let failure = store.forget(&retention).await.expect_err("not its own");
    assert_eq!(failure.exit, Exit::Denied, "{failure}");
    // Each right too many is named.
    for (right, wanted) in [
        (
            "grant update on paysweep.repairs to R",
            "may change repairs",
        ),
        (
            "grant delete on paysweep.breaks to R",
            "may delete from breaks",
        ),
        (
            "grant delete on paysweep.operations_g1 to R",
            "may delete from breaks, operations_g1",
        ),
        (
            "grant truncate on paysweep.repair_events to R",
            "repair_events",
        ),
        (
            "grant create on schema paysweep to R",
            "may create things in schema paysweep",
        ),
        (
            "grant pg_write_server_files to R",
            "is a member of pg_write_server_files",
        ),
        ("alter role R createrole", "may create roles"),
        ("alter role R bypassrls", "bypasses row security"),
        (
            "alter role R superuser",
            "the role of [store] url is a superuser",
        ),
    ] {
        if let Err(failure) = store.assert_least().await {
            assert!(!failure.what.contains(wanted), "{failure}");
        }
        database
            .run(&right.replace('R', &format!("\"{role}\"")))
            .await;
        let failure = store.assert_least().await.expect_err(right);
        assert_eq!(failure.exit, Exit::Denied);
        assert!(failure.what.contains(wanted), "{failure}");
        assert!(failure.remedy.contains("cron/postgres_role.sql"));
    }
    drop(store);
    database
        .run(&format!(
            "alter role \"{role}\" nosuperuser; drop owned by \"{role}\"; drop role \"{role}\""
        ))
        .await;
}

#[tokio::test]
async fn keys_are_compared_byte_by_byte() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    let rows = operations(&[
        operation("a"),
        operation("B"),
        operation("ä"),
        operation("a\u{308}"),
        operation("A"),
        operation("a "),
    ]);
    let written = Commit {
        new_operations: &[0, 1, 2, 3, 4, 5],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let found = store
        .operations(SOURCE, OperationSelection::All)
        .await
        .expect("operations");
    let got: Vec<&str> = found.rows.iter().map(|row| row.operation_id).collect();
    assert_eq!(got, ["A", "B", "a", "a ", "a\u{308}", "ä"]);
    let found = store
        .operations(SOURCE, OperationSelection::Keys(&["a"]))
        .await
        .expect("operations");
    assert_eq!(found.rows.len(), 1);
}

#[test]
fn both_schemas_have_the_same_tables_columns_and_indexes() {
    let plain = |text: &str| {
        let mut words: Vec<String> = Vec::new();
        for line in text.lines() {
            let line = line.split("--").next().unwrap_or_default();
            let line = line
                .replace("text collate \"C\"", "text")
                .replace("bigint", "integer")
                .replace(") strict, without rowid;", ");")
                .replace(") strict;", ");");
            words.extend(line.split_whitespace().map(str::to_owned));
        }
        words
    };
    let sqlite = plain(include_str!("../../migrations/sqlite/0001_init.sql"));
    let postgres = plain(include_str!("../../migrations/postgres/0001_init.sql"));
    assert_eq!(sqlite, postgres);
    let names = |engine: &str| {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/migrations/").to_owned() + engine;
        let mut names: Vec<_> = std::fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
        names.sort();
        names
    };
    assert_eq!(names("sqlite"), names("postgres"));
}

#[tokio::test]
async fn a_new_row_that_is_there_after_all_is_left_alone_and_the_others_are_written() {
    let database = Database::migrated().await;
    let mut store = database.store().await;
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    // Somebody else wrote A after this import was planned; B is nobody's yet.
    let late = [
        intent("A", IntentStatus::Succeeded),
        intent("B", IntentStatus::Succeeded),
    ];
    import(&mut store, &late).await;
    let stored: Vec<(String, String)> =
        sqlx::query_as("select intent_id, status from paysweep.intents order by intent_id")
            .fetch_all(&mut database.connection().await)
            .await
            .expect("intents");
    let row = |id: &str, status: &str| (id.to_owned(), status.to_owned());
    assert_eq!(stored, [row("A", "pending"), row("B", "succeeded")]);
    // The same session goes on as if nothing had been.
    import(&mut store, &[intent("C", IntentStatus::Pending)]).await;
    let count: i64 = sqlx::query_scalar("select count(*) from paysweep.intents")
        .fetch_one(&mut database.connection().await)
        .await
        .expect("a count");
    assert_eq!(count, 3);
}

#[tokio::test]
async fn rows_that_are_new_travel_by_copy_whatever_their_texts_hold() {
    let database = Database::migrated().await;
    // What is copied fires no rule of `insert`; what is inserted is turned away by this one.
    database
        .run("create rule by_insert as on insert to paysweep.operations do instead nothing")
        .await;
    let mut store = database.store().await;
    let odd = "tab\t, line\n, quote\", back\\slash, \\N, \u{1f}, 😀";
    let rows = operations(&[
        Operation {
            description: odd,
            ..operation("ch_1")
        },
        Operation {
            fee_minor: None,
            net_minor: Some(i64::MIN),
            ..operation("ch_2")
        },
    ]);
    let held = claim(&mut store, "r1").await;
    let written = Commit {
        new_operations: &[0, 1],
        ..nothing("r1", &rows)
    };
    store.commit(&held, &written).await.expect("a commit");
    let stored: Vec<(String, String, Option<i64>, Option<i64>)> = sqlx::query_as(
        "select operation_id, description, fee_minor, net_minor from paysweep.operations order by 1",
    )
    .fetch_all(&mut database.connection().await)
    .await
    .expect("operations");
    let expected = [
        ("ch_1".to_owned(), odd.to_owned(), Some(30), None),
        ("ch_2".to_owned(), String::new(), None, Some(i64::MIN)),
    ];
    assert_eq!(stored, expected);
}
