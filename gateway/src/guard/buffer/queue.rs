//! Who waits for one shard's primary, and who of them is on the way to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use super::admission::Evicted;
use super::common::Common;
use super::tally::Tally;
use super::ticket::Call;
use crate::base::ShardId;
use crate::base::clock::Instant;

/// How many go at once when a shard's primary is back. A new primary's caches are cold and its connections are yet to be
/// opened, and who asks other shards shares the gateway with all of this.
const FIRST: usize = 2;
/// How long until one more may go at once.
const STEP: Duration = Duration::from_millis(25);

/// The requests of one shard that wait, those first that came first. Each takes up room, in a place of its own, until it
/// goes or is given up.
#[derive(Debug)]
pub(super) struct Queue {
    shard: ShardId,
    common: Arc<Common>,
    tally: Arc<Tally>,
    waiting: BTreeMap<u64, Waiter>,
    /// The number of the next that waits.
    number: u64,
    on_their_way: usize,
    /// When those that waited began to go.
    going_since: Option<Instant>,
}

#[derive(Debug)]
struct Waiter {
    call: oneshot::Sender<Call>,
    bytes: usize,
}

/// A place among those that wait.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) number: u64,
    pub(super) called: oneshot::Receiver<Call>,
}

/// What became of a request that wanted a place.
#[derive(Debug)]
pub(super) struct Joined {
    /// Its place; `None` if there was no room.
    pub(super) place: Option<Place>,
    /// Whether somebody is given up for want of room, it or an older one, that a room with fewer requests would hold.
    pub(super) overflowed: bool,
}

impl Queue {
    pub(super) fn new(shard: ShardId, common: Arc<Common>, tally: Arc<Tally>) -> Self {
        Self {
            shard,
            common,
            tally,
            waiting: BTreeMap::new(),
            number: 0,
            on_their_way: 0,
            going_since: None,
        }
    }

    /// How many wait.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits and nobody who waited is on the way.
    pub(super) fn is_done(&self) -> bool {
        self.waiting.is_empty() && self.on_their_way == 0
    }

    /// Takes a place for a request. The oldest of this shard give up theirs for it if they must, and none of another
    /// shard's; nobody does for one that would not fit all the same.
    pub(super) fn join(&mut self, bytes: usize) -> Joined {
        let room = &self.common.room;
        let mut overflowed = false;
        while !room.take(&self.shard, bytes) {
            overflowed |= room.could_hold(bytes);
            let oldest = if room.could_take(&self.shard, bytes) {
                self.waiting.pop_first()
            } else {
                None
            };
            let Some((_, oldest)) = oldest else {
                self.tally.skipped("BufferFull");
                return Joined {
                    place: None,
                    overflowed,
                };
            };
            self.leave(&oldest, Evicted::Full.label());
            let _ = oldest.call.send(Call::Out(Evicted::Full));
        }
        let (call, called) = oneshot::channel();
        let number = self.number;
        self.number += 1;
        self.waiting.insert(number, Waiter { call, bytes });
        self.tally.buffered();
        Joined {
            place: Some(Place { number, called }),
            overflowed,
        }
    }

    /// One is given up; whether it was still waiting.
    pub(super) fn give_up(&mut self, number: u64, reason: &str) -> bool {
        let waiter = self.waiting.remove(&number);
        if let Some(waiter) = &waiter {
            self.leave(waiter, reason);
        }
        waiter.is_some()
    }

    /// All are given up.
    pub(super) fn give_up_all(&mut self, evicted: Evicted) {
        for (_, waiter) in std::mem::take(&mut self.waiting) {
            self.leave(&waiter, evicted.label());
            let _ = waiter.call.send(Call::Out(evicted));
        }
    }

    /// From now on those that wait may go.
    pub(super) fn open(&mut self, now: Instant) {
        self.going_since = Some(now);
    }

    /// How many of so many may be on their way at once by now.
    pub(super) fn may_go(&self, most: usize, now: Instant) -> usize {
        let going = self
            .going_since
            .map_or(Duration::ZERO, |since| now.saturating_duration_since(since));
        let steps = going.as_millis() / STEP.as_millis();
        most.min(FIRST.saturating_add(usize::try_from(steps).unwrap_or(usize::MAX)))
    }

    /// Sends on as many as may be on their way at once.
    pub(super) fn send_on(&mut self, most: usize) {
        while self.on_their_way < most {
            let Some((_, waiter)) = self.waiting.pop_first() else {
                break;
            };
            self.common.room.give_back(&self.shard, waiter.bytes);
            if waiter.call.send(Call::Go).is_ok() {
                self.tally.drained();
                self.on_their_way += 1;
            } else {
                self.tally.evicted("ContextDone");
            }
        }
    }

    /// One that was on its way has its answer.
    pub(super) fn arrived(&mut self) {
        self.on_their_way = self.on_their_way.saturating_sub(1);
    }

    fn leave(&self, waiter: &Waiter, reason: &str) {
        self.common.room.give_back(&self.shard, waiter.bytes);
        self.tally.evicted(reason);
    }
}
