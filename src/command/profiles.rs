//! `paysweep profiles`: the formats that can be read.

use std::path::Path;

use crate::exit::{Exit, Failure};
use crate::file::read_unchanged;
use crate::processor;
use crate::processor::api::{self, ApiProfile};
use crate::processor::profile::Profile;
use crate::processor::{generic, infer as proposal};

use super::World;

/// Lists the built-in profiles.
pub fn list(world: &mut World<'_>) -> Result<Exit, Failure> {
    let mut text = String::new();
    for name in processor::built_in_names() {
        let profile = Profile::parse(name, processor::built_in(name).unwrap_or_default())?;
        text.push_str(&format!(
            "{:<28} version {}; lag {}, lookback {}\n",
            profile.name, profile.version, profile.spans.lag, profile.spans.lookback
        ));
    }
    for name in api::built_in_names() {
        let api = ApiProfile::parse(name, api::built_in(name).unwrap_or_default())?;
        let (name, profile) = (api.name, api.rows);
        text.push_str(&format!(
            "{:<28} version {}; lag {}, lookback {}; kind = \"api\"\n",
            name, profile.version, profile.spans.lag, profile.spans.lookback
        ));
    }
    text.push_str("generic                      any other CSV file, its columns named by flags or in the configuration\n");
    text.push_str("`paysweep profiles show NAME` prints one, to copy from. A profile of your own is named by its path;\n\
         `paysweep profiles infer FILE` proposes one.\n");
    world.say(&text)?;
    Ok(Exit::Ok)
}

/// Shows a built-in profile as TOML.
pub fn show(name: &str, world: &mut World<'_>) -> Result<Exit, Failure> {
    if name == generic::NAME {
        world.say(&generic::reference())?;
        return Ok(Exit::Ok);
    }
    let text = processor::built_in(name)
        .or_else(|| api::built_in(name))
        .ok_or_else(|| {
            let known: Vec<&str> = processor::built_in_names()
                .chain(api::built_in_names())
                .collect();
            Failure::rejected(format!("there is no built-in profile \"{name}\""))
                .remedy(format!("built in: {}", known.join(", ")))
                .state("nothing was written")
        })?;
    world.say(text)?;
    Ok(Exit::Ok)
}

/// Proposes a profile for a file: TOML on stdout, what it leaves open on stderr as well.
pub fn infer(file: &Path, name: Option<&str>, world: &mut World<'_>) -> Result<Exit, Failure> {
    let shown = file.display().to_string();
    let stem = file
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned());
    let name = name.or(stem.as_deref()).unwrap_or("own");
    let proposal = read_unchanged(&shown, file)
        .and_then(|bytes| proposal::infer(&shown, name, &bytes))
        .map_err(|failure| failure.state("nothing was written"))?;
    world.say(&proposal.toml)?;
    for question in &proposal.questions {
        // The questions stand on stdout as well.
        let _ = writeln!(world.stderr, "question: {question}");
    }
    Ok(Exit::Ok)
}
