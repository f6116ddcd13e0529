//! The transitions, each one compare-and-swap.

use std::time::Duration;

use super::word::{Stamp, Word};
use crate::config::{Cooldown, Probe};
use crate::sync::{AtomicU64, Ordering};
use crate::time::nanos;
use crate::{Mode, Reason, State, Time, Trigger};

const MILLI: u64 = 1_000_000;

/// A lease that was found to be over: nobody can renew it any more. It is over at any time, like the one it replaces.
const TAKEN_AWAY: u64 = 1;

/// What the machine says to an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Closed, or made to admit.
    Pass { generation: u32 },
    /// Half-open, and this attempt is the probe.
    Probe { generation: u32, lease: u64 },
    /// Refused.
    Refuse {
        word: Word,
        retry_after: Option<Duration>,
    },
}

/// A transition that took place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) from: Word,
    pub(crate) to: Word,
    pub(crate) trigger: Trigger,
    pub(crate) cooldown: Duration,
}

/// State, generation, cooldown and probe of one breaker.
#[derive(Debug)]
pub(crate) struct Machine {
    word: AtomicU64,
    /// Open: when the cooldown is over. Closed and half-open: since when.
    mark: AtomicU64,
    /// The probe's lease: when it ends, or 0 while no probe is out. A stamp of an earlier generation is no probe.
    probe: AtomicU64,
    cooldown: Cooldown,
    probes: Probe,
    /// Doublings that reach the longest cooldown.
    top: u32,
    seed: u64,
}

impl Machine {
    pub(crate) fn new(cooldown: Cooldown, probes: Probe, mode: Mode, seed: u64) -> Self {
        let mut top = 0;
        while top < 31 && cooldown.base.saturating_mul(1 << top) < cooldown.max {
            top += 1;
        }
        Self {
            word: AtomicU64::new(Word::first(mode).pack()),
            mark: AtomicU64::new(Stamp::new(0, 0).0),
            probe: AtomicU64::new(0),
            cooldown,
            probes,
            top,
            seed,
        }
    }

    pub(crate) fn word(&self) -> Word {
        Word::unpack(self.word.load(Ordering::Acquire))
    }

    /// The generation, if it is closed and decides for itself.
    #[inline]
    pub(crate) fn plainly_closed(&self) -> Option<u32> {
        Word::plainly_closed(self.word.load(Ordering::Acquire))
    }

    /// The generation.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        (self.word.load(Ordering::Acquire) >> 32) as u32
    }

    /// Since when it is closed or half-open, or when the cooldown is over; `None` while that is being written.
    pub(crate) fn mark(&self, word: Word) -> Option<Time> {
        let millis = Stamp(self.mark.load(Ordering::Acquire)).of(word.generation)?;
        Some(Time::from_nanos(millis.saturating_mul(MILLI)))
    }

    /// When the probe that is out must be back.
    pub(crate) fn lease(&self, word: Word) -> Option<Time> {
        match Stamp(self.probe.load(Ordering::Acquire)).of(word.generation) {
            None | Some(0) => None,
            Some(millis) => Some(Time::from_nanos(millis.saturating_mul(MILLI))),
        }
    }

    /// Decides about one attempt. An attempt that comes when a change is due makes the change, at most one more after it.
    pub(crate) fn admit(&self, now: Time, mut tell: impl FnMut(Change)) -> Admission {
        loop {
            let word = self.word();
            match (word.mode, word.state) {
                (Mode::Auto, State::Closed) | (Mode::ForcedClosed | Mode::DryRun, _) => {
                    return Admission::Pass {
                        generation: word.generation,
                    };
                }
                (Mode::ForcedOpen, _) => {
                    return Admission::Refuse {
                        word,
                        retry_after: None,
                    };
                }
                (Mode::Auto, State::Open) => {
                    let end = self.mark(word);
                    if end.is_none_or(|end| now < end) {
                        let retry_after = Some(end.map_or(self.cooldown.base, |end| end.since(now)));
                        return Admission::Refuse { word, retry_after };
                    }
                    self.half_open(word, now, Trigger::Cooldown, &mut tell);
                }
                (Mode::Auto, State::HalfOpen) => {
                    if let Some(admission) = self.admit_probe(word, now, &mut tell) {
                        return admission;
                    }
                }
            }
        }
    }

    /// Half-open: the probe, if it is free. `None` when the state moved meanwhile.
    fn admit_probe(&self, word: Word, now: Time, tell: &mut impl FnMut(Change)) -> Option<Admission> {
        let seen = self.probe.load(Ordering::Acquire);
        // The stamp was read before the word is confirmed: it cannot be of a later generation than the word.
        if self.word().generation != word.generation {
            return None;
        }
        match Stamp(seen).of(word.generation) {
            Some(lease) if lease != 0 => {
                let lease = Time::from_nanos(lease.saturating_mul(MILLI));
                if now >= lease {
                    self.take_away(word, seen, now, tell);
                    return None;
                }
                let retry_after = Some(lease.since(now));
                return Some(Admission::Refuse { word, retry_after });
            }
            Some(_) | None => {}
        }
        if word.cause.judged_by_samples() {
            let retry_after = Some(self.cooldown.base);
            return Some(Admission::Refuse { word, retry_after });
        }
        let mine = self.lease_from(word.generation, now);
        self.probe
            .compare_exchange(seen, mine.0, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        // The state may have moved between the check and the swap: then this is nobody's probe.
        if self.word().generation != word.generation {
            self.release(word.generation, mine.millis());
            return None;
        }
        Some(Admission::Probe {
            generation: word.generation,
            lease: mine.millis(),
        })
    }

    /// Whether a probe's lease is over.
    pub(crate) fn lease_over(lease: u64, now: Time) -> bool {
        now.as_nanos() / MILLI >= lease
    }

    fn lease_from(&self, generation: u32, now: Time) -> Stamp {
        let end = now.after(self.probes.lease).as_nanos().div_ceil(MILLI);
        Stamp::new(generation, end.max(TAKEN_AWAY + 1))
    }

    /// The lease begins anew: what the probe spent waiting was not the tablet's. Tells the new lease; `None` if the
    /// probe is nobody's any more, or its lease is over.
    pub(crate) fn renew_lease(&self, generation: u32, lease: u64, now: Time) -> Option<u64> {
        if Self::lease_over(lease, now) {
            return None;
        }
        let (mine, next) = (Stamp::new(generation, lease), self.lease_from(generation, now));
        self.probe
            .compare_exchange(mine.0, next.0, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        (self.word().generation == generation).then(|| next.millis())
    }

    /// A lease that is over opens again. First it is made one that cannot be renewed: a probe that is sent at this very
    /// moment either has a new lease, and stays, or has none.
    fn take_away(&self, word: Word, lease: u64, now: Time, tell: &mut impl FnMut(Change)) {
        let taken = Stamp::new(word.generation, TAKEN_AWAY).0;
        if self
            .probe
            .compare_exchange(lease, taken, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
        {
            self.reopen(word.generation, None, Trigger::LeaseOver, now, tell);
        }
    }

    /// The probe is back and says nothing: the next attempt probes.
    pub(crate) fn release(&self, generation: u32, lease: u64) {
        let mine = Stamp::new(generation, lease).0;
        let free = Stamp::new(generation, 0).0;
        // Fails only if the probe belongs to somebody else by now.
        let _ = self
            .probe
            .compare_exchange(mine, free, Ordering::AcqRel, Ordering::Acquire);
    }

    /// One more pass of the re-check; enough of them close.
    pub(crate) fn pass(&self, generation: u32, needed: u32, now: Time, tell: &mut impl FnMut(Change)) {
        self.change(now, tell, |word| {
            if word.generation != generation || word.state != State::HalfOpen || word.mode != Mode::Auto {
                return None;
            }
            let passes = word.passes + 1;
            if passes < needed {
                return Some((Word { passes, ..word }, Trigger::ProbesPassed));
            }
            let closed = Word {
                recovered: true,
                ..word.enter(State::Closed)
            };
            Some((closed, Trigger::ProbesPassed))
        });
    }

    /// Half-open to open, with the next cooldown. Without a cause the old one stays.
    pub(crate) fn reopen(
        &self,
        generation: u32,
        cause: Option<Reason>,
        trigger: Trigger,
        now: Time,
        tell: &mut impl FnMut(Change),
    ) {
        self.change(now, tell, |word| {
            if word.generation != generation || word.state != State::HalfOpen || word.mode != Mode::Auto {
                return None;
            }
            Some((self.opened(word, cause.unwrap_or(word.cause)), trigger))
        });
    }

    /// Closed to open, if this is still the generation the signal was seen in. Tells whether it opened.
    pub(crate) fn trip(
        &self,
        generation: u32,
        cause: Reason,
        now: Time,
        tell: &mut impl FnMut(Change),
    ) -> bool {
        self.change(now, tell, |word| {
            if word.generation != generation || word.state != State::Closed || word.mode != Mode::Auto {
                return None;
            }
            let level = word.level.saturating_sub(self.healthy_steps(word, now));
            Some((self.opened(Word { level, ..word }, cause), Trigger::Signal))
        })
    }

    /// Begins a generation without a change of state, so that what was counted so far is forgotten. Only one of the
    /// threads that saw the same signal succeeds.
    pub(crate) fn restart(&self, generation: u32, now: Time) -> bool {
        let mut quiet = |_| {};
        self.change(now, &mut quiet, |word| {
            (word.generation == generation && word.state == State::Closed)
                .then(|| (word.enter(State::Closed), Trigger::Signal))
        })
    }

    /// Another primary, or the same one back in office: what was learned of the old one no longer counts. One that was
    /// not closed is probed at once, by attempts; one that was closed stays so.
    pub(crate) fn renew(&self, now: Time, tell: &mut impl FnMut(Change)) {
        self.change(now, tell, |word| {
            let state = match (word.mode, word.state) {
                (Mode::Auto, State::Open | State::HalfOpen) => State::HalfOpen,
                (Mode::Auto, State::Closed) | (Mode::ForcedClosed | Mode::ForcedOpen | Mode::DryRun, _) => {
                    word.state
                }
            };
            // Samples of the old one found it gone; attempts on the new one show soonest that it is there.
            let cause = if word.cause.judged_by_samples() {
                Reason::ConsecutiveFailures
            } else {
                word.cause
            };
            let next = Word {
                cause,
                ..word.enter(state)
            };
            Some((next, Trigger::NewTerm))
        });
    }

    /// Changes who decides; `state` is the state that mode begins with. Tells the mode left, if it is another.
    pub(crate) fn set_mode(&self, mode: Mode, now: Time, tell: &mut impl FnMut(Change)) -> Option<Mode> {
        let mut left = None;
        self.change(now, tell, |word| {
            left = (word.mode != mode).then_some(word.mode);
            left?;
            let state = match (mode, word.mode) {
                (Mode::ForcedOpen, _) => State::Open,
                (Mode::ForcedClosed | Mode::DryRun, _) | (Mode::Auto, Mode::ForcedClosed | Mode::DryRun) => {
                    State::Closed
                }
                // Whoever was shut off by hand is let in one at a time.
                (Mode::Auto, Mode::ForcedOpen | Mode::Auto) => State::HalfOpen,
            };
            let cause = if mode == Mode::ForcedOpen || word.mode == Mode::ForcedOpen {
                Reason::Operator
            } else {
                word.cause
            };
            let entered = Word {
                mode,
                cause,
                ..word.enter(state)
            };
            Some((entered, Trigger::Operator))
        });
        left
    }

    /// Makes the changes that time alone makes due.
    pub(crate) fn tick(&self, now: Time, tell: &mut impl FnMut(Change)) {
        let word = self.word();
        if word.mode != Mode::Auto {
            return;
        }
        match word.state {
            State::Closed => {}
            State::Open => {
                if self.mark(word).is_some_and(|end| now >= end) {
                    self.half_open(word, now, Trigger::Cooldown, tell);
                }
            }
            State::HalfOpen => {
                let lease = self.probe.load(Ordering::Acquire);
                if Stamp(lease)
                    .of(word.generation)
                    .is_some_and(|end| end != 0 && Self::lease_over(end, now))
                {
                    self.take_away(word, lease, now, tell);
                }
            }
        }
    }

    fn half_open(&self, seen: Word, now: Time, trigger: Trigger, tell: &mut impl FnMut(Change)) {
        self.change(now, tell, |word| {
            (word == seen).then(|| (word.enter(State::HalfOpen), trigger))
        });
    }

    fn opened(&self, word: Word, cause: Reason) -> Word {
        Word {
            cause,
            level: (word.level + 1).min(self.top),
            ..word.enter(State::Open)
        }
    }

    /// Swaps the word for what `next` makes of it, until `next` declines. Writes the mark and tells the change if a
    /// generation began.
    fn change(
        &self,
        now: Time,
        tell: &mut impl FnMut(Change),
        mut next: impl FnMut(Word) -> Option<(Word, Trigger)>,
    ) -> bool {
        let mut bits = self.word.load(Ordering::Acquire);
        loop {
            let from = Word::unpack(bits);
            let Some((to, trigger)) = next(from) else {
                return false;
            };
            match self
                .word
                .compare_exchange_weak(bits, to.pack(), Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => {
                    if from.generation != to.generation {
                        let cooldown = self.write_mark(from, to, now);
                        tell(Change {
                            from,
                            to,
                            trigger,
                            cooldown,
                        });
                    }
                    return true;
                }
                Err(current) => bits = current,
            }
        }
    }

    /// Only the thread whose swap began the generation comes here, and only it knows the mark.
    fn write_mark(&self, from: Word, to: Word, now: Time) -> Duration {
        let cooldown = match to.state {
            State::Open if to.mode == Mode::Auto => self.cooldown_of(from, to, now),
            State::Open | State::Closed | State::HalfOpen => Duration::ZERO,
        };
        // A generation without a change of state began when the state did: health is counted from there.
        let kept = (from.state == State::Closed && to.state == State::Closed)
            .then(|| Stamp(self.mark.load(Ordering::Acquire)).of(from.generation))
            .flatten();
        let millis = match kept {
            Some(millis) => millis,
            None if cooldown.is_zero() => now.as_nanos() / MILLI,
            None => now.after(cooldown).as_nanos().div_ceil(MILLI),
        };
        let stamp = Stamp::new(to.generation, millis);
        let mut seen = self.mark.load(Ordering::Acquire);
        // A thread that was held up here must not overwrite the mark of a generation that began since.
        while Stamp(seen).is_before(to.generation) {
            match self
                .mark
                .compare_exchange_weak(seen, stamp.0, Ordering::AcqRel, Ordering::Acquire)
            {
                Ok(_) => break,
                Err(current) => seen = current,
            }
        }
        cooldown
    }

    /// The cooldown of the generation that begins.
    fn cooldown_of(&self, from: Word, to: Word, now: Time) -> Duration {
        let level = match from.state {
            State::Closed => from.level.saturating_sub(self.healthy_steps(from, now)),
            State::Open | State::HalfOpen => from.level,
        };
        let plain = self
            .cooldown
            .base
            .saturating_mul(1 << level)
            .min(self.cooldown.max);
        let spread = nanos(plain) / 100 * u64::from(self.cooldown.jitter);
        // The seed was handed in; mixed with the generation, each cooldown of each breaker has its own jitter.
        let draw = mix(self.seed ^ u64::from(to.generation)) >> 32;
        let extra = (u128::from(spread) * u128::from(draw)) >> 32;
        plain.saturating_add(Duration::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX)))
    }

    /// Halvings earned by the time spent closed.
    fn healthy_steps(&self, word: Word, now: Time) -> u32 {
        let healthy = nanos(self.cooldown.healthy);
        if healthy == 0 {
            return 0;
        }
        let closed = self.mark(word).map_or(Duration::ZERO, |since| now.since(since));
        u32::try_from(nanos(closed) / healthy).unwrap_or(u32::MAX)
    }
}

/// A 64-bit finaliser (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
const fn mix(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
