//! Shardgate: a scatter-gather gateway for sharded `MySQL` and `MariaDB`.
//!
//! The rooms, outermost first, are described in `docs/architecture.md`. A room uses only rooms below it.

pub mod admin;
pub mod balance;
pub mod base;
pub mod cli;
pub mod config;
pub mod exec;
pub mod gather;
pub mod guard;
pub mod plan;
pub mod route;
pub mod schema;
pub mod server;
pub mod session;
pub mod tablet;
pub mod topology;
pub mod vindex;
