//! Gives a table a new shape, its rows included.

use crate::engine::catalog::{Catalog, PRIMARY, Table};
use crate::engine::ddl_table;
use crate::engine::session::{Done, Session};
use crate::engine::value::{self, Target, Value, quote};
use crate::error::{SqlError, SqlResult};
use rusqlite::params_from_iter;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What `SQLite` says while a table is being made, in the server's words.
pub(super) fn table_error(table: &Table, e: rusqlite::Error) -> SqlError {
    if let rusqlite::Error::SqliteFailure(f, text) = &e
        && f.code == rusqlite::ErrorCode::ConstraintViolation
    {
        let text = text.as_deref().unwrap_or("");
        if text.starts_with("UNIQUE") {
            let key = table.indexes.iter().find(|i| {
                i.unique
                    && i.columns
                        .iter()
                        .all(|c| text.contains(&format!(".{}", table.columns[*c].name)))
            });
            return SqlError::duplicate("", key.map_or(PRIMARY, |k| &k.name));
        }
    }
    e.into()
}

impl Session {
    pub(super) fn make(&self, table: &Table) -> SqlResult<()> {
        for sql in table.create_sqlite() {
            self.conn.execute_batch(&sql).map_err(|e| table_error(table, e))?;
        }
        Ok(())
    }

    /// Gives a table its new shape, rows included. Each new column knows which old one its values come from.
    pub(super) fn rebuild(&mut self, old: &Arc<Table>, new: Table, catalog: &mut Catalog) -> SqlResult<Done> {
        let renamed = (&old.schema, &old.name) != (&new.schema, &new.name);
        if renamed && !catalog.children(&old.schema, &old.name).is_empty() {
            return Err(SqlError::unsupported(
                "renaming a table that foreign keys refer to",
            ));
        }
        let parked = quote("shardgate.rebuild");
        self.conn.execute_batch("PRAGMA legacy_alter_table=ON")?;
        self.conn
            .execute_batch(&format!("ALTER TABLE {} RENAME TO {parked}", old.sqlite()))?;
        for index in &old.indexes {
            self.conn
                .execute_batch(&format!("DROP INDEX IF EXISTS {}", old.index_sqlite(&index.name)))?;
        }
        self.make(&new)?;
        let count = self.copy_rows(old, &new, &parked)?;
        self.conn.execute_batch(&format!("DROP TABLE {parked}"))?;
        if let Some(schema) = catalog.schemas.get_mut(&old.schema) {
            schema.remove(&old.name);
        }
        catalog.put(new);
        Ok(Done {
            affected: count,
            insert_id: 0,
            info: format!("Records: {count}  Duplicates: 0  Warnings: 0"),
        })
    }

    pub(super) fn copy_rows(&mut self, old: &Table, new: &Table, parked: &str) -> SqlResult<u64> {
        let strict = self.strict();
        let marks = vec!["?"; new.columns.len()].join(", ");
        let insert = format!("INSERT INTO {} VALUES ({marks})", new.sqlite());
        let names: Vec<String> = old.columns.iter().map(|c| quote(&c.name)).collect();
        let select = format!("SELECT {} FROM {parked}", names.join(", "));
        let now = self.now;
        let mut reader = self.conn.prepare(&select)?;
        let mut writer = self.conn.prepare(&insert)?;
        let mut rows = reader.query([])?;
        let mut count = 0;
        let mut next_auto = 1u64;
        while let Some(row) = rows.next()? {
            count += 1;
            let mut values = Vec::with_capacity(new.columns.len());
            for column in &new.columns {
                let target = Target {
                    column: &column.name,
                    row: count,
                    strict,
                };
                let mut value = match column.from {
                    Some(i) => {
                        let ty = &old.columns[i].ty;
                        value::store(&Value::from_ref(row.get_ref(i)?, ty), ty, &column.ty, target)?
                    }
                    None => ddl_table::fill(column, now),
                };
                if column.auto_increment {
                    if value.is_null() {
                        value = Value::from_i128(i128::from(next_auto)).unwrap_or(Value::Null);
                    }
                    let given = value.as_i128().and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
                    next_auto = next_auto.max(given.saturating_add(1));
                }
                if value.is_null() && !column.nullable {
                    return Err(SqlError::new(
                        1265,
                        *b"01000",
                        format!("Data truncated for column '{}' at row {count}", column.name),
                    ));
                }
                values.push(value);
            }
            writer
                .execute(params_from_iter(values.iter()))
                .map_err(|e| table_error(new, e))?;
        }
        new.next_auto.fetch_max(next_auto, Ordering::Relaxed);
        Ok(count as u64)
    }
}
