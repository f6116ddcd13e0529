//! From a literal to the value a column holds, exactly as the server does it, or not at all.
//!
//! Two questions differ and are answered apart: which stored value *equals* the literal in a comparison
//! ([`compare`]), and which value an INSERT of the literal *stores* ([`store`]). `5.5` equals no integer, but an
//! INSERT of it stores 6. Wherever the server's answer depends on something not seen here (sql modes, time zones,
//! whether an index is used), the outcome is `Unknown`: a read scatters, a write is refused.

use super::collation::{Collation, Pad};
use super::column::{ColumnType, StringKind};
use super::value::Value;

/// Integers up to here are exact as doubles, so a comparison done in doubles and one done in integers agree.
const EXACT_DOUBLE: i128 = 1 << 53;

/// What a literal means next to a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Coerced {
    /// This value of the column's own type, and no other (up to the column's collation).
    Exact(Value),
    /// No stored value can be equal to the literal.
    NoMatch,
    /// Not known exactly.
    Unknown(&'static str),
}

/// The stored value that `column = value` matches.
#[must_use]
pub fn compare(value: &Value, column: &ColumnType) -> Coerced {
    if value.is_null() {
        return Coerced::NoMatch;
    }
    match column {
        ColumnType::Int { width, unsigned } => compare_integer(value, width.bounds(*unsigned), *unsigned),
        ColumnType::Decimal {
            precision, scale: 0, ..
        } => compare_integer(value, decimal_bounds(*precision), false),
        ColumnType::Year => year(value),
        ColumnType::Char { kind, collation, .. } => compare_char(value, *kind, collation),
        ColumnType::Binary { kind, length } => compare_binary(value, *kind, *length),
        ColumnType::Enum { values, .. } => member(value, values),
        ColumnType::Date => date(value),
        ColumnType::DateTime { fsp: 0 } => datetime(value),
        other => unknown_type(other),
    }
}

/// The value that an INSERT or UPDATE of `value` stores. Never `NoMatch`.
#[must_use]
pub fn store(value: &Value, column: &ColumnType) -> Coerced {
    if value.is_null() {
        return Coerced::Exact(Value::Null);
    }
    let coerced = match column {
        ColumnType::Int { width, unsigned } => store_integer(value, width.bounds(*unsigned), *unsigned),
        ColumnType::Decimal {
            precision, scale: 0, ..
        } => store_integer(value, decimal_bounds(*precision), false),
        ColumnType::Year => year(value),
        ColumnType::Char {
            kind,
            length,
            collation,
        } => store_char(value, *kind, *length, collation),
        ColumnType::Binary { kind, length } => store_binary(value, *kind, *length),
        ColumnType::Enum { values, .. } => member(value, values),
        ColumnType::Date => date(value),
        ColumnType::DateTime { fsp: 0 } => datetime(value),
        other => unknown_type(other),
    };
    match coerced {
        Coerced::NoMatch => Coerced::Unknown("out of the column's range"),
        known => known,
    }
}

fn unknown_type(column: &ColumnType) -> Coerced {
    Coerced::Unknown(match column {
        ColumnType::Timestamp { .. } => "a TIMESTAMP depends on the session's time zone",
        ColumnType::Float | ColumnType::Double => "approximate numbers have no exact equality",
        ColumnType::Decimal { .. } => "a DECIMAL with a scale has several texts for one value",
        ColumnType::Json => "JSON has several texts for one value",
        ColumnType::Bit { .. } | ColumnType::Set { .. } => "its values are compared by number",
        ColumnType::DateTime { .. } | ColumnType::Time { .. } => "times have several texts for one value",
        ColumnType::Int { .. }
        | ColumnType::Char { .. }
        | ColumnType::Binary { .. }
        | ColumnType::Date
        | ColumnType::Year
        | ColumnType::Enum { .. }
        | ColumnType::Other(_) => "a column type without known equality",
    })
}

fn decimal_bounds(precision: u8) -> (i128, i128) {
    // Integers beyond 64 bits have no `Value`; a precision past 38 only widens what is out of reach anyway.
    let limit = 10i128
        .checked_pow(u32::from(precision))
        .map_or(i128::MAX, |p| p - 1);
    (-limit, limit)
}

fn integer_value(v: i128, unsigned: bool) -> Coerced {
    if unsigned && let Ok(v) = u64::try_from(v) {
        return Coerced::Exact(Value::UInt(v));
    }
    if let Ok(v) = i64::try_from(v) {
        return Coerced::Exact(Value::Int(v));
    }
    u64::try_from(v).map_or(Coerced::Unknown("an integer beyond 64 bits"), |v| {
        Coerced::Exact(Value::UInt(v))
    })
}

fn in_bounds(v: i128, (min, max): (i128, i128), unsigned: bool) -> Coerced {
    if v < min || v > max {
        Coerced::NoMatch
    } else {
        integer_value(v, unsigned)
    }
}

fn compare_integer(value: &Value, bounds: (i128, i128), unsigned: bool) -> Coerced {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) => {
            number(value, bounds, unsigned, Coerced::NoMatch)
        }
        Value::Text(text) => match canonical_integer(text) {
            // Servers compare a string constant with an integer column as doubles or as integers, by version.
            Some(v) if v.abs() <= EXACT_DOUBLE => in_bounds(v, bounds, unsigned),
            Some(_) => Coerced::Unknown("a long number written as text may be compared inexactly"),
            None => Coerced::Unknown("text that is not a plain integer is compared by its leading number"),
        },
        Value::Bytes(_) => Coerced::Unknown("a binary string is a number or a text by context"),
        Value::Null => Coerced::NoMatch,
    }
}

fn store_integer(value: &Value, bounds: (i128, i128), unsigned: bool) -> Coerced {
    match value {
        Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) => number(
            value,
            bounds,
            unsigned,
            Coerced::Unknown("a fraction would be rounded"),
        ),
        Value::Text(text) => canonical_integer(text)
            .map_or(Coerced::Unknown("text that is not a plain integer"), |v| {
                in_bounds(v, bounds, unsigned)
            }),
        Value::Bytes(_) => Coerced::Unknown("a binary string is a number or a text by context"),
        Value::Null => Coerced::Exact(Value::Null),
    }
}

fn number(value: &Value, bounds: (i128, i128), unsigned: bool, fraction: Coerced) -> Coerced {
    match value {
        Value::Int(v) => in_bounds(i128::from(*v), bounds, unsigned),
        Value::UInt(v) => in_bounds(i128::from(*v), bounds, unsigned),
        Value::Decimal(text) => match decimal(text) {
            Decimal::Integer(v) => in_bounds(v, bounds, unsigned),
            Decimal::Fraction => fraction,
            Decimal::Huge => Coerced::NoMatch,
            Decimal::Malformed => Coerced::Unknown("not a decimal number"),
        },
        Value::Float(v) => match exact_integer(*v) {
            Some(v) => in_bounds(v, bounds, unsigned),
            None if v.is_finite() && v.fract() != 0.0 => fraction,
            None => Coerced::Unknown("too large to be exact as a double"),
        },
        Value::Null | Value::Text(_) | Value::Bytes(_) => Coerced::Unknown("not a number"),
    }
}

fn exact_integer(v: f64) -> Option<i128> {
    // Below 2^53 every integral double is that integer, and no other integer rounds to it.
    #[allow(clippy::cast_precision_loss)]
    let small = v.abs() < EXACT_DOUBLE as f64;
    (small && v.fract() == 0.0).then_some(v as i128)
}

enum Decimal {
    Integer(i128),
    Fraction,
    /// An integer far beyond 64 bits, or one with a fraction: equal to no integer column's value.
    Huge,
    Malformed,
}

fn decimal(text: &str) -> Decimal {
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty()) || !all_digits(whole) || !all_digits(fraction) {
        return Decimal::Malformed;
    }
    if fraction.bytes().any(|b| b != b'0') {
        return Decimal::Fraction;
    }
    let whole = whole.trim_start_matches('0');
    if whole.is_empty() {
        return Decimal::Integer(0);
    }
    match whole.parse::<i128>() {
        Ok(v) => Decimal::Integer(if negative { -v } else { v }),
        Err(_) => Decimal::Huge,
    }
}

/// The integer whose shortest decimal text this is: no sign `+`, no leading zero, no space.
fn canonical_integer(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty()
        && digits.len() <= 20
        && digits.bytes().all(|b| b.is_ascii_digit())
        && (digits == "0" || !digits.starts_with('0'))
        && text != "-0";
    if plain { text.parse().ok() } else { None }
}

fn year(value: &Value) -> Coerced {
    match value.as_integer() {
        // Two-digit years and zero are rewritten by rules of their own.
        Some(v) if (1901..=2155).contains(&v) => integer_value(v, false),
        _ => Coerced::Unknown("not a four-digit year"),
    }
}

fn compare_char(value: &Value, kind: StringKind, collation: &Collation) -> Coerced {
    let Value::Text(bytes) = value else {
        return Coerced::Unknown(
            "a text column compared with a number or a binary string matches many texts",
        );
    };
    let Some(text) = held(bytes, collation) else {
        return Coerced::Unknown("the text is not exact in the column's character set");
    };
    match (kind, collation.pad()) {
        // What a CHAR column holds has no trailing spaces.
        (StringKind::Fixed, Pad::Space) => exact_text(text.trim_end_matches(' ')),
        (StringKind::Fixed, Pad::None) if text.ends_with(' ') => {
            Coerced::Unknown("trailing spaces next to a CHAR column without padding")
        }
        (StringKind::Fixed | StringKind::Variable | StringKind::Large, _) => exact_text(text),
    }
}

fn store_char(value: &Value, kind: StringKind, length: u64, collation: &Collation) -> Coerced {
    let digits;
    let bytes: &[u8] = match value {
        Value::Text(bytes) => bytes,
        Value::Int(_) | Value::UInt(_) => {
            digits = value.as_integer().map(|v| v.to_string()).unwrap_or_default();
            digits.as_bytes()
        }
        // The server copies the bytes and refuses those that are not of the character set.
        Value::Bytes(bytes) if collation.is_utf8() => bytes,
        Value::Null | Value::Decimal(_) | Value::Float(_) | Value::Bytes(_) => {
            return Coerced::Unknown("the text such a value is stored as is not known");
        }
    };
    let Some(text) = held(bytes, collation) else {
        return Coerced::Unknown("the text is not exact in the column's character set");
    };
    let text = if kind == StringKind::Fixed {
        text.trim_end_matches(' ')
    } else {
        text
    };
    let fits = match kind {
        StringKind::Fixed | StringKind::Variable => text.chars().count() as u64 <= length,
        StringKind::Large => text.len() as u64 <= length,
    };
    if fits {
        exact_text(text)
    } else {
        Coerced::Unknown("longer than the column")
    }
}

fn held<'a>(bytes: &'a [u8], collation: &Collation) -> Option<&'a str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| collation.holds(text))
}

fn exact_text(text: &str) -> Coerced {
    Coerced::Exact(Value::Text(text.as_bytes().into()))
}

fn compare_binary(value: &Value, kind: StringKind, length: u64) -> Coerced {
    match value {
        Value::Text(bytes) | Value::Bytes(bytes) => {
            // A shorter literal is not padded in a comparison, so it equals nothing in a BINARY(n); how far servers
            // agree on that is not relied upon.
            if kind == StringKind::Fixed && bytes.len() as u64 != length {
                return Coerced::Unknown("shorter or longer than the BINARY column");
            }
            Coerced::Exact(Value::Bytes(bytes.clone()))
        }
        Value::Null | Value::Int(_) | Value::UInt(_) | Value::Decimal(_) | Value::Float(_) => {
            Coerced::Unknown("a binary column compared with a number matches many texts")
        }
    }
}

fn store_binary(value: &Value, kind: StringKind, length: u64) -> Coerced {
    let (Value::Text(bytes) | Value::Bytes(bytes)) = value else {
        return Coerced::Unknown("the text such a value is stored as is not known");
    };
    if bytes.len() as u64 > length {
        return Coerced::Unknown("longer than the column");
    }
    if kind == StringKind::Fixed {
        // BINARY(n) is at most 255 bytes, so this pads little.
        let mut padded = bytes.to_vec();
        padded.resize(
            usize::try_from(length)
                .unwrap_or(padded.len())
                .min(255)
                .max(padded.len()),
            0,
        );
        return Coerced::Exact(Value::Bytes(padded.into()));
    }
    Coerced::Exact(Value::Bytes(bytes.clone()))
}

/// An ENUM's member, spelled as declared. The server keeps members apart under the column's collation, so such a
/// literal equals exactly that member.
fn member(value: &Value, values: &[Box<str>]) -> Coerced {
    let Value::Text(bytes) = value else {
        return Coerced::Unknown("an ENUM compared by number");
    };
    match values.iter().find(|m| m.as_bytes() == &**bytes && !m.is_empty()) {
        Some(m) => exact_text(m),
        None => Coerced::Unknown("not spelled as a member of the ENUM"),
    }
}

fn date(value: &Value) -> Coerced {
    match value {
        Value::Text(bytes) if is_date(bytes) => Coerced::Exact(value.clone()),
        _ => Coerced::Unknown("not a date in its canonical form"),
    }
}

fn datetime(value: &Value) -> Coerced {
    match value {
        Value::Text(bytes) if is_datetime(bytes) => Coerced::Exact(value.clone()),
        _ => Coerced::Unknown("not a date and time in its canonical form"),
    }
}

fn is_datetime(b: &[u8]) -> bool {
    let (Some(date), Some(b' '), Some(time)) = (b.get(..10), b.get(10), b.get(11..)) else {
        return false;
    };
    let &[h1, h2, b':', m1, m2, b':', s1, s2] = time else {
        return false;
    };
    is_date(date)
        && digits(&[h1, h2]).is_some_and(|h| h < 24)
        && digits(&[m1, m2]).is_some_and(|m| m < 60)
        && digits(&[s1, s2]).is_some_and(|s| s < 60)
}

fn is_date(b: &[u8]) -> bool {
    let &[y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = b else {
        return false;
    };
    let (Some(year), Some(month), Some(day)) =
        (digits(&[y1, y2, y3, y4]), digits(&[m1, m2]), digits(&[d1, d2]))
    else {
        return false;
    };
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let days = match month {
        1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => return false,
    };
    // Zero dates depend on the sql_mode.
    year > 0 && (1..=days).contains(&day)
}

fn digits(b: &[u8]) -> Option<u32> {
    b.iter()
        .try_fold(0, |n, c| c.is_ascii_digit().then(|| n * 10 + u32::from(c - b'0')))
}
