//! What the poller and the pool report: lag, health, a pool without room.

use std::time::Duration;

use crate::Time;
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Samples in a row of one kind. Written by one poller; atomics only so that others may look.
#[derive(Debug)]
pub(crate) struct Run(AtomicU32);

impl Run {
    pub(crate) fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// One more if the sample is of the kind, else none.
    pub(crate) fn sample(&self, is_one: bool) -> u32 {
        let count = if is_one { self.get().saturating_add(1) } else { 0 };
        self.0.store(count, Ordering::Relaxed);
        count
    }

    pub(crate) fn get(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Since when something holds without a break.
#[derive(Debug)]
pub(crate) struct Since(AtomicU64);

impl Since {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// It holds now.
    pub(crate) fn holds(&self, now: Time) {
        if self.0.load(Ordering::Relaxed) == 0 {
            let now = now.as_nanos().max(1);
            // Fails if another thread began it just now.
            let _ = self
                .0
                .compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// It does not hold. Writes nothing if it did not before.
    #[inline]
    pub(crate) fn ends(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// For how long it has held, if it does.
    pub(crate) fn span(&self, now: Time) -> Option<Duration> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            since => Some(now.since(Time::from_nanos(since))),
        }
    }
}
