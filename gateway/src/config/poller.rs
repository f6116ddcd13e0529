//! How tablets are looked at.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units::{self, show_duration};

/// The shortest interval: shorter ones are load without news.
const SHORTEST: Duration = Duration::from_millis(50);

/// `[poller]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Poller {
    /// How often each tablet is looked at, give or take a tenth: whether it answers, whether it takes writes, what it
    /// replicates. Default `500ms`; at least `50ms`. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub interval: Duration,
    /// How long one look may take, the time to connect included where the connection was lost; after two late answers in
    /// a row, or a refused connection, a tablet no longer serves. Default `250ms`; at least `10ms`, at most `10s`. The
    /// first look at a tablet has `timeouts.connect` if that is longer. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub timeout: Duration,
}

impl Default for Poller {
    fn default() -> Self {
        Self {
            interval: Duration::from_millis(500),
            timeout: Duration::from_millis(250),
        }
    }
}

impl Poller {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.interval < SHORTEST {
            problems.add(
                "poller.interval",
                format!("must be at least {}", show_duration(SHORTEST)),
            );
        }
        if self.timeout < Duration::from_millis(10) || self.timeout > Duration::from_secs(10) {
            problems.add("poller.timeout", "must be 10ms to 10s");
        }
    }
}
