//! Settings: one file and the environment, read once, validated at the door.
//!
//! | module | holds |
//! |---|---|
//! | `file` | `paysweep.toml` as it may be written |
//! | `api` | what its sections `[source.NAME]` say about asking a processor |
//! | `intents`, `notify`, `repair` | its sections `[intents]`, `[notify]` and `[repair]` |
//! | `document` | a TOML document with positions: line and column for everything that may not be written |
//! | [`window`] | the window flags, and what they ask for |
//!
//! Decisions: one file, never merged; unknown keys are errors; the host's time zone is never consulted; relative paths
//! belong to the folder of the file. Secrets are references, and no error text quotes a line of the file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::database::DatabaseUrl;
use crate::database::postgres::Address;
use crate::exit::Failure;
pub use crate::intents::amount::{AmountUnit, Rounding};
use crate::intents::sql::row_writer::ApplySpec;
use crate::intents::sql::spec::{Rows, Spec};
use crate::model::breaks::{BreakClass, Policy};
use crate::model::intent::IntentKind;
use crate::model::repair::RepairAction;
use crate::model::run::CompleteThrough;
use crate::model::words;
use crate::notify::Channel;
use crate::processor::ReadRules;
use crate::processor::generic::GenericRules;
use crate::reconcile::policy::Conditions;
use crate::reconcile::rules::{Guards, PerKind, Rules};
use crate::report::Form;
use crate::report::redact::Column;
use crate::source::api::Access;
use crate::time::{Instant, Span, Zone};

mod api;
mod document;
mod file;
mod intents;
mod notify;
mod repair;
pub mod window;

/// The JSON Schema (draft 2020-12) of `paysweep.toml`, for editors and for those who write it by program. `paysweep schema
/// config` prints it. It says which keys there are and what they hold; what depends on more than one of them is told by
/// [`Settings::parse`] alone.
pub const CONFIG_SCHEMA: &str = include_str!("config.schema.json");

/// A validated configuration.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file it came from.
    pub path: PathBuf,
    /// SHA-256 of that file, 64 hex digits.
    pub digest: String,
    /// Where a business day starts. Default UTC.
    pub timezone: Zone,
    /// Where paysweep keeps its memory.
    pub store: StoreUrl,
    /// How long a run holds a source without renewing: a killed run blocks the next one no longer. Default 120 s.
    pub lease: Span,
    /// How far back operations are kept by `operations prune`; `None` = it has to be told.
    pub keep: Option<Span>,
    /// Sorted by name; at least one.
    pub sources: Vec<SourceSettings>,
    /// Our own side.
    pub intents: IntentsSettings,
    /// What is done about breaks that can be repaired, and by whom.
    pub repair: RepairSettings,
    /// Limits on what one run may write. The same as in the rules of every source.
    pub guards: Guards,
    /// When a source counts as stale.
    pub freshness: FreshnessSettings,
    /// Files that a run writes its report to.
    pub report: ReportSettings,
    /// Who is told of a run, by name.
    pub channels: Vec<Channel>,
}

impl Settings {
    /// Finds, reads and validates the configuration. `explicit` is `--config`; `env` looks up a variable of the
    /// environment; `now` is "now" for words like `yesterday`.
    ///
    /// Search order, first hit wins: `--config`, `PAYSWEEP_CONFIG`, `./paysweep.toml`,
    /// `$XDG_CONFIG_HOME/paysweep/paysweep.toml` (`~/.config` where that is not set), `/etc/paysweep/paysweep.toml`.
    pub fn load(
        explicit: Option<&Path>,
        env: &dyn Fn(&str) -> Option<String>,
        now: Instant,
    ) -> Result<Settings, Failure> {
        let path = find(explicit, env)?;
        let state = "nothing was read or written";
        let bytes =
            std::fs::read(&path).map_err(|error| file::read_failure(&path, &error).state(state))?;
        let text = String::from_utf8(bytes).map_err(|_| {
            Failure::rejected(format!("{}: is not UTF-8 text", path.display())).state(state)
        })?;
        Settings::parse(&path, &text, env, now)
    }

    /// Validates the text of a configuration whose file is `path`.
    pub fn parse(
        path: &Path,
        text: &str,
        env: &dyn Fn(&str) -> Option<String>,
        now: Instant,
    ) -> Result<Settings, Failure> {
        file::read(path, text, env, now)
    }

    /// Whether repairs are written into the company's own table in the store's transaction; else why not.
    pub fn is_joined(&self) -> Result<(), String> {
        let (Some(spec), Some(apply)) = (&self.intents.sql, &self.repair.apply) else {
            return Err("there is no table to write to".to_owned());
        };
        match (&self.store, &apply.url) {
            (StoreUrl::Postgres(store), DatabaseUrl::Postgres(table)) => {
                if !store.is_same_place(table) {
                    return Err(format!(
                        "[store] url ({store}) and the table's ({table}) do not name one database and one role"
                    ));
                }
                match &spec.rows {
                    Rows::Table { .. } => Ok(()),
                    Rows::Query(_) => Err("the rows of a query cannot be held".to_owned()),
                }
            }
            (StoreUrl::Sqlite(store), DatabaseUrl::Sqlite(table)) => {
                let whole = |path: &Path| path.canonicalize().ok();
                match (whole(store), whole(table)) {
                    (Some(store), Some(table)) if store == table => Ok(()),
                    _ => Err("the store and the table are two files".to_owned()),
                }
            }
            _ => Err("the store and the table are in databases of two kinds".to_owned()),
        }
    }

    /// A source by its name.
    pub fn source(&self, name: &str) -> Result<&SourceSettings, Failure> {
        self.sources
            .iter()
            .find(|source| source.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self.sources.iter().map(|it| it.name.as_str()).collect();
                let failure = Failure::rejected(format!(
                    "{}: there is no source {name:?}",
                    self.path.display()
                ));
                match document::closest(name, &names) {
                    Some(near) => failure.remedy(format!("did you mean {near:?}?")),
                    None => failure.remedy(format!("configured: {}", names.join(", "))),
                }
            })
    }
}

fn find(explicit: Option<&Path>, env: &dyn Fn(&str) -> Option<String>) -> Result<PathBuf, Failure> {
    if let Some(path) = explicit {
        return Ok(path.to_owned());
    }
    let set = |name: &str| env(name).filter(|value| !value.is_empty());
    if let Some(path) = set("PAYSWEEP_CONFIG") {
        return Ok(PathBuf::from(path));
    }
    let user = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")));
    let mut places = vec![PathBuf::from("paysweep.toml")];
    places.extend(user.map(|folder| folder.join("paysweep/paysweep.toml")));
    places.push(PathBuf::from("/etc/paysweep/paysweep.toml"));
    if let Some(path) = places.iter().find(|path| path.exists()) {
        return Ok(path.clone());
    }
    let looked: Vec<String> = places
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    Err(Failure::rejected("no configuration was found")
        .why(format!("looked for {}", looked.join(", ")))
        .remedy("write one with `paysweep init`, or name one with --config FILE")
        .state("nothing was read or written"))
}

/// Where paysweep keeps its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreUrl {
    /// A file of the embedded database.
    Sqlite(PathBuf),
    /// A `PostgreSQL` database. It never shows its password.
    Postgres(Address),
}

/// How a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceKind {
    /// From CSV files.
    Csv,
    /// From the processor itself.
    Api,
}

/// Which profile reads a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProfileRef {
    /// One that is built in, by name.
    BuiltIn(String),
    /// A file.
    File(PathBuf),
    /// The profile `generic`, as it was told.
    Generic(Box<GenericRules>),
}

impl ProfileRef {
    /// A name that ends in `.toml` or holds a path separator is a file, any other is built in.
    pub fn parse(name: &str) -> ProfileRef {
        let is_toml = Path::new(name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
        if is_toml || name.contains(['/', std::path::MAIN_SEPARATOR]) {
            ProfileRef::File(PathBuf::from(name))
        } else {
            ProfileRef::BuiltIn(name.to_owned())
        }
    }
}

/// The spans that decide how far a source is read and judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// What is younger than this is not judged yet.
    pub lag: Span,
    /// How far before the watermark each run reads again.
    pub lookback: Span,
    /// How far before a payout its parts may lie.
    pub payout_span: Span,
}

impl Spans {
    /// Those of a file: no lag, 72 hours, no span.
    pub const FILE: Spans = Spans {
        lag: Span::ZERO,
        lookback: Span::hours(72),
        payout_span: Span::ZERO,
    };
}

/// One `[source.NAME]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceSettings {
    /// The name.
    pub name: String,
    /// How it is read.
    pub kind: SourceKind,
    /// Which profile reads it.
    pub profile: ProfileRef,
    /// Files, resolved against the folder of the configuration; a name may hold `*` and `?`.
    pub files: Vec<PathBuf>,
    /// The first watermark.
    pub start: Instant,
    /// Until when its files claim to be complete.
    pub complete_through: CompleteThrough,
    /// As configured; `None` = the profile's.
    pub lag: Option<Span>,
    /// As configured; `None` = the profile's.
    pub lookback: Option<Span>,
    /// As configured; `None` = the profile's.
    pub payout_span: Option<Span>,
    /// What is said about reading its rows.
    pub read: ReadRules,
    /// Everything that shapes its verdicts, `[intents]`, `[match]`, `[repair]` and `[guards]` included. Its
    /// `payout_span` is the configured one, else zero.
    pub rules: Rules,
    /// How it is asked; `None` = it is read from files.
    pub access: Option<Access>,
    /// Hash of the settings that shape its coverage, 64 hex digits.
    pub config_hash: String,
}

impl SourceSettings {
    /// The configured spans, and for the rest those of the profile.
    pub fn spans(&self, profile: Spans) -> Spans {
        Spans {
            lag: self.lag.unwrap_or(profile.lag),
            lookback: self.lookback.unwrap_or(profile.lookback),
            payout_span: self.payout_span.unwrap_or(profile.payout_span),
        }
    }
}

/// Where intents come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntentsKind {
    /// A file that is imported into the store's table at each run.
    Csv,
    /// The store's table.
    Store,
    /// A table of the company's own, in a database of its own, read at each run.
    Sql,
}

/// `[intents]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntentsSettings {
    /// Where they come from.
    pub kind: IntentsKind,
    /// The file; always there for [`IntentsKind::Csv`].
    pub file: Option<PathBuf>,
    /// The table; always there for [`IntentsKind::Sql`].
    pub sql: Option<Spec>,
    /// Scope name. Default `intents`.
    pub name: String,
    /// The source that owns intents which name none; empty = none.
    pub source: String,
    /// From `created_at` until a missing counterpart is news.
    pub grace: PerKind<Span>,
    /// From `created_at` until an open, absent row counts as abandoned.
    pub open_after: PerKind<Span>,
    /// Kinds that the local side records.
    pub kinds: Vec<IntentKind>,
    /// A repair that no import has confirmed after so long is a finding; `None` = never.
    pub confirm_within: Option<Span>,
    /// How long our own software sends the same request again, at most; `None` = not told. Only for `paysweep check`.
    pub retry_for: Option<Span>,
    /// Unit of local amounts.
    pub amount_unit: AmountUnit,
    /// How the local side rounds.
    pub rounding: Rounding,
}

/// `[repair]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairSettings {
    /// Policies that differ from the catalogue's.
    pub policies: BTreeMap<BreakClass, Policy>,
    /// Conditions under which the policy of a class is followed.
    pub conditions: BTreeMap<BreakClass, Conditions>,
    /// Whether the processor's id is written into rows that match for certain. Default off.
    pub link: Policy,
    /// Whether an intent of which the processor shows nothing may be proposed to be sent again. Default false.
    pub may_redrive: bool,
    /// A proposal is approved by somebody else than who proposed it. Default false.
    pub four_eyes: bool,
    /// How repairs are written into the company's own table; `None` = they are kept for whoever reads them.
    pub apply: Option<ApplySpec>,
}

impl RepairSettings {
    /// Whether repairs of an action are written into the company's own table.
    pub fn is_carried(&self, action: RepairAction) -> bool {
        self.apply
            .as_ref()
            .is_some_and(|apply| apply.statements.contains_key(&action))
    }
}

impl Default for RepairSettings {
    fn default() -> RepairSettings {
        RepairSettings {
            policies: BTreeMap::new(),
            conditions: BTreeMap::new(),
            link: Policy::Off,
            may_redrive: false,
            four_eyes: false,
            apply: None,
        }
    }
}

/// `[freshness]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct FreshnessSettings {
    /// The last clean run may be so old; `None` = any age.
    pub max_age: Option<Span>,
}

/// `[report]`.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReportSettings {
    /// Files written by every run, as after `--output`. `{run_id}` in a path stands for the id of the run.
    pub files: Vec<OutputSpec>,
    /// How long stored runs are kept; `None` = forever.
    pub keep: Option<Span>,
    /// Columns that are masked in everything that is told.
    pub redact: Vec<Column>,
}

words! {
    /// Which breaks lead to exit code 1.
    FailOn {
        /// Open and neither acknowledged nor closed, or closed by this run's repairs.
        Found = "found",
        /// Open and neither acknowledged nor closed.
        Open = "open",
        /// Seen first in this run.
        New = "new",
        /// None.
        Error = "error",
    }
}

/// A file that a report is written to: `[FORMAT=]FILE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputSpec {
    /// Its format; `None` = the one of `--format`.
    pub format: Option<Form>,
    /// The file.
    pub path: PathBuf,
}

impl OutputSpec {
    /// Reads `[FORMAT=]FILE`. Without a format the ending of the name says it: .json, .ndjson, .csv, .md, .html, .xml
    /// (junit), .txt (table).
    pub fn parse(text: &str) -> Result<OutputSpec, Failure> {
        let (format, path) = match text.split_once('=') {
            Some((word, path)) if Form::from_word(word).is_some() => {
                (Some(Form::parse(word)?), path)
            }
            _ => {
                let ending = Path::new(text).extension();
                let form = ending.and_then(|ending| Form::of_ending(&ending.to_string_lossy()));
                (form, text)
            }
        };
        if path.is_empty() {
            return Err(Failure::rejected(format!("{text:?} names no file")));
        }
        Ok(OutputSpec {
            format,
            path: PathBuf::from(path),
        })
    }
}
