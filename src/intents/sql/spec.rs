//! What `[intents] kind = "sql"` says: where the table is, and which column is what.

use std::collections::BTreeMap;

use crate::database::DatabaseUrl;
use crate::intents::amount::IntentsRules;
use crate::model::words;
use crate::time::{Span, Zone};

words! {
    /// What a column means. The words are those of the columns of `intents.csv`; `amount` stands for both units.
    Role {
        /// Our id.
        IntentId = "intent_id",
        /// The key that was sent to the processor.
        IdempotencyKey = "idempotency_key",
        /// What was meant.
        Kind = "kind",
        /// How much.
        Amount = "amount",
        /// In which currency.
        Currency = "currency",
        /// What became of it.
        Status = "status",
        /// When it was recorded.
        CreatedAt = "created_at",
        /// The processor's id for it.
        ProcessorRef = "processor_ref",
        /// Which attempt at the same thing it is.
        Attempt = "attempt",
        /// For a refund or dispute its payment; on charges the logical payment.
        ParentIntentId = "parent_intent_id",
        /// What was sent to the processor as our reference.
        Reference = "reference",
        /// The source that owns it.
        Source = "source",
        /// When it was first sent.
        FirstAttemptAt = "first_attempt_at",
    }
}

impl Role {
    /// Roles that every table has to fill.
    pub const REQUIRED: [Role; 6] = [
        Role::IntentId,
        Role::Kind,
        Role::Amount,
        Role::Currency,
        Role::Status,
        Role::CreatedAt,
    ];

    /// Roles by which a row is found, whatever its age.
    pub const KEYS: [Role; 5] = [
        Role::IntentId,
        Role::IdempotencyKey,
        Role::Reference,
        Role::ProcessorRef,
        Role::ParentIntentId,
    ];

    /// Whether one value may stand for all rows.
    pub const fn may_be_fixed(self) -> bool {
        matches!(
            self,
            Role::Kind | Role::Currency | Role::Status | Role::Source
        )
    }

    /// Whether the company's words may be translated into ours.
    pub const fn may_be_mapped(self) -> bool {
        matches!(
            self,
            Role::Kind | Role::Currency | Role::Status | Role::Source
        )
    }
}

/// Where a role has its value from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A column; a word of the company's that is in the map means the word of ours beside it.
    Column {
        /// Its name, as the catalogue has it.
        name: String,
        /// The company's word → ours.
        map: BTreeMap<String, String>,
    },
    /// One value for every row.
    Fixed(String),
}

/// Where the rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A table or view, by the names of the catalogue.
    Table {
        /// Empty = the one that the connection would use.
        schema: String,
        /// The name.
        name: String,
    },
    /// A query that is read like a table.
    Query(String),
}

/// What whole numbers count that stand for a time. All count from 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Thousandths.
    Millis,
    /// Millionths.
    Micros,
}

impl TimeUnit {
    /// Microseconds in one.
    pub const fn micros(self) -> i64 {
        match self {
            TimeUnit::Seconds => 1_000_000,
            TimeUnit::Millis => 1_000,
            TimeUnit::Micros => 1,
        }
    }
}

/// Rows of other owners are not read: the column that says whose a row is, and our value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The column.
    pub column: String,
    /// The value of our rows.
    pub value: String,
}

/// The settings of a table that is read in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    /// The database.
    pub url: DatabaseUrl,
    /// The rows in it.
    pub rows: Rows,
    /// What its columns mean.
    pub roles: BTreeMap<Role, Origin>,
    /// The column that says when a row was last changed.
    pub changed_column: Option<String>,
    /// The column that bears the number of the transaction that wrote a row (`PostgreSQL`, `xid8`).
    pub xid_column: Option<String>,
    /// Whose rows are ours.
    pub scope: Option<Scope>,
    /// The source that owns rows which name none; empty = none.
    pub owner: String,
    /// The zone of times that have none.
    pub time_zone: Option<Zone>,
    /// What numbers count that stand for a time.
    pub time_unit: Option<TimeUnit>,
    /// How long one statement may take. Default 60 s.
    pub statement_timeout: Span,
    /// No transaction that writes intents stays open longer, the difference of the clocks included. Default 3 min.
    pub max_txn: Span,
    /// How amounts are written.
    pub rules: IntentsRules,
}

impl Spec {
    /// The column of a role, if it has one.
    pub fn column(&self, role: Role) -> Option<&str> {
        match self.roles.get(&role) {
            Some(Origin::Column { name, .. }) => Some(name),
            Some(Origin::Fixed(_)) | None => None,
        }
    }

    /// Every column that is named, with what it is named for, in a fixed order and each once.
    pub fn columns(&self) -> Vec<(&str, String)> {
        let mut found: Vec<(&str, String)> = Vec::new();
        let mut add = |name, what: &str| match found.iter_mut().find(|(other, _)| *other == name) {
            Some((_, said)) => {
                said.push_str(" and ");
                said.push_str(what);
            }
            None => found.push((name, what.to_owned())),
        };
        for &role in Role::ALL {
            if let Some(name) = self.column(role) {
                add(name, role.as_str());
            }
        }
        let others = [
            (self.changed_column.as_deref(), "changed_column"),
            (self.xid_column.as_deref(), "xid_column"),
            (self.scope.as_ref().map(|it| it.column.as_str()), "scope"),
        ];
        for (name, what) in others {
            if let Some(name) = name {
                add(name, what);
            }
        }
        found
    }
}
