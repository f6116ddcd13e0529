//! The values of literals, decoded from the original bytes.
//!
//! Routing must hash what the server will compare, so this follows the server's `unescape` and nothing else. A
//! value is bytes: what characters they are depends on the connection's charset or the introducer.

use std::borrow::Cow;
use std::ops::Range;

use crate::lexed::Lexed;
use crate::mode::SqlMode;
use crate::token::TokenKind;

/// A literal's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Literal<'a> {
    /// Fits 64 bits unsigned. A sign is an operator before it.
    Int(u64),
    /// An integer of more than 64 bits, or digits with a point: exact. The text as written.
    Decimal(&'a str),
    /// A number with an exponent. The text as written.
    Float(&'a str),
    /// A string's content.
    String(Cow<'a, [u8]>),
    /// The content of `N'..'`, which is utf8.
    NationalString(Cow<'a, [u8]>),
    /// The bytes of `x'..'` or `0x..`.
    Hex(Vec<u8>),
    /// The bytes of `b'..'` or `0b..`, zero bits in front.
    Bit(Vec<u8>),
    /// `?`
    Placeholder,
}

/// A literal's type, as far as a plan may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum LiteralClass {
    /// An integer up to 2^63 - 1.
    Int = b'i',
    /// An integer from 2^63 to 2^64 - 1.
    Unsigned = b'u',
    /// Exact: with a point, or an integer that needs more than 64 bits.
    Decimal = b'd',
    /// With an exponent.
    Float = b'f',
    /// A string.
    String = b's',
    /// `N'..'`
    NationalString = b'n',
    /// Hexadecimal.
    Hex = b'x',
    /// Bits.
    Bit = b'b',
    /// `?`
    Placeholder = b'p',
}

impl<'a> Lexed<'a> {
    /// The value of token `at`, if it is a literal.
    pub fn literal(&self, at: usize) -> Option<Literal<'a>> {
        let text = self.text(at);
        Some(match self.kind(at)? {
            TokenKind::Int => {
                let text = std::str::from_utf8(text).ok()?;
                text.parse().map_or(Literal::Decimal(text), Literal::Int)
            }
            TokenKind::Decimal => Literal::Decimal(std::str::from_utf8(text).ok()?),
            TokenKind::Float => Literal::Float(std::str::from_utf8(text).ok()?),
            TokenKind::String => Literal::String(unescape_cow(text, self.options.mode)),
            TokenKind::NationalString => {
                Literal::NationalString(unescape_cow(text.get(1..)?, self.options.mode))
            }
            TokenKind::Hex => Literal::Hex(hex_bytes(text)),
            TokenKind::Bit => Literal::Bit(bit_bytes(text)),
            TokenKind::Placeholder => Literal::Placeholder,
            _ => return None,
        })
    }

    /// The type of token `at`, if it is a literal.
    pub fn literal_class(&self, at: usize) -> Option<LiteralClass> {
        Some(match self.kind(at)? {
            TokenKind::Int => integer_class(self.text(at)),
            TokenKind::Decimal => LiteralClass::Decimal,
            TokenKind::Float => LiteralClass::Float,
            TokenKind::String => LiteralClass::String,
            TokenKind::NationalString => LiteralClass::NationalString,
            TokenKind::Hex => LiteralClass::Hex,
            TokenKind::Bit => LiteralClass::Bit,
            TokenKind::Placeholder => LiteralClass::Placeholder,
            _ => return None,
        })
    }

    /// The value of a string that covers exactly the bytes of `range`: one string token, or several in a row, which
    /// stand for their concatenation.
    pub fn string_value(&self, range: Range<usize>) -> Option<Cow<'a, [u8]>> {
        let first = self.token_at(range.start)?;
        let mut whole: Option<Cow<'a, [u8]>> = None;
        for at in first..self.len() {
            if self.range(at).end > range.end {
                break;
            }
            let (Literal::String(part) | Literal::NationalString(part)) = self.literal(at)? else {
                return None;
            };
            whole = Some(match whole {
                None => part,
                Some(before) => {
                    let mut joined = before.into_owned();
                    joined.extend_from_slice(&part);
                    Cow::Owned(joined)
                }
            });
        }
        whole
    }
}

fn integer_class(digits: &[u8]) -> LiteralClass {
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    let digits = &digits[zeros..];
    // Same length: text order is number order.
    let fits = |most: &[u8]| digits.len() < most.len() || (digits.len() == most.len() && digits <= most);
    if fits(b"9223372036854775807") {
        LiteralClass::Int
    } else if fits(b"18446744073709551615") {
        LiteralClass::Unsigned
    } else {
        LiteralClass::Decimal
    }
}

fn unescape_cow(text: &[u8], mode: SqlMode) -> Cow<'_, [u8]> {
    let Some((quote, rest)) = text.split_first() else {
        return Cow::Borrowed(text);
    };
    let inner = rest.split_last().map_or(&[][..], |(_, inner)| inner);
    if inner
        .iter()
        .any(|byte| byte == quote || (*byte == b'\\' && !mode.no_backslash_escapes()))
    {
        Cow::Owned(unescape(text, mode))
    } else {
        Cow::Borrowed(inner)
    }
}

/// The content of a quoted string. `text` includes its quotes.
pub(crate) fn unescape(text: &[u8], mode: SqlMode) -> Vec<u8> {
    let Some((&quote, rest)) = text.split_first() else {
        return Vec::new();
    };
    let inner = rest.split_last().map_or(&[][..], |(_, inner)| inner);
    let mut value = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && !mode.no_backslash_escapes() {
            match bytes.next() {
                Some(b'0') => value.push(0),
                Some(b'b') => value.push(8),
                Some(b'n') => value.push(b'\n'),
                Some(b'r') => value.push(b'\r'),
                Some(b't') => value.push(b'\t'),
                Some(b'Z') => value.push(0x1a),
                // A pattern needs these two with their backslash.
                Some(wildcard @ (b'%' | b'_')) => value.extend([b'\\', wildcard]),
                Some(other) => value.push(other),
                None => {}
            }
        } else {
            value.push(byte);
            if byte == quote {
                bytes.next();
            }
        }
    }
    value
}

/// The digits between the marks: `x'41'`, `0x41`, `b'01'` and `0b01` all have two bytes in front.
fn digits(text: &[u8]) -> &[u8] {
    let rest = text.get(2..).unwrap_or_default();
    rest.strip_suffix(b"'").unwrap_or(rest)
}

fn hex_bytes(text: &[u8]) -> Vec<u8> {
    let value = |byte: u8| (byte as char).to_digit(16).map_or(0, |digit| digit as u8);
    digits(text)
        .rchunks(2)
        .rev()
        .map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | value(*digit)))
        .collect()
}

fn bit_bytes(text: &[u8]) -> Vec<u8> {
    digits(text)
        .rchunks(8)
        .rev()
        .map(|bits| bits.iter().fold(0, |byte, bit| (byte << 1) | (bit & 1)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::LexOptions;
    use crate::{SqlMode, lex};

    fn string(sql: &[u8], mode: SqlMode) -> Vec<u8> {
        let lexed = lex(
            sql,
            &LexOptions {
                mode,
                ..LexOptions::default()
            },
        )
        .unwrap();
        match lexed.literal(0) {
            Some(Literal::String(value) | Literal::NationalString(value)) => value.into_owned(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_string_decodes_as_the_server_does() {
        let plain = SqlMode::default();
        let cases: &[(&[u8], SqlMode, &[u8])] = &[
            (b"'it''s'", plain, b"it's"),
            (b"'it\\'s'", plain, b"it's"),
            (b"\"say \"\"hi\"\"\"", plain, b"say \"hi\""),
            (b"'a\"b'", plain, b"a\"b"),
            // Re-rendered without its escape, this one would swallow the text behind it.
            (b"'ends\\\\'", plain, b"ends\\"),
            (b"'ends\\'", SqlMode::NO_BACKSLASH_ESCAPES, b"ends\\"),
            (b"'\\0\\b\\n\\r\\t\\Z\\q'", plain, b"\0\x08\n\r\t\x1aq"),
            (b"'50\\% \\_'", plain, b"50\\% \\_"),
            (b"'nul \0 in'", plain, b"nul \0 in"),
            (b"'\xff\xfe'", plain, b"\xff\xfe"),
            (b"N'it''s'", plain, b"it's"),
            (b"''", plain, b""),
        ];
        for (sql, mode, value) in cases {
            assert_eq!(string(sql, *mode), *value, "{}", String::from_utf8_lossy(sql));
        }
    }

    #[test]
    fn numbers_and_bytes_decode() {
        let sql = b"18446744073709551615 18446744073709551616 007 x'4a4B' 0x123 b'101' 0b100000001 1.5 1e3 ?";
        let lexed = lex(sql, &LexOptions::default()).unwrap();
        let values: Vec<_> = (0..lexed.len()).map(|at| lexed.literal(at).unwrap()).collect();
        let expected = vec![
            Literal::Int(u64::MAX),
            Literal::Decimal("18446744073709551616"),
            Literal::Int(7),
            Literal::Hex(vec![0x4a, 0x4b]),
            Literal::Hex(vec![0x01, 0x23]),
            Literal::Bit(vec![5]),
            Literal::Bit(vec![1, 1]),
            Literal::Decimal("1.5"),
            Literal::Float("1e3"),
            Literal::Placeholder,
        ];
        assert_eq!(values, expected);
    }

    #[test]
    fn an_integer_s_class_is_by_its_width() {
        assert_eq!(integer_class(b"0009223372036854775807"), LiteralClass::Int);
        assert_eq!(integer_class(b"9223372036854775808"), LiteralClass::Unsigned);
        assert_eq!(integer_class(b"18446744073709551615"), LiteralClass::Unsigned);
        assert_eq!(integer_class(b"18446744073709551616"), LiteralClass::Decimal);
        assert_eq!(integer_class(b"000"), LiteralClass::Int);
    }
}
