//! Attempts in flight: since when, and of which kind.
//!
//! A fixed table, one part a stripe. An attempt takes a free slot of its thread's part and whichever thread it ends on
//! gives it back by one store; only `tick` reads all of it. Where one thread alone takes slots, a slot it sees free stays
//! free until it takes it.

use super::tail::Tally;
use crate::Time;
use crate::sync::{AtomicU64, Ordering, Writer};

/// An attempt that found no slot: it is not tracked.
pub(crate) const NONE: u32 = u32::MAX;
/// Kinds of statement told apart in one look; further ones count as nameless, which blames nobody wrongly.
const KINDS: usize = 32;

#[derive(Debug)]
struct Slot {
    /// When it started, or last progressed; 0 while the slot is free.
    since: AtomicU64,
    fingerprint: AtomicU64,
}

/// The slots of one stripe.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Box<[Slot]>,
    /// Slots in use by the table; the rest keep the next allocation off the last slot's cache line.
    len: usize,
}

const PADDING: usize = if cfg!(loom) { 0 } else { 8 };

/// What is in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Busy {
    pub(crate) count: u32,
    /// The moment the one that has waited longest started or last progressed.
    pub(crate) oldest: Option<Time>,
    pub(crate) tally: Tally,
}

impl Slots {
    pub(crate) fn new(len: usize) -> Self {
        let slot = |_| Slot {
            since: AtomicU64::new(0),
            fingerprint: AtomicU64::new(0),
        };
        Self {
            slots: (0..len + PADDING).map(slot).collect(),
            len,
        }
    }

    /// Takes a free slot.
    #[inline]
    pub(crate) fn take(&self, writer: Writer, fingerprint: u64, now: Time) -> Option<u32> {
        let since = now.as_nanos().max(1);
        for (i, slot) in self.table().iter().enumerate() {
            if slot.since.load(Ordering::Acquire) != 0 {
                continue;
            }
            let taken = match writer {
                Writer::Sole => {
                    slot.since.store(since, Ordering::Relaxed);
                    true
                }
                Writer::Shared => slot
                    .since
                    .compare_exchange(0, since, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok(),
            };
            if taken {
                slot.fingerprint.store(fingerprint, Ordering::Relaxed);
                return Some(i as u32);
            }
        }
        None
    }

    /// The attempt progressed: it is as good as one that starts now.
    pub(crate) fn touch(&self, slot: u32, now: Time) {
        if let Some(slot) = self.table().get(slot as usize) {
            slot.since.store(now.as_nanos().max(1), Ordering::Relaxed);
        }
    }

    /// Gives a slot back; only its holder may.
    #[inline]
    pub(crate) fn give_back(&self, slot: u32) {
        if let Some(slot) = self.table().get(slot as usize) {
            slot.since.store(0, Ordering::Release);
        }
    }

    #[inline]
    fn table(&self) -> &[Slot] {
        self.slots.get(..self.len).unwrap_or_default()
    }

    pub(crate) fn in_use(&self) -> u32 {
        let busy = |s: &&Slot| s.since.load(Ordering::Relaxed) != 0;
        self.table().iter().filter(busy).count() as u32
    }
}

/// Looks at all stripes' slots, without the kinds for which `skip` holds. No allocation: `tick` runs for every tablet.
pub(crate) fn survey<'a>(stripes: impl Iterator<Item = &'a Slots>, skip: impl Fn(u64) -> bool) -> Busy {
    let mut busy = Busy::default();
    let mut kinds = [(0u64, 0u64); KINDS];
    let mut nameless = 0;
    for slot in stripes.flat_map(|s| s.table().iter()) {
        let since = slot.since.load(Ordering::Relaxed);
        let fingerprint = slot.fingerprint.load(Ordering::Relaxed);
        if since == 0 || skip(fingerprint) {
            continue;
        }
        busy.count += 1;
        let since = Time::from_nanos(since);
        busy.oldest = Some(busy.oldest.map_or(since, |oldest| oldest.min(since)));
        let place = (fingerprint != 0)
            .then(|| kinds.iter_mut().find(|(f, _)| *f == fingerprint || *f == 0))
            .flatten();
        match place {
            Some(place) => *place = (fingerprint, place.1 + 1),
            None => nameless += 1,
        }
    }
    for (fingerprint, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
        busy.tally.note(fingerprint, count);
    }
    if nameless > 0 {
        busy.tally.note(0, nameless);
    }
    busy
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn slots_are_taken_once_and_reused() {
        let slots = Slots::new(2);
        let (a, b) = (
            slots.take(Writer::Shared, 1, Time::ZERO).unwrap(),
            slots.take(Writer::Shared, 2, Time::ZERO).unwrap(),
        );
        assert_ne!(a, b);
        assert_eq!(slots.take(Writer::Shared, 3, Time::ZERO), None);
        slots.give_back(a);
        assert_eq!(slots.take(Writer::Shared, 3, Time::ZERO), Some(a));
        assert_eq!(slots.in_use(), 2);
    }

    #[test]
    fn a_survey_names_the_oldest_and_the_most_frequent() {
        let slots = [Slots::new(4), Slots::new(4)];
        let at = Time::from_nanos;
        slots[0].take(Writer::Shared, 7, at(50));
        slots[1].take(Writer::Shared, 7, at(30));
        let touched = slots[1].take(Writer::Shared, 8, at(10)).unwrap();
        slots[1].touch(touched, at(60));
        slots[1].take(Writer::Shared, 0, at(90));
        let busy = survey(slots.iter(), |_| false);
        assert_eq!((busy.count, busy.oldest), (4, Some(at(30))));
        assert_eq!(
            (busy.tally.top, busy.tally.top_count, busy.tally.distinct),
            (7, 2, 3)
        );
        assert_eq!(survey(slots.iter(), |f| f == 7).count, 2);
    }
}
