//! What keeps a topology from being used, or a row from being found in it.

use crate::base::{ErrorKind, GatewayError, KeyspaceName, ShardId};
use crate::config::RangeProblem;

/// Errors of the topology.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TopologyError {
    /// Key ranges leave ids out or hold them twice.
    #[error("keyspace `{keyspace}`: {}", list(.problems))]
    Ranges {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// Each gap and overlap.
        problems: Vec<RangeProblem>,
    },
    /// A shard without a range in a keyspace of ranges.
    #[error("shard {0} has no key range, but its keyspace is divided by key ranges")]
    NoRange(ShardId),
    /// A keyspace without shards.
    #[error("keyspace `{0}` has no shard")]
    NoShards(KeyspaceName),
    /// Several shards and nothing that divides rows among them.
    #[error("keyspace `{keyspace}` is unsharded and has {shards} shards")]
    Undivided {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// How many shards it has.
        shards: usize,
    },
    /// A row's place is held by no shard.
    #[error("keyspace `{keyspace}` has no shard for {place}; nothing was executed")]
    Uncovered {
        /// The keyspace.
        keyspace: KeyspaceName,
        /// The place.
        place: String,
    },
}

fn list(problems: &[RangeProblem]) -> String {
    problems
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join("; ")
}

impl GatewayError for TopologyError {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Ranges { .. } | Self::NoRange(_) | Self::NoShards(_) | Self::Undivided { .. } => "SG1030",
            Self::Uncovered { .. } => "SG2060",
        })
    }
    fn kind(&self) -> ErrorKind {
        ErrorKind::Invalid
    }
    fn retryable(&self) -> bool {
        false
    }
}
