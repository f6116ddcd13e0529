//! A literal or parameter as the planner hands it to a vindex: typed, but not yet of the column's type.

/// A scalar value.
///
/// Text is the client's own bytes *in UTF-8*: [`Value::text`] refuses what it cannot know to be that, because the same
/// bytes hash to another shard when they mean other characters.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// SQL NULL.
    Null,
    /// An integer that fits a signed 64-bit number.
    Int(i64),
    /// An integer above `i64::MAX`, or a value of an unsigned column.
    UInt(u64),
    /// An exact decimal, as written: `5.0`, `-.5`.
    Decimal(Box<str>),
    /// An approximate number: a literal with an exponent, or a bound double.
    Float(f64),
    /// A character string, UTF-8.
    Text(Box<[u8]>),
    /// A binary string: `x'ff'`, `_binary'..'`, a bound blob.
    Bytes(Box<[u8]>),
}

impl Value {
    /// A character string that arrived in `charset` (a server's name for it, any case). `None` when its characters
    /// are not known exactly: another charset with bytes beyond ASCII, or malformed UTF-8.
    #[must_use]
    pub fn text(charset: &str, bytes: &[u8]) -> Option<Self> {
        let ascii_superset = !matches!(
            charset.to_ascii_lowercase().as_str(),
            "ucs2" | "utf16" | "utf16le" | "utf32" | "swe7" | "filename"
        );
        let utf8 = charset
            .get(..4)
            .is_some_and(|head| head.eq_ignore_ascii_case("utf8"));
        // Four bytes are no character of the old utf8: a server stores something else.
        let utf8 = utf8 && (charset.eq_ignore_ascii_case("utf8mb4") || bytes.iter().all(|b| *b < 0xf0));
        let known = (bytes.is_ascii() && ascii_superset) || (utf8 && std::str::from_utf8(bytes).is_ok());
        known.then(|| Self::Text(bytes.into()))
    }

    /// An integer literal as written, any sign; a decimal when it fits no 64-bit integer.
    #[must_use]
    pub fn integer(digits: &str) -> Self {
        if let Ok(v) = digits.parse::<i64>() {
            Self::Int(v)
        } else if let Ok(v) = digits.parse::<u64>() {
            Self::UInt(v)
        } else {
            Self::Decimal(digits.into())
        }
    }

    /// Whether it is SQL NULL.
    #[must_use]
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// The integer it is, if it is one.
    #[must_use]
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Self::Int(v) => Some(i128::from(*v)),
            Self::UInt(v) => Some(i128::from(*v)),
            Self::Null | Self::Decimal(_) | Self::Float(_) | Self::Text(_) | Self::Bytes(_) => None,
        }
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Self {
        Self::Int(v)
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Self {
        Self::UInt(v)
    }
}

impl From<&str> for Value {
    fn from(s: &str) -> Self {
        Self::Text(s.as_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_an_unknown_charset_is_taken_only_when_it_is_ascii() {
        assert_eq!(Value::text("latin1", b"bob"), Some(Value::from("bob")));
        assert_eq!(Value::text("latin1", b"b\xf6b"), None);
        assert_eq!(Value::text("utf8mb4", "böb".as_bytes()), Some(Value::from("böb")));
        assert_eq!(Value::text("utf8mb4", b"b\xf6b"), None);
        assert_eq!(
            Value::text("ucs2", b"ab"),
            None,
            "two ASCII bytes are one character there"
        );
    }

    #[test]
    fn an_integer_too_large_for_64_bits_stays_exact() {
        assert_eq!(Value::integer("-9223372036854775808"), Value::Int(i64::MIN));
        assert_eq!(Value::integer("18446744073709551615"), Value::UInt(u64::MAX));
        assert_eq!(
            Value::integer("18446744073709551616"),
            Value::Decimal("18446744073709551616".into())
        );
    }
}
