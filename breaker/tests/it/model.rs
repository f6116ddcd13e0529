//! The breaker against a plain model: the same rules written with a mutex, lists and no packing, driven by the same
//! random histories with jumps of the clock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use shardgate_breaker::config::{Blame, Cooldown, Health, Lag, Probe, Rate};
use shardgate_breaker::{Breaker, Config, Mode, Outcome, OwnedPermit, Reason, State, Time, Work};

const MS: u64 = 1_000_000;
const ROW_FAILURES: u32 = 5;
const ROW_TIMEOUTS: u32 = 5;
const SAMPLES: usize = 5;
const BASE: u64 = 200;
const MAX: u64 = 1_000;
const HEALTHY: u64 = 3_000;
const LEASE: u64 = 150;
const PASSES: u32 = 2;
const ERRORS: (usize, u64) = (40, 100);
const TIMEOUTS: (usize, u64) = (40, 50);
/// A fiftieth of the shorter window, in nanoseconds.
const WIDTH: u64 = 50 * MS / 50;

fn config() -> Config {
    let ms = Duration::from_millis;
    let mut config = Config::replica();
    config.consecutive_failures = ROW_FAILURES;
    config.consecutive_timeouts = ROW_TIMEOUTS;
    let rate = |(percent, window): (usize, u64)| Rate {
        percent: percent as u32,
        window: ms(window),
    };
    config.error_rate = rate(ERRORS);
    config.timeout_rate = rate(TIMEOUTS);
    config.min_samples = SAMPLES as u32;
    config.stall.pending = 0;
    config.pool_saturated = Duration::ZERO;
    config.latency.factor = 0;
    config.lag = Lag {
        samples: 2,
        hard: ms(800),
        re_entry: ms(120),
    };
    config.health = Health { fall: 2, rise: 3 };
    config.blame = Blame {
        fingerprints: 0,
        ..config.blame
    };
    config.cooldown = Cooldown {
        base: ms(BASE),
        max: ms(MAX),
        jitter: 0,
        healthy: ms(HEALTHY),
    };
    config.probe = Probe {
        successes: PASSES,
        lease: ms(LEASE),
    };
    config
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Ask,
    /// What became of one of the attempts in flight, by its place.
    Record(usize, Outcome),
    /// One of them is sent only now.
    Sent(usize),
    Drop(usize),
    Wait(u64),
    Tick,
    Lag(u64),
    Health(bool),
    Trip,
    Renew,
    Mode(Mode),
}

fn step() -> impl Strategy<Value = Step> {
    use Outcome::{Failure, Neutral, RoleChange, Saturation, Success, Timeout};
    let outcome = prop_oneof![
        8 => Just(Success), 5 => Just(Failure), 5 => Just(Timeout),
        1 => Just(Neutral), 1 => Just(Saturation), 1 => Just(RoleChange),
    ];
    let mode = prop::sample::select(vec![
        Mode::Auto,
        Mode::Auto,
        Mode::ForcedOpen,
        Mode::ForcedClosed,
        Mode::DryRun,
    ]);
    prop_oneof![
        20 => Just(Step::Ask),
        20 => (0usize..8, outcome).prop_map(|(i, o)| Step::Record(i, o)),
        4 => (0usize..8).prop_map(Step::Sent),
        2 => (0usize..8).prop_map(Step::Drop),
        10 => prop_oneof![20 => 0u64..20, 4 => 0u64..400, 1 => 0u64..5_000, 1 => Just(86_400_000)].prop_map(Step::Wait),
        4 => Just(Step::Tick),
        2 => prop::sample::select(vec![0, 119, 120, 799, 800, 5000]).prop_map(Step::Lag),
        2 => any::<bool>().prop_map(Step::Health),
        1 => Just(Step::Trip),
        1 => Just(Step::Renew),
        1 => mode.prop_map(Step::Mode),
    ]
}

/// Bookkeeping of one attempt.
#[derive(Clone, Copy, Debug)]
struct Ticket {
    generation: u32,
    /// When its lease ends, if it is a probe.
    lease: Option<u64>,
}

#[derive(Debug)]
struct Inner {
    state: State,
    mode: Mode,
    cause: Reason,
    generation: u32,
    level: u32,
    passes: u32,
    /// End of the cooldown, or since when it is closed; in milliseconds.
    until: u64,
    closed_since: u64,
    /// The probe that is out.
    probe: Option<u64>,
    failures: u32,
    timeouts: u32,
    /// Slice and outcome of the results of this generation.
    results: Vec<(u64, Outcome)>,
    lagging: u32,
    falls: u32,
    rises: u32,
}

struct Model(Mutex<Inner>);

impl Model {
    fn new() -> Self {
        Self(Mutex::new(Inner {
            state: State::Closed,
            mode: Mode::Auto,
            cause: Reason::Operator,
            generation: 0,
            level: 0,
            passes: 0,
            until: 0,
            closed_since: 0,
            probe: None,
            failures: 0,
            timeouts: 0,
            results: vec![],
            lagging: 0,
            falls: 0,
            rises: 0,
        }))
    }

    fn with<T>(&self, f: impl FnOnce(&mut Inner) -> T) -> T {
        f(&mut self.0.lock().unwrap())
    }
}

impl Inner {
    fn enter(&mut self, state: State) {
        self.state = state;
        self.generation += 1;
        self.passes = 0;
        self.probe = None;
        self.failures = 0;
        self.timeouts = 0;
        self.results.clear();
    }

    fn close(&mut self, now: u64) {
        self.enter(State::Closed);
        self.closed_since = now;
    }

    fn open(&mut self, cause: Reason, now: u64) {
        if self.state == State::Closed {
            self.level = self
                .level
                .saturating_sub(((now - self.closed_since) / HEALTHY) as u32);
        }
        let cooldown = (BASE << self.level).min(MAX);
        // 200, 400, 800, 1000: three doublings reach the longest.
        self.level = (self.level + 1).min(3);
        self.cause = cause;
        self.enter(State::Open);
        self.until = now + cooldown;
    }

    fn fire(&mut self, cause: Reason, now: u64) {
        match self.mode {
            Mode::Auto => self.open(cause, now),
            Mode::DryRun => self.enter(State::Closed),
            Mode::ForcedClosed | Mode::ForcedOpen => {}
        }
    }

    fn time(&mut self, now: u64) {
        if self.mode != Mode::Auto {
            return;
        }
        if self.state == State::Open && now >= self.until {
            self.enter(State::HalfOpen);
        } else if self.state == State::HalfOpen && self.probe.is_some_and(|end| now >= end) {
            self.open(self.cause, now);
        }
    }

    fn ask(&mut self, now: u64) -> Result<Ticket, Option<u64>> {
        let generation = self.generation;
        match self.mode {
            Mode::ForcedClosed | Mode::DryRun => {
                return Ok(Ticket {
                    generation,
                    lease: None,
                });
            }
            Mode::ForcedOpen => return Err(None),
            Mode::Auto => self.time(now),
        }
        let generation = self.generation;
        match self.state {
            State::Closed => Ok(Ticket {
                generation,
                lease: None,
            }),
            State::Open => Err(Some(self.until - now)),
            State::HalfOpen => match self.probe {
                Some(end) => Err(Some(end - now)),
                None if self.cause == Reason::Lag || self.cause == Reason::HealthCheck => Err(Some(BASE)),
                None => {
                    self.probe = Some(now + LEASE);
                    Ok(Ticket {
                        generation,
                        lease: self.probe,
                    })
                }
            },
        }
    }

    fn record(&mut self, ticket: Ticket, outcome: Outcome, now: u64) {
        if ticket.generation != self.generation {
            return;
        }
        if let Some(end) = ticket.lease {
            match outcome {
                Outcome::Neutral => self.probe = None,
                Outcome::Success if now < end => {
                    self.probe = None;
                    self.pass(PASSES, now);
                }
                _ => self.open(self.cause, now),
            }
            return;
        }
        let slice = now * MS / WIDTH;
        match outcome {
            Outcome::Success => {
                self.failures = 0;
                self.timeouts = 0;
                self.results.push((slice, Outcome::Success));
            }
            Outcome::Timeout => {
                self.timeouts += 1;
                self.results.push((slice, Outcome::Timeout));
                if self.timeouts >= ROW_TIMEOUTS {
                    return self.fire(Reason::ConsecutiveTimeouts, now);
                }
                self.rates(now);
            }
            Outcome::Failure | Outcome::PrimaryGone | Outcome::RoleChange => {
                self.failures += 1;
                self.results.push((slice, Outcome::Failure));
                if self.failures >= ROW_FAILURES {
                    return self.fire(Reason::ConsecutiveFailures, now);
                }
                self.rates(now);
            }
            Outcome::Neutral | Outcome::Saturation => {}
        }
    }

    /// Tells whether it still counts.
    fn sent(&mut self, ticket: &mut Ticket, now: u64) -> bool {
        let Some(end) = ticket.lease else { return true };
        if now >= end || ticket.generation != self.generation {
            return false;
        }
        ticket.lease = Some(now + LEASE);
        self.probe = ticket.lease;
        true
    }

    fn rates(&mut self, now: u64) {
        if self.is_over(ERRORS, Outcome::Failure, now) {
            self.fire(Reason::ErrorRate, now);
        } else if self.is_over(TIMEOUTS, Outcome::Timeout, now) {
            self.fire(Reason::TimeoutRate, now);
        }
    }

    fn is_over(&self, (percent, window): (usize, u64), outcome: Outcome, now: u64) -> bool {
        let current = now * MS / WIDTH;
        let inside = |slice: u64| slice + window * MS / WIDTH > current;
        let all = self.results.iter().filter(|(s, _)| inside(*s)).count();
        let bad = self
            .results
            .iter()
            .filter(|(s, o)| inside(*s) && *o == outcome)
            .count();
        all >= SAMPLES && bad > 0 && bad * 100 >= all * percent
    }

    fn pass(&mut self, needed: u32, now: u64) {
        if self.mode != Mode::Auto {
            return;
        }
        self.passes += 1;
        if self.passes >= needed {
            self.close(now);
        }
    }

    fn sample(&mut self, cause: Reason, bad: Option<bool>, good: bool, tripped: bool, now: u64) {
        match self.state {
            State::Closed if tripped => self.fire(cause, now),
            State::HalfOpen if self.mode == Mode::Auto => {
                if tripped || self.cause == cause && bad == Some(true) {
                    self.open(cause, now);
                } else if self.cause == cause && good {
                    let needed = if cause == Reason::Lag { PASSES } else { 1 };
                    self.pass(needed, now);
                }
            }
            _ => {}
        }
    }

    fn apply(&mut self, step: Step, now: u64) {
        match step {
            Step::Tick => {
                self.time(now);
                if self.state == State::Closed {
                    self.rates(now);
                }
            }
            Step::Lag(lag) => {
                self.lagging = if lag >= 800 { self.lagging + 1 } else { 0 };
                self.sample(Reason::Lag, Some(lag >= 800), lag < 120, self.lagging >= 2, now);
            }
            Step::Health(passed) => {
                (self.falls, self.rises) = if passed {
                    (0, self.rises + 1)
                } else {
                    (self.falls + 1, 0)
                };
                let (falls, rises) = (self.falls, self.rises);
                self.sample(Reason::HealthCheck, Some(!passed), rises >= 3, falls >= 2, now);
            }
            Step::Trip => match self.state {
                State::Closed => self.fire(Reason::Buffer, now),
                State::HalfOpen if self.mode == Mode::Auto => self.open(Reason::Buffer, now),
                State::HalfOpen | State::Open => {}
            },
            Step::Renew => {
                (self.falls, self.rises) = (0, 0);
                if matches!(self.cause, Reason::Lag | Reason::HealthCheck) {
                    self.cause = Reason::ConsecutiveFailures;
                }
                self.enter(match (self.mode, self.state) {
                    (Mode::Auto, State::Open | State::HalfOpen) => State::HalfOpen,
                    (_, state) => state,
                });
            }
            Step::Mode(mode) => self.set_mode(mode, now),
            Step::Ask | Step::Record(..) | Step::Sent(_) | Step::Drop(_) | Step::Wait(_) => {}
        }
    }

    fn set_mode(&mut self, mode: Mode, now: u64) {
        if mode == self.mode {
            return;
        }
        if mode == Mode::ForcedOpen || self.mode == Mode::ForcedOpen {
            self.cause = Reason::Operator;
        }
        let was_closed = self.state == State::Closed;
        match (self.mode, mode) {
            (_, Mode::ForcedOpen) => self.enter(State::Open),
            (Mode::ForcedOpen, Mode::Auto) => self.enter(State::HalfOpen),
            _ if was_closed => self.enter(State::Closed),
            _ => self.close(now),
        }
        self.mode = mode;
    }
}

struct Pair {
    breaker: Arc<Breaker>,
    model: Model,
    now: u64,
    flying: Vec<(OwnedPermit, Ticket)>,
}

impl Pair {
    fn time(&self) -> Time {
        Time::from_nanos(self.now * MS)
    }

    fn take(&mut self, place: usize) -> Option<(OwnedPermit, Ticket)> {
        (!self.flying.is_empty()).then(|| {
            let place = place % self.flying.len();
            self.flying.remove(place)
        })
    }

    fn run(&mut self, step: Step) -> Result<(), TestCaseError> {
        let (now, time) = (self.now, self.time());
        match step {
            Step::Ask => {
                let asked = self.breaker.try_acquire_owned(Work::statement(1), time);
                let expected = self.model.with(|m| m.ask(now));
                match (asked, expected) {
                    (Ok(permit), Ok(ticket)) => {
                        prop_assert_eq!(permit.generation(), ticket.generation);
                        prop_assert_eq!(permit.is_probe(), ticket.lease.is_some());
                        self.flying.push((permit, ticket));
                    }
                    (Err(rejected), Err(after)) => {
                        prop_assert_eq!(rejected.retry_after, after.map(Duration::from_millis));
                    }
                    (asked, expected) => prop_assert!(false, "{:?} but {:?}", asked.is_ok(), expected),
                }
            }
            Step::Record(place, outcome) => {
                if let Some((permit, ticket)) = self.take(place) {
                    permit.record(outcome, time);
                    self.model.with(|m| m.record(ticket, outcome, now));
                }
            }
            Step::Sent(place) => {
                if let Some((mut permit, mut ticket)) = self.take(place) {
                    let counts = permit.sent(time);
                    prop_assert_eq!(counts, self.model.with(|m| m.sent(&mut ticket, now)));
                    self.flying.push((permit, ticket));
                }
            }
            Step::Drop(place) => {
                if let Some((permit, ticket)) = self.take(place) {
                    drop(permit);
                    self.model.with(|m| m.record(ticket, Outcome::Neutral, now));
                }
            }
            Step::Wait(span) => self.now += span,
            Step::Tick => self.breaker.tick(time),
            Step::Lag(lag) => self.breaker.observe_lag(Some(Duration::from_millis(lag)), time),
            Step::Health(passed) => self.breaker.observe_health(passed, time),
            Step::Trip => self.breaker.trip(Reason::Buffer, time),
            Step::Renew => self.breaker.renew(time),
            Step::Mode(mode) => self.breaker.set_mode(mode, time),
        }
        self.model.with(|m| m.apply(step, now));
        self.compare()
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let snapshot = self.breaker.snapshot(self.time());
        let now = self.now;
        self.model.with(|m| {
            let due = m.mode == Mode::Auto && m.state == State::Open && now >= m.until;
            let state = if due { State::HalfOpen } else { m.state };
            prop_assert_eq!((snapshot.state, snapshot.mode), (state, m.mode));
            prop_assert_eq!((snapshot.generation, snapshot.level), (m.generation, m.level));
            prop_assert_eq!(snapshot.probes_passed, m.passes);
            let reason = (state != State::Closed).then_some(m.cause);
            prop_assert_eq!(snapshot.reason, reason);
            Ok(())
        })?;
        prop_assert_eq!(snapshot.in_flight as usize, self.flying.len().min(64));
        Ok(())
    }
}

proptest! {
    #[test]
    fn the_breaker_does_what_the_model_does(steps in prop::collection::vec(step(), 1..300)) {
        let breaker = Breaker::new(config(), 1, Arc::new(())).unwrap();
        let mut pair = Pair { breaker: Arc::new(breaker), model: Model::new(), now: 1, flying: vec![] };
        for step in steps {
            pair.run(step)?;
        }
    }

    /// Whatever the clock does, forward or back: no panic, no leak, no second probe within a lease.
    #[test]
    fn no_jump_of_the_clock_breaks_it(steps in prop::collection::vec((step(), any::<u64>(), 0u8..10), 1..200)) {
        let breaker = Arc::new(Breaker::new(config(), 1, Arc::new(())).unwrap());
        let mut flying: Vec<OwnedPermit> = vec![];
        let mut now = 0;
        for (step, anywhere, jumps) in steps {
            if jumps == 0 {
                now = anywhere;
            }
            let time = Time::from_nanos(now);
            match step {
                Step::Ask => flying.extend(breaker.try_acquire_owned(Work::statement(1), time)),
                Step::Record(_, outcome) => if let Some(permit) = flying.pop() { permit.record(outcome, time) },
                Step::Sent(_) => if let Some(permit) = flying.last_mut() { let _ = permit.sent(time); },
                Step::Drop(_) => drop(flying.pop()),
                Step::Wait(span) => now = now.saturating_add(span * MS),
                Step::Tick => breaker.tick(time),
                Step::Lag(lag) => breaker.observe_lag(Some(Duration::from_millis(lag)), time),
                Step::Health(passed) => breaker.observe_health(passed, time),
                Step::Trip => breaker.trip(Reason::Buffer, time),
                Step::Renew => breaker.renew(time),
                Step::Mode(mode) => breaker.set_mode(mode, time),
            }
            let generation = breaker.snapshot(time).generation;
            let probes = flying.iter().filter(|p| p.is_probe() && p.generation() == generation).count();
            prop_assert!(probes <= 1, "{} probes", probes);
        }
        flying.clear();
        prop_assert_eq!(breaker.snapshot(Time::from_nanos(now)).in_flight, 0);
    }
}
