//! One try of one leg on one tablet: its permits, from the first byte sent to the outcome.

use std::sync::Arc;
use std::time::Duration;

use shardgate_breaker::{Outcome, OwnedPermit, Pulse, Work};

use super::gate::Gate;
use crate::base::clock::Instant;

/// An attempt in flight. Dropped without a word it says nothing of the tablet.
#[derive(Debug)]
pub struct Attempt {
    permit: Option<OwnedPermit>,
    kind: Option<OwnedPermit>,
    work: Work,
    started: Instant,
}

impl Attempt {
    pub(super) fn new(permit: OwnedPermit, kind: Option<OwnedPermit>, work: Work, started: Instant) -> Self {
        Self {
            permit: Some(permit),
            kind,
            work,
            started,
        }
    }

    pub(super) fn unguarded(work: Work, started: Instant) -> Self {
        Self {
            permit: None,
            kind: None,
            work,
            started,
        }
    }

    /// When its first byte was sent.
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The first packet of the answer is here.
    pub fn responded(&mut self, gate: &Gate, now: Instant) {
        let at = gate.time(now);
        if let Some(permit) = &mut self.permit {
            permit.responded(at);
        }
    }

    /// More of the answer is here.
    pub fn progressed(&self, gate: &Gate, now: Instant) {
        if let Some(permit) = &self.permit {
            permit.progressed(gate.time(now));
        }
    }

    /// It is over.
    pub fn record(self, gate: &Gate, outcome: Outcome, now: Instant) {
        let at = gate.time(now);
        let guarded = self.permit.is_some();
        if let Some(permit) = self.permit {
            permit.record(outcome, at);
        }
        match self.kind {
            Some(kind) => kind.record(outcome, at),
            None if guarded
                && outcome == Outcome::Timeout
                && self.work != Work::CONNECT
                && !gate.is_succeeded()
                && !gate.cut_short(self.started, Pulse::FAIR_CHANCE, now) =>
            {
                let shard = Arc::clone(gate.shard());
                let fingerprint = self.work.fingerprint();
                gate.shard()
                    .kinds()
                    .timed_out(self.work, at, || shard.kind_listener(fingerprint));
            }
            None => {}
        }
    }

    /// Its probe, unspent; without one it ends and says nothing.
    pub(super) fn into_probe(self) -> Option<OwnedPermit> {
        self.permit.filter(OwnedPermit::is_probe)
    }

    /// A deadline passed: the tablet's fault only if it had a fair chance to answer.
    pub fn gave_up(self, gate: &Gate, tablet_timeout: Option<Duration>, now: Instant) {
        let outcome = Self::given_up(self.started, tablet_timeout, now);
        self.record(gate, outcome, now);
    }

    /// What it says of a tablet that an attempt begun then is given up now, however short the client's patience was.
    pub fn given_up(started: Instant, tablet_timeout: Option<Duration>, now: Instant) -> Outcome {
        let fair = tablet_timeout.map_or(Pulse::FAIR_CHANCE, |t| t.min(Pulse::FAIR_CHANCE));
        if now.saturating_duration_since(started) >= fair {
            Outcome::Timeout
        } else {
            Outcome::Neutral
        }
    }
}
