//! `paysweep init`: a configuration to begin with, filled in with what the files beside it say by themselves.

use std::io::Write;
use std::path::Path;

use crate::cli::InitArgs;
use crate::exit::{Exit, Failure};
use crate::intents::amount::IntentsRules;
use crate::intents::csv as intents_csv;
use crate::meter::Meter;
use crate::processor::{self, ReadRules};
use crate::report::sanitise::clean;
use crate::settings::ProfileRef;
use crate::time::Instant;

use super::{World, prepare};

/// The configuration that `init` writes; a test reads it back.
pub const TEMPLATE: &str = r#"# What paysweep reads, compares and may repair. Unknown keys are errors; `paysweep check` verifies the rest.

timezone = "UTC"                     # where a business day starts; never the host's zone

[store]
url = "sqlite://paysweep.db"         # relative to this file

[source.shop]                        # one section for each processor account
kind    = "csv"
profile = "canonical"                # a built-in name (`paysweep profiles list`), or the path of a profile file
files   = ["operations.csv"]         # may hold * and ?
start   = "2026-01-01T00:00:00Z"     # from where on rows are judged; set it, it is never guessed
complete_through = "last-row"        # until when a file is complete: last-row, as-of, or a time
lag = "0s"                           # what is younger than this is not judged yet
lookback = "72h"                     # how far before the watermark each run reads again

# Instead of files: ask the processor itself, which only ever reads (`paysweep profiles list` names the APIs).
# [source.shop]
# kind    = "api"
# profile = "stripe.api"
# api_key = { env = "STRIPE_READ_KEY" }              # a restricted key that may only read; never a key in this file
# start   = "2026-01-01T00:00:00Z"
# mode    = "live"                   # or "test"; a key of the other mode is refused

[intents]                            # what your own software meant to happen
kind  = "csv"
file  = "intents.csv"
grace = "60m"                        # from the creation of an intent until its absence is news
# grace = { default = "60m", refund = "5d", payout = "7d" }

# Instead of a file: your own table, read as it is and never written (PostgreSQL, MySQL, MariaDB, SQLite).
# [intents]
# kind  = "sql"
# url   = { env = "PAYMENTS_DATABASE_URL" }          # postgres://…, mysql://… or sqlite://…; never a password in this file
# table = "app.payments"             # or query = "select …"
# grace = "60m"
# changed_column = "updated_at"      # rows that changed are read again; leave it out if there is none
# time_zone = "UTC"                  # of times without a zone; time_unit = "s", "ms" or "us" for times in numbers
# max_txn = "3m"                     # no transaction that writes payments stays open longer
# [intents.columns]                  # what a column means = its name; `paysweep check` says what does not fit
# intent_id  = "id"
# kind       = { value = "charge" }                  # one value for every row, or a column
# amount     = { column = "amount_cents", unit = "minor" }
# currency   = "currency"
# status     = { column = "state", map = { new = "created", paid = "succeeded", void = "canceled" } }
# created_at = "created_at"
# processor_ref = "stripe_id"        # also: idempotency_key, reference, parent_intent_id, attempt, source, first_attempt_at

# [repair]                           # per break class: auto, propose or off
# status_behind = "auto"
# missing_local = "propose"

[guards]                             # more than this at once is refused with exit code 4
max_repairs = 200
"#;

/// A file of more bytes is not tried: somebody waits.
const BYTES_MAX: u64 = 64 * 1024 * 1024;
/// No more files of a folder are tried.
const FILES_MAX: usize = 50;

/// What the files beside the new configuration say by themselves.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// The processor's file, the built-in profile that alone reads it, and the day of its oldest row.
    operations: Option<(String, &'static str, Instant)>,
    /// Our own file.
    intents: Option<String>,
}

/// Looks at the CSV files of a folder. What two files, or two profiles, could be is left to a person.
fn look(folder: &Path) -> Found {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| {
            entry
                .metadata()
                .is_ok_and(|it| it.is_file() && it.len() <= BYTES_MAX)
        })
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            let path = Path::new(name);
            path.extension()
                .is_some_and(|it| it.eq_ignore_ascii_case("csv"))
        })
        .collect();
    names.sort();
    names.truncate(FILES_MAX);
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for name in names {
        let path = folder.join(&name);
        if intents_csv::read(&IntentsRules::default(), &name, &path, &Meter::default())
            .is_ok_and(|it| !it.is_empty())
        {
            ours.push(name);
            continue;
        }
        let readable: Vec<(&'static str, Instant)> = processor::built_in_names()
            .filter_map(|profile| Some((profile, oldest(profile, &path)?)))
            .collect();
        if let [(profile, oldest)] = readable[..] {
            theirs.push((name, profile, oldest));
        }
    }
    Found {
        operations: if theirs.len() == 1 {
            theirs.pop()
        } else {
            None
        },
        intents: if ours.len() == 1 { ours.pop() } else { None },
    }
}

/// The oldest row of a file as a profile reads it; `None` = it does not read it, or no row can be used.
fn oldest(profile: &'static str, path: &Path) -> Option<Instant> {
    let profile = prepare::profile(&ProfileRef::BuiltIn(profile.to_owned())).ok()?;
    let feed = prepare::read(
        &profile,
        &ReadRules::default(),
        &[path.to_owned()],
        &Meter::default(),
    )
    .ok()?;
    let is_usable = feed.rows > feed.invalid;
    feed.operations
        .occurred_at
        .iter()
        .min()
        .copied()
        .filter(|_| is_usable)
}

/// The template with what the files said in place of what it takes for granted.
fn filled(found: &Found) -> String {
    let mut text = TEMPLATE.to_owned();
    let mut put = |before: &str, after: &str, value: &str| {
        let line = text
            .lines()
            .find(|line| line.starts_with(before))
            .unwrap_or_default();
        let comment = line.split_once('#').map_or("", |(_, comment)| comment);
        let filled = format!("{:<36} #{comment}", format!("{before}{value}{after}"));
        text = text.replacen(line, filled.trim_end_matches(" #"), 1);
    };
    let quoted = |value: &str| format!("{value:?}");
    if let Some((name, profile, oldest)) = &found.operations {
        put("profile = ", "", &quoted(profile));
        put("files   = [", "]", &quoted(name));
        let day = oldest.to_string();
        let day = day.split('T').next().unwrap_or_default();
        put("start   = ", "", &quoted(&format!("{day}T00:00:00Z")));
    }
    if let Some(name) = &found.intents {
        put("file  = ", "", &quoted(name));
    }
    text
}

/// What is told of the new file.
fn told(path: &Path, found: &Found) -> String {
    let mut text = format!("{} written.\n", path.display());
    match &found.operations {
        Some((name, profile, oldest)) => text.push_str(&format!(
            "  {} is read by profile {profile}; its oldest row is of {oldest}, so start is that day: earlier rows are not judged\n",
            clean(name)
        )),
        None => text.push_str(
            "  no file here is one that exactly one built-in profile reads: set profile, files and start (`paysweep profiles infer FILE` helps)\n",
        ),
    }
    match &found.intents {
        Some(name) => text.push_str(&format!("  {} is your own side\n", clean(name))),
        None => text.push_str("  no file here is your own side: set [intents]\n"),
    }
    text.push_str("Look at it, then try `paysweep check` and `paysweep run --dry-run`.\n");
    text
}

/// Writes the template, with what the files beside it say by themselves; a file that is there already is never touched.
pub fn execute(arguments: &InitArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let path = &arguments.file;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let found = look(folder);
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(filled(&found).as_bytes()));
    if let Err(error) = written {
        let failure = Failure::rejected(format!("{} cannot be written", path.display()))
            .why(error.to_string());
        return Err(match error.kind() {
            std::io::ErrorKind::AlreadyExists => failure
                .remedy("name another file, or edit the one that is there")
                .state("the file was not touched"),
            _ => failure
                .remedy("choose a folder that can be written to")
                .state("nothing was written"),
        });
    }
    world.say(&told(path, &found))?;
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_takes_its_place_and_every_other_line_stays() {
        assert_eq!(filled(&Found::default()), TEMPLATE);
        let found = Found {
            operations: Some((
                "a \"b\".csv".to_owned(),
                "canonical",
                Instant::parse("2026-02-03T04:05:06Z").expect("RFC 3339"),
            )),
            intents: Some("ours.csv".to_owned()),
        };
        let text = filled(&found);
        for line in [
            "profile = \"canonical\"                # a built-in name",
            "files   = [\"a \\\"b\\\".csv\"]",
            "start   = \"2026-02-03T00:00:00Z\"     # from where on",
            "file  = \"ours.csv\"",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert_eq!(text.lines().count(), TEMPLATE.lines().count());
    }
}
