//! Waiting for a tablet without losing sight of the client, the operator and the clock.

use std::time::Duration;

use shardgate_wire::ClientConn;

use super::kill::KillSwitch;
use super::{ExecError, Kill};
use crate::base::clock::Instant;

/// What may end a command early.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The session's kill switch.
    pub kill: &'a KillSwitch,
    /// When the command must have its first row; `None` lifts the limit.
    pub deadline: Option<Deadline>,
    /// How long a tablet may send nothing once rows flow; `None` for ever.
    pub tablet_silent: Option<Duration>,
    /// How long the client may take nothing; `None` for ever.
    pub client_stalled: Option<Duration>,
}

/// A point in time and the limit it came from, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Instant,
    /// The limit.
    pub after: Duration,
}

/// Why a wait ended without its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Somebody threw the kill switch.
    Killed(Kill),
    /// The client closed or reset its connection.
    ClientGone,
    /// The deadline passed.
    Deadline(Duration),
}

impl Limits<'_> {
    /// The deadline as a point in time.
    pub fn at(&self) -> Option<Instant> {
        self.deadline.map(|d| d.at)
    }

    /// Waits for `what`, or for whatever ends the command first. Dropped, or interrupted, it drops `what`: the guards in
    /// there clean up.
    pub async fn watch<T>(
        &self,
        client: &mut ClientConn,
        what: impl Future<Output = T>,
    ) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            done = what => Ok(done),
            kill = self.kill.thrown() => Err(Interrupt::Killed(kill)),
            _ = client.watch_closed() => Err(Interrupt::ClientGone),
            after = self.expired() => Err(Interrupt::Deadline(after)),
        }
    }

    /// Waits for `what` or the deadline, whatever the client does: for COMMIT, which is never cut short by anybody.
    pub async fn until_deadline<T>(&self, what: impl Future<Output = T>) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            done = what => Ok(done),
            after = self.expired() => Err(Interrupt::Deadline(after)),
        }
    }

    /// Resolves when the deadline passes, with the limit it came from.
    pub async fn expired(&self) -> Duration {
        match self.deadline {
            Some(d) => {
                tokio::time::sleep_until(d.at).await;
                d.after
            }
            None => std::future::pending().await,
        }
    }
}

impl Interrupt {
    /// The error of a command that waited for `shards`.
    pub fn into_error(self, shards: String, note: &'static str) -> ExecError {
        match self {
            Self::Killed(kill) => ExecError::Killed(kill),
            Self::ClientGone => ExecError::ClientGone,
            Self::Deadline(after) => ExecError::Deadline { after, shards, note },
        }
    }
}
