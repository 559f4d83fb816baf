//! What a run needs before it begins: each source with its profile, and the files of both sides.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::exit::Failure;
use crate::intents::csv as intents_csv;
use crate::meter::Meter;
use crate::model::intent::Intents;
use crate::processor::ReadRules;
use crate::processor::api::{self, ApiProfile};
use crate::processor::generic::{self, GenericRules};
use crate::processor::profile::{Profile, Window as Recognised};
use crate::reconcile::redrive::Redrive;
use crate::reconcile::rules::Rules;
use crate::settings::{IntentsKind, ProfileRef, Settings, SourceKind, SourceSettings, Spans};
use crate::source::api::Account;
use crate::source::feed::Feed;
use crate::source::files;
use crate::source::http::{Budget, Traffic};
use crate::time::Span;

/// A source with its profile.
pub(crate) struct Prepared<'a> {
    pub(crate) source: &'a SourceSettings,
    pub(crate) reads: Reads,
    pub(crate) spans: Spans,
    pub(crate) rules: Rules,
    /// What was asked of it in this run.
    pub(crate) traffic: Arc<Traffic>,
}

/// What a source says about requests that are sent again; `None` = its processor publishes nothing, or nothing that it does
/// not show is known to be absent.
pub(crate) fn redrive(profile: &Profile, spans: Spans) -> Option<Redrive> {
    let known = profile.about.idempotency.as_ref()?;
    let window = match known.window {
        _ if !known.proves_absence => return None,
        Recognised::Unknown => return None,
        Recognised::AtLeast(window) => Some(window),
        Recognised::Indefinite => None,
    };
    let late = profile.spans.delay.0 + profile.spans.granularity.0 + profile.spans.clock_error.0;
    Some(Redrive {
        window,
        visible_within: spans.lag.max(Span(late)),
    })
}

/// How a source is read.
#[derive(Clone)]
pub(crate) enum Reads {
    /// From its files.
    Files(Arc<Profile>),
    /// By asking.
    Api(Arc<ApiProfile>),
}

impl Reads {
    /// By the profile that a source names.
    pub(crate) fn of(source: &SourceSettings) -> Result<Reads, Failure> {
        match source.kind {
            SourceKind::Csv => {
                profile(&source.profile).map(|profile| Reads::Files(Arc::new(profile)))
            }
            SourceKind::Api => {
                api_profile(&source.profile).map(|profile| Reads::Api(Arc::new(profile)))
            }
        }
    }

    /// What its rows mean.
    pub(crate) fn profile(&self) -> &Profile {
        match self {
            Reads::Files(profile) => profile,
            Reads::Api(profile) => &profile.rows,
        }
    }
}

impl<'a> Prepared<'a> {
    pub(crate) fn new(source: &'a SourceSettings) -> Result<Prepared<'a>, Failure> {
        let reads = Reads::of(source)?;
        let profile = reads.profile();
        let spans = source.spans(profile_spans(profile));
        let needed =
            profile.spans.delay.0 + profile.spans.granularity.0 + profile.spans.clock_error.0;
        if spans.lag.0 + spans.lookback.0 < needed {
            return Err(Failure::rejected(format!(
                "source {}: lag {} + lookback {} is less than the {} within which rows may still appear",
                source.name,
                spans.lag,
                spans.lookback,
                Span(needed)
            ))
            .why(format!("profile {} declares delay, granularity and clock error; a shorter reach loses rows", profile.name))
            .remedy("raise lookback"));
        }
        let rules = Rules {
            payout_span: spans.payout_span,
            redrive: if source.rules.may_redrive {
                redrive(profile, spans)
            } else {
                None
            },
            ..source.rules.clone()
        };
        Ok(Prepared {
            source,
            reads,
            spans,
            rules,
            traffic: Arc::default(),
        })
    }

    /// The account that is asked; `None` = files are read.
    pub(crate) fn account(&self, budget: &Arc<Budget>) -> Result<Option<Account>, Failure> {
        match (&self.reads, &self.source.access) {
            (Reads::Api(profile), Some(access)) => {
                let rules = self.source.read.clone();
                let (profile, budget) = (Arc::clone(profile), Arc::clone(budget));
                Account::new(profile, rules, access, budget, Arc::clone(&self.traffic))
                    .map(Some)
                    .map_err(|failure| Failure {
                        what: format!("source {}: {}", self.source.name, failure.what),
                        ..failure
                    })
            }
            _ => Ok(None),
        }
    }

    /// Reads its files, counting bytes, on whatever thread that is called; `None` where it is asked.
    pub(crate) fn reader(
        &self,
        meter: Meter,
    ) -> Option<impl FnOnce() -> Result<Feed, Failure> + Send + use<>> {
        let Reads::Files(profile) = &self.reads else {
            return None;
        };
        let profile = Arc::clone(profile);
        let (rules, files) = (self.source.read.clone(), self.source.files.clone());
        Some(move || read(&profile, &rules, &files, &meter))
    }

    /// How far before the window rows are read for linking: the longest grace, or the lookback.
    pub(crate) fn reach(&self) -> Span {
        let grace = &self.rules.grace;
        let longest = grace
            .charge
            .max(grace.refund)
            .max(grace.payout)
            .max(grace.dispute);
        longest.max(self.spans.lookback)
    }
}

/// Reads files by a profile.
pub(crate) fn read(
    profile: &Profile,
    rules: &ReadRules,
    paths: &[PathBuf],
    meter: &Meter,
) -> Result<Feed, Failure> {
    let patterns: Vec<String> = paths
        .iter()
        .map(|path| path.to_string_lossy().into_owned())
        .collect();
    files::read(profile, rules, Path::new(""), &patterns, meter)
}

/// Loads a profile: built in, or from its file.
pub(crate) fn profile(reference: &ProfileRef) -> Result<Profile, Failure> {
    match reference {
        ProfileRef::Generic(rules) => rules.profile(),
        ProfileRef::BuiltIn(name) if name == generic::NAME => GenericRules::default().profile(),
        ProfileRef::BuiltIn(name) => {
            let text = crate::processor::built_in(name).ok_or_else(|| {
                if api::built_in(name).is_some() {
                    return Failure::rejected(format!("the profile \"{name}\" asks an API, and this source reads files"))
                        .remedy("write kind = \"api\" in the section of the source, or name the profile of the file");
                }
                let known: Vec<&str> = crate::processor::built_in_names().collect();
                Failure::rejected(format!("there is no built-in profile \"{name}\""))
                    .why(format!("built in: {}", known.join(", ")))
                    .remedy("use one of these, or the path of a profile file that ends in .toml")
            })?;
            Profile::parse(name, text)
        }
        ProfileRef::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::rejected(format!("the profile {} cannot be read", path.display()))
                    .why(error.to_string())
            })?;
            Profile::parse(&path.display().to_string(), &text)
        }
    }
}

/// Loads a profile of an API: built in, or from its file.
pub(crate) fn api_profile(reference: &ProfileRef) -> Result<ApiProfile, Failure> {
    let name = match reference {
        ProfileRef::File(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::rejected(format!("the profile {} cannot be read", path.display()))
                    .why(error.to_string())
            })?;
            return ApiProfile::parse(&path.display().to_string(), &text);
        }
        ProfileRef::BuiltIn(name) => name.as_str(),
        ProfileRef::Generic(_) => generic::NAME,
    };
    let text = api::built_in(name).ok_or_else(|| {
        let known: Vec<&str> = api::built_in_names().collect();
        let failure = Failure::rejected(format!(
            "there is no built-in profile \"{name}\" for an API"
        ))
        .why(format!("built in: {}", known.join(", ")));
        if crate::processor::built_in(name).is_some() {
            failure.remedy(format!(
                "\"{name}\" reads files: write kind = \"csv\", or name a profile of an API"
            ))
        } else {
            failure.remedy("use one of these, or the path of a profile file that ends in .toml")
        }
    })?;
    ApiProfile::parse(name, text)
}

pub(crate) fn profile_spans(profile: &Profile) -> Spans {
    Spans {
        lag: profile.spans.lag,
        lookback: profile.spans.lookback,
        payout_span: profile.spans.payout_span,
    }
}

/// Reads the configured file of intents; `None` where the store's own table is used.
pub(crate) fn read_intents(settings: &Settings, meter: &Meter) -> Result<Option<Intents>, Failure> {
    match (settings.intents.kind, &settings.intents.file) {
        (IntentsKind::Csv, Some(path)) => {
            let mut intents = intents_csv::read(
                &super::intents::rules(&settings.intents),
                &path.display().to_string(),
                path,
                meter,
            )?;
            super::intents::own(&mut intents, &settings.intents.source);
            Ok(Some(intents))
        }
        _ => Ok(None),
    }
}
