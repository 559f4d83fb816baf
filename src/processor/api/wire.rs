//! The TOML of the tables that say how an API is asked. Gives them no meaning: that is [`super::spec`].

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::processor::wire::{NameWire, OneOrMany};

/// The tables that a profile of an API has beside those of any profile, which are read on their own.
#[derive(Debug, Deserialize)]
pub(super) struct ApiWire {
    pub http: HttpWire,
    pub auth: AuthWire,
    #[serde(default)]
    pub request: Vec<RequestWire>,
    #[serde(default)]
    pub lookup: Vec<LookupWire>,
    pub reports: Option<ReportsWire>,
    pub report_runs: Option<ReportRunsWire>,
    pub account: Option<AccountWire>,
}

/// Where the processor says whose account is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AccountWire {
    pub path: Option<String>,
    pub request: Option<String>,
    pub id: String,
}

/// A profile of numbered reports, which are read by a profile of files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportsProfileWire {
    pub profile: NameWire,
    #[serde(rename = "http")]
    pub _http: IgnoredAny,
    #[serde(rename = "auth")]
    pub _auth: IgnoredAny,
    pub reports: ReportsWire,
}

/// A profile of reports that are listed, which are read by a profile of files.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportRunsProfileWire {
    pub profile: NameWire,
    #[serde(rename = "http")]
    pub _http: IgnoredAny,
    #[serde(rename = "auth")]
    pub _auth: IgnoredAny,
    #[serde(rename = "account")]
    pub _account: Option<IgnoredAny>,
    #[serde(rename = "request")]
    pub _request: IgnoredAny,
    pub report_runs: ReportRunsWire,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportRunsWire {
    pub request: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub when: BTreeMap<String, OneOrMany<String>>,
    pub base: Option<String>,
    pub path: String,
    pub files: String,
    pub rows: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReportsWire {
    pub path: String,
    pub rows: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HttpWire {
    pub base: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    pub account_header: Option<String>,
    #[serde(default)]
    pub account_param: BTreeMap<String, String>,
    pub timeout: Option<String>,
    pub max_rps: Option<u32>,
    pub max_window: Option<String>,
    pub form: Option<String>,
    #[serde(default)]
    pub retry: RetryWire,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RetryWire {
    pub on: Option<Vec<u16>>,
    pub base_ms: Option<u64>,
    pub max_ms: Option<u64>,
    pub tries: Option<usize>,
    pub patience: Option<String>,
    pub veto_header: Option<BTreeMap<String, String>>,
    pub force_header: Option<BTreeMap<String, String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AuthWire {
    pub kind: String,
    pub user: Option<String>,
    pub secret: Option<String>,
    pub header: Option<String>,
    pub token_path: Option<String>,
    pub scope: Option<String>,
    pub require_prefix: Option<PrefixWire>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PrefixWire {
    pub live: Vec<String>,
    pub test: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RequestWire {
    pub id: String,
    pub path: String,
    #[serde(default)]
    pub query: BTreeMap<String, OneOrMany<String>>,
    pub items: String,
    pub window: Option<WindowWire>,
    pub page: Option<PageWire>,
    #[serde(default)]
    pub columns: BTreeMap<String, OneOrMany<String>>,
    pub for_each: Option<ForEachWire>,
    pub rows: Option<bool>,
    pub notes: Option<bool>,
    pub optional_items: Option<bool>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowWire {
    pub from: ParameterWire,
    pub to: ParameterWire,
    pub max_span: Option<String>,
    pub until: Option<String>,
    pub too_large: Option<String>,
    pub reach: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ParameterWire {
    pub param: OneOrMany<String>,
    pub format: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageWire {
    pub kind: String,
    pub param: Option<String>,
    pub id: Option<String>,
    pub token: Option<String>,
    pub more: Option<String>,
    pub total_pages: Option<String>,
    pub size_param: Option<String>,
    pub size: Option<u64>,
    pub max_pages: Option<u64>,
    pub field: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ForEachWire {
    pub request: String,
    pub item: String,
    pub param: Option<String>,
    pub column: Option<String>,
    pub when: Option<BTreeMap<String, OneOrMany<String>>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LookupWire {
    pub prefix: OneOrMany<String>,
    pub path: String,
    #[serde(default)]
    pub query: BTreeMap<String, OneOrMany<String>>,
    pub request: String,
    pub item: Option<String>,
    pub kinds: Option<Vec<String>>,
}
