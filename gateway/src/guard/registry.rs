//! All guards of a gateway, by the identity of what they guard.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use shardgate_breaker::{Breaker, Pulse, Time};

use super::buffer::{BufferSettings, BufferSnapshot, Common, ShardBuffer};
use super::gate::Gate;
use super::listener::{Subject, Teller};
use super::settings::GuardSettings;
use super::shard::ShardGuard;
use super::taken::TakenOver;
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId, TabletAlias};

/// The guards of every shard and every replica.
///
/// A breaker outlives pools and reloads of the topology: what is known of a shard is not forgotten because a file was
/// read again. New thresholds make new breakers; what an operator took over stays so.
#[derive(Debug)]
pub struct Guards {
    origin: Instant,
    seed: u64,
    settings: ArcSwap<GuardSettings>,
    made: RwLock<Made>,
    /// These outlive thresholds.
    buffers: RwLock<HashMap<ShardId, Arc<ShardBuffer>>>,
    common: Arc<Common>,
    metrics: Arc<Metrics>,
    pulse: Arc<Pulse>,
}

#[derive(Debug, Default)]
struct Made {
    shards: HashMap<ShardId, Arc<ShardGuard>>,
    replicas: HashMap<TabletAlias, (ShardId, Arc<Breaker>)>,
    /// Of the breakers of earlier thresholds.
    taken: TakenOver,
}

impl Guards {
    /// No guards yet; they are made when first asked for. `seed` is where jitter comes from: hand in a random number.
    pub fn new(settings: GuardSettings, origin: Instant, seed: u64, metrics: Arc<Metrics>) -> Self {
        Self {
            origin,
            seed,
            settings: ArcSwap::from_pointee(settings),
            made: RwLock::default(),
            buffers: RwLock::default(),
            common: Arc::new(Common::new(Arc::clone(&metrics), origin)),
            metrics,
            pulse: Arc::default(),
        }
    }

    /// The thresholds in force.
    pub fn settings(&self) -> Arc<GuardSettings> {
        self.settings.load_full()
    }

    /// Puts other thresholds in force: all guards are made anew. Gates that were handed out keep the old ones, so pools
    /// are to be made anew too.
    pub fn configure(&self, settings: GuardSettings) {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        self.settings.store(Arc::new(settings));
        let mut taken = std::mem::take(&mut made.taken);
        for (id, guard) in &made.shards {
            taken.note((id, None), guard.breaker());
        }
        for (alias, (id, breaker)) in &made.replicas {
            taken.note((id, Some(alias)), Some(breaker));
        }
        *made = Made {
            taken,
            ..Made::default()
        };
    }

    /// Puts other bounds of the buffers in force, for so many shards. Who waits goes on to wait.
    pub fn configure_buffers(&self, settings: BufferSettings, shards: usize) {
        self.common.configure(settings, shards);
    }

    /// Whether any shard's requests have to ask its buffer before they are sent: nearly always not.
    pub fn any_asks(&self) -> bool {
        self.common.asking.load(Ordering::Acquire) > 0
    }

    /// How many changes of primaries were counted so far, see [`ShardBuffer::moved_since`].
    pub fn moves(&self) -> u64 {
        self.common.moves.load(Ordering::Acquire)
    }

    /// Waits until a shard begins to buffer. One that began before counts.
    pub async fn buffering_began(&self) {
        self.common.began.notified().await;
    }

    /// The buffer of a shard.
    pub fn buffer(&self, id: &ShardId) -> Arc<ShardBuffer> {
        let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = buffers.get(id) {
            return Arc::clone(known);
        }
        drop(buffers);
        let mut buffers = self.buffers.write().unwrap_or_else(PoisonError::into_inner);
        let fresh = || Arc::new(ShardBuffer::new(id.clone(), Arc::clone(&self.common)));
        Arc::clone(buffers.entry(id.clone()).or_insert_with(fresh))
    }

    /// The buffers of all shards that were asked for, by name.
    pub fn buffers(&self) -> Vec<Arc<ShardBuffer>> {
        let buffers = self.buffers.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = buffers.values().cloned().collect();
        drop(buffers);
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all
    }

    /// How all buffers are now.
    pub fn buffer_snapshots(&self, now: Instant) -> Vec<BufferSnapshot> {
        self.buffers().iter().map(|b| b.snapshot(now)).collect()
    }

    /// The gateway stops: nobody waits any more.
    pub fn close_buffers(&self, now: Instant) {
        for buffer in self.buffers() {
            buffer.close(now);
        }
    }

    /// The breakers' time.
    pub fn time(&self, now: Instant) -> Time {
        Time::at(now.saturating_duration_since(self.origin))
    }

    /// Whether a standstill of the gateway left what began then no fair chance to end by now.
    pub(super) fn cut_short(&self, since: Instant, fair: Duration, now: Instant) -> bool {
        self.pulse.cut_short(self.time(since), fair, self.time(now))
    }

    /// The guards of a shard.
    pub fn shard(&self, id: &ShardId) -> Arc<ShardGuard> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = made.shards.get(id) {
            return Arc::clone(known);
        }
        drop(made);
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        self.shard_in(&mut made, id)
    }

    /// The gate of a tablet.
    pub fn gate(&self, id: &ShardId, alias: &TabletAlias, role: Role) -> Arc<Gate> {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings.load();
        let shard = self.shard_in(&mut made, id);
        let (name, breaker) = match role {
            Role::Primary => (id.to_string(), shard.breaker().cloned()),
            Role::Replica => (
                format!("{id} ({alias})"),
                self.replica_in(&mut made, &shard, alias, &settings),
            ),
        };
        Arc::new(Gate::new(
            name,
            (alias.clone(), role),
            shard,
            breaker,
            self.origin,
            settings.max_pool_share,
        ))
    }

    /// The breaker of a tablet; none if breakers are off.
    pub fn breaker(&self, id: &ShardId, alias: &TabletAlias, role: Role) -> Option<Arc<Breaker>> {
        if role == Role::Primary {
            return self.shard(id).breaker().cloned();
        }
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, known)) = made.replicas.get(alias)
            && of == id
        {
            return Some(Arc::clone(known));
        }
        drop(made);
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        let settings = self.settings.load();
        let shard = self.shard_in(&mut made, id);
        self.replica_in(&mut made, &shard, alias, &settings)
    }

    /// Looks at what time and silence tell. Call it every 100 ms.
    pub fn tick(&self, now: Instant) {
        let at = self.time(now);
        if let Some(gap) = self.pulse.beat(at) {
            self.metrics.standstills.inc();
            let ms = u64::try_from(gap.as_millis()).unwrap_or(u64::MAX);
            self.metrics.standstill_ms.add(ms);
            tracing::warn!(
                gap_ms = gap.as_millis(),
                "the gateway stood still: what was late meanwhile is no tablet's fault"
            );
        }
        for shard in self.shards() {
            if let Some(breaker) = shard.breaker() {
                breaker.tick(at);
            }
            shard.kinds().tick(at);
        }
        for (_, _, breaker) in self.replicas() {
            breaker.tick(at);
        }
        if self.any_asks() {
            for buffer in self.buffers() {
                buffer.tick(now);
            }
        }
    }

    /// The guards of every shard that was asked for, by name.
    pub fn shards(&self) -> Vec<Arc<ShardGuard>> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = made.shards.values().cloned().collect();
        drop(made);
        all.sort_by(|a, b| a.id().cmp(b.id()));
        all
    }

    /// The breaker of every replica that was asked for, by shard and alias.
    pub fn replicas(&self) -> Vec<(ShardId, TabletAlias, Arc<Breaker>)> {
        let made = self.made.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<_> = made
            .replicas
            .iter()
            .map(|(alias, (shard, breaker))| (shard.clone(), alias.clone(), Arc::clone(breaker)))
            .collect();
        drop(made);
        all.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        all
    }

    /// Forgets shards and replicas that are no longer part of the topology.
    pub fn keep(&self, shards: impl Fn(&ShardId) -> bool, replicas: impl Fn(&TabletAlias) -> bool) {
        let mut made = self.made.write().unwrap_or_else(PoisonError::into_inner);
        made.shards.retain(|id, _| shards(id));
        made.replicas.retain(|alias, _| replicas(alias));
        made.taken.keep(&shards, replicas);
        drop(made);
        let mut buffers = self.buffers.write().unwrap_or_else(PoisonError::into_inner);
        buffers.retain(|id, buffer| {
            let stays = shards(id);
            if !stays {
                buffer.close(clock::now());
            }
            stays
        });
    }

    fn shard_in(&self, made: &mut Made, id: &ShardId) -> Arc<ShardGuard> {
        if let Some(known) = made.shards.get(id) {
            return Arc::clone(known);
        }
        let settings = self.settings.load();
        let seed = self.seed_for(made);
        let fresh = Arc::new(ShardGuard::new(
            self.buffer(id),
            &settings,
            seed,
            &self.metrics,
            &self.pulse,
        ));
        made.taken
            .hand_on((id, None), fresh.breaker(), self.time(clock::now()));
        made.shards.insert(id.clone(), Arc::clone(&fresh));
        fresh
    }

    fn replica_in(
        &self,
        made: &mut Made,
        shard: &Arc<ShardGuard>,
        alias: &TabletAlias,
        settings: &GuardSettings,
    ) -> Option<Arc<Breaker>> {
        if !settings.enabled {
            return None;
        }
        if let Some((of, known)) = made.replicas.get(alias)
            && of == shard.id()
        {
            return Some(Arc::clone(known));
        }
        let teller = Arc::new(Teller {
            subject: Subject::Replica(alias.to_string()),
            metrics: Arc::clone(&self.metrics),
            kinds: Some(Arc::clone(shard.kinds())),
        });
        let seed = self.seed_for(made);
        let cap = Arc::clone(shard.cap());
        let fresh = Breaker::with_cap(settings.replica.clone(), seed, teller, cap).ok()?;
        let fresh = Arc::new(fresh.with_pulse(Arc::clone(&self.pulse)));
        made.taken
            .hand_on((shard.id(), Some(alias)), Some(&fresh), self.time(clock::now()));
        made.replicas
            .insert(alias.clone(), (shard.id().clone(), Arc::clone(&fresh)));
        Some(fresh)
    }

    /// Another number for each breaker, so that their jitters differ.
    fn seed_for(&self, made: &Made) -> u64 {
        let number = (made.shards.len() + made.replicas.len()) as u64;
        self.seed ^ number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}
