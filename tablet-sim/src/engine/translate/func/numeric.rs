//! Functions over numbers.

use crate::engine::translate::operators::{modulo, whole_divide};
use crate::engine::translate::{Tx, cast, compare};
use crate::engine::types::{Class, Ty};
use crate::engine::value::Value;
use crate::error::SqlResult;

pub(super) fn numeric(name: &str, a: &[Tx]) -> SqlResult<Option<Tx>> {
    let math = |f: &str, x: &Tx| {
        Tx::new(
            format!("my_math('{f}',{})", cast::double(x).sql),
            Ty::Double,
            true,
        )
    };
    Ok(Some(match (name, a) {
        ("ABS", [x]) => match x.ty.class() {
            Class::Int => Tx::new(
                format!("my_iabs({},{})", x.sql, u8::from(x.ty.is_unsigned())),
                x.ty.clone(),
                x.nullable,
            ),
            Class::Decimal => Tx::new(format!("my_dabs({})", x.sql), x.ty.clone(), x.nullable),
            _ => Tx::new(format!("abs({})", cast::double(x).sql), Ty::Double, x.nullable),
        },
        ("SIGN", [x]) => {
            let p = compare::pair(x, &Tx::int(0))?;
            Tx::new(
                format!("(({}) - ({}))", p.sql(">"), p.sql("<")),
                Ty::BIGINT,
                x.nullable,
            )
        }
        ("FLOOR", [x]) => whole(x, "floor"),
        ("CEIL" | "CEILING", [x]) => whole(x, "ceil"),
        ("ROUND", [x]) => round(x, &Tx::int(0), "my_dround", "my_fround"),
        ("ROUND", [x, n]) => round(x, n, "my_dround", "my_fround"),
        ("TRUNCATE", [x, n]) if matches!(x.ty.class(), Class::Int | Class::Decimal | Class::Null) => {
            round(x, n, "my_dtrunc", "")
        }
        ("MOD", [x, y]) => modulo(x, y)?,
        ("DIV", [x, y]) => whole_divide(x, y)?,
        ("POW" | "POWER", [x, y]) => Tx::new(
            format!("my_pow({},{})", cast::double(x).sql, cast::double(y).sql),
            Ty::Double,
            true,
        ),
        ("SQRT", [x]) => math("sqrt", x),
        ("EXP", [x]) => math("exp", x),
        ("LN" | "LOG", [x]) => math("ln", x),
        ("LOG2", [x]) => math("log2", x),
        ("LOG10", [x]) => math("log10", x),
        ("SIN", [x]) => math("sin", x),
        ("COS", [x]) => math("cos", x),
        ("TAN", [x]) => math("tan", x),
        ("ASIN", [x]) => math("asin", x),
        ("ACOS", [x]) => math("acos", x),
        ("ATAN", [x]) => math("atan", x),
        ("RADIANS", [x]) => math("radians", x),
        ("DEGREES", [x]) => math("degrees", x),
        _ => return Ok(None),
    }))
}

pub(super) fn whole(x: &Tx, name: &str) -> Tx {
    match x.ty.class() {
        Class::Int => Tx {
            column: None,
            ..x.clone()
        },
        Class::Decimal => {
            let (digits, _) = x.ty.digits();
            let d = format!("my_d{name}({})", x.sql);
            if digits < 18 {
                Tx::new(format!("my_dec2i({d},0)"), Ty::BIGINT, x.nullable)
            } else {
                Tx::new(d, Ty::decimal(digits + 1, 0), x.nullable)
            }
        }
        _ => Tx::new(
            format!("my_math('{name}',{})", cast::double(x).sql),
            Ty::Double,
            x.nullable,
        ),
    }
}

pub(super) fn round(x: &Tx, n: &Tx, exact: &str, double: &str) -> Tx {
    let nullable = x.nullable || n.nullable;
    let places = n.konst.as_ref().and_then(Value::as_i128);
    let digits = cast::integer(n, false).sql;
    match x.ty.class() {
        Class::Int if places.is_some_and(|p| p >= 0) => Tx {
            column: None,
            ..x.clone()
        },
        Class::Int => Tx::new(
            format!(
                "my_dec2i({exact}({},{digits}),{})",
                cast::decimal(x).sql,
                u8::from(x.ty.is_unsigned())
            ),
            x.ty.clone(),
            nullable,
        ),
        Class::Decimal => {
            let (whole, scale) = x.ty.digits();
            match places {
                Some(p) => {
                    let kept = u32::try_from(p.max(0)).unwrap_or(0).min(scale);
                    let sql = if p > i128::from(kept) {
                        x.sql.clone()
                    } else {
                        format!("{exact}({},{digits})", x.sql)
                    };
                    Tx::new(sql, Ty::decimal(whole + 1 + kept, kept), nullable)
                }
                // The scale cannot be known before the rows are: as many digits as the argument has.
                None => Tx::new(
                    format!("my_dround({exact}({},{digits}),{scale})", x.sql),
                    Ty::decimal(whole + 1 + scale, scale),
                    nullable,
                ),
            }
        }
        _ => Tx::new(
            format!("{double}({},{digits})", cast::double(x).sql),
            Ty::Double,
            nullable,
        ),
    }
}
