//! Plans kept for statements of the same fingerprint: a lookup instead of a parse.
//!
//! The key holds all that a plan depends on besides literals; the literals a plan was read from (ordinals) are compared
//! at each hit. Two generations make it bounded without a list of uses: what is not asked for during one generation
//! is dropped with it.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use shardgate_sql::{Lexed, SqlMode};

use super::planned::Plan;
use crate::base::{KeyspaceName, ShardName};

const PARTS: usize = 16;
/// A statement whose key is longer is planned each time: one plan must not cost the memory of thousands.
const MAX_KEY_BYTES: usize = 16 << 10;

/// What a plan depends on besides its literals' values.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct PlanKey {
    /// The key of the statement's fingerprint: its text with literals taken out.
    pub fingerprint: Arc<[u8]>,
    /// The literals' classes, in order, where the fingerprint does not hold them.
    pub literals: Box<[u8]>,
    /// The session's keyspace.
    pub keyspace: Option<KeyspaceName>,
    /// The session's target shard.
    pub shard: Option<ShardName>,
    /// Its `sql_mode`.
    pub sql_mode: SqlMode,
    /// The catalog's version.
    pub version: u64,
}

/// How a cache fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CacheStats {
    /// Lookups that found a plan.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Plans dropped to make room.
    pub evictions: u64,
    /// Plans held.
    pub entries: u64,
}

/// A bounded cache of plans, shared by all sessions.
#[derive(Debug)]
pub struct PlanCache {
    parts: Box<[Mutex<Part>]>,
    hasher: RandomState,
    /// Plans of one generation of one part.
    generation: usize,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    young: HashMap<PlanKey, Arc<Plan>>,
    old: HashMap<PlanKey, Arc<Plan>>,
}

impl PlanCache {
    /// A cache of at most about `capacity` plans; 0 keeps none.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            generation: capacity.div_ceil(2 * PARTS),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// The plan under a key, if there is one that fits the statement's own literals.
    #[must_use]
    pub fn get(&self, key: &PlanKey, statement: &Lexed<'_>) -> Option<Arc<Plan>> {
        let found = self.lookup(key).filter(|plan| plan.fits(statement));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn lookup(&self, key: &PlanKey) -> Option<Arc<Plan>> {
        let mut part = self.part(key);
        if let Some(plan) = part.young.get(key) {
            return Some(Arc::clone(plan));
        }
        let (key, plan) = part.old.remove_entry(key)?;
        self.keep(&mut part, key, Arc::clone(&plan));
        Some(plan)
    }

    /// Keeps a plan, in place of another under the same key.
    pub fn insert(&self, key: PlanKey, plan: Arc<Plan>) {
        if self.generation > 0 && key.fingerprint.len() <= MAX_KEY_BYTES {
            let mut part = self.part(&key);
            part.old.remove(&key);
            self.keep(&mut part, key, plan);
        }
    }

    fn keep(&self, part: &mut Part, key: PlanKey, plan: Arc<Plan>) {
        if part.young.len() >= self.generation && !part.young.contains_key(&key) {
            let dropped = std::mem::replace(&mut part.old, std::mem::take(&mut part.young));
            self.evictions.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        }
        part.young.insert(key, plan);
    }

    /// Drops everything: after a change of the catalog no old key is asked for again.
    pub fn clear(&self) {
        for part in &self.parts {
            *lock(part) = Part::default();
        }
    }

    /// The counters.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let held = |part: &Mutex<Part>| {
            let part = lock(part);
            (part.young.len() + part.old.len()) as u64
        };
        CacheStats {
            hits: self.hits.load(Ordering::Relaxed),
            misses: self.misses.load(Ordering::Relaxed),
            evictions: self.evictions.load(Ordering::Relaxed),
            entries: self.parts.iter().map(held).sum(),
        }
    }

    fn part(&self, key: &PlanKey) -> MutexGuard<'_, Part> {
        let hash = self.hasher.hash_one(key) as usize;
        lock(&self.parts[hash % PARTS])
    }
}

/// A panic while the lock was held cannot have left a map half changed that matters: plans are whole or absent.
fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
