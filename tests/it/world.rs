//! A small world for the pure core: rows as text, verdicts as text, and a memory that keeps what a store would keep.
//!
//! One line is one row. An operation is `ch_1 charge succeeded 1000 10:00 ref=A`, an intent `A charge 1000 pending 09:59
//! key=k`; what is left out is EUR, 2026-03-09 and nothing. `·` stands for a blank inside a value. A line that starts with
//! `rules` or `frame` sets what the core is told.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use paysweep::model::answer::{Answer, Others, Standing};
use paysweep::model::breaks::{
    Break, BreakClass, BreakDisposition, BreakState, CloseAs, Policy, Severity,
};
use paysweep::model::intent::{Intent, IntentKind, IntentStatus, Intents};
use paysweep::model::operation::{IdKind, Operation, OperationKind, OperationStatus, Operations};
use paysweep::model::repair::{Repair, RepairAction, RepairState};
use paysweep::model::run::{Basis, Window};
use paysweep::model::stored::StoredOperations;
use paysweep::model::verdict::{Disposition, IgnoreReason, Rule};
use paysweep::money::{Currency, Money};
use paysweep::reconcile::recognise::recognise;
use paysweep::reconcile::redrive::Redrive;
use paysweep::reconcile::rules::{Frame, PerKind, Rules};
use paysweep::reconcile::{
    Outcome, Seen, Snapshot, StoredLink, reconcile, reconcile_without_sieve,
};
use paysweep::time::{Instant, Span};

/// "Now" of every world, unless a line says otherwise.
pub(crate) const NOW: &str = "10T12:00";

/// A row of the memory: the link that a store keeps beside an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Linked {
    intent: String,
    rule: Rule,
    is_principal: bool,
}

/// Both sides, what is remembered of them, and what the core is told.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) feed: Vec<String>,
    stored: Vec<String>,
    pub(crate) intents: Intents,
    pub(crate) open: Vec<Break>,
    ledger: BTreeSet<String>,
    links: BTreeMap<(String, String), Linked>,
    elsewhere: BTreeMap<String, Standing>,
    pub(crate) rules: Rules,
    pub(crate) frame: Frame,
}

/// One verdict, with the rows it is about.
pub(crate) struct Run {
    pub(crate) outcome: Outcome,
    pub(crate) operations: Operations,
    seen: Vec<Seen>,
    stored_links: Vec<Option<StoredLink>>,
    intents: Intents,
    ledger: BTreeSet<String>,
}

pub(crate) fn at(text: &str) -> Instant {
    let (day, time) = text.split_once('T').unwrap_or(("09", text));
    let day = if day.len() == 2 {
        format!("03-{day}")
    } else {
        day.to_owned()
    };
    let seconds = if time.len() == 5 { ":00" } else { "" };
    Instant::parse(&format!("2026-{day}T{time}{seconds}Z"))
        .unwrap_or_else(|| panic!("no time: {text}"))
}

fn currency(text: &str) -> Option<Currency> {
    (text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase()))
        .then(|| Currency::parse(text))
        .flatten()
}

fn is_time(text: &str) -> bool {
    let time = text.split_once('T').map_or(text, |(_, time)| time);
    time.len() >= 5
        && time.as_bytes()[2] == b':'
        && time
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b':')
}

fn minor(text: &str) -> i64 {
    text.parse().unwrap_or_else(|_| panic!("no amount: {text}"))
}

/// Adds the operation of a line.
pub(crate) fn push_operation(line: &str, operations: &mut Operations) {
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.replace('·', " "))
        .collect();
    let mut row = Operation {
        operation_id: &words[0],
        kind: OperationKind::from_word(&words[1]).unwrap_or_else(|| panic!("no kind: {line}")),
        status: OperationStatus::from_word(&words[2])
            .unwrap_or_else(|| panic!("no status: {line}")),
        amount_minor: minor(&words[3]),
        currency: currency("EUR").expect("a code"),
        occurred_at: at("10:00"),
        ..Operation::EMPTY
    };
    let mut settle = None;
    for word in &words[4..] {
        if let Some(code) = currency(word) {
            row.currency = code;
        } else if is_time(word) {
            row.occurred_at = at(word);
        } else {
            match word.split_once('=') {
                Some(("ref", value)) => row.reference = value,
                Some(("parent", value)) => row.parent_id = value,
                Some(("obj", value)) => row.object_id = value,
                Some(("payout", value)) => row.payout_id = value,
                Some(("account", value)) => row.account = value,
                Some(("net", value)) => row.net_minor = Some(minor(value)),
                Some(("fee", value)) => row.fee_minor = Some(minor(value)),
                Some(("settle", value)) => settle = currency(value),
                Some(("invalid", value)) => row.invalid = value,
                Some(("text", value)) => row.description = value,
                Some(("refunded", value)) => row.refund_total_minor = Some(minor(value)),
                Some(("refunded_at", value)) => row.refunded_at = Some(at(value)),
                Some(("ignore", value)) => row.ignore = IgnoreReason::from_word(value),
                None if word == "final" => row.is_final = true,
                None if word == "synthetic" => row.id_kind = IdKind::Synthetic,
                _ => panic!("what is {word} in {line}"),
            }
        }
    }
    row.settle_currency = settle.unwrap_or(row.currency);
    operations.push(&row);
}

fn push_intent(line: &str, intents: &mut Intents, elsewhere: &mut BTreeMap<String, Standing>) {
    let words: Vec<String> = line
        .split_whitespace()
        .map(|word| word.replace('·', " "))
        .collect();
    let mut row = Intent {
        intent_id: &words[0],
        kind: IntentKind::from_word(&words[1]).unwrap_or_else(|| panic!("no kind: {line}")),
        amount_minor: minor(&words[2]),
        currency: currency("EUR").expect("a code"),
        created_at: at("09:59"),
        ..Intent::EMPTY
    };
    for word in &words[3..] {
        if let Some(code) = currency(word) {
            row.currency = code;
        } else if let Some(first) = word.strip_prefix("first=") {
            row.first_attempt_at = Some(at(first));
        } else if is_time(word) {
            row.created_at = at(word);
        } else if let Some(status) = IntentStatus::from_word(word) {
            row.status = status;
        } else {
            match word.split_once('=') {
                Some(("key", value)) => row.idempotency_key = value,
                Some(("ref", value)) => row.reference = value,
                Some(("parent", value)) => row.parent_intent_id = value,
                Some(("proc", value)) => row.processor_ref = value,
                Some(("attempt", value)) => row.attempt = value.parse().ok(),
                Some(("source", value)) => row.source = value,
                Some(("written", value)) => row.written_amount = value,
                Some(("invalid", value)) => row.invalid = value,
                Some(("elsewhere", value)) => {
                    let standing = match value {
                        "fell" => Standing::Fell,
                        "waits" => Standing::Waits,
                        "stands" => Standing::Stands,
                        _ => panic!("what is {word} in {line}"),
                    };
                    elsewhere.insert(row.intent_id.to_owned(), standing);
                }
                _ => panic!("what is {word} in {line}"),
            }
        }
    }
    intents.push(&row);
}

fn span(text: &str) -> Span {
    Span::parse(text).unwrap_or_else(|| panic!("no span: {text}"))
}

/// A row's line again, from its columns: what the memory keeps.
fn line_of(row: &Operation<'_>) -> String {
    let mut line = format!(
        "{} {} {} {} {}",
        row.operation_id, row.kind, row.status, row.amount_minor, row.currency
    );
    let mut add = |name: &str, value: &str| {
        if !value.is_empty() {
            write!(line, " {name}={}", value.replace(' ', "·")).expect("a string takes everything");
        }
    };
    add("ref", row.reference);
    add("parent", row.parent_id);
    add("obj", row.object_id);
    add("payout", row.payout_id);
    add("account", row.account);
    add("invalid", row.invalid);
    add("ignore", row.ignore.map_or("", IgnoreReason::as_str));
    if let Some(net) = row.net_minor {
        write!(line, " net={net}").expect("a string takes everything");
    }
    if let Some(fee) = row.fee_minor {
        write!(line, " fee={fee}").expect("a string takes everything");
    }
    if row.settle_currency != row.currency {
        write!(line, " settle={}", row.settle_currency).expect("a string takes everything");
    }
    if let Some(total) = row.refund_total_minor {
        write!(line, " refunded={total}").expect("a string takes everything");
    }
    if row.is_final {
        line.push_str(" final");
    }
    if row.id_kind == IdKind::Synthetic {
        line.push_str(" synthetic");
    }
    let time = row.occurred_at.to_string();
    let time = time.trim_start_matches("2026-").trim_end_matches('Z');
    format!("{line} {time}")
}

impl World {
    /// A world of these lines, with the defaults of every test.
    pub(crate) fn of(lines: &str) -> World {
        let mut world = World {
            feed: Vec::new(),
            stored: Vec::new(),
            intents: Intents::default(),
            open: Vec::new(),
            ledger: BTreeSet::new(),
            links: BTreeMap::new(),
            elsewhere: BTreeMap::new(),
            rules: Rules::new("shop"),
            frame: Frame {
                as_of: at(NOW),
                window: Window {
                    from: at("06T00:00"),
                    to: at(NOW),
                    basis: Basis::Watermark,
                },
                low: at("06T00:00"),
                horizon: Instant::MIN,
                covered: Some(at(NOW)),
                others_covered: Some(Instant::MAX),
                judges_unowned: true,
                is_feed_unchanged: false,
                is_absence_proof: false,
            },
        };
        world.add(lines);
        world
    }

    /// Adds rows and settings.
    pub(crate) fn add(&mut self, lines: &str) {
        for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words[0] {
                "rules" => words[1..].iter().for_each(|word| self.rule(word)),
                "frame" => words[1..].iter().for_each(|word| self.frame(word)),
                "stored" => self.stored.push(line["stored".len()..].trim().to_owned()),
                _ if words[2].parse::<i64>().is_ok() => {
                    push_intent(line, &mut self.intents, &mut self.elsewhere);
                }
                _ => self.feed.push(line.to_owned()),
            }
        }
    }

    /// The same world with another feed.
    pub(crate) fn feed(&mut self, lines: &str) {
        self.feed.clear();
        self.add(lines);
    }

    fn rule(&mut self, word: &str) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let per_currency = || -> (Currency, i64) {
            let (code, limit) = value.split_once(':').expect("EUR:1");
            (currency(code).expect("a code"), minor(limit))
        };
        let class = || BreakClass::from_word(value).unwrap_or_else(|| panic!("no class: {value}"));
        match name {
            "tolerance" => {
                let (code, limit) = per_currency();
                self.rules.tolerance.insert(code, limit);
            }
            "rounds" => {
                let (code, limit) = per_currency();
                self.rules.rounds_to_minor.insert(code, limit);
            }
            "link" => {
                self.rules.link_policy = Policy::from_word(value).expect("a policy");
            }
            "chars" => self.rules.reference_max_chars = value.parse().ok(),
            "grace" => self.rules.grace = PerKind::all(span(value)),
            "open_after" => self.rules.open_after = PerKind::all(span(value)),
            "payout_span" => self.rules.payout_span = span(value),
            "lookup" => self.rules.can_look_up = true,
            // `24h`, `24h:6h` where rows appear within six hours, `always`.
            "redrive" => {
                let (window, late) = value.split_once(':').unwrap_or((value, "0s"));
                self.rules.redrive = Some(Redrive {
                    window: (window != "always").then(|| span(window)),
                    visible_within: span(late),
                });
            }
            "only" => self.rules.is_only_source = true,
            "off" => {
                self.rules.policies.insert(class(), Policy::Off);
            }
            "propose" => {
                self.rules.policies.insert(class(), Policy::Propose);
            }
            // Conditions of a class: `status_behind:1000`.
            "max" | "min_age" | "evidence" | "forward" | "otherwise" => {
                let (class, limit) = value.split_once(':').unwrap_or((value, ""));
                let class = BreakClass::from_word(class).expect("a class");
                let conditions = self.rules.conditions.entry(class).or_default();
                match name {
                    "max" => {
                        let (code, minor) = limit.split_once('/').expect("EUR/1000");
                        let code = Currency::parse(code).expect("a code");
                        let minor = minor.parse().expect("minor units");
                        conditions.max_amount.insert(code, minor);
                    }
                    "min_age" => conditions.min_age = Some(span(limit)),
                    "evidence" => conditions.min_evidence = Rule::from_word(limit),
                    "forward" => conditions.only_forward = true,
                    _ => conditions.otherwise = Policy::from_word(limit),
                }
            }
            "kinds" => {
                self.rules.kinds = value.split(',').filter_map(IntentKind::from_word).collect();
            }
            _ => panic!("what is {word}"),
        }
    }

    fn frame(&mut self, word: &str) {
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let maybe = || (value != "none").then(|| at(value));
        match name {
            "as_of" => {
                self.frame.as_of = at(value);
                self.frame.window.to = at(value);
                self.frame.covered = Some(at(value));
            }
            "from" => {
                self.frame.window.from = at(value);
                self.frame.low = at(value);
            }
            "to" => self.frame.window.to = at(value),
            "low" => self.frame.low = at(value),
            "covered" => self.frame.covered = maybe(),
            "others" => self.frame.others_covered = maybe(),
            "unowned" => self.frame.judges_unowned = value != "no",
            "unchanged" => self.frame.is_feed_unchanged = true,
            "proof" => self.frame.is_absence_proof = true,
            "basis" => {
                self.frame.window.basis = Basis::from_word(value).expect("a basis");
            }
            _ => panic!("what is {word}"),
        }
    }

    /// The same rows in another order: `seed` 0 turns both sides round, others shuffle.
    pub(crate) fn reordered(&self, seed: usize) -> World {
        let mut world = self.clone();
        let order = |count: usize| -> Vec<usize> {
            let mut order: Vec<usize> = (0..count).rev().collect();
            if seed > 0 {
                // A fixed walk through the rows: the same seed gives the same order.
                order.sort_by_key(|row| (row + 1) * (7919 * seed + 13) % 101);
            }
            order
        };
        world.feed = order(self.feed.len())
            .into_iter()
            .map(|row| self.feed[row].clone())
            .collect();
        world.stored = order(self.stored.len())
            .into_iter()
            .map(|row| self.stored[row].clone())
            .collect();
        world.intents = Intents::default();
        for row in order(self.intents.len()) {
            world.intents.push(&self.intents.get(row));
        }
        world.open.reverse();
        world
    }

    fn stored_operations(&self) -> StoredOperations {
        let mut stored = StoredOperations::default();
        for line in &self.stored {
            push_operation(line, &mut stored.rows);
        }
        for row in 0..stored.rows.len() {
            let data = stored.rows.get(row);
            let key = (data.account.to_owned(), data.operation_id.to_owned());
            let link = self.links.get(&key);
            let text = link.map_or("", |link| link.intent.as_str()).to_owned();
            stored.linked_intent.push(stored.rows.text.push(&text));
            stored.linked_rule.push(link.map(|link| link.rule));
        }
        stored
    }

    /// Asks the core.
    pub(crate) fn run(&self) -> Run {
        self.run_with(reconcile)
    }

    pub(crate) fn run_without_sieve(&self) -> Run {
        self.run_with(reconcile_without_sieve)
    }

    fn run_with(&self, core: fn(&Snapshot<'_>, &Rules, &Frame) -> Outcome) -> Run {
        let mut feed = Operations::default();
        for line in &self.feed {
            push_operation(line, &mut feed);
        }
        let recognised = recognise(feed, &self.stored_operations(), &self.intents);
        let links = recognised.links(&self.intents);
        let answer: Vec<Answer> = self
            .intents
            .iter()
            .map(|row| {
                let elsewhere = self.elsewhere.get(row.intent_id);
                elsewhere.map_or(Answer::Nobody, |&standing| Answer::Elsewhere(standing))
            })
            .collect();
        let snapshot = Snapshot {
            operations: &recognised.operations,
            seen: &recognised.seen,
            changes: &recognised.changes,
            links: &links,
            intents: &self.intents,
            answer: &answer,
            others: &Others::default(),
            open: &self.open,
        };
        let outcome = core(&snapshot, &self.rules, &self.frame);
        Run {
            outcome,
            seen: recognised.seen,
            operations: recognised.operations,
            stored_links: links,
            intents: self.intents.clone(),
            ledger: self.ledger.clone(),
        }
    }

    /// Keeps what a store would keep of a run, and refuses what a store would refuse.
    pub(crate) fn settle(&mut self, run: &Run) {
        let outcome = &run.outcome;
        for &row in outcome
            .new_operations
            .iter()
            .chain(&outcome.moved_operations)
        {
            let data = run.operations.get(row);
            let line = line_of(&data);
            let mut all = Operations::default();
            self.stored.retain(|line| {
                push_operation(line, &mut all);
                let other = all.get(all.len() - 1);
                (other.account, other.operation_id) != (data.account, data.operation_id)
            });
            self.stored.push(line);
        }
        for link in &outcome.links {
            let data = run.operations.get(link.operation);
            self.link(
                (data.account.to_owned(), data.operation_id.to_owned()),
                Linked {
                    intent: run.intents.get(link.intent).intent_id.to_owned(),
                    rule: link.rule,
                    is_principal: link.is_principal,
                },
            );
        }
        for repair in &outcome.repairs {
            if self.ledger.insert(repair.id.clone()) && repair.state == RepairState::Applied {
                self.apply(repair);
            }
        }
        self.open
            .retain(|item| !outcome.resolved.contains(&item.id));
        for finding in &outcome.findings {
            let mut item = finding.found.clone();
            self.open.retain(|other| other.id != item.id);
            if item.first_seen_run.is_empty() {
                "run".clone_into(&mut item.first_seen_run);
            }
            if item.is_sticky || item.disposition != BreakDisposition::Repaired {
                self.open.push(item);
            }
        }
    }

    fn link(&mut self, key: (String, String), link: Linked) {
        if let Some(stored) = self.links.get(&key) {
            assert_eq!(
                stored.intent, link.intent,
                "a stored link was dealt again: {key:?}"
            );
            return;
        }
        let is_second = link.is_principal
            && self
                .links
                .values()
                .any(|other| other.is_principal && other.intent == link.intent);
        assert!(
            !is_second,
            "a second principal for {}: {key:?}",
            link.intent
        );
        self.links.insert(key, link);
    }

    fn apply(&mut self, repair: &Repair) {
        let mut rows = Intents::default();
        let mut is_found = false;
        for row in self.intents.iter() {
            if row.intent_id == repair.intent_id {
                assert_eq!(
                    row.version, repair.planned_version,
                    "planned against another version"
                );
                is_found = true;
                rows.push(&Intent {
                    status: repair.to.status,
                    processor_ref: &repair.to.processor_ref,
                    version: row.version + 1,
                    ..row
                });
            } else {
                rows.push(&row);
            }
        }
        if let (Some(kind), Some(money)) = (repair.to.kind, repair.to.money) {
            assert!(!is_found, "{} is recorded twice", repair.intent_id);
            assert!(money.minor > 0, "a recorded row of nothing");
            rows.push(&Intent {
                intent_id: &repair.intent_id,
                kind,
                amount_minor: money.minor,
                currency: money.currency,
                status: repair.to.status,
                created_at: repair.occurred_at,
                processor_ref: &repair.to.processor_ref,
                parent_intent_id: &repair.to.parent_intent_id,
                source: &repair.source,
                is_recorded: true,
                ..Intent::EMPTY
            });
            let rule = if repair.to.processor_ref.is_empty() {
                Rule::Parent
            } else {
                Rule::ProcessorRef
            };
            self.link(
                (repair.account.clone(), repair.operation_id.clone()),
                Linked {
                    intent: repair.intent_id.clone(),
                    rule,
                    is_principal: true,
                },
            );
        } else {
            assert!(is_found, "a repair of nothing: {}", repair.intent_id);
        }
        self.intents = rows;
    }

    /// A person closes or acknowledges the only break of a class.
    pub(crate) fn decide(&mut self, class: BreakClass, how: Option<CloseAs>) {
        let until = at("20T00:00");
        let item = self
            .open
            .iter_mut()
            .find(|item| item.class == class)
            .unwrap_or_else(|| panic!("no open {class}"));
        if how.is_some() {
            item.state = BreakState::Closed;
        } else {
            item.state = BreakState::Acknowledged;
            item.acknowledged_until = Some(until);
        }
    }

    /// Changes a row by hand, as an import does.
    pub(crate) fn edit(&mut self, line: &str) {
        let mut edited = Intents::default();
        push_intent(line, &mut edited, &mut self.elsewhere);
        let new = edited.get(0);
        let mut rows = Intents::default();
        for row in self.intents.iter() {
            if row.intent_id == new.intent_id {
                rows.push(&Intent {
                    version: row.version + 1,
                    ..new
                });
            } else {
                rows.push(&row);
            }
        }
        self.intents = rows;
    }
}

fn dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn show(money: Money) -> String {
    if money.currency.as_str() == "EUR" {
        money.minor.to_string()
    } else {
        format!("{} {}", money.minor, money.currency)
    }
}

impl Run {
    fn operation_id(&self, row: usize) -> &str {
        self.operations.get(row).operation_id
    }

    /// Repairs that the ledger does not know yet.
    pub(crate) fn new_repairs(&self) -> Vec<&Repair> {
        self.outcome
            .repairs
            .iter()
            .filter(|repair| !self.ledger.contains(&repair.id))
            .collect()
    }

    /// Ids of breaks that need somebody after the run.
    pub(crate) fn still_open(&self) -> BTreeSet<String> {
        self.outcome
            .findings
            .iter()
            .filter(|finding| {
                finding.found.is_sticky || finding.found.disposition == BreakDisposition::Review
            })
            .map(|finding| finding.found.id.clone())
            .collect()
    }

    /// The whole verdict, one line each, sorted.
    pub(crate) fn text(&self) -> Vec<String> {
        let outcome = &self.outcome;
        let mut lines = Vec::new();
        for pair in &outcome.matches {
            let delta = if pair.delta_minor == 0 {
                String::new()
            } else {
                format!(" delta={}", pair.delta_minor)
            };
            lines.push(format!(
                "match {} {} {}{delta}",
                self.intents.get(pair.intent).intent_id,
                self.operation_id(pair.operation),
                pair.rule
            ));
        }
        for finding in &outcome.findings {
            let found = &finding.found;
            let mut line = format!(
                "break {} {} {}",
                found.class,
                dash(&found.intent_id),
                dash(&found.operation_id)
            );
            if let Some(money) = found.money {
                write!(line, " {}", show(money)).expect("a string takes everything");
            }
            if let Some(delta) = found.delta {
                write!(line, " delta={}", delta.minor).expect("a string takes everything");
            }
            if found.disposition == BreakDisposition::Repaired {
                line.push_str(" repaired");
            } else if found.state != BreakState::Open {
                write!(line, " {}", found.state).expect("a string takes everything");
            }
            lines.push(line);
        }
        for repair in self.new_repairs() {
            let mut line = match repair.action {
                RepairAction::SetStatus | RepairAction::Link | RepairAction::Redrive => {
                    format!("repair {} {}", repair.action, repair.intent_id)
                }
                RepairAction::RecordRefund | RepairAction::RecordDispute => format!(
                    "repair {} {} {}",
                    repair.action,
                    dash(&repair.to.parent_intent_id),
                    repair.to.money.map_or_else(String::new, show)
                ),
            };
            write!(
                line,
                " {} {} {}",
                repair.operation_id,
                repair.to.status,
                dash(&repair.to.processor_ref)
            )
            .expect("a string takes everything");
            if repair.state != RepairState::Applied {
                write!(line, " {}", repair.state).expect("a string takes everything");
            }
            lines.push(line);
        }
        for row in &outcome.pending {
            lines.push(format!(
                "pending {} {}",
                row.intent
                    .map_or("-", |row| self.intents.get(row).intent_id),
                row.operation.map_or("-", |row| self.operation_id(row))
            ));
        }
        for (row, verdict) in outcome.operations.iter().enumerate() {
            if let Disposition::Ignored(reason) = verdict {
                lines.push(format!("ignored {} {reason}", self.operation_id(row)));
            }
        }
        for (row, verdict) in outcome.intents.iter().enumerate() {
            if let Disposition::Ignored(reason) = verdict {
                lines.push(format!(
                    "ignored {} {reason}",
                    self.intents.get(row).intent_id
                ));
            }
        }
        lines.sort();
        lines
    }

    /// What is true of every verdict, whatever the rows.
    pub(crate) fn assert_sound(&self) {
        let outcome = &self.outcome;
        assert_eq!(outcome.violations, Vec::<String>::new());
        let mut matched = BTreeSet::new();
        for pair in &outcome.matches {
            let (operation, intent) = (
                self.operations.get(pair.operation),
                self.intents.get(pair.intent),
            );
            let id = (operation.account, operation.operation_id);
            assert!(matched.insert(id), "{id:?} is matched twice");
            assert_eq!(operation.currency, intent.currency, "{id:?}");
            assert_eq!(outcome.operations[pair.operation], Disposition::Matched);
            assert_eq!(outcome.intents[pair.intent], Disposition::Matched);
        }
        let breaks: Vec<_> = outcome
            .findings
            .iter()
            .filter(|finding| finding.found.disposition == BreakDisposition::Review)
            .collect();
        let is_subject = |row: usize| {
            let data = self.operations.get(row);
            breaks.iter().any(|finding| {
                (&*finding.found.operation_id, &*finding.found.account)
                    == (data.operation_id, data.account)
            })
        };
        let is_named = |row: usize| {
            let id = self.operation_id(row);
            outcome.findings.iter().any(|finding| {
                finding.found.operation_id == id || finding.also.iter().any(|other| other == id)
            })
        };
        // A break about one row of a pair takes the whole pair out of the matches.
        let mut links: BTreeSet<(usize, usize)> = outcome
            .links
            .iter()
            .map(|link| (link.operation, link.intent))
            .collect();
        for (row, link) in self.stored_links.iter().enumerate() {
            links.extend(link.map(|link| (row, link.intent)));
        }
        let is_intent_named = |row: usize| {
            let id = self.intents.get(row).intent_id;
            breaks
                .iter()
                .any(|finding| finding.found.intent_id == id || finding.found.why.contains(id))
                || links
                    .iter()
                    .any(|&(operation, intent)| intent == row && is_named(operation))
        };
        let paired: BTreeSet<usize> = outcome.matches.iter().map(|pair| pair.operation).collect();
        for (row, verdict) in outcome.operations.iter().enumerate() {
            let id = self.operation_id(row);
            match verdict {
                Disposition::Matched => {
                    assert!(paired.contains(&row), "{id} is matched with nothing");
                }
                Disposition::Unmatched => {
                    let is_beside_one = links
                        .iter()
                        .any(|&(operation, intent)| operation == row && is_intent_named(intent));
                    assert!(
                        is_named(row) || is_beside_one,
                        "{id} is unmatched, and no break names it: {:#?}",
                        self.text()
                    );
                }
                Disposition::Ignored(_) | Disposition::Pending => {
                    assert!(
                        !is_subject(row),
                        "{id} is {verdict:?} and in a break: {:#?}",
                        self.text()
                    );
                }
                Disposition::OutOfScope => {}
            }
        }
        let paired: BTreeSet<usize> = outcome.matches.iter().map(|pair| pair.intent).collect();
        for (row, verdict) in outcome.intents.iter().enumerate() {
            let id = self.intents.get(row).intent_id;
            match verdict {
                Disposition::Matched => {
                    assert!(paired.contains(&row), "{id} is matched with nothing");
                }
                Disposition::Unmatched => assert!(
                    is_intent_named(row),
                    "{id} is unmatched, and no break names it: {:#?}",
                    self.text()
                ),
                Disposition::Pending => assert!(
                    outcome
                        .pending
                        .iter()
                        .any(|pending| pending.intent == Some(row)),
                    "{id} is pending, and nobody says what for"
                ),
                Disposition::Ignored(_) | Disposition::OutOfScope => {}
            }
        }
        let mut principals = BTreeSet::new();
        let mut linked = BTreeSet::new();
        for link in &outcome.links {
            assert!(linked.insert(link.operation), "two links of one operation");
            if link.is_principal {
                assert!(
                    principals.insert(link.intent),
                    "two principals of one intent"
                );
            }
            if let Some(stored) = self.stored_links[link.operation] {
                assert_eq!(stored.intent, link.intent, "a stored link was dealt again");
            }
        }
        for finding in &outcome.findings {
            assert_eq!(finding.found.id.len(), 32);
            assert!(!finding.found.why.is_empty());
            assert!(finding.found.class.severity() >= Severity::Warning);
        }
        let ids: BTreeSet<&str> = outcome
            .findings
            .iter()
            .map(|finding| finding.found.id.as_str())
            .collect();
        assert_eq!(ids.len(), outcome.findings.len(), "one break twice");
        assert!(
            outcome.resolved.iter().all(|id| !ids.contains(id.as_str())),
            "resolved and found"
        );
        for (row, seen) in self.seen.iter().enumerate() {
            assert!(
                *seen != Seen::Repeat || outcome.operations[row] == Disposition::OutOfScope,
                "a repetition was judged"
            );
        }
    }
}

/// Expected lines, sorted as a verdict is.
pub(crate) fn expected(lines: &str) -> Vec<String> {
    let mut lines: Vec<String> = lines
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .filter(|line| !line.is_empty())
        .collect();
    lines.sort();
    lines
}

/// What must hold of any world: order does not matter, the sieve changes nothing, and a second and third run write
/// nothing, match what was repaired, and still show what needs a person.
pub(crate) fn assert_repeatable(name: &str, world: &World) {
    let first = world.run();
    first.assert_sound();
    assert_eq!(
        world.run_without_sieve().text(),
        first.text(),
        "{name}: the sieve changes the verdict"
    );
    for seed in 0..3 {
        let other = world.reordered(seed).run();
        other.assert_sound();
        assert_eq!(other.text(), first.text(), "{name}: order {seed} matters");
        let ids = |run: &Run| -> Vec<String> {
            run.outcome
                .repairs
                .iter()
                .map(|repair| repair.id.clone())
                .collect()
        };
        assert_eq!(
            ids(&other),
            ids(&first),
            "{name}: order {seed} changes repairs"
        );
        let evidence = |run: &Run| -> BTreeSet<(String, String, String)> {
            run.outcome
                .findings
                .iter()
                .map(|finding| {
                    let found = &finding.found;
                    (found.id.clone(), found.evidence.clone(), found.why.clone())
                })
                .collect()
        };
        assert_eq!(
            evidence(&other),
            evidence(&first),
            "{name}: order {seed} changes evidence"
        );
    }
    let mut world = world.clone();
    world.settle(&first);
    let second = world.run();
    second.assert_sound();
    assert_eq!(
        second.new_repairs(),
        Vec::<&Repair>::new(),
        "{name}: the second run writes again\nfirst: {:#?}\nsecond: {:#?}",
        first.text(),
        second.text()
    );
    assert_eq!(
        second.still_open(),
        first.still_open(),
        "{name}: the second run sees other breaks\nfirst: {:#?}\nsecond: {:#?}",
        first.text(),
        second.text()
    );
    for repair in &first.outcome.repairs {
        let is_sticky = first
            .outcome
            .findings
            .iter()
            .any(|finding| finding.found.id == repair.break_id && finding.found.is_sticky);
        let row = (0..world.intents.len())
            .find(|&row| world.intents.get(row).intent_id == repair.intent_id);
        // A payout with a residual is behind, and out of order all the same.
        let is_in_order = first.outcome.findings.iter().all(|finding| {
            finding.found.intent_id != repair.intent_id
                || finding.found.class != BreakClass::PayoutResidual
        });
        if let (Some(row), false, true, RepairState::Applied) =
            (row, is_sticky, is_in_order, repair.state)
        {
            let verdict = second.outcome.intents[row];
            assert!(
                matches!(verdict, Disposition::Matched | Disposition::OutOfScope),
                "{name}: {} was repaired and is not matched\nfirst: {:#?}\nsecond: {:#?}",
                repair.intent_id,
                first.text(),
                second.text()
            );
        }
    }
    world.settle(&second);
    let third = world.run();
    third.assert_sound();
    assert_eq!(third.text(), second.text(), "{name}: the third run differs");
}

/// Given these rows, this verdict; and the same again in any order and in any later run.
pub(crate) fn check(name: &str, rows: &str, verdict: &str) {
    let world = World::of(rows);
    assert_eq!(world.run().text(), expected(verdict), "{name}\n{rows}");
    assert_repeatable(name, &world);
}

/// Every row of a table, so that one failure does not hide the next.
pub(crate) fn check_all(table: &[(&str, &str, &str)]) {
    let failures: Vec<&str> = table
        .iter()
        .filter(|(name, rows, verdict)| {
            std::panic::catch_unwind(|| check(name, rows, verdict)).is_err()
        })
        .map(|(name, ..)| *name)
        .collect();
    assert!(failures.is_empty(), "failed: {failures:#?}");
}
