//! Shardgate: a scatter-gather gateway for sharded `MySQL` and `MariaDB`.
//!
//! The rooms, outermost first, are described in `docs/architecture.md`. A room uses only rooms below it.

pub mod base;
pub mod gather;
pub mod route;
pub mod vindex;
