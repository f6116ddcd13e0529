//! How far a replica is behind its primary: a pure function of what both said last.
//!
//! With a heartbeat table the primary's and the replica's newest beats are compared with each other and with the times
//! at which they were seen here, never with a wall clock: the clock of whoever writes the beats cancels out. Without one
//! the replica's own count of seconds is taken, unless both sides' positions tell better: a replica that has everything
//! its primary had is not behind, however long nothing was written; one that lacks what its primary had some time ago
//! is behind by that time at least.
//!
//! What is not known is [`Lag::Unknown`], never zero. A measurement older than one interval grows by its age.

use std::time::Duration;

use super::health::Standing;
use super::observation::{Facts, Heartbeat, Replication};
use crate::base::Role;
use crate::base::clock::Instant;

/// How far a tablet is behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// By this much. Primaries always by nothing: they are never judged by lag.
    Known(Duration),
    /// Nobody knows, for this reason.
    Unknown(UnknownLag),
}

impl Lag {
    /// The duration, where it is known.
    #[must_use]
    pub const fn known(self) -> Option<Duration> {
        match self {
            Self::Known(lag) => Some(lag),
            Self::Unknown(_) => None,
        }
    }
}

/// Why a lag is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum UnknownLag {
    /// It never answered a look.
    NotMeasured,
    /// It no longer answers.
    Silent,
    /// It does not say what it replicates.
    ReplicationUnknown,
    /// It replicates nothing.
    NotReplicating,
    /// One of its replication threads does not run.
    ReplicationStopped,
    /// Its threads run and it gives no seconds.
    NoSeconds,
    /// It cannot read the heartbeat table.
    HeartbeatUnreadable,
    /// Its heartbeat table has no row that can be read as a time.
    HeartbeatEmpty,
    /// The primary's heartbeat was never seen.
    NoPrimaryHeartbeat,
    /// The primary's heartbeat stands still: whoever writes it is gone.
    HeartbeatDead,
}

impl UnknownLag {
    /// Every reason.
    pub const ALL: [Self; 10] = [
        Self::NotMeasured,
        Self::Silent,
        Self::ReplicationUnknown,
        Self::NotReplicating,
        Self::ReplicationStopped,
        Self::NoSeconds,
        Self::HeartbeatUnreadable,
        Self::HeartbeatEmpty,
        Self::NoPrimaryHeartbeat,
        Self::HeartbeatDead,
    ];

    /// The label in metrics, logs and JSON.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::NotMeasured => "not_measured",
            Self::Silent => "silent",
            Self::ReplicationUnknown => "replication_unknown",
            Self::NotReplicating => "not_replicating",
            Self::ReplicationStopped => "replication_stopped",
            Self::NoSeconds => "no_seconds",
            Self::HeartbeatUnreadable => "heartbeat_unreadable",
            Self::HeartbeatEmpty => "heartbeat_empty",
            Self::NoPrimaryHeartbeat => "no_primary_heartbeat",
            Self::HeartbeatDead => "heartbeat_dead",
        }
    }
}

/// What a lag is judged by.
#[derive(Clone, Copy, Debug)]
pub struct LagInputs<'a> {
    /// The tablet's role.
    pub role: Role,
    /// What is known of it.
    pub tablet: Option<&'a Standing>,
    /// What is known of its shard's primary.
    pub primary: Option<&'a Standing>,
    /// From one look to the next.
    pub interval: Duration,
}

/// A heartbeat that stands still for so long, or for so many intervals, is dead.
const DEAD_AFTER: Duration = Duration::from_secs(3);
const DEAD_INTERVALS: u32 = 4;

/// How far a tablet is behind now.
#[must_use]
pub fn lag(inputs: LagInputs<'_>, now: Instant) -> Lag {
    if inputs.role == Role::Primary {
        return Lag::Known(Duration::ZERO);
    }
    let Some(tablet) = inputs.tablet else {
        return Lag::Unknown(UnknownLag::NotMeasured);
    };
    let Some((facts, at)) = tablet.said() else {
        return Lag::Unknown(UnknownLag::NotMeasured);
    };
    if !tablet.serving {
        return Lag::Unknown(UnknownLag::Silent);
    }
    let then = match &facts.heartbeat {
        Some(heartbeat) => by_heartbeat(heartbeat, at, &inputs),
        None => by_status(facts, at, &inputs),
    };
    match then {
        Ok(lag) => {
            let age = now.saturating_duration_since(at);
            Lag::Known(lag + age.saturating_sub(inputs.interval))
        }
        Err(reason) => Lag::Unknown(reason),
    }
}

/// The replica's newest beat beside the newest that the primary had by then.
fn by_heartbeat(beat: &Heartbeat, at: Instant, inputs: &LagInputs<'_>) -> Result<Duration, UnknownLag> {
    let theirs = match beat {
        Heartbeat::Beat(micros) => *micros,
        Heartbeat::Empty => return Err(UnknownLag::HeartbeatEmpty),
        Heartbeat::Unreadable { .. } => return Err(UnknownLag::HeartbeatUnreadable),
    };
    let primary = inputs.primary.ok_or(UnknownLag::NoPrimaryHeartbeat)?;
    let newest = primary.beats.last().ok_or(UnknownLag::NoPrimaryHeartbeat)?;
    let looked = primary.said().map_or(newest.seen, |(_, at)| at);
    let limit = DEAD_AFTER.max(inputs.interval * DEAD_INTERVALS);
    if looked.saturating_duration_since(newest.seen) > limit {
        return Err(UnknownLag::HeartbeatDead);
    }
    // A beat seen after the replica was looked at says nothing of what the replica should have had by then.
    let due = primary
        .beats
        .iter()
        .rev()
        .find(|b| b.seen <= at)
        .unwrap_or(newest);
    if theirs >= due.micros {
        // It has all that was known of; of what came since nothing is known.
        let since = at.saturating_duration_since(looked);
        return Ok(since.saturating_sub(inputs.interval));
    }
    let missing = Duration::from_micros(u64::try_from(due.micros - theirs).unwrap_or(u64::MAX));
    Ok(missing + at.saturating_duration_since(due.seen))
}

/// The replica's own count, corrected by positions.
fn by_status(facts: &Facts, at: Instant, inputs: &LagInputs<'_>) -> Result<Duration, UnknownLag> {
    let channels = match &facts.replication {
        Replication::Unknown(_) => return Err(UnknownLag::ReplicationUnknown),
        Replication::Channels(channels) => channels,
    };
    if channels.is_empty() {
        return Err(UnknownLag::NotReplicating);
    }
    if !channels.iter().all(super::Channel::is_running) {
        return Err(UnknownLag::ReplicationStopped);
    }
    let seconds = channels
        .iter()
        .map(|c| c.seconds_behind.map(Duration::from_secs))
        .collect::<Option<Vec<_>>>()
        .and_then(|all| all.into_iter().max());
    let primary = inputs.primary.and_then(Standing::said);
    let positions = primary.and_then(|(p, when)| Some((p.position.as_ref()?, when)));
    match (positions, &facts.position) {
        (Some((theirs, when)), Some(ours)) if !theirs.is_empty() => {
            let since = at.saturating_duration_since(when);
            if ours.contains(theirs) {
                Ok(since.saturating_sub(inputs.interval))
            } else {
                seconds.map(|s| s.max(since)).ok_or(UnknownLag::NoSeconds)
            }
        }
        _ => seconds.ok_or(UnknownLag::NoSeconds),
    }
}

/// Why nobody's lag is known, if that is so: the reason most of them share. A dead heartbeat makes a whole fleet unknown
/// at once, which is another fault than a dead fleet.
#[must_use]
pub fn all_unknown(lags: &[Lag]) -> Option<UnknownLag> {
    let mut reasons = Vec::with_capacity(lags.len());
    for lag in lags {
        match lag {
            Lag::Known(_) => return None,
            Lag::Unknown(reason) => reasons.push(*reason),
        }
    }
    let count = |reason: &UnknownLag| reasons.iter().filter(|r| *r == reason).count();
    // Of reasons equally common the last one listed: the heartbeat's explain more than a tablet's.
    reasons.iter().copied().max_by_key(|r| (count(r), *r))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::observation::{Channel, Identity, Observation, PollError, Thread};
    use super::super::position::Position;
    use super::*;
    use crate::base::clock;

    const INTERVAL: Duration = Duration::from_millis(500);
    const MINUTES: u64 = 60_000;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    fn facts() -> Facts {
        Facts {
            read_only: true,
            super_read_only: None,
            replication: Replication::Channels(Vec::new()),
            position: None,
            heartbeat: None,
            identity: Identity::default(),
            uptime: None,
            bypasses_read_only: None,
        }
    }

    fn replicating(io: Thread, seconds: Option<u64>, position: &str) -> Facts {
        Facts {
            replication: Replication::Channels(vec![Channel {
                name: String::new(),
                source_host: String::new(),
                source_port: 0,
                io,
                sql: Thread::Running,
                seconds_behind: seconds,
                error: String::new(),
            }]),
            position: Position::of_mariadb(position),
            ..facts()
        }
    }

    fn at_position(position: &str) -> Facts {
        Facts {
            position: Position::of_mariadb(position),
            ..facts()
        }
    }

    fn beating(micros: i64) -> Facts {
        Facts {
            heartbeat: Some(Heartbeat::Beat(i128::from(micros))),
            ..facts()
        }
    }

    /// A run of observations, in milliseconds from a common start.
    struct Story {
        start: Instant,
        replica: Option<Standing>,
        primary: Option<Standing>,
    }

    impl Story {
        fn new() -> Self {
            Self {
                start: clock::now(),
                replica: None,
                primary: None,
            }
        }

        fn observation(&self, at: u64, outcome: Result<Facts, PollError>) -> Arc<Observation> {
            Arc::new(Observation {
                at: self.start + ms(at),
                took: Duration::ZERO,
                outcome,
            })
        }

        fn replica(mut self, at: u64, facts: Facts) -> Self {
            let seen = self.observation(at, Ok(facts));
            self.replica = Some(Standing::next(self.replica.as_ref(), seen));
            self
        }

        fn primary(mut self, at: u64, facts: Facts) -> Self {
            let seen = self.observation(at, Ok(facts));
            self.primary = Some(Standing::next(self.primary.as_ref(), seen));
            self
        }

        fn refused(mut self, at: u64) -> Self {
            let seen = self.observation(at, Err(PollError::Unreachable(String::new())));
            self.replica = Some(Standing::next(self.replica.as_ref(), seen));
            self
        }

        fn lag_of(&self, role: Role, now: u64) -> Lag {
            let (tablet, primary) = match role {
                Role::Replica => (self.replica.as_ref(), self.primary.as_ref()),
                Role::Primary => (self.primary.as_ref(), self.primary.as_ref()),
            };
            let inputs = LagInputs {
                role,
                tablet,
                primary,
                interval: INTERVAL,
            };
            lag(inputs, self.start + ms(now))
        }

        fn lag(&self, now: u64) -> Lag {
            self.lag_of(Role::Replica, now)
        }
    }

    const fn known(n: u64) -> Lag {
        Lag::Known(Duration::from_millis(n))
    }

    /// L1 [vitess#9307, proxysql#3897]: a stopped thread makes the server say NULL, which is not zero, also when the
    /// replica has all that its primary had; and a primary with a dead replica's settings is not judged.
    #[test]
    fn a_stopped_thread_is_unknown_and_a_primary_is_not_judged() {
        for io in [Thread::Stopped, Thread::Connecting] {
            let story = Story::new()
                .primary(0, at_position("0-1-5"))
                .replica(1, replicating(io, None, "0-1-5"));
            assert_eq!(story.lag(1), Lag::Unknown(UnknownLag::ReplicationStopped));
        }
        let promoted = Story::new().primary(0, replicating(Thread::Stopped, None, "0-1-5"));
        assert_eq!(promoted.lag_of(Role::Primary, 10 * MINUTES), known(0));
        let running = Story::new().replica(0, replicating(Thread::Running, None, ""));
        assert_eq!(running.lag(0), Lag::Unknown(UnknownLag::NoSeconds));
    }

    /// L2 [vitess#2687]: nothing was written for ten minutes.
    #[test]
    fn an_idle_primary_leaves_its_replica_at_zero() {
        let mut story = Story::new();
        for at in (0..10 * MINUTES).step_by(500) {
            story = story
                .primary(at, at_position("0-1-5"))
                .replica(at + 7, replicating(Thread::Running, Some(600), "0-1-5"));
            assert_eq!(story.lag(at + 400), known(0));
        }
    }

    /// L2: the clock that writes the beats is ten seconds off, either way.
    #[test]
    fn a_heartbeat_clock_that_is_off_cancels_out() {
        for off in [-10_000_000_i64, 0, 10_000_000] {
            let beat = |at: u64| beating(i64::try_from(at / 100 * 100_000).unwrap() + off);
            let mut story = Story::new().primary(30, beat(30));
            for at in (500..20_000).step_by(500) {
                story = story.replica(at, beat(at)).primary(at + 30, beat(at + 30));
                let Lag::Known(found) = story.lag(at + 100) else {
                    panic!("unknown at {at}")
                };
                assert!(found <= ms(100), "{off} {at}: {found:?}");
            }
            // The replica stops applying; the primary goes on.
            let stuck = beat(19_500);
            for at in (20_000..25_000).step_by(500) {
                story = story.replica(at, stuck.clone()).primary(at + 30, beat(at + 30));
            }
            let Lag::Known(found) = story.lag(24_600) else {
                panic!("unknown")
            };
            assert!(found >= ms(4_900) && found <= ms(5_200), "{off}: {found:?}");
        }
    }

    /// Beats a second apart, looked at twice a second: a beat that the primary wrote after the replica was looked at must
    /// not be held against the replica.
    #[test]
    fn a_beat_written_later_is_not_missing() {
        let mut story = Story::new();
        for at in (0..10_000_u64).step_by(500) {
            // A beat at 100, 1100, ...: between the two looks.
            let beat = |t: u64| beating(i64::try_from(t.saturating_sub(100) / 1000).unwrap() * 1_000_000);
            story = story
                .replica(at + 90, beat(at + 90))
                .primary(at + 110, beat(at + 110));
            if at > 0 {
                assert_eq!(story.lag(at + 120), known(0), "{at}");
            }
        }
    }

    #[test]
    fn a_dead_heartbeat_is_its_own_reason_for_everybody() {
        let mut story = Story::new();
        for at in (0..10_000).step_by(500) {
            story = story.primary(at, beating(7)).replica(at + 10, beating(7));
        }
        assert_eq!(story.lag(9_600), Lag::Unknown(UnknownLag::HeartbeatDead));
        let dead = Lag::Unknown(UnknownLag::HeartbeatDead);
        let silent = Lag::Unknown(UnknownLag::Silent);
        assert_eq!(
            all_unknown(&[dead, silent, dead]),
            Some(UnknownLag::HeartbeatDead)
        );
        assert_eq!(all_unknown(&[silent, dead]), Some(UnknownLag::HeartbeatDead));
        assert_eq!(all_unknown(&[dead, known(9)]), None);
        assert_eq!(all_unknown(&[]), None);
    }

    #[test]
    fn a_heartbeat_nobody_can_compare_is_unknown() {
        let with = |heartbeat| Facts {
            heartbeat: Some(heartbeat),
            ..facts()
        };
        let denied = Heartbeat::Unreadable {
            errno: 1142,
            message: String::new(),
        };
        for (heartbeat, reason) in [
            (Heartbeat::Empty, UnknownLag::HeartbeatEmpty),
            (denied, UnknownLag::HeartbeatUnreadable),
            (Heartbeat::Beat(5), UnknownLag::NoPrimaryHeartbeat),
        ] {
            let story = Story::new().primary(0, facts()).replica(1, with(heartbeat));
            assert_eq!(story.lag(1), Lag::Unknown(reason));
        }
    }

    #[test]
    fn age_counts_beyond_one_interval() {
        let story = Story::new().replica(0, replicating(Thread::Running, Some(2), ""));
        assert_eq!(story.lag(0), known(2_000));
        assert_eq!(story.lag(500), known(2_000));
        assert_eq!(story.lag(1_700), known(3_200));
        assert_eq!(story.refused(1_800).lag(1_900), Lag::Unknown(UnknownLag::Silent));
        assert_eq!(Story::new().lag(0), Lag::Unknown(UnknownLag::NotMeasured));
    }

    #[test]
    fn positions_tell_better_than_whole_seconds() {
        let behind = Story::new()
            .primary(0, at_position("0-1-9"))
            .replica(400, replicating(Thread::Running, Some(0), "0-1-8"));
        assert_eq!(
            behind.lag(400),
            known(400),
            "it lacks what was there 400 ms before"
        );
        let with_all = Story::new()
            .primary(0, at_position("0-1-9"))
            .replica(400, replicating(Thread::Running, Some(3), "0-1-9"));
        assert_eq!(with_all.lag(400), known(0));
        // The primary has been silent for long: what it wrote since is not known.
        let old = Story::new()
            .primary(0, at_position("0-1-9"))
            .replica(5_000, replicating(Thread::Running, Some(0), "0-1-9"));
        assert_eq!(old.lag(5_000), known(4_500));
    }

    #[test]
    fn what_does_not_replicate_is_unknown() {
        let none = Story::new().replica(0, facts());
        assert_eq!(none.lag(0), Lag::Unknown(UnknownLag::NotReplicating));
        let denied = Facts {
            replication: Replication::Unknown(super::super::UnknownReplication::Unsupported),
            ..facts()
        };
        let denied = Story::new().replica(0, denied);
        assert_eq!(denied.lag(0), Lag::Unknown(UnknownLag::ReplicationUnknown));
    }
}
