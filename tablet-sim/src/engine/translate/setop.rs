//! UNION, INTERSECT, EXCEPT, and common table expressions.

use sqlparser::ast::{Cte as AstCte, SetExpr, SetOperator, SetQuantifier, With};

use super::super::types::Ty;
use super::super::value::quote;
use super::{Cte, OutColumn, Translated, Translator, Tx, cast};
use crate::engine::types::ColumnMeta;
use crate::error::{SqlError, SqlResult};

impl Translator<'_> {
    /// A body that is more than one SELECT.
    pub(super) fn set_body(&mut self, body: &SetExpr, types: Option<&[Ty]>) -> SqlResult<Translated> {
        match body {
            SetExpr::Select(s) => self.select(s, &[], "", types),
            SetExpr::Query(q) => {
                let inner = self.query_as(q, types)?;
                Ok(Translated {
                    sql: format!("SELECT * FROM ({})", inner.sql),
                    ..inner
                })
            }
            SetExpr::SetOperation {
                left,
                op,
                set_quantifier,
                right,
            } => self.deeper(|t| t.set_operation(left, *op, *set_quantifier, right, types)),
            SetExpr::Values(_) => Err(SqlError::unsupported("VALUES as a query")),
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn set_operation(
        &mut self,
        left: &SetExpr,
        op: SetOperator,
        quantifier: SetQuantifier,
        right: &SetExpr,
        types: Option<&[Ty]>,
    ) -> SqlResult<Translated> {
        // Once for the types, once more with them.
        let (a, b) = (self.set_body(left, None)?, self.set_body(right, None)?);
        if a.columns.len() != b.columns.len() {
            return Err(SqlError::new(
                1222,
                *b"21000",
                "The used SELECT statements have a different number of columns",
            ));
        }
        let common: Vec<Ty> = match types {
            Some(types) => types.to_vec(),
            None => a
                .columns
                .iter()
                .zip(&b.columns)
                .map(|(x, y)| cast::common(&x.ty, &y.ty))
                .collect(),
        };
        let left_sql = self.set_body(left, Some(&common))?.sql;
        let mut right_sql = self.set_body(right, Some(&common))?.sql;
        if matches!(right, SetExpr::SetOperation { .. }) {
            right_sql = format!("SELECT * FROM ({right_sql})");
        }
        let all = match quantifier {
            SetQuantifier::All => true,
            SetQuantifier::None | SetQuantifier::Distinct => false,
            _ => return Err(SqlError::syntax("near 'BY NAME'")),
        };
        let word = match (op, all) {
            (SetOperator::Union, _) => "UNION ALL",
            (SetOperator::Intersect, false) => "INTERSECT",
            (SetOperator::Except, false) => "EXCEPT",
            _ => return Err(SqlError::unsupported("INTERSECT ALL, EXCEPT ALL, MINUS")),
        };
        let mut sql = format!("{left_sql} {word} {right_sql}");
        if op == SetOperator::Union && !all {
            // DISTINCT keeps the first of equal rows, as the server does; SQLite's own UNION keeps any.
            let columns: Vec<String> = common
                .iter()
                .enumerate()
                .map(|(i, ty)| {
                    let collated = Tx::new(format!("c{i}"), ty.clone(), true).collated();
                    format!("{collated} AS c{i}")
                })
                .collect();
            sql = format!("SELECT DISTINCT {} FROM ({sql})", columns.join(", "));
        }
        let columns = a
            .columns
            .iter()
            .zip(&b.columns)
            .zip(common)
            .map(|((x, y), ty)| {
                let nullable = x.nullable || y.nullable;
                OutColumn {
                    name: x.name.clone(),
                    nullable,
                    meta: ColumnMeta::computed(x.name.clone(), ty.clone(), nullable),
                    ty,
                }
            })
            .collect();
        Ok(Translated {
            sql,
            columns,
            single_row: false,
            unlimited: None,
        })
    }

    /// `WITH ... `, and its names brought into reach.
    pub(super) fn with(&mut self, with: Option<&With>) -> SqlResult<String> {
        let Some(with) = with else {
            return Ok(String::new());
        };
        let mut parts = Vec::new();
        for cte in &with.cte_tables {
            let sqlite = format!("cte{}", self.next_cte);
            self.next_cte += 1;
            let body = if with.recursive {
                self.recursive_cte(cte, &sqlite)?
            } else {
                let inner = self.nested(&cte.query)?;
                let columns = renamed(cte, inner.columns)?;
                self.ctes.push(Cte {
                    name: cte.alias.name.value.clone(),
                    sqlite: sqlite.clone(),
                    columns,
                });
                inner.sql
            };
            parts.push(format!("{} AS ({body})", quote(&sqlite)));
        }
        let word = if with.recursive { "WITH RECURSIVE" } else { "WITH" };
        Ok(format!("{word} {} ", parts.join(", ")))
    }

    /// A CTE that may read itself: its first part gives names and types.
    fn recursive_cte(&mut self, cte: &AstCte, sqlite: &str) -> SqlResult<String> {
        let name = cte.alias.name.value.clone();
        let SetExpr::SetOperation {
            left,
            op: SetOperator::Union,
            set_quantifier,
            right,
        } = cte.query.body.as_ref()
        else {
            let inner = self.nested(&cte.query)?;
            let columns = renamed(cte, inner.columns)?;
            self.ctes.push(Cte {
                name,
                sqlite: sqlite.to_owned(),
                columns,
            });
            return Ok(inner.sql);
        };
        if cte.query.order_by.is_some() || cte.query.limit_clause.is_some() {
            return Err(SqlError::unsupported("ORDER BY or LIMIT in a recursive CTE"));
        }
        let seed = self.set_body(left, None)?;
        let types: Vec<Ty> = seed.columns.iter().map(|c| c.ty.clone()).collect();
        let columns: Vec<OutColumn> = renamed(cte, seed.columns)?
            .into_iter()
            .map(|c| OutColumn { nullable: true, ..c })
            .collect();
        self.ctes.push(Cte {
            name,
            sqlite: sqlite.to_owned(),
            columns,
        });
        let seed = self.set_body(left, Some(&types))?.sql;
        let step = self.set_body(right, Some(&types))?;
        if step.columns.len() != types.len() {
            return Err(SqlError::new(
                1222,
                *b"21000",
                "The used SELECT statements have a different number of columns",
            ));
        }
        let word = if matches!(set_quantifier, SetQuantifier::All) {
            "UNION ALL"
        } else {
            "UNION"
        };
        Ok(format!("{seed} {word} {}", step.sql))
    }
}

/// The columns under the names that `cte(a, b)` gives them.
fn renamed(cte: &AstCte, mut columns: Vec<OutColumn>) -> SqlResult<Vec<OutColumn>> {
    let names = &cte.alias.columns;
    if !names.is_empty() {
        if names.len() != columns.len() {
            return Err(SqlError::new(
                1353,
                *b"HY000",
                "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts",
            ));
        }
        for (column, name) in columns.iter_mut().zip(names) {
            column.name.clone_from(&name.name.value);
        }
    }
    Ok(columns)
}
