//! From the `MySQL` tree to `SQLite`'s language, carrying each expression's `MySQL` type.
//!
//! Nothing is left to `SQLite`'s own typing: every conversion, comparison and ordering is written out, by the types of
//! both sides, with functions and collations of [`super::functions`]. What has no exact counterpart is refused.

pub(crate) mod cast;
pub(crate) mod compare;
mod expr;
mod from;
mod func;
mod func_time;
mod operators;
mod order;
mod select;
mod setop;

pub(crate) use expr::literal;
pub(crate) use from::table_columns;
pub(crate) use order::ordinal;
use sqlparser::ast::{Ident, ObjectName, ObjectNamePart};

use super::catalog::Catalog;
use super::temporal::DateTime;
use super::types::{ColumnMeta, Ty};
use super::value::Value;
use crate::error::{SqlError, SqlResult};

/// What the session contributes to a translation: constants of this statement.
pub(crate) trait Facts {
    /// A system variable's value and type.
    fn system(&self, scope: Option<&str>, name: &str) -> SqlResult<(Value, Ty)>;
    /// A user variable's value and type; NULL when it was never set.
    fn user(&self, name: &str) -> (Value, Ty);
    /// `CONNECTION_ID()`.
    fn connection_id(&self) -> u64;
    /// `USER()`: name and host.
    fn account(&self) -> &str;
    /// `LAST_INSERT_ID()`.
    fn last_insert_id(&self) -> u64;
    /// `FOUND_ROWS()`.
    fn found_rows(&self) -> u64;
    /// `ROW_COUNT()`.
    fn row_count(&self) -> i64;
    /// The statement's time.
    fn now(&self) -> DateTime;
    /// The chosen database.
    fn database(&self) -> Option<&str>;
    /// `VERSION()`.
    fn version(&self) -> &str;
}

/// A translated expression.
#[derive(Clone, Debug)]
pub(crate) struct Tx {
    /// In `SQLite`'s language; safe to put beside any operator.
    pub(crate) sql: String,
    pub(crate) ty: Ty,
    pub(crate) nullable: bool,
    /// Its value, if it is a literal.
    pub(crate) konst: Option<Value>,
    /// The column it is, if it is one.
    pub(crate) column: Option<Box<ColumnMeta>>,
    /// A COLLATE or BINARY was written on it.
    pub(crate) explicit: bool,
    /// Gives 0, 1 or NULL only.
    pub(crate) boolean: bool,
}

impl Tx {
    pub(crate) fn new(sql: impl Into<String>, ty: Ty, nullable: bool) -> Self {
        Self {
            sql: sql.into(),
            ty,
            nullable,
            konst: None,
            column: None,
            explicit: false,
            boolean: false,
        }
    }

    pub(crate) fn literal(value: Value, ty: Ty) -> Self {
        let nullable = value.is_null();
        let sql = value.literal();
        Self {
            konst: Some(value),
            ..Self::new(sql, ty, nullable)
        }
    }

    pub(crate) fn null() -> Self {
        Self::literal(Value::Null, Ty::Null)
    }

    pub(crate) fn int(v: i64) -> Self {
        let width = v.unsigned_abs().to_string().len() as u32 + u32::from(v < 0);
        Self::literal(
            Value::Int(v),
            Ty::Int {
                size: super::types::IntSize::Big,
                unsigned: false,
                width,
            },
        )
    }

    pub(crate) fn text(t: &str) -> Self {
        Self::literal(Value::text(t), Ty::text(t.chars().count() as u32))
    }

    fn boolean(sql: impl Into<String>, nullable: bool) -> Self {
        Self {
            boolean: true,
            ..Self::new(sql, Ty::BOOL, nullable)
        }
    }

    /// Followed by the collation an ordering or grouping of it needs.
    pub(crate) fn collated(&self) -> String {
        match self.ty.sqlite_collation() {
            Some(collation) => format!("{} COLLATE {collation}", self.sql),
            None => self.sql.clone(),
        }
    }

    /// The column description a client gets.
    pub(crate) fn meta(&self, name: &str) -> ColumnMeta {
        match &self.column {
            Some(column) => ColumnMeta {
                name: name.to_owned(),
                ..(**column).clone()
            },
            None => ColumnMeta::computed(name, self.ty.clone(), self.nullable),
        }
    }
}

/// A translated query.
#[derive(Debug)]
pub(crate) struct Translated {
    pub(crate) sql: String,
    pub(crate) columns: Vec<OutColumn>,
    /// Gives one row at most, whatever the data.
    pub(crate) single_row: bool,
    /// The same without its LIMIT, where `FOUND_ROWS()` was asked to know.
    pub(crate) unlimited: Option<String>,
}

/// A column of a query's result.
#[derive(Clone, Debug)]
pub(crate) struct OutColumn {
    pub(crate) name: String,
    pub(crate) ty: Ty,
    pub(crate) nullable: bool,
    pub(crate) meta: ColumnMeta,
}

/// A column that names may stand for.
#[derive(Clone, Debug)]
pub(crate) struct SourceColumn {
    pub(crate) name: String,
    pub(crate) tx: Tx,
    /// Left out of `*` and of unqualified names: the second of a USING pair.
    pub(crate) merged: bool,
}

/// A table, derived table or CTE in FROM.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    pub(crate) schema: String,
    pub(crate) alias: String,
    pub(crate) columns: Vec<SourceColumn>,
}

/// One SELECT's names.
#[derive(Debug, Default)]
pub(crate) struct Scope {
    pub(crate) sources: Vec<Source>,
    /// Select items by name, for GROUP BY, HAVING, ORDER BY.
    pub(crate) aliases: Vec<(String, Tx)>,
    /// Columns that USING put in front, by name.
    pub(crate) joined: Vec<String>,
    /// Whether a name means the select item before it means a column.
    pub(crate) alias_first: bool,
}

/// A common table expression in reach.
#[derive(Clone, Debug)]
struct Cte {
    name: String,
    sqlite: String,
    columns: Vec<OutColumn>,
}

/// Translates one statement.
pub(crate) struct Translator<'a> {
    pub(crate) catalog: &'a Catalog,
    pub(crate) facts: &'a dyn Facts,
    pub(crate) scopes: Vec<Scope>,
    ctes: Vec<Cte>,
    next_cte: usize,
    /// Where names are being looked up, for error 1054.
    pub(crate) clause: &'static str,
    /// An aggregate was met in the SELECT being translated.
    aggregate: bool,
    /// Whether one is allowed here.
    aggregates_allowed: bool,
    /// FOR UPDATE or the like was met.
    pub(crate) locking: bool,
    /// Tables read, for checks on what a statement may touch.
    pub(crate) tables: Vec<(String, String)>,
    /// What `VALUES(column)` stands for in ON DUPLICATE KEY UPDATE.
    pub(crate) inserted: Option<Vec<(String, Tx)>>,
    /// The text of each item of the outermost select list, as written.
    pub(crate) item_texts: Vec<String>,
    depth: usize,
}

/// The deepest nesting translated: each level takes stack.
const MAX_DEPTH: usize = 200;

impl<'a> Translator<'a> {
    pub(crate) fn new(catalog: &'a Catalog, facts: &'a dyn Facts) -> Self {
        Self {
            catalog,
            facts,
            scopes: Vec::new(),
            ctes: Vec::new(),
            next_cte: 0,
            clause: "field list",
            aggregate: false,
            aggregates_allowed: true,
            locking: false,
            tables: Vec::new(),
            inserted: None,
            item_texts: Vec::new(),
            depth: 0,
        }
    }

    /// Runs `f` one level deeper; too deep is an error rather than an overflow.
    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> SqlResult<T>) -> SqlResult<T> {
        if self.depth >= MAX_DEPTH {
            return Err(SqlError::new(
                1436,
                *b"HY000",
                "Thread stack overrun: expression nested too deeply",
            ));
        }
        self.depth += 1;
        let out = f(self);
        self.depth -= 1;
        out
    }

    /// Schema and table that a name stands for.
    pub(crate) fn table_name(&self, name: &ObjectName) -> SqlResult<(String, String)> {
        let (schema, table) = qualified(name, self.facts.database())?;
        if schema.eq_ignore_ascii_case("information_schema") {
            return Ok((schema.to_lowercase(), table.to_lowercase()));
        }
        Ok((schema, table))
    }

    /// Translates inside a clause of its own name.
    fn in_clause<T>(
        &mut self,
        clause: &'static str,
        aggregates: bool,
        f: impl FnOnce(&mut Self) -> SqlResult<T>,
    ) -> SqlResult<T> {
        let before = (self.clause, self.aggregates_allowed);
        (self.clause, self.aggregates_allowed) = (clause, aggregates);
        let out = f(self);
        (self.clause, self.aggregates_allowed) = before;
        out
    }

    /// Finds what a column name stands for.
    pub(crate) fn column(&self, parts: &[Ident]) -> SqlResult<Tx> {
        let full = parts
            .iter()
            .map(|p| p.value.as_str())
            .collect::<Vec<_>>()
            .join(".");
        let (schema, table, name) = match parts {
            [name] => (None, None, &name.value),
            [table, name] => (None, Some(&table.value), &name.value),
            [schema, table, name] => (Some(&schema.value), Some(&table.value), &name.value),
            _ => return Err(SqlError::no_column(&full, self.clause)),
        };
        for scope in self.scopes.iter().rev() {
            let alias = || {
                if table.is_some() {
                    return None;
                }
                scope
                    .aliases
                    .iter()
                    .find(|(n, _)| n.eq_ignore_ascii_case(name))
                    .map(|(_, tx)| tx.clone())
            };
            if scope.alias_first
                && let Some(tx) = alias()
            {
                return Ok(tx);
            }
            let mut found: Option<&Tx> = None;
            for source in &scope.sources {
                if table.is_some_and(|t| !t.eq_ignore_ascii_case(&source.alias))
                    || schema.is_some_and(|s| *s != source.schema)
                {
                    continue;
                }
                for column in &source.columns {
                    let visible = table.is_some() || !column.merged;
                    if visible && column.name.eq_ignore_ascii_case(name) {
                        if found.is_some() {
                            return Err(SqlError::ambiguous(&full, self.clause));
                        }
                        found = Some(&column.tx);
                    }
                }
            }
            if let Some(tx) = found {
                return Ok(tx.clone());
            }
            if let Some(tx) = alias() {
                return Ok(tx);
            }
        }
        Err(SqlError::no_column(&full, self.clause))
    }
}

/// Schema and table of a name, the chosen database filled in.
pub(crate) fn qualified(name: &ObjectName, database: Option<&str>) -> SqlResult<(String, String)> {
    match name_parts(name)?.as_slice() {
        [table] => {
            let db = database.ok_or_else(SqlError::no_database_selected)?;
            Ok((db.to_owned(), (*table).to_owned()))
        }
        [schema, table] => Ok(((*schema).to_owned(), (*table).to_owned())),
        _ => Err(SqlError::syntax(format!("near '{name}'"))),
    }
}

/// The identifiers of a dotted name.
pub(crate) fn name_parts(name: &ObjectName) -> SqlResult<Vec<&str>> {
    name.0
        .iter()
        .map(|part| match part {
            ObjectNamePart::Identifier(ident) => Ok(ident.value.as_str()),
            ObjectNamePart::Function(_) => Err(SqlError::syntax(format!("near '{name}'"))),
        })
        .collect()
}
