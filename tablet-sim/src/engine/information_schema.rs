//! The information schema: made from the catalog, whenever a statement names it, as temporary tables of the session.

use std::sync::Arc;

use rusqlite::params_from_iter;

use super::catalog::{Catalog, Column, Default, PRIMARY, Table};
use super::collate::Collation;
use super::listing::{Listing, row};
use super::session::Session;
use super::types::{Class, IntSize, TextKind, Ty};
use super::value::{Value, text_literal, to_text};
use crate::error::SqlResult;

const SCHEMA: &str = "information_schema";

impl Session {
    /// The catalog this statement works on; with the information schema's tables filled, if it names them.
    pub(crate) fn catalog_for_query(&self) -> SqlResult<Arc<Catalog>> {
        let catalog = self.tablet.catalog();
        if !self.information_schema {
            return Ok(catalog);
        }
        let mut with = (*catalog).clone();
        for (name, listing) in self.information_tables(&catalog) {
            self.put_listing(&mut with, SCHEMA, name, &listing)?;
        }
        Ok(Arc::new(with))
    }

    /// Makes a listing a temporary table, known to the catalog.
    pub(crate) fn put_listing(
        &self,
        catalog: &mut Catalog,
        schema: &str,
        name: &str,
        listing: &Listing,
    ) -> SqlResult<()> {
        let table = listing.as_table(schema, name);
        self.conn
            .execute_batch(&format!("DROP TABLE IF EXISTS temp.{}", table.sqlite()))?;
        for sql in table.create_sqlite() {
            self.conn
                .execute_batch(&sql.replacen("CREATE TABLE", "CREATE TEMP TABLE", 1))?;
        }
        let marks = vec!["?"; table.columns.len()].join(", ");
        let mut insert = self
            .conn
            .prepare(&format!("INSERT INTO temp.{} VALUES ({marks})", table.sqlite()))?;
        for row in &listing.rows {
            insert.execute(params_from_iter(row.iter()))?;
        }
        catalog.put(table);
        Ok(())
    }

    fn information_tables(&self, catalog: &Catalog) -> Vec<(&'static str, Listing)> {
        let tables: Vec<&Arc<Table>> = catalog.schemas.values().flat_map(|s| s.values()).collect();
        vec![
            ("schemata", schemata(catalog)),
            ("tables", tables_list(&tables)),
            ("columns", columns(&tables)),
            ("statistics", statistics(&tables)),
            ("key_column_usage", key_column_usage(&tables)),
            ("table_constraints", table_constraints(&tables)),
            ("referential_constraints", referential_constraints(&tables)),
            ("processlist", self.processlist(true)),
            ("engines", engines()),
            ("character_sets", character_sets()),
            ("collations", collations()),
            ("global_variables", variables(&self.tablet.globals())),
            (
                "session_variables",
                variables(&self.vars.over(&self.tablet.globals())),
            ),
            (
                "views",
                Listing::new(&["TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "VIEW_DEFINITION"]),
            ),
            (
                "triggers",
                Listing::new(&[
                    "TRIGGER_CATALOG",
                    "TRIGGER_SCHEMA",
                    "TRIGGER_NAME",
                    "EVENT_OBJECT_TABLE",
                ]),
            ),
            (
                "routines",
                Listing::new(&["SPECIFIC_NAME", "ROUTINE_SCHEMA", "ROUTINE_NAME", "ROUTINE_TYPE"]),
            ),
            (
                "events",
                Listing::new(&["EVENT_CATALOG", "EVENT_SCHEMA", "EVENT_NAME"]),
            ),
            (
                "partitions",
                Listing::new(&["TABLE_SCHEMA", "TABLE_NAME", "PARTITION_NAME"]),
            ),
        ]
    }
}

fn variables(vars: &super::vars::Variables) -> Listing {
    let mut out = Listing::new(&["VARIABLE_NAME", "VARIABLE_VALUE"]);
    for (name, value) in vars.shown() {
        out.push(row![name.to_uppercase(), value]);
    }
    out
}

fn schemata(catalog: &Catalog) -> Listing {
    let mut out = Listing::new(&[
        "CATALOG_NAME",
        "SCHEMA_NAME",
        "DEFAULT_CHARACTER_SET_NAME",
        "DEFAULT_COLLATION_NAME",
        "SQL_PATH",
    ]);
    for name in catalog.schemas.keys().map(String::as_str).chain([SCHEMA]) {
        out.push(row!["def", name, "utf8mb4", Collation::Ci.name(), Value::Null]);
    }
    out
}

fn tables_list(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "TABLE_TYPE",
        "ENGINE",
        "#VERSION",
        "ROW_FORMAT",
        "#TABLE_ROWS",
        "#AVG_ROW_LENGTH",
        "#DATA_LENGTH",
        "#INDEX_LENGTH",
        "#AUTO_INCREMENT",
        "CREATE_TIME",
        "UPDATE_TIME",
        "TABLE_COLLATION",
        "CREATE_OPTIONS",
        "TABLE_COMMENT",
    ]);
    for t in tables {
        let next = t
            .auto_column()
            .map(|_| t.next_auto.load(std::sync::atomic::Ordering::Relaxed));
        out.push(row![
            "def",
            t.schema.as_str(),
            t.name.as_str(),
            "BASE TABLE",
            "InnoDB",
            10u64,
            "Dynamic",
            0u64,
            0u64,
            0u64,
            0u64,
            next,
            Value::Null,
            Value::Null,
            Collation::Ci.name(),
            "",
            t.comment.as_str(),
        ]);
    }
    out
}

/// `COLUMN_DEFAULT` as MariaDB writes it: an expression, so a text stands in quotes.
pub(crate) fn default_text(c: &Column) -> Option<String> {
    match &c.default {
        Default::Now => Some(now_text(&c.ty)),
        Default::Value(v) => {
            let text = to_text(v, &c.ty).unwrap_or_default();
            Some(match c.ty.class() {
                Class::Int | Class::Decimal | Class::Double => text,
                _ => text_literal(&text),
            })
        }
        Default::None if c.nullable => Some("NULL".to_owned()),
        Default::None => None,
    }
}

fn now_text(ty: &Ty) -> String {
    match ty {
        Ty::DateTime { fsp, .. } if *fsp > 0 => format!("current_timestamp({fsp})"),
        _ => "current_timestamp()".to_owned(),
    }
}

/// EXTRA.
pub(crate) fn extra(c: &Column) -> String {
    if c.auto_increment {
        return "auto_increment".to_owned();
    }
    if c.on_update_now {
        format!("on update {}", now_text(&c.ty))
    } else {
        String::new()
    }
}

fn columns(tables: &[&Arc<Table>]) -> Listing {
    let mut out = Listing::new(&[
        "TABLE_CATALOG",
        "TABLE_SCHEMA",
        "TABLE_NAME",
        "COLUMN_NAME",
        "#ORDINAL_POSITION",
        "COLUMN_DEFAULT",
        "IS_NULLABLE",
        "DATA_TYPE",
        "#CHARACTER_MAXIMUM_LENGTH",
        "#CHARACTER_OCTET_LENGTH",
        "#NUMERIC_PRECISION",
        "#NUMERIC_SCALE",
        "#DATETIME_PRECISION",
        "CHARACTER_SET_NAME",
        "COLLATION_NAME",
        "COLUMN_TYPE",
        "COLUMN_KEY",
        "EXTRA",
        "PRIVILEGES",
        "COLUMN_COMMENT",
        "IS_GENERATED",
        "GENERATION_EXPRESSION",
    ]);
    for t in tables {
        for (i, c) in t.columns.iter().enumerate() {
            let text = matches!(c.ty, Ty::Text { .. } | Ty::Enum(..) | Ty::Json);
            let bytes = matches!(c.ty, Ty::Bytes { .. });
            let chars = match &c.ty {
                Ty::Text {
                    kind: TextKind::Text(n),
                    ..
                } => Some((1u64 << (8 * u64::from(*n))) - 1),
                Ty::Text { .. } | Ty::Enum(..) | Ty::Bytes { .. } => Some(u64::from(c.ty.chars())),
                Ty::Json => Some(u64::from(u32::MAX)),
                _ => None,
            };
            let octets = chars.map(|n| {
                if bytes
                    || matches!(
                        c.ty,
                        Ty::Json
                            | Ty::Text {
                                kind: TextKind::Text(_),
                                ..
                            }
                    )
                {
                    n
                } else {
                    n * 4
                }
            });
            let (precision, scale) = match &c.ty {
                // MariaDB counts an unsigned BIGINT's digits one higher.
                Ty::Int {
                    size: IntSize::Big,
                    unsigned: true,
                    ..
                } => (Some(20), Some(0)),
                Ty::Int { size, unsigned, .. } => (Some(u64::from(size.digits(*unsigned))), Some(0)),
                Ty::Decimal { precision, scale, .. } => {
                    (Some(u64::from(*precision)), Some(u64::from(*scale)))
                }
                Ty::Float => (Some(12), None),
                Ty::Double => (Some(22), None),
                _ => (None, None),
            };
            let fraction = match &c.ty {
                Ty::DateTime { fsp, .. } | Ty::Time { fsp } => Some(u64::from(*fsp)),
                _ => None,
            };
            out.push(row![
                "def",
                t.schema.as_str(),
                t.name.as_str(),
                c.name.as_str(),
                i as u64 + 1,
                default_text(c),
                if c.nullable { "YES" } else { "NO" },
                c.ty.data_type(),
                chars,
                octets,
                precision,
                scale,
                fraction,
                text.then_some("utf8mb4"),
                text.then(|| c.ty.collation().name()),
                c.ty.column_type(),
                t.column_key(i),
                extra(c),
                "select,insert,update,references",
                c.comment.as_str(),
                "NEVER",
                Value::Null,
            ]);
        }
    }
    out
}

fn statistics(tables: &[&Arc<Table>]) -> Listing {
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

fn key_column_usage(tables: &[&Arc<Table>]) -> Listing {
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

fn table_constraints(tables: &[&Arc<Table>]) -> Listing {
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

fn referential_constraints(tables: &[&Arc<Table>]) -> Listing {
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

pub(crate) fn engines() -> Listing {
    let mut out = Listing::new(&["Engine", "Support", "Comment", "Transactions", "XA", "Savepoints"]);
    out.push(row![
        "InnoDB",
        "DEFAULT",
        "Simulated over SQLite",
        "YES",
        "NO",
        "YES"
    ]);
    out
}

pub(crate) fn character_sets() -> Listing {
    let mut out = Listing::new(&[
        "CHARACTER_SET_NAME",
        "DEFAULT_COLLATE_NAME",
        "DESCRIPTION",
        "#MAXLEN",
    ]);
    out.push(row!["utf8mb4", "utf8mb4_general_ci", "UTF-8 Unicode", 4u64]);
    out
}

pub(crate) fn collations() -> Listing {
    let mut out = Listing::new(&[
        "COLLATION_NAME",
        "CHARACTER_SET_NAME",
        "#ID",
        "IS_DEFAULT",
        "IS_COMPILED",
        "#SORTLEN",
    ]);
    for c in [Collation::Ci, Collation::Bin] {
        let default = if c == Collation::Ci { "Yes" } else { "" };
        out.push(row![c.name(), "utf8mb4", u64::from(c.id()), default, "Yes", 1u64]);
    }
    out
}
