//! One shard's buffer: when requests wait, and until when.

mod course;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use shardgate_breaker::Breaker;

use super::admission::{Admission, BufferRefused, Evicted, Request};
use super::common::Common;
use super::phase::{Cause, News, Phase};
use super::queue::Queue;
use super::tally::Tally;
use super::ticket::Call;
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
