//! Why a breaker opened, why it refuses, and what moved it: the labels of metrics, logs and errors.

use std::fmt;

/// The signal that opened a breaker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Failures in a row.
    ConsecutiveFailures,
    /// Timeouts in a row.
    ConsecutiveTimeouts,
    /// Too large a share of failures in the window.
    ErrorRate,
    /// Too large a share of timeouts in the window.
    TimeoutRate,
    /// Attempts are pending and none progresses.
    Stall,
    /// The pool had no free slot, and waiters, for too long; or the server refused for lack of room as long.
    PoolSaturated,
    /// p95 far over its own baseline.
    Latency,
    /// Replication lag over the freshness budget.
    Lag,
    /// Health checks failed in a row.
    HealthCheck,
    /// A reparent buffer expired or overflowed.
    Buffer,
    /// The statement's kind holds most of the busy slots or of the slow tail.
    Attributed,
    /// Opened by an operator.
    Operator,
}

impl Reason {
    /// Every reason, in the order of [`Reason::index`]: counters start at zero for each.
    pub const ALL: [Self; 12] = [
        Self::ConsecutiveFailures,
        Self::ConsecutiveTimeouts,
        Self::ErrorRate,
        Self::TimeoutRate,
        Self::Stall,
        Self::PoolSaturated,
        Self::Latency,
        Self::Lag,
        Self::HealthCheck,
        Self::Buffer,
        Self::Attributed,
        Self::Operator,
    ];

    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::ConsecutiveFailures => "consecutive_failures",
            Self::ConsecutiveTimeouts => "consecutive_timeouts",
            Self::ErrorRate => "error_rate",
            Self::TimeoutRate => "timeout_rate",
            Self::Stall => "stall",
            Self::PoolSaturated => "pool_saturated",
            Self::Latency => "latency",
            Self::Lag => "lag",
            Self::HealthCheck => "health_check",
            Self::Buffer => "buffer",
            Self::Attributed => "attributed",
            Self::Operator => "operator",
        }
    }

    /// Position in [`Reason::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether the ejection cap binds this reason: errors and latency may be everybody's fault at once, lag and health
    /// are measured on the tablet itself.
    #[must_use]
    pub const fn capped(self) -> bool {
        match self {
            Self::ConsecutiveFailures
            | Self::ConsecutiveTimeouts
            | Self::ErrorRate
            | Self::TimeoutRate
            | Self::Stall
            | Self::PoolSaturated
            | Self::Latency => true,
            Self::Lag | Self::HealthCheck | Self::Buffer | Self::Attributed | Self::Operator => false,
        }
    }

    /// Whether the poller's samples, not queries, tell that the cause is gone. A query sent to a replica that is too
    /// far behind would break the freshness promise to learn what the next sample tells anyway.
    #[must_use]
    pub const fn judged_by_samples(self) -> bool {
        matches!(self, Self::Lag | Self::HealthCheck)
    }

    pub(crate) const fn from_index(index: u64) -> Self {
        let index = index as usize;
        if index < Self::ALL.len() {
            Self::ALL[index]
        } else {
            Self::Operator
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ConsecutiveFailures => "failures in a row",
            Self::ConsecutiveTimeouts => "timeouts in a row",
            Self::ErrorRate => "error rate",
            Self::TimeoutRate => "timeout rate",
            Self::Stall => "nothing progresses",
            Self::PoolSaturated => "pool saturated",
            Self::Latency => "p95 over baseline",
            Self::Lag => "replication lag",
            Self::HealthCheck => "health checks failed",
            Self::Buffer => "reparent buffer gave up",
            Self::Attributed => "this kind of statement holds the shard up",
            Self::Operator => "operator",
        })
    }
}

/// What a breaker does with attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Admits all.
    Closed,
    /// Refuses all until the cooldown is over.
    Open,
    /// Admits one probe at a time.
    HalfOpen,
}

impl State {
    /// The gauge's value: 0 closed, 1 open, 2 half-open.
    #[must_use]
    pub const fn gauge(self) -> u8 {
        self as u8
    }

    /// The name in logs and listings.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
        }
    }
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    /// The signals.
    Auto,
    /// An operator: admits all, whatever the signals say.
    ForcedClosed,
    /// An operator: refuses all.
    ForcedOpen,
    /// Admits all and counts what it would have done.
    DryRun,
}

impl Mode {
    /// The name in logs and listings.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::ForcedClosed => "forced closed",
            Self::ForcedOpen => "forced open",
            Self::DryRun => "dry run",
        }
    }
}

/// What made a breaker change its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A signal of a closed breaker, or a sample while half-open.
    Signal,
    /// The cooldown was over.
    Cooldown,
    /// Enough probes passed the re-check.
    ProbesPassed,
    /// A probe failed, timed out or did not pass the re-check.
    ProbeFailed,
    /// A probe's lease was over with the query still running.
    LeaseOver,
    /// A new primary, or the old one accepts writes again.
    NewTerm,
    /// An operator.
    Operator,
}

impl Trigger {
    /// The name in logs.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Cooldown => "cooldown",
            Self::ProbesPassed => "probes_passed",
            Self::ProbeFailed => "probe_failed",
            Self::LeaseOver => "lease_over",
            Self::NewTerm => "new_term",
            Self::Operator => "operator",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_reason_survives_its_index_and_has_its_own_label() {
        let mut labels = HashSet::new();
        for (i, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!(reason.index(), i);
            assert_eq!(Reason::from_index(i as u64), reason);
            assert!(labels.insert(reason.label()));
        }
    }

    #[test]
    fn the_cap_binds_errors_and_latency_never_lag_or_health() {
        for (reason, capped) in [
            (Reason::ConsecutiveFailures, true),
            (Reason::ConsecutiveTimeouts, true),
            (Reason::ErrorRate, true),
            (Reason::TimeoutRate, true),
            (Reason::Stall, true),
            (Reason::PoolSaturated, true),
            (Reason::Latency, true),
            (Reason::Lag, false),
            (Reason::HealthCheck, false),
        ] {
            assert_eq!(reason.capped(), capped, "{reason}");
        }
    }
}
