//! Moments, as the caller's clock counts them.
//!
//! The crate owns no clock, so that a test can move time and every decision can be replayed. A moment is a number of
//! nanoseconds since an origin the caller chose once, at start; it fits an atomic, which an `Instant` does not.

use std::time::Duration;

/// Nanoseconds since the caller's origin. Arithmetic saturates: a clock that jumps cannot make it wrap or panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// A moment so many nanoseconds after the origin; they last for 584 years.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// A moment so long after the origin: `Time::at(instant.duration_since(origin))`.
    #[must_use]
    pub fn at(since_origin: Duration) -> Self {
        Self(nanos(since_origin))
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// This much later.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        Self(self.0.saturating_add(nanos(span)))
    }

    /// How long it is since `earlier`; zero if `earlier` is not earlier.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// A span in nanoseconds, at most 584 years.
pub(crate) fn nanos(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_at_both_ends() {
        let late = Time::from_nanos(u64::MAX - 1);
        assert_eq!(late.after(Duration::from_secs(1)).as_nanos(), u64::MAX);
        assert_eq!(Time::ZERO.since(late), Duration::ZERO);
        assert_eq!(Time::at(Duration::MAX).as_nanos(), u64::MAX);
    }
}
