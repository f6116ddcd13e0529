//! ORDER BY and LIMIT.

use sqlparser::ast::{Expr, LimitClause, OrderBy, OrderByExpr, OrderByKind, OrderBySort, Value as AstValue};

use super::super::types::Ty;
use super::{OutColumn, Translator, Tx};
use crate::error::{SqlError, SqlResult};

/// A number written in the statement, if the expression is one.
pub(crate) fn ordinal(e: &Expr) -> Option<u64> {
    match e {
        Expr::Value(v) => match &v.value {
            AstValue::Number(n, _) => n.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}

pub(crate) fn order_terms(order: &OrderBy) -> SqlResult<&[OrderByExpr]> {
    match &order.kind {
        OrderByKind::Expressions(list) => Ok(list),
        OrderByKind::All(_) => Err(SqlError::unsupported("ORDER BY ALL")),
    }
}

/// ` DESC` or nothing.
fn direction(term: &OrderByExpr) -> SqlResult<&'static str> {
    if term.options.nulls_first.is_some() || term.with_fill.is_some() {
        return Err(SqlError::syntax("near 'NULLS'"));
    }
    match &term.options.sort {
        None | Some(OrderBySort::Asc) => Ok(""),
        Some(OrderBySort::Desc) => Ok(" DESC"),
        Some(_) => Err(SqlError::unsupported("ORDER BY ... USING")),
    }
}

/// The key to sort an expression by: an ENUM sorts by the position of its value.
fn sort_key(tx: &Tx) -> String {
    if let Ty::Enum(values, _) = &tx.ty {
        return super::cast::enum_position(&tx.sql, values);
    }
    tx.collated()
}

impl Translator<'_> {
    /// ` ORDER BY ...` of a select whose items are `out`; empty if nothing orders.
    pub(crate) fn order_by(&mut self, terms: &[OrderByExpr], out: &[(String, Tx)]) -> SqlResult<String> {
        let mut parts = Vec::new();
        for term in terms {
            let direction = direction(term)?;
            let tx = if let Some(n) = ordinal(&term.expr) {
                let item = usize::try_from(n)
                    .ok()
                    .and_then(|n| n.checked_sub(1))
                    .and_then(|n| out.get(n));
                item.map(|(_, tx)| tx.clone())
                    .ok_or_else(|| SqlError::no_column(&n.to_string(), "order clause"))?
            } else {
                let plain = matches!(term.expr, Expr::Identifier(_));
                if let Some(scope) = self.scopes.last_mut() {
                    scope.alias_first = plain;
                }
                let tx = self.in_clause("order clause", true, |t| t.expr(&term.expr));
                if let Some(scope) = self.scopes.last_mut() {
                    scope.alias_first = false;
                }
                tx?
            };
            if tx.konst.is_none() {
                parts.push(format!("{}{direction}", sort_key(&tx)));
            }
        }
        Ok(if parts.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", parts.join(", "))
        })
    }

    /// ` ORDER BY ...` of a UNION: by its columns only.
    pub(crate) fn order_by_columns(terms: &[OrderByExpr], out: &[OutColumn]) -> SqlResult<String> {
        let mut parts = Vec::new();
        for term in terms {
            let direction = direction(term)?;
            let at = match (&term.expr, ordinal(&term.expr)) {
                (_, Some(n)) => usize::try_from(n)
                    .ok()
                    .and_then(|n| n.checked_sub(1))
                    .filter(|n| *n < out.len()),
                (Expr::Identifier(name), _) => {
                    out.iter().position(|c| c.name.eq_ignore_ascii_case(&name.value))
                }
                _ => return Err(SqlError::unsupported("ORDER BY an expression over a UNION")),
            };
            let at = at.ok_or_else(|| SqlError::no_column(&term.expr.to_string(), "order clause"))?;
            let tx = Tx::new(format!("c{at}"), out[at].ty.clone(), true);
            parts.push(format!("{}{direction}", sort_key(&tx)));
        }
        Ok(if parts.is_empty() {
            String::new()
        } else {
            format!(" ORDER BY {}", parts.join(", "))
        })
    }

    /// ` LIMIT n OFFSET m`.
    pub(crate) fn limit(clause: Option<&LimitClause>) -> SqlResult<String> {
        let number = |e: &Expr| {
            // A statement that is only being prepared has no number here yet.
            if matches!(e, Expr::Value(v) if matches!(v.value, AstValue::Placeholder(_))) {
                return Ok(i64::MAX);
            }
            // A limit past what SQLite counts to is no limit.
            ordinal(e)
                .map(|n| i64::try_from(n).unwrap_or(i64::MAX))
                .ok_or_else(|| SqlError::syntax(format!("near '{e}'")))
        };
        Ok(match clause {
            None => String::new(),
            Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
                format!(" LIMIT {} OFFSET {}", number(limit)?, number(offset)?)
            }
            Some(LimitClause::LimitOffset {
                limit,
                offset,
                limit_by,
            }) => {
                if !limit_by.is_empty() {
                    return Err(SqlError::syntax("near 'BY'"));
                }
                let limit = match limit {
                    Some(l) => number(l)?,
                    None => i64::MAX,
                };
                match offset {
                    Some(o) => format!(" LIMIT {limit} OFFSET {}", number(&o.value)?),
                    None => format!(" LIMIT {limit}"),
                }
            }
        })
    }
}
