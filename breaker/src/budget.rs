//! How many retries the traffic may carry.
//!
//! Retries multiply load just when there is too much of it. So they are paid from a budget that the first attempts fill:
//! a share of the traffic, and a little for those who have next to none. Finagle and tower keep theirs alike.

use std::time::Duration;

use crate::Time;
use crate::signal::window::{Ring, Shape};
use crate::sync::{AtomicU64, Ordering, seat};

/// The length of memory: a budget not spent for so long is lost.
const WINDOW: Duration = Duration::from_secs(10);
const STRIPES: usize = if cfg!(loom) { 1 } else { 4 };

/// What the budget grants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetConfig {
    /// Retries for each hundred first attempts of the last ten seconds. 0 = none for traffic.
    pub percent: u32,
    /// Retries a second whatever the traffic. 0 = none. Both 0: no retries at all.
    pub per_second: u32,
}

impl Default for BudgetConfig {
    fn default() -> Self {
        Self {
            percent: 20,
            per_second: 10,
        }
    }
}

/// A retry budget, shared by those whose retries add up: the sessions that use one shard.
#[derive(Debug)]
pub struct RetryBudget {
    config: BudgetConfig,
    shape: Shape,
    attempts: Box<[Ring]>,
    retries: Ring,
    refused: AtomicU64,
}

impl RetryBudget {
    /// A budget that has seen no traffic.
    #[must_use]
    pub fn new(config: BudgetConfig) -> Self {
        let shape = Shape::over(WINDOW);
        Self {
            config,
            shape,
            attempts: (0..STRIPES).map(|_| Ring::new(shape)).collect(),
            retries: Ring::new(shape),
            refused: AtomicU64::new(0),
        }
    }

    /// An attempt is made: a first one, or a retry, which earns nothing.
    pub fn attempt(&self, now: Time) {
        let (stripe, writer) = seat(self.attempts.len());
        if let Some(ring) = self.attempts.get(stripe) {
            ring.add_as(writer, 0, now);
        }
    }

    /// Charges one retry, when it is scheduled: those that wait out their back-off count already, or a burst of them
    /// would all pass the same check. `false`: there is no budget, do not retry.
    #[must_use]
    pub fn charge(&self, now: Time) -> bool {
        // Charged first and looked at second: two at once may both be refused the last one, never both granted it.
        self.retries.add(0, now);
        let spent = self.spent(now);
        if spent * 100 <= self.granted_percent(spent.saturating_sub(1), now) {
            return true;
        }
        self.retries.take_back(0, now);
        self.refused.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Retries charged in the last ten seconds.
    #[must_use]
    pub fn spent(&self, now: Time) -> u64 {
        self.retries.sum(0, now, self.shape.buckets(WINDOW))
    }

    /// Retries left.
    #[must_use]
    pub fn left(&self, now: Time) -> u64 {
        let spent = self.spent(now);
        (self.granted_percent(spent, now) / 100).saturating_sub(spent)
    }

    /// Retries refused so far.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Hundredths of retries granted over the window. So many of the attempts in it are retries: what they earned would
    /// pay for more of them. One that is charged and still waits counts as made; it will be in a moment.
    fn granted_percent(&self, retries: u64, now: Time) -> u64 {
        let buckets = self.shape.buckets(WINDOW);
        let attempts: u64 = self.attempts.iter().map(|r| r.sum(0, now, buckets)).sum();
        attempts.saturating_sub(retries) * u64::from(self.config.percent)
            + u64::from(self.config.per_second) * WINDOW.as_secs() * 100
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Retries until the first that is refused, each one made at once.
    fn grants(budget: &RetryBudget, now: Time) -> usize {
        let retry = || budget.charge(now).then(|| budget.attempt(now)).is_some();
        (0..10_000).take_while(|_| retry()).count()
    }

    #[test]
    fn a_fifth_of_the_traffic_and_ten_a_second() {
        for (attempts, percent, per_second, granted) in [
            (0, 20, 10, 100),
            (1000, 20, 10, 300),
            (1000, 20, 0, 200),
            (4, 20, 0, 0),
            (5, 20, 0, 1),
            (1000, 0, 0, 0),
        ] {
            let budget = RetryBudget::new(BudgetConfig { percent, per_second });
            (0..attempts).for_each(|_| budget.attempt(Time::ZERO));
            assert_eq!(budget.left(Time::ZERO), granted as u64);
            assert_eq!(
                grants(&budget, Time::ZERO),
                granted,
                "{attempts} at {percent} % + {per_second}/s"
            );
            assert_eq!(budget.refused(), 1);
        }
    }

    /// Retries were counted as traffic like first attempts: a fifth of a fifth more, and so on.
    #[test]
    fn retries_earn_no_retries() {
        let budget = RetryBudget::new(BudgetConfig {
            percent: 50,
            per_second: 0,
        });
        (0..1000).for_each(|_| budget.attempt(Time::ZERO));
        assert_eq!(grants(&budget, Time::ZERO), 500);
        assert_eq!(budget.left(Time::ZERO), 0);
        // All of them wait at once: those that have not been made yet are no traffic either.
        let budget = RetryBudget::new(BudgetConfig {
            percent: 50,
            per_second: 0,
        });
        (0..900).for_each(|_| budget.attempt(Time::ZERO));
        let waiting = (0..1000).take_while(|_| budget.charge(Time::ZERO)).count();
        assert_eq!(waiting, 300);
        (0..waiting).for_each(|_| budget.attempt(Time::ZERO));
        assert_eq!(grants(&budget, Time::ZERO), 150);
    }

    #[test]
    fn a_refused_retry_is_not_charged() {
        let budget = RetryBudget::new(BudgetConfig {
            percent: 20,
            per_second: 0,
        });
        assert!(!budget.charge(Time::ZERO));
        (0..5).for_each(|_| budget.attempt(Time::ZERO));
        assert!(budget.charge(Time::ZERO));
    }

    #[test]
    fn the_budget_is_forgotten_after_ten_seconds_and_so_is_what_was_spent() {
        let budget = RetryBudget::new(BudgetConfig::default());
        (0..1000).for_each(|_| budget.attempt(Time::ZERO));
        assert_eq!(grants(&budget, Time::ZERO), 300);
        assert_eq!(grants(&budget, Time::ZERO.after(SECOND * 9)), 0);
        assert_eq!(grants(&budget, Time::ZERO.after(SECOND * 10)), 100);
    }

    #[test]
    fn the_last_retry_is_granted_at_most_once() {
        let budget = RetryBudget::new(BudgetConfig::default());
        let granted = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        granted.fetch_add(u64::from(budget.charge(Time::ZERO)), Ordering::Relaxed);
                    }
                });
            }
        });
        assert!((97..=100).contains(&granted.into_inner()));
    }
}
