//! From an address to a session: connect, greeting, TLS, login.

use rustls::pki_types::ServerName;
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsConnector, TlsStream};

use super::conn::{Server, TabletConn};
use super::options::{Address, ConnectOptions};
use crate::auth::{AuthPlugin, Password, caching_sha2};
use crate::codec::{AuthSwitch, ErrPacket, Greeting, LoginRequest, OkPacket};
use crate::error::WireError;
use crate::protocol::Capabilities;
use crate::stream::{PacketStream, Transport};
use crate::tls::ClientTls;

impl TabletConn {
    /// Connects and logs in. There is no time limit in here: callers set one around it.
    pub async fn connect(address: &Address, options: &ConnectOptions) -> Result<Self, WireError> {
        let transport: Transport = match address {
            Address::Tcp { host, port } => TcpStream::connect((host.as_str(), *port)).await?.into(),
            Address::Unix(path) => UnixStream::connect(path).await?.into(),
        };
        Self::handshake(transport, address.host(), options).await
    }

    /// Logs in over a stream that is already connected; `host` is what a certificate must name.
    pub async fn handshake(
        transport: impl Into<Transport>,
        host: Option<&str>,
        options: &ConnectOptions,
    ) -> Result<Self, WireError> {
        let mut stream = PacketStream::new(transport.into(), options.max_packet);
        let first = stream.read_packet().await?;
        if first.first() == Some(&ErrPacket::HEADER) {
            return Err(WireError::Server(Box::new(ErrPacket::parse(&first)?)));
        }
        let greeting = Greeting::parse(&first)?;
        let mut login = login_for(&greeting, options)?;
        if let Some(tls) = &options.tls {
            if greeting.capabilities.contains(Capabilities::SSL) {
                login.capabilities |= Capabilities::SSL;
                stream = upgrade(stream, &login, tls, host, options.max_packet).await?;
            } else if tls.required {
                return Err(WireError::Tls(
                    "the server does not offer TLS, which is required".into(),
                ));
            }
        }
        let plugin = AuthPlugin::from_name(&greeting.plugin).unwrap_or_default();
        login.plugin = plugin.name().into();
        login.auth = plugin.scramble(&options.password, &greeting.salt);
        stream.put_packet_with(|out| login.encode(out));
        stream.flush().await?;
        let caps = login.capabilities;
        let ok = finish_auth(&mut stream, plugin, &options.password, caps).await?;
        Ok(Self::new(
            stream,
            Server {
                version: greeting.version,
                connection_id: greeting.connection_id,
                capabilities: caps,
                status: ok.status,
            },
        ))
    }
}

fn login_for(greeting: &Greeting, options: &ConnectOptions) -> Result<LoginRequest, WireError> {
    // MariaDB leaves LONG_PASSWORD out to say "I am MariaDB", and takes its absence in the answer for an offer of its
    // own extensions; so it is always set.
    let offered = greeting.capabilities | Capabilities::LONG_PASSWORD;
    if !offered.contains(Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION) {
        return Err(WireError::Unsupported(
            "the server is older than MySQL 4.1".into(),
        ));
    }
    let mut capabilities = options.capabilities & offered;
    capabilities.set(Capabilities::SSL, false);
    let with_db = options.database.is_some() && offered.contains(Capabilities::CONNECT_WITH_DB);
    capabilities.set(Capabilities::CONNECT_WITH_DB, with_db);
    let pair = |(k, v): &(String, String)| (k.clone().into_bytes(), v.clone().into_bytes());
    Ok(LoginRequest {
        capabilities,
        max_packet: u32::try_from(options.max_packet).unwrap_or(u32::MAX),
        // Ids above 255 do not fit here; utf8mb4 stands in until the session sets its own.
        charset: u8::try_from(options.collation).unwrap_or(45),
        user: options.user.clone().into_bytes(),
        auth: Vec::new(),
        database: options.database.clone().map(String::into_bytes),
        plugin: String::new(),
        attributes: options.attributes.iter().map(pair).collect(),
    })
}

async fn upgrade(
    mut stream: PacketStream,
    login: &LoginRequest,
    tls: &ClientTls,
    host: Option<&str>,
    max_packet: usize,
) -> Result<PacketStream, WireError> {
    stream.put_packet_with(|out| login.encode_head(out));
    stream.flush().await?;
    let seq = stream.seq();
    let Transport::Plain(raw) = stream.into_transport()? else {
        return Err(WireError::State("TLS inside TLS"));
    };
    let name = match &tls.server_name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host.unwrap_or("localhost").to_owned())
            .map_err(|e| WireError::Tls(format!("bad server name: {e}")))?,
    };
    let tls = TlsConnector::from(tls.config.clone())
        .connect(name, raw)
        .await
        .map_err(|e| WireError::Tls(e.to_string()))?;
    let mut stream = PacketStream::new(TlsStream::Client(tls).into(), max_packet);
    stream.set_seq(seq);
    Ok(stream)
}

/// Follows the server through switches and extra rounds until it says OK.
pub(super) async fn finish_auth(
    stream: &mut PacketStream,
    mut plugin: AuthPlugin,
    password: &Password,
    caps: Capabilities,
) -> Result<OkPacket, WireError> {
    // A server needs two rounds at most: one switch, one full path. The bound keeps a broken one from looping.
    for _ in 0..8 {
        let packet = stream.read_packet().await?;
        match packet.first() {
            Some(&OkPacket::HEADER) => return Ok(OkPacket::parse(&packet, caps)?),
            Some(&ErrPacket::HEADER) => return Err(WireError::Server(Box::new(ErrPacket::parse(&packet)?))),
            Some(&AuthSwitch::HEADER) => {
                let switch = AuthSwitch::parse(&packet)?;
                plugin =
                    AuthPlugin::from_name(&switch.plugin).ok_or_else(|| unknown_plugin(&switch.plugin))?;
                stream.put_packet(&plugin.scramble(password, &switch.data));
                stream.flush().await?;
            }
            Some(&caching_sha2::MORE_DATA) if plugin == AuthPlugin::CachingSha2 => match packet.get(1) {
                Some(&caching_sha2::FAST_OK) => {}
                Some(&caching_sha2::FULL_AUTH) => send_clear(stream, password).await?,
                _ => return Err(WireError::Malformed("caching_sha2_password's extra data")),
            },
            _ => return Err(WireError::Malformed("answer to the login")),
        }
    }
    Err(WireError::Malformed("the login does not end"))
}

async fn send_clear(stream: &mut PacketStream, password: &Password) -> Result<(), WireError> {
    if !stream.transport().is_private() {
        return Err(WireError::Unsupported(
            "the server wants the password itself (caching_sha2_password, not in its cache), which is sent over TLS \
             only: configure TLS to this server or use mysql_native_password"
                .into(),
        ));
    }
    stream.put_packet_with(|out| {
        out.extend_from_slice(password.as_bytes());
        out.push(0);
    });
    stream.flush().await
}

fn unknown_plugin(name: &str) -> WireError {
    let name = if name.is_empty() {
        "mysql_old_password"
    } else {
        name
    };
    WireError::Unsupported(format!(
        "the server wants the authentication plugin {name:?}; known are mysql_native_password and \
         caching_sha2_password"
    ))
}
