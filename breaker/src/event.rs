//! What a breaker tells whoever logs, counts and acts.

use std::time::Duration;

use crate::{Mode, Reason, State, Time, Trigger};

/// A change of state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition {
    /// When, by the caller's clock.
    pub at: Time,
    /// The state left.
    pub from: State,
    /// The state entered.
    pub to: State,
    /// What moved it.
    pub trigger: Trigger,
    /// The signal that opened it, also while it recovers.
    pub reason: Reason,
    /// The generation that begins; results of earlier ones no longer move the state.
    pub generation: u32,
    /// How long it stays open; zero for the other states.
    pub cooldown: Duration,
}

/// Something worth a log line and a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The state changed.
    Transition(Transition),
    /// A signal fired while the breaker only counts.
    WouldTrip {
        /// When.
        at: Time,
        /// The signal.
        reason: Reason,
    },
    /// A signal fired, but as many siblings are out as may be: the tablet keeps serving, with the least weight.
    Suppressed {
        /// When.
        at: Time,
        /// The signal.
        reason: Reason,
    },
    /// A signal fired, and one kind of statement is the cause: its own breaker is to be opened
    /// ([`Breaker::trip`](crate::Breaker::trip) with [`Reason::Attributed`]), this one stays closed.
    Attributed {
        /// When.
        at: Time,
        /// The signal.
        reason: Reason,
        /// The kind of statement.
        fingerprint: u64,
        /// Its share of the busy slots or of the slow tail, in percent.
        percent: u32,
    },
    /// An operator, or a reload, changed who decides.
    ModeChanged {
        /// When.
        at: Time,
        /// The mode left.
        from: Mode,
        /// The mode entered.
        to: Mode,
    },
}

/// Receives a breaker's events, on the thread that caused them, after they took effect.
///
/// Each event is delivered exactly once. It must not block: a query is waiting.
pub trait Listener: Send + Sync {
    /// Takes one event.
    fn event(&self, event: &Event);
}

/// Nobody listens.
impl Listener for () {
    fn event(&self, _event: &Event) {}
}

impl<F: Fn(&Event) + Send + Sync> Listener for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}
