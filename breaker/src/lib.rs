//! Pure decisions about failures: no I/O, no async runtime, no clock of its own.
//!
//! [`outcome`] is the one table that says what an answer of a tablet means for the tablet: whether it worked, whether it
//! was slow, overloaded or gone. Counters use it today; circuit breakers are built on it.

pub mod outcome;

pub use outcome::{Outcome, ServerError};
