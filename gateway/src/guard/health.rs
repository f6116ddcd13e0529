//! What the poller sees, told to the breakers.

use super::registry::Guards;
use crate::base::clock;
use crate::topology::{HealthListener, Observation, PollError, TabletInfo};

impl HealthListener for Guards {
    fn observed(&self, tablet: &TabletInfo, observation: &Observation) {
        let passed = match &observation.outcome {
            // A server that answers with an error is there.
            Ok(_) | Err(PollError::Denied { .. }) => true,
            Err(
                PollError::Unreachable(_)
                | PollError::Lost(_)
                | PollError::Timeout(_)
                | PollError::Strange(_),
            ) => false,
        };
        if let Some(breaker) = self.breaker(&tablet.shard, &tablet.alias, tablet.role) {
            breaker.observe_health(passed, self.time(clock::now()));
        }
    }
}
