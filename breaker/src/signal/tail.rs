//! Which kinds of statement a tail is made of.
//!
//! A table of sixteen fingerprints with counts. When it is full the least counted makes room and its count passes on
//! (the "space saving" algorithm of Metwally, Agrawal, El Abbadi, 2005), so a fingerprint with the majority is always in
//! it. Only slow and failed attempts write here.

use crate::Time;
use crate::config::Blame;
use crate::sync::{AtomicU64, Ordering};

const ENTRIES: usize = if cfg!(loom) { 2 } else { 16 };

/// What is known of the tail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Attempts.
    pub(crate) total: u64,
    /// Distinct fingerprints; each attempt that has none, such as a connection attempt, counts as one.
    pub(crate) distinct: u64,
    /// The most frequent fingerprint.
    pub(crate) top: u64,
    /// Its attempts.
    pub(crate) top_count: u64,
}

/// Whose fault it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too few kinds are slow to tell.
    Unclear,
    /// One kind of statement: its fingerprint, and its share in percent.
    Fingerprint(u64, u32),
    /// The tablet.
    Tablet,
}

impl Tally {
    pub(crate) fn note(&mut self, fingerprint: u64, count: u64) {
        self.total += count;
        if fingerprint == 0 {
            self.distinct += count;
            return;
        }
        self.distinct += 1;
        if count > self.top_count {
            self.top = fingerprint;
            self.top_count = count;
        }
    }

    /// The fingerprint that has more than the share of this tail.
    pub(crate) fn majority(&self, blame: &Blame) -> Option<(u64, u32)> {
        let percent = (self.top_count * 100).checked_div(self.total)?;
        let over = self.top_count * 100 > self.total * u64::from(blame.percent);
        (over && self.top != 0).then_some((self.top, percent as u32))
    }

    /// The rule of distinct fingerprints, after attribution.
    pub(crate) fn verdict(&self, blame: &Blame) -> Verdict {
        if blame.fingerprints == 0 {
            return Verdict::Tablet;
        }
        if let Some((fingerprint, percent)) = self.majority(blame) {
            return Verdict::Fingerprint(fingerprint, percent);
        }
        if self.distinct >= u64::from(blame.fingerprints) {
            Verdict::Tablet
        } else {
            Verdict::Unclear
        }
    }
}

#[derive(Debug)]
struct Entry {
    fingerprint: AtomicU64,
    /// Epoch in the high half, count in the low.
    count: AtomicU64,
    seen: AtomicU64,
}

/// The table. An epoch is whatever the counts are to be of: a streak, a generation, a latency window.
#[derive(Debug)]
pub(crate) struct Tail {
    entries: Box<[Entry]>,
    nameless: AtomicU64,
    nameless_seen: AtomicU64,
}

impl Tail {
    pub(crate) fn new() -> Self {
        let entry = |_| Entry {
            fingerprint: AtomicU64::new(0),
            count: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        };
        Self {
            entries: (0..ENTRIES).map(entry).collect(),
            nameless: AtomicU64::new(0),
            nameless_seen: AtomicU64::new(0),
        }
    }

    /// One slow attempt. Two threads that evict at once may lose one count between them; a share moves by that little.
    pub(crate) fn add(&self, fingerprint: u64, epoch: u32, now: Time) {
        if fingerprint == 0 {
            count_up(&self.nameless, epoch);
            self.nameless_seen.store(now.as_nanos(), Ordering::Relaxed);
            return;
        }
        let known = |e: &&Entry| e.fingerprint.load(Ordering::Relaxed) == fingerprint;
        let Some(entry) = self
            .entries
            .iter()
            .find(known)
            .or_else(|| self.evict(fingerprint, epoch))
        else {
            return;
        };
        count_up(&entry.count, epoch);
        entry.seen.store(now.as_nanos(), Ordering::Relaxed);
    }

    fn evict(&self, fingerprint: u64, epoch: u32) -> Option<&Entry> {
        let entry = self
            .entries
            .iter()
            .min_by_key(|e| count_of(e.count.load(Ordering::Relaxed), epoch))?;
        entry.fingerprint.store(fingerprint, Ordering::Relaxed);
        Some(entry)
    }

    /// The tail of an epoch, of attempts seen no earlier than `since`, without those for whom `skip` holds.
    pub(crate) fn tally(&self, epoch: u32, since: Time, skip: impl Fn(u64) -> bool) -> Tally {
        let mut tally = Tally::default();
        let recent = |seen: &AtomicU64| seen.load(Ordering::Relaxed) >= since.as_nanos();
        for entry in &self.entries {
            let fingerprint = entry.fingerprint.load(Ordering::Relaxed);
            let count = count_of(entry.count.load(Ordering::Relaxed), epoch);
            if fingerprint != 0 && count > 0 && recent(&entry.seen) && !skip(fingerprint) {
                tally.note(fingerprint, count);
            }
        }
        let nameless = count_of(self.nameless.load(Ordering::Relaxed), epoch);
        if nameless > 0 && recent(&self.nameless_seen) {
            tally.note(0, nameless);
        }
        tally
    }
}

fn count_of(bits: u64, epoch: u32) -> u64 {
    if bits >> 32 == u64::from(epoch) {
        bits & 0xffff_ffff
    } else {
        0
    }
}

fn count_up(cell: &AtomicU64, epoch: u32) {
    let mut seen = cell.load(Ordering::Relaxed);
    loop {
        let count = (count_of(seen, epoch) + 1).min(0xffff_ffff);
        let next = u64::from(epoch) << 32 | count;
        match cell.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(current) => seen = current,
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::time::Duration;

    const BLAME: Blame = Blame {
        fingerprints: 3,
        percent: 50,
        hold: Duration::from_secs(10),
    };

    fn verdict(fingerprints: &[u64]) -> Verdict {
        let tail = Tail::new();
        for f in fingerprints {
            tail.add(*f, 1, Time::ZERO);
        }
        tail.tally(1, Time::ZERO, |_| false).verdict(&BLAME)
    }

    #[test]
    fn blame_follows_the_rule() {
        for (fingerprints, expected) in [
            (&[][..], Verdict::Unclear),
            (&[1, 1, 1], Verdict::Fingerprint(1, 100)),
            (&[1, 2], Verdict::Unclear),
            (&[1, 1, 2, 2], Verdict::Unclear),
            (&[1, 2, 3], Verdict::Tablet),
            (&[1, 1, 2, 3], Verdict::Tablet), // a half is not over half
            (&[1, 1, 1, 2, 3], Verdict::Fingerprint(1, 60)),
            (&[0, 0, 0], Verdict::Tablet), // connection attempts are exempt
            (&[0, 0, 1], Verdict::Tablet),
        ] {
            assert_eq!(verdict(fingerprints), expected, "{fingerprints:?}");
        }
    }

    #[test]
    fn a_majority_is_found_among_more_kinds_than_the_table_holds() {
        let tail = Tail::new();
        for i in 0..1000u64 {
            tail.add(7, 1, Time::ZERO);
            if i % 2 == 0 {
                tail.add(100 + i, 1, Time::ZERO);
            }
        }
        let (fingerprint, percent) = tail.tally(1, Time::ZERO, |_| false).majority(&BLAME).unwrap();
        assert_eq!(fingerprint, 7);
        assert!((60..=70).contains(&percent), "{percent}");
    }

    #[test]
    fn another_epoch_and_an_older_moment_do_not_count() {
        let tail = Tail::new();
        tail.add(1, 1, Time::from_nanos(10));
        tail.add(2, 1, Time::from_nanos(20));
        assert_eq!(tail.tally(2, Time::ZERO, |_| false).total, 0);
        assert_eq!(tail.tally(1, Time::from_nanos(15), |_| false).top, 2);
        assert_eq!(tail.tally(1, Time::ZERO, |f| f == 2).top, 1);
    }
}
