//! Clients that are not ours: what a newcomer types, and what programs use.

pub mod cli;
pub mod http;
pub mod python;

pub use cli::Cli;
