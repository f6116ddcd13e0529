//! A place among those that wait.

use std::sync::Arc;

use super::admission::{BufferRefused, Evicted};
use super::queue::Place;
use super::shard::ShardBuffer;
use crate::base::clock::{self, Instant};

/// What one that waits is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Go,
    Out(Evicted),
}

/// A request's place in its shard's buffer. Dropped, it is free at once.
#[derive(Debug)]
#[must_use = "dropped, a ticket gives up its place"]
pub struct Ticket {
    pub(super) shard: Arc<ShardBuffer>,
    pub(super) place: Place,
    pub(super) since: Instant,
    /// The end of its window.
    pub(super) until: Instant,
    pub(super) over: bool,
}

impl Ticket {
    /// Waits until the shard has a primary, or for as long as it may.
    pub async fn wait(mut self) -> Result<Drained, BufferRefused> {
        let call = match tokio::time::timeout_at(self.until, &mut self.place.called).await {
            Ok(Ok(call)) => call,
            // Its sender is gone with the buffer itself.
            Ok(Err(_)) => Call::Out(Evicted::Shutdown),
            Err(_) => self
                .shard
                .time_is_up(self.place.number)
                // Called in the same moment.
                .or_else(|| self.place.called.try_recv().ok())
                .unwrap_or(Call::Out(Evicted::Window)),
        };
        self.over = true;
        match call {
            Call::Go => Ok(Drained {
                shard: Arc::clone(&self.shard),
            }),
            Call::Out(evicted) => Err(self.shard.refusal(evicted, self.since, clock::now())),
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.over {
            return;
        }
        if !self.shard.abandon(self.place.number) && self.place.called.try_recv() == Ok(Call::Go) {
            // Its turn had come: the next one's.
            self.shard.next();
        }
    }
}

/// A request that waited is on its way. Until this is dropped, as many fewer follow it.
#[derive(Debug)]
#[must_use = "dropped, the next request is sent"]
pub struct Drained {
    shard: Arc<ShardBuffer>,
}

impl Drop for Drained {
    fn drop(&mut self) {
        self.shard.next();
    }
}
