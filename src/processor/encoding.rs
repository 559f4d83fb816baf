//! From the bytes of a file to text, strictly.
//!
//! Decisions: a byte that the encoding does not know rejects the file; nothing is ever replaced. Only a byte-order mark
//! or a declaration chooses an encoding, never a guess from the content.

use std::borrow::Cow;

use crate::exit::Failure;

/// How a file's bytes are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Encoding {
    /// The byte-order mark decides (UTF-8, UTF-16); without one the file has to be UTF-8.
    #[default]
    Auto,
    /// UTF-8, with or without mark.
    Utf8,
    /// The Western code page of old Windows programs.
    Windows1252,
    /// Latin 1: every byte is the character of the same number.
    Iso8859,
    /// UTF-16, low byte first, with or without mark.
    Utf16Le,
    /// UTF-16, high byte first, with or without mark.
    Utf16Be,
}

/// The names as a profile writes them.
pub(super) const NAMES: [(&str, Encoding); 6] = [
    ("auto", Encoding::Auto),
    ("utf-8", Encoding::Utf8),
    ("windows-1252", Encoding::Windows1252),
    ("iso-8859-1", Encoding::Iso8859),
    ("utf-16le", Encoding::Utf16Le),
    ("utf-16be", Encoding::Utf16Be),
];

impl Encoding {
    fn name(self) -> &'static str {
        NAMES
            .iter()
            .find(|(_, encoding)| *encoding == self)
            .map_or("auto", |(name, _)| name)
    }
}

const MARKS: [(&[u8], Encoding); 3] = [
    (b"\xef\xbb\xbf", Encoding::Utf8),
    (b"\xff\xfe", Encoding::Utf16Le),
    (b"\xfe\xff", Encoding::Utf16Be),
];

/// The five bytes that windows-1252 leaves undefined.
const UNDEFINED_1252: [u8; 5] = [0x81, 0x8d, 0x8f, 0x90, 0x9d];

/// The text of a file without its byte-order mark. Borrowed where the file is UTF-8.
///
/// Rejects: no bytes (beside a mark), bytes the encoding does not know, a mark that contradicts the declaration, and zero
/// characters.
pub fn decode<'a>(
    encoding: Encoding,
    file: &str,
    bytes: &'a [u8],
) -> Result<Cow<'a, str>, Failure> {
    let mark = MARKS.iter().find(|(mark, _)| bytes.starts_with(mark));
    let actual = match (encoding, mark) {
        (Encoding::Auto, Some((_, marked))) => *marked,
        (Encoding::Auto, None) => Encoding::Utf8,
        (declared, Some((_, marked))) if declared != *marked => {
            return Err(Failure::rejected(format!(
                "{file}: the file begins with the byte-order mark of {}",
                marked.name()
            ))
            .why(format!(
                "the profile declares encoding = \"{}\"",
                declared.name()
            ))
            .remedy("set encoding = \"auto\" in the profile, or export the file again"));
        }
        (declared, _) => declared,
    };
    let body = &bytes[mark.map_or(0, |(mark, _)| mark.len())..];
    if body.is_empty() {
        return Err(
            Failure::rejected(format!("{file}: there is nothing in the file to read"))
                .why(match mark {
                    Some(_) => "it holds a byte-order mark and no header",
                    None => "it has zero bytes, not even a header",
                })
                .remedy("export the file again; a feed without rows still has its header"),
        );
    }
    let text = match actual {
        Encoding::Auto | Encoding::Utf8 => {
            Cow::Borrowed(std::str::from_utf8(body).map_err(|error| {
                let at = error.valid_up_to();
                let line = 1 + line_ends(&body[..at]);
                undecodable(file, line, bytes.len() - body.len() + at, body[at], "utf-8")
            })?)
        }
        Encoding::Windows1252 => {
            if let Some(at) = body.iter().position(|byte| UNDEFINED_1252.contains(byte)) {
                let line = 1 + line_ends(&body[..at]);
                return Err(undecodable(file, line, at, body[at], "windows-1252"));
            }
            encoding_rs::WINDOWS_1252
                .decode_without_bom_handling(body)
                .0
        }
        Encoding::Iso8859 => Cow::Owned(body.iter().map(|byte| char::from(*byte)).collect()),
        Encoding::Utf16Le => utf16(
            file,
            body,
            bytes.len() - body.len(),
            u16::from_le_bytes,
            actual,
        )?,
        Encoding::Utf16Be => utf16(
            file,
            body,
            bytes.len() - body.len(),
            u16::from_be_bytes,
            actual,
        )?,
    };
    if text.as_bytes().contains(&0) {
        let at = text.find('\0').unwrap_or(0);
        let line = 1 + line_ends(&text.as_bytes()[..at]);
        return Err(Failure::rejected(format!(
            "{file}:{line}: a zero character stands on line {line}"
        ))
        .why("no text contains one: the file is damaged, or it is UTF-16 without a byte-order mark")
        .remedy("export the file again as UTF-8, or declare its encoding in a profile, for example encoding = \"utf-16le\""));
    }
    Ok(text)
}

fn utf16<'a>(
    file: &str,
    body: &[u8],
    mark_bytes: usize,
    unit: fn([u8; 2]) -> u16,
    encoding: Encoding,
) -> Result<Cow<'a, str>, Failure> {
    let units = body.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
    let mut text = String::with_capacity(body.len() / 2);
    for character in char::decode_utf16(units) {
        let Ok(character) = character else {
            let line = 1 + line_ends(text.as_bytes());
            let at = text.encode_utf16().count() * 2;
            return Err(undecodable(
                file,
                line,
                mark_bytes + at,
                body[at],
                encoding.name(),
            ));
        };
        text.push(character);
    }
    if body.len() % 2 == 1 {
        let line = 1 + line_ends(text.as_bytes());
        let last = body.len() - 1;
        return Err(undecodable(
            file,
            line,
            mark_bytes + last,
            body[last],
            encoding.name(),
        ));
    }
    Ok(Cow::Owned(text))
}

fn undecodable(file: &str, line: usize, offset: usize, byte: u8, encoding: &str) -> Failure {
    Failure::rejected(format!(
        "{file}:{line}: the byte 0x{byte:02X} on line {line} (offset {offset}) is not {encoding}"
    ))
    .why("bytes that cannot be read are never replaced, since an id or an amount may hang on them")
    .remedy("export the file as UTF-8, or declare its encoding in a profile, for example encoding = \"windows-1252\"")
}

/// How many line ends a piece of text holds: `\n`, `\r\n` and a lone `\r` count as one each.
pub(super) fn line_ends(bytes: &[u8]) -> usize {
    bytes
        .iter()
        .enumerate()
        .filter(|(at, byte)| {
            **byte == b'\n' || (**byte == b'\r' && bytes.get(at + 1) != Some(&b'\n'))
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16_bytes(text: &str, order: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(order).collect()
    }

    #[test]
    fn the_mark_decides_and_is_no_part_of_the_text() {
        let le = utf16_bytes("\u{feff}aé😀", u16::to_le_bytes);
        let be = utf16_bytes("\u{feff}aé😀", u16::to_be_bytes);
        for (encoding, bytes, want) in [
            (Encoding::Auto, b"\xef\xbb\xbfa".as_slice(), "a"),
            (Encoding::Utf8, b"\xef\xbb\xbfa", "a"),
            (Encoding::Auto, b"a", "a"),
            (Encoding::Auto, &le, "aé😀"),
            (Encoding::Auto, &be, "aé😀"),
            (Encoding::Utf16Le, &le[2..], "aé😀"),
            (Encoding::Utf16Be, &be[2..], "aé😀"),
            (Encoding::Windows1252, b"\x80 \xe9", "€ é"),
            (Encoding::Iso8859, b"\xe9", "é"),
        ] {
            assert_eq!(
                decode(encoding, "a.csv", bytes).expect("text"),
                want,
                "{encoding:?} {bytes:?}"
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_named_and_never_replaced() {
        for (encoding, bytes, want) in [
            (Encoding::Auto, b"".as_slice(), "nothing in the file"),
            (Encoding::Auto, b"\xef\xbb\xbf", "nothing in the file"),
            (Encoding::Auto, b"a\nb\xe9c", "0xE9 on line 2 (offset 3)"),
            (
                Encoding::Auto,
                b"\xef\xbb\xbfa\r\n\xff",
                "0xFF on line 2 (offset 6)",
            ),
            (Encoding::Windows1252, b"a\x81", "0x81 on line 1 (offset 1)"),
            (
                Encoding::Windows1252,
                b"\xef\xbb\xbfa",
                "byte-order mark of utf-8",
            ),
            (Encoding::Utf16Le, b"a\0\n\0b", "0x62 on line 2 (offset 4)"),
            (Encoding::Utf16Le, b"a\0\x00\xd8b\0", "on line 1 (offset 2)"),
            (Encoding::Auto, b"a\0b\0", "zero character stands on line 1"),
        ] {
            let failure = decode(encoding, "a.csv", bytes).expect_err("rejected");
            assert!(failure.what.contains(want), "{}", failure.what);
            assert!(!failure.remedy.is_empty());
        }
    }
}
