//! The room's one error. A [`WireError`] means that the connection it came from is done for, except where
//! [`WireError::client_error`] gives an answer that the peer can still be sent.

use std::io;

use crate::codec::ErrPacket;

/// Why speaking the protocol with a peer failed.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// The socket failed.
    #[error("connection failed: {0}")]
    Io(#[from] io::Error),
    /// The peer closed between two packets.
    #[error("the peer closed the connection")]
    Closed,
    /// The peer closed in the middle of a packet.
    #[error("the peer closed the connection in the middle of a packet")]
    Truncated,
    /// A packet is longer than the configured bound, in bytes.
    #[error("a packet is larger than the limit of {limit} bytes")]
    PacketTooLarge {
        /// The bound.
        limit: usize,
    },
    /// Packets under way on all connections take as much memory as they may, in bytes.
    #[error("statements under way take all of the {limit} bytes of memory that they may")]
    NoRoom {
        /// What they may take together.
        limit: usize,
    },
    /// A packet's sequence id is not the next one: the two ends no longer talk about the same thing.
    #[error("packets out of order: expected sequence id {expected}, got {got}")]
    OutOfOrder {
        /// The id that was due.
        expected: u8,
        /// The id that came.
        got: u8,
    },
    /// A payload does not have the shape the protocol gives it.
    #[error("malformed packet: {0}")]
    Malformed(&'static str),
    /// The server answered the handshake or a command with an error.
    #[error("server error {0}")]
    Server(Box<ErrPacket>),
    /// A client's credentials were refused; it has been told so already.
    #[error("access denied for user '{user}'")]
    AccessDenied {
        /// The name it gave.
        user: String,
    },
    /// The peer wants something this side does not do; the text says what.
    #[error("{0}")]
    Unsupported(String),
    /// Client and server cannot agree on TLS; the text says why.
    #[error("tls: {0}")]
    Tls(String),
    /// A call that the connection's state does not allow, such as a command while rows are still due.
    #[error("connection used out of turn: {0}")]
    State(&'static str),
}

impl WireError {
    /// The same, known to have happened inside a packet.
    pub(crate) fn inside_packet(self) -> Self {
        if matches!(self, Self::Closed) {
            Self::Truncated
        } else {
            self
        }
    }

    /// Whether the connection stands at the next command and can be used on, after answering
    /// [`WireError::client_error`].
    #[must_use]
    pub const fn keeps_connection(&self) -> bool {
        matches!(
            self,
            Self::Malformed(_) | Self::PacketTooLarge { .. } | Self::NoRoom { .. }
        )
    }

    /// The error packet that tells the peer, where one can still be sent. Servers give some of these numbers the
    /// SQLSTATE 08S01, which makes drivers drop a connection that is still good; here it is HY000.
    #[must_use]
    pub fn client_error(&self) -> Option<ErrPacket> {
        match self {
            Self::PacketTooLarge { .. } => Some(ErrPacket::new(
                1153,
                *b"HY000",
                "Got a packet bigger than 'max_allowed_packet' bytes",
            )),
            // The number of a server without memory.
            Self::NoRoom { .. } => Some(ErrPacket::new(
                1041,
                *b"HY000",
                format!("Out of memory: {self} (limits.total_memory); try again later"),
            )),
            Self::OutOfOrder { .. } => Some(ErrPacket::new(1156, *b"HY000", "Got packets out of order")),
            Self::Malformed(what) => Some(ErrPacket::new(
                1835,
                *b"HY000",
                format!("Malformed communication packet: {what}"),
            )),
            Self::Unsupported(what) => Some(ErrPacket::new(1235, *b"42000", what.clone())),
            Self::Tls(what) => Some(ErrPacket::new(3159, *b"HY000", what.clone())),
            Self::Server(e) => Some(ErrPacket::clone(e)),
            Self::AccessDenied { .. } | Self::Io(_) | Self::Closed | Self::Truncated | Self::State(_) => None,
        }
    }
}
