//! What a statement can end with, other than its answer.

use std::time::Duration;

use super::watch::{Deadline, Layer};
use crate::base::{ClientError, ErrorKind, GatewayError, Role, ShardId};
use crate::exec::Kill;
use crate::gather::GatherError;
use crate::guard::{BufferRefused, Outcome};
use crate::route::NotMonotone;
use crate::tablet::{NoConnection, TabletError};

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
    /// The command's deadline passed, or an attempt's.
    #[error("{}; no answer from {}{}", timed_out(.passed), .shards, .note)]
    Deadline {
        /// The limit.
        passed: Deadline,
        /// The shards that had not answered.
        shards: String,
        /// What is known about writes, with a leading separator.
        note: &'static str,
    },
    /// A tablet that had sent rows sent no more.
    #[error("no more rows from {shards} for {after:?}; what came before is not the whole answer")]
    TabletSilent {
        /// The limit.
        after: Duration,
        /// The shards that were read.
        shards: String,
    },
    /// The shard has no primary, and the statement waits for none, or no longer.
    #[error(transparent)]
    Buffer(#[from] BufferRefused),
    /// A shard of the transaction takes no COMMIT.
    #[error("{0}; the transaction was rolled back")]
    CommitRefused(BufferRefused),
    /// Several legs failed; the first error is the most useful one.
    #[error("{first}; also failed: {others}")]
    Several {
        /// The one whose code the client gets.
        first: Box<ExecError>,
        /// The other shards, with their codes.
        others: String,
    },
    /// A leg failed, and the client would take a part of the answer, but there is none that is right.
    #[error("no partial answer ({reason}): {source}")]
    NotMonotone {
        /// Why not.
        reason: NotMonotone,
        /// The leg's failure.
        source: Box<ExecError>,
    },
    /// The client would take a part of the answer, but no shard gave one.
    #[error("no partial answer, since every shard failed: {source}")]
    AllLegsFailed {
        /// The most useful failure.
        source: Box<ExecError>,
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
    /// A part of a transaction over several shards was lost before the first was told to commit.
    #[error(
        "{shard} {why} before COMMIT was sent to any shard; nothing was committed, {others} rolled back; safe to run the transaction again"
    )]
    NothingCommitted {
        /// The shard that would not commit.
        shard: ShardId,
        /// What was the matter with it.
        why: Unwilling,
        /// The others.
        others: String,
    },
    /// The session keeps state on one shard that a statement for another shard cannot see.
    #[error(
        "the session holds {what} on {held}; a statement for {asked} cannot see it, until that is given up or the connection is reset; nothing was executed"
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

fn timed_out(passed: &Deadline) -> String {
    match passed.layer {
        Layer::Gateway => format!("query timed out after {:?}", passed.after),
        Layer::Tablet => format!("a tablet had {:?} and did not answer", passed.after),
    }
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

    /// Whether the same read may be tried again at once, on a connection of its own: the tablet, or the way to it, failed
    /// before it answered. A timeout is not: another wait would be as long.
    pub fn may_try_again(&self, role: Role) -> bool {
        match self {
            Self::Tablet { source, .. } => match source {
                TabletError::Connect { by, .. } => *by != NoConnection::TimedOut,
                TabletError::LostBeforeSend { .. }
                | TabletError::Lost { .. }
                | TabletError::Draining { .. } => true,
                TabletError::Refused { .. }
                | TabletError::PoolFull { .. }
                | TabletError::PoolTimeout { .. }
                | TabletError::Protocol { .. }
                | TabletError::Guard(_)
                | TabletError::Server(_) => false,
            },
            Self::Server { error, .. } => {
                let outcome = TabletError::Server(error.clone()).outcome(role);
                matches!(outcome, Outcome::Failure | Outcome::PrimaryGone)
            }
            _ => false,
        }
    }

    /// Whether it speaks of the command or its client, not of a leg: no answer in part helps.
    pub fn is_the_commands_own(&self) -> bool {
        match self {
            Self::Killed(_)
            | Self::ClientGone
            | Self::ClientStalled(_)
            | Self::Gather(_)
            | Self::Answer { .. } => true,
            // A server that answered, with what one server would have answered too.
            Self::Server { error, .. } => {
                let outcome = TabletError::Server(error.clone()).outcome(Role::Primary);
                matches!(outcome, Outcome::Success)
            }
            Self::Several { first, .. } => first.is_the_commands_own(),
            _ => false,
        }
    }

    /// Several legs' failures as one: the most useful code first.
    pub fn join(mut errors: Vec<(ShardId, Self)>) -> Option<Self> {
        errors.sort_by_key(|(_, e)| e.rank());
        let mut errors = errors.into_iter();
        let (_, first) = errors.next()?;
        if matches!(first, Self::Server { .. }) {
            // A server's own error is passed on as it is.
            return Some(first);
        }
        let others: Vec<String> = errors
            .map(|(shard, e)| {
                let client = e.client_error();
                match e.code() {
                    Some(code) => format!("{shard} ({code})"),
                    None => format!("{shard} ({})", client.errno),
                }
            })
            .collect();
        if others.is_empty() {
            return Some(first);
        }
        Some(Self::Several {
            first: Box::new(first),
            others: others.join(", "),
        })
    }

    /// How much a client can do with it: what may have happened to its data first, then what the statement itself is to
    /// blame for, then tablets, then the rest.
    fn rank(&self) -> u8 {
        match self {
            Self::UnknownOutcome { .. } => 0,
            Self::Server { .. } | Self::Gather(_) | Self::Answer { .. } => 1,
            Self::Tablet {
                source: TabletError::Guard(_),
                ..
            }
            | Self::Buffer(_)
            | Self::CommitRefused(_) => 4,
            Self::Tablet { .. } => 2,
            Self::Deadline { .. } | Self::TabletSilent { .. } => 3,
            _ => 5,
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

/// Why a shard would not commit its part of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unwilling {
    /// Its server has closed the connection.
    Closed,
    /// Its primary is known to take no writes, or to be gone.
    Vacant,
    /// Another tablet is its primary.
    Replaced,
}

impl std::fmt::Display for Unwilling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Closed => "had closed its connection, and with it lost its part of the transaction,",
            Self::Vacant => "had no primary that takes writes",
            Self::Replaced => "had another primary",
        })
    }
}

impl GatewayError for ExecError {
    fn code(&self) -> Option<&'static str> {
        match self {
            Self::Tablet { source, .. } => source.code(),
            Self::Server { .. } | Self::Killed(_) => None,
            Self::Gather(e) => e.code(),
            Self::Buffer(e) | Self::CommitRefused(e) => e.code(),
            Self::UnknownOutcome { .. } => Some("SG2401"),
            Self::Deadline { passed, .. } => Some(match passed.layer {
                Layer::Gateway => "SG2201",
                Layer::Tablet => "SG2202",
            }),
            Self::TabletSilent { .. } => Some("SG2204"),
            Self::Several { first, .. } => first.code(),
            Self::NotMonotone { .. } => Some("SG2109"),
            Self::AllLegsFailed { .. } => Some("SG2110"),
            Self::ClientGone => Some("SG1105"),
            Self::ClientStalled(_) => Some("SG2203"),
            Self::TransactionLost(_) => Some("SG2402"),
            Self::SecondShard { .. } => Some("SG2403"),
            Self::PartialCommit(_) => Some("SG2404"),
            Self::NothingCommitted { .. } => Some("SG2408"),
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
            Self::Buffer(e) | Self::CommitRefused(e) => e.kind(),
            Self::UnknownOutcome { .. } | Self::PartialCommit(_) | Self::PartialDdl { .. } => {
                ErrorKind::UnknownOutcome
            }
            Self::Deadline { .. } | Self::TabletSilent { .. } => ErrorKind::Deadline,
            Self::Several { first, .. } => first.kind(),
            Self::Killed(_) => ErrorKind::Killed,
            Self::NotMonotone { .. }
            | Self::AllLegsFailed { .. }
            | Self::ClientGone
            | Self::ClientStalled(_)
            | Self::NothingCommitted { .. }
            | Self::NoTablet { .. } => ErrorKind::Unavailable,
            Self::TransactionLost(_)
            | Self::SecondShard { .. }
            | Self::PinnedElsewhere { .. }
            | Self::StateLost(_)
            | Self::TooManyReserved { .. } => ErrorKind::Refused,
            Self::Answer { .. } => ErrorKind::Internal,
        }
    }

    fn errno(&self) -> (u16, [u8; 5]) {
        match self {
            Self::NotMonotone { source, .. } | Self::AllLegsFailed { source } => source.errno(),
            Self::Several { first, .. } => first.errno(),
            // Inside another error: its own message tells the server's.
            Self::Server { .. } => crate::base::error::default_errno(ErrorKind::Unavailable),
            _ => crate::base::error::default_errno(self.kind()),
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Tablet { source, .. } => source.retryable(),
            Self::Buffer(e) | Self::CommitRefused(e) => e.retryable(),
            Self::Several { first, .. } => first.retryable(),
            Self::NotMonotone { source, .. } | Self::AllLegsFailed { source } => source.retryable(),
            Self::TooManyReserved { .. } | Self::NoTablet { .. } | Self::NothingCommitted { .. } => true,
            Self::Server { .. }
            | Self::Gather(_)
            | Self::UnknownOutcome { .. }
            | Self::Deadline { .. }
            | Self::TabletSilent { .. }
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
        if let Self::Several { first, others } = self {
            let mut error = first.client_error();
            error.message = format!("{}; also failed: {others}", error.message).into();
            return error;
        }
        let (errno, sqlstate) = self.errno();
        match self.code() {
            Some(code) => ClientError::new(errno, sqlstate, format!("{code}: {self}")),
            None => ClientError::new(errno, sqlstate, self.to_string()),
        }
    }
}
