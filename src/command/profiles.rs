//! `paysweep profiles`: the formats that can be read.

use crate::exit::{Exit, Failure};
use crate::processor;
use crate::processor::profile::Profile;

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
    text.push_str("`paysweep profiles show NAME` prints one, to copy from. A profile of your own is named by its path.\n");
    world.say(&text)?;
    Ok(Exit::Ok)
}

/// Shows a built-in profile as TOML.
pub fn show(name: &str, world: &mut World<'_>) -> Result<Exit, Failure> {
    let text = processor::built_in(name).ok_or_else(|| {
        let known: Vec<&str> = processor::built_in_names().collect();
        Failure::rejected(format!("there is no built-in profile \"{name}\""))
            .remedy(format!("built in: {}", known.join(", ")))
            .state("nothing was written")
    })?;
    world.say(text)?;
    Ok(Exit::Ok)
}
