//! Indexes and constraints.

use std::sync::Arc;

use crate::engine::catalog::{PRIMARY, Table};
use crate::engine::listing::{Listing, row};
use crate::engine::value::Value;

pub(super) fn statistics(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "#NON_UNIQUE",
        "INDEX_SCHEMA",
        "INDEX_NAME",
        "#SEQ_IN_INDEX",
        "COLUMN_NAME",
        "COLLATION",
        "#CARDINALITY",
        "#SUB_PART",
        "PACKED",
        "NULLABLE",
        "INDEX_TYPE",
        "COMMENT",
        "INDEX_COMMENT",
    ]);
    for t in tables {
        for index in &t.indexes {
            for (seq, at) in index.columns.iter().enumerate() {
                let c = &t.columns[*at];
                out.push(row![
                    "def",
                    t.schema.as_str(),
                    t.name.as_str(),
                    u64::from(!index.unique),
                    t.schema.as_str(),
                    index.name.as_str(),
                    seq as u64 + 1,
                    c.name.as_str(),
                    "A",
                    0u64,
                    Value::Null,
                    Value::Null,
                    if c.nullable { "YES" } else { "" },
                    "BTREE",
                    "",
                    "",
                ]);
            }
        }
    }
    out
}

pub(super) fn key_column_usage(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "#ORDINAL_POSITION",
        "#POSITION_IN_UNIQUE_CONSTRAINT",
        "REFERENCED_TABLE_SCHEMA",
        "REFERENCED_TABLE_NAME",
        "REFERENCED_COLUMN_NAME",
    ]);
    for t in tables {
        let (schema, name) = (t.schema.as_str(), t.name.as_str());
        for index in t.indexes.iter().filter(|i| i.unique) {
            for (seq, at) in index.columns.iter().enumerate() {
                out.push(row![
                    "def",
                    schema,
                    index.name.as_str(),
                    "def",
                    schema,
                    name,
                    t.columns[*at].name.as_str(),
                    seq as u64 + 1,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Null,
                ]);
            }
        }
        for key in &t.foreign_keys {
            for (seq, (own, other)) in key.columns.iter().zip(&key.parent_columns).enumerate() {
                out.push(row![
                    "def",
                    schema,
                    key.name.as_str(),
                    "def",
                    schema,
                    name,
                    own.as_str(),
                    seq as u64 + 1,
                    seq as u64 + 1,
                    key.parent_schema.as_str(),
                    key.parent.as_str(),
                    other.as_str(),
                ]);
            }
        }
    }
    out
}

pub(super) fn table_constraints(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "CONSTRAINT_TYPE",
    ]);
    for t in tables {
        let mut push = |name: &str, kind: &str| {
            out.push(row![
                "def",
                t.schema.as_str(),
                name,
                t.schema.as_str(),
                t.name.as_str(),
                kind
            ]);
        };
        for index in t.indexes.iter().filter(|i| i.unique) {
            push(
                &index.name,
                if index.name == PRIMARY {
                    "PRIMARY KEY"
                } else {
                    "UNIQUE"
                },
            );
        }
        for key in &t.foreign_keys {
            push(&key.name, "FOREIGN KEY");
        }
        for check in &t.checks {
            push(&check.name, "CHECK");
        }
    }
    out
}

pub(super) fn referential_constraints(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "CONSTRAINT_CATALOG",
        "CONSTRAINT_SCHEMA",
        "CONSTRAINT_NAME",
        "UNIQUE_CONSTRAINT_SCHEMA",
        "UPDATE_RULE",
        "DELETE_RULE",
        "TABLE_NAME",
        "REFERENCED_TABLE_NAME",
    ]);
    for t in tables {
        for key in &t.foreign_keys {
            out.push(row![
                "def",
                t.schema.as_str(),
                key.name.as_str(),
                key.parent_schema.as_str(),
                key.on_update.unwrap_or("RESTRICT"),
                key.on_delete.unwrap_or("RESTRICT"),
                t.name.as_str(),
                key.parent.as_str(),
            ]);
        }
    }
    out
}
