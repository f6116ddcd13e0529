//! Plans kept for statements of the same fingerprint: a lookup instead of a parse.
//!
//! The key holds all that a plan depends on besides literals; the literals a plan was read from (ordinals) are compared
//! at each hit. Two generations make it bounded without a list of uses: what is not asked for during one generation
//! is dropped with it.
//!
//! A lookup copies nothing: the fingerprint has its hash already, and the key is compared where it lies. Two keys of one
//! hash take each other's place, which costs a plan and is never wrong.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use shardgate_sql::{Fingerprint, Lexed, SqlMode};
use twox_hash::XxHash64;

use super::planned::Plan;
use crate::base::{KeyspaceName, ShardName};

const PARTS: usize = 16;
/// A statement whose key is longer is planned each time: one plan must not cost the memory of thousands.
const MAX_KEY_BYTES: usize = 16 << 10;

/// What a plan depends on besides its literals' values.
#[derive(Clone, Copy, Debug)]
pub struct PlanKey<'a> {
    /// The statement with its literals taken out.
    pub fingerprint: &'a Fingerprint,
    /// The session's keyspace.
    pub keyspace: Option<&'a KeyspaceName>,
    /// The session's target shard.
    pub shard: Option<&'a ShardName>,
    /// Its `sql_mode`.
    pub sql_mode: SqlMode,
    /// The catalog's version.
    pub version: u64,
}

impl PlanKey<'_> {
    fn hash(&self) -> u64 {
        let name = |name: Option<&str>| name.map_or(0, |n| XxHash64::oneshot(1, n.as_bytes()));
        let mixed = [
            name(self.keyspace.map(KeyspaceName::as_str)),
            name(self.shard.map(ShardName::as_str)),
            self.sql_mode.bits(),
            self.version,
        ];
        mixed.iter().fold(self.fingerprint.hash(), |hash, part| {
            (hash.rotate_left(5) ^ part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
        })
    }
}

/// A plan with the key it is kept under.
#[derive(Debug)]
struct Kept {
    fingerprint: Box<[u8]>,
    keyspace: Option<KeyspaceName>,
    shard: Option<ShardName>,
    sql_mode: SqlMode,
    version: u64,
    plan: Arc<Plan>,
}

impl Kept {
    fn is_under(&self, key: &PlanKey<'_>) -> bool {
        self.version == key.version
            && self.sql_mode == key.sql_mode
            && self.keyspace.as_ref() == key.keyspace
            && self.shard.as_ref() == key.shard
            && *self.fingerprint == *key.fingerprint.key()
    }
}

/// The key's hash is the map's.
#[derive(Default)]
struct Given(u64);

impl Hasher for Given {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

type Plans = HashMap<u64, Kept, BuildHasherDefault<Given>>;

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
    /// Plans of one generation of one part.
    generation: usize,
    hits: AtomicU64,
    misses: AtomicU64,
    evictions: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    young: Plans,
    old: Plans,
}

impl PlanCache {
    /// A cache of at most about `capacity` plans; 0 keeps none.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Mutex::default()).collect(),
            generation: capacity.div_ceil(2 * PARTS),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            evictions: AtomicU64::new(0),
        }
    }

    /// The plan under a key, if there is one that fits the statement's own literals.
    #[must_use]
    pub fn get(&self, key: &PlanKey<'_>, statement: &Lexed<'_>) -> Option<Arc<Plan>> {
        let found = self.lookup(key).filter(|plan| plan.fits(statement));
        let counter = if found.is_some() { &self.hits } else { &self.misses };
        counter.fetch_add(1, Ordering::Relaxed);
        found
    }

    fn lookup(&self, key: &PlanKey<'_>) -> Option<Arc<Plan>> {
        let hash = key.hash();
        let mut part = self.part(hash);
        if let Some(kept) = part.young.get(&hash).filter(|kept| kept.is_under(key)) {
            return Some(Arc::clone(&kept.plan));
        }
        let kept = part.old.remove(&hash).filter(|kept| kept.is_under(key))?;
        let plan = Arc::clone(&kept.plan);
        self.keep(&mut part, hash, kept);
        Some(plan)
    }

    /// Keeps a plan, in place of another under the same key.
    pub fn insert(&self, key: &PlanKey<'_>, plan: Arc<Plan>) {
        if self.generation > 0 && key.fingerprint.key().len() <= MAX_KEY_BYTES {
            let hash = key.hash();
            let kept = Kept {
                fingerprint: key.fingerprint.key().into(),
                keyspace: key.keyspace.cloned(),
                shard: key.shard.cloned(),
                sql_mode: key.sql_mode,
                version: key.version,
                plan,
            };
            let mut part = self.part(hash);
            part.old.remove(&hash);
            self.keep(&mut part, hash, kept);
        }
    }

    fn keep(&self, part: &mut Part, hash: u64, kept: Kept) {
        if part.young.len() >= self.generation && !part.young.contains_key(&hash) {
            let dropped = std::mem::replace(&mut part.old, std::mem::take(&mut part.young));
            self.evictions.fetch_add(dropped.len() as u64, Ordering::Relaxed);
        }
        part.young.insert(hash, kept);
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

    /// By the hash's high bits: the map within a part goes by its low ones.
    fn part(&self, hash: u64) -> MutexGuard<'_, Part> {
        lock(&self.parts[(hash >> 32) as usize % PARTS])
    }
}

/// A panic while the lock was held cannot have left a map half changed that matters: plans are whole or absent.
fn lock(part: &Mutex<Part>) -> MutexGuard<'_, Part> {
    part.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
