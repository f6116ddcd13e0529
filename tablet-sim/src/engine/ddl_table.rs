//! From the tree of CREATE TABLE to a [`Table`]: columns, types, defaults, keys.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use sqlparser::ast::{
    CharacterLength, ColumnDef, ColumnOption, ColumnOptionDef, CommentDef, CreateTable, CreateTableOptions,
    DataType, EnumMember, ExactNumberInfo, Expr, Ident, IndexColumn, ReferentialAction, SqlOption,
    TableConstraint, UnaryOperator,
};
use sqlparser::tokenizer::Token;

use super::catalog::{Catalog, Check, Column, Default, ForeignKey, Index, PRIMARY, Table};
use super::collate::Collation;
use super::session::Session;
use super::temporal::DateTime;
use super::translate::{Facts, Scope, Source, Translator, compare, qualified, table_columns};
use super::types::{BytesKind, IntSize, TextKind, Ty};
use super::value::{self, Target, Value};
use crate::error::{SqlError, SqlResult};

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
            Ty::Decimal { scale, .. } => {
                Value::text(super::decimal::Decimal::from_i128(0).rounded(*scale).to_string())
            }
            Ty::Float | Ty::Double => Value::Double(0.0),
            Ty::Bytes { .. } => Value::Bytes(Vec::new()),
            Ty::Enum(values, _) => Value::text(values.first().cloned().unwrap_or_default()),
            Ty::Date => Value::text("0000-00-00"),
            Ty::DateTime { .. } => Value::text("0000-00-00 00:00:00"),
            Ty::Text { .. } | Ty::Json | Ty::Null => Value::text(""),
        },
    }
}

/// Adds a key or constraint to a table being shaped.
pub(super) fn add_constraint(
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
            let label = name(key.name.as_ref()).unwrap_or_else(|| format!("{}_ibfk_{number}", table.name));
            table.foreign_keys.push(ForeignKey {
                name: label.clone(),
                columns,
                parent_schema,
                parent,
                parent_columns,
                on_delete: action(key.on_delete.as_ref())?,
                on_update: action(key.on_update.as_ref())?,
            });
            // The server makes an index for the child's side where there is none.
            if !table.indexes.iter().any(|i| i.columns.starts_with(&positions)) {
                add_index(table, Some(label), false, positions)?;
            }
            Ok(())
        }
        TableConstraint::Check(check) => add_check(session, table, check.name.as_ref(), &check.expr),
        other => Err(SqlError::unsupported(other)),
    }
}

fn key_column(name: &str) -> SqlError {
    SqlError::new(
        1072,
        *b"42000",
        format!("Key column '{name}' doesn't exist in table"),
    )
}

fn action(a: Option<&ReferentialAction>) -> SqlResult<Option<&'static str>> {
    Ok(match a {
        None => None,
        Some(ReferentialAction::Cascade) => Some("CASCADE"),
        Some(ReferentialAction::SetNull) => Some("SET NULL"),
        Some(ReferentialAction::Restrict) => Some("RESTRICT"),
        Some(ReferentialAction::NoAction) => Some("NO ACTION"),
        Some(ReferentialAction::SetDefault) => return Err(SqlError::unsupported("ON DELETE SET DEFAULT")),
    })
}

fn add_check(session: &mut Session, table: &mut Table, name: Option<&Ident>, e: &Expr) -> SqlResult<()> {
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
pub(super) fn index_columns(table: &Table, list: &[IndexColumn], unique: bool) -> SqlResult<Vec<usize>> {
    let mut out = Vec::new();
    for item in list {
        let (name, prefix) = match &item.column.expr {
            Expr::Identifier(i) => (i.value.clone(), false),
            Expr::Function(f) => (super::ddl::last_part(&f.name)?, true),
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
pub(super) fn add_index(
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

fn exact(info: &ExactNumberInfo, unsigned: bool) -> SqlResult<Ty> {
    let (p, s) = match info {
        ExactNumberInfo::None => (10, 0),
        ExactNumberInfo::Precision(p) => (*p, 0),
        ExactNumberInfo::PrecisionAndScale(p, s) => (*p, u64::try_from(*s).unwrap_or(0)),
    };
    if p > 65 || s > 30 || s > p {
        return Err(SqlError::new(
            1426,
            *b"42000",
            format!("Too big precision {p} or scale {s} specified. Maximum is 65 and 30."),
        ));
    }
    Ok(Ty::Decimal {
        precision: (p as u8).max(1),
        scale: s as u8,
        unsigned,
    })
}

fn int(size: IntSize, unsigned: bool, width: Option<u64>) -> Ty {
    let width = width.and_then(|w| u32::try_from(w).ok()).filter(|w| *w <= 255);
    Ty::Int {
        size,
        unsigned,
        width: width.unwrap_or_else(|| size.width(unsigned)),
    }
}

fn chars(len: Option<&CharacterLength>, default: u32) -> u32 {
    match len {
        Some(CharacterLength::IntegerLength { length, .. }) => u32::try_from(*length).unwrap_or(u32::MAX),
        _ => default,
    }
}

fn fsp(n: Option<u64>) -> SqlResult<u8> {
    match n {
        None => Ok(0),
        Some(n @ 0..=6) => Ok(n as u8),
        Some(n) => Err(SqlError::new(
            1426,
            *b"42000",
            format!("Too big precision {n} specified. Maximum is 6."),
        )),
    }
}

fn text(kind: TextKind, len: u32) -> Ty {
    Ty::Text {
        kind,
        len,
        collation: Collation::Ci,
    }
}

/// A type as CREATE TABLE names it.
pub(super) fn column_type(ty: &DataType) -> SqlResult<Ty> {
    use DataType as D;
    use IntSize as S;
    Ok(match ty {
        D::TinyInt(w) => int(S::Tiny, false, *w),
        D::TinyIntUnsigned(w) => int(S::Tiny, true, *w),
        D::UTinyInt => int(S::Tiny, true, None),
        D::SmallInt(w) | D::Int2(w) => int(S::Small, false, *w),
        D::SmallIntUnsigned(w) | D::Int2Unsigned(w) => int(S::Small, true, *w),
        D::USmallInt => int(S::Small, true, None),
        D::MediumInt(w) => int(S::Medium, false, *w),
        D::MediumIntUnsigned(w) => int(S::Medium, true, *w),
        D::Int(w) | D::Integer(w) | D::Int4(w) => int(S::Int, false, *w),
        D::IntUnsigned(w) | D::IntegerUnsigned(w) | D::Int4Unsigned(w) => int(S::Int, true, *w),
        D::BigInt(w) | D::Int8(w) => int(S::Big, false, *w),
        D::BigIntUnsigned(w) | D::Int8Unsigned(w) => int(S::Big, true, *w),
        D::UBigInt => int(S::Big, true, None),
        D::Bool | D::Boolean => int(S::Tiny, false, Some(1)),
        D::Decimal(i) | D::Dec(i) | D::Numeric(i) => exact(i, false)?,
        D::DecimalUnsigned(i) | D::DecUnsigned(i) => exact(i, true)?,
        D::Float(ExactNumberInfo::None) | D::Float4 => Ty::Float,
        D::Float(ExactNumberInfo::Precision(p)) if *p <= 24 => Ty::Float,
        D::Float(ExactNumberInfo::Precision(_))
        | D::Double(ExactNumberInfo::None)
        | D::DoublePrecision
        | D::Real
        | D::Float8 => Ty::Double,
        D::Char(len) | D::Character(len) => text(TextKind::Char, chars(len.as_ref(), 1)),
        D::Varchar(len) | D::CharacterVarying(len) | D::CharVarying(len) | D::Nvarchar(len) => {
            text(TextKind::Varchar, chars(len.as_ref(), 1))
        }
        D::TinyText => text(TextKind::Text(1), 255),
        D::Text => text(TextKind::Text(2), 65_535),
        D::MediumText => text(TextKind::Text(3), 16_777_215),
        D::LongText => text(TextKind::Text(4), u32::MAX),
        D::Binary(len) => Ty::Bytes {
            kind: BytesKind::Binary,
            len: len.map_or(1, |l| l as u32),
        },
        D::Varbinary(len) => Ty::Bytes {
            kind: BytesKind::Varbinary,
            len: match len {
                Some(sqlparser::ast::BinaryLength::IntegerLength { length }) => *length as u32,
                _ => 1,
            },
        },
        D::TinyBlob => Ty::Bytes {
            kind: BytesKind::Blob(1),
            len: 255,
        },
        D::Blob(_) => Ty::Bytes {
            kind: BytesKind::Blob(2),
            len: 65_535,
        },
        D::MediumBlob => Ty::Bytes {
            kind: BytesKind::Blob(3),
            len: 16_777_215,
        },
        D::LongBlob => Ty::Bytes {
            kind: BytesKind::Blob(4),
            len: u32::MAX,
        },
        D::JSON => Ty::Json,
        D::Date => Ty::Date,
        D::Datetime(n) => Ty::DateTime {
            fsp: fsp(*n)?,
            timestamp: false,
        },
        D::Timestamp(n, _) => Ty::DateTime {
            fsp: fsp(*n)?,
            timestamp: true,
        },
        D::Time(n, _) => Ty::Time { fsp: fsp(*n)? },
        D::Enum(members, _) => {
            let names = members
                .iter()
                .map(|m| match m {
                    EnumMember::Name(n) => Ok(n.clone()),
                    EnumMember::NamedValue(..) => Err(SqlError::syntax("near 'ENUM'")),
                })
                .collect::<SqlResult<Vec<_>>>()?;
            Ty::Enum(names.into(), Collation::Ci)
        }
        D::Collate(inner, name) => {
            let mut ty = column_type(inner)?;
            set_collation(&mut ty, known_collation(&name.to_string())?);
            ty
        }
        D::Custom(name, _) if name.to_string().eq_ignore_ascii_case("year") => Ty::Year,
        other => return Err(SqlError::unsupported(format!("the column type {other}"))),
    })
}
