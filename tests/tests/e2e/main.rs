//! The end-to-end tests: one binary, since each costs a link of everything; a module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)] // tests fail by panicking, in real time

mod anywhere;
mod cancel;
mod check;
mod crowd;
mod demo;
mod docs;
mod failing;
mod failover;
mod failovers;
mod guards;
mod harness;
mod health;
mod introspection;
mod kinds;
mod lag;
mod late_looks;
mod lifecycle;
mod metrics;
mod operator;
mod order;
mod partial;
mod prepared;
mod reach;
mod replicas;
mod schemata;
mod serve;
mod sessions;
mod siblings;
mod simulated;
mod split;
mod standstill;
mod state;
mod tablet_tls;
mod unsharded;
mod wire;
