//! Where a tablet is and how to log in to it.

use std::fmt;
use std::path::PathBuf;

use crate::auth::Password;
use crate::protocol::Capabilities;
use crate::tls::ClientTls;

/// Where a server listens.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Address {
    /// Host name or address, and port.
    Tcp {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// A TCP address.
    pub fn tcp(host: impl Into<String>, port: u16) -> Self {
        Self::Tcp {
            host: host.into(),
            port,
        }
    }

    /// The host, which a certificate must name.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        match self {
            Self::Tcp { host, .. } => Some(host),
            Self::Unix(_) => None,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp { host, port } => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

/// How to log in.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// User name.
    pub user: String,
    /// Password; empty for none.
    pub password: Password,
    /// The database to use, if any.
    pub database: Option<String>,
    /// What is asked for; what the server does not offer is left out. `FOUND_ROWS` is up to the caller.
    pub capabilities: Capabilities,
    /// Collation id of the session.
    pub collation: u16,
    /// Connection attributes.
    pub attributes: Vec<(String, String)>,
    /// TLS; `None` for none.
    pub tls: Option<ClientTls>,
    /// The longest packet taken from the server, in bytes.
    pub max_packet: usize,
}

impl ConnectOptions {
    /// What every tablet connection asks for.
    pub const CAPABILITIES: Capabilities = Capabilities::LONG_PASSWORD
        .with(Capabilities::LONG_FLAG)
        .with(Capabilities::PROTOCOL_41)
        .with(Capabilities::TRANSACTIONS)
        .with(Capabilities::SECURE_CONNECTION)
        .with(Capabilities::MULTI_RESULTS)
        .with(Capabilities::PS_MULTI_RESULTS)
        .with(Capabilities::PLUGIN_AUTH)
        .with(Capabilities::PLUGIN_AUTH_LENENC)
        .with(Capabilities::CONNECT_ATTRS)
        .with(Capabilities::SESSION_TRACK)
        .with(Capabilities::DEPRECATE_EOF);

    /// A login by user and password; everything else at its default (`utf8mb4`, no TLS, packets up to 1 GiB as the
    /// protocol's servers allow at most).
    pub fn new(user: impl Into<String>, password: Password) -> Self {
        Self {
            user: user.into(),
            password,
            database: None,
            capabilities: Self::CAPABILITIES,
            collation: crate::protocol::UTF8MB4,
            attributes: Vec::new(),
            tls: None,
            max_packet: 1 << 30,
        }
    }
}
