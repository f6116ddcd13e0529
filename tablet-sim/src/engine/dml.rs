//! INSERT, REPLACE, UPDATE, DELETE.
//!
//! Values are computed by `SQLite`, converted and checked here by the column's type, and written row by row: that is
//! what gives the server's errors (which key, which row), its counts (found, changed) and its partial effects.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rusqlite::{ErrorCode, params_from_iter};
use sqlparser::ast::{
    Assignment, AssignmentTarget, Delete, Expr, FromTable, Insert, ObjectName, OnInsert, OrderByExpr,
    SetExpr, Statement, TableFactor, TableObject, TableWithJoins, Update, Value as AstValue,
};

use super::catalog::{Catalog, Default, PRIMARY, Table};
use super::parse::Parsed;
use super::session::{Done, Session};
use super::translate::{Facts, Scope, Source, Translator, Tx, cast, compare, name_parts, qualified};
use super::types::Ty;
use super::value::{self, Target, Value, quote};
use crate::error::{SqlError, SqlResult};
use crate::repl::Event;

/// What an INSERT does with a row that a unique key refuses.
enum OnDuplicate {
    Fail,
    Ignore,
    Replace,
    Update(Vec<Assignment>, Option<String>),
}

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

    fn insert(&mut self, insert: &Insert) -> SqlResult<Done> {
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
    fn insert_rows(
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
    fn value_of(&mut self, e: &Expr, catalog: &Catalog) -> SqlResult<Option<(Value, Ty)>> {
        if let Expr::Identifier(name) = e
            && name.quote_style.is_none()
            && name.value.eq_ignore_ascii_case("default")
        {
            return Ok(None);
        }
        let mut translator = Translator::new(catalog, &*self as &dyn Facts);
        let tx = match e {
            Expr::Value(v) if !matches!(v.value, AstValue::Placeholder(_)) => {
                super::translate::literal(&v.value)?
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

    fn update(&mut self, update: &Update) -> SqlResult<Done> {
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
    fn update_row(
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

    fn delete(&mut self, delete: &Delete) -> SqlResult<Done> {
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

    /// The server's error for what `SQLite` refused: which key, which constraint. `row` holds the values written,
    /// where known; `own` is the row itself, which does not collide with itself.
    fn explain(
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
    fn conflict(
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

fn foreign_key_error(catalog: &Catalog, table: &Table, writes_row: bool) -> SqlError {
    let child = |schema: &str, name: &str, key: &super::catalog::ForeignKey| {
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

fn on_duplicate(insert: &Insert) -> SqlResult<OnDuplicate> {
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

/// The one table of an UPDATE or DELETE, and its alias.
fn single_table(item: &TableWithJoins) -> SqlResult<(&ObjectName, Option<&String>)> {
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

fn table_scope(table: &Table, alias: &str) -> Scope {
    Scope {
        sources: vec![Source {
            schema: table.schema.clone(),
            alias: alias.to_owned(),
            columns: super::translate::table_columns(table, alias),
        }],
        ..Scope::default()
    }
}

/// ` WHERE ... ORDER BY ... LIMIT ...`.
fn row_filter(
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
        let n =
            super::translate::ordinal(limit).ok_or_else(|| SqlError::syntax(format!("near '{limit}'")))?;
        out.push_str(&format!(" LIMIT {}", i64::try_from(n).unwrap_or(i64::MAX)));
    }
    translator.clause = "field list";
    Ok(out)
}

/// The columns set and what they are set to (`None` is DEFAULT), from left to right: a later assignment sees the
/// columns that earlier ones set.
fn assignments(
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
fn select_for_update(
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

/// The statement's time in a column's form.
fn now_value(session: &Session, ty: &Ty) -> Value {
    match ty {
        Ty::DateTime { fsp, .. } => {
            let unit = 10u32.pow(6 - u32::from(*fsp));
            let now = super::temporal::DateTime {
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
        Ty::Decimal { scale, .. } => {
            Value::text(super::decimal::Decimal::from_i128(0).rounded(*scale).to_string())
        }
        Ty::Float | Ty::Double => Value::Double(0.0),
        Ty::Bytes { .. } => Value::Bytes(Vec::new()),
        Ty::Enum(values, _) => Value::text(values.first().cloned().unwrap_or_default()),
        Ty::Date => Value::text("0000-00-00"),
        Ty::DateTime { .. } => Value::text("0000-00-00 00:00:00"),
        Ty::Text { .. } | Ty::Json | Ty::Null => Value::text(""),
    }
}

/// Writes rows into one table.
pub(crate) struct Writer<'t> {
    table: &'t Table,
    on_duplicate: OnDuplicate,
    strict: bool,
    sql: String,
    affected: u64,
    count: u64,
    duplicates: u64,
    first_generated: Option<u64>,
    explicit: Option<u64>,
}

impl<'t> Writer<'t> {
    fn new(table: &'t Table, on_duplicate: OnDuplicate, strict: bool) -> Self {
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

    fn put(
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
                .map(|(name, tx)| super::translate::SourceColumn {
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
