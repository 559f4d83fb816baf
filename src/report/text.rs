//! The report for a person, readable without colour, as wide as the terminal.
//!
//! Order: the verdict, the window, money per currency with what is at risk first, where the rows of each side went, the
//! open breaks by severity and class, what was repaired, and then what a reader looks up only when something is odd.
//!
//! Decisions: every line passes [`clean`] as a whole, and colour is added behind it, so that no text of a file can reach
//! the terminal unseen. A break takes two lines, not a row of a table: ids are long, and a cut id is worth nothing.

use std::collections::BTreeMap;
use std::io::{self, Write};

use super::sanitise::clean;
use super::{
    BreakLine, Check, CheckStatus, DeliveryStatus, OutcomeName, RenderOptions, RunReport,
    SourceReport, figures,
};
use crate::exit::Exit;
use crate::model::breaks::{BreakClass, BreakState, Severity};
use crate::model::repair::{Repair, RepairAction, RepairState};
use crate::model::run::{Basis, Tally, Total};
use crate::money::format_minor;
use crate::time::{Instant, Zone};

/// So many digits of an id are shown; commands take the beginning of an id.
const ID_CHARS: usize = 12;

/// Writes the report as text.
pub fn write(report: &RunReport, options: RenderOptions, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page { out, options };
    verdict(&mut page, report)?;
    window(&mut page, report)?;
    totals(&mut page, report)?;
    accounting(&mut page, report)?;
    breaks(&mut page, report)?;
    repairs(&mut page, "Repairs", &report.repairs, report.run.as_of)?;
    carried(&mut page, report)?;
    resolved(&mut page, report)?;
    included(&mut page, report)?;
    checks(&mut page, report)?;
    sources(&mut page, &report.sources)
}

/// A length of time as a person says it: `3 d`, `5 h`, `12 min`, `40 s`.
pub fn age(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    match seconds {
        DAY.. => format!("{} d", seconds / DAY),
        HOUR.. => format!("{} h", seconds / HOUR),
        MINUTE.. => format!("{} min", seconds / MINUTE),
        _ => format!("{} s", seconds.max(0)),
    }
}

/// How a piece of a line is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paint {
    Plain,
    Good,
    Notice,
    Bad,
    Heading,
}

impl Paint {
    /// The parameter of the terminal's colour sequence.
    const fn code(self) -> &'static str {
        match self {
            Paint::Plain => "0",
            Paint::Good => "32",
            Paint::Notice => "33",
            Paint::Bad => "1;31",
            Paint::Heading => "1",
        }
    }
}

struct Page<'a> {
    out: &'a mut dyn Write,
    options: RenderOptions,
}

impl Page<'_> {
    /// A line, cleaned. What is too wide for the terminal goes on, indented by four more columns.
    fn line(&mut self, text: &str) -> io::Result<()> {
        self.hang(text, 4)
    }

    /// A line as it stands, however wide: a row of a table.
    fn row(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{}", clean(text))
    }

    /// A line that goes on indented by so many more columns than it begins with.
    fn hang(&mut self, text: &str, further: usize) -> io::Result<()> {
        let text = clean(text);
        let body = text.trim_start_matches(' ');
        let indent = text.len() - body.len();
        let (first, next) = (
            self.room(indent),
            self.room(indent + further).max(COLUMNS_MIN),
        );
        for (n, line) in wrap(body, first, next).iter().enumerate() {
            let indent = if n == 0 { indent } else { indent + further };
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// Columns that are left beside an indent.
    fn room(&self, indent: usize) -> usize {
        self.options.columns.saturating_sub(indent).max(COLUMNS_MIN)
    }

    /// A line that begins with a coloured word.
    fn painted(&mut self, paint: Paint, head: &str, rest: &str) -> io::Result<()> {
        let (head, rest) = (clean(head), clean(rest));
        let indent = head.len() - head.trim_start_matches(' ').len() + 4;
        let first = self.room(columns(&head));
        let lines = wrap(&rest, first, self.room(indent));
        let (start, more) = lines.split_first().expect("there is always a first line");
        if self.options.has_color && paint != Paint::Plain {
            writeln!(self.out, "\u{1b}[{}m{head}\u{1b}[0m{start}", paint.code())?;
        } else {
            writeln!(self.out, "{head}{start}")?;
        }
        for line in more {
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// An empty line and a heading.
    fn section(&mut self, head: &str, rest: &str) -> io::Result<()> {
        writeln!(self.out)?;
        self.painted(Paint::Heading, head, rest)
    }

    /// Running text, wrapped and indented.
    fn paragraph(&mut self, indent: usize, text: &str) -> io::Result<()> {
        let room = self.room(indent);
        for line in wrap(&clean(text), room, room) {
            writeln!(self.out, "{:indent$}{line}", "")?;
        }
        Ok(())
    }

    /// At most `limit` entries, and how many are left out.
    fn list<T>(
        &mut self,
        entries: &[T],
        mut one: impl FnMut(&mut Self, &T) -> io::Result<()>,
    ) -> io::Result<()> {
        let shown = entries.len().min(self.options.limit);
        for entry in &entries[..shown] {
            one(self, entry)?;
        }
        self.left_out(entries.len() - shown)
    }

    fn left_out(&mut self, count: usize) -> io::Result<()> {
        if count == 0 {
            return Ok(());
        }
        self.line(&format!(
            "  … and {count} more (raise --limit, or use --format html, csv or json)"
        ))
    }
}

/// No terminal is narrower than this; ids stand whole all the same.
const COLUMNS_MIN: usize = 20;

/// How many columns of a terminal a text takes: characters of the East take two.
fn columns(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(text)
}

/// Breaks text between words: the first line into so many columns, all others into so many. A word that is too wide stands
/// on a line of its own, whole, unless it is written in a script without blanks.
fn wrap(text: &str, first: usize, next: usize) -> Vec<String> {
    let body = text.trim_start_matches(' ');
    let mut used = text.len() - body.len();
    let mut line = " ".repeat(used);
    let mut lines = Vec::new();
    let mut is_empty = true;
    for piece in body.split(' ').flat_map(|word| pieces(word, next)) {
        let room = if lines.is_empty() { first } else { next };
        let wide = columns(&piece.text);
        let mut blank = usize::from(!is_empty && !piece.is_continued);
        if !is_empty && used + blank + wide > room {
            lines.push(std::mem::take(&mut line));
            (used, blank, is_empty) = (0, 0, true);
        }
        if blank > 0 {
            line.push(' ');
        }
        line.push_str(&piece.text);
        used += blank + wide;
        is_empty &= piece.text.is_empty();
    }
    lines.push(line);
    lines
}

/// A word, or a part of one.
struct Piece {
    text: String,
    /// Follows the last piece without a blank.
    is_continued: bool,
}

/// A word in one piece, or where it is wider than a line and of a script without blanks, character by character.
fn pieces(word: &str, room: usize) -> Vec<Piece> {
    let is_split = columns(word) > room && columns(word) > word.chars().count();
    if !is_split {
        return vec![Piece {
            text: word.to_owned(),
            is_continued: false,
        }];
    }
    word.chars()
        .enumerate()
        .map(|(n, letter)| Piece {
            text: letter.to_string(),
            is_continued: n > 0,
        })
        .collect()
}

/// `1 break`, `2 breaks`.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

// ---- what happened

fn verdict(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let outcome = &report.outcome;
    let paint = match outcome.name {
        OutcomeName::Clean => Paint::Good,
        OutcomeName::Repaired => Paint::Notice,
        OutcomeName::Exit(Exit::Ok) => Paint::Good,
        OutcomeName::Review | OutcomeName::Exit(_) => Paint::Bad,
    };
    let words = figures::verdict(report);
    page.painted(
        paint,
        &outcome.name.as_str().to_uppercase(),
        &format!(": {words} (exit {})", outcome.exit.code()),
    )?;
    let (told, bare): (Vec<_>, Vec<_>) = outcome
        .reasons
        .iter()
        .partition(|reason| !reason.message.is_empty());
    if !bare.is_empty() {
        let list: Vec<String> = bare
            .iter()
            .map(|reason| format!("{} {}", reason.code, reason.count))
            .collect();
        page.paragraph(2, &format!("because of: {}", list.join(", ")))?;
    }
    for reason in told {
        page.paragraph(2, &format!("{}: {}", reason.code, reason.message))?;
    }
    if report.run.is_dry_run {
        page.line("  dry run: nothing was written; repairs are those that a run would write")?;
    }
    Ok(())
}

fn window(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let run = &report.run;
    let mut head = vec![run.command.clone()];
    if !run.id.is_empty() {
        head.push(run.id.clone());
    }
    head.push(format!("as of {}", run.as_of));
    head.push(format!("paysweep {}", run.version));
    page.hang(&format!("  run     {}", head.join(" · ")), 8)?;
    if let Some(end) = run.ledger.as_ref().filter(|end| !end.hash.is_empty()) {
        let steps = count(
            usize::try_from(end.entries).unwrap_or(usize::MAX),
            "step",
            "steps",
        );
        // Half of the seal fits every width, and is too much to be forged; the JSON report has all of it.
        let seal = end.hash.get(..32).unwrap_or(&end.hash);
        page.line(&format!("  ledger  {steps}, sealed by {seal}…"))?;
    }
    let (from, to) = (report.window.from, report.window.to);
    let basis = match report.window.basis {
        Basis::Watermark => "from the watermark",
        Basis::Range => "given by hand",
        Basis::Files => "everything in the files",
    };
    let window = format!(
        "  window  {} to {} UTC ({basis}; the end is excluded)",
        utc(from),
        utc(to)
    );
    page.hang(&window, 8)?;
    if report.zone.name() == Zone::utc().name() {
        return Ok(());
    }
    let local = |at: Instant| {
        (at != Instant::MIN && at != Instant::MAX)
            .then(|| report.zone.local(at))
            .flatten()
            .unwrap_or_else(|| at.to_string())
    };
    page.line(&format!(
        "          {} to {} in {}",
        local(from),
        local(to),
        report.zone.name()
    ))
}

/// A point in time without the letter that says UTC, where the line says it.
fn utc(at: Instant) -> String {
    at.to_string().trim_end_matches('Z').to_owned()
}

fn totals(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let totals = &report.totals;
    let risk = figures::risk(report);
    if risk.is_empty() {
        page.section("At risk: ", "nothing")?;
    } else {
        page.section("At risk: ", &risk.join(" · "))?;
    }
    if totals.is_empty() {
        return Ok(());
    }
    let mut table = comfy_table::Table::new();
    table
        .load_style(comfy_table::presets::NOTHING)
        .set_content_arrangement(comfy_table::ContentArrangement::Disabled)
        .set_header([
            "currency",
            "at risk",
            "gross",
            "matched",
            "unreconciled",
            "fees",
            "net",
        ]);
    for total in totals {
        let amount = |minor| format_minor(minor, total.currency);
        table.add_row([
            total.currency.as_str().to_owned(),
            amount(total.at_risk),
            amount(total.gross),
            amount(total.matched),
            amount(total.unreconciled),
            amount(total.fees),
            amount(total.net),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(comfy_table::CellAlignment::Right);
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| format!(" {}", line.trim_end()))
        .collect();
    if lines
        .iter()
        .any(|line| columns(line) > page.options.columns)
    {
        return stacked(page, totals);
    }
    for line in lines {
        page.row(&line)?;
    }
    Ok(())
}

/// The totals one below the other, where a terminal is too narrow for a table.
fn stacked(page: &mut Page<'_>, totals: &[Total]) -> io::Result<()> {
    for total in totals {
        let figures = [
            ("at risk", total.at_risk),
            ("gross", total.gross),
            ("matched", total.matched),
            ("unreconciled", total.unreconciled),
            ("fees", total.fees),
            ("net", total.net),
        ];
        let told: Vec<String> = figures
            .into_iter()
            .map(|(label, minor)| format!("{label} {}", format_minor(minor, total.currency)))
            .collect();
        page.line(&format!("  {}  {}", total.currency, told.join(" · ")))?;
    }
    Ok(())
}

fn accounting(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    page.section("Rows", "")?;
    for (side, tally) in [
        ("operations", &report.accounting.operations),
        ("intents   ", &report.accounting.intents),
    ] {
        page.line(&format!("  {side}  {}", sum(tally)))?;
    }
    Ok(())
}

fn sum(tally: &Tally) -> String {
    let equals = if tally.adds_up() { "=" } else { "≠" };
    format!(
        "read {} {equals} matched {} + pending {} + ignored {} + unmatched {}",
        tally.read, tally.matched, tally.pending, tally.ignored, tally.unmatched
    )
}

// ---- breaks

fn breaks(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let open: Vec<&BreakLine> = report.breaks.iter().filter(|line| line.stays()).collect();
    if report.breaks.is_empty() {
        return page.section("Breaks: ", "none");
    }
    let new = open.iter().filter(|line| line.is_new).count();
    let acknowledged = open
        .iter()
        .filter(|line| line.item.state == BreakState::Acknowledged)
        .count();
    let repaired = report.breaks.len() - open.len();
    let mut head = format!("{} open", open.len() - acknowledged);
    for (number, words) in [
        (new, "new"),
        (open.len() - new, "persisting"),
        (acknowledged, "acknowledged"),
        (repaired, "closed by a repair"),
        (report.resolved.len(), "resolved since the last run"),
    ] {
        if number > 0 {
            head = format!("{head}, {number} {words}");
        }
    }
    page.section("Breaks: ", &head)?;
    grouped(page, &open)
}

/// By severity, worst first, then by class; the limit is one for the whole list, but no class is left unnamed.
fn grouped(page: &mut Page<'_>, lines: &[&BreakLine]) -> io::Result<()> {
    let least = page.options.min_severity;
    let mut groups: BTreeMap<(std::cmp::Reverse<Severity>, BreakClass), Vec<&BreakLine>> =
        BTreeMap::new();
    let mut below = 0;
    for line in lines {
        let class = line.item.class;
        if class.severity() < least {
            below += 1;
            continue;
        }
        groups
            .entry((std::cmp::Reverse(class.severity()), class))
            .or_default()
            .push(line);
    }
    let mut room = page.options.limit;
    for ((severity, class), mut group) in groups {
        group.sort_by_key(|line| figures::weight(line));
        let entry = class.entry();
        let paint = match severity.0 {
            Severity::Critical | Severity::High => Paint::Bad,
            Severity::Medium => Paint::Notice,
            Severity::Warning => Paint::Plain,
        };
        writeln!(page.out)?;
        page.painted(
            paint,
            &format!("  {}", severity.0.as_str().to_uppercase()),
            &format!("  {class}  {}", count(group.len(), "break", "breaks")),
        )?;
        page.paragraph(4, entry.meaning)?;
        page.paragraph(4, &format!("next: {}", entry.next_step))?;
        let shown = group.len().min(room);
        for line in &group[..shown] {
            one_break(page, line)?;
        }
        room -= shown;
        page.left_out(group.len() - shown)?;
    }
    if below > 0 {
        page.line(&format!(
            "  {} less severe than {least} not listed",
            count(below, "break", "breaks")
        ))?;
    }
    Ok(())
}

fn one_break(page: &mut Page<'_>, line: &BreakLine) -> io::Result<()> {
    let item = &line.item;
    let mut parts = Vec::new();
    if !item.intent_id.is_empty() {
        parts.push(format!("intent {}", item.intent_id));
    }
    if !item.operation_id.is_empty() {
        parts.push(format!("operation {}", item.operation_id));
    }
    if !line.also_operations.is_empty() {
        parts.push(format!("also {}", line.also_operations.join(", ")));
    }
    if !item.account.is_empty() {
        parts.push(format!("account {}", item.account));
    }
    if let Some(money) = item.money {
        parts.push(money.to_string());
    }
    if let Some(delta) = item.delta {
        parts.push(format!("delta {delta}"));
    }
    parts.push(if line.is_new {
        "new".to_owned()
    } else {
        format!("open for {}", age(line.age_seconds))
    });
    if item.state == BreakState::Acknowledged {
        parts.push(match item.acknowledged_until {
            Some(until) => format!("acknowledged until {until}"),
            None => "acknowledged".to_owned(),
        });
    }
    page.line(&format!("    {}  {}", short(&item.id), parts.join(" · ")))?;
    page.paragraph(6, &item.why)
}

fn short(id: &str) -> &str {
    match id.char_indices().nth(ID_CHARS) {
        Some((end, _)) => &id[..end],
        None => id,
    }
}

// ---- repairs

fn repairs(page: &mut Page<'_>, head: &str, repairs: &[Repair], as_of: Instant) -> io::Result<()> {
    if repairs.is_empty() {
        return Ok(());
    }
    let states: Vec<String> = RepairState::ALL
        .iter()
        .map(|state| {
            let number = repairs
                .iter()
                .filter(|repair| repair.state == *state)
                .count();
            (number, state)
        })
        .filter(|(number, _)| *number > 0)
        .map(|(number, state)| format!("{number} {state}"))
        .collect();
    page.section(&format!("{head}: "), &states.join(", "))?;
    page.list(repairs, |page, repair| one_repair(page, repair, as_of))
}

fn one_repair(page: &mut Page<'_>, repair: &Repair, as_of: Instant) -> io::Result<()> {
    let to = &repair.to;
    let before = repair
        .from
        .as_ref()
        .map(|from| format!("{} → ", from.status))
        .unwrap_or_default();
    let what = match repair.action {
        RepairAction::SetStatus => {
            format!("intent {}: {before}{}", repair.intent_id, to.status)
        }
        RepairAction::Link => {
            format!(
                "intent {}: processor_ref {}",
                repair.intent_id, to.processor_ref
            )
        }
        RepairAction::Redrive => {
            let until = repair
                .expires_at
                .map_or_else(String::new, |until| format!(" until {until}, not later"));
            format!(
                "intent {}: your software may send it again under its own key{until}",
                repair.intent_id
            )
        }
        RepairAction::RecordRefund | RepairAction::RecordDispute => {
            let money = to
                .money
                .map(|money| format!(" {money}"))
                .unwrap_or_default();
            format!(
                "intent {}:{money}, {}, parent {}",
                repair.intent_id, to.status, to.parent_intent_id
            )
        }
    };
    let mut parts = vec![what];
    if !repair.operation_id.is_empty() {
        parts.push(format!("operation {}", repair.operation_id));
    }
    parts.push(repair.state.to_string());
    parts.push(format!(
        "happened {} ago",
        age(as_of.seconds_since(repair.occurred_at))
    ));
    page.line(&format!(
        "  {}  {}  {}",
        short(&repair.id),
        repair.action,
        parts.join(" · ")
    ))?;
    if repair.note.is_empty() {
        return Ok(());
    }
    page.paragraph(6, &repair.note)
}

// ---- the rest

fn carried(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let carried = &report.carried;
    if carried.runs.is_empty() {
        return Ok(());
    }
    page.section(
        "Carried: ",
        &format!(
            "{} and {} of {} that no report has told yet",
            count(carried.breaks.len(), "break", "breaks"),
            count(carried.repairs.len(), "repair", "repairs"),
            count(carried.runs.len(), "run", "runs")
        ),
    )?;
    page.paragraph(2, &carried.runs.join(", "))?;
    let lines: Vec<&BreakLine> = carried.breaks.iter().collect();
    grouped(page, &lines)?;
    repairs(page, "Repairs carried", &carried.repairs, report.run.as_of)
}

fn resolved(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    if report.resolved.is_empty() {
        return Ok(());
    }
    let head = count(report.resolved.len(), "break was", "breaks were");
    page.section("Resolved: ", &format!("{head} seen in order again"))?;
    page.list(&report.resolved, |page, line| {
        let mut told = pair(&line.intent_id, &line.operation_id);
        if let Some(money) = line.money {
            told = format!("{told} · {money}");
        }
        page.line(&format!("  {}  {}  {told}", short(&line.id), line.class))
    })
}

/// `intent A · operation ch_1`, or the one that is there.
fn pair(intent_id: &str, operation_id: &str) -> String {
    let mut parts = Vec::new();
    if !intent_id.is_empty() {
        parts.push(format!("intent {intent_id}"));
    }
    if !operation_id.is_empty() {
        parts.push(format!("operation {operation_id}"));
    }
    parts.join(" · ")
}

fn included(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    if let Some(matches) = &report.matches {
        page.section("Matches: ", &matches.len().to_string())?;
        page.list(matches, |page, line| {
            let ids = pair(&line.intent_id, &line.operation_id);
            let delta = line
                .delta
                .map(|delta| format!(" · delta {delta}"))
                .unwrap_or_default();
            let settled = line
                .settled
                .map(|settled| format!(" · settled as {settled}"))
                .unwrap_or_default();
            page.line(&format!("  {ids} · {}{delta}{settled}", line.rule))
        })?;
    }
    if let Some(pending) = &report.pending {
        page.section("Pending: ", &pending.len().to_string())?;
        page.list(pending, |page, line| {
            let ids = pair(&line.intent_id, &line.operation_id);
            let due = line
                .due_at
                .map(|due| format!(" · due {due}"))
                .unwrap_or_default();
            page.line(&format!("  {ids}{due} · {}", line.why))
        })?;
    }
    if let Some(ignored) = &report.ignored {
        page.section("Ignored: ", &ignored.len().to_string())?;
        page.list(ignored, |page, line| {
            let ids = pair(&line.intent_id, &line.operation_id);
            let money = line
                .money
                .map(|money| format!(" · {money}"))
                .unwrap_or_default();
            let folded = match line.folded_into.as_str() {
                "" => String::new(),
                operation => format!(" · folded into {operation}"),
            };
            page.line(&format!("  {ids} · {}{money}{folded}", line.reason))
        })?;
    }
    Ok(())
}

fn checks(page: &mut Page<'_>, report: &RunReport) -> io::Result<()> {
    let told: Vec<&Check> = report
        .checks
        .iter()
        .filter(|check| check.status != CheckStatus::Pass)
        .collect();
    let missed: Vec<_> = report
        .deliveries
        .iter()
        .filter(|line| line.status == DeliveryStatus::Failed)
        .collect();
    if told.is_empty() && report.warnings.is_empty() && missed.is_empty() {
        return Ok(());
    }
    let passed = report.checks.len() - told.len();
    page.section("Checks: ", &format!("{passed} passed"))?;
    page.list(&told, |page, check| {
        let paint = match check.status {
            CheckStatus::Fail => Paint::Bad,
            CheckStatus::Warn => Paint::Notice,
            CheckStatus::Pass | CheckStatus::Info => Paint::Plain,
        };
        page.painted(
            paint,
            &format!("  {:<4}", check.status.as_str()),
            &format!("  {}: {}", check.name, check.detail),
        )
    })?;
    page.list(&report.warnings, |page, warning| {
        let rest = format!("  {}: {}", warning.code, warning.message);
        page.painted(Paint::Notice, "  warn", &rest)
    })?;
    page.list(&missed, |page, line| {
        let rest = format!(
            "  the message to {} was not sent: {}",
            line.channel, line.detail
        );
        page.painted(Paint::Notice, "  warn", &rest)
    })
}

fn sources(page: &mut Page<'_>, sources: &[SourceReport]) -> io::Result<()> {
    if sources.is_empty() {
        return Ok(());
    }
    page.section("Sources", "")?;
    for source in sources {
        let mut parts = vec![
            if source.is_complete {
                "complete"
            } else {
                "incomplete"
            }
            .to_owned(),
            count(to_usize(source.operations), "operation", "operations"),
        ];
        if source.outside_window > 0 {
            parts.push(format!("{} outside the window", source.outside_window));
        }
        if source.rejected_rows > 0 {
            parts.push(format!("{} rejected", source.rejected_rows));
        }
        parts.push(match source.covered {
            Some(covered) => format!("covered to {covered}"),
            None => "coverage not known".to_owned(),
        });
        page.line(&format!("  {}  {}", source.name, parts.join(" · ")))?;
        match (source.watermark_before, source.watermark_after) {
            (Some(before), Some(after)) if before == after => {
                page.line(&format!("    watermark stays at {after}"))?;
            }
            (Some(before), Some(after)) => {
                page.line(&format!("    watermark {before} → {after}"))?;
            }
            (None, Some(after)) => page.line(&format!("    watermark → {after}"))?,
            (_, None) => {}
        }
        for file in &source.files {
            let rows = count(to_usize(file.rows), "row", "rows");
            page.line(&format!(
                "    {} · {rows} · {} bytes",
                file.path, file.bytes
            ))?;
        }
    }
    Ok(())
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
