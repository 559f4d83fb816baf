//! Reading the files of a source: which files, whole and unchanged, each content once.
//!
//! Decisions: only regular files are read, so that nothing blocks and nothing is consumed by looking at it. A file that
//! changes while it is read gives no feed at all. Two files of the same content are one; equal rows in different files are
//! left in, since the core recognises them by their key.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::exit::{Exit, Failure};
use crate::file::{read_unchanged, size, unreadable};
use crate::meter::Meter;
use crate::processor::ReadRules;
use crate::processor::csv::{FileFacts, decode};
use crate::processor::profile::Profile;

use super::feed::{Feed, FileRead, gap, hex};

/// Reads the files that the patterns name, relative to a directory. `*` and `?` may stand in the last part of a pattern.
///
/// Fails with exit 2 where a pattern names nothing, something that is no regular file, or a file that contradicts the
/// profile; with 4 where a number of a series is missing; with 5 where a file may not be read or holds rows of the other mode only; with 3 where one changed while it
/// was read; with 75 where reading itself failed. The failure's `state` is left to the caller. The meter counts bytes.
pub fn read(
    profile: &Profile,
    rules: &ReadRules,
    base_dir: &Path,
    patterns: &[String],
    meter: &Meter,
) -> Result<Feed, Failure> {
    let mut feed = Feed {
        is_verified: true,
        ..Feed::default()
    };
    let mut seen: HashSet<[u8; 32]> = HashSet::new();
    let mut hashes = Vec::new();
    let mut names = Vec::new();
    let mut found = Vec::new();
    for pattern in patterns {
        found.extend(expand(base_dir, pattern)?);
    }
    let sizes: Vec<u64> = found.iter().map(|(_, path)| size(path)).collect();
    meter.expect(sizes.iter().sum());
    for ((name, path), size) in found.into_iter().zip(sizes) {
        let bytes = read_unchanged(&name, &path)?;
        let hash: [u8; 32] = Sha256::digest(&bytes).into();
        names.push(name.clone());
        if !seen.insert(hash) {
            meter.add(size);
            continue;
        }
        hashes.push(hash);
        // What was packed is more than it seemed.
        meter.expect((bytes.len() as u64).saturating_sub(size));
        let facts = add(profile, rules, &name, &bytes, &mut feed, meter)?;
        feed.files.push(FileRead {
            name,
            bytes: bytes.len() as u64,
            sha256: hex(&hash),
            facts,
        });
    }
    feed.series = series_of(profile, &names)?;
    hashes.sort_unstable();
    let mut all = Sha256::new();
    for hash in &hashes {
        all.update(hash);
    }
    feed.hash = hex(&<[u8; 32]>::from(all.finalize()));
    feed.is_verified &= !feed.files.is_empty();
    Ok(feed)
}

fn add(
    profile: &Profile,
    rules: &ReadRules,
    name: &str,
    bytes: &[u8],
    feed: &mut Feed,
    meter: &Meter,
) -> Result<FileFacts, Failure> {
    let index = u16::try_from(feed.files.len()).map_err(|_| {
        Failure::rejected(format!("{name}: a source has more than 65536 files"))
            .why("a row names its file by a number of 16 bits")
            .remedy("move files that are older than the lookback elsewhere")
    })?;
    let rest = ReadRules {
        tolerate_bad_rows: rules.tolerate_bad_rows.saturating_sub(feed.quarantined),
        ..rules.clone()
    };
    let facts = decode(
        profile,
        &rest,
        name,
        index,
        bytes,
        &mut feed.operations,
        meter,
    )?;
    if facts.rows_of_other_mode > 0 && facts.rows_of_mode == 0 {
        return Err(Failure::new(
            Exit::Denied,
            format!("{name}: every row is of the other mode"),
        )
        .why("the source declares its mode, and the file holds nothing of it")
        .remedy("check which mode the export was made in, and mode of the source"));
    }
    feed.newest = feed.newest.max(facts.newest);
    feed.is_verified &= facts.is_verified;
    feed.rows += facts.rows;
    feed.blank_rows += facts.blank_rows;
    feed.quarantined += facts.quarantined;
    feed.invalid += facts.invalid;
    Ok(facts)
}

/// The lowest and highest number of each series. Refuses numbered reports of which one is missing between two others.
fn series_of(profile: &Profile, names: &[String]) -> Result<BTreeMap<String, (u64, u64)>, Failure> {
    let mut series: BTreeMap<String, BTreeSet<u64>> = BTreeMap::new();
    for name in names {
        if let Some((of, number)) = profile.number_in_series(name) {
            series.entry(of).or_default().insert(number);
        }
    }
    let mut ends = BTreeMap::new();
    for (of, numbers) in series {
        let missing: Vec<Range<u64>> = (numbers.iter().zip(numbers.iter().skip(1)))
            .map(|(number, next)| number.saturating_add(1)..*next)
            .filter(|missing| !missing.is_empty())
            .collect();
        if !missing.is_empty() {
            return Err(gap(&of, &missing, "the files that are there"));
        }
        if let (Some(lowest), Some(highest)) = (numbers.first(), numbers.last()) {
            ends.insert(of, (*lowest, *highest));
        }
    }
    Ok(ends)
}

/// The files of a pattern, by name.
fn expand(base_dir: &Path, pattern: &str) -> Result<Vec<(String, PathBuf)>, Failure> {
    let whole = base_dir.join(pattern);
    let has_wildcard = |text: &str| text.contains(['*', '?']);
    if !has_wildcard(pattern) || whole.exists() {
        return Ok(vec![(pattern.to_owned(), whole)]);
    }
    let (folder, file_pattern) = match pattern.rsplit_once('/') {
        Some((folder, file)) => (format!("{folder}/"), file),
        None => (String::new(), pattern),
    };
    if has_wildcard(&folder) {
        return Err(Failure::rejected(format!(
            "{pattern}: a wildcard stands in the name of a folder"
        ))
        .why("* and ? are filled in only in the last part of a path")
        .remedy("list the folders one by one under files"));
    }
    let mut directory = base_dir.join(&folder);
    if directory.as_os_str().is_empty() {
        // A configuration in the folder where the command runs: no path names it, and a folder has to be named.
        directory.push(".");
    }
    let entries = fs::read_dir(&directory).map_err(|error| unreadable(pattern, &error))?;
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| unreadable(pattern, &error))?;
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_hidden = name.starts_with('.') && !file_pattern.starts_with('.');
        if !is_hidden && fits(file_pattern.as_bytes(), name.as_bytes()) {
            found.push((format!("{folder}{name}"), entry.path()));
        }
    }
    if found.is_empty() {
        return Err(Failure::rejected(format!("{pattern}: no file has such a name"))
            .why("a feed without its file would look like a day without payments")
            .remedy("check the path, which is relative to the configuration, and whether the export was delivered"));
    }
    found.sort();
    Ok(found)
}

/// Whether a name fits a pattern: `*` is any text, `?` one character.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    // Positions after the last `*`, to come back to with one more character under it.
    let mut back: Option<(usize, usize)> = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                back = Some((p + 1, n));
                p += 1;
            }
            Some(b'?') => {
                p += 1;
                n += 1;
                // The other bytes of the same character.
                while name.get(n).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    n += 1;
                }
            }
            Some(byte) if *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match back {
                Some((after, from)) => {
                    back = Some((after, from + 1));
                    (p, n) = (after, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::processor::{Mode, built_in};
    use crate::time::Instant;

    const HEAD: &str = "operation_id,kind,status,amount_minor,currency,occurred_at\n";

    fn row(id: &str, at: &str) -> String {
        format!("{id},charge,succeeded,1000,EUR,{at}\n")
    }

    fn canonical() -> Profile {
        Profile::parse("canonical", built_in("canonical").expect("built in")).expect("a profile")
    }

    fn folder(files: &[(&str, String)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        folder
    }

    fn read_in(folder: &tempfile::TempDir, patterns: &[&str]) -> Result<Feed, Failure> {
        let patterns: Vec<String> = patterns
            .iter()
            .map(|pattern| (*pattern).to_owned())
            .collect();
        read(
            &canonical(),
            &ReadRules::default(),
            folder.path(),
            &patterns,
            &Meter::default(),
        )
    }

    #[test]
    fn wildcards_stand_for_text_in_the_file_name() {
        for (pattern, name, want) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.part", false),
            ("op-?.csv", "op-1.csv", true),
            ("op-?.csv", "op-é.csv", true),
            ("op-?.csv", "op-12.csv", false),
            ("*-*-b", "a-x-y-b", true),
            ("*", "", true),
            ("a", "b", false),
        ] {
            assert_eq!(
                fits(pattern.as_bytes(), name.as_bytes()),
                want,
                "{pattern} {name}"
            );
        }
    }

    #[test]
    fn a_feed_is_the_files_in_order_each_content_once() {
        let (early, late) = ("2026-03-09T09:00:00Z", "2026-03-10T09:00:00Z");
        let folder = folder(&[
            ("in/b.csv", format!("{HEAD}{}", row("b", late))),
            ("in/a.csv", format!("{HEAD}{}\n", row("a", early))),
            ("in/copy.csv", format!("{HEAD}{}\n", row("a", early))),
            ("in/.hidden.csv", "damaged".to_owned()),
            ("in/note.txt", "damaged".to_owned()),
        ]);
        let feed = read_in(&folder, &["in/*.csv", "in/a.csv"]).expect("a feed");
        let names: Vec<&str> = feed.files.iter().map(|file| file.name.as_str()).collect();
        assert_eq!(names, ["in/a.csv", "in/b.csv"]);
        assert_eq!(
            (feed.rows, feed.blank_rows, feed.is_verified),
            (2, 1, false)
        );
        assert_eq!(feed.operations.get(1).file, 1);
        assert_eq!(feed.newest, Instant::parse(late));
        let noon = Instant::parse("2026-03-09T12:00:00Z").expect("RFC 3339");
        assert_eq!(feed.newest_until(noon), Instant::parse(early));
        let turned = read_in(&folder, &["in/b.csv", "in/copy.csv"]).expect("a feed");
        assert_eq!((turned.hash.len(), &turned.hash), (64, &feed.hash));
        assert_ne!(
            read_in(&folder, &["in/b.csv"]).expect("a feed").hash,
            feed.hash
        );
    }

    #[test]
    fn what_is_no_file_to_read_is_refused() {
        let folder = folder(&[("in/a.csv", HEAD.to_owned())]);
        for (pattern, want) in [
            ("in", "not a regular file"),
            ("b.csv", "no such file"),
            ("in/*.txt", "no file has such a name"),
            ("out/*.csv", "no such file"),
            ("*/a.csv", "name of a folder"),
            ("in/a.csv/b", "no such file"),
        ] {
            let failure = read_in(&folder, &[pattern]).expect_err("rejected");
            assert_eq!(failure.exit, Exit::Rejected, "{failure}");
            assert!(failure.what.contains(want), "{failure}");
            assert!(!failure.why.is_empty() && !failure.remedy.is_empty());
        }
    }

    #[test]
    fn a_missing_number_of_a_series_is_named() {
        let text = built_in("canonical").expect("built in").replace(
            "header = \"named\"",
            "header = \"named\"\nseries = 'batch_(\\d+)'",
        );
        let profile = Profile::parse("own", &text).expect("a profile");
        let numbered = folder(&[
            (
                "batch_8.csv",
                format!("{HEAD}{}", row("a", "2026-03-09T09:00:00Z")),
            ),
            (
                "batch_9.csv",
                format!("{HEAD}{}", row("b", "2026-03-09T09:00:00Z")),
            ),
            (
                "batch_12.csv",
                format!("{HEAD}{}", row("c", "2026-03-09T09:00:00Z")),
            ),
            (
                "other.csv",
                format!("{HEAD}{}", row("d", "2026-03-09T09:00:00Z")),
            ),
        ]);
        let read = |patterns: &[&str]| {
            let patterns: Vec<String> = patterns.iter().map(|name| (*name).to_owned()).collect();
            super::read(
                &profile,
                &ReadRules::default(),
                numbered.path(),
                &patterns,
                &Meter::default(),
            )
        };
        assert_eq!(
            read(&["batch_8.csv", "batch_9.csv", "other.csv"])
                .expect("a feed")
                .rows,
            3
        );
        let failure = read(&["*.csv"]).expect_err("refused");
        assert_eq!(failure.exit, Exit::Refused);
        assert!(
            failure.what.contains("batch_…: number 10, 11 is missing"),
            "{failure}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_device_is_not_read() {
        let folder = folder(&[]);
        for path in ["/dev/null", "/dev/zero"] {
            let failure = read_in(&folder, &[path]).expect_err("rejected");
            assert!(failure.what.contains("not a regular file"), "{failure}");
        }
    }

    #[test]
    fn bad_rows_are_tolerated_per_source_not_per_file() {
        let bad = format!("{HEAD}x,charge,succeeded,ten,EUR,2026-03-09T09:00:00Z\n");
        let folder = folder(&[("a.csv", bad.clone()), ("b.csv", format!("{bad}\n"))]);
        let patterns = ["a.csv".to_owned(), "b.csv".to_owned()];
        let tolerating = |tolerate_bad_rows| ReadRules {
            tolerate_bad_rows,
            ..ReadRules::default()
        };
        let feed = read(
            &canonical(),
            &tolerating(2),
            folder.path(),
            &patterns,
            &Meter::default(),
        )
        .expect("a feed");
        assert_eq!((feed.quarantined, feed.invalid), (2, 2));
        let failure = read(
            &canonical(),
            &tolerating(1),
            folder.path(),
            &patterns,
            &Meter::default(),
        )
        .expect_err("rejected");
        assert!(failure.what.starts_with("b.csv:2"), "{failure}");
    }

    #[test]
    fn a_file_of_the_other_mode_only_is_denied() {
        let text = built_in("canonical").expect("built in").replace(
            "description = \"description\"",
            "description = \"description\"\nmode = { column = \"m\", live = [\"1\"], test = [\"0\"] }",
        );
        let profile = Profile::parse("own", &text).expect("a profile");
        let rules = ReadRules {
            mode: Some(Mode::Live),
            ..ReadRules::default()
        };
        let row = |mode: &str| format!("{},{mode}\n", row("a", "2026-03-09T09:00:00Z").trim());
        let head = HEAD.replace("occurred_at", "occurred_at,m");
        let folder = folder(&[
            ("test.csv", format!("{head}{}", row("0"))),
            ("both.csv", format!("{head}{}{}", row("0"), row("1"))),
        ]);
        let read = |name: &str| {
            read(
                &profile,
                &rules,
                folder.path(),
                &[name.to_owned()],
                &Meter::default(),
            )
        };
        assert_eq!(read("test.csv").expect_err("denied").exit, Exit::Denied);
        assert_eq!(read("both.csv").expect("a feed").rows, 2);
    }
}
