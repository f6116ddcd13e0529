//! CREATE, ALTER, DROP, TRUNCATE, RENAME.
//!
//! A table's new shape is built as a new [`Table`]; where rows must follow, they are copied one by one through the same
//! conversion that INSERT uses. The catalog is published after `SQLite` has the new shape.

mod alter;
mod rebuild;

use crate::engine::catalog::{Catalog, Table};
use crate::engine::ddl_table;
use crate::engine::parse::Parsed;
use crate::engine::session::{Done, Session};
use crate::engine::translate::{name_parts, qualified};
use crate::error::{SqlError, SqlResult};
use alter::drop_index;
use shardgate_sql::DdlObject;
use sqlparser::ast::{CreateIndex, CreateTable, ObjectName, ObjectType, Statement};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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
}

/// The last part of a name.
pub(super) fn last_part(name: &ObjectName) -> SqlResult<String> {
    Ok(name_parts(name)?.last().copied().unwrap_or("").to_owned())
}
