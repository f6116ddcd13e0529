//! ALTER TABLE: each operation changes the table's shape; the rows follow at the end.

use crate::engine::catalog::{Catalog, Column, Default, Index, PRIMARY, Table};
use crate::engine::ddl_table;
use crate::engine::session::{Done, Session};
use crate::engine::translate::qualified;
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{
    AlterColumnOperation, AlterTable, AlterTableOperation, ColumnDef, Ident, MySQLColumnPosition,
    RenameTableNameKind,
};
use std::sync::atomic::Ordering;

pub(super) fn position(table: &Table, name: &str) -> SqlResult<usize> {
    table.column(name).map(|(i, _)| i).ok_or_else(|| {
        SqlError::new(
            1054,
            *b"42S22",
            format!("Unknown column '{name}' in '{}'", table.name),
        )
    })
}

pub(super) fn cannot_drop(name: &str) -> SqlError {
    SqlError::new(
        1091,
        *b"42000",
        format!("Can't DROP '{name}'; check that column/key exists"),
    )
}

pub(super) fn drop_index(table: &mut Table, name: &str) -> SqlResult<()> {
    let before = table.indexes.len();
    table.indexes.retain(|i| !i.name.eq_ignore_ascii_case(name));
    if table.indexes.len() == before {
        Err(cannot_drop(name))
    } else {
        Ok(())
    }
}

pub(super) fn drop_column(table: &mut Table, name: &str, if_exists: bool) -> SqlResult<()> {
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

pub(super) fn move_column(table: &mut Table, from: usize, to: usize) {
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

impl Session {
    pub(super) fn alter_table(&mut self, alter: &AlterTable, catalog: &mut Catalog) -> SqlResult<Done> {
        let old = self.existing(catalog, &alter.name)?;
        let mut new = (*old).clone();
        for operation in &alter.operations {
            self.alter_one(&mut new, operation, catalog)?;
        }
        self.rebuild(&old, new, catalog)
    }

    pub(super) fn alter_one(
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
    pub(super) fn put_column(
        &mut self,
        table: &mut Table,
        def: &ColumnDef,
        place: Option<&MySQLColumnPosition>,
        replaces: Option<&Ident>,
    ) -> SqlResult<()> {
        let mut shape = ddl_table::Keys::default();
        let mut column = ddl_table::column(self, def, &mut shape)?;
        let at = match replaces {
            Some(old) => {
                let at = position(table, &old.value)?;
                column.from = table.columns[at].from;
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
}
