//! The bytes of a file, whole: what every reader of files stands on.
//!
//! Decisions: only regular files are read (a link to one is one), so that nothing blocks and nothing is used up by looking
//! at it. A file that changes while it is read is not read at all.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use crate::exit::{Exit, Failure};

/// The bytes of a regular file that did not change meanwhile. `name` stands in errors.
///
/// Fails with exit 2 where it is missing or no regular file, 5 where it may not be read, 3 where it changed, 75 where
/// reading failed.
pub fn read_unchanged(name: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let before = fs::metadata(path).map_err(|error| unreadable(name, &error))?;
    if !before.is_file() {
        return Err(Failure::rejected(format!("{name}: is not a regular file"))
            .why(
                "folders, pipes and devices are not read: looking at them may block or use them up",
            )
            .remedy("name a file, or a pattern such as exports/*.csv"));
    }
    let mut file = File::open(path).map_err(|error| unreadable(name, &error))?;
    let mut bytes = Vec::with_capacity(usize::try_from(before.len()).unwrap_or(0));
    file.read_to_end(&mut bytes)
        .map_err(|error| unreadable(name, &error))?;
    let opened = file.metadata().map_err(|error| unreadable(name, &error))?;
    let after = fs::metadata(path).map_err(|error| unreadable(name, &error))?;
    let is_same = identity(&before) == identity(&after)
        && identity(&before) == identity(&opened)
        && before.len() == bytes.len() as u64;
    if is_same {
        return Ok(bytes);
    }
    Err(Failure::new(
        Exit::Incomplete,
        format!("{name}: the file changed while it was read"),
    )
    .why("its size, time or place is another one than at the start, so it may be half written")
    .remedy(
        "run again when the export is finished; write exports under another name and rename them",
    ))
}

/// What tells a file from its successor.
fn identity(metadata: &Metadata) -> (u64, Option<std::time::SystemTime>, (u64, u64)) {
    (metadata.len(), metadata.modified().ok(), place(metadata))
}

#[cfg(unix)]
fn place(metadata: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino())
}

#[cfg(not(unix))]
fn place(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// What an error of the operating system about a file or folder means.
pub fn unreadable(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            Failure::rejected(format!("{name}: there is no such file"))
                .why("a feed without its file would look like a day without payments")
                .remedy("check the path, which is relative to the configuration, and whether the export was delivered")
        }
        io::ErrorKind::PermissionDenied => {
            Failure::new(Exit::Denied, format!("{name}: the file may not be read"))
                .why("the operating system denies this user the permission")
                .remedy("give the user that runs paysweep the right to read it")
        }
        _ => Failure::new(Exit::Temporary, format!("{name}: the file cannot be read: {error}"))
            .why("the operating system reports an error")
            .remedy("run again; if it persists, check the disk or the mount"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_may_not_be_read_is_denied() {
        let failure = unreadable("a.csv", &io::Error::from(io::ErrorKind::PermissionDenied));
        assert_eq!(failure.exit, Exit::Denied);
        let failure = unreadable("a.csv", &io::Error::from(io::ErrorKind::TimedOut));
        assert_eq!(failure.exit, Exit::Temporary);
    }

    #[test]
    fn a_file_that_grew_or_was_replaced_is_another_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        fs::write(&path, "a").expect("written");
        let before = fs::metadata(&path).expect("there");
        assert_eq!(read_unchanged("a.csv", &path).expect("read"), b"a");
        fs::write(&path, "ab").expect("written");
        assert_ne!(
            identity(&before),
            identity(&fs::metadata(&path).expect("there"))
        );
        let next = folder.path().join("b.csv");
        fs::write(&next, "a").expect("written");
        assert_ne!(
            identity(&before),
            identity(&fs::metadata(&next).expect("there"))
        );
    }
}
