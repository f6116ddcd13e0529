//! Who is connected and what they run.

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use dashmap::DashMap;

use crate::base::clock::{self, Instant};
use crate::exec::{Kill, KillSwitch};

/// How much of a running statement `SHOW PROCESSLIST` keeps; `FULL` shows no more than this.
pub const MAX_INFO: usize = 4096;

/// What a session shows of itself.
#[derive(Clone, Debug)]
pub struct Process {
    /// The target as `USE` would take it.
    pub database: Option<String>,
    /// `Query`, `Sleep`, `Execute`, ... as the servers name commands.
    pub command: &'static str,
    /// Since when.
    pub since: Instant,
    /// The running statement, at most [`MAX_INFO`] bytes of it.
    pub info: Option<Bytes>,
    /// Whether the running statement was longer than what is kept.
    pub state: &'static str,
}

/// One connected client as others see it.
#[derive(Debug)]
pub struct SessionHandle {
    /// The connection id the client was given.
    pub id: u32,
    user: Mutex<Arc<str>>,
    /// The client's address.
    pub host: String,
    /// Its kill switch.
    pub kill: KillSwitch,
    process: Mutex<Process>,
}

impl SessionHandle {
    /// Notes what the session does now.
    pub fn enter(&self, command: &'static str, info: Option<Bytes>) {
        let info = info.map(|b| {
            if b.len() > MAX_INFO {
                b.slice(..MAX_INFO)
            } else {
                b
            }
        });
        let mut p = lock(&self.process);
        p.command = command;
        p.since = clock::now();
        p.state = if command == "Sleep" { "" } else { "executing" };
        p.info = info;
    }

    /// The authenticated user.
    pub fn user(&self) -> Arc<str> {
        Arc::clone(
            &self
                .user
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner),
        )
    }

    /// Notes that another user logged in on the same connection.
    pub fn set_user(&self, user: String) {
        *self
            .user
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = user.into();
    }

    /// Notes the session's target.
    pub fn set_database(&self, database: Option<String>) {
        lock(&self.process).database = database;
    }

    /// What it does now.
    pub fn process(&self) -> Process {
        lock(&self.process).clone()
    }
}

/// All connected clients, by connection id.
#[derive(Debug, Default)]
pub struct SessionRegistry {
    sessions: DashMap<u32, Arc<SessionHandle>>,
    next_id: AtomicU32,
    stopping: AtomicBool,
}

/// Takes its session out of the registry when dropped.
#[derive(Debug)]
pub struct Registration {
    registry: Arc<SessionRegistry>,
    /// The session's entry.
    pub handle: Arc<SessionHandle>,
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.sessions.remove(&self.handle.id);
    }
}

impl SessionRegistry {
    /// An id that no open connection has. Ids start at 1 and wrap around after 2^32, skipping those in use.
    pub fn next_id(&self) -> u32 {
        loop {
            let id = self.next_id.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
            if id != 0 && !self.sessions.contains_key(&id) {
                return id;
            }
        }
    }

    /// Enters a client that has authenticated.
    pub fn register(self: &Arc<Self>, id: u32, user: String, host: String) -> Registration {
        let handle = Arc::new(SessionHandle {
            id,
            user: Mutex::new(user.into()),
            host,
            kill: KillSwitch::default(),
            process: Mutex::new(Process {
                database: None,
                command: "Sleep",
                since: clock::now(),
                info: None,
                state: "",
            }),
        });
        self.sessions.insert(id, Arc::clone(&handle));
        // Looked at once it is entered: either this sees that all are told to stop, or whoever tells them sees it.
        if self.stopping.load(Ordering::SeqCst) {
            handle.kill.stop();
        }
        Registration {
            registry: Arc::clone(self),
            handle,
        }
    }

    /// Throws a session's kill switch; false if there is no such session.
    pub fn kill(&self, id: u64, kill: Kill) -> bool {
        let Ok(id) = u32::try_from(id) else { return false };
        let Some(handle) = self.sessions.get(&id).map(|h| Arc::clone(&h)) else {
            return false;
        };
        handle.kill.throw(kill);
        true
    }

    /// Tells all sessions, and those to come, that the gateway is to stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        for session in self.list() {
            session.kill.stop();
        }
    }

    /// The session of an id.
    pub fn get(&self, id: u32) -> Option<Arc<SessionHandle>> {
        self.sessions.get(&id).map(|h| Arc::clone(&h))
    }

    /// All sessions, by id.
    pub fn list(&self) -> Vec<Arc<SessionHandle>> {
        let mut all: Vec<_> = self.sessions.iter().map(|e| Arc::clone(e.value())).collect();
        all.sort_by_key(|h| h.id);
        all
    }

    /// How many are connected.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether nobody is connected.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }
}

/// A poisoned lock here means a panic while copying plain values: the values are whole, so go on.
fn lock(m: &Mutex<Process>) -> std::sync::MutexGuard<'_, Process> {
    m.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_old_and_new_are_told_to_stop() {
        let r = Arc::new(SessionRegistry::default());
        let old = r.register(1, "root".into(), "127.0.0.1:1".into());
        assert!(!old.handle.kill.is_stopping());
        r.stop();
        let new = r.register(2, "root".into(), "127.0.0.1:2".into());
        assert!(old.handle.kill.is_stopping() && new.handle.kill.is_stopping());
    }

    #[test]
    fn a_session_leaves_the_registry_with_its_registration() {
        let r = Arc::new(SessionRegistry::default());
        let id = r.next_id();
        let reg = r.register(id, "root".into(), "127.0.0.1:1".into());
        assert!(r.kill(u64::from(id), Kill::Query));
        assert!(!r.kill(u64::from(id) + (1 << 32), Kill::Query));
        drop(reg);
        assert!(!r.kill(u64::from(id), Kill::Query));
        assert!(r.is_empty());
    }
}
