//! Conversions between types, and the common type of several.

use super::super::collate::Collation;
use super::super::types::{BytesKind, Class, IntSize, TextKind, Ty};
use super::super::value::{self, Value};
use super::Tx;
use crate::error::{SqlError, SqlResult};

fn fsp_of(ty: &Ty) -> u8 {
    match ty {
        Ty::DateTime { fsp, .. } | Ty::Time { fsp } => *fsp,
        _ => 0,
    }
}

/// The value as text (or bytes, where it is bytes).
pub(crate) fn text(tx: &Tx) -> Tx {
    let len = tx.ty.chars();
    let sql = match tx.ty.class() {
        Class::Text | Class::Bytes | Class::Null => return tx.clone(),
        Class::Decimal | Class::Date | Class::DateTime => tx.sql.clone(),
        Class::Int => format!("my_i2t({})", tx.sql),
        Class::Double if tx.ty == Ty::Float => format!("my_f2t({})", tx.sql),
        Class::Double => format!("my_d2t({})", tx.sql),
        Class::Time => format!("my_tm2t({},{})", tx.sql, fsp_of(&tx.ty)),
    };
    let mut out = Tx::new(sql, Ty::text(len), tx.nullable);
    out.konst = tx
        .konst
        .as_ref()
        .and_then(|k| value::to_text(k, &tx.ty))
        .map(Value::Text);
    out
}

/// The value as text even where it is bytes.
pub(crate) fn characters(tx: &Tx) -> Tx {
    if tx.ty.class() == Class::Bytes {
        return Tx::new(
            format!("my_b2t({})", tx.sql),
            Ty::text(tx.ty.chars()),
            tx.nullable,
        );
    }
    text(tx)
}

/// The value as bytes.
pub(crate) fn bytes(tx: &Tx) -> Tx {
    if tx.ty.class() == Class::Bytes {
        return tx.clone();
    }
    let t = text(tx);
    Tx::new(
        format!("CAST({} AS BLOB)", t.sql),
        Ty::bytes(t.ty.chars().saturating_mul(4)),
        tx.nullable,
    )
}

/// An ENUM in arithmetic is the position of its value, from 1; any other value stays what it is.
fn positioned(tx: &Tx) -> Option<Tx> {
    let Ty::Enum(values, _) = &tx.ty else {
        return None;
    };
    Some(Tx::new(
        enum_position(&tx.sql, values),
        Ty::Int {
            size: IntSize::Small,
            unsigned: true,
            width: 5,
        },
        tx.nullable,
    ))
}

/// The position of an ENUM's value among its values.
pub(crate) fn enum_position(sql: &str, values: &[String]) -> String {
    use std::fmt::Write as _;
    let mut out = format!("(CASE {sql}");
    for (i, v) in values.iter().enumerate() {
        // A String takes everything.
        let _ = write!(out, " WHEN {} THEN {}", value::text_literal(v), i + 1);
    }
    let _ = write!(out, " WHEN '' THEN 0 END)");
    out
}

/// The value as a double.
pub(crate) fn double(tx: &Tx) -> Tx {
    if let Some(position) = positioned(tx) {
        return double(&position);
    }
    let sql = match tx.ty.class() {
        Class::Double | Class::Null => {
            return Tx {
                ty: Ty::Double,
                ..tx.clone()
            };
        }
        Class::Int => format!("my_i2d({})", tx.sql),
        Class::Decimal => format!("my_dec2d({})", tx.sql),
        Class::Text | Class::Bytes => format!("my_t2d({})", tx.sql),
        Class::Date | Class::DateTime | Class::Time => format!("my_dec2d({})", decimal(tx).sql),
    };
    if let Some(k) = tx.konst.as_ref().filter(|k| !k.is_null()) {
        return Tx::literal(Value::Double(value::to_f64(k, &tx.ty)), Ty::Double);
    }
    Tx::new(sql, Ty::Double, tx.nullable)
}

/// The value as an exact number.
pub(crate) fn decimal(tx: &Tx) -> Tx {
    if let Some(position) = positioned(tx) {
        return decimal(&position);
    }
    let (whole, scale) = tx.ty.digits();
    let sql = match tx.ty.class() {
        Class::Decimal | Class::Null => return tx.clone(),
        Class::Int => format!("my_i2t({})", tx.sql),
        Class::Double => format!("my_d2dec({})", tx.sql),
        Class::Text | Class::Bytes => format!("my_t2dec({})", tx.sql),
        Class::Date | Class::DateTime => format!("my_dt2n({})", tx.sql),
        Class::Time => format!("my_tm2n({},{})", tx.sql, fsp_of(&tx.ty)),
    };
    let ty = Ty::decimal(whole + scale, scale);
    if let Some(k) = tx.konst.as_ref().filter(|k| !k.is_null()) {
        return Tx::literal(Value::text(value::to_decimal(k, &tx.ty).to_string()), ty);
    }
    Tx::new(sql, ty, tx.nullable)
}

/// The value as an integer, rounded; of 64 bits.
pub(crate) fn integer(tx: &Tx, unsigned: bool) -> Tx {
    if let Some(position) = positioned(tx) {
        return integer(&position, unsigned);
    }
    let flag = u8::from(unsigned);
    let sql = match tx.ty.class() {
        Class::Int
            if tx.ty.is_unsigned() == unsigned
                || !matches!(
                    tx.ty,
                    Ty::Int {
                        size: IntSize::Big,
                        ..
                    }
                ) =>
        {
            if !unsigned || tx.ty.is_unsigned() {
                return tx.clone();
            }
            format!("my_i2i({},{flag})", tx.sql)
        }
        Class::Null => return tx.clone(),
        Class::Int => format!("my_i2i({},{flag})", tx.sql),
        Class::Decimal => format!("my_dec2i({},{flag})", tx.sql),
        Class::Double => format!("my_d2i({},{flag})", tx.sql),
        Class::Text | Class::Bytes => format!("my_t2i({},{flag})", tx.sql),
        Class::Date | Class::DateTime | Class::Time => format!("my_dec2i({},{flag})", decimal(tx).sql),
    };
    Tx::new(sql, if unsigned { Ty::UBIGINT } else { Ty::BIGINT }, tx.nullable)
}

/// The value as a date or time of this type; NULL where it is none.
pub(crate) fn temporal(tx: &Tx, to: &Ty) -> SqlResult<Tx> {
    if let Some(k) = &tx.konst {
        return Ok(match value::temporal_value(k, &tx.ty, to) {
            Some(v) => Tx::literal(v, to.clone()),
            None => Tx::null(),
        });
    }
    let from = tx.ty.class();
    let plain = |sql: String| Ok(Tx::new(sql, to.clone(), true));
    let source = match from {
        Class::Null => return Ok(Tx::null()),
        Class::Double => return Err(SqlError::unsupported("a DOUBLE as a date or time")),
        Class::Time => tx.clone(),
        _ => text(tx),
    };
    match to {
        Ty::Date => match from {
            Class::Date => Ok(tx.clone()),
            Class::Time => Err(SqlError::unsupported("a TIME as a date")),
            _ => plain(format!("my_t2date({})", source.sql)),
        },
        Ty::DateTime { fsp, .. } => match from {
            Class::DateTime if fsp_of(&tx.ty) == *fsp => Ok(tx.clone()),
            Class::Time => Err(SqlError::unsupported("a TIME as a date")),
            _ => plain(format!("my_t2dt({},{fsp})", source.sql)),
        },
        Ty::Time { fsp } => match from {
            Class::Time if fsp_of(&tx.ty) == *fsp => Ok(tx.clone()),
            Class::Time => plain(format!("my_tmround({},{fsp})", tx.sql)),
            Class::Date | Class::DateTime => plain(format!("my_dt2tm({})", source.sql)),
            _ => plain(format!("my_t2tm({},{fsp})", source.sql)),
        },
        _ => Err(SqlError::internal("not a temporal type")),
    }
}

/// Converts to the common type of several expressions.
pub(crate) fn to(tx: &Tx, ty: &Ty) -> SqlResult<Tx> {
    if tx.ty == *ty {
        return Ok(tx.clone());
    }
    let mut out = match ty.class() {
        Class::Null => tx.clone(),
        Class::Int => integer(
            tx,
            ty.is_unsigned()
                && matches!(
                    ty,
                    Ty::Int {
                        size: IntSize::Big,
                        ..
                    }
                ),
        ),
        Class::Decimal => {
            let d = decimal(tx);
            let (scale, have) = (ty.digits().1, d.ty.digits().1);
            if scale == have || d.ty == Ty::Null {
                d
            } else {
                Tx::new(format!("my_dround({},{scale})", d.sql), ty.clone(), d.nullable)
            }
        }
        Class::Double => double(tx),
        Class::Text => characters(tx),
        Class::Bytes => bytes(tx),
        Class::Date | Class::DateTime | Class::Time => temporal(tx, ty)?,
    };
    out.ty = ty.clone();
    out.konst = None;
    out.column = None;
    Ok(out)
}

/// The type that holds the values of both.
pub(crate) fn common(a: &Ty, b: &Ty) -> Ty {
    use Class as C;
    if a == b {
        return a.clone();
    }
    match (a.class(), b.class()) {
        (C::Null, _) => b.clone(),
        (_, C::Null) => a.clone(),
        (C::Int, C::Int) => common_int(a, b),
        (C::Int | C::Decimal, C::Int | C::Decimal) => common_decimal(a, b),
        (C::Int | C::Decimal | C::Double, C::Int | C::Decimal | C::Double) => Ty::Double,
        (C::Bytes, _) | (_, C::Bytes) => Ty::Bytes {
            kind: bytes_kind(a, b),
            len: wire_bytes(a).max(wire_bytes(b)),
        },
        (C::Date | C::DateTime, C::DateTime) | (C::DateTime, C::Date) => Ty::DateTime {
            fsp: fsp_of(a).max(fsp_of(b)),
            timestamp: false,
        },
        (C::Time, C::Time) => Ty::Time {
            fsp: fsp_of(a).max(fsp_of(b)),
        },
        _ => {
            let collation = match (a.class(), b.class()) {
                (C::Text, C::Text) if a.collation() == Collation::Bin || b.collation() == Collation::Bin => {
                    Collation::Bin
                }
                (C::Text, _) => a.collation(),
                (_, C::Text) => b.collation(),
                _ => Collation::Ci,
            };
            let long = |t: &Ty| {
                matches!(
                    t,
                    Ty::Text {
                        kind: TextKind::Text(_),
                        ..
                    } | Ty::Json
                )
            };
            let kind = if long(a) || long(b) {
                TextKind::Text(4)
            } else {
                TextKind::Varchar
            };
            Ty::Text {
                kind,
                len: a.chars().max(b.chars()),
                collation,
            }
        }
    }
}

fn bytes_kind(a: &Ty, b: &Ty) -> BytesKind {
    let long = |t: &Ty| {
        matches!(
            t,
            Ty::Bytes {
                kind: BytesKind::Blob(_),
                ..
            } | Ty::Text {
                kind: TextKind::Text(_),
                ..
            } | Ty::Json
        )
    };
    if long(a) || long(b) {
        BytesKind::Blob(4)
    } else {
        BytesKind::Varbinary
    }
}

fn wire_bytes(t: &Ty) -> u32 {
    t.wire_length()
}

fn common_int(a: &Ty, b: &Ty) -> Ty {
    let parts = |t: &Ty| match t {
        Ty::Int {
            size,
            unsigned,
            width,
        } => (*size, *unsigned, *width),
        _ => (IntSize::Small, true, 4),
    };
    let ((sa, ua, wa), (sb, ub, wb)) = (parts(a), parts(b));
    let size = sa.max(sb);
    if ua == ub {
        return Ty::Int {
            size,
            unsigned: ua,
            width: wa.max(wb),
        };
    }
    let unsigned_size = if ua { sa } else { sb };
    if unsigned_size == IntSize::Big {
        return Ty::decimal(20, 0);
    }
    let signed = if unsigned_size == IntSize::Int {
        IntSize::Big
    } else {
        size.max(IntSize::Int)
    };
    Ty::Int {
        size: signed,
        unsigned: false,
        width: signed.width(false),
    }
}

fn common_decimal(a: &Ty, b: &Ty) -> Ty {
    let ((wa, sa), (wb, sb)) = (a.digits(), b.digits());
    let scale = sa.max(sb);
    Ty::decimal(wa.max(wb) + scale, scale)
}
