//! A value in the form it has inside `SQLite`, and its conversion to a column's type.

mod store;

pub(crate) use store::{Target, kind_name, store, temporal_value};

use crate::engine::decimal::{Decimal, numeric_prefix};
use crate::engine::temporal::{self};
use crate::engine::types::{Class, Ty};
use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

/// A value, formed as its type says in [`super::types`].
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    /// Above `i64::MAX` only.
    UInt(u64),
    Double(f64),
    Text(String),
    Bytes(Vec<u8>),
}

impl Value {
    /// An integer of either sign; nothing beyond 64 bits.
    pub(crate) fn from_i128(v: i128) -> Option<Self> {
        match i64::try_from(v) {
            Ok(v) => Some(Self::Int(v)),
            Err(_) => u64::try_from(v).ok().map(Self::UInt),
        }
    }

    pub(crate) fn text(s: impl Into<String>) -> Self {
        Self::Text(s.into())
    }

    pub(crate) const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Takes a value out of `SQLite`; `ty` tells a large integer from bytes.
    pub(crate) fn from_ref(v: ValueRef<'_>, ty: &Ty) -> Self {
        match v {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(i) => Self::Int(i),
            ValueRef::Real(r) => Self::Double(r),
            ValueRef::Text(t) => Self::Text(String::from_utf8_lossy(t).into_owned()),
            ValueRef::Blob(b) => match (ty.class(), <[u8; 8]>::try_from(b)) {
                (Class::Int, Ok(wide)) => Self::UInt(u64::from_be_bytes(wide)),
                _ => Self::Bytes(b.to_vec()),
            },
        }
    }

    /// A literal of this value in `SQLite`'s language.
    pub(crate) fn literal(&self) -> String {
        match self {
            Self::Null => "NULL".to_owned(),
            Self::Int(i64::MIN) => "(-9223372036854775807-1)".to_owned(),
            Self::Int(v) if *v < 0 => format!("({v})"),
            Self::Int(v) => v.to_string(),
            Self::UInt(v) => format!("x'{v:016x}'"),
            Self::Double(v) => double_literal(*v),
            Self::Text(t) => text_literal(t),
            Self::Bytes(b) => hex_literal(b),
        }
    }

    /// The integer in it.
    pub(crate) fn as_i128(&self) -> Option<i128> {
        match self {
            Self::Int(v) => Some(i128::from(*v)),
            Self::UInt(v) => Some(i128::from(*v)),
            _ => None,
        }
    }
}

impl ToSql for Value {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Self::Int(v) => ToSqlOutput::Borrowed(ValueRef::Integer(*v)),
            Self::UInt(v) => ToSqlOutput::Owned(rusqlite::types::Value::Blob(v.to_be_bytes().to_vec())),
            Self::Double(v) => ToSqlOutput::Borrowed(ValueRef::Real(*v)),
            Self::Text(t) => ToSqlOutput::Borrowed(ValueRef::Text(t.as_bytes())),
            Self::Bytes(b) => ToSqlOutput::Borrowed(ValueRef::Blob(b)),
        })
    }
}

fn double_literal(v: f64) -> String {
    if v == f64::INFINITY {
        return "9e999".to_owned();
    }
    if v == f64::NEG_INFINITY {
        return "(-9e999)".to_owned();
    }
    let text = format!("{v:e}");
    if v < 0.0 { format!("({text})") } else { text }
}

/// A text as `SQLite` writes it; one with a NUL inside goes through its bytes.
pub(crate) fn text_literal(t: &str) -> String {
    if t.contains('\0') {
        return format!("CAST({} AS TEXT)", hex_literal(t.as_bytes()));
    }
    format!("'{}'", t.replace('\'', "''"))
}

fn hex_literal(b: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut out = String::with_capacity(b.len() * 2 + 3);
    out.push_str("x'");
    for byte in b {
        let _ = write!(out, "{byte:02x}"); // a String takes everything
    }
    out.push('\'');
    out
}

/// A name as `SQLite` quotes it.
pub(crate) fn quote(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A double as the server prints it: shortest, with an exponent beyond fifteen digits.
pub(crate) fn double_text(v: f64) -> String {
    shortest(&format!("{v:e}"))
}

/// The same for single precision, which shows six digits (`FLT_DIG`), though more are stored.
pub(crate) fn float_text(v: f32) -> String {
    let rounded = format!("{v:.5e}");
    let (mantissa, exponent) = rounded.split_once('e').unwrap_or((&rounded, "0"));
    shortest(&format!(
        "{}e{exponent}",
        mantissa.trim_end_matches('0').trim_end_matches('.')
    ))
}

fn shortest(scientific: &str) -> String {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        return scientific.to_owned();
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if !(-15..15).contains(&exponent) {
        return format!("{mantissa}e{exponent}");
    }
    let (sign, digits) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest.replace('.', "")),
        None => ("", mantissa.replace('.', "")),
    };
    let point = exponent + 1;
    if point <= 0 {
        if digits == "0" {
            return format!("{sign}0");
        }
        return format!(
            "{sign}0.{}{digits}",
            "0".repeat(usize::try_from(-point).unwrap_or(0))
        );
    }
    let point = usize::try_from(point).unwrap_or(0);
    if digits.len() <= point {
        return format!("{sign}{digits}{}", "0".repeat(point - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..point], &digits[point..])
}

/// The value as text, as the server would print it.
pub(crate) fn to_text(v: &Value, ty: &Ty) -> Option<String> {
    Some(match v {
        Value::Null => return None,
        Value::Int(i) => match ty {
            Ty::Time { fsp } => temporal::time_text(*i, *fsp),
            _ => i.to_string(),
        },
        Value::UInt(u) => u.to_string(),
        Value::Double(d) => {
            if matches!(ty, Ty::Float) {
                float_text(*d as f32)
            } else {
                double_text(*d)
            }
        }
        Value::Text(t) => t.clone(),
        Value::Bytes(b) => String::from_utf8_lossy(b).into_owned(),
    })
}

/// The value as a double, as the server converts in arithmetic.
pub(crate) fn to_f64(v: &Value, ty: &Ty) -> f64 {
    match v {
        Value::Null => 0.0,
        Value::Int(i) if matches!(ty.class(), Class::Time) => {
            temporal_number(&temporal::time_text(*i, 6)).to_f64()
        }
        #[allow(clippy::cast_precision_loss)] // that is what a conversion to double is
        Value::Int(i) => *i as f64,
        #[allow(clippy::cast_precision_loss)] // as above
        Value::UInt(u) => *u as f64,
        Value::Double(d) => *d,
        Value::Text(t) => match ty.class() {
            Class::Date | Class::DateTime => temporal_number(t).to_f64(),
            _ => text_number(t),
        },
        Value::Bytes(b) => text_number(&String::from_utf8_lossy(b)),
    }
}

/// The number a text begins with.
pub(crate) fn text_number(t: &str) -> f64 {
    numeric_prefix(t.trim_start()).0.parse().unwrap_or(0.0)
}

/// `2024-01-31 10:20:30.5` as `20240131102030.5`.
pub(crate) fn temporal_number(t: &str) -> Decimal {
    let digits: String = t.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
    let signed = if t.starts_with('-') {
        format!("-{digits}")
    } else {
        digits
    };
    Decimal::prefix(&signed)
}

/// The value as an exact number.
pub(crate) fn to_decimal(v: &Value, ty: &Ty) -> Decimal {
    match v {
        Value::Null => Decimal::from_i128(0),
        Value::Int(i) if matches!(ty.class(), Class::Time) => {
            let fsp = if let Ty::Time { fsp } = ty { *fsp } else { 0 };
            temporal_number(&temporal::time_text(*i, fsp))
        }
        Value::Int(i) => Decimal::from_i128(i128::from(*i)),
        Value::UInt(u) => Decimal::from_i128(i128::from(*u)),
        Value::Double(d) => Decimal::from_f64(*d).unwrap_or_else(|| Decimal::from_i128(0)),
        Value::Text(t) => match ty.class() {
            Class::Date | Class::DateTime => temporal_number(t),
            _ => Decimal::prefix(t),
        },
        Value::Bytes(b) => Decimal::prefix(&String::from_utf8_lossy(b)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::types::IntSize;

    fn at(strict: bool) -> Target<'static> {
        Target {
            column: "c",
            row: 1,
            strict,
        }
    }

    #[test]
    fn doubles_print_as_the_server_prints_them() {
        for (v, want) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.001, "-0.001"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (1e-5, "0.00001"),
            (1e-16, "1e-16"),
            (123_456.789, "123456.789"),
            (-1.25e30, "-1.25e30"),
        ] {
            assert_eq!(double_text(v), want);
        }
        assert_eq!(float_text(0.1), "0.1");
    }

    #[test]
    fn integers_are_checked_against_their_column() {
        let tiny = Ty::Int {
            size: IntSize::Tiny,
            unsigned: false,
            width: 4,
        };
        let text = Ty::text(10);
        assert_eq!(
            store(&Value::text("12"), &text, &tiny, at(true)),
            Ok(Value::Int(12))
        );
        assert_eq!(
            store(&Value::Int(128), &Ty::BIGINT, &tiny, at(true))
                .unwrap_err()
                .code,
            1264
        );
        assert_eq!(
            store(&Value::Int(128), &Ty::BIGINT, &tiny, at(false)),
            Ok(Value::Int(127))
        );
        assert_eq!(
            store(&Value::text("x"), &text, &tiny, at(true)).unwrap_err().code,
            1366
        );
        assert_eq!(
            store(&Value::text("1x"), &text, &tiny, at(true))
                .unwrap_err()
                .code,
            1265
        );
        let big = Value::text("18446744073709551615");
        assert_eq!(
            store(&big, &text, &Ty::UBIGINT, at(true)),
            Ok(Value::UInt(u64::MAX))
        );
    }

    #[test]
    fn decimals_round_to_their_scale_and_refuse_what_is_too_wide() {
        let d = Ty::decimal(5, 2);
        let text = Ty::text(10);
        assert_eq!(
            store(&Value::text("1.005"), &text, &d, at(true)),
            Ok(Value::text("1.01"))
        );
        assert_eq!(
            store(&Value::text("1000"), &text, &d, at(true)).unwrap_err().code,
            1264
        );
        assert_eq!(
            store(&Value::text("-1000"), &text, &d, at(false)),
            Ok(Value::text("-999.99"))
        );
    }
}
