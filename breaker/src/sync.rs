//! Atomics and stripes.
//!
//! `loom` replaces the atomics when it checks them. A stripe is a copy of what every attempt writes: threads that share
//! one cache line pay more for it than for the whole decision, so each thread writes its own.

#[cfg(loom)]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
#[cfg(not(loom))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A number that differs between threads that started one after another.
///
/// The counter is the crate's one piece of process-wide state: it decides nothing, it only spreads threads over stripes.
#[cfg(not(loom))]
#[inline]
pub(crate) fn thread_number() -> usize {
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // While a thread is torn down its number may be gone; any stripe is correct, only not the fastest.
    MINE.try_with(|n| *n).unwrap_or(0)
}

#[cfg(loom)]
pub(crate) fn thread_number() -> usize {
    0
}
