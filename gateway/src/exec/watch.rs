//! Waiting for a tablet without losing sight of the client, the operator and the clock.

use std::time::Duration;

use shardgate_wire::ClientConn;

use super::alarm::Alarm;
use super::kill::KillSwitch;
use super::{ExecError, Kill};
use crate::base::clock::Instant;

/// What may end a command early.
#[derive(Clone, Copy, Debug)]
pub struct Limits<'a> {
    /// The session's kill switch.
    pub kill: &'a KillSwitch,
    /// Rings for the session.
    pub alarm: &'a Alarm,
    /// When the command must have its first row; `None` lifts the limit.
    pub deadline: Option<Deadline>,
    /// How long one attempt on a tablet may take; `None` for as long as the command.
    pub tablet: Option<Duration>,
    /// How long a tablet may send nothing once rows flow; `None` for ever.
    pub tablet_silent: Option<Duration>,
    /// How long the client may take nothing; `None` for ever.
    pub client_stalled: Option<Duration>,
}

/// A point in time and the limit it came from, for messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// When.
    pub at: Instant,
    /// The limit.
    pub after: Duration,
    /// Whose limit it is.
    pub layer: Layer,
}

/// Whose limit a deadline is. The tablet's lies inside the gateway's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    /// `mysql_server_query_timeout`, a directive, or a `SET`: of the whole command.
    Gateway,
    /// `queryserver_config_query_timeout`: of one attempt.
    Tablet,
}

impl Layer {
    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Gateway => "gateway",
            Self::Tablet => "tablet",
        }
    }
}

/// Why a wait ended without its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Somebody threw the kill switch.
    Killed(Kill),
    /// The client closed or reset its connection.
    ClientGone,
    /// The deadline passed.
    Deadline(Deadline),
}

/// What an attempt leaves of the command's time, for the answer to reach the client: a twentieth, within these bounds.
const MARGIN: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(20));

/// What the gateway asks behind an answer has at least this long.
const AFTERWARDS: Duration = Duration::from_secs(1);

impl Limits<'_> {
    /// The limits of an attempt that begins now: the tablet's own, or what is left of the command's less a margin.
    #[must_use]
    pub fn attempt(&self, now: Instant) -> Self {
        Self {
            deadline: self.attempt_deadline(now),
            ..*self
        }
    }

    /// When an attempt that begins now is given up.
    #[must_use]
    pub fn attempt_deadline(&self, now: Instant) -> Option<Deadline> {
        let own = self.tablet.map(|after| Deadline {
            at: now + after,
            after,
            layer: Layer::Tablet,
        });
        let left = self.deadline.map(|d| Deadline {
            at: Self::early(d.at, now),
            ..d
        });
        match (own, left) {
            (Some(own), Some(left)) => Some(if left.at < own.at { left } else { own }),
            (own, left) => own.or(left),
        }
    }

    /// The limits of what the gateway asks behind a statement's answer, on its connection: the statement's deadline was for
    /// the first row and may be long past.
    #[must_use]
    pub fn afterwards(&self, now: Instant) -> Self {
        let least = now + AFTERWARDS;
        let later = |d: Deadline| Deadline {
            at: d.at.max(least),
            ..d
        };
        Self {
            deadline: self.deadline.map(later),
            ..*self
        }
    }

    /// A little before a point in time.
    fn early(at: Instant, now: Instant) -> Instant {
        let left = at.saturating_duration_since(now);
        let margin = (left / 20).clamp(MARGIN.0, MARGIN.1);
        now + left.saturating_sub(margin)
    }
}

impl Limits<'_> {
    /// The deadline as a point in time.
    pub fn at(&self) -> Option<Instant> {
        self.deadline.map(|d| d.at)
    }

    /// Waits for `what`, or for whatever ends the command first. Dropped, or interrupted, it drops `what`: the guards in
    /// there clean up.
    pub async fn watch<T>(
        &self,
        client: &mut ClientConn,
        what: impl Future<Output = T>,
    ) -> Result<T, Interrupt> {
        // Such a future is some hundred bytes to a few thousand: it is moved once less this way.
        let mut what = std::pin::pin!(what);
        tokio::select! {
            biased;
            done = &mut what => Ok(done),
            kill = self.kill.thrown() => Err(Interrupt::Killed(kill)),
            _ = client.watch_closed() => Err(Interrupt::ClientGone),
            passed = self.expired() => Err(Interrupt::Deadline(passed)),
        }
    }

    /// Waits for `what` or the deadline, whatever the client does: for COMMIT, which is never cut short by anybody.
    pub async fn until_deadline<T>(&self, what: impl Future<Output = T>) -> Result<T, Interrupt> {
        tokio::select! {
            biased;
            done = what => Ok(done),
            passed = self.expired() => Err(Interrupt::Deadline(passed)),
        }
    }

    /// Resolves when the deadline passes, with what it came from.
    pub async fn expired(&self) -> Deadline {
        match self.deadline {
            Some(d) => {
                self.alarm.at(d.at).await;
                d
            }
            None => std::future::pending().await,
        }
    }
}

impl Interrupt {
    /// The error of a command that waited for `shards`.
    pub fn into_error(self, shards: String, note: &'static str) -> ExecError {
        match self {
            Self::Killed(kill) => ExecError::Killed(kill),
            Self::ClientGone => ExecError::ClientGone,
            Self::Deadline(passed) => ExecError::Deadline { passed, shards, note },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::clock;

    fn limits<'a>((kill, alarm): (&'a KillSwitch, &'a Alarm), gateway_ms: u64, tablet_ms: u64) -> Limits<'a> {
        let some = |ms: u64| (ms > 0).then(|| Duration::from_millis(ms));
        Limits {
            kill,
            alarm,
            deadline: some(gateway_ms).map(|after| Deadline {
                at: clock::now() + after,
                after,
                layer: Layer::Gateway,
            }),
            tablet: some(tablet_ms),
            tablet_silent: None,
            client_stalled: None,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_asked_behind_an_answer_has_a_second() {
        let (kill, alarm) = (KillSwitch::default(), Alarm::default());
        let began = clock::now();
        for (gateway, expected) in [(300, Some(6000)), (10_000, Some(10_000)), (0, None)] {
            let limits = limits((&kill, &alarm), gateway, 0);
            let later = limits.afterwards(began + Duration::from_secs(5));
            let got = later.at().map(|at| at.duration_since(began).as_millis());
            assert_eq!(got, expected, "{gateway}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_attempt_gets_the_tablets_time_or_what_is_left_less_a_margin() {
        let (kill, alarm) = (KillSwitch::default(), Alarm::default());
        for (gateway, tablet, expected) in [
            (1000, 800, Some((800, Layer::Tablet))),
            (300, 800, Some((285, Layer::Gateway))),
            (10_000, 0, Some((9980, Layer::Gateway))),
            (0, 800, Some((800, Layer::Tablet))),
            (1, 800, Some((0, Layer::Gateway))),
            (0, 0, None),
        ] {
            let now = clock::now();
            let got = limits((&kill, &alarm), gateway, tablet).attempt_deadline(now);
            let got = got.map(|d| (d.at.duration_since(now).as_millis(), d.layer));
            assert_eq!(got, expected, "{gateway} {tablet}");
        }
    }
}
