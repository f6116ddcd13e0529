//! Accepts clients: a bound on how many, a limit on how long a handshake takes, one task each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use shardgate_wire::server::accept;
use shardgate_wire::tls::{server_from_files, server_self_signed};
use shardgate_wire::{ClientConn, ErrPacket, ServerConfig};
use tokio::net::{TcpListener, TcpStream};

use super::{Core, StartError};
use crate::base::clock;
use crate::base::metrics::GaugeGuard;
use crate::config::{ClientTlsMode, Config};
use crate::session::{Session, Target, Users};

/// How long the listener rests when the operating system has no more sockets to give.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(50);

/// What new connections are served by; a reload replaces it.
#[derive(Debug)]
pub(super) struct Accept {
    server: ServerConfig,
    handshake: Duration,
    max_connections: usize,
}

impl Accept {
    pub(super) fn new(config: &Config, version: &str) -> Result<Self, StartError> {
        let mut server = ServerConfig::new(greeted_version(version));
        server.max_packet = config.limits.max_packet;
        server.read_ahead = config.limits.read_ahead;
        let failed = |e: shardgate_wire::WireError| StartError::Tls(e.to_string());
        if config.client_tls.mode != ClientTlsMode::Off {
            server.tls = Some(
                match (&config.client_tls.cert_file, &config.client_tls.key_file) {
                    (Some(cert), Some(key)) => server_from_files(cert, key).map_err(failed)?,
                    _ => server_self_signed(vec!["localhost".into(), "shardgate".into()]).map_err(failed)?,
                },
            );
        }
        server.require_tls = config.client_tls.mode == ClientTlsMode::Required;
        Ok(Self {
            server,
            handshake: config.timeouts.handshake,
            max_connections: config.limits.max_connections,
        })
    }
}

/// The version in the greeting. `MariaDB` 10 puts `5.5.5-` in front of its own, and drivers that do not know it would
/// take a 10 for a newer `MySQL` and ask for collations that it does not have.
fn greeted_version(version: &str) -> String {
    if version.starts_with("10.") && version.contains("MariaDB") {
        return format!("5.5.5-{version}");
    }
    version.to_owned()
}

/// Who may log in, as the configuration says.
pub(super) fn users(config: &Config) -> Users {
    Users::new(
        config
            .users
            .iter()
            .map(|u| (u.name.clone(), u.credential.clone())),
    )
}

/// Accepts until the gateway stops.
pub(super) async fn accept_clients(core: Arc<Core>, listener: TcpListener) {
    loop {
        let accepted = tokio::select! {
            () = core.stopping.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                let tracker = core.sessions.clone();
                tracker.spawn(serve(Arc::clone(&core), stream, peer));
            }
            Err(e) => {
                core.shared.metrics.connections_refused.handle("accept").inc();
                tracing::warn!(error = %e, "cannot accept a client");
                // Most likely no file descriptor is left: a busy loop would make it worse.
                tokio::time::sleep(OUT_OF_SOCKETS).await;
            }
        }
    }
}

async fn serve(core: Arc<Core>, stream: TcpStream, peer: SocketAddr) {
    let settings = core.accept();
    // Small packets must not wait for more: a client's next word depends on them.
    let _ = stream.set_nodelay(true);
    // Counted first, so that two who come at once cannot both find the last place free.
    let _counted = GaugeGuard::raise(&core.shared.metrics.connections);
    if core.shared.metrics.connections.get() > i64::try_from(settings.max_connections).unwrap_or(i64::MAX) {
        refuse(stream, &core).await;
        return;
    }
    core.shared.metrics.connections_accepted.inc();
    let id = core.shared.sessions.next_id();
    let users = Arc::clone(&core.shared.view.load().users);
    let handshake = accept(stream, &settings.server, &*users, id);
    let client = match tokio::time::timeout(settings.handshake, handshake).await {
        Ok(Ok(client)) => client,
        Ok(Err(e)) => {
            core.shared.metrics.connections_refused.handle("handshake").inc();
            tracing::debug!(%peer, error = %e, "a handshake failed");
            return;
        }
        Err(_) => {
            core.shared
                .metrics
                .connections_refused
                .handle("handshake_timeout")
                .inc();
            tracing::debug!(%peer, "a handshake took too long");
            return;
        }
    };
    drop(settings);
    run_session(core, client, peer).await;
}

async fn run_session(core: Arc<Core>, mut client: ClientConn, peer: SocketAddr) {
    let user = String::from_utf8_lossy(&client.login().user).into_owned();
    let database = client
        .login()
        .database
        .as_deref()
        .map(|d| String::from_utf8_lossy(d).into_owned());
    let view = core.shared.view.load_full();
    let target = match Target::of_login(database.as_deref(), &view) {
        Ok(target) => target,
        Err(e) => {
            let e = crate::base::GatewayError::client_error(&e);
            client.put_err(&ErrPacket::new(e.errno, e.sqlstate, e.message));
            // The client is turned away whether or not it hears why.
            let _ = client.flush().await;
            return;
        }
    };
    let id = client.connection_id();
    let registration = core.shared.sessions.register(id, user, peer.to_string());
    let shared = Arc::clone(&core.shared);
    let started = clock::now();
    // Boxed: this task's future holds the handshake's too, and both need not be as large as the larger.
    let end = Box::pin(Session::new(shared, client, registration, target).run()).await;
    tracing::debug!(connection = id, ?end, lasted = ?clock::now().duration_since(started), "client left");
}

/// One client too many: it is told so. The number is not 1040, which makes some drivers try again at once.
async fn refuse(stream: TcpStream, core: &Core) {
    core.shared
        .metrics
        .connections_refused
        .handle("max_connections")
        .inc();
    let message = "SG2604: as many clients are connected as may be; try again later";
    let mut packets = shardgate_wire::PacketStream::new(stream.into(), 1024);
    packets.put_packet_with(|out| ErrPacket::new(1105, *b"HY000", message).encode(out));
    let _ = tokio::time::timeout(Duration::from_millis(200), packets.flush()).await;
}

#[cfg(test)]
mod tests {
    use super::greeted_version;

    #[test]
    fn an_old_mariadb_greets_as_it_does_itself() {
        assert_eq!(greeted_version("10.11.6-MariaDB"), "5.5.5-10.11.6-MariaDB");
        assert_eq!(greeted_version("11.4.2-MariaDB"), "11.4.2-MariaDB");
        assert_eq!(greeted_version("8.0.36"), "8.0.36");
    }
}
