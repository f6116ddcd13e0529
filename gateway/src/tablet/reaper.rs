//! What happens to a connection that was let go while its tablet still owed an answer.
//!
//! The client is gone, or was answered at its deadline; its statement still runs. The reaper ends it: `KILL QUERY` over a
//! connection of its own to the same server, a grace for the answer to end, `KILL CONNECTION`, close. A connection that was
//! ever sent a KILL is closed and never pooled: the KILL may arrive after the statement it was meant for, and would then
//! interrupt somebody else's.
//!
//! Connections arrive through a channel without a bound, so that a drop never blocks; what bounds it is the pools' slots:
//! `abandoned_max` connections of one tablet give theirs back at once, further ones only when they are gone.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use shardgate_wire::stream::Probe;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::connection::{Backend, Connection};
use super::slots::Slot;
use super::{NoConnection, TabletError};
use crate::base::TabletAlias;
use crate::base::clock::{self, Instant};
use crate::base::metrics::{Counter, Metrics};

/// Bounds of the reaper.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReaperOptions {
    /// How long an answer may take to end after `KILL QUERY`, and again after `KILL CONNECTION`.
    pub grace: Duration,
    /// How long opening the kill channel and sending one KILL may take.
    pub kill_timeout: Duration,
    /// Connections of one tablet whose slots are lent again while they are being reaped.
    pub abandoned_max: usize,
}

impl Default for ReaperOptions {
    fn default() -> Self {
        Self {
            grace: Duration::from_millis(500),
            kill_timeout: Duration::from_secs(1),
            abandoned_max: 20,
        }
    }
}

/// A connection whose answer nobody waits for.
#[derive(Debug)]
pub struct Abandoned {
    conn: Connection,
    backend: Arc<Backend>,
    /// The pool's slot it was lent with.
    slot: Option<Slot>,
}

impl Abandoned {
    /// Hands over a connection, the credentials a kill channel needs, and the slot it was lent with.
    pub fn new(conn: Connection, backend: Arc<Backend>, slot: Option<Slot>) -> Self {
        Self { conn, backend, slot }
    }
}

/// For how long a tablet that needs no KILL any more has its kill channel kept, at least.
const FORGET: Duration = Duration::from_mins(10);

/// `Uptime` counts whole seconds.
const UPTIME_SLACK: Duration = Duration::from_secs(2);

/// Where abandoned connections are handed in; never blocks, cheap to clone.
#[derive(Clone, Debug)]
pub struct ReaperHandle {
    queue: mpsc::UnboundedSender<Abandoned>,
}

impl ReaperHandle {
    /// Hands in a connection. If the reaper has ended, dropping it closes the socket.
    pub fn abandon(&self, abandoned: Abandoned) {
        let _ = self.queue.send(abandoned);
    }
}

/// How an abandoned connection ended, for the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The answer was already ending; no KILL was needed.
    Finished,
    /// `KILL QUERY` ended it.
    KillQuery,
    /// Only `KILL CONNECTION` ended it.
    KillConnection,
    /// The server did not obey; the socket was closed.
    Closed,
    /// It carried a COMMIT, which is never killed: waited for, then closed.
    Commit,
}

#[derive(Debug)]
struct Counters {
    finished: Arc<Counter>,
    kill_query: Arc<Counter>,
    kill_connection: Arc<Counter>,
    closed: Arc<Counter>,
    overflow: Arc<Counter>,
    commit: Arc<Counter>,
}

impl Counters {
    fn new(metrics: &Metrics) -> Self {
        let of = |label| metrics.reaped.handle(label);
        Self {
            finished: of("finished"),
            kill_query: of("kill_query"),
            kill_connection: of("kill_connection"),
            closed: of("closed"),
            overflow: of("overflow"),
            commit: of("commit"),
        }
    }

    fn count(&self, end: End) {
        match end {
            End::Finished => self.finished.inc(),
            End::KillQuery => self.kill_query.inc(),
            End::KillConnection => self.kill_connection.inc(),
            End::Closed => self.closed.inc(),
            End::Commit => self.commit.inc(),
        }
    }
}

/// What the reaper keeps of one tablet.
#[derive(Debug)]
struct PerTablet {
    places: Arc<Semaphore>,
    /// The kill channel: one connection, kept for the next KILL, since a server that needs killing may have no room for a
    /// new one.
    channel: AsyncMutex<Option<Channel>>,
}

/// A connection that carries KILLs.
#[derive(Debug)]
struct Channel {
    conn: Connection,
    /// When its server was started, if the server says: a connection opened before is not on this server.
    booted: Option<Instant>,
}

/// The task that ends abandoned statements.
#[derive(Debug)]
pub struct Reaper {
    options: ReaperOptions,
    queue: mpsc::UnboundedReceiver<Abandoned>,
    /// With the moment each was last needed.
    tablets: Mutex<HashMap<TabletAlias, (Instant, Arc<PerTablet>)>>,
    counters: Arc<Counters>,
}

impl Reaper {
    /// A reaper and the handle through which it is fed.
    pub fn new(options: ReaperOptions, metrics: &Metrics) -> (Self, ReaperHandle) {
        let (send, queue) = mpsc::unbounded_channel();
        let counters = Arc::new(Counters::new(metrics));
        (
            Self {
                options,
                queue,
                tablets: Mutex::default(),
                counters,
            },
            ReaperHandle { queue: send },
        )
    }

    /// Runs until `stop`, then finishes what it has.
    pub async fn run(mut self, stop: CancellationToken) {
        let tracker = TaskTracker::new();
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                next = self.queue.recv() => match next {
                    Some(abandoned) => self.start(abandoned, &tracker),
                    None => break,
                },
            }
        }
        while let Ok(abandoned) = self.queue.try_recv() {
            self.start(abandoned, &tracker);
        }
        tracker.close();
        tracker.wait().await;
    }

    /// Starts reaping one connection. The first `abandoned_max` of a tablet give their slots back at once, so that a few
    /// stuck statements do not shrink the pool; further ones keep theirs until they are gone, so that what runs on a
    /// sick tablet stays bounded.
    fn start(&self, mut abandoned: Abandoned, tracker: &TaskTracker) {
        let tablet = self.tablet(&abandoned.conn.info().alias);
        let place = Arc::clone(&tablet.places).try_acquire_owned().ok();
        let slot = abandoned.slot.take();
        let kept = if place.is_some() { None } else { slot };
        if kept.is_some() {
            self.counters.overflow.inc();
        }
        let options = self.options.clone();
        let counters = Arc::clone(&self.counters);
        tracker.spawn(async move {
            let _held = (place, kept);
            let alias = abandoned.conn.info().alias.clone();
            let end = reap(abandoned, &options, &tablet.channel).await;
            tracing::debug!(tablet = %alias, end = ?end, "reaped an abandoned connection");
            counters.count(end);
        });
    }

    fn tablet(&self, alias: &TabletAlias) -> Arc<PerTablet> {
        let mut tablets = self
            .tablets
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = clock::now();
        if let Some((needed, known)) = tablets.get_mut(alias) {
            *needed = now;
            return Arc::clone(known);
        }
        // Tablets come and go; what is kept of those that went must not stay for ever.
        tablets.retain(|_, (needed, tablet)| {
            Arc::strong_count(tablet) > 1 || now.saturating_duration_since(*needed) < FORGET
        });
        let fresh = Arc::new(PerTablet {
            places: Arc::new(Semaphore::new(self.options.abandoned_max)),
            channel: AsyncMutex::new(None),
        });
        tablets.insert(alias.clone(), (now, Arc::clone(&fresh)));
        fresh
    }
}

/// Ends one statement. Every path closes the connection.
async fn reap(abandoned: Abandoned, options: &ReaperOptions, channel: &AsyncMutex<Option<Channel>>) -> End {
    let Abandoned {
        mut conn,
        backend,
        slot: _,
    } = abandoned;
    if conn.carries_commit() {
        // Nobody may cut a COMMIT short: whether it happened would be unknown. It is given the long grace and no KILL.
        let _ = drained(&mut conn, options.grace * 4).await;
        return End::Commit;
    }
    // An answer that is already here needs no KILL.
    if drained(&mut conn, Duration::ZERO).await {
        conn.quit().await;
        return End::Finished;
    }
    if send_kill(&conn, &backend, "KILL QUERY ", options, channel)
        .await
        .is_ok()
        && drained(&mut conn, options.grace).await
    {
        conn.quit().await;
        return End::KillQuery;
    }
    let killed = send_kill(&conn, &backend, "KILL ", options, channel)
        .await
        .is_ok();
    // The server ends the connection: that it is lost is what was asked for.
    if killed && tokio::time::timeout(options.grace, conn.drain()).await.is_ok() {
        return End::KillConnection;
    }
    End::Closed
}

/// Whether the answer ended within the time. A connection that was lost has not ended its statement.
async fn drained(conn: &mut Connection, within: Duration) -> bool {
    tokio::time::timeout(within, conn.drain()).await.is_ok() && conn.is_usable()
}

/// Sends one KILL over the tablet's kill channel, and only if the same server answers there: after a restart or a failover
/// the number would belong to somebody else.
async fn send_kill(
    conn: &Connection,
    backend: &Backend,
    how: &str,
    options: &ReaperOptions,
    channel: &AsyncMutex<Option<Channel>>,
) -> Result<(), TabletError> {
    let deadline = clock::now() + options.kill_timeout;
    let refused = |reason: &str| TabletError::Connect {
        tablet: conn.info().alias.clone(),
        reason: reason.to_owned(),
        by: NoConnection::Unreachable,
    };
    let waiting = tokio::time::timeout_at(deadline, channel.lock());
    let mut place = waiting
        .await
        .map_err(|_| refused("the kill channel did not become free"))?;
    // Taken out while it is used: one whose use was cut short is not used again.
    let mut kept = place.take().filter(|kept| kept.conn.info() == conn.info());
    let alive = kept
        .as_mut()
        .is_some_and(|kept| kept.conn.probe() == Probe::Quiet);
    let mut open = match kept.filter(|_| alive) {
        Some(kept) => kept,
        None => Channel::open(conn, backend, deadline).await?,
    };
    let older = open
        .booted
        .is_some_and(|booted| conn.opened() + UPTIME_SLACK < booted);
    if open.conn.identity() != conn.identity() || older {
        return Err(refused("another server answers there now"));
    }
    let result = open
        .conn
        .simple(&format!("{how}{}", conn.thread_id()), deadline)
        .await;
    if open.conn.is_usable() {
        *place = Some(open);
    }
    result
}

impl Channel {
    /// Opens a channel to the server that a connection leads to.
    async fn open(conn: &Connection, backend: &Backend, deadline: Instant) -> Result<Self, TabletError> {
        let mut opened = Connection::open(conn.info(), backend, deadline).await?;
        let uptime = tokio::time::timeout_at(deadline, opened.uptime())
            .await
            .ok()
            .flatten();
        let booted = uptime.and_then(|up| clock::now().checked_sub(up));
        Ok(Self { conn: opened, booted })
    }
}
