//! The shape of the JSON report. Fields stand in the order of their names, so that keys are sorted.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::run::Tally;
use crate::model::statement::Lateness;

#[derive(Deserialize)]
pub(super) struct ReportWire<'a> {
    pub(super) accounting: AccountingWire,
    pub(super) breaks: Vec<BreakWire<'a>>,
    pub(super) carried: CarriedWire<'a>,
    pub(super) checks: Vec<CheckWire<'a>>,
    #[serde(default)]
    pub(super) days: Vec<DayWire<'a>>,
    #[serde(default)]
    pub(super) deliveries: Vec<DeliveryWire<'a>>,
    pub(super) ignored: Option<Vec<IgnoredWire<'a>>>,
    pub(super) matches: Option<Vec<MatchWire<'a>>>,
    pub(super) outcome: OutcomeWire<'a>,
    pub(super) pending: Option<Vec<PendingWire<'a>>>,
    pub(super) repairs: Vec<RepairWire<'a>>,
    pub(super) resolved: Vec<ResolvedWire<'a>>,
    pub(super) run: RunWire<'a>,
    pub(super) schema: Cow<'a, str>,
    pub(super) schema_version: Cow<'a, str>,
    pub(super) sources: Vec<SourceWire<'a>>,
    #[serde(default)]
    pub(super) statement: Vec<StatementWire<'a>>,
    pub(super) summary: SummaryWire,
    pub(super) totals: Vec<TotalWire<'a>>,
    pub(super) warnings: Vec<WarningWire<'a>>,
    pub(super) window: WindowWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct AccountingWire {
    pub(super) intents: TallyWire,
    pub(super) operations: TallyWire,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TallyWire {
    pub(super) ignored: u64,
    pub(super) matched: u64,
    pub(super) pending: u64,
    pub(super) read: u64,
    pub(super) unmatched: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct BreakWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) acknowledged_until: Option<String>,
    pub(super) age_seconds: i64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) also_operations: Vec<Cow<'a, str>>,
    pub(super) class: Cow<'a, str>,
    pub(super) delta: Option<MoneyWire<'a>>,
    pub(super) disposition: Cow<'a, str>,
    pub(super) first_seen_run: Option<Cow<'a, str>>,
    pub(super) id: Cow<'a, str>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    pub(super) money: Option<MoneyWire<'a>>,
    pub(super) new: bool,
    pub(super) next_step: Cow<'a, str>,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) severity: Cow<'a, str>,
    pub(super) source: Cow<'a, str>,
    pub(super) state: Cow<'a, str>,
    pub(super) why: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CarriedWire<'a> {
    pub(super) breaks: Vec<BreakWire<'a>>,
    pub(super) repairs: Vec<RepairWire<'a>>,
    pub(super) runs: Vec<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CheckWire<'a> {
    pub(super) detail: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) status: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DayWire<'a> {
    pub(super) day: Cow<'a, str>,
    pub(super) ignored: u64,
    pub(super) matched: u64,
    pub(super) pending: u64,
    pub(super) unmatched: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DeliveryWire<'a> {
    pub(super) channel: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(super) detail: Cow<'a, str>,
    pub(super) kind: Cow<'a, str>,
    pub(super) required: bool,
    pub(super) status: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ExplainedWire<'a> {
    pub(super) code: Cow<'a, str>,
    pub(super) difference: MoneyWire<'a>,
    pub(super) intents: u64,
    pub(super) local: MoneyWire<'a>,
    pub(super) operations: u64,
    pub(super) processor: MoneyWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct FileWire<'a> {
    pub(super) bytes: u64,
    pub(super) path: Cow<'a, str>,
    pub(super) rows: u64,
    pub(super) sha256: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct IgnoredWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) folded_into: Option<Cow<'a, str>>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) money: Option<MoneyWire<'a>>,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) reason: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LedgerWire<'a> {
    pub(super) entries: u64,
    pub(super) head: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ItemsWire<'a> {
    pub(super) acknowledged: MoneyWire<'a>,
    pub(super) changed: MoneyWire<'a>,
    pub(super) cleared: MoneyWire<'a>,
    pub(super) closing: MoneyWire<'a>,
    pub(super) new: MoneyWire<'a>,
    pub(super) opening: MoneyWire<'a>,
    pub(super) residual: MoneyWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LatenessWire {
    pub(super) arrived: u64,
    pub(super) lag_seconds: i64,
    pub(super) late: Vec<u64>,
    pub(super) latest_seconds: i64,
    pub(super) lookback_seconds: i64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct MatchWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) delta: Option<MoneyWire<'a>>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) rule: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) settled: Option<MoneyWire<'a>>,
}

/// An amount; `minor` is as wide as a sum may be.
#[derive(Serialize, Deserialize)]
pub(super) struct MoneyWire<'a> {
    pub(super) amount: Cow<'a, str>,
    pub(super) currency: Cow<'a, str>,
    pub(super) minor: i128,
}

#[derive(Serialize, Deserialize)]
pub(super) struct OutcomeWire<'a> {
    pub(super) exit_code: u8,
    pub(super) name: Cow<'a, str>,
    pub(super) reasons: Vec<ReasonWire<'a>>,
    pub(super) retryable: bool,
}

#[derive(Serialize, Deserialize)]
pub(super) struct PendingWire<'a> {
    pub(super) due_at: Option<String>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) why: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ReasonWire<'a> {
    pub(super) code: Cow<'a, str>,
    pub(super) count: u64,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(super) message: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RepairWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) account: Option<Cow<'a, str>>,
    pub(super) action: Cow<'a, str>,
    pub(super) age_seconds: i64,
    pub(super) break_id: Cow<'a, str>,
    pub(super) class: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) expires_at: Option<Cow<'a, str>>,
    pub(super) from: Option<SideWire<'a>>,
    pub(super) id: Cow<'a, str>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(super) note: Cow<'a, str>,
    pub(super) occurred_at: String,
    pub(super) operation_id: Option<Cow<'a, str>>,
    pub(super) source: Cow<'a, str>,
    pub(super) state: Cow<'a, str>,
    pub(super) to: SideWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ResolvedWire<'a> {
    pub(super) class: Cow<'a, str>,
    pub(super) id: Cow<'a, str>,
    pub(super) intent_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) money: Option<MoneyWire<'a>>,
    pub(super) operation_id: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct RunWire<'a> {
    pub(super) as_of: String,
    pub(super) command: Cow<'a, str>,
    pub(super) config_digest: Option<Cow<'a, str>>,
    pub(super) config_path: Option<Cow<'a, str>>,
    pub(super) dry_run: bool,
    pub(super) finished_at: String,
    pub(super) id: Option<Cow<'a, str>>,
    #[serde(default)]
    pub(super) ledger: Option<LedgerWire<'a>>,
    pub(super) started_at: String,
    pub(super) version: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SideWire<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) amount_minor: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) currency: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) parent_intent_id: Option<Cow<'a, str>>,
    pub(super) processor_ref: Option<Cow<'a, str>>,
    pub(super) status: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SourceWire<'a> {
    pub(super) complete: bool,
    pub(super) covered: Option<String>,
    pub(super) files: Vec<FileWire<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) lateness: Option<LatenessWire>,
    pub(super) name: Cow<'a, str>,
    pub(super) operations: u64,
    pub(super) outside_window: u64,
    pub(super) rejected_rows: u64,
    pub(super) watermark_after: Option<String>,
    pub(super) watermark_before: Option<String>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct StatementWire<'a> {
    pub(super) currency: Cow<'a, str>,
    pub(super) difference: MoneyWire<'a>,
    pub(super) explained: Vec<ExplainedWire<'a>>,
    pub(super) items: ItemsWire<'a>,
    pub(super) local: MoneyWire<'a>,
    pub(super) processor: MoneyWire<'a>,
    pub(super) residual: MoneyWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct SummaryWire {
    pub(super) breaks: u64,
    pub(super) by_class: BTreeMap<String, u64>,
    pub(super) ignored: u64,
    pub(super) intents: u64,
    pub(super) matched: u64,
    pub(super) operations: u64,
    pub(super) pending: u64,
    pub(super) repairs: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TotalWire<'a> {
    pub(super) at_risk: MoneyWire<'a>,
    pub(super) currency: Cow<'a, str>,
    pub(super) fees: MoneyWire<'a>,
    pub(super) gross: MoneyWire<'a>,
    pub(super) matched: MoneyWire<'a>,
    pub(super) net: MoneyWire<'a>,
    pub(super) unreconciled: MoneyWire<'a>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WarningWire<'a> {
    pub(super) code: Cow<'a, str>,
    pub(super) message: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct WindowWire<'a> {
    pub(super) basis: Cow<'a, str>,
    pub(super) from: Option<String>,
    pub(super) from_local: Option<String>,
    pub(super) to: Option<String>,
    pub(super) to_local: Option<String>,
    pub(super) zone: Cow<'a, str>,
}

impl From<&Lateness> for LatenessWire {
    fn from(lateness: &Lateness) -> LatenessWire {
        LatenessWire {
            arrived: lateness.arrived,
            lag_seconds: lateness.lag_seconds,
            late: lateness.late.clone(),
            latest_seconds: lateness.latest_seconds,
            lookback_seconds: lateness.lookback_seconds,
        }
    }
}

impl From<LatenessWire> for Lateness {
    fn from(wire: LatenessWire) -> Lateness {
        Lateness {
            arrived: wire.arrived,
            late: wire.late,
            latest_seconds: wire.latest_seconds,
            lag_seconds: wire.lag_seconds,
            lookback_seconds: wire.lookback_seconds,
        }
    }
}

#[expect(clippy::ptr_arg, reason = "serde hands over a reference to the field")]
fn is_empty(text: &Cow<'_, str>) -> bool {
    text.is_empty()
}

impl From<Tally> for TallyWire {
    fn from(tally: Tally) -> TallyWire {
        TallyWire {
            ignored: tally.ignored,
            matched: tally.matched,
            pending: tally.pending,
            read: tally.read,
            unmatched: tally.unmatched,
        }
    }
}

impl From<TallyWire> for Tally {
    fn from(wire: TallyWire) -> Tally {
        Tally {
            read: wire.read,
            matched: wire.matched,
            pending: wire.pending,
            ignored: wire.ignored,
            unmatched: wire.unmatched,
        }
    }
}
