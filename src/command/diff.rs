//! `paysweep diff`: the straight line without a memory. Files are compared with a file, or the configured sources over a
//! range, those included that ask an API; nothing is stored, acknowledged or moved, and repairs are only planned.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use crate::cli::{CommonArgs, DiffArgs};
use crate::exit::{Exit, Failure};
use crate::intents::amount::IntentsRules;
use crate::intents::csv as intents_csv;
use crate::intents::sql::table::SqlTable;
use crate::meter::Meter;
use crate::model::answer::Standing;
use crate::model::intent::Intents;
use crate::model::repair::RepairState;
use crate::model::run::{Basis, CompleteThrough, Window};
use crate::model::stored::StoredOperations;
use crate::processor::ReadRules;
use crate::processor::generic::{self, GenericRules, Part};
use crate::processor::profile::Profile;
use crate::reconcile::rules::{Frame, PerKind, Rules};
use crate::reconcile::{self, Outcome, recognise};
use crate::settings::window::{self, WindowChoice};
use crate::settings::{ProfileRef, Settings};
use crate::source::api::Account;
use crate::source::feed::{Asked, Feed};
use crate::source::http::Budget;
use crate::time::{Instant, Span, Zone, parse_point};

use super::compose::{self, RunFacts};
use super::gather::Gathered;
use super::interrupt::Interrupt;
use super::prepare::Prepared;
use super::progress::{Progress, Unit};
use super::told::{Slice, Told};
use super::{World, deliver, frame, own_side, prepare, second_look};

/// The name of the source that files without a configuration make up.
const TYPED: &str = "diff";

const STATE: &str = "nothing was written; diff never writes";

/// `paysweep diff`.
pub async fn execute(
    arguments: &DiffArgs,
    common: &CommonArgs,
    world: &mut World<'_>,
) -> Result<Exit, Failure> {
    let started_at = (world.clock)();
    let settings = match &arguments.intents {
        Some(_) => None,
        None => Some(super::settings(common, world)?),
    };
    let zone = settings
        .as_ref()
        .map_or_else(Zone::utc, |settings| settings.timezone.clone());
    let as_of = window::as_of(common.as_of.as_deref(), &zone, started_at)
        .map_err(|failure| failure.state(STATE))?;
    let choice = window::choose(&arguments.window.flags(), &zone, as_of)
        .map_err(|failure| failure.state(STATE))?;
    let interrupt = world.interrupt.clone();
    interrupt.ask_after(arguments.deadline);
    let names = match &settings {
        Some(settings) => super::source_names(settings, common)?,
        None => vec![TYPED.to_owned()],
    };
    let mut progress = Progress::new(common.progress, world.is_stderr_terminal, common.quiet);
    let meter = progress.step("reading both sides", Unit::Bytes);
    let reading = {
        let (settings, arguments, names, zone) = (
            settings.clone(),
            arguments.clone(),
            names.clone(),
            zone.clone(),
        );
        move || match (settings, &arguments.intents) {
            (None, Some(intents)) => typed(&arguments, intents, &zone, as_of, &meter),
            (Some(settings), _) => {
                configured(&settings, &arguments, &names, choice, as_of, &zone, &meter)
            }
            (None, None) => unreachable!("without a file of intents the settings were read"),
        }
    };
    let mut told = Told::default();
    let mut sides = match interrupt.aside(reading).await {
        Ok(read) => read.map_err(|failure| failure.state(STATE))?,
        Err(_) => Sides::default(),
    };
    for side in &mut sides.sources {
        if let (Some(asking), None) = (&mut side.asking, interrupt.asked()) {
            let step = format!("reading {}", side.rules.source);
            let meter = progress.step(&step, Unit::Rows);
            asking.account = asking.account.clone().counting(meter);
            if let Ok(feed) = interrupt.or(asking.read()).await {
                side.feed = feed.map_err(|failure| failure.state(STATE))?;
            }
        }
    }
    if let Some(settings) = settings.as_ref().filter(|_| !sides.sources.is_empty()) {
        let reading = interrupt.or(table(settings, choice, as_of, &sides)).await;
        // Where somebody asked to stop, every source is told to be stopped.
        if let Some(rows) = reading
            .unwrap_or(Ok(None))
            .map_err(|failure| failure.state(STATE))?
        {
            sides.intents = rows;
        }
    }
    let meter = progress.step("comparing", Unit::Rows);
    let rules: Vec<Rules> = sides
        .sources
        .iter()
        .map(|side| side.rules.clone())
        .collect();
    let (mut intents, count) = (sides.intents, names.len());
    let mut sides = sides.sources.into_iter();
    for (n, name) in names.iter().enumerate() {
        let Some(side) = sides.next().filter(|_| interrupt.asked().is_none()) else {
            if let Some(stopped) = interrupt.asked() {
                told.stop(name, stopped.state(STATE));
            }
            continue;
        };
        let window = match choice {
            WindowChoice::Range(window) => window,
            WindowChoice::Watermark => Window {
                from: Instant::MIN,
                to: Instant::MAX,
                basis: Basis::Files,
            },
        };
        let others: Vec<Option<Instant>> = told.slices.iter().map(Slice::covered).collect();
        let own = if n + 1 == count {
            std::mem::take(&mut intents)
        } else {
            intents.clone()
        };
        let (is_last, standings) = (n + 1 == count, told.standings(None));
        let question = Question {
            window,
            as_of,
            others,
            is_last,
            standings,
            meter: meter.clone(),
        };
        match judged(side, own, question, &interrupt).await {
            Ok(slice) => told.slices.push(slice?),
            Err(stopped) => told.stop(name, stopped.state(STATE)),
        }
    }
    match told.slices.len().checked_sub(1) {
        // What was not read speaks of nothing.
        Some(last) if told.is_partial => told.wait_for_unread(&rules[last], false),
        _ => told.judge_again(&rules, |at, gathered, frame| {
            judge(gathered, &rules[at], frame, &Meter::default())
        })?,
    }
    progress.finish();
    for failure in &told.failures {
        world.tell(failure);
    }
    for (_, broken) in told.broken_off() {
        world.tell(broken);
    }
    let report = compose::report(
        &told,
        &RunFacts {
            run_id: "",
            command: "diff",
            is_dry_run: true,
            as_of,
            started_at,
            finished_at: (world.clock)(),
            settings: settings.as_ref(),
            zone,
            fallback_window: choice,
        },
        common,
    );
    deliver::deliver(&report, common, None, world)?;
    Ok(report.outcome.exit)
}

/// Rows of the company's table, where the configuration names one: those of the window, and whatever the files lead to.
async fn table(
    settings: &Settings,
    choice: WindowChoice,
    as_of: Instant,
    sides: &Sides,
) -> Result<Option<Intents>, Failure> {
    let Some(spec) = &settings.intents.sql else {
        return Ok(None);
    };
    let mut reach = Span::ZERO;
    for side in &sides.sources {
        let source = settings.source(&side.rules.source)?;
        reach = reach.max(Prepared::new(source)?.reach());
    }
    let (since, until) = match choice {
        WindowChoice::Range(window) => (window.from.minus(reach), window.to),
        WindowChoice::Watermark => (Instant::MIN, as_of),
    };
    let feeds: Vec<_> = sides
        .sources
        .iter()
        .map(|side| &side.feed.operations)
        .collect();
    let mut table = SqlTable::open(spec).await?;
    let intents = own_side::read_table(&mut table, since, until, &feeds).await?;
    table.close().await?;
    Ok(Some(intents))
}

#[derive(Default)]
struct Sides {
    sources: Vec<Side>,
    intents: Intents,
}

struct Side {
    rules: Rules,
    feed: Feed,
    complete_through: CompleteThrough,
    /// How it is asked; `None` = files were read.
    asking: Option<Asking>,
}

/// A processor that is asked for a range, and for what reaches into it.
#[derive(Clone)]
struct Asking {
    account: Account,
    from: Instant,
    to: Instant,
    /// Rows that are younger may not be shown yet.
    lag: Span,
}

impl Asking {
    async fn read(&self) -> Result<Feed, Failure> {
        let account = &self.account;
        if account.has_reports() {
            return account.read_reports(None, self.from).await;
        }
        account.read_window(self.from, self.to.max(self.from)).await
    }
}

/// The files that were typed.
fn typed(
    arguments: &DiffArgs,
    intents: &Path,
    zone: &Zone,
    as_of: Instant,
    meter: &Meter,
) -> Result<Sides, Failure> {
    let profile = prepare::profile(&profile_of(arguments)?)?;
    let read_rules = read_rules(arguments, &profile)?;
    let mut rules = Rules::new(TYPED);
    rules.payout_span = profile.spans.payout_span;
    if let Some(grace) = arguments.grace {
        rules.grace = PerKind::all(grace);
        rules.open_after = PerKind::all(grace);
    }
    // The two sides know nothing of each other until they are compared.
    let (feed, intents) = std::thread::scope(|scope| {
        let intents = scope.spawn(|| {
            let rules = IntentsRules::default();
            intents_csv::read(&rules, &intents.display().to_string(), intents, meter)
        });
        let feed = prepare::read(&profile, &read_rules, &arguments.operations, meter);
        (
            feed,
            intents.join().expect("a panic ends the process by itself"),
        )
    });
    let (feed, intents) = (feed?, intents?);
    let complete_through = claim(arguments, zone, as_of)?.unwrap_or(CompleteThrough::LastRow);
    Ok(Sides {
        sources: vec![Side {
            rules,
            feed,
            complete_through,
            asking: None,
        }],
        intents,
    })
}

/// What was typed about the file beside its profile. What the profile says by itself is not passed over.
fn read_rules(arguments: &DiffArgs, profile: &Profile) -> Result<ReadRules, Failure> {
    let left = profile.left_to_source();
    let is_generic = profile.name == generic::NAME;
    for (is_told, is_left, flag, what) in [
        (
            arguments.zone.is_some() && !is_generic,
            left.zone,
            "--zone",
            "in which zone its times are",
        ),
        (
            arguments.currency.is_some() && !is_generic,
            left.currency,
            "--currency",
            "in which currency its amounts are",
        ),
        (
            arguments.date_order.is_some(),
            left.date_order,
            "--date-order",
            "in which order day and month stand",
        ),
    ] {
        if is_told && !is_left {
            let remedy = if is_generic {
                "write the order into its time format: --layout \"time_format=%d/%m/%Y\""
            } else {
                "leave the flag out; a file in another form needs a profile of its own"
            };
            return Err(Failure::rejected(format!(
                "{flag}: profile {} says by itself {what}",
                profile.name
            ))
            .remedy(remedy));
        }
    }
    Ok(ReadRules {
        zone: arguments.zone.clone(),
        currency: arguments.currency,
        date_order: arguments.date_order,
        reference: arguments.reference.clone(),
        ..ReadRules::default()
    })
}

/// The profile that was typed, with what was typed about the profile generic.
fn profile_of(arguments: &DiffArgs) -> Result<ProfileRef, Failure> {
    let name = arguments.profile.as_deref().unwrap_or("canonical");
    let mut rules = GenericRules::default();
    for (part, told) in [
        (Part::Column, &arguments.columns),
        (Part::Layout, &arguments.layout),
        (Part::Kind, &arguments.kinds),
        (Part::Status, &arguments.statuses),
    ] {
        for (key, value) in told {
            rules.enter(part, key, value)?;
        }
    }
    if name == generic::NAME {
        let zone = arguments.zone.as_ref().map(Zone::name);
        let currency = arguments.currency.map(|currency| currency.to_string());
        for (key, told) in [("zone", zone), ("currency", currency.as_deref())] {
            if let Some(told) = told {
                rules.enter(Part::Layout, key, told)?;
            }
        }
        return Ok(ProfileRef::Generic(Box::new(rules)));
    }
    if rules.is_empty() {
        return Ok(ProfileRef::parse(name));
    }
    Err(Failure::rejected(format!(
        "--column, --layout, --kind and --status belong to the profile generic, and --profile is {name}"
    ))
    .why("every other profile says by itself what the columns are")
    .remedy("write --profile generic, or leave them out"))
}

/// The sources of the configuration.
fn configured(
    settings: &Settings,
    arguments: &DiffArgs,
    names: &[String],
    choice: WindowChoice,
    as_of: Instant,
    zone: &Zone,
    meter: &Meter,
) -> Result<Sides, Failure> {
    let claim = claim(arguments, zone, as_of)?;
    let mut sources = Vec::new();
    for name in names {
        let source = settings.source(name)?;
        let prepared = Prepared::new(source)?;
        let account = prepared.account(&Arc::new(Budget::new(None)))?;
        let asking = match (account, choice) {
            (None, _) => None,
            (Some(account), WindowChoice::Range(window)) => Some(Asking {
                account,
                from: window.from.minus(prepared.reach()),
                to: window.to.min(as_of.minus(prepared.spans.lag)),
                lag: prepared.spans.lag,
            }),
            (Some(_), WindowChoice::Watermark) => {
                return Err(Failure::rejected(format!(
                    "source {name}: an API is asked for a range, and none is given"
                ))
                .why("diff has no memory, so it does not know how far the source was read")
                .remedy("write --from and --to, or use `paysweep run --dry-run`"));
            }
        };
        let feed = match prepared.reader(meter.clone()) {
            Some(read) => read()?,
            None => Feed::default(),
        };
        let mut rules = prepared.rules;
        if let Some(grace) = arguments.grace {
            rules.grace = PerKind::all(grace);
        }
        sources.push(Side {
            rules,
            feed,
            complete_through: claim.unwrap_or(source.complete_through),
            asking,
        });
    }
    if settings.intents.sql.is_some() {
        // The table is asked once the files are read.
        return Ok(Sides {
            sources,
            intents: Intents::default(),
        });
    }
    let intents = prepare::read_intents(settings, meter)?.ok_or_else(|| {
        Failure::rejected("diff has no memory, and the configured intents are kept in the store")
            .remedy("name a file with --operations FILE --intents FILE, or use `paysweep run --dry-run`")
    })?;
    Ok(Sides { sources, intents })
}

fn claim(
    arguments: &DiffArgs,
    zone: &Zone,
    as_of: Instant,
) -> Result<Option<CompleteThrough>, Failure> {
    Ok(match arguments.complete_through.as_deref() {
        None => None,
        Some("last-row") => Some(CompleteThrough::LastRow),
        Some("as-of") => Some(CompleteThrough::AsOf),
        Some(text) => {
            let at = parse_point(text, zone, as_of).ok_or_else(|| {
                Failure::rejected(format!("--complete-through \"{text}\" is no time"))
                    .remedy("write last-row, as-of, or a time such as 2026-03-10T00:00:00Z")
            })?;
            Some(CompleteThrough::At(at))
        }
    })
}

/// What is asked of one side.
struct Question {
    window: Window,
    as_of: Instant,
    /// How far the sides before it are complete.
    others: Vec<Option<Instant>>,
    is_last: bool,
    standings: HashMap<String, Standing>,
    /// Counts rows as they are compared.
    meter: Meter,
}

/// Compares one side. What seems to be absent is asked for by its id before it is called so, where somebody can be asked.
#[allow(
    clippy::type_complexity,
    reason = "stopped from outside, or failed by itself"
)]
async fn judged(
    side: Side,
    intents: Intents,
    question: Question,
    interrupt: &Interrupt,
) -> Result<Result<Slice, Failure>, Failure> {
    let is_whole = side.feed.asked.as_ref().is_some_and(Asked::is_whole);
    let looking = side
        .asking
        .clone()
        .filter(|_| is_whole && side.rules.can_look_up);
    let again = looking.map(|asking| (asking, side.feed.operations.clone(), intents.clone()));
    let rules = side.rules.clone();
    let complete_through = side.complete_through;
    let comparing = move || {
        let slice = compare(side, intents, &question);
        (slice, question)
    };
    let (slice, question) = interrupt.aside(comparing).await?;
    let (slice, (asking, mut operations, intents)) = match (slice, again) {
        (Ok(slice), Some(again)) => (slice, again),
        (slice, _) => return Ok(slice),
    };
    let account = &asking.account;
    let wanted = second_look::questions(
        account,
        &rules.source,
        &slice.gathered,
        &slice.outcome,
        &slice.frame,
        true,
    );
    if wanted.ids.is_empty() {
        return Ok(Ok(slice));
    }
    let found = interrupt.or(account.look_up(&wanted.ids)).await?;
    let Slice { mut feed, .. } = slice;
    let broken = match found {
        Ok(found) => {
            second_look::take_in(found, &mut feed, &mut operations);
            None
        }
        Err(failure) if failure.exit == Exit::Incomplete => {
            Some(failure.state("nothing is called absent"))
        }
        Err(failure) => return Ok(Err(failure)),
    };
    if let Some(asked) = &mut feed.asked {
        asked.count(account.traffic());
        asked.not_asked = wanted.not_asked;
        asked.broken = broken;
    }
    feed.operations = operations;
    let side = Side {
        rules,
        feed,
        complete_through,
        asking: Some(asking),
    };
    let comparing = move || compare(side, intents, &question);
    let slice = interrupt.aside(comparing).await?;
    Ok(slice.map(|mut slice| {
        second_look::tell(&mut slice.outcome, &slice.gathered, &slice.feed);
        slice
    }))
}

fn compare(mut side: Side, intents: Intents, question: &Question) -> Result<Slice, Failure> {
    let Question {
        mut window, as_of, ..
    } = *question;
    let mut low = Instant::MIN;
    let covered = frame::complete_through(side.complete_through, as_of, &side.feed);
    let mut covered = covered.map(|at| at.min(window.to).min(as_of));
    if let (Some(asking), Some(asked)) = (&side.asking, &side.feed.asked) {
        // What a processor does not answer for is not covered, whatever the configuration claims.
        let until = asked.whole_until.min(as_of.minus(asking.lag));
        covered = covered.map(|at| at.min(until)).filter(|_| asked.is_whole());
        low = asking.from;
        if !asked.is_whole() {
            window.to = window.to.min(asked.whole_until).max(window.from);
        }
    }
    let frame = Frame {
        as_of,
        window,
        low,
        horizon: Instant::MIN,
        covered,
        others_covered: question
            .others
            .iter()
            .try_fold(Instant::MAX, |all, other| Some(all.min((*other)?))),
        judges_unowned: question.is_last,
        is_feed_unchanged: false,
        is_absence_proof: false,
    };
    let operations = std::mem::take(&mut side.feed.operations);
    let recognised = recognise::recognise(operations, &StoredOperations::default(), &intents);
    let mut gathered = Gathered::without_memory(recognised, intents);
    gathered.hear(&question.standings);
    let outcome = judge(&gathered, &side.rules, &frame, &question.meter)?;
    Ok(Slice::without_memory(
        &side.rules.source,
        frame,
        side.feed,
        gathered,
        outcome,
    ))
}

fn judge(
    gathered: &Gathered,
    rules: &Rules,
    frame: &Frame,
    meter: &Meter,
) -> Result<Outcome, Failure> {
    let mut outcome = reconcile::reconcile_counting(&gathered.snapshot(), rules, frame, meter);
    if !outcome.violations.is_empty() {
        return Err(Failure::new(Exit::Internal, "the accounts do not add up")
            .why(outcome.violations.join("; "))
            .remedy("please report this with the two files")
            .state(STATE));
    }
    for repair in &mut outcome.repairs {
        repair.state = RepairState::Planned;
    }
    Ok(outcome)
}
