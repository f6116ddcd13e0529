//! Events in a row.

use crate::sync::{AtomicU64, Ordering};

/// How many in a row, of one generation: generation in the high half, count in the low.
#[derive(Debug)]
pub(crate) struct Streak(AtomicU64);

impl Streak {
    pub(crate) fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// One more; tells how many it is now. A generation that is over counts nothing.
    pub(crate) fn add(&self, generation: u32) -> u32 {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (of, count) = split(seen);
            let count = if of == generation {
                count.saturating_add(1)
            } else if is_before(of, generation) {
                1
            } else {
                return 0;
            };
            let next = u64::from(generation) << 32 | u64::from(count);
            match self
                .0
                .compare_exchange_weak(seen, next, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return count,
                Err(current) => seen = current,
            }
        }
    }

    /// Broken: tells whether there was a streak. Writes nothing if there was none, which is every success of a healthy
    /// tablet.
    #[inline]
    pub(crate) fn end(&self, generation: u32) -> bool {
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let (of, count) = split(seen);
            if count == 0 || of != generation {
                return false;
            }
            match self.0.compare_exchange_weak(
                seen,
                u64::from(generation) << 32,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(current) => seen = current,
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn get(&self, generation: u32) -> u32 {
        match split(self.0.load(Ordering::Relaxed)) {
            (of, count) if of == generation => count,
            _ => 0,
        }
    }
}

#[inline]
const fn split(bits: u64) -> (u32, u32) {
    ((bits >> 32) as u32, bits as u32)
}

/// Generations wrap; "before" is the shorter way round.
const fn is_before(earlier: u32, later: u32) -> bool {
    let distance = later.wrapping_sub(earlier);
    distance != 0 && distance < 1 << 31
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_streak_belongs_to_its_generation() {
        let streak = Streak::new();
        assert_eq!((streak.add(1), streak.add(1)), (1, 2));
        assert_eq!(streak.add(2), 1, "a new generation starts at zero");
        assert_eq!(streak.add(1), 0, "an old one adds nothing");
        assert!(!streak.end(1), "nor does it break the new one");
        assert_eq!(streak.get(2), 1);
        assert!(streak.end(2));
        assert!(!streak.end(2));
    }

    #[test]
    fn generations_wrap() {
        let streak = Streak::new();
        streak.add(u32::MAX / 3);
        streak.add(u32::MAX / 3 * 2);
        streak.add(u32::MAX);
        assert_eq!(streak.add(0), 1);
        assert_eq!(streak.add(u32::MAX), 0);
    }
}
