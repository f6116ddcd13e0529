//! What all attempts on one shard share.

use std::sync::Arc;

use shardgate_breaker::{Breaker, EjectionCap, Listener, Pulse, RetryBudget, Time};

use super::buffer::ShardBuffer;
use super::kinds::Kinds;
use super::listener::{Subject, Teller};
use super::settings::GuardSettings;
use crate::base::ShardId;
use crate::base::metrics::Metrics;

/// The guards of one shard.
#[derive(Debug)]
pub struct ShardGuard {
    id: ShardId,
    /// Of the primary; none if breakers are off.
    breaker: Option<Arc<Breaker>>,
    kinds: Arc<Kinds>,
    budget: RetryBudget,
    cap: Arc<EjectionCap>,
    buffer: Arc<ShardBuffer>,
    metrics: Arc<Metrics>,
    pulse: Arc<Pulse>,
}

impl ShardGuard {
    /// Guards that have seen nothing. `seed` is where jitter comes from.
    pub(super) fn new(
        buffer: Arc<ShardBuffer>,
        settings: &GuardSettings,
        seed: u64,
        metrics: &Arc<Metrics>,
        pulse: &Arc<Pulse>,
    ) -> Self {
        let id = buffer.id().clone();
        let kinds = Arc::new(Kinds::new(settings.kind.clone(), Arc::clone(pulse)));
        let teller = Arc::new(Teller {
            subject: Subject::Shard(id.to_string()),
            metrics: Arc::clone(metrics),
            kinds: Some(Arc::clone(&kinds)),
        });
        let breaker = settings
            .enabled
            .then(|| Breaker::new(settings.shard.clone(), seed, teller).ok())
            .flatten()
            .map(|breaker| Arc::new(breaker.with_pulse(Arc::clone(pulse))));
        buffer.set_breaker(breaker.as_ref());
        Self {
            id,
            breaker,
            kinds,
            budget: RetryBudget::new(settings.budget),
            cap: Arc::new(EjectionCap::new(settings.ejection_cap)),
            buffer,
            metrics: Arc::clone(metrics),
            pulse: Arc::clone(pulse),
        }
    }

    /// The shard.
    pub fn id(&self) -> &ShardId {
        &self.id
    }

    /// The breaker of its primary; none if breakers are off.
    pub fn breaker(&self) -> Option<&Arc<Breaker>> {
        self.breaker.as_ref()
    }

    /// Another primary: what is still on its way to the old one says nothing of it.
    pub fn renew(&self, now: Time) {
        if let Some(breaker) = &self.breaker {
            breaker.renew(now);
        }
        self.kinds.renew(now);
    }

    /// Where requests wait while it has no primary.
    pub fn buffer(&self) -> &Arc<ShardBuffer> {
        &self.buffer
    }

    /// The breakers of its kinds of statement.
    pub fn kinds(&self) -> &Arc<Kinds> {
        &self.kinds
    }

    /// What retries its traffic may carry.
    pub fn budget(&self) -> &RetryBudget {
        &self.budget
    }

    /// Tells when the gateway itself stood still.
    pub(super) fn pulse(&self) -> &Pulse {
        &self.pulse
    }

    pub(super) fn cap(&self) -> &Arc<EjectionCap> {
        &self.cap
    }

    pub(super) fn kind_listener(&self, fingerprint: u64) -> Arc<dyn Listener> {
        Arc::new(Teller {
            subject: Subject::Kind(self.id.to_string(), fingerprint),
            metrics: Arc::clone(&self.metrics),
            kinds: None,
        })
    }
}
