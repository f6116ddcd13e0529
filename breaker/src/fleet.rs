//! The replicas of one shard together: what to do when none of them may serve.
//!
//! As long as one may serve, reads go to those that may. Only when there is none is a choice to be made, and it is the
//! operator's: ask the primary (which then carries what the replicas carried), answer stale, or say so.

use std::time::Duration;

use crate::{Breaker, Mode, Ramp, Reason, State, Time};

/// One replica, as far as the fleet cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It may serve.
    Serves,
    /// Its lag is not known. With all replicas unknown at once the heartbeat is dead, not the fleet.
    Unknown,
    /// It is at or over the freshness budget, or not yet back under re-entry.
    Lagging,
    /// Its breaker is not closed, for a reason other than lag.
    Broken(Reason),
    /// It is drained, or not configured to serve.
    Drained,
}

impl Standing {
    /// The standing of a replica by its breaker and its lag.
    #[must_use]
    pub fn of(breaker: &Breaker, lag: Option<Duration>, ramp: &Ramp, now: Time) -> Self {
        let snapshot = breaker.snapshot(now);
        match (snapshot.mode, snapshot.state, snapshot.reason) {
            (Mode::ForcedOpen, _, _) => Self::Drained,
            (Mode::Auto, State::Open | State::HalfOpen, Some(Reason::Lag)) => Self::Lagging,
            (Mode::Auto, State::Open | State::HalfOpen, Some(reason)) => Self::Broken(reason),
            (Mode::Auto | Mode::ForcedClosed | Mode::DryRun, _, _) => match lag {
                None => Self::Unknown,
                Some(lag) if lag >= ramp.hard => Self::Lagging,
                Some(_) => Self::Serves,
            },
        }
    }
}

/// Why a fleet is degraded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FleetCause {
    /// There are no replicas.
    NoReplicas,
    /// Nobody's lag is known: a dead heartbeat, most likely.
    AllUnknown,
    /// All are behind.
    AllLagging,
    /// All are broken.
    AllBroken,
    /// All are drained.
    AllDrained,
    /// Each for a reason of its own.
    Mixed,
}

impl FleetCause {
    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NoReplicas => "no_replicas",
            Self::AllUnknown => "all_unknown",
            Self::AllLagging => "all_lagging",
            Self::AllBroken => "all_broken",
            Self::AllDrained => "all_drained",
            Self::Mixed => "mixed",
        }
    }
}

/// The fleet as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fleet {
    /// At least one replica may serve.
    Serving,
    /// None may.
    Degraded(FleetCause),
}

impl Fleet {
    /// Judges the replicas of one shard.
    #[must_use]
    pub fn of(replicas: impl IntoIterator<Item = Standing>) -> Self {
        let mut cause = None;
        for replica in replicas {
            let one = match replica {
                Standing::Serves => return Self::Serving,
                Standing::Unknown => FleetCause::AllUnknown,
                Standing::Lagging => FleetCause::AllLagging,
                Standing::Broken(_) => FleetCause::AllBroken,
                Standing::Drained => FleetCause::AllDrained,
            };
            cause = Some(match cause {
                Some(other) if other != one => FleetCause::Mixed,
                Some(_) | None => one,
            });
        }
        Self::Degraded(cause.unwrap_or(FleetCause::NoReplicas))
    }
}

/// What a degraded fleet does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FleetPolicy {
    /// Reads go to the primary, at most so many at once. As the cap fills up the less important are shed first: a read
    /// of priority 0 may use all of it, one of priority 100 half of it.
    Primary {
        /// Reads in flight on the primary. 0 = none: every read is shed.
        cap: u32,
    },
    /// Reads go to the least stale replica that answers, with a warning.
    Stale,
    /// Reads are refused.
    Error,
}

/// Where one read goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAnswer {
    /// To a replica, as ever.
    Replica,
    /// To the primary.
    Primary,
    /// To a replica that is behind, with a warning.
    Stale(FleetCause),
    /// Nowhere: the primary has no room for reads of this priority.
    Shed(FleetCause),
    /// Nowhere: the policy says so.
    Refused(FleetCause),
}

impl FleetPolicy {
    /// Decides about one read. `priority` is Vitess's: 0 is the most important, 100 the least. `on_primary` is the
    /// number of such reads the primary has in flight now.
    #[must_use]
    pub fn answer(self, fleet: Fleet, priority: u8, on_primary: u32) -> ReadAnswer {
        let Fleet::Degraded(cause) = fleet else {
            return ReadAnswer::Replica;
        };
        match self {
            Self::Primary { cap } => {
                let share = 200 - u64::from(priority.min(100));
                if u64::from(on_primary) * 200 < u64::from(cap) * share {
                    ReadAnswer::Primary
                } else {
                    ReadAnswer::Shed(cause)
                }
            }
            // A replica that is broken or drained does not answer, stale or not.
            Self::Stale => match cause {
                FleetCause::AllLagging | FleetCause::AllUnknown | FleetCause::Mixed => {
                    ReadAnswer::Stale(cause)
                }
                FleetCause::NoReplicas | FleetCause::AllBroken | FleetCause::AllDrained => {
                    ReadAnswer::Refused(cause)
                }
            },
            Self::Error => ReadAnswer::Refused(cause),
        }
    }
}

/// The middle of the siblings' p95, for [`Breaker::observe_siblings`]: of an even number the lower of the two, so that
/// one slow sibling of two cannot hide another.
#[must_use]
pub fn middle(siblings: &mut [Duration]) -> Option<Duration> {
    siblings.sort_unstable();
    siblings.get(siblings.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::Config;
    use Standing::{Broken, Drained, Lagging, Serves, Unknown};
    use std::sync::Arc;

    #[test]
    fn a_fleet_is_degraded_only_when_nobody_may_serve() {
        let broken = Broken(Reason::ErrorRate);
        for (replicas, expected) in [
            (&[Serves][..], Fleet::Serving),
            (&[Unknown, Lagging, broken, Drained, Serves], Fleet::Serving),
            (&[], Fleet::Degraded(FleetCause::NoReplicas)),
            (&[Unknown, Unknown], Fleet::Degraded(FleetCause::AllUnknown)),
            (&[Lagging], Fleet::Degraded(FleetCause::AllLagging)),
            (
                &[broken, Broken(Reason::Stall)],
                Fleet::Degraded(FleetCause::AllBroken),
            ),
            (&[Drained], Fleet::Degraded(FleetCause::AllDrained)),
            (&[Unknown, Lagging], Fleet::Degraded(FleetCause::Mixed)),
            (&[Unknown, Lagging, Unknown], Fleet::Degraded(FleetCause::Mixed)),
        ] {
            assert_eq!(Fleet::of(replicas.iter().copied()), expected, "{replicas:?}");
        }
    }

    #[test]
    fn the_policy_is_followed() {
        let lagging = Fleet::Degraded(FleetCause::AllLagging);
        let broken = Fleet::Degraded(FleetCause::AllBroken);
        let primary = FleetPolicy::Primary { cap: 10 };
        for (policy, fleet, priority, on_primary, expected) in [
            (FleetPolicy::Error, Fleet::Serving, 100, 99, ReadAnswer::Replica),
            (
                FleetPolicy::Error,
                lagging,
                0,
                0,
                ReadAnswer::Refused(FleetCause::AllLagging),
            ),
            (
                FleetPolicy::Stale,
                lagging,
                0,
                0,
                ReadAnswer::Stale(FleetCause::AllLagging),
            ),
            (
                FleetPolicy::Stale,
                broken,
                0,
                0,
                ReadAnswer::Refused(FleetCause::AllBroken),
            ),
            (primary, broken, 0, 9, ReadAnswer::Primary),
            (primary, broken, 0, 10, ReadAnswer::Shed(FleetCause::AllBroken)),
            (primary, broken, 100, 4, ReadAnswer::Primary),
            (primary, broken, 100, 5, ReadAnswer::Shed(FleetCause::AllBroken)),
            (primary, broken, 255, 5, ReadAnswer::Shed(FleetCause::AllBroken)),
            (
                FleetPolicy::Primary { cap: 0 },
                broken,
                0,
                0,
                ReadAnswer::Shed(FleetCause::AllBroken),
            ),
        ] {
            assert_eq!(
                policy.answer(fleet, priority, on_primary),
                expected,
                "{policy:?} {fleet:?} {priority}"
            );
        }
    }

    #[test]
    fn a_standing_follows_breaker_and_lag() {
        let (now, ramp) = (Time::from_nanos(1), Ramp::default());
        let breaker = || Breaker::new(Config::replica(), 1, Arc::new(())).unwrap();
        let standing =
            |b: &Breaker, lag: Option<u64>| Standing::of(b, lag.map(Duration::from_millis), &ramp, now);
        let closed = breaker();
        assert_eq!(standing(&closed, Some(799)), Serves);
        assert_eq!(
            standing(&closed, Some(800)),
            Lagging,
            "at once, before the breaker opens"
        );
        assert_eq!(standing(&closed, None), Unknown);
        let opened = breaker();
        opened.trip(Reason::HealthCheck, now);
        assert_eq!(standing(&opened, Some(0)), Broken(Reason::HealthCheck));
        let behind = breaker();
        behind.trip(Reason::Lag, now);
        assert_eq!(standing(&behind, Some(0)), Lagging);
        behind.set_mode(Mode::ForcedOpen, now);
        assert_eq!(standing(&behind, Some(0)), Drained);
    }

    #[test]
    fn the_middle_of_the_siblings() {
        let ms = |n: &[u64]| n.iter().map(|n| Duration::from_millis(*n)).collect::<Vec<_>>();
        for (siblings, expected) in [
            (&[][..], None),
            (&[5], Some(5)),
            (&[9, 5], Some(5)),
            (&[9, 1, 5], Some(5)),
        ] {
            assert_eq!(middle(&mut ms(siblings)), expected.map(Duration::from_millis));
        }
    }
}
