//! Counts in a sliding window.
//!
//! The window is a ring of buckets. Each bucket is one word: which slice of time and which generation it counts for,
//! and how many. Nobody sweeps old buckets: whoever writes one that speaks of another slice starts it anew, and whoever
//! sums ignores it. So the count is right after any idle time and at any edge: an event counts in the bucket of its own
//! moment and in the following ones up to the window's length, whenever somebody looks.

use std::time::Duration;

use crate::sync::{AtomicU64, Ordering, Writer};
use crate::time::nanos;
use crate::{Config, Time};

/// How finely the shortest window slides.
const STEPS: u64 = 50;
const COUNT_BITS: u32 = 24;
const COUNT_MAX: u64 = (1 << COUNT_BITS) - 1;
/// A cache line's worth of words at the end, so that two rings never share one.
const PADDING: usize = 16;

/// Division by a number that is known once, by one multiplication: a division is a third of an attempt's whole cost.
///
/// Granlund and Montgomery, "Division by invariant integers using multiplication" (1994), for numbers of 63 bits.
#[derive(Clone, Copy, Debug)]
struct Divisor {
    by: u64,
    multiplier: u128,
    shift: u32,
}

impl Divisor {
    fn new(by: u64) -> Self {
        let by = by.clamp(1, 1 << 62);
        let shift = 63 + by.next_power_of_two().ilog2();
        Self {
            by,
            multiplier: (1u128 << shift) / u128::from(by) + 1,
            shift,
        }
    }

    #[inline]
    fn divide(self, number: u64) -> u64 {
        if number >> 63 == 0 {
            ((u128::from(number) * self.multiplier) >> self.shift) as u64
        } else {
            number / self.by
        }
    }
}

/// Width and number of the buckets, shared by all rings of one breaker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    width: Divisor,
    len: u64,
}

impl Shape {
    pub(crate) fn of(config: &Config) -> Self {
        let width = (nanos(config.shortest_window()) / STEPS).max(1);
        let len = nanos(config.longest_window()).div_ceil(width);
        Self::new(width, len)
    }

    fn new(width: u64, len: u64) -> Self {
        Self {
            width: Divisor::new(width),
            len,
        }
    }

    /// For one window of this length.
    pub(crate) fn over(window: Duration) -> Self {
        let width = (nanos(window) / STEPS).max(1);
        Self::new(width, STEPS)
    }

    #[cfg(any(test, loom))]
    pub(crate) fn exactly(width: u64, len: u64) -> Self {
        Self::new(width, len)
    }

    #[inline]
    fn slice(&self, now: Time) -> u64 {
        self.width.divide(now.as_nanos())
    }

    /// The buckets a window of this length spans, counting the current one.
    pub(crate) fn buckets(&self, window: Duration) -> u64 {
        self.width.divide(nanos(window)).clamp(1, self.len.max(1))
    }
}

/// One ring of buckets.
#[derive(Debug)]
pub(crate) struct Ring {
    cells: Box<[AtomicU64]>,
    /// One less than the number of buckets, which is a power of two no less than the window's.
    mask: u64,
    shape: Shape,
}

impl Ring {
    pub(crate) fn new(shape: Shape) -> Self {
        let words = match usize::try_from(shape.len) {
            Ok(0) | Err(_) => 0,
            Ok(len) if cfg!(loom) => len.next_power_of_two(),
            Ok(len) => len.next_power_of_two() + PADDING,
        };
        Self {
            cells: (0..words)
                .map(|_| AtomicU64::new(u64::MAX << COUNT_BITS))
                .collect(),
            mask: shape.len.next_power_of_two() - 1,
            shape,
        }
    }

    /// Counts one event.
    #[inline]
    pub(crate) fn add(&self, generation: u32, now: Time) {
        self.add_as(Writer::Shared, generation, now);
    }

    /// Counts one event, on a stripe's ring.
    #[inline]
    pub(crate) fn add_as(&self, writer: Writer, generation: u32, now: Time) {
        let slice = self.shape.slice(now);
        let Some(cell) = self.cell(slice) else { return };
        let tag = tag(generation, slice);
        let mut seen = cell.load(Ordering::Relaxed);
        loop {
            let next = if seen >> COUNT_BITS == tag {
                if seen & COUNT_MAX == COUNT_MAX {
                    return;
                }
                seen + 1
            } else if Self::is_newer(seen, generation, slice) {
                // The clock of this thread is behind a whole window, or its generation is over: too late to count.
                return;
            } else {
                tag << COUNT_BITS | 1
            };
            if writer == Writer::Sole {
                return cell.store(next, Ordering::Relaxed);
            }
            match cell.compare_exchange_weak(seen, next, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(current) => seen = current,
            }
        }
    }

    /// Takes one event back, if its bucket still counts it.
    pub(crate) fn take_back(&self, generation: u32, now: Time) {
        let slice = self.shape.slice(now);
        let Some(cell) = self.cell(slice) else { return };
        let mut seen = cell.load(Ordering::Relaxed);
        while seen >> COUNT_BITS == tag(generation, slice) && seen & COUNT_MAX > 0 {
            match cell.compare_exchange_weak(seen, seen - 1, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(current) => seen = current,
            }
        }
    }

    /// Counts the events of this generation in the last `buckets`, the current one among them.
    pub(crate) fn sum(&self, generation: u32, now: Time, buckets: u64) -> u64 {
        let current = self.shape.slice(now);
        let oldest = (current + 1).saturating_sub(buckets.min(self.shape.len));
        (oldest..=current)
            .filter_map(|slice| {
                let bits = self.cell(slice)?.load(Ordering::Relaxed);
                (bits >> COUNT_BITS == tag(generation, slice)).then_some(bits & COUNT_MAX)
            })
            .sum()
    }

    #[inline]
    fn cell(&self, slice: u64) -> Option<&AtomicU64> {
        self.cells.get((slice & self.mask) as usize)
    }

    /// Whether a bucket holds a later slice of time, or the same of a later generation.
    fn is_newer(bits: u64, generation: u32, slice: u64) -> bool {
        let of = bits >> COUNT_BITS;
        let slices = (of as u32).wrapping_sub(slice as u32);
        let generations = ((of >> 32) as u8).wrapping_sub(generation as u8);
        let fresh = bits & COUNT_MAX == 0;
        !fresh && (slices != 0 && slices < 1 << 31 || slices == 0 && generations != 0 && generations < 1 << 7)
    }
}

/// 8 bits of generation over 32 bits of time: 27 years of 200 ms slices before one could be taken for another.
#[inline]
const fn tag(generation: u32, slice: u64) -> u64 {
    (generation as u64 & 0xff) << 32 | slice & 0xffff_ffff
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WIDTH: u64 = 100;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    #[test]
    fn an_event_leaves_exactly_at_its_edge() {
        let ring = Ring::new(Shape::exactly(WIDTH, 5));
        ring.add(0, at(0));
        ring.add(0, at(99));
        ring.add(0, at(100));
        assert_eq!(ring.sum(0, at(499), 5), 3);
        assert_eq!(ring.sum(0, at(500), 5), 1);
        assert_eq!(ring.sum(0, at(599), 5), 1);
        assert_eq!(ring.sum(0, at(600), 5), 0);
    }

    #[test]
    fn a_long_idle_time_leaves_nothing_behind() {
        let ring = Ring::new(Shape::exactly(WIDTH, 5));
        ring.add(0, at(100));
        // Any whole number of turns later the same bucket is looked at.
        for turns in [1, 2, 1_000, 1_000_000_000] {
            let later = at(100 + turns * 5 * WIDTH);
            assert_eq!(ring.sum(0, later, 5), 0, "{turns} turns");
        }
        ring.add(0, at(100 + 1_000 * 5 * WIDTH));
        assert_eq!(ring.sum(0, at(100 + 1_000 * 5 * WIDTH), 5), 1);
    }

    #[test]
    fn a_late_thread_cannot_undo_what_was_counted_since() {
        let ring = Ring::new(Shape::exactly(WIDTH, 5));
        ring.add(0, at(700));
        ring.add(0, at(200));
        assert_eq!(ring.sum(0, at(700), 5), 1);
        ring.add(1, at(700));
        ring.add(0, at(700));
        assert_eq!(ring.sum(1, at(700), 5), 1);
    }

    #[test]
    fn no_window_counts_nothing() {
        let ring = Ring::new(Shape::exactly(1, 0));
        ring.add(0, at(5));
        assert_eq!(ring.sum(0, at(5), 1), 0);
    }

    proptest! {
        #[test]
        fn a_multiplication_divides_exactly(number: u64, by in prop_oneof![1u64..1000, 1u64..(1 << 62)], k: u64) {
            let divisor = Divisor::new(by);
            let edge = (k % (u64::MAX / by)) * by;
            for n in [number, number >> 20, edge, edge.saturating_sub(1), u64::MAX, 0] {
                prop_assert_eq!(divisor.divide(n), n / by);
            }
        }

        /// Against a list of moments: with clock jumps of any length forward.
        #[test]
        fn a_ring_counts_what_a_list_counts(
            steps in prop::collection::vec((prop_oneof![0u64..30, 0u64..300, 0u64..100_000], 0u8..8), 1..200),
            buckets in 1u64..8,
        ) {
            let ring = Ring::new(Shape::exactly(WIDTH, 7));
            let (mut now, mut generation) = (0u64, 0u32);
            let mut list: Vec<(u32, u64)> = Vec::new();
            for (jump, what) in steps {
                now += jump;
                if what == 0 {
                    generation += 1;
                } else {
                    ring.add(generation, at(now));
                    list.push((generation, now / WIDTH));
                }
                let span = buckets.min(7);
                let expected = list
                    .iter()
                    .filter(|(g, slice)| *g == generation && slice + span > now / WIDTH)
                    .count() as u64;
                prop_assert_eq!(ring.sum(generation, at(now), buckets), expected);
            }
        }
    }
}
