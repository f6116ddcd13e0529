//! CREATE, ALTER, DROP, TRUNCATE, RENAME.
//!
//! A table's new shape is built as a new [`Table`]; where rows must follow, they are copied one by one through the same
//! conversion that INSERT uses. The catalog is published after `SQLite` has the new shape.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::params_from_iter;
use shardgate_sql::DdlObject;
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, CreateIndex, CreateTable, Ident,
    MySQLColumnPosition, ObjectName, ObjectType, RenameTableNameKind, Statement,
};

use super::catalog::{Catalog, Column, Default, Index, PRIMARY, Table};
use super::ddl_table;
use super::parse::Parsed;
use super::session::{Done, Session};
use super::translate::{name_parts, qualified};
use super::value::{self, Target, Value, quote};
use crate::error::{SqlError, SqlResult};

impl Session {
    /// A statement that changes the schema. The write transaction is open; what was open before is committed.
    pub(super) fn ddl(&mut self, parsed: &Parsed) -> SqlResult<Done> {
        let event = self.event(parsed);
        let mut catalog = (*self.tablet.catalog()).clone();
        // Copying a table must not run into foreign keys half-way; the statement checks what it may break itself.
        self.conn
            .execute_batch("COMMIT; PRAGMA foreign_keys=OFF; BEGIN IMMEDIATE")?;
        let out = self.ddl_inner(parsed, &mut catalog);
        let end = if out.is_ok() { "COMMIT" } else { "ROLLBACK" };
        self.conn.execute_batch(end)?;
        let on = if self.vars.on("foreign_key_checks") {
            "ON"
        } else {
            "OFF"
        };
        self.conn
            .execute_batch(&format!("PRAGMA foreign_keys={on}; BEGIN IMMEDIATE"))?;
        let done = out?;
        self.tablet.publish(catalog);
        self.pending.push(event);
        Ok(done)
    }

    fn ddl_inner(&mut self, parsed: &Parsed, catalog: &mut Catalog) -> SqlResult<Done> {
        if let shardgate_sql::StatementKind::Ddl {
            object: DdlObject::Database,
            verb,
            ..
        } = parsed.class.kind
        {
            return self.database_ddl(parsed, verb, catalog);
        }
        match parsed.tree()? {
            Statement::CreateTable(create) => self.create_table(&create, catalog),
            Statement::CreateIndex(create) => self.create_index(&create, catalog),
            Statement::AlterTable(alter) => self.alter_table(&alter, catalog),
            Statement::Drop {
                object_type: ObjectType::Table,
                if_exists,
                names,
                temporary: false,
                ..
            } => self.drop_tables(&names, if_exists, catalog),
            Statement::Drop {
                object_type: ObjectType::Index,
                names,
                table: Some(table),
                ..
            } => {
                let old = self.existing(catalog, &table)?;
                let mut new = (*old).clone();
                for name in &names {
                    drop_index(&mut new, &name.to_string().replace('`', ""))?;
                }
                self.rebuild(&old, new, catalog)
            }
            Statement::Truncate(truncate) => {
                let names: Vec<&ObjectName> = truncate.table_names.iter().map(|t| &t.name).collect();
                for name in names {
                    let table = self.existing(catalog, name)?;
                    if let Some((child, key)) = catalog
                        .children(&table.schema, &table.name)
                        .iter()
                        .find(|(c, _)| c.name != table.name)
                    {
                        return Err(SqlError::new(
                            1701,
                            *b"42000",
                            format!(
                                "Cannot truncate a table referenced in a foreign key constraint (`{}`.`{}`, CONSTRAINT `{}`)",
                                child.schema, child.name, key.name
                            ),
                        ));
                    }
                    self.conn
                        .execute_batch(&format!("DELETE FROM {}", table.sqlite()))?;
                    table.next_auto.store(1, Ordering::Relaxed);
                }
                Ok(Done::default())
            }
            Statement::RenameTable(list) => {
                for item in &list {
                    self.rename(&item.old_name, &item.new_name, catalog)?;
                }
                Ok(Done::default())
            }
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn existing(&self, catalog: &Catalog, name: &ObjectName) -> SqlResult<Arc<Table>> {
        let (schema, table) = qualified(name, self.db.as_deref())?;
        catalog.table(&schema, &table).cloned()
    }

    fn database_ddl(
        &mut self,
        parsed: &Parsed,
        verb: shardgate_sql::DdlKind,
        catalog: &mut Catalog,
    ) -> SqlResult<Done> {
        use shardgate_sql::DdlKind;
        let exists = parsed.words.iter().any(|w| w.is("EXISTS"));
        let name = parsed
            .words
            .iter()
            .skip(2)
            .find(|w| !w.is("IF") && !w.is("NOT") && !w.is("EXISTS"))
            .map(|w| w.text.clone())
            .ok_or_else(|| SqlError::syntax("near ''"))?;
        match verb {
            DdlKind::Create => {
                if catalog.schemas.contains_key(&name) || name.eq_ignore_ascii_case("information_schema") {
                    if exists {
                        self.warn(
                            "Note",
                            1007,
                            format!("Can't create database '{name}'; database exists"),
                        );
                        return Ok(Done {
                            affected: 1,
                            ..Done::default()
                        });
                    }
                    return Err(SqlError::new(
                        1007,
                        *b"HY000",
                        format!("Can't create database '{name}'; database exists"),
                    ));
                }
                catalog
                    .schemas
                    .insert(name, std::collections::BTreeMap::default());
                Ok(Done {
                    affected: 1,
                    ..Done::default()
                })
            }
            DdlKind::Drop => {
                let Some(tables) = catalog.schemas.remove(&name) else {
                    if exists {
                        return Ok(Done::default());
                    }
                    return Err(SqlError::new(
                        1008,
                        *b"HY000",
                        format!("Can't drop database '{name}'; database doesn't exist"),
                    ));
                };
                for table in tables.values() {
                    self.conn
                        .execute_batch(&format!("DROP TABLE {}", table.sqlite()))?;
                }
                if self.db.as_deref() == Some(&name) {
                    self.db = None;
                }
                Ok(Done {
                    affected: tables.len() as u64,
                    ..Done::default()
                })
            }
            DdlKind::Alter => Ok(Done {
                affected: 1,
                ..Done::default()
            }),
            DdlKind::Rename | DdlKind::Truncate => Err(SqlError::unsupported(parsed.shown())),
        }
    }

    fn create_table(&mut self, create: &CreateTable, catalog: &mut Catalog) -> SqlResult<Done> {
        if create.temporary || create.query.is_some() || create.or_replace {
            return Err(SqlError::unsupported(
                "CREATE TEMPORARY TABLE, OR REPLACE, or AS SELECT",
            ));
        }
        let (schema, name) = qualified(&create.name, self.db.as_deref())?;
        let tables = catalog
            .schemas
            .get(&schema)
            .ok_or_else(|| SqlError::unknown_database(&schema))?;
        if tables.contains_key(&name) {
            if create.if_not_exists {
                self.warn("Note", 1050, format!("Table '{name}' already exists"));
                return Ok(Done::default());
            }
            return Err(SqlError::table_exists(&name));
        }
        let table = match &create.like {
            Some(like) => {
                let like = match like {
                    sqlparser::ast::CreateTableLikeKind::Parenthesized(l)
                    | sqlparser::ast::CreateTableLikeKind::Plain(l) => &l.name,
                };
                let model = self.existing(catalog, like)?;
                Table {
                    schema,
                    name,
                    foreign_keys: Vec::new(),
                    next_auto: Arc::new(AtomicU64::new(1)),
                    ..(*model).clone()
                }
            }
            None => ddl_table::build(self, catalog, schema, name, create)?,
        };
        self.make(&table)?;
        catalog.put(table);
        Ok(Done::default())
    }

    fn make(&self, table: &Table) -> SqlResult<()> {
        for sql in table.create_sqlite() {
            self.conn.execute_batch(&sql).map_err(|e| table_error(table, e))?;
        }
        Ok(())
    }

    fn create_index(&mut self, create: &CreateIndex, catalog: &mut Catalog) -> SqlResult<Done> {
        let old = self.existing(catalog, &create.table_name)?;
        let mut new = (*old).clone();
        let name = create.name.as_ref().map(|n| n.to_string().replace('`', ""));
        let columns = ddl_table::index_columns(&new, &create.columns, create.unique)?;
        ddl_table::add_index(&mut new, name, create.unique, columns)?;
        self.rebuild(&old, new, catalog)
    }

    fn drop_tables(
        &mut self,
        names: &[ObjectName],
        if_exists: bool,
        catalog: &mut Catalog,
    ) -> SqlResult<Done> {
        let mut missing = Vec::new();
        let mut found = Vec::new();
        for name in names {
            let (schema, table) = qualified(name, self.db.as_deref())?;
            match catalog.schemas.get(&schema).and_then(|s| s.get(&table)) {
                Some(t) => found.push(Arc::clone(t)),
                None => missing.push(format!("{schema}.{table}")),
            }
        }
        for table in &found {
            let outside = |child: &Table| {
                !found
                    .iter()
                    .any(|f| f.schema == child.schema && f.name == child.name)
            };
            let holds = catalog
                .children(&table.schema, &table.name)
                .into_iter()
                .find(|(c, _)| outside(c));
            if let Some((child, key)) = holds
                && self.vars.on("foreign_key_checks")
            {
                return Err(SqlError::new(
                    1451,
                    *b"23000",
                    format!(
                        "Cannot delete or update a parent row: a foreign key constraint fails (`{}`.`{}`, {})",
                        child.schema,
                        child.name,
                        key.describe(&child.schema)
                    ),
                ));
            }
        }
        if !missing.is_empty() && !if_exists {
            return Err(SqlError::unknown_table(&missing.join(",")));
        }
        for name in &missing {
            self.warn("Note", 1051, format!("Unknown table '{name}'"));
        }
        for table in found {
            self.conn
                .execute_batch(&format!("DROP TABLE {}", table.sqlite()))?;
            if let Some(schema) = catalog.schemas.get_mut(&table.schema) {
                schema.remove(&table.name);
            }
        }
        Ok(Done::default())
    }

    fn rename(&mut self, from: &ObjectName, to: &ObjectName, catalog: &mut Catalog) -> SqlResult<()> {
        let old = self.existing(catalog, from)?;
        let (schema, name) = qualified(to, self.db.as_deref())?;
        if !catalog.schemas.contains_key(&schema) {
            return Err(SqlError::unknown_database(&schema));
        }
        if catalog.table(&schema, &name).is_ok() {
            return Err(SqlError::table_exists(&name));
        }
        let new = Table {
            schema,
            name,
            ..(*old).clone()
        };
        self.rebuild(&old, new, catalog).map(|_| ())
    }

    fn alter_table(&mut self, alter: &AlterTable, catalog: &mut Catalog) -> SqlResult<Done> {
        let old = self.existing(catalog, &alter.name)?;
        let mut new = (*old).clone();
        for operation in &alter.operations {
            self.alter_one(&mut new, operation, catalog)?;
        }
        self.rebuild(&old, new, catalog)
    }

    fn alter_one(
        &mut self,
        table: &mut Table,
        operation: &AlterTableOperation,
        catalog: &Catalog,
    ) -> SqlResult<()> {
        use AlterTableOperation as A;
        match operation {
            A::AddColumn {
                column_def,
                column_position,
                if_not_exists,
                ..
            } => {
                if table.column(&column_def.name.value).is_some() {
                    if *if_not_exists {
                        return Ok(());
                    }
                    return Err(SqlError::new(
                        1060,
                        *b"42S21",
                        format!("Duplicate column name '{}'", column_def.name.value),
                    ));
                }
                self.put_column(table, column_def, column_position.as_ref(), None)
            }
            A::DropColumn {
                column_names,
                if_exists,
                ..
            } => {
                for name in column_names {
                    drop_column(table, &name.value, *if_exists)?;
                }
                Ok(())
            }
            A::ModifyColumn {
                col_name,
                data_type,
                options,
                column_position,
            } => {
                let def = ddl_table::column_def(col_name, data_type, options);
                self.put_column(table, &def, column_position.as_ref(), Some(col_name))
            }
            A::ChangeColumn {
                old_name,
                new_name,
                data_type,
                options,
                column_position,
            } => {
                let def = ddl_table::column_def(new_name, data_type, options);
                self.put_column(table, &def, column_position.as_ref(), Some(old_name))
            }
            A::RenameColumn {
                old_column_name,
                new_column_name,
            } => {
                let at = position(table, &old_column_name.value)?;
                table.columns[at].name.clone_from(&new_column_name.value);
                Ok(())
            }
            A::RenameTable { table_name } => {
                let (RenameTableNameKind::As(name) | RenameTableNameKind::To(name)) = table_name;
                let (schema, name) = qualified(name, self.db.as_deref())?;
                if catalog.table(&schema, &name).is_ok() {
                    return Err(SqlError::table_exists(&name));
                }
                (table.schema, table.name) = (schema, name);
                Ok(())
            }
            A::AddConstraint { constraint, .. } => {
                ddl_table::add_constraint(self, catalog, table, constraint)
            }
            A::DropPrimaryKey { .. } => drop_index(table, PRIMARY),
            A::DropIndex { name } => drop_index(table, &name.value),
            A::DropForeignKey { name, .. } => {
                let before = table.foreign_keys.len();
                table
                    .foreign_keys
                    .retain(|k| !k.name.eq_ignore_ascii_case(&name.value));
                if table.foreign_keys.len() == before {
                    Err(cannot_drop(&name.value))
                } else {
                    Ok(())
                }
            }
            A::DropConstraint { name, .. } => {
                let before = (table.foreign_keys.len(), table.checks.len());
                table
                    .foreign_keys
                    .retain(|k| !k.name.eq_ignore_ascii_case(&name.value));
                table.checks.retain(|k| !k.name.eq_ignore_ascii_case(&name.value));
                if (table.foreign_keys.len(), table.checks.len()) == before {
                    return drop_index(table, &name.value);
                }
                Ok(())
            }
            A::AlterColumn { column_name, op } => {
                let at = position(table, &column_name.value)?;
                match op {
                    AlterColumnOperation::SetDefault { value } => {
                        let default =
                            ddl_table::default_of(self, value, &table.columns[at].ty, &column_name.value)?;
                        table.columns[at].default = default;
                        Ok(())
                    }
                    AlterColumnOperation::DropDefault => {
                        table.columns[at].default = Default::None;
                        Ok(())
                    }
                    other => Err(SqlError::unsupported(other)),
                }
            }
            A::AutoIncrement { value, .. } => {
                let n = value.value.to_string().parse().unwrap_or(1);
                table.next_auto.fetch_max(n, Ordering::Relaxed);
                Ok(())
            }
            A::Algorithm { .. } | A::Lock { .. } => Ok(()),
            other => Err(SqlError::unsupported(other)),
        }
    }

    /// Adds a column, or puts it in the place of `replaces`.
    fn put_column(
        &mut self,
        table: &mut Table,
        def: &ColumnDef,
        place: Option<&MySQLColumnPosition>,
        replaces: Option<&Ident>,
    ) -> SqlResult<()> {
        let mut shape = ddl_table::Keys::default();
        let column = ddl_table::column(self, def, &mut shape)?;
        let at = match replaces {
            Some(old) => {
                let at = position(table, &old.value)?;
                table.columns[at] = column;
                at
            }
            None => {
                table.columns.push(column);
                table.columns.len() - 1
            }
        };
        for key in shape.finish(at) {
            ddl_table::add_index(table, key.0, key.1, key.2)?;
        }
        let target = match place {
            None => return Ok(()),
            Some(MySQLColumnPosition::First) => 0,
            Some(MySQLColumnPosition::After(name)) => {
                let after = position(table, &name.value)?;
                if after < at { after + 1 } else { after }
            }
        };
        move_column(table, at, target);
        Ok(())
    }

    /// Gives a table its new shape, rows included. Columns keep their rows by their place in the old table, which the
    /// new one remembers by name, or by position where a column was renamed.
    fn rebuild(&mut self, old: &Arc<Table>, new: Table, catalog: &mut Catalog) -> SqlResult<Done> {
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

    fn copy_rows(&mut self, old: &Table, new: &Table, parked: &str) -> SqlResult<u64> {
        let strict = self.strict();
        // Where each new column's values come from: the same name, or the one old column whose name is gone.
        let gone: Vec<usize> = (0..old.columns.len())
            .filter(|i| new.column(&old.columns[*i].name).is_none())
            .collect();
        let added: Vec<usize> = (0..new.columns.len())
            .filter(|i| old.column(&new.columns[*i].name).is_none())
            .collect();
        let renamed = gone.len() == 1 && added.len() == 1 && old.columns.len() == new.columns.len();
        let source: Vec<Option<usize>> = new
            .columns
            .iter()
            .map(|c| {
                old.column(&c.name)
                    .map(|(i, _)| i)
                    .or_else(|| renamed.then(|| gone[0]))
            })
            .collect();
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
            for (column, from) in new.columns.iter().zip(&source) {
                let target = Target {
                    column: &column.name,
                    row: count,
                    strict,
                };
                let mut value = match from {
                    Some(i) => {
                        let ty = &old.columns[*i].ty;
                        value::store(&Value::from_ref(row.get_ref(*i)?, ty), ty, &column.ty, target)?
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

/// What `SQLite` says while a table is being made, in the server's words.
fn table_error(table: &Table, e: rusqlite::Error) -> SqlError {
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

fn position(table: &Table, name: &str) -> SqlResult<usize> {
    table.column(name).map(|(i, _)| i).ok_or_else(|| {
        SqlError::new(
            1054,
            *b"42S22",
            format!("Unknown column '{name}' in '{}'", table.name),
        )
    })
}

fn cannot_drop(name: &str) -> SqlError {
    SqlError::new(
        1091,
        *b"42000",
        format!("Can't DROP '{name}'; check that column/key exists"),
    )
}

fn drop_index(table: &mut Table, name: &str) -> SqlResult<()> {
    let before = table.indexes.len();
    table.indexes.retain(|i| !i.name.eq_ignore_ascii_case(name));
    if table.indexes.len() == before {
        Err(cannot_drop(name))
    } else {
        Ok(())
    }
}

fn drop_column(table: &mut Table, name: &str, if_exists: bool) -> SqlResult<()> {
    let Some((at, _)) = table.column(name) else {
        return if if_exists { Ok(()) } else { Err(cannot_drop(name)) };
    };
    if table.columns.len() == 1 {
        return Err(SqlError::new(
            1090,
            *b"42000",
            "You can't delete all columns with ALTER TABLE; use DROP TABLE instead",
        ));
    }
    table.columns.remove(at);
    for index in &mut table.indexes {
        index.columns.retain(|c| *c != at);
        for c in &mut index.columns {
            if *c > at {
                *c -= 1;
            }
        }
    }
    table.indexes.retain(|i: &Index| !i.columns.is_empty());
    Ok(())
}

fn move_column(table: &mut Table, from: usize, to: usize) {
    let column: Column = table.columns.remove(from);
    let to = to.min(table.columns.len());
    table.columns.insert(to, column);
    let moved = |c: usize| {
        if c == from {
            to
        } else {
            let without = if c > from { c - 1 } else { c };
            if without >= to { without + 1 } else { without }
        }
    };
    for index in &mut table.indexes {
        for c in &mut index.columns {
            *c = moved(*c);
        }
    }
}

/// The last part of a name.
pub(super) fn last_part(name: &ObjectName) -> SqlResult<String> {
    Ok(name_parts(name)?.last().copied().unwrap_or("").to_owned())
}
