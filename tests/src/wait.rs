//! Bounded waits. A test waits for a condition, never for a time: too short a sleep fails on a busy machine, too long a
//! one wastes everybody's time.

use std::future::Future;
use std::time::{Duration, Instant};

/// Pause between two looks at a condition.
const LOOK: Duration = Duration::from_millis(10);

/// Looks until `probe` gives a value; panics naming `what` once `limit` has passed. Blocks the thread.
pub fn until_blocking<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(began.elapsed() < limit, "waited {limit:?} in vain for {what}");
        std::thread::sleep(LOOK);
    }
}

/// Looks until `probe` gives a value; panics naming `what` once `limit` has passed.
pub async fn until<T, F: Future<Output = Option<T>>>(
    what: &str,
    limit: Duration,
    mut probe: impl FnMut() -> F,
) -> T {
    let began = Instant::now();
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(began.elapsed() < limit, "waited {limit:?} in vain for {what}");
        tokio::time::sleep(LOOK).await;
    }
}

/// Runs the future, panicking naming `what` if it takes longer than `limit`: a hang is a failure, never a stuck run.
pub async fn within<T>(what: &str, limit: Duration, future: impl Future<Output = T>) -> T {
    let done = tokio::time::timeout(limit, future).await;
    done.unwrap_or_else(|_elapsed| panic!("{what} took longer than {limit:?}"))
}
