//! INSERT, REPLACE, UPDATE, DELETE.
//!
//! Values are computed by `SQLite`, converted and checked here by the column's type, and written row by row: that is
//! what gives the server's errors (which key, which row), its counts (found, changed) and its partial effects.

mod conflict;
mod insert;
mod update;
mod writer;

use crate::engine::catalog::{Catalog, Default, Table};
use crate::engine::parse::Parsed;
use crate::engine::session::{Done, Session};
use crate::engine::translate::qualified;
use crate::engine::types::Ty;
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use crate::repl::Event;
use sqlparser::ast::{ObjectName, Statement};
use std::collections::HashMap;
use std::sync::Arc;

/// The most rows an INSERT ... SELECT or an UPDATE holds in memory.
const MAX_HELD: usize = 4_000_000;

impl Session {
    /// A statement that writes rows. The write transaction is open.
    pub(super) fn write(&mut self, parsed: &Parsed) -> SqlResult<Done> {
        let tree = parsed.tree()?;
        let event = self.event(parsed);
        self.shared.reseed(event.seed);
        let done = self.atomically(|s| match &tree {
            Statement::Insert(insert) => s.insert(insert),
            Statement::Update(update) => s.update(update),
            Statement::Delete(delete) => s.delete(delete),
            other => Err(SqlError::unsupported(other)),
        })?;
        self.forced_insert_id = None;
        let insert_id = (done.insert_id != 0).then_some(done.insert_id);
        self.pending.push(Event { insert_id, ..event });
        Ok(done)
    }

    /// What the replication log keeps of a statement.
    pub(super) fn event(&mut self, parsed: &Parsed) -> Event {
        Event {
            text: parsed.text.clone().into(),
            database: self.db.clone(),
            now: self.now,
            seed: self.replay_seed.take().unwrap_or_else(|| self.shared.draw()),
            insert_id: None,
            last_insert_id: self.last_insert_id,
            sql_mode: self.vars.text("sql_mode").to_owned(),
            foreign_keys: self.vars.on("foreign_key_checks"),
            user_vars: if parsed.class.uses_user_variables {
                self.user_vars.clone()
            } else {
                HashMap::new()
            },
        }
    }

    fn target(&self, name: &ObjectName) -> SqlResult<(Arc<Catalog>, Arc<Table>)> {
        let catalog = self.catalog_for_query()?;
        let (schema, table) = qualified(name, self.db.as_deref())?;
        if schema.eq_ignore_ascii_case("information_schema") {
            return Err(SqlError::new(
                1044,
                *b"42000",
                format!(
                    "Access denied for user '{}' to database 'information_schema'",
                    self.account
                ),
            ));
        }
        let table = Arc::clone(catalog.table(&schema, &table)?);
        Ok((catalog, table))
    }
}

/// The statement's time in a column's form.
fn now_value(session: &Session, ty: &Ty) -> Value {
    match ty {
        Ty::DateTime { fsp, .. } => {
            let unit = 10u32.pow(6 - u32::from(*fsp));
            let now = crate::engine::temporal::DateTime {
                micro: session.now.micro / unit * unit,
                ..session.now
            };
            Value::text(now.text(*fsp))
        }
        _ => Value::text(session.now.date_text()),
    }
}

/// What a column gets when no value is given.
fn default_value(session: &mut Session, table: &Table, at: usize, strict: bool) -> SqlResult<Value> {
    let column = &table.columns[at];
    match &column.default {
        Default::Value(v) => Ok(v.clone()),
        Default::Now => Ok(now_value(session, &column.ty)),
        Default::None if column.nullable || column.auto_increment => Ok(Value::Null),
        Default::None if strict => Err(SqlError::no_default(&column.name)),
        Default::None => {
            session.warn(
                "Warning",
                1364,
                format!("Field '{}' doesn't have a default value", column.name),
            );
            Ok(implicit_default(&column.ty))
        }
    }
}

/// The value that non-strict mode puts where none is given.
fn implicit_default(ty: &Ty) -> Value {
    match ty {
        Ty::Int { .. } | Ty::Year | Ty::Time { .. } => Value::Int(0),
        Ty::Decimal { scale, .. } => Value::text(
            crate::engine::decimal::Decimal::from_i128(0)
                .rounded(*scale)
                .to_string(),
        ),
        Ty::Float | Ty::Double => Value::Double(0.0),
        Ty::Bytes { .. } => Value::Bytes(Vec::new()),
        Ty::Enum(values, _) => Value::text(values.first().cloned().unwrap_or_default()),
        Ty::Date => Value::text("0000-00-00"),
        Ty::DateTime { .. } => Value::text("0000-00-00 00:00:00"),
        Ty::Text { .. } | Ty::Json | Ty::Null => Value::text(""),
    }
}
