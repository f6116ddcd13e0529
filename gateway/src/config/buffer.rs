//! How requests wait while a shard has no primary. The fields have Vitess's names.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units;

/// `[buffer]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    /// Whether requests wait while their shard has no primary that takes writes. Default `true`. Applied by a reload.
    pub enable_buffer: bool,
    /// Only counts which requests would wait. Default `false`. Applied by a reload.
    pub buffer_dry_run: bool,
    /// Requests that wait at once, in the whole gateway. Half of them are kept in equal parts for the shards, so that
    /// none drives out another's. Default 1000; at least 1. Applied by a reload.
    pub buffer_size: usize,
    /// Bytes of their statements, likewise. Default `64MiB`; at least `1MiB`. Applied by a reload.
    #[serde(deserialize_with = "units::size")]
    pub buffer_bytes: usize,
    /// How long one request waits at most; its own timeout may be shorter. Default `20s`; must not be 0. Applied by a
    /// reload.
    #[serde(deserialize_with = "units::duration")]
    pub buffer_window: Duration,
    /// How long a shard's requests wait at most, from the first one on; then all of them fail and the shard's breaker
    /// opens. Default `20s`; must not be shorter than `buffer_window`. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub buffer_max_failover_duration: Duration,
    /// From the end of one failover of a shard to the beginning of the next for which requests wait. Default `1m`; 0 none.
    /// Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub buffer_min_time_between_failovers: Duration,
    /// How many requests of a shard that waited are sent at once when its primary is back. Default 0: half of
    /// `pool.size`. Applied by a reload.
    pub buffer_drain_concurrency: usize,
    /// The keyspaces (`commerce`) and shards (`commerce/-40`) whose requests wait. Default: empty, which is all. Applied by
    /// a reload.
    pub buffer_keyspace_shards: Vec<String>,
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            enable_buffer: true,
            buffer_dry_run: false,
            buffer_size: 1000,
            buffer_bytes: 64 << 20,
            buffer_window: Duration::from_secs(20),
            buffer_max_failover_duration: Duration::from_secs(20),
            buffer_min_time_between_failovers: Duration::from_mins(1),
            buffer_drain_concurrency: 0,
            buffer_keyspace_shards: Vec::new(),
        }
    }
}

impl Buffer {
    /// `known` says whether there is a keyspace, or a keyspace's shard, of a name.
    pub(super) fn validate(&self, known: impl Fn(&str, Option<&str>) -> bool, problems: &mut Problems) {
        if self.buffer_size == 0 {
            problems.add(
                "buffer.buffer_size",
                "must be at least 1; `enable_buffer = false` switches it off",
            );
        }
        if self.buffer_bytes < 1 << 20 {
            problems.add("buffer.buffer_bytes", "must be at least 1MiB");
        }
        if self.buffer_window.is_zero() {
            problems.add("buffer.buffer_window", "must not be 0");
        }
        if self.buffer_max_failover_duration < self.buffer_window {
            problems.add(
                "buffer.buffer_max_failover_duration",
                "must not be shorter than buffer_window: no request could wait that long",
            );
        }
        for name in &self.buffer_keyspace_shards {
            let found = match name.split_once('/') {
                Some((keyspace, shard)) => known(keyspace, Some(shard)),
                None => known(name, None),
            };
            if !found {
                let message =
                    format!("there is no keyspace or shard `{name}`; shards are named keyspace/shard");
                problems.add("buffer.buffer_keyspace_shards", message);
            }
        }
    }
}
