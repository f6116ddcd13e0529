//! The information schema: made from the catalog, whenever a statement names it, as temporary tables of the session.

mod fixed;
mod keys;
mod tables;

use std::sync::Arc;

use rusqlite::params_from_iter;

pub(crate) use fixed::{character_sets, collations, engines};
use keys::{key_column_usage, referential_constraints, statistics, table_constraints};
use tables::{columns, tables_list};
pub(crate) use tables::{default_text, extra};

use super::catalog::{Catalog, Table};
use super::collate::Collation;
use super::listing::{Listing, row};
use super::session::Session;
use super::value::Value;
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
