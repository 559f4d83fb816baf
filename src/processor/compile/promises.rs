//! What a profile promises about sums and delays.

use super::Compiler;
use crate::exit::Failure;
use crate::processor::profile::{BalanceRule, Checks, RowNet, Spans};
use crate::processor::wire::{CheckWire, WatermarkWire};
use crate::time::Span;

/// The one rule about a row that is known.
const ROW_RULE: &str = "net == amount - fee";
/// The one rule about a payout that is known.
const PAYOUT_RULE: &str =
    "sum(settle_net where kind != payout) + sum(settle_net where kind == payout) == 0";
/// The one rule about a file that is known.
const FILE_RULE: &str = "balance == balance before + net";

impl Compiler<'_> {
    pub(super) fn checks(&self, wires: &[CheckWire]) -> Result<Checks, Failure> {
        let mut checks = Checks::default();
        for wire in wires {
            let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            if wire.on_failure.is_some() && !["row", "file"].contains(&wire.scope.as_str()) {
                return Err(self
                    .refuse("checks.on_failure belongs to a check of scope \"row\" or \"file\"")
                    .remedy("leave it out"));
            }
            let tolerance_minor = wire.tolerance_minor.unwrap_or(0);
            if tolerance_minor < 0 {
                return Err(self
                    .refuse("checks.tolerance_minor is negative")
                    .remedy("write 0 or more minor units"));
            }
            match (wire.scope.as_str(), words(&wire.rule).as_str()) {
                ("row", ROW_RULE) => {
                    let only_where_net = match wire.when.as_deref().map(words).as_deref() {
                        None => false,
                        Some("net != 0") => true,
                        Some(other) => {
                            return Err(self
                                .refuse(&format!("checks.when = \"{other}\" is not known"))
                                .remedy("write when = \"net != 0\", or leave it out"));
                        }
                    };
                    checks.row_net = Some(RowNet {
                        only_where_net,
                        tolerance_minor,
                        rejects: match &wire.on_failure {
                            Some(word) => self.word(
                                "checks.on_failure",
                                word,
                                [("reject", true), ("invalid_record", false)],
                            )?,
                            None => true,
                        },
                    });
                }
                ("payout", PAYOUT_RULE) => {
                    let groups = wire.group_by.as_deref().unwrap_or_default();
                    if !groups.is_empty() && groups != ["payout_id", "settle_currency"] {
                        return Err(self
                            .refuse("checks.group_by is not known")
                            .remedy("write group_by = [\"payout_id\", \"settle_currency\"], or leave it out"));
                    }
                    if let Some(word) = &wire.on_missing_payout {
                        self.word("checks.on_missing_payout", word, [("warn", ())])?;
                    }
                    checks.payout_tolerance_minor = Some(tolerance_minor);
                }
                ("file", FILE_RULE) => {
                    checks.running_balance = Some(self.word(
                        "checks.on_failure",
                        wire.on_failure.as_deref().unwrap_or("reject"),
                        [
                            ("reject", BalanceRule::Rejects),
                            ("unverified", BalanceRule::Unverified),
                        ],
                    )?);
                }
                (scope, rule) => {
                    return Err(self
                        .refuse(&format!(
                            "checks: the rule \"{rule}\" of scope \"{scope}\" is not known"
                        ))
                        .why(format!(
                            "the rules are \"{ROW_RULE}\" (row), \"{PAYOUT_RULE}\" (payout) and \"{FILE_RULE}\" (file)"
                        ))
                        .remedy("write one of them, or leave the check out"));
                }
            }
        }
        Ok(checks)
    }

    pub(super) fn spans(&self, wire: &WatermarkWire) -> Result<Spans, Failure> {
        match wire.kind.as_deref().unwrap_or("time") {
            "time" | "updated_time" => {}
            word @ ("date" | "id" | "counter" | "file_set") => {
                return Err(self.unsupported(&format!("watermark.kind = \"{word}\"")));
            }
            word => self.word("watermark.kind", word, [("time", ()), ("updated_time", ())])?,
        }
        if let Some(word) = &wire.gap {
            self.word("watermark.gap", word, [("error", ())])?;
        }
        if let Some(field) = wire.field.as_deref() {
            self.word(
                "watermark.field",
                field,
                [("occurred_at", ()), ("updated_at", ())],
            )?;
        }
        let span = |key: &str, text: &Option<String>, default| {
            self.span(&format!("watermark.{key}"), text.as_deref(), default)
        };
        Ok(Spans {
            delay: span("delay", &wire.delay, Span::ZERO)?,
            granularity: span("granularity", &wire.granularity, Span::ZERO)?,
            clock_error: span("clock_error", &wire.clock_error, Span::ZERO)?,
            lag: span("lag", &wire.lag, Span::ZERO)?,
            lookback: span("lookback", &wire.lookback, Span::hours(72))?,
            payout_span: span("payout_span", &wire.payout_span, Span::ZERO)?,
            rescan: match &wire.rescan {
                Some(_) => Some(span("rescan", &wire.rescan, Span::ZERO)?),
                None => None,
            },
        })
    }
}
