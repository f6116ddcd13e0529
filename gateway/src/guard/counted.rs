//! What breakers may tell, as labels of counters: each is there at zero before it happens.

use shardgate_breaker::Reason;

use super::listener::Subject;
use crate::base::metrics::Metrics;
use crate::base::{ShardId, TabletAlias};

/// What opens the breaker of any tablet.
const OF_TABLETS: [Reason; 8] = [
    Reason::ConsecutiveFailures,
    Reason::ConsecutiveTimeouts,
    Reason::ErrorRate,
    Reason::TimeoutRate,
    Reason::Stall,
    Reason::PoolSaturated,
    Reason::Latency,
    Reason::HealthCheck,
];
/// What opens the breaker of a kind of statement.
const OF_KINDS: [Reason; 3] = [
    Reason::ConsecutiveTimeouts,
    Reason::TimeoutRate,
    Reason::Attributed,
];

/// Makes known, at zero, what the breakers of a shard, and of the kinds of statement on it, will count.
pub fn count_shard_from_zero(metrics: &Metrics, shard: &ShardId) {
    let tablet = Subject::Shard(shard.to_string());
    tablet_from_zero(metrics, &tablet, Reason::Buffer);
    let kind = Subject::Kind(shard.to_string(), 0);
    for reason in OF_KINDS {
        handle(metrics, &kind, &format!("trips.{}", reason.label()));
        handle(metrics, &kind, &format!("would_trip.{}", reason.label()));
    }
}

/// Makes known, at zero, what the breaker of a replica will count.
pub fn count_replica_from_zero(metrics: &Metrics, alias: &TabletAlias) {
    let replica = Subject::Replica(alias.to_string());
    tablet_from_zero(metrics, &replica, Reason::Lag);
    handle(metrics, &replica, "suppressed");
}

fn tablet_from_zero(metrics: &Metrics, subject: &Subject, of_its_own: Reason) {
    for reason in OF_TABLETS.into_iter().chain([of_its_own]) {
        handle(metrics, subject, &format!("trips.{}", reason.label()));
        handle(metrics, subject, &format!("would_trip.{}", reason.label()));
    }
    let by_hand = format!("trips.{}", Reason::Operator.label());
    for what in [by_hand.as_str(), "attributed", "mode_changed"] {
        handle(metrics, subject, what);
    }
}

fn handle(metrics: &Metrics, subject: &Subject, what: &str) {
    metrics.breakers.handle(&subject.counter(what));
}
