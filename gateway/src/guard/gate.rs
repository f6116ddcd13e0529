//! The way to one tablet: asked before a pool is touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use shardgate_breaker::{Breaker, Mode, OwnedPermit, State, Time, Work, may_take_slot};

use super::Outcome;
use super::attempt::Attempt;
use super::error::Refused;
use super::parked::{Parked, Parking};
use super::shard::ShardGuard;
use crate::base::clock::Instant;
use crate::base::{Role, TabletAlias};

/// How long another kind of statement counts as wanting the pool after it asked.
const WANTED: Duration = Duration::from_secs(1);

/// What stands before one tablet.
#[derive(Debug)]
pub struct Gate {
    /// The shard, or the shard and the replica's alias.
    name: String,
    tablet: TabletAlias,
    role: Role,
    shard: Arc<ShardGuard>,
    /// The primary's or the replica's; none if breakers are off.
    breaker: Option<Arc<Breaker>>,
    origin: Instant,
    /// Percent of a pool for one kind.
    max_share: u32,
    /// Which of the shard's primaries it leads to, counted.
    term: u64,
    parked: Parked,
    /// The kind that asked last while the pool was busy, and when.
    asked_last: AtomicU64,
    asked_at: AtomicU64,
    /// When another kind than that asked last; zero if none did.
    other_at: AtomicU64,
}

/// Whether a kind of statement holds more of a pool than its share while others want the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// It does not.
    Within,
    /// It does.
    Beyond {
        /// Connections it holds.
        held: u32,
    },
}

/// The leave to go on to the pool. While a breaker recovers it is the one probe; dropped, the probe is free again.
#[derive(Debug)]
#[must_use = "a pass that is dropped gives its probe back"]
pub struct Pass {
    pub(super) work: Work,
    pub(super) probe: Option<OwnedPermit>,
}

impl Pass {
    /// What it is for.
    pub fn work(&self) -> Work {
        self.work
    }
}

impl Gate {
    pub(super) fn new(
        name: String,
        (tablet, role): (TabletAlias, Role),
        shard: Arc<ShardGuard>,
        breaker: Option<Arc<Breaker>>,
        origin: Instant,
        max_share: u32,
    ) -> Self {
        let term = shard.buffer().term();
        Self {
            name,
            tablet,
            role,
            shard,
            breaker,
            origin,
            max_share,
            term,
            parked: Parked::default(),
            asked_last: AtomicU64::new(0),
            asked_at: AtomicU64::new(0),
            other_at: AtomicU64::new(0),
        }
    }

    /// A gate without a breaker, for a tablet that nobody guards.
    pub fn open(name: String, shard: Arc<ShardGuard>, origin: Instant) -> Self {
        let tablet = TabletAlias::from(name.as_str());
        Self::new(name, (tablet, Role::Replica), shard, None, origin, 0)
    }

    /// What an attempt that ended so says of the tablet. A sign that the primary is gone, or is none any more, begins a
    /// buffering. While the shard buffers, that its primary fails says nothing more of it: everybody knows.
    pub fn judged(&self, outcome: Outcome, is_sign: bool, now: Instant) -> Outcome {
        if self.role != Role::Primary {
            return outcome;
        }
        let buffer = self.shard.buffer();
        let known = if is_sign {
            buffer.sign(&self.tablet, now)
        } else {
            outcome == Outcome::Failure && buffer.is_buffering()
        };
        if known { Outcome::Neutral } else { outcome }
    }

    /// Whether another tablet was made the primary in place of the one it leads to: its answers are nobody's any more,
    /// since what it wrote or read is not what the shard holds.
    pub fn is_replaced(&self) -> bool {
        self.role == Role::Primary && self.shard.buffer().term() != self.term
    }

    /// Whether it leads to a primary in whose place another is: what comes from there says nothing of the shard any more.
    pub(super) fn is_succeeded(&self) -> bool {
        self.role == Role::Primary && self.shard.buffer().follows_another(&self.tablet)
    }

    /// Whether a standstill of the gateway left what began then no fair chance to end by now.
    pub(super) fn cut_short(&self, since: Instant, fair: Duration, now: Instant) -> bool {
        self.shard
            .pulse()
            .cut_short(self.time(since), fair, self.time(now))
    }

    /// How many of a pool's slots a kind beyond its share may use all the same: all but its share and a reserve of a tenth
    /// for the others. Zero if the pool is too small to be shared.
    pub fn beyond_share(&self, size: usize) -> usize {
        let share = size * self.max_share as usize / 100;
        size.saturating_sub(share + (size / 10).max(1))
    }

    /// The guards of the shard.
    pub fn shard(&self) -> &Arc<ShardGuard> {
        &self.shard
    }

    /// The tablet's breaker; none if breakers are off.
    pub fn breaker(&self) -> Option<&Arc<Breaker>> {
        self.breaker.as_ref()
    }

    /// The breakers' time.
    pub fn time(&self, now: Instant) -> Time {
        Time::at(now.saturating_duration_since(self.origin))
    }

    /// Asks to go on to the pool. While the breaker is closed that takes no permit: waiting is not the tablet's time.
    pub fn enter(&self, work: Work, now: Instant) -> Result<Pass, Refused> {
        let mut probe = None;
        if let Some(breaker) = &self.breaker {
            let at = self.time(now);
            if !breaker.is_plainly_closed() {
                // Only a probe is held while it waits: it is the one there is.
                probe = Some(
                    breaker
                        .try_acquire_owned(work, at)
                        .map_err(|rejected| self.refused(rejected))?,
                )
                .filter(OwnedPermit::is_probe);
            }
            self.shard
                .kinds()
                .check(work, at)
                .map_err(|rejected| Refused::Kind {
                    name: self.name.clone(),
                    rejected,
                })?;
        }
        Ok(Pass { work, probe })
    }

    /// Asks for a statement on a connection that is in hand already: row locks wait for it, so it is refused only while
    /// the breaker is open.
    pub fn enter_held(&self, now: Instant) -> Result<(), Refused> {
        let Some(breaker) = &self.breaker else {
            return Ok(());
        };
        if breaker.is_plainly_closed() {
            return Ok(());
        }
        let at = self.time(now);
        let open = match breaker.mode() {
            Mode::ForcedOpen => true,
            Mode::Auto => breaker.state(at) == State::Open,
            Mode::ForcedClosed | Mode::DryRun => false,
        };
        if !open {
            return Ok(());
        }
        match breaker.try_acquire(Work::CONNECT, at) {
            // The cooldown ended in between.
            Ok(permit) => {
                drop(permit);
                Ok(())
            }
            Err(rejected) => Err(self.refused(rejected)),
        }
    }

    /// Whether a kind may take a slot of a pool, of which `busy` of `size` are taken, like any other. A kind that holds its
    /// share while others want the pool may not: it has to leave a reserve. Since its statements run for long once they
    /// are in, "while" reaches a second back: else it had all slots before the first other asks.
    pub fn share(&self, work: Work, (busy, size): (usize, usize), now: Instant) -> Share {
        let Some(breaker) = &self.breaker else {
            return Share::Within;
        };
        if self.max_share == 0 || work == Work::CONNECT || busy * 100 < size * self.max_share as usize {
            return Share::Within;
        }
        let at = self.time(now).as_nanos().max(1);
        let kind = work.fingerprint();
        let before = self.asked_last.swap(kind, Ordering::Relaxed);
        let asked_at = self.asked_at.swap(at, Ordering::Relaxed);
        if before != kind {
            // Zero before anybody asked.
            self.other_at.store(asked_at, Ordering::Relaxed);
        }
        let other = self.other_at.load(Ordering::Relaxed);
        let others = other != 0 && Time::from_nanos(at).since(Time::from_nanos(other)) < WANTED;
        let (running, _) = breaker.in_flight_of(work);
        let held = running.saturating_add(self.parked.count(work));
        let size = u32::try_from(size).unwrap_or(u32::MAX);
        if may_take_slot(held, size, self.max_share, others) {
            Share::Within
        } else {
            Share::Beyond { held }
        }
    }

    /// Counts a statement that keeps its connection while it waits for another tablet, until what it gives is dropped.
    pub fn park(self: &Arc<Self>, work: Work) -> Parking {
        self.parked.enter(work);
        let gate = Arc::clone(self);
        Parking { gate, work }
    }

    pub(super) fn parked(&self) -> &Parked {
        &self.parked
    }

    /// The refusal of a kind that holds more than its share, and of which as many wait as may.
    pub fn share_refused(&self, held: u32, size: usize) -> Refused {
        Refused::Share {
            name: self.name.clone(),
            held,
            size: u32::try_from(size).unwrap_or(u32::MAX),
        }
    }

    /// Begins an attempt: the first byte is about to be sent.
    pub fn start(&self, pass: &mut Pass, now: Instant) -> Result<Attempt, Refused> {
        let Some(breaker) = &self.breaker else {
            return Ok(Attempt::unguarded(pass.work, now));
        };
        let at = self.time(now);
        let permit = self.begin(breaker, pass, pass.work, at)?;
        let kind = self
            .shard
            .kinds()
            .try_acquire(pass.work, at)
            .map_err(|rejected| Refused::Kind {
                name: self.name.clone(),
                rejected,
            })?;
        self.shard.budget().attempt(at);
        Ok(Attempt::new(permit, kind, pass.work, now))
    }

    /// Begins the opening of a connection. A probe is spent on it if it fails, and kept for the statement if it does not.
    pub fn start_connect(&self, pass: &mut Pass, now: Instant) -> Result<Attempt, Refused> {
        let Some(breaker) = &self.breaker else {
            return Ok(Attempt::unguarded(Work::CONNECT, now));
        };
        let at = self.time(now);
        let permit = self.begin(breaker, pass, Work::CONNECT, at)?;
        Ok(Attempt::new(permit, None, Work::CONNECT, now))
    }

    /// The permit of what is sent now: the probe that waited for it, unless its lease ended meanwhile.
    fn begin(
        &self,
        breaker: &Arc<Breaker>,
        pass: &mut Pass,
        work: Work,
        at: Time,
    ) -> Result<OwnedPermit, Refused> {
        if let Some(mut probe) = pass.probe.take()
            && probe.sent(at)
        {
            return Ok(probe);
        }
        breaker
            .try_acquire_owned(work, at)
            .map_err(|rejected| self.refused(rejected))
    }

    /// The connection is open.
    pub fn connected(&self, pass: &mut Pass, attempt: Attempt) {
        pass.probe = attempt.into_probe();
    }

    /// Begins an attempt on a connection in hand. If the one probe is out it goes on without a permit.
    pub fn start_held(&self, work: Work, now: Instant) -> Attempt {
        let Some(breaker) = &self.breaker else {
            return Attempt::unguarded(work, now);
        };
        match breaker.try_acquire_owned(work, self.time(now)) {
            Ok(permit) => Attempt::new(permit, None, work, now),
            Err(_) => Attempt::unguarded(work, now),
        }
    }

    pub(super) fn refused(&self, rejected: shardgate_breaker::Rejected) -> Refused {
        Refused::Breaker {
            name: self.name.clone(),
            rejected,
        }
    }
}
