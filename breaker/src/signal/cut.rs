//! Fingerprints that were blamed lately. What they do is their own breaker's business.

use crate::Time;
use crate::sync::{AtomicU64, Ordering};

const ENTRIES: usize = if cfg!(loom) { 1 } else { 8 };

/// The fingerprints blamed lately, at most eight; a further one displaces the one whose time is over first.
#[derive(Debug)]
pub(crate) struct Cut {
    entries: [(AtomicU64, AtomicU64); ENTRIES],
    /// When the last of them is forgotten: one load tells every attempt of a healthy tablet that there are none.
    until: AtomicU64,
}

impl Cut {
    pub(crate) fn new() -> Self {
        Self {
            entries: std::array::from_fn(|_| (AtomicU64::new(0), AtomicU64::new(0))),
            until: AtomicU64::new(0),
        }
    }

    pub(crate) fn add(&self, fingerprint: u64, until: Time) {
        let same = |(f, _): &&(AtomicU64, AtomicU64)| f.load(Ordering::Relaxed) == fingerprint;
        let first_over = || self.entries.iter().min_by_key(|(_, u)| u.load(Ordering::Relaxed));
        if let Some((entry, over)) = self.entries.iter().find(same).or_else(first_over) {
            entry.store(fingerprint, Ordering::Relaxed);
            over.store(until.as_nanos(), Ordering::Relaxed);
            self.until.fetch_max(until.as_nanos(), Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn has(&self, fingerprint: u64, now: Time) -> bool {
        if now.as_nanos() >= self.until.load(Ordering::Relaxed) || fingerprint == 0 {
            return false;
        }
        self.entries.iter().any(|(f, until)| {
            f.load(Ordering::Relaxed) == fingerprint && now.as_nanos() < until.load(Ordering::Relaxed)
        })
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn a_cut_is_forgotten_in_time_and_room_is_made() {
        let cut = Cut::new();
        let at = Time::from_nanos;
        cut.add(1, at(10));
        assert!(cut.has(1, at(9)) && !cut.has(1, at(10)) && !cut.has(2, at(5)) && !cut.has(0, at(5)));
        for f in 2..=9 {
            cut.add(f, at(100));
        }
        assert!(!cut.has(1, at(5)) && (2..=9).all(|f| cut.has(f, at(50))));
    }
}
