//! The end-to-end tests: one binary, since each costs a link of everything; a module a subject.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)] // tests fail by panicking, in real time

mod check;
mod docs;
mod harness;
