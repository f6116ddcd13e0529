//! Trying a read again on a shard whose tablet failed before it answered.
//!
//! Only what provably changes nothing is tried again: a read, outside a transaction, of which no row was sent. Each retry
//! is paid from the shard's budget when it is scheduled, waits a random while so that those who failed together do not
//! come back together, and asks the guards again: never against an open breaker.

use std::time::Duration;

use super::run::Run;
use super::{ExecError, Statement};
use crate::base::clock::{self, Instant};
use crate::base::metrics::Metrics;
use crate::base::{Role, ShardId};
use crate::guard::Guards;

/// The longest wait before the first retry; it doubles for each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(10);
const MAX_BACKOFF: Duration = Duration::from_millis(200);

/// How often one leg may still be tried.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tries {
    left: u32,
    made: u32,
    role: Role,
}

impl Tries {
    /// None for whatever is not a read on its own.
    pub(super) fn of(run: &Run<'_>, statement: &Statement<'_>) -> Self {
        let alone = !statement.changes() && !run.transaction.is_active() && run.reserve.is_none();
        let left = if alone {
            run.fleet.guards().settings().retry_attempts
        } else {
            0
        };
        Self {
            left,
            made: 0,
            role: statement.role,
        }
    }

    /// Whether to try again after this error; waits before it says so. The caller is sure that nothing of the answer has
    /// reached the client.
    pub(super) async fn again(&mut self, run: &mut Run<'_>, shard: &ShardId, error: &ExecError) -> bool {
        let deadline = run.limits.at();
        match self.schedule(run.fleet.guards(), run.metrics, shard, error, deadline) {
            Some(wait) => run
                .limits
                .watch(run.client, tokio::time::sleep(wait))
                .await
                .is_ok(),
            None => false,
        }
    }

    /// How long to wait before the next try; `None` if there is none.
    pub(super) fn schedule(
        &mut self,
        guards: &Guards,
        metrics: &Metrics,
        shard: &ShardId,
        error: &ExecError,
        deadline: Option<Instant>,
    ) -> Option<Duration> {
        if self.left == 0 || !error.may_try_again(self.role) {
            return None;
        }
        let most = (FIRST_BACKOFF * 2u32.saturating_pow(self.made)).min(MAX_BACKOFF);
        let wait = most.mul_f64(random_share());
        let now = clock::now();
        if deadline.is_some_and(|at| now + wait >= at) {
            return None;
        }
        let budget = guards.shard(shard);
        if !budget.budget().charge(guards.time(now)) {
            metrics.retries.handle(&format!("{shard}.no_budget")).inc();
            return None;
        }
        metrics.retries.handle(&format!("{shard}.tried")).inc();
        self.left -= 1;
        self.made += 1;
        Some(wait)
    }
}

/// A number from 0 to 1, from the system's random source; one half if that fails.
fn random_share() -> f64 {
    let mut bytes = [0u8; 4];
    match getrandom::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 0.5,
    }
}
