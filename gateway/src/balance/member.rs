//! One tablet of a shard, with the pools that lead to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use crate::base::metrics::Metrics;
use crate::guard::Gate;
use crate::tablet::{Backend, Pool, PoolOptions, ReaperHandle, TabletInfo};
use crate::topology::Health;

/// What every pool is made with.
#[derive(Debug)]
pub(super) struct Making {
    pub(super) backend: Backend,
    pub(super) options: PoolOptions,
    pub(super) reaper: ReaperHandle,
    pub(super) metrics: Arc<Metrics>,
}

/// A tablet that may serve. Another address, role or database makes another member.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) info: Arc<TabletInfo>,
    gate: Arc<Gate>,
    making: Arc<Making>,
    /// One pool for each way of counting affected rows: that is agreed on in the handshake and cannot be changed later.
    pools: [OnceLock<Arc<Pool>>; 2],
    /// Whether anybody ever saw it answer or fail: until then it serves nothing.
    measured: AtomicBool,
    retired: AtomicBool,
}

impl Member {
    pub(super) fn new(info: Arc<TabletInfo>, gate: Arc<Gate>, making: Arc<Making>) -> Self {
        Self {
            info,
            gate,
            making,
            pools: [OnceLock::new(), OnceLock::new()],
            measured: AtomicBool::new(false),
            retired: AtomicBool::new(false),
        }
    }

    pub(super) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The pool, made when it is first asked for.
    pub(super) fn pool(&self, found_rows: bool) -> Arc<Pool> {
        let make = || {
            let backend = Backend {
                found_rows,
                ..self.making.backend.clone()
            };
            Pool::new(
                (Arc::clone(&self.info), Arc::clone(&self.gate)),
                Arc::new(backend),
                self.making.options.clone(),
                self.making.reaper.clone(),
                &self.making.metrics,
            )
        };
        let pool = self.pools[usize::from(found_rows)].get_or_init(make);
        if self.retired.load(Ordering::Acquire) {
            // Made while the tablet was being taken out.
            pool.close();
        }
        Arc::clone(pool)
    }

    /// The pools there are.
    pub(super) fn pools(&self) -> impl Iterator<Item = &Arc<Pool>> {
        self.pools.iter().filter_map(OnceLock::get)
    }

    /// Slots in use, requests waiting and idle connections of all pools.
    pub(super) fn usage(&self) -> (usize, usize, usize) {
        self.pools()
            .map(|p| p.usage())
            .fold((0, 0, 0), |a, u| (a.0 + u.0, a.1 + u.1, a.2 + u.2))
    }

    /// Whether anybody looked at it yet.
    pub(super) fn is_measured(&self, health: &Health) -> bool {
        if self.measured.load(Ordering::Relaxed) {
            return true;
        }
        let measured = health
            .tablet(&self.info.alias)
            .is_some_and(|t| t.standing().is_some());
        self.measured.store(measured, Ordering::Relaxed);
        measured
    }

    /// Lends nothing any more; what was lent stays valid until it comes back.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        for pool in self.pools() {
            pool.close();
        }
    }
}
