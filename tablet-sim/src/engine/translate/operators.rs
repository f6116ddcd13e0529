//! Unary and binary operators.

use sqlparser::ast::{BinaryOperator as Op, Expr, UnaryOperator};

use super::super::collate::Collation;
use super::super::types::{Class, IntSize, Ty};
use super::super::value::Value;
use super::expr::{unnested, with_collation};
use super::{Translator, Tx, cast, compare};
use crate::error::{SqlError, SqlResult};

/// What `/` adds to the dividend's scale: `div_precision_increment`.
const DIV_INCREMENT: u32 = 4;

impl Translator<'_> {
    pub(super) fn binary(&mut self, left: &Expr, op: &Op, right: &Expr) -> SqlResult<Tx> {
        if let (Op::Plus | Op::Minus, Expr::Interval(interval)) = (op, unnested(right)) {
            return self.interval(left, interval, matches!(op, Op::Minus));
        }
        if let (Op::Plus, Expr::Interval(interval)) = (op, unnested(left)) {
            return self.interval(right, interval, false);
        }
        if let (Expr::Tuple(_), Expr::Tuple(_)) = (unnested(left), unnested(right)) {
            let equal = self.tuple_equal(left, right)?;
            return match op {
                Op::Eq => Ok(equal),
                Op::NotEq => Ok(Tx::boolean(format!("(NOT {})", equal.sql), true)),
                _ => Err(SqlError::unsupported("ordering of row values")),
            };
        }
        let (a, b) = (self.expr(left)?, self.expr(right)?);
        let nullable = a.nullable || b.nullable;
        let comparison = |op: &str| Ok(Tx::boolean(compare::pair(&a, &b)?.sql(op), nullable));
        match op {
            Op::Eq => comparison("="),
            Op::NotEq => comparison("<>"),
            Op::Lt => comparison("<"),
            Op::LtEq => comparison("<="),
            Op::Gt => comparison(">"),
            Op::GtEq => comparison(">="),
            Op::Spaceship => Ok(Tx::boolean(compare::pair(&a, &b)?.sql("IS"), false)),
            Op::And => Ok(Tx::boolean(
                format!("({} AND {})", compare::truth(&a), compare::truth(&b)),
                nullable,
            )),
            Op::Or => Ok(Tx::boolean(
                format!("({} OR {})", compare::truth(&a), compare::truth(&b)),
                nullable,
            )),
            Op::Xor => Ok(Tx::boolean(
                format!("(({} <> 0) <> ({} <> 0))", compare::truth(&a), compare::truth(&b)),
                nullable,
            )),
            Op::Plus | Op::Minus | Op::Multiply => arithmetic(&a, op, &b),
            Op::Divide => divide(&a, &b),
            Op::MyIntegerDivide | Op::DuckIntegerDivide => whole_divide(&a, &b),
            Op::Modulo => modulo(&a, &b),
            Op::BitwiseAnd => Ok(bits("my_band", &a, &b)),
            Op::BitwiseOr => Ok(bits("my_bor", &a, &b)),
            Op::BitwiseXor | Op::PGBitwiseXor => Ok(bits("my_bxor", &a, &b)),
            Op::PGBitwiseShiftLeft => Ok(bits("my_shl", &a, &b)),
            Op::PGBitwiseShiftRight => Ok(bits("my_shr", &a, &b)),
            other => Err(SqlError::unsupported(format!("the operator {other}"))),
        }
    }

    pub(super) fn unary(&mut self, op: UnaryOperator, e: &Expr) -> SqlResult<Tx> {
        match op {
            UnaryOperator::Plus => self.expr(e),
            UnaryOperator::Minus => {
                let tx = self.expr(e)?;
                negate(&tx)
            }
            UnaryOperator::Not | UnaryOperator::BangNot => {
                let tx = self.expr(e)?;
                Ok(Tx::boolean(format!("(NOT {})", compare::truth(&tx)), tx.nullable))
            }
            UnaryOperator::BitwiseNot => {
                let tx = cast::integer(&self.expr(e)?, true);
                Ok(Tx::new(format!("my_bnot({})", tx.sql), Ty::UBIGINT, tx.nullable))
            }
            other => Err(SqlError::unsupported(format!("the operator {other}"))),
        }
    }

    /// `BINARY x`: the text compared byte by byte.
    pub(super) fn binary_prefix(&mut self, e: &Expr) -> SqlResult<Tx> {
        let tx = self.expr(e)?;
        Ok(if tx.ty.class() == Class::Text {
            with_collation(&tx, Collation::Bin)
        } else {
            cast::bytes(&tx)
        })
    }
}

fn negate(tx: &Tx) -> SqlResult<Tx> {
    if let (Class::Int, Some(k)) = (tx.ty.class(), &tx.konst)
        && let Some(v) = k.as_i128().map(|v| -v)
    {
        if let Ok(v) = i64::try_from(v) {
            return Ok(Tx::int(v));
        }
        let digits = v.to_string();
        let ty = Ty::decimal(digits.len() as u32 - 1, 0);
        return Ok(Tx::literal(Value::text(digits), ty));
    }
    if let (Class::Decimal, Some(Value::Text(t))) = (tx.ty.class(), &tx.konst) {
        let turned = t.strip_prefix('-').map_or_else(|| format!("-{t}"), str::to_owned);
        return Ok(Tx::literal(Value::Text(turned), tx.ty.clone()));
    }
    if let (Class::Double, Some(Value::Double(d))) = (tx.ty.class(), &tx.konst) {
        return Ok(Tx::literal(Value::Double(-d), Ty::Double));
    }
    Ok(match tx.ty.class() {
        Class::Int => Tx::new(format!("my_ineg({})", tx.sql), Ty::BIGINT, tx.nullable),
        Class::Decimal => {
            let (w, s) = tx.ty.digits();
            Tx::new(format!("my_dneg({})", tx.sql), Ty::decimal(w + s, s), tx.nullable)
        }
        Class::Null => Tx::null(),
        Class::Date | Class::DateTime | Class::Time => {
            let d = cast::decimal(tx);
            Tx::new(format!("my_dneg({})", d.sql), d.ty.clone(), tx.nullable)
        }
        _ => Tx::new(format!("(-{})", cast::double(tx).sql), Ty::Double, tx.nullable),
    })
}

/// How two operands of arithmetic meet.
enum Domain {
    Int { unsigned: bool },
    Decimal,
    Double,
}

fn domain(a: &Tx, b: &Tx) -> Domain {
    use Class as C;
    let exact = |t: &Tx| {
        matches!(
            t.ty.class(),
            C::Int | C::Decimal | C::Null | C::Date | C::DateTime | C::Time
        )
    };
    let int = |t: &Tx| matches!(t.ty.class(), C::Int | C::Null);
    if int(a) && int(b) {
        // A literal is unsigned only where it must be.
        return Domain::Int {
            unsigned: a.ty.is_unsigned() || b.ty.is_unsigned(),
        };
    }
    if exact(a) && exact(b) {
        Domain::Decimal
    } else {
        Domain::Double
    }
}

fn arithmetic(a: &Tx, op: &Op, b: &Tx) -> SqlResult<Tx> {
    let nullable = a.nullable || b.nullable;
    let (name, symbol) = match op {
        Op::Plus => ("add", '+'),
        Op::Minus => ("sub", '-'),
        _ => ("mul", '*'),
    };
    Ok(match domain(a, b) {
        Domain::Int { unsigned } => {
            let digits = |t: &Tx| t.ty.digits().0;
            let width = match op {
                Op::Multiply => digits(a) + digits(b),
                _ => digits(a).max(digits(b)) + 1,
            };
            let ty = Ty::Int {
                size: IntSize::Big,
                unsigned,
                width: (width + u32::from(!unsigned)).min(21),
            };
            Tx::new(
                format!("my_i{name}({},{},{})", a.sql, b.sql, u8::from(unsigned)),
                ty,
                nullable,
            )
        }
        Domain::Decimal => {
            let ((wa, sa), (wb, sb)) = (a.ty.digits(), b.ty.digits());
            let ty = match op {
                Op::Multiply => Ty::decimal(wa + sa + wb + sb, sa + sb),
                _ => Ty::decimal(wa.max(wb) + sa.max(sb) + 1, sa.max(sb)),
            };
            Tx::new(
                format!("my_d{name}({},{})", cast::decimal(a).sql, cast::decimal(b).sql),
                ty,
                nullable,
            )
        }
        Domain::Double => {
            let (x, y) = (cast::double(a), cast::double(b));
            Tx::new(
                format!("my_frange(({} {symbol} {}),'{symbol}')", x.sql, y.sql),
                Ty::Double,
                nullable,
            )
        }
    })
}

fn divide(a: &Tx, b: &Tx) -> SqlResult<Tx> {
    Ok(match domain(a, b) {
        Domain::Double => {
            let (x, y) = (cast::double(a), cast::double(b));
            Tx::new(
                format!("my_frange(({} / {}),'/')", x.sql, y.sql),
                Ty::Double,
                true,
            )
        }
        _ => {
            let ((wa, sa), (_, sb)) = (a.ty.digits(), b.ty.digits());
            let scale = (sa + DIV_INCREMENT).min(30);
            let ty = Ty::decimal(wa + sb + scale, scale);
            Tx::new(
                format!(
                    "my_ddiv({},{},{scale})",
                    cast::decimal(a).sql,
                    cast::decimal(b).sql
                ),
                ty,
                true,
            )
        }
    })
}

pub(super) fn whole_divide(a: &Tx, b: &Tx) -> SqlResult<Tx> {
    Ok(match domain(a, b) {
        Domain::Int { unsigned } => {
            let ty = if unsigned { Ty::UBIGINT } else { Ty::BIGINT };
            Tx::new(
                format!("my_idiv({},{},{})", a.sql, b.sql, u8::from(unsigned)),
                ty,
                true,
            )
        }
        _ => Tx::new(
            format!("my_ddivw({},{})", cast::decimal(a).sql, cast::decimal(b).sql),
            Ty::BIGINT,
            true,
        ),
    })
}

pub(super) fn modulo(a: &Tx, b: &Tx) -> SqlResult<Tx> {
    Ok(match domain(a, b) {
        Domain::Int { unsigned } => {
            // The rest has the dividend's sign.
            let unsigned = unsigned && a.ty.is_unsigned();
            let ty = if unsigned { Ty::UBIGINT } else { Ty::BIGINT };
            Tx::new(
                format!("my_imod({},{},{})", a.sql, b.sql, u8::from(unsigned)),
                ty,
                true,
            )
        }
        Domain::Decimal => {
            let ((wa, sa), (wb, sb)) = (a.ty.digits(), b.ty.digits());
            let scale = sa.max(sb);
            let ty = Ty::decimal(wa.max(wb) + scale, scale);
            Tx::new(
                format!("my_dmod({},{})", cast::decimal(a).sql, cast::decimal(b).sql),
                ty,
                true,
            )
        }
        Domain::Double => Tx::new(
            format!("my_fmod({},{})", cast::double(a).sql, cast::double(b).sql),
            Ty::Double,
            true,
        ),
    })
}

fn bits(name: &str, a: &Tx, b: &Tx) -> Tx {
    let (x, y) = (cast::integer(a, true), cast::integer(b, true));
    Tx::new(
        format!("{name}({},{})", x.sql, y.sql),
        Ty::UBIGINT,
        a.nullable || b.nullable,
    )
}
