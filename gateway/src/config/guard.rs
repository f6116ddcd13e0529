//! What an attempt passes before it reaches a tablet: breakers, the share of a pool, retries, the width of a scatter.

use std::time::Duration;

use serde::Deserialize;
use shardgate_breaker as breaker;

use super::problem::Problems;
use super::units;

/// `[guard]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Guard {
    /// Whether circuit breakers refuse anything. Default `true`. Without them there is no `max_pool_share` either: they
    /// count what is in flight. Applied by a reload, which makes new breakers.
    pub breakers: bool,
    /// Breakers count and log what they would have done, and refuse nothing. Default `false`. Applied by a reload.
    pub dry_run: bool,
    /// Of a shard's replicas, how many percent may be out at once for errors or latency. Default 50; 0 none. Applied by
    /// a reload.
    pub ejection_cap: u32,
    /// Of a tablet's pool, how many percent one kind of statement may hold like any other while others want it too; beyond
    /// that it leaves a tenth of the pool to them and waits for itself. Default 60; 0 no bound. Applied by a reload.
    pub max_pool_share: u32,
    /// How often a read outside a transaction is tried again on a shard whose tablet failed before a row was sent.
    /// Default 2; 0 never. Applied by a reload.
    pub retry_attempts: u32,
    /// Retries for each hundred statements of a shard over ten seconds. Default 20; 0 none for traffic. Applied by a
    /// reload.
    pub retry_percent: u32,
    /// Retries a second on a shard whatever the traffic. Default 10; 0 none. Applied by a reload.
    pub retry_per_second: u32,
    /// How many shards a statement waits for at once. Default 0: all. Applied by a reload.
    pub fan_out: usize,
    /// Refuses statements that go to several shards, unless they say `/*vt+ ALLOW_SCATTER */`. Default `false`. Applied
    /// by a reload.
    pub no_scatter: bool,
}

impl Default for Guard {
    fn default() -> Self {
        Self {
            breakers: true,
            dry_run: false,
            ejection_cap: 50,
            max_pool_share: 60,
            retry_attempts: 2,
            retry_percent: 20,
            retry_per_second: 10,
            fan_out: 0,
            no_scatter: false,
        }
    }
}

impl Guard {
    pub(super) fn validate(&self, problems: &mut Problems) {
        for (name, value) in [
            ("ejection_cap", self.ejection_cap),
            ("max_pool_share", self.max_pool_share),
        ] {
            if value > 100 {
                problems.add(format!("guard.{name}"), "is a share in percent, at most 100");
            }
        }
        if self.retry_attempts > 10 {
            problems.add("guard.retry_attempts", "must be at most 10");
        }
        if self.retry_percent > 1000 || self.retry_per_second > 100_000 {
            problems.add(
                "guard.retry_percent",
                "retry_percent must be at most 1000 and retry_per_second at most 100000",
            );
        }
    }
}

/// `[shard_breaker]` and `[replica_breaker]`: the signals that open the breaker of a shard's primary, and of a replica.
/// What is left out is the default of its column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BreakerDraft {
    /// Failures in a row that open. Default 5, replica 5; 0 off. Applied by a reload.
    pub consecutive_failures: Option<u32>,
    /// Timeouts in a row that open. Default 3, replica 3; 0 off. Applied by a reload.
    pub consecutive_timeouts: Option<u32>,
    /// Percent of failures in `error_window` that opens. Default 50, replica 25; 0 off. Applied by a reload.
    pub error_rate: Option<u32>,
    /// Length of that window. Default `10s`, replica `30s`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub error_window: Option<Duration>,
    /// Percent of timeouts in `timeout_window` that opens. Default 50, replica 50; 0 off. Applied by a reload.
    pub timeout_rate: Option<u32>,
    /// Length of that window. Default `10s`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub timeout_window: Option<Duration>,
    /// Attempts a window must hold before a rate means anything. Default 20; at least 1. Applied by a reload.
    pub min_samples: Option<u32>,
    /// Attempts pending on the tablet, none progressing, that open. Default 5; 0 off. Applied by a reload.
    pub stall_pending: Option<u32>,
    /// How old the oldest of them must be. Default `250ms`; 0 any age. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub stall_age: Option<Duration>,
    /// How long none may have progressed. Default `300ms`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub stall_quiet: Option<Duration>,
    /// How long the pool may have waiters and no free connection. Default `5s`; 0 off. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub pool_saturated: Option<Duration>,
    /// p95 that opens, as a multiple of its slow average. Default 5; 0 off. Applied by a reload.
    pub latency_factor: Option<u32>,
    /// And at least this much over it. Default `20ms`; 0 none. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub latency_floor: Option<Duration>,
    /// Health checks failed in a row that open. Default 3; 0 off. Applied by a reload.
    pub health_fall: Option<u32>,
    /// Health checks passed in a row that close again. Default 5; at least 1. Applied by a reload.
    pub health_rise: Option<u32>,
    /// Distinct kinds of statement that must suffer before the tablet is blamed. Default 3; 0 any. Applied by a reload.
    pub blame_fingerprints: Option<u32>,
    /// How long it stays open the first time. Default `2s`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub cooldown: Option<Duration>,
    /// The cooldown doubles up to this. Default `60s`; at least `cooldown`. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub cooldown_max: Option<Duration>,
    /// Up to this much longer, in percent, so that gateways do not probe at once. Default 25; 0 exact. Applied by a
    /// reload.
    pub cooldown_jitter: Option<u32>,
    /// Probes that must pass, one at a time, before it closes. Default 3; at least 1. Applied by a reload.
    pub probes: Option<u32>,
    /// How long one probe may take. Default `2s`; must not be 0. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub probe_lease: Option<Duration>,
    /// How long a replica's weight grows back after it closed. Default 0, replica `30s`; 0 at once. Applied by a reload.
    #[serde(deserialize_with = "units::optional_duration")]
    pub slow_start: Option<Duration>,
}

impl BreakerDraft {
    /// The thresholds over the defaults of a column.
    pub(super) fn over(
        &self,
        section: &str,
        mut base: breaker::Config,
        problems: &mut Problems,
    ) -> breaker::Config {
        fn put<T: Copy>(to: &mut T, from: Option<T>) {
            if let Some(value) = from {
                *to = value;
            }
        }
        put(&mut base.consecutive_failures, self.consecutive_failures);
        put(&mut base.consecutive_timeouts, self.consecutive_timeouts);
        put(&mut base.error_rate.percent, self.error_rate);
        put(&mut base.error_rate.window, self.error_window);
        put(&mut base.timeout_rate.percent, self.timeout_rate);
        put(&mut base.timeout_rate.window, self.timeout_window);
        put(&mut base.min_samples, self.min_samples);
        put(&mut base.stall.pending, self.stall_pending);
        put(&mut base.stall.age, self.stall_age);
        put(&mut base.stall.quiet, self.stall_quiet);
        put(&mut base.pool_saturated, self.pool_saturated);
        put(&mut base.latency.factor, self.latency_factor);
        put(&mut base.latency.floor, self.latency_floor);
        put(&mut base.health.fall, self.health_fall);
        put(&mut base.health.rise, self.health_rise);
        put(&mut base.blame.fingerprints, self.blame_fingerprints);
        put(&mut base.cooldown.base, self.cooldown);
        put(&mut base.cooldown.max, self.cooldown_max);
        put(&mut base.cooldown.jitter, self.cooldown_jitter);
        put(&mut base.probe.successes, self.probes);
        put(&mut base.probe.lease, self.probe_lease);
        put(&mut base.slow_start, self.slow_start);
        if let Err(e) = base.validate() {
            problems.add(section, e.to_string());
        }
        base
    }
}
