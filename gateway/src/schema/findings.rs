//! What an operator should know of a keyspace's schema: nothing here stops the gateway, all of it surprises somebody
//! who was not told.

use std::fmt;

use super::snapshot::{KeyspaceSchema, Routing, Table, TableVindex};
use crate::vindex::Safety;

/// Something odd about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The vschema has a table that no tablet has.
    MissingTable(String),
    /// The table has no such column, so its vindex can never be used and rows cannot be inserted.
    MissingColumn {
        /// The table.
        table: String,
        /// The column.
        column: String,
    },
    /// Equalities on the column go to all shards, whatever the value.
    NeverRoutes {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The vindex's type.
        vindex: &'static str,
        /// Why.
        why: &'static str,
    },
    /// The tablets of a sharded keyspace have a table of which nothing says how its rows are divided.
    Undivided(String),
}

impl Finding {
    /// Whether rows of the table cannot be routed or placed at all until it is mended.
    #[must_use]
    pub fn is_error(&self) -> bool {
        match self {
            Self::MissingColumn { .. } => true,
            Self::MissingTable(_) | Self::NeverRoutes { .. } | Self::Undivided(_) => false,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingTable(table) => write!(f, "table `{table}` is in the vschema and on no tablet"),
            Self::MissingColumn { table, column } => {
                write!(
                    f,
                    "table `{table}` has no column `{column}`, by which the vschema divides it"
                )
            }
            Self::NeverRoutes {
                table,
                column,
                vindex,
                why,
            } => {
                write!(
                    f,
                    "`{table}`.`{column}` under {vindex}: every query goes to all shards, for {why}"
                )
            }
            Self::Undivided(table) => {
                write!(
                    f,
                    "table `{table}` is on the tablets of a sharded keyspace, and nothing says how it is divided"
                )
            }
        }
    }
}

impl KeyspaceSchema {
    /// All findings, by table. Call it only once the tables were learned: before, every table is missing.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut tables: Vec<_> = self.tables().collect();
        tables.sort_by(|a, b| a.name.cmp(&b.name));
        tables.into_iter().flat_map(|table| of_table(table)).collect()
    }
}

fn of_table(table: &Table) -> Vec<Finding> {
    let name = || table.name.clone();
    if table.info.is_none() {
        return vec![Finding::MissingTable(name())];
    }
    match &table.routing {
        Routing::Unknown => vec![Finding::Undivided(name())],
        Routing::Sharded(vindexes) => vindexes.iter().filter_map(|v| of_vindex(table, v)).collect(),
        Routing::Reference { .. } | Routing::Pinned(_) | Routing::Unsharded => Vec::new(),
    }
}

fn of_vindex(table: &Table, vindex: &TableVindex) -> Option<Finding> {
    let (name, column) = (table.name.clone(), vindex.column.clone());
    let Some(ty) = &vindex.ty else {
        return Some(Finding::MissingColumn { table: name, column });
    };
    match vindex.vindex.safety(ty) {
        Safety::Always | Safety::ByValue => None,
        Safety::Never(why) => Some(Finding::NeverRoutes {
            table: name,
            column,
            vindex: vindex.vindex.kind(),
            why,
        }),
    }
}
