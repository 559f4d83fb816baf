//! `paysweep completions`, `man` and `schema`: what other programs read about this one.

use std::path::Path;

use crate::cli::SchemaName;
use crate::cli::shell::{self, Shell};
use crate::exit::{Exit, Failure};
use crate::report::json::JSON_SCHEMA;
use crate::settings::CONFIG_SCHEMA;

use super::{World, deliver};

/// `paysweep completions SHELL`.
pub(crate) fn completions(shell: Shell, world: &mut World<'_>) -> Result<Exit, Failure> {
    deliver::to_stdout(world.stdout, &shell::completions(shell))?;
    Ok(Exit::Ok)
}

/// `paysweep man`: one page on stdout, or a page for each command in a folder.
pub(crate) fn man(folder: Option<&Path>, world: &mut World<'_>) -> Result<Exit, Failure> {
    let failed = |error: std::io::Error| {
        Failure::rejected("the man pages could not be written")
            .why(error.to_string())
            .remedy("name a folder that is there and can be written to")
    };
    match folder {
        Some(folder) => shell::man_pages(folder).map_err(failed)?,
        None => {
            let page = shell::man_page().map_err(failed)?;
            deliver::to_stdout(world.stdout, &page)?;
        }
    }
    Ok(Exit::Ok)
}

/// `paysweep schema NAME`.
pub(crate) fn schema(name: SchemaName, world: &mut World<'_>) -> Result<Exit, Failure> {
    match name {
        SchemaName::Report => world.say(JSON_SCHEMA)?,
        SchemaName::Config => world.say(CONFIG_SCHEMA)?,
    }
    Ok(Exit::Ok)
}
