//! Two engines and a model in memory: whatever is done to a file, to a database and to the model, in whatever order, all
//! three answer the same.
//!
//! Operations are drawn at random from a small world, so that they meet: the same ids, versions that are not there any
//! more, two operations for one intent, decisions about what is settled. Every answer is compared, and after every step
//! everything that can be read.

use paysweep::exit::Failure;
use paysweep::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, CloseAs};
use paysweep::model::intent::{Intent, IntentKind, IntentStatus, Intents};
use paysweep::model::operation::{Operation, OperationKind, OperationStatus, Operations};
use paysweep::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use paysweep::model::text::Text;
use paysweep::model::verdict::Rule;
use paysweep::money::{Currency, Money};
use paysweep::store::contract::{
    BreakFilter, Claim, Commit, Decision, Generation, IntentChanges, IntentSelection, Link, Note,
    OperationSelection, RepairFilter, Retention, RunEnd, RunKey, RunStart, Store,
};
use paysweep::store::postgres::{Mode, PostgresStore};
use paysweep::store::sqlite::SqliteStore;
use paysweep::time::{Instant, Span};

use super::postgres::Database;
use super::store::{SCOPE, break_about, conflict, nothing, set_succeeded, watermark};
use super::store_model::ModelStore;

const SEQUENCES: u64 = 100;
const STEPS: u64 = 12;

const SOURCES: [&str; 2] = ["shop", "bank"];
const RUNS: [&str; 5] = ["r1", "r2", "r3", "r4", "r5"];
const ACCOUNTS: [&str; 2] = ["", "acct"];
const OPERATIONS: [&str; 6] = ["ch_1", "ch_2", "CH_1", "0012", "re_1", "po \u{1f}\u{1e}1"];
const INTENTS: [&str; 6] = ["A", "a", "B", "0012", "recorded-1", "é\u{308}"];
const BREAKS: [&str; 4] = ["b1", "b2", "b22", "c1"];
const REPAIRS: [&str; 4] = ["p1", "p2", "p22", "q1"];
const EVIDENCE: [&str; 3] = ["one", "two", "drei ' \" \\ {}"];
/// What texts may be that nobody looks into.
const TEXTS: [&str; 9] = [
    "",
    "A",
    "ch_1",
    "\\N",
    "null",
    "a\tb\nc",
    "😀",
    "a\u{1f}b\u{1e}c",
    "O'Neil \"x\" \\ $1",
];

/// Numbers that look random and are the same every time (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::try_from(self.below(all.len() as u64)).expect("a small number")]
    }

    fn some<T: Copy>(&mut self, all: &[T]) -> Vec<T> {
        all.iter().copied().filter(|_| self.one_in(3)).collect()
    }

    fn number(&mut self) -> i64 {
        let number = i64::try_from(self.below(400)).expect("a small number");
        if self.one_in(20) {
            i64::MIN + number
        } else {
            number - 100
        }
    }

    fn maybe_number(&mut self) -> Option<i64> {
        if self.one_in(2) {
            None
        } else {
            Some(self.number())
        }
    }
}

fn eur() -> Currency {
    Currency::parse("EUR").expect("a code")
}

fn operation(dice: &mut Dice, operation_id: &'static str) -> Operation<'static> {
    Operation {
        operation_id,
        account: dice.of(&ACCOUNTS),
        kind: dice.of(&[
            OperationKind::Charge,
            OperationKind::Refund,
            OperationKind::Payout,
        ]),
        status: dice.of(&[
            OperationStatus::Pending,
            OperationStatus::Succeeded,
            OperationStatus::Failed,
        ]),
        is_final: dice.one_in(2),
        amount_minor: dice.number(),
        currency: eur(),
        fee_minor: dice.maybe_number(),
        net_minor: dice.maybe_number(),
        settle_currency: eur(),
        occurred_at: Instant(dice.number()),
        reference: dice.of(&TEXTS),
        parent_id: dice.of(&TEXTS),
        object_id: dice.of(&TEXTS),
        payout_id: dice.of(&TEXTS),
        description: dice.of(&TEXTS),
        refund_total_minor: dice.maybe_number(),
        refunded_at: dice.maybe_number().map(Instant),
        invalid: dice.of(&TEXTS),
        line: 7,
        ..Operation::EMPTY
    }
}

const STATUSES: [IntentStatus; 4] = [
    IntentStatus::Created,
    IntentStatus::Pending,
    IntentStatus::Succeeded,
    IntentStatus::Failed,
];

fn intent(dice: &mut Dice, intent_id: &'static str) -> Intent<'static> {
    Intent {
        intent_id,
        idempotency_key: dice.of(&TEXTS),
        kind: dice.of(&[IntentKind::Charge, IntentKind::Refund]),
        amount_minor: dice.number(),
        currency: eur(),
        status: dice.of(&STATUSES),
        created_at: Instant(dice.number()),
        processor_ref: dice.of(&TEXTS),
        attempt: dice.of(&[None, Some(1), Some(2)]),
        parent_intent_id: dice.of(&TEXTS),
        reference: dice.of(&TEXTS),
        source: dice.of(&["", "shop"]),
        first_attempt_at: dice.maybe_number().map(Instant),
        written_amount: dice.of(&TEXTS),
        is_recorded: dice.one_in(3),
        version: dice.of(&[1, 2, 2, 3]),
        ..Intent::EMPTY
    }
}

fn a_break(dice: &mut Dice, id: &str) -> Break {
    let class = dice.of(&[
        BreakClass::StatusBehind,
        BreakClass::AmountMismatch,
        BreakClass::RepairConflict,
    ]);
    Break {
        source: dice.of(&SOURCES).to_owned(),
        account: dice.of(&ACCOUNTS).to_owned(),
        operation_id: dice.of(&["", "ch_1", "0012"]).to_owned(),
        intent_id: dice.of(&["", "A", "0012"]).to_owned(),
        money: dice.maybe_number().map(|minor| Money::new(minor, eur())),
        delta: dice.maybe_number().map(|minor| Money::new(minor, eur())),
        disposition: dice.of(&[BreakDisposition::Review, BreakDisposition::Repaired]),
        is_sticky: dice.one_in(3),
        ..break_about(id, class, dice.of(&EVIDENCE))
    }
}

fn a_repair(dice: &mut Dice, id: &str) -> Repair {
    let state = dice.of(&[RepairState::Proposed, RepairState::Applied]);
    let mut repair = Repair {
        break_id: dice.of(&BREAKS).to_owned(),
        source: dice.of(&SOURCES).to_owned(),
        intent_id: dice.of(&INTENTS).to_owned(),
        ..set_succeeded(id, dice.of(&[1, 1, 2]), state)
    };
    match dice.below(3) {
        0 => {}
        1 => repair.action = RepairAction::Link,
        _ => {
            repair.action = RepairAction::RecordRefund;
            repair.from = None;
            "recorded-1".clone_into(&mut repair.intent_id);
            "re_1".clone_into(&mut repair.operation_id);
            repair.to = RepairSide {
                kind: Some(IntentKind::Refund),
                status: IntentStatus::Succeeded,
                processor_ref: dice.of(&["", "re_1"]).to_owned(),
                parent_intent_id: "A".to_owned(),
                money: Some(Money::new(400, eur())),
            };
        }
    }
    repair
}

/// An import, drawn once and given to both.
struct Import {
    rows: Intents,
    imported_status: Vec<Option<IntentStatus>>,
    imported_processor_ref: Vec<Text>,
    new: Vec<usize>,
    changed: Vec<usize>,
    touched: Vec<usize>,
    superseded: Vec<(String, String)>,
    confirmed: Vec<String>,
}

impl Import {
    fn drawn(dice: &mut Dice) -> Import {
        let mut rows = Intents::default();
        let (mut new, mut changed, mut touched) = (Vec::new(), Vec::new(), Vec::new());
        for id in dice.some(&INTENTS) {
            let place = dice.below(6);
            match place {
                0 => changed.push(rows.len()),
                1 => touched.push(rows.len()),
                _ => new.push(rows.len()),
            }
            let mut row = intent(dice, id);
            if place > 1 {
                row.version = 1;
            }
            rows.push(&row);
        }
        let imported_status = rows
            .status
            .iter()
            .map(|_| Some(dice.of(&STATUSES)))
            .collect();
        Import {
            imported_status,
            imported_processor_ref: rows.processor_ref.clone(),
            superseded: if dice.one_in(4) {
                vec![("recorded-1".to_owned(), dice.of(&["A", "B"]).to_owned())]
            } else {
                Vec::new()
            },
            confirmed: dice
                .some(&INTENTS)
                .iter()
                .map(|&id| id.to_owned())
                .collect(),
            rows,
            new,
            changed,
            touched,
        }
    }

    fn changes(&self) -> IntentChanges<'_> {
        IntentChanges {
            rows: &self.rows,
            imported_status: &self.imported_status,
            imported_processor_ref: &self.imported_processor_ref,
            new: &self.new,
            changed: &self.changed,
            touched: &self.touched,
            superseded: &self.superseded,
            confirmed: &self.confirmed,
        }
    }
}

/// One thing that is done to a store.
enum Step {
    Begin(&'static str, Option<&'static str>, &'static str),
    Finish(&'static str, u8, bool),
    Claim(&'static str, &'static str, Span),
    Release(usize),
    Renew(usize),
    Commit(Box<Written>),
    Import(Box<Import>),
    SetWatermark(usize, i64, Box<Option<Break>>),
    Acknowledge(&'static str, i64),
    Close(&'static str, CloseAs),
    Decide(&'static str, Decision),
    Apply(&'static str),
    Revert(&'static str),
    Told(Vec<&'static str>, Vec<&'static str>),
    Prune(i64),
    Forget {
        as_of: i64,
        before: i64,
        floors: Vec<(String, Instant)>,
    },
}

struct Written {
    claim: usize,
    run_id: &'static str,
    expected_watermark: Option<Instant>,
    operations: Operations,
    new: Vec<usize>,
    updated: Vec<usize>,
    rejected: Vec<usize>,
    intents: Option<Import>,
    links: Vec<Link<'static>>,
    breaks: Vec<Break>,
    resolved: Vec<String>,
    repairs: Vec<Repair>,
    advance_to: Option<i64>,
}

impl Step {
    fn drawn(dice: &mut Dice) -> Step {
        match dice.below(22) {
            0 => Step::Begin(
                dice.of(&RUNS),
                dice.of(&[None, Some("night")]),
                dice.of(&["f", "f", "g"]),
            ),
            1 => Step::Finish(dice.of(&RUNS), dice.of(&[0, 1, 75]), dice.one_in(2)),
            2 => Step::Claim(
                dice.of(&SOURCES),
                dice.of(&RUNS),
                dice.of(&[Span::hours(1), Span::hours(-1)]),
            ),
            3 => Step::Release(draw(dice)),
            4 => Step::Renew(draw(dice)),
            5 | 6 => Step::Import(Box::new(Import::drawn(dice))),
            7 => {
                let gap = dice.one_in(2).then(|| a_break(dice, "b1"));
                Step::SetWatermark(draw(dice), dice.number(), Box::new(gap))
            }
            8 => Step::Acknowledge(dice.of(&["b1", "b2", "b", "x", "c"]), dice.number()),
            9 => Step::Close(
                dice.of(&["b1", "b2", "b", "c"]),
                dice.of(&[CloseAs::Accepted, CloseAs::FalseAlarm]),
            ),
            10 => Step::Decide(
                dice.of(&["p1", "p2", "p", "q"]),
                dice.of(&[
                    Decision::Approve,
                    Decision::Approve,
                    Decision::ApproveAsOther,
                    Decision::Reject,
                ]),
            ),
            11 if dice.one_in(3) => Step::Revert(dice.of(&["p1", "p2", "p22", "q"])),
            11 => Step::Apply(dice.of(&["p1", "p2", "p22", "q"])),
            12 => Step::Told(dice.some(&RUNS), dice.some(&SOURCES)),
            13 => Step::Prune(dice.number()),
            14 | 15 => Step::Forget {
                as_of: dice.below(40).cast_signed(),
                before: dice.of(&[i64::MAX, i64::MAX, 0]),
                floors: (dice.some(&SOURCES).into_iter())
                    .map(|source| {
                        (
                            source.to_owned(),
                            Instant(dice.of(&[i64::MAX, i64::MAX, 0])),
                        )
                    })
                    .collect(),
            },
            _ => Step::Commit(Box::new(Written::drawn(dice))),
        }
    }
}

/// Which of the claims; the newest more often than not.
fn draw(dice: &mut Dice) -> usize {
    usize::try_from(dice.below(3)).expect("a small number")
}

impl Written {
    fn drawn(dice: &mut Dice) -> Written {
        let mut operations = Operations::default();
        let (mut new, mut updated, mut rejected) = (Vec::new(), Vec::new(), Vec::new());
        for id in dice.some(&OPERATIONS) {
            match dice.below(5) {
                0 => updated.push(operations.len()),
                1 => rejected.push(operations.len()),
                _ => new.push(operations.len()),
            }
            let row = operation(dice, id);
            operations.push(&row);
        }
        let mut links = Vec::new();
        for index in 0..operations.len() {
            if dice.one_in(2) {
                links.push(Link {
                    operation: index,
                    intent_id: dice.of(&INTENTS),
                    rule: dice.of(&[Rule::Reference, Rule::Sum]),
                    is_principal: dice.one_in(2),
                });
            }
        }
        let mut breaks: Vec<Break> = Vec::new();
        let mut repairs: Vec<Repair> = Vec::new();
        for _ in 0..=dice.below(2) {
            for id in dice.some(&BREAKS) {
                breaks.push(a_break(dice, id));
            }
            for id in dice.some(&REPAIRS) {
                repairs.push(a_repair(dice, id));
            }
        }
        Written {
            claim: 0,
            run_id: dice.of(&RUNS),
            expected_watermark: None,
            operations,
            new,
            updated,
            rejected,
            intents: dice.one_in(2).then(|| Import::drawn(dice)),
            links,
            breaks,
            resolved: if dice.one_in(2) {
                dice.some(&BREAKS).iter().map(|&id| id.to_owned()).collect()
            } else {
                Vec::new()
            },
            repairs,
            advance_to: dice.one_in(2).then(|| dice.number()),
        }
    }
}

/// An answer in words. Of failures only the exit is compared: their sentences tell of clocks and engines.
fn told<T: std::fmt::Debug>(answer: Result<T, Failure>) -> String {
    match answer {
        Ok(answer) => format!("{answer:?}"),
        Err(failure) => format!("{:?}", failure.exit),
    }
}

const NOW: Instant = Instant(0);

/// Does a step, and says what the store answered.
async fn act(store: &mut impl Store, claims: &mut Vec<Claim>, step: &Step) -> String {
    let note = Note {
        reason: "because",
        by: "me",
        at: NOW,
    };
    let nobody = Claim {
        source: "shop".to_owned(),
        epoch: 99,
        run_id: "r1".to_owned(),
    };
    let held = |claims: &[Claim], back: usize| {
        let at = claims.len().checked_sub(back + 1);
        at.map_or(nobody.clone(), |at| claims[at].clone())
    };
    match step {
        Step::Begin(run_id, key, fingerprint) => {
            let start = RunStart {
                run_id,
                command: "run",
                sources: &["shop".to_owned()],
                as_of: NOW,
                started_at: Instant(i64::from(run_id.as_bytes()[1])),
                version: "0.1.0",
                config_hash: "c",
                run_key: key.map(|key| RunKey { key, fingerprint }),
                started_by: "kim",
                owner: run_id,
                ttl: Span::hours(1),
            };
            told(store.begin(&start).await)
        }
        Step::Finish(run_id, exit_code, is_completed) => {
            let end = RunEnd {
                run_id,
                finished_at: Instant(5),
                exit_code: *exit_code,
                outcome: "clean",
                report_json: Some("{\"a\": 1}"),
                is_completed: *is_completed,
            };
            told(store.finish_run(&end).await)
        }
        Step::Claim(source, run_id, ttl) => {
            let answer = store.claim(source, run_id, run_id, *ttl).await;
            if let Ok(claim) = &answer {
                claims.push(claim.clone());
            }
            told(answer)
        }
        Step::Release(back) => told(store.release(&held(claims, *back)).await),
        Step::Renew(back) => told(store.renew(&held(claims, *back), Span::hours(1)).await),
        Step::Import(import) => told(
            store
                .import_intents(SCOPE, "r1", NOW, &import.changes())
                .await,
        ),
        Step::SetWatermark(back, hi, gap) => {
            let claim = held(claims, *back);
            told(
                store
                    .set_watermark(&claim, &watermark(*hi), &note, gap.as_ref().as_ref())
                    .await,
            )
        }
        Step::Acknowledge(id, until) => told(store.acknowledge(id, Instant(*until), &note).await),
        Step::Close(id, how) => told(store.close(id, *how, &note).await),
        Step::Decide(id, decision) => told(store.decide(id, *decision, &note).await),
        Step::Apply(id) => told(store.apply(id, &note).await),
        Step::Revert(id) => told(store.revert(id, &note).await),
        Step::Told(runs, sources) => told(store.mark_reported(runs, sources, "r9").await),
        Step::Prune(before) => {
            let before = Instant(*before);
            let old = told(store.old_reports(before).await);
            let pruned = told(store.prune_runs(before, NOW, 3).await);
            format!("{old} {pruned}")
        }
        Step::Forget {
            as_of,
            before,
            floors,
        } => {
            let retention = Retention {
                as_of: Instant(*as_of),
                before: Instant(*before),
                floors,
                open_for: Span(3),
            };
            // Why one stays is for people; several reasons may hold.
            let lines = |found: Vec<Generation>| {
                let line = |it: &Generation| {
                    let stays = it.stays.is_some();
                    format!(
                        "{} {:?} {:?} {} {:?} {stays}",
                        it.number, it.opened_at, it.closed_at, it.operations, it.newest
                    )
                };
                found.iter().map(line).collect::<Vec<String>>()
            };
            let looked = told(store.generations(&retention).await.map(lines));
            let forgot = told(store.forget(&retention).await.map(lines));
            format!("{looked} {forgot}")
        }
        Step::Commit(written) => {
            // Mostly by whoever may: otherwise most commits would only be refused.
            let source = SOURCES[written.operations.len() % 2];
            let claim = match store
                .claim(source, written.run_id, written.run_id, Span::hours(-1))
                .await
            {
                Ok(claim) => {
                    claims.push(claim.clone());
                    claim
                }
                Err(_) => held(claims, written.claim),
            };
            let stored = store.watermark(&claim.source).await.expect("an answer");
            let to = written.advance_to.map(watermark);
            let commit = Commit {
                as_of: NOW,
                expected_watermark: stored
                    .map(|watermark| watermark.hi)
                    .or(written.expected_watermark),
                new_operations: &written.new,
                updated_operations: &written.updated,
                rejected_operations: &written.rejected,
                intents: written.intents.as_ref().map(Import::changes),
                links: &written.links,
                breaks: &written.breaks,
                resolved: &written.resolved,
                repairs: &written.repairs,
                on_conflict: &conflict,
                advance_to: to.as_ref(),
                ..nothing(written.run_id, &written.operations)
            };
            told(store.commit(&claim, &commit).await)
        }
    }
}

/// Everything that can be read, line by line.
async fn picture(store: &mut impl Store) -> Vec<String> {
    let mut lines = Vec::new();
    for source in SOURCES {
        for selection in [
            OperationSelection::All,
            OperationSelection::Since(NOW),
            OperationSelection::Keys(&["A", "ch_1", "0012", "😀", "x"]),
            OperationSelection::Keys(&[]),
            OperationSelection::Payouts(&["A", "re_1", "\\N"]),
        ] {
            let found = store
                .operations(source, selection)
                .await
                .expect("operations");
            let mut rows: Vec<String> = (0..found.rows.len())
                .map(|at| {
                    let intent = found.rows.text.get(found.linked_intent[at]);
                    format!(
                        "{:?} {intent:?} {:?}",
                        found.rows.get(at),
                        found.linked_rule[at]
                    )
                })
                .collect();
            rows.sort();
            lines.push(format!("{source} {selection:?}"));
            lines.extend(rows);
        }
        lines.push(told(store.watermark(source).await));
        lines.push(told(store.pin(source).await));
        lines.push(told(store.horizon(source).await));
        let mut claimed = store
            .claimed(source, &OPERATIONS)
            .await
            .expect("claimed operations");
        claimed.sort_by(|left, right| {
            (&left.operation_id, &left.account).cmp(&(&right.operation_id, &right.account))
        });
        lines.push(format!("{claimed:?}"));
        lines.push(told(store.counts(source, SCOPE).await));
        lines.push(told(store.freshness(source, NOW).await));
        lines.push(told(store.closes(&[source]).await));
        lines.push(told(store.open_breaks(&[source], NOW).await));
        for run_id in RUNS {
            lines.push(told(store.is_committed(run_id, source).await));
        }
    }
    for selection in [
        IntentSelection::All,
        IntentSelection::Since(NOW),
        IntentSelection::Keys(&["A", "ch_1", "0012", "😀", "x"]),
        IntentSelection::Ids(&["A", "a", "é\u{308}", "recorded-1"]),
    ] {
        let found = store
            .intents(SCOPE, "shop", selection)
            .await
            .expect("intents");
        let mut rows: Vec<String> = (0..found.rows.len())
            .map(|at| {
                let text = &found.rows.text;
                format!(
                    "{:?} {:?} {:?} {:?}",
                    found.rows.get(at),
                    found.imported_status[at],
                    text.get(found.imported_processor_ref[at]),
                    found.answer[at]
                )
            })
            .collect();
        rows.sort();
        lines.push(format!("{selection:?}"));
        lines.extend(rows);
    }
    for states in [
        &[][..],
        &[BreakState::Resolved],
        &[BreakState::Closed, BreakState::Open],
    ] {
        let filter = BreakFilter {
            sources: &[],
            states,
            class: None,
            id_prefix: "b",
            as_of: NOW,
        };
        lines.push(told(store.breaks(&filter).await));
    }
    for id in BREAKS {
        lines.push(told(store.break_detail(id, NOW).await));
    }
    lines.push(told(store.repairs(&RepairFilter::default()).await));
    for id in REPAIRS {
        lines.push(told(store.repair(id).await));
    }
    lines.push(told(store.known_sources().await));
    let mut settled = store.settled_intents(SCOPE).await.expect("intents");
    settled.sort();
    lines.push(format!("{settled:?}"));
    lines.push(told(store.carried(&SOURCES, NOW).await));
    lines.push(told(store.unconfirmed(SCOPE).await));
    lines.push(told(store.runs(3).await));
    for id in ["r1", "r2", "r", "latest", "x"] {
        lines.push(told(store.run(id).await));
    }
    lines
}

#[tokio::test]
async fn a_file_a_database_and_the_model_answer_the_same_to_whatever_is_done() {
    let (mut done, mut refused, mut sealed, mut forgotten) = (0, 0, 0, 0);
    for seed in 0..SEQUENCES {
        let mut dice = Dice(seed);
        let database = Database::migrated().await;
        let mut file = SqliteStore::in_memory().await.expect("a store");
        // Some of them behind a pooler.
        let mut postgres = if seed % 5 == 0 {
            let address = super::pooler::address_of(&database);
            PostgresStore::open(&address, Mode::ReadWrite)
                .await
                .expect("a store")
        } else {
            database.store().await
        };
        let mut model = ModelStore::default();
        let (mut claims, mut twins, mut ours) = (Vec::new(), Vec::new(), Vec::new());
        for number in 0..STEPS {
            let step = Step::drawn(&mut dice);
            let place = format!("seed {seed}, step {number}");
            let answer = act(&mut model, &mut ours, &step).await;
            assert_eq!(act(&mut file, &mut claims, &step).await, answer, "{place}");
            assert_eq!(
                act(&mut postgres, &mut twins, &step).await,
                answer,
                "{place}"
            );
            if let Step::Forget { .. } = step {
                forgotten += usize::from(answer.contains(" false"));
            }
            if let Step::Commit(_) | Step::Import(_) = step {
                if answer.starts_with(|first: char| first.is_ascii_digit())
                    || answer.starts_with("Receipt")
                {
                    done += 1;
                } else {
                    refused += 1;
                }
            }
            if number % 6 == 5 {
                let ours = picture(&mut model).await;
                for theirs in [picture(&mut file).await, picture(&mut postgres).await] {
                    for (ours, theirs) in ours.iter().zip(&theirs) {
                        assert_eq!(ours, theirs, "{place}");
                    }
                    assert_eq!(ours.len(), theirs.len(), "{place}");
                }
                // The same steps bear the same seal, whatever keeps them.
                let proof = file.prove_ledger().await.expect("a chain that holds");
                let theirs = postgres.prove_ledger().await.expect("a chain that holds");
                assert_eq!(proof, theirs, "{place}");
                let ours = model.ledger_head().await.expect("a head");
                assert_eq!(proof.head.entries, ours.entries, "{place}");
                sealed = sealed.max(proof.head.entries);
            }
        }
    }
    // A test that is only ever refused would prove little.
    assert!(
        done > 200 && refused > 20 && sealed > 5 && forgotten > 5,
        "{done} written, {refused} refused, {sealed} sealed at most, {forgotten} times forgotten"
    );
}
