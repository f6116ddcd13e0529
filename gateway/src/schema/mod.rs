//! What the gateway knows of tables: where their rows live (from the vschema) and what their columns are (as learned
//! from the tablets).
//!
//! A plan is only as right as the types it was made with, so a [`SchemaSnapshot`] is immutable and numbered: a plan
//! keeps the number it was made under and is dropped when a newer snapshot is published.

mod compare;
mod error;
mod findings;
mod rows;
mod snapshot;
mod table;
#[cfg(test)]
mod tests;
mod types;

pub use compare::{Difference, differences};
pub use error::SchemaError;
pub use findings::Finding;
pub use rows::{ColumnRow, columns_sql, learn, tables_sql, triggers_sql, views};
pub use snapshot::{Found, KeyspaceSchema, Routing, SchemaSnapshot, Table, TableVindex};
pub use table::{ColumnInfo, DatabaseSchema, TableInfo};
pub use types::{parse_members, parse_type};

pub use crate::config::vschema::{ColumnVindex, Placement, VSchema, VSchemaProblem, VTable};
pub use crate::vindex::{Collation, ColumnType, IntWidth, Pad, Sensitivity, StringKind};
