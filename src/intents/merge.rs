//! The merge of an import into what the store holds: column by column, three-way.
//!
//! For each intent there are three versions: what the last import showed, what the store holds now (a repair may have
//! changed it since), and what the file shows now. Only `status` and `processor_ref` are ever repaired, so only they
//! need all three:
//!
//! | the file's column, against the last import | result |
//! |---|---|
//! | unchanged | the stored value stays, repaired or not |
//! | changed | the file's value wins |
//!
//! All other columns are the file's. Where the result differs from the stored row, its version grows by one; the same
//! content again changes nothing. Rows that the file no longer has stay.
//!
//! Pure: it reads nothing and writes nothing.
//!
//! # Decisions
//!
//! - A row that paysweep recorded is superseded by an imported row with the same `processor_ref`, kind, amount and
//!   currency. Where the recorded row has no `processor_ref` (its operation has only a synthetic id), the imported row
//!   must have the same kind, amount, currency and parent; so must one that says that the money moved and names no
//!   `processor_ref`: our own side recorded late what paysweep had recorded before. In any case they pair one to one, in
//!   order of their ids, and only with a row that no operation is linked with yet.
//! - An imported row that bears the id of a recorded one takes its place under that id: the file is its owner from then
//!   on.
//! - Of several file rows with one id, each after the first is left as a row of its own: the reader has marked it as
//!   invalid, and no stored row is compared with it.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::model::answer::Answer;
use crate::model::intent::{Intent, IntentKind, IntentStatus, Intents};
use crate::model::stored::StoredIntents;
use crate::model::text::Text;
use crate::money::Currency;

/// The outcome of a merge. All columns have one entry per row of `intents`; texts lie in `intents.text`.
#[derive(Clone, Debug, Default)]
pub struct Merged {
    /// The rows as they stand after the merge: those that were loaded, in their order and without superseded ones, then
    /// those seen first, in the order of the file.
    pub intents: Intents,
    /// The status that the last import shows; `None` for a row that paysweep recorded.
    pub imported_status: Vec<Option<IntentStatus>>,
    /// The `processor_ref` that the last import shows; empty = none.
    pub imported_processor_ref: Vec<Text>,
    /// Who answers the row, as seen from the source that was asked for.
    pub answer: Vec<Answer>,
    /// Whether the row is seen first.
    pub is_new: Vec<bool>,
    /// Whether the row changed; its version has grown.
    pub is_changed: Vec<bool>,
    /// Whether only the imported columns changed; the version stays.
    pub is_touched: Vec<bool>,
    /// (recorded intent, imported intent that takes its place), by recorded id.
    pub superseded: Vec<(String, String)>,
    /// Intents whose repair the file shows as well, in the order of the rows.
    pub confirmed: Vec<String>,
}

impl Merged {
    /// Indices of the rows for which a column is set.
    pub fn indices(column: &[bool]) -> Vec<usize> {
        (0..column.len()).filter(|index| column[*index]).collect()
    }
}

/// Merges the rows of a file into the rows that the store holds. `stored` must contain every stored row that shares an
/// id with the file, and every recorded row that one of them may supersede.
pub fn merge(file: &Intents, stored: &StoredIntents) -> Merged {
    let in_file = first_of_each_id(file);
    let pairs = superseded(file, stored, &in_file);
    let mut is_gone = vec![false; stored.rows.len()];
    let mut takes_place_of: HashMap<usize, usize> = HashMap::new();
    for (recorded, imported) in &pairs {
        is_gone[*recorded] = true;
        takes_place_of.insert(*imported, *recorded);
    }
    // The link of a superseded row goes over to the one that takes its place.
    let inherited = |at: usize| {
        let recorded = takes_place_of.get(&at);
        recorded.map_or(Answer::Nobody, |index| stored.answer[*index])
    };
    let mut merged = Merged::default();
    let mut is_joined = vec![false; file.len()];
    for (index, _) in is_gone.iter().enumerate().filter(|(_, is_gone)| !**is_gone) {
        let id = stored.rows.text.get(stored.rows.intent_id[index]);
        match in_file.get(id) {
            Some(at) => {
                is_joined[*at] = true;
                let own = stored.answer[index];
                let answer = if own.is_linked() { own } else { inherited(*at) };
                merged.join(&file.get(*at), stored, index, answer);
            }
            None => merged.keep(stored, index),
        }
    }
    for (at, _) in is_joined
        .iter()
        .enumerate()
        .filter(|(_, is_joined)| !**is_joined)
    {
        merged.add(&file.get(at), inherited(at));
    }
    for (recorded, imported) in pairs {
        let recorded = stored.rows.get(recorded).intent_id.to_owned();
        let imported = file.get(imported).intent_id.to_owned();
        merged.superseded.push((recorded, imported));
    }
    merged
}

impl Merged {
    /// A stored row that the file shows as well.
    fn join(&mut self, file: &Intent<'_>, stored: &StoredIntents, index: usize, answer: Answer) {
        let before = stored.rows.get(index);
        let imported_status = stored.imported_status[index];
        let imported_ref = stored.rows.text.get(stored.imported_processor_ref[index]);
        let is_status_unchanged = imported_status == Some(file.status);
        let is_ref_unchanged = imported_status.is_some() && imported_ref == file.processor_ref;
        let after = Intent {
            status: if is_status_unchanged {
                before.status
            } else {
                file.status
            },
            processor_ref: if is_ref_unchanged {
                before.processor_ref
            } else {
                file.processor_ref
            },
            is_recorded: false,
            version: before.version,
            ..*file
        };
        let is_changed = after != before;
        let is_import_the_same = is_status_unchanged && is_ref_unchanged;
        let is_touched = !is_changed && !is_import_the_same;
        // A repaired column differs from what the last import showed; the status speaks for the whole repair.
        let was_status_repaired = imported_status != Some(before.status);
        let was_ref_repaired = imported_ref != before.processor_ref;
        if (was_status_repaired && file.status == before.status)
            || (!was_status_repaired
                && was_ref_repaired
                && file.processor_ref == before.processor_ref)
        {
            self.confirmed.push(before.intent_id.to_owned());
        }
        let version = before.version + u32::from(is_changed);
        self.push(
            &Intent { version, ..after },
            Some(file.status),
            file.processor_ref,
            answer,
        );
        self.mark(false, is_changed, is_touched);
    }

    /// A stored row that the file does not have.
    fn keep(&mut self, stored: &StoredIntents, index: usize) {
        let text = &stored.rows.text;
        self.push(
            &stored.rows.get(index),
            stored.imported_status[index],
            text.get(stored.imported_processor_ref[index]),
            stored.answer[index],
        );
        self.mark(false, false, false);
    }

    /// A row seen first.
    fn add(&mut self, file: &Intent<'_>, answer: Answer) {
        let row = Intent {
            is_recorded: false,
            version: 1,
            ..*file
        };
        self.push(&row, Some(file.status), file.processor_ref, answer);
        self.mark(true, false, false);
    }

    fn push(
        &mut self,
        row: &Intent<'_>,
        imported_status: Option<IntentStatus>,
        imported_processor_ref: &str,
        answer: Answer,
    ) {
        self.intents.push(row);
        self.imported_status.push(imported_status);
        let text = &mut self.intents.text;
        self.imported_processor_ref
            .push(text.push(imported_processor_ref));
        self.answer.push(answer);
    }

    fn mark(&mut self, is_new: bool, is_changed: bool, is_touched: bool) {
        self.is_new.push(is_new);
        self.is_changed.push(is_changed);
        self.is_touched.push(is_touched);
    }
}

/// The first row of each id.
fn first_of_each_id(file: &Intents) -> HashMap<&str, usize> {
    let mut first = HashMap::with_capacity(file.len());
    for index in 0..file.len() {
        let id = file.text.get(file.intent_id[index]);
        first.entry(id).or_insert(index);
    }
    first
}

/// What a recorded row and the row that takes its place have in common.
#[derive(PartialEq, Eq, Hash)]
struct Likeness<'a> {
    /// `processor_ref`; where there is none, the parent.
    by: (bool, &'a str),
    kind: IntentKind,
    amount_minor: i64,
    currency: Currency,
}

impl<'a> Likeness<'a> {
    fn of(row: &Intent<'a>, is_by_ref: bool) -> Likeness<'a> {
        Likeness {
            by: if is_by_ref {
                (true, row.processor_ref)
            } else {
                (false, row.parent_intent_id)
            },
            kind: row.kind,
            amount_minor: row.amount_minor,
            currency: row.currency,
        }
    }
}

/// (index of the recorded row, index of the file row), one to one, by recorded id.
fn superseded(
    file: &Intents,
    stored: &StoredIntents,
    in_file: &HashMap<&str, usize>,
) -> Vec<(usize, usize)> {
    let mut recorded: Vec<usize> = (0..stored.rows.len())
        .filter(|index| {
            let row = stored.rows.get(*index);
            row.is_recorded && !in_file.contains_key(row.intent_id)
        })
        .collect();
    if recorded.is_empty() {
        return Vec::new();
    }
    let by_id = |index: &usize| stored.rows.get(*index).intent_id;
    recorded.sort_unstable_by(|a, b| by_id(a).cmp(by_id(b)));
    let is_linked: HashSet<&str> = (0..stored.rows.len())
        .filter(|index| stored.answer[*index].is_linked())
        .map(|index| stored.rows.get(index).intent_id)
        .collect();
    let mut candidates: Vec<usize> = in_file
        .values()
        .copied()
        .filter(|index| {
            let row = file.get(*index);
            row.invalid.is_empty() && !is_linked.contains(row.intent_id)
        })
        .collect();
    let file_id = |index: &usize| file.get(*index).intent_id;
    candidates.sort_unstable_by(|a, b| file_id(a).cmp(file_id(b)));
    let mut alike: HashMap<Likeness<'_>, VecDeque<usize>> = HashMap::new();
    for index in candidates {
        let row = file.get(index);
        for is_by_ref in [true, false] {
            let likeness = Likeness::of(&row, is_by_ref);
            if !likeness.by.1.is_empty() {
                alike.entry(likeness).or_default().push_back(index);
            }
        }
    }
    let mut taken = HashSet::new();
    let mut is_paired = HashSet::new();
    let mut pairs = Vec::new();
    // Exact references choose first; then rows that have none on one side, and are of the same payment.
    for (is_by_ref, of_named) in [(true, true), (false, false), (false, true)] {
        for index in &recorded {
            let row = stored.rows.get(*index);
            if row.processor_ref.is_empty() == of_named || is_paired.contains(index) {
                continue;
            }
            let Some(queue) = alike.get_mut(&Likeness::of(&row, is_by_ref)) else {
                continue;
            };
            let found = queue.iter().position(|candidate| {
                let file_row = file.get(*candidate);
                let is_late = file_row.processor_ref.is_empty() && file_row.claims_money();
                !taken.contains(candidate) && (is_by_ref || !of_named || is_late)
            });
            if let Some(candidate) = found.and_then(|at| queue.remove(at)) {
                taken.insert(candidate);
                is_paired.insert(*index);
                pairs.push((*index, candidate));
            }
        }
    }
    pairs.sort_unstable_by(|a, b| by_id(&a.0).cmp(by_id(&b.0)));
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::intent::IntentStatus::{Failed, Pending, Succeeded};

    fn charge(status: IntentStatus, processor_ref: &'static str) -> Intent<'static> {
        Intent {
            intent_id: "A",
            amount_minor: 1000,
            currency: Currency::parse("EUR").expect("a code"),
            status,
            processor_ref,
            ..Intent::EMPTY
        }
    }

    fn refund(intent_id: &'static str, processor_ref: &'static str) -> Intent<'static> {
        Intent {
            intent_id,
            kind: IntentKind::Refund,
            parent_intent_id: "A",
            ..charge(Succeeded, processor_ref)
        }
    }

    fn file(rows: &[Intent<'_>]) -> Intents {
        let mut file = Intents::default();
        for row in rows {
            file.push(row);
        }
        file
    }

    /// Rows with what the last import showed; `None` = recorded.
    fn stored(rows: &[(Intent<'_>, Option<(IntentStatus, &str)>)]) -> StoredIntents {
        let mut stored = StoredIntents::default();
        for (row, imported) in rows {
            let is_recorded = imported.is_none();
            stored.rows.push(&Intent {
                is_recorded,
                ..*row
            });
            stored
                .imported_status
                .push(imported.map(|(status, _)| status));
            let imported_ref = imported.map_or("", |(_, imported_ref)| imported_ref);
            let text = &mut stored.rows.text;
            stored.imported_processor_ref.push(text.push(imported_ref));
            stored.answer.push(if is_recorded {
                Answer::Here
            } else {
                Answer::Nobody
            });
        }
        stored
    }

    #[test]
    fn a_column_that_the_file_left_alone_keeps_its_repair_and_a_changed_one_wins() {
        let table = [
            // last import, stored now, file now → status, ref, version, changed, touched, confirmed
            (
                (Pending, ""),
                (Pending, ""),
                (Pending, ""),
                (Pending, "", 1, false, false, false),
            ),
            (
                (Pending, ""),
                (Succeeded, "ch_1"),
                (Pending, ""),
                (Succeeded, "ch_1", 1, false, false, false),
            ),
            (
                (Pending, ""),
                (Succeeded, "ch_1"),
                (Succeeded, "ch_1"),
                (Succeeded, "ch_1", 1, false, true, true),
            ),
            (
                (Pending, ""),
                (Succeeded, "ch_1"),
                (Succeeded, ""),
                (Succeeded, "ch_1", 1, false, true, true),
            ),
            (
                (Pending, ""),
                (Succeeded, "ch_1"),
                (Failed, ""),
                (Failed, "ch_1", 2, true, false, false),
            ),
            (
                (Pending, ""),
                (Pending, ""),
                (Succeeded, "ch_1"),
                (Succeeded, "ch_1", 2, true, false, false),
            ),
            (
                (Pending, "ch_1"),
                (Succeeded, "ch_1"),
                (Pending, "ch_2"),
                (Succeeded, "ch_2", 2, true, false, false),
            ),
        ];
        for (imported, now, shown, want) in table {
            let merged = merge(
                &file(&[charge(shown.0, shown.1)]),
                &stored(&[(charge(now.0, now.1), Some(imported))]),
            );
            let row = merged.intents.get(0);
            let got = (
                row.status,
                row.processor_ref,
                row.version,
                merged.is_changed[0],
                merged.is_touched[0],
                merged.confirmed == ["A"],
            );
            assert_eq!(got, want, "{imported:?} {now:?} {shown:?}");
            assert_eq!(merged.imported_status[0], Some(shown.0));
            assert!(!merged.is_new[0]);
        }
    }

    #[test]
    fn other_columns_are_the_files() {
        let changed = Intent {
            reference: "order-1",
            ..charge(Pending, "")
        };
        let merged = merge(
            &file(&[changed]),
            &stored(&[(charge(Succeeded, "ch_1"), Some((Pending, "")))]),
        );
        let row = merged.intents.get(0);
        assert_eq!(
            (row.reference, row.status, row.version),
            ("order-1", Succeeded, 2)
        );
    }

    #[test]
    fn rows_that_the_file_does_not_have_stay_and_new_ones_follow() {
        let other = Intent {
            intent_id: "B",
            ..charge(Pending, "")
        };
        let merged = merge(
            &file(&[other]),
            &stored(&[(charge(Pending, ""), Some((Pending, "")))]),
        );
        let ids: Vec<&str> = merged.intents.iter().map(|row| row.intent_id).collect();
        assert_eq!(ids, ["A", "B"]);
        assert_eq!(merged.is_new, [false, true]);
        assert_eq!(Merged::indices(&merged.is_new), [1]);
    }

    #[test]
    fn a_recorded_row_gives_way_to_the_imported_one_that_means_the_same() {
        let merged = merge(
            &file(&[refund("R-7", "re_1")]),
            &stored(&[(refund("recorded-1", "re_1"), None)]),
        );
        assert_eq!(
            merged.superseded,
            [("recorded-1".to_owned(), "R-7".to_owned())]
        );
        assert_eq!(merged.intents.len(), 1);
        let row = merged.intents.get(0);
        assert!(!row.is_recorded);
        assert_eq!(merged.answer[0], Answer::Here);
    }

    #[test]
    fn a_recorded_row_without_reference_is_found_by_parent_and_amount_one_to_one() {
        let merged = merge(
            &file(&[refund("R-9", "re_9"), refund("R-8", "")]),
            &stored(&[
                (refund("recorded-2", ""), None),
                (refund("recorded-1", ""), None),
                (refund("recorded-3", ""), None),
            ]),
        );
        assert_eq!(
            merged.superseded,
            [
                ("recorded-1".to_owned(), "R-8".to_owned()),
                ("recorded-2".to_owned(), "R-9".to_owned()),
            ]
        );
        assert_eq!(merged.intents.len(), 3);
    }

    #[test]
    fn what_our_own_side_records_late_and_without_a_reference_takes_the_place_of_what_was_recorded()
    {
        let recorded = stored(&[(refund("recorded-1", "re_1"), None)]);
        let open = Intent {
            status: Pending,
            ..refund("R-7", "")
        };
        for (row, is_taken) in [
            (refund("R-7", ""), true),
            (refund("R-7", "re_2"), false),
            (open, false),
        ] {
            let merged = merge(&file(&[row]), &recorded);
            assert_eq!(!merged.superseded.is_empty(), is_taken, "{row:?}");
        }
        // One row is taken for one, and the exact one first.
        let merged = merge(
            &file(&[refund("R-7", ""), refund("R-8", "re_1")]),
            &recorded,
        );
        assert_eq!(
            merged.superseded,
            [("recorded-1".to_owned(), "R-8".to_owned())]
        );
    }

    #[test]
    fn another_amount_supersedes_nothing() {
        let other = Intent {
            amount_minor: 999,
            ..refund("R-7", "re_1")
        };
        let merged = merge(
            &file(&[other]),
            &stored(&[(refund("recorded-1", "re_1"), None)]),
        );
        assert!(merged.superseded.is_empty());
        assert_eq!(merged.intents.len(), 2);
    }

    #[test]
    fn a_recorded_row_whose_id_the_file_adopts_becomes_the_files() {
        let merged = merge(
            &file(&[refund("recorded-1", "re_1")]),
            &stored(&[(refund("recorded-1", "re_1"), None)]),
        );
        let row = merged.intents.get(0);
        assert_eq!((row.is_recorded, row.version), (false, 2));
        assert_eq!(merged.confirmed, ["recorded-1"]);
        assert!(merged.superseded.is_empty());
    }

    #[test]
    fn the_same_file_again_changes_nothing() {
        let rows = [charge(Pending, ""), refund("R-7", "re_1")];
        let first = merge(&file(&rows), &StoredIntents::default());
        let held = StoredIntents {
            rows: first.intents.clone(),
            imported_status: first.imported_status.clone(),
            imported_processor_ref: first.imported_processor_ref.clone(),
            answer: first.answer.clone(),
        };
        let again = merge(&file(&rows), &held);
        assert!(!again.is_new.contains(&true));
        assert!(!again.is_changed.contains(&true));
        assert!(!again.is_touched.contains(&true));
        assert!(again.confirmed.is_empty());
    }
}
