//! `paysweep init`: a configuration to begin with.

use std::io::Write;

use crate::cli::InitArgs;
use crate::exit::{Exit, Failure};

use super::World;

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

/// Writes the template; a file that is there already is never touched.
pub fn execute(arguments: &InitArgs, world: &mut World<'_>) -> Result<Exit, Failure> {
    let path = &arguments.file;
    let written = std::fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(TEMPLATE.as_bytes()));
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
    world.say(&format!("{} written. Set start and files, then try `paysweep check` and `paysweep run --dry-run`.\n", path.display()))?;
    Ok(Exit::Ok)
}
