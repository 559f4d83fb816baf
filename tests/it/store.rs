//! The store: what a commit promises, who may run, and what persons decide. Every promise is kept by every engine; each
//! test has a store of its own.

use std::path::Path;
use std::sync::LazyLock;

use paysweep::exit::{Exit, Failure};
use paysweep::meter::Meter;
use paysweep::model::answer::Answer;
use paysweep::model::breaks::{Break, BreakClass, BreakDisposition, BreakState, CloseAs};
use paysweep::model::intent::{Intent, IntentKind, IntentStatus, Intents};
use paysweep::model::operation::{Operation, OperationKind, OperationStatus, Operations};
use paysweep::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use paysweep::model::run::{Pin, Watermark};
use paysweep::model::verdict::Rule;
use paysweep::money::{Currency, Money};
use paysweep::store::contract::{
    Begun, BreakFilter, Claim, Commit, Decision, IntentChanges, IntentSelection, Link, Note,
    OldReports, OperationSelection, Outcome, Receipt, RepairFilter, RunEnd, RunKey, RunStart,
    Store,
};
use paysweep::store::sqlite::{Mode, SqliteStore};
use paysweep::time::{Instant, Span};

pub(crate) const SOURCE: &str = "shop";
pub(crate) const SCOPE: &str = "intents";
pub(crate) const TTL: Span = Span::hours(1);
pub(crate) const AS_OF: Instant = Instant(1_000_000_000);
/// An hour ago for the database: a lease that is over when it begins.
pub(crate) const EXPIRED: Span = Span::hours(-1);

pub(crate) fn eur() -> Currency {
    Currency::parse("EUR").expect("a code")
}

pub(crate) fn operation(operation_id: &'static str) -> Operation<'static> {
    Operation {
        operation_id,
        kind: OperationKind::Charge,
        status: OperationStatus::Succeeded,
        amount_minor: 1000,
        currency: eur(),
        settle_currency: eur(),
        fee_minor: Some(30),
        occurred_at: Instant(100),
        reference: "A",
        line: 2,
        ..Operation::EMPTY
    }
}

pub(crate) fn intent(intent_id: &'static str, status: IntentStatus) -> Intent<'static> {
    Intent {
        intent_id,
        amount_minor: 1000,
        currency: eur(),
        status,
        created_at: Instant(90),
        ..Intent::EMPTY
    }
}

pub(crate) fn operations(rows: &[Operation<'_>]) -> Operations {
    let mut batch = Operations::default();
    for row in rows {
        batch.push(row);
    }
    batch
}

pub(crate) fn intents(rows: &[Intent<'_>]) -> Intents {
    let mut batch = Intents::default();
    for row in rows {
        batch.push(row);
    }
    batch
}

pub(crate) fn break_about(id: &str, class: BreakClass, evidence: &str) -> Break {
    Break {
        id: id.to_owned(),
        class,
        source: SOURCE.to_owned(),
        account: String::new(),
        operation_id: "ch_1".to_owned(),
        intent_id: "A".to_owned(),
        money: Some(Money::new(1000, eur())),
        delta: None,
        why: format!("because of {evidence}"),
        evidence: evidence.to_owned(),
        state: BreakState::Open,
        disposition: BreakDisposition::Review,
        is_sticky: false,
        first_seen_run: String::new(),
        first_seen_at: AS_OF,
        acknowledged_until: None,
    }
}

pub(crate) fn set_succeeded(id: &str, planned_version: u32, state: RepairState) -> Repair {
    let side = |status, processor_ref: &str| RepairSide {
        kind: None,
        status,
        processor_ref: processor_ref.to_owned(),
        parent_intent_id: String::new(),
        money: None,
    };
    Repair {
        id: id.to_owned(),
        break_id: "b1".to_owned(),
        source: SOURCE.to_owned(),
        class: BreakClass::StatusBehind,
        action: RepairAction::SetStatus,
        intent_id: "A".to_owned(),
        operation_id: "ch_1".to_owned(),
        account: String::new(),
        from: Some(side(IntentStatus::Pending, "")),
        to: side(IntentStatus::Succeeded, "ch_1"),
        planned_version,
        state,
        occurred_at: Instant(100),
        note: String::new(),
        expires_at: None,
        idempotency_key: String::new(),
    }
}

pub(crate) fn record_refund(id: &str) -> Repair {
    Repair {
        action: RepairAction::RecordRefund,
        class: BreakClass::MissingLocal,
        intent_id: "recorded-1".to_owned(),
        operation_id: "re_1".to_owned(),
        from: None,
        to: RepairSide {
            kind: Some(IntentKind::Refund),
            status: IntentStatus::Succeeded,
            processor_ref: "re_1".to_owned(),
            parent_intent_id: "A".to_owned(),
            money: Some(Money::new(400, eur())),
        },
        ..set_succeeded(id, 0, RepairState::Applied)
    }
}

pub(crate) fn conflict(_: &Repair, _: &str) -> Break {
    break_about("c1", BreakClass::RepairConflict, "changed")
}

pub(crate) fn watermark(hi: i64) -> Watermark {
    Watermark {
        hi: Instant(hi),
        low: Instant(0),
        as_of: Instant(hi),
        lag: Span::ZERO,
        lookback: Span::hours(72),
        feed_hash: "f".to_owned(),
        series: [("batch_…".to_owned(), 7)].into(),
        config_hash: "c".to_owned(),
        run_id: "r1".to_owned(),
    }
}

static NOBODY_WAITS: LazyLock<Meter> = LazyLock::new(Meter::default);

/// A commit of nothing, to be filled in.
pub(crate) fn nothing<'a>(run_id: &'a str, operations: &'a Operations) -> Commit<'a> {
    Commit {
        run_id,
        scope: SCOPE,
        as_of: AS_OF,
        expected_watermark: None,
        operations,
        files: &[],
        new_operations: &[],
        updated_operations: &[],
        rejected_operations: &[],
        intents: None,
        links: &[],
        breaks: &[],
        resolved: &[],
        repairs: &[],
        on_conflict: &conflict,
        advance_to: None,
        pin: None,
        totals_json: "{}",
        meter: &NOBODY_WAITS,
    }
}

/// Every promise, on every engine.
macro_rules! on_every_engine {
    ($($promise:ident,)*) => {
        mod sqlite {
            use paysweep::store::sqlite::{Mode, SqliteStore};

            $(#[tokio::test]
            async fn $promise() {
                let folder = tempfile::tempdir().expect("a directory");
                let path = folder.path().join("paysweep.db");
                let store = SqliteStore::open(&path, Mode::ReadWriteCreate)
                    .await
                    .expect("a store");
                super::$promise(store).await;
            })*
        }

        mod model {
            use crate::store_model::ModelStore;

            $(#[tokio::test]
            async fn $promise() {
                super::$promise(ModelStore::default()).await;
            })*
        }

        mod postgres {
            use crate::postgres::Database;

            $(#[tokio::test]
            async fn $promise() {
                let database = Database::migrated().await;
                super::$promise(database.store().await).await;
            })*
        }
    };
}

on_every_engine! {
    what_was_committed_is_read_back_with_its_links,
    each_selection_finds_what_it_promises,
    intents_are_found_by_every_key_they_bear,
    a_second_commit_of_the_same_run_changes_nothing,
    a_source_is_locked_while_its_lease_lives_and_free_after_release,
    an_expired_lease_is_taken_over_and_its_holder_is_fenced,
    an_expired_lease_that_nobody_took_still_commits,
    a_run_key_has_four_outcomes,
    the_watermark_never_decreases_and_a_moved_one_refuses_the_commit,
    a_watermark_set_by_hand_goes_either_way_and_leaves_its_gap,
    a_pin_comes_with_a_commit_and_goes_by_hand,
    a_repair_writes_the_row_once_and_closes_its_break,
    a_sticky_break_stays_open_after_its_repair_until_a_person_closes_it,
    a_row_that_changed_under_its_repair_is_not_overwritten,
    a_proposal_waits_for_a_person,
    a_repair_that_was_turned_down_stays_so,
    a_recorded_row_is_linked_and_gives_way_to_the_imported_one,
    an_import_that_lost_a_race_writes_nothing,
    two_operations_cannot_both_satisfy_one_intent,
    changed_operations_replace_or_stand_as_evidence,
    acknowledgements_and_closes_bind_to_the_evidence,
    a_prefix_must_stand_for_one_break,
    a_break_seen_in_order_is_resolved_and_a_new_opening_is_new,
    a_run_that_was_not_reported_is_carried_until_it_is,
    freshness_tells_the_last_clean_run,
}

pub(crate) async fn claim(store: &mut impl Store, run_id: &str) -> Claim {
    store
        .claim(SOURCE, run_id, run_id, TTL)
        .await
        .expect("a free source")
}

/// Claims, commits and releases.
pub(crate) async fn commit(store: &mut impl Store, commit: &Commit<'_>) -> Receipt {
    let held = claim(store, commit.run_id).await;
    let receipt = store.commit(&held, commit).await.expect("a commit");
    store.release(&held).await.expect("a release");
    receipt
}

pub(crate) async fn import(store: &mut impl Store, rows: &[Intent<'_>]) {
    let rows = intents(rows);
    let all: Vec<usize> = (0..rows.len()).collect();
    let imported: Vec<_> = rows.status.iter().copied().map(Some).collect();
    let changes = IntentChanges {
        rows: &rows,
        imported_status: &imported,
        imported_processor_ref: &rows.processor_ref,
        new: &all,
        changed: &[],
        touched: &[],
        superseded: &[],
        confirmed: &[],
    };
    store
        .import_intents(SCOPE, "", AS_OF, &changes)
        .await
        .expect("an import");
}

async fn only_intent(store: &mut impl Store, id: &str) -> (IntentStatus, String, u32) {
    let found = store
        .intents(SCOPE, SOURCE, IntentSelection::Ids(&[id]))
        .await
        .expect("intents");
    assert_eq!(found.rows.len(), 1, "{id}");
    let row = found.rows.get(0);
    (row.status, row.processor_ref.to_owned(), row.version)
}

async fn open_breaks(store: &mut impl Store) -> Vec<(String, BreakState)> {
    store
        .open_breaks(&[SOURCE], AS_OF)
        .await
        .expect("breaks")
        .into_iter()
        .map(|item| (item.id, item.state))
        .collect()
}

pub(crate) fn exit_of<T: std::fmt::Debug>(result: Result<T, Failure>) -> Exit {
    result.expect_err("a failure").exit
}

pub(crate) fn note(reason: &str) -> Note<'_> {
    Note {
        reason,
        by: "me",
        at: AS_OF,
    }
}

async fn what_was_committed_is_read_back_with_its_links(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Succeeded)]).await;
    let odd = Operation {
        description: "a\u{1f}b\u{1e}c",
        ..operation("ch_2")
    };
    let rows = operations(&[operation("ch_1"), odd]);
    let links = [Link {
        operation: 0,
        intent_id: "A",
        rule: Rule::Reference,
        is_principal: true,
    }];
    let written = Commit {
        new_operations: &[0, 1],
        links: &links,
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;

    let found = store
        .operations(SOURCE, OperationSelection::All)
        .await
        .expect("operations");
    let got: Vec<Operation<'_>> = found.rows.iter().collect();
    assert_eq!(got, [operation("ch_1"), odd]);
    assert_eq!(found.linked_rule, [Some(Rule::Reference), None]);
    assert_eq!(found.rows.text.get(found.linked_intent[0]), "A");
    let found = store
        .intents(SCOPE, SOURCE, IntentSelection::All)
        .await
        .expect("intents");
    assert_eq!(found.rows.get(0), intent("A", IntentStatus::Succeeded));
    assert_eq!(found.answer[0], Answer::Here);
}

async fn each_selection_finds_what_it_promises(mut store: impl Store) {
    let old = Operation {
        occurred_at: Instant(1),
        reference: "",
        ..operation("old")
    };
    let rows = operations(&[
        Operation {
            object_id: "pi_1",
            ..old
        },
        Operation {
            operation_id: "pending",
            status: OperationStatus::Pending,
            ..old
        },
        Operation {
            operation_id: "part",
            parent_id: "ch_9",
            payout_id: "po_1",
            ..old
        },
        Operation {
            operation_id: "ch_1",
            ..old
        },
        operation("recent"),
        Operation {
            operation_id: "linked",
            ..old
        },
    ]);
    let links = [Link {
        operation: 5,
        intent_id: "A",
        rule: Rule::Sum,
        is_principal: false,
    }];
    let written = Commit {
        new_operations: &[0, 1, 2, 3, 4, 5],
        links: &links,
        breaks: &[break_about("b1", BreakClass::DuplicateCharge, "e")],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let table: [(OperationSelection<'_>, &[&str]); 7] = [
        (
            OperationSelection::Since(Instant(50)),
            &["pending", "ch_1", "recent"],
        ),
        (OperationSelection::Keys(&["pi_1", "old"]), &["old"]),
        (OperationSelection::Keys(&["ch_9"]), &["part"]),
        (OperationSelection::Keys(&["A"]), &["recent", "linked"]),
        (OperationSelection::Keys(&["", "no"]), &[]),
        (OperationSelection::Payouts(&["po_1"]), &["part"]),
        (
            OperationSelection::All,
            &["old", "pending", "part", "ch_1", "recent", "linked"],
        ),
    ];
    for (selection, want) in table {
        let found = store
            .operations(SOURCE, selection)
            .await
            .expect("operations");
        let mut got: Vec<&str> = found.rows.iter().map(|row| row.operation_id).collect();
        got.sort_unstable();
        let mut want = want.to_vec();
        want.sort_unstable();
        assert_eq!(got, want, "{selection:?}");
    }
    assert_eq!(
        store
            .operations("other", OperationSelection::All)
            .await
            .expect("operations")
            .rows
            .len(),
        0
    );
}

async fn intents_are_found_by_every_key_they_bear(mut store: impl Store) {
    let row = |intent_id, status| Intent {
        created_at: Instant(1),
        ..intent(intent_id, status)
    };
    let done = IntentStatus::Succeeded;
    import(
        &mut store,
        &[
            Intent {
                idempotency_key: "key",
                ..row("A", done)
            },
            Intent {
                reference: "ref",
                ..row("B", done)
            },
            Intent {
                processor_ref: "ch_1",
                ..row("C", done)
            },
            Intent {
                parent_intent_id: "A",
                ..row("D", done)
            },
            row("E", IntentStatus::Pending),
            intent("F", done),
        ],
    )
    .await;
    // Money that is claimed and that nothing answers is asked about until something does.
    let rows = operations(&[operation("ch_1"), operation("ch_2"), operation("ch_3")]);
    let links = [(0, "A", true), (1, "C", false), (2, "D", true)].map(
        |(operation, intent_id, is_principal)| Link {
            operation,
            intent_id,
            rule: Rule::Sum,
            is_principal,
        },
    );
    let written = Commit {
        new_operations: &[0, 1, 2],
        links: &links,
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let table: [(IntentSelection<'_>, &[&str]); 6] = [
        (IntentSelection::Keys(&["key"]), &["A"]),
        (IntentSelection::Keys(&["ref", "ch_1"]), &["B", "C"]),
        (IntentSelection::Keys(&["A"]), &["A", "D"]),
        (IntentSelection::Ids(&["A"]), &["A"]),
        (IntentSelection::Since(Instant(50)), &["B", "E", "F"]),
        (IntentSelection::Keys(&[""]), &[]),
    ];
    for (selection, want) in table {
        let found = store
            .intents(SCOPE, SOURCE, selection)
            .await
            .expect("intents");
        let got: Vec<&str> = found.rows.iter().map(|row| row.intent_id).collect();
        assert_eq!(got, want, "{selection:?}");
    }
}

async fn a_second_commit_of_the_same_run_changes_nothing(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = operations(&[operation("ch_1")]);
    let to = watermark(100);
    let written = Commit {
        new_operations: &[0],
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        advance_to: Some(&to),
        ..nothing("r1", &rows)
    };
    let held = claim(&mut store, "r1").await;
    let first = store.commit(&held, &written).await.expect("a commit");
    assert_eq!(first.outcome, Outcome::Committed);
    let again = store.commit(&held, &written).await.expect("no failure");
    assert_eq!(again.outcome, Outcome::AlreadyCommitted);
    assert_eq!(again.repairs_written, ["p1"]);
    assert_eq!(only_intent(&mut store, "A").await.2, 2);
    assert!(store.is_committed("r1", SOURCE).await.expect("an answer"));
    assert!(!store.is_committed("r2", SOURCE).await.expect("an answer"));
}

async fn a_source_is_locked_while_its_lease_lives_and_free_after_release(mut store: impl Store) {
    let held = claim(&mut store, "r1").await;
    let failure = store
        .claim(SOURCE, "r2", "other", TTL)
        .await
        .expect_err("a live lease");
    assert_eq!(failure.exit, Exit::Locked);
    assert!(failure.what.contains("run r1 until 2"), "{}", failure.what);
    store.release(&held).await.expect("a release");
    assert_eq!(claim(&mut store, "r2").await.epoch, held.epoch + 1);
}

async fn an_expired_lease_is_taken_over_and_its_holder_is_fenced(mut store: impl Store) {
    let slept = store
        .claim(SOURCE, "r1", "sleeper", EXPIRED)
        .await
        .expect("a free source");
    let rows = operations(&[operation("ch_1")]);
    let thief = claim(&mut store, "r2").await;
    assert_eq!(thief.epoch, slept.epoch + 1);
    let written = Commit {
        new_operations: &[0],
        ..nothing("r1", &rows)
    };
    assert_eq!(exit_of(store.commit(&slept, &written).await), Exit::Locked);
    assert_eq!(exit_of(store.renew(&slept, TTL).await), Exit::Locked);
    assert_eq!(
        store
            .counts(SOURCE, SCOPE)
            .await
            .expect("counts")
            .operations,
        0
    );
    store.release(&slept).await.expect("nothing to release");
    assert_eq!(
        exit_of(store.claim(SOURCE, "r3", "third", TTL).await),
        Exit::Locked
    );
}

async fn an_expired_lease_that_nobody_took_still_commits(mut store: impl Store) {
    let slept = store
        .claim(SOURCE, "r1", "sleeper", EXPIRED)
        .await
        .expect("a free source");
    let rows = operations(&[operation("ch_1")]);
    let receipt = store
        .commit(&slept, &nothing("r1", &rows))
        .await
        .expect("a commit");
    assert_eq!(receipt.outcome, Outcome::Committed);
}

async fn a_run_key_has_four_outcomes(mut store: impl Store) {
    let sources = [SOURCE.to_owned()];
    let start = |run_id: &'static str, fingerprint: &'static str, ttl| RunStart {
        run_id,
        command: "run",
        sources: &sources,
        as_of: AS_OF,
        started_at: AS_OF,
        version: "0.1.0",
        config_hash: "c",
        run_key: Some(RunKey {
            key: "night",
            fingerprint,
        }),
        started_by: "kim",
        owner: run_id,
        ttl,
    };
    let first = store.begin(&start("r1", "f", TTL)).await;
    assert_eq!(first.expect("a new key"), Begun::New);
    // In flight.
    assert_eq!(
        exit_of(store.begin(&start("r2", "f", TTL)).await),
        Exit::Locked
    );
    // Another run under the same key.
    assert_eq!(
        exit_of(store.begin(&start("r2", "g", TTL)).await),
        Exit::Rejected
    );
    // A run that could not finish leaves the key free.
    let mut end = RunEnd {
        run_id: "r1",
        finished_at: AS_OF,
        exit_code: 75,
        outcome: "temporary",
        report_json: None,
        is_completed: false,
    };
    store.finish_run(&end).await.expect("an end");
    let expired = store.begin(&start("r3", "f", EXPIRED)).await;
    assert_eq!(expired.expect("a free key"), Begun::New);
    // An expired one is taken over.
    let taken = store.begin(&start("r4", "f", TTL)).await;
    assert_eq!(taken.expect("an expired key"), Begun::New);
    // A completed one gives its outcome again.
    end = RunEnd {
        run_id: "r4",
        exit_code: 1,
        outcome: "review",
        report_json: Some("{}"),
        is_completed: true,
        ..end
    };
    store.finish_run(&end).await.expect("an end");
    assert_eq!(
        store
            .begin(&start("r5", "f", TTL))
            .await
            .expect("an outcome"),
        Begun::Done {
            run_id: "r4".to_owned(),
            exit_code: 1,
            report_json: Some("{}".to_owned()),
        }
    );
    let run = store.run("r4").await.expect("a run");
    assert_eq!((run.exit_code, run.outcome.as_str()), (Some(1), "review"));
    assert_eq!(run.sources, sources);
    assert_eq!(exit_of(store.run("r").await), Exit::Rejected);
    assert_eq!(exit_of(store.run("x").await), Exit::Rejected);
}

async fn the_watermark_never_decreases_and_a_moved_one_refuses_the_commit(mut store: impl Store) {
    let rows = Operations::default();
    let (far, near) = (watermark(200), watermark(100));
    let first = Commit {
        advance_to: Some(&far),
        ..nothing("r1", &rows)
    };
    commit(&mut store, &first).await;
    let second = Commit {
        expected_watermark: Some(Instant(200)),
        advance_to: Some(&near),
        ..nothing("r2", &rows)
    };
    commit(&mut store, &second).await;
    let now = store.watermark(SOURCE).await.expect("an answer");
    assert_eq!(now.map(|watermark| watermark.hi), Some(Instant(200)));
    let held = claim(&mut store, "r3").await;
    let stale = Commit {
        expected_watermark: Some(Instant(100)),
        ..nothing("r3", &rows)
    };
    assert_eq!(exit_of(store.commit(&held, &stale).await), Exit::Locked);
}

async fn a_watermark_set_by_hand_goes_either_way_and_leaves_its_gap(mut store: impl Store) {
    let held = claim(&mut store, "r1").await;
    let gap = break_about("gap", BreakClass::CoverageGap, "hole");
    store
        .set_watermark(&held, &watermark(300), &note("export lost"), Some(&gap))
        .await
        .expect("a watermark");
    store
        .set_watermark(&held, &watermark(50), &note("rewind"), None)
        .await
        .expect("a watermark");
    let now = store.watermark(SOURCE).await.expect("an answer");
    assert_eq!(now, Some(watermark(50)));
    assert_eq!(
        open_breaks(&mut store).await,
        [("gap".to_owned(), BreakState::Open)]
    );
}

async fn a_pin_comes_with_a_commit_and_goes_by_hand(mut store: impl Store) {
    let rows = Operations::default();
    let pin = |account: &str| Pin {
        account: account.to_owned(),
        declared: "main".to_owned(),
        mode: "live".to_owned(),
    };
    assert_eq!(store.pin(SOURCE).await.expect("an answer"), None);
    for (run, written, known) in [
        ("r1", Some(pin("")), Some(pin(""))),
        ("r2", Some(pin("acct_1")), Some(pin("acct_1"))),
        ("r3", None, Some(pin("acct_1"))),
    ] {
        let commit_with = Commit {
            pin: written.as_ref(),
            ..nothing(run, &rows)
        };
        commit(&mut store, &commit_with).await;
        assert_eq!(store.pin(SOURCE).await.expect("an answer"), known, "{run}");
    }
    let held = claim(&mut store, "r4").await;
    for let_go in [Some(pin("acct_1")), None] {
        let answer = store.unpin(&held, &note("another account")).await;
        assert_eq!(answer.expect("an answer"), let_go);
        assert_eq!(store.pin(SOURCE).await.expect("an answer"), None);
    }
    let mut other = held.clone();
    other.epoch += 1;
    let fenced = store.unpin(&other, &note("too late")).await;
    assert_eq!(fenced.expect_err("fenced").exit, Exit::Locked);
}

async fn a_repair_writes_the_row_once_and_closes_its_break(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = operations(&[operation("ch_1")]);
    let behind = Break {
        disposition: BreakDisposition::Repaired,
        ..break_about("b1", BreakClass::StatusBehind, "e")
    };
    let written = Commit {
        breaks: std::slice::from_ref(&behind),
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        ..nothing("r1", &rows)
    };
    let receipt = commit(&mut store, &written).await;
    assert_eq!(receipt.repairs_written, ["p1"]);
    assert_eq!(
        only_intent(&mut store, "A").await,
        (IntentStatus::Succeeded, "ch_1".to_owned(), 2)
    );
    assert_eq!(open_breaks(&mut store).await, []);
    // The same repair again is held back: the ledger knows it.
    let again = Commit {
        run_id: "r2",
        ..written
    };
    let receipt = commit(&mut store, &again).await;
    assert_eq!(receipt.held, ["p1"]);
    assert_eq!(only_intent(&mut store, "A").await.2, 2);
    let unconfirmed = store.unconfirmed(SCOPE).await.expect("an answer");
    assert_eq!((unconfirmed.count, unconfirmed.oldest_at), (1, Some(AS_OF)));
}

async fn a_sticky_break_stays_open_after_its_repair_until_a_person_closes_it(
    mut store: impl Store,
) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = Operations::default();
    let reversed = Break {
        disposition: BreakDisposition::Repaired,
        is_sticky: true,
        ..break_about("b1", BreakClass::StatusReversed, "e")
    };
    let written = Commit {
        breaks: std::slice::from_ref(&reversed),
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let open = store.open_breaks(&[SOURCE], AS_OF).await.expect("breaks");
    assert_eq!(open[0].state, BreakState::Open);
    assert_eq!(open[0].disposition, BreakDisposition::Repaired);
    let closed = store
        .close("b1", CloseAs::FixedElsewhere, &note("told the customer"))
        .await
        .expect("a close");
    assert_eq!(closed.state, BreakState::Closed);
}

async fn a_row_that_changed_under_its_repair_is_not_overwritten(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Failed)]).await;
    let rows = Operations::default();
    let behind = Break {
        disposition: BreakDisposition::Repaired,
        ..break_about("b1", BreakClass::StatusBehind, "e")
    };
    let written = Commit {
        breaks: std::slice::from_ref(&behind),
        repairs: &[set_succeeded("p1", 7, RepairState::Applied)],
        ..nothing("r1", &rows)
    };
    let receipt = commit(&mut store, &written).await;
    assert_eq!(receipt.conflicts, ["p1"]);
    assert_eq!(receipt.conflict_breaks.len(), 1);
    assert_eq!(only_intent(&mut store, "A").await.0, IntentStatus::Failed);
    assert_eq!(
        open_breaks(&mut store).await,
        [
            ("b1".to_owned(), BreakState::Open),
            ("c1".to_owned(), BreakState::Open)
        ]
    );
    let repair = store.repair("p1").await.expect("a repair");
    assert_eq!(repair.item.state, RepairState::Failed);
}

async fn a_proposal_waits_for_a_person(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = Operations::default();
    let written = Commit {
        breaks: &[break_about("b1", BreakClass::StatusBehind, "e")],
        repairs: &[set_succeeded("p1", 1, RepairState::Proposed)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    assert_eq!(only_intent(&mut store, "A").await.0, IntentStatus::Pending);
    assert_eq!(
        exit_of(store.apply("p1", &note("now")).await),
        Exit::Rejected
    );
    store
        .decide("p", Decision::Approve, &note("seen"))
        .await
        .expect("a decision");
    let applied = store.apply("p1", &note("now")).await.expect("a repair");
    assert_eq!(applied.item.state, RepairState::Applied);
    let steps: Vec<&str> = applied
        .events
        .iter()
        .map(|event| event.what.as_str())
        .collect();
    assert_eq!(steps, ["proposed", "approved", "applied"]);
    assert_eq!(applied.evidence, "e");
    assert_eq!(
        only_intent(&mut store, "A").await.0,
        IntentStatus::Succeeded
    );
    assert_eq!(
        exit_of(store.decide("p1", Decision::Reject, &note("late")).await),
        Exit::Rejected
    );
}

async fn a_repair_that_was_turned_down_stays_so(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = Operations::default();
    let proposed = Commit {
        repairs: &[set_succeeded("p1", 1, RepairState::Proposed)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &proposed).await;
    store
        .decide("p1", Decision::Reject, &note("no"))
        .await
        .expect("a decision");
    let auto = Commit {
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        ..nothing("r2", &rows)
    };
    assert_eq!(commit(&mut store, &auto).await.held, ["p1"]);
    assert_eq!(only_intent(&mut store, "A").await.0, IntentStatus::Pending);
}

async fn a_recorded_row_is_linked_and_gives_way_to_the_imported_one(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Succeeded)]).await;
    let rows = operations(&[operation("re_1")]);
    let written = Commit {
        new_operations: &[0],
        repairs: &[record_refund("p1")],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let found = store
        .intents(SCOPE, SOURCE, IntentSelection::Ids(&["recorded-1"]))
        .await
        .expect("intents");
    let row = found.rows.get(0);
    assert_eq!((row.amount_minor, row.is_recorded), (400, true));
    assert_eq!(found.imported_status, [None]);
    assert_eq!(found.answer[0], Answer::Here);

    let imported = intents(&[Intent {
        kind: IntentKind::Refund,
        ..intent("R-7", IntentStatus::Succeeded)
    }]);
    let changes = IntentChanges {
        rows: &imported,
        imported_status: &[Some(IntentStatus::Succeeded)],
        imported_processor_ref: &imported.processor_ref,
        new: &[0],
        changed: &[],
        touched: &[],
        superseded: &[("recorded-1".to_owned(), "R-7".to_owned())],
        confirmed: &[],
    };
    store
        .import_intents(SCOPE, "r2", AS_OF, &changes)
        .await
        .expect("an import");
    let found = store
        .intents(SCOPE, SOURCE, IntentSelection::All)
        .await
        .expect("intents");
    let ids: Vec<&str> = found.rows.iter().map(|row| row.intent_id).collect();
    assert_eq!(ids, ["A", "R-7"]);
    assert_eq!(found.answer[1], Answer::Here);
    let operations = store
        .operations(SOURCE, OperationSelection::All)
        .await
        .expect("operations");
    assert_eq!(operations.rows.text.get(operations.linked_intent[0]), "R-7");
    let repair = store.repair("p1").await.expect("a repair");
    assert_eq!(repair.item.state, RepairState::Confirmed);
    assert_eq!(store.unconfirmed(SCOPE).await.expect("an answer").count, 0);
}

async fn an_import_that_lost_a_race_writes_nothing(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = intents(&[
        intent("B", IntentStatus::Pending),
        Intent {
            version: 5,
            ..intent("A", IntentStatus::Failed)
        },
    ]);
    let changes = IntentChanges {
        rows: &rows,
        imported_status: &[Some(IntentStatus::Pending), Some(IntentStatus::Failed)],
        imported_processor_ref: &rows.processor_ref,
        new: &[0],
        changed: &[1],
        touched: &[],
        superseded: &[],
        confirmed: &[],
    };
    let result = store.import_intents(SCOPE, "", AS_OF, &changes).await;
    assert_eq!(exit_of(result), Exit::Temporary);
    assert_eq!(
        store.counts(SOURCE, SCOPE).await.expect("counts").intents,
        1
    );
}

async fn two_operations_cannot_both_satisfy_one_intent(mut store: impl Store) {
    let rows = operations(&[operation("ch_1"), operation("ch_2")]);
    let link = |operation| Link {
        operation,
        intent_id: "A",
        rule: Rule::Reference,
        is_principal: true,
    };
    let first = Commit {
        new_operations: &[0],
        links: &[link(0)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &first).await;
    // The stored link may come again.
    let again = Commit {
        run_id: "r2",
        ..first
    };
    commit(&mut store, &again).await;
    let second = Commit {
        new_operations: &[1],
        links: &[link(1)],
        ..nothing("r3", &rows)
    };
    let held = claim(&mut store, "r3").await;
    assert_eq!(exit_of(store.commit(&held, &second).await), Exit::Temporary);
    assert_eq!(
        store
            .counts(SOURCE, SCOPE)
            .await
            .expect("counts")
            .operations,
        1
    );
}

async fn changed_operations_replace_or_stand_as_evidence(mut store: impl Store) {
    let first = operations(&[operation("ch_1"), operation("ch_2")]);
    let written = Commit {
        new_operations: &[0, 1],
        ..nothing("r1", &first)
    };
    commit(&mut store, &written).await;
    let changed = operations(&[
        Operation {
            status: OperationStatus::Failed,
            ..operation("ch_1")
        },
        Operation {
            amount_minor: 9,
            ..operation("ch_2")
        },
    ]);
    for run_id in ["r2", "r3"] {
        let written = Commit {
            updated_operations: &[0],
            rejected_operations: &[1],
            ..nothing(run_id, &changed)
        };
        commit(&mut store, &written).await;
    }
    let found = store
        .operations(SOURCE, OperationSelection::All)
        .await
        .expect("operations");
    assert_eq!(found.rows.status[0], OperationStatus::Failed);
    assert_eq!(found.rows.amount_minor[1], 1000);
}

async fn acknowledgements_and_closes_bind_to_the_evidence<S: Store>(mut store: S) {
    let rows = Operations::default();
    let seen = |run_id, evidence| {
        let item = break_about("b1", BreakClass::DuplicateCharge, evidence);
        (run_id, item)
    };
    let put = async |store: &mut S, (run_id, item): (&str, Break)| {
        let written = Commit {
            breaks: std::slice::from_ref(&item),
            ..nothing(run_id, &rows)
        };
        commit(store, &written).await;
    };
    put(&mut store, seen("r1", "one")).await;
    let until = AS_OF.plus(Span::hours(24));
    let item = store
        .acknowledge("b", until, &note("asked"))
        .await
        .expect("an acknowledgement");
    assert_eq!(item.state, BreakState::Acknowledged);
    let state = async |store: &mut S, as_of| {
        let found = store.open_breaks(&[SOURCE], as_of).await.expect("breaks");
        (found[0].state, found[0].first_seen_run.clone())
    };
    let (open, acknowledged, closed) = (
        BreakState::Open,
        BreakState::Acknowledged,
        BreakState::Closed,
    );
    // The same evidence is still acknowledged, until the date.
    put(&mut store, seen("r2", "one")).await;
    assert_eq!(
        state(&mut store, AS_OF).await,
        (acknowledged, "r1".to_owned())
    );
    assert_eq!(state(&mut store, until).await.0, open);
    // Other evidence opens it.
    put(&mut store, seen("r3", "two")).await;
    assert_eq!(state(&mut store, AS_OF).await, (open, "r1".to_owned()));
    store
        .close("b1", CloseAs::Accepted, &note("fine"))
        .await
        .expect("a close");
    assert_eq!(state(&mut store, AS_OF).await.0, closed);
    assert_eq!(
        store.closes(&[SOURCE]).await.expect("closes"),
        [("b1".to_owned(), CloseAs::Accepted)]
    );
    assert_eq!(
        exit_of(store.close("b1", CloseAs::Accepted, &note("again")).await),
        Exit::Rejected
    );
    put(&mut store, seen("r4", "three")).await;
    assert_eq!(state(&mut store, AS_OF).await.0, open);
    let detail = store.break_detail("b1", AS_OF).await.expect("a break");
    let told: Vec<&str> = detail
        .events
        .iter()
        .map(|event| event.what.as_str())
        .collect();
    assert_eq!(told, ["acknowledged", "changed", "closed", "changed"]);
    assert_eq!(detail.events[2].closed_as, Some(CloseAs::Accepted));
}

async fn a_prefix_must_stand_for_one_break(mut store: impl Store) {
    let rows = Operations::default();
    let both = [
        break_about("ab1", BreakClass::DuplicateCharge, "e"),
        break_about("ab2", BreakClass::AmountMismatch, "e"),
    ];
    let written = Commit {
        breaks: &both,
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    for prefix in ["ab", "x"] {
        let result = store.close(prefix, CloseAs::Accepted, &note("why")).await;
        assert_eq!(exit_of(result), Exit::Rejected, "{prefix}");
    }
    let filter = BreakFilter {
        sources: &[],
        states: &[],
        class: Some(BreakClass::AmountMismatch),
        id_prefix: "ab",
        as_of: AS_OF,
    };
    let found = store.breaks(&filter).await.expect("breaks");
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].money, Some(Money::new(1000, eur())));
}

async fn a_break_seen_in_order_is_resolved_and_a_new_opening_is_new(mut store: impl Store) {
    let rows = Operations::default();
    let item = break_about("b1", BreakClass::AmountMismatch, "e");
    let seen = Commit {
        breaks: std::slice::from_ref(&item),
        repairs: &[set_succeeded("p1", 1, RepairState::Proposed)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &seen).await;
    let resolved = ["b1".to_owned()];
    let in_order = Commit {
        resolved: &resolved,
        ..nothing("r2", &rows)
    };
    commit(&mut store, &in_order).await;
    assert_eq!(open_breaks(&mut store).await, []);
    let repair = store.repair("p1").await.expect("a repair");
    assert_eq!(repair.item.state, RepairState::Superseded);
    let again = Commit {
        run_id: "r3",
        repairs: &[],
        ..seen
    };
    commit(&mut store, &again).await;
    let detail = store.break_detail("b1", AS_OF).await.expect("a break");
    assert_eq!(detail.item.first_seen_run, "r3");
    let told: Vec<&str> = detail
        .events
        .iter()
        .map(|event| event.what.as_str())
        .collect();
    assert_eq!(told, ["resolved", "reopened"]);
    assert!(detail.events[1].note.contains("run r1"));
}

async fn a_run_that_was_not_reported_is_carried_until_it_is(mut store: impl Store) {
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    let rows = Operations::default();
    let behind = Break {
        disposition: BreakDisposition::Repaired,
        ..break_about("b1", BreakClass::StatusBehind, "e")
    };
    let written = Commit {
        breaks: std::slice::from_ref(&behind),
        repairs: &[set_succeeded("p1", 1, RepairState::Applied)],
        ..nothing("r1", &rows)
    };
    commit(&mut store, &written).await;
    let carried = store.carried(&[SOURCE], AS_OF).await.expect("an answer");
    assert_eq!(carried.runs, ["r1"]);
    assert_eq!(carried.breaks.len(), 1);
    assert_eq!(carried.breaks[0].disposition, BreakDisposition::Repaired);
    assert_eq!(
        carried.repairs,
        [set_succeeded("p1", 1, RepairState::Applied)]
    );
    store
        .mark_reported(&["r1"], &[SOURCE], "r2")
        .await
        .expect("a mark");
    let carried = store.carried(&[SOURCE], AS_OF).await.expect("an answer");
    assert_eq!(carried.runs, Vec::<String>::new());
    assert_eq!(carried.repairs, []);
    let listed = store
        .repairs(&RepairFilter {
            states: &[RepairState::Applied],
            ..RepairFilter::default()
        })
        .await
        .expect("repairs");
    assert_eq!(listed.len(), 1);
}

async fn freshness_tells_the_last_clean_run(mut store: impl Store) {
    let sources = [SOURCE.to_owned()];
    let rows = Operations::default();
    for (run_id, exit_code, outcome, at) in [
        ("r0", 0, "clean", 5),
        ("r1", 0, "repaired", 10),
        ("r1b", 0, "review", 15),
        ("r2", 1, "review", 20),
        ("r3", 75, "temporary", 30),
    ] {
        let start = RunStart {
            run_id,
            command: "run",
            sources: &sources,
            as_of: AS_OF,
            started_at: Instant(at),
            version: "0.1.0",
            config_hash: "c",
            run_key: None,
            started_by: "kim",
            owner: run_id,
            ttl: TTL,
        };
        store.begin(&start).await.expect("a run");
        commit(&mut store, &nothing(run_id, &rows)).await;
        let end = RunEnd {
            run_id,
            finished_at: Instant(at),
            exit_code,
            outcome,
            report_json: Some("{}"),
            is_completed: true,
        };
        store.finish_run(&end).await.expect("an end");
    }
    let fresh = store.freshness(SOURCE, AS_OF).await.expect("an answer");
    assert_eq!(fresh.last_clean_at, Some(Instant(10)));
    assert_eq!(fresh.last_finished_at, Some(Instant(20)));
    let runs = store.runs(2).await.expect("runs");
    assert_eq!(runs[0].run_id, "r3");
    assert_eq!(store.run("latest").await.expect("a run").run_id, "r3");
    // Reports of runs that nobody told of are kept.
    store
        .mark_reported(&["r0"], &[SOURCE], "r0")
        .await
        .expect("a mark");
    let old = store.old_reports(Instant(25)).await.expect("an answer");
    let want = OldReports {
        prunable: 1,
        prunable_bytes: 2,
        untold: 3,
        ..OldReports::default()
    };
    assert_eq!(old, want);
    let (before, at) = (Instant(25), Instant(99));
    for forgotten in [1, 0] {
        let found = store.prune_runs(before, at, 5).await;
        assert_eq!(found.expect("an answer"), forgotten);
    }
    let pruned = store.run("r0").await.expect("its line stays");
    assert_eq!(
        (
            pruned.report_json,
            pruned.report_pruned_at,
            pruned.exit_code
        ),
        (None, Some(at), Some(0))
    );
    let untold = store.run("r2").await.expect("a run");
    assert_eq!(
        (untold.report_json.as_deref(), untold.report_pruned_at),
        (Some("{}"), None)
    );
}

#[tokio::test]
async fn files_that_are_not_whole_stores_of_ours_are_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let refused = async |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("a file");
        let failure = SqliteStore::open(&path, Mode::ReadWriteCreate)
            .await
            .expect_err("no store");
        assert_eq!(failure.exit, Exit::NotReady, "{name}: {failure}");
        assert!(failure.what.contains(name), "{failure}");
        assert_eq!(std::fs::read(&path).expect("the file"), bytes, "{name}");
    };
    refused("empty.db", b"").await;
    refused("text.db", &[b'x'; 4096]).await;
    let path = directory.path().join("ours.db");
    let store = SqliteStore::open(&path, Mode::ReadWriteCreate)
        .await
        .expect("a store");
    store.close_file().await.expect("a close");
    let ours = std::fs::read(&path).expect("the file");
    refused("cut.db", &ours[..ours.len() / 2]).await;
    let with_number = |at: usize, number: u32| {
        let mut bytes = ours.clone();
        bytes[at..at + 4].copy_from_slice(&number.to_be_bytes());
        bytes
    };
    // Bytes 60 and 68 of the header are user_version and application_id.
    refused("newer.db", &with_number(60, 99)).await;
    refused("foreign.db", &with_number(68, 7)).await;
}

#[tokio::test]
async fn reading_changes_no_byte_and_makes_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("paysweep.db");
    let missing = SqliteStore::open_existing(&path).await.expect("an answer");
    assert!(missing.is_none());
    assert_eq!(names(directory.path()), Vec::<String>::new());
    let mut store = SqliteStore::open(&path, Mode::ReadWriteCreate)
        .await
        .expect("a store");
    import(&mut store, &[intent("A", IntentStatus::Pending)]).await;
    store.close_file().await.expect("a close");
    let before = std::fs::read(&path).expect("the file");
    let mut store = SqliteStore::open_existing(&path)
        .await
        .expect("an answer")
        .expect("a store");
    assert_eq!(
        store.counts(SOURCE, SCOPE).await.expect("counts").intents,
        1
    );
    assert_eq!(
        exit_of(store.claim(SOURCE, "r1", "o", TTL).await),
        Exit::Denied
    );
    assert_eq!(names(directory.path()), ["paysweep.db"]);
    store.close_file().await.expect("a close");
    assert_eq!(std::fs::read(&path).expect("the file"), before);
}

#[cfg(unix)]
#[tokio::test]
async fn a_new_store_belongs_to_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("paysweep.db");
    let store = SqliteStore::open(&path, Mode::ReadWriteCreate)
        .await
        .expect("a store");
    store.close_file().await.expect("a close");
    let mode = std::fs::metadata(&path).expect("the file").permissions();
    assert_eq!(mode.mode() & 0o777, 0o600);
    let nowhere = directory.path().join("missing/paysweep.db");
    let result = SqliteStore::open(&nowhere, Mode::ReadWriteCreate).await;
    assert_eq!(exit_of(result), Exit::Denied);
}

#[tokio::test]
async fn two_processes_on_one_file_see_one_lease() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("paysweep.db");
    let mut one = SqliteStore::open(&path, Mode::ReadWriteCreate)
        .await
        .expect("a store");
    let mut two = SqliteStore::open(&path, Mode::ReadWriteCreate)
        .await
        .expect("a store");
    let held = claim(&mut one, "r1").await;
    assert_eq!(
        exit_of(two.claim(SOURCE, "r2", "o", TTL).await),
        Exit::Locked
    );
    one.release(&held).await.expect("a release");
    claim(&mut two, "r2").await;
}

fn names(directory: &Path) -> Vec<String> {
    std::fs::read_dir(directory)
        .expect("a directory")
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect()
}
