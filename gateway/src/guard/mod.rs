//! What an attempt passes before it may reach a tablet, and what its result says of the tablet.
//!
//! Nothing here does I/O: a [`Gate`] is asked before a pool is touched, and told the outcome when the answer is over.
//! The room lies below `tablet`, not above it, since a pool asks its gate before it opens a connection: a server that
//! refuses connections must trip its breaker like one that refuses statements.
//!
//! | scope | breaker | who has it |
//! |---|---|---|
//! | a shard's primary | one a shard, whichever tablet is the primary | [`ShardGuard::breaker`] |
//! | a replica | one a tablet, bound by the shard's ejection cap | its [`Gate`] |
//! | a kind of statement on a shard | made when the kind is first blamed or times out | [`Kinds`] |

mod attempt;
mod buffer;
mod counted;
mod error;
mod gate;
mod health;
mod kinds;
mod listener;
mod parked;
mod registry;
mod settings;
mod shard;
mod taken;

pub use attempt::Attempt;
pub use buffer::{
    Admission, BufferRefused, BufferSettings, BufferSnapshot, Cause, Drained, Evicted, News, Request,
    ShardBuffer, Ticket,
};
pub use counted::{count_replica_from_zero, count_shard_from_zero};
pub use error::Refused;
pub use gate::{Gate, Pass, Share};
pub use kinds::Kinds;
pub use parked::Parking;
pub use registry::Guards;
pub use settings::GuardSettings;
pub use shard::ShardGuard;

pub use shardgate_breaker::{Outcome, Pulse, Work};
