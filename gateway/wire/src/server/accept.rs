//! From a fresh connection to a client that is known: greeting, TLS, login.

use tokio_rustls::{TlsAcceptor, TlsStream};

use super::auth::{Authenticator, Claim, Identity, prove};
use super::conn::{ClientConn, Login};
use super::{ServerConfig, conn};
use crate::auth::{AuthPlugin, salt};
use crate::codec::{ErrPacket, Greeting, LoginRequest, login};
use crate::error::WireError;
use crate::protocol::Capabilities;
use crate::stream::{PacketStream, Transport};

/// The longest packet before a client is known.
const LOGIN_MAX: usize = 256 * 1024;

/// Commands are mostly short, and clients mostly idle.
const COMMAND_CHUNK: usize = 4 * 1024;

/// Greets a client and learns who it is. On success the client still waits for its OK (or an error, if it may not
/// come in after all): the caller sends one with [`ClientConn::put_ok`] or [`ClientConn::put_err`] and a flush. On
/// failure the client has been told where it could be. There is no time limit in here: callers set one around it.
pub async fn accept(
    transport: impl Into<Transport>,
    config: &ServerConfig,
    users: &impl Authenticator,
    connection_id: u32,
) -> Result<ClientConn, WireError> {
    let mut stream = PacketStream::new(transport.into(), LOGIN_MAX);
    stream.set_exact(config.tls.is_some());
    let salt = salt::fresh()?;
    let offered = offered(config);
    let greeting = Greeting {
        version: config.server_version.clone(),
        connection_id,
        salt,
        capabilities: offered,
        charset: config.charset,
        status: config.status,
        plugin: config.default_auth.name().into(),
    };
    stream.put_packet_with(|out| greeting.encode(out));
    stream.flush().await?;
    let (mut stream, login) = read_login(stream, config).await?;
    stream.set_exact(false);
    match admit(&mut stream, config, users, &login, salt).await {
        Ok(()) => {}
        Err(e) => return Err(refuse(&mut stream, e).await),
    }
    stream.set_max_packet(config.max_packet);
    stream.set_read_chunk(COMMAND_CHUNK);
    let capabilities = login.capabilities & offered;
    let who = Login {
        user: login.user,
        database: login.database,
        charset: u16::from(login.charset),
        attributes: login.attributes,
    };
    Ok(ClientConn::new(
        stream,
        who,
        conn::Agreed {
            capabilities,
            connection_id,
            salt,
            default_auth: config.default_auth,
            read_ahead: config.read_ahead,
        },
    ))
}

fn offered(config: &ServerConfig) -> Capabilities {
    let mut caps = config.capabilities | Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION;
    caps.set(Capabilities::SSL, config.tls.is_some());
    caps
}

/// Reads the login, behind the switch to TLS if the client asks for that.
async fn read_login(
    mut stream: PacketStream,
    config: &ServerConfig,
) -> Result<(PacketStream, LoginRequest), WireError> {
    let first = stream.read_packet().await?;
    let payload = if login::is_ssl_request(&first) {
        let Some(tls) = &config.tls else {
            return Err(refuse(&mut stream, WireError::Tls("TLS was not offered".into())).await);
        };
        stream = upgrade(stream, tls).await?;
        stream.read_packet().await?
    } else {
        first
    };
    match LoginRequest::parse(&payload) {
        Ok(login) => Ok((stream, login)),
        Err(e) => Err(refuse(&mut stream, e.into()).await),
    }
}

async fn upgrade(
    stream: PacketStream,
    tls: &std::sync::Arc<rustls::ServerConfig>,
) -> Result<PacketStream, WireError> {
    let seq = stream.seq();
    let Transport::Plain(raw) = stream.into_transport()? else {
        return Err(WireError::State("TLS inside TLS"));
    };
    let tls = TlsAcceptor::from(tls.clone())
        .accept(raw)
        .await
        .map_err(|e| WireError::Tls(e.to_string()))?;
    let mut stream = PacketStream::new(TlsStream::Server(tls).into(), LOGIN_MAX);
    stream.set_seq(seq);
    Ok(stream)
}

async fn admit(
    stream: &mut PacketStream,
    config: &ServerConfig,
    users: &impl Authenticator,
    login: &LoginRequest,
    salt: [u8; 20],
) -> Result<(), WireError> {
    if config.require_tls && !stream.transport().is_private() {
        return Err(WireError::Tls(
            "connections using insecure transport are prohibited; connect with TLS".into(),
        ));
    }
    let can_switch = login.capabilities.contains(Capabilities::PLUGIN_AUTH);
    let plugin = if can_switch {
        AuthPlugin::from_name(&login.plugin)
    } else {
        Some(AuthPlugin::Native)
    };
    let claim = Claim {
        plugin,
        answer: login.auth.clone(),
        salt,
        can_switch,
        always_switch: false,
    };
    check(
        stream,
        users,
        &login.user,
        login.database.as_deref(),
        claim,
        config.default_auth,
    )
    .await
}

/// Looks the user up, leads the conversation, and makes a refusal an error.
pub(super) async fn check(
    stream: &mut PacketStream,
    users: &impl Authenticator,
    user: &[u8],
    database: Option<&[u8]>,
    claim: Claim,
    default: AuthPlugin,
) -> Result<(), WireError> {
    let transport = stream.transport();
    let who = Identity {
        user,
        database,
        peer: transport.peer_addr(),
        tls: transport.is_tls(),
    };
    let credential = users.credential(&who);
    let host = who
        .peer
        .map_or_else(|| String::from("localhost"), |p| p.ip().to_string());
    let verdict = prove(stream, claim, credential, default).await?;
    if verdict.allowed {
        return Ok(());
    }
    let user = String::from_utf8_lossy(user).into_owned();
    let given = if verdict.used_password { "YES" } else { "NO" };
    let message = format!("Access denied for user '{user}'@'{host}' (using password: {given})");
    put_err(stream, &ErrPacket::new(1045, *b"28000", message));
    stream.flush().await?;
    Err(WireError::AccessDenied { user })
}

/// Tells the client, if it can be told, and gives the error back.
pub(super) async fn refuse(stream: &mut PacketStream, error: WireError) -> WireError {
    if let Some(packet) = error.client_error() {
        put_err(stream, &packet);
        // The connection is given up either way.
        let _ = stream.flush().await;
    }
    error
}

fn put_err(stream: &mut PacketStream, packet: &ErrPacket) {
    stream.put_packet_with(|out| packet.encode(out));
}
