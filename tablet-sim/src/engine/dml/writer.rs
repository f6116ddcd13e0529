//! Writes rows into one table: defaults, `AUTO_INCREMENT`, and what to do with a row that a unique key refuses.

use super::default_value;
use super::implicit_default;
use super::update::assignments;
use super::update::select_for_update;
use super::update::table_scope;
use crate::engine::catalog::{Catalog, Default, Table};
use crate::engine::session::Session;
use crate::engine::translate::{Facts, Source, Translator, Tx};
use crate::engine::types::Ty;
use crate::engine::value::{self, Target, Value, quote};
use crate::error::{SqlError, SqlResult};
use rusqlite::{ErrorCode, params_from_iter};
use sqlparser::ast::Assignment;
use std::sync::atomic::Ordering;

/// What an INSERT does with a row that a unique key refuses.
pub(super) enum OnDuplicate {
    Fail,
    Ignore,
    Replace,
    Update(Vec<Assignment>, Option<String>),
}

/// Writes rows into one table.
pub(crate) struct Writer<'t> {
    table: &'t Table,
    on_duplicate: OnDuplicate,
    strict: bool,
    sql: String,
    pub(super) affected: u64,
    pub(super) count: u64,
    pub(super) duplicates: u64,
    pub(super) first_generated: Option<u64>,
    pub(super) explicit: Option<u64>,
}

impl<'t> Writer<'t> {
    pub(super) fn new(table: &'t Table, on_duplicate: OnDuplicate, strict: bool) -> Self {
        let marks = vec!["?"; table.columns.len()].join(", ");
        Self {
            table,
            on_duplicate,
            strict,
            sql: format!("INSERT INTO {} VALUES ({marks})", table.sqlite()),
            affected: 0,
            count: 0,
            duplicates: 0,
            first_generated: None,
            explicit: None,
        }
    }

    /// The whole row in stored form, defaults and `AUTO_INCREMENT` filled in.
    fn complete(
        &mut self,
        session: &mut Session,
        columns: &[usize],
        row: Vec<Option<(Value, Ty)>>,
        number: usize,
    ) -> SqlResult<Vec<Value>> {
        let table = self.table;
        let mut out: Vec<Option<Value>> = vec![None; table.columns.len()];
        for (at, value) in columns.iter().zip(row) {
            let Some((value, ty)) = value else { continue };
            let column = &table.columns[*at];
            let target = Target {
                column: &column.name,
                row: number,
                strict: self.strict,
            };
            let stored = value::store(&value, &ty, &column.ty, target)?;
            if stored.is_null() && !column.nullable && !column.auto_increment {
                if matches!(column.ty, Ty::DateTime { timestamp: true, .. }) && column.default == Default::Now
                {
                    continue;
                }
                if self.strict
                    || self.count == 0 && number == 1 && matches!(self.on_duplicate, OnDuplicate::Fail)
                {
                    return Err(SqlError::not_null(&column.name));
                }
                session.warn(
                    "Warning",
                    1048,
                    format!("Column '{}' cannot be null", column.name),
                );
                out[*at] = Some(implicit_default(&column.ty));
                continue;
            }
            out[*at] = Some(stored);
        }
        let mut full = Vec::with_capacity(out.len());
        for (at, value) in out.into_iter().enumerate() {
            let value = match value {
                Some(v) => v,
                None => default_value(session, table, at, self.strict)?,
            };
            full.push(if table.columns[at].auto_increment {
                self.auto(session, at, value)?
            } else {
                value
            });
        }
        Ok(full)
    }

    /// NULL and 0 take the next number; a given number moves the counter past itself.
    fn auto(&mut self, session: &mut Session, at: usize, value: Value) -> SqlResult<Value> {
        let given = value.as_i128().unwrap_or(0);
        let zero_counts = session.vars.text("sql_mode").contains("NO_AUTO_VALUE_ON_ZERO");
        let counter = &self.table.next_auto;
        if !value.is_null() && (given != 0 || zero_counts) {
            if let Ok(n) = u64::try_from(given) {
                counter.fetch_max(n.saturating_add(1), Ordering::Relaxed);
                self.explicit = Some(n);
            }
            return Ok(value);
        }
        if let (None, Some(forced)) = (self.first_generated, session.forced_insert_id) {
            counter.store(forced, Ordering::Relaxed);
        }
        let id = counter.load(Ordering::Relaxed).max(1);
        let column = &self.table.columns[at];
        let fits = match &column.ty {
            Ty::Int { size, unsigned, .. } => i128::from(id) <= size.range(*unsigned).1,
            _ => true,
        };
        if !fits {
            return Err(SqlError::new(
                167,
                *b"22003",
                format!("Out of range value for column '{}' at row 1", column.name),
            ));
        }
        counter.store(id.saturating_add(1), Ordering::Relaxed);
        self.first_generated.get_or_insert(id);
        Ok(Value::from_i128(i128::from(id)).unwrap_or(Value::Null))
    }

    fn try_insert(&self, session: &Session, row: &[Value]) -> rusqlite::Result<usize> {
        session
            .conn
            .prepare_cached(&self.sql)?
            .execute(params_from_iter(row.iter()))
    }

    pub(super) fn put(
        &mut self,
        session: &mut Session,
        catalog: &Catalog,
        columns: &[usize],
        row: Vec<Option<(Value, Ty)>>,
        number: usize,
    ) -> SqlResult<()> {
        let before = (self.first_generated, self.table.next_auto.load(Ordering::Relaxed));
        let row = self.complete(session, columns, row, number)?;
        self.count += 1;
        // A row that replaces more rows than there are unique keys would be a fault of ours.
        for _ in 0..=self.table.indexes.len() {
            let Err(e) = self.try_insert(session, &row) else {
                self.affected += 1;
                return Ok(());
            };
            let values: Vec<Option<Value>> = row.iter().cloned().map(Some).collect();
            let hit = match &e {
                rusqlite::Error::SqliteFailure(f, _) if f.code == ErrorCode::ConstraintViolation => {
                    session.conflict(self.table, &values, None)?
                }
                _ => None,
            };
            let Some((rowid, error)) = hit else {
                return Err(session.explain(catalog, self.table, &values, None, e));
            };
            match &self.on_duplicate {
                OnDuplicate::Fail => return Err(error),
                OnDuplicate::Ignore => {
                    self.duplicates += 1;
                    self.first_generated = before.0;
                    session.warn("Warning", error.code, error.message.into_owned());
                    return Ok(());
                }
                OnDuplicate::Replace => {
                    self.duplicates += 1;
                    let sql = format!(
                        "DELETE FROM {} WHERE {} = ?",
                        self.table.sqlite(),
                        self.table.rowid_name()
                    );
                    if let Err(e) = session.conn.execute(&sql, [&rowid]) {
                        return Err(session.explain(catalog, self.table, &[], None, e));
                    }
                    self.affected += 1;
                }
                OnDuplicate::Update(list, alias) => {
                    self.duplicates += 1;
                    self.first_generated = before.0;
                    let (list, alias) = (list.clone(), alias.clone());
                    return self.update_instead(session, catalog, &rowid, &row, (&list, alias.as_deref()));
                }
            }
        }
        Err(SqlError::internal("a row that cannot be replaced"))
    }

    /// ON DUPLICATE KEY UPDATE of the row in the way.
    fn update_instead(
        &mut self,
        session: &mut Session,
        catalog: &Catalog,
        rowid: &Value,
        row: &[Value],
        (list, alias): (&[Assignment], Option<&str>),
    ) -> SqlResult<()> {
        let table = self.table;
        let inserted: Vec<(String, Tx)> = table
            .columns
            .iter()
            .zip(row)
            .map(|(c, v)| {
                (
                    c.name.clone(),
                    Tx {
                        konst: None,
                        ..Tx::literal(v.clone(), c.ty.clone())
                    },
                )
            })
            .collect();
        let mut translator = Translator::new(catalog, &*session as &dyn Facts);
        let mut scope = table_scope(table, &table.name);
        if let Some(alias) = alias {
            let columns = inserted
                .iter()
                .map(|(name, tx)| crate::engine::translate::SourceColumn {
                    name: name.clone(),
                    tx: tx.clone(),
                    merged: true,
                })
                .collect();
            let alias = alias.trim_matches('`').to_owned();
            scope.sources.push(Source {
                schema: String::new(),
                alias,
                columns,
            });
        }
        translator.scopes.push(scope);
        translator.inserted = Some(inserted);
        let set = assignments(&mut translator, table, list)?;
        let tail = format!(
            " WHERE {}.{} = {}",
            quote(&table.name),
            table.rowid_name(),
            rowid.literal()
        );
        let (sql, types) = select_for_update(table, &table.name, &set, &tail);
        let Some(found) = session.collect(&sql, &types)?.into_iter().next() else {
            return Err(SqlError::internal("a row in the way that is not there"));
        };
        let number = usize::try_from(self.count).unwrap_or(usize::MAX);
        if session.update_row(catalog, table, &set, found, number)? {
            self.affected += 2;
        } else if session.count_found {
            self.affected += 1;
        }
        if let Some(at) = table.auto_column() {
            let sql = format!(
                "SELECT {} FROM {} WHERE {} = {}",
                quote(&table.columns[at].name),
                table.sqlite(),
                table.rowid_name(),
                rowid.literal()
            );
            let id = session.collect(&sql, std::slice::from_ref(&table.columns[at].ty))?;
            if let Some(id) = id
                .into_iter()
                .flatten()
                .next()
                .and_then(|v| v.as_i128())
                .and_then(|v| u64::try_from(v).ok())
            {
                self.explicit = Some(id);
            }
        }
        Ok(())
    }
}
