//! The promise of a table of our own that is read in place, cut at the level of intents: what a run asks of it, not which
//! SQL answers.
//!
//! - It is never written, and nothing about it is changed: every question is asked in a transaction that only reads.
//! - Between [`IntentTable::begin`] and [`IntentTable::end`] every answer is of one moment.
//! - Every row that a question concerns is answered. One that cannot be used is an intent with [`Intent::invalid`] set,
//!   with its evidence; a row without an id bears one made of its content. Nothing is left out, and no value of a row
//!   makes the reading fail.
//! - An id stands once in what is read. Rows that share it are one intent that cannot be used.
//!
//! [`Intent::invalid`]: crate::model::intent::Intent::invalid

use std::collections::BTreeMap;

use crate::exit::Failure;
use crate::model::intent::Intents;
use crate::time::Instant;

/// Rows of our own, where they live.
#[allow(
    async_fn_in_trait,
    reason = "one thread drives everything: no caller needs the futures to be Send"
)]
pub trait IntentTable {
    /// Opens one consistent picture of the table. A row whose creation cannot be told bears `stand_in` in its place.
    async fn begin(&mut self, stand_in: Instant) -> Result<(), Failure>;

    /// Reads the rows that were created or changed since an instant, those that are open, whatever their age, and those whose
    /// creation cannot be told. Earlier ones may be among them.
    async fn since(&mut self, since: Instant) -> Result<(), Failure>;

    /// Reads the rows whose transaction had not ended when the fence of this name was put up. A name that is not known is
    /// none of this table.
    async fn behind(&mut self, fences: &BTreeMap<String, u64>) -> Result<(), Failure>;

    /// The fence of the present picture, where the table has any: every transaction before it has ended, so that its rows
    /// were there to be read. It is to be kept with what was read, and handed to the next one.
    fn fence(&self) -> Option<(String, u64)>;

    /// Reads the rows of which an id, key or reference is one of these, whatever their age.
    async fn with_keys(&mut self, keys: &[&str]) -> Result<(), Failure>;

    /// What has been read since the picture was opened, in the order of reading. A row of it never moves.
    fn rows(&self) -> &Intents;

    /// Lets the picture go and hands over what was read.
    async fn end(&mut self) -> Result<Intents, Failure>;

    /// Until when every row can be seen: one that was created before is not hidden by a transaction that is still open.
    /// `None` = nothing is known to be hidden.
    fn settled_until(&self) -> Option<Instant>;
}
