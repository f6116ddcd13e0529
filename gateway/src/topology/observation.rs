//! What one look at a tablet told: the poller makes these, everybody else judges by them.
//!
//! An observation says only what the server said. What follows from it (who serves, who is primary, how far a replica is
//! behind) is decided elsewhere by pure functions of observations.

use std::time::Duration;

use super::position::Position;
use crate::base::clock::Instant;

/// One look at a tablet.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// When the look began.
    pub at: Instant,
    /// How long it took, the time to connect included where there was no connection.
    pub took: Duration,
    /// What the server said, or why it said nothing.
    pub outcome: Result<Facts, PollError>,
}

impl Observation {
    /// What the server said, if it answered.
    #[must_use]
    pub fn facts(&self) -> Option<&Facts> {
        self.outcome.as_ref().ok()
    }

    /// When the server said so, to within half of [`Self::took`].
    #[must_use]
    pub fn answered_at(&self) -> Instant {
        self.at + self.took
    }
}

/// Why a look told nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PollError {
    /// Nobody listens there, or the way there is cut.
    #[error("cannot be reached: {0}")]
    Unreachable(String),
    /// It was lost in the middle of an answer, on a connection made just before.
    #[error("the connection was lost: {0}")]
    Lost(String),
    /// It did not answer in time.
    #[error("no answer within {0:?}")]
    Timeout(Duration),
    /// It answered, with an error: there is a server, and it does not let itself be looked at.
    #[error("answered error {errno}: {message}")]
    Denied {
        /// The server's error number.
        errno: u16,
        /// Its message.
        message: String,
    },
    /// What answers does not speak as a server does.
    #[error("{0}")]
    Strange(String),
}

impl PollError {
    /// The label in counters and logs.
    #[must_use]
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Unreachable(_) => "unreachable",
            Self::Lost(_) => "lost",
            Self::Timeout(_) => "timeout",
            Self::Denied { .. } => "denied",
            Self::Strange(_) => "strange",
        }
    }

    /// Every label, so that counters are at zero from the start.
    pub const LABELS: [&'static str; 5] = ["unreachable", "lost", "timeout", "denied", "strange"];
}

/// What a server said of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// `@@read_only`.
    pub read_only: bool,
    /// `@@super_read_only`, on servers that have it.
    pub super_read_only: Option<bool>,
    /// What it replicates.
    pub replication: Replication,
    /// Where it stands in the history of writes, if it keeps GTIDs.
    pub position: Option<Position>,
    /// The newest row of its heartbeat table; `None` if the configuration names no table.
    pub heartbeat: Option<Heartbeat>,
    /// Which server it is.
    pub identity: Identity,
    /// How long it has been running; `None` if it does not say.
    pub uptime: Option<Duration>,
    /// The privilege by which the user who asked may write through `read_only`; `None` if it has none, or if the server
    /// does not say.
    pub bypasses_read_only: Option<String>,
}

impl Facts {
    /// Whether it takes writes of ordinary users.
    #[must_use]
    pub fn writable(&self) -> bool {
        !self.read_only && self.super_read_only != Some(true)
    }
}

/// The newest row of a server's heartbeat table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The time that its writer gave it, in microseconds since an epoch that is the same for all beats. By whose clock
    /// is not known.
    Beat(i128),
    /// There is no row, or none that can be read as a time.
    Empty,
    /// The server answered an error in place of a row.
    Unreadable {
        /// The server's error number.
        errno: u16,
        /// Its message.
        message: String,
    },
}

/// Which server answered. What a server does not have is `None`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// `@@version`.
    pub version: String,
    /// `@@server_id`.
    pub server_id: Option<u64>,
    /// `@@hostname`.
    pub hostname: Option<String>,
    /// `@@port`.
    pub port: Option<u16>,
    /// `@@server_uuid` (`MySQL`) or `@@server_uid` (`MariaDB` 10.10).
    pub server_uuid: Option<String>,
}

/// What a server replicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replication {
    /// It said nothing of it; nobody may conclude that it replicates nothing.
    Unknown(UnknownReplication),
    /// Its channels; none if it is a primary, or was never told to replicate.
    Channels(Vec<Channel>),
}

impl Replication {
    /// Its channels, as far as they are known.
    #[must_use]
    pub fn channels(&self) -> &[Channel] {
        match self {
            Self::Channels(channels) => channels,
            Self::Unknown(_) => &[],
        }
    }

    /// Whether a channel applies changes or is about to; `None` if that is not known.
    #[must_use]
    pub fn replicates(&self) -> Option<bool> {
        match self {
            Self::Channels(channels) => Some(channels.iter().any(Channel::is_started)),
            Self::Unknown(_) => None,
        }
    }
}

/// Why nothing is known of a server's replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnknownReplication {
    /// The gateway's user lacks the privilege (error 1227): the server's message.
    Denied(String),
    /// The server knows none of the statements that show it.
    Unsupported,
    /// It answered something that is not a replica's status.
    Strange(String),
}

impl std::fmt::Display for UnknownReplication {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied(message) => write!(f, "privilege missing: {message}"),
            Self::Unsupported => f.write_str("the server does not show it"),
            Self::Strange(what) => write!(f, "not a replica's status: {what}"),
        }
    }
}

/// One replication channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Its name; empty for the only one.
    pub name: String,
    /// The server it replicates from.
    pub source_host: String,
    /// That server's port.
    pub source_port: u16,
    /// The thread that fetches.
    pub io: Thread,
    /// The thread that applies.
    pub sql: Thread,
    /// How old, in seconds of the server's count, the change being applied is; `None` is unknown, never zero.
    pub seconds_behind: Option<u64>,
    /// The last error of either thread; empty for none.
    pub error: String,
}

impl Channel {
    /// Whether both threads run.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.io == Thread::Running && self.sql == Thread::Running
    }

    /// Whether somebody started it and nobody stopped it. A dead source leaves the fetching thread reconnecting.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.io != Thread::Stopped || self.sql != Thread::Stopped
    }
}

/// A replication thread's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// It runs.
    Running,
    /// It tries to reach its source.
    Connecting,
    /// It does not run.
    Stopped,
}

impl Thread {
    /// The name in JSON and tables.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Connecting => "connecting",
            Self::Stopped => "stopped",
        }
    }
}
