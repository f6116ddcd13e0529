//! What is counted, each by itself: none of these knows the state machine.
//!
//! Counters are tagged with the generation they belong to, so that a new generation starts at zero without a sweep and
//! a late result of an old one cannot add to it.

pub(crate) mod cut;
pub(crate) mod latency;
pub(crate) mod pending;
pub(crate) mod samples;
pub(crate) mod streak;
pub(crate) mod tail;
pub(crate) mod window;
