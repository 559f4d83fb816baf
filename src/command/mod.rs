//! The commands: one file each. Read [`run`] first: it is the straight line that everything else serves.
//!
//! | module | command or step |
//! |---|---|
//! | [`run`] | `run`: the straight line over all sources |
//! | `slice` | one source of it, from its watermark to its commit |
//! | `catch_up` | a long way of an API source, slice by slice |
//! | `outside` | whom a run tells beside its report |
//! | `prepare` | each source with its profile, the files of both sides |
//! | `own_side` | our own side: a file, the store's table, or the company's |
//! | `others` | what other sources show and tell of the same intents |
//! | `carry` | repairs on their way into the company's own table |
//! | `pin` | whose account a source reads, found again or refused |
//! | `frame` | window, coverage, where the watermark goes |
//! | [`gather`] | both sides of a slice, complete for their keys |
//! | `second_look` | single rows that are asked for by their id |
//! | `told` | what there is to tell: slices as they were judged, and failures |
//! | [`compose`], `checks`, `lines` | the report of a run: outcome and exit code; what was proved; sums and lists |
//! | [`deliver`] | where it is told: stdout and files |
//! | `alert`, `outbox`, `metrics` | who else is told: channels of runs, and of repairs; monitors |
//! | [`diff`] | `diff`: the same line without a memory |
//! | [`breaks`], [`repairs`], `export`, [`runs`], `prune` | the human loop and history |
//! | `retention` | `operations prune` |
//! | [`watermark`] | `watermark show`, `set`, `rewind`, `repin` |
//! | [`intents`] | `intents import` |
//! | `explain` | why a row matched, or what stopped it |
//! | [`check`], [`status`] | is it set up right, is it up to date? |
//! | [`init`], [`profiles`], [`migrate`], `reference` | set-up and reference |
//! | [`progress`] | a sign of life on a terminal |
//! | [`interrupt`], `held` | being asked to stop; holding a source meanwhile |

mod alert;
pub mod breaks;
mod carry;
mod catch_up;
pub mod check;
mod checks;
pub mod compose;
pub mod deliver;
pub mod diff;
mod explain;
mod export;
mod frame;
pub mod gather;
mod held;
pub mod init;
pub mod intents;
pub mod interrupt;
mod lines;
mod metrics;
pub mod migrate;
mod others;
mod outbox;
mod outside;
mod own_side;
mod pin;
mod prepare;
pub mod profiles;
pub mod progress;
mod prune;
mod reference;
pub mod repairs;
mod retention;
pub mod run;
pub mod runs;
mod second_look;
mod slice;
pub mod status;
mod told;
pub mod watermark;

use std::io::Write;

use crate::cli::{Cli, Command, CommonArgs, IntentsCommand, OperationsCommand, ProfilesCommand};
use crate::exit::{Exit, Failure};
use crate::settings::{Settings, StoreUrl};
use crate::store::any::AnyStore;
use crate::store::postgres::{self, PostgresStore};
use crate::store::sqlite::{self, SqliteStore};
use crate::time::Instant;

use self::interrupt::Interrupt;

/// What a command may touch of the world outside files and store. `main` makes the real one.
pub struct World<'a> {
    /// Looks up a variable of the environment.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The wall clock.
    pub clock: &'a dyn Fn() -> Instant,
    /// Where reports and answers go.
    pub stdout: &'a mut dyn Write,
    /// Where failures go.
    pub stderr: &'a mut dyn Write,
    /// Whether to stop.
    pub interrupt: Interrupt,
    /// Whether stdout is a terminal.
    pub is_stdout_terminal: bool,
    /// Width of the terminal that stdout is, in columns; `None` = it is none.
    pub columns: Option<usize>,
    /// Whether stderr is a terminal.
    pub is_stderr_terminal: bool,
}

impl World<'_> {
    /// Writes an answer to stdout; a reader that went away is no error.
    pub fn say(&mut self, text: &str) -> Result<(), Failure> {
        deliver::to_stdout(self.stdout, text.as_bytes())
    }

    /// Tells a failure on stderr.
    pub fn tell(&mut self, failure: &Failure) {
        // Nothing is left to be done when stderr is gone as well.
        let _ = writeln!(self.stderr, "error: {failure}");
    }
}

/// Runs what was typed. `run` and `diff` end with a partial report when somebody asks to stop; any other command is left
/// where it is.
pub async fn execute(cli: &Cli, world: &mut World<'_>) -> Result<Exit, Failure> {
    cli.check()?;
    let common = &cli.common;
    match &cli.command {
        Command::Run(arguments) => Box::pin(run::execute(arguments, common, world)).await,
        Command::Diff(arguments) => Box::pin(diff::execute(arguments, common, world)).await,
        other => {
            let interrupt = world.interrupt.clone();
            match Box::pin(interrupt.or(short(other, common, world))).await {
                Ok(done) => done,
                Err(stopped) => Err(stopped
                    .state("the open transaction was rolled back; what was written before stands")),
            }
        }
    }
}

/// The commands that are over in a moment.
async fn short(
    command: &Command,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    match command {
        Command::Run(_) | Command::Diff(_) => unreachable!("they are not short"),
        Command::Breaks(command) => breaks::execute(command, common, world).await,
        Command::Repairs(command) => repairs::execute(command, common, world).await,
        Command::Runs(command) => runs::execute(command, common, world).await,
        Command::Operations(OperationsCommand::Prune { keep_within }) => {
            retention::execute(*keep_within, common, world).await
        }
        Command::Report(arguments) => runs::report(arguments, common, world).await,
        Command::Watermark(command) => watermark::execute(command, common, world).await,
        Command::Intents(IntentsCommand::Import { file }) => {
            intents::import(file, common, world).await
        }
        Command::Check => check::execute(common, world).await,
        Command::Status => status::execute(common, world).await,
        Command::Init(arguments) => init::execute(arguments, world),
        Command::Profiles(ProfilesCommand::List) => profiles::list(world),
        Command::Profiles(ProfilesCommand::Show { name }) => profiles::show(name, world),
        Command::Profiles(ProfilesCommand::Infer { file, name }) => {
            profiles::infer(file, name.as_deref(), world)
        }
        Command::Migrate => migrate::execute(common, world).await,
        Command::Explain { id } => Box::pin(explain::execute(id, common, world)).await,
        Command::Completions { shell } => reference::completions(*shell, world),
        Command::Man { to } => reference::man(to.as_deref(), world),
        Command::Schema { name } => reference::schema(*name, world),
    }
}

/// The configuration that a command works with.
pub(crate) fn settings(common: &CommonArgs, world: &World<'_>) -> Result<Settings, Failure> {
    Settings::load(common.config.as_deref(), world.env, (world.clock)())
}

/// The store. A file is created where it is missing; a database has to have been migrated.
pub(crate) async fn store(settings: &Settings) -> Result<AnyStore, Failure> {
    match &settings.store {
        StoreUrl::Sqlite(path) => SqliteStore::open(path, sqlite::Mode::ReadWriteCreate)
            .await
            .map(AnyStore::Sqlite),
        StoreUrl::Postgres(address) => PostgresStore::open(address, postgres::Mode::ReadWrite)
            .await
            .map(|store| AnyStore::Postgres(Box::new(store))),
    }
}

/// The store for a command that only reads; a file that is missing is empty.
pub(crate) async fn store_to_read(settings: &Settings) -> Result<AnyStore, Failure> {
    match &settings.store {
        StoreUrl::Sqlite(path) => match SqliteStore::open_existing(path).await? {
            Some(store) => Ok(AnyStore::Sqlite(store)),
            None => SqliteStore::in_memory().await.map(AnyStore::Sqlite),
        },
        StoreUrl::Postgres(address) => PostgresStore::open(address, postgres::Mode::ReadOnly)
            .await
            .map(|store| AnyStore::Postgres(Box::new(store))),
    }
}

/// The names of the sources that a command speaks of: those given, else all.
pub(crate) fn source_names(
    settings: &Settings,
    common: &CommonArgs,
) -> Result<Vec<String>, Failure> {
    if common.sources.is_empty() {
        return Ok(settings
            .sources
            .iter()
            .map(|source| source.name.clone())
            .collect());
    }
    let mut names = Vec::new();
    for name in &common.sources {
        let source = settings.source(name)?;
        if !names.contains(&source.name) {
            names.push(source.name.clone());
        }
    }
    Ok(names)
}

/// An id or the beginning of one, as it was typed.
pub(crate) fn typed_id(id: &str) -> Result<&str, Failure> {
    match id.trim() {
        "" => Err(Failure::rejected("an id may not be empty").state("nothing was written")),
        id => Ok(id),
    }
}

/// Who started something; empty where the environment names nobody.
pub(crate) fn named_person(world: &World<'_>) -> String {
    ["PAYSWEEP_USER", "SUDO_USER", "USER", "LOGNAME"]
        .into_iter()
        .find_map(|name| (world.env)(name).filter(|value| !value.is_empty()))
        .unwrap_or_default()
}

/// Who did something by hand: the user of the machine, as the environment names it.
pub(crate) fn person(world: &World<'_>) -> String {
    Some(named_person(world))
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".to_owned())
}
