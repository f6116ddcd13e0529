//! One value, by its column's or parameter's type.

use super::super::read::{Malformed, Reader};
use super::super::write::put_lenenc_str;
use super::temporal::{DateTime, Time};
use crate::protocol::{BinaryShape, ColumnType};

/// A value, borrowed from its row.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A FLOAT.
    Float(f32),
    /// A DOUBLE.
    Double(f64),
    /// Text, bytes, DECIMAL (as text), BIT, JSON.
    Bytes(&'a [u8]),
    /// A DATE: its time is zero.
    Date(DateTime),
    /// A DATETIME or TIMESTAMP.
    DateTime(DateTime),
    /// A TIME.
    Time(Time),
}

/// Reads the bytes of a value: what [`super::spans`] points at, without any length in front.
pub fn decode(column_type: ColumnType, unsigned: bool, bytes: &[u8]) -> Result<Value<'_>, Malformed> {
    const WHAT: &str = "binary value";
    let mut r = Reader::new(bytes);
    let value = match column_type.binary_shape() {
        BinaryShape::Null => Value::Null,
        BinaryShape::LenEnc => return Ok(Value::Bytes(bytes)),
        BinaryShape::Temporal => return temporal(column_type, bytes),
        BinaryShape::Fixed(1) => {
            let n = r.u8(WHAT)?;
            if unsigned {
                Value::UInt(n.into())
            } else {
                Value::Int(n.cast_signed().into())
            }
        }
        BinaryShape::Fixed(2) => {
            let n = r.u16(WHAT)?;
            // YEAR has no sign, whether its flag says so or not.
            if unsigned || column_type == ColumnType::Year {
                Value::UInt(n.into())
            } else {
                Value::Int(n.cast_signed().into())
            }
        }
        BinaryShape::Fixed(4) => {
            let n = r.u32(WHAT)?;
            if column_type == ColumnType::Float {
                Value::Float(f32::from_bits(n))
            } else if unsigned {
                Value::UInt(n.into())
            } else {
                Value::Int(n.cast_signed().into())
            }
        }
        BinaryShape::Fixed(_) => {
            let n = r.u64(WHAT)?;
            if column_type == ColumnType::Double {
                Value::Double(f64::from_bits(n))
            } else if unsigned {
                Value::UInt(n)
            } else {
                Value::Int(n.cast_signed())
            }
        }
    };
    if r.is_empty() {
        Ok(value)
    } else {
        Err(Malformed(WHAT))
    }
}

fn temporal(column_type: ColumnType, bytes: &[u8]) -> Result<Value<'_>, Malformed> {
    Ok(match column_type {
        ColumnType::Time | ColumnType::Time2 => Value::Time(Time::unpack(bytes)?),
        ColumnType::Date | ColumnType::NewDate => Value::Date(DateTime::unpack(bytes)?),
        _ => Value::DateTime(DateTime::unpack(bytes)?),
    })
}

/// Takes a value's bytes from a row or from parameters, without any length in front.
pub(in crate::codec) fn take_bytes<'a>(
    r: &mut Reader<'a>,
    shape: BinaryShape,
) -> Result<&'a [u8], Malformed> {
    const WHAT: &str = "binary value";
    match shape {
        BinaryShape::Null => Ok(&[]),
        BinaryShape::Fixed(n) => r.take(usize::from(n), WHAT),
        BinaryShape::Temporal => {
            let len = r.u8(WHAT)?;
            r.take(usize::from(len), WHAT)
        }
        BinaryShape::LenEnc => r.lenenc_str(WHAT),
    }
}

/// Reads the next value, its length (if it has one) in front.
pub fn read_value<'a>(
    r: &mut Reader<'a>,
    column_type: ColumnType,
    unsigned: bool,
) -> Result<Value<'a>, Malformed> {
    decode(column_type, unsigned, take_bytes(r, column_type.binary_shape())?)
}

/// Appends a value in the layout of `column_type`, its length (if it has one) in front. Fails if the value does not fit
/// the type. NULL is nothing here: it stands in the row's bitmap.
pub fn put_value(out: &mut Vec<u8>, column_type: ColumnType, value: &Value<'_>) -> Result<(), Malformed> {
    const MISFIT: Malformed = Malformed("a value that does not fit its column's type");
    match (column_type.binary_shape(), *value) {
        (_, Value::Null) | (BinaryShape::Null, _) => {}
        (BinaryShape::Fixed(_), Value::Float(f)) if column_type == ColumnType::Float => {
            out.extend_from_slice(&f.to_le_bytes());
        }
        (BinaryShape::Fixed(_), Value::Double(f)) if column_type == ColumnType::Double => {
            out.extend_from_slice(&f.to_le_bytes());
        }
        (BinaryShape::Fixed(width), Value::Int(n)) if column_type.is_integer() => {
            let bits = u32::from(width) * 8;
            let fits = bits == 64 || (-(1i64 << (bits - 1))..1i64 << bits).contains(&n);
            out.extend_from_slice(
                fits.then(|| n.to_le_bytes())
                    .ok_or(MISFIT)?
                    .get(..width.into())
                    .ok_or(MISFIT)?,
            );
        }
        (BinaryShape::Fixed(width), Value::UInt(n)) if column_type.is_integer() => {
            let fits = width == 8 || n >> (u32::from(width) * 8) == 0;
            out.extend_from_slice(
                fits.then(|| n.to_le_bytes())
                    .ok_or(MISFIT)?
                    .get(..width.into())
                    .ok_or(MISFIT)?,
            );
        }
        (BinaryShape::Temporal, Value::Date(d) | Value::DateTime(d))
            if !matches!(column_type, ColumnType::Time | ColumnType::Time2) =>
        {
            d.pack(out);
        }
        (BinaryShape::Temporal, Value::Time(t))
            if matches!(column_type, ColumnType::Time | ColumnType::Time2) =>
        {
            t.pack(out);
        }
        (BinaryShape::LenEnc, Value::Bytes(b)) => put_lenenc_str(out, b),
        _ => return Err(MISFIT),
    }
    Ok(())
}
