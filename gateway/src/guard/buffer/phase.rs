//! Where a shard's buffer stands, and what it is told.

use crate::base::TabletAlias;
use crate::base::clock::Instant;

/// What the poller's observations say of a shard's primary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It takes writes.
    Writes {
        /// Which one.
        primary: TabletAlias,
        /// When the look that saw it began.
        seen: Instant,
    },
    /// It is read-only: reads are answered.
    ReadOnly {
        /// For messages.
        why: String,
        /// Since when.
        since: Instant,
    },
    /// Nobody listens there.
    Gone {
        /// For messages.
        why: String,
        /// Since when.
        since: Instant,
    },
    /// Nobody knows: it was never looked at, or does not answer in time.
    Unknown {
        /// For messages.
        why: String,
    },
    /// Several tablets took writes and went apart.
    SplitBrain,
    /// The gateway's user could write through `read_only`.
    MayBypass {
        /// What it holds.
        privilege: String,
    },
}

impl News {
    /// What is the matter, for messages.
    pub(super) fn why(&self) -> &str {
        match self {
            Self::Writes { .. } => "its primary changes",
            Self::ReadOnly { why, .. } | Self::Gone { why, .. } | Self::Unknown { why } => why,
            Self::SplitBrain => "it has several primaries",
            Self::MayBypass { .. } => "the gateway's user may write through read_only",
        }
    }
}

/// What a buffering began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A request came back with a sign that the primary is gone or is none any more.
    Sign,
    /// A request came for a primary that is known to take none.
    Known,
    /// Somebody said that a reparent is about to begin.
    Announced,
}

impl Cause {
    /// The label in tables and logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Sign => "error",
            Self::Known => "observed",
            Self::Announced => "announced",
        }
    }
}

/// One buffering.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // four facts, independent of each other
pub(super) struct Episode {
    pub(super) since: Instant,
    pub(super) cause: Cause,
    /// The primary it began with; `None` if none was ever seen.
    pub(super) primary: Option<TabletAlias>,
    /// The last time that somebody saw the primary not take a request.
    pub(super) last_sign: Instant,
    /// Whether the primary was seen not to take writes since it began.
    pub(super) vacant: bool,
    /// Whether somebody has announced it and not yet called it off.
    pub(super) announced: bool,
    pub(super) dry_run: bool,
    /// Most requests that waited at once; in a dry run that would have.
    pub(super) most: usize,
    pub(super) overflowed: bool,
}

impl Episode {
    /// Whether it is over now that this primary was seen to take writes. An announced reparent begins with a primary that
    /// still does: it is over once another does, or once the same does again, or is said to.
    pub(super) fn is_ended_by(&self, primary: &TabletAlias, seen: Instant) -> bool {
        let moved = self.primary.as_ref() != Some(primary);
        moved || (seen >= self.last_sign && (self.vacant || !self.announced))
    }
}

#[derive(Clone, Debug)]
pub(super) enum Phase {
    Idle,
    Buffering(Episode),
    Draining,
}
