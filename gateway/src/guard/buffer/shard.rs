//! One shard's buffer: when requests wait, and until when.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use shardgate_breaker::{Breaker, Mode, Reason, State as BreakerState, Time};

use super::admission::{Admission, BufferRefused, Evicted, Request};
use super::common::Common;
use super::phase::{Cause, Episode, News, Phase};
use super::queue::Queue;
use super::tally::Tally;
use super::ticket::{Call, Ticket};
use crate::base::clock::Instant;
use crate::base::{ShardId, TabletAlias};

/// The buffer of one shard. It outlives reloads: who waits does not care about thresholds.
#[derive(Debug)]
pub struct ShardBuffer {
    id: ShardId,
    tally: Arc<Tally>,
    /// Whether a request has to ask at all: not while the primary takes writes and nobody waits.
    attention: AtomicBool,
    state: Mutex<State>,
    breaker: ArcSwapOption<Breaker>,
    common: Arc<Common>,
    /// Counts the shard's primaries.
    term: AtomicU64,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    news: Option<News>,
    /// The last primary that was seen to take writes.
    primary: Option<TabletAlias>,
    queue: Queue,
    /// When the last buffering ended.
    ended: Option<Instant>,
    /// The last buffering was given up, and no primary has been seen to take writes since.
    given_up: bool,
    /// The number of the last change of the primary, see [`Common::moves`].
    moved: u64,
    closed: bool,
}

impl State {
    fn follows_another(&self, tablet: &TabletAlias) -> bool {
        self.primary.as_ref().is_some_and(|primary| primary != tablet)
    }
}

/// Why a shard does not begin to buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Skip {
    Disabled,
    Shutdown,
    /// The last failover was too recent, or failed and is not over.
    TooRecent,
    /// The primary has been gone for longer than anybody would wait.
    GoneTooLong,
    /// The breaker is open for a reason that no reparent explains.
    BreakerOpen,
}

impl Skip {
    const fn label(self) -> &'static str {
        match self {
            Self::Disabled => "Disabled",
            Self::Shutdown => "Shutdown",
            Self::TooRecent => "LastFailoverTooRecent",
            Self::GoneTooLong => "GoneTooLong",
            Self::BreakerOpen => "BreakerOpen",
        }
    }
}

/// A buffer as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BufferSnapshot {
    /// The shard.
    pub shard: ShardId,
    /// `idle`, `buffering` or `draining`.
    pub phase: &'static str,
    /// What it began with; `None` if it is idle.
    pub cause: Option<&'static str>,
    /// How long it has been buffering.
    pub buffering_for: Option<Duration>,
    /// Requests that wait.
    pub requests: usize,
    /// Bytes of their statements.
    pub bytes: usize,
    /// What is the matter with the primary; `None` if it takes writes.
    pub why: Option<String>,
}

impl ShardBuffer {
    pub(in crate::guard) fn new(id: ShardId, common: Arc<Common>) -> Self {
        let tally = Arc::new(Tally::new(&id, Arc::clone(&common.metrics)));
        let queue = Queue::new(id.clone(), Arc::clone(&common), Arc::clone(&tally));
        Self {
            tally,
            id,
            attention: AtomicBool::new(false),
            state: Mutex::new(State {
                phase: Phase::Idle,
                news: None,
                primary: None,
                queue,
                ended: None,
                given_up: false,
                moved: 0,
                closed: false,
            }),
            breaker: ArcSwapOption::empty(),
            common,
            term: AtomicU64::new(0),
        }
    }

    /// The breaker of the shard's primary, which is made anew when thresholds change.
    pub(in crate::guard) fn set_breaker(&self, breaker: Option<&Arc<Breaker>>) {
        self.breaker.store(breaker.cloned());
    }

    /// The shard.
    pub fn id(&self) -> &ShardId {
        &self.id
    }

    /// Asks whether a request may be sent to the shard's primary.
    pub fn admit(self: &Arc<Self>, request: Request, now: Instant) -> Result<Admission, BufferRefused> {
        if !self.attention.load(Ordering::Acquire) {
            return Ok(Admission::Pass);
        }
        let mut state = self.lock();
        if let Some(refused) = self.forbidden(&state, request.is_write) {
            return Err(refused);
        }
        if matches!(state.phase, Phase::Idle) {
            let since = match &state.news {
                Some(News::Gone { since, .. }) => *since,
                Some(News::ReadOnly { since, .. }) if request.is_write => *since,
                _ => return Ok(Admission::Pass),
            };
            if !self.begin(&mut state, Cause::Known, Some(since), now) {
                return Ok(Admission::Pass);
            }
        }
        match &mut state.phase {
            Phase::Buffering(failover) if failover.dry_run => {
                failover.most += 1;
                self.tally.would_buffer();
                Ok(Admission::Pass)
            }
            Phase::Buffering(_) => self.wait(&mut state, request, now).map(Admission::Wait),
            // A breaker that is not yet closed lets one through at a time: those that waited longest.
            Phase::Draining if !self.breaker_is_closed() => {
                self.wait(&mut state, request, now).map(Admission::Wait)
            }
            Phase::Draining | Phase::Idle => Ok(Admission::Pass),
        }
    }

    /// A request came back with a sign that this tablet is no longer the primary, or gone; whether the shard buffers, so
    /// that the sign says nothing more of the tablet.
    pub fn sign(&self, tablet: &TabletAlias, now: Instant) -> bool {
        let mut state = self.lock();
        if state.follows_another(tablet) {
            // Of the last primary. Nobody is surprised.
            return true;
        }
        if let Phase::Buffering(failover) = &mut state.phase {
            failover.last_sign = now;
            return !failover.dry_run;
        }
        let since = match &state.news {
            Some(News::Gone { since, .. } | News::ReadOnly { since, .. }) => Some(*since),
            _ => None,
        };
        self.begin(&mut state, Cause::Sign, since, now) && is_wet(&state)
    }

    /// Whether another tablet than this one was seen to take writes since.
    pub(in crate::guard) fn follows_another(&self, tablet: &TabletAlias) -> bool {
        self.lock().follows_another(tablet)
    }

    /// Whether a request that failed on the primary, and began when so many changes were counted, is to be sent again at
    /// once: somebody else is the primary now, or the same one was seen to take writes meanwhile.
    pub fn moved_since(&self, moves: u64) -> bool {
        self.lock().moved > moves
    }

    /// Why no request of this kind may go to the primary, whoever waits.
    pub fn forbids(&self, is_write: bool) -> Option<BufferRefused> {
        if !self.attention.load(Ordering::Acquire) {
            return None;
        }
        self.forbidden(&self.lock(), is_write)
    }

    /// How many times another tablet was made the primary. What was lent before belongs to an earlier one.
    pub(in crate::guard) fn term(&self) -> u64 {
        self.term.load(Ordering::Acquire)
    }

    /// Requests are about to be sent to another primary.
    pub fn next_term(&self) {
        self.term.fetch_add(1, Ordering::AcqRel);
    }

    /// Whether its primary is known to take no writes, or was just told to be gone. One whose reparent is only announced
    /// still takes them.
    pub fn is_without_primary(&self) -> bool {
        if !self.attention.load(Ordering::Acquire) {
            return false;
        }
        let state = self.lock();
        let vacant = matches!(state.news, Some(News::ReadOnly { .. } | News::Gone { .. }));
        vacant || matches!(&state.phase, Phase::Buffering(failover) if !failover.announced)
    }

    /// Whether requests wait.
    pub fn is_buffering(&self) -> bool {
        self.attention.load(Ordering::Acquire) && is_wet(&self.lock())
    }

    /// What is now known of the shard's primary.
    pub fn told(&self, mut news: News, now: Instant) {
        let mut state = self.lock();
        match &news {
            News::Writes { primary, seen } => {
                let was_away = std::mem::take(&mut state.given_up)
                    || matches!(
                        state.news,
                        Some(News::Gone { .. } | News::ReadOnly { .. } | News::Unknown { .. })
                    );
                if was_away && !self.breaker_is_closed() {
                    // It is back: its breaker need not wait out its time.
                    self.renew(now);
                }
                let over = match &state.phase {
                    Phase::Buffering(failover) => failover.is_ended_by(primary, *seen),
                    Phase::Idle | Phase::Draining => false,
                };
                if state.primary.as_ref() != Some(primary) {
                    state.primary = Some(primary.clone());
                    self.moved(&mut state);
                }
                if over {
                    self.drain(&mut state, "NewPrimarySeen", now);
                }
            }
            News::ReadOnly { .. } | News::Gone { .. } => {
                if let Phase::Buffering(failover) = &mut state.phase {
                    failover.vacant = true;
                }
            }
            // Nobody knows for how long. Those that wait go on, and are told where they ask again.
            News::SplitBrain | News::MayBypass { .. } => self.drain(&mut state, "SplitBrain", now),
            News::Unknown { .. } => {}
        }
        keep_since(state.news.as_ref(), &mut news);
        state.news = Some(news);
        self.note(&state);
    }

    /// Another tablet is the primary from now on, whether or not it was seen to take writes.
    pub fn appointed(&self, primary: &TabletAlias) {
        let mut state = self.lock();
        if state.primary.as_ref() != Some(primary) {
            state.primary = Some(primary.clone());
            self.moved(&mut state);
        }
    }

    /// Somebody says that a reparent is about to begin: requests wait from now on, whatever the breaker says. `false` if
    /// the shard never buffers.
    pub fn announce(&self, now: Instant) -> bool {
        let mut state = self.lock();
        if let Phase::Buffering(failover) = &mut state.phase {
            failover.announced = true;
            return true;
        }
        if state.closed || !self.common.settings.load().covers(&self.id) {
            return false;
        }
        self.start(&mut state, Cause::Announced, now);
        true
    }

    /// Somebody says that the reparent is over: the next look at a primary that takes writes ends the buffering.
    pub fn call_off(&self, now: Instant) -> bool {
        let mut state = self.lock();
        let Phase::Buffering(failover) = &mut state.phase else {
            return false;
        };
        failover.announced = false;
        failover.last_sign = now;
        self.common.began.notify_one();
        true
    }

    /// Ends what has taken too long. Call it every 100 ms.
    pub fn tick(&self, now: Instant) {
        if self.attention.load(Ordering::Acquire) {
            let mut state = self.lock();
            self.end_if_late(&mut state, now);
            // Its breaker may have closed, or be due for a probe, without anybody's answer.
            self.send_on(&mut state, now);
        }
    }

    /// The gateway stops: nobody waits any more.
    pub fn close(&self, now: Instant) {
        let mut state = self.lock();
        state.closed = true;
        if let Phase::Buffering(failover) = &state.phase {
            let failover = failover.clone();
            self.end(&mut state, &failover, "Shutdown", now);
        }
        state.phase = Phase::Idle;
        state.queue.give_up_all(Evicted::Shutdown);
        self.note(&state);
    }

    /// How it is now.
    pub fn snapshot(&self, now: Instant) -> BufferSnapshot {
        let state = self.lock();
        let (phase, failover) = match &state.phase {
            Phase::Idle => ("idle", None),
            Phase::Buffering(failover) => ("buffering", Some(failover)),
            Phase::Draining => ("draining", None),
        };
        let load = self.common.room.of(&self.id);
        BufferSnapshot {
            shard: self.id.clone(),
            phase,
            cause: failover.map(|f| f.cause.label()),
            buffering_for: failover.map(|f| now.saturating_duration_since(f.since)),
            requests: load.requests,
            bytes: load.bytes,
            why: match &state.news {
                None | Some(News::Writes { .. }) => None,
                Some(news) => Some(news.why().to_owned()),
            },
        }
    }

    /// The error of one that waits no more.
    pub(super) fn refusal(&self, evicted: Evicted, since: Instant, now: Instant) -> BufferRefused {
        let state = self.lock();
        let why = state
            .news
            .as_ref()
            .map_or("its primary changes", News::why)
            .to_owned();
        let shard = self.id.to_string();
        let millis = |d: Duration| u64::try_from(d.as_millis()).unwrap_or(u64::MAX);
        match evicted {
            Evicted::Full => BufferRefused::Full { shard, why },
            Evicted::Window => BufferRefused::Window {
                shard,
                why,
                waited_ms: millis(now.saturating_duration_since(since)),
            },
            Evicted::MaxDuration => BufferRefused::MaxDuration {
                shard,
                why,
                after_ms: millis(self.common.settings.load().max_failover_duration),
            },
            Evicted::Shutdown => BufferRefused::Shutdown { shard, why },
        }
    }

    /// The time of one that waits is up; `None` if it was called in the same moment.
    pub(super) fn time_is_up(&self, number: u64) -> Option<Call> {
        let waited = self.lock().queue.give_up(number, Evicted::Window.label());
        waited.then_some(Call::Out(Evicted::Window))
    }

    /// One that waited is gone; whether it was still waiting.
    pub(super) fn abandon(&self, number: u64) -> bool {
        self.lock().queue.give_up(number, "ContextDone")
    }

    /// One that waited has its answer: the next ones go.
    pub(super) fn next(&self) {
        let mut state = self.lock();
        state.queue.arrived();
        self.send_on(&mut state, crate::base::clock::now());
        self.note(&state);
    }

    fn forbidden(&self, state: &State, is_write: bool) -> Option<BufferRefused> {
        let shard = || self.id.to_string();
        match &state.news {
            Some(News::SplitBrain) if is_write => Some(BufferRefused::SplitBrain { shard: shard() }),
            Some(News::MayBypass { privilege }) => Some(BufferRefused::MayBypass {
                shard: shard(),
                privilege: privilege.clone(),
            }),
            _ => None,
        }
    }

    fn may_begin(&self, state: &State, gone_since: Option<Instant>, now: Instant) -> Result<(), Skip> {
        let settings = self.common.settings.load();
        if state.closed {
            return Err(Skip::Shutdown);
        }
        if !settings.covers(&self.id) {
            return Err(Skip::Disabled);
        }
        let recent = |ended: Instant| now < ended + settings.min_time_between_failovers;
        if state.given_up || state.ended.is_some_and(recent) {
            return Err(Skip::TooRecent);
        }
        if gone_since.is_some_and(|since| now > since + settings.max_failover_duration) {
            return Err(Skip::GoneTooLong);
        }
        // That nobody listens opens it too, and that is what a reparent looks like.
        if let Some(breaker) = &*self.breaker.load()
            && !breaker.is_plainly_closed()
        {
            let shown = breaker.snapshot(self.time(now));
            let explained = match shown.reason {
                None | Some(Reason::HealthCheck) => true,
                Some(Reason::ConsecutiveFailures | Reason::ErrorRate) => {
                    matches!(state.news, Some(News::Gone { .. }))
                }
                Some(_) => false,
            };
            if shown.state == BreakerState::Open && !explained {
                return Err(Skip::BreakerOpen);
            }
        }
        Ok(())
    }

    /// Begins to buffer, if that may be.
    fn begin(&self, state: &mut State, cause: Cause, gone_since: Option<Instant>, now: Instant) -> bool {
        match self.may_begin(state, gone_since, now) {
            Ok(()) => {
                self.start(state, cause, now);
                true
            }
            Err(skip) => {
                self.tally.skipped(skip.label());
                false
            }
        }
    }

    fn start(&self, state: &mut State, cause: Cause, now: Instant) {
        let dry_run = self.common.settings.load().dry_run;
        state.phase = Phase::Buffering(Episode {
            since: now,
            cause,
            primary: state.primary.clone(),
            last_sign: now,
            vacant: matches!(state.news, Some(News::Gone { .. } | News::ReadOnly { .. })),
            announced: cause == Cause::Announced,
            dry_run,
            most: 0,
            overflowed: false,
        });
        self.tally.started();
        let why = state.news.as_ref().map_or("", News::why);
        tracing::warn!(
            shard = %self.id, reason = cause.label(), dry_run, why,
            "requests wait for a primary that takes writes"
        );
        self.note(state);
        self.common.began.notify_one();
    }

    fn wait(
        self: &Arc<Self>,
        state: &mut State,
        request: Request,
        now: Instant,
    ) -> Result<Ticket, BufferRefused> {
        let joined = state.queue.join(request.bytes);
        if let Phase::Buffering(failover) = &mut state.phase {
            failover.most = failover.most.max(state.queue.len());
            // A buffer that overflows is a shard that fails its clients: once a buffering its breaker opens.
            if joined.overflowed && !failover.overflowed {
                failover.overflowed = true;
                self.trip(now);
            }
        }
        let Some(place) = joined.place else {
            let why = state.news.as_ref().map_or("its primary changes", News::why);
            return Err(BufferRefused::Full {
                shard: self.id.to_string(),
                why: why.to_owned(),
            });
        };
        Ok(Ticket {
            shard: Arc::clone(self),
            place,
            since: now,
            until: now + self.common.settings.load().window,
            over: false,
        })
    }

    fn renew(&self, now: Instant) {
        if let Some(breaker) = &*self.breaker.load() {
            breaker.renew(self.time(now));
        }
    }

    fn trip(&self, now: Instant) {
        if let Some(breaker) = &*self.breaker.load() {
            breaker.trip(Reason::Buffer, self.time(now));
        }
    }

    /// It is over: those that waited go, a few at a time.
    fn drain(&self, state: &mut State, reason: &'static str, now: Instant) {
        if !matches!(state.phase, Phase::Buffering(_)) {
            return;
        }
        let Phase::Buffering(failover) = std::mem::replace(&mut state.phase, Phase::Draining) else {
            return;
        };
        self.end(state, &failover, reason, now);
        state.queue.open(now);
        if !failover.dry_run {
            self.moved(state);
            self.renew(now);
        }
        self.send_on(state, now);
    }

    fn moved(&self, state: &mut State) {
        state.moved = self.common.moves.fetch_add(1, Ordering::AcqRel) + 1;
    }

    /// Whether the buffering took too long and was ended.
    fn end_if_late(&self, state: &mut State, now: Instant) -> bool {
        let most = self.common.settings.load().max_failover_duration;
        let failover = match &state.phase {
            Phase::Buffering(failover) if now >= failover.since + most => failover.clone(),
            Phase::Buffering(_) | Phase::Idle | Phase::Draining => return false,
        };
        if !failover.vacant && matches!(state.news, Some(News::Writes { .. })) {
            // Announced, and nothing came of it.
            self.drain(state, "MaxDurationExceeded", now);
            return true;
        }
        state.phase = Phase::Idle;
        state.given_up = true;
        self.end(state, &failover, "MaxDurationExceeded", now);
        state.queue.give_up_all(Evicted::MaxDuration);
        if !failover.dry_run {
            self.trip(now);
        }
        self.note(state);
        true
    }

    fn end(&self, state: &mut State, failover: &Episode, reason: &'static str, now: Instant) {
        // A false alarm must not keep clients from waiting for the failover that follows.
        let moved = state.primary != failover.primary;
        if failover.vacant || moved || reason == "MaxDurationExceeded" {
            state.ended = Some(now);
        }
        let lasted = now.saturating_duration_since(failover.since);
        self.tally
            .ended(failover, reason, (lasted, self.common.room.size()));
        tracing::warn!(
            shard = %self.id, reason, lasted_ms = lasted.as_millis(), waiting = state.queue.len(), most = failover.most,
            "requests no longer wait for a primary"
        );
    }

    /// Sends on as many as may be on their way at once.
    fn send_on(&self, state: &mut State, now: Instant) {
        if !matches!(state.phase, Phase::Draining) {
            return;
        }
        let most = self.may_be_on_their_way(&state.queue, now);
        state.queue.send_on(most);
        if state.queue.is_done() {
            state.phase = Phase::Idle;
        }
        self.note(state);
    }

    /// How many may be sent at once: while the breaker recovers only its one probe, and none while it refuses all.
    fn may_be_on_their_way(&self, queue: &Queue, now: Instant) -> usize {
        let all = queue.may_go(self.common.settings.load().drain_concurrency.max(1), now);
        match &*self.breaker.load() {
            None => all,
            // Whoever forced it means what it says to those that ask.
            Some(breaker) if breaker.is_plainly_closed() || breaker.mode() != Mode::Auto => all,
            Some(breaker) => usize::from(breaker.wants_probe(self.time(now))),
        }
    }

    fn breaker_is_closed(&self) -> bool {
        self.breaker.load().as_ref().is_none_or(|b| b.is_plainly_closed())
    }

    fn time(&self, now: Instant) -> Time {
        Time::at(now.saturating_duration_since(self.common.origin))
    }

    /// Says whether requests have to ask.
    fn note(&self, state: &State) {
        let plain = matches!(state.phase, Phase::Idle)
            && matches!(
                state.news,
                None | Some(News::Writes { .. } | News::Unknown { .. })
            );
        match (self.attention.swap(!plain, Ordering::AcqRel), !plain) {
            (false, true) => drop(self.common.asking.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(self.common.asking.fetch_sub(1, Ordering::AcqRel)),
            (true, true) | (false, false) => {}
        }
    }

    /// A poisoned lock means a panic in here, between two whole changes.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_wet(state: &State) -> bool {
    matches!(&state.phase, Phase::Buffering(failover) if !failover.dry_run)
}

/// What was so before has been so since then.
fn keep_since(before: Option<&News>, news: &mut News) {
    let (
        Some(News::Gone { since: old, .. } | News::ReadOnly { since: old, .. }),
        News::Gone { since, .. } | News::ReadOnly { since, .. },
    ) = (before, news)
    else {
        return;
    };
    *since = (*since).min(*old);
}

impl Drop for ShardBuffer {
    fn drop(&mut self) {
        if *self.attention.get_mut() {
            self.common.asking.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
