//! Whole rows: a zero byte, a NULL bitmap that starts at its third bit, then the values that are not NULL.

use super::super::read::{Malformed, Reader};
use super::super::text::Span;
use super::text::value_from_text;
use super::value::{Value, decode, put_value, take_bytes};
use crate::codec::ColumnDef;
use crate::protocol::ColumnType;

const WHAT: &str = "binary row";
/// The bitmap's first two bits are reserved.
const OFFSET: usize = 2;

fn bitmap_len(columns: usize) -> usize {
    (columns + 7 + OFFSET) / 8
}

fn is_null(bitmap: &[u8], column: usize) -> bool {
    let bit = column + OFFSET;
    bitmap.get(bit / 8).is_some_and(|b| b >> (bit % 8) & 1 != 0)
}

/// Replaces `spans` with the spans of the row's values, without lengths in front; [`decode`] reads what they point at.
pub fn spans(row: &[u8], types: &[ColumnType], spans: &mut Vec<Span>) -> Result<(), Malformed> {
    spans.clear();
    let total = u32::try_from(row.len()).map_err(|_| Malformed(WHAT))?;
    let mut r = Reader::new(row);
    if r.u8(WHAT)? != 0 {
        return Err(Malformed(WHAT));
    }
    let bitmap = r.take(bitmap_len(types.len()), WHAT)?;
    for (i, column_type) in types.iter().enumerate() {
        if is_null(bitmap, i) {
            spans.push(Span::NULL);
            continue;
        }
        let value = take_bytes(&mut r, column_type.binary_shape())?;
        // What is left is never longer than the row, whose length fits.
        let end = total - r.rest().len() as u32;
        spans.push(Span {
            start: end - value.len() as u32,
            end,
        });
    }
    if r.is_empty() {
        Ok(())
    } else {
        Err(Malformed(WHAT))
    }
}

/// Reads a whole row.
pub fn cells<'a>(row: &'a [u8], columns: &[ColumnDef]) -> Result<Vec<Value<'a>>, Malformed> {
    let types: Vec<ColumnType> = columns.iter().map(|c| c.column_type).collect();
    let mut at = Vec::with_capacity(types.len());
    spans(row, &types, &mut at)?;
    let value = |(span, column): (&Span, &ColumnDef)| match span.get(row) {
        Some(bytes) => decode(column.column_type, column.is_unsigned(), bytes),
        None => Ok(Value::Null),
    };
    at.iter().zip(columns).map(value).collect()
}

/// Appends a whole row. Fails, having appended an unusable part, if a value does not fit its type.
pub fn put_row(out: &mut Vec<u8>, cells: &[(ColumnType, Value<'_>)]) -> Result<(), Malformed> {
    out.push(0);
    let bitmap = out.len();
    out.resize(bitmap + bitmap_len(cells.len()), 0);
    for (i, (column_type, value)) in cells.iter().enumerate() {
        if matches!(value, Value::Null) || *column_type == ColumnType::Null {
            let bit = i + OFFSET;
            out[bitmap + bit / 8] |= 1 << (bit % 8);
        } else {
            put_value(out, *column_type, value)?;
        }
    }
    Ok(())
}

/// Appends a whole row made from the text protocol's cells, of which there must be one a column.
pub fn put_row_from_text<'a>(
    out: &mut Vec<u8>,
    columns: &[ColumnDef],
    cells: impl IntoIterator<Item = Option<&'a [u8]>>,
) -> Result<(), Malformed> {
    let mut values = Vec::with_capacity(columns.len());
    let mut cells = cells.into_iter();
    for column in columns {
        let value = match cells.next().ok_or(Malformed("a cell is missing"))? {
            Some(text) => value_from_text(column.column_type, column.is_unsigned(), text)?,
            None => Value::Null,
        };
        values.push((column.column_type, value));
    }
    put_row(out, &values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{DateTime, Time, put_text};
    use super::*;

    fn any_type() -> impl Strategy<Value = ColumnType> {
        any::<u8>().prop_filter_map("no such type", ColumnType::from_u8)
    }

    fn any_time() -> impl Strategy<Value = Time> {
        (any::<bool>(), 0..900u32, 0..60u8, 0..60u8, 0..1_000_000u32).prop_map(
            |(n, hours, minute, second, micros)| {
                let zero = (hours, minute, second, micros) == (0, 0, 0, 0);
                Time {
                    negative: n && !zero,
                    hours,
                    minute,
                    second,
                    micros,
                }
            },
        )
    }

    fn any_datetime() -> impl Strategy<Value = DateTime> {
        (
            0..9999u16,
            0..13u8,
            0..32u8,
            0..24u8,
            0..60u8,
            0..60u8,
            0..1_000_000u32,
        )
            .prop_map(|(year, month, day, hour, minute, second, micros)| DateTime {
                year,
                month,
                day,
                hour,
                minute,
                second,
                micros,
            })
    }

    #[derive(Clone, Debug)]
    enum Owned {
        Null(ColumnType),
        Tiny(i8),
        Short(u16),
        Long(i32),
        LongLong(u64),
        Double(f64),
        Bytes(Vec<u8>),
        DateTime(DateTime),
        Time(Time),
    }

    impl Owned {
        fn cell(&self) -> (ColumnType, bool, Value<'_>) {
            match self {
                Self::Null(t) => (*t, false, Value::Null),
                Self::Tiny(n) => (ColumnType::Tiny, false, Value::Int((*n).into())),
                Self::Short(n) => (ColumnType::Short, true, Value::UInt((*n).into())),
                Self::Long(n) => (ColumnType::Long, false, Value::Int((*n).into())),
                Self::LongLong(n) => (ColumnType::LongLong, true, Value::UInt(*n)),
                Self::Double(f) => (ColumnType::Double, false, Value::Double(*f)),
                Self::Bytes(b) => (ColumnType::Blob, false, Value::Bytes(b)),
                Self::DateTime(d) => (ColumnType::DateTime, false, Value::DateTime(*d)),
                Self::Time(t) => (ColumnType::Time, false, Value::Time(*t)),
            }
        }
    }

    fn any_cell() -> impl Strategy<Value = Owned> {
        prop_oneof![
            any_type().prop_map(Owned::Null),
            any::<i8>().prop_map(Owned::Tiny),
            any::<u16>().prop_map(Owned::Short),
            any::<i32>().prop_map(Owned::Long),
            any::<u64>().prop_map(Owned::LongLong),
            (-1e300..1e300f64).prop_map(Owned::Double),
            prop::collection::vec(any::<u8>(), 0..300).prop_map(Owned::Bytes),
            any_datetime().prop_map(Owned::DateTime),
            any_time().prop_map(Owned::Time),
        ]
    }

    proptest! {
        #[test]
        fn rows_come_back_and_survive_the_way_over_text(row in prop::collection::vec(any_cell(), 0..40)) {
            let cells: Vec<_> = row.iter().map(|c| (c.cell().0, c.cell().2)).collect();
            let mut out = Vec::new();
            put_row(&mut out, &cells).unwrap();
            let types: Vec<_> = cells.iter().map(|c| c.0).collect();
            let mut at = Vec::new();
            spans(&out, &types, &mut at).unwrap();
            for (cell, span) in row.iter().zip(&at) {
                let (column_type, unsigned, value) = cell.cell();
                let Some(bytes) = span.get(&out) else {
                    prop_assert_eq!(value, Value::Null);
                    continue;
                };
                prop_assert_eq!(decode(column_type, unsigned, bytes).unwrap(), value);
                let mut text = Vec::new();
                put_text(&mut text, &value, 31);
                prop_assert_eq!(value_from_text(column_type, unsigned, &text).unwrap(), value);
            }
        }

        #[test]
        fn any_bytes_are_decoded_without_a_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..200), types in prop::collection::vec(any_type(), 0..30),
            unsigned in any::<bool>(),
        ) {
            let mut at = Vec::new();
            if spans(&bytes, &types, &mut at).is_ok() {
                for (t, span) in types.iter().zip(&at) {
                    if let Some(Ok(value)) = span.get(&bytes).map(|b| decode(*t, unsigned, b)) {
                        put_text(&mut Vec::new(), &value, 6);
                    }
                }
            }
            for t in types {
                let _ = decode(t, unsigned, &bytes);
                let _ = value_from_text(t, unsigned, &bytes);
            }
        }
    }

    #[test]
    fn the_bitmap_of_rows_starts_at_its_third_bit() {
        let mut out = Vec::new();
        let nulls: Vec<_> = (0..7).map(|_| (ColumnType::Long, Value::Null)).collect();
        put_row(&mut out, &nulls).unwrap();
        assert_eq!(out, [0, 0b1111_1100, 0b0000_0001]);
    }

    #[test]
    fn a_value_that_does_not_fit_is_an_error() {
        for (t, v) in [
            (ColumnType::Tiny, Value::Int(256)),
            (ColumnType::Tiny, Value::Int(-129)),
            (ColumnType::Long, Value::UInt(1 << 32)),
            (ColumnType::Long, Value::Bytes(b"1")),
            (ColumnType::Date, Value::Time(Time::default())),
        ] {
            assert!(put_value(&mut Vec::new(), t, &v).is_err(), "{t:?}");
        }
    }

    #[test]
    fn numbers_show_as_servers_show_them() {
        let show = |v: Value<'_>, decimals| {
            let mut out = Vec::new();
            put_text(&mut out, &v, decimals);
            String::from_utf8(out).unwrap()
        };
        // Each as SELECT CAST(.. AS DOUBLE) shows it on MariaDB 10.11.
        for (f, want) in [
            (0.0, "0"),
            (1.5, "1.5"),
            (-0.001, "-0.001"),
            (1e14, "100000000000000"),
            (1e15, "1e15"),
            (123_456_789_012_345.0, "123456789012345"),
            (1e-5, "0.00001"),
            (1e-15, "0.000000000000001"),
            (1e-16, "1e-16"),
            (1.25e100, "1.25e100"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(show(Value::Double(f), 31), want);
        }
        assert_eq!(show(Value::Float(16_777_216.0), 31), "16777200");
        assert_eq!(show(Value::Float(1.1), 31), "1.1");
        assert_eq!(show(Value::Double(2.5), 2), "2.50");
        let d = DateTime::parse(b"2024-02-29 01:02:03.45").unwrap();
        assert_eq!(show(Value::DateTime(d), 3), "2024-02-29 01:02:03.450");
        assert_eq!(
            show(Value::Time(Time::parse(b"-838:59:59").unwrap()), 0),
            "-838:59:59"
        );
    }
}
