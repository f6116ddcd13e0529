//! A replica's applier: waits for the log, then for what holds it back, then replays.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::log::Origin;
use super::{Entry, Lag, Log, Pacer};
use crate::engine::parse::Parsed;
use crate::engine::session::{Session, Sink};
use crate::engine::types::ColumnMeta;
use crate::error::{SqlError, SqlResult};
use crate::tablet::Tablet;

/// Whom a replica follows.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) log: Arc<Log>,
    pub(crate) addr: SocketAddr,
    pub(crate) origin: Origin,
    /// Whether the source has died.
    pub(crate) down: watch::Receiver<bool>,
}

/// Which of a replica's two threads stopped, and why.
#[derive(Clone, Debug)]
pub(crate) enum Broken {
    /// The one that fetches the log.
    Io(SqlError),
    /// The one that applies it.
    Sql(SqlError),
}

/// Follows another tablet's log, into its own.
#[derive(Debug)]
pub(crate) struct Applier {
    pub(crate) source: Source,
    own: Arc<Log>,
    configured: Mutex<Duration>,
    lag: watch::Sender<Lag>,
    /// The last transaction that was received, if no more will be.
    last: watch::Sender<Option<u64>>,
    broken: Mutex<Option<Broken>>,
    moved: Notify,
}

impl Applier {
    pub(crate) fn new(source: Source, own: Arc<Log>, lag: Duration) -> Arc<Self> {
        let configured = Lag {
            delay: lag,
            rate: None,
        };
        Arc::new(Self {
            source,
            own,
            configured: Mutex::new(lag),
            lag: watch::channel(configured).0,
            last: watch::channel(None).0,
            broken: Mutex::default(),
            moved: Notify::new(),
        })
    }

    /// The lag as configured, while no fault stands in for it.
    pub(crate) fn configured(&self) -> Duration {
        *self.configured.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes it; it holds from now on, fault or not.
    pub(crate) fn configure(&self, delay: Duration) {
        *self.configured.lock().unwrap_or_else(PoisonError::into_inner) = delay;
        self.set_lag(Lag { delay, rate: None });
    }

    pub(crate) fn set_lag(&self, lag: Lag) {
        self.lag.send_replace(lag);
    }

    pub(crate) fn lag(&self) -> Lag {
        *self.lag.borrow()
    }

    /// Why it stopped, if it did.
    pub(crate) fn broken(&self) -> Option<Broken> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stop_for(&self, why: Broken) {
        *self.broken.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        self.moved.notify_waiters();
    }

    /// Whether the log is being fetched: yes, or trying to.
    pub(crate) fn connecting(&self) -> bool {
        *self.source.down.borrow()
    }

    /// Seconds behind the primary: the age of the oldest transaction not applied yet. `None` when replication stopped.
    pub(crate) fn seconds_behind(&self) -> Option<u64> {
        if self.broken().is_some() || self.connecting() {
            return None;
        }
        match self.source.log.after(self.own.end().sequence) {
            Ok(Some(entry)) => Some(entry.at.elapsed().as_secs()),
            Ok(None) => Some(0),
            Err(()) => None,
        }
    }

    /// Waits until everything in the source's log now has been applied; `false`: replication has stopped before.
    pub(crate) async fn caught_up(&self) -> bool {
        self.reached(self.source.log.end().sequence).await
    }

    /// Receives nothing after this transaction, and applies what is left as fast as it can, as a replica does that is
    /// to be promoted. `false`: replication has stopped before.
    pub(crate) async fn finish(&self, last: u64) -> bool {
        self.last.send_replace(Some(last));
        self.set_lag(Lag::default());
        self.reached(last).await
    }

    async fn reached(&self, target: u64) -> bool {
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            if self.own.end().sequence >= target {
                return true;
            }
            if self.broken().is_some() {
                return false;
            }
            moved.await;
        }
    }

    /// Replays until stopped, the log is lost, or a statement fails. A transaction is never left half way.
    pub(crate) async fn run(
        self: Arc<Self>,
        tablet: Arc<Tablet>,
        mut session: Box<Session>,
        stop: CancellationToken,
    ) {
        session.applier = true;
        let end = self.own.end();
        if !self.source.log.continues(&end) {
            self.stop_for(Broken::Io(purged(&format!(
                "Error: connecting slave requested to start from GTID {}, which is not in the master's binlog",
                end.gtid()
            ))));
            return;
        }
        let mut pacer = Pacer::new(tablet.reads(), Instant::now());
        let lock = tablet.write_lock();
        loop {
            let next = async {
                let entry = self.next(&tablet, &mut pacer).await?;
                Some((entry, Arc::clone(&lock).lock_owned().await))
            };
            let Some(Some((entry, guard))) = stop.run_until_cancelled(next).await else {
                return;
            };
            session.take_lock(guard);
            let relayed = entry.clone();
            let own = Arc::clone(&self.own);
            let applied = tokio::task::spawn_blocking(move || {
                let out = apply(&mut session, &entry, || own.relay(relayed));
                (session, out)
            })
            .await;
            let Ok((back, out)) = applied else { return };
            session = back;
            if let Err(e) = out {
                tracing::warn!(alias = tablet.alias(), error = %e, "replication stopped");
                self.stop_for(Broken::Sql(e));
                return;
            }
            self.moved.notify_waiters();
        }
    }

    /// The next transaction, when it may be applied. `None`: replication has stopped.
    async fn next(&self, tablet: &Tablet, pacer: &mut Pacer) -> Option<Entry> {
        let mut down = tablet.down();
        // The tablet's process is gone: nothing is applied until it is back.
        let _ = down.wait_for(|down| !down).await;
        let mut last = self.last.subscribe();
        let sequence = self.own.end().sequence;
        let Ok(entry) = self.source.log.wait(sequence).await else {
            let why = "Could not find GTID state requested by slave in any binlog files";
            self.stop_for(Broken::Io(purged(why)));
            return None;
        };
        if last.borrow_and_update().is_some_and(|last| entry.sequence > last) {
            // Never received. Whoever said so stops this applier.
            std::future::pending::<()>().await;
        }
        let mut lag = self.lag.subscribe();
        loop {
            // A lag that changes meanwhile counts from now on.
            let now = Instant::now();
            let Lag { delay, rate } = *lag.borrow_and_update();
            let wait = match (entry.at + delay).checked_duration_since(now) {
                Some(wait) if !wait.is_zero() => wait,
                _ => match rate.map_or(Ok(()), |rate| pacer.take(rate, tablet.reads(), now)) {
                    Ok(()) => break,
                    Err(wait) => wait,
                },
            };
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = lag.changed() => {}
            }
        }
        if last.borrow_and_update().is_some_and(|last| entry.sequence > last) {
            std::future::pending::<()>().await;
        }
        Some(entry)
    }
}

fn purged(why: &str) -> SqlError {
    SqlError::new(
        1236,
        *b"HY000",
        format!("Got fatal error 1236 from master when reading data from binary log: '{why}'"),
    )
}

/// Replays one transaction; `logged` enters it into the tablet's own log once it is committed.
fn apply(session: &mut Session, entry: &Entry, logged: impl FnOnce() -> SqlResult<()>) -> SqlResult<()> {
    struct Nowhere;
    impl Sink for Nowhere {
        fn columns(&mut self, _: &[ColumnMeta]) -> SqlResult<()> {
            Ok(())
        }
        fn row(&mut self, _: &[Option<Vec<u8>>]) -> SqlResult<()> {
            Ok(())
        }
    }
    session.txn.active = true;
    for event in entry.events.iter() {
        session.db.clone_from(&event.database);
        session.now = event.now;
        session.last_insert_id = event.last_insert_id;
        session.forced_insert_id = event.insert_id;
        session.user_vars.clone_from(&event.user_vars);
        session.replay_seed = Some(event.seed);
        session.vars.put("sql_mode", event.sql_mode.clone());
        session
            .vars
            .put("foreign_key_checks", if event.foreign_keys { "1" } else { "0" });
        let parsed = Parsed::new(&event.text, session.lex_options())?;
        if let Err(e) = session.execute(&parsed, &mut Nowhere) {
            session.rollback()?;
            return Err(e);
        }
    }
    session.commit_keeping_lock()?;
    // Still under the write lock: the log has the order of the commits.
    let out = logged();
    session.commit()?;
    out
}
