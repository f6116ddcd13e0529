//! The `MySQL` protocol, both sides: the gateway's clients and the simulator's are served by [`server`], tablets are
//! spoken to by [`client`], and [`relay`] moves rows from one to the other without looking into them.
//!
//! The layers, innermost first:
//! * [`protocol`]: the numbers of the protocol (capability and status flags, commands, column types);
//! * [`codec`]: pure encoders and decoders of payloads; nothing here does I/O, nothing here panics on outside bytes;
//! * [`auth`]: scrambles and their constant-time checks;
//! * [`stream`]: packets over a byte stream: framing, sequence ids, one read and one write buffer;
//! * [`server`], [`client`]: the two ends; [`relay`]: rows from a tablet to a client; [`tls`]: rustls both ways.

pub mod auth;
pub mod client;
pub mod codec;
pub mod error;
pub mod protocol;
pub mod relay;
pub mod server;
pub mod stream;
pub mod tls;

pub use client::{Address, ConnectOptions, Head, RowEvent, TabletConn};
pub use codec::{ColumnDef, EofPacket, ErrPacket, OkPacket};
pub use error::WireError;
pub use protocol::{Capabilities, ColumnType, StatusFlags};
pub use relay::{RelayEnd, RelayError, RelayLimits, RelayStats, relay_rows};
pub use server::{Authenticator, ClientConn, Command, ServerConfig};
pub use stream::{PacketStream, Transport};
