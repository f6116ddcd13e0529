//! What a statement can end with, other than its answer.

use std::time::Duration;

use crate::base::{ClientError, ErrorKind, GatewayError, ShardId};
use crate::exec::Kill;
use crate::gather::GatherError;
use crate::tablet::TabletError;

/// Why a statement has no (complete) answer.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// A tablet, its pool or the way to it.
    #[error("{source} [{shard}]")]
    Tablet {
        /// The shard whose leg failed.
        shard: ShardId,
        /// What failed.
        source: TabletError,
    },
    /// A tablet answered with an error of its own: it is passed on as it is.
    #[error("{}", .error.message)]
    Server {
        /// The shard whose leg answered.
        shard: ShardId,
        /// The server's error.
        error: ClientError,
    },
    /// The legs' answers do not fit together.
    #[error(transparent)]
    Gather(#[from] GatherError),
    /// A write was sent and its acknowledgement never came.
    #[error(
        "{shards}: the statement was sent, but its outcome is unknown ({reason}); it may or may not have been executed"
    )]
    UnknownOutcome {
        /// The shards that did not answer.
        shards: String,
        /// What was lost.
        reason: String,
    },
    /// The command's deadline passed.
    #[error("query timed out after {after:?}; no answer from {}{}", .shards, .note)]
    Deadline {
        /// The limit.
        after: Duration,
        /// The shards that had not answered.
        shards: String,
        /// What is known about writes, with a leading separator.
        note: &'static str,
    },
    /// Somebody killed the statement or the connection.
    #[error("Query execution was interrupted")]
    Killed(Kill),
    /// The client is gone; nobody is told.
    #[error("the client is gone")]
    ClientGone,
    /// The client did not read its answer in time; the connection is closed.
    #[error("the client did not read for {0:?}")]
    ClientStalled(Duration),
    /// An earlier failure took a part of the transaction with it.
    #[error("the transaction was lost ({0}); nothing is executed until ROLLBACK")]
    TransactionLost(String),
    /// `transaction_mode = "single"` and a second shard.
    #[error(
        "the transaction runs on {first} and transaction_mode is single; a statement for {second} cannot join it; nothing was executed"
    )]
    SecondShard {
        /// The shard it runs on.
        first: ShardId,
        /// The shard asked for.
        second: ShardId,
    },
    /// A multi-shard commit that did not reach its end.
    #[error("COMMIT is incomplete: {}", .0)]
    PartialCommit(CommitReport),
    /// The session keeps state on one shard that a statement for another shard cannot see.
    #[error(
        "the session holds {what} on {held}; a statement for {asked} cannot see it; nothing was executed"
    )]
    PinnedElsewhere {
        /// What is held: temporary tables, a lock.
        what: &'static str,
        /// Where.
        held: ShardId,
        /// The shard asked for.
        asked: ShardId,
    },
    /// A connection that held session state was lost.
    #[error(
        "{0} of this session went with a lost connection; nothing is executed until the connection is reset or closed"
    )]
    StateLost(&'static str),
    /// As many sessions keep a connection to themselves as may.
    #[error("{tablet}: {limit} connections are reserved by sessions already; nothing was executed")]
    TooManyReserved {
        /// The tablet's alias.
        tablet: String,
        /// The bound.
        limit: usize,
    },
    /// DDL went through on some shards and not on others.
    #[error("DDL was executed on {done} and failed on {failed} ({reason}); bring the shards into line")]
    PartialDdl {
        /// Where it was executed.
        done: String,
        /// Where it failed.
        failed: String,
        /// The first failure.
        reason: String,
    },
    /// There is no tablet that may serve.
    #[error("{shard} has no {role} that may serve; nothing was executed, safe to retry")]
    NoTablet {
        /// The shard.
        shard: ShardId,
        /// The role asked for.
        role: &'static str,
    },
    /// A tablet's answer is one that the gateway cannot pass on.
    #[error("{shard}: {what}")]
    Answer {
        /// The shard.
        shard: ShardId,
        /// What came.
        what: &'static str,
    },
}

/// What a multi-shard COMMIT did on each shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitReport {
    /// Committed, and acknowledged.
    pub committed: Vec<ShardId>,
    /// Sent, and the acknowledgement lost.
    pub unknown: Vec<ShardId>,
    /// Not committed, and rolled back.
    pub rolled_back: Vec<ShardId>,
    /// What went wrong.
    pub reason: String,
}

impl std::fmt::Display for CommitReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |shards: &[ShardId]| -> String {
            if shards.is_empty() {
                return "none".to_owned();
            }
            shards
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        };
        write!(f, "committed: {}; ", list(&self.committed))?;
        if !self.unknown.is_empty() {
            write!(f, "outcome unknown: {}; ", list(&self.unknown))?;
        }
        write!(f, "rolled back: {} ({})", list(&self.rolled_back), self.reason)
    }
}

impl ExecError {
    /// A tablet's error on a leg, told apart into the server's own and the gateway's.
    pub fn tablet(shard: ShardId, source: TabletError) -> Self {
        match source {
            TabletError::Server(error) => Self::Server { shard, error },
            source => Self::Tablet { shard, source },
        }
    }

    /// Names the shards of a list, for a message.
    pub fn names<'a>(shards: impl IntoIterator<Item = &'a ShardId>) -> String {
        shards
            .into_iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Whether the client's connection is to be closed behind this error.
    pub fn ends_session(&self) -> bool {
        matches!(
            self,
            Self::ClientGone | Self::ClientStalled(_) | Self::Killed(Kill::Connection)
        )
    }
}

impl GatewayError for ExecError {
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Tablet { source, .. } => source.code(),
            Self::Server { .. } | Self::Killed(_) => None,
            Self::Gather(e) => e.code(),
            Self::UnknownOutcome { .. } => Some("SG2401"),
            Self::Deadline { .. } => Some("SG2201"),
            Self::ClientGone => Some("SG1105"),
            Self::ClientStalled(_) => Some("SG2203"),
            Self::TransactionLost(_) => Some("SG2402"),
            Self::SecondShard { .. } => Some("SG2403"),
            Self::PartialCommit(_) => Some("SG2404"),
            Self::PinnedElsewhere { .. } => Some("SG2405"),
            Self::StateLost(_) => Some("SG2407"),
            Self::PartialDdl { .. } => Some("SG2406"),
            Self::TooManyReserved { .. } => Some("SG2104"),
            Self::NoTablet { .. } => Some("SG2307"),
            Self::Answer { .. } => Some("SG2308"),
        }
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Tablet { source, .. } => source.kind(),
            Self::Server { .. } => ErrorKind::Server,
            Self::Gather(e) => e.kind(),
            Self::UnknownOutcome { .. } | Self::PartialCommit(_) | Self::PartialDdl { .. } => {
                ErrorKind::UnknownOutcome
            }
            Self::Deadline { .. } => ErrorKind::Deadline,
            Self::Killed(_) => ErrorKind::Killed,
            Self::ClientGone | Self::ClientStalled(_) | Self::NoTablet { .. } => ErrorKind::Unavailable,
            Self::TransactionLost(_)
            | Self::SecondShard { .. }
            | Self::PinnedElsewhere { .. }
            | Self::StateLost(_)
            | Self::TooManyReserved { .. } => ErrorKind::Refused,
            Self::Answer { .. } => ErrorKind::Internal,
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Tablet { source, .. } => source.retryable(),
            Self::TooManyReserved { .. } | Self::NoTablet { .. } => true,
            Self::Server { .. }
            | Self::Gather(_)
            | Self::UnknownOutcome { .. }
            | Self::Deadline { .. }
            | Self::Killed(_)
            | Self::ClientGone
            | Self::ClientStalled(_)
            | Self::TransactionLost(_)
            | Self::SecondShard { .. }
            | Self::PartialCommit(_)
            | Self::PartialDdl { .. }
            | Self::PinnedElsewhere { .. }
            | Self::StateLost(_)
            | Self::Answer { .. } => false,
        }
    }

    fn client_error(&self) -> ClientError {
        if let Self::Server { error, .. } = self {
            return error.clone();
        }
        let (errno, sqlstate) = self.errno();
        match self.code() {
            Some(code) => ClientError::new(errno, sqlstate, format!("{code}: {self}")),
            None => ClientError::new(errno, sqlstate, self.to_string()),
        }
    }
}
