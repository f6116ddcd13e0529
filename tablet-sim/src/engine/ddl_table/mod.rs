//! From the tree of CREATE TABLE to a [`Table`]: columns, types, defaults, keys.

mod column_type;
mod keys;

use column_type::column_type;
use keys::add_check;
pub(super) use keys::{add_constraint, add_index, index_columns};

use crate::engine::catalog::{Catalog, Column, Default, PRIMARY, Table};
use crate::engine::collate::Collation;
use crate::engine::session::Session;
use crate::engine::temporal::DateTime;
use crate::engine::types::Ty;
use crate::engine::value::{self, Target, Value};
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{
    ColumnDef, ColumnOption, ColumnOptionDef, CommentDef, CreateTable, CreateTableOptions, DataType, Expr,
    Ident, SqlOption, UnaryOperator,
};
use sqlparser::tokenizer::Token;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Keys that a column's own options ask for.
#[derive(Default)]
pub(super) struct Keys {
    primary: bool,
    unique: bool,
}

/// Name, uniqueness, columns of an index to add.
type NewIndex = (Option<String>, bool, Vec<usize>);

impl Keys {
    pub(super) fn finish(self, at: usize) -> Vec<NewIndex> {
        let mut out = Vec::new();
        if self.primary {
            out.push((Some(PRIMARY.to_owned()), true, vec![at]));
        }
        if self.unique {
            out.push((None, true, vec![at]));
        }
        out
    }
}

/// A table as CREATE TABLE describes it.
pub(super) fn build(
    session: &mut Session,
    catalog: &Catalog,
    schema: String,
    name: String,
    create: &CreateTable,
) -> SqlResult<Table> {
    let options = table_options(&create.table_options, create.comment.as_ref())?;
    let mut table = Table {
        schema,
        name,
        columns: Vec::new(),
        indexes: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        comment: options.comment,
        next_auto: Arc::new(AtomicU64::new(options.auto_increment.max(1))),
    };
    if create.partition_by.is_some() {
        return Err(SqlError::unsupported("PARTITION BY"));
    }
    for def in &create.columns {
        if table.column(&def.name.value).is_some() {
            return Err(SqlError::new(
                1060,
                *b"42S21",
                format!("Duplicate column name '{}'", def.name.value),
            ));
        }
        let mut keys = Keys::default();
        let mut column = column(session, def, &mut keys)?;
        if let (Some(collation), Ty::Text { collation: own, .. } | Ty::Enum(_, own)) =
            (options.collation, &mut column.ty)
            && !has_collation(def)
        {
            *own = collation;
        }
        table.columns.push(column);
        for (name, unique, columns) in keys.finish(table.columns.len() - 1) {
            add_index(&mut table, name, unique, columns)?;
        }
    }
    if table.columns.is_empty() {
        return Err(SqlError::new(
            1113,
            *b"42000",
            "A table must have at least 1 column",
        ));
    }
    for constraint in &create.constraints {
        add_constraint(session, catalog, &mut table, constraint)?;
    }
    for def in &create.columns {
        for option in &def.options {
            if let ColumnOption::Check(check) = &option.option {
                add_check(
                    session,
                    &mut table,
                    option.name.as_ref().or(check.name.as_ref()),
                    &check.expr,
                )?;
            }
        }
    }
    if let Some(at) = table.auto_column() {
        let autos = table.columns.iter().filter(|c| c.auto_increment).count();
        if autos > 1 || !table.indexes.iter().any(|i| i.columns.first() == Some(&at)) {
            return Err(SqlError::new(
                1075,
                *b"42000",
                "Incorrect table definition; there can be only one auto column and it must be defined as a key",
            ));
        }
    }
    Ok(table)
}

struct Options {
    comment: String,
    auto_increment: u64,
    collation: Option<Collation>,
}

/// The table options that mean something here; engine, row format and the like are taken and ignored.
fn table_options(options: &CreateTableOptions, comment: Option<&CommentDef>) -> SqlResult<Options> {
    let mut out = Options {
        comment: String::new(),
        auto_increment: 1,
        collation: None,
    };
    let text = |c: &CommentDef| match c {
        CommentDef::WithEq(s) | CommentDef::WithoutEq(s) => s.clone(),
    };
    if let Some(c) = comment {
        out.comment = text(c);
    }
    let list = match options {
        CreateTableOptions::None => return Ok(out),
        CreateTableOptions::Plain(list)
        | CreateTableOptions::Options(list)
        | CreateTableOptions::With(list)
        | CreateTableOptions::TableProperties(list) => list,
    };
    for option in list {
        match option {
            SqlOption::Comment(c) => out.comment = text(c),
            SqlOption::KeyValue { key, value } => {
                let shown = match value {
                    Expr::Value(v) => v
                        .value
                        .clone()
                        .into_string()
                        .unwrap_or_else(|| v.value.to_string()),
                    other => other.to_string(),
                };
                match key.to_string().to_uppercase().as_str() {
                    "AUTO_INCREMENT" => out.auto_increment = shown.parse().unwrap_or(1),
                    "COLLATE" | "DEFAULT COLLATE" => out.collation = Some(known_collation(&shown)?),
                    "CHARSET" | "DEFAULT CHARSET" | "CHARACTER SET" | "DEFAULT CHARACTER SET" => {
                        known_charset(&shown)?;
                    }
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Ok(out)
}

fn known_collation(name: &str) -> SqlResult<Collation> {
    Collation::from_name(name.trim_matches(['`', '\'']))
        .ok_or_else(|| SqlError::unsupported(format!("COLLATE {name}")))
}

fn known_charset(name: &str) -> SqlResult<()> {
    match name.trim_matches(['`', '\'']).to_lowercase().as_str() {
        "utf8mb4" | "utf8mb3" | "utf8" | "ascii" | "latin1" => Ok(()),
        other => Err(SqlError::unsupported(format!("CHARACTER SET {other}"))),
    }
}

fn has_collation(def: &ColumnDef) -> bool {
    def.options
        .iter()
        .any(|o| matches!(o.option, ColumnOption::Collation(_)))
        || matches!(def.data_type, DataType::Collate(..))
}

/// A column definition put together from the parts that ALTER TABLE gives.
pub(super) fn column_def(name: &Ident, ty: &DataType, options: &[ColumnOption]) -> ColumnDef {
    ColumnDef {
        name: name.clone(),
        data_type: ty.clone(),
        options: options
            .iter()
            .map(|o| ColumnOptionDef {
                name: None,
                option: o.clone(),
            })
            .collect(),
    }
}

/// A column, and the keys its options ask for.
pub(super) fn column(session: &mut Session, def: &ColumnDef, keys: &mut Keys) -> SqlResult<Column> {
    let mut out = Column {
        name: def.name.value.clone(),
        ty: column_type(&def.data_type)?,
        nullable: true,
        default: Default::None,
        auto_increment: false,
        on_update_now: false,
        from: None,
        comment: String::new(),
    };
    for option in &def.options {
        match &option.option {
            ColumnOption::Null => out.nullable = true,
            ColumnOption::NotNull => out.nullable = false,
            ColumnOption::PrimaryKey(_) => {
                keys.primary = true;
                out.nullable = false;
            }
            ColumnOption::Unique(_) => keys.unique = true,
            ColumnOption::Comment(c) => out.comment.clone_from(c),
            ColumnOption::Collation(name) => set_collation(&mut out.ty, known_collation(&name.to_string())?),
            ColumnOption::CharacterSet(name) => known_charset(&name.to_string())?,
            ColumnOption::DialectSpecific(tokens) => match word(tokens).as_str() {
                "AUTO_INCREMENT" => {
                    out.auto_increment = true;
                    out.nullable = false;
                }
                other => return Err(SqlError::unsupported(format!("the column option {other}"))),
            },
            ColumnOption::OnUpdate(_) => out.on_update_now = true,
            // The first two are for later. A foreign key on a column is read by InnoDB and ignored.
            ColumnOption::Default(_) | ColumnOption::Check(_) | ColumnOption::ForeignKey(_) => {}
            other => return Err(SqlError::unsupported(other)),
        }
    }
    for option in &def.options {
        if let ColumnOption::Default(e) = &option.option {
            out.default = default_of(session, e, &out.ty, &out.name)?;
            if out.default == Default::Value(Value::Null) {
                if !out.nullable {
                    return Err(SqlError::new(
                        1067,
                        *b"42000",
                        format!("Invalid default value for '{}'", out.name),
                    ));
                }
                out.default = Default::None;
            }
        }
    }
    Ok(out)
}

fn word(tokens: &[Token]) -> String {
    tokens
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
        .to_uppercase()
}

fn set_collation(ty: &mut Ty, to: Collation) {
    if let Ty::Text { collation, .. } | Ty::Enum(_, collation) = ty {
        *collation = to;
    }
}

/// A DEFAULT in stored form.
pub(super) fn default_of(session: &mut Session, e: &Expr, ty: &Ty, name: &str) -> SqlResult<Default> {
    let now = match e {
        Expr::Function(f) => Some(f.name.to_string()),
        Expr::Identifier(i) if i.quote_style.is_none() => Some(i.value.clone()),
        _ => None,
    };
    if let Some(function) = now {
        let function = function.to_uppercase();
        if matches!(
            function.as_str(),
            "CURRENT_TIMESTAMP" | "NOW" | "LOCALTIME" | "LOCALTIMESTAMP"
        ) && matches!(ty, Ty::DateTime { .. })
        {
            return Ok(Default::Now);
        }
    }
    let constant = match e {
        Expr::Value(_) | Expr::Prefixed { .. } | Expr::TypedString(_) => true,
        Expr::UnaryOp {
            op: UnaryOperator::Minus | UnaryOperator::Plus,
            expr,
        } => matches!(**expr, Expr::Value(_)),
        _ => false,
    };
    if !constant {
        return Err(SqlError::unsupported(format!("DEFAULT {e}")));
    }
    let (value, from) = session.evaluate(e)?;
    let target = Target {
        column: name,
        row: 1,
        strict: true,
    };
    value::store(&value, &from, ty, target)
        .map(Default::Value)
        .map_err(|_| SqlError::new(1067, *b"42000", format!("Invalid default value for '{name}'")))
}

/// What a column added later holds in the rows that are there.
pub(super) fn fill(column: &Column, now: DateTime) -> Value {
    match &column.default {
        Default::Value(v) => v.clone(),
        Default::Now => match &column.ty {
            Ty::DateTime { fsp, .. } => Value::text(now.text(*fsp)),
            _ => Value::text(now.date_text()),
        },
        Default::None if column.nullable || column.auto_increment => Value::Null,
        Default::None => match &column.ty {
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
        },
    }
}
