//! What a role may not write, and what a table of the company's own keeps from being written: rights, row-level security and
//! triggers of `PostgreSQL`.

use std::sync::atomic::{AtomicU32, Ordering};

use super::apply::{AFTER, BEFORE, rows, run, shop, statements, states};
use super::intents_sql::Engine;
use super::postgres::{Database, aside};
use super::scene::Scene;

/// A role of one test, which is gone with it.
struct Role<'d> {
    name: String,
    database: &'d Database,
}

impl<'d> Role<'d> {
    fn new(database: &'d Database) -> Role<'d> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("paysweep_write_{}_{number}", std::process::id());
        let role = Role { name, database };
        role.run("create role ROLE login");
        role
    }

    /// Runs statements about it.
    fn run(&self, statements: &str) {
        let engine_url = self.database.url();
        let text = statements.replace("ROLE", &self.name);
        aside(move || async move {
            super::postgres::administer_at(&engine_url, text.clone())
                .await
                .expect(&text);
        });
    }
}

impl Drop for Role<'_> {
    fn drop(&mut self) {
        self.run("drop owned by ROLE; drop role ROLE");
    }
}

const GRANTS: &str =
    "grant usage on schema app to ROLE; grant select, update on app.payments to ROLE";

/// A shop whose repairs are written as a role with some rights; statements say more about them.
fn scene_of(engine: &Engine, role: &Role<'_>, more: &str) -> Scene {
    let repair = format!(
        "[repair]\nmissing_local = \"off\"\n{}",
        statements(engine, true)
    );
    let url = format!(
        "[repair.apply]\nurl = \"{}\"",
        role.database.url_as(&role.name)
    );
    let scene = shop(engine, None, &repair.replace("[repair.apply]", &url));
    role.run(&format!("{GRANTS}; {more}"));
    scene
}

fn engine() -> Engine {
    Engine::Postgres(aside(|| async { Database::empty().await }))
}

fn database(engine: &Engine) -> &Database {
    match engine {
        Engine::Postgres(database) => database,
        Engine::MariaDb(_) | Engine::Sqlite => unreachable!("made so"),
    }
}

#[test]
fn a_right_that_is_missing_is_told_before_anything_is_committed() {
    let engine = engine();
    let role = Role::new(database(&engine));
    let scene = scene_of(&engine, &role, "revoke update on app.payments from ROLE");
    for line in ["run --dry-run -f json", "run -f json"] {
        let told = scene.now(line);
        assert_eq!(told.code, 5, "{line}: {told:?}");
        assert!(
            told.stderr.contains("permission denied"),
            "{line}: {told:?}"
        );
        assert!(
            told.stderr.contains("nothing was written"),
            "{line}: {told:?}"
        );
    }
    assert_eq!(states(&scene), Vec::<String>::new());
    let mark = scene.say("watermark show -f json").json();
    assert!(mark["watermarks"][0]["watermark"].is_null(), "{mark}");
    let check = scene.say("check").stdout;
    let line = check.lines().find(|line| line.contains("apply set_status"));
    assert!(line.expect("a line").starts_with("FAIL"), "{check}");
    role.run("grant update (state, stripe_id, repair, touched, age) on app.payments to ROLE");
    let told = scene.now("run -f json");
    assert_eq!(told.code, 1, "{told:?}");
    assert_eq!(rows(&engine, &scene)[0], AFTER[0]);
    assert_eq!(states(&scene), ["applied"]);
}

#[test]
fn what_row_level_security_and_triggers_keep_from_being_written_is_a_conflict() {
    let cases = [
        (
            "alter table app.payments enable row level security; \
             create policy seen on app.payments for select to ROLE using (true); \
             create policy written on app.payments for update to ROLE using (id <> 'A')",
            "the statement changed no row",
        ),
        (
            "alter table app.payments enable row level security; \
             create policy seen on app.payments for select to ROLE using (id <> 'A'); \
             create policy written on app.payments for update to ROLE using (true)",
            "there is no row A",
        ),
        (
            "alter table app.payments enable row level security; \
             create policy seen on app.payments for select to ROLE using (true); \
             create policy written on app.payments for update to ROLE using (true) with check (state <> 'paid')",
            "row-level security",
        ),
        (
            "create function app.no() returns trigger language plpgsql as $$ begin return null; end $$; \
             create trigger no before update on app.payments for each row execute function app.no()",
            "the statement changed no row",
        ),
        (
            "create function app.no() returns trigger language plpgsql as \
             $$ begin raise exception 'the month is closed'; end $$; \
             create constraint trigger no after update on app.payments deferrable initially deferred \
             for each row execute function app.no()",
            "the month is closed",
        ),
    ];
    for (more, part) in cases {
        let engine = engine();
        let role = Role::new(database(&engine));
        let scene = scene_of(&engine, &role, more);
        let told = scene.now("run -f json");
        assert_eq!(told.code, 1, "{part}: {told:?}");
        assert!(told.stdout.contains(part), "{part}: {}", told.stdout);
        assert_eq!(rows(&engine, &scene), BEFORE, "{part}");
        assert_eq!(states(&scene), ["failed"], "{part}");
        let report = told.json();
        assert_eq!(
            report["summary"]["by_class"]["repair_conflict"], 1,
            "{part}: {report}"
        );
        assert!(
            scene.say("check").stdout.contains("the chain holds"),
            "{part}"
        );
    }
}

/// A trigger of the company's own that writes more is part of the same write: it happens once, or not at all.
#[test]
fn what_a_trigger_writes_beside_a_repair_is_written_once() {
    let engine = engine();
    let role = Role::new(database(&engine));
    let scene = scene_of(
        &engine,
        &role,
        "create table app.log (id text, what text); grant insert on app.log to ROLE; \
         create function app.note() returns trigger language plpgsql as \
         $$ begin insert into app.log values (new.id, new.state::text); return new; end $$; \
         create trigger note after update on app.payments for each row execute function app.note()",
    );
    assert_eq!(scene.now("run").code, 1);
    // The refund stays a finding; nothing is written for it, and nothing once more.
    assert_eq!(scene.now("run").code, 1);
    assert_eq!(rows(&engine, &scene)[0], AFTER[0]);
    run(
        &engine,
        &scene,
        "do $$ begin if (select count(*) from app.log where id = 'A' and what = 'paid') <> 1 then \
         raise exception 'not once'; end if; end $$",
    );
}
