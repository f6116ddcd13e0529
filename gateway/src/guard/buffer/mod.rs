//! The reparent buffer: while a shard has no primary that takes writes, requests for it wait.
//!
//! ```text
//! IDLE      -> BUFFERING  a sign that the primary is gone, a request for one known to be gone, or an announcement
//! BUFFERING -> DRAINING   this shard's primary, new or same, was seen to take writes
//! BUFFERING -> IDLE       it took too long: everybody is told, and the shard's breaker opens
//! DRAINING  -> IDLE       the last that waited went on
//! ```
//!
//! Each shard buffers on its own. All share one [`Room`], in which a part is kept for each, so that no shard drives out
//! another's requests. Slow is not gone: a tablet that does not answer in time is its breaker's business.

mod admission;
mod common;
mod phase;
mod queue;
mod room;
mod settings;
mod shard;
mod tally;
#[cfg(test)]
mod tests;
mod ticket;

pub use admission::{Admission, BufferRefused, Evicted, Request};
pub(super) use common::Common;
pub use phase::{Cause, News};
pub use settings::BufferSettings;
pub use shard::{BufferSnapshot, ShardBuffer};
pub use ticket::{Drained, Ticket};
