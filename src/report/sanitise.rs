//! The one door through which foreign text reaches a terminal.
//!
//! Ids, references and file names come from outside. A control character in one of them could move the cursor, recolour
//! a line, break it in two or turn its reading direction, so that a report shows something else than it says. Each is
//! replaced by its visible name; everything else stays as it is, in any script.

use std::borrow::Cow;
use std::fmt::Write;

/// Format characters (Unicode 17, general category Cf) and the two separators that break lines (Zl, Zp). Of the tags
/// only the ones that are assigned stand in the standard; the whole block is taken.
const INVISIBLE: &[(u32, u32)] = &[
    (0xAD, 0xAD),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE007F),
];

/// The text with every control and format character replaced by its visible name: `\n`, `\t`, `\u{202e}`.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            _ if is_unsafe(character) => {
                // Writing to a string cannot fail.
                let _ = write!(shown, "\\u{{{:x}}}", u32::from(character));
            }
            _ => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

fn is_unsafe(character: char) -> bool {
    // C0, DEL and C1.
    if character.is_control() {
        return true;
    }
    let point = u32::from(character);
    point >= 0xAD
        && INVISIBLE
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&point))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_named_and_the_rest_stays() {
        for (text, want) in [
            ("ch_1", "ch_1"),
            ("Zoë 漢字 العربية", "Zoë 漢字 العربية"),
            ("a\nb\tc\r", "a\\nb\\tc\\r"),
            ("\u{1b}[31mred", "\\u{1b}[31mred"),
            ("\u{9b}2J", "\\u{9b}2J"),
            ("\u{7f}", "\\u{7f}"),
            ("abc\u{202e}cba", "abc\\u{202e}cba"),
            ("a\u{200b}b\u{feff}", "a\\u{200b}b\\u{feff}"),
            ("\u{2028}\u{2067}\u{e0041}", "\\u{2028}\\u{2067}\\u{e0041}"),
        ] {
            assert_eq!(clean(text), want);
        }
    }
}
