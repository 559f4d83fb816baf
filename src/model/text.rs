//! One arena per batch: rows hold spans into it instead of strings of their own.

/// A string in an [`Arena`]. The default is the empty string, which means "none" for every id and reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Text {
    start: u64,
    bytes: u32,
}

impl Text {
    /// Whether it is the empty string.
    pub const fn is_empty(self) -> bool {
        self.bytes == 0
    }
}

/// Append-only storage for the strings of a batch.
#[derive(Clone, Debug, Default)]
pub struct Arena {
    bytes: String,
}

impl Arena {
    /// Keeps a copy of the string.
    pub fn push(&mut self, text: &str) -> Text {
        if text.is_empty() {
            return Text::default();
        }
        let start = self.bytes.len() as u64;
        self.bytes.push_str(text);
        Text {
            start,
            bytes: u32::try_from(text.len()).expect("a field is far below 4 GiB: readers cap it"),
        }
    }

    /// The string of a span of this arena.
    pub fn get(&self, text: Text) -> &str {
        let start = usize::try_from(text.start).expect("the span was made on this machine");
        &self.bytes[start..start + text.bytes as usize]
    }

    /// Room for so many more bytes.
    pub fn reserve(&mut self, bytes: usize) {
        self.bytes.reserve(bytes);
    }
}
