//! A stored report, taken back.

use std::borrow::Cow;

use super::wire::{
    BreakWire, IgnoredWire, MatchWire, MoneyWire, PendingWire, RepairWire, ReportWire, SideWire,
    SourceWire, StatementWire, TotalWire,
};
use super::{SCHEMA, SCHEMA_VERSION_MAJOR};
use crate::exit::Exit;
use crate::model::breaks::{Break, BreakClass, BreakDisposition, BreakState};
use crate::model::intent::{IntentKind, IntentStatus};
use crate::model::repair::{Repair, RepairAction, RepairSide, RepairState};
use crate::model::run::{Basis, Total, Window};
use crate::model::statement::{Bridge, DayLine, Explained, Lateness, OpenItems, Statement};
use crate::model::verdict::{IgnoreReason, Rule};
use crate::money::{Currency, Money};
use crate::report::{
    Accounting, BreakLine, Carried, Check, CheckStatus, Delivery, DeliveryStatus, FileLine,
    IgnoredLine, LedgerEnd, MatchLine, Outcome, OutcomeName, PendingLine, Reason, ResolvedLine,
    RunInfo, RunReport, SourceReport, Summary, Warning,
};
use crate::time::{Instant, Zone};

/// Why a stored report cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Not JSON, or not of this shape.
    #[error("the stored report cannot be read")]
    Shape(#[from] serde_json::Error),
    /// Another schema, or a later major version.
    #[error("the stored report is of schema {0:?}, which this version does not know")]
    Schema(String),
    /// A word that this version does not know.
    #[error("the stored report holds {1:?} as {0}, which this version does not know")]
    Word(&'static str, String),
}

/// Takes a report back that [`write`] wrote.
pub fn read(text: &str) -> Result<RunReport, ReadError> {
    let wire: ReportWire = serde_json::from_str(text)?;
    if wire.schema != SCHEMA || !wire.schema_version.starts_with(SCHEMA_VERSION_MAJOR) {
        return Err(ReadError::Schema(format!(
            "{} {}",
            wire.schema, wire.schema_version
        )));
    }
    let as_of = instant("run.as_of", &wire.run.as_of)?;
    let exit = Exit::ALL
        .into_iter()
        .find(|exit| exit.code() == wire.outcome.exit_code)
        .ok_or_else(|| ReadError::Word("exit code", wire.outcome.exit_code.to_string()))?;
    Ok(RunReport {
        run: RunInfo {
            id: text_of(wire.run.id),
            command: wire.run.command.into_owned(),
            is_dry_run: wire.run.dry_run,
            as_of,
            started_at: instant("run.started_at", &wire.run.started_at)?,
            finished_at: instant("run.finished_at", &wire.run.finished_at)?,
            version: wire.run.version.into_owned(),
            config_path: text_of(wire.run.config_path),
            config_digest: text_of(wire.run.config_digest),
            ledger: wire.run.ledger.map(|end| LedgerEnd {
                entries: end.entries,
                hash: text_of(end.head),
            }),
        },
        window: Window {
            from: bound(wire.window.from.as_deref(), Instant::MIN)?,
            to: bound(wire.window.to.as_deref(), Instant::MAX)?,
            basis: word("basis", &wire.window.basis, Basis::from_word)?,
        },
        zone: word("zone", &wire.window.zone, Zone::parse)?,
        outcome: Outcome {
            exit,
            name: match wire.outcome.name.as_ref() {
                "clean" => OutcomeName::Clean,
                "repaired" => OutcomeName::Repaired,
                "review" => OutcomeName::Review,
                _ => OutcomeName::Exit(exit),
            },
            reasons: wire
                .outcome
                .reasons
                .into_iter()
                .map(|reason| Reason {
                    code: reason.code.into_owned(),
                    count: reason.count,
                    message: reason.message.into_owned(),
                })
                .collect(),
        },
        sources: all(wire.sources, source_of)?,
        totals: all(wire.totals, |line| total_of(&line))?,
        statement: all(wire.statement, statement_of)?,
        days: all(wire.days, |line| {
            Ok(DayLine {
                day: line.day.into_owned(),
                matched: line.matched,
                pending: line.pending,
                ignored: line.ignored,
                unmatched: line.unmatched,
            })
        })?,
        summary: Summary {
            operations: wire.summary.operations,
            intents: wire.summary.intents,
            matched: wire.summary.matched,
            pending: wire.summary.pending,
            ignored: wire.summary.ignored,
        },
        accounting: Accounting {
            operations: wire.accounting.operations.into(),
            intents: wire.accounting.intents.into(),
        },
        breaks: all(wire.breaks, |line| break_of(line, as_of))?,
        repairs: all(wire.repairs, repair_of)?,
        carried: Carried {
            runs: wire.carried.runs.into_iter().map(Cow::into_owned).collect(),
            breaks: all(wire.carried.breaks, |line| break_of(line, as_of))?,
            repairs: all(wire.carried.repairs, repair_of)?,
        },
        resolved: all(wire.resolved, |line| {
            Ok(ResolvedLine {
                id: line.id.into_owned(),
                class: word("class", &line.class, BreakClass::from_word)?,
                intent_id: text_of(line.intent_id),
                operation_id: text_of(line.operation_id),
                money: money_of(line.money)?,
            })
        })?,
        checks: all(wire.checks, |line| {
            Ok(Check {
                name: line.name.into_owned(),
                status: word("check status", &line.status, CheckStatus::from_word)?,
                detail: line.detail.into_owned(),
            })
        })?,
        warnings: all(wire.warnings, |line| {
            Ok(Warning {
                code: line.code.into_owned(),
                message: line.message.into_owned(),
            })
        })?,
        deliveries: all(wire.deliveries, |line| {
            Ok(Delivery {
                status: word("delivery status", &line.status, DeliveryStatus::from_word)?,
                channel: line.channel.into_owned(),
                kind: line.kind.into_owned(),
                is_required: line.required,
                detail: line.detail.into_owned(),
            })
        })?,
        matches: wire.matches.map(|list| all(list, match_of)).transpose()?,
        pending: wire.pending.map(|list| all(list, pending_of)).transpose()?,
        ignored: wire.ignored.map(|list| all(list, ignored_of)).transpose()?,
    })
}

fn all<T, U>(list: Vec<T>, one: impl Fn(T) -> Result<U, ReadError>) -> Result<Vec<U>, ReadError> {
    list.into_iter().map(one).collect()
}

fn text_of(text: Option<Cow<'_, str>>) -> String {
    text.map(Cow::into_owned).unwrap_or_default()
}

fn word<T>(
    what: &'static str,
    text: &str,
    from_word: impl Fn(&str) -> Option<T>,
) -> Result<T, ReadError> {
    from_word(text).ok_or_else(|| ReadError::Word(what, text.to_owned()))
}

fn instant(what: &'static str, text: &str) -> Result<Instant, ReadError> {
    word(what, text, Instant::parse)
}

fn maybe_instant(what: &'static str, text: Option<&str>) -> Result<Option<Instant>, ReadError> {
    text.map(|text| instant(what, text)).transpose()
}

/// A bound of a window; none stands for an end of time.
fn bound(text: Option<&str>, end: Instant) -> Result<Instant, ReadError> {
    Ok(maybe_instant("window", text)?.unwrap_or(end))
}

fn sum_of(wire: &MoneyWire<'_>) -> Result<(i128, Currency), ReadError> {
    Ok((
        wire.minor,
        word("currency", &wire.currency, Currency::parse)?,
    ))
}

fn money_of(wire: Option<MoneyWire<'_>>) -> Result<Option<Money>, ReadError> {
    let Some(wire) = wire else { return Ok(None) };
    let (minor, currency) = sum_of(&wire)?;
    let minor =
        i64::try_from(minor).map_err(|_| ReadError::Word("amount", wire.amount.into_owned()))?;
    Ok(Some(Money::new(minor, currency)))
}

fn break_of(wire: BreakWire<'_>, as_of: Instant) -> Result<BreakLine, ReadError> {
    const MICROS_PER_SECOND: i64 = 1_000_000;
    let age = crate::time::Span(wire.age_seconds.saturating_mul(MICROS_PER_SECOND));
    Ok(BreakLine {
        item: Break {
            id: wire.id.into_owned(),
            class: word("class", &wire.class, BreakClass::from_word)?,
            source: wire.source.into_owned(),
            account: text_of(wire.account),
            operation_id: text_of(wire.operation_id),
            intent_id: text_of(wire.intent_id),
            money: money_of(wire.money)?,
            delta: money_of(wire.delta)?,
            why: wire.why.into_owned(),
            evidence: String::new(),
            state: word("break state", &wire.state, BreakState::from_word)?,
            disposition: word(
                "disposition",
                &wire.disposition,
                BreakDisposition::from_word,
            )?,
            is_sticky: false,
            first_seen_run: text_of(wire.first_seen_run),
            first_seen_at: as_of.minus(age),
            acknowledged_until: maybe_instant(
                "acknowledged_until",
                wire.acknowledged_until.as_deref(),
            )?,
        },
        is_new: wire.new,
        age_seconds: wire.age_seconds,
        also_operations: wire
            .also_operations
            .into_iter()
            .map(Cow::into_owned)
            .collect(),
    })
}

fn ignored_of(wire: IgnoredWire<'_>) -> Result<IgnoredLine, ReadError> {
    Ok(IgnoredLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        reason: word("reason", &wire.reason, IgnoreReason::from_word)?,
        money: money_of(wire.money)?,
        folded_into: text_of(wire.folded_into),
    })
}

fn match_of(wire: MatchWire<'_>) -> Result<MatchLine, ReadError> {
    Ok(MatchLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        account: text_of(wire.account),
        rule: word("rule", &wire.rule, Rule::from_word)?,
        delta: money_of(wire.delta)?,
        settled: money_of(wire.settled)?,
    })
}

fn pending_of(wire: PendingWire<'_>) -> Result<PendingLine, ReadError> {
    Ok(PendingLine {
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        due_at: maybe_instant("due_at", wire.due_at.as_deref())?,
        why: wire.why.into_owned(),
    })
}

fn repair_of(wire: RepairWire<'_>) -> Result<Repair, ReadError> {
    Ok(Repair {
        id: wire.id.into_owned(),
        break_id: wire.break_id.into_owned(),
        source: wire.source.into_owned(),
        class: word("class", &wire.class, BreakClass::from_word)?,
        action: word("action", &wire.action, RepairAction::from_word)?,
        intent_id: text_of(wire.intent_id),
        operation_id: text_of(wire.operation_id),
        account: text_of(wire.account),
        from: wire.from.map(side_of).transpose()?,
        to: side_of(wire.to)?,
        planned_version: 0,
        state: word("repair state", &wire.state, RepairState::from_word)?,
        occurred_at: instant("occurred_at", &wire.occurred_at)?,
        note: wire.note.into_owned(),
        expires_at: maybe_instant("expires_at", wire.expires_at.as_deref())?,
        idempotency_key: String::new(),
    })
}

fn side_of(wire: SideWire<'_>) -> Result<RepairSide, ReadError> {
    let currency = wire
        .currency
        .map(|code| word("currency", &code, Currency::parse))
        .transpose()?;
    Ok(RepairSide {
        kind: wire
            .kind
            .map(|kind| word("kind", &kind, IntentKind::from_word))
            .transpose()?,
        status: word("status", &wire.status, IntentStatus::from_word)?,
        processor_ref: text_of(wire.processor_ref),
        parent_intent_id: text_of(wire.parent_intent_id),
        money: wire
            .amount_minor
            .zip(currency)
            .map(|(minor, currency)| Money::new(minor, currency)),
    })
}

fn source_of(wire: SourceWire<'_>) -> Result<SourceReport, ReadError> {
    Ok(SourceReport {
        name: wire.name.into_owned(),
        is_complete: wire.complete,
        operations: wire.operations,
        outside_window: wire.outside_window,
        rejected_rows: wire.rejected_rows,
        covered: maybe_instant("covered", wire.covered.as_deref())?,
        watermark_before: maybe_instant("watermark_before", wire.watermark_before.as_deref())?,
        watermark_after: maybe_instant("watermark_after", wire.watermark_after.as_deref())?,
        files: wire
            .files
            .into_iter()
            .map(|file| FileLine {
                path: file.path.into_owned(),
                bytes: file.bytes,
                rows: file.rows,
                sha256: file.sha256.into_owned(),
            })
            .collect(),
        lateness: wire.lateness.map(Lateness::from),
    })
}

/// Differences and residuals are drawn again from what they come from.
fn statement_of(wire: StatementWire<'_>) -> Result<Statement, ReadError> {
    let minor = |wire: &MoneyWire<'_>| sum_of(wire).map(|(minor, _)| minor);
    Ok(Statement {
        currency: word("currency", &wire.currency, Currency::parse)?,
        items: OpenItems {
            opening: minor(&wire.items.opening)?,
            new: minor(&wire.items.new)?,
            changed: minor(&wire.items.changed)?,
            cleared: minor(&wire.items.cleared)?,
            closing: minor(&wire.items.closing)?,
            acknowledged: minor(&wire.items.acknowledged)?,
        },
        bridge: Bridge {
            processor: minor(&wire.processor)?,
            local: minor(&wire.local)?,
            explained: all(wire.explained, |line| {
                Ok(Explained {
                    operations: line.operations,
                    intents: line.intents,
                    processor: sum_of(&line.processor)?.0,
                    local: sum_of(&line.local)?.0,
                    code: line.code.into_owned(),
                })
            })?,
        },
    })
}

fn total_of(wire: &TotalWire<'_>) -> Result<Total, ReadError> {
    let currency = word("currency", &wire.currency, Currency::parse)?;
    Ok(Total {
        currency,
        gross: sum_of(&wire.gross)?.0,
        fees: sum_of(&wire.fees)?.0,
        net: sum_of(&wire.net)?.0,
        matched: sum_of(&wire.matched)?.0,
        unreconciled: sum_of(&wire.unreconciled)?.0,
        at_risk: sum_of(&wire.at_risk)?.0,
    })
}
