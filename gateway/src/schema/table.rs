//! Tables and columns as a tablet declares them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::vindex::ColumnType;

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools)] // four independent facts of a declaration, not a state machine
pub struct ColumnInfo {
    /// Its name, as declared; servers compare column names without case.
    pub name: String,
    /// Its type.
    pub ty: ColumnType,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether a default was declared (an expression counts; the implicit NULL of a nullable column does not).
    pub has_default: bool,
    /// `AUTO_INCREMENT`.
    pub auto_increment: bool,
    /// Part of the primary key.
    pub primary_key: bool,
    /// Computed by the server, virtual or stored.
    pub generated: bool,
    /// Left out of `SELECT *`.
    pub invisible: bool,
}

/// A table or view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    name: String,
    columns: Vec<ColumnInfo>,
    by_name: HashMap<String, usize>,
    view: bool,
    triggers: bool,
}

impl TableInfo {
    /// Puts one together; columns in their declared order.
    #[must_use]
    pub fn new(name: impl Into<String>, columns: Vec<ColumnInfo>, view: bool) -> Self {
        let by_name = columns
            .iter()
            .enumerate()
            .map(|(i, c)| (c.name.to_lowercase(), i))
            .collect();
        Self {
            name: name.into(),
            columns,
            by_name,
            view,
            triggers: false,
        }
    }

    /// The same, with triggers.
    #[must_use]
    pub fn with_triggers(mut self, triggers: bool) -> Self {
        self.triggers = triggers;
        self
    }

    /// Whether writes to it run triggers.
    #[must_use]
    pub fn has_triggers(&self) -> bool {
        self.triggers
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its columns, in their declared order.
    #[must_use]
    pub fn columns(&self) -> &[ColumnInfo] {
        &self.columns
    }

    /// A column, by its name in any case.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&ColumnInfo> {
        self.column_index(name).and_then(|i| self.columns.get(i))
    }

    /// A column's place, from 0, by its name in any case.
    #[must_use]
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.by_name
            .get(name)
            .or_else(|| self.by_name.get(&name.to_lowercase()))
            .copied()
    }

    /// Whether it is a view.
    #[must_use]
    pub fn is_view(&self) -> bool {
        self.view
    }
}

/// All tables of one database of one tablet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DatabaseSchema {
    /// Tables by name.
    pub tables: BTreeMap<String, Arc<TableInfo>>,
}
