//! Which tablet of a shard serves a request, and the pools that lead there.

mod member;
mod report;
mod well;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use smallvec::SmallVec;

use self::member::{Making, Member};
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId, TabletAlias};
use crate::guard::Guards;
use crate::tablet::{Backend, Pool, PoolOptions, ReaperHandle, TabletInfo};
use crate::topology::Health;

pub use report::{Named, Report, Reporter, aligned};

/// The tablets of one shard.
#[derive(Debug, Default)]
struct Shard {
    primary: Option<Arc<Member>>,
    replicas: Vec<Arc<Member>>,
}

impl Shard {
    fn members(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.primary.iter().chain(&self.replicas)
    }
}

/// The tablets of each shard, and what their pools are made with.
#[derive(Debug)]
struct Members {
    shards: HashMap<ShardId, Shard>,
    making: Arc<Making>,
}

impl Members {
    fn all(&self) -> impl Iterator<Item = &Arc<Member>> {
        self.shards.values().flat_map(Shard::members)
    }
}

/// All tablets that may serve, and the pools to them. Replaced as a whole when the topology or the bounds change; a
/// request works with what it found.
#[derive(Debug)]
pub struct Fleet {
    members: ArcSwap<Members>,
    guards: Arc<Guards>,
    health: Arc<Health>,
    turn: AtomicU64,
}

impl Fleet {
    /// An empty fleet; [`Self::update`] fills it.
    pub fn new(
        (backend, options): (Backend, PoolOptions),
        reaper: ReaperHandle,
        guards: Arc<Guards>,
        health: Arc<Health>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let making = Arc::new(Making {
            backend,
            options,
            reaper,
            metrics,
        });
        Self {
            members: ArcSwap::from_pointee(Members {
                shards: HashMap::new(),
                making,
            }),
            guards,
            health,
            turn: AtomicU64::new(0),
        }
    }

    /// Replaces credentials and bounds. Pools are made anew; connections in use stay valid until they come back.
    pub fn configure(&self, backend: Backend, options: PoolOptions) {
        let old = self.members.load_full();
        let making = Making {
            backend,
            options,
            reaper: old.making.reaper.clone(),
            metrics: Arc::clone(&old.making.metrics),
        };
        let tablets = old.all().map(|m| Arc::clone(&m.info)).collect();
        self.replace(tablets, Arc::new(making), &HashMap::new());
    }

    /// Replaces the tablets. Pools to tablets that are gone, or that are elsewhere now, lend nothing any more; what they
    /// lent stays valid until it comes back.
    pub fn update(&self, tablets: Vec<Arc<TabletInfo>>) {
        let old = self.members.load_full();
        let known = old.all().map(|m| (&m.info.alias, Arc::clone(m))).collect();
        self.replace(tablets, Arc::clone(&old.making), &known);
    }

    fn replace(
        &self,
        tablets: Vec<Arc<TabletInfo>>,
        making: Arc<Making>,
        known: &HashMap<&TabletAlias, Arc<Member>>,
    ) {
        // Before anybody is sent to another primary: what the one before answers later is not passed on.
        let before = self.members.load();
        for info in tablets.iter().filter(|info| info.role == Role::Primary) {
            let primary = before.shards.get(&info.shard).and_then(|s| s.primary.as_ref());
            if primary.is_some_and(|primary| primary.info.alias != info.alias) {
                self.guards.buffer(&info.shard).next_term();
            }
        }
        let mut shards: HashMap<ShardId, Shard> = HashMap::new();
        for info in tablets {
            let member = match known.get(&info.alias) {
                Some(member) if *member.info == *info => Arc::clone(member),
                Some(_) | None => {
                    let gate = self.guards.gate(&info.shard, &info.alias, info.role);
                    Arc::new(Member::new(info, gate, Arc::clone(&making)))
                }
            };
            let shard = shards.entry(member.info.shard.clone()).or_default();
            match member.info.role {
                Role::Primary => shard.primary = Some(member),
                Role::Replica => shard.replicas.push(member),
            }
        }
        let old = self.members.swap(Arc::new(Members { shards, making }));
        let new = self.members.load();
        for member in old.all() {
            if !new.all().any(|m| Arc::ptr_eq(m, member)) {
                member.retire();
            }
        }
    }

    /// The guards of all tablets.
    pub fn guards(&self) -> &Arc<Guards> {
        &self.guards
    }

    /// The pool to a tablet of a shard that may serve this role; `None` if there is none. A tablet that nobody has looked
    /// at yet serves nothing, and a replica serves only while it answers and its breaker lets it.
    pub fn pool(&self, shard: &ShardId, role: Role, found_rows: bool) -> Option<Arc<Pool>> {
        self.pool_but(shard, role, found_rows, None)
    }

    /// [`Self::pool`], but not the one to a replica that has just refused.
    pub fn pool_but(
        &self,
        shard: &ShardId,
        role: Role,
        found_rows: bool,
        but: Option<&TabletAlias>,
    ) -> Option<Arc<Pool>> {
        let members = self.members.load();
        let shard = members.shards.get(shard)?;
        match role {
            Role::Primary => {
                let primary = shard.primary.as_ref()?;
                primary
                    .is_measured(&self.health)
                    .then(|| primary.pool(found_rows))
            }
            Role::Replica => self.replica(&shard.replicas, but).map(|m| m.pool(found_rows)),
        }
    }

    /// Whether this tablet is the shard's primary.
    pub fn is_primary(&self, shard: &ShardId, tablet: &TabletAlias) -> bool {
        let members = self.members.load();
        let primary = members.shards.get(shard).and_then(|s| s.primary.as_ref());
        primary.is_some_and(|p| p.info.alias == *tablet)
    }

    /// Closes idle connections that are too old.
    pub fn sweep(&self, now: Instant) {
        for member in self.members.load().all() {
            for pool in member.pools() {
                pool.sweep(now);
            }
        }
    }

    /// Looks at what time and silence tell of the tablets. Call it every 100 ms.
    pub fn tick(&self, now: Instant) {
        for member in self.members.load().all() {
            let gate = member.gate();
            if let Some(breaker) = gate.breaker() {
                let full = member.pools().any(|p| p.is_full());
                let (free, waiting) = if full { (0, 1) } else { (1, 0) };
                breaker.observe_pool(free, waiting, gate.time(now));
            }
        }
        self.guards.tick(now);
    }

    /// Demands looks at the tablets of shards for which requests wait: the sooner a primary is seen, the sooner they go.
    pub fn look_where_requests_wait(&self) {
        if !self.guards.any_asks() {
            return;
        }
        for buffer in self.guards.buffers() {
            if buffer.is_buffering() {
                self.health.demand(buffer.id());
            }
        }
    }

    /// Tablets whose breaker waits for a probe that no traffic has made: somebody has to ask them.
    pub fn unprobed(&self, now: Instant) -> Vec<Arc<Pool>> {
        let wants = |member: &&Arc<Member>| {
            let gate = member.gate();
            gate.breaker()
                .is_some_and(|b| b.wants_polled_probe(gate.time(now)))
        };
        self.members
            .load()
            .all()
            .filter(wants)
            .map(|m| m.pool(false))
            .collect()
    }

    /// Every tablet, with its pools' slots in use, waiting requests and idle connections added up.
    pub fn usage(&self) -> Vec<(Arc<TabletInfo>, (usize, usize, usize))> {
        let members = self.members.load();
        let mut out: Vec<_> = members.all().map(|m| (Arc::clone(&m.info), m.usage())).collect();
        out.sort_by(|a, b| (&a.0.shard, a.0.role, &a.0.alias).cmp(&(&b.0.shard, b.0.role, &b.0.alias)));
        out
    }

    /// Closes all pools.
    pub fn close(&self) {
        for member in self.members.load().all() {
            member.retire();
        }
    }

    /// A replica whose breaker is due for a probe first: whoever waits for the others' weights would never let it come
    /// back. Else two draws with probability by weight, of which the one with fewer connections in use wins. Not the one
    /// that has just refused.
    fn replica<'a>(&self, replicas: &'a [Arc<Member>], but: Option<&TabletAlias>) -> Option<&'a Arc<Member>> {
        let now = clock::now();
        let serves = |m: &&Arc<Member>| Some(&m.info.alias) != but && self.health.serving(&m.info.alias);
        let due = |m: &&Arc<Member>| {
            let gate = m.gate();
            gate.breaker().is_some_and(|b| b.wants_probe(gate.time(now)))
        };
        if let Some(due) = replicas.iter().find(|m| serves(m) && due(m)) {
            return Some(due);
        }
        let weight = |m: &Arc<Member>| {
            let gate = m.gate();
            gate.breaker().map_or(100, |b| b.weight(gate.time(now)))
        };
        let fitting: SmallVec<[(&Arc<Member>, u32); 4]> = replicas
            .iter()
            .filter(serves)
            .map(|m| (m, weight(m)))
            .filter(|(_, weight)| *weight > 0)
            .collect();
        let (Some(a), Some(b)) = (self.draw(&fitting), self.draw(&fitting)) else {
            // All are refused; let the breaker of one say why.
            return replicas.iter().find(serves);
        };
        Some(if b.usage().0 < a.usage().0 { b } else { a })
    }

    /// One of them, with probability by weight.
    fn draw<'a>(&self, fitting: &[(&'a Arc<Member>, u32)]) -> Option<&'a Arc<Member>> {
        let total: u32 = fitting.iter().map(|(_, weight)| weight).sum();
        let mut at = u32::try_from(self.random() % u64::from(total.max(1))).unwrap_or(0);
        fitting
            .iter()
            .find(|(_, weight)| {
                let here = at < *weight;
                at = at.saturating_sub(*weight);
                here
            })
            .map(|(member, _)| *member)
    }

    /// The next number of a sequence that looks random (splitmix64): good enough to spread load, and shared without a lock.
    fn random(&self) -> u64 {
        let step = 0x9e37_79b9_7f4a_7c15;
        let mut z = self.turn.fetch_add(step, Ordering::Relaxed).wrapping_add(step);
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
