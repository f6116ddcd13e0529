//! Expressions that are neither operators nor functions: literals, names, CASE, IN, subqueries, CAST.

use sqlparser::ast::{
    CaseWhen, CeilFloorKind, DataType, ExactNumberInfo, Expr, InTarget, Query, TrimWhereField,
    Value as AstValue, ValueWithSpan,
};

use super::super::collate::Collation;
use super::super::decimal::Decimal;
use super::super::types::{Class, IntSize, Ty};
use super::super::value::Value;
use super::{Translated, Translator, Tx, cast, compare};
use crate::error::{SqlError, SqlResult};

/// A literal of the statement.
pub(crate) fn literal(v: &AstValue) -> SqlResult<Tx> {
    Ok(match v {
        AstValue::Number(n, _) => number(n)?,
        AstValue::SingleQuotedString(s)
        | AstValue::DoubleQuotedString(s)
        | AstValue::NationalStringLiteral(s) => Tx::text(s),
        // `gateway/sql` keeps a string that is not UTF-8 as its bytes in hexadecimal.
        AstValue::HexStringLiteral(h) | AstValue::EscapedStringLiteral(h) => {
            let padded = if h.len().is_multiple_of(2) {
                h.clone()
            } else {
                format!("0{h}")
            };
            let bytes: Option<Vec<u8>> = padded
                .as_bytes()
                .chunks(2)
                .map(|c| {
                    std::str::from_utf8(c)
                        .ok()
                        .and_then(|c| u8::from_str_radix(c, 16).ok())
                })
                .collect();
            let bytes = bytes.ok_or_else(|| SqlError::syntax(format!("near 'x'{h}''")))?;
            let len = bytes.len() as u32;
            Tx::literal(Value::Bytes(bytes), Ty::bytes(len))
        }
        AstValue::Boolean(b) => Tx {
            boolean: true,
            ..Tx::int(i64::from(*b))
        },
        AstValue::Null => Tx::null(),
        other => return Err(SqlError::unsupported(format!("the literal {other}"))),
    })
}

fn number(n: &str) -> SqlResult<Tx> {
    let bad = || SqlError::syntax(format!("near '{n}'"));
    if n.contains(['e', 'E']) {
        let d: f64 = n.parse().map_err(|_| bad())?;
        if !d.is_finite() {
            return Err(SqlError::new(
                1367,
                *b"22007",
                format!("Illegal double '{n}' value found during parsing"),
            ));
        }
        return Ok(Tx::literal(Value::Double(d), Ty::Double));
    }
    let exact: Decimal = n.parse().map_err(|_| bad())?;
    if exact.scale() == 0
        && !n.contains('.')
        && let Some(v) = exact.to_i128().and_then(Value::from_i128)
    {
        let unsigned = matches!(v, Value::UInt(_));
        return Ok(Tx::literal(
            v,
            Ty::Int {
                size: IntSize::Big,
                unsigned,
                width: n.len() as u32,
            },
        ));
    }
    let ty = Ty::decimal(
        exact.whole_digits() as u32 + u32::from(exact.scale()),
        u32::from(exact.scale()),
    );
    Ok(Tx::literal(Value::text(exact.to_string()), ty))
}

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
                            super::super::value::kind_name(&ty).to_uppercase()
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

    fn is_null(&mut self, x: &Expr, negated: bool) -> SqlResult<Tx> {
        let tx = self.expr(x)?;
        Ok(Tx::boolean(
            format!("({} IS {}NULL)", tx.sql, if negated { "NOT " } else { "" }),
            false,
        ))
    }

    fn truth_test(&mut self, x: &Expr, test: &str) -> SqlResult<Tx> {
        let tx = self.expr(x)?;
        Ok(Tx::boolean(format!("({} {test})", compare::truth(&tx)), false))
    }

    fn between(&mut self, x: &Expr, low: &Expr, high: &Expr, negated: bool) -> SqlResult<Tx> {
        let (x, low, high) = (self.expr(x)?, self.expr(low)?, self.expr(high)?);
        let from = compare::pair(&x, &low)?.sql(">=");
        let to = compare::pair(&x, &high)?.sql("<=");
        let nullable = x.nullable || low.nullable || high.nullable;
        let not = if negated { "NOT " } else { "" };
        Ok(Tx::boolean(format!("({not}({from} AND {to}))"), nullable))
    }

    fn in_list(&mut self, x: &Expr, list: &[Expr], negated: bool) -> SqlResult<Tx> {
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

    fn in_query(&mut self, x: &Expr, query: &Query, negated: bool) -> SqlResult<Tx> {
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

    pub(super) fn tuple_equal(&mut self, a: &Expr, b: &Expr) -> SqlResult<Tx> {
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

    fn like(&mut self, x: &Expr, pattern: &Expr, escape: Option<&Expr>, negated: bool) -> SqlResult<Tx> {
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

    fn cast(&mut self, e: &Expr, ty: &DataType) -> SqlResult<Tx> {
        let x = self.expr(e)?;
        let ty = Self::cast_type(ty)?;
        Ok(match ty.class() {
            Class::Int => {
                let out = cast::integer(&x, ty.is_unsigned());
                Tx {
                    ty,
                    column: None,
                    konst: None,
                    ..out
                }
            }
            Class::Decimal => {
                let Ty::Decimal { precision, scale, .. } = ty else {
                    return Err(SqlError::internal("cast"));
                };
                let d = cast::decimal(&x);
                Tx::new(format!("my_fit({},{precision},{scale})", d.sql), ty, x.nullable)
            }
            Class::Double => Tx {
                konst: None,
                ..cast::double(&x)
            },
            Class::Text => {
                let t = cast::characters(&x);
                match ty {
                    Ty::Text { len, .. } if len != u32::MAX => {
                        Tx::new(format!("my_left({},{len})", t.sql), Ty::text(len), x.nullable)
                    }
                    _ => Tx {
                        column: None,
                        konst: None,
                        ..t
                    },
                }
            }
            Class::Bytes => Tx {
                column: None,
                konst: None,
                ..cast::bytes(&x)
            },
            _ => {
                let out = cast::temporal(&x, &ty)?;
                Tx {
                    konst: None,
                    column: None,
                    nullable: true,
                    ..out
                }
            }
        })
    }

    /// A type as CAST names them.
    fn cast_type(ty: &DataType) -> SqlResult<Ty> {
        Ok(match ty {
            DataType::Signed
            | DataType::SignedInteger
            | DataType::Int(None)
            | DataType::Integer(None)
            | DataType::BigInt(None) => Ty::BIGINT,
            DataType::Unsigned | DataType::UnsignedInteger => Ty::UBIGINT,
            DataType::Decimal(info) | DataType::Dec(info) | DataType::Numeric(info) => match info {
                ExactNumberInfo::None => Ty::decimal(10, 0),
                ExactNumberInfo::Precision(p) => Ty::decimal(*p as u32, 0),
                ExactNumberInfo::PrecisionAndScale(p, s) => {
                    Ty::decimal(*p as u32, u32::try_from(*s).unwrap_or(0))
                }
            },
            DataType::Double(_) | DataType::DoublePrecision | DataType::Real | DataType::Float(_) => {
                Ty::Double
            }
            DataType::Char(len) | DataType::Character(len) => match len {
                Some(sqlparser::ast::CharacterLength::IntegerLength { length, .. }) => {
                    Ty::text(u32::try_from(*length).unwrap_or(u32::MAX))
                }
                _ => Ty::text(u32::MAX),
            },
            DataType::Binary(None) => Ty::bytes(u32::MAX),
            DataType::Date => Ty::Date,
            DataType::Datetime(fsp) | DataType::Timestamp(fsp, _) => Ty::DateTime {
                fsp: fsp.unwrap_or(0).min(6) as u8,
                timestamp: false,
            },
            DataType::Time(fsp, _) => Ty::Time {
                fsp: fsp.unwrap_or(0).min(6) as u8,
            },
            other => return Err(SqlError::unsupported(format!("CAST AS {other}"))),
        })
    }

    fn ceil_floor(&mut self, x: &Expr, field: &CeilFloorKind, name: &str) -> SqlResult<Tx> {
        match field {
            CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime) => {
                self.named(if name == "ceil" { "CEIL" } else { "FLOOR" }, &[x])
            }
            _ => Err(SqlError::argument_count(name)),
        }
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
        _ => super::super::types::TextKind::Varchar,
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
