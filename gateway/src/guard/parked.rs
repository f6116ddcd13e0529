//! Statements that have begun to answer on one tablet and wait for another: no attempt of theirs is open any more, since
//! their tablet has done its part, but they hold its connections and count for their kind's share of the pool.

use std::sync::Arc;

use dashmap::DashMap;
use shardgate_breaker::Work;

use super::gate::Gate;

/// How many there are of each kind. No more kinds than connections.
#[derive(Debug, Default)]
pub(super) struct Parked(DashMap<u64, u32>);

impl Parked {
    /// How many there are of a kind.
    pub(super) fn count(&self, work: Work) -> u32 {
        self.0.get(&work.fingerprint()).map_or(0, |n| *n)
    }

    pub(super) fn enter(&self, work: Work) {
        *self.0.entry(work.fingerprint()).or_default() += 1;
    }

    fn leave(&self, work: Work) {
        let kind = work.fingerprint();
        if let Some(mut n) = self.0.get_mut(&kind) {
            *n = n.saturating_sub(1);
        }
        self.0.remove_if(&kind, |_, n| *n == 0);
    }
}

/// One such statement; counted until it is dropped.
#[derive(Debug)]
pub struct Parking {
    pub(super) gate: Arc<Gate>,
    pub(super) work: Work,
}

impl Drop for Parking {
    fn drop(&mut self) {
        self.gate.parked().leave(self.work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_entered_and_left_again_is_forgotten() {
        let (parked, a, b) = (Parked::default(), Work::statement(1), Work::statement(2));
        parked.enter(a);
        parked.enter(a);
        parked.enter(b);
        parked.leave(a);
        assert_eq!((parked.count(a), parked.count(b)), (1, 1));
        parked.leave(a);
        parked.leave(b);
        parked.leave(b);
        assert_eq!((parked.count(a), parked.count(b), parked.0.len()), (0, 0, 0));
    }
}
