//! Bounds of counts and memory.

use serde::Deserialize;

use super::problem::Problems;
use super::units;

/// `[limits]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Client connections at once; the next one is refused. Default 2000; at least 1. Applied to new connections by a
    /// reload.
    pub max_connections: usize,
    /// The longest command or row, in bytes; a longer one is refused with error 1153. Keep it at the tablets'
    /// `max_allowed_packet` or below; a tablet whose own is less is named in the log. Default `64MiB`; at least
    /// `16KiB`, at most `1GiB`. Applied to new connections by a reload.
    #[serde(deserialize_with = "units::size")]
    pub max_packet: usize,
    /// What a client may send ahead while its command runs, in bytes; beyond that its socket is left unread. Default
    /// `64KiB`; at least `1KiB`. Applied to new connections by a reload.
    #[serde(deserialize_with = "units::size")]
    pub read_ahead: usize,
    /// Prepared statements of one session. Default 1000; 0 refuses to prepare. Applied by a reload.
    pub max_prepared_statements: usize,
    /// Bytes of `SEND_LONG_DATA` that one session may have waiting. Default `64MiB`; 0 refuses them. Applied by a
    /// reload.
    #[serde(deserialize_with = "units::size")]
    pub long_data: usize,
    /// Bytes of settings and user variables that one session may carry. Default `64KiB`; 0 refuses them. Applied by a
    /// reload.
    #[serde(deserialize_with = "units::size")]
    pub session_settings: usize,
    /// Memory that the rows at hand take while one query's answer is gathered of several shards, in bytes; beyond it the
    /// query fails. Default `64MiB`; at least `64KiB`. Applied to new commands by a reload.
    #[serde(deserialize_with = "units::size")]
    pub query_memory: usize,
    /// The same for all queries together, and for clients' statements longer than 64 KiB while they come and run; beyond it
    /// a query or a statement is refused. Default `512MiB`; at least `query_memory`. Applied by a reload.
    #[serde(deserialize_with = "units::size")]
    pub total_memory: usize,
    /// Plans kept; the least recently used goes first. Default 5000; 0 keeps none. Not changed by a reload.
    pub plan_cache: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 2000,
            max_packet: 64 << 20,
            read_ahead: 64 << 10,
            max_prepared_statements: 1000,
            long_data: 64 << 20,
            session_settings: 64 << 10,
            query_memory: 64 << 20,
            total_memory: 512 << 20,
            plan_cache: 5000,
        }
    }
}

impl Limits {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.max_connections == 0 || self.max_connections > 1_000_000 {
            problems.add("limits.max_connections", "must be 1 to 1000000");
        }
        if !(16 << 10..=1 << 30).contains(&self.max_packet) {
            problems.add("limits.max_packet", "must be 16KiB to 1GiB");
        }
        if !(1 << 10..=64 << 20).contains(&self.read_ahead) {
            problems.add("limits.read_ahead", "must be 1KiB to 64MiB");
        }
        if self.query_memory < 64 << 10 {
            problems.add("limits.query_memory", "must be at least 64KiB");
        }
        if self.total_memory < self.query_memory {
            problems.add("limits.total_memory", "must be at least limits.query_memory");
        }
        if self.plan_cache > 10_000_000 {
            problems.add("limits.plan_cache", "must be at most 10000000");
        }
        if self.max_prepared_statements > 1_000_000 {
            problems.add("limits.max_prepared_statements", "must be at most 1000000");
        }
    }
}
