//! The primary's log of committed transactions, bounded: a replica that falls behind its start is broken for good.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Event;

/// The most transactions kept, and the most bytes of their statements.
const MAX_ENTRIES: usize = 200_000;
const MAX_BYTES: usize = 128 << 20;

/// A committed transaction.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its number, from 1.
    pub(crate) sequence: u64,
    /// Where it ends, in bytes since the log began.
    pub(crate) position: u64,
    /// When it was committed.
    pub(crate) at: Instant,
    pub(crate) events: Arc<[Event]>,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    sequence: u64,
    position: u64,
}

/// The log.
#[derive(Debug, Default)]
pub(crate) struct Log {
    state: Mutex<State>,
    grown: Notify,
}

impl Log {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a transaction.
    pub(crate) fn append(&self, events: Vec<Event>) {
        let size: usize = events.iter().map(|e| e.text.len()).sum();
        let mut state = self.state();
        state.sequence += 1;
        state.position += size as u64;
        state.bytes += size;
        let entry = Entry {
            sequence: state.sequence,
            position: state.position,
            at: Instant::now(),
            events: events.into(),
        };
        state.entries.push_back(entry);
        while state.entries.len() > MAX_ENTRIES || state.bytes > MAX_BYTES {
            let Some(old) = state.entries.pop_front() else {
                break;
            };
            state.bytes -= old.events.iter().map(|e| e.text.len()).sum::<usize>();
        }
        drop(state);
        self.grown.notify_waiters();
    }

    /// The last transaction's number and end.
    pub(crate) fn end(&self) -> (u64, u64) {
        let state = self.state();
        (state.sequence, state.position)
    }

    /// The transaction after `sequence`: `Ok(None)` if there is none yet, `Err` if it was thrown away already.
    pub(crate) fn after(&self, sequence: u64) -> Result<Option<Entry>, ()> {
        let state = self.state();
        let Some(first) = state.entries.front() else {
            return if sequence >= state.sequence {
                Ok(None)
            } else {
                Err(())
            };
        };
        if sequence + 1 < first.sequence {
            return Err(());
        }
        let at = usize::try_from(sequence + 1 - first.sequence).unwrap_or(usize::MAX);
        Ok(state.entries.get(at).cloned())
    }

    /// Waits for a transaction after `sequence`.
    pub(crate) async fn wait(&self, sequence: u64) -> Result<Entry, ()> {
        loop {
            let grown = self.grown.notified();
            tokio::pin!(grown);
            grown.as_mut().enable();
            if let Some(entry) = self.after(sequence)? {
                return Ok(entry);
            }
            grown.await;
        }
    }
}
