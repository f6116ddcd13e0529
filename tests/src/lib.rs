//! The harness of the end-to-end tests: private MariaDB servers, gateways, clients, faults, and the comparison of an
//! answer with that of one server holding all rows.
//!
//! What a test starts is gone when the test ends, however it ends: each process runs under a small shell that kills it
//! and removes its directory once the pipe from the test process closes ([`process`]). That holds after a panic, after
//! a kill of the test process, and for servers kept in statics, which are never dropped.
//!
//! A harness reports failure by panicking with the reason, so a test reads as what it does and not as error handling.

#![allow(clippy::unwrap_used, clippy::expect_used)] // a harness fails by panicking, see above
#![allow(clippy::missing_panics_doc)] // likewise, everywhere
#![allow(clippy::disallowed_methods)] // tests measure real time, from outside the gateway

pub mod answer;
pub mod certificate;
pub mod client;
pub mod fault;
pub mod fixture;
pub mod gateway;
pub mod mariadb;
pub mod process;
pub mod replicated;
pub mod sim;
pub mod tools;
pub mod wait;
pub mod workload;

pub use answer::{Answer, Order, Outcome, Pair};
pub use fault::{Fault, FaultProxy};
pub use fixture::{Fixture, Layout};
pub use gateway::Gateway;
pub use mariadb::{Database, MariaDb};
pub use replicated::Replicated;
pub use sim::TabletSim;
pub use workload::Workload;
