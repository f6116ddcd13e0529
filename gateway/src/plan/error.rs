//! Why a statement has no plan.
//!
//! Nothing was executed whenever one of these is returned: planning and binding come before the first byte is sent.

use std::borrow::Cow;

use crate::base::{ErrorKind, GatewayError, KeyspaceName};
use crate::vindex::VindexError;

/// A statement that cannot be run, with what the user can do about it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PlanError {
    /// SG2001: exact answers to this over several shards are not supported.
    #[error(
        "{what} is not supported over several shards of keyspace `{keyspace}`; {hint}; nothing was executed"
    )]
    Unsupported {
        /// The construct.
        what: Cow<'static, str>,
        /// The keyspace.
        keyspace: KeyspaceName,
        /// What to do instead.
        hint: Cow<'static, str>,
    },
    /// SG2002: the statement's text is not understood well enough to route it.
    #[error(
        "this statement is not understood in sharded keyspace `{keyspace}` ({what}); \
         run it on one shard after `USE {keyspace}:<shard>`; nothing was executed"
    )]
    NotUnderstood {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// What stopped it.
        what: Cow<'static, str>,
    },
    /// SG2003: the table is not in the keyspace's vschema.
    #[error(
        "table `{table}` is not in the vschema of sharded keyspace `{keyspace}`; add it with its sharding column, \
         or as a reference table"
    )]
    UnknownTable {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// The table.
        table: String,
    },
    /// SG2004: no such keyspace.
    #[error("Unknown database '{0}'")]
    UnknownKeyspace(String),
    /// SG2005: the session has chosen no keyspace.
    #[error("No database selected")]
    NoKeyspace,
    /// SG2006: tables of two keyspaces in one statement.
    #[error(
        "tables of keyspaces `{0}` and `{1}` in one statement are not supported; query them one after the other; \
         nothing was executed"
    )]
    CrossKeyspace(KeyspaceName, KeyspaceName),
    /// SG2007: a row without its sharding column.
    #[error(
        "INSERT into sharded table `{table}` must give its sharding column `{column}`; nothing was executed"
    )]
    MissingShardingColumn {
        /// The table.
        table: String,
        /// Its sharding column.
        column: String,
    },
    /// SG2008: a write that could move a row to another shard.
    #[error(
        "sharding column `{column}` of `{table}` cannot be changed, its row would belong to another shard; \
         DELETE the row and INSERT it anew; nothing was executed"
    )]
    ChangesShardingColumn {
        /// The table.
        table: String,
        /// Its sharding column.
        column: String,
    },
    /// SG2009: each shard would count on its own.
    #[error(
        "AUTO_INCREMENT column `{column}` of sharded table `{table}` needs a value in every row: shards would give \
         the same number twice; nothing was executed"
    )]
    AutoIncrement {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// SG2010: the shard of a row to be written cannot be told.
    #[error("row {row} of INSERT into `{table}`, column `{column}`: {reason}")]
    Placement {
        /// The table.
        table: String,
        /// The row, from 1.
        row: usize,
        /// The sharding column.
        column: String,
        /// Why.
        reason: VindexError,
    },
    /// SG2011: the value of a sharding column is an expression.
    #[error(
        "sharding column `{column}` of `{table}` must be given as a literal or a parameter, not an expression; \
         nothing was executed"
    )]
    ShardingExpression {
        /// The table.
        table: String,
        /// Its sharding column.
        column: String,
    },
    /// SG2012: nothing is known of the table's columns yet.
    #[error(
        "the columns of `{table}` are not known yet, so rows cannot be placed; try again once a shard answers"
    )]
    UnknownColumns {
        /// The table.
        table: String,
    },
    /// SG2013: rows and columns do not match.
    #[error("Column count doesn't match value count at row {row}")]
    ColumnCount {
        /// The row, from 1.
        row: usize,
    },
    /// SG2014: a parameter is missing or of no use where it stands.
    #[error("Incorrect arguments to {0}")]
    Arguments(&'static str),
    /// SG2015: the values given lie on different shards, so one shard alone cannot answer.
    #[error("{what} must live on one shard of keyspace `{keyspace}`: {hint}; nothing was executed")]
    NotOneShard {
        /// The construct.
        what: &'static str,
        /// The keyspace.
        keyspace: KeyspaceName,
        /// What to add.
        hint: Cow<'static, str>,
    },
    /// SG2016: the shard named by the session's target, or by a vindex, does not exist.
    #[error("keyspace `{keyspace}` has no such shard: {shard}; nothing was executed")]
    NoSuchShard {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// The shard's name, or what no shard holds.
        shard: String,
    },
    /// SG2017: a database of the servers' own, which is not the gateway's to give.
    #[error("Access denied to database '{0}' through the gateway; nothing was executed")]
    DatabaseDenied(String),
    /// SG2018: files of a tablet's machine.
    #[error(
        "{0} would reach files of a tablet's machine with the gateway's own rights and is not supported; \
         send the data through the client; nothing was executed"
    )]
    Files(&'static str),
}

impl GatewayError for PlanError {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Unsupported { .. } => "SG2001",
            Self::NotUnderstood { .. } => "SG2002",
            Self::UnknownTable { .. } => "SG2003",
            Self::UnknownKeyspace(_) => "SG2004",
            Self::NoKeyspace => "SG2005",
            Self::CrossKeyspace(..) => "SG2006",
            Self::MissingShardingColumn { .. } => "SG2007",
            Self::ChangesShardingColumn { .. } => "SG2008",
            Self::AutoIncrement { .. } => "SG2009",
            Self::Placement { .. } => "SG2010",
            Self::ShardingExpression { .. } => "SG2011",
            Self::UnknownColumns { .. } => "SG2012",
            Self::ColumnCount { .. } => "SG2013",
            Self::Arguments(_) => "SG2014",
            Self::NotOneShard { .. } => "SG2015",
            Self::NoSuchShard { .. } => "SG2016",
            Self::DatabaseDenied(_) => "SG2017",
            Self::Files(_) => "SG2018",
        })
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. }
            | Self::NotUnderstood { .. }
            | Self::CrossKeyspace(..)
            | Self::ChangesShardingColumn { .. }
            | Self::AutoIncrement { .. }
            | Self::ShardingExpression { .. }
            | Self::NotOneShard { .. }
            | Self::Files(_) => ErrorKind::Unsupported,
            Self::UnknownTable { .. }
            | Self::UnknownKeyspace(_)
            | Self::NoKeyspace
            | Self::MissingShardingColumn { .. }
            | Self::Placement { .. }
            | Self::ColumnCount { .. }
            | Self::Arguments(_)
            | Self::DatabaseDenied(_) => ErrorKind::Invalid,
            Self::UnknownColumns { .. } | Self::NoSuchShard { .. } => ErrorKind::Unavailable,
        }
    }

    fn retryable(&self) -> bool {
        matches!(self, Self::UnknownColumns { .. })
    }

    /// What one server would say, where it would say it too; clients and ORMs look at these numbers.
    fn errno(&self) -> (u16, [u8; 5]) {
        match self {
            Self::UnknownTable { .. } => (1146, *b"42S02"),
            Self::UnknownKeyspace(_) => (1049, *b"42000"),
            Self::DatabaseDenied(_) => (1044, *b"42000"),
            Self::NoKeyspace => (1046, *b"3D000"),
            Self::ColumnCount { .. } => (1136, *b"21S01"),
            Self::Arguments(_) => (1210, *b"HY000"),
            Self::Unsupported { .. }
            | Self::NotUnderstood { .. }
            | Self::CrossKeyspace(..)
            | Self::MissingShardingColumn { .. }
            | Self::ChangesShardingColumn { .. }
            | Self::AutoIncrement { .. }
            | Self::Placement { .. }
            | Self::ShardingExpression { .. }
            | Self::UnknownColumns { .. }
            | Self::NotOneShard { .. }
            | Self::NoSuchShard { .. }
            | Self::Files(_) => crate::base::error::default_errno(self.kind()),
        }
    }
}
