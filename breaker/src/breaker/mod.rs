//! One breaker: the state machine, the signals that move it, and the permits it gives.
//!
//! `mod.rs` is what callers use; [`settle`] is what a result does, [`judge`] what the signals decide, [`observe`] what
//! the poller and the pool report.

mod judge;
mod observe;
mod settle;

use std::sync::Arc;
use std::time::Duration;

use crate::permit::Held;
use crate::signal::cut::Cut;
use crate::signal::latency::{Baseline, Samples};
use crate::signal::pending::{self, Busy, Slots};
use crate::signal::samples::{Run, Since};
use crate::signal::streak::Streak;
use crate::signal::tail::Tail;
use crate::signal::window::{Ring, Shape};
use crate::state::{Admission, Change, Machine, Word};
use crate::sync::{AtomicU32, AtomicU64, Ordering, Writer, seat};
use crate::{
    Config, ConfigError, EjectionCap, Event, Listener, Mode, OwnedPermit, Permit, Pulse, Reason, Refusal,
    Rejected, State, Time, Transition, Trigger, Work,
};

/// What every attempt writes. Each stripe has its own cache lines.
#[repr(align(128))]
#[derive(Debug)]
struct Stripe {
    slots: Slots,
    successes: Ring,
    samples: Samples,
    /// When an attempt last progressed.
    progressed: AtomicU64,
}

/// Attempts in a row of one outcome, and of which kinds they are.
#[derive(Debug)]
struct Row {
    streak: Streak,
    /// Number of the streak: a new one starts with an empty tail.
    number: AtomicU32,
    tail: Tail,
}

impl Row {
    fn new() -> Self {
        Self {
            streak: Streak::new(),
            number: AtomicU32::new(1),
            tail: Tail::new(),
        }
    }

    #[inline]
    fn end(&self, generation: u32) {
        if self.streak.end(generation) {
            self.number.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What the tail of this streak is tagged with. The generation takes part: it ends streaks too.
    fn epoch(&self, generation: u32) -> u32 {
        generation.wrapping_mul(0x9e37_79b1) ^ self.number.load(Ordering::Relaxed)
    }
}

/// What happened so far. Counters only grow.
#[derive(Debug)]
struct Counters {
    trips: [AtomicU64; Reason::ALL.len()],
    refused: AtomicU64,
    suppressed: AtomicU64,
    would_trip: AtomicU64,
    attributed: AtomicU64,
    probes_passed: AtomicU64,
    probes_failed: AtomicU64,
    stale: AtomicU64,
}

/// A circuit breaker. All of its methods take `&self` and may be called from any thread.
pub struct Breaker {
    config: Config,
    machine: Machine,
    stripes: Box<[Stripe]>,
    shape: Shape,
    failures: Streak,
    failed: Ring,
    timeouts: Row,
    timed_out: Ring,
    /// Timeouts of a generation by kind.
    timed_out_tail: Tail,
    saturations: Row,
    saturated: Since,
    pool_full: Since,
    baseline: Baseline,
    slow_tail: Tail,
    cut: Cut,
    siblings_p95: AtomicU64,
    lagging: Run,
    unhealthy: Run,
    healthy: Run,
    opened_at: AtomicU64,
    probed_at: AtomicU64,
    suppressed_until: AtomicU64,
    counters: Counters,
    listener: Arc<dyn Listener>,
    cap: Option<Arc<EjectionCap>>,
    pulse: Arc<Pulse>,
}

/// What a breaker shows of itself: for metrics, `/debug/breakers` and `SHOW SHARDGATE BREAKERS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// The state, moved by time as well as by traffic.
    pub state: State,
    /// Who decides.
    pub mode: Mode,
    /// The signal that opened it last, if it is not closed.
    pub reason: Option<Reason>,
    /// The generation.
    pub generation: u32,
    /// How long it has not been closed; zero if it is.
    pub open_for: Duration,
    /// When the next probe is due, if it is open.
    pub probe_in: Option<Duration>,
    /// Probes passed, while half-open.
    pub probes_passed: u32,
    /// Doublings of the next cooldown.
    pub level: u32,
    /// Attempts in flight, of those that are tracked.
    pub in_flight: u32,
    /// Factor of the weight, in percent.
    pub weight: u32,
    /// p95 of the last window.
    pub p95: Option<Duration>,
    /// The slow average it is held against.
    pub baseline_p95: Option<Duration>,
    /// What happened so far.
    pub counts: Counts,
}

/// What happened so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Times it opened, from closed or half-open, by [`Reason::index`].
    pub trips: [u64; Reason::ALL.len()],
    /// Attempts refused.
    pub refused: u64,
    /// Signals that the ejection cap kept from opening it.
    pub suppressed: u64,
    /// Signals that would have opened it in dry run.
    pub would_trip: u64,
    /// Signals that were one kind of statement's fault.
    pub attributed: u64,
    /// Probes that passed.
    pub probes_passed: u64,
    /// Probes that failed.
    pub probes_failed: u64,
    /// Results of an earlier generation.
    pub stale: u64,
}

impl Breaker {
    /// A closed breaker. `seed` is where its jitter comes from: hand in a random number.
    pub fn new(config: Config, seed: u64, listener: Arc<dyn Listener>) -> Result<Self, ConfigError> {
        Self::build(config, seed, listener, None)
    }

    /// The breaker of a replica, bound by the cap it shares with its siblings.
    pub fn with_cap(
        config: Config,
        seed: u64,
        listener: Arc<dyn Listener>,
        cap: Arc<EjectionCap>,
    ) -> Result<Self, ConfigError> {
        Self::build(config, seed, listener, Some(cap))
    }

    fn build(
        config: Config,
        seed: u64,
        listener: Arc<dyn Listener>,
        cap: Option<Arc<EjectionCap>>,
    ) -> Result<Self, ConfigError> {
        config.validate()?;
        let shape = Shape::of(&config);
        let mode = config.mode();
        let stripes = config.stripes;
        let stripe = |index| Stripe {
            // The shared part alone holds all that are to be tracked, whoever has them in flight.
            slots: Slots::new(if index + 1 == stripes {
                config.tracked
            } else {
                config.tracked.div_ceil(2)
            }),
            successes: Ring::new(shape),
            samples: Samples::new(),
            progressed: AtomicU64::new(0),
        };
        if let Some(cap) = &cap {
            cap.join();
        }
        Ok(Self {
            machine: Machine::new(config.cooldown, config.probe, mode, seed),
            stripes: (0..stripes).map(stripe).collect(),
            shape,
            failures: Streak::new(),
            failed: Ring::new(shape),
            timeouts: Row::new(),
            timed_out: Ring::new(shape),
            timed_out_tail: Tail::new(),
            saturations: Row::new(),
            saturated: Since::new(),
            pool_full: Since::new(),
            baseline: Baseline::new(config.latency),
            slow_tail: Tail::new(),
            cut: Cut::new(),
            siblings_p95: AtomicU64::new(0),
            lagging: Run::new(),
            unhealthy: Run::new(),
            healthy: Run::new(),
            opened_at: AtomicU64::new(0),
            probed_at: AtomicU64::new(0),
            suppressed_until: AtomicU64::new(0),
            counters: Counters::new(),
            config,
            listener,
            cap,
            pulse: Arc::default(),
        })
    }

    /// The same, which knows by this pulse when nobody could have been in time.
    #[must_use]
    pub fn with_pulse(mut self, pulse: Arc<Pulse>) -> Self {
        self.pulse = pulse;
        self
    }

    /// Asks for the right to one attempt.
    #[inline]
    pub fn try_acquire(&self, work: Work, now: Time) -> Result<Permit<&Self>, Rejected> {
        self.acquire(work, now).map(|held| Permit::new(self, held))
    }

    /// [`Breaker::try_acquire`] for a task that must own its permit.
    #[inline]
    pub fn try_acquire_owned(self: &Arc<Self>, work: Work, now: Time) -> Result<OwnedPermit, Rejected> {
        let held = self.acquire(work, now)?;
        Ok(Permit::new(Arc::clone(self), held))
    }

    #[inline]
    fn acquire(&self, work: Work, now: Time) -> Result<Held, Rejected> {
        let (generation, lease) = match self.machine.plainly_closed() {
            Some(generation) => (generation, 0),
            None => self.admit(now)?,
        };
        Ok(Held {
            work,
            started: now,
            lease,
            latency: Held::NO_LATENCY,
            generation: u64::from(generation),
            place: self.take_slot(work, now),
        })
    }

    /// Decides when it is not plainly closed: the generation, and the lease of a probe.
    #[cold]
    #[inline(never)]
    fn admit(&self, now: Time) -> Result<(u32, u64), Rejected> {
        match self.machine.admit(now, |c| self.tell(c, now)) {
            Admission::Pass { generation } => Ok((generation, 0)),
            Admission::Probe { generation, lease } => {
                self.probed_at.store(now.as_nanos(), Ordering::Relaxed);
                Ok((generation, lease))
            }
            Admission::Refuse { word, retry_after } => Err(self.reject(word, retry_after, now)),
        }
    }

    fn reject(&self, word: Word, retry_after: Option<Duration>, now: Time) -> Rejected {
        self.counters.refused.fetch_add(1, Ordering::Relaxed);
        let refusal = match (word.mode, word.state) {
            (Mode::ForcedOpen, _) => Refusal::Forced,
            (_, State::HalfOpen) if word.cause.judged_by_samples() => Refusal::Sampling,
            (_, State::HalfOpen) => Refusal::Probing,
            (_, State::Open | State::Closed) => Refusal::Open,
        };
        Rejected {
            refusal,
            reason: word.cause,
            open_for: self.open_for(word, now),
            retry_after,
        }
    }

    #[inline]
    fn take_slot(&self, work: Work, now: Time) -> u64 {
        let (stripe, writer) = seat(self.stripes.len());
        let slots = self.stripes.get(stripe).map(|s| &s.slots);
        match slots.and_then(|s| s.take(writer, work.fingerprint(), now)) {
            Some(slot) => place(stripe, slot),
            None => self.borrow_slot(stripe, work, now),
        }
    }

    /// A thread whose part is full borrows from the part all share before an attempt goes untracked; the others'
    /// parts are theirs alone.
    #[cold]
    fn borrow_slot(&self, stripe: usize, work: Work, now: Time) -> u64 {
        let last = self.stripes.len().saturating_sub(1);
        let slots = self.stripes.get(last).map(|s| &s.slots);
        match slots.and_then(|s| s.take(Writer::Shared, work.fingerprint(), now)) {
            Some(slot) => place(last, slot),
            None => place(stripe, pending::NONE),
        }
    }

    /// Whether it is closed and decides by itself: whoever asks now is admitted. One load, for those who have to wait
    /// before they can ask for a permit.
    #[must_use]
    #[inline]
    pub fn is_plainly_closed(&self) -> bool {
        self.machine.plainly_closed().is_some()
    }

    /// The state, moved by time as well as by traffic.
    #[must_use]
    pub fn state(&self, now: Time) -> State {
        let word = self.machine.word();
        self.state_of(word, now)
    }

    fn state_of(&self, word: Word, now: Time) -> State {
        let due = || self.machine.mark(word).is_some_and(|end| now >= end);
        if word.state == State::Open && word.mode == Mode::Auto && due() {
            State::HalfOpen
        } else {
            word.state
        }
    }

    /// Who decides.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.machine.word().mode
    }

    /// Whether somebody else than its configuration decided who decides.
    #[must_use]
    pub fn is_taken_over(&self) -> bool {
        self.mode() != self.config.mode()
    }

    /// An operator takes over, or hands back. One that was forced open recovers by probes, one at a time.
    pub fn set_mode(&self, mode: Mode, now: Time) {
        let left = self.machine.set_mode(mode, now, &mut |c| self.tell(c, now));
        if let Some(from) = left {
            let event = Event::ModeChanged {
                at: now,
                from,
                to: mode,
            };
            self.listener.event(&event);
        }
    }

    /// Opens a closed breaker for a reason its own signals do not know: a buffer that gave up, an attributed
    /// fingerprint. Whoever is half-open opens again.
    pub fn trip(&self, reason: Reason, now: Time) {
        let word = self.machine.word();
        match word.state {
            State::Closed => self.fire(word.generation, reason, now),
            State::HalfOpen => self.reopen(word.generation, Some(reason), Trigger::Signal, now),
            State::Open => {}
        }
    }

    /// Another primary, or the same one seen to accept writes: a new generation, half-open at once unless closed, and
    /// probed by attempts.
    pub fn renew(&self, now: Time) {
        // Looks at the old one are no part of a row.
        self.unhealthy.sample(false);
        self.healthy.sample(false);
        self.machine.renew(now, &mut |c| self.tell(c, now));
    }

    /// Whether the next eligible attempt would be a probe: it goes here before weights are looked at.
    #[must_use]
    pub fn wants_probe(&self, now: Time) -> bool {
        let word = self.machine.word();
        word.mode == Mode::Auto
            && !word.cause.judged_by_samples()
            && self.state_of(word, now) == State::HalfOpen
            && (word.state == State::Open || self.machine.lease(word).is_none())
    }

    /// Whether no traffic has probed for a cooldown, so that the poller is to do it.
    #[must_use]
    pub fn wants_polled_probe(&self, now: Time) -> bool {
        if !self.wants_probe(now) {
            return false;
        }
        let word = self.machine.word();
        let since = self.machine.mark(word).unwrap_or(now);
        let probed = Time::from_nanos(self.probed_at.load(Ordering::Relaxed));
        now.since(since.max(probed)) >= self.config.cooldown.base
    }

    /// The factor of its weight in percent: 0 unless closed, less than 100 while it starts slowly or is kept in only
    /// by the ejection cap.
    #[must_use]
    pub fn weight(&self, now: Time) -> u32 {
        let word = self.machine.word();
        match (word.mode, word.state) {
            (Mode::ForcedOpen, _) | (Mode::Auto, State::Open | State::HalfOpen) => 0,
            (Mode::ForcedClosed | Mode::DryRun, _) => 100,
            (Mode::Auto, State::Closed) => {
                if now.as_nanos() < self.suppressed_until.load(Ordering::Relaxed) {
                    return self.config.least_weight;
                }
                self.slow_start(word, now)
            }
        }
    }

    fn slow_start(&self, word: Word, now: Time) -> u32 {
        let whole = self.config.slow_start.as_nanos();
        let closed = self
            .machine
            .mark(word)
            .map_or(Duration::ZERO, |since| now.since(since));
        if !word.recovered || closed >= self.config.slow_start {
            return 100;
        }
        let least = self.config.least_weight;
        let grown = u128::from(100 - least) * closed.as_nanos() / whole.max(1);
        least + u32::try_from(grown).unwrap_or(0)
    }

    /// Attempts in flight of this kind, and of all kinds.
    #[must_use]
    pub fn in_flight_of(&self, work: Work) -> (u32, u32) {
        let all = self.stripes.iter().map(|s| s.slots.in_use()).sum();
        let others = self.survey(|f| f == work.fingerprint()).count;
        (u32::saturating_sub(all, others), all)
    }

    /// The thresholds.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// p95 of the last window that had enough samples.
    #[must_use]
    pub fn p95(&self) -> Option<Duration> {
        self.baseline.last()
    }

    /// All there is to show.
    #[must_use]
    pub fn snapshot(&self, now: Time) -> Snapshot {
        let word = self.machine.word();
        let state = self.state_of(word, now);
        Snapshot {
            state,
            mode: word.mode,
            reason: (state != State::Closed).then_some(word.cause),
            generation: word.generation,
            open_for: self.open_for(word, now),
            probe_in: (state == State::Open && word.mode == Mode::Auto)
                .then(|| self.machine.mark(word).map(|end| end.since(now)))
                .flatten(),
            probes_passed: word.passes,
            level: word.level,
            in_flight: self.stripes.iter().map(|s| s.slots.in_use()).sum(),
            weight: self.weight(now),
            p95: self.baseline.last(),
            baseline_p95: self.baseline.p95(),
            counts: self.counters.counts(),
        }
    }

    fn open_for(&self, word: Word, now: Time) -> Duration {
        match word.state {
            State::Closed => Duration::ZERO,
            State::Open | State::HalfOpen => {
                now.since(Time::from_nanos(self.opened_at.load(Ordering::Relaxed)))
            }
        }
    }

    fn survey(&self, skip: impl Fn(u64) -> bool) -> Busy {
        pending::survey(self.stripes.iter().map(|s| &s.slots), skip)
    }

    /// Accounts for a transition and passes it on.
    fn tell(&self, change: Change, now: Time) {
        let (from, to) = (change.from.state, change.to.state);
        if let Some(cap) = &self.cap {
            match (from, to) {
                // A signal has made its reservation before.
                (State::Closed, State::Open | State::HalfOpen) if change.trigger != Trigger::Signal => {
                    cap.force();
                }
                (State::Open | State::HalfOpen, State::Closed) => cap.release(),
                (State::Closed | State::Open | State::HalfOpen, _) => {}
            }
        }
        if from == State::Closed && to == State::Open {
            self.opened_at.store(now.as_nanos(), Ordering::Relaxed);
        }
        if to == State::Open
            && from != State::Open
            && let Some(trips) = self.counters.trips.get(change.to.cause.index())
        {
            trips.fetch_add(1, Ordering::Relaxed);
        }
        if from == to && from == State::Closed {
            return;
        }
        let event = Event::Transition(Transition {
            at: now,
            from,
            to,
            trigger: change.trigger,
            reason: change.to.cause,
            generation: change.to.generation,
            cooldown: change.cooldown,
        });
        self.listener.event(&event);
    }
}

const fn place(stripe: usize, slot: u32) -> u64 {
    (stripe as u64) << 32 | slot as u64
}

impl Counters {
    fn new() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            trips: std::array::from_fn(|_| zero()),
            refused: zero(),
            suppressed: zero(),
            would_trip: zero(),
            attributed: zero(),
            probes_passed: zero(),
            probes_failed: zero(),
            stale: zero(),
        }
    }

    fn counts(&self) -> Counts {
        let get = |c: &AtomicU64| c.load(Ordering::Relaxed);
        Counts {
            trips: std::array::from_fn(|i| self.trips.get(i).map_or(0, get)),
            refused: get(&self.refused),
            suppressed: get(&self.suppressed),
            would_trip: get(&self.would_trip),
            attributed: get(&self.attributed),
            probes_passed: get(&self.probes_passed),
            probes_failed: get(&self.probes_failed),
            stale: get(&self.stale),
        }
    }
}

impl Drop for Breaker {
    fn drop(&mut self) {
        if let Some(cap) = &self.cap {
            if self.machine.word().state != State::Closed {
                cap.release();
            }
            cap.leave();
        }
    }
}

impl std::fmt::Debug for Breaker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Breaker")
            .field("word", &self.machine.word())
            .finish_non_exhaustive()
    }
}
