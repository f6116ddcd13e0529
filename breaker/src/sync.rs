//! Atomics and stripes.
//!
//! `loom` replaces the atomics when it checks them. A stripe is a copy of what every attempt writes: threads that share
//! one cache line pay more for it than for the whole decision, so each thread writes its own. And who alone writes a
//! stripe needs no locked instruction to count: a load and a store do, and cost a fifth.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Whether others write the same stripe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writer {
    /// Nobody else: a load and a store count.
    Sole,
    /// Others may: only a compare-and-swap counts.
    Shared,
}

/// The calling thread's stripe of so many. The last one is for all threads that have none of their own.
#[inline]
pub(crate) fn seat(stripes: usize) -> (usize, Writer) {
    let last = stripes.saturating_sub(1);
    let number = thread_number();
    if number < last {
        (number, Writer::Sole)
    } else {
        (last, Writer::Shared)
    }
}

/// A number that no other thread has while this one lives; the lowest that is free.
///
/// The numbers are the crate's one piece of process-wide state: they decide nothing, they only seat threads.
#[cfg(not(loom))]
#[inline]
fn thread_number() -> usize {
    thread_local! {
        static MINE: numbers::Number = numbers::Number::take();
    }
    // A thread that is torn down has given its number back: it shares.
    MINE.try_with(|n| n.0).unwrap_or(usize::MAX)
}

/// Under `loom` all share: what one thread does alone has no interleavings.
#[cfg(loom)]
fn thread_number() -> usize {
    usize::MAX
}

#[cfg(not(loom))]
mod numbers {
    use std::collections::BTreeSet;
    use std::sync::{Mutex, PoisonError};

    struct Pool {
        next: usize,
        free: BTreeSet<usize>,
    }

    static POOL: Mutex<Pool> = Mutex::new(Pool {
        next: 0,
        free: BTreeSet::new(),
    });

    /// Taken at a thread's first attempt and given back at its end. The lock orders the last write of the thread that
    /// had the number before the first of the one that gets it.
    pub(super) struct Number(pub(super) usize);

    impl Number {
        pub(super) fn take() -> Self {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            Self(pool.free.pop_first().unwrap_or_else(|| {
                pool.next += 1;
                pool.next - 1
            }))
        }
    }

    impl Drop for Number {
        fn drop(&mut self) {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            pool.free.insert(self.0);
        }
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn no_two_living_threads_share_a_number_and_the_last_stripe_is_shared() {
        let barrier = Barrier::new(8);
        let mut numbers: Vec<usize> = std::thread::scope(|scope| {
            let number = || {
                let number = thread_number();
                barrier.wait();
                number
            };
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(number)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), 8);
        assert_eq!(seat(1), (0, Writer::Shared));
        assert_eq!(seat(usize::MAX).1, Writer::Sole);
    }
}
