//! Thresholds of one breaker, and the rules across them.
//!
//! The three constructors are the columns of the signal table: what a shard, a replica and a kind of statement start
//! from. A threshold of zero turns its signal off.

use std::time::Duration;

/// Thresholds of one breaker. A reload makes new breakers; it changes none that exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Failures in a row, with no success between, that open. 0 = off.
    pub consecutive_failures: u32,
    /// Timeouts in a row, with no success between, that open. 0 = off.
    pub consecutive_timeouts: u32,
    /// Share of failures that opens.
    pub error_rate: Rate,
    /// Share of timeouts that opens.
    pub timeout_rate: Rate,
    /// Attempts a window must hold before a share of it means anything; at least 1.
    pub min_samples: u32,
    /// Pending attempts of which none progresses.
    pub stall: Stall,
    /// How long a pool may have waiters and no free slot. 0 = off.
    pub pool_saturated: Duration,
    /// p95 over its own baseline.
    pub latency: Latency,
    /// Replication lag.
    pub lag: Lag,
    /// Health checks.
    pub health: Health,
    /// Who must be slow before the tablet is blamed.
    pub blame: Blame,
    /// How long it stays open.
    pub cooldown: Cooldown,
    /// How it finds out that the cause is gone.
    pub probe: Probe,
    /// How long a replica's weight grows back after it closed. 0 = at once.
    pub slow_start: Duration,
    /// The weight, in percent of the configured one, of a replica that starts slowly or is kept in only by the
    /// ejection cap; 1 to 100.
    pub least_weight: u32,
    /// Starts in [`Mode::DryRun`](crate::Mode::DryRun): counts what it would do, refuses nothing.
    pub dry_run: bool,
    /// Copies of the counters that every attempt writes: one more than the threads that run queries. The first threads
    /// have one each, further ones share the last. At least 1.
    pub stripes: usize,
    /// Attempts in flight whose age is known, at least; about the size of the pool and its queue. Those beyond it still
    /// count in every signal but stall and shares of busy slots. 0 = none.
    pub tracked: usize,
}

/// A share of the attempts in a sliding window.
///
/// The window slides in fiftieths: an attempt leaves it between 98 % and 100 % of `window` later, never after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Percent that opens, up to 100. 0 = off.
    pub percent: u32,
    /// Length of the window.
    pub window: Duration,
}

/// Attempts are pending on the tablet and none of them progresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Pending attempts that are enough. 0 = off.
    pub pending: u32,
    /// The oldest must have waited this long,
    pub age: Duration,
    /// and this many times the usual p99.
    pub p99_factor: u32,
    /// And nothing must have progressed for this long.
    pub quiet: Duration,
}

/// p95 of the time to the first response, over a slow moving average of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// p95 opens at this many times the baseline. 0 = off (the baseline is kept for `stall` all the same).
    pub factor: u32,
    /// It must also be this much over the baseline: five times next to nothing is nothing.
    pub floor: Duration,
    /// p95 is taken of windows of this length, longer while they hold too few samples.
    pub window: Duration,
    /// How slowly the baseline follows: after this long it has gone 63 % of the way. Until it has seen ten
    /// windows it is their mean.
    pub memory: Duration,
    /// It must also be this many times the middle of its siblings' p95. 0 = siblings are not asked.
    pub siblings_factor: u32,
}

/// Replication lag, as the poller measures it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lag {
    /// Samples at or over `hard` in a row that open. 0 = off.
    pub samples: u32,
    /// The freshness budget.
    pub hard: Duration,
    /// A sample below this passes the re-check.
    pub re_entry: Duration,
}

/// Health checks of the poller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Failed checks in a row that open. 0 = off.
    pub fall: u32,
    /// Passed checks in a row that close again.
    pub rise: u32,
}

/// Who must be slow before the tablet, and not one kind of statement, is blamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blame {
    /// Distinct fingerprints that timeouts, stall, saturation and p95 need. 0 = off: any will do and none is blamed.
    pub fingerprints: u32,
    /// A fingerprint with more than this share, in percent, of the busy slots or of the slow tail is the cause.
    pub percent: u32,
    /// How long what a blamed fingerprint does says nothing about the tablet: its own breaker deals with it.
    pub hold: Duration,
}

/// How long a breaker stays open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cooldown {
    /// The first time.
    pub base: Duration,
    /// It doubles each time up to this.
    pub max: Duration,
    /// Up to this much longer, in percent, so that many gateways do not probe at once. 0 = exact.
    pub jitter: u32,
    /// It halves again for each of these spans spent closed. 0 = it never does.
    pub healthy: Duration,
}

/// How a breaker finds out that the cause is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// Probes that must pass, one at a time; 1 to 255.
    pub successes: u32,
    /// How long one probe may take.
    pub lease: Duration,
}

/// Two settings that contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A share over 100 %.
    #[error("{field} is a share in percent, at most 100")]
    Percent {
        /// The setting.
        field: &'static str,
    },
    /// A setting that must not be zero, here.
    #[error("{field} must not be zero")]
    Zero {
        /// The setting.
        field: &'static str,
    },
    /// A setting out of its range.
    #[error("{field} must be {range}")]
    Range {
        /// The setting.
        field: &'static str,
        /// The range, in words.
        range: &'static str,
    },
    /// `cooldown.base` over `cooldown.max`.
    #[error("cooldown.base is longer than cooldown.max")]
    CooldownOrder,
    /// `lag.re_entry` not below `lag.hard`.
    #[error("lag.re_entry must be below lag.hard, or a replica that is ejected at once returns")]
    LagOrder,
}

const SECOND: Duration = Duration::from_secs(1);

impl Config {
    /// For a shard's primary.
    #[must_use]
    pub const fn shard() -> Self {
        Self {
            consecutive_failures: 5,
            consecutive_timeouts: 3,
            error_rate: Rate {
                percent: 50,
                window: Duration::from_secs(10),
            },
            timeout_rate: Rate {
                percent: 50,
                window: Duration::from_secs(10),
            },
            min_samples: 20,
            stall: Stall {
                pending: 5,
                age: Duration::from_millis(250),
                p99_factor: 10,
                quiet: Duration::from_millis(300),
            },
            pool_saturated: Duration::from_secs(5),
            latency: Latency {
                factor: 5,
                floor: Duration::from_millis(20),
                window: Duration::from_secs(2),
                memory: Duration::from_mins(5),
                siblings_factor: 0,
            },
            lag: Lag {
                samples: 0,
                hard: Duration::from_millis(800),
                re_entry: Duration::from_millis(120),
            },
            health: Health { fall: 3, rise: 5 },
            blame: Blame {
                fingerprints: 3,
                percent: 50,
                hold: Duration::from_secs(10),
            },
            cooldown: Cooldown {
                base: Duration::from_secs(2),
                max: Duration::from_mins(1),
                jitter: 25,
                healthy: Duration::from_mins(1),
            },
            probe: Probe {
                successes: 3,
                lease: Duration::from_secs(2),
            },
            slow_start: Duration::ZERO,
            least_weight: 10,
            dry_run: false,
            stripes: 4,
            tracked: 64,
        }
    }

    /// For a replica.
    #[must_use]
    pub const fn replica() -> Self {
        let mut config = Self::shard();
        config.error_rate = Rate {
            percent: 25,
            window: Duration::from_secs(30),
        };
        config.latency.siblings_factor = 2;
        config.lag.samples = 3;
        config.slow_start = Duration::from_secs(30);
        config
    }

    /// For one kind of statement on one shard. It is opened by the shard's breaker, which sees whose fault a slow tail
    /// is; of its own signals only timeouts remain, which are this statement's whoever else is slow.
    #[must_use]
    pub const fn fingerprint() -> Self {
        let mut config = Self::shard();
        config.consecutive_failures = 0;
        config.error_rate.percent = 0;
        config.stall.pending = 0;
        config.pool_saturated = Duration::ZERO;
        config.latency.factor = 0;
        config.health = Health { fall: 0, rise: 0 };
        config.blame.fingerprints = 0;
        config.stripes = 1;
        config.tracked = 0;
        config
    }

    /// The longest of the windows that are on.
    pub(crate) fn longest_window(&self) -> Duration {
        [self.error_rate, self.timeout_rate]
            .into_iter()
            .filter(|r| r.percent > 0)
            .map(|r| r.window)
            .max()
            .unwrap_or(Duration::ZERO)
    }

    /// The shortest of the windows that are on; its fiftieth is the step all of them slide in.
    pub(crate) fn shortest_window(&self) -> Duration {
        [self.error_rate, self.timeout_rate]
            .into_iter()
            .filter(|r| r.percent > 0)
            .map(|r| r.window)
            .min()
            .unwrap_or(Duration::ZERO)
    }

    /// Who decides at first.
    #[must_use]
    pub const fn mode(&self) -> crate::Mode {
        if self.dry_run {
            crate::Mode::DryRun
        } else {
            crate::Mode::Auto
        }
    }

    /// Refuses settings that would make a breaker which never opens, never closes or flaps.
    pub fn validate(&self) -> Result<(), ConfigError> {
        self.validate_rates()?;
        self.validate_signals()?;
        self.validate_recovery()
    }

    fn validate_rates(&self) -> Result<(), ConfigError> {
        percent("error_rate.percent", self.error_rate.percent)?;
        percent("timeout_rate.percent", self.timeout_rate.percent)?;
        for (rate, field) in [
            (self.error_rate, "error_rate.window"),
            (self.timeout_rate, "timeout_rate.window"),
        ] {
            if rate.percent > 0 && !(Duration::from_millis(1)..=SECOND * 3600).contains(&rate.window) {
                return Err(ConfigError::Range {
                    field,
                    range: "between 1 ms and 1 h",
                });
            }
        }
        if self.longest_window() > self.shortest_window() * 20 {
            return Err(ConfigError::Range {
                field: "error_rate.window and timeout_rate.window",
                range: "within a factor of 20 of each other",
            });
        }
        non_zero("min_samples", self.min_samples > 0)
    }

    fn validate_signals(&self) -> Result<(), ConfigError> {
        if self.stall.pending > 0 {
            non_zero("stall.quiet", !self.stall.quiet.is_zero())?;
        }
        let needs_table =
            self.stall.pending > 0 || (!self.pool_saturated.is_zero() && self.blame.fingerprints > 0);
        non_zero("tracked", self.tracked > 0 || !needs_table)?;
        if self.latency.factor == 1 {
            return Err(ConfigError::Range {
                field: "latency.factor",
                range: "0 or at least 2",
            });
        }
        non_zero("latency.window", !self.latency.window.is_zero())?;
        non_zero("latency.memory", !self.latency.memory.is_zero())?;
        if self.lag.samples > 0 && self.lag.re_entry >= self.lag.hard {
            return Err(ConfigError::LagOrder);
        }
        if self.health.fall > 0 {
            non_zero("health.rise", self.health.rise > 0)?;
        }
        percent("blame.percent", self.blame.percent)
    }

    fn validate_recovery(&self) -> Result<(), ConfigError> {
        non_zero("cooldown.base", self.cooldown.base >= Duration::from_millis(1))?;
        if self.cooldown.base > self.cooldown.max {
            return Err(ConfigError::CooldownOrder);
        }
        percent("cooldown.jitter", self.cooldown.jitter)?;
        if !(1..=255).contains(&self.probe.successes) {
            return Err(ConfigError::Range {
                field: "probe.successes",
                range: "between 1 and 255",
            });
        }
        non_zero("probe.lease", self.probe.lease >= Duration::from_millis(1))?;
        if !(1..=100).contains(&self.least_weight) {
            return Err(ConfigError::Range {
                field: "least_weight",
                range: "between 1 and 100",
            });
        }
        for (value, field) in [(self.stripes, "stripes"), (self.tracked, "tracked")] {
            if value > 65_536 {
                return Err(ConfigError::Range {
                    field,
                    range: "at most 65536",
                });
            }
        }
        non_zero("stripes", self.stripes > 0)
    }
}

fn percent(field: &'static str, value: u32) -> Result<(), ConfigError> {
    if value > 100 {
        return Err(ConfigError::Percent { field });
    }
    Ok(())
}

fn non_zero(field: &'static str, holds: bool) -> Result<(), ConfigError> {
    if !holds {
        return Err(ConfigError::Zero { field });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_the_design_tables_and_valid() {
        let (shard, replica) = (Config::shard(), Config::replica());
        for config in [&shard, &replica, &Config::fingerprint()] {
            assert_eq!(config.validate(), Ok(()));
        }
        for config in [&shard, &replica] {
            assert_eq!((config.consecutive_failures, config.consecutive_timeouts), (5, 3));
            assert_eq!(
                (config.timeout_rate.percent, config.timeout_rate.window),
                (50, SECOND * 10)
            );
            assert_eq!((config.health.fall, config.health.rise), (3, 5));
            assert_eq!((config.latency.factor, config.min_samples), (5, 20));
        }
        assert_eq!(
            (shard.error_rate.percent, shard.error_rate.window),
            (50, SECOND * 10)
        );
        assert_eq!(
            (replica.error_rate.percent, replica.error_rate.window),
            (25, SECOND * 30)
        );
        assert_eq!((shard.lag.samples, replica.lag.samples), (0, 3));
        assert_eq!(
            (shard.latency.siblings_factor, replica.latency.siblings_factor),
            (0, 2)
        );
    }

    #[test]
    fn each_contradiction_is_refused() {
        type Change = fn(&mut Config);
        let refused: [(&str, Change); 14] = [
            ("error_rate.percent", |c| c.error_rate.percent = 101),
            ("timeout_rate.window", |c| c.timeout_rate.window = Duration::ZERO),
            ("within a factor", |c| c.error_rate.window = SECOND * 300),
            ("min_samples", |c| c.min_samples = 0),
            ("stall.quiet", |c| c.stall.quiet = Duration::ZERO),
            ("tracked", |c| c.tracked = 0),
            ("latency.factor", |c| c.latency.factor = 1),
            ("lag.re_entry", |c| c.lag.re_entry = c.lag.hard),
            ("health.rise", |c| c.health.rise = 0),
            ("cooldown.base", |c| c.cooldown.base = SECOND * 61),
            ("probe.successes", |c| c.probe.successes = 0),
            ("probe.lease", |c| c.probe.lease = Duration::ZERO),
            ("least_weight", |c| c.least_weight = 0),
            ("stripes", |c| c.stripes = 0),
        ];
        for (names, change) in refused {
            let mut config = Config::replica();
            change(&mut config);
            let error = config.validate().unwrap_err().to_string();
            assert!(error.contains(names), "{names}: {error}");
        }
    }
}
