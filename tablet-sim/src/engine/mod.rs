//! The engine: `MySQL` statements over `SQLite`.
//!
//! A statement is lexed and classified by `gateway/sql`; what needs a tree is parsed, translated with types
//! ([`translate`]) and run on the session's own `SQLite` connection ([`session`]).

pub(crate) mod catalog;
pub(crate) mod collate;
mod ddl;
mod ddl_table;
pub(crate) mod decimal;
mod dml;
pub(crate) mod functions;
mod information_schema;
pub(crate) mod listing;
pub(crate) mod parse;
mod query;
pub(crate) mod session;
mod set;
mod show;
pub(crate) mod temporal;
pub(crate) mod translate;
pub(crate) mod types;
pub(crate) mod value;
pub(crate) mod vars;
