//! Why an attempt may not be made.

use std::time::Duration;

use shardgate_breaker::Rejected;

use crate::base::{ErrorKind, GatewayError};

/// A refusal: nothing was sent anywhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// The breaker of a shard's primary, or of a replica.
    #[error("{name} refused, {rejected}; nothing was executed, safe to retry")]
    Breaker {
        /// The shard, or the shard and the replica.
        name: String,
        /// Why, since when, until when.
        rejected: Rejected,
    },
    /// The breaker of a kind of statement on a shard.
    #[error("{name} refused this kind of statement, {rejected}; nothing was executed, safe to retry")]
    Kind {
        /// The shard.
        name: String,
        /// Why, since when, until when.
        rejected: Rejected,
    },
    /// A kind of statement holds its share of a pool.
    #[error(
        "{name}: this kind of statement holds {held} of {size} connections and others want them; nothing was executed, safe to retry"
    )]
    Share {
        /// The shard, or the shard and the replica.
        name: String,
        /// Connections it holds.
        held: u32,
        /// Connections of the pool.
        size: u32,
    },
}

impl Refused {
    /// When asking again may help; `None` if nobody knows.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Breaker { rejected, .. } | Self::Kind { rejected, .. } => rejected.retry_after,
            Self::Share { .. } => None,
        }
    }

    /// The label in metrics.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Breaker { .. } => "breaker",
            Self::Kind { .. } => "kind",
            Self::Share { .. } => "share",
        }
    }
}

impl GatewayError for Refused {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Breaker { .. } => "SG2103",
            Self::Kind { .. } => "SG2105",
            Self::Share { .. } => "SG2106",
        })
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Refused
    }

    fn retryable(&self) -> bool {
        true
    }
}
