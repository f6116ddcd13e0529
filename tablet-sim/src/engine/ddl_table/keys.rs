//! Keys and constraints of a table being shaped.

use crate::engine::catalog::{Catalog, Check, ForeignKey, Index, PRIMARY, Table};
use crate::engine::session::Session;
use crate::engine::translate::{Facts, Scope, Source, Translator, compare, qualified, table_columns};
use crate::engine::value::{self};
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{Expr, Ident, IndexColumn, ReferentialAction, TableConstraint};

/// Adds a key or constraint to a table being shaped.
pub(in crate::engine) fn add_constraint(
    session: &mut Session,
    catalog: &Catalog,
    table: &mut Table,
    constraint: &TableConstraint,
) -> SqlResult<()> {
    let name = |n: Option<&Ident>| n.map(|n| n.value.clone());
    match constraint {
        TableConstraint::PrimaryKey(key) => {
            if table.primary().is_some() {
                return Err(SqlError::new(1068, *b"42000", "Multiple primary key defined"));
            }
            let columns = index_columns(table, &key.columns, true)?;
            for at in &columns {
                table.columns[*at].nullable = false;
            }
            add_index(table, Some(PRIMARY.to_owned()), true, columns)
        }
        TableConstraint::Unique(key) => {
            let columns = index_columns(table, &key.columns, true)?;
            add_index(
                table,
                name(key.index_name.as_ref().or(key.name.as_ref())),
                true,
                columns,
            )
        }
        TableConstraint::Index(key) => {
            let columns = index_columns(table, &key.columns, false)?;
            add_index(table, name(key.name.as_ref()), false, columns)
        }
        TableConstraint::ForeignKey(key) => {
            let (parent_schema, parent) = qualified(&key.foreign_table, Some(&table.schema))?;
            let number = table.foreign_keys.len() + 1;
            let columns: Vec<String> = key.columns.iter().map(|c| c.value.clone()).collect();
            let positions = columns
                .iter()
                .map(|c| table.column(c).map(|(i, _)| i).ok_or_else(|| key_column(c)))
                .collect::<SqlResult<Vec<_>>>()?;
            let own = parent_schema == table.schema && parent == table.name;
            let known: &Table = if own {
                table
            } else {
                catalog.table(&parent_schema, &parent).map_err(|_| {
                    SqlError::new(
                        1824,
                        *b"HY000",
                        format!("Failed to open the referenced table '{parent}'"),
                    )
                })?
            };
            let parent_columns: Vec<String> = key.referred_columns.iter().map(|c| c.value.clone()).collect();
            for c in &parent_columns {
                if known.column(c).is_none() {
                    return Err(key_column(c));
                }
            }
            let given = name(key.name.as_ref());
            let label = given
                .clone()
                .unwrap_or_else(|| format!("{}_ibfk_{number}", table.name));
            table.foreign_keys.push(ForeignKey {
                name: label,
                columns,
                parent_schema,
                parent,
                parent_columns,
                on_delete: action(key.on_delete.as_ref())?,
                on_update: action(key.on_update.as_ref())?,
            });
            // The server makes an index for the child's side where there is none.
            if !table.indexes.iter().any(|i| i.columns.starts_with(&positions)) {
                add_index(table, given, false, positions)?;
            }
            Ok(())
        }
        TableConstraint::Check(check) => add_check(session, table, check.name.as_ref(), &check.expr),
        other => Err(SqlError::unsupported(other)),
    }
}

pub(super) fn key_column(name: &str) -> SqlError {
    SqlError::new(
        1072,
        *b"42000",
        format!("Key column '{name}' doesn't exist in table"),
    )
}

pub(super) fn action(a: Option<&ReferentialAction>) -> SqlResult<Option<&'static str>> {
    Ok(match a {
        None => None,
        Some(ReferentialAction::Cascade) => Some("CASCADE"),
        Some(ReferentialAction::SetNull) => Some("SET NULL"),
        Some(ReferentialAction::Restrict) => Some("RESTRICT"),
        Some(ReferentialAction::NoAction) => Some("NO ACTION"),
        Some(ReferentialAction::SetDefault) => return Err(SqlError::unsupported("ON DELETE SET DEFAULT")),
    })
}

pub(super) fn add_check(
    session: &mut Session,
    table: &mut Table,
    name: Option<&Ident>,
    e: &Expr,
) -> SqlResult<()> {
    let empty = Catalog::default();
    let mut translator = Translator::new(&empty, &*session as &dyn Facts);
    let mut columns = table_columns(table, &table.name);
    for column in &mut columns {
        // A CHECK of SQLite names columns without their table.
        column.tx.sql = value::quote(&column.name);
    }
    translator.scopes.push(Scope {
        sources: vec![Source {
            schema: table.schema.clone(),
            alias: table.name.clone(),
            columns,
        }],
        ..Scope::default()
    });
    let tx = translator.expr(e)?;
    let sql = compare::truth(&tx);
    let number = table.checks.len() + 1;
    let name = name.map_or_else(|| format!("CONSTRAINT_{number}"), |n| n.value.clone());
    table.checks.push(Check {
        name,
        text: e.to_string(),
        sql,
    });
    Ok(())
}

/// The columns of an index. A prefix length is taken for a plain index, which then holds the whole value.
pub(in crate::engine) fn index_columns(
    table: &Table,
    list: &[IndexColumn],
    unique: bool,
) -> SqlResult<Vec<usize>> {
    let mut out = Vec::new();
    for item in list {
        let (name, prefix) = match &item.column.expr {
            Expr::Identifier(i) => (i.value.clone(), false),
            Expr::Function(f) => (crate::engine::ddl::last_part(&f.name)?, true),
            other => return Err(SqlError::unsupported(format!("an index on {other}"))),
        };
        let (at, _) = table.column(&name).ok_or_else(|| key_column(&name))?;
        if prefix && unique {
            return Err(SqlError::unsupported("a unique key on a prefix"));
        }
        out.push(at);
    }
    Ok(out)
}

/// Adds an index, named after its first column if it has no name.
pub(in crate::engine) fn add_index(
    table: &mut Table,
    name: Option<String>,
    unique: bool,
    columns: Vec<usize>,
) -> SqlResult<()> {
    let taken = |table: &Table, name: &str| table.indexes.iter().any(|i| i.name.eq_ignore_ascii_case(name));
    let name = match name {
        Some(name) => {
            if taken(table, &name) {
                return Err(SqlError::new(
                    1061,
                    *b"42000",
                    format!("Duplicate key name '{name}'"),
                ));
            }
            name
        }
        None => {
            let base = columns
                .first()
                .and_then(|c| table.columns.get(*c))
                .map_or("", |c| &c.name)
                .to_owned();
            let mut name = base.clone();
            let mut n = 2;
            while taken(table, &name) {
                name = format!("{base}_{n}");
                n += 1;
            }
            name
        }
    };
    let index = Index {
        name,
        unique,
        columns,
    };
    if index.name == PRIMARY {
        table.indexes.insert(0, index);
    } else {
        table.indexes.push(index);
    }
    Ok(())
}
