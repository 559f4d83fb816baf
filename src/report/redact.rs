//! A report without what nobody outside may see.
//!
//! A report holds a fixed list of columns, and no other column of a file ever reaches it: no description, no address, no
//! name. Of that list, `[report] redact` masks what it names, in every form and channel; the store keeps everything.
//!
//! Decisions: an id keeps its last four characters where it has ten or more, so that a person who knows it recognises it.
//! The sentence that says why a break is one quotes values of the files and names ids: where an id is masked it is replaced
//! by the meaning of the class; where only references are, everything between its first and last quotation mark goes.

use super::{BreakLine, RunReport};
use crate::model::repair::Repair;
use crate::model::words;

words! {
    /// A column that can be masked.
    Column {
        /// Accounts of operations.
        Account = "account",
        /// Paths of the files that were read.
        Files = "files",
        /// Our ids.
        IntentId = "intent_id",
        /// The processor's ids.
        OperationId = "operation_id",
        /// Values of the files that a sentence quotes: references, words, amounts as they were written.
        Reference = "reference",
        /// What was seen, in words.
        Why = "why",
    }
}

/// The report with these columns masked.
pub fn redacted(report: &RunReport, columns: &[Column]) -> RunReport {
    let mut report = report.clone();
    let mask = Mask { columns };
    for line in report.breaks.iter_mut().chain(&mut report.carried.breaks) {
        mask.one_break(line);
    }
    for repair in report.repairs.iter_mut().chain(&mut report.carried.repairs) {
        mask.repair(repair);
    }
    for line in &mut report.resolved {
        mask.pair(&mut line.intent_id, &mut line.operation_id);
    }
    for line in report.matches.iter_mut().flatten() {
        mask.pair(&mut line.intent_id, &mut line.operation_id);
        mask.text(Column::Account, &mut line.account);
    }
    for line in report.pending.iter_mut().flatten() {
        mask.pair(&mut line.intent_id, &mut line.operation_id);
    }
    for line in report.ignored.iter_mut().flatten() {
        mask.pair(&mut line.intent_id, &mut line.operation_id);
        mask.text(Column::OperationId, &mut line.folded_into);
    }
    for file in report.sources.iter_mut().flat_map(|it| &mut it.files) {
        mask.text(Column::Files, &mut file.path);
    }
    let reasons = report.outcome.reasons.iter_mut().map(|it| &mut it.message);
    let checks = report.checks.iter_mut().map(|it| &mut it.detail);
    let warnings = report.warnings.iter_mut().map(|it| &mut it.message);
    for sentence in reasons.chain(checks).chain(warnings) {
        mask.quoted(sentence);
    }
    report
}

struct Mask<'a> {
    columns: &'a [Column],
}

impl Mask<'_> {
    fn hides(&self, column: Column) -> bool {
        self.columns.contains(&column)
    }

    fn text(&self, column: Column, text: &mut String) {
        if self.hides(column) && !text.is_empty() {
            *text = masked(text);
        }
    }

    fn pair(&self, intent_id: &mut String, operation_id: &mut String) {
        self.text(Column::IntentId, intent_id);
        self.text(Column::OperationId, operation_id);
    }

    fn one_break(&self, line: &mut BreakLine) {
        let item = &mut line.item;
        let names = [Column::IntentId, Column::OperationId, Column::Account];
        if self.hides(Column::Why) || names.into_iter().any(|column| self.hides(column)) {
            item.why = item.class.entry().meaning.to_owned();
        } else {
            self.quoted(&mut item.why);
        }
        self.pair(&mut item.intent_id, &mut item.operation_id);
        self.text(Column::Account, &mut item.account);
        for id in &mut line.also_operations {
            self.text(Column::OperationId, id);
        }
    }

    fn repair(&self, repair: &mut Repair) {
        self.pair(&mut repair.intent_id, &mut repair.operation_id);
        self.text(Column::Account, &mut repair.account);
        for side in repair.from.iter_mut().chain([&mut repair.to]) {
            self.text(Column::OperationId, &mut side.processor_ref);
            self.text(Column::IntentId, &mut side.parent_intent_id);
        }
    }

    /// Masks what a sentence quotes, from the first mark to the last: a value may hold marks of its own.
    fn quoted(&self, sentence: &mut String) {
        if !self.hides(Column::Reference) {
            return;
        }
        if let (Some(first), Some(last)) = (sentence.find('"'), sentence.rfind('"'))
            && first < last
        {
            sentence.replace_range(first + 1..last, "…");
        }
    }
}

/// `…7005`; short ids leave nothing.
fn masked(text: &str) -> String {
    const CHARS_MIN: usize = 10;
    const CHARS_KEPT: usize = 4;
    let chars = text.chars().count();
    if chars < CHARS_MIN {
        return "…".to_owned();
    }
    let kept: String = text.chars().skip(chars - CHARS_KEPT).collect();
    format!("…{kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_end_where_the_rest_hides_it() {
        for (text, want) in [
            ("PAY-210005", "…0005"),
            ("ch_1", "…"),
            ("ähnlich-lang", "…lang"),
        ] {
            assert_eq!(masked(text), want);
        }
    }

    #[test]
    fn a_quoted_value_goes_with_the_marks_in_it() {
        let mask = Mask {
            columns: &[Column::Reference],
        };
        for (text, want) in [
            (
                "under the reference \"anna@example.test\", which no local row has",
                "under the reference \"…\", which no local row has",
            ),
            ("holds \"a\" b\" c\", which", "holds \"…\", which"),
            ("nothing quoted", "nothing quoted"),
            ("one \" mark", "one \" mark"),
        ] {
            let mut sentence = text.to_owned();
            mask.quoted(&mut sentence);
            assert_eq!(sentence, want);
        }
    }
}
