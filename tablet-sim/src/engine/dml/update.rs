//! UPDATE and DELETE, row by row.

use super::MAX_HELD;
use super::default_value;
use super::now_value;
use crate::engine::catalog::{Catalog, Table};
use crate::engine::session::{Done, Session};
use crate::engine::translate::{Facts, Scope, Source, Translator, Tx, cast, compare, name_parts};
use crate::engine::types::Ty;
use crate::engine::value::{self, Target, Value, quote};
use crate::error::{SqlError, SqlResult};
use rusqlite::params_from_iter;
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, ObjectName, OrderByExpr, TableFactor,
    TableWithJoins, Update,
};

/// The one table of an UPDATE or DELETE, and its alias.
pub(super) fn single_table(item: &TableWithJoins) -> SqlResult<(&ObjectName, Option<&String>)> {
    match &item.relation {
        TableFactor::Table {
            name,
            alias,
            partitions,
            ..
        } if item.joins.is_empty() && partitions.is_empty() => {
            Ok((name, alias.as_ref().map(|a| &a.name.value)))
        }
        _ => Err(SqlError::unsupported("UPDATE or DELETE of several tables")),
    }
}

pub(super) fn table_scope(table: &Table, alias: &str) -> Scope {
    Scope {
        sources: vec![Source {
            schema: table.schema.clone(),
            alias: alias.to_owned(),
            columns: crate::engine::translate::table_columns(table, alias),
        }],
        ..Scope::default()
    }
}

/// ` WHERE ... ORDER BY ... LIMIT ...`.
pub(super) fn row_filter(
    translator: &mut Translator<'_>,
    selection: Option<&Expr>,
    order: &[OrderByExpr],
    limit: Option<&Expr>,
) -> SqlResult<String> {
    let mut out = String::new();
    if let Some(e) = selection {
        translator.clause = "where clause";
        let tx = translator.expr(e)?;
        out = format!(" WHERE {}", compare::truth(&tx));
    }
    out.push_str(&translator.order_by(order, &[])?);
    if let Some(limit) = limit {
        let n = crate::engine::translate::ordinal(limit)
            .ok_or_else(|| SqlError::syntax(format!("near '{limit}'")))?;
        out.push_str(&format!(" LIMIT {}", i64::try_from(n).unwrap_or(i64::MAX)));
    }
    translator.clause = "field list";
    Ok(out)
}

/// The columns set and what they are set to (`None` is DEFAULT), from left to right: a later assignment sees the
/// columns that earlier ones set.
pub(super) fn assignments(
    translator: &mut Translator<'_>,
    table: &Table,
    list: &[Assignment],
) -> SqlResult<Vec<(usize, Option<Tx>)>> {
    let mut out: Vec<(usize, Option<Tx>)> = Vec::new();
    for a in list {
        let AssignmentTarget::ColumnName(name) = &a.target else {
            return Err(SqlError::syntax("near 'SET'"));
        };
        let last = name_parts(name)?.last().copied().unwrap_or("").to_owned();
        let (at, column) = table
            .column(&last)
            .ok_or_else(|| SqlError::no_column(&last, "field list"))?;
        let default = matches!(&a.value, Expr::Identifier(i) if i.quote_style.is_none() && i.value.eq_ignore_ascii_case("default"));
        let tx = if default {
            None
        } else {
            Some(translator.expr(&a.value)?)
        };
        if let Some(tx) = &tx
            && let Some(scope) = translator.scopes.last_mut()
            && let Some(source) = scope.sources.first_mut()
            && let Some(seen) = source.columns.get_mut(at)
        {
            seen.tx = cast::to(tx, &column.ty)?;
        }
        out.retain(|(i, _)| *i != at);
        out.push((at, tx));
    }
    Ok(out)
}

/// The query that reads what an UPDATE needs: rowid, old values, new values.
pub(super) fn select_for_update(
    table: &Table,
    alias: &str,
    set: &[(usize, Option<Tx>)],
    tail: &str,
) -> (String, Vec<Ty>) {
    let mut parts = vec![format!("{}.{}", quote(alias), table.rowid_name())];
    let mut types = vec![Ty::BIGINT];
    for (at, _) in set {
        parts.push(format!("{}.{}", quote(alias), quote(&table.columns[*at].name)));
        types.push(table.columns[*at].ty.clone());
    }
    for (_, tx) in set {
        parts.push(tx.as_ref().map_or("NULL".to_owned(), |tx| tx.sql.clone()));
        types.push(tx.as_ref().map_or(Ty::Null, |tx| tx.ty.clone()));
    }
    (
        format!(
            "SELECT {} FROM {} AS {}{tail}",
            parts.join(", "),
            table.sqlite(),
            quote(alias)
        ),
        types,
    )
}

impl Session {
    pub(super) fn update(&mut self, update: &Update) -> SqlResult<Done> {
        if update.from.is_some() || update.returning.is_some() {
            return Err(SqlError::unsupported("UPDATE ... FROM or RETURNING"));
        }
        let (name, alias) = single_table(&update.table)?;
        let (catalog, table) = self.target(name)?;
        let alias = alias.unwrap_or(&table.name).to_owned();
        let mut translator = Translator::new(&catalog, &*self as &dyn Facts);
        translator.scopes.push(table_scope(&table, &alias));
        let tail = row_filter(
            &mut translator,
            update.selection.as_ref(),
            &update.order_by,
            update.limit.as_ref(),
        )?;
        let set = assignments(&mut translator, &table, &update.assignments)?;
        let (sql, types) = select_for_update(&table, &alias, &set, &tail);
        let rows = self.collect(&sql, &types)?;
        if rows.len() > MAX_HELD {
            return Err(SqlError::unsupported("an UPDATE of so many rows"));
        }
        let matched = rows.len() as u64;
        let mut changed = 0;
        for (i, row) in rows.into_iter().enumerate() {
            if self.shared.is_killed() {
                return Err(SqlError::interrupted());
            }
            changed += u64::from(self.update_row(&catalog, &table, &set, row, i + 1)?);
        }
        Ok(Done {
            affected: if self.count_found { matched } else { changed },
            insert_id: 0,
            info: format!(
                "Rows matched: {matched}  Changed: {changed}  Warnings: {}",
                self.warnings.len()
            ),
        })
    }

    /// Writes one row's new values; whether anything changed. `row` is rowid, old values, new values.
    pub(super) fn update_row(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        set: &[(usize, Option<Tx>)],
        row: Vec<Value>,
        number: usize,
    ) -> SqlResult<bool> {
        let mut values = row.into_iter();
        let rowid = values.next().unwrap_or(Value::Null);
        let old: Vec<Value> = values.by_ref().take(set.len()).collect();
        let mut new = Vec::with_capacity(set.len() + 2);
        let strict = self.strict();
        for ((at, tx), value) in set.iter().zip(values) {
            let column = &table.columns[*at];
            let target = Target {
                column: &column.name,
                row: number,
                strict,
            };
            let stored = match tx {
                Some(tx) => value::store(&value, &tx.ty, &column.ty, target)?,
                None => default_value(self, table, *at, strict)?,
            };
            if stored.is_null() && !column.nullable {
                return Err(SqlError::not_null(&column.name));
            }
            new.push(stored);
        }
        if new == old {
            return Ok(false);
        }
        let mut names: Vec<String> = set
            .iter()
            .map(|(at, _)| quote(&table.columns[*at].name))
            .collect();
        for (at, column) in table.columns.iter().enumerate() {
            if column.on_update_now && !set.iter().any(|(i, _)| *i == at) {
                names.push(quote(&column.name));
                new.push(now_value(self, &column.ty));
            }
        }
        let list: Vec<String> = names.iter().map(|n| format!("{n} = ?")).collect();
        let sql = format!(
            "UPDATE {} SET {} WHERE {} = ?",
            table.sqlite(),
            list.join(", "),
            table.rowid_name()
        );
        let result = self
            .conn
            .prepare_cached(&sql)
            .and_then(|mut s| s.execute(params_from_iter(new.iter().chain(std::iter::once(&rowid)))));
        match result {
            Ok(_) => Ok(true),
            Err(e) => {
                let mut full: Vec<Option<Value>> = vec![None; table.columns.len()];
                for ((at, _), value) in set.iter().zip(&new) {
                    full[*at] = Some(value.clone());
                }
                Err(self.explain(catalog, table, &full, Some(&rowid), e))
            }
        }
    }

    pub(super) fn delete(&mut self, delete: &Delete) -> SqlResult<Done> {
        let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &delete.from;
        let [only] = from.as_slice() else {
            return Err(SqlError::unsupported("DELETE from several tables"));
        };
        if !delete.tables.is_empty() || delete.using.is_some() || delete.returning.is_some() {
            return Err(SqlError::unsupported("DELETE from several tables, or RETURNING"));
        }
        let (name, alias) = single_table(only)?;
        let (catalog, table) = self.target(name)?;
        let alias = alias.unwrap_or(&table.name).to_owned();
        let mut translator = Translator::new(&catalog, &*self as &dyn Facts);
        translator.scopes.push(table_scope(&table, &alias));
        let tail = row_filter(
            &mut translator,
            delete.selection.as_ref(),
            &delete.order_by,
            delete.limit.as_ref(),
        )?;
        let rowid = table.rowid_name();
        let sql = format!(
            "DELETE FROM {0} WHERE {rowid} IN (SELECT {1}.{rowid} FROM {0} AS {1}{tail})",
            table.sqlite(),
            quote(&alias)
        );
        match self.conn.execute(&sql, []) {
            Ok(n) => Ok(Done {
                affected: n as u64,
                ..Done::default()
            }),
            Err(e) => Err(self.explain(&catalog, &table, &[], None, e)),
        }
    }
}
