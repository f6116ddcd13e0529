//! Whether the program itself was running.

use std::time::Duration;

use crate::Time;
use crate::sync::{AtomicU64, Ordering};

/// Beats for as long as the program runs. Where a beat is missing it stood still: its machine was moved or had no processor
/// for it. What was under way then is late, and that says nothing of a tablet.
///
/// One pulse is shared by all breakers of a program: they would all blame their tablets at once.
#[derive(Debug)]
pub struct Pulse {
    last: AtomicU64,
    /// The last beat that came late.
    resumed: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            last: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
        }
    }
}

impl Pulse {
    /// A beat is due every 100 ms; one that comes so long after the one before is late.
    pub const LATE: Duration = Duration::from_millis(300);

    /// One beat. Call it every 100 ms, before [`Breaker::tick`](crate::Breaker::tick).
    pub fn beat(&self, now: Time) {
        let now_nanos = now.as_nanos().max(1);
        let last = self.last.swap(now_nanos, Ordering::Relaxed);
        if last != 0 && now.since(Time::from_nanos(last)) > Self::LATE {
            self.resumed.store(now_nanos, Ordering::Relaxed);
        }
    }

    /// When it last began to beat again.
    #[must_use]
    pub fn resumed(&self) -> Time {
        Time::from_nanos(self.resumed.load(Ordering::Relaxed))
    }

    /// Whether a beat was missing between then and now, or is now. A pulse that never beat misses none.
    #[must_use]
    pub fn missed_since(&self, since: Time, now: Time) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        last != 0 && (since < self.resumed() || now.since(Time::from_nanos(last)) > Self::LATE)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_began_before_a_missing_beat_ended_late_for_that() {
        let pulse = Pulse::default();
        assert!(!pulse.missed_since(at(0), at(9000)));
        for ms in [1000, 1100, 1250, 1350] {
            pulse.beat(at(ms));
        }
        assert!(!pulse.missed_since(at(900), at(1600)));
        // Nobody has noticed yet.
        assert!(pulse.missed_since(at(1340), at(1651)));
        pulse.beat(at(2900));
        assert_eq!(pulse.resumed(), at(2900));
        pulse.beat(at(3000));
        assert!(pulse.missed_since(at(1340), at(3010)));
        assert!(!pulse.missed_since(at(2900), at(3010)));
    }
}
