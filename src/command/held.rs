//! Holding a source while something else goes on.

use std::pin::pin;

use crate::exit::{Exit, Failure};
use crate::settings::Settings;
use crate::store::contract::{Claim, Store};

use super::interrupt::{Interrupt, duration};

/// Holds the source for as long again. A run that lost it to another one ends here instead of at its commit.
pub(super) async fn renew<S: Store>(
    store: &mut S,
    settings: &Settings,
    claim: Option<&Claim>,
) -> Result<(), Failure> {
    match claim {
        Some(claim) => store.renew(claim, settings.lease).await,
        None => Ok(()),
    }
}

/// Work on a thread of its own, beside which the source stays held, however long it takes. When somebody asks to stop,
/// nobody waits for it. A store that cannot be reached meanwhile is no reason to give up: the commit decides.
pub(super) async fn beside<S: Store, T: Send + 'static>(
    store: &mut S,
    settings: &Settings,
    claim: Option<&Claim>,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Failure> {
    while_held(store, settings, claim, interrupt.aside(work)).await
}

/// The same for work that waits by itself.
pub(super) async fn while_held<S: Store, T>(
    store: &mut S,
    settings: &Settings,
    claim: Option<&Claim>,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let mut working = pin!(work);
    let third = duration(settings.lease) / 3;
    loop {
        tokio::select! {
            biased;
            done = &mut working => return done,
            () = tokio::time::sleep(third) => {}
        }
        match renew(store, settings, claim).await {
            Err(failure) if failure.exit == Exit::Locked => return Err(failure),
            Err(failure) => tracing::warn!("{failure}"),
            Ok(()) => {}
        }
    }
}

/// Gives a source back. One that cannot be given back is free when its lease ends.
pub(super) async fn release<S: Store>(store: &mut S, claim: &Claim) {
    if let Err(failure) = store.release(claim).await {
        tracing::warn!(source = claim.source, "not given back: {failure}");
    }
}
