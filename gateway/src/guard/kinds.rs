//! Breakers of kinds of statement on one shard.
//!
//! Almost no kind ever needs one: it is made when the shard's breaker blames the kind, or when it first times out.
//! Until then asking costs one load.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use shardgate_breaker::{
    Breaker, Config, Listener, OwnedPermit, Pulse, Reason, Registry, Rejected, Time, Work,
};

/// How many kinds of one shard have a breaker at once. One that is closed makes way for the next; beyond that many
/// open at once the shard's own breaker is the one that matters.
const MOST: usize = 256;

/// A kind that has been well for so long is forgotten. Longer than any window, so that what counts in one is not lost.
const FORGET: Duration = Duration::from_mins(2);

/// The breakers of kinds of statement on one shard.
#[derive(Debug)]
pub struct Kinds {
    breakers: Registry<u64>,
    /// Whether there is any.
    any: AtomicBool,
    /// When one was last blamed or timed out.
    touched: AtomicU64,
    config: Config,
    pulse: Arc<Pulse>,
}

impl Kinds {
    /// None yet.
    pub fn new(config: Config, pulse: Arc<Pulse>) -> Self {
        Self {
            breakers: Registry::new(MOST),
            any: AtomicBool::new(false),
            touched: AtomicU64::new(0),
            config,
            pulse,
        }
    }

    /// Asks for the right to one attempt of a kind; `None` if the kind has no breaker.
    #[inline]
    pub fn try_acquire(&self, work: Work, now: Time) -> Result<Option<OwnedPermit>, Rejected> {
        if !self.any.load(Ordering::Relaxed) {
            return Ok(None);
        }
        match self.breakers.get(&work.fingerprint()) {
            Some(breaker) => breaker.try_acquire_owned(work, now).map(Some),
            None => Ok(None),
        }
    }

    /// Whether a kind is refused now, without taking a permit.
    pub fn check(&self, work: Work, now: Time) -> Result<(), Rejected> {
        // The permit is dropped at once: it says nothing, and a probe is free again.
        self.try_acquire(work, now).map(drop)
    }

    /// A kind without a breaker timed out: from now on it has one.
    pub fn timed_out(&self, work: Work, now: Time, listener: impl FnOnce() -> Arc<dyn Listener>) {
        if let Some(breaker) = self.breaker(work.fingerprint(), now, listener)
            && let Ok(permit) = breaker.try_acquire_owned(work, now)
        {
            permit.record(shardgate_breaker::Outcome::Timeout, now);
        }
    }

    /// The shard's breaker blames a kind.
    pub fn blame(&self, fingerprint: u64, now: Time, listener: impl FnOnce() -> Arc<dyn Listener>) {
        if let Some(breaker) = self.breaker(fingerprint, now, listener) {
            breaker.trip(Reason::Attributed, now);
        }
    }

    /// Another primary: what was learned of a kind on the old one no longer counts.
    pub fn renew(&self, now: Time) {
        for (_, breaker) in self.breakers.all() {
            breaker.renew(now);
        }
    }

    /// All of them, as they are now.
    pub fn all(&self) -> Vec<(u64, Arc<Breaker>)> {
        self.breakers.all()
    }

    /// Looks at what time tells, and forgets those that say nothing any more.
    pub fn tick(&self, now: Time) {
        if !self.any.load(Ordering::Relaxed) {
            return;
        }
        self.breakers.tick(now);
        let touched = Time::from_nanos(self.touched.load(Ordering::Relaxed));
        if now.since(touched) >= FORGET {
            self.breakers.sweep(now);
            if self.breakers.is_empty() {
                self.any.store(false, Ordering::SeqCst);
                // Somebody may have brought one in between.
                if !self.breakers.is_empty() {
                    self.any.store(true, Ordering::SeqCst);
                }
            }
        }
    }

    fn breaker(
        &self,
        fingerprint: u64,
        now: Time,
        listener: impl FnOnce() -> Arc<dyn Listener>,
    ) -> Option<Arc<Breaker>> {
        self.touched.store(now.as_nanos(), Ordering::Relaxed);
        if let Some(known) = self.breakers.get(&fingerprint) {
            return Some(known);
        }
        let seed = fingerprint ^ now.as_nanos();
        let fresh = Breaker::new(self.config.clone(), seed, listener()).ok()?;
        let fresh = fresh.with_pulse(Arc::clone(&self.pulse));
        let kept = self.breakers.get_or_insert(&fingerprint, now, || fresh).ok();
        self.any.store(true, Ordering::Relaxed);
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shardgate_breaker::State;

    fn quiet() -> Arc<dyn Listener> {
        Arc::new(())
    }

    #[test]
    fn a_kind_has_no_breaker_until_it_is_blamed() {
        let kinds = Kinds::new(Config::fingerprint(), Arc::default());
        let (now, work) = (Time::from_nanos(1), Work::statement(7));
        assert!(kinds.try_acquire(work, now).unwrap().is_none());
        kinds.blame(7, now, quiet);
        assert!(kinds.try_acquire(work, now).is_err());
        assert!(kinds.try_acquire(Work::statement(8), now).unwrap().is_none());
    }

    #[test]
    fn a_kind_that_times_out_three_times_in_a_row_is_cut_alone() {
        let kinds = Kinds::new(Config::fingerprint(), Arc::default());
        let (now, work) = (Time::from_nanos(1), Work::statement(7));
        for _ in 0..3 {
            assert!(kinds.check(work, now).is_ok());
            kinds.timed_out(work, now, quiet);
        }
        assert!(kinds.check(work, now).is_err());
        assert_eq!(kinds.all()[0].1.state(now), State::Open);
        assert!(
            kinds.check(work, now.after(Duration::from_secs(3))).is_ok(),
            "a probe is due"
        );
        assert!(
            kinds.check(work, now.after(Duration::from_secs(3))).is_ok(),
            "and was given back"
        );
    }
    /// Statements that a frozen primary never answered were refused on the one that took its place, too.
    #[test]
    fn another_primary_is_asked_at_once() {
        let kinds = Kinds::new(Config::fingerprint(), Arc::default());
        let (now, work) = (Time::from_nanos(1), Work::statement(7));
        let late = |kinds: &Kinds| kinds.timed_out(work, now, quiet);
        for _ in 0..2 {
            late(&kinds);
        }
        let sent = kinds.try_acquire(work, now).unwrap().unwrap();
        late(&kinds);
        assert!(kinds.check(work, now).is_err());
        kinds.renew(now);
        assert!(kinds.check(work, now).is_ok());
        sent.record(shardgate_breaker::Outcome::Timeout, now);
        assert!(kinds.check(work, now).is_ok(), "of the old one");
    }
}
