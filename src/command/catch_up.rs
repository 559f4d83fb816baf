//! A long way to catch up: piece by piece, each of which stands.
//!
//! Decisions: a piece is judged and written under a run of its own, with its watermark, before the next one is begun, and the run
//! that began it tells it as it tells what runs left behind whose report did not get out. A piece that breaks off is the last
//! one of the run. Where a piece moves no watermark the rest is read at once.

use crate::exit::{Exit, Failure};
use crate::reconcile::Spent;
use crate::report::{Check, CheckStatus};
use crate::store::contract::{Claim, Outbox, RunEnd, RunStart, Store};

use super::others::Ahead;
use super::own_side::OwnSide;
use super::prepare::Prepared;
use super::progress::Progress;
use super::run::Job;
use super::slice::{Read, read, slice};
use super::told::Told;

/// Reads a source. Where more time has passed than one slice reads, slices before the last one are judged and written, each
/// under a run of its own that this run tells; what is given back is the last one, or the one that broke off. So what was
/// written is not read again, whatever happens to the rest.
#[allow(
    clippy::too_many_arguments,
    reason = "the straight line names everything that flows into it"
)]
pub(super) async fn catch_up<S: Store + Outbox>(
    store: &mut S,
    job: &Job<'_>,
    prepared: &Prepared<'_>,
    is_last: bool,
    own_side: &mut OwnSide,
    claim: Option<&Claim>,
    told: &mut Told,
    ahead: &mut Ahead,
    spent: &mut Spent,
    progress: &mut Progress,
) -> Result<Read, Failure> {
    let mut pieces = 0_u64;
    let mut is_in_pieces = true;
    loop {
        let read = read(
            store,
            job,
            prepared,
            is_in_pieces,
            own_side,
            claim,
            progress,
        )
        .await?;
        if claim.is_none() || !read.is_piece() {
            if pieces > 0 {
                told.checks.push(caught_up(&prepared.source.name, pieces));
            }
            return Ok(read);
        }
        let piece = job.piece();
        begin_piece(store, &piece, &prepared.source.name).await?;
        let judged = slice(
            store, &piece, prepared, read, is_last, own_side, claim, told, ahead, spent, progress,
        )
        .await;
        let exit = match &judged {
            Err(failure) => failure.exit,
            Ok(judged) if judged.has_found() => Exit::Differences,
            Ok(_) => Exit::Ok,
        };
        let end = RunEnd {
            run_id: &piece.run_id,
            finished_at: job.started_at,
            exit_code: exit.code(),
            outcome: PIECE,
            report_json: None,
            is_completed: true,
        };
        store.finish_run(&end).await?;
        let judged = judged?;
        pieces += 1;
        if let Some(broken) = judged.feed.asked.and_then(|asked| asked.broken) {
            return Err(broken);
        }
        // Where nothing shows how far the source is complete, a piece leads nowhere: the rest is read at once.
        is_in_pieces = judged.watermark_after > judged.watermark_before;
    }
}

/// The outcome of a run that judged one piece of a long way, and is told by another one.
const PIECE: &str = "piece";

async fn begin_piece<S: Store>(
    store: &mut S,
    piece: &Job<'_>,
    source: &str,
) -> Result<(), Failure> {
    let start = RunStart {
        run_id: &piece.run_id,
        command: "run",
        sources: &[source.to_owned()],
        as_of: piece.as_of,
        started_at: piece.started_at,
        version: env!("CARGO_PKG_VERSION"),
        config_hash: &piece.settings.digest,
        run_key: None,
        started_by: &piece.started_by,
        owner: &piece.owner,
        ttl: piece.settings.lease,
    };
    store.begin(&start).await?;
    Ok(())
}

fn caught_up(source: &str, pieces: u64) -> Check {
    Check {
        name: format!("catching up {source}"),
        status: CheckStatus::Info,
        detail: format!(
            "{pieces} earlier stretches were judged and written one by one; what they found is told as carried, and the figures \
             are those of the last"
        ),
    }
}
