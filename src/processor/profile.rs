//! What a CSV profile means, typed so that the decoder has no choice left to make.
//!
//! Every column that a profile names stands once in `Profile::columns`; rules hold its index. A file binds the indices
//! to positions once, in its header.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use super::amount::AmountFormat;
use super::encoding::Encoding;
use super::header::RowWidth;
use super::moment::TimeRule;
use super::{compile, wire};
use crate::exit::Failure;
use crate::model::operation::{OperationKind, OperationStatus};
use crate::model::verdict::IgnoreReason;
use crate::money::Currency;
use crate::time::Span;

/// How a CSV format of a processor is read.
#[derive(Debug)]
pub struct Profile {
    /// What the profile calls itself.
    pub name: String,
    /// Grows with every change of the profile.
    pub version: u32,
    /// The file's outer form.
    pub(super) layout: Layout,
    /// Every column that a rule names.
    pub(super) columns: Vec<Column>,
    /// Groups of columns of which at least one has to be in the file.
    pub(super) any_of: Vec<Vec<ColumnId>>,
    pub(super) id: IdRule,
    pub(super) account: TextRule,
    pub(super) object_id: TextRule,
    pub(super) parent_id: TextRule,
    pub(super) reference: TextRule,
    pub(super) payout_id: TextRule,
    pub(super) description: TextRule,
    pub(super) mode: Option<ModeRule>,
    pub(super) occurred_at: TimeRule,
    /// Times that are checked for their grammar and not kept.
    pub(super) other_times: Vec<TimeRule>,
    pub(super) money: MoneyRules,
    pub(super) derived_refund: Option<DerivedRefund>,
    pub(super) kinds: WordMap,
    pub(super) statuses: Option<WordMap>,
    /// What rows, payouts and files have to satisfy.
    pub checks: Checks,
    /// Delays of the format, for the watermark.
    pub spans: Spans,
}

impl Profile {
    /// Reads a profile. `origin` names it in errors: a path, or the name of a built-in one.
    ///
    /// Rejects unknown keys (with line, column and a suggestion), what is missing, and what this version does not support.
    pub fn parse(origin: &str, toml_text: &str) -> Result<Profile, Failure> {
        let wire: wire::ProfileWire = toml::from_str(toml_text)
            .map_err(|error| compile::not_a_profile(origin, toml_text, &error))?;
        compile::compile(origin, wire)
    }

    /// Name and version, as the store keeps them beside an operation: `canonical@1`.
    pub fn full_name(&self) -> String {
        format!("{}@{}", self.name, self.version)
    }
}

/// The outer form of a file.
#[derive(Debug)]
pub(super) struct Layout {
    pub encoding: Encoding,
    pub delimiter: Delimiter,
    pub quote: Option<u8>,
    pub header: HeaderForm,
    pub trim: bool,
    pub strip_text_guard: bool,
    pub width: RowWidth,
    pub aliases: BTreeMap<String, String>,
    pub skip: Vec<SkipRule>,
    pub end_marker: Option<String>,
    pub controls: Vec<ControlRule>,
    pub expect_rows: Option<u64>,
    pub expect_total: Option<ExpectTotal>,
    pub trailer: Option<Trailer>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    Is(u8),
    /// The one under which the header line holds the most names that the profile knows.
    FromHeader,
}

#[derive(Debug)]
pub(super) enum HeaderForm {
    /// The first record that is not blank.
    Named,
    /// The first line whose first cell is this, within so many lines.
    NamedAfterPreamble {
        first_cell: String,
        within_lines: u32,
    },
    /// No header: columns are positions.
    Positional,
}

/// Index into [`Profile::columns`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnId(pub usize);

/// A column as the profile names it.
#[derive(Debug)]
pub(super) struct Column {
    pub at: ColumnAt,
    /// Without it the file is rejected.
    pub is_required: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ColumnAt {
    /// By name; `nth` counts from 1 and chooses among columns of one name.
    Name { name: String, nth: Option<usize> },
    /// By position counted from 1.
    Position(usize),
}

/// Rows that are listed as ignored.
#[derive(Debug)]
pub(super) struct SkipRule {
    pub column: ColumnId,
    pub words: Vec<String>,
    pub reason: IgnoreReason,
}

/// Rows that hold the total of the rows above.
#[derive(Debug)]
pub(super) struct ControlRule {
    pub column: ColumnId,
    pub words: Vec<String>,
    pub sum_of: ColumnId,
}

/// A total that the profile's author knows.
#[derive(Debug)]
pub(super) struct ExpectTotal {
    pub column: ColumnId,
    pub value: String,
}

/// The last line of a file, which proves that nothing was cut off.
#[derive(Debug)]
pub(super) struct Trailer {
    pub first_cell: String,
    /// Position, counted from 1, of the number of rows.
    pub rows: Option<usize>,
    /// Position of a total, and the column it sums.
    pub total: Option<(usize, ColumnId)>,
}

/// Where an operation's id comes from.
#[derive(Debug)]
pub(super) enum IdRule {
    /// The row's content and its occurrence number.
    Synthetic,
    /// One column, or several that are joined.
    Columns {
        columns: Vec<ColumnId>,
        /// Where they are empty: the row's content, or the file is rejected.
        falls_back: bool,
    },
}

/// The first candidate that gives something wins; none = there is no such text.
pub(super) type TextRule = Vec<Candidate>;

#[derive(Debug)]
pub(super) struct Candidate {
    pub from: TextFrom,
    /// Values that mean "none".
    pub not_in: Vec<String>,
    /// Where in the cell's JSON the text stands.
    pub json_pointer: Option<String>,
    /// Only for rows of these kinds; empty = all.
    pub when_kind: Vec<OperationKind>,
}

#[derive(Debug)]
pub(super) enum TextFrom {
    Column(ColumnId),
    Const(String),
}

#[derive(Debug)]
pub(super) struct ModeRule {
    pub column: ColumnId,
    pub live: Vec<String>,
    pub test: Vec<String>,
}

#[derive(Debug)]
pub(super) struct MoneyRules {
    pub format: AmountFormat,
    pub amount: Vec<AmountRule>,
    pub settle_net: Vec<AmountRule>,
    pub settle_gross: Vec<AmountRule>,
    pub fee_total: Vec<AmountRule>,
    pub fees: Vec<AmountRule>,
    /// Net = amount − fee, since the profile derives the settled gross from the amount and gives no net.
    pub net_is_amount_less_fee: bool,
}

#[derive(Debug)]
pub(super) struct AmountRule {
    pub from: AmountFrom,
    pub currency: CurrencyFrom,
    /// The written number has the opposite sign.
    pub is_negated: bool,
}

#[derive(Debug)]
pub(super) enum AmountFrom {
    Column(ColumnId),
    CreditDebit {
        credit: ColumnId,
        debit: ColumnId,
    },
    /// An unsigned number, and a word that tells its sign.
    Signed {
        column: ColumnId,
        sign: ColumnId,
        negative: Vec<String>,
    },
}

#[derive(Clone, Debug)]
pub(super) enum CurrencyFrom {
    Column(ColumnId),
    Const(Currency),
}

#[derive(Debug)]
pub(super) struct DerivedRefund {
    pub total: AmountRule,
    pub at: TimeRule,
}

/// What the words of a column mean.
#[derive(Debug)]
pub(super) struct WordMap {
    pub column: ColumnId,
    pub is_case_sensitive: bool,
    pub words: HashMap<String, Word>,
    pub otherwise: Otherwise,
}

/// What a word says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    pub kind: Option<OperationKind>,
    pub status: Option<OperationStatus>,
    pub is_final: bool,
    pub ignore: Option<IgnoreReason>,
}

/// What an unknown word does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    Invalid,
    Ignore(IgnoreReason),
    Error,
}

/// What the profile promises about sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// In each row net = amount − fee within so many minor units; `None` = not promised. A row that breaks it rejects the
    /// file.
    pub row_net: Option<RowNet>,
    /// The nets of a payout's rows add up to the payout, within so many minor units; `None` = not promised. Judged by the
    /// core.
    pub payout_tolerance_minor: Option<i64>,
}

/// The promise that net = amount − fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowNet {
    /// Only rows whose net is not 0.
    pub only_where_net: bool,
    /// Tolerated difference in minor units.
    pub tolerance_minor: i64,
}

/// Delays of a format, and the settings they suggest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spans {
    /// How late rows may appear.
    pub delay: Span,
    /// How coarse the format's times are.
    pub granularity: Span,
    /// How far its clock may be off.
    pub clock_error: Span,
    /// What is younger is not judged; the source's own setting overrides it.
    pub lag: Span,
    /// How far before the watermark each run reads again; the source's own setting overrides it.
    pub lookback: Span,
    /// How far before a payout its parts may lie.
    pub payout_span: Span,
    /// How far back rows may still change; `None` = the format says nothing.
    pub rescan: Option<Span>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINIMAL: &str = r#"
        [profile]
        name = "own"
        version = 1
        kind = "csv"
        [csv]
        delimiter = ","
        [records.default]
        operation_id = ["id"]
        occurred_at = { column = "at", format = "rfc3339" }
        [records.default.money]
        unit = "minor"
        amount = { column = "amount", currency = "currency" }
        [maps.kind]
        column = "kind"
        charge = { kind = "charge", status = "succeeded" }
    "#;

    fn refusal(toml_text: &str) -> Failure {
        Profile::parse("profile.toml", toml_text).expect_err("rejected")
    }

    #[test]
    fn a_profile_has_the_defaults_of_the_format() {
        let profile = Profile::parse("profile.toml", MINIMAL).expect("a profile");
        assert_eq!(profile.full_name(), "own@1");
        assert_eq!(profile.layout.encoding, Encoding::Auto);
        assert_eq!(profile.layout.width, RowWidth::Exact);
        assert!(profile.layout.trim && profile.layout.strip_text_guard);
        assert_eq!(profile.kinds.otherwise, Otherwise::Invalid);
        assert_eq!(profile.checks, Checks::default());
        assert_eq!(
            (profile.spans.lag, profile.spans.lookback),
            (Span::ZERO, Span::hours(72))
        );
        assert!(profile.columns.iter().all(|column| column.is_required));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_key_that_was_meant() {
        for (from, to, key, meant) in [
            (
                "delimiter = \",\"",
                "delimitr = \",\"",
                "delimitr",
                "delimiter",
            ),
            (
                "format = \"rfc3339\"",
                "fromat = \"rfc3339\"",
                "fromat",
                "format",
            ),
            (
                "column = \"amount\"",
                "colum = \"amount\"",
                "colum",
                "column",
            ),
            (
                "status = \"succeeded\"",
                "statsu = \"succeeded\"",
                "statsu",
                "status",
            ),
            ("unit = \"minor\"", "units = \"minor\"", "units", "unit"),
        ] {
            let text = MINIMAL.replace(from, to);
            let failure = refusal(&text);
            let line = text[..text.find(to).expect("there")].matches('\n').count() + 1;
            assert!(failure.what.contains(&format!("\"{key}\"")), "{failure}");
            assert!(
                failure.what.starts_with(&format!("profile.toml:{line}:")),
                "{failure}"
            );
            assert!(
                failure.what.contains(&format!("line {line}, column ")),
                "{failure}"
            );
            assert!(
                failure.remedy.contains(&format!("\"{meant}\"")),
                "{failure}"
            );
        }
    }

    #[test]
    fn what_a_profile_cannot_do_yet_is_refused_with_its_key() {
        let here = "[csv]";
        for (from, to, key) in [
            ("kind = \"csv\"", "kind = \"api\"", "profile.kind = \"api\""),
            (here, "[http]\nbase_url = \"x\"\n[csv]", "[http]"),
            (here, "[http.retry]\nmax = 1\n[csv]", "[http]"),
            (here, "[auth]\nkind = \"bearer\"\n[csv]", "[auth]"),
            (here, "[[request]]\nid = \"x\"\n[csv]", "[request]"),
            (here, "[[fanout]]\nid = \"x\"\n[csv]", "[fanout]"),
            (here, "[job]\nid = \"x\"\n[csv]", "[job]"),
            (here, "[probe]\nid = \"x\"\n[csv]", "[probe]"),
            (here, "[loop]\nid = \"x\"\n[csv]", "[loop]"),
            (here, "[graphql]\nid = \"x\"\n[csv]", "[graphql]"),
            (here, "[group]\nby = \"x\"\n[csv]", "[group]"),
            (
                here,
                "[[header_sets]]\nlocale = \"es\"\n[csv]",
                "[header_sets]",
            ),
            (
                here,
                "[sections]\nCH = { role = \"header\" }\n[csv]",
                "[sections]",
            ),
            (
                here,
                "[csv]\nheader = \"by_record_type\"",
                "csv.header = \"by_record_type\"",
            ),
            (here, "[csv]\ndiscriminator = 0", "csv.discriminator"),
            (here, "[csv]\nfile_id = { from = \"name\" }", "csv.file_id"),
            (
                "[\"id\"]",
                "[\"id\"]\nbank_ref = { column = \"r\", regex = \"x\" }",
                "\"regex\" of records.default.bank_ref",
            ),
            (
                "status = \"succeeded\"",
                "status = \"succeeded\", bank_ref = { column = \"r\" }",
                "maps.kind.charge.bank_ref",
            ),
            (
                "[maps.kind]",
                "[watermark]\nkind = \"date\"\n[maps.kind]",
                "watermark.kind = \"date\"",
            ),
            (
                "[maps.kind]",
                "[watermark]\nkind = \"id\"\n[maps.kind]",
                "watermark.kind = \"id\"",
            ),
            (
                "[maps.kind]",
                "[watermark]\nkind = \"file_set\"\n[maps.kind]",
                "\"file_set\"",
            ),
            (
                "[maps.kind]",
                "[[checks]]\nscope = \"file\"\nrule = \"net == 0\"\n[maps.kind]",
                "scope \"file\"",
            ),
        ] {
            let failure = refusal(&MINIMAL.replacen(from, to, 1));
            assert!(failure.what.contains(key), "{key}: {failure}");
            let says_so = ["not supported yet", "no place in a profile", "is not known"];
            assert!(
                says_so.iter().any(|words| failure.what.contains(words)),
                "{failure}"
            );
            assert!(
                !failure.why.is_empty() && !failure.remedy.is_empty(),
                "{failure}"
            );
        }
    }

    #[test]
    fn what_could_never_be_met_is_refused() {
        for (line, want) in [
            ("quote = \"\\n\"", "csv.quote = \"\\n\""),
            ("quote = \"a\"", "csv.quote = \"a\""),
            ("quote = \",\"", "csv.quote = \",\""),
            ("end_marker = \" \"", "csv.end_marker"),
            ("end_marker = \"a\\nb\"", "csv.end_marker = \"a\\nb\""),
            (
                "header_match = { first_cell = \" \", within_lines = 9 }",
                "csv.header_match",
            ),
            (
                "header_match = { first_cell = \"id\", within_lines = 0 }",
                "csv.header_match",
            ),
            ("trailer = { first_cell = \"T\", rows = 0 }", "position 0"),
        ] {
            let failure = refusal(&MINIMAL.replacen("[csv]", &format!("[csv]\n{line}"), 1));
            assert!(failure.what.contains(want), "{want}: {failure}");
            assert!(
                !failure.why.is_empty() && !failure.remedy.is_empty(),
                "{failure}"
            );
        }
    }

    #[test]
    fn what_is_missing_or_contradictory_is_refused_with_its_key() {
        for (from, to, want) in [
            ("name = \"own\"", "", "name"),
            ("kind = \"csv\"", "kind = \"api\"", "api"),
            ("kind = \"csv\"", "kind = \"xml\"", "xml"),
            (", format = \"rfc3339\"", "", "no format"),
            ("\"rfc3339\"", "\"%Y-%m-%d %H:%M:%S\"", "zone"),
            (
                "\"rfc3339\"",
                "[\"%Y-%m-%dT%H:%M:%S%z\", \"%Y-%m-%d\"]",
                "zone",
            ),
            ("\"rfc3339\"", "\"%Y-%Q\", zone = \"UTC\"", "%Q"),
            ("\"rfc3339\"", "\"%d/%m\", zone = \"UTC\"", "no whole date"),
            ("\"rfc3339\"", "\"%Y-%m-%d %Z\", zone = \"UTC\"", "%Z"),
            ("\"rfc3339\"", "\"%Y-%m-%d\", zone = \"Mars\"", "Mars"),
            (
                "\"rfc3339\"",
                "\"%Y-%m-%d\", zone_column = \"z\"",
                "[zones]",
            ),
            ("unit = \"minor\"", "", "unit"),
            ("unit = \"minor\"", "unit = \"cents\"", "cents"),
            (
                "unit = \"minor\"",
                "unit = \"major\"\ndecimal = \",\"\ngroup = \",\"",
                "group",
            ),
            (
                "unit = \"minor\"",
                "unit = \"major\"\ndecimal = \"auto\"\ngroup = \",\"",
                "auto",
            ),
            (
                "unit = \"minor\"",
                "unit = \"minor\"\nexponents = \"visa\"",
                "visa",
            ),
            (", currency = \"currency\"", "", "currency"),
            (
                "currency = \"currency\"",
                "currency = \"const:EURO\"",
                "EURO",
            ),
            ("column = \"amount\", ", "", "column"),
            ("delimiter = \",\"", "delimiter = \"::\"", "delimiter"),
            ("delimiter = \",\"", "encoding = \"ebcdic\"", "ebcdic"),
            ("delimiter = \",\"", "row_width = \"any\"", "any"),
            (
                "delimiter = \",\"",
                "header = \"by_record_type\"",
                "not supported yet",
            ),
            ("delimiter = \",\"", "header = \"positional\"", "position"),
            (
                "delimiter = \",\"",
                "file_id = { from = \"name\" }",
                "not supported yet",
            ),
            (
                "[csv]",
                "[[header_sets]]\nlocale = \"es\"\n[csv]",
                "not supported yet",
            ),
            ("[csv]", "[http]\nbase_url = \"x\"\n[csv]", "kind \"csv\""),
            (
                "operation_id = [\"id\"]",
                "operation_id = \"id\"",
                "operation_id",
            ),
            (
                "operation_id = [\"id\"]",
                "operation_id = []",
                "operation_id",
            ),
            (
                "[\"id\"]",
                "[\"id\"]\nreference = { column = \"r\", regex = \"x\" }",
                "regex",
            ),
            ("kind = \"charge\"", "kind = \"sale\"", "sale"),
            ("status = \"succeeded\"", "status = \"paid\"", "paid"),
            ("status = \"succeeded\"", "ignore = \"nothing\"", "nothing"),
            ("[maps.kind]", "[maps.kind]\n\"*\" = \"skip\"", "skip"),
            ("[maps.kind]", "[maps.kind]\ncase = \"upper\"", "case"),
            ("column = \"kind\"", "", "column"),
            (
                "[maps.kind]",
                "[[checks]]\nscope = \"row\"\nrule = \"net > 0\"\n[maps.kind]",
                "net > 0",
            ),
            (
                "[maps.kind]",
                "[watermark]\nlag = \"1 day\"\n[maps.kind]",
                "1 day",
            ),
            (
                "[maps.kind]",
                "[watermark]\nkind = \"counter\"\n[maps.kind]",
                "not supported yet",
            ),
        ] {
            let text = MINIMAL.replace(from, to);
            assert_ne!(text, MINIMAL, "{from}");
            let failure = refusal(&text);
            let all = failure.to_string();
            assert!(all.contains(want), "{want}: {all}");
            assert!(failure.what.starts_with("profile.toml"), "{all}");
            assert!(
                !failure.remedy.is_empty() || !failure.why.is_empty(),
                "{all}"
            );
        }
    }
}
