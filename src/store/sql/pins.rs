//! Whose account a source reads: remembered with the first commit, let go by hand only.

use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine};
use super::lease;
use crate::exit::Failure;
use crate::model::run::Pin;
use crate::store::contract::{Claim, Note};

const WHICH_PIN: Sql =
    sql!("select account, declared, mode from pins where source = $1 and mode <> ''");

const PUT_PIN: Sql = sql!(
    "insert into pins (source, account, declared, mode) values ($1, $2, $3, $4) \
    on conflict (source) do update set account = excluded.account, declared = excluded.declared, \
    mode = excluded.mode"
);

const NOTE_PIN_CHANGE: Sql = sql!(
    "insert into pin_changes (source, change_no, account, declared, mode, reason, changed_by, changed_at) \
    select $1, 1 + (select coalesce(max(change_no), 0) from pin_changes where source = $1), \
    account, declared, mode, $2, $3, $4 from pins where source = $1 and mode <> ''"
);

/// The pin of a source.
pub(super) async fn pin(session: &mut impl Engine, source: &str) -> Result<Option<Pin>, Failure> {
    let row = session
        .first("reading a pin", WHICH_PIN, &[source.into()])
        .await?;
    row.map(|row| {
        Ok(Pin {
            account: row.text("account")?,
            declared: row.text("declared")?,
            mode: row.text("mode")?,
        })
    })
    .transpose()
}

/// Remembers a pin.
pub(super) async fn put(session: &mut impl Engine, source: &str, pin: &Pin) -> Result<(), Failure> {
    session
        .write(
            "pinning a source",
            PUT_PIN,
            &[
                source.into(),
                (&pin.account).into(),
                (&pin.declared).into(),
                (&pin.mode).into(),
            ],
        )
        .await?;
    Ok(())
}

/// Lets a pin go, and answers what it was.
pub(super) async fn unpin(
    session: &mut impl Engine,
    claim: &Claim,
    note: &Note<'_>,
) -> Result<Option<Pin>, Failure> {
    lease::assert_ours(session, claim).await?;
    let source = claim.source.as_str();
    let known = pin(session, source).await?;
    if known.is_some() {
        session
            .write(
                "letting a pin go",
                NOTE_PIN_CHANGE,
                &[
                    source.into(),
                    note.reason.into(),
                    note.by.into(),
                    note.at.0.into(),
                ],
            )
            .await?;
        put(session, source, &Pin::default()).await?;
    }
    Ok(known)
}
