//! The pool of connections to each tablet.

use std::time::Duration;

use serde::Deserialize;

use super::problem::Problems;
use super::units;

/// `[pool]`: one pool a tablet.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pool {
    /// Connections to one tablet that may be in use at once. Default 20; at least 1. Applied by a reload.
    pub size: usize,
    /// Requests that may wait for one of them; the next one is refused at once. Default 10; 0 lets nobody wait.
    /// Applied by a reload.
    pub waiters: usize,
    /// Of `size`, how many connections sessions may hold pinned (temporary tables, locks, cursors). Default 10; 0
    /// refuses what would pin. Applied by a reload.
    pub max_reserved: usize,
    /// How long a pinned connection may lie idle before it is closed and its session told. Default `10m`; 0 never.
    /// Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub reserved_idle: Duration,
    /// An idle connection unused for this long is checked before it is used. Default `30s`; 0 checks always. Applied
    /// by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub idle_check: Duration,
    /// An idle connection is closed after this long. Keep it under the tablets' `wait_timeout`. Default `10m`; 0
    /// never. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub max_idle: Duration,
    /// A connection is closed at this age, once it is idle. Default `1h`; 0 never. Applied by a reload.
    #[serde(deserialize_with = "units::duration")]
    pub max_lifetime: Duration,
    /// Slots that may be lent anew while connections whose query was given up are still being killed; beyond that such
    /// a connection is closed at once. Default 5; 0 always closes. Applied by a reload.
    pub abandoned_max: usize,
    /// Prepared statements kept on one tablet connection; the least recently used goes first. Default 200; at least
    /// 1. Applied by a reload.
    pub prepared_statements: usize,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            size: 20,
            waiters: 10,
            max_reserved: 10,
            reserved_idle: Duration::from_mins(10),
            idle_check: Duration::from_secs(30),
            max_idle: Duration::from_mins(10),
            max_lifetime: Duration::from_hours(1),
            abandoned_max: 5,
            prepared_statements: 200,
        }
    }
}

impl Pool {
    pub(super) fn validate(&self, problems: &mut Problems) {
        if self.size == 0 || self.size > 10_000 {
            problems.add("pool.size", "must be 1 to 10000");
        }
        if self.waiters > 100_000 {
            problems.add("pool.waiters", "must be at most 100000");
        }
        if self.max_reserved > self.size {
            let message = format!("must be at most pool.size ({}), of which it is a part", self.size);
            problems.add("pool.max_reserved", message);
        }
        if self.abandoned_max > self.size {
            problems.add(
                "pool.abandoned_max",
                format!("must be at most pool.size ({})", self.size),
            );
        }
        if self.prepared_statements == 0 || self.prepared_statements > 100_000 {
            problems.add("pool.prepared_statements", "must be 1 to 100000");
        }
        if !self.max_idle.is_zero() && self.idle_check > self.max_idle {
            problems.add(
                "pool.idle_check",
                "must be at most pool.max_idle, else it never happens",
            );
        }
    }
}
