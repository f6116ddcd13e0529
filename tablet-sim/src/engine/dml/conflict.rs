//! What `SQLite` refused, in the server's words: which key, which constraint.

use crate::engine::catalog::{Catalog, PRIMARY, Table};
use crate::engine::session::Session;
use crate::engine::types::Ty;
use crate::engine::value::{self, Value, quote};
use crate::error::{SqlError, SqlResult};
use rusqlite::{ErrorCode, params_from_iter};

pub(super) fn foreign_key_error(catalog: &Catalog, table: &Table, writes_row: bool) -> SqlError {
    let child = |schema: &str, name: &str, key: &crate::engine::catalog::ForeignKey| {
        format!(
            "a foreign key constraint fails (`{schema}`.`{name}`, {})",
            key.describe(schema)
        )
    };
    if writes_row && let Some(key) = table.foreign_keys.first() {
        return SqlError::new(
            1452,
            *b"23000",
            format!(
                "Cannot add or update a child row: {}",
                child(&table.schema, &table.name, key)
            ),
        );
    }
    match catalog.children(&table.schema, &table.name).first() {
        Some((other, key)) => SqlError::new(
            1451,
            *b"23000",
            format!(
                "Cannot delete or update a parent row: {}",
                child(&other.schema, &other.name, key)
            ),
        ),
        None => SqlError::new(
            1451,
            *b"23000",
            "Cannot delete or update a parent row: a foreign key constraint fails",
        ),
    }
}

impl Session {
    /// The server's error for what `SQLite` refused: which key, which constraint. `row` holds the values written,
    /// where known; `own` is the row itself, which does not collide with itself.
    pub(super) fn explain(
        &self,
        catalog: &Catalog,
        table: &Table,
        row: &[Option<Value>],
        own: Option<&Value>,
        e: rusqlite::Error,
    ) -> SqlError {
        let rusqlite::Error::SqliteFailure(failure, text) = &e else {
            return e.into();
        };
        if failure.code != ErrorCode::ConstraintViolation {
            return e.into();
        }
        let text = text.as_deref().unwrap_or("");
        if text.starts_with("FOREIGN KEY") {
            return foreign_key_error(catalog, table, !row.is_empty());
        }
        if let Some(name) = text.strip_prefix("CHECK constraint failed: ") {
            return SqlError::new(
                4025,
                *b"23000",
                format!(
                    "CONSTRAINT `{name}` failed for `{}`.`{}`",
                    table.schema, table.name
                ),
            );
        }
        match self.conflict(table, row, own) {
            Ok(Some((_, error))) => error,
            _ => e.into(),
        }
    }

    /// The first row that collides with these values on a unique key, and the error that says so.
    pub(super) fn conflict(
        &self,
        table: &Table,
        row: &[Option<Value>],
        own: Option<&Value>,
    ) -> SqlResult<Option<(Value, SqlError)>> {
        let mut unique: Vec<_> = table.indexes.iter().filter(|i| i.unique).collect();
        unique.sort_by_key(|i| i.name != PRIMARY);
        for index in unique {
            // A column the statement does not write keeps the row's own value.
            let mut conditions = Vec::new();
            let mut bound: Vec<Value> = Vec::new();
            for at in &index.columns {
                let name = quote(&table.columns[*at].name);
                match (row.get(*at).and_then(Option::as_ref), own) {
                    (Some(value), _) => {
                        conditions.push(format!("{name} = ?"));
                        bound.push(value.clone());
                    }
                    (None, Some(own)) => {
                        conditions.push(format!(
                            "{name} = (SELECT {name} FROM {} WHERE {} = ?)",
                            table.sqlite(),
                            table.rowid_name()
                        ));
                        bound.push(own.clone());
                    }
                    (None, None) => return Ok(None),
                }
            }
            if let Some(own) = own {
                conditions.push(format!("{} <> ?", table.rowid_name()));
                bound.push(own.clone());
            }
            let names: Vec<String> = index
                .columns
                .iter()
                .map(|at| quote(&table.columns[*at].name))
                .collect();
            let sql = format!(
                "SELECT {}, {} FROM {} WHERE {} LIMIT 1",
                table.rowid_name(),
                names.join(", "),
                table.sqlite(),
                conditions.join(" AND ")
            );
            let mut statement = self.conn.prepare_cached(&sql)?;
            let mut found = statement.query(params_from_iter(bound.iter()))?;
            if let Some(hit) = found.next()? {
                let rowid = Value::from_ref(hit.get_ref(0)?, &Ty::BIGINT);
                let mut shown = Vec::new();
                for at in &index.columns {
                    let ty = &table.columns[*at].ty;
                    let written = row
                        .get(*at)
                        .and_then(Option::as_ref)
                        .and_then(|v| value::to_text(v, ty));
                    shown.push(written.unwrap_or_default());
                }
                return Ok(Some((rowid, SqlError::duplicate(&shown.join("-"), &index.name))));
            }
        }
        Ok(None)
    }
}
