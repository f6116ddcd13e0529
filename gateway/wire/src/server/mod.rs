//! The server's side: what the gateway is to its clients, and the simulator to the gateway.

mod accept;
mod auth;
mod command;
mod conn;

pub use accept::accept;
pub use auth::{Authenticator, Identity};
pub use command::Command;
pub use conn::{ClientConn, Login};

use std::sync::Arc;

use crate::auth::AuthPlugin;
use crate::protocol::{Capabilities, StatusFlags};

/// What a server offers to everybody who connects.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// `VERSION()`, also in the greeting.
    pub server_version: String,
    /// What is offered. `SSL` is added if and only if `tls` is set.
    pub capabilities: Capabilities,
    /// Default collation id in the greeting, low byte.
    pub charset: u8,
    /// The status a session starts with.
    pub status: StatusFlags,
    /// The plugin named in the greeting; users whose credentials need another are switched.
    pub default_auth: AuthPlugin,
    /// TLS, if offered.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Whether clients without TLS are turned away.
    pub require_tls: bool,
    /// The longest packet taken from a client, in bytes; longer ones are answered with 1153.
    pub max_packet: usize,
    /// How many bytes a client may send ahead while its command runs.
    pub read_ahead: usize,
}

impl ServerConfig {
    /// Everything that clients of `MySQL` expect and this crate does.
    pub const OFFERED: Capabilities = Capabilities::LONG_PASSWORD
        .with(Capabilities::FOUND_ROWS)
        .with(Capabilities::LONG_FLAG)
        .with(Capabilities::CONNECT_WITH_DB)
        .with(Capabilities::NO_SCHEMA)
        .with(Capabilities::ODBC)
        .with(Capabilities::IGNORE_SPACE)
        .with(Capabilities::PROTOCOL_41)
        .with(Capabilities::INTERACTIVE)
        .with(Capabilities::IGNORE_SIGPIPE)
        .with(Capabilities::TRANSACTIONS)
        .with(Capabilities::RESERVED)
        .with(Capabilities::SECURE_CONNECTION)
        .with(Capabilities::MULTI_STATEMENTS)
        .with(Capabilities::MULTI_RESULTS)
        .with(Capabilities::PS_MULTI_RESULTS)
        .with(Capabilities::PLUGIN_AUTH)
        .with(Capabilities::CONNECT_ATTRS)
        .with(Capabilities::PLUGIN_AUTH_LENENC)
        .with(Capabilities::CAN_HANDLE_EXPIRED_PASSWORDS)
        .with(Capabilities::SESSION_TRACK)
        .with(Capabilities::DEPRECATE_EOF);

    /// A server of this version without TLS; everything else at its default.
    #[must_use]
    pub fn new(server_version: impl Into<String>) -> Self {
        Self {
            server_version: server_version.into(),
            capabilities: Self::OFFERED,
            charset: 45,
            status: StatusFlags::AUTOCOMMIT,
            default_auth: AuthPlugin::Native,
            tls: None,
            require_tls: false,
            max_packet: 64 << 20,
            read_ahead: 256 << 10,
        }
    }
}
