//! What a result does.
use super::{Breaker, Stripe};
use crate::permit::Held;
use crate::signal::tail::Verdict;
use crate::state::Machine;
use crate::sync::{Ordering, Writer, seat};
use crate::time::nanos;
use crate::{Outcome, Pulse, Reason, Time, Trigger};

/// The shortest standstill that a pulse tells of, in nanoseconds.
const STANDSTILL: u64 = (Pulse::LATE.as_nanos() - Pulse::BEAT.as_nanos()) as u64;

impl Breaker {
    pub(crate) fn touch(&self, held: &Held, now: Time) {
        if let Some(stripe) = self.stripe(held) {
            stripe.slots.touch(held.slot(), now);
        }
    }

    /// Whether the probe is still one, now with a whole lease before it.
    pub(crate) fn renew_lease(&self, held: &mut Held, now: Time) -> bool {
        match self.machine.renew_lease(held.generation(), held.lease, now) {
            Some(lease) => {
                held.lease = lease;
                true
            }
            None => false,
        }
    }

    pub(crate) fn progressed(&self, held: &Held, now: Time) {
        if let Some(stripe) = self.stripe(held) {
            stripe.slots.touch(held.slot(), now);
            stripe.progressed.store(now.as_nanos(), Ordering::Relaxed);
        }
    }

    pub(crate) fn responded(&self, held: &Held, now: Time) {
        if held.lease == 0 && self.machine.generation() == held.generation() {
            let (mine, writer) = seat(self.stripes.len());
            if let Some(mine) = self.stripes.get(mine) {
                self.note_latency(held, (mine, writer), now);
            }
        }
    }

    #[inline]
    pub(crate) fn dropped(&self, held: &Held) {
        if let Some(stripe) = self.stripe(held) {
            stripe.slots.give_back(held.slot());
        }
        if held.lease != 0 {
            self.machine.release(held.generation(), held.lease);
        }
    }

    #[inline]
    pub(crate) fn settle(&self, held: &Held, outcome: Outcome, now: Time) {
        if outcome == Outcome::Neutral {
            return self.dropped(held);
        }
        let Some(stripe) = self.stripe(held) else { return };
        stripe.slots.give_back(held.slot());
        if outcome == Outcome::Success {
            stripe.progressed.store(now.as_nanos(), Ordering::Relaxed);
        }
        if self.machine.generation() != held.generation() {
            self.counters.stale.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if held.lease != 0 {
            return self.settle_probe(held, outcome, now);
        }
        match outcome {
            Outcome::Success => self.succeeded(held, now),
            Outcome::Timeout => self.timed_out(held, now),
            Outcome::Failure | Outcome::PrimaryGone | Outcome::RoleChange => self.failed(held, now),
            Outcome::Saturation => self.saturated(held, now),
            Outcome::Neutral => {}
        }
    }

    #[inline]
    fn stripe(&self, held: &Held) -> Option<&Stripe> {
        self.stripes.get(held.stripe())
    }

    #[inline]
    fn succeeded(&self, held: &Held, now: Time) {
        self.failures.end(held.generation());
        self.timeouts.end(held.generation());
        self.saturations.end(held.generation());
        self.saturated.ends();
        let (mine, writer) = seat(self.stripes.len());
        let Some(mine) = self.stripes.get(mine) else {
            return;
        };
        mine.successes.add_as(writer, held.generation(), now);
        if held.latency == Held::NO_LATENCY {
            self.note_latency(held, (mine, writer), now);
        }
    }

    #[inline]
    fn note_latency(&self, held: &Held, (mine, writer): (&Stripe, Writer), now: Time) {
        let fingerprint = held.work.fingerprint();
        if self.cut.has(fingerprint, now) {
            return;
        }
        let latency = held.latency_at(now);
        // What took less cannot have been under way in a standstill.
        let latency = if latency < STANDSTILL {
            latency
        } else {
            match self.pulse.still_since(held.started, now) {
                Some(still) => latency.saturating_sub(nanos(still)),
                None => return,
            }
        };
        let window = self.baseline.window();
        mine.samples.add(writer, window, latency);
        if latency >= self.baseline.limit() {
            self.slow_tail.add(fingerprint, window, now);
        }
    }

    #[cold]
    fn failed(&self, held: &Held, now: Time) {
        let generation = held.generation();
        self.failed.add(generation, now);
        let threshold = self.config.consecutive_failures;
        let row = self.failures.add(generation);
        if threshold > 0 && row >= threshold {
            self.fire(generation, Reason::ConsecutiveFailures, now);
        } else {
            self.judge_rates(generation, now);
        }
    }

    #[cold]
    fn timed_out(&self, held: &Held, now: Time) {
        let (generation, fingerprint) = (held.generation(), held.work.fingerprint());
        if self.cut.has(fingerprint, now) || self.pulse.cut_short(held.started, Pulse::FAIR_CHANCE, now) {
            return;
        }
        self.timed_out.add(generation, now);
        self.timed_out_tail.add(fingerprint, generation, now);
        let streak = self.timeouts.epoch(generation);
        self.timeouts.tail.add(fingerprint, streak, now);
        let threshold = self.config.consecutive_timeouts;
        let row = self.timeouts.streak.add(generation);
        if threshold > 0 && row >= threshold {
            let tally = self
                .timeouts
                .tail
                .tally(streak, Time::ZERO, |f| self.cut.has(f, now));
            if self.judge(generation, Reason::ConsecutiveTimeouts, &tally, now) != Verdict::Unclear {
                return;
            }
        }
        self.judge_rates(generation, now);
    }

    /// The server has no room, time and again, and nothing else succeeds.
    #[cold]
    fn saturated(&self, held: &Held, now: Time) {
        let (generation, fingerprint) = (held.generation(), held.work.fingerprint());
        let limit = self.config.pool_saturated;
        if limit.is_zero() || self.cut.has(fingerprint, now) {
            return;
        }
        if self.saturations.streak.add(generation) == 1 {
            // A streak of an earlier generation may have left its beginning behind.
            self.saturated.ends();
        }
        self.saturated.holds(now);
        let streak = self.saturations.epoch(generation);
        self.saturations.tail.add(fingerprint, streak, now);
        if self.saturated.span(now).is_some_and(|span| span >= limit) {
            let tally = self
                .saturations
                .tail
                .tally(streak, Time::ZERO, |f| self.cut.has(f, now));
            self.judge(generation, Reason::PoolSaturated, &tally, now);
        }
    }

    #[cold]
    fn settle_probe(&self, held: &Held, outcome: Outcome, now: Time) {
        let late = Machine::lease_over(held.lease, now);
        let passed = outcome == Outcome::Success && !late && self.re_check(held, now);
        if passed {
            self.counters.probes_passed.fetch_add(1, Ordering::Relaxed);
            let needed = self.config.probe.successes;
            // The pass counts before the next probe may start, or that one could end before it.
            self.machine
                .pass(held.generation(), needed, now, &mut |c| self.tell(c, now));
            self.machine.release(held.generation(), held.lease);
            return;
        }
        self.counters.probes_failed.fetch_add(1, Ordering::Relaxed);
        let trigger = if late {
            Trigger::LeaseOver
        } else {
            Trigger::ProbeFailed
        };
        self.reopen(held.generation(), None, trigger, now);
    }

    /// Whether the signal that opened the breaker is gone.
    fn re_check(&self, held: &Held, now: Time) -> bool {
        match self.machine.word().cause {
            Reason::PoolSaturated => self.pool_full.span(now).is_none(),
            Reason::Latency => {
                held.latency_at(now) < self.baseline.limit()
            }
            Reason::ConsecutiveFailures
            | Reason::ConsecutiveTimeouts
            | Reason::ErrorRate
            | Reason::TimeoutRate
            | Reason::Stall
            | Reason::Buffer
            | Reason::Attributed
            | Reason::Operator
            // Of these two the poller's samples are the probes; no attempt is one.
            | Reason::Lag
            | Reason::HealthCheck => true,
        }
    }
}
