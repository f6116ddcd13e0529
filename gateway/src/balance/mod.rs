//! Which tablet of a shard serves a request, and the pools that lead there.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use dashmap::DashMap;

use crate::base::clock::Instant;
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId, TabletAlias};
use crate::guard::Guards;
use crate::tablet::{Backend, Pool, PoolOptions, ReaperHandle, TabletInfo};

/// The tablets of each shard.
type ByShard = HashMap<ShardId, Vec<Arc<TabletInfo>>>;

/// All tablets that may serve, and the pools to them.
///
/// Pools are made when first asked for, one for each tablet and each way of counting affected rows, since that is agreed
/// on in the handshake and cannot be changed later.
#[derive(Debug)]
pub struct Fleet {
    shards: ArcSwap<ByShard>,
    pools: DashMap<(TabletAlias, bool), Arc<Pool>>,
    settings: ArcSwap<(Backend, PoolOptions)>,
    reaper: ReaperHandle,
    guards: Arc<Guards>,
    metrics: Arc<Metrics>,
    turn: AtomicUsize,
}

impl Fleet {
    /// An empty fleet; [`Self::update`] fills it.
    pub fn new(
        backend: Backend,
        options: PoolOptions,
        reaper: ReaperHandle,
        guards: Arc<Guards>,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            shards: ArcSwap::default(),
            pools: DashMap::new(),
            settings: ArcSwap::from_pointee((backend, options)),
            reaper,
            guards,
            metrics,
            turn: AtomicUsize::new(0),
        }
    }

    /// Replaces credentials and bounds. Pools are made anew; connections in use stay valid until they come back.
    pub fn configure(&self, backend: Backend, options: PoolOptions) {
        self.settings.store(Arc::new((backend, options)));
        self.pools.retain(|_, pool| {
            pool.close();
            false
        });
    }

    /// Replaces the tablets. Pools to tablets that are gone, or that are elsewhere now, lend nothing any more; what they
    /// lent stays valid until it comes back.
    pub fn update(&self, tablets: Vec<Arc<TabletInfo>>) {
        let mut shards = ByShard::new();
        let mut known = HashMap::new();
        for tablet in tablets {
            known.insert(tablet.alias.clone(), Arc::clone(&tablet));
            shards.entry(tablet.shard.clone()).or_default().push(tablet);
        }
        self.shards.store(Arc::new(shards));
        self.pools.retain(|(alias, _), pool| {
            let stays = known.get(alias).is_some_and(|info| **info == **pool.info());
            if !stays {
                pool.close();
            }
            stays
        });
    }

    /// The pool to a tablet of a shard that may serve this role; `None` if there is none.
    pub fn pool(&self, shard: &ShardId, role: Role, found_rows: bool) -> Option<Arc<Pool>> {
        let shards = self.shards.load();
        let tablets = shards.get(shard)?;
        let mut fitting = tablets.iter().filter(|t| t.role == role);
        match role {
            Role::Primary => Some(self.pool_of(fitting.next()?, found_rows)),
            Role::Replica => self.least_busy_of_two(&fitting.collect::<Vec<_>>(), found_rows),
        }
    }

    /// The guards of all tablets.
    pub fn guards(&self) -> &Arc<Guards> {
        &self.guards
    }

    /// Looks at what time and silence tell of the tablets. Call it every 100 ms.
    pub fn tick(&self, now: Instant) {
        let mut full: HashMap<TabletAlias, (Arc<Pool>, bool)> = HashMap::new();
        for pool in &self.pools {
            let is_full = pool.is_full();
            full.entry(pool.info().alias.clone())
                .and_modify(|(_, any)| *any |= is_full)
                .or_insert_with(|| (Arc::clone(&pool), is_full));
        }
        for (pool, is_full) in full.values() {
            let gate = pool.gate();
            if let Some(breaker) = gate.breaker() {
                let (free, waiting) = if *is_full { (0, 1) } else { (1, 0) };
                breaker.observe_pool(free, waiting, gate.time(now));
            }
        }
        self.guards.tick(now);
    }

    /// Closes idle connections that are too old.
    pub fn sweep(&self, now: Instant) {
        for pool in &self.pools {
            pool.sweep(now);
        }
    }

    /// Every tablet, with its pools' slots in use, waiting requests and idle connections added up.
    pub fn usage(&self) -> Vec<(Arc<TabletInfo>, (usize, usize, usize))> {
        let shards = self.shards.load();
        let mut out: Vec<_> = shards
            .values()
            .flatten()
            .map(|t| {
                let sum = [false, true]
                    .iter()
                    .filter_map(|f| self.pools.get(&(t.alias.clone(), *f)).map(|p| p.usage()))
                    .fold((0, 0, 0), |a, u| (a.0 + u.0, a.1 + u.1, a.2 + u.2));
                (Arc::clone(t), sum)
            })
            .collect();
        out.sort_by(|a, b| (&a.0.shard, a.0.role, &a.0.alias).cmp(&(&b.0.shard, b.0.role, &b.0.alias)));
        out
    }

    /// Closes all pools.
    pub fn close(&self) {
        for pool in &self.pools {
            pool.close();
        }
    }

    /// Two candidates in turn, the one with fewer connections in use wins: cheap, and no replica is forgotten.
    fn least_busy_of_two(&self, tablets: &[&Arc<TabletInfo>], found_rows: bool) -> Option<Arc<Pool>> {
        let first = self.turn.fetch_add(1, Ordering::Relaxed);
        let at = |i: usize| {
            tablets
                .get(i % tablets.len().max(1))
                .map(|t| self.pool_of(t, found_rows))
        };
        let (a, b) = (at(first)?, at(first.wrapping_add(1))?);
        Some(if b.usage().0 < a.usage().0 { b } else { a })
    }

    fn pool_of(&self, info: &Arc<TabletInfo>, found_rows: bool) -> Arc<Pool> {
        let key = (info.alias.clone(), found_rows);
        if let Some(pool) = self.pools.get(&key)
            && pool.info() == info
        {
            return Arc::clone(&pool);
        }
        // One that leads where the tablet no longer is was made while the tablets were being replaced.
        if let Some((_, stale)) = self.pools.remove_if(&key, |_, pool| pool.info() != info) {
            stale.close();
        }
        let make = || {
            let settings = self.settings.load();
            let (backend, options) = &**settings;
            let backend = Arc::new(Backend {
                found_rows,
                ..backend.clone()
            });
            let gate = self.guards.gate(&info.shard, &info.alias, info.role);
            Pool::new(
                (Arc::clone(info), gate),
                backend,
                options.clone(),
                self.reaper.clone(),
                &self.metrics,
            )
        };
        Arc::clone(&self.pools.entry(key).or_insert_with(make))
    }
}
