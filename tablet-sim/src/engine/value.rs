//! A value in the form it has inside `SQLite`, and its conversion to a column's type.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::decimal::{Decimal, numeric_prefix};
use super::temporal::{self, DateTime};
use super::types::{BytesKind, Class, IntSize, TextKind, Ty};
use crate::error::{SqlError, SqlResult};

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

/// Where a value is being stored, for the error's text.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) column: &'a str,
    pub(crate) row: usize,
    /// Without strict mode (or with IGNORE) a value is bent into range instead of refused.
    pub(crate) strict: bool,
}

/// Converts a value for storing into a column of type `to`.
pub(crate) fn store(v: &Value, from: &Ty, to: &Ty, at: Target<'_>) -> SqlResult<Value> {
    if v.is_null() {
        return Ok(Value::Null);
    }
    match to {
        Ty::Null => Ok(Value::Null),
        Ty::Int { size, unsigned, .. } => store_int(v, from, *size, *unsigned, at),
        Ty::Year => store_year(v, from, at),
        Ty::Decimal {
            precision,
            scale,
            unsigned,
        } => store_decimal(v, from, (*precision, *scale, *unsigned), at),
        Ty::Float => store_double(v, from, at).map(|d| Value::Double(f64::from(d as f32))),
        Ty::Double => store_double(v, from, at).map(Value::Double),
        Ty::Text { kind, len, .. } => store_text(v, from, *kind, *len, at),
        Ty::Enum(values, collation) => {
            let text = to_text(v, from).unwrap_or_default();
            if let Some(found) = values.iter().find(|e| collation.compare(e, &text).is_eq()) {
                return Ok(Value::text(found.clone()));
            }
            if let Some(n) = v.as_i128()
                && let Some(found) = usize::try_from(n - 1).ok().and_then(|i| values.get(i))
            {
                return Ok(Value::text(found.clone()));
            }
            if at.strict {
                Err(truncated(at))
            } else {
                Ok(Value::text(""))
            }
        }
        Ty::Json => {
            let text = to_text(v, from).unwrap_or_default();
            match serde_json::from_str::<serde_json::Value>(&text) {
                Ok(_) => Ok(Value::Text(text)),
                Err(_) => Err(SqlError::new(
                    3140,
                    *b"22032",
                    format!(
                        "Invalid JSON text: \"Invalid value.\" at position 0 in value for column '{}'.",
                        at.column
                    ),
                )),
            }
        }
        Ty::Bytes { kind, len } => store_bytes(v, from, *kind, *len, at),
        Ty::Date | Ty::DateTime { .. } | Ty::Time { .. } => store_temporal(v, from, to, at),
    }
}

fn truncated(at: Target<'_>) -> SqlError {
    SqlError::new(
        1265,
        *b"01000",
        format!("Data truncated for column '{}' at row {}", at.column, at.row),
    )
}

/// A text that must be a number all through; what follows it is an error in strict mode.
fn check_number(v: &Value, from: &Ty, kind: &str, at: Target<'_>) -> SqlResult<()> {
    let (Class::Text | Class::Bytes, true) = (from.class(), at.strict) else {
        return Ok(());
    };
    let text = to_text(v, from).unwrap_or_default();
    let trimmed = text.trim();
    let (number, _) = numeric_prefix(trimmed);
    if number.is_empty() {
        return Err(SqlError::bad_number(kind, &text, at.column, at.row));
    }
    if number.len() < trimmed.len() {
        return Err(truncated(at));
    }
    Ok(())
}

fn store_int(v: &Value, from: &Ty, size: IntSize, unsigned: bool, at: Target<'_>) -> SqlResult<Value> {
    check_number(v, from, "integer", at)?;
    let (low, high) = size.range(unsigned);
    let number = match v {
        Value::Double(d) if d.is_finite() => d.round() as i128,
        Value::Double(d) => {
            if *d > 0.0 {
                i128::MAX
            } else {
                i128::MIN
            }
        }
        _ => match v.as_i128() {
            Some(n) if from.class() == Class::Int => n,
            _ => {
                let exact = to_decimal(v, from);
                exact
                    .to_i128()
                    .unwrap_or(if exact.is_negative() { i128::MIN } else { i128::MAX })
            }
        },
    };
    if number < low || number > high {
        if at.strict {
            return Err(SqlError::out_of_range(at.column, at.row));
        }
        return Ok(Value::from_i128(number.clamp(low, high)).unwrap_or(Value::Null));
    }
    Ok(Value::from_i128(number).unwrap_or(Value::Null))
}

fn store_year(v: &Value, from: &Ty, at: Target<'_>) -> SqlResult<Value> {
    let n = to_decimal(v, from).to_i128().unwrap_or(-1);
    let year = match n {
        0 => 0,
        1..=69 => n + 2000,
        70..=99 => n + 1900,
        _ => n,
    };
    if year != 0 && !(1901..=2155).contains(&year) {
        return Err(SqlError::out_of_range(at.column, at.row));
    }
    Ok(Value::from_i128(year).unwrap_or(Value::Null))
}

fn store_decimal(
    v: &Value,
    from: &Ty,
    (precision, scale, unsigned): (u8, u8, bool),
    at: Target<'_>,
) -> SqlResult<Value> {
    check_number(v, from, "decimal", at)?;
    let exact = to_decimal(v, from).rounded(scale);
    let too_wide = exact.whole_digits() > usize::from(precision - scale);
    if too_wide || (unsigned && exact.is_negative()) {
        if at.strict {
            return Err(SqlError::out_of_range(at.column, at.row));
        }
        let edge = Decimal::largest(precision, scale);
        let bent = match (exact.is_negative(), unsigned) {
            (true, true) => Decimal::from_i128(0).rounded(scale),
            (true, false) => edge.neg(),
            (false, _) => edge,
        };
        return Ok(Value::text(bent.to_string()));
    }
    Ok(Value::text(exact.to_string()))
}

fn store_double(v: &Value, from: &Ty, at: Target<'_>) -> SqlResult<f64> {
    check_number(v, from, "double", at)?;
    let d = to_f64(v, from);
    if d.is_finite() {
        Ok(d)
    } else {
        Err(SqlError::out_of_range(at.column, at.row))
    }
}

fn store_text(v: &Value, from: &Ty, kind: TextKind, len: u32, at: Target<'_>) -> SqlResult<Value> {
    let mut text = match v {
        Value::Bytes(b) => String::from_utf8(b.clone()).map_err(|_| {
            SqlError::bad_number(
                "string",
                &String::from_utf8_lossy(b).escape_default().to_string(),
                at.column,
                at.row,
            )
        })?,
        _ => to_text(v, from).unwrap_or_default(),
    };
    let fits = |t: &str| match kind {
        TextKind::Char | TextKind::Varchar => t.len() <= len as usize || t.chars().count() <= len as usize,
        TextKind::Text(_) => t.len() as u64 <= blob_bytes(kind_bytes(kind)),
    };
    if kind == TextKind::Char {
        text.truncate(text.trim_end_matches(' ').len());
    }
    if !fits(&text) {
        let cut: String = text.chars().take(len as usize).collect();
        // Spaces past the end are cut without complaint.
        if at.strict && !(matches!(kind, TextKind::Varchar) && text[cut.len()..].chars().all(|c| c == ' ')) {
            return Err(SqlError::too_long(at.column, at.row));
        }
        text = cut;
    }
    Ok(Value::Text(text))
}

const fn kind_bytes(kind: TextKind) -> u8 {
    match kind {
        TextKind::Text(n) => n,
        _ => 4,
    }
}

const fn blob_bytes(n: u8) -> u64 {
    (1u64 << (8 * n as u64)) - 1
}

fn store_bytes(v: &Value, from: &Ty, kind: BytesKind, len: u32, at: Target<'_>) -> SqlResult<Value> {
    let mut bytes = match v {
        Value::Bytes(b) => b.clone(),
        _ => to_text(v, from).unwrap_or_default().into_bytes(),
    };
    let most = match kind {
        BytesKind::Blob(n) => blob_bytes(n),
        _ => u64::from(len),
    };
    if bytes.len() as u64 > most {
        if at.strict {
            return Err(SqlError::too_long(at.column, at.row));
        }
        bytes.truncate(usize::try_from(most).unwrap_or(usize::MAX));
    }
    if kind == BytesKind::Binary {
        bytes.resize(len as usize, 0);
    }
    Ok(Value::Bytes(bytes))
}

fn store_temporal(v: &Value, from: &Ty, to: &Ty, at: Target<'_>) -> SqlResult<Value> {
    match temporal_value(v, from, to) {
        Some(value) => Ok(value),
        None => {
            let shown = to_text(v, from).unwrap_or_default();
            Err(SqlError::bad_temporal_for(
                kind_name(to),
                &shown,
                at.column,
                at.row,
            ))
        }
    }
}

/// The word for a temporal type in error texts.
pub(crate) const fn kind_name(ty: &Ty) -> &'static str {
    match ty {
        Ty::Date => "date",
        Ty::Time { .. } => "time",
        _ => "datetime",
    }
}

/// Any value as a temporal one; nothing where it is no such thing.
pub(crate) fn temporal_value(v: &Value, from: &Ty, to: &Ty) -> Option<Value> {
    if v.is_null() {
        return Some(Value::Null);
    }
    if let (Ty::Time { fsp }, Class::Time, Value::Int(micros)) = (to, from.class(), v) {
        return Some(Value::Int(temporal::round_micros(*micros, *fsp)));
    }
    let text = match from.class() {
        Class::Time => return None,
        Class::Decimal | Class::Double => {
            let t = to_text(v, from)?;
            t.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
        _ => to_text(v, from)?,
    };
    match to {
        Ty::Date => DateTime::parse(&text).map(|d| Value::text(d.date_text())),
        Ty::DateTime { fsp, .. } => DateTime::parse(&text)?
            .rounded(*fsp)
            .map(|d| Value::text(d.text(*fsp))),
        Ty::Time { fsp } => temporal::parse_time(&text).map(|m| Value::Int(temporal::round_micros(m, *fsp))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
