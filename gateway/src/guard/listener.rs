//! What breakers tell, as log lines and counters.

use std::sync::Arc;

use shardgate_breaker::{Event, Listener, State, Transition};

use super::kinds::Kinds;
use crate::base::metrics::Metrics;

/// Who is spoken of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Subject {
    /// The primary of a shard.
    Shard(String),
    /// A replica.
    Replica(String),
    /// A kind of statement on a shard, by the hash of its fingerprint.
    Kind(String, u64),
}

impl Subject {
    /// The label in metrics.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Shard(name) | Self::Replica(name) => name.clone(),
            // One counter a shard: kinds come and go.
            Self::Kind(shard, _) => shard.clone(),
        }
    }

    pub(super) const fn scope(&self) -> &'static str {
        match self {
            Self::Shard(_) => "shard",
            Self::Replica(_) => "replica",
            Self::Kind(..) => "kind",
        }
    }

    /// The label of a counter of what it did.
    pub(super) fn counter(&self, what: &str) -> String {
        format!("{}.{}.{what}", self.scope(), self.label())
    }
}

/// Logs, counts, and opens the breaker of a kind that another breaker blames.
pub(super) struct Teller {
    pub(super) subject: Subject,
    pub(super) metrics: Arc<Metrics>,
    /// The kinds of the shard; none for a kind's own breaker.
    pub(super) kinds: Option<Arc<Kinds>>,
}

impl Listener for Teller {
    fn event(&self, event: &Event) {
        let (scope, name) = (self.subject.scope(), self.subject.label());
        match event {
            Event::Transition(t) => self.transition(t),
            Event::WouldTrip { reason, .. } => {
                self.count(&format!("would_trip.{}", reason.label()));
                tracing::info!(scope, %name, reason = reason.label(), "breaker would open (dry run)");
            }
            Event::Suppressed { reason, .. } => {
                self.count("suppressed");
                tracing::warn!(scope, %name, reason = reason.label(), "breaker kept closed by the ejection cap");
            }
            Event::Attributed {
                at,
                reason,
                fingerprint,
                percent,
            } => {
                self.count("attributed");
                tracing::warn!(
                    scope, %name, reason = reason.label(), kind = %format_args!("{fingerprint:016x}"), percent,
                    "one kind of statement is the cause and is cut off alone"
                );
                if let Some(kinds) = &self.kinds {
                    kinds.blame(*fingerprint, *at, || self.of_kind(*fingerprint));
                }
            }
            Event::ModeChanged { from, to, .. } => {
                self.count("mode_changed");
                tracing::warn!(scope, %name, from = from.label(), to = to.label(), "breaker mode changed");
            }
        }
    }
}

impl Teller {
    fn transition(&self, t: &Transition) {
        let (scope, name) = (self.subject.scope(), self.subject.label());
        let kind = match &self.subject {
            Subject::Kind(_, fingerprint) => format!("{fingerprint:016x}"),
            Subject::Shard(_) | Subject::Replica(_) => String::new(),
        };
        if t.to == State::Open {
            self.count(&format!("trips.{}", t.reason.label()));
        }
        tracing::info!(
            scope, %name, kind, from = t.from.label(), to = t.to.label(), trigger = t.trigger.label(),
            reason = t.reason.label(), generation = t.generation, cooldown_ms = t.cooldown.as_millis(),
            "breaker changed its state"
        );
    }

    fn count(&self, what: &str) {
        self.metrics.breakers.handle(&self.subject.counter(what)).inc();
    }

    /// The listener of a kind of the same shard.
    pub(super) fn of_kind(&self, fingerprint: u64) -> Arc<dyn Listener> {
        let shard = match &self.subject {
            Subject::Shard(name) | Subject::Replica(name) | Subject::Kind(name, _) => name.clone(),
        };
        Arc::new(Self {
            subject: Subject::Kind(shard, fingerprint),
            metrics: Arc::clone(&self.metrics),
            kinds: None,
        })
    }
}
