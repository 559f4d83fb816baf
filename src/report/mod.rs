//! The report: one plain value, and the ways to show it.
//!
//! | module | shows |
//! |---|---|
//! | [`json`] | the report for machines, which is also what the store keeps; as lines (`ndjson`); its schema |
//! | [`text`] | the report for a person at a terminal |
//! | [`html`] | the report for a person with a browser: one file |
//! | [`markdown`] | the report for a ticket |
//! | [`csv`] | the breaks for a spreadsheet |
//! | [`junit`] | the report as a test run, for GitLab and Jenkins |
//! | [`figures`] | what several forms draw from the lists |
//! | [`redact`] | a report without what nobody outside may see |
//! | [`sanitise`] | the one door through which foreign text reaches a terminal |
//! | [`tables`] | the tables of the README that are made from enums |
//!
//! Pure: no file, clock or environment. Nothing here decides anything: outcome, totals and verdicts come in.
//!
//! Decisions: [`RunReport`] owns its data, so that a stored run and the run at hand are shown by the same code. Figures
//! that follow from the lists (number of breaks, breaks per class, age of a repair) are counted here and never carried
//! beside them, so that the two cannot differ.

use std::io::{self, Write};

use crate::exit::{Exit, Failure};
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, Severity};
use crate::model::repair::Repair;
use crate::model::run::{Tally, Total, Window};
use crate::model::statement::{DayLine, Lateness, Statement};
use crate::model::verdict::{IgnoreReason, Rule};
use crate::model::words;
use crate::money::Money;
use crate::time::{Instant, Zone};

pub mod csv;
pub mod figures;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod redact;
pub mod sanitise;
pub mod tables;
pub mod text;

words! {
    /// A form that every command answers in.
    Format {
        /// For a person.
        Table = "table",
        /// For machines.
        Json = "json",
    }
}

words! {
    /// A form of the report.
    Form {
        /// For a person at a terminal.
        Table = "table",
        /// For machines.
        Json = "json",
        /// For machines that read line by line.
        Ndjson = "ndjson",
        /// The breaks, for a spreadsheet.
        Csv = "csv",
        /// For a ticket.
        Markdown = "markdown",
        /// For a person with a browser: one file.
        Html = "html",
        /// As a test run, for GitLab and Jenkins.
        Junit = "junit",
    }
}

words! {
    /// A list that is shown on request.
    Include {
        /// Pairs in order.
        Matches = "matches",
        /// Rows whose time has not come.
        Pending = "pending",
        /// Rows that ask nothing of anybody.
        Ignored = "ignored",
    }
}

impl Form {
    /// The form of a name.
    pub fn parse(word: &str) -> Result<Form, Failure> {
        Form::from_word(word).ok_or_else(|| {
            let known: Vec<&str> = Form::ALL.iter().map(|form| form.as_str()).collect();
            Failure::rejected(format!("there is no format {word:?}"))
                .remedy(format!("use one of {}", known.join(", ")))
        })
    }

    /// The form that the ending of a file name stands for; `None` where it stands for none.
    pub fn of_ending(ending: &str) -> Option<Form> {
        match ending.to_ascii_lowercase().as_str() {
            "txt" => Some(Form::Table),
            "json" => Some(Form::Json),
            "ndjson" | "jsonl" => Some(Form::Ndjson),
            "csv" => Some(Form::Csv),
            "md" | "markdown" => Some(Form::Markdown),
            "html" | "htm" => Some(Form::Html),
            "xml" => Some(Form::Junit),
            _ => None,
        }
    }

    /// The form of an answer that is no report; `None` where only a report has it.
    pub const fn as_answer(self) -> Option<Format> {
        match self {
            Form::Table => Some(Format::Table),
            Form::Json => Some(Format::Json),
            Form::Ndjson | Form::Csv | Form::Markdown | Form::Html | Form::Junit => None,
        }
    }
}

/// How a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOptions {
    /// At most so many rows for each list of [`Form::Table`] and [`Form::Markdown`]. No other form is ever cut.
    pub limit: usize,
    /// Whether [`Form::Table`] is coloured.
    pub has_color: bool,
    /// [`Form::Table`] and [`Form::Markdown`] list only breaks that are at least so bad, and say how many they leave out.
    pub min_severity: Severity,
    /// Width of [`Form::Table`], in columns of a terminal. Lines are broken between words; an id never is.
    pub columns: usize,
}

impl Default for RenderOptions {
    fn default() -> RenderOptions {
        RenderOptions {
            limit: 50,
            has_color: false,
            min_severity: Severity::Warning,
            columns: 100,
        }
    }
}

/// Writes a report.
pub fn render(
    report: &RunReport,
    form: Form,
    options: RenderOptions,
    out: &mut dyn Write,
) -> io::Result<()> {
    match form {
        Form::Table => text::write(report, options, out),
        Form::Json => json::write(report, out),
        Form::Ndjson => json::write_lines(report, out),
        Form::Csv => csv::write(report, out),
        Form::Markdown => markdown::write(report, options, out),
        Form::Html => html::write(report, out),
        Form::Junit => junit::write(report, out),
    }
}

/// Everything that is told about a run.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// Which run.
    pub run: RunInfo,
    /// Whose verdict was given.
    pub window: Window,
    /// The zone in which a business day starts.
    pub zone: Zone,
    /// How it ended.
    pub outcome: Outcome,
    /// One for each source, in the order of the configuration.
    pub sources: Vec<SourceReport>,
    /// One for each currency, sorted by code.
    pub totals: Vec<Total>,
    /// One for each currency, sorted by code.
    pub statement: Vec<Statement>,
    /// Rows of the processor's side in scope, by civil day, oldest first.
    pub days: Vec<DayLine>,
    /// Counts that do not follow from the lists.
    pub summary: Summary,
    /// Where the rows of each side went.
    pub accounting: Accounting,
    /// Open after the comparison, plus those that this run's repairs closed.
    pub breaks: Vec<BreakLine>,
    /// Written in this run.
    pub repairs: Vec<Repair>,
    /// What an earlier run wrote and could not tell.
    pub carried: Carried,
    /// Breaks that were seen in order again.
    pub resolved: Vec<ResolvedLine>,
    /// What the run verified about itself.
    pub checks: Vec<Check>,
    /// What a reader should know and that is no finding.
    pub warnings: Vec<Warning>,
    /// What became of the messages to each channel; empty where none was to be told.
    pub deliveries: Vec<Delivery>,
    /// Listed on request (`--include matches`).
    pub matches: Option<Vec<MatchLine>>,
    /// Listed on request (`--include pending`).
    pub pending: Option<Vec<PendingLine>>,
    /// Listed on request (`--include ignored`).
    pub ignored: Option<Vec<IgnoredLine>>,
}

/// Which run a report is about. The only part that may differ between two runs over the same input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInfo {
    /// UUID v7; empty where nothing is stored.
    pub id: String,
    /// `run` or `diff`.
    pub command: String,
    /// Whether nothing was written.
    pub is_dry_run: bool,
    /// "Now".
    pub as_of: Instant,
    /// By the machine's clock.
    pub started_at: Instant,
    /// By the machine's clock.
    pub finished_at: Instant,
    /// Version of paysweep.
    pub version: String,
    /// The configuration file; empty = none.
    pub config_path: String,
    /// SHA-256 of the configuration file, in hex; empty = none.
    pub config_digest: String,
    /// Where the chain of the ledger ended when the run did; `None` = there is no ledger.
    pub ledger: Option<LedgerEnd>,
}

/// The end of the chain of the ledger. A later one that does not contain it was changed past paysweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEnd {
    /// How many steps it seals.
    pub entries: u64,
    /// Its hash, 64 hex digits; empty = nothing was sealed yet.
    pub hash: String,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The exit.
    pub exit: Exit,
    /// The name beside it.
    pub name: OutcomeName,
    /// Every reason, the deciding one first.
    pub reasons: Vec<Reason>,
}

/// `outcome.name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeName {
    /// Nothing to tell.
    Clean,
    /// Every break that was found was closed by a repair of this run.
    Repaired,
    /// At least one break needs a person.
    Review,
    /// Did not finish; the name of the exit.
    Exit(Exit),
}

impl OutcomeName {
    /// The word.
    pub const fn as_str(self) -> &'static str {
        match self {
            OutcomeName::Clean => "clean",
            OutcomeName::Repaired => "repaired",
            OutcomeName::Review => "review",
            OutcomeName::Exit(exit) => exit.name(),
        }
    }
}

/// One reason for an outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// A break class, or a short word for anything else.
    pub code: String,
    /// How often.
    pub count: u64,
    /// In words; empty = the code says it.
    pub message: String,
}

/// What was read of a source and how far it reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceReport {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it was read whole.
    pub is_complete: bool,
    /// Operations in scope.
    pub operations: u64,
    /// Operations read for linking only.
    pub outside_window: u64,
    /// Rows that could not be used.
    pub rejected_rows: u64,
    /// How far it is complete; `None` = not known.
    pub covered: Option<Instant>,
    /// The watermark before the run; `None` = no watermark (`diff`).
    pub watermark_before: Option<Instant>,
    /// The watermark after the run.
    pub watermark_after: Option<Instant>,
    /// The files it came from.
    pub files: Vec<FileLine>,
    /// How late rows arrived; `None` where no earlier run could have seen them.
    pub lateness: Option<Lateness>,
}

/// A file that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileLine {
    /// Its path as it was found.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// Its rows.
    pub rows: u64,
    /// SHA-256 of its bytes, in hex.
    pub sha256: String,
}

/// Counts that do not follow from the lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Summary {
    /// Operations in scope.
    pub operations: u64,
    /// Intents in scope.
    pub intents: u64,
    /// Intents that have a match.
    pub matched: u64,
    /// Entries of the list `pending`.
    pub pending: u64,
    /// Entries of the list `ignored`.
    pub ignored: u64,
}

/// Where the rows of each side went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Accounting {
    /// The processor's side.
    pub operations: Tally,
    /// Our side.
    pub intents: Tally,
}

/// A break as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakLine {
    /// The break.
    pub item: Break,
    /// Whether this run saw it first.
    pub is_new: bool,
    /// From `first_seen_at` to "now".
    pub age_seconds: i64,
    /// Further operations it is about.
    pub also_operations: Vec<String>,
}

impl BreakLine {
    /// What is done about it, as it is told: a break that stays open after its repair is for a person.
    pub fn disposition(&self) -> BreakDisposition {
        if self.item.is_sticky {
            BreakDisposition::Review
        } else {
            self.item.disposition
        }
    }

    /// Whether it stays after this run: open, or acknowledged and not ended.
    pub fn stays(&self) -> bool {
        match self.item.state {
            BreakState::Open | BreakState::Acknowledged => {
                self.disposition() == BreakDisposition::Review
            }
            BreakState::Closed | BreakState::Resolved => false,
        }
    }
}

/// What earlier runs wrote and could not tell.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Carried {
    /// Their ids.
    pub runs: Vec<String>,
    /// Their breaks.
    pub breaks: Vec<BreakLine>,
    /// Their repairs.
    pub repairs: Vec<Repair>,
}

/// A break that was seen in order again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResolvedLine {
    /// Id of the break.
    pub id: String,
    /// Its class.
    pub class: BreakClass,
    /// Empty = none.
    pub intent_id: String,
    /// Empty = none.
    pub operation_id: String,
    /// What was at risk, where it has an amount.
    pub money: Option<Money>,
}

words! {
    /// How a check went.
    CheckStatus {
        /// It holds.
        Pass = "pass",
        /// It holds only in part, or could not be verified.
        Warn = "warn",
        /// It does not hold.
        Fail = "fail",
        /// A figure, not a judgement.
        Info = "info",
    }
}

/// What the run verified about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A short name.
    pub name: String,
    /// How it went.
    pub status: CheckStatus,
    /// What was verified, with the figures.
    pub detail: String,
}

/// What a reader should know and that is no finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning {
    /// A short word, for example `feed_unchanged`.
    pub code: String,
    /// In words.
    pub message: String,
}

words! {
    /// What became of a message.
    DeliveryStatus {
        /// It was taken.
        Sent = "sent",
        /// There was no news for this channel.
        Quiet = "quiet",
        /// It could not be sent.
        Failed = "failed",
    }
}

/// What became of the message to a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its name in the configuration.
    pub channel: String,
    /// What it speaks.
    pub kind: String,
    /// Whether a failure ends the run with 6.
    pub is_required: bool,
    /// What became of it.
    pub status: DeliveryStatus,
    /// Why it failed; empty = it did not.
    pub detail: String,
}

/// A match as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchLine {
    /// The intent.
    pub intent_id: String,
    /// The operation.
    pub operation_id: String,
    /// Account of the operation; empty = none.
    pub account: String,
    /// Why they belong together.
    pub rule: Rule,
    /// A tolerated or rounded difference, operation minus intent.
    pub delta: Option<Money>,
    /// What a conversion made of the operation in the currency of the balance, after fees; positive = our balance grew.
    /// `None` = it was not converted, or its conversion does not account for it.
    pub settled: Option<Money>,
}

/// A row whose time has not come, as it is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingLine {
    /// Empty = none.
    pub intent_id: String,
    /// Empty = none.
    pub operation_id: String,
    /// When a verdict is due; `None` = not known.
    pub due_at: Option<Instant>,
    /// What is being waited for.
    pub why: String,
}

/// A row that asks nothing of anybody, as it is listed. It has one of the two ids.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IgnoredLine {
    /// Empty = none.
    pub intent_id: String,
    /// Empty = none.
    pub operation_id: String,
    /// Why.
    pub reason: IgnoreReason,
    /// Its amount, where it is readable.
    pub money: Option<Money>,
    /// The operation that a row of a conversion is folded into; empty = none.
    pub folded_into: String,
}
