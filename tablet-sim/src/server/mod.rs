//! The server: accepts connections and gives each a task.

mod conn;
mod execute;
mod prepared;
mod results;

use std::sync::Arc;
use std::time::Duration;

use shardgate_wire::auth::Credential;
use shardgate_wire::server::{Identity, accept};
use shardgate_wire::stream::Raw;
use shardgate_wire::{ErrPacket, ServerConfig, Transport};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::SqlError;
use crate::tablet::Tablet;

/// How long a client may take to say who it is.
const LOGIN_LIMIT: Duration = Duration::from_secs(10);

/// The error as a packet.
pub(crate) fn err_packet(e: &SqlError) -> ErrPacket {
    ErrPacket::new(e.code, e.state, e.message.clone())
}

/// Everybody comes in: a simulated tablet guards nothing.
fn everybody(_: &Identity<'_>) -> Option<Credential> {
    Some(Credential::Empty)
}

/// Serves until stopped. The listening socket is closed while a fault refuses connections, so that a client meets what
/// it would meet from a server that is down. While the tablet is dead its connections are closed, too.
pub(crate) async fn run(
    tablet: Arc<Tablet>,
    listener: TcpListener,
    max_connections: usize,
    stop: CancellationToken,
) {
    let addr = listener.local_addr();
    let mut listener = Some(listener);
    let mut refusing = tablet.faults.refusing();
    let mut down = tablet.down();
    let tasks = TaskTracker::new();
    let mut life = stop.child_token();
    loop {
        if *down.borrow_and_update() {
            listener = None;
            life.cancel();
            tasks.close();
            tasks.wait().await;
            tasks.reopen();
            life = stop.child_token();
            tablet.set_listening(false);
            tokio::select! {
                () = stop.cancelled() => break,
                _ = down.wait_for(|down| !down) => {}
            }
        }
        let refuse = *refusing.borrow_and_update();
        if refuse {
            listener = None;
        } else if listener.is_none()
            && let Ok(addr) = &addr
        {
            listener = rebind(*addr, &stop).await;
        }
        tablet.set_listening(listener.is_some());
        tokio::select! {
            () = stop.cancelled() => break,
            _ = refusing.changed() => {}
            _ = down.changed() => {}
            accepted = next(listener.as_ref()) => match accepted {
                Ok(stream) => {
                    let (tablet, life) = (Arc::clone(&tablet), life.clone());
                    tasks.spawn(client(tablet, stream, max_connections, life));
                }
                // Out of descriptors, most likely: give some time to close.
                Err(e) => {
                    tracing::warn!(alias = tablet.alias(), error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

pub(crate) async fn next(listener: Option<&TcpListener>) -> std::io::Result<TcpStream> {
    match listener {
        Some(l) => l.accept().await.map(|(stream, _)| stream),
        None => std::future::pending().await,
    }
}

pub(crate) async fn rebind(addr: std::net::SocketAddr, stop: &CancellationToken) -> Option<TcpListener> {
    loop {
        match TcpListener::bind(addr).await {
            Ok(listener) => return Some(listener),
            Err(e) => {
                tracing::warn!(%addr, error = %e, "cannot listen again yet");
                tokio::select! {
                    () = stop.cancelled() => return None,
                    () = tokio::time::sleep(Duration::from_millis(100)) => {}
                }
            }
        }
    }
}

async fn client(tablet: Arc<Tablet>, stream: TcpStream, max_connections: usize, stop: CancellationToken) {
    let _ = stream.set_nodelay(true);
    if tablet.faults.swallows_connections() {
        // The socket stays open and silent for as long as the fault lasts.
        let mut rules = tablet.faults.refusing();
        while tablet.faults.swallows_connections() {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = wait_change(&mut rules) => if changed.is_err() { return },
            }
        }
        return;
    }
    let id = tablet.next_id();
    let config = ServerConfig::new(tablet.version());
    let transport = Transport::Plain(Raw::Tcp(stream));
    let login = tokio::select! {
        () = stop.cancelled() => return,
        login = tokio::time::timeout(LOGIN_LIMIT, accept(transport, &config, &everybody, id)) => login,
    };
    let mut conn = match login {
        Ok(Ok(conn)) => conn,
        Ok(Err(e)) => {
            tracing::debug!(alias = tablet.alias(), error = %e, "login failed");
            return;
        }
        Err(_) => return,
    };
    if tablet.connections() >= max_connections {
        conn.put_err(&err_packet(&SqlError::new(
            1040,
            *b"08004",
            "Too many connections",
        )));
        let _ = conn.flush().await;
        return;
    }
    conn::serve(tablet, conn, id, &everybody, stop).await;
}

async fn wait_change(rules: &mut watch::Receiver<bool>) -> Result<(), watch::error::RecvError> {
    rules.changed().await
}
