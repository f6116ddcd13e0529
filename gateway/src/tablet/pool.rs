//! The pool of connections to one tablet.
//!
//! A connection is lent as a [`PooledConn`]. However it is dropped, at whatever await, nothing leaks: a clean connection
//! goes back, one that still owes an answer goes to the [`Reaper`](super::reaper), everything else is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use shardgate_breaker::{Outcome, Work};
use shardgate_wire::stream::Probe;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connection::{Backend, Connection, TabletInfo};
use super::reaper::{Abandoned, ReaperHandle};
use super::slots::{Slot, SlotError, Slots};
use super::{NoConnection, Settings, TabletError};
use crate::base::clock::{self, Instant};
use crate::base::metrics::{Counter, Metrics, Timing};
use crate::guard::{Attempt, Gate, Pass, Share};

/// Bounds of one tablet's pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolOptions {
    /// Connections in use at most.
    pub size: usize,
    /// Requests that may wait for one at most; the next is refused at once.
    pub max_waiters: usize,
    /// An idle connection older than this is pinged before it is lent.
    pub idle_check: Duration,
    /// An idle connection older than this is closed; zero keeps it.
    pub max_idle: Duration,
    /// A connection older than this is closed when it comes back; zero keeps it.
    pub max_lifetime: Duration,
    /// How long opening a connection may take.
    pub connect_timeout: Duration,
    /// Connections that sessions may keep to themselves at most.
    pub max_reserved: usize,
    /// Prepared statements kept on one connection.
    pub prepared_statements: usize,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            size: 20,
            max_waiters: 10,
            idle_check: Duration::from_secs(30),
            max_idle: Duration::from_mins(5),
            max_lifetime: Duration::from_hours(1),
            connect_timeout: Duration::from_secs(2),
            max_reserved: 10,
            prepared_statements: 128,
        }
    }
}

/// Counters of one pool, as `alias.event`.
#[derive(Debug)]
struct PoolCounters {
    opened: Arc<Counter>,
    closed: Arc<Counter>,
    refused: Arc<Counter>,
    waited: Arc<Counter>,
    stale: Arc<Counter>,
    /// Statements sent to the tablet, to the first packet of the answer.
    calls: Arc<Timing>,
    /// Of those, the ones that the tablet is to blame for.
    errors: Arc<Counter>,
}

impl PoolCounters {
    fn new(metrics: &Metrics, info: &TabletInfo) -> Self {
        let of = |event: &str| metrics.pool.handle(&format!("{}.{event}", info.alias));
        Self {
            opened: of("opened"),
            closed: of("closed"),
            refused: of("refused"),
            waited: of("waited"),
            stale: of("stale"),
            calls: metrics.tablet_call.handle(&call_label(info)),
            errors: metrics.tablet_call_errors.handle(&call_label(info)),
        }
    }
}

/// `Execute.keyspace.shard.role`, as Vitess labels its calls.
fn call_label(info: &TabletInfo) -> String {
    format!(
        "Execute.{}.{}.{}",
        info.shard.keyspace, info.shard.shard, info.role
    )
}

/// Idle connections, the one used last at the end.
#[allow(clippy::vec_box)] // a connection is more than a thousand bytes, and is moved at every step of lending it
type Idle = Vec<Box<Connection>>;

/// The connections to one tablet for one backend user and one set of capabilities.
#[derive(Debug)]
pub struct Pool {
    info: Arc<TabletInfo>,
    gate: Arc<Gate>,
    backend: Arc<Backend>,
    options: PoolOptions,
    slots: Slots,
    reservations: Arc<Semaphore>,
    idle: Mutex<Idle>,
    closed: AtomicBool,
    reaper: ReaperHandle,
    counters: PoolCounters,
    metrics: Arc<Metrics>,
}

impl Pool {
    /// An empty pool; connections are opened when they are asked for.
    pub fn new(
        (info, gate): (Arc<TabletInfo>, Arc<Gate>),
        backend: Arc<Backend>,
        options: PoolOptions,
        reaper: ReaperHandle,
        metrics: &Arc<Metrics>,
    ) -> Arc<Self> {
        let counters = PoolCounters::new(metrics, &info);
        let slots =
            Slots::new(options.size, options.max_waiters).with_beyond(gate.beyond_share(options.size));
        let reservations = Arc::new(Semaphore::new(options.max_reserved));
        Arc::new(Self {
            info,
            gate,
            backend,
            options,
            slots,
            reservations,
            idle: Mutex::default(),
            closed: AtomicBool::new(false),
            reaper,
            counters,
            metrics: Arc::clone(metrics),
        })
    }

    /// The tablet.
    pub fn info(&self) -> &Arc<TabletInfo> {
        &self.info
    }

    /// What stands before the tablet.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// Asks the guards for the leave to [`Self::checkout`], without waiting.
    pub fn enter(&self, work: Work, now: Instant) -> Result<Pass, TabletError> {
        self.gate.enter(work, now).map_err(|e| self.refused(e))
    }

    /// Slots in use, requests waiting, idle connections.
    pub fn usage(&self) -> (usize, usize, usize) {
        (self.slots.busy(), self.slots.waiting(), self.lock_idle().len())
    }

    /// Whether requests wait and no slot is free.
    pub fn is_full(&self) -> bool {
        self.slots.waiting() > 0 && self.slots.busy() >= self.slots.size()
    }

    /// A connection, preferably one that has `settings` already; waits in line until `deadline`.
    pub async fn checkout(
        self: &Arc<Self>,
        mut pass: Pass,
        settings: &Settings,
        deadline: Option<Instant>,
    ) -> Result<PooledConn, TabletError> {
        let slot = self.slot(pass.work(), deadline).await?;
        while let Some(mut conn) = self.take_idle(settings) {
            match self.revive(&mut conn, deadline).await {
                Revived::Alive => return Ok(self.lend(conn, slot, pass, Unused::Idle)),
                Revived::Closed => {}
                // A tablet that does not answer a ping will not answer the next one either.
                Revived::Silent => self.drop_idle(),
            }
        }
        // Boxed: a login's future is large, and nearly all statements find a connection that is open.
        let conn = Box::pin(self.open(&mut pass, deadline)).await?;
        Ok(self.lend(conn, slot, pass, Unused::Fresh))
    }

    fn lend(self: &Arc<Self>, conn: Box<Connection>, slot: Slot, pass: Pass, unused: Unused) -> PooledConn {
        PooledConn {
            conn: Some(conn),
            slot: Some(slot),
            pass: Some(pass),
            unused,
            pool: Arc::clone(self),
        }
    }

    /// Lends nothing any more; idle connections are closed, those in use when they come back.
    pub fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.slots.close();
        let idle = std::mem::take(&mut *self.lock_idle());
        self.counters.closed.add(idle.len() as u64);
    }

    /// Closes what has been idle too long. Called from time to time.
    pub fn sweep(&self, now: Instant) {
        let old = {
            let mut idle = self.lock_idle();
            let (old, keep) = std::mem::take(&mut *idle)
                .into_iter()
                .partition::<Vec<_>, _>(|c| self.too_old(c, now));
            *idle = keep;
            old
        };
        self.counters.closed.add(old.len() as u64);
    }

    async fn slot(&self, work: Work, deadline: Option<Instant>) -> Result<Slot, TabletError> {
        let started = clock::now();
        let (busy, size) = (self.slots.busy(), self.slots.size());
        let share = self.gate.share(work, (busy, size), started);
        if busy >= size {
            self.counters.waited.inc();
        }
        let got = match share {
            Share::Within => self.slots.acquire(deadline).await,
            Share::Beyond { .. } => self.slots.acquire_beyond(deadline).await,
        };
        got.map_err(|e| {
            self.counters.refused.inc();
            let tablet = self.info.alias.clone();
            match (e, share) {
                (SlotError::Full, Share::Beyond { held }) => {
                    self.refused(self.gate.share_refused(held, size))
                }
                (SlotError::Full, Share::Within) => TabletError::PoolFull {
                    tablet,
                    size,
                    waiters: self.slots.waiting(),
                },
                (SlotError::TimedOut, _) => TabletError::PoolTimeout {
                    tablet,
                    waited: clock::now().duration_since(started),
                },
                (SlotError::Closed, _) => TabletError::Draining { tablet },
            }
        })
    }

    /// The idle connection used last whose settings fit, else the one used last.
    fn take_idle(&self, settings: &Settings) -> Option<Box<Connection>> {
        let mut idle = self.lock_idle();
        let fits = idle
            .iter()
            .rposition(|c| c.applied().fingerprint() == settings.fingerprint());
        match fits {
            Some(i) => Some(idle.remove(i)),
            None => idle.pop(),
        }
    }

    /// Whether an idle connection still lives. A server that closed it, or sent a parting word, is noticed here, before a
    /// statement is sent: then nothing can have run.
    async fn revive(&self, conn: &mut Connection, deadline: Option<Instant>) -> Revived {
        let now = clock::now();
        let quiet = !self.too_old(conn, now) && conn.probe() == Probe::Quiet;
        let fresh = now.duration_since(conn.idle_since()) < self.options.idle_check;
        if quiet && (fresh || conn.ping(self.connect_deadline(deadline)).await.is_ok()) {
            return Revived::Alive;
        }
        self.counters.stale.inc();
        self.counters.closed.inc();
        if quiet && conn.owes_answer() {
            Revived::Silent
        } else {
            Revived::Closed
        }
    }

    /// Closes all idle connections.
    fn drop_idle(&self) {
        let idle = std::mem::take(&mut *self.lock_idle());
        self.counters.closed.add(idle.len() as u64);
    }

    /// A connection that nobody has used before.
    pub async fn checkout_fresh(
        self: &Arc<Self>,
        mut pass: Pass,
        deadline: Option<Instant>,
    ) -> Result<PooledConn, TabletError> {
        let slot = self.slot(pass.work(), deadline).await?;
        let conn = Box::pin(self.open(&mut pass, deadline)).await?;
        Ok(self.lend(conn, slot, pass, Unused::Fresh))
    }

    /// Opens a connection. That it fails is held against the tablet; that it succeeds says little, the statement that
    /// follows will tell.
    async fn open(&self, pass: &mut Pass, deadline: Option<Instant>) -> Result<Box<Connection>, TabletError> {
        let started = clock::now();
        let attempt = self
            .gate
            .start_connect(pass, started)
            .map_err(|e| self.refused(e))?;
        match Connection::open(&self.info, &self.backend, self.connect_deadline(deadline)).await {
            Ok(conn) => {
                self.gate.connected(pass, attempt);
                self.counters.opened.inc();
                Ok(Box::new(
                    conn.keeping_statements(self.options.prepared_statements),
                ))
            }
            Err(e) => {
                let now = clock::now();
                match &e {
                    TabletError::Connect {
                        by: NoConnection::TimedOut,
                        ..
                    } => {
                        attempt.gave_up(&self.gate, Some(self.options.connect_timeout), now);
                    }
                    other => {
                        let role = self.info.role;
                        let outcome = self.gate.judged(other.outcome(role), other.is_sign(role), now);
                        attempt.record(&self.gate, outcome, now);
                    }
                }
                Err(e)
            }
        }
    }

    fn refused(&self, refused: crate::guard::Refused) -> TabletError {
        let label = format!("{}.{}", refused.label(), self.info.shard);
        self.metrics.refused.handle(&label).inc();
        TabletError::Guard(refused)
    }

    fn connect_deadline(&self, deadline: Option<Instant>) -> Instant {
        let own = clock::now() + self.options.connect_timeout;
        deadline.map_or(own, |d| d.min(own))
    }

    fn too_old(&self, conn: &Connection, now: Instant) -> bool {
        let over = |limit: Duration, since: Instant| !limit.is_zero() && now.duration_since(since) >= limit;
        over(self.options.max_idle, conn.idle_since()) || over(self.options.max_lifetime, conn.opened())
    }

    fn give_back(&self, mut conn: Box<Connection>, slot: Option<Slot>) {
        if conn.owes_answer() {
            self.reaper
                .abandon(Abandoned::new(*conn, Arc::clone(&self.backend), slot));
            return;
        }
        let now = clock::now();
        let keep = conn.is_clean() && !self.closed.load(Ordering::Acquire) && !self.too_old(&conn, now);
        if keep {
            conn.mark_idle(now);
            self.lock_idle().push(conn);
        } else {
            self.counters.closed.inc();
        }
        // The slot is freed after the connection is back, so that the next waiter finds it.
        drop(slot);
    }

    /// A poisoned lock means a panic while moving connections in or out of the list, which stays a valid list.
    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A session's claim to keep a connection; given up when dropped.
#[derive(Debug)]
pub struct Reservation {
    /// What session state lives on the connection.
    pub what: &'static str,
    _permit: OwnedSemaphorePermit,
}

/// What became of an idle connection.
enum Revived {
    /// It lives.
    Alive,
    /// Its server closed it, or it is too old.
    Closed,
    /// Its server does not answer.
    Silent,
}

/// A connection lent by its pool.
#[derive(Debug)]
pub struct PooledConn {
    /// Only `None` while being dropped.
    conn: Option<Box<Connection>>,
    slot: Option<Slot>,
    /// The leave it was lent by, until the first attempt on it.
    pass: Option<Pass>,
    unused: Unused,
    pool: Arc<Pool>,
}

/// Whether a lent connection has been used since it was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unused {
    /// It lay idle before, and nothing has been sent on it since.
    Idle,
    /// It was opened for whoever has it, and nothing has been sent on it since.
    Fresh,
    /// It has been used.
    No,
}

impl PooledConn {
    /// The tablet it leads to.
    pub fn info(&self) -> &Arc<TabletInfo> {
        &self.pool.info
    }

    /// What it was lent for.
    pub fn work(&self) -> Work {
        self.pass.as_ref().map_or(Work::CONNECT, Pass::work)
    }

    /// Whether a statement has been sent on it since it was lent.
    pub fn is_unused(&self) -> Unused {
        self.unused
    }

    /// The pool it is lent by.
    pub fn pool(&self) -> &Arc<Pool> {
        &self.pool
    }

    /// What stands before the tablet.
    pub fn gate(&self) -> &Arc<Gate> {
        &self.pool.gate
    }

    /// Begins an attempt: the first byte of a statement is about to be sent.
    pub fn start(&mut self, work: Work, now: Instant) -> Result<Attempt, TabletError> {
        self.unused = Unused::No;
        match self.pass.take() {
            Some(mut pass) => self
                .pool
                .gate
                .start(&mut pass, now)
                .map_err(|e| self.pool.refused(e)),
            None => Ok(self.pool.gate.start_held(work, now)),
        }
    }

    /// Counts a statement that was sent on it: how long its answer took to begin, and what that says of the tablet.
    pub fn count_call(&self, took: Duration, outcome: Outcome) {
        self.pool.counters.calls.record(took);
        match outcome {
            Outcome::Success => return,
            Outcome::Neutral => {}
            Outcome::Timeout
            | Outcome::Failure
            | Outcome::Saturation
            | Outcome::PrimaryGone
            | Outcome::RoleChange => self.pool.counters.errors.inc(),
        }
        let label = format!("{}.{}", call_label(&self.pool.info), outcome.label());
        self.pool.metrics.tablet_call_outcomes.handle(&label).inc();
    }

    /// Lets a session keep the connection to itself beyond one statement or transaction; `None` if as many are kept as
    /// may be.
    pub fn reserve(&self, what: &'static str) -> Option<Reservation> {
        let permit = Arc::clone(&self.pool.reservations).try_acquire_owned().ok()?;
        Some(Reservation {
            what,
            _permit: permit,
        })
    }

    /// How many connections of this pool sessions may keep.
    pub fn max_reserved(&self) -> usize {
        self.pool.options.max_reserved
    }

    /// Closes the connection instead of giving it back.
    pub fn discard(mut self) {
        if self.conn.take().is_some() {
            self.pool.counters.closed.inc();
        }
    }
}

impl std::ops::Deref for PooledConn {
    type Target = Connection;
    #[allow(clippy::expect_used)] // `conn` is taken only by `discard` and `drop`, which own `self`
    fn deref(&self) -> &Connection {
        self.conn.as_ref().expect("lent connection")
    }
}

impl std::ops::DerefMut for PooledConn {
    #[allow(clippy::expect_used)] // as above
    fn deref_mut(&mut self) -> &mut Connection {
        self.conn.as_mut().expect("lent connection")
    }
}

impl Drop for PooledConn {
    fn drop(&mut self) {
        if let Some(conn) = self.conn.take() {
            self.pool.give_back(conn, self.slot.take());
        }
    }
}
