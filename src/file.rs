//! The bytes of a file, whole: what every reader of files stands on.
//!
//! Decisions: only regular files are read (a link to one is one), so that nothing blocks and nothing is used up by looking
//! at it. A file that changes while it is read is not read at all. What is packed with gzip is told by its first bytes,
//! not by its name, and given unpacked, so that the same export is the same content either way.

use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use crate::exit::{Exit, Failure};

/// How a gzip member begins (RFC 1952, section 2.3.1).
const GZIP_MARK: [u8; 2] = [0x1f, 0x8b];
/// How a zip archive begins, a spreadsheet included.
const ZIP_MARK: [u8; 4] = *b"PK\x03\x04";
/// Most bytes that a packed file may hold: far above any export; a file made to fill the memory holds more.
const UNPACKED_BYTES_MAX: u64 = 4 << 30;

/// The bytes of a regular file that did not change meanwhile, unpacked where it is packed with gzip. `name` stands in
/// errors.
///
/// Fails with exit 2 where it is missing, no regular file, an archive or packed and damaged, 5 where it may not be read,
/// 3 where it changed, 75 where reading failed.
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
        return unpacked(name, bytes, UNPACKED_BYTES_MAX);
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

/// How large a file is at this moment; 0 where nobody knows.
pub fn size(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// The content of a file that may be packed; at most so many bytes of it.
fn unpacked(name: &str, bytes: Vec<u8>, bytes_max: u64) -> Result<Vec<u8>, Failure> {
    if bytes.starts_with(&ZIP_MARK) {
        return Err(
            Failure::rejected(format!("{name}: is a zip archive or a spreadsheet"))
                .why("only text and text packed with gzip are read")
                .remedy(
                    "unpack the archive, or export the report as CSV instead of as a spreadsheet",
                ),
        );
    }
    if !bytes.starts_with(&GZIP_MARK) {
        return Ok(bytes);
    }
    let damaged = |error: &io::Error| {
        let finding = match error.kind() {
            io::ErrorKind::UnexpectedEof => "the packed file is cut off".to_owned(),
            _ => format!("the packed file is damaged: {error}"),
        };
        Failure::rejected(format!("{name}: {finding}"))
            .why("what a packed file holds is read to its check sum or not at all")
            .remedy("fetch or export the file again")
    };
    let mut content = Vec::new();
    MultiGzDecoder::new(bytes.as_slice())
        .take(bytes_max + 1)
        .read_to_end(&mut content)
        .map_err(|error| damaged(&error))?;
    if content.len() as u64 > bytes_max {
        return Err(Failure::rejected(format!(
            "{name}: the packed file holds more than {bytes_max} bytes"
        ))
        .why("so much is taken for a file that was made to fill the memory")
        .remedy("export shorter periods"));
    }
    Ok(content)
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
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn packed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text.as_bytes()).expect("packed");
        encoder.finish().expect("packed")
    }

    #[test]
    fn a_packed_file_is_read_whole_or_not_at_all() {
        let text = "id,amount\na,1\nb,2\n";
        let whole = packed(text);
        let members = [packed("id,amount\na,1\n"), packed("b,2\n")].concat();
        for bytes in [text.as_bytes().to_vec(), whole.clone(), members.clone()] {
            assert_eq!(unpacked("a", bytes, 18).expect("read"), text.as_bytes());
        }
        // Cut anywhere, between two members as well, there is no silent half; one member alone is a whole file.
        for cut in 2..whole.len() {
            let failure = unpacked("a", whole[..cut].to_vec(), 99).expect_err("cut off");
            assert!(failure.what.contains("cut off"), "{cut}: {failure}");
        }
        let mut changed = whole.clone();
        let at = whole.len() - 6;
        changed[at] ^= 1;
        let tailed = [whole.clone(), b"and more behind the end".to_vec()].concat();
        for (bytes, want) in [
            (members[..members.len() - 1].to_vec(), "cut off"),
            (changed, "damaged"),
            (tailed, "damaged"),
            (b"PK\x03\x04rest".to_vec(), "spreadsheet"),
        ] {
            let failure = unpacked("a", bytes, 99).expect_err("refused");
            assert!(failure.what.contains(want), "{failure}");
        }
        let failure = unpacked("a", whole, 17).expect_err("too much");
        assert!(failure.what.contains("more than 17 bytes"), "{failure}");
    }

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
