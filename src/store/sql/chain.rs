//! The chain of the ledger: every step of a repair (proposal, approval, writing, end) and every word of a person about a
//! break (acknowledgement, close) has an entry that is sealed with the entry before it. Whoever changes, takes out or slips
//! in a step afterwards breaks it; whoever cuts its end is found by a head that a report told earlier.
//!
//! # Decisions
//!
//! - An entry holds hashes; what they are of stands in the ledger itself, so nothing is written twice and nothing of it can
//!   be changed apart.
//! - The key of the position decides between two that append at once. The row with the head only makes the second one wait
//!   for the first, so that it need not do all of its transaction again. It is taken last in a transaction.
//! - A store that is older than the chain begins it with the first step after its upgrade: entry 0 says how many steps are
//!   older, so that none can be slipped in among them.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};

use super::dialect::{Bulk, Sql, sql};
use super::engine::{Columns, Engine, KEYS_MAX, Values, keys};
use crate::exit::{Exit, Failure};
use crate::store::contract::{LedgerHead, LedgerProof};

const HOLD_HEAD: Sql = sql!("select position from chain_head where only_row = 1" for_update);

const HEAD: Sql = sql!("select position, hash from chain_head where only_row = 1");

const MOVE_HEAD: Sql =
    sql!("update chain_head set position = $1, hash = $2 where only_row = 1 and position = $3");

const ADD_ENTRIES: Bulk = Bulk {
    into: "chain (position, what, subject_id, event_no, content_hash, hash)",
    columns: 6,
    tail: Sql::same(""),
    is_new: false,
};

const COUNTS: Sql = sql!(
    "select (select count(*) from repair_events) as repairs, \
     (select count(*) from break_events where what in ('acknowledged', 'closed')) as breaks"
);

const STEPS_OF_REPAIRS: Sql = sql!(
    "select e.repair_id as subject_id, e.event_no, e.state, e.done_at, e.done_by, e.run_id, e.note, \
     r.break_id, r.source, r.account, r.class, r.action, r.scope, r.intent_id, r.operation_id, \
     r.from_status, r.from_processor_ref, r.to_kind, r.to_status, r.to_processor_ref, \
     r.to_parent_intent_id, r.to_amount_minor, r.to_currency, r.planned_version, r.occurred_at, \
     r.evidence, r.run_id as written_by, r.written_at, r.expires_at, r.idempotency_key \
     from repair_events as e join repairs as r on r.repair_id = e.repair_id \
     where e.repair_id " [in 1]
);

const WORDS_ABOUT_BREAKS: Sql = sql!(
    "select break_id as subject_id, event_no, what, done_at, done_by, run_id, note, closed_as, until, \
     evidence from break_events where what in ('acknowledged', 'closed') and break_id " [in 1]
);

const ENTRIES_AFTER: Sql = sql!(
    "select position, what, subject_id, event_no, content_hash, hash from chain \
     where position > $1 and position <= $2 order by position limit 500"
);

const HOW_MANY: Sql = sql!("select count(*) as entries from chain");

/// What an entry is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum What {
    Begin,
    Repair,
    Break,
}

impl What {
    const fn as_str(self) -> &'static str {
        match self {
            What::Begin => "begin",
            What::Repair => "repair",
            What::Break => "break",
        }
    }

    fn from_word(word: &str) -> Option<What> {
        [What::Begin, What::Repair, What::Break]
            .into_iter()
            .find(|what| what.as_str() == word)
    }
}

/// Steps that a transaction has added and that the chain does not know yet, in their order.
#[derive(Debug, Default)]
pub(super) struct Added {
    steps: Vec<(What, String, i64)>,
}

impl Added {
    /// A step of a repair.
    pub(super) fn repair(&mut self, repair_id: impl Into<String>, event_no: i64) {
        self.steps.push((What::Repair, repair_id.into(), event_no));
    }

    /// A person's word about a break.
    pub(super) fn word(&mut self, break_id: impl Into<String>, event_no: i64) {
        self.steps.push((What::Break, break_id.into(), event_no));
    }

    fn ids(&self, what: What) -> Vec<&str> {
        let mut seen = HashSet::new();
        self.steps
            .iter()
            .filter(|(of, id, _)| *of == what && seen.insert(id.as_str()))
            .map(|(_, id, _)| id.as_str())
            .collect()
    }
}

/// Hash of parts, each with its length, so that no two lists give the same bytes. 64 hex digits.
fn hash_of(parts: &[&str]) -> String {
    use std::fmt::Write;
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part.as_bytes());
    }
    let mut text = String::with_capacity(64);
    for byte in hasher.finalize() {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// An entry as it is stored.
struct Entry {
    position: i64,
    what: String,
    subject_id: String,
    event_no: i64,
    content_hash: String,
    hash: String,
}

impl Entry {
    fn sealed(
        before: &str,
        position: i64,
        what: What,
        subject_id: &str,
        event_no: i64,
        content_hash: String,
    ) -> Entry {
        let mut entry = Entry {
            position,
            what: what.as_str().to_owned(),
            subject_id: subject_id.to_owned(),
            event_no,
            content_hash,
            hash: String::new(),
        };
        entry.hash = entry.seal(before);
        entry
    }

    fn seal(&self, before: &str) -> String {
        hash_of(&[
            "entry",
            before,
            &self.position.to_string(),
            &self.what,
            &self.subject_id,
            &self.event_no.to_string(),
            &self.content_hash,
        ])
    }

    fn read(row: &impl Columns) -> Result<Entry, Failure> {
        Ok(Entry {
            position: row.int("position")?,
            what: row.text("what")?,
            subject_id: row.text("subject_id")?,
            event_no: row.int("event_no")?,
            content_hash: row.text("content_hash")?,
            hash: row.text("hash")?,
        })
    }
}

type Contents = HashMap<(What, String, i64), String>;

/// Hashes of every step of these repairs and of every word about these breaks, as the ledger has them now.
async fn contents(
    session: &mut impl Engine,
    repairs: &[&str],
    breaks: &[&str],
) -> Result<Contents, Failure> {
    const REPAIR_TEXTS: [&str; 20] = [
        "state",
        "done_by",
        "run_id",
        "note",
        "break_id",
        "source",
        "account",
        "class",
        "action",
        "scope",
        "intent_id",
        "operation_id",
        "from_status",
        "from_processor_ref",
        "to_kind",
        "to_status",
        "to_processor_ref",
        "to_parent_intent_id",
        "to_currency",
        "evidence",
    ];
    const BREAK_TEXTS: [&str; 6] = ["what", "done_by", "run_id", "note", "closed_as", "evidence"];
    let doing = "reading the ledger";
    let mut found = Contents::new();
    for chunk in repairs.chunks(KEYS_MAX) {
        for row in &session
            .rows(doing, STEPS_OF_REPAIRS, &[keys(chunk)])
            .await?
        {
            let numbers = ["done_at", "planned_version", "occurred_at", "written_at"];
            let mut hash = content(row, &REPAIR_TEXTS, &numbers, "to_amount_minor")?;
            hash = hash_of(&[&hash, &row.text("written_by")?]);
            // Only a proposal to send again has these; what was sealed before there were any keeps its seal.
            let key = row.text("idempotency_key")?;
            if let (Some(until), false) = (row.maybe("expires_at")?, key.is_empty()) {
                hash = hash_of(&[&hash, &until.to_string(), &key]);
            }
            let key = (What::Repair, row.text("subject_id")?, row.int("event_no")?);
            found.insert(key, hash);
        }
    }
    for chunk in breaks.chunks(KEYS_MAX) {
        let question = WORDS_ABOUT_BREAKS;
        for row in &session.rows(doing, question, &[keys(chunk)]).await? {
            let hash = content(row, &BREAK_TEXTS, &["done_at"], "until")?;
            let key = (What::Break, row.text("subject_id")?, row.int("event_no")?);
            found.insert(key, hash);
        }
    }
    Ok(found)
}

fn content(
    row: &impl Columns,
    texts: &[&str],
    numbers: &[&str],
    maybe: &str,
) -> Result<String, Failure> {
    let mut parts = vec![row.text("subject_id")?, row.int("event_no")?.to_string()];
    for column in texts {
        parts.push(row.text(column)?);
    }
    for column in numbers {
        parts.push(row.int(column)?.to_string());
    }
    parts.push(
        row.maybe(maybe)?
            .map_or_else(String::new, |number| number.to_string()),
    );
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    Ok(hash_of(&parts))
}

/// Seals the steps that this transaction has added. The last thing that it does.
pub(super) async fn append(session: &mut impl Engine, added: &Added) -> Result<(), Failure> {
    let doing = "sealing the ledger";
    if added.steps.is_empty() {
        return Ok(());
    }
    session.hold(doing, HOLD_HEAD, &[]).await?;
    let head = session.one(doing, HEAD, &[]).await?;
    let (from, mut before) = (head.int("position")?, head.text("hash")?);
    let mut entries = Vec::with_capacity(added.steps.len() + 1);
    let mut position = from;
    if from < 0 {
        let counts = session.one(doing, COUNTS, &[]).await?;
        let of = |what| added.steps.iter().filter(|(of, ..)| *of == what).count();
        let older = |column: &str, what| -> Result<i64, Failure> {
            let new = i64::try_from(of(what)).expect("steps of one transaction");
            Ok(counts.int(column)? - new)
        };
        let older = format!(
            "{} {}",
            older("repairs", What::Repair)?,
            older("breaks", What::Break)?
        );
        position = 0;
        let hash = hash_of(&[&older]);
        entries.push(Entry::sealed(
            &before,
            position,
            What::Begin,
            &older,
            0,
            hash,
        ));
        before.clone_from(&entries[0].hash);
    }
    let found = contents(session, &added.ids(What::Repair), &added.ids(What::Break)).await?;
    for (what, id, event_no) in &added.steps {
        let hash = found.get(&(*what, id.clone(), *event_no)).ok_or_else(|| {
            let which = format!("step {event_no} of {} {id}", what.as_str());
            Failure::new(Exit::Internal, format!("{which} was not written"))
        })?;
        position += 1;
        let entry = Entry::sealed(&before, position, *what, id, *event_no, hash.clone());
        before.clone_from(&entry.hash);
        entries.push(entry);
    }
    session
        .write_many(doing, &ADD_ENTRIES, entries.len(), |at, values| {
            let entry = &entries[at];
            values
                .int(entry.position)
                .text(&entry.what)
                .text(&entry.subject_id)
                .int(entry.event_no)
                .text(&entry.content_hash)
                .text(&entry.hash);
        })
        .await?;
    let moved = session
        .write(
            doing,
            MOVE_HEAD,
            &[position.into(), (&before).into(), from.into()],
        )
        .await?;
    if moved == 1 {
        return Ok(());
    }
    Err(super::lost_race("the chain of the ledger grew"))
}

/// Where the chain ends.
pub(super) async fn head(session: &mut impl Engine) -> Result<LedgerHead, Failure> {
    let row = session.one("reading the ledger", HEAD, &[]).await?;
    Ok(LedgerHead {
        entries: row.int("position")?.max(0).unsigned_abs(),
        hash: row.text("hash")?,
    })
}

/// How often a proof begins again, since somebody appended meanwhile.
const PROOF_TRIES: u32 = 5;

/// Proves the chain from its first entry to its head, and that it knows every step of the ledger.
pub(super) async fn prove(session: &mut impl Engine) -> Result<LedgerProof, Failure> {
    for _ in 0..PROOF_TRIES {
        let before = head(session).await?;
        let proof = prove_once(session).await?;
        if head(session).await? == before {
            return proof.map_err(|what| broken(&what));
        }
    }
    Err(Failure::new(
        Exit::Temporary,
        "the ledger kept growing while it was being proved",
    )
    .remedy("try again when no run is at work"))
}

fn broken(what: &str) -> Failure {
    Failure::new(
        Exit::Internal,
        format!("the chain of the ledger is broken: {what}"),
    )
    .why("somebody changed the ledger past paysweep, or the store was damaged")
    .remedy("compare with a backup; reports of earlier runs hold the heads that the chain had then")
}

async fn prove_once(session: &mut impl Engine) -> Result<Result<LedgerProof, String>, Failure> {
    let doing = "proving the ledger";
    let row = session.one(doing, HEAD, &[]).await?;
    let (last, head_hash) = (row.int("position")?, row.text("hash")?);
    let stored = session.one(doing, HOW_MANY, &[]).await?.int("entries")?;
    let counts = session.one(doing, COUNTS, &[]).await?;
    let (repairs, breaks) = (counts.int("repairs")?, counts.int("breaks")?);
    if last < 0 {
        return Ok(if stored == 0 && head_hash.is_empty() {
            Ok(LedgerProof {
                head: LedgerHead {
                    entries: 0,
                    hash: String::new(),
                },
                older: (repairs + breaks).unsigned_abs(),
            })
        } else {
            Err("it has entries, and its head says that there is none".to_owned())
        });
    }
    let mut walk = Walk::default();
    let mut position = -1;
    while position < last {
        let rows = session
            .rows(doing, ENTRIES_AFTER, &[position.into(), last.into()])
            .await?;
        let entries: Vec<Entry> = rows.iter().map(Entry::read).collect::<Result<_, _>>()?;
        let of = |what: What| -> Vec<&str> {
            let mut seen = HashSet::new();
            entries
                .iter()
                .filter(|it| it.what == what.as_str() && seen.insert(it.subject_id.as_str()))
                .map(|it| it.subject_id.as_str())
                .collect()
        };
        let found = contents(session, &of(What::Repair), &of(What::Break)).await?;
        if entries.is_empty() {
            return Ok(Err(format!("entry {} is gone", position + 1)));
        }
        for entry in &entries {
            if let Err(what) = walk.step(entry, position + 1, &found) {
                return Ok(Err(what));
            }
            position = entry.position;
        }
    }
    Ok(walk.end(last, &head_hash, stored, (repairs, breaks)))
}

/// What is known on the way along the chain.
#[derive(Default)]
struct Walk {
    before: String,
    older: (i64, i64),
    repairs: i64,
    breaks: i64,
}

impl Walk {
    fn step(&mut self, entry: &Entry, wanted: i64, found: &Contents) -> Result<(), String> {
        let at = format!("entry {wanted}");
        if entry.position != wanted {
            return Err(format!("{at} is gone"));
        }
        let about = format!(
            "{at} ({} {}, step {})",
            entry.what, entry.subject_id, entry.event_no
        );
        if entry.hash != entry.seal(&self.before) {
            return Err(format!(
                "{about} does not follow from the one before it: it was changed, or what stood before it was"
            ));
        }
        let what =
            What::from_word(&entry.what).ok_or_else(|| format!("{about} is of no known kind"))?;
        match what {
            What::Begin => {
                let older = entry
                    .subject_id
                    .split_once(' ')
                    .and_then(|(repairs, breaks)| {
                        Some((repairs.parse().ok()?, breaks.parse().ok()?))
                    });
                self.older = older
                    .filter(|_| wanted == 0)
                    .ok_or_else(|| format!("{about} is no beginning"))?;
            }
            What::Repair | What::Break => {
                let key = (what, entry.subject_id.clone(), entry.event_no);
                match found.get(&key) {
                    None => {
                        return Err(format!(
                            "the step that {about} stands for is gone from the ledger"
                        ));
                    }
                    Some(hash) if *hash != entry.content_hash => {
                        return Err(format!(
                            "the step that {about} stands for was changed in the ledger"
                        ));
                    }
                    Some(_) => {}
                }
                if what == What::Repair {
                    self.repairs += 1;
                } else {
                    self.breaks += 1;
                }
            }
        }
        self.before.clone_from(&entry.hash);
        Ok(())
    }

    fn end(
        self,
        last: i64,
        head_hash: &str,
        stored: i64,
        (repairs, breaks): (i64, i64),
    ) -> Result<LedgerProof, String> {
        if self.before != head_hash {
            return Err(format!("its head is not that of entry {last}"));
        }
        if stored != last + 1 {
            return Err(format!(
                "{stored} entries are stored, and its head says {}",
                last + 1
            ));
        }
        for (name, known, there) in [
            ("steps of repairs", self.older.0 + self.repairs, repairs),
            ("words about breaks", self.older.1 + self.breaks, breaks),
        ] {
            if known != there {
                return Err(format!(
                    "it knows {known} {name}, and the ledger holds {there}"
                ));
            }
        }
        Ok(LedgerProof {
            head: LedgerHead {
                entries: last.unsigned_abs(),
                hash: self.before,
            },
            older: (self.older.0 + self.older.1).unsigned_abs(),
        })
    }
}
