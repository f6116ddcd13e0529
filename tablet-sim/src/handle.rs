//! A tablet as its owner holds it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::parse::Parsed;
use crate::engine::session::{Session, Sink};
use crate::engine::types::ColumnMeta;
use crate::error::{SqlError, SqlResult};
use crate::faults::Faults;
use crate::repl::{Applier, Lag, Source};
use crate::server;
use crate::tablet::{Identity, Tablet};

/// How a tablet is made.
#[derive(Clone, Debug)]
pub struct SimOptions {
    /// Its name, for logs and for the fault routes.
    pub alias: String,
    /// Where it listens; port 0 picks one.
    pub addr: String,
    /// `@@server_id`.
    pub server_id: u32,
    /// The databases it begins with.
    pub databases: Vec<String>,
    /// The seed of all its chances: fault rates, latencies, `RAND()`, `UUID()`.
    pub seed: u64,
    /// `VERSION()`, also in the greeting.
    pub server_version: String,
    /// Whether it begins read-only.
    pub read_only: bool,
    /// The most connections at once; one more is answered with 1040.
    pub max_connections: usize,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            alias: "sim".to_owned(),
            addr: "127.0.0.1:0".to_owned(),
            server_id: 1,
            databases: Vec::new(),
            seed: 1,
            server_version: "10.11.6-MariaDB-shardgate-sim".to_owned(),
            read_only: false,
            max_connections: 500,
        }
    }
}

/// Why a tablet could not start, or a local statement failed.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// It cannot listen there.
    #[error("cannot listen on {addr}: {source}")]
    Listen {
        /// The address asked for.
        addr: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A statement failed, or the engine could not start.
    #[error("{0}")]
    Sql(#[from] SqlError),
    /// The blocking pool is gone: the runtime is shutting down.
    #[error("the runtime is shutting down")]
    Runtime,
}

/// Rows of a local query, each cell as text.
pub type LocalRows = Vec<Vec<Option<String>>>;

struct Inner {
    tablet: Arc<Tablet>,
    addr: SocketAddr,
    stop: CancellationToken,
    server: Mutex<Option<JoinHandle<()>>>,
    local: tokio::sync::Mutex<Option<Box<Session>>>,
    follower: Mutex<Option<Follower>>,
}

/// The task that follows another tablet, and what stops it.
struct Follower {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

/// A running tablet. Clones are the same tablet; it stops when the last is dropped, or by [`SimTablet::shutdown`].
#[derive(Clone)]
pub struct SimTablet {
    inner: Arc<Inner>,
}

impl fmt::Debug for SimTablet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimTablet")
            .field("alias", &self.alias())
            .field("addr", &self.addr())
            .finish()
    }
}

impl SimTablet {
    /// Starts a tablet. User `root` comes in without a password, and so does everybody else.
    pub async fn start(options: SimOptions) -> Result<Self, SimError> {
        let listen = |source| SimError::Listen {
            addr: options.addr.clone(),
            source,
        };
        let listener = tokio::net::TcpListener::bind(&options.addr)
            .await
            .map_err(listen)?;
        let addr = listener.local_addr().map_err(listen)?;
        let identity = Identity {
            alias: options.alias.clone(),
            server_id: options.server_id,
            seed: options.seed,
            version: options.server_version.clone(),
            port: addr.port(),
            read_only: options.read_only,
        };
        let tablet = Tablet::new(identity, &options.databases)?;
        let stop = CancellationToken::new();
        let server = tokio::spawn(server::run(
            Arc::clone(&tablet),
            listener,
            options.max_connections,
            stop.clone(),
        ));
        let inner = Inner {
            tablet,
            addr,
            stop,
            server: Mutex::new(Some(server)),
            local: tokio::sync::Mutex::new(None),
            follower: Mutex::new(None),
        };
        Ok(Self {
            inner: Arc::new(inner),
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
        self.inner.tablet.alias()
    }

    /// Its `@@server_id`.
    #[must_use]
    pub fn server_id(&self) -> u32 {
        self.inner.tablet.origin().server_id
    }

    /// Its faults.
    #[must_use]
    pub fn faults(&self) -> &Arc<Faults> {
        &self.inner.tablet.faults
    }

    /// How many clients are connected.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.inner.tablet.connections()
    }

    /// How long each statement that runs now has been running, longest first.
    #[must_use]
    pub fn running(&self) -> Vec<Duration> {
        self.inner.tablet.running()
    }

    /// Makes it refuse writes with 1290, or take them. Once this returns with `on` nothing is committed any more: a
    /// transaction that has written is answered 1290 at its COMMIT and rolled back. A restart forgets it.
    pub fn set_read_only(&self, on: bool) {
        self.inner.tablet.set_read_only(on);
    }

    /// Whether it refuses writes.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.inner.tablet.is_read_only()
    }

    /// The end of its log, as `MariaDB` writes a GTID: `0-1-42`; empty if nothing was committed.
    #[must_use]
    pub fn gtid(&self) -> String {
        self.inner.tablet.replication_log().end().gtid()
    }

    /// Kills its process, as SIGKILL would: connections close without a word, transactions are lost, what was
    /// committed stays. Returns when nobody can reach it any more. Faults stay set.
    pub async fn kill(&self) {
        self.inner.tablet.die();
        let mut listening = self.inner.tablet.listening();
        // An error is a tablet that is gone, too.
        let _ = listening.wait_for(|listening| !listening).await;
        *self.inner.local.lock().await = None;
    }

    /// Starts a killed process again, at the same address and as it was configured: read-only set at run time is lost.
    pub async fn restart(&self) {
        self.inner.tablet.start_again();
        let refusing = self.faults().refusing();
        let mut listening = self.inner.tablet.listening();
        if !*refusing.borrow() {
            let _ = listening.wait_for(|listening| *listening).await;
        }
    }

    /// Whether it was killed.
    #[must_use]
    pub fn is_down(&self) -> bool {
        self.inner.tablet.is_down()
    }

    pub(crate) fn tablet(&self) -> &Arc<Tablet> {
        &self.inner.tablet
    }

    /// Runs statements, separated by semicolons, inside the tablet: no network, no faults, all in one transaction (DDL
    /// commits what was before it). Written to the replication log like any other.
    pub async fn execute_local(&self, sql: &str) -> Result<(), SimError> {
        self.local(sql.to_owned(), true).await.map(|_| ())
    }

    /// The same, for one query whose rows are wanted.
    pub async fn query_local(&self, sql: &str) -> Result<LocalRows, SimError> {
        self.local(sql.to_owned(), false).await
    }

    async fn local(&self, sql: String, one_transaction: bool) -> Result<LocalRows, SimError> {
        let mut slot = self.inner.local.lock().await;
        let tablet = Arc::clone(self.tablet());
        let open = slot.take();
        let ran = tokio::task::spawn_blocking(move || -> Result<_, SqlError> {
            let mut session = match open {
                Some(s) => s,
                None => {
                    let id = tablet.next_id();
                    Box::new(Session::open(tablet, id, "root@localhost".to_owned())?)
                }
            };
            let out = run_script(&mut session, &sql, one_transaction);
            let ended = if out.is_ok() {
                session.commit()
            } else {
                session.rollback()
            };
            Ok((session, out.and_then(|rows| ended.map(|()| rows))))
        })
        .await
        .map_err(|_| SimError::Runtime)??;
        *slot = Some(ran.0);
        Ok(ran.1?)
    }

    /// Makes this tablet follow another's log, from the end of its own. It follows nobody else any more.
    pub(crate) async fn follow(&self, primary: &Self, lag: Duration) -> Result<(), SimError> {
        self.unfollow().await;
        let source = Source {
            log: primary.tablet().replication_log(),
            addr: primary.addr(),
            origin: primary.tablet().origin(),
            down: primary.tablet().down(),
        };
        let applier = Applier::new(source, self.tablet().replication_log(), lag);
        let id = self.tablet().next_id();
        let session = Box::new(Session::open(
            Arc::clone(self.tablet()),
            id,
            "system user@".to_owned(),
        )?);
        self.tablet().set_applier(Some(Arc::clone(&applier)));
        let stop = self.inner.stop.child_token();
        let run = Arc::clone(&applier).run(Arc::clone(self.tablet()), session, stop.clone());
        let mut faults = self.tablet().faults.lag();
        let stopped = stop.clone();
        let follow_faults = async move {
            // A fault's lag stands in for the configured one while it is set.
            loop {
                let fault = *faults.borrow_and_update();
                let configured = Lag {
                    delay: applier.configured(),
                    rate: None,
                };
                applier.set_lag(fault.unwrap_or(configured));
                if faults.changed().await.is_err() {
                    return;
                }
            }
        };
        let task = tokio::spawn(async move {
            // The applier itself decides when it can stop; the faults' task has nothing to lose.
            tokio::join!(run, stopped.run_until_cancelled(follow_faults));
        });
        *self.follower() = Some(Follower { stop, task });
        Ok(())
    }

    fn follower(&self) -> std::sync::MutexGuard<'_, Option<Follower>> {
        self.inner.follower.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this tablet follow nobody. Returns when nothing of the other's log is applied any more.
    pub(crate) async fn unfollow(&self) {
        let follower = self.follower().take();
        if let Some(Follower { stop, task }) = follower {
            stop.cancel();
            // An applier that panicked is as stopped as one that ended.
            let _ = task.await;
        }
        self.tablet().set_applier(None);
    }

    /// Sets a replica's lag.
    pub(crate) fn set_lag(&self, lag: Duration) {
        if let Some(applier) = self.tablet().applier() {
            applier.configure(lag);
        }
    }

    /// Waits until a replica has applied all that its primary has logged by now. `false`: it has stopped before.
    pub(crate) async fn caught_up(&self) -> bool {
        match self.tablet().applier() {
            Some(applier) => applier.caught_up().await,
            None => true,
        }
    }

    /// Stops: no new connections, the open ones cut, the rows deleted with the last clone.
    pub async fn shutdown(&self) {
        self.inner.stop.cancel();
        let server = self
            .inner
            .server
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(server) = server {
            // A server that panicked is as stopped as one that ended.
            let _ = server.await;
        }
        let follower = self.follower().take();
        if let Some(Follower { stop, task }) = follower {
            stop.cancel();
            let _ = task.await;
        }
    }
}

struct Collect(LocalRows);

impl Sink for Collect {
    fn columns(&mut self, _: &[ColumnMeta]) -> SqlResult<()> {
        self.0.clear();
        Ok(())
    }
    fn row(&mut self, cells: &[Option<Vec<u8>>]) -> SqlResult<()> {
        let text = |c: &Option<Vec<u8>>| c.as_ref().map(|b| String::from_utf8_lossy(b).into_owned());
        self.0.push(cells.iter().map(text).collect());
        Ok(())
    }
}

fn run_script(session: &mut Session, sql: &str, one_transaction: bool) -> SqlResult<LocalRows> {
    let mut sink = Collect(Vec::new());
    let ranges =
        shardgate_sql::split_statements(sql.as_bytes(), &session.lex_options()).map_err(SqlError::syntax)?;
    session.local = true;
    for range in ranges {
        // DDL ends the transaction; the next statement is in a new one.
        session.txn.active = one_transaction;
        let parsed = Parsed::new(&sql.as_bytes()[range], session.lex_options())?;
        if session.needs_lock(&parsed) {
            session.take_lock(session.tablet.write_lock().blocking_lock_owned());
        }
        session.execute(&parsed, &mut sink)?;
    }
    Ok(sink.0)
}
