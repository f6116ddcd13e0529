//! What the tablet knows about its databases and tables: the `MySQL` side of the schema.
//!
//! `SQLite` holds the rows in tables named `database.table`; names, types, defaults, keys and comments as a client
//! sees them live here. A catalog is immutable: a statement works on the one it began with, DDL publishes the next.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use super::types::{IntSize, Ty, flag};
use super::value::{Value, quote};
use crate::error::{SqlError, SqlResult};

/// All databases of a tablet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    pub(crate) schemas: BTreeMap<String, BTreeMap<String, Arc<Table>>>,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) schema: String,
    pub(crate) name: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) indexes: Vec<Index>,
    pub(crate) foreign_keys: Vec<ForeignKey>,
    pub(crate) checks: Vec<Check>,
    pub(crate) comment: String,
    /// The next `AUTO_INCREMENT` value. Counts on through rollbacks, as `InnoDB`'s does.
    pub(crate) next_auto: Arc<AtomicU64>,
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    pub(crate) nullable: bool,
    pub(crate) default: Default,
    pub(crate) auto_increment: bool,
    pub(crate) on_update_now: bool,
    /// While a table is given a new shape: which column of the old one this one's rows come from. In a table of the
    /// catalog it is the column itself.
    pub(crate) from: Option<usize>,
    pub(crate) comment: String,
}

/// A column's DEFAULT.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Default {
    /// No clause: NULL if the column may be NULL, else a value must be given.
    None,
    /// A constant, in its stored form.
    Value(Value),
    /// `CURRENT_TIMESTAMP`.
    Now,
}

/// An index.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    /// `PRIMARY` for the primary key.
    pub(crate) name: String,
    pub(crate) unique: bool,
    /// Positions in the table's columns.
    pub(crate) columns: Vec<usize>,
}

/// A foreign key.
#[derive(Clone, Debug)]
pub(crate) struct ForeignKey {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) parent_schema: String,
    pub(crate) parent: String,
    pub(crate) parent_columns: Vec<String>,
    pub(crate) on_delete: Option<&'static str>,
    pub(crate) on_update: Option<&'static str>,
}

/// A CHECK constraint.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) name: String,
    /// As written.
    pub(crate) text: String,
    /// In `SQLite`'s language.
    pub(crate) sql: String,
}

pub(crate) const PRIMARY: &str = "PRIMARY";

impl Catalog {
    pub(crate) fn table(&self, schema: &str, name: &str) -> SqlResult<&Arc<Table>> {
        self.schemas
            .get(schema)
            .ok_or_else(|| SqlError::unknown_database(schema))?
            .get(name)
            .ok_or_else(|| SqlError::no_table(schema, name))
    }

    pub(crate) fn put(&mut self, mut table: Table) {
        for (at, column) in table.columns.iter_mut().enumerate() {
            column.from = Some(at);
        }
        let schema = self.schemas.entry(table.schema.clone()).or_default();
        schema.insert(table.name.clone(), Arc::new(table));
    }

    /// Foreign keys of other tables that point at this one.
    pub(crate) fn children(&self, schema: &str, name: &str) -> Vec<(Arc<Table>, ForeignKey)> {
        let mut out = Vec::new();
        for table in self.schemas.values().flat_map(BTreeMap::values) {
            for key in &table.foreign_keys {
                if key.parent_schema == schema && key.parent == name {
                    out.push((Arc::clone(table), key.clone()));
                }
            }
        }
        out
    }
}

impl Table {
    /// The name of the `SQLite` table, quoted.
    pub(crate) fn sqlite(&self) -> String {
        quote(&format!("{}.{}", self.schema, self.name))
    }

    pub(crate) fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns
            .iter()
            .enumerate()
            .find(|(_, c)| c.name.eq_ignore_ascii_case(name))
    }

    pub(crate) fn primary(&self) -> Option<&Index> {
        self.indexes.iter().find(|i| i.name == PRIMARY)
    }

    pub(crate) fn auto_column(&self) -> Option<usize> {
        self.columns.iter().position(|c| c.auto_increment)
    }

    /// The column that is `SQLite`'s rowid: a lone integer key whose every value is an INTEGER there.
    pub(crate) fn rowid_column(&self) -> Option<usize> {
        let [only] = self.primary()?.columns.as_slice() else {
            return None;
        };
        match self.columns.get(*only)?.ty {
            Ty::Int {
                size: IntSize::Big,
                unsigned: true,
                ..
            } => None,
            Ty::Int { .. } => Some(*only),
            _ => None,
        }
    }

    /// A name for the rowid that no column hides.
    pub(crate) fn rowid_name(&self) -> &'static str {
        ["_rowid_", "rowid", "oid"]
            .into_iter()
            .find(|n| self.column(n).is_none())
            .unwrap_or("_rowid_")
    }

    /// `PRI`, `UNI`, `MUL` or nothing, as `COLUMN_KEY` says.
    pub(crate) fn column_key(&self, at: usize) -> &'static str {
        if self.primary().is_some_and(|p| p.columns.contains(&at)) {
            return "PRI";
        }
        let leads = |unique: bool| {
            self.indexes.iter().any(|i| {
                i.columns.first() == Some(&at) && i.unique == unique && (!unique || i.columns.len() == 1)
            })
        };
        if leads(true) {
            "UNI"
        } else if self.indexes.iter().any(|i| i.columns.first() == Some(&at)) {
            "MUL"
        } else {
            ""
        }
    }

    /// The protocol's flags of a column.
    pub(crate) fn flags(&self, at: usize) -> u16 {
        let Some(column) = self.columns.get(at) else {
            return 0;
        };
        let mut flags = column.ty.flags();
        if matches!(
            column.ty,
            Ty::Int { .. } | Ty::Decimal { .. } | Ty::Float | Ty::Double
        ) {
            // Servers mark computed numbers as binary, stored ones not.
            flags &= !flag::BINARY;
        }
        if matches!(column.ty, Ty::DateTime { timestamp: true, .. }) {
            flags |= flag::UNSIGNED;
        }
        if !column.nullable {
            flags |= flag::NOT_NULL;
            if column.default == Default::None && !column.auto_increment {
                flags |= flag::NO_DEFAULT_VALUE;
            }
        }
        flags |= match self.column_key(at) {
            "PRI" => flag::PRI_KEY,
            "UNI" => flag::UNIQUE_KEY,
            "MUL" => flag::MULTIPLE_KEY,
            _ => 0,
        };
        if self.indexes.iter().any(|i| i.columns.contains(&at)) {
            flags |= flag::PART_KEY;
        }
        if column.auto_increment {
            flags |= flag::AUTO_INCREMENT;
        }
        if column.on_update_now {
            flags |= flag::ON_UPDATE_NOW;
        }
        if matches!(column.ty, Ty::DateTime { timestamp: true, .. }) && column.default == Default::Now {
            flags |= flag::TIMESTAMP;
        }
        flags
    }

    /// The statements that make the table in `SQLite`.
    pub(crate) fn create_sqlite(&self) -> Vec<String> {
        let rowid = self.rowid_column();
        let mut parts: Vec<String> = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let mut part = quote(&column.name);
            // Without a declared type SQLite converts nothing by itself.
            if Some(at) == rowid {
                part.push_str(" INTEGER PRIMARY KEY");
            } else if let Some(collation) = column.ty.sqlite_collation() {
                part.push_str(" COLLATE ");
                part.push_str(collation);
            }
            parts.push(part);
        }
        for key in &self.foreign_keys {
            parts.push(key.sqlite());
        }
        for check in &self.checks {
            parts.push(format!("CONSTRAINT {} CHECK ({})", quote(&check.name), check.sql));
        }
        let mut out = vec![format!("CREATE TABLE {} ({})", self.sqlite(), parts.join(", "))];
        for index in &self.indexes {
            if index.name == PRIMARY && rowid.is_some() {
                continue;
            }
            let columns: Vec<String> = index
                .columns
                .iter()
                .map(|c| quote(&self.columns[*c].name))
                .collect();
            out.push(format!(
                "CREATE {}INDEX {} ON {} ({})",
                if index.unique { "UNIQUE " } else { "" },
                self.index_sqlite(&index.name),
                self.sqlite(),
                columns.join(", ")
            ));
        }
        out
    }

    /// The name of an index in `SQLite`, quoted.
    pub(crate) fn index_sqlite(&self, index: &str) -> String {
        quote(&format!("{}.{}.{index}", self.schema, self.name))
    }
}

impl ForeignKey {
    fn sqlite(&self) -> String {
        let list = |names: &[String]| names.iter().map(|n| quote(n)).collect::<Vec<_>>().join(", ");
        let mut out = format!(
            "FOREIGN KEY ({}) REFERENCES {} ({})",
            list(&self.columns),
            quote(&format!("{}.{}", self.parent_schema, self.parent)),
            list(&self.parent_columns)
        );
        if let Some(action) = self.on_delete {
            out.push_str(" ON DELETE ");
            out.push_str(action);
        }
        if let Some(action) = self.on_update {
            out.push_str(" ON UPDATE ");
            out.push_str(action);
        }
        out
    }

    /// `CONSTRAINT ...` as SHOW CREATE TABLE and errors 1451, 1452 spell it.
    pub(crate) fn describe(&self, child_schema: &str) -> String {
        let list = |names: &[String]| {
            names
                .iter()
                .map(|n| format!("`{n}`"))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let parent = if self.parent_schema == child_schema {
            format!("`{}`", self.parent)
        } else {
            format!("`{}`.`{}`", self.parent_schema, self.parent)
        };
        let mut out = format!(
            "CONSTRAINT `{}` FOREIGN KEY ({}) REFERENCES {parent} ({})",
            self.name,
            list(&self.columns),
            list(&self.parent_columns)
        );
        if let Some(action) = self.on_delete {
            out.push_str(" ON DELETE ");
            out.push_str(action);
        }
        if let Some(action) = self.on_update {
            out.push_str(" ON UPDATE ");
            out.push_str(action);
        }
        out
    }
}
