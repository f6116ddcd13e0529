//! What the poller and the pool report.

use std::time::Duration;

use super::Breaker;
use crate::sync::Ordering;
use crate::time::nanos;
use crate::{Reason, State, Time, Trigger};

impl Breaker {
    /// A lag sample; `None` is unknown, which is neither zero nor too much.
    pub fn observe_lag(&self, lag: Option<Duration>, now: Time) {
        let config = self.config.lag;
        let Some(lag) = lag else { return };
        let over = lag >= config.hard;
        let row = self.lagging.sample(over);
        if config.samples == 0 {
            return;
        }
        let word = self.machine.word();
        let judged = word.cause == Reason::Lag;
        match word.state {
            State::Closed if row >= config.samples => self.fire(word.generation, Reason::Lag, now),
            State::HalfOpen if row >= config.samples || judged && over => {
                self.reopen(word.generation, Some(Reason::Lag), Trigger::Signal, now);
            }
            State::HalfOpen if judged && lag < config.re_entry => {
                self.pass_sample(word.generation, self.config.probe.successes, now);
            }
            State::Closed | State::Open | State::HalfOpen => {}
        }
    }

    /// Whether any attempt has got something from the tablet since then: it is there, however late it answers others.
    #[must_use]
    pub fn has_progressed_since(&self, then: Time) -> bool {
        let progressed = self.stripes.iter().map(|s| s.progressed.load(Ordering::Relaxed));
        progressed.max().unwrap_or(0) > then.as_nanos()
    }

    /// A health check that passed, or did not.
    pub fn observe_health(&self, passed: bool, now: Time) {
        let config = self.config.health;
        let (falls, rises) = (self.unhealthy.sample(!passed), self.healthy.sample(passed));
        if config.fall == 0 {
            return;
        }
        let word = self.machine.word();
        let judged = word.cause == Reason::HealthCheck;
        match word.state {
            State::Closed if falls >= config.fall => self.fire(word.generation, Reason::HealthCheck, now),
            State::HalfOpen if falls >= config.fall || judged && !passed => {
                self.reopen(word.generation, Some(Reason::HealthCheck), Trigger::Signal, now);
            }
            // Checks that passed while it was open count: the rise is of checks in a row, not of this generation.
            State::HalfOpen if judged && rises >= config.rise => self.pass_sample(word.generation, 1, now),
            State::Closed | State::Open | State::HalfOpen => {}
        }
    }

    /// The pool's free slots and those who wait for one; call it when either changes, or on a tick.
    pub fn observe_pool(&self, free: usize, waiting: usize, now: Time) {
        if free == 0 && waiting > 0 {
            self.pool_full.holds(now);
        } else {
            self.pool_full.ends();
        }
    }

    /// The middle of the siblings' p95, of replicas of the same shard; `None` if none is known.
    pub fn observe_siblings(&self, p95: Option<Duration>) {
        self.siblings_p95.store(p95.map_or(0, nanos), Ordering::Relaxed);
    }

    fn pass_sample(&self, generation: u32, needed: u32, now: Time) {
        self.machine
            .pass(generation, needed, now, &mut |c| self.tell(c, now));
    }
}
