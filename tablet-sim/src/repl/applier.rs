//! A replica's applier: waits for the log, then for the lag, then replays.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use super::{Entry, Log};
use crate::engine::parse::Parsed;
use crate::engine::session::{Session, Sink};
use crate::engine::types::ColumnMeta;
use crate::error::{SqlError, SqlResult};
use crate::tablet::Tablet;

/// How far a replica is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// The last transaction applied, and where it ends.
    pub(crate) sequence: u64,
    pub(crate) position: u64,
    /// Why it stopped, if it did.
    pub(crate) error: Option<SqlError>,
}

/// Follows a primary's log.
#[derive(Debug)]
pub(crate) struct Applier {
    log: Arc<Log>,
    source: String,
    lag: watch::Sender<Duration>,
    progress: Mutex<Progress>,
    moved: tokio::sync::Notify,
}

impl Applier {
    pub(crate) fn new(log: Arc<Log>, source: String, lag: Duration) -> Arc<Self> {
        Arc::new(Self {
            log,
            source,
            lag: watch::channel(lag).0,
            progress: Mutex::default(),
            moved: tokio::sync::Notify::new(),
        })
    }

    pub(crate) fn set_lag(&self, lag: Duration) {
        self.lag.send_replace(lag);
    }

    pub(crate) fn lag(&self) -> Duration {
        *self.lag.borrow()
    }

    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn set_progress(&self, f: impl FnOnce(&mut Progress)) {
        f(&mut self.progress.lock().unwrap_or_else(PoisonError::into_inner));
        self.moved.notify_waiters();
    }

    pub(crate) fn log_end(&self) -> (u64, u64) {
        self.log.end()
    }

    /// Seconds behind the primary: the age of the oldest transaction not applied yet. `None` when replication stopped.
    pub(crate) fn seconds_behind(&self) -> Option<u64> {
        let progress = self.progress();
        if progress.error.is_some() {
            return None;
        }
        match self.log.after(progress.sequence) {
            Ok(Some(entry)) => Some(entry.at.elapsed().as_secs()),
            Ok(None) => Some(0),
            Err(()) => None,
        }
    }

    /// Waits until everything in the log now has been applied, or replication has stopped.
    pub(crate) async fn caught_up(&self) {
        let (target, _) = self.log.end();
        loop {
            let moved = self.moved.notified();
            tokio::pin!(moved);
            moved.as_mut().enable();
            let progress = self.progress();
            if progress.sequence >= target || progress.error.is_some() {
                return;
            }
            moved.await;
        }
    }

    /// Replays until the log is lost or a statement fails. Dropped to stop.
    pub(crate) async fn run(self: Arc<Self>, tablet: Arc<Tablet>, mut session: Box<Session>) {
        session.applier = true;
        let mut lag = self.lag.subscribe();
        loop {
            let done = self.progress().sequence;
            let Ok(entry) = self.log.wait(done).await else {
                let message = "Got fatal error 1236 from source when reading data from binary log: 'purged'";
                self.set_progress(|p| p.error = Some(SqlError::new(1236, *b"HY000", message)));
                return;
            };
            // A lag that changes meanwhile counts from now on.
            loop {
                let due = entry.at + *lag.borrow_and_update();
                if due <= Instant::now() {
                    break;
                }
                tokio::select! {
                    () = tokio::time::sleep_until(due) => break,
                    _ = lag.changed() => {}
                }
            }
            session.take_lock(tablet.write_lock().lock_owned().await);
            let (sequence, position) = (entry.sequence, entry.position);
            let applied = tokio::task::spawn_blocking(move || {
                let out = apply(&mut session, &entry);
                (session, out)
            })
            .await;
            let Ok((back, out)) = applied else { return };
            session = back;
            if let Err(e) = out {
                tracing::warn!(alias = tablet.alias(), error = %e, "replication stopped");
                self.set_progress(|p| p.error = Some(e));
                return;
            }
            self.set_progress(|p| (p.sequence, p.position) = (sequence, position));
        }
    }
}

/// Replays one transaction.
fn apply(session: &mut Session, entry: &Entry) -> SqlResult<()> {
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
    session.commit()
}
