//! Keys: every id and reference of both sides as one small number, and the components that shared keys tie together.
//!
//! Two rows that share a key anywhere (an id, a reference, a parent, an object) belong to one component; nothing outside
//! a component can change a verdict inside it, payout sums excepted. The judge therefore looks at one component at a
//! time, and a component of one operation and one intent is usually settled by a single comparison.

use std::hash::BuildHasher;
use std::rc::Rc;

use hashbrown::{DefaultHashBuilder, HashSet, HashTable};

use super::Snapshot;
use crate::model::operation::OperationKind;

/// A key as a number; 0 = none.
pub(crate) type Key = u32;

/// The keys of one operation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OperationKeys {
    pub(crate) id: Key,
    pub(crate) reference: Key,
    pub(crate) parent: Key,
    pub(crate) object: Key,
    pub(crate) payout: Key,
}

/// The keys of one intent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct IntentKeys {
    pub(crate) id: Key,
    pub(crate) idempotency: Key,
    pub(crate) reference: Key,
    pub(crate) processor: Key,
    pub(crate) parent: Key,
}

impl IntentKeys {
    /// Whether our own reference at the processor may be this key.
    pub(crate) fn is_reference(&self, key: Key) -> bool {
        key != 0 && (self.reference == key || self.id == key || self.idempotency == key)
    }
}

/// All keys of a snapshot.
pub(crate) struct Keys<'a> {
    texts: Vec<&'a str>,
    table: HashTable<Key>,
    hasher: DefaultHashBuilder,
    pub(crate) operations: Vec<OperationKeys>,
    pub(crate) intents: Vec<IntentKeys>,
}

/// Shortest reference that may be taken for the beginning of a longer one where nothing is declared.
const TRUNCATED_CHARS_MIN: usize = 8;

impl<'a> Keys<'a> {
    pub(crate) fn of(snapshot: &Snapshot<'a>) -> Keys<'a> {
        let (operations, intents) = (snapshot.operations, snapshot.intents);
        let mut keys = Keys {
            texts: vec![""],
            table: HashTable::with_capacity(operations.len() + 2 * intents.len()),
            hasher: DefaultHashBuilder::default(),
            operations: Vec::with_capacity(operations.len()),
            intents: Vec::with_capacity(intents.len()),
        };
        for row in 0..operations.len() {
            let text = |span| operations.text.get(span);
            let row = OperationKeys {
                id: keys.intern(text(operations.operation_id[row])),
                reference: keys.intern(text(operations.reference[row])),
                parent: keys.intern(text(operations.parent_id[row])),
                object: keys.intern(text(operations.object_id[row])),
                payout: keys.intern(text(operations.payout_id[row])),
            };
            keys.operations.push(row);
        }
        for row in 0..intents.len() {
            let text = |span| intents.text.get(span);
            let row = IntentKeys {
                id: keys.intern(text(intents.intent_id[row])),
                idempotency: keys.intern(text(intents.idempotency_key[row])),
                reference: keys.intern(text(intents.reference[row])),
                processor: keys.intern(text(intents.processor_ref[row])),
                parent: keys.intern(text(intents.parent_intent_id[row])),
            };
            keys.intents.push(row);
        }
        keys
    }

    /// How many distinct keys there are, the empty one included.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    pub(crate) fn text(&self, key: Key) -> &'a str {
        self.texts[key as usize]
    }

    /// The key of a text, if any row has it.
    pub(crate) fn find(&self, text: &str) -> Option<Key> {
        let text = text.trim();
        let hash = self.hasher.hash_one(text);
        self.table
            .find(hash, |&key| self.texts[key as usize] == text)
            .copied()
    }

    /// White space around a key never counts.
    fn intern(&mut self, text: &'a str) -> Key {
        let text = text.trim();
        if text.is_empty() {
            return 0;
        }
        let Keys {
            texts,
            table,
            hasher,
            ..
        } = self;
        let hash = hasher.hash_one(text);
        *table
            .entry(
                hash,
                |&key| texts[key as usize] == text,
                |&key| hasher.hash_one(texts[key as usize]),
            )
            .or_insert_with(|| {
                let key =
                    Key::try_from(texts.len()).expect("fewer than four billion keys in one batch");
                texts.push(text);
                key
            })
            .into_mut()
    }
}

/// A possibly cut reference: an operation and the intents whose id, key or reference begins with it.
pub(crate) type Truncated = Vec<(usize, Rc<[usize]>)>;

/// Operations whose reference no intent has, and that begins the id, key or reference of some.
pub(crate) fn truncated(
    snapshot: &Snapshot<'_>,
    keys: &Keys<'_>,
    max_chars: Option<usize>,
) -> Truncated {
    let mut is_known = vec![false; keys.len()];
    for intent in &keys.intents {
        for key in [
            intent.id,
            intent.idempotency,
            intent.reference,
            intent.parent,
        ] {
            is_known[key as usize] = true;
        }
    }
    let mut dangling: HashSet<&str> = HashSet::new();
    let mut lengths: Vec<usize> = Vec::new();
    let is_candidate = |row: usize| {
        let key = keys.operations[row].reference;
        let text = keys.text(key);
        let chars = text.chars().count();
        key != 0
            && !is_known[key as usize]
            && !matches!(
                snapshot.operations.kind[row],
                OperationKind::Fee | OperationKind::Other
            )
            && (Some(chars) == max_chars || chars >= TRUNCATED_CHARS_MIN)
    };
    let rows: Vec<usize> = (0..keys.operations.len())
        .filter(|&row| is_candidate(row))
        .collect();
    for &row in &rows {
        let text = keys.text(keys.operations[row].reference);
        if dangling.insert(text) && !lengths.contains(&text.len()) {
            lengths.push(text.len());
        }
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let mut starts: hashbrown::HashMap<&str, Vec<usize>> = hashbrown::HashMap::new();
    for (row, intent) in keys.intents.iter().enumerate() {
        for key in [intent.id, intent.idempotency, intent.reference] {
            let text = keys.text(key);
            for &length in &lengths {
                if let Some(start) = text.get(..length).filter(|_| length < text.len())
                    && let Some(&start) = dangling.get(start)
                {
                    let found = starts.entry(start).or_default();
                    if found.last() != Some(&row) {
                        found.push(row);
                    }
                }
            }
        }
    }
    let starts: hashbrown::HashMap<&str, Rc<[usize]>> = starts
        .into_iter()
        .map(|(start, found)| (start, found.into()))
        .collect();
    rows.into_iter()
        .filter_map(|row| {
            let found = starts.get(keys.text(keys.operations[row].reference))?;
            Some((row, Rc::clone(found)))
        })
        .collect()
}

/// The rows of each component: operations by their index, intents by theirs.
pub(crate) struct Components {
    /// Row numbers, operations first counted from 0, intents from `operations`; grouped by component.
    rows: Vec<u32>,
    /// Where each component starts in `rows`; one more than there are components.
    starts: Vec<u32>,
    operations: usize,
}

impl Components {
    pub(crate) fn of(
        snapshot: &Snapshot<'_>,
        keys: &Keys<'_>,
        truncated: &Truncated,
    ) -> Components {
        let operations = keys.operations.len();
        let total = operations + keys.intents.len();
        let mut sets = Sets::new(total);
        let mut owner: Vec<u32> = vec![u32::MAX; keys.len()];
        let mut claim = |sets: &mut Sets, row: usize, key: Key| {
            if key == 0 {
                return;
            }
            let row = index(row);
            let first = &mut owner[key as usize];
            if *first == u32::MAX {
                *first = row;
            } else {
                sets.union(*first, row);
            }
        };
        for (row, keys) in keys.operations.iter().enumerate() {
            for key in [keys.id, keys.reference, keys.parent, keys.object] {
                claim(&mut sets, row, key);
            }
        }
        for (row, keys) in keys.intents.iter().enumerate() {
            for key in [
                keys.id,
                keys.idempotency,
                keys.reference,
                keys.processor,
                keys.parent,
            ] {
                claim(&mut sets, operations + row, key);
            }
        }
        for (row, link) in snapshot.links.iter().enumerate() {
            if let Some(link) = link {
                sets.union(index(row), index(operations + link.intent));
            }
        }
        // Rows of one cut reference share it, so that the first of them ties its candidates to all.
        let mut tied: HashSet<Key> = HashSet::new();
        for (row, intents) in truncated {
            if tied.insert(keys.operations[*row].reference) {
                for intent in intents.iter() {
                    sets.union(index(*row), index(operations + intent));
                }
            }
        }
        // Counting sort by root: components in order of their first row, rows in order inside.
        let mut component_of: Vec<u32> = vec![u32::MAX; total];
        let mut sizes: Vec<u32> = Vec::new();
        let mut member: Vec<u32> = Vec::with_capacity(total);
        for row in 0..index(total) {
            let root = sets.find(row) as usize;
            if component_of[root] == u32::MAX {
                component_of[root] = index(sizes.len());
                sizes.push(0);
            }
            let component = component_of[root];
            sizes[component as usize] += 1;
            member.push(component);
        }
        let mut starts: Vec<u32> = Vec::with_capacity(sizes.len() + 1);
        let mut at = 0;
        for size in &sizes {
            starts.push(at);
            at += size;
        }
        starts.push(at);
        let mut next = starts.clone();
        let mut rows = vec![0; total];
        for (row, component) in member.into_iter().enumerate() {
            let slot = &mut next[component as usize];
            rows[*slot as usize] = index(row);
            *slot += 1;
        }
        Components {
            rows,
            starts,
            operations,
        }
    }

    /// Each component as its operations and its intents.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u32], IntentRows<'_>)> {
        self.starts.windows(2).map(|ends| {
            let rows = &self.rows[ends[0] as usize..ends[1] as usize];
            let split = rows.partition_point(|&row| (row as usize) < self.operations);
            (
                &rows[..split],
                IntentRows {
                    rows: &rows[split..],
                    operations: self.operations,
                },
            )
        })
    }
}

/// The intents of a component.
#[derive(Clone, Copy)]
pub(crate) struct IntentRows<'a> {
    rows: &'a [u32],
    operations: usize,
}

impl<'a> IntentRows<'a> {
    pub(crate) fn len(self) -> usize {
        self.rows.len()
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = usize> + 'a {
        self.rows
            .iter()
            .map(move |&row| row as usize - self.operations)
    }
}

fn index(row: usize) -> u32 {
    u32::try_from(row).expect("fewer than four billion rows in one batch")
}

struct Sets {
    parent: Vec<u32>,
}

impl Sets {
    fn new(total: usize) -> Sets {
        Sets {
            parent: (0..index(total)).collect(),
        }
    }

    fn find(&mut self, mut row: u32) -> u32 {
        while self.parent[row as usize] != row {
            let above = self.parent[self.parent[row as usize] as usize];
            self.parent[row as usize] = above;
            row = above;
        }
        row
    }

    fn union(&mut self, left: u32, right: u32) {
        let (left, right) = (self.find(left), self.find(right));
        // The smaller row becomes the root, so that the outcome does not depend on the order of unions.
        if left != right {
            let (low, high) = (left.min(right), left.max(right));
            self.parent[high as usize] = low;
        }
    }
}
