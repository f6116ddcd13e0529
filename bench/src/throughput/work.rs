//! The kinds of load.

use std::fmt;

use crate::stage::{Front, KINDS, SHARDED, SMALL, WHOLE};

/// One kind of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// Point selects as text.
    Text {
        /// Connections, each with one statement at a time.
        clients: usize,
    },
    /// Point selects as prepared statements.
    Prepared {
        /// Connections.
        clients: usize,
    },
    /// A select by a column that says nothing of the shard.
    Scatter {
        /// Callers; without a gateway each has a connection to every shard's database and asks them all.
        clients: usize,
    },
    /// A large result as text, from one shard.
    TextRows {
        /// Its rows.
        rows: u64,
    },
    /// The same as a prepared statement.
    PreparedRows {
        /// Its rows.
        rows: u64,
    },
}

impl Work {
    /// How many callers there are.
    pub(super) const fn clients(self) -> usize {
        match self {
            Self::Text { clients } | Self::Prepared { clients } | Self::Scatter { clients } => clients,
            Self::TextRows { .. } | Self::PreparedRows { .. } => 1,
        }
    }

    /// The databases that one caller connects to: one, or every part where nobody gathers for it.
    pub(super) fn databases(self, front: Front, shards: usize) -> Vec<String> {
        match (self, front) {
            (Self::Text { .. } | Self::Prepared { .. } | Self::Scatter { .. }, Front::Gateway) => {
                vec![SHARDED.into()]
            }
            (Self::Scatter { .. }, Front::Nothing | Front::Relay) => {
                (0..shards).map(|n| format!("part{n}")).collect()
            }
            (Self::Text { .. } | Self::Prepared { .. }, Front::Nothing | Front::Relay)
            | (Self::TextRows { .. } | Self::PreparedRows { .. }, _) => vec![WHOLE.into()],
        }
    }

    /// The statement to prepare, if the work is of that kind.
    pub(super) const fn prepared(self) -> Option<&'static str> {
        match self {
            Self::Prepared { .. } => Some("SELECT id, k, pad FROM t WHERE id = ?"),
            Self::PreparedRows { .. } => Some("SELECT id, k, name, price FROM big"),
            Self::Text { .. } | Self::Scatter { .. } | Self::TextRows { .. } => None,
        }
    }

    /// The statement's text, by a random number.
    pub(super) fn text(self, random: u64) -> String {
        match self {
            Self::Text { .. } | Self::Prepared { .. } => {
                format!("SELECT id, k, pad FROM t WHERE id = {}", random % SMALL + 1)
            }
            Self::Scatter { .. } => format!("SELECT id, k, pad FROM t WHERE k = {}", random % KINDS),
            Self::TextRows { .. } | Self::PreparedRows { .. } => "SELECT id, k, name, price FROM big".into(),
        }
    }

    /// The prepared statement's parameter, by a random number.
    #[allow(clippy::cast_possible_wrap)] // below SMALL
    pub(super) const fn param(self, random: u64) -> Option<i64> {
        match self {
            Self::Prepared { .. } => Some((random % SMALL + 1) as i64),
            _ => None,
        }
    }

    /// How many rows each answer must have.
    pub(super) const fn answer(self) -> u64 {
        match self {
            Self::Text { .. } | Self::Prepared { .. } => 1,
            Self::Scatter { .. } => SMALL / KINDS,
            Self::TextRows { rows } | Self::PreparedRows { rows } => rows,
        }
    }

    /// What processor time is given by, and how many answers that is.
    #[allow(clippy::cast_precision_loss)] // a number of rows far below 2^52
    pub(super) fn unit(self) -> (&'static str, f64) {
        match self {
            Self::Text { .. } | Self::Prepared { .. } | Self::Scatter { .. } => ("100k", 100_000.0),
            Self::TextRows { rows } | Self::PreparedRows { rows } => {
                ("1M rows", 1_000_000.0 / rows.max(1) as f64)
            }
        }
    }
}

impl fmt::Display for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text { clients } => write!(f, "point selects, text, {clients} clients"),
            Self::Prepared { clients } => write!(f, "point selects, prepared, {clients} clients"),
            Self::Scatter { clients } => write!(
                f,
                "scatter over every shard, text, {clients} clients (without a gateway: by hand, a connection a shard)"
            ),
            Self::TextRows { rows } => write!(f, "one result of {rows} rows, text, one shard"),
            Self::PreparedRows { rows } => write!(f, "one result of {rows} rows, prepared, one shard"),
        }
    }
}
