//! Shows the guards what time and silence tell, and asks tablets that nobody else asks.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::balance::Fleet;
use crate::base::clock;
use crate::guard::{Pulse, Work};
use crate::tablet::{Pool, Settings};

/// How often the guards look.
const TICK: Duration = Pulse::BEAT;

/// How long the gateway's own probe of a tablet may take.
const PROBE: Duration = Duration::from_secs(1);

/// Ticks until it is stopped.
pub(super) async fn tablets(fleet: Arc<Fleet>, tasks: TaskTracker, stopped: CancellationToken) {
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = stopped.cancelled() => return,
            () = fleet.guards().buffering_began() => {
                fleet.look_where_requests_wait();
                continue;
            }
            _ = tick.tick() => {}
        }
        let now = clock::now();
        fleet.tick(now);
        fleet.look_where_requests_wait();
        for pool in fleet.unprobed(now) {
            // One at a time: the breaker gives its one probe to the first.
            tasks.spawn(probe(pool));
        }
    }
}

/// With no traffic for a cooldown the breaker of a tablet would stay half-open for ever.
async fn probe(pool: Arc<Pool>) {
    let by = clock::now() + PROBE;
    let Ok(pass) = pool.enter(Work::CONNECT, clock::now()) else {
        return;
    };
    let Ok(mut conn) = pool.checkout(pass, &Settings::default(), Some(by)).await else {
        return;
    };
    let Ok(attempt) = conn.start(Work::CONNECT, clock::now()) else {
        return;
    };
    let gate = Arc::clone(conn.gate());
    match conn.ping(by).await {
        Ok(()) => attempt.record(&gate, crate::guard::Outcome::Success, clock::now()),
        Err(e) if conn.owes_answer() => {
            tracing::debug!(tablet = %conn.info().alias, error = %e, "a probe was not answered");
            attempt.gave_up(&gate, Some(PROBE), clock::now());
        }
        Err(e) => attempt.record(&gate, e.outcome(conn.info().role), clock::now()),
    }
}
