//! Who waits inside the proxy: a KILL must find a statement that a fault holds back before the server has seen it, and
//! must not reach one that a fault makes deaf.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// One connection, by the id that the server gave it.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Its running statement does not hear KILL.
    deaf: AtomicBool,
    /// A fault holds it back inside the proxy.
    waiting: AtomicBool,
    killed: AtomicBool,
    wake: Notify,
    /// The connection was killed.
    pub(super) dead: CancellationToken,
}

impl Held {
    /// A statement begins.
    pub(super) fn begin(&self, deaf: bool) {
        self.killed.store(false, Ordering::SeqCst);
        self.deaf.store(deaf, Ordering::SeqCst);
    }

    /// A fault begins, or ends, to hold it back.
    pub(super) fn hold(&self, on: bool) {
        self.waiting.store(on, Ordering::SeqCst);
    }

    /// Resolves when the statement is killed. Cancel-safe.
    pub(super) async fn killed(&self) {
        loop {
            let wake = self.wake.notified();
            tokio::pin!(wake);
            wake.as_mut().enable();
            if self.killed.load(Ordering::SeqCst) {
                return;
            }
            wake.await;
        }
    }
}

/// What becomes of a KILL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kill {
    /// The server decides.
    Forward,
    /// It is answered with OK and goes no further.
    Swallow,
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Registry(Mutex<HashMap<u32, Arc<Held>>>);

impl Registry {
    fn map(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Held>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn len(&self) -> usize {
        self.map().len()
    }

    pub(super) fn enter(&self, id: u32) -> Arc<Held> {
        let held = Arc::new(Held::default());
        self.map().insert(id, Arc::clone(&held));
        held
    }

    /// Takes it out, unless the server has given its id to another meanwhile.
    pub(super) fn leave(&self, id: u32, held: &Arc<Held>) {
        let mut map = self.map();
        if map.get(&id).is_some_and(|h| Arc::ptr_eq(h, held)) {
            map.remove(&id);
        }
    }

    /// A client kills.
    pub(super) fn kill(&self, id: u64, query_only: bool) -> Kill {
        let found = u32::try_from(id).ok().and_then(|id| self.map().get(&id).cloned());
        let Some(held) = found else { return Kill::Forward };
        if held.deaf.load(Ordering::SeqCst) {
            return Kill::Swallow;
        }
        let waiting = held.waiting.load(Ordering::SeqCst);
        if waiting {
            held.killed.store(true, Ordering::SeqCst);
            held.wake.notify_waiters();
        }
        if query_only {
            // The server has not seen the statement, or is done with it.
            return if waiting { Kill::Swallow } else { Kill::Forward };
        }
        held.dead.cancel();
        Kill::Forward
    }
}
