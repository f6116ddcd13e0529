//! IS, BETWEEN, IN, LIKE.

use super::unnested;
use crate::engine::collate::Collation;
use crate::engine::translate::{Translator, Tx, cast, compare};
use crate::engine::types::Class;
use crate::error::{SqlError, SqlResult};
use sqlparser::ast::{Expr, Query};

impl Translator<'_> {
    pub(super) fn is_null(&mut self, x: &Expr, negated: bool) -> SqlResult<Tx> {
        let tx = self.expr(x)?;
        Ok(Tx::boolean(
            format!("({} IS {}NULL)", tx.sql, if negated { "NOT " } else { "" }),
            false,
        ))
    }

    pub(super) fn truth_test(&mut self, x: &Expr, test: &str) -> SqlResult<Tx> {
        let tx = self.expr(x)?;
        Ok(Tx::boolean(format!("({} {test})", compare::truth(&tx)), false))
    }

    pub(super) fn between(&mut self, x: &Expr, low: &Expr, high: &Expr, negated: bool) -> SqlResult<Tx> {
        let (x, low, high) = (self.expr(x)?, self.expr(low)?, self.expr(high)?);
        let from = compare::pair(&x, &low)?.sql(">=");
        let to = compare::pair(&x, &high)?.sql("<=");
        let nullable = x.nullable || low.nullable || high.nullable;
        let not = if negated { "NOT " } else { "" };
        Ok(Tx::boolean(format!("({not}({from} AND {to}))"), nullable))
    }

    pub(super) fn in_list(&mut self, x: &Expr, list: &[Expr], negated: bool) -> SqlResult<Tx> {
        let not = if negated { "NOT " } else { "" };
        if let Expr::Tuple(_) = unnested(x) {
            let mut parts = Vec::new();
            for item in list {
                parts.push(self.tuple_equal(x, item)?.sql);
            }
            return Ok(Tx::boolean(format!("({not}({}))", parts.join(" OR ")), true));
        }
        let x = self.expr(x)?;
        let mut nullable = x.nullable;
        let mut pairs = Vec::with_capacity(list.len());
        for item in list {
            let item = self.expr(item)?;
            nullable |= item.nullable;
            pairs.push(compare::pair(&x, &item)?);
        }
        let Some(first) = pairs.first() else {
            return Err(SqlError::syntax("near ')'"));
        };
        let same = pairs
            .iter()
            .all(|p| p.left.sql == first.left.sql && p.collation == first.collation);
        let sql = if same {
            // SQLite compares an IN list by the collation of its left side.
            let left = match first.collation {
                Some(c) => format!("{} COLLATE {c}", first.left.sql),
                None => first.left.sql.clone(),
            };
            let items: Vec<&str> = pairs.iter().map(|p| p.right.sql.as_str()).collect();
            format!("({left} {not}IN ({}))", items.join(", "))
        } else {
            let items: Vec<String> = pairs.iter().map(|p| p.sql("=")).collect();
            format!("({not}({}))", items.join(" OR "))
        };
        Ok(Tx::boolean(sql, nullable))
    }

    pub(super) fn in_query(&mut self, x: &Expr, query: &Query, negated: bool) -> SqlResult<Tx> {
        let not = if negated { "NOT " } else { "" };
        let lefts: Vec<Tx> = match unnested(x) {
            Expr::Tuple(parts) => parts.iter().map(|p| self.expr(p)).collect::<SqlResult<_>>()?,
            one => vec![self.expr(one)?],
        };
        let inner = self.nested(query)?;
        if inner.columns.len() != lefts.len() {
            return Err(SqlError::new(
                1241,
                *b"21000",
                format!("Operand should contain {} column(s)", lefts.len()),
            ));
        }
        let (mut left_sql, mut right_sql) = (Vec::new(), Vec::new());
        for (i, (left, column)) in lefts.iter().zip(&inner.columns).enumerate() {
            let right = Tx::new(format!("c{i}"), column.ty.clone(), column.nullable);
            let pair = compare::pair(left, &right)?;
            left_sql.push(match pair.collation {
                Some(c) => format!("{} COLLATE {c}", pair.left.sql),
                None => pair.left.sql,
            });
            right_sql.push(pair.right.sql);
        }
        let left = if left_sql.len() == 1 {
            left_sql.concat()
        } else {
            format!("({})", left_sql.join(", "))
        };
        Ok(Tx::boolean(
            format!(
                "({left} {not}IN (SELECT {} FROM ({})))",
                right_sql.join(", "),
                inner.sql
            ),
            true,
        ))
    }

    pub(in crate::engine::translate) fn tuple_equal(&mut self, a: &Expr, b: &Expr) -> SqlResult<Tx> {
        let (Expr::Tuple(a), Expr::Tuple(b)) = (unnested(a), unnested(b)) else {
            return Err(SqlError::new(
                1241,
                *b"21000",
                "Operand should contain 2 column(s)",
            ));
        };
        if a.len() != b.len() {
            return Err(SqlError::new(
                1241,
                *b"21000",
                format!("Operand should contain {} column(s)", a.len()),
            ));
        }
        let mut parts = Vec::new();
        for (a, b) in a.iter().zip(b) {
            let (a, b) = (self.expr(a)?, self.expr(b)?);
            parts.push(compare::pair(&a, &b)?.sql("="));
        }
        Ok(Tx::boolean(format!("({})", parts.join(" AND ")), true))
    }

    pub(super) fn like(
        &mut self,
        x: &Expr,
        pattern: &Expr,
        escape: Option<&Expr>,
        negated: bool,
    ) -> SqlResult<Tx> {
        let (x, pattern) = (self.expr(x)?, self.expr(pattern)?);
        let escape = match escape {
            Some(e) => cast::text(&self.expr(e)?).sql,
            None => "'\\'".to_owned(),
        };
        let bytes = x.ty.class() == Class::Bytes || pattern.ty.class() == Class::Bytes;
        let collation = match (x.explicit, pattern.explicit) {
            (_, true) => pattern.ty.collation(),
            _ => x.ty.collation(),
        };
        let ci = u8::from(!bytes && collation == Collation::Ci);
        let not = if negated { "NOT " } else { "" };
        Ok(Tx::boolean(
            format!(
                "({not}my_like({},{},{escape},{ci}))",
                cast::text(&x).sql,
                cast::text(&pattern).sql
            ),
            x.nullable || pattern.nullable,
        ))
    }
}
