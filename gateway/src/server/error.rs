//! Why a gateway does not start.

use std::net::SocketAddr;

/// What keeps a gateway from starting.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("cannot listen on {addr}: {source}")]
    Bind {
        /// The address.
        addr: SocketAddr,
        /// The operating system's word.
        source: std::io::Error,
    },
    /// The topology has a gap.
    #[error("{0}")]
    Topology(String),
    /// TLS cannot be set up.
    #[error("TLS: {0}")]
    Tls(String),
    /// The operating system refused something.
    #[error("{0}")]
    Io(std::io::Error),
}
