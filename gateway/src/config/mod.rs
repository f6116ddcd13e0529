//! The configuration.

pub mod vschema;
