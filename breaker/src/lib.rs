//! Pure decisions about failures: no I/O, no async runtime, no clock of its own.
//!
//! - [`outcome`] is the one table that says what an answer of a tablet means for the tablet.
//! - [`Breaker`] decides whether an attempt may be made; [`Config`] holds its thresholds.
//! - [`EjectionCap`] keeps the breakers of a shard's replicas from taking all of them out; [`Registry`] holds breakers by
//!   identity.
//! - [`Ramp`] turns lag into weight, [`Fleet`] says what happens when no replica may serve, [`may_take_slot`] bounds one
//!   kind of statement's share of a pool, and [`RetryBudget`] bounds retries.
//! - [`Pulse`] tells a tablet that was late from a program that stood still.
//!
//! Time comes in as an argument and jitter as a seed, so that every decision can be replayed. Asking and recording take
//! no lock and no allocation.
//!
//! ```
//! use std::sync::Arc;
//! use shardgate_breaker::{Breaker, Config, Outcome, State, Time, Work};
//!
//! let breaker = Breaker::new(Config::shard(), 7, Arc::new(()))?;
//! let now = Time::from_nanos(1);
//! for _ in 0..5 {
//!     breaker.try_acquire(Work::CONNECT, now)?.record(Outcome::Failure, now);
//! }
//! let refused = breaker.try_acquire(Work::CONNECT, now).unwrap_err();
//! assert_eq!(breaker.state(now), State::Open);
//! assert!(refused.to_string().starts_with("breaker open 0.0 s (failures in a row), probe in 2."));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod breaker;
mod budget;
pub mod config;
mod ejection;
mod event;
mod fleet;
#[cfg(all(test, loom))]
mod interleavings;
pub mod outcome;
mod permit;
mod pulse;
mod ramp;
mod reason;
mod registry;
mod share;
mod signal;
mod state;
mod sync;
mod time;

pub use breaker::{Breaker, Counts, Snapshot};
pub use budget::{BudgetConfig, RetryBudget};
pub use config::{Config, ConfigError};
pub use ejection::EjectionCap;
pub use event::{Event, Listener, Transition};
pub use fleet::{Fleet, FleetCause, FleetPolicy, ReadAnswer, Standing, middle};
pub use outcome::{Outcome, ServerError};
pub use permit::{OwnedPermit, Permit, Refusal, Rejected, Work};
pub use pulse::Pulse;
pub use ramp::{Ramp, RampError};
pub use reason::{Mode, Reason, State, Trigger};
pub use registry::{Full, Registry};
pub use share::may_take_slot;
pub use time::Time;
