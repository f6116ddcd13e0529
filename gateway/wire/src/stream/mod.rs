//! Packets over a byte stream. One read buffer, one write buffer, sequence ids; nothing is lost when a read or a flush
//! is dropped half way.

mod packet;
mod room;
mod transport;

pub use packet::{FLUSH_AT, PacketStream, Probe};
pub(crate) use packet::{FrameHead, HEADER};
pub use room::{Room, Share};
pub use transport::{Raw, Transport};
