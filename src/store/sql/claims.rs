//! Repairs on their way into a table of the company's own: claimed before, settled after. One claim at a time, for as long as
//! its lease by this database's clock; an epoch tells who comes back too late.

use std::collections::HashSet;

use super::chain::{self, Added};
use super::dialect::{Sql, sql};
use super::engine::{Columns, Engine};
use super::intents::Writing;
use super::repairs::{carry_out_best, event};
use super::{breaks, ledger};
use crate::exit::{Exit, Failure};
use crate::meter::Meter;
use crate::model::repair::RepairState;
use crate::store::contract::{Note, RepairClaim, RepairDetail, Settlement};
use crate::time::{Instant, Span};

const TAKE: Sql = sql!(
    "insert into repair_claims (repair_id, epoch, run_id, locked_until) \
     values ($1, 1, $2, " now " + $3) on conflict (repair_id) do update set \
     epoch = repair_claims.epoch + 1, run_id = excluded.run_id, locked_until = excluded.locked_until \
     where repair_claims.locked_until is null or repair_claims.locked_until < " now " returning epoch"
);

const WHO_HAS_IT: Sql = sql!(
    "select run_id, coalesce(locked_until, 0) as locked_until from repair_claims where repair_id = $1"
);

const PROLONG: Sql = sql!(
    "update repair_claims set locked_until = " now " + $3 \
     where repair_id = $1 and epoch = $2 and locked_until is not null"
);

const GIVE_BACK: Sql = sql!(
    "update repair_claims set locked_until = null \
     where repair_id = $1 and epoch = $2 and locked_until is not null"
);

/// Takes an approved repair, or one whose holder let it go.
pub(super) async fn claim(
    session: &mut impl Engine,
    id: &str,
    run_id: &str,
    note: &Note<'_>,
    ttl: Span,
) -> Result<RepairClaim, Failure> {
    let doing = "claiming a repair";
    let found = ledger::detail(session, id).await?;
    let id = found.item.id.clone();
    if !matches!(
        found.item.state,
        RepairState::Approved | RepairState::Claimed
    ) {
        return Err(Failure::rejected(format!(
            "repair {id} is {}; only an approved one is applied",
            found.item.state
        )));
    }
    let taken = session
        .first(doing, TAKE, &[(&id).into(), run_id.into(), ttl.0.into()])
        .await?;
    let Some(taken) = taken else {
        let holder = session.one(doing, WHO_HAS_IT, &[(&id).into()]).await?;
        let until = Instant(holder.int("locked_until")?);
        let who = match holder.text("run_id")?.as_str() {
            "" => "a person".to_owned(),
            run => format!("run {run}"),
        };
        return Err(Failure::new(
            Exit::Locked,
            format!("repair {id} is being written by {who}, until {until} at the latest"),
        )
        .remedy("try again then"));
    };
    let epoch = taken.int("epoch")?;
    let how = format!("claim {epoch}");
    let said = Note {
        reason: &how,
        ..*note
    };
    let mut added = Added::default();
    event(
        session,
        &found,
        RepairState::Claimed,
        &said,
        run_id,
        &mut added,
    )
    .await?;
    chain::append(session, &added).await?;
    Ok(RepairClaim {
        repair: ledger::detail(session, &id).await?,
        epoch,
        run_id: run_id.to_owned(),
    })
}

/// Holds a claim for longer.
pub(super) async fn renew(
    session: &mut impl Engine,
    claim: &RepairClaim,
    ttl: Span,
) -> Result<(), Failure> {
    let id = &claim.repair.item.id;
    let values = [id.into(), claim.epoch.into(), ttl.0.into()];
    match session.write("renewing a claim", PROLONG, &values).await? {
        0 => Err(taken_over(id)),
        _ => Ok(()),
    }
}

fn taken_over(id: &str) -> Failure {
    Failure::new(
        Exit::Locked,
        format!("repair {id} was taken over by somebody else: this claim is fenced"),
    )
    .remedy("look at it with `paysweep repairs show`")
}

/// Records how it went, and gives the claim back.
pub(super) async fn settle(
    session: &mut impl Engine,
    claim: &RepairClaim,
    how: &Settlement<'_>,
    note: &Note<'_>,
) -> Result<RepairDetail, Failure> {
    let found = &claim.repair;
    let id = &found.item.id;
    let given_back = session
        .write(
            "settling a repair",
            GIVE_BACK,
            &[id.into(), claim.epoch.into()],
        )
        .await?;
    if given_back == 0 {
        return Err(taken_over(id));
    }
    let mut added = Added::default();
    let nothing = HashSet::new();
    let run_id = claim.run_id.as_str();
    let state = match how {
        Settlement::Written { closes } => {
            let writing = Writing {
                scope: &found.scope,
                run_id,
                at: note.at,
                meter: &Meter::default(),
            };
            // Our copy of the row follows, unless it has moved on by itself.
            carry_out_best(session, writing, &found.item).await?;
            if let Some(item) = closes {
                let item = std::slice::from_ref(*item);
                let closed = HashSet::from([item[0].id.as_str()]);
                breaks::put(session, run_id, note.at, item, &closed).await?;
            }
            RepairState::Applied
        }
        Settlement::Conflict { break_of_it } => {
            let item = std::slice::from_ref(*break_of_it);
            breaks::put(session, run_id, note.at, item, &nothing).await?;
            RepairState::Failed
        }
        Settlement::NotWritten => RepairState::Approved,
    };
    event(session, found, state, note, run_id, &mut added).await?;
    chain::append(session, &added).await?;
    ledger::detail(session, id).await
}
