//! What can go wrong between the gateway and one tablet.

use std::time::Duration;

use shardgate_breaker::{Outcome, ServerError};

use crate::base::{ClientError, ErrorKind, GatewayError, Role, TabletAlias};
use crate::guard::Refused;
use crate::tablet::Proof;

/// An error of a tablet, its pool or the way to it.
#[derive(Debug, thiserror::Error)]
pub enum TabletError {
    /// No connection could be made; nothing was sent.
    #[error("{tablet} cannot be reached ({reason}); nothing was executed, safe to retry")]
    Connect {
        /// The tablet.
        tablet: TabletAlias,
        /// The operating system's or the handshake's word.
        reason: String,
        /// What ended the attempt.
        by: NoConnection,
    },
    /// The tablet refused the gateway's own credentials or had no room; its number is in the message.
    #[error(
        "{tablet} refused the gateway's connection with its error {errno} ({message}); nothing was executed"
    )]
    Refused {
        /// The tablet.
        tablet: TabletAlias,
        /// The tablet's error number.
        errno: u16,
        /// The tablet's message.
        message: String,
    },
    /// Every slot is taken and as many wait as may.
    #[error(
        "{tablet}: all {size} connections are in use and {waiters} requests wait already; nothing was executed, safe to retry"
    )]
    PoolFull {
        /// The tablet.
        tablet: TabletAlias,
        /// Slots of the pool.
        size: usize,
        /// Requests that wait.
        waiters: usize,
    },
    /// The deadline passed while waiting for a slot.
    #[error("{tablet}: no connection became free within {waited:?}; nothing was executed, safe to retry")]
    PoolTimeout {
        /// The tablet.
        tablet: TabletAlias,
        /// How long the request waited.
        waited: Duration,
    },
    /// The connection was lost before the first byte of the statement was sent.
    #[error(
        "{tablet}: the connection was lost before anything was sent ({reason}); nothing was executed, safe to retry"
    )]
    LostBeforeSend {
        /// The tablet.
        tablet: TabletAlias,
        /// The operating system's word.
        reason: String,
    },
    /// The connection was lost after the statement was sent.
    #[error("{tablet}: the connection was lost while the statement ran ({reason})")]
    Lost {
        /// The tablet.
        tablet: TabletAlias,
        /// The operating system's word.
        reason: String,
    },
    /// The tablet sent bytes that are not the protocol.
    #[error("{tablet} sent bytes that are not the MySQL protocol ({reason}); the connection is closed")]
    Protocol {
        /// The tablet.
        tablet: TabletAlias,
        /// What was wrong.
        reason: String,
    },
    /// The tablet is no longer part of the topology.
    #[error("{tablet} is draining; nothing was executed, safe to retry")]
    Draining {
        /// The tablet.
        tablet: TabletAlias,
    },
    /// A guard refused the attempt; nothing was sent.
    #[error(transparent)]
    Guard(#[from] Refused),
    /// An error the server itself answered; passed on as it is.
    #[error("{}", .0.message)]
    Server(ClientError),
}

/// What ends the attempt to open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoConnection {
    /// Nobody listens there, or the connection was cut.
    Unreachable,
    /// Silence.
    TimedOut,
    /// A server with whom no connection can be agreed on: its TLS, its protocol.
    NotAgreed,
}

impl TabletError {
    /// Whether the statement may have been executed although no answer came.
    pub fn outcome_unknown(&self) -> bool {
        self.proof(Role::Primary) == Proof::Unknown
    }

    /// What the error says of the tablet, of an attempt that was aimed at this role.
    pub fn outcome(&self, role: Role) -> Outcome {
        let of = |errno: u16, message: &str| {
            ServerError {
                errno,
                message,
                at_primary: role == Role::Primary,
                killed_by_us: false,
            }
            .outcome()
        };
        match self {
            Self::Server(e) => of(e.errno, &e.message),
            Self::Refused { errno, message, .. } => match of(*errno, message) {
                // Nobody was let in: that a server was there is not enough.
                Outcome::Success => Outcome::Failure,
                other => other,
            },
            Self::Connect { .. } | Self::Lost { .. } | Self::Protocol { .. } => Outcome::Failure,
            // Lost while it was idle, or not asked at all.
            Self::LostBeforeSend { .. }
            | Self::PoolFull { .. }
            | Self::PoolTimeout { .. }
            | Self::Draining { .. }
            | Self::Guard(_) => Outcome::Neutral,
        }
    }
}

impl GatewayError for TabletError {
    fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::Connect { .. } => "SG2301",
            Self::Refused { .. } => "SG2302",
            Self::PoolFull { .. } => "SG2101",
            Self::PoolTimeout { .. } => "SG2102",
            Self::LostBeforeSend { .. } => "SG2303",
            Self::Lost { .. } => "SG2304",
            Self::Protocol { .. } => "SG2305",
            Self::Draining { .. } => "SG2306",
            Self::Guard(refused) => return refused.code(),
            Self::Server(_) => return None,
        })
    }

    fn kind(&self) -> ErrorKind {
        match self {
            Self::Connect { .. }
            | Self::Refused { .. }
            | Self::LostBeforeSend { .. }
            | Self::Lost { .. }
            | Self::Protocol { .. } => ErrorKind::Unavailable,
            Self::PoolFull { .. } | Self::PoolTimeout { .. } | Self::Draining { .. } | Self::Guard(_) => {
                ErrorKind::Refused
            }
            Self::Server(_) => ErrorKind::Server,
        }
    }

    fn retryable(&self) -> bool {
        match self {
            Self::Connect { .. }
            | Self::PoolFull { .. }
            | Self::PoolTimeout { .. }
            | Self::LostBeforeSend { .. }
            | Self::Guard(_)
            | Self::Draining { .. } => true,
            Self::Refused { .. } | Self::Lost { .. } | Self::Protocol { .. } | Self::Server(_) => false,
        }
    }

    fn client_error(&self) -> ClientError {
        match self {
            Self::Server(e) => e.clone(),
            Self::Connect { .. }
            | Self::Refused { .. }
            | Self::PoolFull { .. }
            | Self::PoolTimeout { .. }
            | Self::LostBeforeSend { .. }
            | Self::Lost { .. }
            | Self::Protocol { .. }
            | Self::Guard(_)
            | Self::Draining { .. } => {
                let (errno, sqlstate) = self.errno();
                ClientError::new(
                    errno,
                    sqlstate,
                    format!("{}: {self}", self.code().unwrap_or_default()),
                )
            }
        }
    }
}
