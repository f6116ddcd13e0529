//! Counters as typed handles: made once, handed in, at zero from the start.
//!
//! Names and label order are Vitess's where Vitess has one, so that an operator's dashboards carry over.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;

mod family;

pub use family::{Family, Values};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Adds one.
    pub fn inc(&self) {
        self.add(1);
    }
    /// Adds `n`.
    pub fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// Its value now.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that rises and falls.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    /// Its value now.
    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
    /// Adds `n`, which may be negative.
    pub fn add(&self, n: i64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    /// Replaces its value.
    pub fn set(&self, n: i64) {
        self.0.store(n, Ordering::Relaxed);
    }
}

/// Holds a gauge one higher for as long as it lives.
#[derive(Debug)]
pub struct GaugeGuard(Arc<Gauge>);

impl GaugeGuard {
    /// Raises the gauge by one until dropped.
    pub fn raise(gauge: &Arc<Gauge>) -> Self {
        gauge.add(1);
        Self(Arc::clone(gauge))
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}

/// Counters told apart by one label text (several labels are joined by a dot, as Vitess does).
#[derive(Debug, Default)]
pub struct Counters(DashMap<String, Arc<Counter>>);

impl Counters {
    /// The counter of a label, made at zero if it is new. Hold the handle on hot paths.
    pub fn handle(&self, label: &str) -> Arc<Counter> {
        if let Some(c) = self.0.get(label) {
            return Arc::clone(&c);
        }
        Arc::clone(&self.0.entry(label.to_owned()).or_default())
    }
    /// All values, sorted by label.
    pub fn snapshot(&self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .map(|e| (e.key().clone(), e.value().get()))
            .collect()
    }
}

/// Gauges told apart by one label text.
#[derive(Debug, Default)]
pub struct Gauges(DashMap<String, Arc<Gauge>>);

impl Gauges {
    /// The gauge of a label, made at zero if it is new.
    pub fn handle(&self, label: &str) -> Arc<Gauge> {
        if let Some(g) = self.0.get(label) {
            return Arc::clone(&g);
        }
        Arc::clone(&self.0.entry(label.to_owned()).or_default())
    }
    /// All values, sorted by label.
    pub fn snapshot(&self) -> BTreeMap<String, i64> {
        self.0
            .iter()
            .map(|e| (e.key().clone(), e.value().get()))
            .collect()
    }
}

/// Statements and the legs they became.
#[derive(Debug, Default)]
pub struct QueryCount {
    executions: Counter,
    legs: Counter,
}

impl QueryCount {
    /// Counts a statement that was sent to so many shards.
    pub fn count(&self, legs: u64) {
        self.executions.inc();
        self.legs.add(legs);
    }
}

/// Statements and the legs they became, by query type, plan type and tablet type.
#[derive(Debug, Default)]
pub struct QueryCounts(DashMap<[&'static str; 3], Arc<QueryCount>>);

impl QueryCounts {
    /// The count of these labels, made at zero if it is new. Hold the handle on hot paths.
    pub fn handle(&self, labels: [&'static str; 3]) -> Arc<QueryCount> {
        Arc::clone(&self.0.entry(labels).or_default())
    }
    /// Statements, by the labels joined.
    pub fn executions(&self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .map(|e| (e.key().join("."), e.value().executions.get()))
            .collect()
    }
    /// Legs, by the labels joined.
    pub fn routes(&self) -> BTreeMap<String, u64> {
        self.0
            .iter()
            .map(|e| (e.key().join("."), e.value().legs.get()))
            .collect()
    }
}

/// Upper bounds of the histogram buckets, Vitess's own: from half a millisecond to ten seconds.
pub const BUCKETS: [Duration; 10] = [
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// Count, total time and a histogram of durations.
#[derive(Debug, Default)]
pub struct Timing {
    count: Counter,
    nanos: Counter,
    buckets: [Counter; BUCKETS.len() + 1],
}

/// One reading of a [`Timing`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimingReading {
    /// How many durations were recorded.
    pub count: u64,
    /// Their sum in nanoseconds.
    pub total_nanos: u64,
    /// How many fell at or under each bound of [`BUCKETS`] (cumulative), and last all of them.
    pub cumulative: [u64; BUCKETS.len() + 1],
}

impl Timing {
    /// Records one duration.
    pub fn record(&self, took: Duration) {
        let slot = BUCKETS.iter().position(|b| took <= *b).unwrap_or(BUCKETS.len());
        self.buckets[slot].inc();
        self.nanos.add(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
        self.count.inc();
    }
    /// What was recorded so far.
    pub fn read(&self) -> TimingReading {
        let mut out = TimingReading {
            count: self.count.get(),
            total_nanos: self.nanos.get(),
            ..Default::default()
        };
        let mut sum = 0;
        for (to, from) in out.cumulative.iter_mut().zip(&self.buckets) {
            sum += from.get();
            *to = sum;
        }
        out
    }
}

/// Timings told apart by one label text.
#[derive(Debug, Default)]
pub struct Timings(DashMap<String, Arc<Timing>>);

impl Timings {
    /// The timing of a label, made empty if it is new.
    pub fn handle(&self, label: &str) -> Arc<Timing> {
        if let Some(t) = self.0.get(label) {
            return Arc::clone(&t);
        }
        Arc::clone(&self.0.entry(label.to_owned()).or_default())
    }
    /// All readings, sorted by label.
    pub fn snapshot(&self) -> BTreeMap<String, TimingReading> {
        self.0
            .iter()
            .map(|e| (e.key().clone(), e.value().read()))
            .collect()
    }
}

/// The gateway's metrics as one tree.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Client connections that are open.
    pub connections: Arc<Gauge>,
    /// Client connections accepted since the start.
    pub connections_accepted: Counter,
    /// Client connections refused, by reason.
    pub connections_refused: Counters,
    /// Whole statements, by statement kind: from the framed command to the last byte of the answer.
    pub query_timings: Timings,
    /// Statements answered with an error of the gateway's own, by code.
    pub query_errors: Counters,
    /// Statements and their legs by `query.plan.tablet`.
    pub queries: QueryCounts,
    /// Attempts on tablets, `operation.keyspace.shard.role`.
    pub tablet_call: Timings,
    /// Attempts that the tablet is to blame for, `operation.keyspace.shard.role`.
    pub tablet_call_errors: Counters,
    /// Attempts that did not succeed by what they say of the tablet, `operation.keyspace.shard.role.outcome`.
    pub tablet_call_outcomes: Counters,
    /// Deadlines that passed, by layer.
    pub timeouts: Counters,
    /// Abandoned connections, by what ended them: `kill_query`, `kill_connection`, `closed`, ...
    pub reaped: Counters,
    /// Pool events by `alias.event`: `opened`, `closed`, `refused`, `waited`.
    pub pool: Counters,
    /// Times that the gateway itself stood still, by [`Pulse`](crate::guard::Pulse).
    pub standstills: Counter,
    /// How long, together, in milliseconds.
    pub standstill_ms: Counter,
    /// What breakers did, `scope.name.event`: `shard.commerce/-40.trips.stall`.
    pub breakers: Counters,
    /// Attempts refused before anything was sent, `what.keyspace/shard`: `breaker`, `kind`, `share`.
    pub refused: Counters,
    /// Retries of reads, `keyspace/shard.event`: `tried`, `no_budget`.
    pub retries: Counters,
    /// Partial answers, by what happened: `answered`, `not_monotone`.
    pub partial: Counters,
    /// Differences found between shards' tables, by keyspace.
    pub schema_differences: Counters,
    /// Looks of the poller, by alias.
    pub polls: Counters,
    /// Looks that told nothing, `alias.reason`.
    pub poll_failures: Counters,
    /// Times that no replica's lag of a shard was known any more, `keyspace.shard.reason`.
    pub lag_unknown: Counters,
    /// Rows sent to clients.
    pub rows_returned: Counter,
    /// Times that another tablet became a shard's primary, by `keyspace.shard`.
    pub primary_changes: Counters,
    /// Times that several tablets of a shard took writes and went apart, by `keyspace.shard`.
    pub split_brains: Counters,
    /// The reparent buffers.
    pub buffer: BufferMetrics,
}

/// What reparent buffers count, by `keyspace.shard` and where there is one a reason, under Vitess's names.
#[derive(Debug, Default)]
pub struct BufferMetrics {
    /// Requests that may be buffered at once in the whole gateway.
    pub size: Gauge,
    /// Times that a shard began to buffer.
    pub starts: Counters,
    /// Times that a shard ceased to, by reason.
    pub stops: Counters,
    /// The time of all bufferings, in milliseconds.
    pub failover_duration_sum_ms: Counters,
    /// The time of the last one, in milliseconds.
    pub last_failover_duration_ms: Gauges,
    /// The fullest that a buffer was, in percent, summed over bufferings.
    pub utilization_sum: Gauges,
    /// The same had it not been a dry run.
    pub utilization_dry_run_sum: Counters,
    /// Requests that were buffered.
    pub requests_buffered: Counters,
    /// Requests that would have been.
    pub requests_buffered_dry_run: Counters,
    /// Buffered requests that went on.
    pub requests_drained: Counters,
    /// Buffered requests that were given up, by reason.
    pub requests_evicted: Counters,
    /// Requests that were not buffered though their shard was buffering, by reason.
    pub requests_skipped: Counters,
    /// Most requests that were buffered at once in the last buffering.
    pub last_requests_in_flight_max: Gauges,
    /// The same had it not been a dry run.
    pub last_requests_dry_run_max: Gauges,
}

impl BufferMetrics {
    /// Why a buffering ended.
    pub const STOPS: [&'static str; 5] = [
        "ReshardingComplete",
        "SplitBrain",
        "NewPrimarySeen",
        "MaxDurationExceeded",
        "Shutdown",
    ];
    /// Why a buffered request was given up.
    pub const EVICTED: [&'static str; 5] = [
        "ContextDone",
        "BufferFull",
        "WindowExceeded",
        "MaxDurationExceeded",
        "Shutdown",
    ];
    /// Why a request was not buffered.
    pub const SKIPPED: [&'static str; 7] = [
        "BufferFull",
        "Disabled",
        "Shutdown",
        "LastReparentTooRecent",
        "LastFailoverTooRecent",
        "GoneTooLong",
        "BreakerOpen",
    ];

    /// Makes every counter of a shard known, at zero.
    pub fn count_from_zero(&self, shard: &str) {
        let shards = [
            &self.starts,
            &self.failover_duration_sum_ms,
            &self.utilization_dry_run_sum,
            &self.requests_buffered,
            &self.requests_buffered_dry_run,
            &self.requests_drained,
        ];
        for counters in shards {
            counters.handle(shard);
        }
        for (counters, reasons) in [
            (&self.stops, &Self::STOPS[..]),
            (&self.requests_evicted, &Self::EVICTED[..]),
            (&self.requests_skipped, &Self::SKIPPED[..]),
        ] {
            for reason in reasons {
                counters.handle(&format!("{shard}.{reason}"));
            }
        }
        for gauges in [
            &self.last_failover_duration_ms,
            &self.utilization_sum,
            &self.last_requests_in_flight_max,
            &self.last_requests_dry_run_max,
        ] {
            gauges.handle(shard);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_is_cumulative_and_ends_with_everything() {
        let t = Timing::default();
        for ms in [0, 1, 7, 20_000] {
            t.record(Duration::from_millis(ms));
        }
        let r = t.read();
        assert_eq!(r.count, 4);
        assert_eq!(r.cumulative[0], 1);
        assert_eq!(r.cumulative[1], 2);
        assert_eq!(r.cumulative[3], 3);
        assert_eq!(r.cumulative[9], 3);
        assert_eq!(r.cumulative[10], 4);
    }

    #[test]
    fn a_gauge_falls_when_its_guard_is_dropped() {
        let g = Arc::new(Gauge::default());
        let held = GaugeGuard::raise(&g);
        assert_eq!(g.get(), 1);
        drop(held);
        assert_eq!(g.get(), 0);
    }

    #[test]
    fn a_label_asked_for_stands_at_zero_before_its_first_event() {
        let c = Counters::default();
        c.handle("commerce.-40");
        assert_eq!(c.snapshot().get("commerce.-40"), Some(&0));
    }
}
