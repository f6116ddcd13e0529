//! The right to one attempt.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use crate::{Breaker, Outcome, Reason, Time};

/// What an attempt is, for the rule of distinct fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Work(u64);

impl Work {
    /// Not a statement: a connection attempt or the poller's probe. Exempt from the rule.
    pub const CONNECT: Self = Self(0);

    /// A statement, by the hash of its fingerprint.
    #[must_use]
    pub const fn statement(fingerprint: u64) -> Self {
        // Zero stands for "no statement"; one hash in 2^64 shares a place with another.
        Self(if fingerprint == 0 { 1 } else { fingerprint })
    }

    /// The fingerprint, or 0.
    #[must_use]
    pub const fn fingerprint(self) -> u64 {
        self.0
    }
}

/// Why an attempt was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The breaker is open.
    Open,
    /// The breaker is half-open and its one probe is out.
    Probing,
    /// The breaker is half-open and waits for the poller's samples, not for queries.
    Sampling,
    /// An operator shut it off.
    Forced,
}

impl Refusal {
    /// The label in metrics.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Probing => "probing",
            Self::Sampling => "sampling",
            Self::Forced => "forced",
        }
    }
}

/// An attempt that may not be made.
///
/// Displayed it is the middle of an error message: `breaker open 4.2 s (timeouts in a row), probe in 1.8 s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// Why.
    pub refusal: Refusal,
    /// The signal that opened the breaker.
    pub reason: Reason,
    /// How long it has not been closed.
    pub open_for: Duration,
    /// When asking again may help; `None` if only an operator knows.
    pub retry_after: Option<Duration>,
}

impl std::fmt::Display for Rejected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let open = self.open_for.as_secs_f64();
        let word = match self.refusal {
            Refusal::Open | Refusal::Forced => "open",
            Refusal::Probing | Refusal::Sampling => "half-open",
        };
        write!(f, "breaker {word} {open:.1} s ({})", self.reason)?;
        if let Some(after) = self.retry_after {
            write!(f, ", probe in {:.1} s", after.as_secs_f64())?;
        }
        Ok(())
    }
}

impl std::error::Error for Rejected {}

/// What an attempt holds of its breaker. Whole words, since it is moved about: a narrow store that a wide load follows
/// stalls for longer than the rest of the attempt takes.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) work: Work,
    pub(crate) started: Time,
    /// When the probe must be back, in milliseconds; 0 = no probe.
    pub(crate) lease: u64,
    /// Nanoseconds to the first response; [`Held::NO_LATENCY`] before it.
    pub(crate) latency: u64,
    pub(crate) generation: u64,
    /// Place in the table of attempts: the stripe in the high half, the slot in the low.
    pub(crate) place: u64,
}

impl Held {
    pub(crate) const NO_LATENCY: u64 = u64::MAX;

    /// Nanoseconds to the first response, or until now.
    #[inline]
    pub(crate) fn latency_at(&self, now: Time) -> u64 {
        if self.latency == Self::NO_LATENCY {
            now.as_nanos().saturating_sub(self.started.as_nanos())
        } else {
            self.latency
        }
    }

    pub(crate) const fn generation(&self) -> u32 {
        self.generation as u32
    }

    pub(crate) const fn slot(&self) -> u32 {
        self.place as u32
    }

    pub(crate) const fn stripe(&self) -> usize {
        (self.place >> 32) as usize
    }
}

/// The right to one attempt, of a breaker borrowed or shared.
///
/// Say what became of it with [`Permit::record`]. Dropped without a word, it says nothing: the probe it may have been
/// is free for the next attempt.
#[must_use = "a permit that is dropped at once records nothing"]
#[derive(Debug)]
pub struct Permit<B: Deref<Target = Breaker>> {
    breaker: B,
    held: Held,
    recorded: bool,
}

/// A permit that outlives the borrow: for tasks that own what they hold. It costs a reference count.
pub type OwnedPermit = Permit<Arc<Breaker>>;

impl<B: Deref<Target = Breaker>> Permit<B> {
    #[inline]
    pub(crate) const fn new(breaker: B, held: Held) -> Self {
        Self {
            breaker,
            held,
            recorded: false,
        }
    }

    /// The first byte is sent: what was spent waiting before is not the tablet's, and a probe's lease begins anew.
    /// `false` if it is a probe no longer, since its lease ended before: drop it and ask again.
    #[must_use]
    pub fn sent(&mut self, now: Time) -> bool {
        self.held.started = now;
        self.breaker.touch(&self.held, now);
        self.held.lease == 0 || self.breaker.renew_lease(&mut self.held, now)
    }

    /// The first packet of the response is here: its latency is taken, once.
    pub fn responded(&mut self, now: Time) {
        if self.held.latency == Held::NO_LATENCY {
            self.held.latency = self.held.latency_at(now).min(Held::NO_LATENCY - 1);
            self.breaker.responded(&self.held, now);
        }
        self.breaker.progressed(&self.held, now);
    }

    /// More of the response is here: the tablet is not stuck.
    pub fn progressed(&self, now: Time) {
        self.breaker.progressed(&self.held, now);
    }

    /// What became of the attempt. Results of an earlier generation change nothing.
    #[inline]
    pub fn record(mut self, outcome: Outcome, now: Time) {
        self.recorded = true;
        self.breaker.settle(&self.held, outcome, now);
    }

    /// Whether the breaker's recovery depends on this attempt.
    #[must_use]
    pub const fn is_probe(&self) -> bool {
        self.held.lease != 0
    }

    /// The generation the attempt belongs to.
    #[must_use]
    pub const fn generation(&self) -> u32 {
        self.held.generation()
    }

    /// The breaker that gave it.
    pub fn breaker(&self) -> &Breaker {
        &self.breaker
    }
}

impl<B: Deref<Target = Breaker>> Drop for Permit<B> {
    #[inline]
    fn drop(&mut self) {
        if !self.recorded {
            self.breaker.dropped(&self.held);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_reads_as_the_middle_of_an_error_message() {
        let mut rejected = Rejected {
            refusal: Refusal::Open,
            reason: Reason::ConsecutiveTimeouts,
            open_for: Duration::from_millis(4200),
            retry_after: Some(Duration::from_millis(1800)),
        };
        assert_eq!(
            rejected.to_string(),
            "breaker open 4.2 s (timeouts in a row), probe in 1.8 s"
        );
        rejected.refusal = Refusal::Forced;
        rejected.reason = Reason::Operator;
        rejected.retry_after = None;
        assert_eq!(rejected.to_string(), "breaker open 4.2 s (operator)");
    }
}
