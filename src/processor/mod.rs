//! Reading a processor's formats by profile (register to be completed).

/// Which mode rows of a source have to be of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Real money.
    Live,
    /// The processor's test mode.
    Test,
}

/// Only rows whose column holds the value are ours; others are ignored as `other_scope`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScopeRule {
    /// Name of the column in the file.
    pub column: String,
    /// The value of our rows, compared after trimming.
    pub value: String,
}

/// What the configuration of a source says about reading its rows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ReadRules {
    /// Which rows are ours; `None` = all.
    pub scope: Option<ScopeRule>,
    /// Account of rows that name none; part of their identity.
    pub account: String,
    /// Which mode rows have to be of; `None` = not checked.
    pub mode: Option<Mode>,
    /// So many format errors become `invalid_record` instead of rejecting the file.
    pub tolerate_bad_rows: u64,
}
