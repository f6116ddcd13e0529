//! The one place that reads a clock.
//!
//! Everything that decides takes `now` as an argument; what sits at the edge asks here. It is tokio's clock, so a
//! test that pauses time pauses all of the gateway's time with it.

pub use tokio::time::Instant;

/// The monotonic time, as tokio sees it (paused and advanced by tests).
#[must_use]
pub fn now() -> Instant {
    Instant::now()
}

/// Seconds and microseconds of the wall clock since the Unix epoch: for timestamps shown to people and for
/// `NOW()` literals, never for measuring durations.
#[must_use]
#[allow(clippy::disallowed_methods)] // this is the clock module the ban points to
pub fn wall() -> std::time::Duration {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
}
