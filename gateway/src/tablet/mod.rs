//! One `MySQL` server of a shard: the pool of connections to it, and what happens to a connection somebody let go of.

mod error;
pub mod settings;
mod slots;

pub use error::TabletError;
pub use slots::{Slot, SlotError, Slots};
