//! The bounds of all buffers.

use std::time::Duration;

use crate::base::ShardId;

/// How requests are buffered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSettings {
    /// Whether any is.
    pub enabled: bool,
    /// Whether it is only counted what would be.
    pub dry_run: bool,
    /// Requests of all shards together.
    pub size: usize,
    /// Bytes of their statements.
    pub bytes: usize,
    /// How long one request waits at most.
    pub window: Duration,
    /// How long a shard buffers at most.
    pub max_failover_duration: Duration,
    /// From the end of one buffering of a shard to the next, at least.
    pub min_time_between_failovers: Duration,
    /// How many requests of a shard that waited are sent at once.
    pub drain_concurrency: usize,
    /// Only these keyspaces (`k`) and shards (`k/s`); all if empty.
    pub only: Vec<String>,
}

impl Default for BufferSettings {
    fn default() -> Self {
        Self {
            enabled: true,
            dry_run: false,
            size: 1000,
            bytes: 64 << 20,
            window: Duration::from_secs(20),
            max_failover_duration: Duration::from_secs(20),
            min_time_between_failovers: Duration::from_mins(1),
            drain_concurrency: 10,
            only: Vec::new(),
        }
    }
}

impl BufferSettings {
    /// Whether requests of this shard are buffered.
    #[must_use]
    pub fn covers(&self, shard: &ShardId) -> bool {
        let named = |name: &String| match name.split_once('/') {
            Some((keyspace, of)) => shard.keyspace.as_str() == keyspace && shard.shard.as_str() == of,
            None => shard.keyspace.as_str() == name,
        };
        self.enabled && (self.only.is_empty() || self.only.iter().any(named))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_named_alone_or_by_their_keyspace() {
        let only = |names: &[&str]| BufferSettings {
            only: names.iter().map(|n| (*n).to_owned()).collect(),
            ..BufferSettings::default()
        };
        let covers = |names: &[&str], shard: &str| only(names).covers(&ShardId::new("k", shard));
        assert!(covers(&[], "-80") && covers(&["k"], "-80") && covers(&["k/-80"], "-80"));
        assert!(!covers(&["other"], "-80") && !covers(&["k/80-"], "-80"));
        let off = BufferSettings {
            enabled: false,
            ..BufferSettings::default()
        };
        assert!(!off.covers(&ShardId::new("k", "-80")));
    }
}
