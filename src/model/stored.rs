//! Rows as the store holds them: the columns of a batch and what earlier runs made of it.

use super::answer::Answer;
use super::intent::{IntentStatus, Intents};
use super::operation::Operations;
use super::text::Text;
use super::verdict::Rule;

/// Operations of earlier runs. All columns have one entry per row of `rows`; texts lie in `rows.text`.
#[derive(Clone, Debug, Default)]
pub struct StoredOperations {
    /// The rows, by operation id and account. `file` is 0: the file's name stands in the store only.
    pub rows: Operations,
    /// The intent that the operation is linked with; empty = none.
    pub linked_intent: Vec<Text>,
    /// The rule that linked them; `None` = no link.
    pub linked_rule: Vec<Option<Rule>>,
}

/// The key of an operation that was seen, whether or not the operation is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedOperation {
    /// Its id.
    pub operation_id: String,
    /// Its account.
    pub account: String,
    /// The intent it is linked with, and by which rule.
    pub link: Option<(String, Rule)>,
}

/// Intents of earlier imports and records. All columns have one entry per row of `rows`; texts lie in `rows.text`.
#[derive(Clone, Debug, Default)]
pub struct StoredIntents {
    /// The rows as they stand now, by intent id.
    pub rows: Intents,
    /// The status that the last import showed; `None` for a row that paysweep recorded.
    pub imported_status: Vec<Option<IntentStatus>>,
    /// The `processor_ref` that the last import showed; empty = none.
    pub imported_processor_ref: Vec<Text>,
    /// Who answers the row, as seen from the source that was asked for.
    pub answer: Vec<Answer>,
}
