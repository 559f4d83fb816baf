//! Exactly what may be typed. Nothing is decided here: values are read, and what contradicts itself is a usage error.
//!
//! Decisions: times stay text, because only the configuration knows the zone they are read in. Words come from the enums
//! that own them, so that help, parser and contract are one list. clap is confined to this file and its folder.
//!
//! | module | holds |
//! |---|---|
//! | [`topics`] | `help exit-codes`, `help dates` |
//! | [`shell`] | completions and man pages |

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ArgAction, Args, Parser, Subcommand};

use crate::exit::{Exit, Failure};
use crate::model::breaks::{BreakClass, BreakState, CloseAs, Severity};
use crate::model::repair::RepairState;
use crate::model::words;
use crate::money::Currency;
use crate::processor::DateOrder;
use crate::report::{Form, Format, Include};
use crate::settings::window::WindowFlags;
use crate::settings::{FailOn, OutputSpec};
use crate::time::{Span, Zone};

pub mod shell;
pub mod topics;

use shell::Shell;

words! {
    /// A schema that is published.
    SchemaName {
        /// That of the JSON report.
        Report = "report",
        /// That of paysweep.toml.
        Config = "config",
    }
}

words! {
    /// Form of the log on stderr.
    LogFormat {
        /// For a person.
        Text = "text",
        /// One object a line.
        Json = "json",
    }
}

words! {
    /// Whether progress is shown on stderr.
    ProgressMode {
        /// On a terminal only.
        Auto = "auto",
        /// Also off a terminal.
        Always = "always",
        /// Not at all.
        Never = "never",
        /// As lines of text.
        Log = "log",
    }
}

words! {
    /// Whether the report is coloured.
    ColorMode {
        /// On a terminal, unless `NO_COLOR` is set.
        Auto = "auto",
        /// Always.
        Always = "always",
        /// Never.
        Never = "never",
    }
}

/// Reads arguments, the first being the name of the program.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Cli, Stop> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if let [_, help, name] = arguments.as_slice()
        && help == "help"
        && let Some(text) = name.to_str().and_then(topics::topic)
    {
        return Err(Stop {
            exit: Exit::Ok,
            goes_to_stdout: true,
            text,
        });
    }
    Cli::try_parse_from(arguments).map_err(|error| Stop {
        exit: if error.exit_code() == 0 {
            Exit::Ok
        } else {
            Exit::Rejected
        },
        goes_to_stdout: !error.use_stderr(),
        text: error.render().to_string(),
    })
}

/// Instead of a command: help, version, or a usage error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop {
    /// 0 for help and version that were asked for, else 2.
    pub exit: Exit,
    /// Whether the text is what was asked for; else it belongs on stderr.
    pub goes_to_stdout: bool,
    /// What to print.
    pub text: String,
}

/// Reconciles what a payment processor did with what your own software meant it to do.
///
/// paysweep reads the processor's operations and your own intents, finds every difference, writes repairs on the local
/// side where policy allows, and never moves money.
#[derive(Debug, Parser)]
#[command(
    name = "paysweep",
    version,
    arg_required_else_help = true,
    subcommand_required = true,
    propagate_version = false,
    after_help = after_help()
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// The flags that every command takes.
    #[command(flatten)]
    pub common: CommonArgs,
}

/// The flags that every command takes.
#[derive(Debug, Args)]
#[command(next_help_heading = "Common flags")]
pub struct CommonArgs {
    /// Configuration file; default: ./paysweep.toml, then the user's, then /etc/paysweep/paysweep.toml
    #[arg(
        short,
        long,
        global = true,
        value_name = "FILE",
        env = "PAYSWEEP_CONFIG",
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
    /// Only this source; may be given several times; default: all
    #[arg(long = "source", global = true, value_name = "NAME")]
    pub sources: Vec<String>,
    /// Write nothing: repairs are planned, outcome and exit code are those of the real run
    #[arg(short = 'n', long, global = true)]
    pub dry_run: bool,
    /// Form of the report on stdout; every other answer is table or json; default: table
    #[arg(short, long, global = true, value_name = "FORMAT", value_parser = one_of(Form::ALL, Form::as_str))]
    pub format: Option<Form>,
    /// Also write the report to a file, in FORMAT, or as its name ends, or as --format says; may be given several times
    #[arg(
        short,
        long = "output",
        global = true,
        value_name = "[FORMAT=]FILE",
        value_parser = output_parser
    )]
    pub outputs: Vec<OutputSpec>,
    /// Also list rows that ask nothing of anybody, separated by commas; default: none
    #[arg(
        long,
        global = true,
        value_name = "LISTS",
        value_delimiter = ',',
        value_parser = one_of(Include::ALL, Include::as_str)
    )]
    pub include: Vec<Include>,
    /// Which breaks lead to exit code 1
    #[arg(
        long,
        global = true,
        value_name = "WHICH",
        default_value = "found",
        value_parser = one_of(FailOn::ALL, FailOn::as_str)
    )]
    pub fail_on: FailOn,
    /// Only breaks that are at least so bad count for the exit code and are listed for a person; default: warning (all)
    #[arg(
        long,
        global = true,
        value_name = "SEVERITY",
        value_parser = one_of(Severity::ALL, Severity::as_str)
    )]
    pub min_severity: Option<Severity>,
    /// At most so many rows for each list of the readable report
    #[arg(long, global = true, value_name = "ROWS", default_value_t = 50)]
    pub limit: usize,
    /// Print nothing when there is nothing to tell
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Say more on stderr; twice: say everything
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Form of the log on stderr; default: text, in Kubernetes json
    #[arg(
        long,
        global = true,
        value_name = "FORM",
        env = "PAYSWEEP_LOG_FORMAT",
        hide_env_values = true,
        value_parser = one_of(LogFormat::ALL, LogFormat::as_str)
    )]
    pub log_format: Option<LogFormat>,
    /// Progress on stderr; auto: on a terminal only
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        env = "PAYSWEEP_PROGRESS",
        hide_env_values = true,
        default_value = "auto",
        value_parser = one_of(ProgressMode::ALL, ProgressMode::as_str)
    )]
    pub progress: ProgressMode,
    /// Colour in the readable report; auto: on a terminal, unless the environment asks for none
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        value_parser = one_of(ColorMode::ALL, ColorMode::as_str)
    )]
    pub color: ColorMode,
    /// Name of this execution: the same key again gives the stored outcome instead of a second run; default: none
    #[arg(long, global = true, value_name = "KEY")]
    pub run_key: Option<String>,
    /// What counts as now: RFC 3339, or a day or time in the configured zone; default: the clock
    #[arg(long, global = true, value_name = "TIME")]
    pub as_of: Option<String>,
}

/// The flags that give a window by hand.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Window (never moves the watermark; default: from the watermark)")]
pub struct WindowArgs {
    /// Inclusive start: RFC 3339, or a day or time in the configured zone
    #[arg(long, value_name = "TIME")]
    pub from: Option<String>,
    /// Exclusive end, as --from; default: now
    #[arg(long, value_name = "TIME")]
    pub to: Option<String>,
    /// One civil day in the configured zone: YYYY-MM-DD, today or yesterday
    #[arg(long, value_name = "DAY")]
    pub day: Option<String>,
    /// One civil month in the configured zone: YYYY-MM
    #[arg(long, value_name = "MONTH")]
    pub month: Option<String>,
    /// Last day, inclusive, as --day
    #[arg(long, value_name = "DAY")]
    pub through: Option<String>,
    /// So far back from now: 36h goes back hours, 7d and 2w civil days
    #[arg(long, value_name = "SPAN")]
    pub since: Option<String>,
}

impl WindowArgs {
    /// The flags as they were typed.
    pub fn flags(&self) -> WindowFlags {
        WindowFlags {
            from: self.from.clone(),
            to: self.to.clone(),
            day: self.day.clone(),
            month: self.month.clone(),
            through: self.through.clone(),
            since: self.since.clone(),
        }
    }
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The scheduled job: read, compare, record breaks and repairs, advance the watermark, report
    Run(RunArgs),
    /// Compare without memory: files against a file, or the configured sources; writes nothing
    Diff(Box<DiffArgs>),
    /// The breaks that are open, and what a person decides about them
    #[command(subcommand)]
    Breaks(BreaksCommand),
    /// The ledger of repairs
    #[command(subcommand)]
    Repairs(RepairsCommand),
    /// The runs there were
    #[command(subcommand)]
    Runs(RunsCommand),
    /// What is stored of the processor's side
    #[command(subcommand)]
    Operations(OperationsCommand),
    /// Show a stored run again
    Report(ReportArgs),
    /// How far each source has been read
    #[command(subcommand)]
    Watermark(WatermarkCommand),
    /// Our own side
    #[command(subcommand)]
    Intents(IntentsCommand),
    /// Verify configuration, store and files; one line each, exits with its worst row
    Check,
    /// Age of the last clean run, lag of the watermark, open breaks; exits with 1 when a source is stale
    Status,
    /// Write a configuration to begin with
    Init(InitArgs),
    /// The formats that can be read
    #[command(subcommand)]
    Profiles(ProfilesCommand),
    /// Create the store, or bring it to this version
    Migrate,
    /// Why an operation or intent matched, or which rule stopped it, candidate by candidate; and its history
    Explain {
        /// Id of an operation or intent, or the beginning of a break's
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Print the completions of a shell
    Completions {
        /// Which shell
        #[arg(value_name = "SHELL", value_parser = one_of(Shell::ALL, Shell::as_str))]
        shell: Shell,
    },
    /// Print the man page, or write one for each command
    Man {
        /// Write them into this folder; default: print the main page
        #[arg(long, value_name = "FOLDER")]
        to: Option<PathBuf>,
    },
    /// Print the JSON Schema of the report, or of the configuration
    Schema {
        /// Of what
        #[arg(value_name = "NAME", value_parser = one_of(SchemaName::ALL, SchemaName::as_str))]
        name: SchemaName,
    },
}

/// `paysweep run`
#[derive(Debug, Args)]
pub struct RunArgs {
    /// Stop by itself after so long, with a partial report: 90s, 50m; choose it below the scheduler's own; default: never
    #[arg(long, value_name = "SPAN", value_parser = deadline_parser)]
    pub deadline: Option<Span>,
    /// Write gauges for Prometheus' textfile collector to this file, in one step; default: none
    #[arg(long, value_name = "FILE")]
    pub metrics_file: Option<PathBuf>,
    /// Push the same gauges to a Pushgateway; default: none
    #[arg(long, value_name = "URL")]
    pub push_gateway: Option<String>,
    /// Write the last words of a container to this file, at most 4096 bytes; default: none, in Kubernetes
    /// /dev/termination-log
    #[arg(long, value_name = "FILE")]
    pub termination_log: Option<PathBuf>,
    /// Send at most so many requests to processors, those included that are tried again; default: any number
    #[arg(long, value_name = "N")]
    pub max_requests: Option<u64>,
    /// A window given by hand.
    #[command(flatten)]
    pub window: WindowArgs,
}

/// `paysweep diff`
#[derive(Clone, Debug, Args)]
pub struct DiffArgs {
    /// Files with the processor's operations; without them the configured sources are compared
    #[arg(long, value_name = "FILE", num_args = 1.., requires = "intents")]
    pub operations: Vec<PathBuf>,
    /// File with our own intents
    #[arg(long, value_name = "FILE", requires = "operations")]
    pub intents: Option<PathBuf>,
    /// Format of the operations: a built-in name, or a file; default: canonical
    #[arg(long, value_name = "PROFILE", requires = "operations")]
    pub profile: Option<String>,
    /// With --profile generic: which column is what, e.g. amount=Gross; `profiles show generic` lists the fields
    #[arg(long = "column", value_name = "FIELD=COLUMN", requires = "operations", value_parser = key_value_parser)]
    pub columns: Vec<(String, String)>,
    /// With --profile generic: the form of the file, e.g. decimal=, or zone=Europe/Paris
    #[arg(long, value_name = "KEY=VALUE", requires = "operations", value_parser = key_value_parser)]
    pub layout: Vec<(String, String)>,
    /// With --profile generic: what a word of the kind column means, e.g. Sale=charge or Declined=charge:failed
    #[arg(long = "kind", value_name = "WORD=KIND", requires = "operations", value_parser = word_parser)]
    pub kinds: Vec<(String, String)>,
    /// With --profile generic: what a word of the status column means, e.g. Done=succeeded
    #[arg(long = "status", value_name = "WORD=STATUS", requires = "operations", value_parser = word_parser)]
    pub statuses: Vec<(String, String)>,
    /// The zone of times that name none, where the profile leaves it open: Europe/Paris, UTC or +01:00; default: none
    #[arg(long, value_name = "ZONE", requires = "operations", value_parser = zone_parser)]
    pub zone: Option<Zone>,
    /// The order of day and month, where the profile allows both and no date proves one: day-first or month-first
    #[arg(long, value_name = "ORDER", requires = "operations", value_parser = one_of(DateOrder::ALL, DateOrder::as_str))]
    pub date_order: Option<DateOrder>,
    /// The currency of amounts that name none, where the profile leaves it open: EUR; default: none
    #[arg(long, value_name = "CODE", requires = "operations", value_parser = currency_parser)]
    pub currency: Option<Currency>,
    /// A column that holds our own key, asked before those of the profile; may be given several times
    #[arg(long, value_name = "COLUMN", requires = "operations")]
    pub reference: Vec<String>,
    /// From the creation of an intent until its absence is news: 90s, 60m, 72h, 5d; default: 60m
    #[arg(long, value_name = "SPAN", value_parser = span_parser)]
    pub grace: Option<Span>,
    /// Until when the operations are complete: last-row, as-of or a time; default: last-row
    #[arg(long, value_name = "TIME")]
    pub complete_through: Option<String>,
    /// Stop by itself after so long, with a partial report: 90s, 50m; default: never
    #[arg(long, value_name = "SPAN", value_parser = deadline_parser)]
    pub deadline: Option<Span>,
    /// A window given by hand; without one: everything in the files.
    #[command(flatten)]
    pub window: WindowArgs,
}

/// `paysweep breaks …`
#[derive(Debug, Subcommand)]
pub enum BreaksCommand {
    /// List breaks
    List {
        /// Only in this state; default: open and acknowledged
        #[arg(long, value_name = "STATE", value_parser = one_of(BreakState::ALL, BreakState::as_str))]
        state: Option<BreakState>,
        /// Only of this class; default: all
        #[arg(long, value_name = "CLASS", value_parser = one_of(BreakClass::ALL, BreakClass::as_str))]
        class: Option<BreakClass>,
    },
    /// Show everything about a break
    Show {
        /// Its id, or the beginning of it
        #[arg(value_name = "BREAK")]
        id: String,
    },
    /// Ask for silence about breaks until a day; other evidence opens them again
    Ack {
        /// Their ids
        #[arg(value_name = "BREAK", required = true)]
        ids: Vec<String>,
        /// Until when: a day or time in the configured zone, or RFC 3339
        #[arg(long, value_name = "DATE")]
        until: String,
        /// Why; kept for good
        #[arg(long, value_name = "TEXT", value_parser = reason_parser)]
        reason: String,
    },
    /// End breaks; other evidence opens them again
    Close {
        /// Their ids
        #[arg(value_name = "BREAK", required = true)]
        ids: Vec<String>,
        /// As what
        #[arg(long = "as", value_name = "VERDICT", value_parser = one_of(CloseAs::ALL, CloseAs::as_str))]
        close_as: CloseAs,
        /// Why; kept for good
        #[arg(long, value_name = "TEXT", value_parser = reason_parser)]
        reason: String,
    },
}

/// `paysweep repairs …`
#[derive(Debug, Subcommand)]
pub enum RepairsCommand {
    /// List repairs, newest first
    List,
    /// Show everything about a repair
    Show {
        /// Its id, or the beginning of it
        #[arg(value_name = "REPAIR")]
        id: String,
    },
    /// Approve proposed repairs; with `four_eyes` by somebody else than who proposed them
    Approve(DecisionArgs),
    /// Turn down proposed or approved repairs
    Reject(DecisionArgs),
    /// Write approved repairs; a row that changed meanwhile is not overwritten
    Apply {
        /// Their ids; none: every approved one
        #[arg(value_name = "REPAIR")]
        ids: Vec<String>,
    },
    /// Propose the inverse of repairs that were written
    Revert(DecisionArgs),
    /// Write repairs to stdout for whoever applies them by other means; nothing changes
    Export {
        /// In which form; sql writes out the statements of [repair.apply]
        #[arg(long = "as", value_name = "FORM", default_value = "json", value_parser = one_of(ExportForm::ALL, ExportForm::as_str))]
        form: ExportForm,
        /// In which state
        #[arg(long, value_name = "STATE", default_value = "approved", value_parser = one_of(RepairState::ALL, RepairState::as_str))]
        state: RepairState,
    },
}

words! {
    /// A form in which repairs are exported.
    ExportForm {
        /// The statements of `[repair.apply]`, written out.
        Sql = "sql",
        /// One row for each.
        Csv = "csv",
        /// As `repairs list` has them.
        Json = "json",
    }
}

/// What a person decides about repairs.
#[derive(Debug, Args)]
pub struct DecisionArgs {
    /// Their ids, or the beginnings of them
    #[arg(value_name = "REPAIR", required = true)]
    pub ids: Vec<String>,
    /// Why; kept for good
    #[arg(long, value_name = "TEXT", value_parser = reason_parser)]
    pub reason: String,
}

/// `paysweep runs …`
#[derive(Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, newest first
    List,
    /// Show a run: window, watermark, figures, outcome
    Show {
        /// Its id, the beginning of it, or latest
        #[arg(value_name = "RUN")]
        id: String,
    },
    /// Forget the reports of old runs; lines of runs, breaks, repairs and the ledger stay
    Prune {
        /// Reports of this age and younger stay: 400d; default: [report] keep
        #[arg(long, value_name = "SPAN", value_parser = span_parser)]
        keep_within: Option<Span>,
    },
}

/// `paysweep operations …`
#[derive(Debug, Subcommand)]
pub enum OperationsCommand {
    /// Forget old operations that are settled; their ids, links, breaks, repairs and the ledger stay
    Prune {
        /// Operations of this age and younger stay: 400d; default: [store] keep
        #[arg(long, value_name = "SPAN", value_parser = span_parser)]
        keep_within: Option<Span>,
    },
}

/// `paysweep report`
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Id of the run, the beginning of it, or latest
    #[arg(value_name = "RUN")]
    pub run: String,
}

/// `paysweep watermark …`
#[derive(Debug, Subcommand)]
pub enum WatermarkCommand {
    /// Show the watermark of each source
    Show,
    /// Move the watermark of --source forward: the stretch in between is never read
    Set(WatermarkArgs),
    /// Move the watermark of --source back: the stretch in between is read again
    Rewind(WatermarkArgs),
    /// Let go of the account and mode that --source was pinned to by its first run: the next run pins what it finds
    Repin(RepinArgs),
}

/// What letting a pin go takes.
#[derive(Debug, Args)]
pub struct RepinArgs {
    /// It is meant
    #[arg(long, required = true)]
    pub yes: bool,
    /// Why; kept for good
    #[arg(long, value_name = "TEXT", value_parser = reason_parser)]
    pub reason: String,
}

/// Where a watermark is moved to.
#[derive(Debug, Args)]
pub struct WatermarkArgs {
    /// Where to: RFC 3339, or a day or time in the configured zone
    #[arg(value_name = "TIME")]
    pub to: String,
    /// It is meant
    #[arg(long, required = true)]
    pub yes: bool,
    /// Why; kept for good
    #[arg(long, value_name = "TEXT", value_parser = reason_parser)]
    pub reason: String,
}

/// `paysweep intents …`
#[derive(Debug, Subcommand)]
pub enum IntentsCommand {
    /// Load intents from a CSV file into the store's own table
    Import {
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
}

/// `paysweep init`
#[derive(Debug, Args)]
pub struct InitArgs {
    /// Where to; an existing file is never overwritten
    #[arg(value_name = "FILE", default_value = "paysweep.toml")]
    pub file: PathBuf,
}

/// `paysweep profiles …`
#[derive(Debug, Subcommand)]
pub enum ProfilesCommand {
    /// List the built-in profiles
    List,
    /// Show a built-in profile as TOML, to use or to copy from
    Show {
        /// Its name
        #[arg(value_name = "PROFILE")]
        name: String,
    },
    /// Propose a profile for a file that nobody has described; prints TOML, questions included
    Infer {
        /// The processor's file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// What the profile calls itself; default: the name of the file
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
}

impl Cli {
    /// What the grammar alone cannot say: `--dry-run` on a command that would write and has no dry run is refused, so
    /// that it is never passed over.
    pub fn check(&self) -> Result<(), Failure> {
        let writes = match &self.command {
            Command::Breaks(BreaksCommand::Ack { .. } | BreaksCommand::Close { .. })
            | Command::Repairs(
                RepairsCommand::Approve(_)
                | RepairsCommand::Reject(_)
                | RepairsCommand::Apply { .. }
                | RepairsCommand::Revert(_),
            )
            | Command::Watermark(
                WatermarkCommand::Set(_) | WatermarkCommand::Rewind(_) | WatermarkCommand::Repin(_),
            )
            | Command::Intents(_)
            | Command::Init(_)
            | Command::Man { to: Some(_) }
            | Command::Migrate => true,
            Command::Run(_)
            | Command::Diff(_)
            | Command::Breaks(BreaksCommand::List { .. } | BreaksCommand::Show { .. })
            | Command::Repairs(
                RepairsCommand::List | RepairsCommand::Show { .. } | RepairsCommand::Export { .. },
            )
            | Command::Runs(_)
            | Command::Operations(_)
            | Command::Report(_)
            | Command::Watermark(WatermarkCommand::Show)
            | Command::Check
            | Command::Status
            | Command::Explain { .. }
            | Command::Completions { .. }
            | Command::Man { to: None }
            | Command::Schema { .. }
            | Command::Profiles(_) => false,
        };
        let reports = matches!(
            self.command,
            Command::Run(_) | Command::Diff(_) | Command::Report(_)
        );
        let form = self.common.form();
        if !reports && form.as_answer().is_none() {
            return Err(Failure::rejected(format!(
                "--format {form}: this command gives no report"
            ))
            .remedy("use table or json; run, diff and report have the other forms")
            .state("nothing was read or written"));
        }
        let has_json = !matches!(
            self.command,
            Command::Breaks(BreaksCommand::Ack { .. } | BreaksCommand::Close { .. })
                | Command::Watermark(WatermarkCommand::Set(_) | WatermarkCommand::Rewind(_))
                | Command::Repairs(
                    RepairsCommand::Approve(_)
                        | RepairsCommand::Reject(_)
                        | RepairsCommand::Apply { .. }
                        | RepairsCommand::Revert(_)
                )
                | Command::Intents(_)
                | Command::Init(_)
                | Command::Profiles(_)
                | Command::Migrate
                | Command::Completions { .. }
                | Command::Man { .. }
                | Command::Schema { .. }
        );
        if self.common.format == Some(Form::Json) && !has_json {
            return Err(
                Failure::rejected("--format json: this command answers in text only")
                    .remedy("leave --format out")
                    .state("nothing was read or written"),
            );
        }
        if !reports && !self.common.outputs.is_empty() {
            return Err(Failure::rejected(
                "--output: this command gives no report to be written to a file",
            )
            .remedy("redirect its answer, or use `paysweep report latest --output FILE`")
            .state("nothing was read or written"));
        }
        let mut paths: Vec<&PathBuf> = self.common.outputs.iter().map(|it| &it.path).collect();
        paths.sort();
        if let Some(twice) = paths.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(Failure::rejected(format!(
                "--output names {} twice, and the second report would replace the first",
                twice[0].display()
            ))
            .state("nothing was read or written"));
        }
        if self.common.dry_run && writes {
            return Err(Failure::rejected("--dry-run: this command has no dry run")
                .remedy("leave --dry-run out, or use it with `paysweep run`")
                .state("nothing was read or written"));
        }
        Ok(())
    }
}

impl CommonArgs {
    /// The form of the report on stdout.
    pub fn form(&self) -> Form {
        self.format.unwrap_or(Form::Table)
    }

    /// The form of the log. In a container of Kubernetes it is read by a collector, unless somebody sits there.
    pub fn log_format(&self, is_in_kubernetes: bool, is_terminal: bool) -> LogFormat {
        let default = if is_in_kubernetes && !is_terminal {
            LogFormat::Json
        } else {
            LogFormat::Text
        };
        self.log_format.unwrap_or(default)
    }

    /// The form of an answer that is no report. [`Cli::check`] has refused every other one.
    pub fn format(&self) -> Format {
        self.form().as_answer().unwrap_or(Format::Table)
    }

    /// Whether a list was asked for.
    pub fn includes(&self, list: Include) -> bool {
        self.include.contains(&list)
    }

    /// Whether the report is coloured.
    pub fn has_color(&self, is_terminal: bool, no_color: bool) -> bool {
        match self.color {
            ColorMode::Always => true,
            ColorMode::Never => false,
            ColorMode::Auto => is_terminal && !no_color,
        }
    }
}

/// Reads one of the words of an enum, and lists them in help and errors.
fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    word: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|value| word(*value))).try_map(move |text| {
        all.iter()
            .copied()
            .find(|value| word(*value) == text)
            .ok_or("an unknown word")
    })
}

fn output_parser(text: &str) -> Result<OutputSpec, String> {
    OutputSpec::parse(text).map_err(one_line)
}

fn one_line(failure: Failure) -> String {
    if failure.remedy.is_empty() {
        failure.what
    } else {
        format!("{}; {}", failure.what, failure.remedy)
    }
}

/// `key=value`; the key is one of ours and holds no equals sign.
fn key_value_parser(text: &str) -> Result<(String, String), String> {
    let pair = text
        .split_once('=')
        .filter(|(key, value)| !key.is_empty() && !value.is_empty());
    pair.map(|(key, value)| (key.to_owned(), value.to_owned()))
        .ok_or_else(|| "write it as KEY=VALUE".to_owned())
}

/// `word=meaning`; the meaning is one of ours and holds no equals sign, the word is the file's and may.
fn word_parser(text: &str) -> Result<(String, String), String> {
    let pair = text
        .rsplit_once('=')
        .filter(|(word, meaning)| !word.is_empty() && !meaning.is_empty());
    pair.map(|(word, meaning)| (word.to_owned(), meaning.to_owned()))
        .ok_or_else(|| "write it as WORD=MEANING".to_owned())
}

fn zone_parser(text: &str) -> Result<Zone, String> {
    Zone::parse(text)
        .ok_or_else(|| "write an IANA name, UTC or an offset: Europe/Paris, +01:00".to_owned())
}

fn currency_parser(text: &str) -> Result<Currency, String> {
    Currency::parse(text)
        .filter(|currency| currency.as_str() == text && currency.exponent().is_some())
        .ok_or_else(|| "write an ISO 4217 code in upper case: EUR".to_owned())
}

fn span_parser(text: &str) -> Result<Span, String> {
    Span::parse(text)
        .ok_or_else(|| "write a whole number and one unit: 90s, 60m, 72h, 5d or 2w".to_owned())
}

fn deadline_parser(text: &str) -> Result<Span, String> {
    match span_parser(text)? {
        Span::ZERO => Err("a deadline of nothing would stop before it began".to_owned()),
        span => Ok(span),
    }
}

fn reason_parser(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("a reason may not be empty".to_owned()),
        reason => Ok(reason.to_owned()),
    }
}

/// The table of exit codes and the first commands.
fn after_help() -> String {
    use std::fmt::Write;
    let mut text = String::from("Exit codes (the highest row that applies decides):\n");
    for exit in Exit::ALL {
        let retry = if exit.retry_helps() {
            "; trying again may help"
        } else {
            ""
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:>3}  {:<11}  {}{retry}",
            exit.code(),
            exit.name(),
            exit.when()
        );
    }
    text.push_str(
        "\nTo begin with:\n\
         \x20 paysweep diff --operations operations.csv --intents intents.csv\n\
         \x20 paysweep init                      write paysweep.toml\n\
         \x20 paysweep run --dry-run             what a run would find and write\n\
         \x20 paysweep run --quiet               the scheduled job\n\
         \x20 paysweep breaks list               what is open\n\
         \x20 paysweep explain ID                why a row matched, or what stopped it\n\
         \x20 paysweep report latest -o r.html   the last run, for a browser\n\n\
         More help:\n",
    );
    for (name, words) in topics::TOPICS {
        let _ = writeln!(text, "  paysweep help {name:<19}  {words}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn typed(line: &str) -> Result<Cli, Stop> {
        parse(line.split_whitespace().map(OsString::from))
    }

    #[test]
    fn the_grammar_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_flag_may_stand_before_or_after_its_command() {
        for line in [
            "paysweep run --config a.toml --as-of 2026-03-10T12:00:00Z --format json --include matches,pending,ignored",
            "paysweep -c a.toml -f json --as-of 2026-03-10T12:00:00Z --include matches --include pending,ignored run",
        ] {
            let cli = typed(line).expect(line);
            assert_eq!(cli.common.config, Some(PathBuf::from("a.toml")));
            assert_eq!(cli.common.form(), Form::Json);
            assert_eq!(cli.common.as_of.as_deref(), Some("2026-03-10T12:00:00Z"));
            assert!(Include::ALL.iter().all(|list| cli.common.includes(*list)));
            assert!(matches!(cli.command, Command::Run(_)));
        }
    }

    #[test]
    fn what_may_be_typed() {
        for line in [
            "paysweep run -n --source a --source b --day yesterday -o json=r.json -o r.txt",
            "paysweep run --from 2026-03-01 --to 2026-03-02 --fail-on new --min-severity high -q",
            "paysweep diff --operations a.csv b.csv --intents i.csv --profile bank.toml --grace 5d",
            "paysweep diff --config a.toml --month 2026-10",
            "paysweep breaks list --state open --class duplicate_charge --limit 5",
            "paysweep breaks ack 12ab --until 2026-04-01 --reason known",
            "paysweep breaks close 12ab 34cd --as fixed-elsewhere --reason done",
            "paysweep repairs show 12ab",
            "paysweep repairs approve 12ab 34cd --reason seen",
            "paysweep repairs reject 12ab --reason wrong",
            "paysweep repairs apply",
            "paysweep repairs export --as sql --state proposed",
            "paysweep repairs apply 12ab 34cd",
            "paysweep repairs revert 12ab --reason wrong",
            "paysweep runs show latest",
            "paysweep runs prune --keep-within 400d -n -f json",
            "paysweep operations prune --keep-within 400d -n -f json",
            "paysweep report latest --format json",
            "paysweep watermark show",
            "paysweep watermark set 2026-03-01 --source a --yes --reason gap",
            "paysweep watermark rewind 2026-03-01 --source a --yes --reason gap",
            "paysweep intents import intents.csv",
            "paysweep check -vv --log-format json --progress log --color never",
            "paysweep status",
            "paysweep init",
            "paysweep profiles show canonical",
            "paysweep migrate --config paysweep.toml",
            "paysweep explain ch_1 -f json",
            "paysweep completions zsh",
            "paysweep man --to man",
            "paysweep schema report",
            "paysweep schema config",
            "paysweep run --metrics-file m.prom --push-gateway https://x.test --termination-log t",
        ] {
            let cli = typed(line).expect(line);
            assert!(cli.check().is_ok(), "{line}");
        }
    }

    #[test]
    fn what_may_not_be_typed_ends_as_2() {
        for (line, part) in [
            ("paysweep", "Usage"),
            ("paysweep walk", "walk"),
            ("paysweep run --format pdf", "markdown"),
            ("paysweep run --include everything", "matches"),
            ("paysweep run --fail-on sometimes", "found"),
            ("paysweep run -q -v", "cannot be used with"),
            ("paysweep diff --operations a.csv", "--intents"),
            (
                "paysweep diff --operations a.csv --intents i.csv --grace 5",
                "whole number",
            ),
            (
                "paysweep breaks close 12ab --as fine --reason x",
                "false-alarm",
            ),
            ("paysweep breaks ack 12ab --until 2026-04-01", "--reason"),
            ("paysweep watermark set 2026-03-01 --reason gap", "--yes"),
        ] {
            let stop = typed(line).expect_err(line);
            assert_eq!(
                (stop.exit, stop.goes_to_stdout),
                (Exit::Rejected, false),
                "{line}"
            );
            assert!(stop.text.contains(part), "{line}: {}", stop.text);
        }
    }

    #[test]
    fn only_a_report_has_the_other_forms_and_files() {
        for line in [
            "paysweep status -f html",
            "paysweep breaks list -f csv",
            "paysweep check -o check.json",
            "paysweep run -o a.json -o html=a.json",
        ] {
            let failure = typed(line).expect(line).check().expect_err(line);
            assert_eq!(failure.exit, Exit::Rejected, "{line}");
        }
        for line in [
            "paysweep run -f ndjson -o a.html -o b.csv -o junit=c.xml -o d.md",
            "paysweep report latest -f html -o a.html",
            "paysweep status -f json",
        ] {
            assert!(typed(line).expect(line).check().is_ok(), "{line}");
        }
    }

    #[test]
    fn a_dry_run_is_never_passed_over() {
        for line in [
            "paysweep breaks close 12ab --as accepted --reason x -n",
            "paysweep watermark set 2026-03-01 --yes --reason gap -n",
            "paysweep migrate --dry-run",
            "paysweep repairs apply -n",
        ] {
            let failure = typed(line).expect(line).check().expect_err(line);
            assert_eq!(failure.exit, Exit::Rejected);
        }
    }

    #[test]
    fn a_topic_of_help_is_told_and_a_command_has_its_own() {
        for (line, part) in [
            ("paysweep help exit-codes", "never again  1 2 4 5 6 10 70"),
            ("paysweep help dates", "--month 2026-02"),
            ("paysweep help run", "--deadline"),
        ] {
            let stop = typed(line).expect_err(line);
            assert_eq!((stop.exit, stop.goes_to_stdout), (Exit::Ok, true), "{line}");
            assert!(stop.text.contains(part), "{line}: {}", stop.text);
        }
        assert_eq!(
            typed("paysweep help weather").expect_err("none").exit,
            Exit::Rejected
        );
    }

    #[test]
    fn every_shell_gets_a_script_that_knows_every_command() {
        for shell in Shell::ALL {
            let script = String::from_utf8(shell::completions(*shell)).expect("text");
            for command in Cli::command().get_subcommands() {
                assert!(
                    script.contains(command.get_name()),
                    "{shell} {}",
                    command.get_name()
                );
            }
        }
        let page = String::from_utf8(shell::man_page().expect("a page")).expect("text");
        assert!(
            page.contains(".TH paysweep 1") && page.contains("exit\\-codes"),
            "{page}"
        );
    }

    #[test]
    fn help_lists_every_exit_code_and_goes_to_stdout() {
        let stop = typed("paysweep --help").expect_err("help");
        assert_eq!((stop.exit, stop.goes_to_stdout), (Exit::Ok, true));
        for exit in Exit::ALL {
            let row = format!("{:>3}  {:<11}", exit.code(), exit.name());
            assert!(stop.text.contains(&row), "{row}");
        }
        let version = typed("paysweep --version").expect_err("version");
        assert_eq!(
            version.text.trim(),
            concat!("paysweep ", env!("CARGO_PKG_VERSION"))
        );
    }

    #[test]
    fn no_help_shows_a_value_of_the_environment_and_every_flag_says_what_it_is() {
        fn walk(command: &clap::Command) {
            for argument in command.get_arguments() {
                let name = argument.get_id();
                assert!(
                    argument.get_env().is_none() || argument.is_hide_env_values_set(),
                    "{name}"
                );
                assert!(
                    argument.get_help().is_some(),
                    "{} {name}",
                    command.get_name()
                );
            }
            command.get_subcommands().for_each(walk);
        }
        walk(&Cli::command());
    }
}
