//! The switch that `KILL` throws and a running command listens to.
//!
//! A session waits for it at every command, so listening costs no lock: one task listens, the session's own, and its
//! waker is all that has to be known.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Poll;

use futures::task::AtomicWaker;

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

/// What ends a session that runs no command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Somebody killed the connection.
    Killed,
    /// The gateway is to stop.
    Stopping,
}

/// The switch between a session and whoever kills it. Only one task at a time may wait for it.
#[derive(Debug, Default)]
pub struct KillSwitch {
    state: AtomicU8,
    stopping: AtomicBool,
    session: AtomicWaker,
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
        self.session.wake();
    }

    /// Tells the session that the gateway is to stop.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.session.wake();
    }

    /// Whether the gateway is to stop.
    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
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
        self.until(|| self.pending()).await
    }

    /// Waits until the connection as a whole is killed.
    pub async fn connection_killed(&self) {
        self.until(|| (self.pending() == Some(Kill::Connection)).then_some(()))
            .await;
    }

    /// Waits until the session is to end between two commands.
    pub async fn ending(&self) -> Ending {
        self.until(|| match self.pending() {
            Some(Kill::Connection) => Some(Ending::Killed),
            Some(Kill::Query) | None => self.is_stopping().then_some(Ending::Stopping),
        })
        .await
    }

    async fn until<T>(&self, seen: impl Fn() -> Option<T>) -> T {
        std::future::poll_fn(|cx| {
            // Registered before the look, so that a throw between the two is not missed.
            self.session.register(cx.waker());
            seen().map_or(Poll::Pending, Poll::Ready)
        })
        .await
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
    async fn a_stop_ends_a_session_and_no_statement() {
        let k = Arc::new(KillSwitch::default());
        let waiter = tokio::spawn({
            let k = Arc::clone(&k);
            async move { k.ending().await }
        });
        tokio::task::yield_now().await;
        k.throw(Kill::Query);
        tokio::task::yield_now().await;
        assert!(!waiter.is_finished());
        k.begin_command();
        k.stop();
        assert_eq!(waiter.await.unwrap(), Ending::Stopping);
        assert_eq!(k.pending(), None);
        k.throw(Kill::Connection);
        assert_eq!(k.ending().await, Ending::Killed);
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
