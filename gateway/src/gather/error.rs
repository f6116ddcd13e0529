//! What can be wrong with the legs' answers.

use crate::base::{ErrorKind, GatewayError, ShardId};

/// Why several answers could not become one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum GatherError {
    /// SG2501: two legs sent different columns.
    #[error(
        "shards {left} and {right} answered with different columns ({what}); their schemas or servers differ, \
         bring them into line"
    )]
    ColumnsDiffer {
        /// The leg compared to.
        left: ShardId,
        /// The leg that differs.
        right: ShardId,
        /// What differs.
        what: String,
    },
    /// SG2502: rows cannot be merged by a column of this type.
    #[error(
        "ORDER BY `{name}` over several shards needs an integer or decimal column, not {kind}; restrict the \
         statement to one shard by its sharding column, or sort in the application"
    )]
    KeyType {
        /// The column's name.
        name: String,
        /// Its type.
        kind: &'static str,
    },
    /// SG2503: values of this type cannot be combined by this aggregate.
    #[error(
        "{function} over several shards needs an integer or decimal value, not {kind}; restrict the statement to \
         one shard by its sharding column"
    )]
    AggregateType {
        /// The aggregate.
        function: &'static str,
        /// The type of its result.
        kind: &'static str,
    },
    /// SG2504: a leg's bytes are not what the protocol says.
    #[error("shard {shard} sent a malformed {what}")]
    Malformed {
        /// The leg.
        shard: ShardId,
        /// The packet.
        what: &'static str,
    },
    /// SG2505: a combined value does not fit its type.
    #[error("{function} over all shards is out of range of its type")]
    OutOfRange {
        /// The aggregate.
        function: &'static str,
    },
    /// SG2506: a leg that must answer with one row did not.
    #[error("shard {shard} answered an aggregate with {rows} rows where its siblings sent one")]
    RowCount {
        /// The leg.
        shard: ShardId,
        /// Rows it sent.
        rows: u64,
    },
    /// SG2508: the rows at hand take too much memory.
    #[error(
        "the rows of {legs} shards take more than {limit} bytes of memory ({bound}); select fewer columns or rows"
    )]
    Memory {
        /// Legs.
        legs: usize,
        /// The bound, in bytes.
        limit: usize,
        /// Its name in the configuration.
        bound: &'static str,
    },
    /// SG2507: driven out of order; a defect of the gateway, reported rather than hidden.
    #[error("internal: gather driven out of order ({0})")]
    Order(&'static str),
}

impl GatewayError for GatherError {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::ColumnsDiffer { .. } => "SG2501",
            Self::KeyType { .. } => "SG2502",
            Self::AggregateType { .. } => "SG2503",
            Self::Malformed { .. } => "SG2504",
            Self::OutOfRange { .. } => "SG2505",
            Self::RowCount { .. } => "SG2506",
            Self::Order(_) => "SG2507",
            Self::Memory { .. } => "SG2508",
        })
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::ColumnsDiffer { .. } | Self::OutOfRange { .. } => ErrorKind::Invalid,
            Self::KeyType { .. } | Self::AggregateType { .. } => ErrorKind::Unsupported,
            Self::Malformed { .. } | Self::RowCount { .. } => ErrorKind::Unavailable,
            Self::Order(_) => ErrorKind::Internal,
            Self::Memory { .. } => ErrorKind::Limit,
        }
    }

    fn retryable(&self) -> bool {
        false
    }

    fn errno(&self) -> (u16, [u8; 5]) {
        match self {
            // ER_DATA_OUT_OF_RANGE: what one server would say of a sum that does not fit.
            Self::OutOfRange { .. } => (1690, *b"22003"),
            Self::ColumnsDiffer { .. }
            | Self::KeyType { .. }
            | Self::AggregateType { .. }
            | Self::Malformed { .. }
            | Self::RowCount { .. }
            | Self::Memory { .. }
            | Self::Order(_) => crate::base::error::default_errno(self.kind()),
        }
    }
}
