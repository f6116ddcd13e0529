//! Memory that many connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many bytes many connections may hold together, beside the little that each may hold anyway.
#[derive(Debug)]
pub struct Room {
    limit: AtomicUsize,
    taken: AtomicUsize,
}

impl Room {
    /// Room for so many bytes.
    #[must_use]
    pub const fn new(limit: usize) -> Self {
        Self {
            limit: AtomicUsize::new(limit),
            taken: AtomicUsize::new(0),
        }
    }

    /// From now on there is room for so many bytes. What is taken stays taken.
    pub fn set_limit(&self, limit: usize) {
        self.limit.store(limit, Ordering::Relaxed);
    }

    /// The limit, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    /// Bytes that are taken.
    #[must_use]
    pub fn taken(&self) -> usize {
        self.taken.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize) -> bool {
        let limit = self.limit();
        let more = |taken: usize| taken.checked_add(bytes).filter(|sum| *sum <= limit);
        self.taken
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
}

/// What one of them holds. Dropped, it is given back.
#[derive(Debug)]
pub struct Share {
    room: Arc<Room>,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    #[must_use]
    pub const fn new(room: Arc<Room>) -> Self {
        Self { room, bytes: 0 }
    }

    /// The limit of what all hold, in bytes.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.room.limit()
    }

    /// Bytes held.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds at least so many bytes, and takes no less than `step` at once; `false` if there is no room for them.
    pub fn cover(&mut self, bytes: usize, step: usize) -> bool {
        let Some(lacking) = bytes.checked_sub(self.bytes).filter(|n| *n > 0) else {
            return true;
        };
        let more = lacking.max(step);
        let got = self.room.take(more);
        if got {
            self.bytes += more;
        }
        got
    }

    /// Gives all of it back.
    pub fn give_back(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        if bytes > 0 {
            self.room.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_together_is_bounded_and_comes_back() {
        let room = Arc::new(Room::new(100));
        let (mut a, mut b) = (Share::new(Arc::clone(&room)), Share::new(Arc::clone(&room)));
        assert!(a.cover(30, 50) && a.cover(50, 50), "fifty at once");
        assert!(b.cover(40, 1) && !b.cover(51, 1));
        assert_eq!((a.bytes(), b.bytes(), room.taken()), (50, 40, 90));
        drop(a);
        assert!(b.cover(51, 1));
        room.set_limit(10);
        b.give_back();
        assert!(!b.cover(11, 1) && b.cover(10, 1));
        assert_eq!(room.taken(), 10);
    }
}
