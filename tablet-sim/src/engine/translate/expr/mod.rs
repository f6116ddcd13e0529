//! Expressions that are neither operators nor functions: literals, names, CASE, IN, subqueries, CAST.

mod as_type;
mod literals;
mod predicate;

use crate::engine::collate::Collation;
use crate::engine::translate::{Translated, Translator, Tx, cast, compare};
use crate::engine::types::Ty;
use crate::error::{SqlError, SqlResult};
pub(crate) use literals::literal;
use sqlparser::ast::{CaseWhen, Expr, InTarget, Query, TrimWhereField, Value as AstValue, ValueWithSpan};

impl Translator<'_> {
    /// Any expression.
    pub(crate) fn expr(&mut self, e: &Expr) -> SqlResult<Tx> {
        self.deeper(|t| t.expr_here(e))
    }

    fn expr_here(&mut self, e: &Expr) -> SqlResult<Tx> {
        match e {
            Expr::Nested(inner) => self.expr(inner),
            Expr::Value(ValueWithSpan {
                value: AstValue::Placeholder(name),
                ..
            }) => self.placeholder(name),
            Expr::Value(v) => literal(&v.value),
            Expr::Identifier(name) if name.quote_style.is_none() && name.value.starts_with('@') => {
                self.variable(&[name.value.as_str()])
            }
            Expr::Identifier(name) => self.column(std::slice::from_ref(name)),
            Expr::CompoundIdentifier(parts) => {
                if parts
                    .first()
                    .is_some_and(|p| p.quote_style.is_none() && p.value.starts_with("@@"))
                {
                    let parts: Vec<&str> = parts.iter().map(|p| p.value.as_str()).collect();
                    return self.variable(&parts);
                }
                self.column(parts)
            }
            Expr::BinaryOp { left, op, right } => self.binary(left, op, right),
            Expr::UnaryOp { op, expr } => self.unary(*op, expr),
            Expr::IsNull(x) | Expr::IsUnknown(x) => self.is_null(x, false),
            Expr::IsNotNull(x) | Expr::IsNotUnknown(x) => self.is_null(x, true),
            Expr::IsTrue(x) => self.truth_test(x, "IS TRUE"),
            Expr::IsNotTrue(x) => self.truth_test(x, "IS NOT TRUE"),
            Expr::IsFalse(x) => self.truth_test(x, "IS FALSE"),
            Expr::IsNotFalse(x) => self.truth_test(x, "IS NOT FALSE"),
            Expr::Between {
                expr,
                negated,
                low,
                high,
            } => self.between(expr, low, high, *negated),
            Expr::In {
                expr,
                target,
                negated,
                ..
            } => match target {
                InTarget::List(list) => self.in_list(expr, list, *negated),
                InTarget::Subquery(query) => self.in_query(expr, query, *negated),
                _ => Err(SqlError::syntax("near 'IN'")),
            },
            Expr::Like {
                negated,
                any: false,
                expr,
                pattern,
                escape_char,
            } => self.like(expr, pattern, escape_char.as_deref(), *negated),
            Expr::Case {
                operand,
                conditions,
                else_result,
                ..
            } => self.case(operand.as_deref(), conditions, else_result.as_deref()),
            Expr::Exists { subquery, negated } => {
                let inner = self.nested(subquery)?;
                let not = if *negated { "NOT " } else { "" };
                Ok(Tx::boolean(format!("({not}EXISTS ({}))", inner.sql), false))
            }
            Expr::Subquery(query) => self.scalar(query),
            Expr::Cast { expr, data_type, .. } => self.cast(expr, data_type),
            Expr::Convert {
                expr,
                data_type: Some(ty),
                ..
            } => self.cast(expr, ty),
            Expr::Convert {
                expr,
                data_type: None,
                charset: Some(_),
                ..
            } => Ok(cast::characters(&self.expr(expr)?)),
            Expr::Collate { expr, collation } => {
                let name = collation.to_string();
                let found = Collation::from_name(&name)
                    .ok_or_else(|| SqlError::unsupported(format!("COLLATE {name}")))?;
                Ok(with_collation(&self.expr(expr)?, found))
            }
            Expr::Prefixed { prefix, value } => {
                let tx = self.expr(value)?;
                match prefix.value.to_ascii_lowercase().as_str() {
                    "_binary" => Ok(cast::bytes(&tx)),
                    "_utf8mb4" | "_utf8" | "_utf8mb3" | "n" => Ok(tx),
                    other => Err(SqlError::unsupported(format!("the introducer {other}"))),
                }
            }
            Expr::TypedString(t) => {
                let text = t.value.value.clone().into_string().unwrap_or_default();
                let ty = Self::cast_type(&t.data_type)?;
                let out = cast::temporal(&Tx::text(&text), &ty)?;
                if out.ty == Ty::Null {
                    return Err(SqlError::new(
                        1525,
                        *b"HY000",
                        format!(
                            "Incorrect {} value: '{text}'",
                            crate::engine::value::kind_name(&ty).to_uppercase()
                        ),
                    ));
                }
                Ok(out)
            }
            Expr::Function(f) => self.function(f),
            Expr::Extract { field, expr, .. } => self.extract(&field.to_string(), expr),
            Expr::Ceil { expr, field } => self.ceil_floor(expr, field, "ceil"),
            Expr::Floor { expr, field } => self.ceil_floor(expr, field, "floor"),
            Expr::Position { expr, r#in } => self.named("LOCATE", &[expr, r#in]),
            Expr::Substring {
                expr,
                substring_from,
                substring_for,
                ..
            } => {
                let mut args: Vec<&Expr> = vec![expr];
                args.extend(substring_from.as_deref());
                args.extend(substring_for.as_deref());
                self.named("SUBSTRING", &args)
            }
            Expr::Trim {
                trim_where,
                trim_what,
                expr,
                ..
            } => {
                let what = match trim_what {
                    Some(w) => cast::text(&self.expr(w)?),
                    None => Tx::text(" "),
                };
                let mode = match trim_where {
                    None | Some(TrimWhereField::Both) => 0,
                    Some(TrimWhereField::Leading) => 1,
                    Some(TrimWhereField::Trailing) => 2,
                };
                let x = cast::text(&self.expr(expr)?);
                Ok(Tx::new(
                    format!("my_trim({},{},{mode})", x.sql, what.sql),
                    x.ty.clone(),
                    x.nullable,
                ))
            }
            Expr::RLike { .. } => Err(SqlError::unsupported("REGEXP")),
            Expr::Tuple(_) => Err(SqlError::new(
                1241,
                *b"21000",
                "Operand should contain 1 column(s)",
            )),
            other => Err(SqlError::unsupported(other)),
        }
    }

    fn placeholder(&mut self, name: &str) -> SqlResult<Tx> {
        if name.starts_with('@') {
            return self.variable(&[name]);
        }
        // A statement being prepared: its parameters have no values yet.
        Ok(Tx {
            konst: None,
            ..Tx::new("NULL", Ty::text(0), true)
        })
    }

    /// `@x`, `@@x`, `@@session.x`.
    fn variable(&mut self, parts: &[&str]) -> SqlResult<Tx> {
        let first = parts.first().copied().unwrap_or("");
        if let Some(system) = first.strip_prefix("@@") {
            let mut names: Vec<&str> = Vec::new();
            if !system.is_empty() {
                names.extend(system.split('.'));
            }
            names.extend(&parts[1..]);
            let (scope, name) = match names.as_slice() {
                [name] => (None, *name),
                [scope, name] => (Some(*scope), *name),
                _ => return Err(SqlError::syntax(format!("near '{first}'"))),
            };
            let (value, ty) = self.facts.system(scope, name)?;
            return Ok(Tx::literal(value, ty));
        }
        let (value, ty) = self.facts.user(first.trim_start_matches('@').trim_matches('`'));
        Ok(Tx {
            konst: None,
            nullable: true,
            ..Tx::literal(value, ty)
        })
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        whens: &[CaseWhen],
        otherwise: Option<&Expr>,
    ) -> SqlResult<Tx> {
        let operand = operand.map(|o| self.expr(o)).transpose()?;
        let mut conditions = Vec::new();
        let mut results = Vec::new();
        for when in whens {
            let condition = self.expr(&when.condition)?;
            conditions.push(match &operand {
                Some(o) => compare::pair(o, &condition)?.sql("="),
                None => compare::truth(&condition),
            });
            results.push(self.expr(&when.result)?);
        }
        results.push(match otherwise {
            Some(e) => self.expr(e)?,
            None => Tx::null(),
        });
        choose(&conditions, &results)
    }

    /// A subquery used as a value. Two rows are an error, not a choice.
    fn scalar(&mut self, query: &Query) -> SqlResult<Tx> {
        let inner = self.nested(query)?;
        let [column] = inner.columns.as_slice() else {
            return Err(SqlError::new(
                1241,
                *b"21000",
                "Operand should contain 1 column(s)",
            ));
        };
        let sql = if inner.single_row {
            format!("({})", inner.sql)
        } else {
            format!(
                "(SELECT CASE WHEN count(*) > 1 THEN my_raise(1242,'21000','Subquery returns more than 1 row') \
                 ELSE min(c0) END FROM ({}))",
                inner.sql
            )
        };
        Ok(Tx::new(sql, column.ty.clone(), true))
    }

    /// A query inside an expression: its aggregates are its own.
    pub(super) fn nested(&mut self, query: &Query) -> SqlResult<Translated> {
        let before = (self.aggregate, std::mem::take(&mut self.item_texts));
        let out = self.in_clause("field list", true, |t| t.query(query));
        (self.aggregate, self.item_texts) = before;
        out
    }
}

/// The expression inside parentheses.
pub(super) fn unnested(mut e: &Expr) -> &Expr {
    while let Expr::Nested(inner) = e {
        e = inner;
    }
    e
}

/// The text with a collation written on it.
pub(super) fn with_collation(tx: &Tx, collation: Collation) -> Tx {
    let mut out = cast::characters(tx);
    let len = out.ty.chars();
    let kind = match out.ty {
        Ty::Text { kind, .. } => kind,
        _ => crate::engine::types::TextKind::Varchar,
    };
    out.ty = Ty::Text { kind, len, collation };
    out.explicit = true;
    out
}

/// `CASE WHEN c THEN r ... ELSE last END`, all results in their common type.
pub(super) fn choose(conditions: &[String], results: &[Tx]) -> SqlResult<Tx> {
    use std::fmt::Write as _;
    let ty = results.iter().fold(Ty::Null, |ty, r| cast::common(&ty, &r.ty));
    let mut sql = "CASE".to_owned();
    let mut nullable = false;
    for (i, result) in results.iter().enumerate() {
        let value = cast::to(result, &ty)?;
        nullable |= value.nullable;
        let _ = match conditions.get(i) {
            Some(condition) => write!(sql, " WHEN {condition} THEN {}", value.sql),
            None => write!(sql, " ELSE {}", value.sql),
        };
    }
    sql.push_str(" END");
    Ok(Tx::new(format!("({sql})"), ty, nullable))
}
