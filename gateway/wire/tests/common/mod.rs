//! Both ends in one process, over pipes.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used)] // each test binary uses its part

use bytes::Bytes;
use shardgate_wire::auth::{AuthPlugin, Credential, Password};
use shardgate_wire::server::{Identity, accept};
use shardgate_wire::{ClientConn, ConnectOptions, OkPacket, ServerConfig, TabletConn, WireError};

/// Knows `root` (no password), `nat` and `sha` (password `secret`).
pub(crate) fn users(who: &Identity<'_>) -> Option<Credential> {
    let password = Password::new("secret");
    match who.user {
        b"root" => Some(Credential::Empty),
        b"nat" => Some(Credential::from_password(AuthPlugin::Native, &password)),
        b"sha" => Some(Credential::from_password(AuthPlugin::CachingSha2, &password)),
        b"crypt" => Credential::parse(CRYPT),
        _ => None,
    }
}

/// `secret`, as `mysql.user` would hold it.
const CRYPT: &str = "$A$005$abcdefghijklmnopqrstYy1cVJ5jT.fk4HyAGlowRhOkI55As4SAesbspXHQvFD";

/// A server's end and a client's end, logged in.
pub(crate) async fn pair(config: &ServerConfig, options: &ConnectOptions) -> (ClientConn, TabletConn) {
    let (server, client) = try_pair(config, options).await;
    (server.unwrap(), client.unwrap())
}

/// The two results of a login.
pub(crate) async fn try_pair(
    config: &ServerConfig,
    options: &ConnectOptions,
) -> (Result<ClientConn, WireError>, Result<TabletConn, WireError>) {
    let (a, b) = tokio::io::duplex(256 * 1024);
    let serve = async {
        let mut conn = accept(a, config, &users, 7).await?;
        conn.put_ok(&OkPacket::with_status(config.status));
        conn.flush().await?;
        Ok(conn)
    };
    tokio::join!(serve, TabletConn::handshake(b, Some("localhost"), options))
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig::new("8.0.36-shardgate")
}

pub(crate) fn options(user: &str, password: &str) -> ConnectOptions {
    ConnectOptions::new(user, Password::new(password))
}

/// A row of one cell.
pub(crate) fn row(cell: &[u8]) -> Bytes {
    let mut out = Vec::new();
    shardgate_wire::codec::text::put_cell(&mut out, Some(cell));
    out.into()
}
