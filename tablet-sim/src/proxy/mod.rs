//! The fault layer in front of a real server: what passes is the server's own, what goes wrong is ours.
//!
//! Packets are forwarded one by one, so that logins, statement ids, warnings and connection ids are the server's and a
//! KILL finds whom it names. From the greeting only those abilities are taken away under which packets could not be
//! told apart: TLS, compression, LOAD DATA LOCAL, query attributes, and MariaDB's extensions.

mod answer;
mod conn;
mod held;
mod hello;

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::faults::{FaultPanel, Faults, Layer};
use crate::handle::SimError;
use crate::server::{next, rebind};
use held::Registry;

/// How long the server may take to accept a connection.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);

/// How a proxy is made.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// Its name, for logs and for the fault routes.
    pub alias: String,
    /// Where it listens; port 0 picks one.
    pub addr: String,
    /// The server behind it, as host and port.
    pub to: String,
    /// The seed of all its chances.
    pub seed: u64,
}

impl Default for ProxyOptions {
    fn default() -> Self {
        Self {
            alias: "proxy".to_owned(),
            addr: "127.0.0.1:0".to_owned(),
            to: "127.0.0.1:3306".to_owned(),
            seed: 1,
        }
    }
}

/// What all connections of a proxy share.
#[derive(Debug)]
struct Shared {
    alias: String,
    to: String,
    faults: Arc<Faults>,
    held: Registry,
    stop: CancellationToken,
}

struct Inner {
    shared: Arc<Shared>,
    addr: SocketAddr,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.stop.cancel();
    }
}

/// A running proxy. Clones are the same proxy; it stops when the last is dropped, or by [`SimProxy::shutdown`].
#[derive(Clone)]
pub struct SimProxy {
    inner: Arc<Inner>,
}

impl fmt::Debug for SimProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimProxy")
            .field("alias", &self.alias())
            .field("addr", &self.addr())
            .finish_non_exhaustive()
    }
}

impl From<SimProxy> for FaultPanel {
    fn from(proxy: SimProxy) -> Self {
        Self::new(proxy.alias(), proxy.faults())
    }
}

impl SimProxy {
    /// Starts a proxy. The server is not asked for anything until a client connects.
    pub async fn start(options: ProxyOptions) -> Result<Self, SimError> {
        let listen = |source| SimError::Listen {
            addr: options.addr.clone(),
            source,
        };
        let listener = TcpListener::bind(&options.addr).await.map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let shared = Arc::new(Shared {
            alias: options.alias,
            to: options.to,
            faults: Faults::new(options.seed, Layer::Proxy),
            held: Registry::default(),
            stop: CancellationToken::new(),
        });
        let task = tokio::spawn(run(Arc::clone(&shared), listener, addr));
        Ok(Self {
            inner: Arc::new(Inner {
                shared,
                addr,
                task: Mutex::new(Some(task)),
            }),
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.inner.addr
    }

    /// Its name.
    #[must_use]
    pub fn alias(&self) -> &str {
        &self.inner.shared.alias
    }

    /// Its faults. `lag` is refused: replication is the server's own.
    #[must_use]
    pub fn faults(&self) -> &Arc<Faults> {
        &self.inner.shared.faults
    }

    /// How many clients have been greeted and are connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.shared.held.len()
    }

    /// Stops: no new connections, the open ones cut.
    pub async fn shutdown(&self) {
        self.inner.shared.stop.cancel();
        let task = self
            .inner
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(task) = task {
            // A task that panicked is as stopped as one that ended.
            let _ = task.await;
        }
    }
}

/// Accepts until stopped; the listening socket is closed while a fault refuses connections.
async fn run(shared: Arc<Shared>, listener: TcpListener, addr: SocketAddr) {
    let mut listener = Some(listener);
    let mut refusing = shared.faults.refusing();
    let tasks = TaskTracker::new();
    loop {
        if *refusing.borrow_and_update() {
            listener = None;
        } else if listener.is_none() {
            listener = rebind(addr, &shared.stop).await;
        }
        tokio::select! {
            () = shared.stop.cancelled() => break,
            _ = refusing.changed() => {}
            accepted = next(listener.as_ref()) => match accepted {
                Ok(stream) => {
                    tasks.spawn(client(Arc::clone(&shared), stream));
                }
                // Out of descriptors, most likely: give some time to close.
                Err(e) => {
                    tracing::warn!(alias = shared.alias, error = %e, "accept failed");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

async fn client(shared: Arc<Shared>, stream: TcpStream) {
    if shared.faults.swallows_connections() {
        let mut changes = shared.faults.refusing();
        while shared.faults.swallows_connections() {
            tokio::select! {
                () = shared.stop.cancelled() => return,
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
        return;
    }
    let connected = tokio::select! {
        () = shared.stop.cancelled() => return,
        connected = tokio::time::timeout(CONNECT_LIMIT, TcpStream::connect(&shared.to)) => connected,
    };
    match connected {
        Ok(Ok(server)) => conn::serve(shared, stream, server).await,
        // The client meets what is nearest to a server that is not there: a reset.
        Ok(Err(e)) => {
            tracing::debug!(alias = shared.alias, error = %e, "the server behind cannot be reached");
            let _ = stream.set_zero_linger();
        }
        Err(_) => {
            let _ = stream.set_zero_linger();
        }
    }
}
