//! The prepared statements of one tablet connection: a bounded map from text to the server's id.
//!
//! The same text read under another `sql_mode` or character set is another statement, so those are part of the key.
//!
//! A client's prepared statement belongs to its session, not to a connection; whichever connection runs it next prepares
//! the text if it has not yet. The statement used longest ago is closed when there are too many.

use std::collections::HashMap;

use bytes::Bytes;

/// One statement as the server knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    id: u32,
    used: u64,
}

/// A text, and the settings it is read under ([`Settings::reading`](super::Settings::reading)).
type Key = (u64, Bytes);

/// The statements of one connection.
#[derive(Debug)]
pub struct StatementCache {
    capacity: usize,
    clock: u64,
    entries: HashMap<Key, Entry>,
}

impl StatementCache {
    /// At most `capacity` statements, at least one.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            clock: 0,
            entries: HashMap::new(),
        }
    }

    /// The id of a text prepared before.
    pub fn get(&mut self, reading: u64, text: &Bytes) -> Option<u32> {
        self.clock += 1;
        let entry = self.entries.get_mut(&(reading, text.clone()))?;
        entry.used = self.clock;
        Some(entry.id)
    }

    /// Remembers a text; gives the id of a statement that must be closed for it, if any.
    pub fn insert(&mut self, reading: u64, text: Bytes, id: u32) -> Option<u32> {
        self.clock += 1;
        let evicted = if self.entries.len() >= self.capacity {
            self.evict()
        } else {
            None
        };
        let replaced = self
            .entries
            .insert((reading, text), Entry { id, used: self.clock })
            .map(|e| e.id);
        replaced.or(evicted)
    }

    /// Forgets a text: the server said that its statement no longer holds.
    pub fn remove(&mut self, reading: u64, text: &Bytes) -> Option<u32> {
        self.entries.remove(&(reading, text.clone())).map(|e| e.id)
    }

    /// How many statements are prepared.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A scan, but only once the cache is full and only for a new text: the prepare itself costs a round trip.
    fn evict(&mut self) -> Option<u32> {
        let oldest = self
            .entries
            .iter()
            .min_by_key(|(_, e)| e.used)
            .map(|(key, _)| key.clone())?;
        self.entries.remove(&oldest).map(|e| e.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(s: &'static str) -> Bytes {
        Bytes::from_static(s.as_bytes())
    }

    #[test]
    fn the_statement_used_longest_ago_is_closed_first() {
        let mut c = StatementCache::new(2);
        assert_eq!(c.insert(0, text("a"), 1), None);
        assert_eq!(c.insert(0, text("b"), 2), None);
        assert_eq!(c.get(0, &text("a")), Some(1));
        assert_eq!(c.insert(0, text("c"), 3), Some(2));
        assert_eq!(c.get(0, &text("b")), None);
        assert_eq!(c.get(0, &text("a")), Some(1));
        assert_eq!(c.len(), 2);
    }

    #[test]
    fn a_text_prepared_again_closes_its_older_id() {
        let mut c = StatementCache::new(8);
        c.insert(0, text("a"), 1);
        assert_eq!(c.insert(0, text("a"), 2), Some(1));
        assert_eq!(c.remove(0, &text("a")), Some(2));
        assert!(c.is_empty());
    }
}
