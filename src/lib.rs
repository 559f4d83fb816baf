//! # The map
//!
//! paysweep compares what a payment processor says happened (*operations*) with what your own software meant to happen
//! (*intents*). It names every difference (a *break*), writes on the local side what policy allows (a *repair*), and
//! remembers how far it has read (the *watermark*). It never moves money and never writes to the processor.
//!
//! It is a function with a careful memory: [`reconcile::reconcile`] is pure, and everything around it exists to give it
//! complete inputs, to commit its answer exactly once, and to tell people.
//!
//! ```text
//! claim the source ─► window ─► read the feed ─► gather what is stored ─► reconcile ─► guards ─► commit ─► tell
//! ```
//!
//! # Floors: who may name whom
//!
//! A module may name those below it. Neighbours on a floor do not know each other. A test reads the sources and holds it.
//!
//! | floor | modules | must not contain |
//! |---|---|---|
//! | 8 | `main`: the only reader of arguments, environment, clock and signals | decisions |
//! | 7 | [`cli`] what may be typed · [`command`] one file for each subcommand | SQL, rendering, rules about money |
//! | 6 | [`settings`]: one file and the environment, validated at the door | effects other than reading that file |
//! | 5 | [`source`] files and APIs in · [`intents`] our own rows in · [`store`] the memory · [`notify`] who is told | decisions about money |
//! | 4 | [`file`]: a file read whole, or refused · [`database`]: where a database is | meaning of its content |
//! | 3 | [`reconcile`] the verdicts · [`processor`] rows by profile · [`report`] one value, several forms | clock, files, environment, waiting |
//! | 2 | [`model`]: the nouns, and the catalogue of breaks | input and output, serde, SQL |
//! | 1 | [`money`] · [`time`] · [`exit`] · [`meter`] | anything of ours |
//!
//! # What the design rests on
//!
//! - Every row in scope has exactly one verdict: matched, pending, ignored with a reason, or unmatched. Per side and per
//!   currency, what goes in comes out; else the run ends with 70.
//! - The verdict depends on the rows, never on their order, the clock or the machine.
//! - Money is whole minor units with a currency. No binary fraction is ever computed with.
//! - Absence is news only where the source was read whole past the due time of a row.
//! - What one slice writes is one transaction: operations, breaks, repairs with their local writes, and the watermark.
//! - A repair is written once, against a version of a row; a row that changed meanwhile is not overwritten.
//! - The watermark never goes back by itself. A stretch that is skipped stays a break until a person closes it.
//! - An unknown word is a break, never a success. A file that cannot be trusted is refused as a whole.
//! - Exit code, report and stored run come from one value with one verdict function.
//!
//! # Ten minutes of reading
//!
//! 1. [`command::run`]: the straight line.
//! 2. [`model::breaks`]: the catalogue, class by class.
//! 3. [`reconcile`]: the questions of the core, and [`reconcile::lifecycle`], its decision table.
//! 4. [`store::contract`]: what a commit promises.
//! 5. [`processor`] and `processor/profiles/canonical.toml`: how a row becomes an operation.
//! 6. `sample-data/canonical/night`: one night with everything in it, and its report.
//!
//! # Where to add what
//!
//! | to add | write | and one line in | a compiler error or test then asks for |
//! |---|---|---|---|
//! | a processor's CSV | `processor/profiles/NAME.toml` | `processor/mod.rs` | a case in `sample-data/` |
//! | a processor's API | `processor/profiles/NAME.toml` of kind `api`; code only where declaration ends: `processor/api/NAME.rs` | `processor/api/mod.rs` | a fake in `tests/it/api_profiles.rs` |
//! | a class of breaks | a variant with its entry in `model/breaks.rs` | – | arms in the judge, the README's row, a row in the sample |
//! | a rule of the life cycle | a cell in `reconcile/lifecycle.rs` | – | the README's table |
//! | a rule of matching | a rung in `reconcile/ladder/` | its order | a table case |
//! | a repair action | a variant in `model/repair.rs` | – | arms in plan and store |
//! | a form of the report | `report/NAME.rs` | `report/mod.rs` | a golden file |
//! | a channel | `notify/NAME.rs` | `notify/mod.rs` | a test in `tests/it/alerts.rs` |
//! | a store | `store/NAME/` beside the rules in `store/sql/`, `migrations/NAME/` | `store/any.rs`, `store/mod.rs` | the promises in `tests/it/store.rs` |
//! | a subcommand | `command/NAME.rs` | `cli.rs`, `command/mod.rs` | a test in `tests/it/cli.rs` |
//! | an exit code | a variant in `exit.rs` | – | the README's row, the lists in `cron/` |

pub mod cli;
pub mod command;
pub mod database;
pub mod exit;
pub mod file;
pub mod intents;
pub mod meter;
pub mod model;
pub mod money;
pub mod notify;
pub mod processor;
pub mod reconcile;
pub mod report;
pub mod settings;
pub mod source;
pub mod store;
pub mod time;
