//! Breakers by identity.
//!
//! The map is asked when a route is resolved, not on each attempt: hot paths keep the [`Arc`] they were given.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::{Breaker, State, Time};

/// The registry is full of breakers that are not closed: the new one would displace what is being protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no room for another breaker: all {capacity} are in use")]
pub struct Full {
    /// The bound.
    pub capacity: usize,
}

/// Breakers of one scope (shards, tablets, or kinds of statement on a shard), bounded.
#[derive(Debug)]
pub struct Registry<K> {
    breakers: RwLock<HashMap<K, Arc<Breaker>>>,
    capacity: usize,
}

impl<K: Eq + Hash + Clone> Registry<K> {
    /// Room for so many breakers.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            breakers: RwLock::new(HashMap::new()),
            capacity,
        }
    }

    /// The breaker of this identity, if there is one.
    #[must_use]
    pub fn get(&self, key: &K) -> Option<Arc<Breaker>> {
        self.read().get(key).map(Arc::clone)
    }

    /// The breaker of this identity, made now if there is none. When there is no room one that is closed and that
    /// nobody holds makes way.
    pub fn get_or_insert(
        &self,
        key: &K,
        now: Time,
        make: impl FnOnce() -> Breaker,
    ) -> Result<Arc<Breaker>, Full> {
        if let Some(known) = self.get(key) {
            return Ok(known);
        }
        // Made before the lock is taken: making one may be slow, and a listener may ask the registry.
        let fresh = Arc::new(make());
        let mut breakers = self.write();
        if let Some(known) = breakers.get(key) {
            return Ok(Arc::clone(known));
        }
        if breakers.len() >= self.capacity {
            let idle = breakers
                .iter()
                .find(|(_, b)| is_idle(b, now))
                .map(|(k, _)| k.clone());
            match idle {
                Some(idle) => breakers.remove(&idle),
                None => {
                    return Err(Full {
                        capacity: self.capacity,
                    });
                }
            };
        }
        breakers.insert(key.clone(), Arc::clone(&fresh));
        Ok(fresh)
    }

    /// Forgets an identity. Those who hold its breaker keep it.
    pub fn remove(&self, key: &K) -> Option<Arc<Breaker>> {
        self.write().remove(key)
    }

    /// Forgets the breakers that are closed, that nobody holds and nobody took over; tells how many.
    pub fn sweep(&self, now: Time) -> usize {
        let mut breakers = self.write();
        let before = breakers.len();
        breakers.retain(|_, b| !is_idle(b, now));
        before - breakers.len()
    }

    /// All of them, as they are now.
    #[must_use]
    pub fn all(&self) -> Vec<(K, Arc<Breaker>)> {
        self.read()
            .iter()
            .map(|(k, b)| (k.clone(), Arc::clone(b)))
            .collect()
    }

    /// Ticks all of them. The lock is not held meanwhile: their listeners may ask the registry.
    pub fn tick(&self, now: Time) {
        for (_, breaker) in self.all() {
            breaker.tick(now);
        }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    // A panic elsewhere cannot leave the map half changed: each change is one call.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<K, Arc<Breaker>>> {
        self.breakers.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<K, Arc<Breaker>>> {
        self.breakers.write().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_idle(breaker: &Arc<Breaker>, now: Time) -> bool {
    Arc::strong_count(breaker) == 1 && breaker.state(now) == State::Closed && !breaker.is_taken_over()
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;
    use crate::{Config, Reason};

    fn make() -> Breaker {
        Breaker::new(Config::fingerprint(), 1, Arc::new(())).unwrap()
    }

    #[test]
    fn one_identity_has_one_breaker() {
        let registry = Registry::new(2);
        let a = registry.get_or_insert(&"a", Time::ZERO, make).unwrap();
        let again = registry.get_or_insert(&"a", Time::ZERO, make).unwrap();
        assert!(Arc::ptr_eq(&a, &again) && Arc::ptr_eq(&a, &registry.get(&"a").unwrap()));
        assert_eq!(registry.len(), 1);
        assert!(registry.get(&"b").is_none());
    }

    #[test]
    fn a_full_registry_lets_go_of_idle_breakers_only() {
        let now = Time::ZERO;
        let registry = Registry::new(2);
        let held = registry.get_or_insert(&1, now, make).unwrap();
        registry
            .get_or_insert(&2, now, make)
            .unwrap()
            .trip(Reason::Attributed, now);
        let full = registry.get_or_insert(&3, now, make).unwrap_err();
        assert_eq!(full.capacity, 2);
        drop(held);
        registry.get_or_insert(&3, now, make).unwrap();
        assert!(registry.get(&1).is_none() && registry.get(&2).is_some());
        assert_eq!(registry.sweep(now), 1);
        assert_eq!(registry.all()[0].0, 2);
    }

    #[test]
    fn a_breaker_that_was_taken_over_is_not_forgotten() {
        let registry = Registry::new(2);
        let now = Time::ZERO;
        let taken = registry.get_or_insert(&1, now, make).unwrap();
        taken.set_mode(crate::Mode::ForcedClosed, now);
        drop(taken);
        assert_eq!(registry.sweep(now), 0);
        registry.get(&1).unwrap().set_mode(crate::Mode::Auto, now);
        assert_eq!(registry.sweep(now), 1);
    }

    #[test]
    fn a_listener_may_ask_the_registry_while_it_ticks() {
        let registry = Arc::new(Registry::new(9));
        let asks = Arc::clone(&registry);
        let listener = Arc::new(move |_: &crate::Event| {
            asks.get_or_insert(&2, Time::ZERO, make).unwrap();
        });
        let breaker = || Breaker::new(Config::shard(), 1, listener).unwrap();
        let first = registry.get_or_insert(&1, Time::ZERO, breaker).unwrap();
        first.trip(Reason::Buffer, Time::ZERO);
        registry.remove(&2);
        registry.tick(Time::at(std::time::Duration::from_secs(9)));
        assert_eq!(
            registry.len(),
            2,
            "the tick made it half-open, and the listener heard"
        );
    }
}
