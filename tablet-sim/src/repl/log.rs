//! A tablet's log of committed transactions, bounded: a replica that falls behind its start is broken for good.
//!
//! A replica writes what it applies to its own log, under the numbers of the tablet that committed it, so that any
//! tablet can be promoted and followed. Numbers with their origins are what GTIDs are made of.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

use super::Event;
use crate::error::SqlError;

/// The most transactions kept, and the most bytes of their statements.
const MAX_ENTRIES: usize = 200_000;
const MAX_BYTES: usize = 128 << 20;

/// The tablet that committed a transaction first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) server_id: u32,
    pub(crate) uuid: Arc<str>,
}

/// A committed transaction.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its number, from 1.
    pub(crate) sequence: u64,
    /// Where it ends, in bytes since the log began.
    pub(crate) position: u64,
    /// When it was committed.
    pub(crate) at: Instant,
    pub(crate) origin: Origin,
    pub(crate) events: Arc<[Event]>,
}

/// Where a log ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct End {
    /// The last transaction's number, 0 for none.
    pub(crate) sequence: u64,
    /// Where it ends.
    pub(crate) position: u64,
    /// Who committed it.
    pub(crate) origin: Option<Origin>,
}

impl End {
    /// The position as `MariaDB` writes it: domain, server, number.
    pub(crate) fn gtid(&self) -> String {
        match &self.origin {
            Some(origin) => format!("0-{}-{}", origin.server_id, self.sequence),
            None => String::new(),
        }
    }
}

/// A run of numbers of one origin.
#[derive(Clone, Debug)]
struct Span {
    origin: Origin,
    from: u64,
    to: u64,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    bytes: usize,
    sequence: u64,
    position: u64,
    /// All numbers ever, also of entries thrown away; one span a term of a primary.
    spans: Vec<Span>,
}

impl State {
    fn origin_of(&self, sequence: u64) -> Option<&Origin> {
        let found = self
            .spans
            .iter()
            .rev()
            .find(|s| s.from <= sequence && sequence <= s.to);
        found.map(|s| &s.origin)
    }

    fn push(&mut self, entry: Entry) {
        self.sequence = entry.sequence;
        self.position = entry.position;
        self.bytes += size(&entry.events);
        match self.spans.last_mut() {
            Some(span) if span.origin == entry.origin => span.to = entry.sequence,
            _ => self.spans.push(Span {
                origin: entry.origin.clone(),
                from: entry.sequence,
                to: entry.sequence,
            }),
        }
        self.entries.push_back(entry);
        while self.entries.len() > MAX_ENTRIES || self.bytes > MAX_BYTES {
            let Some(old) = self.entries.pop_front() else {
                break;
            };
            self.bytes -= size(&old.events);
        }
    }
}

fn size(events: &[Event]) -> usize {
    events.iter().map(|e| e.text.len()).sum()
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

    /// Appends a transaction of the tablet's own.
    pub(crate) fn append(&self, origin: Origin, events: Vec<Event>) {
        let mut state = self.state();
        let entry = Entry {
            sequence: state.sequence + 1,
            position: state.position + size(&events) as u64,
            at: Instant::now(),
            origin,
            events: events.into(),
        };
        state.push(entry);
        drop(state);
        self.grown.notify_waiters();
    }

    /// Appends a transaction of another tablet, which must come next.
    pub(crate) fn relay(&self, entry: Entry) -> Result<(), SqlError> {
        let mut state = self.state();
        if entry.sequence != state.sequence + 1 {
            let message = format!(
                "An attempt was made to binlog GTID 0-{}-{} which would create an out-of-order sequence number",
                entry.origin.server_id, entry.sequence
            );
            return Err(SqlError::new(1950, *b"HY000", message));
        }
        state.push(entry);
        drop(state);
        self.grown.notify_waiters();
        Ok(())
    }

    /// Where it ends.
    pub(crate) fn end(&self) -> End {
        let state = self.state();
        End {
            sequence: state.sequence,
            position: state.position,
            origin: state.origin_of(state.sequence).cloned(),
        }
    }

    /// The last transaction that another tablet than this committed.
    pub(crate) fn last_foreign(&self, own: u32) -> End {
        let state = self.state();
        match state.spans.iter().rev().find(|s| s.origin.server_id != own) {
            Some(span) => End {
                sequence: span.to,
                position: 0,
                origin: Some(span.origin.clone()),
            },
            None => End::default(),
        }
    }

    /// Every transaction as `MySQL` writes it: `uuid:1-5,uuid:6-9`.
    pub(crate) fn executed(&self) -> String {
        let mut out = String::new();
        for span in &self.state().spans {
            let comma = if out.is_empty() { "" } else { "," };
            // Writing to a String cannot fail.
            let _ = if span.from == span.to {
                write!(out, "{comma}{}:{}", span.origin.uuid, span.from)
            } else {
                write!(out, "{comma}{}:{}-{}", span.origin.uuid, span.from, span.to)
            };
        }
        out
    }

    /// Whether a log that ends there is a beginning of this one.
    pub(crate) fn continues(&self, end: &End) -> bool {
        end.sequence == 0 || self.state().origin_of(end.sequence) == end.origin.as_ref()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(server_id: u32) -> Origin {
        Origin {
            server_id,
            uuid: format!("u{server_id}").into(),
        }
    }

    #[tokio::test]
    async fn positions_name_each_transaction_and_the_tablet_that_committed_it() {
        let (a, b) = (Log::default(), Log::default());
        assert_eq!((a.end().gtid(), a.executed()), (String::new(), String::new()));
        for _ in 0..3 {
            a.append(origin(1), Vec::new());
        }
        for n in 0..3 {
            b.relay(a.after(n).unwrap().unwrap()).unwrap();
        }
        assert!(b.relay(a.after(0).unwrap().unwrap()).is_err());
        assert_eq!(b.end(), a.end());
        b.append(origin(2), Vec::new());
        assert_eq!(b.end().gtid(), "0-2-4");
        assert_eq!(b.executed(), "u1:1-3,u2:4");
        assert_eq!(b.last_foreign(2).gtid(), "0-1-3");
        // What the old primary commits alone is no part of the new one's log, though the number is the same.
        assert!(b.continues(&a.end()));
        a.append(origin(1), Vec::new());
        assert!(!b.continues(&a.end()) && !a.continues(&b.end()));
    }
}
