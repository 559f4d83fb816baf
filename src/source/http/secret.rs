//! A key that shows itself nowhere but in the header it is for.

use std::fmt;

/// A secret. It cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps a secret.
    pub fn new(text: impl Into<String>) -> Secret {
        Secret(text.into())
    }

    /// The secret itself, for whoever has to send it.
    pub(super) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether it begins like this: keys of many processors say by their beginning what they are for.
    pub fn begins_with(&self, prefix: &str) -> bool {
        self.0.starts_with(prefix)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_not_printed() {
        let shown = format!("{:?}", Some(Secret::new("sk_live_hunter2")));
        assert_eq!(shown, "Some(Secret(…))");
    }
}
