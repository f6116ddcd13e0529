//! INSERT and REPLACE: which columns, which rows.

use super::MAX_HELD;
use super::writer::OnDuplicate;
use super::writer::Writer;
use crate::engine::catalog::{Catalog, Table};
use crate::engine::session::{Done, Session};
use crate::engine::translate::{Facts, Translator, name_parts};
use crate::engine::types::Ty;
use crate::engine::value::Value;
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{
    AssignmentTarget, Expr, Insert, ObjectName, OnInsert, SetExpr, TableObject, Value as AstValue,
};

pub(super) fn on_duplicate(insert: &Insert) -> SqlResult<OnDuplicate> {
    if insert.replace_into {
        return Ok(OnDuplicate::Replace);
    }
    match &insert.on {
        Some(OnInsert::DuplicateKeyUpdate(list)) => {
            let alias = insert.insert_alias.as_ref().map(|a| a.row_alias.to_string());
            Ok(OnDuplicate::Update(list.clone(), alias))
        }
        None if insert.ignore => Ok(OnDuplicate::Ignore),
        None => Ok(OnDuplicate::Fail),
        Some(_) => Err(SqlError::syntax("near 'ON CONFLICT'")),
    }
}

impl Session {
    pub(super) fn insert(&mut self, insert: &Insert) -> SqlResult<Done> {
        let TableObject::TableName(name) = &insert.table else {
            return Err(SqlError::unsupported("INSERT into a function"));
        };
        if insert.partitioned.is_some() || insert.returning.is_some() {
            return Err(SqlError::unsupported("INSERT ... PARTITION or RETURNING"));
        }
        let (catalog, table) = self.target(name)?;
        let on_duplicate = on_duplicate(insert)?;
        let strict = self.strict() && !insert.ignore;
        let (columns, rows) = self.insert_rows(insert, &catalog, &table)?;
        let mut writer = Writer::new(&table, on_duplicate, strict);
        for (i, row) in rows.into_iter().enumerate() {
            if self.shared.is_killed() {
                return Err(SqlError::interrupted());
            }
            writer.put(self, &catalog, &columns, row, i + 1)?;
        }
        let count = writer.count;
        if let Some(first) = writer.first_generated {
            self.last_insert_id = first;
        }
        let info = if count > 1
            || insert
                .source
                .as_ref()
                .is_some_and(|s| !matches!(s.body.as_ref(), SetExpr::Values(_)))
        {
            format!(
                "Records: {count}  Duplicates: {}  Warnings: {}",
                writer.duplicates,
                self.warnings.len()
            )
        } else {
            String::new()
        };
        Ok(Done {
            affected: writer.affected,
            insert_id: writer.first_generated.or(writer.explicit).unwrap_or(0),
            info,
        })
    }

    /// The columns an INSERT names and the rows it brings; `None` in a row is DEFAULT.
    #[allow(clippy::type_complexity)] // rows of values with their types, used at one place
    pub(super) fn insert_rows(
        &mut self,
        insert: &Insert,
        catalog: &Catalog,
        table: &Table,
    ) -> SqlResult<(Vec<usize>, Vec<Vec<Option<(Value, Ty)>>>)> {
        let find = |name: &ObjectName| {
            let last = name_parts(name)?.last().copied().unwrap_or("").to_owned();
            table
                .column(&last)
                .map(|(i, _)| i)
                .ok_or_else(|| SqlError::no_column(&last, "field list"))
        };
        if !insert.assignments.is_empty() {
            let mut columns = Vec::new();
            let mut row = Vec::new();
            for a in &insert.assignments {
                let AssignmentTarget::ColumnName(name) = &a.target else {
                    return Err(SqlError::syntax("near 'SET'"));
                };
                columns.push(find(name)?);
                row.push(self.value_of(&a.value, catalog)?);
            }
            return Ok((columns, vec![row]));
        }
        let mut columns: Vec<usize> = insert.columns.iter().map(find).collect::<SqlResult<_>>()?;
        for (i, c) in columns.iter().enumerate() {
            if columns[..i].contains(c) {
                return Err(SqlError::new(
                    1110,
                    *b"42000",
                    format!("Column '{}' specified twice", table.columns[*c].name),
                ));
            }
        }
        let Some(source) = &insert.source else {
            // `INSERT INTO t () VALUES ()`.
            return Ok((columns, vec![Vec::new()]));
        };
        if let SetExpr::Values(values) = source.body.as_ref() {
            let empty = columns.is_empty() && values.rows.iter().all(|r| r.content.is_empty());
            if columns.is_empty() && !empty {
                columns = (0..table.columns.len()).collect();
            }
            let mut rows = Vec::with_capacity(values.rows.len());
            for (i, row) in values.rows.iter().enumerate() {
                if row.content.len() != columns.len() {
                    return Err(SqlError::row_width(i + 1));
                }
                rows.push(
                    row.content
                        .iter()
                        .map(|e| self.value_of(e, catalog))
                        .collect::<SqlResult<Vec<_>>>()?,
                );
            }
            return Ok((columns, rows));
        }
        if columns.is_empty() {
            columns = (0..table.columns.len()).collect();
        }
        let translated = self.translate(source, &[])?;
        if translated.columns.len() != columns.len() {
            return Err(SqlError::row_width(1));
        }
        let types: Vec<Ty> = translated.columns.iter().map(|c| c.ty.clone()).collect();
        let rows = self.collect(&translated.sql, &types)?;
        if rows.len() > MAX_HELD {
            return Err(SqlError::unsupported("INSERT ... SELECT of so many rows"));
        }
        let typed = |row: Vec<Value>| {
            row.into_iter()
                .zip(&types)
                .map(|(v, t)| Some((v, t.clone())))
                .collect()
        };
        Ok((columns, rows.into_iter().map(typed).collect()))
    }

    /// One value of a VALUES row.
    pub(super) fn value_of(&mut self, e: &Expr, catalog: &Catalog) -> SqlResult<Option<(Value, Ty)>> {
        if let Expr::Identifier(name) = e
            && name.quote_style.is_none()
            && name.value.eq_ignore_ascii_case("default")
        {
            return Ok(None);
        }
        let mut translator = Translator::new(catalog, &*self as &dyn Facts);
        let tx = match e {
            Expr::Value(v) if !matches!(v.value, AstValue::Placeholder(_)) => {
                crate::engine::translate::literal(&v.value)?
            }
            _ => translator.expr(e)?,
        };
        if let Some(value) = tx.konst {
            return Ok(Some((value, tx.ty)));
        }
        let row = self.collect(&format!("SELECT {}", tx.sql), std::slice::from_ref(&tx.ty))?;
        let value = row.into_iter().flatten().next().unwrap_or(Value::Null);
        Ok(Some((value, tx.ty)))
    }
}
