//! What one shard's buffer counts, under Vitess's names.

use std::sync::Arc;
use std::time::Duration;

use super::phase::Episode;
use crate::base::ShardId;
use crate::base::metrics::Metrics;

/// The counters of one shard.
#[derive(Debug)]
pub(super) struct Tally {
    /// `keyspace.shard`.
    label: String,
    metrics: Arc<Metrics>,
}

impl Tally {
    pub(super) fn new(shard: &ShardId, metrics: Arc<Metrics>) -> Self {
        Self {
            label: format!("{}.{}", shard.keyspace, shard.shard),
            metrics,
        }
    }

    /// A buffering began.
    pub(super) fn started(&self) {
        self.metrics.buffer.starts.handle(&self.label).inc();
    }

    /// A request waits.
    pub(super) fn buffered(&self) {
        self.metrics.buffer.requests_buffered.handle(&self.label).inc();
    }

    /// A request would wait.
    pub(super) fn would_buffer(&self) {
        let counters = &self.metrics.buffer.requests_buffered_dry_run;
        counters.handle(&self.label).inc();
    }

    /// A request that waited goes on.
    pub(super) fn drained(&self) {
        self.metrics.buffer.requests_drained.handle(&self.label).inc();
    }

    /// A request that waited is given up.
    pub(super) fn evicted(&self, reason: &str) {
        let label = format!("{}.{reason}", self.label);
        self.metrics.buffer.requests_evicted.handle(&label).inc();
    }

    /// A request does not wait.
    pub(super) fn skipped(&self, reason: &str) {
        let label = format!("{}.{reason}", self.label);
        self.metrics.buffer.requests_skipped.handle(&label).inc();
    }

    /// A buffering ended that lasted so long, in a room for so many requests.
    pub(super) fn ended(&self, failover: &Episode, reason: &str, (lasted, size): (Duration, usize)) {
        let buffer = &self.metrics.buffer;
        let millis = u64::try_from(lasted.as_millis()).unwrap_or(u64::MAX);
        let gauge = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
        let most = failover.most as u64;
        let percent = most * 100 / size.max(1) as u64;
        buffer.stops.handle(&format!("{}.{reason}", self.label)).inc();
        buffer.failover_duration_sum_ms.handle(&self.label).add(millis);
        buffer
            .last_failover_duration_ms
            .handle(&self.label)
            .set(gauge(millis));
        if failover.dry_run {
            buffer.utilization_dry_run_sum.handle(&self.label).add(percent);
            buffer
                .last_requests_dry_run_max
                .handle(&self.label)
                .set(gauge(most));
        } else {
            buffer.utilization_sum.handle(&self.label).add(gauge(percent));
            buffer
                .last_requests_in_flight_max
                .handle(&self.label)
                .set(gauge(most));
        }
    }
}
