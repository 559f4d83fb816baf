//! `paysweep migrate`: creates the store, or brings it to this version.

use crate::cli::CommonArgs;
use crate::exit::{Exit, Failure};
use crate::settings::StoreUrl;
use crate::store::postgres::PostgresStore;
use crate::store::sqlite::{Mode, SqliteStore};

use super::World;

/// `paysweep migrate`. A file does the same by itself at the next run; a database never does.
pub async fn execute(common: &CommonArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let settings = super::settings(common, world)?;
    match &settings.store {
        StoreUrl::Sqlite(path) => {
            let store = SqliteStore::open(path, Mode::ReadWriteCreate).await?;
            store.close_file().await?;
            world.say(&format!("{}: ready\n", path.display()))?;
        }
        StoreUrl::Postgres(address) => {
            PostgresStore::migrate(address).await?;
            world.say(&format!("{address}: ready\n"))?;
        }
    }
    Ok(Exit::Ok)
}
