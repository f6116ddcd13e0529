//! What the poller sees, told to the breakers.

use super::registry::Guards;
use crate::base::{Role, clock};
use crate::topology::{HealthListener, Observation, PollError, TabletInfo};

impl HealthListener for Guards {
    fn observed(&self, tablet: &TabletInfo, observation: &Observation) {
        let Some(breaker) = self.breaker(&tablet.shard, &tablet.alias, tablet.role) else {
            return;
        };
        let now = clock::now();
        let passed = match &observation.outcome {
            // A server that answers with an error is there.
            Ok(_) | Err(PollError::Denied { .. }) => true,
            Err(PollError::Timeout(limit)) => {
                // No answer in time says nothing if statements get theirs meanwhile: the tablet is busy. Nor if the limit
                // was noticed late: then the gateway itself is.
                let noticed_late = observation.took > *limit + *limit / 2;
                let began = self.time(observation.at);
                let stood_still = self.cut_short(observation.at, *limit, now);
                if noticed_late || stood_still || breaker.has_progressed_since(began) {
                    return;
                }
                false
            }
            Err(PollError::Unreachable(_) | PollError::Lost(_) | PollError::Strange(_)) => false,
        };
        if !passed && tablet.role == Role::Primary && self.buffer(&tablet.shard).is_buffering() {
            // Everybody knows; requests wait for it to pass.
            return;
        }
        breaker.observe_health(passed, self.time(now));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use shardgate_breaker::State;
    use shardgate_wire::client::Address;

    use super::*;
    use crate::base::ShardId;
    use crate::base::metrics::Metrics;
    use crate::guard::{GuardSettings, Outcome, Work};

    const LIMIT: Duration = Duration::from_millis(250);

    #[tokio::test(start_paused = true)]
    async fn a_late_look_counts_unless_statements_are_answered_or_the_gateway_is_late_itself() {
        for (answers, took, expected) in [
            (false, LIMIT, State::Open),
            (true, LIMIT, State::Closed),
            (false, LIMIT * 2, State::Closed),
        ] {
            let guards = Guards::new(
                GuardSettings::default(),
                clock::now(),
                1,
                Arc::new(Metrics::default()),
            );
            let info = TabletInfo {
                alias: "a".into(),
                shard: ShardId::new("k", "0"),
                role: Role::Primary,
                address: Address::tcp("h", 1),
                database: "k".into(),
            };
            let gate = guards.gate(&info.shard, &info.alias, info.role);
            for _ in 0..3 {
                let at = clock::now();
                tokio::time::advance(took).await;
                if answers {
                    let mut pass = gate.enter(Work::statement(7), clock::now()).unwrap();
                    let attempt = gate.start(&mut pass, clock::now()).unwrap();
                    attempt.record(&gate, Outcome::Success, clock::now());
                }
                guards.observed(
                    &info,
                    &Observation {
                        at,
                        took,
                        outcome: Err(PollError::Timeout(LIMIT)),
                    },
                );
            }
            let breaker = gate.breaker().unwrap();
            assert_eq!(
                breaker.state(guards.time(clock::now())),
                expected,
                "{answers} {took:?}"
            );
        }
    }
}
