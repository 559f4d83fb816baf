//! Whose account a source reads, and of which mode: what its first run found, every later one has to find again.
//!
//! Decisions: an account that is compared with the wrong intents makes every payment missing, so nothing is compared then. What
//! was not known is filled in once it is; what was known and cannot be told any more is refused like another account, since
//! nobody can say that it is the same. Only a person lets a pin go, with a word why.

use crate::exit::{Exit, Failure};
use crate::model::run::Pin;
use crate::processor::Mode;
use crate::settings::SourceSettings;
use crate::store::contract::Store;

/// The pin of a source, and what this run finds.
pub(super) struct Pinning {
    source: String,
    stored: Option<Pin>,
    found: Pin,
}

impl Pinning {
    /// Fails with 5 where the configuration names another account or mode than the one that is pinned.
    pub(super) async fn of<S: Store>(
        store: &mut S,
        source: &SourceSettings,
    ) -> Result<Pinning, Failure> {
        let mode = match source.read.mode {
            Some(Mode::Test) => "test",
            Some(Mode::Live) | None => "live",
        };
        let stored = store.pin(&source.name).await?;
        let pinning = Pinning {
            source: source.name.clone(),
            found: Pin {
                account: stored
                    .as_ref()
                    .map_or_else(String::new, |pin| pin.account.clone()),
                declared: source.read.account.clone(),
                mode: mode.to_owned(),
            },
            stored,
        };
        if let Some(stored) = &pinning.stored {
            if stored.mode != mode {
                let what = format!(
                    "it is of {mode} mode, and was read in {} mode so far",
                    stored.mode
                );
                return Err(pinning.refuse(&what));
            }
            if stored.declared != pinning.found.declared {
                let what = format!(
                    "account is {}, and its rows so far are of {}",
                    named(&pinning.found.declared),
                    named(&stored.declared)
                );
                return Err(pinning.refuse(&what));
            }
        }
        Ok(pinning)
    }

    /// Takes what the processor calls the account; empty = it was asked and does not say. Fails with 5 where that is not the
    /// pinned one.
    pub(super) fn told(&mut self, account: &str) -> Result<(), Failure> {
        let known = self.stored.as_ref().map_or("", |pin| pin.account.as_str());
        if known.is_empty() || known == account {
            account.clone_into(&mut self.found.account);
            return Ok(());
        }
        Err(if account.is_empty() {
            self.refuse(&format!(
                "the processor does not tell this key whose account it is, and it was {known} so far"
            ))
            .remedy("give the key the right to read its account; where it is the same one, let go of what is pinned with `paysweep watermark repin`")
        } else {
            self.refuse(&format!(
                "the key is one of account {account}, and it was {known} so far"
            ))
        })
    }

    /// What is pinned, and what would be, as people read it.
    pub(super) fn shown(&self) -> String {
        match &self.stored {
            Some(_) => format!("pinned to {}", shown(&self.found)),
            None => format!(
                "nothing is pinned yet; the next run pins {}",
                shown(&self.found)
            ),
        }
    }

    /// What is to be remembered; `None` = that is what is stored.
    pub(super) fn to_write(&self) -> Option<&Pin> {
        (self.stored.as_ref() != Some(&self.found)).then_some(&self.found)
    }

    fn refuse(&self, what: &str) -> Failure {
        Failure::new(Exit::Denied, format!("source {}: {what}", self.source))
            .why("what the store holds of this source would be compared with the rows of somebody else, and every payment would be missing")
            .remedy("give it the key and settings that it had, or make it a source of its own; where it is meant, let go of what is pinned with `paysweep watermark repin`")
    }
}

/// A pin as people read it.
pub(super) fn shown(pin: &Pin) -> String {
    let mut text = format!("{} mode", pin.mode);
    if !pin.account.is_empty() {
        text.push_str(&format!(", account {}", pin.account));
    }
    if !pin.declared.is_empty() && pin.declared != pin.account {
        text.push_str(&format!(", account = \"{}\"", pin.declared));
    }
    text
}

fn named(account: &str) -> String {
    match account {
        "" => "no account".to_owned(),
        name => format!("\"{name}\""),
    }
}
