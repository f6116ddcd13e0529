//! How many replicas of one shard may be out at once.
//!
//! When all replicas look bad at the same time the cause is rarely the replicas, and sending everything to the last
//! one finishes it off. Members and those out are one word, so that two that trip at once cannot both be the last.

use crate::sync::{AtomicU64, Ordering};

/// The cap, shared by the breakers of a shard's replicas.
#[derive(Debug)]
pub struct EjectionCap {
    /// Members in the high half, those out in the low.
    counts: AtomicU64,
    percent: u32,
}

impl EjectionCap {
    /// At most this share of the members may be out for errors or latency; rounded down, so that a sole replica stays.
    #[must_use]
    pub fn new(percent: u32) -> Self {
        Self {
            counts: AtomicU64::new(0),
            percent: percent.min(100),
        }
    }

    /// Members.
    #[must_use]
    pub fn members(&self) -> u32 {
        (self.counts.load(Ordering::Relaxed) >> 32) as u32
    }

    /// Members that are out, for whatever reason.
    #[must_use]
    pub fn out(&self) -> u32 {
        self.counts.load(Ordering::Relaxed) as u32
    }

    pub(crate) fn join(&self) {
        self.counts.fetch_add(1 << 32, Ordering::Relaxed);
    }

    pub(crate) fn leave(&self) {
        self.counts.fetch_sub(1 << 32, Ordering::Relaxed);
    }

    /// Out, if the cap allows one more. Those out for lag or health count too: they carry no load either.
    pub(crate) fn reserve(&self) -> bool {
        let mut seen = self.counts.load(Ordering::Relaxed);
        loop {
            let (members, out) = (seen >> 32, seen & 0xffff_ffff);
            if (out + 1) * 100 > members * u64::from(self.percent) {
                return false;
            }
            match self
                .counts
                .compare_exchange_weak(seen, seen + 1, Ordering::Relaxed, Ordering::Relaxed)
            {
                Ok(_) => return true,
                Err(current) => seen = current,
            }
        }
    }

    /// Out, whatever the cap says.
    pub(crate) fn force(&self) {
        self.counts.fetch_add(1, Ordering::Relaxed);
    }

    /// In again.
    pub(crate) fn release(&self) {
        self.counts.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn half_of_the_members_may_be_out_rounded_down() {
        for (members, may) in [(1, 0), (2, 1), (3, 1), (4, 2), (5, 2), (10, 5)] {
            let cap = EjectionCap::new(50);
            (0..members).for_each(|_| cap.join());
            assert_eq!((0..members).filter(|_| cap.reserve()).count(), may, "{members}");
        }
    }

    #[test]
    fn those_out_for_lag_use_up_the_cap_but_are_not_bound_by_it() {
        let cap = EjectionCap::new(50);
        (0..4).for_each(|_| cap.join());
        (0..3).for_each(|_| cap.force());
        assert!(!cap.reserve());
        (0..2).for_each(|_| cap.release());
        assert!(cap.reserve());
        assert_eq!((cap.members(), cap.out()), (4, 2));
    }
}
