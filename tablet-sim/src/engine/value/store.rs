//! Storing a value into a column: converted to the column's type, and refused where it does not fit.

use super::Value;
use super::to_decimal;
use super::to_f64;
use super::to_text;
use crate::engine::decimal::{Decimal, numeric_prefix};
use crate::engine::temporal::{self, DateTime};
use crate::engine::types::{BytesKind, Class, IntSize, TextKind, Ty};
use crate::error::{SqlError, SqlResult};

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

pub(super) fn truncated(at: Target<'_>) -> SqlError {
    SqlError::new(
        1265,
        *b"01000",
        format!("Data truncated for column '{}' at row {}", at.column, at.row),
    )
}

/// A text that must be a number all through; what follows it is an error in strict mode.
pub(super) fn check_number(v: &Value, from: &Ty, kind: &str, at: Target<'_>) -> SqlResult<()> {
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

pub(super) fn store_int(
    v: &Value,
    from: &Ty,
    size: IntSize,
    unsigned: bool,
    at: Target<'_>,
) -> SqlResult<Value> {
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

pub(super) fn store_year(v: &Value, from: &Ty, at: Target<'_>) -> SqlResult<Value> {
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

pub(super) fn store_decimal(
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

pub(super) fn store_double(v: &Value, from: &Ty, at: Target<'_>) -> SqlResult<f64> {
    check_number(v, from, "double", at)?;
    let d = to_f64(v, from);
    if d.is_finite() {
        Ok(d)
    } else {
        Err(SqlError::out_of_range(at.column, at.row))
    }
}

pub(super) fn store_text(v: &Value, from: &Ty, kind: TextKind, len: u32, at: Target<'_>) -> SqlResult<Value> {
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

pub(super) const fn kind_bytes(kind: TextKind) -> u8 {
    match kind {
        TextKind::Text(n) => n,
        _ => 4,
    }
}

pub(super) const fn blob_bytes(n: u8) -> u64 {
    (1u64 << (8 * n as u64)) - 1
}

pub(super) fn store_bytes(
    v: &Value,
    from: &Ty,
    kind: BytesKind,
    len: u32,
    at: Target<'_>,
) -> SqlResult<Value> {
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

pub(super) fn store_temporal(v: &Value, from: &Ty, to: &Ty, at: Target<'_>) -> SqlResult<Value> {
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
