//! Whether the program itself was running.

use std::time::Duration;

use crate::Time;
use crate::sync::{AtomicU64, Ordering};

/// Beats for as long as the program runs. Where beats are missing it stood still: its machine was moved or had no processor
/// for it. What was under way then is late, and that says nothing of a tablet.
///
/// One pulse is shared by all breakers of a program: they would all blame their tablets at once.
#[derive(Debug)]
pub struct Pulse {
    last: AtomicU64,
    /// The last beat that came late, and how long after the one before.
    resumed: AtomicU64,
    gap: AtomicU64,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            last: AtomicU64::new(0),
            resumed: AtomicU64::new(0),
            gap: AtomicU64::new(0),
        }
    }
}

impl Pulse {
    /// How often it is to beat.
    pub const BEAT: Duration = Duration::from_millis(100);
    /// A beat that comes later than so long after the one before tells of a standstill.
    pub const LATE: Duration = Duration::from_millis(300);
    /// How long a tablet must have had to answer, behind a standstill too, before a timeout is held against it.
    pub const FAIR_CHANCE: Duration = Duration::from_millis(250);

    /// One beat: call it each [`Self::BEAT`], before [`Breaker::tick`](crate::Breaker::tick). If it comes late, how long the
    /// program may have stood still.
    pub fn beat(&self, now: Time) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed);
        let gap = now.since(Time::from_nanos(last));
        let late = last != 0 && gap > Self::LATE;
        if late {
            self.gap
                .store(now.as_nanos().saturating_sub(last), Ordering::Relaxed);
            // Whoever sees the end of a standstill sees its length.
            self.resumed.store(now.as_nanos(), Ordering::Release);
        }
        // Whoever sees this beat sees the standstill before it.
        self.last.store(now.as_nanos().max(1), Ordering::Release);
        late.then_some(gap)
    }

    /// When it last began to beat again.
    #[must_use]
    pub fn resumed(&self) -> Time {
        Time::from_nanos(self.resumed.load(Ordering::Acquire))
    }

    /// How much of the time since then the program may have stood still; `None` while it does, or has only just resumed
    /// without a beat. A pulse that never beat never stands still.
    #[must_use]
    pub fn still_since(&self, since: Time, now: Time) -> Option<Duration> {
        let last = self.last.load(Ordering::Acquire);
        if last != 0 && now.since(Time::from_nanos(last)) > Self::LATE {
            return None;
        }
        Some(if since < self.resumed() {
            Duration::from_nanos(self.gap.load(Ordering::Relaxed))
        } else {
            Duration::ZERO
        })
    }

    /// Whether a standstill left what began then less than a `fair` chance to end by now: it is not over, or was over for
    /// less than that.
    #[must_use]
    pub fn cut_short(&self, since: Time, fair: Duration, now: Time) -> bool {
        match self.still_since(since, now) {
            None => true,
            Some(still) => !still.is_zero() && now.since(self.resumed()) < fair,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const FAIR: Duration = Pulse::FAIR_CHANCE;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn what_began_before_a_standstill_has_a_fair_chance_behind_it() {
        let pulse = Pulse::default();
        assert!(!pulse.cut_short(at(0), FAIR, at(9000)));
        for ms in [1000, 1100, 1250, 1350] {
            assert_eq!(pulse.beat(at(ms)), None);
        }
        assert_eq!(pulse.still_since(at(900), at(1600)), Some(Duration::ZERO));
        // Nobody has noticed yet.
        assert!(pulse.cut_short(at(1340), FAIR, at(1651)));
        assert_eq!(pulse.beat(at(2900)), Some(Duration::from_millis(1550)));
        pulse.beat(at(3000));
        assert!(pulse.cut_short(at(1340), FAIR, at(3010)));
        assert_eq!(
            pulse.still_since(at(1340), at(3010)),
            Some(Duration::from_millis(1550))
        );
        // It has run long enough since.
        pulse.beat(at(3100));
        assert!(!pulse.cut_short(at(1340), FAIR, at(3150)));
        assert!(!pulse.cut_short(at(2900), FAIR, at(3010)), "began behind it");
    }
}
