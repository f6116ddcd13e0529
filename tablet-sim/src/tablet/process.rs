//! Sessions as others see them: the process list, and KILL.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rusqlite::InterruptHandle;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Tablet;
use crate::engine::functions::Shared;
use crate::error::{SqlError, SqlResult};

/// A session as others see it.
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) account: String,
    shared: Arc<Shared>,
    interrupt: InterruptHandle,
    /// Wakes what waits in a statement when it is killed.
    wake: Notify,
    /// The connection was killed.
    pub(crate) dead: CancellationToken,
    doing: Mutex<Doing>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("account", &self.account)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Doing {
    database: Option<String>,
    statement: Option<String>,
    since: Instant,
    /// A fault makes the running statement deaf to KILL.
    deaf: bool,
}

impl Process {
    fn doing(&self) -> std::sync::MutexGuard<'_, Doing> {
        self.doing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A statement begins.
    pub(crate) fn begin(&self, statement: &[u8], database: Option<&str>, deaf: bool) {
        self.shared.clear_kill();
        let shown = String::from_utf8_lossy(&statement[..statement.len().min(4096)]).into_owned();
        let mut doing = self.doing();
        *doing = Doing {
            database: database.map(str::to_owned),
            statement: Some(shown),
            since: Instant::now(),
            deaf,
        };
    }

    /// It has ended.
    pub(crate) fn end(&self, database: Option<&str>) {
        let mut doing = self.doing();
        *doing = Doing {
            database: database.map(str::to_owned),
            statement: None,
            since: Instant::now(),
            deaf: false,
        };
    }

    /// Kills the running statement, if there is one that listens.
    pub(crate) fn kill_query(&self) {
        let doing = self.doing();
        if doing.statement.is_some() && !doing.deaf {
            self.shared.kill(|| self.interrupt.interrupt());
            self.wake.notify_waiters();
        }
    }

    /// The same, for what must end whether it listens or not: a client that is gone, a shutdown.
    pub(crate) fn abort(&self) {
        self.shared.kill(|| self.interrupt.interrupt());
        self.wake.notify_waiters();
    }

    fn kill_connection(&self) {
        let deaf = self.doing().deaf;
        if !deaf {
            self.kill_query();
            self.dead.cancel();
        }
    }

    /// Resolves when the running statement is killed. Cancel-safe.
    pub(crate) async fn killed(&self) {
        loop {
            let wake = self.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            if self.shared.is_killed() {
                return;
            }
            wake.await;
        }
    }
}

/// A line of SHOW PROCESSLIST.
pub(crate) struct ProcessLine {
    pub(crate) id: u32,
    pub(crate) account: String,
    pub(crate) database: Option<String>,
    pub(crate) command: &'static str,
    pub(crate) seconds: u64,
    pub(crate) statement: Option<String>,
}

impl Tablet {
    pub(crate) fn next_id(&self) -> u32 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Enters a session into the list; the guard takes it out.
    pub(crate) fn enlist(
        self: &Arc<Self>,
        id: u32,
        account: String,
        shared: Arc<Shared>,
        interrupt: InterruptHandle,
    ) -> Enlisted {
        let doing = Doing {
            database: None,
            statement: None,
            since: Instant::now(),
            deaf: false,
        };
        let process = Arc::new(Process {
            id,
            account,
            shared,
            interrupt,
            wake: Notify::new(),
            dead: CancellationToken::new(),
            doing: Mutex::new(doing),
        });
        self.list().insert(id, Arc::clone(&process));
        Enlisted {
            tablet: Arc::clone(self),
            process,
        }
    }

    fn list(&self) -> std::sync::MutexGuard<'_, BTreeMap<u32, Arc<Process>>> {
        self.processes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn connections(&self) -> usize {
        self.list().len()
    }

    pub(crate) fn processes(&self) -> Vec<ProcessLine> {
        self.list()
            .values()
            .map(|p| {
                let doing = p.doing();
                ProcessLine {
                    id: p.id,
                    account: p.account.clone(),
                    database: doing.database.clone(),
                    command: if doing.statement.is_some() {
                        "Query"
                    } else {
                        "Sleep"
                    },
                    seconds: doing.since.elapsed().as_secs(),
                    statement: doing.statement.clone(),
                }
            })
            .collect()
    }

    /// How long each statement that runs now has been running, longest first.
    pub(crate) fn running(&self) -> Vec<Duration> {
        let list = self.list();
        let busy = list.values().filter_map(|p| {
            let doing = p.doing();
            doing.statement.as_ref().map(|_| doing.since.elapsed())
        });
        let mut times: Vec<Duration> = busy.collect();
        times.sort_unstable_by(|a, b| b.cmp(a));
        times
    }

    /// KILL.
    pub(crate) fn kill(&self, id: u64, query_only: bool) -> SqlResult<()> {
        let found = u32::try_from(id)
            .ok()
            .and_then(|id| self.list().get(&id).cloned());
        let process =
            found.ok_or_else(|| SqlError::new(1094, *b"HY000", format!("Unknown thread id: {id}")))?;
        if query_only {
            process.kill_query();
        } else {
            process.kill_connection();
        }
        Ok(())
    }
}

/// A session's place in the list, given up on drop.
pub(crate) struct Enlisted {
    tablet: Arc<Tablet>,
    pub(crate) process: Arc<Process>,
}

impl Drop for Enlisted {
    fn drop(&mut self) {
        self.tablet.list().remove(&self.process.id);
    }
}
