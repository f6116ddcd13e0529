//! The slots of one pool: how many connections may be in use, and a short, bounded, fair queue for the next one.
//!
//! Without a bound on the queue a stuck tablet turns every caller into a waiter; with it the caller past the bound
//! learns at once. Waiters are served in order, and one whose deadline passes leaves no slot behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::base::clock::Instant;

/// The slots of one pool.
#[derive(Debug)]
pub struct Slots {
    free: Arc<Semaphore>,
    size: usize,
    waiting: AtomicUsize,
    max_waiters: usize,
    /// What kinds of statement beyond their share may use, and how many of them wait for it. They wait apart, so that
    /// they do not fill the queue either.
    beyond: Option<Arc<Semaphore>>,
    waiting_beyond: AtomicUsize,
}

/// One slot, free again when dropped.
#[derive(Debug)]
pub struct Slot {
    _permit: OwnedSemaphorePermit,
    _beyond: Option<OwnedSemaphorePermit>,
}

/// Why there is no slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// As many wait as may.
    Full,
    /// The deadline passed first.
    TimedOut,
    /// The pool was closed.
    Closed,
}

/// One more waiter for as long as it lives.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Slots {
    /// `size` slots and a queue of at most `max_waiters`.
    pub fn new(size: usize, max_waiters: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(size)),
            size,
            waiting: AtomicUsize::new(0),
            max_waiters,
            beyond: None,
            waiting_beyond: AtomicUsize::new(0),
        }
    }

    /// With so many slots for kinds of statement beyond their share; with none they are not bound.
    #[must_use]
    pub fn with_beyond(self, slots: usize) -> Self {
        let beyond = (slots > 0).then(|| Arc::new(Semaphore::new(slots)));
        Self { beyond, ..self }
    }

    /// [`Self::acquire`] for a kind of statement that holds its share: it has to leave a reserve to the others.
    pub async fn acquire_beyond(&self, deadline: Option<Instant>) -> Result<Slot, SlotError> {
        let Some(beyond) = &self.beyond else {
            return self.acquire(deadline).await;
        };
        let extra = line(beyond, (&self.waiting_beyond, self.max_waiters), deadline).await?;
        let slot = self.acquire(deadline).await?;
        Ok(Slot {
            _beyond: Some(extra),
            ..slot
        })
    }

    /// How many slots there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// How many slots are taken.
    pub fn busy(&self) -> usize {
        self.size.saturating_sub(self.free.available_permits())
    }

    /// How many requests wait.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// A slot, at once or after waiting in line until the deadline.
    pub async fn acquire(&self, deadline: Option<Instant>) -> Result<Slot, SlotError> {
        let permit = line(&self.free, (&self.waiting, self.max_waiters), deadline).await?;
        Ok(Slot {
            _permit: permit,
            _beyond: None,
        })
    }

    /// Wakes all waiters with an error and gives no slot any more; slots that are out stay valid.
    pub fn close(&self) {
        self.free.close();
        if let Some(beyond) = &self.beyond {
            beyond.close();
        }
    }
}

/// A permit, at once or after waiting in a bounded line until the deadline.
async fn line(
    free: &Arc<Semaphore>,
    (waiting, max_waiters): (&AtomicUsize, usize),
    deadline: Option<Instant>,
) -> Result<OwnedSemaphorePermit, SlotError> {
    match Arc::clone(free).try_acquire_owned() {
        Ok(permit) => return Ok(permit),
        Err(tokio::sync::TryAcquireError::Closed) => return Err(SlotError::Closed),
        Err(tokio::sync::TryAcquireError::NoPermits) => {}
    }
    let _waiting = join_queue(waiting, max_waiters).ok_or(SlotError::Full)?;
    let permit = Arc::clone(free).acquire_owned();
    let got = match deadline {
        Some(at) => tokio::time::timeout_at(at, permit)
            .await
            .map_err(|_| SlotError::TimedOut)?,
        None => permit.await,
    };
    got.map_err(|_| SlotError::Closed)
}

fn join_queue(waiting: &AtomicUsize, max_waiters: usize) -> Option<Waiting<'_>> {
    let more = |n: usize| (n < max_waiters).then_some(n + 1);
    waiting
        .fetch_update(Ordering::AcqRel, Ordering::Acquire, more)
        .ok()
        .map(|_| Waiting(waiting))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock;
    use std::time::Duration;

    #[tokio::test(start_paused = true)]
    async fn the_request_past_the_queue_is_refused_at_once() {
        let s = Arc::new(Slots::new(1, 1));
        let held = s.acquire(None).await.unwrap();
        let queued = tokio::spawn({
            let s = Arc::clone(&s);
            async move { s.acquire(None).await.is_ok() }
        });
        while s.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(s.acquire(None).await.unwrap_err(), SlotError::Full);
        drop(held);
        assert!(queued.await.unwrap());
        assert_eq!((s.waiting(), s.busy()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn an_expired_waiter_leaves_the_slot_to_the_next_in_line() {
        let s = Arc::new(Slots::new(1, 10));
        let held = s.acquire(None).await.unwrap();
        let soon = clock::now() + Duration::from_millis(10);
        assert_eq!(s.acquire(Some(soon)).await.unwrap_err(), SlotError::TimedOut);
        assert_eq!(s.waiting(), 0);
        drop(held);
        assert!(s.acquire(Some(clock::now())).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn waiters_are_served_in_order() {
        let s = Arc::new(Slots::new(1, 10));
        let held = s.acquire(None).await.unwrap();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for i in 0..5 {
            let (s2, order) = (Arc::clone(&s), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let _slot = s2.acquire(None).await.unwrap();
                order.lock().unwrap().push(i);
            }));
            while s.waiting() <= i {
                tokio::task::yield_now().await;
            }
        }
        drop(held);
        for t in tasks {
            t.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    }

    #[tokio::test(start_paused = true)]
    async fn closing_wakes_the_waiters() {
        let s = Arc::new(Slots::new(1, 10));
        let _held = s.acquire(None).await.unwrap();
        let waiter = tokio::spawn({
            let s = Arc::clone(&s);
            async move { s.acquire(None).await.err() }
        });
        while s.waiting() == 0 {
            tokio::task::yield_now().await;
        }
        s.close();
        assert_eq!(waiter.await.unwrap(), Some(SlotError::Closed));
    }

    /// One kind of statement waits for itself, and leaves a slot and the queue to the others.
    #[tokio::test(start_paused = true)]
    async fn a_kind_beyond_its_share_leaves_a_reserve_and_the_queue() {
        let s = Arc::new(Slots::new(5, 1).with_beyond(1));
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(s.acquire(None).await.unwrap());
        }
        held.push(s.acquire_beyond(None).await.unwrap());
        let waits = tokio::spawn({
            let s = Arc::clone(&s);
            async move { s.acquire_beyond(None).await }
        });
        tokio::task::yield_now().await;
        assert_eq!(s.acquire_beyond(None).await.unwrap_err(), SlotError::Full);
        assert_eq!((s.busy(), s.waiting()), (4, 0));
        let other = s.acquire(None).await.unwrap();
        drop(held.pop());
        let slot = waits.await.unwrap().unwrap();
        drop((other, slot, held));
        assert_eq!(s.busy(), 0);
    }
}
