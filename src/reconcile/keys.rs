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
use crate::model::text::Text;

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
///
/// Most of the time of a large comparison is waiting for memory while texts are looked up, so the texts are divided by a
/// bit of their hash: each half has a table, and a thread, of its own. Half 0 has the even keys, half 1 the odd ones. What
/// number a key has means nothing; only whether two keys are equal does.
pub(crate) struct Keys<'a> {
    hasher: DefaultHashBuilder,
    halves: [Half<'a>; 2],
    pub(crate) operations: Vec<OperationKeys>,
    pub(crate) intents: Vec<IntentKeys>,
}

/// The texts whose hash falls into one half.
struct Half<'a> {
    /// 0 or 1.
    bit: u32,
    /// Distinct texts; the first is the empty one, which is in neither half.
    texts: Vec<&'a str>,
    /// Positions in `texts`.
    table: HashTable<u32>,
}

/// The texts of some rows, five of each, and the keys that they get.
#[derive(Default)]
struct Block<'a> {
    /// Texts without white space at their ends, and their hashes.
    texts: Vec<(&'a str, u64)>,
    /// For each text, 0 = none or one of the other half.
    keys: Vec<Key>,
}

impl<'a> Block<'a> {
    /// White space around a key never counts.
    fn push(&mut self, hasher: &DefaultHashBuilder, text: &'a str) {
        let text = text.trim();
        let hash = if text.is_empty() {
            0
        } else {
            hasher.hash_one(text)
        };
        self.texts.push((text, hash));
    }

    fn rows(&self) -> impl Iterator<Item = [Key; KEYS_PER_ROW]> {
        self.keys.as_chunks().0.iter().copied()
    }

    fn clear(&mut self) {
        self.texts.clear();
        self.keys.clear();
    }
}

/// How many texts of a row may be keys.
const KEYS_PER_ROW: usize = 5;
/// Rows that are looked up together.
const BLOCK_ROWS: usize = 64;
/// From this many rows on two threads are faster than one.
const ROWS_PER_THREAD_MIN: usize = 20_000;

/// Shortest reference that may be taken for the beginning of a longer one where nothing is declared.
const TRUNCATED_CHARS_MIN: usize = 8;

impl<'a> Keys<'a> {
    pub(crate) fn of(snapshot: &Snapshot<'a>) -> Keys<'a> {
        let hasher = DefaultHashBuilder::default();
        let rows = snapshot.operations.len() + snapshot.intents.len();
        let half = |bit| Half::of(snapshot, &hasher, bit);
        let (mut even, odd) = if rows < ROWS_PER_THREAD_MIN {
            (half(0), half(1))
        } else {
            std::thread::scope(|scope| {
                let odd = scope.spawn(|| half(1));
                (half(0), odd.join().expect("interning does not panic"))
            })
        };
        for (own, other) in even.1.iter_mut().zip(odd.1) {
            own.id |= other.id;
            own.reference |= other.reference;
            own.parent |= other.parent;
            own.object |= other.object;
            own.payout |= other.payout;
        }
        for (own, other) in even.2.iter_mut().zip(odd.2) {
            own.id |= other.id;
            own.idempotency |= other.idempotency;
            own.reference |= other.reference;
            own.processor |= other.processor;
            own.parent |= other.parent;
        }
        Keys {
            hasher,
            halves: [even.0, odd.0],
            operations: even.1,
            intents: even.2,
        }
    }

    /// One more than the largest key.
    pub(crate) fn len(&self) -> usize {
        2 * self
            .halves
            .iter()
            .map(|half| half.texts.len())
            .max()
            .unwrap_or(0)
    }

    pub(crate) fn text(&self, key: Key) -> &'a str {
        self.halves[key as usize & 1].texts[key as usize >> 1]
    }

    /// The key of a text, if any row has it.
    pub(crate) fn find(&self, text: &str) -> Option<Key> {
        let text = text.trim();
        let hash = self.hasher.hash_one(text);
        self.halves[half_of(hash) as usize].find(hash, text)
    }
}

/// A bit of a hash that the tables do not look at: they place by the lowest bits and compare by the highest seven.
fn half_of(hash: u64) -> u32 {
    u32::from(hash >> 48 & 1 == 1)
}

impl<'a> Half<'a> {
    /// Interns the texts of one half; the rows have 0 where a text belongs to the other.
    fn of(
        snapshot: &Snapshot<'a>,
        hasher: &DefaultHashBuilder,
        bit: u32,
    ) -> (Half<'a>, Vec<OperationKeys>, Vec<IntentKeys>) {
        let (operations, intents) = (snapshot.operations, snapshot.intents);
        // An id and a reference of each operation, an id and a key of each intent; half of them are shared.
        let expected = operations.len() + intents.len();
        let mut half = Half {
            bit,
            texts: Vec::with_capacity(expected),
            table: HashTable::with_capacity(expected),
        };
        half.texts.push("");
        let mut operation_keys = vec![OperationKeys::default(); operations.len()];
        let mut block = Block::default();
        for (at, keys) in operation_keys.chunks_mut(BLOCK_ROWS).enumerate() {
            let first = at * BLOCK_ROWS;
            for row in first..first + keys.len() {
                // A conversion names the payment whose money it turns into other money; it says nothing about it.
                let parent = if operations.kind[row] == OperationKind::Conversion {
                    Text::default()
                } else {
                    operations.parent_id[row]
                };
                for span in [
                    operations.operation_id[row],
                    operations.reference[row],
                    parent,
                    operations.object_id[row],
                    operations.payout_id[row],
                ] {
                    block.push(hasher, operations.text.get(span));
                }
            }
            half.intern(hasher, &mut block);
            for (keys, [id, reference, parent, object, payout]) in keys.iter_mut().zip(block.rows())
            {
                *keys = OperationKeys {
                    id,
                    reference,
                    parent,
                    object,
                    payout,
                };
            }
            block.clear();
        }
        let mut intent_keys = vec![IntentKeys::default(); intents.len()];
        for (at, keys) in intent_keys.chunks_mut(BLOCK_ROWS).enumerate() {
            let first = at * BLOCK_ROWS;
            for row in first..first + keys.len() {
                for span in [
                    intents.intent_id[row],
                    intents.idempotency_key[row],
                    intents.reference[row],
                    intents.processor_ref[row],
                    intents.parent_intent_id[row],
                ] {
                    block.push(hasher, intents.text.get(span));
                }
            }
            half.intern(hasher, &mut block);
            for (keys, [id, idempotency, reference, processor, parent]) in
                keys.iter_mut().zip(block.rows())
            {
                *keys = IntentKeys {
                    id,
                    idempotency,
                    reference,
                    processor,
                    parent,
                };
            }
            block.clear();
        }
        (half, operation_keys, intent_keys)
    }

    /// Makes keys of the texts of a block.
    ///
    /// Each look-up waits for memory in three places one after the other: the table, the text's place, the text. All of
    /// them are touched first, so that the waits of a whole block overlap.
    fn intern(&mut self, hasher: &DefaultHashBuilder, block: &mut Block<'a>) {
        let bit = self.bit;
        let is_own = |text: &str, hash: u64| !text.is_empty() && half_of(hash) == bit;
        let mut touched = 0;
        for &(text, hash) in &block.texts {
            if is_own(text, hash)
                && let Some(&at) = self.table.find(hash, |_| true)
            {
                touched ^= self.texts[at as usize]
                    .as_bytes()
                    .first()
                    .copied()
                    .unwrap_or(0);
            }
        }
        std::hint::black_box(touched);
        for &(text, hash) in &block.texts {
            let key = if is_own(text, hash) {
                self.key(hasher, text, hash)
            } else {
                0
            };
            block.keys.push(key);
        }
    }

    fn key(&mut self, hasher: &DefaultHashBuilder, text: &'a str, hash: u64) -> Key {
        let Half { texts, table, bit } = self;
        let position = *table
            .entry(
                hash,
                |&at| texts[at as usize] == text,
                |&at| hasher.hash_one(texts[at as usize]),
            )
            .or_insert_with(|| {
                let at = index(texts.len());
                texts.push(text);
                at
            })
            .get();
        2 * position + *bit
    }

    fn find(&self, hash: u64, text: &str) -> Option<Key> {
        let position = self
            .table
            .find(hash, |&at| self.texts[at as usize] == text)?;
        Some(2 * position + self.bit)
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

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// One component as its operations and its intents.
    pub(crate) fn get(&self, component: usize) -> (&[u32], IntentRows<'_>) {
        let rows = self.starts[component] as usize..self.starts[component + 1] as usize;
        let rows = &self.rows[rows];
        let split = rows.partition_point(|&row| (row as usize) < self.operations);
        let intents = IntentRows {
            rows: &rows[split..],
            operations: self.operations,
        };
        (&rows[..split], intents)
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
    u32::try_from(row).expect("fewer than four billion rows and keys in one batch")
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
