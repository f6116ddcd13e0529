//! What the signals decide.

use std::time::Duration;

use super::Breaker;
use crate::signal::latency::Window;
use crate::signal::tail::{Tally, Verdict};
use crate::state::Word;
use crate::sync::Ordering;
use crate::time::nanos;
use crate::{Event, Mode, Reason, State, Time, Trigger};

impl Breaker {
    /// Looks at what time and silence tell. Call it every 100 ms or so.
    pub fn tick(&self, now: Time) {
        self.machine.tick(now, &mut |c| self.tell(c, now));
        let word = self.machine.word();
        if word.state != State::Closed {
            self.baseline.discard(now);
            return;
        }
        self.judge_rates(word.generation, now);
        self.judge_stall(word, now);
        self.judge_pool(word, now);
        self.judge_latency(word, now);
    }

    /// Opens, if mode and cap allow.
    pub(super) fn fire(&self, generation: u32, reason: Reason, now: Time) {
        match self.machine.word().mode {
            Mode::Auto => {}
            Mode::DryRun => {
                if self.machine.restart(generation, now) {
                    self.counters.would_trip.fetch_add(1, Ordering::Relaxed);
                    self.listener.event(&Event::WouldTrip { at: now, reason });
                }
                return;
            }
            Mode::ForcedClosed | Mode::ForcedOpen => return,
        }
        if let Some(cap) = &self.cap {
            if reason.capped() && !cap.reserve() {
                return self.suppress(generation, reason, now);
            }
            if !reason.capped() {
                cap.force();
            }
        }
        let opened = self
            .machine
            .trip(generation, reason, now, &mut |c| self.tell(c, now));
        if let (false, Some(cap)) = (opened, &self.cap) {
            cap.release();
        }
    }

    pub(super) fn reopen(&self, generation: u32, cause: Option<Reason>, trigger: Trigger, now: Time) {
        self.machine
            .reopen(generation, cause, trigger, now, &mut |c| self.tell(c, now));
    }

    /// Stays closed for the cap's sake, with the least weight for one cooldown.
    fn suppress(&self, generation: u32, reason: Reason, now: Time) {
        if self.machine.restart(generation, now) {
            self.counters.suppressed.fetch_add(1, Ordering::Relaxed);
            let until = now.after(self.config.cooldown.base);
            self.suppressed_until.store(until.as_nanos(), Ordering::Relaxed);
            self.listener.event(&Event::Suppressed { at: now, reason });
        }
    }

    /// Finds out whose fault a signal is, and opens or blames.
    pub(super) fn judge(&self, generation: u32, reason: Reason, tally: &Tally, now: Time) -> Verdict {
        let blame = &self.config.blame;
        let verdict = match tally.verdict(blame) {
            Verdict::Tablet if blame.fingerprints > 0 => {
                let busy = self.survey(|f| self.cut.has(f, now));
                // A share of two or three slots would blame whoever happens to run.
                let enough = busy.count >= self.config.stall.pending.max(blame.fingerprints);
                match busy.tally.majority(blame).filter(|_| enough) {
                    Some((fingerprint, percent)) => Verdict::Fingerprint(fingerprint, percent),
                    None => Verdict::Tablet,
                }
            }
            verdict => verdict,
        };
        match verdict {
            Verdict::Unclear => {}
            Verdict::Tablet => self.fire(generation, reason, now),
            Verdict::Fingerprint(fingerprint, percent) => {
                self.cut.add(fingerprint, now.after(blame.hold));
                self.timeouts.end(generation);
                self.counters.attributed.fetch_add(1, Ordering::Relaxed);
                let event = Event::Attributed {
                    at: now,
                    reason,
                    fingerprint,
                    percent,
                };
                self.listener.event(&event);
            }
        }
        verdict
    }

    /// The rates, when a failure came in or time went by.
    pub(super) fn judge_rates(&self, generation: u32, now: Time) {
        let (errors, timeouts) = (self.config.error_rate, self.config.timeout_rate);
        if errors.percent > 0 {
            let buckets = self.shape.buckets(errors.window);
            let bad = self.failed.sum(generation, now, buckets);
            if bad > 0 && self.is_over(bad, self.results(generation, now, buckets), errors.percent) {
                return self.fire(generation, Reason::ErrorRate, now);
            }
        }
        if timeouts.percent > 0 {
            let buckets = self.shape.buckets(timeouts.window);
            let bad = self.timed_out.sum(generation, now, buckets);
            // Without any, which is the rule, the rest need not be summed.
            if bad == 0 {
                return;
            }
            let all = self.results(generation, now, buckets);
            if self.is_over(bad, all, timeouts.percent) {
                let since = Time::from_nanos(now.as_nanos().saturating_sub(nanos(timeouts.window)));
                let tally = self
                    .timed_out_tail
                    .tally(generation, since, |f| self.cut.has(f, now));
                // What blamed statements did before they were blamed is still in the window.
                if self.is_over(bad.min(tally.total), all, timeouts.percent) {
                    self.judge(generation, Reason::TimeoutRate, &tally, now);
                }
            }
        }
    }

    fn is_over(&self, bad: u64, all: u64, percent: u32) -> bool {
        all >= u64::from(self.config.min_samples) && bad > 0 && bad * 100 >= all * u64::from(percent)
    }

    /// All results in a window.
    fn results(&self, generation: u32, now: Time, buckets: u64) -> u64 {
        let successes = self.stripes.iter().map(|s| &s.successes);
        [&self.failed, &self.timed_out]
            .into_iter()
            .chain(successes)
            .map(|ring| ring.sum(generation, now, buckets))
            .sum()
    }

    /// Many wait, and for a while none of them got anything.
    fn judge_stall(&self, word: Word, now: Time) {
        let stall = self.config.stall;
        if stall.pending == 0 {
            return;
        }
        let busy = self.survey(|f| self.cut.has(f, now));
        let Some(oldest) = busy.oldest.filter(|_| busy.count >= stall.pending) else {
            return;
        };
        // Nothing progresses in a program that stands still.
        let oldest = oldest.max(self.pulse.resumed());
        let usual = self
            .baseline
            .p99()
            .map_or(Duration::ZERO, |p99| p99 * stall.p99_factor);
        if now.since(oldest) <= stall.age.max(usual) {
            return;
        }
        let progressed = self
            .stripes
            .iter()
            .map(|s| s.progressed.load(Ordering::Relaxed))
            .max();
        // Silence before the oldest began was idleness.
        let quiet_since = oldest.max(Time::from_nanos(progressed.unwrap_or(0)));
        if now.since(quiet_since) >= stall.quiet {
            self.judge(word.generation, Reason::Stall, &busy.tally, now);
        }
    }

    fn judge_pool(&self, word: Word, now: Time) {
        let limit = self.config.pool_saturated;
        let Some(span) = self.pool_full.span(now).filter(|_| !limit.is_zero()) else {
            return;
        };
        let since = Time::from_nanos(now.as_nanos().saturating_sub(nanos(span)));
        let still = self.pulse.still_since(since, now).unwrap_or(span);
        if span.saturating_sub(still) < limit {
            return;
        }
        let busy = self.survey(|f| self.cut.has(f, now));
        self.judge(word.generation, Reason::PoolSaturated, &busy.tally, now);
    }

    fn judge_latency(&self, word: Word, now: Time) {
        let span = self.baseline.age(now);
        let samples = self.stripes.iter().map(|s| &s.samples);
        let Some(window) = self.baseline.turn(&samples, self.config.min_samples, now) else {
            return;
        };
        self.baseline.show(window);
        if self.is_slow(window) {
            let tally = self
                .slow_tail
                .tally(window.number, Time::ZERO, |f| self.cut.has(f, now));
            if self.judge(word.generation, Reason::Latency, &tally, now) == Verdict::Tablet {
                return;
            }
        }
        self.baseline.learn(window, span);
    }

    /// p95 over its baseline, and over its siblings' where there are any.
    fn is_slow(&self, window: Window) -> bool {
        let siblings = self.siblings_p95.load(Ordering::Relaxed);
        let factor = u64::from(self.config.latency.siblings_factor);
        window.p95 >= self.baseline.limit() && window.p95 >= siblings.saturating_mul(factor)
    }
}
