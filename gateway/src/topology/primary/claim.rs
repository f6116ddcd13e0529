//! What a tablet's last word makes of it.

use super::Seen;
use crate::base::clock::Instant;
use crate::topology::health::is_leaving;
use crate::topology::observation::{PollError, Replication};
use crate::topology::position::Position;

/// What the incumbent is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// Nobody has looked at it.
    NotMeasured,
    /// Nobody listens there, or it says that it is leaving.
    Gone(String),
    /// It does not answer in time, or nothing that can be understood.
    Silent(String),
    /// It takes no writes.
    ReadOnly,
    /// It takes writes and replicates from somebody.
    Follows { seen: Instant },
    /// It takes writes.
    Writes { seen: Instant },
}

impl Claim {
    /// Of an incumbent. That it replicates counts only if it is known.
    pub(super) fn of(tablet: &Seen<'_>) -> Self {
        let Some(standing) = tablet.standing else {
            return Self::NotMeasured;
        };
        if !standing.serving {
            let why = standing.why_not().unwrap_or_default();
            return match &standing.last.outcome {
                Err(PollError::Unreachable(_) | PollError::Lost(_)) => Self::Gone(why),
                Err(PollError::Denied { errno, .. }) if is_leaving(*errno) => Self::Gone(why),
                Ok(_) | Err(PollError::Timeout(_) | PollError::Strange(_) | PollError::Denied { .. }) => {
                    Self::Silent(why)
                }
            };
        }
        let Some((facts, seen)) = standing.facts().zip(standing.answered.as_ref().map(|o| o.at)) else {
            return Self::NotMeasured;
        };
        if !facts.writable() {
            return Self::ReadOnly;
        }
        match facts.replication.replicates() {
            Some(true) => Self::Follows { seen },
            Some(false) | None => Self::Writes { seen },
        }
    }
}

/// When another tablet said that it is a primary, if it does: it takes writes, and is known to replicate nothing.
pub(super) fn of_other(tablet: &Seen<'_>) -> Option<Instant> {
    let standing = tablet.standing.filter(|s| s.serving)?;
    let (facts, said) = standing.said()?;
    let claims = facts.writable() && facts.replication.replicates() == Some(false);
    claims.then_some(said)
}

/// Where it stands in the history of writes, by its last word.
pub(super) fn position<'a>(tablet: &Seen<'a>) -> Option<&'a Position> {
    tablet.standing?.facts()?.position.as_ref()
}

/// Whether it was told to replicate once, be it that it no longer does.
pub(super) fn has_channels(tablet: &Seen<'_>) -> bool {
    let replication = tablet.standing.and_then(|s| s.facts()).map(|f| &f.replication);
    match replication {
        Some(Replication::Channels(channels)) => !channels.is_empty(),
        Some(Replication::Unknown(_)) | None => false,
    }
}
