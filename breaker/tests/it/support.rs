//! A breaker with a clock that is moved by hand and a listener that remembers.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use shardgate_breaker::{
    Breaker, Config, EjectionCap, Event, Outcome, Permit, Pulse, Reason, State, Time, Transition, Work,
};

pub(crate) type Events = Arc<Mutex<Vec<Event>>>;

pub(crate) struct Rig {
    pub(crate) breaker: Arc<Breaker>,
    pub(crate) events: Events,
    pub(crate) now: Time,
    pulse: Option<Arc<Pulse>>,
    next: u64,
}

/// Defaults of a shard, with exact cooldowns.
pub(crate) fn shard() -> Config {
    exact(Config::shard())
}

pub(crate) fn replica() -> Config {
    exact(Config::replica())
}

fn exact(mut config: Config) -> Config {
    config.cooldown.jitter = 0;
    config
}

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

impl Rig {
    pub(crate) fn new(config: Config) -> Self {
        Self::build(config, None, None)
    }

    /// One whose ticks beat a pulse, too.
    pub(crate) fn with_pulse(config: Config) -> Self {
        Self::build(config, None, Some(Arc::default()))
    }

    pub(crate) fn with_cap(config: Config, cap: &Arc<EjectionCap>) -> Self {
        Self::build(config, Some(Arc::clone(cap)), None)
    }

    fn build(config: Config, cap: Option<Arc<EjectionCap>>, pulse: Option<Arc<Pulse>>) -> Self {
        let events: Events = Arc::default();
        let sink = Arc::clone(&events);
        let listener = Arc::new(move |event: &Event| sink.lock().unwrap().push(*event));
        let breaker = match cap {
            None => Breaker::new(config, 1, listener),
            Some(cap) => Breaker::with_cap(config, 1, listener, cap),
        };
        let breaker = breaker.unwrap();
        let breaker = match &pulse {
            None => breaker,
            Some(pulse) => breaker.with_pulse(Arc::clone(pulse)),
        };
        Self {
            breaker: Arc::new(breaker),
            events,
            now: Time::from_nanos(1_000_000_000),
            pulse,
            next: 0,
        }
    }

    pub(crate) fn pass(&mut self, span: Duration) {
        self.now = self.now.after(span);
    }

    /// Lets time go by as a running gateway sees it: a tick every 100 ms.
    pub(crate) fn ticks(&mut self, span: Duration) {
        let end = self.now.after(span);
        while self.now < end {
            self.pass(ms(100).min(end.since(self.now)));
            self.tick();
        }
    }

    /// One tick.
    pub(crate) fn tick(&self) {
        if let Some(pulse) = &self.pulse {
            pulse.beat(self.now);
        }
        self.breaker.tick(self.now);
    }

    /// A kind of statement, a different one each time, of more kinds than any rule asks for.
    pub(crate) fn kind(&mut self) -> Work {
        self.next += 1;
        Work::statement(1000 + self.next % 10)
    }

    pub(crate) fn start(&mut self) -> Permit<&Breaker> {
        let kind = self.kind();
        self.breaker.try_acquire(kind, self.now).unwrap()
    }

    pub(crate) fn one(&mut self, outcome: Outcome) {
        let now = self.now;
        self.start().record(outcome, now);
    }

    pub(crate) fn many(&mut self, count: usize, outcome: Outcome) {
        (0..count).for_each(|_| self.one(outcome));
    }

    pub(crate) fn one_of(&self, kind: u64, outcome: Outcome) {
        let permit = self.breaker.try_acquire(Work::statement(kind), self.now).unwrap();
        permit.record(outcome, self.now);
    }

    pub(crate) fn state(&self) -> State {
        self.breaker.state(self.now)
    }

    pub(crate) fn reason(&self) -> Option<Reason> {
        self.breaker.snapshot(self.now).reason
    }

    pub(crate) fn refused(&self) -> bool {
        self.breaker.try_acquire(Work::CONNECT, self.now).is_err()
    }

    pub(crate) fn open(&mut self) {
        self.many(5, Outcome::Failure);
        assert_eq!(self.state(), State::Open);
    }

    /// Opens it and waits for the cooldown's end.
    pub(crate) fn half_open(&mut self) {
        self.open();
        let wait = self.breaker.snapshot(self.now).probe_in.unwrap();
        self.pass(wait);
        assert_eq!(self.state(), State::HalfOpen);
    }

    pub(crate) fn transitions(&self) -> Vec<Transition> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .filter_map(|e| match e {
                Event::Transition(t) => Some(*t),
                _ => None,
            })
            .collect()
    }

    pub(crate) fn last_event(&self) -> Option<Event> {
        self.events.lock().unwrap().last().copied()
    }

    pub(crate) fn last(&self) -> Transition {
        *self.transitions().last().unwrap()
    }
}
