//! The last rung: a reference that the processor cut.

use std::collections::BTreeMap;
use std::rc::Rc;

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use super::buckets::Buckets;
use super::{ContestReason, Ladder};
use crate::model::operation::Family;
use crate::model::verdict::Rule;
use crate::reconcile::keys::Key;

impl Ladder<'_, '_> {
    /// Rung 4: a reference that was cut, as declared; otherwise it is only proposed.
    pub(super) fn truncations(&mut self, truncated: &HashMap<usize, Rc<[usize]>>) {
        if truncated.is_empty() {
            return;
        }
        let component = self.component;
        let by_row: HashMap<usize, usize> = component
            .intents
            .iter()
            .enumerate()
            .map(|(at, intent)| (intent.row, at))
            .collect();
        let mut groups: BTreeMap<(Key, Family), Vec<usize>> = BTreeMap::new();
        for at in 0..component.operations.len() {
            let operation = &component.operations[at];
            let is_asked = truncated.contains_key(&operation.row)
                && self.is_free(at)
                && !operation.row_data.kind.is_return()
                && self.links.parent_intent[at].is_none();
            if let (Some(family), true) = (operation.family(), is_asked) {
                let group = groups.entry((operation.keys.reference, family));
                group.or_default().push(at);
            }
        }
        for ((_, family), operations) in groups {
            let row = &component.operations[operations[0]];
            let intents: Vec<usize> = truncated[&row.row]
                .iter()
                .filter_map(|row| by_row.get(row).copied())
                .filter(|&intent| component.intents[intent].row_data.kind.family() == family)
                .collect();
            let chars = row.row_data.reference.trim().chars().count();
            let is_declared = self.rules.reference_max_chars == Some(chars);
            if !intents.is_empty() {
                self.truncation(&operations, &self.by_id(intents), is_declared);
            }
        }
    }

    /// Operations of one cut reference, and every intent that begins so.
    pub(super) fn truncation(
        &mut self,
        operations: &[usize],
        intents: &Rc<[usize]>,
        is_declared: bool,
    ) {
        let component = self.component;
        let free = intents.iter().copied();
        let buckets = Buckets::of(component, free.filter(|&intent| !self.is_taken(intent)));
        let mut lists: HashMap<(crate::money::Currency, i64), Rc<[usize]>> = HashMap::new();
        for &at in operations {
            let row = &component.operations[at].row_data;
            let agreeing = match lists.entry((row.currency, row.amount_minor)) {
                Entry::Occupied(list) => Rc::clone(list.get()),
                Entry::Vacant(place) => {
                    let agreeing = buckets.all(component, at, self.rules);
                    Rc::clone(place.insert(self.by_id(agreeing)))
                }
            };
            match (&**intents, &*agreeing) {
                ([only], [_]) if is_declared && !self.is_taken(*only) => {
                    self.settle(at, *only, Rule::ReferenceTruncated);
                }
                _ if !component.operations[at].moved => {}
                (_, []) if is_declared => self.contest(at, intents, ContestReason::Truncated),
                (_, []) => {}
                _ => self.contest(at, &agreeing, ContestReason::Truncated),
            }
        }
    }
}
