//! The nouns. No I/O, no serialisation, no decisions.
//!
//! | module | holds |
//! |---|---|
//! | [`text`] | the arena that a batch keeps its strings in |
//! | [`operation`] | one thing the processor says happened, as columns |
//! | [`intent`] | one thing our own software meant to happen, as columns |
//! | [`verdict`] | what became of a row: matched, pending, ignored, unmatched |
//! | [`breaks`] | the catalogue of break classes, and a break |
//! | [`repair`] | a local write that closes a break |
//! | [`run`] | window, coverage, watermark, totals and tally of a run |
//! | [`statement`] | what was open and what is; why the two sides differ |
//! | [`answer`] | who answers an intent, as one source sees it |
//! | [`stored`] | rows as the store holds them |

pub mod answer;
pub mod breaks;
pub mod intent;
pub mod operation;
pub mod repair;
pub mod run;
pub mod statement;
pub mod stored;
pub mod text;
pub mod verdict;

/// Declares an enum whose variants are the contract's words, with the word, the list in order, and the way back.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant,)+ }

        impl $name {
            /// Every word, in order of declaration.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The word as files, reports and tables write it.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word,)+ }
            }

            /// The variant of a word; `None` for an unknown one. Case counts.
            pub fn from_word(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use words;
