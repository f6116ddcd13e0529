//! The switch that `KILL` throws and a running command listens to.

use std::sync::atomic::{AtomicU8, Ordering};

use tokio::sync::Notify;

/// What a `KILL` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kill {
    /// End the running statement; the connection stays.
    Query,
    /// End the connection.
    Connection,
}

const ALIVE: u8 = 0;
const KILL_QUERY: u8 = 1;
const KILL_CONNECTION: u8 = 2;

/// The switch between a session and whoever kills it.
#[derive(Debug, Default)]
pub struct KillSwitch {
    state: AtomicU8,
    notify: Notify,
}

impl KillSwitch {
    /// Asks the session to stop. A connection kill is never weakened by a later query kill.
    pub fn throw(&self, kill: Kill) {
        match kill {
            Kill::Query => {
                // Fails when a kill is pending already, which is at least as strong.
                let _ = self
                    .state
                    .compare_exchange(ALIVE, KILL_QUERY, Ordering::AcqRel, Ordering::Acquire);
            }
            Kill::Connection => self.state.store(KILL_CONNECTION, Ordering::Release),
        }
        self.notify.notify_waiters();
    }

    /// A new command starts: a `KILL QUERY` that came too late for the last one must not end this one.
    pub fn begin_command(&self) {
        let _ = self
            .state
            .compare_exchange(KILL_QUERY, ALIVE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// What was asked for and not yet obeyed.
    pub fn pending(&self) -> Option<Kill> {
        match self.state.load(Ordering::Acquire) {
            KILL_QUERY => Some(Kill::Query),
            KILL_CONNECTION => Some(Kill::Connection),
            _ => None,
        }
    }

    /// Waits until somebody asks.
    pub async fn thrown(&self) -> Kill {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            // Registered before the check, so that a throw between the two is not missed.
            notified.as_mut().enable();
            if let Some(kill) = self.pending() {
                return kill;
            }
            notified.await;
        }
    }

    /// Waits until the connection as a whole is to end: what an idle session listens for.
    pub async fn connection_killed(&self) {
        loop {
            let notified = self.notify.notified();
            tokio::pin!(notified);
            notified.as_mut().enable();
            if self.pending() == Some(Kill::Connection) {
                return;
            }
            notified.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[tokio::test]
    async fn a_late_kill_query_does_not_end_the_next_command() {
        let k = KillSwitch::default();
        k.throw(Kill::Query);
        k.begin_command();
        assert_eq!(k.pending(), None);
        k.throw(Kill::Query);
        assert_eq!(k.thrown().await, Kill::Query);
    }

    #[tokio::test]
    async fn a_connection_kill_survives_the_start_of_a_command_and_a_query_kill() {
        let k = KillSwitch::default();
        k.throw(Kill::Connection);
        k.throw(Kill::Query);
        k.begin_command();
        assert_eq!(k.thrown().await, Kill::Connection);
    }

    #[tokio::test]
    async fn a_kill_thrown_while_waiting_is_seen() {
        let k = Arc::new(KillSwitch::default());
        let waiter = tokio::spawn({
            let k = Arc::clone(&k);
            async move { k.thrown().await }
        });
        tokio::task::yield_now().await;
        k.throw(Kill::Query);
        assert_eq!(waiter.await.unwrap(), Kill::Query);
    }
}
