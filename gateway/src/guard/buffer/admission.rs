//! What becomes of a request for a shard that may have no primary.

use super::ticket::Ticket;
use crate::base::{ErrorKind, GatewayError};

/// A request that asks whether it may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Whether it changes anything: a read-only primary answers the others.
    pub is_write: bool,
    /// Bytes of its statement.
    pub bytes: usize,
}

/// Whether it may.
#[derive(Debug)]
pub enum Admission {
    /// It may, at once.
    Pass,
    /// It is to wait.
    Wait(Ticket),
}

/// Why a request that waited does not any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evicted {
    /// A later one took its place.
    Full,
    /// It waited as long as one may.
    Window,
    /// Its shard had no primary for as long as requests may wait for one.
    MaxDuration,
    /// The gateway stops.
    Shutdown,
}

impl Evicted {
    /// The label in metrics.
    pub(super) const fn label(self) -> &'static str {
        match self {
            Self::Full => "BufferFull",
            Self::Window => "WindowExceeded",
            Self::MaxDuration => "MaxDurationExceeded",
            Self::Shutdown => "Shutdown",
        }
    }
}

/// Why a request is neither sent nor waits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BufferRefused {
    /// As many wait as may, and it was the one to go.
    #[error(
        "{shard}: {why}, and as many requests wait for a new primary as may; nothing was executed, safe to retry"
    )]
    Full {
        /// The shard.
        shard: String,
        /// What is the matter with its primary.
        why: String,
    },
    /// It waited for as long as one may.
    #[error("{shard}: {why}; it waited {waited_ms} ms in vain; nothing was executed, safe to retry")]
    Window {
        /// The shard.
        shard: String,
        /// What is the matter with its primary.
        why: String,
        /// For how long it waited.
        waited_ms: u64,
    },
    /// The shard has had no primary for too long.
    #[error(
        "{shard}: {why}; no primary took writes for {after_ms} ms, and nobody waits for one any longer; nothing was executed, safe to retry"
    )]
    MaxDuration {
        /// The shard.
        shard: String,
        /// What is the matter with its primary.
        why: String,
        /// For how long.
        after_ms: u64,
    },
    /// The gateway stops.
    #[error("{shard}: {why}, and the gateway is shutting down; nothing was executed, safe to retry")]
    Shutdown {
        /// The shard.
        shard: String,
        /// What is the matter with its primary.
        why: String,
    },
    /// Several tablets took writes and went apart.
    #[error(
        "{shard}: several tablets take writes and have gone apart (split brain); writes are refused until an operator \
         decides which is the primary; nothing was executed"
    )]
    SplitBrain {
        /// The shard.
        shard: String,
    },
    /// The gateway's own user could write where nobody may.
    #[error(
        "{shard}: the gateway's user may write through read_only ({privilege}), so that a replaced primary would go on \
         taking its writes; revoke that privilege; nothing was executed"
    )]
    MayBypass {
        /// The shard.
        shard: String,
        /// What it holds.
        privilege: String,
    },
}

impl GatewayError for BufferRefused {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Full { .. } => "SG2701",
            Self::Window { .. } => "SG2702",
            Self::MaxDuration { .. } => "SG2703",
            Self::Shutdown { .. } => "SG2704",
            Self::SplitBrain { .. } => "SG2705",
            Self::MayBypass { .. } => "SG2706",
        })
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Refused
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Full { .. } | Self::Window { .. } | Self::MaxDuration { .. } | Self::Shutdown { .. } => {
                true
            }
            Self::SplitBrain { .. } | Self::MayBypass { .. } => false,
        }
    }
}
