//! A folder of its own, and the built binary in it: with another zone than UTC, without a home, and without colour.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use super::postgres::Database;

/// "Now" of most scenes: six in the morning after the first day.
pub(crate) const NOW: &str = "2026-03-10T06:00:00Z";

const CONFIG: &str = r#"
[store]
url = "sqlite://paysweep.db"

[source.shop]
kind = "csv"
profile = "canonical"
files = ["operations.csv"]
start = "2026-03-09T00:00:00Z"
complete_through = "as-of"

[intents]
kind = "csv"
file = "intents.csv"
"#;

const OPERATIONS: &str = "operation_id,kind,status,amount_minor,currency,occurred_at,reference\n";
const INTENTS: &str = "intent_id,kind,amount_minor,currency,status,created_at,processor_ref\n";

/// A folder with a configuration and files.
pub(crate) struct Scene {
    folder: TempDir,
}

/// What a command said, and how it ended.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Scene {
    /// An empty folder.
    pub(crate) fn empty() -> Scene {
        Scene {
            folder: TempDir::new().expect("a temporary folder"),
        }
    }

    /// A configuration, and rows of both files without their headers.
    pub(crate) fn new(operations: &str, intents: &str) -> Scene {
        let scene = Scene::empty();
        scene.write("paysweep.toml", CONFIG);
        scene.operations(operations);
        scene.intents(intents);
        scene
    }

    /// One payment that both sides agree about.
    pub(crate) fn in_order() -> Scene {
        Scene::new(
            "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n",
            "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n",
        )
    }

    /// A payment that succeeded, and the local row does not know: a repair closes it.
    pub(crate) fn behind() -> Scene {
        Scene::new(
            "ch_1,charge,succeeded,1000,EUR,2026-03-09T10:00:05Z,A\n",
            "A,charge,1000,EUR,pending,2026-03-09T10:00:00Z,\n",
        )
    }

    /// A payment of another amount than was asked for: a person has to look.
    pub(crate) fn mismatch() -> Scene {
        Scene::new(
            "ch_1,charge,succeeded,1200,EUR,2026-03-09T10:00:05Z,A\n",
            "A,charge,1000,EUR,succeeded,2026-03-09T10:00:00Z,ch_1\n",
        )
    }

    /// Adds lines to the configuration.
    pub(crate) fn with(self, more: &str) -> Scene {
        self.write("paysweep.toml", &format!("{CONFIG}\n{more}\n"));
        self
    }

    /// The same with its store in a database; without one it stays in its file. Leases are as short as they may be made.
    pub(crate) fn stored(self, database: Option<&Database>, lease: &str) -> Scene {
        let url = database.map_or_else(|| "sqlite://paysweep.db".to_owned(), Database::url);
        self.stored_at(&url, lease)
    }

    /// The same with its store wherever a URL says.
    pub(crate) fn stored_at(self, url: &str, lease: &str) -> Scene {
        let text = std::fs::read_to_string(self.path("paysweep.toml")).expect("a configuration");
        let store = format!("[store]\nurl = \"{url}\"\nlease = \"{lease}\"");
        let text = text.replace("[store]\nurl = \"sqlite://paysweep.db\"", &store);
        assert!(text.contains(&store));
        self.write("paysweep.toml", &text);
        self
    }

    /// The path of a file in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file.
    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect(name);
    }

    /// Writes the processor's file.
    pub(crate) fn operations(&self, rows: &str) {
        self.write("operations.csv", &format!("{OPERATIONS}{rows}"));
    }

    /// Writes our own file.
    pub(crate) fn intents(&self, rows: &str) {
        self.write("intents.csv", &format!("{INTENTS}{rows}"));
    }

    /// The bytes of the store and of its log, or nothing.
    pub(crate) fn store(&self) -> Vec<Vec<u8>> {
        ["paysweep.db", "paysweep.db-wal"]
            .iter()
            .map(|name| std::fs::read(self.path(name)).unwrap_or_default())
            .collect()
    }

    /// Names of everything in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.folder())
            .expect("the folder")
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        names.sort();
        names
    }

    /// A command, not started yet. Words are separated by blanks.
    pub(crate) fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_paysweep"));
        command
            .args(line.split_whitespace())
            .current_dir(self.folder())
            .env_clear()
            .env("TZ", "Pacific/Auckland")
            .env("HOME", "")
            .env("NO_COLOR", "1")
            .env("USER", "kim");
        command
    }

    /// The same as somebody else: through the words of a program that changes the user.
    pub(crate) fn command_through(&self, words: &[String], line: &str) -> Command {
        let plain = self.command(line);
        let Some((first, rest)) = words.split_first() else {
            return plain;
        };
        let mut command = Command::new(first);
        command
            .args(rest)
            .arg(plain.get_program())
            .args(plain.get_args())
            .current_dir(self.folder())
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs a command as it is typed.
    pub(crate) fn say(&self, line: &str) -> Told {
        Told::from(self.command(line).output().expect("the binary starts"))
    }

    /// Runs a command as somebody else at the keyboard.
    pub(crate) fn say_as(&self, user: &str, line: &str) -> Told {
        let output = self.command(line).env("PAYSWEEP_USER", user).output();
        Told::from(output.expect("the binary starts"))
    }

    /// Runs a command at [`NOW`].
    pub(crate) fn now(&self, line: &str) -> Told {
        self.say(&format!("{line} --as-of {NOW}"))
    }
}

/// Sends a signal by its name: `TERM`.
pub(crate) fn send(name: &str, process: &Child) {
    let sent = Command::new("kill")
        .args([&format!("-{name}"), &process.id().to_string()])
        .stderr(Stdio::null())
        .status();
    sent.expect("kill starts");
}

/// An empty store in a database, made from wherever.
pub(crate) fn database() -> Database {
    super::postgres::aside(|| async { Database::migrated().await })
}

/// A test once for each engine: without a database, and with one.
pub(crate) fn on_both(test: impl Fn(Option<&Database>)) {
    test(None);
    test(Some(&database()));
}

impl From<Output> for Told {
    fn from(output: Output) -> Told {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
        Told {
            code: output
                .status
                .code()
                .unwrap_or_else(|| panic!("killed: {output:?}")),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Told {
    /// Its stdout as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {:?} {}", self.stdout, self.stderr))
    }
}
