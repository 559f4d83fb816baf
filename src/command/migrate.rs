//! `paysweep migrate`: creates the store, or brings it to this version.

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::settings::StoreUrl;

use super::World;

/// `paysweep migrate`. The embedded store does the same by itself at the next run.
pub async fn execute(common: &CommonArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    let store = super::store(&settings).await?;
    store.close_file().await?;
    let StoreUrl::Sqlite(path) = &settings.store;
    world.say(&format!("{}: ready\n", path.display()))?;
    Ok(Exit::Ok)
}
