//! Completions for shells, and man pages, both drawn from the grammar.

use std::io;
use std::path::Path;

use clap::CommandFactory;

use super::Cli;
use crate::model::words;

words! {
    /// A shell that can be told what may be typed.
    Shell {
        /// GNU Bash.
        Bash = "bash",
        /// Elvish.
        Elvish = "elvish",
        /// fish.
        Fish = "fish",
        /// Windows PowerShell.
        Powershell = "powershell",
        /// Z shell.
        Zsh = "zsh",
    }
}

/// The script that a shell loads.
pub fn completions(shell: Shell) -> Vec<u8> {
    use clap_complete::Shell as Known;
    let known = match shell {
        Shell::Bash => Known::Bash,
        Shell::Elvish => Known::Elvish,
        Shell::Fish => Known::Fish,
        Shell::Powershell => Known::PowerShell,
        Shell::Zsh => Known::Zsh,
    };
    let mut script = Vec::new();
    clap_complete::generate(known, &mut Cli::command(), "paysweep", &mut script);
    script
}

/// The page of the program itself.
pub fn man_page() -> io::Result<Vec<u8>> {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(page)
}

/// A page for the program and each of its commands, into a folder that is there.
pub fn man_pages(folder: &Path) -> io::Result<()> {
    clap_mangen::generate_to(Cli::command(), folder)
}
