//! The course of one buffering: whether it may begin, how it ends, and who may go on when.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use shardgate_breaker::{Mode, Reason, State as BreakerState, Time};

use super::super::admission::{BufferRefused, Evicted, Request};
use super::super::phase::{Cause, Episode, News, Phase};
use super::super::queue::Queue;
use super::super::ticket::Ticket;
use super::{ShardBuffer, State};
use crate::base::clock::Instant;

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

impl ShardBuffer {
    pub(super) fn forbidden(&self, state: &State, is_write: bool) -> Option<BufferRefused> {
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
    pub(super) fn begin(
        &self,
        state: &mut State,
        cause: Cause,
        gone_since: Option<Instant>,
        now: Instant,
    ) -> bool {
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

    pub(super) fn start(&self, state: &mut State, cause: Cause, now: Instant) {
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

    pub(super) fn wait(
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

    pub(super) fn renew(&self, now: Instant) {
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
    pub(super) fn drain(&self, state: &mut State, reason: &'static str, now: Instant) {
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

    pub(super) fn moved(&self, state: &mut State) {
        state.moved = self.common.moves.fetch_add(1, Ordering::AcqRel) + 1;
    }

    /// Whether the buffering took too long and was ended.
    pub(super) fn end_if_late(&self, state: &mut State, now: Instant) -> bool {
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

    pub(super) fn end(&self, state: &mut State, failover: &Episode, reason: &'static str, now: Instant) {
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
    pub(super) fn send_on(&self, state: &mut State, now: Instant) {
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

    pub(super) fn breaker_is_closed(&self) -> bool {
        self.breaker.load().as_ref().is_none_or(|b| b.is_plainly_closed())
    }

    fn time(&self, now: Instant) -> Time {
        Time::at(now.saturating_duration_since(self.common.origin))
    }

    /// Says whether requests have to ask.
    pub(super) fn note(&self, state: &State) {
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
}
