//! Values from the text protocol's form to the binary one's and back, as a server shows them.

use super::super::read::Malformed;
use super::temporal::{DateTime, Time};
use super::value::Value;
use crate::protocol::{BinaryShape, ColumnType};

/// Digits after the point that mean "as many as there are" (`NOT_FIXED_DEC`).
const NOT_FIXED: u8 = 31;

/// Reads a cell of the text protocol as a value of its column's type.
pub fn value_from_text(column_type: ColumnType, unsigned: bool, text: &[u8]) -> Result<Value<'_>, Malformed> {
    const WHAT: Malformed = Malformed("text that is not a value of its column's type");
    let utf8 = || std::str::from_utf8(text).map_err(|_| WHAT);
    Ok(match column_type.binary_shape() {
        BinaryShape::Null => Value::Null,
        BinaryShape::LenEnc => Value::Bytes(text),
        BinaryShape::Fixed(_) => match column_type {
            ColumnType::Float => Value::Float(utf8()?.parse().map_err(|_| WHAT)?),
            ColumnType::Double => Value::Double(utf8()?.parse().map_err(|_| WHAT)?),
            _ if unsigned || column_type == ColumnType::Year => {
                Value::UInt(utf8()?.parse().map_err(|_| WHAT)?)
            }
            _ => Value::Int(utf8()?.parse().map_err(|_| WHAT)?),
        },
        BinaryShape::Temporal => match column_type {
            ColumnType::Time | ColumnType::Time2 => Value::Time(Time::parse(text).ok_or(WHAT)?),
            ColumnType::Date | ColumnType::NewDate => Value::Date(DateTime::parse(text).ok_or(WHAT)?),
            _ => Value::DateTime(DateTime::parse(text).ok_or(WHAT)?),
        },
    })
}

/// Appends a value as the text protocol shows it; nothing for NULL. `decimals` is the column's.
pub fn put_text(out: &mut Vec<u8>, value: &Value<'_>, decimals: u8) {
    match *value {
        Value::Null => {}
        Value::Int(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::UInt(n) => out.extend_from_slice(n.to_string().as_bytes()),
        Value::Float(f) if decimals < NOT_FIXED => put_fixed(out, f64::from(f), decimals),
        // A FLOAT shows six digits (FLT_DIG), though more may be stored.
        Value::Float(f) => put_general(out, &format!("{f:.5e}")),
        Value::Double(f) if decimals < NOT_FIXED => put_fixed(out, f, decimals),
        Value::Double(f) => put_general(out, &format!("{f:e}")),
        Value::Bytes(b) => out.extend_from_slice(b),
        Value::Date(d) => d.put_date(out),
        Value::DateTime(d) => d.put_datetime(out, decimals),
        Value::Time(t) => t.put_text(out, decimals),
    }
}

fn put_fixed(out: &mut Vec<u8>, f: f64, decimals: u8) {
    out.extend_from_slice(format!("{f:.*}", usize::from(decimals)).as_bytes());
}

/// Lays out `-d.ddde±x` as servers do: plainly while the point is within fifteen digits (`DBL_DIG`), else with an
/// exponent.
fn put_general(out: &mut Vec<u8>, scientific: &str) {
    let Some((mantissa, exponent)) = scientific.split_once('e') else {
        // Not a finite number: no server stores one.
        return out.extend_from_slice(scientific.as_bytes());
    };
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |m| ("-", m));
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        trimmed => trimmed,
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    out.extend_from_slice(sign.as_bytes());
    let point = exponent + 1;
    let text = if !(-14..=15).contains(&point) {
        let rest = if digits.len() > 1 {
            format!(".{}", &digits[1..])
        } else {
            String::new()
        };
        format!("{}{rest}e{exponent}", &digits[..1])
    } else if point <= 0 {
        format!("0.{}{digits}", "0".repeat(point.unsigned_abs() as usize))
    } else if digits.len() <= point.unsigned_abs() as usize {
        format!(
            "{digits}{}",
            "0".repeat(point.unsigned_abs() as usize - digits.len())
        )
    } else {
        let (whole, rest) = digits.split_at(point.unsigned_abs() as usize);
        format!("{whole}.{rest}")
    };
    out.extend_from_slice(text.as_bytes());
}
